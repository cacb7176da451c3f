"""A series of times with its statistics, the classes of samples, and the reasons why sampling ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from ...display.quantities import format_time, format_uncertainty, relative_uncertainty
from ...storage.records import Record, key, left_out
from ...storage.schemas import Limits

# Of files, which may be of strangers: with larger times arithmetic could overflow.
_LONGEST_NS = 1e24
#: ns.
Time = Annotated[float, Limits(at_least=0, at_most=_LONGEST_NS)]
#: ns; a gap or a difference can be negative.
Difference = Annotated[float, Limits(at_least=-_LONGEST_NS, at_most=_LONGEST_NS)]
Count = Annotated[int, Limits(at_least=0)]
Positive = Annotated[int, Limits(at_least=1)]
#: The series that stands for a case.
Timed = Literal["gpu_span", "cpu_wall"]

#: With fewer samples there is no 95 % interval of a median: all n lie on one side of it with probability 2·(1/2)^n, so
#: even the whole range of five samples misses it in 6 % of cases.
LEAST_FOR_INTERVAL = 6
# Quotient of the slowest process by the fastest; on a GPU that nothing disturbs they differ by a few percent.
_FAR_APART = 1.2


class SampleClass(StrEnum):
    """Whether a pair of timestamps is valid, and if not, why."""

    VALID = "valid"
    ZERO = "zero"  #: a stamp is 0: it was never written
    REVERSED = "reversed"  #: the end lies before the begin: the counter was reset or wrapped
    EQUAL = "equal"  #: begin and end are the same: below the step of the clock
    LONGER_THAN_WALL = "longer_than_wall"  #: longer than its submission took on the CPU's clock
    STALE = "stale"  #: begins before the submission before it ended
    OVERLAPPING = "overlapping"  #: begins before its neighbour in the same submission ended
    OTHER_CLOCK = "other_clock"  #: valid, but taken at another clock of the GPU than the other samples


class StopReason(StrEnum):
    """Why no more samples were taken."""

    INTERVAL = "interval"  #: the 95 % interval of the median is narrow enough
    PLATEAU = "plateau"  #: more samples make the interval no narrower
    TIMEOUT = "timeout"  #: the time was up
    COUNT = "count"  #: the number of samples that was asked for is reached


@dataclass(frozen=True)
class Summary(Record):
    """Statistics of a series of times, in ns. Outliers are included and counted.

    Attributes
    ----------
    median_ns : float
        Of the samples, as the quartiles are.
    ci_low_ns, ci_high_ns : float or None
        The 95 % interval of `time_ns`; None with fewer than `LEAST_FOR_INTERVAL` samples.
    min_ns, q1_ns, q3_ns, mean_ns : float
        Least, quartiles, mean.
    std_ns, mad_ns : float or None
        Standard deviation, median absolute deviation; None with one sample.
    count : int
        Valid samples.
    outliers : int
        Samples more than 1.5 interquartile ranges outside the quartiles.
    levels_ns : tuple of float
        Of samples of several processes, the level of each. A results file has none, as it keeps processes apart.
    """

    median_ns: Difference
    ci_low_ns: Difference | None
    ci_high_ns: Difference | None
    min_ns: Difference
    q1_ns: Difference
    q3_ns: Difference
    mean_ns: Difference
    std_ns: Difference | None
    mad_ns: Difference | None
    count: Positive
    outliers: Count = 0
    levels_ns: tuple[Difference, ...] = left_out(())

    @property
    def time_ns(self) -> float:
        """The time that tables show: the median, or of several processes the geometric mean of their levels."""
        return math.exp(sum(map(math.log, self.levels_ns)) / len(self.levels_ns)) if self.levels_ns else self.median_ns

    @property
    def levels_differ(self) -> bool:
        """Whether processes differ so much that their mean may be the time of none of them."""
        return bool(self.levels_ns) and max(self.levels_ns) > _FAR_APART * min(self.levels_ns)

    @property
    def interval_ns(self) -> tuple[float, float] | None:
        """The 95 % interval of the time; None if the samples are too few."""
        if self.ci_low_ns is None or self.ci_high_ns is None:
            return None
        return self.ci_low_ns, self.ci_high_ns

    def uncertainty(self, step_ns: float = 0.0) -> float | None:
        """Return the uncertainty of the time, as a share of it; None if it has no interval.

        Parameters
        ----------
        step_ns : float, default 0
            The step of the clock divided by the dispatches of a sample. A timestamp is off by at most half a step.
        """
        if self.interval_ns is None:
            return None
        return relative_uncertainty(self.time_ns, *self.interval_ns, step_ns / 2)

    def uncertainty_text(self, step_ns: float = 0.0) -> str:
        """Return the uncertainty as text, ``"±0.3 %"``; without an interval, how few samples there are."""
        if self.interval_ns is None:
            return f"{self.count} sample{'s' if self.count != 1 else ''}"
        return format_uncertainty(self.uncertainty(step_ns))

    def text(self, step_ns: float = 0.0) -> str:
        """Return the time with its uncertainty: ``"15.9 ms ±0.3 %"``, or ``"1.37 s (1 sample)"``."""
        how = self.uncertainty_text(step_ns)
        return f"{format_time(self.time_ns)} {how if self.interval_ns else f'({how})'}".rstrip()


@dataclass(frozen=True)
class Series(Record):
    """The samples of one quantity, per trial, in the order in which they were taken.

    Attributes
    ----------
    name : str
        A kernel's label, or ``"gpu_span"``, ``"gpu_sum"``, ``"gaps"``, ``"cpu_wall"``, ``"submit"``, ``"encode"``.
    samples_ns : tuple of float
        Valid samples only.
    summary : Summary or None
        None where no sample is valid.
    invalid : mapping from str to int
        How many samples of each `SampleClass` were discarded.
    """

    name: str = field(metadata=key(None))
    samples_ns: tuple[Difference, ...]
    summary: Summary | None
    invalid: Mapping[Annotated[str, Limits(one_of=SampleClass)], Count] = field(default_factory=dict[str, int])

    @property
    def median_ns(self) -> float | None:
        """The median, or None."""
        return None if self.summary is None else self.summary.median_ns

    @property
    def time_ns(self) -> float | None:
        """The time that tables show, or None."""
        return None if self.summary is None else self.summary.time_ns

    @property
    def positive_ns(self) -> list[float]:
        """The samples without those that are 0: shorter than a step of the clock."""
        return [value for value in self.samples_ns if value > 0]

    def texts(self) -> tuple[str, str, str, str, str]:
        """Return as texts: median, uncertainty, minimum, number of samples, and how many were left out and why."""
        left_out = ", ".join(f"{count} {kind}".replace("_", " ") for kind, count in self.invalid.items() if count)
        samples = f"{len(self.samples_ns):,}"
        if self.summary is None:
            return "not measured", "", "–", samples, left_out
        s = self.summary
        return format_time(s.median_ns), s.uncertainty_text(), format_time(s.min_ns), samples, left_out
