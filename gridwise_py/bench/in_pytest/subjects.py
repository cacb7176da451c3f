"""Measures what a test gives to ``gpu_benchmark``, in rounds: a primitive, a sequence or a callable."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import wgpu

from ...backend.wgpu_native import wait_idle
from ...errors import ArgumentError, LengthError
from ...runtime.array import Array
from ...runtime.context import context_of
from ...runtime.event import Event
from ...runtime.run import Run
from ...runtime.sequence import Sequence as CapturedCalls
from ..cases.mode import Mode
from ..checks.check import Mismatch, difference
from ..sampling.benchmark import UsedDevices, benchmark
from ..sampling.measurement import Measurement
from ..sampling.protocol import SamplingProtocol
from ..stats.series import LEAST_FOR_INTERVAL, StopReason

__all__ = ["CallRounds", "Reference", "replay_of", "round_protocols", "rounds_of_calls"]

#: Of one round, unless a test gives its own.
_ROUND = SamplingProtocol(timeout_s=0.1, warmup_s=0.03, max_warmup_s=0.1)
#: Before the first round: an idle GPU lowers its clock, and needs so long to raise it.
_FIRST_WARMUP_S, _FIRST_MAX_WARMUP_S = 0.3, 1.0


def round_protocols(protocol: SamplingProtocol | None, rounds: int, *, on_cpu: bool) -> list[SamplingProtocol]:
    """Return the settings of each round: those that were given, else short ones, the first with a longer warm-up."""
    if protocol is not None or on_cpu:
        return [protocol or _ROUND] * rounds
    first = replace(_ROUND, warmup_s=_FIRST_WARMUP_S, max_warmup_s=_FIRST_MAX_WARMUP_S)
    return [first] + [_ROUND] * (rounds - 1)


class Reference:
    """Checks outputs against expected values.

    Parameters
    ----------
    expected : array_like or mapping from str to array_like
        Of the only output, or of outputs by name.
    rtol, atol : float, optional
        As for `difference`.
    """

    def __init__(self, expected: Any, rtol: float | None = None, atol: float | None = None):
        self._expected: Any = expected
        self._rtol, self._atol = rtol, atol

    def __call__(self, outputs: Any) -> Mismatch | None:
        """Return the first difference.

        Raises
        ------
        ArgumentError
            If a name or a shape does not fit.
        """
        got = _named(outputs)
        if isinstance(self._expected, Mapping):
            wanted = cast(Mapping[str, Any], self._expected)
        elif len(got) == 1:
            wanted = dict.fromkeys(got, self._expected)
        else:
            raise ArgumentError(
                f"gpu_benchmark: reference= is one array, but there are {len(got)} outputs ({', '.join(got)}): give "
                f"a dict of them by name"
            )
        for name, expected in wanted.items():
            if name not in got:
                raise ArgumentError(
                    f"gpu_benchmark: reference= has {name!r}, which is no output; there are {', '.join(got) or 'none'}"
                )
            found = self._difference(name, got[name], _numpy(expected))
            if found is not None:
                return found
        return None

    def _difference(self, name: str, got: np.ndarray, expected: np.ndarray) -> Mismatch | None:
        if got.shape != expected.shape:
            raise LengthError(
                f"gpu_benchmark: reference= of {name or 'the result'} has the shape {expected.shape}, the output has "
                f"{got.shape}: give one of the output's shape"
            )
        return difference(got, expected, self._rtol, self._atol, name)


def _numpy(value: Any) -> np.ndarray:
    return value.to_numpy() if isinstance(value, Array) else np.asarray(value)


def _named(outputs: Any) -> dict[str, np.ndarray]:
    """Return outputs by name: of a primitive, or what a callable returned."""
    if isinstance(outputs, Run):
        outputs = cast(Run[Array], outputs).outputs
    if isinstance(outputs, Mapping):
        return {str(name): _numpy(value) for name, value in cast(Mapping[Any, Any], outputs).items()}
    if outputs is None:
        raise ArgumentError("gpu_benchmark: reference= needs a result, but the callable returned None: return it")
    return {"": _numpy(outputs)}


# ---- calls


class CallRounds(NamedTuple):
    """The rounds of a callable, and the device that it uses."""

    device: wgpu.GPUDevice
    measurements: list[Measurement]


def replay_of(sequence: CapturedCalls) -> Callable[[], Any]:
    """Return a call that replays a sequence, with a timestamp before its first kernel and one behind its last."""
    device = sequence.device
    if not context_of(device).has_timestamps:
        return sequence.execute
    begin, end = Event(device), Event(device)

    def replay() -> list[Event]:
        encoder = device.create_command_encoder()
        begin.record(encoder)
        sequence.record(encoder)
        end.record(encoder)
        device.queue.submit([encoder.finish()])
        return [begin, end]

    return replay


def rounds_of_calls(
    call: Callable[[], Any],
    *,
    name: str,
    n: int,
    rounds: int,
    protocol: SamplingProtocol | None,
    device: wgpu.GPUDevice | None,
    check: Callable[[Any], Mismatch | None] | None,
    before: Callable[[wgpu.GPUDevice], None],
) -> CallRounds:
    """Time a callable in rounds, each call by itself, as `benchmark` does; check its first and its last result.

    Parameters
    ----------
    call : callable
        Without arguments.
    name : str
    n : int
        Its items, as a part of its identity.
    rounds : int
    protocol : SamplingProtocol, optional
        Of which the times and numbers of samples count. A stopping rule by intervals is not applied.
    device : wgpu.GPUDevice, optional
        As for `benchmark`.
    check : callable, optional
        Takes what the call returned.
    before : callable
        Takes the device, once it is known and before anything is timed.
    """
    used = UsedDevices(device)
    begin = time.perf_counter_ns()
    returned = call()
    first = used.first(returned)
    for one in used.used():
        wait_idle(one)
    cold_start_ns = float(time.perf_counter_ns() - begin)
    before(first)
    on_cpu = context_of(first).capabilities.is_cpu
    wrong = None if check is None else check(returned)
    nothing = Measurement(
        primitive=name, mode=Mode.LATENCY, n=n, cold_start_ns=cold_start_ns, checked=check is not None,
        mismatches=() if wrong is None else (wrong,),
    )  # fmt: skip
    if wrong is not None:
        return CallRounds(first, [nothing])
    protocols = round_protocols(protocol, rounds, on_cpu=on_cpu)
    found = [_round(call, nothing, settings, first, used.used) for settings in protocols]
    wrong = None if check is None else check(call())
    if wrong is not None:
        found[-1] = replace(found[-1], mismatches=(wrong,))
    return CallRounds(first, found)


def _round(
    call: Callable[[], Any],
    nothing: Measurement,
    protocol: SamplingProtocol,
    device: wgpu.GPUDevice,
    used: Callable[[], Sequence[wgpu.GPUDevice]],
) -> Measurement:
    begin_s = time.perf_counter()
    calls = 0
    while not calls or time.perf_counter() - begin_s < protocol.warmup_s:
        call()
        for one in used():
            wait_idle(one)
        calls += 1
    warm_s = time.perf_counter() - begin_s
    count = protocol.samples or int(protocol.timeout_s * calls / warm_s)
    count = min(max(count, LEAST_FOR_INTERVAL), protocol.max_samples)
    begun_ns = time.perf_counter_ns()
    result = benchmark(call, n_warmup=1, n_iters=count, device=device)
    whole = {"cpu_wall": result.cpu_wall} | ({} if result.gpu_span is None else {"gpu_span": result.gpu_span})
    return replace(
        nothing,
        whole=whole,
        protocol={
            **protocol.to_dict(),
            "mode": Mode.LATENCY.value,
            "restored": [],
            "wait_method": result.wait_method,
            "warmup_measured_s": warm_s,
            "sampling_measured_s": (time.perf_counter_ns() - begun_ns) * 1e-9,
        },
        warnings=result.warnings,
        stop_reason=StopReason.COUNT,
        begun_ns=begun_ns,
    )
