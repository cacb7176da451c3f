"""Whether a timed call may have run at a low clock: a GPU lowers it when it has nothing to do."""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import wgpu

from ..backend import clock
from ..backend.device_state import state_of
from ..backend.fork_guard import check_process
from ..display.quantities import format_time
from ..errors import GridwiseWarning
from .context import context_of
from .device import default_device
from .gpu_identity import gpu_of, known_gpu_of, pci_of

ClockState: TypeAlias = Literal["held", "not held", "not applicable"]

#: Continuous work after which a GPU has its clock back: 0.2 to 0.4 s on an H200 and an M1.
_RAMP_NS = 500_000_000
#: The clock as the driver tells it this long after the work is still the one of the work.
_FRESH_NS = 20_000_000
#: A clock of at least this share of the highest needs no warning: many GPUs hardly ever reach the highest.
_HIGH = 0.9


@dataclass(frozen=True)
class ClockDoubt:
    """A submission to a GPU that was idle shortly before and whose clock this process does not hold.

    Attributes
    ----------
    device : wgpu.GPUDevice
    submitted_ns : int
        By `time.perf_counter_ns`.
    busy_ns : int
        How long the GPU had been at work before.
    idle_ns : int or None
        How long it had been idle before that; None if this process had not used it.
    """

    device: wgpu.GPUDevice
    submitted_ns: int
    busy_ns: int
    idle_ns: int | None

    def warning(self, span_ns: float | None) -> str | None:
        """Return the warning, once the times are read; None if there is no reason for one.

        Parameters
        ----------
        span_ns : float or None
            How long the GPU worked.
        """
        if (span_ns or 0.0) >= _RAMP_NS:
            return None
        seen: Mapping[str, Any] = {}
        if time.perf_counter_ns() - self.submitted_ns - (span_ns or 0.0) < _FRESH_NS:
            gpu = gpu_of(self.device, may_hold=False)
            seen = {} if gpu is None else gpu.look()
        now_mhz, highest_mhz = seen.get("sm_clock_mhz"), seen.get("max_sm_clock_mhz")
        known = ""
        if now_mhz and highest_mhz:
            if now_mhz >= _HIGH * highest_mhz:
                return None
            known = f" ({now_mhz:,} of {highest_mhz:,} MHz right after the call)"
        idle = "had not been used before" if self.idle_ns is None else f"was idle for {format_time(self.idle_ns)}"
        since = f", {format_time(self.busy_ns)} before the call" if self.busy_ns else ""
        hold = "use gw.hold_clock(), or " if clock.is_nvidia(self.device.adapter.info) else ""
        return (
            f"time up to 3 times too long: the GPU {idle}{since}, and its clock, which is not held, follows the "
            f"load{known}; {hold}keep the GPU busy for 0.5 s before, as gw.measure does"
        )


def clock_doubt(device: wgpu.GPUDevice) -> ClockDoubt | None:
    """Return a doubt about the clock of what was submitted just now; None if the clock is up, or held, or a CPU's."""
    activity = state_of(device).activity
    if activity.begin_ns is None or activity.busy_ns >= _RAMP_NS:
        return None
    if not context_of(device).cached("clock follows load", lambda: _follows_load(device)):
        return None
    if _is_held(device):
        return None
    return ClockDoubt(device, activity.last_ns, activity.busy_ns, activity.idle_ns)


@contextmanager
def clock_held(of: wgpu.GPUDevice | Mapping[str, Any], pci: str | None = None) -> Generator[ClockState]:
    """Hold the clock of a GPU in the block where that is possible; yield whether it is held.

    For commands that measure: unlike `hold_clock`, without a warning about GPUs that cannot be told apart, or about
    lack of memory. "not held" says it.

    Parameters
    ----------
    of : wgpu.GPUDevice or mapping
        A device; or the adapter's ``info`` of one that another process has, with its address.
    pci : str, optional
    """
    device = of if isinstance(of, wgpu.GPUDevice) else None
    info: Mapping[str, Any] = device.adapter.info if device is not None else cast(Mapping[str, Any], of)
    if not (_follows_load(device) if device is not None else info.get("adapter_type") != "CPU"):
        yield "not applicable"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GridwiseWarning)
        held = clock.hold(info, pci=lambda: pci if device is None else pci_of(device))
    try:
        yield "held" if held is not None or (device is not None and _is_held(device)) else "not held"
    finally:
        if held is not None:
            held.release()


@contextmanager
def hold_clock(device: wgpu.GPUDevice | None = None) -> Generator[bool]:
    """Keep an NVIDIA GPU's clock up while it has nothing to do.

    Otherwise calls after a pause take two to three times as long. It costs 0.3 s, 520 MiB of the GPU's memory, and 40
    W.

    ``GRIDWISE_HOLD_CLOCK=1`` does it for each device.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        The default is `default_device()`.

    Yields
    ------
    bool
        Whether the clock is held: not without NVIDIA's CUDA library.

    Warns
    -----
    GridwiseWarning
        If CUDA finds several GPUs of the same name, and it is not certain which it is, or cannot make a context.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> with gw.hold_clock() as held:
    ...     total = gw.sum(np.arange(10, dtype=np.uint32))
    >>> int(total)
    45
    """
    check_process()
    of = device or default_device()
    held = clock.hold(of.adapter.info, pci=lambda: pci_of(of))
    try:
        yield held is not None
    finally:
        if held is not None:
            held.release()


def _is_held(device: wgpu.GPUDevice) -> bool:
    gpu = known_gpu_of(device)
    return clock.is_held(device.adapter.info, pci=None if gpu is None else gpu.pci)


def _follows_load(device: wgpu.GPUDevice) -> bool:
    return device.adapter.info["adapter_type"] != "CPU"
