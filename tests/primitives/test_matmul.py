"""MatMul and matmul against numpy, and arrays of f16, which came with them."""

import contextlib
import dataclasses
import itertools
import re

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.bench.analysis.roofline import ceilings_of, points
from gridwise_py.bench.cases.case import Case, array_items
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.bench.results.reader import read_results
from gridwise_py.bench.sweep.suite import Sweep, plan_jobs
from gridwise_py.cli import main
from gridwise_py.runtime.context import context_of
from gridwise_py.tuning.matmul_shapes import MatMulShape, SubgroupShape, matmul_shapes_for, subgroup_shape_for
from gridwise_py.types.capabilities import SubgroupMatrices
from helpers.cases import BARE, CPU, FULL
from helpers.matmul import SHAPES
from helpers.strategies import assert_same, make_primitive, quick_first

DTYPES = {"f32": np.float32, "f16": np.float16}


def _integers(datatype, *shape, seed=0):
    """Matrices whose products are integers that even f16 holds, so that any order of the sums gives the same bits."""
    return np.random.default_rng([seed, *shape]).integers(-3, 4, shape).astype(DTYPES[datatype])


def _product(a, b):
    """The exact product, rounded once."""
    with np.errstate(all="ignore"):
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype)


def _run(device, a, b, datatype="f32", **options):
    (m, k), n = a.shape, b.shape[1]
    primitive = make_primitive(gw.MatMul, device, datatype, m=m, n=n, k=k, **options)
    run = primitive.execute(a=gw.asarray(a.ravel(), device), b=gw.asarray(b.ravel(), device))
    return run.output.to_numpy().reshape(m, n)


@pytest.mark.parametrize(
    ("shape", "datatype"),
    quick_first(
        [("one stage", "f32"), ("two stages", "f16"), ("three rounds", "f32")], itertools.product(SHAPES, DTYPES)
    ),
)
def test_is_right_at_edge_sizes(device, datatype, shape):
    options, (tile_m, tile_n, tile_k) = SHAPES[shape]
    sizes = [
        *((s, s, s) for s in (1, 2, 3, 4, 5)),
        (1, tile_n, 1), (tile_m, 1, tile_k), (1, 1, 5 * tile_k + 1),
        (0, 3, 4), (3, 0, 4), (3, 5, 0), (0, 0, 0), (tile_m + 1, tile_n + 1, 0),
        *((tile_m + x, tile_n + y, 2 * tile_k + z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)),
        (2 * tile_m + 5, 3 * tile_n - 7, tile_k + 3), (tile_m - 4, tile_n - 4, tile_k - 4 or 4),
        (17 * tile_m + 1, 2 * tile_n, tile_k),  # more rows of tiles than are done together
    ]  # fmt: skip
    for m, n, k in sizes:
        a, b = _integers(datatype, m, k), _integers(datatype, k, n, seed=1)
        assert_same(_run(device, a, b, datatype, **options).ravel(), _product(a, b).ravel(), f"{m} × {n} × {k}")


@pytest.mark.parametrize("datatype", DTYPES)
@given(data=st.data())
def test_the_error_is_within_the_bound(device, datatype, data):
    """Of Higham, section 3.5: at most k·u/(1 − k·u) of |a| @ |b|, with u half of eps; then one rounding."""
    m, n, k = (data.draw(st.integers(1, 70)) for _ in "mnk")
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    a, b = (rng.standard_normal(shape).astype(DTYPES[datatype]) for shape in ((m, k), (k, n)))
    got = _run(device, a, b, datatype, **SHAPES["one stage"][0]).astype(np.float64)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    u = k * 2.0**-24
    bound = u / (1 - u) * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    if datatype == "f16":
        bound += 2.0**-11 * (np.abs(exact) + bound) + 2.0**-25
    assert np.all(np.abs(got - exact) <= bound)
    primitive = gw.MatMul(None, datatype, m=m, n=n, k=k, capabilities=BARE)
    assert np.all(bound.ravel() <= primitive.error_bound(a.ravel(), b.ravel())), "what benchmarks check by is no less"
    assert np.all(primitive.error_bound(a.ravel(), b.ravel()) <= 4.1 * bound.ravel() + 2.0**-24)


@pytest.mark.parametrize("datatype", DTYPES)
def test_nan_and_infinities_stay_in_their_rows_and_columns(device, datatype):
    """Also at the edges of a tile, where zeros stand in for what is not there."""
    a, b = _integers(datatype, 21, 13), _integers(datatype, 13, 35, seed=1)
    a[2, 12], a[20, 0], a[7, 5] = np.nan, np.inf, -np.inf
    b[5, 34], b[12, 0], b[0, 3] = np.inf, np.nan, 0
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float32) @ b.astype(np.float32)
    assert np.isnan(expected).sum() < 100
    assert np.isinf(expected).any()
    got = _run(device, a, b, datatype, **SHAPES["one stage" if datatype == "f32" else "two stages"][0])
    assert_same(got.ravel(), expected.astype(a.dtype).ravel())


def test_what_lies_behind_a_row_is_in_no_sum(device):
    """Of whole rows, which are read past their ends, in tensor cores, too: what is there may be infinite."""
    a, b = _integers("f16", 21, 72), _integers("f16", 72, 40, seed=1)
    a[1:, 0], a[20], b[71, 39], b[1, 0] = np.nan, np.inf, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float32) @ b.astype(np.float32)
    assert np.isfinite(expected[0, 1:39]).all()
    assert_same(_run(device, a, b, "f16").ravel(), expected.astype(a.dtype).ravel())


def test_f16_is_rounded_as_numpy_does(device):
    """Products of two f16 are exact in f32: every rounding is that of the output. All kinds of numbers, ties too."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 1 << 16, (700, 1), dtype=np.uint16).view(np.float16)
    b = np.concatenate([rng.integers(0, 1 << 16, 101, dtype=np.uint16), np.arange(0x3C00, 0x3C40, dtype=np.uint16)])
    b = b.view(np.float16).reshape(1, -1)
    with np.errstate(all="ignore"):
        expected = (a.astype(np.float32) * b.astype(np.float32) + np.float32(0)).astype(np.float16)
    finite = np.isfinite(expected)
    assert (finite & (np.abs(expected) < np.finfo(np.float16).tiny) & (expected != 0)).any()
    assert np.isinf(expected).any()
    assert_same(_run(device, a, b, "f16").ravel(), expected.ravel())


@pytest.mark.parametrize(("rest", "expected"), [(15.0, 65504.0), (15.99, 65504.0), (16.0, np.inf), (64.0, np.inf)])
def test_sums_may_be_too_large_for_f16(device, rest, expected):
    """The largest is 65,504; half a step further, at 65,520, infinity begins."""
    a = np.array([[1, 1], [-1, -1]], np.float16)
    b = np.array([[65504], [rest]], np.float16)
    assert_same(_run(device, a, b, "f16").ravel(), np.array([expected, -expected], np.float16))


def test_a_matrix_may_be_both_inputs_but_no_output(device):
    x = _integers("f32", 20, 20)
    array = gw.asarray(x.ravel(), device)
    primitive = make_primitive(gw.MatMul, device, m=20, n=20, k=20, **SHAPES["one stage"][0])
    assert_same(primitive.execute(a=array, b=array).output.to_numpy(), _product(x, x).ravel())
    with pytest.raises(gw.OverlapError, match=r"output .* overlaps a"):
        primitive.execute(a=array, b=array, output=array)


@pytest.mark.slow
def test_past_65535_workgroups(device):
    m, n = 64, 16 * 16_400
    a, b = _integers("f32", m, 1), _integers("f32", 1, n, seed=1)
    options = {"tile_m": 16, "tile_n": 16, "tile_k": 4, "thread_m": 4, "thread_n": 4, "unroll": 1}
    primitive = make_primitive(gw.MatMul, device, m=m, n=n, k=1, **options)
    run = primitive.execute(a=gw.asarray(a.ravel(), device), b=gw.asarray(b.ravel(), device))
    assert np.prod(run.plan.kernels[0].workgroups) > 65_535
    assert_same(run.output.to_numpy(), _product(a, b).ravel())


def test_a_dispatch_limit_of_7(device):
    measured = gw.capabilities(device)
    few = dataclasses.replace(measured, limits={**measured.limits, "max-compute-workgroups-per-dimension": 7})
    options, (tile_m, tile_n, _) = SHAPES["one stage"]
    for tiles in ((7, 1), (8, 1), (1, 50), (18, 19)):
        a, b = _integers("f32", tiles[0] * tile_m - 3, 6), _integers("f32", 6, tiles[1] * tile_n - 3, seed=1)
        assert_same(_run(device, a, b, capabilities=few, **options).ravel(), _product(a, b).ravel(), str(tiles))


@pytest.mark.ahead
def test_other_sizes_compile_nothing(device):
    a, b = _integers("f32", 5, 6), _integers("f32", 6, 7, seed=1)
    assert_same(_run(device, a, b).ravel(), _product(a, b).ravel())
    executor = context_of(device).executor
    compiled = executor.pipelines.compiled
    seen = set()
    for m, n, k in [(1, 1, 1), (64, 64, 64), (200, 130, 3), (3, 4, 0), (33, 2, 77), (800, 800, 3)]:
        a, b = _integers("f32", m, k), _integers("f32", k, n, seed=1)
        seen.add(gw.MatMul(device, m=m, n=n, k=k).plan_for(
            capabilities=gw.capabilities(device), lengths={"a": m * k, "b": k * n, "output": m * n}, m=m, n=n, k=k
        ).parameters["tile_m"])  # fmt: skip
        assert_same(_run(device, a, b).ravel(), _product(a, b).ravel())
    assert len(seen) > 1, "several shapes of the table"
    assert executor.pipelines.compiled == compiled


def test_a_long_k_is_right_to_the_end(device):
    """lavapipe ends all loops of an invocation after 65,535 iterations, so that CPU adapters have a limit."""
    most = 10**6
    if gw.capabilities(device).is_cpu:
        with pytest.raises(gw.LimitError, match="k is at most") as caught:
            gw.matmul(np.ones((1, 10**7), np.float32), np.ones((10**7, 1), np.float32), device=device)
        most = int(str(caught.value).split("at most ")[1].split()[0])
    assert most > 100_000
    a = np.zeros((1, most), np.float32)
    a[0, [0, most // 2, -1]] = 1, 2, 4
    assert gw.matmul(a, np.ones((most, 1), np.float32), device=device) == [[7]]
    plan = gw.MatMul.plan_for(
        capabilities=FULL, lengths={"a": most + 1, "b": most + 1, "output": 1}, m=1, n=1, k=most + 1
    )
    assert len(plan.kernels) == 1


# ---- the plan and the table


def test_the_plan_says_what_work_it_is():
    lengths = {"a": 300 * 50, "b": 50 * 70, "output": 300 * 70}
    plan = gw.MatMul.plan_for(capabilities=FULL, lengths=lengths, m=300, n=70, k=50)
    assert plan.work == gw.Work(300 * 50 + 50 * 70, 4 * (300 * 50 + 50 * 70), 4 * 300 * 70, 2 * 300 * 70 * 50)
    assert {"m": 300, "n": 70, "k": 50, "shape": "default"}.items() <= plan.parameters.items()
    assert plan.features == frozenset(), "f16, too, needs none"
    assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")
    half = gw.MatMul.plan_for(capabilities=FULL, lengths=lengths, dtype="f16", m=300, n=70, k=50)
    assert (half.work.read_bytes, half.work.flops) == (plan.work.read_bytes // 2, plan.work.flops)
    assert half.features == frozenset()


@pytest.mark.parametrize("capabilities", [BARE, FULL, CPU], ids=["least", "full", "cpu"])
def test_every_row_of_the_table_runs_on_every_device(capabilities):
    rows = matmul_shapes_for(capabilities).rows
    assert [up_to for up_to, _ in rows] == [*sorted(up for up, _ in rows if up is not None), None]
    for _, shape in rows:
        tuned = matmul_shapes_for(capabilities, gw.MatMulTuning(**dataclasses.asdict(shape)))
        assert tuned.rows == ((None, shape),)
        assert tuned.source == "argument"


def test_subgroups_multiply_f16_where_they_can_unless_a_shape_is_given():
    limits = {"max-compute-workgroup-storage-size": 49_152, "max-compute-invocations-per-workgroup": 1024}
    able = gw.Capabilities(
        features=frozenset(SubgroupShape.FEATURES), limits=limits, subgroup_size=32,
        subgroup_matrices=(SubgroupMatrices("f16", "f32", 16, SubgroupShape().items_n, 16),),
    )  # fmt: skip
    unable = [
        dataclasses.replace(able, subgroup_matrices=(SubgroupMatrices("f16", "f16", 16, 16, 16),)),
        dataclasses.replace(able, subgroup_size=64),
        dataclasses.replace(able, features=able.features - {"shader-f16"}),
        dataclasses.replace(able, limits={**limits, "max-compute-workgroup-storage-size": 8_192}),
    ]

    def planned(capabilities, datatype="f16", m=300, k=50, tuning=None):
        lengths = {"a": m * k, "b": k * 70, "output": m * 70}
        return gw.MatMul.plan_for(
            capabilities=capabilities, lengths=lengths, dtype=datatype, m=m, n=70, k=k, tuning=tuning
        )

    plan = planned(able)
    assert plan.features == set(SubgroupShape.FEATURES)
    assert plan.parameters["shape"] == "subgroups"
    assert plan.kernels[0].workgroups == (20, 1, 1)
    found = set()
    for m in (300, 10_000, 300_000):
        shape = subgroup_shape_for(able, None, m * 70)
        found.add(shape)
        (shader,) = planned(able, m=m).shaders.values()
        storage = re.findall(r"^var<workgroup> \w+: array<vec4<u32>, (\d+)>;", shader.text, re.MULTILINE)
        assert 16 * sum(int(items) for items in storage) == shape.storage_bytes
    assert len(found) == 3, "larger tiles for larger products"
    wide = dataclasses.replace(able, subgroup_matrices=(SubgroupMatrices("f16", "f32", 16, 16, 16),))
    shapes = [subgroup_shape_for(each, None, 1 << 24) for each in (able, wide)]
    assert shapes[1] == dataclasses.replace(shapes[0], items_n=16)
    little = dataclasses.replace(able, limits={**limits, "max-compute-workgroup-storage-size": 16_384})
    assert subgroup_shape_for(little, None, 1 << 24) == subgroup_shape_for(able, None, 1) in found
    usual = [planned(each) for each in unable]
    usual += [planned(able, "f32"), planned(able, k=0), planned(able, tuning=gw.MatMulTuning(tile_m=32))]
    assert all(each.features == frozenset() for each in usual)


@pytest.mark.needs("chromium-experimental-subgroup-matrix")
@pytest.mark.parametrize("k", [1, 8, 15, 64, 76, 104])
def test_subgroups_multiply_like_numpy(device, k):
    """With edges in every direction, and rows that are no whole 16 bytes."""
    for m, n in ((1, 1), (128, 128), (129, 131), (60, 264), (300, 36), (900, 612), (1500, 1604), (1500, 1608)):
        a, b = _integers("f16", m, k), _integers("f16", k, n, seed=1)
        primitive = gw.MatMul(device, "f16", m=m, n=n, k=k)
        run = primitive.execute(a=gw.asarray(a.ravel(), device), b=gw.asarray(b.ravel(), device))
        assert run.plan.parameters["shape"] == "subgroups"
        assert_same(run.output.to_numpy().reshape(m, n), _product(a, b))


def test_large_products_on_a_gpu_have_large_tiles():
    shapes = matmul_shapes_for(FULL)
    large, small = shapes.at(4096 * 4096), shapes.at(100 * 100)
    assert (large.tile_m, large.tile_n, large.workgroup_size) == (128, 128, 256)
    assert small.tile_m < large.tile_m
    assert set(shapes.all_for(100 * 100)) == {shape for _, shape in shapes.rows}


@pytest.mark.parametrize(
    ("tuning", "message"),
    [
        ({"tile_m": 24}, "tile_m=24 must be a power of two from 16 to 256"),
        ({"tile_n": 8}, "tile_n=8 must be"),
        ({"tile_k": 2}, "tile_k=2 must be"),
        ({"thread_m": 2}, "thread_m=2 must be"),
        (
            {"tile_m": 16, "thread_m": 16, "tile_n": 16, "thread_n": 16, "unroll": 32},
            "unroll=32 must be at most tile_k",
        ),
        ({"stages": 3}, "stages=3 must be from 1 to 2"),
        ({"tile_m": 256, "thread_m": 4}, "invocations, but max-compute-invocations-per-workgroup allows 256"),
        ({"tile_k": 32}, "32768 bytes of workgroup memory, but max-compute-workgroup-storage-size is 16384"),
        ({"stages": 2}, "use a smaller tile_k, or stages=1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(tuning, message):
    with pytest.raises(gw.ArgumentError, match=message):
        gw.MatMul(None, m=1, n=1, k=1, capabilities=BARE, tuning=gw.MatMulTuning(**tuning))


def test_storage_bytes_are_those_of_the_text():
    shape = MatMulShape(128, 64, 16, 8, 8, 2, 8)
    roomy = dataclasses.replace(FULL, limits={"max-compute-workgroup-storage-size": 49_152})
    tuning = gw.MatMulTuning(**dataclasses.asdict(shape))
    lengths = {"a": 1, "b": 1, "output": 1}
    plan = gw.MatMul.plan_for(capabilities=roomy, lengths=lengths, m=1, n=1, k=1, tuning=tuning)
    (shader,) = plan.shaders.values()
    counts = [int(line.split(">, ")[1].split(">")[0]) for line in shader.text.splitlines() if "var<workgroup>" in line]
    assert 16 * sum(counts) == shape.storage_bytes
    assert f"WORKGROUP_SIZE: u32 = {shape.workgroup_size}u;" in shader.text


# ---- errors


def test_a_size_that_cannot_be_is_refused():
    for name, value in itertools.product("mnk", [-1, 1.5, "4", None, True]):
        with pytest.raises(gw.ArgumentError, match=f"{name} must be an integer of at least 0"):
            gw.MatMul(None, **{"m": 1, "n": 1, "k": 1} | {name: value}, capabilities=BARE)


def test_lengths_that_do_not_fit_are_refused(device):
    primitive = gw.MatMul(device, m=3, n=4, k=5)
    a, b = gw.empty(15, "f32", device), gw.empty(20, "f32", device)
    with pytest.raises(gw.LengthError, match="a has 14 items, but m=3 times k=5 is 15"):
        primitive.execute(a=a[:14], b=b)
    with pytest.raises(gw.LengthError, match="b has 19 items, but k=5 times n=4 is 20"):
        primitive.execute(a=a, b=b[1:])
    with pytest.raises(gw.LengthError, match="output has room for 11 items, but the result has 12"):
        primitive.execute(a=a, b=b, output=gw.empty(11, "f32", device))
    with pytest.raises(gw.DatatypeError, match="b is of f16, but this MatMul was made for f32"):
        primitive.execute(a=a, b=gw.empty(20, "f16", device))
    with pytest.raises(gw.DatatypeError, match=r"'u32' is not supported here; give .*; supported are f32, f16"):
        gw.MatMul(device, "u32", m=1, n=1, k=1)


# ---- the function


def test_arrays_give_an_array(device):
    a, b = _integers("f32", 2, 3), _integers("f32", 3, 4, seed=1)
    on_gpu = gw.asarray(a.ravel(), device), gw.asarray(b.ravel(), device)
    for options in ({"k": 3}, {"m": 2}, {"n": 4}, {"m": 2, "n": 4, "k": 3}):
        got = gw.matmul(*on_gpu, **options)
        assert isinstance(got, gw.Array)
        assert_same(got.to_numpy(), (a @ b).ravel())
    assert_same(gw.matmul(on_gpu[0], b).to_numpy(), (a @ b).ravel())
    assert_same(gw.matmul(a, on_gpu[1]).to_numpy(), (a @ b).ravel())
    with pytest.raises(gw.ArgumentError, match=r"an Array of one dimension .*; give m=, n=, k="):
        gw.matmul(*on_gpu)
    with pytest.raises(gw.LengthError, match="a has 6 items, which is not a multiple of k=4"):
        gw.matmul(*on_gpu, k=4)
    with pytest.raises(gw.LengthError, match="b has 12 items, but k=2 times n=4 is 8"):
        gw.matmul(*on_gpu, m=3, n=4)
    with pytest.raises(gw.ArgumentError, match="k must be an integer of at least 0, not '3'"):
        gw.matmul(*on_gpu, k="3")


def test_what_numpy_refuses_is_refused(device):
    a, b = _integers("f32", 2, 3), _integers("f32", 4, 5)
    with pytest.raises(gw.LengthError, match=r"b has shape \(4, 5\), so that k is 4, but a has shape \(2, 3\)"):
        gw.matmul(a, b, device=device)
    with pytest.raises(gw.LengthError, match=r"so that n is 5, but n=6"):
        gw.matmul(_integers("f32", 2, 4), b, n=6, device=device)
    with pytest.raises(gw.ArgumentError, match=r"a has shape \(2, 3, 4\); .* multiply stacks one by one"):
        gw.matmul(np.ones((2, 3, 4), np.float32), b, device=device)
    with pytest.raises(gw.DatatypeError, match=r"float64.*a\.astype\(np\.float32\)"):
        gw.matmul(a.astype(np.float64), a.T.astype(np.float64), device=device)
    with pytest.raises(gw.DatatypeError, match=r"b is of f16 \(numpy float16\), but a of f32"):
        gw.matmul(a, a.T.astype(np.float16), device=device)


# ---- arrays of f16


@pytest.mark.parametrize(("profiled", "n"), [*((False, n) for n in (0, 1, 2, 3, 8, 1001)), (True, 7)])
@pytest.mark.filterwarnings("ignore:this device has no feature 'timestamp-query'")
def test_f16_goes_up_and_down(device, n, profiled):
    data = np.random.default_rng(n).standard_normal(n).astype(np.float16)
    with gw.profile(device) if profiled else contextlib.nullcontext():
        x = gw.asarray(data, device)
        assert (x.datatype.name, x.size, x.nbytes) == ("f16", n, 2 * n)
        assert_same(x.to_numpy(), data)
        for first, last in ((0, n), (1, n), (0, n - 1), (1, n - 1), (n // 2, n // 2 + 1)):
            if 0 <= first <= last <= n:
                assert_same(x[first:last].to_numpy(), data[first:last])
                new = np.arange(last - first).astype(np.float16)
                x[first:last].copy_from(new)
                data[first:last] = new
                assert_same(x.to_numpy(), data)


def test_f16_is_no_value_of_a_sort(device):
    x = gw.asarray(np.ones(4, np.float16), device)
    with pytest.raises(gw.DatatypeError, match="16' is not supported here"):
        gw.sort_pairs(gw.asarray(np.ones(4, np.float32), device), x)


# ---- benchmarks and the roofline


def test_the_size_of_a_benchmark_is_that_of_rows_and_columns(device):
    case = Case.build("matmul", 24, "f16", "add")
    primitive = case.make(device)
    inputs = case.inputs(primitive, seed=1)
    assert {name: (x.size, x.dtype) for name, x in inputs.items()} == dict.fromkeys("ab", (576, np.dtype(np.float16)))
    assert (primitive.m, primitive.n, primitive.k) == (24, 24, 24)
    assert array_items("matmul", 24) == 576
    assert array_items("scan", 24) == array_items("somebody's own", 24) == 24
    output = primitive.execute(**{k: gw.asarray(x, device) for k, x in inputs.items()}).output.to_numpy()
    assert mismatch(primitive, inputs, {"output": output}) is None
    wrong = output.copy()
    wrong[100] += np.float16(0.05)
    assert mismatch(primitive, inputs, {"output": wrong}).index == 100


def test_datatypes_that_a_primitive_lacks_are_left_out():
    axes = gw.bench.sweep.axes.collect_axes(["n=8", "datatype=u32,f32,f16,u8"], {}, gw.bench.sweep.suite.DEFAULT_AXES)
    found = [str(job.case) for job in plan_jobs([Sweep(("scan", "matmul"), axes)]) if job.case.primitive != "copy"]
    assert found == [
        "scan add u32 n=8", "scan add f32 n=8", "scan add f16 n=8", "scan add u8 n=8", "matmul f32 n=8",
        "matmul f16 n=8",
    ]  # fmt: skip
    only = gw.bench.sweep.axes.collect_axes(["n=8", "datatype=u32"], {}, gw.bench.sweep.suite.DEFAULT_AXES)
    assert [str(job.case) for job in plan_jobs([Sweep(("matmul",), only)])][1:] == ["matmul u32 n=8"]


@pytest.mark.slow
@pytest.mark.gpu
def test_a_benchmark_and_its_roofline(tmp_path):
    path = tmp_path / "matmul.json"
    options = f"-a n=96 -a datatype=f32,f16 --sampling-s 0.05 --warmup-s 0.01 --order given --json {path}"
    done = CliRunner().invoke(main, ["bench", "matmul", "--processes", "1", *options.split()])
    assert done.exit_code == 0, done.output
    document = read_results(path)
    assert [(e.primitive, e.n) for e in document.results] == [
        ("copy", 96**2), ("copy", 96**2 // 2), ("matmul", 96), ("matmul", 96),
    ]  # fmt: skip
    assert all(entry.correct for entry in document.results)
    assert all(0 < entry.rates.share_of_fma < 1.5 for entry in document.results[2:])
    # Beside copies of arrays as large, which are in the run and among its ceilings.
    copy, _, single, _ = (entry.rates.peak_gbytes_per_s for entry in document.results)
    assert copy == single
    assert {2 * 4 * 96**2, 2 * 2 * 96**2} <= {point.moved_bytes for point in document.device.calibration.copy}
    (row,) = (line for line in done.output.splitlines() if line.startswith("matmul f32"))
    (heading,) = (line for line in done.output.splitlines() if "G items/s" in line and "of copy" in line)
    assert row.count("%") == 2 + ("of peak" in heading), "its interval, and of copy; where it is shown, of peak"
    *_, single, half = points(document, ceilings_of(document))
    flops = 2 * 96**3
    assert (single.intensity, half.intensity) == (flops / (12 * 96**2), flops / (6 * 96**2))
    assert single.gflops == pytest.approx(flops / single.measured_ns)
    # With the ceilings of a GPU on which 96 × 96 matrices were arithmetic.
    ceilings = dataclasses.replace(ceilings_of(document), copies=((1, 1000.0),), fma_gflops=10.0)
    *_, single, _ = points(document, ceilings)
    assert (single.bound, single.predicted_ns) == ("arithmetic", pytest.approx(flops / 10))
