"""Exact splitters: the keys at given ranks of an array whose chunks are sorted, each on its own. No Dask, no GPU.

This is a radix selection over the bits of the keys, in their order. A round fixes `digit` bits of all splitters at
once: each chunk counts, by binary search, the keys before each of the 2^digit candidates of each splitter; the counts
of all chunks are added up, and of each splitter the last candidate is taken before which there are at most as many keys
as its rank. After all rounds a splitter is the key at its rank.

`cuts` then says where each chunk is cut. Keys that equal a splitter go to the parts in the order of their chunks, so
every part has exactly the length that was asked for, however often a key occurs, and the sort stays stable.

The order is numpy's: −0 equals 0, every NaN comes last and equals every other, in both directions. Bits have another
order there: patterns of NaN lie at both ends. Those at the front end stand for the first number instead, so that the
counts of candidates never fall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = [
    "MOST_PARTS",
    "Search",
    "counted",
    "cuts",
    "digit_bits",
    "edges",
    "narrowed",
    "piece",
    "rounds",
    "search",
    "totalled",
]

#: Beyond this many parts the table of cuts is larger than 2048² × 16 bytes, 67 MB.
MOST_PARTS = 2048
#: Counts of a chunk in a round.
_MOST_COUNTS = 1 << 17


@dataclass(frozen=True)
class Search:
    """The state of the selection: the leading bits that are fixed, of each splitter.

    Attributes
    ----------
    ranks : numpy.ndarray
        Of i64: how many keys come before each splitter.
    prefixes : numpy.ndarray
        Of u64: the bits that are fixed.
    done : int
        How many these are.
    descending : bool
    """

    ranks: np.ndarray
    prefixes: np.ndarray
    done: int
    descending: bool


def digit_bits(parts: int) -> int:
    """Return how many bits a round fixes: a chunk's counts are at most 1 MiB."""
    return max(1, min(8, (_MOST_COUNTS // max(parts - 1, 1)).bit_length() - 1))


def rounds(dtype: np.dtype, parts: int) -> list[int]:
    """Return the number of bits of each round."""
    bits, digit = dtype.itemsize * 8, digit_bits(parts)
    return [min(digit, bits - done) for done in range(0, bits, digit)]


def search(sizes: Sequence[int], *, descending: bool) -> Search:
    """Return the beginning of a search for the splitters between parts of these lengths."""
    ranks = np.cumsum(sizes, dtype=np.int64)[:-1]
    return Search(ranks, np.zeros(ranks.size, np.uint64), 0, descending)


def counted(chunk: tuple[np.ndarray, ...], state: Search, *, digit: int) -> np.ndarray:
    """Return how many keys of a sorted chunk come before each candidate: i64, shape (splitters, 2^digit).

    The first column of a chunk has its keys.
    """
    keys = _numbers(chunk[0])
    bits = keys.dtype.itemsize * 8
    digits = np.arange(1 << digit, dtype=np.uint64)
    places = (state.prefixes[:, None] << np.uint64(digit)) | digits
    places = places << np.uint64(bits - state.done - digit)
    return _before(keys, _values(places, keys.dtype, state.descending), state.descending)


def totalled(counts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum of counts of several chunks."""
    return np.sum(counts, axis=0)


def narrowed(state: Search, counts: Sequence[np.ndarray], *, digit: int) -> Search:
    """Return the search after a round, from the counts of all chunks."""
    within = totalled(counts) <= state.ranks[:, None]
    chosen = np.count_nonzero(within, axis=1).astype(np.uint64) - np.uint64(1)
    prefixes = (state.prefixes << np.uint64(digit)) | chosen
    return Search(state.ranks, prefixes, state.done + digit, state.descending)


def edges(chunk: tuple[np.ndarray, ...], state: Search) -> np.ndarray:
    """Return how many keys of a sorted chunk come before each splitter, and before or with it: shape (2, splitters)."""
    keys = _numbers(chunk[0])
    values = _values(state.prefixes, keys.dtype, state.descending)
    return np.stack([_before(keys, values, state.descending), _through(keys, values, state.descending)])


def cuts(found: Sequence[np.ndarray], state: Search) -> np.ndarray:
    """Return where each sorted chunk is cut, from the edges of all: i64, shape (chunks, splitters)."""
    table = np.stack(found)
    before, equal = table[:, 0], table[:, 1] - table[:, 0]
    wanted = state.ranks - before.sum(axis=0)
    earlier = np.cumsum(equal, axis=0) - equal
    return before + np.clip(wanted - earlier, 0, equal)


def piece(chunk: tuple[np.ndarray, ...], table: np.ndarray, index: int, part: int) -> tuple[np.ndarray, ...]:
    """Return what a sorted chunk gives to a part. A copy: a view would keep the whole chunk in memory."""
    row = table[index]
    begin = 0 if part == 0 else int(row[part - 1])
    end = chunk[0].size if part == row.size else int(row[part])
    return tuple(column[begin:end].copy() for column in chunk)


# ---- the order of keys


def _numbers(keys: np.ndarray) -> np.ndarray:
    return keys.view(np.uint8) if keys.dtype == np.bool_ else keys


def _values(places: np.ndarray, dtype: np.dtype, descending: bool) -> np.ndarray:
    """Return the keys at places of the order, which count from the first key in it."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    bits = places.astype(unsigned)
    if descending:
        bits = ~bits
    if dtype.kind == "u":
        return bits.view(dtype)
    top = unsigned.type(1 << (dtype.itemsize * 8 - 1))
    if dtype.kind == "i":
        return (bits ^ top).view(dtype)
    values = np.where(bits & top, bits ^ top, ~bits).astype(unsigned).view(dtype)
    first = np.inf if descending else -np.inf
    at_front = (bits & top) != 0 if descending else (bits & top) == 0
    return np.where(np.isnan(values) & at_front, dtype.type(first), values)


def _before(keys: np.ndarray, values: np.ndarray, descending: bool) -> np.ndarray:
    """Return how many sorted keys come before each value."""
    if not descending:
        return np.searchsorted(keys, values, "left").astype(np.int64)
    numbers = keys.size - _nans(keys)
    found = numbers - np.searchsorted(keys[:numbers][::-1], values, "right")
    return np.where(_is_nan(values), numbers, found).astype(np.int64)


def _through(keys: np.ndarray, values: np.ndarray, descending: bool) -> np.ndarray:
    """Return how many sorted keys come before each value, or equal it."""
    if not descending:
        return np.searchsorted(keys, values, "right").astype(np.int64)
    numbers = keys.size - _nans(keys)
    found = numbers - np.searchsorted(keys[:numbers][::-1], values, "left")
    return np.where(_is_nan(values), keys.size, found).astype(np.int64)


def _is_nan(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, np.bool_)


def _nans(keys: np.ndarray) -> int:
    """Return how many keys are NaN, which are last in sorted keys."""
    if keys.dtype.kind != "f" or keys.size == 0:
        return 0
    # NaN is greater than everything to searchsorted.
    return keys.size - int(np.searchsorted(np.isnan(keys), True))
