"""Operators: validation, identities per datatype, ordered keys, names."""

import copy
import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.types.operators import as_binop

BUILTIN = [gw.Add, gw.Min, gw.Max, gw.Multiply]
COMBINE = "fn combine(a: T, b: T) -> T { return a + b; }"


def test_built_in_operators_are_found_by_name_and_survive_copies():
    for op in BUILTIN:
        assert as_binop(op.name) is op
        assert as_binop(op) is op
        assert op.builtin
        for other in (copy.deepcopy(op), copy.copy(op), pickle.loads(pickle.dumps(op))):
            assert other is op
    gw.Reduce(None, "f32", replace(gw.Add), compensated=True, capabilities=gw.Capabilities())  # equal is enough


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


# ---- identities and copies


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


def test_a_copy_of_an_own_operator_is_equal():
    op = gw.BinOp("own", {"u32": 0}, np.add, wgsl=COMBINE, check=[1, 2])
    for other in (copy.deepcopy(op), pickle.loads(pickle.dumps(op)), replace(op)):
        assert other == op
        assert hash(other) == hash(op)
    assert replace(op, check=False) != op
    assert op != "own"


def test_the_zeros_are_two_identities(device):
    plus, minus = (gw.BinOp("plus", zero, np.add, expression="a + b") for zero in (0.0, -0.0))
    assert plus != minus
    x = np.ones(3, dtype=np.float32)
    first = [gw.scan(x, op, "exclusive", device=device)[0] for op in (plus, minus)]
    assert [bool(np.signbit(each)) for each in first] == [False, True]


@pytest.mark.parametrize("option", ["wgsl", "expression"])
def test_a_python_function_is_no_text(option):
    with pytest.raises(gw.DatatypeError, match=f"{option}= of BinOp 'x' must be a str of WGSL, not function.*numpy="):
        gw.BinOp("x", 0, np.add, **{option: lambda a, b: a + b})


@pytest.mark.parametrize(
    "signature",
    ["(a: T, b: T) -> f32", "(a: T, b: T)", "(a: T) -> T", "(a: T, b: T, c: T) -> T", "(a: u32, b: f32) -> u32",
     "(a: vec2<u32>, b: vec2<u32>) -> vec2<u32>"],
)  # fmt: skip
def test_combine_takes_two_and_returns_one(signature):
    with pytest.raises(gw.ArgumentError, match=r"declares 'fn combine\(.*two T and return one"):
        gw.BinOp("typed", 0, np.add, wgsl=f"fn combine{signature} {{ return a; }}")


def test_combine_for_one_datatype_is_refused_for_another(device):
    op = gw.BinOp("typed", 0, np.add, wgsl="fn combine(a: u32, b: u32) -> u32 { return a + b; }")
    assert gw.reduce(np.arange(10, dtype=np.uint32), op, device=device) == 45
    with pytest.raises(gw.DatatypeError, match="'typed' is written for u32, but the items are of f32; write T"):
        gw.Reduce(device, "f32", op)


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


@pytest.mark.parametrize(
    ("op", "why"),
    [
        (gw.BinOp("p", 0, np.add, expression="a - b"), r"combine\(0.0, 1.0\) = -1.0, but numpy= gives 1.0"),
        (gw.BinOp("p", -np.inf, np.logaddexp, wgsl=LOG_ADD), r"combine\(-inf, -inf\) = nan.*-inf.*with itself"),
    ],
)
def test_wgsl_that_differs_from_the_twin_is_an_error(device, op, why):
    for make in (gw.Reduce, gw.Scan):
        with pytest.raises(gw.ArgumentError, match=why):
            make(device, "f32", op).bind(input=gw.empty(9, "f32", device))


def test_what_an_expression_gives_for_vectors_is_checked_as_well(device):
    """It is a + b for any pair, but not for four pairs of which some are equal: `all` looks at all of them."""
    op = gw.BinOp("p", 0, np.add, expression="select(b + b, a + b, all(a != b))")
    with pytest.raises(gw.ArgumentError, match=r"combine\(.*but numpy= gives"):
        gw.Reduce(device, "u32", op).bind(input=gw.empty(9, "u32", device))


def test_logaddexp_with_its_case_for_the_identity_is_right(device):
    text = LOG_ADD.replace("return", "if (a < -3e38) { return b; } if (b < -3e38) { return a; } return")
    x = np.random.default_rng(3).normal(size=3000).astype(np.float32)
    for identity, wgsl in ((-np.inf, text), (-3e38, LOG_ADD)):
        op = gw.BinOp("log of sum", identity, np.logaddexp, wgsl=wgsl)
        expected = np.logaddexp.reduce(x.astype(np.float64))
        np.testing.assert_allclose(gw.reduce(x, op, device=device), expected, rtol=1e-4)


def test_what_is_wrong_only_for_some_data_is_a_warning(device):
    op = gw.BinOp("largest", 0, np.maximum, expression="max(a, b)")
    with pytest.warns(gw.GridwiseWarning, match=r"'largest' on f32.*numpy\(0.0, -1.0\) is 0.0.*check=\["):
        gw.Reduce(device, "f32", op)
    gw.Reduce(device, "u32", op)
    gw.Reduce(device, "f32", replace(op, check=[0, 0.5, 1e6]))
    gw.Reduce(device, "f32", replace(op, check=False))
    x = np.array([3, 1, 2], dtype=np.float32)
    assert gw.reduce(x, replace(op, check=[0, 1]), device=device) == 3


def test_values_to_check_with_are_of_the_datatype():
    op = gw.BinOp("p", 0, np.add, expression="a + b", check=[0.5])
    gw.Reduce(None, "f32", op, capabilities=gw.Capabilities())
    with pytest.raises(gw.DatatypeError, match=r"check 0\.5 of BinOp 'p' is not a whole number"):
        gw.Reduce(None, "u32", op, capabilities=gw.Capabilities())


def test_an_operator_is_checked_once_for_a_device(fresh_device):
    calls = []
    op = gw.BinOp("counted", 0, lambda a, b: (calls.append(1), a + b)[1], expression="a + b")
    x = gw.asarray(np.arange(10, dtype=np.uint32), fresh_device)
    gw.capabilities(fresh_device)
    submissions = []
    submit = fresh_device.queue.submit
    fresh_device.queue.submit = lambda commands: (submissions.append(1), submit(commands))[1]
    first = gw.Reduce(fresh_device, "u32", op)
    laws = len(calls)
    assert laws
    assert submissions == [], "the device is asked when something is bound"
    first.bind(input=x)
    after, asked = len(calls), len(submissions)
    assert after > laws
    assert asked
    gw.Reduce(fresh_device, "u32", op).bind(input=x)
    gw.Reduce(fresh_device, "u32", replace(op)).bind(input=x)
    gw.Scan(fresh_device, "u32", op, strategy="reduce_then_scan").bind(input=x[:5])
    assert (len(calls), len(submissions)) == (after, asked)
    gw.Reduce(fresh_device, "i32", op).bind(input=gw.empty(9, "i32", fresh_device))
    assert len(calls) > after
    assert len(submissions) > asked
    assert first.execute(input=x).output.to_numpy()[0] == 45
