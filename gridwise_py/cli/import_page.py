"""``gridwise import``: the file of a page as a results file."""

from __future__ import annotations

from pathlib import Path

import click

from .output import check_output, note, write_whole

__all__ = ["import_page"]

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("import", short_help="Turn the file that a page saved into a results file.")
@click.argument("raw", type=_FILE, metavar="RAW")
@click.option("-o", "--out", required=True, type=_FILE, help="The results file: .json.")
def import_page(raw: Path, out: Path) -> None:
    """Turn RAW, the file that a page of `gridwise browser` saved, into a results file.

    All commands that read results files read RAW as well, and judge its timestamps each time. Import it to keep today's
    judgement, or for other programs.
    """
    from ..bench.results.reader import read_results
    from ..storage.json_files import json_text

    check_output(out, "--out", [raw])
    document = read_results(raw)
    write_whole(out, json_text(document.to_json()) + "\n", "--out")
    note(f"wrote {out} ({len(document.results)} results on {document.device.title})")
