"""Batches: calls are held back, and nobody can tell, whatever comes next and whoever does it."""

import asyncio
import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers import inside
from helpers.bare import device_with
from helpers.inside import pending
from helpers.running import in_threads

N = 1000
X = np.arange(N, dtype=np.uint32)
SUMS = np.cumsum(X, dtype=np.uint32)


class Case:
    """A scan of x into y, and a reduction of y to total, on a device; overwrite copies other into x."""

    def __init__(self, device):
        self.device = device
        self.x, self.y = gw.asarray(X, device), gw.asarray(np.zeros(N, dtype=np.uint32), device)
        self.total = gw.asarray(np.zeros(1, dtype=np.uint32), device)
        self.scan = gw.Scan(device, strategy="reduce_then_scan").bind(input=self.x, output=self.y)  # of one kernel
        self.reduce = gw.Reduce(device).bind(input=self.y, output=self.total)
        self.other, self.own = gw.asarray(X[::-1].copy(), device), gw.asarray(X, device)
        self.overwrite = gw.Copy(device).bind(input=self.other, output=self.x)
        self.event = gw.Event(device, enable_timing=False)
        self.event.record()

    def copies(self, source, destination):
        """An encoder of the caller's that copies buffers."""
        encoder = self.device.create_command_encoder()
        encoder.copy_buffer_to_buffer(source, 0, destination, 0, 4 * N)
        return encoder.finish()

    def in_thread(self, function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()


@pytest.fixture
def case(device):
    return Case(device)


def _copy(own, device):
    """A call of one kernel on a device of the test's own; the other one is of the same adapter, and measured."""
    return gw.Copy(own, capabilities=gw.capabilities(device)).bind(input=gw.asarray(X, own))


def test_a_batch_is_one_submission_of_one_pass(device, case, monkeypatch):
    made = inside.note_native_calls(monkeypatch, device, "submit", "begin_pass")
    with gw.batch(device):
        for _ in range(8):
            case.scan.execute()
            case.reduce.execute()
    assert sorted(made) == ["begin_pass", "submit"]


def test_a_large_batch_is_submitted_in_parts(device, case):
    most = 0
    with gw.batch(device):
        for _ in range(2 * inside.MOST_PENDING + 3):
            case.scan.execute()
            most = max(most, len(pending(device)))
        assert 0 < len(pending(device)) < inside.MOST_PENDING
    assert most < inside.MOST_PENDING
    np.testing.assert_array_equal(case.y.to_numpy(), SUMS)


def _another_thread_in_a_batch(case):
    with gw.batch(case.device):
        case.overwrite.execute()


def _callers_wait(case):
    with contextlib.suppress(TypeError):  # which wgpu-py 0.32.0 always raises (its issue 834)
        case.device.queue.on_submitted_work_done_async()


def _time_on_the_cpu(case):
    assert case.reduce.execute(enable_cpu_timing=True).get_timing_result().cpu_total_time_ns > 0
    assert case.total.item() == int(SUMS.sum(dtype=np.uint32))


def _profile(case):
    with gw.profile(case.device) as profile:
        case.reduce.execute()
    assert [row.calls for row in profile.key_averages() if row.name == "reduce"] == [1], "its kernel was seen"
    assert case.total.item() == int(SUMS.sum(dtype=np.uint32))


#: What a scan of x into y that is held back must run before: acts that change x or y, wait, or read. An array that
#: an act returns is the sums that are expected.
ACTS = {
    "a read": lambda case: case.y.to_numpy(),
    "an upload": lambda case: case.x.copy_from(X[::-1]),
    "an upload to the output": lambda case: case.y.copy_from(X),
    "a copy on the GPU": lambda case: case.x.copy_from(case.other),
    "a caller's submission": lambda case: case.device.queue.submit([case.copies(case.other.buffer, case.x.buffer)]),
    "a caller's write": lambda case: case.device.queue.write_buffer(case.x.buffer, 0, X[::-1].copy()),
    "a caller's read": lambda case: np.frombuffer(case.device.queue.read_buffer(case.y.buffer), np.uint32)[:N],
    "a call that the CPU times": _time_on_the_cpu,
    "another thread": lambda case: case.in_thread(case.overwrite.execute),
    "another thread in a batch": lambda case: case.in_thread(lambda: _another_thread_in_a_batch(case)),
    "a profile": _profile,
    "a stream": lambda case: np.concatenate(list(gw.stream(gw.Scan(case.device), [X[:500], X[500:]]))),
    "a function": lambda case: gw.cumsum(X, device=case.device),
    "synchronize": lambda case: gw.synchronize(case.device),
    "an event": lambda case: gw.Event(case.device, enable_timing=False).record(),
    "asking an event": lambda case: case.event.query(),
    "waiting for an event": lambda case: case.event.synchronize(),
    "the end of a buffer": lambda case: case.own.destroy(),
    "a wait by the caller": _callers_wait,
}


@pytest.mark.parametrize("act", ACTS)
def test_what_comes_next_comes_after_the_batch(device, case, require, act):
    if act == "a profile":
        require("timestamp-query")
    with gw.batch(device):
        case.scan.execute()
        assert pending(device) == ["Scan"]
        seen = ACTS[act](case)
        assert pending(device) == []
        if isinstance(seen, np.ndarray):
            np.testing.assert_array_equal(seen, SUMS)
        np.testing.assert_array_equal(case.y.to_numpy(), X if act == "an upload to the output" else SUMS)


def test_a_buffer_that_is_destroyed_is_used_before(device, case):
    """A submission with a destroyed buffer would end the process."""
    with gw.batch(device):
        case.scan.execute()
        case.x.destroy()
        with pytest.raises(gw.BufferUsageError, match="destroyed"):
            case.scan.execute()
    np.testing.assert_array_equal(case.y.to_numpy(), SUMS)


@pytest.mark.needs("mappable-primary-buffers")
def test_a_buffer_that_the_caller_maps_is_used_before(device):
    own = device_with(device, "mappable-primary-buffers")
    usage = wgpu.BufferUsage
    buffer = own.create_buffer(size=4 * N, usage=usage.STORAGE | usage.MAP_WRITE)
    before, y = (gw.asarray(X, own) for _ in range(2))
    copy = gw.Copy(own).bind(input=gw.Array(buffer, "u32"), output=y)
    with gw.batch(own):
        gw.Copy(own).execute(input=gw.Array(buffer, "u32"), output=before)
        buffer.map_sync("WRITE")
        buffer.write_mapped(X)
        with pytest.raises(gw.BufferUsageError, match="mapped"):
            copy.execute()
        buffer.unmap()
        copy.execute()
        np.testing.assert_array_equal(y.to_numpy(), X)
    assert not before.to_numpy().any(), "it was zero at the call"


def test_what_nobody_holds_any_more_is_used(device):
    """Outputs and inputs are kept until the calls are submitted, and not longer."""
    x = gw.asarray(X, device)
    with gw.batch(device):
        y = gw.Scan(device).execute(input=x).output
        gone = weakref.ref(y)
        total = gw.Reduce(device).execute(input=y).output
        del x, y
        gc.collect()
        assert gone() is not None
    assert total.item() == int(SUMS.sum(dtype=np.uint32))
    gc.collect()
    assert gone() is None


def test_primitives_and_caches_may_go_meanwhile(device):
    x = gw.asarray(X, device)
    with gw.batch(device):
        scan = gw.Scan(device)
        y = scan.execute(input=x).output
        call = gw.Reduce(device).bind(input=y)
        total = call.execute().output
        scan.release()
        call.release()
        del scan, call
        inside.forget_plans(device)
        gc.collect()
    assert total.item() == int(SUMS.sum(dtype=np.uint32))


def test_kernels_keep_their_own_times(device, require):
    require("timestamp-query")
    case = Case(device)
    before = inside.pairs_in_use(device)
    with gw.batch(device):
        case.scan.execute()
        runs = [case.scan.execute(enable_gpu_timing=True), case.reduce.execute(enable_gpu_timing=True, trials=3)]
        case.reduce.execute()
        assert len(pending(device)) == 4
        first = runs[0].get_timing_result()
        assert pending(device) == []
    second = runs[1].get_timing_result()
    for run, times, trials in zip(runs, (first, second), (1, 3), strict=True):
        assert times.labels == tuple(kernel.label for kernel in run.plan.kernels)
        assert times.trials == trials
        assert all(span.valid for span in times.spans)
        assert len(times.spans) == len(run.plan.kernels)
    assert first.spans[-1].end_ticks <= second.spans[0].begin_ticks
    assert case.total.item() == int(SUMS.sum(dtype=np.uint32))
    with gw.batch(device):
        case.scan.execute(enable_gpu_timing=True)
        gw.timing_helper(device).collect()
        assert pending(device) == [], "what reads all times reads those"
    assert inside.pairs_in_use(device) == before


def test_trials_and_in_place_calls_keep_their_rules(device, case):
    in_place = gw.Scan(device, strategy="reduce_then_scan").bind(input=case.y, output=case.y)
    with gw.batch(device):
        case.scan.execute(trials=3)
        in_place.execute()
        with pytest.raises(gw.OverlapError):
            in_place.execute(trials=2)
        with pytest.raises(gw.DatatypeError):
            gw.Scan(device, "f32").execute(input=case.x)
        in_place.execute()
    want = SUMS
    for _ in range(2):
        want = np.cumsum(want, dtype=np.uint32)
    np.testing.assert_array_equal(case.y.to_numpy(), want)


def test_plans_with_fills_and_copies_keep_their_place(device, case):
    """A reduce of nothing copies, a look-back fills its state: they end a pass, and the next call begins one."""
    n = 70_000
    keys = np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32)
    x, scan, reduce = gw.asarray(keys, device), gw.Scan(device, strategy="lookback"), gw.Reduce(device)
    with gw.batch(device):
        y = scan.execute(input=x).output
        z = scan.execute(input=y).output
        nothing = reduce.execute(input=z[:0]).output
        total = reduce.execute(input=z).output
    want = np.cumsum(np.cumsum(keys, dtype=np.uint32), dtype=np.uint32)
    np.testing.assert_array_equal(z.to_numpy(), want)
    assert nothing.item() == 0
    assert total.item() == int(want.sum(dtype=np.uint32))


def test_an_inner_batch_belongs_to_the_outer_one(device, case):
    with gw.batch(device):
        case.scan.execute()
        with gw.batch(device):
            case.reduce.execute()
        assert pending(device) == ["Scan", "Reduce"]
    assert pending(device) == []
    assert case.total.item() == int(SUMS.sum(dtype=np.uint32))


def test_an_awaited_call_runs_in_a_thread_after_the_batch(device, case):
    async def run():
        with gw.batch(device):
            case.scan.execute()
            await case.reduce.execute_async()
            return pending(device)

    assert asyncio.run(run()) == []
    assert case.total.item() == int(SUMS.sum(dtype=np.uint32))


def test_two_devices_hold_back_by_themselves(device, case):
    own = gw.request_device(device.adapter)
    other = _copy(own, device)
    with gw.batch(device), gw.batch(own):
        case.scan.execute()
        other.execute()
        np.testing.assert_array_equal(other.outputs["output"].to_numpy(), X)
        assert (pending(device), pending(own)) == (["Scan"], [])
    np.testing.assert_array_equal(case.y.to_numpy(), SUMS)


def test_a_thread_outside_of_the_batch_does_not_hold_back(device, case):
    seen = []
    with gw.batch(device):
        case.in_thread(lambda: (case.scan.execute(), seen.append(pending(device))))
    assert seen == [[]]


def test_a_batch_that_is_dropped_ends(device, case):
    """As after an interrupt between its start and the block."""
    open_batch = gw.batch(device)
    open_batch.__enter__()
    case.scan.execute()
    assert pending(device) == ["Scan"]
    del open_batch
    gc.collect()
    assert pending(device) == []
    case.reduce.execute()
    assert pending(device) == []


def test_a_finalizer_that_uses_the_device_in_the_middle_of_a_submission(device, case, monkeypatch):
    """All that was called is submitted once: by the inner use, and not again by the outer."""
    in_place = gw.Scan(device, strategy="reduce_then_scan").bind(input=case.x, output=case.x)
    entered = inside.once_a_batch_is_encoded(monkeypatch, case.other.destroy)
    with gw.batch(device):
        in_place.execute()
    assert entered
    np.testing.assert_array_equal(case.x.to_numpy(), SUMS)


def test_a_tool_that_submits_past_this_library_by_its_own_function(renewed_device, monkeypatch):
    """What this library submits comes after the batch also where its guard of the queue was replaced."""
    case, queue = Case(renewed_device), renewed_device.queue
    with gw.batch(renewed_device):
        monkeypatch.setattr(queue, "submit", lambda commands: type(queue).submit(queue, commands), raising=False)
        case.scan.execute()
        case.x.copy_from(case.other)
    np.testing.assert_array_equal(case.y.to_numpy(), SUMS)


def test_blocking_launches_are_not_held_back(device, monkeypatch):
    monkeypatch.setenv("GRIDWISE_LAUNCH_BLOCKING", "1")
    case = Case(device)
    with gw.batch(device):
        case.scan.execute()
        assert pending(device) == []


def test_a_device_that_is_destroyed_has_done_what_was_called(device, fresh_device, wgpu_errors):
    copy = _copy(fresh_device, device)
    with gw.batch(fresh_device):
        copy.execute()
        fresh_device.destroy()
        assert pending(fresh_device) == []
        copy.execute()
        with pytest.raises(gw.DeviceLostError, match=r"batch of 1 \(Copy\)"):
            gw.synchronize(fresh_device)
        assert pending(fresh_device) == []
    wgpu_errors.clear()


@pytest.mark.needs("wgpu")
def test_a_device_that_is_lost_raises_at_the_submission_and_names_the_calls(fresh_device, wgpu_errors, require):
    require("timestamp-query")
    gw.capabilities(fresh_device)  # else the timed call measures them, in a submission of its own
    copy, open_batch = _copy(fresh_device, fresh_device), gw.batch(fresh_device)
    with contextlib.ExitStack() as stack:
        stack.enter_context(open_batch)
        for _ in range(4):
            copy.execute()
        run = copy.execute(enable_gpu_timing=True)
        type(fresh_device).destroy(fresh_device)  # past this library, as a driver would
        stack.pop_all()
    with pytest.raises(gw.DeviceLostError, match=r"batch of 5 \(Copy, Copy, Copy and 2 more\)") as caught:
        open_batch.__exit__(None, None, None)
    assert isinstance(caught.value.__cause__, wgpu.GPUError)
    assert pending(fresh_device) == []
    with pytest.raises(gw.TimingUnavailable, match=r"never ran: batch of"):
        run.get_timing_result()
    wgpu_errors.clear()


def test_times_of_calls_that_could_not_be_submitted(renewed_device, monkeypatch, require):
    """Their queries were never written, and what they hold is no time."""
    require("timestamp-query")
    case = Case(renewed_device)
    inside.refuse_submissions_of_batches(monkeypatch, wgpu.GPUError("refused"))
    with gw.batch(renewed_device):
        run = case.scan.execute(enable_gpu_timing=True)
        with pytest.raises(gw.DeviceError, match=r"batch of 1 \(Scan\): refused"):
            gw.synchronize(renewed_device)
    with pytest.raises(gw.TimingUnavailable, match=r"never ran: batch of"):
        run.get_timing_result()
    del run
    case.scan.release()
    assert inside.pairs_in_use(renewed_device) == 0


def test_an_error_in_the_commands_loses_the_batch_and_nothing_else(renewed_device):
    case = Case(renewed_device)
    mend = inside.spoil_dispatches(case.scan)
    with gw.batch(renewed_device):
        case.reduce.execute()
        case.scan.execute()
        with pytest.raises(
            gw.DeviceError, match=r"batch of 2 \(Reduce, Scan\): .*(dispatch group size|workgroup count)"
        ):
            gw.synchronize(renewed_device)
    mend()
    with gw.batch(renewed_device):
        case.scan.execute()
    np.testing.assert_array_equal(case.y.to_numpy(), SUMS)
    assert case.total.item() == 0


def _fail_in_a_batch(case, error):
    with gw.batch(case.device):
        case.scan.execute()
        raise error


def test_an_exception_inside_leaves_what_was_called(device, case):
    with pytest.raises(ZeroDivisionError):
        _fail_in_a_batch(case, ZeroDivisionError)
    assert pending(device) == []
    np.testing.assert_array_equal(case.y.to_numpy(), SUMS)
    case.reduce.execute()
    assert pending(device) == [], "the batch is over"


def test_many_threads_in_batches_of_one_device(device):
    """Each thread's calls happen in its order, whoever submits them."""

    def work(seed):
        rng = np.random.default_rng(seed)
        items = rng.integers(0, 9, N, dtype=np.uint32)
        x, y = gw.asarray(items, device), gw.empty(N, "u32", device)
        scan = gw.Scan(device, strategy="reduce_then_scan").bind(input=x, output=x)
        copy = gw.Copy(device).bind(input=x, output=y)
        for _ in range(20):
            with gw.batch(device):
                for _ in range(rng.integers(1, 5)):
                    scan.execute()
                    items = np.cumsum(items, dtype=np.uint32)
                copy.execute()
                if rng.integers(2):
                    np.testing.assert_array_equal(y.to_numpy(), items)
            np.testing.assert_array_equal(y.to_numpy(), items)

    in_threads(work)
