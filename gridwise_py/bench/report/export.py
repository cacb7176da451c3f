"""Tables for files: markdown for people, and CSV for programs, the same way for every command."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...display.terminal import clean

__all__ = ["Table", "as_csv", "as_markdown"]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    title : str
    headings : sequence of str
    cells : sequence of sequences of str
        Texts with units, a row per line.
    remarks : sequence of str
    conclusion : str
    records : sequence of mapping from str to object
        The same as values: their names carry the units, and None is what was not measured.
    """

    title: str
    headings: Sequence[str]
    cells: Sequence[Sequence[str]]
    records: Sequence[Mapping[str, Any]]
    remarks: Sequence[str] = ()
    conclusion: str = ""


def as_markdown(table: Table) -> str:
    """Return a table as markdown of GitHub, with its remarks."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(_escape(cell.strip()) for cell in cells) + " |"

    lines = [f"### {_escape(table.title)}", ""]
    if table.cells:
        lines += [line(table.headings), "|" + " --- |" * len(table.headings), *map(line, table.cells), ""]
    lines += [f"- {_escape(text)}" for text in table.remarks]
    return "\n".join([*lines, *(["", table.conclusion] if table.conclusion else [])]) + "\n"


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|~#])", r"\\\1", " ".join(text.split("\n")))


def as_csv(table: Table) -> str:
    """Return the records of a table as CSV: a line of names, empty fields for None, ``true`` and ``false``."""
    names = list(dict.fromkeys(name for record in table.records for name in record))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_field(record.get(name)) for name in names] for record in table.records)
    return out.getvalue()


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else clean(str(value))
