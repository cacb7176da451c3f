"""What experiments measure with: a device, its data, and calls that are repeated after a warm-up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import wgpu

from ... import Array, Primitive, TimingResult, asarray, request_device, synchronize
from ...internals import context_of


@dataclass
class Lab:
    """A device to experiment on.

    Attributes
    ----------
    device : wgpu.GPUDevice
    repeats : int
        Samples of each quantity.
    cold_repeats : int
        Of those that need a new device each.
    scale : float
        Factor for all sizes.
    warmup_s, idle_s : float
        Work before the samples; the pause in which a GPU lowers its clock.
    processes : int
        Of the experiment on processes.
    adapter : int, str or None
        The same device, for other processes.
    """

    device: wgpu.GPUDevice
    repeats: int = 20
    cold_repeats: int = 3
    scale: float = 1.0
    warmup_s: float = 0.3
    idle_s: float = 0.5
    processes: int = 5
    adapter: int | str | None = None
    seed: int = 0
    _rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    @property
    def is_cpu(self) -> bool:
        """Whether the adapter is software."""
        return context_of(self.device).capabilities.is_cpu

    @property
    def has_timestamps(self) -> bool:
        """Whether the device has timestamps."""
        return context_of(self.device).has_timestamps

    def size(self, n: int) -> int:
        """Return a number of items, scaled; at least 1."""
        return max(1, round(self.scale * n))

    def side(self, on_gpu: int, on_cpu: int) -> int:
        """Return the side of a matrix, scaled; a multiple of 4."""
        return max(4, round((on_cpu if self.is_cpu else on_gpu) * self.scale ** (1 / 3) / 4) * 4)

    def floats(self, n: int, device: wgpu.GPUDevice | None = None) -> Array:
        """Return random numbers on the device."""
        return asarray(self._rng.random(n, dtype=np.float32), device or self.device)

    def integers(self, n: int) -> Array:
        """Return random integers on the device."""
        return asarray(self._rng.integers(0, 1 << 32, n, dtype=np.uint32), self.device)

    def new_device(self) -> wgpu.GPUDevice:
        """Return another device of the same adapter: nothing is compiled for it yet."""
        return request_device(self.device.adapter)

    def warm_up(self, call: Callable[[], object]) -> None:
        """Repeat a call until the clock has risen."""
        deadline = time.perf_counter() + self.warmup_s
        call()
        while time.perf_counter() < deadline:
            call()

    def timed(self, primitive: Primitive, *, pause_s: float = 0.0, **options: Any) -> list[TimingResult]:
        """Return the times of repeated calls, after a warm-up; with a pause before each, without one.

        Times of the GPU and of the CPU, unless `options` say otherwise.
        """
        words: dict[str, Any] = {"enable_gpu_timing": self.has_timestamps, "enable_cpu_timing": True, **options}

        def call() -> TimingResult:
            return primitive.execute(**words).get_timing_result()

        call() if pause_s else self.warm_up(call)
        found: list[TimingResult] = []
        for _ in range(self.repeats if not pause_s else self.cold_repeats):
            if pause_s:
                synchronize(self.device)
                time.sleep(pause_s)
            found.append(call())
        return found


def known(values: Sequence[float | None]) -> list[float]:
    """Return the valid times."""
    return [value for value in values if value is not None]
