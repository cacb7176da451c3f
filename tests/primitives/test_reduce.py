"""Reduce against numpy: what the configurations of test_every_primitive.py do not reach."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from helpers import inside
from helpers.strategies import (
    SMALL,
    assert_same,
    assert_sums_within_bound,
    exact_items,
    items,
    make_primitive,
    operator,
    quick_first,
    reduce_reference,
)

TILE = 256


def _make(device, op="add", datatype="f32", **more):
    return make_primitive(gw.Reduce, device, datatype, operator(op, datatype), **{**SMALL, **more})


def _run(reduce, device, x, **options):
    return reduce.execute(input=gw.asarray(x, device), **options).output.to_numpy()


@pytest.mark.parametrize(("op", "datatype", "mode"), [("min", "f32", "none"), ("max", "i32", "emulated-16")])
def test_an_extreme_is_found_wherever_it_stands(device, op, datatype, mode):
    n = 64 * TILE + 3 * TILE + 6
    reduce = _make(device, op, datatype, subgroups=mode)
    for place in (0, 3, 15, 16, TILE - 1, TILE, TILE + 1, 64 * TILE - 1, 64 * TILE, n - 7, n - 6, n - 3, n - 2, n - 1):
        x = np.full(n, 1000, gw.DATATYPES[datatype].dtype)
        x[place] = 3 if op == "min" else 5000
        assert_same(_run(reduce, device, x), x[place : place + 1], f"place {place}")


@given(x=items("i32", st.integers(0, 700)))
def test_integers_that_wrap(device, x):
    assert_same(_run(_make(device, "add", "i32"), device, x), reduce_reference("add", x))
    assert_same(_run(_make(device, "multiply", "i32"), device, x), reduce_reference("multiply", x))


@given(x=items("f32", st.integers(1, 700)))
def test_any_floats(device, x):
    assert_same(_run(_make(device, "min"), device, x), reduce_reference("min", x))
    small = np.where(np.isfinite(x), np.clip(x, -1e30, 1e30), x)  # no sum overflows in one order alone
    assert_sums_within_bound(_run(_make(device), device, small), small)


def test_sums_of_random_floats(device):
    """Within the bound, the same from run to run, and the bound notices a missing tile."""
    reduce = _make(device, workgroup_size=256, vecs=4, subgroups=None)
    for signed in (False, True):
        x = np.random.default_rng(7).random(61 * 4096 + 1, dtype=np.float32) - np.float32(0.5 if signed else 0)
        assert len({_run(reduce, device, x, trials=trials).tobytes() for trials in (1, 1, 3, 7)}) == 1
        assert_sums_within_bound(_run(reduce, device, x), x)
        for tile in (0, 17, 60):
            without = x.copy()
            without[4096 * tile : 4096 * (tile + 1)] = 0
            with pytest.raises(AssertionError, match="out of bounds"):
                assert_sums_within_bound(_run(reduce, device, without), x)


def test_sums_of_integers_below_2_to_the_24_are_exact(device):
    """With the default options, of more items than blocks have in one tile each."""
    x = np.random.default_rng(8).integers(0, 5, 3_000_003).astype(np.float32)
    want = np.array([x.sum(dtype=np.float64)])
    assert want < 2**24
    assert_same(_run(gw.Reduce(device, "f32"), device, x), want.astype(np.float32))


@pytest.mark.parametrize("mode", quick_first(["native"], ["none"]))
def test_more_partials_than_a_tile(device, require, mode):
    """As on a GPU, whose 528 blocks leave several totals for each invocation of the last workgroup."""
    if mode == "native":
        require("subgroup")
    capabilities = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    reduce = _make(device, "affine", "u32", capabilities=capabilities, subgroups=mode)
    for n in (528 * TILE - 1, 500 * TILE + 1, 1056 * TILE - 3):
        x = exact_items("affine", "u32", n)
        run = reduce.execute(input=gw.asarray(x, device))
        assert run.plan.parameters["blocks"] >= 500
        assert_same(run.output.to_numpy(), reduce_reference("affine", x), f"n={n}")


def test_an_output_that_is_longer_keeps_its_other_items(device):
    output = gw.asarray(np.array([7, 7, 7, 7, 7], np.uint32), device)
    run = _make(device, "add", "u32").execute(input=gw.asarray(np.ones(9, np.uint32), device), output=output)
    assert run.output.size == 1
    assert_same(output.to_numpy(), np.array([9, 7, 7, 7, 7], np.uint32))


@pytest.mark.parametrize("state", quick_first(["u32x2"], ["u64"]))
def test_a_single_block_posts_nothing(device, require, state):
    """It has no others to wait for; two blocks leave their totals and the next epoch."""
    if state == "u64":
        require("shader-int64", "shader-int64-atomic-all-ops")
    reduce = _make(device, "add", "u32", state=state, epoch_bits=5)
    for tiles, epochs in ((1, 0), (2, 3)):
        x = exact_items("add", "u32", TILE * tiles - 9)
        run = reduce.execute(input=gw.asarray(x, device), trials=3)
        assert run.plan.parameters["blocks"] == tiles
        assert_same(run.output.to_numpy(), reduce_reference("add", x))
        control, states = (inside.own_words(device, run.plan, name) for name in ("control", "states"))
        np.testing.assert_array_equal(control[:4], [0, 0, epochs, 0])
        assert states.any() == (tiles > 1)


def test_it_is_one_dispatch_at_every_length():
    for n in (1, 1000, 5_000_000):
        plan = gw.Reduce.plan_for(capabilities=gw.Capabilities(), lengths={"input": n, "output": 1})
        assert [kernel.label for kernel in plan.kernels] == ["reduce"]
