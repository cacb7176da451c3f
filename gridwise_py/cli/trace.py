"""``gridwise trace``: a results file as a Chrome trace."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .exit_codes import BAD_INPUT

__all__ = ["trace"]

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=_FILE)
@click.option("-o", "--out", required=True, type=_FILE, help="The trace: a .json file.")
def trace(file: Path, out: Path) -> None:
    """Write the timestamps of a results FILE of `gridwise bench --json` as a trace.

    Open it in ui.perfetto.dev or chrome://tracing. Where the host's lane lies against the GPU's is approximate.
    """
    from ..bench.trace import export_results_trace

    if not out.absolute().parent.is_dir():
        click.echo(f"gridwise: --out: the folder {out.parent} does not exist; make it first", err=True)
        sys.exit(BAD_INPUT)
    if out.absolute() == file.absolute():
        click.echo(f"gridwise: --out: {out} is the results file itself; give another name", err=True)
        sys.exit(BAD_INPUT)
    export_results_trace(file, out)
    click.echo(f"wrote {out}", err=True)
