"""Reductions of the items that are not NaN: those of `functions.reductions` and `summaries` with a mask."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError
from ..primitives.reduce_axis import axes_of, one_axis
from ..primitives.repeated_calls import one_shot
from ..runtime.array import Array, asarray
from ..types import expression_functions as expressions
from ..types.datatype import ItemDatatypeLike
from ..types.expression import LEAF_DATATYPES, Expression, f32
from .arguments import (
    argument_array,
    argument_datatype,
    delivered,
    device_of,
    numpy_result,
    without_doubles,
)
from .reductions import mask_of, masked_items, max, min, prod, sum
from .signatures import AxisLike, Where
from .summaries import any, argmax, argmin, mean, narrowed, spread

__all__ = ["nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar"]

_PARAMETERS = """

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
        An Array of up to 4 bytes. Integers have no NaN.
    axis, dtype, out, keepdims, where, device
        As for `{name}`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array
        {none}
    """


def _items_and_mask(call: str, x: Any, where: Any, device: Any, *, narrow: bool = False) -> tuple[Any, Any]:
    """Return the items, and which of them count: those that are not NaN, and that a caller's mask has.

    With `narrow` those of Python's numbers are of 4 bytes.
    """
    mask = mask_of(call, where)
    items: Any = x
    if not isinstance(x, (Array, Expression)):
        items = argument_array(call, "x", x)
        items = narrowed(x, items) if narrow else without_doubles(x, items, device_of(device=device))
    if mask is not None:
        items, mask = masked_items(call, items, mask, device)
    if isinstance(items, np.ndarray):
        number = None if items.dtype.kind not in "fc" else ~np.isnan(items)
    elif isinstance(items, Array) and items.dtype.kind not in "fc":
        number = None
    else:
        if isinstance(items, Array):
            argument_datatype(call, "x", x, items.dtype, LEAF_DATATYPES)
        value = items.as_expression()
        number = ~expressions.isnan(value) if value.type == "f32" else None
    if number is None or mask is None:
        return items, True if number is None and mask is None else number if mask is None else mask
    return items, number & mask


def _of_floats(call: str, x: Any, where: Any, out: Any, device: Any) -> tuple[Any, Any]:
    """Return what `_items_and_mask` does, for a mean or a variance; refuse integers as ``out=`` of floats, as numpy."""
    items, mask = _items_and_mask(call, x, where, device, narrow=True)
    of = "f" if isinstance(items, Expression) else items.dtype.kind
    if of in "fc" and getattr(getattr(out, "dtype", None), "kind", "f") not in "fc":
        raise DatatypeError(f"{call}: out is of {out.dtype}, but the result is of floats; give such an array")
    return items, mask


@one_shot()
def nansum(
    x: Any,
    axis: AxisLike = None,
    dtype: ItemDatatypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Where = True,
    *,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the sum."""
    items, mask = _items_and_mask("gw.nansum()", x, where, device)
    return cast(Any, sum)(items, axis, dtype, out, keepdims, initial, mask, device=device)


@one_shot()
def nanprod(
    x: Any,
    axis: AxisLike = None,
    dtype: ItemDatatypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Where = True,
    *,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the product."""
    items, mask = _items_and_mask("gw.nanprod()", x, where, device)
    return cast(Any, prod)(items, axis, dtype, out, keepdims, initial, mask, device=device)


@one_shot()
def nanmean(
    x: Any,
    axis: AxisLike = None,
    dtype: ItemDatatypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Where = True,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the mean."""
    items, mask = _of_floats("gw.nanmean()", x, where, out, device)
    return mean(items, axis, dtype, out, keepdims, where=mask, device=device)


@one_shot()
def nanvar(
    x: Any,
    axis: AxisLike = None,
    dtype: ItemDatatypeLike | None = None,
    out: Any = None,
    ddof: float = 0.0,
    keepdims: bool = False,
    *,
    where: Where = True,
    correction: float | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the variance."""
    return _spread("gw.nanvar()", False, x, axis, dtype, out, ddof, keepdims, where, correction, device)


@one_shot()
def nanstd(
    x: Any,
    axis: AxisLike = None,
    dtype: ItemDatatypeLike | None = None,
    out: Any = None,
    ddof: float = 0.0,
    keepdims: bool = False,
    *,
    where: Where = True,
    correction: float | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the standard deviation."""
    return _spread("gw.nanstd()", True, x, axis, dtype, out, ddof, keepdims, where, correction, device)


def _spread(
    call: str, root: bool, x: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, where: Any,
    correction: Any, device: Any,
) -> Any:  # fmt: skip
    """Return what `summaries.spread` does; as numpy NaN of too few floats, where that divides by 0."""
    items, mask = _of_floats(call, x, where, out, device)
    least = np.nan if (items.dtype.kind if hasattr(items, "dtype") else items.type[0]) == "f" else 0.0
    return spread(call, root, items, axis, dtype, out, ddof, keepdims, mask, correction, device, least=least)


def _check_order(call: str, items: np.ndarray) -> None:
    if items.dtype.kind == "c":
        raise DatatypeError(f"{call}: x is of {items.dtype}, and complex numbers have no order")


def _extreme(
    call: str, function: Any, x: Any, axis: AxisLike, out: Any, keepdims: bool, initial: Any, where: Any, device: Any
) -> Any:
    items, mask = _items_and_mask(call, x, where, device)
    if isinstance(items, np.ndarray):
        _check_order(call, items)
    if mask is True or (where is True and getattr(items, "size", 1) == 0):
        return function(items, axis, out, keepdims, initial, device=device)
    if initial is not None:
        return function(items, axis, out, keepdims, initial, mask, device=device)
    if where is not True:
        raise ArgumentError(f"{call}: with where= no item may be left, so it needs initial=, the result of none")
    last = -np.inf if function is max else np.inf
    found = function(items, axis, None, keepdims, last, mask, device=device)
    if not isinstance(found, Array):
        axes = None if axis is None else axes_of(call, axis, np.ndim(mask))
        some = np.any(mask, axis=axes, keepdims=bool(keepdims))
        return delivered(call, numpy_result(np.where(some, found, np.array(np.nan, found.dtype))), out, "unsafe")
    counts = asarray(mask, device) if isinstance(items, Array) and items.ndim else mask
    some = any(counts, axis, keepdims=keepdims, device=device)
    chosen = asarray(expressions.where(some, f32(found), np.nan))
    return delivered(call, chosen.astype(found.datatype, copy=False).reshape(found.shape), out, "unsafe")


@one_shot()
def nanmin(
    x: Any,
    axis: AxisLike = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Where = True,
    *,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the smallest."""
    return _extreme("gw.nanmin()", min, x, axis, out, keepdims, initial, where, device)


@one_shot()
def nanmax(
    x: Any,
    axis: AxisLike = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Where = True,
    *,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the largest."""
    return _extreme("gw.nanmax()", max, x, axis, out, keepdims, initial, where, device)


def _place(call: str, function: Any, x: Any, axis: Any, out: Any, keepdims: bool, device: Any) -> Any:
    items, mask = _items_and_mask(call, x, True, device)
    if axis is not None and not isinstance(items, Expression) and items.ndim < 2:
        one_axis(call, axis, 1)
        axis = None
    if mask is True:
        return function(items, axis, out, keepdims=keepdims, device=device)
    last = -np.inf if function is argmax else np.inf
    if isinstance(items, np.ndarray):
        _check_order(call, items)
        if items.size and not np.any(mask, axis=None if axis is None else one_axis(call, axis, items.ndim)).all():
            raise ArgumentError(f"{call}: all items of a row are NaN, so there is no such index (numpy raises, too)")
        items = np.where(mask, items, np.array(last, items.dtype))
    else:
        chosen = expressions.where(mask, items.as_expression(), last)
        items = asarray(chosen) if isinstance(items, Array) and items.ndim > 1 else chosen
    return function(items, axis, out, keepdims=keepdims, device=device)


@one_shot()
def nanargmin(
    x: Any,
    axis: int | None = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the index of the smallest."""
    return _place("gw.nanargmin()", argmin, x, axis, out, keepdims, device)


@one_shot()
def nanargmax(
    x: Any,
    axis: int | None = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the index of the largest."""
    return _place("gw.nanargmax()", argmax, x, axis, out, keepdims, device)


def _document() -> None:
    nothing = {
        "min": "NaN of none.", "max": "NaN of none.", "mean": "NaN of none.", "var": "NaN of none.",
        "argmin": "Of none numpy arrays raise, and Arrays give the first index.",
        "sum": "0 of none.", "prod": "1 of none.",
    }  # fmt: skip
    nothing |= {"std": nothing["var"], "argmax": nothing["argmin"]}
    for name in __all__:
        function, of = globals()[name], name.removeprefix("nan")
        first = cast(str, function.__doc__).rstrip(".")
        function.__doc__ = f"{first} of the items that are not NaN." + _PARAMETERS.format(name=of, none=nothing[of])


_document()
