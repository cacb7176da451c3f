"""One-shot sorts: of keys, of pairs, and of indices.

A result has the type of the input: numpy array, Array or ChunkedArray.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import wgpu

from ..errors import ArgumentError
from ..primitives import ArgSort, MergeSort, Sort, SortPairs
from ..primitives.engines.merge_order import Less
from ..primitives.fusion import EXPRESSIONS
from ..primitives.reduce_axis import one_axis
from ..primitives.repeated_calls import one_shot
from ..runtime.array import Array, asarray
from ..runtime.chunked_array import ChunkedArray
from ..types.datatype import VALUE_DATATYPES
from ..types.options import one_of
from .arguments import REMEDIES, Call, argument_array, delivered
from .arrays import zeros
from .orders import row_places, rows_sorted, with_last, with_last_at
from .signatures import ArgSortCall, SortCall, SortKind, SortPairsCall, typed_as

_KINDS = get_args(SortKind)


@typed_as(SortCall)
@one_shot(REMEDIES)
def sort(
    x: Any,
    axis: int | None = -1,
    kind: SortKind | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
    less: Less | None = None,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return a sorted copy; stable.

    Parameters
    ----------
    x : numpy.ndarray or Array
        With `less` of one dimension, of u32, i32, f32, or structs of these.
    axis : int, default -1
        The last one is fastest.
    kind, stable : optional
        Every sort here is stable.
    order : None
        Records need `less`.
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
        Of the shape and datatype of `x`.

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    AxisError
        If `axis` is out of range.
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
    call = "gw.sort()"
    check_kind(call, kind, order, _KINDS)
    items, along = along_one(call, x, axis)
    if along is not None and less is not None:
        raise ArgumentError(
            f"{call}: x has shape {items.shape}, but with less= it works along one dimension; for all items give "
            f"axis=None, and for rows call it once for each"
        )
    if along is not None:
        return delivered(call, _sorted_along(call, items, along, device, descending=descending, indices=False), out)
    made = Call(call, device)
    primitive: MergeSort | Sort
    if less is not None:
        kind = made.take("input", items, MergeSort.datatypes, chunked=True)
        primitive = made.primitive(MergeSort, kind, descending=descending, less=less)
    else:
        kind = made.take("input", items, Sort.datatypes, chunked=True)
        primitive = made.primitive(Sort, kind, descending=descending)
    made.take_out(primitive, out)
    return made.results(primitive)["output"]


def check_kind(call: str, kind: Any, order: Any, known: Sequence[str]) -> None:
    """Check arguments of numpy that change nothing: every sort is stable, and none of records."""
    if kind is not None:
        one_of(f"{call}: kind", kind, known)
    if order is not None:
        raise ArgumentError(f"{call}: order={order!r} names fields of records, but numbers are sorted; give one field")


def along_one(call: str, x: Any, axis: Any) -> tuple[Any, int | None]:
    """Return the items of an argument, and the axis along which to work; None where they have one dimension.

    With an axis of None they are all items, in C order.
    """
    if isinstance(x, (*EXPRESSIONS, ChunkedArray)):
        if axis is not None:
            one_axis(call, axis, 1)
        return x, None
    items = x if isinstance(x, Array) else argument_array(call, "x", x)
    if axis is None:
        return (x if items.ndim == 1 else items.ravel()), None
    along = one_axis(call, axis, items.ndim)
    return (x, None) if items.ndim == 1 else (items, along)


def _sorted_along(
    call: str, items: Any, axis: int, device: wgpu.GPUDevice | None, *, descending: bool, indices: bool
) -> Any:
    """Return the items of an array of several dimensions in order along an axis, or their indices along it."""
    made = Call(call, device)
    datatype = made.take("x", items, shape="any")
    rows = asarray(with_last(items, axis), made.device)
    if not rows.size:
        found = zeros(rows.shape, "u32", rows.device) if indices else rows.copy()
    else:
        found = rows_sorted(rows, datatype, row_places(rows) if indices else None, descending=descending)
        found = found.reshape(rows.shape)
    return with_last_at(made.result(found, np.intp if indices else None), axis)


@typed_as(ArgSortCall)
@one_shot(REMEDIES)
def argsort(
    x: Any,
    axis: int | None = -1,
    kind: SortKind | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the indices that sort; stable.

    Parameters
    ----------
    x, axis, kind, order, stable, descending
        As for `sort`.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. A numpy array may be
        an input.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of the shape of `x`: intp for numpy, u32 for an Array.

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    AxisError
        If `axis` is out of range.
    LengthError
        If `out` has another shape.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.argsort(np.array([30, 10, 20], dtype=np.uint32))
    array([1, 2, 0])
    """
    call = "gw.argsort()"
    check_kind(call, kind, order, _KINDS)
    items, along = along_one(call, at_least_1d(call, x), axis)
    if along is not None:
        return delivered(call, _sorted_along(call, items, along, device, descending=descending, indices=True), out)
    made = Call(call, device)
    kind = made.take("input", items, ArgSort.datatypes, chunked=True)
    primitive = made.primitive(ArgSort, kind, descending=descending)
    made.take_out(primitive, out, dtype=np.dtype(np.intp))
    result = made.results(primitive)["output"]
    return result if made.on_gpu else result.astype(np.intp, copy=False)


def at_least_1d(call: str, x: Any) -> Any:
    """Return a single item as an array of one, as numpy takes it where it returns indices."""
    if isinstance(x, (*EXPRESSIONS, ChunkedArray)):
        return x
    items = x if isinstance(x, Array) else argument_array(call, "x", x)
    return items.reshape(1) if items.ndim == 0 else x


@typed_as(SortPairsCall)
@one_shot(REMEDIES)
def sort_pairs(
    keys: Any, values: Any, *, descending: bool = False, out: Any = None, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return sorted copies of keys and values, ordered by key; stable.

    Parameters
    ----------
    keys : numpy.ndarray or Array
    values : numpy.ndarray or Array
        Of 4 or 8 bytes.
    descending
        As for `sort`.
    out : tuple of numpy.ndarray or of Array, optional
        For keys and values; in numpy also the inputs.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    tuple of numpy.ndarray or of Array
        Keys and values.

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
    call = Call("gw.sort_pairs()", device)
    kinds = (
        call.take("keys", keys, SortPairs.datatypes, chunked=True),
        call.take("values", values, VALUE_DATATYPES, fuses=False, chunked=True),
    )
    call.check_lengths()
    primitive = call.primitive(SortPairs, *kinds, descending=descending)
    call.take_out(primitive, out)
    return tuple(call.results(primitive).values())
