"""How aggregates of groups become numpy's on the host: what was computed in words, codes or rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..runtime.array import Array, asarray
from ..runtime.host_items import with_missing
from ..types.expression import as_node, gather, index
from ..types.expression_functions import where
from .arrays import take
from .bins import of_sums
from .sorts import argsort

#: What becomes of a result in numpy, given also a function that returns another one by its name.
Finish: TypeAlias = Callable[[np.ndarray, Callable[[str], np.ndarray]], np.ndarray]
#: The row of none.
ABSENT = np.uint32(2**32 - 1)


def as_dtype(dtype: np.dtype[Any]) -> Finish:
    """Return what makes items of a dtype of them; integers are dates by their bits."""
    if dtype.kind in "Mm":
        return lambda items, _: items.astype(np.int64, copy=False).view(dtype)
    return lambda items, _: items.astype(dtype, copy=False)


def taken_from(items_of: Callable[[np.ndarray], np.ndarray], how: str, has_absent: bool) -> Finish:
    """Return what takes items by their rows; with `has_absent` there may be none, and last rows are one too large."""

    def taken(rows: np.ndarray, _: Any) -> np.ndarray:
        if not has_absent:
            return items_of(rows)
        is_absent = rows == (ABSENT if how == "first" else 0)
        rows = rows if how == "first" else rows - np.uint32(1)
        return with_missing(items_of(np.where(is_absent, 0, rows)), is_absent)

    return taken


def shown_where_some(rows: str, show: Callable[[np.ndarray], np.ndarray]) -> Finish:
    """Return what shows items; they are missing where a number of rows is 0."""
    return lambda items, of: with_missing(show(items), of(rows) == 0)


def missing_where(rows: str) -> Finish:
    """Return what lets items be missing where a number of rows is not 0."""
    return lambda items, of: with_missing(items, of(rows) != 0)


def in_dates(dtype: np.dtype[Any], least: int) -> Finish:
    """Return what makes dates or durations of their distances from the least one, which are floats."""

    def dates(distances: np.ndarray, _: Any) -> np.ndarray:
        missing = np.isnan(distances)
        whole = np.rint(np.where(missing, 0, distances)).astype(np.int64)
        return with_missing((least + whole).view(dtype), missing)

    return dates


def interpolated(first: np.ndarray, second: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return what lies between two items: of float64, or of the items' own floats."""
    dtype = first.dtype if first.dtype.kind == "f" else np.float64
    first, second = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(invalid="ignore"):
        between = first * (1 - share) + second * share  # an infinity beside a number is one
        return np.where((share == 0) | (first == second), first, between).astype(dtype)


def filled_where_none(items: np.ndarray, source: np.ndarray, value: Any) -> np.ndarray:
    """Return items by their places, and for the place −1 a value; None is what is missing."""
    found, is_none = np.append(items, np.zeros(1, items.dtype))[source], source < 0
    if value is None:
        return with_missing(found, is_none)
    found[is_none] = value
    return found


def put_in_order(first: Array, results: dict[str, Any]) -> dict[str, Any]:
    """Return columns on the GPU in the order of the first rows of their groups."""
    count = first.count
    assert count is not None
    rows = first.viewed_as((first.size,))
    order = argsort(asarray(where(index < gather(count, 0), rows, as_node(ABSENT))))
    return {name: take(column.viewed_as((column.size,)), order).counted_by(count) for name, column in results.items()}


def divided(rows: str, high: str | None) -> Finish:
    """Return what divides sums, of which another result may have the upper halves, by numbers of rows."""

    def mean(items: np.ndarray, of: Callable[[str], np.ndarray]) -> np.ndarray:
        sums = items if high is None else of_sums(of(high), items)
        with np.errstate(invalid="ignore"):
            return sums / of(rows)

    return mean


def spread_of(rows: str, sums: str, high: str | None, correction: float, takes_root: bool) -> Finish:
    """Return what makes variances of sums of squares, of which another result may have the upper halves."""

    def spread(squares: np.ndarray, of: Callable[[str], np.ndarray]) -> np.ndarray:
        kind = np.uint64 if high is None else object  # 64 bits hold the sum of squares, and else Python's integers
        number, total, squares = (each.astype(kind) for each in (np.maximum(of(rows), 1), of(sums), squares))
        if high is not None:
            squares = squares + of(high).astype(object) * 2**32
        mean, rest = total // number, total % number
        near = squares - 2 * mean * total + number * mean * mean  # the squared distances from the mean, rounded down
        distances = near.astype(np.float64) - rest.astype(np.float64) ** 2 / number.astype(np.float64)
        left = of(rows).astype(np.float64) - correction
        found = np.divide(distances, left, out=np.full(left.shape, np.nan), where=left > 0)
        return np.sqrt(found) if takes_root else found

    return spread


def total_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return numpy's dtype of sums of integers or bools."""
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
