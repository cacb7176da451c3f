"""Calls whose arguments were checked before: with the same inputs, only the outputs are made again.

A `KnownCall` remembers what `parse` and the planning found out about a call, but none of its arrays. A call with the
same key gets new outputs from the device's memory pool. Their blocks are those of earlier outputs where the caller
keeps none, so the executor finds the plan bound to them.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

import wgpu

from ..backend.mapped_memory import MAP_USAGE
from ..planning.layout import Layout
from ..planning.plan import Plan
from ..planning.signature import Signature
from ..types.datatype import Datatype
from .arguments import KnownArguments, ParsedCall, counted
from .array import Array, kept_shape, new_array
from .context import DeviceContext
from .executor import BoundPlan, BufferRange, Executor, PlanInstance
from .memory import BlockSize, MemoryPool


class _Made(NamedTuple):
    """An output that each call makes."""

    name: str
    length: int
    datatype: Datatype
    label: str
    size: BlockSize
    shape: tuple[int, ...] | None
    places: tuple[int, ...]  # of the number of its buffer in the key of the binding


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
    makes_outputs : bool
        Whether each call makes an output.
    mappable : tuple of str
        Those of the given arrays that a caller may have mapped; no other buffer can be mapped again, once it is not.
    name : str
        The primitive's.
    """

    __slots__ = (
        "_instance", "_is_plain", "_key", "_made", "_names", "_places", "_replaced", "_signature", "_values",
        "in_place", "layout", "makes_outputs", "mappable", "name", "plan",
    )  # fmt: skip

    def __init__(self, signature: Signature, parsed: ParsedCall, plan: Plan, memory: MemoryPool):
        self._signature = signature
        self.name: str = signature.primitive
        self._names = tuple(parsed.arrays)
        self._values = parsed.values
        sources = {name: name if name in parsed.given else signature.arguments[name].replaces for name in parsed.arrays}
        self._replaced = tuple((name, source) for name, source in sources.items() if source not in (None, name))
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
        self._made = tuple(
            _Made(
                name,
                array.size,
                array.datatype,
                array.lease.label,
                memory.size_for(array.lease.buffer.size),
                kept_shape(array.shape),
                tuple(3 * i for i, place in enumerate(self._places) if place.argument == name),
            )
            for name, array in parsed.arrays.items()
            if isinstance(array, Array) and sources[name] is None
        )
        #: Whether the outputs are those that each call makes, and callers get them as they are.
        self._is_plain = [made.name for made in self._made] == list(signature.outputs) and all(
            output is parsed.arrays[name] for name, output in parsed.outputs.items()
        )
        self.mappable: tuple[str, ...] = tuple(
            name
            for name, array in parsed.given.items()
            if isinstance(array, Array) and array.lease.buffer.usage & MAP_USAGE
        )
        self._instance: weakref.ref[PlanInstance] | None = None
        self.makes_outputs: bool = bool(self._made)
        self.layout: Layout = parsed.layout
        self.plan: Plan = plan
        self.in_place: bool = parsed.in_place

    @staticmethod
    def of(
        signature: Signature, arrays: Mapping[str, Any], parsed: ParsedCall, plan: Plan, memory: MemoryPool
    ) -> KnownCall | None:
        """Return what a call was found to be; None if its key does not say it all, or it has more than Arrays."""
        if not parsed.values.keys() <= arrays.keys():  # the others are those of the call before
            return None
        if any(type(array) is not Array for array in parsed.arrays.values()):
            return None
        for name, array in parsed.given.items():
            # It is an output that was cut to the length of the result.
            if arrays.get(name) is not array or parsed.arrays[name] is not array:
                return None
        return KnownCall(signature, parsed, plan, memory)

    def applies(self, arrays: Mapping[str, Any]) -> bool:
        """Whether the arrays of a call with the same key can be used: they are there, and not mapped."""
        for array in arrays.values():
            if type(array) is Array and array.lease.destroyed[0]:
                return False
        for name in self.mappable:  # noqa: SIM110 - half the time of all(), in each call
            if arrays[name].lease.buffer.map_state != "unmapped":
                return False
        return True

    def again(
        self, key: tuple[Any, ...], arrays: Mapping[str, Any], context: DeviceContext, device: wgpu.GPUDevice
    ) -> tuple[ParsedCall | KnownArguments, BoundPlan]:
        """Return the arguments of a call with new outputs, as `parse` would, and the plan on them."""
        observer, numbers = context.observer, self._key.copy()
        made: dict[str, Any] = {}
        for name, length, datatype, label, size, shape, places in self._made:
            lease = size.reuse(label) if observer is None else None
            if lease is None:
                made[name] = array = new_array(context, length, datatype, label, size=size, shape=shape)
                lease = array.lease
            else:
                made[name] = Array.on(lease, datatype, length, device, 0, None, shape)
            for i in places:
                numbers[i] = lease.buffer.uid
        instance = None if self._instance is None else self._instance()
        bound = None if instance is None else instance.find(tuple(numbers))
        if bound is None:
            bound = self._bound_anew(self._all(arrays, made)[1], context.executor)
        if self._is_plain:
            # Values are told by their words alone: a caller may change an object that gave them.
            given = arrays if not self._values else {name: arrays[name] for name in arrays if name not in self._values}
            return (key, given, made), bound
        given, used = self._all(arrays, made)
        outputs = {name: counted(self._signature, name, used) for name in self._signature.outputs}
        return ParsedCall(key, given, outputs, used, self._values, self.layout, {}, self.in_place), bound

    def parsed(self, key: tuple[Any, ...], arrays: Mapping[str, Any], outputs: dict[str, Any]) -> ParsedCall:
        """Return all about a call whose outputs are those that it made."""
        given, used = self._all(arrays, outputs)
        return ParsedCall(key, given, outputs, used, self._values, self.layout, {}, self.in_place)

    def _all(self, arrays: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arrays that were given, and those that kernels see."""
        given = {name: array for name, array in arrays.items() if type(array) is Array}
        used = {**given, **{name: given[source] for name, source in self._replaced}, **made}
        return given, {name: used[name] for name in self._names}

    def _bound_anew(self, used: Mapping[str, Any], executor: Executor) -> BoundPlan:
        places = self._places
        ranges = {p.buffer: BufferRange(used[p.argument].lease.buffer, p.offset_bytes, p.size_bytes) for p in places}
        bound = executor.bind(self.plan, ranges)
        self._instance = executor.instance_of(self.plan)
        return bound
