"""VectorAdd against numpy."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.runtime.context import context_of
from helpers.strategies import DATATYPES, SHAPES, assert_same, edge_sizes, exact_items, items, lengths, make_primitive

pytestmark = pytest.mark.thin(1)


def _run(add, device, a, b, **options):
    return add.execute(a=gw.asarray(a, device), b=gw.asarray(b, device), **options).output.to_numpy()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("datatype", DATATYPES)
def test_is_right_at_edge_sizes(device, datatype, shape):
    add = make_primitive(gw.VectorAdd, device, datatype, **SHAPES[shape])
    tile = 4 * SHAPES[shape].get("workgroup_size", 256) * SHAPES[shape].get("vecs", 4)
    for n in edge_sizes(tile, subgroup=8, blocks=5):
        a, b = (exact_items("add", datatype, n, seed) for seed in (1, 2))
        assert_same(_run(add, device, a, b), a + b, f"n={n}")


@pytest.mark.parametrize("blocks", [1, 3, 4, 5, 7, 8, 41])
@pytest.mark.parametrize("windows", [1, 3])
def test_regions_that_take_turns(device, monkeypatch, blocks, windows):
    """As with arrays of gigabytes: every block is done, and once, also where the regions do not go into them.

    The grid has up to three dimensions, and more workgroups than blocks.
    """
    monkeypatch.setattr(gw.VectorAdd, "_pages_known_bytes", 0)
    tile = 4 * 16 * 3
    n = windows * blocks * tile - 5
    few = {"max-storage-buffer-binding-size": 4 * blocks * tile + 512, "max-compute-workgroups-per-dimension": 4}
    capabilities = dataclasses.replace(gw.capabilities(device), limits=gw.capabilities(device).limits | few)
    add = gw.VectorAdd(device, "u32", tuning=gw.ElementwiseTuning(workgroup_size=16, vecs=3), capabilities=capabilities)
    a, b = (exact_items("add", "u32", n, seed) for seed in (1, 2))
    x = gw.asarray(a, device)
    run = add.execute(a=x, b=gw.asarray(b, device))
    assert (run.plan.parameters["windows"], run.plan.parameters["regions"]) == (windows, 4)
    assert_same(run.output.to_numpy(), a + b)
    add.execute(a=x, b=gw.asarray(b, device), output=x)
    assert_same(x.to_numpy(), a + b)


def test_regions_only_where_pages_are_looked_up_anew():
    limits = {"max-storage-buffer-binding-size": 2**31 - 4, "max-compute-workgroups-per-dimension": 65535,
              "min-storage-buffer-offset-alignment": 16, "max-compute-invocations-per-workgroup": 1024}  # fmt: skip
    capabilities = gw.Capabilities(limits=limits)

    def regions(make, n, same=False):
        names = [argument.name for argument in make.arguments]
        layout = gw.Layout.separate(**dict.fromkeys(names, n))
        if same:
            layout = gw.Layout({name: layout[names[0]] for name in names})
        return make(None, "u32", capabilities=capabilities).plan(layout).parameters["regions"]

    third = (15 << 29) // 12
    assert [regions(gw.VectorAdd, n) for n in (0, 1000, third, third + 1, 1 << 30)] == [1, 1, 1, 4, 4]
    assert [regions(gw.VectorAdd, n, same=True) for n in (third + 1, 1 << 30)] == [1, 1], "in place"
    assert [regions(gw.Copy, n) for n in (third + 1, 1 << 30)] == [1, 4]


@pytest.mark.parametrize("datatype", DATATYPES)
@given(data=st.data())
def test_adds_any_items_as_numpy_does(device, datatype, data):
    n = data.draw(lengths(tile=64, subgroup=4))
    a, b = (data.draw(items(datatype, n)) for _ in "ab")
    add = make_primitive(gw.VectorAdd, device, datatype, **SHAPES["small"])
    got = _run(add, device, a, b)
    with np.errstate(all="ignore"):
        want = a + b
    if datatype == "f32":
        got, want = _without_denormals(got), _without_denormals(want)
    assert_same(got, want)


def _without_denormals(x):
    """A sum of normal numbers may be a denormal, which the GPU may flush to a zero of either sign."""
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(0), x)


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (np.nan, 1.0, np.nan),
        (np.inf, 1.0, np.inf),
        (np.inf, -np.inf, np.nan),
        (-np.inf, 3.4e38, -np.inf),
        (3.4e38, 3.4e38, np.inf),
        (-0.0, -0.0, -0.0),
        (-0.0, 0.0, 0.0),
    ],
)
@pytest.mark.parametrize("n", [1, 64], ids=["scalar path", "vec4 path"])
def test_special_floats(device, a, b, want, n):
    add = make_primitive(gw.VectorAdd, device, "f32", **SHAPES["small"])
    got = _run(add, device, np.full(n, a, np.float32), np.full(n, b, np.float32))
    assert_same(got, np.full(n, want, np.float32))


@pytest.mark.parametrize("datatype", ["u32", "i32"])
def test_integers_wrap(device, datatype):
    info = np.iinfo(gw.DATATYPES[datatype].dtype)
    a = np.array([info.max, info.min, info.max, info.min], info.dtype)
    b = np.array([1, -1 & int(info.max) if info.min == 0 else -1, info.max, info.min], info.dtype)
    assert_same(_run(gw.VectorAdd(device, datatype), device, a, b), a + b)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_seven_trials_give_the_result_of_one(device, datatype):
    add = make_primitive(gw.VectorAdd, device, datatype, **SHAPES["small"])
    a, b = (exact_items("add", datatype, 1001, seed) for seed in (1, 2))
    one, seven = (_run(add, device, a, b, trials=trials) for trials in (1, 7))
    assert_same(one, a + b)
    assert_same(seven, one)


def test_past_65535_workgroups(device):
    n = 64 * 65_536 + 65
    a, b = np.arange(n, dtype=np.uint32), np.arange(n, dtype=np.uint32)[::-1].copy() * np.uint32(7)
    add = make_primitive(gw.VectorAdd, device, "u32", **SHAPES["small"])
    run = add.execute(a=gw.asarray(a, device), b=gw.asarray(b, device))
    assert np.prod(run.plan.kernels[0].workgroups) > 65_535
    assert_same(run.output.to_numpy(), a + b)


def _few_workgroups(device):
    """The device's capabilities, with at most 7 workgroups in each dimension."""
    measured = gw.capabilities(device)
    limits = {**measured.limits, "max-compute-workgroups-per-dimension": 7}
    return dataclasses.replace(measured, limits=limits)


@pytest.mark.parametrize("tiles", [7, 8, 48, 49, 50, 57, 200, 343])
def test_a_dispatch_limit_of_7(device, tiles):
    n = 64 * tiles - 3
    add = make_primitive(gw.VectorAdd, device, "u32", **SHAPES["small"], capabilities=_few_workgroups(device))
    a, b = (exact_items("add", "u32", n, seed) for seed in (1, 2))
    run = add.execute(a=gw.asarray(a, device), b=gw.asarray(b, device))
    assert max(run.plan.kernels[0].workgroups) <= 7
    assert_same(run.output.to_numpy(), a + b)


def test_more_than_three_dimensions_of_the_limit_is_refused_by_name(device):
    add = make_primitive(gw.VectorAdd, device, "u32", **SHAPES["small"], capabilities=_few_workgroups(device))
    a = gw.asarray(np.ones(64 * 343 + 1, np.uint32), device)
    with pytest.raises(gw.LimitError, match="max-compute-workgroups-per-dimension is 7"):
        add.execute(a=a, b=a)


def test_another_length_compiles_nothing(device):
    add = make_primitive(gw.VectorAdd, device, "i32", **SHAPES["small"])
    compiled = context_of(device).executor.pipelines.compiled
    for step, n in enumerate([1000, 3, 1000, 64, 0, 65, 4096, 1]):
        a = exact_items("add", "i32", n)
        assert_same(_run(add, device, a, a), a + a, f"n={n}")
        if step == 0:
            compiled = context_of(device).executor.pipelines.compiled
    assert context_of(device).executor.pipelines.compiled == compiled


def test_lengths_that_differ_are_refused(device):
    a, b = gw.empty(4, "u32", device), gw.empty(5, "u32", device)
    with pytest.raises(gw.LengthError, match="a has 4 items, b has 5 items"):
        gw.VectorAdd(device).execute(a=a, b=b)
