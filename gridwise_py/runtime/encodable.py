"""The protocol of what is encoded and submitted: a bound plan, or the calls of a sequence."""

from __future__ import annotations

from typing import Protocol

import wgpu

from ..backend.raw_commands import RawCommands
from ..timing.queries import TimingSession


class Spans(Protocol):
    """Gives passes their timestamps: a `TimingSession`, or what was reserved in one."""

    @property
    def inside(self) -> bool:
        """Whether the kernels' timestamps are taken inside of passes that they share."""
        ...

    def span(self, label: str, /) -> dict[str, object]:
        """Return the argument ``timestamp_writes`` of the next kernel's pass; the same queries if it is `inside`."""
        ...

    def shared_pass(self, label: str, /) -> dict[str, object]:
        """Return the argument ``timestamp_writes`` of the next pass that kernels share."""
        ...


class Encodable(Protocol):
    """Commands on real buffers, ready to be encoded any number of times."""

    @property
    def raw(self) -> RawCommands | None:
        """The commands for the C functions; None where there are no commands, or no such functions."""
        ...

    @property
    def title(self) -> str:
        """What messages call it."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its dispatches."""
        ...

    @property
    def pass_count(self) -> int:
        """The passes that it has without timing."""
        ...

    @property
    def cost(self) -> int:
        """How much of a batch it is: its dispatches, and the MiB that it moves."""
        ...

    def begins(self) -> bool:
        """Note that it is dispatched now; return whether one of its pipelines never was before."""
        ...

    def encode(self, encoder: wgpu.GPUCommandEncoder, *, trials: int = 1, timing: Spans | None = None) -> None:
        """Record it; with `timing`, each dispatch in a pass of its own, unless that says `inside`."""
        ...

    def run_blocking(self, device: wgpu.GPUDevice, *, trials: int, timing: TimingSession | None) -> None:
        """Submit it step by step, and wait after each."""
        ...
