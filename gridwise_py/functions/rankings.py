"""One-shot functions that rank: the k best items, and partitions at the k-th."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, LengthError
from ..primitives.fusion import EXPRESSIONS, flat_of
from ..primitives.one_shot import (
    HostItems,
    argument_array,
    argument_datatype,
    check_one_dimension,
    device_of,
    kept_primitive,
    stored_leaves,
)
from ..primitives.top_k import TopK, TopKMode
from ..runtime.array import Array, asarray
from ..runtime.chunked_array import ChunkedArray
from ..types.expression import Expression
from ..types.options import integer
from .sorts import argsort, sort

__all__ = ["TopItems", "argpartition", "partition", "top_k"]

#: What the functions take: an array of numpy or what numpy makes one of, an Array, or an expression of Arrays.
Rankable: TypeAlias = HostItems | Array | Expression


class TopItems(NamedTuple):
    """What `top_k` returns."""

    values: Any
    indices: Any


@explained({"largest": "give mode='largest' or mode='smallest'"})
def top_k(
    x: Rankable,
    k: int,
    *,
    axis: int = -1,
    mode: TopKMode = "largest",
    sorted: bool = True,
    device: wgpu.GPUDevice | None = None,
) -> TopItems:
    """Return the k largest or smallest items of `x`, or of each of its rows, and their indices.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
        Shape (…, n), of any datatype: bool, integers and floats of 8 to 64 bits. An expression of Arrays, such as
        ``x * y``, has one dimension, and is not stored.
    k : int
        From 0 to n.
    axis : int, default -1
        Must be the last one.
    mode : {"largest", "smallest"}, default "largest"
    sorted : bool, default True
        Whether the best item comes first. Otherwise they are in the order of their indices.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    TopItems
        ``values`` and ``indices``, shape (…, k), along the last axis; indices of intp for numpy, of u32 for Arrays.

    Raises
    ------
    ArgumentError
        If `axis` is another one, or `mode` is unknown.
    LengthError
        If k is larger than n.

    Notes
    -----
    Of equal items the first ones are chosen, and come first. A NaN is chosen after every number, in both modes. See
    `TopK` for the algorithm, and for ``n=`` on the GPU.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.top_k(np.array([3, 9, 2, 9, 5], dtype=np.uint32), 3)
    TopItems(values=array([9, 9, 5], dtype=uint32), indices=array([1, 3, 4]))
    """
    call = "gw.top_k()"
    k = integer("k", k, 0)
    options: dict[str, Any] = {"mode": mode, "sorted": bool(sorted)}
    if isinstance(x, EXPRESSIONS):
        _check_axis(call, axis, 1)
        flat = flat_of(x)
        arrays = stored_leaves(call, flat)
        check_one_dimension(call, flat, arrays)
        primitive = kept_primitive(
            TopK, device_of(*arrays.values(), device=device), flat.without_arrays(), k, **options
        )
        return TopItems(**primitive.bind(**arrays).execute().outputs)
    if isinstance(x, ChunkedArray):
        raise ArgumentError(f"{call}: x is {x!r}, but must be one Array; find the best of each chunk, then of these")
    items = x if isinstance(x, Array) else argument_array(call, "x", x)
    if items.ndim == 0:
        raise ArgumentError(f"{call}: x is a single item; give an array of one dimension or more")
    _check_axis(call, axis, items.ndim)
    length = items.shape[-1]
    if k > length:
        raise LengthError(
            f"{call}: k={k}, but x has {length} items{' a row' if items.ndim > 1 else ''}; give a smaller k"
        )
    dtype = argument_datatype(call, "x", x, items.dtype, TopK.datatypes)
    if items.ndim > 1 and length:
        options["row_length"] = length
    primitive = kept_primitive(TopK, device_of(x, device=device), dtype, k, **options)
    given = asarray(items if items.ndim == 1 else items.reshape(-1), primitive.device)
    outputs = primitive.bind(input=given).execute().outputs
    shape = (*items.shape[:-1], k)
    if isinstance(x, Array):
        return TopItems(*(each if each.shape == shape else each.reshape(shape) for each in outputs.values()))
    values, indices = (each.to_numpy().reshape(shape) for each in outputs.values())
    return TopItems(values, indices.astype(np.intp))


def _check_axis(call: str, axis: int, ndim: int) -> None:
    if axis not in (-1, ndim - 1):
        raise ArgumentError(
            f"{call}: axis={axis!r}, but it works along the last of {ndim} dimensions; transpose x first"
        )


@explained({"kind": "there is one kind; leave it out", "order": "it takes numbers; give a field of the records"})
def partition(
    x: HostItems | Array, kth: int | Sequence[int], *, device: wgpu.GPUDevice | None = None
) -> np.ndarray | Array:
    """Return the items of `x` so that the k-th is where a sort puts it, smaller ones before it; numpy's partition.

    All items are sorted, since a sorted array is a partition at every k. For the k smallest alone, `top_k` is faster.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of any datatype that `sort` takes.
    kth : int or sequence of int
        From −n to n − 1.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,). NaN comes last.

    Raises
    ------
    ArgumentError
        If `kth` is out of range.
    """
    _check_kth("gw.partition()", x, kth)
    return sort(x, device=device)


@explained({"kind": "there is one kind; leave it out", "order": "it takes numbers; give a field of the records"})
def argpartition(
    x: HostItems | Array, kth: int | Sequence[int], *, device: wgpu.GPUDevice | None = None
) -> np.ndarray | Array:
    """Return indices that partition `x` at the k-th item, like numpy's argpartition; see `partition`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,): intp for numpy, u32 for an Array.
    """
    _check_kth("gw.argpartition()", x, kth)
    return argsort(x, device=device)


def _check_kth(call: str, x: Any, kth: Any) -> None:
    items = x if isinstance(x, (Array, ChunkedArray)) else argument_array(call, "x", x)
    if items.ndim > 1:
        raise ArgumentError(
            f"{call}: x has shape {items.shape}, but {call} works along one dimension; for all items give x.ravel()"
        )
    size = items.size
    for each in np.atleast_1d(np.asarray(kth)).tolist():
        if not isinstance(each, int) or isinstance(each, bool) or not -size <= each < size:
            raise ArgumentError(f"{call}: kth={kth!r} must be ints from -n to n - 1, of x with n = {size} items")
