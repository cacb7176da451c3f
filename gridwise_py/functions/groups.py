"""The one-shot function of groups: aggregates of the rows of each key.

With numpy arrays the results are numpy arrays. With an Array or an expression of Arrays they are Arrays on the GPU that
carry their count, and nothing is read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..extras import imported
from ..primitives import GroupBy, count
from ..primitives.fusion import EXPRESSIONS, flat_of
from ..primitives.group_spec import group_spec, is_aggregate_name
from ..primitives.one_shot import (
    HostItems,
    argument_array,
    argument_datatype,
    check_not_chunked,
    check_one_length,
    device_of,
    kept_primitive,
    stored_leaves,
    without_doubles,
)
from ..runtime.array import Array, asarray
from ..types.datatype import STORAGE_DATATYPES
from ..types.expression import LEAF_DATATYPES, Expression, index
from ..types.expression_functions import StructExpression
from .inputs import of_sums, sums_may_wrap, two_words

__all__ = ["Groups", "group_by"]

#: A column: an array of numpy or what numpy makes one of, an Array, or an expression of Arrays.
Column: TypeAlias = HostItems | Array | Expression
_CALL = "gw.group_by()"
_WIDE = 8
#: What columns may be of: what expressions read, and numbers of 8 bytes.
_COLUMNS = {
    name: datatype
    for name, datatype in STORAGE_DATATYPES.items()
    if name in LEAF_DATATYPES or datatype.itemsize_bytes == _WIDE
}


@dataclass(frozen=True, repr=False)
class Groups:
    """What `group_by` returns: a table with a row for each group, in ascending order of the keys.

    Aggregates are attributes by their names, and items: ``groups.total``, ``groups["total"]``.

    Attributes
    ----------
    keys : numpy.ndarray, Array, tuple or dict
        The keys: a tuple or a dict of columns where the keys were given so.
    columns : dict from str to numpy.ndarray or Array
        All columns by their names, those of the keys first: ``"key"``, of several ``"key_0"`` or the names given.
    count : numpy.ndarray or Array
        The number of groups, one item of u32.
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


@explained()
def group_by(
    keys: Column | StructExpression | Sequence[Column] | Mapping[str, Column],
    aggregates: Mapping[str, Any] | None = None,
    /,
    *,
    key_bits: int | Sequence[int | None] | None = None,
    size: int | None = None,
    deterministic: bool = False,
    device: wgpu.GPUDevice | None = None,
    **more: Any,
) -> Groups:
    """Aggregate the rows of each key.

    Parameters
    ----------
    keys : numpy.ndarray, Array or expression, or a tuple, list or dict of these
        The columns of keys, of one dimension each. A list of numbers is one column.
    aggregates : dict from str to tuple, optional
        Of each aggregate its name, and ``(x, op)`` or `count`. ``op`` is an operator such as ``gw.Add``, the name of an
        aggregate (``"sum"``, ``"prod"``, ``"min"``, ``"max"``, ``"mean"``, ``"var"``, ``"std"``, ``"any"``, ``"all"``,
        ``"first"``, ``"last"``), or the function of that name, ``gw.mean``. `GroupBy` describes them.
    key_bits : int or sequence of int, optional
        How many bits the keys have, for each column: integers from 0 to ``2**bits - 1``. By default all; of integers in
        numpy as many as the largest needs.
    size : int, optional
        The groups that there is room for on the GPU; by default as many as rows.
    deterministic : bool, default False
        For floats: the same bits on every run and adapter.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.
    **more
        Aggregates by their names, where these are no other arguments: ``total=(x, gw.Add)``.

    Returns
    -------
    Groups
        Arrays of numpy, or Arrays that carry their count where a column is on the GPU.

    Notes
    -----
    Sums and products have the datatype of the items (u32, i32 or f32 for smaller ones), and integers wrap: where they
    are too large for it, give ``x.astype(np.int64)``.

    Columns of 8 bytes have sums, products, minima and maxima. In numpy they also have ``"mean"``, in float64, and
    ``"any"``, ``"all"``, ``"first"`` and ``"last"``. numpy's keys come back in their datatype.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> city = np.array([2, 1, 2, 2], dtype=np.uint8)
    >>> price = np.array([3, 5, 4, 8], dtype=np.float32)
    >>> groups = gw.group_by(city, mean=(price, "mean"), sales=gw.count)
    >>> groups.keys, groups.mean, groups.sales
    (array([1, 2], dtype=uint8), array([5., 5.], dtype=float32), array([1, 3], dtype=uint32))
    """
    return _Call({**(aggregates or {}), **more}, device).run(keys, key_bits, size, deterministic)


def _is_column(value: Any) -> bool:
    """Whether keys are one column: not a dict, a tuple or a list of columns."""
    if isinstance(value, (Mapping, StructExpression)):
        return False
    if not isinstance(value, (tuple, list)):
        return True
    return not any(isinstance(each, (*EXPRESSIONS, Array)) or np.ndim(each) for each in cast(Sequence[Any], value))


class _Call:
    """One call: its columns as the primitive takes them, and how its results become the caller's."""

    def __init__(self, aggregates: Mapping[str, Any], device: wgpu.GPUDevice | None):
        self._aggregates = aggregates
        self._asked = device
        #: Columns by the identity of what the caller gave: one that is given twice is checked and uploaded once.
        self._columns: dict[int, Any] = {}
        self._uploaded: dict[int, tuple[np.ndarray, Array]] = {}
        #: Arguments of 8 bytes, which no expression reads.
        self._wide: dict[str, Any] = {}
        #: What the primitive calls the aggregates.
        self._names = _argument_names(list(aggregates))
        #: What becomes of results in numpy, by the names of columns of keys and of those aggregates.
        self._finish: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
        #: The aggregates that count the rows of means in numpy, and that sum the high words of their items.
        self._means: dict[str, str] = {}
        self._high_words: dict[str, str] = {}

    def run(self, keys: Any, key_bits: Any, size: int | None, deterministic: bool) -> Groups:
        """Check everything, upload what is on the host, and compute."""
        named = self._named(keys)
        parts = {name: _parts_of(each) for name, each in self._aggregates.items()}
        values = {name: each[0] for name, each in parts.items() if each}
        self._check({**named, **values})
        columns = list(self._columns.values())
        self._on_gpu = any(isinstance(each, (Array, *EXPRESSIONS)) for each in columns)
        bound = [array for each in columns if isinstance(each, EXPRESSIONS) for _, array in flat_of(each).arrays]
        self._device = device_of(*bound, *columns, device=self._asked)
        given, bits = self._keys(named, key_bits)
        wanted = dict(self._own_aggregates())
        one = next(iter(given.values())) if _is_column(keys) else given
        spec = group_spec(one, wanted, key_bits=bits, what=_CALL)
        arrays = stored_leaves(_CALL, spec.flat) | {name: self._array(items) for name, items in self._wide.items()}
        primitive = kept_primitive(
            GroupBy, self._device, spec.without_arrays(), tuple(wanted), size=size, deterministic=deterministic
        )
        found = primitive.bind(**arrays).execute().outputs
        columns = self._results(dict(zip(named, (key.name for key in spec.keys), strict=True)), found)
        of_keys = {name: columns[name] for name in named}
        if _is_column(keys):
            shown: Any = columns["key"]
        else:
            shown = tuple(of_keys.values()) if isinstance(keys, (tuple, list)) else of_keys
        return Groups(shown, columns, found["count"] if self._on_gpu else found["count"].to_numpy())

    # ---- columns

    def _named(self, keys: Any) -> dict[str, Any]:
        """Return the columns of keys by their names."""
        if _is_column(keys):
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

    def _check(self, values: Mapping[str, Any]) -> None:
        """Take the columns; raise where one is none, or lengths differ."""
        lengths: dict[str, int] = {}
        for name, value in values.items():
            if isinstance(value, EXPRESSIONS):
                self._columns[id(value)] = value
                continue
            check_not_chunked(_CALL, name, value)
            items = value if isinstance(value, Array) else argument_array(_CALL, name, value)
            if items.ndim != 1:
                raise ArgumentError(f"{_CALL}: {name} has shape {items.shape}, but columns have one dimension")
            argument_datatype(_CALL, name, value, items.dtype, _COLUMNS)
            if isinstance(items, np.ndarray):  # in this machine's order of bytes
                items = items.astype(items.dtype.newbyteorder("="), copy=False)
            self._columns[id(value)] = items
            lengths[name] = int(items.size)
        check_one_length(_CALL, lengths, "rows")

    def _items(self, value: Any) -> Any:
        """Return a checked column."""
        items = self._columns[id(value)]
        return items if isinstance(items, (Array, *EXPRESSIONS)) else without_doubles(value, items, self._device)

    def _array(self, items: Any) -> Array:
        """Return a column on the GPU."""
        if isinstance(items, Array):
            return items
        if id(items) not in self._uploaded:
            self._uploaded[id(items)] = (items, asarray(items, self._device))
        return self._uploaded[id(items)][1]

    def _keys(self, columns: Mapping[str, Any], key_bits: Any) -> tuple[dict[str, Any], list[int | None] | None]:
        """Return the columns of keys as the primitive takes them, and the bits that each needs, where that is known."""
        asked: list[int | None] = [key_bits] if isinstance(key_bits, int) else list(key_bits or [None] * len(columns))
        if len(asked) != len(columns):
            raise ArgumentError(
                f"{_CALL}: key_bits has {len(asked)} numbers, but there are {len(columns)} columns of keys"
            )
        given: dict[str, Any] = {}
        for place, (name, value) in enumerate(columns.items()):
            items = self._items(value)
            if isinstance(items, np.ndarray):
                self._finish[name] = _as_dtype(items.dtype)
                items, bits = _narrowed(items, alone=len(columns) == 1)
                asked[place] = bits if asked[place] is None else asked[place]
            if isinstance(items, EXPRESSIONS):
                given[name] = items
            elif items.dtype.itemsize == _WIDE:
                self._wide["keys"] = items
                given[name] = items.dtype
            else:
                given[name] = self._array(items).as_expression()
        return given, None if all(bits is None for bits in asked) else asked

    def _own_aggregates(self) -> Iterator[tuple[str, Any]]:
        """Yield the aggregates as the primitive takes them, by their names."""
        for name, given in zip(self._names.values(), self._aggregates.values(), strict=True):
            parts = _parts_of(given)
            items = self._items(parts[0]) if len(parts) > 1 else None
            if items is None or isinstance(items, EXPRESSIONS):
                yield name, given
                continue
            how, rest = parts[1], parts[2:]
            word = how if isinstance(how, str) else getattr(how, "__name__", "")
            is_wide, on_host = items.dtype.itemsize == _WIDE, isinstance(items, np.ndarray)
            if on_host and word in ("any", "all"):
                self._finish[name] = _as_dtype(np.dtype(bool))
                items, is_wide = (items != 0) if is_wide else items, False
            if not is_wide:
                yield name, (self._array(items).as_expression(), how, *rest)
            elif on_host and word in ("first", "last"):
                # The row is found on the GPU, and its item taken on the host.
                self._finish[name] = _taken_from(items)
                yield name, (index, "min" if word == "first" else "max")
            else:
                if on_host and word == "mean":  # sums are exact for integers, and in doubles else
                    self._means[name] = self._unused(f"{name}_rows_")
                    yield self._means[name], count
                    how = "sum"
                    if sums_may_wrap(items):
                        self._high_words[name] = high = self._unused(f"{name}_high_")
                        self._wide[f"{high}_items"], items = two_words(items)
                        yield high, (items.dtype, how, *rest)
                self._wide[f"{name}_items"] = items
                yield name, (items.dtype, how, *rest)

    def _unused(self, name: str) -> str:
        """Return a name for an aggregate of the call itself, which none of the caller's has."""
        while name in self._names.values():
            name += "_"
        return name

    # ---- results

    def _results(self, keys: Mapping[str, str], found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns by the caller's names."""
        results = {name: (name, found[output]) for name, output in keys.items()}
        results |= {name: (own, found[own]) for name, own in self._names.items()}
        if self._on_gpu:
            return {name: output for name, (_, output) in results.items()}
        return {name: self._on_host(own, output.to_numpy(), found) for name, (own, output) in results.items()}

    def _on_host(self, name: str, items: np.ndarray, found: Mapping[str, Any]) -> np.ndarray:
        if name in self._high_words:
            items = of_sums(found[self._high_words[name]].to_numpy(), items)
        if name in self._means:
            items = items / found[self._means[name]].to_numpy()
        return self._finish[name](items) if name in self._finish else items


def _parts_of(aggregate: Any) -> list[Any]:
    """Return the column of an aggregate and what follows it."""
    return list(cast(tuple[Any, ...], aggregate)) if isinstance(aggregate, tuple) else []


def _argument_names(names: Sequence[str]) -> dict[str, str]:
    """Return what the primitive calls aggregates: their names, or others where it needs these itself."""
    found: dict[str, str] = {}
    for k, name in enumerate(names):
        found[name] = name if is_aggregate_name(name) else f"{name}_" if is_aggregate_name(f"{name}_") else f"value_{k}"
        while found[name] in names and found[name] != name:
            found[name] += "_"
    return found


def _as_dtype(dtype: np.dtype[Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda items: items.astype(dtype, copy=False)


def _taken_from(items: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: items[rows]


def _narrowed(items: np.ndarray, *, alone: bool) -> tuple[np.ndarray, int | None]:
    """Return keys of the host in 4 bytes where they fit, and the bits of integers of which none is negative.

    Bits of the only column are rounded up to whole digits of the sort, since others would take no less time.
    """
    if items.dtype.kind == "f" and items.dtype.itemsize == _WIDE:
        return np.where(np.isnan(items), np.nan, items), None  # all NaNs are one group
    if items.dtype.kind not in "iu":
        return items, None
    least, most = (int(items.min()), int(items.max())) if items.size else (0, 0)
    if least >= 0 and most < 1 << 32:
        bits = max(most.bit_length(), 1)
        narrow = items.astype(np.uint32) if items.dtype.itemsize == _WIDE else items
        return narrow, -(-bits // 8) * 8 if alone else bits
    if items.dtype.itemsize == _WIDE and least >= -(1 << 31) and most < 1 << 31:
        items = items.astype(np.int32)
    return items, None
