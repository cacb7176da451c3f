"""Functions of sorted items: medians, quantiles and percentiles; and of extremes.

The items between which quantiles lie are selected on the GPU, or taken from the sorted items, where that moves fewer
bytes. Of numpy arrays the host interpolates a few numbers, as numpy does; of an Array an expression does.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError
from ..primitives import SegmentedSort
from ..primitives.nth_element import MOST_PLACES
from ..runtime.array import Array, asarray, default_float, empty
from ..runtime.context import context_of
from ..types.datatype import STORAGE_DATATYPES
from ..types.expression import LEAF_DATATYPES, f32, f64, index
from ..types.expression_functions import isnan, where
from ..types.options import one_of
from .arguments import Call, argument_array, argument_datatype, check_not_counted, deliver, device_of, numpy_result
from .arrays import take
from .families import family
from .orders import transpose
from .reductions import Axes, max, min
from .repeated_calls import one_shot
from .scans import cumsum
from .segments import segmented_sort
from .signatures import AxisLike
from .sorts import select_places, sort
from .stacks import stack
from .summaries import count_nonzero, weights_along

#: How a quantile lies between items; see `numpy.quantile`.
QuantileMethod: TypeAlias = Literal[
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
]  # fmt: skip

# Fewer items are sorted by one dispatch or few.
_LEAST_SELECTED = 1 << 13

#: Alpha and beta of the methods that interpolate. Source: R. Hyndman and Y. Fan, "Sample quantiles in statistical
#: packages" (1996). Integers stay such, as in numpy: by their datatype it decides on that of the result.
_CONTINUOUS: dict[str, tuple[float, float]] = {
    "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0), "linear": (1, 1),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
_METHODS: tuple[str, ...] = get_args(QuantileMethod)


def _by_steps(place: np.ndarray, is_lower: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the places of the items that a method without interpolation chooses."""
    below = np.floor(place)
    return np.where((place == below) & is_lower(below), below, below + 1)


#: Of the methods that choose an item, its place; from n, n - 1 and q.
_CHOSEN: dict[str, Callable[[Any, Any, Any], np.ndarray]] = {
    "inverted_cdf": lambda n, last, q: _by_steps(n * q - 1, lambda below: below == below),
    "closest_observation": lambda n, last, q: _by_steps(n * q - 1 - 0.5, lambda below: below % 2 == 1),
    "lower": lambda n, last, q: np.floor(last * q),
    "higher": lambda n, last, q: np.ceil(last * q),
    "nearest": lambda n, last, q: np.rint(last * q),
}


def places_of_quantiles(method: str, n: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return between which of n sorted items quantiles lie, and the share of the second one.

    Ranks are computed in the datatype of `q`, and shares are of it, as in numpy.
    """
    given = q.dtype
    if given.kind != "f":
        q = q.astype(np.int64)
    elif n.max(initial=0) > np.finfo(given).max:
        q = q.astype(np.float64)  # numpy's rank is infinite or NaN
    end = np.maximum(n - 1, 0)
    size, last = n.astype(q.dtype), (n - 1).astype(q.dtype)
    if method in _CHOSEN:
        chosen = np.clip(_CHOSEN[method](size, last, q), 0, end).astype(np.int64)
        return chosen, chosen, np.zeros(chosen.shape)
    if method == "midpoint":
        place = 0.5 * (np.floor(last * q) + np.ceil(last * q))
    elif method == "averaged_inverted_cdf":
        place = size * q - 1
    else:
        alpha, beta = _CONTINUOUS[method]
        place = last * q if method == "linear" else size * q + (alpha + q * (1 - alpha - beta)) - 1
    below, is_behind, is_before = np.floor(place), place >= last, place < 0
    first, second = (
        np.where(is_behind, end, np.where(is_before, 0, each)).astype(np.int64) for each in (below, below + 1)
    )
    # At either end both items are one. Then the share decides only on the sign of 0, which is numpy's with its shares.
    share = np.minimum(place - np.where(is_behind, -1, np.where(is_before, 0, below)), 2)  # which every dtype holds
    if method == "midpoint":
        share = np.where(place % 1 == 0, 0.0, 0.5)
    elif method == "averaged_inverted_cdf":
        share = np.where(share == 0, 0.5, 1.0)
    return first, second, share.astype(given if given.kind == "f" else place.dtype)


class _Rows:
    """The items of a call as rows, of which the GPU gives the items at some places of the sorted ones.

    Parameters
    ----------
    call : str
    x : object
    axis : object
    keepdims : bool
    device : wgpu.GPUDevice or None
    skips_nan : bool
        Whether only items count that are not NaN.
    """

    def __init__(
        self, call: str, x: Any, axis: AxisLike, keepdims: bool, device: wgpu.GPUDevice | None, skips_nan: bool
    ):
        made = Call(call, device)
        has_doubles = context_of(device_of(x, device=device)).has_float64 if isinstance(x, Array) else True
        known = STORAGE_DATATYPES if has_doubles else LEAF_DATATYPES
        made.take("x", x, known, shape="any", computes=True, fuses=False)
        items: Any = made.arrays["x"]
        self.on_gpu: bool = made.on_gpu
        if self.on_gpu:
            check_not_counted(call, items)
        #: Whether an Array's quantiles are of float64, as numpy's.
        self._is_double: bool = has_doubles and (items.dtype.kind != "f" or items.dtype.itemsize == 8)
        if skips_nan and self.on_gpu and items.dtype.kind == "f":
            raise ArgumentError(
                f"{call}: x is an Array, and how many of its items are not NaN is known to the GPU alone; give "
                f"x.to_numpy()"
            )
        items = items.astype(np.uint8) if items.dtype.kind == "b" else items
        along = Axes.of(call, axis, items.shape, keepdims)
        axes, others = along.combined, tuple(k for k in range(items.ndim) if k not in along.combined)
        self.shape: tuple[int, ...] = along.shape
        self.rows: int = prod(items.shape[k] for k in others)
        self.length: int = prod(items.shape[k] for k in axes)
        if (*others, *axes) != tuple(range(items.ndim)):
            items = transpose(items, (*others, *axes)) if self.on_gpu else items.transpose(*others, *axes)
        self.device: wgpu.GPUDevice = made.device
        self.dtype: np.dtype[Any] = items.dtype.newbyteorder("=")
        self._skips_nan = skips_nan
        self._items = items.reshape(-1) if items.ndim != 1 else items
        self._call = call

    def at(self, places: np.ndarray) -> Array:
        """Return what is at some places of the rows, each in order, NaN last; shape (rows, places)."""
        groups = -(-np.unique(places).size // MOST_PLACES)
        sort_moves = 1 + 2 * self.dtype.itemsize  # reads and writes of all items, of which a selection makes some 2.5
        if self.rows > 1 or self.length < _LEAST_SELECTED or 2.5 * groups > sort_moves:
            return cast(Array, take(self.sorted().reshape(self.rows, self.length), places, 1))
        call = Call(self._call, self.device)
        kind = call.hold("input", self._items, self._items)
        return select_places(call, kind, places).reshape(1, places.size)

    def sorted(self) -> Array:
        """Return them in one dimension, each row in order, NaN last."""
        items: Any = self._items if self.on_gpu else np.ascontiguousarray(self._items)
        if not self.on_gpu and items.dtype.itemsize < 4 and self.rows > 1:  # as segments are sorted
            items = items.astype({"i": np.int32, "u": np.uint32, "f": np.float32}[items.dtype.kind])
        items = asarray(items, self.device)
        return cast(Array, sort(items) if self.rows <= 1 else segmented_sort(items, length=self.length))

    def _count(self) -> np.ndarray:
        """Return how many items of each row are not NaN, of arrays on the host."""
        if self.dtype.kind != "f":
            return np.full(self.rows, self.length)
        return self.length - np.isnan(self._items.reshape(self.rows, self.length)).sum(axis=1)

    def interpolate(self, method: str, q: np.ndarray, *, is_weak: bool = False, is_median: bool = False) -> Any:
        """Return quantiles, shape (q.size, rows): of numpy arrays as numpy, else as an Array.

        A weak `q` is a Python number, by which the datatype of items does not change.
        """
        if self.rows and not self.length:
            on_gpu = np.float64 if self._is_double else np.float32
            kind = on_gpu if self.on_gpu else self.dtype if self.dtype.kind == "f" else np.float64
            found = np.full((q.size, self.rows), np.nan, kind)
            return asarray(found, self.device) if self.on_gpu else found
        if self.on_gpu:
            return self._interpolate_on_gpu(method, q, is_median)
        n = self._count() if self._skips_nan else np.full(self.rows, self.length)
        first, second, share = places_of_quantiles(method, n[None, :], q[:, None])
        if not first.size:
            found = np.zeros((2 * len(q) + 1, self.rows))
        elif self.rows == 1:
            found = self.at(np.concatenate([first[:, 0], second[:, 0], [self.length - 1]])).to_numpy()
        else:
            start = np.arange(self.rows) * self.length
            ends = [*(start + each for each in (first, second)), (start + self.length - 1)[None, :]]
            found = cast(Array, take(self.sorted(), np.concatenate(ends))).to_numpy()
        found = found.reshape(2 * len(q) + 1, self.rows).astype(self.dtype, copy=False)
        a, b, last = np.split(found, [len(q), 2 * len(q)])
        with np.errstate(all="ignore"):
            if is_median:
                value = np.where(share > 0, np.mean([a, b], axis=0), a)
            elif method in _CHOSEN:
                value = a
            else:
                rest = 1 - share
                if is_weak:
                    kind = self.dtype if self.dtype.kind == "f" else np.dtype(np.float64)
                    share, rest = share.astype(kind), rest.astype(kind)
                step = np.subtract(b, a)
                value = np.where(share >= 0.5, b - step * rest, a + step * share)
        if self._skips_nan:
            return np.where(n == 0, np.array(np.nan, value.dtype), value) if (n == 0).any() else value
        return np.where(np.isnan(last), last, value).astype(value.dtype) if self.dtype.kind == "f" else value

    def weigh(self, q: np.ndarray, weights: _Rows) -> Any:
        """Return the first items up to which weights are at least parts of their sum, shape (q.size, rows)."""
        if not (self.rows and self.length and q.size):
            return self.interpolate("lower", q)
        items, shares = (each._items.reshape(self.rows, self.length) for each in (self, weights))
        on_gpu, device = self.on_gpu or weights.on_gpu, (self if self.on_gpu else weights).device
        if not on_gpu:
            skipped = (items != items) & self._skips_nan
            shares = np.where(skipped, 0, shares.astype(np.float64))
            total = shares.sum(axis=1)
            if (shares < 0).any() or not (np.isfinite(total) & ((total > 0) | skipped.all(axis=1))).all():
                raise ArgumentError(
                    f"{self._call}: weights must be finite, not negative, not all 0; give np.abs(weights)"
                )
        keys, shares = (asarray(each, device) for each in (items, shares))
        shares = shares.astype(default_float(context_of(device))) if on_gpu else shares
        sort = Call(self._call, device).primitive(SegmentedSort, keys.datatype, shares.datatype, length=self.length)
        found = sort.run_once(keys=keys.ravel(), values=shares.ravel())
        keys, shares = (found[f"output_{of}"].reshape(items.shape) for of in ("keys", "values"))
        if on_gpu:
            return _weigh_on_gpu(keys, shares, q)
        items, sums = keys.to_numpy(), shares.to_numpy().cumsum(axis=1)
        with np.errstate(invalid="ignore"):
            sums = (sums / sums[:, -1:]).astype(q.dtype if q.dtype.kind == "f" else np.float64)
        sums[sums == 0] = -1  # what weighs nothing is not the least item
        sums[(items[:, -1] != items[:, -1]) & (not self._skips_nan)] = -1  # up to NaN, which is last
        places = np.minimum([np.searchsorted(each, q) for each in sums], self.length - 1)
        return np.take_along_axis(items, places, axis=1).T

    def _interpolate_on_gpu(self, method: str, q: np.ndarray, is_median: bool) -> Array:
        output = empty((len(q), self.rows), "f64" if self._is_double else "f32", self.device)
        if not output.size:
            return output
        firsts, seconds, shares = places_of_quantiles(method, np.array([self.length]), q)
        table = self.at(np.concatenate([firsts, seconds, [self.length - 1]]))
        as_floats = f64 if self._is_double else f32
        last = as_floats(take(table, np.array([2 * len(q)]), 1))
        for k, share in enumerate(shares.astype(np.float64).tolist()):
            a, b = (as_floats(take(table, np.array([each]), 1)) for each in (k, k + len(q)))
            if share == 0 or firsts[k] == seconds[k]:
                value = a
            elif is_median:
                value = (a + b) / 2.0
            else:  # from the nearer one, as numpy
                value = b - (b - a) * (1 - share) if share >= 0.5 else a + (b - a) * share
            output[k].copy_from(asarray(where(isnan(last), last, value)).reshape(self.rows))
        return output


def _weigh_on_gpu(keys: Array, weights: Array, q: np.ndarray) -> Any:
    """Return what `_Rows.weigh` does, of rows in order."""
    length, sums = keys.shape[1], cumsum(weights, axis=1)
    last, total = (take(each, [length - 1], 1) for each in (keys, sums))
    parts = f32(sums / total) if q.dtype == np.float32 else sums / total
    is_below = (sums <= 0) | (last != last)  # NaN comes last
    counts = [count_nonzero(asarray((parts < part) | is_below), axis=1) for part in q.tolist()]
    places = [asarray(where(count < length, count, length - 1) + index * length) for count in counts]
    return stack([take(keys.ravel(), each) for each in places])


@family()
def _middle(call: str, skips_nan: bool = False):
    def median(
        x: Any,
        axis: AxisLike = None,
        out: Any = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
        *,
        device: wgpu.GPUDevice | None = None,
    ) -> Any:
        """Parameters
        ----------
        x : numpy.ndarray or Array
            An Array of 8 bytes where the device computes with float64.
        axis : int or tuple of int, optional
            By default all items, of any shape.
        out : numpy.ndarray or Array, optional
            Where to put the result, of its shape; an Array of the result's datatype.
        overwrite_input : bool, default False
            `x` is never changed.
        keepdims : bool, default False
            Whether these axes stay, with one item each.
        device : wgpu.GPUDevice, optional
            By default that of an Array among the arguments, else `default_device()`.

        Returns
        -------
        numpy scalar, numpy.ndarray or Array
            Of numpy's dtype; on the GPU of f32 where that is float16, or the device has no float64.

        Notes
        -----
        Bools are 0 and 1. Of no items it is NaN, without numpy's warning.
        """
        rows = _Rows(call, x, axis, keepdims, device, skips_nan)
        found = rows.interpolate("midpoint", np.array([0.5]), is_median=True).reshape(rows.shape)
        return deliver(call, found if rows.on_gpu else numpy_result(found), out, "unsafe")

    return median


@_middle()
def median() -> None:
    """Return the median.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.median(np.array([[3, 1], [2, 9], [4, 4]]), axis=0)
    array([3., 4.])
    """


@_middle(skips_nan=True)
def nanmedian() -> None:
    """Return the median of the items that are not NaN, of a numpy array; else as `median`.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nanmedian(np.array([1, np.nan, 2, 9], dtype=np.float32))
    np.float32(2.0)
    """


@family()
def _quantiles(call: str, most: int, skips_nan: bool = False):
    def quantile(
        x: Any,
        q: Any,
        axis: AxisLike = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: QuantileMethod = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
        device: wgpu.GPUDevice | None = None,
    ) -> Any:
        """Parameters
        ----------
        x : numpy.ndarray or Array
            An Array of 8 bytes where the device computes with float64. Unlike in numpy, differences of an Array's
            integers do not wrap, and an item beside an infinity is no NaN.
        q : float or array_like of floats
            On the host. Ranks are computed in its dtype, as in numpy: in float32 they are rounded from 2²⁴ items on.
        axis : int or tuple of int, optional
            By default all items, of any shape.
        out : numpy.ndarray or Array, optional
            Where to put the result, of its shape; an Array of the result's datatype.
        overwrite_input : bool, default False
            `x` is never changed.
        method : str, default "linear"
            One of numpy's thirteen.
        keepdims : bool, default False
            Whether these axes stay, with one item each.
        weights : numpy.ndarray or Array, optional
            Not negative, for ``method="inverted_cdf"``; of the shape of `x`, or of that along `axis`. Those of numpy
            are checked. Sums of an Array's are in float64, or float32 where the device has no other.
        device : wgpu.GPUDevice, optional
            By default that of an Array among the arguments, else `default_device()`.

        Returns
        -------
        numpy scalar, numpy.ndarray or Array
            Of numpy's dtype; on the GPU of f32 where that is float16, or the device has no float64.

        Raises
        ------
        ArgumentError
            If a `q` is out of range, or has more than 2 dimensions.

        Notes
        -----
        Bools are 0 and 1. Of no items it is NaN, without numpy's warning or error.
        """
        one_of(f"{call}: method", method, _METHODS)
        if weights is not None:
            if method != "inverted_cdf":
                raise ArgumentError(f"{call}: method={method!r} takes no weights; give method='inverted_cdf'")
            made = Call(call, device)
            x, given = made.items("x", x), made.items("weights", weights)
            made.hold("weights", given, weights)
            weights = weights_along(call, given, x.shape, axis)
        asked = argument_array(call, "q", q)
        if asked.dtype.kind not in "biuf":
            raise DatatypeError(f"{call}: q is of {asked.dtype}, but must be numbers from 0 to {most}")
        if asked.ndim > 2:
            raise ArgumentError(f"{call}: q has {asked.ndim} dimensions, but must have at most 2; give np.ravel(q)")
        asked = asked.astype(asked.dtype.newbyteorder("="), copy=False)
        part = (asked if most == 1 else np.true_divide(asked, most)).reshape(-1)
        if not ((part >= 0) & (part <= 1)).all():
            raise ArgumentError(f"{call}: q={q!r:.60} must lie within 0 to {most}")
        rows = _Rows(call, x, axis, keepdims, device, skips_nan)
        # Of q that are integers the least or the greatest item, of its own dtype, as numpy has it.
        chosen = "lower" if method == "linear" and part.dtype.kind != "f" else method
        if weights is None:
            found = rows.interpolate(chosen, part, is_weak=type(q) in (int, float))
        else:
            found = rows.weigh(part, _Rows(call, weights, axis, keepdims, device, False))
        found = found.reshape((*asked.shape, *rows.shape))
        return deliver(call, found if isinstance(found, Array) else numpy_result(found), out)

    return quantile


@_quantiles(1)
def quantile() -> None:
    """Return quantiles.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.quantile(np.array([3, 1, 2, 4]), [0, 0.5, 1])
    array([1. , 2.5, 4. ])
    """


@_quantiles(100)
def percentile() -> None:
    """Return percentiles: `quantile` with `q` from 0 to 100.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.percentile(np.array([1, 2, 3, 4]), [25, 50]).tolist()
    [1.75, 2.5]
    """


@_quantiles(1, skips_nan=True)
def nanquantile() -> None:
    """Return quantiles of the items that are not NaN, of a numpy array; else as `quantile`.

    Of no such item they are NaN, without numpy's warning.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nanquantile(np.array([1, np.nan, 2, 9], dtype=np.float32), [0.5, 1]).tolist()
    [2.0, 9.0]
    """


@_quantiles(100, skips_nan=True)
def nanpercentile() -> None:
    """Return percentiles of the items that are not NaN, of a numpy array; else as `percentile`.

    {parameters}
    """


@one_shot()
def ptp(
    x: Any, axis: AxisLike = None, out: Any = None, keepdims: bool = False, *, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return the difference between the largest and the smallest item; integers wrap.

    Parameters
    ----------
    x : numpy.ndarray or Array
        An Array of float64 where the device computes with it.
    axis : int or tuple of int, optional
        By default all items, of any shape.
    out : numpy.ndarray or Array, optional
        Where to put the result, of its shape and the dtype of `x`.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        Of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.ptp(np.array([3, 1, 9]))
    np.int64(8)
    """
    call = "gw.ptp()"
    low, high = (cast(Any, function)(x, axis, keepdims=keepdims, device=device) for function in (min, max))
    if not isinstance(low, Array):
        if low.dtype.kind == "b":
            raise DatatypeError(f"{call}: x is of bool, which has no differences; give x.astype(np.uint8)")
        with np.errstate(all="ignore"):
            return deliver(call, np.subtract(high, low), out)
    argument_datatype(call, "x", x, low.dtype, STORAGE_DATATYPES)
    return deliver(call, asarray(high - low).astype(low.datatype, copy=False), out)
