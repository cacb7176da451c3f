"""The table that a benchmark prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .case import array_items
from .measurement import Summary
from .remarks import case_label, remarks
from .results import case_key
from .rounds import pooled
from .statistics import significant

__all__ = ["copy_shares", "format_count", "format_ns", "number", "percent", "results_table", "time_text"]

_STYLES = {"error": "bold red", "warning": "yellow", "clock": "yellow", "software": "bold yellow", "no GPU": "yellow"}


def format_ns(value: float | None) -> str:
    """Return a time with three significant digits and its unit."""
    if value is None:
        return "–"
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if value >= scale:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{value:.0f} ns"


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_count(n: int) -> str:
    """Return a count, as a power of two where it is one and large."""
    return f"2^{n.bit_length() - 1}" if n >= 1024 and n & (n - 1) == 0 else f"{n:,}"


def number(value: float | None, suffix: str = "") -> str:
    """Return a number with three digits."""
    return "–" if value is None else f"{_three_digits(value)}{suffix}"


def percent(share: float | None) -> str:
    """Return a share."""
    return number(None if share is None else 100 * share, " %")


def time_text(series: Mapping[str, Any] | None, entry: Mapping[str, Any], step_ns: float | None) -> str:
    """Return a median with the digits that mean something: none below its interval or the step of the clock."""
    if series is None or series["summary"] is None:
        return "–"
    # A batch spreads a step over its dispatches.
    return significant(series["summary"]["median_ns"], Summary(**series["summary"]), (step_ns or 0.0) / entry["trials"])


def _verdict(entry: Mapping[str, Any]) -> Text:
    if entry["error"] is not None:
        return Text("failed", style="bold red")
    return Text("right", style="green") if entry["correct"] else Text("WRONG", style="bold red")


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


def results_table(document: Mapping[str, Any], yardstick: str) -> RenderableType:
    """Return the table of a run: a row per kernel, and one for the whole primitive.

    Parameters
    ----------
    document : mapping
        A results document.
    yardstick : str
        The primitive whose rate, with as many items and in the same mode, the others' are given as a share of.
    """
    document = pooled(document)
    device, results = document["device"], document["results"]
    shares = copy_shares(document, yardstick)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    table.title = escape(
        f"{device['adapter']} · {device['backend']} · {device['driver']} · subgroups of "
        f"{device['subgroup_size'] or 'none'}"
    )
    table.add_column("primitive, kernel", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for heading in ("GPU time", "CPU wall", "GB/s", "G items/s", "of copy", "of peak"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for entry in results:
        step_ns = device["tick_step_ns"]
        for kernel in entry["kernels"]:
            table.add_row(f"  {escape(kernel['label'])}", "", time_text(kernel, entry, step_ns), style="dim")
        rates, whole, share = entry["rates"], entry["whole"], shares[case_key(entry)]
        table.add_row(
            Text(case_label(entry), style="bold"),
            format_count(entry["n"]),
            time_text(whole["series"].get("gpu_span"), entry, step_ns),
            time_text(whole["series"].get("cpu_wall"), entry, None),
            number(rates["gbytes_per_s"]),
            number(rates["gitems_per_s"]),
            percent(share),
            percent(rates.get("share_of_peak")),
            _verdict(entry),
            end_section=True,
        )
    return Group(table, _notes(device, results))


def _notes(device: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Text:
    notes = Text()
    found = remarks(device, results)
    # Of what the results themselves warn of, the first few.
    of_results = [remark for remark in found if remark.kind == "warning"]
    for remark in found:
        if remark not in of_results[5:]:
            prefix = "warning: " if remark.kind == "warning" else ""
            notes.append(f"{prefix}{remark.text}\n", style=_STYLES[remark.kind])
    notes.append(_how(results), style="dim")
    return notes


def _how(results: Sequence[Mapping[str, Any]]) -> str:
    # Not from the first result: a case that failed has the number that was asked for, whatever its mode.
    trials = max((entry["trials"] for entry in results), default=1)
    if {entry["mode"] for entry in results} == {"batch"}:
        sampled = f"Medians per trial, {trials} trials a sample, caches as the trials leave them."
    else:
        sampled = f"Medians per trial; batch: {trials} trials a sample. A row without a word for its mode is of batch."
    return (
        f"{sampled} Bytes are those that had to move: each input read once, each output written once.\n"
        f"Quote the GPU time of a kernel to compare kernels, that of the primitive's row (first begin to last end) to "
        f"compare GPUs; the CPU wall is what a caller waits, with one submission shared by {trials} trials "
        f"(--trials 1 for the latency of a single call). «of copy» is the share of this adapter's own copy kernel "
        f"at the same n; «of peak» that of the faster of copy and triad with arrays of that size (mode cold: the "
        f"largest), both measured in this run."
    )
