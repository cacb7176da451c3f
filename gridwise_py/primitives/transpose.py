"""Transpose: matrices with rows and columns exchanged.

Source: Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA" (2009): tiles in shared memory whose rows are
one word longer.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import Invocations, KernelFile, Memory
from ..planning.layout import Layout
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, Product
from ..tuning.options import ElementwiseTuning
from ..tuning.rows import Shape
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from ..types.options import MOST_U32, integer
from .base import Primitive
from .calls import InputOutputCalls
from .engines.items_kernel import described
from .registry import register

_SIDE = 32
_LANES = (64, 128, 256)
# With up to so many rows or columns half of a tile or more would be empty.
_FEW = 16


@register("transpose")
class Transpose(InputOutputCalls, Primitive):
    """Exchange the rows and columns of a matrix, or of each of several: ``output[b, j, i] = input[b, i, j]``.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Of the items; their bits are copied.
    rows, columns : int
        Of the input.
    batch : int, default 1
        How many matrices.
    tuning : ElementwiseTuning, optional
        The shape of the kernel: 64, 128 or 256 invocations, each of which has `vecs` · 4 items of a tile of 32 columns,
        whose rows are a multiple of 32. By default the library's, or the one from ``gridwise tune``.
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
    # A thousand workgroups at work are then at 8 tiles from left to right, and at many from top to bottom: on an H200
    # 16,384² items take 542 µs, with bands of 1, 16, 32 and 64 tiles 547, 552, 559, 576, and without bands 580.
    _band_tiles: ClassVar[int] = 8
    arguments = (
        Argument("input", length=Product(("batch", "rows", "columns")), any_shape=True, in_order=False),
        Argument("output", is_output=True, length=Product(("batch", "rows", "columns")), any_shape=True),
    )

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike = "u32",
        *,
        rows: int,
        columns: int,
        batch: int = 1,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(dtype, STORAGE_DATATYPES)
        self.rows: int = integer("rows", rows, 0, MOST_U32)
        self.columns: int = integer("columns", columns, 0, MOST_U32)
        self.batch: int = integer("batch", batch, 0, MOST_U32)
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("transpose", self.capabilities, tuning=self.tuning)
        for _, shape in self._shapes.rows:
            self._check(shape)

    def _planes(self, shape: Shape) -> int:
        """Return the squares of a tile; of 8 bytes half as many, which take the same workgroup memory."""
        squares = shape.tile_items // _SIDE**2
        return max(1, squares // 2) if self.datatype.itemsize_bytes == 8 else squares

    def _check(self, shape: Shape) -> None:
        """Raise where a shape does not make whole squares, or they do not fit."""
        if shape.workgroup_size not in _LANES or shape.tile_items % _SIDE**2:
            raise ArgumentError(
                f"workgroup_size={shape.workgroup_size} and vecs={shape.vecs}: a transpose takes 64, 128 or 256 "
                f"invocations, and tiles of workgroup_size * vecs * 4 items that are a multiple of {_SIDE**2}"
            )
        used = self._planes(shape) * _SIDE * (_SIDE + 1) * max(4, self.datatype.itemsize_bytes)
        has = self.capabilities.limits["max-compute-workgroup-storage-size"]
        if used > has:
            raise ArgumentError(
                f"workgroup_size={shape.workgroup_size} and vecs={shape.vecs} take {used} bytes of workgroup memory, "
                f"but max-compute-workgroup-storage-size is {has}; use a smaller vecs"
            )

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the options and lengths for a matrix of n items, as square as possible."""
        rows = next((r for r in range(isqrt(n), 0, -1) if n % r == 0), 0)
        return {"rows": rows, "columns": n // max(rows, 1)}, {"input": n}

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch."""
        builder = PlanBuilder("transpose", layout, self.capabilities)
        n, item_bytes = layout["input"].length, self.datatype.itemsize_bytes
        shape = self._shapes.at(n)
        parameters: dict[str, Any] = {
            "workgroup_size": shape.workgroup_size, "vecs": shape.vecs, "shape": self._shapes.source_of(shape),
            "rows": self.rows, "columns": self.columns, "batch": self.batch,
        }  # fmt: skip
        if n and min(self.rows, self.columns) <= _FEW:
            parameters |= {"kernel": "narrow", **self._add_narrow(builder, layout, shape)}
        elif n:
            parameters |= {"kernel": "tiles", **self._add_tiles(builder, layout, shape)}
        return builder.build(Work(n, n * item_bytes, n * item_bytes), parameters)

    def _add_tiles(self, builder: PlanBuilder, layout: Layout, shape: Shape) -> dict[str, Any]:
        item_bytes, planes = self.datatype.itemsize_bytes, self._planes(shape)
        # An invocation loads or stores four neighbours at once; of 8 bytes, one.
        quads = {
            "quads_in": item_bytes <= 4 and self.columns % 4 == 0,
            "quads_out": item_bytes <= 4 and self.rows % 4 == 0,
        }
        down, across = -(-self.rows // (planes * _SIDE)), -(-self.columns // _SIDE)
        blocks = self.batch * down * across
        builder.kernel(
            "transpose",
            KernelFile(
                "transpose.wgsl",
                context={
                    "sink": described(self.datatype),
                    "planes": planes,
                    "lanes": shape.workgroup_size,
                    "band": self._band_tiles,
                    **quads,
                },
            ),
            Memory(
                reads={"input": layout["input"]},
                writes={"output": layout["output"]},
                units={
                    "input": (4 if quads["quads_in"] else 1) * item_bytes,
                    "output": (4 if quads["quads_out"] else 1) * item_bytes,
                },
            ),
            params={
                "rows": self.rows,
                "columns": self.columns,
                "tiles_down": down,
                "tiles_across": across,
                "blocks": blocks,
            },
            extent="blocks",
        )
        return quads

    def _add_narrow(self, builder: PlanBuilder, layout: Layout, shape: Shape) -> dict[str, Any]:
        item_bytes, few_columns = self.datatype.itemsize_bytes, self.columns <= self.rows
        few, many = (self.columns, self.rows) if few_columns else (self.rows, self.columns)
        quads = item_bytes == 4 and few % 4 == 0
        builder.kernel(
            "transpose",
            KernelFile(
                "transpose_narrow.wgsl",
                context={"sink": described(self.datatype), "few_columns": few_columns, "quads": quads},
                constants={"WORKGROUP_SIZE": shape.workgroup_size},
            ),
            Memory(
                reads={"input": layout["input"]},
                writes={"output": layout["output"]},
                units={
                    "input": (4 if quads and few_columns else 1) * item_bytes,
                    "output": (4 if quads and not few_columns else 1) * item_bytes,
                },
            ),
            params={"n": self.batch * many, "rows": self.rows, "columns": self.columns},
            extent=Invocations("n"),
        )
        return {"quads": quads}

    def _reference(self, input: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input, shape (batch · rows · columns,)."""
        return np.ascontiguousarray(input.reshape(self.batch, self.rows, self.columns).transpose(0, 2, 1)).reshape(-1)
