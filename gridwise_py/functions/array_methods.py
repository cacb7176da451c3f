"""What methods of `Array` and `asarray` run: copies, casts, fills, gathers, and the storing of expressions."""

from __future__ import annotations

import importlib
from math import prod
from typing import Any

import numpy as np
import wgpu

from ..errors import ArgumentError, BoundsError, DatatypeError
from ..primitives.convert import Convert
from ..primitives.fill import Fill
from ..primitives.fusion import flat_of
from ..primitives.map import Map
from ..primitives.strided import Strided
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
from ..types.shapes import Part, whole_index
from .arguments import (
    check_not_counted,
    check_range,
    device_of,
    index_array,
    keep_primitive,
    stored_leaves,
)
from .repeated_calls import repeats

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


@repeats
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
    items = index_array(call, "indices", indices)
    if isinstance(items, Array):
        return items
    if mode in (None, "raise") and items.size:
        remedy = "; give mode='wrap' or mode='clip' to gw.take where that is meant"
        check_range(call, (items.min(), items.max()), length, remedy)
    return asarray(items, device)


@repeats
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
    if (size is None) == (not flat.has_size):
        which = "its leaves say how many items it has; leave out size=" if size is not None else "give size="
        raise ArgumentError(f"{call}: {which}" if size is not None else f"{call}: no leaf says how many items; {which}")
    device = device_of(*arrays.values(), device=device)
    primitive = keep_primitive(Map, device, flat.without_arrays())
    output = None if size is None else new_array(context_of(device), size, gives)
    result = primitive.run_once(**arrays, output=output)["output"]
    return result if flat.shape in (None, result.shape) else result.viewed_as(flat.shape)


def _copied(array: Array) -> Array:
    return convert(array, array.datatype)


def _strided(array: Array, part: Part) -> Array:
    """Return a copy of a part whose items do not lie one after another."""
    shape, source = part.shape, array
    if array.datatype.is_several:
        source, each = _words_of(array), array.datatype.elements
        strides = (*(each * stride for stride in part.strides), 1)
        part = Part(each * part.start, (*shape, each), strides)
    kept = [k for k, length in enumerate(part.shape) if length != 1]
    part = Part(part.start, tuple(part.shape[k] for k in kept), tuple(part.strides[k] for k in kept))
    primitive = keep_primitive(Strided, array.device, source.datatype.name, part=part)
    found = primitive.run_once(input=source)["output"]
    return _items_of(found, array.datatype).viewed_as(shape) if source is not array else found.viewed_as(shape)


def _index(array: Array, keys: tuple[Any, ...]) -> Array:
    """Return the items that an index with one array, list or mask chooses, as numpy's advanced indexing."""
    call = "x[indices]"
    keys = tuple(np.asarray(key, None if key else np.int64) if isinstance(key, list) else key for key in keys)
    places = [k for k, key in enumerate(keys) if isinstance(key, (Array, np.ndarray, list, Expression))]
    index = keys[places[0]]
    if len(places) > 1 or (isinstance(index, Expression) and len(keys) > 1):
        raise ArgumentError(
            f"{call}: one index array is taken, alone or beside slices and integers; of rows and columns make places "
            f"of items, x.ravel()[i * x.shape[1] + j]"
        )
    if isinstance(index, Expression) or index.dtype.kind == "b":
        return _chosen(call, array, keys, index)
    keys = whole_index(keys, array.shape)
    place = next(k for k, key in enumerate(keys) if key is index)
    apart = [k for k, key in enumerate(keys) if k == place or not (key is None or isinstance(key, slice))]
    axis = place - sum(k < place for k in apart)
    if axis and apart[-1] - apart[0] >= len(apart):
        raise ArgumentError(f"{call}: slices lie between an integer and an index array; index step by step, x[0][:, i]")
    rest = (
        array if len(keys) == array.ndim == len(apart) == 1 else array[(*keys[:place], slice(None), *keys[place + 1 :])]
    )
    return take_items(call, rest, index, axis, None)


def _chosen(call: str, array: Array, keys: tuple[Any, ...], mask: Any) -> Array:
    """Return the items, or rows, where a mask holds: those of a mask on the GPU carry their count."""
    if len(keys) > 1:
        raise ArgumentError(f"{call}: a mask is alone in the brackets; give its places, gw.flatnonzero(mask)")
    if not isinstance(mask, np.ndarray):
        selections = importlib.import_module(".selections", __package__)
        is_rows = isinstance(mask, Array) and mask.ndim < array.ndim
        return selections.compress(mask, array, axis=0) if is_rows else selections.extract(mask, array)
    if mask.shape != array.shape[: mask.ndim]:
        raise BoundsError(
            f"{call}: the mask has shape {mask.shape}, but the Array {array.shape}; give one of its shape"
        )
    rows = array.reshape(mask.size, *array.shape[mask.ndim :])
    return take_items(call, rows, np.flatnonzero(mask), 0, None)


OPERATIONS.update(
    index=_index, strided=_strided, copy=_copied, convert=convert, fill=fill, take=take_items, evaluate=evaluate
)
