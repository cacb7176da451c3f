"""What methods of `Array` and `asarray` run: copies, casts, fills, gathers, and the storing of expressions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import wgpu

from ..errors import ArgumentError, BoundsError, DatatypeError
from ..primitives.convert import Convert
from ..primitives.fill import Fill
from ..primitives.fusion import flat_of
from ..primitives.map import Map
from ..primitives.take import Take
from ..runtime.array import OPERATIONS, Array, asarray, new_array
from ..runtime.context import context_of
from ..types.datatype import (
    DATATYPES,
    ITEM_DATATYPES,
    STORAGE_DATATYPES,
    VALUE_DATATYPES,
    Datatype,
    ItemDatatypeLike,
    as_datatype,
    value_words,
)
from ..types.expression import Expression, gather, u32
from ..types.expression_functions import where
from .arguments import (
    check_not_counted,
    check_range,
    device_of,
    index_array,
    keep_primitive,
    stored_leaves,
)

#: What expressions read and give as it is.
_IN_EXPRESSIONS = frozenset({"u32", "i32", "f32"})


def _words_of(array: Array) -> Array:
    """Return the items of an Array, each of several numbers, as their words: a last dimension more."""
    elements = array.datatype.elements
    words = Array.on(
        array.lease, DATATYPES["u32"], array.size * elements, array.device, array.offset_bytes // 4
    )  # fmt: skip
    return words.viewed_as((*array.shape, elements))


def _items_of(words: Array, datatype: Datatype) -> Array:
    """Return words, of which a last dimension makes up an item, as items."""
    items = Array.on(words.lease, datatype, words.size // datatype.elements, words.device)
    return items.viewed_as(words.shape[:-1])


def convert(source: Array, datatype: Any, output: Array | None = None) -> Array:
    """Return the items of an Array as another datatype, or the same, in new memory or in `output`."""
    wanted = as_datatype(datatype, ITEM_DATATYPES)
    if source.datatype.is_several or wanted.is_several:
        if source.datatype != wanted:
            raise DatatypeError(
                f"items of {source.datatype} are not converted to {wanted} on the GPU; convert them in numpy: "
                f"gw.asarray(x.to_numpy().astype(np.{wanted.numpy_name}))"
            )
        copied = convert(_words_of(source), DATATYPES["u32"], None if output is None else _words_of(output))
        return _items_of(copied, wanted) if output is None else output
    primitive = keep_primitive(Convert, source.device, source.datatype.name, wanted.name)
    return primitive.run_once(input=source, output=output)["output"]


def fill(array: Array, value: Any, what: str = "fill()") -> Array:
    """Set all items of an Array; return it."""
    if array.datatype.is_several:
        return _fill_several(array, value, what)
    words = value_words(value, array.datatype, what)
    if array.size:
        primitive = keep_primitive(Fill, array.device, array.datatype.name)
        arguments: dict[str, Any] = {"output": array, "value": words}
        primitive.run_once(**arguments)
    return array


def _fill_several(array: Array, value: Any, what: str) -> Array:
    """Set all items, each of several numbers: every item takes the same row of words."""
    datatype = array.datatype
    try:
        item = np.empty(1, datatype.dtype)
        item[0] = value
    except (TypeError, ValueError) as error:
        raise DatatypeError(f"{what}: the items are of {datatype}, which does not hold {value!r}: {error}") from error
    if array.size:
        row = asarray(item.view(np.uint32), array.device).viewed_as((1, datatype.elements))
        first = fill(new_array(context_of(array.device), array.size, DATATYPES["u32"]), 0)
        words = _words_of(array).viewed_as((array.size, datatype.elements))
        take_items(what, row, first, 0, None, words)
    return array


def take_items(
    call: str,
    source: Array,
    indices: Any,
    axis: int | None,
    mode: str | None,
    output: Array | None = None,
) -> Array:
    """Return the items, or rows, of an Array that indices choose along a checked axis; see `functions.take`."""
    check_not_counted(call, source)
    viewed = source.ravel() if axis is None else source
    dimension = 0 if axis is None else axis
    if source.datatype.is_several:
        rows = take_items(
            call, _words_of(viewed), indices, dimension, mode, None if output is None else _words_of(output)
        )
        return _items_of(rows, source.datatype) if output is None else output
    before, length, after = viewed.shape[:dimension], viewed.shape[dimension], viewed.shape[dimension + 1 :]
    chosen = _indices(call, indices, length, mode, source.device)
    if length == 0 and chosen.size:
        raise BoundsError(f"{call}: nothing can be taken from a dimension of length 0 of shape {source.shape}")
    is_flat = viewed.ndim == 1 and output is None
    if chosen.count is not None and is_flat and {viewed.datatype.name, chosen.datatype.name} <= _IN_EXPRESSIONS:
        return _taken_so_many(viewed, chosen, length, mode)
    shape = (*before, *chosen.shape, *after)
    primitive = keep_primitive(
        Take, source.device, source.datatype.name, chosen.datatype.name, outer=prod(before),
        length=length, count=chosen.size, inner=prod(after), clip=mode == "clip",
    )  # fmt: skip
    result = primitive.run_once(input=viewed, indices=chosen, output=output)["output"]
    return result.viewed_as(shape) if output is None else output


def _taken_so_many(source: Array, indices: Array, length: int, mode: str | None) -> Array:
    """Return the items that so many indices choose as only the GPU knows: an expression brings their count along."""
    at: Any = indices.as_expression()
    if mode != "clip":  # modulo the length, from the end if negative
        forward = u32(at) % length
        at = where(at < 0, length - 1 - u32(-1 - at) % length, forward) if at.type == "i32" else forward
    return evaluate(gather(source, at), source.device, None, None)


def _indices(call: str, indices: Any, length: int, mode: str | None, device: wgpu.GPUDevice) -> Array:
    """Return indices as an Array; those on the host are checked."""
    if getattr(getattr(indices, "dtype", None), "kind", "") == "b":
        raise DatatypeError(f"{call}: indices are of bool, but are integers; a mask chooses with gw.compress(mask, x)")
    items = index_array(call, "indices", indices)
    if isinstance(items, Array):
        return items
    if mode in (None, "raise") and items.size:
        remedy = "; give mode='wrap' or mode='clip' to gw.take where that is meant"
        check_range(call, (items.min(), items.max()), length, remedy)
    return asarray(items, device)


def evaluate(
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
            f"cast it, gw.{wanted}(x)" if wanted.name in VALUE_DATATYPES
            else f"store it, and convert that: gw.asarray(x).astype('{wanted}')"
        )  # fmt: skip
        raise ArgumentError(f"{call}: the expression is of {gives}, not of {wanted}; {remedy}")
    if (size is None) == (not flat.program.aligned):
        which = "its leaves say how many items it has; leave out size=" if size is not None else "give size="
        raise ArgumentError(f"{call}: {which}" if size is not None else f"{call}: no leaf says how many items; {which}")
    device = device_of(*arrays.values(), device=device)
    primitive = keep_primitive(Map, device, flat.without_arrays())
    output = None if size is None else new_array(context_of(device), size, gives)
    return primitive.run_once(**arrays, output=output)["output"]


def _copied(array: Array) -> Array:
    return convert(array, array.datatype)


OPERATIONS.update(copy=_copied, convert=convert, fill=fill, take=take_items, evaluate=evaluate)
