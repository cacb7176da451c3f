"""What docs/concepts/reliability.md says about threads: several primitives of a device; one in several threads."""

import sys

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside
from helpers.running import in_threads

THREADS = 4
CALLS = 25
X = np.arange(20_000, dtype=np.uint32)


@pytest.fixture(autouse=True)
def frequent_switches():
    """Threads take turns as often as they can, so that a race shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("strategy", [None, "reduce_then_scan"])
def test_each_thread_its_own_primitive(device, strategy):
    """Primitives of the same parameters share a plan on the device, and its scratch buffers."""

    def work(i):
        items = X + np.uint32(i)
        x, wanted = gw.asarray(items, device), np.cumsum(items, dtype=np.uint32)
        scan = gw.Scan(device, strategy=strategy)
        for _ in range(CALLS):
            np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), wanted)

    in_threads(work, THREADS)


def test_one_primitive_in_several_threads(device):
    """Each call that names its arguments gets its own result, whatever the lengths."""
    scan = gw.Scan(device)
    counts = inside.counts(device)

    def work(i):
        items = X[: 5000 * (i + 1)] + np.uint32(i)
        x, wanted = gw.asarray(items, device), np.cumsum(items, dtype=np.uint32)
        for call in range(CALLS):
            output = gw.empty(items.size, "u32", device) if call % 2 else None
            run = scan.execute(input=x, output=output)
            assert output is None or run.output.buffer is output.buffer
            np.testing.assert_array_equal(run.output.to_numpy(), wanted)

    in_threads(work, THREADS)
    assert inside.counts(device)["plans"] <= counts["plans"] + THREADS


def test_runs_keep_the_times_of_their_own_call(device, require):
    require("timestamp-query")
    scan = gw.Scan(device)

    def work(i):
        x = gw.asarray(X, device)
        for trials in (1 + i, 5 + i):
            runs = [
                scan.execute(input=x, enable_gpu_timing=True, enable_cpu_timing=bool(i % 2), trials=trials)
                for _ in range(CALLS // 2)
            ]
            for run in runs:
                result = run.get_timing_result()
                assert result.trials == trials
                assert all(ns > 0 for ns in result.gpu_total_time_ns)
                assert (result.cpu_total_time_ns is not None) == bool(i % 2)

    before = gw.timing_helper(device).pairs_in_use
    in_threads(work, THREADS)
    assert gw.timing_helper(device).pairs_in_use <= before, "every query came back"


def test_events_of_a_thread_are_ready_after_synchronize_whatever_others_submit(device, require):
    require("timestamp-query")
    x = gw.asarray(X, device)

    def work(_i):
        scan = gw.Scan(device)
        for _ in range(CALLS):
            start, end = gw.Event(device), gw.Event(device)
            start.record()
            scan.execute(input=x)
            end.record()
            end.synchronize()
            assert start.elapsed_ns(end) > 0

    in_threads(work, THREADS)


def test_an_event_is_done_when_a_later_one_is(device, monkeypatch):
    """Without threads: what is submitted after the wait does not count."""
    inside.let_queue_be_busy(monkeypatch)  # always more work
    first, second, third = (gw.Event(device, enable_timing=False) for _ in range(3))
    for event in (first, second):
        event.record()
    assert not first.query()
    second.synchronize()
    third.record()
    assert first.query()
    assert not third.query()
    first.record()
    assert not first.query(), "recorded anew, it is a new mark"


def test_functions_in_several_threads(device):
    def work(i):
        items = X + np.uint32(i)
        for _ in range(CALLS):
            assert gw.sum(items, device=device, dtype=np.uint32) == items.sum(dtype=np.uint32)
            np.testing.assert_array_equal(
                gw.cumsum(items, device=device, dtype=np.uint32), np.cumsum(items, dtype=np.uint32)
            )

    in_threads(work, THREADS)


def test_uploads_and_downloads_in_several_threads(device):
    def work(i):
        array = gw.empty(X.size, "u32", device)
        for call in range(CALLS):
            items = X * np.uint32(i + call)
            np.testing.assert_array_equal(array.copy_from(items).to_numpy(), items)
            np.testing.assert_array_equal(gw.asarray(items, device)[1:-1].to_numpy(), items[1:-1])

    in_threads(work, THREADS)


def test_one_device_is_made_and_measured_once(fresh_device):
    """The first use of a device, by all threads at once."""
    found = [None] * THREADS

    def work(i):
        found[i] = (gw.default_device(), gw.capabilities(fresh_device))
        assert gw.reduce(X, device=fresh_device) == X.sum(dtype=np.uint32)

    in_threads(work, THREADS)
    for others in found[1:]:
        assert all(a is b for a, b in zip(found[0], others, strict=True))
    assert inside.counts(fresh_device)["plans"] == 1, "of one executor"
