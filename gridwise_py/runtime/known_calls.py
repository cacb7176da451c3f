"""Calls whose arguments were checked before: with the same inputs, only the outputs are made again.

A `KnownCall` remembers what `parse` and the planning found out about a call, but none of its arrays. A call with the
same key gets new outputs from the device's memory pool. Their blocks are those of earlier outputs where the caller
keeps none, so the executor finds the plan bound to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..planning.layout import Layout
from ..planning.plan import Plan
from ..planning.signature import Signature, UpTo
from ..types.datatype import Datatype
from .arguments import ParsedCall, counted
from .array import Array, kept_shape, new_array
from .chunked_array import Items
from .context import DeviceContext
from .executor import BoundPlan, BufferRange
from .memory import BlockSize, MemoryPool

__all__ = ["KnownCall"]


class _Made(NamedTuple):
    """An output that each call makes."""

    name: str
    length: int
    datatype: Datatype
    label: str
    size: BlockSize
    shape: tuple[int, ...] | None


class _Place(NamedTuple):
    """A buffer of the plan: which argument's it is, and which part of it."""

    buffer: str
    argument: str
    offset_bytes: int
    size_bytes: int


class KnownCall:
    """What is the same in all calls with one key (`call_key`). It holds no array.

    Attributes
    ----------
    in_place : bool
        Whether an output shares items with another argument.
    """

    __slots__ = (
        "_has_counts", "_in_order", "_left_out", "_made", "_places", "_replaced", "_signature", "in_place", "layout",
        "plan",
    )  # fmt: skip

    def __init__(
        self, signature: Signature, arrays: Mapping[str, Any], parsed: ParsedCall, plan: Plan, memory: MemoryPool
    ):
        self._signature = signature
        self._left_out = frozenset(signature.arguments) - arrays.keys()
        sources = {name: name if name in parsed.given else signature.arguments[name].replaces for name in parsed.arrays}
        self._replaced = tuple((name, source) for name, source in sources.items() if source not in (None, name))
        self._made = tuple(
            _Made(
                name,
                array.size,
                array.datatype,
                array.lease.label,
                memory.size_for(array.lease.buffer.size),
                kept_shape(array.shape),
            )
            for name, array in parsed.arrays.items()
            if isinstance(array, Array) and sources[name] is None
        )
        made = [*(name for name in arrays if name in parsed.given), *(m.name for m in self._made)]
        self._in_order = made == list(signature.arguments)
        self._has_counts = any(isinstance(signature.arguments[name].length, UpTo) for name in signature.outputs)
        names = {spec.name for spec in plan.buffers if spec.role == "argument"}
        owners = {array.lease.buffer.uid: name for name, array in parsed.arrays.items() if isinstance(array, Array)}
        self._places = tuple(
            _Place(name, owners[part.buffer.uid], part.offset_bytes, part.size_bytes)
            for name, part in sorted(parsed.ranges.items())
            if name in names
        )
        self.layout: Layout = parsed.layout
        self.plan: Plan = plan
        self.in_place: bool = parsed.in_place

    @staticmethod
    def of(
        signature: Signature, arrays: Mapping[str, Any], parsed: ParsedCall, plan: Plan, memory: MemoryPool
    ) -> KnownCall | None:
        """Return what a call was found to be; None if its key does not say it all, or it has more than Arrays."""
        if signature.values or any(type(array) is not Array for array in parsed.arrays.values()):
            return None
        for name, array in parsed.given.items():
            # It comes from the call before, or is an output that was cut to the length of the result.
            if arrays.get(name) is not array or parsed.arrays[name] is not array:
                return None
        return KnownCall(signature, arrays, parsed, plan, memory)

    def applies(self, arrays: Mapping[str, Any], last: ParsedCall | None) -> bool:
        """Whether a call with the same key is the same call, and its arrays can be used.

        What is left out was made then, but comes from the last call if that was given it.
        """
        if last is not None and not self._left_out.isdisjoint(last.given):
            return False
        for array in arrays.values():
            if array is not None and (array.lease.destroyed[0] or array.lease.buffer.map_state != "unmapped"):
                return False
        return True

    def parsed(self, key: tuple[Any, ...], arrays: Mapping[str, Any], context: DeviceContext) -> ParsedCall:
        """Return the call with new outputs, as `parse` would."""
        signature = self._signature
        given: dict[str, Items] = {name: array for name, array in arrays.items() if array is not None}
        used: dict[str, Items] = {**given, **{name: given[source] for name, source in self._replaced}}
        for name, length, datatype, label, size, shape in self._made:
            used[name] = new_array(context, length, datatype, label, size=size, shape=shape)
        if not self._in_order:
            used = {name: used[name] for name in signature.arguments}
        if self._has_counts:
            outputs = {name: counted(signature.arguments[name], used) for name in signature.outputs}
        else:
            outputs = {name: used[name] for name in signature.outputs}
        return ParsedCall(key, given, used, outputs, {}, self.layout, {}, self.in_place)

    def bound(self, used: Mapping[str, Any], context: DeviceContext) -> BoundPlan:
        """Return the plan on these arrays."""
        places = self._places
        key = tuple([(name, used[argument].lease.buffer.uid, offset, size) for name, argument, offset, size in places])
        bound = context.executor.find(self.plan, key)
        if bound is not None:
            return bound
        ranges = {p.buffer: BufferRange(used[p.argument].lease.buffer, p.offset_bytes, p.size_bytes) for p in places}
        return context.executor.bind(self.plan, ranges)
