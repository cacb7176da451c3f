"""Group-bys of keys with few bits, whose rows are combined in tables of workgroup memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..types.capabilities import Capabilities
from ..types.datatype import MOST_STRUCT_WORDS, Struct
from ..types.expression import Expression, index, leaf
from ..types.expression_functions import StructExpression, bitcast, gather, struct, where
from ..types.struct_operators import field_operators
from .group_spec import GroupKey, GroupPass, GroupSpec

#: The leaf of the number of runs: an odd one has filled the first of the two tables.
RUNS = "runs"
#: The number of the marks among the words of a table; those of the rows follow.
MARKS = 0
# A pass of the sort has 8 bits, and brings the keys of a bucket together.
_PASS_BITS = 8
# A table of fewer keys costs as much to clear and to store as the rows of its bucket.
_LEAST_BITS, _MOST_BITS = 8, 12
# Operators with 0 as identity, which WGSL has atomics for; others are these on words whose bits are flipped, by type.
_ATOMICS = {
    ("add", "u32"): ("atomicAdd", 0),
    ("add", "i32"): ("atomicAdd", 0),
    ("max", "u32"): ("atomicMax", 0),
    ("max", "i32"): ("atomicMax", 0x80000000),
    ("min", "u32"): ("atomicMax", 0xFFFFFFFF),
    ("min", "i32"): ("atomicMax", 0x7FFFFFFF),
    ("or", "u32"): ("atomicOr", 0),
    ("or", "i32"): ("atomicOr", 0),
    ("and", "u32"): ("atomicOr", 0xFFFFFFFF),
    ("and", "i32"): ("atomicOr", 0xFFFFFFFF),
    ("xor", "u32"): ("atomicXor", 0),
    ("xor", "i32"): ("atomicXor", 0),
}


@dataclass(frozen=True)
class TableWord:
    """A word of each row that a table combines.

    Attributes
    ----------
    place : int
        The result of the program that it is.
    type : str
    atomic : str
        The function of WGSL that combines it with that of another row.
    mask : int
        The bits that are flipped meanwhile, so that 0 is the identity.
    """

    place: int
    type: str
    atomic: str
    mask: int


@dataclass(frozen=True)
class GroupTables:
    """How a group-by uses tables.

    Attributes
    ----------
    key_bits, table_bits : int
        Of the keys, and of those among the lower ones that a table of workgroup memory has a place for.
    words : tuple of TableWord
    results : StructExpression
        The columns of keys and the aggregates by the names of the outputs, of `gw.index` and the leaves of the tables.
    is_present : Expression
        Whether a key occurred.
    """

    key_bits: int
    table_bits: int
    words: tuple[TableWord, ...]
    results: StructExpression
    is_present: Expression

    @property
    def sorts(self) -> bool:
        """Whether a pass of a sort brings the rows in order of the upper bits."""
        return self.key_bits > self.table_bits


def table_leaf(number: int, table: int) -> str:
    """Return the name of the leaf of a word of a table."""
    return f"word_{number}_of_{table}"


def _stored(number: int) -> Expression:
    """Return a word of the table that the last run filled."""
    first, second = (leaf(table_leaf(number, table), "u32") for table in (0, 1))
    return where((gather(leaf(RUNS, "u32"), 0) & 1) == 1, first, second)


def group_tables(spec: GroupSpec, capabilities: Capabilities) -> GroupTables | None:
    """Return how a group-by uses tables; None where its keys, operators or outputs need a sort."""
    words = [word for own in spec.passes for word in _words(own)]
    if spec.key_words != 1 or spec.end_bit is None or None in words or not words:
        return None
    known = [word for word in words if word is not None]
    room_bytes = capabilities.limits["max-compute-workgroup-storage-size"]
    fitting = [bits for bits in range(_LEAST_BITS, _MOST_BITS + 1) if _table_bytes(bits, len(known)) <= room_bytes]
    if not fitting or spec.end_bit > fitting[-1] + _PASS_BITS:
        return None
    outputs = len(spec.keys) + len(spec.stores)
    # Besides the outputs of the last kernel: their count, both tables, the number of runs, and two of the look-back.
    if outputs > MOST_STRUCT_WORDS or outputs + 5 > capabilities.limits["max-storage-buffers-per-shader-stage"]:
        return None
    results = {key.name: _key(key, coded=spec.is_coded) for key in spec.keys}
    first = 0
    for own in spec.passes:
        for store in own.stores:
            k = first + (store.places[0] if store.places else 0)
            results[store.name] = _decoded(k, known[k])
        first += len(own.places)
    # Rows of a bucket are told apart by the lower bits; a pass sorts by at most 8 upper ones.
    table_bits = min(fitting[-1], max(spec.end_bit, _LEAST_BITS))
    return GroupTables(max(spec.end_bit, table_bits), table_bits, tuple(known), struct(**results), _stored(MARKS) != 0)


def _table_bytes(bits: int, words: int) -> int:
    """Return the workgroup memory of a table: words, marks, and the end of a bucket."""
    return (4 * words << bits) + (1 << bits) // 8 + 16


def _words(own: GroupPass) -> Iterator[TableWord | None]:
    """Yield the words that a pass combines; None for what tables cannot combine."""
    plain = all(store.form in ("result", "field") for store in own.stores)
    if isinstance(own.datatype, Struct):
        names, types = field_operators(own.op), [of.name for _, of in own.datatype.fields]
    else:
        names, types = (own.op.name,) if own.op.builtin else (), [own.datatype.name]
    if not plain or own.column or not own.stores or not len(names) == len(types) == len(own.places):
        yield None
        return
    for name, of, place in zip(names, types, own.places, strict=True):
        atomic = _ATOMICS.get((name, of))
        yield None if atomic is None else TableWord(place, of, *atomic)


def _key(key: GroupKey, *, coded: bool) -> Expression:
    """Return a column of keys as an expression of the place in the table, which is the code."""
    code = index >> key.shift if coded and key.shift else index
    if key.bits < 32:
        code = code & ((1 << key.bits) - 1)
    return bitcast("i32", code) if key.type == "i32" else code


def _decoded(number: int, word: TableWord) -> Expression:
    stored = _stored(1 + number)
    found = stored ^ word.mask if word.mask else stored
    return bitcast("i32", found) if word.type == "i32" else found
