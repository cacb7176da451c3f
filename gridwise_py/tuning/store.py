"""The findings of `gridwise tune`: where they are kept, and whether they are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from .. import settings
from ..storage import cache
from .shapes import KERNELS, shape_of, tuning_of

__all__ = ["TUNING_FORMAT", "TUNING_KIND", "Findings", "findings_of", "load_tuning"]

TUNING_KIND = "tuning"
TUNING_FORMAT = 2  # of the file; files of format 1 are ignored
_LARGEST = 1 << 63  # no array has more items

#: By kernel: up to so many items, the fields of a tuning, as `Tuning.to_dict` writes them.
Findings: TypeAlias = Mapping[str, tuple[tuple[int | None, Mapping[str, Any]], ...]]


def load_tuning(key: Mapping[str, str]) -> Findings | None:
    """Return the findings that are kept for a device, by kernel; None where there are none."""
    if not settings.tuning():
        return None
    data = cache.load(TUNING_KIND, key, TUNING_FORMAT)
    kernels = data.get("shapes") if data is not None else None
    return findings_of(cast(dict[str, Any], kernels)) if isinstance(kernels, dict) else None


def findings_of(by_kernel: Mapping[str, Any]) -> Findings | None:
    """Return the findings of a file, without kernels that are unknown or spoilt; None where none is left."""
    findings = {kernel: _rows(kernel, rows) for kernel, rows in by_kernel.items() if kernel in KERNELS}
    return {kernel: rows for kernel, rows in findings.items() if rows} or None


def _rows(kernel: str, rows: Any) -> tuple[tuple[int | None, Mapping[str, Any]], ...]:
    """Return the rows of a kernel; none where the file was written by hand, or spoilt.

    Lengths must be in order and the last one open, with a shape that the kernel can have. Whether this device can run
    the shape is checked with its limits, when a primitive is made.
    """
    try:
        read = tuple((up_to, tuning_of(kernel, shape_of(kernel, data)).to_dict()) for up_to, data in rows)
    except (TypeError, ValueError):  # an ArgumentError is a ValueError
        return ()
    lengths = [up_to for up_to, _ in read]
    in_order = all(type(up_to) is int and 0 <= up_to < _LARGEST for up_to in lengths[:-1]) and lengths[:-1] == sorted(
        set(lengths[:-1])
    )
    return read if read and in_order and lengths[-1] is None else ()
