"""Fills, casts, gathers and broadcast sums: GPU time and GB/s next to the copy kernel's, and torch's where it is there.

Zeros are cleared by a command without a kernel, which has no timestamps.

Run: python benchmarks/array_kernels.py [--n ITEMS]
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.primitives.broadcast_add import BroadcastAdd
from gridwise_py.primitives.convert import Convert
from gridwise_py.primitives.fill import Arange, Fill
from gridwise_py.primitives.take import Take


def gpu_ms(primitive: gw.Primitive, **arguments: Any) -> float:
    """Return the median GPU time of 20 calls, in ms."""
    bound = primitive.bind(**arguments)
    bound.execute()
    times = [bound.execute(enable_gpu_timing=True).get_timing_result().gpu_span_ns for _ in range(20)]
    return statistics.median(times) / 1e6


def torch_ms(call: Callable[[Any], Any]) -> float | None:
    """Return the median of torch's time of 20 calls, in ms; None without it."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    times: list[float] = []
    for _ in range(22):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call(torch)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[2:])


@click.command()
@click.option("--n", type=int, default=1 << 26, show_default=True, help="Items.")
def main(n: int) -> None:
    """Print the GPU time of each kernel."""
    device = gw.request_device()
    side = 1 << (n.bit_length() // 2)
    rows = n // side
    x = gw.arange(n, dtype="f32", device=device)
    order = gw.asarray(np.random.default_rng(1).permutation(n).astype(np.uint32), device)
    in_order = gw.arange(n, dtype="u32", device=device)
    try:
        import torch

        has_cuda = torch.cuda.is_available()
    except ImportError:
        has_cuda = False
    t = {}
    if has_cuda:
        t = {"x": torch.arange(n, dtype=torch.float32, device="cuda"), "row": torch.ones(side, device="cuda")}
        t["order"] = torch.as_tensor(order.to_numpy().astype(np.int64), device="cuda")
    cases: list[tuple[str, int, gw.Primitive, dict[str, Any], Callable[[Any], Any] | None]] = [
        ("copy f32", 8, gw.Copy(device, "f32"), {"input": x}, lambda _t: t["x"].clone()),
        ("fill f32 1", 4, Fill(device, "f32"), {"output": x, "value": (0x3F800000, 0)}, lambda _t: t["x"].fill_(1)),
        ("fill u8 1", 1, Fill(device, "u8"), {"output": gw.empty(n, "u8", device), "value": (1, 0)}, None),
        ("arange i64", 8, Arange(device, "i64"),
         {"output": gw.empty(n, "i64", device), "start": (0, 0), "step": (1, 0)}, lambda t: t.arange(n, device="cuda")),
        ("f32 to f16", 6, Convert(device, "f32", "f16"), {"input": x}, lambda _t: t["x"].half()),
        ("f32 to i32", 8, Convert(device, "f32", "i32"), {"input": x}, lambda t_: t["x"].to(t_.int32)),
        ("f32 to u8", 5, Convert(device, "f32", "u8"), {"input": x}, lambda t_: t["x"].to(t_.uint8)),
        ("f32 to f64", 12, Convert(device, "f32", "f64"), {"input": x}, lambda _t: t["x"].double()),
        ("take in order", 12, Take(device, "f32", "u32", outer=1, length=n, count=n, inner=1, clip=False),
         {"input": x, "indices": in_order}, None),
        ("take at random", 12, Take(device, "f32", "u32", outer=1, length=n, count=n, inner=1, clip=False),
         {"input": x, "indices": order}, lambda t_: t_.take(t["x"], t["order"])),
        ("add a number", 8, BroadcastAdd(device, "f32", "f32", "f32", a_shape=(n,), b_shape=()),
         {"a": x, "b": gw.ones((), "f32", device)}, lambda _t: t["x"] + 1),
        ("add a row", 8, BroadcastAdd(device, "f32", "f32", "f32", a_shape=(rows, side), b_shape=(side,)),
         {"a": x[: rows * side], "b": gw.ones(side, "f32", device)},
         lambda _t: t["x"][: rows * side].reshape(rows, side) + t["row"]),
    ]  # fmt: skip
    print(f"{device.adapter.info['device']}, n = {n:,}")
    for name, bytes_per_item, primitive, arguments, theirs in cases:
        ours = gpu_ms(primitive, **arguments)
        other = torch_ms(theirs) if has_cuda and theirs is not None else None
        compared = "" if other is None else f", torch {other:.3f} ms"
        print(f"{name:16} {ours:8.3f} ms {bytes_per_item * n / ours / 1e6:8.0f} GB/s{compared}")


if __name__ == "__main__":
    main()
