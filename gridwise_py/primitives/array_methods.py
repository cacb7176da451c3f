"""What methods of `Array` run: copies, casts, fills and gathers. `runtime` is below the primitives, and calls them here."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError, LengthError
from ..runtime.array import OPERATIONS, Array, asarray, host_array
from ..types.datatype import STORAGE_DATATYPES, Datatype, as_datatype
from .convert import Convert
from .fill import Fill
from .one_shot import kept_primitive
from .take import Take

__all__ = ["converted", "fill", "taken", "value_words"]

_WORDS_OF_ZERO = (0, 0)


def value_words(value: Any, datatype: Datatype, what: str) -> tuple[int, int]:
    """Return a number as the words of an item, the second one 0 for items of up to 4 bytes.

    Raises
    ------
    DatatypeError
        If it is no number, or a Python integer that the datatype does not hold.
    """
    try:
        item = np.asarray(value)
        if item.ndim or item.dtype.kind not in "biufO":
            raise TypeError(f"{value!r} is not a number")
        with np.errstate(all="ignore"):
            item = np.array(value, dtype=datatype.dtype) if type(value) is int else item.astype(datatype.dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise DatatypeError(f"{what}: the items are of {datatype}, which does not hold {value!r}: {error}") from error
    low, high = np.frombuffer(item.tobytes().ljust(8, b"\0"), np.uint32).tolist()
    return (low, high)


def converted(source: Array, datatype: Any, output: Array | None = None) -> Array:
    """Return the items of an Array as another datatype, or the same, in new memory or in `output`."""
    wanted = as_datatype(datatype, STORAGE_DATATYPES)
    primitive = kept_primitive(Convert, source.device, source.datatype.name, wanted.name)
    # Bound, not executed: the primitive is kept, and must not keep the caller's arrays.
    return primitive.bind(input=source, output=output).execute().outputs["output"]


def fill(array: Array, value: Any, what: str = "fill()") -> Array:
    """Set all items of an Array; return it."""
    words = value_words(value, array.datatype, what)
    if array.size:
        primitive = kept_primitive(Fill, array.device, array.datatype.name)
        # Zeros are cleared, which needs no kernel; −0 is no zero.
        primitive.bind(output=array, value=words).execute()
    return array


def taken(
    call: str,
    source: Array,
    indices: Any,
    axis: int | None,
    mode: str | None,
    output: Array | None = None,
) -> Array:
    """Return the items, or rows, of an Array that indices choose; see `functions.take`."""
    viewed = source.ravel() if axis is None else source
    dimension = 0 if axis is None else axis
    if not -viewed.ndim <= dimension < viewed.ndim:
        raise ArgumentError(f"{call}: axis {axis} is not in shape {source.shape}")
    dimension %= viewed.ndim
    before, length, after = viewed.shape[:dimension], viewed.shape[dimension], viewed.shape[dimension + 1 :]
    chosen = _indices(call, indices, length, mode, source.device)
    if length == 0 and chosen.size:
        raise LengthError(f"{call}: nothing can be taken from a dimension of length 0 of shape {source.shape}")
    shape = (*before, *chosen.shape, *after)
    primitive = kept_primitive(
        Take, source.device, source.datatype.name, chosen.datatype.name, among="gathers", outer=prod(before),
        length=length, count=chosen.size, inner=prod(after), clip=mode == "clip",
    )  # fmt: skip
    result = primitive.bind(input=viewed, indices=chosen, output=output).execute().outputs["output"]
    return result.viewed_as(shape) if output is None else output


def _indices(call: str, indices: Any, length: int, mode: str | None, device: wgpu.GPUDevice) -> Array:
    """Return indices as an Array; those on the host are checked."""
    if isinstance(indices, Array):
        if indices.dtype.kind not in "iu":
            mask = "; a mask chooses on the host: x.to_numpy()[mask.to_numpy()]" if indices.dtype.kind == "b" else ""
            raise DatatypeError(f"{call}: indices are of {indices.datatype}, but must be integers{mask}")
        return indices
    items = host_array(indices)
    if items.size == 0 and not isinstance(indices, np.ndarray):
        items = items.astype(np.int64)  # of an empty list, of which numpy makes floats
    if items.dtype.kind not in "iu":
        mask = f"; give np.flatnonzero({'mask' if items.dtype.kind == 'b' else 'x'})" if items.dtype.kind == "b" else ""
        raise DatatypeError(f"{call}: indices are of {items.dtype}, but must be integers{mask}")
    if mode in (None, "raise") and items.size:
        least, most = items.min(), items.max()
        if least < -length or most >= length:
            wrong = least if least < -length else most
            raise ArgumentError(
                f"{call}: index {wrong} is out of bounds for a dimension of length {length}; give mode='wrap' or "
                f"mode='clip' to gw.take where that is meant"
            )
    return asarray(items, device)


def _copied(array: Array) -> Array:
    return converted(array, array.datatype)


OPERATIONS.update(copy=_copied, convert=converted, fill=fill, take=taken)
