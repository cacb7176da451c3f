"""Five ways to time one job: a vector add that is submitted alone, or with its uploads and its download."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import wgpu

from ... import Array, Event, VectorAdd, asarray, empty_like, synchronize

#: Around a job; None where a clock of the CPU times it.
_Events: TypeAlias = tuple[Event, Event] | None


class Timer(NamedTuple):
    """A way to time a job.

    Attributes
    ----------
    name : str
    clock : str or None
        Function of the module `time`, in seconds; None for the GPU's own clock.
    waits : bool
        Whether it waits for the GPU before it reads the clock.
    """

    name: str
    clock: str | None
    waits: bool


TIMERS = (
    Timer("submit only", "perf_counter", False),
    Timer("GPU timestamps", None, True),
    Timer("perf_counter + wait", "perf_counter", True),
    Timer("time.time + wait", "time", True),
    Timer("process_time + wait", "process_time", True),
)


class TimedJob:
    """A vector add of n items of f32.

    Parameters
    ----------
    device : wgpu.GPUDevice
    n : int
    transfers : bool
        Whether the time includes creating memory, uploading the vectors and downloading the sum.
    seed : int
        Of the data.
    """

    def __init__(self, device: wgpu.GPUDevice, n: int, *, transfers: bool, seed: int = 0):
        self.device = device
        rng = np.random.default_rng(seed)
        self._data = {name: rng.random(n, dtype=np.float32) for name in "ab"}
        self._add = VectorAdd(device, "f32")
        self._arrays: dict[str, Array] | None = None
        if not transfers:
            arrays = {name: asarray(items, device) for name, items in self._data.items()}
            self._arrays = {**arrays, "output": empty_like(arrays["a"])}
        synchronize(device)

    def sample_ns(self, timer: Timer) -> float:
        """Run the job once, from an idle queue, and return the timer's time."""
        events = (Event(self.device), Event(self.device)) if timer.clock is None else None
        clock: Callable[[], int] = getattr(time, f"{timer.clock}_ns") if timer.clock else int
        run = self._transfer if self._arrays is None else self._prepare(self._arrays, events)
        synchronize(self.device)
        collecting = gc.isenabled()
        gc.disable()
        try:
            before = clock()
            run(events, timer.waits)
            after = clock()
        finally:
            if collecting:
                gc.enable()
        if events is not None:
            events[1].synchronize()
            return events[0].elapsed_ns(events[1])
        synchronize(self.device)
        return float(after - before)

    def _prepare(self, arrays: dict[str, Array], events: _Events) -> Callable[[_Events, bool], None]:
        """Encode the job, so that only its submission and the wait are timed."""
        encoder = self.device.create_command_encoder(label="gridwise timers")
        if events is not None:
            events[0].record(encoder)
        self._add.record(encoder, a=arrays["a"], b=arrays["b"], output=arrays["output"])
        if events is not None:
            events[1].record(encoder)
        commands = [encoder.finish()]

        def run(_events: _Events, waits: bool) -> None:
            self.device.queue.submit(commands)
            if waits:
                synchronize(self.device)

        return run

    def _transfer(self, events: _Events, waits: bool) -> None:
        """Create memory, upload, add, download; for a timer without a wait, all before the download."""
        if events is not None:
            events[0].record()
        a, b = (asarray(items, self.device) for items in self._data.values())
        output = self._add.execute(a=a, b=b).output
        if waits:
            output.to_numpy()
        if events is not None:
            events[1].record()
