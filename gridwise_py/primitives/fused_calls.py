"""Stores expressions: what `gridwise_py.asarray` runs."""

from __future__ import annotations

import wgpu

from ..errors import ArgumentError
from ..runtime.array import Array, new_array
from ..runtime.context import context_of
from ..types.datatype import DATATYPES, STORAGE_DATATYPES, ItemDatatypeLike, as_datatype
from ..types.expression import Expression
from .function_arguments import device_of, kept_primitive, stored_leaves
from .fusion import flat_of
from .map import Map


def evaluated(
    expression: Expression, device: wgpu.GPUDevice | None, dtype: ItemDatatypeLike | None, size: int | None
) -> Array:
    """Return an Array with the items of an expression, computed by one kernel.

    Parameters
    ----------
    expression : Expression
    device : wgpu.GPUDevice or None
    dtype : optional
        The datatype that the caller expects.
    size : int or None
        The number of items, where no leaf says it.
    """
    call = "gw.asarray()"
    flat = flat_of(expression)
    arrays = stored_leaves(call, flat)
    gives = STORAGE_DATATYPES[flat.types[0]]
    if dtype is not None and as_datatype(dtype, STORAGE_DATATYPES) != gives:
        wanted = as_datatype(dtype, STORAGE_DATATYPES)
        remedy = (
            f"cast it, gw.{wanted}(…)" if wanted.name in DATATYPES
            else f"store it, and convert that: gw.asarray(x).astype('{wanted}')"
        )  # fmt: skip
        raise ArgumentError(f"{call}: the expression is of {gives}, not of {wanted}; {remedy}")
    if (size is None) == (not flat.program.aligned):
        which = "its leaves say how many items it has; leave out size=" if size is not None else "give size="
        raise ArgumentError(f"{call}: {which}" if size is not None else f"{call}: no leaf says how many items; {which}")
    device = device_of(*arrays.values(), device=device)
    primitive = kept_primitive(Map, device, flat.without_arrays())
    output = None if size is None else new_array(context_of(device), size, gives)
    return primitive.run_once(**arrays, output=output)["output"]
