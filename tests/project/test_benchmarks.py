"""The scripts in benchmarks/: they start, and do a small round of what they are for; PyTorch is an invented one."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py import cli
from gridwise_py.bench.cases.own_files import load_benchmarks
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.internals import engine_description
from helpers.paths import ROOT

FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(FOLDER.rglob("*.py"))
pytestmark = [pytest.mark.needs("the repository"), pytest.mark.slow]


def _script(name):
    path = next(p for p in SCRIPTS if p.stem == name)
    if str(path.parent) not in sys.path:  # as for a script that is run: those beside it can be imported
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _run(name, *words):
    return CliRunner().invoke(_script(name).main, [str(word) for word in words])


@pytest.mark.parametrize("name", [p.stem for p in SCRIPTS])
def test_it_starts(name):
    """Imports what it needs of the library; those with options explain themselves."""
    module = _script(name)
    assert module.__doc__
    if hasattr(getattr(module, "main", None), "callback"):
        done = CliRunner().invoke(module.main, ["--help"])
        assert done.exit_code == 0, done.output


def test_commands_of_figures_have_options_that_there_are():
    figures = _script("figures").figures()
    files = [figure.file for figure in figures]
    assert len(files) == len(set(files)) > 30
    for figure in figures:
        words = figure.words({name: Path(name) for name in (*figure.programs, "out")})[1:]
        if words[0] == "-m":
            command, words = cli.main.commands[words[2]], words[3:]
            known = {option for parameter in command.params for option in parameter.opts}
        else:
            text = Path(words[0]).read_text(encoding="utf-8")
            main = getattr(_script(Path(words[0]).stem), "main", None)
            params = getattr(main, "params", ())
            known = {option for parameter in params for option in parameter.opts} | set(
                re.findall(r'"(--[\w-]+)"', text)
            )
        options = {word for word in words if word.startswith("-") and not word[1:].isdigit()}
        assert "out" in words, figure.file
        assert options <= known, figure.file


def test_figures_are_made_and_failures_told(tmp_path, monkeypatch):
    figures = _script("figures")
    (tmp_path / "good.py").write_text("import sys; open(sys.argv[1], 'w').write('{}')")
    (tmp_path / "bad.py").write_text("raise SystemExit('no such thing')")
    # A script whose own process goes on when it is ended: nothing of it may disturb the next one.
    slow = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    (tmp_path / "slow.py").write_text(slow + "open(sys.argv[1], 'w').write(str(p.pid)); time.sleep(60)")
    table = [("a", "good.py"), ("b", "bad.py"), ("c", "slow.py"), ("d", "good.py")]
    entries = [figures.Figure(f"{name}.json", f"{script} {{out}}", 5.0) for name, script in table]
    entries += [figures.Figure("e.json", "good.py {out}", 5.0, needs=("no_such_package",))]
    entries += [figures.Figure("f.json", "good.py {out}", 5.0, gpus=99), figures.Figure("g.json", "good.py {out}", 1e9)]
    monkeypatch.setattr(figures, "HERE", tmp_path)
    monkeypatch.setattr(figures, "figures", lambda: entries)
    run = figures.run
    monkeypatch.setattr(figures, "run", lambda figure, places, limit_s: run(figure, places, min(limit_s, 3.0)))
    out = tmp_path / "out"
    done = CliRunner().invoke(figures.main, ["--out", str(out), "--budget-s", "1000", "--any-adapter"])
    assert done.exit_code == 1, done.output
    lines = {line.split()[0]: line for line in done.output.splitlines()}
    assert all(lines[f"{name}.json"].endswith("done") for name in "ad")
    assert "exit 1: no such thing" in lines["b.json"]
    assert "ended after 3 s" in lines["c.json"]
    if hasattr(os, "killpg"):
        _wait_for_the_end_of(int((out / "c.json").read_text()))
    assert "not installed: no_such_package" in lines["e.json"]
    assert "needs 99 GPUs" in lines["f.json"]
    assert "are left" in lines["g.json"]
    again = CliRunner().invoke(figures.main, ["--out", str(out), "--any-adapter", "a"])
    assert (again.exit_code, again.output.count("done")) == (0, 1)
    unknown = CliRunner().invoke(figures.main, ["nothing"])
    assert (unknown.exit_code, "--list names all" in unknown.output) == (2, True)


def _wait_for_the_end_of(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if " Z " in Path(f"/proc/{pid}/stat").read_text():  # ended, and nobody has asked how
                return
        except OSError:
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} goes on")


def test_transfers_are_measured(device, tmp_path):
    path = tmp_path / "transfers.json"
    done = _run("transfers", "--sizes", "2^12,2^23", "--threads", "1,all", "--rounds", 1, "--json", path)
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    assert [row["size_bytes"] for row in rows] == [1 << 12, 1 << 23] * (len(rows) // 2)
    assert all(speed > 0 for row in rows for speed in row["gbytes_per_s"].values())
    assert {"memcpy", "asarray", "copy_from", "to_numpy", "to_numpy_out"} <= set(rows[0]["over_memcpy"])


# ---- variants


def _points(own, **small):
    """Yield points of a benchmark's axes: all values of each axis, one at a time; sizes are small."""
    axes = own.declared.axes
    base = {axis: small.get(axis, values[0]) for axis, values in axes.items()}
    yield base
    for axis in axes.keys() - small.keys():
        for value in axes[axis][1:]:
            yield {**base, axis: value}


_SMALL = {"n": 5000, "rows": 64, "columns": 64, "side": 64, "length": 16}


@pytest.mark.parametrize("file", ["texts", "structs"])
def test_variants_change_the_text_and_stay_right(device, require, file):
    """Those of texts.py compose what the library does not; results of all are numpy's."""
    require("subgroup")
    for name, own in load_benchmarks(FOLDER / "variants" / f"{file}.py").items():
        texts = {}
        for point in _points(own, **_SMALL):
            benchmark = own.declared.make(device, **point)
            run = benchmark.run.execute(**benchmark.inputs)
            inputs = {key: array.to_numpy() for key, array in benchmark.inputs.items()}
            outputs = {key: array.to_numpy() for key, array in run.outputs.items()}
            assert mismatch(benchmark.run, inputs, outputs) is None, (name, point)
            texts.setdefault(point.get("case"), {})[point.get("variant")] = [k.shader for k in run.plan.kernels]
        if name in ("reduce", "scan", "sort"):
            (of_case,) = texts.values()
            # On a CPU adapter words are always read by atomicOr; all others differ from what the library does.
            same = [variant for variant, text in of_case.items() if text == of_case["as-it-is"]]
            assert set(same) <= {"as-it-is", "states-read-by-atomicOr"}, name
            assert len(of_case) >= 3
    library = gw.Scan(device, strategy="lookback").plan(gw.Layout.separate(input=5000, output=5000))
    again = gw.Scan(device, strategy="lookback").plan(gw.Layout.separate(input=5000, output=5000))
    assert library == again, "nothing is left changed"


def test_every_shape_can_be_planned_or_says_why(device, require):
    """A field that is left to the library changes nothing; the others change the plan, or are refused with a reason."""
    require("subgroup")
    for name, own in load_benchmarks(FOLDER / "variants" / "shapes.py").items():
        plans, refused = [], []
        for point in _points(own, **_SMALL):
            if point.get("dtype") == "f16":
                continue
            try:
                benchmark = own.declared.make(device, **point)
                plans.append(benchmark.run.bind(**benchmark.inputs).plan)
            except gw.ArgumentError as error:
                refused.append(str(error))
        assert len(plans) > len(refused), (name, refused)
        assert len({str(dict(plan.parameters)) for plan in plans}) >= 2, name


def test_variants_are_run_by_gridwise_tune(device, tmp_path):
    path = tmp_path / "reduce.json"
    words = (str(FOLDER / "variants" / "texts.py"), "reduce", "--n", "3000", "--rounds", "3", "--json", str(path))
    done = CliRunner().invoke(cli.main, ["tune", *words])
    assert done.exit_code == 0, done.output
    (point,) = json.loads(path.read_text())["points"]
    assert {row["values"]["variant"] for row in point["variants"]} == set(_script("texts").TEXTS["reduce"])
    assert all(row["checked"] and row["time_ns"] > 0 for row in point["variants"])


# ---- soak


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [("scan", "lookback"), ("scan", "reduce_then_scan"), ("sort", "onesweep"), ("select", "lookback")],
)
def test_a_soak_of_every_form(device, tmp_path, kind, strategy):
    path = tmp_path / "soak.json"
    done = _run("soak", kind, "--n", "20000,70000", "--runs", 7, "--strategy", strategy, "--json", path)
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    # The script makes a device of its own, with what the adapter has.
    wide = {"shader-int64", "shader-int64-atomic-all-ops"} <= set(device.adapter.features)
    forms = [None] if (kind, strategy) != ("scan", "lookback") else ["u64", "u32x2"] if wide else ["u32x2"]
    assert [(row["n"], row["state"]) for row in rows] == [(n, form) for n in (20000, 70000) for form in forms]
    for row in rows:
        assert (row["wrong_items"], row["runs"], row["runs_asked_for"]) == (0, 7, 7)
        assert row["parameters"]["strategy"] == strategy


def test_a_soak_ends_when_its_time_is_up(device):
    row = _script("soak").soak(gw.Scan(device, strategy="reduce_then_scan"), 3000, 1_000_000, seconds=0.3)
    assert 0 < row["runs"] < 1_000_000
    assert row["seconds"] < 60


def test_a_soak_finds_a_wrong_item(device, monkeypatch):
    monkeypatch.setattr(gw.Scan, "reference", lambda self, x: x.cumsum(dtype="u4") + (x == x[77]))
    row = _script("soak").soak(gw.Scan(device, strategy="reduce_then_scan"), 3000, 3, seconds=60)
    assert row["wrong_items"] >= 3


@pytest.mark.parametrize("datatype", ["u32", "f32"])
def test_arrays_are_compared_on_the_gpu(device, datatype):
    """With numpy's verdict, past the 262,144 items that one round of the grid reads."""
    differences = _script("compare_items").Differences(device)
    items = np.random.default_rng(3).integers(0, 1000, 600_001).astype(gw.DATATYPES[datatype].dtype)
    other = items.copy()
    other[[70_003, 262_144, 600_000]] += 1
    expected, same, got = (gw.asarray(values, device) for values in (items, items, other))
    assert differences.mismatch(same, expected) is None
    wrong = differences.mismatch(got, expected)
    assert (wrong.index, wrong.wrong_items) == (70_003, np.count_nonzero(items != other))
    assert (wrong.got, wrong.expected) == (other[70_003], items[70_003])
    assert differences.mismatch(same, expected) is None, "counts begin anew"
    encoder = device.create_command_encoder()
    for _ in range(2):
        differences.record(encoder, got, expected)
    device.queue.submit([encoder.finish()])
    assert differences.total() == 6
    with pytest.raises(ValueError, match="one length"):
        differences.mismatch(got[:5], expected)


# ---- the clock


def test_the_clock_is_measured_before_while_and_after_it_is_held(device, tmp_path, monkeypatch):
    script = _script("hold_clock")
    monkeypatch.setattr(script, "CALLS", 3)
    monkeypatch.setattr(script, "WARM_UP_CALLS", 1)
    monkeypatch.setattr(script, "FALL_S", 0.01)
    monkeypatch.setattr(script, "BUSY_S", 0.01)
    monkeypatch.setattr(script, "RESTS_S", (0.0, 0.002))
    monkeypatch.setattr(script, "N", 1000)
    path = tmp_path / "clock.json"
    done = CliRunner().invoke(script.main, ["--json", str(path)])
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    assert [row["rest_s"] for row in rows] == list(script.RESTS_S)
    assert all(row[key] > 0 for row in rows for key in ("before_ns", "held_ns", "after_ns", "hold_ns"))
    if gw.capabilities(device).is_cpu:
        assert not any(row[key] for row in rows for key in ("before_warned", "held_warned", "after_warned"))
    monkeypatch.setattr("gridwise_py.runtime.gpu_clock._follows_load", lambda device: True)
    scan = gw.Scan(gw.request_device())
    scan.execute(input=gw.asarray(np.arange(100, dtype=np.uint32), scan.device))
    assert script.calls(scan, 0.002).warned == 1, "the script looks for the words of the warning"


# ---- the study of gridwise ab


def test_the_slower_copy_does_two_percent_more(device, tmp_path):
    """More workgroups; the results are the same."""
    study = _script("ab_study")
    root = study.slower_copy(tmp_path)
    program = """
import json, numpy as np, gridwise_py as gw
device = gw.default_device()
items = np.arange(5 << 20, dtype=np.uint32)
x = gw.asarray(items, device)
add = gw.VectorAdd(device)
assert (add.execute(a=x, b=x).output.to_numpy() == 2 * items).all()
(kernel,) = add.bind(a=x, b=x).plan.kernels
print(json.dumps([gw.__file__, kernel.workgroups[0]]))
"""
    found = {}
    for name, folder in (("this", study.ROOT), ("slower", root)):
        environment = study.find_environment(str(folder))
        command = [sys.executable, "-P", "-c", program]
        done = subprocess.run(command, env=environment.variables(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        place, found[name] = json.loads(done.stdout.splitlines()[-1])
        assert Path(place).is_relative_to(folder)
    assert found["slower"] == pytest.approx(1.02 * found["this"], abs=1)
    assert found["slower"] > found["this"] > 1000


def test_the_study_of_ab_counts_rows(device, tmp_path, monkeypatch):
    study = _script("ab_study")
    monkeypatch.setattr(
        study,
        "jobs",
        lambda is_cpu, name: [study.Job(study.Case.build("copy", 500, "u32", "add"), study.Mode.BATCH, 0)],
    )
    path = tmp_path / "study.json"
    done = CliRunner().invoke(study.main, ["--times", "1", "--pairs", "2", "--json", str(path)])
    assert done.exit_code == 0, done.output
    document = json.loads(path.read_text())
    assert [(run["study"], len(run["rows"])) for run in document["runs"]] == [("same", 1), ("slower", 1)]
    merged = CliRunner().invoke(study.main, ["--merge", str(path), "--merge", str(path)])
    assert "same: 2 runs, 2 rows" in merged.output


# ---- the peers

_FEW = ("--rounds", 1, "--samples", 1, "--warmup-s", 0, "--settle-s", 0)


def _document(tmp_path):
    return json.loads((tmp_path / "peer.json").read_text())


def _cases(tmp_path, script, *words, code=0):
    """Run a script of peers/, and return its output and the rows by the names of their cases."""
    path = tmp_path / "peer.json"
    done = _run(script, *_FEW, "--json", path, *words)
    assert done.exit_code == code, done.output
    return done.output, {row["case"]: row for row in json.loads(path.read_text())["results"]}


@pytest.mark.parametrize(
    ("script", "cases"),
    [
        ("compare_peer", "arrays;sorts;host;forms"), ("array_peer", ""), ("segmented_sort_peer", ""),
        ("stream_peer", "marks;shares;runs;datatypes;others;segments"),
    ],
)  # fmt: skip
def test_all_cases_of_peers_are_right_and_none_is_skipped(device, require, tmp_path, script, cases):
    """With the file's reason for each peer that was not asked for."""
    require("timestamp-query", "subgroup")
    _, rows = _cases(tmp_path, script, "--n", "2^12", "--peers", "none", "--cases", cases)
    document = _document(tmp_path)
    assert document["protocol"] == {"rounds": 1, "samples": 1, "warmup_s": 0.0, "settle_s": 0.0}
    assert len(rows) > 15
    for name, row in rows.items():
        ours = next(iter(row["sides"]))
        for side, found in row["sides"].items():
            if side.partition(" ")[0] in ("cub", "torch", "cupy"):
                assert found == {"skipped": "not asked for"}, name
            else:
                assert "skipped" not in found or "f64" in name or "u64" in side or "f64" in side, (name, found)
        assert row["correct"] in (True, None), name
        single = row["sides"][ours].get("single") or row["sides"][ours].get("wall")
        assert single is None or single > 0, name


def test_products_are_right_and_a_wrong_one_is_seen(device, tmp_path, monkeypatch):
    words = ("--n", "70", "--peers", "none", "--cases", "products")
    _, rows = _cases(tmp_path, "compare_peer", *words)
    assert [(row["datatype"], row["correct"]) for row in rows.values()] == [("f16", True), ("f32", True)]
    monkeypatch.setattr(gw.Array, "to_numpy", lambda self: np.zeros(self.size, self.dtype.name))
    _cases(tmp_path, "compare_peer", *words, code=4)


def test_rows_say_what_the_pictures_need(device, require, tmp_path):
    require("timestamp-query")
    words = ("--datatypes", "f32", "--distributions", "uniform,few", "--cases", "sorts;host;scan, f32;forms of sort")
    _, rows = _cases(tmp_path, "compare_peer", "--n", "5000", "--peers", "none", *words)
    sorts = [row for row in rows.values() if row.get("primitive") in ("sort", "sort_pairs")]
    assert [(row["primitive"], row["distribution"]) for row in sorts] == [
        ("sort", "uniform"), ("sort", "few"), ("sort_pairs", "uniform"), ("sort_pairs", "few")
    ]  # fmt: skip
    side = sorts[0]["sides"]["gridwise_py"]
    assert side["kernels"]
    assert side["launches"] >= 1
    assert all(kernel["ns"] > 0 for kernel in side["kernels"])
    in_one_workgroup = side["parameters"]["strategy"] == "one workgroup"
    assert (side["temp_bytes"] >= 5000 * 4) == (not in_one_workgroup), "a GPU's workgroups hold so few keys"
    forms = rows["forms of sort"]["sides"]
    assert forms["u32, reduce then scan"]["parameters"]["strategy"] == "reduce_then_scan"
    assert forms["u32, 16 bits"]["ratio"]["single"] == forms["u32, 16 bits"]["single"] / forms["u32"]["single"]


def test_a_wrong_sort_is_told(device, require, tmp_path, monkeypatch):
    require("timestamp-query")
    monkeypatch.setattr(gw.SortPairs, "reference", lambda self, keys, values: (np.sort(keys), values))
    words = ("--n", "700", "--peers", "none", "--cases", "sort_pairs", "--datatypes", "u32")
    output, _ = _cases(tmp_path, "compare_peer", *words, code=4)
    assert "WRONG: output_values: item 0 is" in output


def test_our_sums_of_floats_are_checked_to_the_bit(device, require, tmp_path, monkeypatch):
    require("timestamp-query")
    real = gw.Scan.reference

    def reference(self, input):
        found = real(self, input).copy()
        found[400] = np.nextafter(found[400], np.float32(np.inf))  # well within the tolerance for other items
        return found

    monkeypatch.setattr(gw.Scan, "reference", reference)
    words = ("--n", "700", "--peers", "none", "--cases", "scan, f32", "--datatypes", "f32")
    output, _ = _cases(tmp_path, "compare_peer", *words, code=4)
    assert "WRONG: of whole numbers, item 400 is" in output
    assert "(1 differ)" in output


def test_sides_take_turns_and_one_that_ends_takes_nothing_along():
    harness = _script("harness")
    log = []

    class Steady(harness.Side):
        def __init__(self, name, time_ns, ends_in=99, **more):
            super().__init__(**more)
            self.name, self.time_ns, self.ends_in = name, time_ns, ends_in

        def times(self, warmup_s, samples):
            log.append((self.name, warmup_s))
            if log.count((self.name, 0.5)) + log.count((self.name, 2.0)) >= self.ends_in:
                raise harness.PeerError("no more")
            return {"single": [self.time_ns] * samples, "wall": [self.time_ns + 1]}

    def missing():
        raise harness.PeerError("not installed")

    sides = {
        "ours": lambda: Steady("ours", 10.0, correct=True), "cub": lambda: Steady("cub", 15.0, correct=False),
        "torch": missing, "cupy": lambda: Steady("cupy", 9.0, ends_in=2),
    }  # fmt: skip
    case = harness.Case("a", 8, sides, "group", 40.0, {"datatype": "u32"}, {"cub": ("single", 1.2, 1.4)})
    row = harness.measured(case, 3, 2, 0.5, 2.0)
    assert log == [
        ("cupy", 2.0), ("cub", 2.0), ("ours", 2.0), ("ours", 0.5), ("cub", 0.5), ("cupy", 0.5), ("cub", 0.5),
        ("ours", 0.5),
    ]  # fmt: skip
    assert (row["case"], row["datatype"], row["correct"]) == ("a", "u32", False)
    assert row["sides"]["torch"] == {"skipped": "not installed"}
    assert row["sides"]["cupy"] == {"skipped": "ended in round 2: no more"}
    assert row["sides"]["cub"]["ratio"] == {"single": 1.5, "wall": 16 / 11}
    assert (row["sides"]["ours"]["single_ns"], row["sides"]["ours"]["back_to_back"]) == ([10.0] * 6, None)
    lines = harness.lines_of(row)
    assert "1.50 x" in lines[2]
    assert "mark 1.2 x single: above" in lines[2]
    assert "WRONG" in lines[2]
    assert "not here: not installed" in lines[3]


# ---- PyTorch


class Event:
    def __init__(self, enable_timing):
        assert enable_timing
        self.at = self.waited = None

    def record(self, stream=None):
        assert stream == "stream"
        self.at, self.waited = time.perf_counter(), False

    def synchronize(self):
        self.waited = True

    def elapsed_time(self, end):
        assert end.waited, "asked before it was synchronised"
        return (end.at - self.at) * 1e3


class Within:
    """A stream that is current, or a graph that is being captured."""

    def __init__(self, *given, **named):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def _torch(monkeypatch, captures):
    """An invented PyTorch; the real one needs a CUDA GPU."""

    class Graph(Within):
        replayed = 0

        def __init__(self, graph=None, stream=None):
            if graph is not None and not captures:
                raise RuntimeError("this call cannot be captured")

        def replay(self):
            Graph.replayed += 1

    torch = types.ModuleType("torch")
    torch.__version__ = "0.0+invented"
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: True, Event=Event, synchronize=lambda: None, empty_cache=lambda: None,
        Stream=lambda: "stream", stream=Within, CUDAGraph=Graph, graph=Graph,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", torch)
    return Graph


@pytest.mark.parametrize("captures", [True, False])
def test_calls_of_pytorch_are_timed_by_events_and_by_graphs_where_it_can_be_captured(monkeypatch, captures):
    harness, graph = _script("harness"), _torch(monkeypatch, captures)
    calls = []
    side = harness.Called(harness.Library("torch"), lambda: calls.append(1) or 7, lambda result: result == 8)
    assert side.correct is False
    found = side.times(0.0, 3)
    assert (len(found["single"]), len(found["back_to_back"])) == (3, 3)
    assert min(*found["single"], *found["back_to_back"]) > 0
    assert side.facts["graph"] is captures
    launches = side.facts["launches"]
    assert graph.replayed == (4 if captures else 0), "once to upload it"
    # One to see the result, a pilot, the singles, and a capture or all of those back to back.
    assert len(calls) == 1 + 1 + 3 + (launches if captures else 4 * launches)


class Tensor(np.ndarray):
    """A numpy array that can do what the scripts ask of a tensor."""

    def cuda(self):
        return self

    cpu = cuda

    def numpy(self):
        return np.asarray(self)

    def copy_(self, other):
        self[...] = other
        return self

    def aminmax(self):
        return self.min(), self.max()


def _numpys(torch):
    """Give an invented PyTorch numpy's functions."""

    def into(function):
        def call(*given, out=None, dim=None, **ignored):
            found = function(*given)
            return np.asarray(found).view(Tensor) if out is None else out.copy_(found)

        return call

    torch.int32, torch.int64, torch.float32 = np.int32, np.int64, np.float32
    torch.from_numpy = lambda items: items.copy().view(Tensor)
    torch.empty = lambda size, dtype, device=None: np.empty(size, dtype).view(Tensor)
    torch.empty_like = lambda x, dtype=None: np.empty_like(x, dtype=dtype)
    torch.add, torch.sum, torch.cumsum = into(np.add), into(lambda *x: np.sum(*x, dtype=x[0].dtype)), into(np.cumsum)
    torch.topk = lambda x, k: (np.sort(x)[: -k - 1 : -1].view(Tensor), None)
    torch.searchsorted = into(np.searchsorted)
    torch.index_select = into(lambda x, axis, places: x[places])
    torch.sort = lambda x, stable, out: out


@pytest.mark.parametrize(
    ("script", "words", "wrong"),
    [
        ("array_peer", ("--cases", "axis;axis scans;reductions;top k;search;gather"), "cumsum"),
        ("compare_peer", ("--cases", "arrays;sort", "--datatypes", "f32"), "add"),
    ],
)
def test_results_of_pytorch_are_compared(device, require, tmp_path, monkeypatch, script, words, wrong):
    require("timestamp-query", "subgroup")
    _torch(monkeypatch, False)
    torch = sys.modules["torch"]
    _numpys(torch)
    words = ("--n", "2^12", "--peers", "torch", *words)
    _, rows = _cases(tmp_path, script, *words)
    sides = [row["sides"]["torch"] for row in rows.values()]
    assert len(sides) > 3
    skipped = [side["skipped"] for side in sides if "skipped" in side]
    assert set(skipped) <= {f"NotImplementedError: torch has no {name}" for name in ("scan exclusive", "sort pairs")}
    assert all(side["single"] > 0 and side["version"] == "0.0+invented" for side in sides if "skipped" not in side)
    assert _document(tmp_path)["peers"] == {"torch": "0.0+invented"}
    right = getattr(torch, wrong)
    monkeypatch.setattr(torch, wrong, lambda *given, **named: right(*given, **named) + 1)
    _, rows = _cases(tmp_path, script, *words, code=4)
    of_wrong = {name for name, row in rows.items() if row["sides"]["torch"].get("correct") is False}
    assert of_wrong == {name for name in rows if wrong in name or ("scan, " in name and wrong == "cumsum")}


def test_what_is_missing_of_the_libraries_is_said(monkeypatch):
    harness = _script("harness")
    monkeypatch.setitem(sys.modules, "torch", None)
    for name, words in (("torch", "PyTorch is not installed"), ("cupy", r"PyTorch is not installed \(its events")):
        with pytest.raises(harness.PeerError, match=words):
            harness.Library(name)
    bench = harness.Bench(None, [1], ["torch"], [], "cub_peer", None, Path())
    with pytest.raises(harness.PeerError, match="not asked for"):
        bench.library("cupy")


# ---- the study of false verdicts


def test_the_study_counts_every_pair(device, require, tmp_path, steady_clock):
    require("timestamp-query")
    path = tmp_path / "study.json"
    words = ["--pairs", 4, "--kernel-us", 30, "--most-items", 4000, "--sampling-s", 0.01, "--warmup-s", 0.0]
    done = CliRunner().invoke(_script("false_verdicts").main, [*map(str, words), "--json", str(path)])
    assert done.exit_code == 0, done.output
    document = json.loads(path.read_text())
    assert [found["kernel"] for found in document["results"]] == ["vector_add", "fma"]
    for found in document["results"]:
        assert found["amount_of_the_slower"] == 1.05 * found["amount"]
        for study in ("same", "slower"):
            assert found[study]["pairs"] == sum(found[study]["counts"].values()) == 2
            assert found[study]["false"]["low"] <= found[study]["false"]["share"] <= found[study]["false"]["high"]


def test_what_windows_cost(device, tmp_path):
    path = tmp_path / "windows.json"
    words = (
        "--quick",
        "--n",
        20000,
        "--large",
        40000,
        "--windows",
        2,
        "--rounds",
        1,
        "--seconds",
        0.01,
        "--json",
        path,
    )
    done = _run("windows", *words, "--kernels", "reduce; scan, deterministic")
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    found = {(row["kernel"], row["way"]): row for row in rows}
    assert set(found) == {
        *((kernel, way) for kernel in ("reduce", "scan, deterministic") for way in ("one binding", "2 windows")),
        ("reduce", "2 chunks"),
    }
    assert all(row["median_ns"] > 0 for row in rows)
    for (_, way), row in found.items():
        assert row["windows"] == (1 if way == "one binding" else 2)
        assert (row["cost_percent"] is None) == (way == "one binding")


def test_how_much_memory_is_reached(device, tmp_path):
    path = tmp_path / "reach.json"
    words = ("--quick", "--sizes", "1,3", "--regions", "1,4", "--rounds", 2, "--seconds", 0.01, "--json", path)
    done = _run("page_reach", *words)
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    assert [(row["n"], row["regions"]) for row in rows] == [(n, count) for n in (87_040, 262_144) for count in (1, 4)]
    assert all(row["touched_bytes"] == 12 * row["n"] and len(row["rounds_ns"]) == 2 for row in rows)


def test_regions_that_differ_from_one_end_the_run(device, monkeypatch):
    script = _script("page_reach")
    execute = gw.VectorAdd.execute

    def run(self, **arrays):
        return execute(self, **(arrays if "1" in type(self).__name__ else arrays | {"b": arrays["a"][::1]}))

    monkeypatch.setattr(script, "large_arrays", lambda device, nbytes: _unlike(device))
    monkeypatch.setattr(gw.VectorAdd, "execute", run)
    done = CliRunner().invoke(script.main, ["--quick", "--sizes", "1", "--regions", "4"])
    assert "4 regions: from item 0 on, the result differs from that of one: item 300" in str(done.exception.code)


def _unlike(device):
    items = np.arange(1000, dtype=np.uint32)
    other = items.copy()
    other[300:] += 5
    return {"a": gw.asarray(items, device), "b": gw.asarray(other, device), "output": gw.empty(1000, "u32", device)}


def test_windows_that_differ_end_the_run_but_not_what_was_measured(device, tmp_path, monkeypatch):
    script, path = _script("windows"), tmp_path / "windows.json"
    made = []
    execute = gw.Scan.execute

    def run(self, **arrays):
        made.append(arrays["input"])
        found = execute(self, **arrays)
        if len(made) == 1:
            items = arrays["input"].to_numpy()
            items[777] += 1
            arrays["input"].copy_from(items)
        return found

    monkeypatch.setattr(gw.Scan, "execute", run)
    words = ("--quick", "--n", 20000, "--windows", 2, "--large", 0, "--rounds", 1, "--seconds", 0.01)
    done = CliRunner().invoke(script.main, [str(w) for w in (*words, "--kernels", "vector_add; scan", "--json", path)])
    assert done.exit_code != 0
    assert "the result differs from that of one binding: item 777" in str(done.exception.code)
    assert {row["kernel"] for row in json.loads(path.read_text())["results"]} == {"vector_add"}
    unknown = _run("windows", "--quick", "--kernels", "vector add")
    assert (unknown.exit_code, "no 'vector add'; there are vector_add" in unknown.output) == (2, True)


# ---- kernels beside CUDA


def _beside_cuda(tmp_path, device, *words, code=0):
    words = ("--quick", "--n", "2^12", "--engines", engine_description(device).name, "--levels", "bounds", *words)
    return _cases(tmp_path, "beside_cuda", *words, code=code)


def test_kernels_beside_cuda_are_numpys(device, require, tmp_path):
    """On a GPU these are the texts that are timed; numpy does their work by other means."""
    require("timestamp-query")
    output, rows = _beside_cuda(tmp_path, device, "--peers", "none")
    ours = {name: [side for key, side in row["sides"].items() if key != "cupy"] for name, row in rows.items()}
    assert len(ours) == 10 + 1 + 2
    assert all(side.get("correct") is True for sides in ours.values() for side in sides), output
    assert {"scan, operators", "reduce, operators"} == set(_document(tmp_path)["marks"]["operators"])


def _invented_cupy(monkeypatch, wrong=0):
    """Gathers with numpy; a launch takes 2 ms and an event 5."""
    clock = [0.0]

    class Event:
        def record(self):
            clock[0] += 5
            self.at = clock[0]

        def synchronize(self):
            pass

    class RawKernel:
        def __init__(self, text, name, options):
            assert (name in text, options) == (True, ("-std=c++17",))

        def __call__(self, grid, block, arguments):
            x, places, y, count = arguments
            assert (grid[0] * grid[1] * block[0], count.dtype) == (count, np.uint32)
            y.items[:] = x.items[places.items]
            y.items[-1] += wrong
            clock[0] += 2

    class Items:
        def __init__(self, items):
            self.items = items.copy()

        def get(self):
            return self.items.copy()

    cupy = types.ModuleType("cupy")
    cupy.__version__, cupy.RawKernel, cupy.asarray = "0.0+invented", RawKernel, Items
    cupy.cuda = types.SimpleNamespace(
        Event=Event, get_elapsed_time=lambda begin, end: end.at - begin.at,
        nvrtc=types.SimpleNamespace(getVersion=lambda: (13, 0)),
    )  # fmt: skip
    cupy.get_default_memory_pool = lambda: types.SimpleNamespace(free_all_blocks=lambda: None)
    monkeypatch.setitem(sys.modules, "cupy", cupy)


def test_cudas_side_is_a_slope_and_is_compared(device, require, tmp_path, monkeypatch):
    require("timestamp-query")
    _invented_cupy(monkeypatch)
    _, rows = _beside_cuda(tmp_path, device, "--cases", "gather")
    cuda = rows["gather"]["sides"]["cupy"]
    assert (cuda["correct"], cuda["back_to_back"], cuda["nvrtc"]) == (True, 2e6, "13.0")
    _invented_cupy(monkeypatch, wrong=1)
    output, rows = _beside_cuda(tmp_path, device, "--cases", "gather", code=4)
    assert "WRONG: its results are not numpy's" in output
    assert rows["gather"]["sides"]["cupy"]["correct"] is False


def test_marks_beside_cuda_say_none_where_nothing_was_measured():
    script = _script("beside_cuda")

    def row(case, moved_bytes=None, group="kernels", **sides):
        sides = {name.replace("_", " "): {"back_to_back": time_ns} for name, time_ns in sides.items()}
        values = {"turns": 1000}
        return {"case": case, "group": group, "moved_bytes": moved_bytes, "values": values, "sides": sides}

    fma = row("fma", wgpu_none=2000.0, wgpu_bounds=2400.0, cupy=1200.0)
    rows = [fma, row("gather", 12, wgpu_none=100.0, wgpu_bounds=150.0, cupy=300.0)]
    marks = script.marks_of(rows)
    assert marks["over_cuda"]["wgpu bounds"] == {"geometric_mean": pytest.approx(1.0), "worst": ("fma", 2.0)}
    assert marks["bounds_over_none"] == {"wgpu": {"gather": 1.5}}
    assert set(marks["fma_over_4_cycles"]["fma"].values()) == {None}, "the clock is not known"
    fma["sides"]["wgpu bounds"]["sm_clock_mhz"] = 2000
    assert script.marks_of(rows)["fma_over_4_cycles"]["fma"] == {"wgpu none": 1.0, "wgpu bounds": 1.2, "cupy": 0.6}
    del fma["sides"]["cupy"]["back_to_back"]
    rows[1]["sides"]["cupy"]["back_to_back"] = None
    assert script.marks_of(rows)["over_cuda"]["wgpu none"] == {"geometric_mean": None, "worst": None}
    operators = row("scan, operators", group="operators", dawn_loop=5.0, **{"wgpu_a + b": 30.0, "wgpu_built-in": 20.0})
    assert script.marks_of([operators])["operators"]["scan, operators"] == {
        "dawn: a + b over built-in": None, "wgpu: a + b over built-in": 1.5, "loop: wgpu over dawn": None
    }  # fmt: skip


# ---- the picture of the peers


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_the_picture_of_the_peers_has_their_rates(tmp_path):
    script = _script("peers_picture")
    path = FOLDER / "results" / "h200" / "peers.json"
    made = json.loads(path.read_text())
    spec = script.picture(made)
    charts = [chart for row in spec["vconcat"] for chart in row["hconcat"]]
    names = [chart["title"]["text"][0] for chart in charts]
    assert names == list(dict.fromkeys(row["primitive"] for row in made["results"]))
    for name, chart in zip(names, charts, strict=True):
        points = chart["data"]["values"]  # of the line and of the marks
        wanted = {
            (script.SIDES[side], row["n"]): row["moved_bytes"] / figures["back_to_back"]
            for row in made["results"]
            if (row["primitive"], row["datatype"]) == (name, made["results"][0]["datatype"])
            for side, figures in row["sides"].items()
            if figures.get("back_to_back")
        }
        assert {(row["side"], row["at"]): row["rate"] for row in points} == pytest.approx(wanted)
    # One legend for all: that of the last row.
    legends = [chart["layer"][1]["encoding"]["color"].get("legend", "its own") for chart in charts]
    assert legends == [None, None, "its own", "its own"]
    done = _run("peers_picture", path, "-o", tmp_path / "a.svg")
    assert done.exit_code == 0, done.output
    assert "PyTorch" in (tmp_path / "a.svg").read_text()


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_a_wrong_result_is_not_drawn():
    script = _script("peers_picture")
    result = {"primitive": "scan", "datatype": "u32", "n": 8, "moved_bytes": 64, "correct": False,
              "sides": {"gridwise_py": {"back_to_back": 2.0}, "cub": {"skipped": "no nvcc"}}}  # fmt: skip
    assert script.rows_of({"results": [result]}) == []
    (row,) = script.rows_of({"results": [{**result, "correct": True}]})
    assert (row["side"], row["rate"]) == ("gridwise_py", 32.0)
    with pytest.raises(script.click.UsageError, match="nothing to draw"):
        script.picture({"results": [result]})


# ---- the first picture


def _peers_document(time, single_ns=None, **given):
    """A file of compare_peer.py with one result."""
    kernels = [
        {"label": "histogram", "ns": 100.0},
        *({"label": f"pass {i}", "ns": ns} for i, ns in enumerate((300.0, 500.0))),
    ]
    sides = {
        "gridwise_py": {"back_to_back": 800.0, "single": 1000.0, "kernels": kernels},
        "cub": {"back_to_back": 1600.0, "single": single_ns, "correct": True, "cub_version": 300001},
        "torch": {"skipped": "PyTorch is not installed"},
    }
    result = {
        "primitive": "sort",
        "n": 1024,
        "datatype": "u32",
        "distribution": "uniform",
        "correct": True,
        "sides": sides,
    }
    return {
        "context": {"time": time}, "device": {"adapter": "Some GPU", "driver": "1"}, "results": [result | given],
    }  # fmt: skip


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_the_picture_says_of_how_many_runs_it_is_and_of_one_gpu(tmp_path):
    script = _script("first_picture")
    theme = script.THEMES["dark"]
    documents = [_peers_document("2026-01-01"), _peers_document("2026-01-02", primitive="scan")]
    spec = script.picture(documents, ["sort", "scan"], 1024, "u32", theme)
    assert spec["title"]["subtitle"][-1] == "driver 1, CUB 3.0.1; 2026-01-01 and 2026-01-02, 2 runs"
    assert spec["config"]["background"] == theme.page
    documents[1]["device"]["driver"] = "2"
    with pytest.raises(script.click.UsageError, match="different GPUs"):
        script.picture(documents, ["sort", "scan"], 1024, "u32", theme)
    with pytest.raises(script.click.UsageError, match="no right result of reduce"):
        script.picture(documents, ["sort", "reduce"], 1024, "u32", theme)
    done = _run("first_picture", "-o", tmp_path / "first", "--png", tmp_path)
    assert done.exit_code == 0, done.output
    for theme in ("light", "dark"):
        text = (tmp_path / f"first-{theme}.svg").read_text(encoding="utf-8")
        assert script.THEMES[theme].page in text
        assert "PyTorch" in text
        assert {p.name for p in tmp_path.glob(f"first-{theme}-*.png")} == {
            f"first-{theme}-{w}.png" for w in (400, 1200)
        }


def test_the_host_path_is_measured(device, tmp_path):
    path = tmp_path / "host_path.json"
    done = _run("host_path", "--n", 3000, "--sizes", "2^12", "--rounds", 1, "--json", path)
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    assert {row["part"] for row in rows} == {"transfers", "one-shot", "memory"}
    assert all(row["median_ns"] > 0 and len(row["samples_ns"]) == 1 for row in rows)
    wrong = _run("host_path", "--parts", "sums")
    assert wrong.exit_code == 2
    assert "known are transfers" in wrong.output


#: Speaks like cub_chain_peer, and does what its kernels do with numpy; after WRONG a checksum is another.
_INVENTED_CHAIN = """#!{python}
import sys
import numpy as np

WRONG = {wrong}
data = {{}}


def of(name, dtype, n):
    items = data[name].view(dtype)
    assert items.size == n, name
    return items


def checksum(items):
    words = np.ascontiguousarray(items).view(np.uint32).ravel()
    return (sum((i + 1) * int(word) for i, word in enumerate(words)) + WRONG) % 2**64


def group(n, bits):
    keys, values = of("keys", np.uint32, n), of("values", np.uint32, n)
    order = np.argsort(keys & np.uint32(2**bits - 1), kind="stable")
    keys, values = keys[order], values[order]
    heads = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return [keys[heads], np.add.reduceat(values, heads, dtype=np.uint32)]


def splats(n, width, height, room, depth_first):
    x, y, depth, radius = (of(name, np.float32, n) for name in ("x", "y", "depth", "radius"))
    across, down = -(-width // 16), -(-height // 16)
    def cut(at, tiles):
        return np.clip(np.floor(at / np.float32(16)), 0, tiles).astype(int)
    left, top = cut(x - radius, across), cut(y - radius, down)
    right, bottom = cut(x + radius + np.float32(16), across), cut(y + radius + np.float32(16), down)
    pairs = [
        (row * across + column, i)
        for i in (np.argsort(depth, kind="stable") if depth_first else range(n))
        for row in range(top[i], bottom[i])
        for column in range(left[i], right[i])
    ]
    assert len(pairs) <= room
    pairs.sort(key=lambda pair: pair[0] if depth_first else (pair[0], depth[pair[1]]))
    tiles, owners = np.array(pairs, np.uint32).T
    ranges = np.zeros((across * down, 2), np.uint32)
    for tile in np.unique(tiles):
        ranges[tile] = np.searchsorted(tiles, tile), np.searchsorted(tiles, tile, side="right")
    return [ranges, owners]


for line in sys.stdin:
    command, *words = line.split()
    if command == "load":
        data[words[0]] = np.fromfile(words[1], np.uint8)
        print("{{}}", flush=True)
    elif command == "time":
        print('{{"gpu_ns": %s, "wall_ns": %s}}' % (int(words[1]) * [5e9], int(words[1]) * [6e9]), flush=True)
    else:
        sums = [checksum(items) for items in globals()[command](*map(int, words))]
        print('{{"count": 0, "checksums": %s}}' % sums, flush=True)
"""


def _invented_chain(tmp_path, wrong=0):
    program = tmp_path / "invented_chain"
    program.write_text(_INVENTED_CHAIN.format(python=sys.executable, wrong=wrong))
    program.chmod(0o755)
    return program


def _chains(tmp_path, *words, code=0):
    return _cases(tmp_path, "chain_peer", *words, code=code)


def test_group_by_beside_cub(device, require, tmp_path):
    """Each case has data of its own on the other side, too."""
    require("timestamp-query")
    small = ("--groups", "70", "--table", 0, "--splats", 0)
    for n in (700, 5000):
        output, rows = _chains(tmp_path, "--n", n, *small, "--cub", _invented_chain(tmp_path))
        sides = rows["group, keys below 70"]["sides"]
        assert list(sides) == ["ours, key_bits=7", "ours", "cub, 32 bits", "cub, 7 bits"]
        assert all(side["correct"] for side in sides.values())
        known, used = sides["ours, key_bits=7"], sides["cub, 7 bits"]
        assert [kernel["label"] for kernel in known["kernels"]][-1] == "reduction: reduce"
        assert all(kernel["ns"] > 0 for kernel in known["kernels"])
        assert used["ratio"] == {figure: used[figure] / known[figure] for figure in ("single", "wall")}
        assert used["mark"] == ["single", 1.0]
        assert "mark 1 x single: reached" in output
    output, rows = _chains(tmp_path, "--n", 700, *small, "--cub", _invented_chain(tmp_path, wrong=1), code=4)
    sides = rows["group, keys below 70"]["sides"]
    assert [side["correct"] for side in sides.values()] == [True, True, False, False]


@pytest.mark.needs("module:pandas")
def test_tables_beside_those_that_are_installed(device, require, monkeypatch, tmp_path):
    require("timestamp-query")
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    _, rows = _chains(tmp_path, "--peers", "none", "--n", 0, "--table", "5000", "--splats", 0)
    sides = rows["table"]["sides"]
    assert sides["polars"] == {"skipped": "polars is not installed"}
    ours, transfers, pandas = sides["ours"], sides["ours, with transfers"], sides["pandas"]
    assert [side["correct"] for side in (ours, transfers, pandas)] == [True, True, True]
    assert ours["single"] > 0
    assert (transfers["single"], pandas["single"]) == (None, None)
    assert pandas["ratio"] == {"wall": pandas["wall"] / ours["wall"]}
    example = _script("harness").load_example("group_by")
    expected = example.by_numpy(*example.table(5000))
    assert not example.agree({**expected, "total": expected["total"] * 1.001}, expected)


def test_splats_beside_cub(device, require, tmp_path):
    require("timestamp-query")
    words = ("--n", 0, "--table", 0, "--splats", "300", "--cub", _invented_chain(tmp_path))
    output, rows = _chains(tmp_path, *words)
    sides = rows["splats"]["sides"]
    assert list(sides) == ["ours", "cuda, as in the paper", "cuda, by depth first"]
    assert all(side["correct"] for side in sides.values())
    assert "mark 1.5 x wall: reached" in output


def test_graphs_beside_scipy(device, require, tmp_path):
    require("timestamp-query")
    _, rows = _cases(tmp_path, "graph_peer", "--n", "3000", "--iterations", 4, "--peers", "none")
    assert list(rows) == ["build", "product", "rank"]
    for row in rows.values():
        ours = row["sides"]["gridwise_py"]
        assert row["correct"]
        assert (ours.get("wall") or ours["single"]) > 0
        assert 3000 > row["entries"] > 0
        assert row["sides"]["torch32"] == {"skipped": "not asked for"}


def test_a_wrong_graph_is_found(device, monkeypatch):
    graph_peer = _script("graph_peer")
    example = _script("harness").load_example("pagerank")
    graph = graph_peer.Graph(example, 3000, 4)
    matrix, vector = graph.matrix, graph.product.astype(np.float32)
    assert graph.is_matrix(matrix.indptr, matrix.indices, matrix.data.astype(np.float32))
    assert not graph.is_matrix(matrix.indptr, matrix.indices, matrix.data + (matrix.data == 9))
    assert not graph.is_matrix(np.append(matrix.indptr[:-1], 0), matrix.indices, matrix.data)
    assert graph.is_product(vector)
    assert not graph.is_product(np.where(np.arange(vector.size) == 5, vector * np.float32(1.001), vector))
    assert graph.is_rank(graph.rank.astype(np.float32))
    assert not graph.is_rank(graph.rank * (1 + 2e-5))
    found = example.csr
    monkeypatch.setattr(example, "csr", lambda rows, columns, *rest: found(columns, rows, *rest))
    sides = graph_peer.Ours(graph, example, device).sides()
    assert [make().correct for make in sides.values()] == [False] * 3


# ---- CUB beside us

#: Speaks like cub_peer, and computes with numpy; after WRONG its words are others.
_INVENTED_CUB = """#!{python}
import sys
import numpy as np

WRONG = {wrong}
data = {{}}


def checksum(items):
    words = np.ascontiguousarray(items).view(np.uint32)
    return sum((i + 1) * int(word) for i, word in enumerate(words)) % 2**64


def select(n, input, bound):
    x = data[input].view(np.uint32)
    return [x[x < int(bound) - WRONG]]


def partition2(n, input, bound):
    x = data[input].view(np.uint32)
    return [x[x < int(bound)], x[x >= int(bound)]]


def run_length(n, input):
    x = data[input].view(np.uint32)
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    return [x[starts], np.diff(np.append(starts, n)).astype(np.uint32)]


def sort_pairs(n, keys, values):
    keys, values = data[keys].view(np.uint32), data[values].view(np.uint32)
    order = np.argsort(keys, kind="stable")
    return [keys[order], values[order] + WRONG]


def scan(n, input):
    found = np.cumsum(data[input].view(np.float32), dtype=np.float32)
    found[n // 2] += WRONG
    return [found]


for line in sys.stdin:
    command, *words = line.split()
    if command == "load":
        data[words[0]] = np.fromfile(words[1], np.uint8)
        assert data[words[0]].nbytes == int(words[2])
        print("{{}}", flush=True)
    elif command == "free":
        del data[words[0]]
        print("{{}}", flush=True)
    elif command == "time":
        times = [int(words[1]) * [5000.0], int(words[1]) * [4000.0]]
        print('{{"single_ns": %s, "back_to_back_ns": %s}}' % tuple(times), flush=True)
    elif words[0] == "reduce":
        sys.exit(3)
    elif words[0] in globals():
        found = globals()[words[0]](int(words[2]), **dict(word.split("=") for word in words[3:]))
        sums = ", ".join('"%d"' % checksum(items) for items in found)
        print('{{"cub_version": 1, "temp_bytes": 2, "counts": %s, "checksums": [%s]}}'
              % ([items.size for items in found], sums), flush=True)
    else:
        print('{{"error": "no case"}}', flush=True)
"""


def _invented_cub(tmp_path, wrong=0):
    program = tmp_path / "invented_cub"
    program.write_text(_INVENTED_CUB.format(python=sys.executable, wrong=wrong))
    program.chmod(0o755)
    return program


def test_streams_beside_cub(device, require, tmp_path):
    """Both sides in the file, and why a side is missing; a peer that ends or refuses takes nothing along."""
    require("timestamp-query")
    cases = ("select 1/2", "partition in 2", "run lengths, runs of 8", "reduce", "top 8")
    words = ("--n", "2^12", "--cases", ";".join(cases), "--cub", _invented_cub(tmp_path))
    _, rows = _cases(tmp_path, "stream_peer", *words)
    assert set(rows) >= set(cases)
    for name in cases[:3]:
        row = rows[name]
        assert row["correct"] is True, name
        ours, cub = row["sides"]["gridwise_py"], row["sides"]["cub"]
        assert cub["single"] == 5000
        assert cub["ratio"] == {"single": 5000 / ours["single"], "back_to_back": 4000 / ours["back_to_back"]}
    assert 1.8 < rows["select 1/2"]["moved_bytes"] / (4096 * 3.3) < 1.9  # about 6 bytes an item
    assert rows["partition in 2"]["moved_bytes"] == 8 * 4096
    assert rows["reduce"]["sides"]["cub"] == {"skipped": "invented_cub case reduce: ended"}
    assert rows["reduce"]["sides"]["gridwise_py"]["single"] > 0
    assert rows["top 8"]["sides"]["cub"] == {"skipped": "invented_cub case top_k: no case"}
    assert rows["top 8"]["sides"]["gridwise_py"]["single"] > 0


def test_streams_that_differ_from_cubs_end_the_run(device, require, tmp_path):
    require("timestamp-query")
    words = ("--n", "2^12", "--cases", "select 1/2", "--cub", _invented_cub(tmp_path, wrong=1 << 24))
    _, rows = _cases(tmp_path, "stream_peer", *words, code=4)
    sides = rows["select 1/2"]["sides"]
    assert (sides["gridwise_py"]["correct"], sides["cub"]["correct"]) == (True, False)
    unknown = _run("stream_peer", *_FEW, "--n", "2^12", "--peers", "none", "--cases", "selects")
    assert (unknown.exit_code, "--cases 'selects'" in unknown.output) == (2, True)


def test_sorts_and_sums_of_floats_beside_cub(device, require, tmp_path):
    """Of floats CUB's results are compared on items whose sums are exact, and its times are of the case's."""
    require("timestamp-query")
    words = ("--n", "2000", "--peers", "cub", "--cases", "sort_pairs, u32;scan, f32", "--cub")
    _, rows = _cases(tmp_path, "compare_peer", *words, _invented_cub(tmp_path))
    assert list(rows) == ["scan, f32", "sort_pairs, u32"]
    for row in rows.values():
        assert (row["correct"], row["sides"]["cub"]["correct"], row["sides"]["cub"]["single"]) == (True, True, 5000)
    assert rows["sort_pairs, u32"]["sides"]["torch"] == {"skipped": "not asked for"}
    _, rows = _cases(tmp_path, "compare_peer", *words, _invented_cub(tmp_path, wrong=1), code=4)
    for row in rows.values():
        assert (row["correct"], row["sides"]["cub"]["correct"]) == (False, False)
        assert row["sides"]["gridwise_py"]["correct"]


def test_checksums_in_parts(monkeypatch):
    harness, streams = _script("harness"), _script("stream_peer")
    monkeypatch.setattr(harness, "_PART_ITEMS", 8)
    rng = np.random.default_rng(0)
    for items in (rng.integers(0, 2**32, 37, np.uint32), rng.integers(0, 2**64, 12, np.uint64), np.zeros(0, np.uint32)):
        wanted = sum((i + 1) * int(word) for i, word in enumerate(items.view(np.uint32))) % 2**64
        assert harness.checksum(items) == wanted, items.dtype
    assert [streams.make_data("words", n)[:17].tolist() for n in (17, 40)] == [
        streams.make_data("words", 17).tolist()
    ] * 2


def test_a_chain_with_counts_on_the_gpu_and_with_counts_read(device, tmp_path):
    path = tmp_path / "chain.json"
    done = _run("chain", "--sizes", "2^8,2^12", "--rounds", 1, "--warmup-s", 0, "--json", path)
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["results"]
    assert [row["n"] for row in rows] == [1 << 8, 1 << 12]
    for row in rows:
        assert row["correct"] == dict.fromkeys(("counted", "queued", "captured", "trimmed"), True)
        assert all(row["wall"][name] >= row["call"][name] > 0 for name in ("counted", "trimmed"))


def test_a_chain_that_differs_from_numpy_ends_the_run(device, monkeypatch):
    script = _script("chain")
    monkeypatch.setattr(script, "measure", lambda device, n, *more: {
        "n": n, "correct": {way: way != "trimmed" for way in script.WAYS},
        **{name: dict.fromkeys(script.WAYS) for name in ("wall", "call", "gpu")},
    })  # fmt: skip
    done = CliRunner().invoke(script.main, ["--sizes", "2^8"])
    assert (done.exit_code, "NO: trimmed" in done.output) == (4, True)


# ---- fleets


def test_the_rule_finds_the_sick_device_of_small_fleets():
    found = _script("fleet_rule").row(8, 0.005, "memory", 0.05, 3)
    assert (found["found"], found["falsely"]) == (1.0, 0.0)


def test_a_small_fleet_of_files_is_judged_as_expected(tmp_path, monkeypatch, capsys):
    script = _script("fleet_scale")
    path = tmp_path / "scale.json"
    monkeypatch.setattr(sys, "argv", ["fleet_scale", "--members", "80", "--samples", "3", "--json", str(path)])
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 0, capsys.readouterr().out
    assert json.loads(path.read_text())["named"] == {
        "node2-gpu3": "wrong", "node5-gpu1": "slow", "node9-gpu0": "slow",
    }  # fmt: skip


# ---- on a machine that is rented for minutes


def test_what_was_measured_stays_whatever_comes_later(tmp_path, capsys):
    path = tmp_path / "found.json"
    steps = _script("steps").Steps(path, 5.0, gpus=2)
    assert steps.run("first", lambda: 7, 60) == 7
    assert "first" in json.loads(path.read_text())["seconds"]
    assert steps.run("second", lambda: 1 // 0, 60) is None
    assert steps.run("third", lambda: 8, 60) == 8
    steps._deadline_s = 0.0
    assert steps.run("fourth", lambda: pytest.fail("the time is over"), 60) is None
    found = json.loads(path.read_text())
    assert (found["gpus"], list(found["seconds"])) == (2, ["first", "second", "third"])
    assert found["errors"] == {"second": "ZeroDivisionError: integer division or modulo by zero"}
    assert steps.document["left_out"] == ["fourth"]
    assert not steps.is_whole
    assert "fourth: left out, the time is over" in capsys.readouterr().out


def _rows_of_gpus(unit="gpu_gitems_per_s", **efficiencies):
    return [
        {"row": name.replace("_", " "), "unit": unit, "alone": 1.0, "together": value, "efficiency": value}
        for name, value in efficiencies.items()
    ]


@pytest.mark.needs("module:distributed")
def test_marks_that_ask_for_four_gpus_stay_open_on_two():
    script = _script("multi_gpu")
    rows = [
        *({**row, "row": f"{row['row']}, resident"} for row in _rows_of_gpus(reduce=0.99, scan=0.97)),
        *({**row, "row": "host copy, 4 threads"} for row in _rows_of_gpus("gbytes_per_s", copy=0.5)),
        *_rows_of_gpus("gbytes_per_s", stream_reduce=0.91, stream_scan=0.48),
    ]
    passes = {"wall_s": 1.0, "gpu_s_of_a_task": 0.3}
    document = {
        "gpus": 2, "processes": {"rows": rows},
        "dask": {
            "1 workers": {
                "passes": passes, "stream": {"ratio": 1.05, "chunk_bytes": 256 << 20},
                "sort": {"of_bound": 0.9, "exact": True},
            },
            "2 workers": {"passes": {**passes, "wall_s": 1.02}, "sort": {"of_bound": 0.9, "exact": False}},
        },
    }  # fmt: skip
    marks = {(mark["mark"], mark["what"]): mark for mark in script.marks(document)}
    holds = {name: mark["holds_here"] for name, mark in marks.items()}
    assert holds == {
        ("M1", "reduce, resident"): True, ("M1", "scan, resident"): False, ("M1", "sort, resident"): None,
        ("M2", "stream reduce"): True, ("M2", "stream scan"): True,
        ("M3", "Dask over gw.stream, chunks of 256 MiB"): True,
        ("M4", "weak scaling of passes, 1 to 2"): True,
        ("M6", "sort on 1, of its bound"): True, ("M6", "sort on 2, of its bound"): False,
    }  # fmt: skip
    assert {mark["mark"] for mark in marks.values() if mark["reached"] is not None} == {"M2", "M3", "M6"}
    lines = [script.mark_line(mark) for mark in marks.values()]
    assert lines[0] == "M1 reduce, resident: 0.990 (>= 0.98): holds on 2 GPUs; it asks for 4: open"
    assert lines[2] == "M1 sort, resident: not measured (>= 0.98): open"
    passes["gpu_s_of_a_task"] = 0.01  # too little work a task: the mark says nothing of it
    document["dask"]["1 workers"]["stream"]["chunk_bytes"] = 1 << 20
    again = {mark["mark"]: mark["holds_here"] for mark in script.marks({**document, "gpus": 4})}
    assert (again["M3"], again["M4"]) == (None, None)
    whole = [mark for mark in script.marks({**document, "gpus": 4}) if mark["mark"] == "M1"]
    assert [mark["reached"] for mark in whole] == [True, False, None]
    assert not any(mark["holds_here"] for mark in script.marks({"gpus": 0}))


@pytest.mark.needs("module:distributed")
@pytest.mark.gpu
@pytest.mark.dask
@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("multi_gpu", "--adapters 0,0 --items 2^12 --seconds 0.01 --task-seconds 0.01", 0),
        ("multi_gpu", "--adapters 0 --items 2^12 --seconds 0.01 --parts processes --minutes 0", 4),
        ("fleet_disturbed", "--adapters 0 0 --rounds 1 --n 2^10 --sampling-s 0.01 --disturb-items 5000", None),
        ("which_gpu", "--adapters 0 --rounds 1", 1),
    ],
)
def test_programs_for_several_gpus_run_on_any_adapter(name, words, code, tmp_path):
    path = tmp_path / "found.json"
    command = [sys.executable, str(FOLDER / f"{name}.py"), *words.split(), "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, cwd=tmp_path)
    assert done.returncode in ((0, 1) if code is None else (code,)), done.stdout + done.stderr[-3000:]
    found = json.loads(path.read_text())
    assert found["errors"] == {}
    assert bool(found["left_out"]) == ("--minutes 0" in words)


def _wide(rng, level_ns, spread, count=40):
    return level_ns * np.exp(spread * rng.standard_normal(count))


def test_rules_of_gates_follow_their_sources():
    """Each rule on samples where its source leaves no doubt: equal ones, far ones, and where the rules differ."""
    audit = _script("gates_audit")
    rules = audit.row_rules(resamples=400, seed=0)
    rng = np.random.default_rng(1)
    old = _wide(rng, 1000.0, 0.01)
    calls = {
        factor: {name for name, rule in rules.items() if rule(old, factor * old)}
        for factor in (1.0, 1.02, 1.04, 1.6, 4.0)
    }
    assert calls[1.0] == set()
    beyond_noise = {"Mann and Whitney", "nvbench legacy", "criterion.rs"}
    assert calls[1.02] == beyond_noise
    beyond_noise |= {"nvbench robust"}  # the fastest of 40 is over the old third quartile
    assert calls[1.04] == beyond_noise
    fixed = {"median, 5 %", "pytest-benchmark min:5%", "pytest-benchmark mean:5%"}
    assert calls[1.6] == beyond_noise | fixed | {"median, 50 %", "minimum, 50 %"}
    assert calls[4.0] == set(rules)
    assert not any(rule(4 * old, old) for rule in rules.values())  # faster is no regression
    # A single outlier moves the mean and no rank; a single fast sample hides a slowdown from the minimum.
    outlier, fast = np.append(old, 1e5), np.append(1.2 * old, 0.9 * old.min())
    assert rules["pytest-benchmark mean:5%"](old, outlier)
    assert not any(rules[name](old, outlier) for name in ("median, 5 %", "pytest-benchmark min:5%", "nvbench robust"))
    assert rules["median, 5 %"](old, fast)
    assert not rules["pytest-benchmark min:5%"](old, fast)
    assert not rules["nvbench robust"](old, fast)


def test_gates_are_counted_in_both_orders():
    """Two runs of which one is 8 % slower by chance: half of the judged rows are false regressions."""
    audit = _script("gates_audit")
    rng = np.random.default_rng(2)
    rows = tuple(
        audit.Row(str(i), [_wide(rng, 1000.0, 0.002).tolist()], [_wide(rng, 1080.0, 0.002).tolist()]) for i in range(6)
    )
    runs = audit.RunSet("invented", "invented rows", ("none",), (audit.RunPair(rows),))
    entry = audit.entry(runs, audit.counted(runs, 200, 0, lambda _: None))
    for name in ("median, 5 %", "gridwise, 2 %", "gridwise, gate 5 %", "criterion.rs"):
        rule = entry["rules"][name]
        assert rule["false"]["share"] == rule["runs_with_a_false_one"] == 0.5, name
        # 5 % more: 13 % slower in one order, 3 % faster in the other, so half is missed.
        assert rule["missed"]["5 %"]["share"] == 0.5, name
        assert rule["false"]["low"] < 0.5 <= rule["false"]["high"]
    assert entry["rules"]["median, 50 %"]["missed"]["10 %"] == pytest.approx(
        {"share": 1.0, "low": 0.541, "high": 1.0}, abs=1e-3
    )
    text = audit.markdown({"sets": [entry]})
    assert "| median, 5 % | 50 (" in text
    assert "1 pairs of runs, 6 pairs of rows, 40 to 40 samples" in text
    assert "| median, 5 % | 50; 50; " in audit.summary({"sets": [entry]})


def test_the_audit_of_gates_is_of_the_stored_runs(tmp_path):
    """The sets, their files and their sizes are those of the stored figures."""
    audit = _script("gates_audit")
    stored = json.loads((FOLDER / "results" / "gates_audit.json").read_text(encoding="utf-8"))
    folders = sorted((FOLDER / "results").glob("*/gates"))
    sets = list(audit.stored_sets(folders))
    assert [(s.name, len(s.pairs), s.row_count) for s in sets] == [
        (s["name"], s["pairs_of_runs"], s["pairs_of_rows"]) for s in stored["sets"]
    ]
    for found in sets[:1]:  # those with documents: the rows are those that `compare` judges
        for pair in found.pairs:
            assert len(audit.verdicts(pair, 1.0)) == len(pair.rows)
    audit.write_picture(audit.picture(stored), tmp_path / "gates.svg")
