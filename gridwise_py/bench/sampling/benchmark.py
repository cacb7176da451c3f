"""`benchmark`: times any callable that submits GPU work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import wgpu

from ... import Span, synchronize
from ...display.quantities import format_time
from ...display.table import table_of
from ...display.terminal import clean
from ...errors import ArgumentError, DatatypeError
from ...internals import bracket, context_of
from ..calibrate.classify import WALL_SLACK
from ..stats.series import SampleClass, Series, Summary
from .returned import Moments, Stamped, UsedDevices, doubts_of, spans_of, timings_of
from .samples import make_series


@dataclass(frozen=True)
class BenchmarkResult:
    """Times of a callable, per call.

    Attributes
    ----------
    cpu_wall : Series
        Until the queue is idle again.
    gpu_span : Series or None
        Of what the call returned; ``invalid`` counts bad ones.
    n_warmup, n_iters : int
    wait_method : str
    warnings : tuple of str
    """

    cpu_wall: Series
    gpu_span: Series | None
    n_warmup: int
    n_iters: int
    wait_method: str
    warnings: tuple[str, ...] = ()

    @property
    def _headline(self) -> Summary:
        if self.gpu_span is not None and self.gpu_span.summary is not None:
            return self.gpu_span.summary
        assert self.cpu_wall.summary is not None, "each call has a wall"
        return self.cpu_wall.summary

    @property
    def mean_ns(self) -> float:
        """Mean of the GPU spans, or of the CPU walls where there are none."""
        return self._headline.mean_ns

    @property
    def std_ns(self) -> float | None:
        """Standard deviation of these; None of one sample."""
        return self._headline.std_ns

    @property
    def median_ns(self) -> float:
        """Median of these."""
        return self._headline.median_ns

    def __repr__(self) -> str:
        used = self._headline
        clock = "CPU wall" if used is self.cpu_wall.summary else "GPU span"
        calls = f"{self.n_iters}" if used.count == self.n_iters else f"{used.count} of {self.n_iters}"
        invalid = self.gpu_span.invalid.items() if self.gpu_span is not None else ()
        classes = ", ".join(f"{count} {name}" for name, count in invalid)
        discarded = f"; invalid GPU spans: {classes}" if classes else ""
        discarded += "".join(f"; doubtful: {clean(warning)}" for warning in self.warnings)
        if self.std_ns is None:
            times = used.text()
        else:
            times = f"median {format_time(self.median_ns)}, mean {format_time(self.mean_ns)}, standard deviation "
            times += format_time(self.std_ns)
        return f"BenchmarkResult({clock} of {calls} call{'s' if calls != '1' else ''}: {times}{discarded})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = []
        for name, series in (("GPU span", self.gpu_span), ("CPU wall", self.cpu_wall)):
            s = None if series is None else series.summary
            times = (None,) * 4 if s is None else (s.median_ns, s.mean_ns, s.std_ns, s.min_ns)
            shown = [format_time(time_ns, "not measured" if i == 0 else "–") for i, time_ns in enumerate(times)]
            rows.append((name, *shown, "0" if s is None else str(s.count)))
        headings = ("per call", "median", "mean", "standard deviation", "least", "samples")
        caption = f"{self.n_iters} call{'s' if self.n_iters != 1 else ''} after {self.n_warmup} to warm up"
        return table_of(caption, headings, rows, remarks=self.warnings).html()


def benchmark(
    fn: Callable[[], Any], n_warmup: int = 5, n_iters: int = 50, device: wgpu.GPUDevice | None = None
) -> BenchmarkResult:
    """Time a callable that submits GPU work.

    Each call is timed until the queue is idle again. Its GPU span is taken, too, if it returns timed `Run`,
    `TimingResult`, submitted `TimingSession`, or two events.

    Parameters
    ----------
    fn : callable
        Without arguments.
    n_warmup : int, default 5
        Calls before the first sample. `measure` warms up until the clock is steady.
    n_iters : int, default 50
    device : wgpu.GPUDevice, optional
        Where `fn` submits to one that this library has not used.

    Returns
    -------
    BenchmarkResult

    Raises
    ------
    ArgumentError
        If a count does not fit, if `fn` used no device that is known, so that there is nothing to wait for, or if it
        returned a single event, or one without time.
    DatatypeError
        If `fn` is no callable.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.ones(1000, dtype=np.uint32), device)
    >>> result = gw.benchmark(lambda: gw.cumsum(x), n_warmup=2, n_iters=10)
    >>> result.n_iters, result.cpu_wall.summary.count
    (10, 10)
    >>> result.gpu_span is None  # the call has timed nothing on the GPU
    True
    >>> scan = gw.Scan(device, "u32")
    >>> gw.benchmark(lambda: scan.execute(input=x, enable_cpu_timing=True)).median_ns > 0
    True
    """
    for name, value, least in (("n_warmup", n_warmup, 0), ("n_iters", n_iters, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ArgumentError(f"{name} is {value!r}, but must be an integer of at least {least}")
    if not callable(fn):
        raise DatatypeError(
            f"gw.benchmark takes a callable, as in gw.benchmark(lambda: scan.execute(input=x)), not "
            f"{type(fn).__name__}; for a primitive there is gw.measure(primitive, input=x)"
        )
    # One call always comes first, which tells the devices; it may compile.
    devices = UsedDevices(device)
    returned = fn()
    first = devices.first(returned)
    for used in devices.used():
        synchronize(used)
    timings_of(returned)
    for _ in range(n_warmup - 1):
        fn()
    walls: list[float] = []
    results: list[list[Stamped | Moments] | None] = []
    for _ in range(n_iters):
        kept: list[Any] = []
        before, _, after = bracket(first, lambda kept=kept: kept.append(fn()), devices.used)
        walls.append(float(after - before))
        results.append(timings_of(kept[0]))
    # Judged after the last call: reading timestamps takes time.
    invalid: Counter[str] = Counter()
    found_ns: list[float] = []
    doubts: list[str] = []
    for result, wall_ns in zip(results, walls, strict=True):
        spans = spans_of(result)
        if spans:
            verdict, span_ns = _judged(spans, wall_ns)
            if verdict is SampleClass.VALID:
                found_ns.append(span_ns)
                doubts += doubts_of(result or [])[:1]
            else:
                invalid[verdict.value] += 1
    return BenchmarkResult(
        make_series("cpu_wall", walls),
        make_series("gpu_span", found_ns, dict(sorted(invalid.items()))) if found_ns or invalid else None,
        n_warmup,
        n_iters,
        context_of(first).wait_method,
        (f"{len(doubts)} of {n_iters} calls: {doubts[-1]}",) if doubts else (),
    )


def _judged(spans: Sequence[Span], wall_ns: float) -> tuple[SampleClass, float]:
    """Return the class of a call's timestamps, and the time from the first to the last."""
    if any(not (span.begin_ticks and span.end_ticks) for span in spans):
        return SampleClass.ZERO, 0.0
    if any(span.end_ticks < span.begin_ticks for span in spans):
        return SampleClass.REVERSED, 0.0
    ticks = max(span.end_ticks for span in spans) - min(span.begin_ticks for span in spans)
    span_ns = ticks * spans[0].tick_period_ns
    if span_ns > WALL_SLACK * wall_ns:
        return SampleClass.LONGER_THAN_WALL, 0.0
    return (SampleClass.VALID if ticks else SampleClass.EQUAL), span_ns
