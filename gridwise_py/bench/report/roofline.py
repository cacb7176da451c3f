"""The roofline as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from ...display.quantities import format_count, format_number, format_percent, format_time
from ...display.table import Cell, Column
from ...errors import ArgumentError
from ..analysis.roofline import Ceilings, Point
from ..results.model import Results
from .charts import roofline_chart
from .picture import still, titled
from .text_table import TextTable
from .vega import Spec

_PICTURE_WIDTH = 860
_COLUMNS = (
    Column("case"), Column("n", right=True), Column("flop/byte", right=True, priority=4),
    Column("predicted", right=True, priority=1), Column("measured", right=True),
    Column("of the roof", right=True, priority=2), Column("kernels", prose=True),
    Column("what the gap is likely to be", prose=True),
)  # fmt: skip


#: What the peaks are called where they are shown.
PEAKS = {
    "f16": "f16 multiply-adds", "i32": "i32 multiply-adds", "f64": "f64 multiply-adds",
    "atomic_u32": "32-bit atomic additions", "atomic_u64": "64-bit atomic additions",
}  # fmt: skip


def ceilings_text(document: Results, ceilings: Ceilings) -> str:
    """Return the device with its measured ceilings as text."""
    device = document.device
    software = ", software on the CPU, whose ceilings other work lowers: no shares of them" if device.is_cpu else ""
    arithmetic = (
        "multiply-adds not measured"
        if ceilings.fma_gflops is None
        else f"{format_number(ceilings.fma_gflops)} GFLOP/s of f32 FMA"
    )
    types = "".join(
        f", {format_number(gops)} of {name}" for name, gops in ceilings.peaks_gops.items() if "atomic" not in name
    )
    return (
        f"{device.adapter} ({device.backend}, {device.driver}{software}); measured ceilings: "
        f"{format_number(ceilings.memory_gbytes_per_s)} GB/s of copy, {arithmetic}{types}"
    )


def _cells(p: Point, *, singles: bool) -> tuple[Cell, ...]:
    """Return the cells of a point, one for each of `_COLUMNS`."""
    named = p.kernels if singles or len(p.kernels) > 1 else ()
    kernels = "; ".join(f"{label} {format_percent(share)}" for label, share in named)
    bound = f"arithmetic, {p.peak}" if p.bound == "arithmetic" and p.peak != "f32" else p.bound
    return (
        Cell(p.name), Cell(format_count(p.n), p.n), Cell(f"{p.intensity:.3g}", p.intensity),
        Cell(f"{format_time(p.predicted_ns)} ({bound})", p.predicted_ns),
        Cell(format_time(p.measured_ns), p.measured_ns), Cell(format_percent(p.share), p.share),
        Cell(kernels), Cell(p.why, kind="prose"),
    )  # fmt: skip


def roofline_table(
    document: Results, ceilings: Ceilings, found: Sequence[Point], *, singles: bool = False
) -> TextTable:
    """Return the table of predicted and measured times; `singles`: also where a kernel is alone, it is named."""
    table = TextTable(_COLUMNS, ceilings_text(document, ceilings))
    for p in found:
        table.add_row(*_cells(p, singles=singles))
    return table


def roofline_picture(document: Results, ceilings: Ceilings, found: Sequence[Point]) -> Spec:
    """Return the specification of the picture.

    Raises
    ------
    ArgumentError
        If no case has operations.
    """
    chart = roofline_chart(ceilings, found)
    if chart is None:
        raise ArgumentError("no case has arithmetic (a copy has none), so there is nothing to draw; see the table")
    text = (
        "Grey lines: the measured ceilings, copy and multiply-adds of the cases' types. Operations are applications of "
        "the operator."
    )
    return titled(still(chart, _PICTURE_WIDTH), [ceilings_text(document, ceilings)], text, width=_PICTURE_WIDTH)
