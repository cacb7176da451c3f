"""Error bounds: how much a right result of floats may differ from numpy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import BinOp, Primitive, UnaryOp
from ...internals import fold, ulps_of, wider
from .oracle import Oracle

__all__ = ["ErrorBound", "error_bound", "parts_of"]

# The error of a sum may be this factor times eps times the sum of the magnitudes. The error of a user's operator may be
# this factor times the largest deviation that noise of one ulp causes.
_FACTOR = 32
# Number of results with noise. By chance, the largest deviation of an item is 32 times too small for at most one item
# in 10^5, and deviations of earlier items also count.
_SAMPLES = 6


@dataclass(frozen=True)
class ErrorBound:
    """How much each item of a result may differ from the reference.

    Attributes
    ----------
    error : numpy.ndarray or float
        The largest difference; of complex numbers the largest of their parts.
    may_overflow, may_underflow : numpy.ndarray or bool
        Whether combining the same items in another order may give an infinity or NaN, or 0.
    """

    error: np.ndarray | float = 0.0
    may_overflow: np.ndarray | bool = False
    may_underflow: np.ndarray | bool = False

    def for_parts(self) -> ErrorBound:
        """Return that of complex numbers for each of their parts, as these lie in memory."""

        def twice(of: np.ndarray | float) -> Any:
            return np.repeat(of, 2) if np.ndim(of) else of

        return ErrorBound(twice(self.error), twice(self.may_overflow), twice(self.may_underflow))


_EXACT = ErrorBound()


def error_bound(primitive: Primitive, inputs: Mapping[str, np.ndarray], expected: np.ndarray) -> ErrorBound:
    """Return how much a right result may differ from `expected`, the primitive's numpy reference.

    - Integers, copies, one rounded addition, and operators whose results are all among their inputs (minimum, maximum,
      "the last that is not 0"): nothing.
    - Sums: 32·eps·Σ|x| over what went into an item; of f64 more, where the reference has no wider type to add in.
    - Products: (1 + u)^n − 1 times the product, where n factors went into it and u = eps/2: each multiplication rounds
      once, in any order (N. Higham, "Accuracy and stability of numerical algorithms", 2002, section 3.1). Of complex
      numbers 3u instead of u, and magnitudes: one of theirs is wrong by at most √8 u (ibid., section 3.6).
    - An operator of one argument that states its ``max_ulps``: so many units in the last place of each item; where that
      is subnormal, 0 is right, too, as WGSL allows.
    - Results that each combine some of the items, by key, by segments or along an axis: as above, from the reference of
      the magnitudes; of products and other operators 32 times the deviation of results of items with noise.
    - Other operators: 32 times the largest deviation of some results that are computed with noise of one ulp on
      everything that is combined: Monte Carlo arithmetic (D. S. Parker, "Monte Carlo arithmetic", 1997). It needs only
      the numpy twin. It is an estimate, not a proof: smaller errors go unnoticed.

    A primitive may have a method ``error_bound`` with the arguments of ``reference``, which is used instead.
    """
    oracle = Oracle.of(primitive)
    if oracle.own_bound is not None:
        return ErrorBound(oracle.own_bound(**inputs))
    x, op, kind = inputs.get(oracle.grouped or "input"), oracle.op, oracle.kind
    if x is not None and x.dtype.kind in "iu" and expected.dtype.kind == "f" and oracle.grouped is None:
        x = x.astype(expected.dtype)  # integers that are combined as floats
    if x is None or x.dtype.kind not in "fc" or op is None or not x.size:
        return _EXACT
    if isinstance(op, UnaryOp):
        return _of_ulps(op.max_ulps, expected) if op.max_ulps is not None else _of_noisy_items(op, x, expected)
    if oracle.grouped is not None and op.numpy not in (np.minimum, np.maximum):
        return _of_groups(op, oracle, inputs, expected)
    if op.numpy is np.add:
        found = _of_sums(x)
    elif op.numpy is np.multiply:
        found = _of_products(x)
    elif op.numpy in (np.minimum, np.maximum):
        return _EXACT
    else:
        identity = _identity(op, oracle, x)
        return _EXACT if _selects(x, expected, identity) else _of_noise(op, x, expected, identity, kind)
    return _for_kind(found, kind, expected)


def _identity(op: BinOp, oracle: Oracle, x: np.ndarray) -> np.ndarray:
    """Return the operator's identity, as an array of one item like `x`."""
    assert oracle.datatype is not None, "a primitive with a binary operator has the datatype of its items"
    return np.array([op.identity_for(oracle.datatype)], dtype=x.dtype)


def _for_kind(found: ErrorBound, kind: str | None, expected: np.ndarray) -> ErrorBound:
    """Return the bound of each prefix as that of the result: for a reduction the last, exclusively shifted by one."""

    def of(values: np.ndarray | float) -> np.ndarray:
        every = np.asarray(values)
        if every.ndim == 0:
            every = np.broadcast_to(every, (expected.size if kind else 1,))
        if kind is None:
            return every[-1:]
        return every if kind == "inclusive" else np.concatenate([np.zeros(1, every.dtype), every[:-1]])

    return ErrorBound(of(found.error), of(found.may_overflow), of(found.may_underflow))


def _wide(x: np.ndarray) -> type[np.complex128] | type[np.float64]:
    """Return the type in which deviations from such numbers are computed."""
    return np.complex128 if x.dtype.kind == "c" else np.float64


def _sum_factors(x: np.ndarray, additions: Any) -> Any:
    """Return how many times eps sums may be off, of so many additions that the reference makes one after another."""
    return _FACTOR + (additions / 2 if wider(x.dtype).itemsize == x.dtype.itemsize else 0)


def parts_of(x: np.ndarray) -> np.ndarray:
    """Return the parts of complex numbers, as they lie in memory."""
    return np.ascontiguousarray(x).view(f"f{x.dtype.itemsize // 2}")


def _magnitudes(x: np.ndarray) -> np.ndarray:
    """Return the magnitudes of summands; of complex numbers the sums of those of their finite parts."""
    if x.dtype.kind != "c":
        return np.abs(x.astype(np.float64))
    parts = parts_of(x).reshape(-1, 2).astype(np.float64)
    return np.abs(np.where(np.isfinite(parts), parts, 0.0)).sum(axis=1)


def _of_sums(x: np.ndarray) -> ErrorBound:
    """Return the bounds of all prefix sums."""
    with np.errstate(invalid="ignore"):  # of NaNs that signal
        magnitudes = np.cumsum(_magnitudes(x))
    # After an infinity, a right result is the same infinity or NaN.
    bounded = np.where(np.isfinite(magnitudes), magnitudes, 0.0)
    return ErrorBound(
        _sum_factors(x, np.arange(x.size)) * float(np.finfo(x.dtype).eps) * bounded,
        bounded >= float(np.finfo(x.dtype).max),
    )


def _of_groups(op: BinOp, oracle: Oracle, inputs: Mapping[str, np.ndarray], expected: np.ndarray) -> ErrorBound:
    """Return the bounds of results of groups of items, from the reference of other items.

    Of sums it is that of the magnitudes; of other operators the deviation of results of items with noise.
    """
    name = str(oracle.grouped)
    x, limits = inputs[name], np.finfo(expected.dtype)

    def of(items: np.ndarray) -> np.ndarray:
        outputs = oracle.expected({**inputs, name: items})
        # Keys come first, and may have the same dtype.
        return next(each for each in reversed(outputs) if each.dtype == expected.dtype).astype(_wide(expected))

    with np.errstate(all="ignore"):
        if op.numpy is np.add:
            items = _magnitudes(x)
            magnitudes = np.real(of(items.astype(x.dtype)))
            # Where magnitudes are too large for the dtype, their sums are those of smaller ones.
            smaller = 2.0 ** -np.ceil(np.log2(4.0 * max(x.size, 1)))
            scaled = np.real(of((items * smaller).astype(x.dtype))) / smaller
            bounded = np.where(np.isfinite(magnitudes), magnitudes, np.where(np.isfinite(scaled), scaled, 0.0))
            return ErrorBound(_sum_factors(x, x.size) * float(limits.eps) * bounded, ~np.isfinite(magnitudes))
        rng, wanted = np.random.default_rng(0), expected.astype(_wide(expected))
        noise = (1 + limits.eps * rng.integers(-1, 2, x.size) for _ in range(_SAMPLES))
        results = np.stack([of((x * each).astype(x.dtype)) for each in noise])
        away = np.abs(results - wanted)
        widest = np.where(np.isfinite(away), away, 0.0).max(axis=0) + limits.eps * np.abs(wanted)
    error = np.where(np.isfinite(widest), _FACTOR * widest, 0.0) + float(limits.smallest_normal)
    overflow = (~np.isfinite(results)).any(axis=0)
    if expected.dtype.kind == "c":
        overflow |= ~np.isfinite(expected)
        return ErrorBound(np.where(overflow, np.inf, error), overflow)
    return ErrorBound(error, overflow & np.isfinite(expected))


def _of_products(x: np.ndarray) -> ErrorBound:
    """Return the bounds of all prefix products; relative errors are turned into absolute ones here, too."""
    limits = np.finfo(x.dtype)
    with np.errstate(all="ignore"):
        magnitudes = np.abs(x.astype(_wide(x)))
        product = np.cumprod(magnitudes)
        logs = np.log2(magnitudes)
        logs[~np.isfinite(logs)] = 0.0
        roundings = 3 if x.dtype.kind == "c" else 1
        relative = np.expm1((np.arange(x.size) + 2.0) * np.log1p(roundings * float(limits.eps) / 2))
        error = np.where(np.isfinite(product), relative * product, 0.0) + float(limits.smallest_normal)
    # For any grouping: the factors above 1 multiplied separately from those below.
    may_overflow = np.cumsum(np.maximum(logs, 0.0)) >= limits.maxexp - 1
    may_underflow = np.cumsum(np.maximum(-logs, 0.0)) >= -limits.minexp
    if x.dtype.kind == "c":
        # A part that overflowed or vanished is added to the other one by the next product.
        error = np.where(may_overflow | may_underflow, np.inf, error)
    return ErrorBound(error, may_overflow, may_underflow)


def _selects(x: np.ndarray, expected: np.ndarray, identity: np.ndarray) -> bool:
    """Whether an operator always returns one of its arguments, as it seems: then nothing rounds."""
    word = np.dtype(f"u{x.dtype.itemsize}")
    return bool(np.isin(expected.view(word), np.concatenate([x, identity]).view(word)).all())


def _of_noise(op: BinOp, x: np.ndarray, expected: np.ndarray, identity: np.ndarray, kind: str | None) -> ErrorBound:
    """Return the bounds of an operator of which only the numpy twin is known."""
    rng = np.random.default_rng(0)
    eps = float(np.finfo(x.dtype).eps)
    identities = np.repeat(identity, x.size)

    def nudged(a: np.ndarray) -> np.ndarray:
        return a * (1 + eps * rng.integers(-1, 2, a.size, dtype=np.int8)).astype(a.dtype)

    def combine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return op.numpy(nudged(a), nudged(b)).astype(x.dtype)

    noisy = replace(op, numpy=combine)
    deviation = np.zeros(expected.size)
    overflow = np.zeros(expected.size, dtype=bool)
    with np.errstate(all="ignore"):
        wanted = expected.astype(_wide(expected))
        for _ in range(_SAMPLES):
            # Kernels combine with the identity, too.
            items = combine(combine(identities, x), identities)
            got = np.array([fold(noisy, items)]) if kind is None else _prefixes(combine, items)
            if kind == "exclusive":
                got = np.concatenate([identity, got[:-1]])
            away = np.abs(got.astype(wanted.dtype) - wanted)
            overflow |= ~np.isfinite(got) & np.isfinite(expected)
            deviation = np.maximum(deviation, np.where(np.isfinite(away), away, 0.0))
        # An item's deviation can be small by chance, so those of earlier items also bound it: absolutely where errors
        # add up, relatively where they multiply.
        absolute = np.maximum.accumulate(deviation)
        relative = np.maximum.accumulate(deviation / np.abs(wanted)) * np.abs(wanted)
        widest = np.fmin(absolute, relative) + eps * np.abs(wanted)
    error = np.where(np.isfinite(widest), _FACTOR * widest, 0.0) + float(np.finfo(x.dtype).smallest_normal)
    return ErrorBound(error, overflow)


def _of_ulps(ulps: float, expected: np.ndarray) -> ErrorBound:
    """Return the bounds that an operator of one argument states itself."""
    subnormal = np.abs(expected) < np.finfo(expected.dtype).smallest_normal
    return ErrorBound(ulps_of(expected, ulps), may_underflow=subnormal)


def _of_noisy_items(op: UnaryOp, x: np.ndarray, expected: np.ndarray) -> ErrorBound:
    """Return the bounds of a unary operator of which only the numpy twin is known."""
    limits = np.finfo(x.dtype)
    with np.errstate(all="ignore"):
        wanted = expected.astype(np.float64)
        nudged = np.stack([op.twin(np.nextafter(x, x.dtype.type(towards))) for towards in (-np.inf, np.inf)])
        away = np.abs(nudged.astype(np.float64) - wanted)
        widest = np.where(np.isfinite(away), away, 0.0).max(axis=0) + float(limits.eps) * np.abs(wanted)
    error = np.where(np.isfinite(widest), _FACTOR * widest, 0.0) + float(limits.smallest_normal)
    overflow = (~np.isfinite(nudged)).any(axis=0) & np.isfinite(expected)
    return ErrorBound(error, overflow)


def _prefixes(combine: Callable[[np.ndarray, np.ndarray], np.ndarray], items: np.ndarray) -> np.ndarray:
    """Return all prefixes, by twice as many combinations as there are items."""
    if items.size < 2:
        return items
    pairs = _prefixes(combine, combine(items[:-1:2], items[1::2]))
    found = np.empty_like(items)
    found[0], found[1::2] = items[0], pairs
    found[2::2] = combine(pairs[: (items.size - 1) // 2], items[2::2])
    return found
