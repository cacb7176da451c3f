"""`benchmark`: times any callable that submits GPU work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import wgpu

from .._wgpu_native import wait_idle, wait_method
from ..array import Array
from ..device import _default
from ..errors import ArgumentError, DatatypeError
from ..run import Run, bracket
from ..timing import TimingSession
from ..timing_result import TimingResult
from .measurement import Series
from .series import make_series

__all__ = ["BenchmarkResult", "benchmark"]


@dataclass(frozen=True)
class BenchmarkResult:
    """What a callable took, per call.

    Attributes
    ----------
    cpu_wall : Series
        From just before the call until the queue is idle again, on the CPU's clock.
    gpu_span : Series or None
        From the first timestamp to the last of what the call returned; None where it returned nothing timed.
    n_warmup, n_iters : int
    wait_method : str
        How it was waited; see docs/timing.md.
    """

    cpu_wall: Series
    gpu_span: Series | None
    n_warmup: int
    n_iters: int
    wait_method: str

    @property
    def _headline(self) -> Any:
        series = self.gpu_span if self.gpu_span is not None and self.gpu_span.summary is not None else self.cpu_wall
        return series.summary

    @property
    def mean_ns(self) -> float:
        """Mean of the GPU spans, or of the CPU walls where nothing was timed on the GPU."""
        return self._headline.mean_ns

    @property
    def std_ns(self) -> float:
        """Standard deviation of the same."""
        return self._headline.std_ns

    @property
    def median_ns(self) -> float:
        """Median of the same."""
        return self._headline.median_ns

    def __repr__(self) -> str:
        clock = "CPU wall" if self._headline is self.cpu_wall.summary else "GPU span"
        return (
            f"BenchmarkResult({clock} of {self.n_iters} calls: median {self.median_ns:.0f} ns, "
            f"mean {self.mean_ns:.0f} ± {self.std_ns:.0f} ns)"
        )


def benchmark(
    fn: Callable[[], Any], n_warmup: int = 5, n_iters: int = 50, device: wgpu.GPUDevice | None = None
) -> BenchmarkResult:
    """Time a callable that submits GPU work.

    Each call is bracketed: idle queue, time, call, idle queue, time. Where the call returns a `Run` that was timed
    on the GPU, a `TimingResult`, a submitted `TimingSession`, or several of these, its GPU span is taken, too.

    Parameters
    ----------
    fn : callable
        Without arguments. What it uploads or reads back is in the wall.
    n_warmup : int, default 5
        Calls before the first sample. An idle GPU needs some hundred milliseconds of work to raise its clock: use
        `measure` for numbers that decide something.
    n_iters : int, default 50
        Samples.
    device : wgpu.GPUDevice, optional
        Whose queue is waited for. By default that of what `fn` returns (`Run`, `Array`), else the default device.

    Returns
    -------
    BenchmarkResult

    Raises
    ------
    ArgumentError
        If a count does not fit, or the device cannot be told.
    """
    for name, value, least in (("n_warmup", n_warmup, 0), ("n_iters", n_iters, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ArgumentError(f"{name} is {value!r}, but must be an integer of at least {least}")
    if not callable(fn):
        raise DatatypeError(
            f"gw.benchmark takes a callable, as in gw.benchmark(lambda: scan.execute(input=x)), not "
            f"{type(fn).__name__}; for a primitive there is gw.measure(primitive, input=x)"
        )
    # What is returned tells the device, so one call always comes first; it may compile.
    returned = fn()
    device = device or _device_of(returned)
    wait_idle(device)
    for _ in range(n_warmup - 1):
        fn()
    walls: list[float] = []
    results: list[Any] = []
    for _ in range(n_iters):
        kept: list[Any] = []
        before, _, after = bracket(device, lambda kept=kept: kept.append(fn()))
        walls.append(float(after - before))
        results.append(_timings(kept[0]))
    spans = [span for result in results if result is not None and (span := _span_ns(result)) is not None]
    return BenchmarkResult(
        make_series("cpu_wall", walls),
        make_series("gpu_span", spans) if spans else None,
        n_warmup,
        n_iters,
        wait_method(device),
    )


def _parts(returned: Any) -> Iterable[Any]:
    return returned if isinstance(returned, (list, tuple)) else (returned,)


def _device_of(returned: Any) -> wgpu.GPUDevice:
    for part in _parts(returned):
        if isinstance(part, Run):
            return part.output.device
        if isinstance(part, Array):
            return part.device
    if _default:
        return _default[0]
    raise ArgumentError(
        f"it cannot be told whose queue to wait for: the callable returned {type(returned).__name__}, and no default "
        f"device was made; give device=, or return the Run"
    )


def _timings(returned: Any) -> list[Any] | None:
    """Return what holds timestamps among what a call returned; a Run without timing holds none."""
    found = [
        part
        for part in _parts(returned)
        if isinstance(part, (TimingResult, TimingSession)) or (isinstance(part, Run) and part._measurement is not None)
    ]
    return found or None


def _span_ns(timings: list[Any]) -> float | None:
    spans = []
    for part in timings:
        part = part.get_timing_result() if isinstance(part, Run) else part
        spans += part.spans() if isinstance(part, TimingSession) else part.spans
    if not spans or not all(span.valid for span in spans):
        return None
    ticks = max(span.end_ticks for span in spans) - min(span.begin_ticks for span in spans)
    return ticks * spans[0].tick_period_ns
