"""Keys and tables as arguments: columns by their names, or in place of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError
from ..primitives.fusion import EXPRESSIONS
from ..primitives.group_spec import AGGREGATES, Count
from ..runtime.array import Array
from ..types.expression_functions import StructExpression

CALL = "gw.group_by()"


def _is_name(table: Any, value: Any) -> bool:
    """Whether a value names a column of a table: a str, or a number or a tuple that is one of its names."""
    return isinstance(value, str) or (isinstance(value, (int, tuple, np.generic)) and value in _names_of(table))


def _is_name_or_names(table: Any, value: Any) -> bool:
    names = cast(Sequence[Any], value) if isinstance(value, (list, tuple)) else ()
    return _is_name(table, value) or (bool(names) and all(_is_name(table, each) for each in names))


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (hasattr(value, "columns") and hasattr(value, "__getitem__"))


def asked_of(keys: Any, by: Any, aggregates: Any, more: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the keys and the aggregates of a call, with columns in place of names where it has a table."""
    if hasattr(keys, "collect") and hasattr(keys, "columns"):
        raise ArgumentError(f"{CALL}: the table is a {type(keys).__name__}, which holds no rows; give keys.collect()")
    by_names = _is_table(keys) and _is_name_or_names(keys, by)
    given = aggregates if by_names or by is None else by
    if (given is not None and not isinstance(given, Mapping)) or not (by_names or by is None or aggregates is None):
        raise ArgumentError(_as_keywords(keys, by, aggregates))
    wanted = {**cast(Mapping[str, Any], given or {}), **more}
    if not by_names:
        if hasattr(keys, "columns") and _is_table(keys):
            raise ArgumentError(_as_keywords(keys, by, aggregates))
        return keys, wanted
    table = _Table(keys)
    is_one = _is_name(keys, by)
    named: Any = {name: table.column(name) for name in ([by] if is_one else cast(Any, by))}
    found = {name: table.aggregate(name, each) for name, each in wanted.items()}
    return (OneKey(named) if is_one else named), found


class OneKey(dict[str, Any]):
    """The one column of keys of a table, with its name."""


def is_column(value: Any) -> bool:
    """Whether keys are one column: not a dict, a tuple or a list of columns."""
    if isinstance(value, (Mapping, StructExpression)):
        return False
    if not isinstance(value, (tuple, list)):
        return True
    return not any(isinstance(each, (*EXPRESSIONS, Array)) or np.ndim(each) for each in cast(Sequence[Any], value))


def named_keys(keys: Any) -> tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]:
    """Return the columns of keys by their names, and what makes of results by these names what the caller gets."""
    if isinstance(keys, (tuple, list)) and not is_column(keys):
        named = {f"key_{k}": each for k, each in enumerate(cast(Sequence[Any], keys))}
        return named, lambda columns: tuple(columns.values())
    if isinstance(keys, OneKey) or is_column(keys):
        return keys if isinstance(keys, OneKey) else {"key": keys}, lambda columns: next(iter(columns.values()))
    return dict(keys.fields if isinstance(keys, StructExpression) else cast(Mapping[str, Any], keys)), dict


def _as_keywords(keys: Any, by: Any, aggregates: Any) -> str:
    """Return what to write in place of arguments by position that say too little."""
    if not isinstance(keys, Mapping) and _is_table(keys):
        names = _names_of(keys)
        key, x = (*names, "city", "price")[:2] if len(names) > 1 else ("city", "price")
        shown = ", ".join(map(str, names))
        return (
            f"{CALL}: of a table the columns of keys and the aggregates have to be named; write "
            f"gw.group_by(table, {key!r}, total=({x!r}, 'sum'), n=gw.count); its columns are {shown}"
        )
    if isinstance(by, Mapping):
        return (
            f"{CALL}: behind the aggregates there is no argument by position; name it, for example key_bits= or "
            f"size=, or give a table first: gw.group_by(table, 'city', {{'total': ('price', 'sum')}})"
        )
    how = next((each for each in (aggregates, by) if isinstance(each, str) and each in AGGREGATES), "sum")
    name = "n" if how == "count" else how
    return (
        f"{CALL}: an aggregate has a name, a column and an operator; write gw.group_by(keys, {name}=(x, {how!r})) in "
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
            raise ArgumentError(f"{CALL}: the table has no column {name!r}; it has {shown}")
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
            raise ArgumentError(f"{CALL}: {name} has a list of aggregates; give each a name: {columns}")
        is_whole = isinstance(given, (Count, tuple)) or given == "size" or name not in self._names
        return cast(Any, given) if is_whole else (self.column(name), given)
