"""Shapes of the radix sort's kernels: one table, with the reason for each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..errors import ArgumentError
from ..types.capabilities import Capabilities, SubgroupMode
from ..types.datatype import Datatype
from .options import SortTuning
from .shapes import Shapes

__all__ = ["SortShape", "sort_shapes_for"]


@dataclass(frozen=True)
class SortShape:
    """The shape of the kernels of a radix sort.

    Attributes
    ----------
    workgroup_size : int
        Invocations of the kernels that rank and move.
    items : int
        Keys per invocation and tile.
    parts : int
        Parts of a tile that go through workgroup memory one after the other.
    stage_words : int
        Words of workgroup memory for the counters of the rows and for a part of the keys.
    look : int
        Tiles that an invocation polls in one round of a look-back.
    max_blocks, max_tiles_per_block : int
        How tiles are spread over workgroups where there is no look-back.
    count_workgroup_size, count_blocks : int
        Invocations and most workgroups of the kernels that count.
    count_copies, count_items : int
        Copies of their counters, and keys of an invocation between two reads of memory.
    """

    workgroup_size: int
    items: int
    parts: int
    stage_words: int
    look: int
    max_blocks: int
    max_tiles_per_block: int
    count_workgroup_size: int
    count_blocks: int
    count_copies: int
    count_items: int

    @property
    def tile_items(self) -> int:
        """Keys that a workgroup does at once."""
        return self.workgroup_size * self.items


class _Row(NamedTuple):
    """A row of the table: the shape for up to so many keys, None for any number."""

    up_to: int | None
    workgroup_size: int
    items: int
    parts: int
    look: int


# By the number of keys: invocations of a workgroup, keys of each, parts of a tile, tiles polled in one round. Large
# tiles make long runs to write and a short chain to look back over. A tile goes through workgroup memory in parts, so
# that two workgroups fit on a multiprocessor of an H200, whose driver gives them 64 KiB of it; they also share its
# registers: enough for 20 keys of each invocation, for 18 with values (14 of floats, or if an expression is read: 2^26
# keys `x & mask` with values 2,367 µs with 18, 1,845 with 14), for 12 of 64 bits and for 10 where these have values, or
# are some. With more, one workgroup is left, and a third is lost
# (docs/contribute/performance.md).
# Floats are faster with two tiles in a look than with three. Few keys are at most one tile for each of its 264 places:
# smaller tiles keep all of them busy.
_GPU: dict[str, tuple[_Row, ...]] = {
    "keys": (_Row(1 << 20, 512, 8, 1, 2), _Row(None, 512, 20, 2, 3)),
    "floats": (_Row(1 << 20, 512, 8, 1, 2), _Row(None, 512, 20, 2, 2)),
    "pairs": (_Row(1 << 20, 512, 8, 1, 2), _Row(None, 512, 18, 2, 2)),
    "float pairs": (_Row(1 << 20, 512, 8, 1, 2), _Row(None, 512, 14, 2, 2)),
    "wide": (_Row(1 << 20, 512, 4, 1, 2), _Row(None, 512, 12, 3, 2)),
    "wide pairs": (_Row(1 << 20, 512, 4, 1, 2), _Row(None, 512, 10, 2, 2)),
}
# A CPU adapter spends more on the first call than on many others: lavapipe on 2 cores compiles a sort of pairs with 16
# keys of each invocation in 5.8 s, with 8 in 1.8, with 4 in 0.8, and sorts 2^20 of them in 1.0, 1.1 and 1.5 s.
_CPU: dict[str, tuple[_Row, ...]] = {
    "keys": (_Row(None, 256, 4, 1, 4),),
    "floats": (_Row(None, 256, 4, 1, 4),),
    "pairs": (_Row(None, 256, 4, 1, 4),),
    "float pairs": (_Row(None, 256, 4, 1, 4),),
    "wide": (_Row(None, 256, 4, 1, 4),),
    "wide pairs": (_Row(None, 256, 4, 1, 4),),
}
# Most blocks.
_GPU_BLOCKS, _CPU_BLOCKS = 1056, 64
# lavapipe ends all loops of an invocation after 65,535 iterations in total.
_MAX_TILES_PER_BLOCK = 32


def sort_shapes_for(
    capabilities: Capabilities, mode: SubgroupMode, key: Datatype, value_words: int, tuning: SortTuning | None = None,
    *, computes: bool = False,
) -> Shapes[SortShape]:  # fmt: skip
    """Return the shapes of a sort's kernels on a device: the caller's, else the table's.

    Parameters
    ----------
    capabilities : Capabilities
    mode : SubgroupMode
    key : Datatype
    value_words : int
        32-bit words of a value; 0 without values.
    tuning : SortTuning, optional
        The caller's. With `workgroup_size`, `items` or `parts` there is one shape for all lengths.
    computes : bool, default False
        Whether keys or values are read from an expression.

    Raises
    ------
    ArgumentError
        If the caller's shape is over the device's limits.
    """
    tuning = SortTuning.of(tuning)
    words = max(-(-key.itemsize_bytes // 4), value_words)
    floats = key.dtype.kind == "f"
    if words == 2:
        kind = "wide pairs" if value_words else "wide"
    elif value_words:
        kind = "float pairs" if floats or computes else "pairs"
    else:
        kind = "floats" if floats else "keys"
    rows = (_CPU if capabilities.is_cpu else _GPU)[kind]
    one_for_all = not (tuning.workgroup_size is tuning.items is tuning.parts is None)
    shapes = tuple(
        (row.up_to, _shape(capabilities, mode, words, row, tuning)) for row in ((rows[-1],) if one_for_all else rows)
    )
    return Shapes(shapes, "argument" if one_for_all or tuning.look is not None else "default")


def _shape(capabilities: Capabilities, mode: SubgroupMode, words: int, row: _Row, tuning: SortTuning) -> SortShape:
    """Return a row's shape, cut to the limits of the device, except for the caller's numbers."""
    limits = capabilities.limits
    most = min(limits["max-compute-invocations-per-workgroup"], limits["max-compute-workgroup-size-x"])
    storage_bytes = limits["max-compute-workgroup-storage-size"]
    digits_behind = mode.kind == "none"  # the counters

    def most_items(size: int, parts: int) -> int:
        """Return how many keys of an invocation fit; 0 where not even the counters of the rows do."""
        # Beside the stage: a word per bin, one or (emulated) three per invocation, some single words.
        free_words = storage_bytes // 4 - 256 - size * (3 if mode.kind == "emulated" else 1) - 16
        rows_words = size // 32 * 256
        if rows_words > free_words:
            return 0
        fitting = free_words // (size * words) * parts
        return min(fitting, (free_words - rows_words) // size) if digits_behind else fitting

    size, items, parts = row.workgroup_size, row.items, row.parts
    if tuning.parts is not None:
        parts = tuning.parts
    if tuning.workgroup_size is not None:
        size = tuning.workgroup_size
    else:
        size = min(size, most // 128 * 128)
        # Large workgroups have many rows of counters: with little memory they leave no room for keys.
        while size > 256 and most_items(size, parts) < parts:
            size -= 128
    if size % 128 or not 256 <= size <= most or size % mode.size:
        raise ArgumentError(
            f"workgroup_size={size} must be a multiple of 128, from 256 to {most} (max-compute-invocations-per-"
            f"workgroup), and hold whole subgroups of {mode.size} ({mode})"
        )
    if tuning.items is not None:
        items = tuning.items
        if tuning.parts is None and items % parts:
            # The usual parts are those of the usual items.
            parts = next((p for p in (1, *range(2, items)) if items % p == 0 and items <= most_items(size, p)), parts)
    elif tuning.parts is None:
        parts = min(parts, max(most_items(size, parts), 1))
    fitting = most_items(size, parts)
    if fitting < 1:
        raise ArgumentError(
            f"sort: workgroups of {size} need more than max-compute-workgroup-storage-size, {storage_bytes} bytes; use "
            f"a smaller workgroup_size"
        )
    if tuning.items is None:
        items = max(1, min(items, fitting) // parts) * parts
    if items > fitting or items % parts:
        raise ArgumentError(
            f"items={items} per invocation must be a multiple of parts={parts} and at most {fitting}: more does not "
            f"fit into max-compute-workgroup-storage-size, {storage_bytes} bytes"
        )
    rows_words = size // 32 * 256
    blocks = _CPU_BLOCKS if capabilities.is_cpu else _GPU_BLOCKS
    return SortShape(
        workgroup_size=size,
        items=items,
        parts=parts,
        stage_words=max(rows_words, size * items * words // parts, rows_words + size * items if digits_behind else 0),
        look=row.look if tuning.look is None else tuning.look,
        max_blocks=blocks,
        max_tiles_per_block=4 if mode.kind == "emulated" else _MAX_TILES_PER_BLOCK,
        count_workgroup_size=256,
        count_blocks=blocks,
        count_copies=1,
        count_items=8,
    )
