"""Dates and durations on the host: functions that order or move items take them as int64, and give dates back.

NaT is the least int64, but comes behind all dates. So keys are the bits of a date less 1, which wraps: NaT becomes the
greatest. Where NaT must be the least, they are the bits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import DatatypeError
from ..primitives.fusion import EXPRESSIONS
from ..runtime.chunked_array import Items
from ..types.datatype import STORAGE_DATATYPES
from .arguments import argument_array, argument_datatype, deliver, numpy_result

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_ONE, _NONE = slice(1), slice(0)
#: For each function the arguments that may be dates, which of its results are, and whether NaT is the least key, or the
#: argument that says so.
_RULES: dict[str, tuple[str, slice, bool | str]] = {
    name: (arguments, results, nat_is_least)
    for names, arguments, results, nat_is_least in (
        ("sort", "x", _ONE, "descending"), ("argsort", "x", _NONE, "descending"), ("top_k", "x", _ONE, "mode"),
        ("partition nth_element unique unique_values unique_counts unique_inverse unique_all", "x", _ONE, False),
        ("argmin", "x", _NONE, True), ("argmax argpartition", "x", _NONE, False),
        ("min nanmax", "x initial", _ONE, True), ("max nanmin", "x initial", _ONE, False),
        ("minmax", "x", slice(2), True), ("argminmax", "x", slice(2, 4), True),
        ("searchsorted", "x1 x2", _NONE, False), ("digitize", "x bins", _NONE, False),
        ("take compress repeat roll flip", "x", _ONE, True),
    )
    for name in names.split()
}  # fmt: skip


def dates_of(value: Any) -> np.ndarray | None:
    """Return dates or durations as numpy makes them; None of all else."""
    given: Any = next(iter(cast(Any, value)), None) if isinstance(value, (list, tuple)) else value
    kind = getattr(getattr(given, "dtype", None), "kind", "M")  # polars and pyarrow say no kind
    if kind not in "mM" or not hasattr(given, "__array__") or isinstance(given, (Items, *EXPRESSIONS)):
        return None
    return argument_array("gw.asarray()", "x", value) if np.asarray(given).dtype.kind in "mM" else None


def takes_dates(function: FunctionT) -> FunctionT:
    """Let a function that has a rule take dates."""
    name = function.__name__
    if name not in _RULES:
        return function
    signature, (arguments, results, nat_is_least) = inspect.signature(function), _RULES[name]
    known = {each: list(signature.parameters).index(each) for each in arguments.split()}

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = {each: args[k] if k < len(args) else kwargs.get(each) for each, k in known.items()}
        dates = {each: items for each, value in given.items() if (items := dates_of(value)) is not None}
        if not dates:
            return function(*args, **kwargs)
        options = (bound := signature.bind_partial(*args, **kwargs)).arguments
        dtype = _common(f"gw.{name}()", dates, options, known)
        least = options.get(nat_is_least, nat_is_least == "mode") if isinstance(nat_is_least, str) else nat_is_least
        step = np.int64(least not in (True, "largest"))
        out = options.pop("out", None) if results.stop else None
        labels, is_apart = None, name.startswith("unique") and not options.get("equal_nan", name == "unique")
        with np.errstate(over="ignore"):
            keys = ((each, items.astype(dtype, copy=False).view(np.int64)) for each, items in dates.items())
            options |= {each: items - step if step else items for each, items in keys}
            if is_apart and np.isnat(dates["x"]).any():  # each is an item of its own
                labels, options["x"] = np.unique(dates["x"].astype(dtype), return_inverse=True)
                options["x"][np.isnat(dates["x"])] += np.arange(np.isnat(dates["x"]).sum())
            found: Any = function(*bound.args, **bound.kwargs)
            parts: list[Any] = list(cast(Any, found)) if isinstance(found, tuple) else [found]
            for k in range(len(parts))[results]:
                items = np.asarray(parts[k])
                items = np.add(items, step, out=items) if step and labels is None else items
                parts[k] = items.view(dtype) if labels is None else labels[np.minimum(items, labels.size - 1)]
        if name in ("minmax", "argminmax") and np.isnat(parts[-2]):
            parts = [parts[k // 2 * 2] for k in range(len(parts))]
        if isinstance(found, tuple):
            return getattr(cast(Any, found), "_make", tuple)(parts)
        return deliver(f"gw.{name}()", numpy_result(parts[0]), out) if results.stop else found

    return cast(FunctionT, call)


def _common(call: str, dates: Mapping[str, np.ndarray], options: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the dtype to which numpy promotes dates.

    Raises
    ------
    DatatypeError
        If arguments of these names are others, or without a common unit; or if any lies on the GPU, where no dates are.
    """
    first = next(iter(dates))
    if any(isinstance(each, (Items, *EXPRESSIONS)) for each in options.values()):
        argument_datatype(call, first, dates[first], dates[first].dtype, STORAGE_DATATYPES)  # raises
    found = {each: argument_array(call, each, options[each]).dtype for each in names if options.get(each) is not None}
    try:
        if len({each.kind for each in found.values()}) == 1:
            return np.result_type(*found.values()).newbyteorder("=")
    except TypeError:  # months have no seconds
        pass
    other, own = next(each for each in found if each != first), found[first]
    raise DatatypeError(
        f"{call}: {first} is of {own}, but {other} of {found[other]}; give np.asarray({other}, dtype={own.str!r})"
    )
