"""When rows that nothing settles fail a command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from .exit_codes import UNDECIDED
from .options import Share
from .output import note


def ambiguous_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--max-ambiguous`` and ``--fail-ambiguous``."""
    share = click.option(
        "--max-ambiguous", type=Share(), metavar="SHARE",
        help="Exit with 7 if more than this share of the rows that the gate applies to is ambiguous, such as 25%.",
    )  # fmt: skip
    every = click.option("--fail-ambiguous", is_flag=True, help="The same as --max-ambiguous 0%.")
    return share(every(command))


def exit_if_ambiguous(options: Mapping[str, Any], share: float) -> None:
    """End with `UNDECIDED` if a larger share of the gated rows than allowed is undecided."""
    most = 0.0 if options["fail_ambiguous"] else options["max_ambiguous"]
    if most is not None and share > most:
        note(
            f"gridwise: {100 * share:.3g} % of the rows that the gate applies to are undecided, more than "
            f"{100 * most:g} %"
        )
        sys.exit(UNDECIDED)
