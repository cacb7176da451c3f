"""ReduceAxis: combine the items of an array along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import gcd, prod
from typing import Any, cast

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, AxisError, DatatypeError, LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import Extent, KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, Product
from ..planning.source import Source
from ..planning.windows import Window, binding_limit, part_of, windows_of
from ..tuning.axis_shapes import AxisShape, ColumnsShape, NarrowShape, RowsShape, axis_shape
from ..tuning.options import AxisTuning
from ..types.capabilities import Capabilities
from ..types.datatype import ItemDatatypeLike
from ..types.expression import Operators
from ..types.operators import Add, BinOpLike
from ..types.options import integer
from .calls import InputOutputCalls
from .engines.operator import OperatorPrimitive, wider
from .registry import register

# What a kernel that reaches its input by several bindings counts, with some to spare.
_MOST_ITEMS_OF_SEGMENTS = 1 << 31


@dataclass(frozen=True)
class _Matrices:
    """An array of (matrices, rows, columns), whose rows are combined."""

    matrices: int
    rows: int
    columns: int


@register("reduce_axis")
class ReduceAxis(InputOutputCalls, OperatorPrimitive):
    """Combine the items of an array along an axis.

    At the call only the number of items counts, in C order.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or Expression, default "u32"
        Of the items; or an expression of as many items as the shape has.
    op : BinOp or str, default Add
        A non-commutative operator keeps the order of the items.
    shape : int or tuple of int
        The array's.
    axis : int, tuple of int or None
        From the end if negative; several must be neighbours. None means all.
    result_dtype : Datatype, str or numpy dtype, optional
        Of the results, and what is computed with; by default that of the items.
    deterministic : bool, default False
        For floats: the same bits on every adapter that rounds according to IEEE 754, as in `Reduce`.
    tuning : AxisTuning, optional
        Options that affect only the speed, and the rounding of float sums.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input``, and ``output``, which is made in one dimension.
    Reduce : combines all items.
    sum : the function, with ``axis=``.

    Notes
    -----
    The kernel and its shape depend on the sizes alone (``kind`` in ``plan.parameters``). `rows`, for the last axis: one
    invocation to one workgroup per row; a row that is longer than suits one workgroup is combined in parts. `columns`:
    a workgroup combines a block of rows of a strip of columns. `narrow`, for few columns: a workgroup combines whole
    rows. With several parts or blocks a second dispatch combines their totals. No workgroup waits for another, and
    results are the same in every run.

    An input that is larger than a binding of the device is combined in windows: of whole matrices where a binding holds
    one, else of rows. So is a row; but all columns of one row must fit.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.arange(6, dtype=np.uint32), device)
    >>> gw.ReduceAxis(device, "u32", shape=(2, 3), axis=1).execute(input=x).output.to_numpy()
    array([ 3, 12], dtype=uint32)
    """

    arguments = (
        Argument("input", length=Product(("outer", "reduced", "inner")), any_shape=True),
        Argument(
            "output", is_output=True, datatype="result_datatype", length=Product(("outer", "inner")), any_shape=True
        ),
    )

    grouped = "input"

    @explained(AxisTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators = "u32",
        op: BinOpLike = Add,
        *,
        shape: int | Sequence[int],
        axis: int | Sequence[int] | None,
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
        self.shape: tuple[int, ...] = array_shape(shape)
        #: The axes along which items are combined, from 0 on, in order.
        self.axes: tuple[int, ...] = neighbouring_axes(axis, len(self.shape))
        first, end = (self.axes[0], self.axes[-1] + 1) if self.axes else (len(self.shape), len(self.shape))
        #: The product of the sizes before these axes, of them, and behind them.
        self.outer: int = prod(self.shape[:first])
        self.reduced: int = prod(self.shape[first:end])
        self.inner: int = prod(self.shape[end:])
        self._check_workgroup_size()

    def _check_workgroup_size(self) -> None:
        size, subgroup = self.tuning.workgroup_size, self.mode.size
        if size is None:
            return
        # Four accumulators of an invocation are in workgroup memory at once.
        most_bytes = self.capabilities.limits["max-compute-workgroup-storage-size"]
        most = min(self.capabilities.most_invocations, most_bytes // (20 * self._accumulator.words))
        if size > most or size % subgroup:
            raise ArgumentError(
                f"workgroup_size={size} must be a power of two, a multiple of the {subgroup} invocations of a subgroup "
                f"({self.mode}), and at most {most} on this device; leave it out"
            )

    @classmethod
    def at_size(
        cls, n: int, segment: int = 1024, along: str = "rows", **axes: Any
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the shape of as many whole rows or columns of `segment` items as n items make."""
        reduced = min(segment, n) or segment
        shape = (n // reduced, reduced) if along == "rows" else (reduced, n // reduced)
        return {"shape": shape, "axis": 1 if along == "rows" else 0}, {"input": shape[0] * shape[1]}

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the result, without these axes."""
        return tuple(size for k, size in enumerate(self.shape) if k not in self.axes)

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch for each window, and a second one where rows or columns have parts."""
        builder = PlanBuilder("reduce_axis", layout, self.capabilities)
        layout = self._reads(layout)
        self._check_leaves(layout["input"])
        outputs, items = self.outer * self.inner, self.outer * self.reduced * self.inner
        parameters: dict[str, Any] = {"shape": "x".join(map(str, self.shape)), "axes": list(self.axes)}
        if outputs:
            parameters |= self._plan_items(builder, layout)
        return builder.build(
            Work(
                items,
                items * self.datatype.itemsize_bytes,
                outputs * self.result_datatype.itemsize_bytes,
                max(0, items - outputs),
            ),
            parameters | {"subgroups": str(self.mode), "deterministic": self.deterministic, "outputs": outputs},
        )

    def _check_leaves(self, operand: Operand) -> None:
        limit = binding_limit(self.capabilities)
        for leaf in operand.leaves if isinstance(operand, Source) else ():
            if leaf.nbytes > limit:
                raise LimitError(
                    f"ReduceAxis: the input is an expression of an array of {leaf.nbytes} bytes, but along an axis one "
                    f"binding must reach it (max-storage-buffer-binding-size {limit} bytes); store the expression "
                    f"first, with gw.asarray()"
                )

    def _plan_items(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        output, outputs = layout["output"], self.outer * self.inner
        whole = _Matrices(self.outer, self.reduced, self.inner)
        if self.reduced == 0:
            self.op.empty_result(self.result_datatype)  # raises where there is none
            nothing = Operand(
                0, builder.constant("nothing", (0,) * 16), size_bytes=64, item_bytes=layout["input"].item_bytes
            )
            whole = _Matrices(outputs, 0, 1)
            shape = self._shape(whole)
            self._add_kernel(builder, "reduce", whole, shape, nothing, output)
            return {"kind": _KINDS[type(shape)], **asdict(shape), "windows": 1}
        if self.reduced == 1:  # one long row, of which every item is a result
            whole = _Matrices(1, 1, outputs) if outputs <= self._most_items else _Matrices(outputs, 1, 1)
        shape = self._shape(whole)
        parts = list(self._matrix_windows(layout, whole, shape))
        (self._plan_parts if shape.parts == 1 else self._plan_totals)(builder, parts, whole, shape, output)
        return {"kind": _KINDS[type(shape)], **asdict(shape), "windows": sum(part.windows for part in parts)}

    def _shape(self, matrices: _Matrices, *, accumulators: bool = False) -> AxisShape:
        fixed = self.fixes_order
        return axis_shape(
            matrices.matrices, matrices.rows, matrices.columns,
            commutative=self.op.commutative, accumulators=accumulators,
            capabilities=self.capabilities, is_fixed=fixed, tuning=self.tuning,
        )  # fmt: skip

    # ---- windows ----

    @property
    def _most_items(self) -> int:
        """Items of a window, wherever it begins."""
        spare = self.capabilities.limits["min-storage-buffer-offset-alignment"] + 16
        return min((binding_limit(self.capabilities) - spare) // self.datatype.itemsize_bytes, 1 << 30)

    def _matrix_windows(self, layout: Layout, whole: _Matrices, shape: AxisShape) -> Iterator[_Part]:
        """Yield what is combined by itself: as many matrices as a binding holds, or one of them, in windows of rows.

        Where a binding does not hold a block of rows either, the kernel reaches the whole input by several bindings.
        """
        operand, items = layout["input"], whole.rows * whole.columns
        total, words = whole.matrices * items, self.datatype.elements
        # Quads begin at multiples of 4 items of the input, whatever the windows.
        group = 4 // gcd(items, 4)
        block = self._block_items(whole, shape)
        if total <= self._most_items or items * group <= self._most_items:
            for window in windows_of(layout, ["input"], self.capabilities, items * group * words):
                yield _Part(window.first // (items * words), window.length // (items * words), [window])
        elif block <= self._most_items and not (self.fixes_order and whole.columns == 1 and items % 4):
            # In a fixed order a row has the same quads, wherever its window begins.
            for matrix in range(whole.matrices):
                first = operand.offset + matrix * items * words
                of_matrix = Layout({"input": replace(operand, offset=first, length=items * words)})
                yield _Part(matrix, 1, windows_of(of_matrix, ["input"], self.capabilities, block * words))
        else:
            if total > _MOST_ITEMS_OF_SEGMENTS:
                raise LimitError(
                    f"ReduceAxis: shape {self.shape} with axis={self.axes} has {total} items, and one binding "
                    f"of the device (of {binding_limit(self.capabilities)} bytes) does not reach {block} of them, "
                    f"which a workgroup combines; a kernel counts up to {_MOST_ITEMS_OF_SEGMENTS} items: reduce parts "
                    f"of the array, or use a device with larger bindings"
                )
            yield _Part(0, whole.matrices, [Window(0, 1, 0, operand.length, operand.length, {"input": operand})])

    def _block_items(self, whole: _Matrices, shape: AxisShape) -> int:
        """Return the items of a block of rows, or of a part of a row: windows hold whole ones."""
        if isinstance(shape, RowsShape):
            return 4 * shape.part_quads
        return shape.rows_per_block * whole.columns

    # ---- kernels ----

    def _plan_parts(
        self, builder: PlanBuilder, parts: Sequence[_Part], whole: _Matrices, shape: AxisShape, output: Operand
    ) -> None:
        """Add a kernel for each window of whole matrices, which writes their results."""
        columns = whole.columns * self.result_datatype.elements
        for part in parts:
            (window,) = part.of
            results = output
            if part.matrices < whole.matrices:
                results = part_of(output, part.first * columns, part.matrices * columns, self.capabilities)
            here = _Matrices(part.matrices, whole.rows, whole.columns)
            self._add_kernel(builder, window.label("reduce"), here, shape, window.operands["input"], results)

    def _plan_totals(
        self, builder: PlanBuilder, parts: Sequence[_Part], whole: _Matrices, shape: AxisShape, output: Operand
    ) -> None:
        """Add a kernel for each window, which writes the totals of blocks, and one that combines all of them.

        The totals lie as they would without windows, so that they are combined in the same order.
        """
        words = self._accumulator.words * whole.columns
        block, row = (n * self.datatype.elements for n in (self._block_items(whole, shape), whole.columns))
        totals = builder.scratch("totals", words * shape.parts * whole.matrices)
        for part in parts:
            done = part.first * shape.parts
            for window in part.of:
                whole_matrices = part.windows == 1
                blocks = shape.parts if whole_matrices else -(-window.length // block)
                here = _Matrices(part.matrices, whole.rows if whole_matrices else window.length // row, whole.columns)
                count = blocks * part.matrices
                self._add_kernel(
                    builder, window.label("reduce"), here, replace(shape, parts=blocks), window.operands["input"],
                    _words_of(totals, words * done, words * count), raw_output=True,
                )  # fmt: skip
                done += count
        of_totals = _Matrices(whole.matrices, shape.parts, whole.columns)
        self._add_kernel(
            builder, "combine", of_totals, self._shape(of_totals, accumulators=True),
            _words_of(totals, 0, words * shape.parts * whole.matrices), output, raw_input=True,
        )  # fmt: skip

    def _add_kernel(
        self,
        builder: PlanBuilder,
        label: str,
        here: _Matrices,
        shape: AxisShape,
        input: Operand,
        output: Operand,
        *,
        raw_input: bool = False,
        raw_output: bool = False,
    ) -> None:
        read, written, context = self._item_context(raw_input=raw_input, raw_output=raw_output)
        of_kernel = self._kernel_of(shape)(here, shape, here.matrices * here.rows * here.columns)
        # An invocation reads quads of 4 items, and writes one; or it does both with as many columns.
        width = of_kernel.written_items
        native = ("subgroup",) if self.mode.kind == "native" and of_kernel.uses_subgroups else ()
        builder.kernel(
            label,
            KernelFile(
                of_kernel.shader,
                context={**context, "vecs": shape.vecs, **of_kernel.context},
                constants={"WORKGROUP_SIZE": shape.workgroup_size, **of_kernel.constants},
                shader_checks=self.op.checks_for(self.result_datatype),
                features=tuple(dict.fromkeys(native + self._features)),
            ),
            Memory(
                reads={"input": input},
                writes={"output": output if width == 4 else output.by_words()},
                units={"input": of_kernel.read_items * read, "output": width * written},
            ),
            params={
                **of_kernel.params,
                **self._accumulator.params,
                **({} if self._fixed_order is None else {"zero": 0}),  # of lib/seal.wgsl
            },
            extent=of_kernel.extent,
        )

    def _kernel_of(self, shape: AxisShape) -> Any:
        return {RowsShape: self._rows_kernel, ColumnsShape: _columns_kernel, NarrowShape: _narrow_kernel}[type(shape)]

    def _rows_kernel(self, here: _Matrices, shape: RowsShape, items: int) -> _KernelOf:
        units = here.matrices * shape.parts
        return _KernelOf(
            "reduce_rows.wgsl",
            {
                "n": items, "row_items": here.rows, "parts": shape.parts, "part_quads": shape.part_quads,
                "units": units,
            },
            -(-units // shape.units_per_workgroup),
            {"TEAM": shape.team},
            {
                "units": shape.units,
                "looped": shape.looped,
                "team_is_workgroup": shape.team == shape.workgroup_size,
                "team_in_memory": shape.team > self.capabilities.subgroup_min_size,
            },
            uses_subgroups=True,
        )  # fmt: skip

    def _reference(self, input: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same items, flat, in the dtype of the result."""
        dtype = self.result_datatype.dtype
        array = input.reshape(self.outer, self.reduced, self.inner).astype(dtype)
        if array.size == 0:
            outputs = self.outer * self.inner
            return np.full(outputs, self.op.empty_result(self.result_datatype) if outputs else 0, dtype=dtype)
        with np.errstate(all="ignore"):
            if isinstance(self.op.numpy, np.ufunc):
                wide = wider(dtype) if self.op.numpy in (np.add, np.multiply) else dtype
                return self.op.numpy.reduce(array, axis=1, dtype=wide).astype(dtype).reshape(-1)
            # Pairwise halving keeps the order and needs few calls; the operator is associative.
            while array.shape[1] > 1:
                odd = array[:, -1:] if array.shape[1] % 2 else array[:, :0]
                array = np.concatenate([self.op.numpy(array[:, :-1:2], array[:, 1::2]).astype(dtype), odd], axis=1)
        return array.reshape(-1)


@dataclass(frozen=True)
class _Part:
    """Matrices that are combined by themselves, and the windows that they lie in: one, or those of a single matrix."""

    first: int
    matrices: int
    of: Sequence[Window]

    @property
    def windows(self) -> int:
        return len(self.of)


@dataclass(frozen=True)
class _KernelOf:
    """What a kernel needs besides the operator."""

    shader: str
    params: dict[str, int]
    extent: Extent
    constants: dict[str, int]
    context: dict[str, Any]
    read_items: int = 4
    written_items: int = 1
    uses_subgroups: bool = False


def _columns_kernel(here: _Matrices, shape: ColumnsShape, items: int) -> _KernelOf:
    strips = -(-here.columns // (shape.strip * shape.width))
    workgroups = strips * shape.parts * here.matrices
    return _KernelOf(
        "reduce_columns.wgsl",
        {
            "rows": here.rows, "columns": here.columns, "strips": strips, "blocks": shape.parts,
            "rows_per_block": shape.rows_per_block, "workgroups": workgroups,
        },
        "workgroups",
        {"STRIP": shape.strip},
        {"width": shape.width},
        read_items=shape.width,
        written_items=shape.width,
    )  # fmt: skip


def _narrow_kernel(here: _Matrices, shape: NarrowShape, items: int) -> _KernelOf:
    matrix_items = here.rows * here.columns
    workgroups = shape.parts * here.matrices
    return _KernelOf(
        "reduce_narrow.wgsl",
        {
            "n": items, "matrix_items": matrix_items, "columns": here.columns, "lanes": shape.lanes,
            "tiles_per_block": shape.tiles_per_block, "blocks": shape.parts, "workgroups": workgroups,
        },
        "workgroups",
        {"ITEMS": 4 * shape.workgroup_size},
        {},
    )  # fmt: skip


_KINDS = {RowsShape: "rows", ColumnsShape: "columns", NarrowShape: "narrow"}


def _words_of(totals: Operand, first: int, count: int) -> Operand:
    return replace(totals, offset=first, length=count)


def array_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; raise ArgumentError unless it is one or more integers of at least 0."""
    sizes = _integers(shape)
    if sizes is None or any(size < 0 for size in sizes):
        raise ArgumentError(f"ReduceAxis: shape must be integers of at least 0, not {shape!r}")
    return sizes


def axes_of(call: str, axis: Any, dimensions: int) -> tuple[int, ...]:
    """Return axes from 0 on, in order; all of them for None.

    Raises
    ------
    DatatypeError
        If it is neither an integer, nor several, nor None.
    AxisError
        If one is not an axis of an array of so many dimensions, or is given twice.
    """
    if axis is None:
        return tuple(range(dimensions))
    given = _integers(axis)
    if given is None:
        raise DatatypeError(f"{call}: axis must be an integer, several, or None, not {axis!r}")
    if not dimensions and not isinstance(axis, Sequence) and given[0] in (0, -1):
        return ()  # as in numpy's reductions
    for each in given:
        if not -dimensions <= each < dimensions:
            raise _outside(call, each, dimensions)
    axes = tuple(sorted(each % dimensions for each in given))
    if len(set(axes)) < len(axes):
        raise AxisError(f"{call}: axis={axis!r} names an axis twice; name each once")
    return axes


def one_axis(call: str, axis: Any, dimensions: int) -> int:
    """Return an axis from 0 on; raise as `axes_of`, and DatatypeError for several or None."""
    if axis is None or isinstance(axis, Sequence) or _integers(axis) is None:
        raise DatatypeError(f"{call}: axis must be one integer, not {axis!r}")
    axes = axes_of(call, axis, dimensions)
    if not axes:
        raise _outside(call, axis, dimensions)
    return axes[0]


def _outside(call: str, axis: Any, dimensions: int) -> AxisError:
    places = f"one from {-dimensions} to {dimensions - 1}" if dimensions else "axis=None"
    return AxisError(f"{call}: axis={axis} is out of bounds for an array of {dimensions} dimensions; give {places}")


def is_together(axes: Sequence[int]) -> bool:
    """Whether no other axis lies between axes in order."""
    return not axes or axes[-1] - axes[0] < len(axes)


def neighbouring_axes(axis: Any, dimensions: int) -> tuple[int, ...]:
    """Return axes from 0 on, in order, as `axes_of`; raise ArgumentError also where others lie between them."""
    axes = axes_of("ReduceAxis", axis, dimensions)
    if not is_together(axes):
        raise ArgumentError(
            f"ReduceAxis: axis={axis!r} are not neighbours, so that their items do not lie evenly in memory; reduce "
            f"along one after the other, or make them neighbours first with numpy.moveaxis"
        )
    return axes


def _integers(value: Any) -> tuple[int, ...] | None:
    """Return one integer or several as a tuple; None for anything else."""
    is_text = isinstance(value, (str, bytes))
    values = cast(Sequence[Any], value) if isinstance(value, Sequence) and not is_text else (value,)
    try:
        return tuple([integer("", each) for each in values])
    except ArgumentError:
        return None
