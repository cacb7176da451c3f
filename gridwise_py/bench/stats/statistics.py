"""Statistics of times: summaries, the stopping rule, the end of a warm-up.

numpy only: loading scipy.stats takes longer than a short measurement. docs/contribute/statistics.md explains.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import ArgumentError
from .resampling import autocorrelation_time, bootstrap_medians, median_interval
from .series import LEAST_FOR_INTERVAL, Series, StopReason, Summary

_Times = TypeVar("_Times", bound=Series)
# Of so many kernels with one label each has its own times: a sort of 8 bytes has 8 passes, which differ.
_MOST_APART = 8

_OUTLIER_RANGES = 1.5
# With fewer independent samples the bootstrap of a median is too narrow (of seven it covers 86 %, not 95): its interval
# reaches at least as far as that of order statistics, which is exact.
_FEW = 20


def _checked(samples_ns: Sequence[float]) -> NDArray[np.float64]:
    x = np.asarray(samples_ns, dtype=np.float64)
    if x.ndim != 1 or not x.size:
        raise ArgumentError(f"samples of shape {x.shape} were given; statistics need one row of at least one sample")
    if not np.isfinite(x).all():
        where = int(np.flatnonzero(~np.isfinite(x))[0])
        raise ArgumentError(f"sample {where} is {x[where]}; discard invalid samples first, and count them")
    return x


def summarize(samples_ns: Sequence[float], *, confidence: float = 0.95, seed: int = 0) -> Summary:
    """Summarise times, outliers included.

    Parameters
    ----------
    samples_ns : sequence of float
        Valid samples, in the order in which they were taken: dependence between neighbours widens the interval.
    confidence : float
        Of the interval of the median.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Summary
    """
    x = _checked(samples_ns)
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence is {confidence!r}; it must lie between 0 and 1, such as 0.95")
    q1, median, q3 = (float(q) for q in np.percentile(x, (25, 50, 75)))
    low, high = _interval(x, median, confidence, seed) if x.size >= LEAST_FOR_INTERVAL else (None, None)
    reach = _OUTLIER_RANGES * (q3 - q1)
    return Summary(
        median_ns=median,
        ci_low_ns=low,
        ci_high_ns=high,
        min_ns=float(x.min()),
        q1_ns=q1,
        q3_ns=q3,
        mean_ns=float(x.mean()),
        std_ns=float(x.std(ddof=1)) if x.size > 1 else None,
        mad_ns=float(np.median(np.abs(x - median))) if x.size > 1 else None,
        count=int(x.size),
        outliers=int(np.count_nonzero((x < q1 - reach) | (x > q3 + reach))),
    )


def together(kernels: Sequence[_Times]) -> dict[str, tuple[_Times, tuple[_Times, ...]]]:
    """Return kernels by names that are their own, each with those that it stands for.

    Many of one label are one, ``"step × 78"``, whose samples are sums; else the second one has a number.
    """
    alike: dict[str, list[_Times]] = {}
    for kernel in kernels:
        alike.setdefault(kernel.name, []).append(kernel)
    found: dict[str, tuple[_Times, tuple[_Times, ...]]] = {}
    numbers = Counter[str]()
    for kernel in kernels:
        many, label = alike[kernel.name], kernel.name
        if len(many) > _MOST_APART:
            if kernel is many[0]:
                samples = tuple(map(sum, zip(*(one.samples_ns for one in many), strict=False)))
                invalid = dict(sum((Counter(one.invalid) for one in many), Counter[str]()))
                label = f"{label} × {len(many)}"
                summary = summarize(samples) if samples else None
                sums = replace(kernel, name=label, samples_ns=samples, summary=summary, invalid=invalid)
                found[label] = sums, tuple(many)
            continue
        while label in found:
            numbers[kernel.name] += 1
            label = f"{kernel.name} #{numbers[kernel.name] + 1}"
        found[label] = kernel, (kernel,)
    return found


def _interval(x: NDArray[np.float64], median: float, confidence: float, seed: int) -> tuple[float, float]:
    if x.min() == x.max():
        return median, median
    tail, tau = (1 - confidence) / 2, autocorrelation_time(x)
    medians = bootstrap_medians(x, tau=tau, rng=np.random.default_rng(seed))
    low, high = (float(q) for q in np.quantile(medians, (tail, 1 - tail)))
    if x.size < _FEW:
        least, most = median_interval(np.sort(x), tau, confidence)
        low, high = min(low, least), max(high, most)
    # After widening it may reach below 0, but times do not.
    return max(min(low, median), 0.0), max(high, median)


# ---- stopping


@dataclass(frozen=True)
class StoppingRule:
    """The rule for when enough samples were taken.

    Attributes
    ----------
    min_samples : int
        With fewer samples, or fewer than an interval needs (6), only the timeout and `max_samples` can stop sampling.
    max_samples : int
    timeout_s : float
    relative_interval : float
        Sampling stops when the 95 % interval of the median, from end to end, is no wider than this share of the median
        in two checks in a row.
    plateau_samples : int
        The minimum for a plateau: with fewer samples the width of an interval is too uncertain.
    """

    min_samples: int = 50
    max_samples: int = 10_000
    timeout_s: float = 15.0
    relative_interval: float = 0.01
    plateau_samples: int = 500

    def __post_init__(self) -> None:
        if not (self.relative_interval > 0 and self.timeout_s > 0 and self.max_samples >= 1):
            raise ArgumentError(
                f"stopping at relative_interval={self.relative_interval}, timeout_s={self.timeout_s}, "
                f"max_samples={self.max_samples}: each must be positive, or sampling would never or always stop"
            )


class Stopping:
    """Watches one series of samples grow, and says when a rule ends it.

    It checks only when the samples have grown by an eighth since the last check, so asking after each sample costs
    little: O(n log n) in total. If the series is shorter than before, it starts over.

    Parameters
    ----------
    rule : StoppingRule
    """

    def __init__(self, rule: StoppingRule):
        self.rule = rule
        self._start_over()

    def _start_over(self) -> None:
        self._count = 0
        self._next_look = 0
        self._was_narrow = False
        self._widths: list[tuple[int, float]] = []

    def reason(self, samples_ns: Sequence[float], elapsed_s: float) -> StopReason | None:
        """Return why to stop, or None to go on.

        Parameters
        ----------
        samples_ns : sequence of float
            All samples so far; the same series, grown, at every call.
        elapsed_s : float
            Since the first sample was begun.
        """
        count = len(samples_ns)
        if count < self._count:
            self._start_over()
        self._count = count
        if count >= max(self.rule.min_samples, LEAST_FOR_INTERVAL, self._next_look):
            self._next_look = count + max(count // 8, 4)
            reason = self._look(np.asarray(samples_ns, dtype=np.float64))
            if reason is not None:
                return reason
        if count >= self.rule.max_samples:
            return StopReason.COUNT
        return StopReason.TIMEOUT if elapsed_s >= self.rule.timeout_s else None

    def _look(self, x: NDArray[np.float64]) -> StopReason | None:
        ordered = np.sort(x)
        tau = autocorrelation_time(x)
        if tau > 1:
            # Stopping at the first narrow interval favours moments at which the dependence was underestimated. So use
            # the upper end of the estimate (its error is Sokal's).
            tau *= 1 + math.sqrt(2 * (10 * tau + 1) / x.size)
        low, high = median_interval(ordered, tau)
        width = (high - low) / max(float(np.median(ordered)), 1e-9)
        was_narrow, self._was_narrow = self._was_narrow, width <= self.rule.relative_interval
        if self._was_narrow and (was_narrow or width == 0):
            return StopReason.INTERVAL
        self._widths.append((x.size, width))
        return StopReason.PLATEAU if self._on_plateau(x.size) else None

    def _on_plateau(self, count: int) -> bool:
        """Whether over the last fourfold growth the interval narrowed far less than by 1/√count."""
        if count < self.rule.plateau_samples or self._widths[0][0] > count / 4:
            return False
        recent = [(n, width) for n, width in self._widths if n >= count / 4]
        if len(recent) < 3:  # the samples came in large blocks: fewer checks show no slope
            return False
        logs = np.log(np.array(recent, dtype=np.float64))  # a width of 0 has ended sampling before
        slope = np.polyfit(logs[:, 0], logs[:, 1], 1)[0]
        # -0.5 is what independent samples give.
        return bool(slope > -0.1)


def is_stationary(samples_ns: Sequence[float], *, tolerance: float = 0.01) -> bool:
    """Return whether a warm-up is over: no trend, and the second half as fast as the first.

    A difference counts only if it is over `tolerance` and over the spread of the samples: noise must not prolong a
    warm-up.

    Parameters
    ----------
    samples_ns : sequence of float
        At least 8; fewer never count as stationary.
    tolerance : float
        As a share of the median.
    """
    x = np.asarray(samples_ns, dtype=np.float64)
    n = x.size
    if n < 8:
        return False
    first, second = x[: n // 2], x[n // 2 :]
    q1, median, q3 = np.percentile(second, (25, 50, 75))
    small = tolerance * median
    if abs(float(np.median(first)) - median) > max(small, q3 - q1):
        return False
    # A slow, steady trend causes the spread and so hides in it; but then the values are ordered in time.
    ranks = np.argsort(np.argsort(x, kind="stable"), kind="stable")
    agreement = float(np.corrcoef(np.arange(n), ranks)[0, 1]) if x.min() != x.max() else 0.0
    third = n // 3
    change = abs(float(np.median(x[-third:]) - np.median(x[:third])))
    return not (abs(agreement) > max(0.5, 2.6 / math.sqrt(n - 1)) and change > small)
