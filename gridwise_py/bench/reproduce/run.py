"""Runs experiments, each a published claim on GPU timing, and returns the document with their verdicts."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import wgpu

from ...errors import DeviceError, LimitError, TimingError
from ..results.context import run_context
from ..sweep.worker import WorkerError
from .lab import Lab
from .model import Experiment, Outcome, Reading, Readings, Verdict

SCHEMA = "gridwise.reproduce"


def reproduce(
    lab: Lab, experiments: Sequence[Experiment], progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Run experiments one after another.

    A failure, such as too little memory, makes that experiment one that cannot be shown; the others go on. After an
    interrupt, what was finished before is returned, and ``complete`` is false.

    Parameters
    ----------
    lab : Lab
    experiments : sequence of Experiment
    progress : callable
        Called with the name of each.

    Returns
    -------
    dict
        JSON data: a file of ``gridwise reproduce``.

    Raises
    ------
    KeyboardInterrupt
        If nothing was finished before it.
    """
    entries: list[dict[str, Any]] = []
    try:
        for number, each in enumerate(experiments, start=1):
            progress(f"{number} of {len(experiments)}: {each.name}")
            readings, found = _run(each, lab)
            entries.append(_entry(each, readings, found))
            gc.collect()  # devices are in reference cycles, with their memory
    except KeyboardInterrupt:
        if not entries:
            raise
    protocol = {
        "repeats": lab.repeats, "cold_repeats": lab.cold_repeats, "scale": lab.scale, "warmup_s": lab.warmup_s,
        "idle_s": lab.idle_s, "processes": lab.processes, "seed": lab.seed,
    }  # fmt: skip
    return {
        "schema": SCHEMA, "schema_version": 1, **run_context(lab.device), "protocol": protocol,
        "complete": len(entries) == len(experiments), "experiments": entries,
    }  # fmt: skip


def _run(each: Experiment, lab: Lab) -> tuple[Readings, Outcome]:
    obstacle = each.obstacle(is_cpu=lab.is_cpu, has_timestamps=lab.has_timestamps)
    if obstacle is not None:
        return {}, obstacle
    try:
        readings = each.measure(lab)
    except (DeviceError, LimitError, TimingError, wgpu.GPUError, MemoryError, WorkerError) as error:
        return {}, Outcome(Verdict.CANNOT, f"{type(error).__name__}: {error}")
    return readings, each.judged(readings)


def _entry(each: Experiment, readings: Readings, found: Outcome) -> dict[str, Any]:
    measured: dict[str, Any] = {}
    for name, samples in readings.items():
        reading = Reading.of(samples, each.unit) if samples else None
        ends = {end: getattr(reading, end, None) for end in ("median", "low", "high")}
        measured[name] = {"unit": each.unit, **ends, "samples": list(samples)}
    return {
        "name": each.name, "claim": each.claim, "source": each.source, "verdict": found.verdict.value,
        "reason": found.reason, "measured": measured,
    }  # fmt: skip
