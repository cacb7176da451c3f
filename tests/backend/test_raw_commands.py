"""Commands through the C functions do what those through wgpu-py's wrappers do, and fail as they do."""

import weakref

import numpy as np
import pytest
from wgpu.backends.wgpu_native._api import error_handler

import gridwise_py as gw
from gridwise_py.backend import raw_commands
from gridwise_py.backend.device_state import state_of
from helpers import inside
from helpers.running import in_threads

X = np.arange(5000, dtype=np.uint32)


def _bound(device, **options):
    scan = gw.Scan(device, strategy="reduce_then_scan", **options)
    return scan.bind(input=gw.asarray(X, device))


def test_the_c_functions_are_there_with_the_wgpu_that_is_installed(device):
    assert _bound(device).bound_plan.raw is not None, "else every call takes twice as long, and nobody notices"


def _results(device):
    """What calls give by themselves, in a batch, and in a sequence, where each step is submitted by itself or not."""
    call, found = _bound(device), []
    total = gw.Reduce(device).bind(input=call.outputs["output"])
    for trials in (1, 3):
        found.append(call.execute(trials=trials).output.to_numpy())
    with gw.batch(device):
        call.execute()
        total.execute()
    found.append(total.outputs["output"].to_numpy())
    with gw.capture(device) as sequence:
        totals = gw.Reduce(device).execute(input=call.execute().output).output
    sequence.execute()
    return [*found, totals.to_numpy()]


@pytest.mark.parametrize("blocking", ["0", "1"])
def test_another_version_of_wgpu_py_takes_the_public_calls_for_the_same_results(renewed_device, monkeypatch, blocking):
    with_c = _results(renewed_device)
    sums = np.cumsum(X, dtype=np.uint32)
    total = sums.sum(keepdims=True, dtype=np.uint32)
    inside.use_public_calls(monkeypatch, renewed_device)
    monkeypatch.setenv("GRIDWISE_LAUNCH_BLOCKING", blocking)
    inside.forget_plans(renewed_device)
    assert _bound(renewed_device).bound_plan.raw is None
    for by_c, by_python, wanted in zip(with_c, _results(renewed_device), (sums, sums, total, total), strict=True):
        np.testing.assert_array_equal(by_c, wanted)
        np.testing.assert_array_equal(by_python, wanted)


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
    call, seen = _bound(renewed_device), inside.note_calls(monkeypatch, renewed_device.queue, "submit")
    call.execute()
    assert len(seen) == 1
    with gw.batch(renewed_device):
        call.execute()
        call.execute()
    assert len(seen) == 2
    np.testing.assert_array_equal(call.outputs["output"].to_numpy(), np.cumsum(X, dtype=np.uint32))


def test_an_error_is_an_exception_at_the_call_and_nothing_is_submitted(renewed_device, monkeypatch):
    call = _bound(renewed_device)
    inside.spoil_dispatches(call)
    submitted = inside.note_native_calls(monkeypatch, renewed_device, "submit")
    with pytest.raises(gw.DeviceError, match=r"(dispatch group size|workgroup count)"):
        call.execute()
    assert not submitted


def test_threads_share_a_bound_call(device):
    call = _bound(device)
    in_threads(lambda _: [call.execute(trials=2) for _ in range(50)])
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

    def run_on_host(trials):
        wanted_y[4:7] = wanted_x[2:5]
        wanted_x[:] *= 2**trials
        wanted_x[1:6] = 0
        wanted_y[:2] = wanted_x[6:8]
        wanted_x[:] *= 2**trials

    for trials in (1, 3):
        run_on_host(trials)
        raw = raw_commands.raw_commands(device, steps)
        assert raw is not None
        raw.run(trials)
        np.testing.assert_array_equal(x.to_numpy(), wanted_x)
        np.testing.assert_array_equal(y.to_numpy(), wanted_y)
    both = raw_commands.reordered([(raw, 2), (raw, 1)], range(2 * len(steps)))
    fills = inside.note_native_calls(monkeypatch, device, "clear")
    both.run(1)
    assert len(fills) == 2
    for trials in (2, 1):
        run_on_host(trials)
    np.testing.assert_array_equal(x.to_numpy(), wanted_x)
    np.testing.assert_array_equal(y.to_numpy(), wanted_y)


def test_a_plan_of_a_copy_takes_the_c_functions(device, monkeypatch):
    x = gw.asarray(X, device)
    total = gw.asarray(X[7:8], device)
    call = gw.Reduce(device).bind(input=x[:0], output=total)
    copies = inside.note_native_calls(monkeypatch, device, "copy")
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
