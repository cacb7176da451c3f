"""Operators of two items from one Python function: their WGSL and their numpy twin."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError, DatatypeError
from ..settings import ShaderChecks
from .datatype import DATATYPES, Datatype, Struct
from .evaluation import value_of
from .expression import Expression, as_node
from .expression_functions import StructExpression
from .operations import operation_text
from .program import Flat, Leaf, Step, flatten
from .wgsl_function import function_texts


@dataclass(frozen=True)
class Traced:
    """What an operator's Python function does on items of one datatype, at the time that it was asked.

    Two are equal if their texts are; neither keeps the function, or what that captured. A function may read what
    changes, so it is traced whenever it is given, which takes 0.1 ms, and the trace stands for it in all that is kept.

    Attributes
    ----------
    flat : Flat
        Its leaves are ``a`` and ``b``, or their fields, ``a.value``.
    datatype : Datatype
    name : str
        Of the WGSL function.
    """

    flat: Flat
    datatype: Datatype
    name: str = "combine"

    @property
    def shader_checks(self) -> ShaderChecks | None:
        """The run-time checks that a user's functions that it calls ask for; None without any."""
        return self.flat.program.shader_checks

    def text(self) -> str:
        """Return the WGSL of the function."""
        steps = self.flat.program.steps
        functions, names = function_texts("op", self.flat.program)
        lines = [f"  let v{k} = {self._step(step, names)};" for k, step in enumerate(steps)]
        results = [f"v{k}" for k in self.flat.program.results]
        value = f"T({', '.join(results)})" if self.flat.fields else results[0]
        kind = "bool" if self.name == "less" else "T"
        return "\n".join([*functions, f"fn {self.name}(a: T, b: T) -> {kind} {{", *lines, f"  return {value};", "}"])

    def _step(self, step: Step, functions: dict[object, str]) -> str:
        if step.kind == "leaf":
            return self.flat.names[step.number]
        if step.kind == "number":
            return _number(step, self.flat)
        args = [f"v{k}" for k in step.args]
        if step.kind == "function":
            return f"{functions[step.value]}({', '.join(args)})"
        return operation_text(step.kind, step.type, self.flat.program.steps[step.args[0]].type, args, 1)

    def __call__(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return its value in numpy."""
        shape = np.broadcast_shapes(np.shape(a), np.shape(b))
        leaves: dict[str, np.ndarray] = {}
        for name, datatype in zip(self.flat.names, self.flat.datatypes, strict=True):
            items = np.broadcast_to(np.asarray({"a": a, "b": b}[name[0]]), shape)
            items = items[name[2:]] if name[1:] else items
            leaves[name] = np.ascontiguousarray(items.astype(datatype.dtype, copy=False)).reshape(-1)
        return np.broadcast_to(value_of(self.flat, leaves).reshape(-1), (int(np.prod(shape)),)).reshape(shape)


def _number(step: Step, flat: Flat) -> str:
    if step.type == "bool":
        return "true" if step.value else "false"
    word = flat.numbers[step.number]
    if step.type == "u32":
        return f"{word}u"
    if step.type == "f32" and not np.isfinite(np.uint32(word).view(np.float32)):
        raise ArgumentError(
            "an operator's function has an infinite number or NaN, which WGSL has no constant for; compare with a "
            "large finite number, or use gw.isnan()"
        )
    return f"bitcast<{step.type}>({word:#x}u)"


def traced(function: Callable[[Any, Any], Any], datatype: Datatype, what: str) -> Traced:
    """Return what a Python function of two items does on items of a datatype.

    Raises
    ------
    ArgumentError, DatatypeError
        If it gives something else than an item, or uses more than the two items.
    """
    result, items = _called(function, datatype, what)
    if isinstance(datatype, Struct):
        names = tuple(field for field, _ in datatype.fields)
        if not isinstance(result, StructExpression) or set(result.fields) != set(names):
            raise DatatypeError(f"the function of {what} gives {result!r:.80}, not a struct of {', '.join(names)}")
        nodes = [result[name] for name in names]
        wanted = [of.wgsl for _, of in datatype.fields]
    else:
        names, nodes, wanted = (), [as_node(result, datatype.computed_as)], [datatype.computed_as]
    types = [node.type for node in nodes]
    if types != wanted:
        raise DatatypeError(
            f"the function of {what} gives {', '.join(types)} for items of {', '.join(wanted)}; cast it: gw.u32(x)"
        )
    return Traced(_flat_of_items(flatten(*nodes, names=names), items, what), datatype)


def traced_order(function: Callable[[Any, Any], Any], datatype: Datatype, what: str) -> Traced:
    """Return what a Python function does that says whether one item goes before another.

    Raises
    ------
    ArgumentError, DatatypeError
        If it gives something else than a bool, or uses more than the two items.
    """
    result, items = _called(function, datatype, what)
    node = as_node(result, "bool") if not isinstance(result, StructExpression) else None
    if node is None or node.type != "bool":
        given = "a struct" if node is None else node.type
        raise DatatypeError(f"{what} gives {given}, but must say whether a goes before b: lambda a, b: a < b")
    return Traced(_flat_of_items(flatten(node), items, what), datatype, "less")


def _called(function: Callable[[Any, Any], Any], datatype: Datatype, what: str) -> tuple[Any, list[Any]]:
    """Return what a function gives, and the two items."""
    items = [_item(name, datatype, what) for name in "ab"]
    try:
        inspect.signature(function).bind(*items)
    except TypeError as error:
        raise ArgumentError(
            f"{what} must be a function of two items, lambda a, b: …; given two, it says: {error}"
        ) from None
    except ValueError:  # of a built-in function Python does not always know it
        pass
    return function(*items), items


def _flat_of_items(flat: Flat, items: list[Any], what: str) -> Flat:
    """Return a function's program; raise if it uses more than the two items."""
    strange = next((s.kind for s in flat.program.steps if s.kind in _REFUSED), None)
    if strange is not None or flat.arrays or not set(flat.names) <= _names_of(items):
        raise ArgumentError(
            f"the function of {what} uses {strange or 'other leaves'}: an operator sees the two items and numbers only"
        )
    return flat


_REFUSED = ("index", "scalar", "gather", "previous", "next", "flip", "component")


def _item(name: str, datatype: Datatype, what: str) -> Any:
    if isinstance(datatype, Struct):
        return StructExpression(
            {field: Expression("leaf", of.wgsl, (), Leaf(f"{name}.{field}", of)) for field, of in datatype.fields}
        )
    if datatype.computed_as not in DATATYPES:
        raise DatatypeError(
            f"{what} is made from a Python function, which takes items of up to 4 bytes, not {datatype}"
        )
    computed = DATATYPES[datatype.computed_as]
    return Expression("leaf", computed.name, (), Leaf(name, computed))


def _names_of(items: list[Any]) -> set[str]:
    nodes = [n for item in items for n in (item.fields.values() if isinstance(item, StructExpression) else [item])]
    return {cast(Leaf, node.value).name for node in nodes}
