"""The shapes of kernels, in one place, each row with its reason.

Chosen by what can be measured (kind of adapter, limits), never by a name. The notebook behind the figures is
docs/contribute/performance.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ..errors import ArgumentError
from ..types.capabilities import Capabilities, SubgroupMode
from .options import ElementwiseTuning, HistogramTuning, ReduceTuning, ScanTuning, StreamTuning, Tuning

__all__ = [
    "KERNELS",
    "Shape",
    "Shapes",
    "candidates_for",
    "fixed_shapes",
    "group_table_shape",
    "has_blocks",
    "look_back_tiles",
    "shape_of",
    "shapes_for",
    "suited",
    "totals_invocations",
    "tuning_of",
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
    ahead : int
        Of streams by look-back: how many tiles lie between the one that a workgroup counts and the one that it writes.
    """

    workgroup_size: int
    vecs: int
    max_blocks: int = 0
    ahead: int = 0

    @property
    def tile_items(self) -> int:
        """Items that a workgroup does at once."""
        return self.workgroup_size * self.vecs * 4


Rows: TypeAlias = tuple[tuple[int | None, Shape], ...]
AnyShape = TypeVar("AnyShape")


@dataclass(frozen=True)
class Shapes(Generic[AnyShape]):
    """The shapes of a kernel by the number of items: the pipelines of all of them are made together.

    Attributes
    ----------
    rows : tuple of (int or None, Shape)
        Up to so many items this shape; None in the last row. (Or whatever else goes by the number of items.)
    source : {"default", "tuned", "argument", "fixed"}
        Where they are from: the table, `gridwise tune` on this adapter, the caller, or a fixed order of additions.
    """

    rows: tuple[tuple[int | None, AnyShape], ...]
    source: str = "default"

    def at(self, n: int) -> AnyShape:
        """Return the shape for `n` items."""
        return next(shape for up_to, shape in self.rows if up_to is None or n <= up_to)

    def others(self, n: int) -> tuple[AnyShape, ...]:
        """Return the shapes for other lengths."""
        mine = self.at(n)
        found: list[AnyShape] = []
        for _, shape in self.rows:
            if shape != mine and shape not in found:
                found.append(shape)
        return tuple(found)


class _Kernel(NamedTuple):
    """What is known of a kernel's shapes: the tuning that takes them, the rows by the number of items, and what
    `gridwise tune` tries, each for GPUs and for CPU adapters."""

    family: type[Tuning]
    rows_gpu: Rows
    rows_cpu: Rows
    candidates_gpu: tuple[Shape, ...]
    candidates_cpu: tuple[Shape, ...]

    def rows(self, capabilities: Capabilities) -> Rows:
        """Return the rows for a kind of adapter."""
        return self.rows_cpu if capabilities.is_cpu else self.rows_gpu

    @property
    def fields(self) -> tuple[str, ...]:
        """The numbers that its shapes have."""
        every = [shape for _, shape in (*self.rows_gpu, *self.rows_cpu)]
        blocks = ("max_blocks",) if all(shape.max_blocks for shape in every) else ()
        return ("workgroup_size", "vecs", *blocks, *(("ahead",) if any(shape.ahead for shape in every) else ()))


def _any(shape: Shape) -> Rows:
    return ((None, shape),)


def _shapes(*words: str) -> tuple[Shape, ...]:
    """Return the shapes of words such as ``256x4``, ``256x4x528`` (with the most blocks), ``256x8+64`` (ahead)."""
    pairs = (word.partition("+") for each in words for word in each.split())
    return tuple(Shape(*map(int, shape.split("x")), ahead=int(ahead or 0)) for shape, _, ahead in pairs)


# elementwise: one vec4 per invocation and many workgroups are fastest on an H200: 4,369 GB/s against 4,316 with four
# (vector add, 2^28). 2^20 items are then as many invocations as it runs at once.
# reduce, scan: four loads in flight per invocation reach the bandwidth of an H200; its 132 multiprocessors want 4
# blocks each from a reduction (fewer totals to combine at the end) and 8 from a scan of blocks. A CPU adapter runs a
# workgroup per core at a time: more blocks only add barriers, and so do more invocations (lavapipe on 2 cores: reduce
# at 2^18 with 64 × 8 in 32 blocks 0.40 ms, with 256 × 4 in 64 blocks 1.14; at 2^22 6.5 and 5.1; scan of blocks at 2^20
# with 64 × 4 5.2 ms, with 256 × 4 7.6).
# reduce, few items: half as many blocks (H200, 100 in a pass, 264 against 528: 5.6 and 6.3 µs at 2^22): each posts
# a total and counts itself, and the last one combines them; with 512 invocations it takes 6.2, and 4.4 against
# 4.1 at 2^20. Up to one tile a single one does it.
# scan_lookback: 128 × 16 is the best of the shapes tried on an H200 at 2^28 and 2^24
# (docs/contribute/performance.md): large tiles make the chain short, small workgroups let more of them overlap.
# Few items are one tile per multiprocessor at most: a
# tile of the same size with more invocations is done sooner (2^20 on an H200: 512 × 4 6.4 µs, 128 × 16 7.9), and half a
# tile still sooner (2^16: 512 × 2 4.2 µs, 512 × 4 4.9). 2^22 items in such tiles are still all at work at once.
# search: each workgroup first loads a table of 8 KiB, so it takes at least as many queries as that has keys where there
# are enough for all multiprocessors.
# merge: 4 × vecs − 1 keys per invocation. A tile of 256 × 3 is 2,816 keys, 11 KiB of workgroup memory, so five
# workgroups fit on a multiprocessor that has 64 KiB (H200, 2^28 keys: 831 µs; 256 × 2 848, 256 × 4 854, 128 × 2 965).
# merge_network: 16 keys of a lane at a time. Large tiles need fewer searches for their parts (H200, 2^28 keys: 256 × 4
# 698 µs, 256 × 8 687, 256 × 16 662, 512 × 16 664, 128 × 16 661); fewer keys need enough tiles for all multiprocessors
# (2^24: 256 × 4 71 µs, 256 × 8 76).
# stream: a select of half of 2^28 items on an H200 takes 582 µs with 256 × 8, 567 with 128 × 16, 775 with 128 × 8, 680
# with 512 × 8. stream_flags (flags of their own): 652 with 256 × 8, 571 with 256 × 16. stream_split (partition in 2):
# 821 with 256 × 8, 810 with 128 × 16. Smaller inputs as scan_lookback. Beyond 2^24 items a tile is counted before it is
# written (H100, none, 32, 64 tiles ahead: select of 2^25 110, 101, 99 µs, of 2^28 707, 633, 623; partition of 2^25 150,
# 133, 134, of 2^28 1,050, 867, 875; with flags of 2^28, 256 × 16, 727, 691, 700, 256 × 8 with 32 ahead 736).
# transpose: of one square of 32 × 32, 4 KiB, as many workgroups share a multiprocessor as have invocations on it
# (H200, 16,384²: 542 µs with 128 × 2, 549 with 64 × 4, 561 with 256 × 2, 581 with 128 × 4; a copy 501).
# histogram: 16 KiB of counters, so that four workgroups of 512 fill a multiprocessor. histogram_ranges: as many
# counters as a workgroup may have, and as many invocations to use them; not measured yet.
# top_k: 8 loads in flight; a group has up to 4 tiles of 8,192 items, and 2^28 items have 2^14 minima in groups of 2
# tiles. Other shapes are as fast (H100, 2^28: 256 × 4, 128 × 8, 512 × 8 within 1 %).
# by_key: 2^28 items of u32 in runs of 8 on an H200: scan 856 µs and reduce 874 with 256 × 8, 850 and 930 with 128 × 8,
# 872 and 1,215 with 512 × 4. segmented: as scans by key.
# segmented_reduce, by the length of segments (2^28 items, H200, µs): of 2^10 407 with 128 × 8 and 457 with 256 × 4; of
# 16 (medium) 691 and 539; of 8 565 and 881; of 1 and 2 (tiny) 1,396 and 1,001, but 1,214 and 878 with 256 × 4. 528
# blocks are 2 % faster than 1,024, only segments of 1 want 792. Few items: with 264 blocks 2^22 in segments of 2^16
# take 16.3 µs, with 1,024 23.9.
# A CPU adapter compiles fewer rows sooner, and rarely runs them more slowly (lavapipe on 2 cores, CPU time of the first
# call and of one at 2^20): elementwise 256 × 4 0.28 s and 12 ms, 256 × 1 0.09 s and 8 ms; scan_lookback 256 × 8 1.2 s
# and 16 ms, 128 × 4 0.4 s and 16 ms; stream (a select in blocks) 256 × 8 1.5 s and 35 ms, 64 × 4 0.7 s and 27 ms;
# by_key 256 × 2 0.7 s and 70 ms, 128 × 2 0.6 s and 51 ms; histogram 64 × 4 0.6 s and 22 ms, 64 × 2 0.3 s and 20 ms.
_BY_KEY = (
    _shapes("128x4 128x8 128x12 128x16 256x4 256x6 256x8 512x4"),
    _shapes("64x8 128x2 128x8 256x4 256x8"),
)
_SEGMENTED_REDUCTIONS = (
    _shapes(
        *(f"{s}x{b}" for s in ("128x4", "128x8", "128x16", "256x4", "256x8", "512x4") for b in (264, 528, 792, 1056))
    ),
    _shapes("64x2x64 64x4x16 64x4x64 64x8x64 256x4x64"),
)
_STREAMS = (
    _shapes("128x8 128x12 128x16 256x4 256x8 256x8+32 256x8+64 256x16 512x2 512x4 512x8"),
    _shapes("64x4 64x8 64x16 128x16 256x8 256x16"),
)

_TABLE: Mapping[str, _Kernel] = {
    "elementwise": _Kernel(
        ElementwiseTuning,
        _any(Shape(256, 1)),
        _any(Shape(256, 1)),
        _shapes("64x1 128x1 256x1 512x1 1024x1 256x2 512x2 256x4"),
        _shapes("64x4 64x8 128x4 256x1 256x4 256x8 256x16"),
    ),
    "reduce": _Kernel(
        ReduceTuning,
        ((1 << 22, Shape(256, 4, 264)), (None, Shape(256, 4, 528))),
        ((1 << 20, Shape(64, 4, 32)), (None, Shape(256, 4, 64))),
        _shapes(
            "256x4x264 256x4x528 256x4x1056 256x8x528 512x2x264 512x4x132 512x4x264 512x8x132 1024x2x264 1024x4x132"
        ),
        _shapes("64x4x32 64x8x16 64x8x32 64x8x64 256x4x32 256x4x64"),
    ),
    "scan": _Kernel(
        ScanTuning,
        _any(Shape(256, 4, 1056)),
        _any(Shape(64, 4, 64)),
        _shapes("256x2x1056 256x4x528 256x4x1056 256x8x1056 512x4x528"),
        _shapes("64x2x64 64x4x16 64x4x64 64x8x64 256x4x64"),
    ),
    "scan_lookback": _Kernel(
        ScanTuning,
        ((1 << 18, Shape(512, 2)), (1 << 22, Shape(512, 4)), (None, Shape(128, 16))),
        _any(Shape(128, 4)),
        _shapes("128x8 128x12 128x16 256x4 256x8 256x12 512x2 512x4 1024x2"),
        _shapes("64x8 64x16 128x4 128x16 256x8 256x16"),
    ),
    "search": _Kernel(
        ElementwiseTuning,
        ((1 << 20, Shape(256, 1)), (None, Shape(256, 4))),
        _any(Shape(64, 16)),
        _shapes("128x4 128x8 256x1 256x2 256x4 256x8 512x2 512x4"),
        _shapes("64x4 64x16 128x16 256x4 256x16"),
    ),
    "transpose": _Kernel(
        ElementwiseTuning,
        _any(Shape(128, 2)),
        _any(Shape(256, 2)),
        _shapes("64x4 64x8 128x2 128x4 256x1 256x2 256x3"),
        _shapes("64x4 256x1 256x2 256x3"),
    ),
    "merge": _Kernel(
        ElementwiseTuning,
        ((1 << 18, Shape(256, 1)), (None, Shape(256, 3))),
        _any(Shape(64, 4)),
        _shapes("128x2 128x4 128x5 256x1 256x2 256x3 256x4 512x2"),
        _shapes("64x2 64x4 128x4 256x2 256x4"),
    ),
    "merge_network": _Kernel(
        ElementwiseTuning,
        ((1 << 25, Shape(256, 4)), (None, Shape(256, 16))),
        _any(Shape(64, 4)),
        _shapes("128x4 128x8 128x16 256x4 256x8 256x16 512x8"),
        _shapes("64x2 64x4 64x8 128x4 256x4"),
    ),
    "top_k": _Kernel(
        ElementwiseTuning,
        _any(Shape(256, 8)),
        _any(Shape(64, 8)),
        _shapes("128x8 128x16 256x4 256x8 256x16 512x4 512x8"),
        _shapes("64x8 64x16 128x16 256x8 256x16"),
    ),
    "by_key": _Kernel(
        ScanTuning,
        ((1 << 18, Shape(512, 2)), (1 << 22, Shape(512, 4)), (None, Shape(256, 8))),
        _any(Shape(128, 2)),
        *_BY_KEY,
    ),
    "segmented": _Kernel(
        ScanTuning,
        ((1 << 18, Shape(512, 2)), (1 << 22, Shape(512, 4)), (None, Shape(128, 8))),
        _any(Shape(128, 2)),
        *_BY_KEY,
    ),
    "segmented_reduce": _Kernel(
        ScanTuning,
        ((1 << 22, Shape(256, 4, 264)), (None, Shape(128, 8, 528))),
        _any(Shape(64, 4, 64)),
        *_SEGMENTED_REDUCTIONS,
    ),
    "segmented_reduce_tiny": _Kernel(
        ScanTuning,
        ((1 << 22, Shape(256, 4, 264)), (None, Shape(256, 4, 792))),
        _any(Shape(64, 4, 64)),
        *_SEGMENTED_REDUCTIONS,
    ),
    "segmented_reduce_medium": _Kernel(
        ScanTuning,
        ((1 << 22, Shape(256, 4, 264)), (None, Shape(256, 4, 528))),
        _any(Shape(64, 4, 64)),
        *_SEGMENTED_REDUCTIONS,
    ),
    "histogram": _Kernel(
        HistogramTuning,
        ((1 << 20, Shape(256, 2, 264)), (None, Shape(512, 4, 528))),
        _any(Shape(64, 2, 32)),
        _shapes("256x4x528 256x4x1056 512x2x528 512x4x264 512x4x528 512x8x528 1024x2x264 1024x4x264"),
        _shapes("64x2x32 64x4x16 64x4x32 64x8x32 256x4x32"),
    ),
    "histogram_ranges": _Kernel(
        HistogramTuning,
        _any(Shape(1024, 4, 264)),
        _any(Shape(64, 4, 32)),
        _shapes("256x4x264 512x4x132 512x4x264 1024x2x132 1024x4x132 1024x4x264 1024x8x132"),
        _shapes("64x4x16 64x4x32 64x8x32 256x4x32"),
    ),
    "stream": _Kernel(
        StreamTuning,
        (
            (1 << 18, Shape(512, 2)),
            (1 << 22, Shape(512, 4)),
            (1 << 24, Shape(256, 8)),
            (None, Shape(256, 8, ahead=64)),
        ),
        _any(Shape(64, 4)),
        *_STREAMS,
    ),
    "stream_flags": _Kernel(
        StreamTuning,
        (
            (1 << 18, Shape(512, 2)),
            (1 << 22, Shape(512, 4)),
            (1 << 24, Shape(256, 16)),
            (None, Shape(256, 16, ahead=32)),
        ),
        _any(Shape(64, 4)),
        *_STREAMS,
    ),
    "stream_split": _Kernel(
        StreamTuning,
        (
            (1 << 18, Shape(512, 2)),
            (1 << 22, Shape(512, 4)),
            (1 << 24, Shape(256, 8)),
            (None, Shape(256, 8, ahead=32)),
        ),
        _any(Shape(64, 4)),
        *_STREAMS,
    ),
}

# By what differs for items that do not have 4 bytes (2^28 items on an H200, GB/s): a row of 16 bytes has 16 items of 1
# byte, so a tile of the same length is a quarter of the loads, and two rows at once are faster (u8: 3,140 to 3,750).
# Accumulators of two words take twice the registers, and tiles of half the length are faster (i64: 3,070 to 3,215).
_VECS_OF_BYTES = {"reduce": 2.0}
_VECS_OF_PAIRS = {"scan_lookback": 0.5}
_LEAST_VECS_HALVED = 8
# Accumulators of three and four words: no more registers for a tile's items, and no more loads in flight, than with two
# words. Not measured yet.
_MOST_WORDS_OF_VECS = {"scan_lookback": 16, "scan": 8, "reduce": 8}

# Where the order of additions is fixed, without subgroups. The shape is a part of the results, so it is the same on
# every adapter, and no row above changes it: 256 invocations are what every WebGPU device runs, the rest is as above
# for many items on a GPU. A CPU adapter would rather have fewer blocks.
_FIXED_SHAPES = {"reduce": Shape(256, 4, 528), "scan": Shape(256, 4, 1056)}

KERNELS = tuple(_TABLE)


def has_blocks(kernel: str) -> bool:
    """Whether a kernel gives each workgroup a block of tiles: then its shapes say how many workgroups there are."""
    return "max_blocks" in _TABLE[kernel].fields


def look_back_tiles(mode: SubgroupMode) -> int:
    """Return how many tiles a lane polls in one round of a look-back.

    The window is 32 tiles whatever the subgroup size: on an H200 wider ones were slower (64 tiles 5 %, 128 tiles 6 %,
    256 tiles 19 % at 2^28), since waiting workgroups then poll more.
    """
    return max(1, min(8, 32 // mode.size))


def candidates_for(kernel: str, capabilities: Capabilities, mode: SubgroupMode | None = None) -> tuple[Shape, ...]:
    """Return the shapes worth trying for `kernel` on a device: those that it can run."""
    row = _TABLE[kernel]
    tried = row.candidates_cpu if capabilities.is_cpu else row.candidates_gpu
    return tuple(s for s in tried if _objection(s, capabilities, mode) is None)


def shapes_for(
    kernel: str,
    capabilities: Capabilities,
    mode: SubgroupMode | None = None,
    tuning: Tuning | None = None,
) -> Shapes[Shape]:
    """Return the shapes of `kernel` on a device: the caller's, else those that were tuned, else the table's.

    Parameters
    ----------
    kernel : str
        One of `KERNELS`.
    capabilities : Capabilities
    mode : SubgroupMode, optional
        None for a kernel without subgroups.
    tuning : Tuning, optional
        The caller's. With any of its fields that make a shape there is one shape for all lengths.

    Raises
    ------
    ArgumentError
        If a workgroup would not hold whole subgroups, or is over the device's limit.
    """
    default = _TABLE[kernel].rows(capabilities)
    chosen = _chosen(kernel, tuning)
    if not chosen:
        tuned = _tuned(kernel, capabilities, mode)
        if tuned is not None:
            return Shapes(_within_grid(tuned, capabilities), "tuned")
        shapes = Shapes(tuple((up_to, _fit(shape, capabilities, mode)) for up_to, shape in default))
    else:
        shapes = Shapes(((None, replace(default[-1][1], **chosen)),), "argument")
    for _, shape in shapes.rows:
        objection = _objection(shape, capabilities, mode)
        if objection is not None:
            raise ArgumentError(objection)
    return replace(shapes, rows=_within_grid(shapes.rows, capabilities))


def group_table_shape(capabilities: Capabilities) -> Shape:
    """Return the shape of group_tables.wgsl.

    A workgroup's table of 4,096 keys takes a quarter of the workgroup memory that an NVIDIA driver gives a
    multiprocessor, and each workgroup adds it to the one in memory: so few workgroups of many invocations are fastest
    (a first form on an H200, 2^26 rows: 512 × 2 in 528 blocks 169 µs, in 1,056 190; 256 × 2 in 528 238; 1,024 × 2 in
    264 149, where devices allow so many).
    """
    return _fit(Shape(64, 2, 32) if capabilities.is_cpu else Shape(512, 2, 528), capabilities, None)


def suited(shapes: Shapes[Shape], kernel: str, item_bytes: int, words: int) -> Shapes[Shape]:
    """Return the table's shapes for items of so many bytes and accumulators of so many words; others as they are."""
    if shapes.source != "default":
        return shapes

    def vecs(shape: Shape) -> int:
        if item_bytes == 1 and kernel in _VECS_OF_BYTES:
            return min(16, int(shape.vecs * _VECS_OF_BYTES[kernel]))
        if words > 2 and kernel in _MOST_WORDS_OF_VECS:
            return min(shape.vecs, _MOST_WORDS_OF_VECS[kernel] // words)
        if words == 2 and kernel in _VECS_OF_PAIRS and shape.vecs > _LEAST_VECS_HALVED:
            return int(shape.vecs * _VECS_OF_PAIRS[kernel])
        return shape.vecs

    return replace(shapes, rows=tuple((up_to, replace(s, vecs=vecs(s))) for up_to, s in shapes.rows))


def fixed_shapes(kernel: str, capabilities: Capabilities, asked: str, tuning: Tuning | None = None) -> Shapes[Shape]:
    """Return the one shape of a kernel whose order of additions is fixed, for every length and device.

    Parameters
    ----------
    kernel : {"reduce", "scan"}
    capabilities : Capabilities
    asked : str
        The option that asks for a fixed order, for messages.
    tuning : Tuning, optional
        The caller's.

    Raises
    ------
    ArgumentError
        If the caller's shape is another one, or the device's workgroups cannot hold it.
    """
    shape = _FIXED_SHAPES[kernel]
    for name, value in _chosen(kernel, tuning).items():
        fixed = getattr(shape, name)
        if value != fixed:
            raise ArgumentError(
                f"{name}={value} together with {asked}, whose order of additions is fixed with {name}={fixed}; "
                f"leave out one of the two"
            )
    objection = _objection(shape, capabilities, None)
    if objection is not None:
        raise ArgumentError(f"{asked} is unsupported on {capabilities.adapter!r}: {objection}")
    return Shapes(((None, shape),), "fixed")


def tuning_of(kernel: str, shape: Shape) -> Tuning:
    """Return the tuning that gives a kernel this shape for all lengths."""
    row = _TABLE[kernel]
    return row.family.from_dict({name: getattr(shape, name) for name in row.fields})


def shape_of(kernel: str, data: Mapping[str, Any]) -> Shape:
    """Return the shape that `tuning_of` makes JSON data of, by ``to_dict()``.

    Raises
    ------
    ArgumentError
        If a number of a shape is missing, is out of range, or is one that the kernel does not have.
    """
    names = _TABLE[kernel].fields
    if set(data) != set(names):
        raise ArgumentError(f"{data!r} is no shape of {kernel}; it has {', '.join(names)}")
    return Shape(**_TABLE[kernel].family.from_dict(data).to_dict())


def _chosen(kernel: str, tuning: Tuning | None) -> dict[str, int]:
    """Return the fields of a caller's tuning that make a kernel's shape."""
    given = {} if tuning is None else tuning.to_dict()
    return {name: given[name] for name in _TABLE[kernel].fields if name in given}


def _most_invocations(capabilities: Capabilities) -> int:
    return min(
        capabilities.limits["max-compute-invocations-per-workgroup"],
        capabilities.limits["max-compute-workgroup-size-x"],
    )


def totals_invocations(blocks: int, shape: Shape, capabilities: Capabilities, *, total_bytes: int) -> int:
    """Return the invocations of the one workgroup that scans the totals of all blocks.

    A round takes as many blocks as there are invocations, and costs a trip to memory and a scan: on an H200 nine rounds
    of 128 made a segmented reduction of 2^28 items 24 µs slower than a reduction. So a GPU takes one round where the
    device allows it. A CPU adapter runs invocations one after another, and keeps those of the shape.
    """
    if capabilities.is_cpu:
        return shape.workgroup_size
    # Workgroup memory of an invocation: a total, where subgroups are emulated a second one, and a word.
    room = capabilities.limits["max-compute-workgroup-storage-size"] // (2 * total_bytes + 4)
    most = min(_most_invocations(capabilities), room)
    return max(shape.workgroup_size, min(1 << (blocks - 1).bit_length(), 1 << (most.bit_length() - 1)))


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
    rows = tuple((up_to, shape_of(kernel, data)) for up_to, data in (capabilities.tuning or {}).get(kernel, ()))
    if not rows or any(_objection(shape, capabilities, mode) is not None for _, shape in rows):
        return None
    return rows
