"""Texts for a terminal: labels, paths and files' contents must not steer it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import rich.console

__all__ = ["clean", "clean_lines", "make_console"]

# Escape sequences begin with one of the controls, and XML cannot hold most of them; half a pair of surrogates cannot be
# written. The marks of writing direction (U+202A to U+202E, U+2066 to U+2069) show a text in another order than it has.
_STEERING = "\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069"
_CONTROLS = re.compile(f"[\x00-\x1f{_STEERING}]")
_CONTROLS_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_STEERING}]")


def clean(text: str) -> str:
    """Return a text on one line without what could steer a terminal or cannot be written."""
    return _CONTROLS.sub("�", text)


def clean_lines(text: str) -> str:
    """As `clean`, of a text that may have line breaks and tabs."""
    return _CONTROLS_IN_LINES.sub("�", text)


def make_console(**options: Any) -> rich.console.Console:
    """Return a rich console that cleans all texts; what it steers the terminal with is its own."""
    from rich.console import Console
    from rich.segment import Segment

    class CleanConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Any:
            for segment in super().render(renderable, options):
                if segment.control is None:
                    text = clean_lines(segment.text)
                    yield segment if text == segment.text else Segment(text, segment.style)
                else:
                    yield segment

    return CleanConsole(**options)
