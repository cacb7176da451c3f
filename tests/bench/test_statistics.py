"""Statistics of times: known answers, intervals that cover, digits, stopping, warm-up."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from gridwise_py import ArgumentError
from gridwise_py.bench.stats.resampling import (
    autocorrelation_time,
    block_length,
    bootstrap_medians,
    interquartile_mean,
    median_interval,
    resample,
    widened,
)
from gridwise_py.bench.stats.series import LEAST_FOR_INTERVAL, StopReason
from gridwise_py.bench.stats.statistics import Stopping, StoppingRule, is_stationary, summarize
from helpers.synthetic import NOISES, noise, times

series = st.lists(st.floats(1, 1e9), min_size=1, max_size=60)


# ---- summary


def test_known_answers():
    s = summarize([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 100.0])
    assert (s.median_ns, s.min_ns, s.q1_ns, s.q3_ns) == (5, 1, 3, 7)
    assert s.mean_ns == pytest.approx(136 / 9)
    assert s.mad_ns == 2
    assert s.std_ns == pytest.approx(np.std([1, 2, 3, 4, 5, 6, 7, 8, 100], ddof=1))
    assert (s.count, s.outliers) == (9, 1)
    assert [summarize([1.0, 3, 4, 5, 6, 7, 8, 9, last]).outliers for last in (13.9, 14.1)] == [0, 1]
    assert [summarize([first, 3, 4, 5, 6, 7, 8, 9, 9.5]).outliers for first in (-1.9, -2.1)] == [0, 1]
    assert s.ci_low_ns < 5 < s.ci_high_ns


def test_what_too_few_samples_cannot_show_is_none():
    """Of equal samples: only what so many of them can say is a number, and it is 0 wide."""
    for count in [1, 2, 5, 6, 100]:
        s = summarize([7.0] * count)
        assert (s.median_ns, s.count, s.outliers) == (7, count, 0)
        assert (s.std_ns, s.mad_ns) == ((0, 0) if count > 1 else (None, None))
        assert (s.ci_low_ns, s.ci_high_ns) == ((7, 7) if count >= LEAST_FOR_INTERVAL else (None, None))
        assert s.text() == {1: "7 ns (1 sample)", 2: "7 ns (2 samples)", 5: "7 ns (5 samples)"}.get(
            count, "7 ns ±<0.1 %"
        )


def test_intervals_of_few_samples_cover():
    """Exactly by the binomial distribution: the chance that the ends have the median between them."""
    for n in [LEAST_FOR_INTERVAL, 7, 8]:
        x = np.arange(1.0, n + 1)
        s = summarize(x.tolist())
        below = np.searchsorted(x, s.ci_low_ns, "right"), np.searchsorted(x, s.ci_high_ns, "left")
        assert scipy.stats.binom.cdf(below[1], n, 0.5) - scipy.stats.binom.cdf(below[0] - 1, n, 0.5) >= 0.95


def test_bad_samples_are_refused():
    for x in [[], [[1.0, 2.0]], [1.0, math.nan], [math.inf]]:
        with pytest.raises(ArgumentError, match="sample"):
            summarize(x)


def test_a_confidence_that_cannot_be_is_refused():
    for confidence in [0, 1, -0.5, 1.5, 95]:
        with pytest.raises(ArgumentError, match=f"confidence is {confidence}; it must lie between 0 and 1"):
            summarize([1.0, 2.0], confidence=confidence)


@given(series)
def test_order_of_a_summary(x):
    s = summarize(x)
    assert s.min_ns <= s.q1_ns <= s.median_ns <= s.q3_ns <= max(x)
    if len(x) < LEAST_FOR_INTERVAL:
        assert s.interval_ns is None
        return
    assert s.min_ns * (1 - 1e-12) <= s.ci_low_ns <= s.median_ns <= s.ci_high_ns <= max(x) * (1 + 1e-12) or (
        autocorrelation_time(x) > 1
    )
    assert s == summarize(x)


def test_the_interval_of_independent_samples_is_that_of_scipy():
    """The bootstrap draws medians without drawing samples: it must be the same distribution."""
    from scipy.stats import bootstrap

    rng = np.random.default_rng(5)
    for n in (15, 16, 101):
        x = rng.lognormal(size=n)
        ours = np.quantile(bootstrap_medians(x, tau=1.0, rng=rng), [0.025, 0.5, 0.975])
        theirs = bootstrap((x,), np.median, method="percentile", n_resamples=4000, rng=rng)
        spread = np.subtract(*theirs.confidence_interval[::-1])
        assert ours[[0, 2]] == pytest.approx(theirs.confidence_interval, abs=0.08 * spread)
        assert ours[1] == pytest.approx(np.median(theirs.bootstrap_distribution), abs=0.08 * spread)


def test_intervals_cover():
    for kind in ["independent", "autocorrelated"]:
        rng = np.random.default_rng(11)
        covered = 0
        for _ in range(150):
            s = summarize(times(kind, 600, rng))
            covered += s.ci_low_ns <= 1e5 <= s.ci_high_ns
        # 95 % of 150 is 142, with a standard deviation of 3. Blocks of a finite series miss a little.
        assert covered >= (136 if kind == "independent" else 131)


def test_a_summary_draws_a_bounded_number_of_samples(monkeypatch):
    """However many there are: a summary must not take longer than a short measurement."""
    drawn = []

    def counting(*args, **options):
        rows = resample(*args, **options)
        drawn.append(rows.size)
        return rows

    monkeypatch.setattr("gridwise_py.bench.stats.resampling.resample", counting)
    rng = np.random.default_rng(1)
    summarize(times("independent", 100_000, rng))
    assert not drawn, "medians of independent samples are drawn without drawing the samples"
    for n in (100, 1000, 3000):
        summarize(times("autocorrelated", n, rng))
    assert len(drawn) == 3
    assert max(drawn) <= 1_000_000


# ---- dependence


def test_autocorrelation_time():
    rng = np.random.default_rng(2)
    independent = [autocorrelation_time(times("independent", 2000, rng)) for _ in range(20)]
    assert np.median(independent) == 1
    assert max(independent) < 1.5
    # Signs of a normal AR(1) process have the correlations 2/π·asin(r^k).
    exact = 1 + 2 * sum(2 / math.pi * math.asin(0.8**k) for k in range(1, 100))
    assert np.median([autocorrelation_time(times("autocorrelated", 5000, rng)) for _ in range(5)]) == pytest.approx(
        exact, rel=0.25
    )
    assert autocorrelation_time([1.0] * 50) == 1
    assert autocorrelation_time([1.0, 2.0]) == 1


# ---- stopping


def _run(stopping: Stopping, x: np.ndarray, sample_s: float = 0.0) -> tuple[StopReason | None, int]:
    for n in range(1, len(x) + 1):
        reason = stopping.reason(x[:n], n * sample_s)
        if reason is not None:
            return reason, n
    return None, len(x)


def test_as_many_samples_as_the_interval_needs():
    """The error of a median is 1.2533 of that of a mean; looks come an eighth apart, and two in a row must agree."""
    rng = np.random.default_rng(4)

    def median_count(kind, sd):
        return np.median([_run(Stopping(StoppingRule()), times(kind, 5000, rng, sd=sd))[1] for _ in range(15)])

    assert 1 <= median_count("independent", 0.03) / (2 * 1.96 * 1.2533 * 0.03 / 0.01) ** 2 < 1.25
    # Of an AR(1) process of 0.8 the signs have a time of 4.1, which a series this short may underestimate.
    assert 6.5 < median_count("autocorrelated", 0.02) / (2 * 1.96 * 1.2533 * 0.02 / 0.01) ** 2 < 10


def test_stops_on_a_plateau():
    """A drift: more samples make nothing more certain."""
    rng = np.random.default_rng(3)
    drifting = 1e5 * np.exp(np.cumsum(rng.standard_normal(5000)) * 0.01)
    reason, n = _run(Stopping(StoppingRule()), drifting)
    assert reason is StopReason.PLATEAU
    assert n < 3000


def test_one_look_shows_no_plateau():
    """Samples that come in large portions are looked at seldom; a line through one look has no slope."""
    x = np.where(np.random.default_rng(3).random(40_000) < 0.5, 1e3, 9e3)  # two modes: the interval stays wide
    rule = Stopping(StoppingRule(max_samples=10**6))
    assert [rule.reason(list(x[:n]), 0.0) for n in (60, 600, 6000)] == [None] * 3
    assert [rule.reason(list(x[:n]), 0.0) for n in (8000, 10_000)] == [None, StopReason.PLATEAU]


def test_an_interval_that_narrows_as_it_should_is_no_plateau():
    for kind in ["independent", "autocorrelated"]:
        x = times(kind, 4000, np.random.default_rng(3))
        assert _run(Stopping(StoppingRule(relative_interval=1e-9, max_samples=10**6)), x) == (None, 4000)


def test_a_plateau_takes_as_many_samples_as_the_rule_says():
    x = np.where(np.random.default_rng(3).random(2000) < 0.5, 65_536.0, 131_072.0)
    for least in (300, 700):
        reason, n = _run(Stopping(StoppingRule(plateau_samples=least)), x)
        assert reason is StopReason.PLATEAU
        assert least <= n <= least * 9 / 8 + 4
    reason, n = _run(Stopping(StoppingRule(plateau_samples=100, min_samples=60)), x)
    assert reason is StopReason.PLATEAU
    assert 240 <= n <= 240 * 9 / 8 + 4, "four times as many as at the first look"


def test_stops_at_the_time_and_at_the_count():
    x = times("independent", 500, np.random.default_rng(3), sd=0.3)
    assert _run(Stopping(StoppingRule(timeout_s=1.0)), x, sample_s=0.01) == (StopReason.TIMEOUT, 100)
    assert _run(Stopping(StoppingRule(timeout_s=1e-9)), x, sample_s=0.01) == (StopReason.TIMEOUT, 1)
    assert _run(Stopping(StoppingRule(max_samples=70)), x) == (StopReason.COUNT, 70)
    # A few equal samples have an interval of no width, and no interval at all.
    for most in (1, 5):
        assert _run(Stopping(StoppingRule(min_samples=1, max_samples=most)), [7.0] * 9) == (StopReason.COUNT, most)
    assert _run(Stopping(StoppingRule()), x) == (None, 500)


def test_a_narrow_interval_is_believed_at_the_second_look():
    """Which comes when there are an eighth more, or as good as."""
    x = times("independent", 500, np.random.default_rng(3), sd=0.0005)
    assert _run(Stopping(StoppingRule()), x) == (StopReason.INTERVAL, 56)
    assert _run(Stopping(StoppingRule(min_samples=80)), x) == (StopReason.INTERVAL, 90)
    assert _run(Stopping(StoppingRule(min_samples=8)), x) == (StopReason.INTERVAL, 12)


def test_a_shorter_series_starts_over():
    stopping = Stopping(StoppingRule())
    x = times("independent", 2000, np.random.default_rng(8))
    assert _run(stopping, x) == _run(stopping, x) == _run(Stopping(StoppingRule()), x)


def test_asking_after_each_sample_is_cheap(monkeypatch):
    """It looks closely only after the samples have grown by an eighth."""
    looked = []
    look = Stopping._look

    def counting(rule, x):
        looked.append(x.size)
        return look(rule, x)

    monkeypatch.setattr(Stopping, "_look", counting)
    x = times("bimodal", 3000, np.random.default_rng(1), sd=0.2).tolist()
    rule = Stopping(StoppingRule(plateau_samples=10**6))
    for n in range(0, 3000, 2):
        assert rule.reason(x[:n], 0) is None
    assert 20 < len(looked) < 60
    assert all(later >= 9 / 8 * earlier - 1 for earlier, later in itertools.pairwise(looked))


def test_a_rule_that_cannot_work_is_refused():
    for bad in [{"relative_interval": 0}, {"timeout_s": 0}, {"max_samples": 0}]:
        with pytest.raises(ArgumentError, match=next(iter(bad))):
            StoppingRule(**bad)


# ---- warm-up


def test_noise_is_stationary():
    for kind in NOISES:
        rng = np.random.default_rng(6)
        assert sum(is_stationary(times(kind, 40, rng)) for _ in range(100)) >= (60 if kind == "autocorrelated" else 95)


def test_a_clock_that_comes_up_is_not():
    for n in [10, 40, 200]:
        rng = np.random.default_rng(6)
        t = np.linspace(0, 1, n)
        small = 1 + noise("independent", n, rng, 0.003)
        assert not is_stationary(1e5 * (1 + 2 * np.exp(-3 * t)) * small)
        assert not is_stationary(1e5 * (1.1 - 0.1 * t) * small)
        assert not is_stationary(1e5 * np.where(t < 0.5, 1.2, 1.0) * small)
        assert is_stationary(1e5 * small)


def test_two_levels_are_not_stationary_without_a_trend():
    """Up and down within the halves, so that the order of the samples shows little."""
    first = np.tile([1.3e5, 1.2e5, 0.9e5], 10)
    assert not is_stationary(np.concatenate([first, np.full(30, 1e5)]))


def test_a_steady_trend_is_not_stationary_though_the_halves_lie_within_the_spread():
    """4 % over the window behind noise of 1.5 %: the halves are 2 % apart, and half of the samples span more."""
    rng = np.random.default_rng(9)
    found = 0
    for _ in range(100):
        x = 1e5 * (1.04 - 0.04 * np.linspace(0, 1, 40) + 0.015 * rng.standard_normal(40))
        found += not is_stationary(x)
    assert found >= 70, found


def test_few_samples_show_nothing_and_a_step_counts_beyond_the_tolerance():
    assert not is_stationary([1.0] * 7)
    assert is_stationary([1.0] * 8)
    x = [1.004e5] * 20 + [1e5] * 20
    assert is_stationary(x)
    assert not is_stationary(x, tolerance=0.0039)


def test_estimates_of_few_or_short_blocks_are_spread_out():
    """About their middle; the more, the fewer samples there are and the longer they depend on each other."""
    estimates = np.array([8.0, 10.0, 13.0])

    def factor(tau, block, count):
        spread = widened(estimates, tau, block, count)
        assert spread[1] == 10.0
        assert (spread[2] - 10) / 3 == pytest.approx((10 - spread[0]) / 2)
        return (spread[2] - 10) / 3

    by_count = [factor(1.0, 10**9, count) for count in (2, 5, 20, 100, 10**6)]
    assert by_count == sorted(by_count, reverse=True)
    assert by_count[-1] == pytest.approx(1.0, abs=1e-4)
    for found, degrees, off in zip(by_count[1:4], (4, 19, 99), (0.02, 1e-3, 1e-4), strict=True):
        assert found == pytest.approx(scipy.stats.t.ppf(0.975, degrees) / scipy.stats.norm.ppf(0.975), rel=off)
    by_tau = [factor(tau, 20, 10**9) for tau in (0.0, 1.0, 10.0)]
    assert by_tau == sorted(by_tau)
    assert by_tau[1] == pytest.approx(np.sqrt(1 + 1 / 40), rel=1e-3)
    assert factor(10.0, 10**9, 100) == pytest.approx(factor(1.0, 10**9, 10)), "so many independent ones"
    assert factor(10**6, 20, 10**9) == pytest.approx(np.sqrt(1.5), rel=2e-3), "a limit"


# ---- the building blocks of intervals, against plain or known ones


def _plain_autocorrelation_time(x):
    """As the docstring has it, without a Fourier transform."""
    x, n = np.asarray(x, dtype=float), len(x)
    sign = np.sign(x - np.median(x))
    sign -= sign.mean()
    power = (sign**2).sum()
    if n < 8 or power == 0:
        return 1.0
    correlation = [(sign[: n - k] * sign[k:]).sum() / power for k in range(max(2, n // 3))]
    if correlation[1] < 1.65 / math.sqrt(n):
        return 1.0
    sums = [1 + 2 * sum(correlation[1 : k + 1]) for k in range(len(correlation))]
    window = next((k for k, tau in enumerate(sums) if k >= 5 * tau), len(sums) - 1)
    bias = max(1 - 2 * sums[window] / n, 0.5)
    return min(max(sums[window] / bias, 1.0), n / 3)


def test_autocorrelation_times_are_those_of_plain_sums():
    for kind in NOISES:
        for n in [7, 8, 9, 10, 16, 33, 100, 1000]:
            rng = np.random.default_rng(n)
            for _ in range(10):
                x = times(kind, n, rng)
                assert autocorrelation_time(x) == pytest.approx(_plain_autocorrelation_time(x))
            drift = np.arange(n) + 1.0
            assert autocorrelation_time(drift) == pytest.approx(n / 3 if n >= 8 else 1)


def test_an_interquartile_mean_is_a_trimmed_one():
    for n in [2, 3, 4, 5, 7, 8, 100, 101]:
        rows = np.random.default_rng(n).random((3, n))
        np.testing.assert_allclose(interquartile_mean(rows), scipy.stats.trim_mean(rows, 0.25, axis=1))


def test_medians_of_resampled_blocks():
    for n in [100, 101]:
        for tau in [1.5, 6.0]:
            x = times("autocorrelated", n, np.random.default_rng(1))
            block = block_length(tau, n)
            assert block > 1
            found = bootstrap_medians(x, tau=tau, rng=np.random.default_rng(3), resamples=300)
            plain = np.median(resample(x, block, np.random.default_rng(3), 300), axis=1)
            np.testing.assert_allclose(found, widened(plain, tau, block, n))


def test_resamples_draw_every_block_of_the_circle_alike():
    x = np.arange(10.0)
    rows = resample(x, 4, np.random.default_rng(0), 2000)
    assert rows.shape == (2000, 10)
    for begin in (0, 4, 8):
        counts = np.bincount(rows[:, begin].astype(int), minlength=10)
        assert scipy.stats.chisquare(counts).pvalue > 1e-3
        inner = np.diff(rows[:, begin : begin + 4], axis=1)
        assert set(inner.ravel() % 10) == {1.0}, "neighbours, across the end too"


def test_the_quick_interval_of_a_median_holds_as_many_ranks_as_the_binomial_distribution():
    for n in [1, 2, 5, 20, 101, 1000]:
        ordered = np.arange(float(n))
        low, high = median_interval(ordered, 1.0)
        exact = scipy.stats.binom.interval(0.95, n, 0.5)
        assert low == pytest.approx(max(exact[0] - 1, 0), abs=1)
        assert high == pytest.approx(min(exact[1], n - 1), abs=1)
        assert low + high == n - 1, "the median is in the middle"
        wide = median_interval(ordered, 4.0)
        assert wide[1] - wide[0] == pytest.approx(min(2 * (high - low), n - 1), abs=2)
        assert median_interval(ordered, 1e9) == (0, n - 1)
        narrow = median_interval(ordered, 1.0, 0.5)
        assert narrow[1] - narrow[0] == pytest.approx(min(0.6745 * math.sqrt(n), n - 1), abs=2)
        assert ordered[(n - 1) // 2] >= narrow[0]
        assert ordered[n // 2] <= narrow[1]


def test_blocks_have_the_length_of_politis_and_white():
    """For the circular bootstrap, from the sums over the autocovariances of an AR(1) process."""
    for count in [1, 9, 20, 100, 1000, 100_000]:
        for tau in [1.01, 1.5, 3.0, 10.0]:
            r, k = (tau - 1) / (tau + 1), np.arange(1, 2000)
            assert 1 + 2 * (r**k).sum() == pytest.approx(tau)
            g, d = 2 * (k * r**k).sum(), 4 / 3 * tau**2
            best = (2 * g**2 / d * count) ** (1 / 3)
            assert block_length(tau, count) == min(math.ceil(best), max(count // 10, 1))
            assert block_length(1.0, count) == 1
