"""SegmentedScan and SegmentedReduce: combine the items of segments that offsets delimit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import LengthError, LimitError
from ..planning.builder import PlanBuilder
from ..planning.layout import Layout
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..planning.source import Source
from ..planning.windows import Window, binding_limit, bindings_for
from ..settings import ScanStrategy
from ..tuning.options import ScanTuning
from ..tuning.rows import Shape, Shapes
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, ItemDatatypeLike
from ..types.expression import Operators
from ..types.operators import Add, BinOpLike
from ..types.options import MOST_U32, integer, one_of
from .calls import ByOffsetsCalls
from .engines.operator import BlockWindow, blocks_of
from .engines.segments import SegmentedPrimitive, segmented_prefixes, segments_of, window_flags
from .reduce_axis import ReduceAxis
from .registry import register
from .scan import KINDS, ScanKind

# Where segments have fewer items than this on average, the kernel has a path for tiles of short ones
# (lib/segmented_short.wgsl). Its registers make longer ones slower: on an H200 2^28 items in segments of 16 take 740 µs
# with it and 540 without.
_SHORT_SEGMENT = 12
# Tables of shapes, for segments of fewer items than this on average; longer ones have the table of `_kernel`.
_SHAPE_TABLES = (4, "segmented_reduce_tiny"), (_SHORT_SEGMENT, "segmented_reduce"), (48, "segmented_reduce_medium")
# Up to so many items, or where segments have so many on average, each segment has a team of invocations.
_ITEMS_OF_TEAMS, _SEGMENT_OF_TEAMS = 1 << 22, 48
# A team combines so many times the items that it loads at once, before the whole workgroup helps.
_ROUNDS_OF_TEAM = 8


_OFFSETS = Argument("offsets", datatype=DATATYPES["u32"], is_apart=True)


def _segments_of(lengths: Mapping[str, int]) -> int:
    """Return the number of segments: one less than offsets."""
    return max(lengths["offsets"], 1) - 1


class _ByOffsets(ByOffsetsCalls, SegmentedPrimitive):
    """Base of primitives whose segments are given by offsets."""

    _heads = "offsets"

    @classmethod
    def at_size(cls, n: int, segment: int = 1024, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the lengths for segments of equal length, of which the last may be shorter."""
        return {}, {"items": n, "offsets": -(-n // segment) + 1}


def _heads_of_offsets(offsets: np.ndarray, n: int) -> np.ndarray:
    heads = np.zeros(n, dtype=bool)
    heads[:1] = True
    heads[offsets[offsets < n]] = True
    return heads


@register("segmented_scan")
class SegmentedScan(_ByOffsets):
    """Compute the prefix sums of each segment.

    As `Scan`, for each segment; segments as in `SegmentedReduce`.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the items, of 4 bytes or more; a struct has up to three fields.
    op : BinOp or str, default Add
    kind : {"inclusive", "exclusive"}
    strategy : {"auto", "reduce_then_scan", "lookback"}, optional
        As for `Scan`.
    deterministic : bool, default False
        For floats: the same bits on every run and adapter, as for `Scan`; three dispatches, which read the items twice.
    tuning : ScanTuning, optional
        Options that affect only the speed. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``items`` and ``output``, shape (n,), and ``offsets`` of u32, shape (segments + 1,).
    ScanByKey : segments by keys.

    Notes
    -----
    Offsets must not fall, which nobody checks on the GPU; of others the results are undefined, but nothing outside the
    arrays is read or written. Items before the first offset or behind the last one are in no segment: what the output
    has there is unspecified.

    Each workgroup finds the segments of its tile in the offsets, so a call reads each item and about each offset once,
    whatever the lengths of the segments. Float sums depend on timing as in `Scan`, unless `deterministic` is given.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> items = gw.asarray(np.ones(5, dtype=np.uint32), device)
    >>> offsets = gw.asarray(np.array([0, 3, 3, 5], dtype=np.uint32), device)
    >>> gw.SegmentedScan(device, "u32", gw.Add).execute(items=items, offsets=offsets).output.to_numpy()
    array([1, 2, 3, 1, 2], dtype=uint32)
    """

    arguments = (
        Argument("items"),
        _OFFSETS,
        Argument("output", is_output=True, length=SameAs("items")),
    )
    _emission = "dense"
    _per_item = ("items", "output")
    _also_read = ("offsets",)

    @explained(ScanTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        op: BinOpLike = Add,
        kind: ScanKind = "inclusive",
        *,
        strategy: ScanStrategy | None = None,
        deterministic: bool = False,
        tuning: ScanTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, dtype, op, strategy=strategy, deterministic=deterministic, tuning=tuning, capabilities=capabilities
        )
        self.kind: ScanKind = one_of("kind", kind, KINDS)
        self._exclusive = kind == "exclusive"

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch (look-back), or three."""
        builder = PlanBuilder("segmented_scan", layout, self.capabilities)
        layout = self._reads(layout)
        n, segments = self._items_in(layout["items"]), segments_of(self.name, layout)
        parameters: dict[str, Any] = {"kind": self.kind, "subgroups": str(self.mode), "segments": segments}
        if n:
            parameters |= self._plan_items(builder, layout)
        items, item_bytes = layout["items"], self.datatype.itemsize_bytes
        counted = builder.counted_work(n, items.nbytes // max(n, 1), item_bytes)
        work = Work(n, items.nbytes + 4 * (segments + 1), n * item_bytes, max(0, n - 1), counted)
        return builder.build(work, parameters)

    def _reference(self, items: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input."""
        return self._prefixes(items, _heads_of_offsets(offsets, items.size))


@register("segmented_reduce")
class SegmentedReduce(_ByOffsets):
    """Combine the items of each segment.

    Segment s is items ``offsets[s]`` to ``offsets[s + 1] - 1``, as the rows of a CSR matrix, or all segments have one
    length.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the items, of 4 bytes or more; a struct has up to three fields.
    op : BinOp or str, default Add
    length : int, optional
        Items of each segment. There are then no offsets.
    strategy : {"auto", "reduce_then_scan", "lookback"}, optional
        Accepted as by the other primitives of segments, but the kernels are the same: none looks back.
    deterministic : bool, default False
        For floats: the same bits on every adapter, as for `Scan`. Without it they are the same on every run, with one
        exception that no GPU tried has shown (Notes).
    tuning : ScanTuning, optional
        Options that affect only the speed, of segments by offsets. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``items``, shape (n,), ``offsets`` of u32, shape (segments + 1,), and ``output``, shape (segments,).
    ReduceByKey : segments by keys.

    Notes
    -----
    An empty segment gives the operator's identity: 0 for a sum, the largest number for a minimum. ``np.add.reduceat``
    is another function: it takes the first item of an empty segment.

    Offsets must not fall, which nobody checks on the GPU; of others the results are undefined, but nothing outside the
    arrays is read or written. Items before the first offset or behind the last one count for no segment.

    A call reads each item and each offset once from memory, and some again out of a cache, whether segments have one
    item each or one has all. On a GPU one kernel gives each segment a team of invocations, a few to a workgroup, and
    cuts those that are too long for a workgroup into pieces, which the last workgroup to finish combines, as in
    `Reduce`. If it does not see what another workgroup published, it computes that anew, and sums of floats may round
    otherwise. More than 2²² items in segments of fewer than 48 on average, and all with `deterministic` or on a CPU,
    are reduced in blocks; a second kernel completes the segments that reach from block to block (Merrill and Garland,
    "Merge-based parallel sparse matrix-vector multiplication", 2016).

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> items = gw.asarray(np.arange(5, dtype=np.uint32), device)
    >>> offsets = gw.asarray(np.array([0, 3, 3, 5], dtype=np.uint32), device)
    >>> gw.SegmentedReduce(device, "u32", gw.Add).execute(items=items, offsets=offsets).output.to_numpy()
    array([3, 0, 7], dtype=uint32)
    >>> gw.SegmentedReduce(device, "u32", gw.Max, length=5).execute(items=items).output.to_numpy()
    array([4], dtype=uint32)
    """

    arguments = (
        Argument("items"),
        _OFFSETS,
        Argument("output", is_output=True, length=_segments_of),
    )
    _emission = "ends"
    _kernel = "segmented_reduce"
    _per_item = ("items",)
    _also_read = ("offsets",)
    _also_written = ("output",)

    @explained(ScanTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        op: BinOpLike = Add,
        *,
        length: int | None = None,
        strategy: ScanStrategy | None = None,
        deterministic: bool = False,
        tuning: ScanTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        self.length: int | None = None if length is None else integer("length", length, 1, MOST_U32)
        if self.length is not None:
            self.takes_count = False  # as a class without offsets would say
        super().__init__(
            device, dtype, op, strategy=strategy, deterministic=deterministic, tuning=tuning, capabilities=capabilities
        )

    def _arguments(self) -> tuple[Argument, ...]:
        if self.length is None:
            return self.arguments
        return (Argument("items"), Argument("output", is_output=True, length=SameAs("items", per=self.length)))

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch, or two for blocks; of segments of one length that of `ReduceAxis`."""
        if self.length is not None:
            return self._plan_rows(self._reads(layout), self.length)
        builder = PlanBuilder("segmented_reduce", layout, self.capabilities)
        layout = self._reads(layout)
        n, segments = self._items_in(layout["items"]), segments_of(self.name, layout)
        parameters: dict[str, Any] = {"subgroups": str(self.mode), "segments": segments}
        if segments:
            parameters |= self._plan_ends(builder, layout)
        items, item_bytes = layout["items"], self.datatype.itemsize_bytes
        counted = builder.counted_work(n, items.nbytes // max(n, 1), 0)
        work = Work(n, items.nbytes + 4 * (segments + 1), segments * item_bytes, max(0, n - segments), counted)
        return builder.build(work, parameters)

    # ---- segments by offsets

    def _shapes_of(self, segments: int, n: int) -> Shapes[Shape]:
        """Return the shapes for segments of so many items on average."""
        named = (name for most, name in _SHAPE_TABLES if n < most * segments)
        return self._shapes_by_name[next(named, self._kernel)]

    @cached_property
    def _shapes_by_name(self) -> dict[str, Shapes[Shape]]:
        fixed = self._fixed_order is not None
        return {name: self._shapes if fixed else self._shapes_for(name, self.tuning) for _, name in _SHAPE_TABLES}

    def _forms(self, n: int, segments: int) -> list[tuple[Shape, bool]]:
        """Return the shape of blocks, and whether they have the path for short segments; then those of others."""
        fixed, is_cpu = self._fixed_order is not None, self.capabilities.is_cpu
        # On CPU adapters there is one text.
        forms = [(self._shapes_of(segments, n).at(n), not fixed and (is_cpu or n < _SHORT_SEGMENT * segments))]
        for average in (1, *(most for most, _ in _SHAPE_TABLES)):
            short = not fixed and (is_cpu or average < _SHORT_SEGMENT)
            forms += [(shape, short) for _, shape in self._shapes_of(1, average).rows]
        return list(dict.fromkeys(forms))

    def _plan_ends(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        """Add the kernels: one of teams; or blocks, and what they have of earlier segments. The others are siblings."""
        n, segments = self._items_in(layout["items"]), segments_of(self.name, layout)
        shapes = self._shapes_of(segments, n)
        windows = self._windows_of_blocks(builder, layout, shapes.at(n))
        has_teams = self._may_have_teams(layout, windows)
        by_teams = has_teams and (n <= _ITEMS_OF_TEAMS or n >= _SEGMENT_OF_TEAMS * segments)
        self._reduce_blocks(builder, layout, windows, sibling=by_teams)
        reported = self._blocks_parameters(shapes.at(n), shapes, windows)
        if has_teams:
            shape = self._add_teams(builder, layout, windows[0].window, sibling=not by_teams)
            if by_teams:
                teams = {"workgroup_size": shape.workgroup_size, "vecs": shape.vecs, "blocks": 0}
                reported |= teams | self._state.parameters()
        return reported

    def _reduce_blocks(
        self, builder: PlanBuilder, layout: Layout, windows: Sequence[BlockWindow], sibling: bool
    ) -> None:
        n, segments = self._items_in(layout["items"]), segments_of(self.name, layout)
        blocks, words, elements = blocks_of(windows), 2 + 2 * self._accumulator.words, self.datatype.elements
        totals, fixed = builder.scratch("totals", words * blocks), self._fixed_order is not None
        forms = self._forms(n, segments)
        for shape, short in forms:
            other = sibling or (shape, short) != forms[0]
            for part in windows[:1] if other else windows:
                window = part.window
                self._add_kernel(
                    builder, window.label(self._label), "segmented_reduce.wgsl", shape, layout, window,
                    params={
                        "whole": (window.piece_length if fixed else window.length) // elements,
                        "max_blocks": shape.max_blocks, "blocks": part.blocks, "flags": window_flags(window),
                    },
                    items=window.length // elements, written={"totals": part.of_blocks(totals, words)},
                    extent="blocks", sibling=other, carried=len(windows) > 1, heads="ends",
                    short=short, offsets_are_written=layout.shares("offsets", "output"),
                )  # fmt: skip
            self._add_single(
                builder, "complete", "segmented_fixup.wgsl", shape, shape.max_blocks if other else blocks,
                {"output": layout["output"].by_words()}, totals, other,
            )  # fmt: skip

    def _add_teams(self, builder: PlanBuilder, layout: Layout, window: Window, *, sibling: bool) -> Shape:
        """Add the kernel in which each segment has a team; return its shape."""
        n, segments = self._items_in(layout["items"]), segments_of(self.name, layout)
        average, table = max(1, n // segments), self._shapes_by_name["segmented_reduce_medium"]
        # Longer segments have more invocations, and few of them more loads each (H200, 2^24 items in segments of 2^14
        # and 2^16: 512 × 4 18.8, 19.9 µs, 512 × 8 19.8, 18.4). Each computes with all its loads, also where a segment
        # has ended: 2^20 items in segments of 1 take 13.6, 16.2, 23.3 µs with 2, 4, 8.
        usual, most = table.at(_ITEMS_OF_TEAMS), self.capabilities.limits["max-compute-invocations-per-workgroup"]
        every, size = 4 * [usual], usual.workgroup_size
        if table.source == "default":
            large = min(2 * size, most)
            forms = (size, 2), (size, 4), (large, 8), (large, 4)
            every = [replace(usual, workgroup_size=size, vecs=vecs) for size, vecs in forms]
        shape = every[2 + (segments >= usual.max_blocks) if average > 16 * size else average >= _SEGMENT_OF_TEAMS]
        size, at_once, blocks = shape.workgroup_size, 4 * shape.vecs, shape.max_blocks
        team = min(size, 1 << (-(-average // at_once) - 1).bit_length())
        # A workgroup does two average segments alone where that is soon done, or there are enough of them.
        alone = 2 * average if average <= 4 * shape.tile_items or 4 * segments >= blocks else 0
        piece = max(shape.tile_items, -(-n // (4 * blocks)) * 4, alone)
        pieces = -(-n // piece) if n > piece else 0
        state = self._state.add_to(builder, max(1, pieces), words=self._accumulator.words)
        for name in ("control", "arrived"):
            state["atomics"][name] = builder.scratch(name, max(4, pieces)), "array<atomic<u32>>"
        params = {
            "team": team, "team_items": piece if team == size else min(piece, _ROUNDS_OF_TEAM * team * at_once),
            "piece_items": piece, "pieces": pieces, "workgroups": pieces - (-segments // (size // team)),
        }  # fmt: skip
        for each in dict.fromkeys(every):
            self._add_kernel(
                builder, self._label, "segmented_teams.wgsl", each, layout, window, params=params, items=n,
                extent="workgroups", sibling=sibling or each != shape, tickets=False, team_is_workgroup=False,
                team_in_memory=True, **state,
            )  # fmt: skip
        return shape

    def _may_have_teams(self, layout: Layout, windows: Sequence[BlockWindow]) -> bool:
        """Whether teams can take the segments.

        Several windows are several dispatches. Where the order is fixed, it must be that of several windows, too. On
        CPU adapters a second text takes long to compile.
        """
        bindings = 3 + bindings_for((layout[name] for name in ("items", "offsets", "output")), self.capabilities)
        fits = bindings <= self.capabilities.limits["max-storage-buffers-per-shader-stage"]
        return fits and len(windows) == 1 and self._fixed_order is None and not self.capabilities.is_cpu

    def _plan_rows(self, layout: Layout, length: int) -> Plan:
        n = self._items_in(layout["items"])
        if n % length:
            raise LengthError(
                f"{self.name}: {n} items are no whole number of segments of length={length}; give a multiple of it, or "
                f"offsets"
            )
        items, limit = layout["items"], binding_limit(self.capabilities)
        if isinstance(items, Source) and any(leaf.nbytes > limit for leaf in items.leaves):
            raise LimitError(
                f"{self.name}: items is an expression of arrays of more than {limit} bytes "
                f"(max-storage-buffer-binding-size), which length= does not read in windows; store it first, with "
                f"gw.asarray(), or give offsets"
            )
        rows = ReduceAxis(
            None, self.datatype, self.op, shape=(n // length, length), axis=1,
            deterministic=self._fixed_order is not None, capabilities=self.capabilities,
        )  # fmt: skip
        plan = rows.plan(Layout({"input": layout["items"], "output": layout["output"]}))
        return replace(plan, primitive="segmented_reduce")

    def _reference(self, items: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
        """Return numpy's result for the same input."""
        if offsets is None:
            assert self.length is not None
            offsets = np.arange(0, items.size + 1, self.length, dtype=np.uint32)
        prefixes = segmented_prefixes(self.op, items, _heads_of_offsets(offsets, items.size))
        result = np.full(offsets.size - 1, self.op.identity_for(self.datatype), dtype=items.dtype)
        ends = np.minimum(offsets[1:], items.size)
        filled = ends > offsets[:-1]
        result[filled] = prefixes[ends[filled] - 1]
        return result
