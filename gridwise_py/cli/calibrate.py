"""``gridwise calibrate``: the clock, the floors and the ceilings of a device."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from .options import adapter_option, format_option
from .output import showing_progress, table_console

if TYPE_CHECKING:
    from rich.console import Console

    from ..bench.calibrate.calibration import Calibration

_FLOORS = {
    "empty_pass": ("a pass with one workgroup that does nothing", "GPU"),
    "dispatch_in_long_pass": ("a dispatch in a pass of many", "GPU"),
    "gap_between_passes": ("the gap between two passes", "GPU"),
    "submission": ("submit such a pass and wait for it", "CPU"),
}
_SYNCHRONISING = {
    "submit": ("submit", "CPU"),
    "wait_when_idle": ("wait when idle", "CPU"),
    "wait_after_work": ("wait after work", "CPU"),
    "readback_4_bytes": ("read back 4 bytes", "CPU"),
}
_FACTS = {
    "multiprocessors": "multiprocessors (workgroups with all workgroup memory that one may have, at once)",
    "storage_bytes": "workgroup memory of a multiprocessor",
    "invocations": "invocations of a multiprocessor, at once",
}


@click.command(short_help="Check the clock; measure floors and ceilings.")
@adapter_option
@click.option("--refresh", is_flag=True, help="Measure again, even if results are stored.")
@click.option(
    "--repeatability", is_flag=True, help="Learn how much processes differ, so that files of one process can be judged."
)
@format_option
def calibrate(adapter: str | None, refresh: bool, repeatability: bool, form: str) -> None:
    """Check the unit of GPU times, and measure floors, ceilings and the cost of synchronising.

    The results are stored until adapter, driver or version change. --repeatability measures some cases in 6 processes,
    which takes some minutes. Files that gridwise bench writes afterwards have what it learnt.
    """
    from .. import request_device
    from ..bench.calibrate.calibration import calibrate as run
    from ..internals import clock_held, context_of

    device = request_device(adapter)
    if repeatability:
        _learn(device, adapter, form)
        return
    with showing_progress() as progress, clock_held(device):
        found = run(device, refresh=refresh, progress=progress)
    if form == "json":
        click.echo(json.dumps(found.to_json(), indent=1))
        return
    console = table_console(120)
    _show(console, found)
    facts = context_of(device).capabilities.facts
    if facts:
        _show_facts(console, facts)


def _print(console: Console, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *texts: int) -> None:
    """Print an empty line and a table, whose columns are figures but for `texts`."""
    from ..bench.report.text_table import TextTable
    from ..display.table import table_of

    console.print()
    console.print(table_of(title, headings, rows, texts=texts, kind=TextTable))


def _show_facts(console: Console, facts: Mapping[str, Any]) -> None:
    rows: list[tuple[str, str]] = []
    for name, words in _FACTS.items():
        value = facts.get(name)
        measured = "not measured" if value is None else _bytes(value) if name.endswith("_bytes") else f"{value:,}"
        rows.append((words, measured))
    _print(console, "What the shapes of kernels depend on", ["what", ""], rows, 0)


def _learn(device: Any, adapter: str | None, form: str) -> None:
    from ..bench.report.console import make_console
    from ..bench.report.text_table import TextTable
    from ..bench.sweep.repeatability import learn_repeatability
    from ..display.quantities import format_time, format_uncertainty
    from ..display.table import table_of
    from .progress import BenchProgress

    with BenchProgress(make_console(stderr=True)) as progress:
        spreads, document = learn_repeatability(device, adapter, progress=progress)
    if form == "json":
        click.echo(json.dumps([spread.to_json() for spread in spreads], indent=1))
        return
    title = f"{document.device.title}: how much processes differ that measure the same thing"
    rows = [
        (one.mode, one.series, format_time(one.below_ns, "any"), format_uncertainty(math.expm1(one.log_std))[1:])
        for one in spreads
    ]
    headings = ("mode", "time", "up to", "standard deviation")
    table_console(120).print(table_of(title, headings, rows, texts=(0, 1), kind=TextTable))


def _show(console: Console, found: Calibration) -> None:
    from rich.markup import escape

    from ..bench.report.roofline import PEAKS
    from ..display.quantities import format_number, format_time

    check = found.tick_check
    console.print(f"[bold]{escape(found.device['adapter'])}[/bold] ({escape(found.device['driver'])})")
    step = "unknown" if found.tick_step_ns is None else f"{found.tick_step_ns:g} ns"
    console.print(f"tick: {found.tick_period_ns:g} ns, step {step}")
    verdict = "right" if check.ok else "[bold red]doubtful: GPU times cannot be trusted[/bold red]"
    console.print(
        f"unit: {format_time(check.span_ns)} by timestamps, {format_time(check.wall_ns)} on the CPU's clock, "
        f"ratio {check.ratio:.4f}: {verdict}"
    )
    for title, rows, values in (
        ("Floors (part of every time; never subtracted)", _FLOORS, found.floors_ns),
        (f"Cost of synchronising (waits by {found.wait_method})", _SYNCHRONISING, found.synchronising_ns),
    ):
        cells = [(words, format_time(values.get(name), "not measured"), on) for name, (words, on) in rows.items()]
        _print(console, title, ["what", "time", "clock"], cells, 0, 2)
    triads = {point["array_bytes"]: point["gbytes_per_s"] for point in found.triad}
    speeds = [
        (
            _bytes(size),
            format_number(copy["gbytes_per_s"]),
            format_number(triads[size]) if size in triads else "not measured",
        )
        for copy in found.copy
        for size in (copy["array_bytes"],)
    ]
    _print(console, "Ceilings", ["array", "copy, GB/s", "triad, GB/s"], speeds)
    console.print()
    cache = "no knee seen" if found.cache_bytes is None else f"at most about {_bytes(found.cache_bytes)}"
    console.print(f"last-level cache: {cache}")
    gflops = "not measured" if found.fma_gflops is None else f"{format_number(found.fma_gflops)} GFLOP/s"
    console.print(f"multiply-adds in f32 (two operations each): {gflops}")
    if found.peaks_gops:
        peaks = [
            (words, format_number(found.peaks_gops[name]) if name in found.peaks_gops else "the device has none")
            for name, words in PEAKS.items()
        ]
        _print(console, "", ["other peaks", "10^9 operations/s"], peaks, 0)


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:g} {unit}"
        count /= 1024
    return f"{count:g} GiB"
