"""Arithmetic in 8 bytes: sums of products beside a maximum of words, integers as pairs of words beside native ones."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import click
import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.backend.engine import engine_of

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
}


def seconds_of(primitive: gw.Primitive, **arrays: gw.Array) -> float:
    """Return the median of the GPU's times."""
    call = primitive.bind(**arrays)
    call.execute(trials=5)
    runs = [call.execute(enable_gpu_timing=True).get_timing_result() for _ in range(15)]
    return 1e-9 * statistics.median(sum(time or 0.0 for time in run.gpu_total_time_ns or []) for run in runs)


def inputs(dtype: str, n: int, device: wgpu.GPUDevice) -> tuple[gw.Array, gw.Array]:
    """Return two arrays of a datatype; integers of all magnitudes, without 0."""
    rng = np.random.default_rng(1)
    block = min(n, 1 << 22)
    if dtype == "f64":
        parts = rng.standard_normal((2, block))
    else:
        parts = (rng.integers(1, 2**62, (2, block)) >> rng.integers(0, 60, (2, block))) | 1
    return tuple(gw.asarray(np.tile(part, n // block), device) for part in parts)  # pyright: ignore[reportReturnType]


@click.command()
@click.option("--items", default=27, help="Power of two of the items of each array.")
def main(items: int) -> None:
    """Print a table."""
    device, n = gw.default_device(), 1 << items
    bare = engine_of(device).request_device(device.adapter, "pairs of words", ["timestamp-query"], {})
    print(f"{device.adapter.info['device']}, 2^{items} items")
    copy_s = 0.0
    for dtype in ("i64", "f64"):
        a, b = inputs(dtype, n, device)
        if not copy_s:
            copy_s = seconds_of(gw.Reduce(device, "u32", "max"), input=a.view("u32"))
        x, y = gw.leaf("x", dtype), gw.leaf("y", dtype)
        found_s = seconds_of(gw.Reduce(device, x * y), x=a, y=b)
        print(f"sum(x * y) of {dtype}: {16e-9 * n / found_s:8.1f} GB/s, {2 * copy_s / found_s:.2f} of a max of u32")
        del a, b
    times: dict[str, list[float]] = {name: [] for name in _OPERATIONS}
    for each in (device, bare):
        a, b = inputs("i64", n, each)
        for name, operation in _OPERATIONS.items():
            primitive = gw.Map(each, operation(gw.i64("x"), gw.i64("y")))
            times[name].append(seconds_of(primitive, x=a, y=b))
        del a, b
    for name, (native_s, pairs_s) in times.items():
        print(f"{name:10} native {24e-9 * n / native_s:8.1f} GB/s, pairs {24e-9 * n / pairs_s:8.1f} GB/s, "
              f"{pairs_s / native_s:.2f} times")  # fmt: skip


if __name__ == "__main__":
    main()
