"""Tables: columns, cells, and how notebooks, text of given widths, markdown and CSV show them.

Terminals of any width (`bench/report/text_table.py`) and the report's page (`bench/report/page_tables.py`) show the
same cells. All texts are cleaned and escaped where they are shown.
"""

from __future__ import annotations

import csv
import html
import io
import itertools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .terminal import clean

COLUMN_GAP = 2

# No colours: a table uses those of the page, light or dark. By default, notebooks centre tables, align all cells to the
# right and make all columns equally wide. A table that is wider than the page can be scrolled.
_TABLE = "margin:0;table-layout:auto;font-variant-numeric:tabular-nums"
_CAPTION = "caption-side:top;text-align:left;color:inherit;font-weight:bold;white-space:nowrap"


@dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes
    ----------
    text : str
        With the unit.
    value : float or None
        The number that it says, to sort by.
    kind : str
        Words for its emphasis, of which the last is the most special: ``"good"``, ``"bad"``, ``"verdict slower"``.
    """

    text: str = ""
    value: float | None = None
    kind: str = ""


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes
    ----------
    heading : str
    right : bool
        Whether its cells end at the same place: numbers.
    priority : int
        0: never left out. Of the others, the one with the largest number is left out first.
    prose : bool
        Whether its cells are sentences, which may be broken between words.
    wraps : bool
        Whether its cells may be broken between words inside the column.
    """

    heading: str
    right: bool = False
    priority: int = 0
    prose: bool = False
    wraps: bool = False


@dataclass(frozen=True)
class Row:
    """Cells, one per column; or a heading of the rows that follow, a single one."""

    cells: tuple[Cell, ...]
    kind: str = ""
    begins_group: bool = False
    is_heading: bool = False


class Table:
    """A table.

    Parameters
    ----------
    columns : sequence of Column
        The first holds the names of the rows.
    title : str
    remarks : sequence of str
        Below the rows, one per line.
    conclusion : str
    records : sequence of mapping from str to object
        The rows as values, for CSV: their names carry the units, and None is what was not measured.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        title: str = "",
        *,
        remarks: Sequence[str] = (),
        conclusion: str = "",
        records: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.columns = columns
        self.title = title
        self.remarks, self.conclusion, self.records = remarks, conclusion, records
        self.rows: list[Row] = []

    def add_row(self, *cells: str | Cell, kind: str = "", begins_group: bool = False) -> None:
        """Add a row: a cell per column; an empty line goes before one that begins a group."""
        if len(cells) != len(self.columns):
            raise ValueError(f"a row of {len(cells)} cells does not fit {len(self.columns)} columns")
        made = tuple(Cell(cell) if isinstance(cell, str) else cell for cell in cells)
        self.rows.append(Row(made, kind, begins_group and bool(self.rows)))

    def add_heading(self, text: str) -> None:
        """Add a line over the rows that follow: their common name, which no column has to hold."""
        self.rows.append(Row((Cell(text),), "name", is_heading=True))

    def html(self) -> str:
        """Return it as HTML, which notebooks show in place of a repr.

        A column of texts may be folded. Without headings the first column has the names of the rows, and is not folded.
        """
        has_head = any(column.heading for column in self.columns)

        def cell(tag: str, i: int, text: str) -> str:
            right = self.columns[i].right
            style = f"text-align:{'right' if right else 'left'}"
            if right or (i == 0 and not has_head):
                style += ";white-space:nowrap"
            return f'<{tag} style="{style}">{_escape_html(text)}</{tag}>'

        def line(tag: str, texts: Iterable[str]) -> str:
            return f"<tr>{''.join(cell(tag, i, text) for i, text in enumerate(texts))}</tr>"

        head = f"<thead>{line('th', (column.heading for column in self.columns))}</thead>" if has_head else ""
        body = "".join(line("td", (cell.text for cell in row.cells)) for row in self.rows)
        below = "".join(f"<div>{_escape_html(text)}</div>" for text in self.remarks)
        return (
            f'<div style="overflow-x:auto"><table style="{_TABLE}"><caption style="{_CAPTION}">'
            f"{_escape_html(self.title)}</caption>{head}<tbody>{body}</tbody></table>{below}</div>"
        )

    def lines(self, widths: Mapping[str, int]) -> list[str]:
        """Return its columns with these headings and widths as lines of text; a wider text is folded."""
        shown = [(i, column) for i, column in enumerate(self.columns) if column.heading in widths]

        def folded(texts: Sequence[str]) -> list[str]:
            pieces = [fold(texts[i], widths[column.heading]) for i, column in shown]
            return [_joined(parts) for parts in itertools.zip_longest(*pieces, fillvalue="")]

        def _joined(parts: Sequence[str]) -> str:
            line = ""
            for piece, (_, column) in zip(parts, shown, strict=True):
                space = " " * (widths[column.heading] - text_width(piece))
                line += (space + piece if column.right else piece + space) + " " * COLUMN_GAP
            return line.rstrip()

        rule = "─" * (sum(widths.values()) + COLUMN_GAP * (len(widths) - 1))
        head = folded([column.heading for column in self.columns])
        return [*head, rule, *(line for row in self.rows for line in folded([cell.text for cell in row.cells]))]

    def markdown(self) -> str:
        """Return it as markdown of GitHub, with its remarks."""

        def line(texts: Iterable[str]) -> str:
            return "| " + " | ".join(_escape_markdown(text.strip()) for text in texts) + " |"

        lines = [f"### {_escape_markdown(self.title)}", ""]
        if self.rows:
            head = line(column.heading for column in self.columns)
            body = [line(cell.text for cell in row.cells) for row in self.rows]
            lines += [head, "|" + " --- |" * len(self.columns), *body, ""]
        lines += [f"- {_escape_markdown(text)}" for text in self.remarks]
        return "\n".join([*lines, *(["", self.conclusion] if self.conclusion else [])]) + "\n"

    def csv(self) -> str:
        """Return its records as CSV: a line of names, empty fields for None, ``true`` and ``false``."""
        names = list(dict.fromkeys(name for record in self.records for name in record))
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_field(record.get(name)) for name in names] for record in self.records)
        return out.getvalue()


_Kind = TypeVar("_Kind", bound=Table)


def table_of(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Cell]],
    *,
    texts: Collection[int] = (0,),
    remarks: Sequence[str] = (),
    kind: Callable[..., _Kind] = Table,
) -> _Kind:
    """Return a table of texts.

    Parameters
    ----------
    title : str
    headings : sequence of str
        Empty ones for a table without them.
    rows : iterable of sequence of str
    texts : collection of int, default (0,)
        Columns that are aligned to the left; the others are figures.
    remarks : sequence of str
    kind : type of Table
        Such as `TextTable`, which a terminal of any width can show.
    """
    table = kind([Column(one, right=i not in texts) for i, one in enumerate(headings)], title, remarks=remarks)
    for row in rows:
        table.add_row(*row)
    return table


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


def _escape_html(text: str) -> str:
    return html.escape(clean(text))


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|~#])", r"\\\1", clean(" ".join(text.split("\n"))))


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else clean(str(value))
