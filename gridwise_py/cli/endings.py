"""How a command ends: each way has an exit code and at most one line of text; only `compare` uses 1."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Generator
from typing import Any

import click

from .. import settings
from ..display.terminal import make_tolerant
from ..errors import AdapterError, ArgumentError, GridwiseError
from ..interrupts import keep_interrupts
from .exit_codes import BAD_INPUT, INTERRUPTED, NO_ADAPTER, NO_READER, TERMINATED
from .output import note

_MOST_CHARACTERS = 500
_OF_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EAGAIN)


class Terminated(KeyboardInterrupt):
    """SIGTERM came, and the command ends in order, as after a Ctrl-C."""

    number = signal.SIGTERM  # see keep_interrupts


class Commands(click.Group):
    """A group of commands whose errors become a message and an exit code."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, and end the process."""
        make_tolerant(sys.stdout)
        make_tolerant(sys.stderr)
        keep_interrupts()
        # Messages of click itself are written here.
        with _terminations_raised(), _ending():
            return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Parse the options of the group; help is printed here."""
        with _ending():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _ending():
            return super().invoke(ctx)


@contextlib.contextmanager
def _terminations_raised() -> Generator[None]:
    """Raise `Terminated` at SIGTERM, so that what was measured is kept; a handler of the caller's stays."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def handler(number: int, frame: Any) -> None:
        raise Terminated("ended by SIGTERM")

    signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def _ending() -> Generator[None]:
    """Turn any exception that ends a command into a message and an exit code."""
    try:
        with _flushed():
            yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise  # click has messages and codes for these
    except Terminated:
        note("gridwise: ended by SIGTERM")
        sys.exit(TERMINATED)
    except KeyboardInterrupt:
        note("\ngridwise: interrupted")
        sys.exit(INTERRUPTED)
    except AdapterError as error:
        note(f"gridwise: {error}")
        sys.exit(NO_ADAPTER if "no GPU adapter was found" in str(error) else BAD_INPUT)
    except GridwiseError as error:
        note(f"gridwise: {error}")
        sys.exit(BAD_INPUT)
    except OSError as error:
        if _is_of_output(error):
            _discard_output()
            if isinstance(error, BrokenPipeError):
                sys.exit(NO_READER)
            note(f"gridwise: the output cannot be written: {error.strerror or error}")
        else:
            note(f"gridwise: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}")
        _show_traceback()
        sys.exit(BAD_INPUT)
    except Exception as error:
        words = " ".join(str(error).split())[:_MOST_CHARACTERS]
        hint = "" if _wants_traceback() else "; GRIDWISE_TRACEBACK=1 shows where"
        note(f"gridwise: internal error, a bug of gridwise: {type(error).__name__}: {words}{hint}")
        _show_traceback()
        sys.exit(BAD_INPUT)


@contextlib.contextmanager
def _flushed() -> Generator[None]:
    """Flush the output, so that an error still gets a message."""
    try:
        yield
    finally:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()


def _is_of_output(error: OSError) -> bool:
    """Whether an error comes from writing to an open stream: errors about files have a file name."""
    return error.filename is None and error.errno in _OF_OUTPUT


def _discard_output() -> None:
    """Discard buffered output, or the interpreter would fail to write it at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _wants_traceback() -> bool:
    try:
        return settings.traceback()
    except ArgumentError:  # a bad value must not hide the error that happened
        return True


def _show_traceback() -> None:
    if _wants_traceback():
        with contextlib.suppress(OSError):
            traceback.print_exc()
