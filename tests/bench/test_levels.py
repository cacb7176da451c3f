"""Levels of processes: differences with the process as unit, repeatability, and where the spread of times is."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.calibrate import repeatability
from gridwise_py.bench.calibrate.repeatability import Spread, spread_for, time_class_ns
from gridwise_py.bench.results.precision import TARGET, half_interval, levels_of, precision_line
from gridwise_py.bench.sampling import machine_load
from gridwise_py.bench.stats.levels import (
    Components,
    Repeatability,
    advised,
    components,
    difference,
    mean_level,
    process_levels,
    step_share,
)
from gridwise_py.bench.stats.verdict import Cause, Pair, VerdictKind, judge_all
from gridwise_py.bench.sweep.budget import LEAST_PROCESSES
from gridwise_py.bench.sweep.repeatability import spreads_of
from gridwise_py.storage import cache
from helpers.comparisons import H200, document, entry, series
from helpers.results import loaded

LOW, HIGH = math.log(1e5), math.log(1.1e5)


def _levels(count, seed, sd=0.01, mean=0.0):
    return mean + sd * np.random.default_rng(seed).standard_normal(count)


# ---- estimates, against scipy


def test_as_many_processes_are_students_t():
    old, new = _levels(5, 1), _levels(5, 2, mean=0.02)
    found, right = difference(old, new), scipy.stats.ttest_ind(new, old)
    interval = right.confidence_interval(0.95)
    assert found.p_value == pytest.approx(right.pvalue)
    assert (found.value - found.reach(0.95), found.value + found.reach(0.95)) == pytest.approx(
        (interval.low, interval.high)
    )


def test_other_numbers_of_processes_are_welchs_t():
    old, new = _levels(3, 1, sd=0.05), _levels(12, 2)
    found, right = difference(old, new), scipy.stats.ttest_ind(new, old, equal_var=False)
    assert found.p_value == pytest.approx(right.pvalue)
    assert found.degrees == pytest.approx(right.df)


def test_one_process_takes_the_spread_of_the_other_side():
    old, new = _levels(6, 1), _levels(1, 2)
    found = difference(old, new)
    assert found.degrees == 5
    assert found.error == pytest.approx(old.std(ddof=1) * math.sqrt(1 / 6 + 1))


def test_nothing_is_known_of_two_single_processes_unless_it_was_learnt():
    old, new = _levels(1, 1), _levels(1, 2)
    assert difference(old, new) is None
    found = difference(old, new, Repeatability(0.03, 5))
    assert (found.error, found.degrees) == (pytest.approx(0.03 * math.sqrt(2)), 5)
    # With few processes, both count; with enough, only their own spread.
    assert difference(_levels(2, 1), _levels(2, 2), Repeatability(0.03, 5)).degrees == 7
    assert difference(_levels(3, 1), _levels(3, 2), Repeatability(0.03, 5)).degrees == 4


def test_with_unequal_numbers_of_processes_the_wider_of_two_intervals_counts():
    """A run that ends when its interval is narrow has a spread of its own that is too small."""
    for counts, spreads in (((5, 30), (0.01, 0.01)), ((5, 30), (0.05, 0.01)), ((5, 30), (0.01, 0.05))):
        old, new = _levels(counts[0], 1, spreads[0]), _levels(counts[1], 2, spreads[1])
        tests = [scipy.stats.ttest_ind(new, old, equal_var=equal) for equal in (True, False)]
        widths = [np.subtract(*test.confidence_interval(0.95)[::-1]) / 2 for test in tests]
        found = difference(old, new)
        assert found.reach(0.95) == pytest.approx(max(widths))
        assert found.p_value == pytest.approx(tests[int(np.argmax(widths))].pvalue)


def test_a_level_is_the_mean_of_its_rounds():
    blocks = [np.full(9, value) for value in (1.0, 4.0, 10.0, 1000.0)]
    assert process_levels(blocks, [7, 7, 3, 3]) == pytest.approx(np.log([100.0, 2.0]))


def test_the_interval_of_processes_covers_what_it_says():
    """The whole table is in docs/contribute/statistics.md, from interval_coverage.py at 79ce4883."""
    for processes in [5, 10]:
        for apart in [0.01, 0.05]:
            for shape, least, most in [("normal", 0.93, 0.97), ("two modes", 0.92, 0.96)]:
                rng = np.random.default_rng([int(1e4 * apart), processes])
                levels = rng.standard_normal((3000, processes))
                if shape == "two modes":
                    levels = 0.95 * rng.choice([-1, 1], levels.shape) + 0.312 * levels
                hits = np.mean([abs(found.value) <= found.reach(0.95) for found in map(mean_level, apart * levels)])
                # Two standard errors more than the range of the page.
                assert least - 0.008 <= hits <= most + 0.008


# ---- verdicts


def _run(levels, seed, sd=0.004):
    rng = np.random.default_rng(seed)
    return [math.exp(LOW + level) * np.exp(sd * rng.standard_normal(60)) for level in levels]


def _judged(old, new, *, threshold=0.02, **more):
    pair = Pair(old, new, old_processes=range(len(old)), new_processes=range(len(new)), **more)
    return judge_all([pair], threshold=threshold)[0]


def test_the_level_of_a_process_is_no_verdict():
    """Two files of one process each, as far apart as processes are, and as sure of themselves."""
    alone = judge_all([Pair(_run([0.0], 1), _run([0.06], 2))])[0]
    assert alone.kind is VerdictKind.SLOWER, "the samples cannot tell"
    told = judge_all([Pair(_run([0.0], 1), _run([0.06], 2), varies_by_process=True)])[0]
    assert (told.kind, told.cause) == (VerdictKind.AMBIGUOUS, Cause.SINGLE)
    learnt = judge_all([Pair(_run([0.0], 1), _run([0.06], 2), repeatability=Repeatability(0.04, 5))])[0]
    assert (learnt.kind, learnt.cause) == (VerdictKind.AMBIGUOUS, Cause.SINGLE)
    sure = judge_all([Pair(_run([0.0], 1), _run([0.06], 2), repeatability=Repeatability(0.001, 5))])[0]
    assert sure.kind is VerdictKind.SLOWER


def test_files_of_several_processes_are_wrong_in_less_than_one_of_a_hundred():
    rng = np.random.default_rng(7)
    kinds = [_judged(*(_run(0.03 * rng.standard_normal(5), seed) for seed in (2 * i, 2 * i + 1))).kind
             for i in range(60)]  # fmt: skip
    assert kinds.count(VerdictKind.SLOWER) + kinds.count(VerdictKind.FASTER) <= 2


def test_five_percent_are_found_where_processes_are_alike():
    rng = np.random.default_rng(8)
    for i in range(20):
        levels = 0.005 * rng.standard_normal((2, 5)) + [[0.0], [math.log(1.05)]]
        assert _judged(_run(levels[0], 2 * i), _run(levels[1], 2 * i + 1)).kind is VerdictKind.SLOWER


STEP_NS = 32.0


def _short_run(steps):
    """Samples of processes that repeat one multiple of the clock's step, as those of a short kernel do."""
    return [[STEP_NS * step] * 60 for step in steps]


def test_rounding_errors_of_times_in_different_steps_average_out():
    times_ns, weights = STEP_NS * np.arange(198.0, 203.0), np.ones(5)
    half = STEP_NS / 2 / (200 * STEP_NS)
    assert step_share(np.full(5, 200 * STEP_NS), weights, STEP_NS) == pytest.approx(half)
    assert step_share(times_ns[2:3], weights[:1], STEP_NS) == pytest.approx(half)
    assert step_share(times_ns, weights, STEP_NS) == pytest.approx(half / math.sqrt(5))
    # Of two steps, one with four of five times.
    mixed_ns = STEP_NS * np.array([200.0, 200.0, 200.0, 200.0, 201.0])
    assert step_share(mixed_ns, weights, STEP_NS) == pytest.approx(half * math.sqrt(17 / 25), rel=2e-3)
    # Less than half a step apart is one step; the weights count, not the times.
    assert step_share(200 * STEP_NS + np.array([-3.0, 3.0]), weights[:2], STEP_NS) == pytest.approx(half)
    assert step_share(times_ns[1:4:2], np.array([3.0, 1.0]), STEP_NS) == pytest.approx(
        half * math.sqrt(10 / 16), rel=1e-2
    )
    assert step_share(times_ns, weights, 0.0) == 0


def test_levels_in_many_steps_settle_what_levels_in_one_step_cannot():
    """A kernel of 2 µs: the levels of two runs of 7 processes allow 2.5 %; half a step for each side is 1.6 % more."""
    spread = [60, 63, 62, 61, 62, 64, 62], [62, 61, 63, 62, 60, 62, 64]
    apart = _judged(*map(_short_run, spread), threshold=0.03)
    rounded = _judged(*map(_short_run, spread), tick_step_ns=STEP_NS, threshold=0.03)
    assert (apart.kind, rounded.kind) == (VerdictKind.SAME, VerdictKind.SAME)
    assert rounded.high > apart.high
    one_step = _judged(_short_run([62] * 7), _short_run([62] * 7), tick_step_ns=STEP_NS, threshold=0.01)
    assert (one_step.kind, one_step.cause) == (VerdictKind.AMBIGUOUS, Cause.CLOCK_STEP)
    assert one_step.high == pytest.approx(math.exp(1 / 62))


def test_rounds_of_a_process_count_as_one_weight():
    """A process in one step with three rounds weighs as much as one in another step with one round."""
    runs = _short_run([62, 62, 62, 70]), _short_run([62, 70])
    found = judge_all(
        [Pair(*runs, tick_step_ns=STEP_NS, old_processes=(0, 0, 0, 1), new_processes=(0, 1))]
    )[0]  # fmt: skip
    assert found.step_share == pytest.approx(2 * STEP_NS / 2 / (66 * STEP_NS) / math.sqrt(2), rel=1e-2)


def test_intervals_of_rounded_levels_contain_the_truth():
    """Levels some steps apart (standard deviation), each process with one multiple of the step."""
    for shape in ["normal", "two modes"]:
        for apart in [0.0, 0.3, 1.0, 3.0]:
            rng = np.random.default_rng(11)
            hits, count = 0, 400
            for _ in range(count):
                time_ns, change = STEP_NS * (200 + rng.random()), rng.uniform(-0.03, 0.03)
                z = rng.standard_normal((2, 5)) if shape == "normal" else rng.choice([-1.0, 1.0], (2, 5))
                sides = np.rint(time_ns / STEP_NS * np.exp(apart / 200 * z + [[0.0], [change]])) * STEP_NS
                found = difference(*np.log(sides))
                step = sum(step_share(side, np.ones(5), STEP_NS) for side in sides)
                hits += abs(found.value - change) <= math.hypot(found.reach(0.95), step)
            assert hits / count >= 0.925


def test_the_processes_must_be_of_the_blocks():
    with pytest.raises(gw.ArgumentError, match="has 2 blocks, but the processes of 3"):
        judge_all([Pair(_run([0, 0], 1), _run([0, 0], 2), old_processes=(0, 1, 2), new_processes=(0, 1))])


# ---- where the spread is


def _spread_run(process_sd, round_sd, sample_sd, seed=0, processes=120, rounds=4):
    rng = np.random.default_rng(seed)
    blocks, numbers = [], []
    for process in range(processes):
        level = process_sd * rng.standard_normal()
        for _ in range(rounds):
            own = level + round_sd * rng.standard_normal()
            blocks.append(1e5 * np.exp(own + sample_sd * rng.standard_normal(40)))
            numbers.append(process)
    return blocks, numbers


def test_each_level_has_its_part():
    for sds in [(0.05, 0.01, 0.02), (0.02, 0.04, 0.02), (0.03, 0.03, 0.001)]:
        found = components(*_spread_run(*sds))
        assert (found.process, found.round, found.sample) == pytest.approx(sds, rel=0.2)
        if sds[0] != sds[1]:
            assert found.dominant == ("process" if sds[0] > sds[1] else "round")


def test_what_was_not_measured_is_not_known():
    blocks, numbers = _spread_run(0.05, 0.01, 0.02, processes=1)
    assert components(blocks, numbers).process is None
    assert components(blocks, numbers).dominant is None
    assert components(blocks[:1], [0]).round is None


def test_time_is_spent_where_the_spread_is():
    by_process = advised(Components(0.05, 0.001, 0.01), process_s=2.0, round_s=0.5, sample_s=0.01)
    by_round = advised(Components(0.001, 0.05, 0.01), process_s=2.0, round_s=0.5, sample_s=0.01)
    by_sample = advised(Components(0.001, 0.001, 0.05), process_s=2.0, round_s=0.5, sample_s=0.01)
    assert by_process[0] == 1
    assert by_round[0] == 10
    assert by_sample[1] > by_process[1]
    assert advised(Components(0.0, 0.0, 0.0), 2.0, 0.5, 0.01) == (1, 20)
    assert advised(Components(0.01, None, 0.01), 2.0, 0.5, 0.01)[0] == 1


# ---- repeatability


def _spread(below_ns, log_std, mode="latency", name="gpu_span"):
    return Spread(mode=mode, series=name, below_ns=below_ns, log_std=log_std, degrees=5.0)


def test_the_spread_of_a_time_is_that_of_its_class():
    spreads = [_spread(20e3, 0.03), _spread(None, 0.001)]
    assert [time_class_ns(ns) for ns in (1e3, 19_999.0, 20e3, 1e9)] == [20e3, 20e3, 200e3, None]
    assert spread_for(spreads, "latency", "gpu_span", 6e3).log_std == 0.03
    assert spread_for(spreads, "latency", "gpu_span", 50e3).log_std == 0.03, "that of shorter times"
    assert spread_for(spreads, "latency", "gpu_span", 1e6).log_std == 0.001
    assert spread_for(spreads, "latency", "cpu_wall", 1e6) is None
    assert spread_for(spreads, "hot", "gpu_span", 1e6) is None
    assert spread_for(spreads[1:], "latency", "gpu_span", 6e3) is None, "a longer time tells nothing of a shorter one"


def test_what_was_learnt_is_kept_on_disk(device, tmp_path, monkeypatch):
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path))
    assert repeatability.known_spreads(device) == ()
    spreads = (_spread(20e3, 0.03), _spread(None, 0.001))
    assert repeatability.store_spreads(device, spreads)
    assert repeatability.known_spreads(device) == spreads
    key = gw.capabilities(device)
    assert repeatability.spreads_of_adapter(key.adapter, key.backend, key.driver) == spreads
    assert repeatability.spreads_of_adapter(key.adapter, key.backend, "another driver") == ()
    (path,) = tmp_path.glob("repeatability-*.json")
    path.write_text(path.read_text().replace("0.03", "-1"))
    assert repeatability.known_spreads(device) == ()
    assert cache.load("repeatability", {}, 1) is None


def test_it_is_learnt_from_the_levels_of_processes():
    rng = np.random.default_rng(0)
    entries = []
    for process in range(6):
        made = entry(rng, "copy", kernels=("copy",), mode="latency", process=process)
        for name, level, sd in (("gpu_span", 6e3, 0.03), ("cpu_wall", 1e5, 0.2)):
            own = level * np.exp(sd * (process - 2.5))
            made["whole"]["series"][name] = series(np.full(60, own).tolist())
        entries.append(made)
    found = {(one.series, one.below_ns): one for one in spreads_of(loaded(document(entries=entries)))}
    unit = np.std(np.arange(6), ddof=1)
    assert found["gpu_span", 20e3].log_std == pytest.approx(0.03 * unit)
    assert found["cpu_wall", 200e3].log_std == pytest.approx(0.2 * unit)
    assert {one.degrees for one in found.values()} == {5.0}


def test_a_file_brings_what_was_learnt():
    from gridwise_py.bench.analysis.compare import compare

    spreads = [{"mode": "latency", "series": name, "below_ns": None, "log_std": sd, "degrees": 5}
               for name, sd in (("gpu_span", 0.002), ("cpu_wall", 0.1))]  # fmt: skip
    rng = np.random.default_rng(3)
    sides = [
        loaded(document(device={**H200, "repeatability": known}, entries=[
            entry(rng, "copy", n=1 << 24, kernels=("copy",), mode="latency", scale=scale)]))
        for known, scale in (([], 10.0), (spreads, 12.0))]  # fmt: skip
    rows = {row.name: row for row in compare(*sides).rows}
    assert rows["gpu_span"].verdict.kind is VerdictKind.SLOWER
    assert rows["gpu_span"].past_gate
    assert rows["cpu_wall"].verdict.cause is Cause.SINGLE, "walls differ by 10 %"


def test_cpu_walls_are_gated_only_on_request():
    from gridwise_py.bench.analysis.compare import compare

    rng = np.random.default_rng(3)
    sides = [
        loaded(document(entries=[entry(rng, "copy", kernels=("copy",), mode="latency", process=process)
                                 for process in range(5)]))
        for _ in range(2)]  # fmt: skip
    walls = [result.whole.series["cpu_wall"] for result in sides[1].results]
    for wall in walls:
        object.__setattr__(wall, "samples_ns", tuple(2 * x for x in wall.samples_ns))
    rows = {row.name: row for row in compare(*sides).rows}
    assert rows["cpu_wall"].verdict.kind is VerdictKind.SLOWER, "it is shown"
    assert not compare(*sides).regressed
    assert compare(*sides, gate_walls=True).regressed


# ---- the load of the machine


def _stat(monkeypatch, tmp_path, *readings):
    """/proc/stat and the clock, one reading after the other: seconds, all busy jiffies, own seconds."""
    left = list(readings)

    def read():
        now_s, busy, own_s = left.pop(0)
        (tmp_path / "stat").write_text(f"cpu  {busy} 0 0 {10**6} 999 0 0 0 0 0\n")
        monkeypatch.setattr(machine_load.time, "perf_counter", lambda: now_s)
        monkeypatch.setattr(machine_load.os, "times", lambda: SimpleNamespace(user=own_s, system=0.0))

    monkeypatch.setattr(machine_load, "_STAT", tmp_path / "stat")
    monkeypatch.setattr(machine_load.os, "sysconf", lambda name: 100)
    monkeypatch.setattr(machine_load.os, "cpu_count", lambda: 2)
    return read


def test_the_load_is_that_of_other_processes(monkeypatch, tmp_path):
    read = _stat(monkeypatch, tmp_path, (10.0, 1000, 5.0), (12.0, 1300, 7.0))
    read()
    watch = machine_load.LoadWatch()
    read()
    # 3 s of 2 processors in 2 s, of which 2 s were ours.
    assert watch.share() == pytest.approx(0.25)


def test_a_load_that_cannot_be_told_is_none(monkeypatch, tmp_path):
    read = _stat(monkeypatch, tmp_path, (10.0, 1000, 5.0), (10.01, 1001, 5.0))
    read()
    watch = machine_load.LoadWatch()
    read()
    assert watch.share() is None, "too short"
    (tmp_path / "stat").write_text("no such line\n")
    assert watch.share() is None
    monkeypatch.setattr(machine_load, "_STAT", tmp_path / "none")
    assert machine_load.LoadWatch().share() is None


# ---- the command


def test_calibrate_shows_what_it_learnt(monkeypatch, device):
    from gridwise_py.bench.sweep import repeatability as learning
    from gridwise_py.cli import main

    spreads = (_spread(20e3, 0.03), _spread(None, 0.2, name="cpu_wall"))
    asked = []

    def learn(of, adapter, *, progress):
        asked.append(adapter)
        return spreads, loaded(document())

    monkeypatch.setattr(learning, "learn_repeatability", learn)
    shown = CliRunner().invoke(main, ["calibrate", "--repeatability"])
    assert shown.exit_code == 0, shown.output
    assert "20.0 µs" in shown.stdout
    assert "3.0 %" in shown.stdout
    assert "22 %" in shown.stdout
    shown = CliRunner().invoke(main, ["calibrate", "--repeatability", "--adapter", "0", "--format", "json"])
    assert [one["log_std"] for one in json.loads(shown.stdout)] == [0.03, 0.2]
    assert asked == [None, "0"]


def test_a_line_says_what_was_reached():
    entries = [entry(np.random.default_rng(p), "copy", kernels=("copy",), process=p) for p in range(4)]
    for process, made in enumerate(entries):
        made["whole"]["series"]["gpu_span"] = series((1e5 * (1 + 0.01 * process) + np.arange(60.0)).tolist())
    results = loaded(document(entries=entries)).results
    levels = levels_of(results, 2.0)
    assert (levels[0].processes, levels[0].dominant, levels[0].round_std) == (4, "process", None)
    right = scipy.stats.t.ppf(0.975, 3) * np.std([math.log(1 + 0.01 * p) for p in range(4)], ddof=1) / 2
    assert levels[0].half_interval == pytest.approx(math.expm1(right), rel=0.01)
    line = precision_line(levels, results)
    assert f"reached in 4 processes: ±{100 * levels[0].half_interval:.1f} %" in line
    # The quantile of Student's t shrinks, too: 3.182/√4 for four processes, 2.306/√9 for nine.
    assert "--processes 9 would about halve it" in line
    assert "1 case is wider than the target of ±0.7 %" in precision_line(levels, results, fills_budget=True)
    narrow = [replace(levels[0], half_interval=0.004, processes=7), replace(levels[0], half_interval=0.006)]
    line = precision_line(narrow, results, fills_budget=True)
    assert "in 4 to 7 processes" in line
    assert "All are within ±0.7 %" in line
    assert levels_of(results[:1], 2.0) == ()
    assert precision_line((), results) == ""
    assert "one process" in precision_line((), results, fills_budget=True)


def test_half_an_interval_is_that_of_the_levels():
    """In little time, and the same wherever it decides."""
    for step in (0.0, 1e-4, 1e-3, 1e-2, 0.5):
        entries = [entry(np.random.default_rng(p), "copy", kernels=("copy",), process=p) for p in range(4)]
        for process, made in enumerate(entries):
            times = 1e5 * (1 + step * process) * (1 + 2e-3 * np.random.default_rng(process).standard_normal(60))
            made["whole"]["series"]["gpu_span"] = series(times.tolist())
        results = loaded(document(entries=entries)).results
        (levels,) = levels_of(results, 2.0)
        assert half_interval(results) == pytest.approx(levels.half_interval, rel=1e-9), step
    assert half_interval(results[:1]) == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.006, 0.01, 0.02])
def test_intervals_of_runs_that_end_when_they_are_narrow_contain_the_truth(spread):
    """The rule of `--budget`: seven processes at least, and narrow twice in a row."""
    rng = np.random.default_rng(11)
    counts = np.arange(LEAST_PROCESSES, 51)
    student = scipy.stats.t.ppf(0.975, counts - 1)

    def run():
        levels = rng.normal(0, spread, 50)
        sums, squares = np.cumsum(levels)[counts - 1], np.cumsum(levels**2)[counts - 1]
        variances = (squares - sums**2 / counts) / (counts - 1)
        narrow = student * np.sqrt(variances / counts) <= TARGET
        ends = counts[1:][narrow[1:] & narrow[:-1]]
        return levels[: ends[0] if ends.size else 50]

    hits = np.zeros(2)
    for _ in range(1000):
        old, new = run(), run()
        alone, both = mean_level(old), difference(old, new)
        hits += [abs(alone.value) <= alone.reach(0.95), abs(both.value) <= both.reach(0.95)]
    assert (hits >= 920).all(), hits
    assert (hits <= 975).all(), hits
