"""Reduce against numpy: every datatype × operator × subgroup mode × shape."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.runtime.context import context_of
from helpers.strategies import (
    DATATYPES,
    MODES,
    MOST_BLOCKS,
    OPERATORS,
    SHAPES,
    assert_same,
    assert_sums_within_bound,
    case_id,
    covering,
    edge_sizes,
    every,
    exact_items,
    items,
    make_primitive,
    mode_for,
    operator,
    pairwise,
    quick_first,
    reduce_reference,
    shape_options,
)

pytestmark = pytest.mark.thin(1)

FACTORS = {"op": OPERATORS, "datatype": DATATYPES, "mode": MODES, "shape": tuple(SHAPES)}
NORMAL = pairwise(FACTORS)
QUICK = covering(NORMAL, ("mode", "shape"))
SLOW = [case for case in every(FACTORS) if case not in NORMAL]


def _make(device, op="add", datatype="f32", mode="none", shape="small", **more):
    options = {**shape_options(device, shape, mode), **more}
    subgroups = mode_for(device, mode, options.get("workgroup_size"))
    return make_primitive(gw.Reduce, device, datatype, operator(op, datatype), subgroups=subgroups, **options)


def _run(reduce, device, x, **options):
    return reduce.execute(input=gw.asarray(x, device), **options).output.to_numpy()


@pytest.fixture
def case(request, require):
    """A combination of FACTORS that the device can do."""
    if request.param["mode"] == "native":
        require("subgroup")
    return request.param


@pytest.mark.parametrize(
    "case",
    quick_first(QUICK, NORMAL, SLOW),
    ids=lambda c: case_id(c),
    indirect=True,
)
def test_is_right_at_edge_sizes(device, case):
    reduce = _make(device, **case)
    plan = reduce.plan(gw.Layout.separate(input=1, output=1))
    tile = 4 * plan.parameters["workgroup_size"] * plan.parameters["vecs"]
    blocks = MOST_BLOCKS[reduce.capabilities.is_cpu]
    for n in edge_sizes(tile, reduce.mode.size, blocks):
        if n == 0 and not reduce.op.empty:
            continue
        x = exact_items(case["op"], case["datatype"], n)
        one = _run(reduce, device, x)
        assert_same(one, reduce_reference(case["op"], x), f"n={n}")
        if n in (tile + 1, blocks * tile + 1):
            assert_same(_run(reduce, device, x, trials=7), one, f"n={n}, 7 trials")


@pytest.mark.parametrize("factor", FACTORS)
def test_every_value_meets_every_other(factor):
    for other in set(FACTORS) - {factor}:
        met = {(case[factor], case[other]) for case in NORMAL}
        assert met == {(a, b) for a in FACTORS[factor] for b in FACTORS[other]}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("datatype", DATATYPES)
@pytest.mark.parametrize("op", ["min", "max"])
def test_an_extreme_is_found_wherever_it_stands(device, require, op, datatype, mode):
    if mode == "native":
        require("subgroup")
    n = 64 * 64 + 3 * 64 + 6
    reduce = _make(device, op, datatype, mode)
    for place in [0, 3, 15, 16, 63, 64, 65, 64 * 64 - 1, 64 * 64, n - 7, n - 6, n - 3, n - 2, n - 1]:
        x = np.full(n, 1000, gw.DATATYPES[datatype].dtype)
        x[place] = 3 if op == "min" else 5000
        assert_same(_run(reduce, device, x), x[place : place + 1], f"place {place}")


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("datatype", DATATYPES)
def test_no_items(device, op, datatype):
    reduce = _make(device, op, datatype)
    nothing = gw.asarray(np.array([], gw.DATATYPES[datatype].dtype), device)
    if op in ("min", "max"):
        with pytest.raises(gw.EmptyReductionError, match="0 items"):
            reduce.execute(input=nothing)
    else:
        want = reduce_reference(op, nothing.to_numpy())
        assert_same(reduce.execute(input=nothing).output.to_numpy(), want)
        assert_same(reduce.execute(input=nothing, trials=7).output.to_numpy(), want)


@pytest.mark.parametrize("op", ["add", "min", "max", "multiply", "xor", "affine"])
@pytest.mark.parametrize("datatype", ["u32", "i32"])
@given(data=st.data())
def test_integers_that_wrap(device, op, datatype, data):
    if op == "affine" and datatype == "i32":
        x = exact_items(op, datatype, data.draw(st.integers(0, 700)))
    else:
        x = data.draw(items(datatype, st.integers(1, 700)))
    if x.size:
        assert_same(_run(_make(device, op, datatype), device, x), reduce_reference(op, x))


@pytest.mark.parametrize("op", ["min", "max"])
@given(x=items("f32", st.integers(1, 700)))
def test_extremes_of_any_floats(device, op, x):
    assert_same(_run(_make(device, op), device, x), reduce_reference(op, x))


@given(x=items("f32", st.integers(0, 700), largest=1e30))
def test_sums_of_any_floats(device, x):
    assert_sums_within_bound(_run(_make(device), device, x), x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("signed", [False, True], ids=["positive", "signed"])
def test_sums_of_random_floats(device, require, mode, signed):
    if mode == "native":
        require("subgroup")
    x = np.random.default_rng(7).random(300_001, dtype=np.float32) - np.float32(0.5 if signed else 0)
    assert_sums_within_bound(_run(_make(device, mode=mode, shape="default"), device, x), x)


@pytest.mark.parametrize("signed", [False, True], ids=["positive", "signed"])
@pytest.mark.parametrize("tile", [0, 17, 60])
def test_the_bound_on_sums_notices_a_missing_tile(device, tile, signed):
    """What guards the sums must fail on a sum that lacks a tile."""
    x = np.random.default_rng(7).random(61 * 4096, dtype=np.float32) - np.float32(0.5 if signed else 0)
    without = x.copy()
    without[4096 * tile : 4096 * (tile + 1)] = 0
    got = _run(_make(device, shape="default"), device, without)
    with pytest.raises(AssertionError, match="out of bounds"):
        assert_sums_within_bound(got, x)


def test_sums_of_integers_below_2_to_the_24_are_exact(device):
    x = np.random.default_rng(8).integers(0, 16, 1_000_003).astype(np.float32)
    want = np.array([x.sum(dtype=np.float64)])
    assert want < 2**24
    assert_same(_run(_make(device, shape="default"), device, x), want.astype(np.float32))


def test_a_float_sum_is_the_same_from_run_to_run(device):
    x = np.random.default_rng(9).standard_normal(100_001).astype(np.float32)
    reduce = _make(device, shape="default")
    results = {_run(reduce, device, x, trials=trials).tobytes() for trials in (1, 1, 3, 7)}
    assert len(results) == 1


@pytest.mark.parametrize("op", ["add", "min", "affine"])
@pytest.mark.parametrize("mode", MODES)
def test_more_partials_than_a_tile(device, require, op, mode):
    """As on a GPU, whose 528 blocks leave several totals for each invocation of the last workgroup."""
    if mode == "native":
        require("subgroup")
    capabilities = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    reduce = _make(device, op, "u32", mode, capabilities=capabilities)
    tile = 4 * reduce.plan(gw.Layout.separate(input=1, output=1)).parameters["workgroup_size"]
    for n in (528 * tile - 1, 500 * tile + 1, 1056 * tile - 3):
        x = exact_items(op, "u32", n)
        run = reduce.execute(input=gw.asarray(x, device))
        assert run.plan.parameters["blocks"] >= 500
        assert_same(run.output.to_numpy(), reduce_reference(op, x), f"n={n}")


@pytest.mark.parametrize("op", ["add", "affine"])
def test_a_dispatch_limit_of_7(device, op):
    measured = gw.capabilities(device)
    limits = {**measured.limits, "max-compute-workgroups-per-dimension": 7}
    capabilities = dataclasses.replace(measured, limits=limits)
    reduce = _make(device, op, "u32", capabilities=capabilities)
    for tiles in (7, 8, 50, 57, 343, 344, 1000):
        x = exact_items(op, "u32", 64 * tiles - 3)
        run = reduce.execute(input=gw.asarray(x, device))
        assert all(max(kernel.workgroups) <= 7 for kernel in run.plan.kernels)
        assert_same(run.output.to_numpy(), reduce_reference(op, x), f"{tiles} tiles")


def test_a_dispatch_limit_of_1(device):
    measured = gw.capabilities(device)
    limits = {**measured.limits, "max-compute-workgroups-per-dimension": 1}
    reduce = _make(device, "add", "u32", capabilities=dataclasses.replace(measured, limits=limits))
    x = exact_items("add", "u32", 1000)
    assert_same(_run(reduce, device, x), reduce_reference("add", x))


def test_past_65535_tiles(device):
    x = exact_items("add", "u32", 64 * 65_536 + 65)
    assert_same(_run(_make(device, "add", "u32"), device, x), reduce_reference("add", x))


def test_another_length_compiles_nothing(device):
    reduce = _make(device, "max", "i32")
    compiled = None
    for n in [5000, 3, 64, 0, 65, 50_000, 1, 5000]:
        x = exact_items("max", "i32", n)
        if n:
            assert_same(_run(reduce, device, x), reduce_reference("max", x), f"n={n}")
        compiled = compiled or context_of(device).executor.pipelines.compiled
    assert context_of(device).executor.pipelines.compiled == compiled


def test_an_output_that_is_longer_keeps_its_other_items(device):
    output = gw.asarray(np.array([7, 7, 7, 7, 7], np.uint32), device)
    run = _make(device, "add", "u32").execute(input=gw.asarray(np.ones(9, np.uint32), device), output=output)
    assert run.output.size == 1
    assert_same(output.to_numpy(), np.array([9, 7, 7, 7, 7], np.uint32))


@pytest.mark.parametrize("state", ["u64", "u32x2"])
@pytest.mark.parametrize("stall_every", [1, 2, 5])
@pytest.mark.parametrize(("op", "datatype"), [("affine", "u32"), ("add", "i32"), ("max", "f32")])
def test_blocks_that_never_post_are_computed_again(device, require, op, datatype, stall_every, state):
    if state == "u64":
        require("shader-int64", "shader-int64-atomic-all-ops")
    reduce = make_primitive(
        gw.Reduce,
        device,
        datatype,
        operator(op, datatype),
        state=state,
        stall_every=stall_every,
        spin_limit=2,
        epoch_bits=1,
        workgroup_size=64,
        vecs=1,
    )
    for tiles in (1, 2, 30, 70, 150):
        x = exact_items(op, datatype, 256 * tiles - 3)
        array = gw.asarray(x, device)
        for trials in (1, 6):
            output = reduce.execute(input=array, trials=trials).output
            assert_same(output.to_numpy(), reduce_reference(op, x), f"{tiles} tiles, {trials} trials")


@pytest.mark.parametrize("state", ["u64", "u32x2"])
def test_a_single_block_posts_nothing(device, require, state):
    """It has no others to wait for; two blocks leave their totals and the next epoch."""
    if state == "u64":
        require("shader-int64", "shader-int64-atomic-all-ops")
    reduce = _make(device, "add", "u32", state=state, epoch_bits=5)
    for tiles, epochs in ((1, 0), (2, 3)):
        x = exact_items("add", "u32", 64 * tiles - 9)
        run = reduce.execute(input=gw.asarray(x, device), trials=3)
        assert run.plan.parameters["blocks"] == tiles
        assert_same(run.output.to_numpy(), reduce_reference("add", x))
        own = context_of(device).executor._plans[run.plan].own
        control, states = (gw.Array(own[name], "u32").to_numpy() for name in ("control", "states"))
        np.testing.assert_array_equal(control[:4], [0, 0, epochs, 0])
        assert states.any() == (tiles > 1)


def test_it_is_one_dispatch_at_every_length(device):
    for n in (1, 1000, 5_000_000):
        plan = gw.Reduce.plan_for(capabilities=gw.Capabilities(), lengths={"input": n, "output": 1})
        assert [kernel.label for kernel in plan.kernels] == ["reduce"]
