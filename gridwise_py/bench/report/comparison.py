"""Comparisons as a table, as markdown, as JSON, as JUnit XML."""

from __future__ import annotations

import io
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ...display.quantities import format_number, format_uncertainty
from ...display.table import Cell, Column, Table
from ...display.terminal import clean
from ...storage.json_files import json_data
from ..analysis.compare import RANKED, Comparison, Rank, Row
from ..stats.verdict import Cause, Verdict, VerdictKind
from .console import make_console
from .text_table import TextTable

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "gridwise.compare"
SCHEMA_VERSION = 3

HEADINGS = ("case", "part", "old", "new", "new / old", "interval", "verdict")
RANK_HEADINGS = ("case", "file", "time", "times as fast", *(one.rank_heading or one.heading for one in RANKED))
# Causes by which an interval is too wide: a line per case says by how much.
_SPREADS = (Cause.CLOCK_STEP, Cause.SPREAD, Cause.NEAR_THRESHOLD)
_NOTHING = "–"
#: For a file, and for a pipe of unknown width.
_FILE_WIDTH = 140


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
    old, new = row.texts()
    part = row.name if row.part == "whole" else f"  {row.name}"
    if row.verdict is None:
        return tuple(map(clean, (row.case, part, old, new, _NOTHING, _NOTHING, row.note)))
    v = row.verdict
    kind = f"{row.word}, past the gate" if row.past_gate else row.word
    mark = "" if v.statistic == "median" else " *"
    return tuple(map(clean, (row.case, part, old, new, f"{v.ratio:.3f}{mark}", interval_text(v), kind)))


def interval_text(v: Verdict) -> str:
    """Return the interval of a ratio; of one whose ends say nothing, how far it reaches."""
    if v.too_noisy:
        factor = max(v.high / v.ratio, v.ratio / v.low)
        return f"too noisy: × or ÷ {factor:.1f}" if factor < 100 else "too noisy: over × 100"
    return " – ".join(f"{end:.3f}" if end < 1000 else f"{end:.2g}" for end in (v.low, v.high))


def rank_cells(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the texts of all ranks, one for each of `RANK_HEADINGS`."""
    return [
        tuple(map(clean, (r.case, r.file, r.time(), format_number(r.speedup), *r.quantity_texts)))
        for r in comparison.ranks
    ]


def comparison_remarks(comparison: Comparison) -> list[str]:
    """Return the remarks below the rows: failures first, then ambiguous rows by cause."""
    return [_unbound(text) for text in _remarks(comparison)]


def _remarks(comparison: Comparison) -> list[str]:
    c = comparison
    remarks = [f"not comparable: {text}" for text in c.obstacles]
    if c.remedy:
        remarks.append(f"to compare them: {c.remedy}")
    remarks += [f"wrong result: {text}" for text in c.wrong]
    remarks += [f"no longer runs: {text}" for text in c.broken]
    if c.same_measurement:
        remarks.append("OLD and NEW are the same measurement: all of their times are equal.")
    for note in dict.fromkeys(row.note for row in c.rows if row.verdict is None):
        rows = [row for row in c.rows if row.verdict is None and row.note == note]
        remarks.append(f"{_count(rows)} not judged: {note}: {_names(rows)}")
    judged = [(row, row.verdict) for row in c.rows if row.verdict is not None]
    found = dict.fromkeys((v.cause, v.statement, v.advice) for _, v in judged if v.cause is not None)
    for cause, statement, settle in sorted(found, key=lambda one: list(Cause).index(one[0])):
        rows = [row for row, verdict in judged if verdict.statement == statement]
        text = f"{_count(rows)} ambiguous: {statement}. To settle {'it' if len(rows) == 1 else 'them'}, {settle}"
        remarks += [f"{text}:", *_spreads(rows)] if cause in _SPREADS else [f"{text}: {_names(rows)}"]
    smooth = [row for row, verdict in judged if verdict.statistic != "median"]
    if smooth:
        text = "the times have two modes with the median between them, so that interquartile means are judged (*)"
        remarks.append(f"{_count(smooth)}: {text}: {_names(smooth)}")
    return [clean(text) for text in [*remarks, *c.notes]]


def _count(rows: Sequence[Row]) -> str:
    return "1 row" if len(rows) == 1 else f"{len(rows)} rows"


def _names(rows: Sequence[Row]) -> str:
    """Return the cases of rows, with parts if it is not only the whole; names are not broken."""
    by_case: dict[str, list[Row]] = {}
    for row in rows:
        by_case.setdefault(row.case, []).append(row)
    names: list[str] = []
    for case, of_case in by_case.items():
        more = [row.name for row in of_case] if [row.name for row in of_case] != ["gpu_span"] else []
        names.append(f"{_bound(case)} ({', '.join(more)})" if more else _bound(case))
    return ", ".join(names)


def _spreads(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each case: by how much the interval of its widest row is too wide, and what would settle it."""
    by_case: dict[str, list[tuple[float, float, Verdict]]] = {}
    for row in rows:
        assert row.verdict is not None, "rows with a cause are judged"
        by_case.setdefault(row.case, []).append((*_spread(row.verdict), row.verdict))
    for case, of_case in by_case.items():
        spread, enough, verdict = max(of_case, key=lambda one: one[0] - one[1])
        reached = format_uncertainty(spread) if spread < 1 else _factor(1 + spread)
        more = ""
        if verdict.needed is not None:
            now = " and ".join(f"{count:,}" for count in verdict.counts)
            more = f": about {verdict.needed:,} {verdict.units} of each, now {now}"
        # Not always the interval of the table: `same` is decided by that of 90 %.
        which = _judged_by(verdict)
        yield f"{_bound(case)}: its {which} interval is {reached}; {format_uncertainty(enough)} would settle it{more}"


def _factor(factor: float) -> str:
    return f"× or ÷ {factor:.1f}" if factor < 100 else "over × or ÷ 100"


def _is_near(verdict: Verdict) -> bool:
    """Whether a ratio is within the threshold, so that `same` is what its interval may show."""
    return 1 / (1 + verdict.threshold) < verdict.ratio < 1 + verdict.threshold


def _judged_by(verdict: Verdict) -> str:
    return f"{100 * (2 * verdict.confidence - 1 if _is_near(verdict) else verdict.confidence):g} %"


def _spread(verdict: Verdict) -> tuple[float, float]:
    """Return half the interval of a ratio that must not reach over the threshold, and how wide it may be, as shares."""
    v = verdict
    low, high = (v.same_low, v.same_high) if _is_near(v) else (v.low, v.high)
    bound = 1 + v.threshold if v.ratio > 1 else 1 / (1 + v.threshold)
    return max(high / v.ratio, v.ratio / low) - 1, max(bound / v.ratio, v.ratio / bound) - 1


def _bound(name: str) -> str:
    """Return a name that cannot be broken across lines."""
    return name.replace(" ", "\N{NO-BREAK SPACE}")


def _unbound(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def comparison_title(comparison: Comparison) -> str:
    """Return which adapters are compared."""
    if comparison.new_name == comparison.old_name and not comparison.ranks:
        return clean(comparison.new_name)
    first, second = comparison.sides
    return clean(f"{first}: {comparison.old_name} · {second}: {comparison.new_name}")


def comparison_conclusion(comparison: Comparison) -> str:
    """Return the counts of verdicts, or who is faster, as a sentence; empty without rows and ranks."""
    c = comparison
    if c.ranks:
        return _ranks_conclusion(c)
    if not c.rows:
        return ""
    counts = ", ".join(f"{count} {kind}" for kind, count in c.counts().items() if count) or "no verdict"
    gate = f"{len(c.regressions)} slower by more than the gate of {100 * c.gate:g} %"
    open_ones = " Ambiguous rows do not fail the gate." if c.counts()[VerdictKind.AMBIGUOUS.value] else ""
    return f"{_count(c.rows)}: {counts}; threshold {100 * c.threshold:g} %; {gate}.{open_ones}"


def _ranks_conclusion(comparison: Comparison) -> str:
    first = [rank for rank in comparison.ranks if rank.rank == 1]
    slowest = {rank.case: rank for rank in comparison.ranks if rank.rank > 1}
    both = {rank.case: (rank, slowest[rank.case]) for rank in first if rank.case in slowest}
    unsure = [case for case, pair in both.items() if any(rank.uncertainty is None for rank in pair)]
    equal = [case for case, pair in both.items() if case not in unsure and _as_fast(*pair)]
    parts: list[str] = []
    # Of two files of one model the name says nothing.
    differ = comparison.old_name != comparison.new_name
    for file in reversed(comparison.sides):
        speedups = sorted(rank.speedup for rank in first if rank.file == file and rank.case not in (*equal, *unsure))
        if speedups:
            ends = list(dict.fromkeys(format_number(speedups[i]) for i in (0, -1)))
            adapter = next(rank.adapter for rank in first if rank.file == file)
            name = f"{file}, {clean(adapter)}," if differ else file
            parts.append(f"{name} is {' to '.join(ends)} times as fast in {len(speedups)} of {len(first)} cases")
    if equal:
        parts.append(f"no difference beyond the ± in {len(equal)} of {len(first)} cases")
    if unsure:
        parts.append(f"too few samples to tell in {len(unsure)} of {len(first)} cases")
    return f"{'; '.join(parts)}."


def _as_fast(fast: Rank, slow: Rank) -> bool:
    """Return whether two times are equal within their uncertainties or in three digits."""
    fast_to_ns = fast.time_ns * (1 + (fast.uncertainty or 0.0))
    slow_from_ns = slow.time_ns * (1 - (slow.uncertainty or 0.0))
    return fast_to_ns >= slow_from_ns or format_number(fast.speedup) == "1.00"


# ---- table


def render_rich(comparison: Comparison, console: Console) -> None:
    """Print a comparison on a console of any width: nothing is shortened."""
    from rich.text import Text

    if comparison.rows or comparison.ranks:
        widest, *forms, last = _tables(comparison)
        table = next((table for table in (widest, *forms) if table.fits(console.width)), last)
        console.print(table)
        if comparison.regressions and table is not widest:
            _print_text(console, "slower!: past the gate.", "dim")
    else:
        _print_text(console, comparison_title(comparison), "bold")
    console.print(Text(""))
    for text in _remarks(comparison):
        _print_text(console, text, "yellow")
    if conclusion := comparison_conclusion(comparison):
        _print_text(console, conclusion, "bold")


def _print_text(console: Console, text: str, style: str) -> None:
    """Print a text, broken between words but not inside names."""
    from rich.text import Text

    # Rich breaks at no-break spaces, too.
    words = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text).split(" ")
    indent = "  "
    fitting = " ".join(word if len(indent + word) <= console.width else _unbound(word) for word in words)
    lines = textwrap.wrap(
        fitting, max(console.width, 1), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    for line in lines or [""]:
        console.print(Text(_unbound(line), style=style), soft_wrap=True)


def _tables(comparison: Comparison) -> Iterator[TextTable]:
    """Yield the table in narrower and narrower forms; the first that fits is used."""
    title = comparison_title(comparison)
    if comparison.ranks:
        cells = rank_cells(comparison)
        shown = [i for i in range(1, len(RANK_HEADINGS)) if any(row[i] != _NOTHING for row in cells)]
        kinds = [""] * len(cells)
        columns = {i: Column(RANK_HEADINGS[i], right=i > 1) for i in shown}
        least = {i: Column(RANK_HEADINGS[i], right=i > 1, priority=max(i - 3, 0)) for i in shown}
    else:
        rows = comparison.all_rows
        # Reasons for a missing verdict are below the table.
        cells = [(*row_cells(row)[:6], row_cells(row)[6] if row.verdict is not None else "not judged") for row in rows]
        kinds = ["dim" if row.verdict is None else row.word for row in rows]
        parts = any(row.name != "gpu_span" for row in rows)
        columns = {i: Column(HEADINGS[i], right=1 < i < 6, wraps=i == 6) for i in range(1 if parts else 2, 7)}
        least = {**columns, 5: Column(HEADINGS[5], right=True, priority=1)}
    yield _text_table(title, {0: Column("case"), **columns}, cells, kinds)
    cells = [(*row[:-1], row[-1].replace(", past the gate", "!")) for row in cells]
    yield _text_table(title, {0: Column("case"), **least}, cells, kinds)
    yield _text_table(title, columns, cells, kinds)
    yield _text_table(title, least, cells, kinds)
    if not comparison.ranks:
        cells = [(*row[:2], *(re.sub(r" ±.*", "", text) for text in row[2:4]), *row[4:]) for row in cells]
        yield _text_table(title, least, cells, kinds)
        least.pop(1, None)
        yield _text_table(title, least, cells, kinds)


def _text_table(
    title: str, columns: Mapping[int, Column], cells: Sequence[tuple[str, ...]], kinds: Sequence[str]
) -> TextTable:
    """Return a table that names each case once: in its column 0, or without that in a line above its rows."""
    table = TextTable(list(columns.values()), title)
    names_parts = 1 not in columns and any(row[1].strip() != "gpu_span" for row in cells)
    last = None
    for row, kind in zip(cells, kinds, strict=True):
        texts, is_new = [row[i] for i in columns], row[0] != last
        last = row[0]
        if 0 in columns:
            texts[0] = row[0] if is_new else ""
        else:
            texts[0] = f"  {texts[0]}"
            if is_new:
                table.add_heading(row[0])
            if names_parts:
                table.add_heading(f"  {row[1]}")
        table.add_row(*texts[:-1], Cell(texts[-1], kind=kind))
    return table


def _table(comparison: Comparison) -> str:
    console = make_console(width=_FILE_WIDTH, record=True, file=io.StringIO(), force_jupyter=False)
    render_rich(comparison, console)
    return console.export_text()


# ---- markdown, pages


def comparison_table(comparison: Comparison) -> Table:
    """Return a comparison as a table for files and pages."""
    c = comparison
    headings, texts = (RANK_HEADINGS, (0, 1)) if c.ranks else (HEADINGS, (0, 1, 6))
    table = Table(
        [Column(heading, right=i not in texts) for i, heading in enumerate(headings)],
        comparison_title(c),
        records=[_rank_record(rank) for rank in c.ranks] or [_record(row) for row in c.all_rows],
        remarks=comparison_remarks(c),
        conclusion=comparison_conclusion(c),
    )
    for rank, cells in zip(c.ranks, rank_cells(c), strict=True):
        values = (None, None, rank.time_ns, rank.speedup, *rank.quantities.values())
        table.add_row(*map(Cell, cells, values))
    for row in () if c.ranks else c.all_rows:
        v, values = row.verdict, (None,) * 7
        if v is not None and row.values is not None:
            values = (None, None, *row.values, v.ratio, v.high - v.low, None)
        kinds = ("", row.part, "", "", "", "", "" if v is None else f"verdict {row.word}")
        table.add_row(*map(Cell, map(str.strip, row_cells(row)), values, kinds))
    return table


#: What a line of CSV has of a verdict.
_OF_VERDICT = (
    "old_ns", "new_ns", "ratio", "low", "high", "p_corrected", "statistic", "old_count", "new_count",
    "old_processes", "new_processes",
)  # fmt: skip


def _rank_record(rank: Rank) -> dict[str, Any]:
    """Return a rank as JSON data."""
    data = asdict(rank)
    del data["quantity_texts"]
    return {**data, **data.pop("quantities")}


def _record(row: Row) -> dict[str, Any]:
    v, of_verdict = row.verdict, _OF_VERDICT
    own = {"old_uncertainty": row.old_uncertainty, "new_uncertainty": row.new_uncertainty}
    if row.numbers is not None:
        own, of_verdict = {"old": row.numbers[0][0], "new": row.numbers[1][0]}, ("ratio", "low", "high")
    return {
        "case": row.case, "part": row.part, "name": row.name, "verdict": row.word or None,
        **{name: getattr(v, name, None) for name in of_verdict}, **own, "gated": row.gated,
        "past_gate": row.past_gate, "reason": row.note if v is None or row.numbers is not None else v.reason,
    }  # fmt: skip


# ---- JSON


def _json(comparison: Comparison) -> str:
    c = comparison
    same = ("threshold", "gate", "comparable", "regressed")
    texts = ("same_measurement", "obstacles", "remedy", "wrong", "broken", "notes")
    data = {
        "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "old": c.old_name, "new": c.new_name,
        **{name: getattr(c, name) for name in same}, "counts": c.counts(), **{name: getattr(c, name) for name in texts},
        "rows": [asdict(row) for row in c.rows], "quantities": [_record(row) for row in c.quantities],
        "ranks": [_rank_record(rank) for rank in c.ranks],
    }  # fmt: skip
    return json.dumps(json_data(data), indent=1, allow_nan=False) + "\n"


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
        case("gridwise compare", "comparable", "error", f"{text}; {c.remedy}")
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
        case(rank.case, f"{rank.rank}: {rank.file}, {rank.adapter}")
    for name, count in counts.items():
        suite.set(name, str(count))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "table": _table,
    "markdown": lambda comparison: comparison_table(comparison).markdown(),
    "json": _json,
    "junit": _junit,
}
