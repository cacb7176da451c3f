"""Operators of one argument: what is refused, what tells them apart, and the check before their first use."""

import copy
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.types.operator_text import UNARY, scoped
from gridwise_py.types.unary_operators import Abs, Negate, Square, as_unaryop

APPLY = "fn apply(x: T) -> T { return x + x; }"
BUILTIN = [Negate, Abs, Square]
PLANNING = {"device": None, "capabilities": gw.Capabilities()}


def _twice(x):
    return x + x


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        ({}, gw.ArgumentError, "UnaryOp 'bad' needs exactly one of wgsl= .a function 'apply'. and expression="),
        ({"wgsl": APPLY, "expression": "x"}, gw.ArgumentError, "exactly one"),
        ({"expression": _twice}, gw.DatatypeError, "expression= of UnaryOp 'bad' must be a str of WGSL, not function"),
        ({"expression": "x; }"}, gw.ArgumentError, "has ';'; it must be one WGSL expression of x, such as 'x . x'"),
        ({"expression": "x) + (x"}, gw.ArgumentError, "did not open"),
        ({"expression": " "}, gw.ArgumentError, "is empty"),
        ({"expression": "x +\u2028 x"}, gw.ArgumentError, "u2028"),
        ({"wgsl": APPLY + " }"}, gw.ArgumentError, "did not open"),
        ({"wgsl": "/* " + APPLY + " */"}, gw.ArgumentError, "does not define 'apply'; it must hold 'fn apply"),
        ({"wgsl": "fn combine(a: T, b: T) -> T { return a; }"}, gw.ArgumentError, "does not define 'apply'"),
        ({"wgsl": APPLY + " var<private> y: u32;"}, gw.ArgumentError, "something else: 'var<private"),
        ({"wgsl": APPLY + " @compute @workgroup_size(1) fn evil() {}"}, gw.ArgumentError, "something else: '@compute"),
        ({"wgsl": "const T = 1u; " + APPLY}, gw.ArgumentError, "declares 'T', which is the name of a type"),
        ({"wgsl": "fn apply(x: T, y: T) -> T { return x; }"}, gw.ArgumentError, "which does not take one T and return"),
        ({"wgsl": "fn apply(x: T) -> f32 { return x; }"}, gw.ArgumentError, "which does not take one T and return one"),
        ({"wgsl": "fn apply(x: Acc) -> Acc { return x; }"}, gw.ArgumentError, "which does not take one T and return"),
        ({"expression": "x", "numpy": "twice"}, gw.ArgumentError, r"numpy= must be a callable f\(x\) that does"),
        ({"expression": "x", "max_ulps": -1}, gw.ArgumentError, "max_ulps=-1 of UnaryOp 'bad' must be a number of 0"),
        ({"expression": "x", "max_ulps": float("nan")}, gw.ArgumentError, "max_ulps=nan"),
        ({"expression": "x", "max_ulps": "4"}, gw.ArgumentError, "max_ulps='4'"),
    ],
)  # fmt: skip
def test_what_cannot_be_an_operator_is_refused(options, kind, why):
    with pytest.raises(kind, match=why) as caught:
        gw.UnaryOp("bad", **{"numpy": _twice, **options})
    assert "'bad'" in str(caught.value)


def test_an_operator_for_one_datatype_is_refused_for_another():
    op = gw.UnaryOp("typed", _twice, wgsl="fn apply(x: u32) -> u32 { return x + x; }")
    gw.Map(dtype="u32", op=op, **PLANNING).plan(gw.Layout.separate(input=9, output=9))
    with pytest.raises(
        gw.DatatypeError, match="'apply' of UnaryOp 'typed' is written for u32, but the items are of f32"
    ):
        gw.Map(dtype="f32", op=op, **PLANNING).plan(gw.Layout.separate(input=9, output=9))


def test_an_unknown_operator_is_refused_with_what_there_is():
    for value in ("sqrt", np.sqrt, gw.Add):
        with pytest.raises(
            gw.ArgumentError, match=r"is unknown; known are negate, abs, square, or give a gridwise_py\.Un"
        ):
            as_unaryop(value)
    with pytest.raises(gw.ArgumentError, match=r"'square' is unknown; known are add, "):
        gw.Reduce(dtype="u32", op="square", **PLANNING)
    with pytest.raises(gw.ArgumentError, match=r"UnaryOp\('square'\) is unknown; known are add, "):
        gw.Reduce(dtype="u32", op=Square, **PLANNING)


def test_names_that_a_text_declares_are_its_own():
    text = "const f4 = T(2); fn abs(x: T) -> T { return x * f4; } fn apply(x: T) -> T { return abs(x); }"
    assert scoped(UNARY, text) == (
        "const own_f4 = T(2); fn own_abs(x: T) -> T { return x * own_f4; } fn apply(x: T) -> T { return own_abs(x); }"
    )


# ---- what tells them apart


def test_built_in_operators_are_found_by_name_and_survive_copies():
    for op in BUILTIN:
        assert as_unaryop(op.name) is op
        assert as_unaryop(op) is op
        assert op.builtin
        for other in (copy.copy(op), copy.deepcopy(op), pickle.loads(pickle.dumps(op))):
            assert other is op


def test_operators_are_compared_by_all_that_they_say():
    op = gw.UnaryOp("own", _twice, expression="x + x", check=[1, 2], max_ulps=3)
    for other in (copy.deepcopy(op), pickle.loads(pickle.dumps(op)), replace(op)):
        assert other == op
        assert hash(other) == hash(op)
    for change in ({"name": "other"}, {"expression": "x * 2"}, {"check": True}, {"max_ulps": 4}, {"numpy": np.square}):
        assert replace(op, **change) != op
    assert repr(op) == "UnaryOp('own')"


def test_a_users_operator_has_checks_even_if_it_is_called_like_one():
    mine = gw.UnaryOp("square", np.square, expression="x * x")
    assert not mine.builtin
    layout = gw.Layout.separate(input=9, output=9)
    for op, level in ((mine, "bounds"), (replace(mine, shader_checks="all"), "all"), (Square, "none")):
        plan = gw.Map(dtype="u32", op=op, **PLANNING).plan(layout)
        assert plan.shader_checks == (level,)


# ---- the check before first use


@pytest.mark.parametrize(
    ("twin", "why"),
    [
        (lambda x: x.nothing, r"numpy= of UnaryOp 'p' raised AttributeError.*one numpy array of uint32, item by item"),
        (np.sum, r"numpy= of UnaryOp 'p' gave shape \(\) for one numpy array of shape"),
    ],
)
def test_a_twin_that_does_not_work_is_an_error_without_a_gpu(twin, why):
    op = gw.UnaryOp("p", twin, expression="x")
    with pytest.raises(gw.ArgumentError, match=why):
        gw.Map(dtype="u32", op=op, **PLANNING)
    gw.Map(dtype="u32", op=replace(op, check=False), **PLANNING)


def _bound(device, datatype, op):
    """Make a map and bind it: the first plan on a device checks the operator there."""
    return gw.Map(device, datatype, op).bind(input=gw.empty(1, datatype, device))


def test_wgsl_that_differs_from_the_twin_is_an_error(device):
    op, datatype = gw.UnaryOp("p", _twice, expression="x * x"), "u32"
    with pytest.raises(gw.ArgumentError, match=r"'p' on \w+: its WGSL gives apply\(1\S*\) = 1\S*, but numpy= gives 2"):
        _bound(device, datatype, op)
    _bound(device, datatype, replace(op, check=[0, 2]))
    _bound(device, datatype, replace(op, check=[]))


def test_what_an_expression_gives_for_vectors_is_checked_as_well(device):
    """It is right for any item alone, but not for four of which some are 0: `all` looks at all of them."""
    op = gw.UnaryOp("p", _twice, expression="select(x, x + x, all(x != x - x))")
    with pytest.raises(gw.ArgumentError, match=r"apply\(1\) = 1, but numpy= gives 2"):
        _bound(device, "u32", op)


def test_what_is_wrong_only_for_some_data_is_a_warning(device):
    op = gw.UnaryOp("size", np.abs, expression="max(x, x - x)")
    with pytest.warns(
        gw.GridwiseWarning, match=r"'size' on f32: its WGSL gives apply\(-1.0\) = 0.0, .*gives 1.0.*check="
    ):
        _bound(device, "f32", op)
    _bound(device, "u32", op)
    _bound(device, "f32", replace(op, check=[0, 0.5, 1e6]))


def test_values_to_check_with_are_of_the_datatype():
    op = gw.UnaryOp("p", _twice, expression="x + x", check=[0.5])
    gw.Map(dtype="f32", op=op, **PLANNING)
    with pytest.raises(gw.DatatypeError, match=r"check 0\.5 of UnaryOp 'p' is not a whole number"):
        gw.Map(dtype="u32", op=op, **PLANNING)


def test_the_check_allows_the_ulps_that_an_operator_states(device):
    """Of a third and of its neighbours: the text is 3 ulps above the twin."""
    third = gw.UnaryOp(
        "third", lambda x: x + np.float32(1) / np.float32(3),
        wgsl="fn apply(x: T) -> T { return bitcast<T>(bitcast<u32>(x + 0x1.555556p-2) + 3u); }", check=[0, 1, 2, 77],
    )  # fmt: skip
    for ulps in (None, 3, 1e9):
        _bound(device, "f32", replace(third, max_ulps=ulps))
    for ulps in (0, 2):
        with pytest.raises(gw.ArgumentError, match=rf"further away than max_ulps={ulps} allows: state the accuracy"):
            _bound(device, "f32", replace(third, max_ulps=ulps))


def test_an_operator_is_checked_once_for_a_device(device):
    calls = []
    op = gw.UnaryOp("counted", lambda x: (calls.append(1), x + x)[1], expression="x + x")
    _bound(device, "u32", op)
    after = len(calls)
    assert after
    _bound(device, "u32", replace(op))
    assert len(calls) == after
    _bound(device, "i32", op)
    assert len(calls) > after


def test_a_text_that_does_not_compile_names_the_operator(fresh_device):
    with pytest.raises(gw.ShaderError, match=re.escape("nonsense")):
        _bound(fresh_device, "u32", gw.UnaryOp("broken", _twice, expression="x + nonsense"))
