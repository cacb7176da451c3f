"""``gridwise tune``: the fastest kernel shapes on an adapter."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .. import settings
from .options import (
    AxisText,
    AxisValues,
    Count,
    Duration,
    JsonFile,
    RawArguments,
    adapter_option,
    format_option,
    is_file_name,
    table_options,
)
from .output import check_new, check_output, showing_progress, table_console, write_document

#: Options that are for one of both: the kernels of the library, a user's files.
_OF_LIBRARY = {
    "kernels": "--kernels", "max_n": "--max-n", "budget": "--budget", "check": "--check", "show": "--show",
    "clear": "--clear",
}  # fmt: skip
_OF_FILES = {
    "tune_axes": "--tune", "axes": "-a", "n": "--n", "mode": "--mode", "rounds": "--rounds",
    "processes": "--processes", "csv": "--csv", "markdown": "--markdown",
}  # fmt: skip


@click.command(cls=RawArguments, short_help="Find the fastest shapes of our kernels, or variants of your own.")
@click.argument("words", nargs=-1, metavar="[FILE.py [NAME]…]…")
@adapter_option
@click.option("--kernels", metavar="NAME,…", help="Kernels of the library to tune; all by default.")
@click.option(
    "--budget", type=Duration(), metavar="TIME",
    help="Time for all kernels of the library, as 60s or 3min.  [default: 3min]",
)  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(min=3), help="How often each variant of a FILE is measured.  [default: 9]"
)
@click.option(
    "--processes", type=click.IntRange(min=3), metavar="N",
    help="Measure a FILE in N rounds, each in a process of its own: processes differ in their level of times.",
)  # fmt: skip
@click.option(
    "--max-n", type=Count(),
    help="Items of the largest input, such as 2^20; winners are then kept for at most so many.  [default: 2^27; on a "
    "CPU adapter 2^20]",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Measure the shapes in use in turns with the model's; store nothing.")
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
@click.option("--json", "json_path", type=JsonFile(), help="Write all that was found here.")
@click.option("--overwrite", is_flag=True, help="Replace the --json file if it exists.")
@table_options
@format_option
def tune(words: tuple[str, ...], **options: Any) -> None:
    """Find the fastest kernel shapes for this adapter, and store them.

    Shapes near to the default ones are measured in turns with these, for ranges of lengths, as many as the time allows.
    One wins only if it is faster beyond noise, twice, with the same results. The winners are stored after each kernel,
    until adapter, driver or version change; Ctrl-C keeps what was found. GRIDWISE_TUNING=off ignores them.

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
    _tune_library(options)


def _tune_library(options: Mapping[str, Any]) -> None:
    from .. import request_device
    from ..internals import TUNING_KIND, clock_held, device_key, kept_tuning
    from ..storage import cache

    asked = [name for name in ("show", "clear", "check") if options[name]]
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(f'--{name}' for name in asked)} exclude each other")
    json_path: Path | None = options["json_path"]
    if json_path is not None:
        check_output(json_path, "--json")
        check_new(json_path, "--json", overwrite=options["overwrite"])
    device = request_device(options["adapter"])
    key, form = device_key(device), options["form"]
    if options["clear"]:
        gone = cache.remove(TUNING_KIND, key)
        click.echo(json.dumps({"removed": gone}) if form == "json" else "forgotten" if gone else "nothing was stored")
        return
    from ..bench.sweep.tune import DEFAULT_BUDGET_S, check_tuning
    from ..bench.sweep.tune import tune as run

    names = options["kernels"]
    wanted = None if names is None else [name.strip() for name in names.split(",")]
    how: dict[str, Any] = {"budget_s": options["budget"] or DEFAULT_BUDGET_S, "seed": options["seed"]}
    if options["check"]:
        with showing_progress() as progress, clock_held(device):
            found = check_tuning(device, wanted, progress=progress, **how)
        _give(
            {"device": key, "checks": [asdict(one) for one in found]}, json_path, form, lambda: _show_checks(key, found)
        )
        return
    try:
        if not options["show"]:
            with showing_progress() as progress, clock_held(device):
                run(device, wanted, max_items=options["max_n"], progress=progress, **how)
    finally:  # also after Ctrl-C: what was found is stored
        kept = kept_tuning(key)
        _give(kept, json_path, form, lambda: _show(key, kept))


def _give(document: Any, json_path: Path | None, form: str, show: Callable[[], None]) -> None:
    """Print what was found, and write the file."""
    from ..storage.json_files import json_text

    if form == "json":
        click.echo(json_text(document))
    else:
        show()
    if json_path is not None and document is not None:
        write_document(json_path, document)


def _show(key: dict[str, str], kept: Mapping[str, Any] | None) -> None:
    from ..display.terminal import clean_lines

    try:
        shown = None if kept is None else _shown(kept["choices"])
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration):
        shown = None  # a broken file counts as missing
    if shown is None or kept is None:
        click.echo(
            clean_lines(f"nothing is stored for {key['adapter']} ({key['driver']}): the default shapes are used")
        )
        return
    from rich.markup import escape

    from ..bench.report.text_table import TextTable
    from ..display.table import Column

    rows, wrong = shown
    console = table_console(120)
    console.print(f"[bold]{escape(key['adapter'])}[/bold] ({escape(key['driver'])}), {escape(str(kept.get('date')))}")
    table = TextTable(
        [
            Column("kernel"), Column("items", right=True), Column("at", right=True, priority=2),
            Column("default", priority=1), Column("tuned"), Column("time", right=True),
            Column("ratio", right=True),
        ]
    )  # fmt: skip
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(
        "shapes: the numbers of their tuning; times of a call, back to back, of the default; ratio: of the tuned to it"
    )
    if wrong:
        console.print(f"[bold red]wrong results, so left out:[/bold red] {escape('; '.join(wrong))}")
    if not settings.uses_tuning():
        console.print("GRIDWISE_TUNING=off: none of this is used")


def _shown(choices: Sequence[dict[str, Any]]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the rows of the table, and the shapes whose results were wrong."""
    from ..display.quantities import format_count, format_percent, format_time

    rows = [
        (
            str(choice["kernel"]),
            f"{format_count(choice['above'])} to {format_count(choice['up_to'])}",
            format_count(choice["n"]),
            _words(choice["trials"][0]["shape"]),
            _words(choice["winner"]) if choice["changed"] else "the default",
            format_time(choice["trials"][0]["time_ns"]),
            format_percent(choice["ratio"]),
        )
        for choice in choices
    ]
    return rows, [
        f"{c['kernel']} {_words(t['shape'])}" for c in choices for t in c["trials"] if t["verdict"] == "wrong"
    ]


def _show_checks(key: dict[str, str], found: Sequence[Any]) -> None:
    from rich.markup import escape

    from ..bench.report.text_table import TextTable
    from ..display.quantities import format_count, format_percent
    from ..display.table import Column

    console = table_console(120)
    console.print(f"[bold]{escape(key['adapter'])}[/bold] ({escape(key['driver'])})")
    if not found:
        console.print("no shapes are in use but the default ones")
        return
    table = TextTable(
        [
            Column("kernel"), Column("at", right=True), Column("default", priority=2), Column("tuned", priority=1),
            Column("ratio", right=True), Column("95 %", priority=3), Column("verdict"),
        ]
    )  # fmt: skip
    for one in found:
        interval = f"{format_percent(one.low)} to {format_percent(one.high)}"
        kind = "bad" if one.verdict == "slower" else "good" if one.verdict == "faster" else ""
        table.add_row(
            one.kernel, format_count(one.n), _words(one.default), _words(one.used), format_percent(one.ratio), interval,
            one.verdict, kind=kind,
        )  # fmt: skip
    console.print(table)
    console.print(f"slowest: {format_percent(max(one.ratio for one in found))} of the default's time")


def _words(shape: Mapping[str, int]) -> str:
    return " x ".join(str(number) for number in shape.values())
