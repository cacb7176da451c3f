"""Means and variances in float64, as numpy's, of Arrays and of numpy arrays."""

from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.functions.double_moments import _BESIDE_FIRST
from gridwise_py.types.struct_operators import SPREADS
from helpers.bare import device_with

DTYPES = ["float64", "int64", "uint64", "int32", "uint8", "bool"]
MOMENTS = ["mean", "var", "std", "nanmean", "nanvar", "nanstd"]


def _host(value):
    return value.to_numpy() if isinstance(value, gw.Array) else value


def _items(dtype):
    made = np.random.default_rng(11)
    if dtype == "float64":
        items = made.normal(1e6, 2, (3, 7, 5))
        items[1, 2, 3] = np.nan
        return items
    return made.integers(0, 2 if dtype == "bool" else 200, (3, 7, 5)).astype(dtype)


@pytest.mark.needs("float64")
@pytest.mark.parametrize("dtype", DTYPES)
def test_moments_are_numpys(device, dtype):
    items = _items(dtype)
    counts = np.random.default_rng(12).random(items.shape) > 0.3
    stored, kept = gw.asarray(items, device), gw.asarray(counts, device)
    for name in MOMENTS:
        for axis in (None, 1, (0, 1)):
            more = {} if "mean" in name else {"ddof": 1}
            wanted = getattr(np, name)(items, axis=axis, **more)
            masked = getattr(np, name)(items, axis=axis, where=counts, **more)
            found = [
                (getattr(gw, name)(stored, axis=axis, **more), wanted),
                (getattr(gw, name)(items, axis=axis, device=device, **more), wanted),
                (getattr(gw, name)(stored, axis=axis, where=kept, **more), masked),
            ]
            for result, expected in found:
                assert result.dtype == expected.dtype
                np.testing.assert_allclose(_host(result), expected, rtol=1e-9, err_msg=f"{name} along {axis}")


@pytest.mark.needs("float64")
@pytest.mark.parametrize(
    "items",
    [
        np.array([]), np.array([], np.int64), np.array([-0.0]), np.array([2.5, np.inf]), np.array([np.nan, np.inf]),
        np.array([1e200, 3e200]), np.array([2**63 - 1, -(2**63)]), np.array([2**64 - 1, 0], np.uint64),
        np.array([2**60, 2**60 + 1, 2**60 + 2]), np.array([5e-324, 0.0]),
    ],
    ids=str,
)  # fmt: skip
def test_spreads_of_extremes(device, items):
    exact = items - items[:1] if items.dtype == np.int64 and items.size == 3 else items  # float64 holds no such int64
    with np.errstate(all="ignore"):
        for ddof in (0, 1, 5):
            wanted = np.var(exact, ddof=ddof) if items.size > ddof or ddof == 5 else np.nan
            for x in (items, gw.asarray(items, device)):
                np.testing.assert_allclose(_host(gw.var(x, ddof=ddof, device=device)), wanted, rtol=1e-12)


@pytest.mark.needs("float64")
def test_spreads_at_the_ends_of_tiles(device):
    rng = np.random.default_rng(13)
    for n in (1, 4095, 4096, 4097, 70001):
        items = rng.normal(1e5, 1e-2, n)
        items[0] = 3e5  # far from the mean, which the distances are first taken from
        wanted = items.astype(np.longdouble).std()
        x = gw.asarray(items, device)
        found = [_host(gw.std(x)), _host(gw.std(x[: n // 2 * 2].reshape(2, -1), axis=(0, 1))) if n > 1 else wanted]
        np.testing.assert_allclose(found[0], float(wanted), rtol=1e-9)
        fixed = {gw.std(x, deterministic=True).item().hex() for _ in range(3)}
        assert len(fixed) == 1
        np.testing.assert_allclose(float.fromhex(fixed.pop()), float(wanted), rtol=1e-9)


@pytest.mark.needs("float64")
def test_moments_of_items_that_only_the_gpu_counts(device):
    items = np.random.default_rng(14).normal(50, 1, 999)
    some = gw.compress(gw.asarray(items > 50, device), gw.asarray(items, device))
    wanted = items[items > 50]
    np.testing.assert_allclose(gw.mean(some).item(), wanted.mean(), rtol=1e-12)
    np.testing.assert_allclose(gw.std(some, ddof=1).item(), wanted.std(ddof=1), rtol=1e-9)
    np.testing.assert_allclose(gw.nanvar(some).item(), wanted.var(), rtol=1e-9)
    whole = gw.asarray((items * 1e6).astype(np.int32), device)
    assert gw.var(whole + 1).dtype == np.float64
    np.testing.assert_allclose(gw.var(whole + 1).item(), whole.to_numpy().var(), rtol=1e-12)
    halves = gw.asarray(items.astype(np.float32), device)
    assert gw.var(halves).dtype == np.float32
    found = gw.var(halves, dtype=np.float64)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.item(), items.astype(np.float32).var(dtype=np.float64), rtol=1e-13)


@pytest.mark.needs("float64")
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "int32", "bool"])
def test_quantiles_of_arrays_are_numpys(device, dtype):
    made = np.random.default_rng(16)
    ends = {"int64": (-(2**63), 2**63), "uint64": (0, 2**64), "int32": (-(2**31), 2**31), "bool": (0, 2)}.get(dtype)
    wide = made.normal(size=(3, 3001)) if ends is None else made.integers(*ends, (3, 3001), dtype)
    with_nan, most = wide.copy(), 4.0 if ends is None else float(ends[1])
    if dtype == "float64":
        with_nan[1, 7], with_nan[2, :2] = np.nan, (-0.0, 1e300)
    for items in (wide, with_nan):
        x = gw.asarray(items, device)
        numbers = items.astype(np.float64) if dtype != "float64" else items  # whose differences do not wrap
        for axis in (None, 0, 1):
            for found, wanted in (
                (gw.median(x, axis), np.median(numbers, axis)),
                (gw.quantile(x, [0, 0.3, 1], axis), np.quantile(numbers, [0, 0.3, 1], axis)),
                (gw.percentile(x, 80.0, axis, method="hazen"), np.percentile(numbers, 80.0, axis, method="hazen")),
            ):
                assert found.dtype == np.float64
                # A GPU may fuse the product with the sum: then an end is rounded once less.
                np.testing.assert_allclose(found.to_numpy(), wanted, rtol=1e-15, atol=2.0**-52 * most)
    if dtype != "float64":
        np.testing.assert_allclose(gw.nanmedian(x).item(), np.median(numbers), rtol=1e-15)


def test_without_float64_integers_have_moments_of_float32(device):
    bare = device_with(device)
    items = np.array([[0, 3, 9], [5, 2, 2]]) + 2**60
    for x in (items, gw.asarray(items, bare)):
        for axis in (None, 0, 1):
            found = gw.std(x, axis=axis, device=bare)
            assert found.dtype == np.float32
            np.testing.assert_allclose(_host(found), np.std(items - 2**60, axis=axis), rtol=1e-6)
    for function in (gw.mean, gw.var, gw.nanstd):
        for x in (np.float64([1, 2]), gw.asarray(np.float64([1, 2]), bare)):
            with pytest.raises(gw.DatatypeError, match=r"x is of float64.*x\.astype\(np\.float32\)"):
                function(x, device=bare)
    keys, whole = np.array([1, 1, 0]), gw.asarray(np.int32([1, 2, 4]), bare)
    for x, remedy in ((np.float64([1, 2, 4]), r"x\.astype\(np\.float32\)"), (whole, r"gw\.f32\(…\)")):
        with pytest.raises(gw.DatatypeError, match=remedy):
            gw.group_by(keys, s=(x, "std"), device=bare)
    with pytest.raises(gw.DatatypeError, match="asked for in float64"):
        gw.var(np.float32([1, 2]), dtype=np.float64, device=bare)


def _table(made):
    n = 3000
    keys = made.integers(-3, 20, n), made.choice(["Oslo", "Rome"], n)
    items = {
        "f": made.normal(1e6, 1, n), "i": made.integers(0, 1000, n), "w": made.integers(-(2**62), 2**62, n),
        "n": made.integers(-(2**31), 2**31, n).astype(np.int32),
    }  # fmt: skip
    items["f"][made.random(n) < 0.1] = np.nan
    return keys, items


@pytest.mark.needs("float64")
@pytest.mark.parametrize("skipna", [True, False])
def test_moments_of_groups_are_numpys(device, skipna):
    keys, items = _table(np.random.default_rng(15))
    asked = {
        f"{name}_{how}": (each, how, *([1] if how == "std" else []))
        for name, each in items.items() for how in ("mean", "var", "std")
    }  # fmt: skip
    for columns in (keys[:1], keys):
        found = [gw.group_by(columns, asked, skipna=skipna, device=device)]
        if len(columns) == 1:
            key = gw.asarray(keys[0].astype(np.int32), device)
            stored = {name: (gw.asarray(each, device), *rest) for name, (each, *rest) in asked.items()}
            found.append(gw.group_by(key, stored, skipna=skipna))
        rows = sorted(set(zip(*columns, strict=True)))
        chosen = [np.logical_and.reduce([key == k for key, k in zip(columns, row, strict=True)]) for row in rows]
        for groups in found:
            for name, (each, how, *ddof) in asked.items():
                kept = ~np.isnan(each) if skipna else True
                options = {"ddof": 1} if ddof else {}
                wanted = [getattr(np, how)(each[some & kept], **options) for some in chosen]
                got = _host(groups[name])
                assert got.dtype == np.float64
                np.testing.assert_allclose(got, wanted, rtol=1e-9, err_msg=name)


@pytest.mark.needs("float64")
def test_moments_of_few_rows_and_of_keys_with_other_bits(device):
    x = np.array([1, 5, 2, np.inf, 7], np.float64)
    keys = np.array([3, 1, 3, 0, 1], np.uint32)
    found = gw.group_by(
        gw.asarray(keys + np.uint32([0, 64, 4, 32, 8]), device), s=(gw.asarray(x, device), "std", 1), key_bits=2
    )
    np.testing.assert_allclose(found.s.to_numpy(), [np.nan, np.sqrt(2), np.sqrt(0.5)])
    found = gw.group_by(gw.asarray(keys, device), s=(gw.asarray(x, device), "var"), size=1, skipna=True)
    assert np.isnan(found.s.to_numpy()).tolist() == [True]
    assert gw.group_by(keys[:0], s=(x[:0], "std"), device=device).s.tolist() == []
    negative = np.float64([-0.0, 0.0, 1.0])
    assert gw.group_by(negative, m=(np.float64([1, 3, 9]), "var"), device=device).m.tolist() == [1, 0]


@pytest.mark.needs("float64")
@pytest.mark.parametrize(
    "items",
    [
        np.array([1.5, -0.0, np.nan, np.inf, -np.inf, 1e300]), np.array([2**63 - 1, -(2**63), 5, -7]),
        np.array([2**64 - 1, 0, 2**63, 7], np.uint64), np.arange(12.0).reshape(3, 4) ** 3,
    ],
    ids=str,
)  # fmt: skip
def test_differences_of_arrays_of_8_bytes_are_numpys(device, items):
    x = gw.asarray(items, device)
    for axis in range(items.ndim):
        for function in (np.diff, np.ptp):
            with np.errstate(all="ignore"):
                wanted = function(items, axis=axis)
            found = getattr(gw, function.__name__)(x, axis=axis)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found.to_numpy(), wanted)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gw.ediff1d(x).to_numpy(), np.ediff1d(items))


@pytest.mark.needs("float64")
def test_spreads_of_items_in_windows(device):
    small = 1 << 17
    found = gw.capabilities(device)
    limits = {**found.limits, "max-storage-buffer-binding-size": small}
    items = np.random.default_rng(17).normal(1e6, 2, 50_003)
    x = gw.asarray(items, device)
    reduction = gw.Reduce(device, _BESIDE_FIRST[8], SPREADS["f64"], capabilities=replace(found, limits=limits))
    bound = reduction.bind(words=x.view("u64"), origin=x[:1].view("u32"))
    assert bound.plan.parameters["windows"] > 2
    distances = items - items[0]
    sums = bound.execute().output.view("f64").to_numpy()
    np.testing.assert_allclose(sums, [distances.sum(), (distances**2).sum()], rtol=1e-12)
