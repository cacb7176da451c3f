"""Histogram, Histogram2D and ReduceByIndex against numpy: bins, edges, skew, counts on the GPU, operators."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.primitives.binned import thresholds
from helpers.strategies import quick_first

BLOCKS = {"workgroup_size": 32, "vecs": 2, "max_blocks": 3}
TILE = 256
SIZES = [0, 1, 3, TILE - 1, TILE, TILE + 1, 3 * TILE + 5, 100_003]
SPECIALS = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 0.1, 0.7, -1e-45], dtype=np.float32)


def _small(**more):
    return gw.HistogramTuning(**BLOCKS, **more)


def _limited(device, limit=65_536):
    """Capabilities with which 100,003 items of 4 bytes are several windows."""
    found = gw.capabilities(device)
    return replace(found, limits={**found.limits, "max-storage-buffer-binding-size": limit})


def _run(primitive, trials=3, **arrays):
    given = {name: gw.asarray(items, primitive.device) for name, items in arrays.items()}
    return primitive.execute(**given, trials=trials).output.to_numpy()


def _numpy(items, bins, limits, weights=None):
    kept = ~np.isnan(items) if items.dtype.kind == "f" else np.ones(items.size, bool)
    return np.histogram(items[kept], bins, limits, weights=None if weights is None else weights[kept])[0]


# ---- histograms


def test_integers_and_floats_in_even_bins_at_edge_sizes(device):
    of_words = gw.Histogram(device, "u32", 64, range=(0, 256), tuning=_small())
    of_floats = gw.Histogram(device, "f32", 10, tuning=_small())
    for n in SIZES:
        words = np.random.default_rng(n).integers(0, 300, n, dtype=np.uint32)
        np.testing.assert_array_equal(_run(of_words, input=words), _numpy(words, 64, (0, 256)))
        x = np.random.default_rng(n).random(n, dtype=np.float32) * 1.4 - 0.2
        x[: min(n, SPECIALS.size)] = SPECIALS[: min(n, SPECIALS.size)]
        np.testing.assert_array_equal(_run(of_floats, input=x), _numpy(x, 10, (0, 1)))


@pytest.mark.parametrize(
    ("dtype", "bins", "limits"),
    quick_first(
        [("i8", 7, (-100, 100)), ("u64", 5, (0.5, 99)), ("f64", 33, (-0.1, 0.7))],
        [
            ("u8", 256, (0, 256)), ("i16", 16, (-8, 8)), ("i32", 3000, (-7, 90)), ("u32", 1, (3, 5.5)),
            ("i64", 13, (-50, 61)), ("bool", 2, (0, 2)), ("f16", 9, (0, 2)),
        ],
    ),
)  # fmt: skip
def test_datatypes_have_the_bins_of_numpy(device, dtype, bins, limits):
    kind = gw.STORAGE_DATATYPES[dtype].dtype
    x = np.random.default_rng(bins).normal(size=3001)
    x = x.astype(kind) if kind.kind == "f" else (60 * x).astype(np.int64).astype(kind)
    histogram = gw.Histogram(device, dtype, bins, range=limits)
    expected = _numpy(x.astype(np.uint32 if dtype == "bool" else kind), bins, limits)
    np.testing.assert_array_equal(_run(histogram, input=x), expected)
    np.testing.assert_array_equal(histogram.reference(x), expected)


@pytest.mark.parametrize(
    ("dtype", "bins", "limits"),
    [
        ("f32", 10, (0, 1)),
        ("f32", 33, (-0.1, 0.7)),
        ("f32", 1000, (0.1, 0.9)),
        ("u32", 7000, (3, 4e9)),
        pytest.param("i32", 999, (-5, 1), marks=pytest.mark.slow),
    ],
)
def test_items_at_and_beside_the_edges_of_even_bins(device, dtype, bins, limits):
    """Where the guess of a bin is off by one."""
    kind = gw.DATATYPES[dtype].dtype
    edges = np.histogram_bin_edges(np.empty(0, kind), bins, limits)
    x = np.concatenate(
        [np.nextafter(edges, -np.inf, dtype=edges.dtype), edges, np.nextafter(edges, np.inf, dtype=edges.dtype)]
    )
    x = np.concatenate([x, np.ceil(edges), np.ceil(edges) - 1]).clip(
        *((0, 2**32 - 1) if dtype == "u32" else (-1e9, 1e9))
    )
    x = x.astype(kind)
    histogram = gw.Histogram(device, dtype, bins, range=limits, tuning=_small())
    np.testing.assert_array_equal(_run(histogram, input=x), _numpy(x, bins, limits))


def test_tables_of_many_workgroups(device):
    x = np.random.default_rng(13).integers(0, 300, 1_700_001, dtype=np.uint32)
    tuning = gw.HistogramTuning(workgroup_size=64, vecs=4, max_blocks=200)
    histogram = gw.Histogram(device, "u32", 256, range=(0, 256), closed=False, tuning=tuning)
    assert histogram.plan(gw.Layout.separate(input=x.size, output=256)).parameters["blocks"] == 200
    np.testing.assert_array_equal(_run(histogram, trials=1, input=x), np.bincount(x[x < 256], minlength=256))


def test_the_upper_end_belongs_to_the_last_bin_unless_it_is_open(device):
    for dtype, limits in (("u32", (0, 8)), ("u32", (0, 9)), ("f32", (0, 8))):
        x = np.array([0, 7, 8, 9, 10], dtype=gw.DATATYPES[dtype].dtype)
        closed = gw.Histogram(device, dtype, 2, range=limits)
        np.testing.assert_array_equal(_run(closed, input=x), _numpy(x, 2, limits))
        opened = gw.Histogram(device, dtype, 2, range=limits, closed=False)
        np.testing.assert_array_equal(_run(opened, input=x), _numpy(x[x < limits[1]], 2, limits))


def test_all_integers_are_the_default_range(device):
    x = np.array([-(2**31), -1, 0, 2**31 - 1], dtype=np.int32)
    np.testing.assert_array_equal(_run(gw.Histogram(device, "i32", 4), input=x), [1, 1, 1, 1])
    words = x.view(np.uint32)
    np.testing.assert_array_equal(_run(gw.Histogram(device, "u32", 2), input=words), [2, 2])


@pytest.mark.parametrize(
    ("merge", "copies", "words"),
    quick_first(
        [("none", 1, 4096), ("quad", 32, 4096), ("tile", 3, 64)],
        itertools.product(("none", "quad", "tile"), (1, 32), (4096, 64)),
    ),
)
def test_every_variant_counts_alike(device, merge, copies, words):
    """Few and many copies, several ranges of bins, and data that are merged, or not."""
    tuning = _small(merge=merge, copies=copies, memory_words=words)
    histogram = gw.Histogram(device, "u32", 100, range=(0, 100), tuning=tuning)
    n = 20 * TILE + 7
    rng = np.random.default_rng(n)
    runs = np.repeat(rng.integers(0, 100, n // 8 + 1, dtype=np.uint32), 8)[:n]
    for x in (rng.integers(0, 110, n, dtype=np.uint32), np.full(n, 42, np.uint32), runs):
        np.testing.assert_array_equal(_run(histogram, input=x), _numpy(x, 100, (0, 100)))


@pytest.mark.parametrize("dtype", quick_first(["f32"], ["i64"]))
def test_edges_of_any_width(device, dtype):
    kind = gw.STORAGE_DATATYPES[dtype].dtype
    edges = np.array([1, 2, 2, 5, 9, 70, 100], dtype=kind)
    x = np.random.default_rng(0).integers(0, 110, 5003).astype(kind)
    histogram = gw.Histogram(device, dtype, 6, edges=True)
    np.testing.assert_array_equal(_run(histogram, input=x, edges=edges), np.histogram(x, edges)[0])
    one = gw.Histogram(device, dtype, 1, edges=True)
    np.testing.assert_array_equal(_run(one, input=x, edges=edges[-2:]), np.histogram(x, edges[-2:])[0])


def test_edges_that_do_not_fit_workgroup_memory(device):
    edges = np.sort(np.random.default_rng(1).random(2001, dtype=np.float32))
    x = np.random.default_rng(2).random(5000, dtype=np.float32)
    histogram = gw.Histogram(device, "f32", 2000, edges=True)
    np.testing.assert_array_equal(_run(histogram, input=x, edges=edges), np.histogram(x, edges)[0])


def test_channels_have_their_own_bins(device):
    image = np.random.default_rng(3).integers(0, 256, (97, 31, 3), dtype=np.uint8)
    expected = np.concatenate([_numpy(image[..., c].ravel(), 16, (0, 256)) for c in range(3)])
    np.testing.assert_array_equal(_run(gw.Histogram(device, "u8", 16, channels=3), input=image), expected)
    words = image.ravel().astype(np.uint32)
    windowed = gw.Histogram(
        device, "u32", 16, range=(0, 256), channels=3, tuning=_small(), capabilities=_limited(device, 16_384)
    )
    np.testing.assert_array_equal(_run(windowed, input=words), expected)
    assert windowed.plan(gw.Layout.separate(input=words.size, output=48)).parameters["windows"] > 1
    array = gw.asarray(words, device)
    chunks = gw.ChunkedArray([array[:1000], array[1000:1001], array[1001:]])  # which begin with other channels
    np.testing.assert_array_equal(windowed.execute(input=chunks).output.to_numpy(), expected)


@pytest.mark.parametrize("strategy", quick_first(["tables"], ["sort"]))
def test_expressions_views_and_weights(device, strategy):
    rng = np.random.default_rng(5)
    x, w = rng.random(3001, dtype=np.float32), rng.integers(-4, 5, 3001, dtype=np.int32)
    a, v = gw.f32("a"), gw.i32("v")
    histogram = gw.Histogram(device, a * a, 8, weights=v + 1, strategy=strategy)
    expected = np.histogram(x[3:] * x[3:], 8, (0, 1), weights=w[3:] + 1)[0]
    run = histogram.execute(a=gw.asarray(x, device)[3:], v=gw.asarray(w, device)[3:], trials=2)
    np.testing.assert_array_equal(run.output.to_numpy(), expected)
    np.testing.assert_array_equal(histogram.reference(a=x[3:], v=w[3:]), expected)


def test_integer_weights_wrap(device):
    histogram = gw.Histogram(device, "u32", 2, range=(0, 2), weights="u32")
    weights = np.array([2**31, 2**31 + 5, 7], dtype=np.uint32)
    np.testing.assert_array_equal(_run(histogram, input=np.array([0, 0, 1], np.uint32), weights=weights), [5, 7])


@pytest.mark.parametrize("strategy", quick_first(["tables"], ["sort"]))
def test_counts_on_the_gpu(device, strategy):
    x = np.random.default_rng(6).integers(0, 16, 3000, dtype=np.uint32)
    histogram = gw.Histogram(device, "u32", 16, range=(0, 16), strategy=strategy, tuning=_small())
    array = gw.asarray(x, device)
    for n in (0, 1, 1500, 3000, 10_000):
        expected = np.bincount(x[:n], minlength=16)
        counted = histogram.execute(input=array, n=gw.asarray(np.array([n], np.uint32), device), trials=2)
        np.testing.assert_array_equal(counted.output.to_numpy(), expected)
    np.testing.assert_array_equal(
        histogram.execute(input=array, n=7).output.to_numpy(), np.bincount(x[:7], minlength=16)
    )
    chosen = gw.Select(device, gw.u32("x"), where=gw.u32("x") > 7).execute(x=array).output
    np.testing.assert_array_equal(
        histogram.execute(input=chosen).output.to_numpy(), np.bincount(x[x > 7], minlength=16)
    )


@pytest.mark.parametrize("bins", [20_000, 1 << 24])
def test_many_bins(device, bins):
    x = np.random.default_rng(8).integers(0, 1 << 32, 5003, dtype=np.uint32)
    x[:1000] = x[0]
    histogram = gw.Histogram(device, "u32", bins, range=(0, 1 << 32) if bins == 1 << 24 else (0, bins * 2**17))
    strategy = histogram.plan(gw.Layout.separate(input=x.size, output=bins)).parameters["strategy"]
    assert strategy == ("sort" if bins == 1 << 24 else "tables")
    shift = 8 if bins == 1 << 24 else 17
    kept = x[(x >> shift) < bins] >> shift
    np.testing.assert_array_equal(_run(histogram, trials=2, input=x), np.bincount(kept, minlength=bins))


def test_a_plan_that_includes_others_survives_json():
    caps = gw.Capabilities(lookback=gw.LookbackVerdict(True, True, False, True, "u32x2"))
    lengths = {"input": 100_000, "output": 1 << 24}
    plan = gw.Histogram.plan_for(capabilities=caps, lengths=lengths, dtype="u32", bins=1 << 24)
    assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")
    bound = {binding.buffer for kernel in plan.kernels for binding in kernel.bindings}
    assert bound <= {spec.name for spec in plan.buffers}


# ---- by index


@pytest.mark.parametrize(
    ("dtype", "strategy"),
    quick_first(
        [("i8", "tables"), ("u64", "tables"), ("i64", "sort")],
        itertools.product(("u8", "u32", "i32", "i64"), ("tables", "sort")),
    ),
)
def test_indices_out_of_range_are_left_out(device, dtype, strategy):
    kind = gw.STORAGE_DATATYPES[dtype].dtype
    limits = np.iinfo(kind)
    some = [0, 2, 3, limits.max, limits.min, limits.max - 1, 2, -1 if limits.min else 3]
    indices = np.array([int(each) for each in some], dtype=object).astype(kind)
    items = np.full(indices.size, 1 << 20, dtype=np.uint32)
    expected = np.zeros(3, dtype=np.uint32)
    for index in indices:
        if 0 <= index < 3:
            expected[index] += 1 << 20
    guarded = gw.asarray(np.full(9, 7, dtype=np.uint32), device)
    primitive = gw.ReduceByIndex(device, dtype, "u32", size=3, strategy=strategy)
    primitive.execute(indices=gw.asarray(indices, device), items=gw.asarray(items, device), output=guarded[3:6])
    np.testing.assert_array_equal(guarded.to_numpy(), [7, 7, 7, *expected, 7, 7, 7])


def test_minima_propagate_nan_and_order_zeros(device):
    items = np.array([np.nan, 1, 0.0, -0.0, 5, -np.inf], dtype=np.float32)
    indices = np.array([0, 0, 1, 1, 3, 3], dtype=np.uint32)
    found = _run(gw.ReduceByIndex(device, "u32", "f32", gw.Min, size=4), indices=indices, items=items)
    np.testing.assert_array_equal(found, np.array([np.nan, -0.0, np.inf, -np.inf], dtype=np.float32))
    assert np.signbit(found[1])


def test_operators_of_users_and_those_that_do_not_commute(device):
    rng = np.random.default_rng(10)
    indices, items = rng.integers(0, 7, 2001, dtype=np.uint32), rng.integers(0, 1 << 16, 2001, dtype=np.uint32)
    either = gw.BinOp.of("either", lambda a, b: a | b, identity=0)
    primitive = gw.ReduceByIndex(device, "u32", "u32", either, size=7, tuning=_small(copies=1))
    assert primitive.plan(gw.Layout.separate(indices=9, items=9, output=7)).parameters["strategy"] == "tables"
    np.testing.assert_array_equal(_run(primitive, indices=indices, items=items), primitive.reference(indices, items))
    later = gw.BinOp.of("later", lambda a, b: gw.where(b != 0, b, a), identity=0, commutative=False)
    items += 1
    last = np.array([items[indices == k][-1] for k in range(7)])
    found = _run(gw.ReduceByIndex(device, "u32", "u32", later, size=7), indices=indices, items=items)
    np.testing.assert_array_equal(found, last)


def test_float_sums(device):
    rng = np.random.default_rng(11)
    indices, items = rng.integers(0, 5, 20_001, dtype=np.uint32), rng.random(20_001, dtype=np.float32)
    exact = np.bincount(indices, items.astype(np.float64), minlength=6)
    arrays = {"indices": gw.asarray(indices, device), "items": gw.asarray(items, device)}
    found = gw.ReduceByIndex(device, "u32", "f32", size=6, tuning=_small(copies=1)).execute(**arrays).output.to_numpy()
    np.testing.assert_allclose(found, exact, rtol=2e-5)
    fixed = gw.ReduceByIndex(device, "u32", "f32", size=6, deterministic=True)
    first = fixed.execute(**arrays).output.to_numpy()
    np.testing.assert_allclose(first, exact, rtol=2e-5)
    order = np.argsort(indices, kind="stable")  # whose items of an index are in the same order
    again = {"indices": gw.asarray(indices[order], device), "items": gw.asarray(items[order], device)}
    np.testing.assert_array_equal(fixed.execute(**again).output.to_numpy().view(np.uint32), first.view(np.uint32))


def test_sums_of_64_bits_are_exact(device):
    items = np.full(1000, (1 << 60) + 1, dtype=np.uint64)
    indices = np.arange(1000, dtype=np.uint32) % 300
    found = _run(gw.ReduceByIndex(device, "u32", "u64", size=256), indices=indices, items=items)
    expected = np.zeros(256, items.dtype)
    with np.errstate(over="ignore"):
        np.add.at(expected, indices[indices < 256], items[indices < 256])
    np.testing.assert_array_equal(found, expected)


# ---- edges and errors


@pytest.mark.parametrize("dtype", ["f32", "u32", "i64"])
def test_thresholds_are_the_least_items_of_bins(dtype):
    kind = gw.STORAGE_DATATYPES[dtype].dtype
    edges = np.sort(np.random.default_rng(12).normal(size=50) * 1000)
    if dtype == "u32":
        edges = np.abs(edges[::-1])[np.argsort(np.abs(edges[::-1]))]
    found = thresholds(edges, kind)
    before = np.nextafter(found, kind.type(-np.inf)) if kind.kind == "f" else found.astype(np.int64) - 1
    assert (found[:-1].astype(np.float64) >= edges[:-1]).all()
    assert (before[:-1].astype(np.float64) < edges[:-1]).all()
    after = np.nextafter(found[-1], kind.type(np.inf)) if kind.kind == "f" else int(found[-1]) + 1
    assert float(found[-1]) <= edges[-1] < float(after)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_are_compared_with_floats_as_numpy_does(dtype):
    for edge in (
        2.0**52 + 0.5, 2.0**53, 2.0**53 + 2, 2.0**54, 2.0**54 + 4, 2.0**62, 2.0**62 + 1024, -(2.0**53), -(2.0**60),
    ):  # fmt: skip
        if edge < 0 and dtype is np.uint64:
            continue
        items = (int(edge) + np.arange(-1100, 1101)).astype(dtype)
        first, _ = thresholds(np.array([edge, 2.0**63]), np.dtype(dtype))
        assert first == items[np.searchsorted(items, edge)]
        for closed in (True, False):
            _, last = thresholds(np.array([-(2.0**63), edge]), np.dtype(dtype), closed=closed)
            assert last == items[np.searchsorted(items, edge, "right" if closed else "left") - 1]


def test_edges_that_the_datatype_does_not_hold():
    np.testing.assert_array_equal(thresholds(np.array([-5.0, 0.5, 1e12, 2e12]), np.dtype(np.uint32)), [0, 1, 2**32 - 1])
    low, high = thresholds(np.array([1e12, 2e12]), np.dtype(np.uint32))
    assert low > high
    wide = thresholds(np.array([-1e40, 0.1, 1e40]), np.dtype(np.float32))
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(wide, np.array([-largest, 0.1, largest], np.float32))  # float32(0.1) is above 0.1


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (gw.ArgumentError, lambda d: gw.Histogram(d, "u32", 0)),
        (gw.ArgumentError, lambda d: gw.Histogram(d, "u32", range=(5, 5))),
        (gw.ArgumentError, lambda d: gw.Histogram(d, "f32", range=(0, np.nan))),
        (gw.ArgumentError, lambda d: gw.Histogram(d, "u32", range=(0, 1), edges=True)),
        (gw.ArgumentError, lambda d: gw.Histogram(d, "u32", channels=17)),
        (gw.ArgumentError, lambda d: gw.Histogram(d, "u32", tuning=gw.HistogramTuning(memory_words=1 << 20))),
        (gw.ArgumentError, lambda d: gw.Histogram(d, "u32", weights="u64", strategy="tables")),
        (gw.ArgumentError, lambda d: gw.Histogram(d, "u32", strategy="atomics")),
        (gw.ArgumentError, lambda d: gw.HistogramTuning(merge="all")),
        (gw.LimitError, lambda d: gw.Histogram(d, "u32", 1 << 31)),
        (gw.LimitError, lambda d: gw.Histogram(d, "f32", (1 << 20) + 1)),
        (gw.DatatypeError, lambda d: gw.Histogram(d, "c64")),
        (gw.DatatypeError, lambda d: gw.Histogram(d, gw.struct(a=gw.f32("a"), b=gw.f32("b")))),
        (gw.DatatypeError, lambda d: gw.Histogram2D(d, ("f32", "u32"))),
        (gw.DatatypeError, lambda d: gw.ReduceByIndex(d, "f32", size=4)),
        (gw.DatatypeError, lambda d: gw.ReduceByIndex(d, "u32", "f32", gw.And, size=4)),
        (gw.ArgumentError, lambda d: gw.ReduceByIndex(d, "u32", None, gw.Max, size=4)),
    ],
)
def test_bad_options_are_refused(device, error, make):
    with pytest.raises(error):
        make(device)


def test_bad_arguments_are_refused_before_anything_is_submitted(device):
    x = gw.asarray(np.zeros(8, np.uint32), device)
    with pytest.raises(gw.LengthError):
        gw.ReduceByIndex(device, size=4).execute(indices=x, items=x[:7])
    with pytest.raises(gw.LengthError):
        gw.Histogram(device, "u32", 8, edges=True).execute(input=x, edges=x)
    with pytest.raises(gw.OverlapError):
        gw.Histogram(device, "u32", 4).execute(input=x, output=x[:4])
    with pytest.raises(gw.LengthError):
        gw.Histogram(device, "u32", 4).execute(input=x, output=gw.empty(3, "u32", device))


def test_bins_that_have_no_width_say_what_to_give():
    large = np.full(3, 1.7e18)  # nanoseconds since 1970
    with pytest.raises(gw.ArgumentError, match=r"items reach from 1.7e\+18 to 1.7e\+18, .*; give range=\(low, high\)"):
        gw.histogram(large)
    assert gw.histogram(large, range=(0, 2e18))[0].sum() == 3
    with pytest.raises(gw.ArgumentError, match=r"10 finite-sized bins; give fewer bins"):
        gw.histogram([0.5] * 9 + [0.500000000000001])
    with pytest.raises(gw.ArgumentError, match=r"range=\(2, 1\) must be two finite numbers"):
        gw.Histogram(None, "f32", 4, range=(2, 1), capabilities=gw.Capabilities())
