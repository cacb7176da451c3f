"""The result of a primitive with one output; large numpy arrays go through it window by window.

Arrays of numpy of 8 MiB and more go window by window: while the GPU works on one, the next is uploaded, and the result
of the one before is downloaded (`streaming.in_windows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import wgpu

from ..primitives.base import Primitive
from ..primitives.fusion import EXPRESSIONS
from ..primitives.one_shot import (
    checked,
)  # fmt: skip
from ..runtime.chunked_array import Items
from ..streaming import in_windows, takes_windows

__all__ = ["one_result"]


def one_result(
    call: str,
    cls: type[Primitive],
    key: tuple[Any, ...],
    device: wgpu.GPUDevice | None,
    inputs: dict[str, Any],
    out: Any,
    *,
    keep_shape: bool = False,
    **options: Any,
) -> Any:
    """Return the result of a primitive with one output: in windows of large numpy arrays, where these give the same.

    With `keep_shape` the inputs are of one shape, which the result has, too.
    """
    shape = np.shape(next(iter(inputs.values()))) if keep_shape and not _any_on_gpu(inputs) else None
    if shape is not None and len(shape) > 1:  # arrays of the host are worked on in one dimension
        options |= {"flatten": True, "out_shape": shape}
    elif keep_shape:
        options |= {"any_shape": True}
    made = checked(call, cls, key, device, inputs, out, **options)
    if not made.on_gpu:
        arrays = list(made.inputs.values())
        flat = out
        if shape is not None and out is not None and out.flags.c_contiguous:
            flat = out.reshape(-1)  # a view
        if takes_windows(made.primitive, arrays, flat):
            result = in_windows(made.primitive, arrays, flat)
        else:
            result = made.run()[0]
        return result if shape is None else out if out is not None else result.reshape(shape)
    return made.run()[0]


def _any_on_gpu(inputs: Mapping[str, Any]) -> bool:
    return any(isinstance(value, (*EXPRESSIONS, Items)) for value in inputs.values())
