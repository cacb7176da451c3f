"""Some classes of devices as data, for questions that need no GPU: what would each be asked to do?

What plans depend on is stored: subgroups, limits, whether look-back is safe, and facts that shapes follow from. The
figures are no statement on a device of today: drivers change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ... import Capabilities, LookbackVerdict


class _Row(NamedTuple):
    """A class: `lanes` of a subgroup and the fewest of one, limits, and where all of it is from."""

    adapter: str
    backend: str
    kind: str
    lanes: int | None
    least: int
    storage: int
    invocations: int
    buffers: int
    binding_bytes: int
    lookback: str
    features: str
    source: str

    def capabilities(self) -> Capabilities:
        """Return what a device of the class can do."""
        limits = {
            "max-compute-workgroup-storage-size": self.storage,
            "max-compute-invocations-per-workgroup": self.invocations,
            "max-compute-workgroup-size-x": self.invocations,
            "max-storage-buffers-per-shader-stage": self.buffers,
            "max-storage-buffer-binding-size": self.binding_bytes,
            "max-buffer-size": max(self.binding_bytes, 1 << 28),
        }
        verdict = LookbackVerdict(
            coherent=True, progress=self.lookback != "no", needs_tickets=self.lookback == "tickets", recovers=True
        )
        features = {*self.features.split(), *(["subgroup"] if self.lanes else [])}
        return Capabilities(
            self.adapter, self.kind, self.backend, features=frozenset(features), limits=limits,
            subgroup_size=self.lanes, subgroup_min_size=self.least, lookback=verdict, facts=_FACTS.get(self.adapter),
        )  # fmt: skip


_FACTS: Mapping[str, Mapping[str, Any]] = {
    "H100": {"multiprocessors": 132, "storage_bytes": 65_536, "invocations": 2048}
}
_MOST = (1 << 31) - 4
_LONG = "shader-int64 shader-int64-atomic-all-ops shader-int64-atomic-min-max"
_ALL = f"shader-f16 shader-f64 {_LONG}"
_VULKAN = "VkPhysicalDeviceLimits and subgroup size control of"
_ROWS = {
    "H100, wgpu": _Row("H100", "Vulkan", "DiscreteGPU", 32, 32, 49_152, 1024, 1 << 19, _MOST, "safe", _ALL,
                       "benchmarks/results/h100/beside_cuda.json"),
    "H100, Dawn": _Row("H100", "Vulkan", "DiscreteGPU", 32, 32, 49_152, 1024, 16, _MOST, "safe", "shader-f16",
                       "benchmarks/results/h100/dawn_checks.json"),
    "AMD, wave32": _Row("RDNA", "Vulkan", "DiscreteGPU", 32, 32, 65_536, 1024, 1 << 10, _MOST, "safe", _ALL,
                        f"{_VULKAN} Mesa's RADV: 32 to 64 lanes"),
    "AMD, wave64": _Row("GCN", "Vulkan", "DiscreteGPU", 64, 64, 65_536, 1024, 1 << 10, _MOST, "safe", _ALL,
                        f"{_VULKAN} Mesa's RADV: 64 lanes"),
    "Intel, 8 to 32": _Row("Xe", "Vulkan", "IntegratedGPU", 32, 8, 65_536, 1024, 64, _MOST, "safe",
                           "shader-f16 shader-int64", f"{_VULKAN} Mesa's ANV: 8 to 32 lanes"),
    "Apple": _Row("Apple", "Metal", "IntegratedGPU", 32, 4, 32_768, 1024, 31, _MOST, "no", "shader-f16 shader-int64",
                  "Metal's feature set tables; progress of workgroups is not promised"),
    "Adreno": _Row("Adreno", "Vulkan", "IntegratedGPU", 64, 64, 32_768, 1024, 24, 1 << 27, "tickets", "",
                   f"{_VULKAN} Mesa's Turnip: 64 to 128 lanes"),
    "lavapipe": _Row("llvmpipe", "Vulkan", "CPU", 8, 4, 32_768, 1024, 32, 1 << 27, "tickets", _ALL,
                     "benchmarks/results/lavapipe/claims.json"),
    "SwiftShader": _Row("SwiftShader", "WebGPU", "CPU", 4, 4, 16_384, 256, 8, 1 << 27, "tickets", "",
                        "Chromium's, as pages of this library find it"),
    "WebGPU's defaults": _Row("default", "WebGPU", "Unknown", None, 4, 16_384, 256, 8, 1 << 27, "no", "",
                              "WebGPU, 3.6.2: default limits"),
}  # fmt: skip
#: By name: what a device of the class can do.
DEVICE_CLASSES: Mapping[str, Capabilities] = {name: row.capabilities() for name, row in _ROWS.items()}
#: Where that is from.
SOURCES: Mapping[str, str] = {name: row.source for name, row in _ROWS.items()}
