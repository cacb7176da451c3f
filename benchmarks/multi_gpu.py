"""How several GPUs of one host work together: each alone and all at once, then through Dask.

    python benchmarks/multi_gpu.py --json FILE [--minutes 5] [--items 2^26] [--adapters 0,1] [--parts processes,dask]

`processes`: a process per adapter, nothing but gridwise_py. Copies within host memory, uploads,
downloads, streams, sorts of host data, and the same on arrays that stay on the GPU; of each process alone and of all at
once, by wall clock and, for what stays on the GPU, by GPU timestamps.

`dask`: a stream in one process against the same chunks through Dask on one worker; passes over held chunks
on one worker and on all; a sort of more chunks than GPUs against the bound of what its bytes take, whose rates are
measured in the same run.

What is larger than the GPUs' memory is in benchmarks/larger_than_memory.py. Groups, from which length a cluster pays,
and the stages of a sort (cluster_*.json in benchmarks/results/h200x2/) were parts of it at commit 79ce4883.

The file is written after each step: an error, a step that hangs and the end of the time cost what is missing, no more.
It ends with 4 if something is missing, with 3 if a step hung.

Virtual machines back memory as it is touched: all host memory is written before it is timed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
from steps import Steps

CHUNK_ITEMS = 1 << 22
#: Reductions in a submission of passes.
TRIALS = 50
STREAM_CHUNKS = 8
#: No row takes so long, alone or in all processes together.
STALLS_S = 60.0
ROWS = (
    "host copy, 1 thread", "host copy, 4 threads", "upload", "download", "stream reduce", "stream scan",
    "sort of host data", "reduce, resident", "scan, resident", "sort, resident",
)  # fmt: skip


def parsed_count(text: str) -> int:
    """Return a number such as 2^26."""
    base, _, power = text.partition("^")
    return int(base) ** int(power or 1)


def timed(call: Callable[[], object], seconds: float, least: int = 3) -> float:
    """Return the median time of a call in seconds, of calls for so long."""
    call()
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds or len(times) < least:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# ---- a process per adapter


@dataclass(frozen=True)
class Asked:
    """What processes measure: rows of so many items, each for so many seconds, until the deadline of `time.time`."""

    adapters: list[int]
    names: list[str]
    items: int
    seconds: float
    deadline: float


def measure_process(place: int, asked: Asked, goes_on: Any, barrier: Any, queue: Any) -> None:
    """Measure every row alone, in turns, and together with the other processes."""
    import gridwise_py as gw

    adapters = asked.adapters
    try:
        device = gw.request_device(adapters[place])
        every = rows(gw, device, place, asked.items)
        for name, row in ((name, every[name]) for name in asked.names):
            if place == 0:
                goes_on.value = time.time() < asked.deadline
            barrier.wait(STALLS_S)
            if not goes_on.value:
                break
            barrier.wait(STALLS_S)  # all have read it
            for how in ("alone", "together"):
                for turn in range(len(adapters) if how == "alone" else 1):
                    barrier.wait(STALLS_S)
                    if how == "alone" and turn != place:
                        continue
                    try:
                        found = measure_row(row, asked.seconds)
                    except Exception as error:  # the others wait at the next barrier
                        found = {"error": f"{type(error).__name__}: {error}"}
                    queue.put({"row": name, "how": how, "process": place, **found})
        barrier.wait(STALLS_S)
        queue.put(None)
    except threading.BrokenBarrierError:  # of another process, or a row of another one that does not end
        queue.put(f"process {place}: the others did not come within {STALLS_S:g} s")
    except BaseException as error:
        queue.put(f"process {place}: {type(error).__name__}: {error}")
        barrier.abort()
        raise


def measure_row(row: tuple[int, int, Callable[[], float | None]], seconds: float) -> dict[str, Any]:
    """Return the rates of a row."""
    moved_bytes, count, call = row
    spans_ns: list[float] = []
    wall_s = timed(lambda: spans_ns.append(call() or 0.0), seconds)
    span_ns = statistics.median(spans_ns) or None
    return {
        "wall_s": wall_s, "gbytes_per_s": moved_bytes / wall_s * 1e-9 if moved_bytes else None,
        "gitems_per_s": count / wall_s * 1e-9, "gpu_gitems_per_s": count / span_ns if span_ns else None,
    }  # fmt: skip


def rows(gw: Any, device: Any, place: int, items: int) -> dict[str, tuple[int, int, Callable[[], float | None]]]:
    """Return what is measured: of each row the bytes that cross to or from the host, the items, and the call.

    A call returns the nanoseconds of its GPU work where this is what counts.
    """
    data = np.random.default_rng(place).integers(0, 1 << 32, items, dtype=np.uint32)
    back = np.zeros_like(data)
    held = gw.asarray(data, device)
    result = gw.empty_like(held)
    one = gw.empty(1, "u32", device)
    scan, total, order = gw.Scan(device, "u32"), gw.Reduce(device, "u32"), gw.Sort(device, "u32")
    chunks = [data[i : i + CHUNK_ITEMS] for i in range(0, items, CHUNK_ITEMS)]

    def copy(threads: int) -> None:
        step = -(-items // threads)
        parts = [slice(i * step, (i + 1) * step) for i in range(threads)]
        workers = [threading.Thread(target=np.copyto, args=(back[part], data[part])) for part in parts]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def resident(primitive: Any, output: Any, calls: int) -> float:
        run = primitive.execute(input=held, output=output, trials=calls, enable_gpu_timing=True)
        return float(run.get_timing_result().gpu_span_ns)

    def stream_scan() -> None:
        for _ in gw.stream(gw.Scan(device, "u32"), chunks):
            pass

    def upload() -> None:
        held.copy_from(data)
        gw.synchronize(device)

    nbytes = data.nbytes
    return {
        "host copy, 1 thread": (nbytes, items, lambda: copy(1)),
        "host copy, 4 threads": (nbytes, items, lambda: copy(4)),
        "upload": (nbytes, items, upload),
        "download": (nbytes, items, lambda: held.to_numpy(out=back) is None or None),
        "stream reduce": (nbytes, items, lambda: gw.stream(gw.Reduce(device, "u32"), chunks) and None),
        "stream scan": (2 * nbytes, items, stream_scan),
        "sort of host data": (2 * nbytes, items, lambda: gw.sort(data, device=device) is None or None),
        "reduce, resident": (0, 20 * items, lambda: resident(total, one, 20)),
        "scan, resident": (0, 20 * items, lambda: resident(scan, result, 20)),
        "sort, resident": (0, 5 * items, lambda: resident(order, result, 5)),
    }


def measure_processes(asked: Asked, take: Callable[[dict[str, Any]], None]) -> None:
    """Run a process per adapter, and give away the results as they come.

    Raises
    ------
    RuntimeError
        If a process failed or died, or a row takes too long.
    """
    context = multiprocessing.get_context("spawn")
    barrier, queue, goes_on = context.Barrier(len(asked.adapters)), context.Queue(), context.Value("b", True)
    processes = [
        context.Process(target=measure_process, args=(place, asked, goes_on, barrier, queue), daemon=True)
        for place in range(len(asked.adapters))
    ]
    for process in processes:
        process.start()
    left, heard_s = len(processes), time.monotonic()
    try:
        while left:
            try:
                result = queue.get(timeout=1)
            except Empty:
                dead = [k for k, process in enumerate(processes) if process.exitcode not in (None, 0)]
                if dead:
                    raise RuntimeError(f"process {dead[0]} ended with {processes[dead[0]].exitcode}") from None
                if time.monotonic() - heard_s > 2 * STALLS_S:
                    raise RuntimeError(f"no result for {2 * STALLS_S:g} s") from None
                continue
            heard_s = time.monotonic()
            if isinstance(result, str):
                raise RuntimeError(result)
            if result is None:
                left -= 1
            else:
                take(result)
    finally:
        for process in processes:
            process.join(5)
            process.kill()


def efficiencies(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per thing that was measured both ways: its rates and their ratio (GPU time for what is resident)."""
    found = []
    for name in dict.fromkeys(result["row"] for result in results):
        own = [result for result in results if result["row"] == name and "error" not in result]
        of = {how: [result for result in own if result["how"] == how] for how in ("alone", "together")}
        if not of["alone"] or len(of["alone"]) != len(of["together"]):
            continue  # an error, or the end came before
        unit = "gpu_gitems_per_s" if "resident" in name else "gbytes_per_s"
        if any(result[unit] is None for result in own):
            unit = "gitems_per_s"
        rates = {how: statistics.mean(result[unit] for result in found) for how, found in of.items()}
        found.append({"row": name, "unit": unit, **rates, "efficiency": rates["together"] / rates["alone"]})
    return found


# ---- through Dask


def chunk(index: int, items: int) -> np.ndarray:
    """Return a chunk of random keys, on the worker that computes it."""
    return np.random.default_rng(index).integers(0, 1 << 32, items, dtype=np.uint32)


def chunked(count: int, items: int, function: Callable[[int, int], np.ndarray] = chunk) -> Any:
    """Return a dask array of so many chunks, which workers make themselves."""
    import dask
    import dask.array as da

    make, dtype = dask.delayed(function, pure=True), function(0, 1).dtype
    return da.concatenate([da.from_delayed(make(i, items), (items,), dtype=dtype) for i in range(count)])


def passes(device: Any, held: Any, count: int) -> float:
    """Reduce a held chunk so many times; return the seconds of this on the GPU."""
    import gridwise_py as gw

    total, one = gw.Reduce(device, "u32"), gw.empty(1, "u32", device)
    span_ns = 0.0
    for _ in range(-(-count // TRIALS)):
        # Many in one submission: the GPU is measured here, not what a call costs its caller.
        run = total.execute(input=held, output=one, trials=TRIALS, enable_gpu_timing=True)
        span_ns += run.get_timing_result().gpu_span_ns
    return span_ns * 1e-9


def measure_dask(steps: Any, adapters: list[int], items: int, task_s: float) -> None:
    """Measure streams, passes and sorts, on one worker and on all."""
    found = steps.document["dask"] = {}
    counts = sorted({1, len(adapters)})
    for workers in counts:
        own = found[f"{workers} workers"] = {}
        steps.run(
            f"cluster of {workers}",
            lambda workers=workers, own=own: measure_cluster(steps, adapters[:workers], items, task_s, own, found),
            600.0,
        )


def measure_cluster(
    steps: Any, adapters: list[int], items: int, task_s: float, own: dict[str, Any], found: dict[str, Any]
) -> None:
    """Measure on a cluster with these adapters."""
    import gridwise_py.dask as gwd

    workers = len(adapters)
    with gwd.local_cluster(adapters) as cluster, gwd.connect(cluster, timeout_s=60) as client:
        own["devices"] = [identity.id for identity in gwd.identities(client)]
        client.wait_for_workers(workers, timeout=60)
        repeats = found.get("1 workers", {}).get("passes", {}).get("repeats")
        own["passes"] = steps.run(
            f"passes on {workers}", lambda: measure_passes(client, items, task_s, repeats), 60 + 40 * task_s
        )
        if workers == 1:
            own["stream"] = steps.run("stream", lambda: measure_stream(client, items), 120.0)
        own["sort"] = steps.run(f"sort on {workers}", lambda: measure_sort(client, items, workers), 180.0)


def measure_stream(client: Any, items: int) -> dict[str, Any]:
    """A reduction of chunks in one process by gw.stream, and through Dask on one worker."""
    import gridwise_py.dask as gwd

    x = client.persist(chunked(STREAM_CHUNKS, items))
    client.gather(client.compute(x.sum()))
    alone = client.submit(_streamed, [block.key for block in x.to_delayed().ravel()], pure=False)
    stream_s = alone.result()
    dask_s = timed(lambda: client.gather(client.compute(gwd.reduce(x + np.uint32(0)))), 0, 3)
    return {
        "chunks": STREAM_CHUNKS, "chunk_bytes": 4 * items, "gw_stream_s": stream_s, "dask_s": dask_s,
        "ratio": dask_s / stream_s,
    }  # fmt: skip


def _streamed(keys: list[Any]) -> float:
    """Reduce the chunks that this worker holds, as gw.stream does it, with an addition first as the other side has."""
    from distributed import get_worker

    import gridwise_py as gw

    held = get_worker().data
    reduce = gw.Reduce(gw.default_device(), "u32")
    return timed(lambda: gw.stream(reduce, (held[key] + np.uint32(0) for key in keys)), 0, 3)


def measure_passes(client: Any, items: int, task_s: float, repeats: int | None) -> dict[str, Any]:
    """Many reductions of a chunk on each GPU; every GPU has the same work, whatever their number."""
    import gridwise_py.dask as gwd
    from gridwise_py.dask.worker import run_on_gpu

    # By resource: chunks that Dask places may all lie on one worker.
    where = [{identity.tag: 1, "gridwise": 1} for identity in gwd.identities(client)]

    def on_each(function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return [client.submit(run_on_gpu, function, *arguments, resources=one, pure=False) for one in where]

    held = on_each(_held, items)
    client.gather(on_each(_nothing))
    keys = [future.key for future in held]

    def all_passes(count: int) -> list[float]:
        futures = [
            client.submit(run_on_gpu, passes, future, count, resources=one, pure=False)
            for future, one in zip(held, where, strict=True)
        ]
        return client.gather(futures)

    all_passes(TRIALS)
    if repeats is None:
        one_s = max(all_passes(10 * TRIALS)) / (10 * TRIALS)
        repeats = TRIALS * max(1, round(task_s / one_s / TRIALS))
    spans_s: list[float] = []
    wall_s = timed(lambda: spans_s.extend(all_passes(repeats)), 0, 5)
    return {
        "wall_s": wall_s, "gpu_s_of_a_task": statistics.median(spans_s), "repeats": repeats, "chunk_bytes": 4 * items,
        "tasks": len(keys),
    }  # fmt: skip


def _held(device: Any, items: int) -> Any:
    import gridwise_py as gw

    return gw.asarray(np.ones(items, np.uint32), device)


def _nothing(_device: Any) -> None:
    return None


def measure_sort(client: Any, items: int, workers: int) -> dict[str, Any]:
    """A sort, and the bound from rates that are measured here: staging of a worker, exchange between two."""
    import gridwise_py.dask as gwd

    x = client.persist(chunked(2 * workers, items))
    client.gather(client.compute(x.sum()))
    free = list(client.scheduler_info(n_workers=-1)["workers"])
    chunk_bytes = 4 * items
    staging_bytes_per_s = 2 * chunk_bytes / client.submit(_staging_s, items, pure=False).result()
    exchange_bytes_per_s = None
    if workers > 1:
        exchange_bytes_per_s = chunk_bytes / statistics.median(_exchange_s(client, items, free) for _ in range(4))
    facts: list[np.ndarray] = []
    ends = gwd.sort(x).map_blocks(_ends, chunks=((3,) * (2 * workers),), dtype=np.uint64, meta=np.empty(0, np.uint64))
    wall_s = timed(lambda: facts.append(client.gather(client.compute(ends)).reshape(-1, 3)), 0, 3)
    lengths, order = facts[-1][:, 0], facts[-1][:, 1:].ravel()
    # Twice through the GPU (sort of chunks, merge of parts), each way; what leaves a worker goes across.
    bound_s = 4 * x.nbytes / workers / staging_bytes_per_s
    if exchange_bytes_per_s is not None:
        bound_s += x.nbytes / workers * (1 - 1 / workers) / exchange_bytes_per_s
    return {
        "items": x.size, "chunks": 2 * workers, "wall_s": wall_s, "gitems_per_s": x.size / wall_s * 1e-9,
        "staging_bytes_per_s": staging_bytes_per_s, "exchange_bytes_per_s": exchange_bytes_per_s, "bound_s": bound_s,
        "of_bound": bound_s / wall_s, "numpy_one_core_s": client.submit(_numpy_sort_s, items).result() * 2 * workers,
        "exact": bool((lengths == items).all() and (order[1:] >= order[:-1]).all()),
    }  # fmt: skip


def _ends(block: np.ndarray) -> np.ndarray:
    return np.array([block.size, block[0], block[-1]], np.uint64)


def _numpy_sort_s(items: int) -> float:
    keys = chunk(0, items)
    begin = time.perf_counter()
    keys.sort()
    return time.perf_counter() - begin


def _staging_s(items: int) -> float:
    import gridwise_py as gw

    data = np.ones(items, np.uint32)
    back = np.zeros_like(data)
    return timed(lambda: gw.asarray(data).to_numpy(out=back), 0, 3)


def _exchange_s(client: Any, items: int, workers: list[str]) -> float:
    """Return how long a chunk takes to another worker, which it is there for the first time."""
    from distributed import wait

    made = client.submit(np.ones, items, np.uint32, workers=workers[:1], pure=False)
    wait(made)
    begin = time.perf_counter()
    client.gather(client.submit(_size, made, workers=workers[1:2], pure=False))
    return time.perf_counter() - begin


def _size(block: np.ndarray) -> int:
    return block.size


# ---- the program


def run_processes(steps: Any, adapters: list[int], names: list[str], given: argparse.Namespace) -> None:
    """Measure the rows of processes, print their table, and keep what was found and what is missing."""
    document, results = steps.document, list[dict[str, Any]]()
    share_s = steps.left_s * (0.5 if "dask" in given.parts else 1.0)
    document["processes"] = {"results": results, "rows": []}

    def take(result: dict[str, Any]) -> None:
        results.append(result)
        steps.save()

    asked = Asked(adapters, names, given.items, given.seconds, time.time() + share_s)
    steps.run("processes", lambda: measure_processes(asked, take), share_s + 300)
    found = document["processes"]["rows"] = efficiencies(results)
    print(f"{'':24}{'alone, each':>14}{'together, each':>16}{'efficiency':>12}")
    for row in found:
        unit = "GB/s" if row["unit"] == "gbytes_per_s" else "G items/s"
        print(f"{row['row']:24}{row['alone']:14.2f}{row['together']:16.2f}{row['efficiency']:12.3f}  {unit}")
    wrong = [f"{r['row']}, {r['how']}, process {r['process']}: {r['error']}" for r in results if "error" in r]
    if wrong:
        document["errors"]["rows"] = "; ".join(wrong)
    document["left_out"] += [name for name in names if name not in {row["row"] for row in found}]


def main() -> int:
    """Measure, print the tables, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--items", type=parsed_count, default=1 << 26, help="of each GPU, and of a chunk")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each row")
    parser.add_argument("--task-seconds", type=float, default=0.5, help="of GPU work in a task of passes")
    parser.add_argument("--minutes", type=float, default=5.0, help="after these, nothing new begins")
    parser.add_argument("--adapters", help="indices, by default all GPUs")
    parser.add_argument("--parts", default="processes,dask")
    parser.add_argument("--rows", help="of processes, with semicolons")
    parser.add_argument("--json", required=True, type=Path)
    given = parser.parse_args()
    from gridwise_py.dask.cluster import chosen_adapters

    wanted = "all" if given.adapters is None else [int(index) for index in given.adapters.split(",")]
    chosen = chosen_adapters(wanted)
    adapters = [adapter.index for adapter in chosen]
    steps = Steps(
        given.json, given.minutes, adapters=adapters, names=[str(adapter) for adapter in chosen], items=given.items,
        gpus=len({adapter.index for adapter in chosen if adapter.type != "CPU"}), cpus=os.cpu_count(),
    )  # fmt: skip
    document = steps.document
    steps.say(f"{document['gpus']} GPUs: {'; '.join(document['names'])}")
    if "processes" in given.parts:
        names = list(ROWS) if given.rows is None else [name.strip() for name in given.rows.split(";")]
        run_processes(steps, adapters, names, given)
    if "dask" in given.parts:
        measure_dask(steps, adapters, given.items, given.task_seconds)
    for name, found in document.get("dask", {}).items():
        for what in ("stream", "passes", "sort"):
            if found.get(what):
                print(f"{name}, {what}: {json.dumps(found[what])}")
    steps.save()
    for name, error in document["errors"].items():
        print(f"FAILED {name}: {error}")
    if document["left_out"]:
        print("left out: " + ", ".join(document["left_out"]))
    return 0 if steps.is_whole else 4


if __name__ == "__main__":
    sys.exit(main())
