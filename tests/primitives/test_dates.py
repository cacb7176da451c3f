"""Dates and durations of the host, against numpy; and what pandas, polars and pyarrow hold."""

import operator

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.errors import DatatypeError, EmptyReductionError

#: With the ends of their type, of which NaT takes the least.
ENDS = np.array([2**63 - 1, -(2**63) + 1, 0, -1], np.int64)


def _items(dtype, n, missing, seed=0, most=2**63 - 1):
    """Few numbers, so that many are equal, and the ends, at most `most`; some are NaT."""
    rng = np.random.default_rng(seed)
    items = np.where(rng.random(n) < 0.2, rng.choice(ENDS.clip(-most, most), n), rng.integers(-9, 9, n)).view(dtype)
    items[rng.random(n) < missing] = "NaT"
    return items


def _assert_same(got, want):
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for own, other in zip(got, want, strict=True):
            _assert_same(own, other)
        return
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


#: Each of a module, gw or np, and of dates.
CALLS = {
    "sort": lambda m, x: m.sort(x),
    "argsort": lambda m, x: m.argsort(x, kind="stable"),
    "partition": lambda m, x: np.sort(m.partition(x, 0)),
    "unique": lambda m, x: m.unique(x),
    "unique index": lambda m, x: m.unique(x, return_index=True, return_inverse=True, return_counts=True),
    "unique apart": lambda m, x: m.unique(x, True, True, True, equal_nan=False),
    "unique_counts": lambda m, x: m.unique_counts(x),
    "unique_inverse": lambda m, x: operator.itemgetter(*m.unique_inverse(x)[1:])(m.unique_inverse(x)[0]),
    "unique_all": lambda m, x: m.unique_all(x)[:2],
    "min": lambda m, x: m.min(x),
    "max": lambda m, x: m.max(x),
    "nanmin": lambda m, x: m.nanmin(x),
    "nanmax": lambda m, x: m.nanmax(x),
    "initial": lambda m, x: m.max(x, initial=x.ravel()[0], where=np.arange(x.shape[-1]) > 0),
    "argmin": lambda m, x: m.argmin(x),
    "argmax": lambda m, x: m.argmax(x),
    "ptp": lambda m, x: m.ptp(x),
    "diff": lambda m, x: m.diff(x),
    "diff 3": lambda m, x: m.diff(x[np.isnat(x) | (np.abs(x.astype(np.int64)) < 10)], 3),
    "ediff1d": lambda m, x: m.ediff1d(x),
    "take": lambda m, x: m.take(x, [0, -1]),
    "compress": lambda m, x: m.compress(np.arange(x.size) % 3 == 1, x),
    "repeat": lambda m, x: m.repeat(x, 2),
    "roll": lambda m, x: m.roll(x, 3),
    "flip": lambda m, x: m.flip(x),
    "concatenate": lambda m, x: m.concatenate([x, x[:1]]),
    "stack": lambda m, x: m.stack([x, x], -1),
}
#: Differences beyond int64 wrap around up to numpy 2.4, and are an error from 2.5 on.
MOST = dict.fromkeys(("ptp", "diff", "ediff1d"), 2**62 - 1)
EMPTY = ("partition", "min", "max", "nanmin", "nanmax", "initial", "argmin", "argmax", "ptp", "take", "unique_inverse")


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning", "ignore:overflow:RuntimeWarning")
def test_results_are_numpys(device, monkeypatch, name):
    monkeypatch.setattr(gw.runtime.device, "_default", [device])
    call = CALLS[name]
    for dtype, missing in (("M8[ns]", 0.2), ("m8[s]", 0), ("M8[D]", 1)):
        for n in (0, 1, 2, 300):
            if n or name not in EMPTY:
                x = _items(dtype, n, missing, n, MOST.get(name, 2**63 - 1))
                _assert_same(call(gw, x), call(np, x))
    x = _items("M8[h]", 64, 0.1, 0, MOST.get(name, 2**63 - 1))
    _assert_same(call(gw, x.astype(">M8[h]")), call(np, x))


@pytest.mark.parametrize("axis", [0, -1])
def test_dates_along_an_axis(device, axis):
    x = _items("M8[us]", 96, 0.1, most=MOST["diff"]).reshape(8, 12)
    for name in ("sort", "min", "max", "argmin", "argmax", "diff"):
        _assert_same(getattr(gw, name)(x, axis=axis, device=device), getattr(np, name)(x, axis=axis))
    order = gw.argsort(x, axis=axis, device=device)
    np.testing.assert_array_equal(order, np.argsort(x, axis=axis, kind="stable"))


def test_nat_is_last_whatever_the_order(device):
    x = np.array(["2020", "NaT", "1969", "NaT", "2021"], "M8[Y]")
    assert gw.sort(x, descending=True, device=device).astype(str).tolist() == ["2021", "2020", "1969", "NaT", "NaT"]
    assert gw.argsort(x, descending=True, device=device).tolist() == [4, 0, 2, 1, 3]
    for mode in ({}, {"mode": "largest"}):
        assert gw.top_k(x, 4, **mode, device=device).indices.tolist() == [4, 0, 2, 1]
    found = gw.top_k(x, 4, mode="smallest", device=device)
    assert (found.values.astype(str).tolist(), found.indices.tolist()) == (
        ["1969", "2020", "2021", "NaT"],
        [2, 0, 4, 1],
    )
    _assert_same(gw.nth_element(x, [0, -1], device=device), np.sort(x)[[0, -1]])
    assert np.isnat(gw.minmax(x, device=device)).all()
    assert gw.argminmax(x, device=device)[:2] == (1, 1)
    assert gw.argminmax(x[[0, 2, 4]], device=device) == (1, 2, x[2], x[4])
    # numpy's plain calls look up hashes, which find NaT equal; those that sort do not.
    _assert_same(gw.unique_values(x, device=device), np.sort(x))
    assert gw.unique(x[:3], equal_nan=False, device=device).size == 3


def test_units_are_promoted(device):
    days = np.array(["1969", "2020-01-01", "NaT"], "M8[D]")
    hours = np.array(["2019-12-31T23", "2020-01-01T00", "1900", "NaT"], "M8[h]")
    for side in ("left", "right"):
        _assert_same(gw.searchsorted(days, hours, side, device=device), np.searchsorted(days, hours, side))
        _assert_same(gw.searchsorted(days, hours[0], side, device=device), np.searchsorted(days, hours[0], side))
    shuffled = [2, 1, 0]
    _assert_same(
        gw.searchsorted(days[shuffled], hours, sorter=shuffled, device=device),
        np.searchsorted(days[shuffled], hours, sorter=shuffled),
    )
    assert gw.digitize(hours[:2], days[:2], device=device).tolist() == [1, 2]
    assert gw.diff(days, 0, device=device) is days
    for ends in ({"prepend": hours[0]}, {"append": hours[:2]}, {"prepend": hours[3], "append": days[:1]}):
        _assert_same(gw.diff(days, device=device, **ends), np.diff(days, **ends))


def test_out_is_filled(device):
    x = np.array([3, 1, "NaT"], "m8[s]")
    for name, out in (
        ("sort", np.empty(3, "m8[s]")),
        ("min", np.empty((), "m8[s]")),
        ("argmax", np.empty((), np.intp)),
    ):
        want = getattr(np, name)(x)
        assert getattr(gw, name)(x, out=out, device=device) is out
        np.testing.assert_array_equal(out, want)
    with pytest.raises(DatatypeError, match=r"give np.empty\(3, np.dtype\('<m8\[s\]'\)\)"):
        gw.sort(x, out=np.empty(3, "m8[D]"), device=device)


@pytest.mark.needs("float64")
def test_columns_of_other_libraries(device):
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    x = np.array(["2020-02-01", "NaT", "1969-01-01T05", "2020-02-01"], "M8[us]")
    for column in (
        pd.Series(x),
        pd.DatetimeIndex(x),
        pl.Series(x),
        pa.array(x),
        pd.Series(x, dtype="timestamp[us][pyarrow]"),
    ):
        _assert_same(gw.sort(column, device=device), np.sort(x))
        _assert_same(gw.diff(column, device=device), np.diff(x))
        _assert_same(gw.rolling(column, 2, 1, device=device).max(), x[[0, 0, 2, 3]])
    _assert_same(gw.nanmax([*x], device=device), np.nanmax(x))
    with pytest.raises(DatatypeError, match="mask"):
        gw.sort(np.ma.masked_equal(x, x[0]), device=device)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x, d: gw.searchsorted(x, [1, 2]), "x1 is of datetime64.*, but x2 of int64"),
        (lambda x, d: gw.searchsorted([1, 2], x), "x2 is of datetime64.*, but x1 of int64"),
        (lambda x, d: gw.searchsorted(x, x - x), "but x2 of timedelta64"),
        (lambda x, d: gw.searchsorted(x, gw.asarray([1], d)), "give x1.astype"),
        (lambda x, d: gw.take(x, gw.asarray([1], d)), "give x.astype"),
        (lambda x, d: gw.diff(x, prepend=0), "gw.diff.*DateTime64DType.*; convert some"),
        (lambda x, d: gw.min(x, initial=0), "but initial of int64"),
        (lambda x, d: gw.take([1, 2], x), "indices is of datetime64"),
        (lambda x, d: gw.cumsum(x), "datetime64"),
        (lambda x, d: gw.isin(x, x), "datetime64"),
        pytest.param(
            lambda x, d: gw.rolling(x, 2).mean(), "mean.*datetime64.*give x.astype", marks=pytest.mark.needs("float64")
        ),
        pytest.param(
            lambda x, d: gw.rolling(x - x, 2).std(),
            "std.*timedelta64.*give x.astype",
            marks=pytest.mark.needs("float64"),
        ),
    ],
)
def test_what_dates_are_no_part_of_says_so(device, call, says):
    with pytest.raises(DatatypeError, match=says):
        call(np.array(["2020", "2021"], "M8[s]"), device)
    with pytest.raises(EmptyReductionError):
        gw.min(np.array([], "M8[s]"), device=device)


@pytest.mark.parametrize(("window", "least"), [(3, None), (3, 1), (1, 0), (0, 0), (50, 2)])
@pytest.mark.needs("float64")
def test_windows_of_dates(device, window, least):
    """Numbers that no float holds, against each window by itself."""
    needed = window if least is None else least
    for x in (_items("M8[ns]", 40, 0.2), _items("m8[ns]", 40, 0.2, 1) // 2**20, _items("M8[D]", 0, 0)):
        windows = gw.rolling(x.astype(x.dtype.newbyteorder(">")), window, least, device=device)
        parts = [x[max(k + 1 - window, 0) : k + 1] for k in range(x.size)]
        parts = [part[~np.isnat(part)] for part in parts]
        for name in ("min", "max", *(("sum", "mean") if x.dtype.kind == "m" else ())):
            at_least = needed if name == "sum" else max(needed, 1)
            want = [getattr(np, name)(part) if part.size >= at_least else np.array("NaT", x.dtype) for part in parts]
            _assert_same(getattr(windows, name)(), np.array(want, x.dtype))
        counts = np.array([part.size for part in parts], float)
        counts[: max(needed - 1, 0)] = np.nan
        np.testing.assert_array_equal(windows.count(), counts)


@pytest.mark.needs("float64")
def test_windows_of_dates_along_axes_and_in_segments(device):
    x = _items("M8[ns]", 24, 0.2, 4).reshape(6, 4)
    down = gw.rolling(x, 2, 1, axis=0, device=device).min()
    for column in range(4):
        _assert_same(down[:, column], gw.rolling(x[:, column], 2, 1, device=device).min())
    ids = np.repeat([0, 1, 2], 8)
    found = gw.rolling(x.ravel(), 30, 1, segment_ids=ids, device=device).max()
    for k in range(3):
        _assert_same(found[8 * k : 8 * k + 8], gw.rolling(x.ravel()[8 * k : 8 * k + 8], 30, 1, device=device).max())
