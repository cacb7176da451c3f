"""ScanByKey and ReduceByKey: combine the items of runs of equal keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.builder import PlanBuilder
from ..planning.layout import Layout
from ..planning.plan import CountedWork, Fill, Plan, Work
from ..planning.signature import Argument, SameAs, UpTo
from ..settings import ScanStrategy
from ..tuning.options import ScanTuning
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, Datatype, ItemDatatypeLike
from ..types.expression import Operators
from ..types.operators import Add, BinOpLike
from ..types.options import MOST_U32, integer, one_of
from .calls import ReduceByKeyCalls, ScanByKeyCalls
from .engines.segments import SegmentedPrimitive, heads_of_keys, segmented_prefixes
from .registry import register
from .scan import KINDS, ScanKind


@register("scan_by_key")
class ScanByKey(ScanByKeyCalls, SegmentedPrimitive):
    """Compute the prefix sums of each run of equal keys.

    As `Scan`, for each run.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the keys, of 4 or 8 bytes.
    value_dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the items, of 4 bytes or more; a struct has up to three fields.
    op : BinOp or str, default Add
    kind : {"inclusive", "exclusive"}
    strategy : {"auto", "reduce_then_scan", "lookback"}, optional
        As for `Scan`.
    deterministic : bool, default False
        For floats: the same bits on every run and adapter, as for `Scan`; three dispatches, which read the input twice.
    tuning : ScanTuning, optional
        Options that affect only the speed. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``keys``, ``items`` and ``output``, shape (n,) each.
    ReduceByKey : one result for each run.

    Notes
    -----
    A run is a stretch of items whose keys are equal, so equal keys that are not neighbours make several runs; sort by
    key first where that matters. Keys are compared bit by bit, except that −0 equals +0; so a NaN equals one of the
    same bits.

    ``"lookback"`` reads each key and each item once, in one dispatch, as `Scan` does. Float sums depend on timing
    there, unless `deterministic` is given: the groups in which a long run is added differ between calls.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> keys = gw.asarray(np.array([7, 7, 7, 2, 2], dtype=np.uint32), device)
    >>> items = gw.asarray(np.ones(5, dtype=np.uint32), device)
    >>> gw.ScanByKey(device, "u32", "u32", gw.Add).execute(keys=keys, items=items).output.to_numpy()
    array([1, 2, 3, 1, 2], dtype=uint32)
    """

    arguments = (
        Argument("keys", datatype="key_datatype"),
        Argument("items", length=SameAs("keys", "every key needs one item")),
        Argument("output", is_output=True, length=SameAs("keys")),
    )
    _heads, _emission, _kernel = "keys", "dense", "by_key"
    _per_item = ("keys", "items", "output")

    @explained(ScanTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        value_dtype: ItemDatatypeLike | Operators = "u32",
        op: BinOpLike = Add,
        kind: ScanKind = "inclusive",
        *,
        strategy: ScanStrategy | None = None,
        deterministic: bool = False,
        tuning: ScanTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        self.key_datatype: Datatype = self._take_keys(dtype)
        super().__init__(
            device,
            value_dtype,
            op,
            strategy=strategy,
            deterministic=deterministic,
            tuning=tuning,
            capabilities=capabilities,
        )
        self.kind: ScanKind = one_of("kind", kind, KINDS)
        self._exclusive = kind == "exclusive"

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch (look-back), or three."""
        builder = PlanBuilder("scan_by_key", layout, self.capabilities)
        layout = self._reads(layout)
        self._check_lengths(layout)
        n, item_bytes = self._items_in(layout["items"]), self.datatype.itemsize_bytes
        parameters: dict[str, Any] = {"kind": self.kind, "subgroups": str(self.mode)}
        if n:
            parameters |= self._plan_items(builder, layout)
        read_bytes = layout["keys"].nbytes + layout["items"].nbytes
        counted = builder.counted_work(n, read_bytes // max(n, 1), item_bytes)
        return builder.build(Work(n, read_bytes, n * item_bytes, max(0, n - 1), counted), parameters)

    def _reference(self, keys: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input."""
        return self._prefixes(items, heads_of_keys(keys))


@register("reduce_by_key")
class ReduceByKey(ReduceByKeyCalls, SegmentedPrimitive):
    """Combine the items of each run of equal keys.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the keys, of 4 or 8 bytes.
    value_dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the items, of 4 bytes or more; a struct has up to three fields.
    op : BinOp or str, default Add
    size : int, optional
        The runs that the outputs have room for; by default as many as items. Runs that do not fit are not written, but
        counted.
    strategy : {"auto", "reduce_then_scan", "lookback"}, optional
        As for `Scan`.
    deterministic : bool, default False
        For floats: the same bits on every run and adapter, as for `Scan`; three dispatches, which read the input twice.
    tuning : ScanTuning, optional
        Options that affect only the speed. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``keys`` and ``items``, shape (n,) each; gives ``output_keys`` and ``output_values``, which carry
        their count, and ``count``.
    ScanByKey : a result for each item.

    Notes
    -----
    A run is a stretch of items whose keys are equal, so equal keys that are not neighbours make several runs; sort by
    key first where that matters. Keys are compared bit by bit, except that −0 equals +0; so a NaN equals one of the
    same bits.

    ``"lookback"`` reads each key and each item once, in one dispatch, as `Scan` does. Float sums depend on timing
    there, unless `deterministic` is given: the groups in which a long run is added differ between calls.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> keys = gw.asarray(np.array([7, 7, 7, 2, 2], dtype=np.uint32), device)
    >>> items = gw.asarray(np.arange(5, dtype=np.uint32), device)
    >>> run = gw.ReduceByKey(device, "u32", "u32", gw.Add).execute(keys=keys, items=items)
    >>> run.outputs["output_keys"].to_numpy(), run.outputs["output_values"].to_numpy()
    (array([7, 2], dtype=uint32), array([3, 7], dtype=uint32))
    """

    arguments = (
        Argument("keys", datatype="key_datatype"),
        Argument("items", length=SameAs("keys", "every key needs one item")),
        Argument("output_keys", is_output=True, datatype="key_datatype", length=UpTo("keys", "count")),
        Argument("output_values", is_output=True, length=UpTo("keys", "count")),
        Argument("count", is_output=True, datatype=DATATYPES["u32"], length=1),
    )
    _heads, _emission, _kernel = "keys", "runs", "by_key"
    _per_item = ("keys", "items")
    _also_written = ("output_keys", "output_values", "count")

    @explained(ScanTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        value_dtype: ItemDatatypeLike | Operators = "u32",
        op: BinOpLike = Add,
        *,
        size: int | None = None,
        strategy: ScanStrategy | None = None,
        deterministic: bool = False,
        tuning: ScanTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        self.size: int | None = None if size is None else integer("size", size, 1, MOST_U32)
        self.key_datatype: Datatype = self._take_keys(dtype)
        super().__init__(
            device,
            value_dtype,
            op,
            strategy=strategy,
            deterministic=deterministic,
            tuning=tuning,
            capabilities=capabilities,
        )

    def _arguments(self) -> tuple[Argument, ...]:
        return tuple(
            replace(each, length=replace(each.length, most=self.size)) if isinstance(each.length, UpTo) else each
            for each in self.arguments
        )

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch (look-back), or three."""
        builder = PlanBuilder("reduce_by_key", layout, self.capabilities)
        layout = self._reads(layout)
        parameters = self.add_to(builder, layout)
        n, item_bytes = self._items_in(layout["items"]), self.datatype.itemsize_bytes
        read_bytes = layout["keys"].nbytes + layout["items"].nbytes
        runs, run_bytes = layout["output_keys"].length, self.key_datatype.itemsize_bytes + item_bytes
        counted = (
            *builder.counted_work(n, read_bytes // max(n, 1), 0),
            CountedWork("count", runs, 0, run_bytes),
        )
        work = Work(n, read_bytes, runs * run_bytes + 4, max(0, n - 1), counted)
        return builder.build(work, parameters)

    def add_to(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        """Add the steps to a plan; see `PlanBuilder.include`."""
        self._check_lengths(layout)
        parameters: dict[str, Any] = {"subgroups": str(self.mode)}
        if self._items_in(layout["items"]):
            return parameters | self._plan_items(builder, layout)
        count = layout["count"]
        builder.step(Fill(count.buffer, count.first_byte, 4))
        return parameters

    def _reference(self, keys: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return numpy's result for the same input: keys, values, and their number. It knows of no `size`."""
        heads = heads_of_keys(keys)
        starts = np.flatnonzero(heads)
        ends = np.append(starts[1:], keys.size)[: starts.size] - 1
        values = segmented_prefixes(self.op, items, heads)[ends]
        if keys.dtype.kind == "f":
            keys = keys + keys.dtype.type(0)  # −0 becomes +0
        return keys[starts], values, np.array([starts.size], dtype=np.uint32)
