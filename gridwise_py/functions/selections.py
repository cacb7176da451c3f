"""One-shot functions that select: compress, nonzero, partitions, runs and unique items.

With numpy arrays the results are numpy arrays, cut to what there is; indices are ``intp``. With an Array or an
expression of Arrays they are Arrays on the GPU that carry their count, and nothing is read back; indices are u32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError
from ..primitives import Partition, RunLength, Select, Sort, SortPairs, Unique
from ..primitives.fusion import EXPRESSIONS, FUSED, flat_of
from ..primitives.one_shot import (
    HostItems,
    argument_array,
    argument_datatype,
    argument_items,
    check_one_dimension,
    check_one_length,
    device_of,
    kept_primitive,
    raveled,
    stored_leaves,
)
from ..primitives.select import FlatNonzero
from ..primitives.unique import RunNumbers
from ..runtime.array import Array, asarray
from ..runtime.chunked_array import ChunkedArray, Items
from ..types.datatype import ITEM_DATATYPES, STORAGE_DATATYPES, Datatype
from ..types.expression import Expression
from ..types.program import Flat
from .arrays import arange

__all__ = [
    "RunLengths", "UniqueAll", "UniqueCounts", "UniqueInverse", "compress", "count_selected", "flatnonzero", "nonzero",
    "partition_by", "run_length_encode", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip

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


class _Inputs:
    """The inputs of a call: for each a datatype or a program, and the arrays by the names of arguments.

    Parameters
    ----------
    call : str
        For messages.
    given : mapping from str to (object, mapping)
        By the names of the primitive's inputs: what the caller gave, and the datatypes that are known.
    """

    def __init__(self, call: str, given: Mapping[str, tuple[Any, Mapping[str, Datatype]]]):
        self.kinds: dict[str, Any] = {}
        self._arrays: dict[str, Any] = {}
        places: dict[tuple[Any, ...], str] = {}
        for name, (value, known) in given.items():
            if isinstance(value, FUSED) and not isinstance(value, Array):
                continue
            items = argument_items(call, name, value, chunked=True)
            self.kinds[name] = argument_datatype(call, name, value, items.dtype, known)
            self._arrays[name] = items
            if isinstance(items, Array):
                places[items.place()] = name
        for name, (value, _) in given.items():
            if isinstance(value, FUSED) and not isinstance(value, Array):
                self.kinds[name] = self._program(call, name, value, places)
        check_one_length(call, {name: items.size for name, items in self._arrays.items() if name in given})

    def _program(self, call: str, name: str, value: Any, places: dict[tuple[Any, ...], str]) -> Flat:
        """Return an expression whose Arrays are arguments of the primitive, those that are inputs already as such."""
        flat = flat_of(value)
        stored = stored_leaves(call, flat)
        names = {leaf: places.setdefault(array.place(), f"{name}_{leaf}") for leaf, array in stored.items()}
        self._arrays |= {names[leaf]: array for leaf, array in stored.items()}
        return flat.renamed(names).without_arrays()

    @property
    def on_gpu(self) -> bool:
        """Whether results stay on the GPU, because an input is there."""
        return any(isinstance(items, (Array, ChunkedArray)) for items in self._arrays.values())

    def device(self, device: wgpu.GPUDevice | None) -> wgpu.GPUDevice:
        """Return the device of the call."""
        return device_of(*self._arrays.values(), device=device)

    def run(self, primitive: Any) -> dict[str, Array]:
        """Return the outputs of a primitive; what is not on the GPU is uploaded."""
        arrays = {
            name: items if isinstance(items, ChunkedArray) else asarray(items, primitive.device)
            for name, items in self._arrays.items()
        }
        return primitive.bind(**arrays).execute().outputs

    def result(self, output: Array, *, index: bool = False) -> Any:
        """Return an output as the caller gets it."""
        if self.on_gpu:
            return output
        items = output.to_numpy()
        return items.astype(np.intp) if index else items


@explained()
def compress(condition: Selectable, x: Selectable, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items of `x` where a condition holds, in order; numpy's ``x[condition]``.

    Parameters
    ----------
    condition : numpy.ndarray, Array, ChunkedArray or expression
        Of the shape of `x`; what is not 0 counts as true.
    x : numpy.ndarray, Array, ChunkedArray or expression
        Of any datatype; an expression of one dimension.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        An Array carries its count, and nothing is read back: ``trim()`` reads it.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.array([3, 1, 4, 1, 5], dtype=np.uint32))
    >>> gw.compress(x > 2, x).to_numpy()
    array([3, 4, 5], dtype=uint32)
    """
    call = "gw.compress()"
    if not isinstance(x, EXPRESSIONS) and not isinstance(condition, EXPRESSIONS):
        x, condition = (
            each if isinstance(each, Items) else argument_array(call, name, each)
            for name, each in (("x", x), ("condition", condition))
        )
        if x.shape == condition.shape and len(x.shape) != 1:
            x, condition = x.ravel(), condition.ravel()
    inputs = _Inputs(call, {"input": (x, ITEM_DATATYPES), "flags": (condition, STORAGE_DATATYPES)})
    flags = inputs.kinds["flags"]
    options = {"where": flags} if isinstance(flags, Flat) else {"flag_dtype": flags}
    return inputs.result(
        inputs.run(kept_primitive(Select, inputs.device(device), inputs.kinds["input"], **options))["output"]
    )


@explained()
def flatnonzero(x: Selectable, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the positions of the items that are not 0, in order, like numpy's flatnonzero.

    Parameters
    ----------
    x : numpy.ndarray, Array, ChunkedArray or expression
        Of any shape; positions are those in C order. A condition such as ``x > 3`` of an Array is an expression:
        nothing is stored for it.
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
    call = "gw.flatnonzero()"
    inputs = _Inputs(call, {"input": (raveled(call, "x", x), STORAGE_DATATYPES)})
    primitive = kept_primitive(FlatNonzero, inputs.device(device), inputs.kinds["input"])
    return inputs.result(inputs.run(primitive)["output"], index=True)


@explained()
def nonzero(x: Selectable, *, device: wgpu.GPUDevice | None = None) -> tuple[Any, ...]:
    """Return the positions of the items that are not 0, as a tuple with an array for each dimension; see `flatnonzero`.

    An Array or an expression has one dimension.
    """
    call = "gw.nonzero()"
    if isinstance(x, (Array, ChunkedArray)):
        argument_items(call, "x", x, chunked=True)
        return (flatnonzero(x, device=device),)
    if isinstance(x, FUSED):
        flat = flat_of(x)
        check_one_dimension(call, flat, stored_leaves(call, flat))
        return (flatnonzero(x, device=device),)
    shape = argument_array(call, "x", x).shape
    if not shape:
        raise ArgumentError(f"{call}: x is a single item; give an array of one dimension or more")
    found = cast(np.ndarray, flatnonzero(x, device=device))
    return (found,) if len(shape) == 1 else np.unravel_index(found, shape)


def count_selected(call: str, x: Selectable, device: wgpu.GPUDevice | None) -> Any:
    """Return how many items of one dimension are not 0: an int, or an Array of one u32 where `x` is on the GPU."""
    inputs = _Inputs(call, {"input": (x, STORAGE_DATATYPES)})
    primitive = kept_primitive(FlatNonzero, inputs.device(device), inputs.kinds["input"], size=0)
    count = inputs.run(primitive)["count"]
    return count.reshape(()) if inputs.on_gpu else int(count.item())


@explained()
def partition_by(
    x: Selectable, where: Selectable | tuple[Selectable, Selectable], *, device: wgpu.GPUDevice | None = None
) -> tuple[Any, ...]:
    """Split the items of `x` into those where a condition holds and the rest, or by two conditions into three parts.

    Parameters
    ----------
    x : numpy.ndarray, Array, ChunkedArray or expression
        Of one dimension and any datatype.
    where : numpy.ndarray, Array, ChunkedArray or expression, or a tuple of two
        The first condition that holds for an item decides.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    tuple of numpy.ndarray or of Array
        Two or three parts, each in the order of `x`. Arrays carry their counts.

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
    names = ("flags", "second_flags")[: len(conditions)]
    given = {name: (each, STORAGE_DATATYPES) for name, each in zip(names, conditions, strict=True)}
    inputs = _Inputs(call, {"input": (x, ITEM_DATATYPES), **given})
    flags = tuple(inputs.kinds[name] for name in names)
    primitive = kept_primitive(Partition, inputs.device(device), inputs.kinds["input"], where=flags)
    outputs = inputs.run(primitive)
    return tuple(inputs.result(outputs[name]) for name in primitive.fields[0].outputs)


@explained()
def run_length_encode(x: Selectable, *, equal_nan: bool = True, device: wgpu.GPUDevice | None = None) -> RunLengths:
    """Return the runs of equal items: the item, the position of the first one, and how many there are.

    Parameters
    ----------
    x : numpy.ndarray, Array, ChunkedArray or expression
        Of one dimension; bool or numbers.
    equal_nan : bool, default True
        Whether NaN equals NaN. −0 equals +0.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    RunLengths
        ``values``, ``starts`` and ``lengths``; the last two of intp for numpy, of u32 for Arrays, which carry their
        count.
    """
    inputs = _Inputs("gw.run_length_encode()", {"keys": (x, STORAGE_DATATYPES)})
    primitive = kept_primitive(RunLength, inputs.device(device), inputs.kinds["keys"], equal_nan=bool(equal_nan))
    outputs = inputs.run(primitive)
    return RunLengths(
        inputs.result(outputs["values"]),
        inputs.result(outputs["starts"], index=True),
        inputs.result(outputs["lengths"], index=True),
    )


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
    on_gpu = isinstance(x, Array)
    if isinstance(x, FUSED) and not on_gpu:
        raise ArgumentError(f"{call}: x is an expression, and a sort moves items; give {call[:-1]}gw.asarray(x))")
    items = x if on_gpu else argument_array(call, "x", x)
    if isinstance(items, ChunkedArray):
        raise ArgumentError(f"{call}: x is {x!r}, but must be one Array")
    shape = items.shape
    dtype = argument_datatype(call, "x", x, items.dtype, Sort.datatypes)
    device = device_of(x, device=device)
    keys = asarray(items if items.ndim == 1 else items.ravel(), device)
    found: dict[str, Any] = {}
    if index or inverse:
        pairs = kept_primitive(SortPairs, device, dtype, "u32")
        order = arange(keys.size, dtype="u32", device=device)
        run = pairs.bind(keys=keys, values=order).execute().outputs
        ordered, places = run["output_keys"], run["output_values"]
    else:
        ordered, places = kept_primitive(Sort, device, dtype).bind(input=keys).execute().output, None
    if index:
        unique_pairs = kept_primitive(Unique, device, dtype, "u32", equal_nan=equal_nan)
        run = unique_pairs.bind(keys=ordered, values=places).execute().outputs
        found |= {"values": run["output_keys"], "indices": run["output_values"]}
    else:
        primitive = kept_primitive(Unique, device, dtype, equal_nan=equal_nan)
        found["values"] = primitive.bind(keys=ordered).execute().outputs["output"]
    if inverse:
        numbers = kept_primitive(RunNumbers, device, dtype, equal_nan=equal_nan)
        output = numbers.bind(keys=ordered, places=places).execute().outputs["output"]
        found["inverse_indices"] = output.viewed_as(shape) if len(shape) != 1 else output
    if counts:
        lengths = kept_primitive(RunLength, device, dtype, outputs=("lengths",), equal_nan=equal_nan)
        found["counts"] = lengths.bind(keys=ordered).execute().outputs["lengths"]
    if on_gpu:
        return found
    return {
        name: array.to_numpy() if name == "values" else array.to_numpy().astype(np.intp)
        for name, array in found.items()
    }


@explained()
def unique_values(x: HostItems | Array, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the unique items of `x`, sorted, as the array API standard has it: every NaN is one of its own.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Of any shape, and a datatype that `sort` takes. −0 equals +0.
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


@explained()
def unique_counts(x: HostItems | Array, *, device: wgpu.GPUDevice | None = None) -> UniqueCounts:
    """Return the unique items of `x`, sorted, and how often each occurs; see `unique_values`."""
    return UniqueCounts(**_unique("gw.unique_counts()", x, device, equal_nan=False, counts=True))


@explained()
def unique_inverse(x: HostItems | Array, *, device: wgpu.GPUDevice | None = None) -> UniqueInverse:
    """Return the unique items of `x`, sorted, and for each item of `x` the index of its equal; see `unique_values`.

    ``values[inverse_indices]`` is `x`, and ``inverse_indices`` has its shape.
    """
    return UniqueInverse(**_unique("gw.unique_inverse()", x, device, equal_nan=False, inverse=True))


@explained()
def unique_all(x: HostItems | Array, *, device: wgpu.GPUDevice | None = None) -> UniqueAll:
    """Return the unique items of `x`, sorted, where each occurs first, the indices of `unique_inverse`, and counts.

    See `unique_values`.
    """
    found = _unique("gw.unique_all()", x, device, equal_nan=False, index=True, inverse=True, counts=True)
    return UniqueAll(**found)


@explained()
def unique(
    x: HostItems | Array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    equal_nan: bool = True,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the unique items of `x`, sorted, like numpy's unique without an axis.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Of any shape, and a datatype that `sort` takes. −0 equals +0.
    return_index, return_inverse, return_counts : bool, default False
        Also return where each occurs first; for each item of `x` the index of its equal; how often each occurs.
    equal_nan : bool, default True
        Whether all NaN are one item.
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
    found = _unique(
        "gw.unique()", x, device, equal_nan=bool(equal_nan), index=bool(return_index), inverse=bool(return_inverse),
        counts=bool(return_counts),
    )  # fmt: skip
    names = [name for name, wanted in asked if wanted]
    return (found["values"], *(found[name] for name in names)) if names else found["values"]
