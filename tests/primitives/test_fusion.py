"""Primitives that read expressions: against numpy, on every way that a kernel reads its items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import quick_first

A, B = gw.f32("a"), gw.f32("b")
X, Y, K, D = gw.f32("x"), gw.f32("y"), gw.u32("k"), gw.i32("d")
TABLE, P = gw.f32("table"), gw.f32("p", components=3)
HALF, BYTE, BOOL, WORD = gw.leaf("half", "f16"), gw.leaf("byte", "i8"), gw.leaf("bool_", "bool"), gw.leaf("word", "u16")
REDUCE = gw.ReduceTuning(workgroup_size=64, vecs=1, subgroups="none")
SCAN = gw.ScanTuning(workgroup_size=64, vecs=1, subgroups="none")
TWICE = gw.function("fn f(x: f32) -> f32 { return two * x; }\nconst two = 2.0;", numpy=lambda x: 2 * x)


def _items(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-100, 100, n).astype(np.float32)


def _given(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {
        "x": rng.integers(-50, 50, n).astype(np.float32) / 4,
        "y": rng.integers(-50, 50, n).astype(np.float32) / 4,
        "k": rng.integers(0, 1000, n).astype(np.uint32),
        "d": rng.integers(-500, 500, n).astype(np.int32),
        "table": rng.integers(-500, 500, 257).astype(np.float32),
        "p": rng.integers(-50, 50, 3 * n).astype(np.float32),
        "half": rng.integers(-50, 50, n).astype(np.float16),
        "byte": rng.integers(-128, 128, n).astype(np.int8),
        "bool_": rng.integers(0, 2, n).astype(bool),
        "word": rng.integers(0, 1 << 16, n).astype(np.uint16),
    }


#: By the ways that a kernel computes an item. All values are exact.
EXPRESSIONS = {
    "neighbours": gw.where(gw.index == 0, X, X - gw.previous(X)) + gw.next(gw.previous(Y * 2) + X) + gw.flip(Y),
    "gathers": TABLE[K & 255] * X + TABLE[D] + (TABLE * TABLE)[K] + gw.previous(TABLE)[K],
    "gathers in gathers": TABLE[gw.u32(abs(TABLE[K]))] + gw.previous(TABLE[gw.u32(abs(X[K]))]),
    "components": P.x * 2 + P.y - P.z + gw.previous(P.y) + X,
    "small items": HALF * X + gw.f32(BYTE + gw.flip(BYTE)) + gw.where(BOOL, X, -X) + gw.f32(WORD + gw.previous(WORD)),
    "integers": K // 7 + K % 13 + K // (K & 3) + ((K << K % 40) ^ (K >> 1)) + gw.popcount(~K) + gw.u32(D >> D),
    "floats": gw.floor(X) + gw.ceil(Y) + gw.rint(X) + gw.sign(X) + abs(Y) + gw.minimum(X, Y) * gw.maximum(X, 1.5),
    "conditions": gw.u32(((X > 0) & (K > 500)) | ~(D == 3)) + gw.u32(gw.isnan(X / 0 * 0)) + gw.u32((X > Y) ^ (Y > 0)),
    "functions": TWICE(X) + TWICE(Y + 1),
    "bits": gw.bitcast("u32", X) >> 23,
}  # fmt: skip


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_kernels_compute_what_numpy_does(device, name):
    store = gw.Map(device, EXPRESSIONS[name], tuning=gw.ElementwiseTuning(workgroup_size=64, vecs=1))
    for n in (1, 2, 5, 1_027):
        given = {each: items for each, items in _given(n).items() if each in store.signature.inputs}
        found = store.execute(**{each: gw.asarray(items, device) for each, items in given.items()}).output
        np.testing.assert_array_equal(found.to_numpy(), store.reference(**given), err_msg=f"n = {n}")


def test_functions_that_round(device):
    x = np.random.default_rng(0).uniform(0.1, 10, 500).astype(np.float32)
    # WGSL has 2^-11 for a sine and a cosine, of at most π, and a few ulps for the others.
    for made, items, within in (
        (gw.sqrt(X) + gw.exp(X / 10) + gw.log(X) + gw.tanh(X) + X**0.5, x, 1e-5),
        (gw.sin(X) + gw.cos(X), x % np.float32(3), 2.0**-10),
    ):
        found = gw.Map(device, made).execute(x=gw.asarray(items, device)).output.to_numpy()
        np.testing.assert_allclose(found, made.numpy(x=items), rtol=1e-5, atol=within)


#: Zeros, infinities and NaN; whole and other numbers; beyond 2^24, where every float is whole.
SPECIAL = np.float32([0, -0.0, 1, -1, 2, -3, 0.5, -7.25, 0.1, 33, -65, np.inf, -np.inf, np.nan, 16777215, -16777217,
                      1e10, -1e30, 3e38, 2e-38, -1e-30])  # fmt: skip
PAIRS = np.stack([each.reshape(-1) for each in np.meshgrid(SPECIAL, SPECIAL)])


def test_remainders_quotients_and_powers_are_numpys(device):
    """Remainders to the last bit and the sign of 0."""
    random = np.random.default_rng(1).integers(0, 1 << 32, (2, 3000), dtype=np.uint32).view(np.float32)
    near = np.random.default_rng(2).uniform(-40, 40, (2, 3000)).astype(np.float32) * np.float32([[25], [1]])
    x, y = np.concatenate([PAIRS, random[:, (np.abs(random) > 1e-35).all(axis=0)], near], axis=1)
    d, e = np.random.default_rng(3).integers(-(1 << 31), 1 << 31, (2, 3000)).astype(np.int32)
    d, e = (
        np.concatenate([d, d, [-(1 << 31)] * 4]),
        np.concatenate([e, e % 20 - 10, [-1, 0, 1, -(1 << 31)]]).astype("i4"),
    )
    d = d.astype(np.int32)
    names = {"x": x, "y": y, "d": d, "e": e}
    for made, rounds in (
        (X % Y, False), (D % gw.i32("e"), False), (D // gw.i32("e"), False), (X // Y, True), (X**Y, True),
    ):  # fmt: skip
        store = gw.Map(device, made)
        given = {name: names[name] for name in store.signature.inputs}
        found = store.execute(**{name: gw.asarray(items, device) for name, items in given.items()}).output.to_numpy()
        wanted = made.numpy(**given)
        # A device may take subnormal numbers as 0.
        known = np.abs(wanted) > 1e-37 if wanted.dtype.kind == "f" else np.ones(wanted.size, bool)
        known |= (wanted == 0) | ~np.isfinite(wanted)
        np.testing.assert_allclose(found[known], wanted[known], rtol=3e-5 if rounds else 0)
        zeros = (wanted == 0) & (found == 0)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


def test_powers_by_whole_numbers_are_numpys(device):
    x = np.float32([-2, -1.5, -1, -0.0, 0, 1, 3, np.nan, -np.inf, np.inf])
    for number in (0, 2.0, np.int64(3), 65, -3):
        made = gw.asarray(gw.asarray(x, device) ** number).to_numpy()
        with np.errstate(all="ignore"):
            wanted = np.power(x, np.float32(number))
        np.testing.assert_allclose(made, wanted, rtol=1e-5, err_msg=str(number))


def test_a_number_and_itself(device):
    """Compilers reckon as if there were neither infinity nor NaN."""
    x = np.float32([np.inf, -np.inf, np.nan, -3, 0])
    for made in (X - X, gw.f32(X != X), gw.f32(X == X), gw.f32(X <= X), gw.f32(X >= X)):
        found = gw.Map(device, made).execute(x=gw.asarray(x, device)).output.to_numpy()
        np.testing.assert_array_equal(found, made.numpy(x=x))


def test_fields_of_an_array_of_structs(device):
    kind = gw.Struct("Particle", x="f32", n="i32", id="u32")
    items = kind.array(x=np.arange(3000) / 8, n=-np.arange(3000), id=np.arange(3000) * 3)
    points = gw.asarray(items, device)
    chosen = gw.compress((points["x"] > 50) & (points["n"] % 2 == 0), points)
    np.testing.assert_array_equal(chosen.to_numpy(), items[(items["x"] > 50) & (items["n"] % 2 == 0)])
    product = points[7:]["x"] * gw.f32(gw.previous(points[7:]["id"]))
    np.testing.assert_array_equal(gw.asarray(product, device).to_numpy(), product.numpy())
    np.testing.assert_array_equal(product.numpy()[1:], items["x"][8:] * items["id"][7:-1].astype(np.float32))
    with pytest.raises(gw.ArgumentError, match="x, n, id has no field 'y'"):
        points["y"]
    with pytest.raises(gw.DatatypeError, match=r"structs; expressions read their fields.*\['x'\]"):
        points + 1


def test_the_sign_of_nan_is_nan_and_nan_differs_from_all(device):
    x = np.float32([np.nan, -np.inf, -2, 0, 3])
    array = gw.asarray(x, device)
    np.testing.assert_array_equal(gw.asarray(gw.sign(array)).to_numpy(), np.sign(x))
    for other in (0, -2, np.nan):
        np.testing.assert_array_equal(gw.asarray(array != other).to_numpy(), x != other)


def test_a_reduction_of_a_product(device):
    dot = gw.Reduce(device, A * B, tuning=REDUCE)
    for n in (1, 5, 4_096, 4_099, 100_003):
        a, b = _items(n), _items(n, 1)
        found = dot.execute(a=gw.asarray(a, device), b=gw.asarray(b, device)).output.to_numpy()
        np.testing.assert_allclose(found, [np.dot(a.astype(np.float64), b)], rtol=1e-5, atol=1)
        np.testing.assert_allclose(dot.reference(a=a, b=b), found, rtol=1e-5, atol=1)


def test_other_forms_of_reductions_and_scans(device):
    x = _items(9_001)
    array = gw.asarray(x, device)
    total = gw.Reduce(device, gw.leaf("byte", "i8") * 3, result_dtype="i64", tuning=REDUCE)
    small = np.arange(1_000).astype(np.int8)
    assert total.execute(byte=gw.asarray(small, device)).output.to_numpy() == 3 * small.astype(np.int64).sum()
    found = gw.Reduce(device, X * 2, compensated=True).execute(x=array).output.to_numpy()
    np.testing.assert_array_equal(found, [2 * x.sum()])
    found = gw.Scan(device, X * 2, deterministic=True).execute(x=array).output.to_numpy()
    np.testing.assert_array_equal(found, 2 * np.cumsum(x))


def test_a_fused_reduction_of_views_at_odd_offsets(device):
    a, b = _items(1_003), _items(1_007, 1)
    x, y = gw.asarray(a, device)[1:1_001], gw.asarray(b, device)[3:1_003]
    found = gw.Reduce(device, gw.i32(A * B), tuning=REDUCE).execute(a=x, b=y).output.to_numpy()
    assert found == (a[1:1_001] * b[3:1_003]).astype(np.int64).sum()


@pytest.mark.parametrize("strategy", quick_first(["lookback"], ["reduce_then_scan"]))
def test_a_scan_of_a_condition(device, strategy):
    scan = gw.Scan(device, gw.u32(A > B), strategy=strategy, tuning=SCAN)
    for n in (1, 5_000):
        a, b = _items(n), _items(n, 1)
        found = scan.execute(a=gw.asarray(a, device), b=gw.asarray(b, device)).output.to_numpy()
        np.testing.assert_array_equal(found, np.cumsum(a > b))


def test_windows_and_chunks(device):
    """Leaves that are read at other items are bound as a whole, in segments; the others go with the window."""
    capabilities = gw.capabilities(device)
    limits = {**capabilities.limits, "max-storage-buffer-binding-size": 33_024}
    narrow = replace(capabilities, limits=limits)
    n = 20_001
    given = _given(n)
    made = gw.where(gw.index < 12_000, X + gw.previous(Y) - gw.flip(Y), TABLE[K] + gw.f32(gw.index))
    store = gw.Map(device, made, capabilities=narrow)
    given = {name: given[name] for name in store.signature.inputs}
    arrays = {name: gw.asarray(items, device) for name, items in given.items()}
    run = store.execute(**arrays)
    assert run.plan.parameters["windows"] > 2
    np.testing.assert_array_equal(run.output.to_numpy(), store.reference(**given))
    total = gw.Reduce(device, gw.i32((X + gw.previous(Y)) * 4), capabilities=narrow, tuning=REDUCE)
    pair = {name: arrays[name] for name in "xy"}
    wanted = total.reference(**{name: given[name] for name in "xy"})
    np.testing.assert_array_equal(total.execute(**pair).output.to_numpy(), wanted)
    placed = gw.Scan(device, gw.i32(X * 4), output=gw.result + gw.i32(gw.index), capabilities=narrow, tuning=SCAN)
    run = placed.execute(x=arrays["x"])
    assert run.plan.parameters["windows"] > 2
    np.testing.assert_array_equal(run.output.to_numpy(), placed.reference(x=given["x"]))
    chunks = {
        name: gw.ChunkedArray([array[:3_000], array[3_000:]]) if array.size == n else array
        for name, array in arrays.items()
    }
    total = gw.Reduce(device, gw.i32(X * 4) + gw.i32(K), tuning=REDUCE)
    found = total.execute(x=chunks["x"], k=chunks["k"]).output.to_numpy()
    np.testing.assert_array_equal(found, total.reference(x=given["x"], k=given["k"]))


ARGMAX = gw.BinOp.of(
    "argmax",
    lambda a, b: gw.where((b.value > a.value) | ((b.value == a.value) & (b.place < a.place)), b, a),
    identity={"value": -np.inf, "place": 2**32 - 1},
)
MEAN = gw.BinOp.of(
    "mean", lambda a, b: gw.struct(sum=a.sum + b.sum, count=a.count + b.count), identity={"sum": 0, "count": 0}
)


def test_structs_and_operators_of_one_function(device):
    items = gw.struct(value=X, place=gw.index)
    largest = gw.Reduce(device, items, ARGMAX, tuning=REDUCE)
    scan = gw.Scan(device, items, ARGMAX, "exclusive", strategy="lookback", tuning=SCAN)
    for n in (1, 1_003, 20_001):
        x = _items(n)
        array = gw.asarray(x, device)
        (found,) = largest.execute(x=array).output.to_numpy().tolist()
        assert found == (x.max(), x.argmax())
        assert largest.reference(x=x).tolist() == [found]
        np.testing.assert_array_equal(scan.execute(x=array).output.to_numpy(), scan.reference(x=x))


def test_the_text_of_a_traced_operator_is_checked_on_the_device(device):
    wrong = gw.BinOp.of("wrong", lambda a, b: a - b, identity=0)
    with pytest.raises(gw.ArgumentError, match=r"identity|order|associative"):
        gw.Reduce(device, "u32", wrong)


@pytest.mark.parametrize("options", quick_first([{"kind": "exclusive"}], [{"strategy": "reduce_then_scan"}]), ids=str)
def test_expressions_of_results(device, options):
    line = gw.Scan(device, "f32", output=gw.result * 2 + gw.f32(gw.index), tuning=SCAN, **options)
    mean = gw.Scan(
        device, gw.struct(sum=X, count=gw.f32(1)), MEAN, tuning=SCAN,
        output=gw.where(gw.result.count > 0, gw.result.sum / gw.result.count, 0), **options,
    )  # fmt: skip
    for n in (1, 1_003, 20_001):
        x = _items(n)
        array = gw.asarray(x, device)
        prefix = np.cumsum(x) - (x if options.get("kind") == "exclusive" else 0)
        np.testing.assert_array_equal(line.execute(input=array).output.to_numpy(), 2 * prefix + np.arange(n))
        found = mean.execute(x=array).output.to_numpy()
        np.testing.assert_allclose(found, mean.reference(x=x), rtol=1e-6)
        counts = np.arange(n) + (options.get("kind") != "exclusive")
        np.testing.assert_allclose(found, prefix / np.maximum(counts, 1), rtol=1e-6)


def test_expressions_of_several_dimensions(device):
    """Prefixes are of all items, in one dimension, as numpy's; what works along one dimension does not take them."""
    items = np.float32([[3, -1, 4], [1, -5, 9]])
    x = gw.asarray(items, device)
    for found, wanted in (
        (gw.cumsum(x * 2), np.cumsum(items * 2)),
        (gw.scan(-x, "max"), np.maximum.accumulate(-items.ravel())),
    ):
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found.to_numpy(), wanted)
    for call in (
        lambda: gw.sort(x * 2), lambda: gw.argsort(x * 2), lambda: gw.sort_pairs(x * 2, x.ravel()),
        lambda: gw.sort(x * 2, less=lambda a, b: a < b), lambda: gw.top_k(x * 2, 1), lambda: gw.nonzero(x > 0),
    ):  # fmt: skip
        with pytest.raises(gw.ArgumentError, match=r"has shape \(2, 3\), but gw\.\w+\(\) works along one dimension"):
            call()
    np.testing.assert_array_equal(gw.sort(x.ravel() * 2).to_numpy(), np.sort(items.ravel() * 2))
    np.testing.assert_array_equal(gw.top_k(gw.asarray(x * 2), 1).values.to_numpy(), [[8], [18]])
    with pytest.raises(gw.ArgumentError, match=r"gw\.sort\(\): no leaf of the expression says how many"):
        gw.sort(gw.gather(x, gw.index))


@pytest.mark.parametrize(
    "shapes",
    [
        [(5, 8), (5, 1), (8,)], [(3, 1_027), (3, 1), (1, 1_027)], [(300, 2), (300, 1), (2,)], [(6, 1), (1, 6), (6, 1)],
        [(2, 3, 4), (3, 1), (2, 1, 1)], [(2, 1, 5, 3), (4, 1, 1), (2, 1, 1, 3)], [(0, 4), (4,), (1, 1)],
    ],
    ids=str,
)  # fmt: skip
def test_shapes_are_broadcast(device, shapes):
    """In an order in which lines are read four items at a time, and one by one; also what moves, and gathers of it."""
    rng = np.random.default_rng(5)
    items = [rng.integers(-9, 9, shape).astype(np.float32) for shape in shapes]
    a, b, c = (gw.asarray(each, device) for each in items)
    wanted = (items[0] - items[1]) * items[2] + items[1]
    made = (a - b) * c + b
    found = gw.asarray(made)
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.to_numpy(), wanted)
    assert gw.sum(made).item() == wanted.sum()
    moved = gw.flip(made) + gw.previous(b * 2) * c
    np.testing.assert_array_equal(gw.asarray(moved).to_numpy(), moved.numpy())
    at = rng.integers(-1, wanted.size + 1, 7).astype(np.int32)
    if wanted.size:
        chosen = gw.gather(b * c - a, gw.asarray(at, device))
        np.testing.assert_array_equal(gw.asarray(chosen).to_numpy(), chosen.numpy())


def test_small_items_fields_and_views_are_broadcast(device):
    items = np.arange(40).astype(np.uint8)
    x = gw.asarray(items, device)
    for first in (1, 4):
        rows, column, row = x[first : first + 24], x[30:36], x[first : first + 4]
        found = gw.asarray(rows.reshape(6, 4) * column[:, None] + row)
        wanted = (
            items[first : first + 24].reshape(6, 4) * items[30:36, None].astype(np.uint32) + items[first : first + 4]
        )
        np.testing.assert_array_equal(found.to_numpy(), wanted)
    pairs = np.array([[(1, 2), (3, 4)], [(5, 6), (7, 8)]], [("a", "f4"), ("b", "f4")])
    fields = gw.asarray(pairs, device)
    found = gw.asarray(fields["a"] - fields[1]["b"])
    np.testing.assert_array_equal(found.to_numpy(), pairs["a"] - pairs[1]["b"])
    out = gw.empty((6, 4), "u32", device)
    assert gw.maximum(rows.reshape(6, 4), column[:, None], out=out) is out
    np.testing.assert_array_equal(
        out.to_numpy(), np.maximum(items[first : first + 24].reshape(6, 4), items[30:36, None])
    )
    for bad in (gw.empty(4, "u32", device), gw.empty((4, 6), "u32", device)):
        with pytest.raises(gw.LengthError, match=r"\(6, 4\)"):
            gw.maximum(rows.reshape(6, 4), column[:, None], out=bad)
    counted = gw.compress(x > 30, x)[:4]
    with pytest.raises(gw.ArgumentError, match=r"only the GPU knows.*x\.trim\(\)"):
        gw.asarray(rows.reshape(6, 4) * counted)


def test_what_is_broadcast_in_windows(device):
    capabilities = gw.capabilities(device)
    limits = {**capabilities.limits, "max-storage-buffer-binding-size": 33_024}
    narrow = replace(capabilities, limits=limits)
    for columns in (1_000, 1_001):
        # Products are exact, so that it is all the same whether the difference is fused with them.
        items = (np.arange(20 * columns) % 4_001).astype(np.float32).reshape(20, columns)
        x = gw.asarray(items, device)
        run = gw.Map(device, x - x[:, :1] * x[0], capabilities=narrow).execute()
        assert run.plan.parameters["windows"] > 2
        np.testing.assert_array_equal(run.output.to_numpy(), items - items[:, :1] * items[0])


def test_a_number_on_the_gpu_in_place_of_a_scalar(device):
    """The message names what reads it, and that does."""
    x, number = gw.asarray(np.float32([1, 2, 3]), device), gw.asarray(np.float32([10]), device)
    with pytest.raises(gw.DatatypeError, match=r"alpha is Array.*gw\.gather\(gw\.f32\('alpha'\), 0\)"):
        gw.Map(device, X * gw.scalar("alpha", "f32")).execute(x=x, alpha=number)
    found = gw.Map(device, X * gw.gather(gw.f32("alpha"), 0)).execute(x=x, alpha=number)
    assert found.output.to_numpy().tolist() == [10, 20, 30]
    with pytest.raises(gw.DatatypeError, match=r"offsets is of i32, .* offsets\.astype\('u32'\)$"):
        gw.SegmentedReduce(device, "f32").execute(items=x, offsets=gw.asarray(np.int32([0, 3]), device))
    with pytest.raises(gw.DatatypeError, match=r"output is of f32, .*; give an Array of u32$"):
        gw.Map(device, gw.index).execute(output=x)
    with pytest.raises(gw.DatatypeError, match=r"input\.astype\('u32'\), or make a Reduce for f32$"):
        gw.Reduce(device, "u32").execute(input=x)


def test_sums_of_conditions_have_the_dtype_of_sums_of_bools(device):
    items = np.float32([3, -1, 4])
    x = gw.asarray(items, device)
    for found, wanted in ((gw.sum(x > 0), np.sum(items > 0)), (gw.cumsum(x > 0), np.cumsum(items > 0))):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.to_numpy(), wanted)
    assert gw.sum(gw.u32(x > 0)).dtype == np.uint64


def test_expressions_of_reductions(device):
    x = _items(5_001)
    array = gw.asarray(x, device)
    half = gw.Reduce(device, "f32", output=gw.result / 2 + 1, tuning=REDUCE)
    assert half.execute(input=array).output.to_numpy() == x.sum() / 2 + 1
    assert half.execute(input=gw.empty(0, "f32", device)).output.to_numpy() == 1
    most = gw.Reduce(device, "f32", gw.Max, output=gw.result > 3, tuning=REDUCE)
    assert most.execute(input=array).output.to_numpy() == 1
    assert gw.Reduce(device, X, compensated=True, output=-gw.result).execute(x=array).output.to_numpy() == -x.sum()
    with pytest.raises(gw.DatatypeError, match="result_dtype"):
        gw.Reduce(device, "u16", output=gw.result + 1)
    with pytest.raises(gw.ArgumentError, match="reads x"):
        gw.Reduce(device, "f32", output=gw.result + X)


def test_an_expression_of_arrays_is_stored(device):
    a = _items(1_001)
    x = gw.asarray(a, device)
    found = gw.asarray(gw.where(x > 3, np.float32(2) * x, gw.f32(gw.index)), device).to_numpy()
    np.testing.assert_array_equal(found, np.where(a > 3, 2 * a, np.arange(a.size, dtype=np.float32)))
    condition = gw.asarray(x > 3)
    assert condition.dtype == bool
    np.testing.assert_array_equal(condition.to_numpy(), a > 3)
    np.testing.assert_array_equal(gw.asarray(x - gw.asarray(np.float32([10]), device)).to_numpy(), a - 10)
    np.testing.assert_array_equal(gw.asarray(gw.flip(x)).to_numpy(), a[::-1])
    assert gw.sum(gw.flip(x)).item() == a.sum(), "of arrays that are read in any order alone"
    np.testing.assert_array_equal(gw.asarray(gw.index * 3, device, size=7).to_numpy(), 3 * np.arange(7))
    with pytest.raises(gw.ArgumentError, match="size="):
        gw.asarray(gw.index * 3, device)
    assert gw.asarray(gw.asarray(a[:1_000].reshape(10, 100), device) + 1).shape == (10, 100)


def test_a_total_beside_an_array_of_any_length(device):
    """Of one item, too: the total has no dimension, the array one."""
    for n in (1, 2):
        items = np.arange(3, 3 + n, dtype=np.float32)
        x = gw.asarray(items, device)
        total = gw.sum(x)
        found = gw.asarray(x + total)
        assert found.shape == (n,)
        np.testing.assert_array_equal(found.to_numpy(), items + items.sum())
        assert gw.sum(total - x).item() == (items.sum() - items).sum()
        assert gw.asarray(total * 2).shape == ()


def test_one_shot_functions_of_expressions(device):
    a, k = _items(5_003), np.random.default_rng(1).integers(0, 1000, 5_003).astype(np.uint32)
    x, keys = gw.asarray(a, device), gw.asarray(k, device)
    assert gw.sum(x * x).item() == (a * a).sum()
    assert gw.sum(x > 0).item() == (a > 0).sum()
    assert gw.max(x * x).item() == (a * a).max()
    np.testing.assert_array_equal(gw.cumsum(x > 0).to_numpy(), np.cumsum(a > 0))
    order = np.argsort(k % 10, kind="stable")
    by, moved = gw.sort_pairs(keys % 10, x)
    np.testing.assert_array_equal(by.to_numpy(), (k % 10)[order])
    np.testing.assert_array_equal(moved.to_numpy(), a[order])
    out = gw.empty((), "f32", device)
    assert gw.sum(x * x, out=out) is out
    with pytest.raises(gw.ArgumentError, match="execute"):
        gw.sum(A * B)


def test_kept_primitives_do_not_keep_arrays(device):
    import gc
    import weakref

    x = gw.asarray(_items(1_000), device)
    gone = weakref.ref(x)
    assert gw.sum(x * x * 17).item() > 0
    del x
    gc.collect()
    assert gone() is None


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["onesweep", "reduce_then_scan"])
def test_sorts_by_expressions(device, strategy):
    n = 6_001
    given = _given(n)
    sort = gw.Sort(device, K & 15, strategy=strategy)
    found = sort.execute(k=gw.asarray(given["k"], device)).output.to_numpy()
    np.testing.assert_array_equal(found, np.sort(given["k"] & 15))
    order = gw.ArgSort(device, X * Y, descending=True, strategy=strategy)
    arrays = {name: gw.asarray(given[name], device) for name in "xy"}
    np.testing.assert_array_equal(
        order.execute(**arrays).output.to_numpy(), np.argsort(-(given["x"] * given["y"]), kind="stable")
    )
    with pytest.raises(gw.ArgumentError, match="leave it out"):
        gw.Sort(device, K, overwrite_input=True)


def test_a_scalar_is_a_word_of_the_parameters(device):
    x = gw.asarray(_items(100), device)
    scaled = gw.Map(device, X * gw.scalar("alpha", "f32"))
    first, second = (scaled.execute(x=x, alpha=alpha) for alpha in (3, np.float32(0.5)))
    np.testing.assert_array_equal(first.output.to_numpy(), 3 * x.to_numpy())
    np.testing.assert_array_equal(second.output.to_numpy(), x.to_numpy() / 2)
    assert set(first.plan.shaders) == set(second.plan.shaders)
    with pytest.raises(gw.ArgumentError, match="alpha="):
        gw.Map(device, X * gw.scalar("alpha", "f32")).execute(x=x)
    with pytest.raises(gw.DatatypeError, match="number of f32"):
        scaled.execute(x=x, alpha="three")


def test_wrong_arguments_leave_everything_as_it_was(device):
    x, short = gw.asarray(_items(100), device), gw.asarray(_items(50), device)
    store = gw.Map(device, X + Y)
    before = store.execute(x=x, y=x).output
    for wrong, words in (({"x": x, "y": short}, "50"), ({"x": x, "z": x}, "x, y, output"), ({"input": x}, "'input'")):
        with pytest.raises(gw.ArgumentError, match=words):
            store.execute(**wrong)
    np.testing.assert_array_equal(before.to_numpy(), 2 * x.to_numpy())
    np.testing.assert_array_equal(store.execute().output.to_numpy(), 2 * x.to_numpy())
    empty = gw.Map(device, X + TABLE[K])
    with pytest.raises(gw.LengthError, match="empty"):
        empty.execute(x=x, k=gw.zeros(100, "u32", device), table=gw.empty(0, "f32", device))
    with pytest.raises(gw.LengthError, match="multiple of 3"):
        gw.Map(device, P.x + P.y).execute(p=x)
    with pytest.raises(gw.ArgumentError, match="how many items"):
        gw.Reduce(device, gw.index * 2)
    with pytest.raises(gw.OverlapError):
        gw.Map(device, gw.previous(X)).execute(x=x, output=x)


class TestPlans:
    """Without a device."""

    def test_a_plan_is_data(self):
        plan = gw.Reduce.plan_for(
            capabilities=gw.Capabilities(), dtype=A * B + 2.5, lengths={"a": 1 << 20, "b": 1 << 20, "output": 1}
        )
        assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")
        assert plan.work.read_bytes == 8 << 20

    def test_another_number_is_the_same_text(self):
        def texts(expression):
            lengths = {"x": 1000, "output": 1000}
            return set(gw.Map.plan_for(capabilities=gw.Capabilities(), dtype=expression, lengths=lengths).shaders)

        assert texts(X * 2) == texts(X * 3.5)
        assert texts(X * 2) != texts(X + 2)

    def test_a_leaf_is_loaded_once(self):
        lengths = {"x": 1000, "y": 1000, "output": 1000}
        made = (X - Y) * (X - Y) + X
        plan = gw.Map.plan_for(capabilities=gw.Capabilities(), dtype=made, lengths=lengths)
        (shader,) = plan.shaders.values()
        body = shader.text.split("fn load4_input(")[1].split("}")[0]
        assert body.count("load4_input_0") == body.count("load4_input_1") == 1

    def test_a_users_wgsl_has_checks(self):
        lengths = {"x": 1000, "output": 1000}
        plan = gw.Map.plan_for(capabilities=gw.Capabilities(), dtype=TWICE(X), lengths=lengths)
        assert plan.shader_checks == ("bounds",)
        plan = gw.Map.plan_for(capabilities=gw.Capabilities(), dtype=X + X, lengths=lengths)
        assert plan.shader_checks == ("none",)
