"""Sequences: calls are captured without running, and replayed in order with what the arrays hold by then."""

import asyncio
import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers import inside
from helpers.bare import device_with

N = 1000
X = np.arange(N, dtype=np.uint32)
REVERSED = np.ascontiguousarray(X[::-1])


def sums(items):
    return np.cumsum(items, dtype=np.uint32)


class Case:
    """A captured scan of x and a reduce of the result, whose outputs the calls make."""

    def __init__(self, device):
        self.device = device
        self.x = gw.asarray(X, device)
        self.scan, self.reduce = gw.Scan(device, strategy="reduce_then_scan"), gw.Reduce(device)
        with gw.capture(device) as self.sequence:
            self.y = self.scan.execute(input=self.x).output
            self.total = self.reduce.execute(input=self.y).output


@pytest.fixture
def case(device):
    return Case(device)


def test_nothing_runs_while_it_is_captured(device):
    x, y = gw.asarray(X, device), gw.asarray(REVERSED, device)
    with gw.capture(device) as sequence:
        gw.Scan(device).execute(input=x, output=y)
    np.testing.assert_array_equal(y.to_numpy(), REVERSED)
    assert len(sequence) == 1
    sequence.execute()
    np.testing.assert_array_equal(y.to_numpy(), sums(X))


def test_calls_have_labels(device):
    x = gw.asarray(X, device)
    small = gw.ScanTuning(workgroup_size=64, vecs=1)
    scan, copy = gw.Scan(device, strategy="reduce_then_scan", tuning=small), gw.Copy(device)
    own = scan.bind(input=x).plan
    assert len(own.kernels) > 1
    with gw.capture(device) as inner, inner.label("inside"):
        copy.execute(input=x)
    with gw.capture(device) as sequence:
        with sequence.label("sums"):
            scan.execute(input=x)
            with sequence.label("last"):
                copy.execute(input=x)
            gw.cumsum(x.view(np.float32))
        copy.execute(input=x)
        inner.execute()
    labels = sequence.labels
    assert labels[: len(own.kernels)] == tuple(f"sums {kernel.label}" for kernel in own.kernels)
    assert labels[len(own.kernels)] == "last"
    assert all(label.startswith("sums") for label in labels[len(own.kernels) + 1 : -2])
    assert labels[-2:] == ("copy", "inside")
    assert "last" in repr(sequence)
    run = sequence.execute(enable_cpu_timing=True)
    assert run.get_timing_result().labels == labels
    measured = gw.measure(sequence, protocol=gw.SamplingProtocol(samples=1, timeout_s=0.1, warmup_s=0, max_warmup_s=0))
    assert tuple(kernel.name for kernel in measured.kernels) == labels


def test_labels_are_for_what_is_captured(case):
    with pytest.raises(gw.ArgumentError, match=r"inside of gw\.capture"), case.sequence.label("late"):
        pass
    with gw.capture(case.device) as sequence:
        for wrong in ("", 3):
            with pytest.raises(gw.ArgumentError, match="a str of at least one"), sequence.label(wrong):
                pass


def test_a_replay_takes_what_the_arrays_hold_by_then(case):
    for items in (X, REVERSED, X + 7):
        case.x.copy_from(items)
        case.sequence.execute()
        np.testing.assert_array_equal(case.y.to_numpy(), sums(items))
        assert case.total.item() == int(sums(items).sum(dtype=np.uint32))


def test_one_submission_of_one_pass(case, monkeypatch):
    made = inside.note_native_calls(monkeypatch, case.device, "submit", "begin_pass")
    case.sequence.execute()
    assert sorted(made) == ["begin_pass", "submit"]


def test_calls_of_all_kinds_are_captured(device):
    """Primitives, bound calls, one-shot functions, kernels, trials, in place, fills and copies, another sequence."""
    n = 70_000
    keys = np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32)
    x = gw.asarray(keys, device)
    double = gw.Map(device, "u32", gw.UnaryOp("double", lambda v: 2 * v, expression="2u * x", max_ulps=0))
    with gw.capture(device) as first:
        y = gw.sort(x)
        nothing = gw.sum(y[:0])
    with gw.capture(device) as second:
        first.execute()
        z = double.execute(input=y).output
        w = gw.Scan(device).execute(input=z, trials=3).output
        gw.Scan(device, strategy="reduce_then_scan").execute(input=w, output=w)
    assert (len(first), len(second)) == (2, 5)
    for _ in range(2):
        second.execute()
        np.testing.assert_array_equal(w.to_numpy(), sums(sums(2 * np.sort(keys))))
        assert nothing.item() == 0


def _four_sums(device):
    columns = [gw.asarray(X + k, device) for k in range(4)]
    reduce = gw.Reduce(device)
    with gw.capture(device) as sequence:
        totals = [reduce.execute(input=column).output for column in columns]
        chains = [gw.sum(gw.cumsum(column)) for column in columns]
    return sequence, [*totals, *chains]


def _right(sequence, totals):
    wanted = [
        int(items.sum(dtype=np.uint32)) for items in (*(X + k for k in range(4)), *(sums(X + k) for k in range(4)))
    ]
    for _ in range(3):
        sequence.execute()
        assert [total.item() for total in totals] == wanted


def test_independent_calls_have_no_barriers_between_them(device, monkeypatch):
    sequence, totals = _four_sums(device)
    _right(sequence, totals)
    steps = {step for call, _ in sequence.calls[4:6] for step in call.bound_plan.plan.kernels}
    assert sequence.barriers < len(steps)
    # Without memory of their own the calls of a plan wait for each other.
    inside.share_memory_of_calls(monkeypatch)
    waiting, totals = _four_sums(device)
    assert waiting.barriers > sequence.barriers
    _right(waiting, totals)


@pytest.mark.parametrize("how", [True, "inside"])
def test_kernels_keep_their_times_whatever_their_order(device, require, how):
    require("timestamp-query")
    if how == "inside":
        require("timestamp-query-inside-passes")
    sequence, totals = _four_sums(device)
    _right(sequence, totals)
    times = sequence.execute(enable_gpu_timing=how).get_timing_result()
    assert times.labels == tuple(k.label for call, _ in sequence.calls for k in call.plan.kernels)
    spans = iter(times.spans)
    of_calls = [[next(spans) for _ in call.plan.kernels] for call, _ in sequence.calls]
    for scan, total in zip(of_calls[4::2], of_calls[5::2], strict=True):
        assert scan[-1].end_ticks <= total[0].end_ticks
    begins = [span.begin_ticks for span in times.spans]
    assert (begins == sorted(begins)) is (how is True)


def test_trials_wait_for_each_other(device):
    x = gw.asarray(X, device)
    with gw.capture(device) as sequence:
        gw.VectorAdd(device, "u32").execute(a=x, b=x, trials=5)
    assert sequence.barriers == 4


def test_a_sequence_keeps_what_it_needs(device):
    x = gw.asarray(X, device)
    with gw.capture(device) as sequence:
        y = gw.Scan(device).execute(input=x).output
        total = gw.Reduce(device).execute(input=y).output
    gone = weakref.ref(y)
    del x, y
    inside.forget_plans(device)
    gc.collect()
    sequence.execute()
    assert total.item() == int(sums(X).sum(dtype=np.uint32))
    sequence.release()
    gc.collect()
    assert gone() is None
    with pytest.raises(gw.ArgumentError, match="released"):
        sequence.execute()


def test_a_primitive_may_be_used_for_something_else_meanwhile(case):
    case.scan.execute(input=gw.asarray(REVERSED, case.device))
    case.scan.release()
    case.sequence.execute()
    np.testing.assert_array_equal(case.y.to_numpy(), sums(X))


def test_each_kernel_has_its_time(case, require):
    require("timestamp-query")
    before = inside.pairs_in_use(case.device)
    run = case.sequence.execute(enable_gpu_timing=True, enable_cpu_timing=True)
    times = run.get_timing_result()
    kernels = [*case.scan.bind().plan.kernels, *case.reduce.bind().plan.kernels]
    assert times.labels == tuple(kernel.label for kernel in kernels)
    assert all(span.valid for span in times.spans)
    ends = [(span.begin_ticks, span.end_ticks) for span in times.spans]
    assert ends == sorted(ends)
    assert times.cpu_total_time_ns >= times.gpu_span_ns > 0
    assert case.sequence.get_timing_result() == times
    assert inside.pairs_in_use(case.device) == before
    with pytest.raises(gw.TimingUnavailable):
        case.sequence.execute().get_timing_result()


def test_replays_in_a_batch_keep_their_order_and_their_times(case, require):
    require("timestamp-query")
    device = case.device
    with gw.batch(device):
        case.sequence.execute()
        in_place = gw.Scan(device, strategy="reduce_then_scan").bind(input=case.x, output=case.x)
        in_place.execute()
        timed = case.sequence.execute(enable_gpu_timing=True)
        assert len(inside.pending(device)) == 3
        assert len(timed.get_timing_result().spans) == len(timed.get_timing_result().labels)
        in_place.execute()
        case.sequence.execute()
    np.testing.assert_array_equal(case.y.to_numpy(), sums(sums(sums(X))))


def test_on_a_callers_encoder(case, require):
    require("timestamp-query")
    session = gw.timing_helper(case.device).session()
    encoder = case.device.create_command_encoder()
    case.sequence.record(encoder)
    case.sequence.record(encoder, timing=session)
    commands = encoder.finish()
    case.device.queue.submit([commands])
    session.submitted()
    assert case.total.item() == int(sums(X).sum(dtype=np.uint32))
    assert len(session.spans()) == 2
    with pytest.raises(gw.ArgumentError, match="finished"):
        case.sequence.record(encoder)
    encoder = case.device.create_command_encoder()
    case.sequence.record(encoder)
    case.y.destroy()
    with pytest.raises(gw.BufferUsageError, match=r"Scan's output"):
        case.device.queue.submit([encoder.finish()])


def test_in_a_profile(case):
    with gw.profile(case.device) as profile:
        case.sequence.execute()
        encoder = case.device.create_command_encoder()
        case.sequence.record(encoder)
        case.device.queue.submit([encoder.finish()])
    calls = {row.name: row.calls for row in profile.key_averages()}
    assert calls["Sequence"] == 1
    assert calls["scan"] == calls["reduce"] == 2


def test_a_destroyed_buffer_is_named(case):
    case.x.destroy()
    with pytest.raises(gw.BufferUsageError, match=r"Scan's input.*destroyed"):
        case.sequence.execute()


def _another_capture(case):
    with gw.capture(case.device):
        pass


NOT_CAPTURED = {
    "a read": lambda case: case.x.to_numpy(),
    "an upload": lambda case: case.x.copy_from(X),
    "a copy": lambda case: case.x.copy_from(case.y),
    "a new array": lambda case: gw.asarray(X, case.device),
    "a function": lambda case: gw.cumsum(X, device=case.device),
    "an event": lambda case: gw.Event(case.device, enable_timing=False).record(),
    "a wait": lambda case: gw.synchronize(case.device),
    "a stream": lambda case: list(gw.stream(gw.Scan(case.device), [X])),
    "times of the GPU": lambda case: case.scan.execute(input=case.x, enable_gpu_timing=True),
    "times of the CPU": lambda case: case.scan.execute(input=case.x, enable_cpu_timing=True),
    "a submission": lambda case: case.device.queue.submit([case.device.create_command_encoder().finish()]),
    "a write": lambda case: case.device.queue.write_buffer(case.x.buffer, 0, X),
    "another capture": _another_capture,
}


@pytest.mark.parametrize("act", NOT_CAPTURED)
def test_what_cannot_be_captured_raises_and_captures_nothing(device, act):
    case = Case(device)
    with gw.capture(device) as sequence:
        with pytest.raises(gw.ArgumentError, match="capture"):
            NOT_CAPTURED[act](case)
        case.scan.execute(input=case.x, output=case.y)
    assert len(sequence) == 1
    sequence.execute()
    np.testing.assert_array_equal(case.y.to_numpy(), sums(X))


def test_a_tool_that_replaces_the_guard_of_the_queue(renewed_device, monkeypatch):
    case, queue = Case(renewed_device), renewed_device.queue
    monkeypatch.setattr(queue, "submit", lambda commands: type(queue).submit(queue, commands), raising=False)
    with gw.capture(renewed_device), pytest.raises(gw.ArgumentError, match="capture"):
        case.x.copy_from(case.y)


def test_an_exception_in_the_block_leaves_nothing_to_replay(device):
    x = gw.asarray(X, device)
    sequences = []

    def capture_and_fail():
        with gw.capture(device) as sequence:
            sequences.append(sequence)
            with pytest.raises(gw.ArgumentError, match="not ended"):
                sequence.execute()
            gw.Scan(device).execute(input=x)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        capture_and_fail()
    with pytest.raises(gw.ArgumentError, match="ended with an exception"):
        sequences[0].execute()
    np.testing.assert_array_equal(gw.Scan(device).execute(input=x).output.to_numpy(), sums(X))


def test_a_device_without_timestamps_warns_at_the_callers_line(device):
    own = device_with(device)
    copy = gw.Copy(own, tuning=gw.ElementwiseTuning(workgroup_size=64, vecs=1)).bind(input=gw.asarray(X, own))
    with gw.capture(own) as sequence:
        copy.execute()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = sequence.execute(enable_gpu_timing=True)
    assert [warning.filename for warning in caught] == [__file__]
    assert run.get_timing_result().gpu_total_time_ns is None


def test_a_capture_that_is_dropped_ends(device):
    """As after an interrupt between its start and the block: later calls must not disappear into it."""
    x = gw.asarray(X, device)
    opened = gw.capture(device)
    opened.__enter__()
    del opened
    gc.collect()
    np.testing.assert_array_equal(gw.Scan(device).execute(input=x).output.to_numpy(), sums(X))


def test_other_threads_and_devices_are_not_captured(device):
    x, seen = gw.asarray(X, device), []
    other = gw.request_device(device.adapter)

    def work():
        seen.append(gw.Scan(device).execute(input=x).output.to_numpy())

    with gw.capture(device) as sequence:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        copied = gw.Copy(other, capabilities=gw.capabilities(device)).execute(input=gw.asarray(X, other)).output
        np.testing.assert_array_equal(copied.to_numpy(), X)
    np.testing.assert_array_equal(seen[0], sums(X))
    assert len(sequence) == 0
    sequence.execute()


def test_a_capture_inside_of_a_batch(device):
    """The calls that are held back run before; a replay is held back like any call."""
    x, y = gw.asarray(X, device), gw.empty(N, "u32", device)
    copy = gw.Copy(device).bind(input=x, output=y)
    with gw.batch(device):
        copy.execute()
        with gw.capture(device) as sequence:
            gw.Scan(device, strategy="reduce_then_scan").execute(input=y, output=y)
        sequence.execute()
        assert inside.pending(device) == ["Copy", "Sequence of 1 (Scan)"]
    np.testing.assert_array_equal(y.to_numpy(), sums(X))


def test_what_the_library_checks_first_runs_during_a_capture(renewed_device):
    """Self-tests and the check of a user's operator submit and wait by themselves."""
    inside.forget_checks(renewed_device)
    x = gw.asarray(X.astype(np.int32), renewed_device)
    op = gw.BinOp("plus", 0, np.add, expression="a + b")
    with gw.capture(renewed_device) as sequence:
        y = gw.Scan(renewed_device, "i32", op).execute(input=x).output
    sequence.execute()
    np.testing.assert_array_equal(y.to_numpy(), np.cumsum(X, dtype=np.int32))


def test_a_first_call_may_be_captured_where_memory_is_used_again(renewed_device, monkeypatch):
    """Its temporary memory holds zeros, which takes a submission where the memory had other contents."""
    x = gw.asarray(X, renewed_device)
    inside.fill_memory(monkeypatch, renewed_device, 4, 64, 1024, X.size, 2 * X.size)
    with gw.capture(renewed_device) as sequence:
        y = gw.cumsum(x, dtype=np.uint32)
    for _ in range(2):
        sequence.execute()
        np.testing.assert_array_equal(y.to_numpy(), sums(X))


@pytest.mark.parametrize("native", [True, False])
def test_calls_that_move_much_are_submitted_ahead(device, monkeypatch, native):
    if not native:
        inside.use_public_calls(monkeypatch, device)
    submitted = inside.submit_ahead(monkeypatch, 8 * N)
    case = Case(device)
    case.x.fill(1)
    case.sequence.execute()
    assert case.total.item() == N * (N + 1) // 2
    assert len(submitted) == 2
    times = case.sequence.execute(enable_cpu_timing=True).get_timing_result()
    assert times.cpu_total_time_ns > 0
    assert len(submitted) == 3, "as a whole"
    submitted = inside.submit_ahead(monkeypatch, 8 * N + 1)
    Case(device).sequence.execute()
    assert len(submitted) == 1
    case.sequence.release()
    with pytest.raises(gw.ArgumentError, match="released"):
        case.sequence.execute()


def test_async(case):
    async def run():
        return await case.sequence.execute_async(enable_cpu_timing=True)

    assert asyncio.run(run()).get_timing_result().cpu_total_time_ns > 0
    assert case.total.item() == int(sums(X).sum(dtype=np.uint32))


def test_a_lost_device_names_the_sequence(device, fresh_device, wgpu_errors):
    copy = gw.Copy(fresh_device, capabilities=gw.capabilities(device)).bind(input=gw.asarray(X, fresh_device))
    with gw.capture(fresh_device) as sequence:
        copy.execute()
        copy.execute()
    type(fresh_device).destroy(fresh_device)
    with pytest.raises(gw.DeviceLostError, match=r"Sequence of 2 \(Copy, Copy\)") as caught:
        sequence.execute()
    assert isinstance(caught.value.__cause__, wgpu.GPUError)
    wgpu_errors.clear()
