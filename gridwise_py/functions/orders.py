"""One-shot functions that put items into another order: transpose, flip, roll, put, lexsort.

With numpy arrays the results are numpy arrays; with an Array they are Arrays on the GPU, and nothing is read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import wgpu

from ..errors import ArgumentError, AxisError, BoundsError, DatatypeError, LengthError, OverlapError
from ..primitives import ArgSort, CopyRanges, Scatter, SegmentedSort, SortPairs, Transpose
from ..primitives.fusion import EXPRESSIONS
from ..primitives.reduce_axis import one_axis
from ..primitives.reorder import Reorder
from ..runtime.array import Array, asarray, is_python
from ..runtime.chunked_array import ChunkedArray, Items
from ..types import expression_functions
from ..types.datatype import ITEM_DATATYPES, STORAGE_DATATYPES, Datatype, as_datatype
from ..types.expression import LEAF_DATATYPES, index
from ..types.options import MOST_U32, integer, one_of
from .arguments import (
    Call,
    HostItems,
    argument_array,
    argument_datatype,
    device_of,
    index_array,
    index_words,
    keep_primitive,
    numpy_result,
    weak_items,
)
from .array_methods import take_items
from .arrays import arange, check_indices, full, zeros
from .repeated_calls import one_shot

_INTEGERS = {name: each for name, each in STORAGE_DATATYPES.items() if each.dtype.kind in "iu"}
PutMode: TypeAlias = Literal["raise", "wrap", "clip", "drop"]


def _moved_as(call: str, x: Array) -> Datatype:
    """Return the datatype as which a kernel moves items, bit by bit."""
    if not x.datatype.is_several:
        return x.datatype
    if x.datatype.itemsize_bytes in (4, 8):
        return STORAGE_DATATYPES["u32" if x.datatype.itemsize_bytes == 4 else "u64"]
    raise DatatypeError(
        f"{call}: items of {x.datatype} have {x.datatype.itemsize_bytes} bytes, but items of 1, 2, 4 and 8 are moved; "
        f"give its fields as arrays"
    )


def _viewed(x: Array, datatype: Datatype, shape: tuple[int, ...]) -> Array:
    """Return a view of the bytes of items of the same size as another datatype, and with another shape."""
    offset = x.offset_bytes // datatype.itemsize_bytes
    return Array.on(x.lease, datatype, x.size, x.device, offset).viewed_as(shape)


# ---- transpose


@one_shot()
def transpose(x: Any, axes: Sequence[int] | None = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return a copy of an array with its dimensions in another order.

    Parameters
    ----------
    x : numpy.ndarray or Array
        With items of 1, 2, 4 or 8 bytes.
    axes : sequence of int, optional
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        In C order, never a view. A matrix, or a stack of them, takes one dispatch, other orders of d dimensions up to d
        − 1.

    Raises
    ------
    AxisError
        If an axis does not exist.
    ArgumentError
        If `axes` does not have each dimension once.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.transpose(np.array([[1, 2, 3], [4, 5, 6]]))
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    made = Call("gw.transpose()", device)
    call, array = made.name, made.upload("x", x)
    order = tuple(reversed(range(array.ndim))) if axes is None else _axes(call, axes, array.ndim)
    if sorted(order) != list(range(array.ndim)):
        raise ArgumentError(f"{call}: axes={axes} must have each of the {array.ndim} dimensions of x once")
    datatype = _moved_as(call, array)
    lengths = [array.shape[axis] for axis in order]
    result = _viewed(array, datatype, (array.size,))
    copied = False
    # Dimensions of length 1 may lie anywhere. Each step exchanges two groups of neighbouring dimensions.
    left = [axis for axis in range(array.ndim) if array.shape[axis] != 1]
    outer = 1
    for axis in (axis for axis in order if array.shape[axis] != 1):
        at = left.index(axis)
        if at and array.size:
            rows, columns = (prod(array.shape[a] for a in part) for part in (left[:at], left[at:]))
            primitive = keep_primitive(
                Transpose, array.device, datatype.name, rows=rows, columns=columns, batch=outer
            )  # fmt: skip
            result = primitive.run_once(input=result)["output"]
            copied = True
        left = left[at:] + left[:at]
        left.pop(0)
        outer *= array.shape[axis]
    if not copied:
        result = result.copy()
    found = made.result(_viewed(result, array.datatype, tuple(lengths)))
    return found[()] if isinstance(x, np.generic) else found


def _is_several(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str)


def _axes(call: str, axes: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return axes counted from the first, in the order in which they are given."""
    given = tuple(cast(Any, axes)) if _is_several(axes) else (axes,)
    return tuple(one_axis(call, axis, ndim) for axis in given)


def with_last(items: Any, axis: int) -> Any:
    """Return an array of several dimensions with an axis as the last one."""
    if axis == items.ndim - 1:
        return items
    order = [*(each for each in range(items.ndim) if each != axis), axis]
    return transpose(items, order) if isinstance(items, Array) else items.transpose(order)


def with_last_at(items: Any, axis: int) -> Any:
    """Return an array of several dimensions with the last one as an axis, in C order."""
    last = items.ndim - 1
    if axis == last:
        return items
    order = [*range(axis), last, *range(axis, last)]
    return transpose(items, order) if isinstance(items, Array) else np.ascontiguousarray(items.transpose(order))


def make_row_places(rows: Array) -> Array:
    """Return the index of each item along the last axis, in one dimension."""
    return asarray(index % rows.shape[-1], rows.device, size=rows.size)


def sort_rows(rows: Array, datatype: Datatype, values: Array | None, *, descending: bool = False) -> Array:
    """Return the items of rows in order, or values that move with them, in one dimension."""
    options: dict[str, Any] = {"length": rows.shape[-1], "descending": bool(descending)}
    moved = {} if values is None else {"values": values}
    primitive = keep_primitive(SegmentedSort, rows.device, datatype, "u32" if moved else None, **options)
    outputs = primitive.run_once(keys=rows.ravel(), **moved)
    return outputs["output_values" if moved else "output_keys"]


# ---- flip and roll


def _reorder(call: str, array: Array, axis: int | None, shift: int | None) -> Array:
    """Return an array with its items along one axis, or all, flipped or rolled."""
    length = array.size if axis is None else array.shape[axis]
    if not array.size or (shift is not None and shift % length == 0):
        return array.copy()
    datatype = _moved_as(call, array)
    before, after = ((), ()) if axis is None else (array.shape[:axis], array.shape[axis + 1 :])
    primitive = keep_primitive(
        Reorder, array.device, datatype.name, outer=prod(before), length=length, inner=prod(after),
        shift=None if shift is None else shift % length,
    )  # fmt: skip
    result = primitive.run_once(input=_viewed(array, datatype, (array.size,)))["output"]
    return _viewed(result, array.datatype, array.shape)


@one_shot()
def flip(x: Any, axis: int | Sequence[int] | None = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items in reverse order.

    Parameters
    ----------
    x : Expression, Array or numpy.ndarray
        Expressions, and Arrays of one dimension and items of up to 4 bytes without `axis`, give an expression.
    axis : int or sequence of int, optional
        By default all.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    Expression, Array or numpy.ndarray

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.flip(np.array([[1, 2], [3, 4]]), axis=1)
    array([[2, 1],
           [4, 3]])
    """
    made = Call("gw.flip()", device)
    call = made.name
    is_readable = isinstance(x, Array) and x.ndim == 1 and x.datatype.name in LEAF_DATATYPES
    if axis is None and (isinstance(x, EXPRESSIONS) or is_readable):
        return expression_functions.flip(x)
    array = made.upload("x", x)
    axes = (None,) if axis is None else _axes(call, axis, array.ndim)
    if len(set(axes)) < len(axes):
        raise AxisError(f"{call}: axis={axis!r} names an axis twice; name each once")
    if axis is not None and len(axes) == array.ndim:
        axes = (None,)  # all items, in one pass
    result = array.copy() if not axes else array
    for each in axes:
        result = _reorder(call, result, each, None)
    return result if made.on_gpu else numpy_result(result.to_numpy())  # without dimensions a scalar, unlike roll's


@one_shot()
def roll(
    x: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None, *, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return the items shifted in a circle: what leaves at the end comes in at the beginning.

    Parameters
    ----------
    x : numpy.ndarray or Array
        With items of 1, 2, 4 or 8 bytes.
    shift : int or sequence of int
    axis : int or sequence of int, optional
        By default all items, in C order.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of the shape and datatype of `x`.

    Raises
    ------
    AxisError
        If an axis does not exist.
    ArgumentError
        If there is another number of shifts.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.roll(np.arange(5), 2)
    array([3, 4, 0, 1, 2])
    """
    made = Call("gw.roll()", device)
    call, array = made.name, made.upload("x", x)
    given: Any = shift if _is_several(shift) else [shift]
    if getattr(given, "ndim", 1) > 1:
        raise ArgumentError(f"{call}: shift must be a number, or one for each axis, not {shift!r:.60}")
    shifts = tuple(
        int(each) if isinstance(each, (bool, np.bool_)) else integer(f"{call}: shift", each) for each in given
    )
    axes = (None,) if axis is None else _axes(call, axis, array.ndim)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(axes) != len(shifts):
        raise ArgumentError(f"{call}: there are {len(shifts)} shifts for {len(axes)} axes; give one for each")
    # Shifts along one axis add up, and so take one pass.
    totals: dict[int | None, int] = {}
    for each, places in zip(axes, shifts, strict=True):
        totals[each] = totals.get(each, 0) + int(places)
    result = array.copy() if not totals else array
    for each, places in totals.items():
        result = _reorder(call, result, each, places)
    return made.result(result)


# ---- put


@one_shot()
def put(
    x: Any, indices: Any, values: Any, mode: PutMode | None = None, *, device: wgpu.GPUDevice | None = None
) -> None:
    """Write items of `x` at indices, in place: ``x.ravel()[indices] = values``.

    Parameters
    ----------
    x : Array or numpy.ndarray
        Of any shape, with items of 1, 2, 4 or 8 bytes.
    indices : numpy.ndarray or Array
        Also uint64; bools are 0 and 1.
    values : number, numpy.ndarray or Array
    mode : {"raise", "wrap", "clip", "drop"}, optional
        By default indices out of range raise on the host, and are dropped on the GPU. ``"raise"`` for Arrays waits for
        the GPU.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Raises
    ------
    BoundsError
        If an index is out of range, where that raises; nothing was written.
    DatatypeError
        If the indices are no integers, or a Python integer does not fit into the datatype of `x`.

    Notes
    -----
    If an index occurs several times, one of its values stays, no matter which; see `Scatter`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.zeros(5, "u32")
    >>> gw.put(x, [3, 0], [7, 8])
    >>> x.to_numpy()
    array([8, 0, 0, 7, 0], dtype=uint32)
    """
    call = "gw.put()"
    if mode is not None:
        one_of(f"{call}: mode", mode, get_args(PutMode))
    if not isinstance(x, (Array, np.ndarray)):
        raise DatatypeError(f"{call}: x is {type(x).__name__}, but is written in place; give an Array, or one of numpy")
    if isinstance(x, np.ndarray) and not x.flags.writeable:
        raise ArgumentError(f"{call}: x is written in place, but is read-only; give a copy")
    device = device_of(x, indices, values, device=device)
    array = Call(call, device).upload("x", x)
    datatype = _moved_as(call, array)
    places = _places(call, indices, array.size, mode, device)
    items = _values(call, values, array, places.size)
    if places.size and items.size and array.size:
        output = _viewed(array, datatype, (array.size,))
        primitive = keep_primitive(Scatter, device, datatype.name, places.datatype.name)
        primitive.run_once(items=_viewed(items, datatype, (items.size,)), indices=places.ravel(), output=output)
    if isinstance(x, np.ndarray):
        np.copyto(x, array.to_numpy())


@one_shot()
def copy_ranges(
    source: Any,
    destination: Any,
    source_offsets: HostItems | Array,
    destination_offsets: HostItems | Array,
    lengths: HostItems | Array,
    *,
    device: wgpu.GPUDevice | None = None,
) -> None:
    """Copy many ranges of one array into another one, in place, of any lengths.

    Range k is ``destination[to:to + length] = source[begin:begin + length]`` of all items in C order, with ``begin``,
    ``to`` and ``length`` at k of `source_offsets`, `destination_offsets` and `lengths`.

    Parameters
    ----------
    source : numpy.ndarray, Array or ChunkedArray
        Chunks act as one array.
    destination : numpy.ndarray, Array or ChunkedArray
        Of the datatype of `source`.
    source_offsets, destination_offsets, lengths : numpy.ndarray or Array
        Integers of at least 0; Arrays are read as u32.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Raises
    ------
    BoundsError
        If a range on the host does not lie within both arrays.
    OverlapError
        If ranges of the destination overlap, as far as the host knows them, or the destination shares items with the
        source.
    ArgumentError
        If the lengths on the host make 2³² items or more.

    Notes
    -----
    Of offsets and lengths on the GPU nobody knows: items out of range are left out, and of ranges of the destination
    that overlap any one's item stays; see `CopyRanges`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x, y = gw.asarray(np.arange(10, 20, dtype=np.uint32)), gw.zeros(6, "u32")
    >>> gw.copy_ranges(x, y, [7, 0], [0, 4], [3, 1])
    >>> y.to_numpy()
    array([17, 18, 19,  0, 10,  0], dtype=uint32)
    """
    call = Call("gw.copy_ranges()", device, {"output": "destination"})
    if not isinstance(destination, (Items, np.ndarray)):
        raise DatatypeError(
            f"{call}: destination is {type(destination).__name__}, but is written in place; give an Array, or one of "
            f"numpy"
        )
    if isinstance(destination, np.ndarray) and not cast(Any, destination).flags.writeable:
        raise ArgumentError(f"{call}: destination is written in place, but is read-only; give a copy")
    for name, array in (("source", source), ("output", destination)):
        call.take(name, array, ITEM_DATATYPES, shape="flat", fuses=False, chunked=True)
    call.check_one_datatype("source", "output")
    host = cast(Any, destination) if isinstance(destination, np.ndarray) else None
    if isinstance(source, np.ndarray) and host is not None and np.may_share_memory(cast(Any, source), host):
        raise OverlapError(f"{call}: source and destination share memory; give a copy of one of them")
    ranges = {"source_offsets": source_offsets, "destination_offsets": destination_offsets, "lengths": lengths}
    ranges = {name: index_words(call.name, name, each) for name, each in ranges.items()}
    on_host = {name: each for name, each in ranges.items() if isinstance(each, np.ndarray)}
    for name, each in ranges.items():
        call.take(name, each, _INTEGERS, fuses=False)
    call.check_lengths(*ranges, of="ranges")
    _check_ranges(call, on_host)
    datatype = call.datatypes["source"]
    words = 1 if not datatype.is_several else datatype.itemsize_bytes // 4
    arrays: dict[str, Any] = {}
    for name, array in call.arrays.items():
        if name in on_host:
            array = asarray((array.astype(np.int64) * words).astype(np.uint32), call.device)
        elif isinstance(array, np.ndarray):
            array = asarray(array, call.device)
        elif name in ranges:
            array = asarray(array * words) if words > 1 else array
        if words > 1 and name not in ranges:
            if isinstance(array, ChunkedArray):
                raise DatatypeError(f"{call}: chunks are of {datatype}; give the fields as arrays")
            array = array.view("u32").ravel()
        arrays[name] = array
    call.primitive(CopyRanges, "u32" if words > 1 else datatype.name).run_once(**arrays)
    if host is not None:
        found = arrays["output"] if words == 1 else arrays["output"].view(datatype)
        np.copyto(host, found.to_numpy().reshape(host.shape))


def _check_ranges(call: Call, on_host: Mapping[str, np.ndarray]) -> None:
    """Raise where ranges that the host knows do not lie within the arrays, or overlap in the destination."""
    for name, each in on_host.items():
        if each.size and each.min() < 0:
            raise BoundsError(f"{call}: {name} has {each.min()}, but offsets and lengths are at least 0")
    lengths = on_host.get("lengths")
    if lengths is None:
        return
    lengths = lengths.astype(object) if lengths.dtype == np.uint64 else lengths.astype(np.int64)
    if lengths.size and int(lengths.sum()) > MOST_U32:
        raise ArgumentError(f"{call}: lengths make {int(lengths.sum())} items, but fewer than 2^32 are copied at once")
    for name, of in (("source_offsets", "source"), ("destination_offsets", "output")):
        if name not in on_host:
            continue
        begins = on_host[name].astype(lengths.dtype)
        outside = np.flatnonzero((begins + lengths > call.sizes[of]) & (lengths > 0))
        if outside.size:
            k = int(outside[0])
            raise BoundsError(
                f"{call}: range {k} is items {begins[k]} to {begins[k] + lengths[k] - 1} of {call.shown(of)}, which "
                f"has {call.sizes[of]} items"
            )
        if of == "output":
            order = np.argsort(begins, kind="stable")
            order = order[lengths[order] > 0]
            meets = np.flatnonzero((begins + lengths)[order[:-1]] > begins[order[1:]])
            if meets.size:
                j, k = (int(order[meets[0] + offset]) for offset in (0, 1))
                raise OverlapError(
                    f"{call}: ranges {j} and {k} overlap in destination, so that it is not said whose items stay; copy "
                    f"one of them in a second call"
                )


def _places(call: str, indices: Any, length: int, mode: str | None, device: wgpu.GPUDevice) -> Array:
    """Return indices on the GPU; those that must be in range are checked."""
    if isinstance(indices, (ChunkedArray, *EXPRESSIONS)):
        raise ArgumentError(f"{call}: indices must be one array; store them first, with gw.asarray()")
    places: Any = index_array(call, "indices", indices)
    drops = mode == "drop" or (mode is None and isinstance(places, Array))
    if places.size and not length and not drops:
        raise BoundsError(f"{call}: x has no items, so that no index is in range; give mode='drop'")
    if isinstance(places, Array):
        if drops or not places.size:
            return places
        if mode != "raise":  # as items are take_items
            return take_items(call, arange(length, dtype="u32", device=device), places.ravel(), None, mode)
    elif mode in ("wrap", "clip") and places.dtype.itemsize < 8:  # of uint8, say, a length may be no number
        places = places.astype(np.int64)
    if mode == "wrap":
        places = places % max(length, 1)
    elif mode == "clip":
        places = cast(Any, np.clip(places, 0, length - 1))
    elif not drops:
        check_indices(call, places, length, "; give mode='drop' where that is meant")
    return asarray(places, device)


def _values(call: str, values: Any, array: Array, count: int) -> Array:
    """Return the values on the GPU, one for each index; none where there are none."""
    if isinstance(values, (ChunkedArray, *EXPRESSIONS)):
        raise ArgumentError(f"{call}: values must be one array; store them first, with gw.asarray()")
    if isinstance(values, Array):
        items = values.ravel() if values.datatype == array.datatype else values.ravel().astype(array.datatype)
        if not items.size or items.size >= count:
            return items[:count]
        return take_items(call, items, arange(count, dtype="u32", device=array.device), None, "wrap")
    given = argument_array(call, "values", values)
    argument_datatype(call, "values", values, given.dtype, ITEM_DATATYPES)
    if given.dtype.kind == "c" and array.dtype.kind != "c":
        raise DatatypeError(f"{call}: values are complex, but x is of {array.datatype}; give values.real")
    if array.dtype.kind not in "fc" and is_python(values) and given.ndim == 0 and not np.isfinite(given):
        raise ArgumentError(f"{call}: values is {values}, but x is of {array.datatype}, which has no such number")
    if is_python(values):  # Python's numbers take the datatype of x
        given = weak_items(call, "values", values, array.datatype)
    if given.ndim == 0:
        return full(count, cast(Any, given.astype(array.dtype)[()]), array.datatype, array.device)
    with np.errstate(all="ignore"):
        given = given.ravel().astype(array.dtype)
    return asarray(np.resize(given, count) if given.size else given, array.device)


# ---- lexsort


@one_shot()
def lexsort(keys: Any, axis: int = -1, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the indices that sort by several keys, of which the last counts most; stable.

    Parameters
    ----------
    keys : sequence of numpy.ndarray or Array, or an array
    axis : int, default -1
        By default the last one.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the keys, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array

    Raises
    ------
    DatatypeError
        If there is no key.
    LengthError
        If keys have different shapes.
    AxisError
        If `axis` is out of range.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.lexsort(([9, 4, 0, 4], [1, 5, 1, 4]))  # by the second, then by the first
    array([2, 0, 3, 1])
    """
    call = "gw.lexsort()"
    if isinstance(keys, EXPRESSIONS):
        raise ArgumentError(f"{call}: keys is an expression; store it with gw.asarray(keys), or give a list of keys")
    if isinstance(keys, Array):
        keys = [keys[row].reshape(keys.shape[1:]) for row in range(keys.shape[0] if keys.ndim else 0)]
    given: list[Any] = list(keys) if np.iterable(keys) else []
    if not given:
        raise DatatypeError(f"{call} needs at least one key")
    made = Call(call, device_of(*given, device=device))
    arrays: list[Array] = []
    for number, key in enumerate(given):
        array = made.upload(f"key {number}", key)
        if arrays and array.shape != arrays[0].shape:
            raise LengthError(f"{call}: key {number} has shape {array.shape}, but key 0 has {arrays[0].shape}")
        as_datatype(array.dtype, STORAGE_DATATYPES)
        arrays.append(array)
    ndim = arrays[0].ndim
    along = one_axis(call, axis, max(ndim, 1))
    if ndim > 1:
        arrays = [with_last(array, along) for array in arrays]
    first, *others = arrays
    # Stable sorts, the key that counts most last.
    if ndim == 0 or not first.size:
        order = zeros(first.shape, "u32", made.device)
    elif ndim == 1:
        order = made.primitive(ArgSort, first.datatype.name).run_once(input=first)["output"]
        for key in others:
            sort = made.primitive(SortPairs, key.datatype.name, "u32")
            chosen = take_items(call, key, order, None, "clip")
            order = sort.run_once(keys=chosen, values=order)["output_values"]
    else:
        length = first.shape[-1]
        order = sort_rows(first, first.datatype, make_row_places(first))
        for key in others:
            places = asarray(order + index // length * length)  # among all items
            chosen = take_items(call, key, places, None, "clip").reshape(first.shape)
            order = sort_rows(chosen, key.datatype, order)
        order = order.reshape(first.shape)
    found = made.result(order, np.intp)
    return with_last_at(found, along) if ndim > 1 else found if made.on_gpu else numpy_result(found)
