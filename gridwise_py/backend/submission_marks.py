"""Detects whether commands on a caller's encoder have been submitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import wgpu

from .device_errors import device_errors
from .device_state import state_of
from .queues import EncoderFate, encoder_fate, map_buffer, submit


class Mark:
    """A word in GPU memory that becomes 1 when an encoder is submitted. `mark_of` returns it."""

    __slots__ = ("buffer", "fate", "seen")

    def __init__(self, device: wgpu.GPUDevice, encoder: wgpu.GPUCommandEncoder):
        usage = wgpu.BufferUsage
        state = state_of(device)
        if state.one is None:
            state.one = device.create_buffer_with_data(
                label="gridwise one", data=np.ones(1, dtype=np.uint32), usage=usage.COPY_SRC
            )
        self.buffer: wgpu.GPUBuffer = device.create_buffer(
            label="gridwise mark", size=4, usage=usage.COPY_SRC | usage.COPY_DST
        )
        encoder.copy_buffer_to_buffer(state.one, 0, self.buffer, 0, 4)
        self.fate: EncoderFate = encoder_fate(encoder)
        self.seen: bool = False


def mark_of(device: wgpu.GPUDevice, encoder: wgpu.GPUCommandEncoder) -> Mark:
    """Return the mark of an encoder of `device`, recording it at the first call."""
    mark = encoder.__dict__.get("_gridwise_mark")
    if mark is None:
        mark = encoder.__dict__["_gridwise_mark"] = Mark(device, encoder)
    return mark


def look(device: wgpu.GPUDevice, marks: Iterable[Mark]) -> None:
    """Read which marks were submitted; waits for submitted work to end."""
    unseen = list({id(mark): mark for mark in marks if not mark.seen}.values())
    if unseen:
        words = read_words(device, [mark.buffer for mark in unseen])
        for mark, word in zip(unseen, words, strict=True):
            mark.seen = bool(word)


def read_words(
    device: wgpu.GPUDevice, buffers: Sequence[wgpu.GPUBuffer], encoder: wgpu.GPUCommandEncoder | None = None
) -> np.ndarray:
    """Submit `encoder`, and return the contents of small buffers as uint32, one after another."""
    with device_errors("reading from the GPU", device):
        encoder = encoder or device.create_command_encoder(label="gridwise read")
        staging = device.create_buffer(
            label="gridwise read",
            size=sum(buffer.size for buffer in buffers),
            usage=wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST,
        )
        offset = 0
        for buffer in buffers:
            encoder.copy_buffer_to_buffer(buffer, 0, staging, offset, buffer.size)
            offset += buffer.size
        submit(device, [encoder.finish()], "read", is_transfer=True)
        map_buffer(device, staging, "READ")
        words = np.frombuffer(staging.read_mapped(copy=False), dtype=np.uint32).copy()
        staging.unmap()
        return words
