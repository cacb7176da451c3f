"""Arguments that lie anywhere in their buffers: unaligned, together in one buffer, in place, in raw buffers."""

import dataclasses

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers.strategies import (
    AFFINE,
    SHAPES,
    assert_same,
    exact_items,
    make_primitive,
    reduce_reference,
    scan_reference,
)

pytestmark = pytest.mark.thin(1)

GUARD = np.uint32(0xDEADBEEF)
SMALL = SHAPES["small"]
PRIMITIVES = ("vector_add", "reduce", "scan", "exclusive scan", "lookback")


def _make(device, name, **more):
    options = {**SMALL, "subgroups": "none", **more}
    if name == "vector_add":
        return make_primitive(gw.VectorAdd, device, "u32", **SMALL, **more)
    if name == "reduce":
        return make_primitive(gw.Reduce, device, "u32", AFFINE, **options)
    kind = "exclusive" if name == "exclusive scan" else "inclusive"
    strategy = "lookback" if name == "lookback" else "reduce_then_scan"
    return make_primitive(gw.Scan, device, "u32", AFFINE, kind, strategy=strategy, state="u32x2", **options)


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


OFFSETS = [(0, 0), (0, 1), (1, 0), (2, 3), (4, 4), (0, 8), (5, 12), (33, 66)]


@pytest.mark.parametrize(("offset", "output_offset"), OFFSETS)
@pytest.mark.parametrize("name", PRIMITIVES)
def test_views_at_any_offset_write_nothing_else(device, name, offset, output_offset):
    primitive = _make(device, name)
    for n in (1, 2, 3, 4, 6, 63, 64, 65, 130, 1001):
        x = exact_items("affine", "u32", n)
        output = _view(device, np.full(_length(name, n), GUARD), output_offset)
        primitive.execute(**_inputs(name, _view(device, x, offset)), output=output)
        assert_same(output.to_numpy(), _want(name, x), f"n={n}")
        _assert_guards(output, f"n={n}")


@pytest.mark.parametrize("offsets", [(0, 1, 2), (4, 8, 3), (1, 0, 0), (3, 5, 4)])
def test_the_inputs_of_an_addition_at_offsets_of_their_own(device, offsets):
    add = _make(device, "vector_add")
    a, b = (exact_items("add", "u32", 777, seed) for seed in (1, 2))
    output = _view(device, np.full(777, GUARD), offsets[2])
    add.execute(a=_view(device, a, offsets[0]), b=_view(device, b, offsets[1]), output=output)
    assert_same(output.to_numpy(), a + b)
    _assert_guards(output, "")


@pytest.mark.parametrize("gap", [0, 1, 4])
@pytest.mark.parametrize("output_first", [False, True], ids=["input first", "output first"])
@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_two_views_of_one_buffer(device, name, start, output_first, gap):
    primitive = _make(device, name)
    for n in (5, 64, 67, 1000):
        x = exact_items("affine", "u32", n)
        size = _length(name, n)
        first, second = (size, n) if output_first else (n, size)
        whole = np.full(start + first + gap + second + 8, GUARD)
        places = [slice(start, start + first), slice(start + first + gap, start + first + gap + second)]
        output_at, input_at = places if output_first else places[::-1]
        whole[input_at] = x
        array = gw.asarray(whole, device)
        primitive.execute(**_inputs(name, array[input_at]), output=array[output_at])
        whole[output_at] = _want(name, x)
        assert_same(array.to_numpy(), whole, f"n={n}")


@pytest.mark.parametrize("starts", [(0, 1000, 2000), (2000, 1, 1001), (1004, 0, 2040), (0, 0, 1000), (3, 4, 1500)])
def test_all_arguments_of_an_addition_in_one_buffer(device, starts):
    n = 990
    whole = exact_items("add", "u32", 3100)
    array = gw.asarray(whole, device)
    a, b, output = (slice(start, start + n) for start in starts)
    _make(device, "vector_add").execute(a=array[a], b=array[b], output=array[output])
    whole[output] = whole[a] + whole[b]
    assert_same(array.to_numpy(), whole)


@pytest.mark.parametrize("offset", [0, 1, 4])
@pytest.mark.parametrize("n", [1, 5, 64, 65, 5000])
@pytest.mark.parametrize("name", ["vector_add", "scan", "exclusive scan"])
def test_in_place(device, name, n, offset):
    x = exact_items("affine", "u32", n)
    view = _view(device, x, offset)
    _make(device, name).execute(**_inputs(name, view), output=view)
    assert_same(view.to_numpy(), _want(name, x))
    _assert_guards(view, "")


@pytest.mark.parametrize("which", ["a", "b"])
def test_an_addition_into_one_of_its_inputs(device, which):
    a, b = (exact_items("add", "u32", 1001, seed) for seed in (1, 2))
    arrays = {"a": gw.asarray(a, device), "b": gw.asarray(b, device)}
    _make(device, "vector_add").execute(**arrays, output=arrays[which])
    assert_same(arrays[which].to_numpy(), a + b)
    other = "b" if which == "a" else "a"
    assert_same(arrays[other].to_numpy(), {"a": a, "b": b}[other])


@pytest.mark.parametrize("place", [0, 1, 500, 5000])
@pytest.mark.parametrize("n", [200, 5001])
def test_a_reduction_into_its_own_input(device, n, place):
    place = min(place, n - 1)
    x = exact_items("affine", "u32", n)
    array = gw.asarray(x, device)
    _make(device, "reduce").execute(input=array, output=array[place : place + 1])
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


@pytest.mark.parametrize("shift", [-64, -1, 1, 63])
@pytest.mark.parametrize("name", ["vector_add", "scan", "lookback"])
def test_views_that_overlap_in_part_are_refused_and_nothing_changes(device, name, shift):
    whole = exact_items("affine", "u32", 400)
    array = gw.asarray(whole, device)
    with pytest.raises(gw.OverlapError, match=rf"items {100 + shift} to {200 + shift}.*items 100 to 200"):
        _make(device, name).execute(**_inputs(name, array[100:200]), output=array[100 + shift : 200 + shift])
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


@pytest.mark.parametrize("size", [4, 8, 12, 16, 20, 28, 36, 100, 252, 260, 4004])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_raw_buffers_of_sizes_that_are_no_multiple_of_16(device, name, size):
    x = exact_items("affine", "u32", size // 4)
    raw = device.create_buffer_with_data(data=x, usage=USAGE)
    output = device.create_buffer(size=4 * _length(name, x.size), usage=USAGE)
    run = _make(device, name).execute(**_inputs(name, raw), output=output)
    assert run.output.buffer is output
    assert_same(run.output.to_numpy(), _want(name, x))


@pytest.mark.parametrize("size", [5, 18, 21, 66, 259])
def test_raw_buffers_of_sizes_that_are_no_multiple_of_4(device, size):
    n = size // 4
    raw, output = (device.create_buffer(size=size, usage=USAGE) for _ in "io")
    x = exact_items("affine", "u32", n)
    device.queue.write_buffer(raw, 0, x)
    run = _make(device, "scan").execute(input=raw, output=output)
    assert_same(run.output.to_numpy(), scan_reference("affine", x))


@pytest.mark.parametrize("offset", [0, 1, 2, 5, 8])
def test_a_view_that_ends_with_its_raw_buffer(device, offset):
    for size in (9, 10, 11, 67, 1001):
        x = exact_items("affine", "u32", size)
        raw = device.create_buffer_with_data(data=x, usage=USAGE)
        got = _make(device, "scan").execute(input=gw.Array(raw, "u32", offset=offset)).output.to_numpy()
        assert_same(got, scan_reference("affine", x[offset:]), f"{size} items")


@pytest.mark.parametrize("dtype", ["i32", "f32"])
def test_raw_buffers_are_seen_through_the_primitives_datatype(device, dtype):
    x = exact_items("add", dtype, 99)
    raw = device.create_buffer_with_data(data=x, usage=USAGE)
    run = make_primitive(gw.Scan, device, dtype, **SMALL, subgroups="none").execute(input=raw)
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


@pytest.mark.parametrize("limit", [4096, 4092, 4084], ids="{} bytes".format)
@pytest.mark.parametrize("name", PRIMITIVES)
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


@pytest.mark.parametrize("name", PRIMITIVES)
def test_one_item_more_than_a_binding_reaches_takes_another_window(device, name):
    primitive = _make(device, name, capabilities=_with_binding_limit(device, 4092))
    x = gw.asarray(np.arange(1025, dtype=np.uint32), device)
    # One item too many; and as many as fit, but from between two places where a binding can start.
    for view, windows in ((x[:1024], 2), (x[1:1024], 2), (x[1:1023], 1)):
        run = primitive.execute(**_inputs(name, view))
        assert run.plan.parameters["windows"] == windows
        assert_same(run.output.to_numpy(), _want(name, view.to_numpy()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reduce", "scan"])
def test_the_real_limit_of_a_binding(device, name):
    """From the second place where a binding can start; where a binding can be larger than 128 MiB, that much."""
    limits = gw.capabilities(device).limits
    n = min(limits["max-storage-buffer-binding-size"], 1 << 27) // 4
    step = limits["min-storage-buffer-offset-alignment"] // 4
    buffer = device.create_buffer(size=4 * (n + step), usage=USAGE)
    x = np.arange(n, dtype=np.uint32) * np.uint32(2654435761)
    view = gw.Array(buffer, "u32", n, step).copy_from(x)
    want = np.cumsum(x, dtype=np.uint32)
    if name == "reduce":
        assert_same(gw.Reduce(device, "u32").execute(input=view).output.to_numpy(), want[-1:])
    else:
        assert_same(gw.Scan(device, "u32").execute(input=view).output.to_numpy(), want)
    buffer.destroy()


@pytest.mark.parametrize("vecs", [1, 2, 4])
def test_the_last_tile_writes_nothing_behind_the_output(device, vecs):
    """Whatever its shape: what lies behind is somebody else's."""
    tile = 4 * 64 * vecs
    add = gw.VectorAdd(device, "u32", tuning=gw.ElementwiseTuning(workgroup_size=64, vecs=vecs))
    for n in (1, tile // vecs, tile // vecs + 1, tile - 1, tile, tile + 1, 2 * tile - 4):
        a, b = np.arange(n, dtype=np.uint32), np.arange(n, dtype=np.uint32) * 7
        whole = gw.asarray(np.full(4 * tile, 123, dtype=np.uint32), device)
        add.execute(a=gw.asarray(a, device), b=gw.asarray(b, device), output=whole[:n])
        np.testing.assert_array_equal(whole.to_numpy()[:n], a + b)
        assert (whole.to_numpy()[n:] == 123).all(), n
