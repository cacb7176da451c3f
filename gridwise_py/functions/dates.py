"""Dates and durations on the host: functions that order or move items take them as int64, and give dates back.

NaT is the least int64, but comes behind all dates. So keys are the bits of a date less 1, which wraps: NaT becomes the
greatest. Where NaT must be the least, they are the bits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ..errors import DatatypeError
from ..primitives.fusion import EXPRESSIONS
from ..runtime.chunked_array import Items
from .arguments import argument_array, deliver, numpy_result

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class _Rule(NamedTuple):
    """How a function takes dates: which arguments may be some, which results are, and where NaT comes."""

    arguments: str
    results: slice = slice(1)
    #: Whether NaT is the least key; or the argument that says so, and its default.
    nat_is_least: bool | tuple[str, Any] = False


_NONE = slice(0)
_RULES = {
    "sort": _Rule("x", nat_is_least=("descending", False)),
    "argsort": _Rule("x", _NONE, ("descending", False)),
    "top_k": _Rule("x", nat_is_least=("mode", "largest")),
    **dict.fromkeys(("partition", "nth_element"), _Rule("x")),
    **dict.fromkeys(("unique", "unique_values", "unique_counts", "unique_inverse", "unique_all"), _Rule("x")),
    "argpartition": _Rule("x", _NONE),
    "searchsorted": _Rule("x1 x2", _NONE),
    "digitize": _Rule("x bins", _NONE),
    **dict.fromkeys(("min", "nanmax"), _Rule("x initial", nat_is_least=True)),
    **dict.fromkeys(("max", "nanmin"), _Rule("x initial")),
    "argmin": _Rule("x", _NONE, True),
    "argmax": _Rule("x", _NONE),
    "minmax": _Rule("x", slice(2), True),
    "argminmax": _Rule("x", slice(2, 4), True),
    "diff": _Rule("x prepend append", nat_is_least=True),
    **dict.fromkeys(("take", "compress", "repeat", "roll", "flip"), _Rule("x", nat_is_least=True)),
}


def dates_of(value: Any) -> np.ndarray | None:
    """Return dates or durations as numpy makes them; None of all else."""
    given: Any = next(iter(cast(Any, value)), None) if isinstance(value, (list, tuple)) else value
    kind = getattr(getattr(given, "dtype", None), "kind", "M")  # polars and pyarrow say no kind
    if kind not in "mM" or not hasattr(given, "__array__") or isinstance(given, (Items, *EXPRESSIONS)):
        return None
    items = argument_array("gw.asarray()", "x", value)
    return items.astype(items.dtype.newbyteorder("="), copy=False) if items.dtype.kind in "mM" else None


def takes_dates(function: FunctionT) -> FunctionT:
    """Let a function that has a rule take dates."""
    rule = _RULES.get(function.__name__)
    if rule is None:
        return function
    signature = inspect.signature(function)
    name, least = function.__name__, rule.nat_is_least

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if all(dates_of(each) is None for each in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        bound = signature.bind_partial(*args, **kwargs)
        options = bound.arguments
        dates = _take(f"gw.{name}()", rule.arguments.split(), options)
        step = np.int64(not (options.get(*least) in (True, "largest") if isinstance(least, tuple) else least))
        out = options.pop("out", None) if rule.results.stop and dates else None
        with np.errstate(over="ignore"):
            keys = {each: items.view(np.int64) for each, items in dates.items()}
            options.update({each: items - step if step else items for each, items in keys.items()})
            found: Any = function(*bound.args, **bound.kwargs)
            if not dates or not rule.results.stop:  # another argument is dates, or no result is
                return found
            parts: list[Any] = list(cast(Any, found)) if isinstance(found, tuple) else [found]
            kind = next(iter(dates.values())).dtype
            for k in range(len(parts))[rule.results]:
                items = np.asarray(parts[k])
                parts[k] = (np.add(items, step, out=items) if step else items).view(kind)
        if name in _LAST_STEPS:
            parts = _LAST_STEPS[name](parts, dates, options)
        if isinstance(found, tuple):
            return getattr(cast(Any, found), "_make", tuple)(parts)
        return deliver(f"gw.{name}()", numpy_result(parts[0]), out)

    return cast(FunctionT, call)


def _take(call: str, names: list[str], options: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arguments that are dates, in the unit to which numpy promotes them.

    Raises
    ------
    DatatypeError
        If beside them are numbers, or dates without a common unit, or what lies on the GPU.
    """
    found = {each: items for each in names if (items := dates_of(options.get(each))) is not None}
    if not found:
        return found
    first, own = next((each, items.dtype) for each, items in found.items())
    for each, value in options.items():
        if isinstance(value, (Items, *EXPRESSIONS)):
            raise DatatypeError(
                f"{call}: {first} is of {own}, but {each} on the GPU, where no dates are; give {first}.astype(np.int64)"
            )
        if each in names and value is not None and each != first:
            other = found[each].dtype if each in found else argument_array(call, each, value).dtype
            try:
                dtype = np.result_type(own, other) if other.kind == own.kind else None
            except TypeError:  # months have no seconds
                dtype = None
            if dtype is None:
                raise DatatypeError(
                    f"{call}: {first} is of {own}, but {each} of {other}; give np.asarray({each}, dtype={own.str!r})"
                )
    dtype = np.result_type(*(items.dtype for items in found.values()))
    return {each: items.astype(dtype, copy=False) for each, items in found.items()}


def _finish_differences(parts: list[Any], dates: dict[str, np.ndarray], options: dict[str, Any]) -> list[Any]:
    """Return durations, NaT beside NaT."""
    if options.get("n", 1) == 0:
        return parts
    durations = parts[0].view((parts[0][:0] - parts[0][:0]).dtype)
    missing = {each: np.isnat(items) for each, items in dates.items()}
    if any(each.any() for each in missing.values()):
        floats: dict[str, Any] = {each: np.where(items, np.nan, 0.0) for each, items in missing.items()}
        given = {each: options[each] for each in ("n", "axis") if each in options}
        durations[np.isnan(np.diff(floats.pop("x"), **floats, **given))] = "NaT"
    return [durations]


def _finish_ends(parts: list[Any], *_: Any) -> list[Any]:
    """Return both ends; those of items with NaT are NaT, and where the first one is."""
    return [parts[k // 2 * 2] for k in range(len(parts))] if np.isnat(parts[-2]) else parts


def _finish_unique(
    parts: list[Any], dates: dict[str, np.ndarray], options: dict[str, Any], names: str = ""
) -> list[Any]:
    """Return results with these names; every NaT is an item of its own where NaN is."""
    if not names and options.get("equal_nan", True):
        return parts
    places = np.flatnonzero(np.isnat(dates["x"]))
    if places.size < 2:
        return parts
    flags = {"values": True} | {each: options.get(f"return_{each}", False) for each in ("index", "inverse", "counts")}
    for k, name in enumerate(names.split() or [each for each, flag in flags.items() if flag]):
        if name == "inverse":
            parts[k] = parts[k].copy()
            parts[k].reshape(-1)[places] += np.arange(places.size)
        else:
            last = {"values": parts[k][-1], "index": places, "counts": 1}[name]
            parts[k] = np.append(parts[k][:-1], np.broadcast_to(last, places.shape))
    return parts


_LAST_STEPS: dict[str, Callable[..., list[Any]]] = {
    "diff": _finish_differences,
    **dict.fromkeys(("minmax", "argminmax"), _finish_ends),
    "unique": _finish_unique,
    **{
        f"unique_{of}": partial(_finish_unique, names=names)
        for of, names in (
            ("values", "values"), ("counts", "values counts"), ("inverse", "values inverse"),
            ("all", "values index inverse counts"),
        )
    },
}  # fmt: skip
