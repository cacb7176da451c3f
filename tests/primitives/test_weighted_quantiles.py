"""Quantiles of weighted items, against numpy's inverted_cdf."""

import warnings

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.errors import ArgumentError, AxisError, DatatypeError, LengthError

SHAPES = [
    # Of the items, the axis, and of the weights.
    ((1,), 0, (1,)),
    ((7,), None, (7,)),
    ((3, 5), None, (3, 5)),
    ((3, 5), 0, (3,)),
    ((3, 5), -1, (3, 5)),
    ((2, 3, 4), (2, 0), (4, 2)),
    ((9000,), None, (9000,)),
]


def _assert_same(call, *args, **kwargs):
    """Compare with numpy to the bit: also the choice where a part of the weights is just reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = getattr(np, call)(*args, method="inverted_cdf", **kwargs)
    got = getattr(gw, call)(*args, method="inverted_cdf", **kwargs)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)  # numpy gives an array of shape () for a number
    np.testing.assert_array_equal(got, want)


def _whole_weights(rng, shape):
    """Sums of them are exact in any order; about a third are 0, but not all of a row."""
    weights = np.maximum(rng.integers(-1, 4, shape), 0)
    weights[..., 0] += weights.sum(axis=-1) == 0
    return weights + (weights.sum(axis=0) == 0 if weights.ndim > 1 else 0)


@pytest.mark.parametrize("dtype", ["i1", "f2", "u4", "f4", "i8", "f8"])
@pytest.mark.parametrize(("shape", "axis", "of_weights"), SHAPES)
def test_quantiles_of_numpy_arrays_are_numpys(device, monkeypatch, dtype, shape, axis, of_weights):
    monkeypatch.setattr(gw.runtime.device, "_default", [device])
    rng = np.random.default_rng(1)
    x = rng.integers(0, 20, shape).astype(dtype)
    for weights in (_whole_weights(rng, of_weights), rng.random(of_weights), rng.random(of_weights) < 2):
        for q in (0.5, 0, [0.1, 0.2, 1.0], np.float32([[0.2, 0.4], [0.6, 0]]), np.float16(0.3)):
            _assert_same("quantile", x, q, axis, weights=weights)
        _assert_same("percentile", x, [25, 30], axis, weights=weights, keepdims=True)
        if "f" in dtype:
            x.flat[x.size // 2] = np.nan
            _assert_same("quantile", x, [0.0, 0.5], axis, weights=weights)
            if weights.shape == shape and x.size > 1:
                _assert_same("nanpercentile", x, [0.0, 50, 100], axis, weights=weights)


@pytest.mark.parametrize("dtype", ["u1", "f2", "i4", "f4", "u8", "f8"])
@pytest.mark.parametrize(("shape", "axis", "of_weights"), SHAPES)
@pytest.mark.needs("float64")
def test_quantiles_of_arrays_stay_on_the_gpu(device, dtype, shape, axis, of_weights):
    rng = np.random.default_rng(2)
    x, weights = rng.integers(0, 20, shape).astype(dtype), _whole_weights(rng, of_weights)
    if "f" in dtype:
        x.flat[0] = np.nan
    for q in (0.5, np.array([0, 0.25, 1]), np.float32([0.3])):
        want = np.quantile(x, q, axis, weights=weights, method="inverted_cdf")
        for pair in ((x, gw.asarray(weights, device)), (gw.asarray(x, device), weights.astype(np.float32))):
            got = gw.quantile(pair[0], q, axis, weights=pair[1], method="inverted_cdf")
            assert isinstance(got, gw.Array)
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got.to_numpy(), want)


@pytest.mark.needs("float64")
def test_parts_are_compared_in_the_dtype_of_q(device):
    x, q = np.arange(5.0), np.float32([0.2, 0.4, 0.6])
    for each in (gw.asarray(x, device), x):
        assert gw.quantile(each, q, weights=np.ones(5), method="inverted_cdf", device=device).tolist() == [0, 1, 2]


def test_nothing_and_nan_alone(device):
    options = {"method": "inverted_cdf", "device": device}
    assert np.isnan(gw.quantile(np.zeros(0), 0.5, weights=[], **options))
    found = gw.nanquantile(np.array([[np.nan, np.nan], [np.nan, 2]]), 0.5, 1, weights=np.ones((2, 2)), **options)
    np.testing.assert_array_equal(found, [np.nan, 2])
    out = np.empty(2, np.float64)
    assert gw.quantile(np.array([3.0, 1, 2]), [0.1, 0.9], weights=[0, 1, 1], out=out, **options) is out
    assert out.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("weights", "options", "error", "says"),
    [
        ([1, 1, 1, 1], {"method": "linear"}, ArgumentError, "give method='inverted_cdf'"),
        ([1, 1], {}, DatatypeError, r"weights has shape \(2,\)"),
        ([1, 1], {"axis": 0}, LengthError, r"weights has shape \(2,\)"),
        ([1, 1, 1, 1], {"axis": 1}, AxisError, "axis=1"),
        ([0, 0, 0, 0], {}, ArgumentError, "must be finite"),
        ([1, np.nan, 1, 1], {}, ArgumentError, "must be finite"),
        ([1, -1, 1, 1], {}, ArgumentError, r"give np.abs\(weights\)"),
        (["a"] * 4, {}, DatatypeError, "weights: .* text is no number"),
    ],
)
def test_wrong_weights_say_what_to_do(device, weights, options, error, says):
    with pytest.raises(error, match=says):
        gw.quantile(np.arange(4.0), 0.5, weights=weights, device=device, **{"method": "inverted_cdf", **options})
