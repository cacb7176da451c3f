"""Kernels for measuring: the canary, the flush of the caches, and those of the calibration."""

from __future__ import annotations

import wgpu

from ...internals import BoundPlan, BufferRange, bind_own, context_of, own_plan

_FLUSH_WORKGROUPS = 4096


def bind_canary(device: wgpu.GPUDevice) -> BoundPlan:
    """Return the canary: a fixed chain of dependent operations, whose time shows the clock."""
    return bind_own(device, "canary", 256)


def bind_flush(device: wgpu.GPUDevice, size_bytes: int) -> tuple[BoundPlan, wgpu.GPUBuffer]:
    """Return the flush of the caches, and its buffer, which the caller must keep alive."""
    usage = wgpu.BufferUsage
    size_bytes = max(16, size_bytes // 16 * 16)
    buffer = device.create_buffer(label="gridwise flush", size=size_bytes, usage=usage.STORAGE | usage.COPY_SRC)
    workgroups = max(1, min(_FLUSH_WORKGROUPS, size_bytes // (16 * 256)))
    plan = own_plan("flush", size_bytes, workgroups, owned=False)
    return context_of(device).executor.bind(plan, {"buffer": BufferRange(buffer, 0, size_bytes)}), buffer
