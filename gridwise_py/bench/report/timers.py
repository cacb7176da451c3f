"""The results of `gridwise timers`, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...display.quantities import format_count, format_time
from ...display.table import Column
from .picture import below, check_picture, still, titled, write_picture
from .text_table import TextTable
from .vega import COLOURS, GREY, SECONDS, Datasets, Spec, load_altair, quantity

__all__ = ["device_line", "plot_timers", "timers_chart", "timers_markdown", "timers_picture", "timers_table"]

_HOWS = {"cold": "without warm-up", "warm": "with warm-up"}
_PICTURE_WIDTH = 680
_ROW_HEIGHT = 40
_EXPLAINED = "Small marks are samples, large ones their medians. Dashed: the median of GPU timestamps with warm-up."


def device_line(document: Mapping[str, Any]) -> str:
    """Return the device, versions and date."""
    device, versions = document["device"], document["context"]["versions"]
    software = ", software on the CPU" if device["adapter_type"] == "CPU" else ""
    beside = "".join(f"; {name} {peer['version']}" for name, peer in document["peers"].items())
    return (
        f"{device['adapter']} ({device['backend']}, {device['driver']}{software}); "
        f"gridwise_py {versions['gridwise_py']}, {document['context']['time'][:10]}{beside}"
    )


def _cells(row: Mapping[str, Any]) -> list[str]:
    cells: list[str] = []
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
    """Return a range of two times; a common unit is written once."""
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
    parts: list[RenderableType] = [Text(device_line(document))]
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
    """Draw every sample of every timer, and write the picture.

    Raises
    ------
    ArgumentError
        If Altair is not installed, or the suffix is not of a picture.
    """
    out = Path(out)
    check_picture(out)
    write_picture(timers_picture(document), out)


def timers_picture(document: Mapping[str, Any]) -> Spec:
    """Return the specification of the picture: a chart for each job."""
    charts = [
        titled(still(timers_chart(workload), _PICTURE_WIDTH), [f"{_title(workload)}: what each timer says"], _EXPLAINED,
               width=_PICTURE_WIDTH)
        for workload in document["workloads"]
    ]  # fmt: skip
    return titled(below(charts), [device_line(document)])


def timers_chart(workload: Mapping[str, Any]) -> Spec:
    """Return the chart of one job: each sample of each timer, and the medians."""
    alt, datasets = load_altair(), Datasets()
    names = [row["timer"] for row in workload["timers"]]
    samples: list[dict[str, Any]] = []
    medians: list[dict[str, Any]] = []
    for row in workload["timers"]:
        for how, text in _HOWS.items():
            if row[how] is None:
                continue
            common = {"timer": row["timer"], "how": text}
            samples += [{**common, "s": ns / 1e9} for ns in row[how]["samples_ns"] if ns > 0]
            medians.append({**common, "s": row[how]["summary"]["median_ns"] / 1e9})
    x = quantity(alt.X, "s", "time of a sample", [row["s"] for row in samples], labels=SECONDS)
    y = alt.Y("timer:N", title=None, sort=names, axis=alt.Axis(grid=True, tickBand="extent"))
    # Samples with warm-up below those without.
    words, legend, colours = list(_HOWS.values()), alt.Legend(symbolOpacity=1), [COLOURS[1], COLOURS[0]]
    offset = alt.YOffset("how:N", sort=words)
    colour = alt.Color("how:N", title=None, scale=alt.Scale(domain=words, range=colours), legend=legend)
    shape = alt.Shape("how:N", title=None, scale=alt.Scale(domain=words, range=["square", "circle"]), legend=legend)
    truth = [row for row in medians if (row["timer"], row["how"]) == ("GPU timestamps", _HOWS["warm"])]
    layers = [
        alt.Chart(datasets.data(truth)).mark_rule(color=GREY, strokeDash=[6, 3]).encode(x=x),
        alt.Chart(datasets.data(samples)).mark_point(size=30, filled=True, opacity=0.3)
        .encode(x=x, y=y, yOffset=offset, color=colour, shape=shape),
        alt.Chart(datasets.data(medians)).mark_point(size=110, filled=True, opacity=1)
        .encode(x=x, y=y, yOffset=offset, color=colour, shape=shape),
    ]  # fmt: skip
    return datasets.spec(alt.layer(*layers), height=_ROW_HEIGHT * len(names))
