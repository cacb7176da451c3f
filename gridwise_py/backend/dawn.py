"""The engine Dawn: Chromium's WebGPU, with the compiler Tint, by the package wgpudawn, which has wgpu-py's API.

Nothing is loaded before the engine is asked for. Then wgpudawn's classes become subclasses of wgpu-py's, which declare
the same methods. So everything that asks for a `wgpu.GPUBuffer`, or catches a `wgpu.GPUError`, takes those of Dawn, and
both engines live in one process.
"""

# Private names of wgpudawn are what this file is for.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import wgpu

from ..errors import AdapterError
from ..settings import ShaderChecks
from ..types.capabilities import SubgroupMatrices
from .native_functions import NativeFunctions, PendingErrors
from .waits import new_note, storing

NAME = "dawn"
PACKAGE = "wgpudawn"
LANGUAGE = "tint"
LOGGER = "wgpudawn"
HAS_MAPPED_MEMORY = False
HAS_TICKS = False

# What wgpu calls otherwise.
_FEATURES = {
    "subgroup": "subgroups",
    "timestamp-query-inside-passes": "chromium-experimental-timestamp-query-inside-passes",
}
# What Dawn has without a feature of its own, where unsafe APIs are allowed.
_ENCODER_STAMPS = "timestamp-query-inside-encoders"
MATRICES = "chromium-experimental-subgroup-matrix"
# Threads of this library compile, wait and submit at once. Without this feature Dawn takes one thread at a time.
_THREADS = "implicit-device-synchronization"
# Dawn rounds timestamps to 65.5 µs, so that web pages learn less of the machine: no kernel could be timed.
_TOGGLES = {"timestamp_quantization": False}
# Of the instance and of adapters. Without them Dawn lists no subgroup matrices, and on NVIDIA's GPUs no 16-bit floats.
_INSTANCE_TOGGLES = {"allow_unsafe_apis": True, "vulkan_enable_f16_on_nvidia": True}
_LOOK_AGAIN_NS = 10_000_000  # how often a wait that blocks looks whether the device was destroyed
# On wgpudawn's objects: what is not done yet on a device, its toggles, and that an adapter has made one.
_FENCE, _TOGGLES_OF, _USED = "_gridwise_fence", "_gridwise_toggles", "_gridwise_used"


class _Native:
    """wgpudawn's modules, and the C functions to wait with."""

    def __init__(self) -> None:
        package: Any = importlib.import_module(PACKAGE)
        backend: Any = importlib.import_module(f"{PACKAGE}.backends.dawn")
        helpers: Any = importlib.import_module(f"{PACKAGE}.backends.dawn._helpers")
        c: Any = importlib.import_module(f"{PACKAGE}.backends.dawn._ffi")
        self.gpu, self.version = backend.gpu, f"{package.__version__} (Dawn {backend.__version__})"
        api: Any = importlib.import_module(f"{PACKAGE}.backends.dawn._api")
        _adopt(api, helpers.ERROR_TYPES)
        self.ffi, self.lib, self.callbacks = c.ffi, c.lib, c.callbacks
        self.extras: Any = importlib.import_module(f"{PACKAGE}.backends.dawn.extras")
        self.instance_toggles: dict[str, bool] = {}
        if helpers._the_instance is None:  # otherwise the process has used it before, as it wished
            self.instance_toggles = _INSTANCE_TOGGLES
            self.extras.set_instance_extras(enable_toggles=list(_INSTANCE_TOGGLES))
        self.instance = helpers.get_wgpu_instance()
        self.process_events = functools.partial(c.lib.wgpuInstanceProcessEvents, self.instance)
        self.work_done = c.lib.wgpuQueueOnSubmittedWorkDone
        errors = functools.partial(PendingErrors, api.error_handler)
        self.pending: list[object] = api.error_handler.pending
        self.functions = NativeFunctions(api, c.ffi, c.lib, c.ffi.new, errors)
        # wgpudawn's own callbacks are functions of Python. These are for any wait: whether it is over, Dawn says.
        self.callback_mode, note = c.lib.WGPUCallbackMode_WaitAnyOnly, new_note()
        self.done, self.mapped = (
            c.ffi.callback(f"void({status}, WGPUStringView, void *, void *)", storing(note))
            for status in ("WGPUQueueWorkDoneStatus", "WGPUMapAsyncStatus")
        )

    def is_over(self, wait: Any, timeout_ns: int = 0) -> bool:
        """Wait for at most so long; return whether what is waited for is over."""
        self.lib.wgpuInstanceWaitAny(self.instance, 1, wait, timeout_ns)
        return bool(wait.completed)

    def fence(self, device: wgpu.GPUDevice) -> Any:
        """Return what is over when all is done that was submitted before."""
        info = self.ffi.new("WGPUQueueWorkDoneCallbackInfo *", {"mode": self.callback_mode, "callback": self.done})
        future = self.work_done(cast(Any, device.queue)._internal, info[0])
        self.pending.clear()  # of a lost device, which is over: whoever waits asks for that
        return self.ffi.new("WGPUFutureWaitInfo *", {"future": future})


def _adopt(api: Any, errors: dict[str, type[Exception]]) -> None:
    """Make the classes of wgpudawn subclasses of wgpu-py's with the same name."""
    names = cast(dict[str, Any], vars(api)).copy()
    for name, own in names.items():
        theirs = getattr(wgpu, name, None) if name.startswith("GPU") else None
        if isinstance(own, type) and isinstance(theirs, type) and own.__module__ == api.__name__:
            own.__bases__ = (*own.__bases__, theirs)
    for kind, error in errors.items():  # those that are raised are the classes below
        errors[kind] = getattr(api, error.__name__, error)


@functools.lru_cache(maxsize=1)
def _native() -> _Native:
    return _Native()


def version() -> str:
    """Return the version of the Python package, and of Dawn."""
    return _native().version


def switches(device: wgpu.GPUDevice) -> dict[str, bool]:
    """Return which of Dawn's toggles were set for a device, by this library or by whoever asked for it."""
    return {**_native().instance_toggles, **device.__dict__.get(_TOGGLES_OF, {})}


def subgroup_matrices(device: wgpu.GPUDevice) -> list[SubgroupMatrices]:
    """Return the kinds of matrices that subgroups of a device multiply."""
    if MATRICES not in device.features:
        return []
    found = _native().extras.get_adapter_properties(device.adapter).get("subgroup_matrix_configs", [])
    return [
        SubgroupMatrices(each["component_type"], each["result_component_type"], each["m"], each["n"], each["k"])
        for each in found
    ]


def prepare() -> None:
    """Load the engine."""
    _native()


def adapters() -> list[wgpu.GPUAdapter]:
    """Return the adapters of this machine, in the engine's order."""
    return _native().gpu.enumerate_adapters_sync()


def features_of(thing: wgpu.GPUAdapter | wgpu.GPUDevice) -> set[str]:
    """Return the features of an adapter or a device, by wgpu's names where it has them."""
    features: set[str] = set(thing.features)
    if "timestamp-query" in features and _native().instance_toggles.get("allow_unsafe_apis"):
        features.add(_ENCODER_STAMPS)
    return features | {ours for ours, theirs in _FEATURES.items() if theirs in features}


def request_device(
    adapter: wgpu.GPUAdapter, label: str, features: Sequence[str], toggles: Mapping[str, bool]
) -> wgpu.GPUDevice:
    """Make a device with some features, by wgpu's names, the adapter's limits, and some of Dawn's toggles."""
    wanted = [_FEATURES.get(name, name) for name in features if name != _ENCODER_STAMPS]
    if _THREADS in adapter.features:
        wanted.append(_THREADS)
    known = [name for name, each in _native().extras.all_toggles().items() if each["stage"] == "device"]
    for name in toggles:
        if name not in known:
            close = difflib.get_close_matches(name, known, 3)
            raise AdapterError(f"Dawn has no toggle {name!r} of a device; known is {' or '.join(close) or known}")
    chosen = {**_TOGGLES, **toggles}
    on_off = tuple([name for name, is_on in chosen.items() if is_on is wished] for wished in (True, False))
    if _USED in adapter.__dict__:  # Dawn makes one device of each; another look finds the same one again
        same = (other for other in adapters() if dict(other.info) == dict(adapter.info))
        adapter = next(same, adapter)
    adapter.__dict__[_USED] = True
    promise = cast(Any, adapter)._request_device_async(label, wanted, {}, None, "", toggles=on_off)
    device: Any = promise.sync_wait()
    device._features = features_of(device) - ({_ENCODER_STAMPS} - set(features))
    device.__dict__[_TOGGLES_OF] = chosen
    return device


def check_lives(device: wgpu.GPUDevice) -> None:
    """Raise wgpu.GPUError if a device is lost: Dawn goes on as if it were not."""
    _native().process_events()
    promise: Any = getattr(device, "_lost_promise", None)
    if promise is not None and promise._state != "pending":
        raise wgpu.GPUError(f"device lost: {promise.sync_wait().message}")


def polled(device: wgpu.GPUDevice) -> bool | None:
    """Whether all submitted work is done, without waiting and without checks; None if that is unknown."""
    native, record = _native(), device.__dict__
    fence = record.get(_FENCE)
    if fence is not None and not native.is_over(fence):
        return False
    # Work may have been submitted since, by anybody: only a new fence knows.
    try:
        fence = native.fence(device)
    except (AttributeError, TypeError):  # the device was released meanwhile
        return None
    native.process_events()
    is_over = native.is_over(fence)
    record[_FENCE] = None if is_over else fence
    return is_over


def blocking_wait(
    device: wgpu.GPUDevice,
) -> tuple[str, Callable[[wgpu.GPUDevice, Callable[[], bool]], Callable[[], object]]]:
    """Return the name of a way to wait, and what makes the call that blocks until the queue is idle."""
    return "on_submitted_work_done", _wait_for_fence


def _wait_for_fence(device: wgpu.GPUDevice, is_over: Callable[[], bool]) -> Callable[[], object]:
    native = _native()
    fence = native.fence(device)

    def wait() -> None:
        while not native.is_over(fence, _LOOK_AGAIN_NS) and not is_over():
            pass

    return wait


def map_idle(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, mode: str, offset: int, size: int) -> None:
    """Map a buffer that no work uses any more, as wgpudawn does; after an exception it is not to be used again."""
    native, its = _native(), cast(Any, buffer)
    flag = native.lib.WGPUMapMode_Read if mode == "READ" else native.lib.WGPUMapMode_Write
    info = native.ffi.new("WGPUBufferMapCallbackInfo *", {"mode": native.callback_mode, "callback": native.mapped})
    its._map_state = "pending"
    with native.functions.errors():
        future = native.lib.wgpuBufferMapAsync(its._internal, flag, offset, size, info[0])
        wait = native.ffi.new("WGPUFutureWaitInfo *", {"future": future})
        while not native.is_over(wait, _LOOK_AGAIN_NS):
            check_lives(device)
    if native.lib.wgpuBufferGetMapState(its._internal) != native.lib.WGPUBufferMapState_Mapped:
        check_lives(device)
        raise wgpu.GPUError(f"a buffer of {buffer.size} bytes was not mapped")
    its._mapped_status = offset, offset + size, flag
    its._mapped_memoryviews = []
    its._map_state = "mapped"


def native_functions() -> NativeFunctions | None:
    """Return the C functions that encode and submit."""
    return _native().functions


def tick_period_ns(device: wgpu.GPUDevice) -> float:
    """Return the nanoseconds per tick of a timestamp: Dawn resolves queries to nanoseconds, as WebGPU says."""
    return 1.0


def write_timestamp(
    encoder: wgpu.GPUCommandEncoder | wgpu.GPUComputePassEncoder, query_set: wgpu.GPUQuerySet, index: int
) -> None:
    """Write a timestamp at the current place of an encoder, or of an open pass."""
    cast(Any, encoder)._write_timestamp(query_set, index)


def checks_of_all(device: wgpu.GPUDevice, wanted: ShaderChecks | None) -> ShaderChecks | None:
    """Return the run-time checks of all modules of a device: Dawn has one switch, for both kinds and a whole device."""
    return "none" if switches(device).get("disable_robustness") else "all"


def create_module(device: wgpu.GPUDevice, label: str, code: str, checks: ShaderChecks) -> wgpu.GPUShaderModule:
    """Compile WGSL with the run-time checks of the device."""
    return device.create_shader_module(label=label, code=code)
