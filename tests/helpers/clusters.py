"""Schedulers and workers as processes of their own, as a shell starts them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

from helpers.paths import ROOT

MEMORY = "1GiB"


def program(*words, **options):
    """Start Python with some words."""
    # Faults of helpers are run on workers.
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.Popen([sys.executable, *words], env=environment, text=True, **options)


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def scheduler(protocol, port, *words):
    """Start a scheduler on the loopback address."""
    return program(
        "-m", "distributed.cli.dask_scheduler", "--host", f"{protocol}://127.0.0.1", "--port", str(port),
        "--no-dashboard", *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def worker(address, *words):
    """Start `gridwise worker` with the first adapter."""
    return program(
        "-m", "gridwise_py", "worker", address, "--adapter", "0", "--threads", "1", "--memory-limit", MEMORY,
        "--death-timeout", "60", *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def end(*programs):
    """End programs in order, or else at once."""
    for one in programs:
        if one.poll() is None:
            one.send_signal(signal.SIGTERM)
    for one in programs:
        try:
            one.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            one.kill()
            one.communicate()


@contextmanager
def by_hand():
    """A scheduler and a function that starts a worker of it; all of them end with the context."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    programs = [scheduler("tcp", port)]

    def start():
        programs.append(worker(address))
        return programs[-1]

    try:
        yield address, programs[0], start
    finally:
        end(*reversed(programs))


def once(function, mark, pid=None):
    """A function that does what another does; its first call makes a file, and kills a process before: `pid`.

    None kills the process of its worker's Nanny, which is the parent. What is killed by its worker ends the worker.
    """

    def killing(*arguments, **options):
        import contextlib
        import time

        with contextlib.suppress(FileExistsError):
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            os.kill(os.getppid() if pid is None else pid, signal.SIGKILL)
            time.sleep(60)  # the end comes before
        return function(*arguments, **options)

    return killing
