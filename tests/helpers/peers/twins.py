"""One table: of each public function its twin, how its arguments are drawn, and how results are compared."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gridwise_py as gw

from . import references as ref
from .calls import OPERATORS, Call, Given
from .draws import ALL, HUGE, LEFT, Draw

_INTEGERS = ("int32", "uint32", "int64", "uint8", "int8", "uint16", "int16", "uint64")
_FLOATS = ("float32", "float64", "float16")
_WORDS = ("int32", "uint32", "float32", "int64", "float64", "uint64")
_INDEX = {np.dtype(np.uint32), np.dtype(np.int64)}


def _index_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """Indices and counts of Arrays are u32."""
    return {want, *((np.dtype(np.uint32),) if on_gpu and want == np.intp else ())}


def _wide_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """On the GPU items of 1 and 2 bytes become words, and indices are u32."""
    words = {"b": "uint32", "u": "uint32", "i": "int32", "f": "float32"}
    more = {np.dtype(words[want.kind])} if on_gpu and want.kind in words and want.itemsize < 4 else set()
    return {want, *more, *_index_dtypes(call, want, on_gpu, at)}


def _mean_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """Means of integers are float32, where numpy's are float64."""
    x = call.args[0]
    kind = x.items.dtype.kind if isinstance(x, Given) else "i"
    listed = isinstance(x, Given) and x.how in ("list", "tuple", "scalar")
    return {want, *((np.dtype(np.float32),) if kind in "iub" or on_gpu or listed else ())}


def _any_float(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    return {want, *(map(np.dtype, ("float32", "float64")) if on_gpu else ())}


def _in_float32(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """Functions of items are computed in float32, of float16 in that."""
    return {want, np.dtype(np.float32)} if want.kind == "f" else _wide_dtypes(call, want, on_gpu, at)


@dataclass(frozen=True)
class Twin:
    """What a public function is compared with.

    Attributes
    ----------
    numpy : callable
        Takes what the function takes, but Arrays and expressions as numpy arrays.
    draw : callable
        Makes a call.
    compare : {"exact", "bits", "any"}
        Whether −0 equals +0, and how NaN is made does not matter; "any" compares shape and dtype only.
    exact : callable, optional
        Of functions that round: returns exact values, and by how many eps of the dtype results may differ.
    dtypes : callable
        Returns the dtypes that a result may have that is not of numpy's.
    gridwise : callable, optional
        In place of the function of that name.
    """

    numpy: Callable[..., Any]
    draw: Callable[[Draw], Call]
    compare: str = "exact"
    exact: Callable[..., Any] | None = None
    dtypes: Callable[..., Any] = _wide_dtypes
    gridwise: Callable[..., Any] | None = None
    #: In place of a comparison of items: says what is wrong.
    check: Callable[[Call, np.ndarray, np.ndarray], str | None] | None = None
    in_place: bool = False
    #: Where results are: as the arguments are ("same"), on the GPU whatever these are ("gpu"), or anywhere ("").
    resides: str = "same"
    #: Results, by their number, that are on the host in any case.
    host_results: tuple[int, ...] = ()
    #: Whether results are Python's own numbers or lists.
    python_results: bool = False
    out_at: int | None = None
    zeros_stay: bool = False
    weight: float = 1.0


TWINS: dict[str, Twin] = {}


def _add(name: str, numpy: Callable[..., Any], draw: Callable[[Draw], Call], **options: Any) -> None:
    """Enter a twin; one of a function that is not public (yet) is left out."""
    if name.isidentifier() and not hasattr(gw, name) and "gridwise" not in options:
        return
    TWINS[name] = Twin(numpy, draw, **options)


def _first(d: Draw, pool: Sequence[str] = ALL, dims: int = 3, least: int = 0, **options: Any) -> Given:
    return d.any_array(pool, dims, least, **options)


_DTYPES = (
    "float32",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float64",
    "int8",
    "uint8",
    "float16",
    "bool",
    np.float32,
    np.int64,
    np.uint32,
    np.dtype("int16"),
    "i4",
    "u4",
    "f4",
    "f8",
    "i8",
    "u8",
    "<i4",
    "?",
    int,
    float,
    bool,
    "S3",
    "complex64",
)


def _out(d: Draw, x: Given, of: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return an `out` of the right shape, mostly of the right dtype."""
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(of(*args, **kwargs))
    except Exception:
        return LEFT
    dtype = result.dtype if d.chance(0.6) else d.dtype()
    shape = result.shape if d.chance(0.92) else (*result.shape, 2)
    items = np.zeros(shape, dtype)
    if x.how in ("gpu", "view", "expr"):
        return Given(items, "gpu" if d.chance(0.9) else "numpy")
    return Given(items, d.pick(("numpy", "numpy", "strided", "fortran", "reversed", "swapped", "readonly", "gpu")))


# ---- reductions and scans


def _reduction(
    name: str, of: Callable[..., Any], with_dtype: bool, pool: Sequence[str] = ALL
) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d, (*pool, "complex64") if with_dtype and d.chance(0.03) else pool)
        axis = d.maybe(0.6, d.axis(x.items.ndim))
        dtype = d.maybe(0.15, d.pick(_DTYPES)) if with_dtype else LEFT
        keepdims = d.maybe(0.2, d.chance(0.7))
        options = {k: v for k, v in (("axis", axis), ("keepdims", keepdims)) if v is not LEFT}
        if dtype is not LEFT:
            options["dtype"] = dtype
        out = _out(d, x, of, x.items, **options) if d.chance(0.1) else LEFT
        optional = [
            ("axis", axis),
            *((("dtype", dtype),) if with_dtype else ()),
            ("out", out),
            ("keepdims", keepdims),
            ("initial", d.maybe(0.03, d.whole(-2, 5))),
        ]
        return d.call(name, [x], optional)

    return draw


def _bound_kwargs(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in kwargs.items() if k in ("axis", "keepdims")}


def _along(x: Any, axis: Any) -> float:
    """Return how many items go into a result."""
    x = np.asarray(x)
    if axis is None:
        return x.size
    axes = axis if isinstance(axis, tuple) else (axis,)
    return float(np.prod([x.shape[int(a)] for a in axes]))


def _sum_exact(
    want: Any,
    got: Any,
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = 0,
    where: Any = True,
) -> Any:
    x = np.asarray(x)
    if initial != 0 or where is not True:
        x = np.where(where, x, 0)
    value, scale = ref.exact_sum(np.sum, got.dtype, x, _along(x, axis), axis=axis, keepdims=keepdims)
    return value + initial, scale + abs(initial)


def _prod_exact(
    want: Any,
    got: Any,
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = 1,
    where: Any = True,
) -> Any:
    x = np.where(where, x, 1) if where is not True else np.asarray(x)
    value, scale = ref.exact_product(np.prod, got.dtype, x, _along(x, axis), axis=axis, keepdims=keepdims)
    return value * initial, scale * abs(initial)


def _cumulative_exact(exact: Any, along: Any, of: Any) -> Any:
    def find(
        want: Any, got: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Any:
        x = np.asarray(x)
        n = x.size if axis is None else x.shape[int(axis)]
        with np.errstate(all="ignore"):
            value, scale = exact(along, got.dtype, x, n, axis=axis)
            if include_initial:
                shape = list(value.shape)
                shape[int(axis or 0)] = 1
                value = np.concatenate([np.full(shape, of), value], axis=int(axis or 0))
                scale = np.concatenate([np.zeros(shape), scale], axis=int(axis or 0))
        return value, scale

    return find


def _cumulative(name: str, of: Callable[..., Any]) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d, (*ALL, "complex64") if d.chance(0.05) else ALL)
        axis = d.maybe(0.5, d.axis(x.items.ndim, several=False))
        dtype = d.maybe(0.15, d.pick(_DTYPES))
        options = {k: v for k, v in (("axis", axis), ("dtype", dtype)) if v is not LEFT}
        if name.startswith("cumulative"):
            if d.chance(0.3):
                options["include_initial"] = d.chance(0.7)
            if d.chance(0.1):
                options["out"] = _out(d, x, of, x.items, **options)
            return Call(name, (x,), {k: v for k, v in options.items() if v is not LEFT})
        out = _out(d, x, of, x.items, **options) if d.chance(0.12) else LEFT
        return d.call(name, [x], [("axis", axis), ("dtype", dtype), ("out", out)])

    return draw


def _max_of(ufunc: Any) -> Callable[..., Any]:
    def of(
        x: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
        dtype: Any = None,
    ) -> Any:
        given = {} if initial is None else {"initial": initial}
        if where is not True:
            given["where"] = where
        function = np.max if ufunc is np.maximum else np.min
        return function(x if dtype is None else np.asarray(x).astype(dtype), axis, out, keepdims, **given)

    return of


_add("sum", np.sum, _reduction("sum", np.sum, True), exact=_sum_exact, out_at=3, weight=2)
_add("prod", np.prod, _reduction("prod", np.prod, True), exact=_prod_exact, out_at=3, zeros_stay=True)
for _name, _of in (("min", _max_of(np.minimum)), ("max", _max_of(np.maximum))):
    _add(_name, _of, _reduction(_name, _of, False), out_at=2)
_add(
    "cumsum",
    np.cumsum,
    _cumulative("cumsum", np.cumsum),
    out_at=3,
    exact=_cumulative_exact(ref.exact_sum, np.cumsum, 0),
)
_add(
    "cumprod",
    np.cumprod,
    _cumulative("cumprod", np.cumprod),
    out_at=3,
    zeros_stay=True,
    weight=1.5,
    exact=_cumulative_exact(ref.exact_product, np.cumprod, 1),
)
_add(
    "cumulative_sum",
    np.cumulative_sum,
    _cumulative("cumulative_sum", np.cumulative_sum),
    exact=_cumulative_exact(ref.exact_sum, np.cumsum, 0),
)
_add(
    "cumulative_prod",
    np.cumulative_prod,
    _cumulative("cumulative_prod", np.cumulative_prod),
    zeros_stay=True,
    exact=_cumulative_exact(ref.exact_product, np.cumprod, 1),
)


def _draw_reduce(d: Draw) -> Call:
    x, op = _first(d), d.pick(tuple(ref.UFUNCS))
    named = {"axis": d.axis(x.items.ndim)} if d.chance(0.4) else {}
    if d.chance(0.2):
        named["keepdims"] = True
    return Call("reduce", (x, op) if d.chance(0.9) else (x,), named)


def _reduce(x: Any, op: str = "add", *, axis: Any = None, keepdims: Any = False) -> Any:
    x = np.asarray(x)
    x = x.astype(x.dtype.newbyteorder("="))
    with np.errstate(all="ignore"):
        return ref.UFUNCS[op].reduce(x, axis=axis, keepdims=bool(keepdims), dtype=x.dtype)


def _reduce_exact(want: Any, got: Any, x: Any, op: str = "add", *, axis: Any = None, keepdims: Any = False) -> Any:
    if op in ("min", "max"):
        return None
    exact = _sum_exact if op == "add" else _prod_exact
    return exact(want, got, x, axis, keepdims=keepdims)


_add("reduce", _reduce, _draw_reduce, exact=_reduce_exact)


def _draw_scan(d: Draw) -> Call:
    x, named = _first(d, dims=1 if d.chance(0.95) else 2, least=1), {}
    if d.chance(0.2):
        named["initial"] = d.whole(0, 5)
    return d.call(
        "scan",
        [x],
        [
            ("op", d.pick(tuple(ref.UFUNCS))),
            ("kind", d.maybe(0.5, d.pick(("inclusive", "exclusive", "exclusive", "both")))),
        ],
        named,
    )


def _scan(x: Any, op: str = "add", kind: str = "inclusive", *, initial: Any = None) -> Any:
    return ref.scanned(op, np.asarray(x).ravel(), kind, initial)


def _scan_exact(want: Any, got: Any, x: Any, op: str = "add", kind: str = "inclusive", *, initial: Any = None) -> Any:
    if op in ("min", "max"):
        return None
    first = ref.identity(op, np.asarray(x).dtype) if initial is None else initial
    before = np.concatenate([[first], np.ravel(x)]).astype(np.asarray(x).dtype)
    exact, along = (ref.exact_sum, np.cumsum) if op == "add" else (ref.exact_product, np.cumprod)
    value, scale = exact(along, got.dtype, before, before.size)
    return (value[1:], scale[1:]) if kind == "inclusive" else (value[:-1], scale[:-1])


_add("scan", _scan, _draw_scan, exact=_scan_exact)


# ---- summaries


def _draw_mean(name: str, of: Callable[..., Any]) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d)
        if d.chance(0.2):  # few items, among which one that is no number decides
            few = d.items("float32", (d.whole(1, 4), d.whole(1, 3)), "special")
            x = Given(few if d.chance(0.6) else few.ravel(), d.pick(("numpy", "gpu")))
        axis, keepdims = d.maybe(0.6, d.axis(x.items.ndim)), d.maybe(0.2, d.chance(0.7))
        options = {k: v for k, v in (("axis", axis), ("keepdims", keepdims)) if v is not LEFT}
        dtype = d.maybe(0.06, d.pick(("float32", "float64", "float16", np.float32)))
        out = _out(d, x, of, x.items, **options) if d.chance(0.05) else LEFT
        optional = [("axis", axis), ("dtype", dtype), ("out", out)]
        if name == "mean":
            return d.call(name, [x], [*optional, ("keepdims", keepdims)])
        named = {"correction": d.pick((0, 1, 0.5, 3))} if d.chance(0.2) else {}
        ddof = d.maybe(0.2, d.pick((0, 1, 2))) if not named else LEFT
        return d.call(name, [x], [*optional, ("ddof", ddof), ("keepdims", keepdims)], named)

    return draw


def _mean_exact(
    want: Any, got: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    x = np.asarray(x)
    n = _along(x, axis)
    if x.dtype.kind in "iub" and dtype is None:  # computed in float32, whatever `out` is
        value, scale = _mean_exact(
            want, np.zeros((), np.float32), x.astype(np.float32), axis, np.float32, None, keepdims
        )
        return value, scale * (2.0**-23 / _eps_of(got)) + np.abs(value)
    kept = got.dtype if got.dtype.kind == "f" and got.dtype.itemsize > 2 else np.dtype(np.float64)
    value, scale = ref.exact_sum(np.sum, kept, x, n, axis=axis, keepdims=keepdims)
    with np.errstate(all="ignore"):
        return value / np.longdouble(n), scale / max(n, 1) + 2 * np.abs(value / np.longdouble(n))


def _var_exact(root: bool) -> Callable[..., Any]:
    def find(
        want: Any,
        got: Any,
        x: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        correction: Any = None,
    ) -> Any:
        x = np.asarray(x)
        ddof = ddof if correction is None else correction
        if x.dtype.kind in "iub" and (
            got.dtype != np.float32 or dtype is None
        ):  # computed in float32, whatever `out` is
            x = x.astype(np.float32)
            if got.dtype != np.float32:
                value, scale = find(want, np.zeros((), np.float32), x, axis, np.float32, None, ddof, keepdims)
                return value, scale * (2.0**-23 / _eps_of(got)) + np.abs(value)
        with np.errstate(all="ignore"):
            wide = x.astype(np.longdouble)
            value = np.var(wide, axis=axis, ddof=ddof, keepdims=keepdims)
            largest = np.max(ref._finite(x), axis=axis, keepdims=keepdims, initial=0)
            n = _along(x, axis)
            # Items are relative to 0 along an axis: the error has a part of the mean.
            scale = (50 + n) * (np.abs(value) + largest * np.sqrt(np.abs(value)) + largest**2 * _eps_of(got))
            scale = np.where(largest > np.sqrt(float(np.finfo(_float_of(got)).max)) / 4, np.inf, scale)
            if not root:
                return value, scale
            root_value = np.sqrt(value)
            eps = _eps_of(got)
            return root_value, np.where(
                root_value > 0, np.minimum(scale / root_value, np.sqrt(scale / eps)), np.sqrt(scale / eps)
            ) + 4 * np.abs(root_value)

    return find


def _float_of(got: Any) -> np.dtype:
    return got.dtype if got.dtype.kind == "f" else np.dtype(np.float64)


def _eps_of(got: Any) -> float:
    return float(np.finfo(_float_of(got)).eps)


_add("mean", np.mean, _draw_mean("mean", np.mean), exact=_mean_exact, dtypes=_mean_dtypes, out_at=3)
_add("var", np.var, _draw_mean("var", np.var), exact=_var_exact(False), dtypes=_mean_dtypes, out_at=3, weight=2.5)
_add("std", np.std, _draw_mean("std", np.std), exact=_var_exact(True), dtypes=_mean_dtypes, out_at=3)


def _draw_truth(
    name: str, of: Callable[..., Any], with_out: bool = True, several: bool = True
) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d)
        axis, keepdims = d.maybe(0.6, d.axis(x.items.ndim, several)), d.maybe(0.2, d.chance(0.7))
        options = {k: v for k, v in (("axis", axis), ("keepdims", keepdims)) if v is not LEFT}
        out = _out(d, x, of, x.items, **options) if with_out and d.chance(0.06) else LEFT
        if name in ("argmin", "argmax", "count_nonzero"):
            named = {} if keepdims is LEFT else {"keepdims": keepdims}
            return d.call(name, [x], [("axis", axis), *((("out", out),) if with_out else ())], named)
        return d.call(name, [x], [("axis", axis), ("out", out), ("keepdims", keepdims)])

    return draw


_add("any", np.any, _draw_truth("any", np.any), out_at=2)
_add("all", np.all, _draw_truth("all", np.all), out_at=2)
_add("argmax", np.argmax, _draw_truth("argmax", np.argmax, several=False), out_at=2)
_add("argmin", np.argmin, _draw_truth("argmin", np.argmin, several=False), out_at=2)
_add("count_nonzero", np.count_nonzero, _draw_truth("count_nonzero", np.count_nonzero, with_out=False))


def _find(x: Any) -> Any:
    truth = np.asarray(x).astype(bool).ravel()
    return int(np.argmax(truth)) if truth.any() else truth.size


def _minmax(x: Any) -> Any:
    return np.min(x), np.max(x)


_add("find", _find, lambda d: Call("find", (_first(d, dims=1, least=1),)), python_results=True)
_add("minmax", _minmax, lambda d: Call("minmax", (_first(d),)))


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
    if not descending:
        np.argsort(x, axis, kind, order, stable=stable)  # raises
        return np.argsort(x, axis, kind="stable")
    return np.apply_along_axis(lambda row: ref.order(row, True), -1 if axis is None else axis, x)


def _draw_sort(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d, dims=1 if d.chance(0.75) else 3)
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


_add("sort", _sort_reference, _draw_sort("sort"), weight=1.5)
_add("argsort", _argsort_reference, _draw_sort("argsort"))


def _draw_kth(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d, dims=1 if d.chance(0.8) else 2)
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


_add("partition", _partition, _draw_kth("partition"))
_add("argpartition", _argpartition, _draw_kth("argpartition"))


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


_add("lexsort", np.lexsort, _draw_lexsort)


def _draw_top_k(d: Draw) -> Call:
    x = _first(d, dims=2, least=1)
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


_add("top_k", _top_k, _draw_top_k)


def _draw_sort_pairs(d: Draw) -> Call:
    keys = _first(d, dims=1, least=1, expression=False)
    n = keys.items.size if d.chance(0.96) else keys.items.size + 1
    values = d.alike(d.items(d.dtype(_WORDS), n), keys)
    return Call("sort_pairs", (keys, values), {"descending": True} if d.chance(0.3) else {})


def _sort_pairs(keys: Any, values: Any, *, descending: bool = False) -> Any:
    keys, values = np.asarray(keys), np.asarray(values)
    if keys.shape != values.shape or keys.ndim != 1:
        raise ref.Refused("lengths")
    order = ref.order(keys, descending)
    return keys[order], values[order]


_add("sort_pairs", _sort_pairs, _draw_sort_pairs)


# ---- search


def _draw_searchsorted(d: Draw) -> Call:
    dtype = d.dtype()
    a = np.sort(d.items(dtype, d.length()))
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


_add("searchsorted", np.searchsorted, _draw_searchsorted, weight=2.5)


def _draw_digitize(d: Draw) -> Call:
    x = _first(d, dims=2, expression=False) if d.chance(0.85) else d.pick((0.1, 1, -1, 2.5))
    same = x.items.dtype.name if isinstance(x, Given) and d.chance(0.6) else d.dtype().name
    bins = np.sort(d.items(same, d.whole(0, 8)))
    if d.chance(0.2):
        bins = bins[::-1].copy()
    elif d.chance(0.06):
        bins = d.items(same, d.whole(0, 8))
    elif d.chance(0.05) and np.dtype(same).kind == "f":
        bins[:] = np.nan
    on_gpu = isinstance(x, Given) and x.how in ("gpu", "view")
    bins_given = Given(
        bins, "gpu" if on_gpu and bins.size and np.all(bins[1:] >= bins[:-1]) and d.chance(0.5) else "numpy"
    )
    if bins_given.how == "numpy":
        bins_given = Given(bins, d.how(bins, gpu=False))
    return d.call("digitize", [x, bins_given], [("right", d.maybe(0.3, d.chance(0.7)))])


_add("digitize", np.digitize, _draw_digitize)


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
        return d.pick(([], 0, n, -1, 1.0, [1.0], 2**32, [0, 2**40], None))
    if kind < 0.2:
        return d.pick((0, -1, n - 1, np.int64(0), np.uint8(0)))
    indices = _indices(d, n, d.shape(dims, 1 if d.chance(0.9) else 0))
    if like is not None and like.how in ("gpu", "view"):
        indices = indices.clip(-n if indices.dtype.kind == "i" else 0, n - 1) if n else indices[:0]
        return Given(np.asarray(indices), d.pick(("gpu", "gpu", "numpy")))
    return Given(indices, d.how(indices, gpu=False))


def _draw_take(d: Draw) -> Call:
    x = _first(d, (*ALL, "complex64"), expression=False)
    axis = d.maybe(0.4, d.axis(x.items.ndim, several=False))
    whole = x.items.ndim == 0 or axis is LEFT or not isinstance(axis, int) or not -x.items.ndim <= axis < x.items.ndim
    n = x.items.size if whole else x.items.shape[axis]
    indices = _index_argument(d, n, x)
    mode = d.maybe(0.25, d.pick(("raise", "wrap", "clip", "drop")))
    options = {k: v for k, v in (("axis", axis), ("mode", mode)) if v is not LEFT}
    out = LEFT
    if d.chance(0.05) and isinstance(indices, Given):
        out = _out(d, x, np.take, x.items, indices.items, **options)
    return d.call("take", [x, indices], [("axis", axis), ("out", out), ("mode", mode)])


_add("take", np.take, _draw_take, compare="bits", out_at=3)


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


_add("put", _put, _draw_put, check=_check_put, in_place=True, weight=2.5)


def _draw_roll(d: Draw) -> Call:
    x = _first(d, (*ALL, "complex64"))
    axis = d.maybe(0.5, d.axis(x.items.ndim))
    kind = d.rng.random()
    if kind < 0.75:
        shift: Any = d.whole(-9, 9)
    elif kind < 0.85:
        shift = d.pick((Given(np.array(2)), Given(np.array([1, 2])), np.int64(3), (1, 2), [1, -1], True))
    else:
        shift = d.pick((*HUGE, -(2**31), -(2**40), 1.5, "a", None))
    return d.call("roll", [x, shift], [("axis", axis)])


_add("roll", np.roll, _draw_roll, compare="bits")
_add(
    "flip",
    np.flip,
    lambda d: (lambda x: d.call("flip", [x], [("axis", d.maybe(0.6, d.axis(x.items.ndim)))]))(
        _first(d, (*ALL, "complex64"))
    ),
    compare="bits",
)


def _draw_transpose(d: Draw) -> Call:
    x = _first(d, (*ALL, "complex64"), expression=False)
    ndim = x.items.ndim
    axes: Any = tuple(int(a) for a in d.rng.permutation(ndim))
    if d.chance(0.3):
        axes = tuple(a - ndim if d.chance(0.5) else a for a in axes)
    if d.chance(0.12):
        axes = d.pick(((0,) * ndim, (*axes, 0), (0, 5), axes[1:], [*axes], (1.0,)))
    return d.call("transpose", [x], [("axes", d.maybe(0.6, axes))])


_add("transpose", np.transpose, _draw_transpose, compare="bits")


def _draw_repeat(d: Draw) -> Call:
    x = _first(d, dims=2 if d.chance(0.2) else 1, least=0 if d.chance(0.1) else 1)
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


_add("repeat", _repeat, _draw_repeat, compare="bits")


def _draw_compress(d: Draw) -> Call:
    x = _first(d, (*ALL, "complex64"), dims=2 if d.chance(0.25) else 1)
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


_add("compress", np.compress, _draw_compress, compare="bits")


# ---- selections


def _draw_where_true(name: str) -> Callable[[Draw], Call]:
    return lambda d: Call(name, (_first(d, dims=3 if d.chance(0.2) else 1, least=0 if d.chance(0.1) else 1),))


_add("flatnonzero", np.flatnonzero, _draw_where_true("flatnonzero"))
_add("nonzero", np.nonzero, _draw_where_true("nonzero"))


def _draw_unique(d: Draw) -> Call:
    x = _first(d, dims=2 if d.chance(0.3) else 1)
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


_add("unique", _unique, _draw_unique)
for _name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
    _add(
        _name,
        {"unique_values": lambda x: np.sort(np.unique_values(x)), "unique_inverse": _unique_inverse}.get(
            _name, getattr(np, _name)
        ),
        (lambda name: lambda d: Call(name, (_first(d, dims=2 if d.chance(0.3) else 1, expression=False),)))(_name),
    )


def _draw_sets(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        one = d.array(ALL, 2 if d.chance(0.1) else 1)
        dtype = one.dtype if d.chance(0.7) else d.dtype()
        two = d.items(dtype, d.length() if d.chance(0.9) else (2, 3))
        if d.chance(0.3) and one.size:
            two = one.reshape(-1)[d.rng.integers(0, one.size, d.whole(0, 9))].astype(dtype)
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


for _name in ("isin", "union1d", "intersect1d", "setdiff1d", "setxor1d"):
    _add(_name, getattr(np, _name), _draw_sets(_name))


def _draw_partition_by(d: Draw) -> Call:
    x = _first(d, dims=1, least=1)
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


_add("partition_by", _partition_by, _draw_partition_by, compare="bits")


def _draw_runs(d: Draw) -> Call:
    x = _first(d, dims=1, least=1, kind="few" if d.chance(0.4) else None)
    return Call("run_length_encode", (x,), {"equal_nan": d.chance(0.5)} if d.chance(0.3) else {})


def _run_lengths(x: Any, *, equal_nan: bool = True) -> Any:
    x = np.asarray(x)
    starts = ref.runs(x, equal_nan)
    return x[starts], starts, np.diff(starts, append=x.size)


_add("run_length_encode", _run_lengths, _draw_runs)


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
        of = d.dtype(_WORDS)
        how = "gpu" if "gpu" in (first.how, second.how) else "numpy"
        named["values"] = tuple(Given(d.items(of, x.size), how) for x in (a, b))
    return Call("merge", (first, second), named)


def _merge(a: Any, b: Any, *, values: Any = None, descending: bool = False) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    dtype = a.dtype if not b.size else b.dtype if not a.size else np.result_type(a, b)
    keys = np.concatenate([a.astype(dtype), b.astype(dtype)])
    order = ref.order(keys, descending)
    if values is None:
        return keys[order]
    return keys[order], np.concatenate([np.asarray(v) for v in values])[order]


_add("merge", _merge, _draw_merge)


# ---- segments and keys


def _offsets(d: Draw, n: int) -> np.ndarray:
    offsets = np.sort(d.rng.integers(0, n + 1, d.whole(0, 6)))
    offsets = np.concatenate([[0], offsets, [n]])
    kind = d.rng.random()
    if kind < 0.05:
        offsets = d.pick(
            (offsets[::-1], offsets + 1, offsets[:0], offsets[:1], np.zeros(3), offsets - 1, offsets + 2**32)
        )
    return offsets.astype(d.pick(("int64", "int32", "uint32", "uint64"))) if kind > 0.05 and n < 2**31 else offsets


def _draw_segmented(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d, dims=1, least=1)
        n, named = x.items.size, {}
        args: list[Any] = [x]
        if name == "segmented_sort_pairs":
            args.append(d.alike(d.items(d.dtype(_WORDS), n if d.chance(0.97) else n + 1), x))
        if d.chance(0.3) and name in ("segmented_sort", "segmented_sort_pairs", "segmented_reduce"):
            length = d.whole(1, max(n, 1)) if d.chance(0.6) else d.pick((0, -1, n + 1, 1.5, *HUGE))
            named["length"] = length
        else:
            offsets = _offsets(d, n)
            if x.how in ("gpu", "view", "expr") and d.chance(0.6):
                args.append(Given(offsets.astype(np.uint32), "gpu"))
            else:
                args.append(Given(offsets, d.how(offsets, gpu=False)) if d.chance(0.95) else [])
        if name == "segmented_top_k":
            args.append(d.whole(0, 6) if d.chance(0.9) else d.pick((1024, 1025, -1, 1.0, *HUGE)))
            if d.chance(0.3):
                named["mode"] = d.pick(("largest", "smallest"))
            if d.chance(0.3):
                named["sorted"] = d.chance(0.5)
        elif name in ("segmented_reduce", "segmented_scan"):
            op = d.pick(tuple(ref.UFUNCS))
            if "length" in named:
                named["op"] = op
            elif d.chance(0.8):
                args.append(op)
            if name == "segmented_scan" and d.chance(0.5):
                named["kind"] = d.pick(("inclusive", "exclusive"))
        elif d.chance(0.3):
            named["descending"] = True
        return Call(name, tuple(args), named)

    return draw


def _segmented_reduce(x: Any, offsets: Any = None, op: str = "add", *, length: Any = None) -> Any:
    x = ref.of_four_bytes(np.asarray(x))
    parts = ref.segments(x, offsets, length)
    if length is not None and x.size % int(length):
        raise ref.Refused("no whole number of segments")
    return np.array([ref.combined(op, part) for part in parts], x.dtype)


def _segmented_reduce_exact(
    want: Any, got: Any, x: Any, offsets: Any = None, op: str = "add", *, length: Any = None
) -> Any:
    parts = ref.segments(np.asarray(x), offsets, length)
    return want.astype(np.longdouble) if want.dtype.kind == "f" else want, [ref.magnitude(op, part) for part in parts]


def _segmented_scan(x: Any, offsets: Any, op: str = "add", kind: str = "inclusive") -> Any:
    x = ref.of_four_bytes(np.asarray(x))
    parts = _covering(ref.segments(x, offsets), x)
    return np.concatenate([x[:0], *(ref.scanned(op, part, kind) for part in parts)])


def _segmented_scan_exact(want: Any, got: Any, x: Any, offsets: Any, op: str = "add", kind: str = "inclusive") -> Any:
    parts = ref.segments(np.asarray(x), offsets)
    scales = [np.full(part.size, ref.magnitude(op, part)) for part in parts]
    return want, np.concatenate([np.zeros(0), *scales])


def _covering(parts: list[np.ndarray], x: np.ndarray) -> list[np.ndarray]:
    """Return segments that all items are in; results of others are unspecified."""
    if sum(part.size for part in parts) != x.size:
        raise ref.Unspecified
    return parts


def _segmented_sort(x: Any, offsets: Any = None, *, length: Any = None, descending: bool = False) -> Any:
    x = np.asarray(x)
    parts = _covering(ref.segments(x, offsets, length), x)
    return np.concatenate([x[:0], *(part[ref.order(part, descending)] for part in parts)])


def _segmented_sort_pairs(
    keys: Any, values: Any, offsets: Any = None, *, length: Any = None, descending: bool = False
) -> Any:
    keys, values = np.asarray(keys), np.asarray(values)
    if keys.shape != values.shape:
        raise ref.Refused("lengths")
    parts, of = _covering(ref.segments(keys, offsets, length), keys), ref.segments(values, offsets, length)
    orders = [ref.order(part, descending) for part in parts]
    return tuple(
        np.concatenate([x[:0], *(part[order] for part, order in zip(each, orders, strict=True))])
        for x, each in ((keys, parts), (values, of))
    )


def _segmented_top_k(x: Any, offsets: Any, k: Any, *, mode: str = "largest", sorted: bool = True) -> Any:
    x, k = np.asarray(x), operator.index(k)
    parts = ref.segments(x, offsets)
    if not 0 <= k <= 1024:
        raise ref.Refused("k")
    values, indices = np.zeros((len(parts), k), x.dtype), np.full((len(parts), k), -1, np.intp)
    for i, part in enumerate(parts):
        chosen = ref.best(part, k, mode, sorted)
        values[i, : chosen.size], indices[i, : chosen.size] = part[chosen], chosen
    return values, indices


_add("segmented_reduce", _segmented_reduce, _draw_segmented("segmented_reduce"), exact=_segmented_reduce_exact)
_add("segmented_scan", _segmented_scan, _draw_segmented("segmented_scan"), exact=_segmented_scan_exact)
_add("segmented_sort", _segmented_sort, _draw_segmented("segmented_sort"))
_add("segmented_sort_pairs", _segmented_sort_pairs, _draw_segmented("segmented_sort_pairs"))
_add("segmented_top_k", _segmented_top_k, _draw_segmented("segmented_top_k"))


def _draw_by_key(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        keys = _first(d, dims=1, least=1, kind="few" if d.chance(0.6) else None)
        x = d.alike(d.items(d.dtype(), keys.items.size if d.chance(0.97) else keys.items.size + 1), keys)
        named = {"kind": d.pick(("inclusive", "exclusive"))} if name == "scan_by_key" and d.chance(0.5) else {}
        return Call(name, (keys, x, d.pick(tuple(ref.UFUNCS))) if d.chance(0.8) else (keys, x), named)

    return draw


def _runs_of(keys: Any, x: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    keys, x = np.asarray(keys), np.asarray(x)
    if keys.shape != x.shape:
        raise ref.Refused("lengths")
    starts = ref.runs(ref.key_bits(keys))
    return starts, np.split(x, starts[1:]) if starts.size else []


def _reduce_by_key(keys: Any, x: Any, op: str = "add") -> Any:
    starts, parts = _runs_of(keys, ref.of_four_bytes(np.asarray(x)))
    x = ref.of_four_bytes(np.asarray(x))
    return np.asarray(keys)[starts], np.array([ref.combined(op, part) for part in parts], x.dtype)


def _reduce_by_key_exact(want: Any, got: Any, keys: Any, x: Any, op: str = "add") -> Any:
    return [None, (want, [ref.magnitude(op, part) for part in _runs_of(keys, x)[1]])]


def _scan_by_key(keys: Any, x: Any, op: str = "add", kind: str = "inclusive") -> Any:
    x = ref.of_four_bytes(np.asarray(x))
    return np.concatenate([x[:0], *(ref.scanned(op, part, kind) for part in _runs_of(keys, x)[1])])


def _scan_by_key_exact(want: Any, got: Any, keys: Any, x: Any, op: str = "add", kind: str = "inclusive") -> Any:
    scales = [np.full(part.size, ref.magnitude(op, part)) for part in _runs_of(keys, x)[1]]
    return want, np.concatenate([np.zeros(0), *scales])


_add("reduce_by_key", _reduce_by_key, _draw_by_key("reduce_by_key"), exact=_reduce_by_key_exact)
_add("scan_by_key", _scan_by_key, _draw_by_key("scan_by_key"), exact=_scan_by_key_exact)


def _draw_segment_ids(d: Draw) -> Call:
    offsets = np.concatenate([[0], np.cumsum(d.rng.integers(0, 5, d.whole(0, 20)))]).astype(
        d.pick(("int64", "int32", "uint32", "uint64"))
    )
    if d.chance(0.1):
        offsets = d.pick(
            (offsets[::-1].copy(), offsets + offsets.dtype.type(1), offsets[:0], offsets.astype(np.float64))
        )
    if d.chance(0.3) and offsets.dtype.kind in "iu" and offsets.size and offsets[0] == 0:
        return Call("segment_ids", (Given(offsets.astype(np.uint32), "gpu"),), {"size": int(offsets[-1])})
    return Call("segment_ids", (Given(offsets, d.how(offsets, gpu=False)),))


def _segment_ids(offsets: Any, *, size: Any = None) -> Any:
    offsets = np.asarray(offsets)
    if offsets.size and offsets.dtype.kind not in "iu":
        raise TypeError("offsets")
    if not offsets.size or offsets[0] != 0 or np.any(offsets[1:] < offsets[:-1]):
        raise ref.Refused("offsets")
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets.astype(np.int64)))


_add("segment_ids", _segment_ids, _draw_segment_ids)


# ---- bins


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


def _draw_histogram(d: Draw) -> Call:
    x = _first(d, dims=2 if d.chance(0.15) else 1)
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
        of = d.dtype(_WORDS)
        weights = d.alike(d.items(of, n, d.pick((None, "few")) if of.kind == "f" else "few"), x)
    return d.call(
        "histogram",
        [x],
        [("bins", bins), ("range", range_), ("density", d.maybe(0.12, d.chance(0.8))), ("weights", weights)],
    )


def _finite_edges(x: Any, edges: Any) -> Any:
    return np.asarray(edges)


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
    return [(want, np.where(np.isnan(scale), np.inf, scale)), None]


def _histogram_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    more = set(map(np.dtype, ("uint32", "float32", "int32", "int64", "uint64"))) if on_gpu and at == 0 else set()
    return {*_wide_dtypes(call, want, on_gpu, at), *more}


_add(
    "histogram",
    np.histogram,
    _draw_histogram,
    exact=_histogram_exact,
    dtypes=_histogram_dtypes,
    weight=4,
    host_results=(1,),
)


def _draw_histogram2d(d: Draw) -> Call:
    x = _first(d, dims=1, least=1, kind=None if d.chance(0.7) else "tenths" if d.chance(0.5) else "few")
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


_add(
    "histogram2d",
    np.histogram2d,
    _draw_histogram2d,
    exact=_histogram2d_exact,
    dtypes=_histogram_dtypes,
    host_results=(1, 2),
)
_add(
    "histogram_bin_edges",
    np.histogram_bin_edges,
    lambda d: (
        lambda c: Call("histogram_bin_edges", c.args[:3], {k: v for k, v in c.kwargs.items() if k in ("bins", "range")})
    )(_draw_histogram(d)),
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
    if x.dtype.kind not in "iub":
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
    return want, scale * (16 + w.size / 4) + np.where(np.abs(want) > 2**31, np.inf if got.dtype.kind in "iu" else 0, 0)


def _bincount_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    return {want, *(map(np.dtype, ("uint32", "int32", "float32", "int64", "uint64")) if on_gpu else ())}


_add("bincount", _bincount, _draw_bincount, exact=_bincount_exact, dtypes=_bincount_dtypes, weight=2)


def _draw_by_index(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        n, length = d.length(), d.whole(1, 30)
        indices = d.rng.integers(0, length, n).astype(d.pick(("int64", "int32", "uint32", "uint64", "uint8")))
        if d.chance(0.08) and n and indices.dtype.kind == "i":
            indices[0] = d.pick((-1, length, 99))
        if d.chance(0.03):
            indices = indices.astype(np.float64)
        x = d.items(d.dtype(_WORDS if name == "scatter_add" else ALL), n)
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
    if not np.isscalar(values) and np.asarray(values).shape != indices.shape:
        raise ref.Refused("lengths")
    with np.errstate(all="ignore"):
        np.add.at(result, indices.astype(np.int64), values)
    return result


def _scatter_add_exact(want: Any, got: Any, x: Any, indices: Any, values: Any) -> Any:
    x, indices = np.asarray(x), np.asarray(indices)
    if x.dtype.kind != "f":
        return None
    values = np.broadcast_to(np.asarray(values), indices.shape)
    every = [np.concatenate([x[i : i + 1], values[indices == i].astype(x.dtype)]) for i in range(x.size)]
    return [ref.combined("add", each) for each in every], [ref.magnitude("add", each) for each in every]


_add("reduce_by_index", _reduce_by_index, _draw_by_index("reduce_by_index"), exact=_reduce_by_index_exact)
_add("scatter_add", _scatter_add, _draw_by_index("scatter_add"), exact=_scatter_add_exact)


# ---- groups


_AGGREGATES = ("sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "first", "last", "count")


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
    for i in range(d.pick((1, 1, 2))):
        x = d.items("float32" if d.chance(0.4) else d.dtype(ALL), n if d.chance(0.98) else n + 1)
        op = d.pick(_AGGREGATES)
        column = Given(x, "gpu" if gpu else d.pick(("numpy", "numpy", "strided", "swapped", "series")))
        named[d.pick(("a", "b", "total", "price")) + str(i)] = (
            gw.count
            if op == "count" and d.chance(0.7)
            else (column, op, 1)
            if op in ("std", "var") and d.chance(0.1)
            else (column, op)
        )
    return Call("group_by", (keys if len(keys) > 1 else keys[0],), named)


def _group_values(x: np.ndarray, op: str, ddof: int = 0, skipna: bool = False) -> Any:
    """Return an aggregate of the items of a group."""
    if skipna and x.dtype.kind == "f":
        x = x[~np.isnan(x)]
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
                np.float64 if x.dtype == np.float64 else np.float32
            )
        if not x.size:
            return x.dtype.type(np.nan)
        return {"min": np.min, "max": np.max, "first": lambda x: x[0], "last": lambda x: x[-1]}[op](x)


def _rows_of(keys: Any, dropna: bool = False) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the columns of keys, and of each group, in the order of the keys, its rows."""
    columns = [np.asarray(k) for k in (keys if isinstance(keys, tuple) else (keys,))]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise ref.Refused("lengths")
    ranks = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns]
    order = np.lexsort(ranks[::-1]) if columns[0].size else np.zeros(0, np.intp)
    if dropna:
        missing = np.any([np.isnan(c) if c.dtype.kind == "f" else np.zeros(c.size, bool) for c in columns], axis=0)
        order = order[~missing[order]]
    stacked = np.stack([rank[order] for rank in ranks]) if order.size else np.zeros((1, 0))
    starts = np.flatnonzero(np.any(stacked[:, 1:] != stacked[:, :-1], axis=0)) + 1 if order.size else []
    return columns, np.split(order, starts) if order.size else []


def _group_by(
    keys: Any,
    aggregates: Any = None,
    /,
    *,
    key_bits: Any = None,
    skipna: bool = False,
    dropna: bool = False,
    **more: Any,
) -> Any:
    columns, rows = _rows_of(keys, dropna)
    if key_bits is not None:
        bits = key_bits if isinstance(key_bits, tuple) else (key_bits,)
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
        result.append(np.array(values) if values else np.array([_group_values(np.ones(2, x.dtype), op, ddof)])[:0])
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
    **more: Any,
) -> Any:
    columns, rows = _rows_of(keys, dropna)
    found: list[Any] = [None] * len(columns)
    for what in more.values():
        if what is gw.count or what[1] not in ("sum", "prod", "mean", "var", "std"):
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
            single = got.dtype == np.float32  # means on the GPU, and of integers all variances, are computed in float32
            kept = np.zeros((), np.float32 if single else np.float64)
            if op == "mean":
                value, scale = _mean_exact(
                    kept, kept, part.astype(kept.dtype if part.dtype.kind != "f" else part.dtype)
                )
            else:
                value, scale = _var_exact(op == "std")(
                    kept, kept, part.astype(np.float32) if single and part.dtype.kind != "f" else part, ddof=ddof
                )
            values.append(value)
            scales.append(scale)
        found.append((values, scales))
    return found


def _group_by_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """Strings come back as objects or as they were; on the GPU sums wrap in 32 bits, and truth is a word."""
    if want.kind == "U":
        return {want, np.dtype(object)}
    if not on_gpu:
        return {want}
    return {want, *map(np.dtype, ("uint32", "int32", "float32")), *_wide_dtypes(call, want, on_gpu, at)}


def _gridwise_group_by(*args: Any, **kwargs: Any) -> Any:
    groups = gw.group_by(*args, **kwargs)
    columns = args[0] if isinstance(args[0], tuple) else (args[0],)
    keys = groups.keys if isinstance(args[0], tuple) else (groups.keys,)
    assert len(keys) == len(columns)
    return (*keys, *(groups[name] for name in kwargs if name not in ("key_bits", "skipna", "dropna")))


_add(
    "group_by",
    _group_by,
    _draw_group_by,
    exact=_group_by_exact,
    dtypes=_group_by_dtypes,
    gridwise=_gridwise_group_by,
    weight=4,
)


# ---- making arrays


def _shape_argument(d: Draw) -> Any:
    return d.pick((0, 1, 3, 5, (2, 3), (), (0, 3), [4], np.int64(2), -1, (2, -1), 1.5, 2**62, (2**33,), "3"))


def _full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    return np.full(shape, fill_value, dtype)


_MADE_DTYPES = (*_DTYPES, None)
for _name in ("zeros", "ones", "empty"):
    _add(
        _name,
        getattr(np, _name),
        (lambda name: lambda d: d.call(name, [_shape_argument(d)], [("dtype", d.maybe(0.6, d.pick(_MADE_DTYPES)))]))(
            _name
        ),
        resides="gpu",
        compare="any" if _name == "empty" else "bits",
        dtypes=_any_float,
        weight=0.5,
    )
    _add(
        f"{_name}_like",
        getattr(np, f"{_name}_like"),
        (lambda name: lambda d: d.call(name, [_first(d, dims=2)], [("dtype", d.maybe(0.4, d.pick(_MADE_DTYPES)))]))(
            f"{_name}_like"
        ),
        resides="gpu",
        compare="any" if _name == "empty" else "bits",
        weight=0.5,
    )
_FILLS = (0, 1, 7, -1, 2.5, 300, 2**40, True, np.float32(0.1), np.int8(3), float("nan"), 2**63, 2**64, 1j)
_add(
    "full",
    _full,
    lambda d: d.call("full", [_shape_argument(d), d.pick(_FILLS)], [("dtype", d.maybe(0.6, d.pick(_MADE_DTYPES)))]),
    resides="gpu",
    compare="bits",
    dtypes=_any_float,
)
_add(
    "full_like",
    np.full_like,
    lambda d: d.call("full_like", [_first(d, dims=2), d.pick(_FILLS)], [("dtype", d.maybe(0.4, d.pick(_MADE_DTYPES)))]),
    resides="gpu",
    compare="bits",
)


def _draw_arange(d: Draw) -> Call:
    number = lambda: d.pick((0, 1, 5, 10, -3, 2.5, 0.1, 100, 1000, np.float32(3), np.int64(4)))  # noqa: E731
    stop, step = d.maybe(0.8, number()), d.maybe(0.5, d.pick((1, 2, -1, 0.5, 0.1, 7, -0.3, 0)))
    dtype = d.maybe(0.3, d.pick(_MADE_DTYPES))
    return d.call(
        "arange", [number()], [("stop", stop), ("step", step if stop is not LEFT else LEFT), ("dtype", dtype)]
    )


def _arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    return np.arange(start, stop, 1 if step is None else step, dtype)


_add("arange", _arange, _draw_arange, resides="gpu", dtypes=_any_float)


def _draw_asarray(d: Draw) -> Call:
    x = _first(d, (*ALL, "complex64"))
    given = {"dtype": d.pick(_DTYPES)} if d.chance(0.2) and x.how in ("list", "scalar", "tuple") else {}
    return Call("asarray", (x,), given)


_add(
    "asarray",
    lambda x, *, dtype=None: np.asarray(x, dtype),
    _draw_asarray,
    resides="gpu",
    compare="bits",
    dtypes=_any_float,
)


# ---- arithmetic of items


def _broadcast(d: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    kind = d.rng.random()
    if kind < 0.6:
        return shape
    if kind < 0.9:
        return tuple(1 if d.chance(0.4) else n for n in shape[d.whole(0, len(shape)) :]) if shape else ()
    return d.shape(2)


def _second(d: Draw, x: Given, same: float = 0.75) -> Any:
    """Return an operand beside `x`: a number, or an array of a shape that goes with it."""
    if same > 0.9 and d.chance(0.5):  # for operators, which convert nothing
        if d.chance(0.5):
            return d.pick(
                (0, 1, 2, 3, 100)
                if x.items.dtype.kind == "u"
                else (0, 1, 2, 3, -1, 100, True)
                if x.items.dtype.kind in "ib"
                else (0, 1, 2, -1, 0.5, 2.0, 0.1, -2, float("nan"), float("inf"))
            )
        return Given(d.items(x.items.dtype, x.items.shape), "gpu")
    if d.chance(0.35):
        return d.pick(
            (
                0,
                1,
                2,
                3,
                -1,
                0.5,
                0.1,
                2.0,
                100,
                2**31,
                2**40,
                True,
                float("nan"),
                float("inf"),
                np.float32(0.1),
                np.float64(0.1),
                np.int64(3),
                np.uint8(200),
            )
        )
    dtype = x.items.dtype if d.chance(same) else d.dtype()
    shape = x.items.shape if d.chance(0.7) else _broadcast(d, x.items.shape)
    return d.alike(d.items(dtype, shape), x)


def _binary(name: str, pool: Sequence[str] = ALL, gpu: bool = False, same: float = 0.75) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d, pool if d.chance(0.9) else ALL, dims=2 if d.chance(0.3) else 1)
        if gpu and x.how in ("gpu", "view", "expr") and d.chance(0.08):
            return Call(name, (x, x))
        if gpu and x.how not in ("gpu", "view", "expr"):
            x = Given(x.items, "gpu")
        y = _second(d, x, same)
        # Python turns comparisons round itself.
        pair = (y, x) if d.chance(0.2) and name not in ("<", "<=", ">", ">=", "==", "!=") else (x, y)
        if gpu and isinstance(pair[0], Given) and pair[0].how not in ("gpu", "view", "expr"):
            pair = (x, y)  # numpy's own operator would be asked first
        return Call(name, pair)

    return draw


def _rounded(ulps: float, absolute: float = 0.0) -> Callable[..., Any]:
    """Return bounds of a function of numpy's of one rounding, in units in the last place."""

    def find(want: Any, got: Any, *args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            magnitude = np.abs(want.astype(np.longdouble)) if want.dtype.kind == "f" else np.zeros(want.shape)
            magnitude = np.where(np.isfinite(magnitude), magnitude, 0)
            return want, ulps * magnitude + absolute / max(_eps_of(got), 2.0**-23)

    return find


_add("add", np.add, _binary("add"), exact=_rounded(1), weight=1.5)
for _name in ("maximum", "minimum"):
    _add(_name, getattr(np, _name), _binary(_name))


def _draw_matmul(d: Draw) -> Call:
    m, n, k = (d.pick((1, 2, 3, 5, 16, 17, 33, 0) if d.chance(0.4) else (1, 2, 3, 4)) for _ in "mnk")
    dtype = d.pick(("float32", "float32", "float16", "int32", "float64"))
    kind = d.rng.random()
    shapes: Any = (
        ((m, k), (k, n))
        if kind < 0.8
        else d.pick(
            (((k,), (k, n)), ((m, k), (k,)), ((k,), (k,)), ((2, m, k), (2, k, n)), ((m, k), (k + 1, n)), ((), (k,)))
        )
    )
    a, b = (d.items(dtype, shape, "few") for shape in shapes)
    first = Given(a, d.how(a, expression=False))
    return Call("matmul", (first, d.alike(b, first)))


_add("matmul", np.matmul, _draw_matmul, exact=_rounded(4))


def _clip(x: Any, low: Any = None, high: Any = None) -> Any:
    return np.clip(x, low, high)


def _draw_clip(d: Draw) -> Call:
    x = _first(d, dims=2 if d.chance(0.2) else 1)
    ends = [
        d.pick((None, 0, 1, -1, 5, 0.5, 2**40)) if d.chance(0.6) else d.alike(d.items(x.items.dtype, x.items.shape), x)
        for _ in range(2)
    ]
    return (
        d.call("clip", [x], [("low", ends[0]), ("high", d.maybe(0.85, ends[1]))])
        if d.chance(0.5)
        else Call("clip", (x, *ends))
    )


_add("clip", _clip, _draw_clip)


def _draw_where(d: Draw) -> Call:
    x = _first(d, dims=2 if d.chance(0.2) else 1)
    y = _second(d, x)
    condition = d.items("bool", x.items.shape)
    first = Given(condition, x.how if x.how == "gpu" else d.pick(("numpy", "numpy", "list")))
    return Call("where", (first, *((x, y) if d.chance(0.8) else (y, x))))


_add("where", np.where, _draw_where)


def _unary_draw(name: str, pool: Sequence[str]) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d, pool if d.chance(0.93) else ALL, dims=2 if d.chance(0.25) else 1, least=0 if d.chance(0.2) else 1)
        return Call(name, (x,))

    return draw


def _scaled(of: Callable[[Any], Any], absolute: float = 0.0) -> Callable[..., Any]:
    """Return bounds that grow with the argument: of functions of f32 by WGSL's table of accuracies."""

    def find(want: Any, got: Any, x: Any) -> Any:
        wide = np.abs(np.asarray(x).astype(np.float64))
        with np.errstate(all="ignore"):
            magnitude = np.abs(np.nan_to_num(want.astype(np.float64), posinf=0, neginf=0))
            scale = of(np.where(np.isfinite(wide), wide, 0)) * magnitude + absolute / max(_eps_of(got), 2.0**-23)
        return want, scale

    return find


def _trigonometric(want: Any, got: Any, x: Any) -> Any:
    """WGSL: an absolute error of 2^-11 in [−π, π], and none is promised beyond."""
    wide = np.abs(np.asarray(x).astype(np.float64))
    with np.errstate(all="ignore"):
        unbounded = np.isfinite(wide) & (wide > np.pi)
        return want, np.where(unbounded, np.inf, 2.0**-11 / max(_eps_of(got), 2.0**-23))


_F = ("float32",)
_add(
    "sqrt",
    np.sqrt,
    _unary_draw("sqrt", (*_F, *_F, "float16")),
    exact=_scaled(lambda x: 4 + 0 * x),
    dtypes=_in_float32,
)
_add(
    "exp",
    np.exp,
    _unary_draw("exp", (*_F, *_F, "float16")),
    exact=_scaled(lambda x: 6 + 4 * x),
    dtypes=_in_float32,
)
_add(
    "log",
    np.log,
    _unary_draw("log", (*_F, *_F, "float16")),
    exact=_scaled(lambda x: 6 + 0 * x, 2.0**-20),
    dtypes=_in_float32,
)
_add("sin", np.sin, _unary_draw("sin", _F), exact=_trigonometric, dtypes=_in_float32)
_add("cos", np.cos, _unary_draw("cos", _F), exact=_trigonometric, dtypes=_in_float32)
_add("tanh", np.tanh, _unary_draw("tanh", _F), exact=_scaled(lambda x: 8 + 0 * x, 2.0**-9), dtypes=_in_float32)
for _name in ("floor", "ceil", "rint"):
    _add(_name, getattr(np, _name), _unary_draw(_name, (*_F, *_F, "float16")), dtypes=_in_float32)
_add("sign", np.sign, _unary_draw("sign", (*_F, "int32", "uint32", "float16")), dtypes=_in_float32)
_add("isnan", np.isnan, _unary_draw("isnan", (*_F, *_F, "float16")))
_add(
    "popcount",
    np.bitwise_count,
    _unary_draw("popcount", ("uint32", "int32")),
    dtypes=lambda c, w, g, a: {w, *map(np.dtype, ("uint32", "int32", "uint8"))},
)
for _name in ("abs", "absolute"):
    _add(
        _name,
        getattr(np, _name),
        _unary_draw(_name, ("int32", "uint32", "float32", "int8", "float16")),
        dtypes=_in_float32,
    )
_add(
    "round",
    np.round,
    lambda d: d.call("round", [_first(d, dims=2)], [("decimals", d.maybe(0.3, d.whole(-2, 3)))]),
    exact=_rounded(4),
    dtypes=_in_float32,
)


def _cast(dtype: Any) -> Callable[..., Any]:
    return lambda x: np.asarray(x).astype(dtype)


def _draw_cast(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = d.array(("int32", "uint32", "float32", "bool", "uint8", "int16"), 1, 1, d.pick(("few", "small")))
        if name == "u32" and x.dtype.kind == "f":
            x = np.abs(np.nan_to_num(x, posinf=1, neginf=1)).astype(x.dtype)
        return Call(name, (Given(x, d.pick(("gpu", "view", "expr") if x.dtype.itemsize == 4 else ("gpu",))),))

    return draw


for _name, _dtype in (("f32", np.float32), ("i32", np.int32), ("u32", np.uint32)):
    _add(_name, _cast(_dtype), _draw_cast(_name))


def _draw_bitcast(d: Draw) -> Call:
    x = d.array(("int32", "uint32", "float32"), 1, 1)
    if x.dtype.kind == "f":
        x = np.nan_to_num(x)
    return Call("bitcast", (d.pick(("u32", "i32")), Given(x, "gpu")))


def _bitcast(datatype: str, x: Any) -> Any:
    return np.asarray(x).view({"u32": np.uint32, "i32": np.int32, "f32": np.float32}[datatype])


_add("bitcast", _bitcast, _draw_bitcast)


def _draw_gather(d: Draw) -> Call:
    x = d.array(("int32", "uint32", "float32"), 1, 1)
    x = x if x.size else x.dtype.type([1, 2])
    indices = d.items(d.pick(("uint32", "int32")), d.length(2), "small")
    return Call("gather", (Given(np.asarray(x), "gpu"), Given(indices, "gpu")))


def _gather(x: Any, indices: Any) -> Any:
    return x[np.clip(np.asarray(indices, np.int64), 0, x.size - 1)]


_add("gather", _gather, _draw_gather)


def _shifted(by: int) -> Callable[..., Any]:
    return lambda x: np.asarray(x)[np.clip(np.arange(np.asarray(x).size) + by, 0, max(np.asarray(x).size - 1, 0))]


for _name, _by in (("previous", -1), ("next", 1)):
    _add(
        _name,
        _shifted(_by),
        (
            lambda name: (
                lambda d: Call(name, (Given(d.array(("int32", "uint32", "float32", "uint8", "int16"), 1, 1), "gpu"),))
            )
        )(_name),
    )


# ---- operators and methods of Arrays


def _power(a: Any, b: Any) -> Any:
    return a**b


def _power_exact(want: Any, got: Any, a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        b_ = np.abs(np.asarray(b, np.float64))
        a_ = np.abs(np.asarray(a, np.float64))
        logs = np.abs(np.log2(np.where((a_ > 0) & np.isfinite(a_), a_, 1)))
        magnitude = np.abs(np.nan_to_num(want.astype(np.float64), posinf=0, neginf=0))
        scale = (16 + 16 * np.where(np.isfinite(b_), b_, 0) * (1 + logs)) * magnitude
        # Where the exact power is near the ends of f32, either side is right.
        return want, np.broadcast_to(scale, want.shape)


for _symbol in OPERATORS:
    _pool: Sequence[str] = ("int32", "uint32", "float32")
    if _symbol in ("&", "|", "^"):
        _pool = ("int32", "uint32", "bool")
    elif _symbol in ("<<", ">>"):
        _pool = ("uint32", "int32")
    _add(
        _symbol,
        OPERATORS[_symbol],
        _binary(_symbol, _pool, True, 0.97),
        exact={"/": _rounded(4), "**": _power_exact}.get(_symbol, _rounded(1)),
        weight=1.5 if _symbol in ("**", "%", "//") else 0.6,
    )


def _draw_unary_operator(name: str, pool: Sequence[str]) -> Callable[[Draw], Call]:
    return lambda d: Call(name, (Given(d.array(pool, 2 if d.chance(0.2) else 1, 1), d.pick(("gpu", "gpu", "view"))),))


_add("neg", operator.neg, _draw_unary_operator("neg", ("int32", "float32", "uint32", "float64")), weight=0.5)
_add(
    "abs_",
    operator.abs,
    _draw_unary_operator("abs_", ("int32", "float32", "uint32", "float64")),
    gridwise=operator.abs,
    weight=0.5,
)
_add("invert", operator.invert, _draw_unary_operator("invert", ("int32", "uint32", "bool")), weight=0.5)


def _draw_item(d: Draw) -> Call:
    x = Given(d.array((*ALL, "complex64"), 3), d.pick(("gpu", "view")))
    n = x.items.shape[0] if x.items.ndim else 0
    key = d.pick(
        (
            slice(d.whole(-n - 2, n + 2), d.whole(-n - 2, n + 2)),
            slice(None, d.whole(0, n + 1)),
            slice(d.whole(0, n + 1), None),
            d.whole(0, max(n - 1, 0)),
            n,
            -1,
            slice(None),
            slice(1, None, 1),
        )
    )
    return Call("[]", (x, key))


_add("[]", lambda x, key: x[key], _draw_item, compare="bits", resides="gpu")


def _draw_len(d: Draw) -> Call:
    x = Given(d.array(("int32", "float32"), 1, 1, "few"), "gpu")
    y: Any = x if d.chance(0.3) else Call("compress", (Call(">", (x, 1)), x)) if d.chance(0.6) else Call("unique", (x,))
    return Call("len", (y,))


_add("len", len, _draw_len, gridwise=len, resides="", python_results=True, weight=0.3)


def _draw_astype(d: Draw) -> Call:
    x = d.array(ALL, 2)
    dtype = d.pick([t for t in _DTYPES if t not in ("S3", "complex64")])
    if np.dtype(dtype).kind in "iu" and x.dtype.kind == "f":  # what no integer holds is the machine's in numpy
        limits = np.iinfo(dtype)
        with np.errstate(all="ignore"):
            x = np.clip(np.nan_to_num(x.astype(np.float64)), max(limits.min, -(2.0**31)), min(limits.max, 2.0**31 - 1))
        x = np.where(np.isfinite(x), x, 0).astype(np.float64)
    return Call(".astype", (Given(x, "gpu"), dtype))


_add(".astype", lambda x, dtype: x.astype(dtype), _draw_astype, compare="bits", weight=1.5)


def _draw_reshape(d: Draw) -> Call:
    x = Given(d.array(ALL, 3), "gpu")
    n = x.items.size
    shape = d.pick(
        ((n,), (-1,), -1, n, (n, 1), (1, -1), (2, -1), (-1, -1), (n + 1,), (1, n, 1), x.items.shape[::-1], 1.5)
    )
    return Call(".reshape", (x, shape))


_add(".reshape", lambda x, shape: x.reshape(shape), _draw_reshape, compare="bits", weight=0.5)
_add(
    ".ravel",
    lambda x: x.ravel(),
    lambda d: Call(".ravel", (Given(d.array(ALL, 3), "gpu"),)),
    compare="bits",
    weight=0.3,
)
_add(".copy", lambda x: x.copy(), lambda d: Call(".copy", (Given(d.array(ALL, 3), "gpu"),)), compare="bits", weight=0.3)
_add(
    ".tolist",
    lambda x: x.tolist(),
    lambda d: Call(".tolist", (Given(d.array((*ALL, "complex64"), 2), "gpu"),)),
    resides="",
    python_results=True,
    weight=0.3,
)
_add(
    ".item",
    lambda x, *at: x.item(*at),
    lambda d: (
        lambda x: Call(
            ".item", (x, *(() if d.chance(0.3) else (d.pick((0, -1, x.items.size - 1, x.items.size, 2**32)),)))
        )
    )(Given(d.array(ALL, 1, 1), "gpu")),
    resides="",
    python_results=True,
    weight=0.5,
)


# ---- what selection and sort give; public since they are there


def _draw_quantile(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = _first(d, dims=2)
        most = 100 if "percentile" in name else 1
        q: Any = d.pick((0, most, most / 2, most / 4, most / 3, -0.5, most * 1.5, float("nan")))
        if d.chance(0.3):
            q = Given(np.array([0.1, 0.5, 0.9]) * most, d.pick(("numpy", "list")))
        axis, keepdims = d.maybe(0.5, d.axis(x.items.ndim)), d.maybe(0.15, True)
        named = {} if keepdims is LEFT else {"keepdims": True}
        if "median" in name:
            return d.call(name, [x], [("axis", axis)], named)
        if d.chance(0.2):
            named["method"] = d.pick(("linear", "lower", "higher", "nearest", "midpoint", "hazen", "worst"))
        return d.call(name, [x, q], [("axis", axis)], named)

    return draw


def _nan_moments(name: str) -> Callable[..., Any]:
    def find(want: Any, got: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        largest = float(np.max(ref._finite(np.asarray(x)), initial=0))
        scale = 4096 * (largest**2 if name == "nanvar" else largest)
        whole = np.asarray(x).dtype.kind in "iub"  # computed in float32
        far = largest > 1e18 if got.dtype == np.float32 or whole else False
        return want, np.full(want.shape, np.inf if far else scale * (max(1.0, 2.0**-23 / _eps_of(got)) if whole else 1))

    return find


def _quantile_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    return {*_mean_dtypes(call, want, on_gpu, at), np.dtype(np.float64)}


def _of_largest(ulps: float = 16) -> Callable[..., Any]:
    def find(want: Any, got: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        largest = float(np.max(ref._finite(np.asarray(x)), initial=0))
        return want, np.full(want.shape, ulps * largest)

    return find


for _name in ("median", "nanmedian", "quantile", "nanquantile", "percentile", "nanpercentile"):
    _add(_name, getattr(np, _name), _draw_quantile(_name), exact=_of_largest(), dtypes=_quantile_dtypes)
for _name, _exact, _dtypes_of in (
    ("nansum", _sum_exact, _wide_dtypes),
    ("nanprod", _prod_exact, _wide_dtypes),
    ("nanmin", None, _wide_dtypes),
    ("nanmax", None, _wide_dtypes),
):
    _add(
        _name,
        getattr(np, _name),
        _reduction(_name, getattr(np, _name), _exact is not None),
        dtypes=_dtypes_of,
        exact=None
        if _exact is None
        else (
            lambda exact, fill: (
                lambda w, g, x, *a, **k: exact(
                    w,
                    g,
                    np.where(np.isnan(x), fill, x).astype(np.asarray(x).dtype)
                    if np.asarray(x).dtype.kind == "f"
                    else x,
                    *a,
                    **k,
                )
            )
        )(_exact, 0 if _name == "nansum" else 1),
    )


def _draw_nan_moments(name: str) -> Callable[[Draw], Call]:
    plain = _draw_mean(name[3:], getattr(np, name))

    def draw(d: Draw) -> Call:
        call = plain(d)
        return Call(name, call.args, call.kwargs)

    return draw


for _name in ("nanmean", "nanvar", "nanstd"):
    _add(
        _name,
        getattr(np, _name),
        _draw_nan_moments(_name),
        exact=_nan_moments(_name),
        dtypes=_mean_dtypes,
        out_at=3,
    )
for _name in ("nanargmin", "nanargmax"):
    _add(_name, getattr(np, _name), _draw_truth(_name, getattr(np, _name), with_out=False, several=False))
_add(
    "ptp",
    np.ptp,
    lambda d: (lambda x: d.call("ptp", [x], [("axis", d.maybe(0.5, d.axis(x.items.ndim)))]))(_first(d)),
    exact=_rounded(1),
)
_add(
    "average",
    np.average,
    lambda d: (
        lambda x: d.call(
            "average",
            [x],
            [
                ("axis", d.maybe(0.5, d.axis(x.items.ndim))),
                ("weights", d.maybe(0.4, d.alike(d.items("float32", x.items.shape, "few"), x))),
            ],
        )
    )(_first(d)),
    exact=_of_largest(4096),
    dtypes=_mean_dtypes,
)
_add(
    "diff",
    np.diff,
    lambda d: (
        lambda x: d.call(
            "diff",
            [x],
            [
                ("n", d.maybe(0.3, d.pick((0, 1, 2, 3, -1)))),
                ("axis", d.maybe(0.4, d.axis(x.items.ndim, several=False))),
            ],
        )
    )(_first(d)),
    exact=_of_largest(8),
)
_add("ediff1d", np.ediff1d, lambda d: Call("ediff1d", (_first(d),)), exact=_of_largest(4))

#: Public functions without an entry, and why.
EXEMPT: dict[str, str] = {
    "batch": "submits calls together: tests/runtime/test_any_order.py",
    "benchmark": "the stopwatch",
    "capabilities": "of the device",
    "capture": "records calls: tests/runtime/test_any_order.py",
    "default_device": "of the device",
    "empty_cache": "memory of the device",
    "function": "WGSL of the user's",
    "hold_clock": "the stopwatch",
    "leaf": "a part of an expression: tests/primitives/test_random_expressions.py",
    "list_adapters": "of the machine",
    "measure": "the stopwatch",
    "memory_stats": "memory of the device",
    "pinned_empty": "memory of the device",
    "profile": "the stopwatch",
    "read_results": "files: helpers.fuzz_results",
    "request_device": "of the machine",
    "scalar": "a part of an expression: tests/primitives/test_random_expressions.py",
    "stream": "takes primitives: tests/primitives/test_stream.py",
    "struct": "a part of an expression: tests/primitives/test_random_expressions.py",
    "synchronize": "waits",
    "timing_helper": "the stopwatch",
    "to_dataframe": "files",
    "warm_up": "compiles",
}
