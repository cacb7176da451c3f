"""Programs: expressions as lists of steps, in which each step comes after those that it uses.

Two expressions of the same shape have equal programs: names of leaves, arrays and numbers are kept beside it. So the
text that is written from a program is the same for ``2 * x`` and ``3 * y``.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from ..errors import ArgumentError
from ..settings import ShaderChecks, strictest
from .datatype import DATATYPES, VALUE_DATATYPES, Datatype, Struct
from .shapes import check_one_shape
from .wide_text import WIDE_TYPES, needs_doubles, word_count

#: Steps that compute their operand at another item.
MOVES = ("previous", "next", "flip", "gather")


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

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of its dimensions."""
        ...

    def place(self) -> tuple[Any, ...]:
        """Return what is equal for arrays that show the same items."""
        ...

    def to_numpy(self) -> Any:
        """Copy the items to the host."""
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
    """An argument that an expression reads.

    Attributes
    ----------
    name : str
    datatype : Datatype
        Of its items in memory.
    components : int
        How many of them are one item of the expression.
    """

    name: str
    datatype: Datatype
    components: int = 1


@dataclass(frozen=True, eq=False)
class Bound:
    """An array that is part of an expression; of so many components, as a `Leaf`."""

    array: Stored
    components: int = 1

    @property
    def datatype(self) -> Datatype:
        """Of its items."""
        return self.array.datatype


@dataclass(frozen=True)
class LeafForm:
    """What the text depends on of a leaf.

    Attributes
    ----------
    datatype : str
        Of its items in memory.
    components : int
    """

    datatype: str
    components: int = 1


@dataclass(frozen=True)
class Step:
    """One operation.

    Attributes
    ----------
    kind, type : str
        Those of the expression. ``"single"`` is a leaf of one item, which every item reads.
    args : tuple of int
        The numbers of the steps that it uses.
    value : object
        For a leaf its number among them; for a number or a scalar that of its first word; for a component of a leaf its
        number and place; else the value of the expression.
    """

    kind: str
    type: str
    args: tuple[int, ...] = ()
    value: Any = None

    @property
    def number(self) -> int:
        """The number of the leaf, number or scalar that it is."""
        return self.value[0] if self.kind == "component" else self.value

    @property
    def component(self) -> int:
        """The place of the component that it is."""
        return self.value[1]


@dataclass(frozen=True)
class Program:
    """The steps of an expression.

    Attributes
    ----------
    steps : tuple of Step
    results : tuple of int
        The steps whose values are the words of an item.
    leaves : tuple of LeafForm
    """

    steps: tuple[Step, ...]
    results: tuple[int, ...]
    leaves: tuple[LeafForm, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the results."""
        return tuple(self.steps[k].type for k in self.results)

    @cached_property
    def is_wide(self) -> bool:
        """Whether a step has 8 bytes."""
        return any(step.type in WIDE_TYPES for step in self.steps)

    @cached_property
    def doubles(self) -> str | None:
        """The first operation that only devices with float64 do; None without any."""
        taken = (self.steps[step.args[0]].type if step.args else None for step in self.steps)
        found = zip(self.steps, taken, strict=True)
        return next((step.kind for step, takes in found if needs_doubles(step.kind, step.type, takes)), None)

    def with_leaves(self, numbers: Sequence[int]) -> Program:
        """Return it with other numbers of the leaves."""
        steps = tuple(
            replace(step, value=numbers[step.value]) if step.kind in ("leaf", "single") else step for step in self.steps
        )
        return replace(self, steps=steps)

    @cached_property
    def aligned(self) -> tuple[int, ...]:
        """The leaves that have as many items as the expression, in order."""
        return tuple(sorted(self._leaves_of(self.results)))

    @cached_property
    def streamed(self) -> frozenset[int]:
        """The leaves that are read at the item that is computed, and nowhere else."""
        moved: set[int] = set()
        for step in self.steps:
            if step.kind in MOVES:
                moved |= self._leaves_of(step.args[:1])
        return frozenset(k for k in self.aligned if self.leaves[k].components == 1 and k not in moved)

    def gathered(self) -> Iterator[tuple[int, ...]]:
        """Yield the leaves of one length of each gather."""
        for step in self.steps:
            if step.kind == "gather":
                yield self.domain(step)

    def domain(self, gather: Step) -> tuple[int, ...]:
        """Return the leaves whose length bounds the indices of a gather."""
        return tuple(sorted(self._leaves_of(gather.args[:1])))

    def within(self, roots: Iterable[int], inside: Sequence[str] = ()) -> list[int]:
        """Return the steps that some need at their own item, in order; also behind moves of the kinds `inside`."""
        waiting, found = list(roots), set[int]()
        while waiting:
            k = waiting.pop()
            if k in found:
                continue
            found.add(k)
            step = self.steps[k]
            skipped = 1 if step.kind in MOVES and step.kind not in inside else 0
            waiting += step.args[skipped:]
        return sorted(found)

    def _leaves_of(self, roots: Iterable[int]) -> set[int]:
        steps = (self.steps[k] for k in self.within(roots, ("previous", "next", "flip")))
        return {
            step.value if step.kind == "leaf" else step.value[0] for step in steps if step.kind in ("leaf", "component")
        }

    @cached_property
    def shader_checks(self) -> ShaderChecks | None:
        """The run-time checks that a user's functions in it ask for; None without any."""
        return strictest(step.value.shader_checks for step in self.steps if step.kind == "function")


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
        The words of the numbers; those of 8 bytes have two.
    scalars : tuple of (str, str)
        Names and types of the numbers that are given to ``execute``.
    fields : tuple of str
        The names of the results of a struct; empty for a single one.
    """

    program: Program
    names: tuple[str, ...]
    datatypes: tuple[Datatype, ...]
    arrays: tuple[tuple[str, Stored], ...]
    numbers: tuple[int, ...]
    scalars: tuple[tuple[str, str], ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its results."""
        return self.program.types

    @property
    def datatype(self) -> Datatype:
        """The datatype of its items as kernels read them: of words, with u32 for bool."""
        words = ["u32" if each == "bool" else each for each in self.types]
        if self.fields:
            return Struct("struct", **dict(zip(self.fields, words, strict=True)))
        return VALUE_DATATYPES[words[0]]

    def number(self, step: Step) -> np.ndarray:
        """Return the words of a number."""
        return np.array(self.numbers[step.number : step.number + word_count(step.type)], np.uint32)

    def scalar_words(self, given: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Return the words of the scalars that a call gave, one after the other; those of others are 0."""
        return tuple(word for name, kind in self.scalars for word in given.get(name, (0,) * word_count(kind)))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The one shape of the arrays that are read item by item; None if none is."""
        arrays, program = dict(self.arrays), self.program
        own = (self.names[k] for k in program.aligned if program.leaves[k].components == 1)
        return next((arrays[name].shape for name in own if name in arrays), None)

    def without_arrays(self) -> Flat:
        """Return it with names in place of arrays: what is equal for calls with other arrays."""
        return replace(self, arrays=())

    def renamed(self, names: Mapping[str, str]) -> Flat:
        """Return it with other names of some leaves."""
        return replace(
            self,
            names=tuple(names.get(name, name) for name in self.names),
            arrays=tuple((names.get(name, name), array) for name, array in self.arrays),
        )


def part_of(flat: Flat, results: Sequence[int], fields: tuple[str, ...] = ()) -> Flat:
    """Return a part of a program: the steps that some need, as the results, and the leaves that those read."""
    program = flat.program
    kept, waiting = set[int](), list(results)
    while waiting:
        k = waiting.pop()
        if k not in kept:
            kept.add(k)
            waiting += program.steps[k].args
    places = {k: place for place, k in enumerate(sorted(kept))}
    leaves = sorted({program.steps[k].number for k in kept if program.steps[k].kind in ("leaf", "single", "component")})
    numbers = {leaf: number for number, leaf in enumerate(leaves)}
    steps: list[Step] = []
    for k in places:
        step, value = program.steps[k], program.steps[k].value
        if step.kind in ("leaf", "single"):
            value = numbers[step.number]
        elif step.kind == "component":
            value = (numbers[step.number], step.component)
        steps.append(replace(step, args=tuple(places[a] for a in step.args), value=value))
    names = tuple(flat.names[k] for k in leaves)
    return Flat(
        Program(tuple(steps), tuple(places[k] for k in results), tuple(program.leaves[k] for k in leaves)), names,
        tuple(flat.datatypes[k] for k in leaves), tuple(each for each in flat.arrays if each[0] in names), flat.numbers,
        flat.scalars, fields,
    )  # fmt: skip


def gathered(flat: Flat, order: str) -> Flat:
    """Return a program whose results are those of another at the items that a further leaf of u32 names.

    Results that are the same for every item stay as they are.
    """
    program, leaf = flat.program, len(flat.names)
    steps, results = [*program.steps, Step("leaf", "u32", (), leaf)], list[int]()
    at = len(program.steps)
    for k in program.results:
        if program.steps[k].kind == "number":
            results.append(k)
            continue
        steps.append(Step("gather", program.steps[k].type, (k, at)))
        results.append(len(steps) - 1)
    return replace(
        flat, program=Program(tuple(steps), tuple(results), (*program.leaves, LeafForm("u32"))),
        names=(*flat.names, order), datatypes=(*flat.datatypes, DATATYPES["u32"]),
    )  # fmt: skip


def flatten(*expressions: Node, names: tuple[str, ...] = ()) -> Flat:
    """Return an expression as a program; several are the fields of a struct.

    Equal steps become one, so each value is computed once.
    """
    return _Flattening(expressions).flat(names)


class _Flattening:
    """Numbers nodes, leaves and numbers in the order of first use."""

    def __init__(self, roots: Sequence[Node]):
        self._steps: dict[Step, int] = {}
        self._of_node: dict[int, int] = {}
        self._leaves: dict[Hashable, int] = {}
        self._found: list[Leaf] = []
        self._arrays: list[tuple[str, Stored]] = []
        self._numbers: list[int] = []
        self._scalars: dict[str, str] = {}
        ordered = _in_order(roots)
        #: Whether arrays of one item are repeated: something else says how many items there are. Else those of shape ()
        #: are, if others have a dimension.
        self._repeats = any(_says_length(node) for node in ordered)
        self._has_dimension = any(isinstance(node.value, Bound) and node.value.array.shape for node in ordered)
        for node in ordered:
            step = self._step(node)
            self._of_node[id(node)] = self._steps.setdefault(step, len(self._steps))
        self._results = tuple(self._of_node[id(root)] for root in roots)
        self._check_leaves()

    def flat(self, fields: tuple[str, ...]) -> Flat:
        """Return what was found."""
        forms = tuple(LeafForm(leaf.datatype.name, leaf.components) for leaf in self._found)
        return Flat(
            Program(tuple(self._steps), self._results, forms), tuple(leaf.name for leaf in self._found),
            tuple(leaf.datatype for leaf in self._found), tuple(self._arrays), tuple(self._numbers),
            tuple(self._scalars.items()), fields,
        )  # fmt: skip

    def _check_leaves(self) -> None:
        """Refuse arrays of several shapes, and gathers from the numbers of items alone, which have no end."""
        program = Program(tuple(self._steps), self._results, tuple(LeafForm("") for _ in self._found))
        shapes = {name: array.shape for name, array in self._arrays}
        if len(set(shapes.values())) > 1:
            self._check_shapes(program, shapes)
        for step in program.steps:
            inside = program.within(step.args[:1], ("previous", "next", "flip")) if step.kind == "gather" else ()
            if any(program.steps[k].kind == "index" for k in inside) and not program.domain(step):
                raise ArgumentError(
                    "items are gathered from gw.index alone, which has no end: use the indices themselves, or gather "
                    "from an expression that has a leaf"
                )

    def _check_shapes(self, program: Program, shapes: Mapping[str, tuple[int, ...]]) -> None:
        single = [self._found[cast(int, step.value)].name for step in program.steps if step.kind == "single"]
        for leaves in (program.aligned, *program.gathered()):
            names = [self._found[k].name for k in leaves if self._found[k].components == 1]
            alike = {name: shapes[name] for name in names if name in shapes}
            if alike:  # numpy's result has the dimensions of an array of one item, too
                dimensions = len(next(iter(alike.values())))
                alike |= {name: shapes[name] for name in single if len(shapes[name]) > dimensions}
            check_one_shape("the expression", alike, broadcasts=True)

    def _step(self, node: Node) -> Step:
        kind, value = node.kind, node.value
        if kind == "leaf":
            if isinstance(value, Bound) and value.array.size == 1:
                repeats = self._repeats or (self._has_dimension and value.array.shape == ())
                kind = "single" if repeats else kind
            value = self._leaf(value)
        elif kind == "component":
            leaf, place = cast("tuple[Leaf | Bound, int]", value)
            value = (self._leaf(leaf), place)
        elif kind == "number" and node.type != "bool":
            words, value = cast("tuple[int, ...]", value), len(self._numbers)
            self._numbers += words
        elif kind == "scalar":
            value = self._scalar(cast(str, value), node.type)
        return Step(kind, node.type, tuple(self._of_node[id(a)] for a in node.args), value)

    def _scalar(self, name: str, type_name: str) -> int:
        if self._scalars.setdefault(name, type_name) != type_name:
            raise ArgumentError(f"the expression has two scalars {name!r}, of {self._scalars[name]} and {type_name}")
        if any(leaf.name == name for leaf in self._found):
            raise ArgumentError(f"the expression has a leaf and a scalar {name!r}; rename one of them")
        before = itertools.takewhile(lambda other: other != name, self._scalars)
        return sum(word_count(self._scalars[other]) for other in before)

    def _leaf(self, value: Any) -> int:
        is_argument = isinstance(value, Leaf)
        key = value.name if is_argument else (value.array.place(), value.components)
        known = self._leaves.get(key)
        if known is not None:
            before = self._found[known]
            if is_argument and before != value:
                raise ArgumentError(
                    f"the expression has two leaves {value.name!r}, of {before.datatype} with {before.components} "
                    f"components and of {value.datatype} with {value.components}; rename one of them, or cast"
                )
            return known
        number = self._leaves[key] = len(self._found)
        if is_argument:
            if value.name in self._scalars:
                raise ArgumentError(f"the expression has a leaf and a scalar {value.name!r}; rename one of them")
            self._found.append(value)
        else:
            name = f"array_{len(self._arrays)}"
            self._arrays.append((name, value.array))
            self._found.append(Leaf(name, value.datatype, value.components))
        return number


def _says_length(node: Node) -> bool:
    """Whether a node is a leaf that is no array of one item."""
    if node.kind == "component":
        return True
    return node.kind == "leaf" and not (isinstance(node.value, Bound) and node.value.array.size == 1)


def _in_order(roots: Sequence[Node]) -> list[Node]:
    """Return all nodes, each behind those that it uses."""
    # By a list, not by calls within each other: an expression that a loop builds may be thousands of nodes deep.
    found: dict[int, Node] = {}
    waiting = list(reversed(roots))
    while waiting:
        node = waiting[-1]
        missing = [each for each in node.args if id(each) not in found]
        if missing and id(node) not in found:
            waiting += reversed(missing)
            continue
        waiting.pop()
        found.setdefault(id(node), node)
    return list(found.values())
