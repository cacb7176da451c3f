"""``gridwise plot``: pictures of results files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .options import File, OutputFile
from .output import PATIENCE_S, check_output, note_written, showing_progress


@click.command(short_help="Draw results files as a picture.")
@click.argument("files", nargs=-1, required=True, type=File(), metavar="FILE…")
@click.option("-o", "--out", required=True, type=OutputFile(), help="The picture: .png, .svg or .pdf.")
def plot(files: tuple[Path, ...], out: Path) -> None:
    """Draw results FILEs of `gridwise bench --json`, several on the same axes.

    The charts of `gridwise report`: for each primitive GB/s and time over n with 95 % intervals, its kernels against
    the whole, CPU wall against GPU span, cold against hot.
    """
    from ..bench.report.picture import check_picture, write_picture
    from ..bench.report.plot import results_picture
    from ..bench.results.reader import read_results

    check_output(out, "--out", files)
    check_picture(out)
    documents: list[Any] = []
    with showing_progress(PATIENCE_S) as say:
        for file in files:
            say(f"reading {file.name}")
            documents.append(read_results(file))
        say(f"drawing {out.name}")
        write_picture(results_picture(documents, [file.name.removesuffix(".json") for file in files]), out)
    note_written(out)
