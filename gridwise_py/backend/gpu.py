"""A GPU as its driver knows it: an address, and what the driver says of it now."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Gpu", "Observe", "pci_address"]

#: Returns what a driver says now.
Observe: TypeAlias = Callable[[], dict[str, Any]]

_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)


@dataclass(frozen=True)
class Gpu:
    """A GPU of this host.

    Attributes
    ----------
    pci : str or None
        Its address, such as ``"0000:1b:00.0"``; None if the driver does not tell.
    look : callable
        Returns a dict with ``sm_clock_mhz`` (of the GPU's cores), ``max_sm_clock_mhz``, ``memory_clock_mhz``,
        ``power_w``, ``temperature_c``, ``memory_used_bytes`` (of the whole GPU, by all processes) and
        ``throttle_reasons``, without those that the driver does not report.
    used_bytes : callable
        Returns ``memory_used_bytes`` alone, or None.
    """

    pci: str | None
    look: Observe
    used_bytes: Callable[[], int | None]


def pci_address(text: str) -> str | None:
    """Return a PCI address as Linux writes it, of four digits and in small letters; None if it is none.

    NVML writes ``00000000:1B:00.0``, CUDA ``0000:1B:00.0`` or ``1B:00.0``.
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        return None
    domain = int(found[1] or "0", 16)
    return f"{domain:04x}:{found[2].lower()}"
