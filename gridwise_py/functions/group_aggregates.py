"""What a group-by asks of the primitive for each aggregate, and what becomes of the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from ..primitives.fusion import EXPRESSIONS, flat_of
from ..primitives.group_spec import ORDERED, count, is_aggregate_name, refuse_wide, refuse_wide_nan
from ..runtime.array import asarray
from ..runtime.context import context_of
from ..runtime.host_items import with_missing
from ..types.datatype import ITEM_DATATYPES, as_datatype
from ..types.expression import as_node, index
from ..types.expression_functions import where
from ..types.operators import Add, BinOp, Max, Min, Multiply
from .arguments import stored_leaves
from .bins import sums_may_wrap, two_words
from .group_columns import Column, Columns, total_dtype
from .group_results import ABSENT, Finish, as_dtype, divided, in_dates, spread_of
from .grouped_rows import GroupedItems, GroupedRows
from .table_arguments import CALL

#: What is computed on the GPU of a result of the primitive, if there is one, and of the rows of the groups.
Compute: TypeAlias = Callable[[Any, GroupedRows], Any]
_DTYPES: dict[Any, type] = {"size": np.intp, "count": np.intp, "nunique": np.intp, "any": bool, "all": bool}


class Aggregates:
    """The aggregates of one call.

    Attributes
    ----------
    names : dict from str to str
        What the primitive calls those of the caller.
    wanted : dict from str to object
        What the primitive computes, also for others.
    same : dict from str to str
        What another one computes, by its name.
    computed : dict from str to Compute
    """

    def __init__(self, columns: Columns, wanted: Mapping[str, Any], skipna: bool):
        self._columns = columns
        self._skipna = skipna
        self.names = _argument_names(list(wanted))
        self.wanted: dict[str, Any] = {}
        self.same: dict[str, str] = {}
        self.computed: dict[str, Compute] = {}
        #: By which results become numpy's, one after the other.
        self._finish = defaultdict[str, list[Finish]](list)
        self._known: dict[Any, str] = {}
        #: What sorts the items of a column once for all that needs them so.
        self._in_order: dict[Column, Callable[[GroupedRows], GroupedItems]] = {}
        for name, (_, how, option) in wanted.items():
            self._add(self.names[name], columns.values.get(name), how, option)

    def finished(self, of: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
        """Return the caller's aggregates as numpy's, given what returns a result of any by its name."""
        found: dict[str, np.ndarray] = {}
        for name, own in self.names.items():
            found[name] = of(own)
            for finish in self._finish[own]:
                found[name] = finish(found[name], of)
        return found

    def _ask(self, name: str, column: Column | None, how: Any = "sum", option: float = 0.0) -> str:
        """Ask for an aggregate, without a column for the number of rows; return the first one that is the same."""
        known = self._known.setdefault((column, how, option), name)
        if known != name:
            self.same[name] = known
        elif column is None:
            self.wanted[name] = count
        else:
            options = (option,) if how in ("var", "std") else ()
            self.wanted[name] = (self._columns.argument(f"{name}_items", column), how, *options)
        return known

    def rows(self, present: Column | None = None) -> str:
        """Ask how many rows each group has, or how many of some; return the name of that."""
        return self._ask(self._unused("rows_"), present)

    def first_rows(self) -> str:
        """Ask for the first row of each group; return the name of that."""
        return self._ask(self._unused("first_"), Column(self._columns, index), Min)

    def _unused(self, name: str) -> str:
        """Return a name for an aggregate of the call itself, which none other has."""
        while name in (*self.names.values(), *self.wanted, *self.same):
            name += "_"
        return name

    def _add(self, name: str, column: Column | None, how: Any, option: float) -> None:
        """Take an aggregate of the caller."""
        if how in _DTYPES:
            self._finish[name].append(as_dtype(np.dtype(_DTYPES[how])))
        if column is None or how == "size":
            self._ask(name, None)
        elif how in ORDERED:
            self._ask_ordered(name, column, how, 0.5 if how == "median" else option)
        elif how in ("mean", "var", "std") and self._is_double(name, column, how):
            self._ask_moments(name, column, how, option)
        elif self._columns.on_gpu and (isinstance(how, BinOp) or not column.is_wide):
            self._ask(name, column, how, option)
        elif how in ("count", "any", "all"):
            self._ask_marks(name, column, how)
        elif how in ("first", "last") and (column.is_wide or column.missing is not None):
            self._ask_row(name, column, how)
        elif how == "mean" and (column.is_wide or column.kind in "biu"):
            self._ask_mean(name, column)
        elif how in ("var", "std") and column.kind in "biu":
            self._ask_spread(name, column, how, option)
        else:
            self._ask_items(name, column, how, option)
        if how in ("mean", "std") and column is not None and column.dates is not None:
            self._finish[name].append(in_dates(column.dates, column.ends[0] if how == "mean" else None))

    # ---- of the rows in the order of their groups

    def _ask_ordered(self, name: str, column: Column, how: str, q: float) -> None:
        """Let what needs the items of each group in order be computed."""
        self.rows()
        in_order = self._in_order.setdefault(column, cache(partial(GroupedItems, column)))
        if how == "nunique":
            self.computed[name] = lambda _, groups: in_order(groups).count_distinct()
        elif self._columns.on_gpu:
            self.computed[name] = lambda _, groups: in_order(groups).quantiles(q)
        else:
            self.computed[name] = lambda _, groups: in_order(groups).quantiles_of_host(q)

    def _is_double(self, name: str, column: Column, how: str) -> bool:
        """Whether a mean or a variance is of float64, and no sums of the host's items give it.

        Raises
        ------
        DatatypeError
            If the device does not compute with float64, and nothing else will do.
        """
        if column.kind == "f" and not column.is_wide:
            return False
        on_host = not self._columns.on_gpu
        if on_host and (how == "mean" or (column.kind in "iu" and column.ends[1] - column.ends[0] < 1 << 32)):
            return False
        has_float64 = context_of(self._columns.device).has_float64
        if column.is_wide and not has_float64:
            refuse_wide(CALL, name, as_datatype(column.items.dtype, ITEM_DATATYPES), how)
        return has_float64

    def _ask_moments(self, name: str, column: Column, how: str, correction: float) -> None:
        """Let a mean or a variance be computed in float64; means of float64 are sums divided by numbers of rows."""
        self.rows()
        if isinstance(column.items, EXPRESSIONS):
            stored_leaves(CALL, flat_of(column.items))  # raises for leaves that are no Arrays
        if how == "mean" and not self._skipna and column.is_wide and column.kind == "f":
            self._ask(name, column, Add)
            self.computed[name] = lambda sums, groups: groups.divided(sums)
        else:
            self.computed[name] = lambda _, groups: groups.moments(column.floats(how != "mean"), how, correction)

    # ---- of what the primitive computes

    def _present(self, column: Column, how: Any) -> Column | None:
        """Return which items count, if not all do, and kernels do not find out themselves."""
        is_asked = self._skipna or how == "count" or (column.missing is not None and how not in ("first", "last"))
        return column.present if is_asked else None

    def _let_be_missing(self, name: str, present: Column | None, how: Any) -> None:
        """Let results be missing where no item is present, or, unless these are left out, where one is not."""
        if present is None or (self._skipna and how not in ("first", "last", Min, Max)):
            return
        some = self.rows(present)
        if self._skipna:
            self._finish[name].append(lambda items, of: with_missing(items, of(some) == 0))
        else:
            rows = self.rows()
            self._finish[name].append(lambda items, of: with_missing(items, of(some) < of(rows)))

    def _ask_marks(self, name: str, column: Column, how: str) -> None:
        """Ask how many items are present, or whether any or all are not 0."""
        present = self._present(column, how)
        if how == "count" and (present is not None or column.is_wide or column.kind != "f"):
            self._ask(name, present)
            return
        if how != "count" and (column.is_wide or present is not None):
            truth: Any = column.items != 0
            if present is not None:  # what is missing is true, as NaN is, unless it is left out
                is_left_out = how == "any" and self._skipna
                truth = truth & present.items if is_left_out else truth | ~present.items
            column = column.made(asarray(truth, self._columns.device))
        self._ask(name, column, how)

    def _ask_row(self, name: str, column: Column, how: str) -> None:
        """Ask for the first or the last row of each group, whose item is taken behind."""
        if self._columns.on_gpu and self._skipna and column.kind == "f":
            refuse_wide_nan(CALL, name, column.array.datatype)
        present, row = self._present(column, how), index
        if present is not None:
            row = where(present.expression, index, as_node(ABSENT if how == "first" else np.uint32(0)))
        self._ask(name, column.made(row), Min if how == "first" else Max)
        if self._columns.on_gpu:
            self.computed[name] = lambda rows, groups: groups.taken(column.array, rows)
        else:
            self._finish[name].append(lambda rows, _: column.show_rows(rows))
        self._let_be_missing(name, present, how)

    def _ask_sums(self, name: str, column: Column, may_wrap: bool) -> str | None:
        """Ask for sums; if they may wrap, of the low words, and of the high words by the name that is returned."""
        if not may_wrap:
            self._ask(name, column, Add)
            return None
        upper, lower = map(column.made, two_words(column.items))
        self._ask(name, lower, Add)
        return self._ask(self._unused(f"{name}_high_"), upper, Add)

    def _ask_mean(self, name: str, column: Column) -> None:
        """Ask for what gives the mean in float64: sums are exact for integers, and in doubles else."""
        present, items = self._present(column, "mean"), column
        if column.dates is not None:  # distances from the first one, which float64 holds
            items = column.made(column.items.view(np.uint64) - np.uint64(column.ends[0] % 2**64))
        items = items.without(present, 0).summable
        high = self._ask_sums(name, items, items.is_wide and sums_may_wrap(items.items))
        self._finish[name].append(divided(self.rows(present), high))
        self._let_be_missing(name, present, "mean")

    def _ask_spread(self, name: str, column: Column, how: str, correction: float) -> None:
        """Ask for what gives the variance of integers: exact sums of distances from the least, and of their squares."""
        present, (least, most) = self._present(column, how), column.ends
        # In u32, because differences of small integers would wrap.
        distances = column.made(column.items.astype(np.uint32) - np.uint32(least & 0xFFFFFFFF)).without(present, 0)
        squares = column.made(np.square(distances.items, dtype=np.uint64))
        sums = self._ask(self._unused(f"{name}_sums_"), distances.summable, Add)
        high = self._ask_sums(name, squares, (most - least) ** 2 * squares.items.size >= 1 << 64)
        self._finish[name].append(spread_of(self.rows(present), sums, high, correction, how == "std"))
        self._let_be_missing(name, present, how)

    def _ask_items(self, name: str, column: Column, how: Any, option: float) -> None:
        """Ask for what combines items of the host."""
        present, items = self._present(column, how), column
        if present is not None and isinstance(how, BinOp):
            items = column.without(present, how.identity_for(as_datatype(column.items.dtype, ITEM_DATATYPES)))
        if how in (Add, Multiply) and column.kind in "biu":
            items = items.summable if how == Add else items.totals
            self._finish[name].append(as_dtype(column.dates or total_dtype(column.items.dtype)))
        elif how in ("first", "last", Min, Max) or (
            isinstance(how, BinOp) and how.builtin and how not in (Add, Multiply)
        ):
            self._finish[name].append(lambda found, _: column.show(found))
        self._ask(name, items, how, option)
        self._let_be_missing(name, present, how)


def _argument_names(names: Sequence[str]) -> dict[str, str]:
    """Return what the primitive calls aggregates: their names, or others where it needs these itself."""
    found: dict[str, str] = {}
    for k, name in enumerate(names):
        found[name] = name if is_aggregate_name(name) else f"{name}_" if is_aggregate_name(f"{name}_") else f"value_{k}"
        while found[name] in names and found[name] != name:
            found[name] += "_"
    return found
