"""Take: items of an array, chosen by indices on the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import wgpu

from ..call_errors import explained
from ..planning.signature import Argument, Product
from ..planning.windows import Window
from ..tuning.facts import facts_of
from ..tuning.rows import Shape, Shapes
from ..types.capabilities import Capabilities
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from .engines.items_kernel import ItemsKernel, described


class Take(ItemsKernel):
    """Gather: ``output[o, j, i] = input[o, indices[j], i]``.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : Datatype, str or numpy dtype
        Of the items.
    index_dtype : Datatype, str or numpy dtype
        An integer datatype.
    outer, length, count, inner : int
        The input has shape (outer, length, inner), the indices (count,), the output (outer, count, inner).
    clip : bool
        Whether an index that is out of range is clipped to the first or the last one, as negative ones are; else it is
        taken modulo the length, which counts negative ones from the end.
    capabilities : Capabilities, optional

    See Also
    --------
    execute : takes ``input``, ``indices`` and ``output``, of any shapes with these sizes.
    """

    shader: ClassVar[str] = "take"
    # A discrete GPU knows few memory pages at once (H200, Vulkan: 8 MiB). From a larger table random items come sooner
    # where each invocation holds many indices, and all go through the table part by part: they read about the same part
    # at a time (2^26 of u32, at once and by parts, µs: from 16 MiB 992 and 528, from 64 MiB 1,322 and 869, from 128 MiB
    # 1,475 and 1,128; of indices in order 154 and 155, but 185 by 512 × 4; 1,007 by 128 × 8).
    _tables_bytes: ClassVar[tuple[int, int]] = (8 << 20, 128 << 20)
    #: Of a part at most; a table has 8 or more.
    _part_bytes: ClassVar[int] = 4 << 20
    #: Indices of each invocation that a GPU runs at once.
    _least_rounds: ClassVar[int] = 2
    _shape_of_parts: ClassVar[Shape] = Shape(256, 8)
    arguments = (
        Argument("input", length=Product(("outer", "length", "inner")), any_shape=True),
        Argument("indices", datatype="index_datatype", length=Product(("count",)), any_shape=True),
        Argument("output", is_output=True, length=Product(("outer", "count", "inner")), any_shape=True),
    )

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike,
        index_dtype: ItemDatatypeLike,
        *,
        outer: int,
        length: int,
        count: int,
        inner: int,
        clip: bool,
        capabilities: Capabilities | None = None,
    ):
        self.index_datatype: Datatype = as_datatype(index_dtype, STORAGE_DATATYPES)
        self.outer, self.length, self.count, self.inner = outer, length, count, inner
        self._clip = clip
        super().__init__(device, dtype, capabilities=capabilities)
        facts, size = facts_of(self.capabilities), self.datatype.itemsize_bytes
        few, most = self._tables_bytes
        self._in_parts = (
            self.capabilities.adapter_type == "DiscreteGPU" and outer == inner == 1 and few < length * size <= most
            and count >= self._least_rounds * facts.multiprocessors * facts.invocations
        )  # fmt: skip
        if self._in_parts:
            self._shapes = Shapes(((None, self._shape_of_parts),))

    def _context_values(self) -> dict[str, Any]:
        flat = self.outer == self.inner == 1  # no divisions then
        return {"source": described(self.index_datatype), "clip": self._clip, "flat": flat, "parts": self._in_parts}

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        most = self._part_bytes // self.datatype.itemsize_bytes
        part = {"part": min(most, -(-self.length // 8))} if self._in_parts else {}
        return {"first": window.first, "length": self.length, "count": self.count, "inner": self.inner, **part}
