"""Is the instrument any good? Its own numbers, on one device, in under two minutes.

Usage: python benchmarks/instrument_check.py [--small]

Shows what `gridwise calibrate` finds; cold against hot at two sizes for vector add, reduce and scan, twice, with the
difference between the two runs; GPU span over CPU wall of batches of over 50 ms; and how long `measure()` itself takes
for 200 samples of a kernel of about 10 µs.
"""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.bench.calibrate.calibration import calibrate
from gridwise_py.cli.calibrate import _show

WANTED_BATCH_NS = 70e6
PRIMITIVES = ("vector_add", "reduce", "scan")


def made(device: wgpu.GPUDevice, name: str, a: gw.Array, b: gw.Array) -> tuple[gw.Primitive, dict[str, gw.Array]]:
    """Return a primitive and its inputs."""
    if name == "vector_add":
        return gw.VectorAdd(device, "u32"), {"a": a, "b": b}
    return (gw.Reduce if name == "reduce" else gw.Scan)(device, "u32"), {"input": a}


def described(m: gw.Measurement) -> str:
    """Return a line about a measurement."""
    span = m.whole["gpu_span"].summary
    notes = [m.stop_reason.value, *(["CLOCK MOVED"] if m.clock_moved else []), *([] if m.correct else ["WRONG"])]
    return (
        f"{span.median_ns * 1e-3:10.2f} µs {m.gbytes_per_s:8.0f} GB/s  {span.uncertainty_text():>9}"
        f"  {span.count:5d} samples  {', '.join(notes)}"
    )


def cost_of_measuring(device: wgpu.GPUDevice, n: int) -> None:
    """Print how long measure() takes for 200 samples of a short kernel."""
    x = np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32)
    a, b = gw.asarray(x, device), gw.asarray(x[::-1].copy(), device)
    print(f"\nThe cost of being measured: 200 samples of vector_add, n = {n:,}")
    for words in ("first call (compiles, checks the unit of the tick)", "second call", "third call"):
        begin = time.perf_counter()
        m = gw.measure(gw.VectorAdd(device, "u32"), protocol=gw.SamplingProtocol(samples=200), a=a, b=b)
        took = time.perf_counter() - begin
        print(
            f"  {took:.3f} s: {words}; warm-up {m.protocol['warmup_measured_s']:.3f} s, "
            f"sampling {m.protocol['sampling_measured_s']:.3f} s, {described(m)}"
        )


def cold_and_hot(device: wgpu.GPUDevice, sizes: tuple[int, ...]) -> None:
    """Print medians of two runs in both modes."""
    rng = np.random.default_rng(0)
    a, b = (gw.asarray(rng.integers(0, 1 << 32, max(sizes), dtype=np.uint32), device) for _ in range(2))
    protocol = gw.SamplingProtocol(timeout_s=1.0)
    for n in sizes:
        first: dict[tuple[str, str], Any] = {}
        for repeat in (1, 2):
            print(f"\nn = {n:,}, run {repeat}")
            for name in PRIMITIVES:
                for mode in ("cold", "hot"):
                    primitive, inputs = made(device, name, a[:n], b[:n])
                    check = repeat == 1 and mode == "hot"
                    m = gw.measure(primitive, mode=mode, protocol=protocol, check=check, **inputs)
                    primitive.release()
                    if repeat == 1:
                        first[name, mode] = m.time_ns
                        difference = ""
                    else:
                        difference = f"  run 2 / run 1 = {m.time_ns / first[name, mode]:.4f}"
                    print(f"  {name:10s} {mode:4s} {described(m)}{difference}")
                    for warning in m.warnings:
                        print(f"      ! {warning}")


def batch_against_wall(device: wgpu.GPUDevice, n: int) -> None:
    """Print GPU span over CPU wall of batches of over 50 ms."""
    x = gw.asarray(np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32), device)
    copy = gw.Copy(device, "u32")
    quick = gw.measure(copy, mode="batch", protocol=gw.SamplingProtocol(samples=5), check=False, input=x)
    trials = max(1, int(WANTED_BATCH_NS / quick.time_ns))
    protocol = gw.SamplingProtocol(samples=10, batch_trials=trials)
    m = gw.measure(copy, mode="batch", protocol=protocol, input=x)
    trials = m.protocol["batch_trials"]
    spans, walls = np.array(m.whole["gpu_span"].samples_ns), np.array(m.whole["cpu_wall"].samples_ns)
    ratios = spans / walls
    print(
        f"\nbatch of {trials} copies of {n:,} items: span {np.median(spans) * trials * 1e-6:.2f} ms, "
        f"span / wall {ratios.min():.5f} to {ratios.max():.5f}, median {np.median(ratios):.5f}"
    )


@click.command()
@click.option("--small", is_flag=True, help="Small arrays, for a software adapter.")
@click.option("--adapter", help="Index or name.")
def main(small: bool, adapter: str | None) -> None:
    """Print what the instrument says of itself."""
    start = time.perf_counter()
    device = gw.request_device(adapter)
    cost_of_measuring(device, 1 << 12 if small else 1 << 21)
    begin = time.perf_counter()
    found = calibrate(device, refresh=True)
    print(f"\ncalibrate took {time.perf_counter() - begin:.2f} s")
    _show(found)
    batch_against_wall(device, 1 << 16 if small else 1 << 24)
    cold_and_hot(device, (1 << 12, 1 << 16) if small else (1 << 20, 1 << 28))
    print(f"\n{time.perf_counter() - start:.1f} s in all")


if __name__ == "__main__":
    main()
