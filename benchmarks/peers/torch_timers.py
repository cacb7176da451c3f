"""`gridwise timers` with PyTorch's timers beside ours: the same job in both libraries, on the same GPU.

Usage: python benchmarks/peers/torch_timers.py [--json FILE] [--plot FILE]

Needs PyTorch with CUDA and a Vulkan driver for the same GPU. Without them it says so and ends with 2. PyTorch is loaded
when all samples without warm-up are taken, since its context would keep the GPU from idling.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import click
import numpy as np

from gridwise_py.bench.sweep.timers import Workload
from gridwise_py.cli.timers import time_and_show, timers_options


class TorchAdd:
    """A vector add in PyTorch; a `gridwise_py.bench.sweep.timers.Peer`."""

    name = "PyTorch"
    explained: ClassVar[dict[str, str]] = {
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
        timers: tuple[Callable[[], float], ...] = (
            self._event_ns,
            lambda: self._cpu_ns(waits=False),
            lambda: self._cpu_ns(waits=True),
        )
        self.timers = dict(zip(self.explained, timers, strict=True))

    def run(self) -> None:
        """Run it and wait."""
        self._cpu_ns(waits=True)

    def _call(self, waits: bool) -> None:
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
        self._call(True)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e6

    def _cpu_ns(self, waits: bool) -> float:
        self._torch.cuda.synchronize()
        before = time.perf_counter_ns()
        self._call(waits)
        if waits:
            self._torch.cuda.synchronize()
        after = time.perf_counter_ns()
        self._torch.cuda.synchronize()
        return float(after - before)


def load_torch() -> Any:
    """Return PyTorch, if it can use a GPU."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise click.UsageError("PyTorch is not installed, so there are no CUDA events: pip install torch") from error
    if not torch.cuda.is_available():
        raise click.UsageError("PyTorch sees no CUDA device, so there are no CUDA events; this needs an NVIDIA GPU")
    return torch


def load_peer() -> Callable[[Workload, Sequence[np.ndarray]], TorchAdd]:
    """Return what makes a `TorchAdd`, with PyTorch loaded."""
    torch = load_torch()
    return lambda workload, data: TorchAdd(torch, data, workload.transfers)


@click.command()
@timers_options
def main(**options: Any) -> None:
    """Time a vector add by the timers of `gridwise timers`, and by those of PyTorch."""
    # It is loaded later; but that it is missing is said now.
    if importlib.util.find_spec("torch") is None:
        load_torch()
    time_and_show(**options, load_peer=load_peer)


if __name__ == "__main__":
    main()
