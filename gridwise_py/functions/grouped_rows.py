"""Rows in the order of their groups: moments in float64, quantiles, and the number of distinct items."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..primitives import Map, ReduceByKey, Repeat
from ..primitives.fusion import flat_of
from ..primitives.group_spec import GroupSpec
from ..runtime.array import Array, asarray, default_float
from ..runtime.context import context_of
from ..runtime.host_items import with_missing
from ..types.expression import f32, f64, gather, index, u32
from ..types.expression_functions import isnan, minimum, previous, where
from ..types.operators import Add
from ..types.program import part_of
from .arguments import keep_primitive
from .arrays import take
from .double_moments import computed, computed_with
from .group_columns import Column, Columns
from .order_statistics import places_of_quantiles
from .orders import lexsort
from .scans import scan
from .sorts import argsort

_FLOATS = {4: f32, 8: f64}


class GroupedRows:
    """The rows of each group, and what is computed of them.

    Parameters
    ----------
    spec : GroupSpec
        How the primitive grouped them.
    columns : Columns
    rows : Array or None
        How many each group has, of u32; needed but for `taken`.
    count : Array
        The number of groups.
    skips_nan, deterministic : bool
    """

    def __init__(
        self, spec: GroupSpec, columns: Columns, rows: Any, count: Array, skips_nan: bool, deterministic: bool
    ):
        self._spec, self._columns, self._rows, self.count = spec, columns, rows, count
        self.skips_nan = skips_nan
        self._options = {"deterministic": True} if deterministic else {}

    @cached_property
    def order(self) -> Array:
        """The rows, by groups, of u32."""
        spec, device = self._spec, self._columns.device
        words: list[Any] = [] if spec.key_words else [self._columns.wide["keys"].array]
        for step in spec.flat.program.results[: spec.key_words]:
            flat = part_of(spec.flat, [step])
            words.append(keep_primitive(Map, device, flat.without_arrays()).run_once(**dict(flat.arrays))["output"])
        if spec.key_mask is not None:
            words = [asarray(words[0] & spec.key_mask)]
        return argsort(words[0]) if len(words) == 1 else lexsort(tuple(words))

    @cached_property
    def groups(self) -> Array:
        """The group of each row, in their order."""
        if not self.order.size:
            return self.order
        primitive = keep_primitive(Repeat, self.order.device, None, size=self.order.size)
        return primitive.run_once(counts=self._rows)["output"].viewed_as((self.order.size,))

    @cached_property
    def rows(self) -> Array:
        """How many rows each group has, with room for more groups."""
        return self._rows.viewed_as((self._rows.size,))

    def sum_expression(self, items: Any) -> Array:
        """Return the sums of an expression of Arrays in that order."""
        if not self.order.size:
            return self.rows
        flat = flat_of(items)
        return self._summed(flat.without_arrays(), **dict(flat.arrays))

    def _summed(self, items: Any, **arrays: Any) -> Array:
        """Return the sums of items in that order, or of an expression of arrays."""
        options = {} if arrays else self._options
        kind, size = items if arrays else items.datatype, self._rows.size
        primitive = keep_primitive(ReduceByKey, self.order.device, "u32", kind, Add, size=size, **options)
        found = primitive.run_once(keys=self.groups, **(arrays or {"items": items}))["output_values"]
        return found.viewed_as((found.size,))

    def divided(self, sums: Array) -> Array:
        """Return sums of float64 divided by the numbers of rows."""
        return asarray(sums.viewed_as((sums.size,)) / f64(self.rows)).counted_by(self.count)

    def taken(self, items: Array, rows: Array) -> Array:
        """Return the item of a row of each group."""
        return take(items, rows.viewed_as((rows.size,))).counted_by(self.count)

    def moments(self, items: Array, how: str, correction: float) -> Array:
        """Return ``"mean"``, ``"var"`` or ``"std"`` of items of float64; NaN where the divisor is not positive."""
        if not items.size:
            return items.counted_by(self.count)
        items = take(items, self.order)
        counts, numbers = self.rows, items
        if self.skips_nan:
            counts = self.sum_expression(u32(~isnan(items)))
            numbers = computed("numbers", items, skips_nan=True)
        found = computed_with("quotients", self._summed(numbers), 0, 0.0, np.nan, counts=counts)
        if how != "mean":
            places: dict[str, Any] = {"length": items.size, "step": items.size}
            centre = take(found, self.groups)
            squares = computed("distances", items, origin=centre, skips_nan=self.skips_nan, **places)
            takes_root: Any = how == "std"
            found = computed_with(
                "quotients", self._summed(squares), 0, correction, np.nan, counts=counts, takes_root=takes_root
            )
        return found.counted_by(self.count)


class GroupedItems:
    """Items in order within each group, behind them those that are missing: which are said to be, or are NaN."""

    def __init__(self, column: Column, groups: GroupedRows):
        self._column, self._groups = column, groups
        items = take(column.sortable(), groups.order)
        keys = [items, groups.groups]
        if column.missing is not None:
            missing = asarray(column.missing, items.device)
            keys.insert(1, asarray(u32(take(missing, groups.order))))
        places = lexsort(keys)
        self._items = take(items, places)
        #: The row of each item.
        self._rows: Array = take(groups.order, places)
        self._missing: Any = None if column.missing is None else take(keys[1], places)
        if items.dtype.kind == "f":
            self._missing = u32(isnan(self._items))

    @cached_property
    def _present(self) -> Array:
        """How many items of each group are not missing, with room for more groups."""
        groups = self._groups
        return groups.rows if self._missing is None else groups.sum_expression(1 - self._missing)

    @cached_property
    def _starts(self) -> Array:
        """Where the items of each group begin."""
        return scan(self._groups.rows, kind="exclusive")

    def count_distinct(self) -> Array:
        """Return how many different items each group has, of u32; what is missing is none."""
        of, items = self._groups.groups, self._items
        if items.dtype == np.float64:  # compared by their bits, which every device can; −0 is 0
            bits = items.view("u64")
            items = asarray(where(bits == 1 << 63, bits ^ bits, bits))
        is_first = u32((index == 0) | (of != previous(of)) | (items != previous(items)))
        if self._missing is not None:
            is_first = is_first * (1 - self._missing)
        return self._groups.sum_expression(is_first).counted_by(self._groups.count)

    def quantiles(self, q: float) -> Array:
        """Return a quantile of each group: of float32 for such items, or on a device without float64."""
        widest = default_float(context_of(self._items.device)).itemsize_bytes
        as_rank, as_float = _FLOATS[widest], _FLOATS[min(widest, self._items.datatype.itemsize_bytes)]
        if self._items.dtype.kind != "f":
            as_float = as_rank
        number = self._present
        place = (as_rank(number) - 1) * q
        below = u32(place)
        share = as_float(place - as_rank(below))
        first, second = (
            as_float(gather(self._items, self._starts + each)) for each in (below, minimum(below + 1, number - 1))
        )
        value = first * (1 - share) + second * share  # an infinity beside a number is one
        is_none = number == 0 if self._groups.skips_nan else number < self._groups.rows
        value = where(is_none, float("nan"), where((share == 0) | (first == second), first, value))
        return asarray(value).counted_by(self._groups.count)

    def quantiles_of_host(self, q: float) -> np.ndarray:
        """Return a quantile of each group as numpy computes it: of two rows that the GPU finds."""
        groups, column = self._groups, self._column
        number, rows, starts = (
            each.counted_by(groups.count).to_numpy().astype(np.int64)
            for each in (self._present, groups.rows, self._starts)
        )
        first, second, share = places_of_quantiles("linear", number, np.array([q]))
        chosen = take(self._rows, np.concatenate([starts + first, starts + second])).to_numpy()
        ends = column.items[chosen].reshape(2, -1)
        is_none = number == 0 if groups.skips_nan else number < rows
        if column.dates is None:
            return with_missing(_interpolated(ends[0], ends[1], share), is_none)
        between = ends[0] + np.rint((ends[1] - ends[0]) * share).astype(np.int64)
        return with_missing(column.show(between), is_none)


def _interpolated(first: np.ndarray, second: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return what lies between two items: of float64, or of the items' own floats."""
    dtype = first.dtype if first.dtype.kind == "f" else np.float64
    first, second = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(invalid="ignore"):
        between = first * (1 - share) + second * share  # an infinity beside a number is one
        return np.where((share == 0) | (first == second), first, between).astype(dtype)
