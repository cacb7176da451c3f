"""Whether measure() calls right results right and wrong ones wrong: floats, infinities, halves of words."""

import itertools

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.checks.check import difference, mismatch
from helpers.cases import FULL
from helpers.strategies import quick_first

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
COMPLEX = {
    "sums": (gw.Add, RNG.normal(size=N) + 1j * RNG.normal(size=N)),
    "products": (gw.Multiply, RNG.uniform(0.99, 1.01, N) * np.exp(1j * RNG.uniform(0, 7, N))),
    "products that overflow": (gw.Multiply, RNG.normal(scale=3, size=N) + 1j * RNG.normal(scale=3, size=N)),
    "products that vanish": (gw.Multiply, RNG.normal(scale=0.5, size=N) + 1j * RNG.normal(scale=0.5, size=N)),
    "sums with infinities": (gw.Add, np.where(np.arange(N) == N // 2, complex(np.inf, 1), 1 - 1j)),
}
#: Of one kernel that is quickly compiled; it groups the items otherwise than the reference does.
SMALL = {"strategy": "lookback", "tuning": gw.ScanTuning(workgroup_size=64, vecs=1, tickets=True)}
SHORT = gw.SamplingProtocol(
    samples=3, block_trials=3, warmup_s=0.01, max_warmup_s=0.02, canary_passes=3, check_unit=False
)


def _small_reduce(device, *args, **options):
    return gw.Reduce(device, *args, tuning=gw.ReduceTuning(workgroup_size=64, vecs=1, max_blocks=1), **options)


def _small_scan(device, *args, **options):
    return gw.Scan(device, *args, **SMALL, **options)


MAKE = {
    "reduce": _small_reduce,
    "scan": _small_scan,
    "exclusive scan": lambda device, datatype, op: _small_scan(device, datatype, op, "exclusive"),
    "rows": lambda device, datatype, op: gw.ScanAxis(device, datatype, op, shape=(N // 50, 50), axis=1),
}


def _run(primitive, x):
    return primitive.execute(input=gw.asarray(x, primitive.device)).output.to_numpy()


def test_right_results_are_right(device):
    """Each operator and each form of a kernel; which of them meet does not matter to the check."""
    for names, forms in (
        (["products", "products that a partial product may overflow in", "products that vanish"], ["reduce", "scan"]),
        (["sums"], ["rows"]),
        (["own sums", "probabilities"], ["reduce"]),
        (["logarithms", "selected"], ["exclusive scan"]),
        (["norms"], ["reduce"]),
    ):
        for name, form in itertools.product(names, forms):
            op, items = CASES[name]
            x = items.astype(np.float32)
            primitive = MAKE[form](device, "f32", op)
            assert mismatch(primitive, {"input": x}, {"output": _run(primitive, x)}) is None, (name, form)


def test_right_complex_results_are_right(device):
    for form, op in (("rows", gw.Add), ("exclusive scan", gw.Multiply)):
        primitive = MAKE[form](device, "complex64", op)
        for name in (name for name, (other, _) in COMPLEX.items() if other is op):
            x = COMPLEX[name][1].astype(np.complex64)
            with np.errstate(all="ignore"):
                assert mismatch(primitive, {"input": x}, {"output": _run(primitive, x)}) is None, (name, form)


def test_integers_that_are_combined_as_floats_may_round(device):
    kinds = [(_small_scan, "i32", "f32"), (_small_reduce, "i16", "f32")]
    if "shader-f64" in device.features:
        kinds += [(_small_reduce, "u64", "f64")]
    for make, datatype, result in kinds:
        dtype = gw.STORAGE_DATATYPES[datatype].dtype
        limits = np.iinfo(dtype)
        x = RNG.integers(limits.min, limits.max, N, dtype=dtype, endpoint=True)
        primitive = make(device, datatype, result_dtype=result)
        output = _run(primitive, x)
        assert mismatch(primitive, {"input": x}, {"output": output}) is None, datatype
        output[output.size // 2] *= 1.001
        assert mismatch(primitive, {"input": x}, {"output": output}).wrong_items == 1


def test_many_positive_f64_are_added_up_right():
    """One after another, so many f64 err more than a kernel does, so the reference must not add them so."""
    n = 1 << 18
    x = RNG.random(n)
    sums = np.cumsum(x, dtype=np.longdouble)
    rows = x.reshape(2, n // 2)
    for primitive, name, output in (
        (gw.Scan(None, "f64", capabilities=FULL), "input", sums),
        (
            gw.ScanAxis(None, "f64", shape=rows.shape, axis=1, capabilities=FULL), "input",
            rows.cumsum(axis=1, dtype=np.longdouble),
        ),
        (
            gw.ReduceAxis(None, "f64", shape=(n // 2, 2), axis=0, capabilities=FULL), "input",
            x.reshape(n // 2, 2).cumsum(axis=0, dtype=np.longdouble)[-1],
        ),
        (gw.SegmentedReduce(None, "f64", length=n, capabilities=FULL), "items", sums[-1:]),
    ):  # fmt: skip
        right = output.astype(np.float64).reshape(-1)
        assert mismatch(primitive, {name: x}, {"output": right}) is None
        right[-1] *= 1 + 1e-12
        assert mismatch(primitive, {name: x}, {"output": right}) is not None


def test_results_that_are_wrong_by_a_thousandth_are_wrong():
    for name, make in itertools.product(CASES.keys() - {"products that vanish"}, (gw.Reduce, gw.Scan)):
        op, items = CASES[name]
        x = items.astype(np.float32)
        primitive = make(None, "f32", op, capabilities=FULL)
        output = primitive.reference(x)
        where = output.size // 2
        output[where] += max(abs(output[where]), np.float32(1)) * np.float32(0.003)
        found = mismatch(primitive, {"input": x}, {"output": output})
        assert (found.index, found.wrong_items) == (where, 1), name


def test_complex_results_with_one_wrong_part_are_wrong():
    for name, make, part in itertools.product(("sums", "products"), (gw.Reduce, gw.Scan), ("real", "imag")):
        op, items = COMPLEX[name]
        x = items.astype(np.complex64)
        primitive = make(None, "complex64", op, capabilities=FULL)
        output = np.atleast_1d(primitive.reference(x)).copy()
        where = output.size // 2
        getattr(output, part)[where] += 0.01 * np.abs(output[where]) + 0.1
        found = mismatch(primitive, {"input": x}, {"output": output})
        assert (found.index, found.wrong_items) == (where, 1)


P = gw.f32("p")
MOMENTS = gw.struct(count=gw.u32(1), mean=P, m2=gw.f32(0))
SEVERAL = {
    "total": (P * P, "sum"), "mean": (P, "mean"), "product": (P / 30.0, "prod"), "most": (gw.sqrt(P), "max"),
    "first": (P, "first"), "rows": gw.count, "spread": (P, "std"), "own": (P, PLUS), "whole": (gw.i32(P), "mean"),
}  # fmt: skip
SMALL_SCAN = {"tuning": gw.ScanTuning(workgroup_size=64, vecs=1)}
#: What reads expressions, combines structs, stores expressions of results, or groups items by an order of its own.
COMPOSED = {
    "sums of groups": lambda device, **more: gw.GroupBy(device, gw.u32("c"), total=(P, "sum"), **more),
    "group-by": lambda device, **more: gw.GroupBy(device, gw.u32("c"), SEVERAL, **more),
    "moments": lambda device, **more: gw.Reduce(device, MOMENTS, gw.Moments, **more),
    "variance": lambda device, **more: gw.Reduce(
        device, MOMENTS, gw.Moments, output=gw.result.m2 / gw.f32(gw.result.count), **more
    ),
    "prefixes": lambda device, **more: gw.Scan(device, P * 1.7, output=gw.result * 1000.0, **more),
    "products by key": lambda device, **more: gw.ReduceByKey(device, "u32", P / 30.0, gw.Multiply, **more),
    "moments by key": lambda device, **more: gw.ReduceByKey(device, "u32", MOMENTS, gw.Moments, **more),
    "map": lambda device, **more: gw.Map(device, gw.sin(P) / P + 1.0, **more),
}


def _composed(device, name, n, **more):
    """Return a primitive, and few groups of many positive items."""
    primitive = COMPOSED[name](device, **more)
    rng = np.random.default_rng(3)
    columns = {"p": rng.uniform(29.9, 30.1, n).astype(np.float32), "c": rng.integers(0, 3, n).astype(np.uint32)}
    columns["keys"] = np.sort(columns["c"])
    return primitive, {name: column for name, column in columns.items() if name in primitive.signature.arguments}


@pytest.mark.parametrize("name", quick_first(["sums of groups", "variance"], COMPOSED))
def test_right_results_of_what_is_composed_are_right(device, name):
    tuned = SMALL_SCAN if name not in ("moments", "variance", "map") else {}
    primitive, inputs = _composed(device, name, 40_000, **tuned)
    run = primitive.execute(**{key: gw.asarray(items, device) for key, items in inputs.items()})
    outputs = {key: array.to_numpy() for key, array in run.outputs.items()}
    wanted = primitive.reference(**inputs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert any(got.tobytes() != right.tobytes() for got, right in zip(outputs.values(), wanted, strict=True))
    assert mismatch(primitive, inputs, outputs) is None


def test_each_output_of_what_is_composed_is_compared():
    """By a few thousandths, field by field, and with the name of the output."""
    for name in COMPOSED:
        primitive, inputs = _composed(None, name, 4_000, capabilities=FULL)
        wanted = primitive.reference(**inputs)
        outputs = dict(
            zip(primitive.signature.outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True)
        )
        assert mismatch(primitive, inputs, outputs) is None
        for key, right in outputs.items():
            for field in right.dtype.names or (...,):
                got = right.copy()
                part, where = got[field], right.size // 2
                part[where] += 1 if part.dtype.kind == "u" else max(abs(part[where]), np.float32(1)) * np.float32(0.003)
                found = mismatch(primitive, inputs, {**outputs, key: got})
                assert (found.index, found.wrong_items) == (where, 1), (name, key, field)
                assert found.argument == (key if len(outputs) > 1 else "")


def test_products_and_sums_that_a_gpu_makes_one_operation_of_are_right():
    """Where almost all cancels, one rounding less changes much."""
    exact, wide = RNG.uniform(900, 1100, (2, N)).astype(np.float32), np.float64
    p, q = exact[0], (exact[0] + RNG.uniform(-1, 1, N)).astype(np.float32)
    fused = (wide(p) * wide(p) - wide(q * q)).astype(np.float32)
    assert (fused != p * p - q * q).any()
    difference = P * P - gw.f32("q") * gw.f32("q")
    for primitive, got in (
        (gw.Map(None, difference, capabilities=FULL), fused),
        (gw.Reduce(None, difference, gw.Max, capabilities=FULL), fused.max(keepdims=True)),
        (gw.Reduce(None, difference, capabilities=FULL), fused.sum(keepdims=True, dtype=wide).astype(np.float32)),
        (gw.Select(None, difference, where=P > 0.0, capabilities=FULL), fused),
        (gw.GroupBy(None, gw.u32("c"), {"output": (difference, "min")}, capabilities=FULL), fused.min(keepdims=True)),
    ):
        inputs = {"p": p, "q": q, "c": np.zeros(N, np.uint32)}
        inputs = {name: inputs[name] for name in primitive.signature.arguments if name in inputs}
        wanted = primitive.reference(**inputs)
        wanted = dict(zip(primitive.signature.outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True))
        assert mismatch(primitive, inputs, {**wanted, "output": got}) is None
        assert mismatch(primitive, inputs, {**wanted, "output": got + N * np.float32(0.5)}).wrong_items == got.size
    x = RNG.uniform(0, 1, 200_000).astype(np.float32)
    whole = gw.Map(None, gw.i32(P * 1000.5 + 0.3), capabilities=FULL)
    got = (wide(x) * 1000.5 + np.float32(0.3)).astype(np.float32).astype(np.int32)
    assert 0 < (got != whole.reference(p=x)).sum() < 100
    assert mismatch(whole, {"p": x}, {"output": got}) is None
    assert mismatch(whole, {"p": x}, {"output": got + 1}).wrong_items > 0.99 * x.size
    alike = gw.struct(value=P * P - (P + 1.0) * (P - 1.0), index=gw.index)
    highest = gw.Reduce(None, alike, gw.ArgMax, output=gw.result.index, capabilities=FULL)
    place = highest.reference(p=p)
    assert mismatch(highest, {"p": p}, {"output": np.where(place < N // 2, place + 2, place - 2)}) is not None


def test_what_only_selects_must_be_exact():
    x = CASES["selected"][1].astype(np.float32)
    scan = gw.Scan(None, "f32", LAST, capabilities=FULL)
    output = scan.reference(x)
    output[77] = np.nextafter(output[77], np.float32(np.inf))
    assert mismatch(scan, {"input": x}, {"output": output}).index == 77


def test_an_infinity_is_right_only_where_numpy_has_it():
    for op in (gw.Add, gw.Multiply, PLUS, LOG_ADD):
        x = np.full(100, 1.5, dtype=np.float32)
        scan = gw.Scan(None, "f32", op, capabilities=FULL)
        for wrong in (np.inf, -np.inf, np.nan):
            output = scan.reference(x)
            output[40] = wrong
            assert mismatch(scan, {"input": x}, {"output": output}).index == 40
        x[50] = np.inf
        output = scan.reference(x)
        assert mismatch(scan, {"input": x}, {"output": output}) is None
        output[60] = 3.0
        assert mismatch(scan, {"input": x}, {"output": output}).index == 60


def test_halves_of_words_are_put_back(device, steady_clock):
    """In place, items of 16 bits at any offset: what stands around them stays, and every trial begins with the same."""
    tuning = gw.ScanTuning(workgroup_size=64, vecs=1)
    scan = gw.Scan(device, "f16", strategy="reduce_then_scan", tuning=tuning)
    for offset, n in ((0, 1001), (1, 1001), (1, 1000), (3, 5)):
        items = RNG.integers(0, 2, size=n + offset + 7).astype(np.float16)  # their sums are exact
        x = gw.asarray(items, device)
        part = x[offset : offset + n]
        measured = gw.measure(scan, protocol=SHORT, input=part, output=part)
        assert measured.correct, measured.mismatches
        assert measured.protocol["restored"] == ["input"]
        expected = items.copy()
        expected[offset : offset + n] = items[offset : offset + n].cumsum(dtype=np.float32)
        np.testing.assert_array_equal(x.to_numpy(), expected)


def test_a_finite_item_is_not_near_an_infinity():
    right = np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)
    assert difference(right.copy(), right) is None
    for options in ({}, {"rtol": 1e-3}, {"atol": 1.0}):
        for i, wrong in ((0, 5.0), (0, -np.inf), (1, 5.0), (2, np.inf), (3, np.inf), (3, np.nan)):
            got = right.copy()
            got[i] = wrong
            found = difference(got, right, **options)
            assert found is not None, (options, i, wrong)
            assert (found.index, found.wrong_items) == (i, 1)
    assert difference(np.array([1 + np.inf * 1j]), np.array([1 + 2j])).index == 0
    struct = np.array([(1, 0.1), (2, np.nan)], [("a", "u4"), ("b", "f4")])
    near = struct.copy()
    near["b"] *= np.float32(1 + 1e-6)
    assert difference(near, struct) is None
    near["a"][1] = 3
    assert difference(near, struct).index == 1
    assert difference(np.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 5]]), argument="y").argument == "y"
