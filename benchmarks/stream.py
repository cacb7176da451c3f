"""What streaming gains over the serial loop: reduce, scan and vector add over data in chunks.

Usage: python benchmarks/stream.py [--chunk 2^22] [--chunks 16] [--json FILE]

Three ways, by turns: gw.stream as it is; gw.stream(overlap=False), the same without working beside the GPU; and the
loop that one writes first: asarray, execute, to_numpy. Timed is the whole on the CPU's clock, with data that is there
from the start; `--produce` makes each chunk when it is asked for, as a file reader or a simulation would. Results are
checked against numpy.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.storage.json_files import write_json


def parse_count(text: str) -> int:
    """Read 2^22 or a number."""
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(base)


def serial(primitive: gw.Primitive, chunks: Iterator[Any]) -> Any:
    """Do it in the way that one writes first; the carry goes through the host."""
    device = primitive.device
    if isinstance(primitive, gw.Reduce):
        partials = [primitive.execute(input=gw.asarray(c, device)).output.to_numpy()[0] for c in chunks]
        return gw.reduce(np.array(partials), primitive.op, device=device)
    if isinstance(primitive, gw.Scan):
        parts, carry = [], np.uint32(0)
        for chunk in chunks:
            part = primitive.execute(input=gw.asarray(chunk, device)).output.to_numpy() + carry
            carry = part[-1]
            parts.append(part)
        return parts
    parts = []
    for a, b in chunks:
        arrays = {"a": gw.asarray(a, device), "b": gw.asarray(b, device)}
        parts.append(primitive.execute(**arrays).output.to_numpy())
    return parts


def streamed(primitive: gw.Primitive, chunks: Iterator[Any], overlap: bool) -> Any:
    """Do it by gw.stream."""
    result = gw.stream(primitive, chunks, overlap=overlap)
    return result if isinstance(primitive, gw.Reduce) else list(result)


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--chunk", "chunk_text", default="2^22", show_default=True, help="Items in a chunk.")
@click.option("--chunks", "count", default=16, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--produce", is_flag=True, help="Make each chunk when it is asked for (a copy with a bitwise or).")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter: str | None, chunk_text: str, count: int, rounds: int, produce: bool, json_path: Path | None) -> None:
    """Measure and print; a gain over 1 means that streaming is faster."""
    device = gw.request_device(adapter)
    n = parse_count(chunk_text)
    rng = np.random.default_rng(0)
    data = [rng.integers(0, 1 << 32, n, dtype=np.uint32) for _ in range(count)]

    def chunks(pairs: bool) -> Iterator[Any]:
        for values in data:
            made = values | np.uint32(0) if produce else values
            yield (made, values) if pairs else made

    whole = np.concatenate(data)
    cases = {
        "reduce": (gw.Reduce(device, "u32"), lambda r: r == whole.sum(dtype=np.uint32), 1),
        "scan": (gw.Scan(device, "u32"), lambda r: (np.concatenate(r) == np.cumsum(whole, dtype=np.uint32)).all(), 2),
        "vector_add": (gw.VectorAdd(device, "u32"), lambda r: (np.concatenate(r) == whole + whole).all(), 3),
    }
    rows = []
    print(f"{gw.capabilities(device).adapter}; {count} chunks of {n} items ({4 * n / 1e6:.0f} MB); wall, ms, medians")
    print(f"{'':12} {'stream':>9} {'no overlap':>11} {'loop':>9} {'gain over no overlap':>21} {'over the loop':>14}")
    for name, (primitive, right, moved) in cases.items():
        pairs = name == "vector_add"
        ways: dict[str, Callable[[], Any]] = {
            "stream": lambda p=primitive, q=pairs: streamed(p, chunks(q), True),
            "no_overlap": lambda p=primitive, q=pairs: streamed(p, chunks(q), False),
            "loop": lambda p=primitive, q=pairs: serial(p, chunks(q)),
        }
        samples: dict[str, list[float]] = {way: [] for way in ways}
        for i in range(rounds + 1):
            for way, run in ways.items():
                gw.synchronize(device)
                begin = time.perf_counter_ns()
                result = run()
                if i:
                    samples[way].append(time.perf_counter_ns() - begin)
                elif not right(result):
                    raise SystemExit(f"{name}, {way}: the result is wrong")
                del result
        medians = {way: statistics.median(times) for way, times in samples.items()}
        row = {
            "primitive": name, "chunk_items": n, "chunks": count, "samples_ns": samples,
            "host_gbytes_per_s": moved * 4 * n * count / medians["stream"],
            "gain_over_no_overlap": medians["no_overlap"] / medians["stream"],
            "gain_over_loop": medians["loop"] / medians["stream"],
        }  # fmt: skip
        rows.append(row)
        ms = {way: value / 1e6 for way, value in medians.items()}
        print(
            f"{name:12} {ms['stream']:9.1f} {ms['no_overlap']:11.1f} {ms['loop']:9.1f} "
            f"{row['gain_over_no_overlap']:21.2f} {row['gain_over_loop']:14.2f}",
            flush=True,
        )
    if json_path is not None:
        write_json(json_path, {**run_context(device), "rounds": rounds, "produce": produce, "results": rows})


if __name__ == "__main__":
    main()
