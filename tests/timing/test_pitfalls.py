"""The known pitfalls of asynchronous GPU code: each cannot happen here, or raises an error.

docs/reference/from-cuda-and-pytorch.md has a table of them.
"""

import warnings

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.backend.queues import queue_is_idle
from gridwise_py.runtime import run as run_module

X = np.random.default_rng(3).integers(0, 99, 200_003, dtype=np.uint32)


def test_cpu_timers(device, monkeypatch):
    """CPU times begin and end with an idle queue."""
    log = []
    wait = run_module.wait_idle
    monkeypatch.setattr(run_module, "wait_idle", lambda d: (log.append("wait"), wait(d))[1])
    submit = device.queue.submit
    monkeypatch.setattr(device.queue, "submit", lambda c: (log.append("submit"), submit(c))[1], raising=False)
    result = gw.Copy(device).execute(input=gw.asarray(X, device), enable_cpu_timing=True).get_timing_result()
    assert log[-3:] == ["wait", "submit", "wait"]
    assert result.submit_time_ns <= result.cpu_total_time_ns
    log.clear()
    copy = gw.Copy(device)
    copy.execute(input=gw.asarray(X, device))
    gw.benchmark(copy.execute, n_warmup=0, n_iters=2, device=device)
    assert log[-6:] == ["wait", "submit", "wait"] * 2


def test_nothing_waits_unasked(device, monkeypatch):
    """Calls and events do not wait; a profile counts the waits that were asked for."""
    x, scan = gw.asarray(X, device), gw.Scan(device)

    def must_not(_device):
        raise AssertionError("a call waited")

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "wait_idle", must_not)
        patch.setattr("gridwise_py.runtime.event.wait_idle", must_not)
        for _ in range(5):
            scan.execute(input=x)
            gw.Event(device, enable_timing=False).record()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gw.GridwiseWarning)  # where the device has no timestamps
        prof = gw.profile(device)
        with prof:
            for _ in range(5):
                scan.execute(input=x)
                gw.synchronize(device)
    assert {row.name: row.calls for row in prof.key_averages()}["wait"] == 5


def test_there_is_one_queue(device):
    """All work is done in the order of its calls."""
    assert not hasattr(gw, "Stream")
    x = gw.asarray(np.ones(1000, dtype=np.uint32), device)
    add = gw.VectorAdd(device)
    for _ in range(20):  # in place, so that any other order gives another result
        add.execute(a=x, b=x, output=x)
    np.testing.assert_array_equal(x.to_numpy(), np.full(1000, 1 << 20, dtype=np.uint32))
    event = gw.Event(device, enable_timing=False)
    event.record()
    with pytest.raises(gw.ArgumentError, match="one queue and no streams"):
        event.wait("a stream")


def test_streaming_copies_through_mapped_memory(device, monkeypatch):
    """Uploads and downloads of a stream never take the path that blocks."""

    write = device.queue.write_buffer

    def must_not(*arguments):
        if len(arguments) == 3 and len(arguments[2]) <= 16:  # the carry that a scan begins with
            return write(*arguments)
        raise AssertionError("a copy that is not through mapped memory")

    monkeypatch.setattr(device.queue, "write_buffer", must_not, raising=False)
    monkeypatch.setattr(device.queue, "read_buffer", must_not, raising=False)
    strided = np.stack([X, X])[:, ::-1][0]  # neither contiguous nor aligned to anything
    parts = list(gw.stream(gw.Scan(device), [strided[:1000], strided[1000:]]))
    np.testing.assert_array_equal(np.concatenate(parts), np.cumsum(strided, dtype=np.uint32))


def test_reading_too_early(device, require, monkeypatch):
    """`elapsed_time` before `synchronize` raises an error."""
    require("timestamp-query")
    start, end = gw.Event(device), gw.Event(device)
    start.record()
    gw.Copy(device).execute(input=gw.asarray(X, device))
    end.record()
    with monkeypatch.context() as patch:
        patch.setattr("gridwise_py.runtime.event.queue_is_idle", lambda _device: False)  # still at work
        with pytest.raises(gw.TimingNotReady, match=r"call event\.synchronize\(\)"):
            start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) > 0
    assert queue_is_idle(device) in (True, None)


def test_errors_surface_where_they_are_made(device, monkeypatch):
    """Wrong arguments raise before a submission; kernels can be submitted one by one to locate other errors."""
    submitted = []
    submit = device.queue.submit
    monkeypatch.setattr(device.queue, "submit", lambda c: (submitted.append(1), submit(c))[1], raising=False)
    x, scan = gw.asarray(X, device), gw.Scan(device)
    for bad in ({"input": X}, {"input": x, "output": x[1:]}, {"input": x, "trials": 0}):
        with pytest.raises(gw.ArgumentError):
            scan.execute(**bad)
    assert submitted == []
    monkeypatch.setenv("GRIDWISE_LAUNCH_BLOCKING", "1")
    blocking = gw.Scan(device, strategy="reduce_then_scan")
    run = blocking.execute(input=x)
    assert len(submitted) == len(run.plan.steps) > 1, "each step by itself, so that its error is its own"
