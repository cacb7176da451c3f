"""The clock of an NVIDIA GPU is held by a CUDA context; here a stand-in plays the driver's library."""

import ctypes
import gc
import multiprocessing
import warnings

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.backend import clock

H200 = {"vendor": "NVIDIA", "vendor_id": 0x10DE, "device": "NVIDIA H200", "description": "580.1"}
X = np.arange(10, dtype=np.uint32)
OUT_OF_MEMORY = 2
NO_DEVICE = 100
NO_CONTEXT = 201
NOT_INITIALISED = 3


class Cuda:
    """Behaves as libcuda, and counts the contexts that are retained of each GPU."""

    def __init__(self, *names, no_device=False, no_memory=False, renamed=True):
        self.names, self.no_device, self.no_memory = names, no_device, no_memory
        self.initialised, self.retained = False, {10 + i: 0 for i in range(len(names))}
        if renamed:
            self.cuDevicePrimaryCtxRelease_v2 = self._release
        else:
            self.cuDevicePrimaryCtxRelease = self._release

    def cuInit(self, flags):
        assert flags.value == 0
        if self.no_device:
            return NO_DEVICE
        self.initialised = True
        return 0

    def cuDeviceGetCount(self, count):
        if not self.initialised:
            return NOT_INITIALISED
        count._obj.value = len(self.names)
        return 0

    def cuDeviceGet(self, gpu, ordinal):
        gpu._obj.value = 10 + ordinal.value
        return 0

    def cuDeviceGetName(self, name, size, gpu):
        assert size.value == ctypes.sizeof(name)
        name.value = self.names[gpu.value - 10].encode()
        return 0

    def cuDeviceGetByPCIBusId(self, gpu, address):
        known = [f"0000:{0x1A + i:02x}:00.0".encode() for i in range(len(self.names))]
        if address not in known:
            return NO_DEVICE
        gpu._obj.value = 10 + known.index(address)
        return 0

    def cuDevicePrimaryCtxRetain(self, context, gpu):
        if self.no_memory:
            return OUT_OF_MEMORY
        context._obj.value = 0xC0
        self.retained[gpu.value] += 1
        return 0

    def cuDevicePrimaryCtxGetState(self, gpu, flags, is_active):
        assert self.initialised
        is_active._obj.value = bool(self.retained[gpu.value])
        return 0

    def _release(self, gpu):
        if not self.retained[gpu.value]:
            return NO_CONTEXT
        self.retained[gpu.value] -= 1
        return 0


@pytest.fixture
def driver(monkeypatch):
    """A function that installs a library; and every device is an NVIDIA H200."""

    def install(cuda):
        monkeypatch.setattr(clock, "_load", lambda: cuda)
        original = clock.hold
        hold = lambda info, *, pci=None: original(H200, pci=pci)  # noqa: E731
        monkeypatch.setattr(clock, "hold", hold)
        return cuda

    return install


def test_the_clock_is_held_inside_of_the_block_and_no_longer(device, driver):
    cuda = driver(Cuda("NVIDIA H200"))
    with gw.hold_clock(device) as held:
        assert held
        assert cuda.retained == {10: 1}
        with gw.hold_clock(device):
            assert cuda.retained == {10: 2}
        assert cuda.retained == {10: 1}
    assert cuda.retained == {10: 0}
    with pytest.raises(KeyError), gw.hold_clock(device):
        raise KeyError("of the user")
    assert cuda.retained == {10: 0}


def test_an_older_driver_has_another_name_for_the_release(device, driver):
    cuda = driver(Cuda("NVIDIA H200", renamed=False))
    with gw.hold_clock(device):
        assert cuda.retained == {10: 1}
    assert cuda.retained == {10: 0}


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (("NVIDIA A100", "NVIDIA H200"), 11),
        (("NVIDIA H200", "NVIDIA H20"), 10),  # a part of the name is another model
        (("Graphics Device",), 10),
    ],
    ids=["by its name", "by its whole name", "the only one"],
)
@pytest.mark.parametrize("shown", ["NVIDIA H200", "NVIDIA H200/PCIe/SSE2"], ids=["Vulkan", "OpenGL"])
def test_which_gpu_is_held(monkeypatch, names, wanted, shown):
    cuda = Cuda(*names)
    monkeypatch.setattr(clock, "_load", lambda: cuda)
    held = clock.hold(H200 | {"device": shown})
    assert {gpu for gpu, count in cuda.retained.items() if count} == {wanted}
    held.release()
    assert not any(cuda.retained.values())


def test_of_equal_gpus_the_one_with_the_address_is_held(monkeypatch):
    cuda = Cuda("NVIDIA H200", "NVIDIA H200", "NVIDIA A100")
    monkeypatch.setattr(clock, "_load", lambda: cuda)
    monkeypatch.setattr(clock, "_loaded", lambda: cuda)
    held = clock.hold(H200, pci=lambda: "0000:1b:00.0")
    assert cuda.retained == {10: 0, 11: 1, 12: 0}
    assert clock.is_held(H200, pci="0000:1b:00.0")
    assert not clock.is_held(H200, pci="0000:1a:00.0")
    assert not clock.is_held(H200)
    held.release()
    # An address that CUDA does not know, or that is another model's, is no reason to hold any of them.
    for address in ("0000:ff:00.0", "0000:1c:00.0", None):
        with pytest.warns(gw.GridwiseWarning, match="CUDA finds 2 GPUs"):
            assert clock.hold(H200, pci=lambda address=address: address) is None
    assert not any(cuda.retained.values())
    # A GPU that is the only one of its name needs no address.
    clock.hold(H200 | {"device": "NVIDIA A100"}, pci=lambda: pytest.fail("asked")).release()


def test_nothing_is_held_where_there_is_no_such_gpu(device, driver):
    for cuda in (None, Cuda("NVIDIA H200", no_device=True), Cuda()):
        driver(cuda)
        with gw.hold_clock(device) as held:
            assert not held
        assert cuda is None or not any(cuda.retained.values())


def test_gpus_of_other_vendors_do_not_ask_cuda(monkeypatch):
    monkeypatch.setattr(clock, "_load", lambda: pytest.fail("asked"))
    for vendor, vendor_id, name in (("AMD", 0x1002, "AMD Radeon"), ("llvmpipe", 0x10005, "llvmpipe (LLVM 15)")):
        info = {"vendor": vendor, "vendor_id": vendor_id, "device": name, "description": ""}
        assert clock.hold(info) is None


@pytest.mark.parametrize(
    ("cuda", "reason"),
    [
        (Cuda("NVIDIA H200", "NVIDIA H200"), "CUDA finds 2 GPUs that may be 'NVIDIA H200'.*CUDA_VISIBLE_DEVICES"),
        (Cuda("NVIDIA H200", no_memory=True), "error 2"),
    ],
    ids=["two of the same name", "no memory"],
)
def test_what_cannot_be_held_is_said_at_the_users_line(device, driver, monkeypatch, cuda, reason):
    driver(cuda)
    not_held = pytest.warns(gw.GridwiseWarning, match=f"the GPU's clock is not held: .*{reason}")
    with not_held as said, gw.hold_clock(device) as held:
        assert not held
    assert [warning.filename for warning in said] == [__file__]
    monkeypatch.setenv("GRIDWISE_HOLD_CLOCK", "1")
    with pytest.warns(gw.GridwiseWarning, match=reason) as said:
        gw.request_device(device.adapter)
    assert [warning.filename for warning in said] == [__file__]
    assert not any(cuda.retained.values())


@pytest.mark.parametrize("end", ["destroyed", "collected"])
def test_the_environment_holds_it_for_the_life_of_a_device(device, driver, monkeypatch, end):
    cuda = driver(Cuda("NVIDIA H200"))
    gw.request_device(device.adapter)
    assert cuda.retained == {10: 0}
    monkeypatch.setenv("GRIDWISE_HOLD_CLOCK", "1")
    made, other = gw.request_device(device.adapter), gw.request_device(device.adapter)
    assert cuda.retained == {10: 2}
    if end == "destroyed":
        made.destroy()
        assert cuda.retained == {10: 1}
    del made
    gc.collect()
    assert cuda.retained == {10: 1}
    np.testing.assert_array_equal(gw.asarray(X, other).to_numpy(), X)
    del other
    gc.collect()
    assert cuda.retained == {10: 0}


@pytest.mark.needs("fork")
def test_a_fork_releases_nothing_of_its_parent(device):
    """Its CUDA context does not exist in the fork, and a call of the driver there may hang."""
    cuda = Cuda("NVIDIA H200")
    cuda.retained[10] = 1
    held = clock.ClockHold(cuda, 10)

    def child(answers):
        held.release()
        answers.put(cuda.retained[10])

    answers = multiprocessing.get_context("fork").Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
        process = multiprocessing.get_context("fork").Process(target=child, args=(answers,))
        process.start()
    assert answers.get(timeout=60) == 1
    process.join(60)
    held.release()
    assert cuda.retained[10] == 0


def test_whether_it_is_held_is_asked_without_making_anything(monkeypatch):
    clock._loaded()  # the real one raises on no system
    cuda = Cuda("NVIDIA A100", "NVIDIA H200")
    monkeypatch.setattr(clock, "_load", lambda: pytest.fail("loaded"))
    for loaded in (None, cuda):  # not loaded, and not initialised
        monkeypatch.setattr(clock, "_loaded", lambda loaded=loaded: loaded)
        assert not clock.is_held(H200)
    assert not cuda.initialised
    cuda.cuInit(ctypes.c_uint(0))
    assert not clock.is_held(H200)
    monkeypatch.setattr(clock, "_load", lambda: cuda)
    held = clock.hold(H200)
    assert clock.is_held(H200)
    assert not clock.is_held(H200 | {"device": "NVIDIA A100"})
    held.release()
    assert not clock.is_held(H200)
    cuda.retained[11] = 1  # by other CUDA code of this process
    assert clock.is_held(H200)
    monkeypatch.setattr(clock, "_loaded", lambda: pytest.fail("asked"))
    assert not clock.is_held({"vendor": "AMD", "vendor_id": 0x1002, "device": "AMD Radeon", "description": ""})


def test_it_is_not_held_if_one_of_several_that_may_be_meant_is_not(monkeypatch):
    cuda = Cuda("NVIDIA H200", "NVIDIA H200")
    cuda.cuInit(ctypes.c_uint(0))
    monkeypatch.setattr(clock, "_loaded", lambda: cuda)
    cuda.retained[10] = 1
    assert not clock.is_held(H200)
    cuda.retained[11] = 1
    assert clock.is_held(H200)
