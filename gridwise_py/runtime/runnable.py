"""Runnable: what runs any number of times, a call with bound arguments or a captured sequence; and how it runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import wgpu

from ..backend.device_errors import device_errors
from ..backend.queues import note_work, wait_idle
from ..backend.waits import in_thread
from ..errors import ArgumentError, OverlapError, TimingUnavailable
from ..planning.plan import Kernel, Plan, Work
from ..timing.queries import INSIDE_PASSES, GpuTiming, TimingSession, without_inside
from ..timing.result import TimingResult
from ..types.options import integer
from .array import Array
from .batch import CallRecorder, ReservedSpans
from .context import DeviceContext
from .encodable import Encodable
from .encoders import check_encoder, watch_submission
from .gpu_clock import clock_doubt
from .memory import Lease
from .observer import Observer
from .one_device import OfOneDevice
from .run import Measurement, launch, record_marked

RunT = TypeVar("RunT")
#: Options that ``execute_async`` lacks, and the remedy.
ASYNC_REMEDIES = {"encoder": "it submits by itself; use execute(encoder=…) to record"}


def check_trials(trials: Any) -> None:
    """Raise ArgumentError where a number of trials is none."""
    if type(trials) is not int or trials < 1:
        integer("trials", trials, 1)


def check_in_place(name: str, trials: int, in_place: bool) -> None:
    """Raise OverlapError where a repetition would find other inputs."""
    if trials > 1 and in_place:
        raise OverlapError(
            f"{name}: trials={trials} repeats the work, but the first trial changes what it reads: an output "
            f"overlaps an input, or is 'read_write' in a gw.Kernel; give a separate output, or trials=1. A kernel that "
            f"does not read what the output held says 'write' in bindings="
        )


class Asked(NamedTuple):
    """The options of an execution, as `Primitive.execute` explains them."""

    gpu_timing: GpuTiming = False
    cpu_timing: bool = False
    trials: int = 1
    encoder: wgpu.GPUCommandEncoder | None = None

    def check(self, name: str, device: wgpu.GPUDevice) -> None:
        """Raise where the options do not fit each other, or the device; `name` is that of what runs."""
        if self.encoder is not None:
            if self.cpu_timing:
                raise ArgumentError(
                    "enable_cpu_timing=True measures the primitive's own submission, which encoder= leaves to you: "
                    "leave out encoder=, or time your submission yourself"
                )
            check_encoder(name, self.encoder, device)
        if not isinstance(self.gpu_timing, str):
            return
        if self.gpu_timing != "inside":
            raise ArgumentError(
                f"{name}: enable_gpu_timing is {self.gpu_timing!r}; it must be False, True (a pass with timestamps for "
                f'each kernel) or "inside" (timestamps inside of the passes that the kernels share)'
            )
        if INSIDE_PASSES not in device.features:
            raise TimingUnavailable(f"{name}: {without_inside(device)}")


#: What most calls ask for.
PLAIN = Asked()


class Runnable(OfOneDevice):
    """Commands on real buffers, ready to run any number of times.

    Attributes
    ----------
    name : str
    """

    name: str
    _context: DeviceContext
    _device: wgpu.GPUDevice
    _launch_blocking: bool
    _last_timed: Measurement | None = None

    # ---- what a subclass says ----

    @abstractmethod
    def _plans(self) -> Sequence[tuple[Plan, int]]:
        """Return the plans, in order, and how often each one runs in a trial."""

    @abstractmethod
    def _kernels_and_work(self) -> tuple[Sequence[Kernel], Work | None]:
        """Return all kernels, and what they do together where that is known."""

    @abstractmethod
    def _given_to_recorders(self) -> tuple[str, object]:
        """Return what batches call it, and what keeps its arguments alive."""

    @abstractmethod
    def _kept_by_encoders(self) -> tuple[tuple[tuple[list[bool], str], ...], tuple[Lease, ...]]:
        """Return the note of each buffer's end with what messages call the buffer, and the leases of all memory."""

    def _counts(self, encoder: wgpu.GPUCommandEncoder | None) -> Mapping[str, Array] | None:
        """Return copies of the counts that its work depends on."""

    def _submit(
        self,
        work: Encodable,
        asked: Asked,
        session: TimingSession | None,
        cpu: dict[str, Any] | None,
        observer: Observer | None,
    ) -> None:
        launch(self._device, work, asked.trials, self.name, session, cpu, observer, blocking=self._launch_blocking)

    # ---- running ----

    def _run(self, work: Encodable, asked: Asked, observer: Observer | None) -> Measurement | None:
        """Submit work, hold it back for a batch or a capture, or record it; return what was measured.

        The options were checked.
        """
        context, encoder = self._context, asked.encoder
        recorder = self._recorder(asked, observer)
        is_first = (recorder is None or bool(asked.gpu_timing)) and work.begins()
        session = None
        if asked.gpu_timing or (observer is not None and observer.times_kernels(encoder)):
            session = context.session(inside=asked.gpu_timing == "inside")
        cpu: dict[str, Any] | None = {} if asked.cpu_timing else None
        if recorder is not None:
            title, kept = self._given_to_recorders()
            recorder.add(title, work, asked.trials, kept, None if session is None else ReservedSpans(session, work))
            if asked.gpu_timing:
                note_work(self._device)  # by the time of the call; its submission follows soon
        elif encoder is not None:
            notes, leases = self._kept_by_encoders()
            watch_submission(encoder, notes, self._device, leases)
            with device_errors(self.name):
                record_marked(work, encoder, asked.trials, session)
        else:
            self._submit(work, asked, session, cpu, observer)
        if observer is not None:
            first = 0
            for plan, trials in self._plans():
                observer.kernels(plan, session, first, trials * asked.trials, encoder)
                first += len(plan.kernels)
        if not (asked.gpu_timing or asked.cpu_timing):
            return None
        kernels, done = self._kernels_and_work()
        doubt = clock_doubt(self._device)
        # An int of Python, so that whoever multiplies by it does so without the width of a numpy scalar.
        self._last_timed = measurement = Measurement(
            kernels, done, session, int(asked.trials), cpu or {}, doubt, self._counts(encoder),
            is_first=is_first, pass_count=work.pass_count,
        )  # fmt: skip
        return measurement

    def _recorder(self, asked: Asked, observer: Observer | None) -> CallRecorder | None:
        """Return the batch or the capture of this thread that takes the call, if there is one."""
        if not self._context.recorders or asked.encoder is not None:
            return None
        recorder: CallRecorder | None = self._context.recorder()
        takes = recorder is not None and recorder.takes(
            self.name, observer, asked.gpu_timing, asked.cpu_timing, self._launch_blocking
        )
        return recorder if takes else None

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device it runs on."""
        return self._device

    def get_timing_result(self) -> TimingResult:
        """Return the times of the last timed run; see `Run.get_timing_result`."""
        return timing_result(self.name, self._last_timed)

    async def get_timing_result_async(self) -> TimingResult:
        """Like `get_timing_result`, without blocking the event loop."""
        return await in_thread(self.get_timing_result)


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
