"""What experiments measure with: a device, its data, and calls that are repeated after a warm-up."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import wgpu

from ... import Array, Primitive, TimingResult, asarray, request_device, synchronize
from ...errors import DeviceError
from ...internals import context_of
from .model import Facts

__all__ = ["Lab", "known"]

_PROCESS_S = 120.0


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
    def facts(self) -> Facts:
        """What verdicts must know of the device."""
        context = context_of(self.device)
        return Facts(context.capabilities.is_cpu, context.has_timestamps)

    def size(self, n: int) -> int:
        """Return a number of items, scaled; at least 1."""
        return max(1, round(self.scale * n))

    def side(self, on_gpu: int, on_cpu: int) -> int:
        """Return the side of a matrix, scaled; a multiple of 4."""
        return max(4, round((on_cpu if self.facts.is_cpu else on_gpu) * self.scale ** (1 / 3) / 4) * 4)

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
        words: dict[str, Any] = {"enable_gpu_timing": self.facts.has_timestamps, "enable_cpu_timing": True, **options}

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

    def in_processes(self, n: int) -> list[list[float]]:
        """Return the GPU spans of a vector add of n items, by process, in ns; each process has a device of its own.

        Raises
        ------
        DeviceError
            If a process fails.
        """
        spec = json.dumps({"adapter": self.adapter, "n": n, "repeats": self.repeats, "warmup_s": self.warmup_s})
        program = f"from {__name__.rpartition('.')[0]}.job import main; main()"
        found: list[list[float]] = []
        for _ in range(self.processes):
            try:
                done = subprocess.run(
                    [sys.executable, "-c", program], input=spec, capture_output=True, text=True, timeout=_PROCESS_S,
                    check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired as error:
                raise DeviceError(f"a process that measures did not end within {_PROCESS_S:.0f} s") from error
            said = _answer(done.stdout)
            if done.returncode or "times_ns" not in said:
                printed = (done.stderr.strip() or done.stdout.strip()).splitlines()
                why = said.get("error") or (printed or ["it printed nothing"])[-1]
                raise DeviceError(f"a process that measures ended with {done.returncode}: {why}")
            found.append(said["times_ns"])
        return found


def _answer(printed: str) -> dict[str, Any]:
    """Return the line of JSON that a process printed last; empty if it is none, such as what a driver printed."""
    try:
        found: Any = json.loads(printed.strip().rpartition("\n")[2])
    except ValueError:
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def known(values: Sequence[float | None]) -> list[float]:
    """Return the valid times."""
    return [value for value in values if value is not None]
