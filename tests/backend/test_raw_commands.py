"""Commands through the C functions do what those through wgpu-py's wrappers do, and fail as they do."""

import threading
import weakref

import numpy as np
import pytest
from wgpu.backends.wgpu_native._api import error_handler

import gridwise_py as gw
from gridwise_py.backend import raw_commands
from gridwise_py.backend.device_state import state_of
from gridwise_py.runtime import executor
from gridwise_py.runtime.context import context_of

X = np.arange(5000, dtype=np.uint32)


def _bound(device, **options):
    scan = gw.Scan(device, strategy="reduce_then_scan", **options)
    return scan.bind(input=gw.asarray(X, device))


def test_the_c_functions_are_there_with_the_wgpu_that_is_installed(device):
    assert _bound(device).bound_plan.raw is not None, "else every call takes twice as long, and nobody notices"


@pytest.mark.parametrize("trials", [1, 3])
def test_results_are_the_same_with_and_without(renewed_device, monkeypatch, trials):
    by_c = _bound(renewed_device).execute(trials=trials).output.to_numpy()
    monkeypatch.setattr(executor, "raw_commands", lambda *_: None)
    context_of(renewed_device).executor.clear()
    call = _bound(renewed_device)
    assert call.bound_plan.raw is None
    np.testing.assert_array_equal(by_c, np.cumsum(X, dtype=np.uint32))
    np.testing.assert_array_equal(call.execute(trials=trials).output.to_numpy(), by_c)


def test_dispatches_on_a_callers_encoder_keep_their_order(device):
    first = _bound(device)
    middle = gw.VectorAdd(device).bind(a=first.outputs["output"], b=first.outputs["output"])
    last = gw.Reduce(device, "u32", gw.Max).bind(input=middle.outputs["output"])
    encoder = device.create_command_encoder()
    for call in (first, middle, last):
        call.record(encoder)
    device.queue.submit([encoder.finish()])
    assert last.outputs["output"].item() == 2 * int(X.sum())


def test_whoever_watches_submissions_sees_them(renewed_device, monkeypatch):
    call, seen = _bound(renewed_device), []
    submit = renewed_device.queue.submit
    monkeypatch.setattr(renewed_device.queue, "submit", lambda c: (seen.append(1), submit(c))[1], raising=False)
    call.execute()
    assert seen == [1]


def test_an_error_is_an_exception_at_the_call_and_nothing_is_submitted(renewed_device):
    call = _bound(renewed_device)
    raw, submitted = call.bound_plan.raw, []
    # More workgroups than the device has, as no plan has them: wgpu refuses them when the commands are finished.
    most = renewed_device.limits["max-compute-workgroups-per-dimension"]
    raw._steps = [(pipeline, group, most + 1, 1, 1) for pipeline, group, *_ in raw._steps]
    raw_submit, raw._native.submit = raw._native.submit, lambda *_: submitted.append(1)
    try:
        with pytest.raises(gw.DeviceError, match=r"(dispatch group size|workgroup count)"):
            call.execute()
    finally:
        raw._native.submit = raw_submit
    assert not submitted


def test_threads_share_a_bound_call(device):
    call = _bound(device)
    failures = []

    def run():
        try:
            for _ in range(50):
                call.execute(trials=2)
        except Exception as error:  # shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    np.testing.assert_array_equal(call.outputs["output"].to_numpy(), np.cumsum(X, dtype=np.uint32))


def test_fills_and_copies_keep_their_place_between_dispatches(device, monkeypatch):
    """Dispatches are repeated, fills and copies are not; each of these ends a pass."""
    items = np.arange(64, dtype=np.uint32) + 1
    x, y = gw.asarray(items, device), gw.asarray(items[::-1].copy(), device)
    dispatch = gw.VectorAdd(device).bind(a=x, b=x, output=x).bound_plan.steps[0]
    of_x, of_y = weakref.ref(x.lease.buffer), weakref.ref(y.lease.buffer)
    steps = [
        raw_commands.RawTransfer(of_x, 8, of_y, 16, 12),
        dispatch,
        raw_commands.RawTransfer(None, 0, of_x, 4, 20),
        raw_commands.RawTransfer(of_x, 24, of_y, 0, 8),
        dispatch,
    ]
    wanted_x, wanted_y = items.copy(), items[::-1].copy()
    for trials in (1, 3):
        wanted_y[4:7] = wanted_x[2:5]
        wanted_x *= 2**trials
        wanted_x[1:6] = 0
        wanted_y[:2] = wanted_x[6:8]
        wanted_x *= 2**trials
        raw = raw_commands.raw_commands(device, steps)
        assert raw is not None
        raw.run(trials)
        np.testing.assert_array_equal(x.to_numpy(), wanted_x)
        np.testing.assert_array_equal(y.to_numpy(), wanted_y)
    both = raw_commands.reordered([(raw, 2), (raw, 1)], range(2 * len(steps)))
    native, fills = state_of(device).engine.native_functions(), []
    clear = native.clear
    monkeypatch.setattr(native, "clear", lambda *a: (fills.append(1), clear(*a))[1])
    both.run(1)
    assert len(fills) == 2
    for trials in (2, 1):
        wanted_y[4:7] = wanted_x[2:5]
        wanted_x *= 2**trials
        wanted_x[1:6] = 0
        wanted_y[:2] = wanted_x[6:8]
        wanted_x *= 2**trials
    np.testing.assert_array_equal(x.to_numpy(), wanted_x)
    np.testing.assert_array_equal(y.to_numpy(), wanted_y)


def test_a_plan_of_a_copy_takes_the_c_functions(device, monkeypatch):
    x = gw.asarray(X, device)
    total = gw.asarray(X[7:8], device)
    call = gw.Reduce(device).bind(input=x[:0], output=total)
    native, copies = state_of(device).engine.native_functions(), []
    copy = native.copy
    monkeypatch.setattr(native, "copy", lambda *a: (copies.append(1), copy(*a))[1])
    assert call.execute().output.item() == 0
    encoder = device.create_command_encoder()
    call.record(encoder)
    device.queue.submit([encoder.finish()])
    assert len(copies) == 2


@pytest.mark.needs("wgpu")
def test_an_error_of_the_encoder_is_raised_and_nothing_else_is_called(device, monkeypatch):
    call, native = _bound(device), state_of(device).engine.native_functions()
    create, slots = native.create_encoder, error_handler._get_proxy_stack

    def refused(*arguments):
        slot = slots()[-1]
        slot.type, slot.message = "OutOfMemory", "Not enough memory left"
        return create(*arguments)

    monkeypatch.setattr(native, "create_encoder", refused)
    monkeypatch.setattr(native, "begin_pass", lambda *_: pytest.fail("encoded after an error"))
    before = len(slots())
    with pytest.raises(gw.DeviceError, match=r"Scan: .*memory"):
        call.execute()
    assert len(slots()) == before
    monkeypatch.undo()
    np.testing.assert_array_equal(call.execute().output.to_numpy(), np.cumsum(X, dtype=np.uint32))
