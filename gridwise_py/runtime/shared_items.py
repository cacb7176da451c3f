"""Overlaps: which arguments of a call share items, and whether the kernels can bear it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import OverlapError
from ..planning.signature import Signature
from .array import Array
from .chunked_array import Items, parts


def _extent(array: Array) -> str:
    """Describe where an array lies."""
    kind = "" if array.datatype.itemsize_bytes == 4 else f" of {array.datatype.itemsize_bytes} bytes"
    return f"items {array.offset} to {array.offset + array.size}{kind}"


def check_overlaps(signature: Signature, arrays: Mapping[str, Items]) -> bool:
    """Refuse overlaps that the kernels cannot bear; return whether an output is read, or overlaps another argument."""
    primitive = signature.primitive
    in_place = any(signature.arguments[output].is_read for output in signature.outputs)
    seen: set[str] = set()
    for output in signature.outputs:
        seen.add(output)
        own = overlapping(parts(arrays[output]))
        if own is not None:
            raise OverlapError(
                f"{primitive}: chunks of {output} overlap each other ({_extent(own[0])} and {_extent(own[1])} of a "
                f"buffer); use views that do not overlap"
            )
        for other, value in arrays.items():
            found = None if other in seen else overlapping(parts(arrays[output]), parts(value))
            if found is None:
                continue
            identical = _places(arrays[output]) == _places(value)
            if not signature.may_overlap(output, other, identical):
                remedy = ", or exactly the same view" if signature.may_overlap(output, other, True) else ""
                mine, its = map(_extent, found)
                raise OverlapError(
                    f"{primitive}: {output} ({mine} of its buffer) overlaps {other} ({its}); use views that do not "
                    f"overlap{remedy}"
                )
            in_place = True
    return in_place


def _places(value: Items) -> list[tuple[Any, ...]]:
    """Return where the items of an argument lie."""
    return [(a.lease.buffer.uid, a.offset_bytes, a.nbytes, a.datatype) for a in parts(value) if a.size]


def overlapping(mine: Sequence[Array], others: Sequence[Array] | None = None) -> tuple[Array, Array] | None:
    """Return two arrays that share items, one of each list, or both of the first."""
    for i, a in enumerate(mine):
        for b in mine[i + 1 :] if others is None else others:
            # In bytes: items of two arguments need not be of one size.
            if (
                a.lease.buffer is b.lease.buffer
                and a.size
                and b.size
                and a.offset_bytes < b.offset_bytes + b.nbytes
                and b.offset_bytes < a.offset_bytes + a.nbytes
            ):
                return a, b
    return None
