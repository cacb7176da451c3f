"""What a device can really do, as plain data: measured on a device, or invented in a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from ..display.html_table import html_table
from ..display.quantities import format_time
from ..errors import ArgumentError

__all__ = ["Capabilities", "LookbackVerdict", "SubgroupMode", "SubgroupsLike"]

#: What ``subgroups=`` takes; see `Capabilities.subgroup_mode`.
SubgroupsLike: TypeAlias = (
    bool
    | Literal["native", "none"]
    | Literal["emulated-2", "emulated-4", "emulated-8", "emulated-16", "emulated-32", "emulated-64", "emulated-128"]
    | None
)

# WebGPU's default limits: what every device has.
_DEFAULT_LIMITS = {
    "max-storage-buffer-binding-size": 134_217_728,
    "max-buffer-size": 268_435_456,
    "max-compute-workgroups-per-dimension": 65_535,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-storage-size": 16_384,
    "max-storage-buffers-per-shader-stage": 8,
    "min-storage-buffer-offset-alignment": 256,
}


@dataclass(frozen=True)
class SubgroupMode:
    """Which form of the subgroup building blocks kernels use.

    Attributes
    ----------
    kind : {"native", "none", "emulated"}
    size : int
        Lanes; 1 for none.
    """

    kind: str
    size: int

    def __str__(self) -> str:
        return "none" if self.kind == "none" else f"{self.kind}-{self.size}"


@dataclass(frozen=True)
class LookbackVerdict:
    """What a self-test found out about kernels whose workgroups wait for each other; see `lookback_verdict`.

    Attributes
    ----------
    coherent : bool
        Every sum was right, and every workgroup finished.
    progress : bool
        Hardly any workgroup waited in vain for one before it.
    needs_tickets : bool
        That was so only where workgroups took their tiles in the order in which they started.
    recovers : bool
        Sums were right, too, where some tiles never posted anything.
    duration_ns : float or None
        Of the self-test, on the CPU's clock.
    error : str or None
        Why it could not be run; all else is False then.
    """

    coherent: bool
    progress: bool
    needs_tickets: bool
    recovers: bool
    duration_ns: float | None = None
    error: str | None = None

    @property
    def safe(self) -> bool:
        """Whether look-back is right and quick on the device."""
        return self.coherent and self.progress and self.recovers

    def __str__(self) -> str:
        if self.safe:
            return "safe, with tickets" if self.needs_tickets else "safe"
        if self.error is not None:
            return f"not safe: the self-test failed: {self.error}"
        if not self.coherent:
            return "not safe: sums were wrong"
        if not self.recovers:
            return "not safe: sums were wrong where tiles never posted"
        return "not safe: workgroups waited in vain for those before them"


@dataclass(frozen=True)
class Capabilities:
    """What plans and reports need to know of a device.

    Attributes
    ----------
    adapter : str
        The adapter's name.
    adapter_type : str
        ``"DiscreteGPU"``, ``"IntegratedGPU"``, ``"CPU"`` or ``"Unknown"``.
    backend : str
        ``"Vulkan"``, ``"Metal"``, ``"D3D12"`` or ``"OpenGL"``.
    vendor, driver : str
        As the adapter gives them.
    features : frozenset of str
        wgpu features that the device was made with.
    limits : mapping from str to int
        The device's limits, by wgpu's names.
    subgroup_size : int or None
        Measured by a kernel; None where the device has no subgroups.
    subgroup_min_size : int
        No kernel gets smaller ones, as the vendor says; 4 where nobody does.
    tick_period_ns : float or None
        Nanoseconds per tick of a timestamp; None without timestamps.
    tick_step_ns : float or None
        Smallest step between timestamps that was seen, in nanoseconds; None without timestamps.
    lookback : LookbackVerdict or None
        Whether workgroups can wait for each other. None: not tested yet; a primitive that wants to know then tests its
        device, and without a device takes it for safe on all but CPU adapters.
    tuning : mapping or None
        Shapes of kernels that `gridwise tune` found for this adapter and driver; see `tuned.load_tuning`.
    """

    adapter: str = "invented"
    adapter_type: str = "DiscreteGPU"
    backend: str = "Vulkan"
    vendor: str = ""
    driver: str = ""
    features: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=lambda: dict(_DEFAULT_LIMITS))
    subgroup_size: int | None = None
    subgroup_min_size: int = 4
    tick_period_ns: float | None = None
    tick_step_ns: float | None = None
    lookback: LookbackVerdict | None = None
    tuning: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", frozenset(self.features))
        object.__setattr__(self, "limits", {**_DEFAULT_LIMITS, **self.limits})

    def __hash__(self) -> int:
        return hash((self.adapter, self.adapter_type, self.backend, self.features, self.subgroup_size))

    @property
    def is_cpu(self) -> bool:
        """Whether the "GPU" is software on the CPU; its figures say nothing about any GPU."""
        return self.adapter_type == "CPU"

    def subgroup_mode(self, requested: str | bool | None) -> SubgroupMode:
        """Resolve what a caller asked for.

        Parameters
        ----------
        requested : None, bool, or str
            None chooses; True and ``"native"`` insist on the hardware's subgroups; False and ``"none"`` do
            without; ``"emulated-64"`` emulates that size in workgroup memory, for tests.

        Raises
        ------
        ArgumentError
            If the device cannot do it.
        """
        if requested is None:
            requested = "native" if self.subgroup_size is not None else "none"
        if requested in (False, "none"):
            return SubgroupMode("none", 1)
        if requested in (True, "native"):
            if self.subgroup_size is None:
                raise ArgumentError(
                    f"subgroups={requested!r}, but the device of {self.adapter!r} has no feature 'subgroup'; "
                    f"use subgroups=False, or request a device with it"
                )
            return SubgroupMode("native", self.subgroup_size)
        if isinstance(requested, str) and requested.startswith("emulated-"):
            size = requested.removeprefix("emulated-")
            if size.isdigit() and int(size) in (2, 4, 8, 16, 32, 64, 128):
                return SubgroupMode("emulated", int(size))
        raise ArgumentError(
            f"subgroups={requested!r} is unknown; give None, True, False, 'native', 'none' or 'emulated-N' "
            f"with N a power of two from 2 to 128"
        )

    def __repr__(self) -> str:
        ticks = "no timestamps" if self.tick_step_ns is None else f"timestamps in steps of {self._step()}"
        return (
            f"Capabilities({self.adapter}, {self.adapter_type}, {self.backend}, {self.driver or 'driver not known'}: "
            f"{self._subgroups()}, {ticks}, {len(self.features)} feature{'s' if len(self.features) != 1 else ''})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("type", self.adapter_type), ("backend", self.backend), ("vendor", self.vendor), ("driver", self.driver),
            ("subgroups", self._subgroups()),
            ("smallest step of timestamps", "no timestamps" if self.tick_step_ns is None else self._step()),
            ("look-back", "not tested yet" if self.lookback is None else str(self.lookback)),
            ("shapes of kernels", "the default ones" if not self.tuning else "tuned"),
            ("features", ", ".join(sorted(self.features))),
            *((name, f"{self.limits[name]:,}") for name in _DEFAULT_LIMITS),
        ]  # fmt: skip
        notes = ["Software on the CPU: its figures say nothing about any GPU."] if self.is_cpu else []
        return html_table(self.adapter, (), rows, texts=(0, 1), notes=notes)

    def _subgroups(self) -> str:
        return "no subgroups" if self.subgroup_size is None else f"subgroups of {self.subgroup_size}"

    def _step(self) -> str:
        return format_time(self.tick_step_ns)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON data."""
        return {**asdict(self), "features": sorted(self.features), "limits": dict(self.limits)}
