"""One-shot reductions by an operator: sums, products, extremes.

A result has the type of the input: numpy array, Array or ChunkedArray.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
import wgpu
from numpy.typing import NDArray

from ..call_errors import explained
from ..errors import ArgumentError
from ..primitives import Reduce, ReduceAxis
from ..primitives.fusion import EXPRESSIONS
from ..primitives.one_shot import (
    REMEDIES,
    HostItems,
    Results,
    argument_array,
    checked,
    device_of,
    numpy_result,
    without_doubles,
)  # fmt: skip
from ..primitives.reduce_axis import axes_of, is_together
from ..runtime.array import Array, check_numpy_out
from ..runtime.chunked_array import Items
from ..types.datatype import ItemDatatypeLike
from ..types.operators import Add, BinOpLike, Max, Min, Multiply, as_binop
from .windowed import one_result

__all__ = ["AxisLike", "max", "min", "prod", "reduce", "sum"]

#: The axes that a reduction combines items along; None means all.
AxisLike: TypeAlias = int | Sequence[int] | None
OutT = TypeVar("OutT", bound=np.ndarray)
ScalarT = TypeVar("ScalarT", bound=np.number[Any])
FloatT = TypeVar("FloatT", bound=np.floating[Any])


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

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.reduce(np.array([6, 8], dtype=np.uint32), gw.Or)
    np.uint32(14)
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
    result = one_result(
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

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    ArgumentError
        If `axis` is out of bounds.
    LengthError
        If `out` has another shape.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.prod(np.array([2, 3, 4], dtype=np.int32))
    np.int64(24)
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

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    ArgumentError
        If `axis` is out of bounds.
    EmptyReductionError
        If there are no items.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.min(np.array([[3, 1], [2, 5]], dtype=np.uint32), axis=0)
    array([2, 1], dtype=uint32)
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

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    ArgumentError
        If `axis` is out of bounds.
    EmptyReductionError
        If there are no items.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.max(np.array([[3, 1], [2, 5]], dtype=np.uint32), axis=0)
    array([3, 5], dtype=uint32)
    """
    return _reduce("gw.max()", x, Max, Results(dtype), out, device, axis, keepdims)
