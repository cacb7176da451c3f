"""Comparisons as a table, as markdown, as JSON, as JUnit XML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from ..terminal import clean, make_console
from .compare import Comparison, Row
from .statistics import significant
from .verdict import VerdictKind

__all__ = [
    "FORMATS", "HEADINGS", "RANK_HEADINGS", "comparison_conclusion", "comparison_remarks", "comparison_title",
    "rank_cells", "render", "row_cells",
]  # fmt: skip

SCHEMA = "gridwise.compare"
SCHEMA_VERSION = 1

HEADINGS = ("case", "part", "old", "new", "new / old", "interval", "verdict")
RANK_HEADINGS = ("case", "rank", "adapter", "time", "GB/s", "of own copy", "GB/s per W")
_STYLES = {"faster": "bold green", "slower": "bold red", "same": "", "ambiguous": "yellow"}


def render(comparison: Comparison, form: str) -> str:
    """Return a comparison as text.

    Parameters
    ----------
    comparison : Comparison
    form : {"table", "markdown", "json", "junit"}
    """
    return FORMATS[form](comparison)


def row_cells(row: Row) -> tuple[str, ...]:
    """Return the texts of a row, one for each of `HEADINGS`."""
    old, new = row.times()
    part = row.name if row.part == "whole" else f"  {row.name}"
    if row.verdict is None:
        return tuple(map(clean, (row.case, part, old, new, "–", "–", row.note)))
    v = row.verdict
    kind = f"{v.kind.value}, past the gate" if row.past_gate else v.kind.value
    return tuple(map(clean, (row.case, part, old, new, f"{v.ratio:.3f}", f"{v.low:.3f} – {v.high:.3f}", kind)))


def rank_cells(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the texts of all ranks, one for each of `RANK_HEADINGS`."""

    def number(value: float | None, scale: float = 1.0, unit: str = "") -> str:
        return "–" if value is None else f"{scale * value:.3g}{unit}"

    return [
        tuple(
            map(
                clean,
                (
                    r.case, str(r.rank), r.adapter, significant(r.time_ns, tick_step_ns=r.time_ns / 1000),
                    number(r.gbytes_per_s), number(r.copy_share, 100, " %"), number(r.gbytes_per_j),
                ),
            )
        )
        for r in comparison.ranks
    ]  # fmt: skip


def comparison_remarks(comparison: Comparison) -> list[str]:
    """Return what must be said below the rows."""
    c = comparison
    remarks = [f"not comparable: {text}" for text in c.obstacles]
    remarks += [f"wrong result: {text}" for text in c.wrong]
    remarks += [f"no longer runs: {text}" for text in c.broken]
    for row in c.rows:
        if row.verdict is not None and row.verdict.settle:
            v = row.verdict
            remarks.append(f"ambiguous: {row.case}, {row.name}: {v.reason}; to settle it, {v.settle}")
        elif row.verdict is not None and row.verdict.statistic != "median":
            remarks.append(
                f"{row.case}, {row.name}: the times have two modes with the median between them; judged by the "
                f"{row.verdict.statistic}"
            )
    return [clean(text) for text in [*remarks, *c.notes]]


def comparison_title(comparison: Comparison) -> str:
    """Return which adapters are compared."""
    if comparison.new_name == comparison.old_name:
        return clean(comparison.new_name)
    return clean(f"{comparison.old_name} (OLD) and {comparison.new_name} (NEW)")


def comparison_conclusion(comparison: Comparison) -> str:
    """Return the counts of verdicts as a sentence; empty without rows."""
    c = comparison
    if not c.rows:
        return ""
    counts = ", ".join(f"{count} {kind}" for kind, count in c.counts().items() if count) or "no verdict"
    gate = f"{len(c.regressions)} slower by more than the gate of {100 * c.gate:g} %"
    return f"{len(c.rows)} rows: {counts}; threshold {100 * c.threshold:g} %; {gate}."


# ---- table


def _table(comparison: Comparison) -> str:
    return render_rich(comparison, None)


def render_rich(comparison: Comparison, console: Any) -> str:
    """Print the table on a rich console; return its text where `console` is None."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    own = make_console(width=140, record=True, file=open_null()) if console is None else console
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    table.title = Text(comparison_title(comparison))
    headings = RANK_HEADINGS if comparison.ranks else HEADINGS
    left = {"case", "part", "adapter", "verdict"}
    for heading in headings:
        # Only the case may wrap: cut figures mislead.
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=heading != "case")
    last = None
    for cells in rank_cells(comparison):
        table.add_row(*(Text(cell) for cell in ("" if cells[0] == last else cells[0], *cells[1:])))
        last = cells[0]
    for row in comparison.rows:
        cells = row_cells(row)
        style = _STYLES[row.verdict.kind.value] if row.verdict is not None else "dim"
        texts = [Text(cell) for cell in ("" if cells[0] == last else cells[0], *cells[1:-1])]
        table.add_row(*texts, Text(cells[-1], style=style))
        last = cells[0]
    if comparison.rows or comparison.ranks:
        own.print(table)
    for text in comparison_remarks(comparison):
        own.print(Text(text, style="yellow"))
    own.print(Text(comparison_conclusion(comparison), style="bold"))
    return own.export_text() if console is None else ""


def open_null() -> Any:
    """Return a stream that keeps nothing: a recording console still writes."""
    import io

    return io.StringIO()


# ---- markdown


def _markdown(comparison: Comparison) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(_escape_markdown(cell.strip()) for cell in cells) + " |"

    headings = RANK_HEADINGS if comparison.ranks else HEADINGS
    lines = [f"### {_escape_markdown(comparison_title(comparison))}", ""]
    rows = rank_cells(comparison) or [row_cells(row) for row in comparison.rows]
    if rows:
        lines += [line(headings), "|" + " --- |" * len(headings), *map(line, rows), ""]
    lines += [f"- {_escape_markdown(text)}" for text in comparison_remarks(comparison)]
    conclusion = comparison_conclusion(comparison)
    return "\n".join([*lines, *(["", conclusion] if conclusion else [])]) + "\n"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|~#])", r"\\\1", text)


# ---- JSON


def _json(comparison: Comparison) -> str:
    c = comparison
    data = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "old": c.old_name,
        "new": c.new_name,
        "threshold": c.threshold,
        "gate": c.gate,
        "comparable": c.comparable,
        "regressed": c.regressed,
        "counts": c.counts(),
        "obstacles": c.obstacles,
        "wrong": c.wrong,
        "broken": c.broken,
        "notes": c.notes,
        "rows": [asdict(row) for row in c.rows],
        "ranks": [asdict(rank) for rank in c.ranks],
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


# ---- JUnit


def _junit(comparison: Comparison) -> str:
    c = comparison
    suite = ElementTree.Element("testsuite", name="gridwise compare")
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}

    def case(classname: str, name: str, tag: str = "", text: str = "") -> None:
        counts["tests"] += 1
        node = ElementTree.SubElement(suite, "testcase", classname=clean(classname), name=clean(name))
        if tag:
            counts[{"failure": "failures", "error": "errors", "skipped": "skipped"}[tag]] += 1
            ElementTree.SubElement(node, tag, message=clean(text))

    for text in c.obstacles:
        case("gridwise compare", "comparable", "error", text)
    for text in c.wrong:
        case(text.split(": ")[1], "correct", "error", text)
    for text in c.broken:
        case(text.split(": ")[0], "runs", "failure", text)
    for row in c.rows:
        v = row.verdict
        if v is None:
            case(row.case, row.name, "skipped", row.note)
        elif row.past_gate:
            case(row.case, row.name, "failure", f"{v.ratio:.3f} times the old time: {v.reason}")
        elif v.kind is VerdictKind.AMBIGUOUS:
            case(row.case, row.name, "skipped", f"ambiguous: {v.reason}; {v.settle}")
        else:
            case(row.case, row.name)
    for rank in c.ranks:
        case(rank.case, f"{rank.rank}: {rank.adapter}")
    for name, count in counts.items():
        suite.set(name, str(count))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "table": _table,
    "markdown": _markdown,
    "json": _json,
    "junit": _junit,
}
