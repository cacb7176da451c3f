"""One-shot functions that add, reduce, scan, sort and multiply matrices.

A result has the type of the input: numpy array, Array or ChunkedArray.

Sums, scans and additions of numpy arrays of 8 MiB and more are computed window by window: while the GPU works on one,
the next is uploaded, and the result of the one before is downloaded (`streaming.in_windows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
import wgpu
from numpy.typing import NDArray

from ..call_errors import explained
from ..errors import ArgumentError, LengthError
from ..primitives import ArgSort, MatMul, MergeSort, Reduce, ReduceAxis, Scan, ScanAxis, Sort, SortPairs, VectorAdd
from ..primitives.base import Primitive
from ..primitives.fusion import EXPRESSIONS
from ..primitives.merge_order import Less
from ..primitives.one_shot import (
    REMEDIES,
    HostItems,
    Results,
    argument_array,
    argument_datatype,
    checked,
    device_of,
    one_shot,
    without_doubles,
)  # fmt: skip
from ..primitives.reduce_axis import axes_of, is_together
from ..primitives.scan import ScanKind
from ..runtime.array import Array, check_numpy_out
from ..runtime.chunked_array import ChunkedArray, Items, ItemsT
from ..streaming import in_windows, takes_windows
from ..types.datatype import VALUE_DATATYPES, ItemDatatypeLike
from ..types.operators import Add, BinOpLike, Max, Min, Multiply, as_binop
from ..types.options import integer
from .arrays import add_broadcast, is_broadcast, numpy_result

__all__ = [
    "add",
    "argsort",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "matmul",
    "max",
    "min",
    "prod",
    "reduce",
    "scan",
    "sort",
    "sort_pairs",
    "sum",
]

#: The axes that a reduction combines items along; None means all.
AxisLike: TypeAlias = int | Sequence[int] | None
OutT = TypeVar("OutT", bound=np.ndarray)
_INITIAL = {"include_initial": "gw.cumulative_sum and gw.cumulative_prod have it"}
ScalarT = TypeVar("ScalarT", bound=np.number[Any])
FloatT = TypeVar("FloatT", bound=np.floating[Any])
SecondT = TypeVar("SecondT", bound=np.generic)


@overload
def add(
    a: ItemsT, b: ItemsT | HostItems, *, out: ItemsT | None = None, device: wgpu.GPUDevice | None = None
) -> ItemsT: ...
@overload
def add(a: HostItems, b: ItemsT, *, out: ItemsT | None = None, device: wgpu.GPUDevice | None = None) -> ItemsT: ...
@overload
def add(
    a: NDArray[ScalarT], b: HostItems, *, out: NDArray[ScalarT] | None = None, device: wgpu.GPUDevice | None = None
) -> NDArray[ScalarT]: ...
@overload
def add(
    a: HostItems, b: HostItems, *, out: NDArray[Any] | None = None, device: wgpu.GPUDevice | None = None
) -> NDArray[Any]: ...
@explained(REMEDIES)
def add(a: Any, b: Any, *, out: Any = None, device: wgpu.GPUDevice | None = None) -> Any:
    """Return ``a + b``, item by item; integers wrap, as in numpy.

    Parameters
    ----------
    a, b : numpy.ndarray, Array or number
        Of any datatypes (bool, integers and floats of 8 to 64 bits), which are promoted as in numpy, and of one shape,
        or of shapes that numpy broadcasts. A Python number is converted to the datatype of the array, which must hold
        it. Arrays of one shape and one datatype take the fastest kernel. float64 needs a device that computes with it
        (``shader-f64``).
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. It may be an input.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of the broadcast shape; an Array if an argument is one.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.array([1, 2, 3], dtype=np.int32)
    >>> gw.add(x, 10)
    array([11, 12, 13], dtype=int32)
    >>> gw.add(np.array([[0], [10]], dtype=np.int32), x)
    array([[ 1,  2,  3],
           [11, 12, 13]], dtype=int32)
    """
    call = "gw.add()"
    if is_broadcast(a, b):
        return add_broadcast(call, a, b, out, device)
    return _one_shot(call, VectorAdd, (), device, {"a": a, "b": b}, out, keep_shape=True)


def _one_shot(
    call: str,
    cls: type[Primitive],
    key: tuple[Any, ...],
    device: wgpu.GPUDevice | None,
    inputs: dict[str, Any],
    out: Any,
    *,
    keep_shape: bool = False,
    **options: Any,
) -> Any:
    """Return the result of a primitive with one output: in windows of large numpy arrays, where these give the same.

    With `keep_shape` the inputs are of one shape, which the result has, too.
    """
    shape = np.shape(next(iter(inputs.values()))) if keep_shape and not _any_on_gpu(inputs) else None
    if shape is not None and len(shape) > 1:  # arrays of the host are worked on in one dimension
        options |= {"flatten": True, "out_shape": shape}
    elif keep_shape:
        options |= {"any_shape": True}
    made = checked(call, cls, key, device, inputs, out, **options)
    if not made.on_gpu:
        arrays = list(made.inputs.values())
        flat = out.reshape(-1) if shape is not None and out is not None else out  # a view: `out` is contiguous
        if takes_windows(made.primitive, arrays, flat):
            result = in_windows(made.primitive, arrays, flat)
        else:
            result = made.run()[0]
        return result if shape is None else out if out is not None else result.reshape(shape)
    return made.run()[0]


def _any_on_gpu(inputs: Mapping[str, Any]) -> bool:
    return any(isinstance(value, (*EXPRESSIONS, Items)) for value in inputs.values())


@overload
def reduce(
    x: Items,
    op: BinOpLike = ...,
    *,
    axis: AxisLike = ...,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: Array | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Array: ...
@overload
def reduce(  # pyright: ignore[reportOverlappingOverload]  # HostItems has structured arrays, too
    x: NDArray[np.void],
    op: BinOpLike = ...,
    *,
    axis: None = ...,
    keepdims: Literal[False] = ...,
    dtype: None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> np.void: ...
@overload
def reduce(
    x: NDArray[ScalarT],
    op: BinOpLike = ...,
    *,
    axis: None = ...,
    keepdims: Literal[False] = ...,
    dtype: None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ScalarT: ...
@overload
def reduce(
    x: HostItems,
    op: BinOpLike = ...,
    *,
    axis: None = ...,
    keepdims: Literal[False] = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> np.number[Any]: ...
@overload
def reduce(
    x: HostItems,
    op: BinOpLike = ...,
    *,
    axis: int | Sequence[int],
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def reduce(
    x: HostItems,
    op: BinOpLike = ...,
    *,
    axis: None = ...,
    keepdims: Literal[True],
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def reduce(
    x: HostItems,
    op: BinOpLike = ...,
    *,
    axis: AxisLike = ...,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: OutT,
    device: wgpu.GPUDevice | None = ...,
) -> OutT: ...
@explained(REMEDIES)
def reduce(
    x: Any,
    op: BinOpLike = Add,
    *,
    axis: AxisLike = None,
    keepdims: bool = False,
    dtype: ItemDatatypeLike | None = None,
    deterministic: bool = False,
    compensated: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Combine all items of `x`, or those along an axis.

    Parameters
    ----------
    x : array_like or Array
        Any shape, of any datatype: bool, integers and floats of 8 to 64 bits. A numpy array of any strides and byte
        order, anything that numpy makes an array of (a list, a number, a tensor on the CPU), or an Array. float64 needs
        a device that computes with it (``shader-f64``); Python floats are float32 on others.
    op : BinOp or {"add", "multiply", "min", "max"}, default Add
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else that of `x`.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; a sum whose error hardly grows with n. See `Reduce`.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its dtype and shape, which is () without `axis`; an Array of 1 item will do there.
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
        For an empty minimum or maximum.

    Notes
    -----
    Without `dtype` or `out` the result has the dtype of `x`, for any operator: integers wrap. `sum` and `prod` widen,
    as numpy's do.
    """
    return _reduce(
        "gw.reduce()", x, op, Results(dtype), out, device, axis, keepdims,
        deterministic=deterministic, compensated=compensated,
    )  # fmt: skip


def _reduce(
    call: str,
    x: Any,
    op: BinOpLike,
    results: Results,
    out: Any,
    device: wgpu.GPUDevice | None,
    axis: AxisLike,
    keepdims: bool,
    **options: bool,
) -> Any:
    if isinstance(x, EXPRESSIONS):
        if axis is not None or keepdims:
            raise ArgumentError(f"{call}: an expression has no axes; leave out axis= and keepdims=")
        return _reduce_all(call, x, op, results, out, device, **options)
    if axis is None and not keepdims:
        return _reduce_all(call, x, op, results, out, device, **options)
    items = x if isinstance(x, Items) else without_doubles(x, argument_array(call, "x", x), device_of(device=device))
    axes = axes_of(call, axis, items.ndim)
    shape = tuple(1 if k in axes else size for k, size in enumerate(items.shape) if keepdims or k not in axes)
    if len(axes) == items.ndim:
        item = out
        if isinstance(out, np.ndarray) and not isinstance(items, Items):
            check_numpy_out(out, shape, out.dtype, "the result", call)
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
    of_axes: dict[str, Any] = {"shape": items.shape, "axis": axes, **options}
    made = checked(
        call, ReduceAxis, (as_binop(op),), device, {"input": items}, out, results=results, flatten=True,
        out_shape=shape, **of_axes,
    )  # fmt: skip
    result = made.run()[0]
    if out is not None:
        return out
    result = result.reshape(shape)
    return numpy_result(result) if isinstance(result, np.ndarray) else result


def _reduce_all(
    call: str, x: Any, op: BinOpLike, results: Results, out: Any, device: wgpu.GPUDevice | None, **options: bool
) -> Any:
    result = _one_shot(
        call, Reduce, (as_binop(op),), device, {"input": x}, out, results=results, flatten=True, out_shape=(), **options
    )
    if isinstance(result, Array):
        return result if out is not None else result.viewed_as(())
    if out is None:
        return result if isinstance(result, np.generic) else result[0]
    out[()] = result
    return out


@overload
def sum(
    x: Items,
    axis: AxisLike = ...,
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: Array | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Array: ...
@overload
def sum(
    x: NDArray[FloatT],
    axis: None = ...,
    *,
    keepdims: Literal[False] = ...,
    dtype: None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> FloatT: ...
@overload
def sum(
    x: HostItems,
    axis: None = ...,
    *,
    keepdims: Literal[False] = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> np.number[Any]: ...
@overload
def sum(
    x: HostItems,
    axis: int | Sequence[int],
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def sum(
    x: HostItems,
    axis: None = ...,
    *,
    keepdims: Literal[True],
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def sum(
    x: HostItems,
    axis: AxisLike = ...,
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: OutT,
    device: wgpu.GPUDevice | None = ...,
) -> OutT: ...
@explained(REMEDIES)
def sum(
    x: Any,
    axis: AxisLike = None,
    *,
    keepdims: bool = False,
    dtype: ItemDatatypeLike | None = None,
    deterministic: bool = False,
    compensated: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the sum of `x`, or sums along an axis; 0 where there are no items.

    Parameters
    ----------
    x : array_like or Array
        Any shape, of any datatype: bool, integers and floats of 8 to 64 bits. A numpy array of any strides and byte
        order, anything that numpy makes an array of (a list, a number, a tensor on the CPU), or an Array. float64 needs
        a device that computes with it (``shader-f64``); Python floats are float32 on others.
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else int64 or uint64
        for bool and integers, as in numpy, and that of `x` for floats.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; a sum whose error hardly grows with n. See `Reduce`.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its dtype and shape, which is () without `axis`; an Array of 1 item will do there.
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
        "gw.sum()", x, Add, Results(dtype, widens=True), out, device, axis, keepdims,
        deterministic=deterministic, compensated=compensated,
    )  # fmt: skip


@overload
def prod(
    x: Items,
    axis: AxisLike = ...,
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    out: Array | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Array: ...
@overload
def prod(
    x: NDArray[FloatT],
    axis: None = ...,
    *,
    keepdims: Literal[False] = ...,
    dtype: None = ...,
    deterministic: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> FloatT: ...
@overload
def prod(
    x: HostItems,
    axis: None = ...,
    *,
    keepdims: Literal[False] = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> np.number[Any]: ...
@overload
def prod(
    x: HostItems,
    axis: int | Sequence[int],
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def prod(
    x: HostItems,
    axis: None = ...,
    *,
    keepdims: Literal[True],
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def prod(
    x: HostItems,
    axis: AxisLike = ...,
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    out: OutT,
    device: wgpu.GPUDevice | None = ...,
) -> OutT: ...
@explained(REMEDIES)
def prod(
    x: Any,
    axis: AxisLike = None,
    *,
    keepdims: bool = False,
    dtype: ItemDatatypeLike | None = None,
    deterministic: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the product of `x`, or products along an axis; 1 where there are no items.

    Parameters
    ----------
    x : array_like or Array
        Shape (n,), of any datatype: bool, integers and floats of 8 to 64 bits. See `sum`.
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else int64 or uint64
        for bool and integers, as in numpy, and that of `x` for floats.
    deterministic : bool, default False
        For floats: the same bits everywhere. See `Reduce`.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its dtype and shape, which is () without `axis`; an Array of 1 item will do there.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        `out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().
    """
    return _reduce(
        "gw.prod()", x, Multiply, Results(dtype, widens=True), out, device, axis, keepdims, deterministic=deterministic
    )


@overload
def min(
    x: Items,
    axis: AxisLike = ...,
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    out: Array | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Array: ...
@overload
def min(
    x: NDArray[ScalarT],
    axis: None = ...,
    *,
    keepdims: Literal[False] = ...,
    dtype: None = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ScalarT: ...
@overload
def min(
    x: HostItems,
    axis: None = ...,
    *,
    keepdims: Literal[False] = ...,
    dtype: ItemDatatypeLike | None = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> np.number[Any]: ...
@overload
def min(
    x: HostItems,
    axis: int | Sequence[int],
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def min(
    x: HostItems,
    axis: None = ...,
    *,
    keepdims: Literal[True],
    dtype: ItemDatatypeLike | None = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def min(
    x: HostItems,
    axis: AxisLike = ...,
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    out: OutT,
    device: wgpu.GPUDevice | None = ...,
) -> OutT: ...
@explained(REMEDIES)
def min(
    x: Any,
    axis: AxisLike = None,
    *,
    keepdims: bool = False,
    dtype: ItemDatatypeLike | None = None,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the smallest item of `x`, or those along an axis; NaN where there is one; raises where there are no items.

    Parameters
    ----------
    x : array_like or Array
        Shape (n,), of any datatype: bool, integers and floats of 8 to 64 bits, float64 on any device. See `sum`.
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else that of `x`.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its dtype and shape, which is () without `axis`; an Array of 1 item will do there.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        `out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().
    """
    return _reduce("gw.min()", x, Min, Results(dtype), out, device, axis, keepdims)


@overload
def max(
    x: Items,
    axis: AxisLike = ...,
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    out: Array | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Array: ...
@overload
def max(
    x: NDArray[ScalarT],
    axis: None = ...,
    *,
    keepdims: Literal[False] = ...,
    dtype: None = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ScalarT: ...
@overload
def max(
    x: HostItems,
    axis: None = ...,
    *,
    keepdims: Literal[False] = ...,
    dtype: ItemDatatypeLike | None = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> np.number[Any]: ...
@overload
def max(
    x: HostItems,
    axis: int | Sequence[int],
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def max(
    x: HostItems,
    axis: None = ...,
    *,
    keepdims: Literal[True],
    dtype: ItemDatatypeLike | None = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@overload
def max(
    x: HostItems,
    axis: AxisLike = ...,
    *,
    keepdims: bool = ...,
    dtype: ItemDatatypeLike | None = ...,
    out: OutT,
    device: wgpu.GPUDevice | None = ...,
) -> OutT: ...
@explained(REMEDIES)
def max(
    x: Any,
    axis: AxisLike = None,
    *,
    keepdims: bool = False,
    dtype: ItemDatatypeLike | None = None,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the largest item of `x`, or those along an axis; NaN where there is one; raises where there are no items.

    Parameters
    ----------
    x : array_like or Array
        Shape (n,), of any datatype: bool, integers and floats of 8 to 64 bits, float64 on any device. See `sum`.
    axis : int or tuple of int, optional
        Along which items are combined, from the end if negative; by default all. Those of an Array that are several
        must be neighbours.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else that of `x`.
    out : numpy.ndarray or Array, optional
        Where to put the result: of its dtype and shape, which is () without `axis`; an Array of 1 item will do there.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        `out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().
    """
    return _reduce("gw.max()", x, Max, Results(dtype), out, device, axis, keepdims)


@overload
def scan(
    x: ItemsT,
    op: BinOpLike = ...,
    kind: ScanKind = ...,
    *,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: ItemsT | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def scan(
    x: NDArray[ScalarT],
    op: BinOpLike = ...,
    kind: ScanKind = ...,
    *,
    dtype: None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: NDArray[ScalarT] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[ScalarT]: ...
@overload
def scan(
    x: HostItems,
    op: BinOpLike = ...,
    kind: ScanKind = ...,
    *,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: NDArray[Any] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@explained(REMEDIES)
def scan(
    x: Any,
    op: BinOpLike = Add,
    kind: ScanKind = "inclusive",
    *,
    dtype: ItemDatatypeLike | None = None,
    deterministic: bool = False,
    compensated: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return all prefix sums of `x` under `op`.

    Parameters
    ----------
    x : array_like or Array
        Shape (n,), of any datatype: bool, integers and floats of 8 to 64 bits. See `sum`.
    op : BinOp or {"add", "multiply", "min", "max"}, default Add
    kind : {"inclusive", "exclusive"}
        Whether item i of the result combines items 0 to i, or 0 to i − 1.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else that of `x`.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; prefix sums whose error hardly grows with n. See `Scan`.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. It may be an input.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,), in the datatype of `x`.
    """
    return _scan(
        "gw.scan()", x, op, kind, Results(dtype), out, device, deterministic=deterministic, compensated=compensated
    )


def _scan(
    call: str,
    x: Any,
    op: BinOpLike,
    kind: str,
    results: Results,
    out: Any,
    device: wgpu.GPUDevice | None,
    **options: bool,
) -> Any:
    return _one_shot(
        call, Scan, (as_binop(op), kind), device, {"input": x}, out, results=results, flatten=True, **options
    )


@overload
def cumsum(
    x: ItemsT,
    axis: int | None = ...,
    *,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: ItemsT | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def cumsum(
    x: NDArray[FloatT],
    axis: int | None = ...,
    *,
    dtype: None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: NDArray[FloatT] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[FloatT]: ...
@overload
def cumsum(
    x: HostItems,
    axis: int | None = ...,
    *,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: NDArray[Any] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@explained(REMEDIES | _INITIAL)
def cumsum(
    x: Any,
    axis: int | None = None,
    *,
    dtype: ItemDatatypeLike | None = None,
    deterministic: bool = False,
    compensated: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the inclusive prefix sums of `x`.

    Parameters
    ----------
    x : array_like or Array
        Any shape, of any datatype: bool, integers and floats of 8 to 64 bits. See `sum`.
    axis : int, optional
        Along which items are combined, from the end if negative; by default all items in C order, as one dimension.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else int64 or uint64
        for bool and integers, as in numpy, and that of `x` for floats.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; prefix sums whose error hardly grows with n. See `Scan`. An axis of
        several dimensions takes `deterministic` alone.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. It may be an input.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,); with `axis` that of `x`.

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
    """
    return _scan_along(
        "gw.cumsum()", x, Add, Results(dtype, widens=True), out, device, axis,
        deterministic=deterministic, compensated=compensated,
    )  # fmt: skip


@overload
def cumprod(
    x: ItemsT,
    axis: int | None = ...,
    *,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    out: ItemsT | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def cumprod(
    x: NDArray[FloatT],
    axis: int | None = ...,
    *,
    dtype: None = ...,
    deterministic: bool = ...,
    out: NDArray[FloatT] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[FloatT]: ...
@overload
def cumprod(
    x: HostItems,
    axis: int | None = ...,
    *,
    dtype: ItemDatatypeLike | None = ...,
    deterministic: bool = ...,
    out: NDArray[Any] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@explained(REMEDIES | _INITIAL)
def cumprod(
    x: Any,
    axis: int | None = None,
    *,
    dtype: ItemDatatypeLike | None = None,
    deterministic: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the inclusive prefix products of `x`.

    Parameters
    ----------
    x : array_like or Array
        Any shape, of any datatype: bool, integers and floats of 8 to 64 bits. See `sum`.
    axis : int, optional
        Along which items are combined, from the end if negative; by default all items in C order, as one dimension.
    dtype : Datatype, str or numpy dtype, optional
        Of the result, and what items are converted to as they are read; by default that of `out`, else int64 or uint64
        for bool and integers, as in numpy, and that of `x` for floats.
    deterministic : bool, default False
        For floats: the same bits everywhere. See `Scan`.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. It may be an input.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,); with `axis` that of `x`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.cumprod([3, 1, 2])
    array([3, 3, 6])
    """
    return _scan_along(
        "gw.cumprod()", x, Multiply, Results(dtype, widens=True), out, device, axis, deterministic=deterministic
    )


@overload
def cumulative_sum(
    x: ItemsT,
    *,
    axis: int | None = ...,
    dtype: ItemDatatypeLike | None = ...,
    include_initial: bool = ...,
    out: ItemsT | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def cumulative_sum(
    x: HostItems,
    *,
    axis: int | None = ...,
    dtype: ItemDatatypeLike | None = ...,
    include_initial: bool = ...,
    out: NDArray[Any] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@explained(REMEDIES)
def cumulative_sum(
    x: Any,
    *,
    axis: int | None = None,
    dtype: ItemDatatypeLike | None = None,
    include_initial: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the inclusive prefix sums of `x`, as the array API standard has it.

    Parameters
    ----------
    x : array_like or Array
        One dimension or more, of any datatype. See `cumsum`.
    axis : int, optional
        Along which items are combined; may be left out for one dimension only.
    dtype : Datatype, str or numpy dtype, optional
        As in `cumsum`.
    include_initial : bool, default False
        Whether the result begins with 0 along the axis, and so has one item more than `x` there.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.cumulative_sum([3, 1, 2], include_initial=True)
    array([0, 3, 4, 6])
    """
    return _cumulative("gw.cumulative_sum()", x, Add, Results(dtype, widens=True), out, device, axis, include_initial)


@overload
def cumulative_prod(
    x: ItemsT,
    *,
    axis: int | None = ...,
    dtype: ItemDatatypeLike | None = ...,
    include_initial: bool = ...,
    out: ItemsT | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def cumulative_prod(
    x: HostItems,
    *,
    axis: int | None = ...,
    dtype: ItemDatatypeLike | None = ...,
    include_initial: bool = ...,
    out: NDArray[Any] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@explained(REMEDIES)
def cumulative_prod(
    x: Any,
    *,
    axis: int | None = None,
    dtype: ItemDatatypeLike | None = None,
    include_initial: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the inclusive prefix products of `x`, as the array API standard has it; see `cumulative_sum`.

    Parameters
    ----------
    x : array_like or Array
        One dimension or more, of any datatype. See `cumprod`.
    axis : int, optional
        Along which items are combined; may be left out for one dimension only.
    dtype : Datatype, str or numpy dtype, optional
        As in `cumprod`.
    include_initial : bool, default False
        Whether the result begins with 1 along the axis, and so has one item more than `x` there.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.cumulative_prod([3, 1, 2], include_initial=True)
    array([1, 3, 3, 6])
    """
    return _cumulative(
        "gw.cumulative_prod()", x, Multiply, Results(dtype, widens=True), out, device, axis, include_initial
    )


def _cumulative(
    call: str,
    x: Any,
    op: BinOpLike,
    results: Results,
    out: Any,
    device: wgpu.GPUDevice | None,
    axis: int | None,
    include_initial: bool,
) -> Any:
    if isinstance(x, EXPRESSIONS):
        return _scan_along(call, x, op, results, out, device, axis, include_initial)
    items = x if isinstance(x, Items) else argument_array(call, "x", x)
    if axis is None and items.ndim != 1:
        raise ArgumentError(
            f"{call}: x has {items.ndim} dimensions, so it needs axis=; for all items in C order give x.ravel()"
        )
    axis = 0 if axis is None else axis
    return _scan_along(call, x, op, results, out, device, axis, include_initial)


def _scan_along(
    call: str,
    x: Any,
    op: BinOpLike,
    results: Results,
    out: Any,
    device: wgpu.GPUDevice | None,
    axis: int | None,
    include_initial: bool = False,
    **options: bool,
) -> Any:
    """Return inclusive prefix sums along an axis, or of all items."""
    if isinstance(x, EXPRESSIONS) and (axis is not None or include_initial):
        raise ArgumentError(
            f"{call}: an expression has no axes; leave out axis= and include_initial=, or store it with gw.asarray(x)"
        )
    if axis is None:
        return _scan(call, x, op, "inclusive", results, out, device, **options)
    items = x if isinstance(x, Items) else without_doubles(x, argument_array(call, "x", x), device_of(device=device))
    axes = axes_of(call, axis, items.ndim)
    if len(axes) != 1:
        raise ArgumentError(f"{call}: axis={axis!r} must be one axis; scan along one after the other")
    if items.ndim == 1 and not include_initial:
        return _scan(call, items, op, "inclusive", results, out, device, **options)
    if isinstance(x, ChunkedArray):
        raise ArgumentError(
            f"{call}: include_initial=True does not take a ChunkedArray; its prefix sums without the initial item are "
            f"those of gw.cumsum and gw.cumprod"
        )
    if options.pop("compensated", False):
        raise ArgumentError(
            f"{call}: compensated=True is for the prefix sums of all items, not along axis={axis!r} of several "
            f"dimensions; leave out one of the two, or give dtype=np.float64 where the device computes with it"
        )
    shape = tuple(size + (include_initial and k in axes) for k, size in enumerate(items.shape))
    of_axis: dict[str, Any] = {
        "shape": items.shape, "axis": axes[0], "include_initial": include_initial, **options,
    }  # fmt: skip
    made = checked(
        call, ScanAxis, (as_binop(op), "inclusive"), device, {"input": items}, out, results=results, flatten=True,
        out_shape=shape, **of_axis,
    )  # fmt: skip
    result = made.run()[0]
    return out if out is not None else result.reshape(shape)


@overload
def sort(
    x: ItemsT,
    *,
    descending: bool = ...,
    less: Less | None = ...,
    out: ItemsT | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def sort(
    x: NDArray[ScalarT],
    *,
    descending: bool = ...,
    less: Less | None = ...,
    out: NDArray[ScalarT] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[ScalarT]: ...
@overload
def sort(
    x: HostItems,
    *,
    descending: bool = ...,
    less: Less | None = ...,
    out: NDArray[Any] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@explained(REMEDIES)
def sort(
    x: Any,
    *,
    descending: bool = False,
    less: Less | None = None,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return a sorted copy of `x`, like numpy's stable sort.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of any datatype: bool, integers and floats of 8 to 64 bits, float64 on any device. With `less` of
        u32, i32, f32, or structs of these.
    descending : bool, default False
        Largest first. Equal items keep their order, and NaN comes last in both directions.
    less : callable, optional
        Another order: a function of two items that says whether the first goes before the second, as in `MergeSort`.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. A numpy array may be
        an input.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,), in the datatype of `x`.
    """
    if less is not None:
        options = {"descending": descending, "less": less}
        return one_shot("gw.sort()", MergeSort, (), device, {"input": x}, out, **options)[0]
    return _one_shot("gw.sort()", Sort, (), device, {"input": x}, out, descending=descending)


@overload
def argsort(
    x: ItemsT, *, descending: bool = ..., out: ItemsT | None = ..., device: wgpu.GPUDevice | None = ...
) -> ItemsT: ...
@overload
def argsort(
    x: HostItems, *, descending: bool = ..., out: NDArray[np.intp] | None = ..., device: wgpu.GPUDevice | None = ...
) -> NDArray[np.intp]: ...
@explained(REMEDIES)
def argsort(x: Any, *, descending: bool = False, out: Any = None, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the indices that would sort `x`, like numpy's stable argsort.

    Parameters
    ----------
    x, descending
        As for `sort`.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. A numpy array may be
        an input.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,): intp for numpy, u32 for an Array.
    """
    intp = np.dtype(np.intp)
    options = {"out_dtype": intp, "descending": descending}
    (result,) = one_shot("gw.argsort()", ArgSort, (), device, {"input": x}, out, **options)
    return result if isinstance(result, Items) else result.astype(np.intp, copy=False)


@overload
def sort_pairs(
    keys: ItemsT,
    values: ItemsT | HostItems,
    *,
    descending: bool = ...,
    out: tuple[ItemsT, ItemsT] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> tuple[ItemsT, ItemsT]: ...
@overload
def sort_pairs(
    keys: HostItems,
    values: ItemsT,
    *,
    descending: bool = ...,
    out: tuple[ItemsT, ItemsT] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> tuple[ItemsT, ItemsT]: ...
@overload
def sort_pairs(
    keys: NDArray[ScalarT],
    values: NDArray[SecondT],
    *,
    descending: bool = ...,
    out: tuple[NDArray[ScalarT], NDArray[SecondT]] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> tuple[NDArray[ScalarT], NDArray[SecondT]]: ...
@overload
def sort_pairs(
    keys: HostItems,
    values: HostItems,
    *,
    descending: bool = ...,
    out: tuple[NDArray[Any], NDArray[Any]] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@explained(REMEDIES)
def sort_pairs(
    keys: Any, values: Any, *, descending: bool = False, out: Any = None, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return sorted copies of `keys` and `values`, ordered by key; stable.

    Parameters
    ----------
    keys : numpy.ndarray or Array
        Shape (n,); as for `sort`.
    values : numpy.ndarray or Array
        Shape (n,), of any datatype of 4 or 8 bytes.
    descending
        As for `sort`.
    out : tuple of numpy.ndarray or of Array, optional
        Where to put keys and values, of the results' kind, shape and dtype; in numpy C-contiguous. Numpy arrays may be
        the inputs.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    tuple of numpy.ndarray or of Array
        Keys and values, shape (n,) each.
    """
    call = "gw.sort_pairs()"
    dtype = values.dtype if isinstance(values, Items) else argument_array(call, "values", values).dtype
    value_datatype = argument_datatype(call, "values", values, dtype, VALUE_DATATYPES)
    inputs = {"keys": keys, "values": values}
    return one_shot(call, SortPairs, (value_datatype.name,), device, inputs, out, descending=descending)


@overload
def matmul(
    a: ItemsT,
    b: ItemsT | HostItems,
    *,
    m: int | None = ...,
    n: int | None = ...,
    k: int | None = ...,
    out: ItemsT | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def matmul(
    a: HostItems,
    b: ItemsT,
    *,
    m: int | None = ...,
    n: int | None = ...,
    k: int | None = ...,
    out: ItemsT | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def matmul(
    a: HostItems,
    b: HostItems,
    *,
    m: int | None = ...,
    n: int | None = ...,
    k: int | None = ...,
    out: NDArray[Any] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Any: ...  # two vectors give a number, as in numpy
@explained(REMEDIES)
def matmul(
    a: Any,
    b: Any,
    *,
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the matrix product ``a @ b``, in the datatype of the matrices.

    Parameters
    ----------
    a, b : numpy.ndarray or Array
        Of f32 or f16. Numpy: shapes (m, k) and (k, n); a vector is a row of `a`, or a column of `b`, as in
        `numpy.matmul`. An Array has shape (m, k) or (k, n), too, or one dimension, in which it holds its matrix row by
        row.
    m, n, k : int, optional
        Sizes, for Arrays of one dimension. One is enough if the lengths determine the others.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. A numpy array may be
        an input.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (m, n), without the dimensions that vectors lack; an Array if an argument is one, of shape (m·n,) unless
        both arguments have two dimensions.

    Raises
    ------
    LengthError
        If the sizes do not match.
    ArgumentError
        If the sizes are unknown, or there are more than two dimensions.
    """
    call = "gw.matmul()"
    given = {n: v if isinstance(v, Items) else argument_array(call, n, v) for n, v in {"a": a, "b": b}.items()}
    sizes = _matrix_sizes(given, {"m": m, "n": n, "k": k})
    for name, value in {"a": a, "b": b}.items():
        argument_datatype(call, name, value, given[name].dtype, MatMul.datatypes)
    items = {name: value.ravel() for name, value in given.items()}
    shape = tuple(sizes[size] for name, size in (("a", "m"), ("b", "n")) if given[name].ndim == 2)
    on_gpu = any(isinstance(value, Items) for value in given.values())
    # Arrays of one dimension are matrices row by row, and so is their product.
    flat = on_gpu and len(shape) != 2
    given_out = out.ravel() if isinstance(out, Array) and out.shape == shape else out
    (result,) = one_shot(
        call, MatMul, (), device, items, given_out, out_shape=None if flat or on_gpu else shape, **sizes
    )
    if out is not None:
        return out
    if flat or isinstance(result, ChunkedArray):
        return result
    return result.reshape(shape) if on_gpu else result.reshape(shape)[()]


_MATRICES = {"a": ("m", "k"), "b": ("k", "n")}


def _matrix_sizes(given: Mapping[str, Any], asked: Mapping[str, int | None]) -> dict[str, int]:
    """Return m, n and k, as matrices and the caller say."""
    sizes = {name: integer(f"gw.matmul(): {name}", size, 0) for name, size in asked.items() if size is not None}
    said = {name: f"{name}={size}" for name, size in sizes.items()}
    for name, matrix in given.items():
        if isinstance(matrix, Items) and matrix.ndim == 1:
            continue
        if matrix.ndim not in (1, 2):
            raise ArgumentError(
                f"matmul: {name} has shape {matrix.shape}; it takes matrices and vectors: multiply stacks one by one"
            )
        # A vector has k items.
        names = _MATRICES[name] if matrix.ndim == 2 else ("k",)
        for size, length in zip(names, matrix.shape, strict=True):
            if sizes.setdefault(size, length) != length:
                raise LengthError(
                    f"matmul: {name} has shape {matrix.shape}, so that {size} is {length}, but {said[size]}; "
                    f"a is (m, k), b is (k, n)"
                )
            said.setdefault(size, f"{name} has shape {matrix.shape}, where it is {length}")
        if matrix.ndim == 1:
            sizes.setdefault("m" if name == "a" else "n", 1)
    # What one size and an Array's length tell of the other.
    for name in ("a", "b", "a"):
        for known, wanted in (_MATRICES[name], _MATRICES[name][::-1]):
            if wanted not in sizes and sizes.get(known):
                if given[name].size % sizes[known]:
                    raise LengthError(
                        f"matmul: {name} has {given[name].size} items, which is not a multiple of "
                        f"{known}={sizes[known]}"
                    )
                sizes[wanted] = given[name].size // sizes[known]
    missing = [f"{name}=" for name in asked if name not in sizes]
    if missing:
        raise ArgumentError(
            f"matmul: an Array of one dimension holds a matrix row by row; give {', '.join(missing)} (a is m × k, b is "
            f"k × n), or reshape it"
        )
    return sizes
