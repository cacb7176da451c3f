"""The calibration that a page measured, from its timestamps: judged as a calibration of a device here is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..calibrate.calibration import Calibration
from ..calibrate.probes import Passes, TickCheck, cache_knee_bytes, floors_from, fma_flops, median_or_none, speed_from
from .browser_model import FmaPasses, PageCalibration
from .browser_model import Passes as PagePasses

#: WebGPU resolves timestamps to nanoseconds.
PERIOD_NS = 1.0
#: How a page waits for the GPU.
WAIT_METHOD = "onSubmittedWorkDone"

#: Reads and writes of an array by each kernel of the ceilings.
_MOVED_ARRAYS = {"copy": 2, "triad": 3}


def absolute(pairs: Sequence[Sequence[int | None]], base: int) -> NDArray[np.uint64]:
    """Return timestamps relative to `base` as counts, shape (passes, 2); one that was never written is 0."""
    counts = [[0 if stamp is None else base + stamp for stamp in pair] for pair in pairs]
    return np.array(counts, dtype=np.uint64).reshape(-1, 2)


def calibration_of_page(found: PageCalibration, base: int, now_step_ns: float) -> Calibration | None:
    """Return the calibration of a page's file.

    Parameters
    ----------
    found : PageCalibration
    base : int
        What timestamps are relative to.
    now_step_ns : float
        The step of the CPU's clock: a wall may be longer than it was read by as much.

    Returns
    -------
    Calibration or None
        None if no check of the tick has timestamps.
    """

    def judge(passes: PagePasses) -> Passes:
        ticks = absolute(passes.ticks, base)[:, None, :]
        return Passes.judge(ticks, passes.wall + now_step_ns, PERIOD_NS)

    check = _tick_check(found.tick_checks, base)
    if check is None:
        return None
    step_ns, floors = found.tick_step, found.floors
    submissions = floors.submissions
    speeds: dict[str, list[dict[str, float]]] = {"copy": [], "triad": []}
    for ceiling in sorted(found.ceilings, key=lambda ceiling: ceiling.array_bytes):
        times = [float(ns) / passes.trials for passes in ceiling.passes for ns in judge(passes).lengths_ns]
        if times:
            name, size = ceiling.name, ceiling.array_bytes
            speeds[name].append(speed_from(size, _MOVED_ARRAYS[name] * size, float(np.median(times))))
    return Calibration(
        device={},
        tick_period_ns=PERIOD_NS,
        tick_step_ns=step_ns,
        tick_check=check,
        floors_ns=floors_from(judge(floors.one), judge(floors.many), max(2, floors.many.trials), submissions, step_ns),
        synchronising_ns={
            "submit": median_or_none([submit for submit, _ in submissions]),
            "wait_when_idle": None,
            "wait_after_work": median_or_none([wait for _, wait in submissions]),
            "readback_4_bytes": None,
        },
        wait_method=WAIT_METHOD,
        copy=tuple(speeds["copy"]),
        triad=tuple(speeds["triad"]),
        cache_bytes=cache_knee_bytes(speeds["copy"]),
        fma_gflops=_fma_gflops(found.fma, judge),
    )


def _tick_check(checks: Sequence[PagePasses], base: int) -> TickCheck | None:
    """Return the first good check of the tick, else the last one."""
    found: list[TickCheck] = []
    for check in checks:
        stamps = absolute(check.ticks, base)
        # Not compared with the wall, unlike all other spans: this comparison is the result.
        if len(stamps) and stamps[0, 0] and stamps[0, 1] > stamps[0, 0]:
            found.append(TickCheck(float(stamps[0, 1] - stamps[0, 0]) * PERIOD_NS, float(check.wall)))
    return next((check for check in found if check.ok), found[-1] if found else None)


def _fma_gflops(runs: Sequence[FmaPasses], judge: Callable[[PagePasses], Passes]) -> float | None:
    speeds = [fma_flops(run.workgroups) * run.trials / float(ns) for run in runs for ns in judge(run).lengths_ns]
    return median_or_none(speeds)
