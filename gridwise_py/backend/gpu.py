"""A GPU as its driver knows it: an address, and what the driver says of it now."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

#: Returns what a driver says now.
Observe: TypeAlias = Callable[[], dict[str, Any]]

_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)


@dataclass(frozen=True)
class EnergySensor:
    """What a driver tells of the energy of a whole GPU board, with its memory, and by all processes.

    Attributes
    ----------
    name : str
    kind : {"counter", "power"}
        Whether it counts joules, or tells watts.
    read : callable
        Returns the joules since some time, or the watts now; None if the driver does not answer.
    step_s : float
        How often the driver renews the number, about.
    """

    name: str
    kind: Literal["counter", "power"]
    read: Callable[[], float | None]
    step_s: float = 0.1


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
    energy_sensor : callable
        Returns its `EnergySensor`, or None if the driver has none.
    """

    pci: str | None
    look: Observe
    used_bytes: Callable[[], int | None]
    energy_sensor: Callable[[], EnergySensor | None] = lambda: None


def pci_address(text: str) -> str | None:
    """Return a PCI address as Linux writes it, of four digits and in small letters; None if it is none.

    NVML writes ``00000000:1B:00.0``, CUDA ``0000:1B:00.0`` or ``1B:00.0``.
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        return None
    domain = int(found[1] or "0", 16)
    return f"{domain:04x}:{found[2].lower()}"
