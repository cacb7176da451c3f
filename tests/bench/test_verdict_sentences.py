"""What `gridwise compare` says of a row is true of its numbers.

Each sentence is read back, and what it claims is worked out here from the samples and flags in the two files, and from
the interval and p of the row: without the code that chose the sentence.
"""

import itertools
import json
import math
import re

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
        """New by old of the units' medians, or middle halves."""
        return math.exp(float(np.diff([np.mean(levels) for levels in self.levels()])[0]))

    def levels(self):
        """Per side the mean logarithm of each process, round, or part of a single round."""
        units, of_sides = self.processes, self.blocks
        if all(len(side) == 1 for side in of_sides):
            counts = self.v.old_units, self.v.new_units
            of_sides = [np.array_split(side[0], count) for side, count in zip(of_sides, counts, strict=True)]
        if all(len(set(side)) == 1 for side in units):
            units = [range(len(side)) for side in of_sides]
        of = np.median if self.v.statistic == "median" else lambda x: scipy.stats.trim_mean(x, 0.25)
        return [
            [np.mean([math.log(of(b)) for b, p in zip(blocks, of_side, strict=True) if p == unit])
             for unit in sorted(set(of_side))]
            for blocks, of_side in zip(of_sides, units, strict=True)
        ]  # fmt: skip


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
    return f.v.step_share > f.limit / 2 and float(percent) == pytest.approx(100 * f.v.step_share, rel=0.1, abs=0.05)


def units_differ(f, percent, old, new):
    sides = f.levels()
    interval = scipy.stats.ttest_ind(sides[1], sides[0]).confidence_interval(f.v.confidence)
    spread = max(f.v.between_sd, f.v.within_sd)
    return (
        [int(old), int(new)] == list(map(len, sides))
        and f.ends[0] <= interval.low + 1e-3
        and f.ends[1] >= interval.high - 1e-3
        and float(percent) == pytest.approx(100 * math.expm1(spread), rel=0.1)
    )


def half_width(f):
    centre = math.log(f.ratio())
    return max(f.ends[1] - centre, centre - f.ends[0])


def margin(f):
    return abs(abs(math.log(f.ratio())) - f.limit)


CLAIMS = [
    (rf"the whole interval, {NUMBER} to {NUMBER}, lies above {NUMBER}", lies_above),
    (rf"the whole interval, {NUMBER} to {NUMBER}, lies below {NUMBER}", lies_below),
    (rf"the whole interval of {NUMBER} %, {NUMBER} to {NUMBER}, lies within {NUMBER} %", lies_within),
    (rf"the interval, {NUMBER} to {NUMBER}, reaches beyond (0\.\d+)?(?: and )?(1\.\d+)?", reaches),
    (rf", and the test for any difference agrees \(p = {NUMBER}\)", agrees),
    (rf", but the test for any difference does not agree \(p = {NUMBER}\)", disagrees),
    (r"(?:: |, but )?the GPU's clock moved during a run, or was another one in NEW, as the canary kernel shows",
     lambda f: not f.on_cpu and (f.moved or f.v.clock_ratio != 1)),
    (r"(?:: |, but )?the adapter is a CPU, and other work on the machine changed its speed",
     lambda f: f.on_cpu and (f.moved or f.v.clock_ratio != 1 or max(f.loads) > 0.1)),
    (rf" \(the canary kernel took {NUMBER} times its time in OLD\)", canary_ran_at),
    (r"(?:: |, but )?measured in one process or round, and it is not known how much these differ here",
     lambda f: all(len(set(side)) == 1 for side in f.processes) and (f.mode == "latency" or f.on_cpu)),
    (r"a side has fewer than 5 independent samples: (\d+) and (\d+), worth (\d+) and (\d+) independent ones",
     lambda f, a, b, c, d: f.counts == [int(a), int(b)] and min(int(c), int(d)) < 5),
    (rf": the step of the GPU's clock is over half the threshold, and the interval is widened by it \(±{NUMBER} %\)",
     step_is_large),
    (rf": processes that measure the same case differ by too much for this threshold \(standard deviation {NUMBER} %, "
     r"(\d+) and (\d+) processes\)", units_differ),
    (rf": rounds of the same case differ by too much for this threshold \(standard deviation {NUMBER} %, "
     r"(\d+) and (\d+) rounds\)", units_differ),
    (r": the samples of a round differ by too much for this threshold \((\d+) and (\d+)\)",
     lambda f, a, b: f.counts == [int(a), int(b)] and f.rounds == [1, 1]),
    (rf": the difference is about the threshold \({NUMBER} % and {NUMBER} %\)",
     lambda f, d, t: margin(f) < f.limit / 9 and half_width(f) <= f.limit),
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
    if v.unit == "sample" and min(v.old_units, v.new_units) < 5 and not is_same:
        assert "fewer than 5 independent" in v.reason
    elif facts.moved and not is_same:
        assert v.cause is Cause.MACHINE
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
        (i,) = [i for i, text in enumerate(remarks) if f"{row.verdict.statement}. To settle" in text]
        # In the remark itself, or in a line below it.
        lines = remarks[i : i + 1]
        if remarks[i].endswith(":"):
            below = itertools.takewhile(lambda text: " ambiguous: " not in text, remarks[i + 1 :])
            # A later remark, on two modes, may name the case, too.
            lines = [text for text in below if re.search(r": its 9[05] % interval is ", text)]
        assert sum(row.case in text for text in lines) == 1, (row.case, remarks)
        assert sum(row.verdict.statement in text for text in remarks) == 1, "each once"
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
    assert {None, Cause.MACHINE, Cause.SPREAD, Cause.CLOCK_STEP} <= causes


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


def _among_many(rounds):
    """Rounds of a row among others, as the test is corrected for."""
    others = [[_with(_sampled(2 * i + side), n=3 * i) for i in range(1, 20)] for side in (0, 1)]
    return [
        document(entries=[*_rounds(levels, 40 + 9 * side), *others[side]]) for side, levels in enumerate(rounds)
    ]  # fmt: skip


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
OPEN = [
    (Cause.FEW_SAMPLES, lambda: _pair(_sampled(1, 3), _sampled(2, level_ns=2e5))),
    (Cause.MACHINE, lambda: _moved(_pair(_sampled(1), _sampled(2)))),
    (Cause.MACHINE, lambda: _moved(_pair(_sampled(1), _sampled(2), device=LAVAPIPE))),
    (Cause.MACHINE, lambda: [
        document(device=LAVAPIPE, entries=_processes((level, level, level), seed, other_load=load))
        for level, seed, load in ((1, 1, 0.01), (1.5, 9, 0.4))]),
    (Cause.MACHINE, lambda: _canaries(_pair(_sampled(1), _sampled(2)), 1.3)),
    (Cause.MACHINE, lambda: _canaries(_pair(_sampled(1), _sampled(2), device=LAVAPIPE), 1.3)),
    (Cause.SINGLE, lambda: _without_walls(_pair(_sampled(1), _sampled(2, level_ns=1.2e5), mode="latency"))),
    (Cause.SINGLE, lambda: _pair(_sampled(1), _sampled(2, level_ns=1.85e5), device=LAVAPIPE)),
    (Cause.CLOCK_STEP, lambda: _pair(_sampled(1, level_ns=1500), _sampled(2, level_ns=1500))),
    (Cause.SPREAD, lambda: [
        document(entries=_processes(levels, seed)) for levels, seed in (((1, 1.02, 0.99), 1), ((1.01, 0.985, 1), 9))]),
    (Cause.SPREAD, lambda: [
        document(entries=_rounds(levels, seed)) for levels, seed in (((1, 1.06, 0.95), 1), ((1.03, 0.97, 1), 9))]),
    (Cause.SPREAD, lambda: _among_many([(1, 1.01, 0.99), (1.05, 1.06, 1.04)])),
    (Cause.SPREAD, lambda: _pair(_sampled(1, 10, 0.01), _sampled(2, 10, 0.01))),
    (Cause.SPREAD, lambda: _pair(_sampled(1, 40, 0.3), _sampled(2, 40, 0.3))),
    (Cause.NEAR_THRESHOLD, lambda: _pair(_sampled(1, 2000), [1.02 * x for x in _sampled(1, 2000)])),
]  # fmt: skip


def test_what_is_said_of_a_settled_row_is_true():
    for name in SETTLED:
        kind, make = SETTLED[name]
        old, new = make()
        found, causes = check_all(old, new)
        assert causes == [None]
        assert found.rows[0].verdict.kind is kind
        assert found.same_measurement == (name == "one measurement")


def test_what_is_said_of_each_kind_of_ambiguous_row_is_true():
    assert {cause for cause, _ in OPEN} == set(Cause)
    for cause, make in OPEN:
        old, new = make()
        found, causes = check_all(old, new)
        assert causes[0] is cause, found.rows[0].verdict
        assert found.rows[0].verdict.kind is AMBIGUOUS


def test_a_false_sentence_is_noticed():
    """The check checks: each of these is not so of two equal runs."""
    for sentence in [
    "the interval, 0.9981 to 1.0012, reaches beyond 0.9804 and 1.02: the samples of a round differ by too much "
            "for this threshold (200 and 200)",
    "the whole interval, 0.9981 to 1.0012, lies above 1.02, and the test for any difference agrees (p = 1e-05)",
    "the GPU's clock moved during a run, or was another one in NEW, as the canary kernel shows",
]:  # fmt: skip
        old, new = _pair(_sampled(1), _sampled(2))
        (row,) = compare(loaded(old), loaded(new)).rows
        object.__setattr__(row.verdict, "reason", sentence)
        with pytest.raises(AssertionError, match="is not so"):
            check_row(row, old, new)
