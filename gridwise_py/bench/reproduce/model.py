"""What an experiment is, and how its readings become a verdict. Uses no GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np

from ...display.quantities import format_time
from ..stats.series import LEAST_FOR_INTERVAL
from ..stats.statistics import summarize

NS, RATE = "ns", "GB/s"
#: By what was read: its samples, in the unit of the experiment.
Readings: TypeAlias = Mapping[str, Sequence[float]]


class Verdict(StrEnum):
    """Whether a claim is true on this machine."""

    HOLDS = "holds here"
    DOES_NOT = "does not hold here"
    CANNOT = "cannot be shown here"


@dataclass(frozen=True)
class Outcome:
    """A verdict, and its reason with the numbers."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Reading:
    """The samples of one quantity, summarised.

    Attributes
    ----------
    median : float
    low, high : float
        The 95 % interval of the median; with fewer than 6 samples, or samples of 0, the least and the most.
    unit : str
    count : int
    """

    median: float
    low: float
    high: float
    unit: str
    count: int

    @classmethod
    def of(cls, samples: Sequence[float], unit: str = NS) -> Reading:
        """Summarise at least one sample."""
        median, low, high = float(np.median(samples)), float(min(samples)), float(max(samples))
        if len(samples) >= LEAST_FOR_INTERVAL and low > 0:
            low, high = summarize(samples).interval_ns or (low, high)
        return cls(median, low, high, unit, len(samples))

    def __str__(self) -> str:
        return format_time(self.median) if self.unit == NS else f"{self.median:.3g} {self.unit}"

    @property
    def range(self) -> str:
        """The interval as text."""
        if self.unit == NS:
            return f"{format_time(self.low)} to {format_time(self.high)}"
        return f"{self.low:.3g} to {self.high:.3g} {self.unit}"


@dataclass(frozen=True)
class Apart:
    """Whether one quantity is larger than another one.

    Attributes
    ----------
    larger : bool or None
        True: the whole interval lies above that of the other one. False: not. None: they overlap.
    ratio : float
        Of the medians.
    text : str
        Both, with their names.
    """

    larger: bool | None
    ratio: float
    text: str


def apart(readings: Readings, large: str, small: str, unit: str = NS) -> Apart:
    """Compare two readings by their intervals."""
    a, b = (Reading.of(readings[name], unit) for name in (large, small))
    larger = True if a.low > b.high else False if a.high < b.low else None
    ratio = a.median / b.median if b.median else float("inf")
    return Apart(larger, ratio, f"{large} {a}, {small} {b} ({_times(ratio)} times)")


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:#.3g}"


def outcome(found: bool | None, text: str) -> Outcome:
    """Return the outcome of a comparison: None means that the readings do not tell."""
    if found is None:
        return Outcome(Verdict.CANNOT, f"{text}: the intervals overlap; take more --repeats on an idle machine")
    return Outcome(Verdict.HOLDS if found else Verdict.DOES_NOT, text)


Measure: TypeAlias = Callable[[Any], Readings]
Judge: TypeAlias = Callable[[Readings], Outcome]


def larger(large: str, small: str, unit: str = NS) -> Judge:
    """Return a judge of the claim that one reading is larger than another."""

    def judge(readings: Readings) -> Outcome:
        found = apart(readings, large, small, unit)
        return outcome(found.larger, found.text)

    return judge


@dataclass(frozen=True)
class Experiment:
    """A claim, how to measure what it is about, and how to judge that.

    Attributes
    ----------
    name : str
    claim : str
    source : str
        Who says so, and where.
    measure : callable
        Takes a `Lab`, and returns the samples of each quantity.
    judge : callable
        Takes these.
    unit : str
    needs_timestamps : bool
    needs_gpu : bool
        Whether the claim is about hardware that a software adapter does not have.
    """

    name: str
    claim: str
    source: str
    measure: Measure
    judge: Judge
    unit: str = NS
    needs_timestamps: bool = True
    needs_gpu: bool = False

    def obstacle(self, *, is_cpu: bool, has_timestamps: bool) -> Outcome | None:
        """Return why it cannot be shown on a device, before anything is measured."""
        if self.needs_timestamps and not has_timestamps:
            return Outcome(Verdict.CANNOT, "the adapter has no timestamp-query; choose another one with --adapter")
        if self.needs_gpu and is_cpu:
            said = "the adapter is software on the CPU: it has no clock and no power of its own"
            return Outcome(Verdict.CANNOT, said)
        return None

    def judged(self, readings: Readings) -> Outcome:
        """Judge readings; without a valid one, the claim cannot be shown."""
        empty = [name for name, samples in readings.items() if not samples]
        if empty:
            return Outcome(Verdict.CANNOT, f"no valid time of: {', '.join(empty)}")
        return self.judge(readings)
