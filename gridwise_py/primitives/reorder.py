"""Reorder: items along one axis, backwards or shifted in a circle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import wgpu

from ..call_errors import explained
from ..planning.signature import Argument, Product
from ..planning.windows import Window
from ..types.capabilities import Capabilities
from ..types.datatype import ItemDatatypeLike
from .engines.items_kernel import ItemsKernel


class Reorder(ItemsKernel):
    """Flip or roll: ``output[o, j, i] = input[o, k, i]``, where k is ``length - 1 - j`` or ``(j - shift) % length``.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : Datatype, str or numpy dtype
        Of the items.
    outer, length, inner : int
        Both arrays have shape (outer, length, inner).
    shift : int, optional
        From 0 to length − 1; None flips.
    capabilities : Capabilities, optional

    See Also
    --------
    execute : takes ``input`` and ``output``, of any shapes with these sizes.
    """

    shader: ClassVar[str] = "reorder"
    arguments = (
        Argument("input", length=Product(("outer", "length", "inner")), any_shape=True, in_order=False),
        Argument("output", is_output=True, length=Product(("outer", "length", "inner")), any_shape=True),
    )

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike,
        *,
        outer: int,
        length: int,
        inner: int,
        shift: int | None = None,
        capabilities: Capabilities | None = None,
    ):
        self.outer, self.length, self.inner, self.shift = outer, length, inner, shift
        super().__init__(device, dtype, capabilities=capabilities)

    def _context_values(self) -> dict[str, Any]:
        return {"reverse": self.shift is None, "flat": self.outer == self.inner == 1}  # no divisions then

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        return {"first": window.first, "length": self.length, "inner": self.inner, "shift": self.shift or 0}
