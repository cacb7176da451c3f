"""How much memory a GPU reaches before each page must be looked up anew, and what regions that take turns change.

Usage: python benchmarks/page_reach.py [--sizes 6,7,8,9,12] [--regions 1,2,4,8,16] [--json FILE]

Vector add of u32, by the library's own kernels, over three arrays that together have so many GiB, cut from three of the
largest that the device makes. Each size is done by one region, as memory lies, and by several that take turns
(shaders/lib/elementwise.wgsl). All take turns, in an order that is drawn anew each round; the figures are medians over
the rounds. What each wrote is compared with what one region wrote, on the GPU, before it is measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from compare_items import Differences
from windows import measured

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json


def in_turns(count: int) -> type[gw.VectorAdd]:
    """Return a vector add of which so many regions take turns, whatever they reach."""
    return type(f"VectorAddIn{count}", (gw.VectorAdd,), {"_pages_known_bytes": -1, "_regions_in_turns": count})


def large_arrays(device: Any, largest_bytes: int) -> dict[str, gw.Array]:
    """Return inputs and output of a vector add, of random items."""
    rng = np.random.default_rng(0)
    n = largest_bytes // 4 // 65536 * 65536
    arrays = {"a": gw.asarray(rng.integers(0, 1 << 32, n, dtype=np.uint32), device)}
    arrays["b"], arrays["output"] = gw.empty(n, "u32", device), gw.empty(n, "u32", device)
    gw.Copy(device).execute(input=arrays["a"], output=arrays["b"])
    return arrays


def check(primitive: gw.VectorAdd, arrays: Mapping[str, gw.Array], expected: gw.Array) -> None:
    """Stop where regions in turns do not write what one region did."""
    device, output = primitive.device, arrays["output"]
    differences = Differences(device)
    encoder = device.create_command_encoder()
    encoder.clear_buffer(output.buffer)
    count = primitive.execute(encoder=encoder, **arrays).plan.parameters["regions"]
    device.queue.submit([encoder.finish()])
    part = gw.capabilities(device).limits["max-storage-buffer-binding-size"] // 4 // 65536 * 65536
    for begin in range(0, output.size, part):
        wrong = differences.mismatch(output[begin : begin + part], expected[begin : begin + part])
        if wrong is not None:
            raise SystemExit(f"{count} regions: from item {begin} on, the result differs from that of one: {wrong}")


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--sizes", "sizes_text", default="4,6,7,7.5,8,8.5,9,10,12", show_default=True, help="GiB, by commas.")
@click.option("--regions", "regions_text", default="1,2,4,8,16", show_default=True, help="How many, by commas.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--seconds", default=0.2, show_default=True, help="Of one measurement; the warm-up is half of that.")
@click.option("--quick", is_flag=True, help="A thousandth of the sizes, two short rounds: for CPU adapters.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter, sizes_text, regions_text, rounds, seconds, quick, json_path) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    unit, rounds, seconds = (1 << 20, min(rounds, 2), min(seconds, 0.02)) if quick else (1 << 30, rounds, seconds)
    counts = [int(text) for text in regions_text.split(",")]
    sizes = [float(text) for text in sizes_text.split(",")]
    limits = gw.capabilities(device).limits
    largest_bytes = min(int(max(sizes) * unit) // 3, limits["max-buffer-size"], 4 * ((1 << 30) - 65536))
    arrays = large_arrays(device, largest_bytes)
    expected = gw.empty_like(arrays["output"])
    ways = {count: in_turns(count)(device) for count in counts}
    in_turns(1)(device).execute(**{**arrays, "output": expected})
    for primitive in ways.values():
        check(primitive, arrays, expected)
    expected.destroy()
    protocol = gw.SamplingProtocol(timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds)
    context, rows, rng = run_context(device), [], np.random.default_rng(1)
    print(f"{gw.capabilities(device).adapter}; vector add of u32, medians of {rounds} rounds")
    print(f"{'GiB':>6} {'n':>11}  " + "  ".join(f"{f'{count} region(s)':>20}" for count in counts))
    for size in sizes:
        n = min(int(size * unit / 12) // 1024 * 1024, arrays["a"].size)
        views = {name: array[:n] for name, array in arrays.items()}
        times: dict[int, list[float]] = {count: [] for count in counts}
        for _ in range(rounds):
            for count in rng.permutation(counts):
                times[int(count)].append(measured(ways[int(count)], views, "hot", protocol))
        for count, found in times.items():
            median_ns = statistics.median(found)
            rows.append(
                {
                    "touched_bytes": 12 * n, "n": n, "regions": count, "median_ns": median_ns, "rounds_ns": found,
                    "gbytes_per_s": 12 * n / median_ns,
                }
            )  # fmt: skip
        cells = (f"{row['median_ns'] / 1e3:9.1f} µs {row['gbytes_per_s']:5.0f} GB/s" for row in rows[-len(counts) :])
        print(f"{12 * n / unit:6.2f} {n:11}  " + "  ".join(cells), flush=True)
        if json_path is not None:
            write_json(json_path, {**context, "mode": "hot", "rounds": rounds, "results": rows})


if __name__ == "__main__":
    main()
