"""Map against numpy: its operators bit for bit, and views and streams with an operator of a user's own."""

import itertools

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside
from helpers.strategies import DATATYPES, assert_same, quick_first

SMALL = gw.ElementwiseTuning(workgroup_size=64, vecs=1)

#: What each built-in operator is in numpy, on the bits where an operation on floats would round or lose a sign.
WANTED = {
    "negate": lambda x: (x.view("u4") ^ np.uint32(1 << 31)).view("f4") if x.dtype.kind == "f" else 0 - x,
    "abs": lambda x: np.where(x < 0, 0 - x, x) if x.dtype.kind != "f" else (x.view("u4") & 0x7FFFFFFF).view("f4"),
    "square": lambda x: x * x,
}
#: Collatz: a loop, a constant and a function called like one of the kernel's.
STEPS = gw.UnaryOp(
    "five steps of Collatz",
    numpy=lambda x: _collatz(x),
    wgsl="""
    const blocks = 5u;
    fn f(x: u32) -> u32 { return select(x / 2u, 3u * x + 1u, (x & 1u) == 1u); }
    fn apply(x: T) -> T {
      var word = bitcast<u32>(x);
      for (var i = 0u; i < blocks; i++) { word = f(word); }
      return bitcast<T>(word);
    }""",
)


def _collatz(x):
    word = x.view(np.uint32)
    for _ in range(5):
        word = np.where(word % 2 == 1, 3 * word + 1, word // 2)
    return word.view(x.dtype)


def _items(datatype, n, seed=0):
    """All bits for integers; for floats whole numbers, fractions, both zeros and infinities."""
    rng = np.random.default_rng([seed, n])
    if datatype != "f32":
        return rng.integers(0, 1 << 32, n, dtype=np.uint32).view(gw.DATATYPES[datatype].dtype)
    items = (rng.normal(size=n) * np.exp2(rng.integers(-40, 40, n))).astype(np.float32)
    special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, -1.5], np.float32)
    return np.where(rng.random(n) < 0.2, rng.choice(special, n), items).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "datatype"),
    quick_first(
        [("negate", "f32"), ("abs", "i32"), ("square", "u32")],
        itertools.product(WANTED, DATATYPES),
    ),
)
def test_built_in_operators_are_numpys_bit_for_bit(device, op, datatype):
    gpu = gw.Map(device, datatype, op, tuning=SMALL)
    for n in (0, 1, 3, 255, 257, 3001):
        x = _items(datatype, n)
        if datatype == "i32":
            x[:1] = -(2**31)  # which has no opposite
        wanted = WANTED[op](x).astype(x.dtype)
        assert_same(gpu.execute(input=gw.asarray(x, device)).output.to_numpy(), wanted, f"n={n}")
        assert_same(gpu.reference(x), wanted, f"the twin, n={n}")


def test_an_operator_of_a_users_own_in_views_and_in_place(device):
    gpu = gw.Map(device, "i32", STEPS, tuning=SMALL)
    for n, begin in ((0, 0), (1, 1), (255, 3), (5000, 77)):
        x = _items("i32", n + begin + 9)
        array, expected = gw.asarray(x, device), x.copy()
        expected[begin : begin + n] = _collatz(x[begin : begin + n])
        apart = gpu.execute(input=array[begin : begin + n], output=None, trials=3).output
        assert_same(apart.to_numpy(), expected[begin : begin + n], f"n={n}")
        gpu.execute(input=array[begin : begin + n], output=array[begin : begin + n])
        assert_same(array.to_numpy(), expected, f"in place, n={n}")


def test_in_a_stream(device):
    chunks = [_items("u32", n, seed) for seed, n in enumerate((1000, 0, 999, 1000, 3))]
    parts = list(gw.stream(gw.Map(device, "u32", STEPS, tuning=SMALL), chunks))
    assert_same(np.concatenate(parts), _collatz(np.concatenate(chunks)))


# ---- how far a right result may be from numpy's


def _sqrt_with(ulps):
    return gw.UnaryOp("root", np.sqrt, expression="sqrt(x)", max_ulps=ulps, check=False)


def _found_wrong(op, x, got):
    gpu = gw.Map(None, "f32", op, capabilities=gw.Capabilities())
    return inside.mismatch(gpu, {"input": x}, {"output": got})


@pytest.mark.parametrize("ulps", [0, 1, 7])
def test_a_result_may_be_as_many_ulps_off_as_the_operator_states(ulps):
    x = np.random.default_rng(5).uniform(1e-3, 1e6, 1000).astype(np.float32)
    right = np.sqrt(x)
    off = (right.view(np.uint32) + ulps).view(np.float32)
    assert _found_wrong(_sqrt_with(ulps), x, off) is None
    off[17:19] = (right[17:19].view(np.uint32) + ulps + 1).view(np.float32)
    found = _found_wrong(_sqrt_with(ulps), x, off)
    assert (found.index, found.wrong_items) == (17, 2)


def test_infinities_and_nan_must_be_numpys_and_subnormals_may_be_0():
    half = gw.UnaryOp("half", lambda x: x / np.float32(2), expression="x * 0.5", max_ulps=0)
    x = np.array([np.inf, np.nan, 2e-38, 1.0, 3e38], np.float32)
    right = x / np.float32(2)
    assert _found_wrong(half, x, right) is None
    flushed = right.copy()
    flushed[2] = 0
    assert _found_wrong(half, x, flushed) is None
    for i, value in ((0, 3e38), (1, 0.0), (3, 0.0), (4, np.inf)):
        wrong = right.copy()
        wrong[i] = value
        assert _found_wrong(half, x, wrong).index == i


def test_an_operator_that_states_nothing_is_compared_by_noise_on_its_items():
    """WGSL's exp may be off by 3 + 2·|x| ulps."""
    op = gw.UnaryOp("exp", np.exp, expression="exp(x)", check=False)
    x = np.random.default_rng(5).uniform(-60, 60, 1000).astype(np.float32)
    right = np.exp(x)
    ulps = np.spacing(right)
    assert _found_wrong(op, x, right + (3 + 2 * np.abs(x)) * ulps) is None
    assert _found_wrong(op, x, right * np.float32(1.001)).wrong_items == x.size


@pytest.mark.parametrize("op", ["negate", "abs", "square"])
def test_a_wrong_bit_of_a_built_in_operator_is_found(op):
    x = _items("f32", 1000)
    gpu = gw.Map(None, "f32", op, capabilities=gw.Capabilities())
    got = gpu.reference(x)
    at = int(np.flatnonzero(np.isfinite(got) & (np.abs(got) > 1))[5])
    got.view(np.uint32)[at] ^= 1
    assert inside.mismatch(gpu, {"input": x}, {"output": got}).index == at
