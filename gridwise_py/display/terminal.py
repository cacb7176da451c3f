"""Texts for a terminal: labels, paths and files' contents must not steer it."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
from typing import TextIO

__all__ = ["clean", "clean_lines", "make_tolerant"]

# Escape sequences begin with one of the controls, and XML cannot hold most of them; half a pair of surrogates cannot be
# written.
_STEERING = "\x7f-\x9f\ud800-\udfff\ufffe\uffff"
# Marks of writing direction show what follows on a line in another order than it has. A page keeps that in an element.
_DIRECTION = "\u202a-\u202e\u2066-\u2069"
_CONTROLS = re.compile(f"[\x00-\x1f{_STEERING}]")
_CONTROLS_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_STEERING}{_DIRECTION}]")
# For an output whose encoding lacks them: a time must keep its unit, and a range its ends.
_PLAIN = {"µ": "u", "–": "-", "−": "-", "×": "x", "…": "~", "±": "+-", "≥": ">=", "≤": "<=", "·": "."}
_ERRORS = "gridwise.plain"


def clean(text: str) -> str:
    """Return a text on one line, for a file or a page, without controls and what cannot be written."""
    return _CONTROLS.sub("�", text)


def clean_lines(text: str) -> str:
    """Return a text for a terminal, without what could steer it; line breaks and tabs stay."""
    return _CONTROLS_IN_LINES.sub("�", text)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for characters that an encoding lacks, and where encoding goes on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end


codecs.register_error(_ERRORS, _plain)


def make_tolerant(stream: TextIO | None) -> None:
    """Let a stream write something for each character that its encoding lacks, where it would raise.

    An error handler that the user chose (PYTHONIOENCODING) stays.
    """
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        with contextlib.suppress(ValueError, OSError):  # closed
            stream.reconfigure(errors=_ERRORS)
