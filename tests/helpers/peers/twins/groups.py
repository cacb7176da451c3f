"""Groups."""

from __future__ import annotations

import importlib.util
import statistics
from typing import Any

import numpy as np

import gridwise_py as gw

from .. import references as ref
from ..calls import Call, Given
from ..draws import ALL, Draw
from .reductions import mean_exact, var_exact
from .table import add, wide_dtypes

_AGGREGATES = ("sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "first", "last", "count", "median",
               "quantile", "nunique")  # fmt: skip
_OF_LABELS = ("min", "max", "first", "last", "count", "nunique")


def _draw_keys(d: Draw, n: int, gpu: bool) -> Given:
    if not gpu and d.chance(0.12):
        return Given(np.array(["b", "a", "", "ab", "zz"])[d.rng.integers(0, 5, n)], d.pick(("numpy", "list", "series")))
    names = ("uint8", "int64", "float32", "bool", "uint32", "int16", "float64", "uint64")
    keys = d.items("int32" if d.chance(0.5) else d.pick(names), n, d.pick(("few", "few", None)))
    return Given(keys, "gpu" if gpu else d.pick(("numpy", "numpy", "list", "strided", "series")))


def _draw_group_by(d: Draw) -> Call:
    n = d.length()
    gpu = d.chance(0.25)
    keys = tuple(_draw_keys(d, n, gpu) for _ in range(2 if d.chance(0.3) else 1))
    named: dict[str, Any] = {}
    if d.chance(0.1):
        limit = d.whole(1, 4)
        named["key_bits"] = limit if len(keys) == 1 else (limit, limit)
    for option in ("skipna", "dropna"):
        if d.chance(0.08):
            named[option] = True
    if d.chance(0.1):
        named["sort"] = False
    for i in range(d.pick((1, 1, 2))):
        x = d.items("float32" if d.chance(0.4) else d.dtype(ALL), n if d.chance(0.98) else n + 1)
        op = d.pick(_AGGREGATES)
        if not gpu and d.chance(0.15):
            labels = d.pick((np.array(["b", "a", "", "ab"]), np.array(["2020-01-02", "NaT", "1950-07-01"], "M8[s]")))
            x, op = labels[d.rng.integers(0, labels.size, x.size)], d.pick(_OF_LABELS)
        how = (
            "gpu"
            if gpu
            else "numpy"
            if x.dtype.kind == "M"
            else d.pick(("numpy", "numpy", "strided", "swapped", "series"))
        )
        column = Given(x, how)
        named[d.pick(("a", "b", "total", "price")) + str(i)] = (
            gw.count
            if op == "count" and d.chance(0.7)
            else (column, op, 1)
            if op in ("std", "var", "quantile") and d.chance(0.1 if op != "quantile" else 0.3)
            else (column, op)
        )
    return Call("group_by", (keys if len(keys) > 1 else keys[0],), named)


def _group_values(x: np.ndarray, op: str, ddof: int = 0, skipna: bool = False) -> Any:
    """Return an aggregate of the items of a group."""
    if x.dtype.kind in "UM":
        return _label_of(x, op, skipna)
    if skipna and x.dtype.kind == "f":
        x = x[~np.isnan(x)]
    if op in ("median", "quantile"):
        dtype = x.dtype if x.dtype.kind == "f" else np.float64
        return np.float64(_quantile_of(np.sort(x.astype(np.float64)), {"median": 0.5}.get(op, ddof or 0.5))).astype(
            dtype
        )
    if op == "nunique":
        return np.intp(np.unique(x[x == x]).size)
    floats = np.float32 if x.dtype == np.float16 else x.dtype
    with np.errstate(all="ignore"):
        if op in ("sum", "prod"):
            if x.dtype.kind == "f":
                return ref.combined({"sum": "add", "prod": "multiply"}[op], x.astype(floats))
            return getattr(np, op)(x)
        if op == "count":
            return np.intp(x.size - (np.isnan(x).sum() if x.dtype.kind == "f" else 0))
        if op in ("any", "all"):
            return bool(getattr(np, op)(x))
        if op == "mean":
            return np.mean(x.astype(np.float64)).astype(floats if x.dtype.kind == "f" else np.float64)
        if op in ("var", "std"):
            return getattr(np, op)(x.astype(np.float64), ddof=ddof).astype(
                np.float32 if x.dtype.kind == "f" and x.dtype.itemsize < 8 else np.float64
            )
        if not x.size:
            return x.dtype.type(np.nan)
        return {"min": np.min, "max": np.max, "first": lambda x: x[0], "last": lambda x: x[-1]}[op](x)


def _quantile_of(ordered: np.ndarray, q: float) -> float:
    """Return a linear quantile, which between equal infinities is infinite."""
    if not ordered.size or np.isnan(ordered[-1]):
        return np.nan
    place = (ordered.size - 1) * q
    low, high = ordered[int(np.floor(place))], ordered[int(np.ceil(place))]
    if low == high or place % 1 == 0:
        return low
    return low + high if np.isinf(low + high) else low + (high - low) * (place % 1)


def _label_of(x: np.ndarray, op: str, skipna: bool) -> Any:
    """Return an aggregate of the text or dates of a group."""
    known = x if x.dtype.kind == "U" else x[~np.isnat(x)]
    if op in ("count", "nunique"):
        return np.intp(known.size if op == "count" else np.unique(known).size)
    if x.dtype.kind == "M" and not (known if skipna else x).size:
        return np.datetime64("NaT", "s")
    rows = sorted((known if skipna else x).tolist()) if x.dtype.kind == "U" else known if skipna else x
    if op in ("min", "max"):
        return {"min": rows[0], "max": rows[-1]}[op] if x.dtype.kind == "U" else getattr(rows, op)()
    return (known if skipna else x)[0 if op == "first" else -1]


def _column_of(keys: Any) -> np.ndarray:
    """Return a column; numpy makes floats of a list of integers of which int64 does not hold all."""
    is_whole = isinstance(keys, list) and {type(key) for key in keys} == {int} and min(keys) >= 0
    return np.array(keys, np.uint64) if is_whole and max(keys) >= 2**63 else np.asarray(keys)


def _rows_of(keys: Any, dropna: bool = False, sort: bool = True) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the columns of keys, and of each group, in the order of the keys, its rows."""
    columns = [_column_of(k) for k in (keys if isinstance(keys, tuple) else (keys,))]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise ref.Refused("lengths")
    ranks = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns]
    order = np.lexsort(ranks[::-1]) if columns[0].size else np.zeros(0, np.intp)
    if dropna:
        missing = np.any([np.isnan(c) if c.dtype.kind == "f" else np.zeros(c.size, bool) for c in columns], axis=0)
        order = order[~missing[order]]
    stacked = np.stack([rank[order] for rank in ranks]) if order.size else np.zeros((1, 0))
    starts = np.flatnonzero(np.any(stacked[:, 1:] != stacked[:, :-1], axis=0)) + 1 if order.size else []
    rows = np.split(order, starts) if order.size else []
    return columns, rows if sort else sorted(rows, key=lambda row: row[0])


def _group_by(
    keys: Any,
    aggregates: Any = None,
    /,
    *,
    key_bits: Any = None,
    skipna: bool = False,
    dropna: bool = False,
    sort: bool = True,
    **more: Any,
) -> Any:
    columns, rows = _rows_of(keys, dropna, sort)
    if key_bits is not None:
        bits = key_bits if isinstance(key_bits, tuple) else (key_bits,)
        if any(isinstance(each, int) and each > 64 for each in bits):
            raise ref.Refused("key_bits")
        for column, b in zip(columns, bits, strict=True):
            if column.dtype.kind not in "iub":
                raise ref.Refused("key_bits of floats")
            if column.size and (column.min() < 0 or int(column.max()) >= 2**b):
                raise ref.Refused("a key of more bits")
    result = [column[[row[0] for row in rows]] if rows else column[:0] for column in columns]
    for what in more.values():
        if what is gw.count:
            result.append(np.array([row.size for row in rows], np.intp))
            continue
        x, op, ddof = np.asarray(what[0]), what[1], what[2] if len(what) > 2 else 0
        x = x.astype(x.dtype.newbyteorder("="))
        if x.shape != columns[0].shape:
            raise ref.Refused("lengths")
        values = [_group_values(x[row], op, ddof, skipna) for row in rows]
        is_label = x.dtype.kind in "UM" and op not in ("count", "nunique")
        if x.dtype.kind == "U" and is_label:
            result.append(np.array(values, object))
            continue
        none = np.zeros(0, x.dtype) if is_label else np.array([_group_values(np.ones(2, x.dtype), op, ddof)])[:0]
        result.append(np.array(values) if values else none)
    return tuple(result)


def _group_by_exact(
    want: Any,
    got: Any,
    keys: Any,
    aggregates: Any = None,
    /,
    *,
    key_bits: Any = None,
    skipna: bool = False,
    dropna: bool = False,
    sort: bool = True,
    **more: Any,
) -> Any:
    columns, rows = _rows_of(keys, dropna, sort)
    found: list[Any] = [None] * len(columns)
    for what in more.values():
        if what is gw.count or what[1] not in ("sum", "prod", "mean", "var", "std", "median", "quantile"):
            found.append(None)
            continue
        x, op, ddof = np.asarray(what[0]), what[1], what[2] if len(what) > 2 else 0
        values, scales = [], []
        for row in rows:
            part = x[row]
            if skipna and part.dtype.kind == "f":
                part = part[~np.isnan(part)]
            if op in ("sum", "prod"):
                op_ = {"sum": "add", "prod": "multiply"}[op]
                wide = part.astype(np.float32) if part.dtype == np.float16 else part
                values.append(ref.combined(op_, wide) if part.dtype.kind == "f" else getattr(np, op)(part))
                scales.append(ref.magnitude(op_, part))
                continue
            if op in ("median", "quantile"):
                values.append(_group_values(part, op, ddof))
                scales.append(4 * np.abs(part[np.isfinite(part)].astype(np.float64)).max(initial=0))
                continue
            single = got.dtype == np.float32  # means and variances of floats, and all on a device without float64
            kept = np.zeros((), np.float32 if single else np.float64)
            if op == "mean":
                value, scale = mean_exact(kept, kept, part.astype(kept.dtype if part.dtype.kind != "f" else part.dtype))
            else:
                value, scale = var_exact(op == "std")(
                    kept, kept, part.astype(np.float32) if single and part.dtype.kind != "f" else part, ddof=ddof
                )
            values.append(value)
            scales.append(scale)
        found.append((values, scales))
    return found


def _group_by_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """Strings come back as objects or as they were; on the GPU sums wrap in 32 bits, and truth is a word.

    A list of integers stays such, of which numpy makes floats where int64 does not hold all.
    """
    keys = call.args[0] if isinstance(call.args[0], tuple) else call.args[:1]
    if want.kind == "U":
        return {want, np.dtype(object)}
    if want.kind == "f" and at < len(keys) and keys[at].how == "list" and keys[at].items.dtype.kind == "u":
        return {want, keys[at].items.dtype}
    if not on_gpu:
        return {want}
    return {want, *map(np.dtype, ("uint32", "int32", "float32")), *wide_dtypes(call, want, on_gpu, at)}


def _gridwise_group_by(*args: Any, **kwargs: Any) -> Any:
    groups = gw.group_by(*args, **kwargs)
    columns = args[0] if isinstance(args[0], tuple) else (args[0],)
    keys = groups.keys if isinstance(args[0], tuple) else (groups.keys,)
    assert len(keys) == len(columns)
    found = (groups[name] for name in kwargs if name not in ("key_bits", "skipna", "dropna", "sort"))
    return (*keys, *(each.astype(object) if each.dtype.kind == "U" else each for each in found))


add(
    "group_by",
    _group_by,
    _draw_group_by,
    exact=_group_by_exact,
    dtypes=_group_by_dtypes,
    gridwise=_gridwise_group_by,
    weight=4,
)


# ---- joins


def _draw_join(d: Draw) -> Call:
    gpu, columns = d.chance(0.3), 2 if d.chance(0.3) else 1
    sides = []
    for n in (d.length(), d.length()):
        keys = tuple(_draw_keys(d, n if d.chance(0.99) else n + 1, gpu) for _ in range(columns))
        sides.append(keys if columns > 1 else keys[0])
    return Call("join", tuple(sides), {"how": "left"} if d.chance(0.5) else {})


def _is_untyped(value: Any, column: np.ndarray) -> bool:
    """Whether numpy makes floats of a list of nothing, or of integers that none of its dtypes holds."""
    return isinstance(value, list) and column.dtype == np.float64 and all(type(each) is int for each in value)


def _join(left: Any, right: Any, how: str = "inner") -> Any:
    sides = [[np.asarray(each) for each in (x if isinstance(x, tuple) else (x,))] for x in (left, right)]
    if any(column.shape != side[0].shape or column.ndim != 1 for side in sides for column in side):
        raise ref.Refused("lengths")
    listed: tuple[list[Any], list[Any]] = [], []
    given = [x if isinstance(x, tuple) else (x,) for x in (left, right)]
    for pair, values in zip(zip(*sides, strict=True), zip(*given, strict=True), strict=True):
        kinds = {column.dtype.kind for column, each in zip(pair, values, strict=True) if not _is_untyped(each, column)}
        if "U" in kinds and len(kinds) > 1:
            raise ref.Refused("text and numbers")
        for column, found in zip(pair, listed, strict=True):
            # Python compares integers exactly, numpy as floats.
            wide = column if kinds <= set("iubU") else column.astype(np.result_type(*pair))
            found.append([None if each != each else each for each in wide.tolist()])
    rights: dict[Any, list[int]] = {}
    for row, key in enumerate(zip(*listed[1], strict=True)):
        rights.setdefault(key, []).append(row)
    otherwise = [-1] if how == "left" else []
    pairs = [
        (row, place) for row, key in enumerate(zip(*listed[0], strict=True)) for place in rights.get(key, otherwise)
    ]
    rows, places = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(rows, np.intp), np.array(places, np.intp)


def _join_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    return {want, *((np.dtype((np.uint32, np.int32)[at]),) if on_gpu else ())}


add("join", _join, _draw_join, dtypes=_join_dtypes)


# ---- tables with nulls


def _with_none(x: np.ndarray, mask: np.ndarray) -> list[Any]:
    return [None if missing else each for each, missing in zip(x.tolist(), mask, strict=True)]


#: By its name, what makes a column of int64 with missing items, and of what.
_CONTAINERS = {
    "pandas": ("pandas", lambda pd, x, mask: pd.Series(x)),
    "nullable": ("pandas", lambda pd, x, mask: pd.arrays.IntegerArray(x.copy(), mask.copy())),
    "polars": ("polars", lambda pl, x, mask: pl.Series(_with_none(x, mask), dtype=pl.Int64)),
    "arrow": ("pyarrow", lambda pa, x, mask: pa.array(_with_none(x, mask), pa.int64())),
}


def _draw_table(d: Draw) -> Call:
    kinds = [kind for kind, (module, _) in _CONTAINERS.items() if importlib.util.find_spec(module)]
    n, kind = d.whole(1, 12), d.pick(kinds or ["numpy"])
    columns = [d.items("int64", n, d.pick(("few", "small", "beyond"))) for _ in range(2)]
    masks = [d.items("bool", n) & d.chance(0.6) for _ in range(2)]
    if kind == "pandas":  # whose own columns of integers become float64 where one is missing
        masks = [np.zeros(n, bool)] * 2
    op = d.pick(("first", "last", "min", "max", "count", "std", "mean"))
    return Call("group_by_table", (*map(Given, (*columns, *masks)), kind, op))


def _group_table(keys: Any, x: Any, no_key: Any, no_x: Any, kind: str, op: str) -> Any:
    """Return keys in order, the missing one last, and aggregates of what is not missing, as Python's numbers."""
    groups: dict[Any, list[int]] = {}
    for key, value, *missing in zip(keys.tolist(), x.tolist(), no_key, no_x, strict=True):
        items = groups.setdefault(None if missing[0] else key, [])
        items += [] if missing[1] else [value]
    found = sorted(groups.items(), key=lambda pair: (pair[0] is None, pair[0] or 0))
    of = {"first": lambda x: x[0], "last": lambda x: x[-1], "min": min, "max": max}.get(op)
    if op == "count":
        results: list[Any] = [len(items) for _, items in found]
    elif of is not None:
        results = [of(items) if items else None for _, items in found]
    else:
        least = 1 + (op == "std")
        module = {"std": statistics.stdev, "mean": statistics.mean}[op]
        results = [float(f"{module(items):.4g}") if len(items) >= least else None for _, items in found]
    return np.array([*[key for key, _ in found], None], object), np.array([*results, None], object)


def _gridwise_table(keys: Any, x: Any, no_key: Any, no_x: Any, kind: str, op: str) -> Any:
    module, make = _CONTAINERS[kind]
    of = importlib.import_module(module)
    table = {"k": make(of, keys, no_key), "x": make(of, x, no_x)}
    how = ("x", op, 1) if op == "std" else ("x", op)
    groups = gw.group_by(table, "k", r=how, skipna=True)
    columns = []
    for column in (groups.keys, groups.r):
        values = [None if each is None or each != each else each for each in np.asarray(column).tolist()]
        columns.append(np.array([*values, None], object))
    if op in ("std", "mean"):
        columns[1] = np.array([None if each is None else float(f"{each:.4g}") for each in columns[1]], object)
    return tuple(columns)


add("group_by_table", _group_table, _draw_table, gridwise=_gridwise_table, weight=2)
