"""The order in which the steps of several calls are encoded, so that independent ones run side by side on the GPU.

wgpu-core knows the state of each buffer as a whole. Before a dispatch it puts a barrier if the pass has used one of its
buffers before, and either use writes; the barrier then waits for everything before it, not only for that buffer. What a
pass uses for the first time costs one barrier for the whole pass, at its beginning. So steps are encoded by level: a
step's level is one above the highest of the steps that it must wait for. Steps of one level use nothing in common that
one of them writes. Where at least three of a level would wait one after the other, the level gets a pass of its own,
and waits once.

The rule is that of wgpu-core 29 (``compute_pass_end`` and ``flush_states`` in its compute.rs); barriers by Vulkan's
specification, 7.6: a pipeline barrier between two stages orders all commands before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepUse:
    """What a step uses.

    Attributes
    ----------
    reads, writes : frozenset of int
        Buffers by their numbers, whole ones: a view of a part counts as its buffer. What is written is not in `reads`.
    is_transfer : bool
        Whether it is a fill or a copy, which lie between passes.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    is_transfer: bool = False


class _States:
    """How buffers were used last: of each one that was used, whether it was written."""

    def __init__(self) -> None:
        self.of: dict[int, bool] = {}

    def waits(self, use: StepUse) -> bool:
        """Whether a barrier comes before a use."""
        return any(map(self.of.get, use.reads)) or not self.of.keys().isdisjoint(use.writes)

    def add(self, use: StepUse) -> None:
        self.of.update(dict.fromkeys(use.reads, False))
        self.of.update(dict.fromkeys(use.writes, True))


#: Another pass costs an H100 some 7 µs; a barrier 1.6, and the time of the kernels that it keeps apart. With two
#: dispatches to a level passes made two sorts of 2^16 slower by 14 %, with four they made scans faster by a quarter.
_WAITS_FOR_A_PASS = 3

#: A buffer that there is not: those that are alone write it, and all others read it.
_ALL = -1


def marked(use: StepUse, *, alone: bool) -> StepUse:
    """Return a use that waits for each one before that is `alone`, or, if it is, for all."""
    mark = frozenset((_ALL,))
    return StepUse(use.reads, use.writes | mark) if alone else StepUse(use.reads | mark, use.writes)


def _levels(uses: Iterable[StepUse]) -> list[int]:
    touched, written = dict[int, int](), dict[int, int]()  # the highest level that used, and that wrote a buffer
    found: list[int] = []
    for use in uses:
        after = [written.get(buffer, -1) for buffer in use.reads] + [touched.get(buffer, -1) for buffer in use.writes]
        level = max(after, default=-1) + 1
        found.append(level)
        touched.update({buffer: max(touched.get(buffer, -1), level) for buffer in use.reads})
        touched.update(dict.fromkeys(use.writes, level))
        written.update(dict.fromkeys(use.writes, level))
    return found


def in_levels(uses: Sequence[StepUse], alone: Iterable[bool]) -> list[int | None]:
    """Return the order in which steps are encoded: their indices, and None where another pass begins.

    Parameters
    ----------
    uses : sequence of StepUse
        Of the steps, in the order in which they were called.
    alone : iterable of bool
        Which steps keep the GPU busy by themselves. Nothing is moved past them.

    Returns
    -------
    list of int or None
    """
    levels = _levels(marked(use, alone=mark) for use, mark in zip(uses, alone, strict=True))
    order: list[int | None] = []
    open_pass: _States | None = None
    for _, group in itertools.groupby(sorted(range(len(uses)), key=levels.__getitem__), levels.__getitem__):
        steps = sorted(group, key=lambda i: not uses[i].is_transfer)
        dispatches = [uses[i] for i in steps if not uses[i].is_transfer]
        if len(dispatches) < len(steps):
            open_pass = None  # a fill or a copy ends it
        elif open_pass is not None and sum(map(open_pass.waits, dispatches)) >= _WAITS_FOR_A_PASS:
            order.append(None)
            open_pass = None
        order += steps
        open_pass = open_pass or _States()
        for use in dispatches:
            open_pass.add(use)
    return order


def barriers(uses: Sequence[StepUse], order: Iterable[int | None]) -> int:
    """Return how often the GPU waits for everything before: barriers within and between passes, and before transfers.

    Parameters
    ----------
    uses : sequence of StepUse
    order : iterable of int or None
        As `in_levels` returns it.
    """
    count = 0
    before, here = _States(), _States()  # before this pass or transfer, and in it
    first_waits = False
    for i in order:
        if i is None or uses[i].is_transfer:
            count += first_waits
            before.of |= here.of
            here, first_waits = _States(), False
        if i is None:
            continue
        use = uses[i]
        if use.is_transfer:
            count += before.waits(use)
            before.add(use)
            continue
        count += here.waits(use)
        # The first uses in a pass share one barrier before it.
        first = StepUse(use.reads - here.of.keys(), use.writes - here.of.keys())
        first_waits = first_waits or before.waits(first)
        here.add(use)
    return count + first_waits


def reaches(uses: Sequence[StepUse]) -> list[int]:
    """Return, for each of several uses, those before it that it waits for, directly or not, as the bits of a number."""
    found: list[int] = []
    #: Of each buffer what wrote it last, with all that this waits for; and what has read it since.
    written, read = dict[int, int](), dict[int, int]()
    for i, use in enumerate(uses):
        mine = 0
        for buffer in use.reads | use.writes:
            mine |= written.get(buffer, 0)
        for buffer in use.writes:
            mine |= read.get(buffer, 0)
        found.append(mine)
        for buffer in use.reads:
            read[buffer] = read.get(buffer, 0) | mine | 1 << i
        for buffer in use.writes:
            written[buffer], read[buffer] = mine | 1 << i, 0
    return found
