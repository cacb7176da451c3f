"""`join`: against pandas.merge on random frames, and against plain loops where pandas refuses."""

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.errors import ArgumentError, DatatypeError, LengthError

pd = pytest.importorskip("pandas")
NS = np.datetime64("2020-01-01", "ns")


def _text(k):
    return pd.Series([None if each == 3 else f"key {each}" for each in k], dtype=object)


#: By its name, a column made of small integers, of which 3 becomes what is missing.
COLUMNS = {
    "int64": lambda k: k - 5,
    "int8": lambda k: (k - 5).astype(np.int8),
    "uint64": lambda k: k.astype(np.uint64) + np.uint64(2**63),
    "float64": lambda k: np.where(k == 3, np.nan, np.where(k == 4, -0.0, np.where(k == 5, 0.0, k / 3))),
    "float32": lambda k: np.where(k == 3, np.nan, k / 3).astype(np.float32),
    "text": _text,
    "categories": lambda k: pd.Series(pd.Categorical.from_codes(k % 4 - 1, categories=["z", "b", "y"])),
    "Int64": lambda k: pd.Series([None if each == 3 else int(each) + 2**60 for each in k], dtype="Int64"),
    "boolean": lambda k: pd.Series([None if each == 3 else bool(each % 2) for each in k], dtype="boolean"),
    "dates": lambda k: pd.Series(np.where(k == 3, np.datetime64("NaT"), NS + k * np.timedelta64(1, "h"))),
    "durations": lambda k: pd.Series(np.where(k == 3, np.timedelta64("NaT", "s"), k * np.timedelta64(1, "s"))),
}


def _merged(left, right, how):
    """The positions by pandas."""
    tables = [pd.DataFrame({str(k): column for k, column in enumerate(side)}) for side in (left, right)]
    names = list(tables[0].columns)
    tables = [table.assign(**{name: np.arange(len(table))}) for table, name in zip(tables, "lr", strict=True)]
    found = tables[0].merge(tables[1], on=names, how=how)
    return found.l.to_numpy(), found.r.fillna(-1).to_numpy().astype(np.intp)


def _assert_same(found, wanted):
    for own, want in zip(found, wanted, strict=True):
        assert own.dtype == np.intp
        np.testing.assert_array_equal(own, want)


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("kinds", [*((name,) for name in COLUMNS), ("int64", "text"), ("float64", "Int64", "dates")])
def test_rows_are_those_of_pandas(device, kinds, how):
    rng = np.random.default_rng(len(kinds))
    for sizes in ((300, 257), (1, 40)):
        sides = [[COLUMNS[name](rng.integers(0, 12, n)) for name in kinds] for n in sizes]
        given = sides if len(kinds) > 1 else [side[0] for side in sides]
        _assert_same(gw.join(*given, how, device=device), _merged(*sides, how))


@pytest.mark.parametrize(
    ("left", "right", "rows", "places"),
    [
        # Integers of two dtypes are compared exactly, floats as numpy promotes them.
        (np.uint64([2**64 - 1, 2**63, 7, 2**53 + 1]), np.int64([-1, 7, -(2**63), 2**53]), [2], [1]),
        (np.int64([-1, 7, -(2**63)]), np.uint64([2**64 - 1, 7, 2**63]), [1], [1]),
        (np.int32([1, 2]), np.float32([2, 1.5, np.nan]), [1], [0]),
        (np.float32([np.nan]), np.uint32([0xFFC00001, 0x7F800001, 0x7FC00000]).view(np.float32), [0, 0, 0], [0, 1, 2]),
        (np.float32([0.1, 0.5]), np.float64([0.1, 0.5]), [1], [1]),
        (np.array([True, False]), np.array([1, 2]), [0], [0]),
        (np.array([1, 2], ">i8"), np.array([2], ">u2"), [1], [0]),
        # A date that nanoseconds do not hold equals none that its wrapped number is.
        (
            np.array(["2500-01-01", "2020-01-01", "NaT"], "M8[s]"),
            np.array(["NaT", "1915-06-14T00:25:26.290448384", "2020-01-01"], "M8[ns]"),
            [1, 2],
            [2, 0],
        ),
        (np.array([1, 2, "NaT"], "m8[s]"), np.array([2000, 5], "m8[ms]"), [1], [0]),
        # Missing numbers of any kind are equal, and no number is.
        (pd.array([0, None], dtype="Int64"), pd.array([None, 2**64 - 1, 0], dtype="UInt64"), [0, 1], [2, 0]),
        (pd.array([0, None], dtype="Int64"), np.array([np.nan, 0.0]), [0, 1], [1, 0]),
        (pd.Categorical(["a", "b"]), pd.Categorical(["b", None, "c"]), [1], [0]),
        (pd.Categorical([4, 5]), np.array([5.0]), [1], [0]),
        (np.array([2**70, 1, None], object), [None, 2**70], [0, 2], [1, 0]),
        ([1, 2**64 - 1], np.uint64([2**64 - 2, 2**64 - 1]), [1], [1]),
        (np.array([True, None], object), np.array([True]), [0], [0]),
        (np.array([b"a\0", b"b"]), np.array([b"b"]), [1], [0]),
        # Neither a number that 32 bits cut, nor bits of one column in place of another's.
        (np.int64([1]), np.int64([2**32 + 1, 2**63 - 1]), [], []),
        ((np.uint32([1]), np.uint32([0])), (np.uint32([0]), np.uint32([2**31])), [], []),
        ((np.uint32([0]), np.uint32([1])), (np.uint32([1]), np.uint32([0])), [], []),
        # No rows, no matches, an empty list beside anything.
        (np.array([1, 2]), np.array([3]), [], []),
        (["a"], [], [], []),
        ([], np.array(["2020"], "M8[D]"), [], []),
        (([1, 2], ["a", "b"]), ([], []), [], []),
    ],
)
def test_columns_of_two_dtypes(device, left, right, rows, places):
    _assert_same(gw.join(left, right, device=device), (rows, places))
    every = range(len(left[0] if isinstance(left, tuple) else left))
    pairs = sorted([*zip(rows, places, strict=True), *((row, -1) for row in every if row not in rows)])
    _assert_same(gw.join(left, right, "left", device=device), np.reshape(pairs, (-1, 2)).T)


@pytest.mark.parametrize("how", ["inner", "left"])
def test_arrays_stay_on_the_gpu(device, how):
    rng = np.random.default_rng(3)
    for _ in range(4):  # the last calls by a recipe
        keys = [rng.integers(0, 50, n).astype(np.uint32) for n in (300, 90)]
        rows, places = _merged(*([each] for each in keys), how)
        arrays = [gw.asarray(each, device) for each in keys]
        found = gw.join(*arrays, how)
        assert [(each.dtype, each.count) for each in found] == [(np.uint32, None), (np.int32, None)]
        assert [each.tolist() for each in found] == [rows.tolist(), places.tolist()]
        for size in (1000, 10):
            counted = gw.join(*arrays, how, size=size)
            assert [each.count.item() for each in counted] == [rows.size] * 2
            assert [each.tolist() for each in counted] == [rows[:size].tolist(), places[:size].tolist()]


def test_columns_of_the_host_beside_arrays(device):
    ids = np.uint64([2**64 - 1, 5, 5]), np.int64([5, -1, 5])
    names = ["a", "b", "a"], ["b", "a", "a"]
    found = gw.join((gw.asarray(ids[0], device), names[0]), (gw.asarray(ids[1], device), names[1]), "left")
    assert [each.tolist() for each in found] == [[0, 1, 2], [-1, 0, 2]]
    found = gw.join(gw.zeros(0, "u32", device), gw.arange(3, dtype="u32", device=device), "left")
    assert [each.tolist() for each in found] == [[], []]


@pytest.mark.parametrize(
    ("left", "right", "error", "says"),
    [
        (["a"], np.array([1]), DatatypeError, r"np.asarray\(left\).astype\(str\)"),
        (np.array(["2020"], "M8[D]"), np.array([1]), DatatypeError, r"np.asarray\(left\).astype\(np.int64\)"),
        (np.array([1]), pd.Series([], dtype=str), DatatypeError, "numbers, but right of text"),
        (np.array([1]), np.array([-1, 2**64 - 1], object), DatatypeError, "numbers, but right of text"),
        (np.array([b"a"]), ["a"], DatatypeError, "bytes, but right of text"),
        (np.array([1j]), np.array([1j]), DatatypeError, "complex128"),
        (([1, 2], [1]), ([1], [1]), LengthError, "slice them"),
        (([1], [1]), [1], ArgumentError, "left has 2 columns of keys, but right has 1"),
        ({"a": [1]}, [1], ArgumentError, "a tuple of its columns"),
        (np.zeros((2, 2)), [1], ArgumentError, "one dimension"),
    ],
)
def test_wrong_calls_say_what_to_do(device, left, right, error, says):
    with pytest.raises(error, match=says):
        gw.join(left, right, device=device)


def test_more_pairs_than_32_bits_count(device):
    keys = gw.zeros(1 << 16, "u32", device)
    with pytest.raises(ArgumentError, match=r"4294967296 pairs"):
        gw.join(keys, keys)
    with pytest.raises(ArgumentError, match="trim"):
        gw.join(gw.unique(keys), keys)
    with pytest.raises(ArgumentError, match="inner, left"):
        gw.join(keys, keys, "outer")
