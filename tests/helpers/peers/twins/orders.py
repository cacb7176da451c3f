"""Sorts, ranks, searches, and what moves items."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import references as ref
from ..calls import Call, Given
from ..draws import ALL, HUGE, LEFT, Draw
from .table import WORDS, add, drawn_along, drawn_array, out_for

# ---- sorts and ranks


def _sort_reference(
    x: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Any:
    result = np.sort(x, axis, kind, order, stable=stable)
    if not descending:
        return result
    x = np.asarray(x)
    if axis is None:
        return x.ravel()[ref.order(x.ravel(), True)]
    return np.apply_along_axis(lambda row: row[ref.order(row, True)], axis, x) if x.size else result


def _argsort_reference(
    x: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Any:
    x = np.asarray(x)
    np.argsort(x, axis, kind, order, stable=stable)  # raises
    if not descending:
        return np.argsort(x, axis, kind="stable")
    return np.apply_along_axis(lambda row: ref.order(row, True), -1 if axis is None else axis, x)


def _draw_sort(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = drawn_array(d, dims=1 if d.chance(0.75) else 3)
        axis = d.maybe(0.35, d.axis(x.items.ndim, several=False))
        named = {}
        if d.chance(0.1):
            named["stable"] = d.pick((True, False, None))
        elif d.chance(0.15) and x.items.ndim == 1 and name in ("sort", "argsort"):
            named["descending"] = d.chance(0.7)
        kind = (
            LEFT
            if named.get("stable") is not None
            else d.maybe(0.2, d.pick(("stable", "quicksort", "mergesort", "heapsort", None, "bubble")))
        )
        return d.call(name, [x], [("axis", axis), ("kind", kind)], named)

    return draw


add("sort", _sort_reference, _draw_sort("sort"), weight=1.5)
add("argsort", _argsort_reference, _draw_sort("argsort"))


def _draw_kth(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = drawn_array(d, dims=1 if d.chance(0.8) else 2)
        n = x.items.shape[-1] if x.items.ndim else 1
        kth = d.whole(-n, max(n - 1, 0)) if d.chance(0.85) else d.pick((n, -n - 1, 1.0, *HUGE, (0, n - 1), True))
        return d.call(
            name,
            [x, kth],
            [("axis", d.maybe(0.2, d.axis(x.items.ndim, several=False))), ("kind", d.maybe(0.1, "introselect"))],
        )

    return draw


def _partition(x: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    np.partition(x, kth, axis, kind, order)  # raises
    return np.sort(x, axis)  # a sort is a partition at every kth


def _argpartition(x: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    np.argpartition(x, kth, axis, kind, order)
    return np.argsort(x, axis, kind="stable")


add("partition", _partition, _draw_kth("partition"))
add("argpartition", _argpartition, _draw_kth("argpartition"))


def _draw_nth(d: Draw) -> Call:
    x = drawn_array(d)
    n = x.items.size
    k = d.whole(-n, max(n - 1, 0)) if d.chance(0.6) else [d.whole(-n, max(n - 1, 0)) for _ in range(d.whole(0, 40))]
    return Call("nth_element", (x, k if d.chance(0.9) else d.pick((n, -n - 1, 1.0, *HUGE))))


def _nth_element(x: Any, k: Any) -> Any:
    places = np.asarray(k)
    if places.size and places.dtype.kind not in "iu":
        raise TypeError("k")
    return np.sort(x, axis=None)[places if places.size else places.astype(int)]


add("nth_element", _nth_element, _draw_nth)


def _draw_lexsort(d: Draw) -> Call:
    n, gpu = d.length(), d.chance(0.3)
    if d.chance(0.25):
        rows = d.items(d.dtype(), d.pick(((2, n), (3, n), (n,), (2, 3, 4), (1, 5))))
        keys: Any = Given(rows, "gpu" if gpu else "numpy")
    else:
        count = d.pick((1, 2, 2, 3, 0))
        keys = [
            Given(d.items(d.dtype(), n if d.chance(0.97) else n + 1, "few"), "gpu" if gpu else "numpy")
            for _ in range(count)
        ]
        keys = tuple(keys) if d.chance(0.6) else keys
    return d.call("lexsort", [keys], [("axis", d.maybe(0.15, d.pick((-1, 0, 0, 1, 5))))])


add("lexsort", np.lexsort, _draw_lexsort)


def _draw_top_k(d: Draw) -> Call:
    x = drawn_array(d, dims=2, least=1)
    n = x.items.shape[-1]
    k = d.whole(0, n) if d.chance(0.9) else d.pick((n + 1, -1, 1.0, *HUGE))
    named = {
        key: value
        for key, value in (
            ("mode", d.pick(("largest", "smallest", "best"))),
            ("sorted", d.chance(0.5)),
            ("axis", d.pick((-1, x.items.ndim - 1, 0, 5))),
        )
        if d.chance(0.3)
    }
    return Call("top_k", (x, k), named)


def _top_k(x: Any, k: Any, *, axis: int = -1, mode: str = "largest", sorted: bool = True) -> Any:
    x = np.asarray(x)
    k, axis = operator.index(k), operator.index(axis)
    x = np.moveaxis(x, axis, -1)
    if not 0 <= k <= x.shape[-1] or mode not in ("largest", "smallest"):
        raise ref.Refused("k or mode")
    rows = x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])
    chosen = np.array([ref.best(row, k, mode, sorted) for row in rows], np.intp).reshape(*x.shape[:-1], k)
    return tuple(np.moveaxis(part, -1, axis) for part in (np.take_along_axis(x, chosen, -1), chosen))


add("top_k", _top_k, _draw_top_k)


def _draw_sort_pairs(d: Draw) -> Call:
    keys = drawn_array(d, dims=1, least=1, expression=False)
    n = keys.items.size if d.chance(0.96) else keys.items.size + 1
    values = d.alike(d.items(d.dtype(WORDS), n), keys)
    return Call("sort_pairs", (keys, values), {"descending": True} if d.chance(0.3) else {})


def _sort_pairs(keys: Any, values: Any, *, descending: bool = False) -> Any:
    keys, values = np.asarray(keys), np.asarray(values)
    if keys.shape != values.shape or keys.ndim != 1:
        raise ref.Refused("lengths")
    order = ref.order(keys, descending)
    return keys[order], values[order]


add("sort_pairs", _sort_pairs, _draw_sort_pairs)

# ---- search


def _draw_searchsorted(d: Draw) -> Call:
    dtype = d.dtype()
    a = np.sort(d.items(dtype, d.length(), "tenths" if dtype.kind == "f" and d.chance(0.4) else None))
    other = dtype if d.chance(0.6) else d.dtype()
    kind = d.rng.random()
    if kind < 0.25:
        v: Any = d.pick((0, 1, -1, 3, 0.1, 0.3, 2.5, 1e10, -(2**31), 2**32, 2**63, True))
        if a.size and dtype.kind == "f" and d.chance(0.5):  # the decimal number that an item was rounded from
            v = round(float(np.nan_to_num(a[d.whole(0, a.size - 1)], posinf=0, neginf=0)), 1)
    elif kind < 0.3 and a.size:
        v = np.asarray(a[d.whole(0, a.size - 1)])[()]
    else:
        v = d.any_array((other.name,), 2, expression=False)
        if a.size and d.chance(0.5):
            v = Given(a[d.rng.integers(0, a.size, v.items.shape)].astype(dtype), v.how)
    first, named, sorter = Given(a, d.how(a, expression=False)), {}, LEFT
    if isinstance(v, Given) and first.how in ("gpu", "view") and d.chance(0.7):
        v = Given(v.items, "gpu")
    if d.chance(0.12):
        shuffled = d.rng.permutation(a.size)
        inverse = np.argsort(shuffled, kind="stable")
        if d.chance(0.15) and a.size:
            inverse = inverse.copy()
            inverse[0] = d.pick((a.size, -1, -a.size - 1))
        if d.chance(0.1):
            inverse = inverse[1:]
        sorter = Given(inverse, "numpy")
        first = Given(a[shuffled], first.how if first.how != "view" else "gpu")
    side = d.maybe(0.4, d.pick(("left", "right", "right", "middle")))
    return d.call("searchsorted", [first, v], [("side", side), ("sorter", sorter)], named)


def _searchsorted(x1: Any, x2: Any, side: str = "left", sorter: Any = None) -> Any:
    given, wanted = np.asarray(x1), np.asarray(x2)
    if {given.dtype.kind, wanted.dtype.kind} == {"i", "u"}:  # which numpy compares in float64
        x1, x2 = given.astype(object), wanted.astype(object)
    found = np.searchsorted(x1, x2, side, sorter)
    if sorter is not None:
        places = np.asarray(sorter)
        if np.any((places < 0) | (places >= given.size)):  # numpy only says so of those that it looks at
            raise IndexError("sorter")
        given = given[places]
    if not np.array_equal(np.sort(given), given, equal_nan=given.dtype.kind == "f"):
        raise ref.Unspecified
    return found


add("searchsorted", _searchsorted, _draw_searchsorted, weight=2.5)


def _draw_digitize(d: Draw) -> Call:
    x = drawn_array(d, dims=2, expression=False) if d.chance(0.85) else d.pick((0.1, 1, -1, 2.5))
    same = x.items.dtype.name if isinstance(x, Given) and d.chance(0.6) else d.dtype().name
    bins = np.sort(d.items(same, d.whole(0, 8)))
    if d.chance(0.2):
        bins = bins[::-1].copy()
    elif d.chance(0.06):
        bins = d.items(same, d.whole(0, 8))
    elif d.chance(0.05) and np.dtype(same).kind == "f":
        bins[:] = np.nan
    on_gpu = isinstance(x, Given) and x.how in ("gpu", "view")
    ordered = any(np.all(each[1:] >= each[:-1]) for each in (bins, bins[::-1]))
    bins_given = Given(bins, "gpu" if on_gpu and bins.size and ordered and d.chance(0.5) else "numpy")
    if bins_given.how == "numpy":
        bins_given = Given(bins, d.how(bins, gpu=False))
    return d.call("digitize", [x, bins_given], [("right", d.maybe(0.3, d.chance(0.7)))])


add("digitize", np.digitize, _draw_digitize)

# ---- moving items


def _indices(d: Draw, n: int, shape: Any, wrong: float = 0.12) -> np.ndarray:
    dtype = d.pick(("int64", "int64", "int32", "uint32", "int16", "uint8", "uint64", "int8"))
    limits = np.iinfo(dtype)
    low, high = (max(-n, limits.min), min(n - 1, limits.max)) if d.chance(0.5) else (0, min(max(n - 1, 0), limits.max))
    indices = d.rng.integers(min(low, max(high, 0)), max(high, 0) + 1, shape).astype(dtype)
    if d.chance(wrong) and indices.size:
        bad = [v for v in (n, -n - 1, n + 7, 99, 2**31, 2**32, 2**32 + 1, -(2**32)) if limits.min <= v <= limits.max]
        if bad:
            indices.reshape(-1)[d.whole(0, indices.size - 1)] = d.pick(bad)
    return indices


def _index_argument(d: Draw, n: int, like: Given | None = None, dims: int = 2) -> Any:
    kind = d.rng.random()
    if kind < 0.06:
        return Given(d.rng.random(d.pick((n, 2, 3))) < 0.5, "numpy")
    if kind < 0.1:
        return d.pick(([], 0, n, -1, 1.0, [1.0], 2**32, [0, 2**33], None))  # numpy wraps in steps of n
    if kind < 0.2:
        return d.pick((0, -1, n - 1, np.int64(0), np.uint8(0)))
    indices = _indices(d, n, d.shape(dims, 1 if d.chance(0.9) else 0))
    if like is not None and like.how in ("gpu", "view"):
        indices = indices.clip(-n if indices.dtype.kind == "i" else 0, n - 1) if n else indices.ravel()[:0]
        return Given(np.asarray(indices), d.pick(("gpu", "gpu", "numpy")))
    return Given(indices, d.how(indices, gpu=False))


def _draw_take(d: Draw) -> Call:
    x = drawn_array(d, (*ALL, "complex64"), expression=False)
    axis = d.maybe(0.4, d.axis(x.items.ndim, several=False))
    whole = x.items.ndim == 0 or axis is LEFT or not isinstance(axis, int) or not -x.items.ndim <= axis < x.items.ndim
    n = x.items.size if whole else x.items.shape[axis]
    indices = _index_argument(d, n, x)
    mode = d.maybe(0.25, d.pick(("raise", "wrap", "clip", "drop")))
    options = {k: v for k, v in (("axis", axis), ("mode", mode)) if v is not LEFT}
    out = LEFT
    if d.chance(0.05) and isinstance(indices, Given):
        out = out_for(d, x, np.take, x.items, indices.items, **options)
    return d.call("take", [x, indices], [("axis", axis), ("out", out), ("mode", mode)])


add("take", np.take, _draw_take, compare="bits", out_at=3)


def _draw_put(d: Draw) -> Call:
    items = d.array((*ALL, "complex64"), 2)
    how = d.pick(("numpy", "numpy", "gpu", "gpu", "strided", "fortran", "reversed", "swapped", "readonly", "list"))
    x = Given(items, how)
    indices = _index_argument(d, items.size, x, dims=1)
    n = indices.items.size if isinstance(indices, Given) else 1
    kind = d.rng.random()
    if kind < 0.4:
        values: Any = d.pick((0, 1, 7, -1, 2.5, 300, 2**40, np.int8(3), np.float64(1.5), True))
    else:
        m = n if kind < 0.8 else d.pick((0, 1, 2, 3, n + 1, 2 * n))
        values = Given(d.items(items.dtype if d.chance(0.8) else d.dtype(), m), "numpy")
        if how == "gpu" and d.chance(0.5):
            values = Given(values.items.astype(items.dtype), "gpu")
    return d.call("put", [x, indices, values], [("mode", d.maybe(0.25, d.pick(("raise", "wrap", "clip", "drop"))))])


def _put(x: Any, indices: Any, values: Any, mode: str = "raise") -> Any:
    np.put(x, indices, values, mode)


def _check_put(call: Call, want: np.ndarray, got: np.ndarray) -> str | None:
    """Of equal indices any value may stay."""
    items = call.args[0].items
    flat = np.arange(items.size)
    indices, values = (np.asarray(arg.items if isinstance(arg, Given) else arg).ravel() for arg in call.args[1:3])
    mode = call.args[3] if len(call.args) > 3 else call.kwargs.get("mode", "raise")
    found, wanted = got.ravel().copy(), want.ravel()
    if values.size and indices.size and items.size:
        at = flat[:0] if mode == "drop" else np.take(flat, indices.astype(np.int64), mode=mode)
        values = np.resize(values, indices.size).astype(items.dtype)
        for i in np.flatnonzero(np.bincount(at, minlength=1) > 1):
            if any(values[j].tobytes() == found[i].tobytes() or values[j] == found[i] for j in np.flatnonzero(at == i)):
                found[i] = wanted[i]
    same = np.array_equal(wanted, found, equal_nan=items.dtype.kind in "fc")
    return None if same else "items differ; "


add("put", _put, _draw_put, check=_check_put, in_place=True, weight=2.5)


def _draw_roll(d: Draw) -> Call:
    x = drawn_array(d, (*ALL, "complex64"))
    axis = d.maybe(0.5, d.axis(x.items.ndim))
    kind = d.rng.random()
    if kind < 0.75:
        shift: Any = d.whole(-9, 9)
    elif kind < 0.85:
        shift = d.pick((Given(np.array(2)), Given(np.array([1, 2])), np.int64(3), (1, 2), [1, -1], True))
    else:
        shift = d.pick((*HUGE, -(2**31), -(2**40), 1.5, "a", None))
    return d.call("roll", [x, shift], [("axis", axis)])


add("roll", np.roll, _draw_roll, compare="bits")
add("flip", np.flip, drawn_along("flip", np.flip, ("axis",), pool=(*ALL, "complex64")), compare="bits")


def _draw_transpose(d: Draw) -> Call:
    x = drawn_array(d, (*ALL, "complex64"), expression=False)
    ndim = x.items.ndim
    axes: Any = tuple(int(a) for a in d.rng.permutation(ndim))
    if d.chance(0.3):
        axes = tuple(a - ndim if d.chance(0.5) else a for a in axes)
    if d.chance(0.12):
        axes = d.pick(((0,) * ndim, (*axes, 0), (0, 5), axes[1:], [*axes], (1.0,)))
    return d.call("transpose", [x], [("axes", d.maybe(0.6, axes))])


add("transpose", np.transpose, _draw_transpose, compare="bits")


def _draw_repeat(d: Draw) -> Call:
    x = drawn_array(d, dims=2 if d.chance(0.2) else 1, least=0 if d.chance(0.1) else 1)
    n, named = x.items.size, {}
    kind = d.rng.random()
    if kind < 0.4:
        repeats: Any = d.whole(0, 4) if n < 600 else d.whole(0, 2)
    elif kind < 0.5:
        repeats = d.pick((-1, 1.5, 2.0, True, np.uint8(2), *HUGE, [2], [], (1, 2)))
    elif kind < 0.6:
        small = d.items("bool", n)
        repeats = Given(small, "numpy")
    else:
        counts = d.rng.integers(0, 4, n if d.chance(0.95) else n + 1).astype(
            d.pick(("int64", "int32", "uint32", "uint64", "int8", "float64"))
        )
        if d.chance(0.3 if counts.dtype == np.uint64 else 0.08) and counts.size >= 2:
            counts[0] = {"i": -1, "u": np.iinfo(counts.dtype).max if counts.dtype.kind == "u" else 0, "f": 1}[
                counts.dtype.kind
            ]
        on_gpu = x.how in ("gpu", "view") and counts.dtype == np.uint32 and d.chance(0.7)
        repeats = Given(counts, "gpu" if on_gpu else "numpy")
        if on_gpu:
            named["size"] = int(counts.sum(dtype=np.uint64))
    axis = d.maybe(0.2, d.pick((None, 0, -1, 1, 5)))
    return d.call("repeat", [x, repeats], [("axis", axis)], named)


def _repeat(x: Any, repeats: Any, axis: Any = None, *, size: Any = None) -> Any:
    return np.repeat(x, repeats, axis)


add("repeat", _repeat, _draw_repeat, compare="bits")


def _draw_compress(d: Draw) -> Call:
    x = drawn_array(d, (*ALL, "complex64"), dims=2 if d.chance(0.25) else 1)
    n = x.items.size
    kind = d.rng.random()
    if kind < 0.7:
        shape: Any = x.items.shape if x.items.ndim == 1 else (n,)
    else:
        shape = d.pick(((max(n - 1, 0),), (n + 1,), (1,), (2,), (0,), x.items.shape, (2, 2), ()))
    condition = d.items(d.pick(("bool", "bool", "int32", "float32", "int64", "uint8")), shape, None)
    first = Given(condition, x.how if x.how == "gpu" and d.chance(0.9) else d.how(condition, gpu=False))
    axis = d.maybe(0.2, d.axis(x.items.ndim, several=False))
    return d.call("compress", [first, x], [("axis", axis)])


add("compress", np.compress, _draw_compress, compare="bits")


def _draw_extract(d: Draw) -> Call:
    x = drawn_array(d, (*ALL, "complex64"), dims=2 if d.chance(0.25) else 1, expression=False)
    shape = x.items.shape if d.chance(0.8) else (max(x.items.size - 1, 0),)
    condition = d.items(d.pick(("bool", "bool", "int32", "float32", "uint8")), shape, None)
    return d.call("extract", [Given(condition, x.how if x.how == "gpu" else d.how(condition, gpu=False)), x])


add("extract", np.extract, _draw_extract, compare="bits")


def _draw_delete(d: Draw) -> Call:
    x = drawn_array(d, ALL, dims=2 if d.chance(0.25) else 1, expression=False)
    axis = d.maybe(0.3, d.axis(x.items.ndim, several=False))
    least = x.items.size if axis is None else min(x.items.shape, default=0)
    if d.chance(0.2):
        indices: Any = d.pick((0, -1, *HUGE, 1.5, True))
    else:
        indices = Given(
            d.rng.integers(-least, least + d.chance(0.05), d.whole(0, 6)) if least else np.zeros(0, int), "numpy"
        )
    return d.call("delete", [x, indices], [("axis", axis)])


add("delete", np.delete, _draw_delete, compare="bits")


def _draw_together(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        first = drawn_array(d, (*ALL, "complex64"), least=d.chance(0.95) if name == "concatenate" else 0)
        arrays, shape = [first], first.items.shape
        axis = d.axis(len(shape) + (name == "stack"), several=False)
        for _ in range(d.pick((0, 1, 1, 1, 2, 5))):
            dtype = first.items.dtype if first.items.dtype.kind == "c" or d.chance(0.7) else d.dtype()
            along = axis if isinstance(axis, int) and -len(shape) <= axis < len(shape) else 0
            own = list(shape)
            if own and name == "concatenate":
                own[along] = d.whole(0, 4)
            arrays.append(d.alike(d.items(dtype, own if d.chance(0.98) else (2, *own)), first))
        return d.call(name, [arrays], [("axis", axis if d.chance(0.8) else LEFT)])

    return draw


for _name, _of in (("concatenate", np.concatenate), ("stack", np.stack)):
    add(_name, _of, _draw_together(_name), compare="bits")


def _draw_tile(d: Draw) -> Call:
    x = drawn_array(d, (*ALL, "complex64"), dims=2)
    reps = (0, 1, 2, 3, (2,), (2, 3), (1, 2), (2, 1, 2), (), [2, 2], 1.5, *((-1,) if x.items.size else ()))
    return Call("tile", (x, d.pick(reps)))


add("tile", np.tile, _draw_tile, compare="bits")
