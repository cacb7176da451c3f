"""Reductions and scans of structs and of complex numbers, against plain Python and numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import make_primitive, quick_first

SMALL = {"workgroup_size": 32, "vecs": 1, "subgroups": "none"}  # tiles of 128 items, whatever their size
TILE = 128
SIZES = (1, 2, 3, 4, 5, TILE - 1, TILE, TILE + 1, 5 * TILE + 7)
MASK = 2**32 - 1

One = gw.Struct("One", last="u32")
Affine = gw.Struct("Affine", factor="u32", offset="u32")
Heisenberg = gw.Struct("Heisenberg", a="u32", b="u32", c="u32")
Matrix = gw.Struct("Matrix", a="u32", b="u32", c="u32", d="u32")
ValueIndex = gw.Struct("ValueIndex", value="f32", index="u32")
CountSum = gw.Struct("CountSum", count="u32", sum="f32")

#: The last item that is not 0: not commutative.
LAST = gw.BinOp(
    "last", identity=(0,), commutative=False,
    numpy=lambda a, b: np.where(b["last"] != 0, b, a),
    wgsl="fn combine(a: T, b: T) -> T { if (b.last != 0u) { return b; } return a; }",
)  # fmt: skip
#: Composition of x -> factor·x + offset modulo 2^32, the first function first.
COMPOSE = gw.BinOp(
    "compose", identity={"offset": 0, "factor": 1}, commutative=False,
    numpy=lambda a, b: Affine.array(
        factor=a["factor"] * b["factor"], offset=a["offset"] * b["factor"] + b["offset"]
    ),
    wgsl="fn combine(a: T, b: T) -> T { return T(a.factor * b.factor, a.offset * b.factor + b.offset); }",
)  # fmt: skip
#: Products of upper triangular matrices with ones in the diagonal.
TRIANGULAR = gw.BinOp(
    "triangular", identity=(0, 0, 0), commutative=False,
    numpy=lambda x, y: Heisenberg.array(a=x["a"] + y["a"], b=x["b"] + y["b"], c=x["c"] + y["c"] + x["a"] * y["b"]),
    wgsl="fn combine(x: T, y: T) -> T { return T(x.a + y.a, x.b + y.b, x.c + y.c + x.a * y.b); }",
)  # fmt: skip
#: Products of 2×2 matrices. The helper and its names are those of WGSL's built-ins and of this library's own lines.
PRODUCT = gw.BinOp(
    "matrix product", identity=(1, 0, 0, 1), commutative=False,
    numpy=lambda x, y: Matrix.array(
        a=x["a"] * y["a"] + x["b"] * y["c"], b=x["a"] * y["b"] + x["b"] * y["d"],
        c=x["c"] * y["a"] + x["d"] * y["c"], d=x["c"] * y["b"] + x["d"] * y["d"],
    ),
    wgsl="""
    fn dot(a: u32, b: u32, c: u32, d: u32) -> u32 { return a * c + b * d; }
    fn combine(x: T, y: T) -> T {
      return T(dot(x.a, x.b, y.a, y.c), dot(x.a, x.b, y.b, y.d), dot(x.c, x.d, y.a, y.c), dot(x.c, x.d, y.b, y.d));
    }""",
)  # fmt: skip
#: The largest value, and the first place where it is.
FIRST_MAX = gw.BinOp(
    "first max", identity={"value": -np.inf, "index": MASK},
    numpy=lambda a, b: np.where(
        (b["value"] > a["value"]) | ((b["value"] == a["value"]) & (b["index"] < a["index"])), b, a
    ),
    wgsl="""
    fn combine(a: T, b: T) -> T {
      if (b.value > a.value || (b.value == a.value && b.index < a.index)) { return b; }
      return a;
    }""",
)  # fmt: skip
COUNT_SUM = gw.BinOp(
    "count and sum", identity=(0, 0),
    numpy=lambda a, b: CountSum.array(count=a["count"] + b["count"], sum=a["sum"] + b["sum"]),
    wgsl="fn combine(a: T, b: T) -> T { return T(a.count + b.count, a.sum + b.sum); }",
)  # fmt: skip


def _compose(x, y):
    return x[0] * y[0] & MASK, (x[1] * y[0] + y[1]) & MASK


def _triangular(x, y):
    return (x[0] + y[0]) & MASK, (x[1] + y[1]) & MASK, (x[2] + y[2] + x[0] * y[1]) & MASK


def _product(x, y):
    (a, b, c, d), (e, f, g, h) = x, y
    return (a * e + b * g) & MASK, (a * f + b * h) & MASK, (c * e + d * g) & MASK, (c * f + d * h) & MASK


#: By the number of words: a struct, an operator that is not commutative, the same in Python's integers, its identity.
CASES = {
    1: (One, LAST, lambda x, y: y if y[0] else x, (0,)),
    2: (Affine, COMPOSE, _compose, (1, 0)),
    3: (Heisenberg, TRIANGULAR, _triangular, (0, 0, 0)),
    4: (Matrix, PRODUCT, _product, (1, 0, 0, 1)),
}
FORMS = {
    "lookback-u64": {"strategy": "lookback", "state": "u64"},
    "lookback-u32x2": {"strategy": "lookback", "state": "u32x2"},
    "reduce_then_scan": {"strategy": "reduce_then_scan"},
}


def _items(words, n, seed=0):
    struct, *_ = CASES[words]
    rng = np.random.default_rng([n, words, seed])
    numbers = rng.integers(0, 2**32, (n, words), dtype=np.uint32)
    if words == 1:
        numbers[rng.random(n) < 0.9] = 0
    if words == 2:
        numbers[:, 0] |= np.uint32(1)  # the product of even factors soon becomes 0
    return numbers.view(struct.dtype).reshape(-1)


def _prefixes(words, items, kind="inclusive"):
    struct, _, combine, total = CASES[words]
    prefixes = [total]
    for item in items.tolist():
        total = combine(total, item)
        prefixes.append(total)
    return np.array(prefixes[1:] if kind == "inclusive" else prefixes[:-1], dtype=struct.dtype)


def _assert_same(got, want):
    """Fail unless all items have the same bits."""
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.reshape(-1).view(np.uint32), want.reshape(-1).view(np.uint32))


def _reduce(device, struct, op, **options):
    return make_primitive(gw.Reduce, device, struct, op, **{**SMALL, **options})


def _scan(device, struct, op, kind="inclusive", **options):
    return make_primitive(gw.Scan, device, struct, op, kind, **{**SMALL, **options})


def _numpy(primitive, items, device, **more):
    return primitive.execute(input=gw.asarray(items, device), **more).output.to_numpy()


def _form(name, require):
    """What a scan takes for a strategy, on a device that can do it."""
    if name == "lookback-u64":
        require("shader-int64", "shader-int64-atomic-all-ops")
    return FORMS[name]


# ---- places


# ---- the structs of everyday


def test_value_and_index(device):
    values = np.random.default_rng(3).integers(-50, 50, 7 * TILE).astype(np.float32)
    items = ValueIndex.array(value=values, index=np.arange(values.size))
    best = gw.reduce(gw.asarray(items, device), FIRST_MAX).to_numpy()
    assert (best["value"], best["index"]) == (values.max(), values.argmax())
    running = gw.scan(items, FIRST_MAX, device=device)
    np.testing.assert_array_equal(running["value"], np.maximum.accumulate(values))
    assert (values[running["index"]] == running["value"]).all()
    assert gw.reduce(items[:0], FIRST_MAX, device=device).item() == (-np.inf, MASK)


def test_one_shot_functions_take_structured_arrays_and_out(device):
    items = _items(3, 777)
    want = _prefixes(3, items)
    _assert_same(gw.scan(items, TRIANGULAR, device=device), want)
    out, total = np.empty_like(items), np.empty((), items.dtype)
    assert gw.scan(items, TRIANGULAR, out=out, device=device) is out
    _assert_same(out, want)
    assert gw.reduce(items, TRIANGULAR, out=total, device=device) is total
    assert total[()] == want[-1]
    assert gw.reduce(items, TRIANGULAR, device=device) == want[-1]
    _assert_same(gw.scan(items.astype(items.dtype.newbyteorder()), TRIANGULAR, device=device), want)
    on_gpu = gw.empty(777, Heisenberg, device)
    gw.scan(gw.asarray(items[::-1], device), TRIANGULAR, out=on_gpu)
    _assert_same(on_gpu.to_numpy(), _prefixes(3, items[::-1]))
    with pytest.raises(gw.DatatypeError, match=r"give np\.empty\(777, np\.dtype\("):
        gw.scan(items, TRIANGULAR, out=np.empty(777, np.uint32), device=device)
    with pytest.raises(gw.DatatypeError, match=r"give gw\.empty\(777, np\.dtype\("):
        gw.scan(gw.asarray(items, device), TRIANGULAR, out=gw.empty(777, "u32", device))


@pytest.mark.slow
def test_large_numpy_arrays_are_streamed(device):
    items = _items(2, 3 << 20)
    items["factor"] = 1  # so that numpy has the prefixes, too
    got = gw.scan(items, COMPOSE, device=device)
    np.testing.assert_array_equal(got["offset"], np.cumsum(items["offset"], dtype=np.uint32))
    assert gw.reduce(items, COMPOSE, device=device) == got[-1]


@pytest.mark.parametrize("deterministic", quick_first([True], [False]))
def test_structs_in_a_fixed_order(device, deterministic):
    values = np.random.default_rng(5).standard_normal(20_000).astype(np.float32)
    x = gw.asarray(CountSum.array(count=1, sum=values), device)
    total = gw.Reduce(device, CountSum, COUNT_SUM, deterministic=deterministic)
    assert total.deterministic == deterministic
    count, found = total.execute(input=x).output.item()
    assert count == values.size
    assert abs(found - values.sum(dtype=np.float64)) < 1e-2


# ---- complex numbers


def _complex(n, seed=0):
    rng = np.random.default_rng([n, seed])
    return (rng.integers(-4, 5, n) + 1j * rng.integers(-4, 5, n)).astype(np.complex64)


@pytest.mark.parametrize("name", quick_first(["lookback-u32x2"], FORMS))
def test_complex_numbers_as_numpy(device, require, name):
    form = _form(name, require)
    scan, reduce = _scan(device, "c64", "add", **form), _reduce(device, "complex64", "add")
    for n in SIZES:
        items = _complex(n)
        _assert_same(_numpy(scan, items, device), np.cumsum(items))
        _assert_same(_numpy(reduce, items, device), np.cumsum(items)[-1:])
    units = np.random.default_rng(1).choice(np.array([1, -1, 1j, -1j], np.complex64), 5 * TILE + 7)
    products = _numpy(_scan(device, np.complex64, "multiply", **form), units, device)
    np.testing.assert_array_equal(products, np.cumprod(units))


def test_one_shot_functions_of_complex_numbers(device):
    items = _complex(1000)
    assert gw.sum(items, device=device) == items.sum()
    assert gw.sum(items, device=device).dtype == np.complex64
    np.testing.assert_array_equal(gw.cumsum(items, device=device), items.cumsum())
    assert gw.sum(items[:0], device=device) == 0
    assert gw.prod(items[:0], device=device) == 1
    values = np.exp(1j * np.random.default_rng(2).uniform(0, 7, 500)).astype(np.complex64)
    assert abs(gw.prod(values, device=device) - values.prod(dtype=np.complex128)) < 1e-4
    assert gw.asarray([1, 2.5, 3j], device, dtype="c64").to_numpy().tolist() == [1, 2.5, 3j]


@pytest.mark.slow
def test_complex_numbers_in_a_fixed_order(device):
    rng = np.random.default_rng(3)
    items = (rng.standard_normal(9000) + 1j * rng.standard_normal(9000)).astype(np.complex64)
    x = gw.asarray(items, device)
    for op, want in (("add", items.sum(dtype=np.complex128)), ("multiply", None)):
        if want is None:
            items /= np.abs(items)
            x, want = gw.asarray(items, device), items.prod(dtype=np.complex128)
        fixed = gw.Reduce(device, "c64", op, deterministic=True)
        assert abs(fixed.execute(input=x).output.item() - want) < 1e-2 * max(1, abs(want))
        parts = _numpy(gw.Scan(device, "c64", op, deterministic=True), items, device)
        assert abs(parts[-1] - want) < 1e-2 * max(1, abs(want))
    payload = np.array([0xFFC12345, 0x7FC00001], np.uint32).view(np.complex64)  # other bits than a GPU makes
    nan = gw.Reduce(device, "c64", deterministic=True).execute(input=gw.asarray(payload, device)).output
    assert nan.to_numpy().view(np.uint32).tolist() == [0x7FC00000, 0x7FC00000]


def test_a_users_operator_on_complex_numbers(device):
    text = gw.BinOp(
        "plus", identity=0j, numpy=np.add, wgsl="fn combine(a: T, b: T) -> T { return T(a.x + b.x, a.y + b.y); }"
    )
    expression = gw.BinOp("plus", identity=0, numpy=np.add, expression="a + b")
    items = _complex(300)
    for op in (text, expression):
        assert gw.reduce(items, op, device=device) == items.sum()


@pytest.mark.parametrize("function", [gw.min, gw.max])
def test_complex_numbers_have_no_order(device, function):
    with pytest.raises(gw.DatatypeError, match=r"np\.abs\(x\).*x\.real"):
        function(_complex(5), device=device)


# ---- the check of an operator


def _no_gpu(struct, op):
    return gw.Reduce(None, struct, op, capabilities=gw.Capabilities())


def test_a_wrong_identity_raises_with_both_results():
    wrong = replace(COMPOSE, identity=(1, 1))
    with pytest.raises(gw.ArgumentError, match=r"identity \(1, 1\) changes a value: numpy\(.*\) is \(.*\), not \(.*\)"):
        _no_gpu(Affine, wrong)


def test_a_wrong_twin_raises_with_both_results(device):
    swapped = replace(COMPOSE, numpy=lambda a, b: COMPOSE.numpy(b, a))
    with pytest.raises(gw.ArgumentError, match=r"combine\(.*\) = \(\d+, \d+\), but numpy= gives \(\d+, \d+\)"):
        gw.Reduce(device, Affine, swapped).execute(input=gw.asarray(_items(2, 5), device))


def test_an_identity_that_only_the_gpu_mistreats_raises(device):
    text = "fn combine(a: T, b: T) -> T { if (b.value > a.value && a.index != 0xffffffffu) { return b; } return a; }"
    mistreats = replace(FIRST_MAX, wgsl=text, check=[(1, 2), (3, 4), (0, 5)])
    with pytest.raises(
        gw.ArgumentError, match=r"combine\(\(-inf, 4294967295\), .*gives \(.*Kernels combine the identity"
    ):
        gw.Reduce(device, ValueIndex, mistreats).execute(input=gw.asarray(np.zeros(5, ValueIndex.dtype), device))


def _sum_and_difference(a, b):
    return Affine.array(factor=a["factor"] + b["factor"], offset=a["offset"] - b["offset"])


def _distances(a, b):
    return Affine.array(**{name: np.maximum(a[name], b[name]) - np.minimum(a[name], b[name]) for name in a.dtype.names})


def test_the_laws_of_operators_on_structs():
    with pytest.raises(gw.ArgumentError, match="commutative=False"):
        _no_gpu(Affine, replace(COMPOSE, commutative=True))
    differs = replace(COMPOSE, numpy=_sum_and_difference, identity=(0, 0))
    with pytest.raises(gw.ArgumentError, match="identity"):
        _no_gpu(Affine, differs)
    _no_gpu(Affine, replace(differs, check=[(1, 0), (2, 0), {"offset": 0, "factor": 3}]))
    distances = replace(COMPOSE, numpy=_distances, identity=(0, 0))
    with pytest.raises(gw.ArgumentError, match=r"not associative: of \(\d, \d\), \(\d, \d\) and \(\d, \d\), numpy"):
        _no_gpu(Affine, distances)


def test_a_twin_that_gives_other_fields_is_refused():
    with pytest.raises(gw.ArgumentError, match=r"return one with its fields, as Affine\.array\(factor=…, offset=…\)"):
        _no_gpu(Affine, replace(COMPOSE, numpy=lambda a, b: a["factor"] * b["factor"]))


def test_a_check_is_made_once(device):
    calls = []

    def twin(a, b):
        calls.append(a.size)
        return COMPOSE.numpy(a, b)

    op = replace(COMPOSE, numpy=twin)
    x = gw.asarray(_items(2, 50), device)
    gw.Reduce(device, Affine, op).execute(input=x)
    before = len(calls)
    assert before
    gw.Reduce(device, np.dtype([("factor", "u4"), ("offset", "u4")]), op).execute(input=x)
    gw.Scan(device, Affine, op).execute(input=x)
    assert len(calls) == before


def test_a_complex_operator_is_checked(device):
    wrong = gw.BinOp("wrong", identity=1, numpy=np.multiply, wgsl="fn combine(a: T, b: T) -> T { return a * b; }")
    with pytest.raises(gw.ArgumentError, match=r"combine\(\(1\+1j\), \(1\+1j\)\) = \(1\+1j\), but numpy= gives 2j"):
        gw.Reduce(device, "c64", wrong).execute(input=gw.asarray(_complex(5), device))
    with pytest.raises(gw.ArgumentError, match="identity"):
        gw.Reduce(None, "c64", replace(wrong, identity=1j), capabilities=gw.Capabilities())


# ---- what is refused


def test_an_unknown_field_is_refused(device):
    with pytest.raises(
        gw.ArgumentError, match=r"identity of BinOp 'compose' has the unknown field 'ofset'.*factor, offset"
    ):
        _no_gpu(Affine, replace(COMPOSE, identity={"factor": 1, "ofset": 0}))
    with pytest.raises(gw.ArgumentError, match=r"lacks the field 'offset'"):
        Affine.array(factor=1)
    with pytest.raises(gw.DatatypeError, match=r"2 fields; give a tuple \(factor, offset\)"):
        _no_gpu(Affine, replace(COMPOSE, identity=1))
    typo = replace(COMPOSE, wgsl="fn combine(a: T, b: T) -> T { return T(a.factor, b.ofset); }")
    with pytest.raises(gw.ShaderError, match="ofset"):
        gw.Reduce(device, Affine, typo).execute(input=gw.asarray(_items(2, 5), device))


def test_ordered_operators_of_numbers_are_not_for_structs():
    with pytest.raises(gw.DatatypeError, match="compares the fields"):
        _no_gpu(Affine, replace(COMPOSE, key="max"))


def test_a_text_for_words_is_refused():
    words = replace(COMPOSE, wgsl="fn combine(a: Acc, b: Acc) -> Acc { return a; }")
    with pytest.raises(gw.DatatypeError, match="written for Acc"):
        _no_gpu(Affine, words)


def test_an_array_of_another_struct_is_refused(device):
    other = gw.Struct("Affine", factor="u32", shift="u32")
    with pytest.raises(gw.DatatypeError, match="Affine"):
        gw.Reduce(device, Affine, COMPOSE).execute(input=gw.empty(5, other, device))


def test_the_same_memory_as_another_struct_is_checked_again(device):
    buffer = gw.asarray(_items(2, 5), device).buffer
    other = gw.Struct("Affine", factor="u32", shift="u32")
    reduce = gw.Reduce(device, Affine, COMPOSE)
    reduce.execute(input=gw.Array(buffer, Affine, 5))
    with pytest.raises(gw.DatatypeError):
        reduce.execute(input=gw.Array(buffer, other, 5))


def test_results_of_another_datatype_are_refused():
    with pytest.raises(gw.DatatypeError, match="result_dtype"):
        gw.Reduce(None, Affine, COMPOSE, result_dtype=One, capabilities=gw.Capabilities())
    with pytest.raises(gw.DatatypeError, match="result_dtype"):
        gw.Reduce(None, "f32", result_dtype="c64", capabilities=gw.Capabilities())
    with pytest.raises(gw.ArgumentError, match="compensated"):
        gw.Reduce(None, "c64", compensated=True, capabilities=gw.Capabilities())


# ---- plans


@pytest.mark.parametrize("words", CASES)
def test_a_plan_without_a_device_counts_items_and_bytes(words):
    struct, op, *_ = CASES[words]
    capabilities = gw.Capabilities()
    plan = gw.Scan.plan_for(capabilities=capabilities, lengths={"input": 1000, "output": 1000}, dtype=struct, op=op)
    assert (plan.work.items, plan.work.read_bytes, plan.work.write_bytes) == (1000, 4000 * words, 4000 * words)
    assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")
    reduce = gw.Reduce.plan_for(capabilities=capabilities, lengths={"input": 1000, "output": 1}, dtype=struct, op=op)
    assert (reduce.work.items, reduce.work.read_bytes) == (1000, 4000 * words)
