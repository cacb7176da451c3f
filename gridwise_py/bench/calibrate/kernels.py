"""Kernels for measuring: the canary, the flush of the caches, and those of the calibration."""

from __future__ import annotations

import wgpu

from ...internals import BoundPlan, OwnKernel

_FLUSH_WORKGROUPS = 4096
#: A fixed chain of dependent operations, whose time shows the clock.
CANARY = OwnKernel("canary", 256)
#: Does nothing.
NOTHING = CANARY._replace(constants=(("ROUNDS", 0),))


def bind_flush(device: wgpu.GPUDevice, size_bytes: int) -> tuple[BoundPlan, wgpu.GPUBuffer]:
    """Return the flush of the caches, and its buffer, which the caller must keep alive."""
    usage = wgpu.BufferUsage
    size_bytes = max(16, size_bytes // 16 * 16)
    buffer = device.create_buffer(label="gridwise flush", size=size_bytes, usage=usage.STORAGE | usage.COPY_SRC)
    workgroups = max(1, min(_FLUSH_WORKGROUPS, size_bytes // (16 * 256)))
    return OwnKernel("flush", size_bytes, workgroups).bind(device, buffer), buffer
