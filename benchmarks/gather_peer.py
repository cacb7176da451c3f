"""Gathers of random items from arrays of many sizes, beside torch.index_select on the same GPU.

Usage: python benchmarks/gather_peer.py [--n 2^26] [--vectors 2^14,2^20,2^24] [--rounds 3] [--json FILE]

`n` positions, uniform and in no order, of u32 here and int32 in PyTorch, from an array of f32; both write the items
that they find. What streams is 8 bytes an item. Each item that is not in a multiprocessor's cache is a sector of 32
bytes from the L2 cache, or from memory if it is not there either: so the size of the array decides.

All sides take turns, round after round; the figure is the median of the rounds. Ours are dispatches in one pass between
two timestamps; PyTorch's are calls between two CUDA events. Every side must equal numpy.

Seen on an H200 with a program in CUDA and the same kernel in WGSL, 10^8 items that are also multiplied: up to 2^21
words both take the same time (0.73 to 0.81 ms), with 2^22 words CUDA 0.75 and Vulkan 1.49 ms, with 6.25 million 0.85
and 1.70, with 2^24 1.72 and 1.98, with 2^26 2.59 and 2.59. The form of the load makes no difference (read-only, read
and write, atomic, vec4). CUDA's arrays fit into the L2 cache of 50 MB up to some 25 MB; Vulkan's are slow from 8 to
16 MB on, as if they had too many pages for the address translation, which is a guess. No option of the library changes
that.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from search_peer import Torch, peer_of, timed_ns

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json


def gather_of(library: Torch, vector: np.ndarray, columns: np.ndarray) -> Callable[[], Any]:
    """Return a function that gathers with PyTorch."""
    torch = library.module
    x, at = torch.from_numpy(vector).cuda(), torch.from_numpy(columns.view(np.int32)).cuda()
    out = torch.empty(columns.size, dtype=torch.float32, device="cuda")
    return lambda: torch.index_select(x, 0, at, out=out)


@click.command()
@click.option("--n", "count", default="2^26", type=AxisList("n"), show_default=True, help="Items to gather.")
@click.option(
    "--vectors", type=AxisList("n"), default="2^14,2^16,2^18,2^20,2^21,2^22,2^23,2^24,2^26", show_default=True,
    help="Items of the array.",
)  # fmt: skip
@click.option("--rounds", default=3, show_default=True)
@click.option("--samples", default=5, show_default=True, help="Of each side and round.")
@click.option("--warmup-s", default=0.02, show_default=True, help="Before each measurement.")
@click.option("--peers", default="torch", show_default=True)
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    count: list[int], vectors: list[int], rounds: int, samples: int, warmup_s: float, peers: str, adapter: str | None,
    json_path: Path | None,
) -> None:  # fmt: skip
    """Measure, check and print."""
    device = gw.request_device(adapter)
    libraries = peer_of(peers)
    (n,) = count
    click.echo(f"{gw.capabilities(device).adapter}, {n:,} items, median of {rounds} rounds")
    rows: list[dict[str, Any]] = []
    for size in vectors:
        rng = np.random.default_rng(size)
        vector, columns = rng.random(size, dtype=np.float32), rng.integers(0, size, n, dtype=np.uint32)
        wanted = vector[columns]
        gather = gw.Map(device, gw.gather(gw.asarray(vector, device), gw.asarray(columns, device)))
        run = gather.execute()
        calls = {side: gather_of(library, vector, columns) for side, library in libraries.items()}
        right = {"gridwise": np.array_equal(run.output.to_numpy(), wanted)}
        right |= {side: np.array_equal(call().cpu().numpy(), wanted) for side, call in calls.items()}
        times: dict[str, list[float]] = {side: [] for side in ("gridwise", *libraries)}
        for _ in range(rounds):
            times["gridwise"].append(timed_ns(gather, {"output": run.output}, warmup_s, samples))
            for side, library in libraries.items():
                times[side].append(library.time_ns(calls[side], samples))
        own_ns = statistics.median(times["gridwise"])
        for side, rounds_ns in times.items():
            time_ns = statistics.median(rounds_ns)
            click.echo(
                f"{size:12,} words {4 * size / 2**20:9.2f} MiB  {side:10}{time_ns / 1e3:10.1f} µs "
                f"{n / time_ns:7.1f} G/s {time_ns / own_ns:6.2f}{'' if right[side] else '  WRONG'}"
            )
            rows.append(
                {
                    "n": n, "vector_items": size, "side": side, "right": right[side], "time_ns": time_ns,
                    "rounds_ns": rounds_ns, "of_gridwise": time_ns / own_ns,
                }
            )  # fmt: skip
    if json_path is not None:
        versions = {side: library.version for side, library in libraries.items()}
        write_json(json_path, {**run_context(device), "peers": versions, "results": rows})
    if not all(row["right"] for row in rows):
        raise SystemExit(4)


if __name__ == "__main__":
    main()
