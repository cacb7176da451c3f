"""ScanAxis: prefix sums along an axis of an array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import Invocations, KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, Product
from ..tuning.model import scan_axis_parts
from ..tuning.options import AxisTuning
from ..types.capabilities import Capabilities
from ..types.datatype import ItemDatatypeLike
from ..types.operators import Add, BinOpLike
from ..types.options import one_of
from .calls import InputOutputCalls
from .engines.operator import OperatorPrimitive, wider
from .reduce_axis import array_shape, axes_of
from .scan import KINDS, ScanKind

# Longer rows than this have a workgroup each; a column has an invocation.
_SHORT_ROW = 32
_LEAST_ROWS_OF_BLOCK = 64
# lavapipe ends all loops of an invocation after 65,535 iterations.
_MOST_ROWS_OF_BLOCK = 1 << 17
_MOST_ITEMS = 1 << 31


@dataclass(frozen=True)
class _Shape:
    """The shape of a kernel: rows of `workgroup_size` invocations and `vecs` quads each, or columns.

    Attributes
    ----------
    kind : {"rows", "columns"}
    workgroup_size : int
    vecs : int
        Quads of a row, or rows of a column, that an invocation loads at once.
    width : int
        Columns of an invocation.
    parts : int
        Of each row or column.
    part_length : int
        Quads of a part of a row, or rows of a part of a column.
    """

    kind: str
    workgroup_size: int
    vecs: int
    width: int
    parts: int
    part_length: int


class ScanAxis(InputOutputCalls, OperatorPrimitive):
    """Compute prefix sums along an axis of an array.

    At the call only the number of items counts, in C order.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
    op : BinOp or str, default Add
        A non-commutative operator keeps the order of the items.
    kind : {"inclusive", "exclusive"}
    shape : int or tuple of int
        The array's.
    axis : int
        From the end if negative.
    include_initial : bool, default False
        Whether each row of results begins with the identity, one item more: inclusive only.
    result_dtype : Datatype, str or numpy dtype, optional
        Of the results, and what is computed with; by default that of the items.
    deterministic : bool, default False
        For floats: the same bits on every adapter that rounds according to IEEE 754, as in `Scan`.
    tuning : AxisTuning, optional
        Options that affect only the speed, and the rounding of float sums: `workgroup_size`, `vecs`, `max_blocks` and
        `subgroups`.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input``, and ``output``, which is made in one dimension. In place is possible without
        `include_initial`.
    Scan : the prefix sums of all items.
    cumsum : the function, with ``axis=``.

    Notes
    -----
    The kernel and its shape depend on the sizes alone (``kind`` in ``plan.parameters``). `rows`, for the last axis: a
    workgroup scans a row, tile by tile. `columns`, for other axes and for rows of at most 32 items: an invocation scans
    a column, or four. Few long rows or columns are cut into parts: then two or more dispatches find where each part
    begins, and items are read twice (reduce-then-scan, as in `Scan`). No workgroup waits for another, and results are
    the same in every run. Arrays that are larger than a binding of the device are bound in segments.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.arange(6, dtype=np.uint32), device)
    >>> gw.ScanAxis(device, "u32", shape=(2, 3), axis=1).execute(input=x).output.to_numpy()
    array([ 0,  1,  3,  3,  7, 12], dtype=uint32)
    """

    _writes_all = True
    arguments = (
        Argument("input", length=Product(("outer", "scanned", "inner")), any_shape=True),
        Argument(
            "output", is_output=True, datatype="result_datatype", length=Product(("outer", "written", "inner")),
            overlap="same view", any_shape=True,
        ),
    )  # fmt: skip

    grouped = "input"

    @explained(AxisTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike = "u32",
        op: BinOpLike = Add,
        kind: ScanKind = "inclusive",
        *,
        shape: int | Sequence[int],
        axis: int,
        include_initial: bool = False,
        result_dtype: ItemDatatypeLike | None = None,
        deterministic: bool = False,
        tuning: AxisTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        self.tuning: AxisTuning = AxisTuning.of(tuning)
        super().__init__(
            device, dtype, op, result_dtype=result_dtype, deterministic=deterministic,
            subgroups=self.tuning.subgroups, capabilities=capabilities,
        )  # fmt: skip
        one_of("kind", kind, KINDS)
        if include_initial and kind == "exclusive":
            raise ArgumentError("include_initial=True is for inclusive scans: exclusive ones begin with the identity")
        for field in ("team", "strip"):
            if getattr(self.tuning, field) is not None:
                raise ArgumentError(f"{field}= of AxisTuning is for ReduceAxis; leave it out of a ScanAxis")
        self.kind: ScanKind = kind
        self.include_initial: bool = bool(include_initial)
        self.shape: tuple[int, ...] = array_shape(shape)
        axes = axes_of("ScanAxis", axis, len(self.shape))
        if len(axes) != 1:
            raise ArgumentError(f"ScanAxis: axis={axis!r} must be one axis of shape {self.shape}")
        #: The axis along which items are combined, from 0 on.
        self.axis: int = axes[0]
        #: The product of the sizes before this axis, its size, and the product of those behind it.
        self.outer: int = prod(self.shape[: self.axis])
        self.scanned: int = self.shape[self.axis]
        self.inner: int = prod(self.shape[self.axis + 1 :])
        #: The size of the axis in the results.
        self.written: int = self.scanned + self.include_initial
        size = self.tuning.workgroup_size
        if size is not None and (size > self.capabilities.most_invocations or size % self.mode.size):
            raise ArgumentError(
                f"workgroup_size={size} must be a multiple of the {self.mode.size} invocations of a subgroup "
                f"({self.mode}), and at most {self.capabilities.most_invocations} on this device; leave it out"
            )

    def _arguments(self) -> tuple[Argument, ...]:
        items, output = self.arguments
        return (items, replace(output, overlap="never") if self.include_initial else output)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return (*self.shape[: self.axis], self.written, *self.shape[self.axis + 1 :])

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch, or three and more where rows or columns have parts."""
        builder = PlanBuilder("scan_axis", layout, self.capabilities)
        items, outputs = self.outer * self.scanned * self.inner, self.outer * self.written * self.inner
        parameters: dict[str, Any] = {"shape": "x".join(map(str, self.shape)), "axis": self.axis}
        if max(items, outputs) > _MOST_ITEMS:
            raise LimitError(
                f"ScanAxis: shape {self.shape} has {items} items, but kernels count up to {_MOST_ITEMS}; scan parts of "
                f"the array"
            )
        if outputs:
            parameters |= self._plan_items(builder, layout)
        return builder.build(
            Work(
                items,
                items * self.datatype.itemsize_bytes,
                outputs * self.result_datatype.itemsize_bytes,
                max(0, items - self.outer * self.inner),
            ),
            parameters | {"subgroups": str(self.mode), "kind_of_scan": self.kind, "deterministic": self.deterministic},
        )

    def _plan_items(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        source, output = layout["input"], layout["output"]
        if not self.scanned:  # each row of results is the identity
            source = Operand(0, builder.constant("nothing", (0,) * 16), size_bytes=64, item_bytes=source.item_bytes)
        return asdict(self._add_scan(builder, self.scanned, source, output))

    def _add_scan(
        self, builder: PlanBuilder, length: int, source: Operand, output: Operand, *, level: int = 0
    ) -> _Shape:
        """Add the kernels of a scan along an axis of a length; behind level 0 those of the exclusive scan of totals."""
        shape, raw = self._shape(length), level > 0
        label = "scan totals" if raw else "scan"
        if shape.parts == 1:
            self._add_kernel(builder, label, shape, length, source, output, raw_input=raw)
            return shape
        words = self._accumulator.words * self.outer * shape.parts * self.inner
        totals, carries = (builder.scratch(f"{name}_{level}", words) for name in ("totals", "carries"))
        self._add_kernel(builder, "reduce parts", shape, length, source, totals, raw_input=raw, totals=True)
        self._add_scan(builder, shape.parts, totals, carries, level=level + 1)
        self._add_kernel(builder, label, shape, length, source, output, raw_input=raw, carries=carries)
        return shape

    def _shape(self, length: int) -> _Shape:
        """Return the shape for rows or columns of a length."""
        most = self.tuning.max_blocks
        # Where the order of additions is fixed, it is the same on every device.
        parts_of = scan_axis_parts(None if self.fixes_order else self.capabilities)
        if self.inner == 1 and length > _SHORT_ROW:
            quads = (length + 6) // 4  # of a row that begins with the last item of one
            usual = 64 if quads <= 64 else 128 if quads <= 128 else 256
            size = self.tuning.workgroup_size or max(usual, self.mode.size)
            vecs = self.tuning.vecs or (1 if quads <= size else 2 if quads <= 2 * size else 4)
            tiles = -(-quads // (size * vecs))
            enough, wanted = parts_of.rows if most is None else (most, most)
            parts = 1 if self.outer >= enough else min(tiles, -(-wanted // self.outer))
            part_quads = -(-tiles // parts) * size * vecs
            return _Shape("rows", size, vecs, 1, -(-quads // part_quads), part_quads)
        width = 1 if self.inner % 4 else 4
        columns = max(1, self.outer * self.inner // width)
        enough, wanted = parts_of.columns if most is None else (most, most)
        parts = 1 if columns >= enough else min(-(-length // _LEAST_ROWS_OF_BLOCK), -(-wanted // columns))
        rows = max(1, min(-(-length // max(parts, 1)), _MOST_ROWS_OF_BLOCK))
        size, vecs = self.tuning.workgroup_size or 64, self.tuning.vecs or (4 if width == 4 else 8)
        return _Shape("columns", size, vecs, width, max(1, -(-length // rows)), rows)

    def _add_kernel(
        self,
        builder: PlanBuilder,
        label: str,
        shape: _Shape,
        length: int,
        input: Operand,
        output: Operand,
        *,
        totals: bool = False,
        raw_input: bool = False,
        carries: Operand | None = None,
    ) -> None:
        raw_output = totals or raw_input
        read, written, context = self._item_context(raw_input=raw_input, raw_output=raw_output)
        rows, initial = shape.kind == "rows", self.include_initial and not raw_output
        if rows:
            units = self.outer * shape.parts
            params = {"row_items": length, "parts": shape.parts, "part_quads": shape.part_length, "units": units}
            # Where rows are whole quads, so is what an invocation writes.
            by_quads = not (totals or initial or length % 4)
        else:
            strips = self.inner // shape.width
            units = strips * shape.parts * self.outer
            params = {
                "rows": length, "columns": self.inner, "strips": strips, "blocks": shape.parts,
                "rows_per_block": shape.part_length, "units": units,
            }  # fmt: skip
            by_quads = shape.width == 4
        native = ("subgroup",) if self.mode.kind == "native" and rows else ()
        builder.kernel(
            label,
            KernelFile(
                "scan_rows.wgsl" if rows else "scan_columns.wgsl",
                context={
                    **context,
                    "vecs": shape.vecs,
                    "width": shape.width,
                    "totals": totals,
                    "initial": initial,
                    "carried": carries is not None,
                    "exclusive": raw_input or self.kind == "exclusive",
                },
                constants={"WORKGROUP_SIZE": shape.workgroup_size},
                shader_checks=self.op.checks_for(self.result_datatype),
                features=tuple(dict.fromkeys(native + self._features)),
            ),
            Memory(
                reads={"input": input} | ({} if carries is None else {"carries": carries}),
                writes={"output": output if by_quads else output.by_words()},
                units={"input": (4 if rows else shape.width) * read, "output": (4 if by_quads else 1) * written},
            ),
            params={
                **params,
                **self._accumulator.params,
                **({} if self._fixed_order is None else {"zero": 0}),  # of lib/seal.wgsl
            },
            extent="units" if rows else Invocations("units"),
        )

    def _reference(self, input: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same items, flat, in the dtype of the result."""
        dtype = self.result_datatype.dtype
        array = input.reshape(self.outer, self.scanned, self.inner).astype(dtype)
        first = np.full((self.outer, 1, self.inner), self.op.identity_for(self.result_datatype), dtype=dtype)
        sums = np.empty_like(array)
        with np.errstate(all="ignore"):
            if isinstance(self.op.numpy, np.ufunc):
                wide = wider(dtype) if self.op.numpy in (np.add, np.multiply) else dtype
                sums = self.op.numpy.accumulate(array, axis=1, dtype=wide).astype(dtype)
            elif self.scanned:
                sums[:, 0] = array[:, 0]
                for k in range(1, self.scanned):
                    sums[:, k] = self.op.numpy(sums[:, k - 1], array[:, k])
        if self.kind == "exclusive":
            sums = np.concatenate([first, sums], axis=1)[:, : self.scanned]
        elif self.include_initial:
            sums = np.concatenate([first, sums], axis=1)
        return sums.reshape(-1)
