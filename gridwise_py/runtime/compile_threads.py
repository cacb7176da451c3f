"""Threads that compile: what a call needs side by side, and behind that what later calls may need.

wgpu and drivers compile in the thread that asks, and release the GIL meanwhile. Python threads are therefore enough to
use several CPUs. wgpu-py captures errors per thread, so an error of a text comes to the thread that compiles it, and
from there only to the callers that need this text.
"""

from __future__ import annotations

import atexit
import contextlib
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from ..backend.fork_guard import inherited
from .transfers import usable_cpus

Made = TypeVar("Made")

_THREADS = 8  # more pipelines than one call needs
# Work ahead begins when nothing was needed for so long: it does not disturb the calls that follow a first one, and a
# process that ends after a few calls does not wait for pipelines that it never uses.
_QUIET_S = 0.25
_LOOK_AGAIN_S = 0.01


class Task(Generic[Made]):
    """Something to be made once, in whichever thread comes first; any number of threads may wait for it.

    Attributes
    ----------
    done : bool
        Whether it was made, or failed.
    """

    __slots__ = ("__weakref__", "_claim", "_error", "_latch", "_made", "_make", "done")

    def __init__(self, make: Callable[[], Made]):
        self._make: Callable[[], Made] | None = make
        self._made: Made | None = None
        self._error: BaseException | None = None
        self._claim = threading.Lock()
        self._latch = threading.Lock()
        self._latch.acquire()
        self.done: bool = False

    def run(self) -> None:
        """Make it, unless another thread does or did. In threads that no interrupt reaches, if there are any."""
        if not self._claim.acquire(blocking=False):
            return
        try:
            assert self._make is not None, "only the thread with the claim makes it"
            self._made = self._make()
        except BaseException as error:
            self._error = _without_frames(error)
        finally:
            self._make = None
            self.done = True
            self._latch.release()

    def wait(self) -> None:
        """Return when it was made, or failed."""
        if not self.done:
            with self._latch:
                pass

    def result(self) -> Made:
        """Wait, and return what was made; raise what its making raised."""
        self.wait()
        try:
            if self._error is not None:
                raise self._error
            assert self._made is not None, "what is done without an error was made"
            return self._made
        finally:
            del self  # the traceback of an error would keep the task, and the task keeps the error


def _without_frames(error: BaseException) -> BaseException:
    """Drop the tracebacks of an error and its causes: their frames would keep the device alive."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


class CompileThreads:
    """Threads for the whole process, started when there is work for them.

    Like the threads that copy (`transfers`), they take their work from queues that are written in C, because an
    interrupt may tear the locks of a ThreadPoolExecutor.
    """

    def __init__(self, cpus: int):
        self._most = max(1, min(_THREADS, cpus))
        self._most_ahead = max(1, self._most // 2)
        self._needed: queue.SimpleQueue[Task[Any] | None] = queue.SimpleQueue()
        self._ahead: queue.SimpleQueue[weakref.ref[Task[Any]] | None] = queue.SimpleQueue()
        self._tasks_ahead: set[weakref.ref[Task[Any]]] = set()  # not done yet
        self._working: set[Task[Any]] = set()  # on what is needed
        self._last_needed_s = 0.0
        self._lock = threading.RLock()  # a finalizer in the middle may need the threads, too
        self._threads: list[threading.Thread] = []
        self._threads_ahead: list[threading.Thread] = []
        # As the threads themselves say: an interrupt may come between the start of one and its place in a list.
        self._alive: set[threading.Thread] = set()
        self._ending = False

    def need(self, tasks: Iterable[Task[Any]]) -> None:
        """Have tasks made side by side, before everything ahead; those that are made ahead already go on."""
        for task in tasks:
            if task.done:
                continue
            self._last_needed_s = time.monotonic()
            busy = len(self._working) + self._needed.qsize()
            if self._can_start(self._threads, min(self._most, busy + 1), self._work):
                self._needed.put(task)
            else:
                task.run()

    def make_ahead(self, tasks: Iterable[Task[Any]]) -> None:
        """Have tasks made when nothing is needed; a task that nobody keeps meanwhile is not made."""
        for task in tasks:
            reference = weakref.ref(task, self._tasks_ahead.discard)
            self._tasks_ahead.add(reference)
            if self._can_start(self._threads_ahead, min(self._most_ahead, len(self._tasks_ahead)), self._work_ahead):
                self._ahead.put(reference)

    def finish(self) -> None:
        """Have everything made that is to be made ahead, and wait for it. Errors are for those who need the result."""
        tasks = [task for reference in tuple(self._tasks_ahead) if (task := reference()) is not None]
        self.need(tasks)
        for task in tasks:
            task.wait()

    def _can_start(self, threads: list[threading.Thread], most: int, work: Callable[[], None]) -> bool:
        """Start threads up to that number; return whether there are any, and will be."""
        if len(threads) < most and not self._ending:
            # RuntimeError: the system has no thread left, or the process ends.
            with self._lock, contextlib.suppress(RuntimeError):
                if not self._threads and not self._threads_ahead:
                    atexit.register(self._end)
                while len(threads) < most:
                    thread = threading.Thread(target=work, name="gridwise compile", daemon=True)
                    thread.start()
                    threads.append(thread)
        return bool(threads) and not self._ending and not sys.is_finalizing()

    def _work(self) -> None:
        self._alive.add(threading.current_thread())
        while (task := self._needed.get()) is not None:
            if self._ending:
                continue
            self._working.add(task)
            task.run()
            self._last_needed_s = time.monotonic()
            self._working.discard(task)
            del task  # a thread that waits for work must not keep what it has made
        self._needed.put(None)  # for the next thread

    def _work_ahead(self) -> None:
        self._alive.add(threading.current_thread())
        while (reference := self._ahead.get()) is not None:
            while not self._ending and not self._is_quiet():
                time.sleep(_LOOK_AGAIN_S)
            task = reference()
            if task is not None and not self._ending:
                task.run()
                self._tasks_ahead.discard(reference)
            del task
        self._ahead.put(None)

    def _is_quiet(self) -> bool:
        waiting = self._working or self._needed.qsize()
        return not waiting and time.monotonic() - self._last_needed_s >= _QUIET_S

    def _end(self) -> None:
        """Let no thread be inside the driver while the process unloads it; what was not begun is not made."""
        if inherited():  # the threads are those of the parent
            return
        self._ending = True
        self._needed.put(None)
        self._ahead.put(None)
        for thread in tuple(self._alive):
            thread.join()


_of_process: dict[str, CompileThreads] = {}


def compile_threads() -> CompileThreads:
    """Return the threads of the process."""
    threads = _of_process.get("all")
    # Not an lru_cache, which calls twice if two threads ask first: a timing would not wait for what the other ones do.
    return threads if threads is not None else _of_process.setdefault("all", CompileThreads(usable_cpus()))
