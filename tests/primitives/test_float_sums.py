"""Deterministic and compensated float sums: bit for bit a twin in numpy, and within their error bounds."""

import dataclasses
import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given

import gridwise_py as gw
from helpers.float_sums import (
    REDUCE_BLOCKS,
    SCAN_BLOCKS,
    TILE,
    U,
    compensated_bound,
    compensated_scan_twin,
    compensated_twin,
    exact,
    ill_conditioned,
    reduce_twin,
    scan_twin,
)
from helpers.strategies import (
    AFFINE_F32,
    KINDS,
    exact_items,
    items,
    make_primitive,
    plan_from,
)

LAYOUT = {"input": 5000, "output": 1}
EDGES = (0, 1, 2, 3, 4, 5, 4 * 256 - 1, TILE - 1, TILE, TILE + 1, 3 * TILE + 6, 70 * TILE + 17)
LARGE = np.float32(3.4028235e38)


def _random(n, seed=0):
    """Floats of many magnitudes: any other order of additions gives other bits."""
    rng = np.random.default_rng([seed, n])
    return (rng.standard_normal(n) * np.exp2(rng.integers(-12, 13, n))).astype(np.float32)


def _bits(x):
    return np.asarray(x).view(np.uint32).tolist()


def _assert_bits(got, want, note=""):
    """Every bit counts, of a NaN, too."""
    assert got.dtype == want.dtype == np.float32
    assert got.shape == want.shape, note
    wrong = np.flatnonzero(got.view(np.uint32) != want.view(np.uint32))
    assert not wrong.size, (
        f"{note}: {wrong.size} items differ, item {wrong[0]} is {got[wrong[0]]!r}, not {want[wrong[0]]!r}"
    )


def _run(primitive, device, x, **options):
    return primitive.execute(input=gw.asarray(x, device), **options).output.to_numpy()


def _reduce(device, op="add", **options):
    return make_primitive(gw.Reduce, device, "f32", op, deterministic=True, **options)


def _scan(device, kind="inclusive", op="add", **options):
    return make_primitive(gw.Scan, device, "f32", op, kind, deterministic=True, **options)


def _compensated(device, **options):
    return make_primitive(gw.Reduce, device, "f32", compensated=True, **options)


def _compensated_scan(device, kind="inclusive", **options):
    return make_primitive(gw.Scan, device, "f32", gw.Add, kind, compensated=True, **options)


# ---- the fixed order ----


FORMS = {
    "sum": (_reduce, reduce_twin),
    "compensated sum": (_compensated, compensated_twin),
    **{
        f"{kind} {name}": (partial(make, kind=kind), partial(twin, kind=kind))
        for name, make, twin in (
            ("scan", _scan, scan_twin), ("compensated scan", _compensated_scan, compensated_scan_twin),
        )
        for kind in KINDS
    },
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_it_is_the_twin_bit_for_bit(device, form):
    make, twin = FORMS[form]
    primitive = make(device)
    for n in EDGES:
        x = _random(n)
        for trials in (1, 3):
            _assert_bits(_run(primitive, device, x, trials=trials), twin(x), f"n={n}, {trials} trials")


@pytest.mark.parametrize(
    ("form", "n"),
    [("sum", (REDUCE_BLOCKS + 2) * TILE - 3), ("compensated sum", (REDUCE_BLOCKS + 2) * TILE - 3),
     ("inclusive scan", (SCAN_BLOCKS + 1) * TILE + 2), ("exclusive compensated scan", (SCAN_BLOCKS + 1) * TILE + 2)],
)  # fmt: skip
def test_it_is_the_twin_where_blocks_have_several_tiles(device, form, n):
    make, twin = FORMS[form]
    x = _random(n)
    _assert_bits(_run(make(device), device, x), twin(x))


def test_products_too(device):
    # Near 1, so that no product comes near the denormals, which a GPU may flush.
    x = np.exp2(np.random.default_rng(1).normal(0, 0.05, 3 * TILE + 5)).astype(np.float32)
    assert scan_twin(x, "inclusive", np.multiply, 1.0).min() > 1e-3
    assert _bits(reduce_twin(x, np.multiply, 1.0)) != _bits(reduce_twin(x[::-1].copy(), np.multiply, 1.0))
    _assert_bits(_run(_scan(device, op="multiply"), device, x), scan_twin(x, "inclusive", np.multiply, 1.0))


@given(x=items("f32"))
def test_any_floats(device, x):
    _all_results(device, x, gw.asarray(x, device))


def test_every_nan_has_the_same_bits(device):
    x = _random(2 * TILE)
    x.view(np.uint32)[TILE + 5] = 0xFF812345
    want = np.array([0x7FC00000], np.uint32).view(np.float32)
    for primitive in (_reduce(device), _compensated(device)):
        _assert_bits(_run(primitive, device, x), want)
    for scan in (_scan(device), _compensated_scan(device)):
        prefixes = _run(scan, device, x)
        _assert_bits(prefixes[TILE + 5 :], np.full(TILE - 5, want[0]))
        assert np.isfinite(prefixes[: TILE + 5]).all()


def _all_results(device, x, array, **options):
    """Everything that is promised to be the twins', of one input."""
    for form, (make, twin) in FORMS.items():
        _assert_bits(make(device, **options).execute(input=array).output.to_numpy(), twin(x), f"{form}, {options}")


def test_views_that_start_anywhere(device):
    whole = _random(5 * TILE + 99)
    array = gw.asarray(whole, device)
    for offset in (0, 1, 2, 3, 4, 77):
        _all_results(device, whole[offset : 3 * TILE + 7], array[offset : 3 * TILE + 7])


def test_in_place(device):
    for form in ("sum", "inclusive scan"):
        make, twin = FORMS[form]
        for n in (5, 5 * TILE + 7):
            x = _random(n)
            array, want = gw.asarray(x, device), twin(x)
            make(device).execute(input=array, output=array[: want.size])
            _assert_bits(array.to_numpy(), np.concatenate([want, x[want.size :]]), form)


@pytest.mark.slow
@pytest.mark.parametrize("checks", ["none", "all"])
def test_modules_with_and_without_checks(fresh_device, monkeypatch, checks):
    monkeypatch.setenv("GRIDWISE_SHADER_CHECKS", checks)
    x = _random(5 * TILE + 7)
    _all_results(fresh_device, x, gw.asarray(x, fresh_device))


def test_a_dispatch_limit_of_7(device):
    """Blocks in a grid of three dimensions: the order of additions is that of any other device."""
    measured = gw.capabilities(device)
    few = dataclasses.replace(measured, limits={**measured.limits, "max-compute-workgroups-per-dimension": 7})
    x = _random(60 * TILE + 5)
    for make, twin in FORMS.values():
        run = make(device, capabilities=few).execute(input=gw.asarray(x, device))
        assert max(np.prod(kernel.workgroups) for kernel in run.plan.kernels) > 49
        assert max(max(kernel.workgroups) for kernel in run.plan.kernels) <= 7
        _assert_bits(run.output.to_numpy(), twin(x))


@pytest.mark.parametrize(("state", "stall_every"), [("u64", 1), ("u32x2", 3)])
def test_blocks_that_are_computed_again(device, require, state, stall_every):
    if state == "u64":
        require("shader-int64", "shader-int64-atomic-all-ops")
    x = _random(20 * TILE + 7)
    reduce = _reduce(device, state=state, stall_every=stall_every, spin_limit=2, epoch_bits=1)
    for trials in (1, 5):
        _assert_bits(_run(reduce, device, x, trials=trials), reduce_twin(x))


def test_the_kind_of_adapter_its_subgroups_and_its_tuning_change_nothing(device):
    measured = gw.capabilities(device)
    x = _random(9 * TILE + 7)
    tuning = {kernel: ((None, (64, 1, 5)),) for kernel in ("reduce", "scan", "scan_lookback")}
    for change in (
        {"adapter_type": "DiscreteGPU"},
        {"subgroup_size": None},
        {"tuning": tuning},
        {"features": frozenset()},
    ):
        _all_results(device, x, gw.asarray(x, device), capabilities=dataclasses.replace(measured, **change))


@pytest.mark.slow
def test_an_operator_of_ones_own(device):
    """Its order is fixed, too; this one does not commute."""
    x = exact_items("affine", "f32", 3 * TILE + 5)
    for make in (gw.Reduce, gw.Scan):
        got = _run(make(device, "f32", AFFINE_F32, deterministic=True), device, x)
        _assert_bits(got, _run(make(device, "f32", AFFINE_F32), device, x))
        assert make.plan_for(
            capabilities=gw.Capabilities(), lengths={"input": 9, "output": 9}, dtype="f32", op=AFFINE_F32,
            deterministic=True,
        ).parameters["shape"] == "fixed"  # fmt: skip


# ---- options ----


@pytest.mark.parametrize(("datatype", "op"), [("u32", "add"), ("i32", "multiply"), ("f32", "min"), ("f32", "max")])
def test_nothing_changes_where_nothing_rounds(datatype, op):
    for make in (gw.Reduce, gw.Scan):
        for subgroups in (None, "emulated-4"):
            options = {"dtype": datatype, "op": op, "subgroups": subgroups}
            plain, asked = (
                plan_from(
                    make,
                    capabilities=gw.Capabilities(),
                    lengths=LAYOUT | {"output": 5000},
                    **options,
                    deterministic=flag,
                )
                for flag in (False, True)
            )
            assert asked == plain
            assert plain.parameters["deterministic"] is True


def test_the_choice_is_in_the_parameters():
    def parameters(make, **options):
        lengths = {"input": 5000, "output": 1 if make is gw.Reduce else 5000}
        return make.plan_for(capabilities=gw.Capabilities(), lengths=lengths, dtype="f32", **options).parameters

    plain = parameters(gw.Reduce)
    assert (plain["deterministic"], plain["compensated"]) == (False, False)
    fixed = parameters(gw.Reduce, deterministic=True)
    assert (fixed["deterministic"], fixed["compensated"], fixed["shape"]) == (True, False, "fixed")
    both = parameters(gw.Reduce, compensated=True)
    assert (both["deterministic"], both["compensated"], both["shape"]) == (True, True, "fixed")
    assert both == parameters(gw.Reduce, compensated=True, deterministic=True)
    scan = parameters(gw.Scan, deterministic=True)
    assert (scan["deterministic"], scan["strategy"], scan["subgroups"]) == (True, "reduce_then_scan", "none")
    scan = parameters(gw.Scan, compensated=True)
    assert (scan["deterministic"], scan["compensated"], scan["shape"]) == (True, True, "fixed")
    assert (scan["strategy"], scan["subgroups"]) == ("reduce_then_scan", "none")
    assert parameters(gw.Scan)["deterministic"] is False
    assert parameters(gw.Scan)["strategy"] == "lookback"


def test_the_environments_wish_for_look_back_gives_way(monkeypatch):
    monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", "lookback")
    for deterministic, strategy in ((False, "lookback"), (True, "reduce_then_scan")):
        made = gw.Scan(None, "f32", deterministic=deterministic, capabilities=gw.Capabilities())
        assert made.strategy == strategy


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (gw.Scan, {"strategy": "lookback"}, "strategy='lookback' together with deterministic=True.*leave out"),
        (gw.Scan, {"compensated": True, "strategy": "lookback"}, "strategy='lookback' together with compensated=True"),
        (gw.Scan, {"compensated": True, "op": "max"}, "compensated=True is for sums.*'max'"),
        (gw.Scan, {"subgroups": "emulated-8"}, "subgroups='emulated-8' together with deterministic=True.*leave out"),
        (gw.Scan, {"vecs": 2}, "vecs=2 together with deterministic=True.*vecs=4; leave out"),
        (gw.Reduce, {"workgroup_size": 64}, "workgroup_size=64 together with deterministic=True.*workgroup_size=256"),
        (gw.Reduce, {"subgroups": True}, "subgroups=True together with deterministic=True"),
        (gw.Reduce, {"compensated": True, "subgroups": "native"}, "subgroups='native' together with compensated=True"),
        (gw.Reduce, {"compensated": True, "op": "multiply"}, "compensated=True is for sums.*'multiply'.*op='add'"),
    ],
)  # fmt: skip
def test_options_that_contradict_each_other_are_refused(make, wrong, message):
    with pytest.raises(gw.ArgumentError, match=message):
        make_primitive(make, None, "f32", deterministic=True, capabilities=gw.Capabilities(), **wrong)


def test_what_agrees_with_the_fixed_order_is_taken():
    for make in (gw.Reduce, gw.Scan):
        for option in ({"workgroup_size": 256, "vecs": 4}, {"subgroups": False}, {"subgroups": "none"}):
            make_primitive(make, None, "f32", deterministic=True, capabilities=gw.Capabilities(), **option)
    gw.Scan(None, "f32", deterministic=True, strategy="reduce_then_scan", capabilities=gw.Capabilities())


def test_a_device_with_small_workgroups_is_refused():
    small = gw.Capabilities(limits={"max-compute-invocations-per-workgroup": 128})
    for options in ({"deterministic": True}, {"compensated": True}):
        with pytest.raises(gw.ArgumentError, match=r"=True is unsupported.*workgroup_size=256 .* at most 128"):
            make_primitive(gw.Reduce, None, "f32", capabilities=small, **options)


def test_the_functions_take_the_options(device):
    x = _random(3 * TILE + 5)
    assert _bits(gw.sum(x, deterministic=True, device=device)) == _bits(reduce_twin(x)[0])
    assert _bits(gw.sum(x, compensated=True, device=device)) == _bits(compensated_twin(x)[0])
    assert _bits(gw.reduce(x, compensated=True, device=device)) == _bits(compensated_twin(x)[0])
    _assert_bits(gw.cumsum(x, deterministic=True, device=device), scan_twin(x, "inclusive"))
    _assert_bits(gw.cumsum(x, compensated=True, device=device), compensated_scan_twin(x, "inclusive"))
    got = gw.scan(x, "add", "exclusive", compensated=True, device=device)
    _assert_bits(got, compensated_scan_twin(x, "exclusive"))
    _assert_bits(gw.scan(x, "add", "exclusive", deterministic=True, device=device), scan_twin(x, "exclusive"))
    assert _bits(gw.prod(x[:9], deterministic=True, device=device)) == _bits(reduce_twin(x[:9], np.multiply, 1.0)[0])
    integers = np.arange(9, dtype=np.uint32)
    assert gw.sum(integers, compensated=True, deterministic=True, device=device) == 36
    assert gw.cumsum(integers, compensated=True, device=device).tolist() == np.cumsum(integers).tolist()


# ---- errors ----


def test_compensated_sums_of_ill_conditioned_data(device):
    compensated = _compensated(device)
    for n, condition in itertools.product((3, 1000, TILE + 1, 200_001), (1e1, 1e4, 1e6, 1e7)):
        x = ill_conditioned(n, condition)
        want, magnitude = exact(x)
        assert condition / 4 < magnitude / abs(want) < 4 * condition
        got = float(_run(compensated, device, x)[0])
        assert abs(got - want) <= compensated_bound(x)
        assert abs(got - want) <= 2 * U * abs(want), "that is all digits, at this condition"


LARGE_SCAN = pytest.param((SCAN_BLOCKS + 1) * TILE, 10 + 70, marks=pytest.mark.slow)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "chain"), [(1000, 5 + 70), (20 * TILE + 5, 5 + 70), LARGE_SCAN])
def test_compensated_prefixes_are_within_their_bounds(device, n, chain, kind):
    x = ill_conditioned(n, 1e6)
    got = _run(_compensated_scan(device, kind), device, x)
    plain = _run(_scan(device, kind), device, x)
    magnitude = np.concatenate([[0.0], np.cumsum(np.abs(x), dtype=np.float64)])
    outside, begin, parts = 0, 0, []
    for end in sorted({*range(40), *range(n // 2, n, 1 + n // 300), n - 1}):
        parts.append(math.fsum(x[begin:end].tolist()))
        i, want, begin = end - (kind == "inclusive"), math.fsum(parts), end
        if i < 0:
            continue
        bound = U * abs(want) + 2 * (chain * U) ** 2 * magnitude[end]
        assert abs(float(got[i]) - want) <= bound, f"prefix of {end}"
        outside += abs(float(plain[i]) - want) > bound
    assert outside > 50, "plain prefixes are not that good"


def test_the_error_of_a_compensated_sum_does_not_grow_with_n(device):
    """A plain sum of so many equal items is wrong in its last digits; this is the float nearest to the exact sum."""
    for n in (1000, 4_000_000):
        x = np.full(n, 0.1, np.float32)
        want = np.float32(exact(x)[0])
        assert _run(_compensated(device), device, x)[0] == want
    assert _run(_reduce(device), device, x)[0] != want


def test_the_bound_notices_a_sum_without_compensation(device):
    """What guards the compensation must fail on the plain sum, which is what a compiler may make of it."""
    x = ill_conditioned(200_001, 1e6)
    plain = float(_run(_reduce(device), device, x)[0])
    assert abs(plain - exact(x)[0]) > 100 * compensated_bound(x)


SPECIAL = (
    ([np.inf], np.inf), ([-np.inf], -np.inf), ([np.inf, np.inf], np.inf), ([np.inf, -np.inf], np.nan),
    ([np.nan], np.nan), ([np.nan, np.inf], np.nan), ([LARGE], LARGE), ([-LARGE], -LARGE), ([LARGE, LARGE], np.inf),
    ([-LARGE, -LARGE], -np.inf),
    ([-1.5 * 2.0**104, LARGE], LARGE - np.float32(2.0**104)),  # a step of TwoSum overflows, the sum does not
    ([LARGE, 1.0, -LARGE], 1.0),
)  # fmt: skip


def test_infinities_nan_and_overflow(device):
    """As numpy's sum has it; only the last one is better."""
    compensated, scan = _compensated(device), _compensated_scan(device)
    for (values, want), place in itertools.product(SPECIAL, (0, 700, TILE, 5 * TILE)):
        x = np.zeros(5 * TILE + 64, np.float32)
        x[place : place + 4 * len(values) : 4] = values
        with np.errstate(all="ignore"):
            assert len(values) == 3 or np.array_equal(x.sum(), np.float32(want), equal_nan=True)
        np.testing.assert_array_equal(_run(compensated, device, x), np.array([want], np.float32))
        prefixes = _run(scan, device, x)
        np.testing.assert_array_equal(prefixes[place + 4 * len(values) :], np.float32(want))
        assert np.isfinite(prefixes[:place]).all()


def test_work_and_dispatches_of_compensated_sums():
    plan = gw.Reduce.plan_for(
        capabilities=gw.Capabilities(), lengths={"input": 5000, "output": 1}, dtype="f32", compensated=True
    )
    assert [(kernel.label, kernel.workgroups) for kernel in plan.kernels] == [
        ("sum blocks", (2, 1, 1)),
        ("sum", (1, 1, 1)),
    ]
    plain = gw.Reduce.plan_for(capabilities=gw.Capabilities(), lengths={"input": 5000, "output": 1}, dtype="f32")
    assert plan.work == plain.work
    lengths = {"input": 5000, "output": 5000}
    plan = gw.Scan.plan_for(capabilities=gw.Capabilities(), lengths=lengths, dtype="f32", compensated=True)
    assert [kernel.label for kernel in plan.kernels] == ["sum blocks", "scan pairs", "scan blocks"]
    assert plan.work == gw.Scan.plan_for(capabilities=gw.Capabilities(), lengths=lengths, dtype="f32").work
