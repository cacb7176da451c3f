"""Measures several primitives for the same work in turns, so that a change of the machine affects all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import wgpu

from ..cases.benchmarked import Benchmark
from ..cases.mode import ModeLike
from ..stats.verdict import Pair, Verdict
from .checker import Check
from .machine_load import LoadWatch, is_busy
from .measure import measure_ready, prepare
from .measurement import Measurement
from .protocol import SamplingProtocol


def measure_in_turns(
    benchmarks: Mapping[str, Benchmark],
    *,
    rounds: int,
    protocol: SamplingProtocol,
    mode: ModeLike,
    check: Check,
    device: wgpu.GPUDevice,
) -> dict[str, list[Measurement]]:
    """Measure each benchmark once per round, in a new random order each round.

    Parameters
    ----------
    benchmarks : mapping from str to Benchmark
    rounds : int
    protocol : SamplingProtocol
        Of one measurement.
    mode, device
        See `gw.measure`.
    check : bool or callable
        See `gw.measure`; in the first round. One with a wrong result is not measured again.

    Returns
    -------
    dict from str to list of Measurement
    """
    rng = np.random.default_rng(protocol.seed)
    found: dict[str, list[Measurement]] = {name: [] for name in benchmarks}
    watch = LoadWatch()  # of all rounds: one is short for the counters, and its share uncertain
    for round_number in range(rounds):
        for name in rng.permutation(list(benchmarks)):
            taken = found[str(name)]
            if taken and not taken[0].correct:
                continue
            ready = prepare(benchmarks[name], mode, check=check if round_number == 0 else False, device=device)
            taken.append(measure_ready(ready, {}, protocol))
            ready.put_back()
    load = watch.share()
    return {name: [replace(m, other_load=load) for m in taken] for name, taken in found.items()}


def samples_ns(measurements: Sequence[Measurement]) -> list[tuple[float, ...]]:
    """Return the times of each round: GPU spans, or CPU walls where there are no timestamps; empty if nothing ran."""
    found = [m.whole.get("gpu_span", m.whole.get("cpu_wall")) for m in measurements]
    return [() if series is None else series.samples_ns for series in found]


def pair_in_turns(old: Sequence[Measurement], new: Sequence[Measurement]) -> Pair:
    """Return measurements that were taken in turns, one per round, for `judge_all`."""
    steps = [
        (m.protocol.get("tick_step_ns") or m.tick_period_ns or 0.0) / (m.protocol.get("batch_trials") or 1)
        for m in (*old, *new)
    ]
    return Pair(
        samples_ns(old), samples_ns(new), max(steps, default=0.0),
        clock_moved=any(m.clock_moved for m in (*old, *new)), in_turns=True,
        on_cpu=any(m.protocol.get("on_cpu") for m in (*old, *new)),
        loaded=any(is_busy(m.other_load) for m in (*old, *new)),
    )  # fmt: skip


def in_own_words(verdict: Verdict) -> Verdict:
    """Return a verdict whose remedy names no command: these measure what `gridwise bench` knows."""
    return replace(verdict, settle=re.sub(r" \(gridwise [^)]*\)", "", verdict.settle))
