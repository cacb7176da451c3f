"""``gridwise report``: results files as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from .options import File, OutputFile
from .output import PATIENCE_S, check_output, showing_progress, write_whole


@click.command(short_help="Turn results files into one HTML page that works offline.")
@click.argument("files", nargs=-1, required=True, type=File(), metavar="FILE…")
@click.option("-o", "--out", required=True, type=OutputFile(), help="The page: .html.")
@click.option(
    "--raw-limit",
    type=click.FloatRange(min=0),
    default=8.0,
    show_default=True,
    metavar="MIB",
    help="Largest compressed size of the raw FILEs in the page; 0 leaves them out.",
)
def report(files: tuple[Path, ...], out: Path, raw_limit: float) -> None:
    """Turn results FILEs of `gridwise bench --json`, and documents of `gridwise fleet --json`, into one HTML page that
    works offline.

    The page has a summary, warnings, devices, charts, verdicts of each further FILE against the first, roofline, drift
    of the samples, sortable tables, and the raw FILEs to save.
    """
    from ..bench.report.page import read_sources, report_html
    from ..fleet.chapter import fleet_chapter

    check_output(out, "--out", files, html="a report")
    with showing_progress(PATIENCE_S) as say:
        say(f"reading {', '.join(file.name for file in files)}")
        sources, chapters, missing = read_sources(files, fleet_chapter)
        say(f"drawing {out.name}")
        page = report_html(sources, chapters=chapters, missing=missing, raw_limit_mib=raw_limit)
    write_whole(out, page, "--out", f" ({len(page.encode()) / 1e6:.1f} MB)")
