"""When a worker uploaded, computed, downloaded, sent and mapped: what tasks note of themselves, for benchmarks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Generator
from typing import NamedTuple

#: A sort of 64 chunks notes some 500.
_MOST = 1 << 14


class Noted(NamedTuple):
    """A stage of a task.

    Attributes
    ----------
    stage : str
    thread : int
    begin_s, end_s : float
        By the host's clock, which all its processes share.
    moved_bytes : int
    """

    stage: str
    thread: int
    begin_s: float
    end_s: float
    moved_bytes: int


_noted: deque[Noted] = deque(maxlen=_MOST)


@contextlib.contextmanager
def stage(name: str, moved_bytes: int = 0) -> Generator[None]:
    """Note when a stage began and ended."""
    begin_s = time.time()
    try:
        yield
    finally:
        _noted.append(Noted(name, threading.get_ident(), begin_s, time.time(), moved_bytes))


def noted() -> list[Noted]:
    """Return what was noted in this process since the last call."""
    found: list[Noted] = []
    with contextlib.suppress(IndexError):
        while True:
            found.append(_noted.popleft())
    return found
