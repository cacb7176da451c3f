"""The canary: a fixed kernel whose time shows the GPU's clock, and so which samples share one clock.

docs/contribute/statistics.md explains the rule. Uses no GPU: times come from `sampling`, or from a results file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: A smaller difference counts as the same clock: boost clocks vary by a few steps of 0.75 % (15 of 1,980 MHz).
CLOCK_TOLERANCE = 0.03
# Standard errors by which two canaries must differ beyond the tolerance. There is a comparison per block, so one in
# 16,000 by chance.
_ERRORS = 4.0
# Standard error of the median of normal samples, divided by that of their mean.
_MEDIAN_ERROR = math.sqrt(math.pi / 2)
_MAD_TO_DEVIATION = 1.4826


@dataclass(frozen=True)
class CanaryTime:
    """The median of several runs of the canary, and its standard error (at least half a step of the clock), in ns."""

    median_ns: float
    error_ns: float = 0.0


@dataclass(frozen=True)
class Settled:
    """The clock at which most blocks of samples were taken.

    Attributes
    ----------
    kept : tuple of bool
        Per block: whether the canaries before and after it agree with each other and with the settled clock. All true
        if there is no such block, or no canary.
    moved : bool
        Whether no block had a steady clock: the kept blocks were then taken at several clocks.
    canary : CanaryTime or None
        At the settled clock.
    """

    kept: tuple[bool, ...]
    moved: bool = False
    canary: CanaryTime | None = None


def canary_time(ticks: NDArray[np.uint64], period_ns: float, step_ns: float | None = None) -> CanaryTime | None:
    """Return the canary's time from the timestamps of several runs, shape (runs, 2); None if none is valid."""
    begins, ends = (column.astype(np.uint64) for column in np.asarray(ticks).reshape(-1, 2).T)
    valid = (begins != 0) & (ends > begins)
    times = (ends[valid] - begins[valid]).astype(np.float64) * period_ns
    if not times.size:
        return None
    median = float(np.median(times))
    deviation = _MAD_TO_DEVIATION * float(np.median(np.abs(times - median)))
    return CanaryTime(median, max(_MEDIAN_ERROR * deviation / math.sqrt(times.size), (step_ns or period_ns) / 2))


def _differ(a_ns: NDArray[np.float64] | float, b_ns: NDArray[np.float64] | float, error_ns: float) -> NDArray[np.bool_]:
    least = np.minimum(a_ns, b_ns)
    return np.asarray(np.abs(np.subtract(a_ns, b_ns)) > CLOCK_TOLERANCE * least + _ERRORS * math.sqrt(2) * error_ns)


def is_slower(canary: CanaryTime, fastest_ns: float | None) -> bool:
    """Whether a canary shows a clock below the one at which it took `fastest_ns`."""
    if fastest_ns is None or canary.median_ns <= fastest_ns:
        return False
    return bool(_differ(canary.median_ns, fastest_ns, canary.error_ns))


def settled(pairs: Sequence[tuple[CanaryTime | None, CanaryTime | None]]) -> Settled:
    """Find the clock at which most blocks were taken, and these blocks.

    A block is steady if the canaries before and after it do not differ by more than the tolerance and four standard
    errors. The settled clock is the one that most steady blocks have; in a tie, that of the last block.

    Parameters
    ----------
    pairs : sequence of (CanaryTime or None, CanaryTime or None)
        Before and after each block of samples.
    """
    known = [(before, after) for before, after in pairs if before is not None and after is not None]
    if len(known) < len(pairs) or not pairs:
        return Settled((True,) * len(pairs))
    before, after = np.array([[a.median_ns, b.median_ns] for a, b in known]).T
    # One error for all: with so few runs, that of a single canary is uncertain.
    error = float(np.median([canary.error_ns for pair in known for canary in pair]))
    steady = ~_differ(before, after, error)
    if not steady.any():
        return Settled((True,) * len(pairs), moved=True)
    level = (before + after) / 2
    alike = ~_differ(level[:, None], level[None, :], error) & steady[:, None] & steady[None, :]
    votes = alike.sum(axis=1)
    best = int(np.flatnonzero(votes == votes.max())[-1])
    kept = alike[best]
    times = np.concatenate([before[kept], after[kept]])
    return Settled(tuple(bool(k) for k in kept), canary=CanaryTime(float(np.median(times)), error))


def clock_log_ratio(old_ns: Sequence[float], new_ns: Sequence[float]) -> float:
    """Return the difference of the canary between two runs, as a logarithm; 0 if it is within the noise.

    Parameters
    ----------
    old_ns, new_ns : sequence of float
        The canary's times at the settled clock of either run.
    """
    if not len(old_ns) or not len(new_ns):
        return 0.0
    logs = [np.log(np.asarray(times, dtype=np.float64)) for times in (old_ns, new_ns)]
    medians = [float(np.median(x)) for x in logs]
    # The deviations of both together: a run of two blocks alone has four.
    deviation = _MAD_TO_DEVIATION * float(
        np.median(np.concatenate([np.abs(x - m) for x, m in zip(logs, medians, strict=True)]))
    )
    error = _MEDIAN_ERROR * deviation * math.sqrt(sum(1 / len(x) for x in logs))
    ratio = medians[1] - medians[0]
    return ratio if abs(ratio) > _ERRORS * error else 0.0
