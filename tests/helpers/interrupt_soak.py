"""Sends real SIGINTs at random times to transfers, maps and submissions, and counts those that raise nothing.

What an interrupt may break is the process itself: hence a script, run by test_interrupts.py.

    PYTHONPATH=tests python -m helpers.interrupt_soak COUNT [SEED]

Prints how many interrupts were lost, which other exceptions came in their place, and what was wrong afterwards, as
JSON. Where nothing goes on for a minute, the process ends with the stacks of its threads.
"""

from __future__ import annotations

import faulthandler
import json
import random
import signal
import sys
import threading
import time

import numpy as np

import gridwise_py as gw

HANG_S = 60.0
LOST_S = 1.0  # after the signal, of work all the time
MOST_S = 0.004  # after the beginning of the work
X = np.random.default_rng(0).integers(0, 1 << 32, 5000, dtype=np.uint32)
LARGE = np.arange(1 << 18, dtype=np.uint32)  # taken by a thread

device = gw.request_device()
x, large = gw.asarray(X, device), gw.asarray(LARGE, device)
up, down = gw.pinned_empty(X.size, "u32", "up", device), gw.pinned_empty(X.size, "u32", "down", device)
reduce, scan = gw.Reduce(device), gw.Scan(device)


def check_equal(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(found, wanted)


def download() -> None:
    check_equal(x.to_numpy(), X)
    check_equal(large.to_numpy(), LARGE)


def upload() -> None:
    check_equal(gw.asarray(X[::-1], device).to_numpy(), X[::-1])
    large.copy_from(LARGE)


def pinned() -> None:
    with up.mapped() as items:
        items[:] = X
    with gw.asarray(up).to_numpy(out=down).mapped() as items:
        check_equal(items, X)


def compute() -> None:
    run = scan.execute(input=x, enable_cpu_timing=True)
    check_equal(run.output.to_numpy(), np.cumsum(X, dtype=np.uint32))
    assert reduce.execute(input=x).output.item() == X.sum(dtype=np.uint32)


JOBS = (download, upload, pinned, compute)


class Sender(threading.Thread):
    """Sends one signal, when it is told to."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.sent_s: float | None = None
        self._wait_s = 0.0
        self._is_wanted = threading.Event()
        self.start()

    def send_after(self, wait_s: float) -> None:
        self.sent_s, self._wait_s = None, wait_s
        self._is_wanted.set()

    def run(self) -> None:
        while True:
            self._is_wanted.wait()
            self._is_wanted.clear()
            time.sleep(self._wait_s)
            self.sent_s = time.monotonic()
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    rng, sender, found = random.Random(seed), Sender(), {"raised": 0, "lost": 0}
    others: list[str] = []
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in range(count):
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        job = JOBS[number % len(JOBS)]
        try:
            sender.send_after(rng.random() * MOST_S)
            while True:
                try:
                    job()
                except Exception as error:
                    others.append(f"{job.__name__}: {type(error).__name__}: {error}")
                if sender.sent_s is not None and time.monotonic() - sender.sent_s > LOST_S:
                    found["lost"] += 1
                    break
        except KeyboardInterrupt:
            found["raised"] += 1
        for each in JOBS:
            try:
                each()
            except Exception as error:
                others.append(f"afterwards, {each.__name__}: {type(error).__name__}: {error}")
    print(json.dumps({**found, "others": others}))


if __name__ == "__main__":
    main()
