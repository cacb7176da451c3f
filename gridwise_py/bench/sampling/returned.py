"""What a function of a user returned after it submitted: its timestamps, and the devices that it used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import wgpu

from ... import Array, ChunkedArray, Event, Run, SequenceRun, Span, TimingResult, TimingSession
from ...errors import ArgumentError
from ...internals import context_of, queue_uses

# What holds timestamps.
Stamped: TypeAlias = Run[Any] | SequenceRun | TimingResult | TimingSession
_TIMED = Run, SequenceRun


@dataclass(frozen=True)
class Moments:
    """The stamps of events, which may be recorded again before they are read."""

    sessions: tuple[TimingSession, ...]

    def span(self) -> Span:
        """Return what is between the last stamp of the first and the first stamp of the last."""
        spans = sorted((session.spans()[0] for session in self.sessions), key=lambda span: span.begin_ticks)
        return Span("between events", spans[0].end_ticks, spans[-1].begin_ticks, spans[0].tick_period_ns)


def doubts_of(timings: Iterable[Stamped | Moments]) -> list[str]:
    """Return why valid times are to be doubted."""
    results = [part.get_timing_result() if isinstance(part, _TIMED) else part for part in timings]
    return [text for result in results if isinstance(result, TimingResult) for text in result.warnings]


def _parts(returned: object) -> Iterable[object]:
    """Yield the objects that a call returned, also from lists, tuples and dicts."""
    if isinstance(returned, Mapping):
        returned = list(cast(Mapping[object, object], returned).values())
    if isinstance(returned, (list, tuple)):
        for part in cast(Sequence[object], returned):
            yield from _parts(part)
    else:
        yield returned


class UsedDevices:
    """Finds the devices whose queues a callable uses, from now on; `given` is one that it uses for certain."""

    def __init__(self, given: wgpu.GPUDevice | None):
        self._given = [] if given is None else [given]
        self._returned: list[wgpu.GPUDevice] = []
        self._before = WeakKeyDictionary(queue_uses())
        for device in (*self._before, *self._given):
            context_of(device).watch_queue()

    def used(self) -> list[wgpu.GPUDevice]:
        """Return them."""
        used = [device for device, uses in queue_uses().items() if uses != self._before.get(device, 0)]
        return list(dict.fromkeys((*self._given, *self._returned, *used)))

    def first(self, returned: object) -> wgpu.GPUDevice:
        """Return one of them, after a first call, which returned something."""
        for part in _parts(returned):
            of = next(iter(cast(Run[Any], part).outputs.values()), None) if isinstance(part, Run) else part
            if isinstance(of, (Array, ChunkedArray, TimingSession, Event)):
                self._returned.append(of.device)
        used = self.used()
        if used:
            return used[0]
        raise ArgumentError(
            f"there is nothing to wait for: the callable, which returned {type(returned).__name__}, used no device "
            f"that this library knows. If it submits to one by itself, give device=; what computes on the CPU alone, "
            f"time with timeit"
        )


def timings_of(returned: object) -> list[Stamped | Moments] | None:
    """Return the results with timestamps among those that a call returned."""
    found: list[Stamped | Moments] = []
    moments: list[TimingSession | None] = []
    for part in _parts(returned):
        if isinstance(part, _TIMED):
            run = cast("Run[Any] | SequenceRun", part)
            if run.measurement is not None:
                found.append(run)
        elif isinstance(part, (TimingResult, TimingSession)):
            found.append(part)
        elif isinstance(part, Event):
            moments.append(part.session)
    sessions = tuple(session for session in moments if session is not None)
    if len(sessions) != len(moments) or len(moments) == 1:
        raise ArgumentError(
            "a call returned one event, or one without time; for its GPU span return two, one recorded before the work "
            "and one after it, made with enable_timing=True"
        )
    if sessions:
        found.append(Moments(sessions))
    return found or None


def spans_of(timings: Iterable[Stamped | Moments] | None) -> list[Span]:
    """Return all pairs of timestamps of a call; waits for them."""
    spans: list[Span] = []
    for part in timings or ():
        if isinstance(part, Moments):
            spans.append(part.span())
        elif isinstance(part, TimingSession):
            spans += part.spans()
        else:
            spans += part.get_timing_result().spans if isinstance(part, _TIMED) else part.spans
    return spans
