"""What is kept for a device: in one record on the device, made once, and gone with the device."""

import concurrent.futures
import gc
import threading
import weakref

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.backend.device_state import state_of
from gridwise_py.runtime.context import context_of
from helpers.bare import device_with

X = np.arange(1000, dtype=np.uint32)


def _use(device):
    """Calls, reads, events, a caller's own encoder and buffers, waits, and what benchmarks keep."""
    from gridwise_py.bench.calibrate.calibration import fastest_canary_ns
    from gridwise_py.runtime.gpu_identity import gpu_of

    x = gw.asarray(X, device)
    np.testing.assert_array_equal(gw.cumsum(x, dtype=np.uint32).to_numpy(), np.cumsum(X, dtype=np.uint32))
    usage = wgpu.BufferUsage
    own = device.create_buffer_with_data(data=X, usage=usage.STORAGE | usage.COPY_SRC | usage.COPY_DST)
    reduce, encoder = gw.Reduce(device), device.create_command_encoder()
    total = gw.empty(1, "u32", device)
    reduce.record(encoder, input=gw.Array(own, "u32"), output=total)
    event = gw.Event(device, enable_timing=False)
    event.record(encoder)
    device.queue.submit([encoder.finish()])
    gw.synchronize(device)
    assert event.query()
    assert total.to_numpy()[0] == X.sum()
    if "timestamp-query" in device.features:
        reduce.execute(input=x, enable_gpu_timing=True).get_timing_result()
        with gw.profile(device):
            reduce.execute(input=x)
    fastest_canary_ns(device)
    gpu_of(device)


def test_a_device_gets_one_attribute_and_two_methods_that_take_note(device):
    made = device_with(device, *device.features)
    before, queue_before = set(vars(made)), set(vars(made.queue))
    _use(made)
    assert set(vars(made)) - before - {"_gridwise_fence"} == {"_gridwise", "destroy"}  # the fence is Dawn's
    assert set(vars(made.queue)) - queue_before == {"submit"}


def test_two_devices_share_nothing(device):
    other = gw.request_device(device.adapter)
    assert state_of(other) is state_of(other)
    assert state_of(other) is not state_of(device)
    assert context_of(other) is context_of(other) is not context_of(device)
    context_of(other).cached("test", list).append(1)
    assert context_of(device).cached("test", list) == []
    context_of(device).forget("test")


def test_what_is_kept_is_made_once_also_by_several_threads(renewed_device):
    context, made, at_once = context_of(renewed_device), [], threading.Barrier(8)

    def make():
        made.append(object())
        threading.Event().wait(0.05)  # long enough that every thread asks meanwhile
        return made[-1]

    def ask(_):
        at_once.wait(60)
        return context.cached("test", make)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert len(made) == 1
    assert all(one is made[0] for one in found)
    context.forget("test")
    assert context.cached("test", make) is made[1]


def test_what_fails_to_be_made_is_made_at_the_next_call(renewed_device):
    context = context_of(renewed_device)

    def fail():
        raise OSError("not now")

    for _ in range(2):
        with pytest.raises(OSError, match="not now"):
            context.cached("test", fail)
    assert context.cached("test", lambda: 5) == 5


def test_it_all_goes_with_the_device(device):
    made = gw.request_device(device.adapter)
    gw.Copy(made).execute(input=gw.asarray(X, made))
    context = context_of(made)
    assert gw.memory_stats(made).cached_blocks > 0
    gone = [weakref.ref(one) for one in (made, context, context.executor, context.cached("test", threading.Event))]
    del made, context
    gc.collect()
    assert [reference() for reference in gone] == [None] * 4


def test_tuning_is_for_the_primitives_that_are_made_from_then_on(renewed_device, monkeypatch):
    context = context_of(renewed_device)
    before, measured = gw.Reduce(renewed_device), context.capabilities
    for tuning in ({"reduce": ((0, 1 << 20, {"workgroup_size": 64, "vecs": 2, "max_blocks": 8}),)}, None):
        monkeypatch.setattr("gridwise_py.tuning.store.TuningStore.findings", lambda self, found=tuning: found)
        context.look_up_tuning()
        assert gw.capabilities(renewed_device).tuning == tuning
        assert before.capabilities is measured
        assert gw.Reduce(renewed_device).capabilities.tuning == tuning


def test_a_thread_that_touches_mapped_memory_can_destroy_the_device(device):
    """A finalizer may do so in a thread that copies, which then cannot wait for itself; wgpu's device stays."""
    made = gw.request_device(device.adapter)
    end = state_of(made).end
    buffer = made.create_buffer(size=64, usage=wgpu.BufferUsage.MAP_WRITE, mapped_at_creation=True)

    def destroy_in_use():
        with end.memory_in_use() as is_there:
            made.destroy()
            buffer.write_mapped(b"x" * 64)  # the memory is there still
        return is_there

    done = []
    # A daemon: if it hangs, the tests still end.
    thread = threading.Thread(target=lambda: done.append(destroy_in_use()), daemon=True)
    thread.start()
    thread.join(60)
    assert done == [True]
    with end.memory_in_use() as is_there:
        assert not is_there
