"""Streams: the common part of primitives that find marked items and write what these give, in order.

An item is marked by a flag, by a predicate, or because it differs from the one before it. Ranks are prefix counts of
the marks, found in a single pass with decoupled look-back (stream_lookback.wgsl), or in three dispatches.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import wgpu

from ...errors import ArgumentError, LimitError
from ...planning.builder import PlanBuilder
from ...planning.faults import HEALTHY, Faults
from ...planning.kernel_constants import CONTROL_WORDS, HAS_CARRY, SPREAD_WORDS
from ...planning.kernel_request import Extent, KernelFile, Memory
from ...planning.layout import Layout, Operand
from ...planning.lookback_state import reads_by_rmw
from ...planning.plan import CountedWork, Fill, Plan, Work
from ...planning.signature import Argument, SameAs, UpTo
from ...planning.windows import Window, window_of_all, windows_of
from ...settings import SCAN_STRATEGIES, ScanStrategy
from ...tuning.options import StreamTuning
from ...tuning.rows import Shape, Shapes
from ...tuning.shapes import shapes_for
from ...types.capabilities import Capabilities, SubgroupMode
from ...types.datatype import DATATYPES, STORAGE_DATATYPES, Datatype, as_datatype
from ...types.options import MOST_U32, integer, one_of
from ...types.program import Flat
from ..base import Primitive
from ..fusion import FUSED, Fusion, flat_of
from ..waiting import Waiting

_COUNT_MOST = 1 << 32
#: What flags may be.
FLAGS = STORAGE_DATATYPES


def count_argument(name: str = "count", items: int = 1) -> Argument:
    """Return the output that holds the counts."""
    return Argument(name, is_output=True, datatype=DATATYPES["u32"], length=items)


# Four items as they are loaded, by the bytes of one; see lib/stream_quads.wgsl.
_QUADS = {1: "u32", 2: "vec2<u32>", 4: "vec4<u32>", 8: "array<vec4<u32>, 2>"}


# The bits of a float without its sign.
_MAGNITUDES = {2: "0x7fffu", 4: "0x7fffffffu", 8: "Item8(0xffffffffu, 0x7fffffffu)"}


@dataclass(frozen=True)
class Mark:
    """What marks an item.

    Attributes
    ----------
    argument : str
        The input that is read for it.
    datatype : Datatype
        Of that input.
    heads : bool
        Whether it is that the item differs from the one before it; otherwise that it is not 0.
    equal_nan : bool
        For heads of floats: whether NaN equals NaN.
    """

    argument: str
    datatype: Datatype
    heads: bool = False
    equal_nan: bool = True


@dataclass(frozen=True)
class Field:
    """What is written for an item.

    Attributes
    ----------
    outputs : tuple of str
        An output for each kind of items: those with the first mark, those with the second one, those with none.
    argument : str or None
        The input whose item is copied; None for the position of the item.
    datatype : Datatype
        Of the outputs.
    sparse : bool
        Whether items are read only where they are written, not with the tile.
    """

    outputs: tuple[str, ...]
    argument: str | None
    datatype: Datatype
    sparse: bool = False


# Sums over the lanes of a subgroup go by shuffles: with subgroupAdd, selections of several fields had wrong counts on
# an NVIDIA GPU (docs/contribute/algorithms.md, "Rules of all kernels").
_SUMS: Mapping[str, str | None] = {"subgroup_reduce": None, "subgroup_exclusive_scan": None}


class StreamPrimitive(Primitive):
    """Base of primitives that write, in order, what marked items give.

    A subclass takes its inputs with `_input`, and sets `marks` and `fields`.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    size : int, optional
        Room of the outputs.
    strategy : {None, "auto", "reduce_then_scan", "lookback"}
    tuning : StreamTuning, optional
    capabilities : Capabilities, optional
    kernel : str, default "stream"
        Whose shapes the tiles have.
    """

    takes_count = True
    _faults: ClassVar[Faults] = HEALTHY
    #: Name in plans and labels.
    _label: ClassVar[str]
    #: What marks items: one of the inputs, or two of them, of which the first wins.
    marks: tuple[Mark, ...]
    #: What is written.
    fields: tuple[Field, ...]
    #: Whether the lengths of runs are written.
    run_lengths: bool = False
    #: Whether items without a mark are written, too.
    splits: bool = False
    #: The input with the place of each item's result, where every item has one; nothing is selected then.
    places: str | None = None

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        *,
        size: int | None,
        strategy: ScanStrategy | None,
        tuning: StreamTuning | None,
        capabilities: Capabilities | None,
        kernel: str = "stream",
    ):
        super().__init__(device, capabilities=capabilities)
        self.strategy: ScanStrategy = "auto" if strategy is None else one_of("strategy", strategy, SCAN_STRATEGIES)
        if self._faults.epoch_bits not in (None, 1):
            raise ArgumentError(f"{self.name}: epoch_bits={self._faults.epoch_bits}, but its words always have 1")
        self.size: int | None = None if size is None else integer("size", size, 0, MOST_U32)
        self.tuning: StreamTuning = StreamTuning.of(tuning)
        self.mode: SubgroupMode = self.capabilities.subgroup_mode(self.tuning.subgroups)
        self._waiting = Waiting(self.capabilities, self._device, "u32x2", self.tuning, self.mode)
        self._shapes: Shapes[Shape] = shapes_for(kernel, self.capabilities, self.mode, self.tuning)
        storage_bytes = self.capabilities.limits["max-compute-workgroup-storage-size"]
        if 4 * (self.tuning.stage or 0) > storage_bytes - _OTHER_STORAGE_BYTES:
            raise ArgumentError(
                f"stage={self.tuning.stage} words of workgroup memory and {_OTHER_STORAGE_BYTES} bytes beside them are "
                f"more than max-compute-workgroup-storage-size, {storage_bytes} bytes; use a smaller stage"
            )
        #: The inputs that are expressions.
        self._expressions: dict[str, Fusion] = {}

    def _input(self, name: str, items: Any, known: Mapping[str, Datatype]) -> Datatype:
        """Return the datatype of an input; of an expression that takes its place, what its items are read as."""
        if not isinstance(items, FUSED):
            found = as_datatype(items, known)
            if name == "keys" and found.itemsize_bytes == 8:
                self._shapes = shapes_for("stream_wide", self.capabilities, self.mode, self.tuning)
            return found
        flat = flat_of(items)
        if flat.fields:
            raise ArgumentError(
                f"{self.name}: {name} is a struct of {', '.join(flat.fields)}, but takes one expression; give one of "
                f"these"
            )
        fusion = self._expressions[name] = Fusion(self._named_apart(name, flat), name)
        return fusion.datatype

    def _named_apart(self, name: str, flat: Flat) -> Flat:
        """Return an expression whose Arrays have names that no other Array of this primitive has."""
        known = {array.place: leaf for each in self._expressions.values() for leaf, array in each.flat.arrays}
        prefix = f"{name}_" if self._expressions else ""
        return flat.renamed({leaf: known.get(array.place, prefix + leaf) for leaf, array in flat.arrays})

    @cached_property
    def _measure(self) -> tuple[str, int]:
        """The argument that says how many items there are, and how many of its items are one."""
        return self._measure_of([each.name for each in self._arguments() if not each.is_output])

    def _with_leaves(self, arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """Return the arguments with leaves in place of the inputs that are expressions, and the room asked for.

        Raises
        ------
        ArgumentError
            If nothing says how many items there are, or names clash.
        """
        inputs = [each for each in arguments if not each.is_output]
        primary = inputs[0].name
        measure, per = self._measure
        leaves: dict[str, Argument] = {}
        for each in inputs:
            fusion = self._expressions.get(each.name)
            if fusion is None:
                same = None if each.name == measure else SameAs(measure, "every item needs one flag", per=per)
                leaves.setdefault(each.name, replace(each.resolved(self), length=same, chunked=self._reads_chunks))
                continue
            for leaf, is_measure, components in fusion.stream_leaves(each):
                same = (
                    SameAs(measure, times=components, per=per) if is_measure and leaf.name != measure else leaf.length
                )
                found = leaves.setdefault(leaf.name, replace(leaf, length=same))
                if found.datatype != leaf.datatype:
                    raise ArgumentError(
                        f"{self.name}: {leaf.name!r} is of {found.datatype} in one place and of {leaf.datatype} in "
                        f"another; rename one of them"
                    )
        outputs: list[Argument] = []
        for each in (each for each in arguments if each.is_output):
            length = each.length
            if each.name in leaves:
                raise ArgumentError(f"{self.name}: a leaf cannot be called {each.name!r}, as an output; rename it")
            if isinstance(length, UpTo):
                if length.argument == primary:
                    length = replace(length, argument=measure, per=per)
                length = replace(length, most=self.size)
            outputs.append(replace(each, length=length))
        return (*leaves.values(), *outputs)

    def _measure_of(self, operands: Sequence[str]) -> tuple[str, int]:
        for name in operands:
            fusion = self._expressions.get(name)
            if fusion is None:
                return name, 1
            found = fusion.measure
            if found is not None:
                return found
        raise ArgumentError(
            f"{self.name}: nothing says how many items there are: no expression has a leaf that is read item by item; "
            f"add one, such as gw.u32('x')"
        )

    @property
    def _reads_chunks(self) -> bool:
        """Whether inputs may be in chunks: not those of items of several numbers, or that an expression reads."""
        several = any(field.datatype.elements > 1 for field in self.fields)
        return not self._expressions and not several and self.places is None

    @property
    def _fusions(self) -> tuple[Fusion, ...]:
        return tuple(self._expressions.values())

    def reference(self, **arrays: Any) -> tuple[np.ndarray, ...]:
        """Return numpy's outputs for the same inputs, or for the same leaves of expressions."""
        name, per = self._measure
        known = {**{leaf: array.to_numpy() for leaf, array in self._fused_arrays.items()}, **arrays}
        size = np.asarray(known[name]).size // per
        given: dict[str, np.ndarray] = {}
        for operand in self._inputs_of(self.fields):
            fusion = self._expressions.get(operand)
            if fusion is None:
                given[operand] = known[operand]
                continue
            names = (*fusion.flat.names, *fusion.values)
            given[operand] = self._value_of(fusion.flat, {leaf: known[leaf] for leaf in names}, size)
        outputs = self._twin(**given)
        if self.size is None:
            return outputs
        return tuple(
            output[: self.size] if isinstance(self.signature.arguments[name].length, UpTo) else output
            for name, output in zip(self.signature.outputs, outputs, strict=True)
        )

    @abstractmethod
    def _twin(self, **inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return numpy's outputs for the same inputs."""

    # ---- planning ----

    @property
    def _words(self) -> int:
        """Counters of a tile."""
        return 2 if self._writes_lengths else len(self.marks)

    @property
    def _written(self) -> tuple[Field, ...]:
        """The fields that have room: without any, items are only counted."""
        return () if self.size == 0 else self.fields

    @property
    def _writes_lengths(self) -> bool:
        return self.run_lengths and self.size != 0

    @property
    def _operands(self) -> tuple[str, ...]:
        """What kernels read: arrays and expressions."""
        return self._inputs_of(self._written)

    def _inputs_of(self, fields: Sequence[Field]) -> tuple[str, ...]:
        names = [*(mark.argument for mark in self.marks), *(field.argument for field in fields), self.places]
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def _items(self, layout: Layout) -> int:
        """Return how many items there are: layouts count the words of items that are several numbers."""
        name, per = self._measure
        datatype = self.signature.datatype(name)
        return layout[name].length // ((1 if datatype is None else datatype.elements) * per)

    def _read(self, layout: Layout, n: int) -> Layout:
        """Return what kernels read."""
        fusions = self._expressions
        return Layout({k: fusions[k].source(layout, n) if k in fusions else layout[k] for k in self._operands})

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch, or three where look-back is not safe; more in windows."""
        builder = PlanBuilder(self._label, layout, self.capabilities)
        parameters = self.add_to(builder, layout)
        return builder.build(self._work(builder, layout, self._items(layout)), parameters)

    def add_to(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        """Add the steps to a plan; see `PlanBuilder.include`."""
        n = self._items(layout)
        reads = self._read(layout, n)
        if n >= _COUNT_MOST:
            raise LimitError(
                f"{self.name}: {n} items, but positions are of 32 bits; give parts of fewer than 2^32 items"
            )
        strategy = self._waiting.chosen(self.strategy)
        parameters: dict[str, Any] = {"strategy": strategy, "subgroups": str(self.mode), "stage": self._stage()}
        if n:
            plan = self._plan_lookback if strategy == "lookback" else self._plan_blocks
            parameters |= plan(builder, layout, self._windows(reads, n), n)
        else:
            count = layout[self._count_name]
            builder.step(Fill(count.buffer, count.first_byte, count.nbytes))
        return parameters

    def _work(self, builder: PlanBuilder, layout: Layout, n: int) -> Work:
        """Return what there is room for; the counts say how many items are written."""
        counts_bytes = layout[self._count_name].nbytes
        # Read only where their items are written, unless they are expressions, whose leaves others may read, too.
        sparse = {each.argument: each for each in self._written if each.sparse and each.argument in layout}
        sparse_bytes = sum(each.datatype.itemsize_bytes for each in sparse.values())
        read = sum(layout[name].nbytes for name in self.signature.inputs if name not in sparse)
        written_bytes = sum(each.datatype.itemsize_bytes for each in self._written) + 4 * self._writes_lengths
        if self.places is not None or self.splits:  # every item is written
            each_bytes = 4 if self.places is not None else written_bytes
            room = n if self.size is None else min(n, (len(self.marks) + 1) * self.size)
            fed = builder.counted_work(n, read // max(n, 1), each_bytes if room == n else 0)
            return Work(n, read, room * each_bytes + counts_bytes, counted=fed)
        room = min(n, self._room(layout))
        of_count = CountedWork(self._count_name, room, sparse_bytes, written_bytes)
        fed = builder.counted_work(n, read // max(n, 1), 0)
        return Work(
            n,
            read + room * sparse_bytes,
            room * written_bytes + counts_bytes,
            counted=(*fed, of_count) if room else fed,
        )

    def _windows(self, reads: Layout, n: int) -> list[Window]:
        """Split the inputs into windows; those of items that are several numbers must fit one binding."""
        if all(field.datatype.elements == 1 for field in self._written):
            windows = windows_of(reads, list(reads), self.capabilities, self._shapes.at(n).tile_items)
            # Without any where nothing is read from the first item to the last.
            return windows or [Window.only(n, dict(reads))]
        return [window_of_all(self.name, n, dict(reads), self.capabilities)]

    def _room(self, layout: Layout) -> int:
        """Return the items for which all outputs have room."""
        rooms = [layout[name].length // field.datatype.elements for field in self._written for name in field.outputs]
        if self._writes_lengths:
            rooms.append(layout["lengths"].length)
        return min(rooms) if rooms else 0

    def _plan_lookback(self, builder: PlanBuilder, layout: Layout, windows: Sequence[Window], n: int) -> dict[str, Any]:
        (shape, polls), *others = self._waiting.looks(n, self._shapes, self._words)
        tiles = [-(-window.length // shape.tile_items) for window in windows]
        tickets, spin_limit = self._waiting.tickets, self._waiting.spin_limit
        carries = self._carries(builder, windows)
        outputs = {name: layout[name] for name in self.signature.outputs if layout[name].length}
        apart = SPREAD_WORDS if polls.spread else self._words
        for window, count, carry in zip(windows, tiles, carries, strict=True):
            states = builder.scratch(f"states_{window.index}" if carry else "states", CONTROL_WORDS + apart * count)
            for each, way in ((shape, polls), *(() if carry else others)):
                self._add(
                    builder, window.label(self._label), "stream_lookback.wgsl", each, window, n,
                    reads=window.operands, writes=outputs | carry, room=self._room(layout),
                    params={"tiles": count}, extent="tiles",
                    constants={"SPIN_LIMIT": spin_limit, "EPOCH_BITS": 1, "STALL_EVERY": self._faults.stall_every},
                    atomics={"states": (states, "array<atomic<u32>>")},
                    sibling=(each, way) in others, blocks=False, **way._asdict(),
                    tickets=tickets, control="states", read_by_rmw=reads_by_rmw(self.capabilities),
                )  # fmt: skip
        return {
            **self._shape_parameters(shape, windows),
            "tiles": sum(tiles),
            "tickets": tickets,
            "look_back_window": polls.look * self.mode.size,
            "spin_limit": spin_limit,
        }

    def _plan_blocks(self, builder: PlanBuilder, layout: Layout, windows: Sequence[Window], n: int) -> dict[str, Any]:
        shape, words, room = self._shapes.at(n), self._words, self._room(layout)
        most = _CPU_BLOCKS if self.capabilities.is_cpu else _GPU_BLOCKS
        totals, before = builder.scratch("block_totals", words * most), builder.scratch("block_carries", words * most)
        totals, before = totals.by_words(), before.by_words()
        outputs = {name: layout[name] for name in self.signature.outputs if layout[name].length}
        ends = {name: operand for name, operand in outputs.items() if name in (self._count_name, "lengths")}
        written = {name: operand for name, operand in outputs.items() if name != self._count_name}
        marking = {mark.argument for mark in self.marks}
        for window, carry in zip(windows, self._carries(builder, windows), strict=True):
            tiles = -(-window.length // shape.tile_items)
            per_block = -(-tiles // min(tiles, most))
            marks = {name: operand for name, operand in window.operands.items() if name in marking}
            last_items = marks if carry and self.marks[0].heads else {}
            blocks = -(-tiles // per_block)
            params = {"tiles": tiles, "tiles_per_block": per_block, "blocks": blocks}
            for each in (shape,) if carry else self._shapes.all_for(n):
                more: dict[str, Any] = {
                    "room": room,
                    "params": params,
                    "sibling": each != shape,
                    "blocks": True,
                }
                self._add(
                    builder, window.label(f"{self._label} count"), "stream_count.wgsl", each, window, n,
                    reads=marks | carry, writes={"block_totals": totals}, extent="blocks", **more,
                )  # fmt: skip
                self._add(
                    builder, window.label(f"{self._label} totals"), "stream_totals.wgsl", each, window, n,
                    reads={"block_totals": totals} | last_items, writes=ends | {"block_carries": before} | carry,
                    extent=None, **more,
                )  # fmt: skip
                self._add(
                    builder, window.label(self._label), "stream_blocks.wgsl", each, window, n,
                    reads={**window.operands, "block_carries": before, **carry}, writes=written, extent="blocks",
                    **more,
                )  # fmt: skip
        return self._shape_parameters(shape, windows)

    def _carries(self, builder: PlanBuilder, windows: Sequence[Window]) -> list[dict[str, Operand]]:
        """Return for each window where it reads what the one before left, and writes what the next one reads."""
        if len(windows) == 1:
            return [{}]
        of_items = max(1, self.marks[0].datatype.itemsize_bytes // 4) if self.marks[0].heads else 0
        words = self._words + of_items
        carries = builder.scratch("carries", words * (len(windows) + 1))
        return [
            {"carries": replace(carries, offset=words * window.index, length=2 * words).by_words()}
            for window in windows
        ]

    def _shape_parameters(self, shape: Shape, windows: Sequence[Window]) -> dict[str, Any]:
        return {
            "workgroup_size": shape.workgroup_size,
            "vecs": shape.vecs,
            "shape": self._shapes.source_of(shape),
            "windows": len(windows),
        }

    @property
    def _count_name(self) -> str:
        """The output that holds the counts."""
        return "counts" if self.splits else "count"

    def _add(
        self,
        builder: PlanBuilder,
        label: str,
        shader: str,
        shape: Shape,
        window: Window,
        n: int,
        *,
        reads: Mapping[str, Operand],
        writes: Mapping[str, Operand],
        room: int,
        params: Mapping[str, int],
        extent: Extent,
        constants: Mapping[str, int] | None = None,
        atomics: Mapping[str, tuple[Operand, str]] | None = None,
        sibling: bool = False,
        **context: Any,
    ) -> None:
        flags = HAS_CARRY if window.index else 0
        builder.kernel(
            label,
            KernelFile(
                shader,
                context={**self._text(shape), "carried": window.count > 1, **context},
                constants={"WORKGROUP_SIZE": shape.workgroup_size, **(constants or {})},
                features=self._subgroup_features,
            ),
            Memory(
                reads=reads,
                writes=writes,
                atomics=atomics or {},
                units={
                    **{name: (4 if name in window.operands else 1) * each.item_bytes for name, each in reads.items()},
                    **{name: each.item_bytes for name, each in writes.items()},
                },
            ),
            params={"n": n, "first": window.first, "capacity": window.length, "room": room, "flags": flags, **params},
            extent=extent,
            fed={} if builder.count is None else {"n": builder.count},
            sibling=sibling,
        )

    # ---- the text ----

    def _stage(self) -> int:
        """Return the words of workgroup memory that items go through; 0 for none."""
        # A CPU adapter writes one item after the other in any case.
        default = 0 if self.capabilities.is_cpu else _STAGE_WORDS
        stage = default if self.tuning.stage is None else self.tuning.stage
        # Lengths are differences of neighbouring heads.
        return stage or (_STAGE_WORDS if self._writes_lengths else 0)

    def _is_held(self, field: Field) -> bool:
        """Whether items stay in registers from the load of the tile on; else they are read when they are written."""
        if field.argument is None or field.sparse or field.datatype.elements > 1:
            return False
        if self.tuning.items is not None:
            return self.tuning.items == "held"
        # Items that are not held are in a cache when they are written, or are read only then; the registers let more
        # workgroups run at once (H200, 2^28 items: select 586 µs to 658, flagged 652 to 744, partition 821 to 862). In
        # the order of the tile a partition reads them once for each part (1,610 to 989).
        if self._by_subgroups():
            return False
        marked = {leaf for mark in self.marks for leaf in self._leaves_of(mark.argument)}
        return self.splits or not self._leaves_of(field.argument) <= marked

    def _leaves_of(self, argument: str) -> set[str]:
        """Return the names of the arrays that an argument is read from."""
        fusion = self._expressions.get(argument)
        return {argument} if fusion is None else set(fusion.flat.names)

    def _mark_text(self, mark: Mark, held: bool) -> dict[str, Any]:
        return {
            "name": mark.argument,
            "kind": "heads" if mark.heads else "flags",
            "of": mark.datatype.dtype.kind,
            "bytes": mark.datatype.itemsize_bytes,
            "quad": _QUADS[mark.datatype.itemsize_bytes],
            "magnitude": _MAGNITUDES[mark.datatype.itemsize_bytes] if mark.datatype.dtype.kind == "f" else "",
            "equal_nan": mark.equal_nan,
            "held": held,
        }

    def _by_subgroups(self) -> bool:
        """Whether each subgroup orders its own items; else the workgroup those of the tile.

        By default where items are marked by flags, and all that is written is read with them (H200, 2^28 items: select
        586 µs to 674, flagged 652 to 736, partition in 2 821 to 989, in 3 882 to 1,277). The first items of runs are so
        few that one part holds those of a tile (442 to 542).
        """
        if self.mode.kind == "none" or self.tuning.order is not None:
            return self.mode.kind != "none" and self.tuning.order == "subgroup"
        read = all(each.argument and not each.sparse and each.datatype.elements == 1 for each in self._written)
        return read and not self.marks[0].heads and self.places is None and not self.capabilities.is_cpu

    @property
    def _subgroup_features(self) -> tuple[str, ...]:
        names = ("subgroup", "subgroup-barrier") if "subgroup-barrier" in self.capabilities.features else ("subgroup",)
        return names if self.mode.kind == "native" else ()

    def _round_rows(self, shape: Shape, stage_words: int) -> int:
        """Return how many rows of a tile, cut into equal rounds, go through workgroup memory together."""
        most = max(1, self._stage() // (4 * shape.workgroup_size * stage_words))
        return next(rows for rows in range(min(most, shape.vecs), 0, -1) if shape.vecs % rows == 0)

    def _source(self, field: Field, by_rounds: bool) -> str:
        if field.argument is None:
            return "index"
        if self._is_held(field):
            return "held"
        return "row" if by_rounds and not field.sparse and field.datatype.elements == 1 else "late"

    def _field_text(self, field: Field, by_rounds: bool) -> dict[str, Any]:
        source, item_bytes = self._source(field, by_rounds), field.datatype.element_bytes
        by_position, elements = source in ("index", "late"), field.datatype.elements
        stores = [("at", "params.first + i" if source == "index" else "item")]
        if source == "late":
            stores = [
                (f"{elements}u * at + {k}u", f"load_{field.argument}({elements}u * i + {k}u)") for k in range(elements)
            ]
        return {
            "name": field.argument or "position",
            "outputs": field.outputs,
            "source": source,
            # What functions that write an item are given, and what they give to others.
            "given": "i: u32" if by_position else f"item: Item{item_bytes}",
            "gives": "i" if by_position else "item",
            # Where it is stored in an output, and what.
            "stores": stores,
            "read_together": source == "late" and elements == 1 and not self.splits,
            "elements": elements,
            "bytes": item_bytes,
            "quad": _QUADS[item_bytes],
        }

    def _text(self, shape: Shape) -> dict[str, Any]:
        """Return the template values."""
        words, runs, two = self._words, self._writes_lengths, len(self.marks) > 1
        by_rounds = self._by_subgroups() and self._stage() > 0
        fields = [self._field_text(field, by_rounds) for field in self._written]
        held = {each["name"]: each for each in fields if each["source"] == "held"}
        marks = [self._mark_text(mark, mark.argument in held) for mark in self.marks]
        # What goes through workgroup memory, one after the other: positions, and items from registers or by rows.
        late = [each for each in fields if each["source"] in ("index", "late")]
        passes: list[dict[str, Any]] = [{"name": "positions", "source": "late", "words": 1}] if late or runs else []
        passes += [
            {**each, "words": max(1, each["bytes"] // 4)} for each in fields if each["source"] in ("held", "row")
        ]
        stage_words = max((int(each["words"]) for each in passes), default=1)
        rows = self._round_rows(shape, stage_words)
        # Of many heads keys alone are read again by rows (H200, 2^24, runs of 1 and 8: 58.7 µs to 54.5, 35.5 to 34.9;
        # but with lengths 85.1 to 78.8, 36.7 to 39.2, and with values 95.7 to 94.8, 54.7 to 61.8).
        keys = (marks[0]["name"], "late", True)
        alone = not runs and [(each["name"], each["source"], each["bytes"] < 8) for each in fields] == [keys]
        dense = [{**fields[0], "source": "row", "words": 1}] if alone else passes
        fits = self.mode.kind != "none" and 4 * shape.workgroup_size * rows * stage_words <= self._stage()
        if self.places is not None:
            emission = "places"
        elif not passes:
            emission = "nothing"
        elif not self._stage():
            emission = "rows"
        else:
            emission = "rounds" if by_rounds else "parts"
        sums: dict[str, Any] = {"type": "Acc", "combine": "combine", "identity": "identity()", **_SUMS}
        counts = {"suffix": "_counts", "type": "Counts", "combine": "add", "identity": "0u", **_SUMS}
        return {
            "words": words,
            "acc": {"words": words, "fields": ()},
            "runs": runs,
            "two": two,
            "heads": self.marks[0].heads,
            "count": self._count_name,
            "splits": self.splits,
            "places_of": "all" if self.splits else "marked",
            "emission": emission,
            # Tiles of more heads than a part holds are ordered by subgroups. On CPU adapters there is one text.
            "dense": emission == "parts" and fits and marks[0]["kind"] == "heads" and not self.capabilities.is_cpu,
            "marks": marks,
            "held": list(held.values()),
            # Inputs of which four items are loaded at the end of a tile, too, besides a mark's.
            "guarded": [
                each
                for each in fields
                if each["source"] in ("held", "row") and not (self.marks[0].heads and each["name"] == marks[0]["name"])
            ],
            "moved": fields,
            "late": late,
            "passes": passes,
            "part_items": self._stage() // stage_words,
            "stage_words": stage_words,
            "round_rows": rows,
            "rounds": [(each["name"], number) for each in passes for number in range(shape.vecs // rows)],
            "dense_rounds": [(each["name"], number) for each in dense for number in range(shape.vecs // rows)],
            "dense_passes": dense,
            **({"workgroup_size": shape.workgroup_size} if emission == "rounds" else {}),
            "vecs": shape.vecs,
            "pack": 4 if self.mode.size <= 32 else 2,
            "kinds": [*([counts] if runs else []), {"suffix": "", **sums}],
            "branch_free": True,
            "subgroups": self.mode.kind,
            "emulated_size": self.mode.size,
            "barrier": "subgroup" if len(self._subgroup_features) > 1 else "workgroup",
        }


# Workgroups of kernels that give each a block of tiles; as those of scans.
_GPU_BLOCKS, _CPU_BLOCKS = 1056, 64
# 8 KiB of workgroup memory: as many workgroups fit on a multiprocessor as registers allow.
_STAGE_WORDS = 2048
# What else lies there: a word or two for each subgroup, at most for each of 512 invocations.
_OTHER_STORAGE_BYTES = 4096
