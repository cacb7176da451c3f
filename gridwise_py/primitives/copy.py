"""Copy: the yardstick that memory-bound kernels are measured with."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..runtime.arguments import Argument
from .elementwise import Elementwise
from .typed import InputOutput

__all__ = ["Copy"]


class Copy(InputOutput, Elementwise):
    """Copy items: ``output = input``.

    Moves 8 bytes per item of 4 bytes, so its speed is what any kernel that reads and writes memory can reach.

    Parameters
    ----------
    device : wgpu.GPUDevice
    datatype : Datatype, str or numpy dtype, default "u32"
    workgroup_size, vecs : int, optional
        Shape of the kernel: invocations, and vec4 per invocation.
    capabilities : Capabilities, optional
        To plan for, with None as device; by default what was measured on the device.

    See Also
    --------
    execute : takes ``input`` and ``output``, shape (n,) each.
    """

    shader: ClassVar[str] = "copy"
    arguments: ClassVar[tuple[Argument, ...]] = (
        Argument("input", chunked=True),
        Argument("output", is_output=True, chunked=True),
    )

    @staticmethod
    def reference(input: np.ndarray) -> np.ndarray:
        """Return what numpy gives for the same input."""
        return input.copy()
