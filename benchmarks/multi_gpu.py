"""How several GPUs of one host work together: each alone and all at once, then through Dask.

    python benchmarks/multi_gpu.py [--items 2^26] [--seconds 1.5] [--adapters 0,1] [--parts processes,dask] --json FILE

`processes` (marks M1, M2): a process per adapter, nothing but gridwise_py. Copies within host memory, uploads,
downloads, streams, sorts of host data, and the same on arrays that stay on the GPU; of each process alone and of all at
once, by wall clock and, for what stays on the GPU, by GPU timestamps.

`dask` (M3, M4, M6): a stream in one process against the same chunks through Dask on one worker; passes over held chunks
on one worker and on all; a sort of more chunks than GPUs against the bound of what its bytes take, whose rates are
measured in the same run.

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
from typing import Any

import numpy as np

CHUNK_ITEMS = 1 << 22


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


def measure_process(place: int, adapters: list[int], items: int, seconds: float, barrier: Any, queue: Any) -> None:
    """Measure every row alone, in turns, and together with the other processes."""
    import gridwise_py as gw

    try:
        device = gw.request_device(adapters[place])
        for name, (moved_bytes, count, call) in rows(gw, device, place, items).items():
            call()
            for how in ("alone", "together"):
                for turn in range(len(adapters) if how == "alone" else 1):
                    barrier.wait()
                    if how == "alone" and turn != place:
                        continue
                    spans_ns: list[float] = []
                    wall_s = timed(lambda call=call, spans_ns=spans_ns: spans_ns.append(call() or 0.0), seconds)
                    span_ns = statistics.median(spans_ns) or None
                    queue.put(
                        {
                            "row": name, "how": how, "process": place, "wall_s": wall_s,
                            "gbytes_per_s": moved_bytes / wall_s * 1e-9 if moved_bytes else None,
                            "gitems_per_s": count / wall_s * 1e-9,
                            "gpu_gitems_per_s": count / span_ns if span_ns else None,
                        }
                    )  # fmt: skip
            barrier.wait()
        queue.put(None)
    except BaseException as error:
        queue.put(f"process {place}: {type(error).__name__}: {error}")
        barrier.abort()
        raise


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


def measure_processes(adapters: list[int], items: int, seconds: float) -> list[dict[str, Any]]:
    """Run a process per adapter; return the results of all."""
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(len(adapters)), context.Queue()
    processes = [
        context.Process(target=measure_process, args=(place, adapters, items, seconds, barrier, queue))
        for place in range(len(adapters))
    ]
    for process in processes:
        process.start()
    found: list[dict[str, Any]] = []
    left = len(processes)
    while left:
        result = queue.get(timeout=900)
        if isinstance(result, str):
            raise SystemExit(result)
        if result is None:
            left -= 1
        else:
            found.append(result)
    for process in processes:
        process.join()
    return found


def efficiencies(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per thing measured: its rate alone, together, and the ratio (GPU time for what is resident)."""
    found = []
    for name in dict.fromkeys(result["row"] for result in results):
        own = [result for result in results if result["row"] == name]
        unit = "gpu_gitems_per_s" if "resident" in name else "gbytes_per_s"
        if any(result[unit] is None for result in own):
            unit = "gitems_per_s"
        rates = {
            how: statistics.mean(result[unit] for result in own if result["how"] == how)
            for how in ("alone", "together")
        }
        found.append({"row": name, "unit": unit, **rates, "efficiency": rates["together"] / rates["alone"]})
    return found


# ---- through Dask


def chunk(index: int, items: int) -> np.ndarray:
    """Return a chunk of random keys, on the worker that computes it."""
    return np.random.default_rng(index).integers(0, 1 << 32, items, dtype=np.uint32)


def chunked(count: int, items: int) -> Any:
    """Return a dask array of so many chunks, which workers make themselves."""
    import dask
    import dask.array as da

    make = dask.delayed(chunk, pure=True)
    return da.concatenate([da.from_delayed(make(i, items), (items,), dtype=np.uint32) for i in range(count)])


def passes(device: Any, held: Any, count: int) -> int:
    """Reduce a held chunk so many times; return the last result."""
    import gridwise_py as gw

    total, one = gw.Reduce(device, "u32"), gw.empty(1, "u32", device)
    for _ in range(count):
        total.execute(input=held, output=one)
    return int(one.to_numpy()[0])


def measure_dask(adapters: list[int], items: int, repeats: int) -> dict[str, Any]:
    """Return the measurements of M3, M4 and M6."""
    import gridwise_py.dask as gwd

    found: dict[str, Any] = {}
    for workers in sorted({1, len(adapters)}):
        with gwd.local_cluster(adapters[:workers]) as cluster, gwd.connect(cluster, timeout_s=120) as client:
            gwd.identities(client)
            own = found[f"{workers} workers"] = {}
            x = client.persist(chunked(2 * workers, items))
            client.gather(client.compute(x.sum()))
            own["passes"] = measure_passes(client, x, workers, repeats)
            if workers == 1:
                own["stream"] = measure_stream(client, x)
            own["sort"] = measure_sort(client, x, workers)
    return found


def measure_stream(client: Any, x: Any) -> dict[str, Any]:
    """M3: a reduction of chunks in one process by gw.stream, and through Dask on one worker."""
    import gridwise_py.dask as gwd

    alone = client.submit(_streamed, [block.key for block in x.to_delayed().ravel()], pure=False)
    stream_s = alone.result()
    dask_s = timed(lambda: client.gather(client.compute(gwd.reduce(x + np.uint32(0)))), 0, 3)
    return {"gw_stream_s": stream_s, "dask_s": dask_s, "ratio": dask_s / stream_s}


def _streamed(keys: list[Any]) -> float:
    """Reduce the chunks that this worker holds, as gw.stream does it, with an addition first as the other side has."""
    from distributed import get_worker

    import gridwise_py as gw

    held = get_worker().data
    reduce = gw.Reduce(gw.default_device(), "u32")
    return timed(lambda: gw.stream(reduce, (held[key] + np.uint32(0) for key in keys)), 0, 3)


def measure_passes(client: Any, x: Any, workers: int, repeats: int) -> dict[str, Any]:
    """M4: many reductions of chunks that stay on the GPUs; every GPU has the same work, whatever their number."""
    import gridwise_py.dask as gwd
    from gridwise_py.dask.worker import gpu_workers, run_on_gpu

    held = client.persist(gwd.on_gpu(x[: x.size // 2]))
    client.gather(client.compute(gwd.reduce(held)))
    keys = [block.key for block in held.to_delayed().ravel()]
    where = client.who_has()
    free = list(gpu_workers(client))
    places = [next((one for one in where.get(key, ()) if one in free), free[i]) for i, key in enumerate(keys)]

    def all_passes() -> None:
        futures = [
            client.submit(run_on_gpu, _passes_of_held, key, repeats, workers=[place], pure=False)
            for key, place in zip(keys, places, strict=True)
        ]
        client.gather(futures)

    return {"wall_s": timed(all_passes, 0, 3), "chunks_per_worker": [places.count(one) for one in free]}


def _passes_of_held(device: Any, key: Any, count: int) -> int:
    from distributed import get_worker

    return passes(device, get_worker().data[key], count)


def measure_sort(client: Any, x: Any, workers: int) -> dict[str, Any]:
    """M6: a sort, and the bound from rates that are measured here: staging of each worker, exchange between two."""
    import gridwise_py.dask as gwd

    free = list(client.scheduler_info(n_workers=-1)["workers"])
    staging_s = client.submit(_staging_s, x.chunks[0][0], pure=False).result()
    chunk_bytes = x.chunks[0][0] * 4
    staging_bytes_per_s = 2 * chunk_bytes / staging_s
    exchange_bytes_per_s = None
    if workers > 1:
        exchange_bytes_per_s = chunk_bytes / timed(lambda: _exchange(client, x.chunks[0][0], free), 0, 3)
    wall_s = timed(lambda: client.gather(client.compute(gwd.sort(x).map_blocks(_last).sum())), 0, 3)
    # Twice through the GPU (sort of chunks, merge of parts), each way; what leaves a worker goes across.
    bound_s = 4 * x.nbytes / workers / staging_bytes_per_s
    if exchange_bytes_per_s is not None:
        bound_s += x.nbytes / workers * (1 - 1 / workers) / exchange_bytes_per_s
    return {
        "items": x.size, "chunks": len(x.chunks[0]), "wall_s": wall_s, "gitems_per_s": x.size / wall_s * 1e-9,
        "staging_bytes_per_s": staging_bytes_per_s, "exchange_bytes_per_s": exchange_bytes_per_s, "bound_s": bound_s,
        "of_bound": bound_s / wall_s, "numpy_one_core_s_estimated": x.size / 9e7,
    }  # fmt: skip


def _last(block: np.ndarray) -> np.ndarray:
    return block[-1:]


def _staging_s(items: int) -> float:
    import gridwise_py as gw

    data = np.ones(items, np.uint32)
    back = np.zeros_like(data)
    return timed(lambda: gw.asarray(data).to_numpy(out=back), 0, 3)


def _exchange(client: Any, items: int, workers: list[str]) -> None:
    made = client.submit(np.ones, items, np.uint32, workers=workers[:1], pure=False)
    client.gather(client.submit(_last, made, workers=workers[1:2], pure=False))


# ----


def main() -> int:
    """Measure, print the tables, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--items", type=parsed_count, default=1 << 26, help="of each GPU, and of a chunk")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--repeats", type=int, default=500, help="reductions in a task of M4")
    parser.add_argument("--adapters", help="indices, by default all GPUs")
    parser.add_argument("--parts", default="processes,dask")
    parser.add_argument("--json", required=True)
    given = parser.parse_args()
    from gridwise_py.dask.cluster import chosen_adapters

    if given.adapters is None:
        adapters = [adapter.index for adapter in chosen_adapters("all")]
    else:
        adapters = [int(index) for index in given.adapters.split(",")]
    document: dict[str, Any] = {"adapters": adapters, "items": given.items, "cpus": os.cpu_count()}
    if "processes" in given.parts:
        results = measure_processes(adapters, given.items, given.seconds)
        document["processes"] = {"results": results, "rows": efficiencies(results)}
        print(f"{'':24}{'alone, each':>14}{'together, each':>16}{'efficiency':>12}")
        for row in document["processes"]["rows"]:
            unit = "GB/s" if row["unit"] == "gbytes_per_s" else "G items/s"
            print(f"{row['row']:24}{row['alone']:14.2f}{row['together']:16.2f}{row['efficiency']:12.3f}  {unit}")
    if "dask" in given.parts:
        document["dask"] = measure_dask(adapters, given.items, given.repeats)
        print(json.dumps(document["dask"], indent=1))
    with open(given.json, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
