"""What selection and sort give: medians, quantiles, differences, and what leaves NaN out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import references as ref
from ..calls import Call, Given
from ..draws import Draw
from .reductions import MEANS, SPREAD, prod_exact, sum_exact
from .table import add, any_float, drawn_along, drawn_array, eps_of, mean_dtypes, rounded


def _draw_quantile(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = drawn_array(d, dims=2)
        most = 100 if "percentile" in name else 1
        q: Any = d.pick((0, most, most / 2, most / 4, most / 3, -0.5, most * 1.5, float("nan")))
        if d.chance(0.3):
            q = Given((np.array([0.1, 0.5, 0.9]) * most).astype(d.pick(("f8", "f4"))), d.pick(("numpy", "list")))
        elif d.chance(0.2):
            q = d.pick((np.float32, np.float64))(abs(q))
        axis, named = d.maybe(0.5, d.axis(x.items.ndim)), {"keepdims": True} if d.chance(0.15) else {}
        if d.chance(0.2):
            named["method"] = d.pick(("linear", "lower", "higher", "nearest", "midpoint", "hazen", "worst"))
        elif "nan" not in name and x.items.size and d.chance(0.2):
            weights = d.items("float32", x.items.shape, "few") + 1
            named |= {"method": d.pick(("inverted_cdf",) * 9 + ("linear",)), "weights": d.alike(weights, x)}
        return d.call(name, [x, q], [("axis", axis)], named)

    return draw


def _nan_moments(name: str) -> Callable[..., Any]:
    def find(
        want: Any, got: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, *rest: Any, **kwargs: Any
    ) -> Any:
        x = np.asarray(x)
        largest = np.longdouble(np.max(ref._finite(x), initial=0))
        single = np.float32 in (x.dtype, got.dtype) or x.dtype == np.float16  # computed in float32
        with np.errstate(all="ignore"):
            value = getattr(np, name)(x.astype(np.longdouble), axis, None, None, *rest, **kwargs)
            scale = 4096 * (largest**2 if name == "nanvar" else largest) + np.abs(value)
        scale = scale * max(1.0, 2.0**-23 / eps_of(got)) if single else scale
        return value, np.broadcast_to(np.inf if largest > 1e18 and single else scale, want.shape)

    return find


def _of_largest(ulps: float = 16) -> Callable[..., Any]:
    def find(want: Any, got: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        largest = float(np.max(ref._finite(np.asarray(x)), initial=0))
        return want, np.full(want.shape, ulps * largest)

    return find


for _name in ("median", "nanmedian", "quantile", "nanquantile", "percentile", "nanpercentile"):
    _of = getattr(np, _name)
    _draw = drawn_along(_name, _of, ("axis",), ("keepdims",)) if "median" in _name else _draw_quantile(_name)
    add(_name, _of, _draw, exact=_of_largest(), dtypes=any_float)


def _without_nan(exact: Callable[..., Any], fill: int) -> Callable[..., Any]:
    def find(want: Any, got: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        x = np.asarray(x)
        return exact(want, got, np.where(np.isnan(x), fill, x).astype(x.dtype), *args, **kwargs)

    return find


for _name, _exact in (("nansum", _without_nan(sum_exact, 0)), ("nanprod", _without_nan(prod_exact, 1))):
    _of = getattr(np, _name)
    _draw = drawn_along(_name, _of, ("axis", "dtype", "out", "keepdims", "initial"), ("where",))
    add(_name, _of, _draw, exact=_exact, out_at=3)
for _name in ("nanmin", "nanmax"):
    _of = getattr(np, _name)
    add(_name, _of, drawn_along(_name, _of, ("axis", "out", "keepdims", "initial"), ("where",)), out_at=2)
for _name in ("nanmean", "nanvar", "nanstd"):
    _of, _is_mean = getattr(np, _name), _name == "nanmean"
    _order, _named = (("axis", "dtype", "out", "keepdims"), ()) if _is_mean else (SPREAD, ("correction",))
    _draw = drawn_along(_name, _of, _order, _named, dtype=MEANS)
    add(_name, _of, _draw, exact=_nan_moments(_name), dtypes=mean_dtypes, out_at=3)
for _name in ("nanargmin", "nanargmax"):
    _of = getattr(np, _name)
    add(_name, _of, drawn_along(_name, _of, ("axis",), ("keepdims",), several=False))
add("ptp", np.ptp, drawn_along("ptp", np.ptp, ("axis",)), exact=rounded(1))
_diff = lambda x, *args, **named: np.diff(np.asarray(x), *args, **named)  # noqa: E731  # n=0 gives a list back
add("diff", _diff, drawn_along("diff", _diff, ("n", "axis"), several=False), exact=_of_largest(8))


def _draw_average(d: Draw) -> Call:
    x = drawn_array(d)
    axis, shape = d.maybe(0.5, d.axis(x.items.ndim)), x.items.shape
    axes = axis if isinstance(axis, tuple) else (axis,)
    if d.chance(0.6) and all(isinstance(k, int) and -len(shape) <= k < len(shape) for k in axes):
        shape = tuple(shape[k] for k in axes)  # along these axes, in their order
    weights = d.items("float32", shape, "few") + np.float32(d.pick((0, 1)))
    return d.call("average", [x], [("axis", axis), ("weights", d.maybe(0.5, d.alike(weights, x)))])


add("average", np.average, _draw_average, exact=_of_largest(4096), dtypes=mean_dtypes)


def _draw_ediff1d(d: Draw) -> Call:
    ends = (3, -2, 0.75, float("nan"), 70000, Given(np.float32([5, 7.5])), Given(np.int8([1])), [2.5])
    named = {name: d.pick(ends) for name in ("to_end", "to_begin") if d.chance(0.2)}
    return Call("ediff1d", (drawn_array(d, gpu=not named),), named)


def _ediff1d(x: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return numpy's result, which wraps Python's integers that do not fit, and takes small ones for int64."""
    dtype = np.ediff1d(x).dtype
    for end in (to_end, to_begin):
        if type(end) is int and dtype.kind in "iu" and not np.iinfo(dtype).min <= end <= np.iinfo(dtype).max:
            raise ref.Refused("a number of another datatype")
    ends = [np.asarray(end, dtype) if type(end) is int else end for end in (to_end, to_begin)]
    return np.ediff1d(x, *ends)


add("ediff1d", _ediff1d, _draw_ediff1d, exact=_of_largest(4))
