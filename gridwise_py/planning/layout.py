"""Lengths, offsets and buffers of a call's arguments, as the plain data that plans are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

#: The argument, of one u32, that says how many of the items count.
COUNT = "n"


@dataclass(frozen=True)
class Operand:
    """One argument, as a kernel accesses it.

    Attributes
    ----------
    length : int
        In items; of complex numbers and structs in words.
    buffer : str
        The buffer of the plan that holds it.
    offset : int
        First item in its binding.
    vec4 : bool
        Whether the binding may be declared as an array of vec4.
    size_bytes : int
    item_bytes : int
        4 where words are counted.
    begin_bytes : int
        Start of the binding in the buffer.
    chunks : tuple of Operand
        Those of a `ChunkedArray`, each with its own binding; `buffer` and what follows are then unused.
    """

    length: int
    buffer: str
    offset: int = 0
    vec4: bool = True
    size_bytes: int = 0
    item_bytes: int = 4
    begin_bytes: int = 0
    chunks: tuple[Operand, ...] = ()

    @property
    def parts(self) -> tuple[Operand, ...]:
        """Its chunks, or itself if it has none."""
        return self.chunks or (self,)

    @property
    def streams(self) -> tuple[tuple[Operand, int], ...]:
        """What is read from the first item to the last, which windows split: itself; and how many items are one."""
        return ((self, 1),)

    def window(self, first: int, length: int, part: Callable[[Operand, int, int], Operand]) -> Operand:
        """Return a range of its items, cut by `part`."""
        return part(self, first, length)

    def overlaps(self, other: Operand) -> bool:
        """Whether it shares bytes with another operand."""
        return any(
            a.buffer == b.buffer and a.first_byte < b._end_byte and b.first_byte < a._end_byte
            for a in self.parts
            for b in other.parts
        )

    @property
    def nbytes(self) -> int:
        """Bytes of its items."""
        return self.length * self.item_bytes

    @property
    def first_byte(self) -> int:
        """Position of the first item in the plan's buffer."""
        return self.begin_bytes + self.offset * self.item_bytes

    @property
    def _end_byte(self) -> int:
        return self.first_byte + self.length * self.item_bytes

    def by_words(self) -> Operand:
        """Return it for a kernel in which different invocations write items of one vec4."""
        return replace(self, vec4=False)


class Layout(Mapping[str, Operand]):
    """An immutable mapping from argument names to operands."""

    __slots__ = ("_hash", "_operands", "values_given")

    def __init__(self, operands: Mapping[str, Operand], values: Mapping[str, tuple[int, ...]] | None = None):
        self._operands = dict(operands)
        #: The words of the arguments that are values.
        self.values_given: dict[str, tuple[int, ...]] = dict(values or {})
        self._hash = hash((tuple(self._operands.items()), tuple(self.values_given.items())))

    @classmethod
    def separate(cls, item_bytes: Mapping[str, int] | None = None, /, **lengths: int) -> Layout:
        """Return the layout of arguments that are each at the start of a separate buffer.

        Parameters
        ----------
        item_bytes : mapping from str to int, optional
            Item sizes of the arguments whose items do not have 4 bytes.
        **lengths : int
            Number of items of each argument.
        """
        sizes = {name: (item_bytes or {}).get(name, 4) for name in lengths}
        return cls(
            {
                name: Operand(n, name, size_bytes=max(16, -(-n * sizes[name] // 16) * 16), item_bytes=sizes[name])
                for name, n in lengths.items()
            }
        )

    def with_values(self, values: Mapping[str, tuple[int, ...]]) -> Layout:
        """Return it with the words of the arguments that are values."""
        return Layout(self._operands, values)

    def shares(self, first: str, second: str) -> bool:
        """Whether two arguments are in one buffer, and one of them is written."""
        return any(a.buffer == b.buffer for a in self[first].parts for b in self[second].parts)

    def __getitem__(self, name: str) -> Operand:
        return self._operands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._operands)

    def __len__(self) -> int:
        return len(self._operands)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Layout) and self._operands == other._operands and self.values_given == other.values_given
        )

    def __repr__(self) -> str:
        return f"Layout({self._operands})"
