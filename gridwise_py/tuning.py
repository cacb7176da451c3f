"""The shapes of kernels, in one place, each row with its reason.

Chosen by what can be measured (kind of adapter, limits), never by a name. The notebook behind the figures is
docs/performance.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .capabilities import Capabilities, SubgroupMode
from .errors import ArgumentError

__all__ = ["Shape", "SortShape", "look_back_tiles", "shape_for", "sort_shape_for"]


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


# elementwise: one vec4 per invocation and many workgroups are fastest on an H200: 4,369 GB/s against 4,316 with four
# (vector add, 2^28).
# reduce, scan: four loads in flight per invocation reach the bandwidth of an H200; its 132 multiprocessors want 4
# blocks each from a reduction (fewer totals to combine at the end) and 8 from a scan of blocks. A CPU adapter runs a
# workgroup per core at a time: more blocks only add barriers.
# scan_lookback: 128 × 16 is the best of the shapes tried on an H200 at 2^28 and 2^24 (docs/performance.md): large tiles
# make the chain short, small workgroups let more of them overlap. At 2^20 that is few workgroups: 256 × 8 would take
# 6.5 µs instead of 7.9, but a second shape would be a pipeline that depends on n.
_SHAPES = {
    "elementwise": (Shape(256, 1), Shape(256, 4)),
    "reduce": (Shape(256, 4, 528), Shape(256, 4, 64)),
    "scan": (Shape(256, 4, 1056), Shape(256, 4, 64)),
    "scan_lookback": (Shape(128, 16), Shape(256, 8)),
}


def look_back_tiles(mode: SubgroupMode) -> int:
    """Return how many tiles a lane looks at in one round of a look-back.

    The window is 32 tiles whatever the subgroup size: on an H200 wider ones were slower (64 tiles 5 %, 128 tiles 6 %,
    256 tiles 19 % at 2^28), since waiting workgroups then poll more.
    """
    return max(1, min(8, 32 // mode.size))


def shape_for(
    kernel: str,
    capabilities: Capabilities,
    mode: SubgroupMode | None = None,
    *,
    workgroup_size: int | None = None,
    vecs: int | None = None,
) -> Shape:
    """Return the shape of `kernel` on a device, with the caller's wishes worked in.

    Raises
    ------
    ArgumentError
        If a workgroup would not hold whole subgroups, or is over the device's limit.
    """
    shape = _SHAPES[kernel][1 if capabilities.is_cpu else 0]
    if workgroup_size is not None:
        shape = replace(shape, workgroup_size=workgroup_size)
    if vecs is not None:
        shape = replace(shape, vecs=vecs)
    limit = min(
        capabilities.limits["max-compute-invocations-per-workgroup"],
        capabilities.limits["max-compute-workgroup-size-x"],
    )
    if not (1 <= shape.workgroup_size <= limit and shape.workgroup_size & (shape.workgroup_size - 1) == 0):
        raise ArgumentError(
            f"workgroup_size={shape.workgroup_size} must be a power of two of at most {limit} "
            f"(max-compute-invocations-per-workgroup)"
        )
    if not 1 <= shape.vecs <= 16:
        raise ArgumentError(f"vecs={shape.vecs} must be from 1 to 16")
    if mode is not None and shape.workgroup_size % mode.size:
        raise ArgumentError(
            f"workgroup_size={shape.workgroup_size} does not hold whole subgroups of {mode.size} ({mode}); "
            f"use a multiple of {mode.size}, or subgroups=False"
        )
    if shape.max_blocks:
        grid = capabilities.limits["max-compute-workgroups-per-dimension"]
        shape = replace(shape, max_blocks=min(shape.max_blocks, grid**3))
    return shape


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
        Tiles that an invocation looks at in one round of a look-back.
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


# sort: large tiles make long runs to write and a short chain to look back over; a tile goes through workgroup memory in
# parts, so that two workgroups fit on a multiprocessor of an H200, whose driver gives them 64 KiB of it.
_SORT_SHAPES = {
    "gpu": {"workgroup_size": 512, "items": 18, "parts": 2, "look": 2, "max_blocks": 1056, "count_blocks": 1056},
    "cpu": {"workgroup_size": 256, "items": 16, "parts": 1, "look": 4, "max_blocks": 64, "count_blocks": 64},
}
# lavapipe ends all loops of an invocation after 65,535 iterations in total.
_MAX_TILES_PER_BLOCK = 32


def sort_shape_for(
    capabilities: Capabilities,
    mode: SubgroupMode,
    words: int,
    *,
    workgroup_size: int | None = None,
    items: int | None = None,
    parts: int | None = None,
    look: int | None = None,
) -> SortShape:
    """Return the shape of a sort's kernels on a device, with the caller's wishes worked in.

    Parameters
    ----------
    capabilities : Capabilities
    mode : SubgroupMode
    words : int
        32-bit words of the wider of key and value.
    workgroup_size, items, parts, look : int, optional
        Wishes.

    Raises
    ------
    ArgumentError
        If a wish is over the device's limits.
    """
    table = _SORT_SHAPES["cpu" if capabilities.is_cpu else "gpu"]
    limits = capabilities.limits
    most = min(limits["max-compute-invocations-per-workgroup"], limits["max-compute-workgroup-size-x"])
    size = workgroup_size if workgroup_size is not None else min(table["workgroup_size"], most)
    if size % 128 or not 256 <= size <= most or size % mode.size:
        raise ArgumentError(
            f"workgroup_size={size} must be a multiple of 128, from 256 to {most} (max-compute-invocations-per-"
            f"workgroup), and hold whole subgroups of {mode.size} ({mode})"
        )
    parts = table["parts"] if parts is None else parts
    storage_bytes = limits["max-compute-workgroup-storage-size"]
    # Beside the stage: a word per bin, one or (emulated) three per invocation, some single words.
    free_words = storage_bytes // 4 - 256 - size * (3 if mode.kind == "emulated" else 1) - 16
    rows_words = size // 32 * 256
    serial_words = rows_words if mode.kind == "none" else 0  # digits lie behind the counters
    fitting = free_words // (size * words) * parts
    if serial_words:
        fitting = min(fitting, (free_words - serial_words) // size)
    if fitting < 1 or rows_words > free_words:
        raise ArgumentError(
            f"sort: workgroups of {size} need more than max-compute-workgroup-storage-size, {storage_bytes} bytes; use "
            f"a smaller workgroup_size"
        )
    if parts < 1 or (items is not None and not (1 <= items <= fitting and items % parts == 0)):
        raise ArgumentError(
            f"items={items} per invocation must be a multiple of parts={parts} and at most {fitting}: more does not "
            f"fit into max-compute-workgroup-storage-size, {storage_bytes} bytes"
        )
    if items is None:
        items = max(1, min(table["items"] // words, fitting) // parts) * parts
    return SortShape(
        size,
        items,
        parts,
        max(rows_words, size * items * words // parts, serial_words and serial_words + size * items),
        table["look"] if look is None else look,
        table["max_blocks"],
        4 if mode.kind == "emulated" else _MAX_TILES_PER_BLOCK,
        256,
        table["count_blocks"],
        1,
        8,
    )
