"""The fixed order of deterministic reductions and scans, written down a second time, in numpy: bit for bit.

Nothing here is read from the library: the shape is a part of what it promises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

INVOCATIONS, ROWS = 256, 4
TILE = INVOCATIONS * ROWS * 4
REDUCE_BLOCKS, SCAN_BLOCKS = 528, 1056
#: Unit roundoff of f32.
U = 2.0**-24

Op = Callable[[Any, Any], Any]


def split(n: int, most_blocks: int) -> tuple[int, int]:
    """Return tiles per block and blocks."""
    tiles = -(-n // TILE)
    per_block = -(-tiles // min(tiles, most_blocks))
    return per_block, -(-tiles // per_block)


def settle(x: np.ndarray) -> np.ndarray:
    """Give every NaN the same bits."""
    return np.where(np.isnan(x), np.uint32(0x7FC00000), x.view(np.uint32)).view(np.float32)


def padded(x: np.ndarray, per_block: int, blocks: int, identity: float) -> np.ndarray:
    """Return items as [block, tile, invocation, row, component]."""
    whole = np.full(blocks * per_block * TILE, identity, np.float32)
    whole[: x.size] = x
    return whole.reshape(blocks, per_block, INVOCATIONS, ROWS, 4)


def along_invocations(op: Op, y: np.ndarray, identity: float) -> np.ndarray:
    """Hillis and Steele's inclusive scan along the last axis."""
    distance = 1
    while distance < INVOCATIONS:
        left = np.concatenate([np.full((*y.shape[:-1], distance), identity, y.dtype), y[..., :-distance]], axis=-1)
        y = op(left, y)
        distance *= 2
    return y


def of_four(op: Op, v: np.ndarray) -> np.ndarray:
    return op(op(v[..., 0], v[..., 1]), op(v[..., 2], v[..., 3]))


def block_totals(op: Op, items: np.ndarray, identity: float) -> np.ndarray:
    sums = np.full((items.shape[0], INVOCATIONS, 4), identity, np.float32)
    for tile in range(items.shape[1]):
        for row in range(ROWS):
            sums = op(sums, items[:, tile, :, row])
    return along_invocations(op, of_four(op, sums), identity)[:, -1]


def reduce_twin(x: np.ndarray, op: Op = np.add, identity: float = 0.0) -> np.ndarray:
    """Return the reduction, shape (1,)."""
    if x.size == 0:
        return np.array([identity], np.float32)
    with np.errstate(all="ignore"):
        per_block, blocks = split(x.size, REDUCE_BLOCKS)
        totals = block_totals(op, padded(x, per_block, blocks, identity), identity)
        if blocks == 1:
            return settle(totals)
        each = -(-blocks // INVOCATIONS)
        rows = np.full(each * INVOCATIONS, identity, np.float32)
        rows[:blocks] = totals
        sums = np.full(INVOCATIONS, identity, np.float32)
        for column in rows.reshape(INVOCATIONS, each).T:
            sums = op(sums, column)
        return settle(along_invocations(op, sums, identity)[-1:])


def scan_blocks(op: Op, items: np.ndarray, carry: np.ndarray, exclusive: bool, identity: float) -> np.ndarray:
    found = np.empty_like(items)
    for tile in range(items.shape[1]):
        v = items[:, tile]
        rows = v[:, :, 0]
        for row in range(1, ROWS):
            rows = op(rows, v[:, :, row])
        sums = along_invocations(op, of_four(op, rows), identity)
        before = np.concatenate([np.full((sums.shape[0], 1), identity, np.float32), sums[:, :-1]], axis=1)
        before = op(carry[:, None], before)
        for row in range(ROWS):
            x = v[:, :, row, 0]
            y = op(x, v[:, :, row, 1])
            z = op(y, v[:, :, row, 2])
            w = op(z, v[:, :, row, 3])
            start = op(np.float32(identity), op(before, np.float32(identity)))
            parts = [start, *(op(start, part) for part in (x, y, z, w))]
            found[:, tile, :, row] = np.stack(parts[:4] if exclusive else parts[1:], axis=-1)
            before = op(before, w)
        carry = op(carry, sums[:, -1])
    return found


def scan_twin(x: np.ndarray, kind: str, op: Op = np.add, identity: float = 0.0) -> np.ndarray:
    """Return all prefixes."""
    if x.size == 0:
        return x
    with np.errstate(all="ignore"):
        per_block, blocks = split(x.size, SCAN_BLOCKS)
        items = padded(x, per_block, blocks, identity)
        carry = np.full(1, identity, np.float32)
        if blocks > 1:
            totals = padded(block_totals(op, items, identity), 1, 1, identity)
            carry = scan_blocks(op, totals, carry, True, identity).reshape(-1)[:blocks]
        return settle(scan_blocks(op, items, carry, kind == "exclusive", identity).reshape(-1)[: x.size])


# ---- compensated sums: pairs (sum, error), combined by Knuth's TwoSum ----


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)


def add_pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    s, e = two_sum(a["sum"], b["sum"])
    return pairs(s, (a["error"] + b["error"]) + e)


def pairs(sums: np.ndarray, errors: np.ndarray) -> np.ndarray:
    made = np.zeros(np.shape(sums), [("sum", np.float32), ("error", np.float32)])
    made["sum"], made["error"] = sums, errors
    return made


def compensated_blocks(x: np.ndarray, most_blocks: int) -> np.ndarray:
    """Return the pairs of all blocks."""
    per_block, blocks = split(x.size, most_blocks)
    whole = np.zeros(blocks * per_block * TILE, np.float32)
    whole[: x.size] = x
    rows = whole.reshape(blocks, per_block * ROWS, INVOCATIONS, 4)
    sums = pairs(*np.zeros((2, blocks, INVOCATIONS, 4), np.float32))
    for row in range(rows.shape[1]):
        s, e = two_sum(sums["sum"], rows[:, row])
        sums = pairs(s, sums["error"] + e)
    return pairs_along_invocations(of_four(add_pairs, sums))[:, -1]


def value(total: np.ndarray) -> np.ndarray:
    finite = np.isfinite(total["sum"]) & np.isfinite(total["error"])
    return settle(np.where(finite, total["sum"] + total["error"], total["sum"]))


def compensated_twin(x: np.ndarray) -> np.ndarray:
    """Return the compensated sum, shape (1,)."""
    if x.size == 0:
        return np.zeros(1, np.float32)
    with np.errstate(all="ignore"):
        totals = compensated_blocks(x, REDUCE_BLOCKS)
        own = pairs(*np.zeros((2, INVOCATIONS), np.float32))
        for first in range(0, totals.size, INVOCATIONS):
            part = totals[first : first + INVOCATIONS]
            own[: part.size] = add_pairs(own[: part.size], part)
        return value(pairs_along_invocations(own)[-1:])


def compensated_scan_twin(x: np.ndarray, kind: str) -> np.ndarray:
    """Return all compensated prefixes."""
    if x.size == 0:
        return x
    with np.errstate(all="ignore"):
        per_block, blocks = split(x.size, SCAN_BLOCKS)
        carry = exclusive_pairs(compensated_blocks(x, SCAN_BLOCKS))
        items = padded(x, per_block, blocks, 0.0).reshape(blocks, per_block, INVOCATIONS, 4 * ROWS)
        found = np.empty_like(items)
        for tile in range(per_block):
            v = pairs(items[:, tile], np.zeros_like(items[:, tile]))
            own = pairs(*np.zeros((2, blocks, INVOCATIONS), np.float32))
            for k in range(4 * ROWS):
                own = add_pairs(own, v[..., k])
            sums = pairs_along_invocations(own)
            before = np.concatenate([np.zeros((blocks, 1), sums.dtype), sums[:, :-1]], axis=1)
            running = add_pairs(np.repeat(carry[:, None], INVOCATIONS, axis=1), before)
            for k in range(4 * ROWS):
                after = add_pairs(running, v[..., k])
                found[:, tile, :, k] = value(running if kind == "exclusive" else after)
                running = after
            carry = add_pairs(carry, sums[:, -1])
        return found.reshape(-1)[: x.size]


def exclusive_pairs(totals: np.ndarray) -> np.ndarray:
    """Scan the pairs of the blocks: each invocation takes some neighbouring ones."""
    each = -(-totals.size // INVOCATIONS)
    rows = np.zeros(each * INVOCATIONS, totals.dtype)
    rows[: totals.size] = totals
    rows = rows.reshape(INVOCATIONS, each)
    own = np.zeros(INVOCATIONS, totals.dtype)
    for column in rows.T:
        own = add_pairs(own, column)
    running = np.concatenate([np.zeros(1, totals.dtype), pairs_along_invocations(own)[:-1]])
    found = np.empty_like(rows)
    for k in range(each):
        found[:, k] = running
        running = add_pairs(running, rows[:, k])
    return found.reshape(-1)[: totals.size]


def pairs_along_invocations(y: np.ndarray) -> np.ndarray:
    """Hillis and Steele's inclusive scan along the last axis."""
    distance = 1
    while distance < INVOCATIONS:
        left = np.concatenate([np.zeros((*y.shape[:-1], distance), y.dtype), y[..., :-distance]], axis=-1)
        y = add_pairs(left, y)
        distance *= 2
    return y


# ---- error bounds, as the docstrings state them ----


def longest_chain(n: int) -> int:
    """Return the most additions that an item goes through in a deterministic or compensated reduction."""
    _, blocks = split(n, REDUCE_BLOCKS)
    return 4 * math.ceil(math.ceil(n / TILE) / blocks) + 21


def exact(x: np.ndarray) -> tuple[float, float]:
    """Return Σx and Σ|x|."""
    return math.fsum(x.tolist()), math.fsum(np.abs(x).tolist())


def compensated_bound(x: np.ndarray) -> float:
    total, magnitude = exact(x)
    return U * abs(total) + 2 * (longest_chain(x.size) * U) ** 2 * magnitude


def ill_conditioned(n: int, condition: float, seed: int = 0) -> np.ndarray:
    """Return shuffled items with about that Σ|x| / |Σx|: pairs that cancel, and a small rest."""
    rng = np.random.default_rng([seed, n])
    half = (n - 1) // 2
    large = (rng.standard_normal(half) * np.exp2(rng.integers(-8, 9, half))).astype(np.float32)
    x = np.zeros(n, np.float32)
    x[:half], x[half : 2 * half] = large, -large
    x[-1] = 2 * np.abs(large.astype(np.float64)).sum() / condition
    rng.shuffle(x)
    return x
