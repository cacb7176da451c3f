"""How fast arrays travel between numpy and the GPU, beside the machine's memcpy.

Usage: python benchmarks/transfers.py [--sizes 2^20,2^30] [--threads 2,all] [--statistic min] [--json FILE]

Timed is the whole on the CPU's clock: uploads with the wait until the GPU has the data, downloads until they are in the
numpy array. "asarray" makes a new buffer each time; "asarray_reused" gets a block that is free. "to_numpy" makes a new
numpy array, "to_numpy_out" is given one that was used before.

The ways take turns, round by round, so that a change of the machine's speed meets all of them. memcpy is numpy's, by
one thread and by as many as the transfers take, the faster of both; into memory that was used before, and into a new
array ("memcpy_fresh"), with which "asarray" and "to_numpy" are compared. What arrived is compared once with what was
sent.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.backend.queues import wait_idle
from gridwise_py.bench.results.context import run_context
from gridwise_py.runtime import transfers
from gridwise_py.runtime.context import context_of
from gridwise_py.storage.json_files import write_json

_STATISTICS: dict[str, Callable[[list[int]], float]] = {"median": statistics.median, "min": min}
_OURS = ("asarray", "asarray_reused", "copy_from", "to_numpy", "to_numpy_out")
_COMPARED_WITH = {"asarray": "memcpy_fresh", "to_numpy": "memcpy_fresh"}


def parse_count(text: str) -> int:
    """Read 2^22 or a number."""
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(base)


def copy_by(pool: ThreadPoolExecutor, threads: int, target: np.ndarray, source: np.ndarray) -> None:
    """Copy with several threads, a share each."""
    share = -(-source.size // threads)
    parts = [slice(first, first + share) for first in range(0, source.size, share)]
    list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))


def by_threads(pool: ThreadPoolExecutor, threads: int, source: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return what copies with numpy alone."""
    reused = np.zeros_like(source)
    return {
        "memcpy_1_thread": lambda: np.copyto(reused, source),
        "memcpy_threads": lambda: copy_by(pool, threads, reused, source),
        "memcpy_fresh_1_thread": lambda: np.copyto(np.empty_like(source), source),
        "memcpy_fresh_threads": lambda: copy_by(pool, threads, np.empty_like(source), source),
    }


def ways_of(
    device: wgpu.GPUDevice, size_bytes: int, pool: ThreadPoolExecutor, threads: int
) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name; each call moves `size_bytes`."""
    source = np.random.default_rng(0).integers(0, 1 << 32, size_bytes // 4, dtype=np.uint32)
    reused = np.zeros_like(source)
    x, memory = gw.asarray(source, device), context_of(device).memory
    if not (np.array_equal(x.to_numpy(), source) and np.array_equal(x.to_numpy(out=reused), source)):
        raise SystemExit(f"{size_bytes} bytes did not come back as they were sent")

    def until_there() -> None:
        if not (memory.is_mappable and size_bytes >= transfers.MAPPED_UP_BYTES):
            device.queue.submit([])  # wgpu holds writes of the queue back until a submission
        wait_idle(device)

    def asarray() -> None:
        gw.asarray(source, device)
        until_there()

    def copy_from() -> None:
        x.copy_from(source)
        until_there()

    return by_threads(pool, threads, source) | {
        "asarray": asarray,
        "asarray_reused": asarray,
        "copy_from": copy_from,
        "to_numpy": x.to_numpy,
        "to_numpy_out": lambda: x.to_numpy(out=reused),
    }


def preparations(device: wgpu.GPUDevice, size_bytes: int) -> dict[str, Callable[[], object]]:
    """Return what comes before some ways, and is not timed."""
    return {
        "asarray": lambda: gw.empty_cache(device),
        "asarray_reused": lambda: gw.empty(size_bytes // 4, "u32", device),  # dropped, and so free
    }


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--sizes", default="2^18,2^20,2^21,2^22,2^23,2^24,2^26,2^28,2^30", show_default=True, help="In bytes.")
@click.option("--threads", "threads_text", default="2,all", show_default=True, help="How many copy at once.")
@click.option(
    "--statistic", type=click.Choice(list(_STATISTICS)), default="median", show_default=True, help="Of times."
)
@click.option("--rounds", default=10, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    adapter: str | None, sizes: str, threads_text: str, statistic: str, rounds: int, json_path: Path | None
) -> None:
    """Measure and print GB/s (10^9 bytes); in brackets, the ratio to memcpy, into fresh memory where ours is."""
    device = gw.request_device(adapter)
    own = context_of(device).transfers
    most = own.threads
    counts = sorted({most if text == "all" else min(int(text), most) for text in threads_text.split(",")})
    rows = []
    print(f"{gw.capabilities(device).adapter}; GB/s, {statistic} of {rounds}; in brackets, over memcpy")
    print(f"{'bytes':>11} {'threads':>7} {'memcpy':>7} {'fresh':>7} " + " ".join(f"{name:>14}" for name in _OURS))
    for threads in counts:
        own.threads = threads
        with ThreadPoolExecutor(threads) as pool:
            for size_bytes in (parse_count(text) // 4 * 4 for text in sizes.split(",")):
                ways, prepare = ways_of(device, size_bytes, pool, threads), preparations(device, size_bytes)
                samples: dict[str, list[int]] = {name: [] for name in ways}
                for i in range(rounds + 1):
                    for name, way in ways.items():
                        prepare.get(name, int)()
                        wait_idle(device)
                        begin = time.perf_counter_ns()
                        way()
                        if i:  # the first round makes what is kept
                            samples[name].append(time.perf_counter_ns() - begin)
                times = {name: _STATISTICS[statistic](values) for name, values in samples.items()}
                speeds = {name: size_bytes / time_ns for name, time_ns in times.items()}
                for memcpy in ("memcpy", "memcpy_fresh"):
                    speeds[memcpy] = max(speeds[f"{memcpy}_1_thread"], speeds[f"{memcpy}_threads"])
                over = {name: speed / speeds[_COMPARED_WITH.get(name, "memcpy")] for name, speed in speeds.items()}
                rows.append(
                    {
                        "size_bytes": size_bytes, "threads": threads, "samples_ns": samples, "gbytes_per_s": speeds,
                        "over_memcpy": over,
                    }
                )  # fmt: skip
                shown = [f"{speeds[name]:7.2f} ({over[name]:4.2f})" for name in _OURS]
                print(
                    f"{size_bytes:11} {threads:7} {speeds['memcpy']:7.2f} {speeds['memcpy_fresh']:7.2f} "
                    + " ".join(shown),
                    flush=True,
                )
    if json_path is not None:
        write_json(json_path, {**run_context(device), "rounds": rounds, "results": rows})


if __name__ == "__main__":
    main()
