"""Optional observers of clocks, power, temperature and memory, as the driver reports them.

NVIDIA's is the extra ``nvidia`` (the package nvidia-ml-py). It is read before and after each block of samples, never
during timed work, and without a thread. If nothing can be observed, the result is empty.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import wgpu

from ...runtime.context import context_of

__all__ = ["observe"]

# Reasons for which a GPU does not run at its highest clock, as NVML's bits say.
_THROTTLE_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
_CLOCK_SM, _CLOCK_MEMORY, _TEMPERATURE_GPU = 1, 2, 0


def observe(device: wgpu.GPUDevice) -> dict[str, Any]:
    """Return the current observations of a device's GPU.

    Returns
    -------
    dict
        ``sm_clock_mhz``, ``memory_clock_mhz``, ``power_w``, ``temperature_c``, ``memory_used_bytes`` (of the whole GPU,
        by all processes), ``throttle_reasons``. Values that the driver does not report are left out; empty if no
        observer supports the GPU.
    """
    observer = context_of(device).cached("observer of the GPU", lambda: _nvidia_observer(device.adapter.info))
    return observer() if observer is not None else {}


@functools.lru_cache(maxsize=1)
def _nvml() -> Any:
    """Return the module pynvml, initialised once per process, or None."""
    try:
        pynvml: Any = importlib.import_module("pynvml")  # of an extra, so that a type checker need not have it
        pynvml.nvmlInit()
    except Exception:  # not installed, no driver, no permission: no reason is one to stop a measurement
        return None
    return pynvml


def _nvidia_observer(info: Mapping[str, str]) -> Callable[[], dict[str, Any]] | None:
    name = str(info["device"])
    if "nvidia" not in f"{name} {info['vendor']} {info['description']}".casefold():
        return None
    nvml = _nvml()
    if nvml is None:
        return None
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        same = [handle for handle in handles if _text(nvml.nvmlDeviceGetName(handle)).casefold() in name.casefold()]
    except Exception:
        return None
    # wgpu does not say which of several GPUs of one model it uses: no clock is better than a wrong one.
    return functools.partial(_look, nvml, same[0]) if len(same) == 1 else None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _look(nvml: Any, handle: Any) -> dict[str, Any]:
    questions: dict[str, Callable[[], Any]] = {
        "sm_clock_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(handle, _CLOCK_SM)),
        "memory_clock_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(handle, _CLOCK_MEMORY)),
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "temperature_c": lambda: int(nvml.nvmlDeviceGetTemperature(handle, _TEMPERATURE_GPU)),
        "memory_used_bytes": lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used),
        "throttle_reasons": lambda: _reasons(int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))),
    }
    found: dict[str, Any] = {}
    for name, ask in questions.items():
        try:
            found[name] = ask()
        except Exception:  # not every GPU reports everything
            continue
    return found


def _reasons(bits: int) -> list[str]:
    known = [name for bit, name in _THROTTLE_REASONS.items() if bits & bit]
    other = bits & ~sum(_THROTTLE_REASONS)
    return [*known, hex(other)] if other else known
