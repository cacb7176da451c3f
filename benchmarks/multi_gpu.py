"""How several GPUs of one host work together: each alone and all at once, then through Dask.

    python benchmarks/multi_gpu.py --json FILE [--minutes 5] [--items 2^26] [--adapters 0,1] [--parts processes,dask]
    python benchmarks/multi_gpu.py --json FILE --stages

`processes` (marks M1, M2): a process per adapter, nothing but gridwise_py. Copies within host memory, uploads,
downloads, streams, sorts of host data, and the same on arrays that stay on the GPU; of each process alone and of all at
once, by wall clock and, for what stays on the GPU, by GPU timestamps.

`dask` (M3, M4, M6): a stream in one process against the same chunks through Dask on one worker; passes over held chunks
on one worker and on all; a sort of more chunks than GPUs against the bound of what its bytes take, whose rates are
measured in the same run.

`groups`: rows in host memory, grouped by 1,000 keys on 1 GPU and on all, beside polars, pandas or numpy on the CPUs.
`worth`: sorts and group-bys of several lengths, from host memory: on one GPU without a cluster, on clusters, on CPUs.
What is larger than the GPUs' memory is in benchmarks/larger_than_memory.py.

`--stages` measures M6 alone, and where the time of a sort goes: benchmarks/sort_stages.py.

At the end it says of each mark what was found, whether it holds here, and whether it is reached: M1 and M4 ask for four
GPUs, and stay open on fewer. The file is written after each step: an error, a step that hangs and the end of the
time cost what is missing, no more. It ends with 4 if something is missing, with 3 if a step hung.

Virtual machines back memory as it is touched: all host memory is written before it is timed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
import sort_stages
from steps import Steps

CHUNK_ITEMS = 1 << 22
#: Reductions in a submission of M4, and chunks of M3.
TRIALS = 50
#: Different keys of a group-by.
GROUPS = 1000
STREAM_CHUNKS = 8
#: No row takes so long, alone or in all processes together.
STALLS_S = 60.0
ROWS = (
    "host copy, 1 thread", "host copy, 4 threads", "upload", "download", "stream reduce", "stream scan",
    "sort of host data", "reduce, resident", "scan, resident", "sort, resident",
)  # fmt: skip
#: How streams and copies depend on the number of threads that copy; only measured by name.
THREADS = (1, 2, 4, 8, 16)


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


def measure_process(
    place: int, adapters: list[int], names: list[str], items: int, seconds: float, deadline: float, goes_on: Any,
    barrier: Any, queue: Any,
) -> None:  # fmt: skip
    """Measure every row alone, in turns, and together with the other processes."""
    import gridwise_py as gw

    try:
        device = gw.request_device(adapters[place])
        every = rows(gw, device, place, items)
        for name, row in ((name, every[name]) for name in names):
            if place == 0:
                goes_on.value = time.time() < deadline
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
                        found = measure_row(row, seconds)
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
    from gridwise_py import internals as gw_internals

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

    def stream_scan(threads: int | None = None) -> None:
        if threads is not None:
            gw_internals.context_of(device).transfers.threads = threads
        for _ in gw.stream(gw.Scan(device, "u32"), chunks):
            pass

    def upload() -> None:
        held.copy_from(data)
        gw.synchronize(device)

    nbytes = data.nbytes
    of_threads = {
        f"{what}, {k} threads": (2 * nbytes if what == "stream scan" else nbytes, items, partial(call, k))
        for what, call in (("host copy", copy), ("stream scan", stream_scan)) for k in THREADS
    }  # fmt: skip
    return of_threads | {
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


def measure_processes(
    adapters: list[int],
    names: list[str],
    items: int,
    seconds: float,
    left_s: float,
    take: Callable[[dict[str, Any]], None],
) -> None:
    """Run a process per adapter, and give away the results as they come.

    Raises
    ------
    RuntimeError
        If a process failed or died, or a row takes too long.
    """
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(len(adapters)), context.Queue()
    goes_on, deadline = context.Value("b", True), time.time() + left_s
    processes = [
        context.Process(
            target=measure_process, args=(place, adapters, names, items, seconds, deadline, goes_on, barrier, queue),
            daemon=True,
        )
        for place in range(len(adapters))
    ]  # fmt: skip
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


def measure_dask(steps: Any, adapters: list[int], items: int, task_s: float | None) -> None:
    """Measure M3, M4 and M6, on one worker and on all; without seconds of a task the sort alone, and its stages."""
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
    steps: Any, adapters: list[int], items: int, task_s: float | None, own: dict[str, Any], found: dict[str, Any]
) -> None:
    """Measure on a cluster with these adapters."""
    import gridwise_py.dask as gwd

    workers = len(adapters)
    with gwd.local_cluster(adapters) as cluster, gwd.connect(cluster, timeout_s=60) as client:
        own["devices"] = [identity.id for identity in gwd.identities(client)]
        client.wait_for_workers(workers, timeout=60)
        if task_s is not None:
            repeats = found.get("1 workers", {}).get("passes", {}).get("repeats")
            own["passes"] = steps.run(
                f"M4, passes on {workers}", lambda: measure_passes(client, items, task_s, repeats), 60 + 40 * task_s
            )
            if workers == 1:
                own["stream"] = steps.run("M3, stream", lambda: measure_stream(client, items), 120.0)
        own["sort"] = steps.run(f"M6, sort on {workers}", lambda: measure_sort(client, items, workers), 180.0)
        if task_s is None:
            own["stages"] = steps.run(f"stages on {workers}", lambda: measure_stages(client, items, workers), 180.0)
            if own["stages"]:
                print(sort_stages.table(own["stages"]), flush=True)


def measure_stream(client: Any, items: int) -> dict[str, Any]:
    """M3: a reduction of chunks in one process by gw.stream, and through Dask on one worker."""
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
    """M4: many reductions of a chunk on each GPU; every GPU has the same work, whatever their number."""
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
            client.submit(run_on_gpu, _passes_of_held, future, count, resources=one, pure=False)
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


def _passes_of_held(device: Any, held: Any, count: int) -> float:
    return passes(device, held, count)


# ---- groups


def group_keys(index: int, items: int) -> np.ndarray:
    """Return a chunk of keys, on the worker that computes it."""
    return np.random.default_rng(index).integers(0, GROUPS, items, dtype=np.uint32)


def group_values(index: int, items: int) -> np.ndarray:
    """Return a chunk of values; sums of them are exact in any order."""
    return (np.arange(items, dtype=np.uint32) & np.uint32(7)).astype(np.float32)


def measure_groups(steps: Any, adapters: list[int], rows: int, items: int) -> None:
    """Group rows of host memory on one GPU, on all, and on the CPUs of the same host."""
    from distributed import wait

    import gridwise_py.dask as gwd

    found = steps.document["groups"] = {"rows": rows, "groups": GROUPS, "chunk_items": items}
    count = -(-rows // items)
    for workers in sorted({1, len(adapters)}):
        # On one GPU as many rows as its share is: all of them may be more than one worker's memory.
        own = max(1, count * workers // len(adapters))

        def on_gpus(workers: int = workers, own: int = own) -> dict[str, Any]:
            with gwd.local_cluster(adapters[:workers]) as cluster, gwd.connect(cluster, timeout_s=60) as client:
                client.wait_for_workers(workers, timeout=60)
                keys, values = (client.persist(chunked(own, items, make)) for make in (group_keys, group_values))
                wait([keys, values])
                results: list[Any] = []

                def grouped() -> None:
                    # Another limit makes other tasks: equal ones may be there still.
                    groups = gwd.groupby(keys, values, "sum", max_groups=GROUPS + len(results))
                    results.append(client.gather(client.compute(groups)))

                wall_s = timed(grouped, 0, 3)
                stages = sort_stages.measured(client, grouped)
                total = float(np.sum(results[-1][1], dtype=np.float64))
            return {"rows": own * items, "wall_s": wall_s, "grows_per_s": own * items / wall_s * 1e-9,
                    "bytes_per_s": 8 * own * items / wall_s, "of_worker_s": stages["of_worker_s"],
                    "exact": total == own * 3.5 * items}  # fmt: skip

        found[f"{workers} GPUs"] = steps.run(f"groups on {workers}", on_gpus, 240.0)
        steps.say(f"groups on {workers}: {found[f'{workers} GPUs']}")
    found["CPUs"] = steps.run("groups on the CPUs", lambda: groups_on_cpus(rows), 240.0)
    if found["CPUs"] and found.get(f"{len(adapters)} GPUs"):
        found["times_as_fast"] = found[f"{len(adapters)} GPUs"]["grows_per_s"] / found["CPUs"]["grows_per_s"]
        steps.say(f"groups: {found['CPUs']}; {found['times_as_fast']:.2f} times as fast on the GPUs")


def groups_on_cpus(rows: int) -> dict[str, Any]:
    """Group as many rows with the fastest library that is there, on all CPUs."""
    import importlib.util

    names = [name for name in ("polars", "pandas") if importlib.util.find_spec(name)]
    name = names[0] if names else "numpy"
    keys = np.empty(rows, np.uint32)
    keys[: 1 << 24] = group_keys(0, min(rows, 1 << 24))
    for i in range(1 << 24, rows, 1 << 24):
        keys[i : i + (1 << 24)] = keys[: min(1 << 24, rows - i)]
    values = np.resize(group_values(0, 1 << 24), rows)
    if name == "polars":
        import polars

        frame = polars.DataFrame({"key": keys, "value": values})
        call = frame.lazy().group_by("key").agg(polars.col("value").sum()).collect
    elif name == "pandas":
        import pandas

        frame = pandas.DataFrame({"key": keys, "value": values}, copy=False)
        call = frame.groupby("key")["value"].sum
    else:
        from concurrent.futures import ThreadPoolExecutor

        pool, cpus = ThreadPoolExecutor(), os.cpu_count() or 1
        parts = list(zip(np.array_split(keys, cpus), np.array_split(values, cpus), strict=True))

        def call() -> Any:
            return np.sum(list(pool.map(lambda part: np.bincount(part[0], part[1], GROUPS), parts)), axis=0)

    wall_s = timed(call, 0, 2)
    return {"library": name, "rows": rows, "wall_s": wall_s, "grows_per_s": rows / wall_s * 1e-9}


# ---- when a cluster is worth it

LENGTHS = (1 << 24, 1 << 26, 1 << 28, 1 << 30)


def measure_worth(steps: Any, adapters: list[int], most: int) -> None:
    """Sort and group keys of host memory: by one process, by clusters, and on the CPUs."""
    rows = steps.document["worth"] = []
    lengths = [n for n in LENGTHS if n <= most]
    alone = steps.run("worth: one process", lambda: worth_alone(adapters[0], lengths), 120.0) or {}
    on_cpus = steps.run("worth: CPUs", lambda: worth_on_cpus(lengths), 180.0) or {}
    clusters = {
        workers: steps.run(
            f"worth: {workers} GPUs", lambda workers=workers: worth_on_cluster(adapters[:workers], lengths), 180.0
        ) or {}
        for workers in sorted({1, len(adapters)})
    }  # fmt: skip
    for what in ("sort", "groups"):
        for n in lengths:
            times = {"one process": alone.get((what, n)), "CPUs": on_cpus.get((what, n))}
            times |= {f"cluster of {workers}": found.get((what, n)) for workers, found in clusters.items()}
            rows.append({"what": what, "n": n, "seconds": times})
            shown = ", ".join(f"{name} " + ("-" if s is None else f"{s:.3f}") for name, s in times.items())
            steps.say(f"{what} of {n}: {shown} s")


def worth_alone(adapter: int, lengths: list[int]) -> dict[tuple[str, int], float]:
    """Return the seconds of gw.sort and gw.group_by of numpy arrays."""
    import gridwise_py as gw

    device, found = gw.request_device(adapter), {}
    for n in lengths:
        keys, values = chunk(0, n), group_values(0, n)
        few = keys % np.uint32(GROUPS)
        with suppress(gw.LimitError):  # 4 GiB are more than a buffer of most devices holds
            found["sort", n] = timed(lambda keys=keys: gw.sort(keys, device=device), 0, 2)
        with suppress(gw.LimitError):
            found["groups", n] = timed(
                lambda few=few, values=values: gw.group_by(few, total=(values, "sum"), device=device), 0, 2
            )
    return found


def worth_on_cpus(lengths: list[int]) -> dict[tuple[str, int], float]:
    """Return the seconds of polars, or of numpy for what it can."""
    import importlib.util

    found = {}
    for n in lengths:
        keys, values = chunk(0, n), group_values(0, n)
        few = keys % np.uint32(GROUPS)
        if importlib.util.find_spec("polars"):
            import polars

            series = polars.Series(keys)
            found["sort", n] = timed(lambda series=series: series.sort(), 0, 2)
            frame = polars.DataFrame({"key": few, "value": values}).lazy()
            call = frame.group_by("key").agg(polars.col("value").sum()).collect
            found["groups", n] = timed(call, 0, 2)
        elif n <= 1 << 28:  # one core
            found["sort", n] = timed(lambda keys=keys: np.sort(keys), 0, 1)
            found["groups", n] = timed(lambda few=few, values=values: np.bincount(few, values, GROUPS), 0, 1)
    return found


def worth_on_cluster(adapters: list[int], lengths: list[int]) -> dict[tuple[str, int], float]:
    """Return the seconds of gwd.sort and gwd.groupby of chunks that workers hold in host memory."""
    from distributed import wait

    import gridwise_py.dask as gwd

    found = {}
    with gwd.local_cluster(adapters) as cluster, gwd.connect(cluster, timeout_s=60) as client:
        client.wait_for_workers(len(adapters), timeout=60)
        for n in lengths:
            count = max(2 * len(adapters), n >> 27)
            x = client.persist(chunked(count, n // count))
            keys, values = (client.persist(chunked(count, n // count, make)) for make in (group_keys, group_values))
            wait([x, keys, values])
            numbers = iter(range(100))

            def sort(x: Any = x, numbers: Any = numbers) -> None:
                # Another order makes other tasks: equal ones may be there still.
                found = client.persist(gwd.sort(x, descending=next(numbers) % 2 == 1))
                wait(found)
                client.cancel(found)

            def groups(keys: Any = keys, values: Any = values, numbers: Any = numbers) -> None:
                client.gather(client.compute(gwd.groupby(keys, values, "sum", max_groups=GROUPS + next(numbers))))

            sort()  # the other order has kernels of its own
            found["sort", n] = timed(sort, 0, 4)
            found["groups", n] = timed(groups, 0, 4)
    return found


def measure_sort(client: Any, items: int, workers: int) -> dict[str, Any]:
    """M6: a sort, and the bound from rates that are measured here: staging of a worker, exchange between two."""
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


def measure_stages(client: Any, items: int, workers: int) -> dict[str, Any]:
    """Return the stages of a sort, after the rates that predict them."""
    import gridwise_py.dask as gwd

    x = client.persist(chunked(2 * workers, items))
    client.gather(client.compute(x.sum()))
    rate = client.submit(sort_stages.rates, items, pure=False).result()
    hop = sort_stages.hop_s(client)
    guess = sort_stages.predicted(rate, hop, x.nbytes, workers)

    def sort() -> None:
        ends = gwd.sort(x).map_blocks(
            _ends, chunks=((3,) * (2 * workers),), dtype=np.uint64, meta=np.empty(0, np.uint64)
        )
        client.gather(client.compute(ends))

    sort()
    return {
        "items": x.size, "rates": rate, "hop_s": hop, "predicted_s": guess,
        "measured": sort_stages.measured(client, sort),
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


# ---- marks


def marks(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was found for each mark that this program measures, and whether it holds on these GPUs.

    A mark that asks for four GPUs is not reached on fewer, whatever holds there: `reached` is None then.
    """
    rows = {row["row"]: row for row in document.get("processes", {}).get("rows", ())}
    dask = document.get("dask", {})
    found: list[dict[str, Any]] = []

    def add(mark: str, what: str, value: Any, wanted: str, holds: bool | None, asks: int = 1) -> None:
        gpus = document["gpus"]
        reached = holds if holds is not None and gpus >= asks else None
        found.append(
            {"mark": mark, "what": what, "found": value, "wanted": wanted, "holds_here": holds, "gpus": gpus,
             "asks_for_gpus": asks, "reached": reached}
        )  # fmt: skip

    for name in ("reduce, resident", "scan, resident", "sort, resident"):
        row = rows.get(name)
        of_gpu = row is not None and row["unit"] == "gpu_gitems_per_s"
        value = row["efficiency"] if row is not None and of_gpu else None
        add("M1", name, value, ">= 0.98", None if value is None else value >= 0.98, 4)
    copy = rows.get("host copy, 4 threads")
    for name in ("stream reduce", "stream scan"):
        row = rows.get(name)
        if row is None or copy is None:
            add("M2", name, None, ">= 0.90, or >= 0.95 of what host copy scales", None, 2)
            continue
        value = {"efficiency": row["efficiency"], "of_host_copy": row["efficiency"] / copy["efficiency"]}
        holds = value["efficiency"] >= 0.90 or value["of_host_copy"] >= 0.95
        add("M2", name, value, ">= 0.90, or >= 0.95 of what host copy scales", holds, 2)
    single = dask.get("1 workers", {})
    stream = single.get("stream")
    large = stream is not None and stream["chunk_bytes"] >= 256 << 20
    add("M3", "Dask over gw.stream, chunks of 256 MiB", None if stream is None else stream["ratio"], "<= 1.10",
        stream["ratio"] <= 1.10 if large else None)  # fmt: skip
    for name, own in dask.items():
        workers = int(name.split()[0])
        if workers > 1:
            one, all_of = single.get("passes"), own.get("passes")
            value = one["wall_s"] / all_of["wall_s"] if one and all_of else None
            enough = value is not None and one["gpu_s_of_a_task"] >= 0.25
            add("M4", f"weak scaling of passes, 1 to {workers}", value, ">= 0.95, with 0.25 s of GPU work a task",
                value >= 0.95 if enough else None, 4)  # fmt: skip
        sort = own.get("sort")
        least = 0.8 if workers == 1 else 0.75
        reached = None if sort is None else sort["of_bound"] >= least and sort["exact"]
        add("M6", f"sort on {workers}, of its bound", sort and sort["of_bound"], f">= {least}, exact parts", reached)
    return found


def mark_line(mark: dict[str, Any]) -> str:
    """Return a line about a mark."""
    value = mark["found"]
    if isinstance(value, dict):
        text = ", ".join(f"{name} {one:.3f}" for name, one in value.items())
    else:
        text = "not measured" if value is None else f"{value:.3f}"
    if mark["holds_here"] is None:
        verdict = "open"
    else:
        verdict = "holds" if mark["holds_here"] else "DOES NOT HOLD"
        if mark["reached"] is None:
            verdict += f" on {mark['gpus']} GPUs; it asks for {mark['asks_for_gpus']}: open"
    return f"{mark['mark']} {mark['what']}: {text} ({mark['wanted']}): {verdict}"


# ----


def main() -> int:
    """Measure, print the tables, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--items", type=parsed_count, default=1 << 26, help="of each GPU, and of a chunk")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each row")
    parser.add_argument("--task-seconds", type=float, default=0.5, help="of GPU work in a task of M4")
    parser.add_argument("--minutes", type=float, default=5.0, help="after these, nothing new begins")
    parser.add_argument("--adapters", help="indices, by default all GPUs")
    parser.add_argument("--parts", default="processes,dask")
    parser.add_argument("--rows", help="of processes, with semicolons; also 'stream scan, 4 threads'")
    parser.add_argument("--rows-of-groups", type=parsed_count, default=1_000_000_000)
    parser.add_argument("--stages", action="store_true", help="of a sort, and nothing else")
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
    if "processes" in given.parts and not given.stages:
        results: list[dict[str, Any]] = []
        names = list(ROWS) if given.rows is None else [name.strip() for name in given.rows.split(";")]
        share_s = steps.left_s * (0.5 if "dask" in given.parts else 1.0)
        document["processes"] = {"results": results, "rows": []}

        def take(result: dict[str, Any]) -> None:
            results.append(result)
            steps.save()

        steps.run(
            "processes",
            lambda: measure_processes(adapters, names, given.items, given.seconds, share_s, take),
            share_s + 300,
        )
        rows_found = document["processes"]["rows"] = efficiencies(results)
        print(f"{'':24}{'alone, each':>14}{'together, each':>16}{'efficiency':>12}")
        for row in rows_found:
            unit = "GB/s" if row["unit"] == "gbytes_per_s" else "G items/s"
            print(f"{row['row']:24}{row['alone']:14.2f}{row['together']:16.2f}{row['efficiency']:12.3f}  {unit}")
        wrong = [f"{r['row']}, {r['how']}, process {r['process']}: {r['error']}" for r in results if "error" in r]
        if wrong:
            document["errors"]["rows"] = "; ".join(wrong)
        document["left_out"] += [name for name in names if name not in {row["row"] for row in rows_found}]
    if given.stages or "dask" in given.parts:
        measure_dask(steps, adapters, given.items, None if given.stages else given.task_seconds)
    if "worth" in given.parts and not given.stages:
        measure_worth(steps, adapters, 16 * given.items)
    if "groups" in given.parts and not given.stages:
        measure_groups(steps, adapters, given.rows_of_groups, given.items)
    document["marks"] = marks(document)
    steps.save()
    for mark in document["marks"]:
        print(mark_line(mark))
    for name, error in document["errors"].items():
        print(f"FAILED {name}: {error}")
    if document["left_out"]:
        print("left out: " + ", ".join(document["left_out"]))
    return 0 if steps.is_whole else 4


if __name__ == "__main__":
    sys.exit(main())
