"""BoundCall: a primitive with checked and bound arguments, ready to run any number of times."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Integral
from typing import Any, Generic

import wgpu

from ..backend.device_errors import device_error, device_errors
from ..backend.fork_guard import check_process, in_thread
from ..backend.wgpu_native import destroyed_flag, wait_idle
from ..call_errors import explained
from ..errors import ArgumentError, OverlapError, TimingUnavailable
from ..planning.plan import Plan
from ..timing.queries import TimingSession
from ..timing.result import TimingResult
from .arguments import ParsedCall
from .chunked_array import Items, ItemsT, check_usable, parts
from .compile_threads import compile_threads
from .context import DeviceContext
from .encoders import check_encoder, check_session, watch_submission
from .executor import BoundPlan
from .observer import Observer
from .run import Measurement, Run, record_marked, submit, submit_blocking

__all__ = [
    "ASYNC_REMEDIES", "BoundCall", "check_encoder_option", "check_in_place", "check_trials", "timing_result",
    "to_the_end",
]  # fmt: skip

#: Options that ``execute_async`` lacks, and the remedy.
ASYNC_REMEDIES = {"encoder": "it submits by itself; use execute(encoder=…) to record"}
# From a warning in `run` to the line that called `execute`: `execute` and what explains its arguments.
_TO_CALLER = 5


def check_trials(trials: Any) -> None:
    """Raise ArgumentError where a number of trials is none."""
    if isinstance(trials, bool) or not isinstance(trials, Integral) or trials < 1:
        raise ArgumentError(f"trials must be an integer of at least 1, not {trials!r}")


def check_in_place(name: str, trials: int, in_place: bool) -> None:
    """Raise OverlapError where a repetition would find other inputs."""
    if trials > 1 and in_place:
        raise OverlapError(
            f"{name}: trials={trials} repeats the work, but the output overlaps an input, which the first "
            f"trial changes; give a separate output, or trials=1"
        )


def check_encoder_option(
    name: str, encoder: wgpu.GPUCommandEncoder | None, enable_cpu_timing: bool, device: wgpu.GPUDevice
) -> None:
    """Raise where nothing can be recorded on a caller's encoder, or not with these options."""
    if encoder is None:
        return
    if enable_cpu_timing:
        raise ArgumentError(
            "enable_cpu_timing=True measures the primitive's own submission, which encoder= leaves to you: "
            "leave out encoder=, or time your submission yourself"
        )
    check_encoder(name, encoder, device)


class BoundCall(Generic[ItemsT]):
    """A primitive with checked and bound arguments, ready to run; returned by `Primitive.bind`.

    It keeps its arrays; later calls of the primitive do not change it. Any number of bound calls can be used in
    turn.

    Attributes
    ----------
    name : str
        The primitive's name.
    """

    def __init__(
        self, name: str, context: DeviceContext, parsed: ParsedCall, bound_plan: BoundPlan, *, launch_blocking: bool
    ):
        self.name: str = name
        self._context = context
        self._device = context.device
        self._parsed: ParsedCall | None = parsed
        self._bound_plan = bound_plan
        self._launch_blocking = launch_blocking
        self._last_timed: Measurement | None = None
        self._watched = tuple(
            (destroyed_flag(part.buffer), part.buffer) for value in parsed.arrays.values() for part in parts(value)
        )

    # ---- what it is ----

    @property
    def parsed(self) -> ParsedCall:
        """The checked arguments."""
        if self._parsed is None:
            raise ArgumentError(f"this call of {self.name} was released; bind the arguments again")
        return self._parsed

    @property
    def bound_plan(self) -> BoundPlan:
        """The plan on its buffers; ``bound_plan.encode(encoder)`` records it without any check."""
        return self._bound_plan

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._bound_plan.plan

    @property
    def arrays(self) -> dict[str, Items]:
        """All arguments, by name."""
        return self.parsed.arrays

    @property
    def outputs(self) -> dict[str, Any]:
        """The output arguments, by name."""
        return self.parsed.outputs

    @property
    def in_place(self) -> bool:
        """Whether an output overlaps an input."""
        return self.parsed.in_place

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device it runs on."""
        return self._device

    def shapes(self) -> str:
        """Return names, lengths and datatypes of the arguments."""
        return ", ".join(f"{name} {array.datatype.name}[{array.size}]" for name, array in self.arrays.items())

    @functools.cached_property
    def _named_notes(self) -> tuple[tuple[list[bool], str], ...]:
        """The note of each buffer's end, and what the buffer is in messages."""
        return tuple(
            (destroyed_flag(part.buffer), f"{self.plan.primitive}'s {name}")
            for name, value in self.arrays.items()
            for part in parts(value)
        )

    def check(self, trials: int = 1) -> None:
        """Raise if it cannot run.

        Raises
        ------
        ArgumentError
            If it was released.
        BufferUsageError
            If a buffer was destroyed, or is mapped.
        OverlapError
            If a repeated trial would read changed inputs.
        """
        parsed = self.parsed
        for destroyed, buffer in self._watched:
            if destroyed[0] or buffer.map_state != "unmapped":
                for array in parsed.arrays.values():
                    check_usable(array, "STORAGE", self.name)
        check_in_place(self.name, trials, parsed.in_place)

    # ---- running ----

    @explained()
    def execute(
        self,
        *,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: bool = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        """Run it; the options are those of `Primitive.execute`.

        Returns
        -------
        Run
        """
        check_process()
        check_trials(trials)
        check_encoder_option(self.name, encoder, enable_cpu_timing, self.device)
        self.check(trials)
        observer = self._context.observer
        if observer is None:
            return self.run(encoder, enable_gpu_timing, enable_cpu_timing, trials, None, _TO_CALLER)
        with observer.span(self.name, "primitive") as node:
            node.shapes = self.shapes()
            return self.run(encoder, enable_gpu_timing, enable_cpu_timing, trials, observer, _TO_CALLER)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self, *, enable_gpu_timing: bool = False, enable_cpu_timing: bool = False, trials: int = 1
    ) -> Run[ItemsT]:
        """Like `execute`, without blocking the event loop; returns when the work is done."""
        return await to_the_end(
            self.device,
            lambda: self.execute(
                enable_gpu_timing=enable_gpu_timing, enable_cpu_timing=enable_cpu_timing, trials=trials
            ),
        )

    @explained()
    def record(
        self, encoder: wgpu.GPUCommandEncoder, *, trials: int = 1, timing: TimingSession | None = None
    ) -> dict[str, Any]:
        """Record it on an encoder, without submitting; the options are those of `Primitive.record`.

        Returns
        -------
        dict from str to Array or ChunkedArray
            The outputs.
        """
        check_process()
        check_trials(trials)
        check_encoder(self.name, encoder, self.device)
        if timing is not None:
            check_session(self.name, timing, self.device)
        self.check(trials)
        return self.encode(encoder, trials, timing)

    def encode(self, encoder: wgpu.GPUCommandEncoder, trials: int, timing: TimingSession | None) -> dict[str, Any]:
        """As `record`, with options that were checked."""
        watch_submission(encoder, self._named_notes, self.device)
        observer = self._context.observer
        with device_errors(self.name, self.device):
            if observer is not None:
                observer.record_primitive(self.name, self, encoder, trials, timing)
            else:
                self._bound_plan.encode(encoder, trials=trials, timing=timing)
        return self.outputs

    def run(
        self,
        encoder: wgpu.GPUCommandEncoder | None,
        enable_gpu_timing: bool,
        enable_cpu_timing: bool,
        trials: int,
        observer: Observer | None,
        stack_level: int,
    ) -> Run[Any]:
        """As `execute`, with options that were checked; `stack_level` leads a warning to the caller's line."""
        context, bound = self._context, self._bound_plan
        session = None
        if enable_gpu_timing or (observer is not None and observer.times_kernels(encoder)):
            if context.has_timestamps:
                session = context.timing_helper.session()
            else:
                context.warn_no_timestamps(stacklevel=stack_level)
        timed = enable_gpu_timing or enable_cpu_timing
        if timed:
            compile_threads().finish()  # CPUs that compile would slow the host, and a GPU that is a CPU
        cpu: dict[str, Any] | None = {} if enable_cpu_timing else None
        try:
            if encoder is not None:
                watch_submission(encoder, self._named_notes, self._device)
                record_marked(bound, encoder, trials, session)
            elif self._launch_blocking:
                submit_blocking(self._device, bound, trials, session, cpu)
            else:
                submit(self._device, bound, trials, session, cpu, observer)
        except BaseException as error:
            if session is not None and encoder is None and not session.is_submitted():
                session.abandon()
            if isinstance(error, wgpu.GPUError):
                raise device_error(error, self.name) from error
            raise
        if observer is not None:
            observer.kernels(bound.plan, session, 0, trials, encoder)
        # An int of Python, so that whoever multiplies by it does so without the width of a numpy scalar.
        measurement = Measurement(bound.plan, session, int(trials), cpu or {}) if timed else None
        if measurement is not None:
            self._last_timed = measurement
        return Run(bound.plan, self.outputs, encoder, measurement)

    def get_timing_result(self) -> TimingResult:
        """Return the times of the last timed run; see `Run.get_timing_result`."""
        return timing_result(self.name, self._last_timed)

    async def get_timing_result_async(self) -> TimingResult:
        """Like `get_timing_result`, without blocking the event loop."""
        return await in_thread(self.get_timing_result)

    def release(self) -> None:
        """Drop the arguments, so that their memory can be freed. The call cannot run afterwards."""
        self._parsed = None
        self._watched = ()
        self.__dict__.pop("_named_notes", None)

    def __repr__(self) -> str:
        return f"BoundCall({self.name}, {'released' if self._parsed is None else self.shapes()})"


async def to_the_end(device: wgpu.GPUDevice, execute: Callable[[], Run[ItemsT]]) -> Run[ItemsT]:
    """Execute in a thread, wait there until the queue is idle, and return the run."""

    def run() -> Run[ItemsT]:
        result = execute()
        wait_idle(device)
        return result

    return await in_thread(run)


def timing_result(name: str, measurement: Measurement | None) -> TimingResult:
    """Return what a timed run measured; raise TimingUnavailable if there was none."""
    if measurement is None:
        raise TimingUnavailable(
            f"this {name} has no timed run; call execute(enable_gpu_timing=True) or "
            f"execute(enable_cpu_timing=True) first"
        )
    return measurement.result()
