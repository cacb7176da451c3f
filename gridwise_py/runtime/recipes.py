"""Recipes: what a call found out, which later calls that differ only in their Arrays need not find out again.

A `Step` is a call of one primitive: the outputs that it makes, and the plan that is bound to its buffers. A `Recipe` is
a call of a one-shot function: steps on its Arrays, and on outputs of earlier steps. Neither holds an Array.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import wgpu

from ..backend.device_state import DeviceState, state_of
from ..backend.fork_guard import check_process
from ..backend.mapped_memory import MAP_USAGE
from ..planning.layout import Layout
from ..planning.plan import Plan
from ..planning.signature import Signature
from ..types.datatype import Datatype
from ..types.operator_base import Operator
from ..types.operators import TracedOp
from .arguments import OUTPUTS, KnownArguments, ParsedCall, counted
from .array import Array, kept_shape, new_array
from .context import DeviceContext
from .executor import BoundPlan, BufferRange, Executor, PlanInstance
from .memory import BlockSize, MemoryPool
from .run import launch

#: Recipes of one device.
MOST_RECIPES = 256
_MOST_STEPS = 16
_MOST_HOST_BYTES = 1 << 16
#: Equal options of one of these types are the same in every way.
PLAIN_TYPES = frozenset((bool, int, str, type, type(None)))


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


class Step:
    """What is the same in all calls with one key (`call_key`). It holds no array.

    Attributes
    ----------
    in_place : bool
        Whether an output shares items with another argument.
    makes_outputs : bool
        Whether each call makes an output.
    name : str
        The primitive's.
    """

    __slots__ = (
        "_instance", "_is_plain", "_key", "_made", "_mappable", "_names", "_places", "_replaced", "_signature",
        "_values", "in_place", "layout", "makes_outputs", "name", "plan",
    )  # fmt: skip

    def __init__(self, signature: Signature, parsed: ParsedCall, plan: Plan, memory: MemoryPool):
        self._signature = signature
        self.name: str = signature.primitive
        self._names = tuple(parsed.arrays)
        self._values = parsed.values
        sources = {name: name if name in parsed.given else signature.arguments[name].replaces for name in parsed.arrays}
        self._replaced = tuple((name, source) for name, source in sources.items() if source not in (None, name))
        names = {spec.name for spec in plan.buffers if spec.role == "argument"}
        owners = {array.lease.number: name for name, array in parsed.arrays.items() if isinstance(array, Array)}
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
        #: Arrays that a caller may have mapped; no other buffer can be mapped again, once it is not.
        self._mappable: tuple[str, ...] = tuple(
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
    ) -> Step | None:
        """Return what a call was found to be; None if its key does not say it all, or it has more than Arrays."""
        if not parsed.values.keys() <= arrays.keys():  # the others are those of the call before
            return None
        if any(type(array) is not Array for array in parsed.arrays.values()):
            return None
        for name, array in parsed.given.items():
            # It is an output that was cut to the length of the result.
            if arrays.get(name) is not array or parsed.arrays[name] is not array:
                return None
        return Step(signature, parsed, plan, memory)

    def again(
        self, key: tuple[Any, ...], arrays: Mapping[str, Any], context: DeviceContext, device: wgpu.GPUDevice
    ) -> tuple[ParsedCall | KnownArguments, BoundPlan] | None:
        """Return the arguments of a call with new outputs, as `parse` would, and the plan on them.

        None where an array cannot be used: its buffer was destroyed, or is mapped.
        """
        for array in arrays.values():
            if type(array) is Array and array.lease.destroyed[0]:
                return None
        for name in self._mappable:
            if arrays[name].lease.buffer.map_state != "unmapped":
                return None
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
                numbers[i] = lease.number
        instance = None if self._instance is None else self._instance()
        binding = None if instance is None else instance.bindings.get(tuple(numbers))
        if instance is None or binding is None:
            bound = self._bind_anew(self._all(arrays, made)[1], context.executor)
        else:  # what is found stays good if another thread drops it from the cache: no lock
            bound = binding.bound
            instance.last_use = binding.last_use = next(instance.uses)
        if self._is_plain:
            # Values are told by their words alone: a caller may change an object that gave them.
            given = arrays if not self._values else {name: arrays[name] for name in arrays if name not in self._values}
            return (key, given, made), bound
        given, used = self._all(arrays, made)
        outputs = {name: counted(self._signature, name, used) for name in self._signature.outputs}
        return ParsedCall(key, given, outputs, used, self._values, self.layout, {}, self.in_place), bound

    def run(
        self,
        key: tuple[Any, ...],
        arrays: Mapping[str, Any],
        context: DeviceContext,
        device: wgpu.GPUDevice,
        *,
        blocking: bool,
    ) -> dict[str, Any] | None:
        """Run a call with new outputs, and return all outputs; None where an array cannot be used."""
        check_process()
        again = self.again(key, arrays, context, device)
        if again is None:
            return None
        arguments, bound = again
        if not bound.ran:
            bound.begins()
        launch(device, bound, 1, self.name, blocking=blocking)
        return arguments[OUTPUTS]

    def parsed(self, key: tuple[Any, ...], arrays: Mapping[str, Any], outputs: dict[str, Any]) -> ParsedCall:
        """Return all about a call whose outputs are those that it made."""
        given, used = self._all(arrays, outputs)
        return ParsedCall(key, given, outputs, used, self._values, self.layout, {}, self.in_place)

    def _all(self, arrays: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arrays that were given, and those that kernels see."""
        given = {name: array for name, array in arrays.items() if type(array) is Array}
        used = {**given, **{name: given[source] for name, source in self._replaced}, **made}
        return given, {name: used[name] for name in self._names}

    def _bind_anew(self, used: Mapping[str, Any], executor: Executor) -> BoundPlan:
        places = self._places
        ranges = {p.buffer: BufferRange(used[p.argument].lease.buffer, p.offset_bytes, p.size_bytes) for p in places}
        bound = executor.bind(self.plan, ranges)
        self._instance = executor.instance_of(self.plan)
        return bound


#: An Array among the values of a call, which are its arguments, and behind them the outputs of each step; and the shape
#: in which it is seen, or None for its own.
_Taken: TypeAlias = tuple[int, tuple[int, ...] | None]


class _Stage(NamedTuple):
    """A primitive of a recipe, and what it runs on. It is kept elsewhere, with its steps, and may go."""

    primitive: weakref.ref[Any]
    inputs: tuple[tuple[str, int, tuple[int, ...] | None], ...]
    numbers: Mapping[str, Any]  # what it is given beside Arrays
    done_with: tuple[int, ...]  # the outputs of earlier stages that nobody takes after it


class Recipe(NamedTuple):
    """What calls of a one-shot function with one key do. What it has of the host came of the options."""

    stages: tuple[_Stage, ...]
    results: tuple[_Taken | np.ndarray, ...]
    several: Callable[[list[Any]], Any] | None  # makes one object of several results

    def run(self, values: list[Any], builders: Mapping[int, Any]) -> Any:
        """Return what the function returns for its Arrays; None where a primitive is gone.

        `builders` are those of the device.
        """
        for primitive, inputs, numbers, done_with in self.stages:
            one = primitive()
            if one is None:
                return None
            given: dict[str, Any] = dict(numbers)
            key: list[Any] = []
            for name, index, shape in inputs:
                given[name] = array = values[index] if shape is None else values[index].viewed_as(shape)
                key += (name, array.place)
            outputs = None if numbers or builders else one.repeat(tuple(key), given)
            values += (one.run_once(**given) if outputs is None else outputs).values()
            for index in done_with:
                values[index] = None
        results: list[Any] = []
        for part in self.results:
            if isinstance(part, np.ndarray):
                results.append(part.copy())
            else:
                index, shape = part
                results.append(values[index] if shape is None else values[index].viewed_as(shape))
        return results[0] if self.several is None else self.several(results)


class RecipeBuilder:
    """Writes the recipe of one call of a function, in the thread that makes it.

    Nothing is known of a call that did more than run primitives: that read or wrote items from the host, or wrote into
    an Array of the caller's.

    Parameters
    ----------
    values : sequence of Array
        The call's, all of different items.
    context : DeviceContext
    """

    def __init__(self, values: Sequence[Array], context: DeviceContext):
        self._state: DeviceState = state_of(context.device)
        self._uses = self._state.uses
        self._given = len(values)
        self._count = 0
        self._stages: list[tuple[Any, tuple[tuple[str, int, Any], ...], dict[str, Any]]] = []
        #: By what shows the same items; no Array, so that memory goes when the function lets it go.
        self._places: dict[tuple[Any, ...], tuple[int, Any]] = {}
        self._is_complete = True
        self._add(values)

    def _add(self, values: Sequence[Any]) -> None:
        for index, value in enumerate(values, self._count):
            if type(value) is Array:
                self._places[value.place[:5]] = index, value.place[5]
        self._count += len(values)

    def _taken(self, value: Any) -> _Taken | None:
        found = self._places.get(value.place[:5]) if type(value) is Array else None
        if found is None:
            return None
        if found[1] == value.place[5]:
            return found[0], None
        return None if value.count is not None else (found[0], value.shape)

    def add(self, primitive: Any, uses: int, given: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Take a primitive that ran, the uses of the queue before, and all that it was given and gave."""
        given = {name: value for name, value in given.items() if value is not None}  # None: an output is made
        numbers = {name: value for name, value in given.items() if option_key(value) is not None}
        inputs = [(name, self._taken(value)) for name, value in given.items() if name not in numbers]
        taken = tuple((name, *found) for name, found in inputs if found and name not in primitive.signature.outputs)
        # What else the call did, such as a transfer, used the queue.
        self._is_complete &= uses == self._uses and len(taken) == len(inputs) and len(self._stages) < _MOST_STEPS
        if not self._is_complete:  # nor will it be: also of a builder that an interrupt has left to the thread
            self._stages.clear()
            self._places.clear()
            return
        self._stages.append((primitive, taken, numbers))
        self._add(tuple(outputs.values()))
        self._uses = self._state.uses

    def recipe(self, result: Any) -> Recipe | None:
        """Return the recipe of a call; None if it did more, or the result is something else."""
        results: list[Any] = [
            part.copy() if type(part) is np.ndarray and part.nbytes <= _MOST_HOST_BYTES else self._taken(part)
            for part in (cast(tuple[Any, ...], result) if isinstance(result, tuple) else (result,))
        ]
        if not (self._is_complete and self._stages) or self._uses != self._state.uses:
            return None
        if any(part is None for part in results):
            return None
        stages: list[_Stage] = []
        later: set[int] = {part[0] for part in results if type(part) is not np.ndarray}
        for primitive, taken, numbers in reversed(self._stages):
            own = {index for _, index, _ in taken} - later
            later |= own
            done_with = tuple(index for index in own if index >= self._given)
            stages.insert(0, _Stage(weakref.ref(primitive), taken, numbers, done_with))
        several = None if not isinstance(result, tuple) else getattr(cast(Any, result), "_make", tuple)
        return Recipe(tuple(stages), tuple(results), several)


def build_recipe(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any],
    key: tuple[Any, ...], values: Sequence[Array], context: DeviceContext,
) -> Any:  # fmt: skip
    """Call a function, and keep the recipe of the call for the device."""
    if context.observer is not None or context.recorders:
        return function(*args, **kwargs)
    thread, builders = threading.get_ident(), context.builders
    outer = builders.get(thread)  # gets what this call runs when that is known
    try:
        builders[thread] = own = RecipeBuilder(values, context)
        result = function(*args, **kwargs)
    finally:
        if outer is None:
            builders.pop(thread, None)
        else:
            builders[thread] = outer
    recipe = own.recipe(result)
    if recipe is not None:
        with context.lock:
            context.recipes[key] = recipe
            if len(context.recipes) > MOST_RECIPES:
                context.recipes.pop(next(iter(context.recipes)))
    return result


def option_key(option: Any) -> tuple[Any, ...] | None:
    """Return a key that is equal for options that are the same in every way; None for what may change."""
    kind = cast(Any, type(option))
    if kind is TracedOp:  # what its function reads may change
        return None
    if kind in PLAIN_TYPES or isinstance(option, (Datatype, Operator, np.dtype)):
        return kind, option
    if kind is float:
        return kind, option.hex()  # 0 and -0 are equal
    if isinstance(option, (np.number, np.bool_)):
        return kind, option.tobytes()
    if kind is tuple:
        parts = [option_key(part) for part in option]
        return None if None in parts else (kind, *parts)
    return None
