"""Tables for terminals of any width, in which no text is shortened.

If a table is too wide, its prose goes below the rows; then columns are left out, the least important first, and a line
below the table names them. If it is still too wide, names are broken between words, and finally each cell gets a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

from ...display.table import COLUMN_GAP, Cell, Row, Table

_INDENT = 2
#: Prose in a narrower column is hard to read: it goes below its row.
_MIN_PROSE_WIDTH = 30
#: How terminals show kinds of cells and rows: by the last word.
_STYLES = {
    "name": "bold", "dim": "dim", "good": "green", "bad": "bold red", "faster": "bold green", "less": "bold green",
    "slower": "bold red", "more": "bold red", "ambiguous": "yellow",
}  # fmt: skip


class TextTable(Table):
    """A table that fits the console that prints it."""

    def fits(self, width: int) -> bool:
        """Return whether all columns of priority 0 fit, if only breakable cells are broken."""
        least = [
            self._longest_word(i) if column.wraps else self._natural(i)
            for i, column in enumerate(self.columns)
            if not column.prose and not column.priority
        ]
        return sum(least) + COLUMN_GAP * (len(least) - 1) <= width

    # ---- how wide things are

    @property
    def _full_rows(self) -> list[Row]:
        return [row for row in self.rows if not row.is_heading]

    def _natural(self, i: int) -> int:
        """Return the width at which no cell of a column is broken."""
        return max([cell_len(self.columns[i].heading), *(cell_len(row.cells[i].text) for row in self._full_rows)])

    def _longest_word(self, i: int) -> int:
        texts = [self.columns[i].heading, *(row.cells[i].text for row in self._full_rows)]
        return max((cell_len(word) for text in texts for word in text.split()), default=1)

    def _layout(self, width: int) -> tuple[dict[int, int], list[int]] | None:
        """Return the widths of the shown columns, and the prose below the rows; None if nothing fits."""
        prose = [i for i, column in enumerate(self.columns) if column.prose]
        widths = {i: self._natural(i) for i in range(len(self.columns)) if i not in prose}

        def room() -> int:
            return width - sum(widths.values()) - COLUMN_GAP * (len(widths) - 1)

        if prose:
            each = (room() - COLUMN_GAP * len(prose)) // len(prose)
            least = [min(self._natural(i), max(_MIN_PROSE_WIDTH, self._longest_word(i))) for i in prose]
            if each >= max(least):
                return widths | {i: min(each, self._natural(i)) for i in prose}, []
        for i in sorted(widths, key=lambda i: self.columns[i].priority, reverse=True):
            if room() < 0 and self.columns[i].priority:
                del widths[i]
        for i in widths:
            if room() < 0 and self.columns[i].wraps:
                widths[i] = max(widths[i] + room(), self._longest_word(i))
        if room() < 0:
            widths[0] = max(widths[0] + room(), self._longest_word(0))
        return (widths, prose) if room() >= 0 else None

    # ---- what is printed

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = options.max_width
        if self.title:
            yield from _wrapped(Text(self.title, style="bold"), console, width)
        found = self._layout(width)
        if found is None:
            yield from self._as_lists(console, width)
            return
        widths, below = found
        yield from self._line([Text(column.heading) for column in self.columns], widths, below, console, width)
        yield Text("─" * min(width, max(sum(widths.values()) + COLUMN_GAP * (len(widths) - 1), 1)), style="dim")
        for row in self.rows:
            if row.begins_group:
                yield Text("")
            if row.is_heading:
                yield from _wrapped(Text(row.cells[0].text, style=_style(row.kind)), console, width)
                continue
            for line in self._line(list(map(_text, row.cells)), widths, below, console, width):
                line.stylize_before(_style(row.kind))
                yield line
        left_out = [column.heading for i, column in enumerate(self.columns) if i not in widths and i not in below]
        if left_out:
            note = f"Left out, as {width} columns are too few: {', '.join(left_out)}."
            yield from _wrapped(Text(note, style="dim"), console, width)

    def _line(
        self, cells: Sequence[Text], widths: dict[int, int], below: Sequence[int], console: Console, width: int
    ) -> Iterator[Text]:
        """Yield the lines of one row."""
        columns = {i: list(_wrapped(cells[i], console, widths[i])) for i in sorted(widths)}
        last = max(columns)
        for at in range(max(len(lines) for lines in columns.values())):
            line = Text()
            for i, lines in columns.items():
                cell = lines[at] if at < len(lines) else Text("")
                space = " " * (widths[i] - cell.cell_len)
                line.append_text(Text(space) + cell if self.columns[i].right else cell)
                if i != last:
                    line.append(" " * COLUMN_GAP if self.columns[i].right else space + " " * COLUMN_GAP)
            line.rstrip()
            yield line
        for i in below:
            if cells[i].plain:
                yield from _wrapped(cells[i], console, width, _INDENT)

    def _as_lists(self, console: Console, width: int) -> Iterator[Text]:
        for row in self.rows:
            yield Text("")
            yield from _wrapped(_text(row.cells[0]), console, width)
            if row.is_heading:
                continue
            for column, cell in zip(self.columns[1:], row.cells[1:], strict=True):
                if cell.text:
                    yield from _wrapped(Text(f"{column.heading}: ") + _text(cell), console, width, _INDENT)


def _style(kind: str) -> str:
    return _STYLES.get(kind.rpartition(" ")[2], "")


def _text(cell: Cell) -> Text:
    return Text(cell.text, style=_style(cell.kind))


def _wrapped(text: Text, console: Console, width: int, indent: int = 0) -> Iterator[Text]:
    """Yield the lines of a text, broken between words."""
    indent = min(indent, max(width - 1, 0))
    for line in text.wrap(console, max(width - indent, 1), overflow="fold") or [Text("")]:
        line.rstrip()
        # Leading blanks of a name show its level in a tree; blanks at a line break do not.
        yield Text(" " * indent) + line
