"""``gridwise tune``: the fastest kernel shapes on an adapter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from .. import settings
from .options import (
    AxisText,
    AxisValues,
    Count,
    JsonFile,
    RawArguments,
    adapter_option,
    format_option,
    is_file_name,
    table_options,
)
from .output import showing_progress, table_console

__all__ = ["tune"]


#: Options that are for one of both: the kernels of the library, a user's files.
_OF_LIBRARY = {"kernels": "--kernels", "max_n": "--max-n", "show": "--show", "clear": "--clear"}
_OF_FILES = {
    "tune_axes": "--tune", "axes": "-a", "n": "--n", "mode": "--mode", "seed": "--seed", "json_path": "--json",
    "overwrite": "--overwrite", "processes": "--processes", "csv": "--csv", "markdown": "--markdown",
}  # fmt: skip


@click.command(cls=RawArguments, short_help="Find the fastest shapes of our kernels, or variants of your own.")
@click.argument("words", nargs=-1, metavar="[FILE.py [NAME]…]…")
@adapter_option
@click.option("--kernels", metavar="NAME,…", help="Kernels of the library to tune; all by default.")
@click.option(
    "--rounds", type=click.IntRange(min=3), help="How often each candidate is measured.  [default: 5; of a FILE 9]"
)
@click.option(
    "--processes", type=click.IntRange(min=3), metavar="N",
    help="Measure a FILE in N rounds, each in a process of its own: processes differ in their level of times.",
)  # fmt: skip
@click.option(
    "--max-n", type=Count(),
    help="Items of the largest input, such as 2^20; winners are then kept for at most so many.  [default: 2^26; on a "
    "CPU adapter 2^22]",
)  # fmt: skip
@click.option("--show", is_flag=True, help="Show the results stored for this adapter, and measure nothing.")
@click.option("--clear", is_flag=True, help="Delete the results stored for this adapter, and measure nothing.")
@click.option(
    "--tune", "tune_axes", metavar="AXIS,…", help="Axes of a FILE to tune.  [default: those that it declares]"
)
@click.option("-a", "--axis", "axes", type=AxisText(), multiple=True, metavar="AXIS", help="Other values of an axis.")
@click.option("--n", type=AxisValues("n"), help="Sizes of a FILE's benchmarks.  [default: those that it declares]")
@click.option(
    "--mode", type=AxisValues("mode", ("cold", "hot", "batch", "latency")),
    help="How trials of a FILE run, as for `gridwise bench`.  [default: hot]",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of a FILE's random numbers, and of the order.")
@click.option("--json", "json_path", type=JsonFile(), help="Write how the variants of a FILE stand here.")
@click.option("--overwrite", is_flag=True, help="Replace the --json file if it exists.")
@table_options
@format_option
def tune(words: tuple[str, ...], **options: Any) -> None:
    """Find the fastest kernel shapes for this adapter, and store them.

    Every candidate is checked against numpy and measured in turns with the default. It wins only if it is faster beyond
    noise. The winners are stored until adapter, driver or version change; GRIDWISE_TUNING=off ignores them.

    FILE.py is a file of your own benchmarks (docs/howto/benchmark-my-kernels.md). Of each, or of those called NAME, all
    combinations of the axes in tune=[…] or --tune are checked and measured in turns, at every point of the other axes.
    Those that are clearly slower after one or two rounds are left out. Nothing is stored. Exits with 4 or 2 if there
    is a point at which every variant is wrong or fails.
    """
    given = [name for key, name in (_OF_LIBRARY if words else _OF_FILES).items() if options[key]]
    if words:
        if not any(map(is_file_name, words)):
            raise click.UsageError(f"{words[0]!r} is no FILE.py; kernels of the library are named by --kernels")
        if given:
            raise click.UsageError(f"{given[0]} is for the kernels of the library; leave it out with a file")
        from .own_tune import tune_files

        tune_files(words, options)
        return
    if given:
        raise click.UsageError(f"{given[0]} is for a FILE.py of your own; name it")
    _tune_library(**{key: options[key] for key in ("adapter", "kernels", "rounds", "form", *list(_OF_LIBRARY)[1:])})


def _tune_library(
    adapter: str | None, kernels: str | None, rounds: int | None, form: str, max_n: int | None, *, show: bool,
    clear: bool,
) -> None:  # fmt: skip
    from .. import request_device
    from ..internals import TUNING_FORMAT, TUNING_KIND, clock_held, device_key
    from ..storage import cache

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
            run(device, wanted, rounds=rounds or 5, max_items=max_n, progress=progress)
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

    from ..bench.report.text_table import TextTable
    from ..display.table import Column

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
