"""The shapes of kernels that have workgroups of so many invocations and vec4 each, for a device and a caller's tuning.

The model says them (`tuning.model`), by what can be measured, never by a name. What `gridwise tune` found for some
lengths is laid over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import ArgumentError
from ..types.capabilities import Capabilities, SubgroupMode
from .model import KERNELS, Fields, group_table_fields
from .options import Tuning
from .rows import Rows, Shape, Shapes, overlay

# By what differs for items that do not have 4 bytes (2^28 items on an H200, GB/s): a row of 16 bytes has 16 items of 1
# byte, so a tile of the same length is a quarter of the loads, and two rows at once are faster (u8: 3,140 to 3,750).
# Accumulators of two words take twice the registers, and tiles of half the length are faster (i64: 3,070 to 3,215).
_VECS_OF_BYTES = {"reduce": 2.0}
_VECS_OF_PAIRS = {"scan_lookback": 0.5}
_LEAST_VECS_HALVED = 8
# Accumulators of three and four words: no more registers for a tile's items, and no more loads in flight, than with two
# words. Not measured yet.
_MOST_WORDS_OF_VECS = {"scan_lookback": 16, "scan": 8, "reduce": 8}

# Where the order of additions is fixed, without subgroups. The shape is a part of the results, so it is the same on
# every adapter, and no row above changes it: 256 invocations are what every WebGPU device runs, the rest is as above
# for many items on a GPU. A CPU adapter would rather have fewer blocks.
_FIXED_SHAPES = {"reduce": Shape(256, 4, 528), "scan": Shape(256, 4, 1056)}


def shapes_for(
    kernel: str,
    capabilities: Capabilities,
    mode: SubgroupMode | None = None,
    tuning: Tuning | None = None,
) -> Shapes[Shape]:
    """Return the shapes of `kernel` on a device: the caller's, else those that were tuned, else the model's.

    Parameters
    ----------
    kernel : str
        One of `KERNELS`, with invocations and vec4 of each.
    capabilities : Capabilities
    mode : SubgroupMode, optional
        None for a kernel without subgroups.
    tuning : Tuning, optional
        The caller's. With any of its fields that make a shape there is one shape for all lengths.

    Raises
    ------
    ArgumentError
        If a workgroup would not hold whole subgroups, or is over the device's limit.
    """
    known = KERNELS[kernel].rows(capabilities)
    rows = tuple((up_to, _fit(Shape(**fields), capabilities, mode)) for up_to, fields in known)
    chosen = _chosen(kernel, tuning)
    if chosen:
        shapes = Shapes(((None, replace(rows[-1][1], **chosen)),), "argument")
    else:
        tuned = ((above, up_to, Shape(**fields)) for above, up_to, fields in ranges_of(kernel, capabilities))
        shapes = overlay(rows, [one for one in tuned if _objection(one[2], capabilities, mode) is None])
    for _, shape in shapes.rows:
        objection = _objection(shape, capabilities, mode)
        if objection is not None:
            raise ArgumentError(objection)
    return replace(shapes, rows=_within_grid(shapes.rows, capabilities))


def ranges_of(kernel: str, capabilities: Capabilities) -> tuple[tuple[int, int, Fields], ...]:
    """Return what was tuned for a kernel on a device: above so many items, up to so many, the fields of a shape."""
    return tuple((capabilities.tuning or {}).get(kernel, ()))


def group_table_shape(capabilities: Capabilities) -> Shape:
    """Return the shape of group_tables.wgsl."""
    return _fit(Shape(**group_table_fields(capabilities)), capabilities, None)


def suit(shapes: Shapes[Shape], kernel: str, item_bytes: int, words: int) -> Shapes[Shape]:
    """Return shapes, found for items of a word, for items of so many bytes and accumulators of so many words.

    The caller's stay as they are.
    """
    if shapes.source != "default":
        return shapes

    def vecs(shape: Shape) -> int:
        if item_bytes == 1 and kernel in _VECS_OF_BYTES:
            return min(16, int(shape.vecs * _VECS_OF_BYTES[kernel]))
        if words > 2 and kernel in _MOST_WORDS_OF_VECS:
            return min(shape.vecs, _MOST_WORDS_OF_VECS[kernel] // words)
        if words == 2 and kernel in _VECS_OF_PAIRS and shape.vecs > _LEAST_VECS_HALVED:
            return int(shape.vecs * _VECS_OF_PAIRS[kernel])
        return shape.vecs

    return replace(shapes, rows=tuple((up_to, replace(s, vecs=vecs(s))) for up_to, s in shapes.rows))


def fixed_shapes(kernel: str, capabilities: Capabilities, asked: str, tuning: Tuning | None = None) -> Shapes[Shape]:
    """Return the one shape of a kernel whose order of additions is fixed, for every length and device.

    Parameters
    ----------
    kernel : {"reduce", "scan"}
    capabilities : Capabilities
    asked : str
        The option that asks for a fixed order, for messages.
    tuning : Tuning, optional
        The caller's.

    Raises
    ------
    ArgumentError
        If the caller's shape is another one, or the device's workgroups cannot hold it.
    """
    shape = _FIXED_SHAPES[kernel]
    for name, value in _chosen(kernel, tuning).items():
        fixed = getattr(shape, name)
        if value != fixed:
            raise ArgumentError(
                f"{name}={value} together with {asked}, whose order of additions is fixed with {name}={fixed}; "
                f"leave out one of the two"
            )
    objection = _objection(shape, capabilities, None)
    if objection is not None:
        raise ArgumentError(f"{asked} is unsupported on {capabilities.adapter!r}: {objection}")
    return Shapes(((None, shape),), "fixed")


def fields_of(kernel: str, data: Mapping[str, Any]) -> Fields:
    """Return the fields of a kernel's shape from JSON data.

    Raises
    ------
    ArgumentError
        If a number of a shape is missing, is out of range, or is one that the kernel does not have.
    """
    known = KERNELS[kernel]
    if not isinstance(data, Mapping) or set(data) != set(known.fields):
        raise ArgumentError(f"{data!r} is no shape of {kernel}; it has {', '.join(known.fields)}")
    return known.family.from_dict(data).to_dict()


def _chosen(kernel: str, tuning: Tuning | None) -> dict[str, int]:
    """Return the fields of a caller's tuning that make a kernel's shape."""
    given = {} if tuning is None else tuning.to_dict()
    return {name: given[name] for name in KERNELS[kernel].fields if name in given}


def totals_invocations(blocks: int, shape: Shape, capabilities: Capabilities, *, total_bytes: int) -> int:
    """Return the invocations of the one workgroup that scans the totals of all blocks.

    A round takes as many blocks as there are invocations, and costs a trip to memory and a scan: on an H200 nine rounds
    of 128 made a segmented reduction of 2^28 items 24 µs slower than a reduction. So a GPU takes one round where the
    device allows it. A CPU adapter runs invocations one after another, and keeps those of the shape.
    """
    if capabilities.is_cpu:
        return shape.workgroup_size
    # Workgroup memory of an invocation: a total, where subgroups are emulated a second one, and a word.
    room = capabilities.limits["max-compute-workgroup-storage-size"] // (2 * total_bytes + 4)
    most = min(capabilities.most_invocations, room)
    return max(shape.workgroup_size, min(1 << (blocks - 1).bit_length(), 1 << (most.bit_length() - 1)))


def _fit(shape: Shape, capabilities: Capabilities, mode: SubgroupMode | None) -> Shape:
    """Cut a shape of the model to what the device allows, which is 256 invocations at least; a subgroup must fit."""
    most, least = capabilities.most_invocations, 1 if mode is None else mode.size
    return replace(shape, workgroup_size=max(least, min(shape.workgroup_size, 1 << (most.bit_length() - 1))))


def _within_grid(rows: Rows[Shape], capabilities: Capabilities) -> Rows[Shape]:
    most = capabilities.limits["max-compute-workgroups-per-dimension"] ** 3
    return tuple((up_to, replace(shape, max_blocks=min(shape.max_blocks, most))) for up_to, shape in rows)


def _objection(shape: Shape, capabilities: Capabilities, mode: SubgroupMode | None) -> str | None:
    """Return why a device cannot run a shape."""
    limit = capabilities.most_invocations
    if not (1 <= shape.workgroup_size <= limit and shape.workgroup_size & (shape.workgroup_size - 1) == 0):
        return (
            f"workgroup_size={shape.workgroup_size} must be a power of two of at most {limit} "
            f"(max-compute-invocations-per-workgroup)"
        )
    if not 1 <= shape.vecs <= 16:
        return f"vecs={shape.vecs} must be from 1 to 16"
    if mode is not None and shape.workgroup_size % mode.size:
        return (
            f"workgroup_size={shape.workgroup_size} does not hold whole subgroups of {mode.size} ({mode}); "
            f"use a multiple of {mode.size}, or subgroups=False"
        )
    return None
