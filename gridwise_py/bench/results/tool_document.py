"""Turns a file of another benchmark tool (nvbench, hyperfine, …) into a results document, which all commands read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import __version__
from ..stats.series import Series
from ..stats.statistics import summarize
from .model import Context, Device, Git, Host, Result, Results, Whole
from .precision import levels_of
from .tool_files import ToolRow, ToolRun

#: Seconds that one more process costs besides its cases, for advice on rounds: unknown for another tool's command.
_PROCESS_S = 0.0


def results_of_tool(run: ToolRun) -> Results:
    """Return the results document of another tool's run.

    A file is one process, as far as it tells: only hyperfine starts a new one for each time.
    """
    results = tuple(result for position, row in enumerate(run.rows) for result in _results(row, position, run))
    host: dict[str, Any] = {"system": "", "release": "", "machine": "", "cpu_count": None, **(run.host or {})}
    versions = {"gridwise_py": None, "wgpu": None, "numpy": None, "python": run.python, run.tool.value: run.version}
    return Results(
        context=Context(
            time=run.time, versions=versions, host=Host(**host), tool=run.tool.value,
            git=None if run.commit is None else Git(commit=run.commit[0], dirty=run.commit[1]),
            settings=None if run.debug_build is None else {"debug_build": run.debug_build},
            unknown={"imported_by": __version__},
        ),
        # Files of two tools, which time different things, are not compared unless somebody asks for it.
        device=Device(
            adapter=run.machine, adapter_type="Unknown", backend=run.tool.value, vendor="", driver="not told",
            wait_method=run.tool.value,
        ),
        protocol={},
        levels=levels_of(results, _PROCESS_S),
        results=results,
    )  # fmt: skip


def _results(row: ToolRow, position: int, run: ToolRun) -> Iterator[Result]:
    """Yield a result for each group of times; a group counts as a process. Without times: one empty result."""
    for process, times_ns in enumerate(row.groups or ((),)):
        series: dict[str, Series] = {}
        if times_ns:
            zeros = {"zero": row.zeros} if row.zeros else {}
            series = {row.series: Series(row.series, times_ns, summarize(times_ns), zeros)}
        span, wall = (series[name].median_ns if name in series else None for name in ("gpu_span", "cpu_wall"))
        yield Result(
            primitive=row.name, n=0, mode=row.mode, case=row.axes, position=position, process=process, checked=False,
            correct=row.error is None, error=row.error, trials=row.iterations,
            whole=Whole(gpu_span_ns=span, cpu_wall_ns=wall, series=series), warnings=(*row.warnings, *run.warnings),
        )  # fmt: skip
