"""Finds the fastest kernel shapes for an adapter, and stores them: `gridwise tune`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
import wgpu

from ... import (
    Capabilities,
    Histogram,
    Merge,
    Partition,
    Primitive,
    Reduce,
    ReduceByKey,
    Scan,
    Search,
    SegmentedReduce,
    SegmentedScan,
    Select,
    TopK,
    Transpose,
    VectorAdd,
)
from ...errors import ArgumentError
from ...internals import (
    TUNING_FORMAT,
    TUNING_KIND,
    FlatNonzero,
    Shape,
    candidates_for,
    context_of,
    device_key,
    findings_of,
    shapes_for,
    tuning_of,
)
from ...storage import cache
from ..sampling.interleave import checker, interleaved, pair_in_turns, random_arguments, samples_ns
from ..sampling.measurement import Measurement
from ..sampling.protocol import SamplingProtocol
from ..stats.verdict import VerdictKind, judge_all

__all__ = ["TUNED_KERNELS", "Choice", "Trial", "axes_for", "make_for", "options_for", "tune"]

#: The primitives that kernels are measured with, of u32, and their options besides those of `Primitive.at_size`.
_SUBJECTS: Mapping[str, tuple[type[Primitive], Mapping[str, Any]]] = {
    "elementwise": (VectorAdd, {}),
    "reduce": (Reduce, {}),
    "scan": (Scan, {"strategy": "reduce_then_scan"}),
    "scan_lookback": (Scan, {"strategy": "lookback"}),
    "search": (Search, {}),
    "stream": (FlatNonzero, {"dtype": "bool", "strategy": "lookback"}),
    "stream_flags": (Select, {"strategy": "lookback"}),
    "stream_split": (Partition, {"strategy": "lookback"}),
    "by_key": (ReduceByKey, {"strategy": "lookback"}),
    "segmented": (SegmentedScan, {"strategy": "lookback"}),
    "segmented_reduce": (SegmentedReduce, {}),
    "segmented_reduce_tiny": (SegmentedReduce, {}),
    "segmented_reduce_medium": (SegmentedReduce, {}),
    "histogram": (Histogram, {}),
    "histogram_ranges": (Histogram, {"bins": 1 << 15}),
    "merge": (Merge, {"dtype": "f32"}),
    "merge_network": (Merge, {}),
    "top_k": (TopK, {}),
    "transpose": (Transpose, {}),
}

#: What differs from the usual case of their primitive.
_AXES: Mapping[str, Mapping[str, int]] = {
    "segmented_reduce_tiny": {"segment": 2},
    "segmented_reduce_medium": {"segment": 16},
}

#: The kernels that are tuned, by the names in tuning/shapes.py.
TUNED_KERNELS = tuple(_SUBJECTS)

# A row of the table with a high end is meant for few items.
_SMALL_ITEMS = 1 << 20
_LARGE_ITEMS = 1 << 26
_LARGE_ITEMS_CPU = 1 << 22
_THRESHOLD = 0.02
_PROTOCOL = SamplingProtocol(
    min_samples=20, block_trials=10, timeout_s=0.05, warmup_s=0.03, max_warmup_s=0.1, canary_passes=3, check_unit=False
)


@dataclass(frozen=True)
class Trial:
    """A measured candidate.

    Attributes
    ----------
    shape : Shape
    time_ns : float or None
        Median of all rounds; None if the result was wrong.
    ratio : float or None
        Its time divided by that of the table's shape; None for the table's shape and for wrong results.
    verdict : str
        ``"default"``, ``"faster"``, ``"slower"``, ``"same"``, ``"ambiguous"`` or ``"wrong"``.
    """

    shape: Shape
    time_ns: float | None
    ratio: float | None
    verdict: str


@dataclass(frozen=True)
class Choice:
    """The result for one row of the table.

    Attributes
    ----------
    kernel : str
    up_to : int or None
        Items that the winner is for: those of the row (None: any), or as many as were measured where `max_items` did
        not allow the size that stands for the row.
    n : int
        Items that were measured.
    winner : Shape
    trials : tuple of Trial
        The table's own shape first.
    """

    kernel: str
    up_to: int | None
    n: int
    winner: Shape
    trials: tuple[Trial, ...]

    @property
    def changed(self) -> bool:
        """Whether a shape other than the table's won."""
        return self.winner != self.trials[0].shape

    @property
    def ratio(self) -> float:
        """Time of the winner divided by that of the table's shape."""
        return next((t.ratio for t in self.trials if t.shape == self.winner and t.ratio is not None), 1.0)


def tune(
    device: wgpu.GPUDevice,
    kernels: Iterable[str] | None = None,
    *,
    rounds: int = 5,
    protocol: SamplingProtocol = _PROTOCOL,
    max_items: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> tuple[Choice, ...]:
    """Find the fastest shapes on a device and store them for its adapter and driver.

    Every candidate of `tuning.candidates_for` is checked against numpy and measured in turns with the table's shape. It
    replaces that shape only if `judge_all`, with the rounds as units, judges it faster by more than 2 %. Primitives
    that are made afterwards use the winners.

    Parameters
    ----------
    device : wgpu.GPUDevice
    kernels : iterable of str, optional
        Of `TUNED_KERNELS`; by default all. Stored results of other kernels stay.
    rounds : int, default 5
        Measurements of each candidate; fewer than three cannot tell a difference from chance.
    protocol : SamplingProtocol
        Of one measurement.
    max_items : int, optional
        By default 2^26, or 2^22 on a CPU adapter, which stand for all longer inputs; at most one binding. With fewer,
        winners are kept for so many items only: longer inputs keep the table's shapes.
    progress : callable
        Called with the name of the next step.

    Returns
    -------
    tuple of Choice
        One per row of the table that has lengths of at most `max_items`.
    """
    measured = context_of(device).capabilities
    plain = replace(measured, tuning=None)
    kernels = TUNED_KERNELS if kernels is None else list(kernels)
    unknown = set(kernels) - set(TUNED_KERNELS)
    if unknown:
        raise ArgumentError(f"kernels {sorted(unknown)} are unknown; known are {', '.join(TUNED_KERNELS)}")
    one_binding = max(measured.limits["max-storage-buffer-binding-size"] // 4, 1)
    large = min(_LARGE_ITEMS_CPU if measured.is_cpu else _LARGE_ITEMS, one_binding)
    most = large if max_items is None else max(1, min(max_items, one_binding))
    choices: list[Choice] = []
    rows: dict[str, list[tuple[int | None, Shape]]] = {}
    for kernel in kernels:
        rows[kernel] = []
        shorter = 0  # lengths of the rows before
        for up_to, shape in shapes_for(kernel, plain).rows:
            # The size that stands for all lengths of the row.
            stands = max(large, most) if up_to is None else min(up_to, _SMALL_ITEMS)
            n = min(stands, most)
            if n > shorter:
                choice = _choose(
                    device, plain, kernel, up_to if n == stands else n, shape, n, rounds, protocol, progress
                )
                choices.append(choice)
                rows[kernel].append((choice.up_to, choice.winner))
            if n <= shorter or n < stands:
                rows[kernel].append((up_to, shape))  # what was not measured keeps the table's shape
            shorter = up_to or 0
    changed = {kernel for kernel in rows if any(c.changed for c in choices if c.kernel == kernel)}
    _keep(device, choices, set(rows), {kernel: rows[kernel] for kernel in changed})
    return tuple(choices)


def make_for(kernel: str, device: wgpu.GPUDevice, plain: Capabilities, shape: Shape, n: int) -> Primitive:
    """Return the primitive to measure a kernel with at size n, in one shape for all lengths."""
    make = cast(Callable[..., Primitive], _SUBJECTS[kernel][0])
    return make(device, tuning=tuning_of(kernel, shape), capabilities=plain, **options_for(kernel, n))


def axes_for(kernel: str) -> Mapping[str, int]:
    """Return the axes of the case that a kernel is measured with, besides the usual ones."""
    return _AXES.get(kernel, {})


def options_for(kernel: str, n: int) -> dict[str, Any]:
    """Return the options of the primitive that a kernel is measured with at size n."""
    kind, options = _SUBJECTS[kernel]
    return {**kind.at_size(n)[0], **options}


def _choose(
    device: wgpu.GPUDevice, plain: Capabilities, kernel: str, up_to: int | None, default: Shape, n: int, rounds: int,
    protocol: SamplingProtocol, progress: Callable[[str], None],
) -> Choice:  # fmt: skip
    mode = plain.subgroup_mode(None)
    shapes = list(dict.fromkeys([default, *candidates_for(kernel, plain, mode)]))
    progress(f"{kernel}, {n:,} items: {len(shapes)} shapes")
    primitives = {_name(shape): make_for(kernel, device, plain, shape, n) for shape in shapes}
    first = primitives[_name(default)]
    inputs, arrays = random_arguments(first, n, protocol.seed, **axes_for(kernel))
    found = interleaved(primitives, arrays, rounds=rounds, protocol=protocol, check=checker(first, inputs))
    trials = _judge(shapes, [found[_name(shape)] for shape in shapes])
    faster = [t for t in trials if t.verdict == VerdictKind.FASTER and t.ratio is not None]
    winner = min(faster, key=lambda t: t.ratio or 1.0).shape if faster else default
    return Choice(kernel, up_to, n, winner, tuple(trials))


def _name(shape: Shape) -> str:
    return f"{shape.workgroup_size} x {shape.vecs}, {shape.max_blocks}"


def _judge(shapes: list[Shape], found: list[list[Measurement]]) -> list[Trial]:
    """Judge all shapes against the first."""
    good = [bool(rounds) and all(m.correct for m in rounds) for rounds in found]
    if not good[0]:
        wrong = [str(m.error or m.mismatches[0]) for m in found[0] if not m.correct]
        raise ArgumentError(f"the table's own shape {_name(shapes[0])} gives wrong results here: {'; '.join(wrong)}")
    blocks = [samples_ns(rounds) if ok else [] for rounds, ok in zip(found, good, strict=True)]
    rivals = [i for i in range(1, len(shapes)) if good[i]]
    pairs = [pair_in_turns(found[0], found[i]) for i in rivals]
    verdicts = dict(zip(rivals, judge_all(pairs, threshold=_THRESHOLD), strict=True))
    trials: list[Trial] = []
    for i, shape in enumerate(shapes):
        time_ns = float(np.median(np.concatenate(blocks[i]))) if good[i] else None
        verdict = verdicts.get(i)
        word = "default" if i == 0 else "wrong" if verdict is None else str(verdict.kind)
        trials.append(Trial(shape, time_ns, None if verdict is None else verdict.ratio, word))
    return trials


def _keep(
    device: wgpu.GPUDevice,
    choices: Sequence[Choice],
    searched: set[str],
    found: Mapping[str, Sequence[tuple[int | None, Shape]]],
) -> None:
    """Store the rows that were found with the stored ones of other kernels, and use them on this device."""
    key = device_key(device)
    before: dict[str, Any] = cache.load(TUNING_KIND, key, TUNING_FORMAT) or {}
    kept = before.get("shapes")
    by_kernel = cast(dict[str, Any], kept) if isinstance(kept, dict) else {}
    shapes: dict[str, Any] = {kernel: rows for kernel, rows in by_kernel.items() if kernel not in searched}
    for kernel, rows in sorted(found.items()):
        shapes[kernel] = [[up_to, tuning_of(kernel, shape).to_dict()] for up_to, shape in rows]
    reported = before.get("choices")
    entries = cast(list[object], reported) if isinstance(reported, list) else []
    earlier = [cast(dict[str, Any], entry) for entry in entries if isinstance(entry, dict)]
    report = [entry for entry in earlier if entry.get("kernel") not in searched]
    report += [asdict(choice) | {"changed": choice.changed, "ratio": choice.ratio} for choice in choices]
    cache.save(TUNING_KIND, key, TUNING_FORMAT, {"shapes": shapes, "choices": report})
    context_of(device).use_tuning(findings_of(shapes))
