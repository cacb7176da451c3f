"""One-shot functions that put arrays together: concatenate, stack, tile.

numpy puts together what lies on the host. With an Array the result is one on the GPU, and nothing is read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from operator import mul
from typing import Any

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError, LengthError
from ..primitives.fusion import EXPRESSIONS
from ..primitives.reduce_axis import one_axis
from ..runtime.array import OPERATIONS, Array, asarray, empty
from ..types.datatype import ITEM_DATATYPES, as_datatype
from ..types.options import integer, one_of
from ..types.shapes import Part, merged
from .arguments import Call, check_not_counted, deliver
from .arrays import arange, full
from .orders import copy_ranges
from .repeated_calls import one_shot


@one_shot()
def concatenate(
    arrays: Any,
    axis: int | None = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
    device: wgpu.GPUDevice | None = None,
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
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments.

    Returns
    -------
    numpy.ndarray or Array
        An Array if an argument is on the GPU. `ChunkedArray` takes Arrays as one without a copy.

    Raises
    ------
    ArgumentError
        If there are no arrays, or one is a single item.
    LengthError
        If shapes differ beside `axis`.
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
    call = Call("gw.concatenate()", device)
    items = _listed(call, arrays)
    if axis is None:
        items, axis = [each.reshape(-1) for each in items], 0
    return deliver(call.name, _join(call, items, axis, dtype, casting), out, casting)


@one_shot()
def stack(
    arrays: Any,
    axis: int = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return several arrays of one shape as one, along a new axis; see `concatenate`.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray, Array, expression or number
    axis : int, default 0
        Of the result.
    out, dtype, casting, device
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
    call = Call("gw.stack()", device)
    items = _listed(call, arrays)
    shape = items[0].shape
    along = one_axis(call.name, axis, len(shape) + 1)
    for k, each in enumerate(items):
        if each.shape != shape:
            raise LengthError(f"{call}: arrays[{k}] has shape {each.shape}, but arrays[0] {shape}; slice them to one")
    found = _join(call, [each.reshape(-1) for each in items], 0, dtype, casting)
    count, outer, inner = len(items), prod(shape[:along]), prod(shape[along:])
    if not isinstance(found, Array):
        found = found.reshape(count, outer, inner).transpose(1, 0, 2)
    elif outer > 1 and found.size:
        found = OPERATIONS["strided"](found, Part(0, (outer, count, inner), (inner, outer * inner, 1)))
    return deliver(call.name, found.reshape(*shape[:along], count, *shape[along:]), out, casting)


@one_shot()
def tile(x: Any, reps: int | Sequence[int], *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return an array that consists of copies of another one.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
    reps : int or sequence of int
        How many copies lie along each axis; the last ones count, and missing ones are 1.
    device : wgpu.GPUDevice, optional
        By default that of `x`.

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
    call = Call("gw.tile()", device)
    given = list(reps) if isinstance(reps, (Sequence, np.ndarray)) else [reps]
    counts = [integer(f"{call}: reps", each, 0) for each in given]
    items = _stored(call, "x", x)
    if not isinstance(items, Array):
        return np.tile(items, counts)
    rank = max(len(counts), items.ndim)
    counts, lengths = ([1] * (rank - len(each)) + list(each) for each in (counts, items.shape))
    shape = tuple(map(mul, counts, lengths))
    wide, narrow = (tuple(chain(*zip(each, lengths, strict=True))) for each in (counts, [1] * rank))
    if prod(counts) == 1 or not prod(shape):
        return items.copy().reshape(shape) if prod(shape) else empty(shape, items.datatype, items.device)
    parts = merged(wide, narrow)
    part = Part(0, tuple(length for length, _ in parts), tuple(strides[0] for _, strides in parts))
    return OPERATIONS["strided"](items.ravel(), part).reshape(shape)


def _stored(call: Call, name: str, value: Any) -> Any:
    """Return an argument on the host or on the GPU, where an expression is stored."""
    items = asarray(value) if isinstance(value, EXPRESSIONS) else call.items(name, value)
    if isinstance(items, Array):
        check_not_counted(call.name, items)
    return items


def _listed(call: Call, arrays: Any) -> list[Any]:
    """Return the arrays of an argument: of one array its rows."""
    if isinstance(arrays, Array):
        arrays = [arrays[k] for k in range(len(arrays))]
    if not np.iterable(arrays):
        raise ArgumentError(f"{call}: arrays must be several; give a list of them")
    items = [_stored(call, f"arrays[{k}]", each) for k, each in enumerate(arrays)]
    if not items:
        raise ArgumentError(f"{call}: arrays has none, so that nothing says of which dtype the result is; give one")
    return items


def _join(call: Call, items: list[Any], axis: int, dtype: Any, casting: Any) -> Any:
    """Return arrays behind each other: an Array if one of them is one."""
    shape = list(items[0].shape)
    if not all(each.ndim for each in items):
        raise ArgumentError(
            f"{call}: arrays has single items, which have no axis; give gw.stack(arrays) of these alone"
        )
    along = one_axis(call.name, axis, len(shape))
    for k, each in enumerate(items):
        if each.ndim != len(shape) or any(n != shape[d] for d, n in enumerate(each.shape) if d != along):
            raise LengthError(
                f"{call}: arrays[{k}] has shape {each.shape}, but arrays[0] {items[0].shape}; beside axis {along} they "
                f"must be equal: slice them"
            )
    one_of(f"{call}: casting", casting, ("no", "equiv", "safe", "same_kind", "unsafe"))
    wanted, dtypes = None if dtype is None else as_datatype(dtype, ITEM_DATATYPES), [each.dtype for each in items]
    try:
        common = np.result_type(*dtypes) if wanted is None else wanted.dtype
    except TypeError as error:
        shown = ", ".join(map(str, dict.fromkeys(dtypes)))
        raise DatatypeError(
            f"{call}: arrays of {shown} have no dtype in common; convert some, x.astype(np.float64)"
        ) from error
    refused = next((each for each in dtypes if not np.can_cast(each, common, casting)), None)
    if refused is not None:
        raise DatatypeError(
            f"{call}: arrays are of {refused}, the result of {common}, casting={casting!r}; give casting='unsafe'"
        )
    if not any(isinstance(each, Array) for each in items):
        return np.concatenate(items, along, dtype=common, casting=casting)
    named = {f"arrays[{k}]": each for k, each in enumerate(items)}
    datatype = call.promote(named, ITEM_DATATYPES, computes=False)
    datatype = datatype if wanted is None else wanted
    shape[along] = sum(each.shape[along] for each in items)
    result = empty(tuple(shape), datatype, call.device)
    outer, inner, begin = prod(shape[:along]), prod(shape[along + 1 :]), 0
    for name, each in named.items():
        length, part = each.shape[along] * inner, call.convert(name, datatype)
        if outer == 1 or not part.size:
            result.reshape(-1)[begin : begin + length].copy_from(part.reshape(-1))
        else:
            places, begins = (
                arange(first, first + outer * step, step, "u32", call.device)
                for first, step in ((0, length), (begin, shape[along] * inner))
            )
            copy_ranges(part, result, places, begins, full(outer, length, "u32", call.device))
        begin += length
    return result
