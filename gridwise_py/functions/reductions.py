"""One-shot reductions by an operator: sums, products, extremes.

A result has the type of the input: numpy array, Array or ChunkedArray.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod as product
from typing import Any, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError, LengthError
from ..primitives import Reduce, ReduceAxis
from ..primitives.engines.operator import check_conversion
from ..primitives.fusion import EXPRESSIONS
from ..primitives.reduce_axis import axes_of, is_together
from ..primitives.repeated_calls import one_shot
from ..runtime.array import Array, asarray, check_numpy_out, empty
from ..runtime.chunked_array import ChunkedArray, Items
from ..types import expression_functions
from ..types.datatype import (
    ITEM_DATATYPES,
    STORAGE_DATATYPES,
    Datatype,
    ItemDatatypeLike,
    Struct,
    as_datatype,
)  # fmt: skip
from ..types.expression import Expression
from ..types.operators import Add, BinOp, BinOpLike, Max, Min, Multiply, as_binop
from ..types.program import Flat
from ..warn import warn
from .arguments import (
    Call,
    argument_array,
    delivered,
    device_of,
    numpy_result,
)  # fmt: skip
from .signatures import AxisLike, ExtremeCall, ReduceCall, SumCall, typed_as
from .windowed import one_result


@dataclass(frozen=True)
class Results:
    """The datatype that a caller of a reduction or a scan gets.

    Attributes
    ----------
    asked : object
        What the caller gave as ``dtype=``, or None.
    widens : bool
        Whether integers and bools become numbers of 64 bits, as in numpy's sums.
    takes_out : bool
        Whether without ``dtype=`` items are converted to the datatype of ``out=`` as they are read, and combined in it:
        not where items are compared.
    """

    asked: Any = None
    widens: bool = False
    takes_out: bool = True

    def datatype(self, items: Datatype, out: Any) -> Datatype:
        """Return it, for items of a datatype and what the caller gave as ``out=``."""
        if self.asked is not None:
            found = as_datatype(self.asked, ITEM_DATATYPES)
            if self.widens and isinstance(self.asked, str) and self.asked in ("i8", "u8"):
                wide = np.dtype(self.asked)
                warn(
                    f"dtype={self.asked!r} is {found.dtype} here, as names count bits, and {wide} in numpy; give "
                    f"np.{wide}, or np.{found.dtype} to have {found.dtype} without this warning"
                )
            return found
        dtype = getattr(out, "dtype", None)
        if self.takes_out and isinstance(dtype, np.dtype) and _combines_in(items.dtype, dtype):
            native = dtype.newbyteorder("=")
            known = next((each for each in STORAGE_DATATYPES.values() if each.dtype == native), None)
            if known is not None:
                return known
        if self.widens and items.dtype.kind in "biu":
            return STORAGE_DATATYPES["u64" if items.dtype.kind == "u" else "i64"]
        return items


def _combines_in(dtype: np.dtype[Any], out: np.dtype[Any]) -> bool:
    """Whether a sum of items of a dtype is the same in the dtype of ``out=``, but for its rounding and its range."""
    if dtype.kind in "Vc":  # these are combined as they are
        return False
    if out.kind == "b" or dtype.kind == "b":
        return out == dtype or out.kind in "iuf"
    return (dtype.kind in "iu" and out.kind in "iu") or np.can_cast(dtype, out, "same_kind")


def take_combined(
    call: Call, x: Any, known: Mapping[str, Datatype], results: Results, out: Any, *, computes: bool = True
) -> tuple[Any, Datatype]:
    """Take all items that are combined, in C order; return their kind, and the datatype of the results.

    Items that no kernel combines in that datatype are converted before, where they are.
    """
    kind = call.take("input", x, known, shape="flat", computes=computes, chunked=True)
    if isinstance(kind, Flat):
        # Kernels read conditions as u32, but a sum of bools is of i64, as numpy's.
        counts = results.widens and kind.types == ("bool",)
        result = results.datatype(STORAGE_DATATYPES["bool"] if counts else kind.datatype, out)
        if _are_combined(kind.datatype, result):
            return kind, result
        call.arrays.clear()
        return take_combined(call, asarray(x, call.device), known, results, out)
    result = results.datatype(kind, out)
    if _are_combined(kind, result):
        return kind, result
    items: Any = call.arrays["input"]
    # numpy would drop imaginary parts, or every field but one.
    if isinstance(items, ChunkedArray) or kind.is_several or isinstance(result, Struct):
        check_conversion(kind, result)  # raises
    with np.errstate(all="ignore"):
        call.arrays["input"] = cast(Any, items).astype(result.dtype)
    return result, result


def _are_combined(datatype: Datatype, result: Datatype) -> bool:
    """Whether kernels combine items of a datatype as another one."""
    if datatype is result:
        return True
    try:
        check_conversion(datatype, result)
    except DatatypeError:
        return False
    return True


@typed_as(ReduceCall)
@one_shot()
def reduce(
    x: Any,
    op: BinOpLike = Add,
    *,
    axis: AxisLike = None,
    keepdims: bool = False,
    dtype: ItemDatatypeLike | None = None,
    initial: Any = None,
    where: Any = True,
    deterministic: bool = False,
    compensated: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Combine all items of `x`, or those along an axis.

    Parameters
    ----------
    x : array_like or Array
        Of any shape and datatype.
    op : BinOp or {"add", "multiply", "min", "max"}, default Add
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else that of `x`.
    initial : number, numpy array or Array of one item, optional
        What is combined in front of all items; the result where there are none.
    where : numpy.ndarray, Array or expression of bool, default True
        Which items count, of a shape that is broadcast to that of `x`. Of an Array with items of 8 bytes not
        with `axis`.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; a sum whose error hardly grows with n. See `Reduce`.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its shape, which is () without `axis`; an Array of 1 item will do there. Results of
        another dtype are cast to its dtype, as numpy casts them.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        `out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().

    Raises
    ------
    DatatypeError
        For other dtypes, and for float64 where the device does not compute with it.
    EmptyReductionError
        For an empty minimum or maximum without `initial`.

    Notes
    -----
    Without `dtype` or `out` the result has the dtype of `x`, for any operator: integers wrap. `sum` and `prod` widen,
    as numpy's do.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.reduce(np.array([6, 8], dtype=np.uint32), gw.Or)
    np.uint32(14)
    """
    return _reduce(
        "gw.reduce()", x, op, Results(dtype), out, device, axis, keepdims, initial, where,
        deterministic=deterministic, compensated=compensated,
    )  # fmt: skip


def first_value(call: str, op: BinOp, datatype: Datatype, device: wgpu.GPUDevice, initial: Any) -> Any:
    """Return what items are combined behind: an Array as it is, all else as a numpy array of one result."""
    if isinstance(initial, Array):
        if initial.size != 1:
            raise LengthError(f"{call}: initial has {initial.size} items, but takes 1; give a view of one")
        if initial.datatype != datatype:
            raise DatatypeError(
                f"{call}: initial is of {initial.datatype}, but the result of {datatype}; convert it on the GPU, "
                f"initial.astype({datatype.name!r}), or give dtype="
            )
        device_of(initial, device=device)
        return initial
    value = initial
    if isinstance(initial, np.ndarray) or hasattr(initial, "__array__"):
        items = argument_array(call, "initial", initial)
        if items.size != 1:
            raise LengthError(f"{call}: initial has shape {items.shape}, but is one value; give one item of it")
        value = items.reshape(1)[0]
    return np.array([op.number(value, datatype, f"{call}: initial")], dtype=datatype.dtype)


def mask_of(call: str, where: Any) -> Any:
    """Return ``where=`` as numpy, an Array or an expression of bool; None for all items."""
    if where is True or where is None:
        return None
    mask = Call(call).items("where", where, fuses=True, chunked=True)
    kind = mask.type if isinstance(mask, Expression) else getattr(mask, "dtype", np.dtype(bool)).name
    if kind != "bool":
        raise DatatypeError(f"{call}: where is of {kind}, but must be of bool; compare it, for example where != 0")
    return mask


def masked_items(call: str, x: Any, mask: Any, device: wgpu.GPUDevice | None) -> tuple[Any, Any]:
    """Return items and a mask of theirs of one shape, both in numpy or both as expressions."""
    on_gpu = [each for each in (x, mask) if isinstance(each, (*EXPRESSIONS, Items))]
    if isinstance(x, ChunkedArray) or isinstance(mask, ChunkedArray):
        raise ArgumentError(f"{call}: where= does not take a ChunkedArray; give its chunks one by one")
    if not on_gpu:
        items = argument_array(call, "x", x)
        try:
            return items, np.broadcast_to(mask, items.shape)
        except ValueError as error:
            raise LengthError(f"{call}: where has shape {mask.shape}, but x {items.shape}: {error}") from None
    device = device_of(*on_gpu, device=device)
    items = x if isinstance(x, (*EXPRESSIONS, Array)) else asarray(x, device)
    if isinstance(mask, np.ndarray):
        shape = getattr(items, "shape", mask.shape)
        try:
            mask = asarray(np.broadcast_to(mask, shape), device)
        except ValueError as error:
            raise LengthError(f"{call}: where has shape {mask.shape}, but x {shape}: {error}") from None
    return items, mask


def _where(call: str, x: Any, op: BinOp, results: Results, mask: Any, device: Any) -> tuple[Any, Results]:
    """Return items with the operator's identity where a mask is False, and the datatype of their results."""
    items, mask = masked_items(call, x, mask, device)
    if isinstance(items, np.ndarray):
        return np.where(
            mask, items, op.identity_for(as_datatype(items.dtype.newbyteorder("="), ITEM_DATATYPES))
        ), results
    if isinstance(items, Array):
        if items.datatype.is_several or items.datatype.itemsize_bytes > 4:
            raise DatatypeError(
                f"{call}: where= of an Array of {items.datatype} is not here, as expressions have items of 4 bytes; "
                f"give the items that count, gw.compress(where, x)"
            )
        if results.asked is None and not results.widens:
            results = replace(results, asked=items.datatype)
    value = items.as_expression()
    identity = op.identity_for(as_datatype(value.type, ITEM_DATATYPES)).item()
    return expression_functions.where(mask, value, identity), results


def _truncates(x: Expression, results: Results) -> bool:
    """Whether floats are combined as integers, which only stored ones are."""
    asked = results.asked
    return x.type == "f32" and asked is not None and as_datatype(asked, ITEM_DATATYPES).dtype.kind in "iu"


def _reduce(
    call: str,
    x: Any,
    op: BinOpLike,
    results: Results,
    out: Any,
    device: wgpu.GPUDevice | None,
    axis: AxisLike,
    keepdims: bool,
    initial: Any = None,
    where: Any = True,
    **options: bool,
) -> Any:
    op, mask = as_binop(op), mask_of(call, where)
    if op.key is not None:  # items are compared as they are
        results = replace(results, takes_out=False)
    if mask is not None:
        if initial is None and not op.empty:
            raise ArgumentError(f"{call}: with where= no item may be left, so it needs initial=, the result of none")
        shape = getattr(x, "shape", None)
        x, results = _where(call, x, op, results, mask, device)
        if shape == () and isinstance(x, EXPRESSIONS):  # of one item, which has neither axes nor more dimensions
            _, axis, keepdims = axes_of(call, axis, 0), None, False
            x = asarray(x, device).reshape(()) if _truncates(cast(Expression, x), results) else x
        elif isinstance(x, Expression) and shape and (axis is not None or keepdims or _truncates(x, results)):
            x = asarray(x, device)
    if initial is not None:
        return _reduce_behind(call, x, op, results, out, device, axis, keepdims, initial, **options)
    if isinstance(x, EXPRESSIONS):
        if axis is not None or keepdims:
            raise ArgumentError(f"{call}: an expression has no axes; leave out axis= and keepdims=")
        return _reduce_all(call, x, op, results, out, device, **options)
    if axis is None and not keepdims:
        return _reduce_all(call, x, op, results, out, device, **options)
    items = Call(call, device).items("x", x, computes=True, chunked=True)
    axes, shape = _axes_and_shape(call, axis, items, keepdims)
    if len(axes) == items.ndim:
        item = out
        if isinstance(out, np.ndarray) and not isinstance(items, Items):
            check_numpy_out(out, shape, out.dtype, "the result", call, strided=True)
            item = out.reshape(())  # a view: it has one item
        result = _reduce_all(call, items, op, results, item, device, **options)
        if out is not None:
            return out
        if isinstance(result, Array):
            return result.reshape(shape)
        return np.full(shape, result) if shape else result
    if options.pop("compensated", False):
        raise ArgumentError(
            f"{call}: compensated=True takes all items, not axis={axis!r}; leave out one of the two, or give "
            f"dtype=np.float64 where the device computes with it"
        )
    if not is_together(axes) and not isinstance(items, Items):
        # Numpy brings the axes together, on the way into the order that is uploaded.
        others = [k for k in range(items.ndim) if k not in axes]
        items, axes = items.transpose(*others, *axes), tuple(range(len(others), items.ndim))
    made = Call(call, device)
    kind, datatype = take_combined(made, items, ReduceAxis.datatypes, results, out)
    of_axes: dict[str, Any] = {"shape": items.shape, "axis": axes, "result_dtype": datatype, **options}
    primitive = made.primitive(ReduceAxis, kind, op, **of_axes)
    made.take_out(primitive, out, shape, casting="unsafe")
    result = made.results(primitive)["output"]
    if out is not None:
        return out
    result = result.reshape(shape)
    return numpy_result(result) if isinstance(result, np.ndarray) else result


def _axes_and_shape(call: str, axis: AxisLike, items: Any, keepdims: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes along which items are combined, and the shape of the result."""
    axes = axes_of(call, axis, items.ndim)
    return axes, tuple(1 if k in axes else size for k, size in enumerate(items.shape) if keepdims or k not in axes)


def _reduce_behind(
    call: str,
    x: Any,
    op: BinOp,
    results: Results,
    out: Any,
    device: wgpu.GPUDevice | None,
    axis: AxisLike,
    keepdims: bool,
    initial: Any,
    **options: bool,
) -> Any:
    """Return reductions whose results are combined behind a first value."""
    if isinstance(initial, Array) and not isinstance(x, (*EXPRESSIONS, Items)):
        x = asarray(x, device_of(initial, device=device))
    x = Call(call, device).items("x", x, computes=True, fuses=True, chunked=True)
    if isinstance(x, (Array, np.ndarray)):
        axes, shape = _axes_and_shape(call, axis, x, keepdims)
        if not op.empty and not product(x.shape[k] for k in axes):  # without items the first value is the result
            datatype = results.datatype(as_datatype(x.dtype.newbyteorder("="), ITEM_DATATYPES), out)
            device = device_of(x, device=device)
            first = first_value(call, op, datatype, device, initial)
            found = asarray(np.full(shape, first.item() if isinstance(first, Array) else first[0]), device)
            return delivered(call, found if isinstance(x, Array) else numpy_result(found.to_numpy()), out, "unsafe")
    if isinstance(x, (Expression, np.ndarray, Items)):
        own = x.type if isinstance(x, Expression) else x.dtype.newbyteorder("=")
        results = Results(results.datatype(as_datatype(own, ITEM_DATATYPES), out))
    found = _reduce(call, x, op, results, None, device, axis, keepdims, **options)
    if not isinstance(found, Array):
        datatype = as_datatype(found.dtype, ITEM_DATATYPES)
        first = first_value(call, op, datatype, device_of(device=device), initial)
        with np.errstate(all="ignore"):
            combined = op.numpy(np.broadcast_to(first, found.shape or (1,)), found.reshape(found.shape or (1,)))
        return delivered(call, numpy_result(np.asarray(combined, found.dtype).reshape(found.shape)), out, "unsafe")
    first = first_value(call, op, found.datatype, found.device, initial)
    both = empty((2, found.size), found.datatype, found.device)
    if isinstance(first, Array):
        first = asarray(np.full(found.size, first.item()), found.device) if found.size != 1 else first.ravel()
        both[0].copy_from(first)
    else:
        both[0].fill(first[0])
    both[1].copy_from(found.ravel())
    combined = _reduce(call, both, op, Results(found.datatype), None, None, 0, False).reshape(found.shape)
    return delivered(call, combined, out, "unsafe")


def _reduce_all(
    call: str, x: Any, op: BinOp, results: Results, out: Any, device: wgpu.GPUDevice | None, **options: bool
) -> Any:
    made = Call(call, device)
    kind, datatype = take_combined(made, x, Reduce.datatypes, results, out)
    primitive = made.primitive(Reduce, kind, op, result_dtype=datatype, **options)
    made.take_out(primitive, out, (), casting="unsafe")
    result = one_result(made, primitive, out)
    if isinstance(result, Array):
        return result if out is not None else result.viewed_as(())
    if out is None:
        return result if isinstance(result, np.generic) else result[0]
    with np.errstate(all="ignore"):
        out[()] = result
    return out


@typed_as(SumCall)
@one_shot()
def sum(
    x: Any,
    axis: AxisLike = None,
    dtype: ItemDatatypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    deterministic: bool = False,
    compensated: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the sum of `x`, or sums along an axis.

    Parameters
    ----------
    x : array_like or Array
        Of any shape and datatype.
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else int64 or uint64
        for bool and integers, as in numpy, and that of `x` for floats.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its shape, which is () without `axis`; an Array of 1 item will do there. Results of
        another dtype are cast to its dtype, as numpy casts them.
    keepdims : bool, default False
        Whether the axes stay, with one item each.
    initial : number, numpy array or Array of one item, optional
        What is combined in front of all items; the result where there are none.
    where : numpy.ndarray, Array or expression of bool, default True
        Which items count, of a shape that is broadcast to that of `x`. Of an Array with items of 8 bytes not
        with `axis`.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; a sum whose error hardly grows with n. See `Reduce`.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        `out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().

    Notes
    -----
    Sums of integers are exact modulo 2**64, as in numpy; with a `dtype` of fewer bits they wrap there. Items are read
    as they are: a sum of uint8 takes the time of its bytes. Sums of float16 are computed in float32 and rounded once.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> int(gw.sum(np.arange(10, dtype=np.uint32)))
    45
    >>> gw.sum([1, 2, 3])
    np.int64(6)
    >>> gw.sum(np.ones((2, 3), dtype=np.float32), axis=0)
    array([2., 2., 2.], dtype=float32)
    >>> x = np.full(3, 2**31, dtype=np.uint32)
    >>> int(gw.sum(x)), int(gw.sum(x, dtype=np.uint32))
    (6442450944, 2147483648)
    """
    return _reduce(
        "gw.sum()", x, Add, Results(dtype, widens=True), out, device, axis, keepdims, initial, where,
        deterministic=deterministic, compensated=compensated,
    )  # fmt: skip


@typed_as(SumCall)
@one_shot()
def prod(
    x: Any,
    axis: AxisLike = None,
    dtype: ItemDatatypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    deterministic: bool = False,
    compensated: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the product of `x`, or products along an axis.

    Parameters
    ----------
    x : array_like or Array
        Shape (n,), of any datatype: bool, integers and floats of 8 to 64 bits. See `sum`.
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else int64 or uint64
        for bool and integers, as in numpy, and that of `x` for floats.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its shape, which is () without `axis`; an Array of 1 item will do there. Results of
        another dtype are cast to its dtype, as numpy casts them.
    keepdims : bool, default False
        Whether the axes stay, with one item each.
    initial : number, numpy array or Array of one item, optional
        What is combined in front of all items; the result where there are none.
    where : numpy.ndarray, Array or expression of bool, default True
        Which items count, of a shape that is broadcast to that of `x`. Of an Array with items of 8 bytes not
        with `axis`.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; `compensated` is for sums, and True is refused here. See `Reduce`.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        `out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    ArgumentError
        If `axis` is out of bounds.
    LengthError
        If `out` has another shape.

    Notes
    -----
    Items are multiplied in another order than numpy's, which begins at the first: a product of some of them that
    overflows is infinite, and with a 0 among the others the result is NaN, where numpy's, once 0, stays 0. Of complex
    numbers 1 is neutral also beside infinities, which numpy's product by 1 makes NaN.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.prod(np.array([2, 3, 4], dtype=np.int32))
    np.int64(24)
    """
    return _reduce(
        "gw.prod()", x, Multiply, Results(dtype, widens=True), out, device, axis, keepdims, initial, where,
        deterministic=deterministic, compensated=compensated,
    )  # fmt: skip


@typed_as(ExtremeCall)
@one_shot()
def min(
    x: Any,
    axis: AxisLike = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    dtype: ItemDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the smallest item of `x`, or those along an axis; NaN where there is one.

    Parameters
    ----------
    x : array_like or Array
        Of any shape and datatype.
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its shape, which is () without `axis`; an Array of 1 item will do there. Results of
        another dtype are cast to its dtype, as numpy casts them.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    initial : number, numpy array or Array of one item, optional
        What is combined in front of all items; the result where there are none.
    where : numpy.ndarray, Array or expression of bool, default True
        Which items count, of a shape that is broadcast to that of `x`. With it `initial` is needed,
        as in numpy. Of an Array with items of 8 bytes not with `axis`.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `x`.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        `out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    ArgumentError
        If `axis` is out of bounds.
    EmptyReductionError
        If there are no items, and no `initial`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.min(np.array([[3, 1], [2, 5]], dtype=np.uint32), axis=0)
    array([2, 1], dtype=uint32)
    """
    return _reduce("gw.min()", x, Min, Results(dtype), out, device, axis, keepdims, initial, where)


@typed_as(ExtremeCall)
@one_shot()
def max(
    x: Any,
    axis: AxisLike = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    dtype: ItemDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the largest item of `x`, or those along an axis; NaN where there is one.

    Parameters
    ----------
    x : array_like or Array
        Of any shape and datatype.
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its shape, which is () without `axis`; an Array of 1 item will do there. Results of
        another dtype are cast to its dtype, as numpy casts them.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    initial : number, numpy array or Array of one item, optional
        What is combined in front of all items; the result where there are none.
    where : numpy.ndarray, Array or expression of bool, default True
        Which items count, of a shape that is broadcast to that of `x`. With it `initial` is needed,
        as in numpy. Of an Array with items of 8 bytes not with `axis`.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `x`.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        `out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    ArgumentError
        If `axis` is out of bounds.
    EmptyReductionError
        If there are no items, and no `initial`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.max(np.array([[3, 1], [2, 5]], dtype=np.uint32), axis=0)
    array([3, 5], dtype=uint32)
    """
    return _reduce("gw.max()", x, Max, Results(dtype), out, device, axis, keepdims, initial, where)
