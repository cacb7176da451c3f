"""Shapes by the number of items: the rows of a table, and what was tuned for some lengths laid over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar


@dataclass(frozen=True)
class Shape:
    """The shape of a kernel.

    Attributes
    ----------
    workgroup_size : int
        Invocations.
    vecs : int
        vec4 loads per invocation and tile.
    max_blocks : int
        Most workgroups of kernels that give each workgroup a block of tiles.
    """

    workgroup_size: int
    vecs: int
    max_blocks: int = 0

    @property
    def tile_items(self) -> int:
        """Items that a workgroup does at once."""
        return self.workgroup_size * self.vecs * 4


#: No array has more: a range up to here has no end.
MOST_ITEMS = (1 << 63) - 1

AnyShape = TypeVar("AnyShape")
#: Up to so many items this shape; None in the last row.
Rows: TypeAlias = tuple[tuple[int | None, AnyShape], ...]


@dataclass(frozen=True)
class Shapes(Generic[AnyShape]):
    """The shapes of a kernel by the number of items: the pipelines of all of them are made together.

    Attributes
    ----------
    rows : tuple of (int or None, Shape)
        Up to so many items this shape; None in the last row. (Or whatever else goes by the number of items.)
    source : {"default", "argument", "fixed"}
        Where they are from: the model, the caller, or a fixed order of additions.
    tuned : tuple of int
        The rows that `gridwise tune` found, by their index.
    """

    rows: Rows[AnyShape]
    source: str = "default"
    tuned: tuple[int, ...] = ()

    def at(self, n: int) -> AnyShape:
        """Return the shape for `n` items."""
        return next(shape for up_to, shape in self.rows if up_to is None or n <= up_to)

    def source_of(self, shape: AnyShape) -> str:
        """Return where a shape of a row is from: `source`, or ``"tuned"``."""
        return "tuned" if any(self.rows[i][1] == shape for i in self.tuned) else self.source

    def all_for(self, n: int) -> tuple[AnyShape, ...]:
        """Return the shape for `n` items, and behind it those for other lengths."""
        return tuple(dict.fromkeys((self.at(n), *(shape for _, shape in self.rows))))


def overlay(rows: Rows[AnyShape], ranges: Sequence[tuple[int, int, AnyShape]]) -> Shapes[AnyShape]:
    """Return rows with other shapes for some lengths: above so many items, up to so many. Later ranges win."""
    ends = {up_to for up_to, _ in rows if up_to is not None}
    ends |= {end for above, up_to, _ in ranges for end in (above, up_to) if 0 < end < MOST_ITEMS}
    found: list[tuple[int | None, AnyShape]] = []
    tuned: list[int] = []
    for end in [*sorted(ends), None]:
        over = [shape for above, up_to, shape in ranges if above < (end or MOST_ITEMS) <= up_to]
        if over:
            tuned.append(len(found))
        found.append((end, over[-1] if over else Shapes(rows).at(end or MOST_ITEMS)))
    return Shapes(tuple(found), tuned=tuple(tuned))
