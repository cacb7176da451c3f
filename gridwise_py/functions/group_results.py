"""How results of groups are delivered: on the host as numpy's, which were computed in words, codes or rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ..runtime.array import Array, asarray
from ..runtime.host_items import with_missing
from ..types.expression import as_node, gather, index
from ..types.expression_functions import where
from .arrays import take
from .bins import of_sums
from .group_columns import Column
from .labels import numbered
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


def in_dates(dates: np.dtype[Any], least: int | None) -> Finish:
    """Return what makes dates of their distances from the least one, which are floats; without it durations."""
    dtype = np.dtype("m8[{1}{0}]".format(*np.datetime_data(dates))) if least is None else dates

    def made(distances: np.ndarray, _: Any) -> np.ndarray:
        missing = np.isnan(distances)
        whole = np.rint(np.where(missing, 0, distances)).astype(np.int64)
        return with_missing(((least or 0) + whole).view(dtype), missing)

    return made


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


# ---- all columns


def put_in_order(first: Array, results: dict[str, Any]) -> dict[str, Any]:
    """Return columns on the GPU in the order of the first rows of their groups."""
    count = first.count
    assert count is not None
    rows = first.viewed_as((first.size,))
    order = argsort(asarray(where(index < gather(count, 0), rows, as_node(ABSENT))))
    return {name: take(column.viewed_as((column.size,)), order).counted_by(count) for name, column in results.items()}


def on_host(
    keys: Mapping[str, Column],
    codes: dict[str, np.ndarray],
    results: Mapping[str, np.ndarray],
    first: np.ndarray | None,
    dropna: bool,
    of_none: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the columns of keys and of aggregates.

    Parameters
    ----------
    keys : mapping from str to Column
    codes : dict from str to numpy.ndarray
        The keys of the groups, of labels their codes.
    results : mapping from str to numpy.ndarray
        The aggregates.
    first : numpy.ndarray, optional
        The first row of each group, if groups are in the order of these.
    dropna : bool
        Whether groups without a key are left out.
    of_none : mapping from str to object, optional
        By aggregate the value for no rows, None for what is missing; if combinations without rows are groups, too.
    """
    found = {name: column.show(codes[name]) for name, column in keys.items()} | dict(results)
    if first is not None or dropna:
        rows = np.arange(len(next(iter(codes.values())))) if first is None else np.argsort(first)
        if dropna:
            rows = rows[~np.logical_or.reduce([each.lacks(codes[name]) for name, each in keys.items()])[rows]]
        found = {name: column[rows] for name, column in found.items()}
        codes = {name: each[rows] for name, each in codes.items()}
    if of_none is None:
        return found
    levels = {name: column.labels or numbered(found[name]) for name, column in keys.items()}
    codes = {name: codes[name] if column.labels else levels[name].codes for name, column in keys.items()}
    lengths = [each.labels.size + int(each.missing(codes[name]).any()) for name, each in levels.items()]
    places = np.ravel_multi_index(tuple(each.astype(np.intp) for each in codes.values()), lengths)
    source = np.full(prod(lengths), -1)
    source[places] = np.arange(places.size)
    order = np.arange(source.size) if first is None else np.append(places, np.flatnonzero(source < 0))
    made = zip(levels.items(), np.unravel_index(order, lengths), strict=True)
    return {name: each.of(place.astype(np.uint32)) for (name, each), place in made} | {
        name: _filled_where_none(found[name], source[order], value) for name, value in of_none.items()
    }


def _filled_where_none(items: np.ndarray, source: np.ndarray, value: Any) -> np.ndarray:
    """Return items by their places, and for the place −1 a value; None is what is missing."""
    found, is_none = np.append(items, np.zeros(1, items.dtype))[source], source < 0
    if value is None:
        return with_missing(found, is_none)
    found[is_none] = value
    return found
