"""The one-shot function of groups: aggregates of the rows of each key.

With numpy arrays the results are numpy arrays. With an Array or an expression of Arrays they are Arrays on the GPU that
carry their count, and nothing is read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

import numpy as np
import wgpu

from ..errors import ArgumentError
from ..extras import imported
from ..primitives import GroupBy
from ..primitives.group_spec import Count, GroupSpec, group_spec, parsed_aggregate
from ..runtime.array import Array
from ..types.expression import Expression
from ..types.operators import Add, Multiply
from ..types.options import integer
from .arguments import HostItems, keep_primitive, stored_leaves
from .group_aggregates import Aggregates
from .group_columns import Columns
from .group_results import on_host, put_in_order
from .grouped_rows import GroupedRows
from .repeated_calls import one_shot
from .table_arguments import CALL, asked_of, named_keys

#: A column: an array of numpy or what numpy makes one of, an Array, or an expression of Arrays.
Column: TypeAlias = HostItems | Array | Expression
_SHOWN_ROWS = 10
#: Aggregates of no rows, where they are not missing.
_OF_NONE: dict[Any, Any] = {"size": 0, "count": 0, "nunique": 0, "any": False, "all": True, Add: 0, Multiply: 1}


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
            f"{CALL}: size= is how many groups there is room for; give the aggregate another name, such as n, or "
            f"name it in a dict: aggregates={{'size': …}}"
        )
    hidden = next((name for name in more if name in _TAKEN), None)
    if hidden is not None:
        raise ArgumentError(
            f"{CALL}: an aggregate called {hidden!r} would hide what groups.{hidden} is; name it in a dict, "
            f"aggregates={{{hidden!r}: …}}, and read groups[{hidden!r}]"
        )
    keys, asked = asked_of(keys, by, aggregates, more)
    if isinstance(keys, tuple) and not keys:
        raise ArgumentError(f"{CALL}: keys is an empty tuple; give at least one column of keys")
    wanted = {name: parsed_aggregate(CALL, name, each) for name, each in asked.items()}
    size = None if size is None else integer("size", size, 1)
    named, as_given = named_keys(keys)
    clash = next((name for name in named if name in wanted), None)
    if clash is not None:
        raise ArgumentError(f"{CALL}: a column of keys and an aggregate are both called {clash!r}; rename one")
    columns = Columns(named, wanted, device, dropna, observed)
    given, bits = columns.take_keys(key_bits)
    own = Aggregates(columns, wanted, skipna)
    first = None if sort else own.first_rows()
    # Of numpy's doubles NaNs are left out before they are uploaded.
    spec = group_spec(given, own.wanted, key_bits=bits, skipna=skipna, wide_has_nan=columns.on_gpu, what=CALL)
    found = _found(spec, columns, own, size, skipna, deterministic)
    codes = {name: key.name for name, key in zip(named, spec.keys, strict=True)}
    if columns.on_gpu:
        number, results = found["count"], {name: found[output] for name, output in {**codes, **own.names}.items()}
        results = results if first is None else put_in_order(found[first], results)
    else:

        def stored(output: str) -> np.ndarray:
            items = found[output]
            return items.to_numpy() if isinstance(items, Array) else items

        results = on_host(
            columns.keys,
            {name: stored(output) for name, output in codes.items()},
            own.finished(stored),
            None if first is None else stored(first),
            dropna,
            None if observed else {name: _OF_NONE.get(how) for name, (_, how, _) in wanted.items()},
        )
        number = np.array([len(next(iter(results.values())))], np.uint32)
    return Groups(as_given({name: results[name] for name in named}), results, number)


def _found(
    spec: GroupSpec, columns: Columns, own: Aggregates, size: int | None, skipna: bool, deterministic: bool
) -> dict[str, Any]:
    """Upload what is on the host, and compute; return the results by their names."""
    arrays = stored_leaves(CALL, spec.flat) | {name: column.array for name, column in columns.wide.items()}
    primitive = keep_primitive(
        GroupBy, columns.device, spec.without_arrays(), tuple(own.wanted), size=size, deterministic=deterministic
    )
    found: dict[str, Any] = dict(primitive.run_once(**arrays))
    found |= {name: found[other] for name, other in own.same.items()}
    groups = GroupedRows(spec, columns, found.get(own.rows()), found["count"], skipna, deterministic)
    for name, compute in own.computed.items():
        found[name] = compute(found.get(name), groups)
    return found
