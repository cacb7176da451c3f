"""Recording on a caller's encoder: what is checked before, and what is looked at when it is submitted."""

from __future__ import annotations

import wgpu

from ..backend.device_errors import device_error, is_trouble
from ..backend.queues import device_of, encoder_fate, guard_queue
from ..backend.raw_commands import check_open
from ..errors import ArgumentError, BufferUsageError
from ..timing.queries import TimingSession


def check_encoder(name: str, encoder: wgpu.GPUCommandEncoder, device: wgpu.GPUDevice) -> None:
    """Raise where nothing can be recorded on a caller's encoder.

    Raises
    ------
    ArgumentError
        If it is something else, such as a pass, or is finished.
    BufferUsageError
        If it is of another device.
    """
    if not isinstance(encoder, wgpu.GPUCommandEncoder):
        raise ArgumentError(
            f"{name}: encoder must be a wgpu.GPUCommandEncoder, not {type(encoder).__name__}; where you have a pass, "
            f"end it, and record on its encoder before the pass or after it"
        )
    owner = device_of(encoder)
    if owner is not None and owner is not device:
        raise BufferUsageError(
            f"{name}: the encoder is of another device ({owner.adapter.info['device']}, device {owner.uid}) than the "
            f"primitive ({device.adapter.info['device']}, device {device.uid}); make it with "
            f"primitive.device.create_command_encoder()"
        )
    try:
        check_open(encoder)
    except wgpu.GPUError as error:
        if is_trouble(error):
            raise device_error(error, name) from error
        raise ArgumentError(
            f"{name}: the encoder is finished; record before encoder.finish(), or on a new one from "
            f"device.create_command_encoder() ({' '.join(str(error).split())})"
        ) from error


def watch_submission(
    encoder: wgpu.GPUCommandEncoder,
    named_notes: tuple[tuple[list[bool], str], ...],
    device: wgpu.GPUDevice,
    leases: tuple[object, ...] = (),
) -> None:
    """Have the submission of a caller's encoder refused if a buffer is destroyed until then.

    Parameters
    ----------
    encoder : wgpu.GPUCommandEncoder
    named_notes : tuple of (list of bool, str)
        For each buffer the note of its end, and what messages call it.
    device : wgpu.GPUDevice
    leases : tuple of Lease
        Of all memory that the commands use: nobody else gets it until they are submitted, or gone.
    """
    encoder_fate(encoder).needs(named_notes, leases)
    guard_queue(device)


def check_session(name: str, session: TimingSession, device: wgpu.GPUDevice) -> None:
    """Raise where a caller's session cannot time passes of a device."""
    if not isinstance(session, TimingSession):
        raise ArgumentError(
            f"{name}: timing must be a TimingSession, not {type(session).__name__}; "
            f"gridwise_py.timing_helper(device).session() makes one"
        )
    if session.device is not device:
        raise ArgumentError(
            f"{name}: the timing session is of another device than the primitive; make it with "
            f"gridwise_py.timing_helper(primitive.device).session()"
        )
