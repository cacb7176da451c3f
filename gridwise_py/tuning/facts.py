"""Facts of a device from which the shapes of kernels follow: its limits, and what `gridwise calibrate` measures.

A multiprocessor is here what runs one workgroup with all the workgroup memory that a workgroup may have: on some GPUs
that is half of what their makers call so, and the shapes are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..types.capabilities import Capabilities


@dataclass(frozen=True)
class DeviceFacts:
    """What the shapes of kernels depend on.

    Attributes
    ----------
    multiprocessors : int
    storage_bytes : int
        Workgroup memory that the workgroups on one multiprocessor share.
    invocations : int
        Most that are at work on one multiprocessor at once.
    registers : int
        Of 32 bits on one multiprocessor. Nothing tells them: 65,536 are what NVIDIA's, AMD's and Intel's have for as
        many invocations as above.
    """

    multiprocessors: int
    storage_bytes: int
    invocations: int
    registers: int = 65_536

    @property
    def registers_of_half(self) -> int:
        """Registers of an invocation where half of the most invocations are at work."""
        return 2 * self.registers // self.invocations


# A discrete GPU that was not measured counts as a large one, with the figures of an H200: more workgroups than a small
# one needs cost it little (reduce of 2^24 on an H200: four times as many blocks 20 % more), but fewer than a large one
# needs leave it idle. An H200's driver gives the workgroups on a multiprocessor 48 KiB, which `gridwise calibrate`
# takes for 64: shapes were fitted with that.
DISCRETE = DeviceFacts(132, 65_536, 2048)
# Others count as small: Apple's have 32 KiB for a workgroup, Intel's 512 to 1,024 invocations at once.
_INTEGRATED = DeviceFacts(16, 32_768, 1024)
# What a file may say: beyond that it was not measured, but spoilt.
_BOUNDS = {
    "multiprocessors": (1, 4096), "storage_bytes": (1 << 12, 1 << 24), "invocations": (64, 1 << 14),
    "registers": (1 << 10, 1 << 24),
}  # fmt: skip


def facts_of(capabilities: Capabilities) -> DeviceFacts:
    """Return what is known of a device: measured where it was, else what its kind of adapter has at least."""
    usual = DISCRETE if capabilities.adapter_type == "DiscreteGPU" else _INTEGRATED
    return replace(usual, **(measured_facts(capabilities.facts) or {}))


def measured_facts(data: Any) -> dict[str, int] | None:
    """Return the facts of a file that are in bounds; None where it has none."""
    if not isinstance(data, Mapping):
        return None
    found: dict[str, int] = {}
    for name, (least, most) in _BOUNDS.items():
        value: Any = data.get(name)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # of a file
        if type(value) is int and least <= value <= most:
            found[name] = value
    return found or None
