"""`compare_kernels`: which of several ways to do the same work is faster, measured in turns and judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import wgpu

from ... import Array, Primitive
from ...display.quantities import format_time
from ...errors import ArgumentError
from ...internals import integer
from ..cases.benchmarked import Benchmark, Measurable
from ..cases.mode import Mode, ModeLike
from ..stats.verdict import Verdict, judge_all
from .checker import Check
from .interleave import in_own_words, measure_in_turns, pair_in_turns, samples_ns
from .machine_load import load_note
from .measurement import Measurement
from .protocol import SamplingProtocol
from .subjects import benchmark_of, choose_mode, device_of, names_of, subject_of, upload

#: The fewest rounds: with fewer a difference cannot be told from chance.
_LEAST_ROUNDS = 3
#: How a kernel is measured in a round: shortly, because rounds tell more than samples within one.
_PROTOCOL = SamplingProtocol(timeout_s=0.1, warmup_s=0.03, max_warmup_s=0.1)


@dataclass(frozen=True, repr=False)
class KernelComparison:
    """What `compare_kernels` returns.

    Attributes
    ----------
    device : wgpu.GPUDevice
    baseline : str
    measurements : dict from str to tuple of Measurement
        One for each round.
    verdicts : dict from str to Verdict or None
        Against the baseline; None if results are wrong or times are missing.
    """

    device: wgpu.GPUDevice
    baseline: str
    measurements: Mapping[str, tuple[Measurement, ...]]
    verdicts: Mapping[str, Verdict | None]

    def time_ns(self, name: str) -> float | None:
        """Return the median time over all rounds."""
        times = [time for each in samples_ns(self.measurements[name]) for time in each]
        return median(times) if times else None

    @property
    def other_load(self) -> float | None:
        """The share of all processors that other processes used meanwhile, from 0 to 1."""
        return next(iter(self.measurements.values()))[0].other_load

    def __repr__(self) -> str:
        width = max(map(len, self.measurements))
        lines: list[str] = []
        for name, rounds in self.measurements.items():
            time_ns = self.time_ns(name)
            said = "the baseline" if name == self.baseline else str(self.verdicts[name] or self._not_judged(name))
            wrong = next((m.faults for m in rounds if m.faults), ())
            if wrong:
                said = f"wrong: {'; '.join(wrong)}"
            elif not rounds[0].checked:
                said += " (results not checked)"
            lines.append(f"{name:{width}}  {format_time(time_ns, 'no time'):>9}  {said}")
        return "\n".join(filter(None, (*lines, load_note(self.other_load))))

    def _not_judged(self, name: str) -> str:
        return f"not judged: {_obstacle(self.measurements[self.baseline], self.measurements[name])}"


def compare_kernels(
    kernels: Mapping[str, Measurable],
    /,
    *,
    baseline: str | None = None,
    rounds: int = 9,
    mode: ModeLike | None = None,
    protocol: SamplingProtocol | None = None,
    restore: Iterable[str] | None = None,
    reference: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    check: Check = True,
    threshold: float = 0.02,
    confidence: float = 0.95,
    device: wgpu.GPUDevice | None = None,
    **arrays: Any,
) -> KernelComparison:
    """Measure kernels for the same work in turns, and judge which are faster than the first one.

    In each round every kernel is measured once, in a random order. For two versions of a program there is ``gridwise
    ab``.

    Parameters
    ----------
    kernels : mapping
        By name what `measure` takes.
    baseline : str, optional
        By default the first.
    rounds : int, default 9
        At least 3.
    mode : str, optional
        By default batch; hot if one restores arguments, latency if one submits by itself.
    protocol : SamplingProtocol, optional
        Of a kernel in a round; by default 0.1 s of samples.
    restore, reference, rtol, atol : optional
        As for `measure`.
    check : bool or callable, default True
        As for `measure`, in the first round. A kernel with a wrong result is not measured again.
    threshold : float, default 0.02
        Smaller differences are same.
    confidence : float, default 0.95
        Of the intervals.
    device : wgpu.GPUDevice, optional
        As for `measure`.
    **arrays : Array, numpy.ndarray or number
        Each kernel gets those that it has.

    Returns
    -------
    KernelComparison

    Raises
    ------
    ArgumentError
        If there is nothing to compare, a name is unknown, or an argument does not fit; nothing was measured.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> short = gw.SamplingProtocol(min_samples=10, block_trials=10, warmup_s=0.001, max_warmup_s=0.01, timeout_s=0.01)
    >>> both = {"sum": gw.Reduce(device, "f32"), "largest": gw.Reduce(device, "f32", gw.Max)}
    >>> found = gw.compare_kernels(both, rounds=3, protocol=short, threshold=0.5, input=np.ones(1000, np.float32))
    >>> found.baseline, len(found.measurements["largest"]), found.verdicts["largest"].old_rounds
    ('sum', 3, 3)
    """
    judge_all([], threshold=threshold, confidence=confidence)  # refuses shares that do not fit, before measuring
    given = _checked(
        kernels, arrays, baseline, rounds, check, restore=restore, reference=reference, rtol=rtol, atol=atol
    )
    first = next(iter(kernels)) if baseline is None else baseline
    devices = {id(one): one for name in given if (one := device_of(given[name], device)) is not None}
    if len(devices) > 1:
        raise ArgumentError("gw.compare_kernels(): the kernels lie on different devices; make all of them on one")
    usual = Mode.HOT if any(benchmark.restore for benchmark in given.values()) else Mode.BATCH
    modes = [choose_mode(benchmark, mode, usual) for benchmark in given.values()]
    asked = Mode.LATENCY if Mode.LATENCY in modes else modes[0]
    on = next(iter(devices.values()), None) or subject_of(None, first, given[first]).device
    found = measure_in_turns(
        _with_outputs(given, arrays, on),
        rounds=rounds, protocol=protocol or _PROTOCOL, mode=asked.value, check=check, device=on,
    )  # fmt: skip
    named = {name: tuple(replace(m, primitive=name) for m in taken) for name, taken in found.items()}
    judged = [name for name, taken in named.items() if name != first and not _obstacle(named[first], taken)]
    pairs = [pair_in_turns(named[first], named[name]) for name in judged]
    verdicts = judge_all(pairs, threshold=threshold, confidence=confidence)
    of_name = dict(zip(judged, map(in_own_words, verdicts), strict=True))
    return KernelComparison(on, first, named, {name: of_name.get(name) for name in kernels if name != first})


def _obstacle(old: Sequence[Measurement], new: Sequence[Measurement]) -> str:
    """Return why the rounds of two kernels cannot be judged; empty if they can."""
    both = (*old, *new)
    if not all(m.correct for m in both):
        return "a result is wrong"
    if not all(map(any, samples_ns(both))):
        return "a round has no valid time"
    if len({"gpu_span" in m.whole for m in both}) > 1:
        return (
            "some rounds have GPU times, others only CPU times; a function has GPU times if it returns its timed Run, "
            "or records on an encoder"
        )
    return ""


def _checked(
    kernels: Mapping[str, Measurable],
    arrays: Mapping[str, Any],
    baseline: str | None,
    rounds: int,
    check: Check,
    **options: Any,
) -> dict[str, Benchmark]:
    """Return what can be compared, each with the arguments that it has of those given."""
    if not isinstance(kernels, Mapping) or len(kernels) < 2:
        raise ArgumentError("gw.compare_kernels() takes at least two kernels by name: {'old': old, 'new': new}")
    if baseline is not None and baseline not in kernels:
        raise ArgumentError(f"gw.compare_kernels(): baseline={baseline!r} is none of {', '.join(kernels)}")
    integer("gw.compare_kernels(): rounds", rounds, _LEAST_ROUNDS)
    names = {name: names_of(kernel) for name, kernel in kernels.items()}
    known = {one for own in names.values() for one in (arrays if own is None else own)}
    unknown = [name for name in arrays if name not in known]
    if unknown:
        raise ArgumentError(
            f"gw.compare_kernels(): no kernel has an argument {unknown[0]!r}; they have {', '.join(sorted(known))}"
        )
    return {
        name: benchmark_of(
            f"gw.compare_kernels(): {name}", kernel,
            {key: value for key, value in arrays.items() if key in (arrays if own is None else own)},
            check, **options,
        )
        for (name, own), kernel in zip(names.items(), kernels.values(), strict=True)
    }  # fmt: skip


def _with_outputs(
    benchmarks: Mapping[str, Benchmark], arrays: Mapping[str, Any], device: wgpu.GPUDevice
) -> dict[str, Benchmark]:
    """Upload each shared array once; give primitives the outputs that they lack, shared by shape and datatype."""
    shared: dict[str, Any] = {}
    found = dict(benchmarks)
    for name, benchmark in benchmarks.items():
        run: Any = benchmark.run
        given = {key: value for key, value in benchmark.inputs.items() if arrays.get(key) is value}
        uploads = run.signature.arguments if isinstance(run, Primitive) else given
        shared |= upload({key: value for key, value in given.items() if key not in shared}, uploads, device)
        inputs = {**benchmark.inputs, **{key: shared[key] for key in given if key in uploads}}
        if isinstance(run, Primitive):
            inputs = upload(inputs, run.signature.arguments, device)  # a Benchmark has its own
            lacked = {key: output for key, output in run.bind(**inputs).outputs.items() if key not in inputs}
            for key, output in lacked.items():
                kept = shared.setdefault(key, output)
                alike = isinstance(kept, Array) and (kept.shape, kept.datatype) == (output.shape, output.datatype)
                inputs[key] = kept if alike else output
        found[name] = replace(benchmark, inputs=inputs)
    return found
