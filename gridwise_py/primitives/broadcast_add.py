"""BroadcastAdd: the sum of arrays whose shapes numpy broadcasts, and of any datatypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar

import wgpu

from ..call_errors import explained
from ..errors import DatatypeError, LengthError
from ..planning.signature import Argument, Product
from ..planning.windows import Window
from ..types.capabilities import FEATURES_OF_FLOAT64, Capabilities
from ..types.datatype import STORAGE_DATATYPES, Datatype, ItemDatatypeLike, as_datatype
from .engines.items_kernel import ItemsKernel, described


def broadcast_shapes(call: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the result of two arrays, by numpy's rule.

    Raises
    ------
    LengthError
        If a dimension has two lengths, none of which is 1.
    """
    rank = max(len(a), len(b))
    padded = [(1,) * (rank - len(shape)) + shape for shape in (a, b)]
    if any(m != n and 1 not in (m, n) for m, n in zip(*padded, strict=True)):
        raise LengthError(
            f"{call}: operands could not be broadcast together with shapes {a} {b}: from the last dimension on, "
            f"lengths must be equal, or one of them 1; slice or reshape one of the two"
        )
    return tuple(n if m == 1 else m for m, n in zip(*padded, strict=True))


def _strides(shape: tuple[int, ...], result: tuple[int, ...]) -> list[int]:
    """Return the strides, in items, by which a result reaches a C-contiguous array; 0 along what is repeated."""
    padded = (1,) * (len(result) - len(shape)) + shape
    return [0 if length == 1 else prod(padded[d + 1 :]) for d, length in enumerate(padded)]


def merged(a: tuple[int, ...], b: tuple[int, ...], result: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Return length and both strides of each dimension, after neighbours that are reached as one were merged."""
    dimensions: list[tuple[int, int, int]] = []
    for length, *strides in zip(result, _strides(a, result), _strides(b, result), strict=True):
        if length == 1:
            continue
        if dimensions and all(
            outer == length * inner for outer, inner in zip(dimensions[-1][1:], strides, strict=True)
        ):
            dimensions[-1] = (dimensions[-1][0] * length, strides[0], strides[1])
        else:
            dimensions.append((length, strides[0], strides[1]))
    return dimensions or [(1, 0, 0)]


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
        shape = broadcast_shapes(self.name, tuple(a_shape), tuple(b_shape))
        self.a_size, self.b_size, self.size = prod(a_shape), prod(b_shape), prod(shape)
        self._dimensions = merged(tuple(a_shape), tuple(b_shape), shape)
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
        for d, (length, a_stride, b_stride) in enumerate(self._dimensions):
            params |= {f"length_{d}": length, f"a_stride_{d}": a_stride, f"b_stride_{d}": b_stride}
        return params
