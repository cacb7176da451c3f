"""Calibration of a device, stored on disk: the unit of the tick, floors, ceilings, caches.

Floors are shown with times and never subtracted from them: a fitted intercept can be negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeAlias, TypedDict, TypeVar, cast

import numpy as np
import wgpu

from ...errors import TimingUnavailable
from ...internals import TuningStore, context_of
from ...storage import cache
from ...storage.checks import find_problem
from ...storage.records import Record, may_lack
from ...storage.schemas import Limits
from ..stats.series import Difference, Positive
from . import probes
from .canary import CLOCK_TOLERANCE
from .probes import Known, TickCheck
from .residency import measure_facts

_FORMAT = 2  # of the file; others are ignored
_MAX_ARRAY_BYTES = 1 << 30
_MAX_ARRAY_BYTES_CPU = 1 << 25
_MAX_RUN_ARRAY_BYTES_CPU = 1 << 26
_MEMORY_ARRAY_BYTES = 1 << 28  # several times the largest cache
_MAX_RUN_SIZES = 12
_BUSY_S = 0.3

_T = TypeVar("_T")
_Times: TypeAlias = Mapping[str, Difference | None]
_Speed = Annotated[Mapping[str, Known], Limits(needs=("array_bytes", "moved_bytes", "gbytes_per_s"))]


@dataclass(frozen=True)
class Calibration(Record):
    """The results of a calibration.

    Attributes
    ----------
    device : mapping
        Adapter, driver, backend and versions that it is valid for.
    tick_period_ns, tick_step_ns : float or None
    tick_check : TickCheck
        The unit of the tick against the CPU's clock.
    floors_ns : mapping
        ``empty_pass``, ``dispatch_in_long_pass``, ``gap_between_passes`` on the GPU's clock, ``submission`` on the
        CPU's, of a kernel of one workgroup that does nothing.
    synchronising_ns : mapping
        ``submit``, ``wait_when_idle``, ``wait_after_work``, ``readback_4_bytes``, on the CPU's clock.
    wait_method : str
    copy, triad : tuple of mapping
        Speeds by size: ``array_bytes``, ``moved_bytes``, ``gbytes_per_s``.
    cache_bytes : int or None
        An upper bound of the last-level cache; None if the speeds show no drop.
    fma_gflops : float or None
        Multiply-adds in f32, counted as two operations each.
    peaks_gops : mapping
        10^9 operations per second of other types, as `probes.peaks_gops` says; empty in earlier calibrations.
    """

    device: Mapping[str, str]
    tick_period_ns: Known
    tick_step_ns: Known | None
    tick_check: TickCheck
    floors_ns: _Times = field(default_factory=dict[str, float | None])
    synchronising_ns: _Times = field(default_factory=dict[str, float | None])
    wait_method: str = ""
    copy: tuple[_Speed, ...] = ()
    triad: tuple[_Speed, ...] = ()
    cache_bytes: Positive | None = None
    fma_gflops: Known | None = None
    peaks_gops: Mapping[str, Known] = field(default_factory=dict[str, float])

    @property
    def copy_gbytes_per_s(self) -> float | None:
        """The speed of the largest copy: that of memory, if the arrays exceed the caches."""
        return self.copy[-1]["gbytes_per_s"] if self.copy else None

    def peak_gbytes_per_s(self, array_bytes: int | None) -> float | None:
        """Return the faster of copy and triad with arrays of about this size; None means the largest."""
        speeds: list[float] = []
        for points in (self.copy, self.triad):
            if points:
                largest = max(point["array_bytes"] for point in points)
                wanted = largest if array_bytes is None else max(array_bytes, 1)
                near = min(points, key=lambda point: abs(math.log(point["array_bytes"] / wanted)))
                speeds.append(near["gbytes_per_s"])
        return max(speeds, default=None)


# ---- the file


@dataclass(frozen=True, kw_only=True)
class _Kept(Record):
    """What is kept of a device on disk."""

    canary_ns: Known | None = may_lack()
    fma_gflops: Known | None = may_lack()
    peaks_gops: Mapping[str, Known] | None = may_lack()
    tick_check: TickCheck | None = may_lack()
    calibration: Calibration | None = may_lack()


class _Known(TypedDict, total=False):
    """The facts about a device that this process knows; those that are missing were not found yet."""

    canary_ns: float
    fma_gflops: float | None
    peaks_gops: dict[str, float]
    tick_check: TickCheck
    calibration: Calibration


def _load(key: Mapping[str, str]) -> _Known:
    """Return the stored calibration of a device; empty if the file is missing, broken, or for another key."""
    data = cache.load("calibration", key, _FORMAT)
    if data is None:
        return {}
    if isinstance(data.get("calibration"), dict):
        # Calibrations from before there were peaks by type are as good as ever.
        data["calibration"].setdefault("peaks_gops", {})
    if find_problem(data, _Kept) is not None:
        return {}
    kept = _Kept.from_json(data)
    found = {name: getattr(kept, name) for name in _Known.__annotations__}
    return cast(_Known, {name: value for name, value in found.items() if value is not None})


def _save(device: wgpu.GPUDevice, kept: _Known) -> None:
    """Store a calibration completely or not at all; an unwritable folder costs only time.

    A failed check of the tick is not stored, so another process tries again: the machine may have been busy.
    """
    stored = _Kept(**kept)
    if stored.tick_check is not None and not stored.tick_check.ok:
        stored = replace(stored, tick_check=None)
    cache.save("calibration", context_of(device).key, _FORMAT, stored.to_json())


def _known(device: wgpu.GPUDevice) -> _Known:
    """Return the calibration that this process knows, at first from the file."""
    context = context_of(device)
    return context.cached("calibration", lambda: _load(context.key))


def _require_timestamps(device: wgpu.GPUDevice) -> None:
    if not context_of(device).has_timestamps:
        raise TimingUnavailable(
            f"calibrating {device.adapter.info['device']!r} needs timestamps, but the device was made without the "
            f"feature 'timestamp-query'; request_device() of gridwise_py asks for it where the adapter has it"
        )


# ---- what others ask


def tick_check_of(device: wgpu.GPUDevice) -> TickCheck:
    """Return the check of the tick's unit, made at most once per device and process, and stored on disk."""
    known = _known(device)
    if "tick_check" not in known:
        known["tick_check"] = probes.check_tick(device)
        _save(device, known)
    return known["tick_check"]


def unit_warnings(device: wgpu.GPUDevice) -> list[str]:
    """Return a warning if a tick is not as long as the driver says: then no GPU time can be trusted."""
    return unit_problems(tick_check_of(device), context_of(device).timing_helper.tick_period_ns)


def unit_problems(check: TickCheck, period_ns: float) -> list[str]:
    """Return the warning of `unit_warnings` about a check of the tick."""
    if check.ok:
        return []
    return [
        f"the unit of GPU times is doubtful: work of {check.wall_ns * 1e-6:.1f} ms on the CPU's clock reads "
        f"{check.span_ns * 1e-6:.1f} ms by timestamps at {period_ns:g} ns a tick (ratio {check.ratio:.3f}, not within "
        f"0.8 to 1.02)"
    ]


def calibration_of(device: wgpu.GPUDevice) -> Calibration | None:
    """Return the known calibration of a device, without making one."""
    return _known(device).get("calibration")


def cache_bytes(device: wgpu.GPUDevice) -> int | None:
    """Return an upper bound of the last-level cache, if a calibration found one."""
    found = calibration_of(device)
    return None if found is None else found.cache_bytes


def fastest_canary_ns(device: wgpu.GPUDevice) -> float | None:
    """Return the fastest canary time known; None on a CPU, where other work on the machine decides it."""
    return None if context_of(device).capabilities.is_cpu else _known(device).get("canary_ns")


def note_canary(device: wgpu.GPUDevice, ns: float) -> None:
    """Store the canary's time of a measurement, if it is the fastest."""
    if context_of(device).capabilities.is_cpu:
        return
    known = _known(device)
    before = known.get("canary_ns")
    if before is None or ns < before:
        known["canary_ns"] = ns
        if before is None or ns < before / (1 + CLOCK_TOLERANCE):  # less is the same clock
            _save(device, known)


def calibrate(
    device: wgpu.GPUDevice,
    *,
    refresh: bool = False,
    max_array_bytes: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Calibration:
    """Calibrate a device: some seconds the first time, then from disk.

    Parameters
    ----------
    device : wgpu.GPUDevice
    refresh : bool, default False
        Measure again.
    max_array_bytes : int, optional
        Size of each of the three largest arrays; by default 1 GiB, or one binding (32 MiB on a CPU adapter).
    progress : callable
        Called with the name of the next step.

    Raises
    ------
    TimingUnavailable
        If the device has no timestamps.
    """
    _require_timestamps(device)
    known = _known(device)
    if not refresh and "calibration" in known:
        stored = known["calibration"]
        if _lacks_peaks(device, stored.peaks_gops):
            progress("peaks by type")
            probes.keep_busy(device, _BUSY_S)
            stored = known["calibration"] = replace(stored, peaks_gops=_peaks_of(device))
            _save(device, known)
        return stored
    if max_array_bytes is None:
        max_array_bytes = _MAX_ARRAY_BYTES_CPU if context_of(device).capabilities.is_cpu else _MAX_ARRAY_BYTES
    sizes = probes.powers_of_two(min(max_array_bytes, _largest_array_bytes(device)))

    def take(step: str, probe: Callable[..., _T], *words: Any) -> _T:
        progress(step)
        return probe(device, *words)

    take("warm-up", probes.keep_busy, _BUSY_S)
    known["tick_check"] = check = take("unit of the tick", probes.check_tick)
    floors = take("floors", probes.floors_ns)
    synchronising = take("synchronising", probes.synchronising_ns)
    speeds = take("copy and triad", probes.ceilings, sizes)
    known["fma_gflops"] = gflops = take("multiply-adds", probes.fma_gflops)
    known["peaks_gops"] = {**known.get("peaks_gops", {}), **take("peaks by type", probes.peaks_gops)}
    known["calibration"] = made = _made(device, check, floors, synchronising, speeds, gflops)
    _save(device, known)
    learn_facts(device, progress)
    return made


def learn_facts(device: wgpu.GPUDevice, progress: Callable[[str], None] = lambda step: None) -> None:
    """Measure what the shapes of kernels depend on, and let primitives that are made from now on have those shapes.

    A CPU adapter, which runs a workgroup per core, has shapes of its own.
    """
    context = context_of(device)
    if context.capabilities.is_cpu or not context.has_timestamps:
        return
    progress("workgroups at once")
    probes.keep_busy(device, _BUSY_S)
    TuningStore(context.key).keep_facts(measure_facts(device))
    context.look_up_tuning()


def _largest_array_bytes(device: wgpu.GPUDevice) -> int:
    limits = device.limits
    return min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"]) // 4 * 4


def _made(
    device: wgpu.GPUDevice,
    check: TickCheck,
    floors: Mapping[str, float | None],
    synchronising: Mapping[str, float | None],
    speeds: Mapping[str, Sequence[Mapping[str, float]]],
    gflops: float | None,
) -> Calibration:
    context = context_of(device)
    return Calibration(
        device=context.key,
        tick_period_ns=context.timing_helper.tick_period_ns,
        tick_step_ns=context.capabilities.tick_step_ns,
        tick_check=check,
        floors_ns=floors,
        synchronising_ns=synchronising,
        wait_method=context.wait_method,
        copy=tuple(speeds["copy"]),
        triad=tuple(speeds["triad"]),
        cache_bytes=probes.cache_knee_bytes(speeds["copy"]),
        fma_gflops=gflops,
        peaks_gops=_known(device).get("peaks_gops", {}),
    )


def _lacks_peaks(device: wgpu.GPUDevice, found: Mapping[str, float]) -> list[str]:
    """Return the peaks that were not measured: by an earlier version, or on a device with fewer features."""
    return [name for name in probes.peaks_of(device) if name not in found]


def _peaks_of(device: wgpu.GPUDevice) -> dict[str, float]:
    """Return the peaks by type, from this process or the file as far as they are known."""
    known = _known(device)
    found = known.get("peaks_gops", {})
    lacking = _lacks_peaks(device, found)
    if lacking:
        known["peaks_gops"] = found = {**found, **probes.peaks_gops(device, lacking)}
        _save(device, known)
    return found


def calibrate_run(device: wgpu.GPUDevice, arrays_bytes: Iterable[int], *, cold: bool = False) -> Calibration | None:
    """Measure the floors, and the ceilings at the sizes of one run, to compare its times with.

    The unit of the tick and the throughput of multiply-adds do not change, and are looked up on disk first. The rest is
    measured now, because shares of a ceiling are valid only at the same clock and temperature.

    Parameters
    ----------
    device : wgpu.GPUDevice
    arrays_bytes : iterable of int
        Sizes of the arrays of the run. The ceilings are measured at up to 12 of them. Instead of a size of which the
        device cannot have three arrays (over 1 GiB, or 64 MiB on a CPU adapter), the largest possible one is used.
    cold : bool
        Whether the speed of memory is also needed: with an array that fits into no cache.

    Returns
    -------
    Calibration or None
        None if the device has no timestamps. ``cache_bytes`` is that of `calibrate`, if known.
    """
    context = context_of(device)
    if not context.has_timestamps:
        return None
    on_cpu = context.capabilities.is_cpu
    largest = min(_MAX_RUN_ARRAY_BYTES_CPU if on_cpu else _MAX_ARRAY_BYTES, _largest_array_bytes(device))
    wanted = list(arrays_bytes)
    if cold:
        wanted.append(_MAX_RUN_ARRAY_BYTES_CPU if on_cpu else _MEMORY_ARRAY_BYTES)
    sizes = sorted({min(max(size // 4 * 4, 4), largest) for size in wanted if size})
    if len(sizes) > _MAX_RUN_SIZES:
        places = np.linspace(0, len(sizes) - 1, _MAX_RUN_SIZES).round().astype(int)
        sizes = [sizes[int(place)] for place in places]
    known = _known(device)
    probes.keep_busy(device, _BUSY_S)
    check = tick_check_of(device)
    if "fma_gflops" not in known:
        known["fma_gflops"] = probes.fma_gflops(device)
        _save(device, known)
    _peaks_of(device)
    speeds = probes.ceilings(device, sizes)
    found = _made(device, check, probes.floors_ns(device), probes.synchronising_ns(device), speeds, known["fma_gflops"])
    return replace(found, cache_bytes=cache_bytes(device))
