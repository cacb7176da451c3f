"""Histogram: how many items are in each bin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..planning.builder import PlanBuilder
from ..planning.layout import Layout, Operand
from ..planning.plan import Fill, Plan, Work
from ..planning.signature import Argument
from ..planning.windows import windows_of
from ..tuning.options import HistogramTuning
from ..tuning.shapes import Shape, Shapes, shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, Datatype, as_datatype
from ..types.options import integer
from .base import Primitive
from .registry import register
from .typed import InputTotal

__all__ = ["Histogram"]

# Bins that one copy of counters of 16 KiB has room for: four such workgroups fit on a multiprocessor with 64 KiB.
_SMALL_WORDS = 4096
# No larger, whatever a device allows: others have to fit beside it.
_LARGE_WORDS = 12_288
_MOST_COPIES = 32
# Entries of a table that a workgroup adds up: 32 bytes.
_COLUMNS = 8


@dataclass(frozen=True)
class CounterShape:
    """How the counters of bins lie in workgroup memory.

    Attributes
    ----------
    words : int
        Of workgroup memory.
    ranges : int
        In how many parts bins are counted, by workgroups that read the same items.
    range_bins : int
        Bins of each part; fewer in the last one.
    copies : int
        Of the counters.
    stride : int
        Counters from a copy to the next.
    """

    words: int
    ranges: int
    range_bins: int
    copies: int
    stride: int

    @classmethod
    def of(cls, bins: int, words: int, most_copies: int) -> CounterShape:
        """Return the shape for so many bins."""
        ranges = -(-bins // words)
        range_bins = -(-bins // ranges)
        # With an odd distance, the counters of one bin lie in different banks.
        stride = range_bins | 1
        copies = max(1, min(words // stride, most_copies))
        return cls(words, ranges, range_bins, copies, range_bins if copies == 1 else stride)


@register("histogram")
class Histogram(InputTotal, Primitive):  # pyright: ignore[reportIncompatibleMethodOverride]  # see typed.py
    """Count the items in each bin."""

    takes_count = True
    arguments = (
        Argument("input", chunked=True, any_shape=True),
        Argument("output", is_output=True, datatype=DATATYPES["u32"], length=256),
    )

    @explained(HistogramTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: Any = "u32",
        bins: int = 256,
        *,
        range: tuple[Any, Any] | None = None,
        closed: bool = True,
        tuning: HistogramTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(self._take(dtype), DATATYPES)
        self.bins: int = integer("bins", bins, 1)
        low, high = (0, 1 << 32) if range is None else range
        width, rest = divmod(high - low, self.bins)
        if rest or width & (width - 1):
            raise ArgumentError("not yet")
        self._low, self._shift = low, width.bit_length() - 1
        self._span = min(high - low - (not closed), (1 << 32) - 1)
        *others, output = self.arguments
        self.arguments = (*others, replace(output, length=self.bins))
        self.tuning: HistogramTuning = HistogramTuning.of(tuning)
        self._counters = self._counter_shape()
        kernel = (
            "histogram" if self._counters.ranges == 1 and self._counters.words <= _SMALL_WORDS else "histogram_ranges"
        )
        self._shapes: Shapes[Shape] = shapes_for(kernel, self.capabilities, tuning=self.tuning)

    def _counter_shape(self) -> CounterShape:
        most = self.capabilities.limits["max-compute-workgroup-storage-size"] // 4
        words = self.tuning.memory_words
        if words is None:
            words = min(most, _SMALL_WORDS if self.bins <= _SMALL_WORDS else _LARGE_WORDS)
        elif words > most:
            raise ArgumentError(
                f"memory_words={words} are {4 * words} bytes, more than max-compute-workgroup-storage-size, {4 * most} "
                f"bytes; use fewer"
            )
        return CounterShape.of(self.bins, words, self.tuning.copies or _MOST_COPIES)

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a dispatch that counts for each window, and one that adds the tables of all workgroups."""
        builder = PlanBuilder("histogram", layout, self.capabilities)
        layout = self._reads(layout)
        n, output, counters = layout["input"].length, layout["output"], self._counters
        shape = self._shapes.at(n)
        windows = windows_of(layout, ["input"], self.capabilities, shape.tile_items) if n else []
        blocks = [self._blocks(window.length, shape) for window in windows]
        tables = builder.scratch("tables", max(1, sum(blocks)) * self.bins)
        first = 0
        for window, count in zip(windows, blocks, strict=True):
            part = replace(tables, offset=first * self.bins, length=count * self.bins).by_words()
            first += count
            for each in (shape, *(self._shapes.others(n) if window.index == 0 else ())):
                self._add_count(builder, window.label("count"), window, part, each, count, sibling=each != shape)
        if n:
            self._add_totals(builder, tables, output, first)
        else:
            builder.step(Fill(output.buffer, output.first_byte, 4 * self.bins))
        read_bytes = layout["input"].nbytes
        work = Work(n, read_bytes, 4 * self.bins, n, builder.counted_work(n, read_bytes // max(n, 1), 0))
        return builder.build(
            work,
            {
                "bins": self.bins,
                "workgroup_size": shape.workgroup_size,
                "vecs": shape.vecs,
                "shape": self._shapes.source,
                "blocks": sum(blocks),
                "copies": counters.copies,
                "ranges": counters.ranges,
                "windows": len(windows),
            },
        )

    def _blocks(self, n: int, shape: Shape) -> int:
        """Return how many workgroups share the tiles, for each range."""
        return max(1, min(shape.max_blocks // self._counters.ranges, -(-n // shape.tile_items)))

    def _add_count(
        self,
        builder: PlanBuilder,
        label: str,
        window: Any,
        tables: Operand,
        shape: Shape,
        blocks: int,
        *,
        sibling: bool,
    ) -> None:
        counters = self._counters
        fields = self._bin_params()
        builder.kernel(
            label, "histogram.wgsl",
            reads={"input": window.operands["input"]},
            writes={"tables": tables},
            params={
                "n": window.length, "blocks": blocks, "bins": self.bins, "ranges": counters.ranges,
                "range_bins": counters.range_bins, "copies": counters.copies, "stride": counters.stride, **fields,
            },
            workgroups=blocks * counters.ranges,
            constants={"WORKGROUP_SIZE": shape.workgroup_size},
            context={
                "vecs": shape.vecs, "memory_words": counters.words, "merge": self.tuning.merge or "tile",
                "bin_kind": "shift", "bin_fields": list(fields),
            },
            sibling=sibling,
            counted=True,
            first=window.first,
        )  # fmt: skip

    def _bin_params(self) -> Mapping[str, int]:
        return {"low": self._low & 0xFFFFFFFF, "shift": self._shift, "span": self._span}

    def _add_totals(self, builder: PlanBuilder, tables: Operand, output: Operand, count: int) -> None:
        workgroup_size = min(256, self._shapes.rows[-1][1].workgroup_size * 4)
        blocks = -(-self.bins // _COLUMNS)
        builder.kernel(
            "add tables", "histogram_totals.wgsl",
            reads={"tables": tables.by_words()},
            writes={"output": output.by_words()},
            params={"bins": self.bins, "tables": count, "blocks": blocks},
            workgroups=blocks,
            constants={"WORKGROUP_SIZE": workgroup_size},
            context={"columns": _COLUMNS},
        )  # fmt: skip

    def reference(self, input: np.ndarray) -> np.ndarray:
        """Return numpy's counts."""
        items = input.astype(np.int64) - self._low
        items = items[(items >= 0) & (items <= self._span)]
        return np.bincount(np.minimum(items >> self._shift, self.bins - 1), minlength=self.bins).astype(np.uint32)
