"""The table that a benchmark prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..display.quantities import format_count, format_number, format_percent, format_time, format_uncertainty
from .case import array_items
from .documents import tick_step_ns, uncertainty
from .measurement import Mode
from .names import entry_name
from .remarks import Remark, listed, remarks
from .results import case_key
from .rounds import pooled
from .shares import peak_problem
from .text_table import Column, TextTable

__all__ = ["copy_shares", "result_line", "results_table"]

_STYLES = {"error": "bold red", "software": "bold yellow"}
_MOST_WARNINGS = 5
# Warnings are in a file in the words of the Python API.
_CLI_WORDS = (("raise batch_trials", "raise --trials"), ("use mode 'batch'", "use --mode batch"))


def _time(series: Mapping[str, Any] | None) -> str:
    """Return the median of a series as text."""
    return format_time(None if series is None or series["summary"] is None else series["summary"]["median_ns"])


def _uncertainty(series: Mapping[str, Any] | None, step_ns: float) -> str:
    """Return how far a median may be off; nothing where a single sample says nothing about that."""
    summary = None if series is None else series["summary"]
    return "" if summary is None else format_uncertainty(uncertainty(summary, step_ns))


def _verdict(entry: Mapping[str, Any]) -> Text:
    if entry["error"] is not None:
        return Text("failed", style="bold red")
    return Text("right", style="green") if entry["correct"] else Text("WRONG", style="bold red")


def result_line(entry: Mapping[str, Any]) -> str:
    """Return a result in a line, for those who wait for the table."""
    series = entry["whole"]["series"]
    headline = next((s for name in ("gpu_span", "cpu_wall") if (s := series.get(name)) and s["summary"]), None)
    words = [_time(headline), _uncertainty(headline, 0.0), _verdict(entry).plain]
    return f"{entry_name(entry, with_n=True)}: {' '.join(word for word in words if word)}"


def copy_shares(document: Mapping[str, Any], yardstick: str) -> dict[Any, float | None]:
    """Return the rate of each case of a pooled document as a share of the yardstick's: as many items, same mode."""
    rates = {case_key(entry): entry["rates"]["gbytes_per_s"] for entry in document["results"]}
    copies = {
        (entry["n"], entry["mode"]): rates[case_key(entry)]
        for entry in document["results"]
        if entry["primitive"] == yardstick and rates[case_key(entry)]
    }
    found = {}
    for entry in document["results"]:
        key = case_key(entry)
        copy = copies.get((array_items(entry["primitive"], entry["n"]), entry["mode"]))
        found[key] = rates[key] / copy if copy and rates[key] else None
    return found


def results_table(document: Mapping[str, Any], yardstick: str, *, quiet: bool = False) -> RenderableType:
    """Return the table of a run: a row per case, and below it one for each of its kernels, if it has several.

    Parameters
    ----------
    document : mapping
        A results document.
    yardstick : str
        The primitive whose rate, with as many items and in the same mode, the others' are given as a share of.
    quiet : bool, default False
        Whether to leave out all that is said below the table, but for what failed and what is wrong.
    """
    document = pooled(document)
    device, results = document["device"], document["results"]
    columns = _columns(document, yardstick)
    title = (
        f"{device['adapter']} · {device['backend']} · {device['driver']} · subgroups of "
        f"{device['subgroup_size'] or 'none'}"
    )
    table = TextTable([column for column, _, _ in columns], title)
    groups = list(_groups(results))
    is_sweep = any(len(group) > 1 for group in groups)
    for group in groups:
        for entry in group:
            first = is_sweep and entry is group[0]
            table.add_row(*(of_case(entry) for _, of_case, _ in columns), begins_group=first)
            for kernel in entry["kernels"] if len(entry["kernels"]) > 1 else ():
                cells = (Text("") if of_kernel is None else of_kernel(kernel, entry) for _, _, of_kernel in columns)
                table.add_row(*cells, style="dim")
    said = remarks(device, results)
    if quiet:
        said = [remark for remark in said if remark.kind == "error"]
    notes = Group(*_said(said))
    return Group(table, notes) if quiet else Group(table, notes, Text(_how(document, columns), style="dim"))


def _groups(results: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the results of each case, its sizes one below the other."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for entry in results:
        found.setdefault(entry_name(entry), []).append(entry)
    for entries in found.values():
        yield sorted(entries, key=lambda entry: entry["n"])


def _columns(document: Mapping[str, Any], yardstick: str) -> list[tuple[Column, Any, Any]]:
    """Return the columns that have something to show: each with its cell of a case, and that of a kernel or None."""
    results = document["results"]
    shares = copy_shares(document, yardstick)
    on_gpu = any(entry["whole"]["gpu_span_ns"] for entry in results) or not any(
        entry["whole"]["cpu_wall_ns"] for entry in results
    )

    def series(name: str, entry: Mapping[str, Any]) -> Any:
        return entry["whole"]["series"].get(name)

    headline = "gpu_span" if on_gpu else "cpu_wall"
    columns: list[tuple[Column, Any, Any]] = [
        (
            Column("primitive, kernel"),
            lambda entry: Text(entry_name(entry), style="bold"),
            lambda kernel, entry: Text(f"  {kernel['label']}"),
        ),
        (Column("n", right=True), lambda entry: format_count(entry["n"]), None),
        (
            Column("GPU time" if on_gpu else "CPU wall", right=True),
            lambda entry: _time(series(headline, entry)),
            (lambda kernel, _: _time(kernel)) if on_gpu else None,
        ),
        (
            Column("95 %", right=True, priority=1),
            lambda entry: _uncertainty(series(headline, entry), tick_step_ns(document, entry) if on_gpu else 0.0),
            (lambda kernel, entry: _uncertainty(kernel, tick_step_ns(document, entry))) if on_gpu else None,
        ),
    ]
    if on_gpu:
        columns.append(
            (
                Column("CPU wall", right=True, priority=3),
                lambda entry: _time(series("cpu_wall", entry)),
                None,
            )
        )
    columns += [
        (Column("GB/s", right=True, priority=2), lambda entry: format_number(entry["rates"]["gbytes_per_s"]), None),
        (
            Column("G items/s", right=True, priority=5),
            lambda entry: format_number(entry["rates"]["gitems_per_s"]),
            None,
        ),
        (Column("of copy", right=True, priority=4), lambda entry: format_percent(shares[case_key(entry)]), None),
    ]
    peaks = any(entry["rates"].get("share_of_peak") is not None for entry in results)
    if peaks and peak_problem(document) is None:
        columns.append(
            (
                Column("of peak", right=True, priority=6),
                lambda entry: format_percent(entry["rates"].get("share_of_peak")),
                None,
            )
        )
    return [*columns, (Column("result"), _verdict, None)]


def _said(found: Sequence[Remark]) -> Iterator[Text]:
    """Yield remarks as lines: what failed, then the first few warnings, then the rest."""
    lines = [(remark.kind, remark.text) for remark in found if remark.kind == "error"]
    # A warning that several cases have, each with its own figures, is one.
    alike: dict[str, list[Remark]] = {}
    for remark in found:
        if remark.kind == "warning":
            alike.setdefault(re.sub(r"\d[\d.,]*", "#", remark.text), []).append(remark)
    for warnings in list(alike.values())[:_MOST_WARNINGS]:
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


def _how(document: Mapping[str, Any], columns: Sequence[tuple[Column, Any, Any]]) -> str:
    """Return how to read the table."""
    results = document["results"]
    text = (
        "Times: medians per trial, ± half of the 95 % interval. GB/s: each input read once, each output written once."
    )
    # A case without samples has the number that was asked for.
    batches = {entry["trials"] for entry in results if entry["mode"] == Mode.BATCH and entry["whole"]["series"]}
    if batches:
        most = max(batches)
        count = f"{most}" if len(batches) == 1 else f"{min(batches)} to {most}"
        trials = "trial" if batches == {1} else "trials"
        unnamed = "" if {entry["mode"] for entry in results} == {Mode.BATCH} else "Rows without a mode are batch. "
        text += f"\n{unnamed}Batch: {count} {trials} a sample."
    headings = [column.heading for column, _, _ in columns]
    if any(entry["rates"]["gbytes_per_s"] for entry in results):
        text += "\nOf copy: GB/s over that of the copy kernel with as many items."
        if "of peak" in headings:
            text += " Of peak: over the fastest copy or triad of this size."
    problem = peak_problem(document)
    if problem:
        text += f"\n{problem}"
    return f"{text}\ndocs/timing.md explains the columns; --quiet leaves these lines out."
