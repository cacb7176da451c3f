"""Transpose: matrices with rows and columns exchanged.

Source: Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA" (2009): tiles in shared memory whose rows are one
word longer.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.builder import PlanBuilder
from ..planning.layout import Layout
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, Product
from ..types.capabilities import Capabilities
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from ..types.options import integer
from .items_kernel import described
from .registry import register
from .typed import InputOutput

__all__ = ["Transpose"]

_SIDE = 32


@register("transpose")
class Transpose(InputOutput):
    """Exchange the rows and columns of a matrix, or of each of several: ``output[b, j, i] = input[b, i, j]``.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Of the items; their bits are copied.
    rows, columns : int
        Of the input.
    batch : int, default 1
        The number of matrices, which lie one after the other.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input`` and ``output`` of batch · rows · columns items, of any shapes.
    transpose : the function, for any order of the dimensions.

    Notes
    -----
    One dispatch. Rows and columns whose numbers are multiples of 4 are the fastest; among items of 1 and 2 bytes others
    are slow where they are written, by atomics.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.arange(6, dtype=np.uint32), device)
    >>> gw.Transpose(device, "u32", rows=2, columns=3).execute(input=x).output.to_numpy()
    array([0, 3, 1, 4, 2, 5], dtype=uint32)
    """

    datatypes = STORAGE_DATATYPES
    arguments = (
        Argument("input", length=Product(("batch", "rows", "columns")), any_shape=True, in_order=False),
        Argument("output", is_output=True, length=Product(("batch", "rows", "columns")), any_shape=True),
    )

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike = "u32",
        *,
        rows: int,
        columns: int,
        batch: int = 1,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(dtype, STORAGE_DATATYPES)
        self.rows: int = integer("rows", rows, 0)
        self.columns: int = integer("columns", columns, 0)
        self.batch: int = integer("batch", batch, 0)

    @classmethod
    def at_size(cls, n: int) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the options and lengths for a matrix of n items, as square as possible."""
        rows = next((r for r in range(isqrt(n), 0, -1) if n % r == 0), 0)
        return {"rows": rows, "columns": n // max(rows, 1)}, {"input": n}

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch."""
        builder = PlanBuilder("transpose", layout, self.capabilities)
        source, output = layout["input"], layout["output"]
        item_bytes = self.datatype.itemsize_bytes
        # One invocation loads or stores four neighbours; of 8 bytes, one.
        quads_in = item_bytes <= 4 and self.columns % 4 == 0
        quads_out = item_bytes <= 4 and self.rows % 4 == 0
        planes = 1 if item_bytes == 8 else 2
        parameters = {"rows": self.rows, "columns": self.columns, "batch": self.batch, "quads_in": quads_in,
                      "quads_out": quads_out}  # fmt: skip
        n = source.length
        if n:
            down, across = -(-self.rows // (planes * _SIDE)), -(-self.columns // _SIDE)
            blocks = self.batch * down * across
            builder.kernel(
                "transpose", "transpose.wgsl",
                reads={"input": source},
                writes={"output": output},
                params={
                    "rows": self.rows, "columns": self.columns, "tiles_down": down, "tiles_across": across,
                    "blocks": blocks,
                },
                workgroups=blocks,
                constants={},
                context={
                    "sink": described(self.datatype), "planes": planes, "quads_in": quads_in, "quads_out": quads_out,
                },
                units={
                    "input": (4 if quads_in else 1) * item_bytes, "output": (4 if quads_out else 1) * item_bytes,
                },
            )  # fmt: skip
        return builder.build(Work(n, n * item_bytes, n * item_bytes), parameters)

    def reference(self, input: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input, shape (batch · rows · columns,)."""
        matrices = input.reshape(self.batch, self.rows, self.columns)
        return np.ascontiguousarray(matrices.transpose(0, 2, 1)).reshape(-1)
