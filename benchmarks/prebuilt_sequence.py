"""CUDA graphs' counterpart: several primitives in one submission, against separate calls.

Usage: python benchmarks/prebuilt_sequence.py [--json FILE]

The sequence is add, scan, add, reduce, all on the GPU. Five ways, by turns, with an idle queue before each: separate
execute() calls; record() of each on one encoder; bound calls, made beforehand, recorded on one encoder; execute() in a
batch; and a captured sequence. Timed is the CPU alone, up to the end of the last submit, and then with the wait, which
is what the caller sees.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json


def ways(device, n: int) -> dict[str, Callable[[], None]]:
    """Return the five, which leave the same results."""
    rng = np.random.default_rng(0)
    x, y = (gw.asarray(rng.integers(0, 99, n, dtype=np.uint32), device) for _ in range(2))
    a, b, c, total = gw.empty_like(x), gw.empty_like(x), gw.empty_like(x), gw.empty(1, "u32", device)
    steps = [
        (gw.VectorAdd(device), {"a": x, "b": y, "output": a}),
        (gw.Scan(device), {"input": a, "output": b}),
        (gw.VectorAdd(device), {"a": b, "b": x, "output": c}),
        (gw.Reduce(device), {"input": c, "output": total}),
    ]
    bound = [primitive.bind(**arrays) for primitive, arrays in steps]

    def separate() -> None:
        for primitive, arrays in steps:
            primitive.execute(**arrays)

    def recorded() -> None:
        encoder = device.create_command_encoder()
        for primitive, arrays in steps:
            primitive.record(encoder, **arrays)
        device.queue.submit([encoder.finish()])

    def prebuilt() -> None:
        encoder = device.create_command_encoder()
        for call in bound:
            call.record(encoder)
        device.queue.submit([encoder.finish()])

    def in_a_batch() -> None:
        with gw.batch(device):
            separate()

    with gw.capture(device) as sequence:
        separate()

    added = x.to_numpy() + y.to_numpy()
    expected = (np.cumsum(added, dtype=np.uint32) + x.to_numpy()).sum(dtype=np.uint32)
    made = {"separate": separate, "recorded": recorded, "prebuilt": prebuilt, "batch": in_a_batch}
    made["sequence"] = sequence.execute
    for name, run in made.items():
        total.copy_from(np.zeros(1, dtype=np.uint32))
        run()
        if total.to_numpy()[0] != expected:
            raise SystemExit(f"{name}: the result is wrong")
    return made


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--n", default=1 << 12, show_default=True)
@click.option("--rounds", default=300, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter: str | None, n: int, rounds: int, json_path: Path | None) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    made = ways(device, n)
    samples = {name: {"cpu": [], "wall": []} for name in made}
    gc.disable()
    for i in range(rounds + 20):
        for name, run in made.items():
            gw.synchronize(device)
            begin = time.perf_counter_ns()
            run()
            submitted = time.perf_counter_ns()
            gw.synchronize(device)
            if i >= 20:
                samples[name]["cpu"].append(submitted - begin)
                samples[name]["wall"].append(time.perf_counter_ns() - begin)
    gc.enable()
    print(f"{gw.capabilities(device).adapter}; n = {n}; add, scan, add, reduce; medians of {rounds}, µs")
    print(f"{'':12} {'CPU':>8} {'with the wait':>14}")
    rows = []
    for name, times in samples.items():
        row = {"way": name, "n": n, **{f"{part}_ns": statistics.median(values) for part, values in times.items()}}
        rows.append(row)
        print(f"{name:12} {row['cpu_ns'] / 1e3:8.1f} {row['wall_ns'] / 1e3:14.1f}")
    if json_path is not None:
        write_json(json_path, {**run_context(device), "rounds": rounds, "results": rows})


if __name__ == "__main__":
    main()
