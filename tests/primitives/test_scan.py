"""Scan against numpy: every datatype × operator × kind × subgroup mode × strategy × shape."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.lookback_selftest import lookback_verdict
from helpers.strategies import (
    DATATYPES,
    KINDS,
    MODES,
    MOST_BLOCKS,
    OPERATORS,
    SHAPES,
    STRATEGIES,
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
    scan_reference,
    shape_options,
    strategy_options,
)

pytestmark = pytest.mark.thin(1)

FACTORS = {
    "op": OPERATORS,
    "datatype": DATATYPES,
    "mode": MODES,
    "strategy": STRATEGIES,
    "kind": KINDS,
    "shape": tuple(SHAPES),
}
NORMAL = pairwise(FACTORS)
QUICK = covering(NORMAL, ("mode", "strategy"))
# All of them with tiles of 256 items: what another shape changes is in the pairs.
SLOW = [case for case in every(FACTORS) if case not in NORMAL and case["shape"] == "middle"]
U64 = ("shader-int64", "shader-int64-atomic-all-ops")


def _make(
    device, op="add", datatype="f32", kind="inclusive", strategy="reduce_then_scan", mode="none",
    shape="small", **more,
):  # fmt: skip
    options = {**shape_options(device, shape, mode), **more}
    subgroups = mode_for(device, mode, options.get("workgroup_size"))
    return make_primitive(gw.Scan,
        device, datatype, operator(op, datatype), kind,
        subgroups=subgroups, **strategy_options(strategy), **options,
    )  # fmt: skip


def _run(scan, device, x, **options):
    return scan.execute(input=gw.asarray(x, device), **options).output.to_numpy()


@pytest.fixture
def needs(require):
    """Skip where the device cannot do a subgroup mode or a form of the state."""

    def check(mode="none", strategy=""):
        require(*(["subgroup"] if mode == "native" else []), *(U64 if "u64" in strategy else []))

    return check


@pytest.fixture
def case(request, needs):
    """A combination of FACTORS that the device can do."""
    needs(request.param["mode"], request.param["strategy"])
    return request.param


def _tile(scan):
    parameters = scan.plan(gw.Layout.separate(input=1, output=1)).parameters
    return 4 * parameters["workgroup_size"] * parameters["vecs"]


@pytest.mark.parametrize(
    "case",
    quick_first(QUICK, NORMAL, SLOW),
    ids=lambda c: case_id(c),
    indirect=True,
)
def test_is_right_at_edge_sizes(device, case):
    scan = _make(device, **case)
    tile, blocks = _tile(scan), MOST_BLOCKS[scan.capabilities.is_cpu]
    for n in edge_sizes(tile, scan.mode.size, blocks):
        x = exact_items(case["op"], case["datatype"], n)
        one = _run(scan, device, x)
        assert_same(one, scan_reference(case["op"], x, case["kind"]), f"n={n}")
        if n in (0, tile + 1, blocks * tile + 1):
            assert_same(_run(scan, device, x, trials=7), one, f"n={n}, 7 trials")


@pytest.mark.parametrize("factor", FACTORS)
def test_every_value_meets_every_other(factor):
    for other in set(FACTORS) - {factor}:
        met = {(case[factor], case[other]) for case in NORMAL}
        assert met == {(a, b) for a in FACTORS[factor] for b in FACTORS[other]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("op", ["min", "max"])
def test_extremes_of_floats_with_nan_infinities_and_zeros(device, needs, op, strategy, kind):
    needs(strategy=strategy)
    x = exact_items(op, "f32", 1501, seed=1)
    assert np.isnan(x).any()
    assert np.isinf(x).any()
    x[:5] = [0.0, -0.0, 0.0, -0.0, 0.0]
    assert_same(_run(_make(device, op, "f32", kind, strategy), device, x), scan_reference(op, x, kind))


@pytest.mark.parametrize("op", ["add", "min", "max", "multiply"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nan_propagates_from_where_it_stands(device, needs, op, strategy):
    needs(strategy=strategy)
    scan = _make(device, op, strategy=strategy)
    for place in (0, 5, 63, 64, 200):
        x = np.ones(300, np.float32)
        x[place] = np.nan
        got = _run(scan, device, x)
        np.testing.assert_array_equal(np.isnan(got), np.arange(300) >= place)


@pytest.mark.parametrize("strategy", ["reduce_then_scan", "lookback-u32x2"])
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("datatype", ["u32", "i32"])
@settings(max_examples=12)
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_integers_that_wrap(device, datatype, op, strategy, kind, data):
    if op == "affine" and datatype == "i32":
        x = exact_items(op, datatype, data.draw(st.integers(0, 700)))
    else:
        x = data.draw(items(datatype))
    scan = _make(device, op, datatype, kind, strategy)
    assert_same(_run(scan, device, x), scan_reference(op, x, kind))


@pytest.mark.parametrize("strategy", ["reduce_then_scan", "lookback-u32x2"])
@pytest.mark.parametrize("op", ["min", "max"])
@given(x=items("f32"), kind=st.sampled_from(KINDS))
def test_extremes_of_any_floats(device, op, strategy, kind, x):
    assert_same(_run(_make(device, op, "f32", kind, strategy), device, x), scan_reference(op, x, kind))


@pytest.mark.parametrize("strategy", ["reduce_then_scan", "lookback-u32x2"])
@given(x=items("f32", largest=1e30), kind=st.sampled_from(KINDS))
def test_sums_of_any_floats(device, strategy, kind, x):
    assert_sums_within_bound(_run(_make(device, "add", "f32", kind, strategy), device, x), x, kind)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("signed", "kind"), [(False, "inclusive"), (True, "exclusive")], ids=["positive", "signed"])
def test_sums_of_random_floats(device, needs, strategy, mode, kind, signed):
    needs(mode, strategy)
    x = np.random.default_rng(7).random(100_001, dtype=np.float32) - np.float32(0.5 if signed else 0)
    scan = _make(device, "add", "f32", kind, strategy, mode, "middle")
    assert_sums_within_bound(_run(scan, device, x), x, kind)


@pytest.mark.parametrize("signed", [False, True], ids=["positive", "signed"])
@pytest.mark.parametrize("tile", [0, 17, 59])
def test_the_bound_on_sums_notices_a_missing_tile(device, tile, signed):
    """What guards the sums must fail on sums that lack a tile."""
    x = np.random.default_rng(7).random(61 * 4096, dtype=np.float32) - np.float32(0.5 if signed else 0)
    without = x.copy()
    without[4096 * tile : 4096 * (tile + 1)] = 0
    got = _run(_make(device, mode="none", shape="default"), device, without)
    with pytest.raises(AssertionError, match="out of bounds"):
        assert_sums_within_bound(got, x, "inclusive")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sums_of_integers_below_2_to_the_24_are_exact(device, needs, strategy):
    needs(strategy=strategy)
    x = np.random.default_rng(8).integers(0, 16, 1_000_003).astype(np.float32)
    want = np.cumsum(x, dtype=np.float64)
    assert want[-1] < 2**24
    assert_same(_run(_make(device, strategy=strategy, shape="middle"), device, x), want.astype(np.float32))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 64, 65, 5000])
def test_seven_trials_give_the_result_of_one(device, needs, n, kind, strategy):
    needs(strategy=strategy)
    x = exact_items("affine", "u32", n)
    scan = _make(device, "affine", "u32", kind, strategy)
    one, seven, again = (_run(scan, device, x, trials=trials) for trials in (1, 7, 1))
    assert_same(one, scan_reference("affine", x, kind))
    assert_same(seven, one)
    assert_same(again, one)


@pytest.mark.parametrize("op", ["add", "affine"])
@pytest.mark.parametrize("mode", MODES)
def test_more_totals_than_a_tile(device, needs, op, mode):
    """As on a GPU, whose 1,056 blocks leave totals for 17 tiles of the second kernel."""
    needs(mode)
    capabilities = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    scan = _make(device, op, "u32", "exclusive", mode=mode, capabilities=capabilities)
    tile = _tile(scan)
    for n in (1056 * tile - 1, 1056 * tile + 5, 500 * tile + 1):
        x = exact_items(op, "u32", n)
        run = scan.execute(input=gw.asarray(x, device))
        assert run.plan.parameters["blocks"] >= 500
        assert_same(run.output.to_numpy(), scan_reference(op, x, "exclusive"), f"n={n}")


@pytest.mark.parametrize("mode", ["native", "none", pytest.param("emulated", marks=pytest.mark.slow)])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_past_65535_workgroups(device, needs, strategy, mode):
    needs(mode, strategy)
    scan = _make(device, "add", "u32", "inclusive", strategy, mode)
    tile = _tile(scan)
    x = exact_items("add", "u32", tile * 65_536 + 65)
    run = scan.execute(input=gw.asarray(x, device))
    if strategy != "reduce_then_scan":  # which gives each workgroup many tiles
        assert np.prod(run.plan.kernels[0].workgroups) > 65_535
    want = scan_reference("add", x)
    assert_same(run.output.to_numpy(), want)
    assert_same(scan.execute(trials=2, output=run.output).output.to_numpy(), want, "2 trials")


def _few_workgroups(device):
    """The device's capabilities, with at most 7 workgroups in each dimension."""
    measured = gw.capabilities(device)
    limits = {**measured.limits, "max-compute-workgroups-per-dimension": 7}
    return dataclasses.replace(measured, limits=limits)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_dispatch_limit_of_7(device, needs, strategy, mode):
    needs(mode, strategy)
    scan = _make(device, "affine", "u32", "inclusive", strategy, mode, capabilities=_few_workgroups(device))
    for tiles in (7, 8, 49, 50, 57, 200, 343):
        x = exact_items("affine", "u32", _tile(scan) * tiles - 3)
        run = scan.execute(input=gw.asarray(x, device), trials=2)
        assert all(max(kernel.workgroups) <= 7 for kernel in run.plan.kernels)
        assert_same(run.output.to_numpy(), scan_reference("affine", x), f"{tiles} tiles")


def test_more_than_three_dimensions_of_the_limit(device):
    """The look-back, with a workgroup per tile, refuses; reduce-then-scan gives its workgroups more tiles."""
    x = gw.asarray(np.ones(64 * 343 + 1, np.uint32), device)
    few = _few_workgroups(device)
    with pytest.raises(gw.LimitError, match="max-compute-workgroups-per-dimension is 7"):
        _make(device, "add", "u32", strategy="lookback-u32x2", capabilities=few).execute(input=x)
    got = _make(device, "add", "u32", capabilities=few).execute(input=x).output.to_numpy()
    assert_same(got, np.arange(1, x.size + 1, dtype=np.uint32))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_another_length_compiles_nothing(device, needs, strategy):
    needs(strategy=strategy)
    scan = _make(device, "add", "i32", "exclusive", strategy)
    compiled = None
    for n in [5000, 3, 5000, 64, 0, 65, 50_000, 1, 4096]:
        x = exact_items("add", "i32", n)
        assert_same(_run(scan, device, x), scan_reference("add", x, "exclusive"), f"n={n}")
        compiled = compiled or context_of(device).executor.pipelines.compiled
    assert context_of(device).executor.pipelines.compiled == compiled


MAKERS = (
    "create_buffer", "create_buffer_with_data", "create_bind_group", "create_bind_group_layout",
    "create_pipeline_layout", "create_compute_pipeline", "create_shader_module",
)  # fmt: skip


@pytest.mark.parametrize("trials", [1, 7])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_repeating_a_call_makes_no_wgpu_object(device, needs, monkeypatch, strategy, trials):
    needs(strategy=strategy)
    x = exact_items("add", "u32", 5000)
    scan = _make(device, "add", "u32", strategy=strategy)
    arrays = {"input": gw.asarray(x, device), "output": gw.empty(5000, "u32", device)}
    shorter = {name: array[:700] for name, array in arrays.items()}
    scan.execute(**shorter)
    scan.execute(**arrays)
    counts = context_of(device).executor.counts
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
    assert context_of(device).executor.counts == counts
    assert_same(arrays["output"].to_numpy(), scan_reference("add", x))


def test_the_strategy_is_chosen_reported_and_can_be_overridden(device):
    x = gw.asarray(np.ones(10, np.uint32), device)
    chosen = gw.Scan(device).execute(input=x).plan.parameters["strategy"]
    assert chosen == ("lookback" if lookback_verdict(device, gw.Scan(device).state).safe else "reduce_then_scan")
    for strategy in ("reduce_then_scan", "lookback"):
        run = gw.Scan(device, strategy=strategy, tuning=gw.ScanTuning(state="u32x2")).execute(input=x)
        assert run.plan.parameters["strategy"] == strategy


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "sideways"},
        {"strategy": "guess"},
        {"state": "u16"},
        {"subgroups": "emulated-3"},
        {"subgroups": "emulated-64", "workgroup_size": 32},
        {"workgroup_size": 48},
        {"vecs": 0},
        {"spin_limit": 0},
        {"epoch_bits": 0},
    ],
    ids=str,
)
def test_wrong_options_are_refused(device, wrong):
    with pytest.raises(gw.ArgumentError, match=str(next(reversed(wrong.values())))):
        make_primitive(gw.Scan, device, **wrong)
