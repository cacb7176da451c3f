"""What is done with large numpy arrays on the host, before uploads and after downloads: by several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .transfers import usable_cpus

__all__ = ["cast_items", "extremes"]

#: A block is read from memory once, for both ends, and stays in a core's cache.
_BLOCK_BYTES = 1 << 18
#: Fewer are done sooner than a thread starts.
_LEAST_BYTES = 8 << 20
#: More threads find host memory busy.
_THREADS = 8


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
    """Return ``items.astype(dtype)``: of many items by several threads, which also find the pages of fresh memory."""
    if items.nbytes < _LEAST_BYTES or not items.flags.c_contiguous or items.dtype == dtype:
        return items.astype(dtype)
    found, block = np.empty(items.shape, dtype), _BLOCK_BYTES // items.itemsize
    source, target = items.ravel(), found.reshape(-1)

    def convert(place: int) -> None:
        here = slice(place * block, (place + 1) * block)
        np.copyto(target[here], source[here], casting="unsafe")

    _for_each(-(-source.size // block), convert)
    return found


def _for_each(count: int, do: Callable[[int], None]) -> None:
    """Call a function with each number below `count`."""
    step = min(usable_cpus(), _THREADS)

    def some(first: int) -> None:
        for number in range(first, count, step):
            do(number)

    threads = [threading.Thread(target=some, args=(first,)) for first in range(1, step)]
    for thread in threads:
        thread.start()
    some(0)
    for thread in threads:
        thread.join()
