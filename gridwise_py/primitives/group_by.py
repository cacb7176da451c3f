"""GroupBy: aggregates of the rows of each key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import CountedWork, Fill, Plan, Work
from ..planning.signature import Argument, SameAs, UpTo
from ..planning.sink import Sink
from ..planning.source import Source
from ..tuning.options import ScanTuning, SortTuning
from ..tuning.shapes import group_table_shape
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, ITEM_DATATYPES, Datatype, Struct
from ..types.expression import leaf
from ..types.operators import BinOp, Max
from ..types.options import integer
from ..types.program import Flat, LeafForm, Program, Step, flatten, gathered, part_of
from .base import Primitive
from .by_key import ReduceByKey
from .engines.key_codes import key_codes
from .engines.segments import heads_of_keys, segmented_prefixes
from .fusion import Fusion
from .group_spec import GroupPass, GroupSpec, Store, group_spec, key_expression, parts_of
from .group_tables import RUNS, GroupTables, group_tables, table_leaf
from .mapped_output import MappedOutput
from .select import Select
from .sort import Roles, SortPrimitive

#: What the expressions of a call are, until their leaves take its place; no leaf has such a name.
_ROWS = "output_rows"
_ORDER = "order"
_MOST_CARRIED_BYTES = 8
#: Of a pass of a sort of pairs, besides those of what it reads first: two copies of keys and values, routes and state.
_SORT_BINDINGS = 6
# A sort of fewer rows takes as few kernels.
_LEAST_TABLE_ROWS = 1 << 16
_CODE = Struct("code", low="u32", high="u32")


class SortedItems(NamedTuple):
    """What a group-by combines: items in the order of the keys, and what is stored of the results, by output."""

    op: BinOp
    datatype: Datatype
    items: np.ndarray
    stored: Mapping[str, Callable[[np.ndarray], np.ndarray] | None]


class _RowSort(SortPrimitive):
    """Sorts keys, and with them what aggregates need: items of 4 or 8 bytes, or the positions of the rows."""

    def __init__(
        self, device: wgpu.GPUDevice | None, keys: Datatype, values: Datatype | None, begin_bit: int,
        end_bit: int | None, *, are_positions: bool, computes: bool, tuning: SortTuning | None,
        capabilities: Capabilities | None,
    ):  # fmt: skip
        moved = () if values is None else (None if are_positions else "values", "sorted_values")
        self._roles = Roles("keys", "sorted_keys", *moved)  # pyright: ignore[reportIncompatibleVariableOverride, reportAttributeAccessIssue]
        super().__init__(
            device, keys, values, descending=False, begin_bit=begin_bit, end_bit=end_bit, overwrite_input=False,
            strategy=None, tuning=tuning, capabilities=capabilities, computes=computes,
        )  # fmt: skip


class _Reduction(ReduceByKey):
    """A reduction of sorted rows, whose results may be stored as expressions."""

    def __init__(
        self, device: wgpu.GPUDevice | None, spec: GroupSpec, number: int, *, deterministic: bool,
        tuning: ScanTuning | None, capabilities: Capabilities | None,
    ):  # fmt: skip
        own = spec.passes[number]
        self.stores = own.stores
        self._is_plain_store = [store.form for store in own.stores] == ["result"]
        self._outputs = () if self._is_plain_store else tuple(store.name for store in own.stores)
        self._mapped_stores = {
            store.name: MappedOutput(store.expression(), own.datatype) for store in own.stores if self._outputs
        }
        words = spec.datatype.itemsize_bytes // 4
        self._key_stores: dict[str, MappedOutput] = {}
        if number == 0 and spec.is_coded:
            self._key_stores = {
                key.name: MappedOutput(key_expression(key, words), _CODE if words == 2 else DATATYPES["u32"])
                for key in spec.keys
            }
        self._key_words = words
        self._writes_keys = number == 0
        keys = () if not self._writes_keys else tuple(self._key_stores) or ("output_keys",)
        results = self._outputs or (("output_values",) if self.stores else ())
        self._also_written = (*keys, *results, *(("count",) if self._writes_keys else ()))  # pyright: ignore[reportAttributeAccessIssue]
        super().__init__(
            device, spec.datatype, own.datatype, own.op, deterministic=deterministic, tuning=tuning,
            capabilities=capabilities,
        )  # fmt: skip

    def outputs_in(self, layout: Layout) -> dict[str, Operand]:
        """Return what the kernels write, given the arguments of the group-by."""
        written: dict[str, Operand] = {"count": layout["count"], "output_keys": layout[next(iter(_keys_in(layout)))]}
        for name, mapped in self._key_stores.items():
            sink = mapped.writes(layout, name)[name]
            assert isinstance(sink, Sink)
            written[name] = replace(sink, kind="vec2<u32>") if self._key_words == 2 else sink
        for name, mapped in self._mapped_stores.items():
            written[name] = mapped.writes(layout, name)[name]
        if self._is_plain_store:
            written["output_values"] = layout[self.stores[0].name]
        return written

    def _segment_context(self, *args: Any, **more: Any) -> dict[str, Any]:
        context = super()._segment_context(*args, **more)
        if self._writes_keys and not self._key_stores and self._is_plain_store:
            return context  # the text of ReduceByKey
        store = "store_acc_" if self._key_words == 2 else "store_"
        keys = [f"{store}{name}" for name in self._key_stores] or ["store_output_keys"]
        stores = {
            "of_keys": keys if self._writes_keys else [],
            "results": None if self._is_plain_store else list(self._outputs),
        }
        return {**context, "stores": stores}


def _column_of(flat: Flat) -> str | None:
    """Return the leaf of 4 bytes that an expression is, its words at least; None for other expressions."""
    steps, results = flat.program.steps, flat.program.results
    step = steps[results[0]]
    if step.kind == "bitcast":
        step = steps[step.args[0]]
    if len(results) > 1 or step.kind != "leaf" or flat.datatypes[step.number].name not in DATATYPES:
        return None
    return flat.names[step.number]


def _keys_in(layout: Layout) -> list[str]:
    return [name for name in layout if name.startswith("output_keys")]


class GroupBy(Primitive):
    """Aggregate the rows of each key: gives the ascending keys, an item of each aggregate, and how many.

    Parameters
    ----------
    device : wgpu.GPUDevice
    keys : dtype, expression, or a sequence or mapping of these
        The columns: a datatype stands for an argument ``keys``. Several have outputs of their names or numbers.
    aggregates : mapping, optional
        By output: (expression, op) or `count`; operators, or names of `group_by`. A datatype in place of the expression
        stands for an argument ``NAME_items``.
    key_bits : int or sequence of int, optional
        The bits of each column of keys, integers from 0 to ``2**bits - 1``, at most 64 in all; others are ignored.
        Fewer take less time.
    skipna : bool, default False
        Whether aggregates of f32 leave NaNs out; those of structs do not.
    size : int, optional
        The groups that there is room for; by default as many as rows. Others are not written, but counted.
    deterministic : bool, default False
        For floats: the same bits on every run and adapter, as for `ReduceByKey`.
    tuning : ScanTuning, optional
        Options of the reductions that affect only the speed. By default the library's.
    sort_tuning : SortTuning, optional
        Those of the sort.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.
    **more
        Further aggregates.

    See Also
    --------
    execute : takes the leaves by their names; gives ``output_keys`` (of several columns ``output_keys_NAME``), the
        aggregates by their names, and ``count``. Outputs carry the count: ``to_numpy()`` gives as many items as there
        are groups.
    group_by : the same as a function.

    Notes
    -----
    Keys of f32 are compared as numbers: −0 equals +0, and all NaNs are one group, the last one. A column of 8 bytes is
    read as it is, so NaNs of other bits are other groups there. Keys of bool are stored as u32, and so are
    ``"any"`` and ``"all"``, as 0 and 1. Means, variances and standard deviations are of f32.

    Aggregates that need at most 8 bytes of a row are sorted along with the keys. With more, the positions of the rows
    are, and the reductions gather. Sums, products, minima, maxima, counts and means share a reduction, three words at a
    time; others have their own.

    Integer sums, minima, maxima, bitwise operators and counts by keys of few bits (`key_bits` of up to 20, by the
    workgroup memory) need no full sort: at most one pass, and tables of workgroup memory in which rows are combined.
    That takes 2¹⁶ rows at least, and twice as many as there can be keys.

    Temporary memory is two copies of the keys and of what is sorted along.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> keys, x = gw.u32("k"), gw.f32("x")
    >>> groups = gw.GroupBy(device, keys, total=(x, gw.Add), mean=(x, "mean"), rows=gw.count)
    >>> k = gw.asarray(np.array([7, 2, 7, 7], dtype=np.uint32), device)
    >>> run = groups.execute(k=k, x=gw.asarray(np.array([1, 5, 2, 6], dtype=np.float32), device))
    >>> {name: run.outputs[name].tolist() for name in ("output_keys", "total", "mean", "rows")}
    {'output_keys': [2, 7], 'total': [5.0, 9.0], 'mean': [5.0, 3.0], 'rows': [1, 3]}
    """

    takes_count = True
    #: Whether rows are combined in tables where that can be.
    _by_tables: ClassVar[bool] = True

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        keys: Any,
        aggregates: Mapping[str, Any] | None = None,
        *,
        key_bits: int | Sequence[int | None] | None = None,
        skipna: bool = False,
        size: int | None = None,
        deterministic: bool = False,
        tuning: ScanTuning | None = None,
        sort_tuning: SortTuning | None = None,
        capabilities: Capabilities | None = None,
        **more: Any,
    ):
        super().__init__(device, capabilities=capabilities)
        if isinstance(keys, GroupSpec):
            self.spec: GroupSpec = keys
            names = list(aggregates or [store.name for store in keys.stores])
        else:
            wanted = {**(aggregates or {}), **more}
            self.spec, names = group_spec(keys, wanted, key_bits=key_bits, skipna=skipna), list(wanted)
        spec = self.spec
        self.size: int | None = None if size is None else integer("size", size, 1)
        self._results: dict[str, Datatype] = {key.name: key.datatype for key in spec.keys}
        self._results |= {name: next(store.datatype for store in spec.stores if store.name == name) for name in names}
        self._fusion = Fusion(spec.flat, _ROWS)
        self._values = self._carried()
        self.spec = replace(spec, passes=tuple(self._fitting()))
        self._sort = _RowSort(
            device, spec.datatype, self._value_datatype(), 0, spec.end_bit, are_positions=self._gathers,
            computes=self._computes, tuning=sort_tuning, capabilities=self.capabilities,
        )  # fmt: skip
        self._reductions = [
            _Reduction(
                device, self.spec, number, deterministic=deterministic, tuning=tuning, capabilities=self.capabilities
            )
            for number in range(len(self.spec.passes))
        ]  # fmt: skip
        self._tables = None if self._gathers or not self._by_tables else group_tables(self.spec, self.capabilities)
        if self._tables is not None:
            self._part_sort = _RowSort(
                device, spec.datatype, self._value_datatype(), self._tables.table_bits, self._tables.key_bits,
                are_positions=False, computes=self._computes, tuning=sort_tuning, capabilities=self.capabilities,
            )  # fmt: skip
            self._present = Select(
                device, self._tables.results, where=self._tables.is_present, capabilities=self.capabilities
            )

    def _arguments(self) -> tuple[Argument, ...]:
        length = UpTo(_ROWS, "count", most=self.size)
        return (
            Argument(_ROWS),
            *(Argument(name, datatype=kind, length=SameAs(_ROWS)) for name, kind in self.spec.columns),
            *(Argument(name, is_output=True, datatype=kind, length=length) for name, kind in self._results.items()),
            Argument("count", is_output=True, datatype=DATATYPES["u32"], length=1),
        )

    def _with_leaves(self, arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """Return the arguments with the leaves in place of the rows."""
        assert self._fusion is not None
        if self._fusion.measure is not None:
            return self._fusion.arguments(arguments)
        # No leaf is read row by row: a column of 8 bytes says how many rows there are.
        first = self.spec.columns[0][0] if self.spec.columns else None
        if first is None:
            return self._fusion.arguments(arguments)  # raises
        found: list[Argument] = []
        for each in arguments[1:]:
            if isinstance(each.length, UpTo):
                each = replace(each, length=replace(each.length, argument=first))
            elif isinstance(each.length, SameAs):
                each = replace(each, length=None if each.name == first else replace(each.length, argument=first))
            found.append(each)
        return (*found[:1], *(each for each, _, _ in self._fusion.stream_leaves(arguments[0])), *found[1:])

    def _carried(self) -> list[int | str]:
        """Return what aggregates need of a row: results of the program, and columns of 8 bytes."""
        flat, found = self.spec.flat, dict[int | str, None]()
        for each in self.spec.passes:
            if each.column:
                found[each.column] = None
            for place in each.places:
                step = flat.program.results[place]
                if flat.program.steps[step].kind != "number":
                    found[step] = None
        return list(found)

    def _fitting(self) -> Iterator[GroupPass]:
        """Yield the passes; one whose outputs need more bindings than the device has becomes several."""
        most, keys = self._most_bindings, len(self.spec.keys) + 1

        def needed(own: GroupPass, stores: list[Store]) -> int:
            # Besides what is read and written, the state of the look-back and its control.
            return 2 + self._leaves_of(parts_of(own, stores)) + keys + len(stores)

        first = self.spec.passes[0]
        if needed(first, list(first.stores[:1])) > most and self.spec.is_coded:
            items = ITEM_DATATYPES["u64" if self.spec.datatype.itemsize_bytes == 8 else "u32"]
            yield GroupPass(Max, items, (), "", ())
            keys = 0
        for own in self.spec.passes:
            left = list(own.stores)
            while left:
                taken = len(left)
                while taken > 1 and needed(own, left[:taken]) > most:
                    taken -= 1
                yield parts_of(own, left[:taken])
                left, keys = left[taken:], 0

    def _leaves_of(self, own: GroupPass) -> int:
        """Return how many arrays a reduction reads."""
        if not self._gathers:
            return 2
        flat = self.spec.flat
        steps = [flat.program.results[place] for place in own.places]
        return 2 + (1 if own.column else len(part_of(flat, steps).names))

    def _bytes_of(self, value: int | str) -> int:
        return 8 if isinstance(value, str) else 4

    @property
    def _gathers(self) -> bool:
        """Whether the positions of rows are sorted along with their keys, and reductions gather."""
        if sum(map(self._bytes_of, self._values)) > _MOST_CARRIED_BYTES:
            return True
        # Positions are made, not read: that saves bindings of the sort.
        steps = [step for step in self._values if isinstance(step, int)]
        words = self.spec.flat.program.results[: self.spec.key_words]
        read = sum(len(part_of(self.spec.flat, part).names) for part in (steps, words)) + len(self.spec.columns)
        return bool(self._values) and read > self._most_bindings - _SORT_BINDINGS

    @property
    def _most_bindings(self) -> int:
        return self.capabilities.limits["max-storage-buffers-per-shader-stage"]

    @property
    def _computes(self) -> bool:
        """Whether the sort reads an expression, not only columns as they are."""
        results = self.spec.flat.program.results[: self.spec.key_words]
        steps = [] if self._gathers else [step for step in self._values if isinstance(step, int)]
        return any(_column_of(part_of(self.spec.flat, part)) is None for part in (results, steps) if part)

    def _value_datatype(self) -> Datatype | None:
        if self._gathers:
            return DATATYPES["u32"]
        size = sum(map(self._bytes_of, self._values))
        return {0: None, 4: DATATYPES["u32"], 8: ITEM_DATATYPES["u64"]}[size]

    # ---- plans ----

    def _rows_in(self, layout: Layout) -> int:
        assert self._fusion is not None
        measure = self._fusion.measure
        if measure is None:
            return layout[self.spec.columns[0][0]].length
        return layout[measure[0]].length // measure[1]

    def _source(self, layout: Layout, n: int, results: Sequence[int], *, pair: bool = False) -> Operand:
        """Return steps of the program as a kernel reads them; a leaf of 4 bytes that is read as it is, is itself."""
        assert self._fusion is not None
        flat = part_of(self.spec.flat, results)
        name = _column_of(flat)
        if name is not None:
            return layout[name]
        return self._fused(layout, n, flat.program, [layout[name] for name in flat.names], pair=pair)

    def _fused(
        self, layout: Layout, n: int, program: Program, leaves: Sequence[Operand], *, pair: bool = False,
        struct: bool = False,
    ) -> Source:  # fmt: skip
        flat = self.spec.flat
        words = 1 if pair else len(program.results)
        return Source(
            n * words, "", item_bytes=8 if pair else 4, program=program, leaves=tuple(leaves), numbers=flat.numbers,
            scalars=tuple(layout.values_given.get(name, (0,))[0] for name, _ in flat.scalars), end=max(n, 1) - 1,
            is_struct=struct, is_pair=pair,
        )  # fmt: skip

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a sort of the rows, and the reductions of the sorted ones."""
        spec = self.spec
        builder = PlanBuilder("group_by", layout, self.capabilities)
        n = self._rows_in(layout)
        parameters: dict[str, Any] = {}
        tables = self._tables
        if n and tables is not None and self._are_enough(n, tables):
            parameters = self._plan_tables(builder, layout, n, tables)
        elif n:
            parameters = self._plan_rows(builder, layout, n)
        else:
            count = layout["count"]
            builder.step(Fill(count.buffer, count.first_byte, 4))
        inputs = [name for name, argument in self.signature.arguments.items() if not argument.is_output]
        read = sum(layout[name].nbytes for name in inputs)
        outputs = [name for name in self.signature.outputs if name != "count"]
        room = layout[outputs[0]].length
        group_bytes = sum(layout[name].nbytes for name in outputs) // max(room, 1)
        counted = (
            *builder.counted_work(n, read // max(n, 1), 0),
            CountedWork("count", room, 0, group_bytes),
        )
        work = Work(n, read, room * group_bytes + 4, max(0, n - 1) * len(spec.stores), counted)
        return builder.build(work, parameters)

    def _plan_rows(self, builder: PlanBuilder, layout: Layout, n: int) -> dict[str, Any]:
        spec = self.spec
        results = spec.flat.program.results[: spec.key_words]
        keys = self._source(layout, n, results, pair=len(results) == 2) if results else layout["keys"]
        sorted_keys = builder.scratch("group_keys", n, spec.datatype.itemsize_bytes)
        datatype, values = self._value_datatype(), dict[str, Operand]()
        if datatype is not None:
            values = {"sorted_values": builder.scratch("group_values", n, datatype.itemsize_bytes)}
            if not self._gathers:
                values = {"values": self._carried_values(layout, n), **values}
        sorted_by = {"keys": keys, "sorted_keys": sorted_keys, **values}
        sort = builder.include("sort", self._sort, sorted_by, counted=True)
        group_keys = self._masked(layout, n, sorted_keys)
        several = len(spec.passes) > 1
        for number, (own, reduction) in enumerate(zip(spec.passes, self._reductions, strict=True), 1):
            operands = {
                "keys": group_keys,
                "items": self._items(layout, n, own, sorted_keys, values.get("sorted_values")),
                **reduction.outputs_in(layout),
            }
            name = f"reduction {number} of {len(spec.passes)}" if several else "reduction"
            builder.include(name, reduction, operands, counted=True)
        return {
            "sorted_along": "positions" if self._gathers else "values" if values else "nothing",
            "reductions": len(spec.passes),
            **sort,
        }

    def _masked(self, layout: Layout, n: int, sorted_keys: Operand) -> Operand:
        """Return sorted keys without the bits that they were not sorted by."""
        mask = self.spec.key_mask
        if mask is None:
            return sorted_keys
        flat = flatten(leaf("sorted_keys", "u32") & mask)
        return replace(self._fused(layout, n, flat.program, [sorted_keys]), numbers=flat.numbers)

    @staticmethod
    def _are_enough(n: int, tables: GroupTables) -> bool:
        """Whether there are rows enough: for fewer, the tables are more to clear and to read than the rows."""
        return n >= max(_LEAST_TABLE_ROWS, 2 << tables.key_bits)

    def _plan_tables(self, builder: PlanBuilder, layout: Layout, n: int, tables: GroupTables) -> dict[str, Any]:
        """Add a pass of the sort if keys have more bits than a table, and the kernels that fill and read tables."""
        program = self.spec.flat.program
        steps = [program.results[word.place] for word in tables.words]
        keys = self._source(layout, n, program.results[:1])
        parameters: dict[str, Any] = {}
        if tables.sorts:
            moved, datatype = None, self._value_datatype()
            sorted_by = {"keys": keys, "sorted_keys": builder.scratch("group_keys", n)}
            if datatype is not None:
                moved = builder.scratch("group_values", n, datatype.itemsize_bytes)
                sorted_by |= {"values": self._carried_values(layout, n), "sorted_values": moved}
            parameters = builder.include("sort", self._part_sort, sorted_by, counted=True)
            keys = sorted_by["sorted_keys"]
            words = [self._moved(layout, n, step, moved) for step in steps]
        else:
            words = [self._source(layout, n, [step]) for step in steps]
        size = 1 << tables.key_bits
        memory = builder.scratch("tables", 2 * (1 + len(words)) * size)
        control = builder.scratch("control", 2)
        shape = group_table_shape(self.capabilities)
        builder.kernel(
            "tables",
            KernelFile(
                "group_tables.wgsl",
                context={
                    "vecs": shape.vecs,
                    "table_bits": tables.table_bits,
                    "key_bits": tables.key_bits,
                    "words": [{"atomic": word.atomic, "mask": word.mask} for word in tables.words],
                    "parameters": ", ".join(f"word_{k}: u32" for k in range(len(words))),
                    "loads": ", ".join(f"load_word_{k}(i)" for k in range(len(words))),
                    "parts": ", ".join(f"word_{k}_@" for k in range(len(words))),
                },
                constants={"WORKGROUP_SIZE": shape.workgroup_size},
            ),
            Memory(
                reads={"keys": keys, **{f"word_{k}": word for k, word in enumerate(words)}},
                atomics={name: (of, "array<atomic<u32>>") for name, of in (("tables", memory), ("control", control))},
            ),
            params={"n": n, "blocks": shape.max_blocks, "key_mask": self.spec.key_mask or 0xFFFFFFFF},
            extent="blocks",
            counted_from=0,
        )
        parts = {
            table_leaf(k, table): replace(memory, offset=(table * (1 + len(words)) + k) * size, length=size)
            for table in (0, 1)
            for k in range(1 + len(words))
        }
        builder.include(
            "groups", self._present,
            {RUNS: replace(control, length=1), **parts, **{name: layout[name] for name in self.signature.outputs}},
            counted=False,
        )  # fmt: skip
        return {"by": "tables", "table_bits": tables.table_bits, **parameters}

    def _moved(self, layout: Layout, n: int, step: int, moved: Operand | None) -> Operand:
        """Return a step of the program of the rows in their new order."""
        if len(self._values) == 1 and step in self._values:
            assert moved is not None
            return moved
        program = self._of_values([step])
        return self._fused(layout, n, program, [self._by_words(moved)] if program.leaves else [])

    def _carried_values(self, layout: Layout, n: int) -> Operand:
        """Return what is sorted along with the keys."""
        first = self._values[0]
        if isinstance(first, str):
            return layout[first]
        steps = [step for step in self._values if isinstance(step, int)]
        return self._source(layout, n, steps, pair=len(steps) == 2)

    def _items(self, layout: Layout, n: int, own: GroupPass, sorted_keys: Operand, moved: Operand | None) -> Operand:
        """Return the items of a reduction: the values that were sorted, or those at the sorted positions."""
        if not own.stores:
            return sorted_keys  # of a pass that writes keys only, and so reads nothing else
        if own.column:
            assert moved is not None
            return self._gathered_column(layout, n, layout[own.column], moved) if self._gathers else moved
        struct = own.datatype.is_several
        steps = [self.spec.flat.program.results[place] for place in own.places]
        if self._gathers:
            assert moved is not None
            flat = gathered(part_of(self.spec.flat, steps), _ORDER)
            leaves = [moved if name == _ORDER else layout[name] for name in flat.names]
            return self._fused(layout, n, flat.program, leaves, struct=struct)
        if not struct and steps[0] in self._values and len(self._values) == 1:
            assert moved is not None
            return moved
        program = self._of_values(steps)
        return self._fused(layout, n, program, [self._by_words(moved)] if program.leaves else [], struct=struct)

    def _of_values(self, wanted: Sequence[int]) -> Program:
        """Return the program that gives steps of the program from what was sorted along."""
        known, parts = self.spec.flat.program.steps, len(self._values)
        steps: dict[Step, int] = {}
        results: list[int] = []

        def number_of(step: Step) -> int:
            return steps.setdefault(step, len(steps))

        for k in wanted:
            step = known[k]
            if k not in self._values:  # a number
                results.append(number_of(step))
                continue
            kind = "leaf" if parts == 1 else "component"
            word = number_of(Step(kind, "u32", (), 0 if parts == 1 else (0, self._values.index(k))))
            results.append(word if step.type == "u32" else number_of(Step("bitcast", step.type, (word,))))
        has_leaf = any(step.kind in ("leaf", "component") for step in steps)
        return Program(tuple(steps), tuple(results), (LeafForm("u32", parts),) if has_leaf else ())

    @staticmethod
    def _by_words(operand: Operand | None) -> Operand:
        """Return an operand of 8 bytes as twice as many words."""
        assert operand is not None
        if operand.item_bytes == 4:
            return operand
        return replace(
            operand, length=2 * operand.length, offset=2 * operand.offset, item_bytes=4,
            vec4=operand.vec4 and operand.offset % 2 == 0,
        )  # fmt: skip

    def _gathered_column(self, layout: Layout, n: int, column: Operand, order: Operand) -> Source:
        steps = (
            Step("leaf", "u32", (), 1),
            Step("component", "u32", (), (0, 0)),
            Step("component", "u32", (), (0, 1)),
            Step("gather", "u32", (1, 0)),
            Step("gather", "u32", (2, 0)),
        )
        program = Program(steps, (3, 4), (LeafForm("u32", 2), LeafForm("u32")))
        return self._fused(layout, n, program, [self._by_words(column), order], pair=True)

    # ---- numpy ----

    def reference(self, **arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return numpy's results for the same inputs, in the order of the outputs. It knows of no `size`."""
        keys, starts, reductions = self._sorted_rows(arrays)
        heads = np.zeros(keys.size, bool)
        heads[starts] = True
        ends = np.append(starts[1:], keys.size)[: starts.size] - 1
        found: dict[str, np.ndarray] = self._keys_of(keys[starts])
        for each in reductions:
            results = segmented_prefixes(each.op, each.items, heads)[ends]
            found |= {name: results if stored is None else stored(results) for name, stored in each.stored.items()}
        found["count"] = np.array([starts.size], dtype=np.uint32)
        return tuple(found[name] for name in self.signature.outputs)

    def _sorted_rows(self, arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[SortedItems]]:
        """Return the sorted keys, where each group begins, and what is combined."""
        spec, arrays = self.spec, dict(arrays)
        columns = {name: arrays.pop(name) for name, _ in spec.columns}
        sizes = {items.size for items in columns.values()}
        flat = spec.flat

        def value(step: int) -> np.ndarray:
            part = part_of(flat, [step])
            given = {name: arrays[name] for name in (*part.names, *(k for k, _ in flat.scalars)) if name in arrays}
            return np.asarray(self._value_of(part, given, sizes.copy().pop() if sizes else None))

        words = [value(step) for step in flat.program.results[: spec.key_words]]
        sizes |= {word.size for word in words}
        if len(words) == 2:
            keys = words[0].astype(np.uint64) | words[1].astype(np.uint64) << np.uint64(32)
        else:
            keys = words[0] if words else columns["keys"]
        if spec.key_mask is not None:
            keys = keys & np.uint32(spec.key_mask)
        order = np.argsort(key_codes(keys), kind="stable")
        keys = keys[order]
        found: list[SortedItems] = []
        for own in (each for each in spec.passes if each.stores):
            if own.column:
                items = columns[own.column]
            elif own.datatype.is_several:
                items = np.empty(keys.size, own.datatype.dtype)
                for field, place in zip(own.datatype.dtype.names or (), own.places, strict=True):
                    items[field] = value(flat.program.results[place])
            else:
                items = np.broadcast_to(value(flat.program.results[own.places[0]]), keys.shape)
            stored = {
                store.name: None if store.form == "result" else MappedOutput(store.expression(), own.datatype).value
                for store in own.stores
            }
            found.append(SortedItems(own.op, own.datatype, items[order], stored))
        return keys, np.flatnonzero(heads_of_keys(keys)), found

    def _keys_of(self, keys: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns of sorted keys."""
        spec = self.spec
        if not spec.is_coded:
            (key,) = spec.keys
            if keys.dtype.kind == "f":
                keys = keys + keys.dtype.type(0)  # −0 becomes +0
            return {key.name: keys.view(key.datatype.dtype)}
        words, results = spec.datatype.itemsize_bytes // 4, keys
        if words == 2:
            results = np.ascontiguousarray(keys).view(_CODE.dtype)
        of = _CODE if words == 2 else DATATYPES["u32"]
        return {key.name: MappedOutput(key_expression(key, words), of).value(results) for key in spec.keys}


def sorted_items(primitive: GroupBy, arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, list[SortedItems]]:
    """Return where each group begins, and what is combined, for error bounds; inputs are given by name."""
    _, starts, found = cast(Any, primitive)._sorted_rows(arrays)
    return starts, found
