"""Advice to the system about pages of memory (Linux)."""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Callable


@functools.lru_cache(maxsize=1)
def _madvise() -> Callable[[int, int, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        madvise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return None
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return madvise


def advise_pages(begin: int, size_bytes: int, advice: int) -> None:
    """Give advice about all pages that lie within a range of addresses; nothing where the system does not know it."""
    madvise = _madvise()
    if madvise is None:
        return
    first, end = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, (begin + size_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if end > first:
        madvise(first, end - first, advice)
