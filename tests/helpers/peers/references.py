"""References in numpy: of functions that numpy does not have, and exact values of those whose results are rounded.

An exact value comes with a scale: a right result differs from it by at most so many eps of the result's dtype.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

UFUNCS: dict[str, np.ufunc] = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
_IDENTITIES = {"add": 0, "multiply": 1}


class Refused(ValueError):
    """What a reference raises of arguments that are wrong."""


class Unspecified(Exception):
    """What a reference raises where any result is right."""


def of_four_bytes(x: np.ndarray) -> np.ndarray:
    """Return items of 1 and 2 bytes as those of 4 of their kind: what sums by key and by segments are computed in."""
    if x.dtype.itemsize >= 4:
        return x.astype(x.dtype.newbyteorder("="))
    return x.astype({"b": np.uint32, "u": np.uint32, "i": np.int32, "f": np.float32}[x.dtype.kind])


def identity(op: str, dtype: np.dtype) -> Any:
    if op in _IDENTITIES:
        return dtype.type(_IDENTITIES[op])
    if dtype.kind == "f":
        return dtype.type(np.inf if op == "min" else -np.inf)
    if dtype.kind == "b":
        return dtype.type(op == "min")
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if op == "min" else limits.min)


def combined(op: str, x: np.ndarray) -> Any:
    """Combine items in their dtype; floats in a wider one, rounded once."""
    if x.size == 0:
        return identity(op, x.dtype)
    wide = x.astype(np.longdouble) if x.dtype.kind == "f" else x
    with np.errstate(all="ignore"):
        return UFUNCS[op].reduce(wide, dtype=wide.dtype).astype(x.dtype)


def magnitude(op: str, x: np.ndarray) -> float:
    """Return the scale of the rounding errors of combining items."""
    if x.dtype.kind != "f" or op in ("min", "max") or not x.size:
        return 0.0
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(x), np.abs(x.astype(np.longdouble)), 0)
        if op == "add":
            return float((16 + x.size / 4) * finite.sum())
        return float((4 + x.size) * spread(finite))


def magnitudes(op: str, x: np.ndarray) -> np.ndarray:
    """Return the scales of the rounding errors of all prefixes, also of one item fewer."""
    if x.dtype.kind != "f" or op in ("min", "max") or not x.size:
        return np.zeros(x.size)
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(x), np.abs(x.astype(np.longdouble)), 0)
        if op == "add":
            return (16 + x.size / 4) * np.cumsum(finite)
        factors = np.where(finite > 0, finite, 1)
        logs = np.log2(factors)
        far = (np.cumsum(np.maximum(logs, 0)) > 100) | (np.cumsum(np.minimum(logs, 0)) < -100)
        scales = np.where(far, np.inf, (4 + x.size) * np.cumprod(factors))
        return np.maximum(scales, np.concatenate([[0], scales[:-1]]))


def spread(finite: np.ndarray) -> float:
    """Return the magnitude of a product; infinity if another order of its factors may over- or underflow float32."""
    with np.errstate(all="ignore"):
        logs = np.log2(np.where(finite > 0, finite, 1))
        if np.maximum(logs, 0).sum() > 100 or np.minimum(logs, 0).sum() < -100:
            return np.inf
        return float(np.prod(np.where(finite > 0, finite, 1)))


# ---- segments and runs


def segments(x: np.ndarray, offsets: Any = None, length: int | None = None) -> list[np.ndarray]:
    """Return the items of each segment."""
    if x.ndim != 1:
        raise Refused("one dimension")
    if (offsets is None) == (length is None):
        raise Refused("offsets or length")
    if length is not None:
        if int(length) != length:
            raise TypeError("length")
        if length < 1:
            raise Refused("length")
        return [x[i : i + length] for i in range(0, x.size, int(length))]
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or not offsets.size or (offsets.size and offsets.dtype.kind not in "iu"):
        raise Refused("offsets")
    whole = [int(o) for o in offsets]
    if whole != sorted(whole) or whole[0] < 0 or whole[-1] > x.size:
        raise Refused("offsets fall, or lie outside")
    return [x[a:b] for a, b in itertools.pairwise(whole)]


def key_bits(keys: np.ndarray) -> np.ndarray:
    """Return keys as they are compared by key: bit by bit, but that −0 equals +0."""
    if keys.dtype.kind != "f":
        return keys
    keys = keys.astype(keys.dtype.newbyteorder("="))
    return np.where(keys == 0, keys.dtype.type(0), keys).view(f"u{keys.itemsize}")


def runs(keys: np.ndarray, equal_nan: bool = False) -> np.ndarray:
    """Return where each run of equal items begins."""
    if keys.ndim != 1:
        raise Refused("one dimension")
    if not keys.size:
        return np.zeros(0, np.intp)
    differs = keys[1:] != keys[:-1]
    if equal_nan and keys.dtype.kind == "f":
        differs &= ~(np.isnan(keys[1:]) & np.isnan(keys[:-1]))
    return np.flatnonzero(np.concatenate([[True], differs]))


def scanned(op: str, x: np.ndarray, kind: str = "inclusive", initial: Any = None) -> np.ndarray:
    """Return prefix sums in the dtype of the items; floats are added in a wider one."""
    if kind not in ("inclusive", "exclusive"):
        raise Refused("kind")
    x = x.astype(x.dtype.newbyteorder("="))
    wide = x.astype(np.longdouble) if x.dtype.kind == "f" else x
    first = identity(op, x.dtype) if initial is None else np.asarray(initial).astype(x.dtype)
    with np.errstate(all="ignore"):
        every = UFUNCS[op].accumulate(np.concatenate([[first], wide]).astype(wide.dtype), dtype=wide.dtype)
        return (every[1:] if kind == "inclusive" else every[:-1]).astype(x.dtype)


def order(x: np.ndarray, descending: bool = False) -> np.ndarray:
    """Return the stable order of items, NaN last."""
    if not descending:
        return np.argsort(x, kind="stable")
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.size, bool)
    ranks = np.unique(np.where(nan, x.dtype.type(0), x), return_inverse=True)[1].reshape(-1)
    return np.lexsort((-ranks, nan))


def best(x: np.ndarray, k: int, mode: str, in_order: bool) -> np.ndarray:
    chosen = order(x, descending=mode == "largest")[:k]
    return chosen if in_order else np.sort(chosen)


# ---- exact values of rounded results: (value, scale)


def _finite(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            return _finite(x.real) + _finite(x.imag)
        wide = np.abs(x.astype(np.longdouble))
        return np.where(np.isfinite(wide), wide, 0)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def exact_sum(along: Callable[..., Any], got: np.dtype, x: Any, n: float, **options: Any) -> tuple[Any, Any]:
    """Return sums and scales; `along` is `numpy.sum` or `numpy.cumsum`."""
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        given, x = x, x.astype(got) if x.dtype != got else x
        value, scale = along(_wide(x), **options), along(_finite(x), **options)
        terms = (16 + n / 4) * scale
        if got == np.float16:  # computed in float32 and rounded once
            terms = np.abs(value) + terms * 2.0**-13
    if got.kind == "f" and np.any(np.isfinite(given) & ~np.isfinite(x)):  # too large for the dtype one by one
        terms = np.full(np.shape(terms), np.inf)
    return value, terms


def exact_product(along: Callable[..., Any], got: np.dtype, x: Any, n: float, **options: Any) -> tuple[Any, Any]:
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        x = x.astype(got) if x.dtype != got else x
        value = along(_wide(x), **options)
        logs = np.log2(np.where(_finite(x) > 0, _finite(x), 1))
        cumulative = np.cumsum if along is np.cumprod else np.sum
        up, down = cumulative(np.maximum(logs, 0), **options), cumulative(np.minimum(logs, 0), **options)
        most = {2: 15, 4: 126, 8: 1022}.get(got.itemsize // (2 if got.kind == "c" else 1), 126) - 1
        scale = (6 + 3 * n) * np.abs(value)
        if got.kind == "c":
            scale = (6 + 3 * n) * np.exp2(np.where(np.isfinite(up), up + down, 0))
        scale = np.where((up > most) | (down < -most), np.inf, scale)
    return value, scale
