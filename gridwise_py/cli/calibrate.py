"""``gridwise calibrate``: the clock, the floors and the ceilings of a device."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import click

from .options import adapter_option, format_option
from .output import showing_progress, table_console

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
        click.echo(json.dumps(found.to_dict(), indent=1))
        return
    _show(found)
    facts = context_of(device).capabilities.facts
    if facts:
        _show_facts(facts)


def _show_facts(facts: Mapping[str, Any]) -> None:
    from ..bench.report.text_table import TextTable
    from ..display.table import Column

    table = TextTable([Column("what"), Column("", right=True)], "What the shapes of kernels depend on")
    for name, words in _FACTS.items():
        value = facts.get(name)
        measured = "" if value is None else _bytes(value) if name.endswith("_bytes") else f"{value:,}"
        table.add_row(words, measured or "not measured")
    console = table_console(120)
    console.print()
    console.print(table)


def _learn(device: Any, adapter: str | None, form: str) -> None:
    from ..bench.report.console import make_console
    from ..bench.report.text_table import TextTable
    from ..bench.sweep.repeatability import learn_repeatability
    from ..display.quantities import format_time, format_uncertainty
    from ..display.table import Column
    from .progress import BenchProgress

    with BenchProgress(make_console(stderr=True)) as progress:
        spreads, document = learn_repeatability(device, adapter, progress=progress)
    if form == "json":
        click.echo(json.dumps([spread.to_json() for spread in spreads], indent=1))
        return
    title = f"{document.device.title}: how much processes differ that measure the same thing"
    columns = [Column("mode"), Column("time"), Column("up to", right=True), Column("standard deviation", right=True)]
    table = TextTable(columns, title)
    for spread in spreads:
        bound = "any" if spread.below_ns is None else format_time(spread.below_ns)
        table.add_row(spread.mode, spread.series, bound, format_uncertainty(math.expm1(spread.log_std))[1:])
    table_console(120).print(table)


def _show(found: Any) -> None:
    from rich.markup import escape

    from ..bench.report.roofline import PEAKS
    from ..bench.report.text_table import TextTable
    from ..display.quantities import format_number, format_time
    from ..display.table import Column

    console = table_console(120)
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
        table = TextTable([Column("what"), Column("time", right=True), Column("clock")], title)
        for name, (words, clock) in rows.items():
            table.add_row(words, format_time(values.get(name), "not measured"), clock)
        console.print()
        console.print(table)
    columns = [Column("array", right=True), Column("copy, GB/s", right=True), Column("triad, GB/s", right=True)]
    table = TextTable(columns, "Ceilings")
    triads = {point["array_bytes"]: point["gbytes_per_s"] for point in found.triad}
    for point in found.copy:
        triad = triads.get(point["array_bytes"])
        table.add_row(
            _bytes(point["array_bytes"]),
            format_number(point["gbytes_per_s"]),
            "not measured" if triad is None else format_number(triad),
        )
    console.print()
    console.print(table)
    console.print()
    cache = "no knee seen" if found.cache_bytes is None else f"at most about {_bytes(found.cache_bytes)}"
    console.print(f"last-level cache: {cache}")
    gflops = "not measured" if found.fma_gflops is None else f"{format_number(found.fma_gflops)} GFLOP/s"
    console.print(f"multiply-adds in f32 (two operations each): {gflops}")
    if found.peaks_gops:
        table = TextTable([Column("other peaks"), Column("10^9 operations/s", right=True)])
        for name, words in PEAKS.items():
            gops = found.peaks_gops.get(name)
            table.add_row(words, "the device has none" if gops is None else format_number(gops))
        console.print()
        console.print(table)


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:g} {unit}"
        count /= 1024
    return f"{count:g} GiB"
