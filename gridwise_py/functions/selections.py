"""One-shot functions that select: compress, nonzero, partitions, runs and unique items.

With numpy arrays the results are numpy arrays, cut to what there is; indices are ``intp``. With an Array or an
expression of Arrays they are Arrays on the GPU that carry their count, and nothing is read back; indices are u32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, BoundsError, LengthError
from ..primitives import Partition, RunLength, Select, Sort, SortPairs, Unique
from ..primitives.fusion import EXPRESSIONS, FUSED, flat_of
from ..primitives.reduce_axis import one_axis
from ..primitives.select import FlatNonzero
from ..primitives.unique import RunNumbers
from ..runtime.array import Array, asarray
from ..runtime.chunked_array import ChunkedArray, Items
from ..runtime.host_items import integers_and_nulls, with_missing
from ..types.datatype import ITEM_DATATYPES, STORAGE_DATATYPES
from ..types.expression import Expression
from ..types.program import Flat
from .arguments import (
    Call,
    HostItems,
    argument_array,
    check_one_dimension,
    deliver,
    device_of,
    index_array,
    stored_leaves,
)
from .arrays import arange, ones, take
from .orders import put
from .repeated_calls import one_shot

#: What the functions take: an array of numpy or what numpy makes one of, an Array, several that act as one, or an
#: expression of Arrays.
Selectable: TypeAlias = HostItems | Array | ChunkedArray | Expression


class RunLengths(NamedTuple):
    """What `run_length_encode` returns."""

    values: Any
    starts: Any
    lengths: Any


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Any
    inverse_indices: Any


def _taken(call: Call, given: Mapping[str, Any]) -> dict[str, Any]:
    """Take the inputs of a selection; return their kinds by their names.

    What an expression reads of the others, too, is bound once, so Arrays come first.
    """
    kinds: dict[str, Any] = dict.fromkeys(given)
    for name in sorted(given, key=lambda name: isinstance(given[name], EXPRESSIONS)):
        known = ITEM_DATATYPES if name == "input" else STORAGE_DATATYPES
        kinds[name] = call.take(name, given[name], known, chunked=True, shares=True)
    call.check_lengths()
    return kinds


@one_shot()
def compress(
    condition: Selectable,
    x: Selectable,
    axis: int | None = None,
    out: np.ndarray | Array | None = None,
    *,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the items of `x` where a condition holds, in order: ``x[condition]``.

    Parameters
    ----------
    condition : numpy.ndarray, Array, ChunkedArray or expression
        Of one dimension, or of the shape of `x`.
    x : numpy.ndarray, Array, ChunkedArray or expression
        Of any datatype; an expression of one dimension.
    axis : int, optional
        Of several dimensions of an Array only with the condition on the host.
    out : numpy.ndarray or Array, optional
        An Array has room for all items.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        An Array carries its count.

    Raises
    ------
    BoundsError
        If the condition holds beyond the end of `x`; one on the GPU must not be longer.
    AxisError
        If `axis` is out of range.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.array([3, 1, 4, 1, 5], dtype=np.uint32))
    >>> gw.compress(x > 2, x).to_numpy()
    array([3, 4, 5], dtype=uint32)
    >>> gw.compress([True, False], np.array([[1, 2], [3, 4]]), axis=1)
    array([[1],
           [3]])
    """
    made = Call("gw.compress()", device, {"input": "x", "flags": "condition"})
    call, items = made.name, made.items("input", x, chunked=True, fuses=True)
    flags = made.items("flags", condition, chunked=True, fuses=True)
    if axis is not None:
        along = one_axis(call, axis, 1 if isinstance(items, EXPRESSIONS) else items.ndim)
        if not isinstance(items, EXPRESSIONS) and items.ndim > 1:
            return deliver(call, _compress_along(call, flags, items, along, device), out, "back")
    if not isinstance(items, EXPRESSIONS) and items.ndim != 1:
        if not isinstance(flags, EXPRESSIONS) and items.ndim and flags.shape == items.shape:
            flags = flags.ravel()
        items = items.ravel()
    items, flags = _of_one_length(call, items, flags)
    kinds = _taken(made, {"input": items, "flags": flags})
    options = {"where": kinds["flags"]} if isinstance(kinds["flags"], Flat) else {"flag_dtype": kinds["flags"]}
    primitive = made.primitive(Select, kinds["input"], **options)
    if not made.on_gpu:
        return deliver(call, made.results(primitive)["output"], out, "back")
    if out is not None and not isinstance(out, Array):
        raise ArgumentError(
            f"{call}: out is {type(out).__name__}, but the result stays on the GPU, as an input is there; give an Array"
        )
    return made.run(primitive, output=out)["output"]


def _of_one_length(call: str, items: Any, flags: Any) -> tuple[Any, Any]:
    """Return items and a condition of one dimension without what one of them has more, as far as numpy leaves it out.

    What is in chunks, or counted on the GPU, is as long as the other.
    """
    length, known = _length_of(call, items), _length_of(call, flags)
    if length is None or known is None or length == known:
        return items, flags
    if known < length and not isinstance(items, EXPRESSIONS):
        return items[:known], flags
    if isinstance(flags, np.ndarray):
        _check_chosen(call, np.flatnonzero(flags), length)
        chosen = np.zeros(length, bool)
        chosen[:known] = flags[:length]
        return items, chosen
    if known > length:
        raise BoundsError(f"{call}: condition has {known} items, but x has {length}; give condition[:{length}]")
    raise LengthError(
        f"{call}: condition has {known} items, but x, an expression, has {length}; give as many, or gw.asarray(x)"
    )


def _length_of(call: str, each: Any) -> int | None:
    """Return how many items an argument of one dimension has; None where that is not known, or it has several."""
    if isinstance(each, EXPRESSIONS):
        flat = flat_of(each)
        is_counted = any(array.count is not None for array in stored_leaves(call, flat).values())
        shape = flat.shape or ()
        return None if is_counted or len(shape) != 1 else shape[0]
    counted = isinstance(each, ChunkedArray) or (isinstance(each, Array) and each.count is not None)
    return None if counted or each.ndim != 1 else each.size


def _compress_along(call: str, flags: Any, items: Any, axis: int, device: wgpu.GPUDevice | None) -> Any:
    """Return what a condition on the host chooses along an axis of an array of several dimensions."""
    if isinstance(flags, (*EXPRESSIONS, Items)):
        raise ArgumentError(
            f"{call}: x has shape {items.shape}, and only the GPU knows how much the condition chooses along axis "
            f"{axis}; give condition.to_numpy(), or gw.take(x, gw.flatnonzero(condition).trim(), {axis})"
        )
    if flags.ndim != 1:
        raise ArgumentError(f"{call}: condition has shape {flags.shape}, but must have one dimension")
    chosen = np.flatnonzero(flags)
    _check_chosen(call, chosen, items.shape[axis])
    return take(items, chosen.astype(np.uint32), axis, device=device)


def _check_chosen(call: str, chosen: np.ndarray, length: int) -> None:
    """Raise where a condition holds beyond the items."""
    if chosen.size and chosen[-1] >= length:
        raise BoundsError(f"{call}: condition[{chosen[-1]}] is true, but x has {length} items there")


@one_shot()
def extract(condition: Selectable, x: Selectable, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items where a condition holds, both taken in one dimension.

    Parameters
    ----------
    condition, x, device
        As for `compress`.

    Returns
    -------
    numpy.ndarray or Array
        Of one dimension; an Array carries its count.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.extract([True, False, True], [1, 2, 3])
    array([1, 3])
    """
    call = Call("gw.extract()")
    return compress(call.ravel("condition", condition), call.ravel("x", x), device=device)


@one_shot()
def delete(x: HostItems | Array, indices: Any, axis: int | None = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return an array without the items at some indices.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Of any shape and datatype.
    indices : int, slice, numpy.ndarray or Array
        Those of an Array that are out of range are left out.
    axis : int, optional
        Of several dimensions only with indices on the host.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        An Array carries its count where the indices are an Array.

    Raises
    ------
    BoundsError
        If an index on the host is out of range.
    LengthError
        If a mask has another shape than the items.
    AxisError
        If `axis` is.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.delete(np.array([5, 6, 7, 8]), [0, -1])
    array([6, 7])
    """
    call = "gw.delete()"
    items = Call(call).items("x", x)
    if axis is None:
        items, along = items.ravel(), 0
    else:
        along = one_axis(call, axis, items.ndim)
    length = items.shape[along]
    if isinstance(indices, Array):
        if items.ndim > 1:
            raise ArgumentError(
                f"{call}: x has shape {items.shape}, and only the GPU knows the indices; give indices.to_numpy()"
            )
        if indices.dtype.kind == "b" and indices.size != length:
            raise LengthError(f"{call}: indices is a mask of {indices.size} items, but x has {length}")
        if indices.dtype.kind == "b":
            return compress(~indices, items, device=device)
        keeps = ones(length, "bool", device_of(x, indices, device=device))
        put(keeps, indices, False)
        return compress(keeps, items, device=device)
    keeps = np.ones(length, bool)
    given = indices if isinstance(indices, slice) else argument_array(call, "indices", indices)
    if isinstance(given, np.ndarray) and given.dtype.kind == "b" and given.shape != (length,):
        raise LengthError(f"{call}: indices is a mask of shape {given.shape}, but x has {length} items along the axis")
    if isinstance(given, np.ndarray) and given.dtype.kind != "b":
        given = index_array(call, "indices", indices)
    try:
        keeps[given] = False
    except (IndexError, OverflowError) as error:
        raise BoundsError(f"{call}: {error}") from None
    return take(items, np.flatnonzero(keeps).astype(np.uint32), along, device=device)


@one_shot()
def flatnonzero(x: Selectable, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the positions of the items that are not 0, in order.

    Parameters
    ----------
    x : numpy.ndarray, Array, ChunkedArray or expression
        A condition, ``x > 3``, is not stored.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of intp for numpy, of u32 with its count for an Array.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.flatnonzero(np.array([0, 7, 0, 2], dtype=np.uint32))
    array([1, 3])
    """
    call = Call("gw.flatnonzero()", device)
    kind = call.take("input", x, shape="flat", chunked=True)
    return call.result(call.run(call.primitive(FlatNonzero, kind))["output"], np.intp)


@one_shot()
def nonzero(x: Selectable, *, device: wgpu.GPUDevice | None = None) -> tuple[Any, ...]:
    """Return the positions of the items that are not 0, with an array for each dimension; see `flatnonzero`.

    An expression has one dimension.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nonzero(np.array([[0, 3], [5, 0]]))
    (array([0, 1]), array([1, 0]))
    """
    call = "gw.nonzero()"
    if isinstance(x, FUSED) and not isinstance(x, Array):
        check_one_dimension(call, flat_of(x))
        return (flatnonzero(x, device=device),)
    shape = Call(call).items("x", x, chunked=True).shape
    if not shape:
        raise ArgumentError(f"{call}: x is a single item; give an array of one dimension or more")
    found = flatnonzero(x, device=device)
    if len(shape) == 1:
        return (found,)
    if isinstance(found, np.ndarray):
        return np.unravel_index(found, shape)
    inner = [prod(shape[k + 1 :]) for k in range(len(shape))]
    return tuple(asarray(found // max(each, 1) % max(length, 1)) for each, length in zip(inner, shape, strict=True))


def count_selected(call: str, x: Selectable, device: wgpu.GPUDevice | None) -> Any:
    """Return how many items of one dimension are not 0: an int, or an Array of one u32 where `x` is on the GPU."""
    made = Call(call, device)
    kind = made.take("input", x, chunked=True)
    count = made.run(made.primitive(FlatNonzero, kind, size=0))["count"]
    return count.reshape(()) if made.on_gpu else int(count.item())


@one_shot()
def partition_by(
    x: Selectable, where: Selectable | tuple[Selectable, Selectable], *, device: wgpu.GPUDevice | None = None
) -> tuple[Any, ...]:
    """Split items into those where a condition holds and the rest, or by two conditions into three parts.

    Parameters
    ----------
    x : numpy.ndarray, Array, ChunkedArray or expression
        Of one dimension.
    where : numpy.ndarray, Array, ChunkedArray or expression, or a tuple of two
        Of two the first that holds decides.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    tuple of numpy.ndarray or of Array
        Parts are in the order of `x`. Arrays carry their counts.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.array([3, 1, 4, 1, 5], dtype=np.uint32)
    >>> gw.partition_by(x, x > 2)
    (array([3, 4, 5], dtype=uint32), array([1, 1], dtype=uint32))
    """
    call = "gw.partition_by()"
    conditions = where if isinstance(where, tuple) else (where,)
    if not 1 <= len(conditions) <= 2:
        raise ArgumentError(f"{call}: where has {len(conditions)} conditions; give one, or a tuple of two")
    made = Call(call, device, {"input": "x", "flags": "where", "second_flags": "where[1]"})
    kinds = _taken(made, {"input": x} | dict(zip(("flags", "second_flags"), conditions, strict=False)))
    primitive = made.primitive(Partition, kinds.pop("input"), where=tuple(kinds.values()))
    outputs = made.results(primitive)
    return tuple(outputs[name] for name in primitive.fields[0].outputs)


@one_shot()
def run_length_encode(x: Selectable, *, equal_nan: bool = True, device: wgpu.GPUDevice | None = None) -> RunLengths:
    """Return the runs of equal items: the item, where it begins, and how often it comes.

    Parameters
    ----------
    x : numpy.ndarray, Array, ChunkedArray or expression
    equal_nan : bool, default True
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    RunLengths
        ``values``, ``starts`` and ``lengths``.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.run_length_encode(np.array([3, 3, 1]))
    RunLengths(values=array([3, 1]), starts=array([0, 2]), lengths=array([2, 1]))
    """
    call = Call("gw.run_length_encode()", device, {"keys": "x"})
    kind = call.take("keys", x, chunked=True)
    outputs = call.run(call.primitive(RunLength, kind, equal_nan=bool(equal_nan)))
    starts, lengths = (call.result(outputs[name], np.intp) for name in ("starts", "lengths"))
    return RunLengths(call.result(outputs["values"]), starts, lengths)


# ---- unique items, of sorted ones


def _unique(
    call: str,
    x: Any,
    device: wgpu.GPUDevice | None,
    *,
    equal_nan: bool,
    index: bool = False,
    inverse: bool = False,
    counts: bool = False,
) -> dict[str, Any]:
    """Return the sorted unique items, and what else is asked for."""
    made = Call(call, device)
    items = made.items("x", x)
    shape, dtype = items.shape, made.take("x", items, shape="flat")
    keys = asarray(made.arrays["x"], made.device)
    found: dict[str, Any] = {}
    if index or inverse:
        pairs = made.primitive(SortPairs, dtype, "u32")
        order = arange(keys.size, dtype="u32", device=made.device)
        run = pairs.run_once(keys=keys, values=order)
        ordered, places = run["output_keys"], run["output_values"]
    else:
        ordered, places = made.primitive(Sort, dtype).run_once(input=keys)["output"], None
    if index:
        unique_pairs = made.primitive(Unique, dtype, "u32", equal_nan=equal_nan)
        run = unique_pairs.run_once(keys=ordered, values=places)
        found |= {"values": run["output_keys"], "indices": run["output_values"]}
    else:
        primitive = made.primitive(Unique, dtype, equal_nan=equal_nan)
        found["values"] = primitive.run_once(keys=ordered)["output"]
    if inverse:
        numbers = made.primitive(RunNumbers, dtype, equal_nan=equal_nan)
        output = numbers.run_once(keys=ordered, places=places)["output"]
        found["inverse_indices"] = output.viewed_as(shape) if len(shape) != 1 else output
    if counts:
        lengths = made.primitive(RunLength, dtype, outputs=("lengths",), equal_nan=equal_nan)
        found["counts"] = lengths.run_once(keys=ordered)["lengths"]
    return {name: made.result(output, None if name == "values" else np.intp) for name, output in found.items()}


@one_shot()
def unique_values(x: HostItems | Array, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the unique items, sorted: every NaN is one of its own.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Of any shape and datatype.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of one dimension; an Array carries its count.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.unique_values(np.array([3, 1, 3, 2, 1], dtype=np.uint32))
    array([1, 2, 3], dtype=uint32)
    """
    return _unique("gw.unique_values()", x, device, equal_nan=False)["values"]


@one_shot()
def unique_counts(x: HostItems | Array, *, device: wgpu.GPUDevice | None = None) -> UniqueCounts:
    """Return the unique items, sorted, and how often each occurs; see `unique_values`."""
    return UniqueCounts(**_unique("gw.unique_counts()", x, device, equal_nan=False, counts=True))


@one_shot()
def unique_inverse(x: HostItems | Array, *, device: wgpu.GPUDevice | None = None) -> UniqueInverse:
    """Return the unique items, sorted, and for each item of `x` the index of its equal; see `unique_values`.

    ``values[inverse_indices]`` is `x`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.unique_inverse(np.array([5, 1, 5])).inverse_indices
    array([1, 0, 1])
    """
    return UniqueInverse(**_unique("gw.unique_inverse()", x, device, equal_nan=False, inverse=True))


@one_shot()
def unique_all(x: HostItems | Array, *, device: wgpu.GPUDevice | None = None) -> UniqueAll:
    """Return what `unique_inverse` and `unique_counts` do, and where each item occurs first."""
    found = _unique("gw.unique_all()", x, device, equal_nan=False, index=True, inverse=True, counts=True)
    return UniqueAll(**found)


@one_shot()
def unique(
    x: HostItems | Array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the unique items, sorted.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Of any shape and datatype.
    return_index, return_inverse, return_counts : bool, default False
    axis : int, optional
        Unique rows are not here.
    equal_nan : bool, default True
    sorted : bool, default True
        The result always is.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array, or tuple of them
        Arrays carry their count, but for the inverse.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.unique(np.array([3, 1, 3], dtype=np.uint32), return_counts=True)
    (array([1, 3], dtype=uint32), array([1, 2]))
    """
    asked: Sequence[tuple[str, bool]] = (
        ("indices", return_index), ("inverse_indices", return_inverse), ("counts", return_counts),
    )  # fmt: skip
    call = "gw.unique()"
    if axis is not None:
        ndim = np.ndim(cast(Any, x))
        if one_axis(call, axis, ndim) >= 0 and ndim > 1:
            raise ArgumentError(
                f"{call}: axis={axis!r} of {ndim} dimensions, but rows are not compared here; leave it out for items, "
                f"or find rows with numpy"
            )
    nullable = None if isinstance(x, Array) or not equal_nan else integers_and_nulls(x)
    if nullable is not None and not any(wanted for _, wanted in asked):
        values = np.append(unique(nullable[0][~nullable[1]], device=device), nullable[0][:1])
        return with_missing(values, np.arange(values.size) == values.size - 1)
    found = _unique(
        call, x, device, equal_nan=bool(equal_nan), index=bool(return_index), inverse=bool(return_inverse),
        counts=bool(return_counts),
    )  # fmt: skip
    names = [name for name, wanted in asked if wanted]
    return (found["values"], *(found[name] for name in names)) if names else found["values"]
