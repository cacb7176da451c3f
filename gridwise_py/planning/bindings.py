"""Which bindings a kernel gets for its arguments: parts of buffers, segments of a part that is too large, chunks."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import ArgumentError, LimitError
from ..types.capabilities import Capabilities
from .accessors import ELEMENT_BYTES, Chooser, Range, Variable
from .layout import Operand
from .plan import Access
from .windows import binding_limit

PartKey = tuple[str, int, int]


def part_key(operand: Operand) -> PartKey:
    """Return what tells the part of a buffer that an array lies in from others."""
    return (operand.buffer, operand.begin_bytes, operand.size_bytes)


def apart(operands: Mapping[str, Operand], writes: Collection[str]) -> Mapping[str, Operand]:
    """Return operands in parts of buffers that do not overlap where one of them is written, as WebGPU demands.

    Parts of one buffer begin at multiples of an alignment, so neighbours overlap by less than that. They become one.

    Parameters
    ----------
    operands : mapping from str to Operand
        All that a kernel reaches.
    writes : collection of str
        The names of those that it writes.
    """
    written = {array.buffer for name in writes for array in operands[name].parts if array.length}
    found: dict[str, set[tuple[int, int]]] = {}
    for array in (array for operand in operands.values() for array in operand.parts if array.length):
        if array.buffer in written:
            found.setdefault(array.buffer, set()).add((array.begin_bytes, array.begin_bytes + array.size_bytes))
    if all(len(ranges) == 1 for ranges in found.values()):
        return operands
    whole: dict[tuple[str, int], tuple[int, int]] = {}  # by buffer and begin
    for buffer, ranges in found.items():
        joined: list[list[int]] = []
        for begin, end in sorted(ranges):
            if joined and begin < joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], end)
            else:
                joined.append([begin, end])
        for begin, _ in ranges:
            whole[buffer, begin] = next((first, last) for first, last in joined if first <= begin < last)

    def in_whole(array: Operand) -> Operand:
        begin, end = whole.get((array.buffer, array.begin_bytes), (array.begin_bytes, 0))
        if array.length == 0 or end - begin <= array.size_bytes:
            return array
        offset = array.offset + (array.begin_bytes - begin) // array.item_bytes
        return replace(array, offset=offset, size_bytes=end - begin, begin_bytes=begin)

    return {
        name: replace(operand, chunks=tuple(map(in_whole, operand.chunks))) if operand.chunks else in_whole(operand)
        for name, operand in operands.items()
    }


def bound_parts(
    primitive: str,
    operands: Mapping[str, Operand],
    writes: Collection[str],
    capabilities: Capabilities,
    *,
    units: Mapping[str, int] | None = None,
) -> tuple[dict[PartKey, BoundPart], dict[tuple[Operand, ...], BoundChunks]]:
    """Return the parts of buffers that a kernel binds, and what lies in chunks, by these.

    Parameters
    ----------
    primitive : str
        Its name, for messages.
    operands : mapping from str to Operand
        All that the kernel reaches.
    writes : collection of str
        The names of those that it writes.
    capabilities : Capabilities
    units : mapping from str to int, optional
        Of a kernel that reaches rows: how many consecutive bytes of each operand an invocation reads or writes.

    Raises
    ------
    LimitError
        If a binding has 2^32 items or more, or the chunks of an argument cannot be reached by one type.
    ArgumentError
        If a chunk of items of 8 or 16 bits begins in the middle of a word.
    """
    limit = binding_limit(capabilities)
    alignment = max(16, capabilities.limits["min-storage-buffer-offset-alignment"])
    arrays = {name: [part for part in operand.parts if part.length] or [operand] for name, operand in operands.items()}
    # WebGPU allows no read binding next to a writable one of the same buffer.
    written = {array.buffer for name in writes for array in arrays[name]}
    parts: dict[PartKey, BoundPart] = {}
    for key in dict.fromkeys(part_key(array) for found in arrays.values() for array in found):
        members = [(name, array) for name, found in arrays.items() for array in found if part_key(array) == key]
        size_bytes = key[2]
        segmented = size_bytes > limit
        segment_bytes = limit // alignment * alignment if segmented else size_bytes
        # A segment's vec4 is written as a whole only; and a vec4 of chunks may lie in two of them.
        by_words = segmented and any(name in writes for name, _ in members)
        elements = [array.by_words() if by_words or operands[name].chunks else array for name, array in members]
        if any(array.offset + array.length >= 1 << 32 for _, array in members):
            raise LimitError(
                f"{primitive}: {', '.join(dict.fromkeys(name for name, _ in members))} end behind item 2^32 of a "
                f"binding, but kernels count items in 32 bits; split the data into smaller parts"
            )
        parts[key] = BoundPart(
            # Names in the text must not depend on how an argument is called where the kernel does the same.
            f"words_{len(parts) + 1}",
            (
                _element(elements, key[0] in written)
                if units is None
                else _element_of_rows(elements, key[0] in written, min(units.get(name, 4) for name, _ in members))
            ),
            "read_write" if key[0] in written else "read",
            size_bytes,
            segment_bytes,
            -(-size_bytes // max(segment_bytes, 1)),
        )
    chunks: dict[tuple[Operand, ...], BoundChunks] = {}
    for name, operand in operands.items():
        if operand.chunks and operand.chunks not in chunks:
            var = f"chunks_{len(chunks) + 1}"
            chunks[operand.chunks] = _bound_chunks(primitive, name, var, operand, arrays[name], parts)
    return parts, chunks


def _bound_chunks(
    primitive: str,
    name: str,
    var: str,
    operand: Operand,
    arrays: Sequence[Operand],
    parts: Mapping[PartKey, BoundPart],
) -> BoundChunks:
    """Return an argument's chunks, as a kernel reaches them."""
    if operand.length >= 1 << 32:
        raise LimitError(
            f"{primitive}: the chunks of {name} have {operand.length} items, but kernels that reach any of them count "
            f"in 32 bits; split the data into smaller parts"
        )
    ranges: list[_Range] = []
    firsts = itertools.accumulate((array.length for array in arrays), initial=0)
    for first, array in zip(firsts, arrays, strict=False):
        together = 4 // array.item_bytes  # items of a word, in which they are reached
        if together > 1 and (first % together or array.offset % together):
            raise ArgumentError(
                f"{primitive}: a chunk of {name} begins at item {first}, and at item {array.offset} of its binding, "
                f"but items of {8 * array.item_bytes} bits are reached {together} at a time: both must be multiples of "
                f"{together}; use chunks whose lengths are multiples of {together}"
            )
        ranges += _ranges(first, array, parts[part_key(array)])
    values = {"u32" if each.part.element == "atomic<u32>" else each.part.element for each in ranges}
    if len(values) > 1:
        raise LimitError(
            f"{primitive}: some chunks of {name} share a buffer with items of another size that are written; give them "
            f"buffers of their own"
        )
    return BoundChunks(var, tuple(ranges), operand.item_bytes)


@dataclass(frozen=True)
class BoundPart:
    """A part of a buffer, as a kernel binds it: by one variable, or one for each of several segments."""

    var: str
    element: str
    access: Access
    size_bytes: int
    segment_bytes: int
    segments: int

    def var_of(self, segment: int) -> str:
        """Return the variable of a segment."""
        return self.var if self.segments == 1 else f"{self.var}_{segment}"

    def bytes_of(self, segment: int) -> int:
        """Return the size of a segment; the last one has the rest."""
        return min(self.segment_bytes, self.size_bytes - segment * self.segment_bytes)

    def variable(self, segment: int) -> Variable:
        """Return the binding of a segment."""
        return Variable(self.var_of(segment), self.element)

    @property
    def place(self) -> Variable | Chooser:
        """How the text reaches an element."""
        if self.segments == 1:
            return self.variable(0)
        return Chooser(
            self.var, self.element, tuple(self._in(ELEMENT_BYTES[self.element])), self.access == "read_write"
        )

    def items(self, item_bytes: int) -> tuple[Range, ...]:
        """Return the items of each segment if there are several."""
        if self.segments == 1:
            return ()
        elements = self.segment_bytes // ELEMENT_BYTES[self.element]
        return tuple(replace(each, shift=s * elements) for s, each in enumerate(self._in(item_bytes)))

    def _in(self, unit_bytes: int) -> Iterator[Range]:
        """Return the segments in units of so many bytes, which are whole: segments begin at multiples of 16 bytes."""
        length = self.segment_bytes // unit_bytes
        for s in range(self.segments):
            yield Range(s * length, (s + 1) * length, s * length, self.variable(s))


@dataclass(frozen=True)
class _Range:
    """Items `begin` to `end` of an argument, which a segment of a part holds from its item `begin` - `shift` on."""

    begin: int
    end: int
    shift: int
    part: BoundPart
    segment: int


def _ranges(first: int, array: Operand, part: BoundPart) -> Iterator[_Range]:
    """Return where a chunk, which begins with item `first` of all, lies in the segments of its part."""
    length = part.segment_bytes // array.item_bytes
    for segment in range(part.segments):
        begin = max(array.offset, segment * length)
        end = min(array.offset + array.length, (segment + 1) * length)
        if begin < end:
            shift = first - array.offset
            yield _Range(begin + shift, end + shift, shift + segment * length, part, segment)


@dataclass(frozen=True)
class BoundChunks:
    """Items that lie in several arrays, one after the other, as a kernel reaches them."""

    var: str
    ranges: tuple[_Range, ...]
    item_bytes: int

    @property
    def segments(self) -> int:
        """How many there are to choose from."""
        return len(self.ranges)

    @property
    def element(self) -> str:
        """The WGSL type of an element, the same for all of them."""
        return self.ranges[0].part.element

    def _elements(self, items: int) -> int:
        """Return how many elements so many items are."""
        return -(-items * self.item_bytes // ELEMENT_BYTES[self.element])

    @property
    def place(self) -> Chooser:
        """How the text reaches an element."""
        ranges = tuple(
            Range(
                self._elements(each.begin), self._elements(each.end), self._elements(each.shift),
                each.part.variable(each.segment),
            )
            for each in self.ranges
        )  # fmt: skip
        # A chunk that is only read may share its buffer with something that is written.
        writable = all(each.part.access == "read_write" for each in self.ranges)
        return Chooser(self.var, self.element, ranges, writable)

    def items(self, item_bytes: int) -> tuple[Range, ...]:
        """Return the items of each chunk, or of each of its segments."""
        return tuple(
            Range(each.begin, each.end, self._elements(each.shift), each.part.variable(each.segment))
            for each in self.ranges
        )


def _element(operands: Sequence[Operand], written: bool) -> str:
    """Return the WGSL type by which a binding is declared: the widest that all its operands can be reached by.

    Items of 1 and 2 bytes are written as parts of words, and another invocation may write the rest.
    """
    sizes = {operand.item_bytes for operand in operands}
    if sizes & {1, 2} and written:
        return "atomic<u32>"
    if sizes == {2}:
        return "vec2<u32>" if all(operand.vec4 for operand in operands) else "u32"
    if sizes == {8}:
        return "vec2<u32>"
    return "vec4<u32>" if sizes == {4} and all(operand.vec4 for operand in operands) else "u32"


def _element_of_rows(operands: Sequence[Operand], written: bool, unit_bytes: int) -> str:
    """Return the WGSL type of a binding of a kernel that reaches rows.

    Where an invocation reads or writes whole elements, nothing but the items' size in bytes matters. Otherwise small
    items are written as parts of words, of which another invocation may write the rest.
    """
    whole = all(operand.vec4 for operand in operands)
    for element in ("vec4<u32>", "vec2<u32>", "u32"):
        size = ELEMENT_BYTES[element]
        if size <= unit_bytes and whole and all(o.offset * o.item_bytes % size == 0 for o in operands):
            return element
    if any(operand.item_bytes < 4 for operand in operands):
        return "atomic<u32>" if written else "u32"
    return "vec2<u32>" if all(operand.item_bytes == 8 for operand in operands) else "u32"
