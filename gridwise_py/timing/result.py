"""The results of a timed run: plain numbers, independent of any GPU."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..display.quantities import format_time
from ..display.table import table_of
from ..display.terminal import clean
from ..errors import TimingUnavailable
from ..planning.plan import Work
from ..storage.chrome_trace import ChromeTrace, GpuSlice
from .overhead import TimingOverhead


@dataclass(frozen=True)
class Span:
    """The begin and the end of a pass."""

    label: str
    begin_ticks: int
    end_ticks: int
    tick_period_ns: float

    @property
    def valid(self) -> bool:
        """Whether both timestamps are there, in order."""
        return self.begin_ticks != 0 and self.end_ticks != 0 and self.end_ticks >= self.begin_ticks

    @property
    def ns(self) -> float | None:
        """Its length in nanoseconds; None if invalid."""
        return (self.end_ticks - self.begin_ticks) * self.tick_period_ns if self.valid else None


def _whole_ns(spans: tuple[Span, ...]) -> float | None:
    if not spans or not all(span.valid for span in spans):
        return None
    first = min(span.begin_ticks for span in spans)
    last = max(span.end_ticks for span in spans)
    return (last - first) * spans[0].tick_period_ns


def _gaps_ns(spans: tuple[Span, ...]) -> list[float] | None:
    if not spans or not all(span.valid for span in spans):
        return None
    return [
        (after.begin_ticks - before.end_ticks) * after.tick_period_ns for before, after in itertools.pairwise(spans)
    ]


@dataclass(frozen=True)
class PerTrial:
    """The times of one trial.

    Attributes
    ----------
    gpu_total_time_ns : list of float or None
    gpu_span_ns : float or None
    cpu_total_time_ns : float or None
    """

    gpu_total_time_ns: list[float | None] | None
    gpu_span_ns: float | None
    cpu_total_time_ns: float | None


@dataclass(frozen=True)
class TimingResult:
    """The times of a run, over all trials.

    Attributes
    ----------
    labels : tuple of str
        Of the kernels, in order.
    trials : int
        Dispatches of each kernel.
    cpu_total_time_ns : float or None
        On the CPU's clock, from the submission to an idle queue; it was idle before.
    submit_time_ns : float or None
        The part in the call to submit.
    encode_time_ns : float or None
        Recording the commands, before that.
    wait_method : str or None
        ``"read_buffer"`` makes CPU times coarse.
    spans : tuple of Span
    warnings : tuple of str
    workgroups : tuple of tuple of int
        Of each kernel.
    work : Work or None
        Of one trial.
    passes : tuple of Span
        Passes that kernels shared.
    overhead : TimingOverhead or None
        What the timestamps added; None before `timing_overhead`.
    """

    labels: tuple[str, ...]
    trials: int
    spans: tuple[Span, ...] = ()
    cpu_total_time_ns: float | None = None
    submit_time_ns: float | None = None
    encode_time_ns: float | None = None
    wait_method: str | None = None
    warnings: tuple[str, ...] = field(default=())
    workgroups: tuple[tuple[int, int, int], ...] = ()
    work: Work | None = None
    passes: tuple[Span, ...] = ()
    overhead: TimingOverhead | None = None

    @property
    def gpu_total_time_ns(self) -> list[float | None] | None:
        """A list: the GPU time of each kernel; None for an invalid timestamp."""
        return [span.ns for span in self.spans] if self.spans else None

    @property
    def gpu_span_ns(self) -> float | None:
        """From the begin of the first kernel to the end of the last."""
        return _whole_ns(self.spans)

    @property
    def gaps_ns(self) -> list[float] | None:
        """From the end of each kernel to the begin of the next."""
        return _gaps_ns(self.spans)

    @property
    def tick_period_ns(self) -> float | None:
        """Nanoseconds per tick."""
        return self.spans[0].tick_period_ns if self.spans else None

    @property
    def per_trial(self) -> PerTrial:
        """The times of one trial."""

        def divide(value: float | None) -> float | None:
            return None if value is None else value / self.trials

        gpu = self.gpu_total_time_ns
        return PerTrial(
            None if gpu is None else [divide(value) for value in gpu],
            divide(self.gpu_span_ns),
            divide(self.cpu_total_time_ns),
        )

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write a Chrome trace, for ui.perfetto.dev.

        The place of the GPU's lane beside the host's is approximate.

        Raises
        ------
        TimingUnavailable
            If nothing was timed.
        """
        trace = ChromeTrace()
        add_timing_result(trace, self)
        trace.write(path)

    def _rows(self) -> list[tuple[str, float | None]]:
        gpu = self.per_trial.gpu_total_time_ns or [None] * len(self.labels)
        return list(zip(self.labels, gpu, strict=True))

    def __repr__(self) -> str:
        kernels = ", ".join(f"{clean(label)} {_format_ns(value)}" for label, value in self._rows())
        per = self.per_trial
        return (
            f"TimingResult(per trial of {self.trials}: {kernels or 'no kernels'}; "
            f"GPU span {_format_ns(per.gpu_span_ns)}, CPU wall {_format_ns(per.cpu_total_time_ns)}"
            f"{''.join(f'; doubtful: {clean(warning)}' for warning in self.warnings)})"
        )

    def _repr_html_(self) -> str:
        per = self.per_trial
        rows = [*self._rows(), ("GPU span", per.gpu_span_ns), ("CPU wall", per.cpu_total_time_ns)]
        caption = f"per trial, {self.trials} trial{'s' if self.trials != 1 else ''}"
        texts = [(label, _format_ns(value)) for label, value in rows]
        return table_of(caption, ("", ""), texts, remarks=self.warnings).html()


def _format_ns(time_ns: float | None) -> str:
    return format_time(time_ns, "not measured")


def add_timing_result(trace: ChromeTrace, result: TimingResult, name: str = "", begin_ns: int = 0) -> int:
    """Add a timed run; return when it ended, in ns.

    The host's lane has encode, submit and wait one after another. The end of the last kernel is put where the wait
    ended, since that is what the two clocks have in common.
    """
    spans = [span for span in result.spans if span.valid]
    if not spans and result.cpu_total_time_ns is None:
        raise TimingUnavailable(
            "a trace needs times; call execute(enable_gpu_timing=True, enable_cpu_timing=True) for both lanes"
        )
    now = float(begin_ns)
    wall_ns = result.cpu_total_time_ns
    if wall_ns is not None:
        lane = trace.lane("host", "host")
        encode_ns, submit_ns = result.encode_time_ns or 0.0, result.submit_time_ns or 0.0
        wait_ns = wall_ns - submit_ns
        for step, duration_ns in (("encode", encode_ns), ("submit", submit_ns), ("wait", wait_ns)):
            if duration_ns:
                trace.slice(lane, f"{step} {name}".strip(), now, duration_ns, {"wait_method": result.wait_method})
            now += duration_ns
    if spans:
        if wall_ns is None:
            now += _whole_ns(tuple(spans)) or 0.0
        anchor = (max(span.end_ticks for span in spans), round(now))
        pieces = [
            GpuSlice(span.label, span.begin_ticks, span.end_ticks, _kernel_args(result, i))
            for i, span in enumerate(result.spans)
            if span.valid
        ]
        trace.gpu_slices("GPU queue", pieces, spans[0].tick_period_ns, anchor)
        passes = [
            GpuSlice(span.label, span.begin_ticks, span.end_ticks, {}, "pass") for span in result.passes if span.valid
        ]
        trace.gpu_slices("GPU passes", passes, spans[0].tick_period_ns, anchor)
    return round(now)


def _kernel_args(result: TimingResult, i: int) -> dict[str, Any]:
    return {
        "workgroups": list(result.workgroups[i]) if result.workgroups else None,
        "trials": result.trials,
        "primitive_bytes": None if result.work is None else result.work.moved_bytes,
        **({"warnings": list(result.warnings)} if result.warnings else {}),
    }
