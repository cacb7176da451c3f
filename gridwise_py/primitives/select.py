"""Select: the items that a flag marks, in order."""

from __future__ import annotations

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.signature import Argument, SameAs, UpTo
from ..tuning.options import StreamTuning
from ..types.capabilities import Capabilities
from ..types.datatype import DATATYPES, ITEM_DATATYPES, STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from .registry import register
from .stream import Field, Mark, StreamPrimitive, StreamStrategy

__all__ = ["FlatNonzero", "Select"]


@register("select")
class Select(StreamPrimitive):
    """Copy the items whose flag is not 0, in order, and count them."""

    datatypes = ITEM_DATATYPES
    _label = "select"
    arguments = (
        Argument("input"),
        Argument("flags", datatype="flag_datatype", length=SameAs("input", "every item needs one flag")),
        Argument("output", is_output=True, length=UpTo("input", count="count")),
        Argument("count", is_output=True, datatype=DATATYPES["u32"], length=1),
    )

    @explained(StreamTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: ItemDatatypeLike = "u32",
        *,
        flag_dtype: ItemDatatypeLike = "bool",
        size: int | None = None,
        strategy: StreamStrategy | None = None,
        tuning: StreamTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        self.datatype: Datatype = as_datatype(datatype, self.datatypes)
        self.flag_datatype: Datatype = as_datatype(flag_dtype, STORAGE_DATATYPES)
        super().__init__(device, size=size, strategy=strategy, tuning=tuning, capabilities=capabilities)
        self.marks = (Mark("flags", self.flag_datatype),)
        self.fields = (Field(("output",), "input", self.datatype),)

    def reference(self, input: np.ndarray, flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return numpy's ``input[flags != 0]``, and the count."""
        kept = input[flags != 0]
        return kept, np.array([kept.size], dtype=np.uint32)


class FlatNonzero(StreamPrimitive):
    """The positions (u32) of the items that are not 0, in order."""

    datatypes = STORAGE_DATATYPES
    _label = "flatnonzero"
    arguments = (
        Argument("input"),
        Argument("output", is_output=True, datatype=DATATYPES["u32"], length=UpTo("input", count="count")),
        Argument("count", is_output=True, datatype=DATATYPES["u32"], length=1),
    )

    @explained(StreamTuning.remedies())
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        datatype: ItemDatatypeLike = "u32",
        *,
        size: int | None = None,
        strategy: StreamStrategy | None = None,
        tuning: StreamTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        self.datatype: Datatype = as_datatype(datatype, self.datatypes)
        super().__init__(device, size=size, strategy=strategy, tuning=tuning, capabilities=capabilities)
        self.marks = (Mark("input", self.datatype),)
        self.fields = (Field(("output",), None, DATATYPES["u32"]),)

    def reference(self, input: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return numpy's ``flatnonzero(input)``, and the count."""
        found = np.flatnonzero(input).astype(np.uint32)
        return found, np.array([found.size], dtype=np.uint32)
