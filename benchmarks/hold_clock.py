"""What a rest between calls costs on an NVIDIA GPU, with its clock held by `gw.hold_clock` and without.

Usage: python benchmarks/hold_clock.py [--json FILE]

A scan of 2^20 items runs after rests of 2 and of 50 ms. The times are GPU spans, medians of 50. Before and after the
clock is held the GPU rests for some seconds, so that its clock can fall. On other GPUs nothing is held, and the times
are the same.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json

N = 1 << 20
RESTS_S = (0.002, 0.05)
CALLS = 50
WARM_UP_CALLS = 10
FALL_S = 2.5


def span_ns(scan: gw.Scan, rest_s: float) -> float:
    """Return the median GPU span of calls with a rest before each."""
    spans = []
    for _ in range(WARM_UP_CALLS + CALLS):
        time.sleep(rest_s)
        spans.append(scan.execute(enable_gpu_timing=True).get_timing_result().gpu_span_ns)
    return statistics.median(spans[WARM_UP_CALLS:])


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter: str | None, json_path: Path | None) -> None:
    """Measure and print the GPU spans."""
    device = gw.request_device(adapter)
    if "timestamp-query" not in device.features:
        raise click.ClickException("this device has no timestamps, so a GPU span cannot be measured")
    x = gw.asarray(np.random.default_rng(0).integers(0, 1 << 32, N, dtype=np.uint32), device)
    scan = gw.Scan(device)
    scan.execute(input=x, output=gw.empty_like(x))
    rows = []
    print(f"{gw.capabilities(device).adapter}; scan of {N:,} items; GPU span, µs")
    print(f"{'rest':>6} {'before':>8} {'held':>8} {'after':>8} {'to hold it':>12}")
    for rest_s in RESTS_S:
        time.sleep(FALL_S)
        before = span_ns(scan, rest_s)
        begin = time.perf_counter_ns()
        with gw.hold_clock(device):
            hold_ns = time.perf_counter_ns() - begin
            held = span_ns(scan, rest_s)
        time.sleep(FALL_S)
        after = span_ns(scan, rest_s)
        rows.append({"rest_s": rest_s, "before_ns": before, "held_ns": held, "after_ns": after, "hold_ns": hold_ns})
        print(
            f"{rest_s * 1e3:3.0f} ms {before / 1e3:8.1f} {held / 1e3:8.1f} {after / 1e3:8.1f} {hold_ns / 1e9:10.2f} s"
        )
    if json_path is not None:
        write_json(json_path, {**run_context(device), "n": N, "calls": CALLS, "results": rows})


if __name__ == "__main__":
    main()
