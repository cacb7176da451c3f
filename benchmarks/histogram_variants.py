"""Variants of the histogram's kernel: shapes, memory for counters, copies, and what is counted at once.

Usage: python benchmarks/histogram_variants.py [--n 2^28] [--bins 256,2048,65536] [--data uniform,one,skewed,cycle]
       [--variants "512x4x528 4096 32 tile;…"] [--rounds 2] [--json FILE]

A variant is a shape (invocations × vec4 of an invocation × most workgroups), the words of workgroup memory for
counters, the most copies of them, and what an invocation counts at once where its items are of one bin: "none", four
neighbours ("quad"), or all of a tile, too ("tile"). "library" is what the library takes without tuning=. Data:

uniform  every bin alike
one      zeros: one bin only
skewed   the fourth power of a uniform number: a quarter is in the first of 256 bins
cycle    0, 1, 2, 3 times 2^30, over and over: no two neighbours are of one bin, but lanes are

Data of more than 2^24 items repeat. All variants of a case take turns; times are medians of GPU spans of single calls.
The rate counts 4 bytes of an item once. Every result is compared with numpy's. The last column is the time relative to
that of the same variant with uniform data.

Predictions for an H200 at 2^28: 239 µs of bytes. Atomics of a warp in workgroup memory take 4 clocks if the bins are
random, 121 µs in all, hidden behind the bytes. "one" with "none": 32 lanes add to 15 copies, so some 3 clocks more;
with "tile" one atomic for 16 items. "cycle" with one copy: 32 lanes on one counter, 32 clocks or 1 ms, and 70 µs with
15 copies. 65,536 bins in 12,288 words: six readings, 1.4 ms, or less where they hit the L2 cache; in 8,192 words eight
readings, but twice the workgroups.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.interleave import samples_ns
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json

_BLOCK_ITEMS = 1 << 24
_LIBRARY = "library"
DATA: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.integers(0, 1 << 32, n, dtype=np.uint32),
    "one": lambda rng, n: np.zeros(n, dtype=np.uint32),
    "skewed": lambda rng, n: (rng.random(n) ** 4 * 2**32).astype(np.uint32),
    "cycle": lambda rng, n: (np.arange(n, dtype=np.uint32) & np.uint32(3)) << np.uint32(30),
}
_FEW_BINS = (
    _LIBRARY, "512x4x528 4096 32 none", "512x4x528 4096 32 quad", "512x4x528 4096 1 tile", "512x4x528 4096 4 tile",
    "512x4x528 2048 32 tile", "512x2x528 4096 32 tile", "512x8x528 4096 32 tile", "256x4x1056 2048 32 tile",
    "1024x4x264 8192 32 tile", "512x4x264 4096 32 tile",
)  # fmt: skip
_SEVERAL_BINS = (
    _LIBRARY, "512x4x528 2048 1 tile", "512x4x528 4096 1 none", "512x8x528 4096 1 tile", "1024x4x264 4096 1 tile",
    "1024x4x264 8192 3 tile", "1024x4x132 12288 5 tile", "256x4x1056 2048 1 tile",
)  # fmt: skip
_MANY_BINS = (
    _LIBRARY, "1024x4x132 12288 1 tile", "1024x4x264 12288 1 none", "1024x8x132 12288 1 tile",
    "1024x2x132 12288 1 tile", "1024x4x264 8192 1 tile", "512x4x264 8192 1 tile", "512x4x528 4096 1 tile",
)  # fmt: skip


def variants_for(bins: int) -> tuple[str, ...]:
    """Return the variants that are worth trying for so many bins."""
    return _FEW_BINS if bins <= 1024 else _SEVERAL_BINS if bins <= 4096 else _MANY_BINS


def tuning_of(variant: str) -> gw.HistogramTuning | None:
    """Read a variant, such as ``512x4x528 4096 32 tile``."""
    if variant == _LIBRARY:
        return None
    shape, words, copies, merge = variant.split()
    size, vecs, blocks = map(int, shape.split("x"))
    return gw.HistogramTuning(
        workgroup_size=size, vecs=vecs, max_blocks=blocks, memory_words=int(words), copies=int(copies),
        merge=cast(Any, merge),
    )  # fmt: skip


def made(device: Any, bins: int, variants: list[str]) -> dict[str, gw.Primitive]:
    """Return the primitives that the device can run, by the names of their variants."""
    found: dict[str, gw.Primitive] = {}
    for variant in variants:
        try:
            found[variant] = gw.Histogram(device, "u32", bins, range=(0, 1 << 32), tuning=tuning_of(variant))
        except gw.ArgumentError as error:
            click.echo(f"{bins} bins, {variant}: {error}")
    return found


@click.command()
@click.option("--n", "counts", type=AxisList("n"), default="2^28", show_default=True, help="Items.")
@click.option("--bins", "bin_counts", type=AxisList("n"), default="256,2048,65536", show_default=True)
@click.option("--data", "kinds", default=",".join(DATA), show_default=True, help="By commas.")
@click.option("--variants", help="By semicolons; by default those that suit the bins.")
@click.option("--rounds", default=2, show_default=True)
@click.option("--seconds", default=0.04, show_default=True, help="Of one measurement; the warm-up is half of that.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    counts: list[int], bin_counts: list[int], kinds: str, variants: str | None, rounds: int, seconds: float,
    adapter: str | None, json_path: Path | None,
) -> None:  # fmt: skip
    """Measure, check and print."""
    device = gw.request_device(adapter)
    protocol = gw.SamplingProtocol(timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds)
    click.echo(f"{gw.capabilities(device).adapter}, u32, medians of {rounds} rounds")
    click.echo(f"{'bins':>6} {'data':8} {'variant':26} {'µs':>10} {'GB/s':>7} {'uniform':>8}")
    rows: list[dict[str, Any]] = []
    for n in counts:
        uniform_ns: dict[tuple[int, str], float] = {}
        for kind in kinds.split(","):
            block = DATA[kind](np.random.default_rng(1), min(n, _BLOCK_ITEMS))
            repeats = -(-n // block.size)
            array = gw.asarray(np.tile(block, repeats)[:n], device)
            for bins in bin_counts:
                primitives = made(device, bins, variants.split(";") if variants else list(variants_for(bins)))
                shift = np.uint32(32 - (bins - 1).bit_length())
                expected = np.bincount(block >> shift, minlength=bins) * (n // block.size)
                expected += np.bincount(block[: n % block.size] >> shift, minlength=bins)
                output = gw.empty(bins, "u32", device)
                times: dict[str, list[float]] = {name: [] for name in primitives}
                rng = np.random.default_rng(n)
                for round_number in range(rounds):
                    for name in map(str, rng.permutation(list(primitives))):
                        given = {"input": array, "output": output}
                        if round_number == 0:
                            output.copy_from(np.zeros(bins, dtype=np.uint32))
                            primitives[name].execute(**given)
                            if not np.array_equal(output.to_numpy(), expected):
                                raise SystemExit(f"{bins} bins, {kind}, {name}: the counts differ from numpy's")
                        measured = gw.measure(primitives[name], protocol=protocol, check=False, **given)
                        times[name].append(statistics.median(samples_ns([measured])[0]))
                for name, taken in times.items():
                    ns = statistics.median(taken)
                    base = (
                        uniform_ns.setdefault((bins, name), ns) if kind == "uniform" else uniform_ns.get((bins, name))
                    )
                    relative = None if base is None else ns / base
                    rows.append({"n": n, "bins": bins, "data": kind, "variant": name, "rounds_ns": taken,
                                 "median_ns": ns, "relative_to_uniform": relative})  # fmt: skip
                    shown = "" if relative is None else f"{relative:8.3f}"
                    click.echo(f"{bins:6} {kind:8} {name:26} {ns / 1e3:10.1f} {4 * n / ns:7.0f} {shown}")
                    primitives[name].release()
                if json_path is not None:
                    write_json(json_path, {**run_context(device), "rounds": rounds, "results": rows})
            array.destroy()


if __name__ == "__main__":
    main()
