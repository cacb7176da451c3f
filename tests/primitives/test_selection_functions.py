"""One-shot functions that select, against numpy: of its arrays, of Arrays, and of expressions."""

import numpy as np
import pytest

import gridwise_py as gw

SIZES = (0, 1, 5, 4097)


def _numpy(found):
    return found.to_numpy() if isinstance(found, gw.Array) else found


@pytest.mark.parametrize("n", SIZES)
def test_partition_by(device, n):
    x = np.random.default_rng(n).integers(0, 90, n).astype(np.uint32)
    array = gw.asarray(x, device)
    for items, conditions in ((x, (x < 30, x < 60)), (array, (x < 30, array < 60))):
        parts = gw.partition_by(items, conditions, device=device)
        for part, want in zip(parts, (x[x < 30], x[(x >= 30) & (x < 60)], x[x >= 60]), strict=True):
            np.testing.assert_array_equal(_numpy(part), want)
    kept, rest = gw.partition_by(x, x < 30, device=device)
    np.testing.assert_array_equal(kept, x[x < 30])
    np.testing.assert_array_equal(rest, x[x >= 30])


def test_a_chain_of_counted_arrays(device):
    x = np.random.default_rng(3).integers(0, 40, 3000).astype(np.float32)
    array = gw.asarray(x, device)
    kept = gw.compress(array > 10, array)
    assert isinstance(kept, gw.Array)
    assert kept.count is not None
    assert kept.size == 3000
    found = gw.unique_counts(kept)
    values, counts = np.unique(x[x > 10], return_counts=True)
    np.testing.assert_array_equal(found.values.to_numpy(), values)
    np.testing.assert_array_equal(found.counts.to_numpy(), counts)


@pytest.mark.parametrize("shape", [(4, 5), (2, 0, 3), (2, 5, 2)])
def test_several_dimensions_are_taken_in_c_order(device, shape):
    x = (np.arange(np.prod(shape)) % 3).astype(np.int32).reshape(shape)
    x = np.asfortranarray(x)
    array = gw.asarray(x, device)
    for found in (gw.flatnonzero(x, device=device), gw.flatnonzero(array)):
        np.testing.assert_array_equal(_numpy(found), np.flatnonzero(x))
    found, expected = gw.nonzero(x, device=device), np.nonzero(x)
    assert len(found) == len(expected)
    for one, two, other in zip(found, gw.nonzero(array), expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(two.to_numpy(), other)
    for found in (
        gw.compress(x > 1, x, device=device), gw.compress(gw.asarray(array > 1), array),
        gw.compress(array.ravel() > 1, array),
    ):  # fmt: skip
        np.testing.assert_array_equal(_numpy(found), x[x > 1])
    for found in (gw.repeat(x, 3, device=device), gw.repeat(array, 3), gw.repeat(x, [3], device=device)):
        np.testing.assert_array_equal(_numpy(found), np.repeat(x, 3))
    assert gw.flatnonzero(7, device=device).tolist() == [0]


X = np.arange(6).reshape(2, 3)


@pytest.mark.parametrize("as_array", [False, True], ids=["numpy", "Array"])
def test_compress_takes_numpys_conditions_axes_and_out(device, as_array):
    for condition, x, axis in (
        ([1, 0, 1], X.ravel(), None), ([True, False, True], X, None), ([1], np.array(5), None), ([0, 1], X, 1),
        ([0, 1], X, 0), ([0, 1, 0], X, -1), ([1, 0, 1, 0, 0, 0, 0, 0], X.ravel(), 0), ([], X.ravel(), None),
    ):  # fmt: skip
        given = gw.asarray(x, device) if as_array else x
        expected = np.compress(condition, x, axis)
        found = _numpy(gw.compress(condition, given, axis, device=device))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        if not as_array:
            out = np.empty(expected.shape, expected.dtype)
            assert gw.compress(condition, x, axis, out, device=device) is out
            np.testing.assert_array_equal(out, expected)
    found = gw.extract(X > 2, gw.asarray(X, device) if as_array else X)
    np.testing.assert_array_equal(_numpy(found), np.extract(X > 2, X))
    if as_array:
        out = gw.empty(6, "i64", device)
        found = gw.compress([0, 1, 0, 0, 1, 0], gw.asarray(X.ravel(), device), None, out)
        assert found.to_numpy().tolist() == [1, 4] == out.to_numpy()[:2].tolist()
        short = gw.compress(gw.asarray(np.uint32([1, 0, 1]), device), gw.asarray(X.ravel(), device))
        assert short.to_numpy().tolist() == [0, 2]
        for condition in ([1, 0, 1], [1, 0, 1, 0, 0, 0, 0]):
            assert gw.compress(condition, gw.arange(6, dtype="u32", device=device) + 1).tolist() == [1, 3]


def test_delete_is_numpys(device):
    x = X.ravel()
    array = gw.asarray(x, device)
    for indices in (0, -1, [1, 2], [True] * 3 + [False] * 3, np.array([5, 5]), slice(1, 3), []):
        expected = np.delete(x, indices)
        np.testing.assert_array_equal(gw.delete(x, indices, device=device), expected)
        np.testing.assert_array_equal(gw.delete(array, indices).to_numpy(), expected)
        if not isinstance(indices, slice):
            on_gpu = gw.asarray(np.atleast_1d(indices if np.size(indices) else np.zeros(0, int)), device)
            np.testing.assert_array_equal(gw.delete(array, on_gpu).to_numpy(), expected)
    for axis in (0, 1):
        np.testing.assert_array_equal(gw.delete(X, 1, axis, device=device), np.delete(X, 1, axis))
    for wrong, error in ((9, gw.BoundsError), ([True], gw.LengthError), (gw.ones(2, "bool", device), gw.LengthError)):
        with pytest.raises(error):
            gw.delete(x, wrong, device=device)


def test_what_does_not_fit_is_refused(device):
    x = gw.asarray(np.arange(6, dtype=np.uint32), device)
    for items in (x, x + 1):
        with pytest.raises(gw.BoundsError, match="condition has 7 items, but x has 6"):
            gw.compress(gw.ones(7, "bool", device), items)
    with pytest.raises(gw.LengthError, match="condition has 5 items, but x, an expression, has 6"):
        gw.compress(gw.ones(5, "bool", device), x + 1)
    with pytest.raises(gw.BoundsError, match=r"condition\[6\] is true"):
        gw.compress(np.ones(7, dtype=bool), x)
    with pytest.raises(gw.AxisError):
        gw.compress([True], X, 2, device=device)
    with pytest.raises(gw.ArgumentError, match=r"condition\.to_numpy\(\)"):
        gw.compress(gw.ones(2, "bool", device), X, 0)
    with pytest.raises(gw.ArgumentError, match="rows are not compared"):
        gw.unique(X, axis=0, device=device)
    with pytest.raises(gw.ArgumentError, match=r"gw\.nonzero\(\): x is a single item"):
        gw.nonzero(np.uint32(3), device=device)
    with pytest.raises(gw.ArgumentError, match="one dimension"):
        gw.compress(np.ones((3, 2), dtype=bool), x.reshape(2, 3))
    with pytest.raises(gw.ArgumentError, match="leaves k"):
        gw.compress(gw.u32("k") > 2, x)
    with pytest.raises(gw.ArgumentError, match=r"gw\.asarray"):
        gw.unique(x + 1)
    with pytest.raises(gw.ArgumentError, match=r"gw\.unique\(\): x is ChunkedArray.* must be one Array"):
        gw.unique(gw.ChunkedArray([x, x]))
    with pytest.raises(gw.ArgumentError, match="3 conditions"):
        gw.partition_by(x, (x > 1, x > 2, x > 3))
