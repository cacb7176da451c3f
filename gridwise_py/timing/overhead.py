"""What taking timestamps adds to a call: the observer effect, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Under which a device's `TimingOverheads` are kept, once they were measured.
OVERHEAD = "timing overheads"


@dataclass(frozen=True)
class TimingOverhead:
    """What its timestamps added to one call.

    An estimate. Noise may make a small number negative.

    Attributes
    ----------
    gpu_ns : float or None
        From the begin of its first pass to the end of its last.
    cpu_ns : float or None
        From the call to the idle queue, `gpu_ns` included.
    """

    gpu_ns: float | None
    cpu_ns: float | None


@dataclass(frozen=True)
class StampCost:
    """What one kind of timestamps costs; medians.

    Attributes
    ----------
    gpu_unit_ns : float or None
        Of a pass more, or of a kernel's two timestamps.
    cpu_call_ns : float or None
        Of a call with one kernel.
    cpu_kernel_ns : float or None
        Of each further kernel.
    """

    gpu_unit_ns: float | None
    cpu_call_ns: float | None
    cpu_kernel_ns: float | None

    def of(self, kernels: int, units: int) -> TimingOverhead:
        """Return what it adds to a call of so many kernels."""
        if not kernels:
            return TimingOverhead(None, None)
        cpu = None
        if self.cpu_call_ns is not None and self.cpu_kernel_ns is not None:
            cpu = self.cpu_call_ns + (kernels - 1) * self.cpu_kernel_ns
        return TimingOverhead(None if self.gpu_unit_ns is None else units * self.gpu_unit_ns, cpu)


@dataclass(frozen=True)
class TimingOverheads:
    """What timestamps cost on a device.

    Attributes
    ----------
    costs : mapping from str to StampCost
        ``"passes"``, of ``enable_gpu_timing=True``, and ``"inside"``.
    samples : int
    """

    costs: Mapping[str, StampCost]
    samples: int

    def of(self, *, inside: bool, kernels: int, passes: int) -> TimingOverhead | None:
        """Return what it adds to a call of so many kernels, which has so many passes without timing."""
        cost = self.costs.get("inside" if inside else "passes")
        if cost is None:
            return None
        return cost.of(kernels, kernels if inside else kernels - passes)
