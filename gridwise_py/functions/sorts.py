"""One-shot sorts: of keys, of pairs, and of indices.

A result has the type of the input: numpy array, Array or ChunkedArray.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

import numpy as np
import wgpu
from numpy.typing import NDArray

from ..call_errors import explained
from ..primitives import ArgSort, MergeSort, Sort, SortPairs
from ..primitives.merge_order import Less
from ..primitives.one_shot import (
    REMEDIES,
    HostItems,
    argument_array,
    argument_datatype,
    one_shot,
)  # fmt: skip
from ..runtime.chunked_array import Items, ItemsT
from ..types.datatype import VALUE_DATATYPES
from .windowed import one_result

__all__ = ["argsort", "sort", "sort_pairs"]

ScalarT = TypeVar("ScalarT", bound=np.number[Any])
SecondT = TypeVar("SecondT", bound=np.generic)


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

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    LengthError
        If `out` has another shape.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.sort(np.array([3.0, np.nan, 1.0], dtype=np.float32))
    array([ 1.,  3., nan], dtype=float32)
    >>> gw.sort(np.array([3, 1, 2]), descending=True)
    array([3, 2, 1])
    """
    if less is not None:
        options = {"descending": descending, "less": less}
        return one_shot("gw.sort()", MergeSort, (), device, {"input": x}, out, **options)[0]
    return one_result("gw.sort()", Sort, (), device, {"input": x}, out, descending=descending)


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

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    LengthError
        If `out` has another shape.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.argsort(np.array([30, 10, 20], dtype=np.uint32))
    array([1, 2, 0])
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

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    LengthError
        If keys and values have other lengths, or `out` has.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> keys, values = gw.sort_pairs(np.array([3, 1, 2], dtype=np.uint32), np.array([0.3, 0.1, 0.2], dtype=np.float32))
    >>> keys, values
    (array([1, 2, 3], dtype=uint32), array([0.1, 0.2, 0.3], dtype=float32))
    """
    call = "gw.sort_pairs()"
    dtype = values.dtype if isinstance(values, Items) else argument_array(call, "values", values).dtype
    value_datatype = argument_datatype(call, "values", values, dtype, VALUE_DATATYPES)
    inputs = {"keys": keys, "values": values}
    return one_shot(call, SortPairs, (value_datatype.name,), device, inputs, out, descending=descending)
