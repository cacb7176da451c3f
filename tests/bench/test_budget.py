"""How large the cases of a first look may be, in which order they come, and what is said while they run. Clocks are
invented."""

from __future__ import annotations

import importlib
import io
import itertools
import re
import threading
from dataclasses import replace

import pytest
from click.testing import CliRunner
from rich.console import Console

from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.results.reader import read_results
from gridwise_py.bench.sweep import runner
from gridwise_py.bench.sweep.axes import axis_hint, collect_axes
from gridwise_py.bench.sweep.budget import CHOICES_OF_N, CostModel, Schedule, choose_n
from gridwise_py.bench.sweep.suite import (
    BENCH_PROTOCOL,
    DEFAULT_AXES,
    DEFAULT_PRIMITIVES,
    Sweep,
    in_processes,
    in_rounds,
    need_datatypes,
    plan_jobs,
    with_n,
)
from gridwise_py.cli import main
from gridwise_py.cli.options import Duration
from gridwise_py.cli.progress import BenchProgress, format_duration
from helpers.results import measure_nothing, measurement

FAST_NS, SLOW_NS = 0.5, 60.0  # of the copy kernel per item: a large CPU, and one that is busy


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def _jobs_at(n, primitives=DEFAULT_PRIMITIVES, rounds=1):
    sweep = Sweep(tuple(primitives), collect_axes([], {}, DEFAULT_AXES))
    return in_rounds(plan_jobs(with_n([sweep], n)), rounds, 0)


def _machine(model, compile_scale=1.0, sort_scale=1.0):
    """What a machine really takes, by the estimates of a model that has learnt nothing, times factors."""
    made = set()

    def costs(job):
        key = (job.case.primitive, job.case.datatype)
        compile_s = 0.0 if key in made else compile_scale * model.compile_s(job)
        made.add(key)
        return compile_s, model.run_s(job) * (sort_scale if job.case.primitive == "sort" else 1.0)

    return costs


def _run(copy_item_ns, budget_s=60.0, primitives=DEFAULT_PRIMITIVES, rounds=1, **machine):
    """Go through a schedule as `run_jobs` does; return n, what ran, what was left out, and when it ended."""
    clock = Clock()
    model = CostModel(BENCH_PROTOCOL, copy_item_ns)
    costs = _machine(CostModel(BENCH_PROTOCOL, copy_item_ns), **machine)
    n = choose_n(lambda n: _jobs_at(n, primitives, rounds), model, budget_s)
    begin_s = clock.now
    schedule = Schedule(_jobs_at(n, primitives, rounds), model, clock, begin_s, budget_s)
    clock.now += 4.0
    ran, left_out = [], []
    for job in schedule.jobs:
        if not schedule.admits(job):
            left_out.append(job)
            continue
        compile_s, run_s = costs(job)
        schedule.began()
        clock.now += compile_s + run_s
        schedule.finished(job, compile_s or None)
        ran.append((job, clock.now - begin_s))
    return n, ran, left_out, clock.now - begin_s


def test_a_first_look_ends_in_time():
    for copy_item_ns, budget_s in itertools.product((FAST_NS, 6.0, SLOW_NS), (30.0, 60.0, 600.0)):
        n, ran, left_out, end_s = _run(copy_item_ns, budget_s)
        assert end_s < budget_s
        assert n in CHOICES_OF_N
        if budget_s >= 60:
            assert not left_out
            assert {job.case.n for job, _ in ran} == {n}


def test_a_faster_machine_and_more_time_make_larger_cases():
    by_speed = [_run(copy_item_ns)[0] for copy_item_ns in (SLOW_NS, 6.0, FAST_NS)]
    by_time = [_run(6.0, budget_s)[0] for budget_s in (60.0, 600.0, 36_000.0)]
    for sizes in (by_speed, by_time):
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1]
    assert by_time[-1] == 1 << 24
    assert _run(1e9)[0] == CHOICES_OF_N[-1], "never none at all"


def test_compiling_that_takes_longer_than_thought_leaves_cases_out_and_ends_in_time():
    """Every primitive has had its turn by then."""
    _, ran, left_out, end_s = _run(6.0, compile_scale=10.5)  # a sort compiles for 21 s
    assert end_s < 60
    assert left_out
    assert {job.case.primitive for job, _ in ran} == {"copy", *DEFAULT_PRIMITIVES}


def test_trials_that_take_longer_than_thought_leave_later_cases_out():
    n, ran, left_out, end_s = _run(6.0, compile_scale=0.1, sort_scale=6.0)
    assert end_s < 60
    assert [job.case.primitive for job in left_out] == ["sort"]
    assert {job.case.n for job, _ in ran} == {n}


def test_the_first_figure_comes_soon_and_cheap_cases_before_dear_ones():
    _, ran, _, _ = _run(SLOW_NS)
    names = [(job.case.primitive, job.case.datatype) for job, _ in ran]
    assert names[0] == ("copy", "u32")
    assert ran[0][1] < 10
    assert names[1:5] == [(name, "u32") for name in DEFAULT_PRIMITIVES]
    assert names[5:] == [(name, "f32") for name in DEFAULT_PRIMITIVES]


def test_a_round_is_done_before_the_next():
    _, ran, _, _ = _run(FAST_NS, 200.0, rounds=2)
    rounds = [job.round for job, _ in ran]
    assert rounds == sorted(rounds)
    assert set(rounds) == {0, 1}


def test_without_a_budget_jobs_keep_their_order():
    jobs = _jobs_at(1 << 24)
    schedule = Schedule(jobs, CostModel(BENCH_PROTOCOL, 6.0), Clock(), 0.0)
    assert schedule.jobs == jobs
    assert all(map(schedule.admits, jobs))


def test_a_matrix_product_gets_a_size_of_its_kind():
    n, _, left_out, end_s = _run(6.0, primitives=("matmul",))
    assert n <= 1 << 12
    assert end_s < 60
    assert not left_out


def test_what_is_left_is_learnt_from_what_was_done():
    clock, jobs = Clock(), _jobs_at(1 << 12)
    schedule = Schedule(jobs, CostModel(BENCH_PROTOCOL, 6.0), clock, clock.now)
    before_s = schedule.left_s(jobs)
    for job in jobs:
        schedule.began()
        clock.now += 30.0
        schedule.finished(job, None)
    assert schedule.left_s(jobs) == pytest.approx(30 * len(jobs), rel=0.05)
    assert before_s < 60


def test_what_compiling_takes_is_learnt_from_other_primitives():
    scan, sort = (next(j for j in _jobs_at(1 << 12) if j.case.primitive == name) for name in ("scan", "sort"))
    usual_s = CostModel(BENCH_PROTOCOL, 6.0).compile_s(sort)
    slow, fast = CostModel(BENCH_PROTOCOL, 6.0), CostModel(BENCH_PROTOCOL, 6.0)
    slow.learn(scan, 20.0, 18.0)
    assert slow.compile_s(sort) > 5 * usual_s
    assert slow.compile_s(scan) == 0, "it was compiled"
    # A driver that has kept one kernel need not have kept another.
    fast.learn(scan, 2.0, 0.01)
    assert fast.compile_s(sort) == usual_s


# ---- a run


@pytest.fixture
def invented(monkeypatch, device):
    """Measurements of a CPU adapter that cost nothing."""
    measure_nothing(monkeypatch, device)
    monkeypatch.setattr(runner, "copy_item_ns", lambda device: 6.0)
    return device


def _bench(*words):
    return CliRunner().invoke(main, ["bench", "--processes", "1", *map(str, words)])


@pytest.mark.needs("a CPU adapter")
def test_a_cpu_chooses_and_says_so(invented, tmp_path):
    path = tmp_path / "a.json"
    shown = _bench("--json", path)
    assert shown.exit_code == 0, shown.output
    (n,) = {entry.n for entry in read_results(path).results}
    assert n == choose_n(_jobs_at, CostModel(BENCH_PROTOCOL, 6.0), 60.0)
    said = " ".join(shown.stderr.split())
    exponent = n.bit_length() - 1
    assert re.search(rf"9 cases on .*, about \d+ s\. n = 2\^{exponent}: .* within 60 s .*--n 2\^24", said), said
    # More time, another n; a file to resume from has its own.
    more = _bench("--budget", "1h")
    assert f"2^{exponent}" not in more.stdout
    again = _bench("--budget", "1h", "--resume", path)
    assert again.exit_code == 0, again.output
    assert {entry.n for entry in read_results(path).results} == {n}


def test_an_n_that_is_asked_for_stays(invented, tmp_path):
    path = tmp_path / "a.json"
    for words in (["copy", "--n", "2^24"], ["copy", "-a", "n=2^24"], ["scan", "--suite", "quick"]):
        shown = _bench(*words, "--json", path, "--overwrite")
        assert shown.exit_code == 0, shown.output
        assert "--budget" not in shown.output
        assert words[1] == "--suite" or {entry.n for entry in read_results(path).results} == {1 << 24}


def test_a_gpu_keeps_its_usual_n(invented, monkeypatch, tmp_path):
    class Context:
        class capabilities:
            is_cpu = False

    monkeypatch.setattr(runner, "context_of", lambda device: Context)
    path = tmp_path / "a.json"
    shown = _bench("scan", "--json", path, "--budget", 1)
    assert shown.exit_code == 0, shown.output
    assert "not measured" not in shown.output
    assert "n = 2^" not in shown.stderr, "nothing was chosen"
    assert {entry.n for entry in read_results(path).results} == {1 << 24}


@pytest.mark.needs("a CPU adapter")
def test_what_does_not_fit_is_said_with_the_command_that_measures_it(invented, tmp_path):
    path = tmp_path / "a.json"
    shown = _bench("--budget", "3s", "--json", path)
    assert shown.exit_code == 0, shown.output
    wanted = r"sort u32 n=2\^10: not measured within 3 s\. gridwise bench sort --n 2\^10 --datatype u32 measures it"
    assert re.search(wanted, " ".join(shown.stdout.split()))
    assert len(read_results(path).results) < 9


def test_a_budget_is_a_time():
    for text, seconds in {"60s": 60.0, "90": 90.0, "1.5min": 90.0, "2m": 120.0, "1h": 3600.0}.items():
        assert Duration().convert(text, None, None) == seconds
    for text in ("0s", "ten", "5 days", "-5s", "1e9h", ""):
        shown = _bench("copy", "--budget", text)
        assert (shown.exit_code, "--budget" in shown.stderr) == (2, True)


def test_what_the_options_ask_for(monkeypatch):
    asked = []

    def run_jobs(request, *_, **__):
        asked.append((request.processes, request.fills_budget, request.budget_s))
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_jobs", run_jobs)
    for words, *wanted in (
        ([], None, False, 60.0),
        (["--processes", 4], 4, False, 60.0),
        (["--budget", "2min"], None, True, 120.0),
        (["--budget", "2min", "--processes", 4], 4, False, 120.0),
        (["--suite", "quick"], 1, False, 60.0),
        (["--suite", "quick", "--processes", 2], 2, False, 60.0),
    ):
        CliRunner().invoke(main, ["bench", *map(str, words)])
        assert asked.pop() == tuple(wanted), words


def test_the_processes_of_a_run_share_its_time():
    """A CPU adapter still chooses an n that ends in time, and leaves a last process out rather than half of it."""
    jobs = _jobs_at(1 << 16)
    model = CostModel(replace(BENCH_PROTOCOL, timeout_s=1 / 3, warmup_s=0.1), 6.0)
    n = choose_n(lambda n: in_processes(_jobs_at(n), 3, 0), model, 60.0)
    assert 1 << 12 <= n <= choose_n(_jobs_at, model, 60.0)
    clock = Clock()
    schedule = Schedule(in_processes(jobs, 3, 0), model, clock, clock.now, 60.0)
    ran = {0: 0, 1: 0, 2: 0}
    for job in schedule.jobs:
        if schedule.admits(job):
            schedule.began()
            clock.now += 2.5
            schedule.finished(job, None)
            ran[job.process] += 1
    assert ran == {0: len(jobs), 1: len(jobs), 2: 0}
    assert schedule.elapsed_s < 60


def test_quiet_says_nothing_on_stderr(invented):
    shown = _bench("copy", "--n", 100, "--quiet")
    assert shown.stderr == ""
    assert "medians" not in shown.stdout
    assert "right" in shown.stdout


# ---- what is said while it runs


def _progress(terminal=False, width=80):
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, force_terminal=terminal, width=width, legacy_windows=False)
    return BenchProgress(console, clock), clock, out


def _begun(progress, clock, jobs):
    schedule = Schedule(jobs, CostModel(BENCH_PROTOCOL, 6.0), clock, clock.now)
    progress.planned(schedule, "invented", None)
    progress.began(jobs[0], jobs[1:])
    schedule.began()
    return schedule


def test_a_status_has_the_case_its_time_and_what_is_left():
    progress, clock, _ = _progress()
    jobs = [job for job in _jobs_at(1 << 18) if job.case.primitive == "sort"]
    schedule = _begun(progress, clock, jobs)
    left_s = schedule.left_s(jobs)
    clock.now += 3.0
    text = progress.status()
    assert text.startswith(f"1 of 2: {jobs[0]}, for 3 s (its first use compiles its kernels), 3 s in all, about ")
    assert text.endswith(f"about {format_duration(left_s - 3.0)} left")
    clock.now += 1000.0
    behind = format_duration(schedule.left_s(jobs[1:]))
    assert progress.status().endswith(f"16 min 43 s in all, longer than expected, about {behind} for the other cases")
    progress.began(jobs[1], [])
    assert progress.status().endswith("longer than expected")


def test_a_status_past_the_budget_promises_no_end():
    progress, clock, _ = _progress()
    jobs = [job for job in _jobs_at(1 << 18) if job.case.primitive == "sort"]
    schedule = _begun(progress, clock, jobs)
    schedule.budget_s = 20.0
    clock.now += 25.0
    assert progress.status().endswith("25 s in all, longer than expected")


def test_no_more_is_left_than_the_budget_allows():
    progress, clock, _ = _progress()
    jobs = _jobs_at(1 << 24)
    schedule = Schedule(jobs, CostModel(BENCH_PROTOCOL, 6.0), clock, clock.now, budget_s=60.0)
    progress.planned(schedule, "invented", 1 << 24)
    progress.began(jobs[0], jobs[1:])
    schedule.began()
    assert schedule.left_s(jobs) > 60
    clock.now += 20.0
    assert progress.status().endswith("20 s in all, about 40 s left")


def test_without_a_terminal_a_case_is_a_line_and_a_long_one_says_that_it_lives():
    progress, clock, out = _progress()
    jobs = _jobs_at(1 << 18)
    said = threading.Event()
    write = out.write
    with progress:
        _begun(progress, clock, jobs)
        progress.finished(jobs[0], result_of(measurement("copy", 1 << 18, op=None)))
        assert progress.status() == "", "nothing is said of a case that is done"
        progress.began(jobs[1], jobs[2:])
        lines = out.getvalue().splitlines()
        assert lines[0].startswith("9 cases on invented, about ")
        assert re.fullmatch(r"1 of 9: copy u32 hot n=2\^18: [\d.]+ µs ±\S+ % right", lines[1])
        out.write = lambda text: (write(text), said.set())[0]
        assert not said.wait(0.5), "nothing is due yet"
        clock.now += 11.0
        assert said.wait(60.0)
        said.clear()
        assert not said.wait(0.5), "and then not before the next time"
    assert "for 11 s" in out.getvalue()


def test_a_terminal_gets_a_display_that_is_gone_at_the_end():
    progress, clock, out = _progress(terminal=True)
    jobs = _jobs_at(1 << 18)
    with progress:
        _begun(progress, clock, jobs)
        progress.finished(jobs[0], result_of(measurement("copy", 1 << 18, op=None)))
        progress._live.refresh()
    assert "1 of 9: copy u32 hot n=2^18" in out.getvalue()
    assert out.getvalue().endswith("\x1b[1A\x1b[2K"), "the last thing is that it is erased"


def test_durations():
    for seconds, text in ((0.2, "1 s"), (35.4, "35 s"), (100, "1 min 40 s"), (60, "60 s"), (7500, "2 h 5 min")):
        assert format_duration(seconds) == text


# ---- what is said before anything is measured


def test_a_range_that_looks_like_exponents_gets_a_hint_before_anything_is_measured(invented):
    assert axis_hint(" n = [ 16:28:4 ]").endswith("write n[pow2]=[ 16:28:4 ]")
    for text in ("n[pow2]=[12:14]", "n=12,14", "n=[100:200:50]", "op=add,min"):
        assert axis_hint(text) is None
    shown = _bench("copy", "-a", "n=[12:13]")
    assert shown.stderr.startswith("gridwise: n=[12:13] is n = 12, 13; for 2^12 to 2^13 write n[pow2]=[12:13]")


def test_a_primitive_without_the_datatype_is_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(runner, "request_device", lambda adapter: pytest.fail("a device was asked for"))
    shown = _bench("map", "--datatype", "u64")
    assert shown.exit_code == 2
    assert "map has no datatype u64; it has u32, i32, f32; u64 is for " in shown.output
    # One of several will do.
    axes = collect_axes(["datatype=u64,f32"], {}, DEFAULT_AXES)
    need_datatypes([Sweep(("map", "sort"), axes)])


def test_a_count_of_tune_is_written_as_any_other(device, monkeypatch):
    tune = importlib.import_module("gridwise_py.bench.sweep.tune")
    seen = []
    monkeypatch.setattr("gridwise_py.request_device", lambda adapter: device)
    monkeypatch.setattr(tune, "tune", lambda device, wanted, **options: seen.append(options["max_items"]))
    for text in ("2^14", "16384"):
        assert CliRunner().invoke(main, ["tune", "--max-n", text, "--format", "json"]).exit_code == 0
    assert seen == [1 << 14] * 2
    refused = CliRunner().invoke(main, ["tune", "--max-n", "many"])
    assert refused.exit_code == 2
    assert "'many' is not a count of at least 1; write 1000" in refused.output
