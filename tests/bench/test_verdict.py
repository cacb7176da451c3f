"""Verdicts: known answers, properties, and studies of how often they are wrong."""

import math
from collections import Counter

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gridwise_py import ArgumentError
from gridwise_py.bench.stats.series import Series
from gridwise_py.bench.stats.statistics import Stopping, StoppingRule
from gridwise_py.bench.stats.verdict import Cause, Evidence, Limits, Pair, VerdictKind, decide, judge_all
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


def test_a_rank_test_that_does_not_agree_leaves_it_open():
    """Six samples of each cannot convince among 60 rows."""
    old = times("independent", 6, np.random.default_rng(9), sd=0.002)
    _few = old, 1.1 * old
    pairs = [Pair(*_pair(1.0, n=40, seed=s)) for s in range(60)]
    found = judge_all([*pairs, Pair(*_few)])[-1]
    assert found.p_corrected > 0.05
    assert found.kind is AMBIGUOUS
    assert found.cause is Cause.RANK_TEST
    assert "test for any difference does not agree" in found.reason
    assert "more samples" in found.settle


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
    assert sum(v.statistic == "interquartile mean" for v in found) >= 3


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
    assert v.kind is AMBIGUOUS
    assert "at least 20" in v.settle
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


def _evidence(**changes):
    """Evidence of 1000 and 800 samples that reaches beyond a threshold of 5 % on both sides."""
    given = {
        "ratio": 1.0, "low": 0.9, "high": 1.1, "same_low": 0.9, "same_high": 1.1, "p_value": 0.001, "p_corrected": 0.04,
        "threshold": 0.05, "confidence": 0.95, "old_ns": 1.0, "new_ns": 1.0, "old_count": 1000, "new_count": 800,
        "old_units": 50, "new_units": 40,
    }  # fmt: skip
    return Evidence(**(given | changes))


ABOVE, BELOW = {"ratio": 1.1, "low": 1.06, "high": 1.2}, {"ratio": 0.9, "low": 0.8, "high": 0.95}
WITHIN = {"same_low": 0.96, "same_high": 1.04}
MOVED = Limits(forbids_all=Cause.CLOCK_MOVED)


def test_how_evidence_becomes_a_verdict():
    for changes, limits, kind, reason in [
        (ABOVE, Limits(), SLOWER,
         "the whole interval, 1.0600 to 1.2000, lies above 1.05, and the test for any difference agrees (p = 0.04)"),
        (BELOW, Limits(), FASTER,
         "the whole interval, 0.8000 to 0.9500, lies below 0.9524, and the test for any difference agrees (p = 0.04)"),
        (ABOVE | {"p_corrected": 0.05}, Limits(), SLOWER, "the test for any difference agrees (p = 0.05)"),
        (ABOVE | {"p_corrected": 0.06}, Limits(), AMBIGUOUS,
         "lies above 1.05, but the test for any difference does not agree (p = 0.06)"),
        (BELOW | {"p_corrected": 0.0504}, Limits(), AMBIGUOUS,
         "lies below 0.9524, but the test for any difference does not agree (p = 0.0504)"),
        (ABOVE | {"low": 1.050001}, Limits(), SLOWER, "1.050001 to 1.2000, lies above 1.05"),
        (ABOVE, Limits(widens=Cause.ROUNDS_DIFFER), SLOWER, "lies above 1.05"),
        (ABOVE | {"p_corrected": 0.06}, Limits(widens=Cause.CLOCK_STEP), AMBIGUOUS, "any difference does not agree"),
        (ABOVE, Limits(forbids_difference=Cause.SINGLE_ROUND), AMBIGUOUS,
         "the whole interval, 1.0600 to 1.2000, lies above 1.05, but a side has a single round"),
        (WITHIN, Limits(forbids_difference=Cause.SINGLE_ROUND), SAME, "lies within 5 %"),
        ({"ratio": 1.1, "low": 1.04, "high": 1.2}, Limits(), AMBIGUOUS, "1.0400 to 1.2000, reaches beyond 1.05: "),
        ({"ratio": 0.9, "low": 0.8, "high": 0.96}, Limits(), AMBIGUOUS, "0.8000 to 0.9600, reaches beyond 0.9524: "),
        ({}, Limits(), AMBIGUOUS, "0.9000 to 1.1000, reaches beyond 0.9524 and 1.05: "),
        (WITHIN, Limits(), SAME, "the whole interval of 90 %, 0.9600 to 1.0400, lies within 5 %"),
        (WITHIN | {"same_low": 1 / 1.05}, Limits(), AMBIGUOUS, "reaches beyond"),
        (WITHIN | {"same_high": 1.06}, Limits(), AMBIGUOUS, "reaches beyond"),
        ({"low": 1e-300, "high": 54923.0}, Limits(), AMBIGUOUS, "1e-300 to 5.5e+04, reaches beyond"),
    ]:  # fmt: skip
        found = decide(_evidence(**changes), limits)
        assert found.kind is kind
        assert reason in found.reason
        assert bool(found.settle) == (found.cause is not None) == (kind is AMBIGUOUS)
        assert found.low == _evidence(**changes).low, "the evidence stays as it was"


def test_what_forbids_every_verdict_is_the_only_reason_given():
    """Wherever the interval lies, it is not why."""
    for changes in [ABOVE, BELOW, WITHIN, {}]:
        for cause in [Cause.FEW_SAMPLES, Cause.CLOCK_MOVED, Cause.LOAD_MOVED]:
            found = decide(_evidence(**changes), Limits(forbids_all=cause, widens=Cause.TIMES_WANDER))
            assert (found.kind, found.cause, found.settle) == (AMBIGUOUS, cause, cause.remedy)
            assert found.reason.startswith(cause.statement)
            assert "interval" not in found.reason
            assert "test for any difference" not in found.reason


def test_what_widened_an_interval_is_why_it_reaches_beyond_the_threshold():
    for cause, reason, advice in [
        (Cause.CLOCK_DIFFERS, "another clock in NEW, and the interval is widened by the difference (1.25 times",
         "same clock"),
        (Cause.LOAD_DIFFERS, "another speed in NEW, and the interval is widened by the difference (1.25 times",
         "--rounds 5"),
        (Cause.CLOCK_STEP, "the step of the GPU's clock is over half the threshold", "more trials into a sample"),
        (Cause.ROUNDS_DIFFER, "rounds of the same case differ", "more rounds"),
        (Cause.TIMES_WANDER, "the times drift", "--rounds 5"),
        (Cause.UNTESTED, "fewer than 20 samples", "at least 20 samples of each"),
    ]:  # fmt: skip
        found = decide(_evidence(clock_ratio=1.25, step_share=0.04), Limits(widens=cause))
        assert found.cause is cause
        assert "reaches beyond" in found.reason
        assert reason in found.reason
        assert advice in found.settle


def test_every_cause_has_a_statement_and_a_remedy():
    assert len({cause.statement for cause in Cause}) == len(Cause)
    assert all(cause.remedy for cause in Cause)


def test_one_measurement_read_twice_is_the_same_however_noisy():
    noisy = [1.0, 1000.0] * 40
    found = judge_all([Pair(noisy, noisy, same_measurement=True)])[0]
    assert (found.kind, found.ratio, found.low, found.high) == (SAME, 1, 1, 1)
    assert found.reason == "OLD and NEW are the same measurement: all of their times are equal"
    assert judge_all([Pair(noisy, noisy)])[0].kind is AMBIGUOUS


def test_noise_is_called_noise_and_only_a_small_margin_is_called_close():
    noisy = decide(_evidence(ratio=1.0, low=0.74, high=1.352, same_low=0.8, same_high=1.3, threshold=0.02), Limits())
    assert noisy.cause is Cause.NOISE
    assert "too noisy for this threshold" in noisy.reason
    assert "gridwise ab" in noisy.settle
    assert "another" not in noisy.settle
    assert not noisy.too_noisy
    for ratio in (1.05, 1 / 1.05):
        wide = decide(_evidence(ratio=ratio, low=0.9 * ratio, high=1.1 * ratio), Limits())
        assert wide.cause is Cause.NOISE, "wider than the threshold, however close the middle is to it"
        close = decide(_evidence(ratio=ratio, low=0.98 * ratio, high=1.02 * ratio), Limits())
        assert close.cause is Cause.NEAR_THRESHOLD
        assert close.reason.endswith("the difference is about the threshold (5 % and 5 %)")
        assert close.settle == "choose another --threshold"


def test_an_interval_whose_ends_say_nothing_is_too_noisy():
    assert decide(_evidence(low=0.0001, high=54923.0), Limits()).too_noisy
    assert decide(_evidence(low=0.0001, high=54923.0), Limits(widens=Cause.TIMES_WANDER)).too_noisy
    # A clock that was four times slower is no noise: the ends say how far it may reach.
    assert not decide(_evidence(ratio=0.5, low=0.48, high=1.1), Limits(widens=Cause.CLOCK_DIFFERS)).too_noisy
    assert not decide(_evidence(ratio=7.0, low=3.0, high=20.0), Limits()).too_noisy


def test_no_row_of_a_cpu_is_faster_or_slower_by_a_single_round():
    rng = np.random.default_rng(31)
    rounds = [_rounds(rng, 2, level_ns, 0.002) for level_ns in (1e5, 1.5e5)]
    joined = [np.concatenate(side) for side in rounds]
    assert judge_all([Pair(*joined)])[0].kind is SLOWER
    for old, new in ((joined[0], joined[1]), (joined[1], joined[0]), (rounds[0], joined[1]), (joined[0], rounds[1])):
        found = judge_all([Pair(old, new, on_cpu=True)])[0]
        assert (found.kind, found.cause) == (AMBIGUOUS, Cause.SINGLE_ROUND)
        assert "gridwise bench --rounds 5" in found.settle
    rounds = [_rounds(rng, 5, level_ns, 0.002) for level_ns in (1e5, 1.5e5)]
    assert judge_all([Pair(*rounds, on_cpu=True)])[0].kind is SLOWER


def test_a_cpu_has_a_speed_and_no_clock():
    old, new = _pair(1.0)
    for pair in (Pair(old, new, clock_moved=True, on_cpu=True), Pair(old, new, clock_ratio=1.2, on_cpu=True)):
        found = judge_all([pair])[0]
        assert found.kind is AMBIGUOUS
        assert "clock" not in found.reason + found.settle
        assert "speed" in found.reason


def test_advice_is_to_take_a_fifth_more_at_least_and_more_the_nearer_the_threshold():
    def needed(high, **changes):
        found = decide(_evidence(low=1 / high, high=high, **changes), Limits())
        assert found.cause is Cause.WIDE_INTERVAL
        assert f"about {found.needed:,} of each, now 1,000 and 800" in found.settle
        return found.needed

    assert needed(1.0501) == 1200, "where the threshold is just met"
    assert needed(1.05**2) == pytest.approx(4000, abs=1), "twice as wide: four times as many"
    # Ten times as wide as the way to the threshold: a hundred times as many samples.
    assert needed(1.05**9.99) == pytest.approx(99_800, rel=1e-3)
    assert decide(_evidence(low=1 / 1.05**10.01, high=1.05**10.01), Limits()).cause is Cause.NOISE
    lower = decide(_evidence(ratio=1 / 1.02, low=1 / 1.1, high=1.0), Limits())
    factor = (math.log(1.1 / 1.02) / math.log(1.05 / 1.02)) ** 2
    assert lower.needed == math.ceil(factor * 1000), "by the longer side"


def test_steady_rounds_get_the_interval_of_students_t_over_rounds():
    """Nothing varies within them, so that all doubt is about how rounds differ."""
    for shift in [0.97, 1.0, 1.03]:
        levels = ([100.0, 101.0, 99.0], [100.0 * shift, 101.5 * shift, 99.5 * shift, 100.5 * shift])
        found = judge(*[[[level] * 20 for level in side] for side in levels])
        old, new = map(np.log, levels)
        theirs = scipy.stats.ttest_ind(new, old).confidence_interval(0.95)
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


def test_the_p_of_rounds_is_that_of_their_mean_ranks():
    """Conover and Iman's t test, unless that of single samples is less sure."""
    for rounds in [([100.0, 101.0, 102.0], [101.5, 103.0, 104.0]), ([100.0, 102.0], [101.0])]:
        rng = np.random.default_rng(2)
        old, new = ([(level + rng.random(30)).tolist() for level in side] for side in rounds)
        ranks = scipy.stats.rankdata(np.concatenate([*old, *new])).reshape(-1, 30).mean(axis=1)
        parts = np.split(ranks, [len(old)])
        difference = abs(parts[0].mean() - parts[1].mean())
        degrees = len(ranks) - 2
        pooled = sum(((part - part.mean()) ** 2).sum() for part in parts) / degrees
        error = math.sqrt(pooled * sum(1 / len(part) for part in parts))
        samples = scipy.stats.mannwhitneyu(np.concatenate(old), np.concatenate(new)).pvalue
        assert judge(old, new).p_value == pytest.approx(max(2 * scipy.stats.t.sf(difference / error, degrees), samples))
