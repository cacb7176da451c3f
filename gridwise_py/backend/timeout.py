"""How long to wait for the GPU, and the last submissions, for the message of a timeout."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from .. import settings
from ..errors import DeviceTimeoutError
from .device_state import state_of

__all__ = ["note_submission", "set_timeout_s", "timed_out", "timeout_s", "wait_until_idle"]

# Asking without a pause for that long keeps CPU times of short work fine; after that, a sixteenth of the time waited so
# far is slept, so that a wait is at most 6 % too long.
_BUSY_S = 0.002
_LONGEST_PAUSE_S = 0.01


def timeout_s(device: Any) -> float | None:
    """Return how long is waited for a device: what it was made with, else what the environment says now."""
    state = state_of(device)
    return state.timeout_s if state.timeout_is_fixed else settings.timeout_s()


def set_timeout_s(device: Any, seconds: float | None) -> None:
    """Fix how long is waited for a device; None for without end."""
    state = state_of(device)
    state.timeout_s = seconds
    state.timeout_is_fixed = True


def note_submission(device: Any, what: str) -> None:
    """Keep the name of what is submitted, for the message of a timeout."""
    state_of(device).submissions.append(what)


def timed_out(device: Any, limit_s: float) -> DeviceTimeoutError:
    """Return what to raise when a wait has lasted too long."""
    last = ", ".join(state_of(device).submissions) or "none of this library"
    return DeviceTimeoutError(
        f"the GPU is still at work after {limit_s:g} s ({device.adapter.info['device']}). The last submissions, the "
        f"newest at the end: {last}. Nothing is lost: wait again, with a larger GRIDWISE_TIMEOUT_S or "
        f"request_device(timeout_s=) if the work needs its time, or make a new device if it hangs"
    )


def wait_until_idle(
    device: Any, limit_s: float, is_idle: Callable[[], bool | None], wait: Callable[[], object]
) -> None:
    """Ask until a device is idle.

    Parameters
    ----------
    device : wgpu.GPUDevice
    limit_s : float
    is_idle : callable
        Tells without waiting; None where that cannot be told.
    wait : callable
        Waits without end. Where `is_idle` cannot tell, it is called in a thread, which is left behind in the end.

    Raises
    ------
    DeviceTimeoutError
    """
    begin = time.monotonic()
    while not (idle := is_idle()):
        waited = time.monotonic() - begin
        if idle is None:
            thread = threading.Thread(target=wait, name="gridwise wait", daemon=True)
            thread.start()
            thread.join(limit_s)
            if not thread.is_alive():
                return
            waited = limit_s
        if waited >= limit_s:
            raise timed_out(device, limit_s)
        if waited > _BUSY_S:
            time.sleep(min(waited / 16, _LONGEST_PAUSE_S, limit_s - waited))
