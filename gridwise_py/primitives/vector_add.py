"""Vector add, output = a + b: items of 4 bytes by WGSL's +, all others by the operator Add, as reductions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import wgpu

from ..planning.accessors import quad_type
from ..tuning.options import ElementwiseTuning
from ..types.capabilities import FEATURES_OF_FLOAT64, Capabilities, check_float64
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike
from ..types.operators import Add, memory_context, operator_context
from .calls import TwoInputsCalls
from .engines.elementwise import Elementwise, elementwise_arguments
from .registry import register


@register("vector_add")
class VectorAdd(TwoInputsCalls, Elementwise):
    """Add two vectors: ``output = a + b``; integers wrap, and bools are combined by or, as in numpy.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
        Any; f64 needs ``shader-f64`` and ``shader-int64``.
    tuning : ElementwiseTuning, optional
        Shape of the kernel; affects only the speed. By default the library's, or the one from ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``a``, ``b`` and ``output``, shape (n,) each. The output may be an input.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> a = gw.asarray(np.arange(5, dtype=np.float32), device)
    >>> gw.VectorAdd(device, "f32").execute(a=a, b=a).output.to_numpy()
    array([0., 2., 4., 6., 8.], dtype=float32)
    """

    shader: ClassVar[str] = "vector_add"
    flops_per_item: ClassVar[int] = 1
    arguments = elementwise_arguments("a", "b")
    datatypes: ClassVar[Mapping[str, Datatype]] = STORAGE_DATATYPES

    def __init__(
        self,
        device: wgpu.GPUDevice | None,
        dtype: ItemDatatypeLike = "u32",
        *,
        tuning: ElementwiseTuning | None = None,
        capabilities: Capabilities | None = None,
    ):
        super().__init__(device, dtype, tuning=tuning, capabilities=capabilities)
        if self.datatype.name == "f64":
            check_float64("add", self.capabilities)
            self._features = FEATURES_OF_FLOAT64
        self._combines = self.datatype.itemsize_bytes != 4  # by lib/operator.wgsl, as reductions

    def _template_values(self) -> dict[str, Any]:
        if not self._combines:
            return super()._template_values()
        memory, mode = memory_context(self.datatype), self.capabilities.subgroup_mode(False)
        quad = {"quad": quad_type(self.datatype.itemsize_bytes)}
        return operator_context(Add, self.datatype, mode, source=memory, sink=memory) | quad

    def _params(self) -> dict[str, int]:
        return Add.accumulator(self.datatype).params if self._combines else {}

    def _units(self) -> dict[str, int] | None:
        return dict.fromkeys(("a", "b", "output"), 4 * self.datatype.itemsize_bytes) if self._combines else None

    @staticmethod
    def _reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same inputs."""
        return a + b
