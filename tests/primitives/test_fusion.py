"""Primitives that read expressions: against numpy, on every way that a kernel reads its items."""

from __future__ import annotations

import numpy as np
import pytest

import gridwise_py as gw

A, B = gw.f32("a"), gw.f32("b")


def _items(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-100, 100, n).astype(np.float32)


@pytest.mark.parametrize("n", [1, 5, 4_096, 4_099, 100_003])
def test_a_reduction_of_a_product(device, n):
    a, b = _items(n), _items(n, 1)
    dot = gw.Reduce(device, A * B)
    found = dot.execute(a=gw.asarray(a, device), b=gw.asarray(b, device)).output.to_numpy()
    np.testing.assert_allclose(found, [np.dot(a.astype(np.float64), b)], rtol=1e-5, atol=1)
    np.testing.assert_allclose(dot.reference(a=a, b=b), found, rtol=1e-5, atol=1)


def test_a_fused_reduction_of_views_at_odd_offsets(device):
    a, b = _items(1_003), _items(1_007, 1)
    x, y = gw.asarray(a, device)[1:1_001], gw.asarray(b, device)[3:1_003]
    found = gw.Reduce(device, gw.i32(A * B)).execute(a=x, b=y).output.to_numpy()
    assert found == (a[1:1_001] * b[3:1_003]).astype(np.int64).sum()


@pytest.mark.parametrize("strategy", ["lookback", "reduce_then_scan"])
@pytest.mark.parametrize("n", [1, 5_000])
def test_a_scan_of_a_condition(device, n, strategy):
    a, b = _items(n), _items(n, 1)
    scan = gw.Scan(device, gw.u32(A > B), strategy=strategy)
    found = scan.execute(a=gw.asarray(a, device), b=gw.asarray(b, device)).output.to_numpy()
    np.testing.assert_array_equal(found, np.cumsum(a > b))


def test_an_expression_of_arrays_is_stored(device):
    a = _items(1_001)
    x = gw.asarray(a, device)
    found = gw.asarray(gw.where(x > 3, np.float32(2) * x, gw.f32(gw.index)), device).to_numpy()
    np.testing.assert_array_equal(found, np.where(a > 3, 2 * a, np.arange(a.size, dtype=np.float32)))


def test_the_sum_of_an_expression_of_arrays(device):
    x = gw.asarray(_items(5_000), device)
    assert gw.sum(x * x).item() == (x.to_numpy() ** 2).sum()
    assert gw.sum(x > 0).item() == (x.to_numpy() > 0).sum()
