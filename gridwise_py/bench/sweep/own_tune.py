"""Finds the fastest variants of users' benchmarks, by the axes that they tune: `gridwise tune FILE`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import wgpu

from ...errors import ArgumentError
from ...internals import context_of
from ..cases.benchmarked import AxisValue
from ..cases.mode import Mode
from ..cases.names import case_name
from ..results.model import Result
from ..sampling.interleave import in_own_words, pair_in_turns, samples_ns
from ..sampling.measurement import Measurement
from ..sampling.protocol import SamplingProtocol
from ..stats.verdict import Verdict, VerdictKind, judge_all
from .rivals import Rounds, take_rounds
from .suite import Job, Sweep, plan_jobs
from .worker import Worker, WorkerError, failed_result, measure_job

#: Of one variant in one round: rounds tell more than samples within one.
OWN_TUNE_PROTOCOL = SamplingProtocol(timeout_s=0.1, warmup_s=0.03, max_warmup_s=0.1)
_THRESHOLD = 0.02
#: What is slower by these factors in each of so many rounds is left out.
_LEFT_OUT = (2.0, 1.25)

#: The texts of a variant's tuned values, in the order of the axes.
_Key: TypeAlias = tuple[str, ...]


class RoundsHere:
    """Measures variants in this process; with another device after one was lost.

    Parameters
    ----------
    make_device : callable
    protocol : SamplingProtocol
        Of one variant in one round.
    """

    def __init__(self, make_device: Callable[[], wgpu.GPUDevice], protocol: SamplingProtocol = OWN_TUNE_PROTOCOL):
        self._make_device, self._protocol = make_device, protocol
        self._device: wgpu.GPUDevice = make_device()

    def begin_round(self) -> None:
        """Do nothing: all rounds are of this process."""

    def measure(self, job: Job) -> Result:
        """Measure a variant."""
        found = measure_job(self._device, job, self._protocol)
        if found.error is not None and context_of(self._device).is_lost:
            self._device = self._make_device()
        return found


class RoundsApart:
    """Measures as `RoundsHere`, each round in a process of its own: each has its own level of times.

    A context manager; its process ends with it.

    Parameters
    ----------
    adapter : int, str or None
        As `request_device` takes it.
    files : sequence of str
        Of the benchmarks.
    protocol : SamplingProtocol
    """

    def __init__(self, adapter: int | str | None, files: Sequence[str], protocol: SamplingProtocol = OWN_TUNE_PROTOCOL):
        self._adapter, self._files, self._protocol = adapter, files, protocol
        self._worker: Worker | None = None

    def __enter__(self) -> RoundsApart:
        return self

    def __exit__(self, *error: object) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()

    def begin_round(self) -> None:
        """Let the next measurement begin a process."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def measure(self, job: Job) -> Result:
        """Measure a variant in the process of this round."""
        try:
            if self._worker is None:
                self._worker = Worker(self._adapter, self._protocol, "the process of this round", self._files)
                self._worker.measure(replace(job, process=1))  # the clock fell while it started
            return self._worker.measure(job)
        except WorkerError as error:
            self.__exit__()
            return failed_result(job, self._protocol, str(error))


class Standing(StrEnum):
    """What is known of a variant."""

    BEST = "best"
    SAME = "same"  #: differs from the best by less than the threshold
    AMBIGUOUS = "ambiguous"  #: the samples do not settle whether it is slower than the best
    SLOWER = "slower"
    LEFT_OUT = "left out"  #: so much slower in the first rounds that the others were measured without it
    WRONG = "wrong"
    FAILED = "failed"


@dataclass(frozen=True)
class Contest:
    """The variants of one benchmark at one point of the axes that are not tuned.

    Attributes
    ----------
    benchmark : str
        ``FILE.NAME``.
    n : int
    mode : Mode
    axes : mapping from str to int, float, str or bool
        Those that are not tuned, n and mode aside.
    tuned : tuple of str
    jobs : mapping
        By the texts of the tuned values.
    """

    benchmark: str
    n: int
    mode: Mode
    axes: Mapping[str, AxisValue]
    tuned: tuple[str, ...]
    jobs: Mapping[_Key, Job]

    def values(self, key: _Key) -> dict[str, AxisValue]:
        """Return the tuned values of a variant as its function gets them."""
        own = self.jobs[key].case.own_workload
        assert own is not None, "the case is of a user's file"
        return {axis: own.value(axis, text) for axis, text in zip(self.tuned, key, strict=True)}

    def __str__(self) -> str:
        return case_name(self.benchmark, self.axes, self.mode.value, self.n)


@dataclass(frozen=True)
class Variant:
    """One combination of tuned values, as measured.

    Attributes
    ----------
    values : mapping from str to int, float, str or bool
    standing : Standing
    time_ns : float or None
        Median of all its rounds; None of one that is wrong or failed.
    ratio : float or None
        Its time by that of the best; 1 of the best. Of one that was left out, over the rounds that both have.
    low, high : float or None
        Interval of the ratio; None where it was not judged.
    reason : str
        Why it is wrong, failed, left out or ambiguous; else empty.
    checked : bool
        Whether its result was compared with a reference.
    rounds_ns : tuple of float
        The median of each of its rounds.
    """

    values: Mapping[str, AxisValue]
    standing: Standing
    time_ns: float | None
    ratio: float | None
    low: float | None
    high: float | None
    reason: str
    checked: bool
    rounds_ns: tuple[float, ...]


@dataclass(frozen=True)
class TunedPoint:
    """The result of a contest.

    Attributes
    ----------
    contest : Contest
    variants : tuple of Variant
        The fastest first; then those that were left out, are wrong, or failed.
    """

    contest: Contest
    variants: tuple[Variant, ...]

    @property
    def best(self) -> Variant | None:
        """The fastest; None if no variant ran and was right."""
        first = self.variants[0]
        return first if first.standing is Standing.BEST else None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        contest, best = self.contest, self.best
        return {
            "benchmark": contest.benchmark,
            "n": contest.n,
            "mode": contest.mode.value,
            "axes": dict(contest.axes),
            "best": None if best is None else dict(best.values),
            "variants": [
                asdict(one) | {"standing": one.standing.value, "reason": one.reason or None} for one in self.variants
            ],
        }


# ---- what competes


def contests_of(sweeps: Iterable[Sweep], asked: Sequence[str] | None = None) -> list[Contest]:
    """Return what is to be tuned: for each point of the other axes, every combination of the tuned ones.

    Parameters
    ----------
    sweeps : iterable of Sweep
        Of users' benchmarks.
    asked : sequence of str, optional
        The axes to tune; by default those that a benchmark declares. Benchmarks that lack one are not tuned.

    Raises
    ------
    ArgumentError
        If nothing can be tuned, there is one variant only, or their sizes differ.
    """
    found: list[Contest] = []
    known: dict[str, None] = {}
    names: list[str] = []
    for sweep in sweeps:
        own = sweep.own
        assert own is not None, "the sweep is of a user's file"
        axes = own.declared.tune if asked is None else tuple(dict.fromkeys(asked))
        known |= dict.fromkeys(own.axes)
        names.append(own.full_name)
        if not axes or not set(axes) <= set(own.axes):
            continue
        groups: dict[Any, dict[_Key, Job]] = {}
        for job in plan_jobs([sweep]):
            texts = dict(job.case.others)
            key = tuple(texts.pop(axis) for axis in axes)
            n = job.case.n if own.declared.size is None else None
            groups.setdefault((job.mode, n, tuple(texts.items())), {})[key] = job
        for (mode, _, others), jobs in groups.items():
            values = {axis: own.value(axis, text) for axis, text in others}
            sizes = {job.case.n for job in jobs.values()}
            if len(sizes) > 1:
                raise ArgumentError(
                    f"{own.full_name}: n depends on {', '.join(axes)}, so variants would do work of "
                    f"{min(sizes):,} to {max(sizes):,} items; tune axes that leave n as it is"
                )
            found.append(Contest(own.full_name, sizes.pop(), mode, values, axes, jobs))
    if not found:
        _refuse(asked, names, list(known))
    if all(len(contest.jobs) < 2 for contest in found):
        raise ArgumentError(
            f"{found[0].benchmark}: {', '.join(found[0].tuned)} has one value only, so there is nothing to compare; "
            f"give several, as in -a {found[0].tuned[0]}=…,…"
        )
    return found


def _refuse(asked: Sequence[str] | None, names: Sequence[str], known: Sequence[str]) -> None:
    there = f"axes are {', '.join(known)}" if known else "they have no axes besides n and mode"
    if asked is None:
        raise ArgumentError(
            f"{', '.join(names)}: no axes to tune are declared; {there}: add tune=[…] to gw.benchmarked, or --tune "
            f"{known[0] if known else 'AXIS'}"
        )
    raise ArgumentError(f"--tune {','.join(asked)}: no benchmark of {', '.join(names)} has these axes; {there}")


# ---- the rounds


def tune_variants(
    where: RoundsHere | RoundsApart,
    contests: Sequence[Contest],
    *,
    rounds: int = 9,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Generator[TunedPoint]:
    """Measure the variants of each contest in turns, and yield how they stand.

    In each round every variant is made anew and measured once, in a new random order, so that a drift of the machine
    meets all of them, and only one holds memory. In the first round its result is compared with the reference. One that
    is wrong or fails is not measured again, nor is one that is slower than the fastest by a factor of 2 in the first
    round, or of 1.25 in each round so far.

    Parameters
    ----------
    where : RoundsHere or RoundsApart
    contests : sequence of Contest
    rounds : int, default 9
        Measurements of each variant that stays; fewer than three cannot tell a difference from chance.
    seed : int
        Of the orders.
    progress : callable
        Called with the name of the next step.
    """
    rng = np.random.default_rng(seed)
    for number, contest in enumerate(contests, 1):
        title = f"{contest} ({number} of {len(contests)})"
        yield _tune_point(contest, where, rounds, rng, lambda step, title=title: progress(f"{title}, {step}"))


def _tune_point(
    contest: Contest,
    where: RoundsHere | RoundsApart,
    rounds: int,
    rng: np.random.Generator,
    progress: Callable[[str], None],
) -> TunedPoint:
    taken: dict[_Key, list[Result]] = {key: [] for key in contest.jobs}

    def measure_once(running: Sequence[_Key], number: int) -> dict[_Key, tuple[float, ...]]:
        where.begin_round()
        for position in rng.permutation(len(running)):
            key = running[int(position)]
            words = " ".join(f"{axis}={text}" for axis, text in zip(contest.tuned, key, strict=True))
            progress(f"round {number + 1} of {rounds}: {len(running)} variants, {words}")
            # The first process checks.
            taken[key].append(where.measure(replace(contest.jobs[key], process=min(number, 1))))
        return {key: samples_ns(_times_of(taken[key][-1:]))[0] for key in running if _find_trouble(taken[key]) is None}

    # A variant without rivals is measured no more than its time needs, which is shown, not judged.
    found = take_rounds(measure_once, list(contest.jobs), rounds, factors=_LEFT_OUT, least=min(3, rounds))
    return TunedPoint(contest, _rank(contest, taken, found))


def _find_trouble(own: Sequence[Result]) -> tuple[Standing, str] | None:
    """Return why a variant is out of the contest, if it does not run or is wrong."""
    for one in own:
        if one.error is not None:
            return Standing.FAILED, one.error
        if one.mismatch is not None:
            return Standing.WRONG, one.mismatch
    if not all(times and min(times) > 0 for times in samples_ns(_times_of(own))):
        return Standing.FAILED, "a round has no valid time"
    return None


# ---- the decision


def _rank(contest: Contest, taken: Mapping[_Key, Sequence[Result]], rounds: Rounds[_Key]) -> tuple[Variant, ...]:
    """Return all variants of a contest, the fastest first."""
    troubles = {key: _find_trouble(own) for key, own in taken.items()}
    timed = {key: _times_of(own) for key, own in taken.items()}
    best, verdicts = _judge({key: timed[key] for key in taken if troubles[key] is None and key not in rounds.left_out})
    found: list[Variant] = []
    for key, own in taken.items():
        trouble, verdict, ratio, reason = troubles[key], verdicts.get(key), None, ""
        if trouble is not None:
            standing, reason = trouble
        elif key == best:
            standing, ratio = Standing.BEST, 1.0
        elif verdict is not None:
            standing, ratio = _STANDINGS.get(verdict.kind, Standing.AMBIGUOUS), verdict.ratio
            reason = verdict.reason if verdict.kind is VerdictKind.AMBIGUOUS else ""
        else:
            standing, reason = Standing.LEFT_OUT, "left out for a faster variant, which failed later"
            if best is not None:
                ratio = rounds.ratio(key, best)
                count = "1 round" if len(own) == 1 else f"each of {len(own)} rounds"
                reason = f"slower by more than {100 * (rounds.left_out[key] - 1):.0f} % in {count}"
        rounds_ns = tuple(median(times) for times in samples_ns(timed[key]) if times)
        found.append(
            Variant(
                values=contest.values(key),
                standing=standing,
                time_ns=None if trouble is not None else median(rounds_ns),
                ratio=ratio,
                low=None if verdict is None else verdict.low,
                high=None if verdict is None else verdict.high,
                reason=reason,
                checked=standing is not Standing.FAILED and own[0].checked,
                rounds_ns=rounds_ns,
            )
        )
    return tuple(sorted(found, key=lambda variant: (_RANKS.get(variant.standing, 1), variant.ratio or 0.0)))


_RANKS = {Standing.BEST: 0, Standing.LEFT_OUT: 2, Standing.WRONG: 3, Standing.FAILED: 4}
_STANDINGS = {VerdictKind.SAME: Standing.SAME, VerdictKind.SLOWER: Standing.SLOWER}


def _judge(finalists: Mapping[_Key, Sequence[Measurement]]) -> tuple[_Key | None, Mapping[_Key, Verdict]]:
    """Return the fastest of those that ran in all rounds, and verdicts on the others against it."""
    if not finalists:
        return None, {}

    def against(first: _Key) -> dict[_Key, Verdict]:
        rivals = [key for key in finalists if key != first]
        verdicts = judge_all([pair_in_turns(finalists[first], finalists[key]) for key in rivals], threshold=_THRESHOLD)
        return dict(zip(rivals, map(in_own_words, verdicts), strict=True))

    best = min(finalists, key=lambda key: median(map(median, samples_ns(finalists[key]))))
    verdicts = against(best)
    # The verdict's ratio is not always that of medians: what it judges faster is the best.
    faster = {key: verdict.ratio for key, verdict in verdicts.items() if verdict.kind is VerdictKind.FASTER}
    if faster:
        best = min(faster, key=lambda key: faster[key])
        verdicts = against(best)
    return best, verdicts


def _times_of(own: Sequence[Result]) -> list[Measurement]:
    """Return the times of rounds, as those that are judged have them."""
    return [
        Measurement(
            one.primitive, one.mode, one.n, protocol=one.protocol, whole=one.whole.series,
            clock_moved=one.clock_moved, tick_period_ns=one.tick_period_ns, other_load=one.other_load,
        )
        for one in own
    ]  # fmt: skip


def best_for_all(points: Sequence[TunedPoint]) -> tuple[Mapping[str, AxisValue], float] | None:
    """Return the values that lose least where they lose most, and how much: the ratio to the best of that point.

    None if there are not several points with a best, or no variant ran at all of them.
    """
    if len(points) < 2 or any(point.best is None for point in points):
        return None
    worst: dict[tuple[tuple[str, AxisValue], ...], list[float]] = {}
    for point in points:
        for variant in point.variants:
            if variant.ratio is not None:
                # What cannot be told apart from the best loses nothing.
                lost = 1.0 if variant.standing is Standing.SAME else max(variant.ratio, 1.0)
                worst.setdefault(tuple(variant.values.items()), []).append(lost)
    everywhere = {values: max(lost) for values, lost in worst.items() if len(lost) == len(points)}
    if not everywhere:
        return None
    values = min(everywhere, key=lambda values: everywhere[values])
    return dict(values), everywhere[values]
