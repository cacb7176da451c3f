"""Windows: how kernels reach arguments that are larger than a binding may be, or that lie in several buffers.

Two ways. A kernel that goes through its arguments from the first item to the last is dispatched once per window: a
range of items that one binding of each argument reaches. What has to pass from window to window stays on the GPU. A
kernel that reads or writes anywhere gets several bindings of one buffer, its segments (`PlanBuilder.kernel`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import LimitError
from ..types.capabilities import Capabilities
from .layout import Layout, Operand
from .plan import Plan

# Kernels count items in 32 bits, and add a tile to them.
_MOST_ITEMS = 1 << 30


def binding_limit(capabilities: Capabilities) -> int:
    """Return the bytes of the largest storage binding, a multiple of 4."""
    return capabilities.limits["max-storage-buffer-binding-size"] // 4 * 4


def bindings_for(operands: Iterable[Operand], capabilities: Capabilities) -> int:
    """Return how many bindings a kernel needs to reach operands: what is larger than one takes several and one more."""
    limit = binding_limit(capabilities)
    parts = (part for operand in operands for part in operand.parts)
    return sum(1 if part.nbytes <= limit else 1 + -(-part.nbytes // limit) for part in parts)


def check_bindings(plan: Plan, capabilities: Capabilities) -> None:
    """Raise LimitError where a plan binds more than a device allows, as one that was made without windows may."""
    limit = binding_limit(capabilities)
    sizes = {spec.name: spec.size_bytes for spec in plan.buffers}
    for kernel in plan.kernels:
        for binding in kernel.bindings:
            size_bytes = binding.size_bytes if binding.size_bytes is not None else sizes[binding.buffer]
            if size_bytes > limit:
                raise LimitError(
                    f"{plan.primitive}: kernel {kernel.label!r} binds {size_bytes} bytes of {binding.buffer}, but the "
                    f"device's max-storage-buffer-binding-size is {limit} bytes; split the data into smaller parts"
                )


@dataclass(frozen=True)
class Window:
    """A range of items that one binding of each argument reaches.

    Attributes
    ----------
    index, count : int
        Its number, from 0, and how many there are.
    first : int
        Its first item.
    length : int
        Its items.
    piece_length : int
        Items of the piece that it is a part of: what lies in one array of each argument, whatever the bindings hold.
    operands : mapping from str to Operand
        The arguments, as a kernel for this window reaches them.
    """

    index: int
    count: int
    first: int
    length: int
    piece_length: int
    operands: Mapping[str, Operand]

    @classmethod
    def only(cls, length: int, operands: Mapping[str, Operand]) -> Window:
        """Return the one window of `length` items, with the operands as they are."""
        return cls(0, 1, 0, length, length, operands)

    def label(self, kernel: str) -> str:
        """Return what a person calls the kernel's dispatch for this window."""
        return kernel if self.count == 1 else f"{kernel} (window {self.index + 1} of {self.count})"


def windows_of(
    layout: Layout,
    names: Sequence[str],
    capabilities: Capabilities,
    multiple: int | Callable[[int], int],
) -> list[Window]:
    """Split arguments of one length into windows, the same ranges of items of each.

    Parameters
    ----------
    layout : Layout
    names : sequence of str
        The arguments.
    capabilities : Capabilities
        Whose largest binding bounds a window.
    multiple : int, or callable
        Windows begin at multiples of so many items of their piece; a callable is given the items of the piece.

    Returns
    -------
    list of Window
        One, with the operands as they are, where everything fits in one binding each.

    Raises
    ------
    LimitError
        If a binding does not hold `multiple` items.
    """
    operands = {name: layout[name] for name in names}
    streams = {
        f"{name}_{k}" if k else name: stream
        for name, operand in operands.items()
        for k, stream in enumerate(operand.streams)
    }
    if not streams:  # expressions of arrays that are read in any order, as a flip reads one
        length = next(iter(operands.values())).length
        return [Window.only(length, operands)] if length else []
    ranges: list[tuple[int, int, int]] = []
    for first, length in _pieces(list(streams.values())):
        step = _capacity(names, streams, first, length, capabilities, multiple)
        ranges += [(first + at, min(step, length - at), length) for at in range(0, length, step)]
    return [
        Window(
            index, len(ranges), first, length, piece,
            {name: _cut(operand, first, length, capabilities) for name, operand in operands.items()},
        )
        for index, (first, length, piece) in enumerate(ranges)
    ]  # fmt: skip


def window_of_all(primitive: str, length: int, operands: Mapping[str, Operand], capabilities: Capabilities) -> Window:
    """Return the one window of items of several numbers, which windows cannot split: layouts count their numbers.

    Raises
    ------
    LimitError
        If one binding does not reach an operand.
    """
    limit = binding_limit(capabilities)
    for name, operand in operands.items():
        if operand.chunks or operand.nbytes > limit:
            raise LimitError(
                f"{primitive}: {name} has {operand.nbytes} bytes, but items of several numbers must fit one binding "
                f"(max-storage-buffer-binding-size {limit} bytes); give their fields as arrays, or smaller parts"
            )
    return Window.only(length, operands)


def _cut(operand: Operand, first: int, length: int, capabilities: Capabilities) -> Operand:
    """Return items of an operand, as a kernel for a window reaches them."""
    return operand.window(first, length, lambda each, at, n: part_of(each, at, n, capabilities))


def _pieces(streams: Sequence[tuple[Operand, int]]) -> list[tuple[int, int]]:
    """Return first item and length of what lies in one array of each argument."""
    ends: set[int] = set()
    for operand, words in streams:
        end = 0
        for part in operand.parts:
            end += part.length * words
            ends.add(end)
    bounds = sorted(ends | {0})
    return [(first, end - first) for first, end in itertools.pairwise(bounds)]


def _capacity(
    names: Sequence[str],
    streams: Mapping[str, tuple[Operand, int]],
    first: int,
    length: int,
    capabilities: Capabilities,
    multiple: int | Callable[[int], int],
) -> int:
    """Return the items of a window of a piece; all of it, if it can be bound."""
    limit = binding_limit(capabilities)
    parts = [part_of(operand, first // w, length // w, capabilities) for operand, w in streams.values()]
    if length <= _MOST_ITEMS and all(part.size_bytes <= limit for part in parts):
        return length
    # A binding may have to begin before its first item, and end behind its last one, at a whole vec4.
    spare = capabilities.limits["min-storage-buffer-offset-alignment"] + 16
    most = min((limit - spare) // operand.item_bytes * words for operand, words in streams.values())
    step = multiple if isinstance(multiple, int) else multiple(length)
    largest = min(most, _MOST_ITEMS) // step
    if largest <= 0:
        raise LimitError(
            f"{' and '.join(names)} have {length} items, which one binding does not reach, and the device's "
            f"max-storage-buffer-binding-size is {limit} bytes: a window has {max(most, 0)} items, but must hold "
            f"{step}; use a device with larger bindings, or a smaller workgroup_size= or vecs="
        )
    # All alike: a last one of few blocks would leave most of the device idle, for as long as a block takes.
    steps = -(-length // step)
    count = -(-steps // largest)
    return -(-steps // count) * step


def _array_with(operand: Operand, first: int) -> tuple[Operand, int]:
    """Return the array that holds an item, and the item's place in it."""
    for part in operand.chunks:
        if first < part.length:
            return part, first
        first -= part.length
    return operand, first


def part_of(operand: Operand, first: int, length: int, capabilities: Capabilities) -> Operand:
    """Return items of an operand, which lie in one array, as an operand with the smallest binding that reaches them."""
    part, at = _array_with(operand, first)
    if at == 0 and length == part.length and part.size_bytes <= binding_limit(capabilities):
        return part
    alignment = capabilities.limits["min-storage-buffer-offset-alignment"]
    first_byte = part.begin_bytes + (part.offset + at) * part.item_bytes
    begin = first_byte // alignment * alignment
    end = first_byte + length * part.item_bytes
    offset = (first_byte - begin) // part.item_bytes
    # To a whole vec4, where the buffer goes that far.
    whole = -(-(end - begin) // 16) * 16
    size = min(whole, part.begin_bytes + part.size_bytes - begin)
    return replace(
        part, length=length, offset=offset, vec4=offset % 4 == 0 and size == whole, size_bytes=size, begin_bytes=begin
    )
