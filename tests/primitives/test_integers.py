"""Integers stay integers: nothing passes through float32 or float64 that need not."""

import bisect

import numpy as np
import pytest

import gridwise_py as gw

_OFFSETS = {"int32": -(10**9), "uint32": 4 * 10**9, "int64": 2**60 + 1, "uint64": 2**63 + 5}


def _host(value):
    return value.to_numpy() if isinstance(value, gw.Array) else value


@pytest.mark.parametrize("dtype", _OFFSETS)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_moments_of_integers_far_from_zero(device, dtype, axis):
    near = np.random.default_rng(3).integers(0, 9, (4, 5))
    items = near.astype(dtype) + np.dtype(dtype).type(_OFFSETS[dtype])
    counts = near > 2
    for each in (items, gw.asarray(items, device)):
        for name in ("var", "std", "nanstd"):
            found = _host(getattr(gw, name)(each, axis=axis))
            np.testing.assert_allclose(found, getattr(np, name)(near, axis=axis), rtol=1e-6)
        assert _host(gw.std(each, axis=axis, deterministic=True)) == pytest.approx(np.std(near, axis=axis), rel=1e-6)
        mean = _host(gw.mean(each, axis=axis))
        np.testing.assert_allclose(mean, float(_OFFSETS[dtype]) + np.mean(near, axis=axis), rtol=3e-7)
        if isinstance(each, np.ndarray) or each.dtype.itemsize < 8:
            found = _host(gw.std(each, axis=axis, where=counts if isinstance(each, np.ndarray) else gw.asarray(counts)))
            np.testing.assert_allclose(found, np.std(near, axis=axis, where=counts), rtol=1e-6)
    found = gw.mean(items, axis=axis)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.mean(near, axis=axis) + float(_OFFSETS[dtype]))


def test_moments_of_lists_and_expressions(device):
    assert gw.std([100000000, 100000001, 100000002]) == pytest.approx(np.sqrt(2 / 3))
    assert gw.std(gw.asarray(np.array(1, np.int64), device)).item() == 0
    x = gw.asarray(np.int32([100000000, 100000001, 100000002]), device)
    assert gw.std(x + 1).item() == pytest.approx(np.sqrt(2 / 3))
    opposite = gw.asarray(np.int32([2**30 + 1, -(2**30)]), device)
    assert gw.mean(opposite).item() == gw.mean(opposite + 0).item() == 0.5


@pytest.mark.parametrize("dtype", _OFFSETS)
def test_spreads_of_groups_are_those_of_their_integers(device, dtype):
    near = np.array([0, 3, 1, 5, 2, 9])
    keys = np.array([0, 1, 0, 1, 0, 2])
    items = near.astype(dtype) + (keys == 1).astype(dtype) * np.dtype(dtype).type(2**31 - 10)
    found = gw.group_by(keys, v=(items, "var"), s=(items, "std", 1), device=device)
    wanted = [near[keys == key] for key in range(3)]
    np.testing.assert_allclose(found.v, [each.var() for each in wanted], rtol=1e-6)
    np.testing.assert_allclose(found.s, [each.std(ddof=1) if each.size > 1 else np.nan for each in wanted], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_spreads_of_groups_of_integers_as_far_apart_as_can_be(device, dtype):
    limits = np.iinfo(dtype)
    ends = np.array([limits.min, min(limits.max, int(limits.min) + 2**32 - 1)], dtype)
    found = gw.group_by([3, 3], v=(ends, "var"), device=device)
    assert found.v[0] == pytest.approx(((int(ends[1]) - int(ends[0])) / 2) ** 2, rel=1e-6)


def test_spreads_of_groups_of_bools_are_those_of_0_and_1(device):
    found = gw.group_by([1, 1, 1, 2], v=(np.array([True, False, False, True]), "var"), device=device)
    np.testing.assert_allclose(found.v, [2 / 9, 0], rtol=1e-6)


def test_the_dtypes_of_results(device):
    assert gw.group_by([], n=(np.zeros(0), "sum"), device=device).key.dtype == np.float64
    integers, halves = np.array([16777217, 16777217]), gw.asarray(np.float16([1, 2, np.nan]), device)
    for function in (gw.mean, gw.nanmean, gw.average):
        assert function(integers).dtype == np.float64
        assert function(integers) == 16777217
    assert gw.nansum(halves).dtype == gw.nanprod(halves).dtype == np.float16
    numbers = [16777217.0, 16777217.0]
    assert gw.mean(numbers).dtype == gw.sum(numbers).dtype, "both float64 where the device computes with it"


_IDS = (1740000000000000101, 1740000000000000102)


def _nullable(kind):
    items = [*_IDS, None]
    if kind == "polars":
        return pytest.importorskip("polars").Series(items)
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").array(items)
    return pytest.importorskip("pandas").array(items, dtype="Int64")


@pytest.mark.parametrize(
    "kind", [pytest.param(name, marks=pytest.mark.needs(f"module:{name}")) for name in ("polars", "pyarrow", "pandas")]
)
def test_a_null_leaves_the_other_integers_as_they_are(device, kind):
    x = _nullable(kind)
    groups = gw.group_by({"id": x, "v": [1, 2, 4]}, "id", total=("v", "sum"), device=device)
    assert groups.id.tolist() == [*_IDS, None]
    assert groups.total.tolist() == [1, 2, 4]
    hows = ("sum", "min", "max", "first", "last", "prod", "count", "mean", "std", "any", "all")
    table = {"k": [0, 0, 0], "x": x}
    found = gw.group_by(table, "k", {how: ("x", how) for how in hows if how != "count"} | {"c": ("x", "count")},
                        skipna=True, device=device)  # fmt: skip
    whole = [found[how].item() for how in ("sum", "min", "max", "first", "last", "c")]
    assert whole == [sum(_IDS), *_IDS, *_IDS, 2]
    assert (found["std"].item(), found["any"].item(), found["all"].item()) == (0.5, True, True)
    alone = gw.group_by({"k": [0, 0, 1], "x": x}, "k", largest=("x", "max"), skipna=True, device=device)
    assert alone.largest.tolist() == [_IDS[1], None]
    assert gw.isin(x, [_IDS[1]]).tolist() == [False, True, False]
    assert gw.unique(x).tolist() == [*_IDS, None]
    assert (gw.nanmax(x), gw.nansum(x)) == (_IDS[1], sum(_IDS))
    if kind != "pandas":
        with pytest.raises(gw.DatatypeError, match="2\\*\\*53") as error:
            gw.sort(x)
        remedy = str(error.value).rpartition("nulls, ")[2]
        assert gw.sort(eval(remedy, {"data": x})).tolist() == [0, *_IDS]


@pytest.mark.parametrize("on_gpu", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("signed", ["int32", "int64"])
def test_signed_and_unsigned_integers_are_compared_exactly(device, signed, on_gpu):
    first = np.array([-1, 5, 7] if signed == "int32" else [-1, -(2**60), 5, 2**60, 2**63 - 1], signed)
    second = np.array([5, 2**60 + 1, 2**63, 2**64 - 2**60, 2**64 - 1], np.uint64)
    for pair in ((first, second), (second, first)):
        x, y = (gw.asarray(each, device) if there else each for each, there in zip(pair, on_gpu, strict=True))
        a, b = (each.tolist() for each in pair)
        assert _host(gw.isin(x, y)).tolist() == [each in b for each in a]
        assert _host(gw.isin(x, y, invert=True)).tolist() == [each not in b for each in a]
        assert _host(gw.intersect1d(x, y)).tolist() == sorted({*a} & {*b})
        assert [_host(each).tolist() for each in gw.intersect1d(x, y, return_indices=True)] == [
            [5], [a.index(5)], [b.index(5)]
        ]  # fmt: skip
        assert _host(gw.setdiff1d(x, y)).tolist() == sorted({*a} - {*b})
        for side, find in (("left", bisect.bisect_left), ("right", bisect.bisect_right)):
            assert _host(gw.searchsorted(x, y, side=side)).tolist() == [find(a, each) for each in b]
        for refused in (gw.union1d, gw.setxor1d, gw.merge):
            with pytest.raises(gw.DatatypeError, match=r"where nothing is negative|convert one of"):
                refused(x, y)


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        (["a", "a\0", "a"], ["a", "a\0"]),
        ([b"\1\0", b"\2\7", b"\1\0"], [b"\1\0", b"\2\7"]),
        ([2**63 + 1, -1, 2**63 + 1], [-1, 2**63 + 1]),
    ],
)
def test_keys_keep_all_that_tells_them_apart(device, keys, wanted):
    found = gw.group_by({"k": keys}, "k", n="size", device=device)
    assert found.k.tolist() == wanted
    assert sorted(found.n.tolist()) == [1, 2]
