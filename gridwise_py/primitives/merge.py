"""Merge: two sorted arrays become one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import LimitError
from ..planning.builder import PlanBuilder
from ..planning.layout import Layout, Operand
from ..planning.plan import Plan, Work
from ..planning.signature import Argument, SameAs
from ..tuning.options import ElementwiseTuning
from ..tuning.shapes import Shape, shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import (
    STORAGE_DATATYPES,
    VALUE_DATATYPES,
    Datatype,
    KeyDatatypeLike,
    ValueDatatypeLike,
    as_datatype,
)
from .base import Primitive
from .registry import register
from .sort import key_codes

__all__ = ["Merge"]

# A place in the merged keys, and a tile behind it, must be a number of 32 bits.
_MOST_KEYS = (1 << 32) - (1 << 16)
# Invocations of a workgroup that looks for the tiles' parts: each waits for memory some 20 times in a row.
_PARTITION_SIZE = 64


@register("merge")
class Merge(Primitive):
    """Merge two sorted arrays; of equal keys those of the first come first.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Datatype of the keys: bool, or integers and floats of 8 to 64 bits.
    value_dtype : Datatype, str or numpy dtype, optional
        Datatype of values, of 4 or 8 bytes, that move with the keys. By default there are none.
    descending : bool, default False
        Whether the inputs descend, as `Sort` sorts them with it.
    tuning : ElementwiseTuning, optional
        Shape of the kernel; affects only the speed. By default the library's, or the one from ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.
    """

    datatypes: ClassVar[Mapping[str, Datatype]] = STORAGE_DATATYPES
    # Keys that a subgroup reads at once: a line of the cache. Each part of a tile is read from the beginning of one on.
    _line_keys: ClassVar[int] = 32
    arguments = (
        Argument("a", chunked=True, ascending=True),
        Argument("b", chunked=True, ascending=True),
        Argument("output", is_output=True, length=lambda lengths: lengths["a"] + lengths["b"], chunked=True),
    )

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: KeyDatatypeLike = "u32",
        value_dtype: ValueDatatypeLike | None = None,
        *,
        descending: bool = False,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.datatype: Datatype = as_datatype(dtype, self.datatypes)
        self.value_datatype: Datatype | None = None
        if value_dtype is not None:
            self.value_datatype = as_datatype(value_dtype, VALUE_DATATYPES)
            a, b, output = self.arguments
            kind: dict[str, Any] = {"datatype": "value_datatype", "chunked": True}
            values = (
                Argument(f"{name}_values", length=SameAs(name, "every key needs one value"), **kind) for name in "ab"
            )
            moved = Argument("output_values", is_output=True, length=output.length, **kind)
            self.arguments = (a, b, *values, output, moved)
        self.descending: bool = bool(descending)
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("merge", self.capabilities, tuning=self.tuning)

    @property
    def _key_words(self) -> int:
        return -(-self.datatype.itemsize_bytes // 4)

    def _items(self, shape: Shape) -> int:
        """Return the keys of an invocation: an odd number, of as many words as `vecs` say and workgroup memory holds."""
        most_bytes = self.capabilities.limits["max-compute-workgroup-storage-size"]
        most = (most_bytes // (4 * self._key_words) - 1) // (shape.workgroup_size + 1)
        items = max(1, min(4 * shape.vecs // self._key_words, most))
        return items - 1 + items % 2

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a dispatch that finds the parts of each tile, and one that merges them."""
        builder = PlanBuilder("merge", layout, self.capabilities)
        a, b = layout["a"], layout["b"]
        n = a.length + b.length
        if n > _MOST_KEYS:
            raise LimitError(f"{self.name}: {n} keys, but places are of 32 bits: at most {_MOST_KEYS}; merge parts")
        shape = self._shapes.at(n)
        tile = shape.workgroup_size * self._items(shape)
        parameters = {
            "workgroup_size": shape.workgroup_size,
            "items": self._items(shape),
            "shape": self._shapes.source,
            "tiles": -(-n // tile),
        }
        if n:
            self._add(builder, layout, n)
        item_bytes = sum(d.itemsize_bytes for d in (self.datatype, self.value_datatype) if d is not None)
        return builder.build(Work(n, n * item_bytes, n * item_bytes), parameters)

    def _add(self, builder: PlanBuilder, layout: Layout, n: int) -> None:
        # An empty array has no binding: the other one stands for it.
        empty = {name: other for name, other in (("a", "b"), ("b", "a")) if not layout[name].length}
        inputs = {name: layout[empty.get(name, name)].by_words() for name in ("a", "b")}
        values = {
            f"{name}_values": layout[f"{empty.get(name, name)}_values"].by_words()
            for name in ("a", "b")
            if self.value_datatype is not None
        }
        lengths = {"n_a": layout["a"].length, "n_b": layout["b"].length}
        lengths |= {"capacity_a": lengths["n_a"], "capacity_b": lengths["n_b"]}
        shape = self._shapes.at(n)
        splits = builder.scratch("splits", -(-n // (shape.workgroup_size * self._items(shape))) + 1).by_words()
        outputs = {"output": layout["output"]}
        if values:
            outputs["output_values"] = layout["output_values"].by_words()
        quads = self._stores_quads(layout["output"])
        if not quads:
            outputs["output"] = layout["output"].by_words()
        context = {
            "key_words": self._key_words,
            "key_bytes": self.datatype.itemsize_bytes,
            "key_kind": self.datatype.dtype.kind,
            "descending": self.descending,
        }
        blocks = -(-splits.length // _PARTITION_SIZE)
        builder.kernel(
            "merge partition", "merge_partition.wgsl",
            reads=inputs, writes={"splits": splits},
            params={
                **lengths, "tile_items": shape.workgroup_size * self._items(shape), "splits": splits.length,
                "blocks": blocks, "step": self._step(n),
            },
            workgroups=blocks, constants={"WORKGROUP_SIZE": _PARTITION_SIZE},
            context={**context, "counted_output": False},
        )  # fmt: skip
        for each in (shape, *self._shapes.others(n)):
            items = self._items(each)
            tile = each.workgroup_size * items
            tiles = -(-n // tile)
            builder.kernel(
                "merge", "merge.wgsl",
                reads={**inputs, **values, "splits": splits}, writes=outputs,
                params={
                    **lengths, "tiles": tiles,
                    **{f"shift_{name}": self._shift(operand) for name, operand in inputs.items()},
                },
                workgroups=tiles, constants={"WORKGROUP_SIZE": each.workgroup_size},
                context={
                    **context, "workgroup_size": each.workgroup_size, "items": items, "quads": quads,
                    "values": bool(values), "line_keys": self._line_keys,
                    # Both parts begin at a line and end anywhere, and that of a ends at a line.
                    "rounds": -(-(tile + 3 * (self._line_keys - 1)) // each.workgroup_size),
                },
                sibling=each != shape,
            )  # fmt: skip

    @staticmethod
    def _step(n: int) -> int:
        """Return how far from the first probe of the partition the second one lies.

        Where the path would be if both inputs were spread alike: of two random halves it is within √n / 4 there, in two of
        three cases.
        """
        return 1 << math.isqrt(n).bit_length()

    def _shift(self, operand: Operand) -> int:
        """Return how far behind the beginning of a line the first key lies; 0 where there are several such places."""
        return 0 if operand.chunks else operand.offset % self._line_keys

    def _stores_quads(self, output: Operand) -> bool:
        """Whether an invocation stores four keys at once."""
        return output.vec4 and not output.chunks and output.item_bytes == 4

    def _order(self, keys: np.ndarray) -> np.ndarray:
        return np.argsort(key_codes(keys, self.descending), kind="stable")

    def reference(
        self,
        a: np.ndarray,
        b: np.ndarray,
        a_values: np.ndarray | None = None,
        b_values: np.ndarray | None = None,
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Return the result of numpy's stable sort of both inputs, one behind the other."""
        keys = np.concatenate([a, b])
        order = self._order(keys)
        if a_values is None or b_values is None:
            return keys[order]
        return keys[order], np.concatenate([a_values, b_values])[order]
