"""Shapes of the kernels that sort: the model's, those that were tuned, or the caller's, cut to a device's limits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from ..errors import ArgumentError
from ..types.capabilities import Capabilities, SubgroupMode
from ..types.datatype import Datatype
from .facts import facts_of
from .model import KERNELS, Fields, sort_kernel
from .options import SegmentedSortTuning, SortTuning
from .rows import Shapes, overlay
from .shapes import ranges_of


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


@dataclass(frozen=True)
class _Limits:
    """What a device allows the workgroups that rank keys."""

    capabilities: Capabilities
    mode: SubgroupMode

    @property
    def storage_bytes(self) -> int:
        """Workgroup memory."""
        return self.capabilities.limits["max-compute-workgroup-storage-size"]

    @property
    def has_digits_behind(self) -> bool:
        """Whether digits lie behind the counters."""
        return self.mode.kind == "none"

    def free_words(self, size: int) -> int:
        """Return the words of memory for the counters of the rows and for keys; 0 where the counters do not fit."""
        # Beside them: a word per bin, one or (emulated) three per invocation, some single words.
        words = self.storage_bytes // 4 - 256 - size * (3 if self.mode.kind == "emulated" else 1) - 16
        return words if words >= _rows_words(size) else 0

    def workgroup_size(self, asked: int | None, usual: int, has_room: Callable[[int], bool]) -> int:
        """Return the caller's size, else the usual one, cut so that keys have room beside the counters of the rows."""
        most = self.capabilities.most_invocations
        size = min(usual, most // 128 * 128) if asked is None else asked
        while asked is None and size > 256 and not has_room(size):
            size -= 128
        if size % 128 or not 256 <= size <= most or size % self.mode.size:
            raise ArgumentError(
                f"workgroup_size={size} must be a multiple of 128, from 256 to {most} (max-compute-invocations-per-"
                f"workgroup), and hold whole subgroups of {self.mode.size} ({self.mode})"
            )
        return size


def _rows_words(size: int) -> int:
    """Return the words of the counters of all rows."""
    return size // 32 * 256


# lavapipe ends all loops of an invocation after 65,535 iterations in total.
_MAX_TILES_PER_BLOCK = 32
_CPU_BLOCKS = 64


def sort_shapes_for(
    capabilities: Capabilities, mode: SubgroupMode, key: Datatype, value_words: int, tuning: SortTuning | None = None,
    *, computes: bool = False,
) -> Shapes[SortShape]:  # fmt: skip
    """Return the shapes of a sort's kernels on a device: the caller's, else those that were tuned, else the model's.

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
    tuning, limits = SortTuning.of(tuning), _Limits(capabilities, mode)
    words = max(-(-key.itemsize_bytes // 4), value_words)
    # Keys of 1 and 2 bytes take registers as expressions do: pairs with 16 of u16 447 µs (H200, 2^24), 360 before.
    computes = computes or key.itemsize_bytes < 4
    kernel = sort_kernel(words=words, floats=key.dtype.kind == "f", values=value_words > 0, computes=computes)
    rows = KERNELS[kernel].rows(capabilities)
    if not (tuning.workgroup_size is tuning.items is tuning.parts is None):
        return Shapes(((None, _sort_shape(limits, words, rows[-1][1], tuning)),), "argument")
    shapes = tuple((up_to, _sort_shape(limits, words, fields, tuning)) for up_to, fields in rows)
    if tuning.look is not None:
        return Shapes(shapes, "argument")
    tuned: list[tuple[int, int, SortShape]] = []
    for above, up_to, fields in ranges_of(kernel, capabilities):
        with suppress(ArgumentError):  # another device's, or one without subgroups: the model's shape stays
            tuned.append((above, up_to, _sort_shape(limits, words, fields, SortTuning.from_dict(fields))))
    return overlay(shapes, tuned)


def _sort_shape(limits: _Limits, words: int, usual: Fields, tuning: SortTuning) -> SortShape:
    """Return the usual shape, cut to the limits of the device, except for the caller's numbers."""

    def most_items(size: int, parts: int) -> int:
        free_words = limits.free_words(size)
        fitting = free_words // (size * words) * parts
        return min(fitting, (free_words - _rows_words(size)) // size) if limits.has_digits_behind else fitting

    parts = usual["parts"] if tuning.parts is None else tuning.parts
    size = limits.workgroup_size(
        tuning.workgroup_size, usual["workgroup_size"], lambda size: most_items(size, parts) >= parts
    )
    items = usual["items"]
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
            f"sort: workgroups of {size} need more than max-compute-workgroup-storage-size, {limits.storage_bytes} "
            f"bytes; use a smaller workgroup_size"
        )
    if tuning.items is None:
        items = max(1, min(items, fitting) // parts) * parts
    if items > fitting or items % parts:
        raise ArgumentError(
            f"items={items} per invocation must be a multiple of parts={parts} and at most {fitting}: more does not "
            f"fit into max-compute-workgroup-storage-size, {limits.storage_bytes} bytes"
        )
    rows_words = _rows_words(size)
    # Most blocks: as a scan of blocks.
    blocks = _CPU_BLOCKS if limits.capabilities.is_cpu else 8 * facts_of(limits.capabilities).multiprocessors
    behind_words = rows_words + size * items if limits.has_digits_behind else 0
    return SortShape(
        workgroup_size=size,
        items=items,
        parts=parts,
        stage_words=max(rows_words, size * items * words // parts, behind_words),
        look=usual["look"] if tuning.look is None else tuning.look,
        max_blocks=blocks,
        max_tiles_per_block=4 if limits.mode.kind == "emulated" else _MAX_TILES_PER_BLOCK,
        count_workgroup_size=256,
        count_blocks=blocks,
        count_copies=1,
        count_items=8,
    )


# ---- segmented sorts

# Of segments of one length those with which a segment fits into a tile: 2^24 keys of u32 in segments of 4,096 take 372
# µs with 8, 403 with 10, 521 with 12 (H200).
_ITEMS_OF_LENGTH = {1: (8, 10, 12), 2: (8,)}
# By the words of a key.
_KERNELS = {1: "segmented_sort", 2: "segmented_sort_wide"}
# A tag has 16 bits for the position in a tile.
_MOST_TILE_ITEMS = 1 << 16


@dataclass(frozen=True)
class SegmentedSortShape:
    """The shape of the kernels of a segmented sort.

    Attributes
    ----------
    workgroup_size : int
    items : int
        Keys per invocation and tile.
    window : int
        Items of a window: a workgroup takes the short segments that begin in some neighbouring windows.
    stage_words : int
        Words of workgroup memory for the counters of the rows and for a word of each key.
    """

    workgroup_size: int
    items: int
    window: int
    stage_words: int

    @property
    def tile_items(self) -> int:
        """Keys that a workgroup does at once."""
        return self.workgroup_size * self.items

    @property
    def most(self) -> int:
        """Items of the longest segment that is sure to fit into a tile, wherever in a window it begins."""
        return self.tile_items - self.window + 1

    @property
    def group_windows(self) -> int:
        """Windows of a workgroup: a tile holds their segments, unless the last one is longer than a window."""
        return max(1, self.tile_items // self.window - 1)


def segmented_sort_shape_for(
    capabilities: Capabilities,
    mode: SubgroupMode,
    key_words: int,
    tuning: SegmentedSortTuning,
    length: int | None = None,
) -> SegmentedSortShape:
    """Return the shape of a segmented sort's kernels on a device: the caller's, else the model's, cut to the limits.

    Parameters
    ----------
    capabilities : Capabilities
    mode : SubgroupMode
    key_words : int
        32-bit words of a key.
    tuning : SegmentedSortTuning
    length : int, optional
        Of all segments, where they are of one length.

    Raises
    ------
    ArgumentError
        If the caller's shape is over the device's limits.
    """
    limits = _Limits(capabilities, mode)
    storage_bytes = limits.storage_bytes

    def most_items(size: int) -> int:
        behind = _rows_words(size) if limits.has_digits_behind else 0
        return max(0, min(limits.free_words(size) - behind, _MOST_TILE_ITEMS - 1)) // size

    usual = KERNELS[_KERNELS[key_words]].rows(capabilities)[-1][1]
    size = limits.workgroup_size(tuning.workgroup_size, usual["workgroup_size"], lambda size: most_items(size) >= 4)
    fitting = most_items(size)
    items = tuning.items
    if items is None:
        wished = usual["items"]
        if length is not None and not capabilities.is_cpu:
            wished = next((k for k in _ITEMS_OF_LENGTH[key_words] if length <= size * k), wished)
        items = max(1, min(wished, fitting))
    if items > fitting:
        raise ArgumentError(
            f"items={items} per invocation, but workgroups of {size} have room for at most {fitting} in "
            f"max-compute-workgroup-storage-size, {storage_bytes} bytes"
        )
    tile_items = size * items
    # A sixth: a workgroup takes five of them together, so tiles are at least five sixths full where segments are short,
    # and segments of up to five sixths of a tile are short.
    window = max(1, tile_items // 6) if tuning.window is None else tuning.window
    if window > tile_items:
        raise ArgumentError(
            f"window={window} items, but a tile has {tile_items} (workgroup_size={size}, items={items})"
        )
    rows_words = _rows_words(size)
    stage_words = rows_words + tile_items if limits.has_digits_behind else max(rows_words, tile_items)
    return SegmentedSortShape(size, items, window, stage_words)


def tuned_segmented_sort(
    capabilities: Capabilities,
    mode: SubgroupMode,
    key_words: int,
    tuning: SegmentedSortTuning,
    length: int | None,
    n: int,
) -> SegmentedSortTuning | None:
    """Return the tuning that was found for `n` items by offsets; None where there is none, or the caller has a shape.

    Parameters are those of `segmented_sort_shape_for`.
    """
    if length is not None:
        return None
    for above, up_to, found, _ in reversed(_tuned(capabilities, mode, key_words, tuning)):
        if above < n <= up_to:
            return found
    return None


def tuned_segmented_sorts(
    capabilities: Capabilities, mode: SubgroupMode, key_words: int, tuning: SegmentedSortTuning
) -> list[SegmentedSortShape]:
    """Return the shapes that were found by offsets for any number of items; see `tuned_segmented_sort`."""
    return [shape for *_, shape in _tuned(capabilities, mode, key_words, tuning)]


def _tuned(
    capabilities: Capabilities, mode: SubgroupMode, key_words: int, tuning: SegmentedSortTuning
) -> list[tuple[int, int, SegmentedSortTuning, SegmentedSortShape]]:
    """Return what was found: above so many items, up to so many, the tuning and its shape."""
    if not (tuning.workgroup_size is tuning.items is tuning.window is None):
        return []
    usable: list[tuple[int, int, SegmentedSortTuning, SegmentedSortShape]] = []
    for above, up_to, fields in ranges_of(_KERNELS[key_words], capabilities):
        found = replace(tuning, **fields)
        with suppress(ArgumentError):  # another device's, or one without subgroups: the model's shape stays
            usable.append((above, up_to, found, segmented_sort_shape_for(capabilities, mode, key_words, found)))
    return usable
