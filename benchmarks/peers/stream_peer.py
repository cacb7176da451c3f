"""Selections, runs, segments, maps, reductions, histograms, merges, top-k and searches beside CUB's.

Usage: python benchmarks/peers/stream_peer.py [--n 2^20,2^24,2^28] [--cases marks] [--budget-s 150] [--json FILE]
       python benchmarks/peers/stream_peer.py --peers none --n 2^12     (any GPU, also a software one)

harness.py says what is measured, and how. Cases are groups (marks, shares, runs, datatypes, others, segments) or
beginnings of names, by semicolons. GB/s counts the bytes that must move: inputs once, values of runs where they are
kept, and the results. Results of both sides are compared by checksums of each output, and up to --reference items with
numpy, too. Tunings of these primitives: gridwise tune benchmarks/variants/shapes.py.

CUB's side is cub_peer.cu. With the headers of a newer CUB it has top-k, too: pip download nvidia-cuda-cccl, unzip,
-I nvidia/cu13/include/cccl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import click
import harness
import numpy as np
from harness import in_parts

import gridwise_py as gw
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.cli.options import AxisList

_HALF_RANGE = 1 << 31

# ---- data


def _words(dtype: type) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: rng.integers(0, np.iinfo(dtype).max, n, dtype=dtype, endpoint=True)


def make_data(name: str, n: int) -> np.ndarray:
    """Return data by its name; a number behind a colon is its parameter, as in ``flags:1/2`` and ``runs:8``."""
    kind, _, parameter = name.partition(":")
    if kind in ("words", "values"):
        return in_parts(n, np.uint32, _words(np.uint32), 1 if kind == "words" else 2)
    if kind == "words64":
        return in_parts(n, np.uint64, _words(np.uint64), 3)
    if kind == "flags":
        share = float(Fraction(parameter))
        return in_parts(n, np.bool_, lambda rng, count: rng.random(count, np.float32) < share, 4)
    if kind in ("runs", "runs64"):
        share = 1 / int(parameter)
        heads = in_parts(n, np.bool_, lambda rng, count: rng.random(count, np.float32) < share, 5)
        return np.cumsum(heads, dtype=np.uint32 if kind == "runs" else np.uint64)
    if kind == "unit":
        return in_parts(n, np.float32, lambda rng, count: rng.random(count, np.float32), 6)
    if kind in ("signs", "signs_b"):
        # Their sums, and those of their products, are exact in f32 in any order: none comes near 2^24.
        seed = 7 if kind == "signs" else 8
        return in_parts(n, np.float32, lambda rng, count: rng.integers(-1, 2, count, dtype=np.int8), seed)
    if kind == "offsets":
        length = int(parameter)
        return np.arange(0, n + 1, length, dtype=np.uint32)
    if kind == "bins":
        bins = int(parameter)
        return make_data("words", n) >> np.uint32(32 - (bins - 1).bit_length())
    if kind == "skewed":  # bin 0 has a fifth to a half of all
        bins = int(parameter)
        return in_parts(n, np.uint32, lambda rng, count: (bins * rng.random(count) ** 8).astype(np.uint32), 9)
    if kind == "zeros":
        return np.zeros(n, np.uint32)
    if kind == "half":
        return make_data(parameter, n // 2)
    if kind == "eighth":
        return make_data(parameter, n // 8)
    if kind == "counts":  # from 0 to twice the mean
        most = 2 * int(parameter)
        return in_parts(n // int(parameter), np.uint32, lambda rng, count: rng.integers(0, most + 1, count), 10)
    if kind == "sorted":
        items = make_data(parameter, n)
        items.sort()
        return items
    if kind == "sorted_half":  # two sorted halves, 0 and 1
        half = make_data("words" if parameter == "0" else "values", n // 2)
        half.sort()
        return half
    raise ValueError(f"no data {name!r}")


class Data:
    """The data of one n: made once, and on the GPU once."""

    def __init__(self, device: Any, n: int):
        self._device, self.n = device, n
        self._host: dict[str, np.ndarray] = {}
        self._arrays: dict[str, gw.Array] = {}

    def host(self, name: str) -> np.ndarray:
        """Return numpy's."""
        if name not in self._host:
            self._host[name] = make_data(name, self.n)
        return self._host[name]

    def array(self, name: str) -> gw.Array:
        """Return the GPU's."""
        if name not in self._arrays:
            self._arrays[name] = gw.asarray(self.host(name), self._device)
        return self._arrays[name]

    def forget(self) -> None:
        """Free it all."""
        for array in self._arrays.values():
            array.destroy()
        self._arrays.clear()
        self._host.clear()


# ---- tasks

Make: TypeAlias = Callable[..., gw.Primitive]


@dataclass(frozen=True)
class Task:
    """A row of the table.

    Attributes
    ----------
    name : str
    group : str
    make : callable
        Takes the device and n, and returns our primitive.
    arguments : mapping from str to str
        Of ours, to names of data.
    outputs : sequence of str
        Of ours, in the order of CUB's.
    bytes_of : callable
        Takes n and the sizes of the outputs, and returns the bytes that must move.
    cub : callable or None
        Takes n, and returns the algorithm and its options in cub_peer.cu.
    cub_data : mapping from str to str
        Options of CUB's that are data, to their names.
    datatype : str
    marks : mapping from int to tuple
        By n the mark and the stretch: how many times CUB's time ours has to be, single calls.
    least : int
        The smallest n that makes sense.
    """

    name: str
    group: str
    make: Make
    arguments: Mapping[str, str]
    outputs: Sequence[str]
    bytes_of: Callable[[int, Sequence[int]], float]
    cub: Callable[[int], tuple[str, dict[str, object]]] | None
    cub_data: Mapping[str, str]
    datatype: str = "u32"
    marks: Mapping[int, tuple[float, float | None]] = field(default_factory=dict)
    least: int = 1


LARGE = 1 << 28
#: These two read the same bytes.
DOT_OF_HALF, REDUCE = "dot of n/2", "reduce"
#: Of the lengths that are swept: by offsets, and of one length that the plan knows.
SEGMENTS, ROWS = "segments", "rows"


def _large(mark: float, stretch: float | None = None) -> dict[int, tuple[float, float | None]]:
    return {LARGE: (mark, stretch)}


def bound_of(share: Fraction) -> int:
    """Return the number that `share` of all words are below; all but one in 2^32 for 1."""
    return min(2**32 - 1, int(share * 2**32))


def _selections(group: str, share: str, selected: dict[int, Any], by_flags: dict[int, Any]) -> list[Task]:
    bound = bound_of(Fraction(share))
    return [
        Task(
            f"select {share}", group, lambda d, n: gw.Select(d, gw.u32("x"), where=gw.u32("x") < bound),
            {"x": "words"}, ["output"], lambda n, s: 4 * n + 4 * s[0],
            lambda n: ("select", {"bound": bound}), {"input": "words"}, marks=selected,
        ),
        Task(
            f"flagged {share}", group, lambda d, n: gw.Select(d, "u32"),
            {"input": "words", "flags": f"flags:{share}"}, ["output"], lambda n, s: 5 * n + 4 * s[0],
            lambda n: ("flagged", {}), {"input": "words", "flags": f"flags:{share}"}, marks=by_flags,
        ),
    ]  # fmt: skip


def _partitions() -> list[Task]:
    third, two_thirds = 2**32 // 3, 2**33 // 3
    x = gw.u32("x")
    return [
        Task(
            "partition in 2", "marks", lambda d, n: gw.Partition(d, x, where=x < _HALF_RANGE),
            {"x": "words"}, ["first", "rest"], lambda n, s: 8 * n,
            lambda n: ("partition2", {"bound": _HALF_RANGE}), {"input": "words"}, marks=_large(1.15, 1.5),
        ),
        Task(
            "partition in 3", "marks", lambda d, n: gw.Partition(d, x, where=[x < third, x >= two_thirds]),
            {"x": "words"}, ["first", "second", "rest"], lambda n, s: 8 * n,
            lambda n: ("partition3", {"bound": third, "second_bound": two_thirds}), {"input": "words"},
            marks=_large(1.5, 2.0),
        ),
    ]  # fmt: skip


#: Of runs: the mark and the stretch where a run has 8 keys on average.
_RUN_MARKS = {
    "unique": (1.15, 1.3), "unique by key": (1.2, 1.4), "run lengths": (1.5, 1.7),
    "reduce by key": (1.1, 1.3), "scan by key": (1.2, 1.3),
}  # fmt: skip


def _runs(length: int) -> list[Task]:
    keys = f"runs:{length}"
    group = "marks" if length == 8 else "runs"
    keyed = {"keys": keys, "values": "values"}
    found = [
        Task(
            "unique", group, lambda d, n: gw.Unique(d, "u32"),
            {"keys": keys}, ["output"], lambda n, s: 4 * n + 4 * s[0], lambda n: ("unique", {}), {"input": keys},
        ),
        Task(
            "unique by key", group, lambda d, n: gw.Unique(d, "u32", "u32"),
            keyed, ["output_keys", "output_values"], lambda n, s: 4 * n + 12 * s[0],
            lambda n: ("unique_by_key", {}), keyed,
        ),
        Task(
            "run lengths", group, lambda d, n: gw.RunLength(d, "u32", outputs=("values", "lengths")),
            {"keys": keys}, ["values", "lengths"], lambda n, s: 4 * n + 8 * s[0],
            lambda n: ("run_length", {}), {"input": keys},
        ),
        Task(
            "reduce by key", group, lambda d, n: gw.ReduceByKey(d, "u32", "u32", gw.Add),
            {"keys": keys, "items": "values"}, ["output_keys", "output_values"], lambda n, s: 8 * n + 8 * s[0],
            lambda n: ("reduce_by_key", {}), keyed,
        ),
        Task(
            "scan by key", group, lambda d, n: gw.ScanByKey(d, "u32", "u32", gw.Add),
            {"keys": keys, "items": "values"}, ["output"], lambda n, s: 12 * n, lambda n: ("scan_by_key", {}), keyed,
        ),
    ]  # fmt: skip
    marks = _RUN_MARKS if length == 8 else {}
    return [
        Task(**{**vars(task), "name": f"{task.name}, runs of {length}",
                "marks": _large(*marks[task.name]) if task.name in marks else {}})
        for task in found
    ]  # fmt: skip


def _segments(group: str, name: str, length: int, marks: dict[int, Any], *, rows: bool = False) -> Task:
    offsets = f"offsets:{length}"
    ours: dict[str, Any] = {"length": length} if rows else {}
    segments = {} if rows else {"offsets": offsets}
    return Task(
        f"{name} of {length}", group, lambda d, n: gw.SegmentedReduce(d, "u32", gw.Add, **ours),
        {"items": "words", **segments}, ["output"], lambda n, s: 4 * n + (4 if rows else 8) * (n // length),
        None if rows else lambda n: ("segmented_reduce", {"segments": n // length}),
        {"input": "words", "offsets": offsets}, marks=marks, least=length,
    )  # fmt: skip


def _argmax(device: Any, datatype: str) -> gw.Primitive:
    item = getattr(gw, datatype)("input")
    return gw.Reduce(device, gw.struct(value=item, index=gw.index), gw.ArgMax)


def _values() -> list[Task]:
    a, b = gw.f32("a"), gw.f32("b")
    pair = {"a": "signs", "b": "signs_b"}
    return [
        Task(
            "map (square)", "marks", lambda d, n: gw.Map(d, "u32", "square"),
            {"input": "words"}, ["output"], lambda n, s: 8 * n, lambda n: ("square", {}), {"input": "words"},
            marks=_large(1.0),
        ),
        Task(
            "argmax", "marks", lambda d, n: _argmax(d, "u32"),
            {"input": "words"}, ["value", "index"], lambda n, s: 4 * n, lambda n: ("argmax", {}), {"input": "words"},
            marks=_large(1.0),
        ),
        Task(
            "dot", "marks", lambda d, n: gw.Reduce(d, a * b),
            pair, ["output"], lambda n, s: 8 * n, lambda n: ("dot", {}), pair, datatype="f32", marks=_large(1.0),
        ),
        Task(
            DOT_OF_HALF, "marks", lambda d, n: gw.Reduce(d, a * b),
            {"a": "half:signs", "b": "half:signs_b"}, ["output"], lambda n, s: 8 * (n // 2), None, {}, datatype="f32",
        ),
        Task(
            REDUCE, "marks", lambda d, n: gw.Reduce(d, "f32"),
            {"input": "signs"}, ["output"], lambda n, s: 4 * n, lambda n: ("reduce", {}), {"input": "signs"},
            datatype="f32",
        ),
    ]  # fmt: skip


def _datatypes() -> list[Task]:
    x = gw.f32("x")
    flags = {"input": "words64", "flags": "flags:1/2"}
    return [
        Task(
            "select 1/2, f32", "datatypes", lambda d, n: gw.Select(d, x, where=x < 0.5),
            {"x": "unit"}, ["output"], lambda n, s: 4 * n + 4 * s[0],
            lambda n: ("select", {"bound": 0.5}), {"input": "unit"}, datatype="f32",
        ),
        Task(
            "flagged 1/2, u64", "datatypes", lambda d, n: gw.Select(d, "u64"),
            flags, ["output"], lambda n, s: 9 * n + 8 * s[0], lambda n: ("flagged", {}), flags, datatype="u64",
        ),
        Task(
            "unique, runs of 8, u64", "datatypes", lambda d, n: gw.Unique(d, "u64"),
            {"keys": "runs64:8"}, ["output"], lambda n, s: 8 * n + 8 * s[0],
            lambda n: ("unique", {}), {"input": "runs64:8"}, datatype="u64",
        ),
        Task(
            "reduce by key, runs of 8, f32", "datatypes", lambda d, n: gw.ReduceByKey(d, "u32", "f32", gw.Add),
            {"keys": "runs:8", "items": "signs"}, ["output_keys", "output_values"], lambda n, s: 8 * n + 8 * s[0],
            lambda n: ("reduce_by_key", {}), {"keys": "runs:8", "values": "signs"}, datatype="f32",
        ),
        Task(
            "scan by key, runs of 8, f32", "datatypes", lambda d, n: gw.ScanByKey(d, "u32", "f32", gw.Add),
            {"keys": "runs:8", "items": "signs"}, ["output"], lambda n, s: 12 * n,
            lambda n: ("scan_by_key", {}), {"keys": "runs:8", "values": "signs"}, datatype="f32",
        ),
        Task(
            "segmented reduce of 1024, f32", "datatypes", lambda d, n: gw.SegmentedReduce(d, "f32", gw.Add),
            {"items": "signs", "offsets": "offsets:1024"}, ["output"], lambda n, s: 4 * n + 8 * (n // 1024),
            lambda n: ("segmented_reduce", {"segments": n // 1024}), {"input": "signs", "offsets": "offsets:1024"},
            datatype="f32",
        ),
        Task(
            "argmax, f32", "datatypes", lambda d, n: _argmax(d, "f32"),
            {"input": "unit"}, ["value", "index"], lambda n, s: 4 * n, lambda n: ("argmax", {}), {"input": "unit"},
            datatype="f32",
        ),
    ]  # fmt: skip


#: By the bins, the mark and the stretch with uniform data.
_HISTOGRAM_MARKS = {256: (3.5, 5.0), 2048: (6.0, 10.0), 1 << 16: (4.0, 8.0)}


def _histograms() -> list[Task]:
    return [
        Task(
            f"histogram of {bins}, {text}", "others",
            lambda d, n, bins=bins: gw.Histogram(d, "u32", bins, range=(0, bins)),
            {"input": data}, ["output"], lambda n, s: 4 * n,
            lambda n, bins=bins: ("histogram", {"bins": bins}), {"input": data},
            marks=_large(*_HISTOGRAM_MARKS[bins]) if text == "uniform" and bins in _HISTOGRAM_MARKS else {},
        )
        for bins in (32, 256, 2048, 1 << 16)
        for text, data in (("uniform", f"bins:{bins}"), ("skewed", f"skewed:{bins}"), ("one bin", "zeros"))
    ]  # fmt: skip


def _top(k: int) -> Task:
    """Return the k largest: here they are sorted, and their indices found, too."""
    return Task(
        f"top {k}", "others", lambda d, n: gw.TopK(d, "u32", k), {"input": "words"}, ["values"],
        lambda n, s: 4 * n, lambda n: ("top_k", {"k": k}), {"input": "words"}, least=k,
    )  # fmt: skip


def _others() -> list[Task]:
    found = _histograms()
    found += [_top(k) for k in (8, 100, 10_000)]
    found.append(
        Task(
            "repeat by counts of 8", "others", lambda d, n: gw.Repeat(d, "u32", size=n),
            {"values": "eighth:words", "counts": "counts:8"}, ["output"], lambda n, s: 8 * (n // 8) + 4 * s[0],
            None, {}, least=8,
        )
    )  # fmt: skip
    halves = {"a": "sorted_half:0", "b": "sorted_half:1"}
    found.append(
        Task(
            "merge", "others", lambda d, n: gw.Merge(d, "u32"), halves, ["output"],
            lambda n, s: 8 * n, lambda n: ("merge", {}), halves, marks=_large(0.95, 1.05), least=2,
        )
    )  # fmt: skip
    found.append(
        Task(
            "lower bound", "others", lambda d, n: gw.Search(d, "u32"),
            {"sorted": "sorted:words", "queries": "values"}, ["output"], lambda n, s: 12 * n,
            lambda n: ("lower_bound", {"sorted_items": n}), {"sorted": "sorted:words", "queries": "values"},
        )
    )  # fmt: skip
    for algorithm, text in (("segmented_sort", "segmented sort"), ("segmented_radix_sort", "segmented radix sort")):
        for length in (1 << 8, 1 << 12):
            found.append(
                Task(
                    f"{text} of {length}", "others", lambda d, n: gw.SegmentedSort(d, "u32"),
                    {"keys": "words", "offsets": f"offsets:{length}"}, ["output_keys"], lambda n, s: 8 * n,
                    lambda n, a=algorithm, size=length: (a, {"segments": n // size}),
                    {"input": "words", "offsets": f"offsets:{length}"}, least=length,
                )
            )  # fmt: skip
    return found


def all_tasks(largest: int = LARGE) -> list[Task]:
    """Return all tasks; `largest` is the n up to which lengths of segments are swept."""
    found = _selections("marks", "1/2", _large(1.15, 1.3), _large(1.25, 1.4)) + _partitions() + _runs(8)
    for length, mark in ((1 << 16, 1.0), (1 << 10, 1.6), (1 << 4, 20.0)):
        found.append(_segments("marks", "segmented reduce", length, _large(mark)))
    found += _values()
    for share in ("0", "1/100", "1"):
        found += _selections("shares", share, {}, {})
    found += _runs(1) + _runs(1000) + _datatypes() + _others()
    for name in (SEGMENTS, ROWS):
        found += [_segments("segments", name, 1 << k, {}, rows=name == ROWS) for k in range(largest.bit_length())]
    return found


class Sides:
    """Both sides of the tasks of one n.

    Parameters
    ----------
    bench : Bench
    n : int
    reference : int
        Up to so many items our results are compared with numpy's, too.
    """

    def __init__(self, bench: harness.Bench, n: int, reference: int):
        self._bench, self._n, self._reference = bench, n, reference
        self._data = Data(bench.device, n)
        self._sums: dict[str, list[int]] = {}

    def ours(self, task: Task) -> harness.Ours:
        """Return ours."""
        primitive = task.make(self._bench.device, self._n)

        def wrong(outputs: Mapping[str, np.ndarray]) -> str | None:
            arrays = dict(outputs)  # CUB writes the fields of a struct to arrays
            for items in outputs.values():
                arrays |= {name: np.ascontiguousarray(items[name]) for name in items.dtype.names or ()}
            self._sizes = [arrays[name].size for name in task.outputs]
            if task.cub is not None and "cub" in self._bench.peers:
                self._sums[task.name] = [harness.checksum(arrays[name]) for name in task.outputs]
            if self._n > self._reference:
                return None
            inputs = {name: self._data.host(data) for name, data in task.arguments.items()}
            found = mismatch(primitive, inputs, dict(outputs))
            return None if found is None else str(found)

        side = harness.Ours(primitive, {name: self._data.array(data) for name, data in task.arguments.items()}, wrong)
        if self._n > self._reference and "cub" not in self._bench.peers:
            side.correct = None  # nobody looked
        return side

    def cub(self, task: Task) -> harness.Cub:
        """Return CUB's; its results have to be ours."""
        server = self._bench.cub
        assert task.cub is not None
        algorithm, options = task.cub(self._n)
        words = [f"{key}={value}" for key, value in {**options, **task.cub_data}.items()]
        data = {name: self._data.host(name) for name in task.cub_data.values()}
        return harness.Cub(server, ("case", algorithm, task.datatype, self._n, *words), data, self._sums.get(task.name))

    def case(self, task: Task) -> harness.Case:
        """Return both as a case."""
        sides: dict[str, Callable[[], harness.Side]] = {harness.OURS: lambda: self.ours(task)}
        if task.cub is not None:
            sides["cub"] = lambda: self.cub(task)

        def moved(made: Mapping[str, harness.Side]) -> float | None:
            cub = made.get("cub")
            sizes = self._sizes if harness.OURS in made else cub.counts if isinstance(cub, harness.Cub) else None
            return None if sizes is None else task.bytes_of(self._n, sizes)

        mark = task.marks.get(self._n)
        return harness.Case(
            task.name, self._n, sides, task.group, moved, {"datatype": task.datatype},
            {} if mark is None else {"cub": ("single", *mark)},
        )  # fmt: skip

    def forget(self) -> None:
        """Free the data."""
        self._data.forget()
        self._bench.forget()


@harness.command(
    __doc__, n="2^20,2^24,2^28", peers="cub", cases="marks",
    more=[
        click.option(
            "--reference", type=AxisList("n"), default="2^20", show_default=True, help="Compared with numpy up to here."
        )
    ],
)  # fmt: skip
def main(bench: harness.Bench, reference: list[int]) -> Iterator[harness.Case]:
    """Yield the cases."""
    for n in sorted(bench.sizes):
        sides = Sides(bench, n, max(reference))
        for task in all_tasks(max(bench.sizes)):
            if task.least <= n:
                yield sides.case(task)
        sides.forget()


if __name__ == "__main__":
    main()
