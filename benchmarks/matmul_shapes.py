"""The matrix product in several shapes, in turns, beside the measured rate of multiply-adds.

Usage:
    python benchmarks/matmul_shapes.py [--n 4096] [--datatype f32] [--shapes 128x128x16/8x8/1/8,64x64x16/8x4/2/8]

A shape is TILE_M x TILE_N x TILE_K / THREAD_M x THREAD_N / STAGES / UNROLL, see `gw.MatMul`. The first line is what
the library takes. Inputs are small integers, so that every result must equal numpy's bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import asdict, astuple, replace
from pathlib import Path

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.calibrate.probes import fma_gflops
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.interleave import checker, interleaved, samples_ns
from gridwise_py.storage.json_files import write_json
from gridwise_py.tuning.matmul_shapes import MatMulShape, matmul_shapes_for

GPU = (
    "128x128x8/8x8/1/8,128x128x16/8x8/1/8,128x128x16/8x8/1/4,128x128x8/8x8/2/8,128x128x16/8x8/2/8,128x64x16/8x8/1/8,"
    "128x64x16/8x4/1/8,64x64x16/8x4/2/8,64x64x16/4x4/2/8"
)
CPU = "64x64x16/8x8/1/4,64x64x16/8x8/2/2,32x64x16/4x8/1/4,32x32x16/4x4/1/4"


def parse(text: str) -> MatMulShape:
    """Read a shape as the usage writes it."""
    numbers = re.fullmatch(r"(\d+)x(\d+)x(\d+)/(\d+)x(\d+)/(\d+)/(\d+)", text.strip())
    if numbers is None:
        raise click.BadParameter(f"{text!r} is no shape: 128x128x16/8x8/1/8, say")
    return MatMulShape(*map(int, numbers.groups()))


def shown(shape: MatMulShape) -> str:
    """Return a shape as the usage writes it."""
    return "{}x{}x{}/{}x{}/{}/{}".format(*astuple(shape))


@click.command()
@click.option("--n", default=4096, show_default=True, help="Rows and columns of both matrices.")
@click.option("--datatype", default="f32", show_default=True, type=click.Choice(list(gw.MatMul.datatypes)))
@click.option("--shapes", help="By default a few around the library's own.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--seconds", default=0.05, show_default=True, help="Of one measurement; the warm-up is half of that.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(n, datatype, shapes, rounds, seconds, adapter, json_path) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    capabilities = gw.capabilities(device)
    own = matmul_shapes_for(capabilities).at(n * n)
    wished = [parse(text) for text in (shapes or (CPU if capabilities.is_cpu else GPU)).split(",")]
    primitives = {}
    for shape in dict.fromkeys([own, *wished]):
        try:
            tuning = gw.MatMulTuning(**asdict(shape))
            primitives[shown(shape)] = gw.MatMul(device, datatype, m=n, n=n, k=n, tuning=tuning)
        except gw.ArgumentError as error:
            print(f"  {shown(shape)}: not here: {error}")
    first = primitives[shown(own)]
    rng = np.random.default_rng(0)
    inputs = {name: rng.integers(-2, 3, n * n).astype(first.datatype.dtype) for name in ("a", "b")}
    arrays = {name: gw.asarray(items, device) for name, items in inputs.items()}
    arrays["output"] = gw.empty(n * n, datatype, device)
    protocol = replace(
        gw.SamplingProtocol(), min_samples=5, block_trials=5, timeout_s=seconds, warmup_s=seconds / 2,
        max_warmup_s=seconds, canary_passes=1, batch_trials=3, check_unit=False,
    )  # fmt: skip
    before = fma_gflops(device)
    found = interleaved(primitives, arrays, rounds=rounds, protocol=protocol, check=checker(first, inputs))
    after = fma_gflops(device)
    ceiling = max(before, after) if before and after else None
    work = 2 * n**3
    print(f"{datatype}, n = {n}, {work / 1e9:.4g} GFLOP a product")
    if ceiling:
        print(f"multiply-adds: {before:.0f} GFLOP/s before, {after:.0f} after; predicted {work / ceiling / 1e3:.1f} µs")
    rows = []
    for name, taken in found.items():
        time_ns = float(np.median(np.concatenate(samples_ns(taken)))) if taken[0].correct else None
        rows.append({"shape": name, "correct": taken[0].correct, "time_ns": time_ns})
        if time_ns is None:
            print(f"  {name:26}WRONG: {taken[0].mismatches}")
            continue
        share = f"{work / time_ns / ceiling:7.1%} of multiply-adds" if ceiling else ""
        print(f"  {name:26}{time_ns / 1e3:10.1f} µs {work / time_ns:9.1f} GFLOP/s {share}", flush=True)
    if json_path is not None:
        figures = {"n": n, "datatype": datatype, "fma_gflops": [before, after], "rounds": rounds, "results": rows}
        write_json(json_path, {**run_context(device), **figures})
    if not all(row["correct"] for row in rows):
        raise SystemExit(4)


if __name__ == "__main__":
    main()
