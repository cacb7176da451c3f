"""Kernels in other shapes, that is with `tuning=`: ``gridwise tune benchmarks/variants/shapes.py NAME``.

Each benchmark has the fields of its tuning as axes; -1 and "library" leave a field to the library, whose choice is the
variant of which all are so. The runner is `gridwise tune`, which takes all combinations in turns, checks every result,
judges, and leaves out what is clearly slower. Numbers can be given on the command line:

    gridwise tune benchmarks/variants/shapes.py select --n 2^28 -a stage=0,2048 -a vecs=8,16 --json select_shapes.json

Shapes of the kernels that the library tunes itself: ``gridwise tune`` without a file.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from data import benchmark, on_gpu
from texts import SIZES

import gridwise_py as gw


def chosen(cls: Any, **fields: Any) -> Any:
    """Return a tuning with those fields that are not left to the library; None with none."""
    given = {name: value for name, value in fields.items() if value not in (-1, "library")}
    return cls(**given) if given else None


@functools.lru_cache(maxsize=4)
def as_items(device: Any, kind: str, n: int, dtype: str) -> gw.Array:
    """Return n items of a datatype; their bytes are those of words of a kind."""
    bits = 8 * gw.STORAGE_DATATYPES[dtype].itemsize_bytes
    return on_gpu(device, kind, n * bits // 32).view(dtype)


# ---- selections, partitions, runs

STREAM = {
    "workgroup_size": [-1, 128, 256], "vecs": [-1, 8, 16], "stage": [-1],
    "items": ["library", "held", "late"], "order": ["library", "tile", "subgroup"], "look": [-1], "ahead": [-1],
}  # fmt: skip


@gw.benchmarked(n=SIZES, tune=list(STREAM), **STREAM)
def select(device, n, **fields):
    """A half of all words, by a predicate."""
    x = gw.u32("x")
    made = gw.Select(device, x, where=x < 2**31, tuning=chosen(gw.StreamTuning, **fields))
    return benchmark(made, {"x": on_gpu(device, "words", n)})


@gw.benchmarked(n=SIZES, dtype=["u32", "u64", "u8"], tune=list(STREAM), **STREAM)
def flagged(device, n, dtype, **fields):
    """A half of all items, by flags of a byte."""
    made = gw.Select(device, dtype, tuning=chosen(gw.StreamTuning, **fields))
    return benchmark(made, {"input": as_items(device, "words", n, dtype), "flags": on_gpu(device, "flags", n)}, dtype)


@gw.benchmarked(n=SIZES, tune=list(STREAM), **STREAM)
def partition(device, n, **fields):
    """Into halves."""
    x = gw.u32("x")
    made = gw.Partition(device, x, where=x < 2**31, tuning=chosen(gw.StreamTuning, **fields))
    return benchmark(made, {"x": on_gpu(device, "words", n)})


@gw.benchmarked(n=SIZES, dtype=["u32", "u64", "u8"], tune=list(STREAM), **STREAM)
def unique(device, n, dtype, **fields):
    """The first of each run of about 8 (u64: of 4; u8: of 2)."""
    made = gw.Unique(device, dtype, tuning=chosen(gw.StreamTuning, **fields))
    return benchmark(made, {"keys": as_items(device, "runs of 8", n, dtype)}, dtype)


@gw.benchmarked(n=SIZES, tune=list(STREAM), **STREAM)
def run_length(device, n, **fields):
    """Values and lengths of runs of about 8."""
    made = gw.RunLength(device, "u32", tuning=chosen(gw.StreamTuning, **fields))
    return benchmark(made, {"keys": on_gpu(device, "runs of 8", n)})


@gw.benchmarked(n=SIZES, tune=list(STREAM), **STREAM)
def unique_by_key(device, n, **fields):
    """The first value of each run of about 8 keys."""
    made = gw.Unique(device, "u32", "u32", tuning=chosen(gw.StreamTuning, **fields))
    return benchmark(made, {"keys": on_gpu(device, "runs of 8", n), "values": on_gpu(device, "words", n)})


@gw.benchmarked(n=SIZES, tune=list(STREAM), **STREAM)
def partition_in_3(device, n, **fields):
    """Into thirds."""
    x = gw.u32("x")
    third = 2**32 // 3
    made = gw.Partition(device, x, where=[x < third, x < 2 * third], tuning=chosen(gw.StreamTuning, **fields))
    return benchmark(made, {"x": on_gpu(device, "words", n)})


# ---- scans and reductions

SCAN = {
    "workgroup_size": [-1, 128, 256, 512], "vecs": [-1, 8, 16], "look": [-1], "state": ["library", "u32x2"],
    "tickets": [False, True],
}  # fmt: skip


@gw.benchmarked(n=SIZES, tune=list(SCAN), **SCAN)
def scan(device, n, tickets, **fields):
    """A scan by look-back."""
    tuning = chosen(gw.ScanTuning, tickets=tickets or -1, **fields)
    made = gw.Scan(device, strategy="lookback", tuning=tuning)
    return benchmark(made, {"input": on_gpu(device, "words", n)})


BY_KEY = {"workgroup_size": [-1, 128, 256, 512], "vecs": [-1, 4, 8, 16], "look": [-1], "ahead": [-1]}


@gw.benchmarked(n=SIZES, what=["reduce", "scan"], tune=list(BY_KEY), **BY_KEY)
def by_key(device, n, what, **fields):
    """Sums of runs of about 8 keys, and prefix sums in them."""
    cls = gw.ReduceByKey if what == "reduce" else gw.ScanByKey
    made = cls(device, "u32", "u32", strategy="lookback", tuning=chosen(gw.ScanTuning, **fields))
    return benchmark(made, {"keys": on_gpu(device, "runs of 8", n), "items": on_gpu(device, "words", n)}, what)


REDUCE = {"workgroup_size": [-1, 128, 256, 512], "vecs": [-1, 2, 4, 8], "max_blocks": [-1, 264, 528, 1056]}


@gw.benchmarked(n=SIZES, what=["argmax", "var"], tune=list(REDUCE), **REDUCE)
def struct_reduce(device, n, what, **fields):
    """Reductions whose results are structs."""
    x, tuning = gw.f32("input"), chosen(gw.ReduceTuning, **fields)
    if what == "argmax":
        made = gw.Reduce(device, gw.struct(value=x, index=gw.index), gw.ArgMax, tuning=tuning)
    else:
        moments = gw.struct(count=gw.u32(1), mean=x, m2=gw.f32(0))
        variance = gw.result.m2 / gw.f32(gw.result.count)
        made = gw.Reduce(device, moments, gw.Moments, output=variance, tuning=tuning)
    return benchmark(made, {"input": on_gpu(device, "floats", n)}, what)


AXIS = {
    "workgroup_size": [-1, 128, 512, 1024], "vecs": [-1, 2, 8, 16], "team": [-1], "strip": [-1],
    "max_blocks": [-1, 528, 1056, 2112, 4224],
}  # fmt: skip


@gw.benchmarked(
    rows=[2**14], columns=[2**14], axis=[0, 1], what=["sum", "cumsum"], tune=list(AXIS),
    n=lambda rows, columns: rows * columns, **AXIS,
)  # fmt: skip
def along_axis(device, rows, columns, axis, what, **fields):
    """Sums and prefix sums along an axis of a matrix; `team` is of rows, `strip` of columns."""
    cls = gw.ReduceAxis if what == "sum" else gw.ScanAxis
    made = cls(device, "f32", shape=(rows, columns), axis=axis, tuning=chosen(gw.AxisTuning, **fields))
    return benchmark(made, {"input": on_gpu(device, "below 2 f32", rows * columns)}, rows, columns, axis)


# ---- sorts

SORT = {"workgroup_size": [-1, 256, 384, 512], "items": [-1, 16, 18, 20], "parts": [-1], "look": [-1, 2, 4]}


@gw.benchmarked(n=SIZES, values=[False, True], tune=list(SORT), **SORT)
def sort(device, n, values, **fields):
    """Sorts of u32, with values or without."""
    tuning = chosen(gw.SortTuning, **fields)
    if not values:
        return benchmark(gw.Sort(device, tuning=tuning), {"input": on_gpu(device, "words", n)})
    inputs = {"keys": on_gpu(device, "words", n), "values": on_gpu(device, "more words", n)}
    return benchmark(gw.SortPairs(device, tuning=tuning), inputs)


SEGMENTED_SORT = {"workgroup_size": [-1, 256, 512, 1024], "items": [-1, 6, 8, 10, 12, 16]}


@gw.benchmarked(n=[2**24], length=[2**8, 2**12], tune=list(SEGMENTED_SORT), **SEGMENTED_SORT)
def segmented_sort(device, n, length, **fields):
    """Sorts of segments, by offsets."""
    made = gw.SegmentedSort(device, "u32", tuning=chosen(gw.SegmentedSortTuning, **fields))
    return benchmark(made, {"keys": on_gpu(device, "words", n), "offsets": on_gpu(device, f"offsets of {length}", n)})


# ---- histograms, top-k, merges, transposes, matrix products

HISTOGRAM = {
    "workgroup_size": [-1, 256, 512, 1024], "vecs": [-1, 4, 8], "max_blocks": [-1],
    "memory_words": [-1], "copies": [-1], "merge": ["library", "none", "quad", "tile"],
}  # fmt: skip


@gw.benchmarked(
    n=SIZES, bins=[256, 2048, 65536], data=["words", "zeros", "skewed", "cycle"], tune=list(HISTOGRAM), **HISTOGRAM
)
def histogram(device, n, bins, data, **fields):
    """Of uniform words, of one bin only, of bins that are not equally full, and of four bins in turns."""
    tuning = chosen(gw.HistogramTuning, **fields)
    made = gw.Histogram(device, "u32", bins, range=(0, 1 << 32), tuning=tuning)
    return benchmark(made, {"input": on_gpu(device, data, n)}, bins)


ELEMENTWISE = {"workgroup_size": [-1, 128, 256, 512], "vecs": [-1, 2, 4, 8, 16]}


@gw.benchmarked(n=SIZES, k=[100], tune=list(ELEMENTWISE), **ELEMENTWISE)
def top_k(device, n, k, **fields):
    """The k largest."""
    made = gw.TopK(device, "u32", k, tuning=chosen(gw.ElementwiseTuning, **fields))
    return benchmark(made, {"input": on_gpu(device, "words", n)}, k)


@gw.benchmarked(n=SIZES, tune=list(ELEMENTWISE), **ELEMENTWISE)
def merge(device, n, **fields):
    """Two sorted halves."""
    made = gw.Merge(device, "u32", tuning=chosen(gw.ElementwiseTuning, **fields))
    return benchmark(made, {name: on_gpu(device, "runs of 8", n // 2) for name in "ab"})


@gw.benchmarked(
    rows=[2**12, 2**14], dtype=["u32", "u64"], tune=list(ELEMENTWISE), n=lambda rows: rows * rows, **ELEMENTWISE
)
def transpose(device, rows, dtype, **fields):
    """Square matrices."""
    made = gw.Transpose(device, dtype, rows=rows, columns=rows, tuning=chosen(gw.ElementwiseTuning, **fields))
    return benchmark(made, {"input": as_items(device, "words", rows * rows, dtype)})


MATMUL = [
    "library", "128x128x8/8x8/1/8", "128x128x16/8x8/1/8", "128x128x16/8x8/1/4", "128x128x8/8x8/2/8",
    "128x128x16/8x8/2/8", "128x64x16/8x8/1/8", "128x64x16/8x4/1/8", "64x64x16/4x4/2/8", "32x32x16/4x4/1/4",
]  # fmt: skip


@gw.benchmarked(side=[4096], dtype=["f32", "f16"], shape=MATMUL, n=lambda side: side * side, tune="shape")
def matmul(device, side, dtype, shape):
    """A shape is TILE_M x TILE_N x TILE_K / THREAD_M x THREAD_N / STAGES / UNROLL; the roof: `gridwise calibrate`."""
    tuning = None
    if shape != "library":
        fields = ("tile_m", "tile_n", "tile_k", "thread_m", "thread_n", "stages", "unroll")
        tuning = gw.MatMulTuning(**dict(zip(fields, map(int, shape.replace("/", "x").split("x")), strict=True)))
    made = gw.MatMul(device, dtype, m=side, n=side, k=side, tuning=tuning)
    inputs = {name: on_gpu(device, f"below 2 {dtype}", side * side) for name in "ab"}
    work = gw.Work(side * side, *(k * side * side * made.datatype.itemsize_bytes for k in (2, 1)), flops=2 * side**3)
    return dataclasses.replace(benchmark(made, inputs), work=work)
