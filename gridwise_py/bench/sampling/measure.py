"""`measure`: one primitive, on one device, in one mode, as a `Measurement`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import wgpu

from ...backend.wgpu_native import submit, wait_idle, wait_method
from ...errors import ArgumentError, DatatypeError, GridwiseError, TimingUnavailable
from ...primitives.base import Primitive
from ...runtime.array import Array
from ...runtime.chunked_array import parts
from ...runtime.compile_threads import compile_threads
from ...runtime.context import context_of
from ...runtime.gpu_clock import observe
from ..calibrate.calibration import cache_bytes, fastest_canary_ns, note_canary, unit_warnings
from ..calibrate.kernels import bind_flush
from ..cases.benchmarked import Benchmark
from ..cases.case import Case
from ..cases.mode import MODES, Mode, ModeLike
from ..cases.own_files import OwnCodeError, OwnWorkload
from ..checks.check import Mismatch, mismatch
from ..checks.oracle import Oracle
from ..stats.series import StopReason
from .conditions import Conditions
from .measurement import Measurement
from .own_checks import OwnCheck
from .pristine import Pristine, to_restore
from .protocol import SamplingProtocol
from .sampler import Sampler
from .samples import Samples
from .subjects import Runnable, Subject, subject_of, subject_of_call, uploaded

__all__ = ["Check", "Checker", "measure", "measure_case", "measure_rounds", "own_checker"]

_FLUSH_BYTES = 256 << 20
_MAX_FLUSH_BYTES = 1 << 30
_FLUSH_FACTOR = 4

Check: TypeAlias = bool | Callable[[dict[str, Array]], Mismatch | None]


def measure(
    primitive: Primitive,
    /,
    *,
    mode: ModeLike = "hot",
    protocol: SamplingProtocol | None = None,
    restore: Iterable[str] | None = None,
    check: Check = True,
    case: Mapping[str, Any] | None = None,
    **arrays: Any,
) -> Measurement:
    """Measure a primitive: warm it up, sample it, validate its timestamps, and check the first and the last result.

    Parameters
    ----------
    primitive : Primitive
    mode : {"hot", "cold", "batch", "latency"}
        How trials are laid out on the GPU, and in which state of the caches; see `Mode` and docs/concepts/timing.md.
    protocol : SamplingProtocol, optional
    restore : iterable of str, optional
        Arguments that the primitive changes: their contents are restored, untimed, before each trial. By default the
        inputs that share memory with an output.
    check : bool or callable, default True
        Whether the first and the last result are compared with the primitive's numpy reference, if it has one; or a
        function that takes the outputs by name and returns a `Mismatch` or None.
    case : mapping, optional
        The rest of the measurement's identity besides primitive, n and mode.
    **arrays : Array, numpy.ndarray or wgpu.GPUBuffer
        The arguments; numpy arrays are uploaded. Omitted arguments are those of the previous call.

    Returns
    -------
    Measurement

    Raises
    ------
    ArgumentError
        If the mode or an argument does not fit.
    DatatypeError
        If it is no primitive. For any callable there is `benchmark`.
    TimingUnavailable
        If the mode needs timestamps and the device has none.

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
    """
    if not isinstance(primitive, Primitive):
        raise DatatypeError(
            f"gw.measure takes a primitive and its arguments, as in gw.measure(gw.Scan(device), input=x), not "
            f"{type(primitive).__name__}; for a callable there is gw.benchmark(callable)"
        )
    protocol = protocol or SamplingProtocol()
    return _measured(_prepared_call(primitive, arrays, mode, restore, check), case or {}, protocol)


def _prepared_call(
    primitive: Primitive, arrays: Mapping[str, Any], mode: str, restore: Iterable[str] | None, check: Check
) -> _Ready:
    device = primitive.device
    asked = _checked_mode(mode, device)
    given = uploaded(arrays, primitive.signature.arguments, device)
    return _prepared(
        device,
        lambda: subject_of_call(primitive.bind(**given)),
        asked,
        restore,
        lambda subject: Checker(primitive, subject, check),
    )


def _measured(ready: _Ready, case: Mapping[str, Any], protocol: SamplingProtocol) -> Measurement:
    unsampled = ready.unsampled(case, protocol)
    return _sampled(unsampled, ready, protocol) if ready.subject.runnable.labels else unsampled


def measure_rounds(
    primitive: Primitive,
    arrays: Mapping[str, Any],
    protocols: Sequence[SamplingProtocol],
    *,
    mode: ModeLike = "hot",
    restore: Iterable[str] | None = None,
    check: Check = True,
) -> list[Measurement]:
    """Measure a primitive once for each protocol, bound and checked once, so that each round has the same inputs.

    Returns
    -------
    list of Measurement
        A single one without samples if the first result is wrong. No more are taken after a wrong result.

    Raises
    ------
    ArgumentError, DatatypeError, TimingUnavailable
        As `measure`.
    """
    ready = _prepared_call(primitive, arrays, mode, restore, check)
    first = ready.unsampled({}, protocols[0])
    if first.mismatches or not ready.subject.runnable.labels:
        return [first]
    found: list[Measurement] = []
    for protocol in protocols:
        settings = {**first.protocol, **protocol.to_dict()}
        found.append(_sampled(replace(first, protocol=settings), ready, protocol))
        if found[-1].mismatches:
            break
    return found


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
        benchmark = case.benchmark(device, mode, protocol.seed)
        if own is None:
            measured = measure(
                cast(Primitive, benchmark.run), mode=cast(ModeLike, mode), protocol=protocol, check=check,
                case=case.axes, **benchmark.inputs,
            )  # fmt: skip
        else:
            measured = own.guarded(lambda: _measure_own(device, case, benchmark, mode, protocol, check=check))
        return replace(measured, primitive=case.primitive, n=case.n)
    except (GridwiseError, wgpu.GPUError, MemoryError) as error:
        said = str(error) if isinstance(error, OwnCodeError) else f"{type(error).__name__}: {error}"
        return Measurement(
            case.primitive, Mode(mode) if mode in MODES else Mode.HOT, case.n, case.axes,
            protocol=protocol.to_dict(), error=said,
        )  # fmt: skip


def _measure_own(
    device: wgpu.GPUDevice, case: Case, benchmark: Benchmark, mode: str, protocol: SamplingProtocol, *, check: bool
) -> Measurement:
    """Measure what a user's benchmark returned, and compare its results with the reference that the user gave."""
    own = case.own_workload
    assert own is not None, "the case is of a user's file"
    asked = _checked_mode(mode, device)

    restore = tuple(benchmark.restore) or None
    ready = _prepared(
        device,
        lambda: subject_of(device, own.full_name, benchmark),
        asked,
        restore,
        lambda subject: own_checker(own, benchmark, subject, check=check),
    )
    measured = _measured(ready, case.axes, protocol)
    if len(ready.checker.results) > 1 and not ready.checker.results[0] and measured.mismatches:
        note = (
            "the first result was right and the last one wrong: if a trial changes what the next one reads, name it "
            "in restore="
        )
        measured = replace(measured, warnings=(*measured.warnings, note))
    return measured


# ---- before the samples


@dataclass(frozen=True)
class _Ready:
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
    cold_start_ns : float or None
        The first run; None if it compiled nothing.
    """

    subject: Subject
    mode: Mode
    restored: tuple[str, ...]
    pristine: Pristine
    checker: Checker
    cold_start_ns: float | None

    def unsampled(self, case: Mapping[str, Any], protocol: SamplingProtocol) -> Measurement:
        """Return its measurement without a sample, the first result checked."""
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
            cold_start_ns=self.cold_start_ns,
            checked=self.checker.checks,
            mismatches=self.checker.wrong(),
        )


def _checked_mode(mode: str, device: wgpu.GPUDevice) -> Mode:
    if mode not in MODES:
        raise ArgumentError(f"mode {mode!r} is unknown; known are {', '.join(MODES)}")
    if mode == Mode.COLD and not context_of(device).has_timestamps:
        raise TimingUnavailable(
            "mode 'cold' needs GPU timestamps, since its flushes are not to be counted, but this device was made "
            "without the feature 'timestamp-query'; use mode 'hot', or a device of gridwise_py.request_device()"
        )
    return Mode(mode)


def _prepared(
    device: wgpu.GPUDevice,
    bind: Callable[[], Subject],
    mode: Mode,
    restore: Iterable[str] | None,
    checker_of: Callable[[Subject], Checker],
) -> _Ready:
    """Bind a subject, copy the arguments that it changes, and run it once."""
    pipelines = context_of(device).executor.pipelines
    wait_idle(device)
    begin, compiled = time.perf_counter_ns(), pipelines.compiled
    subject = bind()
    bind_ns, is_fresh = time.perf_counter_ns() - begin, pipelines.compiled > compiled
    restored = to_restore(subject, mode, restore)
    checker = checker_of(subject)
    pristine = Pristine(device, [array for name in restored for array in parts(subject.arrays[name])])
    first_run_ns = _first_run(device, subject.runnable)
    cold_start_ns = float(first_run_ns + bind_ns) if is_fresh else None
    compile_threads().finish()  # now, not between the warm-up and the first sample
    return _Ready(subject, mode, restored, pristine, checker, cold_start_ns)


def _first_run(device: wgpu.GPUDevice, bound: Runnable) -> int:
    begin = time.perf_counter_ns()
    encoder = device.create_command_encoder()
    bound.encode(encoder)
    submit(device, [encoder.finish()], bound.title)
    wait_idle(device)
    return time.perf_counter_ns() - begin


# ---- the samples


def _sampled(unsampled: Measurement, ready: _Ready, protocol: SamplingProtocol) -> Measurement:
    """Return a measurement with its samples, the last result checked, too."""
    device, bound, mode = ready.subject.device, ready.subject.runnable, ready.mode
    context = context_of(device)
    in_force = dict(unsampled.protocol)
    before_trial: list[Callable[[wgpu.GPUCommandEncoder], None]] = [ready.pristine.restore] * bool(ready.restored)
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
        wait_method=wait_method(device),
        has_timestamps=context.has_timestamps,
        tick_step_ns=context.capabilities.tick_step_ns,
        fastest_canary_ns=fastest_ns,
    )
    in_force |= conditions.in_force(samples)
    warnings += conditions.warnings(samples)
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
        tick_period_ns=context.timing_helper.tick_period_ns if context.has_timestamps else None,
        begun_ns=begun_ns,
    )


class _Ended(NamedTuple):
    """How sampling ended, and the observations of the GPU."""

    observations: dict[str, Any]
    reason: StopReason
    seconds: float


def _sample(sampler: Sampler, protocol: SamplingProtocol, samples: Samples) -> _Ended:
    """Take blocks of samples until the protocol says stop."""
    observations: list[Any] = []
    stopping = protocol.stopping()
    device = sampler.device
    start = time.perf_counter()
    while True:
        most = protocol.max_samples if protocol.samples is None else protocol.samples
        count = min(sampler.block_samples, most - samples.count)
        before = observe(device)
        samples.add(sampler.block(count), sampler.period_ns)
        if before:
            observations.append({"before": before, "after": observe(device)})
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


def own_checker(own: OwnWorkload, benchmark: Benchmark, subject: Subject, *, check: bool) -> Checker:
    """Return what checks a user's benchmark, before its first run: its reference, or that of a primitive."""
    if not check:
        return Checker(None, subject, False)
    own_check, run = OwnCheck(subject, benchmark, own.guarded), benchmark.run
    if not own_check.compares and isinstance(run, Primitive) and run.has_reference:
        return Checker(run, subject, True)
    return Checker(None, subject, own_check, compares=own_check.compares)


class Checker:
    """Compares outputs with the expected ones.

    Parameters
    ----------
    primitive : Primitive or None
        The one whose reference is used, if `check` is True.
    subject : Subject
    check : bool or callable
    compares : bool
        Whether a callable has anything to compare with.
    """

    def __init__(self, primitive: Primitive | None, subject: Subject, check: Check, *, compares: bool = True):
        self._primitive, self._outputs = primitive, subject.outputs
        self._check, self._compares = check, compares
        self._first: dict[str, np.ndarray] | None = None
        self._inputs: dict[str, np.ndarray] | None = None
        #: What each check found.
        self.results: list[tuple[Mismatch, ...]] = []
        if check is True and primitive is not None and Oracle.of(primitive).reference is not None:
            # Downloaded now: the first run may change them.
            self._inputs = {k: a.to_numpy() for k, a in subject.arrays.items() if k not in subject.outputs}

    @property
    def checks(self) -> bool:
        """Whether anything is compared: the caller may not want it, and a primitive may have no reference."""
        return (callable(self._check) and self._compares) or self._inputs is not None

    def wrong(self) -> tuple[Mismatch, ...]:
        """Return the mismatches of the current outputs."""
        found = self._wrong()
        self.results.append(found)
        return found

    def _wrong(self) -> tuple[Mismatch, ...]:
        if callable(self._check):
            found = self._check(dict(self._outputs))
            return () if found is None else (found,)
        if self._inputs is None or self._primitive is None:
            return ()
        outputs = {name: array.to_numpy() for name, array in self._outputs.items()}
        if self._first is not None and all(self._first[k].tobytes() == v.tobytes() for k, v in outputs.items()):
            return ()  # equal to the first result, which was checked then
        self._first = outputs
        found = mismatch(self._primitive, self._inputs, outputs)
        return () if found is None else (found,)
