"""Reductions and scans with results of another datatype than their items, or of 8 bytes: against numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import SMALL, assert_same, make_primitive, quick_first

TILE = 256
OPERATORS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def _dtype(name):
    return gw.STORAGE_DATATYPES[name].dtype


def _prefixes(op, items, result):
    """Numpy's prefixes in the dtype of the results; ints that become floats are small."""
    with np.errstate(all="ignore"):
        return OPERATORS[op].accumulate(items.astype(_dtype(result)), dtype=_dtype(result))


def _reduce(device, name, op, result, **more):
    return make_primitive(gw.Reduce, device, name, op, result_dtype=result, **{**SMALL, **more})


def _scan(device, name, op, result, strategy, kind="inclusive", **more):
    state = {} if strategy != "lookback" else {"state": more.pop("state", "u32x2")}
    more.pop("state", None)
    return make_primitive(
        gw.Scan, device, name, op, kind, result_dtype=result, strategy=strategy, **state, **{**SMALL, **more}
    )


def test_an_empty_result_leaves_its_neighbours(device):
    out = gw.asarray(np.arange(8, dtype=np.uint8), device)
    _reduce(device, "u8", "multiply", "u8").execute(input=gw.empty(0, "u8", device), output=out[5:6])
    assert out.to_numpy().tolist() == [0, 1, 2, 3, 4, 1, 6, 7]


# ---- places


def test_results_of_another_size_are_not_written_in_place(device):
    buffer = gw.asarray(np.arange(100, dtype=np.uint64), device)
    items = gw.Array(buffer.buffer, "u8", 100)
    with pytest.raises(gw.OverlapError):
        gw.Scan(device, "u8", result_dtype="u64").execute(input=items, output=buffer)


# ---- several words in the state


def test_a_users_operator_on_64_bits_keeps_the_order(device):
    """Composition of x -> m·x + o modulo 2^32, with m in the high word and o in the low one."""
    low = np.uint64(0xFFFFFFFF)

    def compose(a, b):
        ma, oa, mb, ob = a >> np.uint64(32), a & low, b >> np.uint64(32), b & low
        return ((ma * mb & low) << np.uint64(32)) | ((oa * mb + ob) & low)

    affine = gw.BinOp(
        "affine 32", identity=1 << 32, numpy=compose, commutative=False,
        wgsl="fn combine(a: T, b: T) -> T { return T(a.x * b.y + b.x, a.y * b.y); }",
    )  # fmt: skip
    n = 7 * TILE + 11
    items = np.random.default_rng(5).integers(0, 2**63, n, dtype=np.uint64) | np.uint64(1 << 32)
    want, total = np.empty_like(items), np.uint64(1 << 32)
    for i, each in enumerate(items):
        want[i] = total = compose(total, each)
    scan = _scan(device, "u64", affine, "u64", "lookback")
    assert_same(scan.execute(input=gw.asarray(items, device)).output.to_numpy(), want)
    reduce = _reduce(device, "u64", affine, "u64")
    assert_same(reduce.execute(input=gw.asarray(items, device)).output.to_numpy(), want[-1:])


def test_an_expression_that_is_wrong_for_two_words_is_refused(device):
    """``a + b`` of two words has no carry."""
    plus = gw.BinOp("plus", identity=0, numpy=np.add, expression="a + b")
    x = gw.asarray(np.full(5, 2**32 - 1, dtype=np.uint64), device)
    with pytest.warns(gw.GridwiseWarning, match="plus"):
        gw.Reduce(device, "u64", plus).execute(input=x)


# ---- values


@pytest.mark.parametrize(("name", "op"), quick_first([("f16", "min")], [("f64", "max")]))
def test_minimum_and_maximum_of_floats_as_numpy(device, name, op):
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5, np.finfo(_dtype(name)).max], _dtype(name))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        items = rng.standard_normal(3 * TILE).astype(_dtype(name))
        items[rng.integers(100, items.size, 5)] = rng.choice(special, 5)
        want = OPERATORS[op].accumulate(items)
        x = gw.asarray(items, device)
        assert_same(_scan(device, name, op, name, "lookback").execute(input=x).output.to_numpy(), want)
        assert_same(_reduce(device, name, op, name).execute(input=x).output.to_numpy(), want[-1:])
    zeros = gw.asarray(np.array([0.0, -0.0], _dtype(name)), device)
    lowest = _reduce(device, name, op, name).execute(input=zeros).output.to_numpy()
    assert np.signbit(lowest[0]) == (op == "min")  # −0 below +0


def test_extremes_of_integers(device):
    info = np.iinfo(np.int8)
    scan, reduce = _scan(device, "i8", "add", "i64", "lookback"), _reduce(device, "i8", "add", "i64")
    for value in (info.min, info.max):
        items = np.full(2 * TILE + 1, value, np.int8)
        x = gw.asarray(items, device)
        want = _prefixes("add", items, "i64")
        assert_same(scan.execute(input=x).output.to_numpy(), want)
        assert_same(reduce.execute(input=x).output.to_numpy(), want[-1:])


def test_the_largest_sum_of_a_tile_fits(device):
    """65,536 items of 16 bits are added in 32 bits, in the largest tile."""
    limit = gw.capabilities(device).limits["max-compute-invocations-per-workgroup"]
    n = limit * 64 * 2 + 5
    for name, value in (("u16", 65535), ("i16", -32768), ("i16", 32767)):
        items = np.full(n, value, _dtype(name))
        result = "u64" if name == "u16" else "i64"
        options = {"workgroup_size": limit, "vecs": 16, "subgroups": None}
        got = _reduce(device, name, "add", result, **options).execute(input=gw.asarray(items, device)).output
        assert got.to_numpy()[0] == n * value


def test_sums_of_halves_round_once(device):
    items = np.random.default_rng(1).standard_normal(5000).astype(np.float16)
    got = gw.Reduce(device, "f16").execute(input=gw.asarray(items, device)).output.to_numpy()
    assert got.dtype == np.float16
    exact = items.astype(np.float64).sum()
    assert abs(float(got[0]) - exact) <= 0.51 * float(np.spacing(np.float16(exact)))


def test_sums_of_doubles_are_doubles(device, require):
    require("shader-f64", "shader-int64")
    items = np.random.default_rng(1).standard_normal(30_000)
    x = gw.asarray(items, device)
    got = gw.Reduce(device, "f64").execute(input=x).output.to_numpy()[0]
    bound = items.size * 2.0**-53 * np.abs(items).sum()
    assert abs(got - items.sum()) <= bound
    assert got != np.float32(got)
    fixed = gw.Reduce(device, "f64", deterministic=True).execute(input=x).output.to_numpy()[0]
    assert abs(fixed - items.sum()) <= bound
    prefixes = gw.Scan(device, "f64").execute(input=x).output.to_numpy()
    assert np.abs(prefixes - np.cumsum(items)).max() <= bound


# ---- what is refused


@pytest.mark.parametrize(
    ("name", "result"), [("f32", "i32"), ("f64", "f32"), ("i64", "f32"), ("u8", "bool"), ("f16", "u8")]
)
def test_a_conversion_that_loses_is_refused(name, result):
    with pytest.raises(gw.DatatypeError, match=r"result_dtype=.*astype"):
        gw.Reduce(None, name, result_dtype=result, capabilities=gw.Capabilities())


def test_doubles_need_the_device(device):
    found = gw.capabilities(device)
    without = replace(found, features=found.features - {"shader-f64"})
    with pytest.raises(gw.DatatypeError, match="shader-f64"):
        gw.Reduce(None, "f64", capabilities=without)
    gw.Reduce(None, "f64", gw.Max, capabilities=without)  # compares bits
    with pytest.raises(gw.DatatypeError, match="shader-f64"):
        gw.Reduce(None, "f32", gw.Max, result_dtype="f64", capabilities=without)


def test_compensated_is_for_f32():
    with pytest.raises(gw.ArgumentError, match="compensated"):
        gw.Reduce(None, "f16", compensated=True, capabilities=gw.Capabilities())
    gw.Scan(None, "i64", compensated=True, capabilities=gw.Capabilities())  # exact anyway


def test_a_result_of_another_datatype_is_refused(device):
    x = gw.asarray(np.arange(5, dtype=np.int8), device)
    with pytest.raises(gw.DatatypeError, match="i64"):
        gw.Reduce(device, "i8", result_dtype="i64").execute(input=x, output=gw.empty(1, "i32", device))
