"""The table that a benchmark prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from ...display.quantities import format_each, format_number, format_time
from ...display.table import Cell, Column, Table
from ..analysis.remarks import CLOCK_WORDS, DIFFER_MARK, Remark, group_alike, listed, remarks
from ..cases.mode import Mode
from ..cases.names import n_text
from ..results.columns import QUANTITIES, Quantity, Shares, shown
from ..results.dataframe import records_of
from ..results.model import CaseKey, Kernel, Result, Results
from ..results.rounds import pooled
from ..stats.series import Series
from .text_table import TextTable

_STYLES = {"error": "bold red", "software": "bold yellow"}
_MOST_WARNINGS = 5
# Warnings in a file use the terms of the Python API.
_CLI_WORDS = (("raise batch_trials", "raise --trials"), ("use mode 'batch'", "use --mode batch"))


def _time(series: Series | None) -> str:
    """Return the time of a series as text, with a mark if it is the mean of processes that differ."""
    summary = None if series is None else series.summary
    if summary is None:
        return format_time(None)
    # In front, so that the digits of a column stay in line.
    return f"{f'{DIFFER_MARK} ' if summary.levels_differ else ''}{format_time(summary.time_ns)}"


def _uncertainty(series: Series | None, step_ns: float) -> str:
    """Return the uncertainty of a median, or how few its samples are; of many kernels as one, the times of each."""
    if isinstance(series, Kernel) and series.each_ns:
        return format_each(series.each_ns)
    summary = None if series is None else series.summary
    return "" if summary is None else summary.uncertainty_text(step_ns)


def _verdict(result: Result) -> Cell:
    if result.error is not None:
        return Cell("failed", kind="bad")
    if not result.correct:
        return Cell("WRONG", kind="bad")
    return Cell("right", kind="good") if result.checked else Cell("not checked")


def result_line(result: Result) -> str:
    """Return a result in one line, shown before the table."""
    measured = [series for series in (result.gpu_span, result.cpu_wall) if series is not None and series.summary]
    summary = measured[0].summary if measured else None
    words = [format_time(None) if summary is None else summary.text(), _verdict(result).text]
    return f"{result.name_with_n}: {' '.join(word for word in words if word)}"


def results_table(document: Results, *, quiet: bool = False) -> RenderableType:
    """Return the table of a run: a row per case, and below it one for each of its kernels, if it has several.

    Parameters
    ----------
    document : Results
    quiet : bool, default False
        Whether to leave out all text below the table but failures and wrong results.
    """
    document = pooled(document)
    columns = _columns(document)
    table, said = _table(document, columns), remarks(document.device, document.results)
    if quiet:
        said = [remark for remark in said if remark.kind == "error"]
    notes = Group(*_said(said))
    return Group(table, notes) if quiet else Group(table, notes, Text(_how(document, columns), style="dim"))


def results_export(document: Results) -> Table:
    """Return the table of a run for files; CSV has a line for each series of times."""
    document = pooled(document)
    table = _table(document, _columns(document))
    # A pooled result is of all processes and rounds.
    table.records = [
        {name: value for name, value in record.items() if name not in ("process", "round")}
        for record in records_of(document)
    ]
    table.remarks = [line.plain for line in _said(remarks(document.device, document.results))]
    return table


def _table(document: Results, columns: Sequence[_Cells]) -> TextTable:
    table = TextTable([column for column, _, _ in columns], _title(document))
    groups = list(_groups(document.results))
    is_sweep = any(len(group) > 1 for group in groups)
    for group in groups:
        for result in group:
            first = is_sweep and result is group[0]
            table.add_row(*(of_case(result) for _, of_case, _ in columns), begins_group=first)
            for kernel in result.shown_kernels:
                cells = ("" if of_kernel is None else of_kernel(kernel, result) for _, _, of_kernel in columns)
                table.add_row(*cells, kind="dim")
    return table


def _title(document: Results) -> str:
    device = document.device
    if document.context.tool is not None:
        return f"{device.adapter} · {document.context.tool}"
    return f"{device.adapter} · {device.backend} · {device.driver} · subgroups of {device.subgroup_size or 'none'}"


def _groups(results: Sequence[Result]) -> Iterator[list[Result]]:
    """Yield the results of each case, its sizes one below the other."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.name, []).append(result)
    for group in found.values():
        yield sorted(group, key=lambda result: result.n)


#: A column, its cell of a case, and that of a kernel of the case, or None where a kernel has none.
_Cells: TypeAlias = tuple[Column, Callable[[Result], str | Cell], Callable[[Kernel, Result], str | Cell] | None]


def _columns(document: Results) -> list[_Cells]:
    """Return the columns that are not empty: each with its cell for a case, and for a kernel or None."""
    results = document.results
    on_gpu = any(result.whole.gpu_span_ns for result in results) or not any(
        result.whole.cpu_wall_ns for result in results
    )

    def headline(result: Result) -> Series | None:
        return result.gpu_span if on_gpu else result.cpu_wall

    columns: list[_Cells] = [
        (
            Column("primitive, kernel"),
            lambda result: Cell(result.name, kind="name"),
            lambda kernel, _: f"  {kernel.name}",
        ),
        (Column("n", right=True), lambda result: n_text(result.n), None),
        (
            Column("GPU time" if on_gpu else "CPU wall", right=True),
            lambda result: _time(headline(result)),
            (lambda kernel, _: _time(kernel)) if on_gpu else None,
        ),
        (
            Column("95 %", right=True, priority=1),
            lambda result: _uncertainty(headline(result), document.tick_step_ns(result) if on_gpu else 0.0),
            (lambda kernel, result: _uncertainty(kernel, document.tick_step_ns(result))) if on_gpu else None,
        ),
    ]
    if on_gpu:
        columns.append(
            (
                Column("CPU wall", right=True, priority=3),
                lambda result: _time(result.cpu_wall),
                None,
            )
        )
    of_baseline = _of_baseline(results, headline)
    if of_baseline:
        # In front of the rates: who names a baseline wants to see it.
        columns.append(
            (Column("/ baseline", right=True, priority=0), lambda result: of_baseline.get(result.key, ""), None)
        )
    columns += [_quantity_column(quantity, shares) for quantity, shares in shown(document)]
    return [*columns, (Column("result"), _verdict, None)]


def _quantity_column(quantity: Quantity, shares: Shares) -> _Cells:
    def cell(result: Result) -> str:
        return quantity.shown_text(result, quantity.value(result, shares))

    return Column(quantity.heading, right=True, priority=quantity.priority), cell, None


def _of_baseline(results: Sequence[Result], series_of: Callable[[Result], Series | None]) -> dict[CaseKey, str]:
    """Return the time of each case by that of its baseline; empty where no case has one."""
    keys = {result.baseline_key for result in results} - {None}
    medians = {
        result.key: series.time_ns for result in results if (series := series_of(result)) is not None and result.correct
    }
    found: dict[CaseKey, str] = dict.fromkeys((key for key in keys if key is not None and key in medians), "baseline")
    for result in results:
        key = result.baseline_key
        own_ns, base_ns = medians.get(result.key), None if key is None else medians.get(key)
        if own_ns and base_ns:
            found[result.key] = format_number(own_ns / base_ns)
    return found


def _said(found: Sequence[Remark]) -> Iterator[Text]:
    """Yield remarks as lines: failures, then the first few warnings, then the rest."""
    lines = [(remark.kind, remark.text) for remark in found if remark.kind == "error"]
    alike = group_alike(remark for remark in found if remark.kind == "warning")
    for warnings in alike[:_MOST_WARNINGS]:
        cases = list(dict.fromkeys(case for warning in warnings for case in warning.cases))
        text = warnings[0].text
        for word, option in _CLI_WORDS:
            text = text.replace(word, option)
        whose = f" (the figures of {cases[0]})" if len(warnings) > 1 else ""
        lines.append(("warning", f"warning: {listed(cases)}: {text}{whose}"))
    if len(alike) > _MOST_WARNINGS:
        lines.append(("warning", f"{len(alike) - _MOST_WARNINGS} more kinds of warnings are in the file of --json."))
    lines += [(remark.kind, remark.text) for remark in found if remark.kind not in ("error", "warning")]
    for kind, text in lines:
        yield Text(text, style=_STYLES.get(kind, "yellow"))


def _what_times_are(results: Sequence[Result]) -> str:
    """Return which statistic a time is; of several processes it is no median of all samples."""
    counts = {len(result.timed.levels_ns) for result in results if result.timed is not None}
    if not counts - {0}:
        return "medians"
    number = f"{max(counts)}" if len(counts) == 1 else f"up to {max(counts)}"
    return f"the geometric mean of the medians of {number} processes"


def _how(document: Results, columns: Sequence[_Cells]) -> str:
    """Return the legend of the table."""
    results = document.results
    text = (
        f"Times per trial: {_what_times_are(results)}, ± half of the 95 % interval. GB/s: each input read once, each "
        f"output written once."
    )
    # A case without samples has the requested number.
    batches = {result.trials for result in results if result.mode is Mode.BATCH and result.whole.series}
    if batches:
        most = max(batches)
        count = f"{most}" if len(batches) == 1 else f"{min(batches)} to {most}"
        trials = "trial" if batches == {1} else "trials"
        unnamed = "" if {result.mode for result in results} == {Mode.BATCH} else "Rows without a mode are batch. "
        text += f"\n{unnamed}Batch: {count} {trials} a sample."
    headings = [column.heading for column, _, _ in columns]
    if "/ baseline" in headings:
        text += "\n/ baseline: the time by that of the baseline, in this run; `gridwise ab` judges which is faster."
    said = [one.legend for one in QUANTITIES if one.heading in headings and one.legend]
    if said and any(result.correct for result in results):
        text += f"\n{' '.join(said)}"
    if document.context.clock in CLOCK_WORDS:
        text += f"\n{CLOCK_WORDS[document.context.clock]}"
    problems = (one.problem(document) for one in QUANTITIES if one.problem is not None)
    text += "".join(f"\n{problem}" for problem in problems if problem)
    return f"{text}\ndocs/reference/gridwise-bench.md explains the columns; --quiet leaves these lines out."
