"""Sums along an axis, beside PyTorch and CuPy, and beside the copy kernel of the same run.

Usage: python benchmarks/axis_peer.py [--items 2^28] [--rounds 5] [--peers torch,cupy] [--scans] [--sweep] [--json FILE]

f32, C order. The shapes have `--items` items: a square, four columns, four rows; and, with an eighth of them, rows
whose length is no multiple of 4, and narrow and batched ones. All sides take turns, round after round; the figure is
the median of the rounds. Ours are dispatches in one pass between two timestamps; PyTorch's and CuPy's are calls
between two CUDA events. GB/s counts the input alone; `of copy` is its ratio to the GB/s of the copy kernel, which reads
and writes. The items are multiples of 1/256 whose sums are exact, so every side must give numpy's bits.

With --scans, prefix sums along the axis instead, whose GB/s count input and output.
With --sweep, tunings of the kernel take turns instead, each shape's fastest first.

Bytes and predictions for an H200, at 4,270 GB/s for the copy and 4,300 to 4,500 for reading alone, 2^28 items, 1.07 GB:

16,384², axis 1: 16,384 workgroups of a row each, 64 KiB; 16 loads of an invocation, four at once. 245 µs, 4,350 GB/s.
16,384², axis 0: 64 strips of 256 columns; a row of a strip is 1 KiB, so pages and banks are worse used than above; the
totals of 64 blocks are 4 MB: 255 µs and 8 µs to combine them, 4,080 GB/s.
2^26 × 4, axis 1: each row is one load; 268 MB of results, 1.34 GB in all: 310 µs, 3,450 GB/s of the input.
2^26 × 4, axis 0: as the flat sum, 528 × 4 totals: 250 µs and 5 to combine, 4,200 GB/s.
4 × 2^26, axis 1: 132 parts of each row: 250 µs and 5 to combine, 4,200 GB/s.
4 × 2^26, axis 0: four loads far apart; 1.34 GB in all: 310 µs, 3,450 GB/s of the input.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable, Iterator
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
COPY = "copy"
SCAN_SWEEP: list[dict[str, int]] = [
    {"vecs": 1}, {"vecs": 2}, {"vecs": 4}, {"vecs": 8}, {"vecs": 16}, {"workgroup_size": 64}, {"workgroup_size": 128},
    {"workgroup_size": 512}, {"workgroup_size": 512, "vecs": 2}, {"workgroup_size": 1024}, {"max_blocks": 528},
    {"max_blocks": 2112}, {"max_blocks": 1 << 15}, {"max_blocks": 1 << 16}, {"max_blocks": 1 << 18},
]  # fmt: skip
# Other values of one or two fields of the tuning, tried one at a time; `None` is the library's choice.
SWEEP: dict[str, list[dict[str, int]]] = {
    "rows": [
        {"vecs": 2}, {"vecs": 8}, {"workgroup_size": 128}, {"workgroup_size": 512}, {"workgroup_size": 1024},
        {"workgroup_size": 512, "vecs": 8}, {"team": 1, "vecs": 8}, {"team": 2}, {"team": 32}, {"team": 64},
        {"team": 128}, {"team": 32, "vecs": 8}, {"max_blocks": 1056}, {"max_blocks": 2112}, {"max_blocks": 4224},
    ],
    "columns": [
        {"vecs": 2}, {"vecs": 8}, {"vecs": 16}, {"strip": 32}, {"strip": 128}, {"strip": 256},
        {"strip": 32, "max_blocks": 1056}, {"strip": 128, "vecs": 8}, {"workgroup_size": 128}, {"workgroup_size": 512},
        {"max_blocks": 528}, {"max_blocks": 1056}, {"max_blocks": 2112}, {"max_blocks": 2112, "vecs": 8},
        {"max_blocks": 8448},
    ],
    "narrow": [
        {"vecs": 2}, {"vecs": 8}, {"workgroup_size": 128}, {"workgroup_size": 512}, {"max_blocks": 1056},
        {"max_blocks": 2112}, {"max_blocks": 4224}, {"max_blocks": 264, "vecs": 8}, {"max_blocks": 1056, "vecs": 8},
    ],
}  # fmt: skip


def cases(items: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield shapes and axes."""
    side = 1 << (items.bit_length() - 1) // 2
    for shape in ((side, items // side), (items // 4, 4), (4, items // 4)):
        yield shape, 1
        yield shape, 0
    few = items // 8
    yield (few // (side - 1), side - 1), 1  # rows of 16,383 items
    yield (few // (side - 1), side - 1), 0
    yield (few // 3, 3), 1
    yield (few // 3, 3), 0
    yield (few // 100, 100), 1
    yield (few // 100, 100), 0
    yield (few // (1 << 14), 128, 128), 1


def timed_ns(primitive: gw.Primitive, arrays: dict[str, gw.Array], warmup_s: float, samples: int) -> float:
    """Return the median time of a call in a pass of several."""
    protocol = replace(
        gw.SamplingProtocol(), samples=samples, warmup_s=warmup_s, max_warmup_s=2 * warmup_s, canary_passes=1,
        batch_trials=CALLS, check_unit=False,
    )  # fmt: skip
    measured = gw.measure(primitive, mode="batch", protocol=protocol, check=False, **arrays)
    span = measured.whole.get("gpu_span")
    if span is None:
        raise SystemExit(f"{primitive}: no valid timestamps ({'; '.join(measured.warnings)}); take more --items")
    return statistics.median(span.samples_ns)


class Torch:
    """PyTorch on the same GPU."""

    def __init__(self, items: np.ndarray, function: str):
        self._function = function
        self._torch = importlib.import_module("torch")
        if not self._torch.cuda.is_available():
            raise ImportError("PyTorch sees no GPU")
        self._items = self._torch.from_numpy(items).cuda()
        self.version = self._torch.__version__

    def call(self, shape: tuple[int, ...], axis: int) -> Callable[[], Any]:
        """Return a function that sums along an axis, or has its prefix sums."""
        x = self._items[: int(np.prod(shape))].view(shape)
        function = getattr(self._torch, self._function)
        out = function(x, axis)
        return lambda: function(x, axis, out=out)

    def numpy(self, result: Any) -> np.ndarray:
        """Return a result."""
        return result.cpu().numpy()

    def times_ns(self, call: Callable[[], Any], samples: int) -> list[float]:
        """Return the time of a call between two events, of several."""
        pairs = []
        for _ in range(samples):
            begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            pairs.append((begin, end))
        self._torch.cuda.synchronize()
        return [begin.elapsed_time(end) * 1e6 / CALLS for begin, end in pairs]


class Cupy:
    """CuPy on the same GPU."""

    def __init__(self, items: np.ndarray, function: str):
        self._function = function
        self._cupy = importlib.import_module("cupy")
        self._items = self._cupy.asarray(items)
        self.version = self._cupy.__version__

    def call(self, shape: tuple[int, ...], axis: int) -> Callable[[], Any]:
        """Return a function that sums along an axis, or has its prefix sums."""
        x = self._items[: int(np.prod(shape))].reshape(shape)
        function = getattr(self._cupy, self._function)
        out = function(x, axis)
        return lambda: function(x, axis, out=out)

    def numpy(self, result: Any) -> np.ndarray:
        """Return a result."""
        return result.get()

    def times_ns(self, call: Callable[[], Any], samples: int) -> list[float]:
        """Return the time of a call between two events, of several."""
        pairs = []
        for _ in range(samples):
            begin, end = (self._cupy.cuda.Event() for _ in range(2))
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            pairs.append((begin, end))
        self._cupy.cuda.Device().synchronize()
        return [self._cupy.cuda.get_elapsed_time(begin, end) * 1e6 / CALLS for begin, end in pairs]


def peers_of(names: str, items: np.ndarray, function: str) -> dict[str, Any]:
    """Return the libraries that are installed and see a GPU."""
    found: dict[str, Any] = {}
    for name in filter(None, names.split(",")):
        try:
            found[name] = {"torch": Torch, "cupy": Cupy}[name](items, function)
        except Exception as error:
            click.echo(f"{name}: not here: {str(error).splitlines()[0]:.100}")
    return found


def tunings(
    device: Any, shape: tuple[int, ...], axis: int, sweep: bool, scans: bool
) -> dict[str, gw.ReduceAxis | gw.ScanAxis]:
    """Return the library's choice, and with `sweep` others."""
    cls = gw.ScanAxis if scans else gw.ReduceAxis
    own = cls(device, "f32", shape=shape, axis=axis)
    found: dict[str, gw.ReduceAxis | gw.ScanAxis] = {"gridwise": own}
    if not sweep:
        return found
    lengths = {"input": int(np.prod(shape)), "output": int(np.prod(own.output_shape))}
    plan = cls.plan_for(capabilities=own.capabilities, lengths=lengths, dtype="f32", shape=shape, axis=axis)
    for fields in SCAN_SWEEP if scans else SWEEP[str(plan.parameters["kind"])]:
        name = " ".join(f"{field}={value}" for field, value in fields.items())
        try:
            tuning = gw.AxisTuning(**fields)
            found[name] = cls(device, "f32", shape=shape, axis=axis, tuning=tuning)
        except gw.ArgumentError as error:
            click.echo(f"  {name}: not here: {error!s:.100}")
    return found


def parameters_of(primitive: gw.Primitive, arrays: dict[str, gw.Array]) -> dict[str, Any]:
    """Return those of the plan."""
    return dict(primitive.bind(**arrays).plan.parameters)


@click.command()
@click.option("--items", "counts", type=AxisList("n"), default="2^28", show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--samples", default=5, show_default=True, help="Of each side and round.")
@click.option("--warmup-s", default=0.02, show_default=True, help="Before each measurement.")
@click.option("--peers", default="torch,cupy", show_default=True)
@click.option("--scans", is_flag=True, help="Prefix sums instead of sums.")
@click.option("--sweep", is_flag=True, help="Try other tunings, and no peers.")
@click.option("--only", default="", help="Cases whose name contains this.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    counts: list[int], rounds: int, samples: int, warmup_s: float, peers: str, scans: bool, sweep: bool,
    only: str,
    adapter: str | None, json_path: Path | None,
) -> None:  # fmt: skip
    """Measure, check and print."""
    device = gw.request_device(adapter)
    (n,) = counts
    items = np.random.default_rng(0).integers(-256, 257, n, dtype=np.int16).astype(np.float32) / np.float32(256)
    x = gw.asarray(items, device)
    libraries = {} if sweep else peers_of(peers, items, "cumsum" if scans else "sum")
    copy, copied = gw.Copy(device, "f32"), gw.empty(n, "f32", device)
    copy_arrays = {"input": x, "output": copied}
    timed_ns(copy, copy_arrays, 1.0, 3)
    click.echo(f"{gw.capabilities(device).adapter}, f32, median of {rounds} rounds; GB/s of the input")
    rows: list[dict[str, Any]] = []
    wrong = False
    context, versions = run_context(device), {side: library.version for side, library in libraries.items()}
    for shape, axis in cases(n):
        name = f"{'x'.join(map(str, shape))} axis {axis}"
        if only not in name:
            continue
        size = int(np.prod(shape))
        if not size:
            continue  # too few --items for it
        view = x[:size]
        primitives = tunings(device, shape, axis, sweep, scans)
        output = gw.empty(int(np.prod(primitives["gridwise"].output_shape)), "f32", device)
        arrays = {"input": view, "output": output}
        sums = np.cumsum if scans else np.sum
        expected = sums(items[:size].reshape(shape), axis, dtype=np.float64).astype(np.float32)
        right: dict[str, bool] = {}
        parameters: dict[str, dict[str, Any]] = {}
        for side, primitive in primitives.items():
            primitive.execute(**arrays)
            right[side] = bool(np.array_equal(output.to_numpy(), expected.reshape(-1)))
            parameters[side] = parameters_of(primitive, arrays)
        calls = {side: library.call(shape, axis) for side, library in libraries.items()}
        for side, library in libraries.items():
            right[side] = bool(np.array_equal(library.numpy(calls[side]()), expected))
        times: dict[str, list[float]] = {side: [] for side in (COPY, *primitives, *libraries)}
        for _ in range(rounds):
            times[COPY].append(timed_ns(copy, copy_arrays, warmup_s, samples))
            for side, primitive in primitives.items():
                times[side].append(timed_ns(primitive, arrays, warmup_s, samples))
            for side, library in libraries.items():
                library.times_ns(calls[side], max(1, samples // 2))
                times[side].append(statistics.median(library.times_ns(calls[side], samples)))
        copy_rate = 8 * n / statistics.median(times[COPY])
        click.echo(f"{name}   (copy {copy_rate:.0f} GB/s)")
        found = []
        for side in (*primitives, *libraries):
            time_ns = statistics.median(times[side])
            rate = (8 if scans else 4) * size / time_ns
            found.append(
                {
                    "shape": list(shape), "axis": axis, "side": side, "right": right[side], "time_ns": time_ns,
                    "rounds_ns": times[side], "gbytes_per_s": rate, "copy_gbytes_per_s": copy_rate,
                    "of_copy": rate / copy_rate, "moved_gbytes_per_s": 4 * (size + expected.size) / time_ns,
                    "parameters": parameters.get(side),
                }
            )  # fmt: skip
        if sweep:
            found.sort(key=lambda row: row["time_ns"])
        for row in found:
            wrong |= not row["right"]
            p = row["parameters"] or {}
            shown = " ".join(
                f"{key}={p[key]}"
                for key in ("kind", "vecs", "team", "units", "strip", "width", "lanes", "parts")
                if key in p
            )
            click.echo(
                f"  {row['side']:28}{row['time_ns'] / 1e3:9.1f} µs {row['gbytes_per_s']:7.0f} GB/s "
                f"{row['of_copy']:6.3f} of copy{'' if row['right'] else '  WRONG'}  {shown}"
            )
        rows += found
        if json_path is not None:  # after each case, so that a run that is cut off leaves what it has
            write_json(json_path, {**context, "items": n, "peers": versions, "scans": scans, "results": rows})
    if wrong:
        raise SystemExit(4)


if __name__ == "__main__":
    main()
