"""Measures several primitives for the same work in turns, so that a change of the machine affects all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import wgpu

from ... import DATATYPES, Array, Primitive, asarray, empty
from ...errors import ArgumentError
from ..cases.benchmarked import Measurable
from ..cases.case import Case
from ..cases.distributions import UNIFORM, random_input
from ..cases.mode import ModeLike
from ..cases.workloads import WORKLOADS
from ..checks.check import Mismatch, differences
from ..checks.oracle import Oracle
from ..stats.verdict import Pair, Verdict
from .checker import Check
from .measure import measure
from .measurement import Measurement
from .protocol import SamplingProtocol

__all__ = ["checker", "in_own_words", "interleaved", "pair_in_turns", "random_arguments", "samples_ns"]


def interleaved(
    primitives: Mapping[str, Measurable],
    arrays: Mapping[str, Array],
    *,
    rounds: int,
    protocol: SamplingProtocol,
    mode: ModeLike = "batch",
    check: Check = False,
    device: wgpu.GPUDevice | None = None,
) -> dict[str, list[Measurement]]:
    """Measure each primitive once per round, in a new random order each round.

    Parameters
    ----------
    primitives : mapping from str to Primitive or what else `gw.measure` takes
        By name; all take `arrays`.
    arrays : mapping from str to Array
        Inputs and outputs.
    rounds : int
        At least 1.
    protocol : SamplingProtocol
        Of one measurement.
    mode : str
        See `gw.measure`.
    check : bool or callable
        See `gw.measure`; in the first round. A primitive with a wrong result is not measured again.
    device : wgpu.GPUDevice, optional
        See `gw.measure`.

    Returns
    -------
    dict from str to list of Measurement
    """
    if rounds < 1:
        raise ArgumentError(f"rounds is {rounds!r}, but must be at least 1")
    rng = np.random.default_rng(protocol.seed)
    found: dict[str, list[Measurement]] = {name: [] for name in primitives}
    for round_number in range(rounds):
        for name in rng.permutation(list(primitives)):
            taken = found[str(name)]
            if taken and not taken[0].correct:
                continue
            wanted = check if round_number == 0 else False
            given: Mapping[str, Any] = arrays
            taken.append(measure(primitives[name], mode=mode, protocol=protocol, check=wanted, device=device, **given))
    return found


def random_arguments(
    primitive: Primitive, n: int, seed: int = 0, **axes: Any
) -> tuple[dict[str, np.ndarray], dict[str, Array]]:
    """Return random inputs for size n, in the form that its workload has, and all arguments of a primitive.

    `axes` are those of the workload that do not have their usual values.
    """
    kinds = {
        a.name: primitive.signature.datatype(a.name) or DATATYPES["u32"] for a in primitive.signature.arguments.values()
    }
    inputs = _random_inputs(primitive, n, seed, axes)
    arrays = {name: asarray(values, primitive.device) for name, values in inputs.items()}
    for argument in primitive.signature.arguments.values():
        if argument.is_output:
            lengths = {name: items.size for name, items in inputs.items()}
            length = primitive.signature.output_length(argument.name, lengths)
            arrays[argument.name] = empty(n if length is None else length, kinds[argument.name], primitive.device)
    return inputs, arrays


def _random_inputs(primitive: Primitive, n: int, seed: int, axes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    for name in (name for name, workload in WORKLOADS.items() if isinstance(primitive, workload.kind)):
        case = Case.usual(name, n, **axes)
        if set(case.lengths) == set(primitive.signature.inputs):
            return case.inputs(primitive, seed)
    rng = np.random.default_rng(seed)
    return {
        a.name: random_input(a, UNIFORM, rng, n, (primitive.signature.datatype(a.name) or DATATYPES["u32"]).dtype)
        for a in primitive.signature.arguments.values()
        if not a.is_output
    }


def checker(primitive: Primitive, inputs: Mapping[str, np.ndarray]) -> Callable[[Mapping[str, Any]], Mismatch | None]:
    """Return a check of outputs against the primitive's numpy reference, which is computed once."""
    wanted = Oracle.of(primitive).expected(inputs)

    def check(outputs: Mapping[str, Any]) -> Mismatch | None:
        got = {k: v.to_numpy() if isinstance(v, Array) else np.asarray(v) for k, v in outputs.items()}
        if [v.tobytes() for v in got.values()] == [right.tobytes() for right in wanted]:
            return None
        return differences(primitive, inputs, got, wanted)

    return check


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
    moved = any(m.clock_moved for m in (*old, *new))
    return Pair(samples_ns(old), samples_ns(new), max(steps, default=0.0), clock_moved=moved, in_turns=True)


def in_own_words(verdict: Verdict) -> Verdict:
    """Return a verdict whose remedy names no command: these measure what `gridwise bench` knows."""
    return replace(verdict, settle=re.sub(r" \(gridwise [^)]*\)", "", verdict.settle))
