"""Random pairs of datatypes, operators and values with a side of 8 bytes, against numpy: values, dtype, error's type.

``PYTHONPATH=tests python -m helpers.wide_pairs [--pairs 100000] [--seed N] [--words]``; with ``--words`` on a device
without ``shader-int64``, where integers are pairs of words. Exit 1 if one differs.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import click
import numpy as np
import wgpu

import gridwise_py as gw

from .bare import device_with

WIDE = ("int64", "uint64", "float64")
OTHERS = (*WIDE, "int32", "uint32", "float32", "int16", "uint8", "float16", "bool")
TWO: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "**": operator.pow, "minimum": np.minimum, "maximum": np.maximum,
}  # fmt: skip
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
ONE: dict[str, Callable[..., Any]] = {
    "-": operator.neg, "~": operator.invert, "abs": operator.abs, "sign": np.sign, "isnan": np.isnan,
    "isfinite": np.isfinite, "isinf": np.isinf, "floor": np.floor, "ceil": np.ceil, "rint": np.rint, "sqrt": np.sqrt,
    **{f"astype {name}": lambda x, name=name: x.astype(name) for name in ("int64", "uint64", "float32", "bool")},
}  # fmt: skip
_CASTS = {"int64": gw.i64, "uint64": gw.u64, "float32": gw.f32}
_N = 24
_IN_TURN = 24


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


def _by_numpy(function: Callable[..., Any], name: str, items: tuple[Any, ...]) -> Any:
    """Return numpy's value; of integers to negative powers, for which numpy raises, the documented 0."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(function(*items))
        except ValueError:
            if name != "**":
                raise
            a, b = (np.asarray(each).astype(np.result_type(*items)) for each in items)
            return np.where(b < 0, 0, np.power(a, np.where(b < 0, 0, b)))


def _by_gpu(function: Callable[..., Any], name: str, items: list[Any]) -> Any:
    if name.startswith("astype"):
        to = name.split()[1]
        return items[0] != 0 if to == "bool" else _CASTS[to](items[0])
    own = {"minimum": gw.minimum, "maximum": gw.maximum}.get(name) or (
        getattr(gw, name) if len(items) == 1 and name not in ("-", "~", "abs") else function
    )
    return own(*items)


def outcome(compute: Callable[[], Any]) -> Any:
    """Return an array, or the type of error among those of numpy."""
    try:
        return compute()
    except (TypeError, ValueError, OverflowError) as error:
        return TypeError if isinstance(error, TypeError) else type(error)


def difference(got: Any, want: Any) -> str | None:
    """Return how two outcomes differ."""
    if isinstance(got, type) or isinstance(want, type):
        return None if got is want else f"{got!r} in place of {want!r}"
    if got.dtype != want.dtype:
        return f"{got.dtype} in place of {want.dtype}"
    same = (got == want) | ((got != got) & (want != want))
    if got.dtype.kind == "f":
        same &= (np.signbit(got) == np.signbit(want)) | np.isnan(want) | (want == 0)
    at = np.flatnonzero(~same)
    return None if not at.size else f"item {at[0]} is {got[at[0]]!r} in place of {want[at[0]]!r}"


def cases(rng: np.random.Generator, *, words: bool) -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """Yield operators and their operands on the host, for ever: a few in turn share a kernel."""
    wide = WIDE[:2] if words else WIDE
    while True:
        dtypes = str(rng.choice(wide)), str(rng.choice(OTHERS))
        is_single, how, is_swapped, is_whole = rng.integers(0, 4) == 0, rng.integers(0, 4), *rng.integers(0, 2, 2)
        known = ONE if is_single else TWO
        name = str(rng.choice([each for each in known if not (words and each in ("sqrt", "rint"))]))
        for _ in range(_IN_TURN):
            first, second = (edges(dtype, rng) for dtype in dtypes)
            pair: list[Any] = [first, second]
            if is_single:
                yield name, ONE[name], [_castable(first) if name.startswith("astype") else first]
                continue
            if how == 0:  # a number of Python, or of numpy
                pair[1] = int(rng.integers(0, 66)) if is_whole else float(rng.integers(-9, 9))
                if is_whole and name in COMPARISONS and rng.integers(0, 4) == 0:  # no type of 8 bytes has it
                    pair[1] = -(2**70) if rng.integers(0, 2) else 2**64
            elif how == 1 and second.dtype.itemsize == 8:
                pair[1] = second[0]
            if name == "**":
                pair[1] = _exponents(*pair)
            elif is_swapped:
                pair = pair[::-1]
            if words and name != "**" and _gives_doubles(name, pair):
                break
            yield name, TWO[name], pair


def _castable(items: np.ndarray) -> np.ndarray:
    """Return floats that fit into integers: what others become is open."""
    return np.where(np.abs(items) < 2**62, np.abs(items), 3.25) if items.dtype.kind == "f" else items


def _exponents(first: np.ndarray, second: Any) -> Any:
    """Return exponents that are computed: of integers integers; floats are raised to a known, small power."""
    if first.dtype.kind == "f" or np.asarray(second).dtype.kind not in "iu" or np.ndim(second) == 0:
        return 2
    return second if np.result_type(first, second).kind in "iu" else second.astype(first.dtype)


def _gives_doubles(name: str, pair: list[Any]) -> bool:
    if name in COMPARISONS and all(np.asarray(each).dtype.kind in "biu" for each in pair):
        return False
    return name == "/" or np.result_type(*pair).kind == "f"


def run(device: wgpu.GPUDevice, pairs: int, seed: int, *, words: bool) -> list[str]:
    """Return the differences among so many pairs."""
    device = device_with(device, label="pairs of words") if words else device
    found: list[str] = []
    for number, (name, function, items) in zip(
        range(pairs), cases(np.random.default_rng(seed), words=words), strict=False
    ):
        want = outcome(lambda: _by_numpy(function, name, tuple(items)))  # noqa: B023
        on_gpu = [gw.asarray(x, device) if np.ndim(x) else x for x in items]
        expression = outcome(lambda: _by_gpu(function, name, on_gpu))  # noqa: B023
        got = twin = expression
        if not isinstance(expression, type):
            got, twin = outcome(lambda: gw.asarray(expression, device).to_numpy()), expression.numpy()  # noqa: B023
        for side, value in (("the GPU", got), ("the twin", twin)):
            if (text := difference(value, want)) is not None:
                shown = ", ".join(f"{np.asarray(x).dtype}{list(np.shape(x))}" for x in items)
                found.append(f"pair {number}, {name} of {shown}, {side}: {text}")
    return found


@click.command()
@click.option("--pairs", default=100_000)
@click.option("--seed", default=0)
@click.option("--words", is_flag=True)
def main(pairs: int, seed: int, words: bool) -> None:
    """Print the differences."""
    found = run(gw.default_device(), pairs, seed, words=words)
    print(*found[:40], f"{len(found)} of {pairs} pairs differ", sep="\n")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
