"""Whether resident memory and live objects level off, whatever is made, called and dropped, many times.

Usage: python benchmarks/leaks.py [--json FILE]

Each kind of call is made in rounds, after some to warm up; after each round garbage is collected, and the resident
memory of the process and its live wgpu objects are counted, and the memory that the driver says is used of a discrete
GPU, where that can be asked (the extra ``nvidia``). What leaks grows in every round.
"""

from __future__ import annotations

import gc
import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.internals import gpu_of
from gridwise_py.runtime.context import context_of
from gridwise_py.storage.json_files import write_json

ROUNDS = 5
N = 1000
#: What may stay of a call. Compiling leaves holes in the driver's heap, also without this library
#: (docs/contribute/how-reliability-is-tested.md); a kernel that is kept takes over 100 KB.
MAY_STAY_BYTES = {"kernel": 32 << 10}
#: What a GPU's memory may grow by in all: it is taken in blocks. 4,000 of the smallest buffers are twice as much.
GPU_MAY_GROW_BYTES = 8 << 20
TEXT = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] + NUMBERu; }
}"""


def resident_bytes() -> int:
    """Return the resident memory of this process, after a collection of garbage. Linux only."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def live_objects() -> int:
    """Return how many objects of wgpu-py are alive."""
    return sum(isinstance(thing, wgpu.GPUObjectBase) for thing in gc.get_objects())


def gpu_bytes(device: wgpu.GPUDevice) -> int | None:
    """Return the memory that is used of a device's GPU, once it is idle; None where nobody tells."""
    gw.synchronize(device)
    gpu = gpu_of(device)
    return None if gpu is None else gpu.used_bytes()


def kinds(device: wgpu.GPUDevice) -> dict[str, tuple[Callable[[int], Any], int]]:
    """Return what is repeated, by name: a function of the call's number, and how many calls the full figure has."""
    items = np.arange(N, dtype=np.uint32)
    x = gw.asarray(items, device)
    y = gw.empty_like(x)
    scan, timed = gw.Scan(device), "timestamp-query" in device.features
    numbers = itertools.count()

    def execute(i: int) -> None:
        # By turns with an output that is kept and a new one, which is dropped while the input lives on.
        scan.execute(input=x, output=y if i % 2 else None)
        if i % 500 == 499:
            gw.synchronize(device)

    def primitive(i: int) -> None:
        made = gw.Scan(device) if i % 2 else gw.Reduce(device, op="max")
        made.execute(input=x)
        if i % 100 == 99:
            gw.synchronize(device)

    def kernel(_i: int) -> None:
        # Each another text, so that each compiles; the arrays live on.
        text = TEXT.replace("NUMBER", str(next(numbers)))
        gw.Kernel(device, text, {"x": "read", "y": "read_write"}, N // 64 + 1).execute(x=x, y=y)

    def profile(_i: int) -> None:
        with gw.profile(device) as profiled:
            scan.execute(input=x)
        profiled.key_averages()

    def timing(_i: int) -> None:
        scan.execute(input=x, enable_gpu_timing=timed, enable_cpu_timing=True).get_timing_result()

    def upload(_i: int) -> None:
        scan.execute(input=gw.asarray(items, device)).output.to_numpy()

    return {
        "execute": (execute, 100_000),
        "primitive": (primitive, 10_000),
        "kernel": (kernel, 10_000),
        "profile": (profile, 1_000),
        "timing": (timing, 10_000),
        "upload": (upload, 10_000),
    }


def repeat(
    call: Callable[[int], Any], total: int, *, device: wgpu.GPUDevice | None = None, until_s: float = float("inf")
) -> list[dict[str, int | None]]:
    """Make `total` calls in rounds, after half a round of warm-up; return what was counted before and after each round.

    Ends after a round when the clock (`time.monotonic`) says `until_s`. The memory of a GPU is that of `device`.
    """
    per_round = max(1, total // ROUNDS)

    def count(calls: int) -> dict[str, int | None]:
        return {
            "calls": calls,
            "resident_bytes": resident_bytes(),
            "live_objects": live_objects(),
            "gpu_bytes": None if device is None else gpu_bytes(device),
        }

    for i in range(per_round // 2):
        call(i)
    counted = [count(0)]
    for number in range(ROUNDS):
        for i in range(per_round):
            call(i)
        counted.append(count((number + 1) * per_round))
        if time.monotonic() > until_s:
            break
    return counted


def later_growth(counted: list[dict[str, int | None]], what: str) -> int | None:
    """Return how much a count grew in the later half of the rounds, where caches are full; None if nobody counted."""
    first, last = counted[len(counted) // 2][what], counted[-1][what]
    return None if first is None or last is None else last - first


def bytes_per_call(counted: list[dict[str, int | None]]) -> float:
    """Return the growth of resident memory per call in the later half of the rounds."""
    return later_growth(counted, "resident_bytes") / max(1, later_growth(counted, "calls"))


def leaks_in(name: str, counted: list[dict[str, int | None]]) -> list[str]:
    """Return what a kind of call leaves behind, by name; empty if all levels off."""
    on_gpu = later_growth(counted, "gpu_bytes")
    found = {
        "resident memory": bytes_per_call(counted) >= MAY_STAY_BYTES.get(name, 16),
        "live objects": counted[-1]["live_objects"] > counted[1]["live_objects"],
        "memory of the GPU": on_gpu is not None and on_gpu > GPU_MAY_GROW_BYTES,
    }
    return [what for what, grows in found.items() if grows]


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--share", default=1.0, show_default=True, help="Of the calls of the full figure; at least 0.1.")
@click.option("--limit-s", default=1200.0, show_default=True, help="Ends after the round in which it is over.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter: str | None, share: float, limit_s: float, json_path: Path | None) -> None:
    """Repeat, count, print; exit 1 where live objects grow, memory by 16 bytes per call (32 KiB of new kernels), or
    that of a GPU by 8 MiB."""
    device = gw.request_device(adapter)
    print(f"{gw.capabilities(device).adapter}; resident memory in KiB, live wgpu objects, and MiB of the GPU")
    until_s = time.monotonic() + limit_s
    results: list[dict[str, Any]] = []
    for name, (call, total) in kinds(device).items():
        begin = time.monotonic()
        counted = repeat(call, int(total * share), device=device, until_s=until_s)
        growth, leaks = bytes_per_call(counted), leaks_in(name, counted)
        results.append(
            {
                "kind": name, "rounds": counted, "bytes_per_call": growth,
                "gpu_growth_bytes": later_growth(counted, "gpu_bytes"), "leaks": leaks,
                "duration_s": time.monotonic() - begin,
            }
        )  # fmt: skip
        rounds = ", ".join(
            f"{c['resident_bytes'] >> 10} ({c['live_objects']}"
            + (")" if c["gpu_bytes"] is None else f", {c['gpu_bytes'] / 2**20:.1f})")
            for c in counted
        )
        found = f"LEAKS {', '.join(leaks)}: " if leaks else ""
        print(f"{name:10} {counted[-1]['calls']:7} calls  {growth:6.1f} B/call  {found}{rounds}", flush=True)
    counts = context_of(device).executor.counts
    print(f"the executor keeps {counts}")
    if json_path is not None:
        write_json(json_path, {**run_context(device), "share": share, "executor": counts, "results": results})
    sys.exit(int(any(result["leaks"] for result in results)))


if __name__ == "__main__":
    main()
