"""The experiments: each a claim with its source, what is measured for it, and when it holds.

What a function returns is judged by intervals (`apart`), so an experiment never asserts a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ... import Copy, MatMul, Sort, VectorAdd, asarray, synchronize
from ...internals import bracket
from ..cases.case import Case
from ..cases.mode import Mode
from ..sampling.measure import measure
from ..sampling.protocol import SamplingProtocol
from ..sweep.suite import Job
from ..sweep.worker import measure_isolated
from .lab import Lab, known
from .model import RATE, Experiment, Judge, Measure, Outcome, Reading, Readings, Verdict, apart, larger, outcome
from .timers import TIMERS, TimedJob, Timer

_RING = (
    "E. Ring, The Microsecond Lie (dev.to): 160 µs submitted, 434 µs by events, 404 µs with a wait, on an RTX 4070 Ti"
)
_GRIDWISE = "Gridwise, Timing Strategy (gridwise-webgpu.github.io)"
_K80 = "vectorAdd of 5,000,000 by four clocks (Chinese article on CUDA's timing functions, Tesla K80)"
_SUBMIT, _GPU, _WALL = (timer.name for timer in TIMERS[:3])
# A GEMM must be so long that a wait hardly counts, and a short kernel so short that it does.
_HARDLY, _MUCH = 1.10, 1.5
_AGREE = 1.05
_BROWSER_NS = 100_000

#: All experiments by name, in the order of their definition.
EXPERIMENTS: dict[str, Experiment] = {}


def experiment(name: str, claim: str, source: str, judge: Judge, **needs: Any) -> Callable[[Measure], Experiment]:
    """Register the function that measures for an experiment; `needs` are its other fields."""

    def made(measure: Measure) -> Experiment:
        EXPERIMENTS[name] = Experiment(name, claim, source, measure, judge, **needs)
        return EXPERIMENTS[name]

    return made


def _in_turns(job: TimedJob, timers: Mapping[str, Timer], lab: Lab) -> Readings:
    """Return the samples of timers that take turns, after a warm-up."""
    lab.warm_up(lambda: job.sample_ns(TIMERS[2]))
    rounds = [{name: job.sample_ns(timer) for name, timer in timers.items()} for _ in range(lab.repeats)]
    return {name: [one[name] for one in rounds] for name in timers}


def _judge_enqueue(r: Readings) -> Outcome:
    gpu, wall = apart(r, _GPU, _SUBMIT), apart(r, _WALL, _SUBMIT)
    return outcome(gpu.larger, f"{gpu.text}; {wall.text}")


@experiment(
    "enqueue",
    "A CPU timer around a launch, without a wait, shows the submission and not the work (vector add of 10,000,000).",
    _RING,
    judge=_judge_enqueue,
)
def enqueue(lab: Lab) -> Readings:
    """The same job by five timers."""
    job = TimedJob(lab.device, lab.size(10_000_000), transfers=False, seed=lab.seed)
    return _in_turns(job, {timer.name: timer for timer in TIMERS}, lab)


def _judge_gemm(r: Readings) -> Outcome:
    long, short = apart(r, "GEMM: wall", "GEMM: GPU"), apart(r, "short kernel: wall", "short kernel: GPU")
    return outcome(long.ratio <= _HARDLY and short.ratio >= _MUCH, f"{long.text}; {short.text}")


@experiment(
    "gemm",
    f"Around a long GEMM a CPU timer with a wait agrees with events within {100 * (_HARDLY - 1):.0f} %; around a short "
    f"kernel it shows over {_MUCH:g} times the GPU's time.",
    "CUDA Event Timing, day 2 (notebook: 4096³ in f16 by time.time and torch.cuda.Event)",
    judge=_judge_gemm,
)
def gemm(lab: Lab) -> Readings:
    """A matrix product and a vector add of 1,000 items, on both clocks."""
    side = lab.side(4096, 512)
    product, add = MatMul(lab.device, "f32", m=side, n=side, k=side), VectorAdd(lab.device, "f32")
    long = lab.timed(product, a=lab.floats(side * side), b=lab.floats(side * side))
    short = lab.timed(add, a=lab.floats(1000), b=lab.floats(1000))
    return {
        f"{name}: {clock}": known([one.cpu_total_time_ns if clock == "wall" else one.gpu_span_ns for one in times])
        for name, times in (("GEMM", long), ("short kernel", short))
        for clock in ("wall", "GPU")
    }


@experiment(
    "first-call",
    "The first call takes longer than later ones, so a timer needs a warm-up.",
    f"{_K80}: 535 ms without and 327 ms with a warm-up; docs.pytorch.org/docs/stable/benchmark_utils.html: parts are "
    "initialised lazily",
    judge=larger("first call", "later calls"),
    needs_timestamps=False,
)
def first_call(lab: Lab) -> Readings:
    """The first two calls on new devices, with creating memory, uploads and downloads."""
    first: list[float] = []
    later: list[float] = []
    for _ in range(lab.cold_repeats):
        job = TimedJob(lab.new_device(), lab.size(5_000_000), transfers=True, seed=lab.seed)
        time.sleep(lab.idle_s)
        first.append(job.sample_ns(TIMERS[2]))
        later += [job.sample_ns(TIMERS[2]) for _ in range(3)]
    return {"first call": first, "later calls": later}


def _judge_clocks(r: Readings) -> Outcome:
    medians = {name: float(np.median(samples)) for name, samples in r.items()}
    middle = float(np.median(list(medians.values())))
    worst = max(medians, key=lambda name: abs(np.log(medians[name] / middle)) if medians[name] else np.inf)
    text = ", ".join(f"{name} {Reading.of(samples)}" for name, samples in r.items())
    if max(medians.values()) <= _AGREE * min(medians.values()):
        return outcome(True, text)
    found = [Reading.of(samples) for samples in r.values()]
    differ = max(one.low for one in found) > _AGREE * min(one.high for one in found)
    return outcome(False if differ else None, f"{text}; {worst} is furthest from the others")


@experiment(
    "four-clocks",
    f"After a warm-up and with a wait, four clocks agree within {100 * (_AGREE - 1):.0f} % on upload, vector add of "
    "5,000,000 and download: time.time, events, process_time (as clock()), perf_counter (as chrono).",
    f"{_K80}: 327, 328, 330 and 324 ms",
    judge=_judge_clocks,
)
def four_clocks(lab: Lab) -> Readings:
    """The same job by each clock, in turns."""
    job = TimedJob(lab.device, lab.size(5_000_000), transfers=True, seed=lab.seed)
    return _in_turns(job, {timer.clock or "events": timer for timer in TIMERS[1:]}, lab)


def _judge_gaps(r: Readings) -> Outcome:
    # Of the same calls: the difference is judged, and not two times that vary together.
    gaps = Reading.of(r["gaps"])
    found = True if gaps.low > 0 else False if gaps.high <= 0 else None
    return outcome(found, f"{apart(r, 'whole', 'sum of kernels').text}; gaps {gaps} ({gaps.range})")


@experiment(
    "sum-of-kernels",
    "The sum of the kernels is less than the whole primitive: the gaps between them count (sort of 2^20).",
    f"{_GRIDWISE} returns one time per kernel; 6 µs for a gap on an H200 (docs/concepts/timing.md)",
    judge=_judge_gaps,
)
def sum_of_kernels(lab: Lab) -> Readings:
    """A primitive of many kernels, each in a pass of its own."""
    times = lab.timed(Sort(lab.device, "u32"), input=lab.integers(lab.size(1 << 20)))
    found = [(one.gpu_span_ns, sum(known(one.gpu_total_time_ns or []))) for one in times if one.gpu_span_ns is not None]
    return {
        "whole": [whole for whole, _ in found],
        "sum of kernels": [parts for _, parts in found],
        "gaps": [whole - parts for whole, parts in found],
    }


def quantised(begin_ns: float, end_ns: float, step_ns: float) -> float:
    """Return the length of a pass by a clock of coarser steps: both stamps are rounded down."""
    return (end_ns // step_ns - begin_ns // step_ns) * step_ns


def _judge_coarse(r: Readings) -> Outcome:
    zeros = {name: sum(not t for t in samples) for name, samples in r.items() if name != "this clock"}
    text = f"{Reading.of(r['this clock'])} by this clock; " + ", ".join(
        f"0 ns in {zeros[name]} of {len(r[name])} by {name}" for name in zeros
    )
    return Outcome(Verdict.HOLDS if any(zeros.values()) else Verdict.DOES_NOT, text)


@experiment(
    "coarse-clock",
    "By a clock with the steps that browsers give (100 µs, 65,536 ns), a short kernel takes 0 ns.",
    "github.com/tracel-ai/cubecl/issues/1647 (no kernel below 65 µs can be ranked); 100 µs: "
    "developer.chrome.com/docs/web-platform/webgpu/developer-features",
    judge=_judge_coarse,
)
def coarse_clock(lab: Lab) -> Readings:
    """Stamps of a short kernel, rounded down as a browser does."""
    times = lab.timed(Copy(lab.device, "u32"), input=lab.integers(1000))
    spans = [span for one in times for span in one.spans if span.valid]
    stamps = [(span.begin_ticks * span.tick_period_ns, span.end_ticks * span.tick_period_ns) for span in spans]
    return {
        "this clock": known([span.ns for span in spans]),
        "steps of 65,536 ns": [quantised(*pair, 65_536) for pair in stamps],
        "steps of 100 µs": [quantised(*pair, _BROWSER_NS) for pair in stamps],
    }


@experiment(
    "empty-submission",
    "To submit nothing and wait for it takes longer than a small kernel runs: walls of single calls show the driver.",
    "github.com/tracel-ai/burn/issues/3317: 2 ms by the wall for a kernel that CUDA runs in 31 µs; 91 µs for an "
    "empty pass on an H200 (docs/concepts/timing.md)",
    judge=larger("nothing, with a wait", "vector add of 2^16, GPU"),
)
def empty_submission(lab: Lab) -> Readings:
    """An empty command buffer on the CPU's clock, and a small kernel on the GPU's."""
    add = VectorAdd(lab.device, "f32")
    n = lab.size(1 << 16)
    times = lab.timed(add, a=lab.floats(n), b=lab.floats(n))
    walls: list[float] = []
    for _ in range(lab.repeats):
        commands = [lab.device.create_command_encoder().finish()]
        begin, _, end = bracket(lab.device, lambda commands=commands: lab.device.queue.submit(commands))
        walls.append(float(end - begin))
    return {"nothing, with a wait": walls, "vector add of 2^16, GPU": known([one.gpu_span_ns for one in times])}


@experiment(
    "rates",
    "GB/s from a wall that includes submit and wait are below what the kernel reaches (copy of 2^20).",
    "github.com/tracel-ai/burn/issues/3317 compares such walls; nvbench divides bytes by the time between events",
    judge=larger("by timestamps", "by the wall", RATE),
    unit=RATE,
)
def rates(lab: Lab) -> Readings:
    """The same bytes by both times."""
    n = lab.size(1 << 20)
    times = lab.timed(Copy(lab.device, "u32"), input=lab.integers(n))
    return {
        "by timestamps": [8 * n / t for t in known([one.gpu_span_ns for one in times]) if t],
        "by the wall": [8 * n / t for t in known([one.cpu_total_time_ns for one in times]) if t],
    }


def _judge_processes(r: Readings) -> Outcome:
    found = {name: Reading.of(samples) for name, samples in r.items()}
    fast, slow = (pick(found.values(), key=lambda one: one.median) for pick in (min, max))
    text = f"{len(found)} processes; the fastest alone says {fast} ({fast.range}), the slowest {slow} ({slow.range})"
    differ = max(one.low for one in found.values()) > min(one.high for one in found.values())
    return Outcome(Verdict.HOLDS if differ else Verdict.DOES_NOT, text)


@experiment(
    "processes",
    "Processes that measure the same thing differ by more than the samples within one show.",
    "T. Kalibera and R. Jones, Rigorous Benchmarking in Reasonable Time (ISMM 2013)",
    judge=_judge_processes,
)
def processes(lab: Lab) -> Readings:
    """The same vector add in several processes."""
    job = Job(Case.build("vector_add", lab.size(1 << 20), "f32", ""), Mode.HOT, 0, process=1)
    protocol = SamplingProtocol(samples=lab.repeats, warmup_s=lab.warmup_s, check_unit=False)
    found = [measure_isolated(lab.adapter, job, protocol) for _ in range(lab.processes)]
    return {f"process {i}": one.positive_ns("gpu_span") for i, one in enumerate(found, start=1)}


@experiment(
    "idle-clock",
    "After a pause the same kernel is slower: an idle GPU lowers its clock.",
    "clpeak: an M1 needs 220 to 440 ms of work; 600 against 187 µs on an H200 (docs/concepts/timing.md)",
    judge=larger("after a pause", "without a pause"),
    needs_gpu=True,
)
def idle_clock(lab: Lab) -> Readings:
    """GPU times of a matrix product, with and without pauses."""
    side = lab.side(1024, 128)
    product = MatMul(lab.device, "f32", m=side, n=side, k=side)
    a, b = lab.floats(side * side), lab.floats(side * side)
    cold = lab.timed(product, pause_s=lab.idle_s, a=a, b=b)
    # Waits between short calls leave the GPU idle for half of the time, and its clock down.
    warm = lab.timed(product, trials=200, a=a, b=b)
    return {
        "after a pause": known([one.gpu_span_ns for one in cold]),
        "without a pause": known([one.per_trial.gpu_span_ns for one in warm]),
    }


@experiment(
    "first-dispatch",
    "Even the GPU's own time of a pipeline's first dispatch is longer: drivers finish compiling in it.",
    "docs/concepts/timing.md: 17 ms against 60 µs between the stamps",
    judge=larger("first dispatch", "later dispatches"),
)
def first_dispatch(lab: Lab) -> Readings:
    """GPU times of the first calls on new devices."""
    first: list[float | None] = []
    later: list[float | None] = []
    for _ in range(lab.cold_repeats):
        device = lab.new_device()
        add, x = VectorAdd(device, "f32"), lab.floats(lab.size(1 << 16), device)
        synchronize(device)
        for i in range(4):
            span = add.execute(a=x, b=x, enable_gpu_timing=True).get_timing_result().gpu_span_ns
            (later if i else first).append(span)
    return {"first dispatch": known(first), "later dispatches": known(later)}


@experiment(
    "caches",
    "Repeated calls on the same data read it from a cache: hot is faster than cold (copy of 2^20).",
    "NVIDIA nvbench flushes the L2 cache between samples; Triton's do_bench clears 256 MB",
    judge=larger("cold", "hot"),
)
def caches(lab: Lab) -> Readings:
    """The same kernel with and without a flush between calls."""
    copy, data = Copy(lab.device, "u32"), lab.integers(lab.size(1 << 20))
    protocol = SamplingProtocol(samples=lab.repeats, warmup_s=lab.warmup_s, check_unit=False)
    words: dict[str, Any] = {"protocol": protocol, "check": False, "input": data}
    found = {"cold": measure(copy, mode="cold", **words), "hot": measure(copy, mode="hot", **words)}
    return {mode: list(one.whole["gpu_span"].positive_ns) for mode, one in found.items() if "gpu_span" in one.whole}


@experiment(
    "observer",
    "To time each kernel makes the whole call longer (sort of 2^16, the caller's wall).",
    "github.com/ggml-org/llama.cpp/pull/20378: profiling kernels through WebGPU incurs significant overhead",
    judge=larger("each kernel timed", "not timed"),
)
def observer(lab: Lab) -> Readings:
    """The same call with and without timestamps, in turns."""
    sort, items = Sort(lab.device, "u32"), lab.integers(lab.size(1 << 16))

    def walls() -> Iterator[tuple[str, float | None]]:
        for name, gpu in (("each kernel timed", True), ("not timed", False)):
            result = sort.execute(input=items, enable_gpu_timing=gpu, enable_cpu_timing=True).get_timing_result()
            yield name, result.cpu_total_time_ns

    lab.warm_up(lambda: dict(walls()))
    rounds = [dict(walls()) for _ in range(lab.repeats)]
    return {name: known([one[name] for one in rounds]) for name in rounds[0]}


@experiment(
    "trials",
    "The wall of many trials, divided by their number, is below the wall of one call: it is no latency.",
    f"{_GRIDWISE}: `trials`, whose times the caller divides",
    judge=larger("one trial", "one of 100 trials"),
    needs_timestamps=False,
)
def trials(lab: Lab) -> Readings:
    """One dispatch, and a hundred in one pass."""
    add, x = VectorAdd(lab.device, "f32"), lab.floats(1000)
    one, many = (lab.timed(add, a=x, b=x, trials=count, enable_gpu_timing=False) for count in (1, 100))
    return {
        "one trial": known([each.cpu_total_time_ns for each in one]),
        "one of 100 trials": known([each.per_trial.cpu_total_time_ns for each in many]),
    }


@experiment(
    "zeros",
    "A matrix product of zeros is faster than one of random numbers: fewer bits flip, and the power limit bites later.",
    "H. He: thonking.ai/p/strangely-matrix-multiplications (2024; an A100 at its power limit)",
    judge=larger("random", "zeros"),
    needs_gpu=True,
)
def zeros(lab: Lab) -> Readings:
    """The same product on both kinds of data."""
    side = lab.side(4096, 256)
    product, items = MatMul(lab.device, "f32", m=side, n=side, k=side), side * side
    found = {
        name: lab.timed(product, a=data, b=data)
        for name, data in (("random", lab.floats(items)), ("zeros", asarray(np.zeros(items, np.float32), lab.device)))
    }
    return {name: known([one.gpu_span_ns for one in times]) for name, times in found.items()}
