"""Operators: validation, identities per datatype, ordered keys, names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.binop import as_binop

BUILTIN = [gw.Add, gw.Min, gw.Max, gw.Multiply]
COMBINE = "fn combine(a: T, b: T) -> T { return a + b; }"


@pytest.mark.parametrize("op", BUILTIN, ids=repr)
def test_built_in_operators_are_found_by_name(op):
    assert as_binop(op.name) is op
    assert as_binop(op) is op
    assert op.builtin


def test_an_unknown_operator_is_refused_with_what_there_is():
    with pytest.raises(gw.ArgumentError, match=r"'xor' is unknown.*add, min, max, multiply"):
        as_binop("xor")
    with pytest.raises(gw.ArgumentError, match="unknown"):
        as_binop(np.add)


def test_exactly_one_of_wgsl_and_expression():
    with pytest.raises(gw.ArgumentError, match="exactly one"):
        gw.BinOp("none", 0, np.add)
    with pytest.raises(gw.ArgumentError, match="exactly one"):
        gw.BinOp("both", 0, np.add, wgsl=COMBINE, expression="a + b")


def test_a_text_without_combine_is_refused_and_shown():
    with pytest.raises(gw.ArgumentError, match=r"fn combine\(a: T, b: T\) -> T") as caught:
        gw.BinOp("typo", 0, np.add, wgsl="fn combined(a: T, b: T) -> T { return a; }")
    assert "fn combined(" in str(caught.value)


def test_the_numpy_twin_must_be_callable():
    with pytest.raises(gw.ArgumentError, match="numpy="):
        gw.BinOp("x", 0, "add", wgsl=COMBINE)


def test_a_users_operator_is_not_builtin_even_if_it_is_called_like_one():
    assert not gw.BinOp("add", 0, np.add, wgsl=COMBINE).builtin
    assert not gw.BinOp("add", 0, np.add, expression="a + b").builtin


@pytest.mark.parametrize("op", BUILTIN, ids=repr)
@pytest.mark.parametrize("datatype", gw.DATATYPES.values(), ids=str)
def test_combining_with_the_identity_changes_nothing(op, datatype):
    samples = np.array([0, 1, 7, 2**24], dtype=datatype.dtype)
    if datatype.dtype.kind == "f":
        samples = np.concatenate([samples, np.array([-np.inf, np.inf, -1.5], dtype=datatype.dtype)])
    identity = op.identity_for(datatype)
    assert identity.dtype == datatype.dtype
    np.testing.assert_array_equal(op.numpy(identity, samples), samples)
    np.testing.assert_array_equal(op.numpy(samples, identity), samples)


def test_float_min_and_max_have_infinities_as_identity_not_the_largest_float():
    assert gw.Min.identity_for(gw.DATATYPES["f32"]) == np.inf
    assert gw.Max.identity_for(gw.DATATYPES["f32"]) == -np.inf


def test_identities_by_datatype():
    op = gw.BinOp("and", {"u32": 0xFFFFFFFF, "i32": -1}, np.bitwise_and, wgsl=COMBINE)
    assert op.identity_for(gw.DATATYPES["u32"]) == 0xFFFFFFFF
    assert op.identity_for(gw.DATATYPES["i32"]) == -1
    assert op.accumulator(gw.DATATYPES["i32"]).identity_bits == 0xFFFFFFFF
    with pytest.raises(gw.ArgumentError, match="f32"):
        op.identity_for(gw.DATATYPES["f32"])


def test_an_identity_that_does_not_fit_is_refused():
    op = gw.BinOp("x", -1, np.add, wgsl=COMBINE)
    with pytest.raises(gw.DatatypeError, match="u32"):
        op.identity_for(gw.DATATYPES["u32"])


def test_empty_reductions():
    u32 = gw.DATATYPES["u32"]
    assert gw.Add.empty_result(u32) == 0
    assert gw.Multiply.empty_result(u32) == 1
    for op in (gw.Min, gw.Max):
        with pytest.raises(gw.EmptyReductionError, match="0 items"):
            op.empty_result(u32)


def test_only_float_min_and_max_hold_ordered_keys():
    for op in BUILTIN:
        for datatype in gw.DATATYPES.values():
            accumulator = op.accumulator(datatype)
            keyed = op in (gw.Min, gw.Max) and datatype.name == "f32"
            assert accumulator.key == (op.name if keyed else None)
            assert accumulator.wgsl == ("u32" if keyed else datatype.wgsl)


def _key(word: int) -> int:
    """The ordered key of shaders/lib/operator.wgsl, for words that are no NaN."""
    return word ^ (0xFFFFFFFF if word >> 31 else 0x80000000)


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_ordered_keys_order_as_floats_do_with_minus_zero_first(a, b):
    f32 = gw.DATATYPES["f32"]
    before = a < b or (a == b == 0 and np.signbit(a) and not np.signbit(b))
    assert (_key(f32.bits(a)) < _key(f32.bits(b))) == before


def test_the_accumulators_identity_is_the_key_of_the_identity():
    f32 = gw.DATATYPES["f32"]
    assert gw.Min.accumulator(f32).identity_bits == _key(f32.bits(np.inf))
    assert gw.Max.accumulator(f32).identity_bits == _key(f32.bits(-np.inf))


def test_operators_can_be_keys_of_a_dict():
    mapped = gw.BinOp("and", {"u32": 1}, np.bitwise_and, wgsl=COMBINE)
    table = {mapped: 1, gw.Add: 2}
    assert table[mapped] == 1
    assert table[gw.Add] == 2
