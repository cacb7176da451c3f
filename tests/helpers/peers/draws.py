"""Random arguments: datatypes, shapes, values, containers and spellings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .calls import Call, Given

#: Most calls take one of the first, so that kernels are compiled seldom; the others come in turn.
USUAL = ("int32", "uint32", "float32", "int64", "float64")
RARE = ("bool", "uint8", "int8", "uint16", "int16", "float16", "uint64")
ALL = (*USUAL, *RARE)
#: Numbers that no length, index, or number of bins is, and that wrap in 32 bits.
HUGE = (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 4, 2**33, 2**40, 2**63 - 1, 2**63, 2**64, 2**64 + 3)
_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 2047, 2049, 4096, 4097)


class Draw:
    """Draws of one call, whose arrays mostly are of some datatypes, if there are any."""

    def __init__(self, rng: np.random.Generator, mostly: Sequence[str] = ()):
        self.rng, self._mostly = rng, mostly

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def whole(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))

    # ---- shapes

    def length(self, least: int = 0) -> int:
        kind = self.rng.random()
        if kind < 0.65:
            n = self.whole(0, 12)
        elif kind < 0.9:
            n = self.pick(_LENGTHS)
        else:
            n = int(2 ** self.rng.uniform(0, 12.5))
        return max(least, n)

    def shape(self, most_dims: int = 3, least_dims: int = 0) -> tuple[int, ...]:
        ndim = (
            least_dims
            if least_dims == most_dims
            else self.pick([d for d in (0, 1, 1, 1, 1, 2, 2, 2, 3) if least_dims <= d <= most_dims])
        )
        if ndim == 1:
            return (self.length(),)
        sizes = [self.pick((1, 2, 3, 4, 5, 7, 16)) for _ in range(ndim)]
        if ndim and self.chance(0.08):
            sizes[self.whole(0, ndim - 1)] = 0
        if ndim and self.chance(0.1):
            sizes[self.whole(0, ndim - 1)] = self.pick((64, 65, 257, 1000))
        return tuple(sizes)

    # ---- values

    def dtypes(self) -> tuple[str, ...]:
        return self.pick(USUAL), self.dtype().name

    def dtype(self, pool: Sequence[str] = ALL) -> np.dtype:
        mostly = [name for name in pool if name in self._mostly]
        if mostly and self.chance(0.85):
            return np.dtype(self.pick(mostly))
        usual = [name for name in pool if name in USUAL]
        return np.dtype(self.pick(usual if usual and self.chance(0.7) else pool))

    def items(self, dtype: Any, shape: Any, kind: str | None = None) -> np.ndarray:
        """Return items; of floats also those that are no number, of integers also the ends of their range."""
        return np.asarray(self._items(dtype, shape, kind))

    def _items(self, dtype: Any, shape: Any, kind: str | None) -> Any:
        dtype, rng = np.dtype(dtype), self.rng
        if dtype.kind == "c":
            if (
                kind is None and np.prod(shape) <= 1 and self.chance(0.5)
            ):  # products with infinities depend on the order
                kind = "special"
            parts = self.items("float32", shape, kind), self.items("float32", shape, kind)
            return _complex(*parts, dtype)
        if dtype.kind == "b":
            return rng.random(shape) < self.pick((0.5, 0.1, 0.9, 0, 1))
        kinds = ("few", "few", "small", "small", "wide", "ends", "beyond")
        if dtype.kind == "f":
            kinds = ("few", "small", "tenths", "tenths", "normal", "normal", "wide", "special", "special")
        kind = kind or self.pick(kinds)
        if kind == "few":
            return rng.integers(0, 4, shape).astype(dtype)
        if kind == "small":
            return rng.integers(0 if dtype.kind == "u" else -9, 21, shape).astype(dtype)
        if kind == "beyond" and dtype.itemsize >= 4:  # what float32, or float64, does not hold
            base = self.pick((2**24, 10**8, *((2**53, 2**60, 2**63 - 16) if dtype.itemsize == 8 else ())))
            return (base + rng.integers(0, 9, shape)).astype(dtype)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if kind == "ends":
                return np.array([limits.min, limits.max, limits.max - 1, 0, 1], dtype)[rng.integers(0, 5, shape)]
            return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        with np.errstate(all="ignore"):
            if kind == "tenths":
                return (rng.integers(-5, 30, shape) / 10).astype(dtype)
            if kind == "normal":
                return rng.standard_normal(shape).astype(dtype)
            if kind == "wide":
                most = {2: 10, 4: 90, 8: 700}[dtype.itemsize]
                return (rng.standard_normal(shape) * np.exp2(rng.integers(-most, most, shape))).astype(dtype)
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5], dtype)[rng.integers(0, 7, shape)]
            rest = self.items(dtype, shape, self.pick(("few", "normal")))
            return np.where(rng.random(shape) < self.pick((0.1, 0.5, 1.0)), special, rest).astype(dtype)

    def array(
        self, pool: Sequence[str] = ALL, most_dims: int = 3, least_dims: int = 0, kind: str | None = None
    ) -> np.ndarray:
        return self.items(self.dtype(pool), self.shape(most_dims, least_dims), kind)

    # ---- containers

    def how(self, x: np.ndarray, gpu: bool = True, expression: bool = True) -> str:
        """Return what an array may be given as."""
        kind = self.rng.random()
        if gpu and kind < 0.30:
            if (
                expression
                and x.dtype.name in ("int32", "uint32", "float32", "bool")
                and x.ndim == 1
                and self.chance(0.2)
            ):
                return "expr"
            return "view" if x.ndim == 1 and self.chance(0.15) else "gpu"
        if kind < 0.42:
            return self.pick(("strided", "reversed", "fortran", "swapped", "readonly"))
        if kind < 0.52 and x.size <= 64:
            if x.ndim == 0:
                return self.pick(("scalar", "item", "numpy"))
            if x.ndim == 1 and self.chance(0.3):
                return self.pick(("tuple", "series"))
            return "list"
        return "numpy"

    def given(self, x: np.ndarray, gpu: bool = True, expression: bool = True) -> Given:
        return Given(x, self.how(x, gpu, expression))

    def alike(self, x: np.ndarray, first: Given) -> Given:
        """Return a second array that mostly lies where the first does."""
        if first.how in ("gpu", "view", "expr"):
            return Given(x, "gpu" if self.chance(0.8) else "numpy")
        return Given(x, "numpy") if self.chance(0.7) else self.given(x, gpu=self.chance(0.3))

    def any_array(
        self,
        pool: Sequence[str] = ALL,
        most_dims: int = 3,
        least_dims: int = 0,
        kind: str | None = None,
        gpu: bool = True,
        expression: bool = True,
    ) -> Given:
        if self.chance(0.01) and "int64" in pool and least_dims <= 1:
            return Given(np.arange(self.whole(0, 40)), "range")
        return self.given(self.array(pool, most_dims, least_dims, kind), gpu, expression)

    # ---- options

    def axis(self, ndim: int, several: bool = True) -> Any:
        """Return an axis: none, one, several; seldom one that is none."""
        kind = self.rng.random()
        if kind < 0.25 or (ndim == 0 and kind < 0.9):
            return None
        if kind < 0.05 + 0.80 and ndim:
            axis = self.whole(-ndim, ndim - 1)
            if several and self.chance(0.2):
                return tuple(int(k) for k in self.rng.permutation(ndim)[: self.whole(1, ndim)])
            return np.int64(axis) if self.chance(0.03) else axis
        return self.pick(
            (ndim, -ndim - 1, 5, 2**31, 2**32, 1.0, 0.5, "0", (0, 0), (), (0, 5))
            if several
            else (ndim, -ndim - 1, 5, 2**31, 2**32, 1.0, 0.5, "0")
        )

    def call(
        self, name: str, required: Sequence[Any], optional: Sequence[tuple[str, Any]] = (), named: Any = None
    ) -> Call:
        """Spell a call: optional arguments in numpy's order, as far as they are given without a gap, by position.

        An optional argument is left out where its value is `LEFT`.
        """
        args, kwargs, by_position = list(required), {}, self.chance(0.35)
        for key, value in optional:
            if value is LEFT:
                by_position = False
            elif by_position and self.chance(0.85):
                args.append(value)
            else:
                by_position = False
                kwargs[key] = value
        return Call(name, tuple(args), {**kwargs, **(named or {})})

    def maybe(self, p: float, value: Any) -> Any:
        return value if self.chance(p) else LEFT


class _Left:
    def __repr__(self) -> str:
        return "LEFT"


LEFT: Any = _Left()


def _complex(real: np.ndarray, imag: np.ndarray, dtype: np.dtype) -> np.ndarray:
    x = np.empty(np.shape(real), dtype)
    x.real, x.imag = real, imag
    return x
