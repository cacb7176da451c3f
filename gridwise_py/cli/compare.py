"""``gridwise compare``: two results files of one device judged against each other, or two devices ranked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .exit_codes import NOT_COMPARABLE, REGRESSION, WRONG_RESULT
from .output import check_output, note, write_whole

__all__ = ["compare"]


class Share(click.ParamType):
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


_PATH = click.Path(path_type=Path)


@click.command(short_help="Judge a results file against an older one.")
@click.argument("old", type=_PATH)
@click.argument("new", type=_PATH)
@click.option("--threshold", type=Share(), default="2%", show_default=True, help="Below this it is the same.")
@click.option("--gate", type=Share(), default="5%", show_default=True, help="Slower by more than this: exit with 1.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "json", "junit"]),
    default="table",
    show_default=True,
    help="Of what is written.",
)
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it here.")
@click.option(
    "--output", "former_out", type=click.Path(dir_okay=False, path_type=Path), hidden=True, help="Deprecated: --out."
)
@click.option("--force", is_flag=True, help="Compare although device, driver, backend or modes differ.")
@click.option("--across", is_flag=True, help="Rank two devices instead.")
def compare(
    old: Path, new: Path, threshold: float, gate: float, form: str, out: Path | None, former_out: Path | None,
    force: bool, across: bool,
) -> None:  # fmt: skip
    """Judge the results file NEW against OLD, row by row: faster, slower, same or ambiguous.

    Exits with 0, or with 1 if a row is slower by more than the gate or a case no longer runs, 2 for bad input, 3 if
    the files cannot be compared, 4 if a result in them is wrong.
    """
    from ..bench.compare import compare as compare_documents
    from ..bench.compare_render import render, render_rich
    from ..bench.results import read_results
    from ..terminal import clean_lines

    if not threshold:
        raise click.BadParameter("must be over 0: no two runs are equal", param_hint="--threshold")
    if former_out is not None:
        note("gridwise: --output is deprecated: write --out, as in the other commands")
        out = former_out if out is None else out
    if out is not None:
        check_output(out, "--out", (old, new))
    documents = read_results(old), read_results(new)
    found = compare_documents(*documents, threshold=threshold, gate=gate, force=force, across=across)
    if out is not None:
        write_whole(out, render(found, form), "--out")
    elif form == "table":
        from ..terminal import make_console

        console = make_console()
        render_rich(found, console if console.is_terminal else make_console(width=140))
    else:
        click.echo(clean_lines(render(found, form)), nl=False)
    if not found.comparable:
        for text in found.obstacles:
            note(f"gridwise: not comparable: {text}")
        sys.exit(NOT_COMPARABLE)
    if found.wrong:
        sys.exit(WRONG_RESULT)
    if found.regressed:
        sys.exit(REGRESSION)
