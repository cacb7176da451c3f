"""What a profile costs the CPU: a call without one, in one, and by itself without even a look whether there is one.

Usage: python benchmarks/profile_overhead.py [--json FILE]

The three are interleaved in blocks of calls, with an idle queue before each call; timed is the call alone, without the
wait for its end. "no look" calls what lies behind execute()'s look for a profile.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json

N = 1 << 10
BLOCK = 50


def block_ns(device, call: Callable[[], object]) -> list[int]:
    """Time some calls."""
    times = []
    for _ in range(BLOCK):
        gw.synchronize(device)
        begin = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - begin)
    return times


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--blocks", default=40, show_default=True, help=f"Of {BLOCK} calls each.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter: str | None, blocks: int, json_path: Path | None) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    x = gw.asarray(np.arange(N, dtype=np.uint32), device)
    primitives = {
        "vector_add, 1 kernel": (gw.VectorAdd(device), {"a": x, "b": x, "output": gw.empty_like(x)}),
        "scan, 3 kernels": (
            gw.Scan(device, strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=64, vecs=1)),
            {"input": x, "output": gw.empty_like(x)},
        ),
    }
    rows = []
    print(f"{gw.capabilities(device).adapter}; n = {N}; median CPU time of a call, µs")
    print(f"{'':22} {'no look':>9} {'execute()':>10} {'in a profile':>13}")
    for name, (primitive, arrays) in primitives.items():
        primitive.execute(**arrays)

        def no_look(primitive=primitive) -> None:
            primitive._run(primitive._bind({}, 1), None, False, False, 1, None)

        samples: dict[str, list[int]] = {"no_look": [], "execute": [], "in_profile": []}
        block_ns(device, primitive.execute)
        gc.disable()
        for _ in range(blocks):
            samples["no_look"] += block_ns(device, no_look)
            samples["execute"] += block_ns(device, primitive.execute)
            with gw.profile(device):
                samples["in_profile"] += block_ns(device, primitive.execute)
        gc.enable()
        row = {"call": name, **{f"{key}_ns": statistics.median(times) for key, times in samples.items()}}
        row["quartiles_ns"] = {key: list(np.percentile(times, [25, 75])) for key, times in samples.items()}
        rows.append(row)
        print(
            f"{name:22} "
            + " ".join(f"{row[f'{key}_ns'] / 1e3:{w}.1f}" for key, w in zip(samples, (9, 10, 13), strict=True))
        )
    if json_path is not None:
        write_json(json_path, {**run_context(device), "blocks": blocks, "calls_per_block": BLOCK, "results": rows})


if __name__ == "__main__":
    main()
