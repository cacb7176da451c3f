"""Copy: the reference speed for memory-bound kernels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .calls import InputOutputCalls
from .engines.elementwise import Elementwise, elementwise_arguments
from .registry import register


@register("copy")
class Copy(InputOutputCalls, Elementwise):
    """Copy items: ``output = input``.

    Its throughput is the limit for memory-bound kernels.

    Parameters
    ----------
    device : wgpu.GPUDevice
    dtype : Datatype, str or numpy dtype, default "u32"
    tuning : ElementwiseTuning, optional
        Shape of the kernel; affects only the speed. By default the library's, or the one from ``gridwise tune``.
    capabilities : Capabilities, optional
        The capabilities to plan for, with None as device. By default those measured on the device.

    See Also
    --------
    execute : takes ``input`` and ``output``, shape (n,) each.
    """

    shader: ClassVar[str] = "copy"
    arguments = elementwise_arguments("input")

    @staticmethod
    def _reference(input: np.ndarray) -> np.ndarray:
        """Return numpy's result for the same input."""
        return input.copy()
