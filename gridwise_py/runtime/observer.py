"""The protocol by which the runtime tells an open profile what happens. It knows nothing else of profiles."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

import wgpu

from ..planning.plan import Plan
from ..timing.queries import TimingSession


class Observed(Protocol):
    """A span while it is open."""

    shapes: str | None


class Recordable(Protocol):
    """A bound call, as far as observers need it."""

    @property
    def bound_plan(self) -> Any:
        """The plan on its buffers, a `BoundPlan`."""
        ...

    def shapes(self) -> str:
        """Return names, lengths and datatypes of the arguments."""
        ...


class Observer(Protocol):
    """Is told what calls do on a device, of whichever thread; `Profile` is one.

    An encoder of None stands for an encoder that the work made and submits by itself.
    """

    def span(self, name: str, kind: str, **args: Any) -> contextlib.AbstractContextManager[Observed]:
        """Return a context in which everything belongs to a span of the host."""
        ...

    def past_step(self, name: str, begin_ns: int, end_ns: int) -> None:
        """Add a step of the host that has already happened."""
        ...

    def copies(
        self, encoder: wgpu.GPUCommandEncoder, name: str, kind: str, moved_bytes: int | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """Return a context in which everything that is recorded on an encoder is one piece of the GPU's work."""
        ...

    def kernels(
        self,
        plan: Plan,
        session: TimingSession | None,
        first: int,
        trials: int,
        encoder: wgpu.GPUCommandEncoder | None,
    ) -> None:
        """Add the kernels of a plan, whose spans in the session begin at `first`."""
        ...

    def record_primitive(
        self, name: str, call: Recordable, encoder: wgpu.GPUCommandEncoder, trials: int, timing: TimingSession | None
    ) -> None:
        """Record a bound primitive on a caller's encoder."""
        ...

    def times_kernels(self, encoder: wgpu.GPUCommandEncoder | None) -> bool:
        """Whether kernels get timestamps although the caller asked for none."""
        ...

    def allocated(self, size_bytes: int) -> None:
        """Count memory of the GPU that the current span has taken."""
        ...


def step(
    observer: Observer | None,
    name: str,
    encoder: wgpu.GPUCommandEncoder | None = None,
    moved_bytes: int | None = None,
) -> contextlib.AbstractContextManager[Any]:
    """Return a context that makes a step of the host a span; with `encoder`, a copy that is recorded on it."""
    if observer is None:
        return contextlib.nullcontext()
    if encoder is None:
        return observer.span(name, "host")
    return observer.copies(encoder, name, "copy", moved_bytes)
