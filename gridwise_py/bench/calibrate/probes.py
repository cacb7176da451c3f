"""The measurements of a calibration: the unit of the tick, floors, ceilings, and the cost of synchronising."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import wgpu
from numpy.typing import NDArray

from ... import Array, Copy, TimingSession, asarray, synchronize
from ...internals import BoundPlan, OwnKernel, Triad, bracket, context_of
from ...storage.records import Record
from ...storage.schemas import Limits
from .classify import classify
from .kernels import CANARY, NOTHING

#: What was measured of a device, if it was.
Known = Annotated[float, Limits(above=0, at_most=1e24)]
_TICK_CHECK_S = 0.06
#: A long canary, for the check of the tick.
TICK = CANARY._replace(constants=(("ROUNDS", 16_384),))
#: Of the kernel of multiply-adds.
FMA_ROUNDS, MOST_FMA_WORKGROUPS = 256, 16_384
_FMA_FLOPS_PER_ROUND, _FMA_WORKGROUP = 64, 256
ATOMIC_ROUNDS, _ATOMIC_BYTES = 64, 1 << 20
#: The peaks beside f32, with the features that they need.
PEAK_FEATURES: dict[str, str | None] = {
    "f16": "shader-f16", "i32": None, "f64": "shader-f64", "atomic_u32": None,
    "atomic_u64": "shader-int64-atomic-all-ops",
}  # fmt: skip
_PASSES = 64
_MANY_DISPATCHES = 101
_COARSE_STEP_NS = 1000.0  # empty passes take some µs
_MIN_CEILING_BYTES = 1 << 16
_CEILING_REPEATS = 7
_TILE_BYTES = 8 << 20


@dataclass(frozen=True)
class TickCheck(Record):
    """The time of one kernel on both clocks.

    Attributes
    ----------
    span_ns, wall_ns : float
        The same work by timestamps, and by the CPU's clock.
    """

    span_ns: Known
    wall_ns: Known

    @classmethod
    def from_json(cls, data: Mapping[str, Any], **given: Any) -> Self:
        """Return the check of a JSON object, whose ratio and verdict follow from it."""
        return cls(data["span_ns"], data["wall_ns"])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object, with the ratio and the verdict."""
        return {**super().to_json(), "ratio": self.ratio, "ok": self.ok}

    @property
    def ratio(self) -> float:
        """Span over wall."""
        return self.span_ns / self.wall_ns

    @property
    def ok(self) -> bool:
        """Whether a tick can be as long as the driver says: 0.8 ≤ span / wall ≤ 1.02."""
        return 0.8 <= self.ratio <= 1.02


def _clock(
    device: wgpu.GPUDevice, bound: BoundPlan, passes: int = 1, trials: int = 1, timing: TimingSession | None = None
) -> tuple[int, int, int]:
    """Run passes in one submission; return when it began, was submitted and was done, on the CPU's clock in ns."""
    encoder = device.create_command_encoder()
    for _ in range(passes):
        bound.encode(encoder, trials=trials, timing=timing)
    commands = [encoder.finish()]
    return bracket(device, lambda: device.queue.submit(commands))


def _stamps(
    device: wgpu.GPUDevice, bound: BoundPlan, passes: int = 1, trials: int = 1
) -> tuple[NDArray[np.uint64], float]:
    """Run passes in one submission; return their ticks, shape (passes, kernels, 2), and the wall in ns."""
    session = context_of(device).timing_helper.session()
    t0, _, t2 = _clock(device, bound, passes, trials, session)
    session.submitted()
    return session.ticks().reshape(passes, -1, 2), float(t2 - t0)


class Passes(NamedTuple):
    """Passes of one submission.

    Attributes
    ----------
    lengths_ns, gaps_ns : numpy.ndarray
        Valid lengths, and the gaps between valid neighbours.
    """

    lengths_ns: NDArray[np.float64]
    gaps_ns: NDArray[np.float64]

    @classmethod
    def judge(cls, ticks: NDArray[np.uint64], wall_ns: float, period_ns: float) -> Passes:
        """Return passes from their ticks, shape (passes, kernels, 2), and the wall of their submission."""
        lengths = classify(ticks, period_ns, [0] * len(ticks), [wall_ns]).span_ns
        ends, begins = ticks[:-1, -1, 1], ticks[1:, 0, 0]
        usable = ~np.isnan(lengths[:-1]) & ~np.isnan(lengths[1:]) & (begins >= ends)
        gaps = (begins - ends)[usable].astype(np.float64) * period_ns
        return cls(lengths[~np.isnan(lengths)], gaps)


def timed_passes(device: wgpu.GPUDevice, bound: BoundPlan, passes: int = 1, trials: int = 1) -> Passes:
    """Run passes in one submission."""
    ticks, wall_ns = _stamps(device, bound, passes, trials)
    return Passes.judge(ticks, wall_ns, context_of(device).timing_helper.tick_period_ns)


def median_or_none(values: Sequence[float] | NDArray[np.float64]) -> float | None:
    return float(np.median(values)) if len(values) else None


def keep_busy(device: wgpu.GPUDevice, seconds: float) -> None:
    """Run the canary without pauses, to raise the clock."""
    canary = CANARY.bind(device)
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for _ in range(2):
            encoder = device.create_command_encoder()
            canary.encode(encoder, trials=50)
            device.queue.submit([encoder.finish()])
        synchronize(device)


def check_tick(device: wgpu.GPUDevice, seconds: float = _TICK_CHECK_S) -> TickCheck:
    """Time a pass of over 50 ms by timestamps and by the CPU's clock."""
    bound = TICK.bind(device)
    timed_passes(device, bound)  # compiles
    trials = 1
    while True:
        t0, _, t2 = _clock(device, bound, trials=trials)
        if t2 - t0 >= 1e7 or trials >= 1 << 16:
            break
        trials *= 2
    trials = max(1, int(np.ceil(trials * seconds * 1e9 / (t2 - t0))))
    attempts = 4  # another process may take the CPU before the second reading of the clock
    while True:
        ticks, wall = _stamps(device, bound, trials=trials)
        begin, end = (int(tick) for tick in ticks[0, 0])
        # Not compared with the wall, unlike all other spans: this comparison is the result.
        check = TickCheck((end - begin) * context_of(device).timing_helper.tick_period_ns, wall)
        too_short = wall < 0.9e9 * seconds  # the clock was still rising when the size of the work was chosen
        attempts -= 1
        if not attempts or (check.ok and not too_short):
            return check
        if too_short:
            trials = int(np.ceil(1.1e9 * trials * seconds / wall))


def floors_ns(device: wgpu.GPUDevice) -> dict[str, float | None]:
    """Return the times of a one-workgroup kernel that does nothing; an empty pass reads 0 on some systems."""
    nothing = NOTHING.bind(device)
    timed_passes(device, nothing)
    one = timed_passes(device, nothing, passes=_PASSES)
    many = timed_passes(device, nothing, passes=_PASSES // 4, trials=_MANY_DISPATCHES)
    return floors_from(one, many, _MANY_DISPATCHES, _submissions(device, nothing))


def floors_from(
    one: Passes,
    many: Passes,
    dispatches: int,
    submissions: Sequence[tuple[float, float]],
    step_ns: float | None = None,
) -> dict[str, float | None]:
    """Return the floors from measured times.

    Parameters
    ----------
    one, many : Passes
        Passes of one dispatch, and of `dispatches`, that do nothing.
    dispatches : int
    submissions : sequence of (float, float)
        Times of submitting and of waiting, in ns.
    step_ns : float, optional
        The step of the GPU's clock. With a coarse one, most empty passes read 0, and the rest a step: no time is known.
    """
    coarse = step_ns is not None and step_ns > _COARSE_STEP_NS
    return {
        "empty_pass": None if coarse else median_or_none(one.lengths_ns),
        # With its share of the pass: two medians that are subtracted may leave a negative time.
        "dispatch_in_long_pass": None if coarse else median_or_none(many.lengths_ns / dispatches),
        "gap_between_passes": None if coarse else median_or_none(one.gaps_ns),
        "submission": median_or_none([submit + wait for submit, wait in submissions]),
    }


def _submissions(device: wgpu.GPUDevice, bound: BoundPlan, count: int = 50) -> list[tuple[int, int]]:
    """Return the times of submitting and of waiting, for submissions of one pass each."""
    clocks = (_clock(device, bound) for _ in range(count))
    return [(t1 - t0, t2 - t1) for t0, t1, t2 in clocks]


def synchronising_ns(device: wgpu.GPUDevice, count: int = 50) -> dict[str, float | None]:
    """Return the cost of each way to synchronise, on the CPU's clock: medians."""
    nothing = NOTHING.bind(device)
    submissions = _submissions(device, nothing, count)
    out = np.empty(1, dtype=np.uint32)
    context, (buffer,) = context_of(device), nothing.own_buffers.values()

    def times(call: Callable[[], object]) -> list[int]:
        found: list[int] = []
        for _ in range(count):
            synchronize(device)
            begin = time.perf_counter_ns()
            call()
            found.append(time.perf_counter_ns() - begin)
        return found

    return {
        "submit": median_or_none([submit for submit, _ in submissions]),
        "wait_when_idle": median_or_none(times(lambda: synchronize(device))),
        "wait_after_work": median_or_none([wait for _, wait in submissions]),
        "readback_4_bytes": median_or_none(times(lambda: context.read_buffer(buffer, 0, out))),
    }


# ---- ceilings


def _random_buffer(device: wgpu.GPUDevice, size_bytes: int) -> wgpu.GPUBuffer:
    """Return a buffer of incompressible data: GPU memory may store zeros compressed, and faster."""
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    buffer = device.create_buffer(label="gridwise ceiling", size=size_bytes, usage=usage)
    tile = np.random.default_rng(0).integers(0, 1 << 32, min(size_bytes, _TILE_BYTES) // 4, dtype=np.uint32)
    source = device.create_buffer_with_data(data=tile, usage=wgpu.BufferUsage.COPY_SRC)
    encoder = device.create_command_encoder()
    for start in range(0, size_bytes, source.size):
        encoder.copy_buffer_to_buffer(source, 0, buffer, start, min(source.size, size_bytes - start))
    device.queue.submit([encoder.finish()])
    return buffer


def ceilings(device: wgpu.GPUDevice, sizes_bytes: Sequence[int]) -> dict[str, list[dict[str, float]]]:
    """Return the speeds of copy (1 read, 1 write) and triad (2 reads, 1 write), by bytes of one array.

    Each is the median of passes of at least about 1 ms; arrays that fit into the caches are read from there.

    Parameters
    ----------
    device : wgpu.GPUDevice
    sizes_bytes : sequence of int
        Sizes of an array, multiples of 4, ascending; `powers_of_two` gives a whole sweep.
    """
    found: dict[str, list[dict[str, float]]] = {"copy": [], "triad": []}
    if not sizes_bytes:
        return found
    buffers = [_random_buffer(device, max(sizes_bytes)) for _ in range(3)]
    copy, triad = Copy(device, "u32"), Triad(device, "u32")
    for size in sizes_bytes:
        a, b, output = (Array(buffer, "u32", size // 4) for buffer in buffers)
        for name, primitive, arrays in (
            ("copy", copy, {"input": a, "output": output}),
            ("triad", triad, {"a": a, "b": b, "output": output}),
        ):
            call = primitive.bind(**arrays)
            ns = _pass_ns(device, call.bound_plan)
            if ns is not None:
                found[name].append(speed_from(size, call.plan.work.moved_bytes, ns))
    return found


def speed_from(array_bytes: int, moved_bytes: int, ns: float) -> dict[str, float]:
    """Return the speed of one dispatch of a copy or a triad."""
    return {"array_bytes": array_bytes, "moved_bytes": moved_bytes, "gbytes_per_s": moved_bytes / ns}


def copy_item_ns(device: wgpu.GPUDevice, items: int = 1 << 20) -> float:
    """Return roughly the copy kernel's time per item, on the CPU's clock; takes a moment only.

    The arrays exceed the first-level caches, so that larger arrays are not much slower per item.
    """
    call = Copy(device, "u32").bind(input=asarray(np.zeros(items, dtype=np.uint32), device))
    clocks = [_clock(device, call.bound_plan, trials=2) for _ in range(4)]
    # The first compiles.
    return float(np.median([(t2 - t0) / (2 * items) for t0, _, t2 in clocks[1:]]))


def powers_of_two(max_bytes: int) -> list[int]:
    """Return the sizes of a whole sweep, from 64 KiB to `max_bytes`."""
    largest = max_bytes.bit_length() - 1
    return [1 << i for i in range(min(_MIN_CEILING_BYTES.bit_length() - 1, largest), largest + 1)]


def _pass_ns(device: wgpu.GPUDevice, bound: BoundPlan) -> float | None:
    """Return the time of one dispatch, from passes of about a millisecond."""
    trials = 1
    while True:
        lengths = timed_passes(device, bound, trials=trials).lengths_ns
        if not lengths.size or lengths[0] >= 1e6 or trials >= 512:
            break
        trials = min(512, max(2 * trials, int(1.2e6 * trials / max(lengths[0], 1.0))))
    return _median_ns(device, bound, trials, _CEILING_REPEATS)


def _median_ns(device: wgpu.GPUDevice, bound: BoundPlan, trials: int, repeats: int) -> float | None:
    """Return the median time of one of the dispatches of a pass; None if no pass has a time."""
    found = [float(ns) for _ in range(repeats) for ns in timed_passes(device, bound, trials=trials).lengths_ns]
    ns = median_or_none(found)
    return ns / trials if ns else None


def cache_knee_bytes(copies: Sequence[Mapping[str, float]]) -> int | None:
    """Estimate the size of the last-level cache: the bytes that a copy touches when its speed drops.

    Parameters
    ----------
    copies : sequence of mapping
        With ``moved_bytes`` and ``gbytes_per_s``, ascending in size.

    Returns
    -------
    int or None
        An upper bound, at most twice the size; None if there is no drop (speeds fall by less than 30 %, or the largest
        arrays still fit).
    """
    if len(copies) < 3:
        return None
    speeds = [point["gbytes_per_s"] for point in copies]
    peak = int(np.argmax(speeds))
    memory = float(np.median(speeds[-2:]))
    if speeds[peak] < 1.3 * memory:
        return None
    middle = (speeds[peak] * memory) ** 0.5
    # The last fast size, not the first slow one: noise may slow a copy, but never speeds it up.
    last = max(i for i, speed in enumerate(speeds) if speed >= middle)
    return int(copies[last + 1]["moved_bytes"]) if last + 1 < len(copies) else None


def fma_kernel(workgroups: int, datatype: str = "f32") -> OwnKernel:
    """Return the kernel of multiply-adds."""
    return OwnKernel("fma", 256, workgroups, (("ROUNDS", FMA_ROUNDS),), datatype)


def fma_flops(workgroups: int) -> int:
    """Return the operations of a dispatch of the kernel of multiply-adds, two for each."""
    return workgroups * _FMA_WORKGROUP * FMA_ROUNDS * _FMA_FLOPS_PER_ROUND


def fma_gflops(device: wgpu.GPUDevice) -> float | None:
    """Return the throughput of f32 multiply-adds, in 10^9 operations per second, two for each."""
    return _multiply_adds(device, "f32")


def peaks_of(device: wgpu.GPUDevice) -> list[str]:
    """Return the names of the peaks that a device has: others made on the same adapter may have more features."""
    return [name for name, feature in PEAK_FEATURES.items() if feature is None or feature in device.features]


def peaks_gops(device: wgpu.GPUDevice, names: Iterable[str] | None = None) -> dict[str, float]:
    """Return the throughput of operations by type, in 10^9 per second, beside that of `fma_gflops`.

    By default of all that the device has (`peaks_of`); what cannot be timed is left out.

    ``f16``, ``i32`` and ``f64``: multiply-adds, two operations for each. ``atomic_u32`` and ``atomic_u64``: atomic
    additions to different words of 1 MiB.
    """
    found: dict[str, float] = {}
    for name in peaks_of(device) if names is None else names:
        datatype = name.removeprefix("atomic_")
        speed = (_multiply_adds if name == datatype else _atomic_additions)(device, datatype)
        if speed is not None:
            found[name] = speed
    return found


def _multiply_adds(device: wgpu.GPUDevice, datatype: str) -> float | None:
    return _operations_per_ns(device, lambda workgroups: fma_kernel(workgroups, datatype), fma_flops)


def _atomic_additions(device: wgpu.GPUDevice, datatype: str) -> float | None:
    constants = (("ROUNDS", ATOMIC_ROUNDS),)
    return _operations_per_ns(
        device,
        lambda workgroups: OwnKernel("atomics", _ATOMIC_BYTES, workgroups, constants, datatype),
        lambda workgroups: workgroups * _FMA_WORKGROUP * ATOMIC_ROUNDS,
    )


def _operations_per_ns(
    device: wgpu.GPUDevice, make: Callable[[int], OwnKernel], operations: Callable[[int], int]
) -> float | None:
    """Return operations per ns of a kernel, by its number of workgroups: of so many that a dispatch takes 5 ms."""
    workgroups = 16
    while True:
        bound = make(workgroups).bind(device)
        timed_passes(device, bound)
        lengths = timed_passes(device, bound).lengths_ns
        if not lengths.size or lengths[0] >= 5e6 or workgroups >= MOST_FMA_WORKGROUPS:
            break
        workgroups *= 4
    limit = max(1, int(2e7 / max(lengths[0], 1.0))) if lengths.size else 1
    ns = _median_ns(device, bound, limit, 5)
    return operations(workgroups) / ns if ns else None
