"""Primitives on dask arrays against numpy on the whole array, by Dask's scheduler of one thread: no cluster."""

import numpy as np
import pytest

import gridwise_py as gw
from helpers import needs
from helpers.remedies import codes_in

with needs.modules("distributed", "pandas", "pyarrow") as modules_are_needed:
    import dask
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    import gridwise_py.dask as gwd

pytestmark = [pytest.mark.gpu, modules_are_needed]


def _slow(*values):
    """Values of a parameter for `make test-all`: others go the same way."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


LENGTHS = (0, 700, 1, 3000, 0, 299, 1000)
SIZE = sum(LENGTHS)


@pytest.fixture(autouse=True)
def one_thread():
    """Dask's own scheduler of one thread, whose errors are those of the task."""
    with dask.config.set(scheduler="sync"):
        yield


def _items(dtype, few=False):
    rng = np.random.default_rng(11)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        items = rng.standard_normal(SIZE).astype(dtype)
        for step, value in ((7, np.nan), (11, -0.0), (13, 0.0), (17, np.inf), (19, -np.inf)):
            items[::step] = value
        return items
    info = np.iinfo(dtype) if dtype.kind != "b" else None
    low, high = (0, 2) if info is None else (0, 9) if few else (info.min, info.max)
    return rng.integers(low, high, SIZE, dtype="i8" if info is None else dtype).astype(dtype)


def _chunked(items):
    return da.from_array(items, chunks=(LENGTHS,))


def _bits(items):
    return np.asarray(items).view(f"u{items.dtype.itemsize}")


def _parts(x):
    return [np.asarray(part) for part in dask.compute(*x.to_delayed().ravel())]


# ---- reductions and scans


@pytest.mark.parametrize("dtype", ["i8", *_slow("u4", "i4", "u1", "?")])
def test_sums_and_products_are_numpys(dtype):
    items = _items(dtype)
    for function, reference in ((gwd.sum, np.sum), (gwd.prod, np.prod), (gwd.min, np.min), (gwd.max, np.max)):
        lazy = function(_chunked(items))
        found = lazy.compute()
        assert (lazy.shape, lazy.dtype, found.dtype) == ((), reference(items).dtype, reference(items).dtype)
        assert found == reference(items)
    assert gwd.reduce(_chunked(items)).compute() == np.sum(items, dtype=items.dtype)
    for wanted in (np.int32, items.dtype):
        found, expected = gwd.sum(_chunked(items), 0, wanted, keepdims=True), np.sum(items, 0, wanted, keepdims=True)
        assert (found.shape, found.dtype) == ((1,), expected.dtype)
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-6)
        np.testing.assert_allclose(
            gwd.cumsum(_chunked(items % 9), dtype=wanted).compute(), np.cumsum(items % 9, dtype=wanted), rtol=1e-6
        )
    np.testing.assert_array_equal(gwd.cumprod(_chunked(items)).compute(), np.cumprod(items))
    with pytest.raises(gw.AxisError, match=r"gwd\.cumsum\(\): axis=1, but x has one dimension"):
        gwd.cumsum(_chunked(items), 1)


def test_float_sums_are_exact_where_the_items_allow_it_and_do_not_depend_on_the_tree_when_deterministic():
    items = np.random.default_rng(2).integers(-99, 99, SIZE).astype("f4")
    for width in (2, 3, 16):
        assert gwd.sum(_chunked(items), split_every=width).compute() == items.sum(dtype="f8")
    rough = np.random.default_rng(2).standard_normal(SIZE).astype("f4")
    exact = float(np.sum(rough, dtype="f8"))
    bound = np.abs(rough).sum(dtype="f8") * 2.0**-24 * 8
    for options in ({}, {"deterministic": True}, {"compensated": True}):
        assert abs(float(gwd.sum(_chunked(rough), **options).compute()) - exact) <= bound, options
    again = [_bits(gwd.sum(_chunked(rough), deterministic=True).compute()) for _ in range(2)]
    assert again[0] == again[1]


def test_float16_sums_pass_its_largest_number_on_the_way():
    items = np.array([60000, 60000, -60000, -60000, 1, 2], "f2")
    x = da.from_array(items, chunks=2)
    assert gwd.sum(x).compute() == gw.sum(items) == 3
    assert gwd.sum(x).compute().dtype == gwd.sum(x[:0]).compute().dtype == np.float16
    for lazy in (gwd.cumsum(x), gwd.to_host(gwd.cumsum(x, keep=True))):
        found = lazy.compute()
        np.testing.assert_array_equal(found, gw.scan(items))
        assert found.dtype == np.float16
    assert gwd.prod(da.from_array(np.array([300, 300, 0.01, 0.01], "f2"), chunks=2)).compute() == np.float16(9)


@pytest.mark.slow
def test_structs_and_complex_numbers_are_reduced_and_scanned():
    dtype = np.dtype([("value", "f4"), ("index", "u4")])
    items = np.zeros(SIZE, dtype)
    items["value"], items["index"] = np.random.default_rng(3).integers(0, 50, SIZE), np.arange(SIZE)
    best = gw.BinOp(
        "best", np.array((-np.inf, 0), dtype)[()], lambda a, b: np.where(a["value"] >= b["value"], a, b),
        "fn combine(a: T, b: T) -> T { if (a.value >= b.value) { return a; } return b; }", commutative=False,
    )  # fmt: skip
    for x in (_chunked(items), gwd.on_gpu(_chunked(items))):
        assert gwd.reduce(x, best).compute() == items[np.argmax(items["value"])]
        np.testing.assert_array_equal(gwd.scan(x, best).compute(), gw.scan(items, best))
    waves = (np.arange(SIZE) % 7 + 1j).astype("c8")
    assert gwd.sum(_chunked(waves)).compute() == waves.sum()
    with pytest.raises(gw.DatatypeError, match="complex64"):
        gwd.sort(_chunked(waves))


#: Composition of maps x → a·x + b over 16 bits each: associative, and it does not commute.
_COMPOSE = gw.BinOp(
    "compose",
    0x10000,
    lambda a, b: (((a >> 16) * (b >> 16)) & 0xFFFF) << 16 | (((a & 0xFFFF) * (b >> 16) + (b & 0xFFFF)) & 0xFFFF),
    """fn combine(a: T, b: T) -> T {
        let factor = ((a >> 16u) * (b >> 16u)) & 0xffffu;
        return (factor << 16u) | (((a & 0xffffu) * (b >> 16u) + (b & 0xffffu)) & 0xffffu);
    }""",
    commutative=False,
)


def test_an_operator_that_does_not_commute_sees_the_chunks_in_order():
    items = _items("u4")
    expected = items.copy()
    for i in range(1, SIZE):
        expected[i] = _COMPOSE.numpy(expected[i - 1], items[i])
    assert expected[-1] != gw.reduce(items[::-1].copy(), _COMPOSE), "the order matters"
    assert gwd.reduce(_chunked(items), _COMPOSE, split_every=2).compute() == expected[-1]
    np.testing.assert_array_equal(gwd.scan(_chunked(items), _COMPOSE).compute(), expected)
    exclusive = np.concatenate([[np.uint32(0x10000)], expected[:-1]])
    np.testing.assert_array_equal(gwd.scan(_chunked(items), _COMPOSE, "exclusive").compute(), exclusive)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["u4", "i8", "?"])
def test_scans_are_numpys(dtype):
    items = _items(dtype)
    found = gwd.cumsum(_chunked(items))
    assert found.dtype == np.cumsum(items).dtype
    assert [part.size for part in _parts(found)] == list(LENGTHS)
    np.testing.assert_array_equal(found.compute(), np.cumsum(items))


def test_scans_of_minima_carry_nan_and_wrap_where_the_dtype_stays():
    floats, integers = _items("f4"), _items("u4")
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(gwd.scan(_chunked(floats), "min").compute(), np.minimum.accumulate(floats))
    wrapped = np.cumsum(integers, dtype="u4")
    np.testing.assert_array_equal(gwd.scan(_chunked(integers)).compute(), wrapped)


def test_no_items():
    empty = da.from_array(np.empty(0, "f4"), chunks=((0, 0),))
    assert gwd.sum(empty).compute() == 0
    assert gwd.prod(empty).compute() == 1
    with pytest.raises(gw.EmptyReductionError):
        gwd.min(empty).compute()
    for found in (gwd.cumsum(empty), gwd.sort(empty), gwd.argsort(empty), gwd.unique(empty)):
        assert found.compute().size == 0
    keys, values = gwd.groupby(empty, empty, "sum").compute()
    assert keys.size == values.size == 0
    np.testing.assert_array_equal(gwd.histogram(empty, 3).compute(), [0, 0, 0])
    other = da.zeros(0, chunks=((0, 0, 0),), dtype="i4")  # as many, in other chunks: nothing is left of a filter
    for keys, values in ((empty, other), (other, empty)):
        assert [each.compute().dtype for each in gwd.sort_pairs(keys, values)] == [keys.dtype, values.dtype]
        assert [each.size for each in gwd.groupby(keys, values, "sum").compute()] == [0, 0]


# ---- sorts


@pytest.mark.parametrize("descending", [True, *_slow(False)])
@pytest.mark.parametrize("dtype", ["f4", *_slow("u4", "f2", "i8", "?")])
def test_sorts_are_stable_and_parts_as_long_as_chunks(dtype, descending):
    items = _items(dtype)
    order = gw.argsort(items, descending=descending)
    if not descending:
        np.testing.assert_array_equal(order, np.argsort(items, kind="stable"))
    found = _parts(gwd.sort(_chunked(items), descending=descending))
    assert [part.size for part in found] == list(LENGTHS)
    np.testing.assert_array_equal(_bits(np.concatenate(found)), _bits(items[order]))
    indices = gwd.argsort(_chunked(items), descending=descending)
    assert indices.dtype == np.uint64
    np.testing.assert_array_equal(indices.compute(), order)


@pytest.mark.slow
def test_pairs_keep_their_order_among_equal_keys():
    keys, values = _items("u1", few=True), np.arange(SIZE, dtype="f4")
    found = dask.compute(*gwd.sort_pairs(_chunked(keys), da.from_array(values, chunks=900)))
    order = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(found[0], keys[order])
    np.testing.assert_array_equal(found[1], values[order])


def test_pieces_of_several_gpus_are_exchanged_once(several_gpus):
    """The keys that cuts are found by are few, and equal keys are on both sides of a cut."""
    for items in (_items("f4"), _items("u1", few=True).astype("f4")):
        for descending in (True, False):
            order = gw.argsort(items, descending=descending)
            found = _parts(gwd.argsort(_chunked(items), descending=descending))
            assert [part.size for part in found] == list(LENGTHS)
            np.testing.assert_array_equal(np.concatenate(found), order)


def test_a_sort_has_a_group_of_parts_per_gpu_and_as_many_as_the_largest_buffer_asks_for(several_gpus, monkeypatch):
    from gridwise_py.dask import collections

    def steps(x):
        names = [key[0] for key in gwd.sort(x).__dask_graph__() if isinstance(key, tuple)]
        return [sum(f"-{step}-" in name for name in names) for step in ("run", "piece", "merge", "part")]

    x = da.zeros(160, chunks=10, dtype="u4")
    assert steps(x) == [16, 48, 3, 16]
    assert steps(da.zeros(20, chunks=10, dtype="u4")) == [2, 4, 2, 2], "no more groups than parts"
    monkeypatch.setattr(collections, "what_gpus_take", lambda ask: (1, 4 * 25))
    assert steps(x) == [16, 128, 8, 16], "two chunks of 40 bytes in a buffer"
    monkeypatch.setattr(collections, "what_gpus_take", lambda ask: (1, 1 << 32))
    assert steps(x) == [16, 0, 1, 16], "one GPU sorts all at once"
    monkeypatch.setattr(collections, "what_gpus_take", lambda ask: (30, 1 << 32))
    with pytest.raises(gw.LimitError, match=r"9000 chunks, of which each gives a piece to 30 groups .*give x\.rechunk"):
        gwd.sort(da.zeros(9000, chunks=1, dtype="u4"))


@pytest.fixture
def several_gpus(monkeypatch):
    """Sorts are built for three GPUs, and a round of the search for cuts takes few keys."""
    from gridwise_py.dask import collections, splitters

    monkeypatch.setattr(collections, "what_gpus_take", lambda ask: (3, 1 << 32))
    monkeypatch.setattr(collections, "_TOGETHER_BYTES", 0)
    monkeypatch.setattr(splitters, "MOST_SAMPLED", 64)


# ---- histograms, groups, the largest, the distinct


def test_histograms_are_numpys():
    floats, integers = _items("f4"), _items("u4")
    finite = floats[np.isfinite(floats)]
    np.testing.assert_array_equal(
        gwd.histogram(da.from_array(finite, chunks=500), 13).compute(), np.histogram(finite, 13)[0]
    )
    tenths = np.linspace(np.float32(0.1), np.float32(0.7), 5, dtype=np.float32)  # on edges of float32
    np.testing.assert_array_equal(
        gwd.histogram(da.from_array(tenths, chunks=3), 4).compute(), np.histogram(tenths, 4)[0]
    )
    for options in ({"bins": 7, "range": (-1.0, 1.5)}, {"bins": [-2.0, -0.0, 0.5, 0.5, 3.0]}):
        found = gwd.histogram(_chunked(floats), **options)
        np.testing.assert_array_equal(found.compute(), np.histogram(floats, **options)[0])
        assert (found.dtype, found.shape) == (np.int64, found.compute().shape)
    edges = np.array([0, 1 << 20, 1 << 31, (1 << 32) - 1], "u4")
    np.testing.assert_array_equal(
        gwd.histogram(_chunked(integers), edges=edges).compute(), np.histogram(integers, edges)[0]
    )
    with pytest.raises(gw.LengthError, match="give a finite range="):
        gwd.histogram(_chunked(floats), 3).compute()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["sum", "min", "max", "count", "mean"])
def test_groups_are_those_of_pandas(how):
    keys, values = _items("u1", few=True), _items("i4")
    found_keys, found = gwd.groupby(_chunked(keys), _chunked(values), how, split_every=2).compute()
    expected = getattr(pd.Series(values.astype("i8")).groupby(keys), how)()
    np.testing.assert_array_equal(found_keys, expected.index)
    np.testing.assert_allclose(found, expected.to_numpy(), rtol=1e-15)
    assert found.dtype == {"min": np.int32, "max": np.int32, "mean": np.float64}.get(how, np.int64)


@pytest.mark.parametrize("dtype", ["i1", *_slow("?", "u2", "f2", "f4", "i8", "u8")])
def test_aggregates_have_the_dtype_of_numpys(dtype):
    """On the GPU small items are aggregated in 32 bits, and sums of 64 bits wrap."""
    keys, values = _items("u1", few=True), _items(dtype)
    values = np.nan_to_num(values, posinf=2, neginf=-2) if values.dtype.kind == "f" else values
    rows = [values[keys == key] for key in np.unique(keys)]
    for how, function in (("sum", np.sum), ("min", np.min)):
        found = gwd.groupby(_chunked(keys), _chunked(values), how).compute()[1]
        expected = np.array([function(row) for row in rows])
        assert found.dtype == expected.dtype, how
        np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "f2" else 1e-5, atol=0.02)
    means = gwd.groupby(_chunked(keys), _chunked(values), "mean").compute()[1]
    assert means.dtype == np.float64
    np.testing.assert_allclose(means, [row.astype("f8").mean() for row in rows], rtol=1e-5, atol=1e-4)


@pytest.mark.slow
def test_too_many_groups_are_refused_with_the_remedy():
    keys = np.arange(SIZE, dtype="u4")
    with pytest.raises(gw.LimitError, match=r"more than max_groups=2000.*give a larger max_groups"):
        gwd.groupby(_chunked(keys), _chunked(keys), "sum", max_groups=2000).compute()


@pytest.mark.parametrize("mode", ["largest", *_slow("smallest")])
def test_the_best_items_of_equal_ones_are_the_first(mode):
    for items in (_items("f4"), _items("u1", few=True)):
        best = gw.top_k(items, 900, mode=mode)
        values, indices = dask.compute(*gwd.top_k(_chunked(items), 900, mode=mode, split_every=2))
        np.testing.assert_array_equal(indices, best.indices)
        np.testing.assert_array_equal(_bits(values), _bits(best.values))
    with pytest.raises(gw.LengthError, match="k=5001, but x has 5000 items"):
        gwd.top_k(_chunked(items), 5001)


@pytest.mark.slow
def test_distinct_items_are_numpys():
    for items in (_items("f4"), _items("i4", few=True)):
        np.testing.assert_array_equal(gwd.unique(_chunked(items), split_every=2).compute(), np.unique(items))


# ---- tables, whose lengths nobody knows


def test_columns_of_tables_whose_lengths_are_not_known():
    table = pd.DataFrame({"key": _items("u4", few=True), "value": np.arange(SIZE, dtype="f4")})
    lazy = dd.from_pandas(table, npartitions=5)
    lazy = lazy[lazy["value"] != 17]
    kept = table[table["value"] != 17]
    keys, values = kept["key"].to_numpy(), kept["value"].to_numpy()
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_values = gwd.sort_pairs(lazy["key"], lazy["value"])
    assert np.isnan(sorted_keys.chunks[0]).all()
    np.testing.assert_array_equal(sorted_keys.compute(), keys[order])
    np.testing.assert_array_equal(sorted_values.compute(), values[order])
    np.testing.assert_array_equal(gwd.argsort(lazy["key"]).compute(), order)
    np.testing.assert_array_equal(gwd.cumsum(lazy["key"]).compute(), np.cumsum(keys))
    assert gwd.max(lazy["value"]).compute() == values.max()
    found = gwd.groupby(lazy["key"], lazy["value"], "count").compute()
    np.testing.assert_array_equal(found, np.unique(keys, return_counts=True))
    np.testing.assert_array_equal(gwd.top_k(lazy["value"], 3)[1].compute(), np.argsort(values)[::-1][:3])
    with pytest.raises(gw.LengthError, match="k=5000, but x has 4999 items"):
        gwd.top_k(lazy["value"], 5000)[0].compute()


@pytest.mark.slow
def test_zarr_and_parquet_are_sources(tmp_path):
    items = _items("f4")
    _chunked(items).rechunk(1000).to_zarr(tmp_path / "items.zarr")
    gwd.sort(da.from_zarr(tmp_path / "items.zarr")).to_zarr(tmp_path / "sorted.zarr")
    np.testing.assert_array_equal(
        _bits(da.from_zarr(tmp_path / "sorted.zarr").compute()), _bits(np.sort(items, kind="stable"))
    )
    table = pd.DataFrame({"key": _items("i4", few=True), "value": np.arange(SIZE, dtype="i4")})
    dd.from_pandas(table, npartitions=3).to_parquet(tmp_path / "table")
    lazy = dd.read_parquet(tmp_path / "table")
    keys, totals = gwd.groupby(lazy["key"], lazy["value"], "sum").compute()
    expected = table.astype("i8").groupby("key")["value"].sum()
    np.testing.assert_array_equal(keys, expected.index)
    np.testing.assert_array_equal(totals, expected)
    np.testing.assert_array_equal(gwd.cumsum(lazy["value"]).compute(), np.cumsum(table["value"]))


# ---- chunks on the GPU


def test_chunks_on_the_gpu_give_the_same_results():
    items = _items("f4")
    held = gwd.on_gpu(_chunked(items))
    assert all(isinstance(part, gw.Array) for part in dask.compute(*held.to_delayed().ravel()))
    finite = gwd.on_gpu(_chunked(np.nan_to_num(items, posinf=3, neginf=-3)))
    assert gwd.max(finite).compute() == np.nan_to_num(items, posinf=3, neginf=-3).max()
    np.testing.assert_array_equal(_bits(gwd.sort(held).compute()), _bits(np.sort(items, kind="stable")))
    np.testing.assert_array_equal(_bits(gwd.to_host(held).compute()), _bits(items))
    kept = gwd.scan(held, "max", keep=True)
    assert all(isinstance(part, gw.Array) for part in dask.compute(*kept.to_delayed().ravel()))
    np.testing.assert_array_equal(gwd.to_host(kept).compute(), gwd.scan(_chunked(items), "max").compute())
    np.testing.assert_array_equal(gwd.unique(held).compute(), np.unique(items))
    np.testing.assert_array_equal(
        gwd.histogram(finite, 5, range=(-1, 1)).compute(),
        np.histogram(np.nan_to_num(items, posinf=3, neginf=-3), 5, range=(-1, 1))[0],
    )
    ones = da.ones(SIZE, chunks=(LENGTHS,), dtype="u4")
    keys, counts = gwd.groupby(gwd.on_gpu(ones), gwd.on_gpu(ones), "sum").compute()
    assert (keys.tolist(), counts.tolist()) == ([1], [SIZE])


# ---- what is refused, before anything is computed


def test_arguments_that_are_refused_say_what_to_do():
    x = _chunked(_items("u4"))
    for wrong in (np.arange(3), [1, 2], "x"):
        with pytest.raises(gw.ArgumentError, match=r"gwd\.sum\(\): x is .*from_array"):
            gwd.sum(wrong)
    with pytest.raises(gw.ArgumentError, match=r"must have one dimension; give x\.ravel\(\)"):
        gwd.sort(da.ones((3, 3)))
    with pytest.raises(gw.DatatypeError):
        gwd.sum(da.ones(3, dtype=">u4"))
    with pytest.raises(gw.DatatypeError, match="of Python objects"):
        gwd.sort(da.from_array(np.array(["a", 1], object), chunks=1))
    with pytest.raises(gw.DatatypeError, match="must be of 4 or 8 bytes"):
        gwd.sort_pairs(x, x.astype("u1"))
    with pytest.raises(gw.LengthError, match="5000 keys, but 4999 values"):
        gwd.sort_pairs(x, x[1:])
    with pytest.raises(gw.ArgumentError, match="kind='both' is unknown"):
        gwd.scan(x, kind="both")
    with pytest.raises(gw.ArgumentError, match="how='median' is unknown"):
        gwd.groupby(x, x, "median")
    with pytest.raises(gw.ArgumentError, match="split_every"):
        gwd.sum(x, split_every=1)
    with pytest.raises(gw.ArgumentError, match="edges must be"):
        gwd.histogram(x, [3, 1])
    with pytest.raises(gw.ArgumentError, match="give either edges= or range="):
        gwd.histogram(x, edges=[0, 1], range=(0, 1))
    for wrong in ((1,), ("a", 1), (0, np.inf), (2, 1)):
        with pytest.raises(gw.ArgumentError, match="must be two finite numbers that ascend"):
            gwd.histogram(x, 3, wrong)
    with pytest.raises(gw.LimitError, match=r"fewer than 1073741824 keys; give x\.rechunk\(1073741823\)"):
        gwd.sort(da.zeros(1 << 31, chunks=1 << 30, dtype="u1"))


def test_nothing_is_computed_before_it_is_asked_for():
    def boom(*_):
        raise AssertionError("computed")

    x = da.map_blocks(boom, da.zeros(100, chunks=10, dtype="u4"), dtype="u4", meta=np.empty(0, "u4"))
    gwd.sum(x), gwd.scan(x), gwd.sort(x), gwd.argsort(x), gwd.sort_pairs(x, x), gwd.histogram(x, 3), gwd.on_gpu(x)
    gwd.groupby(x, x, "sum"), gwd.top_k(x, 2), gwd.unique(x), gwd.to_host(x)
    with pytest.raises(AssertionError, match="computed"):
        gwd.sum(x).compute()


def test_equal_calls_have_equal_keys_and_others_do_not():
    x = _chunked(_items("u4"))
    assert gwd.sum(x).name == gwd.sum(x).name
    names = {
        gwd.sum(x).name, gwd.sum(x, split_every=4).name, gwd.sum(x, deterministic=True).name, gwd.prod(x).name,
        gwd.reduce(x).name, gwd.reduce(x, "max").name, gwd.reduce(x, _COMPOSE).name, gwd.scan(x).name,
        gwd.scan(x, "max").name, gwd.cumsum(x).name, gwd.scan(x, keep=True).name, gwd.scan(x, kind="exclusive").name,
        gwd.sort(x).name, gwd.sort(x, descending=True).name, gwd.argsort(x).name, gwd.histogram(x, 3).name,
        gwd.histogram(x, 4).name, gwd.histogram(x, 3, range=(0, 1)).name, gwd.histogram(x, [0, 1, 2, 3]).name,
        gwd.top_k(x, 3)[0].name, gwd.top_k(x, 3)[1].name, gwd.top_k(x, 4)[0].name, gwd.unique(x).name,
    }  # fmt: skip
    assert len(names) == 23


_TEXTS = ["b", "a", "b"]


@pytest.mark.parametrize(
    ("call", "name", "given", "right"),
    [
        ("gwd.sort(x)", "x", np.array([3, 1, 2]), [1, 2, 3]),
        ("gwd.sort(x)", "x", [3, 1, 2], [1, 2, 3]),
        ("gwd.groupby(keys, da.ones(3), 'sum')", "keys", pd.Series([3, 1, 3]), None),
        ("gwd.sort(x)", "x", da.ones((2, 2), "i4"), [1, 1, 1, 1]),
        ("gwd.sort(x)", "x", da.from_array(np.array(_TEXTS, object), chunks=2), [0, 1, 1]),
        ("gwd.sort(x)", "x", dd.from_pandas(pd.Series(_TEXTS, dtype=object), npartitions=2), [0, 1, 1]),
        ("gwd.sort(x)", "x", da.from_array(np.complex128([2, 1])), [1, 2]),
        ("gwd.sort_pairs(da.arange(3), values)[1]", "values", da.arange(3, dtype="i1"), [0, 1, 2]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_an_error_advises_is_right(call, name, given, right):
    known = {"dask": dask, "da": da, "np": np, "gwd": gwd, name: given}
    with pytest.raises(gw.GridwiseError) as caught:
        eval(call, dict(known))
    advice, *_ = codes_in(str(caught.value).partition("; ")[2], known)
    found = eval(call, known | {name: eval(advice, dict(known))})
    if right is not None:
        assert np.asarray(found).tolist() == right
