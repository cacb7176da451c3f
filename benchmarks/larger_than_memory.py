"""A sort and a group-by of more than the GPUs of this host may hold, from files to files, beside its disk and memory.

    python benchmarks/larger_than_memory.py --json FILE [--budget 1GiB] [--times 4] [--adapters 0,1]

The GPUs may keep `--budget` of Arrays each; the data are so many times what all of them may keep. Chunks are read from
numpy's files of one folder and parts are written to another one. The disk's rates are those of the same files, read and
written by threads without a GPU; files that were just written are still in the host's memory, so reading is the host's
rate, not the disk's. Results are checked: parts are in order, within and between each other, and have the sum of all
keys.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.utils import parse_bytes
from steps import Steps

import gridwise_py.dask as gwd
from gridwise_py.dask import collections, worker

GROUPS = 1000


def keys_of(index: int, items: int) -> np.ndarray:
    """Return the keys of a chunk."""
    return np.random.default_rng(index).integers(0, 1 << 32, items, dtype=np.uint32)


# ---- files


def write(folder: Path, index: int, items: np.ndarray) -> None:
    """Write a chunk as a file of numpy."""
    np.save(folder / f"{index}.npy", items)


def read(folder: Path, index: int) -> np.ndarray:
    """Return a chunk of a file of numpy."""
    return np.load(folder / f"{index}.npy")


def write_part(block: np.ndarray, folder: Path, block_info: Any = None) -> np.ndarray:
    """Write a part; return its length, its ends, whether it is in order, and its sum."""
    write(folder, block_info[0]["chunk-location"][0], block)
    in_order = bool((block[1:] >= block[:-1]).all())
    return np.array([[block.size, block[0], block[-1], in_order, block.sum(dtype=np.uint64)]], np.uint64)


def of_groups(keys: np.ndarray) -> np.ndarray:
    """Return keys of some groups."""
    return keys % np.uint32(GROUPS)


def in_threads(function: Any, count: int, threads: int) -> float:
    """Return the seconds of a function of each chunk, in so many threads."""
    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(function, range(count)))
    return time.perf_counter() - begin


def measure(steps: Any, given: Any, folder: Path) -> None:
    """Measure the disk, the sort and the group-by."""
    document = steps.document
    from gridwise_py.dask.cluster import chosen_adapters

    adapters = [one.index for one in chosen_adapters("all" if given.adapters is None else given.adapters)]
    budget = parse_bytes(given.budget)
    items = budget // 4 // worker._ARRAYS
    count = max(2, given.times * len(adapters) * budget // 4 // items)
    nbytes = 4 * items * count
    threads = min(16, os.cpu_count() or 1)
    source, target, again = (folder / name for name in ("source", "target", "again"))
    for each in (source, target, again):
        each.mkdir()
    document |= {
        "gpus": len(adapters), "budget_bytes": budget, "nbytes": nbytes, "chunks": count, "items": items * count,
        "format": "npy", "disk_free_bytes": shutil.disk_usage(folder).free,
    }  # fmt: skip
    total = sum(
        ThreadPoolExecutor(threads).map(
            lambda i: (write(source, i, keys := keys_of(i, items)), int(keys.sum(dtype=np.uint64)))[1], range(count)
        )
    )
    os.sync()
    read_s = in_threads(partial(read, source), count, threads)
    one = read(source, 0)
    write_s = in_threads(lambda i: write(again, i, one), count, threads)
    shutil.rmtree(again)
    document["disk"] = {"read_bytes_per_s": nbytes / read_s, "write_bytes_per_s": nbytes / write_s, "threads": threads}
    steps.say(f"{nbytes / 1e9:.2f} GB: disk {document['disk']}")
    make = dask.delayed(read, pure=True)
    x = da.concatenate([da.from_delayed(make(source, i), (items,), dtype=np.uint32) for i in range(count)])
    collections._TOGETHER_BYTES = collections._UNASKED_BYTES = 0  # a small budget is one, too
    with (
        gwd.local_cluster(adapters, device_memory_limit=budget, memory_limit=given.memory_limit) as cluster,
        gwd.connect(cluster, timeout_s=60) as client,
    ):
        client.wait_for_workers(len(adapters), timeout=60)

        def sort() -> dict[str, Any]:
            facts = gwd.sort(x).map_blocks(
                write_part, folder=target, new_axis=1, chunks=((1,) * count, (5,)), dtype=np.uint64,
                meta=np.empty((0, 0), np.uint64),
            )  # fmt: skip
            begin = time.perf_counter()
            found = client.gather(client.compute(facts))
            wall_s = time.perf_counter() - begin
            ends = found[:, 1:3].ravel()
            exact = (found[:, 0] == items).all() and found[:, 3].all() and (ends[1:] >= ends[:-1]).all()
            return {
                "wall_s": wall_s, "bytes_per_s": nbytes / wall_s,
                "of_disk": (read_s + write_s) / wall_s, "exact": bool(exact and int(found[:, 4].sum()) == total),
                "workers": list(client.run(of_worker).values()),
            }  # fmt: skip

        def groups() -> dict[str, Any]:
            lazy = gwd.groupby(x.map_blocks(of_groups, dtype=np.uint32), x, "count")
            begin = time.perf_counter()
            names, counts = client.gather(client.compute(lazy))
            wall_s = time.perf_counter() - begin
            exact = names.size == min(GROUPS, x.size) and int(counts.sum()) == x.size
            return {"wall_s": wall_s, "bytes_per_s": nbytes / wall_s, "of_disk": read_s / wall_s, "exact": bool(exact)}

        for name, function in (("sort", sort), ("groups", groups)):
            document[name] = steps.run(name, function, 60.0 * given.minutes)
            steps.say(f"{name}: {document[name]}")


def of_worker(dask_worker: Any) -> dict[str, int]:
    """Return what a worker moved from its GPU to host memory, and wrote to its disk."""
    data = dask_worker.data
    return {"moved_from_gpu": data.moved, "gpu_bytes": data.gpu_bytes, "on_disk": len(data._host.slow)}


def main() -> int:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budget", default="1GiB", help="of each GPU")
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--adapters", type=lambda text: [int(one) for one in text.split(",")])
    parser.add_argument("--memory-limit", default="auto", help="of host memory, of each worker")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--folder", help="for the files, by default one of the system's for temporary files")
    parser.add_argument("--json", required=True, type=Path)
    given = parser.parse_args()
    steps = Steps(given.json, given.minutes)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        measure(steps, given, Path(folder))
    steps.save()
    exact = all((steps.document.get(name) or {}).get("exact") for name in ("sort", "groups"))
    return 0 if steps.is_whole and exact else 4


if __name__ == "__main__":
    sys.exit(main())
