"""From a caller's arrays to a checked call: one visit of the primitive's signature, with every check on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import wgpu

from ..call_errors import no_argument
from ..errors import ArgumentError, BufferUsageError, DatatypeError, LengthError
from ..planning.layout import COUNT, Layout
from ..planning.signature import COUNT_ARGUMENT, Argument, Signature, UpTo
from ..types.capabilities import Capabilities
from ..types.datatype import Datatype
from .argument_layout import bind_layout
from .array import Array, count_items, new_array
from .chunked_array import ChunkedArray, Items, check_usable
from .context import context_of
from .executor import BufferRange
from .shared_items import check_overlaps

#: Of a call that was checked before: its key, what the caller gave, and the outputs. It begins as a `ParsedCall` does.
KnownArguments: TypeAlias = tuple[tuple[Any, ...], Mapping[str, Any], dict[str, Any]]
KEY, GIVEN, OUTPUTS = 0, 1, 2  # places in both


class ParsedCall(NamedTuple):
    """The arguments of a call, checked and laid out. Nothing is on the GPU yet but new outputs.

    Attributes
    ----------
    key : tuple
        Equal for calls with the same arrays and values.
    given : dict from str to Array or ChunkedArray
        Those that a caller gave, now or in the call before.
    outputs : dict from str to Array or ChunkedArray
        As callers get them: those that the GPU counts have their count.
    arrays : dict from str to Array or ChunkedArray
        All of them, as kernels see them: outputs are made, or cut to the length of the result.
    values : dict from str to tuple of int
        Words of the arguments that are values.
    layout : Layout
    ranges : dict from str to BufferRange
        By the names of the layout's buffers.
    in_place : bool
        Whether an output shares items with another argument, or is read, too.
    """

    key: tuple[Any, ...]
    given: Mapping[str, Items]
    outputs: dict[str, Any]
    arrays: dict[str, Items]
    values: dict[str, tuple[int, ...]]
    layout: Layout
    ranges: dict[str, BufferRange]
    in_place: bool

    def with_given(self, signature: Signature, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return arguments with those of this call that they leave out; a count only if they leave out all inputs."""
        left_out = {name: array for name, array in self.given.items() if name not in arrays}
        if COUNT in left_out and signature.takes_count and any(name in arrays for name in signature.inputs):
            del left_out[COUNT]
        return {**arrays, **left_out} if left_out else arrays


def call_key(signature: Signature, arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a key that is equal for calls with the same arrays and values."""
    key: list[Any] = []
    for name, value in arrays.items():
        if isinstance(value, Array):
            key += (name, value.place)
        elif isinstance(value, ChunkedArray):
            key += (name, tuple([chunk.place for chunk in value.chunks]))
        elif name in signature.values:
            key += (name, signature.values[name].words(value, f"{signature.primitive}: {name}"))
        else:
            key += (name, value if value is None else (type(value), getattr(value, "uid", None)))
    return tuple(key)


def parse(
    signature: Signature,
    arrays: Mapping[str, Any],
    before: ParsedCall | None,
    device: wgpu.GPUDevice,
    capabilities: Capabilities,
) -> ParsedCall:
    """Check the arguments of a call, make the outputs that are missing, and lay all of them out.

    Parameters
    ----------
    signature : Signature
    arrays : mapping from str to object
        As the caller gave them.
    before : ParsedCall, optional
        The call before, of which come those that are left out.
    device : wgpu.GPUDevice
    capabilities : Capabilities

    Raises
    ------
    ArgumentError
        If something does not fit.
    """
    values = signature.words(arrays, None if before is None else before.values)
    given = _given(signature, arrays, {} if before is None else before.given, device)
    for name, array in given.items():
        _check_array(signature, signature.rule(name), array, device)
    lengths = {name: given[name].size for name in signature.inputs}
    signature.check_lengths(lengths)
    if COUNT in given and signature.takes_count and given[COUNT].size != 1:
        raise LengthError(f"{signature.primitive}: n has {given[COUNT].size} items, but takes 1")
    signature.check_shapes(_shapes(signature, given))
    used = dict(given)
    for name in signature.outputs:
        used[name] = _output(signature, name, given, lengths, device)
    used = {name: used[name] for name in (*signature.arguments, COUNT) if name in used}
    layout, ranges = bind_layout(used, signature, capabilities)
    in_place = check_overlaps(signature, used)
    outputs = {name: counted(signature, name, used) for name in signature.outputs}
    return ParsedCall(call_key(signature, arrays), given, outputs, used, values, layout, ranges, in_place)


def _given(
    signature: Signature, arrays: Mapping[str, Any], before: Mapping[str, Items], device: wgpu.GPUDevice
) -> dict[str, Items]:
    """Return the arrays that a caller gave, now or in the call before."""
    known = signature.arguments
    count = {COUNT: COUNT_ARGUMENT} if signature.takes_count and COUNT in arrays else {}
    for name in arrays:
        if name not in known and name not in signature.values and name not in count:
            names = [*known, *signature.values, *([COUNT] if signature.takes_count else [])]
            raise no_argument(signature.primitive, name, names)
    given: dict[str, Items] = {}
    for name, argument in (*known.items(), *count.items()):
        value = arrays.get(name)
        if value is not None:
            given[name] = _coerce(name, value, signature.datatype(name), device)
        elif name in before and not (argument.is_output and name in arrays):
            given[name] = before[name]
        elif not argument.is_output:
            raise ArgumentError(f"{signature.primitive} needs {name}=; it was given {', '.join(given) or 'nothing'}")
    return given


def _coerce(name: str, value: Any, datatype: Datatype | None, device: wgpu.GPUDevice) -> Items:
    """Return `value` as an Array: an Array, or a raw GPUBuffer seen through the argument's datatype."""
    if isinstance(value, (Array, ChunkedArray)):
        return value
    if isinstance(value, wgpu.GPUBuffer):
        return Array(value, datatype if datatype is not None else "u32", device=None)
    if isinstance(value, np.ndarray):
        raise DatatypeError(
            f"{name} is a numpy array; primitives work on the GPU: upload it once with "
            f"gridwise_py.asarray({name}, device), or use a one-shot function such as gridwise_py.cumsum"
        )
    raise DatatypeError(
        f"{name} must be an Array, a ChunkedArray or a wgpu.GPUBuffer, not {type(value).__name__}; upload data with "
        f"gw.asarray({name}, device)"
    )


def _check_array(signature: Signature, argument: Argument, array: Items, device: wgpu.GPUDevice) -> None:
    """Raise where an array cannot be an argument."""
    primitive, name, datatype = signature.primitive, argument.name, signature.datatype(argument.name)
    if isinstance(array, ChunkedArray) and not argument.chunked:
        raise ArgumentError(
            f"{primitive}: {name} is {array!r}, but must be one Array, which one binding reaches; "
            f"give an Array of at most {device.limits['max-buffer-size'] // array.datatype.itemsize_bytes} items "
            f"(max-buffer-size {device.limits['max-buffer-size']} bytes), or work on its chunks one by one"
        )
    if datatype is not None and array.datatype != datatype:
        convert = f"convert it on the GPU, {name}.astype('{datatype}')"
        if argument.is_output:
            convert = f"give an Array of {datatype}"
        elif datatype.is_several or array.datatype.is_several:
            convert = "convert the data before they are uploaded"
        made = f", or make a {primitive} for {array.datatype}" if name in signature.inputs[:1] else ""
        remedy = argument.cast or f"{convert}{made}"
        raise DatatypeError(
            f"{primitive}: {name} is of {array.datatype}, but this {primitive} was made for {datatype}; {remedy}"
        )
    if array.device is not device:
        raise BufferUsageError(
            f"{primitive}: {name} lies on another device ({array.device.adapter.info['device']}, device "
            f"{array.device.uid}) than the primitive ({device.adapter.info['device']}, device {device.uid}); copy it "
            f"through numpy: gridwise_py.asarray({name}.to_numpy(), device)"
        )
    check_usable(array, "COPY_SRC" if argument.fed else "STORAGE", f"{primitive}: {name}")


def _shapes(signature: Signature, given: Mapping[str, Items]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays that a caller gave, but for outputs that are cut to the length of the result."""
    return {
        name: array.shape
        for name, array in given.items()
        if not (signature.rule(name).is_output and _is_flat(signature, name, given))
    }


def _is_flat(signature: Signature, name: str, given: Mapping[str, Items]) -> bool:
    """Whether an argument has one dimension, as has the one whose length it has."""
    source = given.get(signature.length_like(name))
    return len(given[name].shape) == 1 and (source is None or len(source.shape) == 1)


def _output(
    signature: Signature, name: str, given: Mapping[str, Items], lengths: Mapping[str, int], device: wgpu.GPUDevice
) -> Items:
    """Return an output: the given one cut to the length of the result, the input that it replaces, or a new one."""
    argument, needed = signature.arguments[name], signature.output_length(name, lengths)
    array = given.get(name)
    if array is not None:
        if needed is None or array.size == needed:
            return array
        if array.size < needed:
            raise LengthError(
                f"{signature.primitive}: {name} has room for {array.size} items, but the result has {needed}; "
                f"give an output of at least {needed} items"
            )
        if len(array.shape) != 1:
            raise LengthError(
                f"{signature.primitive}: {name} has shape {array.shape}, but the result has {count_items(needed)}; "
                f"give an output of that size, or {name}.ravel()"
            )
        return array[:needed]
    if argument.replaces is not None:
        return given[argument.replaces]
    datatype = signature.datatype(name)
    if needed is None or datatype is None:
        like = next((other for other, value in given.items() if isinstance(value, Array)), "x")
        raise ArgumentError(
            f"{signature.primitive} needs {name}=, since its size cannot be told; make it with "
            f"gw.empty_like({like}), or gw.empty(n, datatype, device)"
        )
    return _new_output(signature, name, needed, datatype, given, device)


def _new_output(
    signature: Signature, name: str, needed: int, datatype: Datatype, given: Mapping[str, Items], device: wgpu.GPUDevice
) -> Items:
    """Make an output: in chunks if it may be and an input is, like the input whose length it has."""
    label = f"{signature.primitive} {name}"
    chunked = {other: value for other, value in given.items() if isinstance(value, ChunkedArray)}
    if not signature.arguments[name].chunked or not chunked:
        like = given.get(signature.length_like(name))
        shape = like.shape if isinstance(like, Array) and len(like.shape) != 1 and like.size == needed else None
        return new_array(context_of(device), needed, datatype, label, shape=shape)
    source = signature.length_like(name)
    like = next((value for other, value in chunked.items() if signature.length_like(other) == source), None)
    if like is None:
        return ChunkedArray.empty(needed, datatype, device)
    return ChunkedArray([new_array(context_of(device), chunk.size, datatype, label) for chunk in like.chunks])


def counted(signature: Signature, name: str, arrays: Mapping[str, Items]) -> Items:
    """Return an output as callers get it: with its count, where the GPU counts its items or those of the inputs."""
    array, length, item = arrays[name], signature.arguments[name].length, 0
    if isinstance(length, UpTo):
        count, item = arrays[length.count], length.item
    elif COUNT in arrays and signature.takes_count and signature.is_counted(name):
        count = arrays[COUNT]
    else:
        return array
    assert isinstance(array, Array), "outputs that the GPU counts are not chunked"
    assert isinstance(count, Array), "a count is one item"
    return array.counted_by(count if count.size == 1 else count[item : item + 1])
