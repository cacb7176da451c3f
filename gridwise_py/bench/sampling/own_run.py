"""A benchmark of a user's file that is run call by call, for `gridwise ab`, whose workers run primitives so."""

from __future__ import annotations

from collections.abc import Mapping

import wgpu

from ... import TimingResult, synchronize
from ...internals import bracket, context_of, parts
from ...settings import ShaderChecks, strictest
from ..cases.mode import Mode
from ..cases.own_files import OwnWorkload
from .checker import checker_of
from .codes import code_of
from .pristine import Pristine, to_restore
from .returned import Moments, Stamped, spans_of, timings_of
from .subjects import Subject, Submitted, choose_mode, prepare_trials, subject_of


class OwnCall:
    """One run; `get_timing_result` has its times, as of a primitive's run."""

    def __init__(self, subject: Subject, trials: int, timings: list[Stamped | Moments] | None, wall_ns: float | None):
        self._labels, self._trials, self._timings, self._wall_ns = subject.runnable.labels, trials, timings, wall_ns

    def get_timing_result(self) -> TimingResult:
        """Return the times; waits for the end of the work."""
        spans = tuple(spans_of(self._timings))
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
        device = workload.device(device, axes)
        benchmark = workload.benchmark(device, n, mode, axes, seed)
        asked = choose_mode(benchmark, mode, Mode.HOT)
        self._device = device
        self._subject = subject = workload.guarded(lambda: subject_of(device, workload.full_name, benchmark))
        code = code_of(subject, benchmark) if check else None
        #: Digests of what it asks of the GPU; None of a function, and if `check` is False.
        self.code: dict[str, str] | None = None if code is None else code.digests
        names = to_restore(subject, asked, benchmark.restore or None)
        restored = [array for name in names for array in parts(subject.arrays[name])]
        checker = workload.guarded(lambda: checker_of(subject, benchmark, check))
        pristine = Pristine(device, restored)
        self._pristine = pristine if restored else None
        found = workload.guarded(lambda: checker.first(lambda: self.run(enable_cpu_timing=True), pristine, names))
        #: The strictest run-time checks of its kernels; None of a function, which does not tell.
        self.shader_checks: ShaderChecks | None = strictest(subject.shader_checks)
        #: Whether the result is compared with anything.
        self.checked: bool = checker.checks
        #: The first wrong item of the first run; None if there is none, or nothing was compared.
        self.wrong: str | None = str(found[0]) if found else None

    def run(self, *, enable_gpu_timing: bool = False, enable_cpu_timing: bool = False, trials: int = 1) -> OwnCall:
        """Submit it, with the options of `Primitive.execute`."""
        device, subject, pristine = self._device, self._subject, self._pristine
        if pristine is not None:
            pristine.put_back()
        call = subject.runnable if isinstance(subject.runnable, Submitted) else None
        session = context_of(device).session() if enable_gpu_timing and call is None else None
        # Restored in between only to keep the GPU busy: nobody times several trials then.
        restore = [] if pristine is None or trials == 1 else [pristine.restore]
        send = prepare_trials(subject.device, subject.runnable, trials, session, restore)
        wall_ns = None
        if enable_cpu_timing:
            begin, _, end = bracket(device, send, tuple if call is None else call.used)
            wall_ns = float(end - begin)
        else:
            send()
        timings: list[Stamped | Moments] | None = None if session is None else [session]
        if call is not None:
            timings = timings_of(call.returned)
        return OwnCall(subject, trials, timings, wall_ns)

    def release(self) -> None:
        """Wait for the end of its work, so that its memory can go."""
        synchronize(self._device)
