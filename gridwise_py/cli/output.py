"""Files that commands write."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from .exit_codes import BAD_INPUT

__all__ = ["check_output", "write_whole"]


def check_output(path: Path, option: str, inputs: Iterable[Path] = ()) -> None:
    """End with `BAD_INPUT` unless the folder is there and no input would be written over."""
    if not path.absolute().parent.is_dir():
        click.echo(f"gridwise: {option}: the folder {path.parent} does not exist; make it first", err=True)
        sys.exit(BAD_INPUT)
    if path.resolve() in {one.resolve() for one in inputs}:
        click.echo(f"gridwise: {option}: {path} is one of the files to read; name another", err=True)
        sys.exit(BAD_INPUT)


def write_whole(path: Path, text: str, option: str) -> None:
    """Write whole or not at all: beside, then renamed. Where that fails, end with `BAD_INPUT`."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        click.echo(f"gridwise: {option}: {path} cannot be written: {error}", err=True)
        sys.exit(BAD_INPUT)
    finally:
        beside.unlink(missing_ok=True)
