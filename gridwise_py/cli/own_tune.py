"""``gridwise tune FILE.py``: the fastest variants of a user's own benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from ..display.terminal import clean_lines
from .bench import benchmarks_of_files
from .exit_codes import BAD_INPUT, WRONG_RESULT
from .output import (
    LINE_EVERY_S,
    check_new,
    check_output,
    check_tables,
    showing_progress,
    stdout_of,
    table_console,
    write_document,
    write_tables,
)

_ROUNDS = 9


def tune_files(words: Sequence[str], options: Mapping[str, Any]) -> None:
    """Tune the benchmarks that ``FILE.py [NAME]…`` names; print how the variants stand, and write the files.

    Ends the process with an exit code if there is a point at which no variant ran and was right.
    """
    from dataclasses import replace

    from .. import request_device
    from ..bench.sweep.own_tune import OWN_TUNE_PROTOCOL, EachRoundInAProcess, contests_of, tuned
    from ..bench.sweep.worker import files_of_cases
    from ..internals import clock_held

    processes: int | None = options["processes"]
    if processes and options["rounds"]:
        raise click.UsageError("--processes measures one round in each; leave out --rounds")
    if stdout_of(options) is not None and options["form"] == "json":
        raise click.UsageError("--format json prints on standard output; name a file for the others")
    check_tables(options)
    json_path: Path | None = options["json_path"]
    if json_path is not None:
        check_output(json_path, "--json")
        check_new(json_path, "--json", overwrite=options["overwrite"])
    asked = None if options["tune_axes"] is None else [axis.strip() for axis in options["tune_axes"].split(",")]
    short = {"n": options["n"], "datatype": None, "op": None, "mode": options["mode"]}
    contests = contests_of(benchmarks_of_files(words, options["axes"], short, with_baselines=False), asked)
    rounds = processes or options["rounds"] or _ROUNDS
    protocol = replace(OWN_TUNE_PROTOCOL, seed=options["seed"])
    adapter: dict[str, Any] = {}
    points: list[Any] = []
    with ExitStack() as held:

        def make_device() -> Any:
            device = request_device(options["adapter"])
            adapter.update(device.adapter.info)
            held.enter_context(clock_held(device))
            return device

        how: dict[str, Any] = {"rounds": rounds, "protocol": protocol}
        if processes:
            files = files_of_cases(case for contest in contests for case in contest.cases.values())
            apart = held.enter_context(EachRoundInAProcess(options["adapter"], files))
            how |= {"measure": apart, "new_round": apart.new_round}
        try:
            with showing_progress(every_s=LINE_EVERY_S) as progress:
                for point in tuned(make_device, contests, progress=progress, **how):
                    points.append(point)
        finally:  # also after Ctrl-C: what was measured stays
            if points:
                _give(points, adapter, rounds, options)
    failed = [point for point in points if point.best is None]
    if failed:
        wrong = any(variant.standing == "wrong" for point in failed for variant in point.variants)
        sys.exit(WRONG_RESULT if wrong else BAD_INPUT)


def _give(points: Sequence[Any], adapter: Mapping[str, Any], rounds: int, options: Mapping[str, Any]) -> None:
    from ..bench.sweep.own_tune import best_for_all
    from ..storage.json_files import json_data, json_text

    json_path: Path | None = options["json_path"]
    by_name = [(name, list(own)) for name, own in groupby(points, key=lambda point: point.contest.benchmark)]
    document = json_data(
        {
            "adapter": adapter.get("device", ""),
            "driver": adapter.get("description", ""),
            "rounds": rounds,
            "processes": options["processes"] or 1,
            "points": [point.to_json() for point in points],
            "for_all": {
                name: {"values": dict(found[0]), "ratio": found[1]}
                for name, own in by_name
                if (found := best_for_all(own)) is not None
            },
        }
    )
    times = f"{rounds} processes" if options["processes"] else f"{rounds} rounds"
    title = clean_lines(f"{document['adapter']} ({document['driver']}), {times}")
    if options["form"] == "json":
        click.echo(json_text(document))
    else:
        console = table_console(120, stdout_of(options))
        console.print(title, markup=False)
        for _, own in by_name:
            console.print()
            _show(console, own, best_for_all(own))
    write_tables(options, lambda: _export(title, points))
    if json_path is not None:
        write_document(json_path, document)


def _show(console: Any, points: Sequence[Any], for_all: tuple[Mapping[str, Any], float] | None) -> None:
    """Print a table of the points of one benchmark."""
    from ..bench.cases.benchmarked import axis_text
    from ..bench.report.text_table import TextTable
    from ..display.table import Column

    axes = points[0].contest.tuned
    table = TextTable(
        [
            *(Column(axis, right=True) for axis in axes), Column("time", right=True), Column("slower by", right=True),
            Column("95 %", priority=1), Column("verdict"), Column("why", prose=True),
        ]
    )  # fmt: skip
    for point in points:
        table.add_heading(clean_lines(str(point.contest)))
        for one in point.variants:
            kind = {"best": "good", "wrong": "bad", "failed": "bad"}.get(str(one.standing), "")
            table.add_row(*(axis_text(one.values[axis]) for axis in axes), *_cells(one), kind=kind)
    console.print(table)
    if for_all is not None:
        values, ratio = for_all
        words = " ".join(f"{axis}={axis_text(value)}" for axis, value in values.items())
        if ratio == 1:
            loss = "the best, or the same, at every point"
        else:
            loss = f"at worst {ratio:.3g} times the best time"
        console.print(f"for all points: {words} ({loss})", markup=False)


def _cells(one: Any) -> tuple[str, ...]:
    """Return what a table shows of a variant."""
    from ..display.quantities import format_time

    return (
        format_time(one.time_ns),
        "" if one.ratio is None or one.standing == "best" else _slower(one.ratio),
        "" if one.low is None else f"{_slower(one.low)} to {_slower(one.high)}",
        str(one.standing),
        clean_lines(one.reason if one.checked or one.reason else "its result was not checked: there is no reference"),
    )


def _export(title: str, points: Sequence[Any]) -> Any:
    """Return the table for files, a row for each variant."""
    from ..bench.cases.benchmarked import axis_text
    from ..display.table import table_of

    cells: list[list[str]] = []
    records: list[dict[str, Any]] = []
    for point in points:
        entry = point.to_json()
        for one, variant in zip(point.variants, entry["variants"], strict=True):
            words = " ".join(f"{axis}={axis_text(value)}" for axis, value in one.values.items())
            cells.append([str(point.contest), words, *_cells(one)])
            left_out = ("values", "rounds_ns")
            records.append(
                {
                    **{key: entry[key] for key in ("benchmark", "n", "mode")},
                    **entry["axes"],
                    **variant["values"],
                    **{key: value for key, value in variant.items() if key not in left_out},
                }
            )
    table = table_of(title, ["benchmark", "values", "time", "slower by", "95 %", "verdict", "why"], cells)
    table.records = records
    return table


def _slower(ratio: float) -> str:
    """Return a ratio to the best as a difference: +12.3 %, or 3.4 x the time."""
    return f"{ratio:.1f} x" if ratio >= 2 else f"{100 * (ratio - 1):+.1f} %"
