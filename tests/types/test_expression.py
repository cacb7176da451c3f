"""Expressions as data: their types, their values in numpy, and what they refuse. No GPU is used."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import gridwise_py as gw
from helpers.expressions import FakeArray, flatten

X, Y, K, D = gw.f32("x"), gw.f32("y"), gw.u32("k"), gw.i32("d")
RNG = np.random.default_rng(7)
ITEMS = {
    "x": RNG.normal(size=100).astype(np.float32),
    "y": RNG.normal(size=100).astype(np.float32),
    "k": RNG.integers(0, 1 << 32, 100, dtype=np.uint32),
    "d": RNG.integers(-50, 50, 100).astype(np.int32),
}


def _value(expression):
    return expression.numpy(**{name: ITEMS[name] for name in flatten(expression).names})


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (X + Y, lambda x, y, k, d: x + y),
        (2 * X - 1.5, lambda x, y, k, d: 2 * x - np.float32(1.5)),
        (np.float32(3) / X, lambda x, y, k, d: np.float32(3) / x),
        (K * 3 + 5, lambda x, y, k, d: k * np.uint32(3) + np.uint32(5)),
        (K // 7 + K % 7, lambda x, y, k, d: k // np.uint32(7) + k % np.uint32(7)),
        (K // (K & 1), lambda x, y, k, d: np.where(k & 1, k, 0)),
        (K % (K & 1), lambda x, y, k, d: np.zeros_like(k)),
        (D // 7 + D % -7, lambda x, y, k, d: d // 7 + d % -7),
        (X // 0.25 + X % -0.5, lambda x, y, k, d: x // np.float32(0.25) + x % np.float32(-0.5)),
        (X**-3, lambda x, y, k, d: 1 / (x * (x * x))),
        ((X > 0) == 1, lambda x, y, k, d: x > 0),
        ((X > 0) > 0.5, lambda x, y, k, d: x > 0),
        (K << 3, lambda x, y, k, d: k << np.uint32(3)),
        (D >> 1, lambda x, y, k, d: d >> 1),
        (K << 35, lambda x, y, k, d: k << np.uint32(35)),
        (K >> K, lambda x, y, k, d: k >> k),
        ((D << D) ^ (D >> D), lambda x, y, k, d: (d << d) ^ (d >> d)),
        (~K ^ (K | 12), lambda x, y, k, d: ~k ^ (k | np.uint32(12))),
        (-D, lambda x, y, k, d: -d),
        (-K, lambda x, y, k, d: np.uint32(0) - k),
        (abs(D), lambda x, y, k, d: abs(d)),
        (X**3, lambda x, y, k, d: x * (x * x)),
        (X**0.5, lambda x, y, k, d: np.power(x, np.float32(0.5))),
        (X**2.0 + X ** np.int64(2), lambda x, y, k, d: x * x + x * x),
        (D ** np.uint8(2), lambda x, y, k, d: d * d),
        (gw.clip(D, None, 3) + gw.clip(D, -3, None), lambda x, y, k, d: np.clip(d, None, 3) + np.clip(d, -3, None)),
        ((X > 0) & (Y > 0) | ~(D == 3), lambda x, y, k, d: (x > 0) & (y > 0) | (d != 3)),
        ((X > 0) ^ (Y > 0), lambda x, y, k, d: (x > 0) != (y > 0)),
        (gw.where(X > Y, X, 0), lambda x, y, k, d: np.where(x > y, x, np.float32(0))),
        (gw.f32(K >> 8), lambda x, y, k, d: (k >> np.uint32(8)).astype(np.float32)),
        (gw.u32(D), lambda x, y, k, d: d.astype(np.uint32)),
        (gw.i32(X > 0), lambda x, y, k, d: (x > 0).astype(np.int32)),
        (gw.index + K, lambda x, y, k, d: np.arange(100, dtype=np.uint32) + k),
        (gw.previous(X), lambda x, y, k, d: np.concatenate([x[:1], x[:-1]])),
        (gw.next(X) - X, lambda x, y, k, d: np.append(x[1:], x[-1]) - x),
        (gw.flip(D), lambda x, y, k, d: d[::-1]),
        (X[K], lambda x, y, k, d: x[np.minimum(k, 99)]),
        (X[D] + Y, lambda x, y, k, d: x[np.clip(d, 0, 99)] + y),
        ((X * Y)[gw.index // 2 + (K & 0)], lambda x, y, k, d: (x * y)[np.arange(100) // 2]),
        (gw.previous(X[K]) + Y, lambda x, y, k, d: x[np.minimum(np.append(k[:1], k[:-1]), 99)] + y),
        (gw.clip(D, -3, 4), lambda x, y, k, d: np.clip(d, -3, 4)),
        (gw.minimum(X, Y) + gw.maximum(X, 0.5), lambda x, y, k, d: np.minimum(x, y) + np.maximum(x, np.float32(0.5))),
        (gw.bitcast("u32", X), lambda x, y, k, d: x.view(np.uint32)),
        (gw.popcount(K), lambda x, y, k, d: np.array([bin(each).count('1') for each in k.tolist()], np.uint32)),
        (gw.sqrt(abs(X)) + gw.floor(Y), lambda x, y, k, d: np.sqrt(abs(x)) + np.floor(y)),
        (gw.sign(D), lambda x, y, k, d: np.sign(d)),
        (gw.rint(X * 10), lambda x, y, k, d: np.rint(x * np.float32(10))),
        (gw.isnan(X / 0 - X / 0), lambda x, y, k, d: np.ones(100, bool)),
    ],
)  # fmt: skip
def test_the_value_in_numpy(expression, wanted):
    with np.errstate(all="ignore"):
        expected = wanted(**ITEMS)
    found = _value(expression)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_numbers_take_the_type_of_the_other_side():
    assert (X + 1).type == "f32"
    assert (1 + K).type == "u32"
    assert (np.int64(3) * D).type == "i32"
    assert (2.5 * X).type == "f32"
    assert (X + np.float32(1)).type == "f32"
    assert gw.where(X > 0, 1, 2).type == "i32"
    assert gw.where(X > 0, 1, 2.5).type == "f32"
    assert gw.u32(7).type == "u32"
    assert gw.u32(2**32 - 1).numpy(size=1).tolist() == [2**32 - 1]
    assert gw.f32(2**31).numpy(size=1).tolist() == [2**31]


def test_another_number_is_the_same_program():
    assert flatten(X * 2.0 + Y).program == flatten(Y * 3.5 + X).program
    assert flatten(X * 2.0).program != flatten(X + 2.0).program
    assert flatten(X * 2.0).numbers != flatten(X * 3.0).numbers


def test_equal_steps_are_one():
    program = flatten((X - Y) * (gw.f32("x") - gw.f32("y"))).program
    assert [step.kind for step in program.steps] == ["leaf", "leaf", "-", "*"]


def test_an_array_is_one_leaf_however_often_it_is_used():
    x = FakeArray(np.float32([1, 2, 3]))
    flat = flatten((x * x + x).as_expression())
    assert len(flat.arrays) == 1
    np.testing.assert_array_equal((x * x + x).numpy(), [2, 6, 12])


def test_an_array_of_one_item_is_repeated_next_to_longer_ones():
    x, one = FakeArray(np.float32([1, 2, 3])), FakeArray(np.float32([10]))
    np.testing.assert_array_equal((x - one).numpy(), [-9, -8, -7])
    np.testing.assert_array_equal((one * one).numpy(), [100])


def _moved(step):
    """Return numpy's twin of `gw.previous` (-1), `gw.next` (1) or `gw.flip` (0), which take items in C order."""

    def twin(x):
        items = x.reshape(-1)
        places = np.clip(np.arange(items.size) + step, 0, max(items.size - 1, 0))
        return (items[places] if step else items[::-1]).reshape(x.shape)

    return twin


#: Of three operands, with the functions of either library.
BROADCAST = {
    "products": lambda f, a, b, c: a * b - c * 2,
    "choices": lambda f, a, b, c: f["where"](a > b, c, a + 1),
    "parts that are small": lambda f, a, b, c: f["maximum"](a + 1, a * a) * (b - b * 2) + c,
    "moved": lambda f, a, b, c: f["flip"](a * b) + f["next"](c) - f["previous"](b),
    "moved as a whole": lambda f, a, b, c: f["next"](f["previous"](a + b) + c) * f["flip"](f["flip"](a) - c),
}
IN_NUMPY = {"where": np.where, "maximum": np.maximum, "flip": _moved(0), "next": _moved(1), "previous": _moved(-1)}
IN_GRIDWISE = {name: getattr(gw, name) for name in IN_NUMPY}


@settings(max_examples=100, deadline=None)
@given(
    shapes=mutually_broadcastable_shapes(num_shapes=3, max_dims=4, min_side=0, max_side=5),
    name=st.sampled_from(list(BROADCAST)),
)
def test_shapes_are_broadcast_as_in_numpy(shapes, name):
    arrays = [np.arange(3, 3 + np.prod(shape)).astype(np.float32).reshape(shape) for shape in shapes.input_shapes]
    found = BROADCAST[name](IN_GRIDWISE, *(FakeArray(each).as_expression() for each in arrays)).numpy()
    wanted = BROADCAST[name](IN_NUMPY, *arrays)
    assert found.shape == wanted.shape == shapes.result_shape
    np.testing.assert_array_equal(found, wanted)


def test_one_text_serves_other_lengths():
    def of(*shapes):
        a, b, c = (FakeArray(np.zeros(shape, np.float32)) for shape in shapes)
        return flatten((a - b) * c)

    first, second = of((3, 8), (3, 1), (8,)), of((50, 12), (50, 1), (1, 12))
    assert first.program == second.program
    assert first.numbers != second.numbers
    assert first.program != of((3, 7), (3, 1), (7,)).program, "rows of vectors are read four items at a time"
    assert of((8,), (1,), ()).program == of((3, 8), (1, 1), ()).program, "of one item nothing but its place is asked"


def test_shapes_that_are_not_broadcast_are_refused():
    a, b = FakeArray(np.zeros((3, 4), np.float32)), FakeArray(np.zeros(4, np.float32))
    with pytest.raises(gw.LengthError, match=r"could not be broadcast together with shapes \(3, 4\) \(3,\)"):
        (a * FakeArray(np.zeros(3, np.float32))).numpy()
    with pytest.raises(gw.LengthError, match=r"named leaves are not broadcast"):
        flatten(X * a + b)


def test_items_of_one_and_two_bytes_are_widened():
    bytes_ = gw.leaf("c", "i8")
    assert bytes_.type == "i32"
    np.testing.assert_array_equal((bytes_ * 100).numpy(c=np.int8([-128, 127])), [-12800, 12700])
    assert (gw.leaf("h", "f16") + X).type == "f32"
    assert gw.where(gw.leaf("m", "bool"), X, Y).type == "f32"


def test_components_are_attributes():
    p = gw.f32("p", components=3)
    found = (p.x + 2 * p.y - p.z).numpy(p=np.arange(6, dtype=np.float32))
    np.testing.assert_array_equal(found, [0 + 2 - 2, 3 + 8 - 5])
    with pytest.raises(AttributeError, match="x, y, z"):
        _ = p.w
    with pytest.raises(gw.LengthError, match="multiple of 3"):
        p.x.numpy(p=np.zeros(4, np.float32))


def test_a_struct_has_its_fields_as_attributes():
    both = gw.struct(value=X, place=gw.index)
    assert both.value is X
    found = both.numpy(x=np.float32([5, 6]))
    assert found.dtype.names == ("value", "place")
    assert found.tolist() == [(5.0, 0), (6.0, 1)]
    chosen = gw.where(X > 5, both, gw.struct(value=gw.f32(0), place=gw.u32(9)))
    assert chosen.numpy(x=np.float32([5, 6])).tolist() == [(0.0, 9), (6.0, 1)]


def test_a_scalar_is_given_with_the_arrays():
    alpha = gw.scalar("alpha", "f32")
    np.testing.assert_array_equal((alpha * X).numpy(x=np.float32([1, 2]), alpha=3), [3, 6])


def test_a_function_of_wgsl_has_a_twin():
    half = gw.function("fn half(x: f32) -> f32 { return 0.5 * x; }", numpy=lambda x: x / 2)
    np.testing.assert_array_equal(half(X).numpy(x=np.float32([3])), [1.5])
    without = gw.function("fn half(x: f32) -> f32 { return 0.5 * x; }")
    with pytest.raises(gw.ArgumentError, match="numpy twin"):
        without(X).numpy(x=np.float32([3]))


def test_an_expression_of_thousands_of_nodes():
    made = X
    for _ in range(5_000):
        made = made + 1
    np.testing.assert_array_equal(made.numpy(x=np.float32([1])), [5001])


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: X + K, gw.DatatypeError, r"f32 and u32.*gw\.f32"),
        (lambda: K + D, gw.DatatypeError, r"u32 and i32.*gw\.i32"),
        (lambda: K + 2.5, gw.DatatypeError, r"2\.5.*u32.*gw\.f32"),
        (lambda: K - (-1), gw.DatatypeError, "-1 is not a number of u32"),
        (lambda: (X > 0) % 3, gw.DatatypeError, r"operands are of bool and i32.*gw\.i32"),
        (lambda: K / 3, gw.DatatypeError, "a // b"),
        (lambda: X & 1, gw.DatatypeError, "not|float|f32"),
        (lambda: ~X, gw.DatatypeError, "not for f32"),
        (lambda: gw.sqrt(K), gw.DatatypeError, r"gw\.f32"),
        (lambda: gw.where(X, 1, 2), gw.DatatypeError, "compare"),
        (lambda: gw.where(X > 0, X, K), gw.DatatypeError, r"gw\.f32"),
        (lambda: X + np.ones(3, np.float32), gw.DatatypeError, r"gw\.asarray"),
        (lambda: np.ones(3, np.float32) + X, gw.ImplicitConversionError, r"gw\.asarray"),
        (lambda: X + "a", gw.DatatypeError, "leaves"),
        (lambda: X[1:3], gw.DatatypeError, "slice"),
        (lambda: _value(gw.index[K]), gw.ArgumentError, "no end"),
        (lambda: X[Y], gw.DatatypeError, r"gw\.u32"),
        (lambda: X[X > 0], gw.DatatypeError, r"gw\.compress"),
        (lambda: K**0, gw.DatatypeError, r"1 to 64.*gw\.f32"),
        (lambda: gw.asarray(gw.struct(a=X)), gw.DatatypeError, "its fields one by one"),
        (lambda: bool(X > 0), gw.ImplicitConversionError, r"gw\.where"),
        (lambda: 1 if X > 0 else 2, gw.ImplicitConversionError, r"gw\.where"),
        (lambda: 0 < X < 1, gw.ImplicitConversionError, "&"),
        (lambda: np.asarray(X), gw.ImplicitConversionError, r"gw\.asarray"),
        (lambda: list(X), gw.ImplicitConversionError, r"gw\.asarray"),
        (lambda: (X + 1).to_numpy(), AttributeError, r"gw\.asarray\(x\)\.to_numpy\(\)"),
        (lambda: gw.f32("n"), gw.ArgumentError, "rename"),
        (lambda: gw.f32("trials"), gw.ArgumentError, "rename"),
        (lambda: gw.f32("output_keys"), gw.ArgumentError, "rename"),
        (lambda: gw.f32("two words"), gw.ArgumentError, "name in Python"),
        (lambda: gw.leaf("x", "complex64"), gw.DatatypeError, "x.real"),
        (lambda: gw.u64("x") << gw.i64("y"), gw.DatatypeError, "for integers.*f64"),
        (lambda: gw.exp(gw.f64("x")), gw.DatatypeError, r"for f32, not for f64.*gw\.f32"),
        (lambda: gw.u64("x") + 2**64, gw.DatatypeError, "not a number of u64"),
        (lambda: gw.f32("x", components=5), gw.ArgumentError, "1 to 4"),
        (lambda: _value(X + gw.f32(gw.u32("x"))), gw.ArgumentError, "two leaves"),
        (lambda: (X + Y).numpy(x=ITEMS["x"]), gw.ArgumentError, "needs y="),
        (lambda: X.numpy(x=ITEMS["x"], z=1), gw.ArgumentError, "no leaf 'z'"),
        (lambda: X.numpy(x=ITEMS["d"]), gw.ArgumentError, "astype"),
        (lambda: (X + Y).numpy(x=ITEMS["x"], y=ITEMS["y"][:5]), gw.LengthError, "slice"),
        (lambda: gw.function("var<private> x: u32;"), gw.ArgumentError, "declares something else"),
        (lambda: gw.function("fn f(x: vec4<f32>) -> f32 { return x.x; }"), gw.ArgumentError, "types are others"),
        (lambda: gw.function("fn f() -> f32 { return 1.0; }"), gw.ArgumentError, "types are others"),
        (lambda: gw.function("const a = 1;"), gw.ArgumentError, "no function"),
        (lambda: gw.function("fn f(x: f32) -> f32 { return x; }")(K), gw.DatatypeError, r"gw\.f32"),
        (lambda: gw.struct(a=X, b=X, c=X, d=X, e=X), gw.DatatypeError, "at most 4"),
        (lambda: gw.bitcast("f64", X), gw.DatatypeError, "f64"),
        (lambda: gw.result.as_expression(), gw.ArgumentError, "output="),
    ],
)  # fmt: skip
def test_what_is_refused(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


@pytest.mark.parametrize("symbol", ["add", "sub", "mul", "lt", "le", "gt", "ge", "eq", "ne"])
def test_numbers_of_numpy_on_either_side(symbol):
    function, plain = getattr(operator, symbol), np.float32(2)
    for number in (np.float32(2), np.int64(2), 2, 2.0, np.array(2.0)):
        np.testing.assert_array_equal(function(X, number).numpy(x=ITEMS["x"]), function(ITEMS["x"], plain))
        np.testing.assert_array_equal(function(number, X).numpy(x=ITEMS["x"]), function(plain, ITEMS["x"]))


class TestOperatorsFromOneFunction:
    """`BinOp.of`: the numpy twin, and what is refused; kernels run them in test_fusion.py."""

    def test_a_struct(self):
        pair = gw.Struct("pair", value="f32", place="u32")
        larger = gw.BinOp.of("larger", lambda a, b: gw.where(b.value > a.value, b, a), identity=(-np.inf, 0))
        a = pair.array(value=[1, 5], place=[0, 1])
        b = pair.array(value=[3, 4], place=[7, 8])
        assert larger.numpy(a, b).tolist() == [(3.0, 7), (5.0, 1)]

    def test_numbers_of_any_datatype(self):
        larger = gw.BinOp.of("larger", lambda a, b: gw.where(a > b, a, b), identity=0)
        for dtype in (np.uint32, np.int32, np.float32, np.uint8):
            np.testing.assert_array_equal(larger.numpy(dtype([1, 9]), dtype([5, 2])), [5, 9])

    def test_equal_functions_are_equal_operators(self):
        def function(a, b):
            return a + b

        assert gw.BinOp.of("a", function, identity=0) == gw.BinOp.of("a", function, identity=0)
        assert gw.BinOp.of("a", function, identity=0) != gw.BinOp.of("a", lambda a, b: a * b, identity=0)

    @pytest.mark.parametrize(
        ("function", "words"),
        [
            (lambda a, b: a > b, "bool"),
            (lambda a, b: a + gw.index, "index"),
            (lambda a, b: a + gw.u32("x"), "other leaves"),
            (lambda a, b: gw.struct(v=a), "."),
        ],
    )
    def test_what_is_refused(self, function, words):
        wrong = gw.BinOp.of("wrong", function, identity=0)
        with pytest.raises(gw.GridwiseError, match=words):
            gw.Reduce(None, "u32", wrong, capabilities=gw.Capabilities())
