"""What execute() costs on the CPU, against hand-written wgpu-py calls that encode and submit the same passes.

Usage: python benchmarks/host_overhead.py [--json FILE]

Three sides use the same pipelines and bind groups, made beforehand: wgpu-py's calls by hand, with all in local
variables; the C functions below them ("by C"), with the C values made beforehand, and no look at errors; and
`execute()`. No call can do without the C functions, so the ratios are those to them. The ways are interleaved call by
call, and the queue is idle before each. Timed are the calls alone, and then the calls with the wait for their end,
which is the latency of a small job. "new output" is a call that makes its output. The last lines have the time of
each of many calls with one wait, as in a loop: one by one, in a batch, and captured in sequences of 10 and of 100
calls, which are replayed as often as needed, alone and in a batch; then those of one-shot functions beside the objects
that make their outputs, and beside PyTorch and CuPy where these are installed.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click
import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.backend.device_state import state_of
from gridwise_py.backend.queues import wait_idle
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json

N = 1 << 12
LOOP = 500  # calls before one wait
LOOPS = 20


def hand_written(device: wgpu.GPUDevice, primitive: gw.Primitive) -> Callable[[], None]:
    """Return a function that does by hand what primitive.execute() does."""
    dispatches = [(s.pipeline, s.group, *s.workgroups) for s in primitive.bind().bound_plan.steps]

    def run() -> None:
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        for pipeline, group, x, y, z in dispatches:
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(x, y, z)
        compute.end()
        device.queue.submit([encoder.finish()])

    return run


def by_c(device: wgpu.GPUDevice, primitive: gw.Primitive) -> Callable[[], None]:
    """Return a function that does the same by the C functions alone."""
    native = state_of(device).engine.native_functions()
    assert native is not None, "the engine's wrappers are organised differently"
    steps: list[Any] = list(primitive.bind().bound_plan.steps)
    dispatches = [(s.pipeline._internal, s.group._internal, *s.workgroups) for s in steps]
    of_device, queue, null = cast(Any, device)._internal, cast(Any, device.queue)._internal, native.null
    # Looked up once, as those that are called are.
    create, begin, finish, submit = native.create_encoder, native.begin_pass, native.finish, native.submit
    set_pipeline, set_group, dispatch = native.set_pipeline, native.set_group, native.dispatch
    end, release_pass = native.end_pass, native.release_pass
    release_encoder, release_commands = native.release_encoder, native.release_commands
    handles, new = native.handles_type, native.new
    label = native.to_c_string_view(steps[0].label)
    descriptor = native.new_struct_p("WGPUComputePassDescriptor *", label=label)

    def run() -> None:
        encoder = create(of_device, null)
        compute = begin(encoder, descriptor)
        for pipeline, group, x, y, z in dispatches:
            set_pipeline(compute, pipeline)
            set_group(compute, 0, group, 0, null)
            dispatch(compute, x, y, z)
        end(compute)
        release_pass(compute)
        commands = finish(encoder, null)
        release_encoder(encoder)
        submit(queue, 1, new(handles, (commands,)))
        release_commands(commands)

    return run


def measure(
    device: wgpu.GPUDevice, functions: dict[str, Callable[[], object]], rounds: int, *, with_wait: bool
) -> dict[str, float]:
    """Return the median time of each function in ns, interleaved."""
    samples: dict[str, list[int]] = {name: [] for name in functions}
    gc.disable()
    for i in range(rounds + 20):
        for name, function in functions.items():
            wait_idle(device)
            begin = time.perf_counter_ns()
            function()
            if with_wait:
                wait_idle(device)
            if i >= 20:
                samples[name].append(time.perf_counter_ns() - begin)
    gc.enable()
    wait_idle(device)
    return {name: statistics.median(times) for name, times in samples.items()}


def in_a_loop(
    device: wgpu.GPUDevice, functions: dict[str, tuple[Callable[[], object], int, bool]]
) -> dict[str, dict[str, float]]:
    """Time many calls with one wait at the end, in loops that take turns.

    Parameters
    ----------
    device : wgpu.GPUDevice
    functions : dict
        By name: a function, how many calls it makes, and whether the loop is a batch.

    Returns
    -------
    dict
        By name, for each call: the median time up to the end of the work, and that of the CPU alone, in ns.
    """
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    for _ in range(LOOPS):
        for name, (function, calls, in_batch) in functions.items():
            wait_idle(device)
            begin = time.perf_counter_ns()
            with gw.batch(device) if in_batch else contextlib.nullcontext():
                for _ in range(LOOP // calls):
                    function()
            returned = time.perf_counter_ns()
            wait_idle(device)
            samples[name].append(((time.perf_counter_ns() - begin) / LOOP, (returned - begin) / LOOP))
    return {
        name: {"each_ns": statistics.median(t for t, _ in times), "cpu_ns": statistics.median(t for _, t in times)}
        for name, times in samples.items()
    }


WAYS = ("by_hand", "by_c", "execute", "execute_arrays", "new_output")


def ways_of(
    device: wgpu.GPUDevice, primitive: gw.Primitive, arrays: dict[str, gw.Array]
) -> dict[str, Callable[[], object]]:
    """Return the ways of a call, in the order of `WAYS`."""
    primitive.execute(**arrays)
    maker = copy.copy(primitive)  # its last call is another one
    maker.release()
    inputs = {name: array for name, array in arrays.items() if name != "output"}
    calls = (
        hand_written(device, primitive), by_c(device, primitive), primitive.execute,
        lambda: primitive.execute(**arrays), lambda: maker.execute(**inputs),
    )  # fmt: skip
    return dict(zip(WAYS, calls, strict=True))


def loops(device: wgpu.GPUDevice, primitive: gw.Primitive, arrays: dict[str, gw.Array]) -> dict[str, dict[str, float]]:
    """Time a primitive in loops of all kinds."""
    one = ways_of(device, primitive, arrays)
    functions: dict[str, tuple[Callable[[], object], int, bool]] = {
        "by hand": (one["by_hand"], 1, False),
        "by C": (one["by_c"], 1, False),
        "execute()": (one["execute"], 1, False),
        "execute(arrays)": (one["execute_arrays"], 1, False),
        "execute(inputs), which makes the output": (one["new_output"], 1, False),
        "execute() in a batch": (one["execute"], 1, True),
        "execute(arrays) in a batch": (one["execute_arrays"], 1, True),
        "bound.execute() in a batch": (primitive.bind(**arrays).execute, 1, True),
    }
    for calls in (10, 100):
        with gw.capture(device) as sequence:
            for _ in range(calls):
                primitive.execute(**arrays)
        functions[f"sequence of {calls}"] = (sequence.execute, calls, False)
        functions[f"sequence of {calls} in a batch"] = (sequence.execute, calls, True)
    return in_a_loop(device, functions)


def functions_beside_objects(device: wgpu.GPUDevice) -> dict[str, dict[str, float]]:
    """Time one-shot functions of Arrays, objects that make their outputs, and other libraries' functions in loops.

    Returns
    -------
    dict
        By function: for each call the median CPU time in ns of ``"function"`` and ``"object"``, of ``"wait"``, the
        function with a wait after each call, and of ``"torch"`` and ``"cupy"``.
    """
    host = np.arange(N, dtype=np.float32)
    x, y = gw.asarray(host, device), gw.asarray(host[::-1].copy(), device)
    larger = gw.where(x > y, x, y)
    leaves = gw.f32("x"), gw.f32("y")
    stored = gw.Map(device, gw.where(leaves[0] > leaves[1], *leaves))
    total, scan = gw.Reduce(device, "f32"), gw.Scan(device, "f32", kind="inclusive")
    most, add, sort = gw.Reduce(device, "f32", gw.Max), gw.VectorAdd(device, "f32"), gw.Sort(device, "f32")
    ours: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "sum": (lambda: gw.sum(x), lambda: total.execute(input=x)),
        "max": (lambda: gw.max(x), lambda: most.execute(input=x)),
        "cumsum": (lambda: gw.cumsum(x), lambda: scan.execute(input=x)),
        "scan": (lambda: gw.scan(x), lambda: scan.execute(input=x)),
        "sort": (lambda: gw.sort(x), lambda: sort.execute(input=x)),
        "add": (lambda: gw.add(x, y), lambda: add.execute(a=x, b=y)),
        "where stored": (lambda: gw.asarray(larger), lambda: stored.execute(x=x, y=y)),
        "where made and stored": (lambda: gw.asarray(gw.where(x > y, x, y)), lambda: stored.execute(x=x, y=y)),
    }
    calls: dict[tuple[str, str], tuple[Callable[[], object], Callable[[], object]]] = {}

    def wait() -> object:
        return wait_idle(device)

    for name, (function, of_object) in ours.items():
        calls |= {(name, "function"): (function, wait), (name, "object"): (of_object, wait)}
        calls[name, "wait"] = (lambda function=function: (function(), wait_idle(device)), wait)
    for library, (module, a, b, synchronize) in _others(host).items():
        there: dict[str, Callable[[], object]] = {
            "sum": lambda m=module, a=a: m.sum(a), "max": lambda m=module, a=a: m.max(a),
            "cumsum": lambda m=module, a=a: m.cumsum(a, 0), "sort": lambda m=module, a=a: m.sort(a),
            "add": lambda m=module, a=a, b=b: m.add(a, b),
            "where made and stored": lambda m=module, a=a, b=b: m.where(a > b, a, b),
        }  # fmt: skip
        calls |= {(name, library): (function, synchronize) for name, function in there.items()}
    samples: dict[tuple[str, str], list[float]] = {each: [] for each in calls}
    order, rng = list(calls), np.random.default_rng(0)
    for _ in range(LOOPS):
        rng.shuffle(order)  # what comes before a loop must not always be the same
        for each in order:
            function, synchronize = calls[each]
            for _ in range(20):
                function()
            synchronize()
            begin = time.perf_counter_ns()
            for _ in range(LOOP // 5):
                function()
            samples[each].append((time.perf_counter_ns() - begin) / (LOOP // 5))
    found: dict[str, dict[str, float]] = {}
    for (name, way), times in samples.items():
        found.setdefault(name, {})[way] = statistics.median(times)
    return found


def _others(host: np.ndarray) -> dict[str, tuple[Any, Any, Any, Callable[[], object]]]:
    """Return other libraries that are installed: module, two arrays on the GPU, and what waits for it."""
    found: dict[str, tuple[Any, Any, Any, Callable[[], object]]] = {}
    with contextlib.suppress(ImportError, RuntimeError):
        torch = importlib.import_module("torch")
        a = torch.from_numpy(host).cuda()
        found["torch"] = torch, a, a.flip(0), torch.cuda.synchronize
    with contextlib.suppress(ImportError, RuntimeError):
        cupy = importlib.import_module("cupy")
        a = cupy.asarray(host)
        found["cupy"] = cupy, a, a[::-1].copy(), cupy.cuda.Device().synchronize
    return found


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--rounds", default=500, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter: str | None, rounds: int, json_path: Path | None) -> None:
    """Measure and print the cost of execute() for each primitive."""
    device = gw.request_device(adapter)
    x = gw.asarray(np.arange(N, dtype=np.uint32), device)
    y, one = gw.empty_like(x), gw.empty(1, "u32", device)
    several = gw.Scan(device, strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=64, vecs=1))
    cases = {
        "vector_add": (gw.VectorAdd(device), {"a": x, "b": x, "output": y}),
        "reduce": (gw.Reduce(device), {"input": x, "output": one}),
        "scan": (gw.Scan(device), {"input": x, "output": y}),
        "scan, 3 dispatches": (several, {"input": x, "output": y}),  # in one pass
    }
    rows = []
    print(f"{gw.capabilities(device).adapter}; n = {N}; median CPU time of a call, µs; over C in brackets")
    print(f"{'':26}" + "".join(f"{name.replace('_', ' '):>18}" for name in WAYS))
    for with_wait in (False, True):
        for name, (primitive, arrays) in cases.items():
            medians = measure(device, ways_of(device, primitive, arrays), rounds, with_wait=with_wait)
            over = {f"{way}_over_c": medians[way] / medians["by_c"] for way in ("execute", "execute_arrays")}
            times = {f"{way}_ns": value for way, value in medians.items()}
            rows.append({"primitive": name, "n": N, "with_wait": with_wait, **times, **over})
            cells = "".join(f"{ns / 1e3:11.1f} ({ns / medians['by_c']:4.2f})" for ns in medians.values())
            print(f"{name:20} {'wait' if with_wait else '':5}{cells}")
    loop = loops(device, *cases["scan"])
    print(f"scan, {LOOP} calls and one wait, each, µs{'with the wait':>22} {'CPU alone':>10}")
    for name, times in loop.items():
        print(f"{name:40} {times['each_ns'] / 1e3:15.2f} {times['cpu_ns'] / 1e3:10.2f}")
    functions = functions_beside_objects(device)
    print(f"functions in loops of {LOOP // 5} calls, CPU, µs")
    for name, times in functions.items():
        over = times["function"] / times["object"]
        print(f"{name:24} {over:5.2f} " + " ".join(f"{way} {ns / 1e3:.1f}" for way, ns in times.items()))
    if json_path is not None:
        found = {"rounds": rounds, "results": rows, "loop_calls": LOOP, "loop": loop, "functions": functions}
        write_json(json_path, {**run_context(device), **found})


if __name__ == "__main__":
    main()
