"""The results file: JSON that says what was measured, on what, and how. docs/results-file.md describes it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import wgpu

from .._version import __version__
from ..backend.wgpu_native import wait_method
from ..errors import ArgumentError
from ..runtime.context import capabilities, context_of
from ..storage.files import write_whole
from .measurement import Measurement, Mode, Series

__all__ = [
    "SCHEMA",
    "SCHEMA_VERSION",
    "case_key",
    "host_context",
    "json_text",
    "result_entry",
    "results_document",
    "run_context",
    "run_header",
    "to_dataframe",
    "write_results",
]

SCHEMA = "gridwise.bench"
SCHEMA_VERSION = 2


# ---- context -----------------------------------------------------------------------------------------------------


def host_context() -> dict[str, Any]:
    """Return versions, host and time."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "gridwise_py": __version__,
            "wgpu": wgpu.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "host": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "cpu_count": os.cpu_count(),
        },
        "byteorder": sys.byteorder,
        "git": git_state(Path(__file__).resolve().parents[2]),
    }


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return the commit of a checkout and whether it has changes; None where `folder` is not the top of one."""
    if not (folder / ".git").exists():
        return None

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout.strip()

    try:
        # Untracked files do not count: results are written beside the sources.
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "-uno"))}
    except (OSError, subprocess.SubprocessError):
        return None


def without_paths(words: Sequence[str]) -> list[str]:
    """Return a command line without the folders in it, which say more of a machine than of a measurement."""
    return [re.sub(r"(?:(?<==)|^)(?:[/~]|[A-Za-z]:[\\/]).*[\\/]", "", word) for word in words]


def run_context(device: wgpu.GPUDevice) -> dict[str, Any]:
    """Return what every file of figures must say: versions, host, time, and the device with its limits."""
    described = capabilities(device).to_dict()
    # Verdicts are reached when a primitive first asks: those that are known by now, by form of the state words.
    verdicts = context_of(device).lookback_verdicts
    described["lookback"] = {form: asdict(verdict) for form, verdict in verdicts.items()} or None
    # Ticks are turned into ns with what the queue says; where a calibration has checked that, it says so itself.
    source = None if described["tick_period_ns"] is None else "wgpuQueueGetTimestampPeriod"
    return {
        "context": host_context(),
        "device": {**described, "tick_period_source": source, "wait_method": wait_method(device)},
    }


def run_header(
    device: wgpu.GPUDevice,
    *,
    protocol: Mapping[str, Any],
    seed: int,
    command: Sequence[str] | None = None,
    floors: Mapping[str, Any] | None = None,
    calibration: Mapping[str, Any] | None = None,
    suite: str | None = None,
) -> dict[str, Any]:
    """Return a results document without results.

    Parameters
    ----------
    device : wgpu.GPUDevice
    protocol : mapping
        How cases are sampled: what was asked for.
    seed : int
        Of the random data and of the order of cases.
    command : sequence of str, optional
        The words of the command line; folders are taken out.
    floors, calibration : mapping, optional
        What an empty pass, dispatch and submission take; ceilings of copying and computing.
    suite : str, optional
    """
    header = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **run_context(device)}
    header["context"] |= {
        "seed": seed,
        "command": None if command is None else without_paths(command),
        "suite": suite,
    }
    header["device"] |= {"floors": floors, "calibration": calibration}
    return json_data(header | {"protocol": dict(protocol), "complete": True, "ticks_file": None, "results": []})


# ---- results -----------------------------------------------------------------------------------------------------


def json_data(value: Any) -> Any:
    """Return a value as JSON data: numpy's numbers as Python's, and None for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): json_data(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return json_data(value.tolist())
    if isinstance(value, (list, tuple)):
        return [json_data(item) for item in value]
    if isinstance(value, Enum):
        return json_data(value.value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _series(series: Series) -> dict[str, Any]:
    return {
        "samples_ns": list(series.samples_ns),
        "summary": None if series.summary is None else asdict(series.summary),
        "invalid": dict(series.invalid),
    }


def _totals(m: Measurement, trials: int) -> list[dict[str, Any]]:
    """Raw totals of each sample over its trials, with the stamps that they are made from."""
    stamps = m.ticks

    def host(name: str, i: int) -> float | None:
        # A series without the invalid samples cannot be matched to the stamps.
        series = m.whole.get(name)
        matches = series is not None and len(series.samples_ns) == count
        return series.samples_ns[i] * trials if series is not None and matches else None

    wall = m.whole.get("cpu_wall")
    count = len(stamps) or (len(wall.samples_ns) if wall is not None else 0)
    samples = []
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


def result_entry(m: Measurement, *, position: int = 0, round_number: int = 0) -> dict[str, Any]:
    """Return a measurement as JSON data, stamps inside.

    Parameters
    ----------
    m : Measurement
    position : int
        Its place in the order in which the cases were asked for; they are measured in another.
    round_number : int
        Which of several visits of the case it is.
    """
    # In batch mode a sample is a pass of so many dispatches; in the other modes it is one.
    trials = int(m.protocol.get("batch_trials") or m.protocol.get("trials", 1)) if m.mode is Mode.BATCH else 1
    span, wall = m.whole.get("gpu_span"), m.whole.get("cpu_wall")
    entry = {
        "primitive": m.primitive,
        "n": m.n,
        "mode": m.mode,
        "datatype": m.case.get("datatype"),
        "op": m.case.get("op"),
        "case": m.case,
        "position": position,
        "round": round_number,
        "correct": m.correct,
        "mismatch": str(m.mismatches[0]) if m.mismatches else None,
        "error": m.error,
        "trials": trials,
        "kernels": [{"label": k.name, "gpu_ns": k.median_ns, **_series(k)} for k in m.kernels],
        "whole": {
            "gpu_span_ns": None if span is None else span.median_ns,
            "cpu_wall_ns": None if wall is None else wall.median_ns,
            "series": {name: _series(series) for name, series in m.whole.items()},
        },
        "cold_start_ns": m.cold_start_ns,
        "work": m.work or None,
        "rates": {"gbytes_per_s": m.gbytes_per_s, "gitems_per_s": m.gitems_per_s},
        "parameters": m.parameters or None,
        "protocol": m.protocol,
        "shaders_sha256": m.shaders_sha256,
        "stop_reason": m.stop_reason,
        "clock_moved": m.clock_moved,
        "canary_ns": m.canary_ns,
        "warnings": m.warnings,
        "observations": m.observations,
        "tick_period_ns": m.tick_period_ns,
        "ticks": None,
        "samples": _totals(m, trials),
    }
    return json_data(entry)


def case_key(entry: Mapping[str, Any]) -> str:
    """Return what two entries must share to be of the same case, as text."""
    return json.dumps([entry["primitive"], entry["n"], entry["mode"], entry["case"]], sort_keys=True)


def results_document(
    device: wgpu.GPUDevice, measurements: Sequence[Measurement], *, protocol: Mapping[str, Any] | None = None,
    seed: int = 0, **header: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return a run as JSON data. Times are per trial; the totals of each sample stand beside them.

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
    document = run_header(device, protocol=protocol, seed=seed, **header)
    document["results"] = [result_entry(m, position=i) for i, m in enumerate(measurements)]
    return document


# ---- text and files ----------------------------------------------------------------------------------------------


def json_text(value: Any, indent: int = 1) -> str:
    """Return JSON text in which a list of plain values takes one line."""
    text = json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=False)
    # A line end in JSON text is never inside a string, so this touches layout only.
    return re.sub(r"\[\n\s*([^\[\]{}\n]*(?:\n[^\[\]{}\n]*)*?)\n\s*\]", _one_line, text)


def _one_line(found: re.Match[str]) -> str:
    return "[" + re.sub(r"\n\s*", " ", found[1]) + "]"


def write_results(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write a document whole or not at all; raise OSError where it cannot be written."""
    write_whole(Path(path), (json_text(document) + "\n").encode())


def array_sha256(array: np.ndarray) -> str:
    """Return the sha256 of an array's content, the same on every machine."""
    return hashlib.sha256(np.ascontiguousarray(array, dtype="<u8").tobytes()).hexdigest()


def to_dataframe(document: Mapping[str, Any], kind: str = "pandas") -> Any:
    """Return a document as a table with a row for each series of times of each case.

    Parameters
    ----------
    document : mapping
        As `results_document` or `read_results` returns it.
    kind : {"pandas", "polars"}

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        Columns: primitive, n, mode, round, the axes of the cases, adapter, part (``"whole"`` or ``"kernel"``), series,
        the statistics in ns, invalid (a count), gbytes_per_s, gitems_per_s and share_of_peak of the case, correct,
        error. A case without times has one row.

    Raises
    ------
    ArgumentError
        If `kind` is another word, or the package is not installed.
    """
    if kind not in ("pandas", "polars"):
        raise ArgumentError(f"kind={kind!r} is unknown; give 'pandas' or 'polars'")
    rows = [row for entry in document["results"] for row in _rows(entry, document["device"]["adapter"])]
    try:
        if kind == "pandas":
            import pandas

            return pandas.DataFrame(rows)
        import polars

        return polars.DataFrame(rows, infer_schema_length=None)
    except ImportError as error:
        raise ArgumentError(f"to_dataframe(kind={kind!r}) needs the package {kind}: pip install {kind}") from error


_STATISTICS = (
    "median_ns", "ci_low_ns", "ci_high_ns", "min_ns", "q1_ns", "q3_ns", "mean_ns", "std_ns", "mad_ns",
    "count", "outliers",
)  # fmt: skip


def _rows(entry: Mapping[str, Any], adapter: str) -> list[dict[str, Any]]:
    named = [("whole", name, series) for name, series in entry["whole"]["series"].items()]
    named += [("kernel", kernel["label"], kernel) for kernel in entry["kernels"]]
    return [
        {
            "primitive": entry["primitive"],
            "n": entry["n"],
            "mode": entry["mode"],
            "round": entry.get("round", 0),
            **entry["case"],
            "adapter": adapter,
            "part": part,
            "series": name,
            **{key: (series["summary"] or {}).get(key) for key in _STATISTICS},
            "invalid": sum(series["invalid"].values()),
            "gbytes_per_s": entry["rates"]["gbytes_per_s"],
            "gitems_per_s": entry["rates"]["gitems_per_s"],
            "share_of_peak": entry["rates"].get("share_of_peak"),
            "correct": entry["correct"],
            "error": entry["error"],
        }
        for part, name, series in named or [(None, None, {"summary": None, "invalid": {}})]
    ]
