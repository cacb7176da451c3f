"""Rounds of a case: separate visits to it, which tables and pictures show as one, and `compare` takes as blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from .documents import kernel_labels
from .results import case_key
from .statistics import summarize

__all__ = ["pooled", "pooled_series"]

Entry = Mapping[str, Any]


def pooled(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a results document with one result per case: the samples of all its rounds together.

    The interval of a median is then at least as wide as that of Student's t over the medians of the rounds. A result
    has ``rounds``, the number of them, and no raw ``samples``.
    """
    cases: dict[str, list[Entry]] = {}
    for entry in document["results"]:
        cases.setdefault(case_key(entry), []).append(entry)
    results = [entries[0] if len(entries) == 1 else _pool(entries) for entries in cases.values()]
    return {**document, "results": results}


def _pool(entries: Sequence[Entry]) -> dict[str, Any]:
    done = [entry for entry in entries if entry["error"] is None]
    first = next((entry for entry in entries if not entry["correct"]), entries[0])
    if not done:
        return {**first, "rounds": 0}
    # By label: a round of another shape or strategy may have other kernels.
    by_label: dict[str, list[Mapping[str, Any]]] = {}
    for entry in done:
        for label, kernel in zip(kernel_labels(entry), entry["kernels"], strict=True):
            by_label.setdefault(label, []).append(kernel)
    kernels = [
        {**rounds[0], **(series := pooled_series(rounds)), "gpu_ns": _median(series)} for rounds in by_label.values()
    ]
    names = list(dict.fromkeys(name for entry in done for name in entry["whole"]["series"]))
    whole = {
        name: pooled_series([entry["whole"]["series"][name] for entry in done if name in entry["whole"]["series"]])
        for name in names
    }
    span, wall = (_median(whole.get(name)) for name in ("gpu_span", "cpu_wall"))
    merged = {
        **first,
        "kernels": kernels,
        "whole": {"gpu_span_ns": span, "cpu_wall_ns": wall, "series": whole},
        "work": done[0]["work"],
        "cold_start_ns": next((e["cold_start_ns"] for e in done if e["cold_start_ns"] is not None), None),
        "clock_moved": any(entry["clock_moved"] for entry in done),
        "canary_ns": [time for entry in done for time in entry["canary_ns"]],
        "warnings": sorted({warning for entry in done for warning in entry["warnings"]}),
        "samples": [],
        "ticks": None,
        "rounds": len(done),
    }
    return merged | {"rates": _rates(done[0], span or wall)}


def _rates(entry: Entry, time_ns: float | None) -> dict[str, float | None]:
    """Return the rates of an entry for another time: all of them go as its inverse, except the ceiling."""
    was_ns = entry["whole"]["gpu_span_ns"] or entry["whole"]["cpu_wall_ns"]
    fixed = ("peak_gbytes_per_s",)
    return {
        name: rate if name in fixed or rate is None or not (time_ns and was_ns) else rate * was_ns / time_ns
        for name, rate in entry["rates"].items()
    }


def _median(series: Mapping[str, Any] | None) -> float | None:
    return None if series is None or series["summary"] is None else series["summary"]["median_ns"]


def pooled_series(rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    samples = [value for series in rounds for value in series["samples_ns"]]
    invalid: dict[str, int] = {}
    for series in rounds:
        for name, count in series["invalid"].items():
            invalid[name] = invalid.get(name, 0) + count
    if not samples:
        return {"samples_ns": [], "summary": None, "invalid": invalid}
    summary = asdict(summarize(samples))
    medians = [float(np.median(series["samples_ns"])) for series in rounds if series["samples_ns"]]
    if len(medians) > 1:
        from scipy.special import stdtrit

        reach = float(stdtrit(len(medians) - 1, 0.975)) * float(np.std(medians, ddof=1)) / math.sqrt(len(medians))
        middle = summary["median_ns"]
        low, high = max(middle - reach, min(samples)), min(middle + reach, max(samples))
        summary["ci_low_ns"] = min(summary["ci_low_ns"], low)
        summary["ci_high_ns"] = max(summary["ci_high_ns"], high)
    return {"samples_ns": samples, "summary": summary, "invalid": invalid}
