"""Prefix sums along an axis, against numpy: ScanAxis, axis= of cumsum and cumprod, and the array API's functions."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import assert_same, make_primitive, mode_for, operator, quick_first

#: Kernels with small tiles and parts, so that small arrays have several of them.
SMALL = {"workgroup_size": 32, "vecs": 1, "max_blocks": 8}
UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def _items(dtype, shape, seed=0):
    """Items whose sums are the same in any grouping."""
    rng = np.random.default_rng([seed, *shape])
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "c":
        return (rng.integers(-9, 9, shape) + 1j * rng.integers(-9, 9, shape)).astype(dtype)
    if dtype.kind == "f":
        return rng.integers(-9, 9, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def _expected(x, axis, op, dtype, kind, initial):
    with np.errstate(all="ignore"):
        sums = UFUNCS[op].accumulate(x.astype(dtype), axis=axis, dtype=dtype)
    if kind == "inclusive" and not initial:
        return sums
    one = [1 if k == axis % x.ndim else n for k, n in enumerate(x.shape)]
    both = np.concatenate([np.full(one, UFUNCS[op].identity, dtype), sums], axis=axis)
    return both if initial else both.take(range(x.shape[axis]), axis=axis)


def _check(device, x, axis, op="add", result=None, offset=3, kind="inclusive", initial=False, **options):
    """Compare with numpy's; input and output lie in views that begin at an item, and nothing else is written."""
    wanted = x.dtype if result is None else np.dtype(result)
    expected = _expected(x, axis, op, wanted, kind, initial)
    scan = make_primitive(
        gw.ScanAxis, device, x.dtype, op, kind, shape=x.shape, axis=axis, include_initial=initial, result_dtype=result,
        **options,
    )  # fmt: skip
    source = gw.asarray(np.concatenate([np.ones(offset, x.dtype), x.ravel()]), device)
    around = _items(wanted, (expected.size + 2 * offset,), seed=9)
    output = gw.asarray(around, device)
    run = scan.execute(input=source[offset:], output=output[offset : offset + expected.size])
    assert scan.output_shape == expected.shape
    around[offset : offset + expected.size] = expected.ravel()
    assert_same(output.to_numpy(), around)
    return run


SHAPES = [
    ((5, 100), 1, "rows", 1), ((3, 5000), 1, "rows", 2), ((9, 4, 8), 1, "columns", 1), ((3, 501, 7), 1, "columns", 2),
    ((40_001, 2), 0, "columns", 2), ((70, 4, 4), 0, "columns", 2),
]  # fmt: skip


@pytest.mark.parametrize("options", [SMALL, pytest.param({}, marks=pytest.mark.slow)], ids=["small", "usual"])
def test_every_kernel(device, options):
    for number, (shape, axis, kind, parts) in enumerate(SHAPES[:: 2 if options else 1]):
        x = _items(np.uint32, shape)
        _check(device, x, axis, **options)
        usual = gw.ScanAxis(device, shape=shape, axis=axis).plan(gw.Layout.separate(input=x.size, output=x.size))
        assert usual.parameters["kind"] == kind
        assert (usual.parameters["parts"] > 1) == (parts > 1)
        if options and number % 2:
            _check(device, x, axis, kind="exclusive", **options)
        elif options:
            _check(device, x, axis, initial=True, **options)


def test_totals_of_many_parts_are_scanned_in_parts(device):
    run = _check(device, _items(np.uint32, (2, 40_001)), 1, **{**SMALL, "max_blocks": 1 << 20})
    assert len(run.plan.kernels) >= 5


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_of_any_length(device, axis):
    for n in (1, 2, 3, 4, 31, 32, 33, 127, 128, 129, 130, 257, 1000):
        for shape in ((1, n), (n, 1), (7, n)):
            _check(device, _items(np.uint32, shape), axis, **SMALL)


def test_no_items(device):
    for shape, axis in (((0, 3), 0), ((3, 0), 1), ((3, 0), 0), ((0, 3), 1), ((2, 0, 3), 1), ((0,), 0)):
        for initial in (False, True):
            _check(device, np.zeros(shape, np.uint32), axis, initial=initial)
            _check(device, np.zeros(shape, np.uint8), axis, op="multiply", result="uint64", initial=initial)


@pytest.mark.parametrize(
    ("name", "result", "shape", "axis"),
    [("u8", "u64", (40, 129), 1), ("i8", None, (300, 4), 0), ("c64", None, (40, 129), 1),
     *(pytest.param(*case, (3, 90, 5), 1, marks=pytest.mark.slow) for case in (
         ("f32", None), ("i64", None), ("u8", "u64"), ("i8", None), ("f16", "f32"), ("bool", "i64"), ("i16", "i32")))],
)  # fmt: skip
def test_datatypes(device, name, result, shape, axis):
    dtype = np.dtype(np.complex64) if name == "c64" else gw.STORAGE_DATATYPES[name].dtype
    wanted = None if result is None else gw.STORAGE_DATATYPES[result].dtype
    _check(device, _items(dtype, shape), axis, result=wanted, initial=name == "i8", **SMALL)


def test_rows_that_share_a_word_are_written_by_atomics():
    """Else two workgroups could each write back what the other one had changed: seldom, so the text is checked."""
    for length, shared in ((129, True), (128, False)):
        scan = gw.ScanAxis(None, "u8", shape=(40, length), axis=1, capabilities=gw.Capabilities())
        plan = scan.plan(gw.Layout.separate({"input": 1, "output": 1}, input=40 * length, output=40 * length))
        assert ("atomic<u32>" in plan.shaders[plan.kernels[0].shader].text) == shared


@pytest.mark.parametrize(
    ("mode", "shape", "axis"),
    quick_first([("native", (6, 1001), 1)], [("none", (1001, 6), 0), ("emulated", (6, 1001), 1)]),
)
def test_order_is_kept(device, require, mode, shape, axis):
    if mode == "native":
        require("subgroup")
    affine = operator("affine", "u32")
    scan = make_primitive(
        gw.ScanAxis, device, "u32", affine, shape=shape, axis=axis, subgroups=mode_for(device, mode, 32), **SMALL
    )
    x = _items(np.uint32, shape)
    run = scan.execute(input=gw.asarray(x, device))
    assert run.plan.parameters["parts"] > 1
    parts = list(itertools.accumulate(np.moveaxis(x, axis, 0), affine.numpy))
    assert_same(run.output.to_numpy(), np.moveaxis(np.stack(parts), 0, axis).ravel())


@pytest.mark.parametrize(("shape", "axis"), quick_first([((3, 1001), 1), ((501, 3), 0)], [((50, 130), 1)]), ids=str)
def test_in_place(device, shape, axis):
    x = _items(np.uint32, shape)
    array = gw.asarray(np.concatenate([x.ravel(), x.ravel()]), device)
    part = array[3 : 3 + x.size]
    want = np.cumsum(array.to_numpy()[3 : 3 + x.size].reshape(shape), axis=axis, dtype=np.uint32).ravel()
    scan = make_primitive(gw.ScanAxis, device, "u32", shape=shape, axis=axis, **SMALL)
    before = array.to_numpy()
    scan.execute(input=part, output=part)
    before[3 : 3 + x.size] = want
    assert_same(array.to_numpy(), before)


def test_special_floats_stay_in_their_row_and_part(device):
    x = np.ones((4, 600), np.float32)
    x[0, 5], x[1, 300], x[2, 599] = np.nan, np.inf, -np.inf
    for axis, op in ((0, "add"), (1, "min")):
        _check(device, x, axis, op=op, **SMALL)


def test_deterministic_sums_depend_on_the_shape_alone(device):
    x = np.random.default_rng(0).random((3, 5000), np.float32)
    scan = gw.ScanAxis(device, "f32", shape=x.shape, axis=1, deterministic=True)
    first = scan.execute(input=gw.asarray(x, device)).output.to_numpy()
    caps = replace(gw.capabilities(device), adapter_type="DiscreteGPU", subgroup_min_size=32)
    other = gw.ScanAxis(device, "f32", shape=x.shape, axis=1, deterministic=True, capabilities=caps)
    assert_same(other.execute(input=gw.asarray(x, device)).output.to_numpy(), first)
    np.testing.assert_allclose(first, np.cumsum(x, axis=1, dtype=np.float64).ravel(), rtol=1e-5)


def test_items_past_a_binding(device):
    """Limits are tiny, so that a part of the array lies in a second segment."""
    caps = gw.capabilities(device)
    limits = {**caps.limits, "max-storage-buffer-binding-size": 65536}
    x = _items(np.uint32, (3, 9000))
    for axis in (0, 1):
        scan = gw.ScanAxis(device, "u32", shape=x.shape, axis=axis, capabilities=replace(caps, limits=limits))
        run = scan.execute(input=gw.asarray(x, device))
        assert len(run.plan.kernels[-1].bindings) > 4, "input and output have two bindings each"
        assert_same(run.output.to_numpy(), np.cumsum(x, axis=axis, dtype=np.uint32).ravel())


# ---- the functions


@pytest.mark.parametrize("dtype", [np.float32])
def test_the_initial_item_of_arrays_and_expressions_on_the_gpu(device, dtype):
    for n in (0, 1, 2, 127, 5000):
        x = np.random.default_rng(n).integers(0, 3, n).astype(dtype)
        on_gpu = gw.asarray(x, device)
        for items, wanted in (
            (on_gpu, x),
            (on_gpu[1:], x[1:]),
            *([(on_gpu + 1, x + 1)] if dtype in (np.uint32, np.float32) else []),
        ):
            expected = np.concatenate([np.zeros(1, dtype), np.cumsum(wanted, dtype=dtype)])
            assert_same(gw.cumulative_sum(items, dtype=dtype, include_initial=True).to_numpy(), expected)
            around = gw.full(wanted.size + 3, 7, dtype, device)
            out = around[1:-1]
            assert gw.cumulative_sum(items, dtype=dtype, include_initial=True, out=out) is out
            assert_same(around.to_numpy(), np.concatenate([[7], expected, [7]]).astype(dtype))
    assert_same(gw.cumulative_prod(on_gpu, dtype=dtype, include_initial=True).to_numpy()[0], dtype(1))


def test_an_out_that_overlaps_stays_as_it_is(device):
    buffer = gw.asarray(np.arange(10, dtype=np.uint32), device)
    with pytest.raises(gw.OverlapError):
        gw.cumulative_sum(buffer[:9], dtype=np.uint32, include_initial=True, out=buffer)
    assert_same(buffer.to_numpy(), np.arange(10, dtype=np.uint32))


def test_refusals(device):
    x = np.ones((2, 3), np.float32)
    for call, message in [
        (lambda: gw.cumsum(x, axis=2), "axis=2 is out of bounds for an array of 2 dimensions"),
        (lambda: gw.cumsum(x, axis=(0, 1)), "one integer"),
        (lambda: gw.cumsum(x, axis=0, compensated=True), "compensated=True is for the prefix sums of all items"),
        (lambda: gw.cumsum(x[0], include_initial=True), "gw.cumulative_sum and gw.cumulative_prod have it"),
        (lambda: gw.cumulative_sum(x), "needs axis="),
        (lambda: gw.ScanAxis(device, shape=(2, 3), axis=None), "one axis"),
        (lambda: gw.ScanAxis(device, kind="both", shape=3, axis=0), "known are inclusive, exclusive"),
        (lambda: gw.ScanAxis(device, kind="exclusive", shape=3, axis=0, include_initial=True), "inclusive scans"),
        (lambda: gw.ScanAxis(device, shape=3, axis=0, tuning=gw.AxisTuning(team=32)), "team= of AxisTuning"),
    ]:
        with pytest.raises(gw.ArgumentError, match=message.replace("(", r"\(")):
            call()
    expression = gw.asarray(x[0], device) * 2
    assert_same(gw.cumulative_sum(expression).to_numpy(), np.cumsum(x[0] * 2))
    with pytest.raises(gw.ArgumentError, match="an expression has no axes"):
        gw.cumsum(expression, axis=0)
    counted = gw.compress(gw.asarray(x[0] > 0, device), gw.asarray(x[0], device))
    with pytest.raises(gw.ArgumentError, match=r"counted expression.*store it first"):
        gw.cumulative_prod(counted * 2, include_initial=True)
    with pytest.raises(gw.LengthError):
        gw.cumsum(x, axis=0, out=np.empty((3, 2), np.float32))
    chunked = gw.ChunkedArray.from_numpy(x[0], device=device)
    assert_same(gw.cumsum(chunked, axis=0).to_numpy(), np.cumsum(x[0]))
    with pytest.raises(gw.ArgumentError, match="ChunkedArray"):
        gw.cumulative_sum(chunked, include_initial=True)
