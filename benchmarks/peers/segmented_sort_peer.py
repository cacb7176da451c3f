"""Segmented sorts beside CUB's, and transposes, flips and scatters beside copies, on the same GPU and in one run.

Usage: python benchmarks/peers/segmented_sort_peer.py [--n 2^24] [--cub PROGRAM] [--budget-s 55] [--json FILE]
       python benchmarks/peers/segmented_sort_peer.py --n 2^12 --ours-only     (any GPU, also a software one)
       python benchmarks/peers/segmented_sort_peer.py --parts tune             (shapes of the kernels, ours only)

PROGRAM is built from cub_stream_peer.cu (its first lines say how); without it nvcc builds it, which takes a minute.

marks   segments of 2^8 and of 2^12 keys (u32), by offsets (with longest= and without) and of one length, beside
        DeviceSegmentedSort and DeviceSegmentedRadixSort; transposes beside our copy of as many bytes
sweep   segments of 1 to n keys: no length may be a cliff. "random" has lengths by a power law, and empty ones
others  pairs and 8-byte keys; narrow matrices, other items; flip, roll, scatter beside copies and gathers
tune    other shapes of the segmented sort and the transpose

Times are medians: `single` from the first timestamp of a call to its last (CUB: between two events), with a pass for
each kernel; `back to back` per call of several in one pass, which is the time of a call that is not timed. `ratio` is
the better of CUB's two over ours, back to back. Results of segmented sorts must have the checksum of CUB's, and up to
2^20 keys numpy's order; transposes and their like are compared with numpy up to 2^24 items.

Predictions for an H200 and 2^24 keys: a pass in workgroup memory takes as long as one of the sort without its stores,
about 60 µs. Segments of 2^8 keys need 5 passes (300 µs), those of 2^12 4 (240 µs), those of one key 6. By offsets some
40 µs more: 18 dispatches that find no long segment. Long segments: 4 × (20 + 10 + 85) µs. Transposes of multiples of 4:
0.95 of the copy; others 0.85.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
from cub_server import CubServer, PeerError
from cuda_peers import build_cub
from cuda_peers import checksum as words_checksum
from stream_peer import Ours, counts_of, settle

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.primitives.reorder import Reorder
from gridwise_py.primitives.take import Take
from gridwise_py.storage.json_files import write_json

_PARTS = ("marks", "sweep", "others", "tune")
_LENGTHS = (1, 2, 4, 8, 16, 32, 64, 256, 1 << 10, 1 << 11, 1 << 12, 4098, 6145, 1 << 13, 1 << 14, 1 << 16, 1 << 20)
_CUB = ("segmented_sort", "segmented_radix_sort")
_SORT_SHAPES = ((512, 12), (512, 10), (512, 8), (512, 16), (256, 16), (256, 12), (256, 8), (1024, 6))
_TRANSPOSE_SHAPES = ((256, 2), (256, 1), (256, 3), (128, 2), (128, 4), (64, 4), (64, 8))


@dataclass
class Side:
    """One thing that is timed.

    Attributes
    ----------
    name : str
    primitive : Primitive
    arrays : mapping from str to Array
    """

    name: str
    primitive: gw.Primitive
    arrays: Mapping[str, gw.Array]


@dataclass
class Case:
    """What is compared.

    Attributes
    ----------
    name : str
    part : str
    sides : callable
        Makes our sides; the first one is the case, the others what it is compared with.
    bytes : int
        That must move.
    cub : mapping, optional
        Options of CUB's cases, by the algorithm.
    check : callable, optional
        Takes the first side's outputs; returns whether they are right.
    mark : str
    """

    name: str
    part: str
    sides: Callable[[], list[Side]]
    bytes: int
    cub: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    check: Callable[[Mapping[str, gw.Array]], bool] | None = None
    mark: str = ""


class Bench:
    """Makes cases and times them."""

    def __init__(self, device: Any, n: int, cub: CubServer | None, samples: int, rounds: int, warmup_s: float):
        self._device, self._n, self._cub = device, n, cub
        self._samples, self._rounds, self._warmup_s = samples, rounds, warmup_s
        self._rng = np.random.default_rng(n)
        self._keys = self._rng.integers(0, 1 << 32, n, dtype=np.uint32)
        self._on_gpu = gw.asarray(self._keys, device)
        self._output = gw.empty(n, "u32", device)

    # ---- cases

    def _offsets(self, length: int | None) -> np.ndarray:
        if length is not None:
            return np.append(np.arange(0, self._n, length), self._n).astype(np.uint32)
        lengths = np.minimum(self._rng.pareto(0.7, self._n // 64 + 1) * 4, self._n / 8).astype(np.int64)
        bounds = np.cumsum(lengths)
        return np.concatenate([[0], bounds[bounds < self._n], [self._n]]).astype(np.uint32)

    def _sorted(self, offsets: np.ndarray) -> np.ndarray:
        segment = np.searchsorted(offsets, np.arange(self._n), side="right")
        return self._keys[np.lexsort((self._keys, segment))]

    def sort_case(self, length: int | None, part: str, mark: str = "", **tuning: int) -> Case:
        """Return the case of segments of one length, or of random ones: by offsets, and by the length."""
        offsets = self._offsets(length)
        shape = gw.SegmentedSortTuning(**tuning) if tuning else None

        def sides() -> list[Side]:
            both = {"keys": self._on_gpu, "output_keys": self._output}
            sort = gw.SegmentedSort(self._device, "u32", tuning=shape)
            given = {**both, "offsets": gw.asarray(offsets, self._device)}
            longest = int(np.diff(offsets).max())
            known = gw.SegmentedSort(self._device, "u32", longest=longest, tuning=shape)
            found = [Side("offsets", sort, given), Side("offsets, longest", known, given)]
            if length is not None:
                found.append(Side("length", gw.SegmentedSort(self._device, "u32", length=length, tuning=shape), both))
            return found

        def check(outputs: Mapping[str, gw.Array]) -> bool:
            return self._n > 1 << 20 or np.array_equal(outputs["output_keys"].to_numpy(), self._sorted(offsets))

        name = f"segments of {length}" if length is not None else f"{offsets.size - 1} random segments"
        options = {"segments": offsets.size - 1, "input": "keys", "offsets": f"offsets_{length}"}
        cub = {algorithm: {**options, "data": offsets} for algorithm in _CUB}
        words = " ".join(f"{k}={v}" for k, v in tuning.items())
        return Case(f"{name} {words}".strip(), part, sides, 8 * self._n, {} if tuning else cub, check, mark)

    def pairs_case(self, key: str, value: str | None, length: int) -> Case:
        """Return the case of other keys and of values."""
        kinds = [gw.STORAGE_DATATYPES[each] for each in (key, value) if each is not None]
        n = self._n

        def sides() -> list[Side]:
            words = self._rng.integers(0, 256, n * kinds[0].itemsize_bytes, dtype=np.uint8).view(kinds[0].dtype)
            arrays = {"keys": gw.asarray(words, self._device), "output_keys": gw.empty(n, key, self._device),
                      "offsets": gw.asarray(self._offsets(length), self._device)}  # fmt: skip
            if value is not None:
                arrays |= {name: gw.zeros(n, value, self._device) for name in ("values", "output_values")}
            return [Side("offsets", gw.SegmentedSort(self._device, key, value), arrays)]

        item_bytes = sum(kind.itemsize_bytes for kind in kinds)
        return Case(f"{key} and {value} in segments of {length}", "others", sides, 2 * item_bytes * n)

    def _beside_copy(
        self, name: str, part: str, dtype: str, n: int, make: Callable[[], gw.Primitive],
        expected: Callable[[np.ndarray], np.ndarray], mark: str = "",
    ) -> Case:  # fmt: skip
        datatype = gw.STORAGE_DATATYPES[dtype]
        size_bytes = n * datatype.itemsize_bytes

        def sides() -> list[Side]:
            words = np.resize(self._keys, -(-size_bytes // 4))
            source, target = gw.asarray(words, self._device), gw.empty(words.size, "u32", self._device)
            views = {"input": gw.Array(source.buffer, dtype, n), "output": gw.Array(target.buffer, dtype, n)}
            copy = Side("copy", gw.Copy(self._device, "u32"), {"input": source, "output": target})
            return [Side(name, make(), views), copy]

        def check(outputs: Mapping[str, gw.Array]) -> bool:
            if n > 1 << 24:
                return True
            items = np.resize(self._keys, -(-size_bytes // 4)).view(datatype.dtype)[:n]
            return outputs["output"].to_numpy().tobytes() == np.ascontiguousarray(expected(items)).tobytes()

        return Case(name, part, sides, 2 * size_bytes, check=check, mark=mark)

    def transpose_case(self, rows: int, columns: int, dtype: str, part: str, mark: str = "", **tuning: int) -> Case:
        """Return the case of a matrix."""
        words = " ".join(f"{k}={v}" for k, v in tuning.items())
        shape = gw.ElementwiseTuning(**tuning) if tuning else None
        return self._beside_copy(
            f"transpose {rows} x {columns} {dtype} {words}".strip(), part, dtype, rows * columns,
            lambda: gw.Transpose(self._device, dtype, rows=rows, columns=columns, tuning=shape),
            lambda items: items.reshape(rows, columns).T, mark,
        )  # fmt: skip

    def reorder_case(self, shift: int | None) -> Case:
        """Return the case of a flip, or of a roll."""
        n = 4 * self._n
        return self._beside_copy(
            "flip" if shift is None else "roll", "others", "u32", n,
            lambda: Reorder(self._device, "u32", outer=1, length=n, inner=1, shift=shift),
            lambda items: items[::-1] if shift is None else np.roll(items, shift),
        )  # fmt: skip

    def scatter_case(self, kind: str) -> Case:
        """Return the case of a scatter, beside a gather by the same indices."""
        n = self._n
        indices = self._rng.permutation(n) if kind == "random" else np.arange(n)
        places = gw.asarray(indices.astype(np.uint32), self._device)

        def sides() -> list[Side]:
            gather = Take(self._device, "u32", "u32", outer=1, length=n, count=n, inner=1, clip=True)
            named = {"indices": places, "output": self._output}
            return [
                Side("scatter", gw.Scatter(self._device), {**named, "items": self._on_gpu}),
                Side("gather", gather, {**named, "input": self._on_gpu}),
            ]

        def check(outputs: Mapping[str, gw.Array]) -> bool:
            return np.array_equal(outputs["output"].to_numpy()[indices], self._keys)

        return Case(f"scatter by {kind} indices", "others", sides, 12 * n, check=check)

    def cases(self, parts: tuple[str, ...]) -> Iterator[Case]:
        """Return the cases of parts; those of more than n keys are left out."""
        n = self._n
        side = 1 << (n.bit_length() - 1) // 2
        if "marks" in parts:
            for length, mark in ((1 << 8, "4 (10)"), (1 << 12, "0.8 (1.0)")):
                if length <= n:
                    yield self.sort_case(length, "marks", mark)
            for scale in (1, 4):
                yield self.transpose_case(scale * side, scale * side, "u32", "marks", "0.95 of copy")
            yield self.transpose_case(2 * side, 2 * side, "u64", "marks", "0.95 of copy")
        if "sweep" in parts:
            for length in (*(each for each in _LENGTHS if each < n), n):
                yield self.sort_case(length, "sweep")
            yield self.sort_case(None, "sweep")
        if "others" in parts:
            for key, value in (("u32", "u32"), ("f32", None), ("u64", None), ("u64", "f64"), ("u8", None)):
                for length in (1 << 8, 1 << 12, 1 << 14):
                    if length <= n:
                        yield self.pairs_case(key, value, length)
            for rows, columns in (
                (4, n),
                (n, 4),
                (3, n),
                (n, 3),
                (n // 32, 32),
                (20, n // 8),
                (2 * side + 1, 2 * side - 1),
            ):
                yield self.transpose_case(rows, columns, "u32", "others")
            for dtype in ("u8", "u16"):
                yield self.transpose_case(2 * side, 2 * side, dtype, "others")
                yield self.transpose_case(2 * side - 1, 2 * side, dtype, "others")
            yield self.reorder_case(None)
            yield self.reorder_case(n // 3)
            for kind in ("random", "ascending"):
                yield self.scatter_case(kind)
        if "tune" in parts:
            for length in (1, 1 << 8, 1 << 12, 1 << 14):
                for workgroup_size, items in _SORT_SHAPES if length <= n else ():
                    yield self.sort_case(length, "tune", workgroup_size=workgroup_size, items=items)
            for workgroup_size, vecs in _TRANSPOSE_SHAPES:
                yield self.transpose_case(4 * side, 4 * side, "u32", "tune", workgroup_size=workgroup_size, vecs=vecs)

    # ---- times

    def measure(self, case: Case) -> dict[str, Any]:
        """Return the row of a case."""
        row: dict[str, Any] = {"case": case.name, "part": case.part, "mark": case.mark, "n": self._n, "sides": {}}
        ours: dict[str, Ours] = {}
        try:
            for side in case.sides():
                ours[side.name] = Ours(side.primitive, side.arrays)
        except gw.GridwiseError as error:
            return row | {"skipped": str(error)}
        first = next(iter(ours.values()))
        sums: set[int] = set()
        if case.cub and self._cub is not None:
            for each in ours.values():
                each.call.execute()
                sums.add(words_checksum((each.run.outputs["output_keys"].to_numpy(),)))
        first.call.execute()
        row["right"] = case.check is None or case.check(first.run.outputs)
        times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in ours}
        for algorithm, options in case.cub.items() if self._cub is not None else ():
            try:
                self._cub.load("keys", self._keys)
                self._cub.load(options["offsets"], options["data"])
                words = [f"{key}={value}" for key, value in options.items() if key != "data"]
                answer = self._cub.ask("case", algorithm, "u32", self._n, *words)
                sums.add(int(answer["checksums"][0]))
                found = self._cub.ask("time", self._warmup_s, self._samples, 0)["single_ns"]
                times[f"cub {algorithm}"] = (found, found)
            except PeerError as error:
                row.setdefault("cub_skipped", {})[algorithm] = str(error)
        for number in range(self._rounds):
            for name in list(ours) if number % 2 else list(reversed(ours)):
                each = ours[name]
                each.warm_up(self._warmup_s)
                singles, launches = counts_of(each.pilot(), self._samples)
                times[name][0].extend(each.single_ns() for _ in range(singles))
                for _ in range(singles):
                    back = each.back_to_back_ns(launches)
                    times[name][1].append(times[name][0][-1] if back is None else back)
        row["right"] = bool(row["right"]) and len(sums) <= 1
        for name, (single, back) in times.items():
            row["sides"][name] = {"single_ns": statistics.median(single), "back_to_back_ns": statistics.median(back)}
        row["kernels"] = self._kernels(first)
        own = row["sides"][next(iter(ours))]["back_to_back_ns"]
        others = [side["back_to_back_ns"] for name, side in row["sides"].items() if name not in ("offsets", "length")]
        others = [time_ns for time_ns in others if time_ns != own] if case.cub else others[1:]
        row["ratio"] = min(others) / own if others else None
        row["gbytes_per_s"] = case.bytes / own
        for each in ours.values():
            each.primitive.release()
        return row

    def _kernels(self, ours: Ours) -> dict[str, float]:
        """Return the time of each kernel, of one call."""
        spans = ours.primitive.execute(enable_gpu_timing=True).get_timing_result().spans
        return {span.label: span.ns for span in spans}

    def forget(self) -> None:
        """Free what the keys take."""
        for array in (self._on_gpu, self._output):
            array.destroy()


def line_of(row: Mapping[str, Any]) -> str:
    """Return a line for people."""
    if "skipped" in row:
        return f"{row['case']}: not here: {row['skipped']:.100}"
    sides = "; ".join(
        f"{name} {side['single_ns'] / 1e3:.1f} / {side['back_to_back_ns'] / 1e3:.1f}"
        for name, side in row["sides"].items()
    )
    ratio = "" if row["ratio"] is None else f"  ratio {row['ratio']:.2f}"
    mark = f" (mark {row['mark']})" if row["mark"] else ""
    wrong = "" if row["right"] else "  WRONG"
    return f"{row['case']}: {sides} µs  {row['gbytes_per_s']:.0f} GB/s{ratio}{mark}{wrong}"


@click.command()
@click.option("--n", "sizes", type=AxisList("n"), default="2^24", show_default=True, help="Keys.")
@click.option("--parts", default="marks,sweep,others", show_default=True, help=f"Some of {', '.join(_PARTS)}.")
@click.option("--samples", default=7, show_default=True, help="Of each side and turn.")
@click.option("--rounds", default=2, show_default=True, help="Turns of each side.")
@click.option("--warmup-s", default=0.02, show_default=True, help="Before each turn.")
@click.option("--settle-s", default=1.0, show_default=True, help="Of copying, before the first case.")
@click.option("--budget-s", default=55.0, show_default=True, help="No case begins later; what is left out is told.")
@click.option("--ours-only", is_flag=True, help="Without CUB.")
@click.option(
    "--cub", "cub_program", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Built before."
)
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    sizes: list[int], parts: str, samples: int, rounds: int, warmup_s: float, settle_s: float, budget_s: float,
    ours_only: bool, cub_program: Path | None, adapter: str | None, json_path: Path | None,
) -> None:  # fmt: skip
    """Measure, check and print."""
    begin = time.perf_counter()
    wanted = tuple(parts.split(","))
    if not set(wanted) <= set(_PARTS):
        raise click.UsageError(f"--parts {parts!r}: known are {', '.join(_PARTS)}")
    device = gw.request_device(adapter)
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []

    def keep() -> None:
        if json_path is not None:
            write_json(json_path, {**run_context(device), "left_out": left_out, "results": rows})

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program: Path | str = "not asked for" if ours_only else cub_program or build_cub(folder, "cub_stream_peer")
        if isinstance(program, str):
            click.echo(f"without CUB: {program}")
        cub = None if isinstance(program, str) else CubServer(program.resolve(), folder)
        click.echo(f"{gw.capabilities(device).adapter}; medians; single / back to back")
        settle(device, settle_s)
        try:
            for n in sizes:
                bench = Bench(device, n, cub, samples, rounds, warmup_s)
                for case in bench.cases(wanted):
                    if time.perf_counter() - begin > budget_s:
                        left_out.append(f"{case.name} at {n}")
                        continue
                    rows.append(bench.measure(case))
                    click.echo(line_of(rows[-1]))
                    keep()  # after each case, so that a run that is cut off leaves what it has
                bench.forget()
                if cub is not None:
                    cub.forget()
        finally:
            if cub is not None:
                cub.close()
    keep()
    if left_out:
        click.echo(f"left out: {'; '.join(left_out)}")
    click.echo(f"{len(rows)} rows in {time.perf_counter() - begin:.1f} s")
    if not all(row.get("right", True) for row in rows):
        raise SystemExit(4)


if __name__ == "__main__":
    main()
