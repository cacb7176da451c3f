"""A wait for the GPU ends where a timeout was set, says what was running, and leaves all as it was."""

import asyncio
import contextlib
import math
import re
import threading
import time
from unittest.mock import Mock

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.backend import mapped_memory, timeout
from gridwise_py.backend import queues as _queues
from gridwise_py.backend import wgpu_native as _wgpu_native
from gridwise_py.backend.device_state import state_of
from gridwise_py.backend.queues import wait_idle, wait_method
from helpers.transfers import copy_through_staging

X = np.arange(10_000, dtype=np.uint32)
LIMIT_S = 0.02


@pytest.fixture(scope="module")
def used(device):
    made = gw.request_device(device.adapter)
    gw.asarray(X, made).to_numpy()
    gw.capabilities(made)
    return made


@pytest.fixture
def impatient(used):
    """A device whose waits end: late, until a test makes it soon."""
    timeout.set_timeout_s(used, 60)
    return used


@contextlib.contextmanager
def _never_idle(device):
    """The queue is never idle inside, as far as can be told."""
    state, release = state_of(device), threading.Event()
    ways = state.wait
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "polled", lambda _device: False)
        state.wait = ("of a test", lambda _device: release.wait)
        yield
    state.wait = ways
    release.set()


@pytest.fixture
def never_idle(impatient):
    """The device, after some work, with a queue that never gets idle, as far as can be told."""
    before = sum(thread.name == "gridwise wait" for thread in threading.enumerate())
    x = gw.asarray(X, impatient)
    scan = gw.Scan(impatient)
    output = gw.empty(X.size, "u32", impatient)
    timed = "timestamp-query" in impatient.features
    event = gw.Event(impatient, enable_timing=timed)
    event.record()
    # Nothing waits in here: the run's times, and the event's, are still the GPU's.
    run = scan.execute(input=x, output=output, enable_gpu_timing=timed, enable_cpu_timing=not timed)
    with _never_idle(impatient):
        timeout.set_timeout_s(impatient, LIMIT_S)
        yield impatient, scan, run, event
        assert sum(thread.name == "gridwise wait" for thread in threading.enumerate()) <= before + 2, "helpers are kept"
    # And once it does get idle, all that was asked for in vain is there.
    timeout.set_timeout_s(impatient, 60)
    np.testing.assert_array_equal(run.output.to_numpy(), np.cumsum(X, dtype=np.uint32))
    event.synchronize()
    assert run.get_timing_result().cpu_total_time_ns or all(ns > 0 for ns in run.get_timing_result().gpu_total_time_ns)


# Of a device, a scan on it, a run of it and an event.
WAITS = {
    "wait_idle": lambda d, scan, run, event: wait_idle(d),
    "synchronize": lambda d, scan, run, event: gw.synchronize(d),
    "to_numpy": lambda d, scan, run, event: run.output.to_numpy(),
    "event.synchronize": lambda d, scan, run, event: event.synchronize(),
    "cpu timing": lambda d, scan, run, event: scan.execute(enable_cpu_timing=True),
    "execute_async": lambda d, scan, run, event: asyncio.run(scan.execute_async()),
    "stream": lambda d, scan, run, event: gw.stream(gw.Reduce(d), [X, X]),
    "functions": lambda d, scan, run, event: gw.sum(X, device=d),
    "benchmark": lambda d, scan, run, event: gw.benchmark(scan.execute, device=d),
    "words that are not whole": lambda d, scan, run, event: gw.asarray(X.astype(np.float16), d)[1:2].to_numpy(),
}


@pytest.mark.parametrize("wait", WAITS)
def test_every_wait_ends(never_idle, wait):
    begin = time.monotonic()
    with pytest.raises(gw.DeviceTimeoutError) as caught:
        WAITS[wait](*never_idle)
    assert time.monotonic() - begin >= LIMIT_S
    message = str(caught.value)
    assert f"still at work after {LIMIT_S:g} s" in message
    assert "scan (scan" in message, "the submission that was running"
    assert "GRIDWISE_TIMEOUT_S" in message
    assert isinstance(caught.value, (gw.DeviceError, TimeoutError))


@pytest.mark.parametrize("wait", ["timing result", "event.stamps"])
def test_waits_for_times_end(never_idle, require, wait):
    require("timestamp-query")
    _, _, run, event = never_idle
    for _ in range(2):  # nothing is used up by the first
        with pytest.raises(gw.DeviceTimeoutError, match="scan"):
            run.get_timing_result() if wait == "timing result" else event.stamps()


def _said_by(wait):
    """Return what a wait says that took too long; nothing of another."""
    try:
        wait()
    except gw.DeviceTimeoutError as error:
        return str(error)
    return ""


def test_long_work_and_a_tiny_timeout(impatient):
    """For real: much work, and what it computes is right in the end."""
    add = gw.VectorAdd(impatient)
    x = gw.asarray(np.arange(1 << 22, dtype=np.uint32), impatient)
    add.execute(a=x, b=x)
    few = add.execute(trials=10, enable_cpu_timing=True).get_timing_result().per_trial
    first_s = 0.2 if gw.capabilities(impatient).is_cpu else 1  # a GPU's clock rises meanwhile
    for work_s in (first_s, 4 * first_s, 20 * first_s):  # on a busy machine it may end before this thread waits
        timeout.set_timeout_s(impatient, 0.001)
        run = add.execute(trials=math.ceil(work_s * 1e9 / few.cpu_total_time_ns))
        said = [_said_by(run.output.to_numpy), _said_by(lambda: gw.synchronize(impatient))]
        timeout.set_timeout_s(impatient, 120)
        if all(said):
            break
    assert re.search("vector_add|VectorAdd", said[0])
    assert said[1]
    np.testing.assert_array_equal(run.output.to_numpy(), 2 * np.arange(1 << 22, dtype=np.uint32))


@pytest.mark.needs("wgpu")
def test_a_map_that_never_comes_is_dropped(impatient, monkeypatch):
    copy_through_staging(monkeypatch, impatient)
    x = gw.asarray(X, impatient)
    x.to_numpy()
    timeout.set_timeout_s(impatient, LIMIT_S)
    real = mapped_memory.Mapping.__init__

    def asks_for_nothing(self, *args):
        real(self, *args)
        self._begin = self._end = lambda: None

    with monkeypatch.context() as patch:
        patch.setattr(mapped_memory.Mapping, "__init__", asks_for_nothing)
        with pytest.raises(gw.DeviceTimeoutError, match=r"read\. Nothing"):
            x.to_numpy()
    timeout.set_timeout_s(impatient, 60)
    np.testing.assert_array_equal(x.to_numpy(), X)  # through another staging buffer


def test_the_environment_is_read_at_the_first_wait(device, monkeypatch):
    monkeypatch.setenv("GRIDWISE_TIMEOUT_S", "30")
    by_environment, by_argument = gw.request_device(device.adapter), gw.request_device(device.adapter, timeout_s=7)
    endless = gw.request_device(device.adapter, timeout_s=float("inf"))
    for made, wanted in ((by_environment, 30.0), (by_argument, 7.0), (endless, None)):
        gw.synchronize(made)
        assert timeout.timeout_s(made) == wanted
    monkeypatch.setenv("GRIDWISE_TIMEOUT_S", "nonsense")
    gw.synchronize(by_environment)  # it is fixed
    with pytest.raises(gw.ArgumentError, match="GRIDWISE_TIMEOUT_S='nonsense' must be a number of seconds over 0"):
        gw.synchronize(gw.request_device(device.adapter))
    monkeypatch.setenv("GRIDWISE_TIMEOUT_S", "1e300")  # no clock counts so far
    assert gw.sum(gw.ones(3, "u32", device=gw.request_device(device.adapter))).item() == 3
    monkeypatch.setenv("GRIDWISE_TIMEOUT_S", "")
    made = gw.request_device(device.adapter)
    gw.synchronize(made)
    assert timeout.timeout_s(made) is None


def test_what_is_no_timeout(device):
    for value in (0, -1, "0", "soon", float("nan"), True, [1]):
        with pytest.raises(gw.ArgumentError, match=r"timeout_s=.* must be a number of seconds over 0"):
            gw.request_device(device.adapter, timeout_s=value)


@pytest.mark.needs("wgpu")
@pytest.mark.parametrize(
    ("trouble", "method"),
    [
        (None, "on_submitted_work_done"),
        (TypeError("initializer for ctype"), "read_buffer"),
        (AttributeError("no such method"), "read_buffer"),
        (NotImplementedError(), "read_buffer"),
        (RuntimeError("Queue work done status: Error"), None),  # of a device that is lost, or of a batch's calls
    ],
)
def test_where_wgpu_cannot_be_asked_the_first_wait_that_it_has_is_taken(device, monkeypatch, trouble, method):
    made = gw.request_device(device.adapter)
    assert wait_method(made) == "device_poll"
    state_of(made).wait = None
    monkeypatch.setattr(state_of(made), "polled", lambda _device: None)
    made.queue.on_submitted_work_done_sync = Mock(side_effect=trouble)
    made.queue.read_buffer = Mock()
    if method is None:
        with pytest.raises(RuntimeError, match="work done status"):
            wait_idle(made)
        made.queue.on_submitted_work_done_sync = Mock()
    wait_idle(made)
    wait_idle(made)
    assert wait_method(made) == (method or "on_submitted_work_done")
    assert made.queue.read_buffer.call_count == (2 if method == "read_buffer" else 0)


def test_on_metal_no_poll_blocks(device, monkeypatch):
    """One may last for ever there."""
    made = gw.request_device(device.adapter)
    monkeypatch.setitem(made.adapter.info, "backend_type", "Metal")
    monkeypatch.setattr(_wgpu_native, "_blocking_poll", lambda _device: pytest.fail("blocked"))
    monkeypatch.setattr(_queues, "_POLLING_NS", 0)
    copied = gw.Copy(made, capabilities=gw.capabilities(device)).execute(input=gw.asarray(X, made)).output
    np.testing.assert_array_equal(copied.to_numpy(), X)
