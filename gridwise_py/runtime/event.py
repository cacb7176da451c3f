"""Event: a point in the queue with the GPU timestamp at which it was reached; for any wgpu work."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

import wgpu

from ..backend.device_errors import device_errors
from ..backend.device_state import queue_uses
from ..backend.fork_guard import check_process
from ..backend.queues import device_of, queue_is_idle, submit, wait_idle
from ..backend.submission_marks import Mark, look, mark_of
from ..errors import ArgumentError, BufferUsageError, DeviceLostError, TimingNotReady, TimingUnavailable
from ..timing.queries import TimingHelper, TimingSession
from ..timing.result import Span
from .context import context_of
from .device import default_device
from .encoders import check_encoder
from .internal_kernels import NOTHING
from .one_device import OfOneDevice


def synchronize(device: wgpu.GPUDevice | None = None) -> None:
    """Wait for all work of a device, like ``torch.cuda.synchronize``.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        By default all that the library knows and that are not lost.
    """
    if device is not None:
        _synchronize(device)
        return
    for each in queue_uses():
        with contextlib.suppress(DeviceLostError):  # nothing is left to wait for
            _synchronize(each)


def _synchronize(device: wgpu.GPUDevice) -> None:
    context = context_of(device)
    recorded, observer = context.events_recorded, context.observer
    if observer is None:
        wait_idle(device)
    else:
        with observer.span("wait", "host"):
            wait_idle(device)
    context.note_events_done(recorded)


def _device_in_use() -> wgpu.GPUDevice:
    """Return the device that an event is for which names none: any but the only one may be the wrong queue."""
    uses = queue_uses()
    devices = [device for device, count in uses.items() if count] or list(uses)
    if len(devices) > 1:
        raise ArgumentError(
            f"{len(devices)} devices are in use, and this event names none of them: gw.Event(device), or record it on "
            f"an encoder"
        )
    return devices[0] if devices else default_device()


class Event(OfOneDevice):
    """A point in a device's queue, and when the GPU reached it, like ``torch.cuda.Event``.

    Record one before any wgpu work, and one after it.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        By default that of the encoder, or the one device of this process.
    enable_timing : bool, default True
        Otherwise it only shows whether the GPU has reached it.
    blocking : bool, default False
        Without effect.
    interprocess, external : bool, default False
        Refused: WebGPU has neither.

    Raises
    ------
    TimingUnavailable
        If `enable_timing` and the device was made without ``timestamp-query``; without a device, when it is recorded.

    Notes
    -----
    Timestamps are taken between passes if the device has ``timestamp-query-inside-encoders``, otherwise by an empty
    pass of one workgroup. The time between two events is from the last stamp of the first to the first stamp of the
    second, so it excludes the GPU's cost of recording. Queries belong to the device's `TimingHelper`: any number of
    events can be alive, and a dropped event returns its queries.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.ones(1000, dtype=np.float32), device)
    >>> start, end = gw.Event(device), gw.Event(device)
    >>> start.record()
    >>> total = gw.sum(x)
    >>> end.record()
    >>> end.synchronize()
    >>> start.elapsed_time(end) > 0
    True
    """

    _instead = "send the time itself, event.elapsed_time(end)"

    def __init__(
        self,
        device: wgpu.GPUDevice | None = None,
        enable_timing: bool = True,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ):
        if interprocess:
            raise ArgumentError(
                "interprocess=True: WebGPU cannot share events with another process; send the "
                "time itself, after elapsed_time()"
            )
        if external:
            raise ArgumentError(
                "external=True is for the capture of CUDA graphs, which WebGPU lacks; record the event on the "
                "encoder that holds the sequence: event.record(encoder)"
            )
        self.enable_timing: bool = bool(enable_timing)
        self._helper: TimingHelper | None = None
        self._device_reference: weakref.ref[wgpu.GPUDevice] | None = None
        if device is not None:
            self._use(device)
        self.blocking: bool = bool(blocking)
        self._session: TimingSession | None = None
        self._mark: Mark | None = None  # on a caller's encoder
        self._recorded = False
        self._done = False
        self._number: int | None = None  # if it was submitted by record()

    def _use(self, device: wgpu.GPUDevice) -> None:
        context = context_of(device)
        # Raises TimingUnavailable here, and not after the work.
        self._helper = context.timing_helper if self.enable_timing else None
        self._device_reference = weakref.ref(device)

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device whose queue it is recorded on."""
        check_process()
        if self._device_reference is None:
            raise TimingNotReady("this event was made without a device, and never recorded: it has none yet")
        device = self._device_reference()
        if device is None:
            raise ArgumentError("the device of this event is gone")
        return device

    @property
    def session(self) -> TimingSession | None:
        """What holds its stamps, also after it is recorded again; None if it has none."""
        return self._session

    def record(self, encoder: wgpu.GPUCommandEncoder | None = None) -> None:
        """Record the event after all submitted work, or at this point of an encoder.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder, optional
            With no open pass; you submit it.

        Raises
        ------
        ArgumentError
            If `encoder` is finished, or is not an encoder, such as a pass; or if the event has no device, there is no
            encoder, and several devices are in use.
        BufferUsageError
            If `encoder` is of another device.
        """
        if self._device_reference is None:
            self._use((device_of(encoder) if encoder is not None else None) or _device_in_use())
        device = self.device
        if encoder is not None:
            if device_of(encoder) not in (None, device):
                raise BufferUsageError(
                    "the encoder is of another device than this event; make an event with the encoder's device, "
                    "because the clocks of two devices are unrelated"
                )
            check_encoder("event.record()", encoder, device)
        with device_errors("event.record()", device):
            target = encoder if encoder is not None else device.create_command_encoder(label="gridwise event")
        session = self._helper.session() if self._helper is not None else None
        if session is not None:
            try:
                with device_errors("event.record()", device):
                    self._stamp(target, session)
            except BaseException:
                if encoder is None:
                    session.abandon()
                else:  # the encoder may hold a stamp, which is written when it is submitted
                    session.mark(encoder)
                raise
        if encoder is None:
            with device_errors("event.record()", device):
                submit(device, [target.finish()], "event")
            if session is not None:
                session.submitted()
        elif session is not None:
            session.mark(encoder)
        # Only now, so that a failed call leaves the event as it was.
        self._session, self._done, self._recorded, self._number = session, False, True, None
        self._mark = None if encoder is None else mark_of(device, encoder)
        if encoder is None:
            self._number = context_of(device).number_event()

    def _stamp(self, encoder: wgpu.GPUCommandEncoder, session: TimingSession) -> None:
        assert self._helper is not None
        if self._helper.stamps_encoders:
            session.stamp(encoder, "event")
        else:
            NOTHING.bind(self.device).encode(encoder, timing=session)

    def _submitted(self) -> bool:
        """Whether the event was submitted; waits for the queue if only the GPU can tell."""
        if self._mark is not None:
            look(self.device, [self._mark])
        return self._recorded and (self._mark is None or self._mark.seen)

    def _check_recorded(self, wanted: str) -> None:
        if not self._recorded:
            raise TimingNotReady(f"{wanted}: this event was never recorded; call event.record() first")

    def _check_submitted(self, wanted: str) -> None:
        self._check_recorded(wanted)
        if not self._submitted():
            raise TimingNotReady(
                f"{wanted}: this event is on an encoder that was not submitted; call "
                f"device.queue.submit([encoder.finish()]) first"
            )

    def synchronize(self) -> None:
        """Wait for the event, and for later submissions.

        Raises
        ------
        TimingNotReady
            If it was never recorded, or is on an encoder that was not submitted, so that the wait would never end.
        """
        if not self._done:
            self._check_submitted("synchronize()")
            synchronize(self.device)
            self._done = True

    def query(self) -> bool:
        """Return whether the GPU has reached the event.

        True when the queue is empty, or after `synchronize`.
        """
        if self._done or not self._recorded:
            return self._done
        if (self._session is not None and self._session.is_read) or (
            self._number is not None and self._number <= context_of(self.device).events_done
        ):
            self._done = True
        else:
            idle = queue_is_idle(self.device)
            if idle is None:
                wait_idle(self.device)  # this wgpu-py cannot tell without waiting
            # If the queue is idle, looking at the mark of a caller's encoder does not wait.
            self._done = idle is not False and self._submitted()
        return self._done

    def _span(self, wanted: str) -> Span:
        """Return both stamps; raise if the GPU has not reached the event."""
        self._check_recorded(wanted)
        if self._helper is None or self._session is None:
            raise TimingUnavailable(f"{wanted}: this event has no timestamp; make it with enable_timing=True")
        if not self.query():
            self._check_submitted(wanted)
            raise TimingNotReady(f"{wanted}: the GPU has not reached this event; call event.synchronize() first")
        if not self._session.is_read:
            self._helper.collect()  # of all events at once, because each read costs a submission
        return self._session.spans()[0]

    def elapsed_ns(self, end: Event) -> float:
        """Return the nanoseconds to `end`; negative if that came first.

        Raises
        ------
        TimingNotReady
            If an event was not recorded or submitted, or the GPU has not reached it; the message says what to call.
        TimingUnavailable
            If an event was made with ``enable_timing=False``, or the GPU wrote no valid timestamp.
        ArgumentError
            If the events are of different devices, whose clocks are unrelated.
        """
        if not isinstance(end, Event):
            raise ArgumentError(f"end must be an Event, not {type(end).__name__}")
        self._check_recorded("elapsed time, start")
        end._check_recorded("elapsed time, end")
        if end.device is not self.device:
            raise ArgumentError(
                "the two events are of different devices, whose clocks are unrelated; time each "
                "device with its own two events, or both with time.perf_counter_ns() around synchronize()"
            )
        a, b = self._span("elapsed time, start"), end._span("elapsed time, end")
        for name, span in (("start", a), ("end", b)):
            if not span.valid:
                raise TimingUnavailable(
                    f"elapsed time: the timestamps of the {name} event are invalid ({span.begin_ticks} and "
                    f"{span.end_ticks} ticks: the counter was reset, or never written); record the events again"
                )
        if end is self:
            return 0.0
        # From the last stamp of the earlier one to the first stamp of the later one.
        ticks = b.begin_ticks - a.end_ticks if b.begin_ticks >= a.begin_ticks else b.end_ticks - a.begin_ticks
        return ticks * a.tick_period_ns

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds, as torch does."""
        return self.elapsed_ns(end) * 1e-6

    def stamps(self) -> Span:
        """Return both of its stamps, in ticks; waits until the GPU has reached the event.

        Raises
        ------
        TimingNotReady
            If it was never recorded, or is on an encoder that was not submitted.
        TimingUnavailable
            If it was made with ``enable_timing=False``.
        """
        if not self._done:
            self._check_submitted("stamps()")
            wait_idle(self.device)
            self._done = True
        return self._span("stamps()")

    def wait(self, queue: Any = None) -> None:
        """Make later submissions wait for this event.

        This only checks that it was submitted: a queue is in order.

        Parameters
        ----------
        queue : wgpu.GPUQueue or wgpu.GPUDevice, optional
            The event's own.

        Raises
        ------
        ArgumentError
            For the queue of another device: WebGPU cannot wait across devices.
        TimingNotReady
            If the event was never recorded, or is on an encoder that was not submitted.
        """
        if queue is not None and queue is not self.device and queue is not self.device.queue:
            raise ArgumentError(
                f"wait() takes this device's queue, not {queue!r}: a WebGPU device has one queue and no streams, and "
                f"cannot wait for another device; call event.synchronize(), then submit to the other device"
            )
        self._check_submitted("wait()")

    def __repr__(self) -> str:
        state = "done" if self._done else "recorded" if self._recorded else "not recorded"
        return f"Event({state}{'' if self.enable_timing else ', without time'})"
