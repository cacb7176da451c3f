"""Blocks of samples, judged and gathered into series with statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from .classify import classify, count_invalid
from .measurement import Mode, SampleClass, Series
from .sampling import Block
from .statistics import summarize

__all__ = ["Samples", "make_series"]

_STEPS_OF_A_SPAN = 100


def make_series(name: str, values_ns: Sequence[float], invalid: dict[str, int] | None = None) -> Series:
    """Return a series with its statistics; NaN is left out."""
    x = np.asarray(values_ns, dtype=np.float64)
    valid = x[~np.isnan(x)].tolist()
    return Series(name, tuple(valid), summarize(valid) if valid else None, invalid or {})


class Samples:
    """All samples of a measurement, as they come block by block.

    Parameters
    ----------
    labels : sequence of str
        Of the kernels.
    mode : Mode
    batch_trials : int
        Dispatches that a span is over; times are divided by it.
    untimed_work : bool
        Whether submissions hold work that does not count, so that walls say nothing.
    """

    def __init__(self, labels: Sequence[str], mode: Mode, batch_trials: int, untimed_work: bool):
        self._labels = tuple(labels)
        self._mode = mode
        self._divide = batch_trials
        self._untimed_work = untimed_work
        self._ticks: list[np.ndarray] = []
        self._kernels: list[list[float]] = [[] for _ in labels]
        self._invalid = [Counter() for _ in labels]
        self._whole: dict[str, list[float]] = {"gpu_span": [], "gpu_sum": [], "gaps": []}
        self._whole_invalid = {name: Counter() for name in self._whole}
        self._cpu: dict[str, list[float]] = {"cpu_wall": [], "submit": [], "encode": []}
        self._last_end: int | None = None
        self._timed = False
        self.count = 0

    def add(self, block: Block, period_ns: float | None) -> None:
        """Judge the samples of a block and take them in."""
        self.count += len(block.submissions)
        per_submission = Counter(block.submissions)
        for i, (wall, submit, encode) in enumerate(
            zip(block.walls_ns, block.submits_ns, block.encodes_ns, strict=True)
        ):
            trials = per_submission[i] * self._divide
            if not self._untimed_work:
                self._cpu["cpu_wall"].append(wall / trials)
            if self._mode is Mode.LATENCY:
                self._cpu["submit"].append(submit)
                self._cpu["encode"].append(encode)
        if block.ticks is None or period_ns is None:
            return
        self._timed = True
        previous_end = self._last_end if block.previous_end_ticks is None else block.previous_end_ticks
        found = classify(block.ticks, period_ns, block.submissions, block.walls_ns, previous_end_ticks=previous_end)
        self._last_end = found.last_end_ticks
        self._ticks.append(block.ticks)
        for k in range(len(self._labels)):
            self._kernels[k] += (found.kernels_ns[:, k] / self._divide).tolist()
            self._invalid[k].update(found.invalid(k))
        values = {"gpu_span": found.span_ns, "gpu_sum": found.sum_ns, "gaps": found.gaps_ns}
        classes = {"gpu_span": found.span_classes, "gpu_sum": found.sum_classes, "gaps": found.sum_classes}
        for name, samples in values.items():
            self._whole[name] += (samples / self._divide).tolist()
            self._whole_invalid[name].update(count_invalid(classes[name]))

    def headline(self) -> list[float]:
        """Return the valid samples by which it is decided when to stop."""
        if self._timed:
            return [x for x in self._whole["gpu_span"] if x == x]
        return self._cpu["cpu_wall"]

    def kernels(self) -> tuple[Series, ...]:
        """Return a series per kernel; without samples and summary where there are no timestamps."""
        return tuple(
            make_series(label, values, dict(invalid))
            for label, values, invalid in zip(self._labels, self._kernels, self._invalid, strict=True)
        )

    def whole(self) -> dict[str, Series]:
        """Return the series of the whole; gaps only where there can be some."""
        names = [] if not self._timed else ["gpu_span", "gpu_sum", "gaps"][: 3 if len(self._labels) > 1 else 2]
        found = {name: make_series(name, self._whole[name], dict(self._whole_invalid[name])) for name in names}
        return found | {name: make_series(name, values) for name, values in self._cpu.items() if values}

    def ticks(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Return the raw stamps: per sample, per kernel, begin and end."""
        return tuple(tuple((begin, end) for begin, end in sample) for block in self._ticks for sample in block.tolist())

    def warnings(self, tick_step_ns: float | None) -> list[str]:
        """Return what is to be said of the samples."""
        if not self._timed:
            return []
        found = []
        discarded = sum(self._invalid, Counter())
        if discarded:
            classes = ", ".join(f"{count} {name}" for name, count in sorted(discarded.items()))
            found.append(f"{discarded.total()} of {self.count * len(self._labels)} pairs of timestamps: {classes}")
        if tick_step_ns:
            short = [
                label
                for label, values in zip(self._labels, self._kernels, strict=True)
                if (series := make_series(label, values)).median_ns is not None
                and series.median_ns * self._divide < _STEPS_OF_A_SPAN * tick_step_ns
            ]
            if short or discarded[SampleClass.EQUAL.value]:
                remedy = "raise batch_trials" if self._mode is Mode.BATCH else "use mode 'batch'"
                found.append(
                    f"{', '.join(short) or 'a kernel'}: shorter than {_STEPS_OF_A_SPAN} steps of the GPU's clock "
                    f"({tick_step_ns:g} ns each); {remedy}"
                )
        return found
