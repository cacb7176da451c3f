"""Levels of processes: differences and intervals whose unit is the process (docs/contribute/statistics.md).

Kalibera and Jones (2013): times vary between processes, between rounds in a process, and between samples in a round.
Samples of one process repeat its level, so only further processes narrow an interval. Values are natural logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .resampling import autocorrelation_time, median_interval

_Z95 = 1.959964
# With at least so many degrees of freedom of its own, a row needs no learnt spread.
_ENOUGH_DEGREES = 4


@dataclass(frozen=True)
class Repeatability:
    """How much the levels of processes differ, as learnt from other measurements.

    Attributes
    ----------
    log_std : float
        Standard deviation of the logarithms of levels.
    degrees : float
        Degrees of freedom of that estimate.
    """

    log_std: float
    degrees: float


@dataclass(frozen=True)
class Difference:
    """An estimate, its standard error, and the degrees of freedom of that error.

    Attributes
    ----------
    value : float
        Of a level, or of new by old as a logarithm.
    error : float
    degrees : float
        At least 1.
    within : float
        The part of the error that the samples within processes show. Levels may be equal by chance, or by the step of
        the clock, so the interval reaches at least so far.
    """

    value: float
    error: float
    degrees: float
    within: float = 0.0

    def reach(self, confidence: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return half the width of the interval, by Student's t."""
        from scipy.special import stdtrit

        student = stdtrit(self.degrees, (1 + np.asarray(confidence)) / 2) * self.error
        return np.asarray(np.maximum(student, self.within), dtype=np.float64)

    @property
    def p_value(self) -> float:
        """Of the t test for any difference from 0."""
        from scipy.special import stdtr

        error = max(self.error, self.within)
        if not error:
            return float(not self.value)
        return float(2 * stdtr(self.degrees, -abs(self.value) / error))


# ---- levels


def _by_process(processes: Sequence[int]) -> list[list[int]]:
    """Return the indices of the blocks of each process, in the order of the processes."""
    found: dict[int, list[int]] = {}
    for i, process in enumerate(processes):
        found.setdefault(process, []).append(i)
    return [found[process] for process in sorted(found)]


def process_levels(blocks: Sequence[NDArray[np.float64]], processes: Sequence[int]) -> NDArray[np.float64]:
    """Return the level of each process: the mean logarithm of the medians of its rounds.

    Parameters
    ----------
    blocks : sequence of numpy.ndarray
        Times in ns of each round.
    processes : sequence of int
        The process of each block.
    """
    logs = np.array([math.log(np.median(block)) for block in blocks])
    return np.array([logs[of_one].mean() for of_one in _by_process(processes)])


def unit_values(
    logs: NDArray[np.float64], errors: NDArray[np.float64], units: Sequence[int]
) -> tuple[NDArray[np.float64], float]:
    """Return the value of each unit, the mean of its blocks, and the standard error of one as its blocks tell it.

    Parameters
    ----------
    logs, errors : numpy.ndarray
        Of each block, its value and the standard error that its samples tell, which counts where a unit has one block.
    units : sequence of int
        The unit of each block.
    """
    groups = _by_process(units)
    values = np.array([logs[one].mean() for one in groups])
    of_units = [logs[one].std(ddof=1) / math.sqrt(len(one)) if len(one) > 1 else errors[one[0]] for one in groups]
    return values, math.sqrt(float(np.mean(np.square(of_units))))


def block_errors(blocks: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the standard error of the logarithm of each block's median."""
    return np.array([_median_error(block) for block in blocks], dtype=np.float64)


def step_share(times_ns: NDArray[np.float64], weights: NDArray[np.float64], step_ns: float) -> float:
    """Return how far the step of a clock may move the mean of some times, as a share of the mean.

    Times within one step of the clock have one rounding error, of up to half a step. Those of times in different steps
    are independent, and average out like other noise. So the error is half a step times the root of the sum of the
    squared shares of the steps: half a step if all times lie in one, and half a step by √k if they lie evenly in k.

    Parameters
    ----------
    times_ns : numpy.ndarray
        At least one.
    weights : numpy.ndarray
        Of each time in the mean.
    step_ns : float
        0: the clock has no steps.
    """
    if not step_ns:
        return 0.0
    _, steps = np.unique(np.rint(times_ns / step_ns), return_inverse=True)
    shares = np.bincount(steps, weights) / weights.sum()
    return step_ns / 2 / float(np.average(times_ns, weights=weights)) * math.hypot(*shares)


def _median_error(block: NDArray[np.float64]) -> float:
    if block.size < 3:
        return 0.0
    low, high = median_interval(np.sort(block), autocorrelation_time(block))
    return math.log(high / low) / (2 * _Z95)


# ---- estimates


def mean_level(levels: NDArray[np.float64]) -> Difference:
    """Return the mean of at least two levels."""
    count = levels.size
    return Difference(float(levels.mean()), float(levels.std(ddof=1)) / math.sqrt(count), count - 1)


def level_of_processes(
    blocks: Sequence[NDArray[np.float64]], processes: Sequence[int]
) -> tuple[NDArray[np.float64], Difference]:
    """Return the levels of processes, and their mean; its interval is no narrower than what is within them allows."""
    logs = np.log([np.median(block) for block in blocks])
    levels, within = unit_values(logs, block_errors(blocks), processes)
    return levels, replace(mean_level(levels), within=within / math.sqrt(levels.size))


def difference(
    old: NDArray[np.float64], new: NDArray[np.float64], known: Repeatability | None = None
) -> Difference | None:
    """Return the difference of mean levels, new minus old; None if nothing is known of how levels differ.

    Both sides have the same spread (Student). With numbers of processes that differ, each may have its own (Welch),
    and the wider of both intervals counts: if a run ended when its interval was narrow, its own spread is too small.
    If both together have fewer than four degrees of freedom, a learnt spread is added to them.

    Parameters
    ----------
    old, new : numpy.ndarray
        Levels of processes.
    known : Repeatability, optional
    """
    value = float(new.mean() - old.mean())
    squares = [float(((side - side.mean()) ** 2).sum()) for side in (old, new)]
    degrees = old.size + new.size - 2
    total, weight = sum(squares), float(degrees)
    if known is not None and degrees < _ENOUGH_DEGREES:
        total, weight = total + known.degrees * known.log_std**2, weight + known.degrees
    if not weight:
        return None
    student = Difference(value, math.sqrt(total / weight * (1 / old.size + 1 / new.size)), weight)
    if degrees < _ENOUGH_DEGREES or old.size == new.size or min(old.size, new.size) == 1:
        return student
    welch = _welch(value, squares, (old.size, new.size))
    return max(student, welch, key=lambda one: float(one.reach(0.95)))


def _welch(value: float, squares: Sequence[float], counts: Sequence[int]) -> Difference:
    variances = [square / (count - 1) / count for square, count in zip(squares, counts, strict=True)]
    total = sum(variances)
    spread = sum(variance**2 / (count - 1) for variance, count in zip(variances, counts, strict=True))
    return Difference(value, math.sqrt(total), total**2 / spread if spread else sum(counts) - 2)


# ---- where the spread is


@dataclass(frozen=True)
class Components:
    """How much times vary at each level, as standard deviations of logarithms.

    Attributes
    ----------
    process : float or None
        Between processes, the rest taken out; None with one process.
    round : float or None
        Between rounds of a process; None if no process has several.
    sample : float
        Between samples of a round.
    """

    process: float | None
    round: float | None
    sample: float

    @property
    def dominant(self) -> Literal["process", "round"] | None:
        """The level that adds most to the interval of a run; None if there is one process."""
        if self.process is None:
            return None
        return "process" if self.process >= (self.round or 0.0) else "round"


def components(blocks: Sequence[NDArray[np.float64]], processes: Sequence[int]) -> Components:
    """Return where the spread of times is.

    Parameters
    ----------
    blocks : sequence of numpy.ndarray
        Times in ns of each round.
    processes : sequence of int
        The process of each block.
    """
    logs = np.array([math.log(np.median(block)) for block in blocks])
    errors = block_errors(blocks)
    # A robust deviation: times have outliers, and the median ignores them.
    spreads = [np.subtract(*np.quantile(np.log(block), (0.75, 0.25))) / 1.349 for block in blocks]
    sample = math.sqrt(float(np.mean(np.square(spreads))))
    groups = _by_process(processes)
    within = sum(float(((logs[one] - logs[one].mean()) ** 2).sum()) for one in groups)
    degrees = len(blocks) - len(groups)
    of_medians = float(np.mean(errors**2))
    round_variance = within / degrees if degrees else None
    if len(groups) < 2:
        process = None
    else:
        levels = np.array([logs[one].mean() for one in groups])
        rounds = len(blocks) / len(groups)
        below = of_medians if round_variance is None else round_variance
        process = math.sqrt(max(float(levels.var(ddof=1)) - below / rounds, 0.0))
    between_rounds = None if round_variance is None else math.sqrt(max(round_variance - of_medians, 0.0))
    return Components(process, between_rounds, sample)


_MOST_ROUNDS, _LEAST_SAMPLES, _MOST_SAMPLES = 10, 20, 10_000
# Variance of the median of normal samples, times their number, by the variance of one.
_OF_MEDIAN = math.pi / 2


def advised(found: Components, process_s: float, round_s: float, sample_s: float) -> tuple[int, int]:
    """Return how many rounds a process and how many samples a round should have to spend time best.

    Further repetitions of a level are worth their time as long as it varies much and the level above costs much
    (Kalibera and Jones, 2013): the square root of the ratio of the costs times the ratio of the variances.

    Parameters
    ----------
    found : Components
    process_s, round_s, sample_s : float
        What one more costs: the start of a process, the warm-up of a round, a sample.
    """
    sample_variance = _OF_MEDIAN * found.sample**2
    process_variance = (found.process or 0.0) ** 2
    round_variance = process_variance if found.round is None else found.round**2
    samples = _best(round_s, sample_s, sample_variance, round_variance, _MOST_SAMPLES)
    samples = max(samples, _LEAST_SAMPLES)
    if found.round is None:
        return 1, samples
    rounds = _best(process_s, round_s + samples * sample_s, round_variance, process_variance, _MOST_ROUNDS)
    return rounds, samples


def _best(above_s: float, own_s: float, own_variance: float, above_variance: float, most: int) -> int:
    if not own_variance:
        return 1
    if not own_s or not above_variance:
        return most
    return min(max(round(math.sqrt(above_s / own_s * own_variance / above_variance)), 1), most)
