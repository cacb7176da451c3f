"""The verdict on paired differences: the unit is a pair of processes, one of each side, which measured in turns.

A process has a level of its own, because of where its memory lies and of the driver's state, and its samples only
repeat it. So the interval comes from how much the differences of the pairs of processes spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...display.quantities import format_uncertainty
from ...errors import ArgumentError
from ..stats.levels import Difference, mean_level
from ..stats.verdict import VerdictKind

#: With fewer pairs of processes there is no spread to judge by.
LEAST_PAIRS = 2
_CONFIDENCE = 0.95
#: A difference of 0 must be this unlikely, so that rows of any noise are wrong in at most so many cases.
_LEVEL = 0.01
#: Of the share of wrong rows among those called faster or slower (Benjamini and Hochberg).
_FALSE_DISCOVERIES = 0.05
_MOST_PAIRS = 50
#: An interval that reaches this many times above its ratio is not worth showing.
_TOO_NOISY = 1.5


@dataclass(frozen=True)
class PairedDifferences:
    """The differences of one row.

    Attributes
    ----------
    logs : sequence of sequences of float
        For each pair of processes, the logarithms of NEW by OLD of its turns: one per A B B A.
    error : float
        What the clock's step may add, as a logarithm; independent of how the differences spread.
    """

    logs: Sequence[Sequence[float]]
    error: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PairedVerdict:
    """A verdict on a row.

    Attributes
    ----------
    kind : VerdictKind
    ratio : float
        New by old: over 1 is slower.
    low, high : float
        The 95 % interval of the ratio.
    p_value, p_corrected : float
        For the hypothesis of no difference, alone and corrected for the number of rows.
    pairs : int
        Pairs of processes.
    between_sd, within_sd : float
        Standard deviation of the logarithms between pairs of processes, and of the mean of a pair by its turns.
    reason : str
    settle : str
        What would settle an ambiguous row; else empty.
    """

    kind: VerdictKind
    ratio: float
    low: float
    high: float
    p_value: float
    p_corrected: float
    pairs: int
    between_sd: float
    within_sd: float
    reason: str
    settle: str = ""

    @property
    def too_noisy(self) -> bool:
        """Whether the interval is so wide that its ends tell a reader nothing."""
        return self.high > _TOO_NOISY * self.ratio


@dataclass(frozen=True)
class _Estimate:
    mean: Difference  # of the pairs
    error: float
    pairs: int
    between_sd: float
    within_sd: float

    @property
    def centre(self) -> float:
        return self.mean.value

    def reach(self, confidence: float, pairs: int | None = None) -> float:
        """Return half the interval, also of another number of pairs of the same spread."""
        mean = self.mean
        if pairs is not None:
            mean = replace(mean, error=mean.error * math.sqrt(self.pairs / pairs), degrees=pairs - 1)
        return math.hypot(float(mean.reach(confidence)), self.error)

    @property
    def p_value(self) -> float:
        """Of a difference at least as large, if there is none."""
        return replace(self.mean, value=max(abs(self.centre) - self.error, 0.0)).p_value


def judge_paired(rows: Sequence[PairedDifferences], *, threshold: float = 0.01) -> list[PairedVerdict]:
    """Judge rows; p-values are corrected for their number.

    Parameters
    ----------
    rows : sequence of PairedDifferences
        Each with at least two pairs of processes.
    threshold : float
        Differences below this share are ignored.

    Returns
    -------
    list of PairedVerdict
    """
    if not 0 < threshold < 1:
        raise ArgumentError(f"threshold is {threshold!r}; it is a share between 0 and 1: 0.01 for 1 %")
    estimates = [_estimate(row) for row in rows]
    if not estimates:
        return []
    corrected = [float(p) for p in _scipy_stats().false_discovery_control([e.p_value for e in estimates])]
    return [_verdict(estimate, p, threshold) for estimate, p in zip(estimates, corrected, strict=True)]


def _scipy_stats() -> Any:
    """Return scipy.stats, which has no types; loaded when it is needed, since that takes long."""
    from scipy import stats

    return stats


def _estimate(row: PairedDifferences) -> _Estimate:
    if len(row.logs) < LEAST_PAIRS or any(not len(turns) for turns in row.logs):
        raise ArgumentError(
            f"a row has {len(row.logs)} pairs of processes with turns, and needs at least {LEAST_PAIRS}"
        )
    means = np.array([np.mean(turns) for turns in row.logs], np.float64)
    between = float(means.std(ddof=1))
    # A few pairs may agree by chance: they cannot be more alike than their own turns allow.
    errors = [np.var(turns, ddof=1) / len(turns) for turns in row.logs if len(turns) > 1]
    within = math.sqrt(float(np.mean(errors))) if errors else 0.0
    mean = replace(mean_level(means), error=max(between, within) / math.sqrt(means.size))
    return _Estimate(mean, row.error, int(means.size), between, within)


def _verdict(e: _Estimate, corrected: float, threshold: float) -> PairedVerdict:
    limit = math.log1p(threshold)
    reach, reach_same = e.reach(_CONFIDENCE), e.reach(2 * _CONFIDENCE - 1)
    low, high = e.centre - reach, e.centre + reach
    verdict = PairedVerdict(
        kind=VerdictKind.AMBIGUOUS, ratio=math.exp(e.centre), low=math.exp(low), high=math.exp(high),
        p_value=e.p_value, p_corrected=corrected, pairs=e.pairs, between_sd=e.between_sd, within_sd=e.within_sd,
        reason="",
    )  # fmt: skip
    ends = f"{_percent(low)} to {_percent(high)}"
    if low > limit or high < -limit:
        if e.p_value <= _LEVEL and corrected <= _FALSE_DISCOVERIES:
            kind = VerdictKind.SLOWER if low > limit else VerdictKind.FASTER
            return replace(verdict, kind=kind, reason=f"the interval, {ends}, lies beyond {100 * threshold:g} %")
        return replace(
            verdict,
            reason=f"the interval, {ends}, lies beyond {100 * threshold:g} %, but chance gives such a difference in "
            f"{format_uncertainty(max(e.p_value, corrected))[1:]} of cases",
            settle=f"--pairs {min(2 * e.pairs, _MOST_PAIRS)}",
        )
    if -limit < e.centre - reach_same and e.centre + reach_same < limit:
        return replace(
            verdict, kind=VerdictKind.SAME, reason=f"the interval, {ends}, lies within {100 * threshold:g} %"
        )
    if e.error > float(e.mean.reach(_CONFIDENCE)):
        step = format_uncertainty(math.expm1(min(e.error, 50.0)))
        return replace(
            verdict,
            reason=f"the step of the clock may be {step}, and the interval, {ends}, reaches over {100 * threshold:g} %",
            settle="times of a finer clock, or with more digits; or more work for each time",
        )
    spread = format_uncertainty(math.expm1(min(max(e.between_sd, e.within_sd), 50.0)))
    which = "pairs of processes" if e.between_sd > 2 * e.within_sd else "turns"
    wide = f"the interval, {ends}, reaches over {100 * threshold:g} %" if not verdict.too_noisy else "too noisy to say"
    return replace(verdict, reason=f"{which} differ by {spread}, {wide}", settle=_settle(e, limit))


def _settle(e: _Estimate, limit: float) -> str:
    """Return what would settle a row whose interval reaches over the threshold."""
    margin = abs(abs(e.centre) - limit)
    confidence = 2 * _CONFIDENCE - 1 if abs(e.centre) < limit else _CONFIDENCE
    more = range(e.pairs + 1, _MOST_PAIRS + 1)
    enough = next((pairs for pairs in more if e.reach(confidence, pairs) < margin), None)
    if enough is not None:
        return f"--pairs {enough}"
    smallest = math.expm1(e.reach(confidence, _MOST_PAIRS))
    if smallest < limit:
        return "another --threshold: the difference is about as large"
    return "a larger --threshold, or a machine with less other work"


def _percent(log: float) -> str:
    return f"{100 * math.expm1(min(log, 700.0)):+.2f} %"
