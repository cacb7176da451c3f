"""Waits that Ctrl-C and timeouts end: what blocks in the driver does so in a thread that no interrupt reaches.

Python raises a KeyboardInterrupt in the main thread, between two of its own instructions. A call of wgpu that waits for
the GPU has none for as long as the GPU works. So a helper makes that call, and the thread that waits holds on to a
lock, which an interrupt ends. The helper then stays in the driver until the GPU is done.

An interrupt that comes in a callback of C is not raised, and what the callback was to do is not done. So callbacks that
a wait relies on only store, by functions in C that do not look for signals: those that turn an int into text do.
"""

from __future__ import annotations

import functools
import operator
import queue
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

R = TypeVar("R")

#: How often a thread that waits looks around: for signals, where the system does not wake it (Windows), for a device
#: that was destroyed meanwhile, and for a latch that an interrupt in another thread has left locked.
LOOK_AGAIN_S = 0.03

# A status, and a text and two pointers that are looked at for truth only.
_ARGUMENTS = struct.Struct("=I???")


def storing(note: bytearray) -> Callable[..., object]:
    """Return a function, in C, that stores the status of webgpu.h's callbacks in memory, its lowest byte first."""
    return functools.partial(_ARGUMENTS.pack_into, note, 0)


def new_note() -> bytearray:
    """Return memory for `storing`, with the status 0, which none of webgpu.h's has."""
    return bytearray(_ARGUMENTS.size)


class Wait:
    """A call that blocks until the GPU is done, made by a helper; any number of threads may wait for its end.

    Parameters
    ----------
    block : callable
        Without arguments. A function in C, so that the time of its end is taken without a Python instruction between.
    """

    __slots__ = ("_calls", "_found", "_latch", "error")

    def __init__(self, block: Callable[[], object]):
        self._latch = threading.Lock()
        self._latch.acquire()
        self._found: deque[Any] = deque()  # what the calls returned so far
        self._calls = (block, time.perf_counter_ns, self._latch.release)
        self.error: BaseException | None = None

    @property
    def end_ns(self) -> int | None:
        """When the call returned, by `time.perf_counter_ns`; None before."""
        return self._found[1] if len(self._found) > 1 else None

    @property
    def done(self) -> bool:
        """Whether the call returned, or failed."""
        return len(self._found) > 1 or self.error is not None

    def run(self, under_way: list[Wait]) -> None:
        """Make the call; it is in the list meanwhile."""
        under_way.append(self)
        try:
            # All calls are made by C code: nothing comes between the end of the first and its time.
            self._found.extend(map(operator.call, self._calls))
        except BaseException as error:
            self.error = error
            self._latch.release()
        finally:
            under_way.remove(self)

    def looks(self, limit_s: float | None) -> Iterator[None]:
        """Wait for the end; yield every `LOOK_AGAIN_S`, and return when it is over, or the limit has passed."""
        begin = time.monotonic()
        while not self.done:
            step_s = LOOK_AGAIN_S if limit_s is None else min(LOOK_AGAIN_S, begin + limit_s - time.monotonic())
            if step_s <= 0:
                return
            if self._latch.acquire(timeout=step_s):
                self._latch.release()
                return
            yield


class _Helpers:
    """Threads for the whole process: each makes one call at a time, and is kept for the next one.

    As many as there are calls at once, because one that blocks must not hold up those of other devices. Their queues
    are written in C: an interrupt may tear the locks of a ThreadPoolExecutor.
    """

    def __init__(self) -> None:
        self._free: deque[queue.SimpleQueue[Callable[[], object]]] = deque()

    def call(self, function: Callable[[], object]) -> bool:
        """Have a thread call a function, which raises nothing; return False where there can be none."""
        if sys.is_finalizing():  # threads that exist have ended
            return False
        inbox: queue.SimpleQueue[Callable[[], object]]
        try:
            inbox = self._free.pop()
        except IndexError:
            inbox = queue.SimpleQueue()
            thread = threading.Thread(target=self._work, args=(inbox,), name="gridwise wait", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no thread left, or the process ends
                return False
        inbox.put(function)
        return True

    def _work(self, inbox: queue.SimpleQueue[Callable[[], object]]) -> None:
        while True:
            function = inbox.get()
            function()
            del function  # a thread that waits for work keeps no device
            self._free.append(inbox)


_helpers = _Helpers()


def begin_in_thread(function: Callable[[], object]) -> None:
    """Call a function, which raises nothing, in a thread; in this one where there can be no other."""
    if not _helpers.call(function):
        function()


_MOST_AT_ONCE = 32  # as asyncio's own threads


class _InTurn:
    """Calls of coroutines: some of them at once, the others after them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], object]] = deque()
        self._running = 0

    def begin(self, function: Callable[[], object]) -> None:
        """Call a function, which raises nothing, in a thread, in its turn."""
        with self._lock:
            self._waiting.append(function)
            if self._running >= _MOST_AT_ONCE:
                return
            self._running += 1
        begin_in_thread(self._work)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                function = self._waiting.popleft()
            function()
            del function


_in_turn = _InTurn()


async def in_thread(function: Callable[[], R]) -> R:
    """Call a function in a thread and return its result, without blocking the event loop.

    Not by `asyncio.to_thread`: after Ctrl-C, ``asyncio.run`` waits for its threads, and so does the end of a process.
    """
    import asyncio  # late, since few need them
    import contextvars

    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    context = contextvars.copy_context()

    def settle(set_it: Callable[[Any], None], value: Any) -> None:
        if not future.done():  # cancelled meanwhile
            set_it(value)

    def call() -> None:
        try:
            outcome = future.set_result, context.run(function)
        except BaseException as error:
            outcome = future.set_exception, error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, *outcome)

    _in_turn.begin(call)
    return await future
