"""Ctrl-C at any place of the library: the next calls work, with right results, and nothing is lost."""

import asyncio
import json
import math
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.backend.wgpu_native import queue_is_idle
from helpers.paths import with_helpers

LARGE = np.arange(3 << 20, dtype=np.uint32)


class Interrupted:
    """Has the main thread interrupted soon, and checks that the GPU was still at work then."""

    def __init__(self, device, wait):
        self.device, self.wait = device, wait
        self.timer = threading.Timer(0.1, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])

    def __enter__(self):
        self.timer.start()

    def __exit__(self, kind, *_):
        busy = queue_is_idle(self.device) is False
        self.timer.cancel()
        if kind is None:
            pytest.fail(f"{self.wait} ended by itself")
        assert busy, f"it was the end of the work that ended {self.wait}"
        return kind is KeyboardInterrupt


def _long_work(seconds, device, x, out):
    """Submit work of so many seconds, whatever the GPU; `out` is the double of `x` after it."""
    call = gw.VectorAdd(device).bind(a=x, b=x, output=out)
    call.execute()
    few = call.execute(trials=10, enable_cpu_timing=True).get_timing_result().per_trial
    call.execute(trials=math.ceil(seconds * 1e9 / few.cpu_total_time_ns))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals here")
@pytest.mark.parametrize("maps", ["1", pytest.param("0", marks=pytest.mark.slow)])
def test_every_wait_for_a_long_kernel_ends_at_once(device, monkeypatch, maps):
    """In the middle of one submission, while other threads wait, too; nothing is lost by it."""
    monkeypatch.setenv("GRIDWISE_MAP_ARRAYS", maps)
    made = gw.request_device(device.adapter)
    x, y = gw.asarray(LARGE, made), gw.asarray(LARGE, made)
    out, timed = gw.empty_like(x), "timestamp-query" in made.features
    scan, early, event = gw.Scan(made).bind(input=x, output=y), [], gw.Event(made, enable_timing=timed)
    scan.execute()
    waits = {
        "a wait": lambda: gw.synchronize(made),
        "a download": x.to_numpy,
        "an event": event.synchronize,
        "a timed call": lambda: scan.execute(enable_cpu_timing=True, enable_gpu_timing=timed),
        "a task": lambda: asyncio.run(scan.execute_async()),
        "a stream": lambda: gw.stream(gw.Reduce(made), [LARGE, LARGE]),
        "a function": lambda: gw.sum(LARGE, device=made),
        "a benchmark": lambda: gw.benchmark(scan.execute, device=made),
    }
    event.record()  # a wait for it is one for all that comes behind it
    _long_work(3, made, x, out)
    threads = [threading.Thread(target=lambda: (gw.synchronize(made), early.append(1))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for name, wait in waits.items():
        with Interrupted(made, name):
            wait()
    assert not early
    np.testing.assert_array_equal(out.to_numpy(), 2 * LARGE)
    for thread in threads:
        thread.join()
    scan.execute()
    np.testing.assert_array_equal(y.to_numpy(), np.cumsum(LARGE, dtype=np.uint32))
    assert gw.sum(LARGE, dtype=np.uint32, device=made) == LARGE.sum(dtype=np.uint32)


ENDS = """
import signal, sys, threading
from test_interrupts import LARGE, _long_work, gw
device = gw.request_device()
x = gw.asarray(LARGE, device)
_long_work(200, device, x, gw.empty_like(x))
threading.Timer(0.1, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
gw.synchronize(device)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals here")
def test_a_process_ends_in_the_middle_of_a_long_kernel(device):
    done = subprocess.run(
        [sys.executable, "-c", ENDS],
        env={**with_helpers(), "PYTHONPATH": f"{with_helpers()['PYTHONPATH']}:{__file__.rpartition('/')[0]}"},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode in (130, -signal.SIGINT), done.stderr[-3000:]
    assert "KeyboardInterrupt" in done.stderr


def _found(job, *places, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "helpers.interrupts", job, *map(str, places)],
        env={**with_helpers(), **environment},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr[-3000:]}"
    report = json.loads(done.stdout)
    assert report["places"] > 20, "the script did not see the library's calls"
    return report["found"]


@pytest.mark.slow
@pytest.mark.parametrize("maps", ["0", "1"])
def test_an_interrupt_anywhere_in_a_download(device, maps):
    """Between mapping and unmapping the staging buffer it once ended the process at the next call."""
    assert _found("to_numpy", GRIDWISE_MAP_ARRAYS=maps) == {}


@pytest.mark.slow
@pytest.mark.parametrize("job", ["stream", "sort", "timed", "event", "measure"])
def test_interrupts_at_some_places(device, job):
    assert _found(job, 40) == {}


@pytest.mark.parametrize("maps", ["0", "1"])
@pytest.mark.parametrize("job", ["large_download", "large_upload"])
def test_interrupts_while_threads_copy(device, job, maps):
    """A staging buffer that threads may still touch is neither unmapped nor used again; a mapped Array is unmapped."""
    assert _found(job, 40, GRIDWISE_MAP_ARRAYS=maps) == {}


def test_interrupts_of_a_batch(device):
    """No call that returned is lost, and none is done twice."""
    assert _found("batch", 25) == {}


@pytest.mark.parametrize("job", ["pinned", "windows"])
def test_interrupts_while_memory_is_mapped(device, job):
    """Memory that may be mapped is not used again."""
    assert _found(job, 20) == {}


@pytest.mark.slow
@pytest.mark.parametrize("places", [20, 400])
def test_interrupts_while_threads_compile(device, places):
    """What they compile is there, or is asked for again; nobody waits for what nobody makes."""
    assert _found("first_call", places) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "job",
    [
        "large_download",
        "large_upload",
        "asarray",
        "stream",
        "sort",
        "timed",
        "event",
        "batch",
        "sequence",
        "pinned",
        "windows",
    ],
)
def test_an_interrupt_anywhere(device, job):
    assert _found(job) == {}


@pytest.mark.slow
@pytest.mark.parametrize("job", ["large_download", "large_upload", "asarray"])
def test_an_interrupt_anywhere_with_staging(device, job):
    assert _found(job, GRIDWISE_MAP_ARRAYS="0") == {}


@pytest.mark.slow
def test_interrupts_at_many_places_of_a_measurement(device):
    assert _found("measure", 500) == {}
