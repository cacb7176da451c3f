"""Rolling windows, with the names of pandas."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..primitives.fusion import EXPRESSIONS
from ..primitives.reduce_axis import one_axis
from ..primitives.rolling import RollingResult, RollingWindows
from ..runtime.array import Array, asarray, default_float
from ..runtime.context import context_of
from ..types.datatype import STORAGE_DATATYPES
from ..types.expression import index
from ..types.expression_functions import previous, where
from ..types.operators import Max
from ..types.options import MOST_U32, integer
from .arguments import Call, argument_datatype, check_not_counted, check_one_length, device_of, keep_primitive
from .dates import dates_of
from .orders import with_last, with_last_at
from .scans import scan
from .selections import unique


class Rolling:
    """What `rolling` returns: windows, of which each method computes something, one item for each of `x`.

    Results are Arrays if `x` is one, else numpy arrays. Items of float32 give float32, others float64 where the device
    computes with it. They are NaN where a window has fewer than `min_periods` valid items: those that are neither NaN
    nor, as in pandas, infinite.
    """

    def __init__(self, items: Array, shape: tuple[int, ...], axis: int, is_host: bool, **options: Any):
        self._items, self._shape, self._axis, self._is_host = items, shape, axis, is_host
        self._starts: Array | None = options.pop("starts")
        self._options = options

    def __repr__(self) -> str:
        return f"Rolling({self._options['window']} of {self._shape} items of {self._items.datatype})"

    def _result(self, of: RollingResult, least: int = 0, correction: int = 0) -> Any:
        """Return a result that needs so many valid items, or more."""
        items, given = self._items, {} if self._starts is None else {"starts": self._starts}
        length = self._shape[-1]
        primitive = keep_primitive(
            RollingWindows, items.device, items.datatype, of, rows=prod(self._shape[:-1]), length=length,
            window=min(self._options["window"], length), least=max(self._options["least"], least),
            correction=correction, segmented=bool(given),
        )  # fmt: skip
        found = primitive.run_once(input=items, **given)["output"].reshape(self._shape)
        found: Any = found.to_numpy() if self._is_host else found
        return with_last_at(found, self._axis)

    def sum(self) -> Any:
        """Return the sums; 0 where `min_periods` is 0 and no item is valid."""
        return self._result("sum")

    def mean(self) -> Any:
        """Return the means."""
        return self._result("mean", 1)

    def min(self) -> Any:
        """Return the least items."""
        return self._result("min", 1)

    def max(self) -> Any:
        """Return the greatest items."""
        return self._result("max", 1)

    def count(self) -> Any:
        """Return how many items are not NaN, as floats; `min_periods` then counts all items, as in pandas."""
        return self._result("count")

    def var(self, ddof: int = 1) -> Any:
        """Return the variances: divided by the number of valid items less `ddof`; NaN where that is not positive."""
        ddof = integer("gw.rolling().var(): ddof", ddof, 0, MOST_U32 - 1)
        return self._result("var", ddof + 1, ddof)

    def std(self, ddof: int = 1) -> Any:
        """Return the square roots of the variances; see `var`."""
        ddof = integer("gw.rolling().std(): ddof", ddof, 0, MOST_U32 - 1)
        return self._result("std", ddof + 1, ddof)


class _OfDates(Rolling):
    """Windows of dates or durations, computed with floats in their places."""

    def __init__(self, dates: np.ndarray, roll: Callable[[np.ndarray], Rolling]):
        self._dates, self._roll = dates, roll
        vars(self).update(vars(roll(dates.astype(np.int64))))

    def _result(self, of: RollingResult, least: int = 0, correction: int = 0) -> Any:
        dtype, is_end = self._dates.dtype.newbyteorder("="), of in ("min", "max")
        is_exact = self._items.datatype.name == "f64" or (is_end and self._dates.size <= 1 << 24)
        if not is_exact or of in ("var", "std") or dtype.kind + of in ("Msum", "Mmean"):
            argument_datatype(f"gw.rolling().{of}()", "x", self._dates, dtype, STORAGE_DATATYPES)  # raises
        labels, found = self._dates[:0], super()
        if is_end:  # of ranks: floats do not hold all dates
            labels, ranks = unique(self._dates, return_inverse=True, device=self._items.device)
            found = self._roll(ranks)
        found = found._result(of, least)
        numbers = np.where(np.isnan(found), 0, found).astype(np.int64)
        return np.where(np.isnan(found), np.array("NaT", dtype), labels[numbers] if is_end else numbers.view(dtype))

    def count(self) -> Any:
        return super()._result("count")


@explained({"center": "each window ends at its item; gw.roll(result, -((window - 1) // 2)) centres them"})
def rolling(
    x: Any,
    window: int,
    min_periods: int | None = None,
    axis: int = -1,
    *,
    segment_ids: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Rolling:
    """Return windows that end at each item, and reach back `window` items, or to the first one.

    Parameters
    ----------
    x : array_like, pandas.Series, Array or expression
        Of bool, integers or floats; float64 where the device computes with it. What is missing in it is NaN. Of dates
        of the host there are min, max and count, of durations also sum and mean, in float64; NaT is missing.
    window : int
        How many items; it may be 0, or more than there are.
    min_periods : int, optional
        Valid items that a result needs, at most `window`, which is the default.
    axis : int, default -1
        Along which the windows lie.
    segment_ids : array_like or Array, optional
        Shape (n,), for `x` of one dimension: windows do not reach back across a change of these.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    Rolling
        With ``sum()``, ``mean()``, ``min()``, ``max()``, ``count()``, ``var(ddof=1)`` and ``std(ddof=1)``.

    Notes
    -----
    Windows are combined from their items and from totals of blocks; none is a difference of two prefix sums. So a NaN,
    or a large item, leaves no trace behind its windows, and float32 keeps its digits. See `RollingWindows`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.rolling(np.array([1, 2, np.nan, 4, 5], dtype=np.float32), 2).mean()
    array([nan, 1.5, nan, nan, 4.5], dtype=float32)
    >>> gw.rolling([3, 1, 2, 5], 3, min_periods=1).max()
    array([3., 3., 3., 5.])
    """
    call = Call("gw.rolling()", device)
    dtype = getattr(x, "dtype", None)
    if not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "") in tuple("biuf"):  # a nullable column of pandas
        x = x.to_numpy(dtype=np.float64, na_value=np.nan)
    dates = dates_of(x)
    if dates is not None:

        def roll(items: np.ndarray) -> Rolling:
            floats = np.where(np.isnat(dates), np.nan, items)
            return rolling(floats, window, min_periods, axis, segment_ids=segment_ids, device=device)

        return _OfDates(dates, roll)
    items = call.items("x", asarray(x, device) if isinstance(x, EXPRESSIONS) else x, computes=True)
    target = device_of(items, segment_ids, device=device)
    doubles = default_float(context_of(target))
    known = {name: each for name, each in STORAGE_DATATYPES.items() if name != "f64" or each is doubles}
    kind = call.hold("x", items, x, known)
    if isinstance(items, Array):
        check_not_counted(call.name, items)
    if not items.ndim:
        raise ArgumentError(f"{call}: x is a single item; give one dimension or more")
    along = one_axis(call.name, axis, items.ndim)
    window = integer(f"{call}: window", window, 0, MOST_U32)
    least = window if min_periods is None else integer(f"{call}: min_periods", min_periods, 0, window)
    starts = None if segment_ids is None else _starts_of(call, items, segment_ids, target)
    is_host = not isinstance(items, Array)
    items = with_last(items, along)
    shape = items.shape
    items = asarray(np.ascontiguousarray(items), target) if is_host else items
    if kind.name != "f32":
        items = items.astype(doubles, copy=False)
    return Rolling(items.viewed_as((items.size,)), shape, along, is_host, window=window, least=least, starts=starts)


def _starts_of(call: Call, items: Any, segment_ids: Any, device: wgpu.GPUDevice) -> Array:
    """Return where the segment of each item begins."""
    ids = call.items("segment_ids", segment_ids)
    if items.ndim != 1 or ids.ndim != 1:
        raise ArgumentError(
            f"{call}: x has shape {items.shape}, segment_ids {ids.shape}; segments are of one dimension: give "
            f"x.ravel(), and ids that differ from row to row"
        )
    check_one_length(call.name, {"x": items.size, "segment_ids": ids.size})
    if isinstance(ids, Array):
        return scan(where(ids != previous(ids), index, 0), Max)
    heads = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    lengths = np.diff(heads, prepend=0, append=ids.size)
    return asarray(np.repeat(np.append(0, heads), lengths).astype(np.uint32), device)
