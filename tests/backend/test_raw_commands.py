"""Commands through the C functions do what those through wgpu-py's wrappers do, and fail as they do."""

import threading

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.backend import raw_commands
from gridwise_py.runtime import executor
from gridwise_py.runtime.context import context_of

X = np.arange(5000, dtype=np.uint32)


def _bound(device, **options):
    scan = gw.Scan(device, strategy="reduce_then_scan", **options)
    return scan.bind(input=gw.asarray(X, device))


def test_the_c_functions_are_there_with_the_wgpu_that_is_installed(device):
    assert _bound(device).bound_plan.raw is not None, "else every call takes twice as long, and nobody notices"


@pytest.mark.parametrize("trials", [1, 3])
def test_results_are_the_same_with_and_without(fresh_device, monkeypatch, trials):
    by_c = _bound(fresh_device).execute(trials=trials).output.to_numpy()
    monkeypatch.setattr(executor, "raw_commands", lambda *_: None)
    context_of(fresh_device).executor.clear()
    call = _bound(fresh_device)
    assert call.bound_plan.raw is None
    np.testing.assert_array_equal(by_c, np.cumsum(X, dtype=np.uint32))
    np.testing.assert_array_equal(call.execute(trials=trials).output.to_numpy(), by_c)


def test_another_version_of_wgpu_py_takes_the_public_calls(fresh_device, monkeypatch):
    monkeypatch.setattr(raw_commands, "_native", lambda: None)
    call = _bound(fresh_device)
    assert call.bound_plan.raw is None
    np.testing.assert_array_equal(call.execute().output.to_numpy(), np.cumsum(X, dtype=np.uint32))


def test_dispatches_on_a_callers_encoder_keep_their_order(device):
    first = _bound(device)
    middle = gw.VectorAdd(device).bind(a=first.outputs["output"], b=first.outputs["output"])
    last = gw.Reduce(device, "u32", gw.Max).bind(input=middle.outputs["output"])
    encoder = device.create_command_encoder()
    for call in (first, middle, last):
        call.record(encoder)
    device.queue.submit([encoder.finish()])
    assert last.outputs["output"].item() == 2 * int(X.sum())


def test_whoever_watches_submissions_sees_them(fresh_device, monkeypatch):
    call, seen = _bound(fresh_device), []
    submit = fresh_device.queue.submit
    monkeypatch.setattr(fresh_device.queue, "submit", lambda c: (seen.append(1), submit(c))[1], raising=False)
    call.execute()
    assert seen == [1]


def test_an_error_is_an_exception_at_the_call_and_nothing_is_submitted(fresh_device):
    call = _bound(fresh_device)
    raw, submitted = call.bound_plan.raw, []
    # More workgroups than the device has, as no plan has them: wgpu refuses them when the commands are finished.
    most = fresh_device.limits["max-compute-workgroups-per-dimension"]
    raw._steps = [(pipeline, group, most + 1, 1, 1) for pipeline, group, *_ in raw._steps]
    raw_submit, raw._native.submit = raw._native.submit, lambda *_: submitted.append(1)
    try:
        with pytest.raises(gw.DeviceError, match="dispatch group size"):
            call.execute()
    finally:
        raw._native.submit = raw_submit
    assert not submitted


def test_a_destroyed_device_raises(fresh_device, wgpu_errors):
    call = _bound(fresh_device)
    fresh_device.destroy()
    with pytest.raises(gw.DeviceLostError):
        call.execute()
    wgpu_errors.clear()


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


def test_an_encoder_of_another_kind_is_left_to_the_public_calls(device):
    class Encoder:
        pass

    assert not _bound(device).bound_plan.raw.record(Encoder(), 1)
