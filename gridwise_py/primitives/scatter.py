"""Scatter: items written to places that indices on the GPU say."""

from __future__ import annotations

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..planning.windows import windows_of
from ..tuning.options import ElementwiseTuning
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from ..types.expression import Operators
from .base import Primitive
from .calls import ScatterCalls
from .engines.items_kernel import described

_KNOWN = {name: each for name, each in STORAGE_DATATYPES.items() if each.dtype.kind in "iu"}


class Scatter(ScatterCalls, Primitive):
    """Write items to the places that indices name: ``output[indices[i]] = items[i]``.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the items; their bits are copied.
    index_dtype : Datatype, str or numpy dtype, default "u32"
        An integer datatype.
    tuning : ElementwiseTuning, optional
        Options that affect only the speed. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``items`` and ``indices``, shape (n,), and ``output``, which must be given: what no index names
        stays as it is.
    put : the function.

    Notes
    -----
    Negative indices count from the end. An index that is out of range is dropped: nothing is written for it, and
    nothing outside the output. Nobody reports it, because only the GPU knows the indices.

    If an index occurs several times, one of its items stays, and another one may on the next call. Only of items of 8
    bytes the two halves may then come from two of them. For a result that is defined, combine the items, with
    an operator.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> items, indices = (gw.asarray(np.array(x, dtype=np.uint32), device) for x in ([7, 8, 9], [3, 0, 99]))
    >>> output = gw.zeros(5, "u32", device)
    >>> gw.Scatter(device, "u32").execute(items=items, indices=indices, output=output).output.to_numpy()
    array([8, 0, 0, 7, 0], dtype=uint32)
    """

    takes_count = True
    datatypes = STORAGE_DATATYPES
    arguments = (
        Argument("items"),
        Argument("indices", datatype="index_datatype", length=SameAs("items", "every item needs one index")),
        Argument("output", is_output=True, any_shape=True),
    )

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        index_dtype: ItemDatatypeLike = "u32",
        *,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(self._take(dtype, "items"), STORAGE_DATATYPES)
        self.index_datatype: Datatype = as_datatype(index_dtype, _KNOWN)
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("elementwise", self.capabilities, tuning=self.tuning)

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a dispatch for each window of the items."""
        builder = PlanBuilder("scatter", layout, self.capabilities)
        layout = self._reads(layout)
        items, indices, output = layout["items"], layout["indices"], layout["output"]
        n, item_bytes = items.length, self.datatype.itemsize_bytes
        shape = self._shapes.at(n)
        for window in windows_of(layout, ["items", "indices"], self.capabilities, shape.tile_items) if n else ():
            if not output.length:
                break
            blocks = -(-window.length // shape.tile_items)
            builder.kernel(
                window.label("scatter"),
                KernelFile(
                    "scatter.wgsl",
                    context={"source": described(self.index_datatype), "item_bytes": item_bytes, "vecs": shape.vecs},
                    constants={"WORKGROUP_SIZE": shape.workgroup_size},
                ),
                Memory(reads=window.operands, writes={"output": output.by_words()}, contended=("output",)),
                params={"n": window.length, "blocks": blocks, "length": output.length},
                extent="blocks",
                counted_from=window.first,
            )
        read_bytes = items.nbytes + indices.nbytes
        counted = builder.counted_work(n, read_bytes // max(n, 1), item_bytes)
        work = Work(n, read_bytes, n * item_bytes, counted=counted)
        return builder.build(work, {"workgroup_size": shape.workgroup_size, "vecs": shape.vecs})

    def _reference(self, items: np.ndarray, indices: np.ndarray, output: np.ndarray) -> np.ndarray:
        """Return what numpy makes of the output's items; of equal indices the last one's item."""
        places = indices.astype(object) if indices.dtype.itemsize == 8 else indices.astype(np.int64)
        inside = (places >= -output.size) & (places < output.size)
        result = output.copy()
        result[indices[inside].astype(np.int64)] = items[inside]
        return result
