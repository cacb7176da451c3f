"""Kernels of this library that are no primitives: ``shaders/NAME.wgsl`` with one writable buffer, and no arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import wgpu

from ..planning.plan import Binding, BufferSpec, Kernel, Plan, Shader, Work
from ..planning.shaders import compose, sha256
from .context import context_of
from .executor import BoundPlan

#: Of types that not every device has.
_FEATURES = {
    "f16": ("shader-f16",), "f64": ("shader-f64",), "u64": ("shader-int64", "shader-int64-atomic-all-ops"),
}  # fmt: skip


@lru_cache(maxsize=64)
def _own_plan(
    name: str,
    size_bytes: int,
    workgroups: int,
    constants: tuple[tuple[str, int], ...],
    owned: bool,
    datatype: str | None = None,
) -> Plan:
    text = compose(f"{name}.wgsl", **({} if datatype is None else {"datatype": datatype}))
    key = sha256(text)
    spec = BufferSpec("buffer", "scratch" if owned else "argument", size_bytes)
    kernel = Kernel(name, key, (Binding(0, "buffer", "read_write"),), (workgroups, 1, 1), dict(constants))
    shader = Shader(text, features=_FEATURES.get(datatype or "", ()))
    return Plan(name, (spec,), (kernel,), {key: shader}, Work(0, 0, 0))


def own_plan(
    name: str,
    size_bytes: int,
    workgroups: int = 1,
    constants: Mapping[str, int] | None = None,
    *,
    owned: bool = True,
    datatype: str | None = None,
) -> Plan:
    """Return the plan of ``shaders/NAME.wgsl``, which has one writable buffer of `size_bytes`."""
    return _own_plan(name, size_bytes, workgroups, tuple(sorted((constants or {}).items())), owned, datatype)


def bind_own(
    device: wgpu.GPUDevice,
    name: str,
    size_bytes: int,
    workgroups: int = 1,
    constants: Mapping[str, int] | None = None,
    *,
    datatype: str | None = None,
) -> BoundPlan:
    """Return such a kernel, ready to be encoded; its buffer is small and stays with the device."""
    plan = own_plan(name, size_bytes, workgroups, constants, datatype=datatype)
    return context_of(device).executor.bind(plan, {})


def bind_nothing(device: wgpu.GPUDevice) -> BoundPlan:
    """Return a kernel of one workgroup that does nothing: an empty pass has no times on Metal."""
    return bind_own(device, "canary", 256, constants={"ROUNDS": 0})
