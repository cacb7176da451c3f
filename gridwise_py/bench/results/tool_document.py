"""From a file of another benchmark tool to a results document, so that every command that reads results reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ... import __version__
from ...storage.json_files import json_data
from ..stats.statistics import summarize
from .model import SCHEMA, SCHEMA_VERSION, Result, Results
from .precision import levels_of
from .tool_files import ToolRow, ToolRun

#: What a further process costs besides its cases is not known of a command.
_PROCESS_S = 0.0


def results_of_tool(run: ToolRun) -> Results:
    """Return the results document of another tool's run.

    A file is one process, as far as it tells: only hyperfine starts a new one for each time.
    """
    rows = enumerate(run.rows)
    results = tuple(result for position, row in rows for result in _results(row, position, run))
    document = Results.from_json(_head(run))
    return replace(document, levels=levels_of(results, _PROCESS_S), results=results)


def _head(run: ToolRun) -> dict[str, Any]:
    host = {"system": "", "release": "", "machine": "", "cpu_count": None, **(run.host or {})}
    versions = {"gridwise_py": None, "wgpu": None, "numpy": None, "python": run.python, str(run.tool): run.version}
    context = {
        "time": run.time, "versions": versions, "host": host, "seed": 0, "command": None, "suite": None,
        "git": None if run.commit is None else {"commit": run.commit[0], "dirty": run.commit[1]},
        "tool": str(run.tool), "imported_by": __version__,
    }  # fmt: skip
    device: dict[str, Any] = {
        "adapter": run.machine, "adapter_type": "Unknown", "vendor": "", "driver": "not told", "features": [],
        # Files of two tools, which time different things, are not compared unless somebody asks for it.
        "backend": str(run.tool),
        "limits": {}, "subgroup_size": None, "tick_period_ns": None, "tick_period_source": None, "tick_step_ns": None,
        "wait_method": str(run.tool), "floors": None, "calibration": None,
    }  # fmt: skip
    return json_data(
        {
            "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "context": context, "device": device, "protocol": {},
            "complete": True, "ticks_file": None, "results": [],
        }
    )  # fmt: skip


def _results(row: ToolRow, position: int, run: ToolRun) -> Iterator[Result]:
    """Yield a result for each group of times, which are of different processes."""
    for process, times_ns in enumerate(row.groups or ((),)):
        series: dict[str, Any] = {}
        if times_ns:
            summary = summarize(times_ns)
            zeros = {"zero": row.zeros} if row.zeros else {}
            series = {row.series: {"samples_ns": times_ns, "summary": summary.to_json(), "invalid": zeros}}
        median_ns = series[row.series]["summary"]["median_ns"] if series else None
        yield Result.from_json(
            json_data(
                {
                    "primitive": row.name, "n": 0, "mode": row.mode, "datatype": None, "op": None, "case": row.axes,
                    "position": position, "process": process, "round": 0,
                    "checked": False, "correct": row.error is None, "mismatch": None, "error": row.error,
                    "trials": row.iterations, "kernels": [],
                    "whole": {
                        "gpu_span_ns": median_ns if row.series == "gpu_span" else None,
                        "cpu_wall_ns": median_ns if row.series == "cpu_wall" else None,
                        "series": series,
                    },
                    "cold_start_ns": None, "work": None, "rates": {"gbytes_per_s": None, "gitems_per_s": None},
                    "parameters": None, "protocol": {}, "shaders_sha256": [], "stop_reason": None,
                    "clock_moved": False, "canary_ns": [], "warnings": [*row.warnings, *run.warnings],
                    "observations": {}, "tick_period_ns": None, "ticks": None, "samples": [],
                }
            )
        )  # fmt: skip
