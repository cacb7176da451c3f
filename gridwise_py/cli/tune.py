"""``gridwise tune``: the fastest kernel shapes on an adapter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from .. import settings
from .options import Count, adapter_option, format_option
from .output import showing_progress, table_console

__all__ = ["tune"]


@click.command(short_help="Find the fastest kernel shapes for this adapter.")
@adapter_option
@click.option("--kernels", metavar="NAME,…", help="Kernels to tune; all by default.")
@click.option(
    "--rounds", default=5, show_default=True, type=click.IntRange(min=3), help="How often each candidate is measured."
)
@click.option(
    "--max-n", type=Count(),
    help="Items of the largest input, such as 2^20; winners are then kept for at most so many.  [default: 2^26; on a "
    "CPU adapter 2^22]",
)  # fmt: skip
@click.option("--show", is_flag=True, help="Show the results stored for this adapter, and measure nothing.")
@click.option("--clear", is_flag=True, help="Delete the results stored for this adapter, and measure nothing.")
@format_option
def tune(
    adapter: str | None, kernels: str | None, rounds: int, max_n: int | None, show: bool, clear: bool, form: str
) -> None:
    """Find the fastest kernel shapes for this adapter, and store them.

    Every candidate is checked against numpy and measured in turns with the default. It wins only if it is faster beyond
    noise. The winners are stored until adapter, driver or version change; GRIDWISE_TUNING=off ignores them.
    """
    from .. import request_device
    from ..runtime.device import device_key
    from ..runtime.gpu_clock import clock_held
    from ..storage import cache
    from ..tuning.store import TUNING_FORMAT, TUNING_KIND

    if show and clear:
        raise click.UsageError("--show and --clear exclude each other")
    device = request_device(adapter)
    key = device_key(device)
    if clear:
        gone = cache.remove(TUNING_KIND, key)
        click.echo(json.dumps({"removed": gone}) if form == "json" else "forgotten" if gone else "nothing was stored")
        return
    if not show:
        from ..bench.sweep.tune import tune as run

        wanted = None if kernels is None else [name.strip() for name in kernels.split(",")]
        with showing_progress() as progress, clock_held(device):
            run(device, wanted, rounds=rounds, max_items=max_n, progress=progress)
    kept = cache.load(TUNING_KIND, key, TUNING_FORMAT)
    if form == "json":
        click.echo(json.dumps(kept, indent=1))
        return
    try:
        shown = None if kept is None else _shown(kept["choices"])
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration):
        shown = None  # a broken file counts as missing
    if shown is None:
        from ..display.terminal import clean_lines

        click.echo(
            clean_lines(f"nothing is stored for {key['adapter']} ({key['driver']}): the default shapes are used")
        )
    else:
        _show(key, *shown)


def _shown(choices: Sequence[dict[str, Any]]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the rows of the table, and the shapes whose results were wrong."""
    from ..display.quantities import format_count, format_percent, format_time

    rows: list[tuple[str, ...]] = []
    for choice in choices:
        first = choice["trials"][0]
        best = next(t for t in choice["trials"] if t["shape"] == choice["winner"])
        rows.append(
            (
                str(choice["kernel"]),
                "any n" if choice["up_to"] is None else format_count(choice["up_to"]),
                format_count(choice["n"]),
                _words(first["shape"]),
                _words(choice["winner"]) if choice["changed"] else "the default",
                format_time(best["time_ns"]),
                format_percent(choice["ratio"]),
            )
        )
    return rows, [
        f"{c['kernel']} {_words(t['shape'])}" for c in choices for t in c["trials"] if t["verdict"] == "wrong"
    ]


def _show(key: dict[str, str], rows: Sequence[tuple[str, ...]], wrong: Sequence[str]) -> None:
    from rich.markup import escape

    from ..bench.report.text_table import Column, TextTable

    console = table_console(120)
    console.print(f"[bold]{escape(key['adapter'])}[/bold] ({escape(key['driver'])})")
    table = TextTable(
        [
            Column("kernel"), Column("up to", right=True), Column("at", right=True, priority=2),
            Column("default", priority=1), Column("tuned"), Column("time", right=True),
            Column("of default", right=True),
        ]
    )  # fmt: skip
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print("shapes: invocations x vec4 per invocation, maximum of workgroups; times per call, back to back")
    if wrong:
        console.print(f"[bold red]wrong results, so left out:[/bold red] {escape('; '.join(wrong))}")
    if not settings.tuning():
        console.print("GRIDWISE_TUNING=off: none of this is used")


def _words(shape: dict[str, int]) -> str:
    blocks = f", {shape['max_blocks']}" if shape["max_blocks"] else ""
    return f"{shape['workgroup_size']} x {shape['vecs']}{blocks}"
