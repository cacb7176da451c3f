"""What `gridwise timers` found, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from ..display.quantities import format_count, format_time
from .plot import COLOURS, STYLE, load_figure, save_figure, time_axis, write_title
from .text_table import Column, TextTable

__all__ = ["device_line", "plot_timers", "timers_markdown", "timers_table"]

_HOWS = {"cold": "without warm-up", "warm": "with warm-up"}


def device_line(document: Mapping[str, Any]) -> str:
    """Return what it was measured on."""
    device, versions = document["device"], document["context"]["versions"]
    software = ", software on the CPU" if device["adapter_type"] == "CPU" else ""
    torch = document["peers"].get("torch")
    beside = f"; PyTorch {torch['version']}" if torch else ""
    return (
        f"{device['adapter']} ({device['backend']}, {device['driver']}{software}); "
        f"gridwise_py {versions['gridwise_py']}, {document['context']['time'][:10]}{beside}"
    )


def _cells(row: Mapping[str, Any]) -> list[str]:
    cells = []
    for how in _HOWS:
        found = row[how]
        if found is None:
            cells += ["not measured", "–"]
        else:
            s = found["summary"]
            low, high = min(found["samples_ns"]), max(found["samples_ns"])
            cells += [format_time(s["median_ns"]), _range(low, high)]
    return cells


def _range(low_ns: float, high_ns: float) -> str:
    """Return two times, with one unit where it is the same."""
    low, high = format_time(low_ns), format_time(high_ns)
    return f"{low.split()[0] if low.split()[1] == high.split()[1] else low} to {high}"


def _title(workload: Mapping[str, Any]) -> str:
    return f"{workload['name']}, {format_count(workload['n'])} items of f32"


def timers_table(document: Mapping[str, Any]) -> Group:
    """Return a table per workload, as a group for a terminal."""
    headings = [
        Column(heading, right=True, priority=priority)
        for how, first in (("cold", 2), ("warm", 0))
        for heading, priority in ((_HOWS[how], first), (f"{how}: least to most", first + 1))
    ]
    parts: list[Any] = [Text(device_line(document))]
    for workload in document["workloads"]:
        columns = [Column("timer"), *headings, Column("what it really measured", prose=True)]
        table = TextTable(columns, f"{_title(workload)}; medians")
        for row in workload["timers"]:
            table.add_row(row["timer"], *_cells(row), row["what"])
        parts += [Text(""), table]
    return Group(*parts)


def timers_markdown(document: Mapping[str, Any]) -> str:
    """Return the same as Markdown, for a page."""
    protocol = document["protocol"]
    lines = [
        device_line(document) + ".",
        f"{protocol['cold_repeats']} samples without warm-up, {protocol['repeats']} with.",
        "",
    ]
    for workload in document["workloads"]:
        heads = ["timer", *(text for how in _HOWS.values() for text in (f"{how}, median", "least to most"))]
        lines += [f"{_title(workload)}:", "", f"| {' | '.join(heads)} |", "| --- | ---: | --- | ---: | --- |"]
        lines += [f"| {' | '.join([row['timer'], *_cells(row)])} |" for row in workload["timers"]]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def plot_timers(document: Mapping[str, Any], out: str | Path) -> None:
    """Draw every sample of every timer, and the median of the GPU's own time as a line.

    Raises
    ------
    ArgumentError
        If matplotlib is not installed, or the suffix is not of a picture.
    """
    out = Path(out)
    matplotlib, figure_class = load_figure(out)
    workloads = document["workloads"]
    with matplotlib.rc_context(STYLE):
        rows = max(len(workload["timers"]) for workload in workloads)
        figure = figure_class(figsize=(8.4, (1.2 + 0.42 * rows) * len(workloads) + 0.8), layout="constrained")
        for axes, workload in zip(figure.subplots(len(workloads), 1, squeeze=False)[:, 0], workloads, strict=True):
            _panel(axes, workload)
        write_title(figure, [device_line(document)])
        save_figure(figure, out)


def _panel(axes: Any, workload: Mapping[str, Any]) -> None:
    names, seen = [row["timer"] for row in workload["timers"]], []
    for place, row in enumerate(workload["timers"]):
        for how, offset, colour, marker in (("cold", -0.14, COLOURS[1], "s"), ("warm", 0.14, COLOURS[0], "o")):
            if row[how] is None:
                continue
            values = [ns / 1e9 for ns in row[how]["samples_ns"] if ns > 0]
            seen += values
            axes.plot(values, [place + offset] * len(values), linestyle="", marker=marker, color=colour, alpha=0.35)
            median = row[how]["summary"]["median_ns"] / 1e9
            label = _HOWS[how] if place == 0 else None
            axes.plot([median], [place + offset], marker=marker, color=colour, markersize=8, linestyle="", label=label)
    truth = next((row["warm"] for row in workload["timers"] if row["timer"] == "GPU timestamps"), None)
    if truth is not None:
        axes.axvline(truth["summary"]["median_ns"] / 1e9, color="#7f7f7f", linewidth=1, linestyle=(0, (6, 3)),
                     label="GPU timestamps, with warm-up")  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    time_axis(axes.xaxis, axes.set_xscale, seen)
    axes.set_title(f"{_title(workload)}: what each timer says", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.12), ncols=3, borderaxespad=0.3)
