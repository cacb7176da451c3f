"""Joules of a call: windows of a sensor, what is made of them, and which of two takes less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated

import numpy as np

from ...display.quantities import format_energy
from ...storage.records import Record
from ...storage.schemas import Limits
from .levels import mean_level
from .series import Count, Positive
from .verdict import Pair, Verdict, judge_all

#: With fewer there is no interval.
LEAST_WINDOWS = 3
#: Power depends on the temperature: leakage rises by some percent over 10 °C.
_DRIFT_C = 5.0
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class EnergyWindow(Record):
    """A stretch of time, full of calls.

    Attributes
    ----------
    energy_j : float
        Of the whole GPU, its idle power and other processes included.
    duration_s : float
    calls : int
    steps : int
        How often the sensor stepped.
    temperature_c : float or None
        At its end.
    """

    energy_j: Annotated[float, Limits(at_least=0)]
    duration_s: Annotated[float, Limits(at_least=0)]
    calls: Positive
    steps: Count
    temperature_c: float | None

    @property
    def power_w(self) -> float | None:
        """Mean power."""
        return self.energy_j / self.duration_s if self.duration_s else None


@dataclass(frozen=True, kw_only=True)
class EnergyResult(Record):
    """The energy of a call.

    Attributes
    ----------
    joules : float or None
        Of one call: the mean of the windows. None if `reason` says why.
    low_j, high_j : float or None
        The 95 % interval; None with fewer than three windows.
    power_w : float or None
        Mean power while it ran.
    windows : tuple of EnergyWindow
    sensor : str or None
    reason : str or None
        Why there is no number.
    warnings : tuple of str
        Reasons to doubt the number.
    """

    joules: Annotated[float, Limits(above=0)] | None = None
    low_j: float | None = None
    high_j: float | None = None
    power_w: float | None = None
    windows: tuple[EnergyWindow, ...] = ()
    sensor: str | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"EnergyResult({self._said()}{''.join(f'; doubtful: {text}' for text in self.warnings)})"

    def uncertainty(self) -> float | None:
        """Return half of the interval, as a share of the energy."""
        if self.joules is None or self.low_j is None or self.high_j is None:
            return None
        return (self.high_j - self.low_j) / (2 * self.joules)

    def _said(self) -> str:
        if self.joules is None:
            return f"not measured: {self.reason}"
        ends = "" if self.low_j is None else f" ({format_energy(self.low_j)} to {format_energy(self.high_j or 0.0)})"
        power = "" if self.power_w is None else f" at {self.power_w:.0f} W"
        count = len(self.windows)
        return f"{format_energy(self.joules)} per call{ends}{power}, {count} window{'s' if count != 1 else ''}"


def energy_of(windows: Sequence[EnergyWindow], sensor: str) -> EnergyResult:
    """Return the energy of a call, from windows with enough steps of the sensor.

    Parameters
    ----------
    windows : sequence of EnergyWindow
        At least one.
    sensor : str
    """
    each = [window.energy_j / window.calls for window in windows]
    low = high = None
    if len(each) >= LEAST_WINDOWS:
        estimate = mean_level(np.array(each))
        reach = float(estimate.reach(_CONFIDENCE))
        low, high = estimate.value - reach, estimate.value + reach
    power = sum(window.energy_j for window in windows) / sum(window.duration_s for window in windows)
    return EnergyResult(
        joules=fmean(each), low_j=low, high_j=high, power_w=power, windows=tuple(windows), sensor=sensor,
        warnings=_warnings(windows),
    )  # fmt: skip


def pooled_energy(visits: Sequence[EnergyResult]) -> EnergyResult | None:
    """Return the energy of several visits of one case; of those without a number the first; None of none."""
    done = [visit for visit in visits if visit.joules is not None]
    if len(done) < 2:
        return (*done, *visits, None)[0]
    return energy_of([window for visit in done for window in visit.windows], done[0].sensor or "")


def _warnings(windows: Sequence[EnergyWindow]) -> tuple[str, ...]:
    known = [window.temperature_c for window in windows if window.temperature_c is not None]
    if len(known) > 1 and max(known) - min(known) > _DRIFT_C:
        return (
            f"the GPU was at {known[0]:g} °C after the first window and at {known[-1]:g} °C after the last "
            f"({min(known):g} to {max(known):g}), and power depends on the temperature; warm up for longer, or "
            f"compare in turns",
        )
    return ()


def judge_energy(old: EnergyResult, new: EnergyResult, threshold: float) -> Verdict | None:
    """Judge two energies by pairs of windows; None where a side has no number or too few windows.

    Of calls that were measured in turns, the windows of a pair are of one round.
    """
    pairs = list(zip(old.windows, new.windows, strict=False))
    if old.joules is None or new.joules is None or len(pairs) < LEAST_WINDOWS:
        return None
    before, after = ([[pair[side].energy_j / pair[side].calls] for pair in pairs] for side in (0, 1))
    (found,) = judge_all([Pair(before, after, in_turns=True)], threshold=threshold)
    return found
