"""The k largest items, beside torch.topk, and beside a reduction that reads the same bytes.

Usage: python benchmarks/top_k_peer.py [--n 2^28] [--k 100] [--rounds 3] [--peers torch] [--json FILE]

u32 here and int32 in PyTorch, which has no u32 (items are below 2³¹):

uniform      random items
ascending    the k largest lie together, at the end
all equal    of equal items the first ones are to be chosen
adversarial  the k largest lie at places that agree modulo 8,192 times 256: the delegates of as few parts as possible

All sides take turns, round after round; the figure is the median of the rounds. Ours are dispatches in one pass
between two timestamps; PyTorch's are calls between two CUDA events. Both sort the results and find their indices. The
values of every side must equal numpy's, and our indices those of a stable sort, too. `of reduce` is the time over that
of our reduction to the maximum. With --shapes our kernel is tried in other shapes, too. CUB's DeviceTopK, where CUB has
it, is in benchmarks/peers/stream_peer.py --cases "top".

Prediction for an H200 at 2^28 and k = 100: the bytes take 241 µs, and the kernels behind the delegates some 25 µs: 1.10
times the reduction for uniform items, and at most 1.2 times for the others.
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
KINDS = ("uniform", "ascending", "all equal", "adversarial")
SHAPES = ((256, 4), (256, 16), (512, 4), (512, 8), (128, 16))


def data(kind: str, n: int) -> np.ndarray:
    """Return items below 2³¹."""
    if kind == "uniform":
        return np.random.default_rng(n).integers(0, 1 << 31, n, dtype=np.uint32)
    if kind == "all equal":
        return np.full(n, 5, dtype=np.uint32)
    ascending = np.arange(n, dtype=np.uint32)
    return ascending if kind == "ascending" else np.where(ascending % (1 << 21) < 8, ascending, 3).astype(np.uint32)


def wanted(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest and their indices, of equal ones the first."""
    least = np.partition(x, x.size - k)[x.size - k]
    above = np.flatnonzero(x > least)
    places = np.concatenate([above, np.flatnonzero(x == least)[: k - above.size]])
    places = places[np.argsort(~x[places], kind="stable")]
    return x[places], places


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
        self._torch = importlib.import_module("torch")
        if not self._torch.cuda.is_available():
            raise ImportError("PyTorch sees no GPU")
        self.version = self._torch.__version__

    def call(self, x: np.ndarray, k: int) -> Callable[[], Any]:
        """Return a function that finds the k largest."""
        items = self._torch.from_numpy(x.view(np.int32)).cuda()
        return lambda: self._torch.topk(items, k)

    def time_ns(self, call: Callable[[], Any], samples: int) -> float:
        """Return the median time of a call, of several between two events."""
        pairs = []
        for _ in range(samples + 1):
            begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            pairs.append((begin, end))
        self._torch.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) * 1e6 / CALLS for begin, end in pairs[1:])


def peer_of(name: str) -> dict[str, Torch]:
    """Return PyTorch if it is asked for, is installed and sees a GPU."""
    try:
        return {"torch": Torch()} if name == "torch" else {}
    except Exception as error:
        click.echo(f"torch: not here: {str(error).splitlines()[0]:.100}")
        return {}


@click.command()
@click.option("--n", "counts", type=AxisList("n"), default="2^28", show_default=True, help="Items.")
@click.option(
    "--k", "ks", type=int, multiple=True, default=[100], show_default=True, help="May be given several times."
)
@click.option("--rounds", default=3, show_default=True)
@click.option("--samples", default=5, show_default=True, help="Of each side and round.")
@click.option("--warmup-s", default=0.02, show_default=True, help="Before each measurement.")
@click.option("--peers", default="torch", show_default=True)
@click.option("--shapes", is_flag=True, help="Our kernel in other shapes, too.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    counts: list[int], ks: tuple[int, ...], rounds: int, samples: int, warmup_s: float, peers: str, shapes: bool,
    adapter: str | None, json_path: Path | None,
) -> None:  # fmt: skip
    """Measure, check and print."""
    device = gw.request_device(adapter)
    libraries = peer_of(peers)
    click.echo(f"{gw.capabilities(device).adapter}, u32, median of {rounds} rounds")
    rows: list[dict[str, Any]] = []
    context, versions = run_context(device), {side: library.version for side, library in libraries.items()}
    for n in counts:
        for kind in KINDS:
            x = data(kind, n)
            items = gw.asarray(x, device)
            for k in (each for each in ks if each <= n):
                values, places = wanted(x, k)
                primitives: dict[str, gw.Primitive] = {
                    "reduce": gw.Reduce(device, "u32", gw.Max),
                    "gridwise": gw.TopK(device, "u32", k),
                }
                for size, vecs in SHAPES if shapes else ():
                    tuning = gw.ElementwiseTuning(workgroup_size=size, vecs=vecs)
                    primitives[f"{size} x {vecs}"] = gw.TopK(device, "u32", k, tuning=tuning)
                calls = {side: library.call(x, k) for side, library in libraries.items()}
                right: dict[str, bool] = {}
                for side, primitive in primitives.items():
                    outputs = primitive.execute(input=items).outputs
                    if side == "reduce":
                        right[side] = outputs["output"].to_numpy()[0] == values[:1].max(initial=0)
                        continue
                    found = outputs["values"].to_numpy(), outputs["indices"].to_numpy()
                    right[side] = np.array_equal(found[0], values) and np.array_equal(found[1], places)
                right |= {side: np.array_equal(call()[0].cpu().numpy(), values) for side, call in calls.items()}
                times: dict[str, list[float]] = {side: [] for side in (*primitives, *libraries)}
                for _ in range(rounds):
                    for side, primitive in primitives.items():
                        times[side].append(timed_ns(primitive, {"input": items}, warmup_s, samples))
                    for side, library in libraries.items():
                        times[side].append(library.time_ns(calls[side], samples))
                own_ns, reduce_ns = (statistics.median(times[side]) for side in ("gridwise", "reduce"))
                click.echo(f"{n:,} {kind}, k = {k:,}")
                for side, rounds_ns in times.items():
                    time_ns = statistics.median(rounds_ns)
                    click.echo(
                        f"  {side:10}{time_ns / 1e3:12.1f} µs {time_ns / own_ns:8.2f} of ours "
                        f"{time_ns / reduce_ns:6.2f} of reduce{'' if right[side] else '  WRONG'}"
                    )
                    rows.append(
                        {
                            "n": n, "k": k, "items": kind, "side": side, "right": bool(right[side]),
                            "time_ns": time_ns, "rounds_ns": rounds_ns, "of_gridwise": time_ns / own_ns,
                            "of_reduce": time_ns / reduce_ns,
                        }
                    )  # fmt: skip
                one_call = primitives["gridwise"].execute(input=items, enable_gpu_timing=True).get_timing_result()
                click.echo(f"  one call: {one_call!r}")
                if json_path is not None:  # after each case, so that a run that is cut off leaves what it has
                    write_json(json_path, {**context, "peers": versions, "results": rows})
    if not all(row["right"] for row in rows):
        raise SystemExit(4)


if __name__ == "__main__":
    main()
