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
