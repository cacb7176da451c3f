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
from .distributions import UNIFORM
from .measurement import Summary
from .rounds import pooled
from .series import CLOCK_MOVED, LEFT_OUT
from .statistics import significant

__all__ = ["results_table"]


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


def _cell(value: float | None, suffix: str = "") -> str:
    return "–" if value is None else f"{_three_digits(value)}{suffix}"


def _time(series: Mapping[str, Any] | None, entry: Mapping[str, Any], step_ns: float | None) -> str:
    """Return a median with the digits that mean something: none below its interval or the step of the clock."""
    if series is None or series["summary"] is None:
        return "–"
    # A batch spreads a step over its dispatches.
    return significant(series["summary"]["median_ns"], Summary(**series["summary"]), (step_ns or 0.0) / entry["trials"])


def _verdict(entry: Mapping[str, Any]) -> Text:
    if entry["error"] is not None:
        return Text("failed", style="bold red")
    return Text("right", style="green") if entry["correct"] else Text("WRONG", style="bold red")


def _name(entry: Mapping[str, Any]) -> str:
    # The usual mode and data are left out, as every row would have them.
    usual = ("batch", UNIFORM)
    words = [entry["primitive"], entry["op"], entry["datatype"], entry["case"].get("distribution"), entry["mode"]]
    return " ".join(word for word in words if word and word not in usual)


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
    copy_rates = {
        (entry["n"], entry["mode"]): entry["rates"]["gbytes_per_s"]
        for entry in results
        if entry["primitive"] == yardstick and entry["rates"]["gbytes_per_s"]
    }
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
            table.add_row(f"  {escape(kernel['label'])}", "", _time(kernel, entry, step_ns), style="dim")
        copy = copy_rates.get((array_items(entry["primitive"], entry["n"]), entry["mode"]))
        rates, whole = entry["rates"], entry["whole"]
        share = 100 * rates["gbytes_per_s"] / copy if copy and rates["gbytes_per_s"] else None
        table.add_row(
            Text(_name(entry), style="bold"),
            format_count(entry["n"]),
            _time(whole["series"].get("gpu_span"), entry, step_ns),
            _time(whole["series"].get("cpu_wall"), entry, None),
            _cell(rates["gbytes_per_s"]),
            _cell(rates["gitems_per_s"]),
            _cell(share, " %"),
            _cell(None if (peak := rates.get("share_of_peak")) is None else 100 * peak, " %"),
            _verdict(entry),
            end_section=True,
        )
    return Group(table, _notes(device, results))


def _notes(device: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Text:
    notes = Text()
    for entry in results:
        problem = entry["error"] or entry["mismatch"]
        if problem:
            notes.append(f"{_name(entry)} n={entry['n']:,}: {problem}\n", style="bold red")
    clock = (CLOCK_MOVED, LEFT_OUT)  # one line for all of each kind
    warnings = {w for entry in results for w in entry["warnings"] if not any(words in w for words in clock)}
    for warning in sorted(warnings)[:5]:
        notes.append(f"warning: {warning}\n", style="yellow")
    moved = sum(entry["clock_moved"] for entry in results)
    if moved:
        notes.append(f"The clock moved all through {moved} of {len(results)} cases.\n", style="yellow")
    left_out = sum(any(LEFT_OUT in w for w in entry["warnings"]) for entry in results)
    if left_out:
        notes.append(
            f"In {left_out} of {len(results)} cases some samples were {LEFT_OUT}, and are left out.\n", style="yellow"
        )
    if device["adapter_type"] == "CPU":
        notes.append(
            "This adapter is software on the CPU: these figures are the CPU's, and say nothing about any GPU.\n",
            style="bold yellow",
        )
    if not any(entry["whole"]["gpu_span_ns"] for entry in results):
        notes.append("No GPU times: the adapter has no timestamps. Rates are from the CPU wall.\n", style="yellow")
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
