"""What a device's clock and memory are like, found once and kept: the unit of the tick, floors, ceilings, caches.

Floors are shown beside times and never subtracted from them: a fitted intercept can come out negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import wgpu

from .. import cache
from .._wgpu_native import wait_method
from ..context import context_of
from ..device import device_key
from ..errors import TimingUnavailable
from . import probes
from .probes import TickCheck

__all__ = [
    "Calibration",
    "cache_bytes",
    "calibrate",
    "calibration_of",
    "unit_warnings",
]

_FORMAT = 1  # of the file; another one is not read
_MAX_ARRAY_BYTES = 1 << 30
_MAX_ARRAY_BYTES_CPU = 1 << 25
_BUSY_S = 0.3


@dataclass(frozen=True)
class Calibration:
    """What was found on a device.

    Attributes
    ----------
    device : mapping
        Adapter, driver, backend and versions: what it holds for.
    tick_period_ns, tick_step_ns : float or None
    tick_check : TickCheck
        The unit of the tick against the CPU's clock.
    floors_ns : mapping
        ``empty_pass``, ``further_dispatch``, ``gap_between_passes`` on the GPU's clock, ``submission`` on the CPU's,
        of a kernel of one workgroup that does nothing.
    synchronising_ns : mapping
        ``submit``, ``wait_when_idle``, ``wait_after_work``, ``readback_4_bytes``, on the CPU's clock.
    wait_method : str
    copy, triad : tuple of mapping
        Speeds by size: ``array_bytes``, ``moved_bytes``, ``gbytes_per_s``.
    cache_bytes : int or None
        An upper bound of the last-level cache; None where no knee was seen.
    fma_gflops : float or None
        Multiply-adds in f32, counted as two operations each.
    """

    device: Mapping[str, str]
    tick_period_ns: float
    tick_step_ns: float | None
    tick_check: TickCheck
    floors_ns: Mapping[str, float | None] = field(default_factory=dict)
    synchronising_ns: Mapping[str, float | None] = field(default_factory=dict)
    wait_method: str = ""
    copy: tuple[Mapping[str, float], ...] = ()
    triad: tuple[Mapping[str, float], ...] = ()
    cache_bytes: int | None = None
    fma_gflops: float | None = None

    @property
    def copy_gbytes_per_s(self) -> float | None:
        """The speed of the largest copy: that of memory, where it is larger than the caches."""
        return self.copy[-1]["gbytes_per_s"] if self.copy else None

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON data."""
        check = {**asdict(self.tick_check), "ratio": self.tick_check.ratio, "ok": self.tick_check.ok}
        return {**asdict(self), "tick_check": check}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """Read what `to_dict` wrote."""
        check = TickCheck(float(data["tick_check"]["span_ns"]), float(data["tick_check"]["wall_ns"]))
        values = {name: data[name] for name in cls.__dataclass_fields__}
        return cls(**{**values, "tick_check": check, "copy": tuple(data["copy"]), "triad": tuple(data["triad"])})


# ---- the file


def _load(key: Mapping[str, str]) -> dict[str, Any]:
    """Return what is kept for a device; nothing where the file is missing, broken, or of something else."""
    data = cache.load("calibration", key, _FORMAT)
    kept: dict[str, Any] = {}
    try:
        if data is not None:
            if data.get("tick_check") is not None:
                kept["tick_check"] = TickCheck(**{k: float(v) for k, v in data["tick_check"].items()})
            if data.get("calibration") is not None:
                kept["calibration"] = Calibration.from_dict(data["calibration"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return kept


def _save(key: Mapping[str, str], kept: Mapping[str, Any]) -> None:
    calibration = kept.get("calibration")
    content = {
        "tick_check": asdict(kept["tick_check"]) if "tick_check" in kept else None,
        "calibration": None if calibration is None else calibration.to_dict(),
    }
    cache.save("calibration", key, _FORMAT, content)


def _known(device: wgpu.GPUDevice) -> dict[str, Any]:
    """Return what this process knows of a device, from the file at first."""
    known = device.__dict__.get("_gridwise_calibration")
    if known is None:
        known = device.__dict__["_gridwise_calibration"] = _load(device_key(device))
    return known


def _require_timestamps(device: wgpu.GPUDevice) -> None:
    if not context_of(device).has_timestamps:
        raise TimingUnavailable(
            f"calibrating {device.adapter.info['device']!r} needs timestamps, but the device was made without the "
            f"feature 'timestamp-query'; request_device() of gridwise_py asks for it where the adapter has it"
        )


# ---- what others ask


def tick_check_of(device: wgpu.GPUDevice) -> TickCheck:
    """Return the check of the tick's unit, made once per device and process at most, and kept on disk."""
    known = _known(device)
    if "tick_check" not in known:
        known["tick_check"] = probes.check_tick(device)
        if known["tick_check"].ok:  # a bad one may be an accident of a busy machine: another process tries again
            _save(device_key(device), known)
    return known["tick_check"]


def unit_warnings(device: wgpu.GPUDevice) -> list[str]:
    """Return a warning where a tick is not what the driver says, which makes every GPU time doubtful."""
    check = tick_check_of(device)
    if check.ok:
        return []
    period = context_of(device).timing_helper.tick_period_ns
    return [
        f"the unit of GPU times is doubtful: work of {check.wall_ns * 1e-6:.1f} ms on the CPU's clock reads "
        f"{check.span_ns * 1e-6:.1f} ms by timestamps at {period:g} ns a tick (ratio {check.ratio:.3f}, not within 0.8 "
        f"to 1.02)"
    ]


def calibration_of(device: wgpu.GPUDevice) -> Calibration | None:
    """Return the calibration that is known of a device, without making one."""
    return _known(device).get("calibration")


def cache_bytes(device: wgpu.GPUDevice) -> int | None:
    """Return an upper bound of the last-level cache, where a calibration found one."""
    found = calibration_of(device)
    return None if found is None else found.cache_bytes


def calibrate(
    device: wgpu.GPUDevice,
    *,
    refresh: bool = False,
    max_array_bytes: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Calibration:
    """Find out what a device's clock and memory are like; some seconds the first time, then from disk.

    Parameters
    ----------
    device : wgpu.GPUDevice
    refresh : bool, default False
        Measure again.
    max_array_bytes : int, optional
        Of the largest of three arrays; by default 1 GiB, or what the device binds (32 MiB on a CPU adapter).
    progress : callable
        Called with what comes next.

    Raises
    ------
    TimingUnavailable
        If the device has no timestamps.
    """
    _require_timestamps(device)
    known = _known(device)
    if not refresh and "calibration" in known:
        return known["calibration"]
    capabilities = context_of(device).capabilities
    limits = device.limits
    if max_array_bytes is None:
        max_array_bytes = _MAX_ARRAY_BYTES_CPU if capabilities.is_cpu else _MAX_ARRAY_BYTES
    largest = min(max_array_bytes, limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])
    progress("warm-up")
    probes.keep_busy(device, _BUSY_S)
    progress("unit of the tick")
    known["tick_check"] = check = probes.check_tick(device)
    progress("floors")
    floors = probes.floors_ns(device)
    progress("synchronising")
    synchronising = probes.synchronising_ns(device)
    progress("copy and triad")
    speeds = probes.ceilings(device, largest)
    progress("multiply-adds")
    gflops = probes.fma_gflops(device)
    known["calibration"] = Calibration(
        device=device_key(device),
        tick_period_ns=context_of(device).timing_helper.tick_period_ns,
        tick_step_ns=capabilities.tick_step_ns,
        tick_check=check,
        floors_ns=floors,
        synchronising_ns=synchronising,
        wait_method=wait_method(device),
        copy=tuple(speeds["copy"]),
        triad=tuple(speeds["triad"]),
        cache_bytes=probes.cache_knee_bytes(speeds["copy"]),
        fma_gflops=gflops,
    )
    _save(device_key(device), known)
    return known["calibration"]
