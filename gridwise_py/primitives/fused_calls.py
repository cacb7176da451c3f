"""One-shot functions of expressions: from an expression whose leaves are Arrays to a primitive that is kept."""

from __future__ import annotations

from typing import Any

import wgpu

from ..errors import ArgumentError
from ..runtime.array import Array
from ..types.datatype import ItemDatatypeLike, as_datatype
from ..types.expression import Expression
from .fusion import flat_of
from .map import Map
from .one_shot import Results, check_gpu_out, device_of, kept_primitive
from .reduce import Reduce

__all__ = ["evaluated", "reduced"]


def _stored_leaves(call: str, flat: Any) -> dict[str, Any]:
    """Return the Arrays of an expression by the names of its leaves; raise ArgumentError for leaves that are none."""
    arrays = dict(flat.arrays)
    free = [name for name in (*flat.names, *(name for name, _ in flat.scalars)) if name not in arrays]
    if free:
        raise ArgumentError(
            f"{call}: the expression has the leaves {', '.join(free)}, which are no Arrays; use Arrays in their place, "
            f"or make a primitive of the expression, and give execute({free[0]}=…)"
        )
    return arrays


def evaluated(expression: Expression, device: wgpu.GPUDevice | None, dtype: ItemDatatypeLike | None) -> Array:
    """Return an Array with the items of an expression, computed by one kernel."""
    call = "gw.asarray()"
    flat = flat_of(expression)
    arrays = _stored_leaves(call, flat)
    if dtype is not None and as_datatype(dtype) != flat.datatype:
        raise ArgumentError(
            f"{call}: the expression is of {flat.datatype}, not of {dtype}; cast it, for example gw.f32(…)"
        )
    primitive = kept_primitive(Map, device_of(*arrays.values(), device=device), flat.without_arrays())
    return primitive.bind(**arrays).execute().outputs["output"]


def reduced(
    call: str, x: Expression, op: Any, results: Results, out: Any, device: wgpu.GPUDevice | None, **options: Any
) -> Array:
    """Return the reduction of all items of an expression, an Array of shape ()."""
    flat = flat_of(x)
    arrays = _stored_leaves(call, flat)
    result = results.datatype(flat.datatype, out)
    device = device_of(*arrays.values(), device=device)
    if out is not None:
        check_gpu_out(call, out, (), result, device)
    primitive = kept_primitive(Reduce, device, flat.without_arrays(), op, result_dtype=result, **options)
    output = primitive.bind(**arrays, output=out).execute().outputs["output"]
    return output.viewed_as(()) if out is None else out
