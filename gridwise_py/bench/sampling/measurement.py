"""The data of a measurement: made by `measure`, judged by `compare`, stored in a results file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...display.quantities import format_number
from ...display.table import table_of
from ...display.terminal import clean
from ...internals import Code
from ...settings import ShaderChecks, strictest
from ..cases.mode import Mode
from ..cases.names import case_name
from ..checks.check import Mismatch
from ..stats.energy import EnergyResult
from ..stats.series import Series, StopReason
from ..stats.statistics import together
from .machine_load import load_note

#: A warning, which a wrong result is shown with.
CHANGES_ITSELF = (
    "the first result was right and the last one wrong: if a trial changes what the next one reads, name it in restore="
)


@dataclass(frozen=True)
class Measurement:
    """What was measured of a primitive, on a device, in a mode.

    Attributes
    ----------
    primitive : str
    mode : Mode
    n : int
    case : mapping
        Datatype, operator, and other axes of a sweep.
    parameters : mapping
        Choices of the plan.
    protocol : mapping
    kernels : tuple of Series
        In order.
    whole : mapping from str to Series
        ``gpu_span``, ``gpu_sum`` (of the kernels), ``gaps`` (of several), ``cpu_wall``; in mode latency ``submit`` and
        ``encode``.
    work : mapping
        Of the plan's `Work`.
    shaders_sha256 : tuple of str
    shader_checks : tuple of str or None
        Of each kernel, its run-time checks: ``"none"``, ``"bounds"`` or ``"all"``; None if that is unknown.
    cold_start_ns : float or None
        The first call, with compilation, on the CPU's clock.
    stop_reason : StopReason or None
    clock_moved : bool
        During every block; otherwise such blocks are left out.
    canary_ns : tuple of float
        Before and after each block.
    checked : bool
        Whether results were compared.
    mismatches : tuple of Mismatch
        Of the first or the last trial.
    warnings : tuple of str
    observations : mapping
        Clocks, power, temperature, reasons to throttle.
    ticks : tuple
        By sample and kernel, begin and end.
    tick_period_ns : float or None
    energy : EnergyResult or None
        Of a trial.
    other_load : float or None
        The share of all processors of the machine that other processes used meanwhile, from 0 to 1.
    begun_ns : int or None
        By ``time.perf_counter_ns()``.
    error : str or None
        Why there is no measurement.
    code : Code or None
        What it asks of the GPU; None where nobody sees that, as of a function.
    """

    primitive: str
    mode: Mode
    n: int
    case: Mapping[str, Any] = field(default_factory=dict[str, Any])
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    protocol: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kernels: tuple[Series, ...] = ()
    whole: Mapping[str, Series] = field(default_factory=dict[str, Series])
    work: Mapping[str, int] = field(default_factory=dict[str, int])
    shaders_sha256: tuple[str, ...] = ()
    shader_checks: tuple[ShaderChecks | None, ...] = ()
    cold_start_ns: float | None = None
    stop_reason: StopReason | None = None
    clock_moved: bool = False
    canary_ns: tuple[float, ...] = ()
    checked: bool = True
    mismatches: tuple[Mismatch, ...] = ()
    warnings: tuple[str, ...] = ()
    observations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ticks: tuple[tuple[tuple[int, int], ...], ...] = ()
    tick_period_ns: float | None = None
    energy: EnergyResult | None = None
    other_load: float | None = None
    begun_ns: int | None = None
    error: str | None = None
    code: Code | None = None

    @property
    def correct(self) -> bool:
        """Whether it ran, and no result was wrong."""
        return self.error is None and not self.mismatches

    @property
    def faults(self) -> tuple[str, ...]:
        """The first wrong item, and what may explain it; empty if there is none."""
        return tuple(map(str, self.mismatches[:1])) + tuple(w for w in self.warnings if w == CHANGES_ITSELF)

    @property
    def time_ns(self) -> float | None:
        """The median GPU span, or the CPU wall if no timestamps are valid."""
        series = self._timed_by
        return None if series is None else series.median_ns

    @property
    def _timed_by(self) -> Series | None:
        for name in ("gpu_span", "cpu_wall"):
            series = self.whole.get(name)
            if series is not None and series.median_ns:
                return series
        return None

    @property
    def gbytes_per_s(self) -> float | None:
        """10^9 bytes per second that must be moved."""
        moved = self.work.get("read_bytes", 0) + self.work.get("write_bytes", 0)
        return moved / self.time_ns if moved and self.time_ns else None

    @property
    def gitems_per_s(self) -> float | None:
        """10^9 items per second."""
        items = self.work.get("items", 0)
        return items / self.time_ns if items and self.time_ns else None

    def __repr__(self) -> str:
        series = self._timed_by
        summary = None if series is None else series.summary
        time = "no time" if series is None or summary is None else f"{_QUANTITIES[series.name]} {summary.text()}"
        notes = (self._checks_note(), self._verdict(), *self.faults, load_note(self.other_load))
        return f"Measurement({self._title()}: {time}{self._no_gpu_time()}, {'; '.join(filter(None, notes))})"

    def _repr_html_(self) -> str:
        named = [(name, series) for name, (series, _) in together(self.kernels).items()]
        named += [(_QUANTITIES.get(name, name), series) for name, series in self.whole.items()]
        headings = ("per trial", "median", "95 % interval", "least", "samples", "left out")
        rows = [(name, *series.texts()) for name, series in named]
        said = (load_note(self.other_load), self._checks_note())
        notes = [*map(str, self.mismatches), *self.warnings, *filter(None, said)]
        series = self._timed_by
        if series is not None:
            rates = ((self.gbytes_per_s, "GB/s"), (self.gitems_per_s, "G items/s"))
            known = [f"{format_number(rate)} {unit}" for rate, unit in rates if rate is not None]
            notes[:0] = [f"{', '.join(known)} by the {_QUANTITIES[series.name]}"] if known else []
        return table_of(f"{self._title()}: {self._verdict()}", headings, rows, texts=(0, 5), remarks=notes).html()

    def _title(self) -> str:
        return clean(case_name(self.primitive, self.case, self.mode, self.n))

    def _verdict(self) -> str:
        if self.error is not None:
            return clean(self.error.partition("\n")[0])  # a compiler's message continues with the whole shader
        if not self.checked:
            return "not checked"
        return "right" if self.correct else "WRONG"

    def _checks_note(self) -> str:
        """Return the run-time checks that some of it has."""
        level = strictest(self.shader_checks)
        return "" if level in (None, "none") else f"shader_checks={level}"

    def _no_gpu_time(self) -> str:
        """Say why the CPU wall is shown although timestamps were taken."""
        span = self.whole.get("gpu_span")
        if span is None or span is self._timed_by:
            return ""
        return f" (no GPU time is valid: {span.texts()[4] or 'no samples'})"


#: Names for people of the series of `Measurement.whole`.
_QUANTITIES = {
    "gpu_span": "GPU span", "gpu_sum": "sum of the kernels", "gaps": "gaps between kernels", "cpu_wall": "CPU wall",
    "submit": "submit", "encode": "encode",
}  # fmt: skip
