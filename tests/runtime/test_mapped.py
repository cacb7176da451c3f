"""Arrays that the CPU copies to and from while they are mapped: nobody submits, destroys or maps one meanwhile."""

import contextlib
import itertools
import os
import signal
import threading
import time
from concurrent import futures

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.backend import mapped_memory, timeout
from gridwise_py.backend.mapped_memory import FEATURE, MAP_USAGE, Mapping, mappable
from gridwise_py.runtime import transfers
from gridwise_py.runtime.context import context_of
from helpers import inside
from helpers.running import in_threads
from helpers.transfers import use_small_chunks

N = 1 << 16
CHUNK_BYTES = N  # a quarter of N items of 4 bytes
U = wgpu.BufferUsage


@pytest.fixture
def shared(device, require):
    """The device, if its arrays are mapped."""
    require("memory that CPU and GPU share")
    return device


@pytest.fixture
def small_chunks(monkeypatch):
    use_small_chunks(monkeypatch, CHUNK_BYTES)


def _random(n=N, seed=0):
    return np.random.default_rng([n, seed]).integers(0, 1 << 32, n, dtype=np.uint32)


class Held:
    """Stops threads that copy, in the middle of a mapped chunk."""

    def __init__(self, monkeypatch):
        copyto = np.copyto
        self.inside, self.go_on, self.before = threading.Event(), threading.Event(), []
        self.is_on = False

        def held(*args, **kwargs):
            if self.is_on and threading.current_thread().name.startswith("gridwise copy"):
                self.inside.set()
                with contextlib.suppress(IndexError):  # one thread only: a second interrupt ends the wait for the copy
                    self.before.pop()()
                assert self.go_on.wait(60)
            copyto(*args, **kwargs)

        monkeypatch.setattr(np, "copyto", held)

    def check_that_it_waits(self, call, transfer):
        """Make a call by another thread while `transfer`, by a third, is in the middle; both end, the call later."""
        self.is_on = True
        with futures.ThreadPoolExecutor() as pool:
            transferring = pool.submit(transfer)
            assert self.inside.wait(60)
            calling = pool.submit(call)
            futures.wait([calling], 0.1)
            is_waiting = not calling.done()
            self.go_on.set()
            assert is_waiting, "it did not wait until the memory was unmapped"
            return transferring.result(60), calling.result(60)


@pytest.fixture
def held(monkeypatch, shared, small_chunks):
    return Held(monkeypatch)


# ---- which devices


def test_arrays_are_mapped_where_memory_is_shared(device, monkeypatch):
    adapter = device.adapter
    can = FEATURE in adapter.features and adapter.info["adapter_type"] in ("CPU", "IntegratedGPU")
    x = gw.empty(100, "u32", gw.request_device(adapter))
    assert bool(x.lease.buffer.usage & MAP_USAGE) == (FEATURE in x.device.features) == can
    for value, has_feature in (("0", False), ("1", can)):
        monkeypatch.setenv("GRIDWISE_MAP_ARRAYS", value)
        own = gw.request_device(adapter)
        assert (FEATURE in own.features) == has_feature
        assert inside.is_mappable(own) == has_feature
    with monkeypatch.context() as patch:  # another wgpu-py
        patch.setattr(mapped_memory, "_native", lambda: None)
        own = gw.request_device(adapter)
        assert not mappable(own)
        np.testing.assert_array_equal(gw.asarray(_random(), own).to_numpy(), _random())


def test_a_gpu_with_memory_of_its_own_is_left_alone(device, monkeypatch):
    asked: list[str] = []
    monkeypatch.setattr(wgpu.GPUAdapter, "info", {**device.adapter.info, "adapter_type": "DiscreteGPU"})
    real = type(device.adapter).request_device_sync

    def request(self, **options):
        asked.extend(options["required_features"])
        return real(self, **options)

    monkeypatch.setattr(type(device.adapter), "request_device_sync", request)
    gw.request_device(device.adapter)
    assert FEATURE not in asked
    assert not mappable(device)


# ---- the order of the queue


def test_what_the_queue_writes_comes_in_order_with_what_is_mapped(shared):
    """wgpu holds small writes back until a submission, which mapping does not wait for."""
    x = gw.asarray(np.zeros(N, np.uint32), shared)
    gw.synchronize(shared)
    few = _random(100)
    x[:100].copy_from(few)
    np.testing.assert_array_equal(x[:200].to_numpy(), np.concatenate([few, np.zeros(100, np.uint32)]))
    x[:100].copy_from(few[::-1])
    x.copy_from(_random())
    gw.Copy(shared).execute(input=x)  # would submit what was held back
    np.testing.assert_array_equal(x.to_numpy(), _random())


def test_mapped_copies_come_after_a_batch(shared):
    x = gw.asarray(_random(), shared)
    scan = gw.Scan(shared, strategy="reduce_then_scan")
    with gw.batch(shared):
        scan.execute(input=x, output=x)
        np.testing.assert_array_equal(x.to_numpy(), np.cumsum(_random(), dtype=np.uint32))
        scan.execute(input=x, output=x)
        x.copy_from(_random(seed=1))
    np.testing.assert_array_equal(x.to_numpy(), _random(seed=1))


# ---- whoever could use a mapped buffer waits


def test_a_submission_by_another_thread_waits(shared, held):
    data = _random()
    x, scan = gw.asarray(np.zeros(N, np.uint32), shared), gw.Scan(shared, strategy="reduce_then_scan")
    scan.execute(input=x)
    _, run = held.check_that_it_waits(lambda: scan.execute(input=x), lambda: x.copy_from(data))
    assert run.output.size == N
    np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), np.cumsum(data, dtype=np.uint32))


def test_a_callers_own_submission_waits(shared, held):
    x, scan = gw.asarray(_random(), shared), gw.Scan(shared, strategy="reduce_then_scan")
    encoder = shared.create_command_encoder()
    output = scan.record(encoder, input=x)["output"]
    commands = encoder.finish()
    held.check_that_it_waits(lambda: shared.queue.submit([commands]), x.to_numpy)
    np.testing.assert_array_equal(output.to_numpy(), np.cumsum(_random(), dtype=np.uint32))


def test_a_batch_of_another_thread_waits(shared, held):
    x, scan = gw.asarray(_random(), shared), gw.Scan(shared, strategy="reduce_then_scan")

    def batch():
        with gw.batch(shared):
            return scan.execute(input=x).output

    found, output = held.check_that_it_waits(batch, x.to_numpy)
    np.testing.assert_array_equal(found, _random())
    np.testing.assert_array_equal(output.to_numpy(), np.cumsum(_random(), dtype=np.uint32))


def test_the_end_of_an_array_waits(shared, held, wgpu_errors):
    """Its memory goes with it; a thread that touches it then ends the process."""
    x = gw.asarray(_random(), shared)

    def read():
        with pytest.raises(gw.GridwiseError):  # the next chunk finds it destroyed
            x.to_numpy()

    held.check_that_it_waits(x.destroy, read)
    wgpu_errors.clear()


def test_a_small_upload_by_another_thread_waits(shared, held):
    """The queue writes it, which must not come to a mapped buffer."""
    x, few = gw.asarray(_random(), shared), _random(10, seed=1)
    held.check_that_it_waits(lambda: x[:10].copy_from(few), x.to_numpy)
    np.testing.assert_array_equal(x[:20].to_numpy(), np.concatenate([few, _random()[10:20]]))


def test_two_threads_read_one_array(shared, held):
    x = gw.asarray(_random(), shared)
    for found in held.check_that_it_waits(x.to_numpy, x[: N // 2].to_numpy):
        np.testing.assert_array_equal(found, _random()[: found.size])


@contextlib.contextmanager
def _mapped_by_its_owner(device, buffer):
    """A buffer is mapped inside; nothing that is submitted comes to wgpu, which would end this process for it."""
    buffer.map_sync("READ")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device.queue, "submit", lambda _: pytest.fail("submitted with a mapped buffer"), raising=False)
        yield
    buffer.unmap()


def test_a_buffer_that_a_caller_gets_is_not_mapped_any_more(shared, held, monkeypatch):
    x, copy = gw.asarray(_random(), shared), gw.Copy(shared)
    bound = gw.Copy(shared).bind(input=x)  # before its buffer is given away
    copy.execute(input=x)
    found, buffer = held.check_that_it_waits(lambda: x.buffer, x.to_numpy)
    np.testing.assert_array_equal(found, _random())
    with monkeypatch.context() as patch:
        patch.setattr(transfers, "Mapping", None)
        np.testing.assert_array_equal(x.copy_from(_random(seed=1)).to_numpy(), _random(seed=1))
        np.testing.assert_array_equal(gw.asarray(_random(), shared, label="own").to_numpy(), _random())
    # It is the caller's to map.
    with _mapped_by_its_owner(shared, buffer):
        np.testing.assert_array_equal(np.frombuffer(buffer.read_mapped(0, 4 * N), np.uint32), _random(seed=1))
        for call in (
            bound.execute,
            copy.execute,
            lambda: copy.execute(input=x),
            x.to_numpy,
            lambda: x.copy_from(_random()),
        ):
            with pytest.raises(gw.BufferUsageError, match="is mapped"):
                call()
    np.testing.assert_array_equal(bound.execute().output.to_numpy(), _random(seed=1))


def test_a_finalizer_in_a_thread_that_copies_is_refused(shared, held):
    """It would wait for the copy that it interrupts."""
    x, copy, raised = gw.asarray(_random(), shared), gw.Copy(shared), []
    copy.execute(input=x)

    def finalizer():
        try:
            copy.execute(input=x)
        except gw.GridwiseError as error:
            raised.append(str(error))

    held.is_on, held.before = True, [finalizer]
    held.go_on.set()
    np.testing.assert_array_equal(x.to_numpy(), _random())
    assert len(raised) == 1
    assert "finalizer" in raised[0]
    assert inside.mapped_buffers(shared) == []


@pytest.mark.needs("posix")
def test_a_signal_handler_uses_the_array(shared, held):
    """It runs in the thread that waits for the copy, and its submission comes after the chunk."""
    x, scan = gw.asarray(_random(), shared), gw.Scan(shared, strategy="reduce_then_scan")
    scan.execute(input=x)
    sums = []
    before = signal.signal(signal.SIGUSR1, lambda *_: sums.append(scan.execute(input=x).output))
    try:
        held.is_on, held.before = True, [lambda: os.kill(os.getpid(), signal.SIGUSR1)]
        threading.Timer(0.2, held.go_on.set).start()
        np.testing.assert_array_equal(x.to_numpy(), _random())
    finally:
        signal.signal(signal.SIGUSR1, before)
    np.testing.assert_array_equal(sums[0].to_numpy(), np.cumsum(_random(), dtype=np.uint32))


def test_an_interrupt_leaves_nothing_mapped(shared, held, interruptible):
    x = gw.asarray(_random(), shared)
    held.is_on, held.before = True, [lambda: os.kill(os.getpid(), signal.SIGINT)]
    threading.Timer(0.2, held.go_on.set).start()
    with pytest.raises(KeyboardInterrupt):
        x.to_numpy()
    assert inside.mapped_buffers(shared) == []
    np.testing.assert_array_equal(gw.Copy(shared).execute(input=x).output.to_numpy(), _random())


def test_a_mapping_that_does_not_come_is_asked_for_again(shared, monkeypatch):
    """A chain of C calls, which nothing interrupts, ends nevertheless."""
    x, real, made = gw.asarray(_random(100), shared), Mapping.__init__, []

    def first_hears_nothing(self, *arguments):
        real(self, *arguments)
        made.append(self)
        if len(made) == 1:
            self._poll = lambda: None

    monkeypatch.setattr(Mapping, "__init__", first_hears_nothing)
    np.testing.assert_array_equal(x.to_numpy(), _random(100))
    assert len(made) == 2
    np.testing.assert_array_equal(gw.Copy(shared).execute(input=x).output.to_numpy(), _random(100))


# ---- mapping


@pytest.fixture
def buffer(shared):
    return shared.create_buffer(size=4096, usage=U.STORAGE | U.COPY_DST | U.COPY_SRC | MAP_USAGE)


def test_bytes_anywhere(shared, buffer):
    everything = np.random.default_rng(0).integers(0, 256, 4096, dtype=np.uint8)
    Mapping(shared, buffer, "WRITE", 0, 4096).copy(0, everything)
    for first, n in itertools.product(range(5), (1, 2, 3, 8, 1000)):
        size = -(-(first + n) // 4) * 4
        found = np.zeros(n, np.uint8)
        Mapping(shared, buffer, "READ", 8, size).copy(first, found)
        np.testing.assert_array_equal(found, everything[8 + first : 8 + first + n])
        Mapping(shared, buffer, "WRITE", 8, size).copy(first, found[::-1])
        everything[8 + first : 8 + first + n] = found[::-1]
        after = np.zeros(4096, np.uint8)
        Mapping(shared, buffer, "READ", 0, 4096).copy(0, after)
        np.testing.assert_array_equal(after, everything)


def test_a_destroyed_buffer_is_refused(shared, buffer):
    buffer.destroy()
    out = np.zeros(4, np.uint8)
    with pytest.raises(wgpu.GPUError, match="destroyed"):
        Mapping(shared, buffer, "READ", 0, 8).copy(0, out)
    with pytest.raises(wgpu.GPUError, match="destroyed"):
        Mapping(shared, buffer, "READ", 0, 8).map()


def test_a_copy_that_fails_leaves_the_buffer_unmapped(shared, buffer):
    with pytest.raises(ValueError, match="smaller than"):
        Mapping(shared, buffer, "READ", 0, 8).copy(0, np.zeros(100, np.uint8))
    Mapping(shared, buffer, "WRITE", 0, 8).copy(0, np.arange(8, dtype=np.uint8))


def test_a_timeout_takes_the_request_back(device, shared, monkeypatch):
    slow = gw.request_device(device.adapter, timeout_s=0.05)
    own = slow.create_buffer(size=64, usage=U.COPY_DST | U.COPY_SRC | MAP_USAGE)
    late = Mapping(slow, own, "READ", 0, 64)
    monkeypatch.setattr(late, "_poll", lambda *_: None)
    with pytest.raises(gw.DeviceTimeoutError):
        late.map()
    timeout.set_timeout_s(slow, 60)
    in_time = Mapping(slow, own, "WRITE", 0, 64)
    in_time.map()[:] = 7
    in_time.unmap()
    found = np.zeros(64, np.uint8)
    Mapping(slow, own, "READ", 0, 64).copy(0, found)
    assert (found == 7).all()


def test_large_blocks_come_with_zeros_and_keep_what_is_written(shared):
    n = (9 << 20) // 4
    fresh = gw.request_device(shared.adapter)
    x = context_of(fresh).memory.make(4 * n)
    found = gw.Array.on(x, gw.types.datatype.as_datatype("u32"), n, fresh)
    assert not found.to_numpy().any()
    np.testing.assert_array_equal(found.copy_from(_random(n)).to_numpy(), _random(n))


# ---- many threads


def _soak(device, seconds, threads=2):
    end = time.monotonic() + seconds
    shared_array, scan = gw.asarray(np.zeros(N, np.uint32), device), gw.Scan(device, strategy="reduce_then_scan")

    def work(seed):
        rng = np.random.default_rng(seed)
        turn = 0
        while turn < 2 or time.monotonic() < end:
            turn += 1
            n = int(rng.integers(1, 1 << int(rng.integers(1, 18))))
            data, out = rng.integers(0, 1 << 32, n, dtype=np.uint32), np.zeros(n, np.uint32)
            x = gw.asarray(data, device) if turn % 2 else gw.empty(n, "u32", device).copy_from(data)
            y = scan.execute(input=x).output
            scan.execute(input=shared_array)  # that others read and write at any time
            shared_array[: n // 2].copy_from(data[: n // 2])
            shared_array.to_numpy()
            first = int(rng.integers(0, n))
            np.testing.assert_array_equal(y[first:].to_numpy(), np.cumsum(data, dtype=np.uint32)[first:])
            np.testing.assert_array_equal(x.to_numpy(out=out), data)

    in_threads(work, threads, timeout_s=seconds + 120)
    assert inside.mapped_buffers(device) == []


def test_threads_upload_submit_and_read(shared, small_chunks):
    _soak(shared, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 5])
def test_threads_upload_submit_and_read_for_long(shared, small_chunks, threads):
    _soak(shared, 60, threads)
