"""Where sorted chunks are cut, so that everything before the cuts is the first r items of all. No Dask, no GPU.

The items of all chunks have one order: by key, of equal keys by chunk, and by position in it. So there are no ties,
parts have exactly the lengths that were asked for however often a key occurs, and the sort stays stable.

For each cut there is a window in every chunk, in which the cut lies. A round takes the keys at every `step`-th position
of the windows. From where these lie among each other follows how many items come before each of them, to within a step
in each chunk, and so narrower windows. The last round takes every key.

Keys are compared as numbers without a sign in the order of numpy's sort: −0 equals 0, every NaN comes last and equals
every other, in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Keys that a round takes of all chunks, for each cut.
MOST_SAMPLED = 1 << 16
#: Of each chunk at least so many, or many chunks would take many rounds.
_LEAST_OF_A_CHUNK = 64


@dataclass(frozen=True)
class Search:
    """The windows of the cuts.

    Attributes
    ----------
    ranks : numpy.ndarray
        Of i64: how many items are before each cut.
    low, high : numpy.ndarray
        Of i64, shape (chunks, cuts): in each chunk the first and the last position where the cut may be.
    step : numpy.ndarray
        Of i64: the distance of the keys that the next round takes.
    """

    ranks: np.ndarray
    low: np.ndarray
    high: np.ndarray
    step: np.ndarray


def _budget(chunks: int) -> int:
    return max(MOST_SAMPLED, _LEAST_OF_A_CHUNK * chunks)


def _step(window: Any, chunks: int) -> Any:
    return -(-window // _budget(chunks))


def rounds(chunks: int, items: int) -> int:
    """Return after how many rounds windows of so many items in all are closed, in the worst case."""
    count = 1
    while items > _budget(chunks):
        items = 2 * (chunks + 1) * _step(items, chunks)
        count += 1
    return count


def search(sizes: Sequence[int], ends: Sequence[int]) -> Search:
    """Return the beginning of a search for cuts.

    Parameters
    ----------
    sizes : sequence of int
        Lengths of the chunks, and of the parts.
    ends : sequence of int
        Before which parts the cuts are.
    """
    high = np.repeat(np.array(sizes, np.int64)[:, None], len(ends), 1)
    ranks = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])[list(ends)]
    return _begun(ranks, np.zeros_like(high), high)


def _begun(ranks: np.ndarray, low: np.ndarray, high: np.ndarray) -> Search:
    return Search(ranks, low, high, np.maximum(_step((high - low).sum(axis=0), len(low)), 1))


def positions(state: Search, index: int) -> np.ndarray:
    """Return the positions in a chunk whose keys the next round takes, for one cut after the other."""
    windows = zip(state.low[index].tolist(), state.high[index].tolist(), state.step.tolist(), strict=True)
    return np.concatenate([np.arange(low, high, step, dtype=np.int64) for low, high, step in windows])


def sampled(keys: Any, state: Search, index: int, *, descending: bool) -> np.ndarray:
    """Return the keys at these positions of a sorted chunk, on the GPU or on the host, as `ordered` numbers."""
    at = positions(state, index)
    # An empty chunk has no items to index, and a kernel needs some.
    found: Any = keys[at] if at.size else np.empty(0, keys.dtype)
    return ordered(found if isinstance(found, np.ndarray) else found.to_numpy(), descending)


def narrowed(state: Search, samples: Sequence[np.ndarray]) -> Search:
    """Return the search after a round, from the keys that it took of each chunk."""
    chunks, splitters = state.low.shape
    counts = -(-(state.high - state.low) // state.step)
    ends = np.cumsum(counts, axis=1)
    low, high = np.empty_like(state.low), np.empty_like(state.high)
    for cut in range(splitters):
        parts = [samples[i][ends[i, cut] - counts[i, cut] : ends[i, cut]] for i in range(chunks)]
        low[:, cut], high[:, cut] = _narrower(
            parts, state.low[:, cut], state.high[:, cut], int(state.step[cut]), int(state.ranks[cut])
        )
    return _begun(state.ranks, low, high)


def _narrower(
    parts: Sequence[np.ndarray], low: np.ndarray, high: np.ndarray, step: int, rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return narrower windows of one cut."""
    counts = np.array([part.size for part in parts])
    chunk = np.repeat(np.arange(len(parts)), counts)
    place = np.arange(chunk.size) - np.repeat(np.cumsum(counts) - counts, counts)
    order = np.argsort(np.concatenate(parts), kind="stable")  # of equal keys by chunk and position
    chunk, position = chunk[order], low[chunk[order]] + step * place[order]
    # How many items come before each sampled one, at least and at most: a chunk has as many as lie before its last
    # sampled item before this one, and that item; and at most as many as lie before its next one.
    at_least = np.concatenate([[0], np.cumsum(np.where(position == low[chunk], 1, step))]) + low.sum()
    at_most = np.concatenate([[0], np.cumsum(np.minimum(step, high[chunk] - position))]) + low.sum()
    left = int(np.searchsorted(at_most, rank, "right")) - 1  # this one has no more than `rank` items before it
    right = int(np.searchsorted(at_least, rank, "left"))  # this one has no fewer
    before = np.bincount(chunk[:left], minlength=len(parts))
    new_low = np.where(before > 0, low + (before - 1) * step + 1, low)
    through = np.bincount(chunk[:right], minlength=len(parts))
    new_high = high if right > chunk.size else np.minimum(low + through * step, high)
    return new_low, new_high


def cuts(state: Search) -> np.ndarray:
    """Return where each chunk is cut, after the last round: i64, shape (chunks, cuts)."""
    assert (state.low == state.high).all(), "the rounds were enough"
    return state.low


def ordered(keys: np.ndarray, descending: bool) -> np.ndarray:
    """Return numbers without a sign whose order is that of the keys in a sort."""
    unsigned = np.dtype(f"u{keys.dtype.itemsize}")
    bits = keys.view(unsigned)
    top = unsigned.type(1 << (unsigned.itemsize * 8 - 1))
    if keys.dtype.kind == "i":
        bits = bits ^ top
    elif keys.dtype.kind == "f":
        bits = np.where(keys == 0, unsigned.type(0), bits)
        bits = np.where(bits & top, ~bits, bits ^ top)
    if descending:
        bits = ~bits
    if keys.dtype.kind == "f":
        bits = np.where(np.isnan(keys), np.iinfo(unsigned).max, bits)
    return bits.astype(unsigned, copy=False)
