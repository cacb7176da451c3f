"""Kernels of this library that are no primitives: ``shaders/NAME.wgsl`` with one writable buffer, and no arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from functools import lru_cache
from typing import Any, NamedTuple

import wgpu

from ..backend.queues import write_timestamp
from ..planning.plan import Binding, BufferSpec, Kernel, Plan, Shader, Work
from ..planning.shaders import compose, sha256
from ..timing.queries import TimingSession
from .context import context_of
from .executor import BoundPlan, BufferRange

#: Of types that not every device has.
_FEATURES = {
    "f16": ("shader-f16",), "f64": ("shader-f64",), "u64": ("shader-int64", "shader-int64-atomic-all-ops"),
}  # fmt: skip


class OwnKernel(NamedTuple):
    """The kernel of ``shaders/NAME.wgsl``.

    Attributes
    ----------
    name : str
    size_bytes : int
        Of its buffer.
    workgroups : int
    constants : tuple of (str, int)
    datatype : str or None
        What its template is made for.
    """

    name: str
    size_bytes: int
    workgroups: int = 1
    constants: tuple[tuple[str, int], ...] = ()
    datatype: str | None = None

    def plan(self, *, owned: bool = True) -> Plan:
        """Return its plan; its buffer is scratch, or the argument ``buffer``."""
        return _plan(self, owned)

    def bind(self, device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer | None = None) -> BoundPlan:
        """Return it ready to be encoded, on a buffer, or on a small one that stays with the device."""
        given = {} if buffer is None else {"buffer": BufferRange(buffer, 0, self.size_bytes)}
        return context_of(device).executor.bind(self.plan(owned=buffer is None), given)


@lru_cache(maxsize=64)
def _plan(kernel: OwnKernel, owned: bool) -> Plan:
    text = compose(f"{kernel.name}.wgsl", **({} if kernel.datatype is None else {"datatype": kernel.datatype}))
    key = sha256(text)
    spec = BufferSpec("buffer", "scratch" if owned else "argument", kernel.size_bytes)
    binding = Binding(0, "buffer", "read_write")
    step = Kernel(kernel.name, key, (binding,), (kernel.workgroups, 1, 1), dict(kernel.constants))
    shader = Shader(text, features=_FEATURES.get(kernel.datatype or "", ()))
    return Plan(kernel.name, (spec,), (step,), {key: shader}, Work(0, 0, 0))


#: Does nothing in one workgroup: an empty pass has no times on Metal.
NOTHING = OwnKernel("canary", 256, constants=(("ROUNDS", 0),))


class _HalfSpan:
    """Gives a pass one of the two timestamps of a span."""

    inside: bool = False

    def __init__(self, writes: dict[str, object]):
        self._writes = writes

    def span(self, label: str, /) -> dict[str, object]:
        return self._writes

    def shared_pass(self, label: str, /) -> dict[str, object]:
        raise AssertionError(f"only passes inside share one, and {label!r} is not inside")


@contextlib.contextmanager
def stamped(encoder: wgpu.GPUCommandEncoder, session: TimingSession | None, label: str) -> Generator[None]:
    """Take a timestamp before and after what is recorded in the block, if there is a session.

    Without timestamps between passes, `NOTHING` takes them: the end of its pass before, its begin after.
    """
    if session is None:
        yield
        return
    writes: dict[str, Any] = session.span(label)
    queries, begin, end = (
        writes[key] for key in ("query_set", "beginning_of_pass_write_index", "end_of_pass_write_index")
    )
    if context_of(session.device).timing_helper.stamps_encoders:
        write_timestamp(encoder, queries, begin)
        yield
        write_timestamp(encoder, queries, end)
    else:
        nothing = NOTHING.bind(session.device)
        nothing.encode(encoder, timing=_HalfSpan({"query_set": queries, "end_of_pass_write_index": begin}))
        yield
        nothing.encode(encoder, timing=_HalfSpan({"query_set": queries, "beginning_of_pass_write_index": end}))
