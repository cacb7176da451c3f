"""What merges have in common: the order of keys, the shape of kernels, and their reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ...errors import ArgumentError, DatatypeError
from ...planning.signature import Argument, SameAs
from ...settings import ShaderChecks
from ...tuning.rows import Shape
from ...types.capabilities import Capabilities
from ...types.datatype import DATATYPES, STORAGE_DATATYPES, Datatype, Struct, as_datatype
from ...types.traced import Traced, traced_order
from .key_codes import key_codes

#: Says whether one item goes before another: a function of two items, as those of expressions.
Less: TypeAlias = Callable[[Any, Any], Any]

#: Tiles whose parts a workgroup looks for, an invocation each: it waits for memory some 20 times in a row.
PARTITION_TILES = 64
# With `less` 32 more look for splits of the tree of all tiles, which has fewer levels than a number has bits.
_TREE_LEVELS = 32
# A place among the keys, and a tile behind it, must be a number of 32 bits.
_MOST_KEYS = (1 << 32) - (1 << 16)


def most_keys(datatype: Datatype) -> int:
    """Return how many keys a merge takes: kernels count the words of structs in 32 bits."""
    return _MOST_KEYS // datatype.elements


def first_step(n: int) -> int:
    """Return how far from the first probe of a partition the second one lies.

    The first one is where the path would be if both runs were spread alike. With two random halves the path is within
    √n / 4 of that place in two of three cases.
    """
    return 1 << math.isqrt(n).bit_length()


def step_in_tile(tile_items: int) -> int:
    """Return the same for a tile in workgroup memory: three standard deviations."""
    return 1 << (3 * math.isqrt(tile_items) // 4).bit_length()


# Keys that a lane holds while they are merged in registers: 16 of them and their addresses leave room for 48 subgroups
# on a multiprocessor.
_MOST_ROWS = 16


def network_rows(shape: Shape) -> dict[str, int]:
    """Return the template values of merge_network.wgsl: rows, a power of two, and chunks, of 4 × vecs keys in all."""
    keys = 4 * shape.vecs
    rows = min(keys & -keys, _MOST_ROWS)
    return {"rows": rows, "row_stages": rows.bit_length() - 1, "chunks": keys // rows}


class MergeOrder:
    """The order of keys: numpy's, or that of a function of the caller's.

    Parameters
    ----------
    name : str
        Of the primitive, for messages.
    dtype : object
        The keys' datatype, as the caller gave it.
    descending : bool
    less : callable or None
    """

    def __init__(self, name: str, dtype: Any, descending: bool, less: Less | None):
        self.less: Traced | None = None
        if less is None and isinstance(dtype, Struct):
            raise DatatypeError(
                f"{name}: items of {dtype} have no order of their own; give one, less=lambda a, b: "
                f"a.{dtype.fields[0][0]} < b.{dtype.fields[0][0]}"
            )
        if less is None:
            self.datatype: Datatype = as_datatype(dtype, STORAGE_DATATYPES)
        else:
            if descending:
                raise ArgumentError(f"{name}: descending=True together with less=; exchange a and b in the function")
            if not callable(less):  # of a call by a function it is the trace already
                raise ArgumentError(
                    f"{name}: less={less!r:.60} must be a function that says whether one item goes before another, for "
                    f"example less=lambda a, b: a < b; for the largest first give descending=True"
                )
            self.datatype = _compared(name, dtype)
            self.less = less if isinstance(less, Traced) else traced_order(less, self.datatype, f"less= of {name}")
        self.descending: bool = bool(descending)

    @property
    def key_words(self) -> int:
        """The words of a key in workgroup memory."""
        return -(-self.datatype.itemsize_bytes // 4)

    @property
    def partition_size(self) -> int:
        """The invocations of a workgroup that looks for the parts of PARTITION_TILES tiles."""
        return PARTITION_TILES + (0 if self.less is None else _TREE_LEVELS)

    @property
    def shader_checks(self) -> ShaderChecks | None:
        """The run-time checks that a user's WGSL in it asks for; None without any."""
        return None if self.less is None else self.less.shader_checks

    def context(self) -> dict[str, Any]:
        """Return the template values of lib/merge_order.wgsl."""
        fields = self.datatype.fields if isinstance(self.datatype, Struct) else ()
        return {
            "key_words": self.key_words,
            "key_elements": self.datatype.elements,
            "key_bytes": self.datatype.itemsize_bytes,
            "key_kind": self.datatype.dtype.kind,
            "key_type": self.datatype.wgsl,
            "key_fields": [(field, of.wgsl) for field, of in fields],
            "descending": self.descending,
            "less": "" if self.less is None else self.less.text(),
            "partition_tiles": PARTITION_TILES,
            "partition_size": self.partition_size,
        }

    def items(self, shape: Shape, capabilities: Capabilities) -> int:
        """Return the keys of an invocation: an odd number, as many as `vecs` says and workgroup memory holds."""
        words = 4 if self.key_words == 3 else self.key_words  # a vec3 takes the place of a vec4
        limit_bytes = capabilities.limits["max-compute-workgroup-storage-size"]
        if self.less is not None:  # the places where paths cross (lib/merge_path.wgsl)
            limit_bytes -= 4 * (shape.workgroup_size + 1)
        most = (limit_bytes // (4 * words) - 1) // (shape.workgroup_size + 1)
        items = min(4 * shape.vecs // words, most)
        if most < 1:
            raise ArgumentError(
                f"workgroup_size={shape.workgroup_size} keys of {4 * words} bytes take more than "
                f"max-compute-workgroup-storage-size, {limit_bytes} bytes; use a smaller workgroup_size"
            )
        return max(1, items - 1 + items % 2)

    def is_before(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return, item by item, whether a goes before b."""
        if self.less is not None:
            return self.less(a, b)
        return key_codes(a, self.descending) < key_codes(b, self.descending)


def _compared(name: str, dtype: Any) -> Datatype:
    """Return the datatype of keys that a function compares."""
    known = dtype if isinstance(dtype, Struct) else None
    if known is None and not isinstance(dtype, (str, Datatype)) and np.dtype(dtype).names is not None:
        known = Struct.from_dtype(dtype)
    if known is not None:
        return known
    datatype = as_datatype(dtype, STORAGE_DATATYPES)
    if datatype.name not in DATATYPES:
        raise DatatypeError(
            f"{name}: less= compares items of u32, i32, f32 or a Struct of these, not of {datatype}; convert the keys, "
            f"or leave out less=, which gives numpy's order"
        )
    return datatype


def value_arguments(datatype: Datatype | None, inputs: Mapping[str, str], output: Argument) -> list[Argument]:
    """Return the arguments that hold values, for each input and for the output; none without values."""
    if datatype is None:
        return []
    found = [
        Argument(values, datatype=datatype, length=SameAs(keys, "every key needs one value"), chunked=True)
        for keys, values in inputs.items()
    ]
    length = output.length
    return [*found, Argument("output_values", is_output=True, datatype=datatype, length=length, chunked=output.chunked)]


def merged_order(order: MergeOrder, keys: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Return the indices that merge pairs of neighbouring sorted runs, stable, by `order.is_before` alone.

    Parameters
    ----------
    order : MergeOrder
    keys : numpy.ndarray
    runs : numpy.ndarray
        Where runs begin, and the end: 2 k + 1 numbers.

    Notes
    -----
    The place of a key is its place in its run, plus the number of keys of the other run that go before it, which a
    binary search finds for all keys at once.
    """
    begins, middles, ends = runs[:-1:2], runs[1::2], runs[2::2]
    lengths = ends - begins
    pair = np.repeat(np.arange(lengths.size), lengths)
    at = np.arange(keys.size)
    is_first = at < middles[pair]
    low = np.where(is_first, middles[pair], begins[pair])
    high = np.where(is_first, ends[pair], middles[pair])
    own = at - np.where(is_first, begins[pair], middles[pair])
    other_begin = low.copy()
    while True:
        searching = np.flatnonzero(low < high)
        if not searching.size:
            break
        probe = (low[searching] + high[searching]) // 2
        mine, other = keys[searching], keys[probe]
        # A key of the first run goes before the equal ones of the second.
        goes = np.where(is_first[searching], order.is_before(other, mine), ~order.is_before(mine, other))
        low[searching] = np.where(goes, probe + 1, low[searching])
        high[searching] = np.where(goes, high[searching], probe)
    found = np.empty(keys.size, np.intp)
    found[begins[pair] + own + low - other_begin] = at
    return found
