"""Converts measurements into results of a results file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import wgpu

from ...storage.json_files import json_data
from ..cases.mode import Mode
from ..sampling.measurement import Measurement
from .context import run_header
from .model import Result, Results


def _totals(m: Measurement, trials: int) -> list[dict[str, Any]]:
    """Raw totals of each sample over its trials, with its timestamps."""
    stamps = m.ticks

    def host(name: str, i: int) -> float | None:
        # A series that lacks invalid samples cannot be matched to the timestamps.
        series = m.whole.get(name)
        matches = series is not None and len(series.samples_ns) == count
        return series.samples_ns[i] * trials if series is not None and matches else None

    wall = m.whole.get("cpu_wall")
    count = len(stamps) or (len(wall.samples_ns) if wall is not None else 0)
    samples: list[dict[str, Any]] = []
    for i in range(count):
        pairs = stamps[i] if stamps else ()
        valid = bool(pairs) and all(begin and end >= begin for begin, end in pairs)
        period = m.tick_period_ns or 1.0
        samples.append(
            {
                "gpu_total_ns": [(e - b) * period if b and e >= b else None for b, e in pairs] if pairs else None,
                "gpu_span_ns": (max(e for _, e in pairs) - min(b for b, _ in pairs)) * period if valid else None,
                "cpu_total_ns": host("cpu_wall", i),
                "submit_ns": host("submit", i),
                "encode_ns": host("encode", i),
                "ticks": [list(pair) for pair in pairs],
            }
        )
    return samples


def result_of(m: Measurement, *, position: int = 0, round_number: int = 0, process: int = 0) -> Result:
    """Return a measurement as a result that contains its timestamps.

    Parameters
    ----------
    m : Measurement
    position : int
        Its place in the order that was asked for, which is not the order of measurement.
    round_number : int
        The number of the visit to the case, in its process.
    process : int
        The number of the process in which it was measured.
    """
    # In mode batch a sample is a pass with this many dispatches; in the other modes it is one trial.
    trials = int(m.protocol.get("batch_trials") or m.protocol.get("trials", 1)) if m.mode is Mode.BATCH else 1
    span, wall = m.whole.get("gpu_span"), m.whole.get("cpu_wall")
    result = {
        "primitive": m.primitive,
        "n": m.n,
        "mode": m.mode,
        "datatype": m.case.get("datatype"),
        "op": m.case.get("op"),
        "case": m.case,
        "position": position,
        "process": process,
        "round": round_number,
        "correct": m.correct,
        "mismatch": str(m.mismatches[0]) if m.mismatches else None,
        "error": m.error,
        "trials": trials,
        "kernels": [
            {"label": kernel.name, "gpu_ns": kernel.median_ns, **kernel.to_json(), "shader_checks": level}
            for kernel, level in zip(m.kernels, m.shader_checks or [None] * len(m.kernels), strict=False)
        ],
        "whole": {
            "gpu_span_ns": None if span is None else span.median_ns,
            "cpu_wall_ns": None if wall is None else wall.median_ns,
            "series": {name: series.to_json() for name, series in m.whole.items()},
        },
        "cold_start_ns": m.cold_start_ns,
        "work": m.work or None,
        "rates": {"gbytes_per_s": m.gbytes_per_s, "gitems_per_s": m.gitems_per_s},
        "parameters": m.parameters or None,
        "protocol": m.protocol,
        "shaders_sha256": m.shaders_sha256,
        **({} if m.code is None else {"code": m.code.digests}),
        "stop_reason": m.stop_reason,
        "clock_moved": m.clock_moved,
        "canary_ns": m.canary_ns,
        "warnings": m.warnings,
        "observations": m.observations,
        **({} if m.energy is None else {"energy": m.energy.to_json()}),
        **({} if m.other_load is None else {"other_load": m.other_load}),
        "tick_period_ns": m.tick_period_ns,
        "ticks": None,
        "samples": _totals(m, trials),
    }
    # Through JSON data, so that it holds only values that a file can hold.
    return Result.from_json(json_data(result))


def results_document(
    device: wgpu.GPUDevice, measurements: Sequence[Measurement], *, protocol: Mapping[str, Any] | None = None,
    seed: int = 0, **header: Any,
) -> Results:  # fmt: skip
    """Return measurements as a results document. Times are per trial; samples hold totals.

    Parameters
    ----------
    device : wgpu.GPUDevice
    measurements : sequence of Measurement
    protocol : mapping, optional
        By default that of the first measurement.
    seed : int
    **header
        See `run_header`.
    """
    if protocol is None:
        protocol = measurements[0].protocol if measurements else {}
    seen: dict[Any, list[int]] = {}
    results: list[Result] = []
    for m in measurements:
        # Measurements of one case are its rounds.
        place = seen.setdefault((m.primitive, m.mode, m.n, tuple(sorted(m.case.items()))), [len(seen), -1])
        place[1] += 1
        results.append(result_of(m, position=place[0], round_number=place[1]))
    return replace(run_header(device, protocol=protocol, seed=seed, **header), results=tuple(results))
