"""From the arrays of a call to the layout of its plan, and to ranges of buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import BufferUsageError, LimitError
from ..planning.layout import Layout, Operand
from ..planning.signature import Signature
from ..planning.windows import binding_limit, part_of
from ..types.capabilities import Capabilities
from .array import Array
from .chunked_array import Items, parts
from .executor import BufferRange


def bind_layout(
    arrays: Mapping[str, Items], signature: Signature, capabilities: Capabilities
) -> tuple[Layout, dict[str, BufferRange]]:
    """Lay out the arguments of a call.

    An output and every other argument in the same buffer share one binding, since WebGPU allows no read-only one next
    to a writable one; where it would be too large, each has a part of it, and all are bound as writable. A binding
    starts at the multiple of the device's alignment before the first item.

    Returns
    -------
    Layout, dict from str to BufferRange
        The dict is keyed by the names of the layout's buffers.
    """
    written = {array.lease.buffer.uid for name in signature.outputs for array in parts(arrays[name]) if array.size}
    named = {name: _named_parts(name, value) for name, value in arrays.items()}
    groups: dict[Any, dict[str, Array]] = {}
    for found in named.values():
        for name, array in found.items():
            key = array.lease.buffer.uid if array.lease.buffer.uid in written else name
            groups.setdefault(key if array.size else (name, "empty"), {})[name] = array
    operands: dict[str, Operand] = {}
    ranges: dict[str, BufferRange] = {}
    aligned = {name for name, argument in signature.arguments.items() if argument.aligned}
    for members in groups.values():
        buffer_name = "_and_".join(members)
        whole = _range(members, capabilities, aligned)
        ranges[buffer_name] = whole
        for name, array in members.items():
            # Of items that are several numbers a layout counts the words: 12 bytes divide no alignment.
            item_bytes = array.datatype.element_bytes
            length = array.size * array.datatype.elements
            offset = (array.offset_bytes - whole.offset_bytes) // item_bytes
            end_bytes = -(-(array.offset_bytes - whole.offset_bytes + array.nbytes) // 16) * 16
            vec4 = offset % 4 == 0 and end_bytes <= whole.size_bytes
            operand = Operand(length, buffer_name, offset, vec4, whole.size_bytes, item_bytes)
            operands[name] = part_of(operand, 0, length, capabilities)
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
    length, item_bytes = value.size * value.datatype.elements, value.datatype.element_bytes
    return Operand(length, "", vec4=False, item_bytes=item_bytes, chunks=tuple(found))


def _range(members: Mapping[str, Array], capabilities: Capabilities, aligned: set[str]) -> BufferRange:
    """Return the part of a buffer that reaches all of its members."""
    alignment = capabilities.limits["min-storage-buffer-offset-alignment"]
    limit = binding_limit(capabilities)
    arrays = [array for array in members.values() if array.size] or list(members.values())
    buffer = arrays[0].lease.buffer
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
