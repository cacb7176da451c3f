"""``gridwise reproduce``: claims about timing on GPUs, each with a verdict on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..call_errors import nearest
from .options import OutputFile, Seconds, adapter_option
from .output import (
    LINE_EVERY_S,
    check_output,
    keep_others_from,
    note_written,
    showing_progress,
    table_console,
    write_document,
)


@click.command(short_help="Try claims about GPU timing on this machine.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@adapter_option
@click.option("--list", "listing", is_flag=True, help="Print the claims with their sources, and measure nothing.")
@click.option("--repeats", type=click.IntRange(min=2), default=20, show_default=True, help="Samples of each quantity.")
@click.option(
    "--cold-repeats",
    type=click.IntRange(min=2),
    default=3,
    show_default=True,
    help="Samples that need a new device each.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Processes that the experiment `processes` starts.",
)
@click.option("--warmup-s", type=Seconds(min=0), default=0.3, show_default=True, help="Warm-up time of each quantity.")
@click.option("--idle-s", type=Seconds(min=0), default=0.5, show_default=True, help="Pause that lowers a GPU's clock.")
@click.option(
    "--scale", type=click.FloatRange(min=0, min_open=True, max=10), default=1.0, help="Factor for the number of items."
)
@click.option("--json", "json_path", type=OutputFile(), help="Write claims, samples and verdicts to this file.")
@click.option("--plot", "plot_path", type=OutputFile(), help="Write a picture: .png, .svg or .pdf. Needs Altair.")
@click.option("--overwrite", is_flag=True, help="Replace the --json file if it exists.")
def reproduce(
    names: tuple[str, ...], adapter: str | None, listing: bool, json_path: Path | None, plot_path: Path | None,
    overwrite: bool, **of_lab: Any,
) -> None:  # fmt: skip
    """Try what others have claimed about timing on GPUs: each claim gets a verdict on this machine.

    Each experiment prints the claim, its source, what was measured here, and whether the claim holds here, does not, or
    cannot be shown here. Without names all experiments run, which takes about half a minute. The exit code is 0
    whatever the verdicts are. docs/concepts/claims.md explains the experiments. After Ctrl-C, what was shown before is
    printed and written.
    """
    from .. import request_device
    from ..bench.report.picture import check_picture, write_picture
    from ..bench.reproduce.experiments import EXPERIMENTS
    from ..bench.reproduce.lab import Lab
    from ..bench.reproduce.picture import claims_picture
    from ..bench.reproduce.run import reproduce as run
    from ..bench.reproduce.table import claims, outcomes
    from ..bench.results.writer import check_results_path

    for name in names:
        if name not in EXPERIMENTS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(EXPERIMENTS)}{nearest(name, EXPERIMENTS)}")
    chosen = [EXPERIMENTS[name] for name in dict.fromkeys(names)] or list(EXPERIMENTS.values())
    console = table_console(100)
    if listing:
        for line in claims(chosen, console.width):
            console.print(line)
        return
    check_output(plot_path, "--plot")
    if plot_path is not None:
        check_picture(plot_path)  # errors in it are reported before anything is measured
    if json_path is not None:
        keep_others_from(json_path, "--json")
        check_output(json_path, "--json", overwrite=overwrite)
        check_results_path(json_path)
    lab = Lab(request_device(adapter), adapter=adapter, **of_lab)
    with showing_progress(LINE_EVERY_S, LINE_EVERY_S) as progress:
        document = run(lab, chosen, progress)
    for line in outcomes(document, console.width):
        console.print(line)
    if plot_path is not None and any(each["measured"] for each in document["experiments"]):
        write_picture(claims_picture(document), plot_path)
        note_written(plot_path)
    if json_path is not None:
        write_document(json_path, document)
    if not document["complete"]:
        raise KeyboardInterrupt  # results are written; click prints the message and sets the exit code
