"""Random operators and functions of random operands, against numpy: values, dtype, shape, error's type.

Operands are Arrays (whole, views of others, one in two shapes), numbers of Python and numpy, and arrays of the host. A
few calls in turn are of one kind, so that they share a kernel and repeat a known call with other items or lengths.

``PYTHONPATH=tests python -m helpers.random_pairs [--pairs 100000] [--seed N] [--words] [--twin]``; with ``--words`` on
a device without ``shader-int64``, where integers are pairs of words; with ``--twin`` only expressions' values in numpy.
Exit 1 if one differs.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click
import numpy as np
import wgpu

import gridwise_py as gw

from .bare import device_with

WIDE = ("int64", "uint64", "float64")
WORDS = ("int32", "uint32", "float32")
DTYPES = (*WIDE, *WORDS, "bool", "int8", "uint8", "int16", "uint16", "float16")
#: What items of 1 and 2 bytes are computed with.
COMPUTED = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32", "float16": "float32"}
TWO: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "**": operator.pow, "minimum": np.minimum, "maximum": np.maximum,
}  # fmt: skip
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
ONE: dict[str, Callable[..., Any]] = {
    "negative": operator.neg, "~": operator.invert, "abs": operator.abs, "sign": np.sign, "isnan": np.isnan,
    "isfinite": np.isfinite, "isinf": np.isinf, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "sqrt": np.sqrt, "nan_to_num": np.nan_to_num,
}  # fmt: skip
THREE: dict[str, Callable[..., Any]] = {"where": np.where, "clip": np.clip}
_CASTS = {"int64": gw.i64, "uint64": gw.u64, "float64": gw.f64, "int32": gw.i32, "uint32": gw.u32, "float32": gw.f32}
CASTS: dict[str, Callable[..., Any]] = {
    f"{how} {name}": lambda x, name=name: np.asarray(x).astype(name)
    for how, names in (("cast", tuple(_CASTS)), ("astype", DTYPES)) for name in names
}  # fmt: skip
_KNOWN = {**ONE, **TWO, **THREE, **CASTS}
_FUNCTIONS = (*(name for name in ONE if name not in ("negative", "~")), "minimum", "maximum", *THREE)
_BITS = ("&", "|", "^", "~")
_ROUNDED = ("/", "//", "sqrt")
_N = 24
_IN_TURN = 24
_MOST_ITEMS = 4096


class Operand(NamedTuple):
    """An array or a number of the host, and how a call is given it: as an Array, a view, an alias, or as it is."""

    value: Any
    given: str


class Case(NamedTuple):
    """A call."""

    name: str
    operands: list[Operand]

    def __str__(self) -> str:
        shown = (f"{x!r}" if how == "number" else f"{x.dtype}{list(x.shape)} ({how})" for x, how in self.operands)
        return f"{self.name} of {', '.join(shown)}"


def edges(dtype: str, rng: np.random.Generator, n: int = _N) -> np.ndarray:
    """Return items of a datatype: its ends, powers of two and their neighbours, small numbers, bits by chance."""
    kind, bits = np.dtype(dtype).kind, 8 * np.dtype(dtype).itemsize
    if kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if kind == "f":
        special = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny]
        drawn = rng.standard_normal(n) * 2.0 ** rng.integers(-12, 12, n)
        choice = rng.integers(0, 4, n)
        return np.where(choice == 0, rng.choice(special, n), np.where(choice == 1, np.rint(drawn), drawn)).astype(dtype)
    low = -(1 << (bits - 1)) if kind == "i" else 0
    span = 1 << bits
    found = []
    for _ in range(n):
        how = rng.integers(0, 4)
        if how == 0:
            value = int(rng.choice([low, low + 1, low + span - 1, low + span - 2, 0, 1]))
        elif how == 1:
            value = (1 << int(rng.integers(0, bits))) + int(rng.integers(-1, 2))
        elif how == 2:
            value = int(rng.integers(-9, 70))
        else:
            value = int.from_bytes(rng.bytes(bits // 8), "little")
        found.append((value - low) % span + low)
    return np.array(found, dtype)


# ---- what is drawn


def _shapes(rng: np.random.Generator, count: int) -> list[tuple[int, ...]]:
    """Return shapes that numpy broadcasts, and now and then some that it refuses."""
    whole = [int(n) for n in rng.choice([0, 1, 2, 3, 4, 5, 8, 12, 33], rng.integers(0, 5), p=_LENGTH_ODDS)]
    while np.prod(whole) > _MOST_ITEMS:
        whole.pop()
    found: list[tuple[int, ...]] = []
    for _ in range(count):
        own = whole[int(rng.integers(0, len(whole) + 1)) if rng.integers(0, 3) == 0 else 0 :]
        own = [1 if rng.integers(0, 4) == 0 else length for length in own]
        if own and rng.integers(0, 40) == 0:
            own[int(rng.integers(0, len(own)))] += 1
        found.append(tuple(own))
    return found


_LENGTH_ODDS = [0.05, 0.1, 0.15, 0.15, 0.15, 0.1, 0.1, 0.1, 0.1]


def _reshaped(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return another shape of as many items, which broadcasts beside the first one as it happens."""
    size = int(np.prod(shape))
    return [(size,), (size, 1), (1, size), (*shape, 1), (1, *shape), shape[::-1]][int(rng.integers(0, 6))]


def _array(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return rng.permutation(np.resize(edges(dtype, rng), max(_N, int(np.prod(shape)))))[
        : np.prod(shape, dtype=int)
    ].reshape(shape)


def _number(rng: np.random.Generator, dtype: str, kind: str) -> Any:
    """Return a number of Python, or of numpy in a dtype."""
    if kind == "numpy":
        number = edges(dtype, rng, 1)[0]
        return number if rng.integers(0, 2) else np.asarray(number)
    if kind == "bool":
        return bool(rng.integers(0, 2))
    if kind == "float":
        return float(rng.choice([0.5, 2.0, -3.25, 0.0, 1e10, float("inf")]))
    return int(rng.choice([int(rng.integers(0, 66)), -1, 1, 2**31, 2**32]))


def _kind(rng: np.random.Generator, *, words: bool, twin: bool) -> tuple[str, list[str], list[str]]:
    """Draw a function, and the dtypes of its operands and how they are given."""
    name = str(rng.choice(list(_KNOWN)))
    count = 1 if name in ONE or name in CASTS else 3 if name in THREE else 2
    pool = [each for each in DTYPES if not (words and each == "float64")]
    dtypes = [str(each) for each in rng.choice(pool, count)]
    if rng.integers(0, 3):
        dtypes = [dtypes[0]] * count
    if name == "where" and rng.integers(0, 8):
        dtypes[0] = "bool"
    if name in _FUNCTIONS and not twin and rng.integers(0, 6) == 0:
        return name, dtypes, ["host"] * count
    given = ["array"] + [
        str(each) for each in rng.choice(["array", "view", "alias", "int", "float", "numpy"], count - 1)
    ]
    if rng.integers(0, 6) == 0:
        given[0] = "view"
    if name in _FUNCTIONS and count > 1 and rng.integers(0, 6) == 0:
        given[-1] = "host"
    if name == "clip" and rng.integers(0, 3) == 0:
        given[int(rng.integers(1, 3))] = "none"
    return name, dtypes, given


def cases(rng: np.random.Generator, *, words: bool, twin: bool) -> Iterator[Case]:
    """Yield calls, for ever: a few in turn are of one kind."""
    while True:
        name, dtypes, given = _kind(rng, words=words, twin=twin)
        is_swapped = name in TWO and name != "**" and rng.integers(0, 2)
        shapes = _shapes(rng, len(dtypes))
        for _ in range(_IN_TURN):
            if rng.integers(0, 3) == 0:
                shapes = _shapes(rng, len(dtypes))
            operands: list[Operand] = []
            for dtype, how, shape in zip(dtypes, given, shapes, strict=True):
                if how == "alias":
                    first = operands[0].value
                    operands.append(Operand(first.reshape(_reshaped(rng, first.shape)), how))
                elif how in ("array", "view", "host"):
                    operands.append(Operand(_array(rng, dtype, shape), how))
                else:
                    number = None if how == "none" else _number(rng, dtype, how)
                    is_array = isinstance(number, np.ndarray) and name in _FUNCTIONS
                    operands.append(Operand(number, "host" if is_array else "number"))
            if name == "**":
                operands[1] = _exponent(rng, *operands)
            elif name in CASTS:
                operands[0] = Operand(_castable(operands[0].value, name), operands[0].given)
            elif is_swapped:
                operands.reverse()
                if operands[0].given == "alias":
                    operands[0] = Operand(operands[0].value, "array")
            if name in COMPARISONS and not twin:  # compilers of GPUs may assume that there is no NaN
                operands = [Operand(_without_nan(value), how) for value, how in operands]
            case = Case(name, operands)
            if words and _gives_doubles(case):
                break
            yield case


def _without_nan(value: Any) -> Any:
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind != "f":
        return value
    items = np.where(np.isnan(value), value.dtype.type(1.5), value)
    return items if isinstance(value, np.ndarray) else items[()]


def _castable(items: np.ndarray, name: str) -> np.ndarray:
    """Return floats that fit into integers: what others become is open."""
    to = np.dtype(name.split()[1])
    if items.dtype.kind != "f" or to.kind not in "iu":
        return items
    most = np.iinfo(to).max // 2
    return np.where(np.abs(items.astype(float)) < min(most, 2**62), np.abs(items), items.dtype.type(3.25))


def _exponent(rng: np.random.Generator, first: Operand, second: Operand) -> Operand:
    """Return exponents that are computed: of 8 bytes integers; others are raised to a known, small power."""
    base, exponent = first.value, second.value
    if base.dtype.name in ("int64", "uint64") and np.ndim(exponent) and exponent.dtype.kind in "iu":
        return second if np.result_type(base, exponent).kind in "iu" else Operand(exponent.astype(base.dtype), "array")
    return Operand(int(rng.integers(1, 4)), "number")


def _gives_doubles(case: Case) -> bool:
    """Whether float64 is computed, which a device without it refuses."""
    if case.name in CASTS:
        return case.name.endswith("float64")
    values = [_computed(*operand) for operand in case.operands if operand.value is not None]
    if case.name in COMPARISONS and all(np.asarray(each).dtype.kind in "biu" for each in values):
        return False
    is_wide = any(np.asarray(each).dtype.itemsize == 8 and not _is_weak(each) for each in values)
    return is_wide and (case.name in ("/", "sqrt", "rint") or np.result_type(*values).kind == "f")


# ---- what is wanted


def _computed(value: Any, given: str) -> Any:
    """Return items of Arrays in the dtype that they are computed with."""
    if given in ("number", "host"):
        return value[()] if given == "number" and isinstance(value, np.ndarray) else value
    return value.astype(COMPUTED.get(value.dtype.name, value.dtype.name))


def _is_weak(value: Any) -> bool:
    """Whether a number takes the dtype of the other side: those of numpy of 4 bytes keep theirs."""
    return (
        np.ndim(value) == 0
        and not isinstance(value, (bool, np.ndarray))
        and (not isinstance(value, np.generic) or value.dtype.name not in (*WORDS, "bool"))
    )


def _common(name: str, values: list[Any]) -> np.dtype:
    """Return the one dtype that operands are of; raise TypeError where they would have to be converted unasked."""
    numbers = [value for value in values if _is_weak(value)]
    typed = [np.asarray(value).dtype for value in values if not _is_weak(value)]
    if not typed:
        is_whole = all(np.asarray(each).dtype.kind in "iu" for each in numbers)
        return np.dtype(np.int32 if is_whole else np.float32)
    if any(each.itemsize == 8 for each in typed):
        return np.result_type(*typed, *numbers)
    if len(set(typed)) > 1:
        raise TypeError
    kinds = {np.asarray(each).dtype.kind for each in numbers}
    if typed[0].kind == "b" and numbers:
        if name not in COMPARISONS:
            raise TypeError
        return np.dtype(np.float32 if "f" in kinds else np.int32)
    if typed[0].kind in "iu" and "f" in kinds:
        raise TypeError
    return typed[0]


def _check(name: str, dtype: np.dtype) -> None:
    """Raise TypeError where a function does not take a dtype."""
    kinds = "biuf"
    if name in _BITS:
        kinds = "biu"
    elif name in ("<<", ">>"):
        kinds = "iu"
    elif name in ("/", "sqrt", "rint"):
        kinds = "iuf" if dtype.itemsize == 8 else "f"
    elif not (name in ("==", "!=", "where", "isnan", "isfinite", "isinf", "nan_to_num") or name in CASTS):
        kinds = "iuf"
    if dtype.kind not in kinds:
        raise TypeError


def _wanted(case: Case) -> Any:
    """Return numpy's value of the operands as they are computed with; raise TypeError for what is refused."""
    name = case.name
    if name in CASTS:
        is_astype = name.startswith("astype")
        return CASTS[name](case.operands[0].value if is_astype else _computed(*case.operands[0]))
    values = [_computed(*operand) for operand in case.operands]
    if all(operand.given == "host" for operand in case.operands):
        return _on_host(name, values)
    values = [
        _computed(each, "array") if given == "host" else each
        for each, (_, given) in zip(values, case.operands, strict=True)
    ]
    if name == "clip":
        return _clipped(*values)
    return _operated(name, *values, is_host=case.operands[0].given == "host")


def _clipped(x: np.ndarray, low: Any, high: Any) -> Any:
    """Return what `clip` gives: by one bound after the other; a number of Python beyond all integers is none."""
    if x.dtype.kind in "iu":
        ends = np.iinfo(x.dtype)
        low = None if isinstance(low, int) and low < ends.min else low
        high = None if isinstance(high, int) and high > ends.max else high
    dtype = x.dtype if low is None else _common("clip", [x, low])
    if high is not None:
        _operated("minimum", np.empty(0, dtype), np.ravel(high)[:1] if np.ndim(high) else high)  # not for its shape
    above = x if low is None else _operated("maximum", x, low)
    return above if high is None else _operated("minimum", above, high)


def _operated(name: str, *values: Any, is_host: bool = False) -> Any:
    """Return what an operator or function gives of items as they are computed with."""
    typed = list(values[name == "where" :])
    if name == "where":
        if values[0].dtype != bool and not is_host:
            raise TypeError
        values = (values[0] != 0, *values[1:])
    if name in ("<<", ">>"):
        return _shifted(name, *values)
    dtype = _common(name, typed)
    _check(name, dtype)
    if dtype.itemsize <= 4 and name not in COMPARISONS:  # which are exact
        values = tuple(each.item() if isinstance(each, np.generic) and _is_weak(each) else each for each in values)
    if name == "where":  # numbers that do not fit are refused
        values = (values[0], *(np.array(each, dtype) if _is_weak(each) else each for each in values[1:]))
    return _power(*values) if name == "**" else np.asarray(_KNOWN[name](*values))


def _on_host(name: str, values: list[Any]) -> Any:
    """Return what functions of arrays on the host give: floats of integers of up to 4 bytes are float32."""
    if name in ("sqrt", "rint") and values[0].dtype.kind in "biu" and values[0].dtype.itemsize <= 4:
        values = [values[0].astype(np.float32)]
    return np.asarray(_KNOWN[name](*values))


def _shifted(name: str, items: Any, bits: Any) -> Any:
    """Return a shift: numbers of 4 bytes keep the dtype of what is shifted."""
    dtypes = [np.asarray(each).dtype for each in (items, bits)]
    if any(each.kind not in "iu" for each in dtypes):
        raise TypeError
    wide = [
        each for each, dtype in zip((items, bits), dtypes, strict=True) if dtype.itemsize == 8 and not _is_weak(each)
    ]
    if wide:
        return np.asarray(_KNOWN[name](items, bits))
    dtype = dtypes[1] if _is_weak(items) else dtypes[0]
    if _is_weak(bits):
        np.array(bits if isinstance(bits, int) else bits.item(), dtype)
    held = np.array(items if isinstance(items, (int, np.ndarray)) else items.item(), dtype)
    by = np.asarray(bits).astype(np.int64)
    by = np.where((by < 0) | (by > 32), 32, by)
    return np.asarray(_KNOWN[name](held.astype(np.int64), by)).astype(dtype)


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; of integers to negative powers, for which numpy raises, the documented 0."""
    try:
        return np.asarray(base**exponent)
    except ValueError:
        np.broadcast_shapes(np.shape(base), np.shape(exponent))
        a, b = (np.asarray(each).astype(np.result_type(base, exponent)) for each in (base, exponent))
        return np.where(b < 0, 0, np.power(a, np.where(b < 0, 0, b)))


# ---- what is computed


def _own(name: str, arguments: list[Any]) -> Any:
    """Call this library's operator or function."""
    if name in CASTS:
        how, to = name.split()
        return _CASTS[to](arguments[0]) if how == "cast" else arguments[0].astype(to)
    return (getattr(gw, name) if name in _FUNCTIONS else _KNOWN[name])(*arguments)


def _arguments(case: Case, device: wgpu.GPUDevice) -> list[Any]:
    """Return the operands as they are given."""
    made: list[Any] = []
    for value, given in case.operands:
        if given == "array":
            made.append(gw.asarray(value, device))
        elif given == "view":
            room = gw.asarray(np.resize(value, value.size + 3) if value.size else np.zeros(3, value.dtype), device)
            room[1 : value.size + 1].copy_from(gw.asarray(value.ravel(), device))
            made.append(room[1 : value.size + 1].reshape(value.shape))
        else:
            made.append(made[0].reshape(value.shape) if given == "alias" else value)
    return made


def outcome(compute: Callable[[], Any]) -> Any:
    """Return an array, or the type of error among those of numpy; numbers that a dtype does not hold are TypeErrors."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compute()
        except (TypeError, OverflowError):
            return TypeError
        except ValueError:
            return ValueError
        except gw.ShaderError:
            return gw.ShaderError


def _shown(found: Any) -> str:
    return found.__name__ if isinstance(found, type) else f"{np.asarray(found).dtype}{list(np.shape(found))}"


def difference(name: str, got: Any, want: Any, *, is_exact: bool) -> str | None:
    """Return how two outcomes differ: where the text of a kernel rounds, by 4 units in the last place."""
    if isinstance(got, type) or isinstance(want, type):
        return None if got is want else " in place of ".join(_shown(each) for each in (got, want))
    got = np.asarray(got)
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{_shown(got)} in place of {_shown(want)}"
    same = (got == want) | ((got != got) & (want != want))
    if got.dtype.kind == "f":
        same &= (np.signbit(got) == np.signbit(want)) | np.isnan(want) | (want == 0)
        if got.dtype.itemsize <= 4 and not is_exact:
            tiny, unit = np.finfo(np.float32).tiny, np.finfo(got.dtype).eps
            same |= (got == 0) & (np.abs(want) < tiny)
            if name in _ROUNDED:
                with np.errstate(all="ignore"):
                    same |= np.abs(got.astype(float) - want) <= 4 * unit * np.abs(want.astype(float))
        if name == "**":  # by multiplications
            with np.errstate(all="ignore"):
                same |= np.abs(got - want) <= 4 * np.finfo(got.dtype).eps * np.abs(want)
    at = np.flatnonzero(~same)
    return None if not at.size else f"item {at[0]} is {got.flat[at[0]]!r} in place of {want.flat[at[0]]!r}"


def run(device: wgpu.GPUDevice, pairs: int, seed: int, *, words: bool, twin: bool = False) -> list[str]:
    """Return the differences among so many calls."""
    device = device_with(device, label="pairs of words") if words else device
    found: list[str] = []
    for number, case in zip(range(pairs), cases(np.random.default_rng(seed), words=words, twin=twin), strict=False):
        for side, text in _differences(case, device, twin=twin):
            found.append(f"call {number}, {case}, {side}: {text}")
    return found


def _differences(case: Case, device: wgpu.GPUDevice, *, twin: bool) -> Iterator[tuple[str, str]]:
    want, result = outcome(lambda: _wanted(case)), outcome(lambda: _own(case.name, _arguments(case, device)))
    outcomes: dict[str, Any] = {}
    if not isinstance(result, gw.Expression):
        outcomes["the call"] = result.to_numpy() if isinstance(result, gw.Array) else result
    else:
        outcomes["the twin"] = outcome(result.numpy)
        if not twin:
            outcomes["the GPU"] = outcome(lambda: gw.asarray(result, device).to_numpy())
    for side, got in outcomes.items():
        if (text := difference(case.name, got, want, is_exact=side == "the twin")) is not None:
            yield side, text


@click.command()
@click.option("--pairs", default=100_000)
@click.option("--seed", default=0)
@click.option("--words", is_flag=True)
@click.option("--twin", is_flag=True)
def main(pairs: int, seed: int, words: bool, twin: bool) -> None:
    """Print the differences."""
    found = run(gw.default_device(), pairs, seed, words=words, twin=twin)
    print(*found, f"{len(found)} of {pairs} calls differ", sep="\n")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
