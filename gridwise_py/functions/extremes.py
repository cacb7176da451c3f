"""The smallest and the largest item of a numpy array, which functions look at before they upload it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..runtime.transfers import usable_cpus

__all__ = ["extremes"]

#: A block is read from memory once, for both ends, and stays in a core's cache.
_BLOCK_BYTES = 1 << 18
#: Fewer are looked at sooner than a thread starts.
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
    starts = range(0, flat.size, block)
    ends = np.empty((2, len(starts)), items.dtype)

    def look(first: int, step: int) -> None:
        for place in range(first, len(starts), step):
            here = flat[starts[place] : starts[place] + block]
            ends[:, place] = here.min(), here.max()

    count = min(usable_cpus(), _THREADS)
    threads = [threading.Thread(target=look, args=(first, count)) for first in range(1, count)]
    for thread in threads:
        thread.start()
    look(0, count)
    for thread in threads:
        thread.join()
    return ends[0].min(), ends[1].max()
