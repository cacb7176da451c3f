"""What interval the cases of a run reached, and at which level their times vary: process, round or sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...display.quantities import format_uncertainty
from ..stats.levels import advised, components
from .model import CaseLevels, Result
from .rounds import by_case, pooled_series

__all__ = ["levels_of", "precision_line"]


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
    done = [visit for visit in visits if visit.error is None]
    name = "gpu_span" if any(visit.positive_ns("gpu_span") for visit in done) else "cpu_wall"
    timed = [visit for visit in done if visit.positive_ns(name)]
    processes = [visit.process for visit in timed]
    if len(set(processes)) < 2:
        return None
    blocks = [np.array(visit.positive_ns(name)) for visit in timed]
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


def _median_of(visits: Sequence[Result], name: str) -> float:
    known = [float(value) for visit in visits if isinstance(value := visit.protocol.get(name), int | float)]
    return float(np.median(known)) if known else 0.0


def precision_line(levels: Sequence[CaseLevels], results: Iterable[Result]) -> str:
    """Return in a line which intervals were reached and what would narrow them; empty without several processes."""
    known = [(one.half_interval, one) for one in levels if one.half_interval is not None]
    if not known:
        return ""
    middle = float(np.median([half for half, _ in known]))
    most, widest = max(known, key=lambda pair: pair[0])
    name = next((result.name_with_n for result in results if result.position == widest.position), "a case")
    processes = widest.processes
    by_round = sum(one.dominant == "round" for _, one in known)
    level = "rounds of a process" if 2 * by_round > len(known) else "processes"
    if len(known) == 1:
        reached = f"95 % interval reached in {processes} processes: {format_uncertainty(most)}"
    else:
        reached = (
            f"95 % intervals reached in {processes} processes: {format_uncertainty(middle)} (median), "
            f"{format_uncertainty(most)} at most ({name})"
        )
    return f"{reached}. Most of the spread is between {level}. --processes {4 * processes} would about halve it."
