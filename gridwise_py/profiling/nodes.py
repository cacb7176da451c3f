"""What a profile keeps while it is open: the host's steps as a tree, and what each gave the GPU to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import TimingNotReady
from ..runtime.event import Event
from ..storage.chrome_trace import ChromeTrace, GpuSlice
from ..timing.queries import TimingSession


@dataclass(eq=False)  # a span that ends is taken off its stack by identity
class Node:
    """A part of the host's time with what is in it, or something that the GPU did, of which `begin_ns` is None.

    `source` has the stamps of the GPU's work: the number of a session's span, or the events around it.
    """

    name: str
    kind: str
    begin_ns: int | None = None
    end_ns: int | None = None
    args: dict[str, Any] = field(default_factory=dict)
    shapes: str | None = None
    allocated_bytes: int = 0
    children: list[Node] = field(default_factory=list)
    source: tuple[TimingSession, int] | tuple[Event, Event] | None = None

    @property
    def cpu_ns(self) -> int | None:
        """Time of the host until now, or until it ended; None for work of the GPU."""
        if self.begin_ns is None:
            return None
        return (self.end_ns if self.end_ns is not None else time.perf_counter_ns()) - self.begin_ns

    def gpu_ns(self) -> float | None:
        """Return the time of the GPU's work; None where there is none (yet)."""
        ticks = self.ticks()
        return None if ticks is None else (ticks[1] - ticks[0]) * ticks[2]

    def ticks(self) -> tuple[int, int, float] | None:
        """Return begin, end and period; None where there is no time (yet)."""
        if self.source is None:
            return None
        first, second = self.source
        try:
            if isinstance(first, TimingSession):
                assert isinstance(second, int)
                begin_span = end_span = first.spans()[second]
                begin, end = begin_span.begin_ticks, end_span.end_ticks
            else:
                assert isinstance(second, Event)
                begin_span, end_span = first.stamps(), second.stamps()
                begin, end = begin_span.end_ticks, end_span.begin_ticks
        except TimingNotReady:
            return None
        if not begin_span.valid or not end_span.valid or end < begin:
            return None
        return begin, end, begin_span.tick_period_ns

    def add_to(self, trace: ChromeTrace, lane: tuple[int, int]) -> None:
        """Add the host's part, and what is in it, to the host's lane of a trace."""
        cpu_ns = self.cpu_ns
        if self.begin_ns is None or cpu_ns is None:
            return
        args = {**self.args, "shapes": self.shapes, "allocated_bytes": self.allocated_bytes or None}
        trace.slice(lane, self.name, self.begin_ns, cpu_ns, args, self.kind)
        for child in self.children:
            child.add_to(trace, lane)

    def gpu_slices(self, lane: tuple[int, int]) -> Iterator[tuple[GpuSlice, float]]:
        """Yield what it gave the GPU to do, with the period of its ticks."""
        submit = next((child for child in self.children if child.name == "submit"), self)
        flow = None if self.kind == "root" or submit.begin_ns is None else (lane, submit.begin_ns)
        for child in self.children:
            ticks = child.ticks()
            if ticks is not None:
                begin, end, period_ns = ticks
                yield GpuSlice(child.name, begin, end, child.args, child.kind, flow), period_ns
            yield from child.gpu_slices(lane)
