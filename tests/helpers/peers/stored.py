"""Calls that found a fault once, as text: generators change, these stay. They are replayed first.

`fault` is the number of the report in which it was found, or the seed and index of the random call.
"""

# ruff: noqa: E501  # each call is one line

from __future__ import annotations

from typing import NamedTuple


class Stored(NamedTuple):
    """A call, and what it found."""

    fault: str
    call: str


# fmt: off
STORED: tuple[Stored, ...] = (
    Stored('B1', 'm.histogram(np.linspace(np.float32(0.1), np.float32(0.7), 4, dtype=np.float32), 3)'),
    Stored('B2', 'm.segmented_sort(np.array([85, 63, 51, 26, 30, 4, 7, 1, 17, 81], np.int32), length=4294967300)'),
    Stored('B2', 'm.segmented_sort_pairs(np.array([5, 3, 1, 4], np.int32), np.array([0, 1, 2, 3], np.int32), length=8589934592)'),
    Stored('B3', "m.group_by(np.array([0, 1, 2, 2], np.int32), a=(np.array([nan, inf, 1, inf], np.float32), 'var'), b=(np.array([nan, inf, 1, inf], np.float32), 'std'))"),
    Stored('B3', 'm.var(np.array([[nan], [inf]], np.float32), axis=1)'),
    Stored('B4', "m.group_by(np.array([0, 1, 1, 2], np.int32), a=(np.array([nan, nan, 2, 0], np.float32), 'any'), b=(np.array([nan, nan, 2, 0], np.float32), 'all'))"),
    Stored('B5', 'm.put(np.array([0, 0, 0], np.uint8), np.array([0, 0], np.int64), np.array([1, 2], np.uint8))'),
    Stored('B5', 'm.put(gpu(np.array([0, 0], np.int16)), np.array([0, 0], np.int64), np.array([-28615, 25977], np.int16))'),
    Stored('B6', 'm.bincount(np.zeros(20000, np.int64), np.concatenate([[2**24], np.ones(19999)]).astype(np.float32))'),
    Stored('B7', "m.searchsorted(np.array([0.1, 0.2, 0.3], np.float32), 0.1, side='right')"),
    Stored('B7', 'm.searchsorted(np.array([0, 1], np.uint32), -1)'),
    Stored('B8', 'gpu(np.array([0, -0.0, 2], np.float32)) ** -1'),
    Stored('B8', 'gpu(np.array([0, 1, 2], np.float32)) ** gpu(np.array([-inf, inf, 2], np.float32))'),
    Stored('B9', 'm.cumprod(np.arange(0, 50, 0.5, dtype=np.float32))'),
    Stored('B10', 'm.repeat(np.array([1, 2], np.int32), np.array([2**64 - 1, 3], np.uint64))'),
    Stored('B11', 'm.cumprod(np.array([inf], np.complex64))'),
    Stored('B12', '(lambda x: x - x)(gpu(np.array([inf, 1, 2], np.float32)))'),
    Stored('B13', 'm.histogram(np.array([1, 2], np.float32), 2**31)'),
    Stored('B13', "m.sum(np.array([200, 100, 1], np.int64), dtype='i8')"),
    Stored('B13', "m.group_by(np.array([0, 7, 3, 100], np.int64), n=(np.array([1, 2, 3, 4], np.float32), 'max'), key_bits=3)"),
    Stored('B13', 'm.repeat([], [])'),
    Stored('B13', 'm.scatter_add(np.arange(5), [], [])'),
    Stored('B13', 'm.merge([], [1])'),
    Stored('B13', 'm.flip(np.array([[1, 2], [3, 4]], np.int64), (0, 0))'),
    Stored('B13', "m.arange(0, 300, 7, dtype='bool')"),
    Stored('N1', 'm.mean(np.array([[0, 1], [2, 3]], np.float32), 0)'),
    Stored('N1', 'm.var(np.array([[0, 1], [2, 3]], np.float32), 0)'),
    Stored('N1', 'm.any(np.array([[0, 1], [2, 3]], np.float32), 0)'),
    Stored('N1', 'm.argmax(np.array([[0, 1], [2, 3]], np.float32), 0)'),
    Stored('N1', 'm.count_nonzero(np.array([[0, 1], [2, 3]], np.float32), 0)'),
    Stored('N1', "m.searchsorted(np.array([0, 1, 2], np.float32), 2.0, 'right')"),
    Stored('N2', 'm.sort(np.array([3, 1, 2], np.int32), axis=-1)'),
    Stored('N2', 'm.sort(np.array([[3, 1], [0, 2]], np.int32), axis=0)'),
    Stored('N2', "m.sort(np.array([3, 1, 2], np.int32), kind='stable')"),
    Stored('N2', 'm.sort(np.array([3, 1, 2], np.int32), stable=True)'),
    Stored('N2', 'm.argsort(np.array([3, 1, 2], np.int32), axis=-1)'),
    Stored('N2', 'm.repeat(np.array([3, 1], np.int32), 2, axis=0)'),
    Stored('N2', 'm.compress(np.array([True, False]), np.array([3, 1], np.int32), axis=0)'),
    Stored('N2', 'm.isin(np.array([3, 1], np.int32), np.array([1], np.int32), assume_unique=True)'),
    Stored('N2', 'm.intersect1d(np.array([3, 1], np.int32), np.array([1], np.int32), return_indices=True)'),
    Stored('N3', 'm.take(np.arange(6).reshape(2, 3), [99])'),
    Stored('N3', 'm.put(np.arange(6).reshape(2, 3), [99], 1)'),
    Stored('N3', 'm.sum(np.arange(6).reshape(2, 3), axis=5)'),
    Stored('N3', 'm.cumsum(np.arange(6).reshape(2, 3), 5)'),
    Stored('N3', 'm.flip(np.arange(6).reshape(2, 3), 5)'),
    Stored('N3', 'm.roll(np.arange(6).reshape(2, 3), 1, 5)'),
    Stored('N3', 'm.transpose(np.arange(6).reshape(2, 3), (0, 5))'),
    Stored('N3', 'm.histogram(np.arange(6).reshape(2, 3), range=10)'),
    Stored('N3', 'm.histogram(np.arange(6).reshape(2, 3), bins=3.5)'),
    Stored('N3', 'm.sum(np.arange(6).reshape(2, 3), axis=1.0)'),
    Stored('N4', 'm.sum(np.arange(5), out=np.zeros((), np.uint8))'),
    Stored('N4', 'm.cumsum(np.arange(5), out=np.zeros(5, bool))'),
    Stored('N5', 'm.compress([True, False, True], np.arange(6))'),
    Stored('N5', 'm.compress([True, False, True], np.arange(6).reshape(2, 3))'),
    Stored('N5', 'm.put(np.zeros(5, np.int64), [0, 2, 4], np.array([7, 8]))'),
    Stored('N5', "m.put(np.zeros(5, np.int64), [0, 9], 5, mode='wrap')"),
    Stored('N5', "m.put(np.zeros(5, np.int64), [0, 9], 5, mode='clip')"),
    Stored('N5', 'm.roll(np.arange(5), np.array(2))'),
    Stored('N5', 'm.repeat(np.array([7, 8, 9]), np.array([True, False, True]))'),
    Stored('N5', 'm.argsort(np.array(3.0))'),
    Stored('N5', 'm.lexsort(np.random.default_rng(0).integers(0, 3, (2, 3, 4)))'),
    Stored('N5', 'm.partition(np.array([]), 0)'),
    Stored('N6', 'm.histogram((np.arange(1000) * 1.1).astype(np.float16), 10)'),
    Stored('N6', 'm.histogram(np.array([0.1], np.float32), 1, range=np.array([0, 0.1]))'),
    Stored('N6', 'm.digitize(np.array([0, nan, 2], np.float32), np.full(3, nan, np.float32))'),
    Stored('N6', 'm.bincount(np.array([], np.int64), np.array([], np.float64))'),
    Stored('N8', 'm.cumsum(np.array([1, 2, 3], np.int64), out=strided(np.zeros(3, np.int64)))'),
    Stored('N8', 'm.bincount(gpu(np.array([[1, 2], [3, 1]])), length=4)'),
    Stored('N8', 'gpu(np.array([-3, 16777217, -16777217], np.int32)) % 2'),
    Stored('N8', 'gpu(np.array([-3, 2.5, 16777216], np.float32)) % 2'),
    Stored('A2', 'm.segmented_top_k(np.zeros(0, np.float32), np.array([0, 0, 0]), 2)'),
    Stored('P4', "m.group_by(np.array([0, 1], np.int32), price=(np.array([3, 4], np.float64), 'count'))"),
    Stored('P5', 'm.sqrt(np.array([4, 9], np.float32))'),
    Stored('P5', 'm.clip(np.array([4, 9], np.float32), 5, 8)'),
    Stored('P5', 'm.where(np.array([True, False]), np.array([4, 9], np.float32), np.array([1, 2], np.float32))'),
    Stored('P7', 'm.len(m.compress(gpu(np.array([True, False, True])), gpu(np.array([1, 2, 3], np.int32))))'),
    Stored("5:7554", "m.put(np.zeros(257, np.float32), np.array([81, 36], np.uint8), np.array([1], np.float32), 'wrap')"),
    Stored("5:6540", "m.where(np.array([True]), swapped(np.array([1.5], np.float64)), nan)"),
    Stored("61:225", "m.histogram(np.array([0, 1], np.float32), np.array([0, 2, 3]), weights=swapped(np.array([1, 2], np.float64)))"),
    Stored("71:210", "m.histogram_bin_edges(np.array([1, 2], np.int32), bins=2147483647)"),
    Stored("5:4523", "m.max(np.array([0, -5], np.int32), out=np.zeros((), np.uint32))"),
    Stored("5:156", "m.nanargmin(np.array([1.5], np.float32), 2147483648)"),
    Stored("5:3585", "m.nanmean(np.array([-inf, -2.2, 1], np.float16))"),
    Stored("12:1749", "m.count_nonzero([2709380845])"),
    Stored("11:1040", "m.take(gpu(np.array([[0.5, 1]], np.float32)), gpu(np.array([0], np.uint32)), 0.5)"),
    Stored("12:27", "m.minmax([12])"),
    Stored("7001", "m.nanvar(np.array([1, nan, 2], np.float32), correction=3)"),
    Stored("7001", "m.take(np.array([1, 300, 3]), np.array([0, 1]), out=np.zeros(2, np.int8))"),
    Stored("8001", "m.segmented_sort_pairs(gpu(np.array([2, 1], np.int32)), expr(np.array([5, 6], np.int32)), np.array([0, 2]))"),
    Stored("9107:327", "m.nansum(gpu(np.array([complex(nan, 0.4)], np.complex64)))"),
    Stored("9111:2228", "m.median(gpu(np.array([-inf, -2.5], np.float32)))"),
    Stored("9121:179", "m.argmax(gpu(np.array([-1, 3], np.int64)), out=gpu(np.zeros((), np.int64)))"),
    Stored("9301:1032", "m.popcount(1.75)"),
    Stored("602", "m.cumulative_prod(expr(np.array([-2, 0, 3], np.int32)), dtype='?')"),
)
# fmt: on
