"""Data of cases that numpy and JavaScript make alike, to the bit: a recipe instead of a file.

A recipe starts with the numbers 0, 1, 2, … as u32, applies steps to all of them, and converts them to items. The steps
are those of `_STEPS`; page/runner.js has the same. All of them are exact in 32-bit integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

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


def _mix(x: _Words, seed: int) -> _Words:
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
    "hash": _mix,
    "and_hash": lambda x, seed: x & _mix(np.arange(x.size, dtype=np.uint32), seed),
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
    "entropy_0.811": lambda seed: _and(seed, 2),
    "entropy_0.544": lambda seed: _and(seed, 3),
    "entropy_0.337": lambda seed: _and(seed, 4),
    "entropy_0.201": lambda seed: _and(seed, 5),
    "few": lambda seed: (("hash", seed), ("and", 15), ("hash", seed + 1)),
    "equal": lambda seed: (("times", 0), ("hash", seed)),
    "sorted": lambda seed: (("hash", seed), ("sort",)),
    "reversed": lambda seed: (("hash", seed), ("sort",), ("reverse",)),
}
_ORDERED = ("sorted", "reversed")


def _and(seed: int, words: int) -> tuple[Step, ...]:
    return (("hash", seed), *(("and_hash", seed + (i << 16)) for i in range(1, words)))


# ---- makers


class Wanted(NamedTuple):
    """The input of a case.

    Attributes
    ----------
    length : int
        Items.
    dtype : numpy.dtype
    axes : mapping
        The axes of the case, and its n.
    seed : int
    """

    length: int
    dtype: np.dtype[Any]
    axes: Mapping[str, Any]
    seed: int

    def whole(self, axis: str) -> int:
        """Return the value of an axis as a whole number."""
        return int(self.axes[axis])


def _runs(of: Wanted) -> tuple[Step, ...]:
    heads: tuple[Step, ...] = (("hash", of.seed), ("less", round(2**32 / of.whole("run"))), ("sum",))
    # Times an odd number, so that neighbours differ in their lowest bit.
    return *heads, *{"f": [("mod", 2048)], "b": []}.get(of.dtype.kind, [("times", int(_GOLDEN))])


def _permutation(of: Wanted) -> tuple[Step, ...]:
    """Return places far apart: multiples of a number without a common divisor with the length, modulo the length."""
    if of.length > _MOST_PLACES:
        raise ArgumentError(f"the page has no permutation of {of.length} items, at most of {_MOST_PLACES}")
    return (("times_around", _factor(of.length)),)


def _factor(length: int) -> int:
    """Return a number without a common divisor with `length`, whose multiples are far apart modulo it."""
    factor = max(1, int(length * 0.618))
    while math.gcd(factor, length) > 1:
        factor += 1
    return factor


def _middle_places(of: Wanted) -> tuple[Step, ...]:
    n = of.whole("n")
    return (("times", 0), ("or", n // 2)) if of.length == 1 else (("times", n // (of.length + 1)),)


def _each_of(of: Wanted) -> int:
    """Return the length of ranges of one length that make n items."""
    n, count = of.whole("n"), max(of.length, 1)
    if n % count:
        raise ArgumentError(f"the page has {of.length} ranges of one length only, which do not make {n} items")
    return n // count


#: The steps for data of the same kind as a maker's.
_MAKERS: Mapping[Maker, Callable[[Wanted], tuple[Step, ...]]] = {
    flags: lambda of: (("hash", of.seed), ("and", 0xFFFF), ("less", round(float(of.axes["share"]) * (1 << 16)))),
    random_runs: _runs,
    equal_segments: lambda of: (("times", of.whole("segment")), ("min", of.whole("n"))),
    random_counts: lambda of: (
        ("hash", of.seed), ("mod", of.whole("n") + 1), ("sort",), ("last", of.whole("n")), ("differences",),
    ),
    random_indices: lambda of: (("hash", of.seed), ("mod", of.whole("bins"))),
    scattered_keys: lambda of: (("hash", of.seed), ("mod", max(of.whole("n") // of.whole("run"), 1))),
    permutation: _permutation,
    late_flags: lambda of: (
        ("less", round(float(of.axes["share"]) * of.length)), ("xor", 1), ("times", _ALL),
        ("and_hash", of.seed), ("and", 63),
    ),
    middle_places: _middle_places,
    RANGE_DATA["lengths"]: lambda of: (("times", 0), ("or", _each_of(of))),
    RANGE_DATA["source_offsets"]: lambda of: (("times", _each_of(of)),),
    RANGE_DATA["destination_offsets"]: lambda of: (("times_around", _factor(of.length)), ("times", _each_of(of))),
}  # fmt: skip


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
    wanted: Wanted,
    *,
    maker: Maker | None = None,
    distribution: str = UNIFORM,
    op: str | None = None,
    largest: int | None = None,
) -> Recipe:
    """Return the recipe for an input of a case.

    Parameters
    ----------
    argument : Argument
        The input's rule: whether it ascends.
    wanted : Wanted
    maker : callable, optional
        The maker of `cases.data` whose kind of data it is; by default it is of a distribution.
    distribution : str
        A key of `DISTRIBUTIONS`.
    op : str, optional
        The operator of the case.
    largest : int, optional
        Floats are whole numbers up to this, so that sums and products are exact; by default random reals.

    Raises
    ------
    ArgumentError
        If there is no recipe for such data.
    """
    length, dtype, _, seed = wanted
    if maker is not None:
        if maker not in _MAKERS:
            raise ArgumentError(f"the page has no recipe for the data of {getattr(maker, '__name__', maker)}")
        return _as_numbers(length, _MAKERS[maker](wanted), dtype)
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
