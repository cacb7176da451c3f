"""Many scans in a row, each compared item by item on the GPU: looks for the wrong sum in a hundred thousand.

Usage: python benchmarks/soak_scan.py [--n 2^20] [--runs 10000] [--strategy lookback] [--json FILE]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.axes import parse_axis
from gridwise_py.bench.results import run_context, write_results
from gridwise_py.cli.options import AxisValues

COUNT_DIFFERENCES = """
@group(0) @binding(0) var<storage, read> got: array<u32>;
@group(0) @binding(1) var<storage, read> expected: array<u32>;
@group(0) @binding(2) var<storage, read_write> wrong: array<atomic<u32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>) {
  for (var i = id.x; i < arrayLength(&got); i += grid.x * 256u) {
    if (got[i] != expected[i]) { atomicAdd(&wrong[0], 1u); }
  }
}
"""


def soak(device, n: int, runs: int, state: str, **options) -> dict[str, object]:
    """Run and compare; return how many items were wrong in all runs together."""
    rng = np.random.default_rng(n)
    x = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    scan = gw.Scan(device, "u32", state=state, **options)
    expected = gw.asarray(scan.reference(x), device)
    source, output = gw.asarray(x, device), gw.empty(n, "u32", device)
    wrong = gw.asarray(np.zeros(4, dtype=np.uint32), device)
    compare = gw.Kernel(
        device,
        COUNT_DIFFERENCES,
        {"got": "read", "expected": "read", "wrong": "read_write"},
        1024,
        label="compare",
    )
    poison = gw.Copy(device, "u32")
    begin = time.perf_counter()
    run = None
    for i in range(runs):
        encoder = device.create_command_encoder()
        # Whatever a wrong scan leaves unwritten must not be an earlier right result.
        poison.record(encoder, input=source, output=output)
        run = scan.execute(encoder=encoder, input=source, output=output)
        compare.record(encoder, got=output, expected=expected, wrong=wrong)
        device.queue.submit([encoder.finish()])
        if i % 500 == 499:
            wrong.to_numpy()
    total = int(wrong.to_numpy()[0])
    return {
        "n": n,
        "runs": runs,
        "state": state,
        "wrong_items": total,
        "seconds": time.perf_counter() - begin,
        "parameters": dict(run.plan.parameters),
    }


@click.command()
@click.option("--n", "counts", type=AxisValues("n"), default="2^20", show_default=True)
@click.option("--runs", default=10_000, show_default=True)
@click.option("--strategy", default="lookback", show_default=True)
@click.option("--states", default="u64,u32x2", show_default=True)
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(counts, runs, strategy, states, adapter, json_path) -> None:
    """Soak the scan; exit 4 if anything was wrong."""
    device = gw.request_device(adapter)
    rows = []
    for n in parse_axis(f"n={counts}").values:
        for state in states.split(","):
            row = soak(device, n, runs, state, strategy=strategy)
            rows.append(row)
            print(
                f"n={n:,} {strategy} {state}: {row['wrong_items']} wrong items in {runs:,} runs, {row['seconds']:.0f} s"
            )
    if json_path is not None:
        write_results(json_path, {**run_context(device), "results": rows})
    if any(row["wrong_items"] for row in rows):
        sys.exit(4)


if __name__ == "__main__":
    main()
