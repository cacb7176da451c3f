"""Vector add."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .elementwise import Elementwise, elementwise_arguments
from .registry import register
from .typed import TwoInputs

__all__ = ["VectorAdd"]


@register("vector_add")
class VectorAdd(TwoInputs, Elementwise):  # pyright: ignore[reportIncompatibleMethodOverride]  # see typed.py
    """Add two vectors: ``output = a + b``; integers wrap.

    Parameters
    ----------
    device : wgpu.GPUDevice
    datatype : Datatype, str or numpy dtype, default "u32"
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

    @staticmethod
    def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same inputs."""
        return a + b
