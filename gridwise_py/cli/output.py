"""Files that commands write."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from .. import settings
from ..display.table import Table
from ..display.terminal import clean_lines
from ..storage import files
from .exit_codes import BAD_INPUT, NO_READER

#: How long a command that reads and draws may be silent in a pipe.
PATIENCE_S = 2.0
#: The time between two lines of a command that measures, in a pipe.
LINE_EVERY_S = 10.0


def note(text: str) -> None:
    """Print a message on stderr, cleaned: it may contain text from files."""
    # Without a usable stderr, the exit code still counts.
    with suppress(OSError):
        click.echo(clean_lines(text), err=True)


def shown(path: Path) -> Path:
    """Return a path as the user's shell names it, whatever folder this process is in by now."""
    folder = click.get_current_context().meta.get("folder")
    return path.relative_to(folder) if folder is not None and path.is_relative_to(folder) else path


def note_written(path: Path, more: str = "") -> None:
    """Say that a file was written, unless it is a stream."""
    if not files.is_stream(path):
        note(f"wrote {shown(path)}{more}")


def _refuse(option: str, problem: str) -> NoReturn:
    note(f"gridwise: {option}: {problem}")
    sys.exit(BAD_INPUT)


def cannot_write(option: str, path: Path, error: OSError, also: str = "") -> int:
    """Print that a file was not written, and return the exit code.

    If the program that reads it has ended, nobody wants it any more: no message.
    """
    if isinstance(error, BrokenPipeError):
        return NO_READER
    note(f"gridwise: {option}: {shown(path)} cannot be written: {error.strerror or error}{also}")
    return BAD_INPUT


def write_document(path: Path, document: object, option: str = "--json", more: str = "") -> None:
    """Write a file of JSON, and say so unless it is a stream; end with the exit code if that fails."""
    from ..storage.json_files import json_text

    write_whole(path, json_text(document) + "\n", option, more)


def check_output(
    path: Path | None, option: str, inputs: Iterable[Path] = (), *, overwrite: bool = True, html: str = ""
) -> None:
    """End with `BAD_INPUT` unless a file can be written there, and none would be written over but as `overwrite` says.

    Called before the work: a name that is too long, or a folder without permission, is refused early. `html` is what
    has to end so.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        _refuse(option, f"the folder {shown(path).parent} does not exist; make it first")
    try:
        files.check_writable(path)
        same = any(one.exists() and path.exists() and one.samefile(path) for one in inputs)
    except OSError as error:
        sys.exit(cannot_write(option, path, error))
    if same and not files.is_stream(path):
        _refuse(option, f"{shown(path)} is one of the files to read; name another")
    if html and path.suffix.lower() not in (".html", ".htm"):
        _refuse(option, f"{path.name}: {html} ends in .html")
    if not overwrite and path.is_file() and not files.is_stream(path) and path.stat().st_size:
        _refuse(option, f"{shown(path)} exists already, and may be a baseline; name another file, or add --overwrite")


def table_console(piped_width: int, *, stderr: bool = False) -> Any:
    """Return a console for tables: as wide as the terminal, or as COLUMNS says, or `piped_width`."""
    from ..bench.report.console import make_console

    console = make_console(highlight=False, stderr=stderr)
    if console.is_terminal or settings.terminal_columns():
        return console
    return make_console(highlight=False, stderr=stderr, width=piped_width)


def check_tables(options: Mapping[str, Any], inputs: Iterable[Path] = ()) -> None:
    """End with `BAD_INPUT` unless the files of ``--csv`` and ``--markdown`` can be written, each to one of its own."""
    inputs = list(inputs)
    names = {"json_path": "--json", "out": "--out", "csv": "--csv", "markdown": "--markdown"}
    taken: dict[Path, str] = {}
    for key, name in names.items():
        path = options.get(key)
        if path is not None and not files.is_stream(path):
            other = taken.setdefault(path.resolve(), name)
            if other != name:
                raise click.UsageError(f"{other} and {name} name one file, {shown(path)}; give each its own")
    for name in ("csv", "markdown"):
        check_output(options[name], f"--{name}", inputs)


def write_tables(options: Mapping[str, Any], make: Callable[[], Table]) -> None:
    """Write the files of ``--csv`` and ``--markdown``, as far as they are asked for."""
    if options["csv"] is None and options["markdown"] is None:
        return
    table = make()
    for name, text_of in (("csv", Table.csv), ("markdown", Table.markdown)):
        path = options[name]
        if path is not None:
            write_whole(path, text_of(table), f"--{name}")


@contextmanager
def showing_progress(patience_s: float = 0.0, every_s: float = 0.0) -> Generator[Callable[[str], None]]:
    """Yield a function that prints the next step on stderr: in place on a terminal, else as a line.

    If stderr is no terminal, steps in the first `patience_s` seconds and within `every_s` seconds after a line are not
    printed, so a quick command prints nothing.
    """
    from ..bench.report.console import make_console

    console = make_console(stderr=True)
    if not console.is_terminal:
        next_s = time.monotonic() + patience_s

        def say(step: str) -> None:
            nonlocal next_s
            now_s = time.monotonic()
            if now_s >= next_s:
                next_s = now_s + every_s
                note(step)

        yield say
        return
    import textwrap

    from rich.text import Text

    with console.status("") as status:
        # On one line, with the spinner: some terminals and logs keep the second line of a longer text.
        yield lambda step: status.update(Text(textwrap.shorten(step, max(console.width - 3, 8), placeholder=" …")))


def keep_others_from(path: Path, option: str) -> None:
    """Keep other runs from the results file `path` until the command ends; end with `BAD_INPUT` if one is at it."""
    from ..bench.results.writer import without_link
    from ..storage.locks import Locked, locked

    if files.is_stream(path):
        return
    try:
        click.get_current_context().with_resource(locked(without_link(path)))
    except Locked as error:
        who = "another run" if error.pid is None else f"another run (process {error.pid})"
        note(f"gridwise: {option}: {who} writes {shown(path)} now; wait for its end, or name another file")
        sys.exit(BAD_INPUT)


def write_whole(path: Path, text: str, option: str, more: str = "") -> None:
    """Write a file completely or not at all, and say so. If that fails, end with `BAD_INPUT`."""
    try:
        files.write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        sys.exit(cannot_write(option, path, error))
    note_written(path, more)
