"""Rich consoles that cleaned texts cannot control."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.segment import Segment

from ... import settings
from ...display.terminal import clean_lines


def make_console(**options: Any) -> Console:
    """Return a rich console that cleans all texts; only rich itself controls the terminal.

    In a notebook it also writes to its file, while rich would show HTML and leave the file empty.
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
            # Rich would exit with 1 here, which is the code of a verdict. Called while the error is handled.
            raise

    # Rich reads a size that is no number of ASCII digits, such as ², as one.
    merged: dict[str, Any] = {"force_jupyter": False, "_environ": settings.variables_of_consoles(), **options}
    return CleanConsole(**merged)
