"""The limit of waits for the GPU, and the last submissions for the message of a timeout."""

from __future__ import annotations

from typing import Any

from .. import settings
from ..errors import DeviceTimeoutError
from .device_state import state_of


def timeout_s(device: Any) -> float | None:
    """Return the limit of waits for a device: the one given when it was made, else that of the environment."""
    state = state_of(device)
    if not state.timeout_is_fixed:
        set_timeout_s(device, settings.timeout_s())  # the environment is read once per device
    return state.timeout_s


def set_timeout_s(device: Any, seconds: float | None) -> None:
    """Set the limit of waits for a device; None for no limit."""
    state = state_of(device)
    state.timeout_s = seconds
    state.timeout_is_fixed = True


def timed_out(device: Any, limit_s: float) -> DeviceTimeoutError:
    """Return the exception for a wait that took too long."""
    last = ", ".join(state_of(device).submissions) or "none of this library"
    return DeviceTimeoutError(
        f"the GPU is still at work after {limit_s:g} s ({device.adapter.info['device']}). The last submissions, the "
        f"newest at the end: {last}. Nothing is lost: wait again, with a larger GRIDWISE_TIMEOUT_S or "
        f"request_device(timeout_s=) if the work needs its time, or make a new device if it hangs"
    )
