"""The result of a primitive with one output; large numpy arrays go through it window by window.

Arrays of numpy of 8 MiB and more go window by window: while the GPU works on one, the next is uploaded, and the result
of the one before is downloaded (`streaming.in_windows`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..primitives import Scan
from ..primitives.base import Primitive
from ..runtime.array import asarray
from ..streaming import in_windows, takes_windows
from .arguments import Call


def one_result(call: Call, primitive: Primitive, out: np.ndarray | None = None, initial: Any = None) -> Any:
    """Return the result of a primitive with one output: in windows of large numpy arrays, where these give the same.

    Parameters
    ----------
    call : Call
        Its inputs and `out` are taken.
    initial : numpy.ndarray or Array, optional
        What a `Scan` begins with.
    """
    if not call.on_gpu:
        shape = next(iter(call.arrays.values())).shape
        arrays = [items if items.ndim == 1 else items.reshape(-1) for items in call.arrays.values()]
        flat = out.reshape(-1) if out is not None and out.ndim != 1 and out.flags.c_contiguous else out
        if takes_windows(primitive, arrays, flat):
            if isinstance(primitive, Scan) and initial is not None:
                primitive = primitive.with_initial
            found = in_windows(primitive, arrays, flat, initial=initial)
            return found if len(shape) < 2 or not found.ndim else found.reshape(shape) if out is None else out
    if initial is None:
        return call.results(primitive)["output"]
    assert isinstance(primitive, Scan), "no other primitive begins with an item"
    return call.results(primitive.with_initial, initial=asarray(initial, primitive.device))["output"]
