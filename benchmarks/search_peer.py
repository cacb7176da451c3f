"""Searches in sorted keys, beside torch.searchsorted, with and without samples of the keys.

Usage: python benchmarks/search_peer.py [--n 2^20,2^24] [--rounds 5] [--peers torch] [--json FILE]

As many queries as keys, u32 here and int32 in PyTorch, which has no u32 (keys are below 2³¹):

random   uniform queries in uniform keys
sorted   the same queries, sorted
index    0, 1, 2, … as an expression that is not stored, in keys from 0 to n: a row pointer; PyTorch stores them

All sides take turns, round after round; the figure is the median of the rounds. Ours are dispatches in one pass between
two timestamps, the pass that takes samples included; PyTorch's are calls between two CUDA events. `binary` is our
search without samples. Every side must equal numpy.

Predictions for an H200 at 2^24: a multiprocessor looks up one line of its L1 cache in a clock, so 13 reads of a query
behind the table take 0.97 ms, and the 7 with samples 0.52; the keys come from DRAM in 0.25 ms besides. CUB's
lower_bound took 1,775 µs. Sorted queries: 8 bytes of queries and indices and 4 to 5 of keys, 50 µs, or three times as
much if the steps are what counts.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json

CALLS = 10  # between two events
KINDS = ("random", "sorted", "index")


def data(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return keys and queries."""
    rng = np.random.default_rng(n)
    keys = np.sort(rng.integers(0, n if kind == "index" else 1 << 31, n).astype(np.uint32))
    if kind == "index":
        return keys, np.arange(n, dtype=np.uint32)
    queries = rng.integers(0, 1 << 31, n).astype(np.uint32)
    return keys, np.sort(queries) if kind == "sorted" else queries


class WithoutSamples(gw.Search):
    """A search that reads nothing but the keys."""

    def _levels(self, keys: int, queries: int, table_keys: int) -> int:
        return 0


def timed_ns(primitive: gw.Primitive, arrays: dict[str, gw.Array], warmup_s: float, samples: int) -> float:
    """Return the median time of a call in a pass of several."""
    protocol = replace(
        gw.SamplingProtocol(), samples=samples, warmup_s=warmup_s, max_warmup_s=2 * warmup_s, canary_passes=1,
        batch_trials=CALLS, check_unit=False,
    )  # fmt: skip
    measured = gw.measure(primitive, mode="batch", protocol=protocol, check=False, **arrays)
    span = measured.whole.get("gpu_span")
    if span is None:
        raise SystemExit(f"{primitive}: no valid timestamps ({'; '.join(measured.warnings)}); take a larger --n")
    return statistics.median(span.samples_ns)


class Torch:
    """PyTorch on the same GPU."""

    def __init__(self) -> None:
        self.module = importlib.import_module("torch")
        if not self.module.cuda.is_available():
            raise ImportError("PyTorch sees no GPU")
        self.version = self.module.__version__

    def call(self, keys: np.ndarray, queries: np.ndarray) -> Callable[[], Any]:
        """Return a function that searches."""
        torch = self.module
        x, q = (torch.from_numpy(items.view(np.int32)).cuda() for items in (keys, queries))
        out = torch.empty(queries.size, dtype=torch.int32, device="cuda")
        return lambda: torch.searchsorted(x, q, out_int32=True, out=out)

    def time_ns(self, call: Callable[[], Any], samples: int) -> float:
        """Return the median time of a call, of several between two events."""
        pairs = []
        for _ in range(samples + 1):
            begin, end = (self.module.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            pairs.append((begin, end))
        self.module.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) * 1e6 / CALLS for begin, end in pairs[1:])


def peer_of(name: str) -> dict[str, Torch]:
    """Return PyTorch if it is asked for, is installed and sees a GPU."""
    try:
        return {"torch": Torch()} if name == "torch" else {}
    except Exception as error:
        click.echo(f"torch: not here: {str(error).splitlines()[0]:.100}")
        return {}


@click.command()
@click.option("--n", "counts", type=AxisList("n"), default="2^20,2^24", show_default=True, help="Keys, and queries.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--samples", default=5, show_default=True, help="Of each side and round.")
@click.option("--warmup-s", default=0.02, show_default=True, help="Before each measurement.")
@click.option("--peers", default="torch", show_default=True)
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    counts: list[int], rounds: int, samples: int, warmup_s: float, peers: str, adapter: str | None,
    json_path: Path | None,
) -> None:  # fmt: skip
    """Measure, check and print."""
    device = gw.request_device(adapter)
    libraries = peer_of(peers)
    click.echo(f"{gw.capabilities(device).adapter}, u32, median of {rounds} rounds")
    rows: list[dict[str, Any]] = []
    for n in counts:
        for kind in KINDS:
            keys, queries = data(kind, n)
            wanted = np.searchsorted(keys, queries)
            arrays = {"sorted": gw.asarray(keys, device), "output": gw.empty(n, "u32", device)}
            options: dict[str, Any] = {"queries": gw.index} if kind == "index" else {}
            if kind != "index":
                arrays["queries"] = gw.asarray(queries, device)
            primitives = {"gridwise": gw.Search(device, **options), "binary": WithoutSamples(device, **options)}
            calls = {side: library.call(keys, queries) for side, library in libraries.items()}
            right: dict[str, bool] = {}
            for side, primitive in primitives.items():
                right[side] = np.array_equal(primitive.execute(**arrays).outputs["output"].to_numpy(), wanted)
            right |= {side: np.array_equal(call().cpu().numpy(), wanted) for side, call in calls.items()}
            times: dict[str, list[float]] = {side: [] for side in (*primitives, *libraries)}
            for _ in range(rounds):
                for side, primitive in primitives.items():
                    times[side].append(timed_ns(primitive, arrays, warmup_s, samples))
                for side, library in libraries.items():
                    times[side].append(library.time_ns(calls[side], samples))
            own_ns = statistics.median(times["gridwise"])
            click.echo(f"{n:,} {kind}")
            for side, rounds_ns in times.items():
                time_ns = statistics.median(rounds_ns)
                click.echo(
                    f"  {side:10}{time_ns / 1e3:12.1f} µs {n / time_ns:8.2f} G/s {time_ns / own_ns:6.2f}"
                    f"{'' if right[side] else '  WRONG'}"
                )
                rows.append(
                    {
                        "n": n, "queries": kind, "side": side, "right": right[side], "time_ns": time_ns,
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
