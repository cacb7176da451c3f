"""Rows in the order of their groups: moments in float64, quantiles, and the number of distinct items."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..primitives import ReduceByKey, Repeat
from ..primitives.fusion import flat_of
from ..runtime.array import Array, asarray, default_float
from ..runtime.context import context_of
from ..types.expression import f32, f64, gather, index, u32
from ..types.expression_functions import isnan, minimum, previous, where
from ..types.operators import Add
from .arguments import keep_primitive
from .arrays import take
from .double_moments import computed, computed_with
from .orders import lexsort
from .scans import scan

_FLOATS = {4: f32, 8: f64}


class GroupedRows:
    """The rows of each group, and what is computed of them.

    Parameters
    ----------
    order : Array
        The rows, by groups, of u32.
    rows : Array
        How many each group has, of u32, with the number of groups as its count.
    skips_nan, deterministic : bool
    """

    def __init__(self, order: Array, rows: Array, skips_nan: bool, deterministic: bool):
        self.order, self._rows, self._skips_nan = order, rows, skips_nan
        self._options = {"deterministic": True} if deterministic else {}

    @cached_property
    def groups(self) -> Array:
        """The group of each row, in their order."""
        if not self.order.size:
            return self.order
        primitive = keep_primitive(Repeat, self.order.device, None, size=self.order.size)
        return primitive.run_once(counts=self._rows)["output"].viewed_as((self.order.size,))

    @property
    def count(self) -> Array:
        """How many groups there are."""
        assert self._rows.count is not None
        return self._rows.count

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
        primitive = keep_primitive(
            ReduceByKey,
            self.order.device,
            "u32",
            items if arrays else items.datatype,
            Add,
            size=self._rows.size,
            **options,
        )
        found = primitive.run_once(keys=self.groups, **(arrays or {"items": items}))["output_values"]
        return found.viewed_as((found.size,))

    def moments(self, items: Array, how: str, correction: float) -> Array:
        """Return ``"mean"``, ``"var"`` or ``"std"`` of items of float64; NaN where the divisor is not positive."""
        if not items.size:
            return items.counted_by(self.count)
        items = take(items, self.order)
        counts, numbers = self.rows, items
        if self._skips_nan:
            counts = self.sum_expression(u32(~isnan(items)))
            numbers = computed("numbers", items, skips_nan=True)
        found = computed_with("quotients", self._summed(numbers), 0, 0.0, np.nan, counts=counts)
        if how != "mean":
            places: dict[str, Any] = {"length": items.size, "step": items.size}
            centre = take(found, self.groups)
            squares = computed("distances", items, origin=centre, skips_nan=self._skips_nan, **places)
            takes_root: Any = how == "std"
            found = computed_with(
                "quotients", self._summed(squares), 0, correction, np.nan, counts=counts, takes_root=takes_root
            )
        return found.counted_by(self.count)


class GroupedItems:
    """Items in order within each group, behind them those that are missing.

    Parameters
    ----------
    groups : GroupedRows
    items : Array
        Of 4 or 8 bytes.
    missing : Array, optional
        Which items are missing, of bool; by default those that are NaN.
    """

    def __init__(self, groups: GroupedRows, items: Array, missing: Array | None = None):
        self._groups = groups
        items = take(items, groups.order)
        is_float = items.dtype.kind == "f"
        keys = [items, groups.groups]
        if missing is not None:
            keys.insert(1, asarray(u32(take(missing, groups.order))))
        places = lexsort(keys)
        self._items = take(items, places)
        #: The row of each item.
        self.rows: Array = take(groups.order, places)
        self._missing: Any = u32(isnan(self._items)) if is_float else None if missing is None else take(keys[1], places)

    @cached_property
    def present(self) -> Array:
        """How many items of each group are not missing, with room for more groups."""
        groups = self._groups
        return groups.rows if self._missing is None else groups.sum_expression(1 - self._missing)

    @cached_property
    def starts(self) -> Array:
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

    def quantiles(self, q: float, skips_missing: bool) -> Array:
        """Return a quantile of each group: of float32 for such items, or on a device without float64."""
        widest = default_float(context_of(self._items.device)).itemsize_bytes
        as_rank, as_float = _FLOATS[widest], _FLOATS[min(widest, self._items.datatype.itemsize_bytes)]
        if self._items.dtype.kind != "f":
            as_float = as_rank
        number = self.present
        place = (as_rank(number) - 1) * q
        below = u32(place)
        share = as_float(place - as_rank(below))
        first, second = (
            as_float(gather(self._items, self.starts + each)) for each in (below, minimum(below + 1, number - 1))
        )
        value = first * (1 - share) + second * share  # an infinity beside a number is one
        is_none = number == 0 if skips_missing else number < self._groups.rows
        value = where(is_none, float("nan"), where((share == 0) | (first == second), first, value))
        return asarray(value).counted_by(self._groups.count)
