"""What interval the cases of a run reached, and at which level their times vary: process, round or sample."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...display.quantities import format_uncertainty
from ..stats.levels import advised, components, level_of_processes, mean_level, process_levels
from ..stats.series import LEAST_FOR_INTERVAL, Timed
from .model import CaseLevels, Result
from .rounds import by_case, pooled_series

#: Half of the interval, as a share, at which a run that fills a budget measures a case no further: a comparison of two
#: such runs nearly always decides at a threshold of 2 %.
TARGET = 0.007


def levels_of(results: Iterable[Result], process_s: float) -> tuple[CaseLevels, ...]:
    """Return the levels of each case that was measured in several processes.

    Parameters
    ----------
    results : iterable of Result
    process_s : float
        What the start of a process costs, all its cases together.
    """
    cases = [visits for visits in by_case(results).values() if len({visit.process for visit in visits}) > 1]
    found = [_levels(visits, process_s / len(cases)) for visits in cases]
    return tuple(sorted(filter(None, found), key=lambda levels: levels.position))


def _levels(visits: Sequence[Result], process_s: float) -> CaseLevels | None:
    blocks, processes, timed = _timed(visits)
    if len(set(processes)) < 2:
        return None
    name = _series_of(timed)
    spread = components(blocks, processes)
    pooled = pooled_series([visit.whole.series[name] for visit in timed], processes)
    assert pooled.summary is not None, "it has samples"
    samples = float(np.median([block.size for block in blocks]))
    rounds_advised, samples_advised = advised(
        spread,
        process_s,
        _median_of(timed, "warmup_measured_s"),
        _median_of(timed, "sampling_measured_s") / samples,
    )
    return CaseLevels(
        position=timed[0].position,
        series=name,
        processes=len(set(processes)),
        visits=len(timed),
        samples=int(samples),
        process_std=spread.process,
        round_std=spread.round,
        sample_std=spread.sample,
        dominant=spread.dominant,
        half_interval=pooled.summary.uncertainty(),
        rounds_advised=rounds_advised,
        samples_advised=samples_advised,
    )


def half_interval(visits: Sequence[Result]) -> float:
    """Return half of the 95 % interval of the time of a case, as a share; infinite where there is none.

    As `levels_of` has it, in little time: what the samples within processes show is looked at only if it decides.
    """
    blocks, processes, _ = _timed(visits)
    if len(set(processes)) < 2:
        return math.inf
    if sum(block.size for block in blocks) < LEAST_FOR_INTERVAL:
        return math.inf
    found = mean_level(process_levels(blocks, processes))
    if found.reach(0.95) <= TARGET:
        _, found = level_of_processes(blocks, processes)
    return math.expm1(min(float(found.reach(0.95)), 50.0))


def _timed(visits: Sequence[Result]) -> tuple[list[NDArray[np.float64]], list[int], list[Result]]:
    """Return the times of the visits that have some, their processes, and these visits."""
    done = [visit for visit in visits if visit.error is None]
    name = _series_of(done)
    timed = [visit for visit in done if visit.positive_ns(name)]
    return [np.array(visit.positive_ns(name)) for visit in timed], [visit.process for visit in timed], timed


def _series_of(done: Sequence[Result]) -> Timed:
    return "gpu_span" if any(visit.positive_ns("gpu_span") for visit in done) else "cpu_wall"


def _median_of(visits: Sequence[Result], name: str) -> float:
    known = [float(value) for visit in visits if isinstance(value := visit.protocol.get(name), int | float)]
    return float(np.median(known)) if known else 0.0


def _halving(processes: int) -> int:
    """Return with how many processes the interval of so many is about half as wide.

    It shrinks with 1/√k, and with the quantile of Student's t, which is large for few.
    """
    from scipy.special import stdtrit

    def width(count: int) -> float:
        return float(stdtrit(count - 1, 0.975)) / math.sqrt(count)

    return next(count for count in range(processes + 1, 5 * processes) if width(count) <= 0.505 * width(processes))


def precision_line(levels: Sequence[CaseLevels], results: Iterable[Result], *, fills_budget: bool = False) -> str:
    """Return in a line which intervals were reached and what would narrow them.

    Without several processes it is empty, or says that the time was up before there were any.

    Parameters
    ----------
    levels : sequence of CaseLevels
    results : iterable of Result
    fills_budget : bool
        Whether cases were measured until their interval was narrow or the time was up.
    """
    known = [(one.half_interval, one) for one in levels if one.half_interval is not None]
    if not known:
        if not fills_budget:
            return ""
        return "--budget had time for one process, so how much processes differ is not known: give three times as much."
    middle = float(np.median([half for half, _ in known]))
    most, widest = max(known, key=lambda pair: pair[0])
    name = next((result.name_with_n for result in results if result.position == widest.position), "a case")
    processes = max(one.processes for _, one in known)
    least = min(one.processes for _, one in known)
    number = f"{processes}" if least == processes else f"{least} to {processes}"
    by_round = sum(one.dominant == "round" for _, one in known)
    level = "rounds of a process" if 2 * by_round > len(known) else "processes"
    if len(known) == 1:
        reached = f"95 % interval reached in {number} processes: {format_uncertainty(most)}"
    else:
        reached = (
            f"95 % intervals reached in {number} processes: {format_uncertainty(middle)} (median), "
            f"{format_uncertainty(most)} at most ({name})"
        )
    spread = f"{reached}. Most of the spread is between {level}."
    if not fills_budget:
        return f"{spread} --processes {_halving(processes)} would about halve it."
    target = format_uncertainty(TARGET)
    wide = sum(half > TARGET for half, _ in known)
    if not wide:
        return f"{reached}. All are within {target}, the target of a run with --budget."
    cases = "1 case is" if wide == 1 else f"{wide} of {len(known)} cases are"
    return f"{spread} {cases} wider than the target of {target}: a longer --budget narrows them."
