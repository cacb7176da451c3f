"""Data of the cases, by name: made once for a number of items, and on the GPU once."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np

import gridwise_py as gw
from gridwise_py.bench.cases.data import RANGE_DATA
from gridwise_py.bench.cases.distributions import DISTRIBUTIONS, random_items

PART_ITEMS = 1 << 22
Fill = Callable[[np.random.Generator, int], np.ndarray]


def in_parts(n: int, dtype: Any, fill: Fill, seed: int) -> np.ndarray:
    """Return n random items, made by all cores; the same ones for any number of cores."""
    items = np.empty(n, dtype)

    def fill_part(part: int) -> None:
        begin, end = part * PART_ITEMS, min(n, (part + 1) * PART_ITEMS)
        items[begin:end] = fill(np.random.default_rng((seed, part)), end - begin)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill_part, range(-(-n // PART_ITEMS))))
    return items


def _words(most: int) -> Fill:
    return lambda rng, n: rng.integers(0, most, n, dtype=np.uint64, endpoint=True)


def _unit(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n, np.float32)


#: Items that are drawn: datatype, function, and the seed, by kind. Sums of signs, and of their products, are exact in
#: f32 in any order: none comes near 2^24, so a right result needs no tolerance.
DRAWN: dict[str, tuple[Any, Fill, int]] = {
    "words": (np.uint32, _words(2**32 - 1), 1),
    "values": (np.uint32, _words(2**32 - 1), 2),
    "words64": (np.uint64, _words(2**64 - 1), 3),
    "below_2^31": (np.uint32, _words(2**31 - 1), 11),
    "more_below_2^31": (np.uint32, _words(2**31 - 1), 12),
    "unit": (np.float32, _unit, 6),
    "normal": (np.float32, lambda rng, n: rng.standard_normal(n, np.float32), 13),
    "signs": (np.float32, lambda rng, n: rng.integers(-1, 2, n, dtype=np.int8), 7),
    "signs_b": (np.float32, lambda rng, n: rng.integers(-1, 2, n, dtype=np.int8), 8),
}  # fmt: skip


def _runs(n: int, length: int, dtype: Any) -> np.ndarray:
    return np.cumsum(in_parts(n, np.bool_, lambda rng, k: _unit(rng, k) < 1 / length, 5), dtype=dtype)


def _random_offsets(n: int, _: str) -> np.ndarray:
    lengths = np.minimum(np.random.default_rng(n).pareto(0.7, n // 64 + 1) * 4, n / 8).astype(np.int64)
    bounds = np.cumsum(lengths)
    return np.concatenate([[0], bounds[bounds < n], [n]]).astype(np.uint32)


def _places(n: int, kind: str) -> np.ndarray:
    """Return a permutation, or places in so many items."""
    rng = np.random.default_rng(54)
    found = rng.permutation(n) if kind == "all" else rng.integers(0, int(kind), n)
    return found.astype(np.uint32)


def _ranges(n: int, kind: str) -> np.ndarray:
    name, _, mean = kind.partition(":")
    count = -(-n // int(mean))
    return RANGE_DATA[name](np.random.default_rng(6), count, np.dtype(np.uint32), {"n": n, "run": mean})


#: Other data, by kind: what takes n and the parameter.
MADE: dict[str, Callable[[int, str], np.ndarray]] = {
    "flags": lambda n, share: in_parts(n, np.bool_, lambda rng, k: _unit(rng, k) < float(Fraction(share)), 4),
    "runs": lambda n, length: _runs(n, int(length), np.uint32),
    "equal_runs": lambda n, length: (np.arange(n) // int(length)).astype(np.uint32),
    "runs64": lambda n, length: _runs(n, int(length), np.uint64),
    "offsets": lambda n, length: np.append(np.arange(0, n, int(length)), n).astype(np.uint32),
    "random_offsets": _random_offsets,
    "bins": lambda n, bins: make_data("words", n) >> np.uint32(32 - (int(bins) - 1).bit_length()),
    # Bin 0 has a fifth to a half of all.
    "skewed": lambda n, bins: in_parts(n, np.uint32, lambda rng, k: int(bins) * rng.random(k) ** 8, 9),
    "zeros": lambda n, dtype: np.zeros(n, dtype),
    "ones": lambda n, dtype: np.ones(n, dtype),
    "nan": lambda n, datatype: np.full(n, np.nan, gw.STORAGE_DATATYPES[datatype].dtype),
    # From 0 to twice the mean.
    "counts": lambda n, mean: in_parts(n, np.uint32, _words(2 * int(mean)), 10),
    "in_order": lambda n, kind: np.sort(make_data(kind, n)),
    "ascending": lambda n, dtype: np.arange(n, dtype=np.uint32).view(dtype),  # floats by their bits
    # The largest at places that agree modulo 8,192 times 256: the delegates of as few parts as possible.
    "adversarial": lambda n, _: np.where(np.arange(n) % (1 << 21) < 8, np.arange(n), 3).astype(np.uint32),
    "pointers": lambda n, _: np.sort(np.random.default_rng(n).integers(0, n, n).astype(np.uint32)),
    "from": lambda n, place: (np.arange(n) >= int(place)).astype(np.uint32),
    "number": lambda n, number: np.array([int(number)], np.uint32),
    "places": _places,
    "ranges": _ranges,
    "matrix": lambda n, dtype: np.random.default_rng(n).uniform(-1, 1, n).astype(dtype),
}  # fmt: skip


def make_data(name: str, n: int) -> np.ndarray:
    """Return data by its name: a kind, its parameter behind a colon, and behind an @ another number of items."""
    name, _, count = name.partition("@")
    n = int(count or n)
    kind, _, parameter = name.partition(":")
    if kind in DRAWN:
        return in_parts(n, *DRAWN[kind])
    if kind in DISTRIBUTIONS:
        return random_items(kind, np.random.default_rng(n), n, np.dtype(gw.STORAGE_DATATYPES[parameter].dtype))
    return MADE[kind](n, parameter)


class Data:
    """The data of one number of items.

    Parameters
    ----------
    device : wgpu.GPUDevice
    n : int
    """

    def __init__(self, device: Any, n: int):
        self.device, self.n = device, n
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
            self._arrays[name] = gw.asarray(self.host(name), self.device)
        return self._arrays[name]

    def forget(self) -> None:
        """Free it all."""
        for array in self._arrays.values():
            array.destroy()
        self._arrays.clear()
        self._host.clear()
