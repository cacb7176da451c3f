"""Operators of two arguments and of one: what is refused, identities, what tells them apart, the check before use."""

import copy
import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from helpers import inside

BUILTIN = [gw.Add, gw.Min, gw.Max, gw.Multiply]
COMBINE = "fn combine(a: T, b: T) -> T { return a + b; }"
APPLY = "fn apply(x: T) -> T { return x + x; }"
PLANNING = {"device": None, "capabilities": gw.Capabilities()}


def _twice(x):
    return x + x


def _plus(**options):
    return gw.BinOp("p", 0, np.add, expression="a + b", **options)


def _double(**options):
    return gw.UnaryOp("p", _twice, expression="x + x", **options)


#: What runs an operator of each kind, and one.
KINDS = pytest.mark.parametrize(("cls", "make"), [(gw.Reduce, _plus), (gw.Map, _double)], ids=["BinOp", "UnaryOp"])


def _bound(device, datatype, op):
    """Make what runs an operator and bind it: the first plan on a device checks the operator there."""
    cls = gw.Map if isinstance(op, gw.UnaryOp) else gw.Reduce
    return cls(device, datatype, op).bind(input=gw.empty(9, datatype, device))


# ---- what is refused


def test_an_unknown_operator_is_refused_with_what_there_is():
    for cls, op, words in (
        (gw.Reduce, "xor", r"'xor' is unknown.*add, min, max, multiply"),
        (gw.Reduce, np.add, "unknown"),
        (gw.Reduce, "square", r"'square' is unknown; known are add, "),
        (gw.Reduce, gw.UnaryOp.builtins["square"], r"UnaryOp\('square'\) is unknown; known are add, "),
        *((gw.Map, op, r"is unknown; known are negate, abs, square, or give a gridwise_py\.Un")
          for op in ("sqrt", np.sqrt, gw.Add)),
    ):  # fmt: skip
        with pytest.raises(gw.ArgumentError, match=words):
            cls(dtype="u32", op=op, **PLANNING)


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        ({}, gw.ArgumentError, "exactly one"),
        ({"wgsl": COMBINE, "expression": "a + b"}, gw.ArgumentError, "exactly one"),
        ({"wgsl": "fn combined(a: T, b: T) -> T { return a; }"}, gw.ArgumentError,
         r"fn combine\(a: T, b: T\) -> T[\s\S]*fn combined\("),
        ({"wgsl": COMBINE, "numpy": "add"}, gw.ArgumentError, "numpy="),
        *(({option: lambda a, b: a + b}, gw.DatatypeError,
           f"{option}= of BinOp 'bad' must be a str of WGSL, not function.*numpy=")
          for option in ("wgsl", "expression")),
        *(({"wgsl": f"fn combine{signature} {{ return a; }}"}, gw.ArgumentError,
           r"declares 'fn combine\(.*two T and return one") for signature in (
            "(a: T, b: T) -> f32", "(a: T, b: T)", "(a: T) -> T", "(a: T, b: T, c: T) -> T", "(a: u32, b: f32) -> u32",
            "(a: vec2<u32>, b: vec2<u32>) -> vec2<u32>")),
    ],
)  # fmt: skip
def test_what_cannot_combine_is_refused(options, kind, why):
    with pytest.raises(kind, match=why):
        gw.BinOp("bad", 0, **{"numpy": np.add, **options})


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
def test_what_cannot_apply_is_refused(options, kind, why):
    with pytest.raises(kind, match=why) as caught:
        gw.UnaryOp("bad", **{"numpy": _twice, **options})
    assert "'bad'" in str(caught.value)


def test_an_operator_for_one_datatype_is_refused_for_another(device):
    op = gw.BinOp("typed", 0, np.add, wgsl="fn combine(a: u32, b: u32) -> u32 { return a + b; }")
    assert gw.reduce(np.arange(10, dtype=np.uint32), op, device=device) == 45
    one = gw.UnaryOp("typed", _twice, wgsl="fn apply(x: u32) -> u32 { return x + x; }")
    layout = gw.Layout.separate(input=9, output=9)
    gw.Map(dtype="u32", op=one, **PLANNING).plan(layout)
    for call in (lambda: gw.Reduce(device, "f32", op), lambda: gw.Map(dtype="f32", op=one, **PLANNING).plan(layout)):
        with pytest.raises(gw.DatatypeError, match="'typed' is written for u32, but the items are of f32"):
            call()


def test_combining_with_the_identity_changes_nothing():
    """Infinities are the identities of minimum and maximum of floats, not the largest float."""
    for op, datatype in itertools.product(BUILTIN, gw.DATATYPES.values()):
        samples = np.array([0, 1, 7, 2**24], dtype=datatype.dtype)
        if datatype.dtype.kind == "f":
            samples = np.concatenate([samples, np.array([-np.inf, np.inf, -1.5], dtype=datatype.dtype)])
        identity = op.identity_for(datatype)
        assert identity.dtype == datatype.dtype
        np.testing.assert_array_equal(op.numpy(identity, samples), samples)
        np.testing.assert_array_equal(op.numpy(samples, identity), samples)


def test_identities_by_datatype():
    op = gw.BinOp("and", {"u32": 0xFFFFFFFF, "i32": -1}, np.bitwise_and, wgsl=COMBINE)
    assert op.identity_for(gw.DATATYPES["u32"]) == 0xFFFFFFFF
    assert op.identity_for(gw.DATATYPES["i32"]) == -1
    assert op.accumulator(gw.DATATYPES["i32"]).identity_words == (0xFFFFFFFF,)
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


def test_only_min_and_max_of_floats_and_of_64_bits_hold_ordered_keys():
    for op in BUILTIN:
        for datatype in gw.STORAGE_DATATYPES.values():
            accumulator = op.accumulator(datatype)
            keyed = op in (gw.Min, gw.Max) and (datatype.dtype.kind == "f" or datatype.itemsize_bytes == 8)
            assert accumulator.key == (op.name if keyed else None)
            assert accumulator.words == (2 if datatype.itemsize_bytes == 8 else 1)
            plain = {1: datatype.wgsl, 2: "vec2<u32>"}[accumulator.words]
            assert accumulator.wgsl == (plain.replace("f32", "u32") if keyed else plain)


def _key(words: tuple[int, ...], kind: str = "f") -> int:
    """The ordered key of shaders/lib/operator.wgsl and lib/convert.wgsl, for words that are no NaN."""
    bits, sign = sum(word << 32 * k for k, word in enumerate(words)), 1 << (32 * len(words) - 1)
    if kind == "u":
        return bits
    return bits ^ (2 * sign - 1 if kind == "f" and bits & sign else sign)


@pytest.mark.parametrize("name", ["f32", "f64", "i64", "u64"])
@given(data=st.data())
def test_ordered_keys_order_as_numbers_do_with_minus_zero_first(name, data):
    datatype = gw.STORAGE_DATATYPES[name]
    if datatype.dtype.kind == "f":
        numbers = st.floats(width=8 * datatype.itemsize_bytes, allow_nan=False)
    else:
        numbers = st.integers(datatype.lowest, datatype.highest)
    a, b = data.draw(numbers), data.draw(numbers)
    before = a < b or (a == b == 0 and np.signbit(float(a)) and not np.signbit(float(b)))
    kind = datatype.dtype.kind
    assert (_key(datatype.words(a), kind) < _key(datatype.words(b), kind)) == before


@pytest.mark.parametrize("name", ["f16", "f32", "f64", "i64", "u64"])
def test_the_accumulators_identity_is_the_key_of_the_identity(name):
    datatype = gw.STORAGE_DATATYPES[name]
    for op, identity in ((gw.Min, datatype.highest), (gw.Max, datatype.lowest)):
        words = op.accumulator(datatype).identity_words
        key = _key(datatype.words(identity), datatype.dtype.kind)
        assert sum(word << 32 * k for k, word in enumerate(words)) == key


@pytest.mark.parametrize(
    ("identity", "datatype", "why"),
    [
        (0.5, "u32", "not a whole number"),
        (np.nan, "i32", "not a whole number"),
        ("7", "u32", "of type str"),
        (None, "f32", "of type NoneType"),
        (1j, "f32", "of type complex"),
        (np.array([1, 2]), "u32", "of type ndarray"),
        (2**31, "i32", "is not from -2147483648 to 2147483647"),
        (1e10, "u32", "is not from 0"),
        (1e300, "f32", "beyond the largest float"),
        (10**400, "f32", "cannot be held"),
    ],
)
def test_an_identity_that_would_become_another_number_is_refused(identity, datatype, why):
    op = gw.BinOp("odd", identity, np.add, expression="a + b")
    with pytest.raises(gw.DatatypeError, match=f"identity .*of BinOp 'odd' .*{why}.*{datatype}"):
        op.identity_for(gw.DATATYPES[datatype])


@pytest.mark.parametrize(
    ("identity", "datatype", "value"),
    [(np.float64(3), "i32", 3), (np.array(5), "u32", 5), (True, "u32", 1), (np.inf, "f32", np.inf), (0.1, "f32", 0.1)],
)
def test_identities_that_are_taken(identity, datatype, value):
    found = gw.BinOp("fine", identity, np.add, expression="a + b").identity_for(gw.DATATYPES[datatype])
    assert found == gw.DATATYPES[datatype].dtype.type(value)


# ---- what tells them apart


def test_built_in_operators_are_found_by_name_and_survive_copies():
    for cls, builtins in ((gw.Reduce, BUILTIN), (gw.Map, gw.UnaryOp.builtins.values())):
        for op in builtins:
            assert cls(dtype="u32", op=op.name, **PLANNING).op is op
            for other in (copy.deepcopy(op), copy.copy(op), pickle.loads(pickle.dumps(op))):
                assert other is op
    gw.Reduce(None, "f32", replace(gw.Add), compensated=True, capabilities=gw.Capabilities())  # equal is enough


@KINDS
def test_operators_are_compared_by_all_that_they_say(cls, make):
    op = make(check=[1, 2])
    for other in (copy.deepcopy(op), pickle.loads(pickle.dumps(op)), replace(op)):
        assert other == op
        assert hash(other) == hash(op)
    for change in ({"name": "other"}, {"expression": "2"}, {"check": True}, {"numpy": np.square}):
        assert replace(op, **change) != op
    assert _double(max_ulps=3) != _double(max_ulps=4)
    assert op != "p"
    assert repr(op) == f"{type(op).__name__}('p')"


def test_the_zeros_are_two_identities(device):
    plus, minus = (gw.BinOp("plus", zero, np.add, expression="a + b") for zero in (0.0, -0.0))
    assert plus != minus
    x = np.ones(3, dtype=np.float32)
    first = [gw.scan(x, op, "exclusive", device=device)[0] for op in (plus, minus)]
    assert [bool(np.signbit(each)) for each in first] == [False, True]


def test_a_users_operator_has_checks_even_if_it_is_called_like_one():
    mine = gw.UnaryOp("square", np.square, expression="x * x")
    layout = gw.Layout.separate(input=9, output=9)
    for op, level in ((mine, "bounds"), (replace(mine, shader_checks="all"), "all"), ("square", "none")):
        plan = gw.Map(dtype="u32", op=op, **PLANNING).plan(layout)
        assert plan.shader_checks == (level,)


# ---- the check before first use

LOG_ADD = "fn combine(a: T, b: T) -> T { return max(a, b) + log(1.0 + exp(-abs(a - b))); }"
UNLAWFUL = {
    "another identity": (
        gw.BinOp("p", 1, np.add, expression="a + b"), r"identity 1.* changes a value: numpy\(1.*, 0.*\) is 1",
    ),
    "identity from the right only": (
        gw.BinOp("p", 0, lambda a, b: b * (a != 0) + a * (b == 0), expression="a + b", commutative=False),
        "changes a value",
    ),
    "not commutative": (
        gw.BinOp("p", 0, lambda a, b: np.where(a != 0, a, b), expression="a + b"),
        r"numpy\(1.*, 2.*\) is 1.*, but numpy\(2.*, 1.*\) is 2.*commutative=False",
    ),
    "not associative": (
        gw.BinOp("p", 0, lambda a, b: a + b + (a * b > 10), expression="a + b", commutative=False), "not associative",
    ),
    "a twin that raises": (gw.BinOp("p", 0, lambda a, b: a.nothing, expression="a + b"), "raised AttributeError"),
    "a twin that reduces": (gw.BinOp("p", 0, lambda a, b: np.sum(a + b), expression="a + b"), r"gave shape \(\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLAWFUL)
def test_a_law_that_does_not_hold_is_an_error_without_a_gpu(name):
    op, why = UNLAWFUL[name]
    for datatype in (*gw.DATATYPES, "u32"):  # the last one once more
        with pytest.raises(gw.ArgumentError, match=f"'p'.*{why}"):
            gw.Scan(None, datatype, op, capabilities=gw.Capabilities())
        gw.Scan(None, datatype, replace(op, check=False), capabilities=gw.Capabilities())


def test_a_twin_that_does_not_work_is_an_error_without_a_gpu():
    for twin, why in (
        (lambda x: x.nothing, r"numpy= of UnaryOp 'p' raised AttributeError.*one numpy array of uint32, item by item"),
        (np.sum, r"numpy= of UnaryOp 'p' gave shape \(\) for one numpy array of shape"),
    ):
        op = gw.UnaryOp("p", twin, expression="x")
        with pytest.raises(gw.ArgumentError, match=why):
            gw.Map(dtype="u32", op=op, **PLANNING)
        gw.Map(dtype="u32", op=replace(op, check=False), **PLANNING)


ALL = "select(b + b, a + b, all(a != b))"  # for any pair a + b, but not for four pairs of which some are equal
NOT_ALL = "select(x, x + x, all(x != x - x))"  # for any item x + x, but not for four of which some are 0


@pytest.mark.parametrize(
    ("datatype", "op", "why"),
    [
        ("f32", gw.BinOp("p", 0, np.add, expression="a - b"), r"combine\(0.0, 1.0\) = -1.0, but numpy= gives 1.0"),
        ("f32", gw.BinOp("p", -np.inf, np.logaddexp, wgsl=LOG_ADD),
         r"combine\(-inf, -inf\) = nan.*-inf.*with itself"),
        ("u32", gw.UnaryOp("p", _twice, expression="x * x"),
         r"'p' on \w+: its WGSL gives apply\(1\S*\) = 1\S*, but numpy= gives 2"),
        ("u32", gw.BinOp("p", 0, np.add, expression=ALL), r"combine\(.*but numpy= gives"),
        ("u32", gw.UnaryOp("p", _twice, expression=NOT_ALL), r"apply\(1\) = 1, but numpy= gives 2"),
    ],
    ids=["BinOp", "with itself", "UnaryOp", "vectors of BinOp", "vectors of UnaryOp"],
)  # fmt: skip
def test_wgsl_that_differs_from_the_twin_is_an_error(device, datatype, op, why):
    with pytest.raises(gw.ArgumentError, match=why):
        _bound(device, datatype, op)
    _bound(device, datatype, replace(op, check=[] if isinstance(op, gw.UnaryOp) else False))


def test_logaddexp_with_its_case_for_the_identity_is_right(device):
    text = LOG_ADD.replace("return", "if (a < -3e38) { return b; } if (b < -3e38) { return a; } return")
    x = np.random.default_rng(3).normal(size=3000).astype(np.float32)
    for identity, wgsl in ((-np.inf, text), (-3e38, LOG_ADD)):
        op = gw.BinOp("log of sum", identity, np.logaddexp, wgsl=wgsl)
        expected = np.logaddexp.reduce(x.astype(np.float64))
        np.testing.assert_allclose(gw.reduce(x, op, device=device), expected, rtol=1e-4)


def test_what_is_wrong_only_for_some_data_is_a_warning(device):
    for op, words in (
        (gw.BinOp("largest", 0, np.maximum, expression="max(a, b)"),
         r"'largest' on f32.*numpy\(0.0, -1.0\) is 0.0.*check=\["),
        (gw.UnaryOp("size", np.abs, expression="max(x, x - x)"),
         r"'size' on f32: its WGSL gives apply\(-1.0\) = 0.0, .*gives 1.0.*check="),
    ):  # fmt: skip
        with pytest.warns(gw.GridwiseWarning, match=words):
            _bound(device, "f32", op)
        _bound(device, "u32", op)
        _bound(device, "f32", replace(op, check=[0, 0.5, 1e6]))
        _bound(device, "f32", replace(op, check=False))


@KINDS
def test_values_to_check_with_are_of_the_datatype(cls, make):
    op = make(check=[0.5])
    cls(dtype="f32", op=op, **PLANNING)
    with pytest.raises(gw.DatatypeError, match=rf"check 0\.5 of {type(op).__name__} 'p' is not a whole number"):
        cls(dtype="u32", op=op, **PLANNING)


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


@pytest.mark.parametrize("kind", ["BinOp", "UnaryOp"])
def test_an_operator_is_checked_once_for_a_device(fresh_device, monkeypatch, kind):
    calls = []
    if kind == "BinOp":
        op = gw.BinOp("counted", 0, lambda a, b: (calls.append(1), a + b)[1], expression="a + b")
    else:
        op = gw.UnaryOp("counted", lambda x: (calls.append(1), x + x)[1], expression="x + x")
    gw.capabilities(fresh_device)
    submissions = inside.note_calls(monkeypatch, fresh_device.queue, "submit")
    (gw.Reduce if kind == "BinOp" else gw.Map)(fresh_device, "u32", op)
    laws = len(calls)
    assert laws
    assert submissions == [], "the device is asked when something is bound"
    _bound(fresh_device, "u32", op)
    after, asked = len(calls), len(submissions)
    assert after > laws
    assert asked
    _bound(fresh_device, "u32", op)
    _bound(fresh_device, "u32", replace(op))
    if kind == "BinOp":
        gw.Scan(fresh_device, "u32", op, strategy="reduce_then_scan").bind(input=gw.empty(5, "u32", fresh_device))
    assert (len(calls), len(submissions)) == (after, asked)
    _bound(fresh_device, "i32", op)
    assert len(calls) > after
    assert len(submissions) > asked
