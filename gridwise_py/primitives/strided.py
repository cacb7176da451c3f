"""Strided: a copy of the items that lie at the strides of a part of an array, as slices with steps reach them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

import wgpu

from ..call_errors import explained
from ..planning.signature import Argument, Product
from ..planning.windows import Window
from ..types.capabilities import Capabilities
from ..types.datatype import ItemDatatypeLike
from ..types.shapes import Part
from .engines.items_kernel import ItemsKernel


class Strided(ItemsKernel):
    """Copy a part of an array: item ``[a, b, …]`` is ``input[start + a * strides[0] + b * strides[1] + …]``.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : Datatype, str or numpy dtype
    part : Part
        Of no dimension of length 1.
    capabilities : Capabilities, optional

    See Also
    --------
    execute : takes ``input`` and ``output``, of any shapes.
    """

    shader: ClassVar[str] = "strided"
    arguments = (
        Argument("input", any_shape=True),
        Argument("output", is_output=True, length=Product(("size",)), any_shape=True),
    )

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike,
        *,
        part: Part,
        capabilities: Capabilities | None = None,
    ):
        self.part, self.size = part, prod(part.shape)
        super().__init__(device, dtype, capabilities=capabilities)

    def _context_values(self) -> dict[str, Any]:
        return {"dims": len(self.part.shape)}

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        params = {"first": window.first, "start": self.part.start}
        for d, (length, stride) in enumerate(zip(self.part.shape, self.part.strides, strict=True)):
            params |= {f"length_{d}": length, f"stride_{d}": stride % (1 << 32)}
        return params
