"""ReduceByIndex: combine the items of each index."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, DatatypeError
from ..planning.signature import Argument, SameAs
from ..tuning.options import HistogramTuning
from ..types.capabilities import Capabilities
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike
from ..types.expression import Operators
from ..types.operators import Add, BinOp, BinOpLike, as_binop
from ..types.options import integer
from ..types.struct_operators import on_items
from .binned import Axis, BinnedPrimitive, BinStrategy, bins_of
from .calls import ReduceByIndexCalls
from .reduce import fold
from .registry import register


@register("reduce_by_index")
class ReduceByIndex(ReduceByIndexCalls, BinnedPrimitive):
    """Combine the items of each index, by a commutative operator.

    An index that no item has gets the identity. Indices that are negative, or not below `size`, are left out.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the indices: bool or integers.
    value_dtype : Datatype, str, numpy dtype, Expression or None, default "u32"
        Of the items; results of smaller ones have 32 bits. None for no items: results are u32, how often each index
        occurs.
    op : BinOp or str, default Add
    size : int
        The length of the output.
    strategy : {"auto", "tables", "sort"}, default "auto"
        ``"tables"`` combines items in workgroup memory, ``"sort"`` sorts them by bins, which is faster for many bins,
        and the only way for results of 64 bits and for a fixed order.
    deterministic : bool, default False
        For floats: the same bits on every run, as for `ReduceByKey`, by a sort that keeps the order of the items.
    tuning : HistogramTuning, optional
        Options that affect only the speed. By default the library's, or those from ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``indices`` and ``items``, of the same shape, and ``output``, shape (size,).
    ReduceByKey : keys of any kind, in runs.
    Histogram : counts; it computes the indices from edges.
    reduce_by_index, scatter_add, bincount : the functions.

    Notes
    -----
    Works like `Histogram`, in workgroup memory. Sums, minima, maxima and bit operations of integers, and minima and
    maxima of floats, take one atomic operation for each item; others a compare-and-swap, which invocations repeat if
    they meet. Float sums depend on the order of additions, which may differ between calls.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> indices = gw.asarray(np.array([2, 0, 2, 9], dtype=np.uint32), device)
    >>> items = gw.asarray(np.array([1, 5, 7, 3], dtype=np.uint32), device)
    >>> gw.ReduceByIndex(device, "u32", "u32", gw.Max, size=3).execute(indices=indices, items=items).output.to_numpy()
    array([5, 0, 7], dtype=uint32)
    """

    _label = "reduce_by_index"
    arguments = (
        Argument("indices", chunked=True, any_shape=True),
        Argument("items", datatype="value_datatype", length=SameAs("indices"), chunked=True, any_shape=True),
        Argument("output", is_output=True, datatype="result_datatype"),
    )

    @explained(HistogramTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        value_dtype: ItemDatatypeLike | Operators | None = "u32",
        op: BinOpLike = Add,
        *,
        size: int,
        strategy: BinStrategy = "auto",
        deterministic: bool = False,
        tuning: HistogramTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(
            device, strategy=strategy, deterministic=deterministic, tuning=tuning, capabilities=capabilities
        )
        #: Of the indices, and of the items.
        self.datatype: Datatype
        self.value_datatype: Datatype
        self.datatype, self._key_datatype = self._taken("indices", dtype, STORAGE_DATATYPES)
        if self._key_datatype.dtype.kind == "f":
            raise DatatypeError(
                f"ReduceByIndex: indices are of {self.datatype}, but must be integers; convert them, for example "
                f"gw.u32(indices), or take a Histogram of them"
            )
        self.op: BinOp = as_binop(op)
        if value_dtype is None:
            if self.op != Add:
                raise ArgumentError(
                    f"ReduceByIndex: value_dtype=None counts, but the operator is {self.op.name!r}; leave out op="
                )
            self.value_datatype = self.result_datatype
        else:
            self.value_datatype, self.result_datatype = self._taken("items", value_dtype, STORAGE_DATATYPES)
            self._values = "items"
        self._op = self.op = on_items(self.op, self.result_datatype)
        self.axes = (Axis("indices", "index", integer("size", size, 1)),)
        self._finish()

    def _arguments(self) -> tuple[Argument, ...]:
        indices, items, output = self.arguments
        return (indices, *([] if self._values is None else [items]), replace(output, length=self.bins))

    @classmethod
    def at_size(cls, n: int, bins: int = 256, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the constructor's options for a benchmark of size n, and the lengths of the inputs."""
        return {"size": bins}, {"indices": n, "items": n}

    def _reference(self, indices: np.ndarray, items: np.ndarray | None = None) -> np.ndarray:
        """Return numpy's result for the same input."""
        if items is None:
            items = np.ones(indices.size, dtype=np.uint32)
        places = bins_of(self.axes[0], indices.ravel(), None)
        dtype = self.result_datatype.dtype
        items = items.ravel()[places >= 0].astype(dtype)
        places = places[places >= 0]
        result = np.full(self.bins, self.op.identity_for(self.result_datatype), dtype=dtype)
        order = np.argsort(places, kind="stable")
        found, starts = np.unique(places[order], return_index=True)
        parts = np.split(items[order], starts[1:])[: found.size]  # no items are one part, too
        for place, part in zip(found, parts, strict=True):
            result[place] = fold(self.op, part)
        return result
