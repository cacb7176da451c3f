"""execute_async and to_numpy_async: right, and the event loop goes on meanwhile."""

import asyncio
import threading

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside

X = np.random.default_rng(6).integers(0, 1000, 1 << 20, dtype=np.uint32)
PREFIX = np.cumsum(X, dtype=np.uint32)


LONG_S = 60.0


class Loop:
    """Runs work in an event loop whose other task says that the loop goes on."""

    def __init__(self):
        self._went_on = threading.Event()
        self.waits = 0

    def wait_until_it_went_on(self):
        """Stand for a wait that lasts; for any thread but the loop's, which would wait for itself."""
        self.waits += 1
        self._went_on.clear()
        assert self._went_on.wait(LONG_S), "the loop stood still"

    def run(self, work):
        async def both():
            ticker = asyncio.create_task(self._tick())
            try:
                return await work
            finally:
                ticker.cancel()

        return asyncio.run(both())

    async def _tick(self):
        while True:
            self._went_on.set()
            await asyncio.sleep(0.001)


def test_execute_async_is_right_and_done_when_it_returns(device, require):
    require("timestamp-query")
    scan = gw.Scan(device)

    async def work():
        run = await scan.execute_async(
            input=gw.asarray(X, device), enable_gpu_timing=True, enable_cpu_timing=True, trials=2
        )
        return run, await run.output.to_numpy_async(), await run.get_timing_result_async()

    run, result, times = asyncio.run(work())
    np.testing.assert_array_equal(result, PREFIX)
    assert times is run.get_timing_result()
    assert times is asyncio.run(scan.get_timing_result_async())
    assert times.cpu_total_time_ns > 0


def test_the_event_loop_goes_on(device, monkeypatch):
    """While the queue is busy, the loop's other tasks run."""
    scan, loop = gw.Scan(device), Loop()
    x, out = gw.asarray(X, device), gw.empty(X.size, "u32", device)
    scan.execute(input=x, output=out)
    gw.synchronize(device)
    with monkeypatch.context() as patch:
        inside.before_waits(patch, lambda _device: loop.wait_until_it_went_on())
        loop.run(scan.execute_async(input=x, output=out, trials=2))
    waits, read = loop.waits, gw.Array.to_numpy
    assert waits
    monkeypatch.setattr(gw.Array, "to_numpy", lambda *given: (loop.wait_until_it_went_on(), read(*given))[1])
    np.testing.assert_array_equal(loop.run(out.to_numpy_async()), PREFIX)
    assert loop.waits == waits + 1


def test_many_at_once_on_one_primitive(device):
    """Each call has its own output, whatever the other calls do meanwhile."""
    scan = gw.Scan(device)
    sizes = [1, 100, 5000, 100_000, 65_537, 3, 70_000, 12] * 4
    arrays = [gw.asarray(X[:n], device) for n in sizes]

    async def one(array):
        run = await scan.execute_async(input=array)
        return await run.output.to_numpy_async()

    async def every():
        return await asyncio.gather(*(one(array) for array in arrays))

    for _ in range(3):
        for n, result in zip(sizes, asyncio.run(every()), strict=True):
            np.testing.assert_array_equal(result, PREFIX[:n])


def test_errors_come_out_of_the_await(device):
    scan = gw.Scan(device)
    with pytest.raises(gw.ArgumentError, match="trials"):
        asyncio.run(scan.execute_async(input=gw.asarray(X, device), trials=0))
    with pytest.raises(gw.ArgumentError, match=r"execute\(encoder=…\)"):
        asyncio.run(scan.execute_async(input=gw.asarray(X, device), encoder=device.create_command_encoder()))
    gone = gw.asarray(X, device)
    gone.destroy()
    with pytest.raises(gw.BufferUsageError, match="destroyed"):
        asyncio.run(gone.to_numpy_async())


def test_timed_calls_take_turns_and_tell_of_others(device, monkeypatch):
    """The queue is idle before each: no wall holds the work of another task, or it says so."""
    scan, x = gw.Scan(device), gw.asarray(X, device)
    copy, at_once, most = gw.asarray(X, device), [], []

    def around(submit):
        at_once.append(1)
        most.append(len(at_once))
        submit()
        between()
        at_once.pop()

    async def every():
        runs = await asyncio.gather(*(scan.execute_async(input=x, enable_cpu_timing=True) for _ in range(6)))
        return [run.get_timing_result().warnings for run in runs]

    inside.during_timed_calls(monkeypatch, around)
    scan.execute(input=x)
    between = lambda: None  # noqa: E731
    told = asyncio.run(every())
    assert max(most) == 1
    assert not any("work of others" in warning for warnings in told for warning in warnings)
    between = lambda: copy.copy_from(X)  # noqa: E731
    told = asyncio.run(every())
    assert all(any("work of others: 1 submission" in warning for warning in warnings) for warnings in told)
