"""Rounds of a case: separate visits to it. Tables and pictures pool them; `compare` takes them as blocks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..stats.energy import pooled_energy
from ..stats.levels import level_of_processes
from ..stats.series import Series, Summary
from ..stats.statistics import summarize
from .model import CaseKey, Kernel, Rates, Result, Results, Whole

_Times = TypeVar("_Times", bound=Series)


def by_case(results: Iterable[Result]) -> dict[CaseKey, list[Result]]:
    """Return results by case; several results of a case are its rounds."""
    cases: dict[CaseKey, list[Result]] = {}
    for result in results:
        cases.setdefault(result.key, []).append(result)
    return cases


def pooled(document: Results) -> Results:
    """Return a results document with one result per case: the samples of all its rounds together.

    With several processes, the time is the geometric mean of the medians of the processes, and its interval is that of
    Student's t over them. With several rounds of one process, the interval of the median of all samples is at least as
    wide as that of Student's t over the medians of the rounds. With fewer than six samples in all there is no interval,
    and the time is their median. A pooled result has no raw ``samples``. Many kernels of one label are one.
    """
    cases = by_case(document.results).values()
    return replace(document, results=tuple(_pool(rounds) if len(rounds) > 1 else _alone(rounds[0]) for rounds in cases))


def _alone(result: Result) -> Result:
    kernels = result.labelled_kernels.values()
    return replace(result, kernels=tuple(kernels)) if len(kernels) < len(result.kernels) else result


def _pool(rounds: Sequence[Result]) -> Result:
    done = [result for result in rounds if result.error is None]
    first = next((result for result in rounds if not result.correct), rounds[0])
    if not done:
        return first
    # By label: a round with another shape or strategy may have other kernels.
    by_label: dict[str, list[tuple[Kernel, int]]] = {}
    for result in done:
        for label, kernel in result.labelled_kernels.items():
            by_label.setdefault(label, []).append((kernel, result.process))
    by_name: dict[str, list[tuple[Series, int]]] = {}
    for result in done:
        for name, series in result.whole.series.items():
            by_name.setdefault(name, []).append((series, result.process))
    whole = {name: pooled_series(*_columns(visits)) for name, visits in by_name.items()}
    span, wall = (None if name not in whole else whole[name].time_ns for name in ("gpu_span", "cpu_wall"))
    return replace(
        first,
        kernels=tuple(_pooled_kernel(kernels) for kernels in by_label.values()),
        whole=Whole(gpu_span_ns=span, cpu_wall_ns=wall, series=whole),
        work=done[0].work,
        rates=_rates(done[0], span or wall),
        cold_start_ns=next((result.cold_start_ns for result in done if result.cold_start_ns is not None), None),
        energy=pooled_energy([result.energy for result in done if result.energy is not None]),
        clock_moved=any(result.clock_moved for result in done),
        other_load=max((result.other_load for result in done if result.other_load is not None), default=None),
        canary_ns=tuple(time for result in done for time in result.canary_ns),
        warnings=tuple(sorted({warning for result in done for warning in result.warnings} | _mixed(done))),
        samples=(),
        ticks=None,
    )


def _mixed(done: Sequence[Result]) -> set[str]:
    """Return a warning if the shaders were edited during the run: each process reads them again."""
    if len({result.shaders_sha256 for result in done}) < 2:
        return set()
    return {"the shaders changed during the run, and some processes measured other ones: measure again"}


def _rates(result: Result, time_ns: float | None) -> Rates:
    """Return the rates of a result for another time."""
    return result.rates.scaled(result.time_ns / time_ns) if time_ns and result.time_ns else result.rates


def _columns(visits: Sequence[tuple[_Times, int]]) -> tuple[list[_Times], list[int]]:
    return [series for series, _ in visits], [process for _, process in visits]


def _pooled_kernel(visits: Sequence[tuple[Kernel, int]]) -> Kernel:
    series = pooled_series(*_columns(visits))
    each_ns = [time for kernel, _ in visits for time in kernel.each_ns or ()]
    return replace(
        visits[0][0],
        each_ns=(min(each_ns), max(each_ns)) if each_ns else None,
        samples_ns=series.samples_ns,
        summary=series.summary,
        invalid=series.invalid,
        gpu_ns=series.time_ns,
    )


def pooled_series(rounds: Sequence[Series], processes: Sequence[int] | None = None) -> Series:
    """Return one series with the samples of all rounds; `processes` has the process of each, if there are several."""
    samples = tuple(value for series in rounds for value in series.samples_ns)
    invalid = dict(sum((Counter(series.invalid) for series in rounds), Counter[str]()))
    if not samples:
        return Series(rounds[0].name, (), None, invalid)
    summary = summarize(samples)
    if summary.ci_low_ns is None or summary.ci_high_ns is None:
        return Series(rounds[0].name, samples, summary, invalid)
    if processes is not None and len(set(processes)) > 1:
        return Series(rounds[0].name, samples, _of_processes(summary, rounds, processes), invalid)
    medians = [float(np.median(series.samples_ns)) for series in rounds if series.samples_ns]
    if len(medians) > 1:
        from scipy.special import stdtrit

        reach = float(stdtrit(len(medians) - 1, 0.975)) * float(np.std(medians, ddof=1)) / math.sqrt(len(medians))
        low, high = max(summary.median_ns - reach, min(samples)), min(summary.median_ns + reach, max(samples))
        summary = replace(summary, ci_low_ns=min(summary.ci_low_ns, low), ci_high_ns=max(summary.ci_high_ns, high))
    return Series(rounds[0].name, samples, summary, invalid)


def _of_processes(summary: Summary, rounds: Sequence[Series], processes: Sequence[int]) -> Summary:
    """Return the summary of all samples with the time and the interval of several processes."""
    # Shorter than a step of the clock is 0, which has no logarithm.
    timed = [(np.array(s.positive_ns), p) for s, p in zip(rounds, processes, strict=True) if s.positive_ns]
    blocks, of_blocks = [block for block, _ in timed], [process for _, process in timed]
    if len(set(of_blocks)) < 2:
        return summary
    levels, found = level_of_processes(blocks, of_blocks)
    reach = float(found.reach(0.95))
    # Two processes may lie so far apart that their interval says nothing.
    low, high = math.exp(found.value - min(reach, 50.0)), math.exp(found.value + min(reach, 50.0))
    return replace(
        summary,
        ci_low_ns=low,
        ci_high_ns=high,
        levels_ns=tuple(np.exp(levels).tolist()),
    )
