"""Results as small HTML tables, which notebooks show in place of a repr."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence

from .terminal import clean

__all__ = ["html_table"]

# No colours: a table uses those of the page, light or dark. By default, notebooks centre tables, align all cells to the
# right and make all columns equally wide. A table that is wider than the page can be scrolled.
_TABLE = "margin:0;table-layout:auto;font-variant-numeric:tabular-nums"
_CAPTION = "caption-side:top;text-align:left;color:inherit;font-weight:bold;white-space:nowrap"


def html_table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: Collection[int] = (0,),
    notes: Sequence[str] = (),
) -> str:
    """Return a table as HTML; all texts are escaped.

    Parameters
    ----------
    caption : str
    headings : sequence of str
        Empty for a table without them.
    rows : iterable of sequence of str
    texts : collection of int, default (0,)
        Columns that are aligned to the left and may be folded; the others are figures. Without headings the first
        column has the names of the rows, and is not folded.
    notes : sequence of str
        Printed below the table, one per line.
    """

    def cell(tag: str, column: int, text: str) -> str:
        style = "text-align:left" if column in texts else "text-align:right"
        if column not in texts or (column == 0 and not headings):
            style += ";white-space:nowrap"
        return f'<{tag} style="{style}">{_escape(text)}</{tag}>'

    def line(tag: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(cell(tag, column, text) for column, text in enumerate(cells))}</tr>"

    head = f"<thead>{line('th', headings)}</thead>" if headings else ""
    body = "".join(line("td", cells) for cells in rows)
    below = "".join(f"<div>{_escape(note)}</div>" for note in notes)
    return (
        f'<div style="overflow-x:auto"><table style="{_TABLE}"><caption style="{_CAPTION}">{_escape(caption)}</caption>'
        f"{head}<tbody>{body}</tbody></table>{below}</div>"
    )


def _escape(text: str) -> str:
    return html.escape(clean(text))
