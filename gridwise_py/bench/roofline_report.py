"""The roofline as a table and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from .plot import COLOURS, MARKERS, STYLE, as_written, load_figure, save_figure
from .roofline import Ceilings, Point
from .table import format_count, format_ns

__all__ = ["HEADINGS", "ceilings_text", "plot_roofline", "point_cells", "roofline_table"]

HEADINGS = (
    "case", "n", "flop/byte", "predicted", "measured", "of the roof", "kernels", "what the gap is likely to be",
)  # fmt: skip


def ceilings_text(document: Mapping[str, Any], ceilings: Ceilings) -> str:
    """Return the device with its measured ceilings as text."""
    device = document["device"]
    software = ", software on the CPU" if device["adapter_type"] == "CPU" else ""
    arithmetic = "not measured" if ceilings.fma_gflops is None else f"{ceilings.fma_gflops:,.0f} GFLOP/s of f32 FMA"
    return (
        f"{device['adapter']} ({device['backend']}, {device['driver']}{software}); measured ceilings: "
        f"{ceilings.memory_gbytes_per_s:,.0f} GB/s of copy, {arithmetic}"
    )


def point_cells(p: Point) -> tuple[str, ...]:
    """Return the texts of a point, one for each of `HEADINGS`."""
    kernels = "; ".join(f"{label} {share:.0%}" for label, share in p.kernels)
    return (
        p.name, format_count(p.n), f"{p.intensity:.3g}", f"{format_ns(p.predicted_ns)} ({p.bound})",
        format_ns(p.measured_ns), f"{p.share:.0%}", kernels, p.why,
    )  # fmt: skip


def roofline_table(document: Mapping[str, Any], ceilings: Ceilings, found: Sequence[Point]) -> Any:
    """Return a rich table."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=escape(ceilings_text(document, ceilings)), title_justify="left")
    table.add_column(HEADINGS[0])
    for heading in HEADINGS[1:6]:
        table.add_column(heading, justify="right")
    table.add_column(HEADINGS[6], overflow="fold")
    table.add_column(HEADINGS[7], overflow="fold", min_width=30)
    for p in found:
        table.add_row(*map(escape, point_cells(p)))
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
                [p.intensity for p in same], [p.gflops for p in same], linestyle="", alpha=0.8, label=as_written(name),
                color=COLOURS[i % len(COLOURS)], marker=MARKERS[(i + i // len(COLOURS)) % len(MARKERS)],
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("operations per byte that had to move")
        axes.set_ylabel("GFLOP/s (operator applications)")
        figure.suptitle(as_written(ceilings_text(document, ceilings)), fontsize=9, x=0.01, ha="left")
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=2, borderaxespad=0.3)
        save_figure(figure, out)
