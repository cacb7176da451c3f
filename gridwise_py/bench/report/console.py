"""Rich consoles that texts of others cannot steer."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.segment import Segment

from ...display.terminal import clean_lines

__all__ = ["make_console"]


def make_console(**options: Any) -> Console:
    """Return a rich console that cleans all texts; what it steers the terminal with is its own.

    It writes to its file also in a notebook, where rich would show everything as HTML, and leave the file empty.
    """

    class CleanConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Any:
            for segment in super().render(renderable, options):
                if segment.control is None:
                    text = clean_lines(segment.text)
                    yield segment if text == segment.text else Segment(text, segment.style)
                else:
                    yield segment

        def on_broken_pipe(self) -> None:
            # Rich ends the process with 1 here, which commands use for a verdict. Called while the error is handled.
            raise

    merged: dict[str, Any] = {"force_jupyter": False, **options}
    return CleanConsole(**merged)
