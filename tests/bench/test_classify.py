"""Synthetic tick sources, no GPU: every sample lands in its class, totals are right; what canaries say of the clock."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridwise_py.bench.calibrate.canary import CanaryTime, canary_time, clock_log_ratio, is_slower, settled
from gridwise_py.bench.calibrate.classify import classify, tick_step_ns
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.sampling.sampler import Block
from gridwise_py.bench.sampling.samples import Samples
from gridwise_py.bench.stats.series import SampleClass

V, Z, R, E = SampleClass.VALID, SampleClass.ZERO, SampleClass.REVERSED, SampleClass.EQUAL
LONG, STALE, OVER = SampleClass.LONGER_THAN_WALL, SampleClass.STALE, SampleClass.OVERLAPPING
PERIODS = (1.0, 52.0833, 83.333)
START = (1 << 60) + 12_345  # no float64 holds such counts exactly


class Source:
    """A GPU's counter: writes the stamps of kernels of known lengths, and knows when submissions begin and end."""

    def __init__(self, period_ns=1.0, start=START, gap=7):
        self.period_ns, self.now, self.gap = period_ns, start, gap
        self.ticks, self.submissions, self.walls_ns = [], [], []

    def submit(self, *samples, slack_ticks=100):
        """Run samples (kernel lengths in ticks) in a submission."""
        begin = self.now
        for lengths in samples:
            row = []
            for length in lengths:
                row.append([self.now, self.now + length])
                self.now += length + self.gap
            self.ticks.append(row)
            self.submissions.append(len(self.walls_ns))
        self.now += slack_ticks
        self.walls_ns.append((self.now - begin) * self.period_ns)
        return self

    def classify(self, **options):
        ticks = np.array(self.ticks, dtype=np.uint64)
        return classify(ticks, self.period_ns, self.submissions, self.walls_ns, **options)


def test_valid_samples_and_their_totals():
    for period_ns in PERIODS:
        source = Source(period_ns)
        for _ in range(3):
            source.submit(*[(100, 20, 300)] * 4)
        found = source.classify()
        assert set(itertools.chain(*found.classes, found.span_classes, found.sum_classes)) == {V}
        np.testing.assert_allclose(found.kernels_ns, np.array([[100, 20, 300]] * 12) * period_ns, rtol=1e-12)
        np.testing.assert_allclose(found.span_ns, 434 * period_ns, rtol=1e-12)
        np.testing.assert_allclose(found.sum_ns, 420 * period_ns, rtol=1e-12)
        np.testing.assert_allclose(found.gaps_ns, 14 * period_ns, rtol=1e-9)
        assert found.invalid(1) == {}


def _spoilt(change, period_ns=1.0):
    """Three submissions of two samples of two kernels; `change` spoils the stamps before they are judged."""
    source = Source(period_ns)
    for _ in range(3):
        source.submit((100, 50), (100, 50))
    change(source.ticks)
    return source.classify()


def _one(pair):
    """Put `pair` (a function of the good pair) into submission 1, sample 3, kernel 1."""

    def change(ticks):
        ticks[3][1] = list(pair(*ticks[3][1]))

    return change


def test_each_class():
    for _name, pair, expected in [
        ("begin never written", lambda b, e: (0, e), Z),
        ("end never written", lambda b, e: (b, 0), Z),
        ("neither", lambda b, e: (0, 0), Z),
        ("swapped", lambda b, e: (e, b), R),
        ("wrapped at 36 bits", lambda b, e: (b, 17), R),
        ("equal", lambda b, e: (b, b), E),
        ("longer than the wall", lambda b, e: (b, b + 10**6), LONG),
        ("of an earlier run", lambda b, e: (b - 10**5, e - 10**5), STALE),
        ("begins within its neighbour", lambda b, e: (b - 20, e), OVER),
    ]:
        for period_ns in PERIODS:
            found = _spoilt(_one(pair), period_ns)
            assert found.classes[3] == (V, expected)
            others = [row for i, row in enumerate(found.classes) if i != 3]
            assert set(itertools.chain(*others)) == {V}, "the others stay as they were"
            assert found.invalid(1) == {expected.value: 1}
            assert found.invalid(0) == {}
            assert np.isnan(found.kernels_ns[3, 1])
            assert found.kernels_ns[3, 0] == 100 * period_ns
            assert np.isnan(found.sum_ns[3])
            assert np.isnan(found.gaps_ns[3])
            assert found.sum_classes[3] is expected
            # A kernel below the step of the clock has real stamps: the span stands.
            assert found.span_classes[3] is (V if expected is E else expected)
            assert np.nansum(found.kernels_ns) == pytest.approx((6 * 100 + 5 * 50) * period_ns)


def test_quantised_to_65536_ns():
    """As Chrome gives them: a kernel reads 0 or a step, and the valid ones mislead; the span holds."""
    source = Source().submit(*[(30_000, 100_000)] * 50)
    source.ticks = (np.array(source.ticks, dtype=np.uint64) // 65_536 * 65_536).tolist()
    found = source.classify()
    assert {row[0] for row in found.classes} == {V, E}
    lengths = np.array(source.ticks)[:, 0, 1] - np.array(source.ticks)[:, 0, 0]
    assert found.invalid(0) == {"equal": int((lengths == 0).sum())}
    assert set(found.span_classes) == {V}
    assert found.span_ns.mean() == pytest.approx(130_007, rel=0.05)
    assert tick_step_ns(source.ticks, 1.0) == 65_536
    # In ns; stamps that were never written do not count.
    assert tick_step_ns([[[5, 5 + 12]], [[0, 5 + 30]], [[0, 0]]], 52.0833) == pytest.approx(6 * 52.0833)
    assert tick_step_ns([[[0, 7]]], 1.0) is None


def test_what_begins_before_the_end_of_equal_stamps_overlaps_them():
    found = classify([[[100, 200], [300, 300], [250, 400]]], 1.0, [0], [1000.0])
    assert found.classes == ((V, E, OVER),)


def test_a_span_of_one_step_of_length_zero_is_equal():
    found = classify([[[5, 5]]], 1.0, [0], [100.0])
    assert found.classes == ((E,),)
    assert found.span_classes == (E,)


def test_a_counter_that_is_reset_within_a_pass():
    def change(ticks):
        reset_at = ticks[2][1][0] + 10
        for row in ticks:
            for pair in row:
                pair[:] = [t if t < reset_at else t - reset_at + 1 for t in pair]

    found = _spoilt(change)
    assert found.classes[2] == (V, R)
    assert found.classes[3] == (STALE, STALE)
    assert set(itertools.chain(*found.classes[4:])) == {V}


def test_a_query_that_was_never_written_again_is_stale_each_time():
    source = Source()
    for _ in range(4):
        source.submit((100,))
    old = source.ticks[0]
    source.ticks = [old] * 4
    assert source.classify().classes == ((V,), (STALE,), (STALE,), (STALE,))


def test_a_span_longer_than_the_wall_though_each_kernel_is_not():
    source = Source(gap=10**6).submit((100, 100))
    source.walls_ns = [1000.0]
    found = source.classify()
    assert found.classes == ((V, V),)
    assert found.span_classes == (LONG,)
    assert np.isnan(found.gaps_ns[0])


def test_a_span_may_be_as_long_as_the_wall():
    for over, expected in ((1.0, V), (1.019, V), (1.03, LONG)):
        assert classify([[[1000, 2000]]], 1.0, [0], [1000.0 / over]).classes == ((expected,),)


@given(
    st.lists(st.lists(st.integers(1, 10**6), min_size=3, max_size=3), min_size=1, max_size=20),
    st.sampled_from(PERIODS),
    st.integers(0, 10**4),
    st.integers(1, 2**63),
)
def test_whatever_ran_in_order_is_valid_and_adds_up(samples, period_ns, gap, start):
    source = Source(period_ns, start, gap)
    for sample in samples:
        source.submit(sample)
    found = source.classify()
    assert set(itertools.chain(*found.classes)) == {V}
    np.testing.assert_allclose(found.sum_ns, np.array(samples).sum(axis=1) * period_ns, rtol=1e-12)
    np.testing.assert_allclose(found.sum_ns + found.gaps_ns, found.span_ns, rtol=1e-9)


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=30))
def test_any_stamps_get_a_class_and_no_invalid_one_a_time(pairs):
    found = classify(np.array(pairs, dtype=np.uint64).reshape(-1, 1, 2), 1.0, range(len(pairs)), [1e9] * len(pairs))
    for (kind,), ns in zip(found.classes, found.kernels_ns[:, 0], strict=True):
        assert (kind is V) == (ns > 0)


# ---- blocks gathered into series


def _block(source, **options):
    return Block(
        np.array(source.ticks, dtype=np.uint64), tuple(source.submissions), tuple(source.walls_ns),
        (10.0,) * len(source.walls_ns), (20.0,) * len(source.walls_ns), (None, None), **options,
    )  # fmt: skip


def test_short_kernels_are_told_to_be_batched():
    samples = Samples(["a", "b"], Mode.HOT, 1, False)
    samples.add(_block(Source().submit((99, 101))), 1.0)
    (warning,) = samples.warnings(1.0)
    assert warning.startswith("a: shorter than 100 steps")
    assert "batch" in warning
    assert samples.warnings(None) == []


# ---- the canary


def _pairs(*times_ns, error_ns=1.0):
    """Before and after each block, as many as there are."""
    canaries = [CanaryTime(float(time), error_ns) for time in times_ns]
    return list(zip(canaries[::2], canaries[1::2], strict=True))


# ---- one canary


def test_a_time_is_the_median_of_its_runs_with_its_standard_error():
    lengths = np.array([1000, 1010, 990, 1020, 980, 1005, 995, 5000, 1000], dtype=np.uint64)
    begins = np.uint64(1 << 62) + np.arange(9, dtype=np.uint64) * np.uint64(10_000)
    found = canary_time(np.stack([begins, begins + lengths], axis=1), 2.0, 1.0)
    assert found.median_ns == 2000
    # The absolute deviations from 1,000 are 0, 0, 5, 5, 10, 10, 20, 20, 4000: their median is 10.
    assert found.error_ns == pytest.approx(math.sqrt(math.pi / 2) * 1.4826 * 20 / 3)


def test_the_error_is_at_least_half_a_step():
    stamps = np.array([[100, 200]] * 9, dtype=np.uint64)
    assert canary_time(stamps, 1.0, 32.0).error_ns == 16
    assert canary_time(stamps, 4.0).error_ns == 2


def test_stamps_that_are_no_times_are_left_out():
    assert canary_time(np.array([[0, 9], [9, 3], [7, 7]], dtype=np.uint64), 1.0) is None
    assert canary_time(np.array([[0, 9], [9, 3], [7, 8]], dtype=np.uint64), 1.0).median_ns == 1


# ---- blocks


def test_blocks_at_the_settled_clock_are_kept():
    for times, kept in [
        ((1000, 1010), [True]),
        ((1000, 1010, 1020, 1000), [True, True]),
        # What an H200 did while its clock came up, in µs: the first blocks were 1.3 to 4 times slower.
        ((107.6, 33.9, 34.1, 34.3, 34.0, 33.7), [False, True, True]),
        ((72.7, 72.6, 34.0, 33.8, 34.1, 34.0), [False, True, True]),
        ((72.7, 72.6, 34.0, 33.8), [False, True]),  # of two as many, the last
        ((34.0, 33.9, 34.1, 34.0, 72.7, 72.6), [True, True, False]),  # most, not the fastest and not the last
        ((79.0, 79.2, 79.1, 79.3, 34.0, 34.1), [True, True, False]),
        ((34.0, 79.2, 79.1, 34.3, 34.0, 34.1), [False, False, True]),
    ]:
        found = settled(_pairs(*times, error_ns=0.05))
        assert found.kept == tuple(kept)
        assert not found.moved
        inside = [t for i, t in enumerate(times) if kept[i // 2]]
        assert found.canary.median_ns == pytest.approx(np.median(inside))


def test_a_clock_that_never_stands_still_has_moved():
    found = settled(_pairs(1000, 1100, 1210, 1330))
    assert (found.kept, found.moved, found.canary) == ((True, True), True, None)


def test_nothing_is_known_without_canaries():
    assert settled([]).kept == ()
    found = settled([(None, CanaryTime(1000.0, 1.0)), (CanaryTime(1.0, 1.0), None)])
    assert (found.kept, found.moved, found.canary) == ((True, True), False, None)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [0.005, 0.02, 0.1])
def test_its_own_noise_moves_no_clock(noise, count):
    """Runs of 20 blocks, at a clock that stands still; nine runs of the canary each."""
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(count):
        lengths = np.round(1e6 * (1 + noise * rng.standard_normal((40, 9)))).astype(np.uint64)
        canaries = [
            canary_time(np.stack([np.full(9, 7, np.uint64), row + np.uint64(7)], axis=1), 1.0) for row in lengths
        ]
        found = settled(list(zip(canaries[::2], canaries[1::2], strict=True)))
        wrong += found.moved or not all(found.kept)
    assert wrong <= count // 100


def test_a_step_of_the_clock_is_found_behind_the_noise():
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(200):
        levels = np.repeat([1.06, 1.0, 1.0], 2)
        pairs = _pairs(*(1000 * levels * (1 + 0.003 * rng.standard_normal(6))), error_ns=3.0)
        found += settled(pairs).kept == (False, True, True)
    assert found >= 190


# ---- against the fastest, and between runs


def test_slower_than_the_fastest():
    assert is_slower(CanaryTime(1040.0, 1.0), 1000.0)
    assert not is_slower(CanaryTime(1029.0, 1.0), 1000.0)
    assert not is_slower(CanaryTime(1040.0, 5.0), 1000.0)
    assert not is_slower(CanaryTime(900.0, 1.0), 1000.0)
    assert not is_slower(CanaryTime(900.0, 1.0), None)


def test_two_runs_at_one_clock_hardly_ever_differ():
    rng = np.random.default_rng(6)
    found = [clock_log_ratio(*(1 + 0.01 * rng.standard_normal((2, 8)))) for _ in range(1000)]
    assert sum(ratio != 0 for ratio in found) <= 10
