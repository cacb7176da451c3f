"""Optional observers of clocks, power, temperature and memory, as the driver reports them.

NVIDIA's is the extra ``nvidia`` (the package nvidia-ml-py). The Linux drivers of AMD and Intel GPUs tell theirs in
files of sysfs, which everybody may read (`backend/sysfs_observers.py`). Observers are never asked during timed work,
and have no thread. If nothing can be observed, the result is empty.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from .clock import is_nvidia
from .gpu import EnergySensor, Gpu, Observe, pci_address
from .sysfs_observers import sysfs_gpus

__all__ = ["Gpu", "Observe", "gpus_like", "pci_address"]

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


def gpus_like(info: Mapping[str, Any]) -> list[Gpu]:
    """Return the GPUs that an adapter may be, as their driver knows them: several of one model cannot be told apart.

    Parameters
    ----------
    info : mapping
        The adapter's ``info``, of wgpu.
    """
    return _nvidia_gpus(info) if is_nvidia(info) else sysfs_gpus(info)


@functools.lru_cache(maxsize=1)
def _nvml() -> Any:
    """Return the module pynvml, initialised once per process, or None."""
    try:
        pynvml: Any = importlib.import_module("pynvml")  # of an extra, so that a type checker need not have it
        pynvml.nvmlInit()
    except Exception:  # not installed, no driver, no permission: no reason is one to stop a measurement
        return None
    return pynvml


def _nvidia_gpus(info: Mapping[str, Any]) -> list[Gpu]:
    name = str(info["device"])
    nvml = _nvml()
    if nvml is None:
        return []
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        same = [handle for handle in handles if _text(nvml.nvmlDeviceGetName(handle)).casefold() in name.casefold()]
    except Exception:
        return []
    of_each = functools.partial
    return [
        Gpu(
            _pci(nvml, handle),
            of_each(_look, nvml, handle),
            of_each(_used, nvml, handle),
            of_each(_sensor, nvml, handle),
        )
        for handle in same
    ]


def _pci(nvml: Any, handle: Any) -> str | None:
    try:
        return pci_address(_text(nvml.nvmlDeviceGetPciInfo(handle).busId))
    except Exception:  # as for all that a GPU may not report
        return None


def _used(nvml: Any, handle: Any) -> int | None:
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
    except Exception:
        return None


def _sensor(nvml: Any, handle: Any) -> EnergySensor | None:
    """Return the counter of energy, which GPUs since Volta have, or else the power."""

    def told(function: str) -> float | None:
        try:
            return getattr(nvml, function)(handle) / 1000  # mJ, mW
        except Exception:  # as for all that a GPU may not report
            return None

    functions: tuple[tuple[Literal["counter", "power"], str], ...] = (
        ("counter", "nvmlDeviceGetTotalEnergyConsumption"), ("power", "nvmlDeviceGetPowerUsage"),
    )  # fmt: skip
    for kind, function in functions:
        if told(function) is not None:
            return EnergySensor(f"NVML's {function}", kind, functools.partial(told, function))
    return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _look(nvml: Any, handle: Any) -> dict[str, Any]:
    questions: dict[str, Callable[[], Any]] = {
        "sm_clock_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(handle, _CLOCK_SM)),
        "max_sm_clock_mhz": lambda: int(nvml.nvmlDeviceGetMaxClockInfo(handle, _CLOCK_SM)),
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
