"""Files that commands write."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ..terminal import clean_lines, make_console
from .exit_codes import BAD_INPUT

__all__ = ["check_output", "note", "showing_progress", "table_console", "write_whole"]


def note(text: str) -> None:
    """Say something on stderr; paths and messages in it may be of files."""
    click.echo(clean_lines(text), err=True)


def check_output(path: Path, option: str, inputs: Iterable[Path] = ()) -> None:
    """End with `BAD_INPUT` unless the folder is there and no input would be written over."""
    if not path.absolute().parent.is_dir():
        note(f"gridwise: {option}: the folder {path.parent} does not exist; make it first")
        sys.exit(BAD_INPUT)
    if path.resolve() in {one.resolve() for one in inputs}:
        note(f"gridwise: {option}: {path} is one of the files to read; name another")
        sys.exit(BAD_INPUT)


def table_console(piped_width: int) -> Any:
    """Return a console for tables on stdout: as wide as the terminal, or as COLUMNS says, or `piped_width`."""
    console = make_console(highlight=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return make_console(highlight=False, width=piped_width)


@contextmanager
def showing_progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that says on stderr what comes next: in place on a terminal, else on a line of its own."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield note
        return
    import textwrap

    from rich.text import Text

    with console.status("") as status:
        # On one line, with the spinner: what is broken into two leaves the second behind in some terminals and logs.
        yield lambda step: status.update(Text(textwrap.shorten(step, max(console.width - 3, 8), placeholder=" …")))


def write_whole(path: Path, text: str, option: str) -> None:
    """Write whole or not at all: beside, then renamed. Where that fails, end with `BAD_INPUT`."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        note(f"gridwise: {option}: {path} cannot be written: {error}")
        sys.exit(BAD_INPUT)
    finally:
        beside.unlink(missing_ok=True)
