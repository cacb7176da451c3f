"""Measures the cases of a run, and makes a `Measurement` out of what files of version 1 hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import wgpu

from ..timing_result import TimingResult
from .case import Case, CaseResult, Protocol
from .measure import measure_case
from .measurement import Measurement, Mode, SampleClass, Series, StopReason, Summary
from .protocol import SamplingProtocol
from .statistics import summarize

__all__ = ["case_axes", "measurement_from_case_result", "run_measurement", "summarise"]

# --sampling-s 0 asks for the least number of samples; a rule without any time would never stop.
_LEAST_S = 1e-6


def run_measurement(device: wgpu.GPUDevice, case: Case, protocol: Protocol, mode: Mode) -> Measurement:
    """Measure a case; everything that measures for a results file goes through here."""
    sampling = SamplingProtocol(
        timeout_s=protocol.sampling_s or _LEAST_S,
        warmup_s=protocol.warmup_s,
        batch_trials=protocol.trials,
        seed=protocol.seed,
    )
    return measure_case(device, case, sampling, mode.value)


def case_axes(case: Case) -> dict[str, str | None]:
    """Return what identifies a case beside its primitive, n and mode."""
    return {"datatype": case.datatype, "op": case.op}


def summarise(samples_ns: Sequence[float]) -> Summary | None:
    """Return the statistics of samples; None where there are none."""
    return summarize(samples_ns) if samples_ns else None


def _series(name: str, values: Sequence[float | None], invalid: dict[str, int] | None = None) -> Series:
    known = tuple(float(value) for value in values if value is not None)
    return Series(name, known, summarise(known), invalid or {})


def _invalid(samples: Sequence[TimingResult], kernel: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for sample in samples:
        if not sample.spans or (span := sample.spans[kernel]).valid:
            continue
        missing = span.begin_ticks == 0 or span.end_ticks == 0
        reason = SampleClass.ZERO if missing else SampleClass.REVERSED
        counts[reason.value] = counts.get(reason.value, 0) + 1
    return counts


def measurement_from_case_result(result: CaseResult, mode: Mode) -> Measurement:
    """Return a case's result as a measurement; times are per trial."""
    case, plan, samples, trials = result.case, result.plan, result.samples, result.protocol.trials
    per_trial = [sample.per_trial for sample in samples]
    kernels = tuple(
        _series(label, [None if p.gpu_total_time_ns is None else p.gpu_total_time_ns[i] for p in per_trial],
                _invalid(samples, i))
        for i, label in enumerate(result.kernel_labels)
    )  # fmt: skip
    totals = {
        "gpu_span": [sample.gpu_span_ns for sample in samples],
        "gpu_sum": [_sum(sample.gpu_total_time_ns) for sample in samples],
        "gaps": [_sum(sample.gaps_ns) for sample in samples],
        "cpu_wall": [sample.cpu_total_time_ns for sample in samples],
        "submit": [sample.submit_time_ns for sample in samples],
        "encode": [sample.encode_time_ns for sample in samples],
    }
    whole = {
        name: _series(name, [None if value is None else value / trials for value in values])
        for name, values in totals.items()
        if any(value is not None for value in values)
    }
    full = bool(samples) and len(samples) == result.protocol.max_samples
    return Measurement(
        primitive=case.primitive,
        mode=mode,
        n=case.n,
        case=case_axes(case),
        parameters={} if plan is None else dict(plan.parameters),
        protocol=asdict(result.protocol),
        kernels=kernels,
        whole=whole,
        work={} if plan is None else asdict(plan.work),
        shaders_sha256=() if plan is None else tuple(sorted({kernel.shader for kernel in plan.kernels})),
        cold_start_ns=result.cold_start_ns,
        stop_reason=(StopReason.COUNT if full else StopReason.TIMEOUT) if samples else None,
        mismatches=() if result.mismatch is None else (result.mismatch,),
        warnings=tuple(sorted({warning for sample in samples for warning in sample.warnings})),
        ticks=tuple(tuple((s.begin_ticks, s.end_ticks) for s in sample.spans) for sample in samples if sample.spans),
        tick_period_ns=samples[0].tick_period_ns if samples else None,
        error=result.error,
    )


def _sum(values: Sequence[float | None] | None) -> float | None:
    if not values or any(value is None for value in values):
        return None
    return float(sum(value for value in values if value is not None))
