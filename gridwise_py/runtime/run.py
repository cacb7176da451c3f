"""Run: one call of ``execute`` and its times; and the CPU bracket around a submission."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic

import wgpu

from ..backend.device_errors import device_error
from ..backend.device_state import STATE, state_of
from ..backend.queues import submit_by, submit_counted, submit_is_wgpus, wait_idle, wait_method
from ..backend.waits import in_thread
from ..errors import ArgumentError, TimingUnavailable
from ..planning.plan import Kernel, Plan, Work
from ..timing.overhead import OVERHEAD, TimingOverhead
from ..timing.queries import TimingSession
from ..timing.result import TimingResult
from .array import Array
from .chunked_array import ItemsT
from .compile_threads import compile_threads
from .context import context_of
from .encodable import Encodable
from .gpu_clock import ClockDoubt
from .observer import Observer
from .one_device import OfOneDevice


def bracket(
    device: wgpu.GPUDevice, submit: Callable[[], Any], others: Callable[[], Iterable[wgpu.GPUDevice]] = tuple
) -> tuple[int, int, int]:
    """Wait for an idle queue, submit, wait again; return the times before, between and after, in ns.

    Nothing compiles in the background meanwhile, and the garbage collector is off: both would count as the GPU's time.
    `others` returns the devices that are waited for, too, each time.
    """
    compile_threads().finish()
    collecting = gc.isenabled()
    try:
        gc.disable()  # in here: an interrupt may come as soon as it returns
        _wait_for_all(device, others)
        before = time.perf_counter_ns()
        submit()
        between = time.perf_counter_ns()
        return before, between, _wait_for_all(device, others)
    finally:
        if collecting:
            gc.enable()


def _wait_for_all(device: wgpu.GPUDevice, others: Callable[[], Iterable[wgpu.GPUDevice]]) -> int:
    end_ns = wait_idle(device)
    for other in others():
        if other is not device:
            end_ns = max(end_ns, wait_idle(other))
    return end_ns


def _bracket_alone(
    device: wgpu.GPUDevice, submit: Callable[[], Any], submissions: int, cpu: dict[str, Any]
) -> tuple[int, int, int]:
    """As `bracket`, one call of the device at a time; note it where other threads used the queue meanwhile."""
    state, before = state_of(device), 0

    def counted() -> None:
        nonlocal before
        before = state.uses
        submit()

    with state.timed_calls:
        times = bracket(device, counted)
        others = state.uses - before - submissions
    if others > 0:
        cpu["warnings"] = (
            f"CPU times with the work of others: {others} submission{'s' if others > 1 else ''} or transfers of other "
            f"threads came between, and were waited for; time calls while nothing else uses the device",
        )
    return times


def launch(
    device: wgpu.GPUDevice,
    work: Encodable,
    trials: int,
    doing: str,
    session: TimingSession | None = None,
    cpu: dict[str, Any] | None = None,
    observer: Observer | None = None,
    *,
    blocking: bool = False,
) -> None:
    """Submit work: the one way of calls to the queue.

    After a failure the queries of `session` are free, and an error of wgpu is one of this library, which begins with
    `doing`.

    Parameters
    ----------
    session : TimingSession, optional
        Takes timestamps.
    cpu : dict, optional
        Gets the CPU's times of a submission that is bracketed by waits.
    observer : Observer, optional
        Is told the steps of the host.
    blocking : bool, default False
        Submit step by step, and wait after each.
    """
    try:
        if session is None and cpu is None and observer is None and not blocking:
            raw = work.raw
            if raw is not None and (device.__dict__[STATE].queue.get("submit") is None or submit_is_wgpus(device)):
                submit_by(device, work.title, raw.run, trials)
            else:
                submit_by(device, work.title, *_encoded(device, work, trials, None))
            return
        if blocking:
            _launch_by_steps(device, work, trials, session, cpu)
        else:
            _launch_watched(device, work, trials, session, cpu, observer)
        if session is not None:
            session.submitted()
    except BaseException as error:
        if session is not None and not session.is_submitted():
            session.abandon()
        if isinstance(error, wgpu.GPUError):
            raise device_error(error, doing) from error
        raise


def _launch_watched(
    device: wgpu.GPUDevice,
    work: Encodable,
    trials: int,
    session: TimingSession | None,
    cpu: dict[str, Any] | None,
    observer: Observer | None,
) -> None:
    begin = time.perf_counter_ns()
    call = _encoded(device, work, trials, session)
    encoded = time.perf_counter_ns()
    if cpu is None:
        submit_by(device, work.title, *call)
        steps = [("encode", begin, encoded), ("submit", encoded, time.perf_counter_ns())]
    else:
        t0, t1, t2 = _bracket_alone(device, lambda: submit_by(device, work.title, *call), 1, cpu)
        cpu.update(
            cpu_total_time_ns=float(t2 - t0),
            submit_time_ns=float(t1 - t0),
            encode_time_ns=float(encoded - begin),
            wait_method=wait_method(device),
        )
        steps = [("encode", begin, encoded), ("wait", encoded, t0), ("submit", t0, t1), ("wait", t1, t2)]
    if observer is not None:
        for step in steps:
            observer.past_step(*step)


def _launch_by_steps(
    device: wgpu.GPUDevice, work: Encodable, trials: int, session: TimingSession | None, cpu: dict[str, Any] | None
) -> None:
    t0, _, t2 = bracket(device, lambda: work.run_blocking(device, trials=trials, timing=session))
    if cpu is not None:
        cpu.update(cpu_total_time_ns=float(t2 - t0), wait_method=wait_method(device))


def _encoded(device: wgpu.GPUDevice, work: Encodable, trials: int, session: TimingSession | None) -> tuple[Any, ...]:
    """Encode work, and return the function that submits it, and its arguments."""
    raw = work.raw
    if raw is not None and session is None and submit_is_wgpus(device):
        return raw.submit, raw.encode(trials)
    # Its passes carry the labels; one more here would cost every call another 3 µs.
    encoder = device.create_command_encoder()
    work.encode(encoder, trials=trials, timing=session)
    return submit_counted, device, [encoder.finish()]


def record_marked(
    bound: Encodable, encoder: wgpu.GPUCommandEncoder, trials: int, session: TimingSession | None
) -> None:
    """Encode a plan on a caller's encoder, with a mark behind it by which its submission is seen."""
    try:
        bound.encode(encoder, trials=trials, timing=session)
    finally:
        # Also after a failure: passes that were recorded will write their queries if the encoder is submitted.
        if session is not None:
            session.mark(encoder)


#: Why the time of a call is doubted whose pipelines were never dispatched before.
FIRST = (
    "time up to 100 times too long: it is the first dispatch of a pipeline that was made just now, which drivers may "
    "still prepare; run the call once before it is timed, as gw.measure does"
)


class Measurement:
    """What a timed call left to be read: timestamps on the GPU, the CPU's times, and the counts of its items.

    Of arrays it holds the counts only.
    """

    __slots__ = (
        "_counts", "_cpu", "_doubt", "_kernels", "_lock", "_pass_count", "_result", "_session", "_trials", "_warnings",
        "_work",
    )  # fmt: skip

    def __init__(
        self,
        kernels: Sequence[Kernel],
        work: Work | None,
        session: TimingSession | None,
        trials: int,
        cpu: dict[str, Any],
        doubt: ClockDoubt | None = None,
        counts: Mapping[str, Array] | None = None,
        *,
        is_first: bool = False,
        pass_count: int,
    ):
        self._counts = counts or {}
        self._warnings: tuple[str, ...] = (*cpu.pop("warnings", ()), *((FIRST,) if is_first else ()))
        self._kernels = kernels
        self._pass_count = pass_count  # without timing
        self._work = work
        self._session = session
        self._trials = trials
        self._cpu = cpu
        self._doubt = doubt
        self._result: TimingResult | None = None
        self._lock = threading.RLock()  # a finalizer may read in this thread at any point

    def result(self) -> TimingResult:
        """Return the times; waits for the end of the work."""
        # One thread at a time: reading takes counts and doubts away, and whoever reads meanwhile would lack them.
        with self._lock:
            return self._read()

    def _read(self) -> TimingResult:
        if self._result is None:
            spans = tuple(self._session.spans()) if self._session is not None else ()
            invalid = tuple(
                f"timestamps of {span.label!r} are not a time (begin {span.begin_ticks}, end {span.end_ticks} ticks)"
                for span in spans
                if not span.valid
            )
            warnings = invalid + self._warnings
            result = TimingResult(
                tuple(kernel.label for kernel in self._kernels),
                self._trials,
                spans,
                warnings=warnings,
                workgroups=tuple(kernel.workgroups for kernel in self._kernels),
                work=self._counted_work(),
                passes=tuple(self._session.passes()) if self._session is not None and self._session.inside else (),
                overhead=self._overhead(),
                **self._cpu,
            )
            if self._doubt is not None and self._kernels:
                of_clock = self._doubt.warning(result.gpu_span_ns or result.cpu_total_time_ns)
                result = replace(result, warnings=(*warnings, of_clock)) if of_clock is not None else result
            self._result = result
            self._session = self._doubt = None
            self._counts = {}
        return self._result

    def _overhead(self) -> TimingOverhead | None:
        """Return what the timestamps added; None where that was not measured on the device."""
        if self._session is None:
            return None
        known = context_of(self._session.device).known(OVERHEAD)
        if known is None:
            return None
        return known.of(inside=self._session.inside, kernels=len(self._kernels), passes=self._pass_count)

    def _counted_work(self) -> Work | None:
        """Return the work of the items that counted, which is read from the GPU."""
        if self._work is None or not self._counts:
            return self._work
        return self._work.with_counts({name: int(count.item()) for name, count in self._counts.items()})


class Timed(OfOneDevice):
    """Something that ran, and perhaps was timed."""

    __slots__ = ("_measurement",)

    _instead = "send its outputs, x.to_numpy(), and its times, run.get_timing_result()"

    def __init__(self, measurement: Measurement | None):
        self._measurement = measurement

    @property
    def measurement(self) -> Measurement | None:
        """What it left to be read; None if it was not timed."""
        return self._measurement

    def get_timing_result(self) -> TimingResult:
        """Return the times of this call; waits for its work to finish.

        Raises
        ------
        TimingNotReady
            If the caller's encoder has not been submitted.
        TimingUnavailable
            If the call was not timed.
        """
        if self._measurement is None:
            raise TimingUnavailable(
                "this run was not timed; call execute(enable_gpu_timing=True) or execute(enable_cpu_timing=True)"
            )
        return self._measurement.result()

    async def get_timing_result_async(self) -> TimingResult:
        """Like `get_timing_result`, without blocking the event loop."""
        return await in_thread(self.get_timing_result)


class Run(Timed, Generic[ItemsT]):
    """One call of ``execute``, which returns it.

    Attributes
    ----------
    outputs : dict from str to Array or ChunkedArray
    encoder : wgpu.GPUCommandEncoder or None
        The caller's.
    plan : Plan
    """

    __slots__ = ("encoder", "outputs", "plan")

    def __init__(
        self,
        plan: Plan,
        outputs: dict[str, ItemsT],
        encoder: wgpu.GPUCommandEncoder | None,
        measurement: Measurement | None,
    ):
        self._measurement = measurement
        self.plan: Plan = plan
        self.outputs: dict[str, ItemsT] = outputs
        self.encoder: wgpu.GPUCommandEncoder | None = encoder

    @property
    def output(self) -> ItemsT:
        """The output, or the first of several."""
        if not self.outputs:
            raise ArgumentError(f"{self.plan.primitive} has no output: it writes none of its arguments")
        return next(iter(self.outputs.values()))

    def __repr__(self) -> str:
        return f"Run({self.plan.primitive}, {', '.join(f'{k}={v!r}' for k, v in self.outputs.items())})"
