"""The tasks of docs/howto/tables.md, each against pandas on frames as pandas makes them."""

import re
from pathlib import Path

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytestmark = [pytest.mark.gpu, pytest.mark.needs("module:pandas", "float64")]
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "tables.md"
CITIES = ["Rome", "Oslo", None]


def _sales(rng, n):
    frame = pandas.DataFrame(
        {
            "time": pandas.Timestamp("2026-03-01") + pandas.to_timedelta(rng.integers(0, 4 * 86_400, n), unit="s"),
            "shop": rng.choice(np.array(["north", "south", "west", None], object), n),
            "product": pandas.Categorical(
                rng.choice(np.array(["tea", "rice", None], object), n), ["tea", "oil", "rice"]
            ),
            "price": np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 20, n)),
            "units": rng.integers(1, 9, n),
        }
    )
    return frame, pandas.DataFrame(
        {"shop": ["south", "north", "west", "south"], "city": ["Bari", "Oslo", "Cork", "Rome"]}
    )


@pytest.fixture(scope="module")
def tasks():
    known = {}
    exec("".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)), known)
    return known


def _weighted(rows):
    rows = rows.dropna(subset=["price"])
    return (rows["price"] * rows["units"]).sum() / rows["units"].sum()


@pytest.mark.parametrize("n", [1, 3, 500])
def test_each_task_gives_what_pandas_gives(tasks, n, tmp_path):
    rng = np.random.default_rng(n)
    sales, shops = _sales(rng, n)
    if n < 10:
        sales["price"] = np.arange(n) + 0.5
    by_shop = sales.groupby("shop")
    sales.to_csv(tmp_path / "sales.csv")
    assert tasks["read"](tmp_path / "sales.csv") == sales["units"].sum()
    pandas.testing.assert_frame_equal(tasks["clean"](sales), sales.dropna(subset=["price"]))
    joined = sales.merge(shops, on="shop", how="left")
    found = tasks["join"](sales, shops)
    assert (
        found["city"].where(found["city"].notna(), None).tolist()
        == joined["city"].where(joined["city"].notna(), None).tolist()
    )
    assert found["units"].tolist() == joined["units"].tolist()
    wanted = by_shop.agg(
        total=("units", "sum"), mean=("price", "mean"), spread=("price", "std"), latest=("time", "max"),
        products=("product", "nunique"),
    ).reset_index()  # fmt: skip
    pandas.testing.assert_frame_equal(tasks["group"](sales), wanted, check_dtype=False)
    np.testing.assert_allclose(tasks["window"](sales), by_shop["price"].rolling(7, min_periods=1).mean())
    np.testing.assert_allclose(tasks["quantile"](sales), by_shop["price"].quantile(0.9))
    first = sales.sort_values(["shop", "price"], ascending=[True, False], kind="stable").groupby("shop").head(3)
    pandas.testing.assert_frame_equal(tasks["top_k"](sales, 3), first)
    pandas.testing.assert_frame_equal(tasks["deduplicate"](sales), sales.drop_duplicates(["shop", "product"]))
    hours = sales.resample("h", on="time")["units"].sum()
    pandas.testing.assert_series_equal(
        tasks["resample"](sales), hours, check_names=False, check_freq=False, check_index_type=False
    )
    weighted = [_weighted(rows) for _, rows in by_shop]
    np.testing.assert_allclose(tasks["weighted_mean"](sales), weighted)
    counts = sales.groupby(["shop", "product"], observed=False).size().unstack()
    np.testing.assert_array_equal(tasks["pivot"](sales), counts.to_numpy())
    low, high = sales["price"].quantile([0.01, 0.99])
    np.testing.assert_allclose(tasks["clip"](sales), sales["price"].clip(low, high))
    np.testing.assert_array_equal(tasks["rank"](sales), sales["units"].rank())
    if n > 2:
        np.testing.assert_allclose(tasks["correlate"](sales), sales[["price", "units"]].corr(), rtol=1e-9)


@pytest.mark.needs("module:altair")
def test_the_plot_shows_all_prices(tasks):
    sales, _ = _sales(np.random.default_rng(5), 300)
    chart = tasks["plot"](sales).to_dict()
    assert sum(row["rows"] for rows in chart["datasets"].values() for row in rows) == sales["price"].notna().sum()
