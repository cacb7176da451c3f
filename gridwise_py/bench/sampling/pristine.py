"""Copies of arguments on the GPU, to restore them from before each trial, and after a check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import wgpu

from ... import Array
from ...errors import ArgumentError, OverlapError
from ...internals import check_usable
from ..cases.mode import Mode
from .subjects import Subject


def to_restore(subject: Subject, mode: Mode, restore: Iterable[str] | None) -> tuple[str, ...]:
    """Return the arguments that are restored before each trial; by default those that it reads first and changes then.

    Raises
    ------
    ArgumentError
        If one of `restore` is no argument.
    OverlapError
        If the mode repeats the work without a pause.
    """
    if restore is None:
        names = subject.in_place
    else:
        names = (restore,) if isinstance(restore, str) else tuple(restore)
    for name in names:
        if name not in subject.arrays:
            raise ArgumentError(
                f"restore names {name!r}, which {subject.name} does not have; it has {', '.join(subject.arrays)}"
            )
    if names and mode is Mode.BATCH:
        raise OverlapError(
            f"{subject.name}: mode 'batch' repeats the work without a pause, but {', '.join(names)} must be put "
            f"back before each trial; use mode 'hot', or an output of its own"
        )
    return names


def fill(arrays: Iterable[Array], filler: int) -> None:
    """Let each byte of Arrays be a filler."""
    for array in arrays:
        array.copy_from(np.full(array.nbytes, filler, np.uint8).view(array.dtype).reshape(array.shape))


class Pristine:
    """Copies of arguments on the GPU, to restore them from; an error that leaves it as a context does so."""

    def __init__(self, device: wgpu.GPUDevice, arrays: Sequence[Array | wgpu.GPUBuffer]):
        self._device = device
        usage = wgpu.BufferUsage
        #: Copies, the buffers that they are of, and where in these they begin, in bytes.
        self._copies: list[tuple[wgpu.GPUBuffer, wgpu.GPUBuffer, int]] = []
        encoder = device.create_command_encoder()
        for given in arrays:
            array = Array(given, "u32") if isinstance(given, wgpu.GPUBuffer) else given
            for use in ("COPY_SRC", "COPY_DST"):
                check_usable(array, use, "restore= or check=")
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

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is not None:
            self.put_back()

    def restore(self, encoder: wgpu.GPUCommandEncoder) -> None:
        """Record the commands that restore all of them."""
        for copy, buffer, begin in self._copies:
            encoder.copy_buffer_to_buffer(copy, 0, buffer, begin, copy.size)

    def put_back(self) -> None:
        """Restore all of them now."""
        if self._copies:
            encoder = self._device.create_command_encoder()
            self.restore(encoder)
            self._device.queue.submit([encoder.finish()])
