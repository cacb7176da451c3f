"""The engine wgpu: wgpu-py on wgpu-native and naga. Its private names that this library uses, each with a fallback.

wgpu-py 0.32 has no working public call for three things that this library needs: waiting until the queue is idle, the
length of a timestamp's tick, and shader modules with fewer checks. A fourth use is for speed: the types of its C
structures. The only other modules that use private names of wgpu-py are `fork_guard`, which keeps a fork from releasing
its parent's objects, and the fast paths, `raw_commands` and, of this engine alone, `mapped_memory`.
"""

# Private names are what this file is for.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import importlib
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import wgpu

from ..errors import AdapterError
from ..settings import ShaderChecks
from ..types.capabilities import SubgroupMatrices
from .internals import made_of_internals
from .native_functions import NativeFunctions, SlotErrors

NAME = "wgpu"
LANGUAGE = "naga"
LOGGER = "wgpu"
HAS_MAPPED_MEMORY = True
HAS_TICKS = True
# WGPUShaderRuntimeChecks of wgpu.h: BoundsChecks is 1, ForceLoopBounding 2.
_RUNTIME_CHECKS: Mapping[ShaderChecks, int] = {"none": 0, "bounds": 1}
_PAUSE_S = 0.0001  # between the polls of a helper that does not block


def version() -> str:
    """Return the version of the Python package."""
    return wgpu.__version__


def switches(device: wgpu.GPUDevice) -> dict[str, bool]:
    """Return which of the engine's own switches were set for a device: it has none."""
    return {}


def subgroup_matrices(device: wgpu.GPUDevice) -> list[SubgroupMatrices]:
    """Return the kinds of matrices that subgroups of a device multiply: naga has none."""
    return []


def prepare() -> None:
    """Load the engine, and have cffi parse its types quickly."""
    importlib.import_module("wgpu.backends.auto")  # as the search for adapters would do
    parse_types_alone()


def adapters() -> list[wgpu.GPUAdapter]:
    """Return the adapters of this machine, in the engine's order."""
    return wgpu.gpu.enumerate_adapters_sync()


def features_of(thing: wgpu.GPUAdapter | wgpu.GPUDevice) -> set[str]:
    """Return the features of an adapter or a device, by wgpu's names, which this library uses."""
    return set(thing.features)


def request_device(
    adapter: wgpu.GPUAdapter, label: str, features: Sequence[str], toggles: Mapping[str, bool]
) -> wgpu.GPUDevice:
    """Make a device with some features, by wgpu's names, and the adapter's limits."""
    if toggles:
        raise AdapterError(f"toggles={dict(toggles)}, but wgpu has no toggles; omit them, or use engine='dawn'")
    # wgpu-py gives a device the adapter's limits unless told otherwise, unlike WebGPU in a browser.
    return adapter.request_device_sync(label=label, required_features=list(features))


def check_lives(device: wgpu.GPUDevice) -> None:
    """Raise wgpu.GPUError if a device is lost: on such a one nothing can be made."""
    device.create_buffer(label="gridwise lost?", size=4, usage=wgpu.BufferUsage.COPY_DST)


def blocking_wait(
    device: wgpu.GPUDevice,
) -> tuple[str, Callable[[wgpu.GPUDevice, Callable[[], bool]], Callable[[], object]]] | None:
    """Return the name of a way to wait, and what makes the call that blocks until the queue is idle; None without one.

    What makes it takes the device, and a function that says whether the device was destroyed meanwhile.
    """
    if polled(device) is None:
        return None
    if device.adapter.info["backend_type"] == "Metal":
        # wgpu 29 may wait for ever there for a command buffer that the system's watchdog has ended.
        return "device_poll", lambda device, is_over: functools.partial(_poll_with_pauses, device, is_over)
    return "device_poll", lambda device, _is_over: _blocking_poll(device)


def map_idle(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, mode: str, offset: int, size: int) -> None:
    """Map a buffer that no work uses any more, where `mapped_memory` cannot."""
    cast(Any, buffer).map_sync("READ_NOSYNC" if mode == "READ" else mode, offset, size)


def _blocking_poll(device: wgpu.GPUDevice) -> Callable[[], object]:
    from wgpu.backends.wgpu_native import ffi, lib

    return functools.partial(lib.wgpuDevicePoll, device._internal, True, ffi.NULL)


def _poll_with_pauses(device: wgpu.GPUDevice, is_over: Callable[[], bool]) -> None:
    while polled(device) is False and not is_over():
        time.sleep(_PAUSE_S)


def polled(device: wgpu.GPUDevice) -> bool | None:
    """Whether all submitted work is done, without waiting and without checks; None if that is unknown."""
    native = _native_poll()
    if native is None:
        return None
    poll, null = native
    try:
        # wgpu-py drops the result of its own poll. The C function returns one byte, in a wider register.
        return bool(poll(device._internal, False, null) & 1)
    except AttributeError:
        return None


def _find_functions() -> NativeFunctions:
    from wgpu.backends.wgpu_native import _api, _helpers, ffi, lib

    handler: Any = _api.error_handler
    errors = functools.partial(SlotErrors, handler._per_thread_data, handler._get_proxy_stack, _helpers.ERROR_TYPES)
    backend: Any = cast(Any, ffi)._backend
    return NativeFunctions(_api, ffi, lib, backend.newp, errors)


@functools.lru_cache(maxsize=1)
def native_functions() -> NativeFunctions | None:
    """Return the C functions that encode and submit; None where wgpu-py is organised differently."""
    return made_of_internals(_find_functions)


def _find_poll() -> tuple[Callable[..., int], Any]:
    from wgpu.backends.wgpu_native import ffi, lib

    return lib.wgpuDevicePoll, ffi.NULL


@functools.lru_cache(maxsize=1)
def _native_poll() -> tuple[Callable[..., int], Any] | None:
    """Return the C function and its last argument, looked up once: waits that poll call it again and again."""
    return made_of_internals(_find_poll)


def write_timestamp(
    encoder: wgpu.GPUCommandEncoder | wgpu.GPUComputePassEncoder, query_set: wgpu.GPUQuerySet, index: int
) -> None:
    """Write a timestamp at the current place of an encoder, or of an open pass.

    The device has ``timestamp-query-inside-encoders``, or ``timestamp-query-inside-passes``.
    """
    from wgpu.backends.wgpu_native.extras import write_timestamp as write

    write(encoder, query_set, index)


def tick_period_ns(device: wgpu.GPUDevice) -> float:
    """Return the nanoseconds per tick of a timestamp: wgpu-native resolves queries to ticks, unlike WebGPU."""
    try:
        from wgpu.backends.wgpu_native import lib

        return float(lib.wgpuQueueGetTimestampPeriod(device.queue._internal))
    except (ImportError, AttributeError):
        # A backend that follows the WebGPU specification resolves to nanoseconds.
        return 1.0


def checks_of_all(device: wgpu.GPUDevice, wanted: ShaderChecks | None) -> ShaderChecks | None:
    """Return the run-time checks of all modules of a device; None: each has those that it asks for."""
    try:
        from wgpu.backends.wgpu_native import _api

        _ = _api.libf.wgpuDeviceCreateShaderModuleTrusted, _api.new_struct_p, _api.to_c_string_view
    except (ImportError, AttributeError):
        return "all"  # another version of wgpu-py
    return wanted


def create_module(device: wgpu.GPUDevice, label: str, code: str, checks: ShaderChecks) -> wgpu.GPUShaderModule:
    """Compile WGSL with the run-time checks that are named."""
    if checks == "all":
        return device.create_shader_module(label=label, code=code)
    # wgpu-py has no wrapper for modules with fewer checks. libf is lib with wgpu-py's error check around each call:
    # without it a broken text would only be logged.
    from wgpu.backends.wgpu_native import _api, ffi, lib

    source = _api.new_struct_p("WGPUShaderSourceWGSL *", code=_api.to_c_string_view(code))
    source[0].chain.sType = lib.WGPUSType_ShaderSourceWGSL
    descriptor = _api.new_struct_p(
        "WGPUShaderModuleDescriptor *",
        nextInChain=ffi.cast("WGPUChainedStruct *", source),
        label=_api.to_c_string_view(label),
    )
    create = _api.libf.wgpuDeviceCreateShaderModuleTrusted
    return _api.GPUShaderModule(label, create(device._internal, descriptor, _RUNTIME_CHECKS[checks]), device)


def parse_types_alone() -> bool:
    """Have cffi parse the name of a C type without all other names; return whether that works.

    cffi puts a line for each type that it knows, some 500, before each text that it parses for the first time: 12 to 30
    ms for each of about 60 types, over half a second in the first calls of a process. Only the names in the text matter
    to how it is parsed. If cffi or wgpu-py are organised differently, all stays as it was. The native backend must have
    been loaded.
    """
    try:
        parser = sys.modules["wgpu.backends.wgpu_native"].ffi._parser
        declarations, parse = parser._declarations, parser._parse
    except (KeyError, AttributeError):
        return False
    if "_parse" in vars(parser):
        return True

    def parse_alone(source: str) -> Any:
        names = [f"typedef {word}" for word in re.findall(r"\w+", source)]
        # cffi holds its lock meanwhile. What the names stand for is looked up afterwards, among all.
        parser._declarations = {name: declarations[name] for name in names if name in declarations}
        try:
            return parse(source)
        finally:
            parser._declarations = declarations

    parser._parse = parse_alone
    return True
