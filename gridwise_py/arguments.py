"""From a caller's arrays to a layout and to ranges of buffers, with every check on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import wgpu

from ._wgpu_native import device_of
from .array import Array
from .capabilities import Capabilities
from .datatype import Datatype
from .errors import BufferUsageError, DatatypeError, LengthError, LimitError, OverlapError
from .executor import BoundPlan, BufferRange
from .layout import Layout, Operand

__all__ = ["Argument", "Ready", "bind_layout", "check_array", "check_encoder", "check_overlaps", "coerce", "signature"]


@dataclass(frozen=True)
class Argument:
    """A named argument of a primitive.

    Attributes
    ----------
    name : str
    is_output : bool
    aligned : bool
        Whether the kernel needs the view to start at the binding itself (a user's kernel that knows no offset).
    """

    name: str
    is_output: bool = False
    aligned: bool = False

    def fit(self, primitive: str, array: Array, needed: int) -> Array:
        """Return the first `needed` items of a given output; raise LengthError if it is too small."""
        if array.size < needed:
            raise LengthError(
                f"{primitive}: {self.name} has room for {array.size} items, but the result has {needed}; "
                f"give an output of at least {needed} items"
            )
        return array if array.size == needed else array[:needed]


@dataclass(frozen=True)
class Ready:
    """A call's arguments, checked and bound."""

    key: tuple[Any, ...]
    bound: BoundPlan
    arrays: dict[str, Array]
    outputs: dict[str, Array]
    in_place: bool
    watched: tuple[tuple[list[bool], wgpu.GPUBuffer], ...]

    def shapes(self) -> str:
        """Return names, lengths and datatypes of the arguments."""
        return ", ".join(f"{name} {array.datatype.name}[{array.size}]" for name, array in self.arrays.items())


def coerce(name: str, value: Any, datatype: Datatype | None, device: wgpu.GPUDevice) -> Array:
    """Return `value` as an Array: an Array, or a raw GPUBuffer seen through the argument's datatype."""
    if isinstance(value, Array):
        return value
    if isinstance(value, wgpu.GPUBuffer):
        return Array(value, datatype if datatype is not None else "u32", device=None)
    if isinstance(value, np.ndarray):
        raise DatatypeError(
            f"{name} is a numpy array; primitives work on the GPU: upload it once with "
            f"gridwise_py.asarray({name}, device), or use a one-shot function such as gridwise_py.cumsum"
        )
    raise DatatypeError(f"{name} must be an Array or a wgpu.GPUBuffer, not {type(value).__name__}")


def check_array(primitive: str, name: str, array: Array, datatype: Datatype | None, device: wgpu.GPUDevice) -> None:
    """Raise where an array cannot be an argument."""
    if datatype is not None and array.datatype != datatype:
        raise DatatypeError(
            f"{primitive}: {name} is of {array.datatype}, but this {primitive} was made for {datatype}; convert the "
            f"data with astype(numpy.{datatype.numpy_name}), or make a {primitive} with datatype='{array.datatype}'"
        )
    if array.device is not device:
        raise BufferUsageError(
            f"{primitive}: {name} lies on another device ({array.device.adapter.info['device']}, device "
            f"{array.device.uid}) than the primitive ({device.adapter.info['device']}, device {device.uid}); copy it "
            f"through numpy: gridwise_py.asarray({name}.to_numpy(), device)"
        )
    array._check_usable("STORAGE", f"{primitive}: {name}")


def signature(arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells two calls with the same arrays from others."""
    return tuple(
        (name, value.buffer.uid, value.offset, value.size, value.datatype.name)
        if isinstance(value, Array)
        else (name, getattr(value, "uid", None))
        for name, value in arrays.items()
    )


def check_encoder(name: str, encoder: wgpu.GPUCommandEncoder, device: wgpu.GPUDevice) -> None:
    """Raise BufferUsageError if a caller's encoder is of another device."""
    owner = device_of(encoder)
    if owner is not None and owner is not device:
        raise BufferUsageError(
            f"{name}: the encoder is of another device ({owner.adapter.info['device']}, device {owner.uid}) than the "
            f"primitive ({device.adapter.info['device']}, device {device.uid}); make it with "
            f"primitive.device.create_command_encoder()"
        )


def _extent(array: Array) -> str:
    kind = "" if array.datatype.itemsize_bytes == 4 else f" of {array.datatype.itemsize_bytes} bytes"
    return f"items {array.offset} to {array.offset + array.size}{kind}"


def check_overlaps(
    primitive: str,
    arrays: Mapping[str, Array],
    arguments: Sequence[Argument],
    may_overlap: Callable[[str, str, bool], bool],
) -> bool:
    """Refuse overlaps that the kernels cannot bear; return whether an output overlaps another argument."""
    in_place = False
    seen: set[str] = set()
    for output in (argument.name for argument in arguments if argument.is_output):
        seen.add(output)
        for other, b in arrays.items():
            a = arrays[output]
            if other in seen or a.buffer is not b.buffer or not (a.size and b.size):
                continue
            # In bytes: items of two arguments need not be of one size.
            if a.offset_bytes >= b.offset_bytes + b.nbytes or b.offset_bytes >= a.offset_bytes + a.nbytes:
                continue
            identical = (a.offset_bytes, a.nbytes, a.datatype) == (b.offset_bytes, b.nbytes, b.datatype)
            if not may_overlap(output, other, identical):
                remedy = ", or exactly the same view" if may_overlap(output, other, True) else ""
                raise OverlapError(
                    f"{primitive}: {output} ({_extent(a)} of its buffer) overlaps {other} ({_extent(b)}); "
                    f"use views that do not overlap{remedy}"
                )
            in_place = True
    return in_place


def bind_layout(
    arrays: Mapping[str, Array], arguments: Sequence[Argument], capabilities: Capabilities
) -> tuple[Layout, dict[str, BufferRange]]:
    """Lay out the arguments of a call.

    An output and every other argument in the same buffer share one binding, since WebGPU allows no second one
    beside a writable one. A binding starts at the multiple of the device's alignment before the first item.

    Returns
    -------
    Layout, dict from str to BufferRange
        The dict is keyed by the names of the layout's buffers.
    """
    outputs = {argument.name for argument in arguments if argument.is_output}
    written = {arrays[name].buffer.uid for name in outputs if arrays[name].size}
    groups: dict[Any, list[str]] = {}
    for name, array in arrays.items():
        key = array.buffer.uid if array.buffer.uid in written else name
        groups.setdefault(key if array.size else (name, "empty"), []).append(name)
    operands: dict[str, Operand] = {}
    ranges: dict[str, BufferRange] = {}
    aligned = {argument.name for argument in arguments if argument.aligned}
    for names in groups.values():
        members = {name: arrays[name] for name in names}
        buffer_name = "_and_".join(names)
        window = _window(members, capabilities, aligned)
        ranges[buffer_name] = window
        for name, array in members.items():
            offset = (array.offset_bytes - window.offset_bytes) // array.datatype.itemsize_bytes
            end_bytes = -(-(array.offset_bytes - window.offset_bytes + array.nbytes) // 16) * 16
            vec4 = offset % 4 == 0 and end_bytes <= window.size_bytes
            item_bytes = array.datatype.itemsize_bytes
            operands[name] = Operand(array.size, buffer_name, offset, vec4, window.size_bytes, item_bytes)
    return Layout({name: operands[name] for name in arrays}), ranges


def _window(members: Mapping[str, Array], capabilities: Capabilities, aligned: set[str]) -> BufferRange:
    alignment = capabilities.limits["min-storage-buffer-offset-alignment"]
    limit = capabilities.limits["max-storage-buffer-binding-size"]
    arrays = [array for array in members.values() if array.size] or list(members.values())
    buffer = arrays[0].buffer
    begin = min(array.offset_bytes for array in arrays) // alignment * alignment
    for name, array in members.items():
        if name in aligned and array.offset_bytes % alignment:
            raise BufferUsageError(
                f"{name} starts at byte {array.offset_bytes} of its buffer, but a kernel of your own can only be bound "
                f"at multiples of min-storage-buffer-offset-alignment, {alignment} bytes; use a slice that starts at a "
                f"multiple of {alignment // array.datatype.itemsize_bytes} items"
            )
    end = max(array.offset_bytes + array.nbytes for array in arrays)
    # To a whole vec4 where the buffer goes that far; a binding's size is a multiple of 4 in any case.
    # A kernel that knows no offset may go by arrayLength: it gets the view's items and no more.
    rounded = -(-(end - begin) // 4) * 4 if aligned & set(members) else -(-(end - begin) // 16) * 16
    size = min(rounded, (buffer.size - begin) // 4 * 4, limit // 4 * 4)
    if end - begin > limit:
        raise LimitError(
            f"{' and '.join(members)} need a binding of {end - begin} bytes, but the device's "
            f"max-storage-buffer-binding-size is {limit} bytes; split the data into parts of at most "
            f"{limit // arrays[0].datatype.itemsize_bytes} items"
        )
    return BufferRange(buffer, begin, max(size, 4))
