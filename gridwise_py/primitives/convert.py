"""Convert: items as another datatype, or copied from any view to any other."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import wgpu

from ..call_errors import explained
from ..planning.signature import Argument, SameAs
from ..types.capabilities import Capabilities
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from .engines.items_kernel import ItemsKernel, described


class Convert(ItemsKernel):
    """Convert items: ``output = input.astype(result_dtype)``; with the same datatype it copies them.

    The results are numpy's: integers wrap, floats are rounded to the nearest, and truncated where they become integers.
    Floats that are too large for an integer wrap, too, and infinities and NaN become 0; numpy leaves these open.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype, result_dtype : Datatype, str or numpy dtype
        Of the input and of the output.
    capabilities : Capabilities, optional

    See Also
    --------
    execute : takes ``input`` and ``output``, of one shape. The output may be the input, if both have one datatype.
    """

    shader: ClassVar[str] = "convert"
    in_order: ClassVar[tuple[str, ...]] = ("input",)
    arguments = (
        Argument("input", datatype="source", any_shape=True),
        Argument("output", is_output=True, length=SameAs("input"), overlap="same view", any_shape=True),
    )

    @explained()
    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike,
        result_dtype: ItemDatatypeLike,
        *,
        capabilities: Capabilities | None = None,
    ):
        self.source: Datatype = as_datatype(dtype, STORAGE_DATATYPES)
        super().__init__(device, result_dtype, capabilities=capabilities)

    def _context_values(self) -> dict[str, Any]:
        return {"source": described(self.source)}

    def _reference(self, input: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input."""
        with np.errstate(all="ignore"):
            return input.astype(self.datatype.dtype)
