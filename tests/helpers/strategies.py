"""Inputs, references and comparisons for the tests of primitives, and the strategies by which hypothesis draws.

The references are independent of the library's own: numpy's accumulate, and a plain loop for operators that numpy
does not have.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import hypothesis.extra.numpy as hypothesis_numpy
import numpy as np
import pytest
import wgpu
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.planning.faults import faulty

DATATYPES = tuple(gw.DATATYPES)
KINDS = ("inclusive", "exclusive")
MODES = ("native", "none", "emulated")
STRATEGIES = ("reduce_then_scan", "lookback-u64", "lookback-u32x2", "lookback-u32x2-tickets")
#: Workgroup size and vec4 per invocation: small tiles make many workgroups of few items.
SHAPES = {
    "small": {"workgroup_size": 16, "vecs": 1},
    "middle": {"workgroup_size": 64, "vecs": 1},
    "default": {},
}
#: Tiles of 256 items: what most tests compile, so that they share it.
SMALL = {"workgroup_size": 64, "vecs": 1, "subgroups": "none"}

# ---- operators ----


def _xor(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind == "f":
        return np.bitwise_xor(a.astype(np.uint32), b.astype(np.uint32)).astype(np.float32)
    return a ^ b


#: Commutative, for items that are integers. On f32 below 2^24.
XOR = gw.BinOp(
    "user xor",
    identity=0,
    numpy=_xor,
    wgsl="fn combine(a: T, b: T) -> T { return T(u32(a) ^ u32(b)); }",
    check=[0, 1, 2, 5, 1000, 2**24 - 1],
)


def _affine(bits: int) -> Any:
    mask = (1 << bits) - 1

    def compose(a: Any, b: Any) -> Any:
        m = (a >> bits) * (b >> bits) & mask
        return m << bits | ((a & mask) * (b >> bits) + (b & mask)) & mask

    return compose


def _affine_of_floats(a: Any, b: Any) -> Any:
    return _affine(12)(a.astype(np.uint32), b.astype(np.uint32)).astype(np.float32)


#: Not commutative: composition of x → m·x + o, with m in the upper half of the item and o in the lower, modulo 2^16.
AFFINE = gw.BinOp(
    "affine",
    identity=0x00010000,
    numpy=_affine(16),
    wgsl="fn combine(a: T, b: T) -> T { let m=((a>>16u)*(b>>16u))&0xffffu; "
    "let o=((a&0xffffu)*(b>>16u)+(b&0xffffu))&0xffffu; return (m<<16u)|o; }",
    commutative=False,
)
_AFFINE_12_WGSL = """
fn combine(a: T, b: T) -> T {
  let x = u32(a);
  let y = u32(b);
  let m = ((x >> 12u) * (y >> 12u)) & 0xfffu;
  let o = ((x & 0xfffu) * (y >> 12u) + (y & 0xfffu)) & 0xfffu;
  return T((m << 12u) | o);
}"""
#: The same modulo 2^12, so that items are integers below 2^24, which f32 holds exactly.
_BELOW_2_24 = [0, 77, 1 << 12, 5 << 12 | 7, 2**24 - 1]
AFFINE_I32 = gw.BinOp("affine 12", 1 << 12, _affine(12), wgsl=_AFFINE_12_WGSL, commutative=False, check=_BELOW_2_24)
AFFINE_F32 = gw.BinOp(
    "affine 12", 1 << 12, _affine_of_floats, wgsl=_AFFINE_12_WGSL, commutative=False, check=_BELOW_2_24
)

_OPERATORS = {"add": gw.Add, "min": gw.Min, "max": gw.Max, "multiply": gw.Multiply, "xor": XOR}
OPERATORS = (*_OPERATORS, "affine")


def operator(name: str, datatype: str) -> gw.BinOp:
    """Return an operator by its name in these tests."""
    affine = {"u32": AFFINE, "i32": AFFINE_I32, "f32": AFFINE_F32}
    return affine[datatype] if name == "affine" else _OPERATORS[name]


# ---- inputs on which an operator's results are the same in any grouping, bit for bit ----

_FLOATS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.4028235e38, -3.4028235e38, 1.1754944e-38]


def exact_items(op: str, datatype: str, n: int, seed: int = 0) -> np.ndarray:
    """Return `n` seeded items over as much of the datatype as the operator bears without rounding.

    Integers take all values, so sums and products wrap. Float sums are of small integers, float products of powers
    of two. Float minima and maxima of an odd seed have NaN, infinities and both zeros in their last quarter.
    """
    rng = np.random.default_rng([seed, n, OPERATORS.index(op), DATATYPES.index(datatype)])
    dtype = gw.DATATYPES[datatype].dtype
    if op == "affine":
        half = 1 << (16 if datatype == "u32" else 12)
        # Odd factors: the product of many does not become 0.
        return ((rng.integers(0, half, n) | 1) * half + rng.integers(0, half, n)).astype(dtype)
    if datatype != "f32":
        info = np.iinfo(dtype)
        items = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
        return items | dtype.type(1) if op == "multiply" else items
    if op == "add":
        return rng.integers(-50, 51, n).astype(dtype)
    if op == "xor":
        return rng.integers(0, 1 << 24, n).astype(dtype)
    if op == "multiply":
        items = rng.choice(np.array([1, -1], dtype=dtype), n)
        # A factor of 2 is followed by one of 1/2: products of many, in whatever grouping, stay in the range of floats.
        scaled = np.flatnonzero(rng.random(n) < 0.01)
        items[scaled[::2]] *= 2
        items[scaled[1::2]] /= 2
        return items
    items = rng.standard_normal(n).astype(dtype)
    if seed % 2:
        rare = (np.arange(n) >= n - n // 4) & (rng.random(n) < 0.05)
        items[rare] = rng.choice(np.array(_FLOATS, dtype=dtype), int(rare.sum()))
    return items


# ---- references ----


def scan_reference(op: str, items: np.ndarray, kind: str = "inclusive") -> np.ndarray:
    """Return all prefixes under an operator, in the dtype of the items."""
    dtype, datatype = items.dtype, gw.DATATYPES[_name_of(items.dtype)]
    if op == "affine":
        prefixes = _prefixes_by_rows(_affine(16 if dtype == np.uint32 else 12), items.astype(np.int64))
        prefixes = prefixes.astype(dtype)
    elif op == "xor":
        words = items if dtype.kind != "f" else items.astype(np.uint32)
        prefixes = np.bitwise_xor.accumulate(words).astype(dtype)
    elif op in ("add", "multiply"):
        with np.errstate(all="ignore"):
            prefixes = (np.add if op == "add" else np.multiply).accumulate(items, dtype=dtype)
    else:
        prefixes = (np.minimum if op == "min" else np.maximum).accumulate(items)
        if dtype.kind == "f":
            # numpy leaves the sign of a zero open; here −0 orders below +0.
            lower, higher = np.array([-0.0, 0.0] if op == "min" else [0.0, -0.0], dtype=dtype)
            wins = (items == 0) & (np.signbit(items) == np.signbit(lower))
            zero = np.where(np.logical_or.accumulate(wins), lower, higher)
            prefixes = np.where(prefixes == 0, zero, prefixes)
    if kind == "inclusive" or not items.size:
        return prefixes
    first = np.array([operator(op, datatype.name).identity_for(datatype)], dtype=dtype)
    return np.concatenate([first, prefixes[:-1]])


def _prefixes_by_rows(combine: Any, items: np.ndarray) -> np.ndarray:
    """Scan with a function on arrays: along all rows of a square at once, then with the rows before each row."""
    width = math.isqrt(items.size) + 1
    rows = np.zeros(width * width, np.int64)  # what fills the square comes after all items
    rows[: items.size] = items
    rows = rows.reshape(width, width)
    for column in range(1, width):
        rows[:, column] = combine(rows[:, column - 1], rows[:, column])
    for row in range(1, width):
        rows[row] = combine(rows[row - 1, -1], rows[row])
    return rows.reshape(-1)[: items.size]


def reduce_reference(op: str, items: np.ndarray) -> np.ndarray:
    """Return all items combined, shape (1,)."""
    if items.size:
        return scan_reference(op, items)[-1:]
    datatype = gw.DATATYPES[_name_of(items.dtype)]
    return np.array([operator(op, datatype.name).identity_for(datatype)], dtype=items.dtype)


def _name_of(dtype: np.dtype) -> str:
    return next(name for name, datatype in gw.DATATYPES.items() if datatype.dtype == dtype)


# ---- comparisons ----


def assert_same(got: np.ndarray, want: np.ndarray, note: str = "") -> None:
    """Fail unless all items have the same bits; a NaN equals any NaN."""
    assert got.dtype == want.dtype, note
    assert got.shape == want.shape, note
    bits = np.dtype(f"{'V' if got.dtype.kind == 'V' else 'u'}{got.itemsize}")
    same = got.view(bits) == want.view(bits)
    if got.dtype.kind == "f":
        same |= np.isnan(got) & np.isnan(want)
    if not same.all():
        wrong = np.flatnonzero(~same)
        raise AssertionError(
            f"{note}: {wrong.size} of {got.size} items are wrong, from item {wrong[0]} to {wrong[-1]}; "
            f"item {wrong[0]} is {got[wrong[0]]!r} and should be {want[wrong[0]]!r}"
        )


EPS = float(np.finfo(np.float32).eps)


def assert_sums_within_bound(got: np.ndarray, items: np.ndarray, kind: str | None = None, note: str = "") -> None:
    """Fail unless each float sum is within 32·eps·Σ|x| of its own items from the sum in float64.

    `kind` is that of a scan; None is a reduction. Where the exact sum is not finite, `got` must be that value.
    """
    assert got.dtype == np.float32
    with np.errstate(all="ignore"):
        want = np.concatenate([[0.0], np.cumsum(items, dtype=np.float64)])
        magnitude = np.concatenate([[0.0], np.cumsum(np.abs(items), dtype=np.float64)])
    part = {"inclusive": slice(1, None), "exclusive": slice(0, -1), None: slice(-1, None)}[kind]
    want, magnitude = want[part], magnitude[part]
    assert got.shape == want.shape, note
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite].astype(np.float32), err_msg=note)
    excess = np.abs(got[finite] - want[finite]) - 32 * EPS * magnitude[finite]
    assert np.all(excess <= 0), f"{note}: {np.sum(~(excess <= 0))} of {got.size} sums are out of bounds"


# ---- primitives from flat options ----

_FAULTS = ("stall_every", "epoch_bits")


@cache
def tuning_of(cls: type[gw.Primitive]) -> type | None:
    """Return the class of what a primitive takes as ``tuning=``, as its constructor says; None if it takes none."""
    parameter = inspect.signature(cls.__init__).parameters.get("tuning")
    return None if parameter is None else getattr(gw, str(parameter.annotation).partition(" ")[0], None)


def arranged(cls: type[gw.Primitive], options: Mapping[str, Any]) -> tuple[type[gw.Primitive], dict[str, Any]]:
    """Return a class, with faults if the options name some, and options whose fields of the tuning are in ``tuning=``.

    So tables of tests may hold options of every kind in one flat mapping.
    """
    kind = tuning_of(cls)
    fields = set() if kind is None else {field.name for field in dataclasses.fields(kind)}
    tuning = {name: value for name, value in options.items() if name in fields}
    faults = {name: value for name, value in options.items() if name in _FAULTS}
    rest = {name: value for name, value in options.items() if name not in tuning and name not in faults}
    return (faulty(cls, **faults) if faults else cls), (rest | {"tuning": kind(**tuning)} if tuning else rest)


def make_primitive(cls: type[gw.Primitive], *args: Any, **options: Any) -> Any:
    """Return a primitive from flat options; see `arranged`."""
    cls, options = arranged(cls, options)
    return cls(*args, **options)


def shape_data(workgroup_size: Any, vecs: int, max_blocks: Any = None) -> dict[str, Any]:
    """Return a kernel's shape as the findings of `gridwise tune` have it."""
    blocks = {} if max_blocks is None else {"max_blocks": max_blocks}
    return {"workgroup_size": workgroup_size, "vecs": vecs, **blocks}


def plan_from(cls: type[gw.Primitive], **options: Any) -> gw.Plan:
    """Return what ``plan_for`` of a class gives, from flat options; see `arranged`."""
    cls, options = arranged(cls, options)
    return cls.plan_for(**options)


# ---- which cases, which sizes ----


def mode_for(device: wgpu.GPUDevice, mode: str, workgroup_size: int | None = None) -> str:
    """Return what ``subgroups=`` takes; emulated subgroups are a quarter of the workgroup, at least 2 lanes."""
    return mode if mode != "emulated" else f"emulated-{max(2, min(64, (workgroup_size or 256) // 4))}"


def shape_options(device: wgpu.GPUDevice, shape: str, mode: str) -> dict[str, int]:
    """Return ``workgroup_size=`` and ``vecs=`` of a shape; a workgroup holds at least one native subgroup."""
    options = dict(SHAPES[shape])
    if mode == "native" and options:
        size = gw.capabilities(device).subgroup_size or 1
        options["workgroup_size"] = max(options["workgroup_size"], size)
    return options


def strategy_options(strategy: str) -> dict[str, Any]:
    """Return what a scan takes for one of STRATEGIES."""
    name, *form = strategy.split("-")
    return {"strategy": name, "state": form[0] if form else "u32x2", "tickets": True if "tickets" in form else None}


def edge_sizes(tile: int, subgroup: int, blocks: int) -> list[int]:
    """Return lengths around the boundaries of subgroups, tiles and blocks of tiles, few of them multiples of 4."""
    around = [subgroup, 4 * subgroup, tile, 2 * tile, blocks * tile]
    sizes = {0, 1, 2, 3, 5, 7} | {n + d for n in around for d in (-1, 0, 1)} | {blocks * tile + 2 * tile + 6}
    return sorted(n for n in sizes if n >= 0)


@lru_cache
def _pairwise(factors: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[tuple[str, ...], ...]:
    values = [options for _, options in factors]
    axes = list(itertools.combinations(range(len(values)), 2))
    every = list(itertools.product(*values))
    pairs = {row: frozenset((i, j, row[i], row[j]) for i, j in axes) for row in every}
    left = set().union(*pairs.values())
    chosen = []
    while left:
        best = max(every, key=lambda row: len(pairs[row] & left))
        chosen.append(best)
        left -= pairs[best]
    return tuple(chosen)


def pairwise(factors: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Return few combinations in which every value of each factor meets every value of each other factor."""
    rows = _pairwise(tuple((name, tuple(values)) for name, values in factors.items()))
    return [dict(zip(factors, row, strict=True)) for row in rows]


def every(factors: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Return all combinations."""
    return [dict(zip(factors, row, strict=True)) for row in itertools.product(*factors.values())]


def covering(cases: Sequence[dict[str, Any]], *pairs: tuple[str, str]) -> list[dict[str, Any]]:
    """Return few of the cases, with each value of each factor, and each two values of the factors in `pairs`."""
    has = [{*case.items(), *(((a, b), (case[a], case[b])) for a, b in pairs)} for case in cases]
    missing, chosen = set().union(*has), []
    while missing:
        best = max(range(len(cases)), key=lambda i: len(has[i] & missing))
        missing -= has[best]
        chosen.append(cases[best])
    return chosen


def quick_first(quick: Sequence[Any], *others: Sequence[Any]) -> list[Any]:
    """Return parameters for pytest: those of `quick`, and the others marked as slow."""
    left = [case for cases in others for case in cases if case not in quick]
    return [*quick, *(
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in left
    )]  # fmt: skip


# ---- hypothesis ----


def lengths(tile: int = 256, subgroup: int = 8) -> st.SearchStrategy[int]:
    """Draw a length near a boundary of subgroups or tiles, or any small one."""
    near = st.builds(
        lambda base, d: max(0, base + d),
        st.sampled_from([0, subgroup, 4 * subgroup, tile, 2 * tile, 5 * tile]),
        st.integers(-4, 4),
    )
    return near | st.integers(0, 3 * tile)


def elements(datatype: str, largest: float | None = None) -> st.SearchStrategy[Any]:
    """Draw an item: for integers often one at which sums wrap, for floats often NaN, ±inf or ±0.

    GPUs may flush denormals, so there are none. `largest` bounds the magnitude of finite floats.
    """
    if datatype == "f32":
        most = float(np.float32(largest if largest is not None else np.finfo(np.float32).max))
        special = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, most, -most])
        return special | st.floats(-most, most, width=32, allow_subnormal=False)
    info = np.iinfo(gw.DATATYPES[datatype].dtype)
    wraps = st.sampled_from([info.min, info.min + 1, 0, 1, info.max - 1, info.max])
    return wraps | st.integers(info.min, info.max)


def items(
    datatype: str, length: st.SearchStrategy[int] | int | None = None, largest: float | None = None
) -> st.SearchStrategy[np.ndarray]:
    """Draw an array of a datatype."""
    return hypothesis_numpy.arrays(
        gw.DATATYPES[datatype].dtype,
        lengths() if length is None else length,
        elements=elements(datatype, largest),
    )
