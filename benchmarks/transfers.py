"""How fast arrays travel between numpy and the GPU, beside the machine's memcpy.

Usage: python benchmarks/transfers.py [--sizes 2^20,2^30] [--threads 2,all] [--json FILE]

Timed is the whole on the CPU's clock: uploads with the wait until the GPU has the data, downloads until they are in the
numpy array, and a new array's memory was given back. "small" takes no ring, "ring" does, whatever the size: where the
two meet is the border, `RING_BYTES`. The ways take turns, round by round, so that a change of the machine's speed meets
all of them. memcpy is numpy's, into memory that was used before, by one thread and by as many as the transfers take.
What arrived is compared once with what was sent.
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
from gridwise_py.backend.wgpu_native import wait_idle
from gridwise_py.bench.results.context import run_context
from gridwise_py.runtime import transfers
from gridwise_py.runtime.context import context_of
from gridwise_py.storage.json_files import write_json

COMPARED_BYTES = 64 << 20  # up to here, both ways are tried


def parse_count(text: str) -> int:
    """Read 2^22 or a number."""
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(base)


def copy_by(pool: ThreadPoolExecutor, threads: int, target: np.ndarray, source: np.ndarray) -> None:
    """Copy with several threads, a share each."""
    share = -(-source.size // threads)
    parts = [slice(first, first + share) for first in range(0, source.size, share)]
    list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))


def ways_of(
    device: wgpu.GPUDevice, size_bytes: int, pool: ThreadPoolExecutor, threads: int
) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name; each call moves `size_bytes`."""
    source = np.random.default_rng(0).integers(0, 1 << 32, size_bytes // 4, dtype=np.uint32)
    reused = np.zeros_like(source)
    x = gw.asarray(source, device)
    if not (np.array_equal(x.to_numpy(), source) and np.array_equal(x.to_numpy(out=reused), source)):
        raise SystemExit(f"{size_bytes} bytes did not come back as they were sent")

    def asarray() -> None:
        made = gw.asarray(source, device)
        wait_idle(device)
        made.destroy()

    def copy_from() -> None:
        x.copy_from(source)
        wait_idle(device)

    def by(ring_bytes: int, way: Callable[[], object]) -> Callable[[], object]:
        def bordered() -> None:
            before, transfers.RING_BYTES = transfers.RING_BYTES, ring_bytes
            try:
                way()
            finally:
                transfers.RING_BYTES = before

        return bordered

    always, never = 0, 1 << 40
    compared: dict[str, Callable[[], object]] = {}
    if size_bytes <= COMPARED_BYTES:
        compared = {
            "up_small": by(never, copy_from),
            "up_ring": by(always, copy_from),
            "down_small": by(never, lambda: x.to_numpy(out=reused)),
            "down_ring": by(always, lambda: x.to_numpy(out=reused)),
        }
    return compared | {
        "memcpy_1_thread": lambda: np.copyto(reused, source),
        "memcpy": lambda: copy_by(pool, threads, reused, source),
        "asarray": asarray,
        "copy_from": copy_from,
        "to_numpy": x.to_numpy,
        "to_numpy_out": lambda: x.to_numpy(out=reused),
    }


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--sizes", default="2^18,2^20,2^21,2^22,2^23,2^24,2^26,2^28,2^30", show_default=True, help="In bytes.")
@click.option("--threads", "threads_text", default="2,all", show_default=True, help="How many copy at once.")
@click.option("--rounds", default=10, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter: str | None, sizes: str, threads_text: str, rounds: int, json_path: Path | None) -> None:
    """Measure and print GB/s (10^9 bytes), medians; in brackets, the ratio to memcpy by as many threads."""
    device = gw.request_device(adapter)
    own = context_of(device).transfers
    most = own.threads
    counts = sorted({most if text == "all" else min(int(text), most) for text in threads_text.split(",")})
    rows = []
    print(f"{gw.capabilities(device).adapter}; GB/s, medians of {rounds}; in brackets, over memcpy by as many threads")
    print(f"{'bytes':>11} {'threads':>7} {'memcpy, 1':>10} {'memcpy':>7} " + _heads())
    for threads in counts:
        own.threads = threads
        with ThreadPoolExecutor(threads) as pool:
            for size_bytes in (parse_count(text) // 4 * 4 for text in sizes.split(",")):
                ways = ways_of(device, size_bytes, pool, threads)
                samples: dict[str, list[int]] = {name: [] for name in ways}
                for i in range(rounds + 1):
                    for name, way in ways.items():
                        wait_idle(device)
                        begin = time.perf_counter_ns()
                        way()
                        if i:  # the first round makes what is kept
                            samples[name].append(time.perf_counter_ns() - begin)
                speeds = {name: size_bytes / statistics.median(times) for name, times in samples.items()}
                rows.append(
                    {
                        "size_bytes": size_bytes, "threads": threads, "samples_ns": samples,
                        "gbytes_per_s": speeds,
                        "over_memcpy": {name: speed / speeds["memcpy"] for name, speed in speeds.items()},
                    }
                )  # fmt: skip
                shown = [f"{speeds[name]:7.2f} ({speeds[name] / speeds['memcpy']:4.2f})" for name in _OURS]
                shown += [f"{speeds[name]:10.2f}" for name in _COMPARED if name in speeds]
                print(
                    f"{size_bytes:11} {threads:7} {speeds['memcpy_1_thread']:10.2f} {speeds['memcpy']:7.2f} "
                    + " ".join(shown),
                    flush=True,
                )
    if json_path is not None:
        write_json(json_path, {**run_context(device), "rounds": rounds, "results": rows})


_OURS = ("asarray", "copy_from", "to_numpy", "to_numpy_out")
_COMPARED = ("up_small", "up_ring", "down_small", "down_ring")


def _heads() -> str:
    return " ".join([*(f"{name:>14}" for name in _OURS), *(f"{name:>10}" for name in _COMPARED)])


if __name__ == "__main__":
    main()
