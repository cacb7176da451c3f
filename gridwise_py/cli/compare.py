"""``gridwise compare``: judge two results files of one device, or rank two devices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .. import settings
from .exit_codes import NOT_COMPARABLE, REGRESSION, UNDECIDED, WRONG_RESULT
from .output import PATIENCE_S, check_output, showing_progress, write_whole

__all__ = ["compare"]


class Share(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # older releases of click have none
    """A share: ``2%`` or ``0.02``."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{value!r} is not a share; write 2% or 0.02", param, ctx)
        if not 0 <= share < 1:
            self.fail(f"{value!r} is not between 0 and 100 %; write 2% or 0.02", param, ctx)
        return share


_PIPE_WIDTH = 140
_PATH = click.Path(path_type=Path)


@click.command(short_help="Judge a results file against an older one.")
@click.argument("old", type=_PATH)
@click.argument("new", type=_PATH)
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
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the output to this file.")
@click.option("--force", is_flag=True, help="Compare although device, driver, backend or modes differ.")
@click.option("--gate-walls", is_flag=True, help="Apply the gate to CPU walls, too.")
@click.option("--fail-ambiguous", is_flag=True, help="Exit with 7 if a row that the gate applies to is ambiguous.")
@click.option("--across", is_flag=True, help="Rank two devices by case instead: how many times as fast is one?")
def compare(
    old: Path, new: Path, threshold: float, gate: float, form: str, out: Path | None,
    force: bool, gate_walls: bool, fail_ambiguous: bool, across: bool,
) -> None:  # fmt: skip
    """Judge the results file NEW against OLD, row by row: faster, slower, same or ambiguous.

    If many rows are ambiguous, measure both files in more processes (gridwise bench --processes 10, on a busy machine
    also --rounds 5), or measure both versions in turns: gridwise ab. Two files of one process each cannot tell new code
    from a new process in mode latency and in CPU walls.

    Exits with 0, or with 1 if a row is slower by more than the gate or a case no longer runs, 2 for bad input, 3 if
    the files cannot be compared, 4 if a result in them is wrong. Ambiguous rows do not fail the gate without
    --fail-ambiguous (7), and CPU walls not without --gate-walls.
    """
    from ..bench.analysis.compare import compare as compare_documents
    from ..bench.calibrate.repeatability import spreads_of_adapter
    from ..bench.report.comparison import render, render_rich
    from ..bench.results.reader import content_of, parse
    from ..display.terminal import clean_lines

    if not threshold:
        raise click.BadParameter("must be over 0: no two runs are equal", param_hint="--threshold")
    if out is not None:
        check_output(out, "--out", (old, new))
    with showing_progress(PATIENCE_S) as progress:
        progress(f"reading {old.name}")
        contents = [content_of(path) for path in (old, new)]
        before = parse(contents[0], old.name, old.parent)
        progress(f"reading {new.name}")
        after = parse(contents[1], new.name, new.parent)
        progress(f"comparing {len(after.results)} results")
        found = compare_documents(
            before,
            after,
            threshold=threshold,
            gate=gate,
            force=force,
            across=across,
            gate_walls=gate_walls,
            same_file=contents[0] == contents[1],
            spreads=spreads_of_adapter(after.device.adapter, after.device.backend, after.device.driver),
        )
    # The obstacles are printed once: on stderr, unless the output on stdout has them.
    refused = not found.comparable and form == "table" and out is None
    if out is not None:
        write_whole(out, render(found, form), "--out")
    elif form == "table" and not refused:
        render_rich(found, _table_console())
    elif not refused:
        click.echo(clean_lines(render(found, form)), nl=False)
    if refused or (out is not None and not found.comparable):
        render_rich(found, _table_console(stderr=True))
    if not found.comparable:
        sys.exit(NOT_COMPARABLE)
    if found.wrong:
        sys.exit(WRONG_RESULT)
    if found.regressed:
        sys.exit(REGRESSION)
    if fail_ambiguous and found.undecided:
        sys.exit(UNDECIDED)


def _table_console(**options: Any) -> Any:
    """Return a console as wide as the terminal; in a pipe as wide as COLUMNS says, or wide enough for most rows."""
    from ..bench.report.console import make_console

    console = make_console(**options)
    return console if console.is_terminal or settings.terminal_columns() else make_console(width=_PIPE_WIDTH, **options)
