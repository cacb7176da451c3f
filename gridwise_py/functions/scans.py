"""One-shot scans: along an array, and along an axis.

A result has the type of the input: numpy array, Array or ChunkedArray.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import wgpu

from ..errors import ArgumentError
from ..primitives import Scan, ScanAxis
from ..primitives.fusion import EXPRESSIONS
from ..primitives.reduce_axis import one_axis
from ..primitives.scan import ScanKind
from ..runtime.array import Array, empty
from ..runtime.chunked_array import ChunkedArray
from ..types.datatype import Datatype, ItemDatatypeLike
from ..types.operators import Add, BinOp, BinOpLike, Multiply, as_binop
from .arguments import REMEDIES, Call, check_gpu_out
from .families import family
from .reductions import Combination, Results, first_value, one_result, take_combined
from .repeated_calls import one_shot
from .signatures import CumSumCall, CumulativeCall, ScanCall, typed_as

_INITIAL = {
    "include_initial": "gw.cumulative_sum and gw.cumulative_prod have it", "initial": "gw.scan has it",
}  # fmt: skip


@typed_as(ScanCall)
@one_shot({name: remedy for name, remedy in REMEDIES.items() if name != "initial"})
def scan(
    x: Any,
    op: BinOpLike = Add,
    kind: ScanKind = "inclusive",
    *,
    dtype: ItemDatatypeLike | None = None,
    deterministic: bool = False,
    compensated: bool = False,
    initial: Any = None,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return all prefix sums under an operator.

    Parameters
    ----------
    x : array_like or Array
        Shape (n,), of any datatype: bool, integers and floats of 8 to 64 bits. See `sum`.
    op : BinOp or {"add", "multiply", "min", "max"}, default Add
    kind : {"inclusive", "exclusive"}
        Whether item i combines items 0 to i, or 0 to i − 1.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else that of `x`.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; prefix sums whose error hardly grows with n. See `Scan`.
    initial : number, numpy array or Array of one item, optional
        Of the result's datatype, such as the total of earlier data. An exclusive scan begins with it.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype. It may be an input.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.scan([3, 1, 2], "max", initial=2)
    array([3, 3, 3])
    >>> gw.scan(np.array([3, 1, 2], dtype=np.uint32), kind="exclusive", initial=10)
    array([10, 13, 14], dtype=uint32)
    """
    options = {"deterministic": deterministic, "compensated": compensated}
    return _scan(Combination("gw.scan()", as_binop(op), Results(dtype), device, options=options), x, kind, out, initial)


def _scan(of: Combination, x: Any, kind: str, out: Any, initial: Any = None) -> Any:
    """Return prefix sums of all items in C order."""
    made, results = Call(of.call, of.device), of.results
    if of.op.key is not None:  # items are compared as they are
        results = replace(results, takes_out=False)
    items, datatype = take_combined(made, x, Scan.datatypes, results, out)
    primitive = made.primitive(Scan, items, of.op, kind, result_dtype=datatype, **of.options)
    made.take_out(primitive, out, casting="unsafe")
    start = None if initial is None else first_value(of.call, of.op, datatype, primitive.device, initial)
    return one_result(made, primitive, out, start)


@family(REMEDIES | _INITIAL)
def _accumulating(call: str, op: BinOp) -> CumSumCall:
    @typed_as(CumSumCall)
    def accumulate(
        x: Any,
        axis: int | None = None,
        dtype: ItemDatatypeLike | None = None,
        out: Any = None,
        *,
        deterministic: bool = False,
        compensated: bool = False,
        device: wgpu.GPUDevice | None = None,
    ) -> Any:
        """Parameters
        ----------
        x : array_like or Array
            Any shape, of any datatype: bool, integers and floats of 8 to 64 bits. See `sum`.
        axis : int, optional
            Along which items are combined, from the end if negative; by default all items in C order, as one dimension.
        dtype : Datatype, str or numpy dtype, optional
            Of the result, and what items are converted to as they are read; by default that of `out`, else int64 or
            uint64 for bool and integers, as in numpy, and that of `x` for floats.
        out : numpy.ndarray or Array, optional
            Where to put the result, of the result's kind, shape and dtype. It may be an input.
        deterministic, compensated : bool, default False
            For floats: the same bits everywhere; prefix sums whose error hardly grows with n. See `Scan`. An axis of
            several dimensions takes `deterministic` alone.
        device : wgpu.GPUDevice, optional
            By default that of `x`, else `default_device()`.

        Returns
        -------
        numpy.ndarray or Array
        """
        options = {"deterministic": deterministic, "compensated": compensated}
        return _scan_along(Combination(call, op, Results(dtype, widens=True), device, axis, options=options), x, out)

    return accumulate


@_accumulating(Add)
def cumsum() -> None:
    """Return the inclusive prefix sums.

    Dtypes, ``deterministic`` and ``compensated`` are as in `sum`: integers give int64 or uint64 unless `dtype` says
    otherwise.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.cumsum([3, 1, 2])
    array([3, 4, 6])
    >>> gw.cumsum(np.array([200, 100], dtype=np.uint8), dtype=np.uint16)
    array([200, 300], dtype=uint16)
    >>> gw.cumsum(np.ones((2, 3), dtype=np.float32), axis=1)
    array([[1., 2., 3.],
           [1., 2., 3.]], dtype=float32)
    >>> gw.cumsum(np.array([1e8, 1, -1e8, 1], dtype=np.float32), compensated=True)
    array([1.e+08, 1.e+08, 1.e+00, 2.e+00], dtype=float32)
    """


@_accumulating(Multiply)
def cumprod() -> None:
    """Return the inclusive prefix products.

    {parameters}

    Notes
    -----
    Items of a tile are multiplied with one another before they meet the product of those in front of them: where that
    overflows to infinity, the items behind a 0 are NaN, and not 0, as numpy's, which multiplies from the first item on.
    Of complex numbers 1 is neutral here also beside infinities, where numpy's product of the two has a NaN.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.cumprod([3, 1, 2])
    array([3, 3, 6])
    """


@family(REMEDIES)
def _cumulative(call: str, op: BinOp) -> CumulativeCall:
    @typed_as(CumulativeCall)
    def accumulate(
        x: Any,
        *,
        axis: int | None = None,
        dtype: ItemDatatypeLike | None = None,
        include_initial: bool = False,
        out: Any = None,
        device: wgpu.GPUDevice | None = None,
    ) -> Any:
        """Parameters
        ----------
        x : array_like or Array
            Of any shape and datatype.
        axis : int, optional
            Needed for several dimensions.
        dtype : Datatype, str or numpy dtype, optional
        include_initial : bool, default False
        out : numpy.ndarray or Array, optional
            Where to put the result, of the result's kind, shape and dtype.
        device : wgpu.GPUDevice, optional
            By default that of `x`, else `default_device()`.

        Returns
        -------
        numpy.ndarray or Array
        """
        of = Combination(call, op, Results(dtype, widens=True), device, axis)
        if isinstance(x, EXPRESSIONS):
            return _scan_along(of, x, out, include_initial)
        items = Call(call).items("x", x, chunked=True)
        if axis is None and items.ndim == 0:  # as in numpy
            x = items.ravel()
        elif axis is None and items.ndim != 1:
            raise ArgumentError(
                f"{call}: x has {items.ndim} dimensions, so it needs axis=; for all items in C order give x.ravel()"
            )
        return _scan_along(of if axis is not None else replace(of, axis=0), x, out, include_initial)

    return accumulate


@_cumulative(Add)
def cumulative_sum() -> None:
    """Return the inclusive prefix sums, as the array API standard has them.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.cumulative_sum([3, 1, 2], include_initial=True)
    array([0, 3, 4, 6])
    """


@_cumulative(Multiply)
def cumulative_prod() -> None:
    """Return the inclusive prefix products, as the array API standard has them.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.cumulative_prod([3, 1, 2], include_initial=True)
    array([1, 3, 3, 6])
    """


def _goes_behind(call: Call, datatype: Datatype) -> bool:
    """Whether prefix sums can be written behind the item that they begin with, into one array."""
    counted = any(getattr(array, "count", None) is not None for array in call.arrays.values())
    return datatype.itemsize_bytes >= 4 and not datatype.is_several and not counted


def _behind_initial(call: Call, scan: Scan, out: Any) -> Any:
    """Return the initial item and the prefix sums of a flat array or an expression on the GPU, read once."""
    lengths = {name: int(array.size) for name, array in call.arrays.items()}
    shape = ((scan.signature.output_length("output", lengths) or 0) + 1,)
    if out is not None:
        check_gpu_out(call.name, out, shape, scan.result_datatype, scan.device)
    output = empty(shape, scan.result_datatype, scan.device) if out is None else out
    if shape[0] > 1:
        call.run(scan, output=output[1:])
    output[:1].fill(scan.op.identity_for(scan.result_datatype))  # last: the scan refuses an output that overlaps x
    return output


def _scan_along(of: Combination, x: Any, out: Any, include_initial: bool = False) -> Any:
    """Return inclusive prefix sums along an axis, or of all items."""
    call, options = of.call, dict(of.options)
    if isinstance(x, EXPRESSIONS) and of.axis is not None:
        raise ArgumentError(f"{call}: an expression has no axes; leave out axis=, or store it with gw.asarray(x)")
    if include_initial and (isinstance(x, EXPRESSIONS) or (isinstance(x, Array) and x.ndim == 1)):
        if of.axis is not None:
            one_axis(call, of.axis, 1)
        made = Call(call, of.device)
        kind, datatype = take_combined(made, x, Scan.datatypes, of.results, None)
        primitive = made.primitive(Scan, kind, of.op, "inclusive", result_dtype=datatype)
        if _goes_behind(made, datatype):
            return _behind_initial(made, primitive, out)
        if isinstance(x, EXPRESSIONS):
            raise ArgumentError(
                f"{call}: include_initial=True does not take a counted expression, or one with results of 1 or 2 "
                f"bytes; store it first, with gw.asarray(x)"
            )
    if of.axis is None:
        return _scan(of, x, "inclusive", out)
    items = Call(call, of.device).items("x", x, computes=True, chunked=True)
    if not items.ndim:  # as numpy has it
        items = items.ravel()
    along = one_axis(call, of.axis, items.ndim)
    if items.ndim == 1 and not include_initial:
        return _scan(of, items, "inclusive", out)
    if isinstance(x, ChunkedArray):
        raise ArgumentError(
            f"{call}: include_initial=True does not take a ChunkedArray; its prefix sums without the initial item are "
            f"those of gw.cumsum and gw.cumprod"
        )
    if options.pop("compensated", False):
        raise ArgumentError(
            f"{call}: compensated=True is for the prefix sums of all items, not along axis={of.axis!r} of several "
            f"dimensions; leave out one of the two, or give dtype=np.float64 where the device computes with it"
        )
    shape = tuple(size + (include_initial and k == along) for k, size in enumerate(items.shape))
    made = Call(call, of.device)
    kind, datatype = take_combined(made, items, ScanAxis.datatypes, of.results, out)
    of_axis: dict[str, Any] = {
        "shape": items.shape, "axis": along, "include_initial": include_initial, "result_dtype": datatype, **options,
    }  # fmt: skip
    primitive = made.primitive(ScanAxis, kind, of.op, "inclusive", **of_axis)
    made.take_out(primitive, out, shape, casting="unsafe")
    result = made.results(primitive)["output"]
    return out if out is not None else result.reshape(shape)
