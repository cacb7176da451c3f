"""Remarks on results, to be shown before their figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...display.quantities import format_time
from ...settings import SHADER_CHECKS, ShaderChecks
from ..results.columns import QUANTITIES
from ..results.model import Device, Result
from ..sampling.samples import CLOCK_MOVED, LEFT_OUT
from ..stats.series import LEAST_FOR_INTERVAL

#: In front of a time that is the mean of processes which differ.
DIFFER_MARK = "*"

#: What a run did about the GPU's clock, by `Context.clock`.
CLOCK_WORDS = {
    "held": "The GPU's clock was held by this run (gw.hold_clock).",
    "not held": "The GPU's clock was not held: it followed the load, and calls after a pause were slower.",
}

# Warnings of `measure` for single cases, shown here in one line for all cases.
_CUT = re.compile(r"batch_trials=(\d+) was cut to (\d+)")
_LONG_TRIAL = re.compile(r"one trial takes ")
_MOST_LISTED = 4


class Remark(NamedTuple):
    """One remark.

    Attributes
    ----------
    kind : str
        ``"error"`` (a case failed or is wrong), ``"warning"`` (of a result itself), ``"missing"`` (a quantity that was
        asked for), ``"trials"`` (not as many as asked for), ``"checks"`` (at run time), ``"unchecked"`` (without a
        reference), ``"clock"``, ``"processes"`` (that differ), ``"load"`` (other work on the machine), ``"software"``
        (the adapter is no GPU) or ``"no GPU"`` (times).
    text : str
    cases : tuple of str
        The names with n of the results that it is about; empty for all.
    """

    kind: str
    text: str
    cases: tuple[str, ...] = ()


def group_alike(found: Iterable[Remark]) -> list[list[Remark]]:
    """Return remarks in groups that differ only in figures; failures are by themselves."""
    groups: dict[tuple[str, str], list[Remark]] = {}
    for remark in found:
        alike = remark.text if remark.kind == "error" else re.sub(r"\d[\d.,]*", "#", remark.text)
        groups.setdefault((remark.kind, alike), []).append(remark)
    return list(groups.values())


def listed(names: Sequence[str]) -> str:
    """Return some of the names, and how many others there are."""
    if len(names) <= _MOST_LISTED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_LISTED])} and {len(names) - _MOST_LISTED} more"


def remarks(device: Device, results: Sequence[Result]) -> list[Remark]:
    """Return remarks on pooled results: failures first, then warnings, similar ones as one.

    Parameters
    ----------
    device : Device
    results : sequence of Result
    """
    found: list[Remark] = []
    by_warning: dict[str, list[str]] = {}
    moved: list[str] = []
    left_out: list[str] = []
    for result in results:
        where = result.name_with_n
        problem = result.error or result.mismatch
        if problem:
            found.append(Remark("error", f"{where}: {problem}", (where,)))
        # One line for each kind that concerns the clock.
        moved += [where] * result.clock_moved
        left_out += [where] * any(LEFT_OUT in warning for warning in result.warnings)
        for warning in result.warnings:
            if not (CLOCK_MOVED in warning or LEFT_OUT in warning or _CUT.match(warning) or _LONG_TRIAL.match(warning)):
                by_warning.setdefault(warning, []).append(where)
    found += [Remark("warning", warning, tuple(by_warning[warning])) for warning in sorted(by_warning)]
    found += _missing(results) + _trials(results) + _checks(results)
    # On a CPU adapter, the canary shows other work of the machine rather than a clock.
    on_cpu = device.is_cpu
    if moved:
        what = "The speed of this machine" if on_cpu else "The clock"
        text = f"{what} moved all through {len(moved)} of {len(results)} cases."
        found.append(Remark("clock", text, tuple(moved)))
    unchecked = [result.name_with_n for result in results if result.correct and not result.checked]
    if unchecked and device.limits:  # nothing that another tool measured is checked
        text = f"Not checked: {listed(unchecked)}. A wrong result passes; give a reference=."
        found.append(Remark("unchecked", text, tuple(unchecked)))
    if left_out:
        how = "taken while the machine was slower or faster" if on_cpu else LEFT_OUT
        text = f"In {len(left_out)} of {len(results)} cases some samples were {how}, and are left out."
        found.append(Remark("clock", text, tuple(left_out)))
    differ = [result for result in results if result.timed is not None and result.timed.levels_differ]
    if differ:
        text = (
            f"{DIFFER_MARK} Processes differ by more than 20 %, so the time may be that of none of them: "
            f"{listed([f'{result.name_with_n} ({_levels(result)})' for result in differ])}."
        )
        found.append(Remark("processes", text, tuple(result.name_with_n for result in differ)))
    loaded = [result for result in results if result.is_loaded]
    if loaded:
        loads = sorted(result.other_load or 0.0 for result in loaded)
        ends = dict.fromkeys(f"{100 * load:.0f}" for load in (loads[0], loads[-1]))
        what = "all times are" if on_cpu else "CPU walls are"
        text = (
            f"Other work used {' to '.join(ends)} % of this machine's processors during {len(loaded)} of "
            f"{len(results)} cases: {what} of a busy machine."
        )
        found.append(Remark("load", text, tuple(result.name_with_n for result in loaded)))
    if on_cpu:
        text = "This adapter is software on the CPU: these figures are the CPU's, and say nothing about any GPU."
        found.append(Remark("software", text))
    # A file of another tool has no limits of an adapter, and its times are what the tool times.
    if device.tick_period_ns is None and device.limits:
        text = "No GPU times: the adapter has no timestamps. Rates are from the CPU wall."
        found.append(Remark("no GPU", text))
    return found


def _missing(results: Sequence[Result]) -> list[Remark]:
    """Return a remark for each reason why a quantity that was asked for has no number."""
    found: list[Remark] = []
    for one in QUANTITIES:
        by_reason: dict[str, list[str]] = {}
        for result in results:
            reason = None if one.reason is None else one.reason(result)
            if reason is not None:
                by_reason.setdefault(reason, []).append(result.name_with_n)
        for reason, names in by_reason.items():
            text = f"No {one.heading} of {listed(names)}: {reason}."
            found.append(Remark("missing", text, tuple(names)))
    return found


def _checks(results: Sequence[Result]) -> list[Remark]:
    """Return remarks on run-time checks: which case has them, and what they cost where a case was run with several."""
    by_level: dict[ShaderChecks | None, list[str]] = {}
    by_case: dict[tuple[Any, ...], dict[str, Result]] = {}
    for result in results:
        level, axes = result.shader_checks, {**result.axes, "shader_checks": ""}
        if level not in (None, "none", result.axes.get("shader_checks")):
            by_level.setdefault(level, []).append(result.name_with_n)
        if level is not None and result.timed is not None and "shader_checks" in result.axes:
            by_case.setdefault((result.primitive, result.n, result.mode, *axes.items()), {})[level] = result
    found = [
        Remark("checks", f"Run-time checks of shaders, {level}: {listed(names)}.", tuple(names))
        for level, names in by_level.items()
    ]
    for of_case in by_case.values():
        times = {level: of_case[level].time_ns or 0.0 for level in SHADER_CHECKS if level in of_case}
        (least, base_ns), *others = times.items()
        if others:
            costs = ", ".join(f"{level} {time_ns / base_ns:.3g}" for level, time_ns in others)
            first = of_case[least]
            name = " ".join([first.primitive, *(f"{k}={v}" for k, v in first.axes.items() if k != "shader_checks")])
            text = f"What checks cost {name}, n = {first.n:,}: {costs} × the time of {least}."
            found.append(Remark("checks", text, tuple(result.name_with_n for result in of_case.values())))
    return found


def _levels(result: Result) -> str:
    """Return the fastest and the slowest process of a pooled result."""
    levels_ns = () if result.timed is None else result.timed.levels_ns
    return f"{format_time(min(levels_ns))} to {format_time(max(levels_ns))}"


def _trials(results: Sequence[Result]) -> list[Remark]:
    """Return remarks on the number of trials per sample."""
    found: list[Remark] = []
    by_count: dict[tuple[int, int], list[str]] = {}
    long: list[str] = []
    few: list[str] = []
    for result in results:
        where = result.name_with_n
        cuts = [(int(cut[1]), int(cut[2])) for warning in result.warnings if (cut := _CUT.match(warning))]
        if cuts:
            by_count.setdefault(min(cuts), []).append(where)
        if any(_LONG_TRIAL.match(warning) for warning in result.warnings):
            long.append(f"{where} ({format_time(result.time_ns)})")
        few += [where] * (result.timed is not None and result.timed.interval_ns is None)
    for asked in sorted({asked for asked, _ in by_count}):
        cases = [(cut, names) for (wanted, cut), names in sorted(by_count.items()) if wanted == asked]
        each = "; ".join(f"{cut} in {listed(names)}" for cut, names in cases)
        text = f"Fewer than --trials {asked} a sample, so that no submission is too long for a watchdog: {each}."
        found.append(Remark("trials", text, tuple(name for _, names in cases for name in names)))
    if long:
        text = f"A single trial is longer than a submission should be: {listed(long)}."
        found.append(Remark("trials", text, tuple(long)))
    if few:
        least = LEAST_FOR_INTERVAL
        text = f"Fewer than {least} samples, so there is no interval (a longer --sampling-s takes more): {listed(few)}."
        found.append(Remark("trials", text, tuple(few)))
    return found
