"""``gridwise import``: files of a page, or of another benchmark tool, as a results file."""

from __future__ import annotations

from pathlib import Path

import click

from .baselines import baseline_folder_option, new_baseline
from .options import File, OutputFile, tool_options
from .output import check_output, write_document


@click.command("import", short_help="Turn files of a page or of another benchmark tool into a results file.")
@click.argument("files", nargs=-1, required=True, type=File(), metavar="FILE…")
@click.option("-o", "--out", type=OutputFile(), help="The results file: .json.")
@click.option("--save-baseline", metavar="NAME", help="Instead of --out: NAME.json in --baselines, over an older one.")
@baseline_folder_option
@tool_options
def import_files(
    files: tuple[Path, ...], out: Path | None, save_baseline: str | None, baselines: Path,
    form: str | None, unit: str | None,
) -> None:  # fmt: skip
    """Turn FILEs into a results file that compare, report, plot and all other commands read.

    A FILE is what a page of `gridwise browser` saved, or JSON of nvbench, google-benchmark, pytest-benchmark or
    hyperfine; --format numbers reads one time per line. A file says nothing of how much processes differ, so two single
    ones are not judged faster or slower: run the benchmark some five times, and import its files together. Each counts
    as a process, so that their differences are part of the intervals. A single FILE of JSON need not be imported: all
    commands that read results files read it.
    """
    from ..bench.results.reader import content_of, read_as
    from ..bench.results.visits import visits_together

    if (out is None) == (save_baseline is None):
        raise click.UsageError("give the results file with --out FILE, or --save-baseline NAME")
    if out is None:
        out = new_baseline(str(save_baseline), baselines)
    check_output(out, "--out", files)
    documents = [read_as(content_of(file), file.name, form, unit, folder=file.parent) for file in files]
    document = visits_together(documents, [file.name for file in files])
    counted = "1 result" if len(document.results) == 1 else f"{len(document.results)} results"
    write_document(out, document.to_json(), "--out", f" ({counted} on {document.device.title})")
