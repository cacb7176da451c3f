"""MergeSort: a stable sort by any order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..tuning.options import ElementwiseTuning
from ..tuning.rows import Shape
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import (
    ITEM_DATATYPES,
    VALUE_DATATYPES,
    Datatype,
    KeyDatatypeLike,
    Struct,
    ValueDatatypeLike,
    as_datatype,
)
from ..types.expression import Operators
from ..types.expression_functions import StructExpression
from .base import Primitive
from .calls import MergeSortCalls
from .engines.merge_order import (
    PARTITION_TILES,
    Less,
    MergeOrder,
    first_step,
    merged_order,
    most_keys,
    step_in_tile,
    value_arguments,
)
from .registry import register

_MOST_WORD = (1 << 32) - 1


@register("merge_sort")
class MergeSort(MergeSortCalls, Primitive):
    """Sort by any order, which a function of two items gives; stable.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype or expression, default "u32"
        With `less` u32, i32, f32 or a `Struct` of these. Or an expression, or a struct of expressions, whose leaves are
        then arguments.
    value_dtype : Datatype, str or numpy dtype, optional
        Datatype of values, of 4 or 8 bytes, that move with the items. By default there are none.
    descending : bool, default False
        Largest first, without `less`. Equal items keep their order in both directions.
    less : callable, optional
        The order: a function of two items that says whether the first goes before the second, such as
        ``lambda a, b: (a.y < b.y) | ((a.y == b.y) & (a.x < b.x))``. It is called once, with expressions. By default
        numpy's order.
    tuning : ElementwiseTuning, optional
        Shape of the kernels, with 4 × ``vecs`` − 1 items of 4 bytes per invocation; affects only the speed. By default
        the library's, or the one from ``gridwise tune`` for `Merge`.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input`` and ``output``, shape (n,) each; with values also ``values`` and ``output_values``.
    Sort : faster for numbers in numpy's order.

    Notes
    -----
    `less` must be a strict weak ordering, as in C++: of equal items it is False, and among several items it never goes
    round in a circle. Otherwise the order of the output is not defined; each item still comes out exactly once. For
    example ``a < b`` is no such order where floats hold NaN: leave out `less`, which gives numpy's order with NaN last,
    or order them yourself, ``(a < b) | (gw.isnan(b) & ~gw.isnan(a))``.

    Each tile of items is sorted by itself; then log₂ (tiles) merges double the length of sorted runs, each with two
    dispatches that read and write every item once. Temporary memory is a copy of the items and a word per tile.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.asarray(np.array([31, 12, 22, 11], dtype=np.uint32), device)
    >>> gw.MergeSort(device, "u32", less=lambda a, b: a % 10 < b % 10).execute(input=x).output.to_numpy()
    array([31, 11, 12, 22], dtype=uint32)
    """

    datatypes: ClassVar[Mapping[str, Datatype]] = ITEM_DATATYPES
    takes_count = True
    arguments = (
        Argument("input", chunked=True),
        Argument("output", is_output=True, length=SameAs("input"), chunked=True),
    )

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike | Struct | Operators | StructExpression = "u32",
        value_dtype: ValueDatatypeLike | None = None,
        *,
        descending: bool = False,
        less: Less | None = None,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.value_datatype: Datatype | None = None
        if value_dtype is not None:
            self.value_datatype = as_datatype(value_dtype, VALUE_DATATYPES)
        self._order = MergeOrder(self.name, self._take(dtype), descending, less)
        self.datatype: Datatype = self._order.datatype
        self.descending: bool = self._order.descending
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("merge", self.capabilities, tuning=self.tuning)

    def _arguments(self) -> tuple[Argument, ...]:
        items, output = self.arguments
        values = value_arguments(self.value_datatype, {"input": "values"}, output)
        return (items, *values[:-1], output, *values[-1:])

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a dispatch that sorts tiles, and two for each doubling of the sorted runs."""
        builder = PlanBuilder("merge sort", layout, self.capabilities)
        layout = self._reads(layout)
        n = layout["input"].length // self.datatype.elements
        if n > most_keys(self.datatype):
            raise LimitError(
                f"{self.name}: {n} items, but places are of 32 bits: at most {most_keys(self.datatype)}; sort parts"
            )
        shape = self._shapes.at(n)
        tiles = -(-n // self._tile(shape))
        merges = max(0, tiles - 1).bit_length()
        parameters = {
            "workgroup_size": shape.workgroup_size,
            "items": self._order.items(shape, self.capabilities),
            "shape": self._shapes.source_of(shape),
            "tiles": tiles,
            "merges": merges,
        }
        if n:
            self._add(builder, layout, n, merges)
        item_bytes = sum(d.itemsize_bytes for d in (self.datatype, self.value_datatype) if d is not None)
        read_bytes = layout["input"].nbytes + (0 if self.value_datatype is None else layout["values"].nbytes)
        counted = builder.counted_work(n, read_bytes // max(n, 1), item_bytes)
        return builder.build(Work(n, read_bytes, n * item_bytes, counted=counted), parameters)

    def _tile(self, shape: Shape) -> int:
        return shape.workgroup_size * self._order.items(shape, self.capabilities)

    def _add(self, builder: PlanBuilder, layout: Layout, n: int, merges: int) -> None:
        outputs = {"keys": layout["output"]}
        inputs = {"keys": layout["input"]}
        if self.value_datatype is not None:
            outputs["values"], inputs["values"] = layout["output_values"], layout["values"]
        temporary = {
            name: builder.scratch(f"temporary_{name}", operand.length, operand.item_bytes, in_chunks=True)
            for name, operand in outputs.items()
        }
        # The last merge writes the output.
        places = [outputs if (merges - k) % 2 == 0 else temporary for k in range(merges + 1)]
        shape = self._shapes.at(n)
        run = self._tile(shape)
        self._add_tiles(builder, n, shape, inputs, places[0])
        for k in range(merges):
            self._add_merge(builder, n, shape, run, places[k], places[k + 1])
            run *= 2
        # The kernels of other lengths: other shapes, and an odd or an even number of merges.
        for each in self._shapes.all_for(n):
            for number, place in enumerate((outputs, temporary)):
                if each != shape or place is not places[0]:
                    self._add_tiles(builder, n, each, inputs, place, sibling=True)
                if each != shape or merges <= number:
                    other = temporary if place is outputs else outputs
                    self._add_merge(builder, n, each, self._tile(each), other, place, sibling=True)

    def _template(self, shape: Shape, **more: Any) -> dict[str, Any]:
        return {
            **self._order.context(), "key_operands": ["input"], "runs": True, "counted_output": False,
            "workgroup_size": shape.workgroup_size, "items": self._order.items(shape, self.capabilities),
            "guess_step": step_in_tile(self._tile(shape)), **more,
        }  # fmt: skip

    def _add_tiles(
        self, builder: PlanBuilder, n: int, shape: Shape, inputs: Mapping[str, Operand],
        outputs: Mapping[str, Operand], *, sibling: bool = False,
    ) -> None:  # fmt: skip
        tiles = -(-n // self._tile(shape))
        builder.kernel(
            "merge sort (tiles)",
            KernelFile(
                "merge_sort_tile.wgsl",
                context=self._template(shape, key_output="output", values="values" in inputs),
                constants={"WORKGROUP_SIZE": shape.workgroup_size},
                shader_checks=self._order.shader_checks,
            ),
            Memory(reads=_named("input", inputs), writes=_named("output", outputs)),
            params={"n": n, "tiles": tiles},
            extent="tiles",
            sibling=sibling,
            counted_from=0,
        )

    def _add_merge(
        self, builder: PlanBuilder, n: int, shape: Shape, run: int, inputs: Mapping[str, Operand],
        outputs: Mapping[str, Operand], *, sibling: bool = False,
    ) -> None:  # fmt: skip
        tile = self._tile(shape)
        tiles = -(-n // tile)
        splits = builder.scratch("splits", tiles).by_words()
        params = {"n": n, "run_items": run, "pair_items": min(2 * run, _MOST_WORD), "tiles": tiles}
        checks = self._order.shader_checks
        reads = _named("input", inputs)
        blocks = -(-tiles // PARTITION_TILES)
        builder.kernel(
            "merge partition",
            KernelFile(
                "merge_partition.wgsl",
                context=self._template(shape, key_output="", values=False),
                constants={"WORKGROUP_SIZE": self._order.partition_size},
                shader_checks=checks,
            ),
            Memory(reads={"input": reads["input"]}, writes={"splits": splits}),
            params={**params, "tile_items": tile, "blocks": blocks, "step": first_step(2 * run)},
            extent="blocks",
            sibling=sibling,
            counted_from=0,
        )
        builder.kernel(
            "merge",
            KernelFile(
                "merge.wgsl",
                context=self._template(shape, key_output="output", values="values" in inputs),
                constants={"WORKGROUP_SIZE": shape.workgroup_size},
                shader_checks=checks,
            ),
            Memory(reads={**reads, "splits": splits}, writes=_named("output", outputs)),
            params=params,
            extent="tiles",
            sibling=sibling,
            counted_from=0,
        )

    def _reference(self, **arrays: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        """Return the result of a merge sort in numpy."""
        items = arrays["input"]
        order, run = np.arange(items.size), 1
        while run < items.size:
            runs = np.minimum(run * np.arange(2 * -(-items.size // (2 * run)) + 1), items.size)
            order = order[merged_order(self._order, items[order], runs)]
            run *= 2
        return items[order] if self.value_datatype is None else (items[order], arrays["values"][order])


def _named(name: str, operands: Mapping[str, Operand]) -> dict[str, Operand]:
    """Return keys and values by the names that kernels have for them."""
    found = {name: operands["keys"].by_words()}
    if "values" in operands:
        found[f"{name}_values"] = operands["values"].by_words()
    return found
