"""Finds the fastest kernel shapes for an adapter, and stores them: `gridwise tune`; compares what is stored again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from statistics import median
from typing import Any

import wgpu

from ... import Capabilities
from ...errors import ArgumentError, DeviceMemoryError, GridwiseError
from ...internals import (
    KERNELS,
    candidates,
    context_of,
    device_key,
    keep_tuning,
    load_tuning,
    shape_of,
)
from ..calibrate.calibration import learn_facts
from ..checks.check import differences
from ..checks.oracle import Oracle
from ..stats.verdict import Pair, Verdict, VerdictKind, judge_all
from .contest import Contest, Turns

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
    plain = replace(context_of(device).capabilities, tuning=None)
    work = [(name, list(_ranges_of(name, plain, max_items))) for name in names]
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
                choice = _choose(device, plain, name, (above, up_to, n), seconds, seed, good)
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


def _ranges_of(kernel: str, plain: Capabilities, max_items: int | None) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of a kernel that are measured, none of which spans two shapes of the model."""
    most = min(_most_items(plain), _MOST_ON_CPU if plain.is_cpu else 1 << 62, max_items or 1 << 62)
    if kernel == "matmul":
        most = min(most, _MOST_OF_PRODUCT)
    for above, up_to, n in _RANGES:
        if n > most:
            if above >= most:
                continue
            n = most
        row_above, row_up_to, _ = shape_of(kernel, plain, n)
        end = up_to if max_items is None else min(up_to, max(n, max_items))
        yield max(above, row_above), min(end, row_up_to or end), n


def _most_items(plain: Capabilities) -> int:
    """Return how many items of 8 bytes a binding holds."""
    return max(1, plain.limits["max-storage-buffer-binding-size"] // 8)


def _choose(
    device: wgpu.GPUDevice, plain: Capabilities, kernel: str, of: tuple[int, int, int], seconds: float, seed: int,
    good: Sequence[Mapping[str, int]],
) -> Choice | None:  # fmt: skip
    """Measure a range; `good` are shapes that won before, which are tried first."""
    above, up_to, n = of
    begin = time.perf_counter()
    default = shape_of(kernel, plain, n)[2]
    # What is in use is tried first, and what the model would say without facts.
    in_use = (load_tuning(device_key(device)) or {}).get(kernel, ())
    tried = [*good, *(fields for low, high, fields in in_use if low < n <= high)]
    tried.append(shape_of(kernel, replace(plain, facts=None), n)[2])
    good = [fields for i, fields in enumerate(tried) if fields != default and fields not in tried[:i]]
    try:
        contest = Contest(kernel, device, plain, default, n, seed)
    except (ArgumentError, DeviceMemoryError):
        return None
    made_s = time.perf_counter() - begin
    if n <= _MOST_OF_NUMPY:
        _check_first(contest)
    left = iter([*good, *islice(candidates(kernel, default), 4 * _MOST_CANDIDATES)])
    while len(contest.shapes) <= _MOST_CANDIDATES:
        room = begin + _MAKING * seconds - time.perf_counter()
        at_a_time = _AT_A_TIME if room > made_s else 1
        some = list(islice(left, min(at_a_time, _MOST_CANDIDATES + 1 - len(contest.shapes))))
        if room <= 0 or not some:
            break
        contest.add(some)
    turns = Turns(device, seed)
    taken, out = _rounds(turns, dict(contest.calls), begin + 0.9 * seconds)
    verdicts = _verdicts(taken, [key for key in taken if key and key not in out])
    ratio, winner = 1.0, 0
    refused: dict[int, str] = {}
    for key in sorted(verdicts, key=lambda key: verdicts[key].ratio):
        if verdicts[key].kind is not VerdictKind.FASTER:
            continue
        again = _again(turns, contest, key)
        first = list(contest.results(0).values())
        if differences(contest.primitives[0], contest.inputs, contest.results(key), first):
            refused[key] = "wrong"
        elif again.kind is not VerdictKind.FASTER or not _holds(device, plain, contest, key, of, seed):
            refused[key] = "not again"
        else:
            ratio, winner = again.ratio, key
            break
    trials = [_trial(contest.shapes[key], key, taken, verdicts, out, refused) for key in taken]
    return Choice(kernel, above, up_to, n, contest.shapes[winner], ratio, tuple(trials))


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


def _rounds(turns: Turns, calls: dict[int, Any], until: float) -> tuple[dict[int, list[tuple[float, ...]]], set[int]]:
    """Take rounds of all shapes until the time is up; return their times, and which were left out as clearly slower."""
    turns.warm_up(calls, _WARM_S)
    taken: dict[int, list[tuple[float, ...]]] = {key: [] for key in calls}
    out: set[int] = set()
    for number in range(_MOST_ROUNDS):
        if number and time.perf_counter() > until:
            break
        for key, times in turns.round(calls).items():
            taken[key].append(times)
        factor = _LEFT_OUT[min(number, len(_LEFT_OUT) - 1)]
        for key in [key for key in calls if key]:
            if min(median(one) / median(two) for one, two in zip(taken[key], taken[0], strict=True)) > factor:
                out.add(key)
                del calls[key]
        if len(calls) == 1:
            break
    return taken, out


def _verdicts(taken: Mapping[int, Sequence[Sequence[float]]], keys: Sequence[int]) -> dict[int, Verdict]:
    pairs = [Pair(taken[0], taken[key], in_turns=True) for key in keys]
    return dict(zip(keys, judge_all(pairs, threshold=_THRESHOLD), strict=True))


def _again(turns: Turns, contest: Contest, key: int, rounds: int = 9) -> Verdict:
    """Judge a shape against the model's in new rounds: the best of many was chosen for its luck, too."""
    calls = {0: contest.calls[0], key: contest.calls[key]}
    turns.warm_up(calls, _WARM_S / 2)
    taken: dict[int, list[tuple[float, ...]]] = {0: [], key: []}
    for _ in range(rounds):
        for one, times in turns.round(calls).items():
            taken[one].append(times)
    return _verdicts(taken, [key])[key]


def _holds(
    device: wgpu.GPUDevice, plain: Capabilities, contest: Contest, key: int, of: tuple[int, int, int], seed: int
) -> bool:
    """Return whether a winner loses nothing towards the ends of its range."""
    for n in _towards_ends(*of, plain):
        other = Contest(contest.kernel, device, plain, contest.shapes[0], n, seed)
        added = other.add([contest.shapes[key]])
        if added and _again(Turns(device, seed), other, added[0]).ratio > 1 + _MOST_LOSS:
            return False
    return True


def _towards_ends(above: int, up_to: int, n: int, plain: Capabilities) -> list[int]:
    """Return the lengths of a range at half and twice the one that was measured."""
    return [other for other in (n // 2, min(2 * n, up_to)) if above < other <= _most_items(plain) and other != n]


def _trial(
    shape: Mapping[str, int],
    key: int,
    taken: Mapping[int, Sequence[Sequence[float]]],
    verdicts: Mapping[int, Verdict],
    out: set[int],
    refused: Mapping[int, str],
) -> Trial:
    ratio = median(median(one) / median(two) for one, two in zip(taken[key], taken[0], strict=False)) if key else None
    said = "default" if not key else "left out" if key in out else str(verdicts[key].kind)
    verdict = refused.get(key, said)
    time_ns = None if verdict == "wrong" else median(map(median, taken[key]))
    return Trial(dict(shape), time_ns, None if verdict == "wrong" else ratio, verdict)


def _keep(device: wgpu.GPUDevice, choices: Sequence[Choice]) -> None:
    """Store what was found for kernels, with what is stored of others, and use it on this device."""
    context = context_of(device)
    report = [asdict(choice) | {"changed": choice.changed} for choice in choices]
    keep_tuning(device_key(device), report, context.capabilities.facts)
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
    plain = replace(context_of(device).capabilities, tuning=None)
    used = load_tuning(device_key(device)) or {}
    wanted = None if kernels is None else set(kernels)
    ranges = [(k, *one) for k, own in used.items() if wanted is None or k in wanted for one in own]
    found: list[Check] = []
    for kernel, above, up_to, fields in ranges:
        if time.perf_counter() > until:
            break
        measured = next((n for _, _, n in _RANGES if above < n <= up_to), up_to)
        for n in [measured, *_towards_ends(above, up_to, measured, plain)]:
            progress(f"{kernel}, {n:,} items")
            default = shape_of(kernel, plain, n)[2]
            try:
                contest = Contest(kernel, device, plain, default, n, seed)
                added = contest.add([fields])
            except GridwiseError:
                continue
            if added:
                verdict = _again(Turns(device, seed), contest, added[0], rounds=15)
                interval = (verdict.ratio, verdict.low, verdict.high)
                found.append(Check(kernel, n, dict(default), dict(fields), *interval, str(verdict.kind)))
    return tuple(found)
