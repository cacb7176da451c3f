"""The limit of waits for the GPU, and the last submissions for the message of a timeout."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from .. import settings
from ..errors import DeviceTimeoutError
from .device_state import DeviceState, state_of

__all__ = ["note_submission", "set_timeout_s", "timed_out", "timeout_s", "wait_until_idle"]

# For this long the GPU is polled without a pause, which keeps CPU times of short work precise. After that, each pause
# is a sixteenth of the time waited so far, so a wait is at most 6 % too long.
_BUSY_S = 0.002
_LONGEST_PAUSE_S = 0.01


def timeout_s(device: Any) -> float | None:
    """Return the limit of waits for a device: the one given when it was made, else that of the environment."""
    state = state_of(device)
    return state.timeout_s if state.timeout_is_fixed else settings.timeout_s()


def set_timeout_s(device: Any, seconds: float | None) -> None:
    """Set the limit of waits for a device; None for no limit."""
    state = state_of(device)
    state.timeout_s = seconds
    state.timeout_is_fixed = True


def note_submission(state: DeviceState, what: str) -> None:
    """Keep the name of a submission, for the message of a timeout."""
    state.submissions.append(what)


def timed_out(device: Any, limit_s: float) -> DeviceTimeoutError:
    """Return the exception for a wait that took too long."""
    last = ", ".join(state_of(device).submissions) or "none of this library"
    return DeviceTimeoutError(
        f"the GPU is still at work after {limit_s:g} s ({device.adapter.info['device']}). The last submissions, the "
        f"newest at the end: {last}. Nothing is lost: wait again, with a larger GRIDWISE_TIMEOUT_S or "
        f"request_device(timeout_s=) if the work needs its time, or make a new device if it hangs"
    )


def wait_until_idle(
    device: Any, limit_s: float, is_idle: Callable[[], bool | None], wait: Callable[[], object]
) -> None:
    """Poll until a device is idle.

    Parameters
    ----------
    device : wgpu.GPUDevice
    limit_s : float
    is_idle : callable
        Returns whether it is idle, without waiting; None if that is unknown.
    wait : callable
        Waits without a limit. If `is_idle` returns None, this runs in a thread, which is abandoned after a timeout.

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
