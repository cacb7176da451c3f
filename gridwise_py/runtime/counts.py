"""How many items of a call's inputs count: ``n=``, and the counts that Arrays carry."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import wgpu

from ..errors import ArgumentError
from ..planning.layout import COUNT
from ..planning.signature import Signature
from .array import Array
from .chunked_array import ChunkedArray


def has_count(arrays: Mapping[str, Any]) -> bool:
    """Whether a call says how many items count: by ``n=``, or by an Array that carries its count."""
    for array in arrays.values():  # half the time of any(), in each call
        if type(array) is Array and array.count is not None:
            return True
    return COUNT in arrays


def with_count(signature: Signature, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call with its count as an Array, or with inputs that are cut to a number of items.

    Counted Arrays bring their count along. Nothing is read: the count stays on the GPU.

    Raises
    ------
    ArgumentError
        If the primitive takes no count, two of them differ, or they cannot be applied to the inputs.
    """
    arrays = _with_own_counts(signature, arrays)
    own = COUNT in signature.arguments  # a kernel of the caller's may have an argument of that name
    n = None if own else arrays.get(COUNT)
    counts = {
        name: array.count
        for name, array in arrays.items()
        if type(array) is Array
        and array.count is not None
        and name in signature.inputs
        and f"{name}_count" not in signature.arguments
    }
    if not counts and n is None:
        return arrays
    if not signature.takes_count:
        _refuse(signature, arrays, counts)
    inputs = {name: arrays[name] for name in signature.inputs if arrays.get(name) is not None}
    missing = [name for name in signature.inputs if name not in inputs and signature.is_counted(name)]
    if n is not None and missing:
        raise ArgumentError(
            f"{signature.primitive}: n= is about the inputs of the same call; give "
            f"{', '.join(f'{name}=' for name in missing)} with it"
        )
    if n is not None and not isinstance(n, (Array, wgpu.GPUBuffer)):
        return _cut(signature, arrays, counts, n)
    for name in counts:
        if not signature.is_counted(name):
            raise ArgumentError(
                f"{signature.primitive}: only the GPU knows how many items {name} has, {arrays[name]!r}, but any of "
                f"them may be read; give {name}.trim(), which reads the count of 4 bytes"
            )
    _check_one_count(signature, counts, n)
    for name, value in inputs.items():
        if isinstance(value, ChunkedArray):
            raise ArgumentError(
                f"{signature.primitive}: {name} is a ChunkedArray, and n= on the GPU is for Arrays; read the count and "
                f"give {name}[:count]"
            )
        if isinstance(value, Array) and value.ndim != 1 and signature.is_counted(name):
            raise ArgumentError(
                f"{signature.primitive}: n= counts items along one dimension, but {name} has shape {value.shape}; give "
                f"{name}.ravel(), which copies nothing"
            )
    return arrays if n is not None else {**arrays, COUNT: next(iter(counts.values()))}


def _with_own_counts(signature: Signature, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments with the counts of inputs whose counts are arguments of their own.

    Raises
    ------
    ArgumentError
        If one of these is not the count that the input carries.
    """
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        own = f"{name}_count"
        if own not in signature.arguments or type(array) is not Array or array.count is None:
            continue
        given = arrays.get(own)
        if isinstance(given, Array) and given.place != array.count.place:
            raise ArgumentError(
                f"{signature.primitive}: {own}= is {given!r}, but {name} carries another count, {array.count!r}; leave "
                f"out {own}=, or give {name}.trim()"
            )
        found[own] = array.count
    return {**arrays, **found} if found else arrays


def _refuse(signature: Signature, arrays: Mapping[str, Any], counts: Mapping[str, Array]) -> None:
    """Raise for a primitive whose calls have no count."""
    if not counts:
        raise ArgumentError(
            f"{signature.primitive} takes no n=: give slices of its inputs, or, where only the GPU knows the number, "
            f"counted.trim(), which reads it"
        )
    name = next(iter(counts))
    raise ArgumentError(
        f"{signature.primitive}: only the GPU knows how many items {name} has, {arrays[name]!r}; give {name}.trim(), "
        f"which reads the count of 4 bytes"
    )


def _check_one_count(signature: Signature, counts: Mapping[str, Array], n: Any) -> None:
    """Raise where a call has two counts."""
    if n is not None and not isinstance(n, Array):
        n = None if not counts else Array(n, "u32")
    known = {**counts, **({} if n is None else {COUNT: n})}
    places = {name: count.place for name, count in known.items()}
    if len(set(places.values())) <= 1:
        return
    first, *others = known
    other = next(name for name in others if places[name] != places[first])
    if other == COUNT:
        raise ArgumentError(
            f"{signature.primitive}: n= is {n!r}, but {first} carries another count, {known[first]!r}; leave out n=, "
            f"or give {first}.trim()"
        )
    raise ArgumentError(
        f"{signature.primitive}: {first} and {other} have different counts on the GPU, {known[first]!r} and "
        f"{known[other]!r}; give {first}.trim() and {other}.trim(), which read them"
    )


def _cut(signature: Signature, arrays: Mapping[str, Any], counts: Mapping[str, Array], n: Any) -> Mapping[str, Any]:
    """Return the arguments with their inputs cut to a number of items that the host knows."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 0:
        raise ArgumentError(
            f"{signature.primitive}: n= must be an int of at least 0, or an Array of one u32, not {n!r}"
        )
    if counts:
        name = next(iter(counts))
        raise ArgumentError(
            f"{signature.primitive}: n={n}, but {name} has a count on the GPU, {arrays[name]!r}; leave out n=, or give "
            f"{name}[:{n}], of which the GPU takes those that count"
        )
    cut = {k: v for k, v in arrays.items() if k != COUNT}
    for name in signature.inputs:
        if not signature.is_counted(name):
            continue
        array = arrays[name]
        if isinstance(array, wgpu.GPUBuffer):
            array = Array(array, signature.datatype(name) or "u32")
        if not isinstance(array, (Array, ChunkedArray)):
            continue  # refused by the checks of all arguments
        if array.ndim != 1:
            raise ArgumentError(
                f"{signature.primitive}: n= counts items along one dimension, but {name} has shape {array.shape}; give "
                f"{name}.ravel(), which copies nothing"
            )
        cut[name] = array[: int(n) * signature.arguments[name].components]
    return cut
