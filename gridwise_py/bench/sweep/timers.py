"""The microsecond lie, reproduced: one job, five timers, with warm-up and without.

Each sample is one job with one timer. Timers take turns, so that a slow phase of the machine affects all of them. A
sample without warm-up has its own device, on an idle GPU. With warm-up, a round begins with the same work, and its
samples follow without a pause. Another library that does the same job (a peer) gets its own warm-up and round after
each of ours. It is loaded after all samples without warm-up, because its context would keep the GPU from idling.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import wgpu

from ... import Array, Event, VectorAdd, asarray, empty_like, request_device, synchronize
from ...errors import TimingUnavailable
from ...internals import context_of
from ..results.context import run_context
from ..stats.statistics import summarize

__all__ = ["TIMERS", "WORKLOADS", "LoadPeer", "Peer", "TimedJob", "Timer", "Workload", "run_timers"]

SCHEMA = "gridwise.timers"


@dataclass(frozen=True)
class Timer:
    """A way to time a job.

    Attributes
    ----------
    name : str
    clock : str or None
        Function of the module `time`, in seconds; None for the GPU's own clock.
    waits : bool
        Whether it waits for the GPU before it reads the clock.
    what : str
        The quantity that it really measures.
    """

    name: str
    clock: str | None
    waits: bool
    what: str


TIMERS = (
    Timer("submit only", "perf_counter", False, "the CPU's time to hand over the job; the GPU has hardly begun"),
    Timer("GPU timestamps", None, True, "the GPU's time between the two timestamps"),
    Timer("perf_counter + wait", "perf_counter", True, "a caller's wait: submission, GPU, and the return to Python"),
    Timer("time.time + wait", "time", True, "the same, by a clock that can be set meanwhile"),
    Timer("process_time + wait", "process_time", True, "CPU time of all threads of this process: "
          "no sleeping wait and no GPU; on a software adapter, also the threads that act as the GPU"),
)  # fmt: skip


@dataclass(frozen=True)
class Workload:
    """A job.

    Attributes
    ----------
    name : str
    n : int
        Items of each vector, f32.
    transfers : bool
        Whether the time includes creating memory, uploading the vectors and downloading the sum.
    """

    name: str
    n: int
    transfers: bool


WORKLOADS = (
    Workload("vector add", 10_000_000, False),
    Workload("vector add with upload and download", 5_000_000, True),
)


class Peer(Protocol):
    """A job in another library, timed by that library's own means.

    Attributes
    ----------
    name : str
        Of the library.
    described : mapping
        Its version, as ``version``, and other facts for the file of figures.
    timers : mapping from str to callable
        Each runs the job once on an idle GPU, and returns nanoseconds.
    explained : mapping from str to str
        By timer: the quantity that it really measures.
    """

    @property
    def name(self) -> str: ...
    @property
    def described(self) -> Mapping[str, Any]: ...
    @property
    def timers(self) -> Mapping[str, Callable[[], float]]: ...
    @property
    def explained(self) -> Mapping[str, str]: ...

    def run(self) -> None:
        """Run the job and wait for it: its warm-up."""


#: Loads a library, and returns a function that makes a peer from a workload and its data.
LoadPeer = Callable[[], Callable[[Workload, Sequence[np.ndarray]], Peer]]


class TimedJob:
    """A workload on a device."""

    def __init__(self, device: wgpu.GPUDevice, workload: Workload, data: Sequence[np.ndarray]):
        self.device = device
        self._workload = workload
        self._data = data
        self._add = VectorAdd(device, "f32")
        self._result: np.ndarray | None = None
        self._arrays: dict[str, Array] = {}
        if not workload.transfers:
            self._arrays = {name: asarray(values, device) for name, values in zip("ab", data, strict=True)}
            self._arrays["output"] = empty_like(self._arrays["a"])
        synchronize(device)

    def sample_ns(self, timer: Timer) -> float:
        """Run the job once, from an idle queue, and return the timer's time."""
        start, end = (Event(self.device), Event(self.device)) if timer.clock is None else (None, None)
        clock = getattr(time, f"{timer.clock}_ns") if timer.clock else None
        run = self._transfers if self._workload.transfers else self._prepared(start, end)
        synchronize(self.device)
        collecting = gc.isenabled()
        gc.disable()
        try:
            before = clock() if clock else 0
            run(start, end, timer.waits)
            after = clock() if clock else 0
        finally:
            if collecting:
                gc.enable()
        if start is not None and end is not None:
            end.synchronize()
            return start.elapsed_ns(end)
        synchronize(self.device)
        return float(after - before)

    def _prepared(self, start: Event | None, end: Event | None) -> Callable[..., None]:
        """Encode the job, so that only its submission and the wait are timed."""
        encoder = self.device.create_command_encoder(label="gridwise timers")
        if start is not None:
            start.record(encoder)
        self._add.record(encoder, a=self._arrays["a"], b=self._arrays["b"], output=self._arrays["output"])
        if end is not None:
            end.record(encoder)
        commands = [encoder.finish()]

        def run(_start: Event | None, _end: Event | None, waits: bool) -> None:
            self.device.queue.submit(commands)
            if waits:
                synchronize(self.device)

        return run

    def _transfers(self, start: Event | None, end: Event | None, waits: bool) -> None:
        """Create memory, upload, add, download; for a timer without a wait, all before the download."""
        if start is not None:
            start.record()
        arrays = {name: asarray(values, self.device) for name, values in zip("ab", self._data, strict=True)}
        output = self._add.execute(a=arrays["a"], b=arrays["b"]).output
        if waits:
            self._result = output.to_numpy()
        if end is not None:
            end.record()

    def check(self) -> None:
        """Compare the result with numpy's."""
        if not self._workload.transfers:
            self._result = self._arrays["output"].to_numpy()
        if self._result is not None:
            np.testing.assert_array_equal(self._result, self._data[0] + self._data[1])


def run_timers(
    adapter: int | str | None = None,
    *,
    repeats: int = 20,
    cold_repeats: int = 3,
    warmup_s: float = 0.3,
    idle_s: float = 0.5,
    workloads: Sequence[Workload] = WORKLOADS,
    seed: int = 0,
    load_peer: LoadPeer | None = None,
    progress: Callable[[str], None] = lambda _: None,
    keep: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Time each workload by each timer, without and with warm-up.

    Parameters
    ----------
    adapter : int or str, optional
        As `request_device` takes it.
    repeats, cold_repeats : int
        Samples of each timer with and without warm-up.
    warmup_s : float
        Warm-up time before the first round of samples with warm-up; later rounds get a tenth of it. In a round, samples
        follow without a pause.
    idle_s : float
        Pause before each sample without warm-up, in which a GPU lowers its clock.
    workloads : sequence of Workload
    seed : int
        Of the data.
    load_peer : callable, optional
        Loads another library, whose timers are compared, too (benchmarks/peers/torch_timers.py).
    progress : callable
        Called with the name of the next step.
    keep : callable
        Called with the data so far (``complete`` is false) after each sample without warm-up, and after each round with
        warm-up.

    Returns
    -------
    dict
        JSON data: a file of ``gridwise timers``.

    Raises
    ------
    TimingUnavailable
        If the device has no timestamps.
    AssertionError
        If a result is wrong.
    """
    device = request_device(adapter)
    if not context_of(device).has_timestamps:
        raise TimingUnavailable(
            "the adapter has no timestamp-query, so there is nothing to hold the CPU's timers against; choose another "
            "with adapter= or --adapter (`gridwise info` lists them)"
        )
    explained = {timer.name: timer.what for timer in TIMERS}
    rng = np.random.default_rng(seed)
    data = [[rng.random(workload.n, dtype=np.float32) for _ in range(2)] for workload in workloads]
    samples: list[_Samples] = [{} for _ in workloads]
    protocol = {
        "repeats": repeats, "cold_repeats": cold_repeats, "warmup_s": warmup_s, "idle_s": idle_s, "seed": seed,
    }  # fmt: skip
    document: dict[str, Any] = {
        "schema": SCHEMA, "schema_version": 2, **run_context(device), "protocol": protocol, "peers": {},
    }  # fmt: skip

    def so_far(complete: bool = False) -> dict[str, Any]:
        entries = [
            {**asdict(workload), "timers": [_row(name, explained[name], row) for name, row in rows.items()]}
            for workload, rows in zip(workloads, samples, strict=True)
            if rows
        ]
        return {**document, "complete": complete, "workloads": entries}

    for workload, vectors, rows in zip(workloads, data, samples, strict=True):
        # Made from the known adapter: searching again takes longer than making a device.
        for name, sample_ns in _cold(device.adapter, workload, vectors, cold_repeats, idle_s, progress):
            _put(rows, name, "cold", sample_ns)
            keep(so_far())
    make_peer = None
    if load_peer is not None:
        progress("loading the other library")
        make_peer = load_peer()
    for workload, vectors, rows in zip(workloads, data, samples, strict=True):
        progress(f"{workload.name}, with warm-up: preparing")
        job = TimedJob(device, workload, vectors)
        peer = None if make_peer is None else make_peer(workload, vectors)
        if peer is not None:
            document["peers"] = {peer.name: dict(peer.described)}
            explained |= peer.explained
        progress(f"{workload.name}, with warm-up: {repeats} of each timer")
        for i in range(repeats):
            for name, sample_ns in _warm(job, peer, warmup_s if i == 0 else warmup_s / 10):
                _put(rows, name, "warm", sample_ns)
            # The GPU idles while a file is written, but the next round has its own warm-up.
            keep(so_far())
        job.check()
    return so_far(complete=True)


#: By timer: nanoseconds, by "cold" and "warm".
_Samples = dict[str, dict[str, list[float]]]


def _put(rows: _Samples, timer: str, how: str, sample_ns: float) -> None:
    rows.setdefault(timer, {"cold": [], "warm": []})[how].append(sample_ns)


def _cold(
    adapter: wgpu.GPUAdapter,
    workload: Workload,
    data: Sequence[np.ndarray],
    repeats: int,
    idle_s: float,
    progress: Callable[[str], None],
) -> Iterator[tuple[str, float]]:
    for i in range(repeats):
        for timer in TIMERS:
            progress(f"{workload.name}, without warm-up, {i + 1} of {repeats}: {timer.name}")
            job = TimedJob(request_device(adapter), workload, data)
            time.sleep(idle_s)
            yield timer.name, job.sample_ns(timer)
            # Devices are in reference cycles: dozens, with their memory, would pile up and be freed during a timed
            # sample.
            del job
            gc.collect()


def _warm(job: TimedJob, peer: Peer | None, warmup_s: float) -> Iterator[tuple[str, float]]:
    """Take one sample of each timer: this library's in a row, then the peer's."""
    _warm_up(lambda: job.sample_ns(TIMERS[2]), warmup_s)
    for timer in TIMERS:
        yield timer.name, job.sample_ns(timer)
    if peer is not None:
        _warm_up(peer.run, warmup_s)
        for name, sample_ns in peer.timers.items():
            yield name, sample_ns()


def _warm_up(call: Callable[[], object], seconds: float) -> None:
    deadline = time.perf_counter() + seconds
    call()
    while time.perf_counter() < deadline:
        call()


def _row(name: str, what: str, samples: dict[str, list[float]]) -> dict[str, Any]:
    return {
        "timer": name,
        "what": what,
        **{
            how: {"samples_ns": values, "summary": summarize(values).to_json()} if values else None
            for how, values in samples.items()
        },
    }
