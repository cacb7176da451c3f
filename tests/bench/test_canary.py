"""The canary: which blocks of samples were taken at one clock, and what two runs' canaries say of their clocks."""

import math

import numpy as np
import pytest

from gridwise_py.bench.calibrate.canary import CanaryTime, canary_time, clock_log_ratio, is_slower, settled


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
