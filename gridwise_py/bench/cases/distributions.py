"""Random data by name: the time of a sort depends on its keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ... import Argument
from ...errors import ArgumentError

UNIFORM = "uniform"
_ZIPF_EXPONENT = 1.2
_FEW = 16
# Ands of so many random words, and the entropy of a bit of the result: Thearling and Smith, "An improved
# supercomputer sorting benchmark" (1992), which the benchmarks of CUB name as well.
_ENTROPIES = {"entropy_0.811": 2, "entropy_0.544": 3, "entropy_0.337": 4, "entropy_0.201": 5}


def _bits(rng: np.random.Generator, n: int, dtype: np.dtype) -> np.ndarray:
    return rng.integers(0, 1 << 32, -(-n * dtype.itemsize // 4), dtype=np.uint32).view(f"u{dtype.itemsize}")[:n]


def _uniform(rng: np.random.Generator, n: int, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":  # half of them true
        return rng.integers(0, 2, n, dtype=np.uint8).view(dtype)
    if dtype.kind != "f":
        return _bits(rng, n, dtype).view(dtype)
    wide = max(dtype, np.dtype(np.float32), key=lambda kind: kind.itemsize)  # numpy draws no f16
    return (rng.random(n, dtype=wide) * 2 - 1).astype(dtype, copy=False)


def _anded(words: int) -> Callable[[np.random.Generator, int, np.dtype], np.ndarray]:
    def items(rng: np.random.Generator, n: int, dtype: np.dtype) -> np.ndarray:
        bits = _bits(rng, n, dtype)
        for _ in range(words - 1):
            bits &= _bits(rng, n, dtype)
        if dtype.kind == "f":  # no NaNs or infinities
            bits &= ~bits.dtype.type(1 << (np.finfo(dtype).nmant + 2))
        return bits.view(dtype)

    return items


def _few(rng: np.random.Generator, n: int, dtype: np.dtype) -> np.ndarray:
    return _uniform(rng, _FEW, dtype)[rng.integers(0, _FEW, n, dtype=np.uint8)]


def _zipf(rng: np.random.Generator, n: int, dtype: np.dtype) -> np.ndarray:
    # By inverting the distribution of a continuous power law, which is fast; rank 1 is the most frequent.
    ranks = rng.random(n) ** (-1 / (_ZIPF_EXPONENT - 1))
    most = min(2.0**31 - 1, float(np.finfo(dtype).max)) if dtype.kind == "f" else 2.0**31 - 1
    return np.minimum(ranks, most).astype(np.int64).astype(dtype)


def _specials(rng: np.random.Generator, n: int, dtype: np.dtype) -> np.ndarray:
    if dtype.kind != "f":
        raise ArgumentError(f"the distribution 'specials' has NaN, infinities and both zeros: floats, not {dtype}")
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).tiny, -np.finfo(dtype).max], dtype=dtype)
    items = _uniform(rng, n, dtype)
    chosen = rng.random(n) < 0.25
    items[chosen] = rng.choice(special, int(chosen.sum()))
    return items


#: Makers of items by name: of a generator, a number of items and a dtype.
DISTRIBUTIONS: Mapping[str, Callable[[np.random.Generator, int, np.dtype], np.ndarray]] = {
    UNIFORM: _uniform,
    **{name: _anded(words) for name, words in _ENTROPIES.items()},
    "few": _few,
    "equal": lambda rng, n, dtype: np.full(n, _uniform(rng, 1, dtype)[0], dtype=dtype),
    "sorted": lambda rng, n, dtype: np.sort(_uniform(rng, n, dtype)),
    "reversed": lambda rng, n, dtype: np.sort(_uniform(rng, n, dtype))[::-1].copy(),
    "zipf": _zipf,
    "specials": _specials,
}


def random_items(name: str, rng: np.random.Generator, n: int, dtype: np.dtype) -> np.ndarray:
    """Return `n` items of a distribution.

    Parameters
    ----------
    name : str
        A key of `DISTRIBUTIONS`: ``uniform`` (all bit patterns of integers, floats from −1 to 1); ``entropy_0.811`` and
        so on, with that many bits of information in each bit; ``few`` (16 different items); ``equal``; ``sorted``;
        ``reversed``; ``zipf`` (exponent 1.2, cut at 2³¹ − 1 or the largest number); ``specials`` (a quarter of NaN,
        ±inf, ±0, the smallest normal number, the lowest).
    rng : numpy.random.Generator
    n : int
    dtype : numpy.dtype
        Of 2, 4 or 8 bytes; of complex numbers the distribution is that of their parts.

    Raises
    ------
    ArgumentError
        If there is no such distribution, or it has no items of this dtype.
    """
    if name not in DISTRIBUTIONS:
        raise ArgumentError(f"there is no distribution {name!r}; there are {', '.join(DISTRIBUTIONS)}")
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return DISTRIBUTIONS[name](rng, 2 * n, np.dtype(f"f{dtype.itemsize // 2}")).view(dtype)
    return DISTRIBUTIONS[name](rng, n, dtype)


def random_input(argument: Argument, name: str, rng: np.random.Generator, n: int, dtype: np.dtype) -> np.ndarray:
    """Return `n` items of a distribution for an argument: sorted if they must ascend."""
    items = random_items(name, rng, n, dtype)
    return np.sort(items) if argument.ascending else items
