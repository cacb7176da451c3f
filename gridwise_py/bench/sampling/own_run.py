"""A benchmark of a user's file that is run call by call, for `gridwise ab`, whose workers run primitives so."""

from __future__ import annotations

from collections.abc import Mapping

import wgpu

from ...backend.wgpu_native import submit, wait_idle
from ...runtime.chunked_array import parts
from ...runtime.context import context_of
from ...runtime.run import bracket
from ...timing.queries import TimingSession
from ...timing.result import TimingResult
from ..cases.mode import Mode
from ..cases.own_files import OwnWorkload
from .measure import own_checker
from .pristine import Pristine, to_restore
from .subjects import Subject, subject_of

__all__ = ["OwnCall", "OwnRun"]


class OwnCall:
    """One run; `get_timing_result` has its times, as of a primitive's run."""

    def __init__(self, subject: Subject, trials: int, session: TimingSession | None, wall_ns: float | None):
        self._labels, self._trials, self._session, self._wall_ns = subject.runnable.labels, trials, session, wall_ns

    def get_timing_result(self) -> TimingResult:
        """Return the times; waits for the end of the work."""
        spans = () if self._session is None else tuple(self._session.spans())
        return TimingResult(self._labels, self._trials, spans, cpu_total_time_ns=self._wall_ns)


class OwnRun:
    """What a user's benchmark runs at one point of its axes, bound and run once.

    Parameters
    ----------
    device : wgpu.GPUDevice
    workload : OwnWorkload
    n : int
    mode : str
    axes : mapping from str to str
        All others.
    seed : int
        Of its generator.
    check : bool
        Whether the result of the first run is compared with the reference.

    Raises
    ------
    ArgumentError
        If the user's code raises, or an argument does not fit.
    """

    def __init__(
        self, device: wgpu.GPUDevice, workload: OwnWorkload, n: int, mode: str, axes: Mapping[str, str], seed: int,
        *, check: bool,
    ):  # fmt: skip
        benchmark = workload.benchmark(device, n, mode, axes, seed)
        self._device = device
        self._subject = subject = workload.guarded(lambda: subject_of(device, workload.full_name, benchmark))
        names = to_restore(subject, Mode(mode), tuple(benchmark.restore) or None)
        restored = [array for name in names for array in parts(subject.arrays[name])]
        checker = own_checker(workload, benchmark, subject, check=check)
        self._pristine = Pristine(device, restored) if restored else None
        workload.guarded(lambda: self.run(enable_cpu_timing=True))
        found = checker.wrong()
        #: The first wrong item of the first run; None if there is none, or nothing was compared.
        self.wrong: str | None = str(found[0]) if found else None

    def run(self, *, enable_gpu_timing: bool = False, enable_cpu_timing: bool = False, trials: int = 1) -> OwnCall:
        """Submit it, with the options of `Primitive.execute`."""
        device, context = self._device, context_of(self._device)
        if self._pristine is not None:
            encoder = device.create_command_encoder()
            self._pristine.restore(encoder)
            submit(device, [encoder.finish()], self._subject.name)
        session = context.session() if enable_gpu_timing else None
        encoder = device.create_command_encoder()
        if self._pristine is None or trials == 1:
            self._subject.runnable.encode(encoder, trials=trials, timing=session)
        else:  # to keep the GPU busy: nobody times them
            for _ in range(trials):
                self._pristine.restore(encoder)
                self._subject.runnable.encode(encoder)
        commands = [encoder.finish()]
        wall_ns = None
        if enable_cpu_timing:
            begin, _, end = bracket(device, lambda: submit(device, commands, self._subject.name))
            wall_ns = float(end - begin)
        else:
            submit(device, commands, self._subject.name)
        if session is not None:
            session.submitted()
        return OwnCall(self._subject, trials, session, wall_ns)

    def release(self) -> None:
        """Wait for the end of its work, so that its memory can go."""
        wait_idle(self._device)
