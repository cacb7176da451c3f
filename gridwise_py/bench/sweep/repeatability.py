"""Learns how much processes differ on a device, by measuring the same cases in several of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

import numpy as np
import wgpu

from ...internals import context_of
from ..calibrate.repeatability import Spread, store_spreads, time_class_ns
from ..cases.case import Case
from ..cases.mode import MODES, Mode
from ..results.model import Result, Results
from ..results.rounds import by_case
from ..sampling.protocol import SamplingProtocol
from ..stats.levels import process_levels
from ..stats.series import Timed
from .runner import Request, RunProgress, run_jobs
from .suite import Job, in_rounds

#: With six processes, the spread is known within a factor of 1.6 in two of three cases.
LEARNING_PROCESSES = 6
_PRIMITIVES = ("copy", "reduce", "scan")
_SIZES, _SIZES_ON_CPU = (1 << 12, 1 << 16, 1 << 20, 1 << 24), (1 << 10, 1 << 14, 1 << 17)
_PROTOCOL = SamplingProtocol(timeout_s=0.6, warmup_s=0.1, batch_trials=10)
# Equal levels do not show that there is no spread: a clock has steps.
_LEAST_LOG_STD = 1e-4


def learn_repeatability(
    device: wgpu.GPUDevice,
    adapter: int | str | None,
    *,
    processes: int = LEARNING_PROCESSES,
    progress: RunProgress | None = None,
) -> tuple[tuple[Spread, ...], Results]:
    """Measure some cases in several processes, and store how much their levels differ.

    Parameters
    ----------
    device : wgpu.GPUDevice
    adapter : int, str or None
        The same, as `request_device` takes it: for the worker processes.
    processes : int
        At least 2.
    progress : RunProgress, optional

    Returns
    -------
    tuple of Spread
    Results
        The measurements.
    """
    capabilities = context_of(device).capabilities
    sizes = _SIZES_ON_CPU if capabilities.is_cpu else _SIZES
    modes = [Mode(mode) for mode in MODES if mode != Mode.COLD or context_of(device).has_timestamps]
    cases = [Case.build(name, n, "u32", "add") for n in sizes for name in _PRIMITIVES]
    jobs = [Job(case, mode, i) for i, (case, mode) in enumerate((case, mode) for case in cases for mode in modes)]
    request = Request(in_rounds(jobs, 1, 0), _PROTOCOL, processes=processes, order_seed=0)
    document = run_jobs(request, adapter, progress=progress)
    found = spreads_of(document)
    store_spreads(device, found)
    return found, document


def spreads_of(document: Results) -> tuple[Spread, ...]:
    """Return how much the processes of a document differ, by mode, clock and length."""
    variances: dict[tuple[str, Timed, float | None], list[float]] = {}
    degrees: dict[tuple[str, Timed, float | None], int] = {}
    for key, visits in by_case(document.results).items():
        for series in get_args(Timed):
            levels = _levels([visit for visit in visits if visit.error is None], series)
            if levels.size > 1:
                place = (key.mode.value, series, time_class_ns(math.exp(levels.mean())))
                variances.setdefault(place, []).append(float(levels.var(ddof=1)))
                # The cases of a process share its state: further ones add little to what is known.
                degrees[place] = max(degrees.get(place, 0), levels.size - 1)
    found: list[Spread] = []
    for place, values in sorted(variances.items(), key=lambda one: (*one[0][:2], one[0][2] or math.inf)):
        mode, series, below_ns = place
        log_std = max(math.sqrt(float(np.mean(values))), _LEAST_LOG_STD)
        found.append(Spread(mode=mode, series=series, below_ns=below_ns, log_std=log_std, degrees=degrees[place]))
    return tuple(found)


def _levels(visits: Sequence[Result], series: str) -> np.ndarray:
    timed = [(np.array(times_ns), visit.process) for visit in visits if (times_ns := visit.positive_ns(series))]
    return process_levels([block for block, _ in timed], [process for _, process in timed])
