"""The outcome of `gridwise ab` as a table."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from ...display.quantities import format_time
from ...display.table import Cell, Column, Table
from ...display.terminal import clean, clean_lines
from ..report.text_table import TextTable
from ..sampling.machine_load import load_note
from ..stats.verdict import VerdictKind
from .judge import Judged, JudgedRow
from .taken import SIDES

_COLUMNS = (
    Column("case", wraps=True),
    Column("time"),
    Column("OLD", right=True, priority=1),
    Column("NEW", right=True, priority=1),
    Column("NEW − OLD", right=True),
    Column("95 %", right=True, priority=2),
    Column("verdict"),
)
_CLOCK = {
    "held": "the clock is held by this process",
    "not held": "the clock is not held: it follows the load",
    "not applicable": "",
}


_PAIRED = (
    "OLD, NEW: medians of all turns. NEW − OLD: the mean of what neighbouring turns differ by, which a drift of the "
    "machine does not change, so it need not be the difference of the medians."
)


class JudgedTable:
    """A table of verdicts, with what each side is above it and what to do about ambiguous rows below."""

    def __init__(self, judged: Judged):
        self._judged = judged

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        judged = self._judged
        for side in SIDES:
            yield Text(clean(self._side(side)))
        settings, adapter = judged.settings, judged.measured.sides[SIDES[1]]["adapter"]
        facts = [
            f"{adapter['device']}{' (software on the CPU)' if adapter.get('adapter_type') == 'CPU' else ''}",
            _CLOCK[judged.measured.clock],
            settings.describe(_pairs(judged)),
        ]
        yield Text(clean("; ".join(filter(None, facts))))
        yield Text("")
        if judged.stopped is not None:
            yield Text(clean(f"STOPPED EARLY, this is a part of what was asked: {judged.stopped}"), style="yellow")
            yield Text("")
        if judged.rows:
            yield self._rows()
            yield Text("")
        for remark in self._remarks():
            yield Text(clean_lines(remark))  # a compiler's message has lines
        if judged.rows:
            yield Text(_PAIRED, style="dim")
        yield Text(self._conclusion())

    def to_table(self) -> Table:
        """Return it for files."""
        stopped = self._judged.stopped
        table = self._rows("gridwise ab" if stopped is None else f"gridwise ab, stopped early: {stopped}")
        table.records = [row.to_record() for row in self._judged.rows]
        table.remarks = [clean(remark) for remark in (*map(self._side, SIDES), *self._remarks())]
        table.conclusion = self._conclusion()
        return table

    def _rows(self, title: str = "") -> TextTable:
        table = TextTable(_COLUMNS, title)
        for row in self._judged.rows:
            table.add_row(*_cells(row))
        return table

    def _side(self, side: str) -> str:
        said = self._judged.measured.sides[side]
        described = f"{side}: {self._judged.environments[side].describe()}"
        versions = said["versions"]
        engines = [f"{name} {versions[name]}" for name in ("wgpu", "wgpudawn") if name in versions]
        words = [f"gridwise_py {versions['gridwise_py']}", *engines, f"Python {versions['python']}"]
        return f"{described}: {', '.join(words)}"

    def _remarks(self) -> Iterator[str]:
        judged = self._judged
        yield from (f"wrong result: {text}" for text in judged.wrong)
        yield from (f"no longer runs: {text}" for text in judged.broken)
        yield from filter(None, (load_note(max(case.other_load for case in judged.measured.cases)), *judged.notes))
        for row in judged.rows:
            if row.verdict.kind is VerdictKind.AMBIGUOUS:
                yield f"ambiguous: {row.case}, {row.name}: {row.verdict.reason}; to settle it: {row.settle}"

    def _conclusion(self) -> str:
        judged = self._judged
        if not judged.rows:
            return "Same code: nothing had to be measured." if judged.is_settled else "No row is judged."
        part = "" if judged.stopped is None else " of a part of what was asked"
        counts = ", ".join(f"{count} {kind}" for kind, count in judged.counts().items() if count)
        rows = "1 row" if len(judged.rows) == 1 else f"{len(judged.rows)} rows"
        past = sum(row.past_gate for row in judged.rows)
        limits = f"threshold {100 * judged.threshold:g} %; {past} past the gate of {100 * judged.gate:g} %"
        return f"{rows}{part}: {counts}; {limits}."


def _pairs(judged: Judged) -> str:
    """Return how many pairs measured; of a part, also how many were asked for."""
    asked = judged.settings.pairs
    if judged.stopped is None:
        return f"{asked} pairs"
    fewest, most = judged.measured.pairs
    return f"{fewest} of {asked} pairs" if fewest == most else f"{fewest} to {most} of {asked} pairs"


def _cells(row: JudgedRow) -> tuple[str | Cell, ...]:
    verdict = row.verdict
    kind = f"{verdict.kind.value}, past the gate" if row.past_gate else verdict.kind.value
    return (
        clean(row.case),
        clean(row.name),
        format_time(row.old_ns),
        format_time(row.new_ns),
        _difference(verdict.ratio),
        "too noisy" if verdict.too_noisy else f"{_difference(verdict.low)} to {_difference(verdict.high)}",
        Cell(kind, kind=verdict.kind.value),
    )


def _difference(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    return f"{percent:+.2f} %" if abs(percent) < 9.995 else f"{percent:+.0f} %" if percent < 1000 else f"× {ratio:.3g}"
