"""Primitives that read an expression in place of an array: its leaves are their arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ArgumentError, DatatypeError, LengthError
from ..planning.layout import Layout, Operand
from ..planning.signature import Argument, SameAs, UpTo, ValueRule
from ..planning.source import Source
from ..types.datatype import VALUE_DATATYPES, Datatype
from ..types.expression import Expression, Operators
from ..types.expression_functions import StructExpression
from ..types.program import Flat, flatten

#: What one-shot functions take in place of an array.
EXPRESSIONS = (Expression, StructExpression)
#: What a primitive takes in place of a datatype.
FUSED = (Operators, StructExpression, Flat)


def flat_of(expression: Any) -> Flat:
    """Return an expression, or a struct of expressions, as a program."""
    if isinstance(expression, Flat):
        return expression
    if isinstance(expression, StructExpression):
        return flatten(*expression.fields.values(), names=tuple(expression.fields))
    return flatten(expression.as_expression())


class _Number(ValueRule):
    """A scalar of an expression: one word, or two."""

    def __init__(self, type_name: str):
        self._datatype = VALUE_DATATYPES[type_name]

    @property
    def name(self) -> str:
        """Its type, in messages."""
        return f"a number of {self._datatype}"

    def words(self, value: Any, what: str) -> tuple[int, ...]:
        """Return the words; raise DatatypeError if the value is no number of the type."""
        if isinstance(value, Operators):
            name = what.rsplit(" ", 1)[-1]
            raise DatatypeError(
                f"{what} is {value!r:.60}, but must be {self.name}; to read an Array of one item, use "
                f"gw.gather(gw.{self._datatype}('{name}'), 0) in the expression, in place of gw.scalar"
            )
        given = np.asarray(value)
        kinds = "biuf" if self._datatype.dtype.kind == "f" else "biu"
        if given.shape != () or given.dtype.kind not in kinds:
            raise DatatypeError(f"{what} is {value!r:.60}, but must be {self.name}")
        with np.errstate(over="ignore"):
            held = given.astype(self._datatype.dtype)
        if self._datatype.dtype.kind != "f" and int(held) != int(given):
            raise DatatypeError(f"{what} is {value!r:.60}, which {self._datatype} does not hold")
        return tuple(held.reshape(1).view(np.uint32).tolist())


class OfProgram:
    """What has the program of an expression: its datatype, and the scalars that it asks for."""

    flat: Flat

    @property
    def datatype(self) -> Datatype:
        """The datatype of its items; bools are u32."""
        return self.flat.datatype

    @property
    def values(self) -> dict[str, ValueRule]:
        """The rules of its scalars."""
        return {name: _Number(kind) for name, kind in self.flat.scalars}


class Fusion(OfProgram):
    """An expression that a primitive reads as one of its arguments.

    Parameters
    ----------
    flat : Flat
    argument : str
        The argument whose place it takes.
    """

    def __init__(self, flat: Flat, argument: str = "input"):
        self.flat: Flat = flat
        self.argument = argument

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays that are part of it, by the names of their leaves."""
        return dict(self.flat.arrays)

    @cached_property
    def _measure(self) -> tuple[int, Any] | None:
        """The leaf that says how many items there are, and how many of its items are one; None if none does."""
        if self.flat.wide is not None:
            return self.flat.wide.leaf, self.flat.wide.per
        aligned, forms = self.flat.program.aligned, self.flat.program.leaves
        found = next((k for k in aligned if forms[k].components == 1), aligned[0] if aligned else None)
        return None if found is None else (found, forms[found].components)

    def arguments(self, arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """Return a primitive's arguments with the leaves in place of the one that this expression is.

        Raises
        ------
        ArgumentError
            If a leaf is called as another argument, or nothing says how many items there are.
        """
        own = next(each for each in arguments if each.name == self.argument)
        others = {each.name for each in arguments} - {self.argument}
        for name in (*self.flat.names, *self.values):
            if name in others:
                raise ArgumentError(f"a leaf cannot be called {name!r}, as another argument; rename it")
        found: list[Argument] = []
        for each in arguments:
            if each.name == self.argument:
                found += self._leaves(own)
                continue
            length = each.length
            if isinstance(length, (SameAs, UpTo)) and length.argument == self.argument:
                each = replace(each, length=self._length_of_all(length))
            found.append(each)
        if self._measure is None and not any(each.is_output and each.length is None for each in found):
            raise ArgumentError(
                "nothing says how many items the expression has: it has no leaf that is read item by item; add one, "
                "such as gw.u32('x')"
            )
        return tuple(found)

    def _length_of_all(self, length: SameAs | UpTo) -> Any:
        if self.measure is None:
            return None
        name, per = self.measure
        return replace(length, argument=name, per=length.per * per)

    def _leaves(self, own: Argument) -> list[Argument]:
        """Return the arguments that are leaves, those that others refer to first."""
        program, names, (measure, _) = self.flat.program, self.flat.names, self._measure or (-1, 1)
        same = {k: measure for k in program.aligned if k != measure}
        for leaves in program.gathered():
            same |= {k: leaves[0] for k in leaves[1:] if k not in same and k != measure and leaves[0] != k}
        found: list[Argument] = []
        for k, datatype in enumerate(self.flat.datatypes):
            form, length = program.leaves[k], None
            if k in same:
                other = program.leaves[same[k]]
                length = SameAs(names[same[k]], times=form.components, per=other.components)
            whole = form.components == 1
            found.append(
                replace(own, name=names[k], datatype=datatype, length=length, any_shape=True,
                        chunked=own.chunked and whole, in_order=k in program.streamed,
                        is_apart=k not in program.aligned, components=form.components)
            )  # fmt: skip
        return found

    @property
    def measure(self) -> tuple[str, Any] | None:
        """The leaf that says how many items there are, and how many of its items are one; None if none does."""
        return None if self._measure is None else (self.flat.names[self._measure[0]], self._measure[1])

    def stream_leaves(self, own: Argument) -> Iterator[tuple[Argument, bool, int]]:
        """Yield the arguments that are leaves, whether one is the measure, and the components of an item of it."""
        measure, per = self._measure or (-1, 1)
        for k, leaf in enumerate(self._leaves(own)):
            yield leaf, k == measure, per if k == measure else self.flat.program.leaves[k].components

    def source(self, layout: Layout, items: int) -> Source:
        """Return the expression as a kernel reads it, with so many items.

        Raises
        ------
        LengthError
            If items of a leaf are gathered that has none.
        """
        flat, program = self.flat, self.flat.program
        for k in {k for gathered in program.gathered() for k in gathered}:
            if items and layout[flat.names[k]].length == 0:
                raise LengthError(f"items of {flat.names[k]} are gathered, but it is empty; give at least one item")
        return Source(
            items * len(program.results), "", item_bytes=self.datatype.element_bytes, program=program,
            leaves=tuple(layout[name] for name in flat.names),
            numbers=flat.numbers, scalars=flat.scalar_words(layout.values_given),
            end=max(items, 1) - 1, is_struct=bool(flat.fields),
        )  # fmt: skip

    def read_from(self, layout: Layout) -> Source:
        """Return the expression as a kernel reads it.

        Raises
        ------
        LengthError
            If a leaf of several components has a part of an item.
        """
        flat, measure = self.flat, self.measure
        items: Any = layout["output" if measure is None else measure[0]].length
        if measure is not None:
            name, per = measure
            if items % per and flat.wide is None:
                raise LengthError(f"{name} has {items} items, but is of {per} components; give a multiple of {per}")
            items //= per
        elif flat.fields:
            items //= len(flat.fields)
        return self.source(layout, items)

    def reads(self, layout: Layout) -> Layout:
        """Return a layout with the expression in place of its leaves, for the plan."""
        operands: dict[str, Operand] = {self.argument: self.read_from(layout)}
        operands |= {name: operand for name, operand in layout.items() if name not in self.flat.names}
        return Layout(operands, layout.values_given)
