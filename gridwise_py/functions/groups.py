"""The one-shot function of groups: aggregates of the rows of each key.

With numpy arrays the results are numpy arrays. With an Array or an expression of Arrays they are Arrays on the GPU that
carry their count, and nothing is read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    Count,
    GroupSpec,
    group_spec,
    is_aggregate_name,
    parsed_aggregate,
    refuse_wide,
)
from ..runtime.array import Array, asarray
from ..runtime.context import capabilities, context_of
from ..runtime.host_items import cast_items, extremes, integers_and_nulls, with_missing
from ..types.datatype import ITEM_DATATYPES, STORAGE_DATATYPES, as_datatype, conversion
from ..types.expression import LEAF_DATATYPES, Expression, as_node, index
from ..types.expression_functions import StructExpression, where
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
from .bins import of_sums, sums_may_wrap, two_words
from .double_moments import DoubleMoments, GroupedMoments
from .labels import Labels, labels_of, numbered
from .orders import lexsort
from .repeated_calls import one_shot
from .sorts import argsort
from .summaries import minmax

#: A column: an array of numpy or what numpy makes one of, an Array, or an expression of Arrays.
Column: TypeAlias = HostItems | Array | Expression
#: What becomes of a result in numpy, given also a function that returns another one by its name.
_Finish: TypeAlias = Callable[[np.ndarray, Callable[[str], np.ndarray]], np.ndarray]
_CALL = "gw.group_by()"
_WIDE = 8
#: Of fewer, a GPU's answer takes longer than to look at them on the host.
_LEAST_BYTES_ON_GPU = 8 << 20
_SAMPLE = 1 << 12
_ABSENT = np.uint32(2**32 - 1)
_SHOWN_ROWS = 10
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


# Names that an aggregate would hide: what is not a column of the groups.
_TAKEN = {name for name in (*Groups.__annotations__, *vars(Groups)) if not name.startswith("_")}


@one_shot()
def group_by(
    keys: Any,
    by: Any = None,
    aggregates: Mapping[str, Any] | None = None,
    /,
    *,
    key_bits: int | Sequence[int | None] | None = None,
    skipna: bool = False,
    dropna: bool = False,
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
    by : dict from str to tuple, optional; or str or list of str
        The aggregates as a dict; or, behind a table, the columns of keys.
    aggregates : dict from str to tuple, optional
        As a dict, behind a table.
    key_bits : int or sequence of int, optional
        Keys of a column are integers below ``2**bits``. By default all bits, in numpy as many as the largest integer
        needs.
    skipna : bool, default False
        Leave NaNs out, as pandas does. Of none the sum is 0, the product 1, ``"any"`` false, ``"all"`` true, the rest
        NaN.
    dropna : bool, default False
        Leave out groups without a key (NaN, None, NaT), on the host; else they come last.
    size : int, optional
        The groups that there is room for on the GPU; by default as many as rows.
    deterministic : bool, default False
        For floats: the same bits on every run and adapter.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.
    **more
        Aggregates by their names: `count`, or ``(x, op)`` with an operator or ``"sum"``, ``"prod"``, ``"min"``,
        ``"max"``, ``"mean"``, ``"var"``, ``"std"``, ``"any"``, ``"all"``, ``"first"``, ``"last"``, ``"count"`` (not
        NaN), ``"size"`` (of rows). ``(x, "std", 1)`` divides by n − 1, as pandas does.

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
    f32. Columns of 8 bytes have sums, products, minima, maxima and counts besides. With `skipna` nulls are left out,
    too, and the integers beside them stay as they are; a result that is missing is NaN, or None beside integers beyond
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
            f"name it in a dict: {{'size': gw.count}}"
        )
    keys, wanted = _asked(keys, by, aggregates, more)
    if isinstance(keys, tuple) and not keys:
        raise ArgumentError(f"{_CALL}: keys is an empty tuple; give at least one column of keys")
    return _Call(wanted, skipna, dropna, device).run(keys, key_bits, size, deterministic)


# ---- what is asked for


def _is_name(table: Any, value: Any) -> bool:
    """Whether a value names a column of a table: a str, or a number or a tuple that is one of its names."""
    return isinstance(value, str) or (isinstance(value, (int, tuple, np.generic)) and value in _names_of(table))


def _is_name_or_names(table: Any, value: Any) -> bool:
    names = cast(Sequence[Any], value) if isinstance(value, (list, tuple)) else ()
    return _is_name(table, value) or (bool(names) and all(_is_name(table, each) for each in names))


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (hasattr(value, "columns") and hasattr(value, "__getitem__"))


def _asked(keys: Any, by: Any, aggregates: Any, more: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the keys and the aggregates of a call, with columns in place of names where it has a table."""
    if hasattr(keys, "collect") and hasattr(keys, "columns"):
        raise ArgumentError(f"{_CALL}: the table is a {type(keys).__name__}, which holds no rows; give keys.collect()")
    by_names = _is_table(keys) and _is_name_or_names(keys, by)
    given = aggregates if by_names else by
    if (given is not None and not isinstance(given, Mapping)) or not (by_names or aggregates is None):
        raise ArgumentError(_as_keywords(keys, by, aggregates))
    wanted = {**cast(Mapping[str, Any], given or {}), **more}
    hidden = next((name for name in wanted if name in _TAKEN), None)
    if hidden is not None:
        instead = "n" if hidden == "count" else f"{hidden}_"
        raise ArgumentError(
            f"{_CALL}: an aggregate called {hidden!r} would hide what groups.{hidden} is; give it another name, such "
            f"as {instead}"
        )
    if not by_names:
        if hasattr(keys, "columns") and _is_table(keys):
            raise ArgumentError(_as_keywords(keys, by, aggregates))
        return keys, wanted
    table = _Table(keys)
    is_one = _is_name(keys, by)
    named: Any = {name: table.column(name) for name in ([by] if is_one else by)}
    found = {name: table.aggregate(name, each) for name, each in wanted.items()}
    return (_OneKey(named) if is_one else named), found


class _OneKey(dict[str, Any]):
    """The one column of keys of a table, with its name."""


def _as_keywords(keys: Any, by: Any, aggregates: Any) -> str:
    """Return what to write in place of arguments by position that say too little."""
    if not isinstance(keys, Mapping) and _is_table(keys):
        names = _names_of(keys)
        key, x = (*names, "city", "price")[:2] if len(names) > 1 else ("city", "price")
        shown = ", ".join(map(str, names))
        return (
            f"{_CALL}: of a table the columns of keys and the aggregates have to be named; write "
            f"gw.group_by(table, {key!r}, total=({x!r}, 'sum'), n=gw.count); its columns are {shown}"
        )
    if isinstance(by, Mapping):
        return (
            f"{_CALL}: behind the aggregates there is no argument by position; name it, for example key_bits= or "
            f"size=, or give a table first: gw.group_by(table, 'city', {{'total': ('price', 'sum')}})"
        )
    how = next((each for each in (aggregates, by) if isinstance(each, str) and each in AGGREGATES), "sum")
    name = "n" if how in _TAKEN else how
    return (
        f"{_CALL}: an aggregate has a name, a column and an operator; write gw.group_by(keys, {name}=(x, {how!r})) in "
        f"place of gw.group_by(keys, x, {how!r})"
    )


def _names_of(table: Any) -> list[Any]:
    if isinstance(table, Mapping):
        return list(cast(Mapping[Any, Any], table))
    return list(getattr(table, "column_names", table.columns))


class _Table:
    """A table's columns; one that several aggregates name is taken once."""

    def __init__(self, table: Any):
        self._table = table
        self._names = _names_of(table)
        self._taken: dict[str, Any] = {}

    def column(self, name: Any) -> Any:
        """Return a column."""
        if name not in self._names:
            shown = ", ".join(str(each) for each in self._names)
            raise ArgumentError(f"{_CALL}: the table has no column {name!r}; it has {shown}")
        if name not in self._taken:
            self._taken[name] = self._table[name]
        return self._taken[name]

    def aggregate(self, name: str, given: Any) -> Any:
        """Return an aggregate with columns in place of their names."""
        if isinstance(given, tuple) and given and _is_name(self._table, given[0]):
            column, *rest = cast(tuple[Any, ...], given)
            return (self.column(column), *rest)
        if isinstance(given, list):
            columns = ", ".join(f"{name}_{how}=({name!r}, {how!r})" for how in cast(list[Any], given))
            raise ArgumentError(f"{_CALL}: {name} has a list of aggregates; give each a name: {columns}")
        is_whole = isinstance(given, (Count, tuple)) or given == "size" or name not in self._names
        return cast(Any, given) if is_whole else (self.column(name), given)


def _numbers(name: str, value: Any) -> np.ndarray:
    """Return a column of numbers as numpy makes it; what is missing in a nullable column of pandas is NaN.

    Raises
    ------
    DatatypeError
        If it holds strings, dates or the like.
    """
    items = argument_array(_CALL, name, value)
    if items.dtype.kind == "O" and getattr(getattr(value, "dtype", None), "kind", "") in tuple("biuf"):
        items = value.to_numpy(dtype=np.float64, na_value=np.nan)
    if items.dtype.kind in "USTOMm" and items.ndim == 1:
        remedy = f"{conversion(items.dtype, _COLUMNS)}, or make it a key"
        raise DatatypeError(f"{_CALL}: {name} is of {items.dtype}, but aggregates are of numbers; {remedy}")
    return items


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
        Of keys that are no numbers; the items are their codes.
    missing : numpy.ndarray, optional
        Which integers of a nullable column are nulls.
    """

    def __init__(
        self,
        call: _Call,
        items: Any,
        value: Any = None,
        labels: Labels | None = None,
        missing: np.ndarray | None = None,
    ):
        self.call = call
        self.missing = missing
        self.items = items
        self.value = value
        self.labels = labels
        self._ends: tuple[int, int] | None = None

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
        array = asarray(self.items, self.call.device) if isinstance(self.items, EXPRESSIONS) else self.array
        if array.dtype == np.float64:
            return array
        return DoubleMoments(array, (array.size,), (0,)).floats("f64", from_least)

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
        return _Column(self.call, cast_items(items, _total(items.dtype)))

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

    def __init__(self, aggregates: Mapping[str, Any], skipna: bool, dropna: bool, device: wgpu.GPUDevice | None):
        #: By the caller's names: a column, or None for the number of rows, what is computed, and a correction.
        self._aggregates = {name: parsed_aggregate(_CALL, name, each) for name, each in aggregates.items()}
        self._skipna = skipna
        self._dropna = dropna
        self._asked = device
        #: By the identity of what the caller gave: one that is given twice is checked and uploaded once.
        self._columns: dict[int, _Column] = {}
        #: Those of keys, by their names.
        self._keys: dict[str, _Column] = {}
        #: Arguments of 8 bytes, which no expression reads.
        self._wide: dict[str, _Column] = {}
        #: What the primitive calls the aggregates.
        self._names = _argument_names(list(aggregates))
        #: Means and variances in float64, by these names: the column, what is computed, and the correction.
        self._moments: dict[str, tuple[_Column, Any, float]] = {}
        #: What becomes of their results in numpy, by these names.
        self._finish: dict[str, _Finish] = {}

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
        rows = self._unused("rows_")
        if self._moments:
            wanted[rows] = count
        one = next(iter(given.values())) if is_column(keys) or isinstance(keys, _OneKey) else given
        # Of numpy's doubles NaNs are left out before they are uploaded.
        spec = group_spec(one, wanted, key_bits=bits, skipna=self._skipna, wide_has_nan=self.on_gpu, what=_CALL)
        arrays = stored_leaves(_CALL, spec.flat) | {name: column.array for name, column in self._wide.items()}
        primitive = keep_primitive(
            GroupBy, self.device, spec.without_arrays(), tuple(wanted), size=size, deterministic=deterministic
        )
        found = dict(primitive.run_once(**arrays))
        if self._moments:
            moments = GroupedMoments(self._order(spec), found[rows], self._skipna, deterministic)
            for name, (column, how, correction) in self._moments.items():
                found[name] = moments.of(column.floats(from_least=how != "mean"), how, correction)
        results, number = self._results(dict(zip(self._keys, (key.name for key in spec.keys), strict=True)), found)
        of_keys = {name: results[name] for name in self._keys}
        if one is not given:
            shown: Any = next(iter(of_keys.values()))
        else:
            shown = tuple(of_keys.values()) if isinstance(keys, (tuple, list)) else of_keys
        return Groups(shown, results, number)

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
        labels = labels_of(_CALL, name, value) if is_key and not isinstance(items, Array) else None
        if labels is not None:
            return _Column(self, labels.codes, labels=labels)
        missing = None
        if not isinstance(items, Array):
            nullable = integers_and_nulls(value) if self._skipna else None
            items, missing = nullable or (_numbers(name, value), None)
        if items.ndim != 1:
            raise ArgumentError(f"{_CALL}: {name} has shape {items.shape}, but columns have one dimension")
        argument_datatype(_CALL, name, value, items.dtype, _COLUMNS)
        if isinstance(items, np.ndarray):  # in this machine's order of bytes
            items = items.astype(items.dtype.newbyteorder("="), copy=False)
        return self._columns.setdefault(id(value), _Column(self, items, value, missing=missing))

    def _check_results(self) -> None:
        """Raise where results that stay on the GPU could not be what is asked for."""
        if not self.on_gpu:
            return
        for name, labels in ((name, column.labels) for name, column in self._keys.items()):
            if labels is not None:
                raise DatatypeError(
                    f"{_CALL}: {name} is of {labels.labels.dtype}, which no Array holds, but another column is on the "
                    f"GPU, so the results stay there; give numbers instead: labels, codes = np.unique({name}, "
                    f"return_inverse=True), and after the call labels[groups.keys.to_numpy()]"
                )
        if any(column.missing is not None for column in self._columns.values()):
            raise DatatypeError(f"{_CALL}: a column has nulls, but another one is on the GPU; fill the nulls first")
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
        for name, (value, how, correction) in zip(self._names.values(), self._aggregates.values(), strict=True):
            rest = (correction,) if how in ("var", "std") else ()
            if value is None or how == "size":
                self._finish[name] = _as_dtype(np.dtype(np.intp))
                yield name, count
                continue
            column = self._columns[id(value)]
            if how in ("mean", "var", "std") and self._is_double(name, column, how):
                if isinstance(column.items, EXPRESSIONS):
                    stored_leaves(_CALL, flat_of(column.items))  # raises for leaves that are no Arrays
                self._moments[name] = column, how, correction
            elif isinstance(column.items, EXPRESSIONS):
                yield name, (column.items, how, *rest)
            elif isinstance(column.items, np.ndarray) and not self.on_gpu:
                yield from self._of_host(name, column, how, rest)
            else:
                yield self._plain(name, column, how, *rest)

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
        if how == "count" and dtype.kind != "f":
            return name, count
        if dtype.itemsize < _WIDE:
            return name, (column.expression, how, *rest)
        self._wide[f"{name}_items"] = column
        return name, (dtype, how, *rest)

    def _of_host(self, name: str, column: _Column, how: Any, rest: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
        """Yield an aggregate of numpy's items, and those that it is finished with on the host."""
        items, dtype = column.items, column.items.dtype
        is_wide = dtype.itemsize == _WIDE
        present = column.present if self._skipna or how == "count" else None
        if how == "count":
            self._finish[name] = _as_dtype(np.dtype(np.intp))
            if present is not None:
                yield name, (present.expression, "sum")
            else:
                yield name, count if dtype.kind != "f" or is_wide else (column.expression, "count")
        elif how in ("any", "all"):
            self._finish[name] = _as_dtype(np.dtype(bool))
            if is_wide or present is not None:
                truth = items != 0
                if present is not None:
                    truth = truth & present.items if how == "any" else truth | ~present.items
                column = _Column(self, truth)
            yield name, (column.expression, how)
        elif how in ("first", "last") and (is_wide or present is not None):
            # The row is found on the GPU, and its item taken on the host.
            self._finish[name] = _taken_from(items, how, has_absent=present is not None)
            if present is None:
                yield name, (index, Min if how == "first" else Max)
            elif how == "first":
                yield name, (where(present.expression, index, as_node(_ABSENT)), Min)
            else:  # one more than the row: 0 where there is none
                yield name, (where(present.expression, index + 1, as_node(0, "u32")), Max)
        elif how == "mean" and (is_wide or dtype.kind in "biu"):
            yield from self._mean(name, column, present)
        elif how in ("var", "std") and dtype.kind in "biu":
            yield from self._spread(name, column, how, rest[0], present)
        elif how in (Add, Multiply) and dtype.kind in "biu":
            self._finish[name] = _as_dtype(_total(dtype))
            if present is not None:
                column = _Column(self, np.where(present.items, items, dtype.type(how == Multiply)))
            wide = column.summable if how == Add else _Column(self, cast_items(column.items, _total(dtype)))
            yield self._plain(name, wide, how)
        elif present is not None and isinstance(how, BinOp):
            otherwise = how.identity_for(as_datatype(dtype, ITEM_DATATYPES))
            if how in (Min, Max):
                rows = self._unused(f"{name}_rows_")
                self._finish[name] = _where_some(rows, dtype)
                yield rows, (present.expression, "sum")
            yield self._plain(name, _Column(self, np.where(present.items, items, otherwise)), how)
        else:
            if how in ("first", "last") or (isinstance(how, BinOp) and how.builtin and how not in (Add, Multiply)):
                self._finish[name] = _as_dtype(dtype)
            yield self._plain(name, column, how, *rest)

    def _mean(self, name: str, column: _Column, present: _Column | None) -> Iterator[tuple[str, Any]]:
        """Yield what gives the mean in float64: sums are exact for integers, and in doubles else."""
        rows, high = self._unused(f"{name}_rows_"), None
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
        self._finish[name] = _divided(rows, high)
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
        self._finish[name] = _spread_of(rows, sums, high, correction, how == "std")
        yield self._plain(name, _Column(self, squares), Add)

    def _unused(self, name: str) -> str:
        """Return a name for an aggregate of the call itself, which none of the caller's has."""
        while name in self._names.values():
            name += "_"
        return name

    # ---- results

    def _results(self, keys: Mapping[str, str], found: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return the columns by the caller's names, and how many groups there are."""
        outputs = {**keys, **self._names}
        if self.on_gpu:
            return {name: found[output] for name, output in outputs.items()}, found["count"]

        def stored(output: str) -> np.ndarray:
            return found[output].to_numpy()

        made: dict[str, np.ndarray] = {}
        missing: list[np.ndarray] = []
        for name, column in self._keys.items():
            codes, labels = stored(keys[name]), column.labels
            made[name] = codes.astype(column.items.dtype, copy=False) if labels is None else labels.of(codes)
            missing.append(codes != codes if labels is None else labels.missing(codes))
        for name, own in self._names.items():
            made[name] = self._finish[own](stored(own), stored) if own in self._finish else stored(own)
        number = stored("count")
        if self._dropna:
            dropped = np.logical_or.reduce(missing)
            made = {name: column[~dropped] for name, column in made.items()}
            number = number - np.uint32(dropped.sum())
        return made, number


def _argument_names(names: Sequence[str]) -> dict[str, str]:
    """Return what the primitive calls aggregates: their names, or others where it needs these itself."""
    found: dict[str, str] = {}
    for k, name in enumerate(names):
        found[name] = name if is_aggregate_name(name) else f"{name}_" if is_aggregate_name(f"{name}_") else f"value_{k}"
        while found[name] in names and found[name] != name:
            found[name] += "_"
    return found


# ---- how results become numpy's


def _as_dtype(dtype: np.dtype[Any]) -> _Finish:
    return lambda items, _: items.astype(dtype, copy=False)


def _taken_from(items: np.ndarray, how: str, has_absent: bool) -> _Finish:
    """Return what takes items by their rows; with `has_absent` there may be none, and last rows are one too large."""

    def taken(rows: np.ndarray, _: Any) -> np.ndarray:
        if not has_absent:
            return items[rows]
        is_absent = rows == (_ABSENT if how == "first" else 0)
        rows = rows if how == "first" else rows - np.uint32(1)
        return with_missing(items[np.where(is_absent, 0, rows)], is_absent)

    return taken


def _where_some(rows: str, dtype: np.dtype[Any]) -> _Finish:
    return lambda items, of: with_missing(items.astype(dtype), of(rows) == 0)


def _divided(rows: str, high: str | None) -> _Finish:
    def mean(items: np.ndarray, of: Callable[[str], np.ndarray]) -> np.ndarray:
        sums = items if high is None else of_sums(of(high), items)
        with np.errstate(invalid="ignore"):
            return sums / of(rows)

    return mean


def _spread_of(rows: str, sums: str, high: str | None, correction: float, takes_root: bool) -> _Finish:
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


def _total(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return numpy's dtype of sums of integers or bools."""
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)


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
