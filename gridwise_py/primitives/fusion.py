"""Primitives that read an expression in place of an array: its leaves are their arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import ArgumentError
from ..planning.layout import Layout, Operand
from ..planning.signature import Argument, SameAs, UpTo
from ..planning.source import Source
from ..types.datatype import DATATYPES, Datatype
from ..types.program import Flat

__all__ = ["Fusion"]


class Fusion:
    """An expression that a primitive reads as one of its arguments.

    Parameters
    ----------
    flat : Flat
    argument : str
        The argument whose place it takes.
    """

    def __init__(self, flat: Flat, argument: str = "input"):
        self.flat = flat
        self.argument = argument

    @property
    def datatype(self) -> Datatype:
        """The datatype of its items; bools are read as u32."""
        return DATATYPES["u32" if self.flat.type == "bool" else self.flat.type]

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays that are part of it, by the names of their leaves."""
        return dict(self.flat.arrays)

    def arguments(self, arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """Return a primitive's arguments with the leaves in place of the one that this expression is.

        Raises
        ------
        ArgumentError
            If a leaf is called as another argument, or no leaf says how many items there are.
        """
        own = next(each for each in arguments if each.name == self.argument)
        streamed = [self.flat.names[k] for k in sorted(self.flat.program.streamed)]
        if not streamed:
            raise ArgumentError(
                "the expression has no leaf that says how many items there are; add one, such as gw.u32('x')"
            )
        first = streamed[0]
        others = {each.name for each in arguments} - {self.argument}
        leaves: list[Argument] = []
        for name, datatype in zip(self.flat.names, self.flat.datatypes, strict=True):
            if name in others:
                raise ArgumentError(f"a leaf cannot be called {name!r}, as another argument; rename it")
            leaves.append(replace(own, name=name, datatype=datatype, length=None if name == first else SameAs(first)))
        found: list[Argument] = []
        for each in arguments:
            if each.name == self.argument:
                found += leaves
                continue
            length = each.length
            if isinstance(length, (SameAs, UpTo)) and length.argument == self.argument:
                each = replace(each, length=replace(length, argument=first))
            found.append(each)
        return tuple(found)

    def read_from(self, layout: Layout) -> Source:
        """Return the expression as a kernel reads it."""
        flat = self.flat
        leaves = tuple(layout[name] for name in flat.names)
        length = leaves[min(flat.program.streamed)].length
        return Source(length, "", program=flat.program, leaves=leaves, numbers=flat.numbers)

    def reads(self, layout: Layout) -> Layout:
        """Return a layout with the expression in place of its leaves, for the plan."""
        operands: dict[str, Operand] = {self.argument: self.read_from(layout)}
        operands |= {name: operand for name, operand in layout.items() if name not in self.flat.names}
        return Layout(operands)
