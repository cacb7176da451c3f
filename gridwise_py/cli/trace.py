"""``gridwise trace``: a results file as a Chrome trace."""

from __future__ import annotations

from pathlib import Path

import click

from .options import File, OutputFile
from .output import check_output, note_written


@click.command(short_help="Write the timestamps of a results file as a trace.")
@click.argument("file", type=File())
@click.option("-o", "--out", required=True, type=OutputFile(), help="The trace: a .json file.")
@click.option("--overwrite", is_flag=True, help="Replace the trace if it exists.")
def trace(file: Path, out: Path, overwrite: bool) -> None:
    """Write the timestamps of a results FILE of `gridwise bench --json` as a trace.

    Open it in ui.perfetto.dev or chrome://tracing. The host's lane is aligned with the GPU's approximately.
    """
    from ..bench.report.trace import export_results_trace

    check_output(out, "--out", [file], overwrite=overwrite)
    export_results_trace(file, out)
    note_written(out)
