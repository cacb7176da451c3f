"""One-shot functions. A result has the type of the input: numpy array, Array or ChunkedArray.

Sums, scans and additions of numpy arrays of 8 MiB and more are computed window by window: while the GPU works on one,
the next is uploaded, and the result of the one before is downloaded (`streaming.in_windows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, overload

import numpy as np
import wgpu
from numpy.typing import NDArray

from .call_errors import explained
from .errors import ArgumentError, LengthError
from .primitives import ArgSort, MatMul, Reduce, Scan, Sort, SortPairs, VectorAdd
from .primitives.base import Primitive
from .primitives.matmul import matrix_size
from .primitives.one_shot import REMEDIES, HostItems, argument_array, argument_datatype, checked, one_shot
from .primitives.scan import ScanKind
from .runtime.array import Array
from .runtime.chunked_array import ChunkedArray, Items, ItemsT
from .streaming import in_windows, takes_windows
from .types.datatype import VALUE_DATATYPES
from .types.operators import Add, BinOpLike, Max, Min, Multiply, as_binop

__all__ = ["add", "argsort", "cumsum", "matmul", "max", "min", "prod", "reduce", "scan", "sort", "sort_pairs", "sum"]

OutT = TypeVar("OutT", bound=np.ndarray)
ScalarT = TypeVar("ScalarT", bound=np.number[Any])
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
    a, b : numpy.ndarray or Array
        Shape (n,), with the same datatype: u32, i32 or f32 (numpy uint32, int32, float32). Nothing is broadcast: for a
        number c give ``np.full_like(a, c)``.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. It may be an input.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,); an Array if an argument is one.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.array([1, 2, 3], dtype=np.int32)
    >>> gw.add(x, np.full_like(x, 10))
    array([11, 12, 13], dtype=int32)
    """
    return _one_shot("gw.add()", VectorAdd, (), device, {"a": a, "b": b}, out)


def _one_shot(
    call: str,
    cls: type[Primitive],
    key: tuple[Any, ...],
    device: wgpu.GPUDevice | None,
    inputs: dict[str, Any],
    out: Any,
    **options: Any,
) -> Any:
    """Return the result of a primitive with one output: in windows of large numpy arrays, where these give the same."""
    made = checked(call, cls, key, device, inputs, out, **options)
    if not made.on_gpu:
        arrays = list(made.inputs.values())
        if takes_windows(made.primitive, arrays, out):
            return in_windows(made.primitive, arrays, out)
    return made.run()[0]


@overload
def reduce(
    x: Items,
    op: BinOpLike = ...,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: Array | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Array: ...
@overload
def reduce(
    x: NDArray[ScalarT],
    op: BinOpLike = ...,
    *,
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
    deterministic: bool = False,
    compensated: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Combine all items of `x`.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Other dtypes raise; the message names the
        conversion. See Notes.
    op : BinOp or {"add", "multiply", "min", "max"}, default Add
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; a sum whose error hardly grows with n. See `Reduce`.
    out : numpy.ndarray or Array, optional
        Where to put the result: for numpy an array of shape () and the dtype of `x`, for an Array one of 1 item.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        `out`, or a scalar of the dtype of `x` for numpy, an Array of shape () for an Array.

    Raises
    ------
    DatatypeError
        For another dtype.
    ArgumentError
        For a single number, or more than one dimension.
    EmptyReductionError
        For an empty minimum or maximum.

    Notes
    -----
    The result has the dtype of `x`: sums and products of integers wrap modulo 2**32, while numpy widens to 64 bits. If
    they may overflow, reduce ``x.astype(np.float32)`` with ``compensated=True`` (24 bits of the sum are right), or use
    numpy.

    numpy makes int64 or float64 of lists of Python numbers and of ``np.arange(10)``: convert them, for example with
    ``np.asarray(x, dtype=np.int32)``.
    """
    return _reduce("gw.reduce()", x, op, out, device, deterministic=deterministic, compensated=compensated)


def _reduce(call: str, x: Any, op: BinOpLike, out: Any, device: wgpu.GPUDevice | None, **options: bool) -> Any:
    result = _one_shot(call, Reduce, (as_binop(op),), device, {"input": x}, out, flatten=True, out_shape=(), **options)
    if isinstance(result, Items):
        return result if out is not None or isinstance(result, ChunkedArray) else result.viewed_as(())
    if out is None:
        return result if isinstance(result, np.generic) else result[0]
    out[()] = result
    return out


@overload
def sum(
    x: Items,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: Array | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Array: ...
@overload
def sum(
    x: NDArray[ScalarT],
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ScalarT: ...
@overload
def sum(
    x: HostItems,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> np.number[Any]: ...
@overload
def sum(
    x: HostItems, *, deterministic: bool = ..., compensated: bool = ..., out: OutT, device: wgpu.GPUDevice | None = ...
) -> OutT: ...
@explained(REMEDIES)
def sum(
    x: Any,
    *,
    deterministic: bool = False,
    compensated: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the sum of `x` in its own datatype (integers wrap, unlike in `numpy.sum`); 0 if `x` is empty.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first: ``x.astype(np.float32)``
        rounds float64 to about 7 digits; ``x.astype(np.int32)`` is exact for int64 within ±2**31;
        ``np.asarray(x, dtype=np.int32)`` converts a list.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; a sum whose error hardly grows with n. See `Reduce`.
    out : numpy.ndarray or Array, optional
        Where to put the result: for numpy an array of shape () and the dtype of `x`, for an Array one of 1 item.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        `out`, or a scalar of the dtype of `x` for numpy, an Array of shape () for an Array.

    Notes
    -----
    A sum of u32 or i32 wraps modulo 2**32, while `numpy.sum` widens to 64 bits: three times 2**31 give 2**31. If the
    sum may be larger, use ``gw.sum(x.astype(np.float32), compensated=True)``, or numpy.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> int(gw.sum(np.arange(10, dtype=np.uint32)))
    45
    >>> int(gw.sum(np.full(3, 2**31, dtype=np.uint32)))
    2147483648
    >>> float(gw.sum(np.full(3, 2**31, dtype=np.float32), compensated=True))
    6442450944.0
    """
    return _reduce("gw.sum()", x, Add, out, device, deterministic=deterministic, compensated=compensated)


@overload
def prod(
    x: Items, *, deterministic: bool = ..., out: Array | None = ..., device: wgpu.GPUDevice | None = ...
) -> Array: ...
@overload
def prod(
    x: NDArray[ScalarT], *, deterministic: bool = ..., out: None = ..., device: wgpu.GPUDevice | None = ...
) -> ScalarT: ...
@overload
def prod(
    x: HostItems, *, deterministic: bool = ..., out: None = ..., device: wgpu.GPUDevice | None = ...
) -> np.number[Any]: ...
@overload
def prod(x: HostItems, *, deterministic: bool = ..., out: OutT, device: wgpu.GPUDevice | None = ...) -> OutT: ...
@explained(REMEDIES)
def prod(x: Any, *, deterministic: bool = False, out: Any = None, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the product of `x` in its own datatype (integers wrap, unlike in `numpy.prod`); 1 if `x` is empty.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`. Products of
        integers wrap modulo 2**32; f32 reaches 3.4e38.
    deterministic : bool, default False
        For floats: the same bits everywhere. See `Reduce`.
    out : numpy.ndarray or Array, optional
        Where to put the result: for numpy an array of shape () and the dtype of `x`, for an Array one of 1 item.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        `out`, or a scalar of the dtype of `x` for numpy, an Array of shape () for an Array.
    """
    return _reduce("gw.prod()", x, Multiply, out, device, deterministic=deterministic)


@overload
def min(x: Items, *, out: Array | None = ..., device: wgpu.GPUDevice | None = ...) -> Array: ...
@overload
def min(x: NDArray[ScalarT], *, out: None = ..., device: wgpu.GPUDevice | None = ...) -> ScalarT: ...
@overload
def min(x: HostItems, *, out: None = ..., device: wgpu.GPUDevice | None = ...) -> np.number[Any]: ...
@overload
def min(x: HostItems, *, out: OutT, device: wgpu.GPUDevice | None = ...) -> OutT: ...
@explained(REMEDIES)
def min(x: Any, *, out: Any = None, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the smallest item of `x`, or NaN if `x` has one; raises if `x` is empty.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`. (`sort` takes
        numbers of 64 bits, too: its first item is the smallest.)
    out : numpy.ndarray or Array, optional
        Where to put the result: for numpy an array of shape () and the dtype of `x`, for an Array one of 1 item.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        `out`, or a scalar of the dtype of `x` for numpy, an Array of shape () for an Array.
    """
    return _reduce("gw.min()", x, Min, out, device)


@overload
def max(x: Items, *, out: Array | None = ..., device: wgpu.GPUDevice | None = ...) -> Array: ...
@overload
def max(x: NDArray[ScalarT], *, out: None = ..., device: wgpu.GPUDevice | None = ...) -> ScalarT: ...
@overload
def max(x: HostItems, *, out: None = ..., device: wgpu.GPUDevice | None = ...) -> np.number[Any]: ...
@overload
def max(x: HostItems, *, out: OutT, device: wgpu.GPUDevice | None = ...) -> OutT: ...
@explained(REMEDIES)
def max(x: Any, *, out: Any = None, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the largest item of `x`, or NaN if `x` has one; raises if `x` is empty.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`. (`sort` takes
        numbers of 64 bits, too: its last item is the largest.)
    out : numpy.ndarray or Array, optional
        Where to put the result: for numpy an array of shape () and the dtype of `x`, for an Array one of 1 item.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        `out`, or a scalar of the dtype of `x` for numpy, an Array of shape () for an Array.
    """
    return _reduce("gw.max()", x, Max, out, device)


@overload
def scan(
    x: ItemsT,
    op: BinOpLike = ...,
    kind: ScanKind = ...,
    *,
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
    deterministic: bool = False,
    compensated: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return all prefix sums of `x` under `op`.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`; integers
        wrap modulo 2**32.
    op : BinOp or {"add", "multiply", "min", "max"}, default Add
    kind : {"inclusive", "exclusive"}
        Whether item i of the result combines items 0 to i, or 0 to i − 1.
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
    return _scan("gw.scan()", x, op, kind, out, device, deterministic=deterministic, compensated=compensated)


def _scan(call: str, x: Any, op: BinOpLike, kind: str, out: Any, device: wgpu.GPUDevice | None, **options: bool) -> Any:
    return _one_shot(call, Scan, (as_binop(op), kind), device, {"input": x}, out, flatten=True, **options)


@overload
def cumsum(
    x: ItemsT,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: ItemsT | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def cumsum(
    x: NDArray[ScalarT],
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: NDArray[ScalarT] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[ScalarT]: ...
@overload
def cumsum(
    x: HostItems,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    out: NDArray[Any] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@explained(REMEDIES)
def cumsum(
    x: Any,
    *,
    deterministic: bool = False,
    compensated: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the inclusive prefix sums of `x` in its own datatype (integers wrap, unlike in `numpy.cumsum`).

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`. Integers wrap
        modulo 2**32, while `numpy.cumsum` widens to 64 bits.
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

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.cumsum(np.array([3, 1, 2], dtype=np.int32))
    array([3, 4, 6], dtype=int32)
    """
    return _scan("gw.cumsum()", x, Add, "inclusive", out, device, deterministic=deterministic, compensated=compensated)


@overload
def sort(
    x: ItemsT, *, descending: bool = ..., out: ItemsT | None = ..., device: wgpu.GPUDevice | None = ...
) -> ItemsT: ...
@overload
def sort(
    x: NDArray[ScalarT],
    *,
    descending: bool = ...,
    out: NDArray[ScalarT] | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[ScalarT]: ...
@overload
def sort(
    x: HostItems, *, descending: bool = ..., out: NDArray[Any] | None = ..., device: wgpu.GPUDevice | None = ...
) -> NDArray[Any]: ...
@explained(REMEDIES)
def sort(x: Any, *, descending: bool = False, out: Any = None, device: wgpu.GPUDevice | None = None) -> Any:
    """Return a sorted copy of `x`, like numpy's stable sort.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32, f32, u64, i64, f64 or f16.
    descending : bool, default False
        Largest first. Equal items keep their order, and NaN comes last in both directions.
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
    sizes = {name: matrix_size(name, size) for name, size in asked.items() if size is not None}
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
