"""Blocks of samples, classified and collected into series with statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..calibrate.canary import CLOCK_TOLERANCE, CanaryTime, Settled, settled
from ..calibrate.classify import classify, count_invalid
from ..cases.mode import Mode
from ..stats.resampling import Times
from ..stats.series import SampleClass, Series
from ..stats.statistics import summarize
from .sampler import Block

_STEPS_OF_A_SPAN = 100
#: Texts of warnings about blocks whose canaries differ, and about blocks that are left out.
CLOCK_MOVED, LEFT_OUT = "the clock moved", "taken at another clock"


def make_series(name: str, values_ns: Times, invalid: dict[str, int] | None = None) -> Series:
    """Return a series with its statistics; NaN is left out."""
    x = np.asarray(values_ns, dtype=np.float64)
    valid: list[float] = x[~np.isnan(x)].tolist()
    return Series(name, tuple(valid), summarize(valid) if valid else None, invalid or {})


@dataclass(frozen=True)
class _Judged:
    """A classified block of samples: a row of times per series, in the order of the samples, NaN if invalid."""

    count: int
    canaries: tuple[CanaryTime | None, CanaryTime | None]
    cpu_ns: dict[str, list[float]]
    ticks: NDArray[np.uint64] | None = None
    kernels_ns: tuple[NDArray[np.float64], ...] = ()
    whole_ns: dict[str, NDArray[np.float64]] = field(default_factory=dict[str, NDArray[np.float64]])
    kernels_invalid: tuple[dict[str, int], ...] = ()
    whole_invalid: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])


class Samples:
    """All samples of a measurement, as they come block by block.

    Blocks at another clock than most are left out of all series, and counted there as `SampleClass.OTHER_CLOCK`. The
    canary decides this, not the sampled times.

    Parameters
    ----------
    labels : sequence of str
        Of the kernels.
    mode : Mode
    batch_trials : int
        Dispatches in a span; times are divided by it.
    untimed_work : bool
        Whether submissions contain untimed work, which makes CPU walls meaningless.
    on_cpu : bool
        Whether the adapter is a CPU. There the canary shows other work of the machine, not a clock, and hardly any of
        it: all blocks are kept, and what they spread by is noise.
    """

    def __init__(
        self, labels: Sequence[str], mode: Mode, batch_trials: int, untimed_work: bool, *, on_cpu: bool = False
    ):
        self._labels = tuple(labels)
        self._mode = mode
        self._divide = batch_trials
        self._untimed_work = untimed_work
        self._on_cpu = on_cpu
        self._blocks: list[_Judged] = []
        self._last_end: int | None = None
        self._timed = False
        #: Which blocks are kept, and at which clock.
        self.settled: Settled = Settled(())

    def add(self, block: Block, period_ns: float | None) -> None:
        """Classify the samples of a block and add them."""
        per_submission = Counter(block.submissions)
        trials = [per_submission[i] * self._divide for i in range(len(block.walls_ns))]
        cpu: dict[str, list[float]] = {}
        if not self._untimed_work:
            cpu["cpu_wall"] = [wall / count for wall, count in zip(block.walls_ns, trials, strict=True)]
        if self._mode is Mode.LATENCY:
            cpu["submit"] = list(block.submits_ns)
            if block.encodes_ns:
                cpu["encode"] = list(block.encodes_ns)
        judged = _Judged(len(block.submissions), block.canaries, cpu)
        if block.ticks is not None and period_ns is not None:
            self._timed = True
            previous = self._last_end if block.previous_end_ticks is None else block.previous_end_ticks
            # The bound of a span; the wall itself stays as it was read.
            longest_ns = [wall_ns + block.wall_step_ns for wall_ns in block.walls_ns]
            found = classify(block.ticks, period_ns, block.submissions, longest_ns, previous_end_ticks=previous)
            self._last_end = found.last_end_ticks
            sums = count_invalid(found.sum_classes)
            judged = replace(
                judged,
                ticks=block.ticks,
                kernels_ns=tuple(found.kernels_ns.T / self._divide),
                whole_ns={
                    "gpu_span": found.span_ns / self._divide,
                    "gpu_sum": found.sum_ns / self._divide,
                    "gaps": found.gaps_ns / self._divide,
                },
                kernels_invalid=tuple(found.invalid(k) for k in range(len(self._labels))),
                whole_invalid={"gpu_span": count_invalid(found.span_classes), "gpu_sum": sums, "gaps": sums},
            )
        self._blocks.append(judged)
        found = settled([b.canaries for b in self._blocks])
        self.settled = Settled((True,) * len(self._blocks), canary=found.canary) if self._on_cpu else found

    @property
    def count(self) -> int:
        """Samples that are not left out."""
        return sum(block.count for block, kept in zip(self._blocks, self.settled.kept, strict=True) if kept)

    @property
    def block_samples(self) -> list[int]:
        """Samples of each block."""
        return [block.count for block in self._blocks]

    @property
    def canaries(self) -> list[CanaryTime]:
        """The canary before and after each block."""
        return [canary for block in self._blocks for canary in block.canaries if canary is not None]

    def _gathered(self, of: Callable[[_Judged], Times]) -> tuple[list[float], int]:
        """Return the samples of one series, and how many valid ones were left out."""
        values: list[float] = []
        left_out = 0
        for block, kept in zip(self._blocks, self.settled.kept, strict=True):
            x = of(block)
            if kept:
                values += list(x)
            else:
                left_out += int(np.count_nonzero(~np.isnan(x)))
        return values, left_out

    def _series(
        self,
        name: str,
        of: Callable[[_Judged], Times],
        invalid_of: Callable[[_Judged], Mapping[str, int]] = lambda block: {},
    ) -> Series:
        values, left_out = self._gathered(of)
        invalid = sum((Counter(invalid_of(block)) for block in self._blocks), Counter[str]())
        invalid[SampleClass.OTHER_CLOCK.value] += left_out
        return make_series(name, values, dict(sorted((+invalid).items())))

    def headline(self) -> list[float]:
        """Return the valid samples for the stopping rule."""
        if self._timed:
            return [x for x in self._gathered(lambda block: block.whole_ns["gpu_span"])[0] if x == x]
        return self._gathered(lambda block: block.cpu_ns.get("cpu_wall", ()))[0]

    def kernels(self) -> tuple[Series, ...]:
        """Return a series per kernel; without samples and summary where there are no timestamps."""
        if not self._timed:
            return tuple(make_series(label, ()) for label in self._labels)
        return tuple(
            self._series(label, lambda block, k=k: block.kernels_ns[k], lambda block, k=k: block.kernels_invalid[k])
            for k, label in enumerate(self._labels)
        )

    def whole(self) -> dict[str, Series]:
        """Return the series of the whole; gaps only if there can be any."""
        names = [] if not self._timed else ["gpu_span", "gpu_sum", "gaps"][: 3 if len(self._labels) > 1 else 2]
        found = {
            name: self._series(
                name, lambda block, name=name: block.whole_ns[name], lambda block, name=name: block.whole_invalid[name]
            )
            for name in names
        }
        for name in ("cpu_wall", "submit", "encode"):
            if any(name in block.cpu_ns for block in self._blocks):
                found[name] = self._series(name, lambda block, name=name: block.cpu_ns[name])
        return found

    def ticks(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Return the raw timestamps of all samples: per sample, per kernel, begin and end."""
        known = [block.ticks for block in self._blocks if block.ticks is not None]
        return tuple(tuple((begin, end) for begin, end in sample) for ticks in known for sample in ticks.tolist())

    def warnings(self, tick_step_ns: float | None) -> list[str]:
        """Return the warnings about the samples."""
        found: list[str] = []
        if self.settled.moved:
            found.append(
                f"{CLOCK_MOVED}: before and after each block of samples the canary kernel took times that differ by "
                f"more than {100 * CLOCK_TOLERANCE:g} %"
            )
        left_out = sum(self.block_samples) - self.count
        if left_out:
            found.append(
                f"{left_out} of {sum(self.block_samples)} samples were {LEFT_OUT} than the others, as the canary "
                f"tells, and are left out"
            )
        if not self._timed:
            return found
        kernels = self.kernels()
        discarded = sum((Counter(kernel.invalid) for kernel in kernels), Counter[str]())
        del discarded[SampleClass.OTHER_CLOCK.value]
        if discarded:
            classes = ", ".join(f"{count} {name}" for name, count in sorted(discarded.items()))
            pairs = sum(self.block_samples) * len(self._labels)
            found.append(f"{discarded.total()} of {pairs} pairs of timestamps: {classes}")
        if tick_step_ns:
            short = dict.fromkeys(
                kernel.name
                for kernel in kernels
                if kernel.median_ns is not None and kernel.median_ns * self._divide < _STEPS_OF_A_SPAN * tick_step_ns
            )
            if short or discarded[SampleClass.EQUAL.value]:
                remedy = "raise batch_trials" if self._mode is Mode.BATCH else "use mode 'batch'"
                found.append(
                    f"{', '.join(short) or 'a kernel'}: shorter than {_STEPS_OF_A_SPAN} steps of the GPU's clock "
                    f"({tick_step_ns:g} ns each); {remedy}"
                )
        return found
