"""Sequence: calls that were captured, and are replayed as one, as CUDA graphs are."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import abc
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import wgpu

from .. import settings
from ..backend.device_errors import device_errors
from ..backend.fork_guard import check_process
from ..backend.raw_commands import RawCommands, reordered
from ..call_errors import explained
from ..errors import ArgumentError
from ..planning.plan import Kernel, Plan, Work
from ..timing.queries import GpuTiming, TimingSession
from .arguments import ParsedCall
from .batch import ReservedSpans, encode_in_order, prepare, recording
from .bound_call import BoundCall
from .chunked_array import check_usable, parts
from .context import DeviceContext, context_of
from .device import default_device
from .encodable import Encodable, Spans
from .encoders import check_encoder, check_session, watch_submission
from .encoding_order import StepUse, barriers, in_levels, marked, reaches
from .executor import BoundPlan, Executor, encode_steps, pass_count
from .observer import Observer
from .run import Measurement, Timed, launch
from .runnable import ASYNC_REMEDIES, PLAIN, Asked, Runnable, to_the_end

#: Calls that move so many bytes are submitted before the rest of a sequence is encoded: the GPU is busy with them for
#: longer than a submission takes the CPU (H200: 64 MiB at least 15 µs, often several times that).
_AHEAD_BYTES = 64 << 20
#: A call that moves so many bytes keeps the GPU busy by itself: nothing is moved past it, so that what it leaves in the
#: GPU's cache is read from there.
_ALONE_BYTES = 24 << 20
#: Of memory that a sequence takes so that calls of one plan can run side by side.
_MOST_APART_BYTES = 256 << 20


#: Copies of a plan's scratch: so many calls of it run side by side.
_MOST_COPIES = 16


class _Scratch:
    """The copies of the scratch of one plan, of which the first is the executor's."""

    def __init__(self, first: BoundPlan):
        self._copies: list[BoundPlan] = [first]
        self._users: list[int] = [0]  # of each copy, as the bits of a number
        self._bound: dict[tuple[int, int], BoundPlan] = {}

    def bound(
        self, executor: Executor, bound: BoundPlan, number: int, before: int, may_grow: bool
    ) -> tuple[BoundPlan, int]:
        """Return the plan on a call's arguments, with scratch that only calls `before` use, and the bytes it took."""
        users, copies, new_bytes = self._users, self._copies, 0
        place = next((k for k, of_copy in enumerate(users) if not of_copy & ~before), len(users))
        if place == len(users) and not (may_grow and place < _MOST_COPIES):
            place = min(range(place), key=lambda k: users[k].bit_length())  # the one whose last user is furthest back
        if place == len(users):
            copies.append(executor.apart(bound))
            users.append(0)
            new_bytes = sum(lease.buffer.size for lease in bound.leases)
            self._bound[id(bound), place] = copies[place]
        users[place] |= 1 << number
        if place == 0:
            return bound, 0
        found = self._bound.get((id(bound), place))
        if found is None:
            found = self._bound[id(bound), place] = executor.apart(bound, copies[place])
        return found, new_bytes


def _is_alone(call: BoundCall[Any], trials: int) -> bool:
    return call.plan.work.moved_bytes * trials >= _ALONE_BYTES


def _with_own_scratch(calls: abc.Sequence[tuple[BoundCall[Any], int]], context: DeviceContext) -> list[BoundPlan]:
    """Return the calls' plans, with other scratch where one would wait for another for its sake only."""
    uses: list[StepUse] = []
    for call, trials in calls:
        bound, own = call.bound_plan, {buffer.uid for buffer in call.bound_plan.own_buffers.values()}
        steps = bound.uses
        writes = frozenset[int]().union(*(use.writes for use in steps)) - own
        reads = frozenset[int]().union(*(use.reads for use in steps)) - own - writes
        uses.append(marked(StepUse(reads, writes), alone=_is_alone(call, trials)))
    result: list[BoundPlan] = []
    scratch: dict[int, _Scratch] = {}
    left_bytes = _MOST_APART_BYTES
    for i, ((call, _), before) in enumerate(zip(calls, reaches(uses), strict=True)):
        bound = call.bound_plan
        if bound.leases:
            known = scratch.setdefault(id(bound.plan), _Scratch(bound))
            size_bytes = sum(lease.buffer.size for lease in bound.leases)
            bound, taken_bytes = known.bound(context.executor, bound, i, before, size_bytes <= left_bytes)
            left_bytes -= taken_bytes
        result.append(bound)
    return result


class _InEncodedOrder:
    """Gives kernels the timestamps that they would get in the order of their calls."""

    inside: bool = True

    def __init__(self, timing: Spans, labels: abc.Sequence[str], order: abc.Iterable[int]):
        spans = [timing.span(label) for label in labels]
        self._spans = iter([spans[i] for i in order])
        self._timing = timing

    def span(self, _label: str, /) -> dict[str, object]:
        return next(self._spans)

    def shared_pass(self, label: str, /) -> dict[str, object]:
        return self._timing.shared_pass(label)


class _Captured:
    """Calls in order, as one; `Encodable`.

    Without timing, and with timestamps inside of passes, independent calls are encoded side by side, by `side_by_side`:
    the plans of the calls, with scratch that they need not share. Where each kernel is timed by itself they come one
    after the other.
    """

    def __init__(
        self, calls: abc.Sequence[tuple[BoundCall[Any], int]], side_by_side: abc.Sequence[BoundPlan],
        call_labels: abc.Sequence[str],
    ):  # fmt: skip
        self.calls: tuple[tuple[BoundCall[Any], int], ...] = tuple(calls)
        self.call_labels: tuple[str, ...] = tuple(call_labels)  # "" of a call without
        self._side_by_side = tuple(side_by_side)
        self._ran = False
        bound = [(plan, trials) for plan, (_, trials) in zip(side_by_side, calls, strict=True)]
        used = [(use, trials) for plan, trials in bound for use in plan.uses]
        uses = [use for use, _ in used]
        alone = [_is_alone(call, trials) for call, trials in self.calls for _ in call.bound_plan.steps]
        order = in_levels(uses, alone)
        repeats = sum(trials - 1 for use, trials in used if use.writes and not use.is_transfer)
        self.barriers: int = barriers(uses, order) + repeats
        raw = [(plan.raw, trials) for plan, trials in bound if plan.raw is not None]
        by_c = raw and len(raw) == sum(bool(plan.steps) for plan, _ in bound)
        self.raw: RawCommands | None = reordered(raw, order) if by_c else None
        labels = [plan.labels_within(one) for one, (plan, _) in zip(call_labels, bound, strict=True)]
        self.labels: tuple[str, ...] = tuple(label for of_call in labels for label in of_call)
        steps = [(step, trials) for plan, trials in bound for step in plan.steps]
        self._steps = tuple(None if i is None else steps[i] for i in order)
        numbers = {i: k for k, i in enumerate(i for i, use in enumerate(uses) if not use.is_transfer)}
        self._dispatches = tuple(numbers[i] for i in order if i in numbers)
        self.pass_count: int = pass_count(None if step is None else step[0] for step in self._steps)
        self.cost: int = sum(plan.cost * trials for plan, trials in bound)
        names = [label or call.name for label, (call, _) in zip(call_labels, self.calls, strict=True)]
        self.title: str = f"Sequence of {len(names)} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"
        kernels = (kernel for plan, _ in bound for kernel in plan.plan.kernels)
        self.kernels = tuple(replace(kernel, label=label) for kernel, label in zip(kernels, self.labels, strict=True))
        used = {
            id(part.lease.buffer): (part.lease.destroyed, part, f"{call.name}'s {name}")
            for call, _ in reversed(self.calls)  # named after its first use
            for name, value in call.arrays.items()
            for part in parts(value)
        }
        self._used = tuple(used.values())
        self.named_notes = tuple((flag, name) for flag, _, name in self._used)
        own = (lease for plan in (*side_by_side, *(call.bound_plan for call, _ in calls)) for lease in plan.leases)
        #: Of all memory that its commands use.
        self.leases = (*(array.lease for _, array, _ in self._used), *own)

    def begins(self) -> bool:
        """As `BoundPlan.begins`, of all calls."""
        if self._ran:
            return False
        self._ran = True
        return any([call.bound_plan.begins() for call, _ in self.calls])

    def pieces(self) -> tuple[_Captured, ...]:
        """Return what is submitted one after the other: the calls that keep the GPU busy meanwhile, and the rest."""
        moved_bytes = 0
        for k, (call, trials) in enumerate(self.calls[:-1], 1):
            moved_bytes += call.bound_plan.plan.work.moved_bytes * trials
            if moved_bytes >= _AHEAD_BYTES:
                first, rest = slice(k), slice(k, None)
                return tuple(
                    _Captured(self.calls[part], self._side_by_side[part], self.call_labels[part])
                    for part in (first, rest)
                )
        return (self,)

    def check(self) -> None:
        """Raise BufferUsageError if a buffer was destroyed, or is mapped."""
        for destroyed, array, name in self._used:
            if destroyed[0] or array.lease.buffer.map_state != "unmapped":
                check_usable(array, None, f"a Sequence, {name}")

    def encode(self, encoder: wgpu.GPUCommandEncoder, *, trials: int = 1, timing: Spans | None = None) -> None:
        for _ in range(trials):
            if timing is not None and timing.inside:
                encode_steps(encoder, self._steps, _InEncodedOrder(timing, self.labels, self._dispatches))
            elif timing is not None:
                encode_in_order(encoder, [(call.bound_plan, each, timing) for call, each in self.calls])
            elif self.raw is None or not self.raw.record(encoder, 1):
                encode_steps(encoder, self._steps, None)

    def run_blocking(self, device: wgpu.GPUDevice, *, trials: int, timing: TimingSession | None) -> None:
        for _ in range(trials):
            for call, each in self.calls:
                call.bound_plan.run_blocking(device, trials=each, timing=timing)


class _CaptureRecorder:
    """Takes the calls of one thread while they are captured."""

    __slots__ = ("__weakref__", "_context", "call_labels", "calls", "label")

    def __init__(self, context: DeviceContext):
        self._context = context
        self.calls: list[tuple[BoundCall[Any], int]] = []
        self.call_labels: list[str] = []
        self.label = ""

    def before_queue_use(self, doing: str) -> None:
        raise ArgumentError(
            f"inside of gw.capture() nothing is uploaded, read, submitted or waited for ({doing}), since none of the "
            f"captured calls has run yet; do it before the block, or after it and sequence.execute()"
        )

    def takes(
        self,
        name: str,
        observer: Observer | None,
        enable_gpu_timing: GpuTiming,
        enable_cpu_timing: bool,
        launch_blocking: bool,
    ) -> bool:
        if enable_gpu_timing or enable_cpu_timing:
            raise ArgumentError(
                f"{name}: a call that is captured does not run yet, so there is nothing to time; give "
                f"{'enable_gpu_timing' if enable_gpu_timing else 'enable_cpu_timing'}=True to sequence.execute()"
            )
        return True

    def add(
        self, name: str, commands: Encodable, trials: int, arrays: object, spans: ReservedSpans | None = None
    ) -> None:
        if isinstance(commands, _Captured):
            self.calls += commands.calls
            self.call_labels += (self.label or label for label in commands.call_labels)
            return
        assert isinstance(arrays, ParsedCall)
        assert isinstance(commands, BoundPlan)
        call: BoundCall[Any] = BoundCall(name, self._context, self._context.device, arrays, commands, False)
        self.calls.append((call, trials))
        self.call_labels.append(self.label)


class SequenceRun(Timed):
    """One replay of a `Sequence`.

    Attributes
    ----------
    title : str
    """

    __slots__ = ("title",)

    def __init__(self, title: str, measurement: Measurement | None):
        super().__init__(measurement)
        self.title: str = title

    def __repr__(self) -> str:
        return f"SequenceRun({self.title})"


class Sequence(Runnable):
    """Calls that were captured once, for replays; `capture` makes it.

    A replay runs all calls with the arguments and options that they were captured with. It reads what the arrays hold
    by then, and overwrites the outputs.
    """

    name = "Sequence"
    _instead = "capture the calls there, with gw.capture()"

    def __init__(self, context: DeviceContext):
        self._context, self._device = context, context.device
        self._launch_blocking = settings.launch_blocking()
        self._captured: _Captured | None = None
        self._pieces: tuple[_Captured, ...] = ()
        self._submitting = threading.Lock()
        self._why_empty = "its `with` block has not ended, or ended with an exception"

    def _set(self, recorder: _CaptureRecorder) -> None:
        calls = recorder.calls
        self._captured = _Captured(calls, _with_own_scratch(calls, self._context), recorder.call_labels)
        self._pieces = self._captured.pieces()

    @contextlib.contextmanager
    def label(self, label: str) -> Generator[None]:
        """Give the calls that are captured inside of a ``with`` block a label, in place of their kernels' own.

        Tables of times show it. Of a call with several kernels their own labels follow.

        Raises
        ------
        ArgumentError
            If nothing is captured into the sequence.
        """
        recorder = self._context.recorder()
        if not isinstance(recorder, _CaptureRecorder) or self._captured is not None:
            raise ArgumentError(
                f"label({label!r}): labels are for calls that are captured; use it inside of gw.capture()"
            )
        if not isinstance(label, str) or not label:
            raise ArgumentError(f"label({label!r:.60}): a label is a str of at least one character")
        before, recorder.label = recorder.label, label
        try:
            yield
        finally:
            recorder.label = before

    @property
    def labels(self) -> tuple[str, ...]:
        """What its kernels are called, in order."""
        return self._ready().labels

    def _ready(self) -> _Captured:
        captured = self._captured
        if captured is None:
            raise ArgumentError(f"this Sequence cannot run: {self._why_empty}; capture the calls again")
        captured.check()
        return captured

    @property
    def calls(self) -> tuple[tuple[BoundCall[Any], int], ...]:
        """Its calls in order."""
        return self._ready().calls

    @property
    def barriers(self) -> int:
        """How often the GPU waits for all work before it, in one replay.

        By the rules of wgpu. Independent calls are encoded side by side, with scratch memory of their own, and need no
        barrier between them; a kernel that reads what another one writes needs one.
        """
        return self._ready().barriers

    def __len__(self) -> int:
        """Return how many calls it has."""
        return 0 if self._captured is None else len(self._captured.calls)

    @explained()
    def execute(self, *, enable_gpu_timing: GpuTiming = False, enable_cpu_timing: bool = False) -> SequenceRun:
        """Run all calls, without waiting.

        Parameters
        ----------
        enable_gpu_timing : bool or "inside", default False
            As for `Primitive.execute`.
        enable_cpu_timing : bool, default False
            Measure the time from the submission to an idle queue; the queue is idle before.

        Returns
        -------
        SequenceRun
            Its times cover all trials with which calls were captured.

        Raises
        ------
        ArgumentError
            If nothing was captured, or the sequence was released.
        BufferUsageError
            If a buffer that it uses was destroyed, or is mapped.
        """
        check_process()
        asked = Asked(enable_gpu_timing, enable_cpu_timing)
        asked.check(self.name, self.device)
        captured, observer = self._ready(), self._context.observer
        if observer is None:
            return SequenceRun(captured.title, self._run(captured, asked, None))
        with observer.span(self.name, "primitive"):
            return SequenceRun(captured.title, self._run(captured, asked, observer))

    def _submit(
        self,
        work: Encodable,
        asked: Asked,
        session: TimingSession | None,
        cpu: dict[str, Any] | None,
        observer: Observer | None,
    ) -> None:
        # What is timed or watched is one submission.
        pieces = self._pieces if asked == PLAIN and observer is None else (work,)
        with self._submitting:  # pieces of two replays must not take turns
            for piece in pieces:
                launch(self._device, piece, 1, work.title, session, cpu, observer, blocking=self._launch_blocking)

    def _plans(self) -> abc.Sequence[tuple[Plan, int]]:
        return [(call.plan, trials) for call, trials in self._ready().calls]

    def _kernels_and_work(self) -> tuple[abc.Sequence[Kernel], Work | None]:
        return self._ready().kernels, None

    def _given_to_recorders(self) -> tuple[str, object]:
        captured = self._ready()
        return captured.title, captured

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self, *, enable_gpu_timing: GpuTiming = False, enable_cpu_timing: bool = False
    ) -> SequenceRun:
        """Like `execute`, without blocking the event loop; returns when the work is done."""
        execute = functools.partial(
            self.execute, enable_gpu_timing=enable_gpu_timing, enable_cpu_timing=enable_cpu_timing
        )
        return await to_the_end(self.device, execute)

    @explained()
    def record(self, encoder: wgpu.GPUCommandEncoder, *, timing: TimingSession | None = None) -> None:
        """Record all calls on an encoder, without submitting.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
        timing : TimingSession, optional
            As for `Primitive.record`.
        """
        check_process()
        check_encoder(self.name, encoder, self.device)
        if timing is not None:
            check_session(self.name, timing, self.device)
        captured = self._ready()
        watch_submission(encoder, captured.named_notes, self.device, captured.leases)
        observer = self._context.observer
        with device_errors(captured.title, self.device):
            if observer is None:
                captured.encode(encoder, timing=timing)
                return
            for call, trials in captured.calls:
                observer.record_primitive(call.name, call, encoder, trials, timing)

    def release(self) -> None:
        """Drop the calls and their arrays. The sequence cannot run afterwards."""
        self._captured, self._pieces, self._why_empty = None, (), "it was released"

    def __repr__(self) -> str:
        captured = self._captured
        return f"Sequence({self._why_empty if captured is None else captured.title})"


@contextlib.contextmanager
def capture(device: wgpu.GPUDevice | None = None) -> Generator[Sequence]:
    """Capture the calls inside of a ``with`` block in a `Sequence`, without running them.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        The calls of this thread on it are captured: primitives, bound calls, functions of Arrays, and sequences.

    Yields
    ------
    Sequence
        Ready when the block has ended, without an exception.

    Raises
    ------
    ArgumentError
        Inside of the block, for what needs the queue, since no captured call has run yet: reads, uploads, events,
        waits, timed calls, submissions of your own, another capture.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.arange(4, dtype=np.uint32), device)
    >>> with gw.capture(device) as sequence:
    ...     total = gw.sum(gw.cumsum(x))
    >>> for start in range(2):
    ...     _ = x.copy_from(np.arange(start, start + 4, dtype=np.uint32))
    ...     _ = sequence.execute()
    ...     print(total.item())
    10
    20
    """
    device = device if device is not None else default_device()
    context = context_of(device)
    if isinstance(context.recorder(), _CaptureRecorder):
        raise ArgumentError(
            "gw.capture() inside of gw.capture(): this thread captures calls of this device already; end that first, "
            "and execute its sequence inside of the next"
        )
    prepare(device)
    sequence, recorder = Sequence(context), _CaptureRecorder(context)
    with recording(context, recorder):
        yield sequence
    sequence._set(recorder)  # pyright: ignore[reportPrivateUsage]  # the two are one mechanism
