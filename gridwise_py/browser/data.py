"""Data of cases that numpy and JavaScript make alike, to the bit: a recipe instead of a file.

A recipe starts with the numbers 0, 1, 2, … as u32, applies steps to all of them, and converts them to items. The steps
are those of `_STEPS`; page/runner.js has the same. All of them are exact in 32-bit integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from .. import Argument, Multiply
from ..bench.cases.data import (
    RANGE_DATA,
    Maker,
    equal_segments,
    flags,
    late_flags,
    middle_places,
    permutation,
    random_counts,
    random_indices,
    random_runs,
    scattered_keys,
)
from ..bench.cases.distributions import UNIFORM
from ..errors import ArgumentError

_Words: TypeAlias = NDArray[np.uint32]
#: A name, and the numbers that it takes.
Step: TypeAlias = tuple[str | int, ...]

_GOLDEN = np.uint32(0x9E37_79B9)
_ALL = (1 << 32) - 1
_MOST_PLACES = 1 << 26


def _mixed(x: _Words, seed: int) -> _Words:
    """Return a hash of each number: two rounds of multiply and shift (C. Wellons, "Prospecting for hash functions")."""
    x = x * _GOLDEN + np.uint32(seed)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x21F0_AAAD)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x735A_2D97)
    x ^= x >> np.uint32(15)
    return x


def _with_last(x: _Words, value: int) -> _Words:
    x = x.copy()
    x[-1:] = value
    return x


#: What a step does to the numbers, with the number that it takes (0 if it takes none). A result beyond 32 bits keeps
#: its lowest 32.
STEPS: Mapping[str, Callable[[_Words, int], _Words]] = {
    "hash": _mixed,
    "and_hash": lambda x, seed: x & _mixed(np.arange(x.size, dtype=np.uint32), seed),
    "and": lambda x, k: x & np.uint32(k),
    "or": lambda x, k: x | np.uint32(k),
    "xor": lambda x, k: x ^ np.uint32(k),
    "shift": lambda x, k: x >> np.uint32(k),
    "mod": lambda x, k: x % np.uint32(k),
    "times": lambda x, k: x * np.uint32(k),
    # Modulo the number of numbers; below 2^53, so that JavaScript has it exactly.
    "times_around": lambda x, k: (x.astype(np.uint64) * np.uint64(k) % np.uint64(max(x.size, 1))).astype(np.uint32),
    "min": lambda x, k: np.minimum(x, np.uint32(k)),
    "less": lambda x, k: (x < np.uint64(k)).astype(np.uint32),
    "sum": lambda x, _: np.cumsum(x, dtype=np.uint32),
    "sort": lambda x, _: np.sort(x),
    "reverse": lambda x, _: x[::-1].copy(),
    "differences": lambda x, _: np.diff(x, prepend=np.uint32(0)),
    "last": _with_last,
}


@dataclass(frozen=True)
class Recipe:
    """How the items of an input are made.

    Attributes
    ----------
    words : int
        How many numbers.
    steps : tuple
        Each a name of `STEPS` and its numbers.
    form : str
        What becomes of each number: ``"u32"`` its bits, ``"u8"`` and ``"u16"`` its lowest bits, ``"u64"`` a number of
        8 bytes, ``"f32"`` that number times `scale` plus `offset`, computed in double precision.
    scale, offset : float
    """

    words: int
    steps: tuple[Step, ...]
    form: str = "u32"
    scale: float = 1.0
    offset: float = 0.0

    def items(self, dtype: np.dtype[Any]) -> np.ndarray:
        """Return the items, whose bytes are of `dtype`."""
        x: _Words = np.arange(self.words, dtype=np.uint32)
        for name, *numbers in self.steps:
            x = STEPS[cast(str, name)](x, cast(int, numbers[0]) if numbers else 0)
        if self.form == "f32":
            made: np.ndarray = (x.astype(np.float64) * self.scale + self.offset).astype(np.float32)
        else:
            made = x.astype(np.dtype(f"u{int(self.form[1:]) // 8}"))
        return made.view(dtype)

    def to_json(self) -> dict[str, Any]:
        """Return the recipe for the page."""
        data: dict[str, Any] = {"words": self.words, "steps": [list(step) for step in self.steps], "as": self.form}
        return data | ({"scale": self.scale, "offset": self.offset} if self.form == "f32" else {})


# ---- distributions

#: The steps of a distribution, of a seed: they make 32 random bits a number.
_DISTRIBUTIONS: Mapping[str, Callable[[int], tuple[Step, ...]]] = {
    UNIFORM: lambda seed: (("hash", seed),),
    "entropy_0.811": lambda seed: _anded(seed, 2),
    "entropy_0.544": lambda seed: _anded(seed, 3),
    "entropy_0.337": lambda seed: _anded(seed, 4),
    "entropy_0.201": lambda seed: _anded(seed, 5),
    "few": lambda seed: (("hash", seed), ("and", 15), ("hash", seed + 1)),
    "equal": lambda seed: (("times", 0), ("hash", seed)),
    "sorted": lambda seed: (("hash", seed), ("sort",)),
    "reversed": lambda seed: (("hash", seed), ("sort",), ("reverse",)),
}
_ORDERED = ("sorted", "reversed")


def _anded(seed: int, words: int) -> tuple[Step, ...]:
    return (("hash", seed), *(("and_hash", seed + (i << 16)) for i in range(1, words)))


# ---- makers


def _flags(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
    steps = (("hash", seed), ("and", 0xFFFF), ("less", round(float(axes["share"]) * (1 << 16))))
    return _as_numbers(length, steps, dtype)


def _runs(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
    heads: tuple[Step, ...] = (("hash", seed), ("less", round(2**32 / int(axes["run"]))), ("sum",))
    if dtype.kind == "f":
        return _as_numbers(length, (*heads, ("mod", 2048)), dtype)
    wide = (("times", int(_GOLDEN)),)  # odd, so that neighbours differ in their lowest bit
    return _as_numbers(length, (*heads, *(() if dtype.kind == "b" else wide)), dtype)


def _segments(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
    return _as_numbers(length, (("times", int(axes["segment"])), ("min", int(axes["n"]))), dtype)


def _counts(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
    n = int(axes["n"])
    steps = (("hash", seed), ("mod", n + 1), ("sort",), ("last", n), ("differences",))
    return _as_numbers(length, steps, dtype)


def _indices(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
    return _as_numbers(length, (("hash", seed), ("mod", int(axes["bins"]))), dtype)


def _scattered(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
    return _as_numbers(length, (("hash", seed), ("mod", max(int(axes["n"]) // int(axes["run"]), 1))), dtype)


#: The recipe for data of the same kind as a maker's, of a number of items, their dtype, the axes and a seed.
def _permutation(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
    """Return places far apart: multiples of a number without a common divisor with the length, modulo the length."""
    del axes, seed
    if length > _MOST_PLACES:
        raise ArgumentError(f"the page has no permutation of {length} items, at most of {_MOST_PLACES}")
    return _as_numbers(length, (("times_around", _factor(length)),), dtype)


def _factor(length: int) -> int:
    """Return a number without a common divisor with `length`, whose multiples are far apart modulo it."""
    factor = max(1, int(length * 0.618))
    while math.gcd(factor, length) > 1:
        factor += 1
    return factor


def _late_flags(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
    first = round(float(axes["share"]) * length)
    late: tuple[Step, ...] = (("less", first), ("xor", 1), ("times", _ALL))
    return _as_numbers(length, (*late, ("and_hash", seed), ("and", 63)), dtype)


def _middle_places(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
    steps: tuple[Step, ...] = (("times", int(axes["n"]) // (length + 1)),)
    return _as_numbers(length, (("times", 0), ("or", int(axes["n"]) // 2)) if length == 1 else steps, dtype)


def _ranges(of: Callable[[int, int], tuple[Step, ...]]) -> Callable[..., Recipe]:
    """Return the recipe for an argument of ranges of one length, of that length and of how many there are."""

    def recipe(length: int, dtype: np.dtype[Any], axes: Mapping[str, Any], seed: int) -> Recipe:
        n = int(axes["n"])
        if n % max(length, 1):
            raise ArgumentError(f"the page has {length} ranges of one length only, which do not make {n} items")
        return _as_numbers(length, of(n // max(length, 1), length), dtype)

    return recipe


_MAKERS: Mapping[Maker, Callable[[int, np.dtype[Any], Mapping[str, Any], int], Recipe]] = {
    flags: _flags,
    random_runs: _runs,
    equal_segments: _segments,
    random_counts: _counts,
    random_indices: _indices,
    scattered_keys: _scattered,
    permutation: _permutation,
    late_flags: _late_flags,
    middle_places: _middle_places,
    RANGE_DATA["lengths"]: _ranges(lambda each, _: (("times", 0), ("or", each))),
    RANGE_DATA["source_offsets"]: _ranges(lambda each, _: (("times", each),)),
    RANGE_DATA["destination_offsets"]: _ranges(lambda each, count: (("times_around", _factor(count)), ("times", each))),
}


def _as_numbers(length: int, steps: tuple[Step, ...], dtype: np.dtype[Any]) -> Recipe:
    """Return a recipe whose numbers are the items' values."""
    if dtype.kind == "b":
        return Recipe(length, (*steps, ("and", 1)), "u8")
    if dtype == np.float32:
        return Recipe(length, steps, "f32")
    if dtype == np.float16:  # the 1,024 numbers from 0.5 to 1, whose bits are those of whole numbers
        return Recipe(length, (*steps, ("and", 0x3FF), ("or", 0x3800)), "u16")
    if dtype.kind == "f":
        raise ArgumentError(f"the page has no data of {dtype}, which no browser computes with")
    return Recipe(length, steps, f"u{8 * dtype.itemsize}")


def _as_bits(length: int, steps: tuple[Step, ...], dtype: np.dtype[Any], *, ordered: bool) -> Recipe:
    """Return a recipe whose numbers are the items' random bits; of floats from −1 to 1."""
    if dtype == np.float32:
        return Recipe(length, (*steps, ("shift", 8)), "f32", 2.0**-23, -1.0)
    if dtype.kind in "bf":
        if dtype == np.float16 and not ordered:
            return Recipe(length, (*steps, ("and", 0x83FF), ("or", 0x3800)), "u16")  # from 0.5 to 1, of both signs
        narrow: tuple[Step, ...] = (("shift", 22),) if dtype == np.float16 else (("shift", 31),)
        return _as_numbers(length, (*steps, *narrow), dtype)
    if dtype.itemsize == 8 and not ordered:
        return Recipe(2 * length, steps)
    if dtype.itemsize == 4:
        return Recipe(length, (*steps, ("xor", 1 << 31)) if ordered and dtype.kind == "i" else steps)
    if ordered and dtype.itemsize < 4:
        steps = (*steps, ("shift", 32 - 8 * dtype.itemsize))
        steps = (*steps, ("xor", 1 << (8 * dtype.itemsize - 1))) if dtype.kind == "i" else steps
    return Recipe(length, steps, f"u{8 * dtype.itemsize}")


def _whole_numbers(length: int, seed: int, dtype: np.dtype[Any], largest: int) -> Recipe:
    """Return whole numbers up to `largest`, or so small that sums of them are exact in f32, however they are grouped.

    A sum of some of `length` numbers with random signs is below the largest number times the root of their count, times
    16, which is 27 standard deviations.
    """
    if dtype != np.float32:
        raise ArgumentError(f"the page has no sums of {dtype}, which are exact in no order")
    largest = max(1, min(largest, int(2.0**24 / (16 * math.sqrt(max(length, 1))))))
    return Recipe(length, (("hash", seed), ("mod", 2 * largest + 1)), "f32", 1.0, -float(largest))


def recipe_for(
    argument: Argument,
    length: int,
    dtype: np.dtype[Any],
    *,
    maker: Maker | None,
    distribution: str,
    axes: Mapping[str, Any],
    op: str | None,
    largest: int | None,
    seed: int,
) -> Recipe:
    """Return the recipe for an input of a case.

    Parameters
    ----------
    argument : Argument
        The input's rule: whether it ascends.
    length : int
        Items.
    dtype : numpy.dtype
    maker : callable or None
        The maker of `cases.data` whose kind of data it is; None for a distribution.
    distribution : str
        A key of `DISTRIBUTIONS`.
    axes : mapping
        The axes of the case, and its n.
    op : str or None
        The operator of the case.
    largest : int or None
        Floats are whole numbers up to this, so that sums and products are exact; None: random reals.
    seed : int

    Raises
    ------
    ArgumentError
        If there is no recipe for such data.
    """
    if maker is not None:
        if maker not in _MAKERS:
            raise ArgumentError(f"the page has no recipe for the data of {getattr(maker, '__name__', maker)}")
        return _MAKERS[maker](length, dtype, axes, seed)
    if distribution not in _DISTRIBUTIONS:
        raise ArgumentError(
            f"the page has no data of the distribution {distribution!r}; it has {', '.join(_DISTRIBUTIONS)}"
        )
    if op == Multiply.name and dtype == np.float32:
        # ±1: a product of many other floats would overflow or underflow.
        return Recipe(length, (("hash", seed), ("shift", 31)), "f32", 2.0, -1.0)
    if largest is not None and dtype.kind == "f":
        return _whole_numbers(length, seed, dtype, largest)
    steps = _DISTRIBUTIONS[distribution](seed & _ALL)
    if argument.ascending and distribution not in _ORDERED:
        steps = (*steps, ("sort",))
    return _as_bits(length, steps, dtype, ordered=argument.ascending or distribution in _ORDERED)
