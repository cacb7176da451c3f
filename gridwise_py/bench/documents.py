"""Access to results files as plain JSON data: one small function for each thing that comparing needs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from ..errors import ArgumentError
from . import results

__all__ = ["case_name", "check_document", "read_document"]

Document = Mapping[str, Any]
Entry = Mapping[str, Any]
Key = tuple[str, int, str, tuple[tuple[str, str], ...]]


# ---- reading


def read_document(path: Path) -> dict[str, Any]:
    """Read a results file; raise ArgumentError with the place of what is wrong with it."""
    # A full reader with the schema takes precedence.
    reader = getattr(results, "read_results", None)
    document = _read_plain(path) if reader is None else reader(path)
    check_document(document, str(path))
    return document


def _read_plain(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path}: cannot be read: {error}") from error
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        what = "the file is cut off" if cut else "this is not JSON"
        raise ArgumentError(
            f"{path}: line {error.lineno}, column {error.colno}: {what} ({error.msg}); write it again with "
            f"gridwise bench --json"
        ) from error
    except (RecursionError, ValueError) as error:
        raise ArgumentError(f"{path}: this is no results file of gridwise bench: {error}") from error


def check_document(document: Any, name: str) -> None:
    """Raise ArgumentError, with the place, where a document is not what comparing needs."""

    def fail(place: str, problem: str) -> NoReturn:
        raise ArgumentError(f"{name}: {place}: {problem}")

    if not isinstance(document, Mapping) or document.get("schema") != results.SCHEMA:
        fail("schema", f"this is no results file of gridwise bench, whose schema is {results.SCHEMA!r}")
    version = document.get("schema_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        fail("schema_version", f"{version!r} is no version; this gridwise reads 1 to {results.SCHEMA_VERSION}")
    if version > results.SCHEMA_VERSION:
        fail(
            "schema_version",
            f"{version} is newer than {results.SCHEMA_VERSION}, the newest that this gridwise reads; update it",
        )
    for place, value in _numbers(document, ""):
        if not math.isfinite(value):
            fail(place, f"{value} is no number; measure again, for a results file has null where nothing is known")
    if not isinstance(document.get("device"), Mapping):
        fail("device", "missing, so that nothing says what was measured")
    if not isinstance(document.get("results"), list):
        fail("results", "missing, or not a list")
    for i, entry in enumerate(document["results"]):
        problem = _entry_problem(entry)
        if problem:
            fail(f"results[{i}]{problem[0]}", problem[1])


def _numbers(value: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _numbers(item, f"{place}[{i}]")
    elif isinstance(value, float):
        yield place, value


def _entry_problem(entry: Any) -> tuple[str, str] | None:
    if not isinstance(entry, Mapping):
        return "", "not an object"
    for key, kind in (("primitive", str), ("n", int), ("correct", bool), ("kernels", list), ("whole", Mapping)):
        if not isinstance(entry.get(key), kind):
            return f".{key}", f"{entry.get(key)!r}, but it must be there as {kind.__name__.lower()}"
    for i, kernel in enumerate(entry["kernels"]):
        if not isinstance(kernel, Mapping) or not isinstance(kernel.get("label"), str):
            return f".kernels[{i}].label", "missing, or not text"
    try:
        for name in whole_names(entry):
            whole_samples_ns(entry, name)
        for i in range(len(entry["kernels"])):
            kernel_samples_ns(entry, i)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        return "", f"the samples cannot be read: {error!r}"
    return None


# ---- the device


#: What must be the same for times to be compared, and where each is.
COMPARABLE = ("adapter", "adapter_type", "backend", "driver")


def device_value(document: Document, name: str) -> str:
    """Return one of `COMPARABLE`."""
    return str(document["device"].get(name))


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


def mode(entry: Entry) -> str:
    """Return the mode; files of version 1 only had batches."""
    return str(entry.get("mode") or "batch")


def trials(entry: Entry) -> int:
    """Return the number of dispatches per sample."""
    return max(int(entry.get("trials") or 1), 1)


def case_axes(entry: Entry) -> dict[str, str]:
    """Return datatype, op and every other axis, as text."""
    axes = {name: entry.get(name) for name in ("datatype", "op")} | dict(entry.get("case") or {})
    return {name: str(value) for name, value in axes.items() if value is not None}


def case_key(entry: Entry) -> Key:
    """Return what results are joined by."""
    return entry["primitive"], entry["n"], mode(entry), tuple(sorted(case_axes(entry).items()))


def case_name(key: Key) -> str:
    """Return a case as text."""
    primitive, n, mode, axes = key
    known = dict(axes)
    words = [primitive, known.pop("op", ""), known.pop("datatype", ""), f"n={n:,}", mode]
    return " ".join([word for word in words if word] + [f"{name}={value}" for name, value in known.items()])


def error(entry: Entry) -> str | None:
    """Return why there is no measurement."""
    return entry.get("error")


def is_wrong(entry: Entry) -> bool:
    """Whether the result was checked, and was not right."""
    return error(entry) is None and not entry["correct"]


def clock_moved(entry: Entry) -> bool:
    """Whether the clock moved while samples were taken."""
    return bool(entry.get("clock_moved"))


def canary_ns(entry: Entry) -> list[float]:
    """Return the canary kernel's times."""
    return [float(t) for t in entry.get("canary_ns") or [] if t > 0]


def gbytes_per_s(entry: Entry) -> float | None:
    """Return bytes that had to move per second."""
    rate = (entry.get("rates") or {}).get("gbytes_per_s")
    if rate:
        return float(rate)
    work, time = entry.get("work") or {}, time_ns(entry)
    moved = work.get("read_bytes", 0) + work.get("write_bytes", 0)
    return moved / time if moved and time else None


def time_ns(entry: Entry) -> float | None:
    """Return the median GPU span, or the CPU wall where there are no timestamps."""
    return entry["whole"].get("gpu_span_ns") or entry["whole"].get("cpu_wall_ns")


def power_w(entry: Entry) -> float | None:
    """Return the mean power that an observer saw."""
    seen = entry.get("observations") or {}
    for name, scale in (("power_w", 1.0), ("power_mw", 1e-3)):
        value = seen.get(name)
        value = value.get("mean", value.get("median")) if isinstance(value, Mapping) else value
        value = sum(value) / len(value) if isinstance(value, list) and value else value
        if isinstance(value, int | float) and value > 0:
            return scale * value
    return None


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
    samples = entry["kernels"][index].get("samples_ns")
    if samples is not None:
        return _positive(samples)
    return _positive((s.get("gpu_total_ns") or {index: 0} for s in _raw(entry)), trials(entry), index)


def whole_names(entry: Entry) -> list[str]:
    """Return which times of the whole primitive decide: a caller's wait counts where latency is measured."""
    return ["gpu_span", "cpu_wall"] if mode(entry) == "latency" else ["gpu_span"]


_RAW_NAMES = {"gpu_span": "gpu_span_ns", "cpu_wall": "cpu_total_ns"}


def whole_samples_ns(entry: Entry, name: str) -> list[float]:
    """Return the times of the whole primitive per trial."""
    series = (entry["whole"].get("series") or {}).get(name)
    if series is not None:
        return _positive(series["samples_ns"])
    return _positive((s.get(_RAW_NAMES[name]) for s in _raw(entry)), trials(entry))


def _raw(entry: Entry) -> list[Any]:
    """Return the samples of a file of version 1: totals over trials."""
    return entry.get("samples") or []


def _positive(values: Any, divide: int = 1, index: int | None = None) -> list[float]:
    chosen = (value if index is None or value is None else value[index] for value in values)
    return [float(value) / divide for value in chosen if value is not None and float(value) > 0]
