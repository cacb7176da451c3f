"""Selections and sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import references as ref
from ..calls import Call, Given
from ..draws import ALL, Draw
from .table import WORDS, add, drawn_array


def _draw_where_true(name: str) -> Callable[[Draw], Call]:
    return lambda d: Call(name, (drawn_array(d, dims=3 if d.chance(0.2) else 1, least=0 if d.chance(0.1) else 1),))


add("flatnonzero", np.flatnonzero, _draw_where_true("flatnonzero"))
add("nonzero", np.nonzero, _draw_where_true("nonzero"))


def _draw_unique(d: Draw) -> Call:
    x = drawn_array(d, dims=2 if d.chance(0.3) else 1)
    optional = [(name, d.maybe(0.35, d.chance(0.75))) for name in ("return_index", "return_inverse", "return_counts")]
    named = {"equal_nan": d.chance(0.4)} if d.chance(0.25) else {}
    axis = d.maybe(0.1, d.pick((None, 0, -1, 1)))
    if d.chance(0.04):
        named["sorted"] = d.chance(0.7)
    return d.call("unique", [x], [*optional, ("axis", axis)], named)


def _unique(
    x: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    *,
    equal_nan: Any = True,
    sorted: Any = True,
) -> Any:
    found = np.unique(x, True, return_inverse, return_counts, axis, equal_nan=equal_nan)  # stable with the index
    wanted = [found[0], *((found[1],) if return_index else ()), *found[2:]]
    return tuple(wanted) if len(wanted) > 1 else wanted[0]


def _unique_inverse(x: Any) -> Any:
    return _unique(x, False, True, equal_nan=False)


add("unique", _unique, _draw_unique)
for _name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
    add(
        _name,
        {"unique_values": lambda x: np.sort(np.unique_values(x)), "unique_inverse": _unique_inverse}.get(
            _name, getattr(np, _name)
        ),
        (lambda name: lambda d: Call(name, (drawn_array(d, dims=2 if d.chance(0.3) else 1, expression=False),)))(_name),
    )


def _draw_sets(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        one = d.array(ALL, 2 if d.chance(0.1) else 1)
        dtype = one.dtype if d.chance(0.7) else d.dtype()
        two = d.items(dtype, d.length() if d.chance(0.9) else (2, 3))
        if d.chance(0.3) and one.size:
            two = one.reshape(-1)[d.rng.integers(0, one.size, d.whole(0, 9))].astype(dtype)
        if d.chance(0.1):  # what only the common type of numpy's, float64, takes for one
            base, kinds = d.pick((2**53, 2**60, 2**63 - 16)), d.pick((("int64", "uint64"), ("uint64", "int64")))
            one, two = ((base + d.rng.integers(0, 6, d.whole(1, 5))).astype(kind) for kind in kinds)
        first = Given(one, d.how(one, expression=False))
        second = d.alike(two, first) if d.chance(0.9) else d.pick((1, 0.1, -1, 2**40, []))
        unique = d.maybe(0.2, d.chance(0.5))
        if unique is True:
            first, second = (Given(np.unique(x.items), x.how) if isinstance(x, Given) else x for x in (first, second))
        if name == "isin":
            kind = d.maybe(0.1, d.pick((None, "sort", "table")))
            return d.call(
                name,
                [first, second],
                [("assume_unique", unique), ("invert", d.maybe(0.3, d.chance(0.7))), ("kind", kind)],
            )
        if name == "union1d":
            return Call(name, (first, second))
        if name == "intersect1d":
            return d.call(
                name, [first, second], [("assume_unique", unique), ("return_indices", d.maybe(0.2, d.chance(0.7)))]
            )
        return d.call(name, [first, second], [("assume_unique", unique)])

    return draw


def _is_in(one: Any, two: Any, *args: Any, kind: Any = None, **kwargs: Any) -> Any:
    return np.isin(one, two, *args, kind=None if _is_object(one) else kind, **kwargs)


def _is_object(x: Any) -> bool:
    return getattr(getattr(x, "dtype", None), "kind", "") == "O"


def _exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of sets that compares int64 with uint64 as Python does, and not in float64."""

    def find(one: Any, two: Any, *args: Any, **kwargs: Any) -> Any:
        if {getattr(each, "dtype", None) for each in (one, two)} != {np.dtype(np.int64), np.dtype(np.uint64)}:
            return function(one, two, *args, **kwargs)
        found = function(one.astype(object), two.astype(object), *args, **kwargs)
        return found.astype(one.dtype) if _is_object(found) else found

    return find


for _name in ("isin", "union1d", "intersect1d", "setdiff1d", "setxor1d"):
    _exact = {"isin": _exactly(_is_in), "setdiff1d": _exactly(np.setdiff1d)}
    add(_name, _exact.get(_name, getattr(np, _name)), _draw_sets(_name))


def _draw_partition_by(d: Draw) -> Call:
    x = drawn_array(d, dims=1, least=1)
    n = x.items.size if d.chance(0.95) else x.items.size + 1
    conditions = tuple(d.alike(d.items(d.pick(("bool", "bool", "int32", "float32")), n), x) for _ in range(2))
    return Call("partition_by", (x, conditions if d.chance(0.4) else conditions[0]))


def _partition_by(x: Any, where: Any) -> Any:
    x = np.asarray(x)
    wheres = [np.asarray(w).astype(bool) for w in (where if isinstance(where, tuple) else (where,))]
    if any(w.shape != x.shape for w in wheres) or x.ndim != 1:
        raise ref.Refused("lengths")
    parts, rest = [], np.ones(x.size, bool)
    for where in wheres:
        parts.append(x[rest & where])
        rest &= ~where
    return (*parts, x[rest])


add("partition_by", _partition_by, _draw_partition_by, compare="bits")


def _draw_runs(d: Draw) -> Call:
    x = drawn_array(d, dims=1, least=1, kind="few" if d.chance(0.4) else None)
    return Call("run_length_encode", (x,), {"equal_nan": d.chance(0.5)} if d.chance(0.3) else {})


def _run_lengths(x: Any, *, equal_nan: bool = True) -> Any:
    x = np.asarray(x)
    starts = ref.runs(x, equal_nan)
    return x[starts], starts, np.diff(starts, append=x.size)


add("run_length_encode", _run_lengths, _draw_runs)


def _draw_merge(d: Draw) -> Call:
    dtype = d.dtype()
    a, b = (np.sort(d.items(dtype, d.length())) for _ in range(2))
    named: dict[str, Any] = {}
    if d.chance(0.25):
        a, b = a[ref.order(a, True)], b[ref.order(b, True)]
        named["descending"] = True
    first = Given(a, d.how(a, expression=False))
    second = d.alike(b, first)
    if d.chance(0.3):
        of = d.dtype(WORDS)
        how = "gpu" if "gpu" in (first.how, second.how) else "numpy"
        named["values"] = tuple(Given(d.items(of, x.size), how) for x in (a, b))
    return Call("merge", (first, second), named)


def _merge(a: Any, b: Any, *, values: Any = None, descending: bool = False) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    dtype = a.dtype if not b.size else b.dtype if not a.size else np.result_type(a, b)
    keys = np.concatenate([a.astype(dtype), b.astype(dtype)])
    order = ref.order(keys, descending)
    if any(x.tobytes() != x[ref.order(x, descending)].tobytes() for x in (a, b)):  # unsorted: any result is right
        raise ref.Unspecified
    if values is None:
        return keys[order]
    return keys[order], np.concatenate([np.asarray(v) for v in values])[order]


add("merge", _merge, _draw_merge)
