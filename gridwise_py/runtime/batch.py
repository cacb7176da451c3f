"""Batches: calls that are held back and submitted together, in order, before anybody can tell."""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import threading
import weakref
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import wgpu

from ..backend.device_errors import check_not_lost, device_error
from ..backend.device_state import Recorder, state_of, submit_pending
from ..backend.fork_guard import check_process, inherited
from ..backend.queues import guard_order, note_work, submit_counted, submit_is_wgpus, wait_in_turn
from ..backend.raw_commands import encode_together, prepared_submission, record_together
from ..timing.queries import GpuTiming, TimingSession
from .context import DeviceContext, context_of
from .device import default_device
from .encodable import Encodable, Spans
from .observer import Observer

#: A batch submits early when the calls of a thread that are held back cost so much: a dispatch costs 1, and so does
#: each MiB that is moved. So the GPU starts while Python goes on, and outputs that nobody holds any more are freed.
MOST_PENDING = 64
_NAMES_SHOWN = 3


class ReservedSpans:
    """The timestamps of a call's passes, reserved when the call is made: to reserve may have to wait for the GPU."""

    __slots__ = ("_passes", "_spans", "session")

    def __init__(self, session: TimingSession, commands: Encodable):
        self.session: TimingSession = session
        self._spans = [session.span(label) for label in commands.labels]
        shared = commands.pass_count if session.inside else 0
        self._passes = [session.shared_pass(commands.title) for _ in range(shared)]

    def timing(self) -> _SpansInOrder:
        return _SpansInOrder(self._spans, self._passes, inside=self.session.inside)


class _SpansInOrder:
    """Gives reserved spans to the passes, in the place of a session."""

    def __init__(self, spans: Sequence[dict[str, object]], passes: Sequence[dict[str, object]], *, inside: bool):
        self._spans, self._passes = iter(spans), iter(passes)
        self.inside: bool = inside

    def span(self, _label: str, /) -> dict[str, object]:
        return next(self._spans)

    def shared_pass(self, _label: str, /) -> dict[str, object]:
        return next(self._passes)


#: A call of a batch that is not submitted yet: its name, its commands, its trials, what keeps its arguments, and the
#: timestamps of its passes. A plain tuple, which is made in a tenth of the time of any other object.
PendingCall: TypeAlias = tuple[str, Encodable, int, object, "ReservedSpans | None"]


class CallRecorder(Recorder, Protocol):
    """Takes the calls of a thread: a batch, or a capture."""

    def takes(
        self,
        name: str,
        observer: Observer | None,
        enable_gpu_timing: GpuTiming,
        enable_cpu_timing: bool,
        launch_blocking: bool,
    ) -> bool:
        """Whether a call with these options goes to the recorder, and not to the queue."""
        ...

    def add(
        self, name: str, commands: Encodable, trials: int, arrays: object, spans: ReservedSpans | None = None
    ) -> None:
        """Take a call."""
        ...


class BatchRecorder:
    """Takes the calls of one thread inside of a batch."""

    __slots__ = ("__weakref__", "_cost", "_device", "_pending")

    def __init__(self, device: wgpu.GPUDevice):
        self._device = device
        self._pending = state_of(device).pending
        self._cost = 0

    def before_queue_use(self, doing: str) -> None:
        """A batch allows everything."""

    def takes(
        self,
        name: str,
        observer: Observer | None,
        enable_gpu_timing: GpuTiming,
        enable_cpu_timing: bool,
        launch_blocking: bool,
    ) -> bool:
        """Whether a call with these options can be held back."""
        return observer is None and not enable_cpu_timing and not launch_blocking

    def add(
        self, name: str, commands: Encodable, trials: int, arrays: object, spans: ReservedSpans | None = None
    ) -> None:
        """Hold a call back. It is made as soon as this returns, or raises what the submission of others raises."""
        commands.begins()
        self._pending.append((name, commands, trials, arrays, spans))
        self._cost += commands.cost * trials
        if self._cost >= MOST_PENDING:
            self._cost = 0
            submit_pending(self._device)


def _title(calls: Sequence[PendingCall]) -> str:
    """Return what messages call a submission of a batch."""
    names = [call[0] for call in calls[:_NAMES_SHOWN]]
    more = len(calls) - len(names)
    return f"batch of {len(calls)} ({', '.join(names)}{f' and {more} more' if more else ''})"


def encode_in_order(encoder: wgpu.GPUCommandEncoder, calls: Iterable[tuple[Encodable, int, Spans | None]]) -> None:
    """Encode commands in order, by C functions as far as neighbours can be and are not timed.

    Of each call there are its commands, how often each dispatch is encoded, and its timestamps.
    """
    for by_c, group in itertools.groupby(calls, lambda call: call[2] is None and call[0].raw is not None):
        together = list(group)
        raw = [(commands.raw, trials) for commands, trials, _ in together if commands.raw is not None]
        if by_c and record_together(encoder, raw):
            continue
        for commands, trials, spans in together:
            commands.encode(encoder, trials=trials, timing=spans)


def _encode(device: wgpu.GPUDevice, calls: Sequence[PendingCall], by_c: bool) -> Any:
    """Return a command buffer: made by C functions alone, if they may and can."""
    if by_c:
        raw = [
            (commands.raw, trials)
            for _, commands, trials, _, spans in calls
            if commands.raw is not None and spans is None
        ]
        if len(raw) == len(calls):
            return encode_together(raw)
    encoder = device.create_command_encoder(label="gridwise batch")
    timed: list[tuple[Encodable, int, Spans | None]] = [
        (commands, trials, None if spans is None else spans.timing()) for _, commands, trials, _, spans in calls
    ]
    encode_in_order(encoder, timed)
    return encoder.finish()


def _flush(reference: weakref.ref[wgpu.GPUDevice]) -> None:
    """Submit all calls that are held back.

    An entry leaves the list at the moment of its submission, so an interrupt neither loses a call nor repeats one.
    After an error all are gone: what failed once would fail again.
    """
    check_process()
    device = reference()
    assert device is not None, "calls are held back for a device that is gone"
    state = state_of(device)
    pending = state.pending
    with state.end.lock:  # whoever submits meanwhile waits for it
        while pending:
            calls = pending[:]
            title = _title(calls)
            try:
                if _submit(device, pending, calls, title):
                    return
            except wgpu.GPUError as error:
                reason = device_error(error, title)
                _give_up(pending, calls, reason)
                raise reason from error
            except Exception as error:
                _give_up(pending, calls, error)
                raise


def _submit(device: wgpu.GPUDevice, pending: list[PendingCall], calls: list[PendingCall], title: str) -> bool:
    """Submit calls, the first that are pending; return False if somebody else has meanwhile."""
    state = state_of(device)
    if state.end.reached:
        check_not_lost(device, title)
    wait_in_turn(device)
    if state.end.mapped:
        state.end.wait_unmapped()
    by_c = submit_is_wgpus(device)
    commands = _encode(device, calls, by_c)
    forget = functools.partial(operator.delitem, pending, slice(0, len(calls)))
    for _, _, _, _, spans in calls:
        if spans is not None:
            spans.session.submitted()  # before it is: whoever reads it submits what is pending first

    def is_pending() -> bool:
        # A finalizer or a signal handler, which run anywhere in this thread, may have used the queue.
        return bool(pending) and pending[0] is calls[0]

    state.submissions.append(title)
    note_work(device)
    state.uses += 1
    # `commands` lives until the end of this function, and so does what the handle of a submission points to.
    submit = prepared_submission(device, commands, is_pending, forget) if by_c else None
    if submit is not None:
        return submit()
    if not is_pending():
        return False
    forget()  # somebody watches submissions, in Python: an interrupt in there may lose the calls
    submit_counted(device, [commands])
    return True


def _give_up(pending: list[PendingCall], calls: list[PendingCall], because: Exception) -> None:
    """Forget calls that cannot be submitted."""
    if pending and pending[0] is calls[0]:
        del pending[: len(calls)]
    for _, _, _, _, spans in calls:
        if spans is not None:
            spans.session.abandon(because)


def prepare(device: wgpu.GPUDevice) -> None:
    """Make a device ready to hold calls back, or to capture them."""
    state = state_of(device)
    if state.flush is None:
        guard_order(device)
        state.flush = functools.partial(_flush, weakref.ref(device))


@contextlib.contextmanager
def recording(context: DeviceContext, recorder: Any) -> Generator[None]:
    """Have a recorder take the calls of this thread."""
    thread, recorders = threading.get_ident(), context.recorders
    before = recorders.get(thread)
    # Weak: an interrupt on the way into the block, after which nothing comes by here again, leaves no recorder.
    recorders[thread] = weakref.ref(recorder)
    try:
        yield
    finally:
        if before is None:
            recorders.pop(thread, None)
        else:
            recorders[thread] = before


@contextlib.contextmanager
def batch(device: wgpu.GPUDevice | None = None) -> Generator[None]:
    """Submit the calls inside of a ``with`` block together, for a fraction of the CPU's time.

    Calls are checked as always, but submitted later, in their order: at the latest at the end of the block, or before
    anything that could tell the difference.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        The calls of this thread on it are held back. A batch inside of another one is a part of it.

    Raises
    ------
    DeviceError
        At the end of the block, or where the calls are submitted before: if the device is lost, or refuses the
        commands. The message names the calls; none of them has run.

    Notes
    -----
    While a profile is open, with ``enable_cpu_timing=True``, and with ``GRIDWISE_LAUNCH_BLOCKING=1``, a call is
    submitted at once. With ``enable_gpu_timing=True`` it is held back, and its kernels keep their own timestamps.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.arange(4, dtype=np.uint32), device)
    >>> scan = gw.Scan(device)
    >>> with gw.batch(device):
    ...     y = scan.execute(input=x).output
    ...     z = scan.execute(input=y).output
    >>> z.tolist()
    [0, 1, 4, 10]
    """
    device = device if device is not None else default_device()
    context = context_of(device)
    if context.recorder() is not None:  # inside of another one, or of a capture
        yield
        return
    prepare(device)
    try:
        with recording(context, BatchRecorder(device)):
            yield
    finally:
        if not inherited():  # the calls belong to the parent process
            submit_pending(device)
