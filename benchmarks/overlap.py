"""How much sooner do independent calls of a sequence end, side by side, than one after the other?

Usage: python benchmarks/overlap.py [--json FILE]

Each case is captured in four ways: as the library does; by level but in one pass, so that each dispatch that waits has
a barrier of its own; in the order of the calls, with the scratch memory that calls of one plan share; and each call by
itself, with a pass of its own. They take turns. Times are those between two events around many replays, by replay.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.runtime import sequence as captures
from gridwise_py.storage.json_files import write_json

Case = list[Callable[[], Any]]


def cases(device: wgpu.GPUDevice, n: int) -> dict[str, Case]:
    """Return what is captured, by name."""
    rng = np.random.default_rng(0)
    columns = [gw.asarray(rng.integers(0, 1 << 32, n, dtype=np.uint32), device) for _ in range(8)]
    scan = gw.Scan(device, strategy="reduce_then_scan")
    reduce, look_back = gw.Reduce(device), gw.Scan(device)

    def each(call: Callable[[gw.Array], Any], count: int) -> Case:
        return [lambda column=column: call(column) for column in columns[:count]]

    return {
        "1 reduction": each(lambda c: reduce.execute(input=c), 1),
        "4 reductions": each(lambda c: reduce.execute(input=c), 4),
        "8 reductions": each(lambda c: reduce.execute(input=c), 8),
        "4 scans": each(lambda c: look_back.execute(input=c), 4),
        "4 scans, reduce then scan": each(lambda c: scan.execute(input=c), 4),
        "4 sums of scans": each(lambda c: gw.sum(gw.cumsum(c)), 4),
        "2 sorts": each(gw.sort, 2),
        "4 sorts": each(gw.sort, 4),
    }


@contextmanager
def ordered(how: str) -> Any:
    """Have captures keep an order of another kind."""
    levels, scratch = captures.in_levels, captures._with_own_scratch
    if how == "one pass":
        captures.in_levels = lambda *given: [i for i in levels(*given) if i is not None]
    elif how == "as called":
        captures.in_levels = lambda uses, _alone: list(range(len(uses)))
        captures._with_own_scratch = lambda calls, _context: [call.bound_plan for call, _ in calls]
    try:
        yield
    finally:
        captures.in_levels, captures._with_own_scratch = levels, scratch


@click.command()
@click.option("--n", "sizes", default="2^16,2^20,2^22", show_default=True, help="Items of each column.")
@click.option("--replays", type=click.IntRange(min=1), default=50, show_default=True, help="Between two events.")
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(sizes: str, replays: int, rounds: int, json_path: Path | None) -> None:
    """Capture, take turns, and tell."""
    device = gw.request_device()
    click.echo(gw.capabilities(device).adapter)
    ways = ("side by side", "one pass", "as called", "one by one")
    rows: list[dict[str, Any]] = []
    for text in sizes.split(","):
        n = eval(text.replace("^", "**"), {})
        for name, calls in cases(device, n).items():
            made: dict[str, list[gw.Sequence]] = {how: [] for how in ways}
            for how in ways:
                for group in [[call] for call in calls] if how == "one by one" else [calls]:
                    with ordered(how), gw.capture(device) as sequence:
                        for call in group:
                            call()
                    made[how].append(sequence)
            taken: dict[str, list[float]] = {how: [] for how in ways}
            for round_number in range(rounds + 1):
                for how in ways:
                    # On one encoder: Python would be slower than the GPU.
                    begin, end, encoder = gw.Event(device), gw.Event(device), device.create_command_encoder()
                    for sequence in made[how]:
                        sequence.execute()
                    begin.record(encoder)
                    for _ in range(replays):
                        for sequence in made[how]:
                            sequence.record(encoder)
                    end.record(encoder)
                    device.queue.submit([encoder.finish()])
                    end.synchronize()
                    if round_number:
                        taken[how].append(begin.elapsed_ns(end) / replays)
            times = {how: median(ns) for how, ns in taken.items()}
            rows.append(
                {
                    "n": n,
                    "case": name,
                    "times_ns": times,
                    "barriers": {how: sum(s.barriers for s in made[how]) for how in ways},
                }
            )
            click.echo(
                f"{text:5} {name:30} "
                + "  ".join(f"{how} {1e-3 * ns:.2f} µs ({rows[-1]['barriers'][how]})" for how, ns in times.items())
                + f"  {times['side by side'] / times['as called']:.2f}"
            )
    if json_path is not None:
        write_json(json_path, {**run_context(device), "replays": replays, "rounds": rounds, "results": rows})
        click.echo(f"wrote {json_path.name}")


if __name__ == "__main__":
    main()
