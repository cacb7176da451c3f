"""The shapes of kernels, in one place, each row with its reason.

Chosen by what can be measured (kind of adapter, limits), never by a name. The notebook behind the figures is
docs/performance.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from .capabilities import Capabilities, SubgroupMode
from .errors import ArgumentError

__all__ = [
    "KERNELS",
    "Shape",
    "Shapes",
    "SortShape",
    "candidates_for",
    "fixed_shapes",
    "look_back_tiles",
    "shapes_for",
    "sort_shape_for",
]


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


Rows: TypeAlias = tuple[tuple[int | None, Shape], ...]


@dataclass(frozen=True)
class Shapes:
    """The shapes of a kernel by the number of items: the pipelines of all of them are made together.

    Attributes
    ----------
    rows : tuple of (int or None, Shape)
        Up to so many items this shape; None in the last row.
    source : {"default", "tuned", "argument", "fixed"}
        Where they are from: the table, `gridwise tune` on this adapter, the caller, or a fixed order of additions.
    """

    rows: Rows
    source: str = "default"

    def at(self, n: int) -> Shape:
        """Return the shape for `n` items."""
        return next(shape for up_to, shape in self.rows if up_to is None or n <= up_to)

    def others(self, n: int) -> tuple[Shape, ...]:
        """Return the shapes for other lengths."""
        mine = self.at(n)
        return tuple(dict.fromkeys(shape for _, shape in self.rows if shape != mine))


# elementwise: one vec4 per invocation and many workgroups are fastest on an H200: 4,369 GB/s against 4,316 with four
# (vector add, 2^28). 2^20 items are then as many invocations as it runs at once.
# reduce, scan: four loads in flight per invocation reach the bandwidth of an H200; its 132 multiprocessors want 4
# blocks each from a reduction (fewer totals to combine at the end) and 8 from a scan of blocks. A CPU adapter runs a
# workgroup per core at a time: more blocks only add barriers, and so do more invocations (lavapipe on 2 cores: reduce
# at 2^18 with 64 × 8 in 32 blocks 0.40 ms, with 256 × 4 in 64 blocks 1.14; at 2^22 6.5 and 5.1; scan of blocks at 2^20
# with 64 × 4 5.2 ms, with 256 × 4 7.6).
# reduce, few items: fewer and fuller workgroups (128 of 512 invocations at 2^20 instead of 256 of 256), since each
# posts a total and counts itself, and the last one combines them. Up to one tile a single one does it.
# scan_lookback: 128 × 16 is the best of the shapes tried on an H200 at 2^28 and 2^24 (docs/performance.md): large tiles
# make the chain short, small workgroups let more of them overlap. Few items are one tile per multiprocessor at most: a
# tile of the same size with more invocations is done sooner (2^20 on an H200: 512 × 4 6.4 µs, 128 × 16 7.9). 2^22 items
# in such tiles are still all at work at once.
_SHAPES: dict[str, tuple[Rows, Rows]] = {
    "elementwise": (((None, Shape(256, 1)),), ((None, Shape(256, 4)),)),
    "reduce": (
        ((1 << 21, Shape(512, 4, 264)), (None, Shape(256, 4, 528))),
        ((1 << 20, Shape(64, 8, 32)), (None, Shape(256, 4, 64))),
    ),
    "scan": (((None, Shape(256, 4, 1056)),), ((None, Shape(64, 4, 64)),)),
    "scan_lookback": (((1 << 22, Shape(512, 4)), (None, Shape(128, 16))), ((None, Shape(256, 8)),)),
}

# Where the order of additions is fixed, without subgroups. The shape is a part of the results, so it is the same on
# every adapter, and no row above changes it: 256 invocations are what every WebGPU device runs, the rest is as above
# for many items on a GPU. A CPU adapter would rather have fewer blocks.
_FIXED_SHAPES = {"reduce": Shape(256, 4, 528), "scan": Shape(256, 4, 1056)}

# What `gridwise tune` and benchmarks/variants.py try, for GPUs and for CPUs.
_CANDIDATES: dict[str, tuple[tuple[Shape, ...], tuple[Shape, ...]]] = {
    "elementwise": (
        tuple(Shape(w, v) for w, v in ((64, 1), (128, 1), (256, 1), (512, 1), (1024, 1), (256, 2), (512, 2), (256, 4))),
        tuple(Shape(w, v) for w, v in ((64, 4), (64, 8), (128, 4), (256, 1), (256, 4), (256, 8), (256, 16))),
    ),
    "reduce": (
        tuple(
            Shape(w, v, b)
            for w, v, b in ((256, 4, 264), (256, 4, 528), (256, 4, 1056), (256, 8, 528), (512, 2, 264), (512, 4, 132),
                            (512, 4, 264), (512, 8, 132), (1024, 2, 264), (1024, 4, 132))
        ),
        tuple(Shape(w, v, b) for w, v, b in ((64, 8, 16), (64, 8, 32), (64, 8, 64), (256, 4, 32), (256, 4, 64))),
    ),
    "scan": (
        tuple(
            Shape(w, v, b)
            for w, v, b in ((256, 2, 1056), (256, 4, 528), (256, 4, 1056), (256, 8, 1056), (512, 4, 528))
        ),
        tuple(Shape(w, v, b) for w, v, b in ((64, 2, 64), (64, 4, 16), (64, 4, 64), (64, 8, 64), (256, 4, 64))),
    ),
    "scan_lookback": (
        tuple(
            Shape(w, v)
            for w, v in ((128, 8), (128, 12), (128, 16), (256, 4), (256, 8), (256, 12), (512, 2), (512, 4), (1024, 2))
        ),
        tuple(Shape(w, v) for w, v in ((64, 8), (64, 16), (128, 16), (256, 8), (256, 16))),
    ),
}  # fmt: skip

KERNELS = tuple(_SHAPES)


def look_back_tiles(mode: SubgroupMode) -> int:
    """Return how many tiles a lane looks at in one round of a look-back.

    The window is 32 tiles whatever the subgroup size: on an H200 wider ones were slower (64 tiles 5 %, 128 tiles 6 %,
    256 tiles 19 % at 2^28), since waiting workgroups then poll more.
    """
    return max(1, min(8, 32 // mode.size))


def candidates_for(kernel: str, capabilities: Capabilities, mode: SubgroupMode | None = None) -> tuple[Shape, ...]:
    """Return the shapes worth trying for `kernel` on a device: those that it can run."""
    return tuple(s for s in _CANDIDATES[kernel][capabilities.is_cpu] if _objection(s, capabilities, mode) is None)


def shapes_for(
    kernel: str,
    capabilities: Capabilities,
    mode: SubgroupMode | None = None,
    *,
    workgroup_size: int | None = None,
    vecs: int | None = None,
) -> Shapes:
    """Return the shapes of `kernel` on a device: what the caller wishes, else what was tuned, else the table's.

    Raises
    ------
    ArgumentError
        If a workgroup would not hold whole subgroups, or is over the device's limit.
    """
    default = _SHAPES[kernel][capabilities.is_cpu]
    if workgroup_size is None and vecs is None:
        tuned = _tuned(kernel, capabilities, mode)
        if tuned is not None:
            return Shapes(_within_grid(tuned, capabilities), "tuned")
        shapes = Shapes(tuple((up_to, _fit(shape, capabilities, mode)) for up_to, shape in default))
    else:
        shape = default[-1][1]
        wished = replace(
            shape,
            workgroup_size=shape.workgroup_size if workgroup_size is None else workgroup_size,
            vecs=shape.vecs if vecs is None else vecs,
        )
        shapes = Shapes(((None, wished),), "argument")
    for _, shape in shapes.rows:
        objection = _objection(shape, capabilities, mode)
        if objection is not None:
            raise ArgumentError(objection)
    return replace(shapes, rows=_within_grid(shapes.rows, capabilities))


def fixed_shapes(
    kernel: str, capabilities: Capabilities, asked: str, *, workgroup_size: int | None = None, vecs: int | None = None
) -> Shapes:
    """Return the one shape of a kernel whose order of additions is fixed, for every length and device.

    Parameters
    ----------
    kernel : {"reduce", "scan"}
    capabilities : Capabilities
    asked : str
        The option that asks for a fixed order, for messages.
    workgroup_size, vecs : int, optional
        What the caller wishes beside.

    Raises
    ------
    ArgumentError
        If the wishes are for another shape, or the device's workgroups cannot hold it.
    """
    shape = _FIXED_SHAPES[kernel]
    for name, wish in (("workgroup_size", workgroup_size), ("vecs", vecs)):
        fixed = getattr(shape, name)
        if wish is not None and wish != fixed:
            raise ArgumentError(
                f"{name}={wish} beside {asked}, whose order of additions is fixed with {name}={fixed}; leave out one "
                f"of the two"
            )
    objection = _objection(shape, capabilities, None)
    if objection is not None:
        raise ArgumentError(f"{asked} cannot be had on {capabilities.adapter!r}: {objection}")
    return Shapes(((None, shape),), "fixed")


def _most_invocations(capabilities: Capabilities) -> int:
    return min(
        capabilities.limits["max-compute-invocations-per-workgroup"],
        capabilities.limits["max-compute-workgroup-size-x"],
    )


def _fit(shape: Shape, capabilities: Capabilities, mode: SubgroupMode | None) -> Shape:
    """Cut a shape of the table to what the device allows, which is 256 invocations at least; a subgroup must fit."""
    most, least = _most_invocations(capabilities), 1 if mode is None else mode.size
    return replace(shape, workgroup_size=max(least, min(shape.workgroup_size, 1 << (most.bit_length() - 1))))


def _within_grid(rows: Rows, capabilities: Capabilities) -> Rows:
    most = capabilities.limits["max-compute-workgroups-per-dimension"] ** 3
    return tuple((up_to, replace(shape, max_blocks=min(shape.max_blocks, most))) for up_to, shape in rows)


def _objection(shape: Shape, capabilities: Capabilities, mode: SubgroupMode | None) -> str | None:
    """Return why a device cannot run a shape."""
    limit = _most_invocations(capabilities)
    if not (1 <= shape.workgroup_size <= limit and shape.workgroup_size & (shape.workgroup_size - 1) == 0):
        return (
            f"workgroup_size={shape.workgroup_size} must be a power of two of at most {limit} "
            f"(max-compute-invocations-per-workgroup)"
        )
    if not 1 <= shape.vecs <= 16:
        return f"vecs={shape.vecs} must be from 1 to 16"
    if mode is not None and shape.workgroup_size % mode.size:
        return (
            f"workgroup_size={shape.workgroup_size} does not hold whole subgroups of {mode.size} ({mode}); "
            f"use a multiple of {mode.size}, or subgroups=False"
        )
    return None


def _tuned(kernel: str, capabilities: Capabilities, mode: SubgroupMode | None) -> Rows | None:
    """Return the rows that were tuned; None where there are none, or where this device or mode cannot run them."""
    rows = tuple((up_to, Shape(*shape)) for up_to, shape in (capabilities.tuning or {}).get(kernel, ()))
    if not rows or any(_objection(shape, capabilities, mode) is not None for _, shape in rows):
        return None
    return rows


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
