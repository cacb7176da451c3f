"""TopK: the k largest or smallest items, and where they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, LengthError, LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import Invocations, KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import Fill, Plan, Work
from ..planning.signature import Argument, SameAs
from ..planning.windows import bindings_for, part_of, windows_of
from ..tuning.options import ElementwiseTuning
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, STORAGE_DATATYPES, Datatype, KeyDatatypeLike, as_datatype
from ..types.expression import Operators
from ..types.options import MOST_U32, integer, one_of
from .base import Primitive
from .calls import SegmentedTopKCalls, TopKCalls
from .engines.key_codes import key_codes, key_context, key_words
from .engines.segments import segments_of, with_buffer
from .registry import register
from .scan import Scan
from .sort import ArgSort, Sort

TopKMode: TypeAlias = Literal["largest", "smallest"]
# Of top_k_select.wgsl: the entries (a code and a place) that it has workgroup memory for. With codes of 8 bytes and 512
# invocations all takes 15 of the 16 KiB that every device has.
_SELECT_ROOM = 1024
#: Most items that are chosen of a segment.
SEGMENT_MOST = _SELECT_ROOM
# Its invocations for each of many rows, and where it is alone, by the words of a code: it waits for memory then, so the
# more loads are in flight the better. A CPU adapter runs invocations one after another.
_SELECT_INVOCATIONS = 256
_SELECT_INVOCATIONS_ALONE = {1: 1024, 2: 512}
# Codes of which one workgroup chooses, where there may be more. It reads them twice: to hold them in registers takes 1
# to 4 µs more on an H100. And items of chosen groups, where no further choice is needed then.
_SELECT_ITEMS = 1 << 14
_SELECT_LAST_ITEMS = 1 << 16
# Up to this k the last choice of groups and that of the items are one kernel: its list of groups is in workgroup
# memory, and 256 slots are enough. A CPU adapter compiles two kernels sooner, and has no gap between them.
_MOST_GROUPS = 128
# Most workgroups that make the same choice, about one for each multiprocessor of a large GPU.
_MOST_CHOICES = 128
# A row that is longer gets many workgroups, if the rows are few.
_LONG_ROW_ITEMS = 1 << 17
_FEW_ROWS = 16
# Tiles of which a workgroup finds the minima: each takes 4 or 8 bytes of workgroup memory for each invocation. Where
# that leaves fewer workgroups than a GPU runs at once, each has one tile.
_TILES_A_BLOCK = 2
_WORKGROUPS_AT_ONCE = 1024
# Tiles of the largest groups.
_GROUP_TILES = 4
# Kernels add a block of tiles to a place, in 32 bits.
_MOST_ITEMS = (1 << 32) - (1 << 20)


@dataclass(frozen=True)
class _Listed:
    """Groups that were chosen.

    Attributes
    ----------
    list : Operand
        Their numbers, ascending; where one workgroup chose them, the largest of their codes is behind them.
    group : int
        Items of a group, a power of two.
    count : int
        How many groups there are.
    """

    list: Operand
    group: int
    count: int

    @property
    def items(self) -> int:
        """The items of all groups."""
        return self.count * self.group


def _log2(size: int) -> int:
    return size.bit_length() - 1


@register("top_k")
class TopK(TopKCalls, Primitive):
    """Find the k largest or smallest items and their indices.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, or expression, default "u32"
        Datatype of the items: bool, or integers and floats of 8 to 64 bits.
    k : int, default 1
    mode : {"largest", "smallest"}, default "largest"
    sorted : bool, default True
        Whether the best item comes first. Otherwise they are in the order of their indices.
    row_length : int, optional
        Items of a row, of each of which k are found. By default all items are one row.
    tuning : ElementwiseTuning, optional
        Shape of the kernel that reads the input; affects only the speed. By default the library's, or the one from
        ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input``, shape (n,); gives ``values`` and ``indices`` (u32), shape (k,), or k for each row, row by
        row. Indices of rows count from the beginning of the row.
    ArgSort : the order.

    Notes
    -----
    The result is that of the first k indices of `ArgSort`, with ``descending=True`` for the largest. So of equal items
    the first ones win, and results repeat; −0 equals +0 and keeps its sign; a NaN is chosen after every number, in both
    modes. If only the GPU knows how many items count (``n=``) and these are fewer than k, the rest of ``indices`` is
    2³² − 1 and the rest of ``values`` 0.

    The input is read once. Each group of up to 32,768 consecutive items gives its best item, its delegate; the groups
    of the k best delegates, of equal ones the first, hold all items that win. Among these groups it goes on in the same
    way. So the time hardly depends on the data. Up to k = 1,024 workgroups choose among delegates; for larger k these
    are sorted, and from about k = n / 50 on the whole input is. Source: Gaihre et al., "Dr. Top-k:
    delegate-centric top-k on GPUs" (2021).

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([3, 9, 2, 9, 5], dtype=np.uint32), device)
    >>> run = gw.TopK(device, "u32", 3).execute(input=x)
    >>> run.outputs["values"].to_numpy(), run.outputs["indices"].to_numpy()
    (array([9, 9, 5], dtype=uint32), array([1, 3, 4], dtype=uint32))
    """

    takes_count = True
    datatypes: ClassVar[Mapping[str, Datatype]] = STORAGE_DATATYPES
    arguments = (
        Argument("input"),
        Argument("values", is_output=True),
        Argument("indices", is_output=True, datatype=DATATYPES["u32"]),
    )
    #: Codes of which one workgroup chooses, and items of chosen groups; tests set fewer.
    _select_items: ClassVar[int] = _SELECT_ITEMS
    _select_last_items: ClassVar[int] = _SELECT_LAST_ITEMS

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike | Operators = "u32",
        k: int = 1,
        *,
        mode: TopKMode = "largest",
        sorted: bool = True,
        row_length: int | None = None,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.k: int = integer("k", k, 0, MOST_U32)
        self.mode: TopKMode = one_of("mode", mode, get_args(TopKMode))
        self.sorted: bool = bool(sorted)
        self.row_length: int | None = None if row_length is None else integer("row_length", row_length, 1, MOST_U32)
        if self.row_length is not None and self.k > self.row_length:
            raise LengthError(f"TopK: k={self.k}, but a row has {self.row_length} items; give a k of at most that")
        self.datatype: Datatype = as_datatype(self._take(dtype, "input"), self.datatypes)
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("top_k", self.capabilities, tuning=self.tuning)
        vecs = self._shapes.rows[-1][1].vecs
        if vecs & (vecs - 1):
            raise ArgumentError(f"TopK: vecs={vecs}, but groups have a power of two of items; use 1, 2, 4, 8 or 16")

    def _arguments(self) -> tuple[Argument, ...]:
        return tuple(replace(each, length=self._results_of) if each.is_output else each for each in self.arguments)

    def _results_of(self, lengths: Mapping[str, int]) -> int:
        """Return the length of the outputs."""
        if self.row_length is None:
            return self.k
        return max(lengths.values(), default=0) // self.row_length * self.k

    @property
    def _descending(self) -> bool:
        return self.mode == "largest"

    @property
    def _code_bytes(self) -> int:
        return 4 * key_words(self.datatype)

    @cached_property
    def _sort_items(self) -> ArgSort:
        """Sorts the whole input."""
        return ArgSort(self._device, self.datatype, descending=self._descending, capabilities=self.capabilities)

    @cached_property
    def _sort_codes(self) -> ArgSort:
        return ArgSort(self._device, "u64" if self._code_bytes == 8 else "u32", capabilities=self.capabilities)

    @cached_property
    def _sort_places(self) -> Sort:
        return Sort(self._device, "u32", capabilities=self.capabilities)

    @classmethod
    def at_size(cls, n: int, k: int = 100, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the constructor's options for a benchmark of size n, and the lengths of the inputs."""
        return {"k": min(n, k)}, {"input": n}

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch for few items, on a GPU at most three for k up to 128, else more, or sorts."""
        builder = PlanBuilder("top_k", layout, self.capabilities)
        layout = self._reads(layout)
        items, values, indices = layout["input"], layout["values"], layout["indices"]
        n = items.length
        length = n if self.row_length is None else self.row_length
        if n % max(length, 1):
            raise LengthError(f"TopK: input has {n} items, but rows of {length}; give whole rows")
        if self.k > length:
            raise LengthError(f"TopK: k={self.k}, but input has {n} items; give a k of at most that")
        if n > _MOST_ITEMS:
            raise LimitError(f"TopK: input has {n} items, but takes at most {_MOST_ITEMS}; split it")
        if self.row_length is not None and builder.count is not None:
            raise ArgumentError(
                "TopK: n= counts items along one dimension, but row_length= makes rows; give whole rows"
            )
        rows = n // length if length else 0
        parameters: dict[str, Any] = {
            "k": self.k,
            "rows": rows,
            "shape": self._shapes.source_of(self._shapes.at(length)),
        }
        if self.k and rows:
            if self.k <= _SELECT_ROOM and (
                length <= self._select_items or rows > max(_FEW_ROWS, length // _LONG_ROW_ITEMS)
            ):
                self._select(builder, items, length, rows, values=values, indices=indices)
                if self.row_length is None:
                    self._add_siblings(builder, items, values, indices, 0)
                parameters["strategy"] = "one workgroup a row"
            else:
                for row in range(rows):
                    strategy = self._add_row(
                        builder,
                        items if rows == 1 else items.window(row * length, length, self._part),
                        *(each if rows == 1 else self._part(each, row * self.k, self.k) for each in (values, indices)),
                    )
                    parameters["strategy"] = strategy
                if "delegates" in parameters["strategy"]:
                    shape = self._shapes.at(length)
                    parameters |= {"workgroup_size": shape.workgroup_size, "vecs": shape.vecs}
        item_bytes = items.nbytes // max(n, 1)
        written = rows * self.k * (self.datatype.itemsize_bytes + 4)
        work = Work(n, items.nbytes, written, counted=builder.counted_work(n, item_bytes, 0))
        return builder.build(work, parameters)

    def _part(self, operand: Operand, first: int, length: int) -> Operand:
        return part_of(operand, first, length, self.capabilities)

    def _add_row(self, builder: PlanBuilder, items: Operand, values: Operand, indices: Operand) -> str:
        """Add the kernels for one row; return what they do."""
        if self.k <= _SELECT_ROOM:
            self._add_selections(builder, items, values, indices)
            return "delegates"
        shape = self._shapes.at(items.length)
        sizes = [1 << log2 for log2 in range(_log2(self._least_group), shape.tile_items.bit_length())]
        group = min(sizes, key=lambda size: items.length // size + self.k * size)
        if 4 * (items.length // group + self.k * group) > 3 * items.length:  # a sort of so many is not much shorter
            self._add_full_sort(builder, items, values, indices)
            return "sort"
        self._add_sorted_delegates(builder, items, values, indices, group)
        return "sorted delegates"

    # ---- up to _SELECT_ROOM: single workgroups choose

    def _add_selections(self, builder: PlanBuilder, items: Operand, values: Operand, indices: Operand) -> None:
        listed: _Listed | None = None
        together = self._chooses_together(items)
        count, level = items.length, 0
        minima: Operand | None = None
        # There are more groups than k, and they become smaller from level to level.
        while self._needs_groups(count, listed):
            group = self._group_items(count, listed)
            if minima is None:
                minima = self._add_minima(builder, items, listed, group, f"_{level}")
            places = None if listed is None else replace(listed, group=listed.group // group)
            count, level = self.k * group, level + 1
            if together and not self._needs_groups(count, _Listed(minima, group, self.k)):
                self._select(
                    builder, minima, minima.length, 1, listed=places, items=items, group=group, values=values,
                    indices=indices,
                )  # fmt: skip
                break
            chosen = self._chosen(builder, f"groups_{level - 1}")
            if together and listed is None:  # many workgroups make this choice, rather than one in another dispatch
                listed = _Listed(chosen, group, self.k)
                minima = self._add_refined(
                    builder, minima, items, listed, self._group_items(count, listed), f"_{level}"
                )  # fmt: skip
                continue
            self._select(builder, minima, minima.length, 1, listed=places, chosen=chosen)
            listed, minima = _Listed(chosen, group, self.k), None
        else:
            self._select(builder, items, count, 1, listed=listed, values=values, indices=indices)
        self._add_siblings(builder, items, values, indices, level)

    def _needs_groups(self, count: int, listed: _Listed | None) -> bool:
        """Whether there are too many items for one workgroup: all, or those of listed groups, which can be smaller."""
        least = self._least_group
        most = self._select_items if listed is None else self._last_items
        return count > max(most, 2 * self.k * least) and (listed is None or listed.group > least)

    def _chooses_together(self, items: Operand) -> bool:
        """Whether one kernel makes the last choice of groups and that of the items: few groups, and enough bindings."""
        if self.k > _MOST_GROUPS or self.capabilities.is_cpu:
            return False
        needed = 4 + bindings_for([items], self.capabilities)
        return needed <= self.capabilities.limits["max-storage-buffers-per-shader-stage"]

    def _chosen(self, builder: PlanBuilder, name: str) -> Operand:
        """Return memory for k chosen groups, and for the largest of their codes."""
        return builder.scratch(name, self.k + self._code_bytes // 4)

    def _add_siblings(
        self, builder: PlanBuilder, items: Operand, values: Operand, indices: Operand, levels: int
    ) -> None:
        """Add the kernels that inputs of other lengths need."""
        chosen = self._chosen(builder, "sibling_chosen")
        listed = _Listed(self._chosen(builder, "sibling_list"), 2 * self._least_group, self.k)
        minima = builder.scratch("sibling_minima", 1, self._code_bytes)
        # The last two steps may be one kernel, of groups of the input or of listed ones.
        together = self._chooses_together(items)
        if levels < 1:
            self._add_minima(builder, items, None, self._least_group, "_sibling", sibling=True)
        if levels < 2 and together:
            self._add_refined(builder, minima, items, listed, self._least_group, "_sibling", sibling=True)
        elif levels < 2:
            self._add_minima(builder, items, listed, self._least_group, "_sibling", sibling=True)
            self._select(builder, minima, 1, 1, listed=listed, chosen=chosen, sibling=True)
        if levels < 1 and not together:
            self._select(builder, minima, 1, 1, chosen=chosen, sibling=True)
        if levels > 0 or not together:
            other = listed if levels < 1 else None
            self._select(builder, items, 1, 1, listed=other, values=values, indices=indices, sibling=True)
        for at in (1, 2) if together else ():
            if levels != at:
                self._select(
                    builder, minima, 1, 1, listed=None if at == 1 else listed, items=items, group=self._least_group,
                    values=values, indices=indices, sibling=True,
                )  # fmt: skip

    @property
    def _least_group(self) -> int:
        """The items that a lane reads of a group: those of the smallest groups."""
        return 4 * self._shapes.rows[-1][1].vecs

    @property
    def _last_items(self) -> int:
        """Most items of chosen groups that one workgroup looks through. A CPU adapter runs one on one thread."""
        return 2 * self._select_items if self.capabilities.is_cpu else self._select_last_items

    def _group_items(self, count: int, listed: _Listed | None) -> int:
        """Return the items of a group, a power of two, so that one workgroup can choose among the groups."""
        most = _GROUP_TILES * self._shapes.at(count).tile_items
        if listed is not None:
            most = min(most, listed.group // 2)
        group = self._least_group
        while group < most and count > group * self._select_items:
            group *= 2
        # Twice as many codes are worth it where the groups then need no further choice: another dispatch takes longer.
        items, is_first = self.k * group, listed is None and not self.capabilities.is_cpu
        if is_first and items // 2 <= self._last_items < items:
            group = max(group // 2, self._least_group)
        return group

    def _add_minima(
        self,
        builder: PlanBuilder,
        items: Operand,
        listed: _Listed | None,
        group: int,
        suffix: str,
        *,
        sibling: bool = False,
    ) -> Operand:
        """Add the kernels that find the best code of each group of the input, or of the listed groups."""
        shape = self._shapes.at(items.length)
        count = items.length if listed is None else listed.items
        minima = builder.scratch(f"minima{suffix}", -(-count // group), self._code_bytes)
        # A tile has several groups, or a group several tiles: then its lanes read it in so many steps.
        lanes = min(group // self._least_group, shape.workgroup_size)
        steps = group // (lanes * self._least_group)
        tile_groups = shape.workgroup_size // lanes
        are_many = steps == 1 and minima.length >= _TILES_A_BLOCK * tile_groups * _WORKGROUPS_AT_ONCE
        tiles = _TILES_A_BLOCK if are_many else 1
        block_groups = tiles * tile_groups
        layout = Layout({"input": items})
        unit = max(shape.tile_items, group)
        windows = windows_of(layout, ["input"], self.capabilities, unit) if listed is None else [None]
        for window in windows[:1] if sibling else windows:
            groups = minima.length if window is None else -(-window.length // group)
            blocks = -(-groups // block_groups)
            first = 0 if window is None else window.first
            label = f"delegates{suffix}"
            builder.kernel(
                label if window is None else window.label(label),
                KernelFile(
                    "top_k_minima.wgsl",
                    context={
                        **self._key_context(),
                        "listed": listed is not None,
                        "tiles": _TILES_A_BLOCK,
                        "rows": self._least_group // 4,
                        "vec4": items.item_bytes == 4,
                        "workgroup_size": shape.workgroup_size,
                    },
                    constants={"WORKGROUP_SIZE": shape.workgroup_size},
                ),
                Memory(
                    reads={
                        "input": items if window is None else window.operands["input"],
                        **({} if listed is None else {"list": listed.list.by_words()}),
                    },
                    writes={"minima": replace(minima.by_words(), offset=first // group, length=groups)},
                ),
                params={
                    "n": items.length if window is None else window.length,
                    "blocks": blocks,
                    "groups": groups,
                    "lanes_log2": _log2(lanes),
                    "steps": steps,
                    "tiles": tiles,
                    **({} if listed is None else {"group_log2": _log2(listed.group)}),
                },
                extent="blocks",
                sibling=sibling,
                counted_from=first,
            )
        return minima

    def _add_refined(
        self,
        builder: PlanBuilder,
        minima: Operand,
        items: Operand,
        chosen: _Listed,
        smaller: int,
        suffix: str,
        *,
        sibling: bool = False,
    ) -> Operand:
        """Add the kernel that chooses groups by their minima, and finds the minima of smaller groups of these."""
        found = builder.scratch(f"minima{suffix}", -(-chosen.items // smaller), self._code_bytes)
        self._select(
            builder, minima, minima.length, 1, items=items, group=chosen.group, chosen=chosen.list, smaller=smaller,
            minima=found, sibling=sibling,
        )  # fmt: skip
        return found

    def _select(
        self,
        builder: PlanBuilder,
        source: Operand,
        length: int,
        rows: int,
        *,
        listed: _Listed | None = None,
        chosen: Operand | None = None,
        items: Operand | None = None,
        group: int = 0,
        smaller: int = 0,
        minima: Operand | None = None,
        values: Operand | None = None,
        indices: Operand | None = None,
        offsets: Operand | None = None,
        starts: Operand | None = None,
        sibling: bool = False,
    ) -> None:
        """Add the kernel that chooses k of each row.

        Of codes it chooses groups, into `chosen`, or the results from `items` in groups of `group`; of items it chooses
        the results. With `minima` it chooses groups, and finds the minima of groups of `smaller` items inside these.
        With `offsets` rows are segments of any lengths, and `length` says nothing. With `starts` it chooses as many of
        each as there is room for between its start and the next one.
        """
        slots = max(_SELECT_INVOCATIONS, 1 << (2 * self.k - 1).bit_length())
        lanes = _SELECT_INVOCATIONS
        if self.row_length is None and offsets is None and not self.capabilities.is_cpu:
            most, words = self.capabilities.limits["max-compute-invocations-per-workgroup"], self._code_bytes // 4
            lanes = min(_SELECT_INVOCATIONS_ALONE[words], 1 << most.bit_length() - 1)
        of_codes = chosen is not None or items is not None
        if not of_codes:
            items = source
        result = "minima" if minima is not None else "places" if items is None else "items"
        outputs = {"chosen": chosen, "minima": minima, "values": values, "indices": indices}
        # What an invocation reads of a smaller group in a step: half as much as of a group, so that more of them read.
        vecs = max(self._least_group // 8, 1)
        parts = lanes_of_part = 0
        if minima is not None:
            parts, lanes_of_part = minima.length, min(smaller // (4 * vecs), lanes)
            while lanes_of_part > 1 and parts * lanes_of_part > _MOST_CHOICES * lanes:
                lanes_of_part //= 2
            rows = -(-parts * lanes_of_part // lanes)
        builder.kernel(
            {"items": "select", "places": "groups", "minima": "groups and delegates"}[result],
            KernelFile(
                "top_k_select.wgsl",
                context={
                    **self._key_context(),
                    "listed": listed is not None,
                    "segmented": offsets is not None,
                    "ragged": starts is not None,
                    "sorted": self.sorted,
                    "source": "codes" if of_codes else "items",
                    "result": result,
                    **({} if minima is None else {"rows": vecs, "vec4": items is not None and items.item_bytes == 4}),
                    "workgroup_size": lanes,
                    "room": _SELECT_ROOM,
                    "most_groups": _MOST_GROUPS,
                    "few": of_codes and items is not None,
                },
            ),
            Memory(
                reads={
                    **({"codes": source.by_words()} if of_codes else {}),
                    **({} if items is None else {"input": items.by_words() if minima is None else items}),
                    **({} if listed is None else {"list": listed.list.by_words()}),
                    **({} if offsets is None else {"offsets": offsets.by_words()}),
                    **({} if starts is None else {"starts": starts.by_words()}),
                },
                writes={name: each.by_words() for name, each in outputs.items() if each is not None},
            ),
            params={
                "n": (source if items is None else items).length,
                "blocks": rows,
                **({} if offsets is not None else {"length": length}),
                **({"items": self.k * group} if of_codes and chosen is None else {}),
                **({"items_log2": _log2(group)} if of_codes and items is not None else {}),
                **(
                    {}
                    if minima is None
                    else {
                        "parts": parts,
                        "lanes_log2": _log2(lanes_of_part),
                        "steps": smaller // (4 * vecs * lanes_of_part),
                    }
                ),
                **({"k": self.k, "slots": slots if slots <= _SELECT_ROOM else 0} if starts is None else {}),
                **({"room": values.length} if starts is not None and values is not None else {}),
                **({} if listed is None else {"group_log2": _log2(listed.group)}),
            },
            extent="blocks",
            sibling=sibling,
            counted_from=0 if result != "places" else None,
        )

    # ---- more than _SELECT_ROOM: sorts

    def _add_full_sort(self, builder: PlanBuilder, items: Operand, values: Operand, indices: Operand) -> None:
        order = builder.scratch("order", items.length)
        builder.include("sort", self._sort_items, {"input": items, "output": order}, counted=True)
        self._gather(builder, items, order, None, values, indices)

    def _add_sorted_delegates(
        self, builder: PlanBuilder, items: Operand, values: Operand, indices: Operand, group: int
    ) -> None:
        minima = self._add_minima(builder, items, None, group, "")
        order = builder.scratch("order", minima.length)
        builder.include("sort minima", self._sort_codes, {"input": minima, "output": order}, counted=False)
        listed = _Listed(self._in_order(builder, order, "groups"), group, self.k)
        codes = builder.scratch("codes", listed.items, self._code_bytes)
        shape = self._shapes.at(items.length)
        builder.kernel(
            "codes",
            KernelFile(
                "top_k_codes.wgsl",
                context={**self._key_context(), "listed": True},
                constants={"WORKGROUP_SIZE": shape.workgroup_size},
            ),
            Memory(
                reads={"input": items.by_words(), "list": listed.list.by_words()}, writes={"codes": codes.by_words()}
            ),
            params={"n": items.length, "length": listed.items, "group_log2": _log2(group)},
            extent=Invocations("length"),
            counted_from=0,
        )
        order = builder.scratch("order_of_codes", listed.items)
        builder.include("sort codes", self._sort_codes, {"input": codes, "output": order}, counted=False)
        self._gather(builder, items, order, listed, values, indices)

    def _in_order(self, builder: PlanBuilder, order: Operand, name: str, *, counted: bool = False) -> Operand:
        """Return the first k places of an order, ascending; `counted` if it has as many as the GPU counts items."""
        first, found = replace(order, length=self.k), builder.scratch(name, self.k)
        builder.include(f"sort {name}", self._sort_places, {"input": first, "output": found}, counted=counted)
        return found

    def _gather(
        self,
        builder: PlanBuilder,
        items: Operand,
        order: Operand,
        listed: _Listed | None,
        values: Operand,
        indices: Operand,
    ) -> None:
        if not self.sorted:
            order = self._in_order(builder, order, "places", counted=listed is None)
        shape = self._shapes.at(items.length)
        builder.kernel(
            "gather",
            KernelFile(
                "top_k_gather.wgsl",
                context={**self._key_context(), "listed": listed is not None},
                constants={"WORKGROUP_SIZE": shape.workgroup_size},
            ),
            Memory(
                reads={
                    "input": items.by_words(),
                    "order": order.by_words(),
                    **({} if listed is None else {"list": listed.list.by_words()}),
                },
                writes={"values": values.by_words(), "indices": indices.by_words()},
            ),
            params={"n": items.length, "k": self.k, **({} if listed is None else {"group_log2": _log2(listed.group)})},
            extent=Invocations("k"),
            counted_from=0,
        )

    def _key_context(self) -> dict[str, Any]:
        """Return what the codes of items depend on."""
        return key_context(self.datatype, descending=self._descending)

    def _reference(self, input: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return numpy's results for the same input."""
        rows = input.reshape(
            1 if self.row_length is None else -1, input.size if self.row_length is None else self.row_length
        )
        order = np.argsort(key_codes(rows, self._descending), axis=1, kind="stable")[:, : self.k]
        if not self.sorted:
            order.sort(axis=1)
        return np.take_along_axis(rows, order, axis=1).ravel(), order.ravel().astype(np.uint32)


class SegmentedTopK(SegmentedTopKCalls, TopK):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Find the k largest or smallest items of each segment, and their indices.

    Segments are those of `SegmentedReduce`.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, or expression, default "u32"
        Datatype of the items: bool, or integers and floats of 8 to 64 bits.
    k : int or None, default 1
        Up to 1,024 of each segment. None: the call gives ``ks``.
    mode : {"largest", "smallest"}, default "largest"
    sorted : bool, default True
        Whether the best item comes first. Otherwise they are in the order of their indices.
    size : int, optional
        Of ``k=None``: how many results there is room for, in all.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input``, shape (n,), and ``offsets`` of u32, shape (segments + 1,); gives ``values`` and
        ``indices`` (u32), shape (segments · k,), segment by segment. Indices count from the beginning of the segment.
        With ``k=None`` takes ``ks`` of u32, shape (segments,), too, and gives ``starts`` (u32), shape (segments + 1,):
        where the results of each begin.

    Notes
    -----
    Which items are chosen, and their order, is as for `TopK`. Where a segment has fewer than k items, its other
    ``indices`` are 2³² − 1 and its other ``values`` 0. With a number for each segment it has fewer results then;
    numbers above 1,024 count as 1,024, and what lies behind the last result stays as it was.

    Offsets must not fall, which nobody checks on the GPU. Those behind the last item count as the end of the items, and
    a segment whose end lies before its beginning is empty, so nothing outside the arrays is read.

    One dispatch, in which each segment has a workgroup: a few long segments leave most of a GPU idle. Up to 1,024 items
    are sorted in workgroup memory; of more, those up to a bound that at least k items do not exceed.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([3, 9, 2, 9, 5], dtype=np.uint32), device)
    >>> offsets = gw.asarray(np.array([0, 4, 4, 5], dtype=np.uint32), device)
    >>> run = gw.SegmentedTopK(device, "u32", 2).execute(input=x, offsets=offsets)
    >>> run.outputs["values"].to_numpy(), run.outputs["indices"].to_numpy().astype(np.int32)
    (array([9, 9, 0, 0, 5, 0], dtype=uint32), array([ 1,  3, -1, -1,  0, -1], dtype=int32))
    """

    arguments = (
        Argument("input"),
        Argument("offsets", datatype=DATATYPES["u32"], is_apart=True),
        *(each for each in TopK.arguments if each.is_output),
    )

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike | Operators = "u32",
        k: int | None = 1,
        *,
        mode: TopKMode = "largest",
        sorted: bool = True,
        size: int | None = None,
        capabilities: Capabilities | None = None,
    ):
        #: How many results there is room for, where each segment has a number of its own; None for one number.
        self.size: int | None = None if size is None else integer("size", size, 1, MOST_U32)
        if (k is None) != (size is not None):
            raise ArgumentError(
                f"SegmentedTopK: k={k} with size={size}; size= is how many results there is room for where the call "
                f"gives a number for each segment, k=None"
            )
        most = SEGMENT_MOST if k is None else k
        super().__init__(device, dtype, most, mode=mode, sorted=sorted, capabilities=capabilities)
        if self.k > _SELECT_ROOM:
            raise LimitError(
                f"SegmentedTopK: k={self.k}, but one workgroup chooses at most {_SELECT_ROOM} items of a segment; for "
                f"more, sort the segments with SegmentedSort"
            )

    def _arguments(self) -> tuple[Argument, ...]:
        inputs, outputs = self.arguments[:2], self.arguments[2:]
        if self.size is None:
            return (*inputs, *(replace(each, length=self._results_of) for each in outputs))
        u32 = DATATYPES["u32"]
        return (
            *inputs,
            Argument("ks", datatype=u32, is_apart=True),
            *(replace(each, length=self.size) for each in outputs),
            Argument("starts", is_output=True, datatype=u32, length=SameAs("offsets")),
        )

    def _results_of(self, lengths: Mapping[str, int]) -> int:
        return max(lengths["offsets"] - 1, 0) * self.k

    @cached_property
    def _scan(self) -> Scan:
        """Scans the numbers of results."""
        return Scan(self._device, "u32", kind="exclusive", capabilities=self.capabilities)

    @classmethod
    def at_size(cls, n: int, k: int = 100, segment: int = 1024, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the options and lengths for a benchmark: segments of one length, of which the last may be shorter."""
        return {"k": min(k, segment)}, {"input": n, "offsets": -(-n // segment) + 1}

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: one dispatch; where each segment has a number of its own, those of a scan before it."""
        builder = PlanBuilder("segmented_top_k", layout, self.capabilities)
        layout = self._reads(layout)
        items, offsets = with_buffer(builder, layout["input"]), layout["offsets"]
        segments = segments_of(self.name, layout)
        results = segments * self.k
        starts: Operand | None = None
        if self.size is not None:
            results = self.size
            starts = self._add_starts(builder, layout, items, segments)
        if self.k and segments:
            self._select(
                builder, items, 0, segments, values=layout["values"], indices=layout["indices"], offsets=offsets,
                starts=starts,
            )  # fmt: skip
        item_bytes = items.nbytes // max(items.length, 1)
        written = results * (self.datatype.itemsize_bytes + 4)
        counted = builder.counted_work(items.length, item_bytes, 0)
        work = Work(items.length, items.nbytes + offsets.nbytes, written, counted=counted)
        return builder.build(work, {"k": self.k, "segments": segments})

    def _add_starts(self, builder: PlanBuilder, layout: Layout, items: Operand, segments: int) -> Operand:
        """Add the kernels that find where the results of each segment begin; return where that is."""
        offsets, ks, starts = layout["offsets"], layout["ks"], layout["starts"]
        if ks.length != segments:
            raise LengthError(
                f"{self.name}: ks has {ks.length} items, but there are {segments} segments; give one for each"
            )
        if not segments:
            builder.step(Fill(starts.buffer, starts.first_byte, starts.nbytes))
            return starts
        counts = builder.scratch("counts", segments + 1)
        workgroup_size = 256
        builder.kernel(
            "counts",
            KernelFile("top_k_counts.wgsl", constants={"WORKGROUP_SIZE": workgroup_size}),
            Memory(reads={"ks": ks.by_words(), "offsets": offsets.by_words()}, writes={"counts": counts.by_words()}),
            params={"n": items.length, "counts": segments + 1, "most": SEGMENT_MOST},
            extent=Invocations("counts"),
            counted_from=0,
        )
        builder.include("starts", self._scan, {"input": counts, "output": starts}, counted=False)
        return starts

    def _reference(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, input: np.ndarray, offsets: np.ndarray, ks: np.ndarray | None = None
    ) -> tuple[np.ndarray, ...]:
        """Return numpy's results for the same input."""
        segments = offsets.size - 1
        if ks is not None:
            return self._ragged(input, offsets, ks)
        values = np.zeros((segments, self.k), input.dtype)
        indices = np.full((segments, self.k), 0xFFFFFFFF, np.uint32)
        codes = key_codes(input, self._descending)
        for s, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
            order = np.argsort(codes[begin:end], kind="stable")[: self.k]
            if not self.sorted:
                order.sort()
            values[s, : order.size], indices[s, : order.size] = input[begin:end][order], order
        return values.ravel(), indices.ravel()

    def _ragged(self, input: np.ndarray, offsets: np.ndarray, ks: np.ndarray) -> tuple[np.ndarray, ...]:
        codes, found, starts = key_codes(input, self._descending), [np.zeros(0, np.intp)], [0]
        values = [input[:0]]
        for begin, end, k in zip(offsets[:-1].tolist(), offsets[1:].tolist(), ks.tolist(), strict=True):
            order = np.argsort(codes[begin:end], kind="stable")[: min(k, SEGMENT_MOST)]
            found.append(order if self.sorted else np.sort(order))
            values.append(input[begin:end][found[-1]])
            starts.append(starts[-1] + order.size)
        return np.concatenate(values), np.concatenate(found).astype(np.uint32), np.array(starts, np.uint32)
