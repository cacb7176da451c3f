"""Named results files in a folder, for CI: a run is saved under a name, and a later one compared with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .options import File
from .output import shown

_FOLDER = Path(".gridwise", "baselines")
_NAME = re.compile(r"\w[\w.-]*")


def baseline_folder_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--baselines``, the folder, as ``baselines``."""
    return click.option(
        "--baselines",
        type=File(folder=True),
        default=_FOLDER,
        show_default=True,
        metavar="FOLDER",
        help="Where named baselines are.",
    )(command)


def _path(name: str, folder: Path, option: str) -> Path:
    if not _NAME.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is no name of a baseline: letters, digits, . _ and - are, such as main", param_hint=option
        )
    return folder / f"{name}.json"


def new_baseline(name: str, folder: Path) -> Path:
    """Return the file that a baseline is to be saved in; its folder is made."""
    path = _path(name, folder, "--save-baseline")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(
            f"{shown(folder)} cannot be made: {error.strerror or error}", param_hint="--baselines"
        ) from None
    return path


def find_baseline(name: str, folder: Path) -> Path:
    """Return the file of a baseline; if there is none, the error names those that are there."""
    path = _path(name, folder, "--baseline")
    if not path.is_file():
        there = sorted(one.stem for one in folder.glob("*.json") if not one.name.endswith(".partial.json"))
        known = f"it has {', '.join(there)}" if there else "it has none"
        raise click.BadParameter(
            f"{name!r} is not in {shown(folder)}: {known}; gridwise bench --save-baseline {name} --baselines "
            f"{shown(folder)} makes it",
            param_hint="--baseline",
        )
    return path
