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
from .output import LINE_EVERY_S, cannot_write, check_new, check_output, note, showing_progress, table_console

__all__ = ["tune_files"]

_ROUNDS = 9


def tune_files(words: Sequence[str], options: Mapping[str, Any]) -> None:
    """Tune the benchmarks that ``FILE.py [NAME]…`` names; print how the variants stand, and write ``--json``.

    Ends the process with an exit code if there is a point at which no variant ran and was right.
    """
    from dataclasses import replace

    from .. import request_device
    from ..bench.sweep.own_tune import OWN_TUNE_PROTOCOL, contests_of, tuned
    from ..runtime.gpu_clock import clock_held

    json_path: Path | None = options["json_path"]
    if json_path is not None:
        check_output(json_path, "--json")
        check_new(json_path, "--json", overwrite=options["overwrite"])
    asked = None if options["tune_axes"] is None else [axis.strip() for axis in options["tune_axes"].split(",")]
    short = {"n": options["n"], "datatype": None, "op": None, "mode": options["mode"]}
    contests = contests_of(benchmarks_of_files(words, options["axes"], short, with_baselines=False), asked)
    rounds = options["rounds"] or _ROUNDS
    protocol = replace(OWN_TUNE_PROTOCOL, seed=options["seed"])
    adapter: dict[str, Any] = {}
    points: list[Any] = []
    with ExitStack() as held:

        def make_device() -> Any:
            device = request_device(options["adapter"])
            adapter.update(device.adapter.info)
            held.enter_context(clock_held(device))
            return device

        try:
            with showing_progress(every_s=LINE_EVERY_S) as progress:
                for point in tuned(make_device, contests, rounds=rounds, protocol=protocol, progress=progress):
                    points.append(point)
        finally:  # also after Ctrl-C: what was measured stays
            if points:
                _give(points, adapter, rounds, options["form"], json_path)
    failed = [point for point in points if point.best is None]
    if failed:
        wrong = any(variant.standing == "wrong" for point in failed for variant in point.variants)
        sys.exit(WRONG_RESULT if wrong else BAD_INPUT)


def _give(points: Sequence[Any], adapter: Mapping[str, Any], rounds: int, form: str, json_path: Path | None) -> None:
    from ..bench.sweep.own_tune import best_for_all
    from ..storage.files import is_stream
    from ..storage.json_files import json_data, json_text, write_json

    by_name = [(name, list(own)) for name, own in groupby(points, key=lambda point: point.contest.benchmark)]
    document = json_data(
        {
            "adapter": adapter.get("device", ""),
            "driver": adapter.get("description", ""),
            "rounds": rounds,
            "points": [point.to_json() for point in points],
            "for_all": {
                name: {"values": dict(found[0]), "ratio": found[1]}
                for name, own in by_name
                if (found := best_for_all(own)) is not None
            },
        }
    )
    if form == "json":
        click.echo(json_text(document))
    else:
        console = table_console(120, json_path)
        console.print(clean_lines(f"{document['adapter']} ({document['driver']}), {rounds} rounds"), markup=False)
        for _, own in by_name:
            console.print()
            _show(console, own, best_for_all(own))
    if json_path is not None:
        try:
            write_json(json_path, document)
        except OSError as error:
            sys.exit(cannot_write("--json", json_path, error))
        if not is_stream(json_path):
            note(f"wrote {json_path}")


def _show(console: Any, points: Sequence[Any], for_all: tuple[Mapping[str, Any], float] | None) -> None:
    """Print a table of the points of one benchmark."""
    from rich.text import Text

    from ..bench.cases.benchmarked import axis_text
    from ..bench.report.text_table import Column, TextTable
    from ..display.quantities import format_time

    axes = points[0].contest.tuned
    table = TextTable(
        [
            *(Column(axis, right=True) for axis in axes), Column("time", right=True), Column("slower by", right=True),
            Column("95 %", priority=1), Column("verdict"), Column("why", prose=True),
        ]
    )  # fmt: skip
    for point in points:
        table.add_heading(Text(clean_lines(str(point.contest))))
        for one in point.variants:
            style = {"best": "green", "wrong": "red", "failed": "red"}.get(str(one.standing), "")
            reason = one.reason if one.checked or one.reason else "its result was not checked: there is no reference"
            table.add_row(
                *(axis_text(one.values[axis]) for axis in axes),
                format_time(one.time_ns),
                "" if one.ratio is None or one is point.best else _slower(one.ratio),
                "" if one.low is None else f"{_slower(one.low)} to {_slower(one.high)}",
                str(one.standing),
                clean_lines(reason),
                style=style,
            )
    console.print(table)
    if for_all is not None:
        values, ratio = for_all
        words = " ".join(f"{axis}={axis_text(value)}" for axis, value in values.items())
        if ratio == 1:
            loss = "the best, or the same, at every point"
        else:
            loss = f"at worst {ratio:.3g} times the best time"
        console.print(f"for all points: {words} ({loss})", markup=False)


def _slower(ratio: float) -> str:
    """Return a ratio to the best as a difference: +12.3 %, or 3.4 x the time."""
    return f"{ratio:.1f} x" if ratio >= 2 else f"{100 * (ratio - 1):+.1f} %"
