"""Results files of earlier versions, in today's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..timing_result import Span, TimingResult
from .adapter import measurement_from_case_result
from .case import Case, CaseResult, Protocol
from .measurement import Mode
from .results import SCHEMA_VERSION, json_data, result_entry

__all__ = ["from_version_1"]


def _sample(sample: Mapping[str, Any], labels: tuple[str, ...], trials: int, period_ns: float) -> TimingResult:
    stamps = zip(labels, sample["ticks"], strict=bool(sample["ticks"]))
    return TimingResult(
        labels=labels,
        trials=trials,
        spans=tuple(Span(label, begin, end, period_ns) for label, (begin, end) in stamps),
        cpu_total_time_ns=sample["cpu_total_ns"],
        submit_time_ns=sample["submit_ns"],
        encode_time_ns=sample["encode_ns"],
        warnings=tuple(sample["warnings"]),
    )


def _entry(old: Mapping[str, Any], position: int, protocol: Protocol, period_ns: float | None) -> dict[str, Any]:
    labels = tuple(kernel["label"] for kernel in old["kernels"])
    samples = tuple(_sample(s, labels, old["trials"], period_ns or 1.0) for s in old["samples"])
    result = CaseResult(
        Case(old["primitive"], old["n"], old["datatype"], old["op"]),
        samples=samples,
        cold_start_ns=old["cold_start_ns"],
        error=old["error"],
        protocol=protocol,
    )
    new = result_entry(measurement_from_case_result(result, Mode.BATCH), position=position)
    kept = ("correct", "mismatch", "work", "rates", "parameters")
    return new | {key: old[key] for key in kept} | {"shaders_sha256": old["shaders_sha256"] or []}


def from_version_1(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of version 1 in today's version: what it did not know is null."""
    protocol = Protocol(**(old["protocol"] or {}))
    period_ns = old["device"]["tick_period_ns"]
    context = {"git": None, "seed": protocol.seed, "command": None, "suite": None}
    device = {"tick_period_source": None, "floors": None, "calibration": None}
    return json_data(
        {
            **old,
            "schema_version": SCHEMA_VERSION,
            "context": context | dict(old["context"]),
            "device": device | dict(old["device"]),
            "protocol": old["protocol"] or {},
            "complete": True,
            "ticks_file": None,
            "results": [_entry(entry, i, protocol, period_ns) for i, entry in enumerate(old["results"])],
        }
    )
