"""Measures several primitives for the same work in turns, so that a change of the machine affects all of them, and
judges which of two is faster."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ...errors import ArgumentError
from ...primitives.base import Primitive
from ...runtime.array import Array, asarray, empty
from ...types.datatype import DATATYPES
from ..cases.case import Case
from ..cases.distributions import UNIFORM, random_input
from ..cases.mode import ModeLike
from ..cases.workloads import WORKLOADS
from ..checks.check import Mismatch, differences
from ..checks.oracle import Oracle
from ..stats.verdict import Pair, Verdict, judge_all
from .measure import measure
from .measurement import Measurement
from .protocol import SamplingProtocol

__all__ = ["checker", "interleaved", "judge_in_turns", "pair_in_turns", "random_arguments", "samples_ns"]


def interleaved(
    primitives: Mapping[str, Primitive],
    arrays: Mapping[str, Array],
    *,
    rounds: int,
    protocol: SamplingProtocol,
    mode: ModeLike = "batch",
    check: Callable[[Mapping[str, Array]], Mismatch | None] | bool = False,
) -> dict[str, list[Measurement]]:
    """Measure each primitive once per round, in a new random order each round.

    Parameters
    ----------
    primitives : mapping from str to Primitive
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

    Returns
    -------
    dict from str to list of Measurement
    """
    if rounds < 1:
        raise ArgumentError(f"rounds is {rounds!r}, but must be at least 1")
    given = cast(Mapping[str, Any], arrays)
    rng = np.random.default_rng(protocol.seed)
    found: dict[str, list[Measurement]] = {name: [] for name in primitives}
    for round_number in range(rounds):
        for name in rng.permutation(list(primitives)):
            taken = found[str(name)]
            if taken and not taken[0].correct:
                continue
            wanted = check if round_number == 0 else False
            taken.append(measure(primitives[name], mode=mode, protocol=protocol, check=wanted, **given))
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
    """Return the times of each round: GPU spans, or CPU walls where there are no timestamps."""
    return [
        m.whole["gpu_span"].samples_ns if "gpu_span" in m.whole else m.whole["cpu_wall"].samples_ns
        for m in measurements
    ]


# ---- judging


def pair_in_turns(old: Sequence[Measurement], new: Sequence[Measurement]) -> Pair:
    """Return measurements that were taken in turns, a block per round, for `judge_all`."""
    steps = [
        (m.protocol.get("tick_step_ns") or m.tick_period_ns or 0.0) / (m.protocol.get("batch_trials") or 1)
        for m in (*old, *new)
    ]
    moved = any(m.clock_moved for m in (*old, *new))
    return Pair(samples_ns(old), samples_ns(new), max(steps, default=0.0), clock_moved=moved)


def judge_in_turns(
    old: Sequence[Measurement], new: Sequence[Measurement], *, threshold: float = 0.02, confidence: float = 0.95
) -> Verdict:
    """Judge whether a primitive or a kernel is faster or slower than another one, from measurements in turns.

    The unit is the round: it has its own clock, memory and other work on the machine, which the samples within it
    share. Two measurements that were taken one after the other cannot be told from two states of the machine, however
    many samples they have, so they are refused.

    Parameters
    ----------
    old, new : sequence of Measurement
        Of each round, as `interleaved` returns them.
    threshold : float
        Differences below this share are ignored.
    confidence : float
        See `judge_all`.

    Returns
    -------
    Verdict

    Raises
    ------
    ArgumentError
        If a side has fewer than three rounds, the sides were not measured in turns or not alike, or a result is wrong.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> from gridwise_py.bench.sampling.interleave import interleaved, judge_in_turns
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.ones(1000, dtype=np.float32), device)
    >>> short = gw.SamplingProtocol(min_samples=10, block_trials=10, warmup_s=0.001, max_warmup_s=0.01, timeout_s=0.01)
    >>> both = {"old": gw.Copy(device, "f32"), "new": gw.Copy(device, "f32")}
    >>> found = interleaved(both, {"input": x, "output": gw.empty_like(x)}, rounds=3, protocol=short)
    >>> verdict = judge_in_turns(found["old"], found["new"], threshold=0.5)
    >>> verdict.old_rounds, verdict.new_rounds
    (3, 3)
    """
    problem = _not_in_turns(old, new)
    if problem:
        raise ArgumentError(f"{problem}; {_REMEDY}")
    (verdict,) = judge_all([pair_in_turns(old, new)], threshold=threshold, confidence=confidence)
    # These measure what `gridwise bench` knows.
    return replace(verdict, settle=re.sub(r" \(gridwise [^)]*\)", "", verdict.settle))


# Fewer cannot tell a difference from chance.
_LEAST_ROUNDS = 3
_REMEDY = (
    "measure both in turns, found = interleaved({'old': old, 'new': new}, arrays, rounds=5, protocol=protocol), and "
    "judge found['old'] and found['new']"
)


def _not_in_turns(old: Sequence[Measurement], new: Sequence[Measurement]) -> str:
    """Return why two sides cannot be judged; empty if they can."""
    sides = {"old": old, "new": new}
    for name, side in sides.items():
        items = list(cast(Sequence[object], side)) if isinstance(side, (list, tuple)) else None
        if items is None or not all(isinstance(item, Measurement) for item in items):
            return f"{name} is {type(side).__name__}, but must be a list of Measurement, one of each round"
        for m in side:
            if not m.correct:
                return f"{name} has a wrong result or none: {m.error or m.mismatches[0]}"
            if not any(samples_ns([m])[0]):
                return f"{name} has a round without a valid time"
    counts = len(old), len(new)
    if counts[0] != counts[1] or counts[0] < _LEAST_ROUNDS:
        needs = f"a verdict needs as many of both, at least {_LEAST_ROUNDS}"
        return f"old has {counts[0]} and new {counts[1]} rounds, but {needs}"
    alike = {(m.mode.value, m.n, "gpu_span" in m.whole) for m in (*old, *new)}
    if len(alike) > 1:
        said = " and ".join(f"mode {mode}, n={n:,}, {'GPU' if gpu else 'CPU'} times" for mode, n, gpu in sorted(alike))
        return f"old and new were not measured alike: {said}"
    taken = sorted((m.begun_ns or 0, name) for name, side in sides.items() for m in side)
    names = [name for _, name in taken]
    rounds = zip(names[::2], names[1::2], strict=True)
    if any(first == second for first, second in rounds) or any(m.begun_ns is None for m in (*old, *new)):
        return "old and new were not measured in turns, so what differs may be the machine's state"
    return ""
