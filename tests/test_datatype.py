"""Datatypes: names, limits, bits, and the errors for those that kernels do not have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.datatype import as_datatype

ALL = list(gw.DATATYPES.values())


@pytest.mark.parametrize(("name", "dtype"), [("u32", np.uint32), ("i32", np.int32), ("f32", np.float32)])
def test_a_name_a_dtype_a_class_and_itself_mean_the_same(name, dtype):
    datatype = gw.DATATYPES[name]
    for value in (name, dtype, np.dtype(dtype), np.dtype(dtype).name, datatype):
        assert as_datatype(value) is datatype
    assert str(datatype) == name
    assert datatype.wgsl == name
    assert datatype.dtype == dtype
    assert datatype.itemsize_bytes == 4


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (np.float64, "float32"),
        (np.float16, "float32"),
        (np.int64, "int32"),
        (np.int8, "int32"),
        (np.uint8, "uint32"),
        (np.uint64, "uint32"),
        (np.bool_, "uint32"),
    ],
)
def test_an_unknown_dtype_is_refused_with_what_there_is_and_a_remedy(value, remedy):
    with pytest.raises(gw.DatatypeError, match=f"astype\\(np.{remedy}\\)") as caught:
        as_datatype(value)
    for datatype in ALL:
        assert datatype.name in str(caught.value)


@pytest.mark.parametrize("value", ["u33", "", object(), 7, [1]])
def test_nonsense_is_refused_with_what_there_is(value):
    with pytest.raises(gw.DatatypeError, match="u32"):
        as_datatype(value)


@pytest.mark.parametrize("datatype", ALL, ids=str)
def test_lowest_and_highest_are_the_identities_of_max_and_min(datatype):
    if datatype.dtype.kind == "f":
        assert datatype.lowest == -np.inf
        assert datatype.highest == np.inf
    else:
        assert datatype.lowest == np.iinfo(datatype.dtype).min
        assert datatype.highest == np.iinfo(datatype.dtype).max


@pytest.mark.parametrize("datatype", ALL, ids=str)
@given(word=st.integers(0, 2**32 - 1))
def test_bits_are_the_bits_of_the_value(datatype, word):
    value = np.array([word], dtype=np.uint32).view(datatype.dtype)[0]
    bits = datatype.bits(value)
    if np.isnan(value):
        assert np.isnan(np.array([bits], dtype=np.uint32).view(datatype.dtype)[0])
    else:
        assert bits == word


@pytest.mark.parametrize(
    ("name", "value"), [("u32", -1), ("u32", 2**32), ("i32", 2**31), ("u32", "x"), ("u32", [1, 2])]
)
def test_a_value_that_does_not_fit_is_refused(name, value):
    with pytest.raises(gw.DatatypeError, match=name):
        gw.DATATYPES[name].bits(value)


def test_minus_zero_keeps_its_sign():
    assert gw.DATATYPES["f32"].bits(-0.0) == 0x80000000
