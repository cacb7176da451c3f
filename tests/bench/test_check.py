"""Whether measure() calls right results right and wrong ones wrong: floats, infinities, halves of words."""

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.checks.check import mismatch

RNG = np.random.default_rng(11)
N = 5000
UNION = gw.BinOp("union of events", 0, lambda a, b: a + b - a * b, expression="a + b - a * b")
LOG_ADD = gw.BinOp(
    "log of sum", -3e38, np.logaddexp,
    wgsl="fn combine(a: T, b: T) -> T { return max(a, b) + log(1.0 + exp(-abs(a - b))); }",
)  # fmt: skip
NORM = gw.BinOp(
    "norm", 0, np.hypot, wgsl="fn combine(a: T, b: T) -> T { return sqrt(a * a + b * b); }", check=[0, 0.5, 2, 30]
)
LAST = gw.BinOp(
    "last that is not 0", 0, lambda a, b: np.where(b != 0, b, a), commutative=False,
    wgsl="fn combine(a: T, b: T) -> T { return select(a, b, b != 0.0); }",
)  # fmt: skip
PLUS = gw.BinOp("plus", 0, lambda a, b: a + b, expression="a + b")
CASES = {
    "products": (gw.Multiply, RNG.uniform(0.9, 1.1, N)),
    "products that a partial product may overflow in": (gw.Multiply, np.tile([2.0, 0.5], N)),
    "products that vanish": (gw.Multiply, RNG.uniform(0.5, 1.0, N)),
    "sums": (gw.Add, RNG.normal(size=N)),
    "own sums": (PLUS, RNG.normal(size=N)),
    "probabilities": (UNION, RNG.uniform(0, 1e-3, N)),
    "logarithms": (LOG_ADD, RNG.normal(size=N)),
    "norms": (NORM, RNG.uniform(0, 3, N)),
    "selected": (LAST, RNG.normal(size=N) * RNG.integers(0, 2, N)),
}
MAKE = {
    "reduce": lambda device, op: gw.Reduce(device, "f32", op),
    "scan": lambda device, op: gw.Scan(device, "f32", op),
    "exclusive scan": lambda device, op: gw.Scan(device, "f32", op, "exclusive"),
    "other tiles": lambda device, op: gw.Scan(
        device, "f32", op, strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=16, vecs=1, subgroups=False)
    ),
}


def _run(primitive, x):
    return primitive.execute(input=gw.asarray(x, primitive.device)).output.to_numpy()


@pytest.mark.thin(1)
@pytest.mark.thin(1)
@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("name", CASES)
def test_right_results_are_right(device, name, make):
    op, items = CASES[name]
    x = items.astype(np.float32)
    primitive = MAKE[make](device, op)
    assert mismatch(primitive, {"input": x}, {"output": _run(primitive, x)}) is None


@pytest.mark.parametrize("make", ["reduce", "scan"])
@pytest.mark.parametrize("name", ["products", "sums", "own sums", "probabilities", "logarithms", "norms", "selected"])
def test_results_that_are_wrong_by_a_thousandth_are_wrong(device, name, make):
    op, items = CASES[name]
    x = items.astype(np.float32)
    primitive = MAKE[make](device, op)
    output = primitive.reference(x)
    where = output.size // 2
    output[where] += max(abs(output[where]), np.float32(1)) * np.float32(0.003)
    found = mismatch(primitive, {"input": x}, {"output": output})
    assert found is not None
    assert (found.index, found.wrong_items) == (where, 1)


@pytest.mark.parametrize("make", [gw.Reduce, gw.Scan])
@pytest.mark.parametrize(
    ("datatype", "result"), [("u32", "f32"), ("i32", "f32"), ("i16", "f32"), ("u64", "f64"), ("i64", "f64")]
)
def test_integers_that_are_combined_as_floats_may_round(device, require, make, datatype, result):
    if result == "f64":
        require("shader-f64")
    limits = np.iinfo({"u": "uint", "i": "int"}[datatype[0]] + datatype[1:])
    x = RNG.integers(limits.min, limits.max, N, dtype=limits.dtype, endpoint=True)
    primitive = make(device, datatype, result_dtype=result)
    output = _run(primitive, x)
    assert mismatch(primitive, {"input": x}, {"output": output}) is None
    output[output.size // 2] *= 1.001
    assert mismatch(primitive, {"input": x}, {"output": output}).wrong_items == 1


@pytest.mark.parametrize("make", ["scan", "rows", "columns", "segments"])
def test_many_positive_f64_are_added_up_right(device, require, make):
    """One after another, so many f64 err more than a kernel does, so the reference must not add them so."""
    require("shader-f64")
    n = 1 << 18
    x = RNG.random(n)
    inputs = {"input": x}
    primitive = {
        "scan": lambda: gw.Scan(device, "f64"),
        "rows": lambda: gw.ScanAxis(device, "f64", shape=(2, n // 2), axis=1),
        "columns": lambda: gw.ReduceAxis(device, "f64", shape=(n // 2, 2), axis=0),
        "segments": lambda: gw.SegmentedReduce(device, "f64", length=n),
    }[make]()
    if make == "segments":
        inputs = {"items": x}
    output = primitive.execute(**{name: gw.asarray(items, device) for name, items in inputs.items()}).output.to_numpy()
    assert mismatch(primitive, inputs, {"output": output}) is None
    output[-1] *= 1 + 1e-12
    assert mismatch(primitive, inputs, {"output": output}) is not None


COMPLEX = {
    "sums": (gw.Add, RNG.normal(size=N) + 1j * RNG.normal(size=N)),
    "products": (gw.Multiply, RNG.uniform(0.99, 1.01, N) * np.exp(1j * RNG.uniform(0, 7, N))),
    "products that overflow": (gw.Multiply, RNG.normal(scale=3, size=N) + 1j * RNG.normal(scale=3, size=N)),
    "products that vanish": (gw.Multiply, RNG.normal(scale=0.5, size=N) + 1j * RNG.normal(scale=0.5, size=N)),
    "sums with infinities": (gw.Add, np.where(np.arange(N) == N // 2, complex(np.inf, 1), 1 - 1j)),
}


@pytest.mark.parametrize("make", ["reduce", "scan", "exclusive", "rows"])
@pytest.mark.parametrize("name", COMPLEX)
def test_right_complex_results_are_right(device, name, make):
    op, items = COMPLEX[name]
    x = items.astype(np.complex64)
    primitive = {
        "reduce": lambda: gw.Reduce(device, "complex64", op),
        "scan": lambda: gw.Scan(device, "complex64", op),
        "exclusive": lambda: gw.Scan(device, "complex64", op, "exclusive"),
        "rows": lambda: gw.ScanAxis(device, "complex64", op, shape=(N // 50, 50), axis=1),
    }[make]()
    with np.errstate(all="ignore"):
        assert mismatch(primitive, {"input": x}, {"output": _run(primitive, x)}) is None


@pytest.mark.parametrize("part", ["real", "imag"])
@pytest.mark.parametrize("make", [gw.Reduce, gw.Scan])
@pytest.mark.parametrize("name", ["sums", "products"])
def test_complex_results_with_one_wrong_part_are_wrong(device, name, make, part):
    op, items = COMPLEX[name]
    x = items.astype(np.complex64)
    primitive = make(device, "complex64", op)
    output = np.atleast_1d(primitive.reference(x)).copy()
    where = output.size // 2
    getattr(output, part)[where] += 0.01 * np.abs(output[where]) + 0.1
    found = mismatch(primitive, {"input": x}, {"output": output})
    assert (found.index, found.wrong_items) == (where, 1)


def test_what_only_selects_must_be_exact(device):
    x = CASES["selected"][1].astype(np.float32)
    scan = gw.Scan(device, "f32", LAST)
    output = scan.reference(x)
    output[77] = np.nextafter(output[77], np.float32(np.inf))
    assert mismatch(scan, {"input": x}, {"output": output}).index == 77


@pytest.mark.parametrize("op", [gw.Add, gw.Multiply, PLUS, LOG_ADD], ids=repr)
def test_an_infinity_is_right_only_where_numpy_has_it(device, op):
    x = np.full(100, 1.5, dtype=np.float32)
    scan = gw.Scan(device, "f32", op)
    for wrong in (np.inf, -np.inf, np.nan):
        output = scan.reference(x)
        output[40] = wrong
        assert mismatch(scan, {"input": x}, {"output": output}).index == 40
    x[50] = np.inf
    output = scan.reference(x)
    assert mismatch(scan, {"input": x}, {"output": output}) is None
    output[60] = 3.0
    assert mismatch(scan, {"input": x}, {"output": output}).index == 60


def test_measure_calls_a_product_right(device, steady_clock):
    protocol = gw.SamplingProtocol(
        samples=2, block_trials=2, warmup_s=0.01, max_warmup_s=0.02, canary_passes=3, check_unit=False
    )
    x = CASES["products"][1].astype(np.float32)
    for op in (gw.Multiply, UNION):
        measured = gw.measure(gw.Reduce(device, "f32", op), protocol=protocol, input=x)
        assert measured.correct, measured.mismatches


@pytest.mark.parametrize(("offset", "n"), [(0, 1001), (1, 1001), (1, 1000), (3, 5)])
def test_halves_of_words_are_put_back(device, steady_clock, offset, n):
    """In place, items of 16 bits at any offset: what stands around them stays, and every trial sorts the same."""
    protocol = gw.SamplingProtocol(
        samples=3, block_trials=3, warmup_s=0.01, max_warmup_s=0.02, canary_passes=3, check_unit=False
    )
    items = RNG.normal(size=n + offset + 7).astype(np.float16)
    x = gw.asarray(items, device)
    part = x[offset : offset + n]
    measured = gw.measure(gw.Sort(device, "f16", overwrite_input=True), protocol=protocol, input=part)
    assert measured.correct, measured.mismatches
    assert measured.protocol["restored"] == ["input"]
    expected = items.copy()
    expected[offset : offset + n].sort()
    np.testing.assert_array_equal(x.to_numpy(), expected)
