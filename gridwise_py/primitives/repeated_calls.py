"""Calls of one-shot functions that resemble earlier ones: what these found out is not found out again.

A function asks many questions about its arguments before a kernel runs: what they are, which primitive works on them,
what shape the result has. The answers depend on the function, its options, and the shapes and datatypes of its Arrays.
So a first call is watched: which primitives it ran on which of its arguments, or on what these gave, and which of it
became the result. A later one that differs in nothing but the Arrays runs them at once; each checks its arrays as ever.

Nothing is known of a call that did more: that read or wrote items from the host, wrote into an Array of the caller's
(``out=``), took an expression or an array of numpy, or was recorded or profiled.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from ..backend.device_state import DeviceState, state_of
from ..call_errors import explained
from ..runtime.array import Array
from ..runtime.context import DeviceContext
from ..types.datatype import Datatype
from ..types.operator_base import Operator
from ..types.operators import TracedOp

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_MOST_CALLS = 256
_MOST_STEPS = 16
_MOST_HOST_BYTES = 1 << 16
#: Equal ones of one type are the same in every way.
_PLAIN = frozenset((bool, int, str, type, type(None)))
_kind: Callable[[object], Any] = type  # of which a type checker knows nothing
#: An Array among the values of a call, which are its arguments, and behind them the outputs of each step; and the shape
#: in which it is seen, or None for its own.
_Taken: TypeAlias = tuple[int, tuple[int, ...] | None]


class _Step(NamedTuple):
    """A primitive, and what it runs on. It is kept elsewhere, with its pipelines, and may go."""

    primitive: weakref.ref[Any]
    inputs: tuple[tuple[str, int, tuple[int, ...] | None], ...]
    numbers: Mapping[str, Any]  # what it is given beside Arrays
    done_with: tuple[int, ...]  # the outputs of earlier steps that nobody takes after it


class _Known(NamedTuple):
    """What calls with one key do. It holds no Array; what it has of the host came of the options."""

    steps: tuple[_Step, ...]
    results: tuple[_Taken | np.ndarray, ...]
    several: Callable[[list[Any]], Any] | None  # makes one object of several results


class _Watch:
    """Watches a call: what it does on a device, apart from looking at its arguments."""

    def __init__(self, values: list[Any], state: DeviceState):
        self._state, self._uses = state, state.uses
        self._count = self._given = len(values)
        self._steps: list[tuple[Any, tuple[tuple[str, int, Any], ...], dict[str, Any]]] = []
        #: By what shows the same items; no Array, so that memory goes when the function lets it go.
        self._places: dict[tuple[Any, ...], tuple[int, Any]] = {}
        self._add(0, values)
        # Of one that is there twice, it would not be clear which one is taken.
        self._is_known = len(self._places) == sum(type(value) is Array for value in values)

    def _add(self, first: int, values: Iterable[Any]) -> None:
        for index, value in enumerate(values, first):
            if type(value) is Array:
                place = value.place()
                self._places[place[:5]] = index, place[5]

    def _taken(self, value: Any) -> _Taken | None:
        place = value.place() if type(value) is Array else None
        if place is None or place[:5] not in self._places:
            return None
        index, shape = self._places[place[:5]]
        if shape == place[5]:
            return index, None
        return None if value.count is not None else (index, value.shape)

    def ran(self, primitive: Any, uses: int, given: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Take note of a primitive that ran, of the uses of the queue before, and of all that it was given."""
        numbers = {name: value for name, value in given.items() if _said(value) is not None}
        inputs = [(name, self._taken(value)) for name, value in given.items() if name not in numbers]
        taken = tuple((name, *found) for name, found in inputs if found and name not in primitive.signature.outputs)
        # What it was not seen to do, such as a transfer, used the queue.
        self._is_known &= uses == self._uses and len(taken) == len(inputs) and len(self._steps) < _MOST_STEPS
        if not self._is_known:  # nor will it be: also of a watch that an interrupt has left to the thread
            self._steps.clear()
            self._places.clear()
            return
        self._steps.append((primitive, taken, numbers))
        self._add(self._count, outputs.values())
        self._count += len(outputs)
        self._uses = self._state.uses

    def known(self, result: Any) -> _Known | None:
        """Return what a call was seen to do; None if that was not all, or the result is something else."""
        results: list[Any] = [
            part.copy() if type(part) is np.ndarray and part.nbytes <= _MOST_HOST_BYTES else self._taken(part)
            for part in (cast(tuple[Any, ...], result) if isinstance(result, tuple) else (result,))
        ]
        if not (self._is_known and self._steps) or self._uses != self._state.uses:
            return None
        if any(part is None for part in results):
            return None
        steps: list[_Step] = []
        later: set[int] = {part[0] for part in results if type(part) is not np.ndarray}
        for primitive, taken, numbers in reversed(self._steps):
            own = {index for _, index, _ in taken} - later
            later |= own
            done_with = tuple(index for index in own if index >= self._given)
            steps.insert(0, _Step(weakref.ref(primitive), taken, numbers, done_with))
        several = None if not isinstance(result, tuple) else getattr(cast(Any, result), "_make", tuple)
        return _Known(tuple(steps), tuple(results), several)


class _Watched(threading.local):
    watch: _Watch | None = None


#: What watches the calls of this thread, if anything does.
WATCHED = _Watched()


def _said(option: Any) -> tuple[Any, ...] | None:
    """Return what is equal for options that are the same in every way; None for what may change."""
    kind = _kind(option)
    if kind is TracedOp:  # what its function reads may change
        return None
    if kind in _PLAIN or isinstance(option, (Datatype, Operator, np.dtype)):
        return kind, option
    if kind is float:
        return kind, option.hex()  # 0 and -0 are equal
    if isinstance(option, (np.number, np.bool_)):
        return kind, option.tobytes()
    if kind is tuple:
        parts = [_said(part) for part in option]
        return None if None in parts else (kind, *parts)
    return None


def one_shot(remedies: Mapping[str, str] | None = None) -> Callable[[FunctionT], FunctionT]:
    """Make a one-shot function repeat what an earlier call found out; and answer wrong arguments, as `explained`.

    Parameters
    ----------
    remedies : mapping from str to str, optional
        As for `explained`.
    """

    def decorate(function: FunctionT) -> FunctionT:
        anew = explained(remedies)(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            values: list[Any] = [*args, *kwargs.values()]
            key: list[Any] = [function, *kwargs]
            device = None
            for value in values:
                kind = _kind(value)
                if kind is Array:
                    if device is None:
                        device = value.device
                    elif device is not value.device:
                        break
                    said = value.place()[2:]  # all but where its items are
                else:
                    said = (kind, value) if kind in _PLAIN else _said(value)
                    if said is None:
                        break
                key.append(said)
            else:
                context = None if device is None else state_of(device).context
                if context is not None:
                    name = tuple(key)
                    known = context.repeated_calls.get(name)
                    result = None if known is None else _again(known, values)
                    return _watched(anew, args, kwargs, name, context) if result is None else result
            return anew(*args, **kwargs)

        return cast(FunctionT, call)

    return decorate


def _again(known: _Known, values: list[Any]) -> Any:
    """Return what a function returns for its arguments, which are `values`; None where a primitive is gone."""
    for one, inputs, numbers, done_with in known.steps:
        primitive = one()
        if primitive is None:
            return None
        given = dict(numbers)
        for name, index, shape in inputs:
            given[name] = values[index] if shape is None else values[index].viewed_as(shape)
        values += primitive.run_once(**given).values()
        for index in done_with:
            values[index] = None
    results = [
        part.copy() if isinstance(part, np.ndarray) else values[part[0]] if part[1] is None
        else values[part[0]].viewed_as(part[1])
        for part in known.results
    ]  # fmt: skip
    return results[0] if known.several is None else known.several(results)


def _watched(function: Callable[..., Any], args: Any, kwargs: Any, key: Any, context: DeviceContext) -> Any:
    """Call a function, and keep what it was seen to do."""
    if context.observer is not None or context.recorders:
        return function(*args, **kwargs)
    outer = WATCHED.watch  # sees what it calls when that is known
    own = _Watch([*args, *kwargs.values()], state_of(context.device))
    try:
        WATCHED.watch = own
        result = function(*args, **kwargs)
    finally:
        WATCHED.watch = outer
    known = own.known(result)
    if known is not None:
        with context.lock:
            context.repeated_calls[key] = known
            if len(context.repeated_calls) > _MOST_CALLS:
                context.repeated_calls.pop(next(iter(context.repeated_calls)))
    return result
