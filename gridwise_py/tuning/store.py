"""Where the shapes are kept that `gridwise tune` found, and whether they are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from .. import settings
from ..storage import cache
from .shapes import KERNELS, has_blocks

__all__ = ["TUNING_FORMAT", "TUNING_KIND", "Tuning", "load_tuning"]

TUNING_KIND = "tuning"
TUNING_FORMAT = 1  # of the file
_LARGEST = 1 << 63  # beyond it are no items, and no workgroups

#: By kernel: up to so many items (workgroup size, vecs, most blocks), as plain data.
Tuning: TypeAlias = Mapping[str, tuple[tuple[int | None, tuple[int, int, int]], ...]]


def load_tuning(key: Mapping[str, str]) -> Tuning | None:
    """Return the tuned shapes that are kept for a device, by kernel; None where there are none."""
    if not settings.tuning():
        return None
    data = cache.load(TUNING_KIND, key, TUNING_FORMAT)
    try:
        found = {str(k): tuple((u, tuple(shape)) for u, shape in rows) for k, rows in data["shapes"].items()}
    except (TypeError, KeyError, ValueError, AttributeError):  # written by hand, or spoilt
        return None
    good = {kernel: rows for kernel, rows in found.items() if kernel in KERNELS and _are_rows(kernel, rows)}
    return good or None


def _are_rows(kernel: str, rows: tuple) -> bool:
    """Whether they are lengths in order, the last one open, with a shape of three numbers each as the kernel has it."""
    lengths = [up_to for up_to, _ in rows]
    numbers = [*lengths[:-1], *(number for _, shape in rows for number in shape)]
    return (
        bool(rows)
        and lengths[-1] is None
        and all(type(number) is int and 0 <= number < _LARGEST for number in numbers)
        and lengths[:-1] == sorted(set(lengths[:-1]))
        and all(len(shape) == 3 and _is_shape(kernel, *shape) for _, shape in rows)
    )


def _is_shape(kernel: str, workgroup_size: int, vecs: int, max_blocks: int) -> bool:
    """Whether a kernel can have the shape on some device; which of them this one can run is checked with its limits."""
    return workgroup_size > 0 and vecs > 0 and (max_blocks > 0) == has_blocks(kernel)
