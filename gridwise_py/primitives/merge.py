"""Merge: two sorted arrays become one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import CountedWork, Fill, Plan, Work
from ..planning.signature import Argument, UpTo
from ..tuning.options import ElementwiseTuning
from ..tuning.rows import Shape
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import (
    DATATYPES,
    ITEM_DATATYPES,
    VALUE_DATATYPES,
    Datatype,
    KeyDatatypeLike,
    Struct,
    ValueDatatypeLike,
    as_datatype,
)
from .base import Primitive
from .calls import MergeCalls
from .engines.merge_order import (
    PARTITION_TILES,
    Less,
    MergeOrder,
    first_step,
    merged_order,
    most_keys,
    network_rows,
    step_in_tile,
    value_arguments,
)
from .registry import register

_COUNTS = ("a_count", "b_count")


@register("merge")
class Merge(MergeCalls, Primitive):
    """Merge two sorted arrays; of equal keys those of the first come first.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Of the keys; with `less` u32, i32, f32 or a `Struct`.
    value_dtype : Datatype, str or numpy dtype, optional
        Datatype of values, of 4 or 8 bytes, that move with the keys. By default there are none.
    descending : bool, default False
        Whether the inputs descend.
    less : callable, optional
        The order: a function of two items that says whether the first goes before the second, such as
        ``lambda a, b: a.depth < b.depth``. It is called once, with expressions. By default numpy's order.
    counted : bool, default False
        Whether only the GPU knows the lengths: `execute` then also takes ``a_count`` and ``b_count``, of one u32.
    tuning : ElementwiseTuning, optional
        Shape of the kernel, with 4 × ``vecs`` − 1 keys of 4 bytes per invocation; affects only the speed. By default
        the library's, or the one from ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``a`` and ``b``, sorted, shapes (k,) and (m,), and ``output``, shape (k + m,); with values also
        ``a_values``, ``b_values`` and ``output_values``.
    MergeSort, Sort

    Notes
    -----
    The order is that of `Sort`: −0 equals +0, and every NaN comes last. The inputs must be in this order, which is not
    checked. With `less` each key of others still comes out exactly once, in some order, and so it does if `less` is no
    order (see `MergeSort`). Without it the output of others may miss some keys and have others twice.

    The first of two dispatches finds, by binary searches, which parts of both inputs make each tile of the output; the
    second one merges these parts, and reads and writes each item once. No workgroup waits for another. There may be up
    to 2³² − 2¹⁶ keys in all.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> a, b = (gw.asarray(np.array(x, dtype=np.uint32), device) for x in ([1, 4, 4], [2, 4, 9]))
    >>> gw.Merge(device, "u32").execute(a=a, b=b).output.to_numpy()
    array([1, 2, 4, 4, 4, 9], dtype=uint32)
    """

    datatypes: ClassVar[Mapping[str, Datatype]] = ITEM_DATATYPES
    #: Whether integer keys without values are merged in registers, where a device has subgroups.
    #: docs/contribute/performance.md compares the two.
    _in_registers: ClassVar[bool] = True
    arguments = (
        Argument("a", chunked=True, ascending=True),
        Argument("b", chunked=True, ascending=True),
        Argument("output", is_output=True, length=lambda lengths: lengths["a"] + lengths["b"], chunked=True),
    )

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike | Struct = "u32",
        value_dtype: ValueDatatypeLike | None = None,
        *,
        descending: bool = False,
        less: Less | None = None,
        counted: bool = False,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self._order = MergeOrder(self.name, dtype, descending, less)
        self.datatype: Datatype = self._order.datatype
        self.descending: bool = self._order.descending
        self.counted: bool = bool(counted)
        self.value_datatype: Datatype | None = (
            None if value_dtype is None else as_datatype(value_dtype, VALUE_DATATYPES)
        )
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        mode = self.capabilities.subgroup_mode(None)
        integers = self._order.less is None and self.datatype.dtype.kind in "ui" and self._order.key_words == 1
        #: Whether the kernel is that of merge_network.wgsl, in which equal keys must be the same.
        self._by_network: bool = (
            self._in_registers and integers and self.value_datatype is None and mode.kind == "native"
        )
        self._shapes = (
            shapes_for("merge_network", self.capabilities, mode, self.tuning)
            if self._by_network
            else shapes_for("merge", self.capabilities, tuning=self.tuning)
        )

    def _arguments(self) -> tuple[Argument, ...]:
        a, b, output = self.arguments
        counts: list[Argument] = []
        ends: list[Argument] = []
        if self.counted:
            a, b = replace(a, chunked=False), replace(b, chunked=False)
            output = replace(output, length=UpTo("a", "count", plus="b"), chunked=False)
            counts = [Argument(name, datatype=DATATYPES["u32"], length=1, fed=True, any_shape=True) for name in _COUNTS]
            ends = [Argument("count", is_output=True, datatype=DATATYPES["u32"], length=1)]
        values = value_arguments(self.value_datatype, {"a": "a_values", "b": "b_values"}, output)
        return (a, b, *values[:-1], *counts, output, *values[-1:], *ends)

    @classmethod
    def at_size(cls, n: int, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return no options, and the lengths of two halves."""
        return {}, {"a": n - n // 2, "b": n // 2}

    def _items(self, shape: Shape) -> int:
        """Return the keys of an invocation."""
        return 4 * shape.vecs if self._by_network else self._order.items(shape, self.capabilities)

    def _tile(self, shape: Shape) -> int:
        return shape.workgroup_size * self._items(shape)

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a dispatch that finds the parts of each tile, and one that merges them."""
        builder = PlanBuilder("merge", layout, self.capabilities)
        elements = self.datatype.elements
        lengths = {name: layout[name].length // elements for name in ("a", "b")}
        n = sum(lengths.values())
        if n > most_keys(self.datatype):
            raise LimitError(
                f"{self.name}: {n} keys, but places are of 32 bits: at most {most_keys(self.datatype)}; merge parts"
            )
        shape = self._shapes.at(n)
        parameters = {
            "workgroup_size": shape.workgroup_size,
            "items": self._items(shape),
            "shape": self._shapes.source_of(shape),
            "tiles": -(-n // self._tile(shape)),
        }
        if n:
            self._add(builder, layout, lengths)
        elif self.counted:
            count = layout["count"]
            builder.step(Fill(count.buffer, count.first_byte, 4))
        item_bytes = sum(d.itemsize_bytes for d in (self.datatype, self.value_datatype) if d is not None)
        counted = (CountedWork("count", n, item_bytes, item_bytes),) if self.counted else ()
        return builder.build(Work(n, n * item_bytes, n * item_bytes, counted=counted), parameters)

    def _add(self, builder: PlanBuilder, layout: Layout, lengths: Mapping[str, int]) -> None:
        n, order = sum(lengths.values()), self._order
        shape = self._shapes.at(n)
        inputs = {name: self._bound(builder, name, layout[name]).by_words() for name in ("a", "b")}
        params = {f"n_{name}": length for name, length in lengths.items()}
        params |= {f"capacity_{name}": length for name, length in lengths.items()}
        fed = {f"n_{name[0]}": layout[name] for name in _COUNTS} if self.counted else {}
        names = () if self.value_datatype is None else ("a_values", "b_values")
        values = {name: self._bound(builder, name, layout[name]).by_words() for name in names}
        writes = {"output": layout["output"].by_words()}
        if values:
            writes["output_values"] = layout["output_values"].by_words()
        context = {**order.context(), "runs": False, "key_operands": ["a", "b"]}
        tiles = -(-n // self._tile(shape))
        splits, blocks = builder.scratch("splits", tiles).by_words(), -(-tiles // PARTITION_TILES)
        builder.kernel(
            "merge partition",
            KernelFile(
                "merge_partition.wgsl",
                context={**context, "key_output": "", "counted_output": self.counted},
                constants={"WORKGROUP_SIZE": order.partition_size},
                shader_checks=order.shader_checks,
            ),
            Memory(reads=inputs, writes={"splits": splits, **({"count": layout["count"]} if self.counted else {})}),
            params={**params, "tile_items": self._tile(shape), "tiles": tiles, "blocks": blocks, "step": self._step(n)},
            extent="blocks",
            fed=fed,
        )
        for each in self._shapes.all_for(n):
            tile = self._tile(each)
            tiles = -(-n // tile)
            builder.kernel(
                "merge",
                KernelFile(
                    "merge_network.wgsl" if self._by_network else "merge.wgsl",
                    context={
                        **context,
                        "key_output": "output",
                        "values": bool(values),
                        "workgroup_size": each.workgroup_size,
                        "guess_step": step_in_tile(tile),
                        **(network_rows(each) if self._by_network else {"items": self._items(each)}),
                    },
                    constants={"WORKGROUP_SIZE": each.workgroup_size},
                    shader_checks=order.shader_checks,
                    features=("subgroup",) if self._by_network else (),
                ),
                Memory(reads={**inputs, **values, "splits": splits}, writes=writes),
                params={**params, "tiles": tiles},
                extent="tiles",
                fed={} if each != shape else fed,
                sibling=each != shape,
            )

    @staticmethod
    def _bound(builder: PlanBuilder, name: str, operand: Operand) -> Operand:
        """Return an input; for an empty one, of which nothing is read, memory that can be bound."""
        if operand.length or builder.has(operand):
            return operand
        return builder.scratch(f"no_{name}", 1, operand.item_bytes)

    @staticmethod
    def _step(n: int) -> int:
        return first_step(n)

    def _reference(self, a: np.ndarray, b: np.ndarray, **others: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        """Return the stable merge by a search of each key among those of the other array."""
        if self.counted:
            a, b = a[: int(others["a_count"].reshape(-1)[0])], b[: int(others["b_count"].reshape(-1)[0])]
        keys = np.concatenate([a, b])
        order = merged_order(self._order, keys, np.array([0, a.size, keys.size]))
        found = [keys[order]]
        if self.value_datatype is not None:
            found.append(np.concatenate([others["a_values"][: a.size], others["b_values"][: b.size]])[order])
        if self.counted:
            found.append(np.array([order.size], dtype=np.uint32))
        return found[0] if len(found) == 1 else tuple(found)
