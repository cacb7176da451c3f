"""Error bounds: how much a right result of floats may differ from numpy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from ..primitives.base import Primitive, ReferenceParts
from ..primitives.engines.operator import wider
from ..primitives.group_by import SortedItems
from ..primitives.reduce import fold
from ..types.nudging import Nudging
from ..types.operators import Add, BinOp, Multiply, as_binop
from ..types.struct_operators import Moments, field_operators
from ..types.unary_operators import UnaryOp, ulps_of
from .oracle import Oracle, tuple_of

# The error of a sum may be this factor times eps times the sum of the magnitudes. The error of a user's operator may be
# this factor times the largest deviation that noise of one ulp causes.
_FACTOR = 32
# Number of results with noise. By chance, the largest deviation of an item is 32 times too small for at most one item
# in 10^5, and deviations of earlier items also count.
_SAMPLES = 6
# Of one item of an expression of results, such as a quotient: as WGSL has it, and a little more.
_STORED_ULPS = 4

#: Combines some of many numbers, as a primitive does with its items; by a ufunc of numpy.
_Aggregate: TypeAlias = Callable[[np.ufunc, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ErrorBound:
    """How much each item of a result may differ from the reference.

    Attributes
    ----------
    error : numpy.ndarray or float
        The largest difference; of complex numbers the largest of their parts.
    may_overflow, may_underflow : numpy.ndarray or bool
        Whether combining the same items in another order may give an infinity or NaN, or 0.
    fields : mapping from str to ErrorBound
        In place of these, of structs: those of the fields that are floats and round.
    """

    error: np.ndarray | float = 0.0
    may_overflow: np.ndarray | bool = False
    may_underflow: np.ndarray | bool = False
    fields: Mapping[str, ErrorBound] = field(default_factory=dict[str, "ErrorBound"])

    def for_parts(self) -> ErrorBound:
        """Return that of complex numbers for each of their parts, as these lie in memory."""

        def twice(of: np.ndarray | float) -> Any:
            return np.repeat(of, 2) if np.ndim(of) else of

        return ErrorBound(twice(self.error), twice(self.may_overflow), twice(self.may_underflow))


_EXACT = ErrorBound()


def error_bound(
    primitive: Primitive, inputs: Mapping[str, np.ndarray], expected: np.ndarray, place: int = 0
) -> ErrorBound:
    """Return how much a right result may differ from `expected`, the primitive's numpy reference of an output.

    - Integers, copies, one rounded addition, and operators whose results are all among their inputs (minimum, maximum,
      "the last that is not 0"): nothing.
    - Sums: 32·eps·Σ|x| over what went into an item; of f64 more, where the reference has no wider type to add in.
    - Products: (1 + u)^n − 1 times the product, where n factors went into it and u = eps/2: each multiplication rounds
      once, in any order (N. Higham, "Accuracy and stability of numerical algorithms", 2002, section 3.1). Of complex
      numbers 3u instead of u, and magnitudes: one of theirs is wrong by at most √8 u (ibid., section 3.6).
    - An operator of one argument that states its ``max_ulps``: so many units in the last place of each item; where that
      is subnormal, 0 is right, too, as WGSL allows.
    - Other operators: 32 times the largest deviation of some results that are computed with noise of one ulp on
      everything that is combined: Monte Carlo arithmetic (D. S. Parker, "Monte Carlo arithmetic", 1997). It needs only
      the numpy twin. It is an estimate, not a proof: smaller errors go unnoticed.
    - Results that each combine some of the items, by key, by segments or along an axis: the same, from the reference of
      other items, or with another operator. Structs: field by field.
    - Expressions of results, such as a mean: how they change where these do, and a few units in the last place.
    - Expressions that are read: beside these, what results change by where a step of one is off by some ulps, summed
      over all steps (`Nudging`).

    A primitive may have a method ``error_bound`` with the arguments of ``reference``, which is used instead.
    `place` is that of the output among all.
    """
    oracle = Oracle.of(primitive)
    if oracle.own_bound is not None:
        return ErrorBound(oracle.own_bound(**inputs))
    parts = oracle.parts()
    if oracle.sorted_items is not None:
        found = _of_sorted_items(*oracle.sorted_items(inputs), list(primitive.signature.outputs)[place])
    else:
        items = inputs if oracle.op is None else parts.evaluated(inputs)
        combined = expected if parts.stored is None else parts.combined(**items)
        found = _of_combined(oracle, items, combined, place)
        if parts.stored is not None:
            found = _of_stored(parts.stored, combined, found)
    return _both(found, _of_expressions(oracle, inputs, expected, place)) if parts.rounds else found


def _both(a: ErrorBound, b: ErrorBound) -> ErrorBound:
    """Return the bounds of errors that add up."""
    fields = {name: _both(a.fields.get(name, _EXACT), b.fields.get(name, _EXACT)) for name in {**a.fields, **b.fields}}
    overflow, underflow = a.may_overflow | b.may_overflow, a.may_underflow | b.may_underflow
    return ErrorBound(np.add(a.error, b.error), overflow, underflow, fields)


def _of_combined(oracle: Oracle, inputs: Mapping[str, np.ndarray], expected: np.ndarray, place: int) -> ErrorBound:
    """Return the bounds of what items are combined to, without expressions."""
    op, kind = oracle.op, oracle.kind
    name = oracle.grouped or "input"
    x = inputs.get(name)
    if x is None or op is None or not x.size or expected.dtype.kind not in "fcV":
        return _EXACT
    if oracle.grouped is not None and place == 0 and len(tuple_of(oracle.parts().combined(**inputs))) > 1:
        return _EXACT  # keys
    if x.dtype.names is None:
        x = x.astype(expected.dtype)  # in which they are combined
    if isinstance(op, UnaryOp):
        return _of_ulps(op.max_ulps, expected) if op.max_ulps is not None else _of_noisy_items(op, x, expected)
    if not _rounds(op, x.dtype):
        return _EXACT
    if oracle.grouped is not None:
        return _of_groups(op, oracle, {**inputs, name: x}, expected, place)
    found = _of_ufunc(op, x, lambda ufunc, numbers: ufunc.accumulate(numbers))
    if found is not None:
        return _for_kind(found, kind, expected)
    identity = _identity(op, oracle, x)
    return _EXACT if _selects(x, expected, identity) else _of_noise(op, x, expected, identity, kind)


def _rounds(op: BinOp, dtype: np.dtype[Any]) -> bool:
    """Whether combining floats may round: not where a result is one of the items, or a field of one."""
    if op.numpy in (np.minimum, np.maximum):
        return False
    if dtype.names is None or not op.builtin or op == Moments:
        return True
    return not {"add", "multiply"}.isdisjoint(field_operators(op) or (op.name,))


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


def _parts_of(x: np.ndarray) -> np.ndarray:
    """Return the parts of complex numbers, as they lie in memory."""
    return np.ascontiguousarray(x).view(f"f{x.dtype.itemsize // 2}")


def _magnitudes(x: np.ndarray) -> np.ndarray:
    """Return the magnitudes of summands; of complex numbers the sums of those of their finite parts."""
    if x.dtype.kind != "c":
        return np.abs(x.astype(np.float64))
    parts = _parts_of(x).reshape(-1, 2).astype(np.float64)
    return np.abs(np.where(np.isfinite(parts), parts, 0.0)).sum(axis=1)


def _of_ufunc(op: BinOp, x: np.ndarray, aggregate: _Aggregate) -> ErrorBound | None:
    """Return the bounds of sums or products of numbers; None of another operator."""
    if x.dtype.names is not None or op.numpy not in (np.add, np.multiply):
        return None
    return _of_sums(x, aggregate) if op.numpy is np.add else _of_products(x, aggregate)


def _of_sums(x: np.ndarray, aggregate: _Aggregate) -> ErrorBound:
    """Return the bounds of sums."""
    with np.errstate(invalid="ignore"):  # of NaNs that signal
        magnitudes = aggregate(np.add, _magnitudes(x))
    # After an infinity, a right result is the same infinity or NaN.
    bounded = np.where(np.isfinite(magnitudes), magnitudes, 0.0)
    factors: Any = _FACTOR
    if wider(x.dtype).itemsize == x.dtype.itemsize:  # the reference rounds as often, one addition after another
        factors = _FACTOR + aggregate(np.add, np.ones(x.size)) / 2
    limits = np.finfo(x.dtype)
    return ErrorBound(factors * float(limits.eps) * bounded, bounded >= float(limits.max))


def _of_groups(
    op: BinOp, oracle: Oracle, inputs: Mapping[str, np.ndarray], expected: np.ndarray, place: int
) -> ErrorBound:
    """Return the bounds of results of groups of items, of which the reference alone knows the members."""
    name = str(oracle.grouped)
    x = inputs[name]

    def of(parts: ReferenceParts, items: np.ndarray) -> np.ndarray:
        return tuple_of(parts.combined(**{**inputs, name: items.astype(x.dtype)}))[place]

    def aggregate(ufunc: np.ufunc, numbers: np.ndarray) -> np.ndarray:
        if ufunc is np.multiply:
            return np.abs(of(oracle.parts(Multiply), numbers)).astype(np.float64)
        # Where sums are too large for the datatype, they are those of smaller numbers.
        adding, smaller = oracle.parts(Add), 2.0 ** -np.ceil(np.log2(4.0 * max(x.size, 1)))
        sums, scaled = (np.real(of(adding, each)).astype(np.float64) for each in (numbers, numbers * smaller))
        return np.where(np.isfinite(sums), sums, scaled / smaller)

    with np.errstate(all="ignore"):
        found = _of_ufunc(op, x, aggregate)
        if found is not None:
            return found
        return _of_samples([of(oracle.parts(_noisy(op, x.dtype, seed)), x) for seed in range(_SAMPLES)], expected)


def _of_products(x: np.ndarray, aggregate: _Aggregate) -> ErrorBound:
    """Return the bounds of products; relative errors are turned into absolute ones here, too."""
    limits = np.finfo(x.dtype)
    with np.errstate(all="ignore"):
        magnitudes = np.abs(x.astype(_wide(x)))
        product = aggregate(np.multiply, magnitudes)
        logs = np.log2(magnitudes)
        logs[~np.isfinite(logs)] = 0.0
        roundings = 3 if x.dtype.kind == "c" else 1
        factors = aggregate(np.add, np.ones(x.size))
        relative = np.expm1((factors + 1.0) * np.log1p(roundings * float(limits.eps) / 2))
        error = np.where(np.isfinite(product), relative * product, 0.0) + float(limits.smallest_normal)
    # For any grouping: the factors above 1 multiplied separately from those below.
    may_overflow = aggregate(np.add, np.maximum(logs, 0.0)) >= limits.maxexp - 1
    may_underflow = aggregate(np.add, np.maximum(-logs, 0.0)) >= -limits.minexp
    if x.dtype.kind == "c":
        # A part that overflowed or vanished is added to the other one by the next product.
        error = np.where(may_overflow | may_underflow, np.inf, error)
    return ErrorBound(error, may_overflow, may_underflow)


def _of_sorted_items(starts: np.ndarray, reductions: Sequence[SortedItems], output: str) -> ErrorBound:
    """Return the bounds of an output of a group-by, from the items of each group in a row."""
    each = next((each for each in reductions if output in each.stored), None)
    if each is None or not starts.size or not _rounds(each.op, each.items.dtype):
        return _EXACT
    found = _of_totals(each.op, each.items, starts)
    stored = each.stored[output]
    return found if stored is None else _of_stored(stored, _totals(each.op, each.items, starts), found)


def _of_totals(op: BinOp, x: np.ndarray, starts: np.ndarray) -> ErrorBound:
    """Return the bounds of what groups of neighbouring items are combined to."""
    if x.dtype.names is not None and field_operators(op):
        own = zip(x.dtype.names, map(as_binop, field_operators(op)), strict=True)
        return ErrorBound(
            fields={name: _of_totals(of, x[name], starts) for name, of in own if x[name].dtype.kind == "f"}
        )
    if x.dtype.kind not in "fcV" or not _rounds(op, x.dtype):
        return _EXACT
    found = _of_ufunc(op, x, lambda ufunc, numbers: ufunc.reduceat(numbers, starts))
    if found is not None:
        return found
    samples = [_totals(_noisy(op, x.dtype, seed), x, starts) for seed in range(_SAMPLES)]
    return _of_samples(samples, _totals(op, x, starts))


def _totals(op: BinOp, items: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Combine groups of neighbouring items, in pairs, by the operator's numpy twin."""
    sizes = np.diff(np.append(starts, items.size))
    while (sizes > 1).any():
        size, first = np.repeat(sizes, sizes), np.repeat(np.cumsum(sizes) - sizes, sizes)
        place = np.arange(items.size) - first
        left = np.flatnonzero(place % 2 == 0)
        pairs = left[place[left] + 1 < size[left]]
        combined = items.copy()
        with np.errstate(all="ignore"):
            combined[pairs] = op.numpy(items[pairs], items[pairs + 1]).astype(items.dtype)
        items, sizes = combined[left], (sizes + 1) // 2
    return items


def _of_stored(stored: Callable[[np.ndarray], np.ndarray], results: np.ndarray, found: ErrorBound) -> ErrorBound:
    """Return the bounds of an expression of results, from those of the results."""
    names = results.dtype.names or ()
    whole = stored(results)
    same = [name for name in names if results[name].dtype == whole.dtype and results[name].tobytes() == whole.tobytes()]
    if same:
        return found.fields.get(same[0], _EXACT)  # a field as it is
    with np.errstate(all="ignore"):
        wanted = whole.astype(np.float64)
        error, overflow = np.zeros(wanted.shape), np.zeros(wanted.shape, bool)
        for name in names or ("",):
            own = found.fields.get(name, _EXACT) if name else found
            of = results[name] if name else results
            if of.dtype.kind != "f":
                continue
            width = np.asarray(own.error) + _STORED_ULPS * float(np.finfo(of.dtype).eps) * np.abs(of.astype(np.float64))
            overflow |= own.may_overflow
            largest = np.zeros(wanted.shape)
            for moved in (of - width, of + width):
                changed = results.copy()
                changed[name or ...] = moved.astype(of.dtype)
                away = np.abs(stored(changed).astype(np.float64) - wanted)
                largest = np.maximum(largest, np.where(np.isfinite(away), away, 0.0))
                overflow |= ~np.isfinite(away) & np.isfinite(wanted)
            error += largest
        if whole.dtype.kind == "f":
            error += _STORED_ULPS * float(np.finfo(np.float32).eps) * np.abs(wanted)
        return ErrorBound(error, overflow)


def _of_expressions(oracle: Oracle, inputs: Mapping[str, np.ndarray], expected: np.ndarray, place: int) -> ErrorBound:
    """Return the bounds of results of expressions that round otherwise, from those where one step is off."""
    found, number = _EXACT, 0
    while True:
        nudged: list[np.ndarray] = []
        for sign in (1, -1):
            nudging = Nudging(number, sign)
            with np.errstate(all="ignore"):
                one = tuple_of(oracle.parts(value_of=nudging).whole(**inputs))[place]
            if not nudging.is_done:
                return found
            nudged.append(one if one.shape == expected.shape else expected)
        if any(one.tobytes() != expected.tobytes() for one in nudged):
            found = _both(found, _of_samples(nudged, expected, is_noise=False))
        number += 1


def _selects(x: np.ndarray, expected: np.ndarray, identity: np.ndarray) -> bool:
    """Whether an operator always returns one of its arguments, as it seems: then nothing rounds."""
    if x.dtype.names is not None:
        return all(
            _selects(*(np.ascontiguousarray(of[name]) for of in (x, expected, identity))) for name in x.dtype.names
        )
    word = np.dtype(f"u{x.dtype.itemsize}")
    return bool(np.isin(expected.view(word), np.concatenate([x, identity]).view(word)).all())


def _nudged(items: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return floats with noise of an ulp; of structs, in each of their fields."""
    if items.dtype.names is not None:
        found = items.copy()
        for name in items.dtype.names:
            found[name] = _nudged(items[name], rng)
        return found
    if items.dtype.kind not in "fc":
        return items
    eps = float(np.finfo(items.dtype).eps)
    return items * (1 + eps * rng.integers(-1, 2, items.shape, dtype=np.int8)).astype(items.dtype)


def _noisy(op: BinOp, dtype: np.dtype[Any], seed: int) -> BinOp:
    """Return an operator with noise on all that it combines."""
    rng = np.random.default_rng(seed)

    def combine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return op.numpy(_nudged(a, rng), _nudged(b, rng)).astype(dtype)

    return replace(op, numpy=combine)


def _of_noise(op: BinOp, x: np.ndarray, expected: np.ndarray, identity: np.ndarray, kind: str | None) -> ErrorBound:
    """Return the bounds of an operator of which only the numpy twin is known."""
    identities, samples = np.repeat(identity, x.size), list[np.ndarray]()
    with np.errstate(all="ignore"):
        for seed in range(_SAMPLES):
            noisy = _noisy(op, x.dtype, seed)
            # Kernels combine with the identity, too.
            items = noisy.numpy(noisy.numpy(identities, x), identities)
            got = np.array([fold(noisy, items)]) if kind is None else _prefixes(noisy.numpy, items)
            samples.append(np.concatenate([identity, got[:-1]]) if kind == "exclusive" else got)
    return _of_samples(samples, expected, are_prefixes=True)


def _of_samples(
    samples: Sequence[np.ndarray], expected: np.ndarray, *, are_prefixes: bool = False, is_noise: bool = True
) -> ErrorBound:
    """Return the bounds that other results tell of; of structs, of each field that is a float.

    If these have noise of an ulp, deviations, and the last rounding, count `_FACTOR` times; else they are the bounds.
    """
    if expected.dtype.names is not None:
        names = [name for name in expected.dtype.names if expected[name].dtype.kind == "f"]
        own = partial(_of_samples, are_prefixes=are_prefixes, is_noise=is_noise)
        return ErrorBound(fields={name: own([each[name] for each in samples], expected[name]) for name in names})
    if expected.dtype.kind not in "fc":
        if is_noise:
            return _EXACT
        # A float that rounds otherwise may become the integer next to it; others, such as places, are to be equal.
        away = np.abs(np.stack(samples).astype(np.float64) - expected).max(axis=0)
        return ErrorBound(np.where(away == 1, 1.0, 0.0))
    limits = np.finfo(expected.dtype)
    with np.errstate(all="ignore"):
        wanted = expected.astype(_wide(expected))
        away = np.abs(np.stack(samples).astype(wanted.dtype) - wanted)
        deviation = np.where(np.isfinite(away), away, 0.0).max(axis=0)
        if are_prefixes:
            # An item's deviation can be small by chance, so those of earlier items also bound it: absolutely where
            # errors add up, relatively where they multiply.
            relative = np.maximum.accumulate(deviation / np.abs(wanted)) * np.abs(wanted)
            deviation = np.fmin(np.maximum.accumulate(deviation), relative)
        widest = _FACTOR * (deviation + float(limits.eps) * np.abs(wanted)) if is_noise else deviation
    error = np.where(np.isfinite(widest), widest, 0.0) + float(limits.smallest_normal)
    overflow = (~np.isfinite(np.stack(samples))).any(axis=0)
    if expected.dtype.kind == "c":
        overflow |= ~np.isfinite(expected)
        return ErrorBound(np.where(overflow, np.inf, error), overflow)
    return ErrorBound(error, overflow & np.isfinite(expected))


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


# ---- which items are wrong


def wrong_items(
    primitive: Primitive, inputs: Mapping[str, np.ndarray], output: np.ndarray, expected: np.ndarray, place: int = 0
) -> np.ndarray:
    """Return which items of an output are not right; arguments are as of `error_bound`, of which integers need none."""

    @cache
    def bound() -> ErrorBound:
        return error_bound(primitive, inputs, expected, place)

    def of_field(name: str) -> np.ndarray:
        x, y = output[name], expected[name]
        return _differences(lambda: bound().fields.get(name, _EXACT), x, y) if x.dtype.kind == "f" else x != y

    if output.dtype.names is None:
        return _differences(bound, output, expected)
    return np.any([of_field(name) for name in output.dtype.names], axis=0)


def _differences(bound: Callable[[], ErrorBound], output: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return which items are neither the same as the expected ones nor within the bound, which of integers is rare."""
    if output.dtype.kind != "c":
        return _outside(bound, output, expected)
    # By parts: one of them may be infinite or NaN where the other is not.
    wrong = _outside(lambda: bound().for_parts(), _parts_of(output), _parts_of(expected))
    return wrong[::2] | wrong[1::2]


def _outside(bound_of: Callable[[], ErrorBound], output: np.ndarray, expected: np.ndarray) -> np.ndarray:
    wrong = ~((output == expected) | (np.isnan(output) & np.isnan(expected)))
    if not wrong.any():
        return wrong
    bound = bound_of()
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(output.astype(np.float64) - expected.astype(np.float64))
    # Infinities and NaNs must agree with numpy's, unless they depend on the order of combining.
    within = np.isfinite(output) & np.isfinite(expected) & (error <= bound.error) & (np.asarray(bound.error) > 0)
    lost = (~np.isfinite(output) & bound.may_overflow) | ((output == 0) & bound.may_underflow)
    return wrong & ~within & ~lost
