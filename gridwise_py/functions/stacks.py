"""One-shot functions that put arrays together: concatenate, stack, tile.

numpy puts together what lies on the host. With an Array the result is one on the GPU, and nothing is read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import ArgumentError, DatatypeError
from ..primitives.fusion import EXPRESSIONS
from ..primitives.reduce_axis import one_axis
from ..runtime.array import Array, asarray, empty
from ..types.datatype import ITEM_DATATYPES, as_datatype
from ..types.options import integer
from ..types.shapes import check_one_shape
from .arguments import Call, deliver, device_of, in_datatype
from .arrays import arange, take
from .orders import transpose
from .repeated_calls import one_shot


@one_shot()
def concatenate(
    arrays: Any, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Return the items of several arrays behind each other, along an axis.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray, Array or expression
        Of one shape, but along `axis`. They are promoted as in numpy.
    axis : int, optional
        None for all items, in C order.
    out : numpy.ndarray or Array, optional
        Where to put the result, of its shape.
    dtype, casting : optional
        That of the result, and how items may be cast to it.

    Returns
    -------
    numpy.ndarray or Array
        An Array if an argument is on the GPU. `ChunkedArray` takes Arrays as one without a copy.

    Raises
    ------
    ArgumentError
        If there are no arrays, or their shapes differ beside `axis`.
    DatatypeError
        If they have no datatype in common.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.array([[1, 2], [3, 4]]))
    >>> gw.concatenate([x, np.array([[5], [6]])], axis=1).to_numpy()
    array([[1, 2, 5],
           [3, 4, 6]])
    """
    call = "gw.concatenate()"
    items = _listed(call, arrays)
    if axis is None:
        items, axis = [each.reshape(-1) for each in items], 0
    return deliver(call, join(call, items, axis, dtype, casting), out, casting)


@one_shot()
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Return several arrays of one shape as one, along a new axis; see `concatenate`.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray, Array, expression or number
    axis : int, default 0
        Of the result.
    out, dtype, casting
        As for `concatenate`.

    Returns
    -------
    numpy.ndarray or Array
        An Array if an argument is on the GPU.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.array([1, 2, 3]))
    >>> gw.stack([x, [4, 5, 6]], axis=1).to_numpy()
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    call = "gw.stack()"
    items = _listed(call, arrays)
    check_one_shape(call, {f"arrays[{k}]": each.shape for k, each in enumerate(items)})
    along = one_axis(call, axis, items[0].ndim + 1)
    rows = [each.reshape(*each.shape[:along], 1, *each.shape[along:]) for each in items]
    return deliver(call, join(call, rows, along, dtype, casting), out, casting)


@one_shot()
def tile(x: Any, reps: int | Sequence[int]) -> Any:
    """Return an array that consists of copies of another one.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
    reps : int or sequence of int
        How many copies lie along each axis; the last ones count, and missing ones are 1.

    Returns
    -------
    numpy.ndarray or Array

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.tile(gw.asarray(np.array([1, 2])), (2, 2)).to_numpy()
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    call = "gw.tile()"
    items = _stored(call, "x", x)
    counts = [integer(f"{call}: reps", each, 0) for each in np.atleast_1d(reps).tolist()]
    if not isinstance(items, Array):
        return np.tile(items, counts)
    found = items.copy().reshape((1,) * (len(counts) - items.ndim) + items.shape)
    for axis, count in enumerate(counts, found.ndim - len(counts)):
        if count != 1:  # indices behind the last item begin again
            places = arange(count * found.shape[axis], dtype="u32", device=found.device)
            found = take(found, places, axis, mode="wrap")
    return found


def _stored(call: str, name: str, value: Any) -> Any:
    """Return an argument on the host or on the GPU, where an expression is stored."""
    return asarray(value) if isinstance(value, EXPRESSIONS) else Call(call).items(name, value)


def _listed(call: str, arrays: Any) -> list[Any]:
    """Return the arrays of an argument: of one array its rows."""
    if not isinstance(arrays, (Array, Sequence, np.ndarray)) or not len(arrays):
        raise ArgumentError(f"{call}: arrays must be one or more; give a list of them")
    return [_stored(call, f"arrays[{k}]", arrays[k]) for k in range(len(arrays))]


def join(call: str, items: list[Any], axis: int, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Return arrays behind each other: an Array if one of them is one."""
    along = one_axis(call, axis, items[0].ndim)
    wanted = None if dtype is None else as_datatype(dtype, ITEM_DATATYPES).dtype
    shapes = [tuple(n * (d != along) for d, n in enumerate(each.shape)) for each in items]
    try:  # numpy's rules, of arrays without items
        nothing = [np.empty(shape, each.dtype) for shape, each in zip(shapes, items, strict=True)]
        common = np.concatenate(nothing, along, dtype=wanted, casting=casting).dtype
    except (TypeError, ValueError) as error:
        kind, said = DatatypeError if isinstance(error, TypeError) else ArgumentError, str(error).partition(". ")[0]
        raise kind(f"{call}: {said}; convert some, x.astype(np.float64), or reshape them") from error
    if not any(isinstance(each, Array) for each in items):
        return np.concatenate(items, along, dtype=common, casting=casting)
    target, datatype = device_of(*items), as_datatype(common, ITEM_DATATYPES)
    if prod(shapes[0][:along]) > 1:  # the transposed ones lie behind each other
        order = (along, *(d for d in range(len(shapes[0])) if d != along))
        moved = [transpose(each, order) if isinstance(each, Array) else each.transpose(order) for each in items]
        return transpose(join(call, moved, 0, dtype, casting), np.argsort(order).tolist())
    length, begin = sum(each.shape[along] for each in items), 0
    result = empty((*shapes[0][:along], length, *shapes[0][along + 1 :]), datatype, target)
    for each in items:
        part = in_datatype(call, "arrays", each, datatype)
        result.reshape(-1)[begin : begin + each.size].copy_from(part.reshape(-1))
        begin += each.size
    return result
