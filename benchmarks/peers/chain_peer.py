"""Group-by and splat binning beside the same chains of CUB calls on the same GPU: same data, in turns, in one run.

Usage: python benchmarks/peers/chain_peer.py [--rows 2^26] [--groups 10^6] [--splats 3*10^6] [--rounds 5] [--json FILE]
       python benchmarks/peers/chain_peer.py --ours-only --rows 2^14 --splats 5000       (any GPU, also a software one)

CUDA's side, cub_chain_peer.cu, is built with nvcc where there is one; or give the built program with --cub. That one
needs no toolkit where it runs, only NVIDIA's driver:

    nvcc -O3 -std=c++17 --extended-lambda -arch=sm_90 -o cub_chain_peer benchmarks/peers/cub_chain_peer.cu

group    rows of u32 keys below `--groups` and u32 values: the sum of each key. CUB: SortPairs by 32 bits, as a caller
         has it who does not know the keys, and by the bits that they need; then ReduceByKey. Ours: GroupBy, without
         and with key_bits.
splats   examples/splats.py: the splats of each tile of a picture of 1920 × 1088 pixels, in order of depth. CUDA: as
         the program of the paper does it, with the copy of the number of pairs to the host and keys of 64 bits; and by
         depth first, as ours, with that copy.

`gpu` is from the first timestamp or CUDA event to the last, `wall` on the CPU's clock from an idle GPU to an idle GPU;
for splats wall is the one to compare, because CUDA waits for its number in between. Figures are medians over the
rounds. `ratio` is the other side's time over ours: above 1, this library is faster. Results of both sides are compared
by checksums, and with numpy.

Predictions for an H200: group, 2^26 rows, 10^6 groups of 20 bits: histogram 0.27 GB; 3 digits at 16 bytes a row, 3.2
GB; reduction 0.54 GB; 4.0 GB at 4,250 GB/s are 0.95 ms; passes of pairs reach 0.85 of that, so 1.1 ms. A fourth digit
of CUB is 1.07 GB, 0.28 ms. Splats: sorting 3·10^6 splats by depth 0.2 GB, 0.1 ms; 10^7 pairs by 13 bits, 2 digits, 0.4
GB, 0.12 ms; some 20 dispatches and copies of counts of 3 to 10 µs; in all 0.4 to 0.5 ms. CUDA's keys of 45 bits are 6
digits of 24 bytes, 1.4 GB, 0.4 ms, and the wait 20 to 40 µs.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
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

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "splats.py"
WIDTH, HEIGHT = 1920, 1088


def load_example() -> ModuleType:
    """Return examples/splats.py as a module."""
    spec = importlib.util.spec_from_file_location("splats_example", EXAMPLE)
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


class Cuda:
    """A chain of CUDA's side."""

    def __init__(self, server: CubServer, *command: object):
        self._server, self._command = server, command
        self.answer = server.ask(*command)

    def times(self, warmup_s: float, samples: int) -> dict[str, list[float]]:
        """Return the times of calls."""
        self._server.ask(*self._command)  # another chain may have been prepared since
        return self._server.ask("time", warmup_s, samples)


def group_sides(device: Any, rows: int, groups: int, server: CubServer | str) -> tuple[dict[str, Any], dict[str, bool]]:
    """Return the sides of the group-by, and whether each is right."""
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

    sides: dict[str, Any] = {"ours": of(), f"ours, key_bits={bits}": of(key_bits=bits)}
    right = {
        name: all(np.array_equal(got, want) for got, want in zip(side.results(), expected, strict=True))
        for name, side in sides.items()
    }
    if not isinstance(server, str):
        server.load("keys", keys)
        server.load("values", values)
        for used in (32, bits):
            name = f"CUB, {used} bits"
            sides[name] = Cuda(server, "group", rows, used)
            right[name] = sides[name].answer["checksums"] == [checksum((each,)) for each in expected]
    return sides, right


def splat_sides(device: Any, count: int, server: CubServer | str) -> tuple[dict[str, Any], dict[str, bool]]:
    """Return the sides of the binning, and whether each is right."""
    example = load_example()
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
    right = {"ours": all(map(np.array_equal, ours.results(), (tiles, splats)))}
    sides: dict[str, Any] = {"ours": ours}
    if not isinstance(server, str):
        for name, items in host.items():
            server.load(name, items)
        begin = np.zeros((example.tiles_of(WIDTH) * example.tiles_of(HEIGHT), 2), np.uint32)
        numbers = np.bincount(tiles, minlength=len(begin))
        begin[:, 1] = np.cumsum(numbers)
        begin[:, 0] = begin[:, 1] - numbers
        begin[numbers == 0] = 0
        expected = [checksum((begin.ravel(),)), checksum((splats.astype(np.uint32),))]
        for name, depth_first in (("CUDA, as in the paper", 0), ("CUDA, by depth first", 1)):
            sides[name] = Cuda(server, "splats", count, WIDTH, HEIGHT, room, depth_first)
            # Multiplications and additions may be contracted on either side, so a splat may touch one tile more.
            right[name] = sides[name].answer["checksums"] == expected
    return sides, right


def measured(
    title: str, sides: dict[str, Any], right: dict[str, bool], rounds: int, warmup_s: float, samples: int
) -> Any:
    """Print and return the times of the sides, which take turns."""
    found: dict[str, dict[str, list[float]]] = {name: {"gpu_ns": [], "wall_ns": []} for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            for clock, times in side.times(warmup_s, samples).items():
                found[name][clock].append(statistics.median(times))
    print(title)
    reference = list(sides)[1 if title.startswith("group") else 0]
    ours = {clock: statistics.median(times) for clock, times in found[reference].items()}
    rows: dict[str, Any] = {}
    for name, clocks in found.items():
        figures = {clock: statistics.median(times) for clock, times in clocks.items()}
        ratios = {clock: figures[clock] / ours[clock] for clock in figures}
        rows[name] = {**figures, "ratio": ratios, "right": right[name], "rounds": clocks}
        print(
            f"  {name:<24} gpu {figures['gpu_ns'] / 1e3:10.1f} µs ({ratios['gpu_ns']:.2f} ×)   "
            f"wall {figures['wall_ns'] / 1e3:10.1f} µs ({ratios['wall_ns']:.2f} ×)   {'' if right[name] else 'WRONG'}"
        )
    return rows


@click.command()
@click.option("--rows", type=AxisList("n"), default="2^26", show_default=True)
@click.option("--groups", type=AxisList("n"), default="10^6", show_default=True)
@click.option("--splats", type=AxisList("n"), default="3000000", show_default=True)
@click.option("--rounds", type=int, default=5, show_default=True)
@click.option("--samples", type=int, default=15, show_default=True, help="Calls of a round.")
@click.option("--warmup-s", type=float, default=0.1, show_default=True)
@click.option("--cub", type=click.Path(exists=True, path_type=Path), help="A built cub_chain_peer.")
@click.option("--ours-only", is_flag=True)
@click.option("--json", "path", type=click.Path(dir_okay=False, path_type=Path))
def main(rows: Any, groups: Any, splats: Any, rounds: int, samples: int, warmup_s: float, cub: Path | None,
         ours_only: bool, path: Path | None) -> None:  # fmt: skip
    """Measure all sides."""
    device = gw.request_device()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = "left out" if ours_only else cub or build_cub(folder, "cub_chain_peer")
        server = program if isinstance(program, str) else CubServer(program, folder)
        if isinstance(server, str):
            print(f"CUDA: {server}")
        try:
            for n in rows:
                for number in groups:
                    title = f"group: {n:,} rows, keys below {number:,}"
                    sides = group_sides(device, n, number, server)
                    results[title] = measured(title, *sides, rounds, warmup_s, samples)
            for n in splats:
                title = f"splats: {n:,}"
                results[title] = measured(title, *splat_sides(device, n, server), rounds, warmup_s, samples)
        except PeerError as error:
            raise SystemExit(f"CUDA: {error}") from error
        finally:
            if not isinstance(server, str):
                server.close()
    if path is not None:
        write_json(path, {"context": run_context(device), "results": results})
    if not all(row["right"] for sides in results.values() for row in sides.values()):
        sys.exit(4)


if __name__ == "__main__":
    main()
