"""One-shot reductions by an operator: sums, products, extremes; and what all reductions share: axes and masks.

A result has the type of the input: numpy array, Array or ChunkedArray. Functions with ``nan`` in their names leave
items out that are NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod as product
from typing import Any, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError, LengthError
from ..primitives import Reduce, ReduceAxis, Scan
from ..primitives.base import Primitive
from ..primitives.engines.operator import check_conversion
from ..primitives.fusion import EXPRESSIONS
from ..primitives.reduce_axis import axes_of, is_together
from ..runtime.array import Array, asarray, check_numpy_out, empty, is_python
from ..runtime.chunked_array import ChunkedArray, Items
from ..runtime.host_items import integers_and_nulls, with_missing
from ..streaming import in_windows, takes_windows
from ..types import expression_functions
from ..types.datatype import ITEM_DATATYPES, STORAGE_DATATYPES, Datatype, ItemDatatypeLike, Struct, as_datatype
from ..types.expression import Expression, f32
from ..types.operators import Add, BinOp, BinOpLike, Max, Min, Multiply, Or, as_binop
from ..types.program import Flat
from ..types.shapes import broadcast_shape
from ..warn import warn
from .arguments import (
    Call,
    argument_array,
    argument_datatype,
    deliver,
    device_of,
    numpy_result,
    shape_of,
    without_doubles,
)
from .families import family
from .repeated_calls import one_shot
from .signatures import AxisLike, ExtremeCall, ReduceCall, SumCall, typed_as


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
        is_widened = result.name == "f64" and kind.datatype is not result  # expressions are combined as they are
        if _are_combined(kind.datatype, result) and not is_widened:
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


# ---- axes and masks


@dataclass(frozen=True)
class Axes:
    """Along which axes items are combined.

    Attributes
    ----------
    combined : tuple of int
    is_all : bool
        Whether these are all.
    shape : tuple of int
        Of the result.
    """

    combined: tuple[int, ...]
    is_all: bool
    shape: tuple[int, ...]

    @classmethod
    def of(cls, call: str, axis: AxisLike, shape: tuple[int, ...], keepdims: bool) -> Axes:
        """The axes that a caller gave, of an array of some shape."""
        axes = axes_of(call, axis, len(shape))
        kept = tuple(1 if k in axes else size for k, size in enumerate(shape) if keepdims or k not in axes)
        return cls(axes, len(axes) == len(shape), kept)

    def bring_together(self, *arrays: Any) -> tuple[tuple[int, ...], Sequence[Any]]:
        """Return neighbouring axes, and arrays that have them: numpy brings them together on the way to the GPU."""
        if is_together(self.combined) or not isinstance(arrays[0], np.ndarray):
            return self.combined, arrays
        others = [k for k in range(arrays[0].ndim) if k not in self.combined]
        order = (*others, *self.combined)
        moved = [each if each is None else each.transpose(order) for each in arrays]
        return tuple(range(len(others), len(order))), moved

    def fit(self, result: Any) -> Any:
        """Return the one result of all items in the shape that the caller gets."""
        if isinstance(result, Array):
            return result.reshape(self.shape)
        return np.full(self.shape, result) if self.shape else result


def narrow_numbers(x: Any, items: np.ndarray) -> np.ndarray:
    """Return the items of an argument: of Python's numbers those of 4 bytes, where these hold them."""
    if is_python(x) and items.dtype.itemsize == 8 and items.dtype.kind in "if":
        with np.errstate(over="ignore"):
            narrow = items.astype(np.float32 if items.dtype.kind == "f" else np.int32)
        held = np.isfinite(narrow) == np.isfinite(items) if items.dtype.kind == "f" else narrow == items
        if held.all():
            return narrow
    return items


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
    shapes = [shape for each in (items, mask) if (shape := shape_of(each)) is not None]
    if len(shapes) == 2 and broadcast_shape(call, shapes) != shapes[0]:
        raise LengthError(f"{call}: where has shape {shapes[-1]}, but x {shapes[0]}; give one that broadcasts to that")
    return items, mask


def refuse_none(call: str) -> ArgumentError:
    """What to raise where a mask may leave no item, of which there is no result."""
    return ArgumentError(f"{call}: with where= no item may be left, so it needs initial=, the result of none")


def numbers_and_mask(call: str, x: Any, where: Any, device: Any) -> tuple[Any, Any]:
    """Return the items, and which of them count: those that are not NaN, and that a caller's mask has."""
    mask = mask_of(call, where)
    items: Any = x
    nullable = None if isinstance(x, (Array, Expression)) else integers_and_nulls(x)
    if nullable is not None:
        items, present = nullable[0], ~nullable[1]
        mask = present if mask is None else present & mask
    elif not isinstance(x, (Array, Expression)):
        items = without_doubles(x, argument_array(call, "x", x), device_of(device=device))
    if mask is not None:
        items, mask = masked_items(call, items, mask, device)
    number = None
    if isinstance(items, np.ndarray):
        number = ~np.isnan(items) if items.dtype.kind in "fc" else None
    elif isinstance(items, Expression) or items.dtype.kind in "fc":
        if isinstance(items, Array):
            argument_datatype(call, "x", x, items.dtype, STORAGE_DATATYPES)
        value = items.as_expression()
        number = ~expression_functions.isnan(value) if value.type in ("f32", "f64") else None
    if number is None or mask is None:
        return items, True if number is None and mask is None else number if mask is None else mask
    return items, number & mask


def check_order(call: str, items: Any) -> None:
    """Raise DatatypeError for complex numbers of the host."""
    if isinstance(items, np.ndarray) and items.dtype.kind == "c":
        raise DatatypeError(f"{call}: x is of {items.dtype}, and complex numbers have no order")


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


# ---- combining


def one_result(call: Call, primitive: Primitive, out: np.ndarray | None = None, initial: Any = None) -> Any:
    """Return the result of a primitive with one output: in windows of large numpy arrays, where these give the same.

    Arrays of numpy of 8 MiB and more go window by window: while the GPU works on one, the next is uploaded, and the
    result of the one before is downloaded.

    Parameters
    ----------
    call : Call
        Its inputs and `out` are taken.
    initial : numpy.ndarray or Array, optional
        What a `Scan` begins with.
    """
    if not call.on_gpu:
        shape = next(iter(call.arrays.values())).shape
        arrays = [items if items.ndim == 1 else items.reshape(-1) for items in call.arrays.values()]
        flat = out.reshape(-1) if out is not None and out.ndim != 1 and out.flags.c_contiguous else out
        if takes_windows(primitive, arrays, flat):
            if isinstance(primitive, Scan) and initial is not None:
                primitive = primitive.with_initial
            found = in_windows(primitive, arrays, flat, initial=initial)
            return found if len(shape) < 2 or not found.ndim else found.reshape(shape) if out is None else out
    if initial is None:
        return call.results(primitive)["output"]
    assert isinstance(primitive, Scan), "no other primitive begins with an item"
    return call.results(primitive.with_initial, initial=asarray(initial, primitive.device))["output"]


@dataclass(frozen=True)
class Combination:
    """How a call combines items: by which operator, along which axes, and into which datatype."""

    call: str
    op: BinOp
    results: Results
    device: wgpu.GPUDevice | None = None
    axis: AxisLike = None
    keepdims: bool = False
    options: Mapping[str, bool] = field(default_factory=dict[str, bool])

    def of(self, x: Any, out: Any = None) -> Any:
        """Return the result, or what the caller gave as ``out=`` with the result in it."""
        is_expression = isinstance(x, EXPRESSIONS)
        if self.axis is None and not self.keepdims:
            return self._of_all(x, out)
        if is_expression:
            raise ArgumentError(f"{self.call}: an expression has no axes; leave out axis= and keepdims=")
        items = Call(self.call, self.device).items("x", x, computes=True, chunked=True)
        axes = Axes.of(self.call, self.axis, items.shape, self.keepdims)
        if not axes.is_all:
            return self._along(items, axes, out)
        item = out
        if isinstance(out, np.ndarray) and not isinstance(items, Items):
            check_numpy_out(out, axes.shape, out.dtype, "the result", self.call, strided=True)
            item = out.reshape(())  # a view: it has one item
        result = self._of_all(items, item)
        return axes.fit(result) if out is None else out

    def _of_all(self, x: Any, out: Any) -> Any:
        made = Call(self.call, self.device)
        kind, datatype = take_combined(made, x, Reduce.datatypes, self.results, out)
        primitive = made.primitive(Reduce, kind, self.op, result_dtype=datatype, **self.options)
        made.take_out(primitive, out, (), casting="unsafe")
        result = one_result(made, primitive, out)
        if isinstance(result, Array):
            return result if out is not None else result.viewed_as(())
        if out is None:
            return result if isinstance(result, np.generic) else result[0]
        with np.errstate(all="ignore"):
            out[()] = result
        return out

    def _along(self, items: Any, axes: Axes, out: Any) -> Any:
        options = dict(self.options)
        if options.pop("compensated", False):
            raise ArgumentError(
                f"{self.call}: compensated=True takes all items, not axis={self.axis!r}; leave out one of the two, or "
                f"give dtype=np.float64 where the device computes with it"
            )
        combined, (items,) = axes.bring_together(items)
        made = Call(self.call, self.device)
        kind, datatype = take_combined(made, items, ReduceAxis.datatypes, self.results, out)
        of_axes: dict[str, Any] = {"shape": items.shape, "axis": combined, "result_dtype": datatype, **options}
        primitive = made.primitive(ReduceAxis, kind, self.op, **of_axes)
        made.take_out(primitive, out, axes.shape, casting="unsafe")
        result = made.results(primitive)["output"]
        if out is not None:
            return out
        result = result.reshape(axes.shape)
        return numpy_result(result) if isinstance(result, np.ndarray) else result

    def with_identities(self, x: Any, mask: Any, out: Any) -> tuple[Combination, Any]:
        """Return items with the operator's identity where a mask is False, and what combines them."""
        own_shape, results = getattr(x, "shape", None), self.results
        items, mask = masked_items(self.call, x, mask, self.device)
        if isinstance(items, np.ndarray):
            identity = self.op.identity_for(as_datatype(items.dtype.newbyteorder("="), ITEM_DATATYPES))
            return self, np.where(mask, items, identity)
        if isinstance(items, Array):
            if items.datatype.is_several:
                raise DatatypeError(
                    f"{self.call}: where= of an Array of {items.datatype} is not here, as expressions have real "
                    f"numbers; give the items that count, gw.compress(where, x)"
                )
            if results.asked is None and (items.dtype.kind == "f" or not results.widens):
                results = replace(results, asked=results.datatype(items.datatype, out))
        value = items.as_expression()
        identity = self.op.identity_for(as_datatype(value.type, ITEM_DATATYPES)).item()
        of, chosen = replace(self, results=results), expression_functions.where(mask, value, identity)
        # Only stored floats are combined as integers.
        asked = None if results.asked is None else as_datatype(results.asked, ITEM_DATATYPES)
        truncates = chosen.type in ("f32", "f64") and asked is not None and asked.dtype.kind in "iu"
        if own_shape == ():  # one item has neither axes nor more dimensions
            axes_of(self.call, self.axis, 0)
            of = replace(of, axis=None, keepdims=False)
            return of, asarray(chosen, self.device).reshape(()) if truncates else chosen
        if own_shape and (truncates or self.axis is not None or self.keepdims):
            return of, asarray(chosen, self.device)
        return of, chosen

    def behind(self, x: Any, initial: Any, out: Any) -> Any:
        """Return the results combined behind a first value."""
        if isinstance(initial, Array) and not isinstance(x, (*EXPRESSIONS, Items)):
            x = asarray(x, device_of(initial, device=self.device))
        x = Call(self.call, self.device).items("x", x, computes=True, fuses=True, chunked=True)
        results = self.results
        if isinstance(x, (Expression, np.ndarray, Items)):
            own = x.type if isinstance(x, Expression) else x.dtype.newbyteorder("=")
            results = Results(results.datatype(as_datatype(own, ITEM_DATATYPES), out))
        if isinstance(x, (Array, np.ndarray)) and not self.op.empty:
            axes = Axes.of(self.call, self.axis, x.shape, self.keepdims)
            if not product(x.shape[k] for k in axes.combined):  # without items the first value is the result
                device = device_of(x, device=self.device)
                first = first_value(self.call, self.op, cast(Datatype, results.asked), device, initial)
                found = asarray(np.full(axes.shape, first.item() if isinstance(first, Array) else first[0]), device)
                return deliver(
                    self.call, found if isinstance(x, Array) else numpy_result(found.to_numpy()), out, "unsafe"
                )
        found = replace(self, results=results).of(x)
        if not isinstance(found, Array):
            datatype = as_datatype(found.dtype, ITEM_DATATYPES)
            first = first_value(self.call, self.op, datatype, device_of(device=self.device), initial)
            with np.errstate(all="ignore"):
                combined = self.op.numpy(
                    np.broadcast_to(first, found.shape or (1,)), found.reshape(found.shape or (1,))
                )
            shaped = np.asarray(combined, found.dtype).reshape(found.shape)
            return deliver(self.call, numpy_result(shaped), out, "unsafe")
        first = first_value(self.call, self.op, found.datatype, found.device, initial)
        both = empty((2, found.size), found.datatype, found.device)
        if isinstance(first, Array):
            first = asarray(np.full(found.size, first.item()), found.device) if found.size != 1 else first.ravel()
            both[0].copy_from(first)
        else:
            both[0].fill(first[0])
        both[1].copy_from(found.ravel())
        combined = Combination(self.call, self.op, Results(found.datatype), axis=0).of(both).reshape(found.shape)
        return deliver(self.call, combined, out, "unsafe")


def combine(of: Combination, x: Any, out: Any = None, initial: Any = None, where: Any = True) -> Any:
    """Return items combined: those that a mask has, behind a first value where there is one."""
    mask = mask_of(of.call, where)
    if of.op.key is not None:  # items are compared as they are
        of = replace(of, results=replace(of.results, takes_out=False))
    if mask is not None:
        if initial is None and not of.op.empty:
            raise refuse_none(of.call)
        of, x = of.with_identities(x, mask, out)
    return of.of(x, out) if initial is None else of.behind(x, initial, out)


def _combine_numbers(of: Combination, x: Any, out: Any, initial: Any, where: Any) -> Any:
    """Return the items that are not NaN combined; extremes of none are NaN."""
    items, mask = numbers_and_mask(of.call, x, where, of.device)
    if not of.op.empty:
        check_order(of.call, items)
        if where is True and getattr(items, "size", 1) == 0:
            mask = True
    if of.op.empty or mask is True or initial is not None:
        return combine(of, items, out, initial, mask)
    if where is not True:
        raise refuse_none(of.call)
    is_integer = isinstance(items, np.ndarray) and items.dtype.kind in "iu"  # of a column with nulls
    last = of.op.identity_for(as_datatype(items.dtype, ITEM_DATATYPES)) if is_integer else np.inf
    found = combine(of, items, None, -last if of.op == Max and not is_integer else last, mask)
    if not isinstance(found, Array):
        axes = None if of.axis is None else axes_of(of.call, of.axis, np.ndim(mask))
        none = ~np.any(mask, axis=axes, keepdims=bool(of.keepdims))
        found = numpy_result(with_missing(np.asarray(found), np.asarray(none)))
        return deliver(of.call, found, out, "unsafe")
    counts = asarray(mask, of.device) if isinstance(items, Array) and items.ndim else mask
    some = Combination(of.call, Or, Results("bool"), of.device, of.axis, of.keepdims and found.ndim > 0).of(counts)
    value = found.as_expression()
    chosen = asarray(expression_functions.where(some, value if value.type == "f64" else f32(value), np.nan))
    return deliver(of.call, chosen.astype(found.datatype, copy=False).reshape(found.shape), out, "unsafe")


# ---- the functions


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
        Which items count, of a shape that is broadcast to that of `x`.
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
    options = {"deterministic": deterministic, "compensated": compensated}
    of = Combination("gw.reduce()", as_binop(op), Results(dtype), device, axis, keepdims, options)
    return combine(of, x, out, initial, where)


@family()
def _summing(call: str, op: BinOp, skips_nan: bool = False) -> SumCall:
    @typed_as(SumCall)
    def summing(
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
        """Parameters
        ----------
        x : array_like or Array
            Of any shape and datatype.
        axis : int or tuple of int, optional
            Along which items are combined, from the end if negative; by default all. Those of an Array that are several
            must be neighbours.
        dtype : Datatype, str or numpy dtype, optional
            Of the result, and what items are converted to as they are read; by default that of `out`, else int64 or
            uint64 for bool and integers, as in numpy, and that of `x` for floats.
        out : numpy.ndarray or Array, optional
            Where to put the result: of its shape, which is () without `axis`; an Array of 1 item will do there. Results
            of another dtype are cast to its dtype, as numpy casts them.
        keepdims : bool, default False
            Whether the axes stay, with one item each.
        initial : number, numpy array or Array of one item, optional
            What is combined in front of all items; the result where there are none.
        where : numpy.ndarray, Array or expression of bool, default True
            Which items count, of a shape that is broadcast to that of `x`.
        deterministic, compensated : bool, default False
            For floats: the same bits everywhere; a sum whose error hardly grows with n, which products do not have. See
            `Reduce`.
        device : wgpu.GPUDevice, optional
            By default that of `x`, else `default_device()`.

        Returns
        -------
        numpy scalar, numpy.ndarray or Array
            `out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().
        """
        options = {"deterministic": deterministic, "compensated": compensated}
        of = Combination(call, op, Results(dtype, widens=True), device, axis, keepdims, options)
        return (_combine_numbers if skips_nan else combine)(of, x, out, initial, where)

    return summing


@_summing(Add)
def sum() -> None:
    """Return the sum of `x`, or sums along an axis.

    Sums of integers and bools are int64 or uint64, as in numpy; floats keep their dtype. With a `dtype` of fewer bits
    integers wrap there. ``where`` says which items count.

    The bits of a float sum depend on the GPU, which adds in another order than numpy. ``deterministic=True`` fixes that
    order: the same bits on every GPU that rounds by IEEE 754. ``compensated=True`` does so, too, and adds up the
    rounding errors: some 7 right digits of float32 for any number of items. Both take more time.

    {parameters}

    Notes
    -----
    Items are read as they are: a sum of uint8 takes the time of its bytes. Sums of float16 are computed in float32 and
    rounded once.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.sum(np.ones((2, 3), dtype=np.float32), axis=0)
    array([2., 2., 2.], dtype=float32)
    >>> x = np.array([200, 100, 50], dtype=np.uint8)
    >>> gw.sum(x), gw.sum(x, dtype=np.uint8)
    (np.uint64(350), np.uint8(94))
    >>> gw.sum(x, where=x > 60)
    np.uint64(300)
    >>> y = np.array([1e8, 1, -1e8, 1], dtype=np.float32)
    >>> gw.sum(y, compensated=True)  # a plain sum loses ones
    np.float32(2.0)
    >>> gw.sum(np.full(1000, 0.5, dtype=np.float32), deterministic=True)
    np.float32(500.0)
    """


@_summing(Multiply)
def prod() -> None:
    """Return the product of `x`, or products along an axis.

    `dtype`, ``where`` and ``deterministic`` are those of `sum`; a product cannot be compensated.

    {parameters}

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
    >>> gw.prod(np.array([2, 3, 4], dtype=np.float32), where=[True, False, True])
    np.float32(8.0)
    """


@_summing(Add, skips_nan=True)
def nansum() -> None:
    """Return the sum of the items that are not NaN; 0 of none.

    Options are those of `sum`. Integers have no NaN. Of an Array that has, items have up to 4 bytes.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nansum(np.array([1, np.nan, 2], dtype=np.float32))
    np.float32(3.0)
    """


@_summing(Multiply, skips_nan=True)
def nanprod() -> None:
    """Return the product of the items that are not NaN; 1 of none.

    Options are those of `prod`. Integers have no NaN. Of an Array that has, items have up to 4 bytes.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nanprod(np.array([2, np.nan, 4], dtype=np.float32))
    np.float32(8.0)
    """


@family()
def _extreme(call: str, op: BinOp, skips_nan: bool = False) -> ExtremeCall:
    @typed_as(ExtremeCall)
    def extreme(
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
        """Parameters
        ----------
        x : array_like or Array
            Of any shape and datatype.
        axis : int or tuple of int, optional
            Along which items are combined, from the end if negative; by default all. Those of an Array that are several
            must be neighbours.
        out : numpy.ndarray or Array, optional
            Where to put the result: of its shape, which is () without `axis`; an Array of 1 item will do there. Results
            of another dtype are cast to its dtype, as numpy casts them.
        keepdims : bool, default False
            Whether these axes stay, with one item each.
        initial : number, numpy array or Array of one item, optional
            What is combined in front of all items; the result where there are none.
        where : numpy.ndarray, Array or expression of bool, default True
            Which items count, of a shape that is broadcast to that of `x`. With it `initial` is needed,
            as in numpy.
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
        """
        of = Combination(call, op, Results(dtype), device, axis, keepdims)
        return (_combine_numbers if skips_nan else combine)(of, x, out, initial, where)

    return extreme


@_extreme(Min)
def min() -> None:
    """Return the smallest item of `x`, or those along an axis; NaN where there is one.

    The result has the dtype of `x`, and always the same bits. ``where`` needs `initial`: the result of no item.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.min(np.array([[3, 1], [2, 5]], dtype=np.uint32), axis=0)
    array([2, 1], dtype=uint32)
    >>> gw.min([3, 1, 2], where=[True, False, True], initial=9)
    np.int64(2)
    """


@_extreme(Max)
def max() -> None:
    """Return the largest item of `x`, or those along an axis; NaN where there is one.

    The result has the dtype of `x`, and always the same bits. ``where`` needs `initial`: the result of no item.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.max(np.array([[3, 1], [2, 5]], dtype=np.uint32), axis=0)
    array([3, 5], dtype=uint32)
    >>> gw.max([3, 9, 4], where=[True, False, True], initial=0)
    np.int64(4)
    """


@_extreme(Min, skips_nan=True)
def nanmin() -> None:
    """Return the smallest of the items that are not NaN; NaN of none.

    Integers have no NaN. Of an Array that has, items have up to 4 bytes.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nanmin(np.array([3, np.nan, 2], dtype=np.float32))
    np.float32(2.0)
    """


@_extreme(Max, skips_nan=True)
def nanmax() -> None:
    """Return the largest of the items that are not NaN; NaN of none.

    Integers have no NaN. Of an Array that has, items have up to 4 bytes.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nanmax(np.array([3, np.nan, 2], dtype=np.float32))
    np.float32(3.0)
    """
