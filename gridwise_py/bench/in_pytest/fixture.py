"""The fixture ``gpu_benchmark``: measures, checks, judges, and fails the test if something is wrong or slower."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NoReturn, TypeVar

import pytest
import wgpu

from ... import Primitive
from ...display.quantities import format_time
from ...errors import ArgumentError
from ...internals import context_of, integer
from ..analysis.compare import Comparison
from ..cases.benchmarked import Measurable
from ..cases.mode import Mode, ModeLike
from ..results.entries import result_of
from ..sampling.checker import Check
from ..sampling.interleave import samples_ns
from ..sampling.measure import measure_rounds, prepare
from ..sampling.measurement import Measurement
from ..sampling.protocol import SamplingProtocol
from ..sampling.subjects import benchmark_of
from .judgement import judge
from .session import Session

_T = TypeVar("_T")


#: Rounds of a call: with several, the times within this process show how much they wander.
_ROUNDS = 5
_LEAST_ROUNDS = 1
#: Of one round, unless a test gives its own.
_ROUND = SamplingProtocol(timeout_s=0.1, warmup_s=0.03, max_warmup_s=0.1)
#: Before the first round: an idle GPU lowers its clock, and needs so long to raise it.
_FIRST_WARMUP_S, _FIRST_MAX_WARMUP_S = 0.3, 1.0
#: What the mark may set.
_MARKABLE = ("gate", "mode", "protocol", "rounds", "threshold")


@dataclass(frozen=True, repr=False, eq=False)
class Benchmarked:
    """What a call of ``gpu_benchmark`` returns.

    Attributes
    ----------
    name : str
        In the results file.
    measurements : tuple of Measurement
        One per round.
    comparison : Comparison or None
        With the stored file; None without one, or if it does not have this benchmark.
    """

    name: str
    measurements: tuple[Measurement, ...]
    comparison: Comparison | None = None

    @property
    def time_ns(self) -> float | None:
        """The median over all rounds, of the GPU span or, without timestamps, of the CPU wall; None without any."""
        times = [time for each in samples_ns(self.measurements) for time in each]
        return median(times) if times else None

    def _no_result(self, *_: object, **__: object) -> NoReturn:
        raise ArgumentError(
            "gpu_benchmark returns times, not what it timed, so to assert it checks nothing; say what is right: "
            "gpu_benchmark(…, reference=…)"
        )

    __bool__ = __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __array__ = _no_result
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Benchmarked({self.name}: {format_time(self.time_ns, 'no time')} in {len(self.measurements)} rounds)"


class GpuBenchmark:
    """The value of the fixture ``gpu_benchmark``, in one test.

    Parameters
    ----------
    session : Session
    item : pytest.Item
        The test.
    """

    def __init__(self, session: Session, item: pytest.Item):
        self._session = session
        self._test = item.nodeid
        self._marked = _marked(item)
        self._names: set[str] = set()

    def __call__(
        self,
        subject: Measurable,
        /,
        *unnamed: Any,
        name: str = "",
        reference: Any = None,
        rtol: float | None = None,
        atol: float | None = None,
        check: Check = True,
        mode: ModeLike | None = None,
        rounds: int | None = None,
        protocol: SamplingProtocol | None = None,
        restore: Iterable[str] | None = None,
        threshold: float | None = None,
        gate: float | None = None,
        n: int = 0,
        device: wgpu.GPUDevice | None = None,
        **arrays: Any,
    ) -> Benchmarked:
        """Measure what `measure` takes, check it, and judge it against the stored file.

        The test fails if a result is wrong or if it is slower by more than `gate`.

        Parameters
        ----------
        subject : Primitive, Sequence, callable, sequence or mapping of primitives, or Benchmark
            As for `measure`.
        *unnamed
            Refused: arguments are given by name, and a function that submits needs none.
        name : str, optional
            Needed for the second and further calls in one test.
        reference : array_like, mapping or callable, optional
            As of a `Benchmark`: what the only output must be, or outputs by name; of a function that submits, what it
            returns. By default a primitive is compared with its reference in numpy; a `Kernel` has none.
        rtol, atol : float, optional
            As of a `Benchmark`.
        check : bool or callable, default True
            As for `measure`.
        mode : {"batch", "hot", "cold", "latency"}, optional
            As for `measure`; by default batch of a primitive that restores nothing, latency of a function that submits,
            hot of others.
        rounds : int, default 5
        protocol : SamplingProtocol, optional
            Of each round; by default 0.1 s of samples.
        restore : iterable of str, optional
            As for `measure`.
        threshold : float, default 0.02
            Differences below this share are ``same``.
        gate : float, default 0.05
            The test fails if its verdict is slower, and by more than this share.
        n : int, default 0
            How many items a sequence or a function works on, for the results file.
        device : wgpu.GPUDevice, optional
            As for `measure`.
        **arrays : Array or numpy.ndarray
            The arguments.

        Returns
        -------
        Benchmarked

        Raises
        ------
        ArgumentError, DatatypeError
            If an argument does not fit.
        """
        __tracebackhide__ = True  # pytest ends its report at the line of the test, not below all of this text
        if unnamed:
            called = str(getattr(subject, "__name__", type(subject).__name__)).replace("<lambda>", "f")
            raise ArgumentError(
                f"gpu_benchmark takes one thing to time, but was given {len(unnamed)} more without a name; write "
                f"gpu_benchmark(lambda: {called}(…)), or name the arguments of a primitive: gpu_benchmark(kernel, x=x)"
            )
        given = {"gate": gate, "mode": mode, "protocol": protocol, "rounds": rounds, "threshold": threshold}
        options: dict[str, Any] = {
            key: self._marked.get(key) if value is None else value for key, value in given.items()
        }
        rounds = _ROUNDS if options["rounds"] is None else int(options["rounds"])
        integer("gpu_benchmark: rounds", rounds, _LEAST_ROUNDS)
        threshold = 0.02 if options["threshold"] is None else float(options["threshold"])
        gate = 0.05 if options["gate"] is None else float(options["gate"])
        _check_shares(threshold, gate)
        full_name = self._full_name(name)
        benchmark = benchmark_of(
            "gpu_benchmark", subject, arrays, check, reference=reference, rtol=rtol, atol=atol, restore=restore
        )
        usual = Mode.BATCH if isinstance(benchmark.run, Primitive) and not benchmark.restore else Mode.HOT
        ready = prepare(benchmark, mode, usual=options["mode"] or usual, check=check, device=device)
        device = ready.subject.device
        self._use(device)
        protocols = _round_protocols(options["protocol"], rounds, on_cpu=context_of(device).capabilities.is_cpu)
        measurements = [replace(m, primitive=full_name, n=n or m.n) for m in measure_rounds(ready, protocols)]
        comparison = self._judged(device, measurements, threshold, gate)
        return Benchmarked(full_name, tuple(measurements), comparison)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"gpu_benchmark has no {name}, unlike the fixture of pytest-benchmark: write gpu_benchmark(lambda: f(x), "
            f"rounds=10)"
        )

    def _judged(
        self,
        device: wgpu.GPUDevice,
        measurements: Sequence[Measurement],
        threshold: float,
        gate: float,
    ) -> Comparison | None:
        """Keep measurements for the results file, and judge them; fail the test if one is wrong or slower."""
        session, files = self._session, self._session.files
        results = [replace(result_of(m, round_number=i), checked=m.checked) for i, m in enumerate(measurements)]
        name = measurements[0].primitive
        wrong = next(("; ".join(m.faults) for m in measurements if m.faults), "")
        if wrong:
            session.keep(device, results, None)
            timed = "" if any(m.whole for m in measurements) else "; it was not timed"
            _fail(f"{name} is wrong: {wrong}{timed}: correct it, or the reference")
        new = _in_one_line(lambda: session.with_earlier(device, results))
        if files.baseline is None or files.compare is None:
            session.keep(device, results, None)
            return None
        judgement = judge(name, files.baseline, new, files.compare.name, threshold=threshold, gate=gate)
        session.keep(device, results, judgement)
        if judgement is None:
            return None
        if judgement.failure:
            _fail(judgement.failure)
        if judgement.ambiguous and files.fails_ambiguous:
            _fail(f"{name} is ambiguous: {judgement.ambiguous}")
        return judgement.comparison

    def _use(self, device: wgpu.GPUDevice) -> None:
        _in_one_line(lambda: self._session.use(device))

    def _full_name(self, name: str) -> str:
        if name in self._names:
            why = f"has two benchmarks of the name {name!r}" if name else "calls gpu_benchmark twice"
            _fail(f"{self._test} {why}: give each its own name=")
        self._names.add(name)
        return f"{self._test} {name}".rstrip()


def _fail(text: str) -> NoReturn:
    """Fail the test with a line, not with the lines of this library that found it."""
    pytest.fail(text, pytrace=False)


def _in_one_line(step: Callable[[], _T]) -> _T:
    try:
        return step()
    except ArgumentError as error:
        _fail(str(error))


def _marked(item: pytest.Item) -> Mapping[str, Any]:
    """Return what the marks of a test set; the nearest one counts."""
    found: dict[str, Any] = {}
    for mark in item.iter_markers("gridwise"):
        unknown = [key for key in mark.kwargs if key not in _MARKABLE]
        if mark.args or unknown:
            what = unknown[0] if unknown else repr(mark.args[0])
            _fail(f"pytest.mark.gridwise does not take {what}; it takes {', '.join(_MARKABLE)}")
        found = {**mark.kwargs, **found}
    return found


def _check_shares(threshold: float, gate: float) -> None:
    # Before anything is measured; `compare` would refuse them afterwards.
    if not 0 < threshold < 1:
        raise ArgumentError(f"gpu_benchmark: threshold={threshold}; it is a share between 0 and 1: 0.02 for 2 %")
    if not 0 <= gate < math.inf:
        raise ArgumentError(f"gpu_benchmark: gate={gate}; it is a share of at least 0: 0.05 for 5 %")


def _round_protocols(protocol: SamplingProtocol | None, rounds: int, *, on_cpu: bool) -> list[SamplingProtocol]:
    """Return the settings of each round: those that were given, else short ones, the first with a longer warm-up."""
    if protocol is not None or on_cpu:
        return [protocol or _ROUND] * rounds
    first = replace(_ROUND, warmup_s=_FIRST_WARMUP_S, max_warmup_s=_FIRST_MAX_WARMUP_S)
    return [first] + [_ROUND] * (rounds - 1)
