"""Views that overlap, raw buffers, and bindings as large as they can be; test_every_primitive.py has views anywhere."""

import dataclasses

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers.strategies import (
    AFFINE,
    SMALL,
    assert_same,
    exact_items,
    make_primitive,
    quick_first,
    reduce_reference,
    scan_reference,
)

GUARD = np.uint32(0xDEADBEEF)
PRIMITIVES = ("vector_add", "reduce", "scan", "exclusive scan", "lookback")


def _make(device, name, **more):
    if name == "vector_add":
        return make_primitive(gw.VectorAdd, device, "u32", workgroup_size=64, vecs=1, **more)
    if name == "reduce":
        return make_primitive(gw.Reduce, device, "u32", AFFINE, **SMALL, **more)
    kind = "exclusive" if name == "exclusive scan" else "inclusive"
    strategy = "lookback" if name == "lookback" else "reduce_then_scan"
    return make_primitive(gw.Scan, device, "u32", AFFINE, kind, strategy=strategy, state="u32x2", **SMALL, **more)


def _inputs(name, x):
    """The arguments of a primitive whose inputs are all the view `x`."""
    return {"a": x, "b": x} if name == "vector_add" else {"input": x}


def _want(name, x):
    if name == "vector_add":
        return x + x
    if name == "reduce":
        return reduce_reference("affine", x)
    return scan_reference("affine", x, "exclusive" if name == "exclusive scan" else "inclusive")


def _length(name, n):
    return 1 if name == "reduce" else n


def _view(device, x, offset, room=9):
    """Return a view at `offset` of a buffer that holds guards around `x`."""
    around = np.full(offset + x.size + room, GUARD)
    around[offset : offset + x.size] = x
    return gw.asarray(around, device)[offset : offset + x.size]


def _assert_guards(view, note):
    """Fail if anything outside the view was written."""
    whole = gw.Array(view.buffer, "u32").to_numpy()
    around = np.concatenate([whole[: view.offset], whole[view.offset + view.size :]])
    # asarray rounds a buffer up to 16 bytes; what lies there is zero.
    outside = around[: around.size - (whole.size - view.offset - view.size - 9)]
    assert (outside == GUARD).all(), f"{note}: items outside of the output were written"


@pytest.mark.parametrize("n", [200, 5001])
def test_a_reduction_into_its_own_input(device, n):
    reduce = _make(device, "reduce")
    for place in (0, 1, n // 2, n - 1):
        x = exact_items("affine", "u32", n)
        array = gw.asarray(x, device)
        reduce.execute(input=array, output=array[place : place + 1])
        x[place] = reduce_reference("affine", x)[0]
        assert_same(array.to_numpy(), x)


def test_in_place_chooses_a_strategy_that_can(device):
    capabilities = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    scan = gw.Scan(device, "u32", capabilities=capabilities, tuning=gw.ScanTuning(subgroups="none"))
    x = gw.asarray(exact_items("add", "u32", 10_000), device)
    assert scan.choose_strategy(in_place=False) == "lookback"
    want = scan_reference("add", x.to_numpy())
    assert scan.execute(input=x, output=x).plan.parameters["strategy"] == "reduce_then_scan"
    assert_same(x.to_numpy(), want)


@pytest.mark.parametrize("name", ["vector_add", "scan", "lookback"])
def test_views_that_overlap_in_part_are_refused_and_nothing_changes(device, name):
    whole = exact_items("affine", "u32", 400)
    array, primitive = gw.asarray(whole, device), _make(device, name)
    for shift in (-64, -1, 1, 63):
        with pytest.raises(gw.OverlapError, match=rf"items {100 + shift} to {200 + shift}.*items 100 to 200"):
            primitive.execute(**_inputs(name, array[100:200]), output=array[100 + shift : 200 + shift])
    assert_same(array.to_numpy(), whole)


def test_the_look_back_in_place_is_refused(device):
    x = gw.asarray(exact_items("affine", "u32", 400), device)
    with pytest.raises(gw.OverlapError, match=r"use views that do not overlap$"):
        _make(device, "lookback").execute(input=x, output=x)


@pytest.mark.parametrize("name", ["vector_add", "scan", "reduce"])
def test_trials_in_place_are_refused_and_nothing_changes(device, name):
    x = exact_items("affine", "u32", 400)
    array = gw.asarray(x, device)
    output = array[:1] if name == "reduce" else array
    with pytest.raises(gw.OverlapError, match="trials=2"):
        _make(device, name).execute(**_inputs(name, array), output=output, trials=2)
    assert_same(array.to_numpy(), x)


# ---- raw buffers ----

USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


@pytest.mark.parametrize("name", quick_first(["reduce", "scan"], PRIMITIVES))
def test_raw_buffers_of_sizes_that_are_no_multiple_of_16(device, name):
    primitive = _make(device, name)
    for size in (4, 8, 12, 16, 20, 28, 36, 100, 252, 260, 4004):
        x = exact_items("affine", "u32", size // 4)
        raw = device.create_buffer_with_data(data=x, usage=USAGE)
        output = device.create_buffer(size=4 * _length(name, x.size), usage=USAGE)
        run = primitive.execute(**_inputs(name, raw), output=output)
        assert run.output.buffer is output
        assert_same(run.output.to_numpy(), _want(name, x))


def test_raw_buffers_of_sizes_that_are_no_multiple_of_4(device):
    for size in (5, 18, 21, 66, 259):
        raw, output = (device.create_buffer(size=size, usage=USAGE) for _ in "io")
        x = exact_items("affine", "u32", size // 4)
        device.queue.write_buffer(raw, 0, x)
        run = _make(device, "scan").execute(input=raw, output=output)
        assert_same(run.output.to_numpy(), scan_reference("affine", x))


def test_a_view_that_ends_with_its_raw_buffer(device):
    for size in (9, 10, 11, 67, 1001):
        x = exact_items("affine", "u32", size)
        raw = device.create_buffer_with_data(data=x, usage=USAGE)
        for offset in (0, 1, 2, 5, 8):
            got = _make(device, "scan").execute(input=gw.Array(raw, "u32", offset=offset)).output.to_numpy()
            assert_same(got, scan_reference("affine", x[offset:]), f"{size} items from {offset}")


def test_raw_buffers_are_seen_through_the_primitives_datatype(device):
    x = exact_items("add", "i32", 99)
    raw = device.create_buffer_with_data(data=x, usage=USAGE)
    run = make_primitive(gw.Scan, device, "i32", **SMALL).execute(input=raw)
    assert_same(run.output.to_numpy(), scan_reference("add", x))


@pytest.mark.parametrize("missing", ["input", "output"])
def test_raw_buffers_without_the_usage_are_refused_by_its_name(device, missing):
    usages = {"input": USAGE, "output": USAGE, missing: wgpu.BufferUsage.COPY_DST}
    buffers = {name: device.create_buffer(size=64, usage=usage) for name, usage in usages.items()}
    with pytest.raises(gw.BufferUsageError, match=rf"{missing}.* lacks the usage STORAGE"):
        _make(device, "scan").execute(**buffers)


# ---- windows as large as a binding can be ----


def _with_binding_limit(device, limit):
    measured = gw.capabilities(device)
    limits = {**measured.limits, "max-storage-buffer-binding-size": limit}
    return dataclasses.replace(measured, limits=limits)


@pytest.mark.parametrize(
    ("name", "limit"),
    [("vector_add", 4096), ("reduce", 4092), ("scan", 4084), ("exclusive scan", 4092), ("lookback", 4092)],
)
def test_windows_of_a_whole_binding(device, name, limit):
    """4,092 bytes, as a limit of 2 GiB − 4 does, end within a vec4."""
    capabilities = _with_binding_limit(device, limit)
    primitive = _make(device, name, capabilities=capabilities)
    n = limit // 4
    step = capabilities.limits["min-storage-buffer-offset-alignment"] // 4
    for offset in (0, step, 5 * step):
        x = exact_items("affine", "u32", n)
        output = _view(device, np.full(_length(name, n), GUARD), offset)
        run = primitive.execute(**_inputs(name, _view(device, x, offset)), output=output)
        assert max(spec.size_bytes for spec in run.plan.buffers) <= limit
        assert_same(output.to_numpy(), _want(name, x), f"offset {offset}")
        _assert_guards(output, f"offset {offset}")


@pytest.mark.parametrize("name", quick_first(["vector_add", "lookback"], PRIMITIVES))
def test_one_item_more_than_a_binding_reaches_takes_another_window(device, name):
    primitive = _make(device, name, capabilities=_with_binding_limit(device, 4092))
    x = gw.asarray(np.arange(1025, dtype=np.uint32), device)
    # One item too many; and as many as fit, but from between two places where a binding can start.
    for view, windows in ((x[:1024], 2), (x[1:1024], 2), (x[1:1023], 1)):
        run = primitive.execute(**_inputs(name, view))
        assert run.plan.parameters["windows"] == windows
        assert_same(run.output.to_numpy(), _want(name, view.to_numpy()))
