"""SegmentedScan and SegmentedReduce: combine the items of segments that offsets delimit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import LengthError, LimitError
from ..planning.builder import PlanBuilder
from ..planning.layout import Layout, Operand
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..planning.source import Source
from ..planning.windows import binding_limit, bindings_for
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
_SHAPES_OF_SEGMENTS = (
    (4, "segmented_reduce_tiny"),
    (_SHORT_SEGMENT, "segmented_reduce"),
    (48, "segmented_reduce_medium"),
)
# Up to so many items the last workgroup completes the segments (H200: 2^20 items in segments of 2^16 take 13 µs, not
# 21). Compilers make the text of larger tiles slower then, all of it: 2^28 items in segments of 1,024 take 603 µs, by
# two kernels 416, whose second one costs 15.
_COMPLETED_ITEMS = 1 << 22
# Blocks whose chains an invocation reads together then: with 1, 2, 4 of them 2^20 items take 12.6, 13.0, 14.4 µs; where
# there are more blocks, 2 was the fastest.
_BLOCKS_AT_A_TIME = 2


class _EndsForm(NamedTuple):
    """The form of the kernels of a reduction by offsets.

    Attributes
    ----------
    shape : Shape
    short : bool
        Whether it has the path for short segments.
    completes : bool
        Whether the last workgroup completes the segments; else a second kernel does.
    """

    shape: Shape
    short: bool
    completes: bool


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
    item each or one has all. Each workgroup does a block of the items, and a second kernel completes the segments that
    reach from block to block (Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", 2016).
    Up to 2²² items on a GPU, the last workgroup to finish does that, as in `Reduce`, unless `deterministic` is given.
    If it does not see what another workgroup published, it computes that anew, and sums of floats may round otherwise.

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
        """Return the plan: one dispatch for few items, else two; of segments of one length that of `ReduceAxis`."""
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
        named = (name for most, name in _SHAPES_OF_SEGMENTS if n < most * segments)
        return self._shapes_by_name[next(named, self._kernel)]

    @cached_property
    def _shapes_by_name(self) -> dict[str, Shapes[Shape]]:
        if self._fixed_order is not None:
            return {name: self._shapes for _, name in _SHAPES_OF_SEGMENTS}
        return {name: self._shapes_for(name, self.tuning) for _, name in _SHAPES_OF_SEGMENTS}

    def _forms(self, n: int, segments: int, *, may_complete: bool) -> list[_EndsForm]:
        """Return the form for n items, and those for other numbers of items and segments."""
        fixed, is_cpu = self._fixed_order is not None, self.capabilities.is_cpu
        # On CPU adapters there is one text.
        short = not fixed and (is_cpu or n < _SHORT_SEGMENT * segments)
        forms = [_EndsForm(self._shapes_of(segments, n).at(n), short, may_complete and n <= _COMPLETED_ITEMS)]
        for average in (1, *(most for most, _ in _SHAPES_OF_SEGMENTS)):
            begin = 0
            for up_to, shape in self._shapes_of(1, average).rows:
                is_short = not fixed and (is_cpu or average < _SHORT_SEGMENT)
                if may_complete and begin < _COMPLETED_ITEMS:
                    forms.append(_EndsForm(shape, is_short, True))
                if not may_complete or up_to is None or up_to > _COMPLETED_ITEMS:
                    forms.append(_EndsForm(shape, is_short, False))
                begin = 0 if up_to is None else up_to
        return list(dict.fromkeys(forms))

    def _plan_ends(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        """Add the kernels: blocks, and what they have of earlier segments."""
        n, segments = self._items_in(layout["items"]), segments_of(self.name, layout)
        shapes, fixed = self._shapes_of(segments, n), self._fixed_order is not None
        shape = shapes.at(n)
        windows = self._windows_of_blocks(builder, layout, shape)
        blocks, chain_words = blocks_of(windows), 1 + self._accumulator.words
        forms = self._forms(n, segments, may_complete=self._may_complete(layout, windows))
        totals: Operand | None = None
        if not all(form.completes for form in forms):
            totals = builder.scratch("totals", 2 * chain_words * blocks)
        state: dict[str, Any] = {}
        if any(form.completes for form in forms):  # two entries of each block
            entry = {"type": "Chain", "words": chain_words}
            state = {
                "entry": entry, "at_a_time": _BLOCKS_AT_A_TIME, "tickets": False,
                **self._state.add_to(builder, 2 * blocks, words=chain_words),
            }  # fmt: skip
        elements = self.datatype.elements
        for form in forms:
            sibling = form != forms[0]
            for part in windows[:1] if sibling else windows:
                window = part.window
                self._add_kernel(
                    builder, window.label(self._label), "segmented_reduce.wgsl", form.shape, layout, window,
                    params={
                        "whole": (window.piece_length if fixed else window.length) // elements,
                        "max_blocks": form.shape.max_blocks, "blocks": part.blocks, "flags": window_flags(window),
                    },
                    items=window.length // elements,
                    written=(
                        {} if totals is None or form.completes
                        else {"totals": part.of_blocks(totals, 2 * chain_words)}
                    ),
                    extent="blocks", sibling=sibling, carried=len(windows) > 1, heads="ends",
                    short=form.short, completes=form.completes, **(state if form.completes else {}),
                    offsets_are_written=layout.shares("offsets", "output"),
                )  # fmt: skip
            if totals is not None and not form.completes:
                output = layout["output"].by_words()
                self._add_single(
                    builder, "complete", "segmented_fixup.wgsl", form.shape,
                    form.shape.max_blocks if sibling else blocks, {"output": output}, totals, sibling,
                )  # fmt: skip
        reported = self._blocks_parameters(shape, shapes, windows)
        return {**reported, **self._state.parameters()} if forms[0].completes else reported

    def _may_complete(self, layout: Layout, windows: Sequence[BlockWindow]) -> bool:
        """Whether the last workgroup can complete the segments.

        Several windows are several dispatches. Where the order is fixed, it must be that of several windows, too. On
        CPU adapters a second dispatch costs less than it takes to compile the longer text.
        """
        if len(windows) > 1 or self._fixed_order is not None or self.capabilities.is_cpu:
            return False
        bindings = bindings_for((layout[name] for name in ("items", "offsets", "output")), self.capabilities)
        # And control and states, where the other form has the totals.
        return bindings + 2 <= self.capabilities.limits["max-storage-buffers-per-shader-stage"]

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
