"""The roofline as a table and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..display.quantities import format_count, format_number, format_percent, format_time
from ..errors import ArgumentError
from .plot import COLOURS, MARKERS, STYLE, as_written, label_log_axis, load_figure, save_figure, write_title
from .roofline import Ceilings, Point
from .text_table import Column, TextTable

__all__ = ["HEADINGS", "ceilings_text", "plot_roofline", "point_cells", "roofline_table"]

HEADINGS = (
    "case", "n", "flop/byte", "predicted", "measured", "of the roof", "kernels", "what the gap is likely to be",
)  # fmt: skip


def ceilings_text(document: Mapping[str, Any], ceilings: Ceilings) -> str:
    """Return the device with its measured ceilings as text."""
    device = document["device"]
    software = ", software on the CPU" if device["adapter_type"] == "CPU" else ""
    arithmetic = (
        "multiply-adds not measured"
        if ceilings.fma_gflops is None
        else f"{format_number(ceilings.fma_gflops)} GFLOP/s of f32 FMA"
    )
    return (
        f"{device['adapter']} ({device['backend']}, {device['driver']}{software}); measured ceilings: "
        f"{format_number(ceilings.memory_gbytes_per_s)} GB/s of copy, {arithmetic}"
    )


def point_cells(p: Point) -> tuple[str, ...]:
    """Return the texts of a point, one for each of `HEADINGS`."""
    kernels = "; ".join(f"{label} {format_percent(share)}" for label, share in p.kernels)
    return (
        p.name, format_count(p.n), f"{p.intensity:.3g}", f"{format_time(p.predicted_ns)} ({p.bound})",
        format_time(p.measured_ns), format_percent(p.share), kernels, p.why,
    )  # fmt: skip


# For a terminal: which columns are numbers, and which are left out first.
_PRIORITIES = {"flop/byte": 4, "predicted": 1, "of the roof": 2}


def roofline_table(document: Mapping[str, Any], ceilings: Ceilings, found: Sequence[Point]) -> TextTable:
    """Return the table for a terminal."""
    prose = HEADINGS[6:]
    columns = [
        Column(heading, right=heading not in (HEADINGS[0], *prose), priority=_PRIORITIES.get(heading, 0),
               prose=heading in prose)
        for heading in HEADINGS
    ]  # fmt: skip
    table = TextTable(columns, ceilings_text(document, ceilings))
    for p in found:
        cells = point_cells(p)
        # A single kernel is the whole.
        table.add_row(*cells[:6], cells[6] if len(p.kernels) > 1 else "", cells[7])
    return table


def plot_roofline(document: Mapping[str, Any], ceilings: Ceilings, found: Sequence[Point], out: str | Path) -> None:
    """Draw operations per second over operations per byte, with the ceilings.

    Raises
    ------
    ArgumentError
        If matplotlib is not installed, the suffix is not of a picture, or no case has operations.
    """
    out = Path(out)
    matplotlib, figure_class = load_figure(out)
    shown = [p for p in found if p.intensity > 0]
    if not shown:
        raise ArgumentError("no case has arithmetic (a copy has none), so there is nothing to draw; see the table")
    with matplotlib.rc_context(STYLE):
        figure = figure_class(figsize=(8.4, 5.6), layout="constrained")
        axes = figure.subplots()
        intensities = [p.intensity for p in shown] + ([ceilings.ridge] if ceilings.ridge else [])
        ends = [min(intensities) / 4, max(intensities) * 8]
        corner = [ceilings.ridge] if ceilings.ridge and ends[0] < ceilings.ridge < ends[1] else []
        xs = [ends[0], *corner, ends[1]]
        roof = [min(x * ceilings.memory_gbytes_per_s, ceilings.fma_gflops or float("inf")) for x in xs]
        axes.plot(xs, roof, color="black", linewidth=2, label="measured ceilings: copy, multiply-add")
        names = list(dict.fromkeys(p.name for p in shown))
        for i, name in enumerate(names):
            same = [p for p in shown if p.name == name]
            axes.plot(
                [p.intensity for p in same], [p.gflops for p in same], linestyle="", alpha=0.8,
                label=as_written(name),
                color=COLOURS[i % len(COLOURS)], marker=MARKERS[(i + i // len(COLOURS)) % len(MARKERS)],
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("operations per byte that had to move")
        axes.set_ylabel("GFLOP/s (operator applications)")
        label_log_axis(axes.xaxis)
        label_log_axis(axes.yaxis)
        write_title(figure, [ceilings_text(document, ceilings)])
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=2, borderaxespad=0.3)
        save_figure(figure, out)
