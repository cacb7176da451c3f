"""BoundCall: a primitive with checked and bound arguments, ready to run any number of times."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import wgpu

from ..backend.device_errors import device_errors
from ..backend.fork_guard import check_process
from ..backend.mapped_memory import MAP_USAGE
from ..backend.queues import DESTRUCTIONS, note_work, wait_idle
from ..backend.waits import in_thread
from ..call_errors import explained
from ..errors import ArgumentError, OverlapError, TimingUnavailable
from ..planning.plan import Plan
from ..planning.signature import Signature
from ..timing.queries import INSIDE_PASSES, GpuTiming, TimingSession, without_inside
from ..timing.result import TimingResult
from ..types.options import integer
from .arguments import GIVEN, KEY, OUTPUTS, KnownArguments, ParsedCall
from .array import Array, new_array
from .batch import CallRecorder, ReservedSpans
from .chunked_array import Items, ItemsT, check_usable, parts
from .context import DeviceContext
from .encoders import check_encoder, check_session, watch_submission
from .executor import BoundPlan
from .gpu_clock import clock_doubt
from .known_calls import KnownCall
from .memory import Lease
from .observer import Observer
from .one_device import OfOneDevice
from .run import Measurement, Run, launch, launch_untimed, record_marked

RunT = TypeVar("RunT")
#: Options that ``execute_async`` lacks, and the remedy.
ASYNC_REMEDIES = {"encoder": "it submits by itself; use execute(encoder=…) to record"}


def check_trials(trials: Any) -> None:
    """Raise ArgumentError where a number of trials is none."""
    if type(trials) is not int or trials < 1:
        integer("trials", trials, 1)


def check_gpu_timing(name: str, enable_gpu_timing: object, device: wgpu.GPUDevice) -> None:
    """Raise where a call is asked for timestamps of an unknown kind, or of one that the device does not have."""
    if not isinstance(enable_gpu_timing, str):
        return
    if enable_gpu_timing != "inside":
        raise ArgumentError(
            f"{name}: enable_gpu_timing is {enable_gpu_timing!r}; it must be False, True (a pass with timestamps for "
            f'each kernel) or "inside" (timestamps inside of the passes that the kernels share)'
        )
    if INSIDE_PASSES not in device.features:
        raise TimingUnavailable(f"{name}: {without_inside(device)}")


def check_in_place(name: str, trials: int, in_place: bool) -> None:
    """Raise OverlapError where a repetition would find other inputs."""
    if trials > 1 and in_place:
        raise OverlapError(
            f"{name}: trials={trials} repeats the work, but the first trial changes what it reads: an output "
            f"overlaps an input, or is 'read_write' in a gw.Kernel; give a separate output, or trials=1. A kernel that "
            f"does not read what the output held says 'write' in bindings="
        )


def check_encoder_option(
    name: str, encoder: wgpu.GPUCommandEncoder, enable_cpu_timing: bool, device: wgpu.GPUDevice
) -> None:
    """Raise where nothing can be recorded on a caller's encoder, or not with these options."""
    if enable_cpu_timing:
        raise ArgumentError(
            "enable_cpu_timing=True measures the primitive's own submission, which encoder= leaves to you: "
            "leave out encoder=, or time your submission yourself"
        )
    check_encoder(name, encoder, device)


class BoundCall(OfOneDevice, Generic[ItemsT]):
    """A primitive with checked arguments, ready to run; made by `Primitive.bind`.

    It keeps its arrays; later calls of the primitive do not change it.

    Attributes
    ----------
    name : str
        The primitive's name.
    """

    _instead = "bind the arguments there, with primitive.bind(…)"
    _last_timed: Measurement | None = None
    #: Those of its buffers that can be mapped; None until it is repeated: most calls that make an output are not.
    _mappable: tuple[wgpu.GPUBuffer, ...] | None = None

    def __init__(
        self,
        name: str,
        context: DeviceContext,
        device: wgpu.GPUDevice,
        parsed: ParsedCall | KnownArguments,
        bound_plan: BoundPlan,
        launch_blocking: bool,
        known: KnownCall | None = None,
        destructions: int = -1,
    ):
        self.name: str = name
        self._context = context
        self._device = device
        self._parsed: ParsedCall | KnownArguments | None = parsed
        self._bound_plan = bound_plan
        self._launch_blocking = launch_blocking
        #: What calls with the same key have in common, where that is known.
        self.known: KnownCall | None = known
        # All repetitions that are not timed are one object: nothing of it changes.
        self._run: Run[Any] = Run(bound_plan.plan, parsed[OUTPUTS], None, None)
        #: The number of `DESTRUCTIONS` at which its buffers were last seen.
        self.destructions: int = destructions

    # ---- what it is ----

    @property
    def parsed(self) -> ParsedCall:
        """The checked arguments."""
        parsed = self._parsed
        if parsed is None:
            raise ArgumentError(f"this call of {self.name} was released; bind the arguments again")
        if not isinstance(parsed, ParsedCall):
            assert self.known is not None, "only what is known is left out"
            parsed = self._parsed = self.known.parsed(*parsed)
        return parsed

    def key_if_given(self, arrays: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Return this call's key if arguments have it for certain: the same objects, and the same ones left out."""
        parsed = self._parsed
        if parsed is None or len(arrays) != len(parsed[KEY]):
            return None
        given = parsed[GIVEN]
        for name, value in arrays.items():
            if given.get(name) is not value:
                return None
        return parsed[KEY]

    def repeats(self, signature: Signature, arrays: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments is this one: a call that makes an output makes a new one each time."""
        if self.known is not None and self.known.makes_outputs:
            return False
        return self.parsed.is_repeated_by(signature, arrays)

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
        """Whether an output overlaps an input, or is read, too."""
        return self.parsed.in_place

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device it runs on."""
        return self._device

    @functools.cached_property
    def _leases(self) -> tuple[Lease, ...]:
        """Of all memory that its commands use."""
        own = self._bound_plan.leases
        return (*(part.lease for value in self.arrays.values() for part in parts(value)), *own)

    def shapes(self) -> str:
        """Return names, shapes and datatypes of the arguments."""
        return ", ".join(
            f"{name} {array.datatype.name}[{', '.join(map(str, array.shape))}]" for name, array in self.arrays.items()
        )

    @functools.cached_property
    def _named_notes(self) -> tuple[tuple[list[bool], str], ...]:
        """The note of each buffer's end, and what the buffer is in messages."""
        return tuple(
            (part.lease.destroyed, f"{self.plan.primitive}'s {name}")
            for name, value in self.arrays.items()
            for part in parts(value)
        )

    def check(self, trials: int = 1) -> None:
        """Raise if it cannot run.

        Raises
        ------
        ArgumentError
            If it was released, or `trials` is no number of trials.
        ForkError
            If the process was forked from one that had used the GPU.
        BufferUsageError
            If a buffer was destroyed, or is mapped.
        OverlapError
            If a repeated trial would read changed inputs.
        """
        check_process()
        mappable = self._mappable
        if mappable is None or self.destructions != DESTRUCTIONS.count:
            mappable = self._check_buffers()
        for buffer in mappable:
            if buffer.map_state != "unmapped":
                self._check_buffers()
        if type(trials) is not int or trials != 1 or self._parsed is None:
            check_trials(trials)
            check_in_place(self.name, trials, self.parsed.in_place)

    def _check_buffers(self) -> tuple[wgpu.GPUBuffer, ...]:
        destructions, arrays = DESTRUCTIONS.count, self.parsed.arrays
        for array in arrays.values():
            check_usable(array, None, self.name)
        buffers = (part.lease.buffer for value in arrays.values() for part in parts(value))
        # By a caller who has the buffer, now or later. No other buffer can be mapped again, once it is not.
        self._mappable = mappable = tuple(buffer for buffer in buffers if buffer.usage & MAP_USAGE)
        self.destructions = destructions
        return mappable

    # ---- running ----

    @explained()
    def execute(
        self,
        *,
        encoder: wgpu.GPUCommandEncoder | None = None,
        enable_gpu_timing: GpuTiming = False,
        enable_cpu_timing: bool = False,
        trials: int = 1,
    ) -> Run[ItemsT]:
        """Run it, with the options of `Primitive.execute`.

        Returns
        -------
        Run
        """
        self.check(trials)
        if encoder is not None:
            check_encoder_option(self.name, encoder, enable_cpu_timing, self.device)
        if enable_gpu_timing:
            check_gpu_timing(self.name, enable_gpu_timing, self.device)
        observer = self._context.observer
        if observer is None:
            return self.run(encoder, enable_gpu_timing, enable_cpu_timing, trials, None)
        with observer.span(self.name, "primitive") as node:
            node.shapes = self.shapes()
            return self.run(encoder, enable_gpu_timing, enable_cpu_timing, trials, observer)

    @explained(ASYNC_REMEDIES)
    async def execute_async(
        self, *, enable_gpu_timing: GpuTiming = False, enable_cpu_timing: bool = False, trials: int = 1
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
        """Record it on an encoder, as `Primitive.record`.

        Returns
        -------
        dict from str to Array or ChunkedArray
            The outputs.
        """
        self.check(trials)
        check_encoder(self.name, encoder, self.device)
        if timing is not None:
            check_session(self.name, timing, self.device)
        return self.encode(encoder, trials, timing)

    def encode(self, encoder: wgpu.GPUCommandEncoder, trials: int, timing: TimingSession | None) -> dict[str, Any]:
        """As `record`, with options that were checked."""
        watch_submission(encoder, self._named_notes, self.device, self._leases)
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
        enable_gpu_timing: GpuTiming,
        enable_cpu_timing: bool,
        trials: int,
        observer: Observer | None,
    ) -> Run[Any]:
        """As `execute`, with options that were checked."""
        context, bound = self._context, self._bound_plan
        if context.recorders and encoder is None:
            recorder = context.recorder()
            if recorder is not None and recorder.takes(
                self.name, observer, enable_gpu_timing, enable_cpu_timing, self._launch_blocking
            ):
                return self._hold_back(recorder, enable_gpu_timing, trials)
        is_first = not bound.ran and bound.begins()
        if (
            observer is None
            and encoder is None
            and not (enable_gpu_timing or enable_cpu_timing or self._launch_blocking)
        ):
            launch_untimed(self._device, bound, trials, self.name)
            return self._run
        session = None
        if enable_gpu_timing or (observer is not None and observer.times_kernels(encoder)):
            session = context.session(inside=enable_gpu_timing == "inside")
        cpu: dict[str, Any] | None = {} if enable_cpu_timing else None
        if encoder is None:
            launch(self._device, bound, trials, session, cpu, observer, blocking=self._launch_blocking, doing=self.name)
        else:
            watch_submission(encoder, self._named_notes, self._device, self._leases)
            with device_errors(self.name):
                record_marked(bound, encoder, trials, session)
        if observer is not None:
            observer.kernels(bound.plan, session, 0, trials, encoder)
        # An int of Python, so that whoever multiplies by it does so without the width of a numpy scalar.
        plan, measurement = bound.plan, None
        if enable_gpu_timing or enable_cpu_timing:
            doubt = clock_doubt(self._device)
            counts = self._counts_of_now(encoder) if plan.work.counted else None
            measurement = Measurement(
                plan.kernels, plan.work, session, int(trials), cpu or {}, doubt, counts,
                is_first=is_first, pass_count=bound.pass_count,
            )  # fmt: skip
            self._last_timed = measurement
        return Run(plan, self._run.outputs, encoder, measurement)

    def _hold_back(self, recorder: CallRecorder, enable_gpu_timing: GpuTiming, trials: int) -> Run[Any]:
        """Give the call to a batch or a capture."""
        bound, parsed, context = self._bound_plan, self.parsed, self._context
        plan = bound.plan
        if not enable_gpu_timing:
            recorder.add(self.name, bound, trials, parsed)
            return self._run
        session = context.session(inside=enable_gpu_timing == "inside")
        spans = None if session is None else ReservedSpans(session, bound)
        is_first = bound.begins()
        recorder.add(self.name, bound, trials, parsed, spans)
        note_work(self._device)  # by the time of the call; its submission follows soon
        doubt = clock_doubt(self._device)
        counts = self._counts_of_now(None) if plan.work.counted else None
        self._last_timed = measurement = Measurement(
            plan.kernels, plan.work, session, int(trials), {}, doubt, counts,
            is_first=is_first, pass_count=bound.pass_count,
        )  # fmt: skip
        return Run(plan, self._run.outputs, None, measurement)

    def _counts_of_now(self, encoder: wgpu.GPUCommandEncoder | None) -> dict[str, Array]:
        """Return copies of the counts of a timed call, which later calls may change before the times are read."""
        copies: dict[str, Array] = {}
        for part in self.plan.work.counted:
            count = self.arrays[part.count]
            if not isinstance(count, Array) or not count.lease.buffer.usage & wgpu.BufferUsage.COPY_SRC:
                continue  # nobody can read it: the work stays that of the most items
            if encoder is None and count.lease.buffer.usage & wgpu.BufferUsage.STORAGE:
                copies[part.count] = count.copy()
            elif encoder is None:
                copies[part.count] = count
            else:
                copy = copies[part.count] = new_array(self._context, 1, count.datatype)
                encoder.copy_buffer_to_buffer(count.lease.buffer, count.offset_bytes, copy.lease.buffer, 0, 4)
        return copies

    def get_timing_result(self) -> TimingResult:
        """Return the times of the last timed run; see `Run.get_timing_result`."""
        return timing_result(self.name, self._last_timed)

    async def get_timing_result_async(self) -> TimingResult:
        """Like `get_timing_result`, without blocking the event loop."""
        return await in_thread(self.get_timing_result)

    def release(self) -> None:
        """Drop the arguments. The call cannot run afterwards."""
        self._parsed = None
        self._run = Run(self.plan, {}, None, None)
        self._mappable = ()
        self.__dict__.pop("_named_notes", None)
        self.__dict__.pop("_leases", None)

    def __repr__(self) -> str:
        return f"BoundCall({self.name}, {'released' if self._parsed is None else self.shapes()})"


async def to_the_end(device: wgpu.GPUDevice, execute: Callable[[], RunT]) -> RunT:
    """Execute in a thread, wait there until the queue is idle, and return the run."""

    def run() -> RunT:
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
