"""The capabilities of a device as plain data: measured on a device, or invented in a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from ..display.quantities import format_time
from ..display.table import table_of
from ..errors import ArgumentError, DatatypeError

#: Values of ``subgroups=``; see `Capabilities.subgroup_mode`.
SubgroupsLike: TypeAlias = (
    bool
    | Literal["native", "none"]
    | Literal["emulated-2", "emulated-4", "emulated-8", "emulated-16", "emulated-32", "emulated-64", "emulated-128"]
    | None
)

# WebGPU's default limits, which every device supports.
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
    """The form of the subgroup building blocks in kernels.

    Attributes
    ----------
    kind : {"native", "none", "emulated"}
    size : int
        Number of lanes; 1 for none.
    """

    kind: str
    size: int

    def __str__(self) -> str:
        return "none" if self.kind == "none" else f"{self.kind}-{self.size}"


@dataclass(frozen=True)
class SubgroupMatrices:
    """A kind of matrices that subgroups multiply: an m × k and a k × n one give one of m × n.

    Attributes
    ----------
    items, results : str
        The WGSL types of their items, and of the items of their product.
    m, n, k : int
    """

    items: str
    results: str
    m: int
    n: int
    k: int


@dataclass(frozen=True)
class LookbackVerdict:
    """The result of the look-back self-test.

    Attributes
    ----------
    coherent : bool
        Every sum was right.
    progress : bool
        Hardly a tile was recomputed.
    needs_tickets : bool
        Progress needs tickets.
    recovers : bool
        Also where some tiles never published.
    duration_ns : float or None
        Of the self-test.
    error : str or None
        Why the self-test did not run or end.
    """

    coherent: bool
    progress: bool
    needs_tickets: bool
    recovers: bool
    duration_ns: float | None = None
    error: str | None = None

    @property
    def safe(self) -> bool:
        """Whether look-back is correct and fast."""
        return self.coherent and self.progress and self.recovers and self.error is None

    def __str__(self) -> str:
        if self.safe:
            return "safe, with tickets" if self.needs_tickets else "safe"
        if self.error is not None:
            return f"not safe: the self-test failed: {self.error}"
        if not self.coherent:
            return "not safe: sums were wrong"
        if self.progress:
            return "not safe: sums were wrong where tiles never posted"
        return "not safe: workgroups made no progress while others polled"


#: The features with which a device computes float64.
FEATURES_OF_FLOAT64 = ("shader-f64", "shader-int64")


@dataclass(frozen=True)
class Capabilities:
    """What a device can do.

    Attributes
    ----------
    adapter : str
        The adapter's name.
    adapter_type : str
    backend : str
    vendor, driver : str
    features : frozenset of str
        Those enabled.
    limits : mapping from str to int
        By wgpu's names.
    subgroup_size : int or None
        Measured; None without subgroups.
    subgroup_min_size : int
        The smallest that a kernel can get; 4 if unknown.
    tick_period_ns : float or None
        None without timestamps.
    tick_step_ns : float or None
        The smallest step that was observed.
    lookback : LookbackVerdict or None
        Whether look-back is safe; None before it was tested.
    subgroup_matrices : tuple of SubgroupMatrices
        What tensor cores multiply at once; empty with wgpu.
    tuning : mapping or None
        What ``gridwise tune`` found.
    facts : mapping or None
        What ``gridwise calibrate`` found.
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
    subgroup_matrices: tuple[SubgroupMatrices, ...] = ()
    tuning: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", frozenset(self.features))
        object.__setattr__(self, "limits", {**_DEFAULT_LIMITS, **self.limits})

    def __hash__(self) -> int:
        return hash((self.adapter, self.adapter_type, self.backend, self.features, self.subgroup_size))

    @property
    def is_cpu(self) -> bool:
        """Whether the GPU is software on the CPU."""
        return self.adapter_type == "CPU"

    @property
    def most_invocations(self) -> int:
        """Invocations of the largest workgroup along one dimension."""
        return min(self.limits["max-compute-invocations-per-workgroup"], self.limits["max-compute-workgroup-size-x"])

    def subgroup_mode(self, requested: str | bool | None) -> SubgroupMode:
        """Return the subgroup mode for the field ``subgroups`` of a tuning.

        Parameters
        ----------
        requested : None, bool, or str
            None uses subgroups if the device has them. True and ``"native"`` require the hardware's subgroups; False
            and ``"none"`` use none. ``"emulated-64"`` emulates that size in workgroup memory, for tests.

        Raises
        ------
        ArgumentError
            If the device does not support it.
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
        return table_of(self.adapter, ("", ""), rows, texts=(0, 1), remarks=notes).html()

    def _subgroups(self) -> str:
        return "no subgroups" if self.subgroup_size is None else f"subgroups of {self.subgroup_size}"

    def _step(self) -> str:
        return format_time(self.tick_step_ns)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON data."""
        found = asdict(self)
        found["subgroup_matrices"] = list(found["subgroup_matrices"])
        return {**found, "features": sorted(self.features), "limits": dict(self.limits)}


def check_float64(what: str, capabilities: Capabilities) -> None:
    """Raise DatatypeError where a device does not compute with float64."""
    missing = [name for name in FEATURES_OF_FLOAT64 if name not in capabilities.features]
    if missing:
        raise DatatypeError(
            f"{what} of f64 needs the features {' and '.join(map(repr, missing))}, which the device of "
            f"{capabilities.adapter!r} was not made with; request_device() asks for them where the adapter has them; "
            f"otherwise compute in float32, x.astype(np.float32): compensated=True keeps sums accurate"
        )
