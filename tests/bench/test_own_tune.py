"""`gridwise tune FILE`: which variants compete, which are left out, how they stand; by invented times, and one run."""

import csv
import itertools
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.cases.own_files import load_benchmarks
from gridwise_py.bench.checks.check import Mismatch
from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.sampling.measurement import Measurement
from gridwise_py.bench.sampling.samples import make_series
from gridwise_py.bench.sweep import own_tune
from gridwise_py.bench.sweep.own_tune import best_for_all, contests_of, tune_variants
from gridwise_py.bench.sweep.rivals import clearly_slower
from gridwise_py.bench.sweep.suite import own_sweeps
from gridwise_py.bench.sweep.worker import measure_job
from gridwise_py.cli import main

DECLARED = """
import gridwise_py as gw
@gw.benchmarked(n=[4, 8], tile=[1, 2, 4], unroll=[True, False], kind=["a"], tune=["tile", "unroll"])
def tiled(device, n, tile, unroll, kind): ...
@gw.benchmarked(rows=[2, 3], tile=[4, 8], n=lambda rows, tile: rows * 4)
def computed(device, rows, tile): ...
"""


@pytest.fixture
def sweeps_of(tmp_path):
    """A function that writes a file of benchmarks, and returns the sweeps of those that are named."""

    def sweeps_of(text=DECLARED, names=("tiled",), axes=()):
        path = tmp_path / "variants.py"
        path.write_text(text)
        found = load_benchmarks(path)
        return own_sweeps([found[name] for name in names], axes, {})

    yield sweeps_of
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


def _result(job, level_ns=None, rng=None, **fields):
    whole = {}
    if level_ns is not None:
        whole["gpu_span"] = make_series("gpu_span", list(level_ns * (1 + 0.01 * rng.standard_normal(40))), {})
    return result_of(Measurement(job.case.primitive, job.mode, job.case.n, job.case.axes, whole=whole, **fields))


class Invented:
    """Measures variants of invented times, and counts how often."""

    def __init__(self, level_ns):
        self._level_ns, self._rng = level_ns, np.random.default_rng(0)
        self.calls = {}

    def begin_round(self):
        pass

    def measure(self, job):
        key = (job.case.n, *(text for axis, text in job.case.others if axis in ("tile", "unroll")))
        self.calls[key] = number = self.calls.get(key, 0) + 1
        assert job.checks is (number == 1)
        given = self._level_ns(*key)
        if not isinstance(given, float):
            return _result(job, **given)
        drift = 1 + 0.3 * (number % 3)  # of the machine, which all variants of a round have
        return _result(job, given * drift, self._rng)


def tune(contests, level_ns, rounds=6):
    """Tune by invented times; return the points, and how often each variant was measured."""
    where = Invented(level_ns)
    return list(tune_variants(where, contests, rounds=rounds)), where.calls


def _standing(point):
    return {tuple(map(str, one.values.values())): one.standing.value for one in point.variants}


def test_other_work_on_a_cpu_leaves_variants_open(sweeps_of, monkeypatch):
    busy = {"protocol": {"on_cpu": True}, "other_load": 0.5, "rng": np.random.default_rng(0)}
    contests = contests_of(sweeps_of(axes=["tile=1,2", "unroll=True", "n=4"]))
    for judges, standing in (("0", "ambiguous"), ("1", "slower")):
        monkeypatch.setenv("GRIDWISE_JUDGE_BUSY", judges)
        ((point,), _) = tune(contests, lambda n, tile, _: {"level_ns": 1e5 * (1 + 0.1 * int(tile)), **busy})
        assert _standing(point) == {("1", "True"): "best", ("2", "True"): standing}


# ---- what competes


def test_a_contest_has_all_combinations_at_a_point_of_the_other_axes(sweeps_of):
    first, second = contests_of(sweeps_of())
    assert (first.n, second.n) == (4, 8)
    assert (first.axes, first.tuned) == ({"kind": "a"}, ("tile", "unroll"))
    assert list(first.jobs) == list(itertools.product("124", ("True", "False")))
    assert first.values(("2", "False")) == {"tile": 2, "unroll": False}
    assert {job.case.n for job in second.jobs.values()} == {8}


def test_axes_that_are_asked_for_replace_those_declared(sweeps_of):
    contests = contests_of(sweeps_of(names=("tiled", "computed")), ["tile"])
    assert [(c.benchmark, c.n, dict(c.axes)) for c in contests] == [
        *(("variants.tiled", n, {"unroll": unroll, "kind": "a"}) for n in (4, 8) for unroll in (True, False)),
        *(("variants.computed", 4 * rows, {"rows": rows}) for rows in (2, 3)),
    ]
    other = contests_of(sweeps_of(axes=["tile=16,32"]), ["tile"])
    assert all(list(c.jobs) == [("16",), ("32",)] for c in other)


@pytest.mark.parametrize(
    ("names", "asked", "axes", "message"),
    [
        (["computed"], None, [], r"computed: no axes to tune are declared; axes are rows, tile: add tune=\[…\] to "),
        (["tiled"], ["tle"], [], r"--tune tle: no benchmark of variants.tiled has these axes; axes are tile, unroll"),
        (["tiled"], ["n"], [], "--tune n: no benchmark"),
        (["computed"], ["rows"], [], "n depends on rows, so variants would do work of 8 to 12 items"),
        (["tiled"], ["tile"], ["tile=2"], "tile has one value only"),
    ],
)
def test_what_cannot_be_tuned_is_refused(sweeps_of, names, asked, axes, message):
    with pytest.raises(ValueError, match=message):
        contests_of(sweeps_of(names=names, axes=axes), asked)


def test_a_declaration_that_tunes_no_axis_of_its_own_is_refused(sweeps_of):
    text = "import gridwise_py as gw\n@gw.benchmarked(n=[1], k=[2], tune='n')\ndef f(device, n, k): ..."
    with pytest.raises(ValueError, match="line 2: tune names 'n', which is no axis that can be tuned; there are k"):
        sweeps_of(text, ["f"])


# ---- who is left out


@pytest.mark.parametrize(
    ("rounds", "out"),
    [
        ({"a": [[10, 10]], "b": [[21, 21]]}, {"b": 2.0}),
        ({"a": [[10, 10]] * 2, "b": [[13, 13]] * 2}, {"b": 1.25}),
        ({"a": [[10, 10]] * 2, "b": [[13, 13], [12, 12]]}, {}),  # not in each round
        ({"a": [[10, 10, 10, 30]], "b": [[21, 21, 21, 21]]}, {}),  # a slow sample, not a fast one, of few
        ({"a": [[10] * 9], "b": [[21] * 7 + [1, 1]]}, {"b": 2.0}),
        ({}, {}),
    ],
)
def test_left_out_is_what_is_slower_in_every_round(rounds, out):
    assert clearly_slower(rounds, (2.0, 1.25)) == out


# ---- how they stand


def test_standings_of_invented_times(sweeps_of):
    levels_ns = {
        ("1", "True"): 1000.0, ("1", "False"): 1002.0, ("2", "True"): 1100.0, ("2", "False"): 1400.0,
        ("4", "True"): 5000.0, ("4", "False"): {"error": "line 3: ShaderError: no"},
    }  # fmt: skip
    contests = contests_of(sweeps_of())[:1]
    (point,), calls = tune(contests, lambda n, *key: levels_ns[key])
    assert _standing(point) == {
        ("1", "True"): "best", ("1", "False"): "same", ("2", "True"): "slower", ("2", "False"): "left out",
        ("4", "True"): "left out", ("4", "False"): "failed",
    }  # fmt: skip
    assert {key[1:]: count for key, count in calls.items()} == {
        ("1", "True"): 6, ("1", "False"): 6, ("2", "True"): 6, ("2", "False"): 2, ("4", "True"): 1, ("4", "False"): 1,
    }  # fmt: skip
    best, _, slower, out, far, failed = point.variants
    assert point.best is best
    assert best.time_ns == pytest.approx(1300, rel=0.01)  # the median of the drift
    assert slower.low < 1.1 < slower.high
    assert [out.ratio, far.ratio] == pytest.approx([1.4, 5.0], rel=0.01)  # of the same rounds, whatever the drift
    assert (failed.time_ns, failed.ratio, failed.reason) == (None, None, "line 3: ShaderError: no")
    document = point.to_json()
    assert document["best"] == {"tile": 1, "unroll": True}
    assert [len(one["rounds_ns"]) for one in document["variants"]] == [6, 6, 6, 2, 1, 0]


def test_a_wrong_variant_is_no_winner_and_a_point_without_a_right_one_has_none(sweeps_of):
    wrong = {"mismatches": (Mismatch(3, 1.0, 2.0, 1, ""),)}
    contests = contests_of(sweeps_of(), ["tile"])[:2]
    points, calls = tune(contests, lambda n, tile, unroll: wrong if tile == "1" or unroll == "False" else 1000.0)
    assert _standing(points[0]) | {("2",): "", ("4",): ""} == {("1",): "wrong", ("2",): "", ("4",): ""}
    assert points[0].best is not None
    assert points[1].best is None
    assert all("3" in one.reason and one.standing == "wrong" for one in points[1].variants)
    assert [count for key, count in calls.items() if key[2] == "False"] == [1, 1, 1]
    assert best_for_all(points) is None


@pytest.mark.gpu
def test_after_a_lost_device_the_others_go_on_with_a_new_one(sweeps_of, monkeypatch):
    made, used = [], []

    def make_device():
        made.append(gw.request_device())
        return made[-1]

    def measure(device, job, protocol):
        used.append(device)
        if dict(job.case.others)["tile"] == "2":
            device.destroy()
            return _result(job, error="DeviceLostError: gone")
        return _result(job, 1000.0, np.random.default_rng(0))

    monkeypatch.setattr(own_tune, "measure_job", measure)
    contests = contests_of(sweeps_of(axes=["unroll=True"]), ["tile"])[:1]
    (point,) = tune_variants(own_tune.RoundsHere(make_device), contests, rounds=3)
    assert _standing(point)["2",] == "failed"
    assert point.best is not None
    assert len(made) == 2
    assert used[-1] is made[1]
    made[1].destroy()


def test_one_setting_for_all_points_loses_least_at_its_worst(sweeps_of):
    levels_ns = {4: {"1": 1000.0, "2": 1150.0, "4": 1190.0}, 8: {"1": 1300.0, "2": 1100.0, "4": 1000.0}}
    contests = contests_of(sweeps_of(axes=["unroll=True"]), ["tile"])
    points, _ = tune(contests, lambda n, tile, unroll: levels_ns[n][tile])
    values, ratio = best_for_all(points)
    assert values == {"tile": 2}
    assert ratio == pytest.approx(1.15, rel=0.02)
    assert best_for_all(points[:1]) is None


# ---- the command

TERMS = ("right", "shift", "wrong", "broken")
REAL = '''
import numpy as np
import gridwise_py as gw
WGSL = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
override SIZE: u32 = 64;
override SKIP: u32 = 0;
@compute @workgroup_size(SIZE) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&x) && id.x % 8 >= SKIP) { y[id.x] = x[id.x] TERM; }
}"""
TERMS = {"right": "* 2", "shift": "<< 1u", "wrong": "* 3", "broken": "*"}
@gw.benchmarked(n=[256, 512], size=[32, 64], term=list(TERMS), tune=["size", "term"])
def double(device, n, size, term):
    text = WGSL.replace("TERM", TERMS[term])
    kernel = gw.Kernel(device, text, {"x": "read", "y": "read_write"}, -(-n // size), constants={"SIZE": size})
    x = np.arange(n, dtype=np.uint32)
    return gw.Benchmark(kernel, {"x": x, "y": np.ones(n, np.uint32)}, reference=lambda x: 2 * x)
'''


def _run(*words):
    return CliRunner().invoke(main, list(words), env={"COLUMNS": "200"})


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(REAL)
    yield tmp_path
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


@pytest.mark.usefixtures("device")
def test_a_file_is_tuned(written):
    result = _run("tune", "mine.py", "--n", "256", "--rounds", "3", "--json", "found.json")
    assert result.exit_code == 0, result.output
    document = json.loads((written / "found.json").read_text())
    (point,) = document["points"]
    assert (point["benchmark"], point["n"], point["mode"]) == ("mine.double", 256, "hot")
    assert point["best"]["term"] in ("right", "shift")
    standings = {(one["values"]["size"], one["values"]["term"]): one for one in point["variants"]}
    assert len(standings) == 8
    for (_, term), one in standings.items():
        assert one["checked"] is (term != "broken")
        if term == "wrong":
            assert one["standing"] == "wrong"
            assert "is 3, expected 2" in one["reason"]
        elif term == "broken":
            assert one["standing"] == "failed"
            assert "ShaderError" in one["reason"]
        else:
            assert one["standing"] in ("best", "same", "ambiguous", "slower", "left out")
            assert one["ratio"] > 0
            assert one["time_ns"] > 0
    assert "mine.double hot n=256" in result.output
    assert "ShaderError" in result.output


def test_each_round_has_a_process_of_its_own(written, device, monkeypatch):
    started, first = [], []

    class Here:
        """A worker without a process."""

        def __init__(self, adapter, protocol, name, files):
            assert files == [str(written / "mine.py")]
            self._protocol = protocol
            started.append([])

        def measure(self, job):
            started[-1].append(dict(job.case.others)["term"])
            return measure_job(device, job, self._protocol)

        def close(self):
            first.append(started[-1][:2])

        kill = close

    monkeypatch.setattr(own_tune, "Worker", Here)
    words = ("tune", "mine.py", "--n", "256", "-a", "size=32", "--processes", "3", "--csv", "found.csv")
    result = _run(*words, "--markdown", "found.md")
    assert result.exit_code == 0, result.output
    assert "3 processes" in result.output
    assert set(started[0]) == set(TERMS)
    assert all(set(terms) <= {"right", "shift"} for terms in started[1:]), "those that are wrong are not measured again"
    assert all(one == other for one, other in first), "the first one of a process is measured twice"
    rows = list(csv.DictReader((written / "found.csv").open()))
    assert [row["term"] for row in rows][2:] == ["wrong", "broken"]
    assert {key: rows[0][key] for key in ("benchmark", "n", "mode", "size", "standing", "ratio", "checked")} == {
        "benchmark": "mine.double", "n": "256", "mode": "hot", "size": "32", "standing": "best", "ratio": "1.0",
        "checked": "true",
    }  # fmt: skip
    assert "is 3, expected 2" in (written / "found.md").read_text()
    assert _run(*words, "--rounds", "3").exit_code == 2


@pytest.mark.usefixtures("device")
def test_a_point_without_a_right_variant_fails_the_command(written, capfd):
    result = _run("tune", "mine.py", "--n", "256", "-a", "term=wrong,broken", "--format", "json")
    assert result.exit_code == 4, result.output
    (point,) = json.loads(capfd.readouterr().out)["points"]
    assert point["best"] is None
    assert _run("tune", "mine.py", "--n", "256", "-a", "term=broken").exit_code == 2


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mine.py", "doubl"], "has no benchmark 'doubl'; it has double; did you mean 'double'?"),
        (["mine.py", "--tune", "tile"], "--tune tile: no benchmark of mine.double has these axes; axes are size, term"),
        (["mine.py", "--kernels", "scan"], "--kernels is for the kernels of the library; leave it out with a file"),
        (["scan"], "'scan' is no FILE.py; kernels of the library are named by --kernels"),
        (["--tune", "size"], "--tune is for a FILE.py of your own; name it"),
        (["mine.py", "-a", "term=left"], "'left' is not one of right, shift, wrong, broken"),
        (["mine.py", "--rounds", "2"], "2 is not in the range x>=3"),
    ],
)
def test_bad_input_is_refused_before_a_device_is_made(words, message):
    result = _run("tune", *words)
    assert result.exit_code == 2
    assert message in result.output
