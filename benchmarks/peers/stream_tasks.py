"""What stream_peer.py measures: the data, our primitive, CUB's call, the bytes that must move, and the mark."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

import gridwise_py as gw

_PART_ITEMS = 1 << 22
_HALF_RANGE = 1 << 31

# ---- data


def in_parts(n: int, dtype: type, fill: Callable[[np.random.Generator, int], np.ndarray], seed: int) -> np.ndarray:
    """Return n random items, made by all cores; the same ones for any number of cores."""
    items = np.empty(n, dtype)

    def one(part: int) -> None:
        begin, end = part * _PART_ITEMS, min(n, (part + 1) * _PART_ITEMS)
        items[begin:end] = fill(np.random.default_rng((seed, part)), end - begin)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, range(-(-n // _PART_ITEMS))))
    return items


def checksum(items: np.ndarray) -> int:
    """Return the sum of all 32-bit words, each times its place plus one, modulo 2^64."""
    words = np.ascontiguousarray(items).view(np.uint32)
    places = np.arange(1, min(words.size, _PART_ITEMS) + 1, dtype=np.uint64)

    def one(begin: int) -> int:
        part = words[begin : begin + _PART_ITEMS].astype(np.uint64)
        own = int((part * places[: part.size]).sum(dtype=np.uint64))
        return own + begin * int(part.sum(dtype=np.uint64))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(one, range(0, words.size, _PART_ITEMS))) % (1 << 64)


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
    needs : str
        The class of this library; where it is missing, only CUB is measured.
    make : callable
        Takes the device, n and a tuning, and returns our primitive.
    arguments : mapping from str to str
        Of ours, to names of data.
    outputs : sequence of str
        Of ours, in the order of CUB's.
    bytes_of : callable
        Takes n and the sizes of the outputs, and returns the bytes that must move.
    cub : callable or None
        Takes n, and returns the algorithm and its options in cub_stream_peer.cu.
    cub_data : mapping from str to str
        Options of CUB's that are data, to their names.
    datatype : str
    marks : mapping from int to tuple
        By n the mark and the stretch: how many times CUB's time ours has to be, single calls.
    also_needs : str
        A name in the library besides the class.
    least : int
        The smallest n that makes sense.
    """

    name: str
    group: str
    needs: str
    make: Make
    arguments: Mapping[str, str]
    outputs: Sequence[str]
    bytes_of: Callable[[int, Sequence[int]], float]
    cub: Callable[[int], tuple[str, dict[str, object]]] | None
    cub_data: Mapping[str, str]
    datatype: str = "u32"
    marks: Mapping[int, tuple[float, float | None]] = field(default_factory=dict)
    also_needs: str = ""
    least: int = 1

    def missing(self) -> str | None:
        """Return what this library lacks for it."""
        return next((name for name in (self.needs, self.also_needs) if name and not hasattr(gw, name)), None)


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
            f"select {share}", group, "Select",
            lambda d, n, t: gw.Select(d, gw.u32("x"), where=gw.u32("x") < bound, tuning=t),
            {"x": "words"}, ["output"], lambda n, s: 4 * n + 4 * s[0],
            lambda n: ("select", {"bound": bound}), {"input": "words"}, marks=selected,
        ),
        Task(
            f"flagged {share}", group, "Select", lambda d, n, t: gw.Select(d, "u32", tuning=t),
            {"input": "words", "flags": f"flags:{share}"}, ["output"], lambda n, s: 5 * n + 4 * s[0],
            lambda n: ("flagged", {}), {"input": "words", "flags": f"flags:{share}"}, marks=by_flags,
        ),
    ]  # fmt: skip


def _partitions() -> list[Task]:
    third, two_thirds = 2**32 // 3, 2**33 // 3
    x = gw.u32("x")
    return [
        Task(
            "partition in 2", "marks", "Partition",
            lambda d, n, t: gw.Partition(d, x, where=x < _HALF_RANGE, tuning=t),
            {"x": "words"}, ["first", "rest"], lambda n, s: 8 * n,
            lambda n: ("partition2", {"bound": _HALF_RANGE}), {"input": "words"}, marks=_large(1.4, 1.7),
        ),
        Task(
            "partition in 3", "marks", "Partition",
            lambda d, n, t: gw.Partition(d, x, where=[x < third, x >= two_thirds], tuning=t),
            {"x": "words"}, ["first", "second", "rest"], lambda n, s: 8 * n,
            lambda n: ("partition3", {"bound": third, "second_bound": two_thirds}), {"input": "words"},
            marks=_large(1.8, 2.4),
        ),
    ]  # fmt: skip


#: Of runs: the mark and the stretch where a run has 8 keys on average.
_RUN_MARKS = {
    "unique": (1.3, 1.7), "unique by key": (1.2, 1.5), "run lengths": (1.5, 2.2),
    "reduce by key": (1.25, 1.5), "scan by key": (1.2, 1.35),
}  # fmt: skip


def _runs(length: int) -> list[Task]:
    keys = f"runs:{length}"
    group = "marks" if length == 8 else "runs"
    keyed = {"keys": keys, "values": "values"}
    found = [
        Task(
            "unique", group, "Unique", lambda d, n, t: gw.Unique(d, "u32", tuning=t),
            {"keys": keys}, ["output"], lambda n, s: 4 * n + 4 * s[0], lambda n: ("unique", {}), {"input": keys},
        ),
        Task(
            "unique by key", group, "Unique", lambda d, n, t: gw.Unique(d, "u32", "u32", tuning=t),
            keyed, ["output_keys", "output_values"], lambda n, s: 4 * n + 12 * s[0],
            lambda n: ("unique_by_key", {}), keyed,
        ),
        Task(
            "run lengths", group, "RunLength",
            lambda d, n, t: gw.RunLength(d, "u32", outputs=("values", "lengths"), tuning=t),
            {"keys": keys}, ["values", "lengths"], lambda n, s: 4 * n + 8 * s[0],
            lambda n: ("run_length", {}), {"input": keys},
        ),
        Task(
            "reduce by key", group, "ReduceByKey", lambda d, n, t: gw.ReduceByKey(d, "u32", "u32", gw.Add, tuning=t),
            {"keys": keys, "items": "values"}, ["output_keys", "output_values"], lambda n, s: 8 * n + 8 * s[0],
            lambda n: ("reduce_by_key", {}), keyed,
        ),
        Task(
            "scan by key", group, "ScanByKey", lambda d, n, t: gw.ScanByKey(d, "u32", "u32", gw.Add, tuning=t),
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
        f"{name} of {length}", group, "SegmentedReduce",
        lambda d, n, t: gw.SegmentedReduce(d, "u32", gw.Add, **ours, **({} if rows else {"tuning": t})),
        {"items": "words", **segments}, ["output"], lambda n, s: 4 * n + (4 if rows else 8) * (n // length),
        None if rows else lambda n: ("segmented_reduce", {"segments": n // length}),
        {"input": "words", "offsets": offsets}, marks=marks, least=length,
    )  # fmt: skip


def _argmax(device: Any, datatype: str, tuning: Any) -> gw.Primitive:
    item = getattr(gw, datatype)("input")
    return gw.Reduce(device, gw.struct(value=item, index=gw.index), gw.ArgMax, tuning=tuning)


def _values() -> list[Task]:
    a, b = gw.f32("a"), gw.f32("b")
    pair = {"a": "signs", "b": "signs_b"}
    return [
        Task(
            "map (square)", "marks", "Map", lambda d, n, t: gw.Map(d, "u32", "square", tuning=t),
            {"input": "words"}, ["output"], lambda n, s: 8 * n, lambda n: ("square", {}), {"input": "words"},
            marks=_large(1.0),
        ),
        Task(
            "argmax", "marks", "Reduce", lambda d, n, t: _argmax(d, "u32", t),
            {"input": "words"}, ["value", "index"], lambda n, s: 4 * n, lambda n: ("argmax", {}), {"input": "words"},
            marks=_large(1.0), also_needs="ArgMax",
        ),
        Task(
            "dot", "marks", "Reduce", lambda d, n, t: gw.Reduce(d, a * b, tuning=t),
            pair, ["output"], lambda n, s: 8 * n, lambda n: ("dot", {}), pair, datatype="f32", marks=_large(1.0),
        ),
        Task(
            DOT_OF_HALF, "marks", "Reduce", lambda d, n, t: gw.Reduce(d, a * b, tuning=t),
            {"a": "half:signs", "b": "half:signs_b"}, ["output"], lambda n, s: 8 * (n // 2), None, {}, datatype="f32",
        ),
        Task(
            REDUCE, "marks", "Reduce", lambda d, n, t: gw.Reduce(d, "f32", tuning=t),
            {"input": "signs"}, ["output"], lambda n, s: 4 * n, lambda n: ("reduce", {}), {"input": "signs"},
            datatype="f32",
        ),
    ]  # fmt: skip


def _datatypes() -> list[Task]:
    x = gw.f32("x")
    flags = {"input": "words64", "flags": "flags:1/2"}
    return [
        Task(
            "select 1/2, f32", "datatypes", "Select", lambda d, n, t: gw.Select(d, x, where=x < 0.5, tuning=t),
            {"x": "unit"}, ["output"], lambda n, s: 4 * n + 4 * s[0],
            lambda n: ("select", {"bound": 0.5}), {"input": "unit"}, datatype="f32",
        ),
        Task(
            "flagged 1/2, u64", "datatypes", "Select", lambda d, n, t: gw.Select(d, "u64", tuning=t),
            flags, ["output"], lambda n, s: 9 * n + 8 * s[0], lambda n: ("flagged", {}), flags, datatype="u64",
        ),
        Task(
            "unique, runs of 8, u64", "datatypes", "Unique", lambda d, n, t: gw.Unique(d, "u64", tuning=t),
            {"keys": "runs64:8"}, ["output"], lambda n, s: 8 * n + 8 * s[0],
            lambda n: ("unique", {}), {"input": "runs64:8"}, datatype="u64",
        ),
        Task(
            "reduce by key, runs of 8, f32", "datatypes", "ReduceByKey",
            lambda d, n, t: gw.ReduceByKey(d, "u32", "f32", gw.Add, tuning=t),
            {"keys": "runs:8", "items": "signs"}, ["output_keys", "output_values"], lambda n, s: 8 * n + 8 * s[0],
            lambda n: ("reduce_by_key", {}), {"keys": "runs:8", "values": "signs"}, datatype="f32",
        ),
        Task(
            "scan by key, runs of 8, f32", "datatypes", "ScanByKey",
            lambda d, n, t: gw.ScanByKey(d, "u32", "f32", gw.Add, tuning=t),
            {"keys": "runs:8", "items": "signs"}, ["output"], lambda n, s: 12 * n,
            lambda n: ("scan_by_key", {}), {"keys": "runs:8", "values": "signs"}, datatype="f32",
        ),
        Task(
            "segmented reduce of 1024, f32", "datatypes", "SegmentedReduce",
            lambda d, n, t: gw.SegmentedReduce(d, "f32", gw.Add, tuning=t),
            {"items": "signs", "offsets": "offsets:1024"}, ["output"], lambda n, s: 4 * n + 8 * (n // 1024),
            lambda n: ("segmented_reduce", {"segments": n // 1024}), {"input": "signs", "offsets": "offsets:1024"},
            datatype="f32",
        ),
        Task(
            "argmax, f32", "datatypes", "Reduce", lambda d, n, t: _argmax(d, "f32", t),
            {"input": "unit"}, ["value", "index"], lambda n, s: 4 * n, lambda n: ("argmax", {}), {"input": "unit"},
            datatype="f32", also_needs="ArgMax",
        ),
    ]  # fmt: skip


#: By the bins, the mark and the stretch with uniform data.
_HISTOGRAM_MARKS = {256: (3.5, 5.0), 2048: (6.0, 10.0), 1 << 16: (4.0, 8.0)}


def _histograms() -> list[Task]:
    return [
        Task(
            f"histogram of {bins}, {text}", "others", "Histogram",
            lambda d, n, t, bins=bins: gw.Histogram(d, "u32", bins, range=(0, bins), tuning=t),
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
        f"top {k}", "others", "TopK", lambda d, n, t: gw.TopK(d, "u32", k, tuning=t), {"input": "words"}, ["values"],
        lambda n, s: 4 * n, lambda n: ("top_k", {"k": k}), {"input": "words"}, least=k,
    )  # fmt: skip


def _others() -> list[Task]:
    found = _histograms()
    found += [_top(k) for k in (8, 100, 10_000)]
    found.append(
        Task(
            "repeat by counts of 8", "others", "Repeat", lambda d, n, t: gw.Repeat(d, "u32", size=n, tuning=t),
            {"values": "eighth:words", "counts": "counts:8"}, ["output"], lambda n, s: 8 * (n // 8) + 4 * s[0],
            None, {}, least=8,
        )
    )  # fmt: skip
    halves = {"a": "sorted_half:0", "b": "sorted_half:1"}
    found.append(
        Task(
            "merge", "others", "Merge", lambda d, n, t: gw.Merge(d, "u32", tuning=t), halves, ["output"],
            lambda n, s: 8 * n, lambda n: ("merge", {}), halves, marks=_large(0.95, 1.05), least=2,
        )
    )  # fmt: skip
    found.append(
        Task(
            "lower bound", "others", "Search", lambda d, n, t: gw.Search(d, "u32", tuning=t),
            {"sorted": "sorted:words", "queries": "values"}, ["output"], lambda n, s: 12 * n,
            lambda n: ("lower_bound", {"sorted_items": n}), {"sorted": "sorted:words", "queries": "values"},
        )
    )  # fmt: skip
    for algorithm, text in (("segmented_sort", "segmented sort"), ("segmented_radix_sort", "segmented radix sort")):
        for length in (1 << 8, 1 << 12):
            found.append(
                Task(
                    f"{text} of {length}", "others", "SegmentedSort",
                    lambda d, n, t: gw.SegmentedSort(d, "u32", tuning=t),
                    {"keys": "words", "offsets": f"offsets:{length}"}, ["output_keys"], lambda n, s: 8 * n,
                    lambda n, a=algorithm, size=length: (a, {"segments": n // size}),
                    {"input": "words", "offsets": f"offsets:{length}"}, least=length,
                )
            )  # fmt: skip
    return found


def all_tasks(largest: int = LARGE) -> list[Task]:
    """Return all tasks; `largest` is the n up to which lengths of segments are swept."""
    found = _selections("marks", "1/2", _large(1.2, 1.5), _large(1.2, 1.5)) + _partitions() + _runs(8)
    for length, mark in ((1 << 16, 1.0), (1 << 10, 1.6), (1 << 4, 20.0)):
        found.append(_segments("marks", "segmented reduce", length, _large(mark)))
    found += _values()
    for share in ("0", "1/100", "1"):
        found += _selections("shares", share, {}, {})
    found += _runs(1) + _runs(1000) + _datatypes() + _others()
    for name in (SEGMENTS, ROWS):
        found += [_segments("segments", name, 1 << k, {}, rows=name == ROWS) for k in range(largest.bit_length())]
    return found


GROUPS = ("marks", "shares", "runs", "datatypes", "others", "segments")


def chosen(tasks: Sequence[Task], words: str) -> list[Task]:
    """Return the tasks of these groups or names, or whose names begin so, in the order of the words.

    Raises
    ------
    ValueError
        If a word fits nothing.
    """
    found: dict[int, Task] = {}
    for word in filter(None, (part.strip() for part in words.split(";"))):
        fitting = [task for task in tasks if word in (task.group, task.name)]
        fitting = fitting or [task for task in tasks if task.name.startswith(word)]
        if not fitting:
            raise ValueError(f"no case begins with {word!r}; groups are {', '.join(GROUPS)}")
        found |= {id(task): task for task in fitting}
    return list(found.values())
