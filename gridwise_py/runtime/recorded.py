"""Devices that record what they are asked to do, with capabilities of any device: no GPU is needed."""

from __future__ import annotations

import functools
from typing import Any

import wgpu

from ..backend.device_state import state_of
from ..backend.recording import make_device, refuse_reading
from ..settings import SHADER_CHECKS, ShaderChecks
from ..types.capabilities import Capabilities
from .context import context_of
from .transfers import Transfers, as_bytes


class _Checked(set[Any]):
    """Has everything: what is computed nowhere needs no check."""

    def __contains__(self, item: object) -> bool:
        return True


class _Written(Transfers):
    """Has the queue write all items, and reads none."""

    def upload(self, device: Any, buffer: Any, offset_bytes: int, items: Any, observer: Any = None) -> None:
        state_of(device).uses += 1
        device.queue.write_buffer(buffer, offset_bytes, as_bytes(items))

    download = refuse_reading


def recording_device(capabilities: Capabilities, checks: ShaderChecks | None = None) -> wgpu.GPUDevice:
    """Return a device that records, and computes nothing.

    Parameters
    ----------
    capabilities : Capabilities
        What it answers from, with a verdict on look-back: it runs no self-test.
    checks : {"none", "bounds", "all"}, optional
        Of all shaders.
    """
    device = make_device(capabilities)
    context, state = context_of(device), state_of(device)
    context.memory.closed = True  # each Array gets a buffer of its own, whose writes are its own
    context.transfers = _Written(context.memory)
    context.checked_operators = _Checked()
    context.cached("capabilities", lambda: capabilities)
    context.cached("arithmetic faults", dict[str, Any])
    state.shader_checks = checks or state.shader_checks
    for level in SHADER_CHECKS if checks is None else ():
        context.cached(("shader checks", level), functools.partial(recording_device, capabilities, level))
    return device
