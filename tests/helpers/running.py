"""Work in several threads at once, and in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

#: No step of a test takes so long, however busy the machine is.
LONG_S = 60.0


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < end, "it never comes true"
        time.sleep(0.002)


def in_threads(work: Callable[[int], object], count: int = 4, timeout_s: float = 120.0) -> None:
    """Call work(0), work(1), … at once; raise the first exception of any, and fail where one does not end."""
    barrier, errors = threading.Barrier(count), []

    def begin(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:  # raised below
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout_s)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"


#: A busy machine takes seconds for a first call, and the library says so.
QUIET = {"PYTHONWARNINGS": "ignore:this first call takes seconds"}


def python(code: str, *, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, which must end with this status."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=1200, check=False, env={**os.environ, **QUIET, **environment},
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr[-3000:]
    return done
