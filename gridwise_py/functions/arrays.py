"""Functions that make Arrays on the GPU, and those on arrays of any shape: gathers, searches, broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, isfinite
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import wgpu

from ..errors import ArgumentError, BoundsError, DatatypeError, LengthError
from ..primitives.fill import Arange
from ..primitives.fusion import EXPRESSIONS, flat_of
from ..primitives.map import Map
from ..primitives.reduce import Reduce
from ..primitives.reduce_axis import one_axis
from ..primitives.search import SEARCHED_DATATYPES, Bins, Search, SearchSide
from ..runtime.array import Array, asarray, checked_shape, default_float, empty, empty_like
from ..runtime.chunked_array import ChunkedArray, Items
from ..runtime.context import context_of
from ..runtime.device import default_device
from ..runtime.host_items import cast_items, extremes
from ..types.datatype import (
    COMPLEX,
    ITEM_DATATYPES,
    STORAGE_DATATYPES,
    Datatype,
    ItemDatatypeLike,
    as_datatype,
    value_words,
)
from ..types.expression import as_node, converted
from ..types.expression_functions import where
from ..types.operators import Max, Min
from ..types.options import one_of
from ..types.shapes import broadcast_shape
from .arguments import (
    Call,
    argument_array,
    check_gpu_out,
    check_host_out,
    check_not_chunked,
    check_range,
    deliver,
    device_of,
    in_datatype,
    index_array,
    is_beyond,
    is_mixed,
    is_weak,
    keep_primitive,
    numpy_result,
    same_bits,
    stored_leaves,
)
from .array_methods import fill, take_items
from .repeated_calls import one_shot

Shape: TypeAlias = int | Sequence[int]
TakeMode: TypeAlias = Literal["raise", "wrap", "clip"]


# ---- creation


@one_shot()
def zeros(shape: Shape, dtype: ItemDatatypeLike | None = None, device: wgpu.GPUDevice | None = None) -> Array:
    """Return an Array of zeros, made on the GPU.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : Datatype, str or numpy dtype, optional
        By default float64 where the device computes with it, else float32.
    device : wgpu.GPUDevice, optional
        By default `default_device()`.
    """
    return fill(empty(shape, dtype, device), 0)


@one_shot()
def ones(shape: Shape, dtype: ItemDatatypeLike | None = None, device: wgpu.GPUDevice | None = None) -> Array:
    """Return an Array of ones, made on the GPU; the parameters are those of `zeros`."""
    return fill(empty(shape, dtype, device), 1)


@one_shot()
def full(
    shape: Shape,
    fill_value: complex | np.generic,
    dtype: ItemDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Array:
    """Return an Array with one number in all items, made on the GPU.

    Parameters
    ----------
    shape : int or sequence of int
    fill_value : int, float, complex, bool or numpy scalar
    dtype : Datatype, str or numpy dtype, optional
        By default numpy's of `fill_value`, but float32 where the device does not compute with float64, and
        complex64.
    device : wgpu.GPUDevice, optional
        By default `default_device()`.

    Raises
    ------
    DatatypeError
        If `fill_value` is no number, or a Python integer that `dtype` does not hold.
    """
    lengths = checked_shape(shape)
    device = device if device is not None else default_device()
    of_number = partial(_datatype_of_number, "gw.full()", fill_value, device)
    datatype = of_number() if dtype is None else as_datatype(dtype, ITEM_DATATYPES)
    if not datatype.is_several:
        value_words(fill_value, datatype, "gw.full()")
    return fill(empty(lengths, datatype, device), fill_value, "gw.full()")


@one_shot()
def zeros_like(
    x: Array | np.ndarray,
    dtype: ItemDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
    *,
    shape: Shape | None = None,
) -> Array:
    """Return an Array of zeros of the shape and datatype of another array; the parameters are those of `empty_like`."""
    return fill(empty_like(x, dtype, device, shape=shape), 0)


@one_shot()
def ones_like(
    x: Array | np.ndarray,
    dtype: ItemDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
    *,
    shape: Shape | None = None,
) -> Array:
    """Return an Array of ones of the shape and datatype of another array; the parameters are those of `empty_like`."""
    return fill(empty_like(x, dtype, device, shape=shape), 1)


@one_shot()
def full_like(
    x: Array | np.ndarray,
    fill_value: complex | np.generic,
    dtype: ItemDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
    *,
    shape: Shape | None = None,
) -> Array:
    """Return an Array of one number, of the shape and datatype of another array; see `full` and `empty_like`."""
    return fill(empty_like(x, dtype, device, shape=shape), fill_value, "gw.full_like()")


@one_shot()
def arange(
    start: float,
    stop: float | None = None,
    step: float | None = None,
    dtype: ItemDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Array:
    """Return evenly spaced numbers, made on the GPU: ``start``, ``start + step``, … before ``stop``, as numpy's.

    Parameters
    ----------
    start : int or float
        The first item; the end, and 0 is the first item, if `stop` is left out.
    stop : int or float, optional
    step : int or float, default 1
    dtype : Datatype, str or numpy dtype, optional
        By default int64 if all numbers are integers, else float64 where the device computes with it, else float32.
    device : wgpu.GPUDevice, optional
        By default `default_device()`.

    Raises
    ------
    ArgumentError
        If `step` is 0, or a number is infinite or NaN.
    DatatypeError
        If `dtype` does not hold the first two items, or for more than two bools.

    Examples
    --------
    >>> import gridwise_py as gw
    >>> gw.arange(3, 11, 2).to_numpy()
    array([3, 5, 7, 9])
    """
    call = "gw.arange()"
    first, end, by = (0, start, step) if stop is None else (start, stop, step)
    by = 1 if by is None else by
    given = (first, end, by)
    numbers = [_python_number(call, number) for number in given]
    first, end, by = numbers
    if by == 0:
        raise ArgumentError(f"{call}: step must not be 0")
    device = device if device is not None else default_device()
    context = context_of(device)
    whole = all(isinstance(number, int) for number in numbers)
    if dtype is None:
        datatype = STORAGE_DATATYPES["i64"] if whole else default_float(context)
    else:
        datatype = as_datatype(dtype, STORAGE_DATATYPES)
    if whole:
        n, second = max(0, int(-(-(end - first) // by))), first + by
    else:  # numpy computes with the numbers as they are given: float32 ones round
        with np.errstate(all="ignore"):
            n, second = max(0, ceil((given[1] - given[0]) / given[2])), float(given[0] + given[2])
    if datatype.name == "bool" or (datatype.name == "f64" and not context.has_float64):
        if datatype.name == "bool" and n > 2:
            raise DatatypeError(f"{call}: {n} items of bool, but numpy's arange has 2 of them at most; give dtype='u8'")
        # numpy's own rule for bools, and its arithmetic where the device has none: computed on the host.
        numpy_arange = cast(Callable[..., np.ndarray], np.arange)
        return asarray(numpy_arange(first, end, by, datatype.dtype), device)
    output = empty(n, datatype, device)
    if n == 0:
        return output
    start_words, step_words = _range_words(call, first, second if n > 1 else first, datatype)
    arguments: dict[str, Any] = {"output": output, "start": start_words, "step": step_words}
    keep_primitive(Arange, device, datatype.name).run_once(**arguments)
    return output


def _range_words(call: str, first: float, second: float, datatype: Datatype) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the words of the first item and of the step, as numpy rounds them: it computes the step from two items."""
    dtype = datatype.dtype
    for number in (first, second):  # the two items that numpy puts down; those behind them may wrap
        value_words(number if dtype.kind == "f" else int(number), datatype, call)
    if dtype.kind != "f":
        pair = np.array([each % (1 << 64) for each in (int(first), int(second) - int(first))], np.uint64)
    else:  # f16 is computed in f32, by numpy, too
        with np.errstate(all="ignore"):
            pair = np.array([first, second], dtype).astype(np.float64 if datatype.name == "f64" else np.float32)
            pair[1] -= pair[0]
    start, step = ((*words, 0)[:2] for words in pair.view(np.uint32).reshape(2, -1).tolist())
    return (start[0], start[1]), (step[0], step[1])


def _python_number(call: str, value: Any) -> int | float:
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return int(cast(int, value))
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError("it is text")
        number = float(value)
    except (TypeError, ValueError) as error:
        kind = DatatypeError if isinstance(error, TypeError) else ArgumentError
        raise kind(f"{call}: {value!r:.60} is not a number: {error}") from error
    if not isfinite(number):
        raise ArgumentError(f"{call}: start, stop and step must be finite, not {value!r}")
    return number


def _datatype_of_number(call: str, value: Any, device: wgpu.GPUDevice) -> Datatype:
    """Return the datatype of a number that stands for itself."""
    if type(value) is float:
        return default_float(context_of(device))
    if type(value) is complex:
        return COMPLEX
    item = argument_array(call, "fill_value", value)
    if item.ndim or item.dtype.kind not in "biufc":
        raise DatatypeError(f"{value!r} is not a number that an Array holds; upload arrays with gw.asarray")
    return as_datatype(item.dtype, ITEM_DATATYPES)


# ---- gathers


@one_shot()
def take(
    x: Any,
    indices: Any,
    axis: int | None = None,
    out: Any = None,
    mode: TakeMode | None = None,
    *,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the items of `x` that indices choose.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Of any shape and datatype.
    indices : numpy.ndarray or Array
        Bools are 0 and 1; `compress` takes masks. Negative ones count from the end.
    axis : int, optional
        By default all items, in C order.
    out : numpy.ndarray or Array, optional
        Where to put the result, of its shape.
    mode : {"raise", "wrap", "clip"}, optional
        By default indices out of range raise on the host, and wrap on the GPU. ``"raise"`` for Arrays waits for the
        GPU.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        An Array if an argument is one.

    Raises
    ------
    BoundsError
        If an index is out of range, where that raises.
    AxisError
        If `axis` is out of range.
    DatatypeError
        If the indices are no integers.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.array([30, 10, 20], dtype=np.int32))
    >>> gw.take(x, gw.argsort(x)).to_numpy()
    array([10, 20, 30], dtype=int32)
    """
    made = Call("gw.take()", device)
    call = made.name
    if mode is not None:
        one_of(f"{call}: mode", mode, ("raise", "wrap", "clip"))
    made.take("x", x, ITEM_DATATYPES, shape="any", fuses=False)
    check_not_chunked(call, "indices", indices)
    items = made.arrays["x"]
    on_gpu = made.on_gpu or isinstance(indices, Array)
    device = device_of(items, indices, device=device)
    if isinstance(indices, EXPRESSIONS):
        indices = asarray(indices, device)
    indices = index_array(call, "indices", indices)
    axis = None if axis is None else one_axis(call, axis, items.ndim)
    source = asarray(items, device)
    if mode == "raise" and isinstance(indices, Array):
        indices = indices if indices.count is None else indices.trim()  # what checks them waits anyway
        check_indices(call, indices, source.size if axis is None else source.shape[axis])
    shape = indices.shape if axis is None else (*source.shape[:axis], *indices.shape, *source.shape[axis + 1 :])
    direct = _written_directly(call, out, shape, source.datatype, device if on_gpu else None, "back")
    result = take_items(call, source, indices, axis, mode, direct)
    if direct is not None:
        return direct
    return deliver(call, result if on_gpu else numpy_result(result.to_numpy()), out, "back")


def _written_directly(
    call: str, out: Any, shape: tuple[int, ...], datatype: Datatype, device: wgpu.GPUDevice | None, casting: str
) -> Array | None:
    """Return what a kernel writes its results to, where the caller gave an Array of their datatype.

    `out` is checked before anything is computed; without a device, the results go to the host.
    """
    if out is None:
        return None
    if device is None:
        check_host_out(call, out, shape, datatype.dtype, casting)
        return None
    check_gpu_out(call, out, shape, datatype, device, casting)
    return out if out.datatype == datatype else None


def check_indices(call: str, indices: Any, length: int, remedy: str = "") -> None:
    """Raise BoundsError where an index is out of range; of an Array the smallest and the largest are read."""
    if not indices.size:
        return
    if isinstance(indices, Array):
        reductions = [keep_primitive(Reduce, indices.device, indices.datatype.name, op) for op in (Min, Max)]
        ends = [each.run_once(input=indices.ravel())["output"].item() for each in reductions]
    else:
        ends = extremes(indices)
    check_range(call, ends, length, remedy)


# ---- searches


@one_shot()
def searchsorted(
    x1: Any,
    x2: Any,
    side: SearchSide = "left",
    sorter: Any = None,
    *,
    size: int | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return where the items of `x2` go into `x1` so that it stays sorted.

    Parameters
    ----------
    x1 : numpy.ndarray or Array
        Ascending, with NaN last, which is not checked; with `sorter` in any order.
    x2 : numpy.ndarray, Array or number
        An expression, such as ``2 * x``, is of the datatype of `x1`.
    side : {"left", "right"}, default "left"
    sorter : numpy.ndarray or Array, optional
        On the GPU indices out of range count as the last one.
    size : int, optional
        The items of an expression without a leaf, such as ``gw.index``.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        An Array if an argument is one.

    Raises
    ------
    ArgumentError
        If `x1` or `sorter` has other than one dimension.
    BoundsError
        If an index of `sorter` on the host is out of range.
    DatatypeError
        If the arguments are no numbers that can be sorted, or `sorter` has no integers.
    LengthError
        If `sorter` has another length than `x1`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.searchsorted(np.array([1, 3, 3, 7]), np.array([0, 3, 9]))
    array([0, 1, 4])
    >>> gw.searchsorted(np.array([1, 3, 3, 7]), 3, side="right")
    np.int64(3)
    >>> rows = gw.asarray(np.array([0, 0, 2, 2, 2], dtype=np.uint32))  # of the entries of a sparse matrix with 3 rows
    >>> gw.searchsorted(rows, gw.index, size=4).to_numpy()
    array([0, 2, 2, 5], dtype=uint32)
    """
    return _find_places(Search, x1, x2, side, sorter, size, device)


def _find_places(
    kind: type[Search], x1: Any, x2: Any, side: SearchSide, sorter: Any, size: int | None, device: wgpu.GPUDevice | None
) -> Any:
    """Return where the items of `x2` go into `x1` by a primitive."""
    call = "gw.searchsorted()"
    if isinstance(x1, EXPRESSIONS):
        raise ArgumentError(f"{call}: x1 is an expression, but is read many times; store it with gw.asarray(x1)")
    if isinstance(x2, EXPRESSIONS):
        return _search_computed(call, kind, x1, x2, side, sorter, size, device)
    if size is not None:
        raise ArgumentError(f"{call}: size= is for expressions, but x2 says how many items it has; leave it out")
    one_of(f"{call}: side", side, get_args(SearchSide))
    device = device_of(x1, x2, sorter, device=device)
    x1, x2 = (
        each if isinstance(each, Items) else argument_array(call, name, each) for name, each in (("x1", x1), ("x2", x2))
    )
    beyond, descends = None, kind is Bins and isinstance(x1, np.ndarray) and x1.size and x1[-1] < x1[0]
    if is_mixed(x1, x2):
        if kind is Bins and isinstance(x1, Items):
            raise DatatypeError(
                f"gw.digitize(): no integers hold bins of {x1.dtype} and x of {x2.dtype}; give bins.to_numpy()"
            )
        dtype = np.dtype(f"{x1.dtype.kind}8")
        x1, x2 = same_bits(x1, dtype), same_bits(x2, dtype)
        beyond = is_beyond(asarray(x2, device))
    if isinstance(x2, np.ndarray) and x1.dtype.kind == "f":
        x2 = _between_the_same(x2, x1.dtype, side)
    made = Call(call, device)
    found = made.promote({"x1": x1, "x2": x2}, computes=False).dtype
    if found.kind in "bui" and found.itemsize < 4:  # small integers are sorted as wider ones
        found = np.dtype(np.int32 if found.kind == "i" else np.uint32)
    datatype = as_datatype(found, SEARCHED_DATATYPES)
    keys, queries = (made.convert(name, datatype) for name in ("x1", "x2"))
    if keys.ndim != 1:
        raise ArgumentError(
            f"{call}: x1 has shape {keys.shape}, but must have one dimension, in which its items ascend; x2 may have "
            f"any number"
        )
    indices = {} if sorter is None else {"sorter": _sorter(call, sorter, keys.size)}
    made.arrays = {"sorted": keys, "queries": queries, **indices}
    made.on_gpu |= isinstance(sorter, Items)
    search = keep_primitive(kind, device, datatype.name, side=side, sorter=sorter is not None)
    found: Any = made.results(search)["output"]
    if beyond is not None:  # below all keys without a sign, or above all that have one
        end = as_node(keys.size if (keys.dtype.kind == "i") != descends else 0, "u32")
        placed = asarray(where(beyond, end, asarray(found, device))).reshape(found.shape)
        found = placed if made.on_gpu else placed.to_numpy()
    return found if made.on_gpu else numpy_result(cast_items(found, np.intp))


def _between_the_same(queries: np.ndarray, keys: np.dtype, side: SearchSide) -> np.ndarray:
    """Return queries in the dtype of keys that are floats, where numpy would convert the keys to a wider one.

    Each lies between the same keys as before: it is rounded up for ``"left"``, and down for ``"right"``.
    """
    keys = keys.newbyteorder("=")
    if queries.dtype.kind not in "biuf":
        return queries  # refused by others
    wide = np.result_type(keys, queries.dtype)
    if wide == keys:
        return queries
    with np.errstate(all="ignore"):
        exact = queries.astype(wide)
        found = exact.astype(keys)
        wrong, toward = (found < exact, np.inf) if side == "left" else (found > exact, -np.inf)
        return np.where(wrong, np.nextafter(found, keys.type(toward)), found)


def _search_computed(
    call: str, kind: type[Search], x1: Any, x2: Any, side: SearchSide, sorter: Any, size: int | None,
    device: wgpu.GPUDevice | None,
) -> Array:  # fmt: skip
    """Return where the items of an expression go into `x1`."""
    flat = flat_of(x2)
    arrays = stored_leaves(call, flat)
    device = device_of(x1, sorter, *arrays.values(), device=device)
    if (size is None) == (not flat.has_size):
        raise ArgumentError(
            f"{call}: no leaf of x2 says how many items it has; give size="
            if size is None
            else f"{call}: the leaves of x2 say how many items it has; leave out size="
        )
    keys = x1 if isinstance(x1, Items) else asarray(argument_array(call, "x1", x1), device)
    if keys.datatype != flat.datatype:
        raise DatatypeError(
            f"{call}: x1 is of {keys.datatype}, but x2 of {flat.datatype}; cast x2, for example gw.f32(x2), or convert "
            f"x1"
        )
    if sorter is not None:
        indices = _sorter(call, sorter, keys.size)
        arrays["sorter"] = indices if isinstance(indices, Items) else asarray(indices, device)
    search = keep_primitive(
        kind, device, flat.datatype.name, side=side, queries=flat.without_arrays(), sorter=sorter is not None
    )
    output = None if size is None else empty(size, "u32", device)
    return search.run_once(sorted=keys, **arrays, output=output)["output"]


@one_shot()
def digitize(x: Any, bins: Any, right: bool = False, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the bin of each item: `searchsorted` with its arguments the other way round, also of bins that descend.

    Parameters
    ----------
    x : numpy.ndarray, Array or number
        Of any shape.
    bins : numpy.ndarray or Array
        Ascending with NaN last, or the other way round, as the first and the last one say. That those of an Array do is
        not checked.
    right : bool, default False
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array

    Raises
    ------
    ArgumentError
        If bins on the host neither ascend nor descend.
    DatatypeError
        If an Array of bins is of 8-byte integers with a sign, and `x` of those without one, or the other way round.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.digitize(np.array([0.5, 1.0, 9.0]), np.array([0.0, 1.0, 2.0]))
    array([1, 2, 3])
    """
    call = "gw.digitize()"
    if not isinstance(bins, Items):
        bins = argument_array(call, "bins", bins)
        if bins.ndim != 1:
            raise ArgumentError(f"{call}: bins has shape {bins.shape}, but must have one dimension")
        ascending = np.sort(bins)
        if not any(np.array_equal(each, ascending, bins.dtype.kind == "f") for each in (bins, bins[::-1])):
            raise ArgumentError(f"{call}: bins must ascend or descend, with NaN last or first; give np.sort(bins)")
    return _find_places(Bins, bins, x, "left" if right else "right", None, None, device)


def _sorter(call: str, sorter: Any, length: int) -> Any:
    """Return indices that sort keys, as u32; raise where they are no such indices, as far as the host can tell."""
    items = sorter if isinstance(sorter, Items) else argument_array(call, "sorter", sorter)
    if items.dtype.kind not in "iu":
        raise DatatypeError(f"{call}: sorter is of {items.dtype}, but must be integers; give gw.argsort(x1)")
    if items.shape != (length,):
        raise LengthError(f"{call}: sorter has shape {items.shape}, but x1 has {length} items; give gw.argsort(x1)")
    if not isinstance(items, Items) and length and not 0 <= items.min() <= items.max() < length:
        raise BoundsError(f"{call}: sorter has indices out of range for {length} items; give gw.argsort(x1)")
    return in_datatype(call, "sorter", items, SEARCHED_DATATYPES["u32"])


# ---- broadcasting


def is_broadcast(a: Any, b: Any) -> bool:
    """Whether a sum of two arguments is not of two arrays of one shape and one datatype."""
    if type(a) is Array and type(b) is Array:  # asked first: isinstance() takes long for an abstract class
        return a.shape != b.shape or a.datatype is not b.datatype
    if isinstance(a, ChunkedArray) or isinstance(b, ChunkedArray):
        return False
    a, b = (
        argument_array("gw.add()", name, each) if isinstance(each, (list, tuple)) else each
        for name, each in (("a", a), ("b", b))
    )
    shape = _shape_of(a)
    return shape == () or shape != _shape_of(b) or _dtype_of(a) != _dtype_of(b)


def _shape_of(value: Any) -> Any:
    return () if is_weak(value) else np.shape(value) if not isinstance(value, Array) else value.shape


def _dtype_of(value: Any) -> np.dtype:
    dtype = getattr(value, "dtype", None)
    return (dtype if isinstance(dtype, np.dtype) else np.asarray(value).dtype).newbyteorder("=")


def add_broadcast(call: str, a: Any, b: Any, out: Any, device: wgpu.GPUDevice | None) -> Any:
    """Return ``a + b`` of arrays and numbers of any shapes, by numpy's rules of shapes and datatypes."""
    made = Call(call, device)
    datatype = made.promote({"a": a, "b": b})
    shapes = {name: made.arrays[name].shape if name in made.arrays else () for name in ("a", "b")}
    shape = broadcast_shape(call, list(shapes.values()))
    device, kind = made.device, "bool" if datatype.name == "bool" else datatype.computed_as
    target = _written_directly(call, out, shape, datatype, device if made.on_gpu else None, "same_kind")
    # A number is rounded to the datatype before it is added.
    numbers = {name: made.convert(name, datatype) for name in made.numbers}
    terms = [
        converted(kind, numbers[name].item() if made.arrays else asarray(numbers[name], device))
        if name in numbers else converted(kind, asarray(made.arrays[name], device))
        for name in ("a", "b")
    ]  # fmt: skip
    flat = flat_of(terms[0] | terms[1] if kind == "bool" else terms[0] + terms[1])
    primitive = made.primitive(Map, flat.without_arrays())
    into = None if target is None or primitive.signature.datatype("output") != datatype else target
    result = primitive.run_once(**dict(flat.arrays), output=into)["output"]
    if into is not None:
        return target
    if result.datatype != datatype:
        result = result.astype(datatype)
    result = result.viewed_as(shape)
    return deliver(call, result if made.on_gpu else numpy_result(result.to_numpy()), out)
