"""Scan against numpy: what the configurations of test_every_primitive.py do not reach."""

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
    scan_reference,
    strategy_options,
)

TILE = 256
TWO = ("reduce_then_scan", "lookback-u32x2")


def _make(device, op="add", datatype="f32", kind="inclusive", strategy="reduce_then_scan", **more):
    options = {**SMALL, **strategy_options(strategy), **more}
    return make_primitive(gw.Scan, device, datatype, operator(op, datatype), kind, **options)


def _run(scan, device, x, **options):
    return scan.execute(input=gw.asarray(x, device), **options).output.to_numpy()


@given(x=items("i32"), strategy=st.sampled_from(TWO))
def test_integers_that_wrap(device, strategy, x):
    assert_same(_run(_make(device, "multiply", "i32", "exclusive", strategy), device, x),
                scan_reference("multiply", x, "exclusive"))  # fmt: skip


@given(x=items("f32"), strategy=st.sampled_from(TWO))
def test_any_floats(device, strategy, x):
    for op, kind in (("min", "inclusive"), ("max", "exclusive")):
        assert_same(_run(_make(device, op, "f32", kind, strategy), device, x), scan_reference(op, x, kind))
    small = np.where(np.isfinite(x), np.clip(x, -1e30, 1e30), x)  # no sum overflows in one order alone
    assert_sums_within_bound(_run(_make(device, strategy=strategy), device, small), small, "inclusive")


def test_sums_of_random_floats(device):
    """Within the bound, which notices a missing tile."""
    for strategy in TWO:
        scan = _make(device, strategy=strategy)
        for signed in (False, True):
            x = np.random.default_rng(7).random(61 * 4096, dtype=np.float32) - np.float32(0.5 if signed else 0)
            assert_sums_within_bound(_run(scan, device, x), x, "inclusive")
            for tile in (0, 17, 59):
                without = x.copy()
                without[4096 * tile : 4096 * (tile + 1)] = 0
                with pytest.raises(AssertionError, match="out of bounds"):
                    assert_sums_within_bound(_run(scan, device, without), x, "inclusive")


@pytest.mark.parametrize("strategy", ["reduce_then_scan", "lookback"])
def test_sums_of_integers_below_2_to_the_24_are_exact(device, strategy):
    """With the default shape, of more items than blocks have in one tile each."""
    x = np.random.default_rng(8).integers(0, 5, 3_000_003).astype(np.float32)
    want = np.cumsum(x, dtype=np.float64)
    assert want[-1] < 2**24
    assert_same(_run(gw.Scan(device, "f32", strategy=strategy), device, x), want.astype(np.float32))


@pytest.mark.parametrize("mode", quick_first(["native"], ["none"]))
def test_more_totals_than_a_tile(device, require, mode):
    """As on a GPU, whose 1,056 blocks leave totals for several tiles of the second kernel."""
    if mode == "native":
        require("subgroup")
    capabilities = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    scan = _make(device, "affine", "u32", "exclusive", capabilities=capabilities, subgroups=mode)
    for n in (1056 * TILE - 1, 1056 * TILE + 5, 500 * TILE + 1):
        x = exact_items("affine", "u32", n)
        run = scan.execute(input=gw.asarray(x, device))
        assert run.plan.parameters["blocks"] >= 500
        assert_same(run.output.to_numpy(), scan_reference("affine", x, "exclusive"), f"n={n}")


MAKERS = (
    "create_buffer", "create_buffer_with_data", "create_bind_group", "create_bind_group_layout",
    "create_pipeline_layout", "create_compute_pipeline", "create_shader_module",
)  # fmt: skip


@pytest.mark.parametrize("trials", [1, 7])
@pytest.mark.parametrize("strategy", TWO)
def test_repeating_a_call_makes_no_wgpu_object(device, monkeypatch, strategy, trials):
    x = exact_items("add", "u32", 5000)
    scan = _make(device, "add", "u32", strategy=strategy)
    arrays = {"input": gw.asarray(x, device), "output": gw.empty(5000, "u32", device)}
    shorter = {name: array[:700] for name, array in arrays.items()}
    scan.execute(**shorter)
    scan.execute(**arrays)
    counts = inside.counts(device)
    made = []
    for name in MAKERS:
        original = getattr(device, name)

        def note(*args, _name=name, _original=original, **kwargs):
            made.append(_name)
            return _original(*args, **kwargs)

        monkeypatch.setattr(device, name, note)
    for _ in range(5):
        scan.execute(**shorter, trials=trials)
        scan.execute(**arrays, trials=trials)
        scan.execute(trials=trials)
    gw.empty(1, "u32", device, label="not reused")
    assert made == ["create_buffer"], "the one of the line above, which shows that the watch works"
    assert inside.counts(device) == counts
    assert_same(arrays["output"].to_numpy(), scan_reference("add", x))


def test_the_strategy_is_chosen_reported_and_can_be_overridden(device):
    x = gw.asarray(np.ones(10, np.uint32), device)
    chosen = gw.Scan(device).execute(input=x).plan.parameters["strategy"]
    assert chosen == ("lookback" if inside.is_lookback_safe(device, gw.Scan(device).state) else "reduce_then_scan")
    for strategy in TWO:
        run = _make(device, datatype="u32", strategy=strategy).execute(input=x)
        assert run.plan.parameters["strategy"] == strategy.partition("-")[0]


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "sideways"}, {"strategy": "guess"}, {"state": "u16"}, {"subgroups": "emulated-3"},
     {"subgroups": "emulated-64", "workgroup_size": 32}, {"workgroup_size": 48}, {"vecs": 0}, {"spin_limit": 0},
     {"epoch_bits": 0}],
    ids=str,
)  # fmt: skip
def test_wrong_options_are_refused(device, wrong):
    with pytest.raises(gw.ArgumentError, match=str(next(reversed(wrong.values())))):
        make_primitive(gw.Scan, device, **wrong)
