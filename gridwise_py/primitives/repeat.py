"""Repeat: values repeated by counts, or over segments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, LengthError, LimitError
from ..planning.builder import PlanBuilder
from ..planning.kernel_request import KernelFile, Memory
from ..planning.layout import Layout, Operand
from ..planning.plan import CountedWork, Fill, Plan, Work
from ..planning.signature import Argument, SameAs, UpTo
from ..planning.windows import binding_limit
from ..tuning.options import ElementwiseTuning
from ..tuning.rows import Shape
from ..tuning.shapes import shapes_for
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, ITEM_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from ..types.expression import Operators
from ..types.options import MOST_U32, integer, one_of
from .base import Primitive
from .calls import RepeatCalls
from .engines.segments import search_steps
from .registry import register
from .scan import Scan

_U32 = DATATYPES["u32"]


@register("repeat")
class Repeat(RepeatCalls, Primitive):
    """Repeat each value as often as a count says, as ``np.repeat`` does.

    The result carries its count.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str, numpy dtype, Expression or None, default "u32"
        Of the values, of 4 or 8 bytes; None for their numbers.
    size : int
        The items that the output has room for. What does not fit is not written, but counted.
    by : {"counts", "offsets"}
        What the call gives. Offsets begin with 0 and do not fall.
    tuning : ElementwiseTuning, optional
        Options that affect only the speed. By default the library's.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``values``, shape (m,), ``counts``, shape (m,), or ``offsets``, shape (m + 1,), of u32, ``output``,
        shape (size,), and ``count``, shape (1,).
    repeat : the function.

    Notes
    -----
    Counts are scanned first; then each workgroup finds the values of its part of the output by a search, and no
    workgroup waits for another.

    The sum of all counts must be below 2³²; offsets begin with 0 and do not fall. Nobody checks this on the GPU. Of
    others the results are undefined, but nothing outside the arrays is read or written.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> values = gw.asarray(np.array([7, 8, 9], dtype=np.uint32), device)
    >>> counts = gw.asarray(np.array([2, 0, 3], dtype=np.uint32), device)
    >>> gw.Repeat(device, "u32", size=10).execute(values=values, counts=counts).output.to_numpy()
    array([7, 7, 9, 9, 9], dtype=uint32)
    """

    takes_count = True
    datatypes: ClassVar[Mapping[str, Datatype]] = {
        name: each for name, each in ITEM_DATATYPES.items() if each.itemsize_bytes in (4, 8)
    }
    arguments = (
        Argument("values", datatype="datatype"),
        Argument("counts", datatype=_U32, length=SameAs("values", "every value needs one count")),
        Argument("output", is_output=True, length=UpTo("counts", "count")),
        Argument("count", is_output=True, datatype=_U32, length=1),
    )

    @explained(ElementwiseTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike | Operators | None = "u32",
        *,
        size: int,
        by: Literal["counts", "offsets"] = "counts",
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, capabilities=capabilities)
        self.by = one_of("by", by, ("counts", "offsets"))
        self.size: int = integer("size", size, 1, MOST_U32)
        self.tuning: ElementwiseTuning = ElementwiseTuning.of(tuning)
        self._shapes = shapes_for("elementwise", self.capabilities, tuning=self.tuning)
        self._has_values = dtype is not None
        taken = self._take(dtype, "values") if self._has_values else "u32"
        self.datatype: Datatype = as_datatype(taken, self.datatypes)

    def _arguments(self) -> tuple[Argument, ...]:
        inputs = [Argument("values", datatype="datatype")] if self._has_values else []
        if self.by == "offsets":
            inputs.append(Argument("offsets", datatype=_U32, is_apart=True))
        else:
            length = SameAs("values", "every value needs one count") if self._has_values else None
            inputs.append(Argument("counts", datatype=_U32, length=length))
        return (
            *inputs,
            Argument("output", is_output=True, length=UpTo(self.by, "count", room=self.size)),
            Argument("count", is_output=True, datatype=_U32, length=1),
        )

    @cached_property
    def _scan(self) -> Scan:
        """Scans the counts."""
        return Scan(self._device, "u32", capabilities=self.capabilities)

    @classmethod
    def at_size(cls, n: int, run: int = 8, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the options for an output of n items, and the lengths for counts whose mean is `run`."""
        values = -(-n // run)
        return {"size": max(n, 1)}, {"values": values, "counts": values}

    def plan(self, layout: Layout) -> Plan:
        """Return the plan: a scan of the counts, and one dispatch."""
        builder = PlanBuilder("repeat", layout, self.capabilities)
        layout = self._reads(layout)
        segments = self._segments(layout)
        parameters: dict[str, Any] = {"by": self.by, "segments": segments}
        if segments:
            parameters |= self._plan_items(builder, layout, segments)
        else:
            count = layout["count"]
            builder.step(Fill(count.buffer, count.first_byte, 4))
        read = layout[self.by].nbytes + (layout["values"].nbytes if self._has_values else 0)
        item_bytes = self.datatype.itemsize_bytes
        counted = (
            *builder.counted_work(segments, read // max(segments, 1), 0),
            CountedWork("count", self.size, 0, item_bytes),
        )
        return builder.build(Work(segments, read, self.size * item_bytes + 4, counted=counted), parameters)

    def _segments(self, layout: Layout) -> int:
        given = layout[self.by].length
        segments = given if self.by == "counts" else given - 1
        if segments < 0:
            raise LengthError(f"{self.name}: offsets has no items; it has one more than values")
        values = layout["values"].length if self._has_values else segments
        if values != segments:
            raise LengthError(
                f"{self.name}: values has {values} items, but there are {segments} {self.by}"
                f"{' without the last one' if self.by == 'offsets' else ''}; give one for each value"
            )
        return segments

    def _plan_items(self, builder: PlanBuilder, layout: Layout, segments: int) -> dict[str, Any]:
        shape = self._shape()
        parameters: dict[str, Any] = {}
        if self.by == "counts":
            ends = builder.scratch("ends", segments)
            parameters = builder.include("ends", self._scan, {"input": layout["counts"], "output": ends}, counted=True)
            reads: dict[str, Operand] = {"ends": ends}
        else:
            reads = {"offsets": layout["offsets"]}
        if self._has_values:
            reads["values"] = layout["values"]
        tiles = -(-self.size // shape.tile_items)
        builder.kernel(
            "expand",
            KernelFile(
                "expand.wgsl",
                context={
                    "vecs": shape.vecs,
                    "by": self.by,
                    "values": self._has_values,
                    "parts": 1,
                    "search_lanes": shape.workgroup_size // 2,
                    "item_bytes": self.datatype.itemsize_bytes,
                },
                constants={"WORKGROUP_SIZE": shape.workgroup_size},
            ),
            Memory(reads=reads, writes={"output": self._output(layout["output"]), "count": layout["count"]}),
            params={
                "n": segments,
                "first": 0,
                "capacity": segments,
                "tiles": tiles,
                "size": self.size,
                "search_steps": search_steps(segments, shape.workgroup_size // 2),
            },
            extent="tiles",
            counted_from=0,
        )
        return {**parameters, "workgroup_size": shape.workgroup_size, "vecs": shape.vecs}

    def _shape(self) -> Shape:
        shape = self._shapes.at(self.size)
        if shape.workgroup_size < 2:
            raise ArgumentError("workgroup_size=1, but a search has two sides; use 2 or more")
        return shape

    def _output(self, output: Operand) -> Operand:
        limit = binding_limit(self.capabilities)
        if output.nbytes > limit:
            raise LimitError(
                f"{self.name}: size={self.size} items are {output.nbytes} bytes, but one binding reaches {limit} "
                f"(max-storage-buffer-binding-size); repeat parts of the values"
            )
        return output

    def _reference(self, **arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return numpy's result for the same input, and its length; it knows of no `size`."""
        counts = arrays["counts"] if self.by == "counts" else np.diff(arrays["offsets"].astype(np.int64))
        values = arrays["values"] if self._has_values else np.arange(counts.size, dtype=np.uint32)
        repeated = np.repeat(values, counts)
        return repeated, np.array([repeated.size], dtype=np.uint32)
