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
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from ..backend.device_state import DeviceState, state_of
from ..call_errors import explained
from ..planning.signature import Signature
from ..runtime.array import Array
from ..runtime.context import DeviceContext
from ..types.datatype import Datatype
from ..types.operator_base import Operator

__all__ = ["one_shot", "watched_calls"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_MOST_CALLS = 256
#: Equal ones of one type are the same in every way.
_PLAIN = frozenset((bool, int, str, type, type(None)))


class _Primitive(Protocol):
    """What is asked of a primitive."""

    signature: Signature

    def run_once(self, **arrays: Any) -> dict[str, Any]: ...


class _Taken(NamedTuple):
    """An Array among the values of a call: its arguments, and behind them the outputs of each step."""

    index: int
    shape: tuple[int, ...] | None  # of the view that is taken; None: it is taken as it is

    def of(self, values: list[Any]) -> Any:
        array = values[self.index]
        return array if self.shape is None else array.viewed_as(self.shape)


class _Step(NamedTuple):
    """A primitive, and what it runs on. It is kept elsewhere, with its pipelines, and may go."""

    primitive: weakref.ref[_Primitive]
    inputs: Mapping[str, _Taken]
    done_with: tuple[int, ...]  # the outputs of earlier steps that no later one takes


class _Known(NamedTuple):
    """What calls with one key do. It holds no array."""

    steps: tuple[_Step, ...]
    results: tuple[_Taken, ...]
    several: Callable[[list[Any]], Any] | None  # makes one object of several results


class _Watch:
    """Watches a call: what it does on a device, apart from looking at its arguments."""

    def __init__(self, values: list[Any], state: DeviceState, outer: _Watch | None):
        self.outer = outer
        self._state, self._uses = state, state.uses
        self._count = self._given = len(values)
        self._steps: list[tuple[_Primitive, dict[str, _Taken]]] = []
        #: By what shows the same items; no Array, so that memory goes when the function lets it go.
        self._places: dict[tuple[Any, ...], tuple[int, Any]] = {}
        self._is_known = True
        for index, value in enumerate(values):
            if type(value) is Array:
                self._is_known &= value.place()[:5] not in self._places  # else it is not clear which one is taken
                self._add(index, value)

    def _add(self, index: int, array: Array) -> None:
        place = array.place()
        self._places[place[:5]] = index, place[5]

    def _taken(self, array: Any) -> _Taken | None:
        place = array.place() if type(array) is Array else ()
        found = self._places.get(place[:5])
        if found is None:
            return None
        index, shape = found
        if shape == place[5]:
            return _Taken(index, None)
        return None if array.count is not None else _Taken(index, array.shape)

    def ran(self, primitive: _Primitive, uses: int, arrays: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Take note of a primitive that ran, of the uses of the queue before, and of all that it was given."""
        inputs = {name: self._taken(array) for name, array in arrays.items() if array is not None}
        # What it was not seen to do, such as a transfer, used the queue.
        self._is_known &= uses == self._uses and all(inputs.values()) and inputs.keys().isdisjoint(
            primitive.signature.outputs
        )  # fmt: skip
        self._steps.append((primitive, cast(dict[str, _Taken], inputs)))
        for output in outputs.values():
            if type(output) is Array:
                self._add(self._count, output)
            self._count += 1
        self._uses = self._state.uses

    def known(self, result: Any) -> _Known | None:
        """Return what a call was seen to do; None if that was not all, or makes no Arrays."""
        kind = type(result)
        parts = cast(tuple[Any, ...], result if isinstance(result, tuple) else (result,))
        results = tuple(self._taken(part) for part in parts)
        if not (self._is_known and self._steps and all(results)) or self._uses != self._state.uses:
            return None
        taken, steps = cast(tuple[_Taken, ...], results), list[_Step]()
        later = {one.index for one in taken}
        for primitive, inputs in reversed(self._steps):
            own = {one.index for one in inputs.values()} - later
            later |= own
            done_with = tuple(index for index in own if index >= self._given)
            steps.append(_Step(weakref.ref(primitive), inputs, done_with))
        several = None if kind is Array else tuple if kind is tuple else cast(Any, kind)._make
        return _Known(tuple(reversed(steps)), taken, several)


class _Thread(threading.local):
    watch: _Watch | None = None


_THREAD = _Thread()


def watched_calls(primitive: Any, run: Callable[[Mapping[str, Any]], dict[str, Any]], arrays: Mapping[str, Any]) -> Any:
    """Return what `run` returns for the arrays of a primitive; the calls that the thread is in take note of it."""
    watch = _THREAD.watch
    if watch is None:
        return run(arrays)
    uses = state_of(primitive.device).uses
    outputs = run(arrays)
    while watch is not None:
        watch.ran(primitive, uses, arrays, outputs)
        watch = watch.outer
    return outputs


def _said(option: Any) -> tuple[Any, ...] | None:
    """Return what is equal for options that are the same in every way; None for what may change."""
    kind = type(option)
    if kind in _PLAIN or isinstance(option, (Datatype, Operator, np.dtype)):
        return kind, option
    if kind is float:
        return kind, option.hex()  # 0 and -0 are equal
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
            key, device = [function, *kwargs], None
            for value in values:
                kind = type(value)
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
                context = None if device is None else cast("DeviceContext | None", state_of(device).context)
                if context is not None:
                    name = tuple(key)
                    known = context.cached(one_shot, dict[tuple[Any, ...], _Known]).get(name)
                    steps = [] if known is None else [(step, step.primitive()) for step in known.steps]
                    if known is None or any([primitive is None for _, primitive in steps]):
                        return _watched(anew, args, kwargs, name, values, context)
                    for step, primitive in steps:
                        arrays = {name: taken.of(values) for name, taken in step.inputs.items()}
                        values += primitive.run_once(**arrays).values()
                        for index in step.done_with:
                            values[index] = None
                    if known.several is None:
                        return known.results[0].of(values)
                    return known.several([taken.of(values) for taken in known.results])
            return anew(*args, **kwargs)

        return cast(FunctionT, call)

    return decorate


def _watched(
    function: Callable[..., Any], args: Any, kwargs: Any, key: Any, values: list[Any], context: DeviceContext
) -> Any:
    """Call a function, and keep what it was seen to do."""
    if context.observer is not None or context.recorders:
        return function(*args, **kwargs)
    outer = _THREAD.watch
    _THREAD.watch = watch = _Watch(values, state_of(context.device), outer)
    try:
        result = function(*args, **kwargs)
    finally:
        _THREAD.watch = outer
    known = watch.known(result)
    if known is not None:
        with context.lock:
            calls = context.cached(one_shot, dict[tuple[Any, ...], _Known])
            calls[key] = known
            if len(calls) > _MOST_CALLS:
                calls.pop(next(iter(calls)))
    return result
