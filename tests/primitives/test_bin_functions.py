"""histogram, histogram2d, bincount, reduce_by_index, scatter_add: numpy's results, dtypes and habits."""

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import quick_first

RNG = np.random.default_rng(1)
X = RNG.normal(size=1000)
Y = RNG.normal(size=1000)
NUMBERS = RNG.integers(0, 5, 1000)


def _same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_range_of_another_type_has_edges_of_its_own(device):
    x = np.linspace(0, 1, 11).astype(np.float32)  # in float32 some of these are below the edges of float64
    for ends in ((0.0, 1.0), (np.float64(0), np.float64(1)), (np.float32(0), np.float32(1)), (0, 1)):
        expected = np.histogram(x, 10, ends)
        _same(gw.histogram(x, 10, ends, device=device), expected)
        hist, edges = gw.histogram(gw.asarray(x, device), 10, ends)
        _same((hist.to_numpy().astype(np.intp), edges), expected)
    ends = (np.float32(0.1), np.float32(0.7))  # in float32 for bools, which kernels read as u32
    hist, edges = gw.histogram(gw.asarray(x, device) > 0.5, 3, ends)
    _same((hist.to_numpy().astype(np.intp), edges), np.histogram((x > 0.5).astype(np.uint8), 3, ends))


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.int64, -(2**62), 2**63 - 1), (np.uint64, 2**63, 2**64 - 1)])
def test_integers_beyond_float64_are_in_the_bins_of_numpy(device, dtype, low, high):
    x = RNG.integers(low, high, 500, dtype=dtype, endpoint=True)
    x[:2] = x.min() + 1, x.max() - 1  # float64 rounds the ends of the range to items inside, or makes these equal to it
    for options in ({}, {"bins": np.linspace(float(low), float(high), 9)}, {"bins": np.unique(x[:9])}):
        _same(gw.histogram(x, **options, device=device), np.histogram(x, **options))
    low = 2**53  # where neighbours are one float
    near = (low + RNG.integers(0, 100, 500)).astype(dtype)
    _same(gw.histogram(near, 7, device=device), np.histogram(near, 7))
    ends = (low + 1, low + 91)
    _same(gw.histogram(near, 5, range=ends, device=device), np.histogram(near, 5, range=ends))
    _same(gw.histogram2d(near, near, (2, 3), device=device), np.histogram2d(near, near, (2, 3)))


def test_bins_above_all_items_are_empty(device):
    x = np.array([3, 2**32 - 1], dtype=np.uint32)
    bins = np.array([0, 4, 2**33, 2**34])
    _same(gw.histogram(x, bins, device=device), np.histogram(x, bins))
    _same([gw.histogram(gw.asarray(x, device), bins)[0].to_numpy()], [np.array([1, 1, 0], dtype=np.uint32)])
    for pair in ([bins, [0, 3, 9]], [[3, 4], bins], [bins, bins], [-bins[::-1], bins]):
        expected = np.histogram2d(x, x, pair)
        _same(gw.histogram2d(x, x, pair, device=device), expected)
        found = gw.histogram2d(gw.asarray(x, device), gw.asarray(x, device), pair)[0]
        np.testing.assert_array_equal(found.to_numpy(), expected[0])


def test_pairs_are_numpys(device):
    x, y = (10 * X).astype(np.float32), (10 * Y).astype(np.float32)
    for options in (
        {"bins": (4, 5)},
        {"bins": [[-10, 0, 10], 3], "range": [[0, 1], [-10, 10]], "density": True},
        {"weights": NUMBERS.astype(np.float32)},
        {"bins": np.array([2, 3]), "range": np.array([[-1.1, 1.3], [0, 0.7]])},
    ):
        _same(gw.histogram2d(x, y, **options, device=device), np.histogram2d(x, y, **options))
    found = gw.histogram2d(gw.asarray(x, device), gw.asarray(y, device), 3, range=((-9, 9), (0, 20)))
    expected = np.histogram2d(x, y, 3, ((-9, 9), (0, 20)))
    np.testing.assert_array_equal(found[0].to_numpy(), expected[0])


def test_bincounts_are_numpys(device, require):
    _same([gw.bincount(NUMBERS, device=device)], [np.bincount(NUMBERS)])
    _same([gw.bincount(NUMBERS, minlength=10, device=device)], [np.bincount(NUMBERS, minlength=10)])
    empty = np.zeros(0, dtype=np.int64)
    _same([gw.bincount(empty, device=device)], [np.bincount(empty)])
    _same([gw.bincount(NUMBERS, NUMBERS, device=device)], [np.bincount(NUMBERS, NUMBERS)])
    _same([gw.bincount(empty, [], 2, device=device)], [np.bincount(empty, [], 2)])
    _same([gw.bincount(NUMBERS > 2, device=device)], [np.bincount(NUMBERS > 2)])
    assert gw.bincount(gw.asarray(NUMBERS, device), length=0).shape == (0,)
    require("shader-f64")
    np.testing.assert_allclose(gw.bincount(NUMBERS, X, device=device), np.bincount(NUMBERS, X), rtol=1e-12)
    rounded = np.append(np.float32(2**24), np.ones(3000, np.float32))  # sums that float32 does not hold
    _same([gw.bincount(np.zeros(3001, int), rounded, device=device)], [np.bincount(np.zeros(3001, int), rounded)])


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, ">u8", ">i4"])
def test_sums_of_large_weights_do_not_wrap(device, dtype):
    limits = np.iinfo(dtype)
    weights = RNG.integers(limits.min, limits.max, NUMBERS.size, np.dtype(dtype).newbyteorder("="), endpoint=True)
    weights[NUMBERS == 1] = limits.max
    weights[NUMBERS == 2] = limits.min
    found = gw.bincount(NUMBERS, weights.astype(dtype), minlength=7, device=device)
    assert found.dtype == np.float64
    exact = [0] * 7
    for number, weight in zip(NUMBERS.tolist(), weights.tolist(), strict=True):
        exact[number] += weight
    np.testing.assert_allclose(found, np.array(exact, np.float64), rtol=1e-14, atol=1e4)


def test_numbers_on_the_gpu_that_are_out_of_range_are_left_out(device):
    numbers = gw.asarray(np.array([0, 3, 3, -1, 5, 2**31 - 1], dtype=np.int32), device)
    found = gw.bincount(numbers, length=4)
    assert found.dtype == np.uint32
    np.testing.assert_array_equal(found.to_numpy(), [1, 0, 0, 2])
    weights = gw.asarray(np.arange(6, dtype=np.float32), device)
    np.testing.assert_array_equal(gw.bincount(numbers + 1, weights, length=4).to_numpy(), [3, 0, 0, 0])


def test_integers_that_numpy_makes_floats_of_stay_integers(device, require):
    require("shader-int64")
    found = gw.scatter_add(np.zeros(3, np.uint64), [1, 2], [1, 2**64 - 1], device=device)
    assert found.tolist() == [0, 1, 2**64 - 1]
    with pytest.raises(gw.DatatypeError):
        gw.scatter_add(np.zeros(3, np.uint64), [1, 2], [1, 2**64], device=device)


@pytest.mark.parametrize("dtype", quick_first([np.float32, np.int64], [np.uint32]))
def test_scatter_add_is_add_at(device, require, dtype):
    if dtype is np.int64:
        require("shader-int64")
    x, values = np.arange(6).astype(dtype), np.array([5, 6, 7]).astype(dtype)
    indices = np.array([1, 1, 4])
    expected = x.copy()
    np.add.at(expected, indices, values)
    _same([gw.scatter_add(x, indices, values, device=device)], [expected])
    np.testing.assert_array_equal(x, np.arange(6).astype(dtype))
    array = gw.asarray(x, device)
    more = gw.asarray(np.array([1, 1, 4, -1, 6], dtype=np.int32), device)
    found = gw.scatter_add(array, more, gw.asarray(np.append(values, [8, 9]).astype(dtype), device))
    np.testing.assert_array_equal(found.to_numpy(), expected)
    np.testing.assert_array_equal(array.to_numpy(), x)
    for number in (3, [5, 6, 7], dtype(2), True, np.True_, np.array(True)):
        expected = x.copy()
        np.add.at(expected, indices, number)
        _same([gw.scatter_add(x, indices, number, device=device)], [expected])
        np.testing.assert_array_equal(gw.scatter_add(array, indices, number).to_numpy(), expected)


@pytest.mark.parametrize("mask", [True, np.True_, [True, False]])
def test_a_mask_is_no_index(device, mask):
    """numpy would add at all places that it marks."""
    with pytest.raises(gw.DatatypeError, match="flatnonzero"):
        gw.scatter_add(np.zeros(2, np.float32), mask, 1, device=device)
    with pytest.raises(gw.DatatypeError, match="flatnonzero"):
        gw.reduce_by_index(mask, np.zeros(np.shape(mask), np.float32), length=2, device=device)


def test_an_empty_list_has_no_indices(device):
    _same([gw.bincount([], device=device)], [np.bincount([])])
    _same([gw.bincount([], minlength=3, device=device)], [np.bincount([], minlength=3)])
    x = np.ones(3, np.float32)
    _same([gw.scatter_add(x, [], [], device=device)], [x])
    _same([gw.scatter_add(NUMBERS, [], [], device=device)], [NUMBERS])


def _gpu(device, items):
    return gw.asarray(items, device)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (gw.ArgumentError, lambda d: gw.histogram(_gpu(d, X.astype(np.float32)))),
        (gw.ArgumentError, lambda d: gw.histogram(_gpu(d, NUMBERS), "auto", (0, 9))),
        (gw.ArgumentError, lambda d: gw.histogram(X, "most", device=d)),
        (gw.DatatypeError, lambda d: gw.histogram(X, "auto", weights=X, device=d)),
        (gw.ArgumentError, lambda d: gw.histogram(X, [0, np.nan, 3], device=d)),
        (gw.DatatypeError, lambda d: gw.histogram(X, 3.5, device=d)),
        (gw.LimitError, lambda d: gw.histogram(X.astype(np.float32), 2**31 - 1, device=d)),
        (gw.ArgumentError, lambda d: gw.histogram(NUMBERS, 2**31, device=d)),
        (gw.DatatypeError, lambda d: gw.histogram2d(X, Y, "auto", device=d)),
        (gw.ArgumentError, lambda d: gw.bincount(_gpu(d, NUMBERS.reshape(10, 100)), length=9)),
        (gw.ArgumentError, lambda d: gw.bincount(_gpu(d, NUMBERS.reshape(10, 100)) * 2, length=9)),
        (gw.ArgumentError, lambda d: gw.bincount(NUMBERS, length=2**31, device=d)),
        (gw.ArgumentError, lambda d: gw.reduce_by_index(NUMBERS, NUMBERS, length=2**32 + 5, device=d)),
        (gw.ArgumentError, lambda d: gw.histogram(X, [2, 1], device=d)),
        (gw.ArgumentError, lambda d: gw.histogram(X, [2], device=d)),
        (gw.ArgumentError, lambda d: gw.histogram(X, 0, device=d)),
        (gw.ArgumentError, lambda d: gw.histogram([np.nan], device=d)),
        (gw.ArgumentError, lambda d: gw.histogram(X, range=(1, 0), device=d)),
        (gw.DatatypeError, lambda d: gw.histogram(X, range=3, device=d)),
        (gw.LengthError, lambda d: gw.histogram(X, weights=X[:5], device=d)),
        (gw.DatatypeError, lambda d: gw.histogram(np.array(["a"]), device=d)),
        (gw.DatatypeError, lambda d: gw.histogram(_gpu(d, NUMBERS), _gpu(d, X.astype(np.float32)))),
        (gw.LengthError, lambda d: gw.histogram2d(X, Y[:5], device=d)),
        (gw.ArgumentError, lambda d: gw.histogram2d(X, Y, range=(0, 1, 2), device=d)),
        (gw.ArgumentError, lambda d: gw.histogram2d(X, Y, range=3, device=d)),
        (gw.ArgumentError, lambda d: gw.bincount([-1], device=d)),
        (gw.ArgumentError, lambda d: gw.bincount([[1]], device=d)),
        (gw.ArgumentError, lambda d: gw.bincount([4], length=4, device=d)),
        (gw.ArgumentError, lambda d: gw.bincount(_gpu(d, NUMBERS))),
        (gw.DatatypeError, lambda d: gw.bincount([0.5], device=d)),
        (gw.BoundsError, lambda d: gw.reduce_by_index([7], NUMBERS[:1], length=7, device=d)),
        (gw.BoundsError, lambda d: gw.reduce_by_index([0], NUMBERS[:1], length=0, device=d)),
        (gw.BoundsError, lambda d: gw.scatter_add(X[:0].astype(np.float32), [0], np.ones(1, np.float32), device=d)),
        (gw.BoundsError, lambda d: gw.scatter_add(X.astype(np.float32), [1000], np.ones(1, np.float32), device=d)),
        (gw.DatatypeError, lambda d: gw.scatter_add(X.astype(np.float32), [1], np.ones(1, np.uint32), device=d)),
        (gw.LengthError, lambda d: gw.scatter_add(X.astype(np.float32), [1], np.ones(2, np.float32), device=d)),
        (gw.ArgumentError, lambda d: gw.scatter_add(np.ones((2, 2), np.float32), [1], 1.0, device=d)),
        (gw.ArgumentError, lambda d: gw.scatter_add(_gpu(d, NUMBERS.astype(np.uint32)) + 1, [1], 1)),
        (gw.DatatypeError, lambda d: gw.scatter_add(np.ones(4, np.uint32), [1], -1, device=d)),
        (gw.DatatypeError, lambda d: gw.scatter_add(np.ones(4, np.uint32), [1], 1.5, device=d)),
    ],
)
def test_bad_calls_are_refused(device, error, call):
    with pytest.raises(error):
        call(device)
