"""``gridwise compare``: judge two results files of one device, or rank two devices."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..display.terminal import clean
from .ambiguous import ambiguous_options, exit_if_ambiguous
from .baselines import baseline_folder_option, find_baseline
from .exit_codes import NOT_COMPARABLE, REGRESSION, WRONG_RESULT
from .options import File, OutputFile, Share, table_options
from .output import PATIENCE_S, check_output, check_tables, showing_progress, table_console, write_tables, write_whole

_PIPE_WIDTH = 140


@click.command(short_help="Judge a results file against an older one.")
@click.argument("files", nargs=-1, type=File(), metavar="[OLD] NEW")
@click.option("--baseline", metavar="NAME", help="Takes the place of OLD: what gridwise bench --save-baseline saved.")
@baseline_folder_option
@click.option(
    "--threshold", type=Share(), default="2%", show_default=True, help="Differences below this count as same."
)
@click.option(
    "--gate", type=Share(), default="5%", show_default=True, help="Exit with 1 if a row is slower by more than this."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "json", "junit"]),
    default="table",
    show_default=True,
    help="Output format.",
)
@click.option("-o", "--out", type=OutputFile(), help="Write the output to this file.")
@click.option("--force", is_flag=True, help="Compare although device, driver, backend or modes differ.")
@click.option("--gate-walls", is_flag=True, help="Apply the gate to CPU walls, too.")
@ambiguous_options
@table_options
@click.option("--across", is_flag=True, help="Rank two devices by case instead: how many times as fast is one?")
def compare(
    files: tuple[Path, ...], baseline: str | None, baselines: Path, threshold: float, gate: float, form: str,
    out: Path | None, force: bool, gate_walls: bool, across: bool, **options: Any,
) -> None:  # fmt: skip
    """Judge the results file NEW against OLD, row by row: faster, slower, same or ambiguous.

    If many rows are ambiguous, measure both files in more processes (gridwise bench --processes 10, on a busy machine
    also --rounds 5), or measure both versions in turns: gridwise ab. Two files of one process each cannot tell new code
    from a new process in mode latency and in CPU walls.

    Exits with 0, or with 1 if a row is slower by more than the gate or a case no longer runs, 2 for bad input, 3 if
    the files cannot be compared, 4 if a result in them is wrong. Ambiguous rows do not fail the gate without
    --max-ambiguous or --fail-ambiguous (7), and CPU walls not without --gate-walls.

    Two files of `gridwise counts` are compared without a threshold: it exits with 1 if any count is more.
    """
    from ..bench.analysis.compare import compare as compare_documents
    from ..bench.analysis.counts import SCHEMA
    from ..bench.calibrate.repeatability import spreads_of_adapter
    from ..bench.report.comparison import comparison_table, render, render_rich
    from ..bench.results.reader import content_of, parse, read_results
    from ..display.terminal import clean_lines

    if not threshold:
        raise click.BadParameter("must be over 0: no two runs are equal", param_hint="--threshold")
    old, new = _sides(files, baseline, baselines)
    check_output(out, "--out", (old, new))
    check_tables({**options, "out": out}, (old, new))
    if "stdout" in click.get_current_context().meta and form != "table" and out is None:
        raise click.UsageError(f"--format {form} is on standard output, too; name a file with --out")
    with showing_progress(PATIENCE_S) as progress:
        progress(f"reading {old.name}")
        contents = [content_of(path) for path in (old, new)]
        if all(f'"{SCHEMA}"'.encode() in content[:200] for content in contents):
            _gate_counts(contents, (old, new))
            return
        before = parse(contents[0], old.name, old.parent)
        progress(f"reading {new.name}")
        after = read_results(new)
        progress(f"comparing {len(after.results)} results")
        spreads = spreads_of_adapter(after.device.adapter, after.device.backend, after.device.driver)
        found = compare_documents(
            before, after, threshold=threshold, gate=gate, force=force, across=across, gate_walls=gate_walls,
            spreads=spreads,
        )  # fmt: skip
    # The obstacles are printed once: on stderr, unless the output on stdout has them.
    refused = not found.comparable and form == "table" and out is None
    if out is not None:
        write_whole(out, render(found, form), "--out")
    elif form == "table" and not refused:
        render_rich(found, table_console(_PIPE_WIDTH))
    elif not refused:
        click.echo(clean_lines(render(found, form)), nl=False)
    if refused or (out is not None and not found.comparable):
        render_rich(found, table_console(_PIPE_WIDTH, stderr=True))
    if not found.comparable:
        sys.exit(NOT_COMPARABLE)
    write_tables(options, lambda: comparison_table(found))
    if found.wrong:
        sys.exit(WRONG_RESULT)
    if found.regressed:
        sys.exit(REGRESSION)
    exit_if_ambiguous(options, found.undecided_share)


def _gate_counts(contents: Sequence[bytes], paths: Sequence[Path]) -> None:
    """Exit with 1 if a count of the second file is more than in the first."""
    from ..bench.analysis.counts import count_changes, counts_of

    old, new = (counts_of(content, path.name) for content, path in zip(contents, paths, strict=True))
    changes = list(count_changes(old, new))
    for is_more, text in changes:
        click.echo(f"{'MORE: ' * is_more}{clean(text)}")
    more = sum(is_more for is_more, _ in changes)
    click.echo(f"{len(changes)} counts changed, {more} of them must not")
    if more:
        sys.exit(REGRESSION)


def _sides(files: Sequence[Path], baseline: str | None, folder: Path) -> tuple[Path, Path]:
    """Return OLD and NEW."""
    if baseline is None and len(files) == 2:
        return files[0], files[1]
    if baseline is not None and len(files) == 1:
        return find_baseline(baseline, folder), files[0]
    wanted = (
        "OLD and NEW, or --baseline NAME and NEW" if baseline is None else "NEW only, as --baseline takes OLD's place"
    )
    raise click.UsageError(f"{len(files) or 'no'} file{'s' * (len(files) != 1)} given; give {wanted}")
