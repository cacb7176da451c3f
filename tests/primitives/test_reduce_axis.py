"""Reductions along an axis, against numpy: ReduceAxis, and axis= and keepdims= of the functions."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.functions.arguments import keep_primitive
from helpers.strategies import assert_same, make_primitive, mode_for, operator, quick_first

#: Kernels with small parts, so that small arrays have several of them.
SMALL = {"workgroup_size": 32, "max_blocks": 8}
WIDTHS = (1, 4, 31, 32, 33, 127, 128, 129, 1000)
UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def _items(op, dtype, shape, seed=0):
    """Items whose results are the same in any grouping."""
    rng = np.random.default_rng([seed, *shape])
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "c":
        return (rng.integers(-9, 9, shape) + 1j * rng.integers(-9, 9, shape)).astype(dtype)
    if dtype.kind == "f":
        return (
            rng.choice([1, -1], shape).astype(dtype) if op == "multiply" else rng.integers(-9, 9, shape).astype(dtype)
        )
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def _check(device, x, axis, op="add", result=None, offset=3, **options):
    """Compare with numpy's reduction; `x` lies in a view that begins at an item."""
    whole = gw.asarray(np.concatenate([np.zeros(offset, x.dtype), x.ravel()]), device)
    reduction = make_primitive(
        gw.ReduceAxis, device, x.dtype, op, shape=x.shape, axis=axis, result_dtype=result, **options
    )  # fmt: skip
    run = reduction.execute(input=whole[offset:])
    wanted = x.dtype if result is None else np.dtype(result)
    with np.errstate(all="ignore"):
        want = UFUNCS[op].reduce(x.astype(wanted), axis=axis, dtype=wanted)
    assert reduction.output_shape == np.shape(want)
    assert_same(run.output.to_numpy(), np.ravel(want))
    return run


# ---- shapes


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_of_any_length(device, axis):
    for n in WIDTHS:
        for shape in ((37, n), *(((1, n), (n, 1)) if n in (1, 33, 1000) else ())):
            _check(device, _items("add", np.uint32, shape), axis, **SMALL)


@pytest.mark.parametrize("options", [SMALL, pytest.param({}, marks=pytest.mark.slow)], ids=["small", "usual"])
def test_every_kernel(device, options):
    for shape, axis, kind in (
        ((40_000, 4), 1, "rows"), ((40_001, 3), 0, "narrow"), ((5, 40_001), 0, "columns"), ((3, 40_001), 1, "rows"),
        ((700, 301), 0, "columns"), ((5, 64, 12), 1, "narrow"),
    ):  # fmt: skip
        run = _check(device, _items("add", np.uint32, shape), axis, **options)
        assert run.plan.parameters["kind"] == kind
        # Small kernels combine long axes in parts.
        assert run.plan.parameters["parts"] > 1 or shape[axis] < 40_000 or not options


def test_any_axes(device):
    x = _items("add", np.uint32, (3, 5, 2, 4))
    neighbours = [axes for k in range(5) for axes in itertools.combinations(range(4), k) if axes == tuple(
        range(axes[0], axes[0] + k) if k else ())]  # fmt: skip
    assert len(neighbours) == 11
    for axis in (None, -1, -4, *neighbours):
        _check(device, x, axis, **SMALL)


def test_no_items(device):
    for shape, axis in (((0, 3), 0), ((3, 0), 1), ((3, 0), 0), ((0, 3), 1), ((2, 0, 3), 1), ((0,), 0), ((0, 0), None)):
        _check(device, np.zeros(shape, np.uint32), axis, **SMALL)
        _check(device, np.zeros(shape, np.uint8), axis, result="uint64", **SMALL)
        _check(device, np.ones(shape, np.float32), axis, op="multiply", **SMALL)
    with pytest.raises(gw.EmptyReductionError):
        gw.ReduceAxis(device, "f32", "min", shape=(3, 0), axis=1).execute(input=gw.empty(0, "f32", device))
    _check(device, np.zeros((3, 0), np.float32), 0, op="min")  # no results, so nothing that has none


def test_the_next_shape_of_a_view(device):
    """A two-dimensional Array is what its items are in C order."""
    x = gw.asarray(_items("add", np.uint32, (6, 10)), device)
    out = gw.empty(5, "u32", device)
    run = gw.ReduceAxis(device, "u32", shape=(5, 10), axis=1).execute(input=x[1:], output=out)
    assert run.output is out
    assert_same(out.to_numpy(), x.to_numpy()[1:].sum(axis=1, dtype=np.uint32))


# ---- datatypes and operators


@pytest.mark.parametrize(
    ("name", "result", "shape"),
    [("u8", "u64", (40, 129)), ("f16", "f32", (2500, 4)), pytest.param("c64", None, (40, 129), marks=pytest.mark.slow),
     *(pytest.param(*case, (3, 90, 5), marks=pytest.mark.slow) for case in (
         ("u32", None), ("f32", None), ("i64", None), ("u8", "u64"), ("i8", None), ("f16", "f32"), ("bool", "i64"),
         ("c64", None), ("i16", "i32")))],
)  # fmt: skip
def test_datatypes(device, name, result, shape):
    dtype = np.dtype(np.complex64) if name == "c64" else gw.STORAGE_DATATYPES[name].dtype
    wanted = None if result is None else gw.STORAGE_DATATYPES[result].dtype
    for axis in range(len(shape)):
        op = "max" if name == "f16" and axis else "add"
        _check(device, _items(op, dtype, shape), axis, op, result=wanted, **SMALL)


@pytest.mark.parametrize(
    ("mode", "shape"),
    [
        ("native", (6, 1001)),
        pytest.param("none", (1001, 6), marks=pytest.mark.slow),
        pytest.param("emulated", (2, 130, 40), marks=pytest.mark.slow),
    ],
)
def test_order_is_kept(device, require, mode, shape):
    if mode == "native":
        require("subgroup")
    x = _items("add", np.uint32, shape)
    affine = operator("affine", "u32")
    for axis in range(len(shape)):
        reduction = make_primitive(
            gw.ReduceAxis, device, "u32", affine, shape=shape, axis=axis, subgroups=mode_for(device, mode, 32), **SMALL
        )
        parts = np.moveaxis(x, axis, 0)
        want = parts[0]
        for part in parts[1:]:
            want = affine.numpy(want, part)
        assert_same(reduction.execute(input=gw.asarray(x.ravel(), device)).output.to_numpy(), want.ravel())
        assert_same(reduction.reference(x), want.ravel())


def test_nan_and_zeros(device):
    x = np.random.default_rng(1).standard_normal((40, 37)).astype(np.float32)
    x[3, 4], x[:, 5], x[7, 5] = np.nan, 0, -0.0
    given = gw.asarray(x, device)
    for axis, name in ((0, "min"), (1, "max")):
        reduction = gw.ReduceAxis(device, "f32", name, shape=x.shape, axis=axis)
        want = UFUNCS[name].reduce(x, axis=axis)
        np.testing.assert_array_equal(reduction.execute(input=given).output.to_numpy(), want)
    least = gw.min(given, axis=0).to_numpy()
    assert np.isnan(least[4])
    assert np.signbit(least[5])


@pytest.mark.parametrize(("shape", "axis"), [((60_000, 4), 0), ((3, 90_001), 1)])
def test_deterministic_sums_are_the_same_everywhere(device, shape, axis):
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    given, own = gw.asarray(x, device), gw.capabilities(device)
    narrow = {**own.limits, "max-storage-buffer-binding-size": 1 << 18}
    results = {
        gw.ReduceAxis(device, "f32", shape=shape, axis=axis, deterministic=True, capabilities=each)
        .execute(input=given).output.to_numpy().tobytes()
        for each in (own, replace(own, adapter_type="DiscreteGPU"), replace(own, subgroup_size=None),
                     replace(own, limits=narrow))
    }  # fmt: skip
    assert len(results) == 1
    np.testing.assert_allclose(np.frombuffer(results.pop(), np.float32), x.sum(axis=axis, dtype=np.float64), atol=1e-2)


@pytest.mark.parametrize(
    ("shape", "axis", "name", "op", "result"),
    quick_first(
        [((3, 30_001), 1, "f32", "add", None), ((50_000, 3), 0, "u8", "add", "i64"),
         ((7, 101, 100), 1, "i64", "max", None)],
        [((300, 301), 0, "c64", "add", None)],
    ),
    ids=str,
)  # fmt: skip
def test_in_windows(device, shape, axis, name, op, result):
    dtype = np.dtype(np.complex64) if name == "c64" else gw.STORAGE_DATATYPES[name].dtype
    own = gw.capabilities(device)
    limits = {**own.limits, "max-storage-buffer-binding-size": 1 << 17}
    x = _items(op, dtype, shape)
    run = _check(
        device, x, axis, op, None if result is None else gw.STORAGE_DATATYPES[result].dtype, offset=5,
        capabilities=replace(own, limits=limits),
    )  # fmt: skip
    sizes = [binding.size_bytes for kernel in run.plan.kernels for binding in kernel.bindings]
    assert all(size is None or size <= 1 << 17 for size in sizes)
    if x.nbytes > 1 << 17:  # several dispatches, or several bindings of one
        assert len(sizes) > 5


def test_maxima_of_64_bits_over_windows(device):
    """Of all items: the totals of windows are combined in accumulators, not in keys of items."""
    x = _items("max", np.int64, (40_000,))
    own = gw.capabilities(device)
    limited = replace(own, limits={**own.limits, "max-storage-buffer-binding-size": 1 << 16})
    run = gw.Reduce(device, "i64", "max", capabilities=limited).execute(input=gw.asarray(x, device))
    assert run.plan.parameters["windows"] > 1
    assert_same(run.output.to_numpy(), x.max(keepdims=True))


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "match"),
    [({"axis": 2}, "axis=2 is out of bounds.*from -2 to 1"), ({"axis": -3}, "axis=-3 is out of bounds"),
     ({"axis": (0, 0)}, "twice"), ({"axis": 0.5}, "integer"), ({"axis": True}, "integer"),
     ({"axis": 0, "shape": (3, -1)}, "at least 0"), ({"axis": (0, 2), "shape": (2, 3, 4)}, "neighbours.*moveaxis"),
     ({"axis": 0, "tuning": {"workgroup_size": 48}}, "power of two"),
     ({"axis": 0, "tuning": {"workgroup_size": 1 << 20}}, "at most")],
)  # fmt: skip
def test_what_is_refused(device, options, match):
    tuning = options.pop("tuning", None)
    with pytest.raises(gw.ArgumentError, match=match):
        gw.ReduceAxis(
            device, **{"shape": (3, 4), **options}, tuning=None if tuning is None else gw.AxisTuning(**tuning)
        )


def test_a_wrong_length_is_refused(device):
    with pytest.raises(gw.LengthError, match="12"):
        gw.ReduceAxis(device, shape=(3, 4), axis=1).execute(input=gw.empty(11, "u32", device))


# ---- the functions


def test_what_functions_refuse(device):
    x = np.ones((2, 3, 4), np.float32)
    for name in ("any", "all", "count_nonzero"):
        for each in (x, gw.asarray(x, device)):
            with pytest.raises(gw.ArgumentError, match=rf"gw\.{name}\(\): axis=3 is out of bounds"):
                getattr(gw, name)(each, axis=3)
    with pytest.raises(gw.ArgumentError, match=r"gw\.sum\(\): axis=3 is out of bounds"):
        gw.sum(x, axis=3, device=device)
    with pytest.raises(gw.ArgumentError, match="neighbours"):
        gw.sum(gw.asarray(x, device), axis=(0, 2))
    with pytest.raises(gw.ArgumentError, match="compensated=True takes all items"):
        gw.sum(x, axis=0, compensated=True, device=device)
    with pytest.raises(gw.EmptyReductionError):
        gw.max(np.zeros((3, 0), np.float32), axis=1, device=device)
    assert gw.max(np.zeros((3, 0), np.float32), axis=0, device=device).shape == (0,)


def test_many_shapes_leave_other_primitives_kept(device):
    kept = keep_primitive(gw.Sort, device, "u32")
    for rows in range(1, 100):
        keep_primitive(gw.ReduceAxis, device, "u32", shape=(rows, 2), axis=0)
    assert keep_primitive(gw.Sort, device, "u32") is kept
