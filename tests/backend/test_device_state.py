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

X = np.arange(1000, dtype=np.uint32)


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

    def fail():
        raise OSError("not now")

    for _ in range(2):  # what fails to be made is made at the next call
        with pytest.raises(OSError, match="not now"):
            context.cached("test", fail)
    assert context.cached("test", make) is made[1]


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
