"""Random data of a certain form: flags of a share, keys in runs, offsets and lengths of segments and ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

#: Makes the items of an argument, of a generator, their number, their dtype, and the axes of the case with its n.
Maker: TypeAlias = Callable[[np.random.Generator, int, np.dtype, Mapping[str, Any]], np.ndarray]

_SHARES = 1 << 16


def flags(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
    """Return flags of which the share ``axes["share"]`` is 1, in random places."""
    least = round(float(axes["share"]) * _SHARES)
    return (rng.integers(0, _SHARES, length, dtype=np.uint16) < least).astype(dtype)


def late_flags(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
    """Return items that are 0 up to the share ``axes["share"]`` of all, then one that is not, and then any below 64."""
    items, first = rng.integers(0, 64, length), round(float(axes["share"]) * length)
    items[:first] = 0
    items[first : first + 1] |= 1
    return items.astype(dtype)


def random_runs(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
    """Return keys in runs of random length, ``axes["run"]`` on average; neighbouring runs have different keys."""
    heads = rng.random(length, dtype=np.float32) < 1 / int(axes["run"])
    numbers = np.cumsum(heads, dtype=np.uint32)
    if dtype.kind == "f":
        return (numbers % 2048).astype(dtype)  # so many are exact in f16
    numbers *= np.uint32(0x9E37_79B1)  # odd, so that neighbours differ in their lowest bit
    return (numbers & 1 if dtype.kind == "b" else numbers).astype(dtype)


def equal_segments(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
    """Return the offsets of segments of ``axes["segment"]`` items; the last one has what is left."""
    del rng
    return np.minimum(np.arange(length, dtype=np.uint64) * int(axes["segment"]), axes["n"]).astype(dtype)


def middle_places(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
    """Return places of sorted items, evenly spaced: a single one is that of the median."""
    del rng
    return (np.arange(1, length + 1) * axes["n"] // (length + 1)).astype(dtype)


def random_counts(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
    """Return counts from 0 on, whose sum is n."""
    if not length:
        return np.zeros(0, dtype)
    ends = np.sort(rng.integers(0, axes["n"], length, endpoint=True))
    ends[-1] = axes["n"]
    return np.diff(ends, prepend=0).astype(dtype)


def random_indices(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
    """Return indices below ``axes["bins"]``."""
    return rng.integers(0, int(axes["bins"]), length, dtype=np.uint32).astype(dtype)


def permutation(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
    """Return the numbers from 0 on in any order."""
    del axes
    return rng.permutation(length).astype(dtype)


def scattered_keys(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
    """Return keys in any order, each ``axes["run"]`` times on average."""
    return rng.integers(0, max(int(axes["n"]) // int(axes["run"]), 1), length, dtype=np.uint32).astype(dtype)


def _ranges(n: int, count: int) -> Mapping[str, np.ndarray]:
    """Return ranges that make n items, in the source one behind another, and in the output in another order."""
    rng = np.random.default_rng([n, count])
    ends = np.sort(rng.integers(0, n, count, endpoint=True))
    ends[-1:] = n
    lengths = np.diff(ends, prepend=0)
    order = rng.permutation(count)
    places = np.empty(count, np.int64)
    places[order] = np.cumsum(lengths[order]) - lengths[order]
    return {"lengths": lengths, "source_offsets": ends - lengths, "destination_offsets": places}


def _maker(name: str) -> Maker:
    def make(rng: np.random.Generator, length: int, dtype: np.dtype, axes: Mapping[str, Any]) -> np.ndarray:
        del rng  # the three arguments belong together
        return _ranges(axes["n"], length)[name].astype(dtype)

    return make


#: Makers of the arguments of ranges that are copied, by their names.
RANGE_DATA: Mapping[str, Maker] = {name: _maker(name) for name in ("lengths", "source_offsets", "destination_offsets")}
