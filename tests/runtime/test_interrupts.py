"""Ctrl-C at any place of the library: the next calls work, with right results, and nothing is lost."""

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from wgpu.backends.wgpu_native import ffi

import gridwise_py as gw
from helpers.inside import is_idle
from helpers.paths import with_helpers

LARGE = np.arange(3 << 20, dtype=np.uint32)


def _interrupted(device, wait):
    """Interrupt a wait soon, and return whether that ended it; None if the GPU's work has ended, too."""
    timer = threading.Timer(0.05, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])
    found = True
    try:
        timer.start()
        wait()
        found = False
        timer.join()  # the interrupt comes in here
    except KeyboardInterrupt:
        pass
    finally:
        timer.cancel()
    return found if is_idle(device) is False else None


# In one dispatch: on a GPU, dispatches of microseconds take as long to record as to run.
ROUNDS = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> rounds: array<u32>; // how many, and 0
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var random = id.x;
  for (var round = 0u; round < rounds[0]; round++) {
    random = random * 1664525u + 1013904223u;
    random ^= random >> 7u;
  }
  if (id.x < arrayLength(&out)) { out[id.x] = 2u * x[id.x] + min(random, rounds[1]); }
}"""


def _long_work(seconds, device, x, out):
    """Submit work of so many seconds, or more on a busy machine, whatever the GPU; `out` is the double of `x` then."""
    bindings = {"x": "read", "rounds": "read", "out": "read_write"}
    kernel = gw.Kernel(device, ROUNDS, bindings, lambda n: -(-n["x"] // 64))
    rounds = gw.asarray(np.array([100, 0], np.uint32), device)
    call = kernel.bind(x=x, rounds=rounds, out=out)
    call.execute()
    few, took_ns = 50, 0
    while took_ns < 0.3e9:  # meanwhile a GPU has its clock up
        few *= 2
        rounds.copy_from(np.array([few, 0], np.uint32))
        took_ns = call.execute(enable_cpu_timing=True).get_timing_result().cpu_total_time_ns
    rounds.copy_from(np.array([math.ceil(few * seconds * 1e9 / took_ns), 0], np.uint32))
    call.execute()


@pytest.mark.needs("posix")
@pytest.mark.parametrize("maps", ["1", pytest.param("0", marks=pytest.mark.slow)])
def test_every_wait_for_a_long_kernel_ends_at_once(device, monkeypatch, interruptible, maps):
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
    for work_s in (2, 8, 32):  # on a busy machine it may end before all waits had their turn
        early.clear()
        event.record()  # a wait for it is one for all that comes behind it
        _long_work(work_s, made, x, out)
        threads = [threading.Thread(target=lambda: (gw.synchronize(made), early.append(1))) for _ in range(2)]
        for thread in threads:
            thread.start()
        found = {}
        for name, wait in waits.items():
            found[name] = _interrupted(made, wait)
            if found[name] is None:
                break
        else:
            break
        for thread in threads:
            thread.join()
    assert found == dict.fromkeys(waits, True)
    assert not early
    np.testing.assert_array_equal(out.to_numpy(), 2 * LARGE)
    for thread in threads:
        thread.join()
    scan.execute()
    np.testing.assert_array_equal(y.to_numpy(), np.cumsum(LARGE, dtype=np.uint32))
    assert gw.sum(LARGE, dtype=np.uint32, device=made) == LARGE.sum(dtype=np.uint32)


class SendsWhileFreed:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def _while_freed():
    SendsWhileFreed()
    time.sleep(60)


def _in_a_callback():
    ffi.callback("void(int)", lambda _: signal.raise_signal(signal.SIGINT))(0)
    time.sleep(60)


@pytest.mark.needs("posix")
@pytest.mark.parametrize("call", [_while_freed, _in_a_callback])
def test_an_interrupt_where_nothing_can_be_raised(device, interruptible, call):
    """Python and cffi say that they ignore it; it is raised a moment later."""
    gw.request_device(device.adapter)
    with pytest.raises(KeyboardInterrupt):
        call()
    assert gw.sum(LARGE, dtype=np.uint32, device=device) == LARGE.sum(dtype=np.uint32)


ENDS = """
import signal, sys, threading
from test_interrupts import LARGE, _long_work, gw
signal.signal(signal.SIGINT, signal.default_int_handler)
device = gw.request_device()
x = gw.asarray(LARGE, device)
_long_work(600, device, x, gw.empty_like(x))
threading.Timer(0.1, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
gw.synchronize(device)
"""


def _run(*arguments, **environment):
    paths = f"{with_helpers()['PYTHONPATH']}{os.pathsep}{Path(__file__).parent}"
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**with_helpers(), "PYTHONPATH": paths, **environment},
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip


@pytest.mark.needs("posix")
def test_a_process_ends_in_the_middle_of_a_long_kernel(device):
    begin_s = time.monotonic()
    done = _run("-c", ENDS)  # with work of 600 s
    assert done.returncode in (130, -signal.SIGINT), done.stderr[-3000:]
    assert "KeyboardInterrupt" in done.stderr
    assert time.monotonic() - begin_s < 600, "the work was waited for"


# Jobs of helpers.interrupts, how many places of each are interrupted (each job once for each place), and
# GRIDWISE_MAP_ARRAYS. Between mapping and unmapping a staging buffer, that once ended the process at the next call.
SOME = [
    ("large_download,large_upload,batch,pinned,windows", 8, "1"),
    ("large_download,large_upload", 8, "0"),
]
MANY = [
    *(
        (job, places, "1")
        for job, places in {
            "to_numpy": "all", "large_download": "all", "large_upload": "all", "asarray": "all", "stream": "all",
            "sort": "all", "recipes": 400, "timed": "all", "event": "all", "batch": "all", "sequence": "all",
            "pinned": "all", "windows": 2000, "first_call": 400, "measure": 500,
        }.items()
    ),
    *((job, "all", "0") for job in ("to_numpy", "large_download", "large_upload", "asarray")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("jobs", "places", "maps"), [*SOME, *(pytest.param(*one, marks=pytest.mark.slow) for one in MANY)]
)
def test_an_interrupt_anywhere(device, jobs, places, maps):
    """It is raised, no call that returned is lost or done twice, nothing stays open, memory in use is not reused."""
    done = _run("-m", "helpers.interrupts", jobs, *(() if places == "all" else (places,)), GRIDWISE_MAP_ARRAYS=maps)
    assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr[-3000:]}"
    report = json.loads(done.stdout)
    assert min(report["places"].values()) > 20, "the script did not see the library's calls"
    assert report["found"] == {}


@pytest.mark.needs("posix")
@pytest.mark.parametrize("count", [24, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_interrupt_is_lost_and_no_wait_hangs(device, count):
    """At random times, and where C code maps a buffer; with both ways of memory."""
    done = _run("-m", "helpers.random_interrupts", count)
    assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr[-3000:]}"
    report = json.loads(done.stdout)
    assert report["at random"] == {"sent": count, "raised": count, "lost": 0, "others": []}
    steps = report["at steps"]
    assert steps == {"sent": steps["sent"], "raised": steps["sent"], "lost": 0, "others": []}
