"""``gridwise tune``: the fastest kernel shapes on an adapter, or variants of a user's own benchmarks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

import click

from .. import settings
from ..display.quantities import format_count, format_percent, format_time
from ..display.terminal import clean_lines
from .bench import benchmarks_of_files
from .exit_codes import BAD_INPUT, WRONG_RESULT
from .options import (
    AxisText,
    AxisValues,
    Count,
    Duration,
    OutputFile,
    RawArguments,
    adapter_option,
    format_option,
    is_file_name,
    table_options,
    take_stdout,
)
from .output import (
    LINE_EVERY_S,
    check_output,
    check_tables,
    showing_progress,
    table_console,
    write_document,
    write_tables,
)

#: Options that are for one of both: the kernels of the library, a user's files.
_OF_LIBRARY = {
    "kernels": "--kernels", "max_n": "--max-n", "budget": "--budget", "check": "--check", "show": "--show",
    "clear": "--clear",
}  # fmt: skip
_OF_FILES = {
    "tune_axes": "--tune", "axes": "-a", "n": "--n", "mode": "--mode", "rounds": "--rounds",
    "processes": "--processes", "csv": "--csv", "markdown": "--markdown",
}  # fmt: skip
_ROUNDS = 9


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
@click.option("--json", "json_path", type=OutputFile(), help="Write all that was found here.")
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
    elif given:
        raise click.UsageError(f"{given[0]} is for a FILE.py of your own; name it")
    check_output(options["json_path"], "--json", overwrite=options["overwrite"])
    if words:
        _tune_files(words, options)
    else:
        _tune_library(options)


def _tune_library(options: Mapping[str, Any]) -> None:
    from .. import request_device
    from ..internals import TuningStore, clock_held, context_of

    asked = [name for name in ("show", "clear", "check") if options[name]]
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(f'--{name}' for name in asked)} exclude each other")
    device = request_device(options["adapter"])
    key = context_of(device).key
    store = TuningStore(key)
    if options["clear"]:
        gone = store.remove()
        said = "forgotten" if gone else "nothing was stored"
        click.echo(json.dumps({"removed": gone}) if options["form"] == "json" else said)
        return
    from ..bench.sweep.tune import DEFAULT_BUDGET_S, check_tuning
    from ..bench.sweep.tune import tune as run

    names = options["kernels"]
    wanted = None if names is None else [name.strip() for name in names.split(",")]
    how: dict[str, Any] = {"budget_s": options["budget"] or DEFAULT_BUDGET_S, "seed": options["seed"]}
    if options["check"]:
        with showing_progress() as progress, clock_held(device):
            found = check_tuning(device, wanted, progress=progress, **how)
        _give({"device": key, "checks": [asdict(one) for one in found]}, options, lambda: _show_checks(key, found))
        return
    try:
        if not options["show"]:
            with showing_progress() as progress, clock_held(device):
                run(device, wanted, max_items=options["max_n"], progress=progress, **how)
    finally:  # also after Ctrl-C: what was found is stored
        kept = store.kept()
        _give(kept, options, lambda: _show(key, kept))


def _give(document: Any, options: Mapping[str, Any], show: Callable[[], None]) -> None:
    """Print what was found, and write the file."""
    from ..storage.json_files import json_text

    if "stdout" in options:
        write_document(options["stdout"], document)
    elif options["form"] == "json":
        click.echo(json_text(document))
    else:
        show()
    if options["json_path"] is not None and document is not None:
        write_document(options["json_path"], document)


def _show(key: dict[str, str], kept: Mapping[str, Any] | None) -> None:
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


# ---- a user's file


def _tune_files(words: Sequence[str], options: Mapping[str, Any]) -> None:
    """Tune the benchmarks that ``FILE.py [NAME]…`` names; print how the variants stand, and write the files.

    Ends the process with an exit code if there is a point at which no variant ran and was right.
    """
    from .. import request_device
    from ..bench.sweep.own_tune import OWN_TUNE_PROTOCOL, RoundsApart, RoundsHere, contests_of, tune_variants
    from ..bench.sweep.worker import files_of_cases
    from ..internals import clock_held

    processes: int | None = options["processes"]
    if processes and options["rounds"]:
        raise click.UsageError("--processes measures one round in each; leave out --rounds")
    if options["form"] == "json":  # nothing that the files print goes there
        options = {**options, "stdout": take_stdout(click.get_current_context(), "--format json")}
    check_tables(options)
    asked = None if options["tune_axes"] is None else [axis.strip() for axis in options["tune_axes"].split(",")]
    short = {"n": options["n"], "datatype": None, "op": None, "mode": options["mode"]}
    contests = contests_of(benchmarks_of_files(words, options["axes"], short, with_baselines=False), asked)
    protocol = replace(OWN_TUNE_PROTOCOL, seed=options["seed"])
    rounds = processes or options["rounds"] or _ROUNDS
    adapter: dict[str, Any] = {}
    points: list[Any] = []
    with ExitStack() as held:

        def make_device() -> Any:
            device = request_device(options["adapter"])
            adapter.update(device.adapter.info)
            held.enter_context(clock_held(device))
            return device

        where: RoundsHere | RoundsApart = RoundsHere(make_device, protocol)
        if processes:
            files = files_of_cases(job.case for contest in contests for job in contest.jobs.values())
            where = held.enter_context(RoundsApart(options["adapter"], files, protocol))
        try:
            with showing_progress(every_s=LINE_EVERY_S) as progress:
                for point in tune_variants(where, contests, progress=progress, rounds=rounds, seed=options["seed"]):
                    points.append(point)
        finally:  # also after Ctrl-C: what was measured stays
            if points:
                _give_points(points, adapter, rounds, options)
    failed = [point for point in points if point.best is None]
    if failed:
        wrong = any(variant.standing == "wrong" for point in failed for variant in point.variants)
        sys.exit(WRONG_RESULT if wrong else BAD_INPUT)


def _give_points(points: Sequence[Any], adapter: Mapping[str, Any], rounds: int, options: Mapping[str, Any]) -> None:
    from ..bench.sweep.own_tune import best_for_all
    from ..storage.json_files import json_data

    by_name = [(name, list(own)) for name, own in groupby(points, key=lambda point: point.contest.benchmark)]
    for_all = {name: found for name, own in by_name if (found := best_for_all(own)) is not None}
    document = json_data(
        {
            "adapter": adapter.get("device", ""),
            "driver": adapter.get("description", ""),
            "rounds": rounds,
            "processes": options["processes"] or 1,
            "points": [point.to_json() for point in points],
            "for_all": {name: {"values": dict(values), "ratio": ratio} for name, (values, ratio) in for_all.items()},
        }
    )
    times = f"{rounds} processes" if options["processes"] else f"{rounds} rounds"
    title = clean_lines(f"{document['adapter']} ({document['driver']}), {times}")

    def show() -> None:
        console = table_console(120)
        console.print(title, markup=False)
        for name, own in by_name:
            console.print()
            _show_points(console, own, for_all.get(name))

    write_tables(options, lambda: _export(title, points))
    _give(document, options, show)


def _show_points(console: Any, points: Sequence[Any], for_all: tuple[Mapping[str, Any], float] | None) -> None:
    """Print a table of the points of one benchmark."""
    from ..bench.report.text_table import TextTable
    from ..display.table import Column

    table = TextTable(
        [
            Column("values"), Column("time", right=True), Column("slower by", right=True),
            Column("95 %", priority=1), Column("verdict"), Column("why", prose=True),
        ]
    )  # fmt: skip
    for point in points:
        table.add_heading(clean_lines(str(point.contest)))
        for one in point.variants:
            kind = {"best": "good", "wrong": "bad", "failed": "bad"}.get(str(one.standing), "")
            table.add_row(*_cells(one), kind=kind)
    console.print(table)
    if for_all is not None:
        values, ratio = for_all
        loss = "the best, or the same, at every point" if ratio == 1 else f"at worst {ratio:.3g} times the best time"
        console.print(f"for all points: {_values_text(values)} ({loss})", markup=False)


def _cells(one: Any) -> tuple[str, ...]:
    """Return what a table shows of a variant."""
    why = one.reason if one.checked or one.reason else "its result was not checked: there is no reference"
    return (
        _values_text(one.values),
        format_time(one.time_ns),
        "" if one.ratio is None or one.standing == "best" else _slower(one.ratio),
        "" if one.low is None else f"{_slower(one.low)} to {_slower(one.high)}",
        str(one.standing),
        clean_lines(why),
    )


def _values_text(values: Mapping[str, Any]) -> str:
    from ..bench.cases.benchmarked import axis_text

    return " ".join(f"{axis}={axis_text(value)}" for axis, value in values.items())


def _export(title: str, points: Sequence[Any]) -> Any:
    """Return the table for files, a row for each variant."""
    from ..display.table import table_of

    cells: list[list[str]] = []
    records: list[dict[str, Any]] = []
    for point in points:
        entry = point.to_json()
        of_point = {key: entry[key] for key in ("benchmark", "n", "mode")} | entry["axes"]
        for one, variant in zip(point.variants, entry["variants"], strict=True):
            cells.append([str(point.contest), *_cells(one)])
            records.append(of_point | variant.pop("values") | variant)
            del records[-1]["rounds_ns"]
    table = table_of(title, ["benchmark", "values", "time", "slower by", "95 %", "verdict", "why"], cells)
    table.records = records
    return table


def _slower(ratio: float) -> str:
    """Return a ratio to the best as a difference: +12.3 %, or 3.4 x the time."""
    return f"{ratio:.1f} x" if ratio >= 2 else f"{100 * (ratio - 1):+.1f} %"
