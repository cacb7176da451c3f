"""GroupBy and `group_by`: against numpy, one group at a time, and against pandas."""

from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.errors import ArgumentError, DatatypeError, LengthError

assert_same = np.testing.assert_array_equal
K, X = gw.u32("k"), gw.f32("x")


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def _run(primitive, device, **arrays):
    run = primitive.execute(**{name: gw.asarray(items, device) for name, items in arrays.items()})
    return {name: output.to_numpy() for name, output in run.outputs.items()}


def _groups(keys, items, function):
    """The groups one by one; keys are rows of an array."""
    found, places = np.unique(keys, axis=0, return_inverse=True)
    return found, [function(items[places.reshape(-1) == k]) for k in range(len(found))]


SIZES = (0, 1, 2, 300, pytest.param(5001, marks=pytest.mark.slow))


@pytest.mark.parametrize("n", SIZES)
def test_several_aggregates_of_one_column(device, rng, n):
    keys = rng.integers(0, 41, n).astype(np.uint32)
    x = rng.integers(-50, 50, n).astype(np.float32)
    groups = gw.GroupBy(
        device, K, total=(X, gw.Add), rows=gw.count, mean=(X, "mean"), low=(X, gw.Min), high=(X, gw.Max),
        some=(X > 45.0, "any"), every=(X > -45.0, "all"), first=(X, "first"), last=(X, "last"), var=(X, "var"),
        std=(X, "std", 1),
    )  # fmt: skip
    got = _run(groups, device, k=keys, x=x)
    found = np.unique(keys)
    parts = [x[keys == k] for k in found]
    assert_same(got["output_keys"], found)
    assert got["count"].tolist() == [found.size]
    exact = {
        "total": np.sum, "rows": np.size, "low": np.min, "high": np.max, "first": lambda p: p[0],
        "last": lambda p: p[-1], "some": lambda p: int((p > 45).any()), "every": lambda p: int((p > -45).all()),
    }  # fmt: skip
    for name, function in exact.items():
        assert got[name].tolist() == [function(part) for part in parts], name
    for name, function in {"mean": np.mean, "var": np.var}.items():
        np.testing.assert_allclose(got[name], [function(p.astype(float)) for p in parts], rtol=1e-5, atol=1e-4)
    alone = np.array([part.size == 1 for part in parts], dtype=bool)
    assert np.isnan(got["std"][alone]).all()
    expected = [np.std(p.astype(float), ddof=1) for p in parts if p.size > 1]
    np.testing.assert_allclose(got["std"][~alone], expected, rtol=1e-5, atol=1e-4)


def test_what_is_sorted_along(device):
    """Nothing, one or two words of a row; the positions where aggregates need more."""
    y, z = gw.i32("y"), gw.f32("z")
    lengths = {"k": 10000, "x": 10000, "y": 10000, "z": 10000}

    def along(**aggregates):
        groups = gw.GroupBy(device, K, **aggregates)
        given = {name: lengths[name] for name in groups.signature.inputs}
        outputs = {name: groups.signature.output_length(name, given) for name in groups.signature.outputs}
        plan = groups.plan(gw.Layout.separate(**given, **outputs))
        assert gw.Plan.from_json(plan.to_json()) == plan
        return plan.parameters["sorted_along"]

    assert along(rows=gw.count) == "nothing"
    assert along(a=(X, gw.Add), b=(X, gw.Max), rows=gw.count) == "values"
    assert along(a=(X, gw.Add), b=(y, gw.Max)) == "values"
    assert along(a=(X, gw.Add), b=(y, gw.Max), c=(z, gw.Min)) == "positions"


@pytest.mark.parametrize("n", [1, pytest.param(5003, marks=pytest.mark.slow)])
def test_columns_of_several_expressions_move_with_their_rows(device, rng, n):
    keys = rng.integers(0, 19, n).astype(np.uint32)
    x = rng.integers(0, 9, n).astype(np.float32)
    y = rng.integers(-9, 9, n).astype(np.int32)
    z = rng.integers(0, 9, n).astype(np.float32)
    Y, Z = gw.i32("y"), gw.f32("z")
    two = gw.GroupBy(device, K, a=(X * 2.0, gw.Add), b=(Y, gw.Min))
    many = gw.GroupBy(device, K, a=(X, "mean"), b=(Y, "mean"), c=(Z + X, "max"), d=(gw.index, gw.Min), rows=gw.count)
    found, parts = np.unique(keys), [np.flatnonzero(keys == k) for k in np.unique(keys)]
    got = _run(two, device, k=keys, x=x, y=y)
    assert got["output_keys"].tolist() == found.tolist()
    assert got["a"].tolist() == [2 * x[p].sum() for p in parts]
    assert got["b"].tolist() == [y[p].min() for p in parts]
    got = _run(many, device, k=keys, x=x, y=y, z=z)
    np.testing.assert_allclose(got["a"], [x[p].mean() for p in parts], rtol=1e-6)
    np.testing.assert_allclose(got["b"], [y[p].mean() for p in parts], rtol=1e-6, atol=1e-6)
    assert got["c"].tolist() == [(x[p] + z[p]).max() for p in parts]
    assert got["d"].tolist() == [p.min() for p in parts]
    assert got["rows"].tolist() == [p.size for p in parts]


def test_keys_of_floats_are_numbers(device):
    other_nan = np.array([0xFFC00001], dtype=np.uint32).view(np.float32)[0]
    keys = np.array([np.nan, -0.0, 5, -np.inf, 0.0, other_nan, -2, np.inf, -2], dtype=np.float32)
    got = _run(gw.GroupBy(device, gw.f32("z"), rows=gw.count), device, z=keys)
    assert_same(got["output_keys"], np.array([-np.inf, -2, 0, 5, np.inf, np.nan], dtype=np.float32))
    assert got["rows"].tolist() == [1, 2, 2, 1, 1, 2]


@pytest.mark.parametrize(
    "bits", [None, pytest.param((32, 1), marks=pytest.mark.slow), pytest.param((6, 1), marks=pytest.mark.slow)]
)
def test_several_columns_are_one_key(device, rng, bits):
    a = rng.integers(0, 50, 3000).astype(np.int32)
    if bits is None or bits[0] == 32:
        a -= 25
    b = rng.integers(0, 2, 3000).astype(np.float32 if bits is None else np.uint32)
    second = gw.f32("b") if bits is None else gw.u32("b")
    groups = gw.GroupBy(device, {"a": gw.i32("a"), "b": second}, key_bits=bits, rows=gw.count)
    got = _run(groups, device, a=a, b=b)
    found, rows = _groups(np.stack([a, b.astype(np.int32)], 1), a, len)
    assert_same(got["output_keys_a"], found[:, 0].astype(np.int32))
    assert_same(got["output_keys_b"], found[:, 1].astype(b.dtype))
    assert got["rows"].tolist() == rows


def test_three_columns_across_the_words_of_a_code(device, rng):
    """The middle column lies in both words."""
    a, b, c = (rng.integers(0, most, 2000).astype(np.uint32) for most in (2, 2**30, 2**18))
    b, c = b & np.uint32(0x30000003), c & np.uint32(0x20001)
    leaves = tuple(gw.u32(name) for name in "abc")
    got = _run(gw.GroupBy(device, leaves, key_bits=(1, 30, 18), rows=gw.count), device, a=a, b=b, c=c)
    found, rows = _groups(np.stack([a, b, c], 1), a, len)
    for k in range(3):
        assert got[f"output_keys_{k}"].tolist() == found[:, k].tolist()
    assert got["rows"].tolist() == rows


def test_bits_of_keys_above_those_given_do_not_count(device):
    keys = np.array([1, 257, 2, 513], dtype=np.uint32)
    got = _run(gw.GroupBy(device, (K, gw.u32("j")), key_bits=(8, 8), rows=gw.count), device, k=keys, j=keys)
    assert got["output_keys_0"].tolist() == [1, 2]
    assert got["rows"].tolist() == [3, 1]


@pytest.mark.slow
def test_columns_of_8_bytes(device, rng):
    keys = rng.integers(-3, 3, 2500) << 33
    x, y = (rng.integers(-(2**40), 2**40, 2500) for _ in range(2))
    found, parts = np.unique(keys), [np.flatnonzero(keys == k) for k in np.unique(keys)]
    got = _run(gw.GroupBy(device, "i64", s=("i64", "sum")), device, keys=keys, s_items=x)
    assert_same(got["output_keys"], found)
    assert got["s"].tolist() == [x[p].sum() for p in parts]
    two = gw.GroupBy(device, "i64", s=("i64", "sum"), m=("i64", gw.Max), rows=gw.count)
    got = _run(two, device, keys=keys, s_items=x, m_items=y)
    assert got["s"].tolist() == [x[p].sum() for p in parts]
    assert got["m"].tolist() == [y[p].max() for p in parts]
    assert got["rows"].tolist() == [p.size for p in parts]


@pytest.mark.slow
def test_own_operators(device, rng):
    keys, x = rng.integers(0, 9, 999).astype(np.uint32), rng.integers(0, 99, 999).astype(np.float32)
    larger = gw.BinOp.of("larger", lambda a, b: gw.where(a > b, a, b), identity=-np.inf)
    groups = gw.GroupBy(device, K, m=(X, larger), best=(gw.struct(value=X, index=gw.index), gw.ArgMax))
    got = _run(groups, device, k=keys, x=x)
    parts = [np.flatnonzero(keys == k) for k in np.unique(keys)]
    assert got["m"].tolist() == [x[p].max() for p in parts]
    assert got["best"]["index"].tolist() == [p[x[p].argmax()] for p in parts]


@pytest.mark.slow
def test_the_number_of_rows_may_lie_on_the_gpu(device, rng):
    keys, x = rng.integers(0, 9, 9000).astype(np.uint32), rng.integers(0, 99, 9000).astype(np.float32)
    on_gpu = gw.asarray(keys, device), gw.asarray(x, device)
    groups = gw.GroupBy(device, K, total=(X, gw.Add), rows=gw.count)
    for rows in (9000, 0, 4500, 1, 20000):
        n = gw.asarray(np.array([rows], dtype=np.uint32), device)
        run = groups.execute(k=on_gpu[0], x=on_gpu[1], n=n)
        used = slice(0, rows)
        found = np.unique(keys[used])
        assert run.outputs["output_keys"].to_numpy().tolist() == found.tolist()
        assert run.outputs["total"].to_numpy().tolist() == [x[used][keys[used] == k].sum() for k in found]


@pytest.mark.slow
def test_a_chain_of_counted_arrays_reads_nothing(device, rng, monkeypatch):
    x = rng.integers(0, 100, 3000).astype(np.uint32)
    kept = gw.compress(gw.asarray(x, device) > 50, gw.asarray(x, device))
    monkeypatch.setattr(gw.Array, "to_numpy", lambda *_: pytest.fail("read"))
    groups = gw.group_by(kept & 7, rows=gw.count, total=(kept, gw.Add))
    monkeypatch.undo()
    y = x[x > 50]
    assert groups.keys.to_numpy().tolist() == list(range(8))
    assert groups.rows.to_numpy().tolist() == np.bincount(y & 7).tolist()
    assert groups.total.to_numpy().tolist() == np.bincount(y & 7, y).tolist()


def test_views_at_odd_offsets(device, rng):
    keys, x = rng.integers(0, 5, 80).astype(np.uint32), rng.integers(0, 9, 80).astype(np.float32)
    k, y = gw.asarray(keys, device)[3:], gw.asarray(x, device)[1:-2]
    out = gw.full(90, 7.0, "f32", device)
    run = gw.GroupBy(device, K, total=(X, gw.Add)).execute(k=k, x=y, total=out[5:82])
    assert run.outputs["total"].to_numpy().tolist() == np.bincount(keys[3:], x[1:-2]).tolist()
    assert set(out.to_numpy()[:5]) == set(out.to_numpy()[10:]) == {7.0}


def test_groups_that_do_not_fit_are_counted(device):
    keys = np.arange(600, dtype=np.uint32) % 40
    run = gw.GroupBy(device, K, size=10, rows=gw.count, mean=(K, "mean")).execute(k=gw.asarray(keys, device))
    assert run.outputs["count"].to_numpy().tolist() == [40]
    assert run.outputs["output_keys"].to_numpy().tolist() == list(range(10))
    # A GPU's division may round twice.
    np.testing.assert_allclose(run.outputs["mean"].to_numpy(), np.arange(10), rtol=1e-6)


@pytest.mark.slow
def test_few_bindings_make_more_reductions(device, rng):
    """With the eight that WebGPU promises."""
    limits = {**gw.capabilities(device).limits, "max-storage-buffers-per-shader-stage": 8}
    capabilities = replace(gw.capabilities(device), limits=limits)
    arrays = {
        "k": rng.integers(0, 9, 900).astype(np.uint32), "z": rng.integers(-2, 2, 900).astype(np.float32),
        "x": rng.integers(0, 9, 900).astype(np.float32),
    }  # fmt: skip
    z = gw.f32("z")
    many = {"a": (X, "mean"), "b": (X, "max"), "c": (z, "mean"), "d": (X, "sum"), "e": (z, "min"), "f": (z, "last")}
    for keys, aggregates in (((K, z), {"mean": (X, "mean"), "rows": gw.count}), (K, many)):
        few = gw.GroupBy(device, keys, aggregates, capabilities=capabilities)
        groups = gw.GroupBy(device, keys, aggregates)
        assert len(few.spec.passes) > len(groups.spec.passes)
        expected = few.reference(**arrays)
        for primitive in (few, groups):
            for got, want in zip(_run(primitive, device, **arrays).values(), expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_components_give_one_row_each(device, rng):
    points = rng.random((777, 3)).astype(np.float32)
    p = gw.f32("p", components=3)
    groups = gw.GroupBy(device, gw.u32(p.x * 4.0), key_bits=2, x=(p.x, "mean"), y=(p.y, "mean"), z=(p.z, "mean"))
    run = groups.execute(p=gw.asarray(points, device))
    assert run.outputs["x"].size == 777
    cells = (points[:, 0] * 4).astype(int)
    for k, name in enumerate("xyz"):
        expected = [points[cells == cell, k].mean() for cell in range(4)]
        np.testing.assert_allclose(run.outputs[name].to_numpy(), expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["lookback", "reduce_then_scan"])
def test_trials_and_repeated_calls_give_one_result(device, rng, monkeypatch, strategy):
    monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", strategy)
    keys, x = rng.integers(0, 500, 20000).astype(np.uint32), rng.integers(0, 99, 20000).astype(np.float32)
    groups = gw.GroupBy(device, K, total=(X, gw.Add), mean=(X, "mean"))
    arrays = {"k": gw.asarray(keys, device), "x": gw.asarray(x, device)}
    expected = np.bincount(keys, x)
    for trials in (3, 1, 1):
        run = groups.execute(**arrays, trials=trials)
        assert run.outputs["total"].to_numpy().tolist() == expected.tolist()


@pytest.mark.slow
def test_a_deterministic_sum_is_that_of_reduce_by_key(device, rng):
    keys, x = rng.integers(0, 5, 4000).astype(np.uint32), rng.normal(size=4000).astype(np.float32)
    got = gw.group_by(keys, total=(x, gw.Add), device=device, deterministic=True)
    order = np.argsort(keys, kind="stable")
    expected = gw.reduce_by_key(keys[order], x[order], deterministic=True, device=device)
    assert_same(got.total, expected.values)


@pytest.mark.slow
def test_the_function_against_pandas(device, rng):
    pandas = pytest.importorskip("pandas")
    n = 4000
    table = {
        "city": rng.integers(-3, 20, n), "kind": rng.integers(0, 3, n).astype(np.uint8),
        "v": rng.normal(size=n).astype(np.float32), "w": rng.integers(-(10**12), 10**12, n), "b": rng.random(n) < 0.01,
    }  # fmt: skip
    v, w, b = (table[name] for name in "vwb")
    groups = gw.group_by(
        {name: table[name] for name in ("city", "kind")}, device=device,
        total=(v, gw.sum), mean=(v, gw.mean), rows=gw.count, big=(w, "sum"), average=(w, "mean"), first=(w, "first"),
        last=(w, "last"), some=(b, "any"), every=(w, "all"), spread=(v, "std", 1),
    )  # fmt: skip
    expected = pandas.DataFrame(table).groupby(["city", "kind"]).agg(
        total=("v", "sum"), mean=("v", "mean"), rows=("v", "size"), big=("w", "sum"), average=("w", "mean"),
        first=("w", "first"), last=("w", "last"), some=("b", "any"), every=("w", "all"), spread=("v", "std"),
    ).reset_index()  # fmt: skip
    got = groups.to_pandas()
    assert list(got.columns) == list(expected.columns)
    for name in expected:
        if name in ("total", "mean", "spread"):
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-3, atol=1e-5)
        else:
            assert got[name].tolist() == expected[name].tolist(), name
    assert got["kind"].dtype == np.uint8
    polars = pytest.importorskip("polars")
    assert groups.to_polars().equals(polars.DataFrame(groups.to_numpy()))


@pytest.mark.parametrize("dtype", ["<i8", ">i8", ">u2", ">f4"])
def test_columns_in_another_order_of_bytes(device, dtype):
    keys, items = np.array([3, 1, 3], dtype), np.array([1, 2, 4], dtype)
    found = gw.group_by(keys, total=(items, "sum"), first=(items, "first"), device=device)
    assert found.keys.dtype == np.dtype(dtype).newbyteorder("=")
    assert (found.keys.tolist(), found.total.tolist(), found.first.tolist()) == ([1, 3], [2, 5], [2, 1])


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_means_of_large_integers_do_not_wrap(device, rng, dtype):
    limits = np.iinfo(dtype)
    keys = np.arange(60) // 12
    items = rng.integers(limits.min, limits.max, 60, dtype=dtype, endpoint=True)
    items[:12], items[12:24], items[24:36] = limits.max, limits.min, np.arange(12)
    expected = [np.mean([int(item) for item in items[keys == key]]) for key in range(5)]
    few = items // items.size
    found = gw.group_by(
        keys, mean=(items, "mean"), low=(items, "min"), mean_rows_=(few, "sum"), mean_high_=(few, "max"), device=device
    )
    assert found["mean_rows_"].tolist() == [few[keys == key].sum() for key in range(5)]
    assert found["mean_high_"].tolist() == [few[keys == key].max() for key in range(5)]
    assert found.mean.dtype == np.float64
    np.testing.assert_allclose(found.mean, expected, rtol=1e-14)
    assert found.low.tolist() == [items[keys == key].min() for key in range(5)]


def test_keys_that_are_a_list_of_numbers_are_one_column(device):
    groups = gw.group_by([3, 1, 3], x=([1, 2, 4], "sum"), n=gw.count, count=gw.count, device=device)
    assert groups.keys.tolist() == [1, 3]
    assert groups.x.tolist() == [2, 5]
    assert groups["n"].tolist() == groups["count"].tolist() == [1, 2]


def test_optional_packages_are_named(device, monkeypatch):
    groups = gw.group_by([1], n=gw.count, device=device)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_pandas\(\) needs pandas.*pip install pandas"):
        groups.to_pandas()


KEYS = np.arange(4, dtype=np.uint32)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: gw.group_by(KEYS), ArgumentError, "needs an aggregate"),
        (lambda: gw.group_by(KEYS, x=KEYS), ArgumentError, r"must be \(x, op\)"),
        (lambda: gw.group_by(KEYS, x=(KEYS, "median")), ArgumentError, "known are sum"),
        (lambda: gw.group_by(KEYS, x=(KEYS, "sum", 1)), ArgumentError, "the correction of var"),
        (lambda: gw.group_by(KEYS, x=(KEYS[:3], "sum")), LengthError, "key has 4 rows, x has 3 rows"),
        (lambda: gw.group_by(KEYS.reshape(2, 2), x=gw.count), ArgumentError, "one dimension"),
        (lambda: gw.group_by((KEYS, KEYS), key_bits=3, x=gw.count), ArgumentError, "2 columns"),
        (lambda: gw.group_by(KEYS, key_bits=33, x=gw.count), ArgumentError, "key_bits=33"),
        (lambda: gw.group_by({"x": KEYS}, x=gw.count), ArgumentError, "both called 'x'"),
        (lambda: gw.group_by((KEYS - 9,) * 3, x=gw.count), ArgumentError, "32 \\+ 32 \\+ 32 = 96 bits"),
        (lambda: gw.group_by((KEYS, KEYS + 2.0**60), x=gw.count), DatatypeError, "cannot be one of several"),
        (lambda: gw.group_by(KEYS, x=(KEYS * 1j, "sum")), DatatypeError, "complex"),
        (lambda: gw.group_by(KEYS, x=(KEYS.astype(np.int64), "var")), DatatypeError, "astype"),
        (lambda: gw.GroupBy(gw.default_device(), K, k=(X, "sum")), ArgumentError, "leaf cannot be called 'k'"),
        (lambda: gw.group_by(KEYS, x=(gw.f32("y"), "sum")), ArgumentError, "no Arrays"),
    ],
)
def test_wrong_calls_say_what_to_do(call, error, match):
    with pytest.raises(error, match=match):
        call()
