"""Reads what other benchmark tools write: nvbench, google-benchmark, pytest-benchmark, hyperfine, numbers on lines.

Each benchmark becomes a row of times in ns, whatever the tool's unit is. Only raw samples can be judged, so a file with
nothing but statistics gives one time for each benchmark, and says which option of the tool would save the samples.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np

from ...errors import BadResultsFile
from ..cases.mode import Mode
from ..cases.names import case_name

#: What one of each unit is in ns.
UNITS_NS: Mapping[str, float] = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
#: Of a file that does not name it.
UNKNOWN_MACHINE = "unknown machine"
#: A time beyond these is none: a tenth of a picosecond, and thirty years.
_LEAST_NS, _MOST_NS = 1e-4, 1e18
_MOST_SAMPLES = 10_000_000
#: Runs of hyperfine that follow each other have much in common, so a group of them counts as one process.
_MOST_GROUPS = 10
_CPU, _GPU = "cpu_wall", "gpu_span"
#: The axis of benchmarks with one name and the same parameters.
POSITION = "#"


class ToolFormat(StrEnum):
    """The tool that wrote a file."""

    NVBENCH = "nvbench"  #: ``--json`` or ``--jsonbin``
    GOOGLE = "google-benchmark"  #: ``--benchmark_out=`` or ``--benchmark_format=json``
    PYTEST = "pytest-benchmark"  #: ``--benchmark-json=``, or a file of ``.benchmarks``
    HYPERFINE = "hyperfine"  #: ``--export-json``
    NUMBERS = "numbers"  #: one time per line, of one benchmark


@dataclass(frozen=True)
class ToolRow:
    """One time of one benchmark.

    Attributes
    ----------
    name : str
    axes : mapping from str to str
        What tells it from others of the same name.
    mode : Mode
        Of nvbench's times cold or batch; else batch, which names leave out.
    series : str
        ``"gpu_span"`` or ``"cpu_wall"``.
    groups : tuple of tuple of float
        Times in ns, in order; several groups were measured in different processes.
    zeros : int
        Times that are 0, shorter than a step of the tool's clock. They are left out.
    iterations : int
        Of which each time is the mean.
    error : str or None
        Why it has no times.
    warnings : tuple of str
    """

    name: str
    groups: tuple[tuple[float, ...], ...]
    axes: Mapping[str, str]
    series: str = _CPU
    mode: Mode = Mode.BATCH
    zeros: int = 0
    iterations: int = 1
    error: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Its name with axes and mode."""
        return case_name(self.name, self.axes, self.mode)


@dataclass(frozen=True)
class ToolRun:
    """What a file says.

    Attributes
    ----------
    tool : ToolFormat
    rows : tuple of ToolRow
        With unique titles and series.
    machine : str
        The device or processor, as far as the file names it.
    version : str or None
        Of the tool.
    time : str
        When it ran; empty if the file does not say it.
    host : mapping
        name, system, release, machine, cpu_count.
    debug_build : bool or None
        Whether what measures was built without optimisation.
    python : str or None
    commit : tuple of str and bool, or None
        Of the user's repository, and whether it had changes.
    warnings : tuple of str
        Of the tool about its run.
    """

    tool: ToolFormat
    rows: tuple[ToolRow, ...]
    machine: str
    version: str | None = None
    time: str = ""
    host: Mapping[str, Any] | None = None
    debug_build: bool | None = None
    python: str | None = None
    commit: tuple[str, bool] | None = None
    warnings: tuple[str, ...] = ()


# ---- which tool

#: By the keys of its files, a tool whose files are not read.
_UNREAD = {"asv": ("commit_hash", "results"), "pyperf": ("benchmarks", "metadata")}


def unread_tool(data: Any) -> str | None:
    """Return which other tool wrote JSON data that is not read; None if it is not known."""
    return next((tool for tool, keys in _UNREAD.items() if isinstance(data, dict) and {*keys} <= {*data}), None)


def tool_of(data: Any) -> ToolFormat | None:
    """Return which tool wrote JSON data; None if none of them did."""
    if not isinstance(data, dict):
        return None
    found = cast(dict[str, Any], data)
    context, benchmarks = found.get("context"), found.get("benchmarks")
    if "machine_info" in found and isinstance(benchmarks, list):
        return ToolFormat.PYTEST
    if isinstance(context, dict) and "num_cpus" in context and isinstance(benchmarks, list):
        return ToolFormat.GOOGLE
    if isinstance(found.get("devices"), list) and isinstance(benchmarks, list):
        return ToolFormat.NVBENCH
    results: Any = found.get("results")
    if set(found) == {"results"} and isinstance(results, list) and all(_is_hyperfine(one) for one in _list(results)):
        return ToolFormat.HYPERFINE
    return None


def _is_hyperfine(entry: Any) -> bool:
    return isinstance(entry, dict) and "command" in entry and "mean" in entry


def tool_run(data: Any, name: str, folder: Path | None = None) -> ToolRun:
    """Return what JSON data of a tool says.

    Parameters
    ----------
    data : object
        For which `tool_of` returns a tool.
    name : str
        Of the file, for messages.
    folder : Path, optional
        That the file is in, where nvbench's samples are beside it.

    Raises
    ------
    BadResultsFile
        If it has no benchmarks, or lacks what the tool always writes.
    """
    tool = tool_of(data)
    assert tool is not None, "tool_of comes first"
    try:
        run = _READERS[tool](cast(dict[str, Any], data), _Places(name, folder))
    except BadResultsFile:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise BadResultsFile(
            f"{name}: it looks like a file of {tool}, but not as that tool writes it ({what[:120]}); write it again "
            f"with {_WRITTEN_BY[tool]}"
        ) from error
    if not run.rows:
        raise BadResultsFile(f"{name}: a file of {tool} without any benchmark: did a filter leave all out?")
    return replace(run, rows=tuple(_unique(run.rows)))


_WRITTEN_BY = {
    ToolFormat.NVBENCH: "--json FILE",
    ToolFormat.GOOGLE: "--benchmark_out=FILE --benchmark_out_format=json",
    ToolFormat.PYTEST: "--benchmark-json=FILE",
    ToolFormat.HYPERFINE: "--export-json FILE",
}


def numbers_run(text: str, name: str, unit: str) -> ToolRun:
    """Return the numbers of a text, one per line, as the times of one benchmark called ``time``.

    Parameters
    ----------
    text : str
        Empty lines are left out.
    name : str
        What the text is of, for messages.
    unit : {"ns", "us", "ms", "s"}

    Raises
    ------
    BadResultsFile
        If it has no number, or a line that is not a number.
    """
    times: list[float] = []
    for i, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            if "_" in line:  # a number of Python's, which no tool prints
                raise ValueError
            times.append(float(line))
        except ValueError:
            raise BadResultsFile(
                f"{name}: line {i} is {_short(line.strip())}, not a number; print one time per line and nothing else"
            ) from None
    if not times:
        raise BadResultsFile(f"{name}: it has no numbers; print one time per line")
    return ToolRun(ToolFormat.NUMBERS, (_row("time", times, where=name, unit_ns=UNITS_NS[unit]),), UNKNOWN_MACHINE)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:39]}…")


def _unique(rows: Sequence[ToolRow]) -> Iterator[ToolRow]:
    """Yield rows; those that nothing but their position tells apart get it as an axis."""
    counts, seen = Counter((row.title, row.series) for row in rows), Counter[tuple[str, str]]()
    for row in rows:
        place = row.title, row.series
        seen[place] += 1
        yield row if counts[place] == 1 else replace(row, axes={**row.axes, POSITION: str(seen[place])})


def _list(value: Any) -> list[Any]:
    """Return a list; nvbench has null for an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"a {type(value).__name__}, not a list")
    return cast(list[Any], value)


def _object(value: Any) -> dict[str, Any]:
    """Return an object; an empty one for what a tool leaves out."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"a {type(value).__name__}, not an object")
    return cast(dict[str, Any], value)


def _text(data: Mapping[str, Any], key: str) -> str | None:
    return None if data.get(key) is None else str(data[key])


def _row(
    name: str, times: Sequence[Any] | None, *, where: str, unit_ns: float = 1e9, groups: int = 1, mean: Any = None,
    lacking: str = "", **more: Any,
) -> ToolRow:  # fmt: skip
    """Return a row; times of 0 are counted, and others that cannot be times refused.

    Without times it has the `mean`, and the warning `lacking`.
    """
    if times is None:
        times, more["warnings"] = [mean], (lacking,)
    times_ns = [unit_ns * _number(time) for time in times]
    if len(times_ns) > _MOST_SAMPLES:
        raise BadResultsFile(f"{where}: {name}: {len(times_ns):,} times; at most {_MOST_SAMPLES:,} are read")
    valid = [time for time in times_ns if time != 0]
    bad = next((time for time in valid if not _LEAST_NS <= time <= _MOST_NS), None)
    if bad is not None:
        raise BadResultsFile(f"{where}: {name}: {bad:g} ns is no time: check the unit")
    if not valid and "error" not in more:
        more["error"] = "no time is over 0: it is shorter than a step of the tool's clock" if times_ns else "no times"
    size = math.ceil(len(valid) / groups) if valid else 1
    parts = tuple(tuple(valid[i : i + size]) for i in range(0, len(valid), size))
    return ToolRow(name, parts, more.pop("axes", {}), zeros=len(times_ns) - len(valid), **more)


def _number(value: Any) -> float:
    """Return a number, which nvbench writes as text; what is none becomes NaN, which no time may be."""
    if isinstance(value, bool) or value is None:
        return math.nan
    return float(value)


@dataclass(frozen=True)
class _Places:
    name: str
    folder: Path | None


# ---- hyperfine


def _hyperfine(data: Mapping[str, Any], at: _Places) -> ToolRun:
    rows: list[ToolRow] = []
    for entry in data["results"]:
        name = str(entry["command"])
        axes = {str(axis): str(value) for axis, value in _object(entry.get("parameters")).items()}
        codes = [code for code in _list(entry.get("exit_codes")) if code != 0]
        if codes:
            error = f"{len(codes)} of {len(entry['exit_codes'])} runs failed (exit code {codes[0]})"
            rows.append(_row(name, [], where=at.name, error=error, axes=axes))
        else:
            lacking = "the file has the mean only, without the times of the runs"
            row = partial(_row, name, entry.get("times"), where=at.name, mean=entry["mean"], axes=axes)
            rows.append(row(lacking=lacking, groups=_MOST_GROUPS))
    return ToolRun(ToolFormat.HYPERFINE, tuple(rows), UNKNOWN_MACHINE)


# ---- google-benchmark


def _google(data: Mapping[str, Any], at: _Places) -> ToolRun:
    context = data["context"]
    found: dict[Any, list[Mapping[str, Any]]] = {}
    for entry in data["benchmarks"]:
        # One entry per repetition, and aggregates of them behind.
        place = entry.get("run_name", entry["name"]), entry.get("family_index"), entry.get("per_family_instance_index")
        found.setdefault(place, []).append(entry)
    rows = [row for (name, *_), entries in found.items() if (row := _google_row(str(name), entries, at)) is not None]
    warnings: list[str] = []
    build = context.get("library_build_type")
    if build == "debug":
        warnings.append("the library of google-benchmark was built without optimisation, which its loop contains")
    if context.get("cpu_scaling_enabled") is True:
        warnings.append("the clock of the CPU followed the load (cpu_scaling_enabled)")
    return ToolRun(
        ToolFormat.GOOGLE, tuple(rows), f"{int(context['num_cpus'])} CPUs", _text(context, "library_version"),
        str(context.get("date", "")), {"name": _text(context, "host_name"), "cpu_count": int(context["num_cpus"])},
        None if build is None else build == "debug", warnings=tuple(warnings),
    )  # fmt: skip


def _google_row(name: str, entries: Sequence[Mapping[str, Any]], at: _Places) -> ToolRow | None:
    failed = next((one for one in entries if one.get("error_occurred") or one.get("skipped")), None)
    if failed is not None:
        message = failed.get("error_message") or failed.get("skip_message") or "no reason is given"
        return _row(name, [], where=at.name, error=str(message))
    runs = [one for one in entries if one.get("run_type", "iteration") == "iteration"]
    warnings: tuple[str, ...] = ()
    if not runs:
        # The fit of a complexity has no time, and its name has no repetitions.
        runs = [one for one in entries if one.get("aggregate_name") in ("median", "mean")][-1:]
        if not runs:
            return None
        which = runs[0]["aggregate_name"]
        warnings = (f"the file has the {which} only: leave out --benchmark_report_aggregates_only",)
    times = [_number(one["real_time"]) * UNITS_NS[one["time_unit"]] for one in runs]
    # That of an aggregate is the number of repetitions.
    iterations = 1 if warnings else max(int(runs[0]["iterations"]), 1)
    return _row(name, times, where=at.name, unit_ns=1.0, iterations=iterations, warnings=warnings)


# ---- pytest-benchmark


def _pytest(data: Mapping[str, Any], at: _Places) -> ToolRun:
    machine = _object(data["machine_info"])
    cpu = _object(machine.get("cpu"))
    rows: list[ToolRow] = []
    for entry in data["benchmarks"]:
        stats = entry["stats"]
        lacking = "the file has statistics only: save the rounds with --benchmark-json or --benchmark-save-data"
        row = partial(_row, str(entry["fullname"]), stats.get("data") or None, where=at.name, mean=stats["median"])
        rows.append(row(lacking=lacking, iterations=max(int(stats.get("iterations") or 1), 1)))
    commit = _object(data.get("commit_info"))
    identifier = str(commit.get("id") or "")
    return ToolRun(
        ToolFormat.PYTEST, tuple(rows),
        str(cpu.get("brand_raw") or cpu.get("brand") or machine.get("processor") or UNKNOWN_MACHINE),
        _text(data, "version"), str(data.get("datetime", "")),
        {
            "name": _text(machine, "node"),
            **{name: str(machine.get(name, "")) for name in ("system", "release", "machine")},
            "cpu_count": cpu.get("count") if isinstance(cpu.get("count"), int) else None,
        },
        None,
        _text(machine, "python_version"),
        (identifier, bool(commit.get("dirty"))) if re.fullmatch("[0-9a-f]{40,64}", identifier) else None,
    )  # fmt: skip


# ---- nvbench


def _nvbench(data: Mapping[str, Any], at: _Places) -> ToolRun:
    names = {device["id"]: str(device["name"]) for device in data["devices"]}
    states = [(bench, state) for bench in data["benchmarks"] for state in _list(bench["states"])]
    several = len({state.get("device") for _, state in states}) > 1
    rows = [row for bench, state in states for row in _nvbench_rows(bench, state, several, at)]
    used = [name for i, name in names.items() if any(state.get("device") == i for _, state in states)]
    version = _object(_object(_object(data.get("meta")).get("version")).get("nvbench"))
    return ToolRun(
        ToolFormat.NVBENCH, tuple(rows), ", ".join(used) or "CPU only",
        _text(version, "string"),
    )  # fmt: skip


def _nvbench_rows(
    bench: Mapping[str, Any], state: Mapping[str, Any], several_devices: bool, at: _Places
) -> list[ToolRow]:
    """Return the times of one state: of isolated launches, of the CPU, and the mean of launches in a batch."""
    inputs: dict[str, dict[str, str]] = {
        axis["name"]: {str(value.get("value")): str(value["input_string"]) for value in axis["values"]}
        for axis in _list(bench.get("axes"))
        # As the user writes it: 2^20 has the input string 20, and the value is easier to read.
        if "pow2" not in str(axis.get("flags", ""))
    }
    axes = {str(axis["name"]): _axis_value(axis, inputs) for axis in _list(state.get("axis_values"))}
    if several_devices:
        axes["Device"] = str(state["device"])
    row = partial(_row, str(bench["name"]), where=at.name, axes=axes)
    summaries = {
        summary["tag"]: {value["name"]: value["value"] for value in _list(summary.get("data"))}
        for summary in _list(state.get("summaries"))
    }
    of_gpu: dict[str, Any] = {"series": _GPU, "mode": Mode.COLD}
    if state.get("is_skipped"):
        reason = str(state.get("skip_reason") or "no reason is given")
        return [row([], error=f"skipped: {reason}", **of_gpu)]
    rows: list[ToolRow] = []
    for of, clock in (("cold", "gpu"), ("cpu_only", "cpu")):
        stored, mean = summaries.get(f"nv/json/bin:nv/{of}/sample_times"), summaries.get(f"nv/{of}/time/{clock}/mean")
        if stored is not None or mean is not None:
            times, lacking = _stored(stored, at)
            mean_s = (mean or {}).get("value")
            rows.append(row(times, mean=mean_s, lacking=lacking, **(of_gpu if clock == "gpu" else {})))
    batch = summaries.get("nv/batch/time/gpu/mean")
    if batch is not None:
        iterations = max(int(summaries.get("nv/batch/sample_size", {}).get("value", 1)), 1)
        rows.append(row([batch["value"]], series=_GPU, iterations=iterations))
    return rows or [row([], error="it has no times", **of_gpu)]


def _axis_value(axis: Mapping[str, Any], inputs: Mapping[str, Mapping[str, str]]) -> str:
    value = str(axis.get("value", axis.get("input_string", "")))
    return inputs.get(axis["name"], {}).get(value, value)


def _stored(summary: Mapping[str, Any] | None, at: _Places) -> tuple[list[float] | None, str]:
    """Return the samples of a state, float32 in seconds, from the file beside the JSON; None, and why, without them."""
    if summary is None:
        return None, "the file has means only: --jsonbin FILE instead of --json FILE saves the samples"
    given, count = str(summary["filename"]), int(summary["size"])
    path = _beside(given, at.folder)
    if path is None:
        folder = f"the folder {PurePosixPath(given.replace(chr(92), '/')).parent.name}"
        return None, f"the samples are missing, and its mean is taken: keep {folder} beside {at.name}"
    size_bytes = path.stat().st_size
    if count > _MOST_SAMPLES or size_bytes != 4 * count:
        raise BadResultsFile(f"{path.name} has {size_bytes:,} bytes, but {at.name} says {count:,} samples of 4 bytes")
    return cast(list[float], np.frombuffer(path.read_bytes(), "<f4").astype(np.float64).tolist()), ""


def _beside(given: str, folder: Path | None) -> Path | None:
    """Return a file in the folder of the JSON file, which names it from there or from where nvbench was started.

    Nothing else is opened: a file may come from a stranger.
    """
    parts = PurePosixPath(given.replace("\\", "/")).parts
    if folder is None or ".." in parts:
        return None
    for tail in (parts, parts[-2:]):
        path = folder.joinpath(*tail)
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            return path
    return None


_READERS = {
    ToolFormat.HYPERFINE: _hyperfine, ToolFormat.GOOGLE: _google, ToolFormat.PYTEST: _pytest,
    ToolFormat.NVBENCH: _nvbench,
}  # fmt: skip
