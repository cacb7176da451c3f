"""Cleans texts for a terminal: labels, paths and contents of files must not control it."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
from typing import TextIO

# Escape sequences begin with one of the controls, and XML cannot hold most of them; half a pair of surrogates cannot be
# written.
_STEERING = "\x7f-\x9f\ud800-\udfff\ufffe\uffff"
# Marks of writing direction reorder the rest of the line. In a page, the element limits their effect.
_DIRECTION = "\u202a-\u202e\u2066-\u2069"
_CONTROLS = re.compile(f"[\x00-\x1f{_STEERING}]")
_CONTROLS_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_STEERING}{_DIRECTION}]")
# Substitutes for encodings that lack these: a time must keep its unit, and a range its ends.
_PLAIN = {"µ": "u", "–": "-", "−": "-", "×": "x", "…": "~", "±": "+-", "≥": ">=", "≤": "<=", "·": "."}
_ERRORS = "gridwise.plain"


def clean(text: str) -> str:
    """Return a text on one line, without control characters and characters that cannot be written."""
    return _CONTROLS.sub("�", text)


def clean_lines(text: str) -> str:
    """Return a text without control characters; line breaks and tabs stay."""
    return _CONTROLS_IN_LINES.sub("�", text)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return the substitute for characters that an encoding lacks, and where to continue."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end


codecs.register_error(_ERRORS, _plain)


def make_tolerant(stream: TextIO | None) -> None:
    """Make a stream write substitutes for characters that its encoding lacks, instead of raising.

    An error handler that the user chose (PYTHONIOENCODING) stays.
    """
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        with contextlib.suppress(ValueError, OSError):  # closed
            stream.reconfigure(errors=_ERRORS)
