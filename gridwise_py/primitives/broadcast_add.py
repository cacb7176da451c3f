"""BroadcastAdd: the sum of arrays whose shapes numpy broadcasts, and of any datatypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar

import wgpu

from ..call_errors import explained
from ..errors import DatatypeError
from ..planning.signature import Argument, Product
from ..planning.windows import Window
from ..types.capabilities import FEATURES_OF_FLOAT64, Capabilities
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from ..types.shapes import broadcast_shape, merged
from .engines.items_kernel import ItemsKernel, described


class BroadcastAdd(ItemsKernel):
    """Add arrays of shapes that can be broadcast: ``output = a + b``; integers wrap, bools are combined by or.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : Datatype, str or numpy dtype
        Of the output, to which items are converted before they are added.
    a_dtype, b_dtype : Datatype, str or numpy dtype
    a_shape, b_shape : tuple of int
    capabilities : Capabilities, optional

    See Also
    --------
    execute : takes ``a``, ``b`` and ``output``. The output may be an input of its shape.
    """

    shader: ClassVar[str] = "broadcast_add"
    arguments = (
        Argument("a", datatype="a_datatype", length=Product(("a_size",)), any_shape=True),
        Argument("b", datatype="b_datatype", length=Product(("b_size",)), any_shape=True),
        Argument("output", is_output=True, length=Product(("size",)), overlap="same view", any_shape=True),
    )

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike,
        a_dtype: ItemDatatypeLike,
        b_dtype: ItemDatatypeLike,
        *,
        a_shape: Sequence[int],
        b_shape: Sequence[int],
        capabilities: Capabilities | None = None,
    ):
        self.a_datatype: Datatype = as_datatype(a_dtype, STORAGE_DATATYPES)
        self.b_datatype: Datatype = as_datatype(b_dtype, STORAGE_DATATYPES)
        super().__init__(device, dtype, capabilities=capabilities)
        shapes = tuple(a_shape), tuple(b_shape)
        shape = broadcast_shape(self.name, shapes)
        self.a_size, self.b_size, self.size = prod(a_shape), prod(b_shape), prod(shape)
        self._dimensions = merged(shape, *shapes) or [(1, (0, 0))]
        missing = [name for name in FEATURES_OF_FLOAT64 if name not in self.capabilities.features]
        if self._computes_float64 and missing:
            raise DatatypeError(
                f"a sum of float64 needs the features {' and '.join(map(repr, missing))}, which the device of "
                f"{self.capabilities.adapter!r} does not have; convert the arrays with x.astype(np.float32)"
            )

    @property
    def _computes_float64(self) -> bool:
        return self.datatype.name == "f64"

    def _context_values(self) -> dict[str, Any]:
        return {"a": described(self.a_datatype), "b": described(self.b_datatype), "dims": len(self._dimensions)}

    def _params(self, window: Window, values: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        params = {"first": window.first}
        for d, (length, (a_stride, b_stride)) in enumerate(self._dimensions):
            params |= {f"length_{d}": length, f"a_stride_{d}": a_stride, f"b_stride_{d}": b_stride}
        return params
