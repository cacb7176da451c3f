"""Merge, in several forms, beside CUB's DeviceMerge::MergeKeys on the same GPU: same data, in turns, in one run.

Usage: python benchmarks/merge_peer.py [--n 2^20,2^24,2^28] [--shapes "256x3 128x4"] [--cub PROGRAM] [--json FILE]

Two sorted halves of random u32. PROGRAM is built from benchmarks/peers/cub_stream_peer.cu; without it there are our
forms only. Times are medians of GPU spans: ours from the first timestamp to the last of a single call, and of its two
kernels by themselves; CUB's between two CUDA events. From 2^26 items on that is the same; below, a launch from the
host lies between CUB's events. `ratio` is CUB's time over ours. GB/s counts 8 bytes per item. Every form must give
numpy's result.

Forms, besides the library's; each changes one thing:

bisect      the partition's binary searches begin in the middle, not near where the path is likely to be
WxV         another shape: W invocations, each with 4 V keys
staged      keys are merged in workgroup memory (merge.wgsl), as those of floats and with values are
staged WxV  the same in another shape, each invocation with 4 V - 1 keys

Measured on an H200 at 2^28, where the bytes take 505 µs and CUB took 629: the library 664 (540 to 620 were predicted),
staged 833. Two other forms of `staged` are gone: parts of tiles read from the beginning of a line of the cache on took
5 % more (942 against 896, with 256x4), stores of four items at once the same.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np
from peers.cub_server import CubServer, PeerError

import gridwise_py as gw
from gridwise_py.bench.cases.case import warm_up
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json


class Bisect(gw.Merge):
    """The partition probes the middle of what is left."""

    @staticmethod
    def _step(n: int) -> int:
        return 0


class Staged(gw.Merge):
    """Keys are merged in workgroup memory, as those of floats and with values are."""

    _in_registers = False


FORMS: dict[str, type[gw.Merge]] = {"library": gw.Merge, "bisect": Bisect, "staged": Staged}


class Side:
    """A form of ours with its arguments bound."""

    def __init__(self, primitive: gw.Merge, arrays: dict[str, gw.Array]):
        self._primitive = primitive
        self.run = primitive.execute(**arrays)
        self.call_ns: list[float] = []
        self.kernels_ns: dict[str, list[float]] = {}

    def measure(self, warmup_s: float, samples: int) -> None:
        """Note the times of some single calls."""
        warm_up(self._primitive.bind(), warmup_s)
        for _ in range(samples):
            timing = self._primitive.execute(enable_gpu_timing=True).get_timing_result()
            if timing.gpu_span_ns is None:
                raise SystemExit("no valid timestamps; take a larger --n")
            self.call_ns.append(timing.gpu_span_ns)
            for label, kernel_ns in zip(timing.labels, timing.gpu_total_time_ns or (), strict=False):
                if kernel_ns is not None:
                    self.kernels_ns.setdefault(label, []).append(kernel_ns)


class Cub:
    """CUB's time and checksum of the same halves."""

    def __init__(self, program: Path, folder: Path, halves: dict[str, np.ndarray]):
        self._server = CubServer(program, folder)
        for name, items in halves.items():
            self._server.load(name, items)
        words = [f"{name}={name}" for name in halves]
        n = sum(items.size for items in halves.values())
        self.answer = self._server.ask("case", "merge", "u32", n, *words)
        self.call_ns: list[float] = []

    def measure(self, warmup_s: float, samples: int) -> None:
        """Note the times of some single calls."""
        self.call_ns += self._server.ask("time", warmup_s, samples, 0)["single_ns"]

    def close(self) -> None:
        """End the program."""
        self._server.close()


def halves_of(n: int) -> dict[str, np.ndarray]:
    """Return two sorted halves of random words."""
    rng = np.random.default_rng(n)
    halves = {name: rng.integers(0, 2**32, n // 2, dtype=np.uint32) for name in "ab"}
    for items in halves.values():
        items.sort()
    return halves


def primitives_of(device: Any, shapes: str, staged_shapes: str) -> dict[str, gw.Merge]:
    """Return the forms by name."""
    found = {name: cls(device, "u32") for name, cls in FORMS.items()}
    chosen = [(shape, gw.Merge, shape) for shape in shapes.split()]
    chosen += [(f"staged {shape}", Staged, shape) for shape in staged_shapes.split()]
    for name, cls, shape in chosen:
        size, _, vecs = shape.partition("x")
        tuning = gw.ElementwiseTuning(workgroup_size=int(size), vecs=int(vecs))
        try:
            found[name] = cls(device, "u32", tuning=tuning)
        except gw.ArgumentError as error:
            click.echo(f"{name}: not here: {error}")
    return found


@click.command()
@click.option("--n", "counts", type=AxisList("n"), default="2^20,2^24,2^28", show_default=True, help="Items in all.")
@click.option("--shapes", default="128x4 128x16 256x4 256x8 512x8", show_default=True)
@click.option("--staged-shapes", default="128x2 256x2 256x4", show_default=True)
@click.option("--cub", type=click.Path(path_type=Path), help="The built cub_stream_peer.")
@click.option("--rounds", default=4, show_default=True)
@click.option("--samples", default=8, show_default=True, help="Of each side and round.")
@click.option("--warmup-s", default=0.02, show_default=True, help="Before each measurement.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    counts: list[int], shapes: str, staged_shapes: str, cub: Path | None, rounds: int, samples: int, warmup_s: float,
    adapter: str | None, json_path: Path | None,
) -> None:  # fmt: skip
    """Measure, check and print."""
    device = gw.request_device(adapter)
    rows: list[dict[str, Any]] = []
    context = run_context(device)
    click.echo(f"{gw.capabilities(device).adapter}, u32, medians of {rounds} rounds")
    for n in counts:
        halves = halves_of(n)
        # numpy's stable sort of two runs is a merge.
        wanted = np.sort(np.concatenate(list(halves.values())), kind="stable")
        arrays = {name: gw.asarray(items, device) for name, items in halves.items()}
        arrays["output"] = gw.empty(wanted.size, "u32", device)
        sides: dict[str, Side | Cub] = {}
        right: dict[str, bool] = {}
        for name, primitive in primitives_of(device, shapes, staged_shapes).items():
            arrays["output"].fill(0)
            sides[name] = side = Side(primitive, arrays)
            right[name] = np.array_equal(side.run.output.to_numpy(), wanted)
        with tempfile.TemporaryDirectory() as folder:
            peer: Cub | None = None
            if cub is not None:
                try:
                    sides["CUB"] = peer = Cub(cub, Path(folder), halves)
                except PeerError as error:
                    click.echo(f"CUB: not here: {error}")
            rng = np.random.default_rng(n)
            for _ in range(rounds):
                for name in map(str, rng.permutation(list(sides))):
                    try:
                        sides[name].measure(warmup_s, samples)
                    except PeerError as error:
                        click.echo(f"{name}: ended: {error}")
                        del sides[name]
            if peer is not None:
                peer.close()
        cub_ns = statistics.median(peer.call_ns) if peer is not None and peer.call_ns else None
        click.echo(f"{n:,}")
        for name, side in sides.items():
            time_ns = statistics.median(side.call_ns)
            kernels = (
                {key: statistics.median(times) for key, times in side.kernels_ns.items()}
                if isinstance(side, Side)
                else {}
            )
            parts = ", ".join(f"{key} {kernel_ns / 1e3:.1f}" for key, kernel_ns in kernels.items())
            ratio = "" if cub_ns is None else f"{cub_ns / time_ns:6.2f}"
            wrong = "" if right.get(name, True) else "  WRONG"
            click.echo(f"  {name:16}{time_ns / 1e3:10.1f} µs {8 * n / time_ns:7.0f} GB/s {ratio}  {parts}{wrong}")
            rows.append(
                {
                    "n": n, "side": name, "time_ns": time_ns, "call_ns": side.call_ns, "kernels_ns": kernels,
                    "ratio": None if cub_ns is None else cub_ns / time_ns, "right": right.get(name),
                    "parameters": dict(side.run.plan.parameters) if isinstance(side, Side) else side.answer,
                }
            )  # fmt: skip
        for array in arrays.values():
            array.destroy()
        if json_path is not None:  # after each n, so that a run that is cut off leaves what it has
            write_json(json_path, {**context, "results": rows})
    if not all(right_or_peer is not False for right_or_peer in (row["right"] for row in rows)):
        raise SystemExit(4)


if __name__ == "__main__":
    main()
