"""Bins, counts and indices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import references as ref
from ..calls import Call, Given
from ..draws import ALL, HUGE, LEFT, Draw
from .table import WORDS, add, drawn_array, wide_dtypes


def _bins(d: Draw, x: np.ndarray) -> Any:
    kind = d.rng.random()
    if kind < 0.5:
        return d.pick((1, 2, 3, 5, 7, 10, 13, 100))
    if kind < 0.58:
        return d.pick((0, -1, 3.5, 3.0, "auto", "sturges", True, None, np.int64(4), np.uint8(3), *HUGE[:6]))
    dtype = x.dtype.name if d.chance(0.5) else d.pick(("float64", "float32", "int64", "int32"))
    edges = np.sort(d.items(dtype, d.whole(1, 7)))
    if d.chance(0.08):
        edges = d.pick((edges[::-1].copy(), edges[:0], d.items(dtype, 4)))
    return Given(edges, d.how(edges, gpu=False))


def _range(d: Draw) -> Any:
    return d.pick(
        (
            (0, 1),
            (0, 10),
            (0.1, 0.7),
            (-1.5, 2.5),
            (0, 0),
            (np.float32(0.1), np.float32(0.7)),
            [0, 3],
            (2, 1),
            (0, np.nan),
            (0, np.inf),
            10,
            (1,),
            (0, 2**40),
            Given(np.array([0, 0.1])),
        )
    )


def drawn_histogram(d: Draw) -> Call:
    x = drawn_array(d, dims=2 if d.chance(0.15) else 1)
    if d.chance(0.3) and x.items.dtype.kind == "f":  # items on the edges
        n, end = d.pick((3, 4, 5, 7, 11)), x.items.dtype.type
        x = Given(np.linspace(end(0.1), end(0.7), n, dtype=end), d.pick(("numpy", "numpy", "gpu")))
        if x.how == "numpy":
            return d.call("histogram", [x], [("bins", n - 1), ("range", d.maybe(0.2, (end(0.1), end(0.7))))])
        return d.call("histogram", [x], [("bins", n - 1), ("range", (0.1, 0.7))])
    on_gpu = x.how in ("gpu", "view", "expr")
    bins = d.maybe(0.85, _bins(d, x.items))
    range_ = d.maybe(1.0 if on_gpu and not isinstance(bins, Given) else 0.25, _range(d))
    if on_gpu and isinstance(bins, Given) and d.chance(0.3):
        bins = Given(bins.items, "gpu")
    weights: Any = LEFT
    if d.chance(0.2):
        n = x.items.shape if d.chance(0.95) else (3,)
        of = d.dtype(WORDS)
        items = d.items(of, n, d.pick((None, "few")) if of.kind == "f" else "few")
        # numpy subtracts running sums: an infinity makes all later bins NaN.
        weights = d.alike(np.nan_to_num(items, nan=1, posinf=2, neginf=3) if of.kind == "f" else items, x)
    return d.call(
        "histogram",
        [x],
        [("bins", bins), ("range", range_), ("density", d.maybe(0.12, d.chance(0.8))), ("weights", weights)],
    )


def _histogram_exact(
    want: Any, got: Any, x: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    with np.errstate(all="ignore"):
        edges = np.histogram_bin_edges(x, bins, range)
        if want.size == edges.size:  # the edges themselves
            return [None, (want, np.zeros(want.size))]
        scale: Any = np.zeros(edges.size - 1)
        if weights is not None and np.asarray(weights).dtype.kind == "f":
            w = np.abs(np.asarray(weights, np.float64))
            total = np.where(np.isfinite(w), w, 0).sum()
            scale = np.full(edges.size - 1, (16 + w.size) * total)
        if density:
            total = np.float64(np.histogram(x, bins, range, None, weights)[0].sum(dtype=np.float64))
            widths = np.diff(np.asarray(edges).astype(np.float64))
            scale = np.asarray(scale) / np.abs(total * widths) + 8 * np.abs(want)
            if weights is not None and np.asarray(weights).dtype.itemsize < got.dtype.itemsize:
                scale = scale * (np.finfo(np.float32).eps / np.finfo(np.float64).eps)  # sums are of the weights' dtype
    return [(want, np.where(np.isnan(scale), np.inf, scale)), None]


def _histogram_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    more = set(map(np.dtype, ("uint32", "float32", "int32", "int64", "uint64"))) if on_gpu and at == 0 else set()
    return {*wide_dtypes(call, want, on_gpu, at), *more}


add(
    "histogram",
    np.histogram,
    drawn_histogram,
    exact=_histogram_exact,
    dtypes=_histogram_dtypes,
    weight=4,
    host_results=(1,),
)


def _draw_histogram2d(d: Draw) -> Call:
    x = drawn_array(d, dims=1, least=1, kind=None if d.chance(0.7) else "tenths" if d.chance(0.5) else "few")
    n = x.items.size if d.chance(0.96) else x.items.size + 1
    y = d.alike(d.items(x.items.dtype if d.chance(0.8) else d.dtype(), n), x)
    on_gpu = any(each.how in ("gpu", "view", "expr") for each in (x, y))
    if on_gpu:
        y = Given(y.items.astype(x.items.dtype), y.how)
    kind = d.rng.random()
    bins: Any = LEFT
    if kind < 0.4:
        bins = d.pick((1, 2, 5, (2, 3), [4, 1]))
    elif kind < 0.6:
        bins = tuple(
            Given(np.sort(d.items(d.pick(("float64", "float32", "int64")), d.whole(2, 5), "small"))) for _ in range(2)
        )
    elif kind < 0.65:
        bins = d.pick((0, -1, 3.5, (1, 2, 3), "auto"))
    by_edges = isinstance(bins, tuple) and bool(bins) and isinstance(bins[0], Given)
    need = on_gpu and not by_edges
    range_ = d.maybe(1.0 if need else 0.2, d.pick((((0, 1), (0, 2)), ((0.1, 0.7), (-1, 3)), [[0, 5], [0, 5]], (0, 1))))
    weights: Any = LEFT
    if d.chance(0.15):
        weights = d.alike(d.items(d.pick(("float64", "float32", "int64")), n, "few"), x)
    return d.call(
        "histogram2d",
        [x, y],
        [("bins", bins), ("range", range_), ("density", d.maybe(0.1, True)), ("weights", weights)],
    )


def _histogram2d_exact(
    want: Any, got: Any, x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    total = 64 * np.abs(np.asarray(weights, np.float64)).sum() if weights is not None else 0
    with np.errstate(all="ignore"):
        scale = (
            np.full(np.shape(want), np.nan_to_num(total)) if weights is not None and not density else 64 * np.abs(want)
        )
    return [(want, scale), None, None]


add(
    "histogram2d",
    np.histogram2d,
    _draw_histogram2d,
    exact=_histogram2d_exact,
    dtypes=_histogram_dtypes,
    host_results=(1, 2),
)
add(
    "histogram_bin_edges",
    np.histogram_bin_edges,
    lambda d: (
        lambda c: Call("histogram_bin_edges", c.args[:3], {k: v for k, v in c.kwargs.items() if k in ("bins", "range")})
    )(drawn_histogram(d)),
    resides="",
)


def _draw_bincount(d: Draw) -> Call:
    dtype = d.pick(("int64", "int64", "int32", "uint32", "uint8", "int8", "uint16", "bool", "uint64"))
    n = d.length()
    x = (d.rng.integers(0, d.pick((2, 5, 100)), n)).astype(dtype)
    if d.chance(0.06):
        x = d.pick((x.astype(np.float64), -x.astype(np.int64) - 1, x.reshape(-1, 1), np.array(3), x + np.int64(2**33)))
    given = Given(x, d.how(x))
    weights: Any = LEFT
    if d.chance(0.4):
        m = n if d.chance(0.93) else n + 1
        kind = d.pick((None, None, "few"))
        w = d.items(d.pick(("float64", "float32", "float32", "int64", "int32", "uint8", "float16", "bool")), m, kind)
        if d.chance(0.2) and w.dtype == np.float32 and m > 4:
            w = np.ones(m, np.float32)
            w[0] = 2**24
        weights = d.alike(w, given)
    minlength = d.maybe(0.25, d.whole(0, 200) if d.chance(0.75) else d.pick((-1, 1.5, None, *HUGE)))
    named = {}
    if given.how in ("gpu", "view", "expr") or (isinstance(weights, Given) and weights.how == "gpu"):
        named["length"] = d.whole(0, 120) if d.chance(0.9) else d.pick((-1, 1.5, *HUGE))
        minlength = LEFT
    return d.call("bincount", [given], [("weights", weights), ("minlength", minlength)], named)


def _bincount(x: Any, weights: Any = None, minlength: Any = 0, *, length: Any = None) -> Any:
    if length is None:
        return np.bincount(x, weights, minlength)
    x, length = np.asarray(x), operator.index(length)
    if length < 0 or x.ndim != 1:
        raise ref.Refused("length")
    if x.size and x.dtype.kind not in "iub":
        raise TypeError("integers")
    if length > 2**31:
        raise MemoryError("length")
    keep = (x >= 0) & (x < length)
    if weights is None:
        return np.bincount(x[keep].astype(np.int64), minlength=length)
    weights = np.asarray(weights)
    if weights.shape != x.shape:
        raise ref.Refused("weights")
    return np.bincount(x[keep].astype(np.int64), weights[keep], length)


def _bincount_exact(want: Any, got: Any, x: Any, weights: Any = None, minlength: Any = 0, *, length: Any = None) -> Any:
    if weights is None:
        return None
    w = np.abs(np.asarray(weights).astype(np.float64))
    w = np.where(np.isfinite(w), w, 0)
    scale = np.zeros(want.size)
    x = np.asarray(x)
    keep = (x >= 0) & (x < want.size)
    np.add.at(scale, x[keep].astype(np.int64), w[keep])
    return want, scale * (16 + w.size / 4) + np.where(np.abs(want) >= 2**31, np.inf if got.dtype.kind in "iu" else 0, 0)


def _bincount_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    return {want, *(map(np.dtype, ("uint32", "int32", "float32", "int64", "uint64", "float64")) if on_gpu else ())}


add("bincount", _bincount, _draw_bincount, exact=_bincount_exact, dtypes=_bincount_dtypes, weight=2)


def _draw_by_index(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        n, length = d.length(), d.whole(1, 30)
        indices = d.rng.integers(0, length, n).astype(d.pick(("int64", "int32", "uint32", "uint64", "uint8")))
        if d.chance(0.08) and n and indices.dtype.kind == "i":
            indices[0] = d.pick((-1, length, 99))
        if d.chance(0.03):
            indices = indices.astype(np.float64)
        x = d.items(d.dtype(WORDS if name == "scatter_add" else ALL), n)
        values = d.given(x, expression=False)
        given = Given(indices, "gpu" if values.how in ("gpu", "view") else d.how(indices, gpu=False))
        if given.how == "gpu" and indices.dtype.kind == "i":
            given = Given(np.clip(indices, 0, length - 1), "gpu")
        if name == "scatter_add":
            base = Given(d.items(x.dtype, length), "gpu" if given.how == "gpu" else "numpy")
            scalar = d.chance(0.2)
            return Call(
                name, (base, given, d.pick((1, 2, 0)) if scalar else values if d.chance(0.95) else Given(x[1:]))
            )
        size = length if d.chance(0.9) else d.pick((0, -1, 1.5, *HUGE))
        return Call(
            name, (given, values, d.pick(tuple(ref.UFUNCS))) if d.chance(0.8) else (given, values), {"length": size}
        )

    return draw


def _reduce_by_index(indices: Any, x: Any, op: str = "add", *, length: Any) -> Any:
    indices, x, length = np.asarray(indices), ref.of_four_bytes(np.asarray(x)), operator.index(length)
    if indices.size and indices.dtype.kind not in "iu":
        raise TypeError("indices")
    if length < 0 or indices.shape != x.shape or (indices.size and (indices.min() < 0 or indices.max() >= length)):
        raise ref.Refused("length or indices")
    if length > 2**31:
        raise MemoryError("length")
    return (
        np.array([ref.combined(op, x[indices == i]) for i in range(length)], x.dtype)
        if length < 1000
        else (np.full(length, ref.identity(op, x.dtype)))
    )


def _reduce_by_index_exact(want: Any, got: Any, indices: Any, x: Any, op: str = "add", *, length: Any) -> Any:
    indices, x = np.asarray(indices), np.asarray(x)
    return want, [ref.magnitude(op, x[indices == i]) for i in range(want.size)]


def _scatter_add(x: Any, indices: Any, values: Any) -> Any:
    result, indices = np.array(x), np.asarray(indices)
    if indices.size and indices.dtype.kind not in "iu":
        raise TypeError("indices")
    if indices.size and indices.min() < 0:
        raise IndexError("negative")
    if np.ndim(values) and np.asarray(values).shape != indices.shape:
        raise ref.Refused("lengths")
    with np.errstate(all="ignore"):
        whole = object if isinstance(values, list) else None  # numpy makes floats of what int64 does not hold
        np.add.at(result, indices.astype(np.int64), np.asarray(values, whole).astype(result.dtype))
    return result


def _scatter_add_exact(want: Any, got: Any, x: Any, indices: Any, values: Any) -> Any:
    x, indices = np.asarray(x), np.asarray(indices)
    if x.dtype.kind != "f":
        return None
    values = np.broadcast_to(np.asarray(values), indices.shape)
    every = [np.concatenate([x[i : i + 1], values[indices == i].astype(x.dtype)]) for i in range(x.size)]
    return [ref.combined("add", each) for each in every], [ref.magnitude("add", each) for each in every]


add("reduce_by_index", _reduce_by_index, _draw_by_index("reduce_by_index"), exact=_reduce_by_index_exact)
add("scatter_add", _scatter_add, _draw_by_index("scatter_add"), exact=_scatter_add_exact)
