"""Plain-text tables with columns of given widths; long texts are folded."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Collection, Mapping, Sequence

__all__ = ["COLUMN_GAP", "fold", "plain_table", "text_width"]

COLUMN_GAP = 2


def text_width(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for a wide character, none for a combining one."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fold(text: str, width: int) -> list[str]:
    """Break a text into lines between words, and inside a word that is wider than a line. Nothing is left out."""
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(joined) <= width:
            lines[-1] = joined
            continue
        lines += [""] if lines[-1] else []
        for character in word:
            if lines[-1] and text_width(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
    return lines


def plain_table(widths: Mapping[str, int], rows: Sequence[Mapping[str, str]], left: Collection[str]) -> list[str]:
    """Return the lines of a table.

    Parameters
    ----------
    widths : mapping of str to int
        The width of each column by its heading, in the order of the columns.
    rows : sequence of mapping of str to str
        Texts by heading. A text that is wider than its column is folded.
    left : collection of str
        Headings of the columns that are aligned to the left; the others are aligned to the right.
    """
    rule = "─" * (sum(widths.values()) + COLUMN_GAP * (len(widths) - 1))
    head = _row({heading: heading for heading in widths}, widths, left)
    return [*head, rule, *(line for row in rows for line in _row(row, widths, left))]


def _row(cells: Mapping[str, str], widths: Mapping[str, int], left: Collection[str]) -> list[str]:
    folded = [fold(cells[heading], width) for heading, width in widths.items()]
    lines: list[str] = []
    for pieces in itertools.zip_longest(*folded, fillvalue=""):
        line = ""
        for piece, (heading, width) in zip(pieces, widths.items(), strict=True):
            space = " " * (width - text_width(piece))
            line += (piece + space if heading in left else space + piece) + " " * COLUMN_GAP
        lines.append(line.rstrip())
    return lines
