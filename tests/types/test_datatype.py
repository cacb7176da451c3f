"""Datatypes: names, limits, bits, and the errors for those that kernels do not have."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.types.datatype import (
    DATATYPES,
    MATMUL_DATATYPES,
    STORAGE_DATATYPES,
    VALUE_DATATYPES,
    as_datatype,
)

COMPUTED = list(gw.DATATYPES.values())
ALL = list(gw.STORAGE_DATATYPES.values())


@pytest.mark.parametrize(("name", "dtype"), [("u32", np.uint32), ("i32", np.int32), ("f32", np.float32)])
def test_a_name_a_dtype_a_class_and_itself_mean_the_same(name, dtype):
    datatype = gw.DATATYPES[name]
    for value in (name, dtype, np.dtype(dtype), np.dtype(dtype).name, datatype):
        assert as_datatype(value) is datatype
    assert str(datatype) == name
    assert datatype.wgsl == name
    assert datatype.dtype == dtype
    assert datatype.itemsize_bytes == 4


KNOWN = {
    "compute": DATATYPES, "values": VALUE_DATATYPES, "matmul": MATMUL_DATATYPES,
    "items": STORAGE_DATATYPES,
}  # fmt: skip
#: Arrays that are refused somewhere, and the expressions that the message gives; the last says "all of it is kept".
REFUSED = [
    (np.array([0, 255], np.uint8), "compute", ["x.astype(np.uint32)"], True),
    (np.array([0, 65535], np.uint16), "matmul", ["x.astype(np.float32)"], True),
    (np.array([-128, 127], np.int8), "values", ["x.astype(np.int32)"], True),
    (np.array([True, False]), "values", ["x.astype(np.uint32)"], True),
    (np.array([0.5, -2], np.float16), "compute", ["x.astype(np.float32)"], True),
    (np.array([0.5, -2], np.float16), "values", ["x.astype(np.float32)"], True),
    (np.array([-5, 2**31 - 1], np.int64), "compute", ["x.astype(np.int32)", "x.astype(np.float32)"], True),
    (np.array([5, 2**32 - 1], np.uint64), "compute", ["x.astype(np.uint32)", "x.astype(np.float32)"], True),
    (np.array([0.1, 1e9], np.float64), "compute", ["x.astype(np.float32)"], False),
    (np.array([0.1, 1e9], np.float64), "matmul", ["x.astype(np.float32)"], False),
    (np.array([0.1, 1e9], np.longdouble), "items", ["x.astype(np.float64)"], False),
    (np.array([-5, 2**24], np.int32), "matmul", ["x.astype(np.float32)"], True),
    (np.array([5, 2**24], np.uint32), "matmul", ["x.astype(np.float32)"], True),
    (np.array([5, 7], ">u4"), "compute", ["x.astype(x.dtype.newbyteorder('='))"], True),
    (np.array([0.1, 7], ">f8"), "items", ["x.astype(x.dtype.newbyteorder('='))"], True),
    (np.array([5, 7], ">i8"), "compute", ["x.astype(np.int32)", "x.astype(np.float32)"], True),
    (np.array(["b", "a", "b"]), "items", ["np.unique(x, return_inverse=True)[1].astype(np.uint32)"], False),
    (np.array([b"b", b"a"]), "matmul", ["np.unique(x, return_inverse=True)[1].astype(np.float32)"], False),
    (
        np.array(["2026-01-01", "2025-01-01"], "M8[s]"), "items",
        ["x.astype(np.int64)", "x[~np.isnat(x)].astype(np.int64)"], False,
    ),
    (
        np.array(["2026-01-01", "2025-01-01"], "M8[s]"), "compute",
        ["((x - np.nanmin(x)) / np.timedelta64(1, 's')).astype(np.float32)"], False,
    ),
    (np.array([3, 1], "m8[h]"), "matmul", ["(x / np.timedelta64(1, 's')).astype(np.float32)"], False),
    (np.array([1, 2.5], object), "compute", ["np.array(x, dtype=np.float32)"], True),
    (np.array([(1, 2.5)], [("a", "u4"), ("b", "f4")]), "compute", ["x['a']"], False),
    (np.array([b"abcd"], "V4"), "matmul", ["x.view(np.float32)"], False),
]  # fmt: skip


@pytest.mark.parametrize(("x", "where", "expressions", "keeps"), REFUSED, ids=lambda v: str(getattr(v, "dtype", "")))
def test_the_remedy_for_a_dtype_works_where_it_is_given(x, where, expressions, keeps):
    """Each expression of the message makes an array that is taken there, and loses what the message says only."""
    with pytest.raises(gw.DatatypeError) as caught:
        as_datatype(x.dtype, KNOWN[where])
    message = str(caught.value).partition("; ")[2].rpartition("; ")[0]
    for expression in expressions:
        assert expression in message
        message = message.replace(expression, "")
        converted = eval(expression, {"np": np, "x": x})
        as_datatype(converted.dtype, KNOWN[where])
        if keeps and expression == expressions[0]:
            np.testing.assert_array_equal(converted, x.astype(x.dtype.newbyteorder("=")))
    assert "astype" not in message, "no other advice"


def test_a_remedy_never_names_what_was_refused():
    characters = np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?OSUV"
    for known, dtype in itertools.product(KNOWN.values(), map(np.dtype, characters)):
        try:
            as_datatype(dtype, known)
        except gw.DatatypeError as error:
            remedy = str(error).partition("; ")[2].rpartition("; ")[0]
            assert not re.search(rf"\b(np|numpy)\.{dtype.name}\)", remedy)
            assert remedy, dtype


def test_what_a_conversion_loses_is_said():
    def remedy(dtype):
        with pytest.raises(gw.DatatypeError) as caught:
            as_datatype(dtype)
        return str(caught.value)

    assert "within -2**31 to 2**31 - 1 (others would wrap)" in remedy(np.int64)
    assert "within 0 to 2**32 - 1 (others would wrap)" in remedy(np.uint64)
    assert "np.float32) (exact to 2**24, rounds beyond)" in remedy(np.int64)
    assert "rounds to about 7 digits; infinite beyond 3.4e+38" in remedy(np.float64)
    assert "x.real and x.imag" in remedy(np.complex64)
    assert "datatype '>f4' is not supported" in remedy(np.dtype(">f4"))
    assert "in this machine's byte order" in remedy(np.dtype(">f4"))


def test_nonsense_is_refused_with_what_there_is():
    for value in ("u33", "", object(), 7, [1]):
        with pytest.raises(gw.DatatypeError, match="u32"):
            as_datatype(value)


def test_lowest_and_highest_are_the_identities_of_max_and_min():
    for datatype in ALL:
        if datatype.dtype.kind == "f":
            ends = -np.inf, np.inf
        elif datatype.name == "bool":
            ends = 0, 1
        else:
            ends = np.iinfo(datatype.dtype).min, np.iinfo(datatype.dtype).max
        assert (datatype.lowest, datatype.highest) == ends


@settings(max_examples=100)
@given(datatype=st.sampled_from(ALL), bits=st.integers(0, 2**64 - 1))
def test_words_are_those_of_the_value_as_kernels_compute_with_it(datatype, bits):
    if datatype.name == "bool":
        value = np.bool_(bits & 1)
    else:
        value = np.array([bits], dtype=np.uint64).view(datatype.dtype)[0]
    words = datatype.words(value)
    computed = gw.STORAGE_DATATYPES[datatype.computed_as].dtype
    assert len(words) == computed.itemsize // 4
    (found,) = np.array(words, dtype=np.uint32).view(computed)
    if np.isnan(value):
        assert np.isnan(found)
    else:
        assert found == value
        assert np.signbit(found.astype(np.float64)) == np.signbit(value.astype(np.float64))


def test_a_value_that_does_not_fit_is_refused():
    for name, value in (
        ("u32", -1), ("u32", 2**32), ("i32", 2**31), ("u32", "x"), ("u32", [1, 2]), ("u8", 256), ("i8", -129),
        ("u64", 2**64), ("i64", 2**63),
    ):  # fmt: skip
        with pytest.raises(gw.DatatypeError, match=name):
            gw.STORAGE_DATATYPES[name].words(value)


def test_minus_zero_keeps_its_sign():
    assert gw.DATATYPES["f32"].words(-0.0) == (0x80000000,)
    assert gw.STORAGE_DATATYPES["f16"].words(-0.0) == (0x80000000,)
    assert gw.STORAGE_DATATYPES["f64"].words(-0.0) == (0, 0x80000000)


@pytest.mark.parametrize(
    "value", [np.complex64, np.dtype("V8"), np.dtype([("a", "u4"), ("b", "u4")]), "U3", "M8[s]", object]
)
def test_no_conversion_is_advised_that_would_lose_what_the_items_are(value):
    with pytest.raises(gw.DatatypeError, match="supported are") as caught:
        as_datatype(np.dtype(value))
    assert "Convert" not in str(caught.value)
