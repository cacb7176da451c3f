"""Calls of one-shot functions that resemble earlier ones run the recipe of these, and ask no questions.

A function asks many questions about its arguments before a kernel runs: what they are, which primitive works on them,
what shape the result has. The answers depend on the function, its options, and the shapes and datatypes of its Arrays,
also of those that are part of expressions. So these are the key of a recipe (`runtime.recipes`).

Calls that took an array of numpy, or an option that may change, have no key and no recipe.
"""

from __future__ import annotations

# What each call passes reads the slots of Arrays without properties, which would cost as much as the rest of a key.
# pyright: reportPrivateUsage=false
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import wgpu

from ..backend.device_state import STATE
from ..call_errors import explained
from ..runtime.array import Array
from ..runtime.recipes import PLAIN_TYPES, build_recipe, option_key
from ..types.expression import Expression
from ..types.program import Bound
from .dates import takes_dates

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_MOST_NODES = 64
#: The attribute of an expression that has its structure, which nothing changes.
_STRUCTURE = "_structure"
_kind: Callable[[object], Any] = type  # of which a type checker knows nothing


def one_shot(remedies: Mapping[str, str] | None = None) -> Callable[[FunctionT], FunctionT]:
    """Make a one-shot function run recipes; take dates, if it can; and answer wrong arguments, as `explained`.

    Parameters
    ----------
    remedies : mapping from str to str, optional
        As for `explained`.
    """

    def decorate(function: FunctionT) -> FunctionT:
        return repeats(explained(remedies)(takes_dates(function)))

    return decorate


def repeats(function: FunctionT) -> FunctionT:
    """Make a function of Arrays run the recipe of an earlier call that differs in nothing but the Arrays."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        key: list[Any] = [function, *kwargs]
        values: list[Any] = []
        places: dict[Any, int] = {}
        device = None
        for value in (*args, *kwargs.values()):
            kind = _kind(value)
            if kind is Array:
                if device is None:
                    device = value._device
                elif device is not value._device:
                    break
                place = value.place
                index = places.setdefault(place[:5], len(values))
                if index == len(values):
                    values.append(value)
                key.append((index, place[2:]))  # all but where its items are
            elif kind in PLAIN_TYPES:
                key.append((kind, value))
            elif kind is Expression:
                nodes = _expression_key(value, values, places)
                if nodes is None:
                    break
                key.append(nodes)
            else:
                said = (kind, value.uid) if isinstance(value, wgpu.GPUDevice) else option_key(value)
                if said is None:
                    break
                key.append(said)
        else:
            if values:
                device = values[0]._device
                context = device.__dict__[STATE].context
                if context is not None:
                    name = tuple(key)
                    recipe = context.recipes.get(name)
                    result = None if recipe is None else recipe.run(values.copy(), context.builders)
                    return build_recipe(function, args, kwargs, name, values, context) if result is None else result
        return function(*args, **kwargs)

    return cast(FunctionT, call)


def _expression_key(expression: Expression, values: list[Any], places: dict[Any, int]) -> tuple[Any, ...] | None:
    """Return a key that is equal for expressions that differ in their Arrays alone, and add these to the values.

    None where it has leaves that are no Arrays, functions, or too many nodes.
    """
    found = expression.__dict__.get(_STRUCTURE)
    if found is None:
        found = expression.__dict__[_STRUCTURE] = _structure_of(expression)
    nodes, arrays = found
    if nodes is None:
        return None
    indices: list[int] = []
    for array in arrays:
        index = places.setdefault(array.place[:5], len(values))
        if index == len(values):
            values.append(array)
        indices.append(index)
    return nodes, tuple(indices)


def _structure_of(expression: Expression) -> tuple[tuple[Any, ...] | None, list[Any]]:
    """Return what is equal for expressions that differ in their Arrays alone, and the Arrays; None as above."""
    key: list[Any] = []
    arrays: list[Any] = []
    places: dict[Any, int] = {}
    numbers: dict[int, int] = {}  # of nodes that are used twice
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if id(node) in numbers:
            key.append(numbers[id(node)])
            continue
        if len(numbers) == _MOST_NODES:
            return None, []
        numbers[id(node)] = len(numbers)
        value: Any = node.value
        if value is not None and node.kind == "component":
            value, component = value
            key.append(component)
        if type(value) is Bound:
            array: Any = value.array
            if type(array) is not Array:
                return None, []
            index = places.setdefault(array.place[:5], len(arrays))
            if index == len(arrays):
                arrays.append(array)
            key.append((index, array.place[2:], value.components))
        elif value is not None:
            said = value if node.kind == "number" else option_key(value)
            if said is None:
                return None, []
            key.append(said)
        key.append((node.kind, node.type, len(node.args)))
        waiting += node.args
    return tuple(key), arrays
