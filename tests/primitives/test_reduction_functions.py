"""argmin, argmax, minmax, any, all, find, mean, var, std and their operators: against numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw

TILE = 8192  # items of a tile at most, in the shapes of a CPU adapter
SIZES = (1, 2, 3, 1023, 1025, TILE - 1, TILE + 1, 100_003)
DTYPES = ("f4", "u4", "i4", "u1", "i2", "f2", "?")


def _items(dtype, n, seed=0):
    rng = np.random.default_rng([n, seed])
    return rng.random(n) < 0.5 if dtype == "?" else (rng.standard_normal(n) * 100).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=() if n in (1, 1025, 100_003) else pytest.mark.slow) for n in SIZES]
)
def test_indices_and_truth_as_numpy(device, dtype, n):
    x = _items(dtype, n)
    assert gw.argmax(x, device=device) == np.argmax(x)
    assert gw.argmin(x, device=device) == np.argmin(x)
    assert gw.any(x, device=device) == np.any(x)
    assert gw.all(x, device=device) == np.all(x)
    assert gw.any(np.zeros(n, dtype), device=device) == np.False_
    assert gw.all(np.ones(n, dtype), device=device) == np.True_
    least, greatest = gw.minmax(x, device=device)
    assert (least, greatest) == (x.min(), x.max())


def test_the_first_of_equal_items_wins(device):
    x = np.zeros(3 * TILE, np.float32)
    x[5::7] = -0.0  # numpy takes −0 and +0 as equal
    assert gw.argmin(x, device=device) == gw.argmax(x, device=device) == 0
    x[[TILE + 3, 2 * TILE + 1, 77]] = 9
    assert gw.argmax(x, device=device) == 77
    x[[TILE + 4, 2 * TILE]] = -np.inf
    assert gw.argmin(x, device=device) == TILE + 4


@pytest.mark.parametrize("place", [0, 63, TILE - 1, TILE, 2 * TILE + 9])
def test_the_first_nan_wins(device, place):
    x = _items("f4", 3 * TILE)
    x[-1], x[place] = np.nan, np.nan
    x[place // 2] = np.inf if place else np.nan
    assert gw.argmax(x, device=device) == np.argmax(x)
    assert gw.argmin(x, device=device) == np.argmin(x)


@pytest.mark.parametrize("subgroups", ["none", "emulated-4", "emulated-32"])
def test_operators_on_structs_of_a_value_and_its_index(device, subgroups):
    x = np.random.default_rng(1).integers(0, 50, 3 * TILE + 5, dtype=np.uint32)
    array = gw.asarray(np.concatenate([[0], x]).astype(np.uint32), device)[1:]  # begins within a vec4
    item = gw.struct(value=gw.u32("x"), index=gw.index)
    for op, numpy in ((gw.ArgMax, np.argmax), (gw.ArgMin, np.argmin)):
        for options in ({}, {"tuning": gw.ReduceTuning(workgroup_size=64, vecs=2, max_blocks=2, subgroups=subgroups)}):
            found = gw.Reduce(device, item, op, **options).execute(x=array).output.to_numpy()
            assert (found["value"][0], found["index"][0]) == (x[numpy(x)], numpy(x))


def test_indices_beyond_a_binding(device):
    """Windows of four tiles: an index counts from the beginning of the array."""
    tile = 64 * 2 * 4
    found = gw.capabilities(device)
    limited = replace(found, limits={
        **found.limits, "max-storage-buffer-binding-size": 16 * tile + 512, "min-storage-buffer-offset-alignment": 256,
    })  # fmt: skip
    x = np.zeros(11 * tile + 3, np.float32)
    x[9 * tile + 5] = 1
    item = gw.struct(value=gw.f32("x"), index=gw.index)
    tuning = gw.ReduceTuning(workgroup_size=64, vecs=2)
    run = gw.Reduce(device, item, gw.ArgMax, tuning=tuning, capabilities=limited).execute(x=gw.asarray(x, device))
    assert run.plan.parameters["windows"] > 1
    assert run.output.to_numpy()["index"][0] == 9 * tile + 5


@pytest.mark.parametrize("dtype", DTYPES)
def test_moments_as_numpy(device, dtype):
    for n in (1, 2, 1025, 30_003):
        x = _items(dtype, n)
        wide = x.astype(np.float64)
        coarse = 2e-3 if dtype == "f2" else 2e-5  # results of float16 are float16
        np.testing.assert_allclose(gw.mean(x, device=device), wide.mean(), rtol=coarse, atol=1e-4)
        np.testing.assert_allclose(gw.var(x, device=device), wide.var(), rtol=coarse)
        if n > 1:
            np.testing.assert_allclose(gw.std(x, correction=1, device=device), wide.std(ddof=1), rtol=coarse)


def test_the_variance_of_items_far_from_zero(device):
    """The mean squared is 10^12 times the variance: the difference of two sums would have no digit right."""
    x = (1e6 + 10 * np.random.default_rng(2).standard_normal(200_000)).astype(np.float32)
    np.testing.assert_allclose(gw.var(x, device=device), x.astype(np.float64).var(), rtol=2e-3)
    np.testing.assert_allclose(gw.mean(x, device=device), x.astype(np.float64).mean(), rtol=1e-7)


def test_no_items(device):
    nothing = np.zeros(0, np.float32)
    for function in (gw.argmin, gw.argmax, gw.minmax):
        with pytest.raises(gw.EmptyReductionError, match="at least one item"):
            function(nothing, device=device)
    assert not gw.any(nothing, device=device)
    assert gw.all(nothing, device=device)
    assert all(np.isnan(f(nothing, device=device)) for f in (gw.mean, gw.var, gw.std))


def test_results_of_arrays_stay_on_the_gpu(device):
    x = _items("f4", 5_000)
    array = gw.asarray(x, device)
    for function in (gw.argmax, gw.any, gw.mean, gw.var, gw.std):
        assert isinstance(function(array), gw.Array)
    z = gw.asarray((array - gw.mean(array)) / gw.std(array)).to_numpy()
    np.testing.assert_allclose(z, (x - x.mean()) / x.std(), rtol=1e-3, atol=1e-5)
    assert gw.argmax(array * array).item() == np.argmax(x * x)
    assert gw.find(array > 1e9).item() == x.size
    assert gw.find(array == x[77]).item() == np.flatnonzero(x == x[77])[0]


def test_along_an_axis(device):
    m = _items("f4", 6_000).reshape(60, 100)
    np.testing.assert_array_equal(gw.any(m > 250, axis=1, device=device), np.any(m > 250, axis=1))
    np.testing.assert_array_equal(gw.all(m > -250, axis=0, device=device), np.all(m > -250, axis=0))
    np.testing.assert_allclose(gw.mean(m, axis=0, device=device), m.mean(axis=0), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(gw.count_nonzero(m > 0, axis=1, device=device), np.count_nonzero(m > 0, axis=1))
    with pytest.raises(gw.ArgumentError, match="axis"):
        gw.argmax(m, axis=0, device=device)
