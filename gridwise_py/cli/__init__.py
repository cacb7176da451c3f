"""The command ``gridwise``. Exit codes: see exit_codes.py."""

from __future__ import annotations

import click

from .. import __version__
from ..internals import expect_software
from .ab import ab
from .bench import bench
from .bisect import bisect
from .browser import browser
from .calibrate import calibrate
from .compare import compare
from .counts import counts
from .diff import diff
from .endings import Commands
from .fleet import fleet
from .import_files import import_files
from .info import info
from .plot import plot
from .report import report
from .reproduce import reproduce
from .roofline import roofline
from .schema import schema
from .trace import trace
from .tune import tune
from .worker import worker

__all__ = ["main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="gridwise")
def main() -> None:
    """Data-parallel GPU primitives, timed kernel by kernel."""
    expect_software()  # commands name the adapter


main.add_command(ab)
main.add_command(bench)
main.add_command(bisect)
main.add_command(browser)
main.add_command(calibrate)
main.add_command(compare)
main.add_command(counts)
main.add_command(diff)
main.add_command(fleet)
main.add_command(import_files)
main.add_command(info)
main.add_command(plot)
main.add_command(report)
main.add_command(reproduce)
main.add_command(roofline)
main.add_command(schema)
main.add_command(trace)
main.add_command(tune)
main.add_command(worker)
