"""From facts of a device to the shapes of all kernels: one place, each rule with its reason.

The constants of the rules were fitted to what was fastest on an H200, whose shapes a test keeps. For another device the
facts change what a shape may cost: registers and workgroup memory of an invocation, so that enough of them are at work
at once; the number of workgroups that keep all multiprocessors busy; and up to which lengths a kernel has few tiles.
The notebook behind the figures is docs/contribute/performance.md. `gridwise tune` measures what the model says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import log2
from typing import NamedTuple, TypeAlias

from ..types.capabilities import Capabilities
from .candidates import candidates
from .facts import DISCRETE, DeviceFacts, facts_of
from .options import (
    AxisTuning,
    ElementwiseTuning,
    HistogramTuning,
    MatMulTuning,
    ReduceTuning,
    ScanTuning,
    SegmentedSortTuning,
    SortTuning,
    StreamTuning,
    Tuning,
)
from .rows import Rows

#: Tiles that a subgroup polls in one round of a look-back, whatever its size, of few items and of many. Of many, wider
#: windows need fewer rounds, but are not faster (H200, 32 and 64 tiles: unique of 2^24 30.9 and 30.6 µs, select 37.8
#: and 38.5). Tiles of few items are all at work together, and fewer rounds count.
WINDOW_TILES = (64, 32)
#: The fields of a tuning that make a shape, by name.
Fields: TypeAlias = Mapping[str, int]


#: The numbers of a shape, in the order of the fields of its kernel.
Numbers: TypeAlias = tuple[int, ...]
#: Returns the shapes for facts of a device, by the number of items.
Rule: TypeAlias = Callable[[DeviceFacts], Rows[Numbers]]


class TunedKernel(NamedTuple):
    """A kernel that has shapes.

    Attributes
    ----------
    family : type
        The tuning that takes them.
    fields : tuple of str
        The fields of it that make a shape.
    gpu : callable
        Returns the rows for facts of a device.
    cpu : rows
        Those of CPU adapters, whose times follow other rules: a workgroup per core, and compiling counts.
    """

    family: type[Tuning]
    fields: tuple[str, ...]
    gpu: Rule
    cpu: Rows[Numbers]

    def rows(self, capabilities: Capabilities) -> Rows[Fields]:
        """Return the shapes that the model gives on a device, by the number of items."""
        rows = self.cpu if capabilities.is_cpu else self.gpu(facts_of(capabilities))
        # Rows that the row behind them makes needless, or that facts have put out of order.
        kept: list[tuple[int | None, Numbers]] = []
        for up_to, numbers in rows:
            while kept and up_to is not None and (kept[-1][0] or 0) >= up_to:
                kept.pop()
            if kept and kept[-1][1] == numbers:
                kept.pop()
            kept.append((up_to, numbers))
        return tuple((up_to, dict(zip(self.fields, numbers, strict=True))) for up_to, numbers in kept)

    def shape(self, capabilities: Capabilities, n: int) -> tuple[int, int | None, Fields]:
        """Return the model's shape for `n` items, with the lengths that it is for: above so many, up to so many."""
        above = 0
        for up_to, fields in self.rows(capabilities):
            if up_to is None or n <= up_to:
                return above, up_to, fields
            above = up_to
        raise AssertionError("the last row is for any length")

    def near(self, fields: Fields) -> Iterator[Fields]:
        """Yield other shapes that are worth a measurement: near to one, the nearest first."""
        return candidates({name: fields[name] for name in self.fields})


def _near(number: float) -> int:
    """Return the power of two nearest to a number: a bound of lengths, which need not be exact."""
    return 1 << max(0, round(log2(max(number, 1.0))))


def _any(*numbers: int) -> Rows[Numbers]:
    """Return rows of a single shape, for any number of items."""
    return ((None, numbers),)


def _power_down(number: int) -> int:
    return 1 << (max(number, 1).bit_length() - 1)


def _power_within(number: float, least: int, most: int) -> int:
    return max(least, min(most, _near(number)))


# ---- kernels that move items once


def _always(*numbers: int) -> Rule:
    return lambda facts: _any(*numbers)


def _search(facts: DeviceFacts) -> Rows[Numbers]:
    """Each workgroup first loads a table of 8 KiB, so it takes at least as many queries as that has keys where there
    are enough for all that run at once."""
    few = facts.multiprocessors * facts.invocations // 256 * 1024
    return (_near(few), (256, 1)), (None, (256, 4))


def _transpose(facts: DeviceFacts) -> Rows[Numbers]:
    """Of one square of 32 × 32, 4 KiB, as many workgroups share a multiprocessor as have invocations on it (H200,
    16,384²: 542 µs with 128 × 2, 549 with 64 × 4, 561 with 256 × 2, 581 with 128 × 4; a copy 501)."""
    size = _power_within(facts.invocations * 4096 / facts.storage_bytes, 64, 256)
    return _any(size, 256 // size)


# ---- kernels that give each workgroup a block of tiles

# Four loads in flight per invocation reach the bandwidth of an H200; its multiprocessors want 4 blocks each from a
# reduction (fewer totals to combine at the end) and 8 from a scan of blocks. Few items: half as many blocks (H200, 100
# in a pass, 264 against 528: 5.6 and 6.3 µs at 2^22): each posts a total and counts itself, and the last one combines
# them; with 512 invocations it takes 6.2, and 4.4 against 4.1 at 2^20. Up to one tile a single one does it.
_FEW_TILES_OF_BLOCK = 4


def _in_blocks(*large: int, per_multiprocessor: int = 4) -> Rule:
    def rows(facts: DeviceFacts) -> Rows[Numbers]:
        blocks = 2 * facts.multiprocessors
        few = _near(blocks * _FEW_TILES_OF_BLOCK * 4096)
        return (few, (256, 4, blocks)), (None, (*large, per_multiprocessor * facts.multiprocessors))

    return rows


def _any_in_blocks(per_multiprocessor: int) -> Rule:
    return lambda facts: _any(256, 4, per_multiprocessor * facts.multiprocessors)


def _histogram(facts: DeviceFacts) -> Rows[Numbers]:
    """16 KiB of counters: workgroups of a size that fill a multiprocessor with as many as its memory holds."""
    size = _of_tables(facts)
    blocks = max(1, facts.storage_bytes // _TABLE_BYTES) * facts.multiprocessors
    few = _near(facts.multiprocessors * size * 16)
    return (few, (256, 2, 2 * facts.multiprocessors)), (None, (size, 4, blocks))


_TABLE_BYTES = 16 << 10


def _of_tables(facts: DeviceFacts) -> int:
    return _power_within(facts.invocations * _TABLE_BYTES / facts.storage_bytes, 128, 512)


def _histogram_ranges(facts: DeviceFacts) -> Rows[Numbers]:
    """As many counters as a workgroup may have, and as many invocations to use them; not measured yet."""
    return _any(1024, 4, 2 * facts.multiprocessors)


def group_table_fields(capabilities: Capabilities) -> Fields:
    """Return the shape of group_tables.wgsl.

    A workgroup's table of 4,096 keys takes 16 KiB, and each workgroup adds it to the one in memory: so few workgroups
    of many invocations are fastest (a first form on an H200, 2^26 rows: 512 × 2 in 528 blocks 169 µs, in 1,056 190;
    256 × 2 in 528 238; 1,024 × 2 in 264 149, where devices allow so many).
    """
    facts = facts_of(capabilities)
    blocks = max(1, facts.storage_bytes // _TABLE_BYTES) * facts.multiprocessors
    numbers = (64, 2, 32) if capabilities.is_cpu else (_of_tables(facts), 2, blocks)
    return dict(zip(_BLOCKS, numbers, strict=True))


# ---- look-backs

_CHAIN_TILE = 8192  # items


def _of_few(facts: DeviceFacts) -> int:
    return _power_within(facts.invocations / 4, 256, 512)


def few_items(facts: DeviceFacts) -> int:
    """Return the most items whose tiles are all at work at once."""
    return _near(facts.invocations // _of_few(facts) * facts.multiprocessors * _CHAIN_TILE)


def _chain(registers_of_item: int = 1, tile: float = 1.0, least: int = 128, *, at_once: int = 4) -> Rule:
    """Return the rule of a kernel whose tiles wait for the tiles before them.

    Parameters
    ----------
    registers_of_item : int
        That stay with each item from its load to its store.
    tile : float
        Tiles of this times the usual length were faster.
    least : int
        Invocations of a workgroup.
    at_once : int
        Tiles of few items that a multiprocessor has at work at once.
    """

    def rows(facts: DeviceFacts) -> Rows[Numbers]:
        # Large tiles make the chain short, small workgroups let more of them overlap (scan of 2^24, H200: 256 × 8 41.6
        # µs, 128 × 16 43.0, 512 × 4 43.9). Half as many items were up to a quarter slower on an H100, too.
        items = int(_CHAIN_TILE * tile)
        # Half of the registers for items, where a quarter of the invocations are at work.
        room = min(64, facts.registers_of_half)
        vecs = _power_down(min(16, room // (4 * registers_of_item), items // (4 * least)))
        large = items // (4 * vecs), vecs
        # Few items are one tile per multiprocessor at most: a tile of the same size with more invocations is done
        # sooner (2^20 on an H200: 512 × 4 6.4 µs, 128 × 16 7.9), and half a tile still sooner (2^16: 512 × 2 4.2 µs,
        # 512 × 4 4.9). 2^22 items in such tiles are still all at work at once.
        size = _of_few(facts)
        few = min(few_items(facts), _near(facts.multiprocessors * at_once * _CHAIN_TILE))
        return (
            (_near(facts.multiprocessors * 4096 / 2), (size, 1024 // size)),
            (few, (size, _CHAIN_TILE // (4 * size))),
            (None, large),
        )

    return rows


# ---- merges


def _merge(facts: DeviceFacts) -> Rows[Numbers]:
    """4 × vecs − 1 keys per invocation. A tile of 256 × 3 is 2,816 keys, 11 KiB of workgroup memory, so five workgroups
    fit on a multiprocessor that has 64 KiB (H200, 2^28 keys: 831 µs; 256 × 2 848, 256 × 4 854, 128 × 2 965)."""
    workgroups = 5 * facts.invocations / (8 * 256)
    fitting = [v for v in (1, 2, 3) if 256 * (4 * v - 1) * 4 * workgroups <= facts.storage_bytes]
    return (_near(2 * facts.multiprocessors * 768), (256, 1)), (None, (256, max(fitting, default=1)))


def _merge_network(facts: DeviceFacts) -> Rows[Numbers]:
    """16 keys of a lane at a time. Large tiles need fewer searches for their parts (H200, 2^28 keys: 256 × 4 698 µs,
    256 × 8 687, 256 × 16 662, 512 × 16 664, 128 × 16 661); fewer keys need enough tiles for all multiprocessors (2^24:
    256 × 4 71 µs, 256 × 8 76)."""
    return (_near(16 * facts.multiprocessors * 16_384), (256, 4)), (None, (256, 16))


# ---- sorts

# By the kind of items: registers that a kernel needs beside the keys, 32-bit words of a key and its value, tiles polled
# in one round, and parts of a tile. Floats are as fast with two tiles in a look as with three. Values take the
# registers that keys have left: 16 of each, where 18, 20, 22 are a fifth slower. Expressions with values, and pairs
# with 8 bytes, were measured while values were loaded part by part (2^26 keys `x & mask` with values 2,367 µs with 18
# keys of each invocation, 1,845 with 14).
_SORTS = {
    "sort_keys": (44, 1, 3, 2),
    "sort_floats": (44, 1, 2, 2),
    "sort_pairs": (48, 1, 2, 2),
    "sort_computed_pairs": (50, 1, 2, 2),
    "sort_wide": (40, 2, 2, 3),
    "sort_wide_pairs": (44, 2, 2, 2),
}
_SORT_FIELDS = ("workgroup_size", "items", "parts", "look")


def sort_kernel(*, words: int, floats: bool, values: bool, computes: bool) -> str:
    """Return the name of a sort's kernels by what they sort: words of a key, and whether values are read."""
    if words == 2:
        return "sort_wide_pairs" if values else "sort_wide"
    if values:
        return "sort_computed_pairs" if computes else "sort_pairs"
    return "sort_floats" if floats else "sort_keys"


def _sort(kernel: str) -> Rule:
    beside, words, look, parts = _SORTS[kernel]

    def rows(facts: DeviceFacts) -> Rows[Numbers]:
        # Large tiles make long runs to write and a short chain to look back over. Two workgroups share the registers
        # of a multiprocessor; with more keys one is left, and a third of the speed is lost. A tile goes through
        # workgroup memory in parts, so that two fit there, too. Few keys are at most one tile for each of these
        # places: smaller tiles keep all of them busy.
        size = _power_within(facts.invocations / 4, 256, 512)
        items = max(parts, (min(64, facts.registers_of_half) - beside) // words // parts * parts)
        few = _near(2 * facts.multiprocessors * size * 8)
        return (few, (size, 8 // words, 1, 2)), (None, (size, items, parts, look))

    return rows


class CodeCounts(NamedTuple):
    """How keys of 16 bits are counted: from `least` on, by so many workgroups, each one of the ranges of codes."""

    least: int
    workgroup_size: int
    ranges: int
    workgroups: int


def code_counts(capabilities: Capabilities) -> CodeCounts:
    """Return how sorts count keys of 16 bits.

    Each range reads all keys, so there are as few as counters of 16 bits fit, and a multiprocessor has one workgroup at
    once (H200, 2^24 keys: 4 ranges with 1,024 invocations 129 µs, with 512 186, 8 ranges 157, twice the workgroups
    132). Tables of 65,536 counters are more work than two passes over few keys (2^20 43 and 35 µs, 2^21 43 and 55).
    """
    facts, limits = facts_of(capabilities), capabilities.limits
    storage_bytes = min(limits["max-compute-workgroup-storage-size"], facts.storage_bytes)
    size = _power_down(min(capabilities.most_invocations, facts.invocations // 2, 1024))
    ranges = max(1, 2 * 65_536 // _power_down(storage_bytes))
    return CodeCounts(_near(facts.multiprocessors * 16_384), size, ranges, 2 * facts.multiprocessors)


def _segmented_sort(registers_of_key: int, beside: int) -> Rule:
    def rows(facts: DeviceFacts) -> Rows[Numbers]:
        # As sorts, where a key and its tag are two words of registers, or three. 2^24 keys of u32 on an H200, in
        # segments of 256, 4,096, 16,384 by offsets, take 851, 704, 1,084 µs with 10, and 960, 850, 1,210 with 12.
        size = _power_within(facts.invocations / 4, 256, 512)
        items = max(1, (min(64, facts.registers_of_half) - beside) // registers_of_key)
        return _any(size, items)

    return rows


# ---- matrices

_MATMUL_FIELDS = ("tile_m", "tile_n", "tile_k", "thread_m", "thread_n", "stages", "unroll")


def _matmul(facts: DeviceFacts) -> Rows[Numbers]:
    """Large: 8 × 8 sums are 64 multiply-adds for four vec4 from workgroup memory, and fit into 128 registers with all
    else, so that two workgroups share a multiprocessor and one works while the other waits at a barrier. Workgroup
    memory is 16 KiB, what every device has. Smaller outputs: each multiprocessor wants a workgroup at least. Tiles of
    128 are that many from 2^21 items of the output on (H200), tiles of 64 from 2^19; below, tiles of 32. With few
    workgroups the two stages save a barrier's wait."""
    small, medium = (32, 32, 16, 4, 4, 2, 8), (64, 64, 16, 8, 4, 2, 8)
    large = (128, 128, 16, 8, 8, 1, 16)
    if facts.storage_bytes < 2 * 16_384 or facts.registers < 2 * 256 * 128:
        large = medium
    few, many = _near(facts.multiprocessors * 64 * 64), _near(facts.multiprocessors * 128 * 128)
    return (few, small), (many, medium), (None, large)


class AxisParts(NamedTuple):
    """Into how many parts a scan along an axis cuts rows and columns: from how many on none, else how many in all."""

    rows: tuple[int, int]
    columns: tuple[int, int]


def scan_axis_parts(capabilities: Capabilities | None) -> AxisParts:
    """Return the parts of scans along an axis: of workgroups of rows, and of invocations of columns.

    With as many a GPU is busy: more parts would only read items twice. None, and a CPU adapter, have an H200's.
    """
    facts = DISCRETE if capabilities is None or capabilities.is_cpu else facts_of(capabilities)
    at_once = facts.multiprocessors * facts.invocations
    return AxisParts((2 * facts.multiprocessors, 8 * facts.multiprocessors), (_near(at_once / 8), _near(at_once / 2)))


# ---- all of them

# A CPU adapter runs a workgroup per core at a time: more blocks only add barriers, and so do more invocations (lavapipe
# on 2 cores: reduce at 2^18 with 64 × 8 in 32 blocks 0.40 ms, with 256 × 4 in 64 blocks 1.14; at 2^22 6.5 and 5.1; scan
# of blocks at 2^20 with 64 × 4 5.2 ms, with 256 × 4 7.6). It compiles fewer rows sooner, and rarely runs them more
# slowly (CPU time of the first call and of one at 2^20): elementwise 256 × 4 0.28 s and 12 ms, 256 × 1 0.09 s and 8 ms;
# scan_lookback 256 × 8 1.2 s and 16 ms, 128 × 4 0.4 s and 16 ms; stream (a select in blocks) 256 × 8 1.5 s and 35 ms,
# 64 × 4 0.7 s and 27 ms; by_key 256 × 2 0.7 s and 70 ms, 128 × 2 0.6 s and 51 ms; histogram 64 × 4 0.6 s and 22 ms,
# 64 × 2 0.3 s and 20 ms; a sort of pairs with 16 keys of each invocation 5.8 s, with 4 0.8, and 2^20 of them in 1.0 and
# 1.5 s. Products: large tiles in many registers (512³: 64 × 64 × 32 with 8 × 8 4.4 GFLOP/s, 32 × 32 × 16 with 4 × 4
# 1.9).
_SIZES, _BLOCKS = ("workgroup_size", "vecs"), ("workgroup_size", "vecs", "max_blocks")
_SEGMENTED_SORT = ("workgroup_size", "items")

#: All kernels that have shapes, by name.
KERNELS: Mapping[str, TunedKernel] = {
    # One vec4 per invocation and many workgroups are fastest (H200, vector add: 4,369 GB/s against 4,316 with four).
    # At full occupancy other subgroups hide the latency.
    "elementwise": TunedKernel(ElementwiseTuning, _SIZES, _always(256, 1), _any(256, 1)),
    "reduce": TunedKernel(ReduceTuning, _BLOCKS, _in_blocks(256, 4), ((1 << 20, (64, 4, 32)), (None, (256, 4, 64)))),
    "scan": TunedKernel(ScanTuning, _BLOCKS, _any_in_blocks(8), _any(64, 4, 64)),
    "scan_lookback": TunedKernel(ScanTuning, _SIZES, _chain(least=256), _any(128, 4)),
    "search": TunedKernel(ElementwiseTuning, _SIZES, _search, _any(64, 16)),
    "transpose": TunedKernel(ElementwiseTuning, _SIZES, _transpose, _any(256, 2)),
    "merge": TunedKernel(ElementwiseTuning, _SIZES, _merge, _any(64, 4)),
    "merge_network": TunedKernel(ElementwiseTuning, _SIZES, _merge_network, _any(64, 4)),
    # 8 loads in flight; a group has up to 4 tiles of 8,192 items, and 2^28 items have 2^14 minima in groups of 2 tiles.
    # Other shapes are as fast (H100, 2^28: 256 × 4, 128 × 8, 512 × 8 within 1 %).
    "top_k": TunedKernel(ElementwiseTuning, _SIZES, _always(256, 8), _any(64, 8)),
    # Keys stay beside values. 2^28 items of u32 in runs of 8 on an H200: scan 856 µs and reduce 874 with 256 × 8, 850
    # and 930 with 128 × 8, 872 and 1,215 with 512 × 4. A multiprocessor has room for one of 512 × 4: 2^22 items take
    # 24.5 µs, with 256 × 8 17.0 (reduce, states of 32 bits).
    "by_key": TunedKernel(ScanTuning, _SIZES, _chain(2, at_once=1), _any(128, 2)),
    "segmented": TunedKernel(ScanTuning, _SIZES, _chain(2, 0.5), _any(128, 2)),
    # By the length of segments (2^28 items, H200, µs): of 2^10 407 with 128 × 8 and 457 with 256 × 4; of 16 (medium)
    # 691 and 539; of 8 565 and 881; of 1 and 2 (tiny) 1,396 and 1,001, but 1,214 and 878 with 256 × 4. 528 blocks are
    # 2 % faster than 1,024, only segments of 1 want 792. Few items: with 264 blocks 2^22 in segments of 2^16 take 16.3
    # µs, with 1,024 23.9.
    "segmented_reduce": TunedKernel(ScanTuning, _BLOCKS, _in_blocks(128, 8), _any(64, 4, 64)),
    "segmented_reduce_tiny": TunedKernel(
        ScanTuning, _BLOCKS, _in_blocks(256, 4, per_multiprocessor=6), _any(64, 4, 64)
    ),
    "segmented_reduce_medium": TunedKernel(ScanTuning, _BLOCKS, _in_blocks(256, 4), _any(64, 4, 64)),
    "histogram": TunedKernel(HistogramTuning, _BLOCKS, _histogram, _any(64, 2, 32)),
    "histogram_ranges": TunedKernel(HistogramTuning, _BLOCKS, _histogram_ranges, _any(64, 4, 32)),
    # H200, 2^24 items: unique in runs of 8 and of 1 31.0 and 46.2 µs with 256 × 8, 32.2 and 48.3 with 512 × 8, 31.5 and
    # 47.2 with 512 × 4; a partition in 2 50.3 with 256 × 8, 53.8 with 256 × 16; a select by flags of 2^27 256 with
    # 256 × 8, 246 with 256 × 16.
    "stream": TunedKernel(StreamTuning, _SIZES, _chain(2), _any(64, 4)),
    # Keys of 8 bytes (unique of 2^24, runs of 8, H200: 256 × 8 68.2 µs, 256 × 4 65.6, 128 × 8 61.4, 512 × 4 59.6).
    "stream_wide": TunedKernel(StreamTuning, _SIZES, _chain(4), _any(64, 4)),
    "stream_flags": TunedKernel(StreamTuning, _SIZES, _chain(1, 2.0), _any(64, 4)),
    **{name: TunedKernel(SortTuning, _SORT_FIELDS, _sort(name), _any(256, 4, 1, 4)) for name in _SORTS},
    "segmented_sort": TunedKernel(SegmentedSortTuning, _SEGMENTED_SORT, _segmented_sort(2, 44), _any(256, 4)),
    "segmented_sort_wide": TunedKernel(SegmentedSortTuning, _SEGMENTED_SORT, _segmented_sort(3, 40), _any(256, 4)),
    "matmul": TunedKernel(
        MatMulTuning, _MATMUL_FIELDS, _matmul,
        ((1 << 14, (32, 32, 16, 4, 4, 1, 4)), (None, (64, 64, 16, 4, 8, 1, 4))),
    ),
    # Rows and few columns are cut into parts for as many workgroups as `Reduce` has blocks. Strips of columns do not
    # divide evenly into so many: of many small blocks the last ones leave less of the device idle.
    "axis_rows": TunedKernel(AxisTuning, _BLOCKS, _any_in_blocks(4), _any(256, 4, 32)),
    "axis_columns": TunedKernel(AxisTuning, _BLOCKS, _any_in_blocks(32), _any(256, 4, 32)),
}  # fmt: skip
