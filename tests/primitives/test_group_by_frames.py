"""`group_by` of columns of every kind that pandas has, with missing items and keys, against pandas."""

import numpy as np
import pytest

import gridwise_py as gw

pandas = pytest.importorskip("pandas")
pytestmark = [pytest.mark.gpu, pytest.mark.needs("module:pandas", "float64")]
AGGREGATES = (
    "sum",
    "mean",
    "median",
    "min",
    "max",
    "first",
    "last",
    "std",
    "var",
    "count",
    "size",
    "nunique",
    "quantile",
)
OF_LABELS = ("min", "max", "first", "last", "count", "size", "nunique")
OF_DATES = (*OF_LABELS, "mean", "std", "median", "quantile")


def _columns(rng, n):
    """Yield the name and the items of a column of each kind, and the aggregates that it has."""
    missing = rng.random(n) < rng.choice([0, 0.2, 0.9])
    whole, real = rng.integers(-100, 100, n), rng.normal(0, 50, n).round(1)
    for dtype in ("int8", "int16", "int32", "uint8", "uint16"):
        yield dtype, whole.astype(dtype), AGGREGATES
    yield "uint32", rng.integers(0, 2**32, n).astype(np.uint32), AGGREGATES
    yield "int64", rng.integers(-(2**62), 2**62, n), AGGREGATES
    yield "uint64", rng.integers(0, 2**60, n).astype(np.uint64), AGGREGATES
    yield "bool", whole > 0, tuple(each for each in AGGREGATES if each not in ("std", "var", "quantile"))
    for dtype in ("float32", "float64"):
        yield dtype, np.where(missing, np.nan, real).astype(dtype), AGGREGATES
    for dtype in ("Int64", "UInt8", "Float64", "Float32"):
        items = pandas.array(np.abs(whole) if dtype == "UInt8" else whole, dtype=dtype)
        items[missing] = pandas.NA
        yield dtype, items, AGGREGATES
    words = np.array(["a", "bb", "c\0", "", "é"], object)[rng.integers(0, 5, n)]
    yield "text", pandas.Series(words).where(~missing, None).astype(object), OF_LABELS
    yield "string", pandas.Series(words).where(~missing, None).astype("string"), OF_LABELS
    yield (
        "ordered",
        pandas.Categorical(np.where(missing, None, words), ["é", "c\0", "a", "bb", ""], ordered=True),
        OF_LABELS,
    )
    dates = pandas.Series(pandas.to_datetime(rng.integers(-(10**18), 2 * 10**18, n)))
    yield "datetime", dates.where(~missing), OF_DATES
    yield "zoned", dates.where(~missing).dt.tz_localize("UTC"), OF_LABELS
    yield "duration", pandas.Series(pandas.to_timedelta(whole, unit="min")).where(~missing), (*OF_DATES, "sum")


def _same(wanted, found):
    if pandas.isna(wanted) or pandas.isna(found):
        return pandas.isna(wanted) and pandas.isna(found)
    if isinstance(found, (np.datetime64, np.timedelta64)):
        # pandas rounds means of dates as floats, and cuts them to their unit.
        return abs(wanted - type(wanted)(found)) <= max(
            pandas.Timedelta("1us"), pandas.Timedelta(np.timedelta64(1, np.datetime_data(found.dtype)[0]))
        )
    if isinstance(wanted, (float, np.floating)) or isinstance(found, (float, np.floating)):
        return bool(np.isclose(float(wanted), float(found), rtol=2e-5, atol=1e-3))
    return wanted == found


@pytest.mark.parametrize(("seeds", "step"), [(range(1), 4), pytest.param(range(1, 61), 1, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_column(device, seeds, step):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 120))
        keys = pandas.Series(rng.integers(0, rng.integers(1, 12), n))
        for kind, items, known in list(_columns(rng, n))[::step]:
            series = pandas.Series(items)
            options = {how: (1,) for how in ("std", "var")}
            asked = {how: (series, how, *options.get(how, ())) for how in known}
            found = gw.group_by(keys, aggregates=asked, skipna=True, device=device)
            groups = series.groupby(keys)
            for how in known:
                wanted = list(getattr(groups, how)())
                assert len(wanted) == len(found[how])
                wrong = [k for k, pair in enumerate(zip(wanted, found[how], strict=True)) if not _same(*pair)]
                assert not wrong, (seed, kind, how, wanted[wrong[0]], found[how][wrong[0]])


@pytest.mark.parametrize(("items", "how"), [(["a", "b"], "mean"), (np.array([1, 2], "M8[s]"), "sum"), ([1j, 2], "sum")])
def test_what_a_kind_of_column_does_not_have_is_refused_by_name(device, items, how):
    with pytest.raises(TypeError):
        gw.group_by([1, 1], r=(items, how), device=device)
