"""Cases of a benchmark: what is run, and how it is sampled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import wgpu

from .._wgpu_native import wait_idle
from ..array import asarray
from ..binop import Multiply, as_binop
from ..datatype import STORAGE_DATATYPES, as_datatype
from ..errors import GridwiseError, LimitError
from ..plan import Plan
from ..primitive import Primitive
from ..primitives import REGISTRY
from ..primitives.operator_primitive import OperatorPrimitive
from ..timing_result import TimingResult
from .check import Mismatch, mismatch

__all__ = ["Case", "CaseResult", "Protocol", "run_case", "run_cases", "warm_up"]


@dataclass(frozen=True)
class Case:
    """One primitive at one size.

    Attributes
    ----------
    primitive : str
        A key of `REGISTRY`.
    n : int
        Items.
    datatype : str
    op : str or None
        None where the primitive has no operator.
    """

    primitive: str
    n: int
    datatype: str
    op: str | None = None

    def make(self, device: wgpu.GPUDevice) -> Primitive:
        """Make the primitive."""
        cls = REGISTRY[self.primitive]
        if self.op is None:
            return cls(device, self.datatype)
        return cls(device, self.datatype, as_binop(self.op))

    def inputs(self, primitive: Primitive, seed: int) -> dict[str, np.ndarray]:
        """Return random data for it, the same for the same seed.

        Raises
        ------
        LimitError
            If the device has no such large buffers; before the host is asked for the memory.
        """
        size_bytes = self.n * as_datatype(self.datatype, STORAGE_DATATYPES).itemsize_bytes
        limit = primitive.capabilities.limits["max-buffer-size"]
        if size_bytes > limit:
            raise LimitError(f"{self} needs buffers of {size_bytes} bytes, but the device's max-buffer-size is {limit}")
        rng = np.random.default_rng([seed, self.n])
        dtype = as_datatype(self.datatype, STORAGE_DATATYPES).dtype
        names = [argument.name for argument in primitive.arguments if not argument.is_output]
        if dtype.kind != "f":
            bits = {name: rng.integers(0, 1 << 32, self.n, dtype=np.uint32) for name in names}
            return {name: values.view(dtype) for name, values in bits.items()}
        if self.op == Multiply.name:
            # ±1: a product of many floats else leaves their range.
            return {name: rng.choice(np.array([-1, 1], dtype=dtype), self.n) for name in names}
        return {name: rng.random(self.n, dtype=dtype) * 2 - 1 for name in names}

    @classmethod
    def build(cls, primitive: str, n: int, datatype: str, op: str) -> Case:
        """Return a case, without the operator where the primitive has none."""
        takes_op = issubclass(REGISTRY[primitive], OperatorPrimitive)
        return cls(primitive, n, datatype, op if takes_op else None)

    def __str__(self) -> str:
        op = f" {self.op}" if self.op else ""
        return f"{self.primitive}{op} {self.datatype} n={self.n:,}"


@dataclass(frozen=True)
class Protocol:
    """How a case is sampled.

    Attributes
    ----------
    trials : int
        Dispatches of each kernel per sample.
    warmup_s : float
        The same work runs at least this long before the first sample: an idle GPU clocks down, and needs some
        hundred milliseconds of work to come back.
    sampling_s : float
        Samples are taken for about this long.
    min_samples, max_samples : int
    seed : int
        Of the random data.
    """

    trials: int = 10
    warmup_s: float = 0.3
    sampling_s: float = 1.0
    min_samples: int = 3
    max_samples: int = 50
    seed: int = 0


@dataclass(frozen=True)
class CaseResult:
    """What was measured.

    Attributes
    ----------
    case : Case
    plan : Plan or None
    mismatch : Mismatch or None
        What is wrong with the result.
    samples : tuple of TimingResult
    cold_start_ns : float or None
        The first call, from the host to the end of its work, compilation included.
    error : str or None
        Why there is no result.
    """

    case: Case
    plan: Plan | None = None
    mismatch: Mismatch | None = None
    samples: tuple[TimingResult, ...] = ()
    cold_start_ns: float | None = None
    error: str | None = None
    protocol: Protocol = field(default_factory=Protocol)

    @property
    def correct(self) -> bool:
        """Whether it ran and its result was right."""
        return self.error is None and self.mismatch is None

    @property
    def kernel_labels(self) -> tuple[str, ...]:
        """A name per kernel."""
        return self.samples[0].labels if self.samples else ()

    def kernel_ns(self, index: int) -> float | None:
        """Median GPU time of a kernel per trial."""
        return _median(
            None if (times := sample.per_trial.gpu_total_time_ns) is None else times[index] for sample in self.samples
        )

    @property
    def gpu_span_ns(self) -> float | None:
        """Median time from the first kernel's begin to the last one's end, per trial."""
        return _median(sample.per_trial.gpu_span_ns for sample in self.samples)

    @property
    def cpu_wall_ns(self) -> float | None:
        """Median time of the whole primitive on the CPU's clock, per trial."""
        return _median(sample.per_trial.cpu_total_time_ns for sample in self.samples)

    @property
    def time_ns(self) -> float | None:
        """What rates are made from: the GPU span, or the CPU wall where there are no timestamps."""
        return self.gpu_span_ns if self.gpu_span_ns is not None else self.cpu_wall_ns

    @property
    def gbytes_per_s(self) -> float | None:
        """Bytes that had to move, per second, in units of 10^9."""
        return self._rate(None if self.plan is None else self.plan.work.moved_bytes)

    @property
    def gitems_per_s(self) -> float | None:
        """Items per second, in units of 10^9."""
        return self._rate(None if self.plan is None else self.plan.work.items)

    def _rate(self, amount: int | None) -> float | None:
        return amount / self.time_ns if amount is not None and self.time_ns else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def run_case(device: wgpu.GPUDevice, case: Case, protocol: Protocol) -> CaseResult:
    """Run a case: once for correctness and cold start, then warm, then sampled."""
    primitive = case.make(device)
    inputs = case.inputs(primitive, protocol.seed)
    arrays = {name: asarray(values, device) for name, values in inputs.items()}
    wait_idle(device)
    begin = time.perf_counter_ns()
    run = primitive.execute(**arrays)
    wait_idle(device)
    cold_start_ns = float(time.perf_counter_ns() - begin)
    if not case.n:
        return CaseResult(case, run.plan, mismatch(primitive, inputs, run.output.to_numpy()), protocol=protocol)

    def sample() -> TimingResult:
        return primitive.execute(
            enable_gpu_timing=True, enable_cpu_timing=True, trials=protocol.trials
        ).get_timing_result()

    warm_up(primitive, protocol.warmup_s)
    sample()
    samples = []
    deadline = time.perf_counter() + protocol.sampling_s
    while len(samples) < protocol.min_samples or (
        len(samples) < protocol.max_samples and time.perf_counter() < deadline
    ):
        samples.append(sample())
    # The output of the last sample is checked: it went through every trial.
    wrong = mismatch(primitive, inputs, run.output.to_numpy())
    return CaseResult(case, run.plan, wrong, tuple(samples), cold_start_ns, protocol=protocol)


# Long enough that the gaps between submissions do not let the clock fall, short enough for any watchdog.
_WARMUP_SUBMISSION_S = 0.02
_MAX_WARMUP_TRIALS = 4096


def warm_up(primitive: Primitive, seconds: float) -> None:
    """Keep the GPU busy with the bound work of `primitive` for at least `seconds`, without pauses.

    An idle GPU clocks down within a check of results on the CPU, and reads up to three times too slow (an H200 at
    2^26). Only continuous work brings the clock back, so the next submission is queued before the last is done.
    """
    device = primitive.device
    deadline = time.perf_counter() + seconds
    trials = 1
    while True:
        begin = time.perf_counter()
        primitive.execute(trials=trials)
        primitive.execute(trials=trials)
        wait_idle(device)
        now = time.perf_counter()
        if now >= deadline:
            return
        if now - begin < 2 * _WARMUP_SUBMISSION_S:
            trials = min(2 * trials, _MAX_WARMUP_TRIALS)


def run_cases(
    device: wgpu.GPUDevice,
    cases: Iterable[Case],
    protocol: Protocol,
    progress: Callable[[Case], None] = lambda case: None,
) -> Iterator[CaseResult]:
    """Run cases one after another; one that fails becomes a result with an error, and the rest goes on."""
    for case in cases:
        progress(case)
        try:
            yield run_case(device, case, protocol)
        except (GridwiseError, wgpu.GPUError, MemoryError) as error:
            yield CaseResult(case, error=f"{type(error).__name__}: {error}", protocol=protocol)
