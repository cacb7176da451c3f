"""``gridwise fleet``: judge many devices that ran one suite."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import click

from .compare import Share
from .exit_codes import INCOMPLETE, REGRESSION, WRONG_RESULT
from .output import LINE_EVERY_S, PATIENCE_S, check_output, showing_progress, table_console, write_whole

__all__ = ["fleet"]

_FILE = click.Path(dir_okay=False, path_type=Path)
_PIPE_WIDTH = 140


@click.command(short_help="Judge many devices that ran one suite: which is slow, wrong or lost?")
@click.argument("files", nargs=-1, required=True, type=_FILE, metavar="FILE…")
@click.option("--baseline", type=_FILE, help="A fleet of healthy devices: its document, or a results file.")
@click.option(
    "--gate", type=Share(), default="3%", show_default=True, help="A device slower by less than this is not accused."
)
@click.option("--json", "json_path", type=_FILE, help="Write the fleet document, for `gridwise report` and --baseline.")
def fleet(files: tuple[Path, ...], baseline: Path | None, gate: float, json_path: Path | None) -> None:
    """Judge the devices of FILEs: results files of `gridwise bench --json`, one for each, and fleet documents.

    Each device is compared with the others of its model, driver and version. A device has the name of its file, and
    devices of one host have names such as HOST-gpu0.json.

    Exits with 4 if a result is wrong, 6 if a device was lost or failed, 1 if one is slow, 2 for bad input, else 0.
    """
    from ..bench.fleet.files import read_fleet
    from ..bench.fleet.judge import judge
    from ..bench.report.fleet_table import fleet_lines
    from ..display.terminal import clean_lines
    from ..storage.json_files import json_text

    inputs = (*files, *([] if baseline is None else [baseline]))
    if json_path is not None:
        check_output(json_path, "--json", inputs)
    folder = None if json_path is None else json_path.absolute().parent
    with showing_progress(PATIENCE_S, LINE_EVERY_S) as say:
        known = None if baseline is None else judge(read_fleet([baseline]), gate=gate)
        read = read_fleet(
            files, folder=folder, processes=min(8, os.cpu_count() or 1),
            progress=lambda done: say(f"reading: {done:,} of {len(files):,} files"),
        )  # fmt: skip
        say(f"judging {len(read.members):,} devices")
        found = judge(read, gate=gate, baseline=known)
    if baseline is not None:
        from dataclasses import replace

        found = replace(found, baseline=hashlib.sha256(baseline.read_bytes()).hexdigest())
    if json_path is not None:
        write_whole(json_path, json_text(found.to_json()) + "\n", "--json")
    console = table_console(_PIPE_WIDTH)
    click.echo(clean_lines("\n".join(fleet_lines(found, console.width))))
    sys.exit(exit_code(found))


def exit_code(found: object) -> int:
    """Return the code of a judged fleet: what is worst decides."""
    from ..bench.fleet.model import Fleet, Status, Verdict

    assert isinstance(found, Fleet)
    verdicts = {member.verdict for member in found.members}
    if Verdict.WRONG in verdicts:
        return WRONG_RESULT
    if any(member.status is not Status.COMPLETE for member in found.members):
        return INCOMPLETE
    return REGRESSION if Verdict.SLOW in verdicts else 0
