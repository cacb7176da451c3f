"""Sends SIGINTs by C: in the middle of the C code that maps a buffer, and at random times; counts what comes of them.

What an interrupt may break is the process itself: hence a script, run by test_interrupts.py. Where nothing goes on for
a minute, it ends with the stacks of its threads.

    PYTHONPATH=tests python -m helpers.random_interrupts COUNT [SEED]

Prints how many of so many random interrupts, and of those at each step of a mapping, were raised and lost, and what
else came, as JSON.
"""

from __future__ import annotations

import ctypes
import faulthandler
import itertools
import json
import operator
import os
import random
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import gridwise_py as gw
from gridwise_py.backend.mapped_memory import Mapping

HANG_S = 60.0
LOST_S = 2.0  # after the signal, of work all the time
MOST_S = 0.004  # after the beginning of the work
X = np.random.default_rng(0).integers(0, 1 << 32, 5000, dtype=np.uint32)
LARGE = np.arange(1 << 18, dtype=np.uint32)  # copied by a thread


def check_equal(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(found, wanted)


class Jobs:
    """What is interrupted, on a device of its own.

    Parameters
    ----------
    maps : {"0", "1"}
        Whether arrays are mapped where CPU and GPU share memory; without it, transfers take staging buffers.
    """

    def __init__(self, maps: str):
        os.environ["GRIDWISE_MAP_ARRAYS"] = maps
        self.device = device = gw.request_device()
        self.x, self.large = gw.asarray(X, device), gw.asarray(LARGE, device)
        self.up, self.down = (gw.pinned_empty(X.size, "u32", way, device) for way in ("up", "down"))
        self.reduce, self.scan = gw.Reduce(device), gw.Scan(device)
        self.all = (self.download, self.upload, self.pinned, self.compute)

    def download(self) -> None:
        check_equal(self.x.to_numpy(), X)
        check_equal(self.large.to_numpy(), LARGE)

    def upload(self) -> None:
        check_equal(gw.asarray(LARGE[::-1], self.device).to_numpy(), LARGE[::-1])
        self.x.copy_from(X)

    def pinned(self) -> None:
        with self.up.mapped() as items:
            items[:] = X
        with gw.asarray(self.up).to_numpy(out=self.down).mapped() as items:
            check_equal(items, X)

    def compute(self) -> None:
        run = self.scan.execute(input=self.x, enable_cpu_timing=True)
        check_equal(run.output.to_numpy(), np.cumsum(X, dtype=np.uint32))
        assert self.reduce.execute(input=self.x).output.item() == X.sum(dtype=np.uint32)


class Sender(threading.Thread):
    """Sends a signal when it is told to."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.sent_s: list[float] = []  # when, if it was
        self._wait_s = 0.0
        self._is_wanted = threading.Event()
        self.start()

    def send_after(self, wait_s: float) -> None:
        self.sent_s, self._wait_s = [], wait_s
        self._is_wanted.set()

    def run(self) -> None:
        while True:
            self._is_wanted.wait()
            self._is_wanted.clear()
            time.sleep(self._wait_s)
            self.sent_s.append(time.monotonic())
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


class Outcome:
    """What came of the interrupts."""

    def __init__(self) -> None:
        self.sent = self.raised = self.lost = 0
        self.others: list[str] = []

    def of(self, jobs: Jobs, job: Callable[[], None], when: str, patience_s: float, sent: Sequence[float]) -> None:
        """Do a job until an interrupt is raised, or for so long after it was sent; everything works afterwards."""
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        try:
            while True:
                try:
                    job()
                except Exception as error:
                    self.others.append(f"{job.__name__}, {when}: {type(error).__name__}: {error}")
                if not (patience_s and not sent) and time.monotonic() >= sum(sent) + patience_s:
                    self.lost += len(sent)
                    break
        except KeyboardInterrupt:
            self.raised += 1
        self.sent += len(sent)
        for each in jobs.all:
            try:
                each()
            except Exception as error:
                self.others.append(f"{each.__name__} after {job.__name__}, {when}: {type(error).__name__}: {error}")


def calls(*functions: Callable[[], object]) -> Callable[[], object]:
    """Return a function in C that calls others, once."""
    return partial(deque, map(operator.call, functions), 0)


def send_instead_of_a_poll(mapping: Any, send: Callable[[], object]) -> None:
    mapping._poll = partial(next, map(operator.call, itertools.chain((send,), itertools.repeat(mapping._poll))))


#: What has a mapping call a function at a step; not all are steps of staging buffers.
STEPS: dict[str, Callable[[Any, Callable[[], object]], object]] = {
    "before it is asked for": lambda one, send: setattr(one, "_begin", calls(send, one._begin)),
    "after it was asked for": lambda one, send: setattr(one, "_begin", calls(one._begin, send)),
    "instead of a poll": send_instead_of_a_poll,
    "before unmapping": lambda one, send: setattr(one, "_end", calls(send, one._end)),
    "after unmapping": lambda one, send: setattr(one, "_end", calls(one._end, send)),
}


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    every, at_random, at_steps = (Jobs("1"), Jobs("0")), Outcome(), Outcome()
    real, sent = Mapping.__init__, list[float]()
    send = partial(sent.append, 0.0), partial(ctypes.CDLL(None)["raise"], signal.SIGINT)
    for jobs, step in itertools.product(every, STEPS):

        def places_one(self: Mapping, *arguments: Any, step: str = step) -> None:
            real(self, *arguments)
            Mapping.__init__ = real
            STEPS[step](self, calls(*send))

        sent.clear()
        Mapping.__init__ = places_one
        at_steps.of(jobs, jobs.x.to_numpy, step, 0.0, sent)
        Mapping.__init__ = real
    rng, sender = random.Random(seed), Sender()
    for number in range(count):
        jobs = every[number % 2]
        sender.send_after(rng.random() * MOST_S)
        at_random.of(
            jobs,
            jobs.all[number // 2 % len(jobs.all)],
            "at random",
            LOST_S,
            sender.sent_s,
        )
    print(json.dumps({"at random": vars(at_random), "at steps": vars(at_steps)}))


if __name__ == "__main__":
    main()
