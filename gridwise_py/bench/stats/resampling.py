"""Resampling of times that may depend on their neighbours, for the intervals of medians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Times in their order.
Times: TypeAlias = Sequence[float] | NDArray[np.float64]

_RESAMPLES = 1000
_FAST_RESAMPLES = 10_000
# Items in the resamples of one block bootstrap, which bounds its time and memory.
_RESAMPLED_ITEMS = 1_000_000
_LEAST_RESAMPLES = 300


# ---- dependence between samples


def autocorrelation_time(samples_ns: Times) -> float:
    """Return how many consecutive samples are worth one independent sample.

    Integrated over Sokal's automatic window, for the series "above or below the median": the error of a median depends
    on this series, and outliers do not disturb it.

    Parameters
    ----------
    samples_ns : sequence of float

    Returns
    -------
    float
        1 for independent samples, about (1 + r) / (1 - r) for an AR(1) process of coefficient r, at most a third of
        the number of samples.
    """
    x = np.asarray(samples_ns, dtype=np.float64)
    n = x.size
    if n < 8:
        return 1.0
    sign = np.sign(x - np.median(x))
    sign -= sign.mean()
    power = float(sign @ sign)
    if power == 0:
        return 1.0
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(sign, size)
    lags = max(2, n // 3)
    correlation = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, size)[:lags] / power
    times = 2 * np.cumsum(correlation) - 1
    inside = np.arange(lags) < 5 * times
    window = int(np.argmin(inside)) if not inside.all() else lags - 1
    # Values within the noise of independent samples count as independence.
    if correlation[1] < 1.65 / math.sqrt(n):
        return 1.0
    tau = float(times[window])
    return float(min(max(tau / max(1 - 2 * tau / n, 0.5), 1.0), n / 3))


def block_length(tau: float, count: int) -> int:
    """Return the length of blocks for a block bootstrap: 1 where samples are independent.

    The rule of Politis and White for blocks on a circle, with an AR(1) process of autocorrelation time `tau`.
    """
    if tau <= 1:
        return 1
    r = (tau - 1) / (tau + 1)
    length = (1.5 * count) ** (1 / 3) * (2 * r / (1 - r * r)) ** (2 / 3)
    # With under about ten blocks, resamples vary less than the samples do.
    return int(min(max(math.ceil(length), 1), max(count // 10, 1)))


# ---- bootstrap


def resample(
    x: NDArray[np.float64], block: int, rng: np.random.Generator, resamples: int = _RESAMPLES
) -> NDArray[np.float64]:
    """Return resamples of `x` as rows, by a circular block bootstrap; fewer if `x` is long."""
    n = x.size
    resamples = min(resamples, max(_RESAMPLED_ITEMS // n, _LEAST_RESAMPLES))
    count = -(-n // block)
    starts = rng.integers(0, n, (resamples, count), dtype=np.int32)
    circle = np.concatenate([x, x[: block - 1]])
    blocks = np.lib.stride_tricks.sliding_window_view(circle, block)
    return blocks[starts].reshape(resamples, -1)[:, :n]


def bootstrap_medians(
    samples_ns: Times,
    *,
    tau: float | None = None,
    rng: np.random.Generator | None = None,
    resamples: int = _RESAMPLES,
) -> NDArray[np.float64]:
    """Return medians of resamples, for percentiles.

    Parameters
    ----------
    samples_ns : sequence of float
    tau : float, optional
        `autocorrelation_time`, where it is known.
    rng : numpy.random.Generator, optional
    resamples : int
        The maximum for a block bootstrap.

    Returns
    -------
    numpy.ndarray
        10,000 for independent samples. For correlated samples, whole blocks are drawn, at most `resamples` times.
    """
    x = np.asarray(samples_ns, dtype=np.float64)
    rng = np.random.default_rng(0) if rng is None else rng
    tau = autocorrelation_time(x) if tau is None else tau
    n = x.size
    if (block := block_length(tau, n)) > 1:
        return widened(_row_medians(resample(x, block, rng, resamples)), tau, block, n)
    # The middle of n draws with replacement, without drawing them: order statistics of uniform numbers have beta
    # distributions, and a uniform number u stands for the sample of rank floor(n·u).
    ordered = np.sort(x)
    lower = (n + 1) // 2
    u = rng.beta(lower, n - lower + 1, _FAST_RESAMPLES)
    first = ordered[np.minimum((u * n).astype(np.intp), n - 1)]
    if n % 2:
        return first
    above = u + (1 - u) * rng.beta(1, n - lower, _FAST_RESAMPLES)
    return (first + ordered[np.minimum((above * n).astype(np.intp), n - 1)]) / 2


def widened(estimates: NDArray[np.float64], tau: float, block: int, count: int) -> NDArray[np.float64]:
    """Widen the distribution of resampled estimates to correct for a block bootstrap with few blocks.

    Because blocks cut dependence at their ends, the variance is too small by about tau / block. Because they are few,
    the quantiles should be those of Student's t, not the normal ones.
    """
    degrees = max(count / max(tau, 1.0) - 1, 2.0)
    # A quantile of Student's t over the normal one, z = 1.96: 1 + (z² + 1) / 4ν + (5z⁴ + 16z² + 3) / 96ν² (Abramowitz
    # and Stegun, 1964, 26.7.5).
    student = 1 + 4.84 / (4 * degrees) + 1.44 / degrees**2
    factor = math.sqrt(1 + min(tau / (2 * block), 0.5)) * student
    middle = np.median(estimates)
    return middle + factor * (estimates - middle)


def _row_medians(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    n = rows.shape[1]
    middle = n // 2
    if n % 2:
        return np.partition(rows, middle, axis=1)[:, middle]
    parted = np.partition(rows, middle, axis=1)
    return (parted[:, :middle].max(axis=1) + parted[:, middle]) / 2


def interquartile_mean(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the middle half of each row: nearly a median, but smooth between two modes."""
    quarter = rows.shape[-1] // 4
    if not quarter:
        return rows.mean(axis=-1)
    parted = np.partition(rows, (quarter, rows.shape[-1] - quarter - 1), axis=-1)
    return parted[..., quarter : rows.shape[-1] - quarter].mean(axis=-1)


def median_interval(ordered: NDArray[np.float64], tau: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval of the median from order statistics: nearly that of a bootstrap, at almost no cost.

    Parameters
    ----------
    ordered : numpy.ndarray
        Sorted samples.
    tau : float
        `autocorrelation_time`.
    confidence : float
    """
    n = ordered.size
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    reach = z * math.sqrt(n * tau) / 2
    low = max(math.floor((n - 1) / 2 - reach), 0)
    high = min(math.ceil((n - 1) / 2 + reach), n - 1)
    return float(ordered[low]), float(ordered[high])
