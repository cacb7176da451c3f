"""Group-by, a table of 10^8 rows, and splat binning beside CUB, polars and pandas: same data, in turns, in one run.

Usage: python benchmarks/peers/chain_peer.py [--rows 2^26] [--groups 10^6] [--table 10^8] [--splats 3e6] [--json FILE]
       python benchmarks/peers/chain_peer.py --ours-only --rows 2^14 --table 10^4 --splats 5000    (any GPU, also a
       software one); 0 leaves a part out

CUDA's side, cub_chain_peer.cu, is built with nvcc where there is one; or give the built program with --cub. That one
needs no toolkit where it runs, only NVIDIA's driver:

    nvcc -O3 -std=c++17 --extended-lambda -arch=sm_90 -o cub_chain_peer benchmarks/peers/cub_chain_peer.cu

group    rows of u32 keys below `--groups` and u32 values: the sum of each key. CUB: SortPairs by 32 bits, as a caller
         has it who does not know the keys, and by the bits that they need; then ReduceByKey. Ours: GroupBy, without
         and with key_bits.
table    examples/group_by.py: sum, mean, largest value and number of rows, 100 rows a key on average. Ours with columns
         and results on the GPU, and with their transfers; polars and pandas on the CPU, PyTorch on the GPU. Tables of
         the others are made before. Those that are not installed have the reason in place of times.
splats   examples/splats.py: the splats of each tile of a picture of 1920 × 1088 pixels, in order of depth. CUDA: as
         the program of the paper does it, with the copy of the number of pairs to the host and keys of 64 bits; and by
         depth first, as ours, with that copy.

`gpu` is from the first timestamp or CUDA event to the last, `wall` on the CPU's clock from an idle GPU to an idle
GPU; for splats and tables wall is the one to compare, because CUDA waits for its number in between. Figures are
medians over the rounds. `kernels` in the file, and --stages, are the times of our kernels, one by one. `ratio` is the
other side's time over ours: above 1, this library is faster. A mark is a ratio that is to be reached. Results of all
sides are compared with numpy's, CUDA's by checksums.

Predictions for an H200: group, 2^26 rows, 10^6 groups of 20 bits: histogram 0.27 GB; 3 digits at 16 bytes a row, 3.2
GB; reduction 0.54 GB; 4.0 GB at 4,250 GB/s are 0.95 ms; passes of pairs reach 0.85 of that, so 1.1 ms. A fourth digit
of CUB is 1.07 GB, 0.28 ms. Table: the same with 10^8 rows and two reductions, 1.9 ms; 0.8 GB of transfers at 10 to 25
GB/s are 32 to 80 ms; polars took 1.3 s and pandas 2.5 s in published figures. Splats: sorting 3·10^6 splats by depth
0.2 GB, 0.1 ms; 10^7 pairs by 13 bits, 2 digits, 0.4 GB, 0.12 ms; some 20 dispatches and copies of counts of 3 to 10 µs;
in all 0.4 to 0.5 ms. CUDA's keys of 45 bits are 6 digits of 24 bytes, 1.4 GB, 0.4 ms, and the wait 20 to 40 µs.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
from cub_server import CubServer, PeerError
from cuda_peers import build_cub, checksum

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WIDTH, HEIGHT = 1920, 1088
#: Of a round of a side without a GPU's clock, of which a call may take seconds.
_ROUND_S = 3.0


def load_example(name: str) -> ModuleType:
    """Return an example as a module."""
    spec = importlib.util.spec_from_file_location(f"{name}_example", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ours:
    """A chain of this library as a captured sequence.

    Parameters
    ----------
    device : wgpu.GPUDevice
    call : callable
        Makes the calls, and returns what `arrays` needs.
    arrays : callable
        Gives the results as arrays of numpy, in the order of CUDA's checksums.
    """

    def __init__(self, device: Any, call: Callable[[], Any], arrays: Callable[[Any], tuple[np.ndarray, ...]]):
        self._device = device
        call()  # compiles
        with gw.capture(device) as self._sequence:
            self._made = call()
        self._arrays = arrays
        self._events = gw.Event(device), gw.Event(device)

    def results(self) -> tuple[np.ndarray, ...]:
        """Return the results of a call."""
        self._sequence.execute()
        return self._arrays(self._made)

    def times(self, warmup_s: float, samples: int) -> dict[str, list[float]]:
        """Return the times of calls."""
        begin = time.perf_counter()
        while time.perf_counter() - begin < warmup_s:
            self._sequence.execute()
            gw.synchronize(self._device)
        gpu: list[float] = []
        wall: list[float] = []
        for _ in range(samples):
            start = time.perf_counter_ns()
            self._sequence.execute()
            gw.synchronize(self._device)
            wall.append(time.perf_counter_ns() - start)
            first, last = self._events
            first.record()
            self._sequence.execute()
            last.record()
            last.synchronize()
            gpu.append(first.elapsed_ns(last))
        return {"gpu_ns": gpu, "wall_ns": wall}

    def kernels(self, samples: int) -> list[dict[str, Any]]:
        """Return the median time of each kernel of a call, in their order; a timestamp at each adds some to a call."""
        taken = [self._sequence.execute(enable_gpu_timing=True).get_timing_result() for _ in range(samples)]
        labels, workgroups = taken[0].labels, taken[0].workgroups or [None] * len(taken[0].labels)
        found: list[dict[str, Any]] = []
        for number, (label, count) in enumerate(zip(labels, workgroups, strict=True)):
            times = [spans[number] for spans in (each.gpu_total_time_ns for each in taken) if spans is not None]
            valid = [time_ns for time_ns in times if time_ns is not None]
            found.append({"kernel": label, "workgroups": count, "ns": statistics.median(valid) if valid else None})
        return found


class Cuda:
    """A chain of CUDA's side."""

    def __init__(self, server: CubServer, *command: object):
        self._server, self._command = server, command
        self.answer = server.ask(*command)

    def times(self, warmup_s: float, samples: int) -> dict[str, list[float]]:
        """Return the times of calls."""
        self._server.ask(*self._command)  # another chain may have been prepared since
        return self._server.ask("time", warmup_s, samples)


class Host:
    """A call of which only the CPU's clock is read.

    Parameters
    ----------
    call : callable
        Returns when its result is there.
    """

    def __init__(self, call: Callable[[], Any]):
        self._call = call
        self.result = call()

    def times(self, warmup_s: float, samples: int) -> dict[str, list[float]]:
        """Return the times of calls: fewer than `samples` if they would take longer than some seconds."""
        wall: list[float] = []
        while len(wall) < samples and sum(wall) < _ROUND_S * 1e9:
            start = time.perf_counter_ns()
            self._call()
            wall.append(time.perf_counter_ns() - start)
        return {"wall_ns": wall}


@dataclass
class Comparison:
    """The sides of one chain.

    Attributes
    ----------
    title : str
    reference : str
        The side of ours that the others are compared with.
    sides : dict
        By name: what has `times`, or why there is none.
    right : dict from str to bool
        Whether the results of a side are numpy's.
    marks : mapping from str to (str, float)
        By side: a clock, and the ratio that is to be reached.
    """

    title: str
    reference: str
    marks: Mapping[str, tuple[str, float]]
    sides: dict[str, Any] = field(default_factory=dict)
    right: dict[str, bool] = field(default_factory=dict)

    def add(self, name: str, side: Any, is_right: bool) -> None:
        """Add a side."""
        self.sides[name], self.right[name] = side, is_right


def group_sides(device: Any, rows: int, groups: int, server: CubServer | str) -> Comparison:
    """Return the sides of the group-by."""
    rng = np.random.default_rng(0)
    keys = rng.integers(0, groups, rows, dtype=np.uint32)
    values = rng.integers(0, 1000, rows, dtype=np.uint32)
    bits = (groups - 1).bit_length()
    found = np.unique(keys)
    expected = found, np.bincount(keys, values, groups).astype(np.uint64).astype(np.uint32)[found]
    k, x = gw.asarray(keys, device), gw.asarray(values, device)
    options = {"size": groups}

    def of(**more: Any) -> Ours:
        return Ours(
            device, lambda: gw.group_by(k, total=(x, gw.Add), **options, **more),
            lambda made: (made.keys.to_numpy(), made.total.to_numpy()),
        )  # fmt: skip

    known, used = f"ours, key_bits={bits}", f"CUB, {bits} bits"
    comparison = Comparison(f"group: {rows:,} rows, keys below {groups:,}", known, {used: ("gpu_ns", 1.0)})
    for name, side in {"ours": of(), known: of(key_bits=bits)}.items():
        comparison.add(name, side, all(map(np.array_equal, side.results(), expected)))
    for name, sorted_bits in {"CUB, 32 bits": 32, used: bits}.items():
        if isinstance(server, str):
            comparison.sides[name] = server
            continue
        server.load("keys", keys)
        server.load("values", values)
        cuda = Cuda(server, "group", rows, sorted_bits)
        comparison.add(name, cuda, cuda.answer["checksums"] == [checksum((each,)) for each in expected])
    return comparison


def table_sides(device: Any, rows: int) -> Comparison:
    """Return the sides of the example of group-by."""
    example = load_example("group_by")
    key, x = example.table(rows)
    expected = example.by_numpy(key, x)
    bits = int(key.max()).bit_length()
    on_gpu = gw.asarray(key, device), gw.asarray(x, device)
    marks = {"polars": ("wall_ns", 20.0)}
    comparison = Comparison(f"table: {rows:,} rows, {len(expected['key']):,} keys", "ours", marks)
    ours = Ours(device, lambda: example.ours(*on_gpu, key_bits=bits), lambda made: tuple(made.to_numpy().values()))
    comparison.add("ours", ours, example.agree(dict(zip(expected, ours.results(), strict=True)), expected))
    prepare = {"ours, with transfers": lambda key, x: lambda: example.ours(key, x, device=device).to_numpy()}
    for name, prepared in {**prepare, **example.OTHERS}.items():
        try:
            side = Host(prepared(key, x))
        except ImportError as error:
            comparison.sides[name] = f"{error.name} is not installed"
        except Exception as error:  # no CUDA, no memory: the other sides are still worth their time
            comparison.sides[name] = f"{type(error).__name__}: {error!s:.200}"
        else:
            comparison.add(name, side, example.agree(side.result, expected))
    return comparison


def splat_sides(device: Any, count: int, server: CubServer | str) -> Comparison:
    """Return the sides of the binning."""
    example = load_example("splats")
    points, size, _ = example.scene(count)
    angle = gw.asarray(np.float32([0.5]), device)
    projected = example.project(points, gw.asarray(size, device), angle)
    # To the size of the picture.
    scale = HEIGHT / example.HEIGHT
    x, y, depth, radius = (gw.asarray(each * scale) if k != 2 else each for k, each in enumerate(projected))
    host = {
        name: each.to_numpy() for name, each in zip(("x", "y", "depth", "radius"), (x, y, depth, radius), strict=True)
    }
    tiles, splats = example.by_numpy(*host.values(), None, WIDTH, HEIGHT)
    room = int(1.25 * tiles.size) + 1024

    def arrays(made: Any) -> tuple[np.ndarray, ...]:
        order, owners, runs = made
        return np.repeat(runs.values.to_numpy(), runs.lengths.to_numpy()), order.to_numpy()[owners.to_numpy()]

    ours = Ours(device, lambda: example.bin_splats(x, y, depth, radius, room, WIDTH, HEIGHT), arrays)
    as_in_paper = "CUDA, as in the paper"
    comparison = Comparison(f"splats: {count:,}, {tiles.size:,} pairs", "ours", {as_in_paper: ("wall_ns", 1.5)})
    comparison.add("ours", ours, all(map(np.array_equal, ours.results(), (tiles, splats))))
    begin = np.zeros((example.tiles_of(WIDTH) * example.tiles_of(HEIGHT), 2), np.uint32)
    numbers = np.bincount(tiles, minlength=len(begin))
    begin[:, 1] = np.cumsum(numbers)
    begin[:, 0] = begin[:, 1] - numbers
    begin[numbers == 0] = 0
    expected = [checksum((begin.ravel(),)), checksum((splats.astype(np.uint32),))]
    for name, depth_first in {as_in_paper: 0, "CUDA, by depth first": 1}.items():
        if isinstance(server, str):
            comparison.sides[name] = server
            continue
        for argument, items in host.items():
            server.load(argument, items)
        cuda = Cuda(server, "splats", count, WIDTH, HEIGHT, room, depth_first)
        comparison.add(name, cuda, cuda.answer["checksums"] == expected)
    return comparison


CLOCKS = ("gpu_ns", "wall_ns")


def measured(
    comparison: Comparison, rounds: int, warmup_s: float, samples: int, *, stages: bool = False
) -> dict[str, Any]:
    """Print and return the times of the sides, which take turns; those that are missing have None, and the reason."""
    there = {name: side for name, side in comparison.sides.items() if not isinstance(side, str)}
    found: dict[str, dict[str, list[float]]] = {name: {clock: [] for clock in CLOCKS} for name in there}
    for _ in range(rounds):
        for name, side in there.items():
            for clock, times in side.times(warmup_s, samples).items():
                found[name][clock].append(statistics.median(times))

    def median(name: str, clock: str) -> float | None:
        times = found.get(name, {}).get(clock)
        return statistics.median(times) if times else None

    def ratio(name: str, clock: str) -> float | None:
        ours, other = median(comparison.reference, clock), median(name, clock)
        return None if ours is None or other is None else other / ours

    print(comparison.title)
    rows: dict[str, Any] = {}
    for name, side in comparison.sides.items():
        row: dict[str, Any] = {clock: median(name, clock) for clock in CLOCKS}
        row["ratio"] = {clock: ratio(name, clock) for clock in CLOCKS}
        row["right"], row["rounds"] = comparison.right.get(name), found.get(name)
        row["skipped"] = side if isinstance(side, str) else None
        row["mark"] = comparison.marks.get(name)
        row["kernels"] = side.kernels(samples) if isinstance(side, Ours) else None
        rows[name] = row
        print(f"  {name:<24}{described(row)}")
    for kernel in rows[comparison.reference]["kernels"] if stages else ():
        time = "not measured" if kernel["ns"] is None else f"{kernel['ns'] / 1e3:10.1f} µs"
        print(f"    {kernel['kernel']:<28}{time}  workgroups: {kernel['workgroups']}")
    return rows


def described(row: Mapping[str, Any]) -> str:
    """Return what is printed of a row."""
    if row["skipped"] is not None:
        return f"none: {row['skipped']}"
    words: list[str] = []
    for clock in CLOCKS:
        time_ns, ratio = row[clock], row["ratio"][clock]
        found = "" if time_ns is None else f"{clock.removesuffix('_ns'):<4} {time_ns / 1e3:12.1f} µs"
        words.append(f"{found:<20} {'' if ratio is None else f'({ratio:.2f} ×)':<10}")
    if row["mark"] is not None:
        clock, mark = row["mark"]
        reached = row["ratio"][clock] is not None and row["ratio"][clock] >= mark
        words.append(f"mark {mark:g} × {clock.removesuffix('_ns')}: {'reached' if reached else 'MISSED'}")
    return "   ".join([*words, "" if row["right"] else "WRONG"]).rstrip()


@click.command()
@click.option("--rows", type=AxisList("n"), default="2^26", show_default=True)
@click.option("--groups", type=AxisList("n"), default="10^6", show_default=True)
@click.option("--table", type=AxisList("n"), default="10^8", show_default=True)
@click.option("--splats", type=AxisList("n"), default="3000000", show_default=True)
@click.option("--rounds", type=int, default=5, show_default=True)
@click.option("--samples", type=int, default=15, show_default=True, help="Calls of a round.")
@click.option("--warmup-s", type=float, default=0.1, show_default=True)
@click.option("--cub", type=click.Path(exists=True, path_type=Path), help="A built cub_chain_peer.")
@click.option("--ours-only", is_flag=True)
@click.option("--stages", is_flag=True, help="Print the time of each of our kernels.")
@click.option("--json", "path", type=click.Path(dir_okay=False, path_type=Path))
def main(rows: Any, groups: Any, table: Any, splats: Any, rounds: int, samples: int, warmup_s: float, cub: Path | None,
         ours_only: bool, stages: bool, path: Path | None) -> None:  # fmt: skip
    """Measure all sides."""
    device = gw.request_device()
    context = run_context(device)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = "not asked for" if ours_only else cub or build_cub(folder, "cub_chain_peer")
        server = program if isinstance(program, str) else CubServer(program.resolve(), folder)
        prepare: list[Callable[[], Comparison]] = [
            *(partial(group_sides, device, n, number, server) for n in rows if n for number in groups),
            *(partial(table_sides, device, n) for n in table if n),
            *(partial(splat_sides, device, n, server) for n in splats if n),
        ]
        failed = False
        try:
            for each in prepare:
                try:
                    comparison = each()
                    results[comparison.title] = measured(comparison, rounds, warmup_s, samples, stages=stages)
                except PeerError as error:  # the other parts are still worth their time
                    print(f"CUDA: {error}")
                    failed = True
                if path is not None:  # after each part, so that a run that is cut off leaves what it has
                    write_json(path, {"context": context, "results": results})
        finally:
            if not isinstance(server, str):
                server.close()
    if failed:
        sys.exit(2)
    if any(row["right"] is False for sides in results.values() for row in sides.values()):
        sys.exit(4)


if __name__ == "__main__":
    main()
