"""SegmentedSort: sorts the items of each segment, of any lengths.

Source: the ranking is that of the sort (lib/sort_rank.wgsl). Short segments are sorted in workgroup memory, several at
once, with the number of the segment as the last digits. Long ones take a count, sums of the counts, and a pass per
digit, within each segment; no workgroup waits for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_constants import BINS, DIGIT_WIDTH_SHIFT, DIGIT_WORD_SHIFT
from ..planning.kernel_request import Invocations, KernelFile, Memory
from ..planning.layout import COUNT, Layout, Operand
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..tuning.options import SegmentedSortTuning
from ..tuning.sort_shapes import (
    SegmentedSortShape,
    segmented_sort_shape_for,
    tuned_segmented_sort,
    tuned_segmented_sorts,
)
from ..types.capabilities import Capabilities, SubgroupMode
from ..types.datatype import (
    DATATYPES,
    STORAGE_DATATYPES,
    VALUE_DATATYPES,
    Datatype,
    KeyDatatypeLike,
    ValueDatatypeLike,
    as_datatype,
)
from ..types.expression import Operators
from ..types.operators import Add, operator_context
from ..types.options import integer
from .base import Primitive
from .calls import SegmentedSortCalls
from .engines.key_codes import key_codes, key_context, key_words
from .engines.radix_sort import digits_of, rank_context, ranking_mode
from .engines.segments import segments_of
from .registry import register
from .scan import Scan
from .sort import Sort, SortPairs

_MAX_ITEMS = 1 << 30
# Copies of the counters of a tile: with fewer, lanes with equal digits wait for each other.
_COPIES = 8
# Tiles whose counts one workgroup adds up; more where there would be many groups.
_GROUP_TILES, _MOST_GROUPS = 32, 256
_LIST_WORKGROUP_SIZE = 64
# Workgroups that share the tiles of long segments: several for each that runs at a time, so that all end together.
_MOST_LONG_WORKGROUPS = 2048


@register("segmented_sort")
class SegmentedSort(SegmentedSortCalls, Primitive):
    """Sort the items of each segment; stable.

    Segments are those of `SegmentedReduce`.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the keys: bool, or integers and floats of 8 to 64 bits.
    value_dtype : Datatype, str or numpy dtype, optional
        Of values of 4 or 8 bytes that move with the keys; by default there are none.
    length : int, optional
        Items of each segment; the last one has the rest. There are then no offsets.
    longest : int, optional
        With offsets: a promise that no segment has more items, which saves kernels. What the output has for a longer
        one is unspecified.
    descending : bool, default False
        Largest first. Equal keys keep their order in both directions.
    tuning : SegmentedSortTuning, optional
        Options that affect only the speed. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``keys`` and ``output_keys``, shape (n,); with values ``values`` and ``output_values``, shape (n,);
        without `length` ``offsets`` of u32, shape (segments + 1,).
    Sort : the order.

    Notes
    -----
    The order is that of `Sort`. Offsets must not fall, which nobody checks on the GPU; of others the results are
    undefined, but nothing outside the arrays is read or written. Items before the first offset or behind the last one
    are in no segment: what the output has there is unspecified.

    Segments of up to `most` items (on most GPUs 4,097, or 2,732 of 8 bytes) are sorted in workgroup memory, in one
    dispatch that reads and writes each item once, whatever their lengths. Longer ones take two reads and a write of
    their items for each digit of 8 bits. Which are which is decided on the GPU, so with offsets all dispatches are
    made, unless `longest` says that those for longer segments have no work.

    Temporary memory for more than `most` items is a copy of the items and a third of a byte for each; with offsets
    another 0.02 bytes.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> keys = gw.asarray(np.array([3, 1, 2, 9, 7], dtype=np.uint32), device)
    >>> offsets = gw.asarray(np.array([0, 3, 3, 5], dtype=np.uint32), device)
    >>> gw.SegmentedSort(device, "u32").execute(keys=keys, offsets=offsets).output.to_numpy()
    array([1, 2, 3, 7, 9], dtype=uint32)
    >>> gw.SegmentedSort(device, "u32", length=2, descending=True).execute(keys=keys).output.to_numpy()
    array([3, 1, 9, 2, 7], dtype=uint32)
    """

    takes_count = True
    #: Most workgroups that share the tiles of long segments; tests set fewer.
    _long_workgroups: ClassVar[int] = _MOST_LONG_WORKGROUPS
    #: Without values and offsets.
    arguments = (Argument("keys"), Argument("output_keys", is_output=True, length=SameAs("keys")))
    datatypes: ClassVar[Mapping[str, Datatype]] = STORAGE_DATATYPES

    @explained(SegmentedSortTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike | Operators = "u32",
        value_dtype: ValueDatatypeLike | None = None,
        *,
        length: int | None = None,
        longest: int | None = None,
        descending: bool = False,
        tuning: SegmentedSortTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.value_datatype: Datatype | None = (
            None if value_dtype is None else as_datatype(value_dtype, VALUE_DATATYPES)
        )
        self.length: int | None = None if length is None else integer("length", length, 1)
        self.longest: int | None = None if longest is None else integer("longest", longest, 1)
        if self.longest is not None and self.length is not None:
            raise ArgumentError(
                f"{self.name}: longest={self.longest} is about segments by offsets, but length={self.length} says how "
                f"long all of them are; give one of the two"
            )
        self.descending: bool = bool(descending)
        self.datatype: Datatype = as_datatype(self._take(dtype, "keys"), self.datatypes)
        self.tuning: SegmentedSortTuning = SegmentedSortTuning.of(tuning)
        self.mode: SubgroupMode = ranking_mode(self.capabilities, self.tuning.subgroups)
        self._key_words = key_words(self.datatype)
        self._value_words = 0 if self.value_datatype is None else self.value_datatype.itemsize_bytes // 4
        self._shape: SegmentedSortShape = segmented_sort_shape_for(
            self.capabilities, self.mode, self._key_words, self.tuning, self.length
        )
        self._digits = digits_of(self.datatype, 0, None)

    @cached_property
    def _scan(self) -> Scan:
        """Scans the tiles of long segments."""
        return Scan(self._device, "u32", capabilities=self.capabilities)

    def _arguments(self) -> tuple[Argument, ...]:
        values = self.value_datatype is not None
        found = [Argument("keys")]
        if values:
            length = SameAs("keys", "every key needs one value")
            found.append(Argument("values", datatype="value_datatype", length=length))
        if self.length is None:
            found.append(Argument("offsets", datatype=DATATYPES["u32"], is_apart=True))
        found.append(Argument("output_keys", is_output=True, length=SameAs("keys")))
        if values:
            found.append(Argument("output_values", is_output=True, datatype="value_datatype", length=SameAs("keys")))
        return tuple(found)

    @classmethod
    def at_size(cls, n: int, segment: int = 256, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the options and lengths for a benchmark: segments of one length, of which the last may be shorter."""
        return {"length": segment}, {"keys": n}

    # ---- plans ----

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch for short segments of one length; for offsets also those for long segments."""
        builder = PlanBuilder("segmented_sort", layout, self.capabilities)
        given, layout = layout, self._reads(layout)
        n, segments = layout["keys"].length, self._segments(layout)
        if n >= _MAX_ITEMS:
            raise LimitError(f"{self.name}: {n} keys, but one sort takes at most {_MAX_ITEMS - 1}; sort parts")
        tuned = self._tuned(n)
        if tuned is not None:
            return tuned.plan(given)
        shape = self._shape
        if self.length is not None and self.length >= n > shape.tile_items:
            return self._plan_whole(given)
        parameters: dict[str, Any] = {
            **asdict(shape), "subgroups": str(self.mode), "segments": segments,
            "most": shape.most if self.length is None else shape.tile_items, "tiles": 0, "long_tiles": 0,
        }  # fmt: skip
        if n and segments:
            parameters |= self._plan_segments(builder, layout, n, segments)
        return builder.build(self._work(builder, layout), parameters)

    def _tuned(self, n: int) -> Self | None:
        """Return the same sort in the shape that was tuned for `n` items; None where it has that, or there is none."""
        found = tuned_segmented_sort(self.capabilities, self.mode, self._key_words, self.tuning, self.length, n)
        return None if found is None else self.replace(tuning=found)

    def _segments(self, layout: Layout) -> int:
        if self.length is not None:
            return -(-layout["keys"].length // self.length)
        return segments_of(self.name, layout)

    @property
    def most(self) -> int:
        """Items of the longest segment that one workgroup sorts, however many items there are in all."""
        if self.length is not None:
            return self._shape.tile_items
        shapes = tuned_segmented_sorts(self.capabilities, self.mode, self._key_words, self.tuning)
        return min(shape.most for shape in (self._shape, *shapes))

    def _work(self, builder: PlanBuilder, layout: Layout) -> Work:
        n = layout["keys"].length
        item_bytes = self.datatype.itemsize_bytes + 4 * self._value_words
        read_bytes = layout["keys"].nbytes + 4 * self._value_words * n
        counted = builder.counted_work(n, read_bytes // max(n, 1), item_bytes)
        offsets = layout["offsets"].nbytes if self.length is None else 0
        return Work(n, read_bytes + offsets, n * item_bytes, counted=counted)

    def _plan_whole(self, layout: Layout) -> Plan:
        """Return the plan of a sort of all items, which are one segment."""
        names = {COUNT: COUNT, "keys": "keys", "values": "values", "output_keys": "output_keys",
                 "output_values": "output_values"}  # fmt: skip
        options: dict[str, Any] = {"descending": self.descending, "capabilities": self.capabilities}
        dtype: Any = self.datatype if self._fusion is None else self._fusion.flat
        if self.value_datatype is None:
            names |= {"keys": "input", "output_keys": "output"}
            sort: Sort | SortPairs = Sort(self._device, dtype, **options)
        else:
            sort = SortPairs(self._device, dtype, self.value_datatype, **options)
        renamed = {names.get(name, name): operand for name, operand in layout.items()}
        return replace(sort.plan(Layout(renamed, layout.values_given)), primitive="segmented_sort")

    def _plan_segments(self, builder: PlanBuilder, layout: Layout, n: int, segments: int) -> dict[str, Any]:
        shape = self._shape
        if self.length is not None:
            length = min(self.length, n)  # a segment that is longer has all items
            if length <= shape.tile_items:
                each = max(1, shape.tile_items // length)
                tiles = -(-segments // each)
                self._add_tiles(builder, layout, tiles, {"length": length, "tile_length": each * length}, {})
                return {"tiles": tiles}
            segment_tiles = -(-length // shape.tile_items)
            rest = n - (segments - 1) * length
            tiles = (segments - 1) * segment_tiles + -(-rest // shape.tile_items)
            self._add_passes(builder, layout, tiles, {"length": length, "segment_tiles": segment_tiles}, {})
            return {"long_tiles": tiles}
        windows = -(-n // shape.window)
        longs = min(n, self.longest or n) > shape.most
        table = builder.scratch("windows", 4 * windows)
        writes = {"windows": table}
        if longs:
            writes |= {name: builder.scratch(name, windows).by_words() for name in ("long_tiles", "long_ends")}
        builder.kernel(
            "windows",
            KernelFile(
                "segmented_sort_windows.wgsl",
                context={"longs": longs},
                constants={"WORKGROUP_SIZE": _LIST_WORKGROUP_SIZE},
            ),
            Memory(reads={"offsets": layout["offsets"].by_words()}, writes=writes),
            params={
                "n": n,
                "segments": segments,
                "windows": windows,
                "window_items": shape.window,
                "most": shape.most,
                "tile_items": shape.tile_items,
            },
            extent=Invocations("windows"),
            counted_from=0,
        )
        reads = {"offsets": layout["offsets"].by_words(), "windows": table}
        tiles = -(-windows // shape.group_windows)
        self._add_tiles(builder, layout, tiles, {"windows": windows, "group_windows": shape.group_windows}, reads)
        if not longs:
            return {"tiles": tiles}
        # A long segment has at least `most` + 1 items, and at most one tile that is not full.
        long_tiles = n // shape.tile_items + min(n // (shape.most + 1), segments)
        reads = {"list": self._add_list(builder, writes, windows, long_tiles)}
        self._add_passes(builder, layout, long_tiles, {}, reads)
        return {"tiles": tiles, "long_tiles": long_tiles}

    def _key_context(self, *, tagged: bool, **more: Any) -> dict[str, Any]:
        """Return the template values of the kernels that know keys."""
        return {
            **key_context(self.datatype, descending=self.descending),
            "fixed": self.length is not None,
            "tagged": tagged,
            **more,
        }

    def _rank_context(self, *, tagged: bool, **more: Any) -> dict[str, Any]:
        """Return the template values of the kernels that rank keys."""
        held = [{"name": "keys", "words": self._key_words + tagged}]
        return {
            **operator_context(Add, DATATYPES["u32"], self.mode),
            **self._key_context(tagged=tagged),
            **rank_context(self._shape, self.mode, self.capabilities),
            "partial": True,
            "parts": 1,
            "held": held,
            "moved": [],
            **more,
        }

    @property
    def _features(self) -> tuple[str, ...]:
        return ("subgroup",) if self.mode.kind == "native" else ()

    def _add_tiles(
        self, builder: PlanBuilder, layout: Layout, tiles: int, params: Mapping[str, int], reads: Mapping[str, Operand]
    ) -> None:
        """Add the kernel that sorts short segments."""
        values = self.value_datatype is not None
        # Word of the tag, and its upper bits.
        tag_digits = [shift | 8 << DIGIT_WIDTH_SHIFT | self._key_words << DIGIT_WORD_SHIFT for shift in (16, 24)]
        builder.kernel(
            "sort short segments",
            KernelFile(
                "segmented_sort_tiles.wgsl",
                context=self._rank_context(tagged=True, values=values, passes=len(self._digits), tag_digits=tag_digits),
                constants={"WORKGROUP_SIZE": self._shape.workgroup_size},
                features=self._features,
            ),
            Memory(
                reads={
                    "keys_input": layout["keys"].by_words(),
                    **({"values_input": layout["values"].by_words()} if values else {}),
                    **reads,
                },
                writes={
                    "keys_output": layout["output_keys"].by_words(),
                    **({"values_output": layout["output_values"].by_words()} if values else {}),
                },
            ),
            params={
                "n": layout["keys"].length,
                "tiles": tiles,
                **params,
                **{f"digit_{i}": digit for i, digit in enumerate(self._digits)},
                "identity_bits": 0,
            },
            extent="tiles",
            counted_from=0,
        )

    def _add_list(self, builder: PlanBuilder, tables: Mapping[str, Operand], windows: int, tiles: int) -> Operand:
        """Add the kernels that list the tiles of long segments."""
        ends = builder.scratch("long_tile_ends", windows)
        scanned = {"input": replace(tables["long_tiles"], vec4=True), "output": ends}
        builder.include("long tiles", self._scan, scanned, counted=False)
        found = builder.scratch("long_tile_list", 4 * tiles)
        builder.kernel(
            "list long tiles",
            KernelFile("segmented_sort_list.wgsl", constants={"WORKGROUP_SIZE": _LIST_WORKGROUP_SIZE}),
            Memory(
                reads={"ends": ends, "windows": tables["windows"], "long_ends": tables["long_ends"]},
                writes={"list": found},
            ),
            params={"tiles": tiles, "windows": windows, "tile_items": self._shape.tile_items},
            extent=Invocations("tiles"),
        )
        return found

    def _add_passes(
        self, builder: PlanBuilder, layout: Layout, tiles: int, params: Mapping[str, int], reads: Mapping[str, Operand]
    ) -> None:
        """Add the kernels that sort long segments, digit by digit."""
        shape, n = self._shape, layout["keys"].length
        kinds = {"keys": self.datatype.itemsize_bytes}
        if self.value_datatype is not None:
            kinds["values"] = self.value_datatype.itemsize_bytes
        places = {
            "input": {kind: layout[kind].by_words() for kind in kinds},
            "output": {kind: layout[f"output_{kind}"].by_words() for kind in kinds},
        }
        if len(self._digits) > 1:
            places["temporary"] = {
                kind: builder.scratch(f"temporary_{kind}", n, item_bytes, in_chunks=True).by_words()
                for kind, item_bytes in kinds.items()
            }
        group_tiles = max(_GROUP_TILES, -(-tiles // _MOST_GROUPS))
        groups = -(-tiles // group_tiles)
        counts, sums = (builder.scratch(name, BINS * tiles).by_words() for name in ("tile_counts", "tile_sums"))
        totals = builder.scratch("group_totals", BINS * groups).by_words()
        grouped = {"tiles": tiles, "groups": groups, "group_tiles": group_tiles}
        fixed = {"fixed": self.length is not None}
        # Most tiles that there may be are not used where most segments are short: then few workgroups find that out.
        workgroups = tiles if self.length is not None else min(tiles, self._long_workgroups)
        source = "input"
        for index, digit in enumerate(self._digits):
            # The last pass writes the output.
            destination = "temporary" if (len(self._digits) - index) % 2 == 0 else "output"
            tiled = {
                "n": n, "tiles": tiles, "workgroups": workgroups, "tile_items": shape.tile_items, **params,
                "digit": digit,
            }  # fmt: skip
            builder.kernel(
                f"count {index}",
                KernelFile(
                    "segmented_sort_count.wgsl",
                    context=self._key_context(tagged=False, copies=_COPIES),
                    constants={"WORKGROUP_SIZE": 256},
                ),
                Memory(reads={"keys_input": places[source]["keys"], **reads}, writes={"counts": counts}),
                params=tiled,
                extent="workgroups",
                counted_from=0,
            )
            builder.kernel(
                f"totals {index}",
                KernelFile("segmented_sort_totals.wgsl", context=fixed),
                Memory(reads={"counts": counts, **reads}, writes={"totals": totals}),
                params=grouped,
                extent="groups",
            )
            builder.kernel(
                f"offsets {index}",
                KernelFile("segmented_sort_offsets.wgsl", context=fixed),
                Memory(reads={"counts": counts, "totals": totals, **reads}, writes={"sums": sums}),
                params=grouped,
                extent="groups",
            )
            builder.kernel(
                f"pass {index}",
                KernelFile(
                    "segmented_sort_move.wgsl",
                    context=self._rank_context(tagged=False, value_words=self._value_words),
                    constants={"WORKGROUP_SIZE": shape.workgroup_size},
                    features=self._features,
                ),
                Memory(
                    reads={
                        **{f"{kind}_input": operand for kind, operand in places[source].items()},
                        "counts": counts,
                        "sums": sums,
                        **reads,
                    },
                    writes={f"{kind}_output": operand for kind, operand in places[destination].items()},
                ),
                params={**tiled, "identity_bits": 0},
                extent="workgroups",
                counted_from=0,
            )
            source = destination

    def _reference(self, keys: np.ndarray, values: np.ndarray | None = None, offsets: np.ndarray | None = None) -> Any:
        """Return the result of numpy's stable sort of each segment: keys, or keys and values."""
        n = keys.size
        if offsets is None:
            assert self.length is not None
            segment = np.arange(n) // self.length
        else:
            segment = np.searchsorted(offsets, np.arange(n), side="right")
        order = np.lexsort((key_codes(keys, self.descending), segment))
        return keys[order] if values is None else (keys[order], values[order])
