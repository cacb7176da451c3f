"""Expressions of 8 bytes and of several shapes: are they bound by memory, and what do integers as pairs of words cost?

    python benchmarks/wide_arithmetic.py [--items 27] [--json FILE]

Times are the GPU's, medians of 9 turns, by events around the calls. Beside each stands what a maximum of u32 (of calls
that read) or a copy (of calls that write, too) takes for as many bytes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.backend.engine import engine_of
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json

TURNS, CALLS = 9, 5
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "multiply": lambda a, b: a * b, "divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
}  # fmt: skip


def times_ns(device: wgpu.GPUDevice, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median time of each call, in turns; the GPU is busy before."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    begin, end = (gw.Event(device, enable_timing=True) for _ in range(2))
    for turn in range(TURNS + 2):
        for name, call in calls.items():
            call()
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            end.synchronize()
            if turn > 1:
                found[name].append(begin.elapsed_ns(end) / CALLS)
    return {name: statistics.median(times) for name, times in found.items()}


def items_of(dtype: str, n: int, device: wgpu.GPUDevice, seed: int) -> gw.Array:
    """Return an array of a datatype; integers of all magnitudes, without 0."""
    rng, block = np.random.default_rng(seed), min(n, 1 << 22)
    if dtype == "f64":
        part = rng.standard_normal(block)
    else:
        part = (rng.integers(1, 2**62, block) >> rng.integers(0, 60, block)) | 1
    made = gw.empty(n, dtype, device)
    for at in range(0, n, block):
        made[at : at + block].copy_from(part)
    return made


def reductions(device: wgpu.GPUDevice, n: int) -> list[dict[str, Any]]:
    """Time reductions of 8 bytes, each beside the maximum of as many bytes."""
    rows: list[dict[str, Any]] = []
    for dtype in ("i64", "f64"):
        x, y = (items_of(dtype, n, device, seed) for seed in (1, 2))
        words = x.view("u32")
        made = x * y
        found = times_ns(device, {
            "max of u32": lambda words=words: gw.max(words), "sum(x * y)": lambda made=made: gw.sum(made),
            "std(x)": lambda x=x: gw.std(x), "mean(x)": lambda x=x: gw.mean(x),
        })  # fmt: skip
        bound_ns = found.pop("max of u32")
        for name, ns in found.items():
            arrays = 2 if "y" in name else 1
            rows.append(
                {"call": f"{name} of {dtype}", "ns": ns, "bytes": 8 * n * arrays, "bound_ns": bound_ns * arrays}
            )
    return rows


def broadcasts(device: wgpu.GPUDevice, n: int) -> list[dict[str, Any]]:
    """Time expressions of a table, a column and a row of f32, each beside a copy."""
    rows: list[dict[str, Any]] = []
    side = 1 << (n.bit_length() // 2)
    for columns in (side, side - 1):
        x = gw.asarray(np.random.default_rng(0).random((side, columns), np.float32), device)
        m, row, out = gw.mean(x, 1, keepdims=True), x[0], gw.empty(x.shape, "f32", device)
        made = {"x - column": x - m, "x - row": x - row, "(x - column) * row": (x - m) * row}
        copy = gw.Copy(device, "f32")
        calls: dict[str, Callable[[], Any]] = {
            "copy": lambda copy=copy, out=out, x=x: copy.execute(input=x, output=out),
            "out.copy_from(x)": lambda out=out, x=x: out.copy_from(x),
        }
        for name, each in made.items():
            primitive = gw.Map(device, each)
            calls[name] = lambda primitive=primitive, out=out: primitive.execute(output=out)
        found = times_ns(device, calls)
        bound_ns = found.pop("copy")
        for name, ns in found.items():
            call = f"{name}, {side} x {columns} f32"
            rows.append({"call": call, "ns": ns, "bytes": 2 * x.nbytes, "bound_ns": bound_ns})
    return rows


def pairs_of_words(device: wgpu.GPUDevice, n: int) -> list[dict[str, Any]]:
    """Time operations of i64 as pairs of words, beside native ones."""
    bare = engine_of(device).request_device(device.adapter, "pairs of words", ["timestamp-query"], {})
    times: dict[str, list[float]] = {name: [] for name in _OPERATIONS}
    for each in (device, bare):
        a, b, out = items_of("i64", n, each, 1), items_of("i64", n, each, 2), gw.empty(n, "i64", each)
        calls: dict[str, Callable[[], Any]] = {}
        for name, operation in _OPERATIONS.items():
            primitive = gw.Map(each, operation(gw.i64("x"), gw.i64("y")))
            calls[name] = lambda primitive=primitive, a=a, b=b, out=out: primitive.execute(x=a, y=b, output=out)
        for name, ns in times_ns(each, calls).items():
            times[name].append(ns)
    return [
        {"call": f"{name} of i64 in pairs of words", "ns": pairs, "bytes": 24 * n, "bound_ns": native}
        for name, (native, pairs) in times.items()
    ]


@click.command()
@click.option("--items", default=27, show_default=True, help="Power of two of the items of each array.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(items: int, json_path: Path | None) -> None:
    """Print a table."""
    device, n = gw.default_device(), 1 << items
    print(f"{device.adapter.info['device']}, 2^{items} items")
    rows = [*reductions(device, n), *broadcasts(device, n), *pairs_of_words(device, min(n, 1 << 26))]
    for row in rows:
        print(f"{row['call']:38} {row['ns'] / 1e3:10.1f} µs {row['bytes'] / row['ns']:8.1f} GB/s, "
              f"{row['ns'] / row['bound_ns']:.2f} of what stands beside it")  # fmt: skip
    if json_path is not None:
        write_json(json_path, {**run_context(device), "items": n, "turns": TURNS, "results": rows})


if __name__ == "__main__":
    main()
