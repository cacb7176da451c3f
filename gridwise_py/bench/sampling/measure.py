"""`measure`: one subject, on one device, in one mode, as a `Measurement`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import wgpu

from ... import synchronize
from ...errors import GridwiseError, TimingUnavailable
from ...internals import Code, context_of, gpu_of, parts, queue_uses
from ..calibrate.calibration import cache_bytes, fastest_canary_ns, note_canary, unit_warnings
from ..calibrate.kernels import bind_flush
from ..cases.benchmarked import Benchmark, Measurable
from ..cases.case import Case
from ..cases.mode import MODES, Mode, ModeLike
from ..cases.own_files import OwnCodeError
from ..checks.check import Mismatch
from ..stats.energy import EnergyResult
from ..stats.series import StopReason
from .checker import Check, Checker, checker_of
from .codes import code_of
from .conditions import Conditions
from .energy import subject_energy
from .machine_load import LoadWatch
from .measurement import Measurement
from .pristine import Pristine, to_restore
from .protocol import SamplingProtocol
from .sampler import Sampler
from .samples import Samples
from .subjects import Recording, Subject, Submitted, benchmark_of, choose_mode, device_of, prepare_trials, subject_of

_FLUSH_BYTES = 256 << 20
_MAX_FLUSH_BYTES = 1 << 30
_FLUSH_FACTOR = 4


def measure(
    subject: Measurable,
    /,
    *,
    mode: ModeLike | None = None,
    protocol: SamplingProtocol | None = None,
    restore: Iterable[str] | None = None,
    reference: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    check: Check = True,
    case: Mapping[str, Any] | None = None,
    device: wgpu.GPUDevice | None = None,
    **arrays: Any,
) -> Measurement:
    """Measure GPU work: warm it up, sample it, and check its timestamps and results.

    Parameters
    ----------
    subject : Primitive, Sequence, callable, primitives, or Benchmark
        Several kernels run in order. A function that takes an ``encoder``, and the arguments by name, records on it;
        one without submits by itself, and is timed as `benchmark` does. The spans that the one takes of a parameter
        ``timing=None``, a `TimingSession`, and those that the other returns, are kernels.
    mode : {"hot", "cold", "batch", "latency"}
        See docs/concepts/measuring.md. By default hot; latency for what submits by itself.
    protocol : SamplingProtocol, optional
    restore : iterable of str, optional
        Arguments that are put back, untimed, before each trial, and after an error; by default inputs that share memory
        with an output.
    reference, rtol, atol : optional
        The right outputs and how much floats may differ, as of a `Benchmark`. By default a primitive is compared with
        its reference in numpy; a `Kernel` has none.
    check : bool or callable, default True
        Whether results are compared with the reference; or a function that takes the outputs by name and returns a
        `Mismatch` or None.
    case : mapping, optional
        What else identifies it.
    device : wgpu.GPUDevice, optional
        Where a function records or submits.
    **arrays : Array, numpy.ndarray or wgpu.GPUBuffer
        Numpy arrays are uploaded.

    Returns
    -------
    Measurement

    Raises
    ------
    ArgumentError
        If the mode or an argument does not fit.
    DatatypeError
        If it is nothing that can be measured.
    TimingUnavailable
        If the mode needs timestamps and the device has none.

    Notes
    -----
    A function as `check` gets a dict of Arrays, or of what submits by itself what it returned. What it raises ends the
    measurement.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.ones(1000, dtype=np.uint32), device)
    >>> short = gw.SamplingProtocol(min_samples=10, block_trials=10, warmup_s=0.001, max_warmup_s=0.01, timeout_s=0.01)
    >>> m = gw.measure(gw.Scan(device, "u32"), mode="latency", protocol=short, input=x)
    >>> m.checked, m.correct, m.n
    (True, True, 1000)
    >>> m.time_ns > 0
    True
    >>> with gw.capture(device) as calls:
    ...     _ = gw.sum(gw.cumsum(x))
    >>> len(gw.measure(calls, protocol=short).kernels)
    2
    >>> gw.measure(lambda: gw.cumsum(x), protocol=short).mode.value
    'latency'
    """
    protocol = protocol or SamplingProtocol()
    benchmark = benchmark_of(
        "gw.measure", subject, arrays, check, restore=restore, reference=reference, rtol=rtol, atol=atol
    )
    return measure_ready(prepare(benchmark, mode, check=check, device=device), case or {}, protocol)


def measure_ready(ready: Ready, case: Mapping[str, Any], protocol: SamplingProtocol) -> Measurement:
    """Measure something that is ready; after an error what is restored before trials is as it was."""
    watch = LoadWatch()
    with ready.pristine:
        found = ready.unsampled(case, protocol)
        if ready.subject.runnable.labels:
            found = _sampled(found, ready, protocol)
    return replace(found, other_load=watch.share())


def measure_rounds(ready: Ready, protocols: Sequence[SamplingProtocol]) -> list[Measurement]:
    """Measure something once for each protocol, bound and checked once, so that each round has the same inputs.

    Returns
    -------
    list of Measurement
        A single one without samples if the first result is wrong. No more are taken after a wrong result.
    """
    found: list[Measurement] = []
    with ready.pristine:
        first = ready.unsampled({}, protocols[0])
        if first.mismatches or not ready.subject.runnable.labels:
            return [first]
        watch = LoadWatch()
        for protocol in protocols:
            settings = {**first.protocol, **protocol.to_dict()}
            found.append(_sampled(replace(first, protocol=settings), ready, protocol))
            if found[-1].mismatches:
                break
        load = watch.share()
    return [replace(m, other_load=load) for m in found]


def measure_case(
    device: wgpu.GPUDevice,
    case: Case,
    protocol: SamplingProtocol | None = None,
    mode: str = "hot",
    *,
    check: bool = True,
) -> Measurement:
    """Measure a case of a sweep on random data; a failure becomes `Measurement.error`."""
    protocol = protocol or SamplingProtocol()
    own = case.own_workload
    try:
        device = device if own is None else own.device(device, dict(case.others))
        benchmark = case.benchmark(device, mode, protocol.seed)
        name = "" if own is None else own.full_name

        def run() -> Measurement:
            return measure_ready(prepare(benchmark, mode, name, check=check, device=device), case.axes, protocol)

        found = run() if own is None else own.guarded(run)
        return replace(found, primitive=case.primitive, n=case.n)
    except (GridwiseError, wgpu.GPUError, MemoryError) as error:
        said = str(error) if isinstance(error, OwnCodeError) else f"{type(error).__name__}: {error}"
        return Measurement(
            case.primitive, Mode(mode) if mode in MODES else Mode.HOT, case.n, case.axes,
            protocol=protocol.to_dict(), error=said,
        )  # fmt: skip


# ---- before the samples


@dataclass(frozen=True)
class Ready:
    """A subject after its first run, ready to be measured.

    Attributes
    ----------
    subject : Subject
    mode : Mode
    restored : tuple of str
        Arguments that are restored before each trial.
    pristine : Pristine
        Their contents.
    checker : Checker
    mismatches : tuple of Mismatch
        Of the first runs.
    cold_start_ns : float or None
        The first run; None if it compiled nothing.
    code : Code or None
        What it asks of the GPU; None of a function.
    """

    subject: Subject
    mode: Mode
    restored: tuple[str, ...]
    pristine: Pristine
    checker: Checker
    mismatches: tuple[Mismatch, ...]
    cold_start_ns: float | None
    code: Code | None

    def put_back(self) -> None:
        """Let its arguments hold what they held before, for another that has the same ones."""
        for held in filter(None, (self.checker.held, self.pristine)):
            held.put_back()

    def unsampled(self, case: Mapping[str, Any], protocol: SamplingProtocol) -> Measurement:
        """Return its measurement without a sample."""
        subject = self.subject
        return Measurement(
            primitive=subject.name,
            mode=self.mode,
            n=subject.n,
            case=dict(case),
            parameters=subject.parameters,
            protocol={**protocol.to_dict(), "mode": self.mode.value, "restored": list(self.restored)},
            work=subject.work,
            shaders_sha256=subject.shaders_sha256,
            shader_checks=subject.shader_checks,
            cold_start_ns=self.cold_start_ns,
            checked=self.checker.checks,
            mismatches=self.mismatches,
            code=self.code,
        )


def prepare(
    benchmark: Benchmark,
    mode: str | None = None,
    name: str = "",
    *,
    usual: str = Mode.HOT,
    check: Check = True,
    device: wgpu.GPUDevice | None = None,
) -> Ready:
    """Bind what a benchmark runs, copy the arguments that it changes, and check its first runs.

    Parameters
    ----------
    benchmark : Benchmark
    mode : str, optional
        By default `usual`, or latency of a function that submits.
    name : str, optional
        By default its own.
    usual : str
    check : bool or callable
        As for `measure`.
    device : wgpu.GPUDevice, optional
        As for `measure`.

    Raises
    ------
    ArgumentError, DatatypeError, TimingUnavailable
        As `measure`.
    """
    asked = choose_mode(benchmark, mode, usual)
    device = device_of(benchmark, device)
    if device is not None:
        _check_timestamps(asked, device)
        synchronize(device)
    known = queue_uses() if device is None else [device]
    uses = {one: next(context_of(one).executor.uses) for one in known}
    begin, compiled = time.perf_counter_ns(), _compiled(device)
    subject = subject_of(device, name, benchmark)
    cold_ns, is_fresh = time.perf_counter_ns() - begin, _compiled(device) > compiled
    device, runnable, code = subject.device, subject.runnable, code_of(subject, benchmark)
    restored = to_restore(subject, asked, benchmark.restore or None)
    checker = checker_of(subject, benchmark, check)
    pristine = Pristine(device, [array for name in restored for array in parts(subject.arrays[name])])
    runs_ns: list[int] = []

    def run() -> None:
        begin = time.perf_counter_ns()
        prepare_trials(device, runnable)()
        synchronize(device)
        runs_ns.append(time.perf_counter_ns() - begin)

    found = checker.first(run, pristine, restored)
    if isinstance(runnable, Submitted):
        cold_ns, is_fresh = runnable.first_ns, True
    else:
        cold_ns += runs_ns[0]
    if not subject.shader_checks:  # what a function ran
        level = context_of(device).executor.checks_since(uses.get(device, 0))
        subject = replace(subject, shader_checks=(level,) * len(runnable.labels))
    context_of(device).finish_compiling()  # now, not between the warm-up and the first sample
    return Ready(subject, asked, restored, pristine, checker, found, float(cold_ns) if is_fresh else None, code)


def _compiled(device: wgpu.GPUDevice | None) -> int:
    return 0 if device is None else context_of(device).executor.pipelines.compiled


def _check_timestamps(mode: Mode, device: wgpu.GPUDevice) -> None:
    if mode == Mode.COLD and not context_of(device).has_timestamps:
        raise TimingUnavailable(
            "mode 'cold' needs GPU timestamps, since its flushes are not to be counted, but this device was made "
            "without the feature 'timestamp-query'; use mode 'hot', or a device of gridwise_py.request_device()"
        )


# ---- the samples


def _sampled(unsampled: Measurement, ready: Ready, protocol: SamplingProtocol) -> Measurement:
    """Return a measurement with its samples, the last result checked, too."""
    device, bound, mode = ready.subject.device, ready.subject.runnable, ready.mode
    context = context_of(device)
    in_force = dict(unsampled.protocol)
    before_trial: list[Recording] = [ready.pristine.restore] * bool(ready.restored)
    if mode is Mode.COLD:
        flush, flush_buffer = bind_flush(device, _flush_bytes(device, protocol))
        before_trial.append(flush.encode)
        in_force["flush_bytes"] = flush_buffer.size
    sampler = Sampler(device, bound, mode, protocol, before_trial)
    fastest_ns = fastest_canary_ns(device)
    busy = time.perf_counter()
    warnings = unit_warnings(device) if context.has_timestamps and protocol.check_unit else []
    if mode is Mode.COLD:
        warnings += _flush_warnings(in_force["flush_bytes"], cache_bytes(device))
    # If the tick was checked just now, the GPU has been busy since, and its clock is rising already.
    warm = sampler.warm_up(fastest_ns, busy_s=time.perf_counter() - busy)
    on_cpu = context.capabilities.is_cpu
    samples = Samples(bound.labels, mode, sampler.batch_trials, bool(before_trial), on_cpu=on_cpu)
    begun_ns = time.perf_counter_ns()
    ended = _sample(sampler, protocol, samples)
    energy = _energy(ready, protocol)
    mismatches = unsampled.mismatches + ready.checker.wrong()
    if samples.settled.canary is not None:
        note_canary(device, samples.settled.canary.median_ns)
    conditions = Conditions(
        protocol=protocol,
        mode=mode,
        warm=warm,
        batch_trials=sampler.batch_trials,
        submission_trials=sampler.submission_trials,
        block_samples=sampler.block_samples,
        sampling_s=ended.seconds,
        wait_method=context.wait_method,
        has_timestamps=context.has_timestamps,
        tick_step_ns=context.capabilities.tick_step_ns,
        fastest_canary_ns=fastest_ns,
    )
    in_force |= {**conditions.in_force(samples), "on_cpu": on_cpu}
    warnings += [*conditions.warnings(samples), *ready.checker.notes()]
    return replace(
        unsampled,
        protocol=in_force,
        kernels=samples.kernels(),
        whole=samples.whole(),
        stop_reason=ended.reason,
        clock_moved=samples.settled.moved,
        canary_ns=tuple(canary.median_ns for canary in samples.canaries),
        mismatches=mismatches,
        warnings=tuple(warnings),
        observations=ended.observations,
        ticks=samples.ticks(),
        energy=energy,
        tick_period_ns=context.timing_helper.tick_period_ns if context.has_timestamps else None,
        begun_ns=begun_ns,
    )


def _energy(ready: Ready, protocol: SamplingProtocol) -> EnergyResult | None:
    """Return the energy of a trial if the protocol asks for it; with a reason where its trials cannot be repeated."""
    if not protocol.energy_windows:
        return None
    if ready.mode is Mode.COLD:
        return EnergyResult(reason="in mode cold the caches are emptied between trials, which takes energy, too")
    if ready.restored or ready.subject.in_place:
        return EnergyResult(reason="its inputs are restored before each trial, which takes energy, too")
    return subject_energy(ready.subject, protocol.energy_windows, protocol.energy_window_s)


class _Ended(NamedTuple):
    """How sampling ended, and the observations of the GPU."""

    observations: dict[str, Any]
    reason: StopReason
    seconds: float


def _sample(sampler: Sampler, protocol: SamplingProtocol, samples: Samples) -> _Ended:
    """Take blocks of samples until the protocol says stop."""
    observations: list[Any] = []
    stopping = protocol.stopping()
    gpu = gpu_of(sampler.device)
    look = dict[str, Any] if gpu is None else gpu.look
    start = time.perf_counter()
    while True:
        most = protocol.max_samples if protocol.samples is None else protocol.samples
        count = min(sampler.block_samples, most - samples.count)
        before = look()
        samples.add(sampler.block(count), sampler.period_ns)
        if before:
            observations.append({"before": before, "after": look()})
        elapsed = time.perf_counter() - start
        reason = None if protocol.samples is not None else stopping.reason(samples.headline(), elapsed)
        if reason is None and samples.count >= most:
            reason = StopReason.COUNT
        if reason is None and elapsed >= protocol.timeout_s:
            reason = StopReason.TIMEOUT
        if reason is not None:
            return _Ended({"blocks": observations} if observations else {}, reason, elapsed)


def _flush_bytes(device: wgpu.GPUDevice, protocol: SamplingProtocol) -> int:
    wanted = protocol.flush_bytes
    if wanted is None:
        cache = cache_bytes(device)
        wanted = _FLUSH_BYTES if cache is None else min(_FLUSH_FACTOR * cache, _MAX_FLUSH_BYTES)
    limits = device.limits
    return min(wanted, limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])


def _flush_warnings(flush_bytes: int, known_cache_bytes: int | None) -> list[str]:
    if known_cache_bytes is None or flush_bytes >= known_cache_bytes:
        return []
    return [
        f"flush_bytes={flush_bytes:,} does not empty the last-level cache of up to {known_cache_bytes:,} bytes: these "
        f"times are not of cold caches"
    ]
