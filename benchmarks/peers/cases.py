"""Primitives beside CUB, PyTorch and CuPy on the same GPU: one table of cases.

Usage: python benchmarks/peers/cases.py [--n 2^20,2^24,2^28] [--cases "sorts;top k"] [--budget-s 150] [--json FILE]
       python benchmarks/peers/cases.py --n 2^12 --peers none      (any GPU, also a software one)

harness.py says what is measured, and how. Cases are groups or beginnings of names, by semicolons:

arrays, sorts       copy, vector_add, reduce, scan, scan_exclusive; sort, sort_pairs (of --distributions)
products            of matrices of n × n, at most 2^14; GRIDWISE_ENGINE=dawn has tensor cores for f16
marks, shares, runs, adversarial, datatypes, others, segments
                    selections, partitions, runs, keys, segments, maps, histograms, top-k, merges, searches: CUB
segmented sorts     of 1 to n keys, by offsets (with longest= and without) and of one length: CUB's two
moves               transposes, flips, rolls, scatters beside our copies and gathers
axis, axis scans    sums and prefix sums along an axis: a square, four columns, four rows, rows whose length is no
                    multiple of 4, narrow and batched ones
reductions          argmax and its like; "ascending" is the worst case: every tile has a new maximum
top k               the 100 largest; "ascending": they lie together, at the end; "all equal"; "adversarial": see data.py
search              as many queries as keys; "index": 0, 1, 2, …, not stored; `binary` is without samples of keys
gather, take        random items of an array of 2^14 to 2^26 items, by an expression and by `gw.take`
find, both ends, nth, ranges
                    the first item that is not 0; smallest and largest; the median; ranges of 8 to 2^20 items, copied

`plain` is what reads the same items and does less: a maximum, a copy. GB/s counts inputs once, and results. Ours
is compared with numpy's, beyond --reference items only where CUB has no such case; what a peer gives with ours. PyTorch
has few kernels for u32, so it gets int32, and some of its results, such as sorts of these, are not looked at.

CUB's side is cub_peer.cu. With the headers of a newer CUB it has top-k, too: pip download nvidia-cuda-cccl, unzip,
-I nvidia/cu13/include/cccl.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import click
import harness
import numpy as np
from data import Data

import gridwise_py as gw
from gridwise_py.bench.cases.distributions import UNIFORM
from gridwise_py.bench.cases.own_primitives import ScatteredRanges
from gridwise_py.bench.checks.check import differences
from gridwise_py.internals import Oracle
from gridwise_py.primitives.reorder import Reorder
from gridwise_py.primitives.take import Take

#: Data of outputs that have to be given; no case reads it.
OUTPUT = "zeros:<u4"
LARGE, HALF_RANGE, MOST_ROWS = 1 << 28, 1 << 31, 1 << 14
Outputs: TypeAlias = Mapping[str, np.ndarray]
#: Takes a device, and returns a primitive.
Make: TypeAlias = Callable[[Any], gw.Primitive]
#: Takes the module and the arrays, and returns the call.
Prepare: TypeAlias = Callable[..., Callable[[], Any]]


@dataclass(frozen=True)
class Own:
    """A side of ours: what makes the primitive, the names of its arguments' data, and numpy's way if it has no twin."""

    make: Make
    inputs: Mapping[str, str]
    reference: Callable[..., np.ndarray] | None = None


@dataclass(frozen=True)
class OfCub:
    """A side of CUB's: the algorithm, its options, and those that are data, by name."""

    algorithm: str
    options: Mapping[str, object]
    inputs: Mapping[str, str]


@dataclass(frozen=True)
class OfLibrary:
    """A side of PyTorch's or CuPy's: what prepares the call, its data, and what of the result has to be ours."""

    prepare: Prepare
    inputs: tuple[str, ...]
    compared: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Row:
    """A case of the table for one number of items.

    Attributes
    ----------
    name, group : str
    sides : mapping from str to Own, OfCub or OfLibrary
        The first one is ours. Names of peers begin with ``cub``, ``torch`` or ``cupy``.
    outputs : tuple of str
        Of the first side, in the order of CUB's. A library's result is compared with the first one.
    n : int, optional
        Where it is not that of the table.
    tolerance : float
        Of what is compared with libraries' results; 0 for results that are exact.
    facts, marks : mapping
        As of `harness.Case`.
    """

    name: str
    group: str
    sides: Mapping[str, Own | OfCub | OfLibrary]
    outputs: tuple[str, ...] = ("output",)
    n: int | None = None
    tolerance: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    marks: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])


# ---- calls of libraries


def whole(result: Any) -> Any:
    """Return a result, all of which is compared."""
    return result


def first(results: Any) -> Any:
    """Return the first of several results."""
    return results[0]


def filling(name: str, *more: Any, dtype: bool = False, **options: Any) -> Prepare:
    """Return what prepares a function that is given the output which its first call made."""

    def prepare(module: Any, *arrays: Any) -> Callable[[], Any]:
        function = partial(getattr(module, name), *arrays, *more, **options)
        if dtype:
            function = partial(function, dtype=arrays[0].dtype)
        made = function()
        return partial(function, out=tuple(made) if isinstance(made, tuple) else made)

    return prepare


def method(name: str) -> Prepare:
    """Return what prepares a method of the first array."""
    return lambda _module, x: getattr(x, name)


def copy_by_cupy(cupy: Any, x: Any) -> Callable[[], Any]:
    """Prepare a copy."""
    out = cupy.empty_like(x)

    def copy() -> Any:
        cupy.copyto(out, x)
        return out

    return copy


def both(prepare: Prepare, *inputs: str, compared: Callable[[Any], Any] | None = whole) -> dict[str, OfLibrary]:
    """Return the sides of PyTorch and CuPy where both have one call."""
    return dict.fromkeys(("torch", "cupy"), OfLibrary(prepare, inputs, compared))


# ---- arrays, sorts, products


def arrays(datatype: str) -> Iterator[Row]:
    """Yield copies, sums and scans."""
    floats = datatype == "f32"
    # Sums of signs are exact.
    items, a, b = ("signs", "signs", "signs_b") if floats else ("words", "words", "values")
    specs: dict[str, tuple[Make, dict[str, str], dict[str, OfLibrary]]] = {
        "copy": (
            lambda d: gw.Copy(d, datatype), {"input": items},
            {"torch": OfLibrary(lambda module, x: partial(module.empty_like(x).copy_, x), (items,), whole),
             "cupy": OfLibrary(copy_by_cupy, (items,), whole)},
        ),
        "vector_add": (lambda d: gw.VectorAdd(d, datatype), {"a": a, "b": b}, both(filling("add"), a, b)),
        "reduce": (lambda d: gw.Reduce(d, datatype), {"input": items}, both(filling("sum", 0, dtype=True), items)),
        "scan": (lambda d: gw.Scan(d, datatype), {"input": items}, both(filling("cumsum", 0, dtype=True), items)),
        "scan_exclusive": (lambda d: gw.Scan(d, datatype, kind="exclusive"), {"input": items}, {}),
    }  # fmt: skip
    for spec, (make, inputs, libraries) in specs.items():
        sides = {harness.OURS: Own(make, inputs), "cub": OfCub(spec, {}, inputs), **libraries}
        yield Row(f"{spec}, {datatype}", "arrays", sides, facts={"primitive": spec, "datatype": datatype})


def sorts(datatype: str, distribution: str) -> Iterator[Row]:
    """Yield sorts of keys, and of keys with values."""
    keys = f"{distribution}:{datatype}"
    words = [*([distribution] if distribution != UNIFORM else []), datatype]
    facts = {"datatype": datatype, "distribution": distribution}
    libraries = {
        "torch": OfLibrary(filling("sort", stable=True), (keys,)),
        "cupy": OfLibrary(lambda module, x: partial(module.sort, x), (keys,)),
    }
    pairs = {"keys": keys, "values": "values"}
    sort = {
        harness.OURS: Own(lambda d: gw.Sort(d, datatype), {"input": keys}),
        "cub": OfCub("sort", {}, {"input": keys}),
    }
    yield Row(", ".join(["sort", *words]), "sorts", sort | libraries, facts={"primitive": "sort", **facts})
    of_pairs = {harness.OURS: Own(lambda d: gw.SortPairs(d, datatype), pairs), "cub": OfCub("sort_pairs", {}, pairs)}
    name, outputs = ", ".join(["sort_pairs", *words]), ("output_keys", "output_values")
    yield Row(name, "sorts", of_pairs, outputs, facts={"primitive": "sort_pairs", **facts})


def product(n: int, datatype: str) -> Row:
    """Return a product of two matrices of n × n."""
    dtype = datatype.replace("f", "float")
    a, b = f"matrix:{dtype}@{n * n}", f"uniform:{datatype}@{n * n}"

    def prepare(module: Any, *matrices: Any) -> Callable[[], Any]:
        return filling("matmul")(module, *(one.reshape(n, n) for one in matrices))

    ours = Own(lambda d: gw.MatMul(d, datatype, m=n, n=n, k=n), {"a": a, "b": b})
    facts = {"primitive": "matmul", "datatype": datatype, "operations": 2 * n**3}
    tolerance = 2e-2 if datatype == "f16" else 1e-3
    sides = {harness.OURS: ours, **both(prepare, a, b)}
    return Row(f"product of n × n, {datatype}", "products", sides, tolerance=tolerance, facts=facts)


# ---- streams


def stream(
    name: str, group: str, make: Make, inputs: Mapping[str, str], cub: str, outputs: tuple[str, ...] = ("output",), *,
    of_cub: Mapping[str, str] | None = None, datatype: str = "u32", mark: tuple[float, ...] = (), **options: object,
) -> Row:  # fmt: skip
    """Return a case beside CUB; `mark` is of single calls, and its data those of ours unless `of_cub` has them."""
    sides = {harness.OURS: Own(make, inputs), "cub": OfCub(cub, options, inputs if of_cub is None else of_cub)}
    marks = {"cub": ("single", *mark)} if mark else {}
    return Row(name, group, sides, outputs, facts={"datatype": datatype}, marks=marks)


def selections(group: str, share: str, *marks: tuple[float, float]) -> Iterator[Row]:
    """Yield selections of a share of all words, by a predicate and by flags."""
    numerator, _, denominator = share.partition("/")
    bound = min(2**32 - 1, int(numerator) * 2**32 // int(denominator or 1))
    x, flags = gw.u32("x"), {"input": "words", "flags": f"flags:{share}"}
    mark, of_flags = marks or ((), ())
    yield stream(
        f"select {share}", group, lambda d: gw.Select(d, x, where=x < bound), {"x": "words"}, "select",
        of_cub={"input": "words"}, mark=mark, bound=bound,
    )  # fmt: skip
    yield stream(f"flagged {share}", group, lambda d: gw.Select(d, "u32"), flags, "flagged", mark=of_flags)


def partitions() -> Iterator[Row]:
    """Yield partitions of all words."""
    x, (third, two_thirds) = gw.u32("x"), (2**32 // 3, 2**33 // 3)
    words = {"input": "words"}
    yield stream(
        "partition in 2", "marks", lambda d: gw.Partition(d, x, where=x < HALF_RANGE), {"x": "words"}, "partition2",
        ("first", "rest"), of_cub=words, mark=(1.15, 1.5), bound=HALF_RANGE,
    )  # fmt: skip
    yield stream(
        "partition in 3", "marks", lambda d: gw.Partition(d, x, where=[x < third, x >= two_thirds]), {"x": "words"},
        "partition3", ("first", "second", "rest"), of_cub=words, mark=(1.5, 2.0), bound=third, second_bound=two_thirds,
    )  # fmt: skip


def runs(keys: str, text: str, group: str = "runs") -> Iterator[Row]:
    """Yield what is done with runs of equal keys, which are this data, and called by this text."""
    keyed, items = {"keys": keys, "values": "values"}, {"keys": keys, "items": "values"}
    pairs = ("output_keys", "output_values")
    rows = [
        stream("unique", group, lambda d: gw.Unique(d, "u32"), {"keys": keys}, "unique", of_cub={"input": keys},
               mark=(1.15, 1.3)),
        stream("unique by key", group, lambda d: gw.Unique(d, "u32", "u32"), keyed, "unique_by_key", pairs,
               mark=(1.2, 1.4)),
        stream("run lengths", group, lambda d: gw.RunLength(d, "u32", outputs=("values", "lengths")), {"keys": keys},
               "run_length", ("values", "lengths"), of_cub={"input": keys}, mark=(1.5, 1.7)),
        stream("reduce by key", group, lambda d: gw.ReduceByKey(d, "u32", "u32", gw.Add), items, "reduce_by_key", pairs,
               of_cub=keyed, mark=(1.1, 1.3)),
        stream("scan by key", group, lambda d: gw.ScanByKey(d, "u32", "u32", gw.Add), items, "scan_by_key",
               of_cub=keyed, mark=(1.2, 1.3)),
    ]  # fmt: skip
    for row in rows:
        yield replace(row, name=f"{row.name}, {text}", marks=row.marks if group == "marks" else {})


def adversarial() -> Iterator[Row]:
    """Yield runs that end beside the ends of tiles of 8,192 items, one key, and floats that are all NaN."""
    kinds = {f"equal_runs:{length}": f"equal runs of {length}" for length in (2, 8191, 8193)} | {"zeros:u4": "one key"}
    for keys, text in kinds.items():  # a scan by key takes as long for all
        yield from (row for row in runs(keys, text, "adversarial") if not row.name.startswith("scan"))
    for row in sorts("f32", "nan"):
        yield replace(row, group="adversarial", facts={"datatype": "f32"})
    x = gw.f32("x")
    yield stream(
        "select, nan, f32", "adversarial", lambda d: gw.Select(d, x, where=x < 0.5), {"x": "nan:f32"}, "select",
        of_cub={"input": "nan:f32"}, datatype="f32", bound=0.5,
    )  # fmt: skip


def sums_of_segments(n: int, group: str, name: str, length: int, mark: tuple[float, ...] = ()) -> Row:
    """Return sums of segments: by offsets, or, called rows, of a length that the plan knows, beside nothing."""
    by_offsets = {"offsets": f"offsets:{length}"} if name != "rows" else {}
    known = {} if by_offsets else {"length": length}
    row = stream(
        f"{name} of {length}", group, lambda d: gw.SegmentedReduce(d, "u32", gw.Add, **known),
        {"items": "words", **by_offsets}, "segmented_reduce", of_cub={"input": "words", **by_offsets}, mark=mark,
        segments=-(-n // length),
    )  # fmt: skip
    return row if by_offsets else replace(row, sides={harness.OURS: row.sides[harness.OURS]})


def argmax(datatype: str, op: Any = gw.ArgMax) -> Make:
    """Return what makes a reduction to the largest item and its index."""
    return lambda d: gw.Reduce(d, gw.struct(value=getattr(gw, datatype)("input"), index=gw.index), op)


def values() -> Iterator[Row]:
    """Yield maps and reductions."""
    a, b, words = gw.f32("a"), gw.f32("b"), {"input": "words"}
    pair, signs, place = {"a": "signs", "b": "signs_b"}, {"input": "signs"}, ("value", "index")
    yield stream("map (square)", "marks", lambda d: gw.Map(d, "u32", "square"), words, "square", mark=(1.0,))
    yield stream("argmax", "marks", argmax("u32"), words, "argmax", place, mark=(1.0,))
    yield stream("dot", "marks", lambda d: gw.Reduce(d, a * b), pair, "dot", datatype="f32", mark=(1.0,))
    yield stream("reduce", "marks", lambda d: gw.Reduce(d, "f32"), signs, "reduce", datatype="f32")
    yield stream("argmax, f32", "datatypes", argmax("f32"), {"input": "unit"}, "argmax", place, datatype="f32")


def datatypes(n: int) -> Iterator[Row]:
    """Yield cases of other items than words."""
    x, flags = gw.f32("x"), {"input": "words64", "flags": "flags:1/2"}
    items, keyed = {"keys": "runs:8", "items": "signs"}, {"keys": "runs:8", "values": "signs"}
    segments = {"input": "signs", "offsets": "offsets:1024"}
    of = partial(stream, group="datatypes")
    yield of("select 1/2, f32", make=lambda d: gw.Select(d, x, where=x < 0.5), inputs={"x": "unit"}, cub="select",
             of_cub={"input": "unit"}, datatype="f32", bound=0.5)  # fmt: skip
    yield of("flagged 1/2, u64", make=lambda d: gw.Select(d, "u64"), inputs=flags, cub="flagged", datatype="u64")
    yield of("unique, runs of 8, u64", make=lambda d: gw.Unique(d, "u64"), inputs={"keys": "runs64:8"}, cub="unique",
             of_cub={"input": "runs64:8"}, datatype="u64")  # fmt: skip
    yield of("reduce by key, runs of 8, f32", make=lambda d: gw.ReduceByKey(d, "u32", "f32", gw.Add), inputs=items,
             cub="reduce_by_key", outputs=("output_keys", "output_values"), of_cub=keyed, datatype="f32")  # fmt: skip
    yield of("scan by key, runs of 8, f32", make=lambda d: gw.ScanByKey(d, "u32", "f32", gw.Add), inputs=items,
             cub="scan_by_key", of_cub=keyed, datatype="f32")  # fmt: skip
    yield of("segmented reduce of 1024, f32", make=lambda d: gw.SegmentedReduce(d, "f32", gw.Add),
             inputs={"items": "signs", "offsets": "offsets:1024"}, cub="segmented_reduce", of_cub=segments,
             datatype="f32", segments=n // 1024)  # fmt: skip


#: By the bins, the mark and the stretch with uniform data.
HISTOGRAM_MARKS = {256: (3.5, 5.0), 2048: (6.0, 10.0), 1 << 16: (4.0, 8.0)}


def others(n: int) -> Iterator[Row]:
    """Yield histograms, top-k, repeats, merges and searches."""
    for bins in (32, 256, 2048, 1 << 16):
        for text, data in (("uniform", f"bins:{bins}"), ("skewed", f"skewed:{bins}"), ("one bin", "zeros:u4")):
            mark = HISTOGRAM_MARKS.get(bins, ()) if text == "uniform" else ()
            yield stream(
                f"histogram of {bins}, {text}", "others", lambda d, k=bins: gw.Histogram(d, "u32", k, range=(0, k)),
                {"input": data}, "histogram", mark=mark, bins=bins,
            )  # fmt: skip
    for k in (8, 100, 10_000):  # here they are sorted, and their indices found, too
        if k <= n:
            words = {"input": "words"}
            yield stream(f"top {k}", "others", lambda d, k=k: gw.TopK(d, "u32", k), words, "top_k", ("values",), k=k)
    eighth = {"values": f"words@{n // 8}", "counts": f"counts:8@{n // 8}"}
    yield Row("repeat by counts of 8", "others", {harness.OURS: Own(lambda d: gw.Repeat(d, "u32", size=n), eighth)})
    halves = {"a": f"in_order:words@{n // 2}", "b": f"in_order:values@{n // 2}"}
    yield stream("merge", "others", lambda d: gw.Merge(d, "u32"), halves, "merge", mark=(0.95, 1.05))
    searched = {"sorted": "in_order:words", "queries": "values"}
    yield stream("lower bound", "others", lambda d: gw.Search(d, "u32"), searched, "lower_bound", sorted_items=n)


def streams(n: int, largest: int) -> Iterator[Row]:
    """Yield all cases beside CUB; `largest` is the n up to which lengths of segments are swept."""
    yield from selections("marks", "1/2", (1.15, 1.3), (1.25, 1.4))
    yield from (*partitions(), *runs("runs:8", "runs of 8", "marks"))
    for length, mark in ((1 << 16, 1.0), (1 << 10, 1.6), (1 << 4, 20.0)):
        if length <= n:
            yield sums_of_segments(n, "marks", "segmented reduce", length, (mark,))
    yield from values()
    for share in ("0", "1/100", "1"):
        yield from selections("shares", share)
    for length in (1, 1000):
        yield from runs(f"runs:{length}", f"runs of {length}")
    yield from (*adversarial(), *datatypes(n), *others(n))
    for length in (1 << k for k in range(largest.bit_length()) if 1 << k <= n):
        yield sums_of_segments(n, "segments", "segments", length)
        yield sums_of_segments(n, "segments", "rows", length)


# ---- sorts of segments, and what moves items

LENGTHS = (1, 2, 4, 8, 16, 32, 64, 256, 1 << 10, 1 << 11, 1 << 12, 4098, 6145, 1 << 13, 1 << 14, 1 << 16, 1 << 20)


def sort_of_segments(data: Data, length: int | None) -> Row:
    """Return sorts in segments of one length, or of random ones: by offsets, and by the length."""
    offsets = "random_offsets:" if length is None else f"offsets:{length}"
    by_offsets = {"keys": "words", "offsets": offsets}
    bounds = data.host(offsets)
    longest, count = int(np.diff(bounds.astype(np.int64)).max()), bounds.size - 1
    sides: dict[str, Any] = {
        "offsets": Own(lambda d: gw.SegmentedSort(d, "u32"), by_offsets),
        "offsets, longest": Own(lambda d: gw.SegmentedSort(d, "u32", longest=longest), by_offsets),
    }
    if length is not None:
        sides["length"] = Own(lambda d: gw.SegmentedSort(d, "u32", length=length), {"keys": "words"})
    for algorithm in ("segmented_sort", "segmented_radix_sort"):
        sides[f"cub {algorithm}"] = OfCub(algorithm, {"segments": count}, {"input": "words", "offsets": offsets})
    name = f"segmented sort of {length}" if length is not None else f"sort of {count} random segments"
    mark = {1 << 8: (4.0, 10.0), 1 << 12: (0.8, 1.0)}.get(length or 0)
    marks = {} if mark is None else {"cub segmented_sort": ("back_to_back", *mark)}
    return Row(name, "segmented sorts", sides, ("output_keys",), marks=marks)


def sorts_of_segments(data: Data) -> Iterator[Row]:
    """Yield sorts of segments of all lengths, and of other keys and of values."""
    for length in (*(each for each in LENGTHS if each < data.n), data.n, None):
        yield sort_of_segments(data, length)
    for key, value in (("u32", "u32"), ("f32", None), ("u64", None), ("u64", "f64"), ("u8", None)):
        for length in (1 << 8, 1 << 12, 1 << 14):
            of_values = {} if value is None else {"values": f"zeros:{gw.STORAGE_DATATYPES[value].dtype}"}
            inputs = {"keys": f"uniform:{key}", "offsets": f"offsets:{length}", **of_values}
            own = Own(lambda d, key=key, value=value: gw.SegmentedSort(d, key, value), inputs)
            if length <= data.n:
                yield Row(f"{key} and {value} in segments of {length}", "segmented sorts", {harness.OURS: own})


def beside(name: str, dtype: str, n: int, make: Make, reference: Callable[..., np.ndarray] | None = None) -> Row:
    """Return what moves items, beside a copy of as many bytes."""
    items = f"uniform:{dtype}@{n}"
    words = f"words@{max(1, n * gw.STORAGE_DATATYPES[dtype].itemsize_bytes // 4)}"
    sides = {
        harness.OURS: Own(make, {"input": items}, reference),
        "copy": Own(lambda d: gw.Copy(d, "u32"), {"input": words}),
    }
    return Row(name, "moves", sides, n=n, marks={"copy": ("back_to_back", 0.95)})


def moves(n: int) -> Iterator[Row]:
    """Yield transposes, flips, rolls and scatters."""
    side = 1 << (n.bit_length() - 1) // 2
    squares = [(scale * side, scale * side, dtype) for scale, dtype in ((1, "u32"), (4, "u32"), (2, "u64"))]
    narrow = [(4, n), (n, 4), (3, n), (n, 3), (n // 32, 32), (20, n // 8), (2 * side + 1, 2 * side - 1)]
    small = [(2 * side - odd, 2 * side, dtype) for dtype in ("u8", "u16") for odd in (0, 1)]
    for rows, columns, dtype in (*squares, *((*shape, "u32") for shape in narrow), *small):
        shape = {"rows": rows, "columns": columns}
        make = partial(gw.Transpose, dtype=dtype, **shape)
        yield beside(f"transpose {rows} x {columns} {dtype}", dtype, rows * columns, make)
    for name, shift in (("flip", None), ("roll", n // 3)):
        yield beside(
            name, "u32", 4 * n, lambda d, k=shift: Reorder(d, "u32", outer=1, length=4 * n, inner=1, shift=k),
            lambda input, k=shift: input[::-1] if k is None else np.roll(input, k),
        )  # fmt: skip
    for kind, indices in (("random", "places:all"), ("ascending", "ascending:u4")):
        inputs = {"indices": indices, "items": "words", "output": OUTPUT}
        gather = Own(
            lambda d: Take(d, "u32", "u32", outer=1, length=n, count=n, inner=1, clip=True),
            {"indices": indices, "input": "words"}, lambda indices, input: input[indices],
        )  # fmt: skip
        scatter = Own(gw.Scatter, inputs, lambda indices, items: items[np.argsort(indices)])
        yield Row(f"scatter by {kind} indices", "moves", {harness.OURS: scatter, "gather": gather})


# ---- along an axis


def along_axis(n: int, group: str) -> Iterator[Row]:
    """Yield sums along an axis, or prefix sums."""
    cls, word = (gw.ScanAxis, "cumsum") if group == "axis scans" else (gw.ReduceAxis, "sum")
    side, few = 1 << (n.bit_length() - 1) // 2, n // 8
    flat = [
        (side, n // side),
        (n // 4, 4),
        (4, n // 4),
        (few // (side - 1), side - 1),
        (few // 3, 3),
        (few // 100, 100),
    ]
    shapes: list[tuple[tuple[int, ...], int]] = [(shape, axis) for shape in flat for axis in (1, 0)]
    for shape, axis in (*shapes, ((few // (1 << 14), 128, 128), 1)):
        if not (size := math.prod(shape)):
            continue  # too few items for it
        items = f"signs@{size}"

        def prepare(module: Any, x: Any, shape: tuple[int, ...] = shape, axis: int = axis) -> Callable[[], Any]:
            return filling(word, axis)(module, x.reshape(shape))

        own = Own(partial(cls, dtype="f32", shape=shape, axis=axis), {"input": items})
        name = f"{word} of {' × '.join(f'{length:,}' for length in shape)}, axis {axis}"
        facts = {"shape": list(shape), "axis": axis}
        yield Row(name, group, {harness.OURS: own, **both(prepare, items)}, n=size, facts=facts)


# ---- reductions of several results, the k largest


def reductions(n: int) -> Iterator[Row]:
    """Yield argmax and its like."""
    x = gw.f32("input")
    moments = gw.struct(count=gw.u32(1), mean=x, m2=gw.f32(0))
    mean, variance = gw.result / float(n), gw.result.m2 / gw.f32(gw.result.count)
    rows: list[tuple[str, str, Make, str]] = [
        ("argmax u32", "below_2^31", argmax("u32"), "argmax"),
        ("argmax f32", "unit", argmax("f32"), "argmax"),
        ("argmax ascending", "ascending:f4", argmax("f32"), "argmax"),
        ("argmin f32", "unit", argmax("f32", gw.ArgMin), "argmin"),
        ("minmax f32", "unit", lambda d: gw.Reduce(d, gw.struct(min=x, max=x), gw.MinMax), "aminmax"),
        ("any f32", "zeros:f4", lambda d: gw.Reduce(d, x != 0.0, gw.Or), "any"),
        ("mean f32", "unit", lambda d: gw.Reduce(d, x, gw.Add, compensated=True, output=mean), "mean"),
        ("var f32", "unit", lambda d: gw.Reduce(d, moments, gw.Moments, output=variance), "var"),
    ]
    for name, items, make, word in rows:
        datatype, op = "u32" if name.endswith("u32") else "f32", gw.Add if word in ("mean", "var") else gw.Max
        inputs = {"input": items}
        sides = {
            harness.OURS: Own(make, inputs),
            "plain": Own(lambda d, datatype=datatype, op=op: gw.Reduce(d, datatype, op), inputs),
            "torch": OfLibrary(method(word), (items,)),
        }
        yield Row(name, "reductions", sides, tolerance=1e-4)


def top_k(k: int = 100) -> Iterator[Row]:
    """Yield top-k of several data."""
    kinds = {
        "uniform": "below_2^31",
        "ascending": "ascending:u4",
        "all equal": "ones:u4",
        "adversarial": "adversarial:",
    }
    for kind, items in kinds.items():
        sides = {
            harness.OURS: Own(lambda d: gw.TopK(d, "u32", k), {"input": items}),
            "plain": Own(lambda d: gw.Reduce(d, "u32", gw.Max), {"input": items}),
            "torch": OfLibrary(lambda module, x: partial(module.topk, x, k), (items,), first),
        }
        facts = {"k": k, "items": kind}
        yield Row(f"the {k} largest, {kind} items", "top k", sides, ("values", "indices"), facts=facts)


# ---- searches and gathers


class WithoutSamples(gw.Search):
    """A search that reads nothing but the keys."""

    def _levels(self, keys: int, queries: int, table_keys: int) -> int:
        return 0


def searches(n: int) -> Iterator[Row]:
    """Yield searches of as many queries as keys."""
    kinds = {
        "random": ("in_order:below_2^31", "more_below_2^31"),
        "sorted": ("in_order:below_2^31", "in_order:more_below_2^31"),
        "index": ("pointers:", "ascending:u4"),
    }

    def prepare(module: Any, keys: Any, queries: Any) -> Callable[[], Any]:
        return filling("searchsorted", out_int32=True)(module, keys, queries)

    for kind, (keys, queries) in kinds.items():
        inputs, options, reference = {"sorted": keys, "queries": queries}, dict[str, Any](), None
        if kind == "index":
            inputs, options = {"sorted": keys, "output": OUTPUT}, {"queries": gw.index}

            def reference(sorted: np.ndarray) -> np.ndarray:
                return np.searchsorted(sorted, np.arange(n))

        sides = {
            harness.OURS: Own(partial(gw.Search, **options), inputs, reference),
            "binary": Own(partial(WithoutSamples, **options), inputs, reference),
            "torch": OfLibrary(prepare, (keys, queries), whole),
        }
        yield Row(f"{kind} queries", "search", sides, facts={"queries": kind})


def gathers(data: Data) -> Iterator[Row]:
    """Yield gathers from arrays of many sizes."""
    n = data.n
    for size in sorted({min(1 << bits, 4 * n) for bits in (14, 16, 18, 20, 21, 22, 23, 24, 26)}):
        vector, places = f"unit@{size}", f"places:{size}"

        def make(device: Any, vector: str = vector, places: str = places) -> gw.Primitive:
            return gw.Map(device, gw.gather(data.array(vector), data.array(places)))

        torch = {"torch": OfLibrary(gather_by_torch, (vector, places), whole)}
        facts = {"vector_items": size}
        yield Row(f"from {size:,} items", "gather", {harness.OURS: Own(make, {}), **torch}, facts=facts)
        take = Own(
            partial(Take, dtype="f32", index_dtype="u32", outer=1, length=size, count=n, inner=1, clip=True),
            {"input": vector, "indices": places}, lambda input, indices: input[indices],
        )  # fmt: skip
        cupy = {"cupy": OfLibrary(filling("take"), (vector, places), whole)}
        yield Row(f"take from {size:,} items", "take", {harness.OURS: take, **torch, **cupy}, facts=facts)


def gather_by_torch(torch: Any, vector: Any, places: Any) -> Callable[[], Any]:
    """Prepare a gather."""
    out = torch.index_select(vector, 0, places)
    return partial(torch.index_select, vector, 0, places, out=out)


# ---- the first, both ends, the median, ranges


def found(n: int) -> Iterator[Row]:
    """Yield searches for the first item, both ends, medians, and copies of ranges."""
    least, x = gw.where(gw.u32("input") != 0, gw.index, np.uint32(n)), gw.f32("input")
    for name, place in (("at the front", min(5, n - 1)), ("in the middle", n // 2), ("nowhere", n)):
        inputs = {"input": f"from:{place}"}
        sides = {
            harness.OURS: Own(lambda d: gw.FindIf(d, "u32"), inputs),
            "plain": Own(lambda d: gw.Reduce(d, least, gw.Min), inputs),
            # Its argmax of bools finds the first, too.
            "torch": OfLibrary(lambda module, x: x.bool().argmax, (f"from:{place}",)),
        }
        yield Row(f"the first, {name}", "find", sides, facts={"place": place})
    ends = gw.struct(min=x, argmin=gw.index, max=x, argmax=gw.index)
    sides = {
        harness.OURS: Own(lambda d: gw.Reduce(d, ends, gw.ArgMinMax), {"input": "unit"}),
        "plain": Own(argmax("f32"), {"input": "unit"}),
        "torch": OfLibrary(method("argmax"), ("unit",)),
    }
    yield Row("argminmax f32", "both ends", sides)
    middle = (n - 1) // 2
    for name, items in {
        "u32": "below_2^31",
        "uniform f32": "unit",
        "normal f32": "normal",
        "equal f32": "ones:f4",
    }.items():
        datatype = gw.DATATYPES[name[-3:]]
        sides = {
            harness.OURS: Own(
                lambda d, datatype=datatype: gw.NthElement(d, datatype), {"input": items, "places": f"number:{middle}"}
            ),
            "plain": Own(lambda d, datatype=datatype: gw.Sort(d, datatype), {"input": items}),
            "torch": OfLibrary(
                # In one workgroup; so its sort is a side, too.
                lambda module, x: partial(module.kthvalue, x, middle + 1), (items,), first
            ),
            "torch sort": OfLibrary(method("sort"), (items,)),
            "cupy": OfLibrary(lambda module, x: partial(module.partition, x, middle), (items,)),
        }  # fmt: skip
        yield Row(f"median of {name}", "nth", sides, ("values",))
    for mean in (8, 256, 1 << 13, 1 << 20):
        inputs = {name: f"ranges:{name}:{mean}" for name in ("source_offsets", "destination_offsets", "lengths")}
        sides = {
            harness.OURS: Own(lambda d: ScatteredRanges(d, "u32"), {"source": "words", **inputs}),
            "plain": Own(lambda d: gw.Copy(d, "u32"), {"input": "words"}),
        }
        yield Row(f"ranges of {mean:,} items", "ranges", sides, facts={"mean": mean})


# ---- the table, and sides of its rows


def table(data: Data, words: list[str], of_arrays: list[str], distributions: list[str], largest: int) -> Iterator[Row]:
    """Yield all rows of one number of items; products if `words` ask for them. `largest` is the most of the run."""
    n = data.n
    for datatype in of_arrays:
        yield from arrays(datatype)
        for distribution in distributions:
            yield from sorts(datatype, distribution)
    if n <= MOST_ROWS and any(word.startswith("product") for word in words):
        yield from (product(n, datatype) for datatype in ("f16", "f32"))
    for row in streams(n, largest):
        yield row if n == LARGE else replace(row, marks={})
    yield from (*sorts_of_segments(data), *moves(n), *along_axis(n, "axis"), *along_axis(n, "axis scans"))
    yield from (*reductions(n), *(top_k() if n >= 100 else ()), *searches(n), *gathers(data), *found(n))


class Sides:
    """The sides of a row.

    Parameters
    ----------
    bench : harness.Bench
    data : Data
    row : Row
    reference : int
        Up to so many items ours is compared with numpy's; of rows without CUB's side the first side always.
    """

    def __init__(self, bench: harness.Bench, data: Data, row: Row, reference: int):
        self._bench, self._data, self._row = bench, data, row
        self._n = data.n if row.n is None else row.n
        self._compares = self._n <= reference
        #: CUB's checksums say of long results that both are right.
        self._compares_first = self._compares or not any(isinstance(side, OfCub) for side in row.sides.values())
        #: Of the first side: its class, its outputs, and those as CUB writes them: the fields of a struct are arrays.
        self._first: type | None = None
        self._outputs: dict[str, np.ndarray] = {}
        self._arrays: dict[str, np.ndarray] = {}

    def _own(self, side: Own) -> harness.Side:
        made = side.make(self._data.device)
        arrays = {name: self._data.array(data) for name, data in side.inputs.items()}
        return harness.Ours(made, arrays, partial(self._look_at, made, side))

    def _look_at(self, made: gw.Primitive, side: Own, outputs: Outputs) -> bool | str | None:
        """Return whether results are right, or what is wrong with them; None if nothing says it."""
        compares = self._compares
        if self._first is None:
            compares = self._compares_first
            self._first, self._outputs = type(made), dict(outputs)
            for name, items in outputs.items():
                fields = {field: np.ascontiguousarray(items[field]) for field in items.dtype.names or ()}
                self._arrays |= fields or {name: items}
        elif type(made) is self._first and not compares:
            same = all(np.array_equal(got, self._outputs[name]) for name, got in outputs.items())
            return same or "its results are not those of the first side"
        if not compares:
            return None
        inputs = {name: self._data.host(data) for name, data in side.inputs.items() if not name.startswith("output")}
        expected = (side.reference(**inputs),) if side.reference else Oracle.of(made).expected(inputs)
        wrong = differences(made, inputs, outputs, expected)
        if wrong is not None:
            return str(wrong)
        if self._row.tolerance:
            return True
        pairs = [(got, want) for got, want in zip(outputs.values(), expected, strict=True) if want.dtype.kind == "f"]
        exact = all(np.array_equal(got, want, equal_nan=True) for got, want in pairs)
        return exact or "its floats are not exactly numpy's"

    def _of_cub(self, side: OfCub) -> harness.Side:
        server = self._bench.cub
        words = [f"{name}={value}" for name, value in {**side.options, **side.inputs}.items()]
        data = {name: self._data.host(name) for name in side.inputs.values()}
        command = ("case", side.algorithm, self._row.facts.get("datatype", "u32"), self._n, *words)
        right = [harness.checksum(self._arrays[name]) for name in self._row.outputs] if self._arrays else None
        return harness.Cub(server, command, data, right)

    def _of_library(self, name: str, side: OfLibrary) -> harness.Side:
        library = self._bench.library(name.partition(" ")[0])
        call = side.prepare(library.module, *(library.array(self._data.host(data)) for data in side.inputs))
        compared = side.compared
        if compared is None or not self._outputs:
            return harness.Called(library, call)
        ours, tolerance = self._outputs[self._row.outputs[0]].reshape(-1), self._row.tolerance

        def is_ours(result: Any) -> bool:
            got = library.numpy(compared(result)).reshape(-1)
            if tolerance:
                return np.allclose(got, ours, tolerance, tolerance * float(np.abs(ours).mean()))
            return np.array_equal(got.view(ours.dtype), ours)

        return harness.Called(library, call, is_ours)

    def _moved_bytes(self, _: Mapping[str, harness.Side]) -> float | None:
        ours = self._row.sides[next(iter(self._row.sides))]
        if not self._outputs or not isinstance(ours, Own):
            return None
        read = [self._data.host(data).nbytes for name, data in ours.inputs.items() if not name.startswith("output")]
        return sum(read) + sum(items.nbytes for items in self._outputs.values())

    def case(self) -> harness.Case:
        """Return them as a case."""
        row = self._row
        made: dict[str, Callable[[], harness.Side]] = {}
        for name, side in row.sides.items():
            if isinstance(side, Own):
                made[name] = partial(self._own, side)
            elif isinstance(side, OfCub):
                made[name] = partial(self._of_cub, side)
            else:
                made[name] = partial(self._of_library, name, side)
        return harness.Case(row.name, self._n, made, row.group, self._moved_bytes, row.facts, row.marks)


@harness.command(
    __doc__, n="2^20,2^24,2^28", peers="cub,torch,cupy", rounds=3, cases="arrays;sorts;marks",
    more=[
        click.option("--datatypes", type=harness.AxisList("datatype"), default="u32,f32", help="Of arrays and sorts."),
        click.option("--distributions", type=harness.AxisList("distribution"), default=UNIFORM, help="Of sorts."),
        click.option("--reference", type=harness.AxisList("n"), default="2^20", help="Compared with numpy up to it."),
    ],
)  # fmt: skip
def main(
    bench: harness.Bench, datatypes: list[str], distributions: list[str], reference: list[int]
) -> Iterator[harness.Case]:
    """Yield the cases."""
    for n in sorted(bench.sizes):
        data = Data(bench.device, n)
        for row in table(data, bench.words, datatypes, distributions, max(bench.sizes)):
            yield Sides(bench, data, row, max(reference)).case()
        data.forget()
        bench.forget()


if __name__ == "__main__":
    main()
