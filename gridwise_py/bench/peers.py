"""The same job in PyTorch, timed by its own means, where PyTorch is installed and sees a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

__all__ = ["TorchAdd", "cuda_torch"]


class TorchAdd:
    """A vector add in PyTorch.

    Attributes
    ----------
    timers : dict from str to callable
        Each runs the job once, with an idle GPU before it, and returns nanoseconds.
    described : dict
        Versions and the device, for a file of figures.
    """

    WHAT: ClassVar[dict[str, str]] = {
        "torch.cuda.Event": "the GPU, between two CUDA events; the launch from the host lies between them",
        "torch: perf_counter, no synchronize": "the CPU handing the launch to CUDA",
        "torch: perf_counter + synchronize": "what a caller of PyTorch waits",
    }

    def __init__(self, torch: Any, data: Sequence[np.ndarray], transfers: bool):
        self._torch = torch
        self._data = [torch.from_numpy(values) for values in data]
        self._transfers = transfers
        if not transfers:
            self._a, self._b = (values.cuda() for values in self._data)
            self._out = torch.empty_like(self._a)
        self.described: dict[str, Any] = {
            "version": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name(0),
        }  # fmt: skip
        self.timers: dict[str, Callable[[], float]] = {
            "torch.cuda.Event": self._event_ns,
            "torch: perf_counter, no synchronize": lambda: self._cpu_ns(waits=False),
            "torch: perf_counter + synchronize": lambda: self._cpu_ns(waits=True),
        }

    def _run(self, waits: bool) -> None:
        if not self._transfers:
            self._torch.add(self._a, self._b, out=self._out)
            return
        a, b = (values.cuda() for values in self._data)
        total = a + b
        if waits:
            total.cpu()

    def _event_ns(self) -> float:
        torch = self._torch
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        self._run(True)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e6

    def _cpu_ns(self, waits: bool) -> float:
        self._torch.cuda.synchronize()
        before = time.perf_counter_ns()
        self._run(waits)
        if waits:
            self._torch.cuda.synchronize()
        after = time.perf_counter_ns()
        self._torch.cuda.synchronize()
        return float(after - before)


def cuda_torch() -> Any | None:
    """Return the module torch, imported here; None where PyTorch is missing, or sees no GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None
