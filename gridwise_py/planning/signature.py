"""The arguments of a primitive, as data: names, datatypes, lengths, and which of them may overlap.

A class lists `Argument` objects. The `Signature` of one primitive has the same list, with every reference to an
attribute of the primitive replaced by its value. Calls are checked against the signature.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal, Protocol, TypeAlias, get_args

from ..errors import ArgumentError, LengthError
from ..types.datatype import DATATYPES, Datatype
from ..types.shapes import check_one_shape
from .layout import COUNT

#: Whether an output may share items with an input: not at all, if both are exactly the same view, or in any way.
Overlap: TypeAlias = Literal["never", "same view", "any"]


@dataclass(frozen=True)
class SameAs:
    """As many items as another argument.

    Attributes
    ----------
    argument : str
    remedy : str
        What a message recommends.
    times, per : int
        The length is the other one's times `times`, divided by `per`.
    """

    argument: str
    remedy: str = "slice them to one length"
    times: int = 1
    per: int = 1

    def of(self, length: int) -> int:
        """Return the length, given that of the other argument."""
        return length * self.times // self.per


@dataclass(frozen=True)
class Product:
    """As many items as the product of attributes of the primitive."""

    attributes: tuple[str, ...]
    values: tuple[int, ...] = ()

    @property
    def items(self) -> int:
        """The number of items, once the values are known."""
        return prod(self.values)


@dataclass(frozen=True)
class UpTo:
    """At most as many items as another argument; the GPU counts them.

    Attributes
    ----------
    argument : str
        Whose length is the capacity.
    count : str
        The output (u32) that holds the count.
    item : int
        Which item of that.
    most : int, optional
        A smaller capacity; the count may be larger.
    room : int, optional
        The capacity, in place of that.
    plus : str, optional
        An argument whose length is added.
    per : int
        By which the length is divided.
    """

    argument: str
    count: str
    item: int = 0
    most: int | None = None
    room: int | None = None
    plus: str | None = None
    per: int = 1


Length: TypeAlias = int | SameAs | Product | UpTo | Callable[[Mapping[str, int]], int] | None


@dataclass(frozen=True)
class Argument:
    """A named argument of a primitive.

    Attributes
    ----------
    name : str
    is_output : bool
    is_read : bool
        Of outputs: whether what they held may be read, so that a repetition is other work.
    datatype : str, Datatype or None
        Or the name of the primitive's attribute that has it; None for any.
    length : int, SameAs, Product, UpTo, callable or None
        None: any; an output must then be given. A callable gets the lengths of the inputs.
    overlap : {"never", "same view", "any"}
        Of outputs: with another argument.
    replaces : str or None
        The input that it overwrites with ``overwrite_input=True``.
    aligned : bool
        Whether the view must start where the binding does.
    chunked : bool
        Whether `ChunkedArray` will do.
    any_shape : bool
        Otherwise it has one dimension, or, with `SameAs`, the other's shape.
    cast : str or None
        What a message recommends for another datatype.
    fed : bool
        Of inputs of one item of 4 bytes: whether plans copy it into their parameters.
    is_apart : bool
        Whether ``n=`` does not count its items: offsets, what is gathered from.
    ascending : bool
        Whether its items must ascend. Nothing checks this.
    components : int
        How many numbers count as one item.
    in_order : bool
        Whether item i of an output depends on item i alone.
    """

    name: str
    is_output: bool = False
    is_read: bool = False
    datatype: str | Datatype | None = "datatype"
    length: Length = None
    overlap: Overlap = "never"
    replaces: str | None = None
    aligned: bool = False
    chunked: bool = False
    any_shape: bool = False
    cast: str | None = None
    fed: bool = False
    is_apart: bool = False
    ascending: bool = False
    components: int = 1
    in_order: bool = True

    def __post_init__(self) -> None:
        if self.overlap not in get_args(Overlap):
            raise ArgumentError(
                f"argument {self.name!r} has overlap={self.overlap!r}; known are {', '.join(get_args(Overlap))}"
            )

    def resolved(self, primitive: Any) -> Argument:
        """Return the argument with the primitive's values in place of the names of its attributes."""
        datatype, length, replaces = self.datatype, self.length, self.replaces
        if isinstance(datatype, str):
            datatype = getattr(primitive, datatype)
        if isinstance(length, Product):
            length = Product(length.attributes, tuple(getattr(primitive, name) for name in length.attributes))
        if not primitive.overwrite_input:
            replaces = None
        return replace(self, datatype=datatype, length=length, replaces=replaces)


class ValueRule(Protocol):
    """An argument that is a value, not an array: it becomes words of the plan."""

    @property
    def name(self) -> str:
        """Its type, in messages."""
        ...

    def words(self, value: Any, what: str) -> tuple[int, ...]:
        """Return the value as words of 4 bytes; raise an ArgumentError that begins with `what`."""
        ...


#: How many items of the inputs count, where only the GPU knows it.
COUNT_ARGUMENT = Argument(
    COUNT, datatype=DATATYPES["u32"], length=1, fed=True, any_shape=True,
    cast="convert it on the GPU: n.astype('u32')",
)  # fmt: skip


@dataclass(frozen=True)
class Signature:
    """The rules for the arguments of one primitive.

    Attributes
    ----------
    primitive : str
    arguments : dict from str to Argument
    values : dict from str to ValueRule
    takes_count : bool
        Whether calls may have ``n``.
    """

    primitive: str
    arguments: dict[str, Argument]
    values: Mapping[str, ValueRule] = field(default_factory=dict[str, ValueRule])
    takes_count: bool = False

    @classmethod
    def of(
        cls, primitive: Any, arguments: Iterable[Argument], values: Mapping[str, ValueRule] | None = None
    ) -> Signature:
        """Return the signature of a primitive, from its arguments and its attributes."""
        resolved = {argument.name: argument.resolved(primitive) for argument in arguments}
        signature = cls(primitive.name, resolved, dict(values or {}), primitive.takes_count)
        if signature.takes_count and COUNT in resolved:
            raise ArgumentError(f"{primitive.name}: {COUNT}= is the number of items that count; rename that argument")
        for argument in resolved.values():
            others = tuple(getattr(argument.length, name, None) for name in ("argument", "count", "plus"))
            for other in (*others, argument.replaces):
                if other is not None and other not in resolved:
                    raise ArgumentError(
                        f"{primitive.name}: argument {argument.name!r} refers to {other!r}, which is not an argument"
                    )
        return signature

    @functools.cached_property
    def inputs(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(name for name, argument in self.arguments.items() if not argument.is_output)

    @functools.cached_property
    def outputs(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(name for name, argument in self.arguments.items() if argument.is_output)

    def rule(self, name: str) -> Argument:
        """Return the rule for an argument, or for the count of the items."""
        return COUNT_ARGUMENT if name == COUNT and self.takes_count else self.arguments[name]

    def is_counted(self, name: str) -> bool:
        """Whether an argument has an item for each item of an input, and so as many as count."""
        rule = self.arguments[self.length_like(name)]
        own = self.arguments[name]
        return rule.length is None and not rule.is_output and not rule.is_apart and not own.is_apart

    def datatype(self, name: str) -> Datatype | None:
        """Return the datatype that an argument must have; None for any."""
        datatype = self.rule(name).datatype
        assert not isinstance(datatype, str), "a resolved argument has no reference"
        return datatype

    def words(
        self, given: Mapping[str, Any], before: Mapping[str, tuple[int, ...]] | None = None
    ) -> dict[str, tuple[int, ...]]:
        """Return the words of the arguments that are values: those given, else those of the previous call.

        Raises
        ------
        ArgumentError
            If a value is missing, or is not of its type.
        """
        words: dict[str, tuple[int, ...]] = {}
        for name, rule in self.values.items():
            if given.get(name) is not None:
                words[name] = rule.words(given[name], f"{self.primitive}: {name}")
            elif before is not None:
                words[name] = before[name]
        missing = [f"{name}= ({rule.name})" for name, rule in self.values.items() if name not in words]
        if missing:
            raise ArgumentError(f"{self.primitive} needs {', '.join(missing)}")
        return words

    def check_lengths(self, lengths: Mapping[str, int]) -> None:
        """Raise LengthError if the lengths of the inputs do not match each other or the primitive."""
        for name in self.inputs:
            rule, length = self.arguments[name].length, lengths[name]
            if isinstance(rule, SameAs) and length != rule.of(lengths[rule.argument]):
                described = ", ".join(f"{name} has {n} items" for name, n in lengths.items())
                raise LengthError(f"{self.primitive}: lengths differ: {described}; {rule.remedy}")
            if isinstance(rule, int) and length != rule:
                raise LengthError(f"{self.primitive}: {name} has {length} items, but takes {rule}")
            if isinstance(rule, Product) and length != rule.items:
                named = " times ".join(f"{a}={value}" for a, value in zip(rule.attributes, rule.values, strict=True))
                raise LengthError(
                    f"{self.primitive}: {name} has {length} items, but {named} is {rule.items}; give one of "
                    f"{' × '.join(map(str, rule.values))} items, or make a {self.primitive} with other sizes"
                )

    def check_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise where an argument has several dimensions, or none, and the primitive works along one.

        Raises
        ------
        ArgumentError
            If it works along one.
        LengthError
            If arguments of one length have different shapes.
        """
        for name, shape in shapes.items():
            rule = self.rule(name)
            if len(shape) != 1 and not rule.any_shape:
                raise ArgumentError(
                    f"{self.primitive}: {name} has shape {shape}, but {self.primitive} works along one dimension; for "
                    f"all items give {name}.ravel(), which copies nothing"
                )
            if (
                isinstance(rule.length, SameAs)
                and rule.length.times == rule.length.per
                and rule.length.argument in shapes
            ):
                check_one_shape(self.primitive, {each: shapes[each] for each in (rule.length.argument, name)})

    def output_length(self, name: str, lengths: Mapping[str, int]) -> int | None:
        """Return the capacity that an output needs, given the lengths of the inputs; None if the rule has none."""
        rule = self.arguments[name].length
        if isinstance(rule, (SameAs, UpTo)):
            known = rule.argument in lengths
            length = lengths[rule.argument] if known else self.output_length(rule.argument, lengths)
            if length is None:
                return None
            if isinstance(rule, SameAs):
                return rule.of(length)
            if rule.room is not None:
                return rule.room
            if rule.plus is not None:
                length += lengths[rule.plus]
            length //= rule.per
            return length if rule.most is None else min(length, rule.most)
        if callable(rule):
            return rule(lengths)
        return rule.items if isinstance(rule, Product) else rule

    def length_like(self, name: str) -> str:
        """Follow the length rules to the argument that sets the length; return its name."""
        rule = self.arguments[name].length
        return self.length_like(rule.argument) if isinstance(rule, (SameAs, UpTo)) else name

    def may_overlap(self, output: str, argument: str, identical: bool) -> bool:
        """Whether an output may share items with another argument; `identical` if both are the same view."""
        rule = self.arguments[output]
        if rule.replaces == argument:
            return identical
        same = identical and self.arguments[argument].in_order
        return rule.overlap == "any" or (rule.overlap == "same view" and same)
