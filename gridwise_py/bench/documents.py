"""Access to results files as plain JSON data: one small function for each thing that comparing needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..display.quantities import relative_uncertainty
from .canary import CanaryTime, settled

Document = Mapping[str, Any]
Entry = Mapping[str, Any]
Key = tuple[str, int, str, tuple[tuple[str, str], ...]]


# ---- the device


#: What must be the same for times to be compared, and where each is.
COMPARABLE = ("adapter", "adapter_type", "backend", "driver")


def device_value(document: Document, name: str) -> str:
    """Return one of `COMPARABLE`."""
    return str(document["device"].get(name))


def schema_version(document: Document) -> int:
    """Return the version in which the file was written; reading it makes a document of today's version."""
    return int(document.get("upgraded_from", document["schema_version"]))


def is_cpu(document: Document) -> bool:
    """Whether the adapter is software on the CPU."""
    return document["device"].get("adapter_type") == "CPU"


def device_name(document: Document) -> str:
    """Return the adapter, with a label where it is no GPU."""
    return device_value(document, "adapter") + (" (software on the CPU)" if is_cpu(document) else "")


def tick_step_ns(document: Document, entry: Entry) -> float:
    """Return the step of the GPU's clock by the number of dispatches that it was spread over."""
    step = document["device"].get("tick_step_ns") or 0.0
    return step / (trials(entry) if mode(entry) == "batch" else 1)


# ---- a result


def uncertainty(summary: Mapping[str, Any], step_ns: float = 0.0) -> float | None:
    """Return how far a median may be off, as a share of it; None where a single sample says nothing about that.

    Parameters
    ----------
    summary : mapping
        Of a series.
    step_ns : float, default 0
        The step of its clock, see `tick_step_ns`; a stamp is off by half of it at most.
    """
    if summary["count"] < 2:
        return None
    return relative_uncertainty(summary["median_ns"], summary["ci_low_ns"], summary["ci_high_ns"], step_ns / 2)


def mode(entry: Entry) -> str:
    """Return the mode."""
    return str(entry["mode"])


def trials(entry: Entry) -> int:
    """Return the number of dispatches per sample."""
    return max(int(entry["trials"]), 1)


def case_axes(entry: Entry) -> dict[str, str]:
    """Return datatype, op and every other axis, as text."""
    axes = {name: entry.get(name) for name in ("datatype", "op")} | dict(entry["case"])
    return {name: str(value) for name, value in axes.items() if value is not None}


def case_key(entry: Entry) -> Key:
    """Return what results are joined by."""
    return entry["primitive"], entry["n"], mode(entry), tuple(sorted(case_axes(entry).items()))


def error(entry: Entry) -> str | None:
    """Return why there is no measurement."""
    return entry.get("error")


def is_wrong(entry: Entry) -> bool:
    """Whether the result was checked, and was not right."""
    return error(entry) is None and not entry["correct"]


def clock_moved(entry: Entry) -> bool:
    """Whether the clock moved while the samples were taken that are in the series."""
    return bool(entry["clock_moved"])


def canary_ns(entry: Entry) -> list[float]:
    """Return the canary kernel's times at the clock of the samples: without those of blocks that were left out."""
    times = [float(time) for time in entry["canary_ns"]]
    pairs = list(zip(times[::2], times[1::2], strict=False))
    kept = settled([(CanaryTime(before), CanaryTime(after)) for before, after in pairs]).kept
    return [time for pair, keep in zip(pairs, kept, strict=True) if keep for time in pair]


def gbytes_per_s(entry: Entry) -> float | None:
    """Return bytes that had to move per second."""
    rate = (entry.get("rates") or {}).get("gbytes_per_s")
    if rate:
        return float(rate)
    moved, time = moved_bytes(entry), time_ns(entry)
    return moved / time if moved and time else None


def moved_bytes(entry: Entry) -> int:
    """Return the bytes that had to move, 0 where that is unknown."""
    work = entry.get("work") or {}
    return work.get("read_bytes", 0) + work.get("write_bytes", 0)


def time_ns(entry: Entry) -> float | None:
    """Return the median GPU span, or the CPU wall where there are no timestamps."""
    return entry["whole"].get("gpu_span_ns") or entry["whole"].get("cpu_wall_ns")


def whole_summary(entry: Entry, name: str) -> Mapping[str, Any] | None:
    """Return the statistics of a series of the whole primitive."""
    series = entry["whole"]["series"].get(name)
    return None if series is None else series["summary"]


def timed_summary(entry: Entry) -> Mapping[str, Any] | None:
    """Return the statistics that rates are made from: of the GPU span, or of the CPU wall where there is none."""
    for name in ("gpu_span", "cpu_wall"):
        summary = whole_summary(entry, name)
        if summary is not None and summary["median_ns"] > 0:
            return summary
    return None


def power_w(entry: Entry) -> float | None:
    """Return the mean power that an observer saw at the end of each block of samples, under load."""
    blocks = (entry["observations"] or {}).get("blocks") or []
    seen = [power for block in blocks if (power := (block.get("after") or {}).get("power_w"))]
    return float(np.mean(seen)) if seen else None


# ---- samples


def kernel_labels(entry: Entry) -> list[str]:
    """Return a name per kernel, each once: a second one of the same label gets a number."""
    labels: list[str] = []
    for kernel in entry["kernels"]:
        label, count = kernel["label"], 1
        while label in labels:
            count += 1
            label = f"{kernel['label']} #{count}"
        labels.append(label)
    return labels


def kernel_samples_ns(entry: Entry, index: int) -> list[float]:
    """Return the times of a kernel per trial."""
    return positive_samples_ns(entry["kernels"][index])


def whole_names(entry: Entry) -> list[str]:
    """Return which times of the whole primitive decide: a caller's wait counts where latency is measured."""
    return ["gpu_span", "cpu_wall"] if mode(entry) == "latency" else ["gpu_span"]


def whole_samples_ns(entry: Entry, name: str) -> list[float]:
    """Return the times of the whole primitive per trial."""
    series = entry["whole"]["series"].get(name)
    return [] if series is None else positive_samples_ns(series)


def positive_samples_ns(series: Mapping[str, Any]) -> list[float]:
    """Return the times of a series, without those that are 0: shorter than a step of the clock."""
    return [float(value) for value in series["samples_ns"] if value > 0]
