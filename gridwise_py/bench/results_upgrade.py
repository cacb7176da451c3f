"""Results files of earlier versions, in today's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .measurement import Measurement, Mode, SampleClass, Series, StopReason
from .results import SCHEMA_VERSION, json_data, result_entry
from .series import make_series

__all__ = ["from_version_1"]


def _series(name: str, totals: Sequence[float | None], trials: int, invalid: Mapping[str, int] | None = None) -> Series:
    return make_series(name, [total / trials for total in totals if total is not None], dict(invalid or {}))


def _invalid(samples: Sequence[Mapping[str, Any]], kernel: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for begin, end in (sample["ticks"][kernel] for sample in samples if sample["ticks"]):
        if begin and end >= begin:
            continue
        reason = SampleClass.REVERSED if begin and end else SampleClass.ZERO
        counts[reason.value] = counts.get(reason.value, 0) + 1
    return counts


def _sum(times: Sequence[float | None] | None) -> float | None:
    return None if not times or None in times else float(sum(times))


def _entry(old: Mapping[str, Any], position: int, protocol: Mapping[str, Any], period_ns: float) -> dict[str, Any]:
    samples, trials = old["samples"], old["trials"]
    kernels = [
        _series(
            kernel["label"],
            [None if sample["gpu_total_ns"] is None else sample["gpu_total_ns"][i] for sample in samples],
            trials,
            _invalid(samples, i),
        )
        for i, kernel in enumerate(old["kernels"])
    ]
    spans, sums = [s["gpu_span_ns"] for s in samples], [_sum(s["gpu_total_ns"]) for s in samples]
    gaps = [None if None in pair else pair[0] - pair[1] for pair in zip(spans, sums, strict=True)]
    host = {"cpu_wall": "cpu_total_ns", "submit": "submit_ns", "encode": "encode_ns"}
    totals = {"gpu_span": spans, "gpu_sum": sums, "gaps": gaps}
    totals |= {name: [sample[key] for sample in samples] for name, key in host.items()}
    full = len(samples) == protocol.get("max_samples")
    new = Measurement(
        primitive=old["primitive"],
        mode=Mode.BATCH,  # there was no other
        n=old["n"],
        case={"datatype": old["datatype"], "op": old["op"]},
        protocol={**protocol, "trials": trials},
        kernels=tuple(kernels),
        whole={
            name: _series(name, values, trials)
            for name, values in totals.items()
            if any(value is not None for value in values)
        },
        cold_start_ns=old["cold_start_ns"],
        stop_reason=(StopReason.COUNT if full else StopReason.TIMEOUT) if samples else None,
        warnings=tuple(sorted({warning for sample in samples for warning in sample["warnings"]})),
        ticks=tuple(tuple((begin, end) for begin, end in sample["ticks"]) for sample in samples if sample["ticks"]),
        tick_period_ns=period_ns if samples else None,
        error=old["error"],
    )
    kept = ("correct", "mismatch", "work", "rates", "parameters")
    entry = result_entry(new, position=position)
    return entry | {key: old[key] for key in kept} | {"shaders_sha256": old["shaders_sha256"] or []}


def from_version_1(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of version 1 in today's version: what it did not know is null."""
    protocol = old["protocol"] or {}
    period_ns = old["device"]["tick_period_ns"]
    context = {"git": None, "seed": protocol.get("seed", 0), "command": None, "suite": None}
    device = {"tick_period_source": None, "floors": None, "calibration": None}
    return json_data(
        {
            **old,
            "schema_version": SCHEMA_VERSION,
            "upgraded_from": 1,
            "context": context | dict(old["context"]),
            "device": device | dict(old["device"]),
            "protocol": protocol,
            "complete": True,
            "ticks_file": None,
            "results": [_entry(entry, i, protocol, period_ns or 1.0) for i, entry in enumerate(old["results"])],
        }
    )
