"""What a profile keeps while it is open: the host's steps as a tree, and what each gave the GPU to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import TimingNotReady
from ..runtime.event import Event
from ..timing.chrome_trace import ChromeTrace, GpuSlice
from ..timing.queries import TimingSession
from .report import Record


@dataclass
class GpuWork:
    """Something the GPU did, once its stamps are known."""

    label: str
    kind: str
    args: dict[str, Any]
    source: tuple[TimingSession, int] | tuple[Event, Event] | None

    @property
    def shapes(self) -> str | None:
        """Its workgroup counts, where they are known."""
        workgroups = self.args.get("workgroups")
        return None if workgroups is None else " × ".join(str(count) for count in workgroups) + " workgroups"

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


@dataclass(eq=False)  # a span that ends is taken off its stack by identity
class Node:
    """A part of the host's time, and what it gave the GPU to do."""

    name: str
    kind: str
    begin_ns: int
    end_ns: int | None = None
    args: dict[str, Any] = field(default_factory=dict)
    shapes: str | None = None
    allocated_bytes: int = 0
    gpu: list[GpuWork] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    def record(self) -> Record:
        """Return it for the table; waits for what is not done."""
        return Record(
            self.name, self.kind, self._end() - self.begin_ns, None, self.shapes, self.allocated_bytes, self.records()
        )

    def records(self) -> tuple[Record, ...]:
        """Return what is in it for the table."""
        found = [child.record() for child in self.children]
        for work in self.gpu:
            ticks = work.ticks()
            gpu_ns = None if ticks is None else (ticks[1] - ticks[0]) * ticks[2]
            found.append(Record(work.label, work.kind, None, gpu_ns, work.shapes))
        return tuple(found)

    def _end(self) -> int:
        return self.end_ns if self.end_ns is not None else time.perf_counter_ns()

    def add_to(self, trace: ChromeTrace, lane: tuple[int, int]) -> None:
        """Add it and what is in it to the host's lane of a trace."""
        args = {**self.args, "shapes": self.shapes, "allocated_bytes": self.allocated_bytes or None}
        trace.slice(lane, self.name, self.begin_ns, self._end() - self.begin_ns, args, self.kind)
        for child in self.children:
            child.add_to(trace, lane)

    def gpu_slices(self, lane: tuple[int, int]) -> Iterator[tuple[GpuSlice, float]]:
        """Return what it gave the GPU to do, with the period of its ticks."""
        submit = next((child for child in self.children if child.name == "submit"), self)
        for work in self.gpu:
            ticks = work.ticks()
            if ticks is not None:
                begin, end, period_ns = ticks
                flow = (lane, submit.begin_ns) if self.kind != "root" else None
                yield GpuSlice(work.label, begin, end, work.args, work.kind, flow), period_ns
        for child in self.children:
            yield from child.gpu_slices(lane)
