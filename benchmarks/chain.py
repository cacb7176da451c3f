"""Select, sort, reduce by key: with counts that stay on the GPU, and with counts that are read.

Usage: python benchmarks/chain.py [--sizes 2^16,2^20,2^24,2^26] [--rounds 9] [--json FILE]

Half of n keys are selected, sorted, and summed by key; a key occurs four times on average.

counted   one encoder and one submission; each primitive gets its count from the one before, on the GPU
queued    the same calls, each submitted at once, so that the GPU begins while the next call is recorded
captured  the same calls, captured once by `gw.capture` and executed again, which only works without a readback
trimmed   `trim()` reads the count after the selection, and again after the sums: grids are as small as the data, but
          the host waits twice

`wall` is from the first call to an idle queue, and `calls` until everything is submitted: medians over the rounds, in
which both ways take turns. `GPU` is the sum of the three spans on the GPU, calls alone: what grids for the capacity
cost. The results of both are compared with numpy's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.backend.queues import wait_idle
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json

WAYS = ("counted", "queued", "captured", "trimmed")
_PER_KEY = 4
#: Before each call that is timed, however long the warm-up: by then the memory of a turn is that of the turn before.
_LEAST_CALLS = 20


class Chain:
    """The three primitives, for one way; each way has its own, so that none allocates between calls.

    Parameters
    ----------
    device : wgpu.GPUDevice
    keys : Array
        Of u32.
    bound : int
        Keys below it are selected.
    """

    def __init__(self, device: Any, keys: gw.Array, bound: int):
        self.device, self._keys = device, keys
        x = gw.u32("x")
        self._select = gw.Select(device, x, where=x < bound)
        self._sort = gw.Sort(device, "u32")
        self._sums = gw.ReduceByKey(device, "u32", "u32", gw.Add)
        self._captured: tuple[gw.Sequence, tuple[gw.Array, gw.Array]] | None = None

    def counted(self) -> tuple[gw.Array, gw.Array]:
        """Record all on one encoder, and submit; nothing is read."""
        encoder = self.device.create_command_encoder()
        selected = self._select.execute(encoder=encoder, x=self._keys).output
        ordered = self._sort.execute(encoder=encoder, input=selected).output
        outputs = self._sums.execute(encoder=encoder, keys=ordered, items=ordered).outputs
        self.device.queue.submit([encoder.finish()])
        return outputs["output_keys"], outputs["output_values"]

    def queued(self) -> tuple[gw.Array, gw.Array]:
        """Submit each call by itself; nothing is read."""
        selected = self._select.execute(x=self._keys).output
        ordered = self._sort.execute(input=selected).output
        outputs = self._sums.execute(keys=ordered, items=ordered).outputs
        return outputs["output_keys"], outputs["output_values"]

    def captured(self) -> tuple[gw.Array, gw.Array]:
        """Execute again what the first call captured."""
        if self._captured is None:
            with gw.capture(self.device) as frame:
                found = self.queued()
            self._captured = frame, found
        frame, found = self._captured
        frame.execute()
        return found

    def trimmed(self) -> tuple[gw.Array, gw.Array]:
        """Read each count before the next primitive is called."""
        selected = self._select.execute(x=self._keys).output.trim()
        ordered = self._sort.execute(input=selected).output
        outputs = self._sums.execute(keys=ordered, items=ordered).outputs
        found = outputs["output_keys"].trim()
        return found, outputs["output_values"][: found.size]

    def gpu_ns(self) -> float | None:
        """Return the sum of the spans of the three, with the arguments of the last call."""
        total = 0.0
        for primitive in (self._select, self._sort, self._sums):
            span_ns = primitive.execute(enable_gpu_timing=True).get_timing_result().gpu_span_ns
            if span_ns is None:
                return None
            total += span_ns
        return total


def keys_of(n: int) -> tuple[np.ndarray, int]:
    """Return n keys, and the number that half of them are below."""
    bound = max(1, n // (2 * _PER_KEY))
    return np.random.default_rng(n).integers(0, 2 * bound, n, dtype=np.uint32), bound


def expected(keys: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys below `bound`, each once, and each times how often it occurs."""
    counts = np.bincount(keys[keys < bound], minlength=bound)
    found = np.flatnonzero(counts)
    return found.astype(np.uint32), (found * counts[found]).astype(np.uint32)


def timed(call: Callable[[], Any], device: Any) -> tuple[float, float]:
    """Return the times until the call is back, and until the queue is idle."""
    wait_idle(device)
    begin = time.perf_counter_ns()
    call()
    back = time.perf_counter_ns()
    wait_idle(device)
    return back - begin, time.perf_counter_ns() - begin


def measure(device: Any, n: int, rounds: int, warmup_s: float) -> dict[str, Any]:
    """Measure both ways in turns; return the row."""
    host, bound = keys_of(n)
    keys = gw.asarray(host, device)
    chains = {name: Chain(device, keys, bound) for name in WAYS}
    calls = {name: getattr(chain, name) for name, chain in chains.items()}
    wanted = expected(host, bound)
    right: dict[str, bool] = {}
    for name, call in calls.items():
        found = [array.to_numpy() for array in call()]
        right[name] = all(np.array_equal(array, one) for array, one in zip(found, wanted, strict=True))
    walls: dict[str, list[float]] = {name: [] for name in calls}
    hosts: dict[str, list[float]] = {name: [] for name in calls}
    spans: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        for name in list(calls) if number % 2 else list(reversed(calls)):
            end = time.perf_counter() + warmup_s
            done = 0
            while done < _LEAST_CALLS or time.perf_counter() < end:
                timed(calls[name], device)  # as the call that counts, which begins when the host has just waited
                done += 1
            back_ns, wall_ns = timed(calls[name], device)
            hosts[name].append(back_ns)
            walls[name].append(wall_ns)
            span_ns = chains[name].gpu_ns()
            if span_ns is not None:
                spans[name].append(span_ns)
    keys.destroy()
    return {
        "n": n, "selected": int((host < bound).sum()), "correct": right,
        "wall_ns": walls, "call_ns": hosts, "gpu_ns": {name: times or None for name, times in spans.items()},
        "wall": {name: statistics.median(times) for name, times in walls.items()},
        "call": {name: statistics.median(times) for name, times in hosts.items()},
        "gpu": {name: statistics.median(times) if times else None for name, times in spans.items()},
    }  # fmt: skip


@click.command()
@click.option("--sizes", type=AxisList("n"), default="2^16,2^18,2^20,2^22,2^24,2^26", show_default=True)
@click.option("--rounds", default=9, show_default=True)
@click.option("--warmup-s", default=0.1, show_default=True, help="Before each call that is timed.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(sizes: list[int], rounds: int, warmup_s: float, adapter: str | None, json_path: Path | None) -> None:
    """Measure, check and print."""
    device = gw.request_device(adapter)
    click.echo(f"{gw.capabilities(device).adapter}; medians of {rounds}, in µs")
    others = "".join(f"{way:>9}" for way in WAYS[1:])
    head = "".join(f"{text + ': ' + WAYS[0]:>15}{others} |" for text in ("wall", "calls", "GPU"))
    click.echo(f"{'n':>10} |{head} equal")
    rows: list[dict[str, Any]] = []
    for n in sizes:
        with gw.hold_clock(device):
            row = measure(device, n, rounds, warmup_s)
        rows.append(row)
        cells = ""
        for figure in ("wall", "call", "gpu"):
            times = (row[figure][way] for way in WAYS)
            shown = ["–" if ns is None else f"{ns / 1e3:.1f}" for ns in times]
            cells += f"{shown[0]:>15}{''.join(f'{one:>9}' for one in shown[1:])} |"
        wrong = [name for name, right in row["correct"].items() if not right]
        click.echo(f"{n:>10} |{cells} {'NO: ' + ', '.join(wrong) if wrong else 'yes'}")
        if json_path is not None:
            write_json(json_path, {**run_context(device), "rounds": rounds, "results": rows})
    if not all(all(row["correct"].values()) for row in rows):
        raise SystemExit(4)


if __name__ == "__main__":
    main()
