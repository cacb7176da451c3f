"""SegmentedScan and SegmentedReduce: combine the items of segments that offsets delimit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
from ..planning.windows import binding_limit
from ..settings import ScanStrategy
from ..tuning.options import ScanTuning
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, ItemDatatypeLike
from ..types.expression import Operators
from ..types.operators import Add, BinOpLike
from ..types.options import integer, one_of
from .reduce_axis import ReduceAxis
from .registry import register
from .scan import KINDS, ScanKind
from .segments import SegmentedPrimitive, segmented_prefixes, segments_of
from .typed_segments import ItemsOffsets

__all__ = ["SegmentedReduce", "SegmentedScan"]

_OFFSETS = Argument("offsets", datatype=DATATYPES["u32"], is_apart=True)


def _segments_of(lengths: Mapping[str, int]) -> int:
    """Return the number of segments: one less than offsets."""
    return max(lengths["offsets"], 1) - 1


class _ByOffsets(SegmentedPrimitive):
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
class SegmentedScan(ItemsOffsets, _ByOffsets):  # pyright: ignore[reportIncompatibleMethodOverride]  # see typed.py
    """Compute the prefix sums of each segment, under an associative operator.

    Segment s is items ``offsets[s]`` to ``offsets[s + 1] - 1``, as the rows of a CSR matrix. Item i of the output
    combines the items of its segment up to item i (inclusive), or those before it (exclusive, where the first item of a
    segment is the operator's identity). The order of the items is kept, so the operator need not be commutative.
    Results have the datatype of the items; integers wrap.

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

    def reference(self, items: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input."""
        return self._prefixes(items, _heads_of_offsets(offsets, items.size))


@register("segmented_reduce")
class SegmentedReduce(ItemsOffsets, _ByOffsets):  # pyright: ignore[reportIncompatibleMethodOverride]  # see typed.py
    """Combine the items of each segment, with an associative operator.

    Segment s is items ``offsets[s]`` to ``offsets[s + 1] - 1``, as the rows of a CSR matrix, or all segments have one
    length. The order of the items is kept, so the operator need not be commutative. Results have the datatype of the
    items; integers wrap.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the items, of 4 bytes or more; a struct has up to three fields.
    op : BinOp or str, default Add
    length : int, optional
        Items of each segment. There are then no offsets, and the kernels are those of `ReduceAxis`.
    strategy : {"auto", "reduce_then_scan", "lookback"}, optional
        Accepted as by the other primitives of segments, but the kernels are the same: none looks back.
    deterministic : bool, default False
        For floats: the same bits on every adapter, as for `Scan`. Without it they are the same on every run.
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
        self.length: int | None = None if length is None else integer("length", length, 1)
        if self.length is not None:
            self.arguments = (
                Argument("items"),
                Argument("output", is_output=True, length=SameAs("items", per=self.length)),
            )
            self.takes_count = False  # pyright: ignore[reportAttributeAccessIssue]  # as a class without offsets would say
        super().__init__(
            device, dtype, op, strategy=strategy, deterministic=deterministic, tuning=tuning, capabilities=capabilities
        )

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: two dispatches; of segments of one length that of `ReduceAxis`."""
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

    def reference(self, items: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
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
