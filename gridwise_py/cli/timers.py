"""``gridwise timers``: one job, timed by five timers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .exit_codes import WRONG_RESULT
from .options import JsonFile, Seconds, adapter_option
from .output import (
    LINE_EVERY_S,
    cannot_write,
    check_new,
    check_output,
    keep_others_from,
    note,
    showing_progress,
    table_console,
)

if TYPE_CHECKING:
    from ..bench.sweep.timers import LoadPeer

__all__ = ["time_and_show", "timers", "timers_options"]

_FILE = click.Path(dir_okay=False, path_type=Path)


_OPTIONS = (
    adapter_option,
    click.option("--repeats", type=click.IntRange(min=1), default=20, show_default=True, help="Samples with warm-up."),
    click.option(
        "--cold-repeats", type=click.IntRange(min=1), default=3, show_default=True, help="Samples without warm-up."
    ),
    click.option(
        "--warmup-s",
        type=Seconds(min=0),
        default=0.3,
        show_default=True,
        help="Warm-up time before the first warm sample.",
    ),
    click.option(
        "--idle-s", type=Seconds(min=0), default=0.5, show_default=True, help="Pause before each cold sample."
    ),
    click.option(
        "--scale",
        type=click.FloatRange(min=0, min_open=True, max=10),
        default=1.0,
        help="Factor for the number of items.",
    ),
    click.option("--json", "json_path", type=JsonFile(), help="Write the samples to this file."),
    click.option("--overwrite", is_flag=True, help="Replace the --json file if it exists."),
    click.option("--plot", "plot_path", type=_FILE, help="Write a picture: .png, .svg or .pdf. Needs Altair."),
)


def timers_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `gridwise timers` to a command: those that `time_and_show` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(short_help="Show how timers lie about a GPU.")
@timers_options
def timers(**options: Any) -> None:
    """Show how timers lie about a GPU: a vector add of 10,000,000 items, timed in five ways.

    A second job has 5,000,000 items, and includes upload and download. Both run without and with warm-up.
    docs/concepts/timing.md explains the table. While the command runs, the samples are in NAME.partial.json, which
    remains if it is interrupted.
    """
    time_and_show(**options)


def time_and_show(
    adapter: str | None, repeats: int, cold_repeats: int, warmup_s: float, idle_s: float, scale: float,
    json_path: Path | None, overwrite: bool, plot_path: Path | None, load_peer: LoadPeer | None = None,
) -> None:  # fmt: skip
    """Measure, print the table, write the files; `load_peer` as `run_timers` takes it."""
    from dataclasses import replace

    from ..bench.report.picture import check_picture
    from ..bench.report.timers import plot_timers, timers_table
    from ..bench.results.writer import check_results_path, partial_path, without_link
    from ..bench.sweep.timers import WORKLOADS, run_timers
    from ..storage.files import is_stream
    from ..storage.json_files import write_json

    for option, path in (("--json", json_path), ("--plot", plot_path)):
        if path is not None:
            check_output(path, option)
    partial: Path | None = None
    if json_path is not None:
        keep_others_from(json_path, "--json")
        check_new(json_path, "--json", overwrite=overwrite)
        check_results_path(json_path)
        partial = None if is_stream(json_path) else partial_path(without_link(json_path))
    if plot_path is not None:
        check_picture(plot_path)  # errors in it are reported before anything is measured
    workloads = [replace(workload, n=max(1, round(scale * workload.n))) for workload in WORKLOADS]

    def keep(document: dict[str, Any]) -> None:
        if partial is not None:
            # The next step writes everything again, and a failure at the end is reported.
            with suppress(OSError):
                write_json(partial, document)

    try:
        with showing_progress(LINE_EVERY_S, LINE_EVERY_S) as progress:
            document = run_timers(
                adapter, repeats=repeats, cold_repeats=cold_repeats, warmup_s=warmup_s, idle_s=idle_s,
                workloads=workloads, load_peer=load_peer, progress=progress, keep=keep,
            )  # fmt: skip
    except KeyboardInterrupt:
        if partial is not None and partial.is_file():
            note(f"gridwise: the samples so far are in {partial}")
        raise
    except AssertionError as error:
        note(f"gridwise: a sum is wrong: {error}")
        sys.exit(WRONG_RESULT)
    console = table_console(150, json_path)
    console.print(timers_table(document))
    unwritten = 0
    if json_path is not None:
        try:
            write_json(json_path, document)
            note(f"wrote {json_path}")
        except OSError as error:
            unwritten = cannot_write("--json", json_path, error)
        else:
            if partial is not None:
                partial.unlink(missing_ok=True)
    if plot_path is not None:
        plot_timers(document, plot_path)
        note(f"wrote {plot_path}")
    if unwritten:
        sys.exit(unwritten)
