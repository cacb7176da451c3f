"""Verdicts on two series of times: faster, slower, same or ambiguous. docs/contribute/statistics.md explains them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...display.quantities import format_uncertainty
from ...errors import ArgumentError
from .levels import Difference, Repeatability, difference, mean_level, process_errors, process_levels, step_share
from .resampling import autocorrelation_time, block_length, bootstrap_medians, interquartile_mean, resample, widened
from .series import Series

Samples: TypeAlias = Series | Sequence[float] | Sequence[Sequence[float]]

# With fewer independent samples on a side there is no verdict, whatever the interval is.
LEAST_UNITS = 5
# A median's interval this many times as wide as that of an interquartile mean lies between two modes: 1.15 is what
# normal noise gives.
_BETWEEN_MODES = 1.6
# With fewer values, no rank test is significant after the correction for many rows. If even the batches depend on each
# other, the interval is widened by the drift of the samples: see _Side.drift.
_RANKED_BATCHES = 8
_DRIFTS = 2.0
TESTABLE = 20
_RESAMPLES = 500
_PAIRS = 4000
# An interval that reaches this many times above or below its ratio is not worth showing.
_TOO_NOISY = 2.0
# To advise taking more than this many times as many samples would be useless.
_MOST_MORE = 100


class VerdictKind(StrEnum):
    """The verdict on the new run."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"  #: any difference is smaller than the threshold
    AMBIGUOUS = "ambiguous"  #: the samples do not settle it


class Cause(StrEnum):
    """Why a verdict is ambiguous. `statement` says it in a clause, `remedy` says what to do."""

    FEW_SAMPLES = "few samples"
    CLOCK_MOVED = "clock moved"
    LOAD_MOVED = "load moved"
    LOADED = "machine loaded"
    SINGLE_PROCESS = "single process"
    SINGLE_ROUND = "single round"
    RANK_TEST = "rank test"
    CLOCK_DIFFERS = "clock differs"
    LOAD_DIFFERS = "load differs"
    CLOCK_STEP = "clock step"
    PROCESSES_DIFFER = "processes differ"
    ROUNDS_DIFFER = "rounds differ"
    TIMES_WANDER = "times wander"
    UNTESTED = "untested"
    NOISE = "noise"
    NEAR_THRESHOLD = "near threshold"
    WIDE_INTERVAL = "wide interval"

    @property
    def statement(self) -> str:
        """The cause as a clause, the same for all rows with it."""
        return _CAUSES[self][0]

    @property
    def remedy(self) -> str:
        """What to do."""
        return _CAUSES[self][1]


_IN_PROCESSES = "measure both in several processes (gridwise bench --processes 5)"
_IN_ROUNDS = "measure both in rounds (gridwise bench --rounds 5)"
_CAUSES: dict[Cause, tuple[str, str]] = {
    Cause.FEW_SAMPLES: (
        f"a side has fewer than {LEAST_UNITS} independent samples",
        "take more samples",
    ),
    Cause.CLOCK_MOVED: (
        "the GPU's clock moved all through a run",
        "measure again after a longer warm-up",
    ),
    Cause.LOAD_MOVED: (
        "the CPU adapter changed its speed all through a run, as it does when other work runs",
        f"{_IN_ROUNDS}, on a machine with less other work",
    ),
    Cause.LOADED: (
        "the adapter is a CPU, and other work took part of the machine while a side was measured",
        "measure both again while the machine does nothing else",
    ),
    Cause.SINGLE_PROCESS: (
        "measured in one process, and it is not known how much processes differ here",
        f"{_IN_PROCESSES}, or let gridwise calibrate --repeatability learn it; of a page or another tool, "
        "import several runs (gridwise import)",
    ),
    Cause.SINGLE_ROUND: (
        "a side has a single round, and the adapter is a CPU: other work on the machine may have made the difference",
        _IN_ROUNDS,
    ),
    Cause.RANK_TEST: (
        "the test for any difference does not agree",
        "take more samples, or compare fewer rows at once",
    ),
    Cause.CLOCK_DIFFERS: (
        "the canary kernel ran at another clock in NEW, and the interval is widened by the difference",
        "measure both again at the same clock",
    ),
    Cause.LOAD_DIFFERS: (
        "the canary kernel ran at another speed in NEW, and the interval is widened by the difference",
        f"{_IN_ROUNDS}, on a machine with less other work",
    ),
    Cause.CLOCK_STEP: (
        "the step of the GPU's clock is over half the threshold, and the interval is widened by it",
        "put more trials into a sample (--mode batch, --trials 100)",
    ),
    Cause.PROCESSES_DIFFER: (
        "processes that measure the same case differ by too much for this threshold",
        "measure more processes of both than now (gridwise bench --processes; in turns: gridwise ab)",
    ),
    Cause.ROUNDS_DIFFER: (
        "rounds of the same case differ by more than the samples within a round",
        "take more rounds of both than now (gridwise bench --rounds)",
    ),
    Cause.TIMES_WANDER: (
        "the times drift during a run, and the interval is widened by the drift",
        f"{_IN_ROUNDS}, or after a longer warm-up",
    ),
    Cause.UNTESTED: (
        f"a side has fewer than {TESTABLE} samples, too few to show whether they depend on each other",
        f"take at least {TESTABLE} samples of each",
    ),
    Cause.NOISE: (
        "the times are too noisy for this threshold",
        "measure both in more processes and rounds than now (gridwise bench --processes and --rounds; in turns: "
        "gridwise ab), or choose a larger --threshold",
    ),
    Cause.NEAR_THRESHOLD: (
        "the difference is about the threshold",
        "choose another --threshold",
    ),
    Cause.WIDE_INTERVAL: (
        "there are too few samples for this threshold",
        "take more samples (gridwise bench --sampling-s 10)",
    ),
}
# With these causes the ends of a wide interval are informative: how much another clock may explain, or that the
# interval lies beyond the threshold.
_TELLING = (
    Cause.CLOCK_DIFFERS, Cause.LOAD_DIFFERS, Cause.RANK_TEST, Cause.LOADED, Cause.SINGLE_PROCESS, Cause.SINGLE_ROUND,
)  # fmt: skip


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
        Whether the clock moved during every block of a run.
    on_cpu : bool
        Whether the adapter is a CPU. Its speed depends on other work on the machine, so single rounds cannot be judged
        faster or slower.
    same_measurement : bool
        Whether both sides are the same measurement.
    old_processes, new_processes : sequence of int
        The process of each block; empty: all are of one process. With several processes, the process is the unit.
    repeatability : Repeatability or None
        How much processes differ, where it was learnt.
    varies_by_process : bool
        Whether the time depends so much on the process that two single processes cannot be compared unless the
        repeatability is known: CPU walls, and mode latency.
    loaded : bool
        Whether other work took part of the machine; it matters on a CPU adapter.
    in_turns : bool
        Whether block i of both sides comes from the same turn. The ratios within the turns are judged then: what both
        sides have in common in a turn, such as the clock or other work, is gone. Needs as many blocks on both sides.
    """

    old: Samples
    new: Samples
    tick_step_ns: float = 0.0
    clock_ratio: float = 1.0
    clock_moved: bool = False
    on_cpu: bool = False
    same_measurement: bool = False
    old_processes: Sequence[int] = ()
    new_processes: Sequence[int] = ()
    repeatability: Repeatability | None = None
    varies_by_process: bool = False
    loaded: bool = False
    in_turns: bool = False


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The numbers that a verdict rests on.

    Attributes
    ----------
    ratio : float
        New by old: over 1 is slower. Of medians, or of what `statistic` says.
    low, high : float
        Interval of the ratio.
    same_low, same_high : float
        The interval for the verdict `same`: of 90 % if the other one is of 95 %.
    p_value, p_corrected : float
        Of the rank test for any difference, alone and corrected for the number of rows; with several processes, of
        the t test on their levels.
    threshold, confidence : float
        What was asked for.
    old_ns, new_ns : float
        Medians; of several processes the geometric mean of their medians.
    old_count, new_count : int
        Samples.
    old_units, new_units : int
        Independent samples that they are worth.
    old_rounds, new_rounds : int
        Separate rounds or runs.
    old_processes, new_processes : int
    process_std : float or None
        Standard deviation between the processes of a side, as a share; None if each side has one process and nothing
        was learnt.
    statistic : str
        ``"median"``, or ``"interquartile mean"`` where the median lies between two modes.
    clock_ratio : float
        The canary kernel's time in the new run by that in the old one; 1 where it is unknown.
    step_share : float
        The error of the ratio from the step of the clock, as a share.
    """

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
    old_rounds: int = 1
    new_rounds: int = 1
    old_processes: int = 1
    new_processes: int = 1
    process_std: float | None = None
    statistic: str = "median"
    clock_ratio: float = 1.0
    step_share: float = 0.0

    def reaches(self, factor: float) -> bool:
        """Return whether the interval reaches this many times above or below the ratio."""
        return self.high > factor * self.ratio or self.low * factor < self.ratio


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on what the evidence can prove, apart from its numbers.

    Attributes
    ----------
    forbids_all : Cause or None
        If set, no verdict is possible, wherever the interval lies.
    forbids_difference : Cause or None
        If set, neither faster nor slower is possible.
    widens : Cause or None
        The cause of most of the interval's width, if not the spread of the samples.
    same_measurement : bool
        Both sides are one measurement.
    """

    forbids_all: Cause | None = None
    forbids_difference: Cause | None = None
    widens: Cause | None = None
    same_measurement: bool = False


@dataclass(frozen=True, kw_only=True)
class Verdict(Evidence):
    """A verdict, with its evidence.

    Attributes
    ----------
    kind : VerdictKind
    cause : Cause or None
        Why it is ambiguous; None for any other verdict.
    reason : str
        Why it is this verdict, with the numbers.
    settle : str
        How to settle an ambiguous verdict; else empty.
    needed : int or None
        About how many samples of each side (with the cause `PROCESSES_DIFFER`: processes) would settle it, if that is
        the remedy.
    """

    kind: VerdictKind
    cause: Cause | None
    reason: str
    settle: str = ""
    needed: int | None = None

    @property
    def too_noisy(self) -> bool:
        """Whether noise makes the interval so wide that its ends tell a reader nothing."""
        return self.cause is not None and self.cause not in _TELLING and self.reaches(_TOO_NOISY)

    def __str__(self) -> str:
        text = f"{self.kind}: {self.ratio:.4f} times the old time, {self.low:.4f} to {self.high:.4f}"
        return f"{text}; {self.settle}" if self.settle else text


def judge_all(
    pairs: Iterable[Pair], *, threshold: float = 0.02, confidence: float = 0.95, seed: int = 0
) -> list[Verdict]:
    """Judge many pairs; the rank tests are corrected for their number (Benjamini and Hochberg).

    It takes samples as they are. Whether both sides were measured so that they can be compared is for the caller to
    know: `compare` asks the files, and `compare_kernels` measures in turns.

    Parameters
    ----------
    pairs : iterable of Pair
    threshold : float
        Differences below this share are ignored.
    confidence : float
        Of the interval, at least 0.75; 1 − confidence is the level of the rank test, and of each of the two one-sided
        tests by which both are the same.
    seed : int
        Of the bootstrap.

    Returns
    -------
    list of Verdict
        In the order of the pairs.
    """
    if not 0 < threshold < 1:
        raise ArgumentError(f"threshold is {threshold!r}; it is a share between 0 and 1: 0.02 for 2 %")
    if not 0.75 <= confidence < 1:
        raise ArgumentError(f"confidence is {confidence!r}; it must lie between 0.75 and 1, such as 0.95")
    found = [_weigh(pair, threshold, confidence, np.random.default_rng([seed, i])) for i, pair in enumerate(pairs)]
    if not found:
        return []
    corrected = _corrected([evidence.p_value for evidence, _ in found])
    return [decide(replace(e, p_corrected=p), limits) for (e, limits), p in zip(found, corrected, strict=True)]


# ---- evidence


def _blocks(samples: Samples, side: str) -> list[NDArray[np.float64]]:
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
    blocks: list[NDArray[np.float64]]
    x: NDArray[np.float64]
    tau: float
    units: list[NDArray[np.float64]]  # nearly independent values: per block, medians of batches
    processes: list[int]

    @classmethod
    def of(cls, samples: Samples, side: str, processes: Sequence[int] = ()) -> _Side:
        blocks = _blocks(samples, side)
        if processes and len(processes) != len(blocks):
            raise ArgumentError(f"the {side} side has {len(blocks)} blocks, but the processes of {len(processes)}")
        # Within blocks: that blocks differ is accounted for by itself.
        taus = [(autocorrelation_time(block), block.size) for block in blocks]
        tau = sum(t * size for t, size in taus) / sum(size for _, size in taus)
        return cls(
            blocks,
            np.concatenate(blocks),
            tau,
            [_batch_medians(block, tau) for block in blocks],
            list(processes) or [0] * len(blocks),
        )

    @property
    def count(self) -> int:
        return int(self.x.size)

    @property
    def unit_count(self) -> int:
        return sum(u.size for u in self.units)

    def drift(self) -> float:
        """Return the possible error due to dependence, as a logarithm; 0 with enough independent samples."""
        spread = math.log(self.x.max() / self.x.min())
        if self.tau > 1 and self.count / (2 * self.tau) < _RANKED_BATCHES:
            return _DRIFTS * spread
        # So few samples cannot show dependence: the runs must then lie apart as a whole.
        return spread / 2 if self.count < TESTABLE else 0.0

    def estimates(self, statistic: str, rng: np.random.Generator) -> NDArray[np.float64]:
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

    @property
    def process_count(self) -> int:
        return len(set(self.processes))

    def levels(self, statistic: str) -> NDArray[np.float64]:
        return process_levels(self.blocks, self.processes, statistic)

    def step_share(self, step_ns: float) -> float:
        """Return how far the step of the clock may move the mean level, as a share."""
        medians_ns = np.array([np.median(block) for block in self.blocks])
        rounds = np.array([self.processes.count(process) for process in self.processes])
        return step_share(medians_ns, 1 / rounds, step_ns)

    def value(self, statistic: str) -> float:
        if self.process_count > 1:
            return math.exp(self.levels(statistic).mean())
        return float(np.median(self.x) if statistic == "median" else interquartile_mean(self.x))


def _batch_medians(x: NDArray[np.float64], tau: float) -> NDArray[np.float64]:
    """Medians of consecutive batches, long enough that neighbours hardly depend on each other."""
    if tau <= 1:
        return x
    batches = max(int(x.size / math.ceil(2 * tau)), min(_RANKED_BATCHES, x.size))
    return np.array([np.median(batch) for batch in np.array_split(x, batches)])


def _interval(
    old: _Side, new: _Side, statistic: str, confidences: NDArray[np.float64], rng: np.random.Generator
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
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


def _between_blocks(old: _Side, new: _Side, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the widths of intervals of the log ratio that take each block as one value; 0 without blocks.

    Runs of the same code differ by more than the samples within a run: other clocks, other memory addresses.
    """
    from scipy.special import stdtrit

    logs = [[math.log(np.median(block)) for block in side.blocks] for side in (old, new)]
    if sum(map(len, logs)) < 3:
        return np.zeros_like(confidences)
    error, degrees = _pooled(*logs)
    return stdtrit(degrees, (1 + confidences) / 2) * error


def _scipy_stats() -> Any:
    """Return scipy.stats, which has no types; loaded when it is needed, since that takes long."""
    from scipy import stats

    return stats


def _corrected(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for the number of tests (Benjamini and Hochberg)."""
    return [float(p) for p in _scipy_stats().false_discovery_control(p_values)]


def _rank_test(old: _Side, new: _Side) -> float:
    from scipy.special import stdtr

    a, b = np.concatenate(old.units), np.concatenate(new.units)
    if min(a.min(), b.min()) == max(a.max(), b.max()):
        return 1.0
    p = float(_scipy_stats().mannwhitneyu(a, b).pvalue)
    if len(old.units) + len(new.units) < 3:
        return p
    # Blocks are the units: a t test on the mean rank of each (Conover and Iman), for ranks of three blocks have no
    # small p.
    ranks = np.asarray(_scipy_stats().rankdata(np.concatenate([a, b])), dtype=np.float64)
    means = [float(r.mean()) for r in np.split(ranks, np.cumsum([u.size for u in [*old.units, *new.units]])[:-1])]
    split = len(old.units)
    error, degrees = _pooled(means[:split], means[split:])
    difference = abs(float(np.mean(means[:split]) - np.mean(means[split:])))
    clustered = 2 * float(stdtr(degrees, -difference / error)) if error else float(not difference)
    return max(p, clustered)


@dataclass(frozen=True)
class _Estimate:
    """The log ratio with its intervals (for each confidence), before a difference of the clocks."""

    statistic: str
    centre: float
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p_value: float
    step: float  # what the step of the clock may add to the log ratio; the intervals include it
    widened_by: tuple[Cause, float] | None = None  # a cause, and its part of half the width
    process_std: float | None = None


def _by_samples(
    pair: Pair, old: _Side, new: _Side, confidences: NDArray[np.float64], limit: float, rng: np.random.Generator
) -> _Estimate:
    """Estimate from the samples and rounds of one process on each side."""
    statistic = "median"
    centre, low, high = _interval(old, new, statistic, confidences, rng)
    if max(-low[0], high[0]) > limit:
        smooth = _interval(old, new, "interquartile mean", confidences, rng)
        if low[0] > limit or high[0] < -limit:
            # With two modes, the median may by chance lie inside either: the interquartile means must differ, too.
            low, high = np.minimum(low, smooth[1]), np.maximum(high, smooth[2])
        elif high[0] - low[0] > _BETWEEN_MODES * (smooth[2][0] - smooth[1][0]):
            statistic, (centre, low, high) = "interquartile mean", smooth
    between = _between_blocks(old, new, confidences)
    drift = old.drift() + new.drift()
    reach = np.maximum(between, drift)
    low, high = np.minimum(low, centre - reach), np.maximum(high, centre + reach)
    p_value = _rank_test(old, new)
    # A median of whole steps may be half a step off, on each side.
    step = pair.tick_step_ns / 2 * (1 / old.value("median") + 1 / new.value("median"))
    causes = [(Cause.ROUNDS_DIFFER, float(between[0]))]
    causes.append((Cause.TIMES_WANDER if min(old.count, new.count) >= TESTABLE else Cause.UNTESTED, drift))
    if pair.repeatability is None:
        return _Estimate(statistic, centre, low - step, high + step, p_value, step, max(causes, key=lambda one: one[1]))
    known = difference(old.levels(statistic), new.levels(statistic), pair.repeatability)
    assert known is not None, "the repeatability is known"
    learnt = known.reach(confidences)
    low, high = centre - np.hypot(centre - low, learnt), centre + np.hypot(high - centre, learnt)
    causes.append((Cause.SINGLE_PROCESS, float(learnt[0])))
    p_value = max(p_value, replace(known, value=centre).p_value)
    return _Estimate(
        statistic, centre, low - step, high + step, p_value, step, max(causes, key=lambda one: one[1]),
        math.expm1(pair.repeatability.log_std),
    )  # fmt: skip


def _by_processes(pair: Pair, old: _Side, new: _Side, confidences: NDArray[np.float64], limit: float) -> _Estimate:
    """Estimate from the levels of processes, at least two on a side."""
    statistic, found = _by_steadier(partial(_difference_of, pair, old, new), confidences, limit)
    step = sum(side.step_share(pair.tick_step_ns) for side in (old, new))
    reach = np.hypot(found.reach(confidences), step)
    spread = found.error / math.sqrt(1 / old.process_count + 1 / new.process_count)
    cause = (Cause.PROCESSES_DIFFER, float(reach[0]))
    return _Estimate(
        statistic, found.value, found.value - reach, found.value + reach, found.p_value, step, cause,
        math.expm1(spread),
    )  # fmt: skip


def _by_steadier(
    found_by: Callable[[str], Difference], confidences: NDArray[np.float64], limit: float
) -> tuple[str, Difference]:
    """Return the difference of medians; where it is past the limit, and lies between two modes, that of means."""
    found = found_by("median")
    if abs(found.value) + float(found.reach(float(confidences[0]))) > limit:
        smooth = found_by("interquartile mean")
        if found.error > _BETWEEN_MODES * smooth.error:
            return "interquartile mean", smooth
    return "median", found


def _by_turns(pair: Pair, old: _Side, new: _Side, confidences: NDArray[np.float64], limit: float) -> _Estimate:
    """Estimate from the ratios within turns: a paired t test, whose unit is the turn."""
    turns = range(len(old.blocks))
    errors = [process_errors(side.blocks, turns) for side in (old, new)]
    # A few turns may agree by chance: they cannot be more alike than their own samples allow.
    within = math.hypot(*(float(np.hypot.reduce(of_side)) for of_side in errors)) / len(turns)

    def found_by(statistic: str) -> Difference:
        before, after = (process_levels(side.blocks, turns, statistic) for side in (old, new))
        mean = mean_level(after - before)
        return replace(mean, error=max(mean.error, within))

    statistic, found = _by_steadier(found_by, confidences, limit)
    step = sum(side.step_share(pair.tick_step_ns) for side in (old, new))
    reach = np.hypot(found.reach(confidences), step)
    return _Estimate(
        statistic, found.value, found.value - reach, found.value + reach, found.p_value, step,
        (Cause.ROUNDS_DIFFER, float(reach[0])),
    )  # fmt: skip


def _difference_of(pair: Pair, old: _Side, new: _Side, statistic: str) -> Difference:
    levels = old.levels(statistic), new.levels(statistic)
    found = difference(*levels, pair.repeatability)
    assert found is not None, "a side has several processes"
    errors = [process_errors(side.blocks, side.processes) for side in (old, new)]
    within = math.hypot(*(math.hypot(*of_side) / of_side.size for of_side in errors))
    return replace(found, within=within)


def _weigh(pair: Pair, threshold: float, confidence: float, rng: np.random.Generator) -> tuple[Evidence, Limits]:
    """Return the evidence of a pair, and what limits it."""
    old, new = _Side.of(pair.old, "old", pair.old_processes), _Side.of(pair.new, "new", pair.new_processes)
    # The second is for equivalence: two one-sided tests, each at the level of the first.
    confidences = np.array([confidence, 2 * confidence - 1])
    limit = math.log1p(threshold)
    processes = old.process_count, new.process_count
    if pair.in_turns and len(old.blocks) != len(new.blocks):
        raise ArgumentError(
            f"measured in turns, but the old side has {len(old.blocks)} turns and the new one {len(new.blocks)}; "
            f"leave out what only one has"
        )
    if max(processes) > 1:
        found = _by_processes(pair, old, new, confidences, limit)
    elif pair.in_turns and len(old.blocks) > 1:
        found = _by_turns(pair, old, new, confidences, limit)
    else:
        found = _by_samples(pair, old, new, confidences, limit, rng)
    centre, p_value = found.centre, found.p_value
    old_ns, new_ns = old.value("median"), new.value("median")
    # A kernel's time depends on the clock fully (arithmetic), partly, or not at all (memory).
    clock = math.log(pair.clock_ratio)
    low, high = found.low - max(clock, 0.0), found.high - min(clock, 0.0)
    width = float(high[0] - low[0])
    widens = None
    if abs(clock) > max(limit / 2, width / 4):
        widens = Cause.LOAD_DIFFERS if pair.on_cpu else Cause.CLOCK_DIFFERS
    elif found.step > max(limit / 2, width / 4):
        widens = Cause.CLOCK_STEP
    elif found.widened_by is not None and found.widened_by[1] > width / 2.5:
        widens = found.widened_by[0]
    rounds = len(old.blocks), len(new.blocks)
    limits = Limits(
        forbids_all=_forbids_all(pair, old, new),
        forbids_difference=_forbids_difference(pair, rounds),
        widens=widens,
        same_measurement=pair.same_measurement,
    )
    if pair.same_measurement:
        # Equal times need no statistics.
        centre, low, high, p_value = 0.0, np.zeros(2), np.zeros(2), 1.0
    logs = (centre, low[0], high[0], low[1], high[1])
    ratio, below, above, same_low, same_high = (math.exp(min(max(float(value), -700.0), 700.0)) for value in logs)
    evidence = Evidence(
        ratio=ratio,
        low=below,
        high=above,
        same_low=same_low,
        same_high=same_high,
        p_value=p_value,
        p_corrected=1.0,
        threshold=threshold,
        confidence=confidence,
        old_ns=old_ns,
        new_ns=new_ns,
        old_count=old.count,
        new_count=new.count,
        old_units=old.unit_count,
        new_units=new.unit_count,
        old_rounds=rounds[0],
        new_rounds=rounds[1],
        old_processes=processes[0],
        new_processes=processes[1],
        process_std=found.process_std,
        statistic=found.statistic,
        clock_ratio=pair.clock_ratio,
        step_share=found.step,
    )
    return evidence, limits


def _forbids_all(pair: Pair, old: _Side, new: _Side) -> Cause | None:
    if min(old.unit_count, new.unit_count) < LEAST_UNITS:
        return Cause.FEW_SAMPLES
    if pair.clock_moved:
        return Cause.LOAD_MOVED if pair.on_cpu else Cause.CLOCK_MOVED
    single = old.process_count == new.process_count == 1
    if pair.varies_by_process and single and pair.repeatability is None:
        return Cause.SINGLE_PROCESS
    return None


def _forbids_difference(pair: Pair, rounds: tuple[int, int]) -> Cause | None:
    if not pair.on_cpu:
        return None
    if pair.loaded:
        return Cause.LOADED
    return Cause.SINGLE_ROUND if min(rounds) < 2 else None


# ---- from evidence to a verdict


def decide(evidence: Evidence, limits: Limits) -> Verdict:
    """Return the verdict that the evidence allows, with its reason."""
    e, over = evidence, 1 + evidence.threshold
    low, high = _shown(e.low, over), _shown(e.high, over)
    cleared = VerdictKind.SLOWER if e.low > over else VerdictKind.FASTER if e.high < 1 / over else None
    within = 1 / over < e.same_low and e.same_high < over
    agrees = e.p_corrected <= 1 - e.confidence
    p = _shown_p(e.p_corrected, 1 - e.confidence)
    if cleared is not None:
        side = f"above {over:.4g}" if cleared is VerdictKind.SLOWER else f"below {1 / over:.4g}"
        lies = f"the whole interval, {low} to {high}, lies {side}"
    elif within:
        share = f"{100 * (2 * e.confidence - 1):g} %"
        ends = f"{_shown(e.same_low, over)} to {_shown(e.same_high, over)}"
        lies = f"the whole interval of {share}, {ends}, lies within {100 * e.threshold:g} %"
    else:
        ends = [f"{bound:.4g}" for bound, met in ((1 / over, e.low <= 1 / over), (over, e.high >= over)) if met]
        lies = f"the interval, {low} to {high}, reaches beyond {' and '.join(ends)}"
    if limits.same_measurement:
        return _settled(e, VerdictKind.SAME, "OLD and NEW are the same measurement: all of their times are equal")
    if limits.forbids_all is not None:
        return _ambiguous(e, limits.forbids_all, f"{limits.forbids_all.statement}{_details(e, limits.forbids_all)}")
    if cleared is not None and not agrees:
        return _ambiguous(e, Cause.RANK_TEST, f"{lies}, but {Cause.RANK_TEST.statement} (p = {p})")
    if cleared is not None and limits.forbids_difference is not None:
        return _ambiguous(e, limits.forbids_difference, f"{lies}, but {limits.forbids_difference.statement}")
    if cleared is not None:
        return _settled(e, cleared, f"{lies}, and the test for any difference agrees (p = {p})")
    if within:
        return _settled(e, VerdictKind.SAME, lies)
    cause, needed = _why_wide(e) if limits.widens in (None, Cause.PROCESSES_DIFFER) else (limits.widens, None)
    return _ambiguous(e, cause, f"{lies}: {cause.statement}{_details(e, cause)}", needed)


def _settled(evidence: Evidence, kind: VerdictKind, reason: str) -> Verdict:
    return Verdict(**asdict(evidence), kind=kind, cause=None, reason=reason)


def _ambiguous(evidence: Evidence, cause: Cause, reason: str, needed: int | None = None) -> Verdict:
    settle = cause.remedy
    if needed is not None:
        by_process = cause is Cause.PROCESSES_DIFFER
        now = (
            (evidence.old_processes, evidence.new_processes) if by_process else (evidence.old_count, evidence.new_count)
        )
        settle = f"{settle}: about {needed:,} of each, now {now[0]:,} and {now[1]:,}"
    return Verdict(
        **asdict(evidence), kind=VerdictKind.AMBIGUOUS, cause=cause, reason=reason, settle=settle, needed=needed
    )


def _why_wide(e: Evidence) -> tuple[Cause, int | None]:
    """Return why an interval that was not widened reaches over the threshold, and how many samples are needed."""
    centre, limit = math.log(e.ratio), math.log1p(e.threshold)
    margin = abs(abs(centre) - limit)
    half = max(math.log(e.high) - centre, centre - math.log(e.low))
    factor = (half / margin) ** 2 if margin else math.inf
    few = factor <= _MOST_MORE and not e.reaches(_TOO_NOISY)
    if max(e.old_processes, e.new_processes) > 1:
        # Only more processes narrow the interval.
        needed = math.ceil(max(factor, 1.2) * max(e.old_processes, e.new_processes))
        return (Cause.PROCESSES_DIFFER, needed) if half > limit / 4 and few else (_wide(half, limit), None)
    if few:
        return Cause.WIDE_INTERVAL, math.ceil(max(factor, 1.2) * max(e.old_count, e.new_count))
    return _wide(half, limit), None


def _wide(half: float, limit: float) -> Cause:
    # An interval wider than the threshold is ambiguous for any difference.
    return Cause.NOISE if half > limit else Cause.NEAR_THRESHOLD


def _details(e: Evidence, cause: Cause) -> str:
    if cause is Cause.FEW_SAMPLES:
        return f": {e.old_count} and {e.new_count}, worth {e.old_units} and {e.new_units} independent ones"
    if cause in (Cause.CLOCK_DIFFERS, Cause.LOAD_DIFFERS):
        return f" ({e.clock_ratio:.4g} times its time in OLD)"
    if cause is Cause.CLOCK_STEP:
        return f" ({format_uncertainty(e.step_share)})"
    if cause is Cause.PROCESSES_DIFFER and e.process_std is not None:
        spread = format_uncertainty(e.process_std)[1:]
        return f" (standard deviation {spread}, {e.old_processes} and {e.new_processes} processes)"
    if cause is Cause.UNTESTED:
        return f" ({e.old_count} and {e.new_count})"
    if cause is Cause.NEAR_THRESHOLD:
        percents = 100 * (max(e.ratio, 1 / e.ratio) - 1)
        return f" ({percents:{'.2g' if percents < 99.5 else '.0f'}} % and {100 * e.threshold:g} %)"
    return ""


def _shown(ratio: float, over: float) -> str:
    """Write a ratio with four decimals, and with more where rounding would put it on the other side of a bound."""
    if not 0.01 <= ratio < 1000:
        return f"{ratio:.2g}"
    bounds = (1 / over, over)
    texts = (f"{ratio:.{decimals}f}" for decimals in range(4, 16))
    sides = [(ratio > bound) - (ratio < bound) for bound in bounds]
    return next((t for t in texts if [(float(t) > b) - (float(t) < b) for b in bounds] == sides), repr(ratio))


def _shown_p(p: float, level: float) -> str:
    """Write a p with two digits, and with more where rounding would put it on the other side of the level."""
    texts = (f"{p:.{digits}g}" for digits in range(2, 16))
    return next((text for text in texts if (float(text) <= level) == (p <= level)), repr(p))
