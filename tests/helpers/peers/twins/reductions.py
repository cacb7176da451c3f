"""Reductions, scans, and summaries of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import references as ref
from ..calls import Call
from ..draws import Draw
from .table import add, drawn_along, drawn_array, eps_of, float_of, mean_dtypes, wide_dtypes

# ---- reductions and scans


def items_along(x: Any, axis: Any) -> float:
    """Return how many items go into a result."""
    x = np.asarray(x)
    if axis is None or not x.ndim:
        return x.size
    axes = axis if isinstance(axis, tuple) else (axis,)
    return float(np.prod([x.shape[int(a)] for a in axes]))


def _as_computed(x: Any, dtype: Any) -> np.ndarray | None:
    """Return items as ``dtype=`` makes them; None where floats become integers, whose results are exact."""
    x = np.asarray(x)
    if dtype is None or (isinstance(dtype, str) and dtype in ("i8", "u8")):
        return x
    if np.dtype(dtype).kind in "iub":
        return None if x.dtype.kind == "f" else x
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def sum_exact(
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
    x = _as_computed(x, dtype)
    if x is None:
        return None
    if initial != 0 or where is not True:
        x = np.where(where, x, 0)
    value, scale = ref.exact_sum(np.sum, got.dtype, x, items_along(x, axis), axis=axis, keepdims=keepdims)
    return value + initial, scale + abs(initial)


def prod_exact(
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
    x = _as_computed(x, dtype)
    if x is None:
        return None
    x = np.where(where, x, 1) if where is not True else x
    value, scale = ref.exact_product(np.prod, got.dtype, x, items_along(x, axis), axis=axis, keepdims=keepdims)
    return value * initial, scale * abs(initial)


def _cumulative_exact(exact: Any, along: Any, of: Any) -> Any:
    def find(
        want: Any, got: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Any:
        x = _as_computed(x, dtype)
        if x is None:
            return None
        n = x.size if axis is None or not x.ndim else x.shape[int(axis)]
        with np.errstate(all="ignore"):
            value, scale = exact(along, got.dtype, x, n, axis=axis)
            if include_initial:
                shape = list(value.shape)
                shape[int(axis or 0)] = 1
                value = np.concatenate([np.full(shape, of), value], axis=int(axis or 0))
                scale = np.concatenate([np.zeros(shape), scale], axis=int(axis or 0))
        return value, scale

    return find


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


for _name, _exact, _zeros in (("sum", sum_exact, False), ("prod", prod_exact, True)):
    _of = getattr(np, _name)
    _draw = drawn_along(_name, _of, ("axis", "dtype", "out", "keepdims", "initial"), ("where",))
    add(_name, _of, _draw, exact=_exact, out_at=3, zeros_stay=_zeros, weight=1.5)
for _name, _of in (("min", _max_of(np.minimum)), ("max", _max_of(np.maximum))):
    add(_name, _of, drawn_along(_name, _of, ("axis", "out", "keepdims", "initial"), ("where",)), out_at=2)
for _exact, _along, _first in ((ref.exact_sum, np.cumsum, 0), (ref.exact_product, np.cumprod, 1)):
    for _of in (_along, np.cumulative_prod if _first else np.cumulative_sum):
        _name, _order = _of.__name__, ("axis", "dtype", "out")
        if _of is not _along:
            _order = ()
        _named = () if _order else ("axis", "dtype", "include_initial", "out")
        _draw = drawn_along(_name, _of, _order, _named, several=False)
        add(_name, _of, _draw, exact=_cumulative_exact(_exact, _along, _first), out_at=3, zeros_stay=bool(_first))


def _draw_reduce(d: Draw) -> Call:
    x, op = drawn_array(d), d.pick(tuple(ref.UFUNCS))
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
    exact = sum_exact if op == "add" else prod_exact
    return exact(want, got, x, axis, keepdims=keepdims)


add("reduce", _reduce, _draw_reduce, exact=_reduce_exact)


def _draw_scan(d: Draw) -> Call:
    x, named = drawn_array(d, dims=1 if d.chance(0.95) else 2, least=1), {}
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


add("scan", _scan, _draw_scan, exact=_scan_exact)

# ---- summaries


def mean_exact(
    want: Any, got: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    single = isinstance(x, (list, tuple, float)) or np.asarray(x).dtype == np.float32
    x = np.asarray(x)
    n = items_along(x, axis)
    if single and got.dtype == np.float64:  # whatever `out` is
        value, scale = mean_exact(
            want, np.zeros((), np.float32), x.astype(np.float32), axis, np.float32, None, keepdims
        )
        return value, scale * (2.0**-23 / eps_of(got)) + np.abs(value)
    kept = got.dtype if got.dtype.kind == "f" and got.dtype.itemsize > 2 else np.dtype(np.float64)
    value, scale = ref.exact_sum(np.sum, kept, x, n, axis=axis, keepdims=keepdims)
    with np.errstate(all="ignore"):
        return value / np.longdouble(n), scale / max(n, 1) + 2 * np.abs(value / np.longdouble(n))


def var_exact(root: bool) -> Callable[..., Any]:
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
        is_whole = x.dtype.kind in "iub"
        is_single = dtype in ("float32", np.float32) if dtype is not None else not is_whole and x.dtype != np.float64
        if is_single and got.dtype == np.float64:
            x = x if is_whole else x.astype(np.float32)  # computed in it, whatever `out` is
            if got.dtype != np.float32:
                value, scale = find(want, np.zeros((), np.float32), x, axis, np.float32, None, ddof, keepdims)
                return value, scale * (2.0**-23 / eps_of(got)) + np.abs(value)
        with np.errstate(all="ignore"):
            near: Any = x
            if is_whole and x.size:  # distances have fewer bits, so that longdouble holds their mean, too
                near = x.astype(object)
                near = near - np.min(near, axis=axis, keepdims=True)
            wide = np.asarray(near).astype(np.longdouble)
            value = np.var(wide, axis=axis, ddof=ddof, keepdims=keepdims)
            largest = np.max(ref._finite(wide), axis=axis, keepdims=keepdims, initial=0)
            n = items_along(x, axis)
            # Items are relative to 0 along an axis: the error has a part of the mean.
            scale = (50 + n) * (np.abs(value) + largest * np.sqrt(np.abs(value)) + largest**2 * eps_of(got))
            scale = (50 + n) * np.abs(value) if is_whole else scale  # moments of integers are exact, but for the result
            ends = np.finfo(float_of(got))
            scale = np.where(largest > np.sqrt(float(ends.max)) / 4, np.inf, scale)
            scale = scale if is_whole else scale + float(ends.tiny) / eps_of(got)  # squares underflow
            if not root:
                return value, scale
            root_value = np.sqrt(value)
            eps = eps_of(got)
            return root_value, np.where(
                root_value > 0, np.minimum(scale / root_value, np.sqrt(scale / eps)), np.sqrt(scale / eps)
            ) + 4 * np.abs(root_value)

    return find


MEANS = (0.06, lambda d: d.pick(("float32", "float64", "float16", np.float32)))
SPREAD = ("axis", "dtype", "out", "ddof", "keepdims")
for _name, _order, _named, _exact in (
    ("mean", ("axis", "dtype", "out", "keepdims"), (), mean_exact),
    ("var", SPREAD, ("correction",), var_exact(False)),
    ("std", SPREAD, ("correction",), var_exact(True)),
):
    _of = getattr(np, _name)
    _draw = drawn_along(_name, _of, _order, _named, dtype=MEANS)
    add(_name, _of, _draw, exact=_exact, dtypes=mean_dtypes, out_at=3, weight=1.5)
for _name in ("any", "all"):
    add(_name, getattr(np, _name), drawn_along(_name, getattr(np, _name), ("axis", "out", "keepdims")), out_at=2)
for _name in ("argmin", "argmax"):
    _draw = drawn_along(_name, getattr(np, _name), ("axis", "out"), ("keepdims",), several=False)
    add(_name, getattr(np, _name), _draw, out_at=2)
add("count_nonzero", np.count_nonzero, drawn_along("count_nonzero", np.count_nonzero, ("axis",), ("keepdims",)))


def _find(x: Any) -> Any:
    truth = np.asarray(x).astype(bool).ravel()
    return int(np.argmax(truth)) if truth.any() else truth.size


def _minmax(x: Any) -> Any:
    return np.min(x), np.max(x)


def _argminmax(x: Any) -> Any:
    x = np.asarray(x).ravel()
    low, high = x.argmin(), x.argmax()
    return low, high, x[low], x[high]


add("argminmax", _argminmax, lambda d: Call("argminmax", (drawn_array(d),)), dtypes=wide_dtypes)
add("find", _find, lambda d: Call("find", (drawn_array(d, dims=1, least=1),)), python_results=True)
add("minmax", _minmax, lambda d: Call("minmax", (drawn_array(d),)), dtypes=wide_dtypes)
