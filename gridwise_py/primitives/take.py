"""Take: items of an array, chosen by indices on the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import wgpu

from ..call_errors import explained
from ..planning.signature import Argument, Product
from ..planning.windows import Window
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

    def _context_values(self) -> dict[str, Any]:
        flat = self.outer == self.inner == 1  # no divisions then
        return {"source": described(self.index_datatype), "clip": self._clip, "flat": flat}

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        return {"first": window.first, "length": self.length, "count": self.count, "inner": self.inner}
