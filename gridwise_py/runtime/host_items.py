"""What is done with large numpy arrays on the host, before uploads and after downloads: by several threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .compile_threads import Task
from .transfers import copy_workers, copying_threads

#: A block is read from memory once, for both ends, and stays in a core's cache.
_BLOCK_BYTES = 1 << 18
#: Fewer are done sooner than by threads.
_LEAST_BYTES = 8 << 20


def extremes(items: np.ndarray) -> tuple[Any, Any]:
    """Return the smallest and the largest item as numpy's scalars: of many items by several threads.

    Parameters
    ----------
    items
        Of any shape, and not empty. Of floats with NaN, both ends are NaN, as for numpy.
    """
    if items.nbytes < _LEAST_BYTES or not items.flags.c_contiguous:
        return items.min(), items.max()
    flat, block = items.ravel(), _BLOCK_BYTES // items.itemsize
    ends = np.empty((2, -(-flat.size // block)), items.dtype)

    def look(place: int) -> None:
        here = flat[place * block : (place + 1) * block]
        ends[:, place] = here.min(), here.max()

    _for_each(ends.shape[1], look)
    return ends[0].min(), ends[1].max()


def integers_and_nulls(data: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the integers of a column of pandas, polars or pyarrow, and which are missing; None for other data.

    numpy makes float64 of them where one is missing, which rounds integers beyond 2**53. Nothing is imported.
    """
    dtype: Any = getattr(data, "dtype", None)
    if isinstance(dtype, np.dtype) or not str(getattr(data, "type", dtype)).lower().startswith(("int", "uint")):
        return None
    if hasattr(data, "isna"):
        missing, items = np.asarray(data.isna()), None
        if missing.any():
            items = data.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
    elif hasattr(data, "is_null") and hasattr(data, "fill_null"):
        missing = np.asarray(data.is_null())
        items = np.asarray(data.fill_null(0)) if missing.any() else None
    else:
        return None
    if items is None or items.dtype.kind not in "iu":
        return None
    return filled(items, missing), missing


def filled(items: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return items of which one of the others, so that it is no new end, stands for each that is missing."""
    return items if missing.all() or not missing.any() else np.where(missing, items[np.argmin(missing)], items)


def float64_holds(items: np.ndarray) -> bool:
    """Whether float64 holds integers, and those between them."""
    return not items.size or (items.min() >= -(2**53) and items.max() <= 2**53)


def with_missing(items: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return items without some, which are NaN, NaT or None; integers become floats only where these hold them."""
    if not missing.any():
        return items
    kind = items.dtype.kind
    if kind in "iu" and float64_holds(items[~missing]):
        kind, items = "f", items.astype(np.float64)
    found = items.copy() if kind in "fMm" else items.astype(object)
    found[missing] = np.nan if kind == "f" else "NaT" if kind in "Mm" else None
    return found


def cast_items(items: np.ndarray, dtype: Any) -> np.ndarray:
    """Return items in a dtype, the same array if they have it: many by several threads, which also find fresh pages."""
    if items.nbytes < _LEAST_BYTES or not items.flags.c_contiguous or items.dtype == dtype:
        return items.astype(dtype, copy=False)
    found, block = np.empty(items.shape, dtype), _BLOCK_BYTES // items.itemsize
    source, target = items.ravel(), found.reshape(-1)

    def convert(place: int) -> None:
        here = slice(place * block, (place + 1) * block)
        np.copyto(target[here], source[here], casting="unsafe")

    _for_each(-(-source.size // block), convert)
    return found


def _for_each(count: int, do: Callable[[int], None]) -> None:
    """Call a function with each number below `count`, by the threads that copy and this one."""
    step = copying_threads()

    def some(first: int) -> int:
        for number in range(first, count, step):
            do(number)
        return first

    tasks = [Task(partial(some, first)) for first in range(step)]
    for task in tasks[1:]:
        copy_workers(step).put(task)
    for task in tasks:  # what no thread has begun
        task.run()
    for task in tasks:
        task.result()
