"""Verdicts on two runs of the same thing: faster, slower, the same, or not to be told; docs/statistics.md explains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from ..errors import ArgumentError
from .measurement import Series
from .resampling import (
    autocorrelation_time,
    block_length,
    bootstrap_medians,
    interquartile_mean,
    resample,
    widened,
)

__all__ = ["Pair", "Verdict", "VerdictKind", "judge", "judge_all"]

Samples = Series | Sequence[float] | Sequence[Sequence[float]]

# Fewer independent samples than this on a side decide nothing, whatever an interval says.
LEAST_UNITS = 5
# A median's interval this many times as wide as that of an interquartile mean lies between two modes: 1.15 is what
# normal noise gives.
_BETWEEN_MODES = 1.6
# A rank test of fewer values cannot agree once it is corrected for many rows. Where dependence is so strong that the
# batches still hang together, the interval is widened by all that the samples drifted: see _drift.
_RANKED_BATCHES = 8
_DRIFTS = 2.0
TESTABLE = 20
_RESAMPLES = 500
_PAIRS = 4000


class VerdictKind(StrEnum):
    """What can be said of the new run."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"  #: any difference is smaller than the threshold
    AMBIGUOUS = "ambiguous"  #: the samples do not settle it


@dataclass(frozen=True)
class Pair:
    """What `judge_all` compares.

    Attributes
    ----------
    old, new : Series, sequence of float, or sequence of sequences of float
        Times in ns, in order. Several sequences are blocks: separate rounds or runs of the same thing.
    tick_step_ns : float
        Step of the clock, per trial.
    clock_ratio : float
        The canary kernel's time in the new run by that in the old one; 1 where it is unknown.
    clock_moved : bool
        Whether a run said that its clock moved while it sampled.
    """

    old: Samples
    new: Samples
    tick_step_ns: float = 0.0
    clock_ratio: float = 1.0
    clock_moved: bool = False


@dataclass(frozen=True)
class Verdict:
    """A verdict, and what it rests on.

    Attributes
    ----------
    kind : VerdictKind
    ratio : float
        New by old: over 1 is slower. Of medians, or of what `statistic` says.
    low, high : float
        Interval of the ratio.
    same_low, same_high : float
        The interval that decides whether both are the same: of 90 % where the other one is of 95 %.
    p_value, p_corrected : float
        Of the rank test for any difference, alone and corrected for the number of rows.
    threshold, confidence : float
        What was asked for.
    old_ns, new_ns : float
        Medians.
    old_count, new_count : int
        Samples.
    old_units, new_units : int
        Independent samples that they are worth.
    statistic : str
        ``"median"``, or ``"interquartile mean"`` where the median lies between two modes.
    reason : str
        Why it is this verdict.
    settle : str
        What would settle an ambiguous one; else empty.
    """

    kind: VerdictKind
    ratio: float
    low: float
    high: float
    same_low: float
    same_high: float
    p_value: float
    p_corrected: float
    threshold: float
    confidence: float
    old_ns: float
    new_ns: float
    old_count: int
    new_count: int
    old_units: int
    new_units: int
    statistic: str
    reason: str
    settle: str = ""

    def __str__(self) -> str:
        text = f"{self.kind}: {self.ratio:.4f} times the old time, {self.low:.4f} to {self.high:.4f}"
        return f"{text}; {self.settle}" if self.settle else text


def judge(
    old: Samples,
    new: Samples,
    *,
    threshold: float = 0.02,
    confidence: float = 0.95,
    tick_step_ns: float = 0.0,
    seed: int = 0,
) -> Verdict:
    """Judge whether the new samples are faster or slower than the old ones.

    Parameters
    ----------
    old, new : Series, sequence of float, or sequence of sequences of float
        Times in ns, in the order in which they were taken. Several sequences are blocks: separate rounds or runs of
        the same thing, and then the block is the unit.
    threshold : float
        Differences below this share are of no interest.
    confidence : float
        Of the interval, at least 0.75; 1 − confidence is the level of the rank test, and of each of the two one-sided
        tests by which both are the same.
    tick_step_ns : float
        Step of the clock, per trial.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Verdict
    """
    return judge_all([Pair(old, new, tick_step_ns)], threshold=threshold, confidence=confidence, seed=seed)[0]


def judge_all(
    pairs: Iterable[Pair], *, threshold: float = 0.02, confidence: float = 0.95, seed: int = 0
) -> list[Verdict]:
    """Judge many pairs; the rank tests are corrected for their number (Benjamini and Hochberg).

    Parameters
    ----------
    pairs : iterable of Pair
    threshold, confidence, seed
        As for `judge`.

    Returns
    -------
    list of Verdict
        In the order of the pairs.
    """
    from scipy.stats import false_discovery_control

    if not 0 < threshold < 1:
        raise ArgumentError(f"threshold is {threshold!r}; it is a share between 0 and 1: 0.02 for 2 %")
    if not 0.75 <= confidence < 1:
        raise ArgumentError(f"confidence is {confidence!r}; it must lie between 0.75 and 1, such as 0.95")
    found = [_evidence(pair, threshold, confidence, np.random.default_rng([seed, i])) for i, pair in enumerate(pairs)]
    if not found:
        return []
    corrected = false_discovery_control([verdict.p_value for verdict in found])
    from .verdict_rules import decide

    return [decide(replace(v, p_corrected=float(p))) for v, p in zip(found, corrected, strict=True)]


# ---- evidence


def _blocks(samples: Samples, side: str) -> list[np.ndarray]:
    values = samples.samples_ns if isinstance(samples, Series) else samples
    nested = len(values) > 0 and not np.isscalar(values[0])
    blocks = [np.asarray(block, dtype=np.float64) for block in (values if nested else [values])]
    blocks = [block for block in blocks if block.size]
    if not blocks:
        raise ArgumentError(f"the {side} side has no samples, so there is nothing to compare")
    for block in blocks:
        if block.ndim != 1 or not np.isfinite(block).all() or (block <= 0).any():
            raise ArgumentError(f"the {side} side has a time that is not a positive number of ns; discard it first")
    return blocks


@dataclass(frozen=True)
class _Side:
    blocks: list[np.ndarray]
    x: np.ndarray
    tau: float
    units: list[np.ndarray]  # nearly independent values: per block, medians of batches

    @classmethod
    def of(cls, samples: Samples, side: str) -> _Side:
        blocks = _blocks(samples, side)
        # Within blocks: that blocks differ is accounted for by itself.
        taus = [(autocorrelation_time(block), block.size) for block in blocks]
        tau = sum(t * size for t, size in taus) / sum(size for _, size in taus)
        return cls(blocks, np.concatenate(blocks), tau, [_batch_medians(block, tau) for block in blocks])

    @property
    def count(self) -> int:
        return int(self.x.size)

    @property
    def unit_count(self) -> int:
        return sum(u.size for u in self.units)

    def drift(self) -> float:
        """Return how far off dependence may put the middle, as a logarithm; 0 where enough samples are independent."""
        spread = math.log(self.x.max() / self.x.min())
        if self.tau > 1 and self.count / (2 * self.tau) < _RANKED_BATCHES:
            return _DRIFTS * spread
        # So few show no dependence, whatever there is: runs must then lie apart as a whole.
        return spread / 2 if self.count < TESTABLE else 0.0

    def estimates(self, statistic: str, rng: np.random.Generator) -> np.ndarray:
        """Resampled logarithms of the statistic."""
        if statistic == "median":
            return np.log(
                np.maximum(bootstrap_medians(self.x, tau=self.tau, rng=rng, resamples=_RESAMPLES), self.x.min() / 2)
            )
        block = block_length(self.tau, self.count)
        estimates = interquartile_mean(resample(self.x, block, rng, _RESAMPLES))
        if block > 1:
            estimates = widened(estimates, self.tau, block, self.count)
        return np.log(np.maximum(estimates, self.x.min() / 2))

    def value(self, statistic: str) -> float:
        return float(np.median(self.x) if statistic == "median" else interquartile_mean(self.x))


def _batch_medians(x: np.ndarray, tau: float) -> np.ndarray:
    """Medians of consecutive batches, long enough that neighbours hardly depend on each other."""
    if tau <= 1:
        return x
    batches = max(int(x.size / math.ceil(2 * tau)), min(_RANKED_BATCHES, x.size))
    return np.array([np.median(batch) for batch in np.array_split(x, batches)])


def _interval(
    old: _Side, new: _Side, statistic: str, confidences: np.ndarray, rng: np.random.Generator
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the log ratio, and the ends of its interval for each confidence."""
    centre = math.log(new.value(statistic) / old.value(statistic))
    spread = rng.choice(new.estimates(statistic, rng), _PAIRS) - rng.choice(old.estimates(statistic, rng), _PAIRS)
    tails = (1 - confidences) / 2
    low, high = np.quantile(spread, tails), np.quantile(spread, 1 - tails)
    # Resampling five values cannot show how far a sixth may lie: quantiles of Student's t against normal ones.
    degrees = old.unit_count + new.unit_count - 2
    factor = 1 + 2.84 / (4 * degrees) + 1.3 / degrees**2 if degrees > 0 else 5.0
    return (
        centre,
        np.minimum(centre + factor * (low - centre), centre),
        np.maximum(centre + factor * (high - centre), centre),
    )


def _pooled(old: Sequence[float], new: Sequence[float]) -> tuple[float, int]:
    """Standard error of the difference of means, from the spread within both sides; and its degrees of freedom."""
    degrees = len(old) + len(new) - 2
    squares = sum(float(np.var(side)) * len(side) for side in (old, new))
    return math.sqrt(squares / degrees * (1 / len(old) + 1 / len(new))), degrees


def _between_blocks(old: _Side, new: _Side, confidences: np.ndarray) -> np.ndarray:
    """Half the widths of intervals of the log ratio that take each block as one value; 0 without blocks.

    Two runs of the same thing differ by more than samples within a run show: other clocks, other addresses.
    """
    from scipy.special import stdtrit

    logs = [[math.log(np.median(block)) for block in side.blocks] for side in (old, new)]
    if sum(map(len, logs)) < 3:
        return np.zeros_like(confidences)
    error, degrees = _pooled(*logs)
    return stdtrit(degrees, (1 + confidences) / 2) * error


def _rank_test(old: _Side, new: _Side) -> float:
    from scipy.special import stdtr
    from scipy.stats import mannwhitneyu, rankdata

    a, b = np.concatenate(old.units), np.concatenate(new.units)
    if min(a.min(), b.min()) == max(a.max(), b.max()):
        return 1.0
    p = float(mannwhitneyu(a, b).pvalue)
    if len(old.units) + len(new.units) < 3:
        return p
    # Blocks are the units: a t test on the mean rank of each (Conover and Iman), for ranks of three blocks have no
    # small p.
    ranks = rankdata(np.concatenate([a, b]))
    means = [float(r.mean()) for r in np.split(ranks, np.cumsum([u.size for u in [*old.units, *new.units]])[:-1])]
    split = len(old.units)
    error, degrees = _pooled(means[:split], means[split:])
    difference = abs(float(np.mean(means[:split]) - np.mean(means[split:])))
    clustered = 2 * float(stdtr(degrees, -difference / error)) if error else float(not difference)
    return max(p, clustered)


def _evidence(pair: Pair, threshold: float, confidence: float, rng: np.random.Generator) -> Verdict:
    old, new = _Side.of(pair.old, "old"), _Side.of(pair.new, "new")
    statistic = "median"
    # The second is that of two one-sided tests at the level of the first: what equivalence is judged by.
    confidences = np.array([confidence, 2 * confidence - 1])
    centre, low, high = _interval(old, new, statistic, confidences, rng)
    limit = math.log1p(threshold)
    if max(-low[0], high[0]) > limit:
        smooth = _interval(old, new, "interquartile mean", confidences, rng)
        if low[0] > limit or high[0] < -limit:
            # The median of two modes may by chance lie well inside either: the middle half must have moved, too.
            low, high = np.minimum(low, smooth[1]), np.maximum(high, smooth[2])
        elif high[0] - low[0] > _BETWEEN_MODES * (smooth[2][0] - smooth[1][0]):
            statistic, (centre, low, high) = "interquartile mean", smooth
    between = _between_blocks(old, new, confidences)
    drift = old.drift() + new.drift()
    reach = np.maximum(between, drift)
    low, high = np.minimum(low, centre - reach), np.maximum(high, centre + reach)
    old_ns, new_ns = old.value("median"), new.value("median")
    # A median of whole steps may be half a step off, on each side.
    step = pair.tick_step_ns / 2 * (1 / old_ns + 1 / new_ns)
    # A kernel may follow the clock fully, partly or not at all, as it is bound by arithmetic or by memory.
    clock = math.log(pair.clock_ratio)
    low, high = low - step - max(clock, 0.0), high + step - min(clock, 0.0)
    width = float(high[0] - low[0])
    why = ""
    if min(old.unit_count, new.unit_count) < LEAST_UNITS:
        why = "few"
    elif pair.clock_moved:
        why = "moved"
    elif abs(clock) > max(limit / 2, width / 4):
        why = "clock"
    elif step > limit / 2:
        why = "step"
    elif between[0] and between[0] > width / 2.5:
        why = "blocks"
    elif drift and drift > width / 2.5:
        why = "drift" if min(old.count, new.count) >= TESTABLE else "untested"
    logs = (centre, low[0], high[0], low[1], high[1])
    ratios = [math.exp(min(max(float(value), -700.0), 700.0)) for value in logs]
    return Verdict(
        VerdictKind.AMBIGUOUS, *ratios, _rank_test(old, new), 1.0, threshold, confidence, old_ns, new_ns,
        old.count, new.count, old.unit_count, new.unit_count, statistic, why,
    )  # fmt: skip
