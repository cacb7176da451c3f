"""Programs: expressions as lists of steps, in which each step comes after those that it uses.

Two expressions of the same shape have equal programs: names of leaves, arrays and numbers are kept beside it. So the
text that is written from a program is the same for ``2 * x`` and ``3 * y``.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from ..errors import ArgumentError
from ..settings import ShaderChecks, strictest
from .datatype import DATATYPES, VALUE_DATATYPES, Datatype, Struct
from .shapes import broadcast_shape, check_one_shape, merged
from .wide_text import WIDE_TYPES, needs_doubles, word_count

if TYPE_CHECKING:
    from fractions import Fraction

#: Steps that compute their operand at another item; that of the last two has a length of its own.
MOVES = ("previous", "next", "flip", "gather", "spread")
#: The shape of what has leaves that are arguments: it is known when these are given.
_ANY_SHAPE = (-1,)
_Shape: TypeAlias = tuple[int, ...] | None


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

    @property
    def count(self) -> Any:
        """How many items count, where only the GPU knows it; else None."""
        ...

    @property
    def place(self) -> tuple[Any, ...]:
        """Return what is equal for arrays that show the same items."""
        ...

    def viewed_as(self, shape: tuple[int, ...]) -> Stored:
        """Return a view with another shape of as many items."""
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
class Spread:
    """How an operand is repeated in a larger shape.

    Attributes
    ----------
    axes : tuple of bool
        For each dimension of that, after neighbours that are reached as one were merged: whether the operand goes along
        it, or is repeated. Without any it is one item.
    lengths : tuple of int
        Which numbers are the lengths of all dimensions but the first.
    in_fours : bool
        Whether four items, from a multiple of 4 on, never lie in two rows of the last dimension.
    """

    axes: tuple[bool, ...] = ()
    lengths: tuple[int, ...] = ()
    in_fours: bool = True


@dataclass(frozen=True)
class Step:
    """One operation.

    Attributes
    ----------
    kind, type : str
        Those of the expression; or ``"spread"``, an operand of a smaller shape that is repeated.
    args : tuple of int
        The numbers of the steps that it uses.
    value : object
        For a leaf its number among them; for a number or a scalar that of its first word; for a component of a leaf its
        number and place; for what is repeated a Spread; else the value of the expression.
    last : int or None
        Of a gather or a spread whose operand has no leaf of its length: which number is the index of the last item.
    """

    kind: str
    type: str
    args: tuple[int, ...] = ()
    value: Any = None
    last: int | None = None

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
        steps = tuple(replace(step, value=numbers[step.value]) if step.kind == "leaf" else step for step in self.steps)
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
        """Yield the leaves of one length of each operand that has a length of its own."""
        for step in self.steps:
            if step.kind in MOVES[3:]:
                yield self.domain(step)

    def domain(self, apart: Step) -> tuple[int, ...]:
        """Return the leaves that are as long as the operand of a gather, whose indices they bound, or of a spread."""
        return tuple(sorted(self._leaves_of(apart.args[:1])))

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
class Wide:
    """The size of an expression all of whose leaves are repeated.

    Attributes
    ----------
    shape : tuple of int
    leaf : int
        A leaf, whose length says that of the expression.
    per : int or Fraction
        How many of its items are one of the expression.
    """

    shape: tuple[int, ...]
    leaf: int
    per: int | Fraction


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
    wide : Wide or None
        Its size, where no leaf has it.
    """

    program: Program
    names: tuple[str, ...]
    datatypes: tuple[Datatype, ...]
    arrays: tuple[tuple[str, Stored], ...]
    numbers: tuple[int, ...]
    scalars: tuple[tuple[str, str], ...] = ()
    fields: tuple[str, ...] = ()
    wide: Wide | None = None

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
        """That of its arrays, as numpy broadcasts them; None if no array is read item by item."""
        if self.wide is not None:
            return self.wide.shape
        arrays, forms = dict(self.arrays), self.program.leaves
        own = ((arrays.get(self.names[k]), forms[k].components) for k in self.program.aligned)
        return next((_shape_in(array, components) for array, components in own if array is not None), None)

    @property
    def size(self) -> int:
        """How many items it has; 0 where arrays do not say it."""
        return 0 if self.shape is None else prod(self.shape)

    @property
    def has_size(self) -> bool:
        """Whether its leaves say how many items it has."""
        return self.wide is not None or bool(self.program.aligned)

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
    leaves = sorted({program.steps[k].number for k in kept if program.steps[k].kind in ("leaf", "component")})
    numbers = {leaf: number for number, leaf in enumerate(leaves)}
    steps: list[Step] = []
    for k in places:
        step, value = program.steps[k], program.steps[k].value
        if step.kind == "leaf":
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
    program, leaf, last = flat.program, len(flat.names), None
    if flat.wide is not None:
        last, flat = (
            len(flat.numbers),
            replace(flat, numbers=(*flat.numbers, max(prod(flat.wide.shape), 1) - 1), wide=None),
        )
    steps, results = [*program.steps, Step("leaf", "u32", (), leaf)], list[int]()
    at = len(program.steps)
    for k in program.results:
        if program.steps[k].kind == "number":
            results.append(k)
            continue
        steps.append(Step("gather", program.steps[k].type, (k, at), None, last))
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


class _Shaped(NamedTuple):
    """A step, its shape, None for numbers, and whether a leaf has as many items."""

    step: Step
    shape: _Shape
    has_leaf: bool


class _Flattening:
    """Numbers nodes, leaves and numbers in the order of first use."""

    def __init__(self, roots: Sequence[Node]):
        self._steps: dict[Step, int] = {}
        self._of_node: dict[int, int] = {}
        self._leaves: dict[Hashable, int] = {}
        self._found: list[Leaf] = []
        self._arrays: dict[str, Stored] = {}
        self._numbers: list[int] = []
        self._scalars: dict[str, str] = {}
        #: Of each step; none where all leaves are alike.
        self._shaped: list[_Shaped] | None = None
        self._lengths: dict[int, int] = {}
        ordered = _in_order(roots)
        if _may_broadcast(ordered):
            self._shaped = []
        for node in ordered:
            args = tuple([self._of_node[id(arg)] for arg in node.args])
            self._of_node[id(node)] = self._added(self._step(node, args))
        results = tuple(self._of_node[id(root)] for root in roots)
        self._results = self._of_one_shape(results)
        self._check_leaves()

    def _added(self, step: Step, shape: _Shape = None) -> int:
        """Return the number of a step; of a spread its shape is known."""
        number = self._steps.setdefault(step, len(self._steps))
        if self._shaped is not None and number == len(self._shaped):
            self._shaped.append(self._shape_of(step) if shape is None else _Shaped(step, shape, False))
        return number

    def flat(self, fields: tuple[str, ...]) -> Flat:
        """Return what was found."""
        forms = tuple(LeafForm(leaf.datatype.name, leaf.components) for leaf in self._found)
        return Flat(
            Program(tuple(self._steps), self._results, forms), tuple(leaf.name for leaf in self._found),
            tuple(leaf.datatype for leaf in self._found), tuple(self._arrays.items()), tuple(self._numbers),
            tuple(self._scalars.items()), fields, self._wide(),
        )  # fmt: skip

    def _check_leaves(self) -> None:
        """Refuse arrays of several shapes, and gathers from the numbers of items alone, which have no end."""
        program = Program(tuple(self._steps), self._results, tuple(LeafForm("") for _ in self._found))
        shapes = {name: array.shape for name, array in self._arrays.items()}
        if len(set(shapes.values())) > 1:
            self._check_shapes(program, shapes)
        for step in program.steps:
            inside = program.within(step.args[:1], ("previous", "next", "flip")) if step.kind == "gather" else ()
            is_endless = step.last is None and not program.domain(step)
            if is_endless and any(program.steps[k].kind == "index" for k in inside):
                raise ArgumentError(
                    "items are gathered from gw.index alone, which has no end: use the indices themselves, or gather "
                    "from an expression that has a leaf"
                )

    def _check_shapes(self, program: Program, shapes: Mapping[str, tuple[int, ...]]) -> None:
        for leaves in (program.aligned, *program.gathered()):
            names = [self._found[k].name for k in leaves if self._found[k].components == 1]
            check_one_shape("the expression", {name: shapes[name] for name in names if name in shapes}, broadcasts=True)

    # ---- shapes

    def _shape_of(self, step: Step) -> _Shaped:
        assert self._shaped is not None
        if step.kind in ("leaf", "component"):
            leaf = self._found[step.number]
            array = self._arrays.get(leaf.name)
            return _Shaped(step, _ANY_SHAPE if array is None else _shape_in(array, leaf.components), True)
        args = [self._shaped[k] for k in (step.args[1:] if step.kind == "gather" else step.args)]
        shapes = [arg.shape for arg in args if arg.shape is not None]
        shape = _ANY_SHAPE if _ANY_SHAPE in shapes else next(iter(shapes), None)
        return _Shaped(step, shape, any(arg.has_leaf for arg in args))

    def _of_one_shape(self, args: tuple[int, ...]) -> tuple[int, ...]:
        """Return operands in the one shape of their result, as numpy broadcasts them."""
        if self._shaped is None or len(args) < 2:
            return args
        shapes = [shape for k in args if (shape := self._shaped[k].shape) is not None]
        if len(set(shapes)) < 2:
            return args
        if _ANY_SHAPE in shapes:
            return tuple(self._spread(k, _ANY_SHAPE) if _is_one(self._shaped[k].shape) else k for k in args)
        shape = broadcast_shape("the expression", shapes)
        return tuple(k if self._shaped[k].shape in (None, shape) else self._spread(k, shape) for k in args)

    def _spread(self, operand: int, shape: tuple[int, ...]) -> int:
        """Return the step that repeats an operand in a larger shape."""
        assert self._shaped is not None
        step, own, _ = self._shaped[operand]
        assert own is not None
        spread = Spread()
        if not _is_one(own):
            if any(array.count is not None for array in self._arrays.values()):
                raise ArgumentError(
                    f"the expression: shapes {own} and {shape} are broadcast, but only the GPU knows how many items an "
                    f"Array of it has; give x.trim(), which reads it"
                )
            dimensions = merged(shape, own)
            axes = tuple(stride > 0 for _, (stride,) in dimensions)
            if all(axes) and step.kind == "leaf":  # a view of it has the shape
                array = self._arrays[self._found[step.number].name].viewed_as(shape)
                return self._added(Step("leaf", step.type, (), self._leaf(Bound(array))))
            lengths = tuple(self._length(length) for length, _ in dimensions[1:])
            spread = Spread(axes, lengths, len(dimensions) < 2 or dimensions[-1][0] % 4 == 0)
        return self._added(Step("spread", step.type, (operand,), spread, self._last(operand)), shape)

    def _length(self, length: int) -> int:
        """Return which number is a length."""
        if length not in self._lengths:
            self._lengths[length] = len(self._numbers)
            self._numbers.append(length)
        return self._lengths[length]

    def _last(self, operand: int) -> int | None:
        """Return which number is the index of the last item of an operand; None where a leaf says it."""
        _, shape, has_leaf = (None, None, True) if self._shaped is None else self._shaped[operand]
        return None if has_leaf or shape is None else self._length(max(prod(shape), 1) - 1)

    def _wide(self) -> Wide | None:
        """Return the size of results without a leaf that has it."""
        if self._shaped is None:
            return None
        results = [self._shaped[k] for k in self._results]
        shape = next((each.shape for each in results if each.shape is not None), None)
        if shape is None or any(each.has_leaf for each in results):
            return None
        from fractions import Fraction  # imports decimal, which takes 2 ms

        forms = tuple(LeafForm("", each.components) for each in self._found)
        program = Program(tuple(self._steps), self._results, forms)
        leaf = next(k for step in program.steps if step.kind == "spread" for k in program.domain(step))
        items, size = self._arrays[self._found[leaf].name].size, prod(shape)
        return Wide(shape, leaf, Fraction(items, size) if size else items + 1)

    # ---- steps

    def _step(self, node: Node, args: tuple[int, ...]) -> Step:
        kind, value, last = node.kind, node.value, None
        if kind == "leaf":
            value = self._leaf(value)
        elif kind == "component":
            leaf, place = cast("tuple[Leaf | Bound, int]", value)
            value = (self._leaf(leaf), place)
        elif kind == "number" and node.type != "bool":
            words, value = cast("tuple[int, ...]", value), len(self._numbers)
            self._numbers += words
        elif kind == "scalar":
            value = self._scalar(cast(str, value), node.type)
        elif kind == "gather":
            last = self._last(args[0])
        elif self._shaped is not None:
            args = self._of_one_shape(args)
        return Step(kind, node.type, args, value, last)

    def _scalar(self, name: str, type_name: str) -> int:
        if self._scalars.setdefault(name, type_name) != type_name:
            raise ArgumentError(f"the expression has two scalars {name!r}, of {self._scalars[name]} and {type_name}")
        if any(leaf.name == name for leaf in self._found):
            raise ArgumentError(f"the expression has a leaf and a scalar {name!r}; rename one of them")
        before = itertools.takewhile(lambda other: other != name, self._scalars)
        return sum(word_count(self._scalars[other]) for other in before)

    def _leaf(self, value: Any) -> int:
        is_argument = isinstance(value, Leaf)
        key = value.name if is_argument else (value.array.place, value.components)
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
            self._arrays[name] = value.array
            self._found.append(Leaf(name, value.datatype, value.components))
        return number


def _may_broadcast(nodes: Sequence[Node]) -> bool:
    """Whether some leaves may be repeated: arrays of several shapes, or of one item beside others."""
    shape, named = None, False
    for node in nodes:
        if node.kind == "leaf":
            value = cast("Leaf | Bound", node.value)
        elif node.kind == "component":
            value = cast("tuple[Leaf | Bound, int]", node.value)[0]
        else:
            continue
        if type(value) is Bound:
            own = _shape_in(value.array, value.components)
            if shape is not None and own != shape:
                return True
            shape = own
        else:
            named = True
    return named and _is_one(shape)


def _shape_in(array: Stored, components: int) -> tuple[int, ...]:
    """Return the shape of an array, so many of whose items are one."""
    shape = array.shape
    return shape if components == 1 else (*shape[:-1], shape[-1] // components)


def _is_one(shape: _Shape) -> bool:
    return shape is not None and prod(shape) == 1


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
