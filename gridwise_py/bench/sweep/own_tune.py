"""Finds the fastest variants of users' benchmarks, by the axes that they tune: `gridwise tune FILE`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median, quantiles
from typing import Any, TypeAlias

import numpy as np
import wgpu

from ...errors import ArgumentError
from ...internals import is_lost
from ..cases.benchmarked import AxisValue
from ..cases.case import Case
from ..cases.mode import Mode
from ..cases.names import case_name
from ..sampling.interleave import in_own_words, pair_in_turns, samples_ns
from ..sampling.measure import measure_case
from ..sampling.measurement import Measurement
from ..sampling.protocol import SamplingProtocol
from ..stats.verdict import Verdict, VerdictKind, judge_all
from .suite import Job, Sweep, plan_jobs
from .worker import Worker, WorkerError

#: Of one variant in one round: rounds tell more than samples within one.
OWN_TUNE_PROTOCOL = SamplingProtocol(timeout_s=0.1, warmup_s=0.03, max_warmup_s=0.1)
_THRESHOLD = 0.02
#: What is slower by these factors in each of so many rounds is left out; the last one is for all further rounds.
_LEFT_OUT = (2.0, 1.25)

#: The texts of a variant's tuned values, in the order of the axes.
_Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class _OfProcess(Measurement):
    """What a process measured, which tells of its first wrong item as a text."""

    wrong: str | None = None


class EachRoundInAProcess:
    """Measures as `measure_case` does, each round in a process of its own: each has its own level of times.

    A context manager; its process ends with it.

    Parameters
    ----------
    adapter : int, str or None
        As `request_device` takes it.
    files : sequence of str
        Of the benchmarks.
    """

    def __init__(self, adapter: int | str | None, files: Sequence[str]):
        self._adapter, self._files = adapter, files
        self._worker: Worker | None = None

    def __enter__(self) -> EachRoundInAProcess:
        return self

    def __exit__(self, *error: object) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()

    def new_round(self) -> None:
        """Let the next measurement begin a process."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def __call__(
        self, device: wgpu.GPUDevice, case: Case, protocol: SamplingProtocol, mode: str, *, check: bool
    ) -> Measurement:
        """Measure a case in the process of this round."""
        del device
        job = Job(case, Mode(mode), 0, process=0 if check else 1)
        try:
            if self._worker is None:
                self._worker = Worker(self._adapter, protocol, "the process of this round", self._files)
                self._worker.measure(replace(job, process=1))  # the clock fell while it started
            found = self._worker.measure(job)
        except WorkerError as error:
            self.__exit__()
            return Measurement(case.primitive, Mode(mode), case.n, case.axes, error=str(error))
        return _OfProcess(
            found.primitive, found.mode, found.n, case.axes, protocol=found.protocol, whole=found.whole.series,
            error=found.error, checked=found.checked, clock_moved=found.clock_moved,
            tick_period_ns=found.tick_period_ns, wrong=found.mismatch,
        )  # fmt: skip


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
    cases : mapping
        By the texts of the tuned values.
    """

    benchmark: str
    n: int
    mode: Mode
    axes: Mapping[str, AxisValue]
    tuned: tuple[str, ...]
    cases: Mapping[_Key, Case]

    def values(self, key: _Key) -> dict[str, AxisValue]:
        """Return the tuned values of a variant as its function gets them."""
        own = self.cases[key].own_workload
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
                {
                    "values": dict(one.values),
                    "standing": one.standing.value,
                    "time_ns": one.time_ns,
                    "ratio": one.ratio,
                    "low": one.low,
                    "high": one.high,
                    "reason": one.reason or None,
                    "checked": one.checked,
                    "rounds_ns": list(one.rounds_ns),
                }
                for one in self.variants
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
        groups: dict[Any, dict[_Key, Case]] = {}
        for job in plan_jobs([sweep]):
            texts = dict(job.case.others)
            key = tuple(texts.pop(axis) for axis in axes)
            n = job.case.n if own.declared.size is None else None
            groups.setdefault((job.mode, n, tuple(texts.items())), {})[key] = job.case
        for (mode, _, others), cases in groups.items():
            values = {axis: own.value(axis, text) for axis, text in others}
            sizes = {case.n for case in cases.values()}
            if len(sizes) > 1:
                raise ArgumentError(
                    f"{own.full_name}: n depends on {', '.join(axes)}, so variants would do work of "
                    f"{min(sizes):,} to {max(sizes):,} items; tune axes that leave n as it is"
                )
            found.append(Contest(own.full_name, sizes.pop(), mode, values, axes, cases))
    if not found:
        _refuse(asked, names, list(known))
    if all(len(contest.cases) < 2 for contest in found):
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


def tuned(
    make_device: Callable[[], wgpu.GPUDevice],
    contests: Sequence[Contest],
    *,
    rounds: int = 9,
    protocol: SamplingProtocol = OWN_TUNE_PROTOCOL,
    progress: Callable[[str], None] = lambda step: None,
    measure: Callable[..., Measurement] = measure_case,
    new_round: Callable[[], None] = lambda: None,
) -> Generator[TunedPoint]:
    """Measure the variants of each contest in turns, and yield how they stand.

    In each round every variant is made anew and measured once, in a new random order, so that a drift of the machine
    meets all of them, and only one holds memory. In the first round its result is compared with the reference. One that
    is wrong or fails is not measured again, nor is one that is slower than the fastest by a factor of 2 in the first
    round, or of 1.25 in each round so far.

    Parameters
    ----------
    make_device : callable
        Returns a device; called again where a variant lost it.
    contests : sequence of Contest
    rounds : int, default 9
        Measurements of each variant that stays; fewer than three cannot tell a difference from chance.
    protocol : SamplingProtocol
        Of one variant in one round.
    progress : callable
        Called with the name of the next step.
    measure : callable
        As `measure_case`.
    new_round : callable
        Called before each round.
    """
    device = make_device()
    rng = np.random.default_rng(protocol.seed)
    for number, contest in enumerate(contests, 1):
        taken: dict[_Key, list[Measurement]] = {key: [] for key in contest.cases}
        left: dict[_Key, float] = {}
        for round_number in range(rounds):
            running = [key for key, own in taken.items() if key not in left and not _trouble(own)]
            if not running or (len(running) == 1 and round_number >= _least_rounds(rounds)):
                break
            new_round()
            for position in rng.permutation(len(running)):
                key = running[int(position)]
                progress(
                    f"{contest} ({number} of {len(contests)}), round {round_number + 1} of {rounds}: "
                    f"{len(running)} variants, {_words(contest, key)}"
                )
                case, is_first = contest.cases[key], round_number == 0
                taken[key].append(measure(device, case, protocol, contest.mode.value, check=is_first))
                if taken[key][-1].error is not None and is_lost(device):
                    device = make_device()
            left |= clearly_slower({key: samples_ns(taken[key]) for key in running if not _trouble(taken[key])})
        yield TunedPoint(contest, _standings(contest, taken, left))


def _least_rounds(rounds: int) -> int:
    """Return after how many rounds a variant without rivals is measured no more: its time is shown, not judged."""
    return min(3, rounds)


def _words(contest: Contest, key: _Key) -> str:
    return " ".join(f"{axis}={text}" for axis, text in zip(contest.tuned, key, strict=True))


def clearly_slower(rounds: Mapping[_Key, Sequence[Sequence[float]]]) -> dict[_Key, float]:
    """Return which variants need no further round, with the factor by which each was slower in every round.

    The lower quartile of each of its rounds is compared with the upper quartile of the fastest, so that neither a few
    slow samples nor one slow round put it out.

    Parameters
    ----------
    rounds : mapping from key to sequence of sequence of float
        Samples in ns, of as many rounds for each variant.
    """
    if len(rounds) < 2:
        return {}
    leader = min(rounds, key=lambda key: median(median(each) for each in rounds[key]))
    factor = _LEFT_OUT[min(len(rounds[leader]), len(_LEFT_OUT)) - 1]
    highest = [_quartiles(each)[1] for each in rounds[leader]]
    found: dict[_Key, float] = {}
    for key, own in rounds.items():
        least = min(_quartiles(each)[0] / high for each, high in zip(own, highest, strict=True))
        if key != leader and least > factor:
            found[key] = factor
    return found


def _quartiles(samples: Sequence[float]) -> tuple[float, float]:
    if len(samples) < 2:
        return samples[0], samples[0]
    low, _, high = quantiles(samples, n=4, method="inclusive")
    return low, high


def _trouble(own: Sequence[Measurement]) -> tuple[Standing, str] | None:
    """Return why a variant is out of the contest, if it does not run or is wrong."""
    for m in own:
        if m.error is not None:
            return Standing.FAILED, m.error
        wrong = m.wrong if isinstance(m, _OfProcess) else next(map(str, m.mismatches), None)
        if wrong is not None:
            return Standing.WRONG, wrong
    if not all(times and min(times) > 0 for times in samples_ns(own)):
        return Standing.FAILED, "a round has no valid time"
    return None


# ---- the decision


def _standings(
    contest: Contest, taken: Mapping[_Key, Sequence[Measurement]], left: Mapping[_Key, float]
) -> tuple[Variant, ...]:
    """Return all variants of a contest, the fastest first."""
    troubles = {key: _trouble(own) for key, own in taken.items()}
    finalists = {key: own for key, own in taken.items() if troubles[key] is None and key not in left}
    best, verdicts = _judged(finalists)
    found: list[Variant] = []
    for key, own in taken.items():
        trouble, verdict = troubles[key], verdicts.get(key)
        if trouble is not None:
            variant = _variant(contest, key, own, *trouble)
        elif key == best:
            variant = _variant(contest, key, own, Standing.BEST, "", 1.0)
        elif verdict is not None:
            variant = _variant(
                contest, key, own, _standing(verdict), verdict.reason if verdict.kind is VerdictKind.AMBIGUOUS else "",
                verdict.ratio, verdict,
            )  # fmt: skip
        elif best is not None and key in left:
            of_best = median(map(median, samples_ns(finalists[best])[: len(own)]))
            variant = _variant(
                contest, key, own, Standing.LEFT_OUT,
                f"slower by more than {100 * (left[key] - 1):.0f} % in {_count(len(own))}",
                median(map(median, samples_ns(own))) / of_best,
            )  # fmt: skip
        else:
            why = "left out for a faster variant, which failed later"
            variant = _variant(contest, key, own, Standing.LEFT_OUT, why)
        found.append(variant)
    return tuple(sorted(found, key=lambda variant: (_RANKS.get(variant.standing, 1), variant.ratio or 0.0)))


_RANKS = {Standing.BEST: 0, Standing.LEFT_OUT: 2, Standing.WRONG: 3, Standing.FAILED: 4}


def _variant(
    contest: Contest, key: _Key, own: Sequence[Measurement], standing: Standing, reason: str,
    ratio: float | None = None, verdict: Verdict | None = None,
) -> Variant:  # fmt: skip
    rounds_ns = tuple(median(times) for times in samples_ns(own) if times)
    is_valid = standing not in (Standing.WRONG, Standing.FAILED)
    return Variant(
        contest.values(key), standing, median(rounds_ns) if is_valid else None, ratio,
        None if verdict is None else verdict.low, None if verdict is None else verdict.high,
        reason, standing is not Standing.FAILED and own[0].checked, rounds_ns,
    )  # fmt: skip


def _judged(finalists: Mapping[_Key, Sequence[Measurement]]) -> tuple[_Key | None, Mapping[_Key, Verdict]]:
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


def _standing(verdict: Verdict) -> Standing:
    known = {VerdictKind.SAME: Standing.SAME, VerdictKind.SLOWER: Standing.SLOWER}
    return known.get(verdict.kind, Standing.AMBIGUOUS)


def _count(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"each of {rounds} rounds"


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
