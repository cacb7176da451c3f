"""What errors advise is run: the code is cut out of each text, and used on the input that raised it."""

import datetime
import decimal
import importlib

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.namespace import ATTRIBUTES_INSTEAD, INSTEAD
from helpers.remedies import codes_in

_DATES = np.array(["2020-01-03", "2020-01-01", "2020-01-02"], "M8[D]")
_SPANS = np.array([-172800, 86400], "m8[s]")
_TEXTS = ["b", "a", "b"]
_RANKS = [1, 0, 1]
_MASKED = np.ma.masked_equal([1, 2, 3], 2)


def _on_gpu(items):
    return lambda: gw.asarray(items)


class _MadeBy:
    """What a library that need not be there makes."""

    def __init__(self, module, make):
        self.module, self._make = module, make

    def __call__(self):
        return self._make(importlib.import_module(self.module))


_ZONED = _MadeBy("pandas", lambda pd: pd.Series(pd.to_datetime(_DATES)).dt.tz_localize("UTC"))
#: Of each error: the call, the argument whose place the advice takes ("" for that of the whole call), what is given
#: there, or makes it; the right result; and which of several advices is right for this input.
REMEDIES = [
    # Dates and times
    ("gw.cumsum(x)", "x", _SPANS, np.cumsum(_SPANS).astype(np.int64)),
    ("gw.searchsorted(x1, gw.asarray([18262]))", "x1", np.sort(_DATES), [0]),
    ("gw.searchsorted(np.array(['2020-01-01'], 'M8[D]'), x2)", "x2", [18262, 18263], [0, 1]),
    ("gw.searchsorted(np.array([1], 'm8[M]'), x2)", "x2", _SPANS, [0, 0]),
    ("gw.rolling(x, 2).sum()", "x", _DATES, [np.nan, 36526, 36525]),
    ("gw.rolling(x, 2).var()", "x", _SPANS, [np.nan, 259200**2 / 2]),
    ("gw.asarray(x)", "x", _DATES, _DATES.astype(np.int64)),
    ("gw.sum(x)", "x", _MadeBy("pandas", lambda pd: pd.Series(_SPANS)), -86400),
    ("gw.isnan(x)", "x", np.array(["2020-01-03", "NaT", "2020-01-01"], "M8[ns]"), [False, True, False]),
    ("gw.isnan(x)", "x", np.array([5, "NaT"], "m8[s]"), [False, True]),
    ("gw.nanargmin(x)", "x", np.array([5, "NaT", 7], "m8[ns]"), 0, 1),
    ("gw.quantile(x, 0.5, method='inverted_cdf', weights=weights)", "weights", np.array([-1, 1, 1, -2]), 2),
    ("gw.concatenate([np.float64([1]), x])", "x", _DATES[:1], [1, 18264]),
    ("gw.abs(x)", "", _SPANS, np.abs(_SPANS)),
    ("gw.sign(x)", "", _SPANS, np.sign(_SPANS)),
    ("gw.group_by([1, 1, 2], r=(x, 'var')).r", "x", _DATES, [1, 0]),
    ("gw.argsort(x)", "x", _ZONED, np.argsort(_DATES)),
    ("gw.argmax(x)", "x", _MadeBy("pandas", lambda pd: pd.to_datetime(_DATES).tz_localize("UTC")), 0),
    ("gw.join(np.array(['2020-01-02'], 'M8[D]'), right)[1]", "right", _ZONED, [2]),
    # Complex numbers, texts, objects
    ("gw.abs(x)", "", np.complex64([3 + 4j]), [5]),
    ("gw.sort(x)", "x", np.complex64([2 + 1j, 1]), [1, 2]),
    ("gw.sort(x)", "x", np.array(_TEXTS), sorted(_RANKS)),
    ("gw.abs(x)", "x", np.array(_TEXTS), _RANKS),
    ("gw.unique(x)", "x", np.array(_TEXTS, np.dtypes.StringDType()), [0, 1]),
    ("gw.asarray(x)", "x", np.array(_TEXTS), _RANKS),
    ("gw.group_by([1, 1, 2], r=(x, 'sum')).r", "x", np.array(_TEXTS), [1, 1]),
    ("gw.sum(x)", "x", np.array([decimal.Decimal("1.5"), 2], object), 3.5, 0),
    ("gw.compress(x, [5, 6, 7])", "x", np.array([True, None, False], object), [5], 1),
    ("gw.compress(x, [5, 6, 7])", "x", _MadeBy("polars", lambda pl: pl.Series([True, None, False])), [5], 1),
    ("gw.sort(x)", "x", np.array([datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)], object), [0, 1], 2),
    ("gw.sort(x)", "x", _MadeBy("pandas", lambda pd: pd.Categorical(_TEXTS)), sorted(_RANKS), 2),
    ("gw.sort(x)", "x", _MadeBy("pandas", lambda pd: pd.array(_TEXTS, dtype="string")), sorted(_RANKS), 2),
    ("gw.sort(x)", "x", _MadeBy("pandas", lambda pd: pd.interval_range(0, 2)), [0, 1], 2),
    ("gw.sort(x)", "x", _MadeBy("polars", lambda pl: pl.Series(_TEXTS, dtype=pl.Categorical)), sorted(_RANKS), 2),
    ("gw.sort(x)", "x", _MadeBy("pyarrow", lambda pa: pa.array(_TEXTS)), sorted(_RANKS), 2),
    ("gw.group_by([1, 1], r=(x, 'sum')).r", "x", np.array([decimal.Decimal(2), 1], object), [3], 0),
    ("gw.sum(x)", "x", _MASKED, 4, 0),
    ("gw.sum(x)", "x", _MASKED, 4, 1),
    ("gw.sum(x)", "x", _MadeBy("pandas", lambda pd: pd.array([1, None, 3], dtype="Int64")), 4, 1),
    # Items of 8 bytes
    ("gw.popcount(x)", "x", np.int32([3, 4]), [2, 1]),
    ("gw.asarray(gw.arange(3, dtype='f32') + x)", "x", _on_gpu(np.int32([1, 2, 3])), [1, 3, 5]),
    ("gw.asarray(x ** 0.5)", "x", _on_gpu(np.int32([4, 9])), [2, 3]),
    # Indices, counts and offsets
    ("gw.segmented_reduce(x, offsets)", "offsets", np.float32([0, 3, 4]), [3, 3]),
    ("gw.segmented_reduce(x, offsets)", "offsets", _on_gpu(np.float32([0, 3, 4])), [3, 3]),
    ("gw.segment_ids(offsets, size=3)", "offsets", _on_gpu(np.float32([0, 1, 3])), [0, 1, 1]),
    ("gw.repeat(x, repeats)", "repeats", np.float64([2, 0, 1, 0]), [0, 0, 2]),
    ("gw.take(x, indices)", "indices", [2.0, 0.0], [2, 0]),
    ("gw.take(x, indices)", "indices", _on_gpu(np.float32([2, 0])), [2, 0]),
    ("gw.delete(x, indices)", "indices", np.float32([2, 0]), [1, 3]),
    ("gw.searchsorted(x1, [1, 2], sorter=sorter)", "sorter", np.float32([0, 1, 2]), [0, 1]),
    ("gw.reduce_by_index(mask, x, length=4)", "mask", np.array([True, False, True]), None),
    ("gw.ediff1d(np.int16([1, 2, 4]), to_end)", "to_end", np.float32([7]), [1, 2, 7]),
    # Shapes and settings
    ("gw.segmented_reduce(x, [0, 2])", "x", np.ones((2, 2), np.int32), [2]),
    ("gw.segmented_reduce(x, [0, 2], axis=0)", "x", np.ones((2, 2), np.int32), None),
    ("gw.segmented_reduce(x, [0, 2], dtype='f32')", "x", np.ones(2, np.int32), None),
    ("gw.bincount([0, 1], weights)", "weights", np.ones((1, 2)), [1, 1]),
    ("gw.round(x, 1)", "", np.array([2.26, 3.35]), np.round([2.26, 3.35], 1)),
    ("gw.round(x, -1)", "", np.array([14, 26]), [10, 30]),
    ("gw.asarray(gw.round(x, -1))", "", _on_gpu(np.int32([14, 26])), [10, 30]),
    ("gw.asarray(gw.round(x, 1))", "", _on_gpu(np.float32([2.25])), np.float32([2.2])),
    ("gw.quantile(x, q)", "q", np.full((1, 1, 2), 0.5), [1.5, 1.5]),
    ("gw.ptp(x)", "x", np.array([True, False, True]), 1),
    ("gw.digitize([0, 1], bins)", "bins", np.array([0.0, 2, 1]), [1, 2]),
    ("gw.union1d(ar1, np.uint64([2**63 + 1]))", "ar1", [5], [5, 2**63 + 1]),
    ("gw.setxor1d(np.uint64([2**63 + 1]), ar2)", "ar2", _on_gpu(np.int32([5])), [5, 2**63 + 1]),
    ("gw.digitize([-1, 1], bins)", "bins", _on_gpu(np.uint64([2, 1])), [2, 1]),
    # Tables
    ("gw.group_by(table, t=('v', 'sum'))", "", _MadeBy("pandas", lambda pd: pd.DataFrame({"k": [1], "v": [2]})), None),
    ("gw.group_by(table, total=(1, 'sum')).total", "", _MadeBy("pandas", lambda pd: pd.DataFrame([[1, 2]])), None),
    ("gw.group_by(keys, 'k', n=gw.count).n", "keys", _MadeBy("polars", lambda pl: pl.LazyFrame({"k": [1, 1]})), [2]),
]  # fmt: skip


def _read(value):
    return value.to_numpy() if isinstance(value, gw.Array) else np.asarray(value)


def _param(k, row):
    needs = [pytest.mark.needs(f"module:{row[2].module}")] if isinstance(row[2], _MadeBy) else []
    if isinstance(row[2], np.ndarray) and row[2].dtype.kind == "O" and "sum" in row[0]:  # numbers that become float64
        needs.append(pytest.mark.needs("float64"))
    return pytest.param(row, marks=needs, id=f"{k}: {row[0]}")


@pytest.mark.parametrize("row", [_param(k, row) for k, row in enumerate(REMEDIES)])
@pytest.mark.filterwarnings("ignore")
def test_what_an_error_advises_is_right(row):
    call, name, given, right, *choice = row
    given = given() if callable(given) else given
    known = {"gw": gw, "np": np, "x": np.arange(4), "x1": np.array([4, 3, 1]), "table": given, name or "x": given}
    with pytest.raises(gw.GridwiseError) as caught:
        eval(call, dict(known))
    advices = codes_in(str(caught.value).partition("; ")[2], known)
    assert advices, caught.value
    for advice in [advices[choice[0]]] if choice else advices:
        value = eval(advice, dict(known))
        if right is not None:
            value = _read(
                eval(call, known | {name: value}) if name else gw.asarray(value) if "rint" in advice else value
            )
            np.testing.assert_allclose(value.astype(float), np.asarray(right).astype(float), rtol=1e-6)
        if right is not None and not choice:
            break


def _known_names(x, device):
    ramp = gw.asarray(np.arange(4, dtype=np.uint32), device)
    square = gw.asarray(np.eye(4, dtype=np.float32), device)
    return {
        "gw": gw, "np": np, "x": x, "y": square, "a": x, "b": x, "m": square, "z": np.complex64([2, 1j]), "keys": ramp,
        "k": 2, "shape": (2, 2), "low": 1, "high": 2, "condition": x > 1, "indices": ramp, "repeats": 2,
        "values": x.copy(),
    }  # fmt: skip


def test_what_takes_the_place_of_missing_names_can_be_run(device):
    items = np.float32([0, 1, 3, 0])
    on_host, on_gpu = (_known_names(x, device) for x in (items, gw.asarray(items, device)))
    for answer in dict.fromkeys(INSTEAD.values()):
        for code in codes_in(answer, on_gpu):
            try:
                eval(code, dict(on_host))
            except (gw.GridwiseError, AttributeError):
                eval(code, dict(on_gpu))


def test_what_takes_the_place_of_missing_attributes_can_be_run(device):
    square = gw.asarray(np.arange(16, dtype=np.float32).reshape(4, 4), device)
    for name, answer in ATTRIBUTES_INSTEAD.items():
        flat = name in ("compress", "put", "repeat", "searchsorted", "sort", "argpartition", "partition", "squeeze")
        known = _known_names(gw.arange(4, dtype="f32", device=device) if flat else square, device)
        codes = codes_in(answer, known)
        assert codes, answer
        for code in codes:
            eval(code, known)


@pytest.mark.parametrize(
    ("name", "x", "right"),
    [
        ("drop_duplicates", [3, 1, 3, 2], [3, 1, 2]),
        ("convolve", [1, 2, 3], [3, 5]),
        ("nancumsum", [1, np.nan, 2], [1, 1, 3]),
        ("trim_zeros", [0, 1, 0, 2, 0], [1, 0, 2]),
        ("select", [0, 1, 2], [0, 0, 2]),
        ("isposinf", [1, np.inf, -np.inf], [False, True, False]),
        ("signbit", [1, -1, -0.0, 0], [0, 1, 1, 0]),
        ("fabs", [-1, 2], [1, 2]),
        ("heaviside", [-1, 0, 2], [0, 0, 1]),
        ("hypot", [3, -4], np.hypot([3, -4], [3, -4]).astype(np.float32)),
        ("allclose", [1, 2], True),
        ("array_equal", [1, np.nan], False),
        ("interp", [1, 2, 3], [0, 1, 2]),
        ("gradient", [1, 4, 2], [3, -2]),
        ("hstack", [1, 2], [1, 2, 1, 2]),
        ("pad", [1, 2, 3, 4], [3, 4, 1, 2, 3, 4, 1, 2, 3]),
        ("diagonal", [], [1, 1, 1, 1]),
        ("flipud", [], np.flipud(np.eye(4))),
        ("swapaxes", [], np.eye(4)),
        ("unravel_index", [], [0, 0, 1, 1]),
        ("outer", [1, 2], [[1, 2], [2, 4]]),
        ("dot", [], np.eye(4)),
    ],
)
def test_what_takes_the_place_of_a_missing_name_is_right(name, x, right, device):
    on_host = "numpy array" in INSTEAD[name]
    known = _known_names(np.float32(x) if on_host else gw.asarray(np.float32(x), device), device)
    value = eval(codes_in(INSTEAD[name], known)[0], known)
    np.testing.assert_array_equal(_read(value if on_host else gw.asarray(value)), right)


def test_any_other_name_of_numpy_is_said_to_be_there(monkeypatch):
    monkeypatch.setattr(np, "of_tomorrow", len, raising=False)
    with pytest.raises(AttributeError, match=r"'of_tomorrow': np\.of_tomorrow computes it on the host"):
        _ = gw.of_tomorrow
