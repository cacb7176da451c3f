"""Suites and axes, the order of cases, what a failing case does to the others, and runs that are gone on with."""

import json
import os
import re
import signal
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py import ArgumentError
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.cases.workloads import WORKLOADS
from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.results.reader import read_results
from gridwise_py.bench.results.rounds import pooled
from gridwise_py.bench.results.schema import check_document
from gridwise_py.bench.results.writer import partial_path
from gridwise_py.bench.sweep import runner, worker
from gridwise_py.bench.sweep.axes import Axis, collect_axes, parse_axis
from gridwise_py.bench.sweep.runner import Request, RunProgress, run_jobs
from gridwise_py.bench.sweep.suite import (
    BENCH_PROTOCOL,
    DEFAULT_AXES,
    Job,
    Sweep,
    in_processes,
    in_rounds,
    load_suite,
    plan_jobs,
    suite_names,
)
from gridwise_py.cli import main
from gridwise_py.storage.json_files import write_json
from helpers.results import measurement
from helpers.tables import bench_table

SHORT = gw.SamplingProtocol(
    batch_trials=1, warmup_s=0.0, max_warmup_s=0.05, timeout_s=1e-6, block_trials=2, check_unit=False
)


def _sweep(primitives, *axes):
    return Sweep(primitives, collect_axes(axes, {}, DEFAULT_AXES))


def _jobs(*axes, primitives=("reduce",)):
    return plan_jobs([_sweep(primitives, *axes)])


# ---- which cases


def test_each_case_is_there_once_and_the_yardstick_is_first_at_its_n_and_mode():
    axes = ("n=10,20,0", "mode=hot,cold", "op=add,min", "datatype=u32")
    jobs = plan_jobs([_sweep(("vector_add", "copy"), *axes), _sweep(("vector_add",), *axes)])
    assert [job.position for job in jobs] == list(range(len(jobs)))
    assert [str(job) for job in jobs] == [
        f"{name} u32 {mode} n={n}"
        for n in (10, 20, 0)
        for mode in ("hot", "cold")
        for name in (("copy", "vector_add") if n else ("vector_add", "copy"))
    ]
    # It has as many bytes.
    jobs = _jobs("n=2^20", "datatype=u32,u64", primitives=("sort",))
    assert [str(job) for job in jobs] == ["copy u32 n=2^20", "copy u32 n=2^21", "sort u32 n=2^20", "sort u64 n=2^20"]


def test_each_round_visits_every_case_in_an_order_of_its_own():
    jobs = _jobs("n[pow2]=[1:20]")
    visits = in_rounds(jobs, 3, seed=1)
    rounds = [visits[i : i + len(jobs)] for i in range(0, 3 * len(jobs), len(jobs))]
    for number, visited in enumerate(rounds):
        assert {job.round for job in visited} == {number}
        assert sorted(job.position for job in visited) == [job.position for job in jobs]
    assert len({tuple(job.position for job in visited) for visited in rounds}) == 3
    assert rounds[0] == in_rounds(jobs, 1, seed=1), "the first is that of a run with one"


# ---- suites


def test_the_suites_that_come_with_it_are_well():
    assert suite_names() == ["breadth", "breadth-full", "browser", "card", "full", "quick"]
    found = {}
    for name in suite_names():
        suite = load_suite(name)
        assert suite.description
        assert replace(BENCH_PROTOCOL, **suite.protocol) != BENCH_PROTOCOL
        found[name] = {job.case.primitive for job in plan_jobs(suite.sweeps)}
    assert found["full"] == found["quick"] == found["card"] == set(gw.primitives.REGISTRY)
    assert found["breadth"] == found["breadth-full"] > {"reduce_by_key", "segmented_reduce", "search", "argmax"}
    assert set(WORKLOADS) == found["full"] | found["breadth"], "each is in a suite"
    assert len(plan_jobs(load_suite("quick").sweeps)) < 90
    assert len(plan_jobs(load_suite("breadth").sweeps)) < 100


def test_a_suite_of_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[protocol]\nwarmup_s = 1\n[[sweep]]\nprimitives = ["copy"]\naxes = ["n=5"]\n')
    suite = load_suite(str(path))
    assert (suite.name, suite.protocol) == ("mine", {"warmup_s": 1})
    assert [str(job) for job in plan_jobs(suite.sweeps)] == ["copy u32 n=5", "copy f32 n=5"]
    # It can ask for the primitives that it does not name.
    named = [name for name in gw.primitives.REGISTRY if name not in ("copy", "map", "scan")]
    path.write_text(f'[[sweep]]\nprimitives = ["*"]\naxes = ["n=5"]\n[[sweep]]\nprimitives = {named}\n')
    others, *_ = load_suite(str(path)).sweeps
    assert sorted(others.primitives) == ["map", "scan"]
    for missing, said in (
        ("slow", "no suite 'slow'; there are breadth, "),
        (str(tmp_path / "none.toml"), "none.toml: "),
    ):
        with pytest.raises(gw.ArgumentError, match=said):
            load_suite(missing)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "sweep: there must be at least one"),
        ("[[sweep]\n", r"this is not TOML.*line 1"),
        ("[[sweep]]\naxes = ['n=[1:x]']", r"sweep\[0\]\.axes.*column 6.*'x'"),
        ("[[sweep]]\naxes = 'n=1'", r"sweep\[0\]\.axes: must be a list"),
        ("[[sweep]]\n[[sweep]]\nprimitives = ['splice']", r"sweep\[1\]\.primitives: 'splice' is not one of"),
        ("[[sweep]]\nprimitive = ['scan']", r"sweep\[0\]\.primitive: unknown"),
        ("[protocol]\ntrails = 3\n[[sweep]]", r"protocol\.trails: unknown; there are samples"),
        ("[protocol]\nbatch_trials = 3.5\n[[sweep]]", r"protocol\.batch_trials: batch_trials is 3\.5, .*integer"),
        ("[protocol]\nwarmup_s = '1'\n[[sweep]]", r"protocol\.warmup_s: warmup_s is '1', .*number"),
        (
            "[protocol]\nwarmup_s = -1\n[[sweep]]",
            r"protocol\.warmup_s: warmup_s is -1, .*must be a finite number: 0, or from",
        ),
        ("sweeps = 1", "sweeps: unknown"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("[protocol]\nsamples = " + "9" * 5000, "this is not TOML"),
        ("[protocol]\nseed = -1\n[[sweep]]", ".*seed is -1, but must be an integer from 0"),
        ("[protocol]\nmax_submission_gpu_s = 1e300\n[[sweep]]", r".*max_submission_gpu_s is 1e\+300"),
    ],
)
def test_where_a_wrong_suite_is_wrong(tmp_path, text, problem):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(gw.ArgumentError, match=f"(?s)suite wrong.toml: {problem}"):
        load_suite(str(path))


# ---- running


@pytest.fixture
def invented(monkeypatch, device):
    """Measuring without the GPU; returns the list of what was measured. A case of 13 items fails."""
    seen = []

    def measure(device, case, protocol, mode, check=True):
        seen.append(str(Job(case, mode, 0)))
        if case.n == 13:
            raise RuntimeError("thirteen")
        if case.n == 14:
            raise KeyboardInterrupt
        return measurement(case.primitive, case.n, mode, datatype=case.datatype, op=case.op)

    monkeypatch.setattr(worker, "measure_case", measure)
    monkeypatch.setattr(runner, "calibrate_run", lambda device, sizes, cold: None)
    monkeypatch.setattr(runner, "request_device", lambda adapter: device)
    return seen


class _Told(RunProgress):
    """Keeps what it is told."""

    def __init__(self):
        self.began_jobs, self.to_come, self.results = [], [], []

    def began(self, job, to_come):
        self.began_jobs.append(str(job))
        self.to_come.append([str(other) for other in to_come])

    def finished(self, job, result):
        self.results.append((result.n, result.error))


def test_a_crash_of_one_case_is_recorded_and_the_rest_goes_on(invented, tmp_path):
    path = tmp_path / "out.json"
    jobs = _jobs("n=12,13,15", "datatype=u32")
    shown = _Told()
    made = run_jobs(Request(jobs, SHORT), None, json_path=path, progress=shown)
    names = [str(job) for job in jobs]
    assert shown.began_jobs == invented == names
    assert shown.to_come == [names[i + 1 :] for i in range(len(names))]
    assert shown.results == [(entry.n, entry.error) for entry in made.results]
    assert [entry.error for entry in made.results] == [
        None, None, "RuntimeError: thirteen", "RuntimeError: thirteen", None, None,
    ]  # fmt: skip
    assert not made.results[2].correct
    assert read_results(path).results == made.results


def test_the_document_has_the_order_asked_for_and_the_file_the_order_measured(invented, tmp_path):
    path = tmp_path / "out.json"
    jobs = in_rounds(_jobs("n[pow2]=[0:9]", "datatype=u32"), 1, seed=0)
    made = run_jobs(Request(jobs, SHORT), None, json_path=path)
    assert [entry.position for entry in made.results] == list(range(20))
    assert [entry.position for entry in read_results(path).results] == [job.position for job in jobs]


def test_a_resumed_run_skips_what_is_finished_and_repeats_what_failed(invented, tmp_path):
    path = tmp_path / "out.json"
    jobs = _jobs("n=12,13", "datatype=u32")
    run_jobs(Request(jobs, SHORT), None, json_path=path)
    invented.clear()
    more = _jobs("n=13,12,15", "datatype=u32")
    made = run_jobs(Request(more, SHORT), None, json_path=path, resume_from=path)
    assert invented == [str(job) for job in more if job.case.n != 12]
    assert [entry.n for entry in made.results] == [13, 13, 12, 12, 15, 15]
    check_document(made.to_json(), "made")


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_an_interrupt_right_after_the_first_case_leaves_it(invented, tmp_path, monkeypatch, quiet):
    """What the device can do is measured then, which takes some seconds. The case is in the table and in the file."""

    def calibrate_run(device, sizes, cold):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "calibrate_run", calibrate_run)
    path = tmp_path / "out.json"
    words = ["bench", "copy", "scan", "--n", "12", "--datatype", "u32", "--processes", "1", "--order", "given", *quiet]
    shown = CliRunner().invoke(main, [*words, "--json", str(path)])
    assert (shown.exit_code, path.exists()) == (130, False)
    assert re.search(r"^copy u32 +12 .* right$", shown.stdout, re.MULTILINE)
    assert "scan" not in shown.stdout
    assert len(read_results(partial_path(path)).results) == 1
    assert f"--resume {partial_path(path)}" in shown.stderr


def test_a_resumed_run_loses_no_finished_case(invented, tmp_path):
    """The partial file goes at the end, and with it what the new command does not measure."""
    path = tmp_path / "out.json"
    command = ["bench", "scan", "--n", "12,14"]
    with pytest.raises(KeyboardInterrupt):
        run_jobs(Request(_jobs("n=12,14", "datatype=u32"), SHORT, command), None, json_path=path)
    partial = partial_path(path)
    assert [entry.n for entry in read_results(partial).results] == [12, 12], "what was finished stays"
    before = partial.read_bytes()
    invented.clear()
    with pytest.raises(gw.ArgumentError, match=r"2 of its 2 finished cases would be lost.*gridwise bench scan --n 12,"):
        run_jobs(Request(_jobs("n=15", "datatype=u32"), SHORT), None, json_path=path, resume_from=partial)
    assert (invented, partial.read_bytes(), path.exists()) == ([], before, False)


def test_a_run_is_not_resumed_under_other_conditions(invented, tmp_path, monkeypatch):
    monkeypatch.setenv("GRIDWISE_SHADER_CHECKS", "")
    path = tmp_path / "out.json"
    request = Request(_jobs("n=12", "datatype=u32"), SHORT)
    run_jobs(request, None, json_path=path)
    text = path.read_text()
    for change, problem in (
        (lambda d: d["device"].update(adapter="another"), "device has adapter = 'another'"),
        (lambda d: d["device"].update(driver="0"), "device has driver"),
        (lambda d: d["protocol"].update(batch_trials=7), "protocol has batch_trials = 7, this run 1"),
        (lambda d: d["context"]["versions"].update(wgpu="9"), "versions has wgpu = '9'"),
        (
            lambda d: d["context"]["settings"].update({"shader_checks.all": True}),
            "settings has shader_checks.all = True",
        ),
        (lambda d: d["context"].update(git={"commit": "1" * 40, "dirty": False}), "commit has commit = '111"),
    ):
        changed = json.loads(text)
        change(changed)
        write_json(path, changed)
        before = path.read_bytes()
        with pytest.raises(gw.ArgumentError, match=f"--resume out.json: its {problem}"):
            run_jobs(request, None, json_path=path, resume_from=path)
        assert path.read_bytes() == before


def test_a_file_has_the_settings_that_change_times(invented, tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    for checks, blocking in (("", True), ("all", False)):
        monkeypatch.setenv("GRIDWISE_SHADER_CHECKS", checks)
        monkeypatch.setenv("GRIDWISE_LAUNCH_BLOCKING", "on" if blocking else "0")
        run_jobs(Request(_jobs("n=12", "datatype=u32"), SHORT), None, json_path=path)
        settings = read_results(path).context.settings
        # An engine may have more of its own.
        assert settings.items() >= {"launch_blocking": blocking}.items()
        assert settings.get("shader_checks.all", False) == (checks == "all")
        assert json.loads(path.read_text())["context"]["settings"] == settings


def test_a_broken_device_is_replaced(monkeypatch, device):
    made = []

    def measure(device, case, protocol, mode, check=True):
        if case.primitive == "copy":
            raise gw.DeviceError("lost")
        return measurement(case.primitive, case.n, mode)

    monkeypatch.setattr(worker, "measure_case", measure)
    monkeypatch.setattr(runner, "calibrate_run", lambda device, sizes, cold: None)
    monkeypatch.setattr(runner, "request_device", lambda adapter: made.append(adapter) or device)
    done = run_jobs(Request(_jobs("n=12", "datatype=u32"), SHORT), "some")
    assert [entry.error for entry in done.results] == ["DeviceError: lost", None]
    assert made == ["some", "some"]


# ---- a process of its own


def test_a_native_abort_is_the_error_of_its_case(invented, monkeypatch):
    for code, problem in (
        ("import os; os.abort()", "was ended by SIGABRT"),
        ("raise SystemExit('no luck')", "ended with 1: no luck"),
        ("pass", "ended with 0"),
        ("import time; time.sleep(60)", "was ended after 0.5 s without a result"),
    ):
        monkeypatch.setattr(worker, "worker_command", lambda code=code: [sys.executable, "-S", "-c", code])
        monkeypatch.setattr(worker, "CASE_TIMEOUT_S", 0.5 if "sleep" in code else 60)
        made = run_jobs(Request(_copies(12), SHORT, isolate=True), None)
        assert [problem in entry.error for entry in made.results] == [True], made.results[0].error
        check_document(made.to_json(), "made")


def test_a_run_says_whether_it_held_the_clock(invented, monkeypatch):
    inside, real = [], runner.measure_job
    monkeypatch.setattr(runner, "measure_job", lambda *args: inside.append("job") or real(*args))
    for state, legend in (("held", "clock was held"), ("not held", "clock was not held"), ("not applicable", "")):

        @contextmanager
        def clock_held(_, state=state):
            inside.append(True)
            yield state
            inside.append(False)

        inside.clear()
        monkeypatch.setattr(runner, "clock_held", clock_held)
        made = run_jobs(Request(_jobs("n=12", "datatype=u32"), SHORT, processes=1), None)
        assert inside == [True, *["job"] * len(made.results), False]
        assert made.context.clock == state
        text = bench_table(made.to_json())
        assert legend in text
        assert legend or "clock was" not in text


# ---- several processes


def test_each_process_has_the_rounds_in_an_order_of_its_own():
    jobs = in_rounds(_jobs("n[pow2]=[0:9]", "datatype=u32"), 2, seed=0)
    visits = in_processes(jobs, 3, seed=0)
    assert visits[: len(jobs)] == jobs
    assert visits == in_processes(jobs, 3, seed=0) != in_processes(jobs, 3, seed=1)
    by_process = [[job for job in visits if job.process == process] for process in range(3)]
    plain = [[replace(job, process=0) for job in of_one] for of_one in by_process]
    assert all(sorted(map(repr, of_one)) == sorted(map(repr, jobs)) for of_one in plain)
    assert plain[0] != plain[1] != plain[2]
    assert [job.round for job in plain[2]] == [job.round for job in jobs]
    assert [replace(job, process=0) for job in in_processes(jobs, 2, seed=None)] == jobs * 2
    assert [job.checks for job in visits] == [True] * len(jobs) + [False] * 2 * len(jobs)
    with pytest.raises(gw.ArgumentError, match="a run has at most 1,000,000"):
        in_processes(jobs, 1_000_000, None)


#: A worker that measures nothing: it answers, says its process's number, and dies where the test says.
_WORKER = """
import json, os, sys
made = json.loads(os.environ["MADE"])
print("noise of a driver", file=sys.stderr)
sys.stdin.readline()
print("{}", flush=True)
for line in sys.stdin:
    job = json.loads(line)
    if [job["process"], job["case"]["n"]] == made["dies_at"]:
        print("no luck", file=sys.stderr)
        sys.stderr.flush()
        os.abort()
    result = {**made["result"], "n": job["case"]["n"], "warnings": [str(os.getpid())]}
    result |= {name: job[name] for name in ("position", "process", "round")}
    print(json.dumps({"result": result}), flush=True)
"""


@pytest.fixture
def workers(monkeypatch, device):
    """Make workers of `_WORKER` that die at a process and an n."""

    def use(*dies_at):
        result = result_of(measurement("copy", 1, Mode.BATCH, op=None)).to_json()
        monkeypatch.setenv("MADE", json.dumps({"result": result, "dies_at": dies_at}))

    monkeypatch.setattr(worker, "worker_command", lambda: [sys.executable, "-S", "-c", _WORKER])
    monkeypatch.setattr(runner, "calibrate_run", lambda device, sizes, cold: None)
    monkeypatch.setattr(runner, "request_device", lambda adapter: device)
    return use


def _copies(*sizes):
    return [Job(Case("copy", n, "u32"), Mode.BATCH, position) for position, n in enumerate(sizes)]


def test_each_process_of_a_run_is_one(workers, tmp_path):
    workers()
    path = tmp_path / "out.json"
    run_jobs(Request(_copies(1, 2), SHORT, processes=2, order_seed=0), None, json_path=path)
    document = read_results(path)
    assert document.planned == len(document.results) == 4
    ids = {process: {r.warnings for r in document.results if r.process == process} for process in range(2)}
    assert all(len(of_one) == 1 for of_one in ids.values()), ids
    assert len(set.union(*ids.values()) | {(str(os.getpid()),)}) == 3, "each is another, and none is this one"
    assert document.protocol["timeout_s"] == pytest.approx(SHORT.timeout_s / 2), "they share the time of a case"
    # An edited shader is noticed.
    (one,) = [r for r in pooled(document).results if r.n == 1]
    assert not any("shaders changed" in warning for warning in one.warnings)
    first, *others = [r for r in document.results if r.n == 1]
    changed = [replace(other, shaders_sha256=("1" * 64,)) for other in others]
    (one,) = pooled(replace(document, results=(first, *changed))).results
    assert any("shaders changed" in warning for warning in one.warnings)


def test_an_interrupt_ends_the_worker(workers, monkeypatch):
    workers()
    made = []

    class Interrupted(worker.Worker):
        def measure(self, job):
            made.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(runner, "Worker", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_jobs(Request(_copies(1), SHORT, processes=2), None)
    assert made[0].returncode == -signal.SIGKILL


def test_a_resumed_run_continues_with_the_processes_that_lack(workers, tmp_path):
    path = tmp_path / "out.json"
    request = Request(_copies(1, 2, 3), SHORT, processes=3)
    workers(1, 2)
    made = run_jobs(request, None, json_path=path)
    errors = {(r.process, r.n): r.error for r in made.results if r.error}
    assert errors == {(1, 2): "process 2 was ended by SIGABRT: no luck"}, "a process that dies says so"
    assert len(made.results) == 9
    check_document(made.to_json(), "made")
    before = {(r.process, r.n): r.warnings for r in read_results(path).results}
    workers()
    run_jobs(request, None, json_path=path, resume_from=path)
    after = {(r.process, r.n): r.warnings for r in read_results(path).results}
    assert [key for key in before if before[key] != after[key]] == [(1, 2)]


def test_a_budget_is_filled_with_whole_processes(workers, monkeypatch, tmp_path):
    """The first two have two rounds; what they show decides about the rounds of the others."""
    workers()
    path = tmp_path / "out.json"
    monkeypatch.setattr(runner, "MOST_PROCESSES", 6)
    request = Request(_copies(1, 2), SHORT, processes=None, fills_budget=True, budget_s=300.0)
    run_jobs(request, None, json_path=path)
    document = read_results(path)
    rounds = {p: [r.round for r in document.results if r.process == p and r.n == 1] for p in range(6)}
    assert rounds == {0: [0, 1], 1: [0, 1], **{p: [0] for p in range(2, 6)}}, "equal times gain nothing by rounds"
    assert document.planned == len(document.results) == 16
    assert [(one.position, one.processes, one.visits) for one in document.levels] == [(0, 6, 8), (1, 6, 8)]
    # No room for a second process.
    path.unlink()
    run_jobs(replace(request, budget_s=2.0), None, json_path=path)
    assert {(r.process, r.round) for r in read_results(path).results} == {(0, 0)}, "nor for a second round"


def test_cases_with_narrow_intervals_are_left_out_of_later_processes(workers, monkeypatch, tmp_path):
    """Seven processes at least, and narrow twice in a row; the other cases are measured until the end."""
    workers()
    path = tmp_path / "out.json"
    monkeypatch.setattr(runner, "MOST_PROCESSES", 10)
    request = Request(_copies(1, 2), SHORT, processes=None, fills_budget=True, budget_s=300.0)

    def spread(visits):
        processes = len({visit.process for visit in visits})
        if visits[0].n == 1:
            return 0.001
        return 0.001 if processes == 9 else 0.1  # narrow once, by chance

    monkeypatch.setattr(runner, "half_interval", spread)
    run_jobs(request, None, json_path=path)
    counts = {one.position: one.processes for one in read_results(path).levels}
    assert counts == {0: 8, 1: 10}
    # With all of them narrow, the run ends.
    path.unlink()
    monkeypatch.setattr(runner, "half_interval", lambda visits: 0.001)
    run_jobs(request, None, json_path=path)
    assert {one.position: one.processes for one in read_results(path).levels} == {0: 8, 1: 8}


def test_a_case_in_a_child_is_measured_and_its_error_is_that_of_its_case(device):
    entry = worker.measure_isolated(None, Job(Case("copy", 1 << 40, "u32"), Mode.BATCH, 4), SHORT)
    assert "Error" in entry.error
    assert (entry.correct, entry.position) == (False, 4)


# ---- axes


def test_what_an_axis_means():
    for text, name, values in [
        ("n=1000", "n", (1000,)),
        ("n=1_000,2^10,2**3,1e6,1.5e3", "n", (1000, 1024, 8, 1_000_000, 1500)),
        ("n[pow2]=[16:28:2]", "n", tuple(2**i for i in range(16, 29, 2))),
        ("n[pow10]=[0:2]", "n", (1, 10, 100)),
        ("n=[10:30:10]", "n", (10, 20, 30)),
        (" n[pow2] = [ 1 : 3 ] ", "n", (2, 4, 8)),
        ("datatype=u32,f32", "datatype", ("u32", "f32")),
        ("mode=cold,hot,batch,latency", "mode", ("cold", "hot", "batch", "latency")),
    ]:
        assert parse_axis(text) == Axis(name, values)


def test_where_a_wrong_axis_is_wrong():
    for text, column, problem in [
        ("", 1, "no axis ''"),
        ("m=1", 1, "no axis 'm'; there are n, datatype, op, distribution, run, segment, share, bins, k, along, mode"),
        ("n", 2, "'=' is missing"),
        ("n[pow3]=1", 3, "no modifier 'pow3'"),
        ("n=1,,2", 5, "'' is not a count"),
        ("n=10, x", 7, "'x' is not a count"),
        ("n=-1", 3, "'-1' is not a count"),
        ("n[pow2]=65", 9, "too large"),
        ("n[pow2]=[16:x:2]", 13, "'x' is not a count"),
        ("n=[20:10]", 7, "before its begin 20"),
        ("n=[1:2:3:4]", 10, "at most three parts"),
        ("n=1:2", 3, "in brackets"),
        ("n=[1:2", 3, "no partner"),
        ("n=[0:1e9]", 4, "more than 10,000 values"),
        ("n=5,5", 3, "twice"),
        ("datatype=u32,f63", 14, "'f63' is not one of u32, i32, f32"),
        ("bins=256,0", 6, "0 is no value of 'bins': it must be at least 1"),
    ]:
        with pytest.raises(ArgumentError) as caught:
            parse_axis(text)
        headline, shown, caret = str(caught.value).split("\n")
        assert problem in headline
        assert f"column {column}:" in headline
        assert shown == f"  {text}"
        assert caret.index("^") == column + 1


def test_short_options_defaults_and_repeats():
    axes = collect_axes(["n=1,2"], {"op": "min", "mode": None}, {"n": "5", "op": "add", "datatype": "u32"})
    assert {name: axis.values for name, axis in axes.items()} == {"n": (1, 2), "op": ("min",), "datatype": ("u32",)}
    for texts, short in ((["n=1", "n=2"], {}), (["n=1"], {"n": "2"})):
        with pytest.raises(ArgumentError, match="'n' is given twice"):
            collect_axes(texts, short, {})
