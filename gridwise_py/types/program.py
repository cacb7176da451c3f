"""Programs: expressions as lists of steps, in which each step comes after those that it uses.

Two expressions of the same shape have equal programs: names of leaves, arrays and numbers are kept beside it. So the
text that is written from a program is the same for ``2 * x`` and ``3 * y``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..errors import ArgumentError, LengthError
from .datatype import Datatype

__all__ = ["NUMPY_TYPES", "Bound", "Flat", "Leaf", "Node", "Program", "Step", "Stored", "flatten"]

#: The types of nodes, and numpy's.
NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "u32": np.dtype(np.uint32), "i32": np.dtype(np.int32), "f32": np.dtype(np.float32), "bool": np.dtype(np.bool_),
}  # fmt: skip


class Stored(Protocol):
    """An array on a GPU, as expressions know it."""

    @property
    def datatype(self) -> Datatype:
        """The datatype of its items."""
        ...

    @property
    def size(self) -> int:
        """The number of its items."""
        ...

    def place(self) -> tuple[Any, ...]:
        """Return what is equal for arrays that show the same items."""
        ...


class Node(Protocol):
    """An expression, as far as its program depends on it."""

    @property
    def kind(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def args(self) -> tuple[Node, ...]: ...
    @property
    def value(self) -> Hashable: ...


@dataclass(frozen=True)
class Leaf:
    """What a leaf stands for.

    Attributes
    ----------
    name : str
        The name of an argument; empty for an array.
    datatype : Datatype
        Of its items in memory.
    """

    name: str
    datatype: Datatype


@dataclass(frozen=True, eq=False)
class Bound:
    """An array that is part of an expression."""

    array: Stored

    @property
    def datatype(self) -> Datatype:
        """Of its items."""
        return self.array.datatype


@dataclass(frozen=True)
class Step:
    """One operation.

    Attributes
    ----------
    kind, type : str
        Those of the expression.
    args : tuple of int
        The numbers of the steps that it uses.
    value : object
        For a leaf, a number or a scalar, its number among them; else that of the expression.
    """

    kind: str
    type: str
    args: tuple[int, ...] = ()
    value: Hashable = None


@dataclass(frozen=True)
class Program:
    """The steps of an expression.

    Attributes
    ----------
    steps : tuple of Step
    results : tuple of int
        The steps whose values are the words of an item.
    datatypes : tuple of str
        Of the leaves, in memory.
    """

    steps: tuple[Step, ...]
    results: tuple[int, ...]
    datatypes: tuple[str, ...]

    @cached_property
    def streamed(self) -> frozenset[int]:
        """The leaves that are read only at the item that is computed."""
        return frozenset(range(len(self.datatypes)))


@dataclass(frozen=True)
class Flat:
    """A program, and what tells its expression apart from others with the same program.

    Attributes
    ----------
    program : Program
    names : tuple of str
        Of the leaves.
    datatypes : tuple of Datatype
        Of the leaves, in memory.
    arrays : tuple of (str, Stored)
        Those leaves that are arrays.
    numbers : tuple of int
        The numbers, as words.
    """

    program: Program
    names: tuple[str, ...]
    datatypes: tuple[Datatype, ...]
    arrays: tuple[tuple[str, Stored], ...]
    numbers: tuple[int, ...]

    @property
    def type(self) -> str:
        """The type of its items."""
        return self.program.steps[self.program.results[0]].type

    def without_arrays(self) -> Flat:
        """Return it with names in place of arrays: what is equal for calls with other arrays."""
        return Flat(self.program, self.names, self.datatypes, (), self.numbers)

    def value(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the value in numpy, given all leaves."""
        given = {name: array.to_numpy() for name, array in self.arrays if name not in arrays}  # pyright: ignore
        found = {**given, **arrays}
        missing = [name for name in self.names if name not in found]
        if missing:
            raise ArgumentError(f"the expression needs {', '.join(f'{name}=' for name in missing)}")
        leaves = [
            np.asarray(found[name]).astype(of.dtype, copy=False)
            for name, of in zip(self.names, self.datatypes, strict=True)
        ]
        return _Evaluation(self, leaves).result()


def flatten(expression: Node) -> Flat:
    """Return an expression as a program. Equal steps become one, so each value is computed once."""
    return _Flattening(expression).flat()


class _Flattening:
    """Numbers nodes, leaves and numbers in the order of first use."""

    def __init__(self, expression: Node):
        self._steps: dict[Step, int] = {}
        self._of_node: dict[int, int] = {}
        self._leaves: dict[Hashable, int] = {}
        self._names: list[str] = []
        self._datatypes: list[Datatype] = []
        self._arrays: list[tuple[str, Stored]] = []
        self._numbers: list[int] = []
        self._result = self._number_of(expression)

    def flat(self) -> Flat:
        program = Program(tuple(self._steps), (self._result,), tuple(of.name for of in self._datatypes))
        return Flat(program, tuple(self._names), tuple(self._datatypes), tuple(self._arrays), tuple(self._numbers))

    def _number_of(self, root: Node) -> int:
        # By a list, not by calls within each other: an expression that a loop builds may be thousands of nodes deep.
        waiting = [root]
        while waiting:
            node = waiting[-1]
            missing = [each for each in node.args if id(each) not in self._of_node]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if id(node) not in self._of_node:
                step = Step(node.kind, node.type, tuple(self._of_node[id(a)] for a in node.args), self._value(node))
                self._of_node[id(node)] = self._steps.setdefault(step, len(self._steps))
        return self._of_node[id(root)]

    def _value(self, node: Node) -> Hashable:
        if node.kind == "leaf":
            return self._leaf(node.value)
        if node.kind == "number" and node.type != "bool":
            self._numbers.append(int(node.value))  # pyright: ignore[reportArgumentType]
            return len(self._numbers) - 1
        return node.value

    def _leaf(self, value: Any) -> int:
        is_argument = isinstance(value, Leaf)
        key = value.name if is_argument else value.array.place()
        known = self._leaves.get(key)
        if known is not None:
            if is_argument and self._datatypes[known] != value.datatype:
                raise ArgumentError(
                    f"the expression has two leaves {value.name!r}, of {self._datatypes[known]} and of "
                    f"{value.datatype}; rename one of them, or cast: gw.{value.datatype}(gw.{self._datatypes[known]}("
                    f"{value.name!r}))"
                )
            return known
        number = self._leaves[key] = len(self._names)
        name = value.name if is_argument else f"array_{len(self._arrays)}"
        self._names.append(name)
        self._datatypes.append(value.datatype)
        if not is_argument:
            self._arrays.append((name, value.array))
        return number


# ---- the value in numpy

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


class _Evaluation:
    """The values of a program's steps, each an array or a number."""

    def __init__(self, flat: Flat, leaves: list[np.ndarray]):
        self._flat = flat
        self._leaves = leaves
        sizes = {leaves[k].size for k in flat.program.streamed}
        if len(sizes) > 1:
            described = ", ".join(f"{name} has {array.size}" for name, array in zip(flat.names, leaves, strict=True))
            raise LengthError(f"the leaves of an expression have one length, but {described}; slice them to one length")
        self._shape = next((leaves[k].shape for k in flat.program.streamed), ())

    def result(self) -> np.ndarray:
        values: list[Any] = []
        with np.errstate(all="ignore"):
            for step in self._flat.program.steps:
                values.append(self._step(step, [values[a] for a in step.args]))
        step = self._flat.program.steps[self._flat.program.results[0]]
        value = np.asarray(values[self._flat.program.results[0]], NUMPY_TYPES[step.type])
        return np.broadcast_to(value, self._shape).copy() if value.shape != self._shape else value

    def _step(self, step: Step, args: list[Any]) -> Any:
        if step.kind == "leaf":
            return self._leaves[int(step.value)].astype(NUMPY_TYPES[step.type], copy=False)  # pyright: ignore
        if step.kind == "index":
            return np.arange(int(np.prod(self._shape)), dtype=np.uint32).reshape(self._shape)
        if step.kind == "number":
            if step.type == "bool":
                return np.bool_(step.value)
            word = self._flat.numbers[int(step.value)]  # pyright: ignore
            return np.uint32(word).view(NUMPY_TYPES[step.type])
        if step.kind == "select":
            return np.where(*args)
        if step.kind == "cast":
            return np.asarray(args[0]).astype(NUMPY_TYPES[step.type])
        return _OPERATORS[step.kind](*args)
