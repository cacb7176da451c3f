"""Shapes of the radix sort's kernels: the model's, those that were tuned, or the caller's, cut to a device's limits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import ArgumentError
from ..types.capabilities import Capabilities, SubgroupMode
from ..types.datatype import Datatype
from .facts import facts_of
from .model import rows_of, sort_kernel
from .options import SortTuning
from .rows import Shapes, overlaid
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


class _Row(NamedTuple):
    """What the model says of a shape, or what was tuned."""

    workgroup_size: int
    items: int
    parts: int
    look: int


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
    tuning = SortTuning.of(tuning)
    words = max(-(-key.itemsize_bytes // 4), value_words)
    kernel = sort_kernel(words=words, floats=key.dtype.kind == "f", values=value_words > 0, computes=computes)
    rows = tuple((up_to, _Row(**fields)) for up_to, fields in rows_of(kernel, capabilities))
    if not (tuning.workgroup_size is tuning.items is tuning.parts is None):
        return Shapes(((None, _shape(capabilities, mode, words, rows[-1][1], tuning)),), "argument")
    shapes = tuple((up_to, _shape(capabilities, mode, words, row, tuning)) for up_to, row in rows)
    if tuning.look is not None:
        return Shapes(shapes, "argument")
    tuned: list[tuple[int, int, SortShape]] = []
    for above, up_to, fields in ranges_of(kernel, capabilities):
        with suppress(ArgumentError):  # another device's, or one without subgroups: the model's shape stays
            tuned.append(
                (above, up_to, _shape(capabilities, mode, words, _Row(**fields), SortTuning.from_dict(fields)))
            )
    return overlaid(shapes, tuned)


def _shape(capabilities: Capabilities, mode: SubgroupMode, words: int, row: _Row, tuning: SortTuning) -> SortShape:
    """Return a row's shape, cut to the limits of the device, except for the caller's numbers."""
    most = capabilities.most_invocations
    storage_bytes = capabilities.limits["max-compute-workgroup-storage-size"]
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
    # Most blocks: as a scan of blocks.
    blocks = _CPU_BLOCKS if capabilities.is_cpu else 8 * facts_of(capabilities).multiprocessors
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
