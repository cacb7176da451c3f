"""Copies of arguments on the GPU, to restore them from before each trial."""

from __future__ import annotations

import wgpu

from ...runtime.array import Array

__all__ = ["Pristine"]


class Pristine:
    """Copies of arguments on the GPU, to restore them from."""

    def __init__(self, device: wgpu.GPUDevice, arrays: list[Array]):
        usage = wgpu.BufferUsage
        #: Copies, the buffers that they are of, and where in these they begin, in bytes.
        self._copies: list[tuple[wgpu.GPUBuffer, wgpu.GPUBuffer, int]] = []
        encoder = device.create_command_encoder()
        for array in arrays:
            if not array.nbytes:
                continue
            # Whole words: copies go by them, and items of 16 bits may begin or end within one. Nobody else writes the
            # other half between a copy back and the trial that follows it.
            begin = array.offset_bytes // 4 * 4
            size_bytes = -(-(array.offset_bytes + array.nbytes) // 4) * 4 - begin
            copy = device.create_buffer(
                label="gridwise pristine", size=size_bytes, usage=usage.COPY_SRC | usage.COPY_DST
            )
            encoder.copy_buffer_to_buffer(array.lease.buffer, begin, copy, 0, size_bytes)
            self._copies.append((copy, array.lease.buffer, begin))
        device.queue.submit([encoder.finish()])

    def restore(self, encoder: wgpu.GPUCommandEncoder) -> None:
        """Record the commands that restore all of them."""
        for copy, buffer, begin in self._copies:
            encoder.copy_buffer_to_buffer(copy, 0, buffer, begin, copy.size)
