"""Segmented reductions for segments of many lengths: with and without the path for short ones, and a second kernel.

Usage: python benchmarks/segment_variants.py [--n 2^24,2^28] [--lengths 1,2,4,8,16,64,2^10,2^16,2^28] [--json FILE]

two kernels          a second kernel completes the segments that reach from block to block, as in windows
short everywhere     the kernel has the path for tiles of short segments whatever their length is on average
short nowhere        it never has

docs/contribute/performance.md ("Segments of any length") has the times of the library's choice on an H200, and what
else was tried.

All variants of a case take turns. Times are medians of GPU spans of single calls, then per call of 20 back to back;
GB/s counts items, offsets and results once. Results are compared with numpy's.
"""

from __future__ import annotations

import contextlib
import statistics
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.interleave import samples_ns
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json

VARIANTS: dict[str, Any] = {
    "as it is": contextlib.nullcontext,
    "two kernels": lambda: mock.patch.object(gw.SegmentedReduce, "_may_complete", return_value=False),
    "short everywhere": lambda: mock.patch("gridwise_py.primitives.segmented._SHORT_SEGMENT", 1 << 32),
    "short nowhere": lambda: mock.patch("gridwise_py.primitives.segmented._SHORT_SEGMENT", 0),
}


@click.command()
@click.option("--n", "counts", type=AxisList("n"), default="2^24,2^28", show_default=True, help="Items.")
@click.option("--lengths", type=AxisList("segment"), default="1,2,4,8,16,64,2^10,2^16,2^28", show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--seconds", default=0.03, show_default=True, help="Of one measurement; the warm-up is half of that.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here, after each case.")
def main(counts, lengths, rounds, seconds, adapter, json_path) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    context = run_context(device)
    modes = {
        "single": gw.SamplingProtocol(timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds),
        "back to back": gw.SamplingProtocol(
            timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds, batch_trials=20, check_unit=False
        ),
    }
    print(f"{gw.capabilities(device).adapter}; medians of {rounds} rounds, µs")
    rows: list[dict[str, Any]] = []
    with gw.hold_clock(device):
        for n in counts:
            items = np.random.default_rng(1).integers(0, 2**32, n, dtype=np.uint32)
            sums = np.concatenate([np.zeros(1, np.uint32), np.cumsum(items, dtype=np.uint32)])
            on_gpu = gw.asarray(items, device)
            for length in (length for length in lengths if length <= n):
                ends = np.append(np.arange(0, n, length, dtype=np.uint64), n).astype(np.uint32)
                wanted = sums[ends[1:]] - sums[ends[:-1]]
                arrays = {"items": on_gpu, "offsets": gw.asarray(ends, device)}
                arrays["output"] = gw.empty(wanted.size, "u32", device)
                made: dict[str, gw.Primitive] = {}
                for name in VARIANTS:
                    with VARIANTS[name]():
                        made[name] = gw.SegmentedReduce(device, "u32")
                        arrays["output"].fill(0)
                        made[name].execute(**arrays)
                    if not np.array_equal(arrays["output"].to_numpy(), wanted):
                        raise SystemExit(f"{name}, segments of {length}: wrong")
                times: dict[tuple[str, str], list[float]] = {(name, mode): [] for name in made for mode in modes}
                rng = np.random.default_rng(n)
                for _ in range(rounds):
                    for name in map(str, rng.permutation(list(made))):
                        for mode, protocol in modes.items():
                            taken = gw.measure(made[name], protocol=protocol, check=False, **arrays)
                            times[name, mode].append(statistics.median(samples_ns([taken])[0]))
                moved = 4 * n + 4 * ends.size + 4 * wanted.size
                for name, primitive in made.items():
                    medians = {mode: statistics.median(times[name, mode]) for mode in modes}
                    rows.append({"n": n, "length": length, "variant": name, "moved_bytes": moved, "median_ns": medians})
                    shown = "".join(f"{ns / 1e3:10.1f}" for ns in medians.values())
                    print(f"{n:>11} {length:>11} {name:20}{shown}{moved / medians['single']:8.0f} GB/s", flush=True)
                    primitive.release()
                if json_path is not None:
                    write_json(json_path, {**context, "rounds": rounds, "results": rows})


if __name__ == "__main__":
    main()
