"""Histograms, and sums by index: one-shot functions with the names of numpy, where it has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, BoundsError, DatatypeError
from ..primitives.binned import even_edges, thresholds
from ..primitives.fusion import EXPRESSIONS, flat_of
from ..primitives.histogram import EvenRange, Histogram, Histogram2D
from ..primitives.reduce import Reduce
from ..primitives.reduce_by_index import ReduceByIndex
from ..primitives.vector_add import VectorAdd
from ..runtime.array import Array, asarray, is_python
from ..runtime.context import context_of
from ..runtime.host_items import cast_items, extremes
from ..types.datatype import STORAGE_DATATYPES, Datatype
from ..types.expression import f32
from ..types.expression_functions import StructExpression
from ..types.operators import Add, BinOpLike
from ..types.options import integer
from .arguments import (
    Call,
    HostItems,
    argument_array,
    check_one_dimension,
    device_of,
    index_array,
    keep_primitive,
    weak_items,
    without_doubles,
)
from .arrays import take, zeros
from .repeated_calls import one_shot

_MOST_LENGTH = (1 << 31) - 1
_LOW_WORD = 0xFFFFFFFF


# ---- sums of 8 bytes that do not wrap


def sums_may_wrap(items: np.ndarray) -> bool:
    """Whether sums of integers of 8 bytes may leave their range."""
    if items.dtype.kind not in "iu" or not items.size:
        return False
    least, most = map(int, extremes(items))
    return max(-least, most) * items.size > np.iinfo(items.dtype).max


def two_words(items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the high and the low words of integers of 8 bytes, of their dtype: sums of fewer than 2^31 do not wrap."""
    return items >> 32, items & _LOW_WORD


def of_sums(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Return the sums of integers, in float64, from those of their high and of their low words."""
    return (high + (low >> 32)) * 2.0**32 + (low & _LOW_WORD)


# ---- bins


def _take(call: Call, name: str, value: Any) -> Any:
    """Take an argument of any shape, of numbers; return its datatype, or the program of an expression."""
    if isinstance(value, StructExpression):
        raise DatatypeError(f"{call}: {call.shown(name)} is a struct, but takes numbers; give one field of it")
    return call.take(name, value, shape="flat", computes=True)


class _Edges:
    """The edges of bins along one argument.

    Parameters
    ----------
    call : Call
        Its argument is taken.
    name : str
        Of the argument.
    bins, given : object
        What the caller gave as bins and as range.
    kind : Datatype or Flat
        Of the items.
    even : callable, optional
        What makes the edges of a range; by default as of ``numpy.histogram``.
    """

    def __init__(
        self, call: Call, name: str, bins: Any, given: Any, kind: Any,
        even: Callable[[int, Any, Any], np.ndarray] | None = None,
    ):  # fmt: skip
        held, name = call.arrays.get(name), call.shown(name)
        items = held if isinstance(held, np.ndarray) else None
        own: np.dtype = (kind if isinstance(kind, Datatype) else STORAGE_DATATYPES[kind.types[0]]).dtype
        self._even: Callable[[int, Any, Any], np.ndarray] = even or partial(even_edges, own)
        self._dtype = _read_as(kind)
        self._given: Any = None
        #: The even range, where the kernel computes the bins.
        self.range: tuple[Any, Any] | None = None
        if isinstance(bins, str):
            if items is None:
                raise ArgumentError(
                    f"{call}: bins={bins!r} is a rule that reads all items, and {name} is on the GPU; give their "
                    f"number, or the edges"
                )
            self.range = _ends(call.name, given, items)
            try:
                rule = np.histogram_bin_edges(items, cast(Any, bins), None if given is None else self.range)
            except ValueError as error:
                raise ArgumentError(f"{call}: {error}") from None
            self.bins: int = rule.size - 1
        elif isinstance(bins, Array):
            if bins.ndim != 1 or bins.size < 2:
                raise ArgumentError(
                    f"{call}: bins has shape {bins.shape}, but must be one dimension of 2 edges or more"
                )
            if bins.dtype != self._dtype:
                raise DatatypeError(
                    f"{call}: bins is an Array of {bins.datatype}, but {name} is read as {self._dtype}; convert it, "
                    f"for example with bins.astype(np.{self._dtype})"
                )
            self._given, self.bins = bins, bins.size - 1
        elif np.ndim(bins := argument_array(call.name, "bins", bins) if isinstance(bins, (list, tuple)) else bins) == 0:
            self.bins = integer(f"{call}: bins", bins, 1, _MOST_LENGTH)
            if given is None and items is None:
                raise ArgumentError(
                    f"{call}: {name} is on the GPU, and its least and greatest item are not read; give "
                    f"range=(low, high), or its edges as bins="
                )
            self.range = _ends(call.name, given, items)
        else:
            edges = np.asarray(bins)
            if edges.ndim != 1 or edges.size < 2 or edges.dtype.kind not in "biuf":
                raise ArgumentError(f"{call}: bins={bins!r:.60} must be a number, or 2 edges or more")
            if edges.dtype.kind == "f" and np.isnan(edges).any():
                raise ArgumentError(f"{call}: bins has NaN, which is between no items; leave it out")
            if not (edges[:-1] <= edges[1:]).all():
                raise ArgumentError(f"{call}: bins must ascend; give np.sort(bins)")
            self._given, self.bins = edges, edges.size - 1

    @cached_property
    def edges(self) -> Any:
        """As the caller gets them."""
        return self._given if self.range is None else self._even(self.bins, *self.range)

    def on_gpu(self, device: wgpu.GPUDevice) -> Array:
        """Return the edges as the kernel compares with them; those above all items are left out."""
        if isinstance(self.edges, Array):
            return self.edges
        return asarray(thresholds(self.edges, self._dtype), device)


def _ends(call: str, given: Any, items: np.ndarray | None) -> tuple[Any, Any]:
    """Return where bins begin and end, as numpy has it: in the types that decide the dtype of the edges."""
    if given is None:
        assert items is not None, "of items on the GPU a range is given"
        low, high = extremes(items) if items.size else (0, 1)
        what = f"items reach from {low} to {high}"
        if isinstance(low, np.bool_):  # of which numpy takes the bytes
            low, high = np.uint8(low), np.uint8(high)
    else:
        what = f"range={given!r:.60}"
        ends = argument_array(call, "range", given)
        if not ends.ndim:
            raise DatatypeError(f"{call}: {what} must be two numbers, where bins begin and end")
        if ends.shape != (2,):
            raise ArgumentError(f"{call}: {what} must be two numbers, where bins begin and end")
        low, high = given
        if ends.dtype.kind not in "biufO":
            raise DatatypeError(f"{call}: {what} must be two numbers, where bins begin and end")
    try:
        finite = np.isfinite(low) and np.isfinite(high)
    except TypeError as error:
        raise DatatypeError(f"{call}: {what} must be two numbers, where bins begin and end") from error
    if not finite:
        raise ArgumentError(f"{call}: {what}, but bins have finite ends; give range=(low, high)")
    if low > high:
        raise ArgumentError(f"{call}: {what}, but bins begin below their end; exchange the two")
    if low == high:
        low, high = low - 0.5, high + 0.5
        if low == high:  # beyond 2^53
            raise ArgumentError(f"{call}: {what}, so large that bins around it have no width; give range=(low, high)")
    return low, high


def _read_as(kind: Any) -> np.dtype:
    """Return the dtype in which kernels read items of a datatype or of an expression."""
    datatype: Datatype = kind if isinstance(kind, Datatype) else kind.datatype
    return datatype.computed.dtype


def _result_dtype(weights: Any) -> np.dtype:
    """Return the dtype of numpy's histogram."""
    if weights is None:
        return np.dtype(np.intp)
    return argument_array("", "weights", weights).dtype.newbyteorder("=")


@one_shot()
def histogram(
    x: Any,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool | None = None,
    weights: Any = None,
    *,
    device: wgpu.GPUDevice | None = None,
) -> tuple[Any, Any]:
    """Return how many items are in each bin, and the edges of the bins.

    Items outside and NaN are in no bin.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression of Arrays
        Of any shape.
    bins : int, str, sequence of numbers, numpy.ndarray or Array, default 10
        How many, or ascending edges; those of an Array are not checked. Of numpy arrays also a rule, ``"auto"``.
    range : tuple of two numbers, optional
        An Array with a number of bins needs it.
    density : bool, optional
    weights : numpy.ndarray, Array or expression, optional
        Added up in place of counts.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    hist : numpy.ndarray or Array
        Of Arrays u32, or the datatype of the weights, of at least 4 bytes; densities are floats.
    edges : numpy.ndarray or Array
        Of numpy's dtype; an Array only if `bins` is one.

    Raises
    ------
    ArgumentError
        If edges descend, or there is no range.
    LengthError
        If there are not as many weights as items.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.histogram(np.array([1, 2, 1]), bins=[0, 1, 2, 3])
    (array([0, 2, 1]), array([0, 1, 2, 3]))
    >>> x = gw.asarray(np.array([0.1, 0.2, 0.9], dtype=np.float32))
    >>> gw.histogram(x, 2, range=(0, 1))[0].to_numpy()
    array([2, 1], dtype=uint32)
    """
    call = Call("gw.histogram()", _device_of_bins(device, bins))
    kind = _take(call, "input", x)
    options = {} if weights is None else {"weights": _take(call, "weights", weights)}
    call.check_lengths()
    call.on_gpu |= isinstance(bins, Array)
    if isinstance(bins, str) and weights is not None:
        raise DatatypeError(f"{call}: bins={bins!r} is a rule that knows of no weights; give a number, or edges")
    edges = _Edges(call, "input", bins, range, kind)
    if edges.range is not None:
        ends = EvenRange.of(*edges.range)
        counts = call.run(call.primitive(Histogram, kind, edges.bins, range=ends, **options))["output"]
    else:
        limits = edges.on_gpu(call.device)
        primitive = call.primitive(Histogram, kind, limits.size - 1, edges=True, **options)
        counts = _pad(call, primitive, edges.bins, edges=limits)
    dtype = None if call.on_gpu else _result_dtype(weights)
    return _counted(counts, dtype, edges.edges if density else None), edges.edges


@one_shot()
def histogram_bin_edges(x: Any, bins: Any = 10, range: tuple[float, float] | None = None, weights: Any = None) -> Any:
    """Return the edges that `histogram` counts by, without counting.

    Parameters
    ----------
    x, bins, range
        As for `histogram`.
    weights : object
        Not used.

    Returns
    -------
    numpy.ndarray or Array
        An Array only if `bins` is one.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.histogram_bin_edges(np.array([0, 1, 4]), 2)
    array([0., 2., 4.])
    """
    call = Call("gw.histogram_bin_edges()")
    kind = _take(call, "x", x)
    return _Edges(call, "x", bins, range, kind).edges


def _device_of_bins(device: wgpu.GPUDevice | None, *bins: Any) -> wgpu.GPUDevice | None:
    """Return the device of edges that are on one, if the caller names none."""
    on_gpu = [edges.device for edges in bins if isinstance(edges, Array)]
    return on_gpu[0] if on_gpu and device is None else device


def _pad(call: Call, primitive: Any, length: int, **more: Array) -> Array:
    """Return the output of a primitive, with zeros behind it."""
    if primitive.bins == length:
        return call.run(primitive, **more)["output"]
    output = zeros(length, primitive.result_datatype.name, primitive.device)
    call.run(primitive, **more, output=output[: primitive.bins])
    return output


def _counted(counts: Array, dtype: np.dtype | None, edges: Any) -> Any:
    """Return counts as the caller gets them: of a dtype in numpy, or an Array; with edges, as a density."""
    if dtype is not None:
        found = counts.to_numpy().astype(dtype)
        return found if edges is None else found / np.diff(edges).astype(np.float64) / found.sum()
    if edges is None:
        return counts
    device = counts.device
    total = keep_primitive(Reduce, device, counts.datatype, Add).run_once(input=counts)["output"]
    if isinstance(edges, Array):
        widths = f32(edges[1:]) - f32(edges[:-1])
    else:  # narrow bins far from 0 have no such differences in float32
        widths = asarray(np.diff(edges).astype(np.float32), device)
    return asarray(f32(counts) / (f32(total) * widths))


def _even_of_pairs(count: int, low: Any, high: Any) -> np.ndarray:
    """Return numpy's edges of even bins of pairs: in the dtype of the ends, whatever the items are."""
    return cast(np.ndarray, np.linspace(low, high, count + 1))


@one_shot()
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
    *,
    device: wgpu.GPUDevice | None = None,
) -> tuple[Any, Any, Any]:
    """Return how many pairs of items are in each pair of bins, and the edges of both.

    Parameters
    ----------
    x, y : numpy.ndarray, Array or expression of Arrays
        Arrays are of one datatype.
    bins : int or edges, or a tuple or list of two
        As for `histogram`, of both or of each.
    range : tuple of two tuples of two numbers, optional
    density, weights, device
        As for `histogram`.

    Returns
    -------
    hist : numpy.ndarray or Array
        Float64 for numpy arrays, else as for `histogram`.
    x_edges, y_edges : numpy.ndarray or Array

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.histogram2d(np.array([0, 0, 1]), np.array([2, 3, 3]), bins=2)[0]
    array([[1., 1.],
           [0., 1.]])
    """
    name = "gw.histogram2d()"
    if not any(isinstance(each, (Array, *EXPRESSIONS)) for each in (x, y)):
        x, y = argument_array(name, "x", x), argument_array(name, "y", y)
        both = np.result_type(x, y)
        x, y = x.astype(both, copy=False), y.astype(both, copy=False)
    is_list = isinstance(bins, (tuple, list)) or (isinstance(bins, np.ndarray) and bins.ndim > 0)
    several: list[Any] = list(cast(Sequence[Any], bins)) if is_list else []
    each_bins: list[Any] = several if len(several) == 2 else [bins, bins]
    call = Call(name, _device_of_bins(device, *each_bins))
    kinds = (_take(call, "x", x), _take(call, "y", y))
    options = {} if weights is None else {"weights": _take(call, "weights", weights)}
    call.check_lengths()
    ranges = (None, None) if range is None else tuple(range) if np.iterable(range) else ()
    if len(ranges) != 2:
        raise ArgumentError(f"{call}: range={range!r}, but must be a pair of pairs")
    found: list[_Edges] = []
    for name, kind, own_bins, own_range in zip(("x", "y"), kinds, each_bins, ranges, strict=True):
        if isinstance(own_bins, str):
            raise DatatypeError(f"{call}: bins={own_bins!r}, but a rule is for one argument; give a number, or edges")
        call.on_gpu |= isinstance(own_bins, Array)
        found.append(_Edges(call, name, own_bins, own_range, kind, _even_of_pairs))
    limits = [edges.on_gpu(call.device) for edges in found]
    shape, counted = (found[0].bins, found[1].bins), (limits[0].size - 1, limits[1].size - 1)
    primitive = call.primitive(Histogram2D, kinds, counted, edges=True, **options)
    is_cut = counted != shape
    counts = _pad(call, primitive, primitive.bins + is_cut, x_edges=limits[0], y_edges=limits[1])
    if is_cut:  # bins above all items have the zero that is the last one
        places = np.full(shape, primitive.bins, np.uint32)
        places[: counted[0], : counted[1]] = np.arange(primitive.bins, dtype=np.uint32).reshape(counted)
        counts = take(counts, places)
    x_edges, y_edges = found[0].edges, found[1].edges
    if call.on_gpu:
        if density:
            raise ArgumentError(f"{call}: density= is for numpy arrays; divide the Array of counts")
        return counts.reshape(shape), x_edges, y_edges
    hist = counts.to_numpy().reshape(shape).astype(np.float64)
    if density:
        hist = hist / np.diff(x_edges)[:, None] / np.diff(y_edges) / hist.sum()
    return hist, x_edges, y_edges


def _check_indices(call: str, name: str, given: Any, length: int | None) -> tuple[np.ndarray, int]:
    """Return indices on the host as u32, and the largest, -1 of none; raise where they are out of range."""
    indices = index_array(call, name, given)
    least, most = map(int, extremes(indices)) if indices.size else (0, -1)
    if least < 0 or most >= (_MOST_LENGTH if length is None else length):
        of = "" if length is None else f" for a length of {length}"
        raise BoundsError(f"{call}: {name} has integers from {least} to {most}, which is out of range{of}")
    return cast_items(indices, np.uint32), most


def _no_mask(call: str, indices: Any) -> Any:
    """Return indices; raise where they are bools, which numpy takes for a mask."""
    if argument_array(call, "indices", indices).dtype.kind == "b":
        raise DatatypeError(f"{call}: indices are bools, but must be integers; of a mask give gw.flatnonzero(mask)")
    return indices


@one_shot()
def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return how often each of the numbers 0, 1, 2, … occurs, or the sums of their weights.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression of Arrays
    weights : numpy.ndarray, Array or expression, optional
    minlength : int, default 0
        For numpy arrays.
    length : int, optional
        Arrays need it, and leave out numbers outside.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Weights of numpy arrays are added in float64, or in float32 on a device without it.

    Raises
    ------
    ArgumentError
        If there are several dimensions, or an Array has no `length`.
    BoundsError
        If numbers on the host are negative or not below `length`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.bincount(np.array([0, 3, 3]))
    array([1, 0, 0, 2])
    >>> gw.bincount(gw.asarray(np.array([0, 3, 3], dtype=np.uint32)), length=2).to_numpy()
    array([1, 0], dtype=uint32)
    """
    call = "gw.bincount()"
    on_gpu = any(isinstance(each, (Array, *EXPRESSIONS)) for each in (x, weights))
    minlength = integer(f"{call}: minlength", minlength, 0, _MOST_LENGTH)
    length = None if length is None else integer(f"{call}: length", length, 0, _MOST_LENGTH)
    if isinstance(x, EXPRESSIONS):
        flat = flat_of(x)
        check_one_dimension(call, flat)
    elif not isinstance(x, Array):
        x, most = _check_indices(call, "x", x, length)
        length = max(most + 1, minlength) if length is None else length
    if weights is not None and not isinstance(weights, (Array, *EXPRESSIONS)):
        weights = argument_array(call, "weights", weights)
    for name, each in (("x", x), ("weights", weights)):
        if each is not None and not isinstance(each, EXPRESSIONS) and np.ndim(each) != 1:
            raise ArgumentError(
                f"{call}: {name} has shape {np.shape(each)}, but must have one dimension; give {name}.ravel()"
            )
    if length is None:
        raise ArgumentError(f"{call}: x is on the GPU, and its greatest number is not read; give length=")
    if isinstance(weights, np.ndarray) and not on_gpu:
        if weights.dtype.kind in "biu" and weights.dtype.itemsize < 8:  # exact
            weights = weights.astype(np.int64)
        elif weights.dtype.kind == "f" and context_of(device_of(device=device)).has_float64:
            weights = weights.astype(np.float64)
        weights = without_doubles([], weights, device_of(device=device))
        if not np.size(cast(Any, x)) and not weights.size:  # of nothing numpy has no sums, but counts
            return np.zeros(length, np.intp)

    def sums_of(values: Any) -> Any:
        shown = {"indices": "x", "items": "weights"}
        found = _by_index(call, x, values, Add, max(length, 1), device, deterministic=False, shown=shown)
        return found[:length]

    summed: Any = weights
    if isinstance(summed, np.ndarray) and not on_gpu and sums_may_wrap(summed):
        high, low = (sums_of(words) for words in two_words(cast(Any, summed)))
        return of_sums(high, low)
    found = sums_of(summed)
    if isinstance(found, Array):
        return found
    return found.astype(np.intp if summed is None else np.float64)


@one_shot()
def reduce_by_index(
    indices: Any,
    x: Any,
    op: BinOpLike = Add,
    *,
    length: int,
    deterministic: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Combine the items of each index.

    Parameters
    ----------
    indices : numpy.ndarray, Array or expression of Arrays
        On the GPU those outside are left out.
    x : numpy.ndarray, Array or expression of Arrays
    op : BinOp or str, default Add
        If it does not commute, items are combined in their order.
    length : int
    deterministic : bool, default False
        For floats: the same bits on every run; see `ReduceByIndex`.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of the datatype of the items, of at least 4 bytes; the operator's identity where no item has the index.

    Raises
    ------
    BoundsError
        If indices on the host are out of range.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.reduce_by_index(np.array([2, 0, 2]), np.array([1, 5, 7], dtype=np.uint32), gw.Max, length=3)
    array([5, 0, 7], dtype=uint32)
    """
    call = "gw.reduce_by_index()"
    length = integer(f"{call}: length", length, 0, _MOST_LENGTH)
    if x is None:
        raise DatatypeError(f"{call}: x is None, but must be an item for each index; gw.bincount counts indices")
    if not isinstance(indices, (Array, *EXPRESSIONS)):
        indices, _ = _check_indices(call, "indices", _no_mask(call, indices), length)
    return _by_index(call, indices, x, op, max(1, length), device, deterministic=deterministic)[:length]


def _by_index(
    call: str, indices: Any, x: Any, op: BinOpLike, length: int, device: wgpu.GPUDevice | None, *, deterministic: bool,
    shown: Mapping[str, str] | None = None,
) -> Any:  # fmt: skip
    """Return the results for each index."""
    made = Call(call, device, shown)
    kind = _take(made, "indices", indices)
    items = None if x is None else _take(made, "items", x)
    made.check_lengths()
    primitive = made.primitive(ReduceByIndex, kind, items, op, size=length, deterministic=bool(deterministic))
    return made.results(primitive)["output"]


@one_shot()
def scatter_add(
    x: HostItems | Array,
    indices: Any,
    values: Any,
    *,
    deterministic: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return `x` with values added at indices, which may repeat: as ``np.add.at`` changes x.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Of one dimension, of 4 or 8 bytes; it stays as it is.
    indices : numpy.ndarray, Array or expression of Arrays
        On the GPU those outside are left out.
    values : numpy.ndarray, Array or expression of Arrays
        Of the datatype of `x`.
    deterministic : bool, default False
        For floats: the same bits on every run; see `ReduceByIndex`.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of the shape and datatype of `x`; an Array if an argument is one.

    Raises
    ------
    BoundsError
        If indices on the host are out of range.
    DatatypeError
        If `values` are of another datatype than `x`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.zeros(3, dtype=np.float32)
    >>> gw.scatter_add(x, np.array([2, 0, 2]), np.ones(3, dtype=np.float32))
    array([1., 0., 2.], dtype=float32)
    """
    call = Call("gw.scatter_add()", device)
    onto = call.take("x", x, fuses=False, computes=True)
    on_gpu = any(isinstance(each, (Array, *EXPRESSIONS)) for each in (x, indices, values))
    target = call.arrays["x"]
    if not isinstance(indices, (Array, *EXPRESSIONS)):
        indices, _ = _check_indices(call.name, "indices", _no_mask(call.name, indices), target.size)
    if isinstance(values, (np.bool_, np.ndarray)) and values.ndim == 0 and values.dtype.kind == "b":
        values = bool(values)  # which, as numpy has it, every datatype takes
    if is_python(values):
        values = weak_items(call.name, "values", values, onto)
    if isinstance(values, (np.ndarray, np.generic)) and values.ndim == 0 and not isinstance(indices, EXPRESSIONS):
        values = np.full(indices.size, values)
    added = _take(call, "values", values)
    given = added if isinstance(added, Datatype) else added.datatype
    if given != onto or onto.itemsize_bytes < 4:
        raise DatatypeError(
            f"{call}: x is of {onto}, and values are of {given}, but both must be of one datatype of 4 or 8 bytes; "
            f"convert them"
        )
    if not target.size:
        return target.copy() if not on_gpu else zeros(0, onto.name, call.device)
    values = values if isinstance(values, (Array, *EXPRESSIONS)) else call.arrays["values"]
    bound = [array for each in (indices, values) if isinstance(each, EXPRESSIONS) for _, array in flat_of(each).arrays]
    device = device_of(*bound, *(each for each in (x, indices, values) if isinstance(each, Array)), device=device)
    shown = {"items": "values"}
    sums = _by_index(call.name, indices, values, Add, target.size, device, deterministic=deterministic, shown=shown)
    if not on_gpu:
        return target + sums
    total = keep_primitive(VectorAdd, device, onto.name)
    return total.run_once(a=asarray(target, device), b=asarray(sums, device))["output"]
