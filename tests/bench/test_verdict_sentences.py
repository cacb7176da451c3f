"""What `gridwise compare` says of a row is true of its numbers.

Each sentence is read back, and what it claims is worked out here from the samples and flags in the two files, and from
the interval and p of the row: without the code that chose the sentence.
"""

import itertools
import json
import math
import re
from collections import Counter

import numpy as np
import pytest
import scipy.stats

from gridwise_py.bench.analysis.compare import compare
from gridwise_py.bench.report.comparison import comparison_remarks
from gridwise_py.bench.results.model import Result
from gridwise_py.bench.results.schema import check_document
from gridwise_py.bench.stats.verdict import Cause, VerdictKind
from helpers.comparisons import H200, LAVAPIPE, document, entry, series
from helpers.paths import RESULTS
from helpers.results import committed, loaded
from helpers.synthetic import times

NUMBER = r"([\d.e+-]*\d)"
AMBIGUOUS = VerdictKind.AMBIGUOUS


class Facts:
    """What is known of a row, from the files and from its numbers alone."""

    def __init__(self, row, old, new):
        self.v, self.row = row.verdict, row
        self.on_cpu = old["device"]["adapter_type"] == "CPU"
        self.step_ns = max(d["device"]["tick_step_ns"] or 0.0 for d in (old, new))
        entries = [[e for e in d["results"] if Result.from_json(e).name_with_n == row.case] for d in (old, new)]
        self.blocks = [[self._samples(e) for e in side] for side in entries]
        self.moved = any(e["clock_moved"] for side in entries for e in side)
        self.canaries = [[t for e in side for t in e["canary_ns"]] for side in entries]
        self.trials = entries[0][0]["trials"] if entries[0][0]["mode"] == "batch" else 1
        self.limit = math.log1p(self.v.threshold)
        self.counts = [sum(map(len, side)) for side in self.blocks]
        self.rounds = [len(side) for side in self.blocks]
        self.processes = [[e.get("process", 0) for e in side] for side in entries]
        self.loads = [e.get("other_load") or 0.0 for side in entries for e in side]
        self.mode = entries[0][0]["mode"]

    def _samples(self, e):
        if self.row.part == "whole":
            return e["whole"]["series"][self.row.name]["samples_ns"]
        (kernel,) = [k for k in e["kernels"] if k["label"] == self.row.name]
        return kernel["samples_ns"]

    @property
    def ends(self):
        return math.log(self.v.low), math.log(self.v.high)

    def ratio(self):
        """New by old of the medians, or of the middle halves."""
        if any(len(set(side)) > 1 for side in self.processes):
            return math.exp(float(np.diff([np.mean(levels) for levels in self.levels()])[0]))
        joined = [np.concatenate(side) for side in self.blocks]
        if self.v.statistic == "median":
            return np.median(joined[1]) / np.median(joined[0])
        return scipy.stats.trim_mean(joined[1], 0.25) / scipy.stats.trim_mean(joined[0], 0.25)

    def levels(self):
        """Per side the mean logarithm of each process."""
        of = np.median if self.v.statistic == "median" else lambda x: scipy.stats.trim_mean(x, 0.25)
        return [
            [np.mean([math.log(of(b)) for b, p in zip(blocks, processes, strict=True) if p == process])
             for process in sorted(set(processes))]
            for blocks, processes in zip(self.blocks, self.processes, strict=True)
        ]  # fmt: skip

    def correlated(self):
        """Whether neighbours of a side depend on each other, or its first half differs from its second."""
        found = []
        for side in self.blocks:
            for x in map(np.asarray, side):
                sign = np.sign(x - np.median(x))
                found.append(abs(np.corrcoef(sign[:-1], sign[1:])[0, 1]) > 1.65 / math.sqrt(x.size))
        return any(found)


def near(text, value):
    is_rough = "e" in text or value > 1000 or value < 0.01
    return float(text) == pytest.approx(value, rel=0.05 if is_rough else 1e-4, abs=0 if is_rough else 5.1e-5)


# ---- what each part of a sentence claims


def lies_above(f, low, high, bound):
    return near(low, f.v.low) and near(high, f.v.high) and near(bound, math.exp(f.limit)) and f.ends[0] > f.limit


def lies_below(f, low, high, bound):
    return near(low, f.v.low) and near(high, f.v.high) and near(bound, math.exp(-f.limit)) and f.ends[1] < -f.limit


def lies_within(f, confidence, low, high, percent):
    inside = f.v.same_low > math.exp(-f.limit) and f.v.same_high < math.exp(f.limit)
    asked = near(confidence, 100 * (2 * f.v.confidence - 1)) and near(percent, 100 * f.v.threshold)
    return near(low, f.v.same_low) and near(high, f.v.same_high) and asked and inside


def reaches(f, low, high, below, above):
    bounds = [float(bound) for bound in (below, above) if bound]
    met = [math.exp(-f.limit)] * (f.ends[0] <= -f.limit) + [math.exp(f.limit)] * (f.ends[1] >= f.limit)
    return near(low, f.v.low) and near(high, f.v.high) and bounds == pytest.approx(met, rel=1e-3) and bool(met)


def is_p(f, p):
    return float(p) == pytest.approx(f.v.p_corrected, rel=0.06)


def agrees(f, p):
    return is_p(f, p) and max(float(p), f.v.p_corrected) <= 1 - f.v.confidence + 1e-12


def disagrees(f, p):
    return is_p(f, p) and min(float(p), f.v.p_corrected) > 1 - f.v.confidence


def canary_ran_at(f, times_as_long):
    medians = [np.median(side) for side in f.canaries]
    return float(times_as_long) == pytest.approx(f.v.clock_ratio, rel=1e-3) and (medians[1] > medians[0]) == (
        f.v.clock_ratio > 1
    )


def step_is_large(f, percent):
    step_ns = f.step_ns / f.trials
    alone = [1.0, 1.0]
    if any(len(set(side)) > 1 for side in f.processes):
        # The probability that two visits of a side, chosen by their weights, are of the same step of the clock.
        alone = []
        for blocks, processes in zip(f.blocks, f.processes, strict=True):
            of_step = Counter()
            for block, process in zip(blocks, processes, strict=True):
                of_step[round(np.median(block) / step_ns)] += 1 / processes.count(process) / len(set(processes))
            alone.append(math.sqrt(sum(share**2 for share in of_step.values())))
    off = step_ns / 2 * (alone[0] / f.v.old_ns + alone[1] / f.v.new_ns)
    return off > f.limit / 2 and float(percent) == pytest.approx(100 * off, rel=0.1)


def rounds_differ(f):
    logs = [[math.log(np.median(block)) for block in side] for side in f.blocks]
    interval = scipy.stats.ttest_ind(logs[1], logs[0]).confidence_interval(f.v.confidence)
    within = max(scipy.stats.median_abs_deviation(b, scale="normal") / np.median(b) for s in f.blocks for b in s)
    return (
        sum(f.rounds) > 2 and interval.high - interval.low > 0.8 * (f.ends[1] - f.ends[0]) and np.std(logs) > within / 8
    )


def processes_differ(f, percent, old, new):
    sides = f.levels()
    interval = scipy.stats.ttest_ind(sides[1], sides[0]).confidence_interval(f.v.confidence)
    spread = math.sqrt(
        (np.var(sides[0]) * len(sides[0]) + np.var(sides[1]) * len(sides[1])) / (int(old) + int(new) - 2)
    )
    return (
        [int(old), int(new)] == [len(set(side)) for side in f.processes]
        and (interval.low, interval.high) == pytest.approx(f.ends, abs=1e-3)
        and float(percent) == pytest.approx(100 * math.expm1(spread), rel=0.1)
    )


def half_width(f):
    centre = math.log(f.ratio())
    return max(f.ends[1] - centre, centre - f.ends[0])


def margin(f):
    return abs(abs(math.log(f.ratio())) - f.limit)


def few_for_the_threshold(f):
    return 0.99 * margin(f) <= half_width(f) <= 10.01 * margin(f)


CLAIMS = [
    (rf"the whole interval, {NUMBER} to {NUMBER}, lies above {NUMBER}", lies_above),
    (rf"the whole interval, {NUMBER} to {NUMBER}, lies below {NUMBER}", lies_below),
    (rf"the whole interval of {NUMBER} %, {NUMBER} to {NUMBER}, lies within {NUMBER} %", lies_within),
    (rf"the interval, {NUMBER} to {NUMBER}, reaches beyond (0\.\d+)?(?: and )?(1\.\d+)?", reaches),
    (rf", and the test for any difference agrees \(p = {NUMBER}\)", agrees),
    (rf", but the test for any difference does not agree \(p = {NUMBER}\)", disagrees),
    (r"the GPU's clock moved all through a run", lambda f: f.moved and not f.on_cpu),
    (r"the CPU adapter changed its speed all through a run, as it does when other work runs",
     lambda f: f.moved and f.on_cpu),
    (r", but the adapter is a CPU, and other work took part of the machine while a side was measured",
     lambda f: f.on_cpu and max(f.loads) > 0.1),
    (r"measured in one process, and it is not known how much processes differ here",
     lambda f: f.mode == "latency" and all(len(set(side)) == 1 for side in f.processes)),
    (rf": processes that measure the same case differ by too much for this threshold \(standard deviation {NUMBER} %, "
     r"(\d+) and (\d+) processes\)", processes_differ),
    (r", but a side has a single round, and the adapter is a CPU: other work on the machine may have made the "
     r"difference",
     lambda f: f.on_cpu and min(f.rounds) == 1),
    (r"a side has fewer than 5 independent samples: (\d+) and (\d+), worth (\d+) and (\d+) independent ones",
     lambda f, a, b, c, d: f.counts == [int(a), int(b)] and min(int(c), int(d)) < 5),
    (rf": the canary kernel ran at another clock in NEW, and the interval is widened by the difference "
     rf"\({NUMBER} times its time in OLD\)", lambda f, r: canary_ran_at(f, r) and not f.on_cpu),
    (rf": the canary kernel ran at another speed in NEW, and the interval is widened by the difference "
     rf"\({NUMBER} times its time in OLD\)", lambda f, r: canary_ran_at(f, r) and f.on_cpu),
    (rf": the step of the GPU's clock is over half the threshold, and the interval is widened by it \(±{NUMBER} %\)",
     step_is_large),
    (r": rounds of the same case differ by more than the samples within a round", rounds_differ),
    (r": the times drift during a run, and the interval is widened by the drift", lambda f: f.correlated()),
    (r": a side has fewer than 20 samples, too few to show whether they depend on each other \((\d+) and (\d+)\)",
     lambda f, a, b: f.counts == [int(a), int(b)] and min(f.counts) < 20),
    (r": the times are too noisy for this threshold", lambda f: half_width(f) > f.limit),
    (rf": the difference is about the threshold \({NUMBER} % and {NUMBER} %\)",
     lambda f, d, t: margin(f) < f.limit / 9 and half_width(f) <= f.limit),
    (r": there are too few samples for this threshold", few_for_the_threshold),
    (r"OLD and NEW are the same measurement: all of their times are equal", lambda f: f.blocks[0] == f.blocks[1]),
]  # fmt: skip


def check_row(row, old, new):
    facts, v, rest = Facts(row, old, new), row.verdict, row.verdict.reason
    assert v.ratio == pytest.approx(facts.ratio(), rel=1e-6)
    while rest:
        found = [(m, claim) for pattern, claim in CLAIMS if (m := re.match(pattern, rest))]
        assert found, f"no check for «{rest}»"
        (match, claim), *_ = found
        assert claim(facts, *match.groups()), f"{row.case}, {row.name}: «{match[0]}» is not so: {v}"
        rest = rest[match.end() :]
    # And nothing that is known is kept quiet.
    is_same = facts.blocks[0] == facts.blocks[1]
    if min(v.old_units, v.new_units) < 5 and not is_same:
        assert "fewer than 5 independent" in v.reason
    elif facts.moved and not is_same:
        assert "all through a run" in v.reason
    assert (v.kind is VerdictKind.SLOWER) == ("lies above" in v.reason and "but" not in v.reason)
    assert (v.kind is VerdictKind.FASTER) == ("lies below" in v.reason and "but" not in v.reason)
    assert (v.kind is VerdictKind.SAME) == ("lies within" in v.reason or is_same)
    assert bool(v.settle) == (v.kind is AMBIGUOUS)
    return v.cause


def check_all(old, new, **options):
    """Check all rows, and that each ambiguous one is named below the table under its own cause."""
    found = compare(loaded(old), loaded(new), **options)
    causes = [check_row(row, old, new) for row in found.rows if row.verdict is not None]
    remarks = comparison_remarks(found)
    for row, cause in zip([row for row in found.rows if row.verdict is not None], causes, strict=True):
        if cause is None:
            continue
        (i,) = [i for i, text in enumerate(remarks) if f"{cause.statement}. To settle" in text]
        # In the remark itself, or in a line below it.
        lines = remarks[i : i + 1]
        if remarks[i].endswith(":"):
            below = itertools.takewhile(lambda text: " ambiguous: " not in text, remarks[i + 1 :])
            # A later remark, on two modes, may name the case, too.
            lines = [text for text in below if re.search(r": its 9[05] % interval is ", text)]
        assert sum(row.case in text for text in lines) == 1, (row.case, remarks)
        assert sum(cause.statement in text for text in remarks) == 1, "each cause once"
    return found, causes


# ---- committed results


def _results_files():
    found = []
    for path, text in committed(RESULTS).items():
        found.append(json.loads(text))
        check_document(found[-1], path.name)
    return found


@pytest.mark.slow
@pytest.mark.needs("the repository")
def test_what_is_said_of_the_committed_results_is_true():
    files = _results_files()
    assert len(files) >= 6
    rows, causes, pairs = 0, set(), 0
    for old, new in itertools.permutations(files, 2):
        for threshold in (0.02, 0.002):
            found, of_pair = check_all(old, new, threshold=threshold, force=True)
            pairs += found.comparable
            rows += len(of_pair)
            causes |= set(of_pair)
    assert pairs >= 40
    assert rows >= 500
    assert {None, Cause.CLOCK_MOVED, Cause.CLOCK_DIFFERS, Cause.TIMES_WANDER, Cause.CLOCK_STEP} <= causes


# ---- every kind of sentence


def _with(samples, **more):
    """A result with these times of its one kernel."""
    times_ns = series(samples)
    made = entry(np.random.default_rng(0), "copy", kernels=("copy",), **more)
    made["kernels"] = [{"label": "copy", "gpu_ns": float(np.median(samples)), **times_ns}]
    made["whole"]["series"]["gpu_span"] = times_ns
    made["whole"]["gpu_span_ns"] = float(np.median(samples))
    return made


def _sampled(seed, n=200, sd=0.004, level_ns=1e5, kind="independent"):
    return times(kind, n, np.random.default_rng(seed), level_ns=level_ns, sd=sd).tolist()


def _pair(old, new, *, device=H200, **more):
    return [document(device=device, entries=[_with(x, **more)]) for x in (old, new)]


def _rounds(levels, seed):
    return [_with(_sampled(seed + i, 60, level_ns=1e5 * level), round=i) for i, level in enumerate(levels)]


def _processes(levels, seed, **more):
    return [
        _with(_sampled(seed + i, 60, level_ns=1e5 * level), process=i, **more) for i, level in enumerate(levels)
    ]  # fmt: skip


def _canaries(pair, ratio):
    for found, level in zip(pair, (100.0, 100.0 * ratio), strict=True):
        found["results"][0]["canary_ns"] = [level, level * 1.001, level, level * 1.002]
    return pair


def _without_walls(pair):
    for found in pair:
        del found["results"][0]["whole"]["series"]["cpu_wall"]
    return pair


def _moved(pair):
    pair[1]["results"][0]["clock_moved"] = True
    return pair


def _many_rows(old, new):
    """The row among others, as the rank test is corrected for."""
    others = [[_with(_sampled(2 * i + side), n=3 * i) for i in range(1, 15)] for side in (0, 1)]
    return [document(entries=[_with(x), *more]) for x, more in zip((old, new), others, strict=True)]


def _wandering(seed):
    rng = np.random.default_rng(seed)
    return (1e5 * np.exp(np.cumsum(rng.standard_normal(200)) * 0.01)).tolist()


FASTER, SLOWER, SAME = VerdictKind.FASTER, VerdictKind.SLOWER, VerdictKind.SAME
SETTLED = {
    "slower": (SLOWER, lambda: _pair(_sampled(1), _sampled(2, level_ns=1.2e5))),
    "slower in rounds on a CPU": (SLOWER, lambda: [
        document(device=LAVAPIPE, entries=_rounds([level * k for k in (1, 1.002, 0.998)], seed))
        for level, seed in ((1, 1), (1.3, 9))]),
    "faster": (FASTER, lambda: _pair(_sampled(1), _sampled(2, level_ns=0.8e5))),
    "same": (SAME, lambda: _pair(_sampled(1), _sampled(2))),
    "same on a CPU": (SAME, lambda: _pair(_sampled(1), _sampled(2), device=LAVAPIPE)),
    "slower in processes": (SLOWER, lambda: [
        document(entries=_processes([level * k for k in (1, 1.002, 0.998)], seed))
        for level, seed in ((1, 1), (1.06, 9))]),
    "same in processes": (SAME, lambda: [
        document(entries=_processes(levels, seed))
        for levels, seed in (((1, 1.002, 0.998), 1), ((1.001, 1, 1.003), 9))]),
    "two modes": (SAME, lambda: _pair(_sampled(3, 500, 0.02, kind="bimodal"), _sampled(4, 500, 0.02, kind="bimodal"))),
    "one measurement": (SAME, lambda: _pair(_sampled(1, sd=0.3), _sampled(1, sd=0.3))),
}  # fmt: skip
OPEN = {
    Cause.FEW_SAMPLES: lambda: _pair(_sampled(1, 3), _sampled(2, level_ns=2e5)),
    Cause.CLOCK_MOVED: lambda: _moved(_pair(_sampled(1), _sampled(2))),
    Cause.LOAD_MOVED: lambda: _moved(_pair(_sampled(1), _sampled(2), device=LAVAPIPE)),
    Cause.LOADED: lambda: [
        document(device=LAVAPIPE, entries=_processes((level, level, level), seed, other_load=load))
        for level, seed, load in ((1, 1, 0.01), (1.5, 9, 0.4))],
    Cause.SINGLE_PROCESS: lambda: _without_walls(_pair(_sampled(1), _sampled(2, level_ns=1.2e5), mode="latency")),
    Cause.PROCESSES_DIFFER: lambda: [
        document(entries=_processes(levels, seed)) for levels, seed in (((1, 1.02, 0.99), 1), ((1.01, 0.985, 1), 9))],
    Cause.SINGLE_ROUND: lambda: _pair(_sampled(1), _sampled(2, level_ns=1.85e5), device=LAVAPIPE),
    Cause.RANK_TEST: lambda: _many_rows(_sampled(1, 5, 0.001), _sampled(2, 5, 0.001, level_ns=1.2e5)),
    Cause.CLOCK_DIFFERS: lambda: _canaries(_pair(_sampled(1), _sampled(2)), 1.3),
    Cause.LOAD_DIFFERS: lambda: _canaries(_pair(_sampled(1), _sampled(2), device=LAVAPIPE), 1.3),
    Cause.CLOCK_STEP: lambda: _pair(_sampled(1, level_ns=1500), _sampled(2, level_ns=1500)),
    Cause.ROUNDS_DIFFER: lambda: [
        document(entries=_rounds(levels, seed)) for levels, seed in (((1, 1.06, 0.95), 1), ((1.03, 0.97, 1), 9))],
    Cause.TIMES_WANDER: lambda: _pair(_wandering(5), _sampled(2)),
    Cause.UNTESTED: lambda: _pair(_sampled(1, 10, 0.01), _sampled(2, 10, 0.01)),
    Cause.NOISE: lambda: _pair(_sampled(1, 40, 0.3), _sampled(2, 40, 0.3)),
    Cause.NEAR_THRESHOLD: lambda: _pair(_sampled(1, 2000), [1.02 * x for x in _sampled(1, 2000)]),
    Cause.WIDE_INTERVAL: lambda: _pair(_sampled(1, 60, 0.05), _sampled(2, 60, 0.05)),
}  # fmt: skip


def test_what_is_said_of_a_settled_row_is_true():
    for name in SETTLED:
        kind, make = SETTLED[name]
        old, new = make()
        found, causes = check_all(old, new)
        assert causes == [None]
        assert found.rows[0].verdict.kind is kind
        assert found.same_measurement == (name == "one measurement")


def test_what_is_said_of_each_kind_of_ambiguous_row_is_true():
    for cause in list(Cause):
        old, new = OPEN[cause]()
        found, causes = check_all(old, new)
        assert causes[0] is cause, found.rows[0].verdict
        assert found.rows[0].verdict.kind is AMBIGUOUS


def test_a_false_sentence_is_noticed():
    """The check checks: each of these is not so of two equal runs."""
    for sentence in [
    "the interval, 0.9981 to 1.0012, reaches beyond 0.9804 and 1.02: the times are too noisy for this threshold",
    "the whole interval, 0.9981 to 1.0012, lies above 1.02, and the test for any difference agrees (p = 1e-05)",
    "the GPU's clock moved all through a run",
]:  # fmt: skip
        old, new = _pair(_sampled(1), _sampled(2))
        (row,) = compare(loaded(old), loaded(new)).rows
        object.__setattr__(row.verdict, "reason", sentence)
        with pytest.raises(AssertionError, match="is not so"):
            check_row(row, old, new)
