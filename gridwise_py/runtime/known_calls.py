"""Calls whose arguments were checked before: with the same inputs, only the outputs are made again.

A `KnownCall` remembers what `parse` and the planning found out about a call, but none of its arrays. A call with the
same key gets new outputs from the device's memory pool. Their blocks are those of earlier outputs where the caller
keeps none, so the executor finds the plan bound to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import wgpu

from ..planning.layout import Layout
from ..planning.plan import Plan
from ..planning.signature import Signature, UpTo
from ..types.datatype import Datatype
from .arguments import ParsedCall, counted
from .array import Array, kept_shape, new_array
from .chunked_array import Items
from .context import DeviceContext
from .executor import BoundPlan, BufferRange, Executor
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
        "_is_plain", "_key", "_made", "_names", "_numbers", "_places", "_replaced", "_signature", "in_place",
        "layout", "plan",
    )  # fmt: skip

    def __init__(
        self, signature: Signature, arrays: Mapping[str, Any], parsed: ParsedCall, plan: Plan, memory: MemoryPool
    ):
        self._signature = signature
        self._names = tuple(parsed.arrays)
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
        #: Whether the arguments are those given and then those made, and all of these are outputs as callers get them.
        self._is_plain = (
            [*arrays, *(made.name for made in self._made)] == list(parsed.arrays)
            and tuple(made.name for made in self._made) == tuple(signature.outputs)
            and not any(isinstance(signature.arguments[name].length, UpTo) for name in signature.outputs)
        )
        names = {spec.name for spec in plan.buffers if spec.role == "argument"}
        owners = {array.lease.buffer.uid: name for name, array in parsed.arrays.items() if isinstance(array, Array)}
        self._places = tuple(
            _Place(name, owners[part.buffer.uid], part.offset_bytes, part.size_bytes)
            for name, part in sorted(parsed.ranges.items())
            if name in names
        )
        # The key of the binding: only the numbers of buffers that each call makes differ between calls.
        self._key = [
            number
            for place in self._places
            for number in (parsed.ranges[place.buffer].buffer.uid, place.offset_bytes, place.size_bytes)
        ]
        made_names = {made.name for made in self._made}
        self._numbers = tuple(
            (3 * i, place.argument) for i, place in enumerate(self._places) if place.argument in made_names
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
            # It is an output that was cut to the length of the result.
            if arrays.get(name) is not array or parsed.arrays[name] is not array:
                return None
        return KnownCall(signature, arrays, parsed, plan, memory)

    def applies(self, arrays: Mapping[str, Any]) -> bool:
        """Whether the arrays of a call with the same key can be used."""
        for array in arrays.values():
            if array is not None and (array.lease.destroyed[0] or array.lease.buffer.map_state != "unmapped"):
                return False
        return True

    def parsed(
        self, key: tuple[Any, ...], arrays: Mapping[str, Any], context: DeviceContext, device: wgpu.GPUDevice
    ) -> ParsedCall:
        """Return the call with new outputs, as `parse` would."""
        observer = context.observer
        made: dict[str, Items] = {}
        for name, length, datatype, label, size, shape in self._made:
            lease = size.reuse(label) if observer is None else None
            if lease is None:
                made[name] = new_array(context, length, datatype, label, size=size, shape=shape)
            else:
                made[name] = Array.on(lease, datatype, length, device, 0, None, shape)
        if self._is_plain:
            return ParsedCall(key, cast(Any, arrays), {**arrays, **made}, made, {}, self.layout, {}, self.in_place)
        signature = self._signature
        given: dict[str, Items] = {name: array for name, array in arrays.items() if array is not None}
        replaced = {name: given[source] for name, source in self._replaced}
        used = {**given, **replaced, **made}
        used = {name: used[name] for name in self._names}
        outputs = {name: counted(signature, name, used) for name in signature.outputs}
        return ParsedCall(key, given, used, outputs, {}, self.layout, {}, self.in_place)

    def bound(self, used: Mapping[str, Any], executor: Executor) -> BoundPlan:
        """Return the plan on these arrays."""
        numbers = self._key.copy()
        for i, name in self._numbers:
            numbers[i] = used[name].lease.buffer.uid
        bound = executor.find(self.plan, tuple(numbers))
        if bound is not None:
            return bound
        places = self._places
        ranges = {p.buffer: BufferRange(used[p.argument].lease.buffer, p.offset_bytes, p.size_bytes) for p in places}
        return executor.bind(self.plan, ranges)
