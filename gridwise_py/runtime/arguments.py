"""From a caller's arrays to a layout and to ranges of buffers, with every check on the way."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import wgpu

from ..backend.device_errors import device_error, is_trouble
from ..backend.wgpu_native import destroyed_flag, device_of, encoder_fate, guard_queue
from ..errors import ArgumentError, BufferUsageError, DatatypeError, LengthError, LimitError, OverlapError
from ..planning.layout import Layout, Operand
from ..planning.windows import binding_limit, part_of
from ..timing.queries import TimingSession
from ..types.capabilities import Capabilities
from ..types.datatype import Datatype
from .array import Array, empty
from .chunked_array import ChunkedArray
from .executor import BoundPlan, BufferRange

__all__ = [
    "Argument", "Items", "ItemsT", "Ready", "bind_layout", "check_encoder", "check_overlaps", "check_session", "parts",
    "resolve", "signature", "watch", "watch_submission",
]  # fmt: skip

Items: TypeAlias = Array | ChunkedArray


class CallRules(Protocol):
    """What a primitive says of the arguments of a call; `Primitive` has all of it."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> wgpu.GPUDevice: ...
    @property
    def arguments(self) -> Sequence[Argument]: ...
    def argument_datatype(self, name: str) -> Datatype | None: ...
    def check_lengths(self, lengths: Mapping[str, int]) -> None: ...
    def output_length(self, name: str, lengths: Mapping[str, int]) -> int | None: ...
    def default_output(self, name: str, inputs: Mapping[str, Items]) -> Items | None: ...


#: What goes in, and so what comes out.
ItemsT = TypeVar("ItemsT", bound=Items)


@dataclass(frozen=True)
class Argument:
    """A named argument of a primitive.

    Attributes
    ----------
    name : str
    is_output : bool
    aligned : bool
        Whether the kernel needs the view to start at the binding itself (a user's kernel that knows no offset).
    chunked : bool
        Whether it may be a `ChunkedArray`.
    cast : str or None
        What to do where an array is of another datatype; None for the usual advice.
    """

    name: str
    is_output: bool = False
    aligned: bool = False
    chunked: bool = False
    cast: str | None = None

    def fit(self, primitive: str, array: Items, needed: int) -> Items:
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
    arrays: dict[str, Items]
    outputs: dict[str, Items]
    in_place: bool
    watched: tuple[tuple[list[bool], wgpu.GPUBuffer], ...]

    @functools.cached_property
    def named_notes(self) -> tuple[tuple[list[bool], str], ...]:
        """The note of each buffer's end, and what the buffer is in messages."""
        primitive = self.bound.plan.primitive
        return tuple(
            (destroyed_flag(part.buffer), f"{primitive}'s {name}")
            for name, value in self.arrays.items()
            for part in parts(value)
        )

    def shapes(self) -> str:
        """Return names, lengths and datatypes of the arguments."""
        return ", ".join(f"{name} {array.datatype.name}[{array.size}]" for name, array in self.arrays.items())


def parts(value: Any) -> tuple[Array, ...]:
    """Return the arrays of an argument: its chunks, or itself."""
    return value.chunks if isinstance(value, ChunkedArray) else (value,)


def _new_output(
    label: str, needed: int, datatype: Datatype, device: wgpu.GPUDevice, given: Mapping[str, Items]
) -> Items:
    """Make an output: in chunks where an input of its length is."""
    like = next((x for x in given.values() if isinstance(x, ChunkedArray) and x.size == needed), None)
    if like is None:
        return empty(needed, datatype, device, label=label)
    return ChunkedArray([empty(chunk.size, datatype, device, label=label) for chunk in like.chunks])


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


def _check_array(
    primitive: str, argument: Argument, array: Items, datatype: Datatype | None, device: wgpu.GPUDevice
) -> None:
    """Raise where an array cannot be an argument."""
    name = argument.name
    if isinstance(array, ChunkedArray) and not argument.chunked:
        raise ArgumentError(
            f"{primitive}: {name} is {array!r}, but must be one Array, which one binding reaches; "
            f"give an Array of at most {device.limits['max-buffer-size'] // array.datatype.itemsize_bytes} items "
            f"(max-buffer-size {device.limits['max-buffer-size']} bytes), or work on its chunks one by one"
        )
    if datatype is not None and array.datatype != datatype:
        remedy = argument.cast or (
            f"convert the data with x.astype(np.{datatype.numpy_name}) before it is uploaded, or make a {primitive} "
            f"with datatype='{array.datatype}'"
        )
        raise DatatypeError(
            f"{primitive}: {name} is of {array.datatype}, but this {primitive} was made for {datatype}; {remedy}"
        )
    if array.device is not device:
        raise BufferUsageError(
            f"{primitive}: {name} lies on another device ({array.device.adapter.info['device']}, device "
            f"{array.device.uid}) than the primitive ({device.adapter.info['device']}, device {device.uid}); copy it "
            f"through numpy: gridwise_py.asarray({name}.to_numpy(), device)"
        )
    array._check_usable("STORAGE", f"{primitive}: {name}")


def resolve(
    primitive: CallRules, bound: Mapping[str, Items], arrays: Mapping[str, Any]
) -> tuple[dict[str, Items], dict[str, Items]]:
    """Return the arguments as given by now (`bound` and `arrays`), and as used: outputs made or cut to size."""
    known = {argument.name: argument for argument in primitive.arguments}
    for name in arrays:
        if name not in known:
            raise ArgumentError(f"{primitive.name}.execute() has no argument {name!r}; it takes {', '.join(known)}")
    given: dict[str, Items] = {}
    for name, argument in known.items():
        value = arrays.get(name)
        if value is not None:
            given[name] = _coerce(name, value, primitive.argument_datatype(name), primitive.device)
        elif name in bound and not (argument.is_output and name in arrays):
            given[name] = bound[name]
        elif not argument.is_output:
            raise ArgumentError(
                f"{primitive.name}.execute() needs {name}=; it was given {', '.join(given) or 'nothing'}"
            )
    for name, array in given.items():
        _check_array(primitive.name, known[name], array, primitive.argument_datatype(name), primitive.device)
    inputs = {name: given[name].size for name, argument in known.items() if not argument.is_output}
    primitive.check_lengths(inputs)
    used = dict(given)
    for name, argument in known.items():
        if not argument.is_output:
            continue
        needed, datatype = primitive.output_length(name, inputs), primitive.argument_datatype(name)
        if name in given:
            used[name] = given[name] if needed is None else argument.fit(primitive.name, given[name], needed)
        elif (default := primitive.default_output(name, given)) is not None:
            used[name] = default
        elif needed is None or datatype is None:
            like = next((other for other, known in given.items() if isinstance(known, Array)), "x")
            raise ArgumentError(
                f"{primitive.name}.execute() needs {name}=, since its size cannot be told; make it with "
                f"gw.empty_like({like}), or gw.empty(n, datatype, device)"
            )
        else:
            used[name] = _new_output(f"{primitive.name} {name}", needed, datatype, primitive.device, given)
    return given, {name: used[name] for name in known}


def watch(arrays: Mapping[str, Items]) -> tuple[tuple[list[bool], wgpu.GPUBuffer], ...]:
    """Return the buffers of arguments, each with the note of its end."""
    return tuple((destroyed_flag(part.buffer), part.buffer) for value in arrays.values() for part in parts(value))


def signature(arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells two calls with the same arrays from others."""
    return tuple(
        (name, value.buffer.uid, value.offset, value.size, value.datatype.name)
        if isinstance(value, Array)
        else (name, signature({str(i): chunk for i, chunk in enumerate(value.chunks)}))
        if isinstance(value, ChunkedArray)
        else (name, getattr(value, "uid", None))
        for name, value in arrays.items()
    )


def check_encoder(name: str, encoder: wgpu.GPUCommandEncoder, device: wgpu.GPUDevice) -> None:
    """Raise where nothing can be recorded on a caller's encoder.

    Raises
    ------
    ArgumentError
        If it is something else, such as a pass, or is finished.
    BufferUsageError
        If it is of another device.
    """
    if not isinstance(encoder, wgpu.GPUCommandEncoder):
        raise ArgumentError(
            f"{name}: encoder must be a wgpu.GPUCommandEncoder, not {type(encoder).__name__}; where you have a pass, "
            f"end it, and record on its encoder before the pass or after it"
        )
    owner = device_of(encoder)
    if owner is not None and owner is not device:
        raise BufferUsageError(
            f"{name}: the encoder is of another device ({owner.adapter.info['device']}, device {owner.uid}) than the "
            f"primitive ({device.adapter.info['device']}, device {device.uid}); make it with "
            f"primitive.device.create_command_encoder()"
        )
    try:
        encoder.insert_debug_marker(name)  # wgpu-py does not tell whether an encoder is finished
    except wgpu.GPUError as error:
        if is_trouble(error):
            raise device_error(error, name) from error
        raise ArgumentError(
            f"{name}: the encoder is finished; record before encoder.finish(), or on a new one from "
            f"device.create_command_encoder() ({' '.join(str(error).split())})"
        ) from error


def watch_submission(encoder: wgpu.GPUCommandEncoder, ready: Ready, device: wgpu.GPUDevice) -> None:
    """Have the submission of a caller's encoder refused if an argument is destroyed until then."""
    encoder_fate(encoder).needs(ready.named_notes)
    guard_queue(device)


def check_session(name: str, session: TimingSession, device: wgpu.GPUDevice) -> None:
    """Raise where a caller's session cannot time passes of a device."""
    if not isinstance(session, TimingSession):
        raise ArgumentError(
            f"{name}: timing must be a TimingSession, not {type(session).__name__}; "
            f"gridwise_py.timing_helper(device).session() makes one"
        )
    if session.device is not device:
        raise ArgumentError(
            f"{name}: the timing session is of another device than the primitive; make it with "
            f"gridwise_py.timing_helper(primitive.device).session()"
        )


def _extent(array: Array) -> str:
    """Describe where an array lies."""
    kind = "" if array.datatype.itemsize_bytes == 4 else f" of {array.datatype.itemsize_bytes} bytes"
    return f"items {array.offset} to {array.offset + array.size}{kind}"


def check_overlaps(
    primitive: str,
    arrays: Mapping[str, Items],
    arguments: Sequence[Argument],
    may_overlap: Callable[[str, str, bool], bool],
) -> bool:
    """Refuse overlaps that the kernels cannot bear; return whether an output overlaps another argument."""
    in_place = False
    seen: set[str] = set()
    for output in (argument.name for argument in arguments if argument.is_output):
        seen.add(output)
        own = _overlapping(parts(arrays[output]))
        if own is not None:
            raise OverlapError(
                f"{primitive}: chunks of {output} overlap each other ({_extent(own[0])} and {_extent(own[1])} of a "
                f"buffer); use views that do not overlap"
            )
        for other, value in arrays.items():
            found = None if other in seen else _overlapping(parts(arrays[output]), parts(value))
            if found is None:
                continue
            identical = _places(arrays[output]) == _places(value)
            if not may_overlap(output, other, identical):
                remedy = ", or exactly the same view" if may_overlap(output, other, True) else ""
                mine, its = map(_extent, found)
                raise OverlapError(
                    f"{primitive}: {output} ({mine} of its buffer) overlaps {other} ({its}); use views that do not "
                    f"overlap{remedy}"
                )
            in_place = True
    return in_place


def _places(value: Items) -> list[tuple[Any, ...]]:
    """Return where the items of an argument lie."""
    return [(a.buffer.uid, a.offset_bytes, a.nbytes, a.datatype) for a in parts(value) if a.size]


def _overlapping(mine: Sequence[Array], others: Sequence[Array] | None = None) -> tuple[Array, Array] | None:
    """Return two arrays that share items, one of each list, or both of the first."""
    for i, a in enumerate(mine):
        for b in mine[i + 1 :] if others is None else others:
            # In bytes: items of two arguments need not be of one size.
            if (
                a.buffer is b.buffer
                and a.size
                and b.size
                and a.offset_bytes < b.offset_bytes + b.nbytes
                and b.offset_bytes < a.offset_bytes + a.nbytes
            ):
                return a, b
    return None


def bind_layout(
    arrays: Mapping[str, Items], arguments: Sequence[Argument], capabilities: Capabilities
) -> tuple[Layout, dict[str, BufferRange]]:
    """Lay out the arguments of a call.

    An output and every other argument in the same buffer share one binding, since WebGPU allows no second one
    beside a writable one; where it would be too large, each has a part of it, and all are bound as writable. A binding
    starts at the multiple of the device's alignment before the first item.

    Returns
    -------
    Layout, dict from str to BufferRange
        The dict is keyed by the names of the layout's buffers.
    """
    outputs = {argument.name for argument in arguments if argument.is_output}
    written = {array.buffer.uid for name in outputs for array in parts(arrays[name]) if array.size}
    named = {name: _named_parts(name, value) for name, value in arrays.items()}
    groups: dict[Any, dict[str, Array]] = {}
    for found in named.values():
        for name, array in found.items():
            key = array.buffer.uid if array.buffer.uid in written else name
            groups.setdefault(key if array.size else (name, "empty"), {})[name] = array
    operands: dict[str, Operand] = {}
    ranges: dict[str, BufferRange] = {}
    aligned = {argument.name for argument in arguments if argument.aligned}
    for members in groups.values():
        buffer_name = "_and_".join(members)
        whole = _range(members, capabilities, aligned)
        ranges[buffer_name] = whole
        for name, array in members.items():
            offset = (array.offset_bytes - whole.offset_bytes) // array.datatype.itemsize_bytes
            end_bytes = -(-(array.offset_bytes - whole.offset_bytes + array.nbytes) // 16) * 16
            vec4 = offset % 4 == 0 and end_bytes <= whole.size_bytes
            item_bytes = array.datatype.itemsize_bytes
            operand = Operand(array.size, buffer_name, offset, vec4, whole.size_bytes, item_bytes)
            operands[name] = part_of(operand, 0, array.size, capabilities)
    joined = {name: _joined(value, [operands[part] for part in named[name]]) for name, value in arrays.items()}
    return Layout(joined), ranges


def _named_parts(name: str, value: Items) -> dict[str, Array]:
    """Return the arrays of an argument, by the names of their buffers in a plan."""
    if isinstance(value, Array):
        return {name: value}
    return {f"{name}_{i}": chunk for i, chunk in enumerate(value.chunks)}


def _joined(value: Items, operands: Sequence[Operand]) -> Operand:
    """Return the operand of an argument, without empty chunks."""
    found = [operand for operand in operands if operand.length] or operands[:1]
    if len(found) == 1:
        return found[0]
    return Operand(value.size, "", vec4=False, item_bytes=value.datatype.itemsize_bytes, chunks=tuple(found))


def _range(members: Mapping[str, Array], capabilities: Capabilities, aligned: set[str]) -> BufferRange:
    """Return the part of a buffer that reaches all of its members."""
    alignment = capabilities.limits["min-storage-buffer-offset-alignment"]
    limit = binding_limit(capabilities)
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
    size = min(rounded, (buffer.size - begin) // 4 * 4)
    if end - begin <= limit:
        size = min(size, limit)
    elif aligned & set(members):
        raise LimitError(
            f"{' and '.join(members)} need a binding of {end - begin} bytes, but the device's "
            f"max-storage-buffer-binding-size is {limit} bytes; give a kernel of your own slices of at most "
            f"{limit // arrays[0].datatype.itemsize_bytes} items, one after the other"
        )
    return BufferRange(buffer, begin, max(size, 4))
