"""From raw ticks to times: classifies each pair of timestamps, and converts the valid ones. Uses no GPU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stats.series import SampleClass

# The GPU's clock and the CPU's are two quartz crystals and a driver's rounding: a span may exceed the wall by this.
WALL_SLACK = 1.02


@dataclass(frozen=True)
class Classified:
    """The classes of samples, and their times in ns; NaN if invalid.

    Attributes
    ----------
    classes : tuple of tuple of SampleClass
        Per sample, per kernel.
    span_classes, sum_classes : tuple of SampleClass
        Per sample: of the GPU span; of the sum of the kernels and of the gaps.
    kernels_ns : numpy.ndarray
        Shape (samples, kernels).
    span_ns, sum_ns, gaps_ns : numpy.ndarray
        Shape (samples,): first begin to last end; the kernels' sum; span less sum.
    last_end_ticks : int or None
        The last timestamp of the last submission, with which the next one is compared.
    """

    classes: tuple[tuple[SampleClass, ...], ...]
    span_classes: tuple[SampleClass, ...]
    sum_classes: tuple[SampleClass, ...]
    kernels_ns: NDArray[np.float64]
    span_ns: NDArray[np.float64]
    sum_ns: NDArray[np.float64]
    gaps_ns: NDArray[np.float64]
    last_end_ticks: int | None

    def invalid(self, kernel: int) -> dict[str, int]:
        """Return how many pairs of a kernel are in each invalid class."""
        return count_invalid([row[kernel] for row in self.classes])


def count_invalid(classes: Sequence[SampleClass]) -> dict[str, int]:
    """Return how many samples are in each invalid class."""
    return dict(sorted(Counter(c.value for c in classes if c is not SampleClass.VALID).items()))


def classify(
    ticks: NDArray[np.uint64] | Sequence[Any],
    period_ns: float,
    submissions: Sequence[int],
    walls_ns: Sequence[float],
    *,
    previous_end_ticks: int | None = None,
) -> Classified:
    """Judge timestamps.

    Parameters
    ----------
    ticks : array of uint64
        Shape (samples, kernels, 2): begin and end, in the order in which the GPU ran them.
    period_ns : float
        Nanoseconds per tick.
    submissions : sequence of int
        For each sample the index of its submission, ascending.
    walls_ns : sequence of float
        For each submission, how long it took on the CPU's clock: no span in it can be longer.
    previous_end_ticks : int, optional
        The last timestamp of the submission before these: pairs that begin earlier are stale.

    Notes
    -----
    A counter that was reset or has wrapped cannot be corrected by masking, because WebGPU does not say how wide it is.
    The pair across the reset is reversed, the rest of that submission overlaps or is stale, and the next submission is
    valid again.
    """
    ticks = np.asarray(ticks, dtype=np.uint64)
    if ticks.ndim != 3 or ticks.shape[2] != 2 or len(submissions) != len(ticks):
        raise ValueError(
            f"ticks have the shape {ticks.shape} for {len(submissions)} samples; they need (samples, kernels, 2)"
        )
    samples, kernels = ticks.shape[:2]
    classes: list[tuple[SampleClass, ...]] = []
    kernels_ns = np.full((samples, kernels), np.nan)
    span_ns, sum_ns = np.full(samples, np.nan), np.full(samples, np.nan)
    span_classes: list[SampleClass] = []
    sum_classes: list[SampleClass] = []
    end_of_previous = previous_end_ticks  # the last timestamp of the previous submission
    neighbour_end: int | None = None  # of the previous pair in this submission
    current: int | None = None
    for s, rows in enumerate(ticks.tolist()):  # Python's integers: a difference of large counts stays exact
        if submissions[s] != current:
            # The last timestamp, not the largest: after a reset all earlier ones are larger.
            end_of_previous = neighbour_end if neighbour_end is not None else end_of_previous
            current, neighbour_end = submissions[s], None
        longest_ns = WALL_SLACK * walls_ns[submissions[s]]
        row: list[SampleClass] = []
        for k, (begin, end) in enumerate(rows):
            found = _judge(begin, end, (end - begin) * period_ns, longest_ns, end_of_previous, neighbour_end)
            row.append(found)
            if found is SampleClass.VALID:
                kernels_ns[s, k] = (end - begin) * period_ns
            # Compare a neighbour only with pairs that were written, are in order, and do not end in an impossible
            # future.
            if begin and begin <= end and found is not SampleClass.LONGER_THAN_WALL:
                neighbour_end = end
        classes.append(tuple(row))
        real = (SampleClass.VALID, SampleClass.EQUAL)
        broken = next((c for c in row if c not in real), None)
        # Equal timestamps are real: the kernel is too short to be timed, but the whole may not be.
        span = (rows[-1][1] - rows[0][0]) * period_ns if kernels else math.nan
        if broken is None and kernels:
            broken = SampleClass.EQUAL if span == 0 else SampleClass.LONGER_THAN_WALL if span > longest_ns else None
        span_classes.append(broken or SampleClass.VALID)
        if broken is None:
            span_ns[s] = span
        if broken is None and SampleClass.EQUAL in row:
            broken = SampleClass.EQUAL
        sum_classes.append(broken or SampleClass.VALID)
        if broken is None:
            sum_ns[s] = kernels_ns[s].sum()
    return Classified(
        tuple(classes), tuple(span_classes), tuple(sum_classes), kernels_ns, span_ns, sum_ns, span_ns - sum_ns,
        neighbour_end if neighbour_end is not None else end_of_previous,
    )  # fmt: skip


def _judge(
    begin: int, end: int, ns: float, longest_ns: float, end_of_previous: int | None, neighbour_end: int | None
) -> SampleClass:
    if begin == 0 or end == 0:
        return SampleClass.ZERO
    if end < begin:
        return SampleClass.REVERSED
    if end_of_previous is not None and begin < end_of_previous:
        return SampleClass.STALE
    if ns > longest_ns:
        return SampleClass.LONGER_THAN_WALL
    if neighbour_end is not None and begin < neighbour_end:
        return SampleClass.OVERLAPPING
    return SampleClass.EQUAL if begin == end else SampleClass.VALID


def tick_step_ns(ticks: NDArray[np.uint64] | Sequence[Any], period_ns: float) -> float | None:
    """Return the largest step, in ns, that divides all differences between timestamps; None without any."""
    stamps = np.unique(np.asarray(ticks, dtype=np.uint64))
    differences = np.diff(stamps[stamps != 0])
    return float(np.gcd.reduce(differences)) * period_ns if differences.size else None
