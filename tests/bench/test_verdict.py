"""Verdicts: known answers, properties, and studies of how often they are wrong."""

import math
from collections import Counter

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwise_py import ArgumentError
from gridwise_py.bench.stats.levels import Repeatability
from gridwise_py.bench.stats.series import Series
from gridwise_py.bench.stats.statistics import Stopping, StoppingRule
from gridwise_py.bench.stats.verdict import Cause, Pair, VerdictKind, judge_all
from helpers.synthetic import NOISES, times

SAME, FASTER, SLOWER, AMBIGUOUS = VerdictKind.SAME, VerdictKind.FASTER, VerdictKind.SLOWER, VerdictKind.AMBIGUOUS


def judge(old, new, *, tick_step_ns=0.0, **options):
    """The verdict on a single pair."""
    (verdict,) = judge_all([Pair(old, new, tick_step_ns)], **options)
    return verdict


def _sampled(kind, rng, level_ns=1e5):
    """As a measurement takes them: until the rule says stop."""
    x = times(kind, 2500, rng, level_ns=level_ns)
    rule = Stopping(StoppingRule(max_samples=2500))
    n = 50
    while rule.reason(x[:n], 0.0) is None:
        n += 10
    return x[:n]


# ---- studies: what the verdicts are worth


def _study(kind, ratio, count, seed):
    rng = np.random.default_rng(seed)
    return Counter(judge(_sampled(kind, rng), _sampled(kind, rng, 1e5 * ratio)).kind for _ in range(count))


#: Pairs of runs in a study. Only the larger count can tell 1 % from 4 %; docs/contribute/statistics.md has its shares.
counts = pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])


def _few(share, count):
    """Return how many pairs of so many such a share allows: of few pairs one more, for chance."""
    return share * count + (1 if count < 100 else 0)


@counts
@pytest.mark.parametrize("kind", NOISES)
def test_two_runs_of_the_same_thing(kind, count):
    found = _study(kind, 1.0, count, seed=101)
    assert found[FASTER] + found[SLOWER] <= _few(0.01, count), found
    assert found[AMBIGUOUS] <= _few(0.1, count), found


@counts
@pytest.mark.parametrize("kind", NOISES)
def test_a_slow_down_of_5_percent_is_found(kind, count):
    found = _study(kind, 1.05, count, seed=202)
    assert count - found[SLOWER] <= _few(0.05, count), found
    assert found[FASTER] + found[SAME] == 0, found
    assert found[AMBIGUOUS] <= _few(0.1, count), found


@pytest.mark.thin(1)
@counts
@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("ratio", [1.0, 1.05])
def test_runs_that_differ_as_runs_do(kind, ratio, count):
    """Each run at a level of its own, half a per cent apart, which no interval within a run shows."""
    rng = np.random.default_rng(303)
    levels = 1e5 * (1 + 0.005 * rng.standard_normal((count, 2)))
    found = Counter(judge(_sampled(kind, rng, a), _sampled(kind, rng, ratio * b)).kind for a, b in levels)
    assert found[AMBIGUOUS] <= _few(0.1, count) + 1, found
    if ratio == 1:
        assert found[FASTER] + found[SLOWER] <= _few(0.01, count), found
    else:
        assert count - found[SLOWER] <= _few(0.05, count), found
        assert found[FASTER] + found[SAME] == 0, found


def test_the_same_is_what_two_one_sided_tests_say():
    """Each of them at 5 %, which is the interval of 90 %."""
    v = judge(*_pair(1.0, n=100, sd=0.02))
    assert v.low < v.same_low < v.ratio < v.same_high < v.high
    # Of normal quantiles; with so many samples Student's t is nearly that.
    assert math.log(v.same_high / v.same_low) / math.log(v.high / v.low) == pytest.approx(1.645 / 1.96, rel=0.1)
    between = math.sqrt(max(1 / v.low, v.high) * max(1 / v.same_low, v.same_high)) - 1
    decided = judge(*_pair(1.0, n=100, sd=0.02), threshold=between)
    assert decided.kind is SAME
    assert "interval of 90 %" in decided.reason
    assert judge(*_pair(1.0, n=100, sd=0.02), threshold=max(1 / v.same_low, v.same_high) - 1.001).kind is AMBIGUOUS


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 10, 30])
def test_few_samples_do_not_make_false_verdicts(n):
    rng = np.random.default_rng(404)
    runs = [judge(times("independent", n, rng, sd=0.05), times("independent", n, rng, sd=0.05)) for _ in range(200)]
    assert sum(v.kind in (FASTER, SLOWER) for v in runs) <= 2


def test_many_rows_are_corrected():
    rng = np.random.default_rng(505)
    pairs = [Pair(times("independent", 60, rng), times("independent", 60, rng)) for _ in range(50)]
    pairs[17] = Pair(pairs[17].old, 1.2 * np.asarray(pairs[17].new))
    found = judge_all(pairs)
    assert [i for i, v in enumerate(found) if v.kind in (FASTER, SLOWER)] == [17]
    assert all(v.p_corrected >= v.p_value for v in found)
    assert judge_all([]) == []


# ---- known answers


def _pair(ratio, n=200, sd=0.005, seed=1):
    rng = np.random.default_rng(seed)
    return times("independent", n, rng, sd=sd), times("independent", n, rng, sd=sd, level_ns=1e5 * ratio)


def test_kinds():
    for ratio, kind in [(1.0, SAME), (1.01, SAME), (0.99, SAME), (1.1, SLOWER), (0.9, FASTER), (1.02, AMBIGUOUS)]:
        v = judge(*_pair(ratio))
        assert v.kind is kind, v
        assert v.low <= v.ratio <= v.high
        assert v.ratio == pytest.approx(ratio, rel=0.005)
        assert bool(v.settle) == (kind is AMBIGUOUS)
        assert v.reason
        assert f"{v.ratio:.4f}" in str(v)


def test_the_threshold_is_asked_for():
    assert judge(*_pair(1.1), threshold=0.2).kind is SAME
    assert judge(*_pair(1.01), threshold=0.002).kind is SLOWER


def test_series_are_taken():
    old, new = (Series("k", tuple(x), None) for x in _pair(1.1))
    assert judge(old, new).kind is SLOWER
    assert judge(old, new) == judge(old.samples_ns, new.samples_ns)


def test_a_test_that_does_not_agree_leaves_it_open():
    """Three rounds that differ by 1 % cannot convince among 60 rows."""
    apart = Pair(_steady(1.0, 1.01, 0.99), _steady(1.055, 1.065, 1.045))
    assert judge_all([apart])[0].kind is SLOWER
    found = judge_all([*(Pair(*_pair(1.0, n=40, seed=s)) for s in range(60)), apart])[-1]
    assert found.p_corrected > 0.05
    assert (found.kind, found.cause) == (AMBIGUOUS, Cause.SPREAD)
    assert "test for any difference does not agree" in found.reason
    assert found.settle.endswith("about 6 of each, now 3 and 3")


def test_one_sample_settles_nothing():
    v = judge([100.0], [200.0])
    assert v.kind is AMBIGUOUS
    assert v.reason == "a side has fewer than 5 independent samples: 1 and 1, worth 1 and 1 independent ones"
    assert "more samples" in v.settle


def test_equal_samples():
    assert judge([100.0] * 30, [100.0] * 30).kind is SAME
    assert judge([100.0] * 30, [120.0] * 30).kind is SLOWER


def test_the_step_of_the_clock_limits_what_is_the_same():
    old, new = [3200.0] * 200, [3232.0] * 200
    assert judge(old, new).kind is SAME
    v = judge(old, new, tick_step_ns=320.0)
    assert v.kind is AMBIGUOUS
    assert "trials" in v.settle


def test_two_modes_are_judged_by_the_middle_half():
    rng = np.random.default_rng(12)
    found = [judge(times("bimodal", 500, rng), times("bimodal", 500, rng)) for _ in range(10)]
    assert {v.kind for v in found} == {SAME}
    rounds = [judge(*([times("bimodal", 50, rng) for _ in range(5)] for _ in range(2))) for _ in range(10)]
    assert {v.kind for v in rounds} <= {SAME, AMBIGUOUS}
    assert sum(v.statistic == "interquartile mean" for v in rounds) >= 3


def test_a_clock_that_moved_settles_nothing():
    old, new = _pair(1.1)
    v = judge_all([Pair(old, new, clock_moved=True)])[0]
    assert v.kind is AMBIGUOUS
    assert "warm-up" in v.settle


def test_a_canary_that_explains_the_difference():
    old, new = _pair(1.1)
    assert judge_all([Pair(old, new, clock_ratio=1.1)])[0].kind is AMBIGUOUS
    assert "clock" in judge_all([Pair(old, new, clock_ratio=1.1)])[0].settle
    assert judge_all([Pair(old, new, clock_ratio=1.02)])[0].kind is SLOWER
    assert judge_all([Pair(old, new, clock_ratio=0.95)])[0].kind is SLOWER


def test_few_samples_must_lie_apart():
    """Ten cannot show whether they depend on each other."""
    v = judge(*_pair(1.0, n=10, sd=0.01))
    assert (v.kind, v.cause) == (AMBIGUOUS, Cause.SPREAD)
    assert judge(*_pair(1.2, n=10, sd=0.01)).kind is SLOWER


def test_settling_says_how_many_samples():
    v = judge(*_pair(1.0, n=30, sd=0.05))
    assert v.kind is AMBIGUOUS
    assert "of each, now 30 and 30" in v.settle


# ---- blocks


def _rounds(rng, count, level_ns, between):
    return [
        times("independent", 60, rng, level_ns=level_ns * (1 + between * rng.standard_normal())) for _ in range(count)
    ]


def test_blocks_are_the_unit():
    """Rounds 3 per cent apart: each pair of rounds differs clearly, and it means nothing."""
    rng = np.random.default_rng(21)
    found = Counter(judge(_rounds(rng, 4, 1e5, 0.03), _rounds(rng, 4, 1e5, 0.03)).kind for _ in range(50))
    assert found[FASTER] + found[SLOWER] <= 1, found
    merged = Counter()
    for _ in range(30):
        sides = [np.concatenate(_rounds(rng, 1, 1e5, 0.03)) for _ in range(2)]
        merged[judge(*sides).kind] += 1
    assert merged[FASTER] + merged[SLOWER] > 3, "the study has no difference between rounds"


def test_blocks_that_agree_settle_it():
    rng = np.random.default_rng(22)
    assert judge(_rounds(rng, 4, 1e5, 0.002), _rounds(rng, 4, 1e5, 0.002)).kind is SAME
    assert judge(_rounds(rng, 4, 1e5, 0.002), _rounds(rng, 4, 1.05e5, 0.002)).kind is SLOWER
    assert judge(_rounds(rng, 4, 1e5, 0.002), _rounds(rng, 1, 1.05e5, 0.002)).kind is SLOWER


def _turns(rng, ratio, count=9, common=0.05, own=0.005):
    """Two sides that share most of what differs between turns."""
    levels = np.log(1e5) + common * rng.standard_normal(count)
    shifts = own * rng.standard_normal((2, count))
    return [
        [
            np.exp(level + shift + change + 0.02 * rng.standard_normal(20))
            for level, shift in zip(levels, side, strict=True)
        ]
        for side, change in zip(shifts, (0.0, math.log(ratio)), strict=True)
    ]


def test_turns_are_judged_by_their_ratios():
    rng = np.random.default_rng(12)
    for ratio, kind in ((1.0, SAME), (1.05, SLOWER), (0.95, FASTER)):
        pairs = [_turns(rng, ratio) for _ in range(40)]
        apart = Counter(judge(old, new).kind for old, new in pairs[:6])
        in_turns = Counter(judge_all([Pair(old, new, in_turns=True)])[0].kind for old, new in pairs)
        assert in_turns[kind] >= 39, (ratio, in_turns)
        assert apart[AMBIGUOUS] >= 5, (ratio, apart)


def test_turns_get_the_interval_of_the_paired_t_test():
    old, new = _turns(np.random.default_rng(5), 1.1, own=0.03)
    (verdict,) = judge_all([Pair(old, new, in_turns=True)])
    test = scipy.stats.ttest_rel(*([math.log(np.median(block)) for block in side] for side in (new, old)))
    low, high = np.exp(test.confidence_interval(0.95))
    assert (verdict.low, verdict.high, verdict.p_value) == pytest.approx((low, high, test.pvalue))


def test_turns_that_agree_by_chance_are_no_surer_than_their_samples():
    rng = np.random.default_rng(6)
    old = [1e5 * np.exp(0.05 * rng.standard_normal(21)) for _ in range(3)]
    new = [1.03 * block[::-1] for block in old]
    assert judge_all([Pair(old, new, in_turns=True)])[0].kind is AMBIGUOUS


def test_turns_that_one_side_lacks_are_refused():
    old, new = _turns(np.random.default_rng(7), 1.0)
    with pytest.raises(ArgumentError, match="9 turns and the new one 8"):
        judge_all([Pair(old, new[:8], in_turns=True)])


def test_more_rounds_are_asked_for():
    rng = np.random.default_rng(23)
    v = judge(_rounds(rng, 3, 1e5, 0.05), _rounds(rng, 3, 1e5, 0.05))
    assert v.kind is AMBIGUOUS
    assert "rounds" in v.settle


# ---- properties

some = st.lists(st.floats(1, 1e7), min_size=1, max_size=30)


@given(some, some)
@settings(max_examples=20)
def test_any_samples_get_a_verdict(old, new):
    v = judge(old, new)
    assert v.kind in VerdictKind
    assert 0 < v.low <= v.ratio <= v.high < math.inf
    assert 0 <= v.p_value <= v.p_corrected <= 1


@given(some, some, st.integers(-6, 6))
@settings(max_examples=8)
def test_units_do_not_matter(old, new, exponent):
    scaled = [[value * 2.0**exponent for value in side] for side in (old, new)]
    a, b = judge(old, new), judge(*scaled)
    assert (a.kind, a.ratio) == (b.kind, pytest.approx(b.ratio))


@given(st.floats(0.5, 2), st.integers(0, 1000))
@settings(max_examples=10)
def test_swapping_sides_swaps_the_verdict(ratio, seed):
    old, new = _pair(ratio, n=60, seed=seed)
    a, b = judge(old, new), judge(new, old)
    assert a.ratio == pytest.approx(1 / b.ratio)
    if abs(abs(math.log(ratio)) - math.log(1.02)) > 0.005:
        assert (a.kind, b.kind) in [(SAME, SAME), (FASTER, SLOWER), (SLOWER, FASTER)]


# ---- bad input


def test_bad_samples_are_refused():
    for old, new in [([], [1.0]), ([1.0], []), ([0.0], [1.0]), ([1.0], [math.nan]), ([-1.0], [1.0]), ([[]], [1.0])]:
        with pytest.raises(ArgumentError, match=r"(old|new) side"):
            judge(old, new)


def test_bad_levels_are_refused():
    for bad in [{"threshold": 0}, {"threshold": 2}, {"confidence": 0.7}, {"confidence": 1}]:
        with pytest.raises(ArgumentError, match=next(iter(bad))):
            judge([1.0], [1.0], **bad)


def _steady(*levels):
    """Rounds in which nothing varies, so that all doubt is about how rounds differ."""
    return [[1e5 * level] * 20 for level in levels]


def test_an_ambiguous_row_has_a_cause_a_statement_and_a_remedy():
    apart = _steady(1.0, 1.02, 0.98)
    for cause, advice, pair in [
        (Cause.FEW_SAMPLES, "more samples", Pair([1.0, 1.1], [1.2, 1.3])),
        (Cause.MACHINE, "same clock", Pair(*_pair(1.0), clock_ratio=1.2)),
        (Cause.MACHINE, "nothing else", Pair(*_pair(1.0), clock_moved=True, on_cpu=True)),
        (Cause.SINGLE, "--processes 5", Pair(*_pair(1.2), varies_by_process=True)),
        (Cause.CLOCK_STEP, "more trials", Pair(*_pair(1.0), 4000.0)),
        (Cause.SPREAD, "more rounds", Pair(apart, apart[::-1])),
        (Cause.SPREAD, "more processes", Pair(apart, apart, old_processes=range(3), new_processes=range(3))),
        (Cause.SPREAD, "more samples", Pair(*_pair(1.0, n=30, sd=0.05))),
        (Cause.NEAR_THRESHOLD, "another --threshold", Pair(_steady(1.0, 1.0001), _steady(1.02, 1.0201))),
    ]:
        (found,) = judge_all([pair])
        assert (found.kind, found.cause) == (AMBIGUOUS, cause)
        assert found.statement in found.reason
        assert advice in found.settle
        assert found.settle.startswith(found.advice)


def test_what_forbids_every_verdict_is_the_only_reason_given():
    """Wherever the interval lies, it is not why."""
    for ratio in (1.0, 1.02, 1.2):
        (found,) = judge_all([Pair(*_pair(ratio), clock_moved=True)])
        assert found.reason == found.statement


def test_more_is_advised_the_nearer_the_threshold():
    def needed(centre):
        rounds = (1.0, 1.02, 0.98)
        (found,) = judge_all([Pair(_steady(*rounds), _steady(*(centre * x for x in rounds)))])
        assert found.cause is Cause.SPREAD
        assert f"about {found.needed:,} of each, now 3 and 3" in found.settle
        return found.needed

    assert 4 <= needed(1.0) < needed(1.008) < needed(1.012)


def test_p_must_be_as_small_as_was_asked():
    pair = Pair(_steady(1.0, 1.01, 0.99), _steady(1.08, 1.09, 1.07))
    (sure,) = judge_all([pair])
    assert sure.kind is SLOWER
    (found,) = judge_all([pair], most_p=sure.p_value / 2)
    assert (found.kind, found.cause) == (AMBIGUOUS, Cause.SPREAD)


def test_one_measurement_read_twice_is_the_same_however_noisy():
    noisy = [1.0, 1000.0] * 40
    found = judge_all([Pair(noisy, noisy, same_measurement=True)])[0]
    assert (found.kind, found.ratio, found.low, found.high) == (SAME, 1, 1, 1)
    assert found.reason == "OLD and NEW are the same measurement: all of their times are equal"
    assert judge_all([Pair(noisy, noisy)])[0].kind is AMBIGUOUS


def test_an_interval_whose_ends_say_nothing_is_too_noisy():
    rng = np.random.default_rng(3)
    noisy = [np.exp(rng.standard_normal(8)) for _ in range(2)]
    assert judge(*noisy).too_noisy
    learnt = judge_all([Pair(*_pair(1.0), repeatability=Repeatability(1.0, 5.0))])[0]
    assert (learnt.cause, learnt.too_noisy) == (Cause.SINGLE, True)
    # A clock that was four times slower is no noise: the ends say how far it may reach.
    assert not judge_all([Pair(*_pair(1.0), clock_ratio=4.0)])[0].too_noisy


def test_no_row_of_a_cpu_is_faster_or_slower_by_a_single_round():
    rng = np.random.default_rng(31)
    rounds = [_rounds(rng, 2, level_ns, 0.002) for level_ns in (1e5, 1.5e5)]
    joined = [np.concatenate(side) for side in rounds]
    assert judge_all([Pair(*joined)])[0].kind is SLOWER
    for old, new in ((joined[0], joined[1]), (joined[1], joined[0]), (rounds[0], joined[1]), (joined[0], rounds[1])):
        found = judge_all([Pair(old, new, on_cpu=True)])[0]
        assert (found.kind, found.cause) == (AMBIGUOUS, Cause.SINGLE)
    rounds = [_rounds(rng, 5, level_ns, 0.002) for level_ns in (1e5, 1.5e5)]
    assert judge_all([Pair(*rounds, on_cpu=True)])[0].kind is SLOWER


def test_a_cpu_has_a_speed_and_no_clock():
    old, new = _pair(1.0)
    for pair in (Pair(old, new, clock_moved=True, on_cpu=True), Pair(old, new, clock_ratio=1.2, on_cpu=True)):
        found = judge_all([pair])[0]
        assert found.kind is AMBIGUOUS
        assert "clock" not in found.reason + found.settle
        assert "speed" in found.reason


def test_steady_rounds_get_the_interval_of_students_t_over_rounds():
    """Nothing varies within them, so that all doubt is about how rounds differ."""
    for shift in [0.97, 1.0, 1.03]:
        old, new = (1.0, 1.01, 0.99), (shift, 1.015 * shift, 0.995 * shift)
        found = judge(_steady(*old), _steady(*new))
        theirs = scipy.stats.ttest_ind(np.log(new), np.log(old)).confidence_interval(0.95)
        half = (theirs.high - theirs.low) / 2
        assert math.log(found.high / found.ratio) == pytest.approx(half)
        assert math.log(found.ratio / found.low) == pytest.approx(half)


def test_two_rounds_against_one_have_one_degree_of_freedom():
    for turned in [False, True]:
        sides = [[100.0, 101.0], [100.4]]
        sides = sides[::-1] if turned else sides
        found = judge(*[[[level] * 20 for level in side] for side in sides])
        half = scipy.stats.t.ppf(0.975, 1) * math.log(1.01) / math.sqrt(2) * math.sqrt(1 + 1 / 2)
        assert math.log(found.high / found.ratio) == pytest.approx(half)
        assert math.log(found.ratio / found.low) == pytest.approx(half)
        alone = judge([[100.0] * 20], [[100.4] * 20])
        assert (alone.low, alone.high) == pytest.approx((1.004, 1.004)), (
            "one round each says nothing of how rounds differ"
        )


@pytest.mark.parametrize("kind", NOISES)
def test_of_the_same_code_no_time_is_a_regression(kind):
    """A machine that became slower is told as that, and its rows do not make others significant."""
    rng = np.random.default_rng(12)
    old, new = _sampled(kind, rng), _sampled(kind, rng, 1.12e5)
    (same,) = judge_all([Pair(old, new, same_code=True)])
    plain = judge(old, new)
    assert same.kind is VerdictKind.SAME_CODE
    assert (same.ratio, same.low, same.high) == (plain.ratio, plain.low, plain.high)
    assert (same.cause, same.settle) == (None, "")
    if plain.kind is SLOWER:
        assert same.finding == f"the machine differs: {100 * (plain.ratio - 1):.2g} %"
        assert same.finding in same.reason
    else:
        assert same.finding == ""
    (equal,) = judge_all([Pair(old, old, same_code=True)])
    assert (equal.kind, equal.finding) == (VerdictKind.SAME_CODE, "")
    (file,) = judge_all([Pair(old, old, same_code=True, same_measurement=True)])
    assert file.kind is SAME, "one measurement says nothing of a machine"


def test_rows_of_the_same_code_are_a_family_of_their_own():
    rng = np.random.default_rng(2)
    near = Pair(rng.normal(1e5, 4e3, 60), rng.normal(1.02e5, 4e3, 60))
    machine = [Pair(rng.normal(1e5, 1e2, 60), rng.normal(1.2e5, 1e2, 60), same_code=True) for _ in range(20)]
    alone, *_ = judge_all([near])
    beside, *_ = judge_all([near, *machine])
    assert beside.p_corrected == alone.p_corrected
