"""The one-shot function of groups: aggregates of the rows of each key.

With numpy arrays the results are numpy arrays. With an Array or an expression of Arrays they are Arrays on the GPU that
carry their count, and nothing is read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError
from ..extras import imported
from ..primitives import GroupBy, Map, count
from ..primitives.fusion import EXPRESSIONS, flat_of
from ..primitives.group_spec import (
    AGGREGATES,
    OPERATORS,
    ORDERED,
    Count,
    GroupSpec,
    group_spec,
    is_aggregate_name,
    parsed_aggregate,
    refuse_wide,
    refuse_wide_nan,
)
from ..runtime.array import Array, asarray
from ..runtime.context import capabilities, context_of
from ..runtime.host_items import cast_items, extremes, filled, integers_and_nulls, with_missing
from ..types.datatype import ITEM_DATATYPES, STORAGE_DATATYPES, as_datatype, conversion
from ..types.expression import LEAF_DATATYPES, Expression, as_node, f64, index
from ..types.expression_functions import StructExpression, isnan, where
from ..types.operators import Add, BinOp, Max, Min, Multiply
from ..types.options import integer
from ..types.program import part_of
from ..types.shapes import check_one_shape
from .arguments import (
    HostItems,
    argument_array,
    argument_datatype,
    check_not_chunked,
    check_one_length,
    device_of,
    keep_primitive,
    shape_of,
    stored_if_wide,
    stored_leaves,
    without_doubles,
)
from .arrays import take
from .bins import sums_may_wrap, two_words
from .double_moments import DoubleMoments
from .group_results import (
    ABSENT,
    Finish,
    as_dtype,
    divided,
    filled_where_none,
    in_dates,
    interpolated,
    missing_where,
    put_in_order,
    shown_where_some,
    spread_of,
    taken_from,
    total_dtype,
)
from .grouped_rows import GroupedItems, GroupedRows
from .labels import Labels, labels_of, numbered
from .order_statistics import places_of_quantiles
from .orders import lexsort
from .repeated_calls import one_shot
from .sorts import argsort
from .summaries import minmax
from .table_arguments import OneKey, asked_of

#: A column: an array of numpy or what numpy makes one of, an Array, or an expression of Arrays.
Column: TypeAlias = HostItems | Array | Expression
_CALL = "gw.group_by()"
_WIDE = 8
#: Of fewer, a GPU's answer takes longer than to look at them on the host.
_LEAST_BYTES_ON_GPU = 8 << 20
_SAMPLE = 1 << 12
_SHOWN_ROWS = 10
_OF_LABELS = ("first", "last", "min", "max", "count", "size", "nunique")
_OF_DATES = (*_OF_LABELS, "mean", "std", "median", "quantile")
#: Aggregates of no rows, where they are not missing.
_OF_NONE: dict[Any, Any] = {"size": 0, "count": 0, "nunique": 0, "any": False, "all": True, Add: 0, Multiply: 1}
#: What columns may be of: what expressions read, and numbers of 8 bytes.
_COLUMNS = {
    name: datatype
    for name, datatype in STORAGE_DATATYPES.items()
    if name in LEAF_DATATYPES or datatype.itemsize_bytes == _WIDE
}


@dataclass(frozen=True, repr=False)
class Groups:
    """What `group_by` returns: a row for each group, in ascending order of the keys.

    Columns are items, ``groups["total"]``, and attributes, ``groups.total``, where these are no others.

    Attributes
    ----------
    keys : numpy.ndarray, Array, tuple or dict
        A tuple or a dict of columns where they were given so.
    columns : dict from str to numpy.ndarray or Array
        All columns by their names, those of the keys first: ``"key"``, of several ``"key_0"`` or the names given.
    count : numpy.ndarray or Array
        How many groups, one item of u32.
    """

    keys: Any
    columns: dict[str, Any]
    count: Any

    def __getitem__(self, name: str) -> Any:
        """Return a column."""
        if name not in self.columns:
            raise ArgumentError(f"the groups have no column {name!r}; they have {', '.join(self.columns)}")
        return self.columns[name]

    def __getattr__(self, name: str) -> Any:
        columns = self.__dict__.get("columns", {})
        if name not in columns:
            raise AttributeError(f"the groups have no column {name!r}; they have {', '.join(columns)}")
        return columns[name]

    def __repr__(self) -> str:
        return f"Groups({', '.join(f'{name}: {column.dtype}' for name, column in self.columns.items())})"

    def _repr_html_(self) -> str:
        """Return the first rows for a notebook; of columns on the GPU only the names, since nothing is read unasked."""
        columns = list(self.columns.values())
        rows, note = 0, "on the GPU; to_pandas() copies them"
        if not any(isinstance(column, Array) for column in columns):
            rows = len(columns[0])
            note = f"{rows:,} group{'' if rows == 1 else 's'}"
        names = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        types = "".join(f"<td><i>{escape(str(column.dtype))}</i></td>" for column in columns)
        shown = [
            "".join(f"<td>{escape(str(column[k]))}</td>" for column in columns) for k in range(min(rows, _SHOWN_ROWS))
        ]
        if rows > _SHOWN_ROWS:
            shown.append("<td>…</td>" * len(columns))
        body = "".join(f"<tr>{row}</tr>" for row in (types, *shown))
        return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table><p>{note}</p>"

    def to_numpy(self) -> dict[str, np.ndarray]:
        """Return the columns as numpy arrays, which copies those that are on the GPU."""
        return {
            name: column.to_numpy() if isinstance(column, Array) else column for name, column in self.columns.items()
        }

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with these columns.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return imported("pandas", "Groups.to_pandas()").DataFrame(self.to_numpy())

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame`` with these columns.

        Raises
        ------
        ImportError
            If polars is not installed.
        """
        return imported("polars", "Groups.to_polars()").DataFrame(self.to_numpy())


# Names that an aggregate given as a keyword would hide: what is not a column of the groups.
_TAKEN = {name for name in (*Groups.__annotations__, *vars(Groups)) if not name.startswith("_")}


@one_shot()
def group_by(
    keys: Any,
    /,
    by: Any = None,
    aggregates: Mapping[str, Any] | None = None,
    *,
    key_bits: int | Sequence[int | None] | None = None,
    skipna: bool = False,
    dropna: bool = False,
    sort: bool = True,
    observed: bool = True,
    size: int | None = None,
    deterministic: bool = False,
    device: wgpu.GPUDevice | None = None,
    **more: Any,
) -> Groups:
    """Aggregate the rows of each key.

    ``group_by(keys, total=(x, "sum"))``, or of a table ``group_by(table, "city", total=("price", "sum"))``.

    Parameters
    ----------
    keys : numpy.ndarray, Array or expression, or a tuple, list or dict of these; or a table
        Columns of one dimension, on the host of anything that has an order. A table is a DataFrame of pandas or polars,
        or a dict of columns.
    by : str or list of str, optional; or dict from str to tuple
        Behind a table, the columns of keys; else the aggregates as a dict.
    aggregates : dict from str to tuple, optional
        Aggregates by any names, beside or in place of keywords.
    key_bits : int or sequence of int, optional
        Keys of a column are integers below ``2**bits``. By default all bits, in numpy as many as the largest integer
        needs.
    skipna : bool, default False
        Leave out what is missing (NaN, None, NaT), as pandas does. Of none the sum is 0, the product 1, ``"any"``
        false, ``"all"`` true, the rest missing.
    dropna : bool, default False
        Leave out groups without a key (NaN, None, NaT), on the host; else they come last.
    sort : bool, default True
        Whether groups are in the order of their keys; else in that of their first rows.
    observed : bool, default True
        Of categories, whether only those are groups that have rows; on the host.
    size : int, optional
        The groups that there is room for on the GPU; by default as many as rows.
    deterministic : bool, default False
        For floats: the same bits on every run and adapter.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.
    **more
        Aggregates by their names: `count`, or ``(x, op)`` with an operator or ``"sum"``, ``"prod"``, ``"min"``,
        ``"max"``, ``"mean"``, ``"var"``, ``"std"``, ``"any"``, ``"all"``, ``"first"``, ``"last"``, ``"median"``,
        ``"quantile"``, ``"nunique"`` (distinct items), ``"count"`` (of what is not missing), ``"size"`` (of rows).
        ``(x, "std", 1)`` divides by n − 1, as pandas does; ``(x, "quantile", 0.9)`` is the ninth decile.

    Returns
    -------
    Groups
        Arrays carry their counts.

    Raises
    ------
    ArgumentError, DatatypeError, LengthError
        If an argument does not fit: no group is computed then.

    Notes
    -----
    In numpy, results have numpy's dtypes: sums and products of integers and bools are of int64 or uint64, their means
    and variances of float64, counts of intp, and minima, maxima, first and last items of the items' dtype. Floats stay
    what they are, but sums, means, variances and deviations of float16 are float32.

    On the GPU, sums and products are of u32, i32 or f32, and integers wrap; counts are of u32. Means and variances of
    integers and float64 are of float64 there, too, and need a device that computes with it: the rows are sorted once
    more for them, and variances are of the distances from each group's mean. Without it those of 4 bytes have means of
    f32. With `skipna` an Array's NaNs are left out of items of 4 bytes; of float64 only by means, variances, medians,
    quantiles and `nunique`.

    Medians, quantiles and ``"nunique"`` sort the rows once more. Quantiles are numpy's linear ones.

    On the host, text, categories and other labels have ``"first"``, ``"last"``, ``"min"``, ``"max"``, ``"count"`` and
    ``"nunique"``; dates also ``"mean"``, ``"std"``, ``"median"`` and ``"quantile"``, durations ``"sum"``, too. Integers
    beside nulls stay as they are; a result that is missing is NaN or NaT, or None beside labels and integers beyond
    2**53.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> city = np.array(["Rome", "Oslo", "Rome", "Rome"])
    >>> price = np.array([3, 5, 4, 8], dtype=np.float32)
    >>> groups = gw.group_by(city, mean=(price, "mean"), sales=gw.count)
    >>> groups.keys.tolist(), groups.mean.tolist(), groups.sales.tolist()
    (['Oslo', 'Rome'], [5.0, 5.0], [1, 3])
    """
    if isinstance(size, (Count, str, tuple)):
        raise ArgumentError(
            f"{_CALL}: size= is how many groups there is room for; give the aggregate another name, such as n, or "
            f"name it in a dict: aggregates={{'size': …}}"
        )
    hidden = next((name for name in more if name in _TAKEN), None)
    if hidden is not None:
        raise ArgumentError(
            f"{_CALL}: an aggregate called {hidden!r} would hide what groups.{hidden} is; name it in a dict, "
            f"aggregates={{{hidden!r}: …}}, and read groups[{hidden!r}]"
        )
    keys, wanted = asked_of(keys, by, aggregates, more)
    if isinstance(keys, tuple) and not keys:
        raise ArgumentError(f"{_CALL}: keys is an empty tuple; give at least one column of keys")
    return _Call(wanted, skipna, dropna, device, sort, observed).run(keys, key_bits, size, deterministic)


def _numbers(name: str, value: Any) -> np.ndarray:
    """Return a column as numpy makes it; what is missing in a nullable column of pandas is NaN."""
    dtype: Any = getattr(value, "dtype", None)
    if isinstance(dtype, np.dtype) or getattr(dtype, "kind", "") not in tuple("bf") or not value.isna().any():
        return argument_array(_CALL, name, value)
    return value.to_numpy(dtype=np.float32 if dtype.itemsize == 4 else np.float64, na_value=np.nan)


def is_column(value: Any) -> bool:
    """Whether keys are one column: not a dict, a tuple or a list of columns."""
    if isinstance(value, (Mapping, StructExpression)):
        return False
    if not isinstance(value, (tuple, list)):
        return True
    return not any(isinstance(each, (*EXPRESSIONS, Array)) or np.ndim(each) for each in cast(Sequence[Any], value))


def _least_bytes_on_gpu(device: wgpu.GPUDevice) -> float:
    """Of how many bytes the ends are found on the GPU: no CPU adapter is faster than the host."""
    return np.inf if capabilities(device).is_cpu else _LEAST_BYTES_ON_GPU


class _Column:
    """A column: what is found out about it, and made of it, once.

    Attributes
    ----------
    items : numpy.ndarray, Array or Expression
    value : object
        What the caller gave.
    labels : Labels, optional
        Of what is no number; the items are their codes.
    missing : numpy.ndarray, optional
        Which labels, dates or integers of a nullable column are missing.
    dates : numpy.dtype, optional
        Of dates or durations, which are integers here.
    """

    def __init__(
        self,
        call: _Call,
        items: Any,
        value: Any = None,
        labels: Labels | None = None,
        missing: np.ndarray | None = None,
        dates: np.dtype[Any] | None = None,
    ):
        self.call = call
        self.missing = missing if missing is not None and missing.any() else None
        self.dates = dates
        self.items = items
        self.value = value
        self.labels = labels
        self._ends: tuple[int, int] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of what the caller gave: of labels, dates or the items."""
        return self.dates or (self.items.dtype if self.labels is None else self.labels.labels.dtype)

    @property
    def aggregates(self) -> tuple[str, ...]:
        """What can be computed of them, where that is not all."""
        if self.labels is not None:
            return _OF_LABELS
        return AGGREGATES if self.dates is None else _OF_DATES if self.dates.kind == "M" else (*_OF_DATES, "sum")

    def show(self, items: np.ndarray) -> np.ndarray:
        """Return some of the items, or other codes or integers, as the caller knows them."""
        if self.labels is not None:
            return self.labels.of(items)
        return items.astype(self.items.dtype, copy=False) if self.dates is None else items.view(self.dates)

    def show_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the items of some rows as the caller knows them."""
        found = self.show(self.items[rows])
        return found if self.missing is None else with_missing(found, self.missing[rows])

    @cached_property
    def array(self) -> Array:
        """The items on the GPU."""
        return self.items if isinstance(self.items, Array) else asarray(self.items, self.call.device)

    @cached_property
    def expression(self) -> Any:
        """The items as kernels read them: one expression for all aggregates."""
        return self.items if isinstance(self.items, EXPRESSIONS) else self.array.as_expression()

    def find_ends(self, *, on_host: bool = False) -> tuple[int, int]:
        """Return the least and the largest of integers of the host; 0 and 0 of none.

        Many items of 4 bytes are uploaded as they are in any case, and a GPU reads them sooner than the host does.
        Calls whose results stay on the GPU do not wait for it.
        """
        if self._ends is None:
            is_small = self.items.nbytes < _least_bytes_on_gpu(self.call.device)
            if not self.items.size:
                ends: Any = (0, 0)
            elif on_host or is_small or self.call.on_gpu or self.items.dtype.itemsize != 4:
                ends = extremes(self.items)
            else:
                ends = [each.item() for each in minmax(self.array)]
            self._ends = int(ends[0]), int(ends[1])
        return self._ends

    def floats(self, from_least: bool) -> Array:
        """Return the items on the GPU in float64; integers of 8 bytes may be their distances from the least."""
        if self.missing is not None:
            return asarray(np.where(self.missing, np.nan, self.items), self.call.device)
        if self.array.dtype == np.float64:
            return self.array
        return DoubleMoments(self.array, (self.array.size,), (0,)).floats("f64", from_least)

    def sortable(self) -> Array:
        """Return the items on the GPU as 4 or 8 bytes, which are sorted."""
        if self.array.datatype.itemsize_bytes >= 4 and self.array.dtype.kind != "b":
            return self.array
        return self.array.astype(
            {"b": np.uint32, "u": np.uint32, "i": np.int32, "f": np.float32}[self.array.dtype.kind]
        )

    @cached_property
    def summable(self) -> _Column:
        """Integers or bools whose sums do not wrap where numpy's do not: of 8 bytes only where they must be."""
        items = self.items
        if items.dtype.itemsize == _WIDE or items.dtype.kind == "b" or not items.size:
            return self
        bound = 2**32 if items.dtype.kind == "u" else 2**31
        some = items[:_SAMPLE]  # may tell that they are not to be uploaded as they are
        least, most = int(some.min()), int(some.max())
        if max(-least, most) * items.size < bound:
            least, most = self.find_ends()
        if max(-least, most) * items.size < bound:
            return self
        if "expression" not in self.__dict__:
            self.__dict__.pop("array", None)  # was there for the ends alone
        return _Column(self.call, cast_items(items, total_dtype(items.dtype)))

    @cached_property
    def present(self) -> _Column | None:
        """Which items are neither NaN nor null; None where all are, or kernels find out themselves."""
        if self.missing is not None:
            return _Column(self.call, ~self.missing)
        if self.items.dtype.kind != "f" or self.items.dtype.itemsize < _WIDE:
            return None
        found = ~np.isnan(self.items)
        return None if found.all() else _Column(self.call, found)


class _Call:
    """One call: its columns as the primitive takes them, and how its results become the caller's."""

    def __init__(
        self, aggregates: Mapping[str, Any], skipna: bool, dropna: bool, device: wgpu.GPUDevice | None, sort: bool,
        observed: bool,
    ):  # fmt: skip
        #: By the caller's names: a column, or None for the number of rows, what is computed, and a correction.
        self._aggregates = {name: parsed_aggregate(_CALL, name, each) for name, each in aggregates.items()}
        self._skipna = skipna
        self._dropna = dropna
        self._sorts, self._observed = sort, observed
        self._asked = device
        #: By the identity of what the caller gave: one that is given twice is checked and uploaded once.
        self._columns: dict[int, _Column] = {}
        #: Those of keys, by their names.
        self._keys: dict[str, _Column] = {}
        #: Arguments of 8 bytes, which no expression reads.
        self._wide: dict[str, _Column] = {}
        #: What the primitive calls the aggregates.
        self._names = _argument_names(list(aggregates))
        #: Means and variances in float64, and what needs items in order, by these names: the column, what is computed,
        #: and the correction or quantile.
        self._moments: dict[str, tuple[_Column, Any, float]] = {}
        self._ordered: dict[str, tuple[_Column, Any, float]] = {}
        #: Means of float64 on the GPU that are sums divided by numbers of rows.
        self._divided: list[str] = []
        #: First and last items, by these names: the columns of which the rows are found.
        self._taken: dict[str, _Column] = {}
        #: What becomes of their results in numpy, by these names.
        self._finish: dict[str, Finish] = {}

    def run(self, keys: Any, key_bits: Any, size: int | None, deterministic: bool) -> Groups:
        """Check everything, upload what is on the host, and compute."""
        size = None if size is None else integer("size", size, 1)
        named = self._named(keys)
        self._check(named, {name: column for name, (column, _, _) in self._aggregates.items() if column is not None})
        columns = [column.items for column in self._columns.values()]
        self.on_gpu: bool = any(isinstance(each, (Array, *EXPRESSIONS)) for each in columns)
        self._check_results()
        bound = [array for each in columns if isinstance(each, EXPRESSIONS) for _, array in flat_of(each).arrays]
        self.device: wgpu.GPUDevice = device_of(*bound, *columns, device=self._asked)
        for column in self._columns.values():
            if isinstance(column.items, np.ndarray):
                column.items = without_doubles(column.value, column.items, self.device)
        given, bits = self._take_keys(key_bits)
        wanted = dict(self._own_aggregates())
        rows, first = self._unused("rows_"), self._unused("first_")
        same = self._repeated(wanted)
        if self._moments or self._ordered or self._divided:
            wanted[rows] = count
        if not self._sorts:
            wanted[first] = index, Min
        one = next(iter(given.values())) if is_column(keys) or isinstance(keys, OneKey) else given
        # Of numpy's doubles NaNs are left out before they are uploaded.
        spec = group_spec(one, wanted, key_bits=bits, skipna=self._skipna, wide_has_nan=self.on_gpu, what=_CALL)
        arrays = stored_leaves(_CALL, spec.flat) | {name: column.array for name, column in self._wide.items()}
        primitive = keep_primitive(
            GroupBy, self.device, spec.without_arrays(), tuple(wanted), size=size, deterministic=deterministic
        )
        found = dict(primitive.run_once(**arrays))
        found |= {name: found[other] for name, other in same.items()}
        for name in self._divided:
            sums, numbers = (each.viewed_as((each.size,)) for each in (found[name], found[rows]))
            found[name] = asarray(sums / f64(numbers)).counted_by(found["count"])
        if self._moments or self._ordered:
            self._compute_sorted(self._order(spec), found[rows], found, deterministic)
        for name, column in self._taken.items():
            found[name] = take(column.array, found[name].viewed_as((found[name].size,))).counted_by(found["count"])
        keys_by_name = dict(zip(self._keys, (key.name for key in spec.keys), strict=True))
        results, number = self._results(keys_by_name, found, None if self._sorts else first)
        of_keys = {name: results[name] for name in self._keys}
        if one is not given:
            shown: Any = next(iter(of_keys.values()))
        else:
            shown = tuple(of_keys.values()) if isinstance(keys, (tuple, list)) else of_keys
        return Groups(shown, results, number)

    def _repeated(self, wanted: dict[str, Any]) -> dict[str, str]:
        """Take out what another one computes of the same column of 8 bytes, which has a pass each; return its name."""
        known, same = dict[Any, str](), dict[str, str]()
        for name, aggregate in list(wanted.items()):
            column = self._wide.get(f"{name}_items")
            if column is not None and known.setdefault((column, aggregate), name) != name:
                same[name] = known[column, aggregate]
                del wanted[name], self._wide[f"{name}_items"]
        return same

    def _compute_sorted(self, order: Any, rows: Array, found: dict[str, Any], deterministic: bool) -> None:
        """Put in what is computed of the rows in the order of their groups."""
        groups = GroupedRows(order, rows, self._skipna, deterministic)
        for name, (column, how, correction) in self._moments.items():
            found[name] = groups.moments(column.floats(from_least=how != "mean"), how, correction)
        sorted_once: dict[_Column, GroupedItems] = {}
        for name, (column, how, q) in self._ordered.items():
            if column not in sorted_once:
                missing = None if column.missing is None else asarray(column.missing, self.device)
                sorted_once[column] = GroupedItems(groups, column.sortable(), missing)
            items = sorted_once[column]
            if how == "nunique":
                found[name] = items.count_distinct()
                if not self.on_gpu:
                    self._finish[name] = as_dtype(np.dtype(np.intp))
            elif self.on_gpu:
                found[name] = items.quantiles(q, self._skipna)
            else:
                found[name] = self._quantiles_of_host(groups, items, column, q)

    def _quantiles_of_host(self, groups: GroupedRows, items: GroupedItems, column: _Column, q: float) -> np.ndarray:
        """Return a quantile of each group: of two rows that the GPU finds."""
        number, rows, starts = (
            each.counted_by(groups.count).to_numpy().astype(np.int64)
            for each in (items.present, groups.rows, items.starts)
        )
        first, second, share = places_of_quantiles("linear", number, np.array([q]))
        chosen = take(items.rows, np.concatenate([starts + first, starts + second])).to_numpy()
        ends = column.items[chosen].reshape(2, -1)
        is_none = number == 0 if self._skipna else number < rows
        if column.dates is None:
            return with_missing(interpolated(ends[0], ends[1], share), is_none)
        between = ends[0] + np.rint((ends[1] - ends[0]) * share).astype(np.int64)
        return with_missing(column.show(between), is_none)

    # ---- columns

    def _named(self, keys: Any) -> dict[str, Any]:
        """Return the columns of keys by their names."""
        if is_column(keys):
            found = {"key": keys}
        elif isinstance(keys, StructExpression):
            found = dict(keys.fields)
        elif isinstance(keys, Mapping):
            found = dict(cast(Mapping[str, Any], keys))
        else:
            found = {f"key_{k}": each for k, each in enumerate(keys)}
        clash = next((name for name in found if name in self._aggregates), None)
        if clash is not None:
            raise ArgumentError(f"{_CALL}: a column of keys and an aggregate are both called {clash!r}; rename one")
        return found

    def _check(self, keys: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Take the columns; raise where one is none, or lengths differ."""
        self._keys = {name: self._take(name, value, is_key=True) for name, value in keys.items()}
        taken = self._keys | {name: self._take(name, value, is_key=False) for name, value in values.items()}
        stored = {name: column.items for name, column in taken.items() if not isinstance(column.items, EXPRESSIONS)}
        check_one_length(_CALL, {name: int(items.size) for name, items in stored.items()}, "rows")
        shapes = {name: shape_of(column.items) for name, column in taken.items()}
        check_one_shape(
            _CALL, {name: shape for name, shape in shapes.items() if shape is not None and prod(shape) != 1}
        )

    def _take(self, name: str, value: Any, *, is_key: bool) -> _Column:
        """Take a column, and return it."""
        items: Any = stored_if_wide(value)
        if isinstance(items, EXPRESSIONS):
            return self._columns.setdefault(id(value), _Column(self, value))
        check_not_chunked(_CALL, name, value)
        if isinstance(items, Array):
            column = _Column(self, items, value)
        else:
            column = self._take_from_host(name, value, is_key=is_key)
        items = column.items
        if items.ndim != 1:
            raise ArgumentError(f"{_CALL}: {name} has shape {items.shape}, but columns have one dimension")
        argument_datatype(_CALL, name, value, items.dtype, _COLUMNS)
        if isinstance(items, np.ndarray):  # in this machine's order of bytes
            column.items = items.astype(items.dtype.newbyteorder("="), copy=False)
        return column if is_key and column.labels is not None else self._columns.setdefault(id(value), column)

    def _take_from_host(self, name: str, value: Any, *, is_key: bool) -> _Column:
        labels = labels_of(_CALL, name, value) if is_key else None
        nullable = None if is_key else integers_and_nulls(value)
        if labels is None and nullable is not None:
            return _Column(self, nullable[0], value, missing=nullable[1])
        items = labels.codes if labels is not None else _numbers(name, value)
        if items.dtype.kind in "Mm":
            items = items.astype(items.dtype.newbyteorder("="), copy=False)
            missing = np.isnat(items)
            return _Column(self, filled(items.view(np.int64), missing), value, missing=missing, dates=items.dtype)
        if labels is None and items.dtype.kind in "USO" and items.ndim == 1:
            labels = labels_of(_CALL, name, value)
        if labels is None:
            return _Column(self, items, value)
        missing = None if is_key else labels.missing(labels.codes)
        return _Column(self, labels.codes, value, labels, missing)

    def _check_aggregates(self) -> None:
        """Raise where there is no such aggregate of a column."""
        for name, (value, how, _) in self._aggregates.items():
            column = None if value is None else self._columns[id(value)]
            if column is None or (column.labels is None and column.dates is None):
                continue
            shown = next((key for key, op in OPERATORS.items() if op is how), how)
            if shown not in column.aggregates:
                raise DatatypeError(
                    f"{_CALL}: {name} is the {shown} of {column.dtype}, of which there are "
                    f"{', '.join(column.aggregates)}; {conversion(column.dtype, _COLUMNS)}, or make it a key"
                )

    def _check_results(self) -> None:
        """Raise where results that stay on the GPU could not be what is asked for."""
        self._check_aggregates()
        if not self.on_gpu:
            return
        for name, labels in ((name, column.labels) for name, column in self._keys.items()):
            if labels is not None:
                raise DatatypeError(
                    f"{_CALL}: {name} is of {labels.labels.dtype}, which no Array holds, but another column is on the "
                    f"GPU, so the results stay there; give numbers instead: labels, codes = np.unique({name}, "
                    f"return_inverse=True), and after the call labels[groups.keys.to_numpy()]"
                )
        for column in self._columns.values():
            if column.labels is not None or column.dates is not None:
                raise DatatypeError(
                    f"{_CALL}: a column is of {column.dtype}, which no Array holds, but another one is on the GPU, so "
                    f"the results stay there; give that one with to_numpy()"
                )
            if column.missing is not None:
                raise DatatypeError(f"{_CALL}: a column has nulls, but another one is on the GPU; fill the nulls first")
        if not self._observed:
            raise ArgumentError(f"{_CALL}: observed=False is for categories, which are on the host")
        if self._dropna:
            raise ArgumentError(
                f"{_CALL}: dropna=True is for arrays on the host; on the GPU leave rows out before, with "
                f"gw.compress(~gw.isnan(key), …)"
            )

    def _take_keys(self, key_bits: Any) -> tuple[dict[str, Any], list[int | None] | None]:
        """Return the columns of keys as the primitive takes them, and the bits that each needs, where that is known."""
        asked: list[Any] = [None] * len(self._keys) if key_bits is None else [key_bits]
        if isinstance(key_bits, (tuple, list)):
            asked = list(cast(Sequence[Any], key_bits))
        if len(asked) != len(self._keys):
            raise ArgumentError(
                f"{_CALL}: key_bits has {len(asked)} numbers, but there are {len(self._keys)} columns of keys"
            )
        for (name, column), bits in zip(self._keys.items(), asked, strict=True):
            is_host = isinstance(column.items, np.ndarray) and column.labels is None
            if bits is not None and is_host and column.items.dtype.kind in "iu":
                # On the host, as no check may come after a submission.
                _check_bits(name, column.find_ends(on_host=True), integer("key_bits", bits, 1))
        given: dict[str, Any] = {}
        is_alone = len(self._keys) == 1
        for place, (name, column) in enumerate(self._keys.items()):
            key, bits = column, None
            if isinstance(column.items, np.ndarray):
                key, bits = _narrow(column, alone=is_alone)
                if key.items.dtype.itemsize == _WIDE and not is_alone and not self.on_gpu:
                    # A code has no room for such a key, but for its place among the others.
                    column.labels = numbered(column.items)
                    key, bits = _narrow(_Column(self, column.labels.codes), alone=False)
            asked[place] = bits if asked[place] is None else asked[place]
            if not isinstance(key.items, EXPRESSIONS) and key.items.dtype.itemsize == _WIDE:
                self._wide["keys"] = key
                given[name] = key.items.dtype
            else:
                given[name] = key.expression
        return given, None if all(bits is None for bits in asked) else asked

    # ---- aggregates

    def _own_aggregates(self) -> Iterator[tuple[str, Any]]:
        """Yield the aggregates as the primitive takes them, by their names."""
        for name, (value, how, option) in zip(self._names.values(), self._aggregates.values(), strict=True):
            if value is None or how == "size":
                self._finish[name] = as_dtype(np.dtype(np.intp))
                yield name, count
                continue
            column = self._columns[id(value)]
            if how in ORDERED:
                self._ordered[name] = column, how, 0.5 if how == "median" else option
            elif how in ("mean", "var", "std") and self._is_double(name, column, how):
                if isinstance(column.items, EXPRESSIONS):
                    stored_leaves(_CALL, flat_of(column.items))  # raises for leaves that are no Arrays
                if how == "mean" and not self._skipna and getattr(column.items, "dtype", None) == np.float64:
                    self._divided.append(name)
                    yield self._plain(name, column, Add)
                else:
                    self._moments[name] = column, how, option
            elif self.on_gpu:
                yield self._of_gpu(name, column, how, *((option,) if how in ("var", "std") else ()))
            else:
                yield from self._of_host(name, column, how, option)
            if how in ("mean", "std"):
                self._show_dates(name, column, how)

    def _wrap(self, name: str, finish: Finish) -> None:
        """Let a result, as numpy's, become another one."""
        before = self._finish.get(name)
        self._finish[name] = finish if before is None else lambda items, of: finish(before(items, of), of)

    def _show_dates(self, name: str, column: _Column, how: Any) -> None:
        """Let a mean, or a deviation, become a date or a duration."""
        if column.dates is None:
            return
        unit, count_of_units = np.datetime_data(column.dates)
        dtype = column.dates if how == "mean" else np.dtype(f"m8[{count_of_units}{unit}]")
        self._wrap(name, in_dates(dtype, column.find_ends()[0] if how == "mean" else 0))

    def _is_double(self, name: str, column: _Column, how: Any) -> bool:
        """Whether a mean or a variance is of float64, and no sums of the host's items give it.

        Raises
        ------
        DatatypeError
            If the device does not compute with float64, and nothing else will do.
        """
        items: Any = column.items
        is_expression = isinstance(column.items, EXPRESSIONS)
        kind = "f" if is_expression and items.type == "f32" else "i" if is_expression else items.dtype.kind
        is_wide = not is_expression and items.dtype.itemsize == _WIDE
        if kind == "f" and not is_wide:
            return False
        if not self.on_gpu and how == "mean":
            return False
        if isinstance(items, np.ndarray) and not self.on_gpu and kind in "iu":
            least, most = column.find_ends()
            if most - least < 1 << 32:
                return False
        if context_of(self.device).has_float64:
            return True
        if is_wide:
            refuse_wide(_CALL, name, as_datatype(items.dtype, ITEM_DATATYPES), how)
        return False

    def _of_gpu(self, name: str, column: _Column, how: Any, *option: float) -> tuple[str, Any]:
        """Return an aggregate whose result stays on the GPU; items of 8 bytes are words, or found by their rows."""
        if isinstance(column.items, EXPRESSIONS):
            return name, (column.items, how, *option)
        if column.items.dtype.itemsize < _WIDE or isinstance(how, BinOp):
            return self._plain(name, column, how, *option)
        is_float = column.items.dtype.kind == "f"
        if how in ("first", "last"):
            if is_float and self._skipna:
                refuse_wide_nan(_CALL, name, column.array.datatype)
            self._taken[name] = column
            return name, (index, Min if how == "first" else Max)
        if how == "count":
            return name, (asarray(~isnan(column.array)).as_expression(), "sum") if is_float else count
        skips = is_float and self._skipna and how == "any"
        truth = (column.array != 0) & ~isnan(column.array) if skips else column.array != 0
        return name, (asarray(truth).as_expression(), how)

    def _order(self, spec: GroupSpec) -> Any:
        """Return the rows in the order of the groups."""
        if "keys" in self._wide:
            return argsort(self._wide["keys"].array)
        words: list[Any] = []
        for step in spec.flat.program.results[: spec.key_words]:
            flat = part_of(spec.flat, [step])
            primitive = keep_primitive(Map, self.device, flat.without_arrays())
            words.append(primitive.run_once(**stored_leaves(_CALL, flat))["output"])
        if spec.key_mask is not None:
            words = [asarray(words[0] & spec.key_mask)]
        return argsort(words[0]) if len(words) == 1 else lexsort(tuple(words))

    def _plain(self, name: str, column: _Column, how: Any, *rest: Any) -> tuple[str, Any]:
        """Return an aggregate of a column as it is."""
        dtype = column.items.dtype
        if dtype.itemsize < _WIDE:
            return name, (column.expression, how, *rest)
        self._wide[f"{name}_items"] = column
        return name, (dtype, how, *rest)

    def _of_host(self, name: str, column: _Column, how: Any, option: float) -> Iterator[tuple[str, Any]]:
        """Yield an aggregate of numpy's items, and those that it is finished with on the host."""
        items, dtype = column.items, column.items.dtype
        is_wide, takes_rows = dtype.itemsize == _WIDE, how in ("first", "last")
        skips = self._skipna or how == "count" or (column.missing is not None and not takes_rows)
        present = column.present if skips else None
        if how == "count":
            self._finish[name] = as_dtype(np.dtype(np.intp))
            if present is not None:
                yield name, (present.expression, "sum")
            else:
                yield name, count if dtype.kind != "f" or is_wide else (column.expression, "count")
        elif how in ("any", "all"):
            self._finish[name] = as_dtype(np.dtype(bool))
            if is_wide or present is not None:
                truth = items != 0
                if present is not None:  # what is missing is true, as NaN is, unless it is left out
                    is_left_out = how == "any" and self._skipna
                    truth = truth & present.items if is_left_out else truth | ~present.items
                column = _Column(self, truth)
            yield name, (column.expression, how)
        elif takes_rows and (is_wide or present is not None or column.missing is not None):
            # The row is found on the GPU, and its item taken on the host.
            self._finish[name] = taken_from(column.show_rows, how, has_absent=present is not None)
            if present is None:
                yield name, (index, Min if how == "first" else Max)
            elif how == "first":
                yield name, (where(present.expression, index, as_node(ABSENT)), Min)
            else:  # one more than the row: 0 where there is none
                yield name, (where(present.expression, index + 1, as_node(0, "u32")), Max)
        else:
            yield from self._combined_on_host(name, column, how, option, present)
            if column.missing is not None and not self._skipna:
                lacking = self._unused(f"{name}_lacking_")
                yield lacking, (_Column(self, column.missing).expression, "sum")
                self._wrap(name, missing_where(lacking))

    def _combined_on_host(
        self, name: str, column: _Column, how: Any, option: float, present: _Column | None
    ) -> Iterator[tuple[str, Any]]:
        """Yield an aggregate that combines items, and those that it is finished with on the host."""
        items, dtype = column.items, column.items.dtype
        if how == "mean" and (dtype.itemsize == _WIDE or dtype.kind in "biu"):
            yield from self._mean(name, column, present)
        elif how in ("var", "std") and dtype.kind in "biu":
            yield from self._spread(name, column, how, option, present)
        elif how in (Add, Multiply) and dtype.kind in "biu":
            self._finish[name] = as_dtype(column.dates or total_dtype(dtype))
            if present is not None:
                column = _Column(self, np.where(present.items, items, dtype.type(how == Multiply)))
            wide = column.summable if how == Add else _Column(self, cast_items(column.items, total_dtype(dtype)))
            yield self._plain(name, wide, how)
        elif present is not None and isinstance(how, BinOp):
            otherwise = how.identity_for(as_datatype(dtype, ITEM_DATATYPES))
            if how in (Min, Max):
                rows = self._unused(f"{name}_rows_")
                self._finish[name] = shown_where_some(rows, column.show)
                yield rows, (present.expression, "sum")
            yield self._plain(name, _Column(self, np.where(present.items, items, otherwise)), how)
        else:
            if how in ("first", "last") or (isinstance(how, BinOp) and how.builtin and how not in (Add, Multiply)):
                self._finish[name] = lambda found, _: column.show(found)
            yield self._plain(name, column, how, *((option,) if how in ("var", "std") else ()))

    def _mean(self, name: str, column: _Column, present: _Column | None) -> Iterator[tuple[str, Any]]:
        """Yield what gives the mean in float64: sums are exact for integers, and in doubles else."""
        rows, high = self._unused(f"{name}_rows_"), None
        if column.dates is not None:  # distances from the first one, which float64 holds
            distances = column.items.view(np.uint64) - np.uint64(column.find_ends()[0] % 2**64)
            column = _Column(self, distances, missing=column.missing)
        yield rows, count if present is None else (present.expression, "sum")
        if present is not None:
            column = _Column(self, np.where(present.items, column.items, column.items.dtype.type(0)))
        if column.items.dtype.kind in "biu":
            column = column.summable
        if column.items.dtype.itemsize == _WIDE and sums_may_wrap(column.items):
            high = self._unused(f"{name}_high_")
            upper, lower = two_words(column.items)
            yield self._plain(high, _Column(self, upper), Add)
            column = _Column(self, lower)
        self._finish[name] = divided(rows, high)
        yield self._plain(name, column, Add)

    def _spread(
        self, name: str, column: _Column, how: str, correction: float, present: _Column | None
    ) -> Iterator[tuple[str, Any]]:
        """Yield what gives the variance of integers: exact sums of distances from the least, and of their squares."""
        least, most = column.find_ends()
        # In u32, because differences of small integers would wrap.
        distances = column.items.astype(np.uint32) - np.uint32(least & 0xFFFFFFFF)
        if present is not None:
            distances = np.where(present.items, distances, np.uint32(0))
        squares, high = np.square(distances, dtype=np.uint64), None
        rows, sums = self._unused(f"{name}_rows_"), self._unused(f"{name}_sums_")
        yield rows, count if present is None else (present.expression, "sum")
        yield self._plain(sums, _Column(self, distances).summable, Add)
        if (most - least) ** 2 * squares.size >= 1 << 64:
            high = self._unused(f"{name}_high_")
            upper, squares = two_words(squares)
            yield self._plain(high, _Column(self, upper), Add)
        self._finish[name] = spread_of(rows, sums, high, correction, how == "std")
        yield self._plain(name, _Column(self, squares), Add)

    def _unused(self, name: str) -> str:
        """Return a name for an aggregate of the call itself, which none of the caller's has."""
        while name in self._names.values():
            name += "_"
        return name

    # ---- results

    def _results(
        self, keys: Mapping[str, str], found: Mapping[str, Any], first: str | None
    ) -> tuple[dict[str, Any], Any]:
        """Return the columns by the caller's names, and how many groups there are."""
        outputs = {**keys, **self._names}
        if self.on_gpu:
            results = {name: found[output] for name, output in outputs.items()}
            return (results if first is None else put_in_order(found[first], results)), found["count"]

        def stored(output: str) -> np.ndarray:
            items = found[output]
            return items if isinstance(items, np.ndarray) else items.to_numpy()

        made: dict[str, np.ndarray] = {}
        codes, missing = dict[str, np.ndarray](), list[np.ndarray]()
        for name, column in self._keys.items():
            codes[name], labels = stored(keys[name]), column.labels
            made[name] = (
                codes[name].astype(column.items.dtype, copy=False) if labels is None else labels.of(codes[name])
            )
            missing.append(codes[name] != codes[name] if labels is None else labels.missing(codes[name]))
        for name, own in self._names.items():
            made[name] = self._finish[own](stored(own), stored) if own in self._finish else stored(own)
        rows = np.arange(missing[0].size) if first is None else np.argsort(stored(first))
        if self._dropna:
            rows = rows[~np.logical_or.reduce(missing)[rows]]
        if first is not None or self._dropna:
            made = {name: column[rows] for name, column in made.items()}
        if not self._observed:
            made = self._with_unobserved(made, {name: each[rows] for name, each in codes.items()})
        return made, np.array([len(next(iter(made.values())))], np.uint32)

    def _with_unobserved(self, made: dict[str, np.ndarray], codes: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a row for each combination of the labels of keys; aggregates of no rows have their values for none."""
        levels: list[Labels] = []
        for name, column in self._keys.items():
            levels.append(column.labels or numbered(made[name]))
            if column.labels is None:
                codes[name] = levels[-1].codes
        lengths = [
            each.labels.size + int(each.missing(codes[name]).any()) for name, each in zip(codes, levels, strict=True)
        ]
        places = np.ravel_multi_index(tuple(each.astype(np.intp) for each in codes.values()), lengths)
        source = np.full(prod(lengths), -1)
        source[places] = np.arange(places.size)
        absent = np.flatnonzero(source < 0)
        order = np.arange(source.size) if self._sorts else np.append(places, absent)
        found = {
            name: each.of(place.astype(np.uint32))
            for name, each, place in zip(codes, levels, np.unravel_index(order, lengths), strict=True)
        }
        for name, (_, how, _) in self._aggregates.items():
            found[name] = filled_where_none(made[name], source[order], _OF_NONE.get(how))
        return found


def _argument_names(names: Sequence[str]) -> dict[str, str]:
    """Return what the primitive calls aggregates: their names, or others where it needs these itself."""
    found: dict[str, str] = {}
    for k, name in enumerate(names):
        found[name] = name if is_aggregate_name(name) else f"{name}_" if is_aggregate_name(f"{name}_") else f"value_{k}"
        while found[name] in names and found[name] != name:
            found[name] += "_"
    return found


def _check_bits(name: str, ends: tuple[int, int], key_bits: int) -> None:
    """Raise where a key has more bits than it is said to have."""
    least, most = ends
    if least < 0 or most >> key_bits:
        wrong = least if least < 0 else most
        raise ArgumentError(
            f"{_CALL}: {name} has the key {wrong}, but key_bits={key_bits} says that keys are from 0 to "
            f"{2**key_bits - 1}; leave key_bits out, and the call finds the bits itself"
        )


def _narrow(column: _Column, *, alone: bool) -> tuple[_Column, int | None]:
    """Return keys of the host in 4 bytes where they fit, and the bits of integers of which none is negative.

    Bits of the only column are rounded up to whole digits of the sort, since others would take no less time.
    """
    items, call = column.items, column.call
    if items.dtype.kind == "f" and items.dtype.itemsize == _WIDE:
        return _Column(call, np.where(np.isnan(items), np.nan, items)), None  # all NaNs are one group
    if items.dtype.kind not in "iu":
        return column, None
    least, most = column.find_ends()
    is_wide = items.dtype.itemsize == _WIDE
    if least >= 0 and most < 1 << 32:
        bits = max(most.bit_length(), 1)
        narrow = _Column(call, cast_items(items, np.uint32)) if is_wide else column
        return narrow, -(-bits // 8) * 8 if alone else bits
    if is_wide and least >= -(1 << 31) and most < 1 << 31:
        column = _Column(call, cast_items(items, np.int32))
    return column, None
