"""Verdicts on two sets of times: faster, slower, same or ambiguous. docs/contribute/statistics.md explains the rule.

There is one rule. Times have levels: processes, rounds in a process, samples in a round. The unit is the highest level
that has several on a side; a single round is cut into consecutive parts. The logarithms of the units' times are
compared by Student's t, those of turns by the differences within a turn. The error is never below what the level below
the unit allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...display.quantities import format_uncertainty
from ...errors import ArgumentError
from ...settings import judge_busy
from .levels import (
    Difference,
    Repeatability,
    block_errors,
    difference,
    mean_level,
    process_levels,
    step_share,
    unit_values,
)
from .resampling import autocorrelation_time, interquartile_mean
from .series import Series

Samples: TypeAlias = Series | Sequence[float] | Sequence[Sequence[float]]
Unit: TypeAlias = Literal["process", "round", "sample"]

#: With fewer independent samples on a side there is no verdict, whatever the interval is.
LEAST_UNITS = 5
#: A single round is cut into at most so many parts; with fewer independent ones the interval reaches over its range.
_MOST_PARTS = 20
_LEAST_PARTS = 8
#: Fewer samples of a single round cannot show whether they depend on each other: the runs must lie apart as a whole.
_TESTABLE = 20
#: An error of medians this many times that of interquartile means lies between two modes: 1.15 is what normal noise
#: gives.
_BETWEEN_MODES = 1.6
#: An effect that makes more of the interval than this is why it is wide.
_MOST_OF_WIDTH = 0.4
#: An interval that reaches this many times above or below its ratio is not worth showing.
_TOO_NOISY = 2.0
#: To advise taking more than this many times as much would be useless.
_MOST_MORE = 100
#: At least so many times as much is advised.
_LEAST_MORE = 1.2


class VerdictKind(StrEnum):
    """The verdict on the new run."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"  #: any difference is smaller than the threshold
    SAME_CODE = "same code"  #: both ask the same of the GPU: what differs is the machine
    AMBIGUOUS = "ambiguous"  #: the samples do not settle it


class Cause(StrEnum):
    """Why a verdict is ambiguous."""

    FEW_SAMPLES = "few samples"
    MACHINE = "machine"  #: the clock of the GPU, or the speed of a CPU adapter, was not the same in both runs
    SINGLE = "single process or round"
    CLOCK_STEP = "clock step"
    SPREAD = "spread"  #: the units differ by too much
    NEAR_THRESHOLD = "near threshold"


#: Where a machine is always busy.
JUDGE_BUSY = "GRIDWISE_JUDGE_BUSY=1 judges beside other work, and more verdicts are wrong then"
#: By the cause, and by the unit or whether the adapter is a CPU where that matters: a clause, and what to do.
_TEXTS: dict[tuple[Cause, Unit | bool | None], tuple[str, str]] = {
    (Cause.FEW_SAMPLES, None): (f"a side has fewer than {LEAST_UNITS} independent samples", "take more samples"),
    (Cause.MACHINE, False): (
        "the GPU's clock moved during a run, or was another one in NEW, as the canary kernel shows",
        "measure both again at the same clock, after a longer warm-up",
    ),
    (Cause.MACHINE, True): (
        "the adapter is a CPU, and other work on the machine changed its speed",
        f"measure both in rounds (gridwise bench --rounds 5), while the machine does nothing else; {JUDGE_BUSY}",
    ),
    (Cause.SINGLE, None): (
        "measured in one process or round, and it is not known how much these differ here",
        "measure both in several processes, on a CPU also in rounds (gridwise bench --processes 5 --rounds 5), or let "
        "gridwise calibrate --repeatability learn it; of a page or another tool, import several runs (gridwise import)",
    ),
    (Cause.CLOCK_STEP, None): (
        "the step of the GPU's clock is over half the threshold, and the interval is widened by it",
        "put more trials into a sample (--mode batch, --trials 100)",
    ),
    (Cause.SPREAD, "process"): (
        "processes that measure the same case differ by too much for this threshold",
        "measure more processes of both than now (gridwise bench --processes; in turns: gridwise ab), or choose a "
        "larger --threshold",
    ),
    (Cause.SPREAD, "round"): (
        "rounds of the same case differ by too much for this threshold",
        "take more rounds of both than now (gridwise bench --rounds; in turns: gridwise ab), or choose a larger "
        "--threshold",
    ),
    (Cause.SPREAD, "sample"): (
        "the samples of a round differ by too much for this threshold",
        "take more samples (gridwise bench --sampling-s 10), measure both in several processes and rounds (gridwise "
        "bench --processes 5 --rounds 5; in turns: gridwise ab), or choose a larger --threshold",
    ),
    (Cause.NEAR_THRESHOLD, None): ("the difference is about the threshold", "choose another --threshold"),
}  # fmt: skip


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
    same_code : bool
        Whether both ask the same of the same GPU, by their digests, and the time is the GPU's.
    old_processes, new_processes : sequence of int
        The process of each block; empty: all are of one process.
    repeatability : Repeatability or None
        How much processes differ, where it was learnt.
    varies_by_process : bool
        Whether the time depends so much on the process that two single processes cannot be compared unless the
        repeatability is known: CPU walls, and mode latency.
    loaded : bool
        Whether other work took over a tenth of the machine; it matters on a CPU adapter.
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
    same_code: bool = False
    old_processes: Sequence[int] = ()
    new_processes: Sequence[int] = ()
    repeatability: Repeatability | None = None
    varies_by_process: bool = False
    loaded: bool = False
    in_turns: bool = False


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A verdict, with its evidence.

    Attributes
    ----------
    kind : VerdictKind
    ratio : float
        New by old: over 1 is slower. Of medians, or of what `statistic` says.
    low, high : float
        Interval of the ratio.
    same_low, same_high : float
        The interval for the verdict `same`: of 90 % if the other one is of 95 %.
    p_value, p_corrected : float
        Of the t test for any difference, alone and corrected for the number of rows.
    threshold, confidence : float
        What was asked for.
    old_ns, new_ns : float
        Medians; of several processes or rounds the geometric mean of their medians.
    old_count, new_count : int
        Samples.
    unit : {"process", "round", "sample"}
        The level whose spread makes the interval; of samples, consecutive parts of the only round.
    old_units, new_units : int
        How many of these.
    old_rounds, new_rounds : int
    old_processes, new_processes : int
    between_sd, within_sd : float
        Standard deviation of the logarithms between units, and of a unit as what is below it tells.
    statistic : str
        ``"median"``, or ``"interquartile mean"`` where the median lies between two modes.
    clock_ratio : float
        The canary kernel's time in the new run by that in the old one; 1 where it is unknown.
    step_share : float
        The error of the ratio from the step of the clock, as a share.
    cause : Cause or None
        Why it is ambiguous; None for any other verdict.
    statement : str
        The cause as a clause, the same for all rows that have it; else empty.
    reason : str
        Why it is this verdict, with the numbers.
    settle : str
        How to settle an ambiguous verdict; else empty.
    needed : int or None
        About how many units of each side would settle it, of samples how many samples, if that is the remedy.
    finding : str
        What a difference beyond the interval says where the code is the same; else empty.
    """

    kind: VerdictKind = VerdictKind.AMBIGUOUS
    ratio: float
    low: float
    high: float
    same_low: float
    same_high: float
    p_value: float
    p_corrected: float = 1.0
    threshold: float
    confidence: float
    old_ns: float
    new_ns: float
    old_count: int
    new_count: int
    unit: Unit = "sample"
    old_units: int
    new_units: int
    old_rounds: int = 1
    new_rounds: int = 1
    old_processes: int = 1
    new_processes: int = 1
    between_sd: float = 0.0
    within_sd: float = 0.0
    statistic: str = "median"
    clock_ratio: float = 1.0
    step_share: float = 0.0
    cause: Cause | None = None
    statement: str = ""
    reason: str = ""
    settle: str = ""
    needed: int | None = None
    finding: str = ""

    @property
    def too_noisy(self) -> bool:
        """Whether noise makes the interval so wide that its ends tell a reader nothing."""
        # The ends tell how much another clock may explain.
        return self.cause not in (None, Cause.MACHINE) and self.reaches(_TOO_NOISY)

    def reaches(self, factor: float) -> bool:
        """Return whether the interval reaches this many times above or below the ratio."""
        return self.high > factor * self.ratio or self.low * factor < self.ratio

    @property
    def advice(self) -> str:
        """How to settle it, without numbers: the same for all rows with the statement."""
        return self.settle.partition(": about ")[0]

    @property
    def units(self) -> str:
        """The unit's name, of several."""
        return "processes" if self.unit == "process" else f"{self.unit}s"

    @property
    def counts(self) -> tuple[int, int]:
        """What of each side `needed` counts: units, or samples of a single round."""
        return (self.old_count, self.new_count) if self.unit == "sample" else (self.old_units, self.new_units)

    def __str__(self) -> str:
        text = f"{self.kind}: {self.ratio:.4f} times the old time, {self.low:.4f} to {self.high:.4f}"
        return f"{text}; {self.settle}" if self.settle else text


def judge_all(
    pairs: Iterable[Pair], *, threshold: float = 0.02, confidence: float = 0.95, most_p: float | None = None
) -> list[Verdict]:
    """Judge many pairs; the tests are corrected for their number (Benjamini and Hochberg), those of same code apart.

    It takes samples as they are. Whether both sides were measured so that they can be compared is for the caller to
    know: `compare` asks the files, and `compare_kernels` measures in turns.

    Parameters
    ----------
    pairs : iterable of Pair
    threshold : float
        Differences below this share are ignored.
    confidence : float
        Of the interval, at least 0.75; 1 − confidence is the level of the test for any difference, and of each of the
        two one-sided tests by which both are the same.
    most_p : float, optional
        What p may be at most of a row that is faster or slower, before the correction.

    Returns
    -------
    list of Verdict
        In the order of the pairs.
    """
    if not 0 < threshold < 1:
        raise ArgumentError(f"threshold is {threshold!r}; it is a share between 0 and 1: 0.02 for 2 %")
    if not 0.75 <= confidence < 1:
        raise ArgumentError(f"confidence is {confidence!r}; it must lie between 0.75 and 1, such as 0.95")
    given = list(pairs)
    if not given:
        return []
    found = [_weigh(pair, threshold, confidence) for pair in given]
    corrected = np.ones(len(given))
    for same_code in (False, True):
        family = np.array([pair.same_code is same_code for pair in given])
        p_values = [verdict.p_value for (verdict, _), is_in in zip(found, family, strict=True) if is_in]
        corrected[family] = _scipy_stats().false_discovery_control(p_values) if p_values else []
    return [
        _decide(pair, replace(verdict, p_corrected=float(p)), widens, 1.0 if most_p is None else most_p)
        for pair, (verdict, widens), p in zip(given, found, corrected, strict=True)
    ]


def _scipy_stats() -> Any:
    """Return scipy.stats, which has no types; loaded when it is needed, since that takes long."""
    from scipy import stats

    return stats


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
    """The blocks of a side, and the unit that each belongs to."""

    blocks: list[NDArray[np.float64]]
    units: list[int]
    is_cut: bool = False

    @classmethod
    def of(cls, samples: Samples, side: str, processes: Sequence[int]) -> _Side:
        """Return a side whose units are processes."""
        blocks = _blocks(samples, side)
        if processes and len(processes) != len(blocks):
            raise ArgumentError(f"the {side} side has {len(blocks)} blocks, but the processes of {len(processes)}")
        return cls(blocks, list(processes) or [0] * len(blocks))

    @property
    def unit_count(self) -> int:
        return len(set(self.units))

    def by_round(self) -> _Side:
        """Return it with rounds as units."""
        return _Side(self.blocks, list(range(len(self.blocks))))

    def by_part(self) -> _Side:
        """Return it with consecutive parts of its only round as units, so long that neighbours hardly depend."""
        (samples,) = self.blocks
        count = min(max(_independent(samples), LEAST_UNITS), _MOST_PARTS, samples.size)
        return _Side(np.array_split(samples, count), list(range(count)), is_cut=True)

    def logs(self, statistic: str) -> NDArray[np.float64]:
        """Return the logarithm of each block's time."""
        of = np.median if statistic == "median" else interquartile_mean
        return np.log([float(of(block)) for block in self.blocks])

    def errors(self) -> NDArray[np.float64]:
        """Return the standard error of each block's time, as its samples tell; of parts that of their round."""
        if not self.is_cut:
            return block_errors(self.blocks)
        count = len(self.blocks)
        return np.repeat(block_errors([np.concatenate(self.blocks)]) * math.sqrt(count), count)

    def time_ns(self) -> float:
        """Return the geometric mean of the units' medians; of a single round the median of its samples."""
        if self.is_cut:
            return float(np.median(np.concatenate(self.blocks)))
        return math.exp(process_levels(self.blocks, self.units).mean())

    def step_share(self, step_ns: float) -> float:
        """Return how far the step of the clock may move the mean of the units, as a share."""
        medians_ns = np.array([np.median(block) for block in self.blocks])
        return step_share(medians_ns, 1 / np.array([self.units.count(unit) for unit in self.units]), step_ns)


@dataclass(frozen=True)
class _Estimate:
    """The difference of the units' times, and standard deviations between units and of one as the level below tells."""

    found: Difference
    between: float
    within: float


def _estimate(old: _Side, new: _Side, statistic: str, *, paired: bool, known: Repeatability | None) -> _Estimate:
    """Estimate how much the units of two sides differ."""
    sides = [(side.logs(statistic), side.errors()) for side in (old, new)]
    if paired:
        (old_logs, old_errors), (new_logs, new_errors) = sides
        values, within = unit_values(new_logs - old_logs, np.hypot(old_errors, new_errors), old.units)
        found, share = mean_level(values), 1 / values.size
    else:
        (old_values, old_within), (new_values, new_within) = (
            unit_values(*logs, side.units) for logs, side in zip(sides, (old, new), strict=True)
        )
        within = math.hypot(old_within, new_within) / math.sqrt(2)
        found = difference(old_values, new_values, known)
        share = 1 / old_values.size + 1 / new_values.size
        if found is None:  # a unit on each side
            found = Difference(float(new_values[0] - old_values[0]), math.inf, 1.0)
    between, floor = found.error / math.sqrt(share), within * math.sqrt(share)
    # A few units may agree by chance: they cannot be more alike than what is below them allows.
    found = replace(found, error=max(found.error, floor)) if paired else replace(found, within=floor)
    return _Estimate(found, between, within)


def _sides(pair: Pair) -> tuple[Unit, _Side, _Side]:
    """Return the highest level that has several units on a side, and both sides by it."""
    old, new = _Side.of(pair.old, "old", pair.old_processes), _Side.of(pair.new, "new", pair.new_processes)
    rounds = len(old.blocks), len(new.blocks)
    if pair.in_turns and rounds[0] != rounds[1]:
        raise ArgumentError(
            f"measured in turns, but the old side has {rounds[0]} turns and the new one {rounds[1]}; "
            f"leave out what only one has"
        )
    if max(old.unit_count, new.unit_count) > 1:
        return "process", old, new
    if max(rounds) > 1:
        return "round", old.by_round(), new.by_round()
    return "sample", old.by_part(), new.by_part()


def _independent(samples: NDArray[np.float64]) -> int:
    """Return how many nearly independent parts a round has."""
    tau = autocorrelation_time(samples)
    return samples.size if tau == 1 else int(samples.size / math.ceil(2 * tau))


def _wander(side: _Side) -> float:
    """Return how far a single round may be off that is too short for its dependence, or to show any; else 0."""
    samples = np.concatenate(side.blocks)
    spread = math.log(samples.max() / samples.min())
    if _independent(samples) < min(_LEAST_PARTS, samples.size):
        return 2 * spread
    return spread / 2 if samples.size < _TESTABLE else 0.0


def _weigh(pair: Pair, threshold: float, confidence: float) -> tuple[Verdict, Cause | None]:
    """Return the evidence of a pair, and the cause of most of the interval's width if that is not the spread."""
    unit, old, new = _sides(pair)
    # The second is for equivalence: two one-sided tests, each at the level of the first.
    confidences, limit = np.array([confidence, 2 * confidence - 1]), math.log1p(threshold)
    how: dict[str, Any] = {"paired": pair.in_turns and unit != "sample", "known": pair.repeatability}
    if unit != "process":
        how["known"] = None
    statistic, estimate = "median", _estimate(old, new, "median", **how)
    reach, centre = estimate.found.reach(confidences), estimate.found.value
    if abs(centre) + reach[0] > limit:
        smooth = _estimate(old, new, "interquartile mean", **how)
        smooth_reach, smooth_centre = smooth.found.reach(confidences), smooth.found.value
        if estimate.found.error > _BETWEEN_MODES * smooth.found.error:
            statistic, estimate, reach, centre = "interquartile mean", smooth, smooth_reach, smooth_centre
        elif unit == "sample" and abs(centre) - reach[0] > limit:
            # With two modes, the median may by chance lie inside either: the interquartile means must differ, too.
            reach = np.maximum(reach, abs(centre - smooth_centre) + smooth_reach)
    step = sum(side.step_share(pair.tick_step_ns) for side in (old, new))
    if unit == "sample":
        reach = np.maximum(reach, _wander(old) + _wander(new))
    reach = np.hypot(reach, step)
    p_value = replace(estimate.found, value=max(abs(centre) - step, 0.0)).p_value
    learnt = np.zeros(2)
    if pair.repeatability is not None and unit != "process":
        between = difference(centre * np.zeros(1), centre * np.ones(1), pair.repeatability)
        assert between is not None, "the repeatability is known"
        learnt, p_value = between.reach(confidences), max(p_value, between.p_value)
    reach = np.hypot(reach, learnt)
    # A kernel's time depends on the clock fully (arithmetic), partly, or not at all (memory).
    clock = math.log(pair.clock_ratio)
    low, high = centre - reach - max(clock, 0.0), centre + reach - min(clock, 0.0)
    if pair.same_measurement:  # equal times need no statistics
        centre, low, high, p_value = 0.0, np.zeros(2), np.zeros(2), 1.0
    width = float(high[0] - low[0])
    widens = None
    if abs(clock) > max(limit / 2, width / 4):
        widens = Cause.MACHINE
    elif step > max(limit / 2, width / 4):
        widens = Cause.CLOCK_STEP
    elif learnt[0] > _MOST_OF_WIDTH * width:
        widens = Cause.SINGLE
    logs = (centre, low[0], high[0], low[1], high[1])
    ratio, below, above, same_low, same_high = (math.exp(min(max(float(value), -700.0), 700.0)) for value in logs)
    return Verdict(
        ratio=ratio, low=below, high=above, same_low=same_low, same_high=same_high, p_value=p_value,
        threshold=threshold, confidence=confidence,
        old_ns=old.time_ns(), new_ns=new.time_ns(),
        old_count=sum(block.size for block in old.blocks), new_count=sum(block.size for block in new.blocks),
        unit=unit, old_units=old.unit_count, new_units=new.unit_count,
        old_rounds=1 if unit == "sample" else len(old.blocks), new_rounds=1 if unit == "sample" else len(new.blocks),
        old_processes=old.unit_count if unit == "process" else 1,
        new_processes=new.unit_count if unit == "process" else 1,
        between_sd=estimate.between, within_sd=estimate.within, statistic=statistic, clock_ratio=pair.clock_ratio,
        step_share=step,
    ), widens  # fmt: skip


# ---- from evidence to a verdict


def _obstacle(pair: Pair, v: Verdict, *, differs: bool) -> Cause | None:
    """Return what forbids a verdict wherever the interval lies; with `differs`, one that is faster or slower.

    The rule for busy machines stands here, and nowhere else.
    """
    independent = (v.old_units, v.new_units) if v.unit == "sample" else (v.old_count, v.new_count)
    if min(independent) < LEAST_UNITS and not (pair.in_turns and v.old_units > 1):
        return Cause.FEW_SAMPLES
    if pair.clock_moved or (differs and pair.on_cpu and pair.loaded and not judge_busy()):
        return Cause.MACHINE
    if pair.varies_by_process and v.unit != "process" and pair.repeatability is None:
        return Cause.SINGLE
    return Cause.SINGLE if differs and pair.on_cpu and min(v.old_rounds, v.new_rounds) < 2 else None


def _decide(pair: Pair, v: Verdict, widens: Cause | None, most_p: float) -> Verdict:
    """Return the verdict that the evidence allows, with its reason; of the same code no time changes it."""
    found = _decide_by_time(pair, v, widens, most_p)
    if not pair.same_code or pair.same_measurement:
        return found
    differs = found.kind in (VerdictKind.FASTER, VerdictKind.SLOWER)
    percents = 100 * (max(v.ratio, 1 / v.ratio) - 1)
    finding = f"the machine differs: {percents:.2g} %" if differs else ""
    reason = f"both ask the same of the GPU{'; ' * differs}{finding}: {found.reason}"
    return replace(v, kind=VerdictKind.SAME_CODE, reason=reason, finding=finding)


def _decide_by_time(pair: Pair, v: Verdict, widens: Cause | None, most_p: float) -> Verdict:
    """Return the verdict that the times allow, with its reason."""
    over = 1 + v.threshold
    cleared = VerdictKind.SLOWER if v.low > over else VerdictKind.FASTER if v.high < 1 / over else None
    within = 1 / over < v.same_low and v.same_high < over
    lies = _place(v, cleared, within=within)
    if pair.same_measurement:
        reason = "OLD and NEW are the same measurement: all of their times are equal"
        return replace(v, kind=VerdictKind.SAME, reason=reason)
    if (cause := _obstacle(pair, v, differs=False)) is not None:
        return _ambiguous(v, cause, "", on_cpu=pair.on_cpu)
    if cleared is None and within:
        return replace(v, kind=VerdictKind.SAME, reason=lies)
    if cleared is None:
        cause, needed = (widens, None) if widens is not None else _why_wide(v)
        return _ambiguous(v, cause, f"{lies}: ", on_cpu=pair.on_cpu, needed=needed)
    level = 1 - v.confidence
    p = _shown_p(max(v.p_corrected, v.p_value if v.p_value > most_p else 0.0), level)
    if v.p_corrected > level or v.p_value > most_p:
        agrees = f"{lies}, but the test for any difference does not agree (p = {p}): "
        return _ambiguous(v, Cause.SPREAD, agrees, on_cpu=pair.on_cpu, needed=2 * max(v.counts))
    if (cause := _obstacle(pair, v, differs=True)) is not None:
        return _ambiguous(v, cause, f"{lies}, but ", on_cpu=pair.on_cpu)
    beside = "; beside other work (GRIDWISE_JUDGE_BUSY)" if pair.on_cpu and pair.loaded else ""
    return replace(v, kind=cleared, reason=f"{lies}, and the test for any difference agrees (p = {p}){beside}")


def _place(v: Verdict, cleared: VerdictKind | None, *, within: bool) -> str:
    """Return where the interval lies, as a clause."""
    over = 1 + v.threshold
    low, high = _shown(v.low, over), _shown(v.high, over)
    if cleared is not None:
        side = f"above {over:.4g}" if cleared is VerdictKind.SLOWER else f"below {1 / over:.4g}"
        return f"the whole interval, {low} to {high}, lies {side}"
    if within:
        ends = f"{_shown(v.same_low, over)} to {_shown(v.same_high, over)}"
        share = f"{100 * (2 * v.confidence - 1):g} %"
        return f"the whole interval of {share}, {ends}, lies within {100 * v.threshold:g} %"
    ends = [f"{bound:.4g}" for bound, met in ((1 / over, v.low <= 1 / over), (over, v.high >= over)) if met]
    return f"the interval, {low} to {high}, reaches beyond {' and '.join(ends)}"


def _ambiguous(v: Verdict, cause: Cause, reason: str, *, on_cpu: bool, needed: int | None = None) -> Verdict:
    kind = v.unit if cause is Cause.SPREAD else on_cpu if cause is Cause.MACHINE else None
    statement, settle = _TEXTS[cause, kind]
    verdict = replace(v, cause=cause, statement=statement, settle=settle, needed=needed)
    if needed is not None:
        now = verdict.counts
        verdict = replace(verdict, settle=f"{settle}: about {needed:,} of each, now {now[0]:,} and {now[1]:,}")
    return replace(verdict, reason=f"{reason}{statement}{_details(verdict)}")


def _why_wide(v: Verdict) -> tuple[Cause, int | None]:
    """Return why an interval reaches over the threshold by its own spread, and how many units are needed."""
    centre, limit = math.log(v.ratio), math.log1p(v.threshold)
    margin = abs(abs(centre) - limit)
    half = max(math.log(v.high) - centre, centre - math.log(v.low))
    factor = (half / margin) ** 2 if margin else math.inf
    if factor <= _MOST_MORE and not v.reaches(_TOO_NOISY):
        return Cause.SPREAD, math.ceil(max(factor, _LEAST_MORE) * max(v.counts))
    # An interval wider than the threshold is ambiguous for any difference.
    return Cause.SPREAD if half > limit else Cause.NEAR_THRESHOLD, None


def _details(v: Verdict) -> str:
    """Return the numbers behind a cause, in brackets."""
    if v.cause is Cause.FEW_SAMPLES:
        return f": {v.old_count} and {v.new_count}, worth {v.old_units} and {v.new_units} independent ones"
    if v.cause is Cause.MACHINE and v.clock_ratio != 1:
        return f" (the canary kernel took {v.clock_ratio:.4g} times its time in OLD)"
    if v.cause is Cause.CLOCK_STEP:
        return f" ({format_uncertainty(v.step_share)})"
    if v.cause is Cause.SPREAD and v.unit != "sample":
        spread = format_uncertainty(math.expm1(min(max(v.between_sd, v.within_sd), 50.0)))[1:]
        return f" (standard deviation {spread}, {v.old_units} and {v.new_units} {v.units})"
    if v.cause is Cause.SPREAD:
        return f" ({v.old_count} and {v.new_count})"
    if v.cause is Cause.NEAR_THRESHOLD:
        percents = 100 * (max(v.ratio, 1 / v.ratio) - 1)
        return f" ({percents:{'.2g' if percents < 99.5 else '.0f'}} % and {100 * v.threshold:g} %)"
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
