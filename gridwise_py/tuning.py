"""The shapes of kernels, in one place, each row with its reason.

Chosen by what can be measured (kind of adapter, limits), never by a name. The notebook behind the figures is
docs/performance.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from .capabilities import Capabilities, SubgroupMode
from .errors import ArgumentError

__all__ = ["CountShape", "Shape", "SortShape", "look_back_tiles", "shape_for", "sort_shape_for"]


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
class CountShape:
    """How a kernel counts digits in workgroup memory.

    Attributes
    ----------
    banks : int
        Copies of the counters.
    chunk_items : int
        Keys of an invocation between two reads of memory.
    chunks_until_full : int
        Chunks after which a counter of a byte could run over.
    """

    banks: int
    chunk_items: int
    chunks_until_full: int

    def context(self) -> dict[str, int]:
        """Return its values for a template."""
        return asdict(self)


@dataclass(frozen=True)
class SortShape:
    """The shape of the kernels of a radix sort.

    Attributes
    ----------
    workgroup_size : int
        Invocations of the kernels that rank and move.
    items : int
        Keys per invocation and tile.
    stage_words : int
        Words of workgroup memory for the counters of the rows and for the keys.
    look : int
        Tiles that an invocation looks at in one round of a look-back.
    max_blocks, max_tiles_per_block : int
        How tiles are spread over workgroups where there is no look-back.
    count_workgroup_size, count_blocks : int
        Invocations and most workgroups of the kernels that count.
    storage_bytes : int
        Workgroup memory of the device.
    """

    workgroup_size: int
    items: int
    stage_words: int
    look: int
    max_blocks: int
    max_tiles_per_block: int
    count_workgroup_size: int
    count_blocks: int
    storage_bytes: int

    @property
    def tile_items(self) -> int:
        """Keys that a workgroup does at once."""
        return self.workgroup_size * self.items

    def count_for(self, digits: int) -> CountShape:
        """Return how that many digits are counted at once."""
        sets = -(-digits // 4)
        free = self.storage_bytes - 4 * self.count_workgroup_size - 64
        banks = next(banks for banks in (32, 16, 8, 4) if 4 * sets * banks * 256 <= free or banks == 4)
        sharing = self.count_workgroup_size // banks
        chunk_items = 8 if 8 * sharing <= 255 else 4
        return CountShape(banks, chunk_items, max(1, 255 // (chunk_items * sharing)))


# sort: as many keys per tile as workgroup memory holds, up to 22 an invocation (beyond that registers spill on an
# H200): large tiles make long runs to write and a short chain to look back over.
_SORT_SHAPES = {
    "gpu": {"workgroup_size": 512, "items": 22, "look": 4, "max_blocks": 1056, "count_blocks": 1056},
    "cpu": {"workgroup_size": 256, "items": 16, "look": 4, "max_blocks": 64, "count_blocks": 64},
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
    look: int | None = None,
) -> SortShape:
    """Return the shape of a sort's kernels on a device, with the caller's wishes worked in.

    Parameters
    ----------
    capabilities : Capabilities
    mode : SubgroupMode
    words : int
        32-bit words of the wider of key and value.
    workgroup_size, items, look : int, optional
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
    if size not in (256, 512, 1024) or size > most or size % mode.size:
        raise ArgumentError(
            f"workgroup_size={size} must be 256, 512 or 1024, at most {most} (max-compute-invocations-per-workgroup), "
            f"and hold whole subgroups of {mode.size} ({mode})"
        )
    storage_bytes = limits["max-compute-workgroup-storage-size"]
    # Beside the stage: a word per bin, one or (emulated) three per invocation, some single words.
    free_words = storage_bytes // 4 - 256 - size * (3 if mode.kind == "emulated" else 1) - 16
    rows_words = size // 32 * 256
    serial_words = rows_words if mode.kind == "none" else 0  # digits lie behind the counters
    fitting = min(free_words // (size * words), (free_words - serial_words) // size)
    if fitting < 1 or rows_words > free_words:
        raise ArgumentError(
            f"sort: workgroups of {size} need more than max-compute-workgroup-storage-size, {storage_bytes} bytes; use "
            f"a smaller workgroup_size"
        )
    if items is not None and not 1 <= items <= fitting:
        raise ArgumentError(
            f"items={items} per invocation must be from 1 to {fitting}: more does not fit into "
            f"max-compute-workgroup-storage-size, {storage_bytes} bytes"
        )
    items = items if items is not None else min(max(1, table["items"] // words), fitting)
    return SortShape(
        size,
        items,
        max(rows_words, size * items * words, serial_words + size * items),
        table["look"] if look is None else look,
        table["max_blocks"],
        4 if mode.kind == "emulated" else _MAX_TILES_PER_BLOCK,
        256,
        table["count_blocks"],
        storage_bytes,
    )
