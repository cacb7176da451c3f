"""Results files: written whole, checked against the schema, and refused with the place where they are wrong."""

import copy
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import types

import jsonschema
import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.checks.check import Mismatch
from gridwise_py.bench.results import context, model, writer
from gridwise_py.bench.results.context import git_state, host_context, without_paths
from gridwise_py.bench.results.dataframe import to_dataframe
from gridwise_py.bench.results.entries import result_of, results_document
from gridwise_py.bench.results.model import Results
from gridwise_py.bench.results.reader import parse, read_results
from gridwise_py.bench.results.schema import check_document, json_schema
from gridwise_py.bench.results.ticks import read_ticks, ticks_path
from gridwise_py.bench.results.writer import ResultsWriter, partial_path, write_results
from gridwise_py.bench.stats.series import Series
from gridwise_py.storage.checks import find_problem
from gridwise_py.storage.json_files import json_text, write_json
from helpers.paths import RESULTS
from helpers.results import committed, document, header, loaded, measurement

SPEEDS = [{"array_bytes": 4, "moved_bytes": 8, "gbytes_per_s": 1.5}]
SCHEMA = json_schema(Results)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def good(tmp_path):
    """A good file."""
    path = tmp_path / "good.json"
    write_json(path, document([measurement(), measurement("copy", op=None, labels=("copy",))]))
    return path


# ---- the document


def test_every_kind_of_result_is_as_the_schema_says(tmp_path):
    path = tmp_path / "made.json"
    for one in (
        measurement(),
        measurement(mode=Mode.BATCH, protocol={"trials": 10}),
        measurement(labels=("one",), mode=Mode.LATENCY),
        measurement(error="DeviceError: lost", ticks=(), kernels=(), whole={}, work={}, stop_reason=None),
        measurement(mismatches=(Mismatch(3, math.nan, 1.0, 5),)),
        measurement(
            observations={"power_w": np.float32(3.5), "counts": np.arange(2), "bad": math.nan, "why": Mode.HOT}
        ),
        measurement(labels=("none valid",), kernels=(Series("none valid", (), None, {"zero": 7}),), canary_ns=()),
    ):
        made = document([one])
        write_json(path, made)
        assert read_results(path) == loaded(made)


@pytest.mark.filterwarnings("ignore::gridwise_py.GridwiseWarning")  # a device without timestamps
def test_a_measured_run_is_as_the_schema_says(device, tmp_path):
    from gridwise_py.bench.cases.case import Case
    from gridwise_py.bench.sampling.measure import measure_case

    protocol = gw.SamplingProtocol(batch_trials=2, warmup_s=0, max_warmup_s=0.1, samples=3, check_unit=False)
    case = Case.build("scan", 5000, "u32", "add")
    measured = [measure_case(device, case, protocol, mode) for mode in (Mode.BATCH, Mode.LATENCY)]
    made = results_document(device, measured, seed=3, command=["bench", "scan"])
    path = tmp_path / "run.json"
    write_results(path, made)
    assert read_results(path) == made
    assert repr(made).startswith("Results(2 results of 2 cases, ")
    assert re.fullmatch(r"Result\(scan add u32 n=5,000: .*s .*\)", repr(made.results[0]))
    write_results(path, measured[0], device=device, overwrite=True)
    assert [result.mode for result in read_results(path).results] == [Mode.BATCH]
    entry = made.results[0]
    # What the first release promised.
    assert made.schema_version == model.SCHEMA_VERSION
    assert (entry.primitive, entry.n, entry.datatype, entry.op) == ("scan", 5000, "u32", "add")
    assert entry.correct is True
    assert entry.trials == 2
    assert entry.work.read_bytes == entry.work.write_bytes == 20_000
    samples, whole = entry.samples, entry.whole
    assert len(samples) >= 3
    assert whole.cpu_wall_ns == pytest.approx(np.median([s.cpu_total_ns for s in samples]) / 2)
    assert {key for kernel in entry.kernels for key in kernel.to_json()} >= {"label", "gpu_ns"}
    if made.device.tick_period_ns is not None:
        assert whole.gpu_span_ns == pytest.approx(np.median([s.gpu_span_ns for s in samples]) / 2)
        first = [sample.gpu_total_ns[0] for sample in samples]
        assert entry.kernels[0].gpu_ns == pytest.approx(np.median(first) / 2)
    assert made.results[1].trials == 1
    assert made.context.seed == 3


def test_lists_of_numbers_take_one_line_and_strings_are_untouched():
    value = {"a": [1, 2], "b": [[1, 2], [3]], "c": "[\n 1\n]", "d": ["x [ 1,  2 ]", "]"], "e": [{"f": []}]}
    text = json_text(value)
    assert json.loads(text) == value
    assert '"a": [1, 2]' in text


def test_command_lines_lose_their_folders():
    words = ["bench", "--json=/home/me/out.json", "/tmp/a/b.toml", "C:\\me\\c.json", "~/d.json", "n[pow2]=[1:2]", "e/f"]
    assert without_paths(words) == ["bench", "--json=out.json", "b.toml", "c.json", "d.json", "n[pow2]=[1:2]", "e/f"]


@pytest.mark.needs("git")
def test_the_state_of_a_checkout(tmp_path, monkeypatch):
    assert git_state(tmp_path) is None

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True,
                       capture_output=True)  # fmt: skip

    git("init", "-q")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-qm", "first")
    state = git_state(tmp_path)
    assert re.fullmatch("[0-9a-f]{40}", state["commit"])
    assert state["dirty"] is False
    (tmp_path / "results.json").write_text("{}")
    assert git_state(tmp_path)["dirty"] is False
    (tmp_path / "a").write_text("2")
    assert git_state(tmp_path)["dirty"] is True
    monkeypatch.setattr(context, "OWN_WORKLOADS", {})
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    assert host_context()["user_git"] == {"commit": state["commit"], "dirty": True}
    workload = types.SimpleNamespace(path=tmp_path / "deep" / "bench.py")
    monkeypatch.chdir("/")
    assert "user_git" not in host_context()
    monkeypatch.setattr(context, "OWN_WORKLOADS", {"bench.a": workload})
    assert host_context()["user_git"]["commit"] == state["commit"]
    monkeypatch.setattr(context, "_OURS", tmp_path)
    assert "user_git" not in host_context()


def test_the_users_repository_is_read_and_shown():
    commit = {"commit": "ab" * 20, "dirty": True}
    made = loaded(header(context=header()["context"] | {"user_git": commit}))
    assert made.to_json()["context"]["user_git"] == commit
    assert "user_git" not in loaded(header()).to_json()["context"]


# ---- files that are wrong


def _refused(path, *parts):
    with pytest.raises(gw.BadResultsFile) as caught:
        read_results(path)
    assert isinstance(caught.value, gw.ArgumentError)
    message = str(caught.value)
    assert message.startswith(path.name)
    assert all(part in message for part in parts), message
    return message


def test_a_file_that_is_cut_off_anywhere_is_refused(good):
    text = good.read_text().rstrip()
    for length in range(1, len(text) - 1, 331):
        good.write_text(text[:length])
        message = _refused(good, "line ", "column ")
        assert re.search("cut off|not JSON", message)
        line = int(re.search(r"line (\d+)", message)[1])
        assert abs(line - (text[:length].count("\n") + 1)) <= 1


FIRST_VERSION = {
    "schema": "gridwise.bench", "schema_version": 1, "results": [],
    "context": {"time": "2026-11-21T01:33:29+00:00", "versions": {"gridwise_py": "0.1.0"}},
}  # fmt: skip
NO_RESULTS = [
    (b"", ["line 1, column 1", "empty"]),
    (b"hello", ["line 1, column 1", "not JSON"]),
    (b'{"schema": "criterion", "schema_version": 2}', ["$.schema", "criterion"]),
    (b'{"schema": "gridwise.bench", "schema_version": true}', ["$.schema_version"]),
    (b'{"schema": "gridwise.bench", "schema_version": 4}', ["$.schema_version", "4 is newer than 3", "update"]),
    (b'{"schema": "gridwise.bench", "schema_version": 1}', ["$.schema_version", "an earlier gridwise_py"]),
    (b"\xff\xfe", ["byte 0", "UTF-8"]),
    (b"[" * 100_000, ["nested"]),
    (
        b'{"schema": "gridwise.bench",\n "seed": 1' + b"0" * 400 + b"}",
        ["line 2, column 10", "401 characters", "1e+40"],
    ),
    (b'{"x": 1e-320}', ["line 1, column 7", "1e-320", "between 1e-40 and 1e+40"]),
    (b'{\n "NaN": "NaN",\n "x": NaN}', ["line 3, column 7", "NaN"]),
    (b'{\n "x": [1,\n  -Infinity]}', ["line 3, column 3", "-Infinity"]),
    (
        json.dumps(FIRST_VERSION).encode(),
        ["$.schema_version: 1 is older than 3", "gridwise_py 0.1.0 (2026-11-21T01:33:29+00:00)", "measure again"],
    ),
]


def test_a_file_that_is_no_results_file(tmp_path):
    path = tmp_path / "bad.json"
    for content, parts in NO_RESULTS:
        path.write_bytes(content)
        _refused(path, *parts)
    _refused(tmp_path / "none.json", "cannot be read")
    _refused(tmp_path, "cannot be read")


ONE_WRONG = [
    lambda r: r["samples"][150]["ticks"][0].pop(),
    lambda r: r["samples"][150]["ticks"][1].__setitem__(0, -1),
    lambda r: r["samples"][150].update(gpu_span_ns=True),
    lambda r: r["samples"][150].update(gpu_total_ns=["5"]),
    lambda r: r["samples"][150].pop("submit_ns"),
    lambda r: r["canary_ns"].__setitem__(150, -1.0),
    lambda r: r["whole"]["series"]["gpu_span"]["samples_ns"].__setitem__(150, "5"),
    lambda r: r["warnings"].__setitem__(150, 5),
]


def test_one_wrong_item_among_many_of_one_form_is_found():
    """It is named, as by jsonschema."""
    good = document([measurement(count=160, canary_ns=(10.0,) * 160, warnings=("w",) * 160)])
    check_document(copy.deepcopy(good), "a.json")
    for spoil in ONE_WRONG:
        changed = copy.deepcopy(good)
        spoil(changed["results"][0])
        plain = jsonschema.exceptions.best_match(VALIDATOR.iter_errors(changed))
        assert "[150]" in plain.json_path
        with pytest.raises(gw.BadResultsFile, match=re.escape(plain.json_path)):
            check_document(changed, "a.json")


# ---- reading and writing


def _objects(value):
    """Yield every object of JSON data."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(item)


@pytest.fixture
def full():
    """A document with everything that a file can have."""
    speeds = [*SPEEDS, {"moved_bytes": 16, "gbytes_per_s": 2}]
    calibration = {"copy": speeds, "triad": [], "tick_check": {"ratio": 1.0}, "fma_gflops": None, "floors_ns": {"a": 1}}
    context = {**header()["context"], "resumed": ["2026-01-01T00:00:00+00:00"], "suite": "full"}
    device = {**header()["device"], "calibration": calibration, "lookback": None, "tuning": {"scan": [[None, [1]]]}}
    blocks = [{"before": {"power_w": 100.5, "throttle_reasons": ["gpu_idle"]}, "after": {"sm_clock_mhz": 1500}}]
    made = document(
        [
            measurement(count=2, observations={"blocks": blocks}, parameters={"shape": "tuned"}, warnings=("w",)),
            measurement("copy", count=1, op=None, labels=("k",), case={"datatype": "u32", "op": None, "block": 2}),
            measurement("reduce", error="DeviceError: lost", ticks=(), kernels=(), whole={}, work={}, canary_ns=()),
        ],
        context=context,
        device=device,
        planned=3,
        ticks_file="full.ticks.npz",
    )
    beside = made["results"][1]
    beside["ticks"] = {"array": "r00001", "sha256": "0" * 64}
    for sample in beside["samples"]:
        del sample["ticks"]
    check_document(made, "full")
    return made


def test_a_document_is_written_as_it_was_read(full, tmp_path):
    path = tmp_path / "full.json"
    write_json(path, full)
    before = path.read_bytes()
    write_results(path, read_results(path), overwrite=True)
    assert json.loads(path.read_bytes()) == json.loads(before)


def test_keys_that_are_not_known_are_written_again_wherever_they_are(full):
    kept = 0
    for i in range(len(list(_objects(full)))):
        made = copy.deepcopy(full)
        list(_objects(made))[i]["later"] = 1
        if find_problem(made, Results) is None:  # the keys of some objects are names of values, such as limits
            assert Results.from_json(made).to_json() == made
            kept += 1
    assert kept > 30


def test_keys_that_may_be_missing_stay_so(full):
    removed = 0
    for i, one in enumerate(list(_objects(full))):
        for key in one:
            made = copy.deepcopy(full)
            del list(_objects(made))[i][key]
            if find_problem(made, Results) is None:
                assert Results.from_json(made).to_json() == made, key
                removed += 1
    assert removed > 30


_COMMITTED = committed(RESULTS)


@pytest.mark.needs("the repository")
def test_the_files_that_the_pages_quote_are_read_whole():
    """One file of each folder; the others when all tests run."""
    _check_read_whole({path.parent: path for path in _COMMITTED}.values())


@pytest.mark.slow
@pytest.mark.needs("the repository")
def test_all_files_that_the_pages_quote_are_read_whole():
    _check_read_whole(_COMMITTED)


def _check_read_whole(paths):
    for path in paths:
        text = _COMMITTED[path]
        read = parse(text.encode(), path.name)
        assert read.to_json() == json.loads(text)
        assert not any(result.unknown or result.whole.unknown or result.rates.unknown for result in read.results)
        assert read.unknown == read.context.unknown == read.device.unknown == {}


# ---- writing


def test_a_file_is_written_whole_or_not_at_all(good):
    before = good.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(good, {"x": math.nan})
    assert good.read_bytes() == before
    assert os.listdir(good.parent) == [good.name]


def test_many_stamps_are_beside_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_TICKS_INSIDE_BYTES", 2000)
    path = tmp_path / "a.json"
    made = [measurement(n=n, count=count) for n, count in ((10, 5), (20, 500), (30, 5))]
    files = ResultsWriter(path, loaded(header()), 3)
    for i, m in enumerate(made):
        files.add(result_of(m, position=i))
        files.save()
        partial = read_results(partial_path(path))
        assert partial.complete is False
        assert len(partial.results) == i + 1
        assert not path.exists()
        for entry, m_before in zip(partial.results, made, strict=False):
            np.testing.assert_array_equal(read_ticks(partial_path(path), partial, entry), m_before.ticks)
    files.finish()
    assert sorted(os.listdir(tmp_path)) == ["a.json", "a.ticks.npz"]
    read = read_results(path)
    assert [entry.ticks is None for entry in read.results] == [True, False, True]
    assert read.ticks_file == "a.ticks.npz"
    for entry, m in zip(read.results, made, strict=True):
        np.testing.assert_array_equal(read_ticks(path, read, entry), m.ticks)
    # A changed and a missing one are noticed.
    big = read.results[1]
    with np.load(ticks_path(path)) as arrays:
        changed = dict(arrays)
    changed[big.ticks.array][0, 0, 0] += 1
    np.savez(ticks_path(path), **changed)
    with pytest.raises(gw.BadResultsFile, match="not of the same run"):
        read_ticks(path, read, big)
    ticks_path(path).write_bytes(b"PK")
    with pytest.raises(gw.BadResultsFile, match="keep both files together"):
        read_ticks(path, read, big)


def test_writing_takes_a_small_part_of_a_run(tmp_path, monkeypatch):
    """All cases are written anew each time: a file of thousands takes seconds, in which the GPU idles."""
    now_s, saved = 0.0, []
    path = tmp_path / "a.json"
    files = ResultsWriter(path, loaded(header()), None, clock=lambda: now_s)
    write = files._write

    def slow(path, *, complete):
        nonlocal now_s
        now_s += 0.05 * len(files._texts)
        saved.append(len(files._texts))
        return write(path, complete=complete)

    monkeypatch.setattr(files, "_write", slow)
    for i in range(40):
        files.add(result_of(measurement(n=i + 1)))
        now_s += 1.0
        files.save_in_turn()
    assert saved[:2] == [1, 2], "after each case, while that is quick"
    assert 0.05 * sum(saved) < 0.15 * now_s
    assert saved[-1] < 40
    files.close()
    assert len(read_results(partial_path(path)).results) == 40
    files.close()
    files.finish()
    files.close()
    assert (saved[-2:], os.listdir(tmp_path)) == ([40, 40], ["a.json"])


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_its_finished_cases(device, tmp_path):
    """The older file stays, too; and the run can be gone on with."""
    from click.testing import CliRunner

    from gridwise_py.cli import main

    path = tmp_path / "out.json"
    path.write_text("the older file")
    words = ["bench", "copy", "--n", "1000,2000,3000,4000", "--warmup-s", "0", "--sampling-s", "0.2", "--trials", "1"]
    words += ["--processes", "1"]
    run = subprocess.Popen(
        [sys.executable, "-m", "gridwise_py", *words, "--json", str(path), "--overwrite"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    partial = partial_path(path)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and run.poll() is None:
        if partial.exists() and len(read_results(partial).results) >= 2:
            break
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL, "it ended by itself"
    left = read_results(partial)
    finished = left.results
    assert left.complete is False
    assert left.planned == 8
    assert 2 <= len(finished) < 8
    assert all(entry.correct for entry in finished)
    assert path.read_text() == "the older file"

    done = CliRunner().invoke(main, [*words, "--resume", str(partial)])
    assert done.exit_code == 2, "it would replace the older file"
    assert path.read_text() == "the older file"
    done = CliRunner().invoke(main, [*words, "--resume", str(partial), "--overwrite"])
    assert done.exit_code == 0, done.output
    whole = read_results(path)
    assert not partial.exists()
    assert len(whole.results) == 8
    kept = {entry.key: entry.samples for entry in whole.results}
    assert all(kept[entry.key] == entry.samples for entry in finished)
    assert whole.context.resumed == (left.context.time,)


# ---- tables


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.needs(f"module:{kind}")) for kind in ("pandas", "polars")]
)
def test_data_frames(kind):
    failed = measurement("reduce", error="DeviceError: lost", kernels=(), whole={}, ticks=(), work={})
    made = document([measurement(), failed])
    made["results"][1]["process"] = 3
    frame = to_dataframe(loaded(made), kind)
    columns = {name: list(frame[name]) for name in frame.columns}
    assert columns["process"] == [0] * 4 + [3]
    assert columns["series"][:4] == ["gpu_span", "cpu_wall", "first", "second"]
    assert columns["part"][:4] == ["whole", "whole", "kernel", "kernel"]
    assert columns["primitive"] == ["scan"] * 4 + ["reduce"]
    assert columns["median_ns"][0] == measurement().whole["gpu_span"].median_ns
    assert columns["datatype"] == ["u32"] * 5
    assert columns["invalid"][:4] == [1] * 4
    assert columns["error"][4] == "DeviceError: lost"


def test_data_frames_of_other_kinds_and_missing_packages(monkeypatch):
    made = loaded(document([measurement()]))
    with pytest.raises(gw.ArgumentError, match="'pandas' or 'polars'"):
        to_dataframe(made, "excel")
    with pytest.raises(gw.DatatypeError, match=r"not ndarray; of an Array .*array\.to_numpy\(\)"):
        to_dataframe(np.zeros(3))
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(gw.ArgumentError, match="pip install polars"):
        to_dataframe(made, "polars")
