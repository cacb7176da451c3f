"""Finds the fastest kernel shapes for an adapter, and stores them: `gridwise tune`; compares what is stored again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from statistics import median
from typing import Any

import wgpu

from ... import BoundCall, Capabilities
from ...errors import ArgumentError, DeviceMemoryError, GridwiseError
from ...internals import KERNELS, Oracle, TuningStore, context_of
from ..calibrate.calibration import learn_facts
from ..checks.check import differences
from ..sampling.machine_load import LoadWatch, is_busy
from ..stats.verdict import Pair, Verdict, VerdictKind, judge_all
from .contest import Contest, Turns
from .rivals import Rounds, take_rounds

#: Of a whole search.
DEFAULT_BUDGET_S = 180.0
#: Ranges of lengths: above so many items, up to so many, what is measured for them. Results are for these ranges alone.
_RANGES = ((0, 1 << 18, 1 << 16), (1 << 18, 1 << 22, 1 << 20), (1 << 22, 1 << 25, 1 << 24), (1 << 25, 1 << 28, 1 << 26))
_MOST_ON_CPU = 1 << 20
# A reference in numpy for more takes long, and what a kernel computes of fewer items was compared then.
_MOST_OF_NUMPY = 1 << 20
# A product of so many items of output takes seconds.
_MOST_OF_PRODUCT = 1 << 24
_THRESHOLD = 0.01
# Slower than the default towards an end of a range by more than this: then the range keeps the default.
_MOST_LOSS = 0.005
_MOST_CANDIDATES, _AT_A_TIME = 12, 4
_MOST_ROUNDS = 15
_LEFT_OUT = (1.5, 1.2, 1.05)
_WARM_S = 0.1
# The share of a contest's time after which no more shapes are made.
_MAKING = 0.5


@dataclass(frozen=True)
class Trial:
    """A measured shape.

    Attributes
    ----------
    shape : mapping from str to int
        The fields of its tuning.
    time_ns : float or None
        Median of all rounds; None if the result was wrong.
    ratio : float or None
        Its time divided by that of the model's shape, in the rounds that both have; None for the model's and for wrong
        results.
    verdict : str
        ``"default"``, ``"faster"``, ``"slower"``, ``"same"``, ``"ambiguous"``, ``"left out"`` (clearly slower in the
        first rounds), ``"not again"`` (no faster when it was measured once more) or ``"wrong"``.
    """

    shape: Mapping[str, int]
    time_ns: float | None
    ratio: float | None
    verdict: str


@dataclass(frozen=True)
class Choice:
    """The result for one range of lengths.

    Attributes
    ----------
    kernel : str
    above, up_to : int
        More items than the first, at most the second.
    n : int
        Items that were measured.
    winner : mapping from str to int
        The fields of the fastest shape.
    ratio : float
        Its time divided by that of the model's, when it was measured once more; 1 for the model's.
    trials : tuple of Trial
        The model's own shape first.
    """

    kernel: str
    above: int
    up_to: int
    n: int
    winner: Mapping[str, int]
    ratio: float
    trials: tuple[Trial, ...]

    @property
    def changed(self) -> bool:
        """Whether a shape other than the model's won."""
        return self.winner != self.trials[0].shape


def tune(
    device: wgpu.GPUDevice,
    kernels: Iterable[str] | None = None,
    *,
    budget_s: float = DEFAULT_BUDGET_S,
    max_items: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> tuple[Choice, ...]:
    """Find the fastest shapes on a device and store them for its adapter and driver.

    Shapes near to the model's are measured in turns with it, the nearest first, as many as the time allows. One
    replaces the model's only if `judge_all`, with the rounds as units, judges it faster by more than 1 %, does so again
    in new rounds, and its results are the same; and if it is no slower towards the ends of its range. What was found
    is stored after each kernel. Primitives that are made afterwards use it.

    Parameters
    ----------
    device : wgpu.GPUDevice
    kernels : iterable of str, optional
        Of `tuning.model.KERNELS`; by default all. Stored results of other kernels stay.
    budget_s : float
        The time for all of them, about.
    max_items : int, optional
        Longer arrays are not measured; by default 2^27, or 2^20 on a CPU adapter.
    seed : int
        Of the data and the orders.
    progress : callable
        Called with the name of the next step.

    Returns
    -------
    tuple of Choice
        One for each kernel and range of lengths that was measured.
    """
    until = time.perf_counter() + budget_s
    names = list(KERNELS) if kernels is None else list(kernels)
    unknown = set(names) - set(KERNELS)
    if unknown:
        raise ArgumentError(f"kernels {sorted(unknown)} are unknown; known are {', '.join(KERNELS)}")
    if context_of(device).capabilities.facts is None:
        learn_facts(device, progress)
    search = _Search(device, replace(context_of(device).capabilities, tuning=None), seed)
    work = [(name, list(search.ranges_of(name, max_items))) for name in names]
    left = sum(len(ranges) for _, ranges in work)
    found: list[Choice] = []
    for name, ranges in work:
        own: list[Choice] = []
        good: list[Mapping[str, int]] = []
        try:
            for above, up_to, n in ranges:
                seconds = (until - time.perf_counter()) / left
                left -= 1
                if seconds <= 0:
                    break
                progress(f"{name}, {n:,} items")
                choice = _choose(search, name, (above, up_to, n), seconds, good)
                if choice is None:
                    continue  # the device cannot run it
                own.append(choice)
                if choice.changed:
                    good = [choice.winner, *(shape for shape in good if shape != choice.winner)]
        finally:  # also after Ctrl-C
            if own:
                _keep(device, own)
                found += own
    return tuple(found)


@dataclass(frozen=True)
class _Search:
    """What is the same for all kernels.

    Attributes
    ----------
    device : wgpu.GPUDevice
    plain : Capabilities
        Without what was tuned.
    seed : int
        Of the data and the orders.
    """

    device: wgpu.GPUDevice
    plain: Capabilities
    seed: int

    def contest(self, kernel: str, fields: Mapping[str, int], n: int) -> Contest:
        """Return a contest whose first shape is given."""
        return Contest(kernel, self.device, self.plain, fields, n, self.seed)

    def most_items(self) -> int:
        """Return how many items of 8 bytes a binding holds."""
        return max(1, self.plain.limits["max-storage-buffer-binding-size"] // 8)

    def ranges_of(self, kernel: str, max_items: int | None) -> Iterator[tuple[int, int, int]]:
        """Yield the ranges of a kernel that are measured, none of which spans two shapes of the model."""
        bounds = (self.most_items(), max_items, _MOST_ON_CPU if self.plain.is_cpu else None)
        most = min(filter(None, (*bounds, _MOST_OF_PRODUCT if kernel == "matmul" else None)))
        for above, up_to, n in _RANGES:
            if n > most:
                if above >= most:
                    continue
                n = most
            row_above, row_up_to, _ = KERNELS[kernel].shape(self.plain, n)
            end = up_to if max_items is None else min(up_to, max(n, max_items))
            yield max(above, row_above), min(end, row_up_to or end), n

    def towards_ends(self, above: int, up_to: int, n: int) -> list[int]:
        """Return the lengths of a range at half and twice the one that was measured."""
        return [other for other in (n // 2, min(2 * n, up_to)) if above < other <= self.most_items() and other != n]

    def others(self, kernel: str, n: int, good: Sequence[Mapping[str, int]]) -> Iterator[Mapping[str, int]]:
        """Yield shapes besides the model's: good ones, what is in use, the model's without facts, the nearest."""
        default = KERNELS[kernel].shape(self.plain, n)[2]
        in_use = (TuningStore(context_of(self.device).key).findings() or {}).get(kernel, ())
        tried = [*good, *(fields for above, up_to, fields in in_use if above < n <= up_to)]
        tried.append(KERNELS[kernel].shape(replace(self.plain, facts=None), n)[2])
        yield from (fields for i, fields in enumerate(tried) if fields != default and fields not in tried[:i])
        yield from islice(KERNELS[kernel].near(default), 4 * _MOST_CANDIDATES)


def _choose(
    search: _Search, kernel: str, of: tuple[int, int, int], seconds: float, good: Sequence[Mapping[str, int]]
) -> Choice | None:
    """Measure a range; `good` are shapes that won before, which are tried first."""
    above, up_to, n = of
    begin = time.perf_counter()
    try:
        contest = search.contest(kernel, KERNELS[kernel].shape(search.plain, n)[2], n)
    except (ArgumentError, DeviceMemoryError):
        return None
    made_s = time.perf_counter() - begin
    if n <= _MOST_OF_NUMPY:
        _check_first(contest)
    left = search.others(kernel, n, good)
    while len(contest.shapes) <= _MOST_CANDIDATES:
        room = begin + _MAKING * seconds - time.perf_counter()
        at_a_time = _AT_A_TIME if room > made_s else 1
        some = list(islice(left, min(at_a_time, _MOST_CANDIDATES + 1 - len(contest.shapes))))
        if room <= 0 or not some:
            break
        contest.add(some)
    turns = Turns(search.device, search.seed)
    rounds = _take(turns, contest.calls, _MOST_ROUNDS, _WARM_S, factors=_LEFT_OUT, until=begin + 0.9 * seconds)
    verdicts = _judge(rounds, [key for key in rounds.times if key and key not in rounds.left_out])
    said = {0: "default"} | dict.fromkeys(rounds.left_out, "left out")
    said |= {key: str(verdict.kind) for key, verdict in verdicts.items()}
    ratio, winner = 1.0, 0
    for key in sorted(verdicts, key=lambda key: verdicts[key].ratio):
        if verdicts[key].kind is not VerdictKind.FASTER:
            continue
        again = _again(turns, contest, key)
        first = list(contest.results(0).values())
        if differences(contest.primitives[0], contest.inputs, contest.results(key), first):
            said[key] = "wrong"
        elif again.kind is not VerdictKind.FASTER or not _holds(search, contest, key, of):
            said[key] = "not again"
        else:
            ratio, winner = again.ratio, key
            break
    trials = tuple(_trial(contest.shapes[key], key, rounds, said[key]) for key in rounds.times)
    return Choice(kernel, above, up_to, n, contest.shapes[winner], ratio, trials)


def _check_first(contest: Contest) -> None:
    """Compare what the model's shape computes with numpy."""
    primitive = contest.primitives[0]
    if not primitive.has_reference:
        return
    wanted = Oracle.of(primitive).expected(contest.inputs)
    wrong = differences(primitive, contest.inputs, contest.results(0), wanted)
    if wrong is not None:
        raise ArgumentError(
            f"the model's own shape {dict(contest.fields)} of {contest.kernel} gives wrong results here: {wrong}"
        )


def _take(turns: Turns, calls: Mapping[int, BoundCall[Any]], most: int, warm_s: float, **how: Any) -> Rounds[int]:
    """Take rounds of shapes, the first of which is the model's; other arguments are as of `take_rounds`."""
    turns.warm_up(calls, warm_s)
    watch = LoadWatch()
    found = take_rounds(
        lambda keys, number: turns.round({key: calls[key] for key in keys}), list(calls), most, first=0, **how
    )
    found.loaded = turns.on_cpu and is_busy(watch.share())
    return found


def _judge(rounds: Rounds[int], keys: Sequence[int]) -> dict[int, Verdict]:
    how: dict[str, Any] = {"in_turns": True, "on_cpu": rounds.loaded, "loaded": rounds.loaded}
    pairs = [Pair(rounds.times[0], rounds.times[key], **how) for key in keys]
    return dict(zip(keys, judge_all(pairs, threshold=_THRESHOLD), strict=True))


def _again(turns: Turns, contest: Contest, key: int, rounds: int = 9) -> Verdict:
    """Judge a shape against the model's in new rounds: the best of many was chosen for its luck, too."""
    found = _take(turns, {0: contest.calls[0], key: contest.calls[key]}, rounds, _WARM_S / 2)
    return _judge(found, [key])[key]


def _holds(search: _Search, contest: Contest, key: int, of: tuple[int, int, int]) -> bool:
    """Return whether a winner loses nothing towards the ends of its range."""
    for n in search.towards_ends(*of):
        other = search.contest(contest.kernel, contest.shapes[0], n)
        added = other.add([contest.shapes[key]])
        if added and _again(Turns(search.device, search.seed), other, added[0]).ratio > 1 + _MOST_LOSS:
            return False
    return True


def _trial(shape: Mapping[str, int], key: int, rounds: Rounds[int], verdict: str) -> Trial:
    if verdict == "wrong":
        return Trial(dict(shape), None, None, verdict)
    return Trial(dict(shape), median(map(median, rounds.times[key])), rounds.ratio(key, 0) if key else None, verdict)


def _keep(device: wgpu.GPUDevice, choices: Sequence[Choice]) -> None:
    """Store what was found for kernels, with what is stored of others, and use it on this device."""
    context = context_of(device)
    report = [asdict(choice) | {"changed": choice.changed} for choice in choices]
    TuningStore(context.key).keep(report, context.capabilities.facts)
    context.look_up_tuning()


# ---- what is in use, against the model's


@dataclass(frozen=True)
class Check:
    """What is used for a range of lengths, measured against the model's shape.

    Attributes
    ----------
    kernel : str
    n : int
    default, used : mapping from str to int
    ratio, low, high : float
        Time of the one that is used divided by that of the model's, with its interval of 95 %.
    verdict : str
    """

    kernel: str
    n: int
    default: Mapping[str, int]
    used: Mapping[str, int]
    ratio: float
    low: float
    high: float
    verdict: str


def check_tuning(
    device: wgpu.GPUDevice,
    kernels: Iterable[str] | None = None,
    *,
    budget_s: float = DEFAULT_BUDGET_S,
    seed: int = 1,
    progress: Callable[[str], None] = lambda step: None,
) -> tuple[Check, ...]:
    """Measure each shape that is used instead of the model's in turns with it, at the length that it was found at.

    Parameters are those of `tune`; what the time does not reach is left out.
    """
    until = time.perf_counter() + budget_s
    search = _Search(device, replace(context_of(device).capabilities, tuning=None), seed)
    used = TuningStore(context_of(device).key).findings() or {}
    wanted = None if kernels is None else set(kernels)
    ranges = [(k, *one) for k, own in used.items() if wanted is None or k in wanted for one in own]
    found: list[Check] = []
    for kernel, above, up_to, fields in ranges:
        if time.perf_counter() > until:
            break
        measured = next((n for _, _, n in _RANGES if above < n <= up_to), up_to)
        for n in [measured, *search.towards_ends(above, up_to, measured)]:
            progress(f"{kernel}, {n:,} items")
            default = KERNELS[kernel].shape(search.plain, n)[2]
            try:
                contest = search.contest(kernel, default, n)
                added = contest.add([fields])
            except GridwiseError:
                continue
            if added:
                verdict = _again(Turns(device, seed), contest, added[0], rounds=15)
                interval = (verdict.ratio, verdict.low, verdict.high)
                found.append(Check(kernel, n, dict(default), dict(fields), *interval, str(verdict.kind)))
    return tuple(found)
