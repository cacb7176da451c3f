"""Shapes of the segmented sort's kernels, with the reasons."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from ..errors import ArgumentError
from ..types.capabilities import Capabilities, SubgroupMode
from .model import rows_of
from .options import SegmentedSortTuning
from .shapes import ranges_of

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
    most = capabilities.most_invocations
    storage_bytes = capabilities.limits["max-compute-workgroup-storage-size"]

    def most_items(size: int) -> int:
        # Apart from the stage: a word per bin, one or (emulated) three per invocation, some single words.
        free_words = storage_bytes // 4 - 256 - size * (3 if mode.kind == "emulated" else 1) - 16
        rows_words = size // 32 * 256
        if rows_words > free_words:
            return 0
        words = free_words - (rows_words if mode.kind == "none" else 0)
        return min(words, _MOST_TILE_ITEMS - 1) // size

    usual = rows_of(_KERNELS[key_words], capabilities)[-1][1]
    size = tuning.workgroup_size
    if size is None:
        size = min(usual["workgroup_size"], most // 128 * 128)
        while size > 256 and most_items(size) < 4:
            size -= 128
    if size % 128 or not 256 <= size <= most or size % mode.size:
        raise ArgumentError(
            f"workgroup_size={size} must be a multiple of 128, from 256 to {most} (max-compute-invocations-per-"
            f"workgroup), and hold whole subgroups of {mode.size} ({mode})"
        )
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
    rows_words = size // 32 * 256
    stage_words = rows_words + tile_items if mode.kind == "none" else max(rows_words, tile_items)
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
