"""``gridwise roofline``: each case of a results file against the limits of the device."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from .options import File, OutputFile, format_option
from .output import check_output, note_written, table_console


@click.command(short_help="Compare each case with the limits of the device.")
@click.argument("file", type=File())
@click.option(
    "--calibration", type=File(), help="Output of `gridwise calibrate --format json`, if FILE has no ceilings."
)
@click.option("-o", "--out", type=OutputFile(), help="Write a picture, too: .png, .svg or .pdf. Needs Altair.")
@format_option
def roofline(file: Path, calibration: Path | None, out: Path | None, form: str) -> None:
    """Compare each case of a results FILE with the device's own copy and multiply-adds.

    The predicted time is the longer of a copy of the bytes that must move and of the arithmetic. The last column names
    the likely cause of the gap to the measured time.
    """
    from ..bench.analysis.roofline import ceilings_of, points, read_calibration
    from ..bench.report.picture import write_picture
    from ..bench.report.roofline import roofline_picture, roofline_table
    from ..bench.results.reader import read_results
    from ..errors import ArgumentError

    check_output(out, "--out", [file])
    document = read_results(file)
    ceilings = ceilings_of(document, None if calibration is None else read_calibration(calibration))
    found = points(document, ceilings)
    if not found:
        raise ArgumentError(f"{file.name}: no case that was right, with a GPU time and known work")
    if form == "json":
        rows = [{**asdict(point), "share": point.share} for point in found]
        click.echo(json.dumps({"ceilings": {**asdict(ceilings), "ridge": ceilings.ridge}, "points": rows}, indent=1))
    else:
        console = table_console(150)
        console.print(roofline_table(document, ceilings, found))
    if out is not None:
        write_picture(roofline_picture(document, ceilings, found), out)
        note_written(out)
