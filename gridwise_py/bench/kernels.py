"""The instrument's own kernels: the canary, the flush of the caches, and what calibration runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import wgpu

from ..context import context_of
from ..executor import BoundPlan, BufferRange
from ..plan import Binding, BufferSpec, Kernel, Plan, Shader, Work
from ..shaders import compose, sha256

__all__ = ["bind_canary", "bind_flush", "bind_own", "own_plan"]

_FLUSH_WORKGROUPS = 4096


@lru_cache(maxsize=64)
def _own_plan(name: str, size_bytes: int, workgroups: int, constants: tuple[tuple[str, int], ...], owned: bool) -> Plan:
    text = compose(f"{name}.wgsl")
    key = sha256(text)
    spec = BufferSpec("buffer", "scratch" if owned else "argument", size_bytes)
    kernel = Kernel(name, key, (Binding(0, "buffer", "read_write"),), (workgroups, 1, 1), dict(constants))
    return Plan(name, (spec,), (kernel,), {key: Shader(text, trusted=True)}, Work(0, 0, 0))


def own_plan(
    name: str, size_bytes: int, workgroups: int = 1, constants: Mapping[str, int] | None = None, *, owned: bool = True
) -> Plan:
    """Return the plan of ``shaders/NAME.wgsl``, which has one writable buffer of `size_bytes`."""
    return _own_plan(name, size_bytes, workgroups, tuple(sorted((constants or {}).items())), owned)


def bind_own(
    device: wgpu.GPUDevice, name: str, size_bytes: int, workgroups: int = 1, constants: Mapping[str, int] | None = None
) -> BoundPlan:
    """Return such a kernel, ready to be encoded; its buffer is small and stays with the device."""
    return context_of(device).executor.bind(own_plan(name, size_bytes, workgroups, constants), {})


def bind_canary(device: wgpu.GPUDevice) -> BoundPlan:
    """Return the canary: a fixed chain of dependent operations, whose time tells the clock."""
    return bind_own(device, "canary", 256)


def bind_flush(device: wgpu.GPUDevice, size_bytes: int) -> tuple[BoundPlan, wgpu.GPUBuffer]:
    """Return the flush of the caches, and its buffer, which the caller holds as long as it is needed."""
    usage = wgpu.BufferUsage
    size_bytes = max(16, size_bytes // 16 * 16)
    buffer = device.create_buffer(label="gridwise flush", size=size_bytes, usage=usage.STORAGE | usage.COPY_SRC)
    workgroups = max(1, min(_FLUSH_WORKGROUPS, size_bytes // (16 * 256)))
    plan = own_plan("flush", size_bytes, workgroups, owned=False)
    return context_of(device).executor.bind(plan, {"buffer": BufferRange(buffer, 0, size_bytes)}), buffer
