"""Rolling windows against pandas, and against each window by itself."""

from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.primitives.rolling import RollingWindows
from gridwise_py.runtime.array import default_float
from gridwise_py.runtime.context import context_of

pd = pytest.importorskip("pandas")

RESULTS = ("sum", "mean", "min", "max", "count", "var", "std")
#: Of 0, 1 and 2 levels of totals. With one less it is the same text.
WINDOWS = (5, 20, 150)


def _data(rng, shape, dtype=np.float32, special=0.1):
    x = (rng.standard_normal(shape) * 10).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(shape) < special] = np.nan
        for number in (np.inf, -np.inf, -0.0):
            x[rng.random(shape) < special / 5] = number
    return x


def _of_pandas(x, name, window, periods=None, **options):
    return getattr(pd.Series(np.asarray(x, np.float64)).rolling(window, periods), name)(**options).to_numpy()


def _assert_close(got, want, x, window=1):
    """Compare sums with the largest that they may be, others with the items or their squares."""
    got = got.to_numpy() if isinstance(got, gw.Array) else got
    assert isinstance(got, np.ndarray)
    eps = float(np.finfo(got.dtype).eps)
    largest = float(np.max(np.abs(x), initial=1, where=np.isfinite(x)))
    np.testing.assert_allclose(got, want, rtol=64 * eps, atol=64 * eps * window * largest**2)


@pytest.mark.parametrize("name", RESULTS)
def test_windows_of_all_sizes_over_arrays_of_all_lengths(device, name):
    rng = np.random.default_rng(RESULTS.index(name))
    for window in WINDOWS if name in ("sum", "var") else WINDOWS[1:2]:
        for n in (0, 1, 2, 7, window - 1, window, window + 1, 1023, 1024, 1025, 4099):
            x = _data(rng, n, special=rng.choice([0, 0.1, 0.7]))
            for size, periods in ((window, None), (window, 0), (window, 1), (window - 1, window // 2)):
                got = getattr(gw.rolling(gw.asarray(x, device), size, periods), name)()
                assert isinstance(got, gw.Array)
                assert got.dtype == np.float32
                _assert_close(got, _of_pandas(x, name, size, periods), x, size)


@pytest.mark.parametrize("ddof", [0, 2])
def test_the_divisor_of_variances(device, ddof):
    x = _data(np.random.default_rng(ddof), 300, special=0.5)
    windows = gw.rolling(x, 5, 1, device=device)
    for name in ("var", "std"):
        _assert_close(getattr(windows, name)(ddof), _of_pandas(x, name, 5, 1, ddof=ddof), x)


def test_what_leaves_a_window_leaves_no_trace(device):
    """Differences of prefix sums lose all of these."""
    x = np.random.default_rng(1).integers(-100, 100, 1 << 16).astype(np.float32)
    x[:3] = np.nan, np.inf, 3e38
    for window in (20, 1100):  # of three levels
        each = np.lib.stride_tricks.sliding_window_view(x, window)[3:]
        windows = gw.rolling(gw.asarray(x, device), window)
        np.testing.assert_array_equal(windows.sum().to_numpy()[window + 2 :], each.sum(1, dtype=np.float64))
        np.testing.assert_array_equal(windows.min().to_numpy()[window + 2 :], each.min(1))
    far = (x[3:] + 2**20).astype(np.float32)  # their squares have more digits than float32 has
    got = gw.rolling(gw.asarray(far, device), 20).var().to_numpy()[19:]
    np.testing.assert_allclose(
        got, np.lib.stride_tricks.sliding_window_view(far, 20).var(1, ddof=1, dtype="f8"), rtol=1e-2
    )


@pytest.mark.parametrize("dtype", ["f8", "i8", "u4", "i2", "?"])
def test_items_of_other_datatypes_are_float64_as_in_pandas(device, dtype):
    found = default_float(context_of(device)).dtype
    x = _data(np.random.default_rng(2), 500, dtype)
    if dtype == "f8" and found != dtype:
        with pytest.raises(gw.DatatypeError, match=r"x\.astype\(np\.float32\)"):
            gw.rolling(x, 20, device=device)
        return
    for given in (x, gw.asarray(x, device)):
        got = gw.rolling(given, 20, 10, device=device).mean()
        assert got.dtype == found
        assert type(got) is type(given)
        _assert_close(got, _of_pandas(x, "mean", 20, 10), x)
    _assert_close(gw.rolling(x, 20, 10, device=device).var(), _of_pandas(x, "var", 20, 10), x)
    if dtype == "f8":
        x.view(np.uint64)[::7] = 0x7FF0000000000001  # a NaN that is next to infinity
        _assert_close(gw.rolling(x, 20, device=device).count(), _of_pandas(x, "count", 20), x)


@pytest.mark.parametrize("shape", [(7, 61), (3, 20, 9), (40, 3), (2, 0), (0, 3)])
def test_windows_lie_along_an_axis(device, shape):
    x = _data(np.random.default_rng(3), shape)
    for axis in range(len(shape)):
        want = np.empty(shape)
        for row, of_row in zip(np.moveaxis(x, axis, -1).reshape(-1, shape[axis]) if x.size else (),
                               np.ndindex(*np.delete(shape, axis)), strict=False):  # fmt: skip
            np.moveaxis(want, axis, -1)[of_row] = _of_pandas(row, "sum", 19, 2)
        for given in (x, gw.asarray(x, device), gw.asarray(x, device) + 0):
            got = gw.rolling(given, 19, 2, axis=axis - len(shape), device=device).sum()
            assert got.shape == shape
            _assert_close(got, want, x, 19)


def test_windows_end_where_segments_do(device):
    rng = np.random.default_rng(4)
    x = _data(rng, 3001)
    ids = np.repeat(rng.integers(0, 3, 400), rng.integers(1, 60, 400))[:3001]
    runs = np.cumsum(np.diff(ids, prepend=ids[0]) != 0)
    want = pd.Series(x.astype(np.float64)).groupby(runs).rolling(20, 3).sum().to_numpy()
    for given in (
        ids,
        ids.astype(str),
        [*map(int, ids)],
        gw.asarray(ids, device),
        gw.asarray(ids.astype("u4"), device),
    ):
        _assert_close(gw.rolling(gw.asarray(x, device), 20, 3, segment_ids=given).sum(), want, x, 20)
    assert gw.rolling(x[:0], 2, segment_ids=ids[:0], device=device).sum().shape == (0,)


def test_what_is_larger_than_a_binding(device):
    caps = gw.capabilities(device)
    limits = {"max-storage-buffer-binding-size": 8192, "min-storage-buffer-offset-alignment": 256}
    caps = replace(caps, limits={**caps.limits, **limits})
    x = _data(np.random.default_rng(5), 5000)
    windows = RollingWindows(device, "f32", "sum", rows=1, length=5000, window=150, least=1, capabilities=caps)
    got = windows.execute(input=gw.asarray(x, device)).output
    _assert_close(got, _of_pandas(x, "sum", 150, 1), x, 150)


def test_windows_of_no_items_and_of_more_than_there_are(device):
    x = np.array([1, 2, np.nan, 4], np.float32)
    for window, periods in ((0, None), (9, None), (9, 2), (2**32 - 1, 1), (1, None)):
        for name in ("sum", "mean", "count", "var"):
            got = getattr(gw.rolling(pd.Series(x), np.int64(window), periods, device=device), name)()
            _assert_close(got, _of_pandas(x, name, min(window, 2**31), periods), x)


@pytest.mark.needs("float64")
@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float32"])
def test_what_is_missing_in_a_nullable_column_is_nan(device, dtype):
    column = pd.Series([1, None, 0, 1], dtype=dtype)
    got = gw.rolling(column, 2, 1, device=device).sum()
    np.testing.assert_array_equal(got, column.rolling(2, 1).sum().to_numpy(np.float64, na_value=np.nan))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((-1,), {}, gw.ArgumentError, "window must be an integer of at least 0"),
        ((2.5,), {}, gw.DatatypeError, "window must be an integer"),
        ((True,), {}, gw.DatatypeError, "window must be an integer"),
        (("2D",), {}, gw.DatatypeError, "window must be an integer"),
        ((2, 3), {}, gw.ArgumentError, "min_periods must be .* at most 2, not 3"),
        ((2, -1), {}, gw.ArgumentError, "min_periods must be an integer of at least 0"),
        ((2,), {"axis": 1}, gw.AxisError, "axis=1 is out of bounds"),
        ((2,), {"center": True}, gw.CallError, "each window ends at its item"),
        ((2,), {"segment_ids": [1, 2]}, gw.LengthError, "x has 3 items, segment_ids has 2"),
        ((2,), {"segment_ids": [[1, 2, 3]]}, gw.ArgumentError, r"give x\.ravel\(\)"),
    ],
)
def test_errors_say_what_is_wrong(device, arguments, options, error, message):
    with pytest.raises(error, match=message):
        gw.rolling(np.ones(3, np.float32), *arguments, device=device, **options)


@pytest.mark.parametrize("x", [np.float32(3), np.zeros(3, "c8"), ["a", "b"]])
def test_items_that_have_no_windows(device, x):
    with pytest.raises((gw.ArgumentError, gw.DatatypeError), match=r"gw\.rolling\(\): x"):
        gw.rolling(x, 2, device=device)
    with pytest.raises(gw.ArgumentError, match="ddof must be"):
        gw.rolling([1, 2], 2, device=device).var(-1)
