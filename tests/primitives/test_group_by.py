"""GroupBy and `group_by`: against numpy, one group at a time, and against pandas."""

from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.backend.device_state import state_of
from gridwise_py.errors import ArgumentError, DatatypeError, LengthError
from gridwise_py.functions import group_aggregates, group_columns
from helpers.cases import FULL

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


def test_what_is_sorted_along(device):
    """Nothing, one or two words of a row; the positions where aggregates need more."""
    y, z = gw.i32("y"), gw.f32("z")
    lengths = {"k": 10000, "x": 10000, "y": 10000, "z": 10000}

    def along(**aggregates):
        groups = gw.GroupBy(device, K, **aggregates)
        given = {name: lengths[name] for name in groups.signature.inputs}
        outputs = {name: groups.signature.output_length(name, given) for name in groups.signature.outputs}
        plan = groups.plan(gw.Layout.separate(**given, **outputs))
        assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")
        return plan.parameters["sorted_along"]

    assert along(rows=gw.count) == "nothing"
    assert along(a=(X, gw.Add), b=(X, gw.Max), rows=gw.count) == "values"
    assert along(a=(X, gw.Add), b=(y, gw.Max)) == "values"
    assert along(a=(X, gw.Add), b=(y, gw.Max), c=(z, gw.Min)) == "positions"


@pytest.mark.parametrize("n", [1, 300])
def test_columns_of_several_expressions_move_with_their_rows(device, rng, n):
    keys = rng.integers(0, 19, n).astype(np.uint32)
    x, z = (rng.integers(0, 9, n).astype(np.float32) for _ in "xz")
    y = rng.integers(-9, 9, n).astype(np.int32)
    Y, Z = gw.i32("y"), gw.f32("z")
    many = gw.GroupBy(device, K, a=(X, "mean"), b=(Y, "mean"), c=(Z + X, "max"), d=(gw.index, gw.Min), rows=gw.count)
    parts = [np.flatnonzero(keys == k) for k in np.unique(keys)]
    got = _run(gw.GroupBy(device, K, a=(X * 2.0, gw.Add), b=(Y, gw.Min)), device, k=keys, x=x, y=y)
    assert got["a"].tolist() == [2 * x[p].sum() for p in parts]
    assert got["b"].tolist() == [y[p].min() for p in parts]
    got = _run(many, device, k=keys, x=x, y=y, z=z)
    assert got["output_keys"].tolist() == np.unique(keys).tolist()
    np.testing.assert_allclose(got["a"], [x[p].mean() for p in parts], rtol=1e-6)
    np.testing.assert_allclose(got["b"], [y[p].mean() for p in parts], rtol=1e-6, atol=1e-6)
    assert got["c"].tolist() == [(x[p] + z[p]).max() for p in parts]
    assert got["d"].tolist() == [p.min() for p in parts]
    assert got["rows"].tolist() == [p.size for p in parts]


def test_three_columns_across_the_words_of_a_code(device, rng):
    """The middle column lies in both words; bits above those given do not count."""
    few = 1, 0x30000003, 0x20001
    columns = [rng.integers(0, 2**32, 2000, np.uint32) & (most | ~(2**bits - 1) & (2**32 - 1))
               for most, bits in zip(few, (1, 30, 18), strict=True)]  # fmt: skip
    leaves = tuple(gw.u32(name) for name in "abc")
    group = gw.GroupBy(device, leaves, key_bits=(1, 30, 18), rows=gw.count)
    got = _run(group, device, **dict(zip("abc", columns, strict=True)))
    kept = np.stack([column & most for column, most in zip(columns, few, strict=True)], 1)
    found, rows = _groups(kept, columns[0], len)
    for k in range(3):
        assert got[f"output_keys_{k}"].tolist() == found[:, k].tolist()
    assert got["rows"].tolist() == rows


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
    group = gw.GroupBy(device, K, size=10, total=(X, gw.Add))
    run = group.execute(k=gw.asarray(keys, device), x=gw.asarray(keys.astype(np.float32), device))
    assert run.outputs["count"].to_numpy().tolist() == [40]
    assert run.outputs["output_keys"].to_numpy().tolist() == list(range(10))
    assert run.outputs["total"].to_numpy().tolist() == [15 * k for k in range(10)]


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


def _keys_of_every_kind(pandas, rng, n):
    number = rng.integers(0, 5, n)
    words = np.array(["Oslo", "Bonn", "Rome", "Bern", "Paris"])
    with_none = np.where(number == 3, None, words[number].astype(object))
    dates = np.array(["2024-01-05", "2023-02-01", "NaT", "2024-01-04", "2020-01-01"], "M8[ns]")
    colours = pandas.Categorical.from_codes(np.where(number == 4, -1, number), ["red", "lime", "blue", "aqua"])
    floats = np.array([np.nan, -0.0, 0.0, 1e300, -np.inf])[number]
    with np.errstate(over="ignore"):
        singles = floats.astype(np.float32)
    singles[::2][np.isnan(singles[::2])] = np.uint32(0xFFC00001).view(np.float32)  # another NaN, and yet the same key
    yield singles
    yield from (number - 2, number.tolist(), floats, words[number], with_none, dates[number], colours)
    yield pandas.Series(with_none, dtype="str")
    yield pandas.Series(number, dtype="Int64").where(number != 2)


@pytest.mark.needs("module:pandas")
def test_keys_of_every_kind_against_pandas(device, rng):
    import pandas

    for n in (0, 200):
        x, year = rng.integers(0, 100, n).astype(np.int32), rng.integers(2020, 2023, n)
        for key in _keys_of_every_kind(pandas, rng, n):
            frame = pandas.DataFrame({"key": key, "year": year})
            for dropna in (False, True):
                expected = frame.assign(x=x).groupby("key", dropna=dropna, observed=True)["x"].agg(["sum", "size"])
                found = gw.group_by(key, {"sum": (x, "sum"), "size": gw.count}, dropna=dropna, device=device)
                assert found.count.tolist() == [len(expected)]
                assert found.sum.tolist() == expected["sum"].tolist()
                assert found["size"].tolist() == expected["size"].tolist()
                assert _labels(pandas, found.keys) == _labels(pandas, expected.index)
                two = frame.groupby(["year", "key"], dropna=dropna, observed=True).size().reset_index()
                found = gw.group_by(frame, ["year", "key"], n="size", dropna=dropna, device=device)
                assert list(found.keys) == ["year", "key"]
                assert found.year.tolist() == two["year"].tolist()
                assert found.n.tolist() == two[0].tolist()
                assert _labels(pandas, found.key) == _labels(pandas, two["key"])


def _labels(pandas, keys):
    return [None if pandas.isna(key) else key for key in pandas.Series(keys).astype(object)]


@pytest.mark.needs("module:polars")
def test_tables_of_polars_and_of_columns(device):
    import polars

    columns = {"city": ["Rome", "Oslo", "Rome", None], "price": np.float32([3, 5, 4, 1])}
    for table in (polars.DataFrame(columns), columns):
        groups = gw.group_by(table, "city", {"mean": ("price", "mean"), "price": "max"}, device=device)
        assert groups["city"].tolist()[:2] == ["Oslo", "Rome"]
        assert (groups.mean.tolist(), groups.price.tolist()) == ([5, 3.5, 1], [5, 4, 1])
    assert groups.to_polars()["mean"].to_list() == groups.to_pandas()["mean"].tolist() == [5, 3.5, 1]
    assert "<td>Rome</td><td>3.5</td>" in groups._repr_html_()
    assert gw.group_by(groups, "city", n="size", device=device).n.tolist() == [1, 1, 1]


def test_columns_on_both_sides(device):
    """Results stay on the GPU: what no Array holds is refused."""
    key, x = gw.asarray(np.uint32([2, 1, 2]), device), np.int64([1, 2, 4])
    groups = gw.group_by(key, total=(x, "sum"), n=(x, "count"))
    assert groups.total.tolist() == [2, 5]
    assert groups.n.tolist() == [1, 2]
    assert "on the GPU" in groups._repr_html_()
    for wrong in (["a", "b", "c"], np.array([1, 2, 3], "M8[D]")):
        with pytest.raises(DatatypeError, match="no Array holds"):
            gw.group_by(key, wrong=(wrong, "first"))


def test_several_keys_of_any_name_of_which_one_is_aggregated(device):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"c d": [1.5, 0.5, 1.5, 0.5], "class": [2, 1, 2, 1], "x": [2**60, 5, 2**60, 6]})
    found = gw.group_by(frame, ["c d", "class", "x"], least=("c d", "min"), n=("x", "max"), device=device)
    wanted = frame.groupby(["c d", "class", "x"]).agg(least=("c d", "min"), n=("x", "max")).reset_index()
    for name in wanted:
        assert_same(found[name], wanted[name])


@pytest.mark.parametrize("how", ["mean", "var", "std", gw.Xor])
@pytest.mark.filterwarnings("ignore")
def test_missing_items_that_are_not_left_out_make_results_missing(device, how):
    pandas = pytest.importorskip("pandas")
    items = pandas.array([1, 2, None, 4, 5, 7], "UInt8")
    found = gw.group_by([1, 1, 2, 2, 3, 3], r=(items, how), skipna=False, device=device).r
    wanted = {"mean": [1.5, 6], "var": [0.25, 1], "std": [0.5, 1], gw.Xor: [3, 2]}[how]
    assert pandas.isna(found[1])
    assert_same(np.asarray(found)[[0, 2]].astype(float), wanted)
    left_out = gw.group_by([1, 1, 2, 2, 3, 3], r=(items, how), skipna=True, device=device).r
    assert left_out.dtype == (np.uint8 if how == gw.Xor else np.float64)


def test_dates_in_another_unit_or_order_of_bytes(device):
    dates = np.array([40, 8, 24], ">M8[25s]")
    found = gw.group_by([1, 1, 1], low=(dates, "min"), first=(dates, "first"), std=(dates, "std"), device=device)
    assert (found.low[0], found.first[0]) == (dates[1], dates[0])
    assert found.std.dtype == np.dtype("m8[25s]")
    assert found.std.astype(int).tolist() == [round(np.std([40, 8, 24]))]


@pytest.mark.parametrize("features", [None, []])
def test_distinct_floats_of_eight_bytes(device, features):
    """Compared by their bits: −0 is 0, and no NaN counts, also where the device computes nothing with float64."""
    device = device if features is None else device.adapter.request_device_sync(required_features=features)
    x = np.array([0.0, -0.0, np.nan, 1e300, 5.0, 5.0, np.nan])
    keys = np.uint32([1, 1, 1, 1, 2, 2, 3])
    assert gw.group_by(gw.asarray(keys, device), n=(gw.asarray(x, device), "nunique")).n.tolist() == [2, 1, 0]
    asked = {"n": (x, "nunique"), "low": (x, "quantile", 0.25), "m": (x, "median")}
    found = gw.group_by(keys, aggregates=asked, skipna=True, device=device)
    assert found.n.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(found.m, [0, 5, np.nan])
    np.testing.assert_array_equal(found.low, [0, 5, np.nan])


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", pytest.param("f8", marks=pytest.mark.needs("float64")), "?"])
def test_items_in_order_and_of_eight_bytes_on_the_gpu(device, rng, dtype):
    pandas = pytest.importorskip("pandas")
    keys, x = rng.integers(0, 9, 300).astype(np.uint32), rng.integers(0, 2 if dtype == "?" else 7, 300).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(x.size) < 0.2] = np.nan
    hows = ("median", "nunique", "count", "any", "all", "first", "last")[: 5 if dtype == "f8" else 7]
    asked = {how: (gw.asarray(x, device), how) for how in hows} | {"q": (gw.asarray(x, device), "quantile", 0.3)}
    found = gw.group_by(gw.asarray(keys, device), aggregates=asked, skipna=True, sort=False)
    rows = pandas.Series(x.astype(float) if dtype == "?" else x).groupby(keys, sort=False)
    assert found.keys.tolist() == pandas.unique(keys).tolist()
    for name in asked:
        assert found[name].count is not None
        wanted = rows.quantile(0.3) if name == "q" else getattr(rows, name)()
        np.testing.assert_allclose(found[name].to_numpy().astype(float), wanted.astype(float), rtol=1e-6)
    if x.dtype.kind == "f":
        strict = gw.group_by(gw.asarray(keys, device), m=(gw.asarray(x, device), "median"))
        assert np.isnan(strict.m.to_numpy()).tolist() == [bool(np.isnan(x[keys == key]).any()) for key in range(9)]


@pytest.mark.parametrize("dtype", [">i8", pytest.param(">f4", marks=pytest.mark.slow)])
def test_columns_in_another_order_of_bytes(device, dtype):
    keys, items = np.array([3, 1, 3], dtype), np.array([1, 2, 4], dtype)
    found = gw.group_by(keys, total=(items, "sum"), first=(items, "first"), device=device)
    assert found.keys.dtype == np.dtype(dtype).newbyteorder("=")
    assert (found.keys.tolist(), found.total.tolist(), found.first.tolist()) == ([1, 3], [2, 5], [2, 1])


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("i4", -50, 50),
        ("i4", -(2**31), 2**31),
        ("u4", 0, 2**32),
        ("i8", -(2**40), 2**40),
        ("i2", 0, 2**15),
        ("?", 0, 2),
    ],
)
@pytest.mark.parametrize("key_dtype", ["u4", "i4", "i8", "u2"])
def test_keys_and_values_whose_ends_a_gpu_finds(device, rng, monkeypatch, key_dtype, dtype, low, high):
    monkeypatch.setattr(group_columns, "_least_bytes_on_gpu", lambda device: 0)
    keys = rng.integers(0 if key_dtype[0] == "u" else -7, 30, 5000).astype(key_dtype)
    x = rng.integers(low, high, keys.size).astype(dtype)
    found = gw.group_by(keys, total=(x, "sum"), mean=(x, "mean"), device=device)
    assert_same(found.keys, np.unique(keys))
    wanted = [x[keys == key] for key in found.keys]
    assert_same(found.total, np.array([each.sum() for each in wanted]))
    np.testing.assert_allclose(found.mean, [each.mean() for each in wanted], rtol=1e-12)


def test_what_a_gpu_finds_ends_for_is_checked_before_and_leaves_nothing(device, monkeypatch):
    monkeypatch.setattr(group_columns, "_least_bytes_on_gpu", lambda device: 0)
    keys = np.arange(9000, dtype=np.uint32) % 7
    before = state_of(device).uses
    for wrong in (
        {"key_bits": 2}, {"key_bits": 0}, {"key_bits": "a"}, {"size": -1}, {"x": (keys.astype(np.float64), "an")},
    ):  # fmt: skip
        with pytest.raises((ArgumentError, DatatypeError)):
            gw.group_by(keys, **{"n": gw.count, **wrong}, device=device)
    with pytest.raises(ArgumentError, match="key_bits"):
        gw.group_by((keys, keys), n=gw.count, key_bits=(None, 2), device=device)
    assert state_of(device).uses == before
    # A sample of the first items says that sums fit, the others do not.
    items = np.zeros(keys.size, np.int32)
    items[-7:] = 2**31 - 1
    held, results = [], group_aggregates.Aggregates.finished

    def noted(call, *arguments):
        columns = [column for column in call._columns.values.values() if type(column.items) is np.ndarray]
        held.append(
            [each.items.dtype for column in columns for each in {column, column.summable} if "array" in vars(each)]
        )
        return results(call, *arguments)

    monkeypatch.setattr(group_aggregates.Aggregates, "finished", noted)
    gw.group_by(keys, total=(items, "sum"), device=device)
    assert held == [[np.dtype(np.int64)]], "not also the items of 4 bytes, which were uploaded for their ends"
    found = gw.group_by(keys, total=(items, "sum"), mean=(items, "mean"), low=(items, "min"), device=device)
    assert found.total.tolist() == [2**31 - 1] * 7
    np.testing.assert_allclose(found.mean, found.total / np.bincount(keys))
    assert not found.low.any()
    on_gpu = gw.group_by(keys, total=(gw.asarray(items, device), "sum"), device=device)
    assert_same(on_gpu.total.to_numpy()[:7], found.total.astype(np.int32))


@pytest.mark.parametrize("dtype", [np.int64, pytest.param(np.uint64, marks=pytest.mark.slow)])
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


def test_optional_packages_are_named(device, monkeypatch):
    groups = gw.group_by([1], n=gw.count, device=device)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_pandas\(\) needs pandas.*pip install pandas"):
        groups.to_pandas()


KEYS = np.arange(4, dtype=np.uint32)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: gw.group_by((), x=gw.count), ArgumentError, "empty tuple"),
        (lambda: gw.group_by(KEYS), ArgumentError, "needs an aggregate"),
        (lambda: gw.group_by(KEYS, x=KEYS), ArgumentError, r"an aggregate is \(x, op\), such as x=\(x, 'mean'\)"),
        (lambda: gw.group_by(KEYS, x=(KEYS, "mode")), ArgumentError, "known are sum"),
        (lambda: gw.group_by(KEYS, x=(KEYS, "quantile", 2)), ArgumentError, "from 0 to 1"),
        (lambda: gw.GroupBy(None, K, x=(X, "median"), capabilities=FULL), ArgumentError, r"gw.group_by\(\) computes"),
        (lambda: gw.group_by(KEYS, x=(KEYS, "sum", 1)), ArgumentError, "the correction of var"),
        (lambda: gw.group_by(KEYS, x=(KEYS[:3], "sum")), LengthError, "key has 4 rows, x has 3 rows"),
        (lambda: gw.group_by(KEYS.reshape(2, 2), x=gw.count), ArgumentError, "one dimension"),
        (lambda: gw.group_by((KEYS, KEYS), key_bits=3, x=gw.count), ArgumentError, "2 columns"),
        (lambda: gw.group_by(KEYS, key_bits=33, x=gw.count), ArgumentError, "key_bits=33"),
        (lambda: gw.group_by({"x": KEYS}, x=gw.count), ArgumentError, "both called 'x'"),
        (lambda: gw.group_by(KEYS, key_bits=1, x=gw.count), ArgumentError, "the key 3, but key_bits=1"),
        (lambda: gw.group_by(KEYS, x="mean"), ArgumentError, r"such as x=\(x, 'mean'\)"),
        (lambda: gw.group_by(KEYS, keys=gw.count), ArgumentError, "would hide what groups.keys is"),
        (lambda: gw.group_by(KEYS, count=gw.count), ArgumentError, r"groups\['count'\]"),
        (lambda: gw.group_by(gw.full(1, 2, "u32"), n="size", observed=False), ArgumentError, "on the host"),
        (lambda: gw.group_by(KEYS, size=gw.count), ArgumentError, "in a dict"),
        (lambda: gw.group_by(KEYS, KEYS), ArgumentError, r"write gw\.group_by\(keys, sum=\(x, 'sum'\)\)"),
        (lambda: gw.group_by(KEYS, KEYS, "max"), ArgumentError, r"write gw\.group_by\(keys, max=\(x, 'max'\)\)"),
        (lambda: gw.group_by(KEYS, {"a": gw.count}, 20), ArgumentError, "no argument by position; name it"),
        (lambda: gw.group_by(KEYS, {"a": gw.count}, KEYS), ArgumentError, "no argument by position; name it"),
        (lambda: gw.group_by(KEYS, {}, {}, {}), ArgumentError, "takes 3 arguments by position"),
        (lambda: gw.group_by({"k": KEYS}, "j", n="size"), ArgumentError, "no column 'j'; it has k"),
        (lambda: gw.group_by({"k": KEYS}, "k", k=["sum"]), ArgumentError, r"k_sum=\('k', 'sum'\)"),
        (lambda: gw.group_by(KEYS, x=(["a", "b", "c", "d"], "sum")), DatatypeError, "or make it a key"),
        (lambda: gw.group_by(np.array([1, "a"], object), n="size"), ArgumentError, "cannot be put in order"),
        (
            lambda: gw.group_by(["a"], x=(gw.full(1, 2, "u32"), "sum")),
            DatatypeError,
            r"np\.unique\(key, return_inverse",
        ),
        (lambda: gw.group_by(gw.full(1, 2, "u32"), n="size", dropna=True), ArgumentError, r"gw\.compress"),
        (
            lambda: gw.GroupBy(None, K, x=("f64", "sum"), skipna=True, capabilities=FULL),
            DatatypeError,
            "skipna=True is for",
        ),
        (lambda: gw.group_by((KEYS - 9,) * 3, x=gw.count), ArgumentError, "32 \\+ 32 \\+ 32 = 96 bits"),
        (
            lambda: gw.GroupBy(None, (K, "f64"), x=gw.count, capabilities=FULL),
            DatatypeError,
            "cannot be one of several",
        ),
        (lambda: gw.group_by(KEYS, x=(KEYS * 1j, "sum")), DatatypeError, "complex"),
        pytest.param(
            lambda: gw.group_by(K, x=(gw.i32(K), "var")), ArgumentError, "no Arrays", marks=pytest.mark.needs("float64")
        ),
        (lambda: gw.GroupBy(gw.default_device(), K, x=(gw.i32(K), "var")), DatatypeError, r"gw.f32\(…\)"),
        (lambda: gw.GroupBy(gw.default_device(), K, k=(X, "sum")), ArgumentError, "leaf cannot be called 'k'"),
        (lambda: gw.group_by(KEYS, x=(gw.f32("y"), "sum")), ArgumentError, "no Arrays"),
    ],
)
@pytest.mark.gpu
def test_wrong_calls_say_what_to_do(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.needs("module:pandas")
def test_columns_may_be_called_by_numbers_and_tuples():
    import pandas as pd

    for names in ([0, 1], [("a", "x"), ("a", "y")]):
        frame = pd.DataFrame([[1, 10], [1, 20], [2, 30]], columns=pd.Index(names, tupleize_cols=True))
        assert gw.group_by(frame, names[0], s=(names[1], "sum")).s.tolist() == [30, 30]
        assert list(gw.group_by(frame, names[:1], s=(names[1], "sum")).keys) == names[:1]


@pytest.mark.needs("module:polars", "module:pyarrow")
def test_ordered_labels_of_other_libraries_keep_their_order():
    import polars as pl
    import pyarrow as pa

    levels, codes = ["low", "mid", "high"], [0, 2, None, 1, 0]
    enum = pl.Series([None if code is None else levels[code] for code in codes], dtype=pl.Enum(levels))
    arrow = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(levels), ordered=True)
    for keys in (enum, arrow, pa.chunked_array([arrow[:2], arrow[2:]])):
        groups = gw.group_by(keys, n=gw.count)
        assert groups.keys.tolist() == [*levels, None]
        assert groups.n.tolist() == [2, 1, 1, 1]
