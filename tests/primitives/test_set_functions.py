"""union1d, intersect1d, setdiff1d, setxor1d and isin against numpy."""

import numpy as np
import pytest

import gridwise_py as gw

FUNCTIONS = ("union1d", "intersect1d", "setdiff1d", "setxor1d")


def sets(datatype, n=300):
    """Return two arrays with items in common and items twice; of floats NaN and both zeros, too."""
    rng = np.random.default_rng(n)
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    found = []
    for low in (0, 20):
        items = rng.integers(low, low + 60, n).astype(dtype)
        if dtype.kind == "f" and n > 9:
            items[:4] = [np.nan, 0.0, -0.0, np.inf]
            items[-1] = -np.array(np.nan, dtype)
        found.append(items)
    return found


def test_an_intersection_with_the_places_of_its_items(device):
    a, b = sets("f32")
    some = gw.compress(gw.asarray(a, device) > 10, gw.asarray(a, device))
    for x, y, once in ((a, b, False), (a[:0], b, False), (np.unique(a)[::-1], np.unique(b), True)):
        expected = np.intersect1d(x, y, once, True)
        found = gw.intersect1d(x, y, once, True, device=device)
        on_gpu = gw.intersect1d(gw.asarray(x, device), gw.asarray(y, device), once, return_indices=True)
        for one, other, wanted in zip(found, on_gpu, expected, strict=True):
            assert one.dtype == wanted.dtype
            np.testing.assert_array_equal(one, wanted)
            np.testing.assert_array_equal(other.to_numpy(), wanted)
    expected = np.intersect1d(some.to_numpy(), b, return_indices=True)
    for one, wanted in zip(gw.intersect1d(some, b, return_indices=True), expected, strict=True):
        np.testing.assert_array_equal(one.to_numpy(), wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sets_stay_on_the_gpu_and_take_counted_arrays(device, name):
    ours, theirs = getattr(gw, name), getattr(np, name)
    a, b = sets("f32")
    x, y = gw.asarray(a, device), gw.asarray(b, device)
    some, others = gw.compress(x > 10, x), gw.compress(y < 50, y)
    for first, second in ((x, y), (some, y), (x, others), (some, others), (some, some), (gw.compress(x > 1e9, x), y)):
        got = ours(first, second)
        assert isinstance(got, gw.Array)
        assert got.count is not None
        np.testing.assert_array_equal(got.to_numpy(), theirs(first.to_numpy(), second.to_numpy()))
    np.testing.assert_array_equal(ours(x.reshape(3, 100), b).to_numpy(), theirs(a, b))


def test_a_difference_has_the_items_of_the_first(device):
    """They are compared as float64, which does not hold them, and come back as they were."""
    a = np.array([2**63 + 5, 7, 2**63 + 5, 3, 2**53 + 1], np.uint64)
    b = np.array([3, 4], np.int64)
    for one, two in ((a, b), (gw.asarray(a, device), b), (gw.asarray(a, device), gw.asarray(b, device))):
        got = gw.setdiff1d(one, two, device=device)
        assert got.dtype == np.uint64
        assert got.tolist() == np.setdiff1d(a, b).tolist()
        assert gw.setdiff1d(one[1:], two, assume_unique=True, device=device).tolist() == got.tolist()
    assert gw.setdiff1d(gw.unique(gw.asarray(a, device)), b).tolist() == got.tolist()


def test_signed_and_unsigned_integers_are_compared_exactly(device):
    signed = np.array([[2**53 + 1, -1, 2**53], [5, -(2**63), 2**63 - 1]], np.int64)
    unsigned = np.array([2**53, 2**64 - 1, 2**63, 2**62, 5], np.uint64)
    for a, b in ((signed, unsigned), (unsigned, signed), (signed.astype(np.int32), unsigned)):
        for invert in (False, True):
            found = gw.isin(a, b, invert=invert, device=device)
            expected = np.reshape([(each in b.ravel().tolist()) ^ invert for each in a.ravel().tolist()], a.shape)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", FUNCTIONS[1:])
def test_sets_of_which_the_caller_knows_that_nothing_is_twice(device, name):
    a, b = (np.unique(items[np.isfinite(items)]) for items in sets("f32"))
    b = b[::-1]
    got = getattr(gw, name)(a, b, assume_unique=True, device=device)
    np.testing.assert_array_equal(got, getattr(np, name)(a, b))


def test_isin_among_many(device):
    """With samples of the keys, and on the GPU."""
    x, y = (np.random.default_rng(k).integers(0, 1 << 18, 40_000).astype(np.uint32) for k in (1, 2))
    got = gw.isin(gw.asarray(x, device), gw.asarray(y, device))
    assert isinstance(got, gw.Array)
    np.testing.assert_array_equal(got.to_numpy(), np.isin(x, y))


def test_what_does_not_fit_is_refused(device):
    x, y = gw.zeros(4, "u32", device), gw.zeros(4, "f32", device)
    for name in (*FUNCTIONS, "isin"):
        with pytest.raises(gw.ArgumentError, match=r"is an expression.*gw\.asarray"):
            getattr(gw, name)(x + 1, x)
        with pytest.raises(gw.ArgumentError, match="must be one Array"):
            getattr(gw, name)(x, gw.ChunkedArray([x]))
        with pytest.raises(gw.DatatypeError, match="complex64"):
            getattr(gw, name)(x, np.complex64([1]))
    for a, b in ((np.uint32([1]), []), ([], [1]), ([1], x[:0])):
        assert gw.merge(a, b, device=device).tolist() == [1]
    with pytest.raises(gw.DatatypeError, match="does not hold -1"):
        gw.merge(x, [-1])
    with pytest.raises(gw.ArgumentError, match="kind='hash' is unknown"):
        gw.isin(x, x, kind="hash")
    with pytest.raises(gw.DatatypeError, match=r"b is of f32.*, but a of u32.*; .*b\.astype\(np\.uint32\)"):
        gw.merge(x, y)
    with pytest.raises(gw.ArgumentError, match=r"trim\(\)"):
        gw.isin(gw.compress(x == 0, x), x)


def test_the_other_order_of_bytes_beside_another_sign(device):
    x = np.array([2**60 + 5, 3], np.uint64)
    assert gw.isin(x, np.array([2**60 + 5, 7], ">i8"), device=device).tolist() == [True, False]
