"""The base of primitives that combine items by bins: histograms, sums by index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm, prod
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError, LengthError, LimitError
from ..planning.builder import Part, PlanBuilder
from ..planning.kernel_request import Invocations, KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import Fill, Plan, Work
from ..planning.signature import Argument, SameAs
from ..planning.source import Source
from ..planning.windows import Window, binding_limit, part_of, windows_of
from ..runtime.operator_check import check_operator
from ..tuning.options import HistogramTuning
from ..tuning.rows import Shape, Shapes
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, Datatype, as_datatype
from ..types.expression import leaf
from ..types.operators import Add, And, BinOp, Max, Min, Or, Xor, operator_context
from ..types.options import one_of
from ..types.program import Flat
from .base import Primitive
from .by_key import ReduceByKey
from .engines.key_codes import key_context
from .fusion import FUSED, Fusion, flat_of
from .run_length import RunLength
from .sort import Sort, SortPairs

# For counters and edges. With 8 KiB of workgroup memory 2^28 items of 256 or 2,048 bins take 253 to 261 µs on an H200,
# with 16 KiB 271 to 325.
_FEW_WORDS = 2048
_SMALL_WORDS = 4096
# No more, whatever a device allows: 48 KiB.
_LARGE_WORDS = 12_288
_MOST_COPIES = 32
# Edges that are searched in workgroup memory.
_TABLE_WORDS = 1024
# Fewer items do not pay for the table that a workgroup writes.
_LEAST_ITEMS = 8192
# Entries of a table that a workgroup combines: 32 bytes.
_COLUMNS = 8
# lavapipe ends all loops of an invocation after 65,535 iterations: so many items, with a search or a few swaps each.
_MOST_ITEMS_OF_CPU = 2048
# Bins of edges that are constants of a plan.
_MOST_EDGES = 1 << 20
_ATOMICS = {Add: "atomicAdd", Min: "atomicMin", Max: "atomicMax", And: "atomicAnd", Or: "atomicOr", Xor: "atomicXor"}

# Readings of the items, one for each range of bins, that take as long as a sort by bins.
_MOST_RANGES = 16

#: How items get to their bins.
BinStrategy: TypeAlias = Literal["auto", "tables", "sort"]
AxisKind: TypeAlias = Literal["index", "shift", "edges"]


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
        # At an odd distance, the counters of one bin lie in different banks.
        stride = range_bins | 1
        copies = max(1, min(words // stride, most_copies))
        return cls(words, ranges, range_bins, copies, range_bins if copies == 1 else stride)


@dataclass(frozen=True)
class Axis:
    """How the items of an argument tell their bins.

    Attributes
    ----------
    argument : str
    kind : {"index", "shift", "edges"}
        The item is the bin; the bins have 2^shift integers each; or edges say it.
    bins : int
    low, shift, span : int
        The first item of the first bin, and the distance of the last one from it.
    edges : tuple of int
        Words of the edges; empty where they are an argument.
    guess : tuple of int
        Of even bins the first item, and the bins for each unit, as words; empty where edges are searched.
    """

    argument: str
    kind: AxisKind
    bins: int
    low: int = 0
    shift: int = 0
    span: int = 0
    edges: tuple[int, ...] = ()
    guess: tuple[int, ...] = ()

    @classmethod
    def of_range(
        cls, argument: str, items: np.dtype, datatype: Datatype, bins: int, low: Any, high: Any, *, closed: bool
    ) -> Axis:
        """Return even bins of a range, as numpy makes them; with `closed` the last one has the upper end, too.

        Parameters
        ----------
        argument : str
        items : numpy.dtype
            Of the items. With the types of `low` and `high` it decides in which dtype numpy makes the edges: a number
            of Python takes that of floats.
        datatype : Datatype
            As which kernels read the items.
        bins : int
        low, high : number
        closed : bool
        """
        dtype = datatype.dtype
        whole = dtype.kind in "iu" and dtype.itemsize == 4 and float(low).is_integer() and float(high).is_integer()
        if whole:
            low, high = int(low), int(high)
            width, rest = divmod(high - low, bins)
            limits = np.iinfo(dtype)
            if not rest and not width & (width - 1) and low >= limits.min and high <= int(limits.max) + 1:
                span = min(high - low - (not closed), int(limits.max) - low)
                return cls(argument, "shift", bins, low & 0xFFFFFFFF, width.bit_length() - 1, span)
        if bins > _MOST_EDGES:
            raise LimitError(
                f"{bins} bins whose edges are not multiples of a power of two are too many; give at most "
                f"{_MOST_EDGES}, or the edges as an Array"
            )
        edges = even_edges(items, bins, low, high)
        limits = edges.tolist()
        if dtype.kind in "iu":  # the ends of a range of integers are exact, also where float64 rounds them
            limits[0], limits[-1] = (
                int(cast(int, end)) if isinstance(end, (int, np.integer)) else edge
                for end, edge in ((low, limits[0]), (high, limits[-1]))
            )
        found = thresholds(limits, dtype, closed=closed)
        guess: tuple[int, ...] = ()
        scale = np.float32(bins / (float(high) - float(low)))
        if dtype.itemsize == 4 and np.isfinite(scale) and scale > 0 and found.size == bins + 1:
            guess = (*datatype.words(found[0]), *DATATYPES["f32"].words(scale))
        return cls(argument, "edges", bins, edges=tuple(found.view(np.uint32).tolist()), guess=guess)


def even_edges(items: np.dtype, bins: int, low: Any, high: Any) -> np.ndarray:
    """Return numpy's edges of even bins of items of a dtype."""
    # Of bools numpy takes the bytes, and warns.
    try:
        return np.histogram_bin_edges(np.empty(0, np.uint8 if items.kind == "b" else items), bins, (low, high))
    except ValueError as error:  # more bins than there are numbers between the ends
        raise ArgumentError(
            f"bins={bins} between {low} and {high}: {str(error).rstrip('.')}; give fewer bins or a wider range="
        ) from None
    except MemoryError as error:
        raise LimitError(f"there is no memory for the edges of {bins} bins: {error}; give fewer bins") from None


def thresholds(edges: np.ndarray | Sequence[float], dtype: np.dtype, *, closed: bool = True) -> np.ndarray:
    """Return the least items of a dtype in each bin, and the greatest item of the last one.

    Bins above all items of the dtype are left out. As in numpy, an integer is compared with an edge that is a float
    after it was rounded to float64, which matters beyond 2^53.

    Parameters
    ----------
    edges : numpy.ndarray or sequence of numbers
        Ascending.
    dtype : numpy.dtype
        Integers or floats.
    closed : bool
        Whether the last bin has its upper end.
    """
    *begins, end = edges.tolist() if isinstance(edges, np.ndarray) else edges
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            low = np.array(begins, dtype=np.float64)
            firsts = low.astype(dtype)
            firsts = np.where(firsts.astype(np.float64) < low, np.nextafter(firsts, dtype.type(np.inf)), firsts)
            last = dtype.type(end)
            if float(last) > end or (not closed and float(last) >= end):
                last = np.nextafter(last, dtype.type(-np.inf))
        return np.append(firsts, last).astype(dtype)
    limits = np.iinfo(dtype)
    least, most = int(limits.min), int(limits.max)
    firsts_of = [_first_from(begin) for begin in begins]
    last_of = -_first_from(-end) if closed else _first_from(end) - 1
    if firsts_of[0] > most or last_of < least:
        return np.array([most, least], dtype=dtype)  # no item is in a bin
    return np.array([*(max(first, least) for first in firsts_of if first <= most), min(last_of, most)], dtype=dtype)


def _first_from(number: float) -> int:
    """Return the least integer that is not below a number; float64 of it, where the number is a float."""
    if isinstance(number, int):
        return number
    if np.isinf(number):
        return (1 << 65) * (1 if number > 0 else -1)
    first = int(np.ceil(number))
    if -(1 << 53) < first <= 1 << 53:
        return first
    # Integers from the middle between this float and the one below on are rounded up to it.
    first = (int(np.nextafter(number, -np.inf)) + first) // 2
    return first if float(first) >= number else first + 1


class BinnedPrimitive(Primitive):
    """Base of primitives that combine items by bins.

    A subclass takes its arguments with `_taken`, and calls `_finish`.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    tuning : HistogramTuning or None
    capabilities : Capabilities or None
    """

    takes_count = True
    #: Name in plans.
    _label: str
    axes: tuple[Axis, ...]
    #: The argument with the items that are combined; None where they are counted.
    _values: str | None = None
    _op: BinOp = Add
    #: The datatype of the results.
    result_datatype: Datatype = DATATYPES["u32"]
    channels: int = 1
    #: The datatype in which kernels read what tells the bins.
    _key_datatype: Datatype

    def __init__(
        self, device: wgpu.GPUDevice | None, *, strategy: BinStrategy, deterministic: bool,
        tuning: HistogramTuning | None, capabilities: Capabilities | None,
    ):  # fmt: skip
        super().__init__(device, capabilities=capabilities)
        self.strategy: BinStrategy = one_of("strategy", strategy, get_args(BinStrategy))
        self._asked_order = bool(deterministic)
        self.tuning: HistogramTuning = HistogramTuning.of(tuning)
        self._fused: dict[str, Fusion] = {}
        #: Arguments of small items, which kernels read as expressions.
        self._widened: set[str] = set()

    @property
    def _fusions(self) -> tuple[Fusion, ...]:
        return tuple(self._fused.values())

    @property
    def _asked_fusions(self) -> tuple[Fusion, ...]:
        return tuple(fusion for name, fusion in self._fused.items() if name not in self._widened)

    def _taken(self, argument: str, items: Any, known: Mapping[str, Datatype]) -> tuple[Datatype, Datatype]:
        """Return the datatype of an argument's items, and the one that kernels read them as.

        The leaves of an expression become arguments. Items of 1 and 2 bytes are such expressions.
        """
        if not isinstance(items, FUSED):
            datatype = as_datatype(items, known)
            if datatype.itemsize_bytes >= 4:
                return datatype, datatype
            items = leaf(argument, datatype)
            self._widened.add(argument)
            self._fuse(argument, flat_of(items))
            return datatype, self._fused[argument].datatype
        flat = flat_of(items)
        if flat.fields:
            raise DatatypeError(f"{self.name}: {argument} is a struct, but takes numbers; give one field of it")
        self._fuse(argument, flat)
        return self._fused[argument].datatype, self._fused[argument].datatype

    def _fuse(self, argument: str, flat: Flat) -> None:
        if self._fused:  # others may be expressions of Arrays, too
            flat = flat.renamed({name: f"{argument}_{name}" for name, _ in flat.arrays})
        self._fused[argument] = Fusion(flat, argument)

    def _with_leaves(self, arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
        for argument, fusion in self._fused.items():
            like = next(each.length for each in arguments if each.name == argument)
            arguments = fusion.arguments(arguments)
            if isinstance(like, SameAs) and fusion.measure is not None:  # its leaf has as many items, too
                name, components = fusion.measure
                same = replace(like, times=like.times * components)
                arguments = tuple(replace(each, length=same) if each.name == name else each for each in arguments)
        return arguments

    def _finish(self) -> None:
        """Choose the shapes; axes, values and operator are known."""
        self.bins: int = prod(axis.bins for axis in self.axes) * self.channels
        if self.bins >= 1 << 31:
            raise LimitError(f"{self.name}: {self.bins} bins are too many; give fewer than 2^31")
        self._accumulator = self._op.accumulator(self.result_datatype)
        check_operator(self._op, self.result_datatype, None)
        self._tables = tuple(self._table_keys(axis) for axis in self.axes)
        self._counters = self._counter_shape()
        self._sorting = self._choose() == "sort"
        if self._sorting:
            self._make_steps()
        small = self._counters.ranges == 1 and self._counters.words <= _SMALL_WORDS
        kernel = "histogram" if small else "histogram_ranges"
        self._shapes: Shapes[Shape] = shapes_for(kernel, self.capabilities, tuning=self.tuning)

    @property
    def grouped(self) -> str | None:
        """The argument whose items are combined in groups, for checks; None where items are counted."""
        return self._values

    @property
    def deterministic(self) -> bool:
        """Whether results are the same bits on every run: the order is fixed, or nothing rounds."""
        return self._asked_order or not self.result_datatype.rounds or self._accumulator.key is not None

    def _choose(self) -> str:
        """Return the strategy."""
        why = ""
        if self._accumulator.words > 1:
            why = f"results of {self.result_datatype} have no atomics"
        elif not self._op.commutative:
            why = f"operator {self._op.name!r} does not commute"
        elif self._asked_order and self.result_datatype.rounds and self._accumulator.key is None:
            why = "with deterministic=True floats are combined in a fixed order"
        if why and self.strategy == "tables":
            raise ArgumentError(f"{self.name}: strategy='tables', but {why}; leave it out, which sorts by bins")
        if self.strategy != "auto":
            return self.strategy
        return "sort" if why or self._counters.ranges > _MOST_RANGES else "tables"

    def _make_steps(self) -> None:
        """Make the primitives that sort by bins and combine the runs."""
        capabilities, result = self.capabilities, self.result_datatype
        self._sort: Part
        self._runs: Part
        if self._values is None:
            self._sort = Sort(self._device, "u32", capabilities=capabilities)
            self._runs = RunLength(
                self._device, "u32", outputs=("values", "lengths"), size=self.bins, capabilities=capabilities
            )
            return
        self._sort = SortPairs(self._device, "u32", result, capabilities=capabilities)
        self._runs = ReduceByKey(
            self._device, "u32", result, self._op, size=self.bins, deterministic=self._asked_order,
            capabilities=capabilities,
        )  # fmt: skip

    def _check_on_device(self) -> None:
        check_operator(self._op, self.result_datatype, self._device)

    @property
    def _key_words(self) -> int:
        return self._key_datatype.itemsize_bytes // 4

    def _table_keys(self, axis: Axis) -> int:
        """Return how many edges of an axis workgroup memory has room for; 0 where they are read from memory."""
        if axis.kind != "edges" or (axis.bins + 1) * self._key_words * len(self.axes) > _TABLE_WORDS:
            return 0
        return _TABLE_WORDS // self._key_words // len(self.axes)

    def _counter_shape(self) -> CounterShape:
        used = self._key_words * sum(self._tables)
        most = self.capabilities.limits["max-compute-workgroup-storage-size"] // 4 - used
        words = self.tuning.memory_words
        if words is None:
            fitting = (words - used for words in (_FEW_WORDS, _SMALL_WORDS) if self.bins <= words - used)
            words = min(most, next(fitting, _LARGE_WORDS))
        elif words > most:
            raise ArgumentError(
                f"memory_words={words} are {4 * words} bytes, but max-compute-workgroup-storage-size allows {4 * most} "
                f"bytes for counters; use fewer"
            )
        return CounterShape.of(self.bins, words, self.tuning.copies or _MOST_COPIES)

    # ---- planning ----

    @property
    def _operands(self) -> tuple[str, ...]:
        """The arguments with an entry for each item."""
        names = [axis.argument for axis in self.axes]
        return tuple(names if self._values is None else [*names, self._values])

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a dispatch over the items for each window, and one that combines the workgroups' tables."""
        builder = PlanBuilder(self._label, layout, self.capabilities)
        layout = self._reads(layout)
        names, output = self._operands, layout["output"]
        n = layout[names[0]].length
        for name in names[1:]:
            if layout[name].length != n:
                raise LengthError(
                    f"{self.name}: {names[0]} has {n} items, but {name} has {layout[name].length}; slice them to one "
                    f"length"
                )
        if self._sorting:
            return self._plan_sorted(builder, layout, n)
        shape = self._shapes.at(n)
        windows = windows_of(layout, names, self.capabilities, lcm(shape.tile_items, self.channels)) if n else []
        blocks = [self._blocks(window.length, shape, len(windows)) for window in windows]
        if n:
            tables = self._table_memory(builder, sum(blocks))
            first = 0
            for window, count in zip(windows, blocks, strict=True):
                part = replace(tables, offset=first * self.bins, length=count * self.bins).by_words()
                first += count
                for each in (shape,) if window.index else self._shapes.all_for(n):
                    self._add_counts(builder, layout, window, part, each, count, sibling=each != shape)
            self._add_totals(builder, tables, output, first)
        else:
            self._fill(builder, output)
        read_bytes = sum(layout[name].nbytes for name in names)
        counted = builder.counted_work(n, read_bytes // max(n, 1), 0)
        return builder.build(
            Work(n, read_bytes, 4 * self.bins, n, counted),
            {
                "bins": self.bins,
                "strategy": "tables",
                "workgroup_size": shape.workgroup_size,
                "vecs": shape.vecs,
                "shape": self._shapes.source_of(shape),
                "blocks": sum(blocks),
                "copies": self._counters.copies,
                "ranges": self._counters.ranges,
                "windows": len(windows),
            },
        )

    def _fill(self, builder: PlanBuilder, output: Operand) -> None:
        """Write the results of no items."""
        words = self.result_datatype.words(self._op.identity_for(self.result_datatype))
        if not any(words):
            builder.step(Fill(output.buffer, output.first_byte, 4 * len(words) * self.bins))
            return
        self._add_per_entry(
            builder, "fill", "histogram_fill.wgsl", {}, output,
            {"n": self.bins, "word_0": words[0], "word_1": words[-1]}, words=len(words),
        )  # fmt: skip

    def _add_per_entry(
        self, builder: PlanBuilder, label: str, shader: str, reads: Mapping[str, Operand], output: Operand,
        params: Mapping[str, int], **context: Any,
    ) -> None:  # fmt: skip
        size = min(256, self.capabilities.limits["max-compute-invocations-per-workgroup"])
        builder.kernel(
            label,
            KernelFile(shader, context=context, constants={"WORKGROUP_SIZE": size}),
            Memory(reads=reads, writes={"output": output.by_words()}),
            params=params,
            extent=Invocations("n"),
        )

    # ---- by sorting

    def _plan_sorted(self, builder: PlanBuilder, layout: Layout, n: int) -> Plan:
        """Write the bin of each item, sort by bins, combine the runs, and write the results to their places."""
        names, output, word = self._operands, layout["output"], DATATYPES["u32"].itemsize_bytes
        self._fill(builder, output)
        if n:
            values = None if self._values is None else layout[self._values]
            places = builder.scratch("places", n)
            # An expression has to be stored, to be sorted.
            copied = builder.scratch("values", n, values.item_bytes) if isinstance(values, Source) else None
            self._add_places(builder, layout, names, places, copied)
            values = values if copied is None else copied
            room, size = min(n, self.bins), self.result_datatype.itemsize_bytes
            ordered = builder.scratch("ordered_places", n)
            keys, results = builder.scratch("keys", room), builder.scratch("results", room, size)
            count = builder.scratch("count", 1)
            if values is None:
                sorted_by = {"input": places, "output": ordered}
                runs = {"keys": ordered, "values": keys, "lengths": results, "count": count}
            else:
                moved = builder.scratch("ordered_values", n, size)
                sorted_by = {"keys": places, "values": values, "output_keys": ordered, "output_values": moved}
                runs = {"keys": ordered, "items": moved, "output_keys": keys, "output_values": results, "count": count}
            builder.include("sort", self._sort, sorted_by, counted=False)
            builder.include("runs", self._runs, runs, counted=False)
            reads = {"keys": keys.by_words(), "results": results.by_words(), "count": count.by_words()}
            self._add_per_entry(
                builder, "scatter", "histogram_scatter.wgsl", reads, output, {"n": room, "bins": self.bins}
            )
        read_bytes = sum(layout[name].nbytes for name in names)
        counted = builder.counted_work(n, read_bytes // max(n, 1), 0)
        work = Work(n, read_bytes, max(word, self.result_datatype.itemsize_bytes) * self.bins, n, counted)
        return builder.build(work, {"bins": self.bins, "strategy": "sort"})

    def _add_places(
        self, builder: PlanBuilder, layout: Layout, names: Sequence[str], places: Operand, copied: Operand | None
    ) -> None:
        shape = shapes_for("elementwise", self.capabilities).at(places.length)
        fields = self._all_fields()
        for window in windows_of(layout, names, self.capabilities, lcm(shape.tile_items, self.channels)):
            blocks = -(-window.length // shape.tile_items)
            written = {"places": places} | ({} if copied is None else {"values": copied})
            if self.channels > 1:
                fields["first_channel"] = window.first % self.channels
            told = [axis.argument for axis in self.axes] + ([] if copied is None else [str(self._values)])
            builder.kernel(
                window.label("bins"),
                KernelFile(
                    "histogram_bins.wgsl",
                    context={
                        **self._bins_context(),
                        "vecs": shape.vecs,
                        "bin_fields": list(fields),
                        "copies_values": "" if copied is None else self._values,
                    },
                    constants={"WORKGROUP_SIZE": shape.workgroup_size},
                ),
                Memory(
                    reads={
                        **{name: window.operands[name].by_words() for name in told},
                        **self._all_edges(builder, layout),
                    },
                    writes={
                        name: part_of(operand, window.first, window.length, self.capabilities).by_words()
                        for name, operand in written.items()
                    },
                ),
                params={"n": window.length, "blocks": blocks, **fields},
                extent="blocks",
                counted_from=window.first,
            )

    # ---- by tables

    def _table_memory(self, builder: PlanBuilder, blocks: int) -> Operand:
        limit = binding_limit(self.capabilities)
        if 4 * blocks * self.bins > limit:
            raise LimitError(
                f"{self.name}: {blocks} tables of {self.bins} bins are {4 * blocks * self.bins} bytes, but the "
                f"device's max-storage-buffer-binding-size is {limit} bytes; use fewer bins, or strategy='sort'"
            )
        return builder.scratch("tables", blocks * self.bins)

    def _blocks(self, n: int, shape: Shape, windows: int) -> int:
        """Return how many workgroups share the tiles of a window, for each range."""
        wanted = max(1, shape.max_blocks // self._counters.ranges)
        if self.capabilities.is_cpu:
            wanted = max(wanted, -(-n // (shape.workgroup_size * _MOST_ITEMS_OF_CPU)))
        # A table is written and read, like two items for each bin.
        worth = -(-4 * n // self.bins)
        fitting = binding_limit(self.capabilities) // (4 * self.bins) // windows
        return max(1, min(wanted, worth, fitting, -(-n // max(shape.tile_items, _LEAST_ITEMS))))

    def _operator_context(self) -> dict[str, Any]:
        return operator_context(self._op, self.result_datatype, self.capabilities.subgroup_mode(False))

    def _add_counts(
        self, builder: PlanBuilder, layout: Layout, window: Window, tables: Operand, shape: Shape, blocks: int, *,
        sibling: bool,
    ) -> None:  # fmt: skip
        counters, fields = self._counters, self._all_fields()
        if self.channels > 1:
            fields["first_channel"] = window.first % self.channels
        builder.kernel(
            window.label(self._label),
            KernelFile(
                "histogram.wgsl",
                context={
                    **self._operator_context(),
                    **self._bins_context(),
                    "vecs": shape.vecs,
                    "memory_words": counters.words,
                    "merge": self.tuning.merge or "tile",
                    "atomic": _ATOMICS.get(self._op, "") if self._accumulator.wgsl != "f32" else "",
                    "values": self._values or "",
                    "bin_fields": list(fields),
                },
                constants={"WORKGROUP_SIZE": shape.workgroup_size},
                shader_checks=self._op.checks_for(self.result_datatype),
            ),
            Memory(
                reads={**{name: window.operands[name] for name in self._operands}, **self._all_edges(builder, layout)},
                writes={"tables": tables},
            ),
            params={
                "n": window.length,
                "blocks": blocks,
                "bins": self.bins,
                "ranges": counters.ranges,
                "range_bins": counters.range_bins,
                "copies": counters.copies,
                "stride": counters.stride,
                "workgroups": blocks * counters.ranges,
                **self._accumulator.params,
                **fields,
            },
            extent="workgroups",
            sibling=sibling,
            counted_from=window.first,
        )

    def _bins_context(self) -> dict[str, Any]:
        """Return what lib/bins.wgsl needs to know."""
        key = self._key_datatype
        return {
            "channels": self.channels,
            "axes": [
                {"name": axis.argument, "kind": axis.kind, "table_keys": keys, "guess": key.name if axis.guess else ""}
                for axis, keys in zip(self.axes, self._tables, strict=True)
            ],
            "searches": any(axis.kind == "edges" for axis in self.axes),
            **key_context(key),
        }

    def _all_fields(self) -> dict[str, int]:
        """Return the fields of `Params` that belong to the axes."""
        return dict(field for axis in self.axes for field in self._fields(axis))

    def _all_edges(self, builder: PlanBuilder, layout: Layout) -> dict[str, Operand]:
        """Return the edges by the names that kernels read them by."""
        return {
            f"{axis.argument}_edges": self._edges(builder, layout, axis) for axis in self.axes if axis.kind == "edges"
        }

    def _edges(self, builder: PlanBuilder, layout: Layout, axis: Axis) -> Operand:
        """Return the edges of an axis: an argument, or constants of the plan."""
        name = edges_argument(axis.argument)
        if not axis.edges:
            return layout[name].by_words()
        item_bytes = self._key_datatype.itemsize_bytes
        words = (*axis.edges, *(0 for _ in range(-len(axis.edges) % 4)))
        keys = 4 * len(axis.edges) // item_bytes
        constant = builder.constant(name, words)
        return Operand(keys, constant, vec4=False, size_bytes=4 * len(words), item_bytes=item_bytes)

    def _fields(self, axis: Axis) -> Sequence[tuple[str, int]]:
        """Return the fields of `Params` that belong to an axis."""
        values: dict[str, int] = {"bins": axis.bins}
        if axis.kind == "shift":
            values |= {"low": axis.low, "shift": axis.shift, "span": axis.span}
        elif axis.kind == "edges":
            used = axis.bins if not axis.edges else len(axis.edges) // self._key_words - 1
            values["used"] = used
            if axis.guess:
                values |= {"low": axis.guess[0], "scale": axis.guess[1]}
            else:
                values["step"] = 1 << (used - 1).bit_length() - 1 if used > 1 else 0
        return [(f"{axis.argument}_{name}", value) for name, value in values.items()]

    def _add_totals(self, builder: PlanBuilder, tables: Operand, output: Operand, count: int) -> None:
        blocks = -(-self.bins // _COLUMNS)
        most = self.capabilities.limits["max-compute-invocations-per-workgroup"]
        builder.kernel(
            "combine",
            KernelFile(
                "histogram_totals.wgsl",
                context={**self._operator_context(), "columns": _COLUMNS},
                constants={"WORKGROUP_SIZE": min(256, 1 << most.bit_length() - 1)},
                shader_checks=self._op.checks_for(self.result_datatype),
            ),
            Memory(reads={"tables": tables.by_words()}, writes={"output": output.by_words()}),
            params={"bins": self.bins, "tables": count, "blocks": blocks, **self._accumulator.params},
            extent="blocks",
        )


def edges_argument(argument: str) -> str:
    """Return the name of the argument with the edges of the bins of another."""
    return "edges" if argument == "input" else f"{argument}_edges"


def bins_of(axis: Axis, items: np.ndarray, edges: np.ndarray | None) -> np.ndarray:
    """Return the bins of items by numpy, −1 for those in none.

    Parameters
    ----------
    axis : Axis
    items : numpy.ndarray
        As kernels read them.
    edges : numpy.ndarray or None
        Of an axis whose edges are an argument.
    """
    if axis.kind == "index":
        within = (items >= 0) & (items < axis.bins)
        return np.where(within, items, 0).astype(np.int64) - ~within
    if axis.kind == "shift":
        distance = (items.view(np.uint32) - np.uint32(axis.low)).astype(np.int64)
        return np.where(distance <= axis.span, np.minimum(distance >> axis.shift, axis.bins - 1), -1)
    if edges is None:
        edges = np.array(axis.edges, dtype=np.uint32).view(items.dtype)
    with np.errstate(invalid="ignore"):
        within = (items >= edges[0]) & (items <= edges[-1])
    return np.where(within, np.searchsorted(edges[1:-1], items, "right"), -1)
