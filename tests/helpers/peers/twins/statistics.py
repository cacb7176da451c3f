"""What selection and sort give: medians, quantiles, differences, and what leaves NaN out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import references as ref
from ..calls import Call, Given
from ..draws import LEFT, Draw
from .reductions import drawn_mean, drawn_reduction, drawn_truth, prod_exact, sum_exact
from .table import add, drawn_array, eps_of, mean_dtypes, rounded


def _draw_quantile(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = drawn_array(d, dims=2)
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
    def find(
        want: Any, got: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, *rest: Any, **kwargs: Any
    ) -> Any:
        x = np.asarray(x)
        largest = float(np.max(ref._finite(x), initial=0))
        single = x.dtype.kind in "iub" or got.dtype == np.float32  # computed in float32
        with np.errstate(all="ignore"):
            value = getattr(np, name)(x.astype(np.longdouble), axis, None, None, *rest, **kwargs)
            scale = 4096 * (largest**2 if name == "nanvar" else largest) + np.abs(value)
        scale = scale * max(1.0, 2.0**-23 / eps_of(got)) if single else scale
        return value, np.broadcast_to(np.inf if largest > 1e18 and single else scale, want.shape)

    return find


def _quantile_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    return {*mean_dtypes(call, want, on_gpu, at), np.dtype(np.float64)}


def _of_largest(ulps: float = 16) -> Callable[..., Any]:
    def find(want: Any, got: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        largest = float(np.max(ref._finite(np.asarray(x)), initial=0))
        return want, np.full(want.shape, ulps * largest)

    return find


for _name in ("median", "nanmedian", "quantile", "nanquantile", "percentile", "nanpercentile"):
    add(_name, getattr(np, _name), _draw_quantile(_name), exact=_of_largest(), dtypes=_quantile_dtypes)
for _name, _exact in (("nansum", sum_exact), ("nanprod", prod_exact), ("nanmin", None), ("nanmax", None)):
    add(
        _name,
        getattr(np, _name),
        drawn_reduction(_name, getattr(np, _name), _exact is not None),
        out_at=2 if _exact is None else 3,
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
    plain = drawn_mean(name[3:], getattr(np, name))

    def draw(d: Draw) -> Call:
        call = plain(d)
        return Call(name, call.args, call.kwargs)

    return draw


for _name in ("nanmean", "nanvar", "nanstd"):
    add(_name, getattr(np, _name), _draw_nan_moments(_name), exact=_nan_moments(_name), dtypes=mean_dtypes, out_at=3)
for _name in ("nanargmin", "nanargmax"):
    add(_name, getattr(np, _name), drawn_truth(_name, getattr(np, _name), with_out=False, several=False))
add(
    "ptp",
    np.ptp,
    lambda d: (lambda x: d.call("ptp", [x], [("axis", d.maybe(0.5, d.axis(x.items.ndim)))]))(drawn_array(d)),
    exact=rounded(1),
)
add(
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
    )(drawn_array(d)),
    exact=_of_largest(4096),
    dtypes=mean_dtypes,
)
add(
    "diff",
    np.diff,
    lambda d: (
        lambda x: d.call(
            "diff",
            [x],
            [("n", d.maybe(0.3, d.pick((1, 2, 3, -1)))), ("axis", d.maybe(0.4, d.axis(x.items.ndim, several=False)))],
        )
    )(drawn_array(d)),
    exact=_of_largest(8),
)
add("ediff1d", np.ediff1d, lambda d: Call("ediff1d", (drawn_array(d),)), exact=_of_largest(4))
