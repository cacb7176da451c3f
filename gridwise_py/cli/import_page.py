"""``gridwise import``: files of a page as a results file."""

from __future__ import annotations

from pathlib import Path

import click

from .output import check_output, note, write_whole

__all__ = ["import_page"]

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("import", short_help="Turn the files that a page saved into a results file.")
@click.argument("raws", nargs=-1, required=True, type=_FILE, metavar="RAW…")
@click.option("-o", "--out", required=True, type=_FILE, help="The results file: .json.")
def import_page(raws: tuple[Path, ...], out: Path) -> None:
    """Turn RAW, the file that a page of `gridwise browser` saved, into a results file.

    Several RAWs are visits to one page with one browser and GPU, and count as processes, so that their differences are
    part of the intervals. A single RAW need not be imported: all commands that read results files read it.
    """
    from ..bench.results.reader import read_results
    from ..bench.results.visits import visits_together
    from ..storage.json_files import json_text

    check_output(out, "--out", raws)
    document = visits_together([read_results(raw) for raw in raws], [raw.name for raw in raws])
    write_whole(out, json_text(document.to_json()) + "\n", "--out")
    note(f"wrote {out} ({len(document.results)} results on {document.device.title})")
