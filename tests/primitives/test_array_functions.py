"""Arrays made, converted, copied, filled, gathered and broadcast on the GPU, compared with numpy."""

from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.primitives.convert import Convert
from gridwise_py.primitives.fill import Fill
from gridwise_py.primitives.take import Take
from gridwise_py.runtime import host_items
from gridwise_py.runtime.host_items import cast_items, extremes
from helpers.bare import device_with
from helpers.cases import CPU, FULL, TakeInParts
from helpers.strategies import quick_first

NAMES = list(gw.STORAGE_DATATYPES)
#: One of each size, for what is done with words and not with numbers.
OF_EACH_SIZE = ("u8", "f16", "i32", "f64")
#: Of the 144 conversions those between all sizes and kinds; `test_astype_gives_numpys_results_for_every_pair` has all.
CONVERSIONS = "f32-u8 f32-i64 f32-f16 f32-bool f64-f32 f16-i32 i64-f32 u64-f64 i8-u16"


def _dtype(name):
    return gw.STORAGE_DATATYPES[name].dtype


def _random(name, n, seed=0):
    """Random bits, and what is special about the datatype."""
    dtype, rng = _dtype(name), np.random.default_rng(seed)
    bits = rng.integers(0, 256, n * dtype.itemsize, dtype=np.uint8)
    if name == "bool":
        return (bits & 1).astype(bool)
    items = bits.view(dtype)
    if dtype.kind == "f":
        special = [
            0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, 5.96e-8, 2.98e-8, 2.9802322e-8, 1e-8, 1.4e-45,
            7e-46, 0.5, -0.5, 1.5, -1.5, 255, 256, -1, -128.9, 2049, 16777217, 3.4028235e38, 3.4028236e38,
        ]  # fmt: skip
        near = rng.normal(size=n) * 10.0 ** rng.integers(-9, 10, n)
        with np.errstate(all="ignore"):
            return np.concatenate([items, near.astype(dtype), np.array(special).astype(dtype)])
    small = items >> rng.integers(0, 8 * dtype.itemsize, n).astype(dtype)
    info = np.iinfo(dtype)
    return np.concatenate([items, small, np.array([0, 1, info.min, info.max], dtype)])


def _same(array, expected):
    assert (array.shape, array.dtype) == (np.shape(expected), expected.dtype)
    found = array.to_numpy() if isinstance(array, gw.Array) else array
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes() or np.array_equal(
        found, expected, equal_nan=True
    )
    if expected.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def _check_cast(device, source, sink):
    items, dtype = _random(source, 1021), _dtype(sink)
    if items.dtype.kind == "f" and dtype.kind in "iu":
        # What numpy leaves open: floats that are too large.
        info = np.iinfo(dtype)
        with np.errstate(invalid="ignore"):
            whole = np.trunc(items.astype(np.float64))
            inside = (whole >= float(info.min)) & (whole < float(info.max) + (dtype.itemsize < 8))
        items = items[np.isfinite(items) & inside]
    x = gw.asarray(items, device)
    with np.errstate(all="ignore"):
        _same(x.astype(sink), items.astype(dtype))
        if dtype.itemsize == 1:  # whose words have neighbours
            _same(x[3:50].astype(sink), items[3:50].astype(dtype))


def test_astype_gives_numpys_results(device):
    for conversion in CONVERSIONS.split():
        _check_cast(device, *conversion.split("-"))


@pytest.mark.slow
@pytest.mark.parametrize("source", NAMES)
def test_astype_gives_numpys_results_for_every_pair(device, source):
    for sink in NAMES:
        _check_cast(device, source, sink)


def test_floats_that_no_integer_holds_wrap_and_infinities_are_0(device):
    x = gw.asarray(np.array([300.5, -1, 2.0**32 + 512, -(2.0**40), np.inf, -np.inf, np.nan], np.float32), device)
    assert x.astype("u8").tolist() == [44, 255, 0, 0, 0, 0, 0]
    assert x.astype("u32").tolist() == [300, 2**32 - 1, 512, 0, 0, 0, 0]
    assert x.astype("i64").tolist() == [300, -1, 2**32 + 512, -(2**40), 0, 0, 0]


def test_astype_keeps_the_shape_and_copies_if_asked(device):
    x = gw.asarray(np.arange(6, dtype=np.float32).reshape(2, 3), device)
    assert x.astype("f32", copy=False) is x
    copied = x.astype(np.float32)
    copied.fill(0)
    _same(x[1].astype("u8"), np.array([3, 4, 5], np.uint8))
    assert x.astype(np.float16).shape == (2, 3)
    with pytest.raises(gw.DatatypeError, match="complex64"):
        x.astype(np.complex64)


@pytest.mark.parametrize("name", OF_EACH_SIZE[:2])
def test_a_copy_of_any_view_leaves_its_neighbours_as_they_are(device, name):
    """Small items share words with others."""
    items = _random(name, 4096)[:4096]
    for first, last, to in ((0, 4096, 0), (1, 1002, 2), (3, 3, 3), (5, 6, 7), (7, 30, 1000), (2, 4001, 1)):
        x, y = gw.asarray(items, device), gw.asarray(items[::-1], device)
        expected = items[::-1].copy()
        expected[to : to + last - first] = items[first:last]
        assert y[to : to + last - first].copy_from(x[first:last]).size == last - first
        _same(y, expected)
        _same(x[first:last].copy(), items[first:last])
    x[:100].copy_from(x[1001:1101])  # within one buffer
    _same(x[:101], np.concatenate([items[1001:1101], items[100:101]]))
    with pytest.raises(gw.OverlapError):
        x[:100].copy_from(x[1:101])


@pytest.mark.parametrize("name", quick_first(["u8", "f16"], OF_EACH_SIZE))
def test_a_fill_leaves_its_neighbours_as_they_are(device, name):
    items = _random(name, 5000)[:5000]
    for value in (0, 1, -0.0 if name[0] == "f" else 1):
        for first, last in ((0, 5000), (1, 4097), (3, 4), (5, 5), (2, 4999), (4, 8)):
            x, expected = gw.asarray(items, device), items.copy()
            expected[first:last] = value
            part = x[first:last]
            assert part.fill(value) is part
            _same(x, expected)


def test_what_a_datatype_does_not_hold_is_no_fill(device):
    x = gw.zeros(3, "u8", device)
    for value in (256, -1, "1", None, [1], 1j, np.arange(2)):
        with pytest.raises(gw.DatatypeError, match=r"fill\(\): the items are of u8"):
            x.fill(value)
    assert x.fill(2.7).tolist() == [2, 2, 2]
    assert x.fill(np.int64(300)).tolist() == [44, 44, 44]
    assert gw.zeros(2, "bool", device).fill(3).tolist() == [True, True]
    assert gw.zeros(2, "f16", device).fill(1e6).tolist() == [np.inf, np.inf]


def test_a_device_in_place_of_a_datatype_is_refused(device):
    for use in (lambda: gw.empty_like(np.zeros(2), device), lambda: gw.zeros(2, device)):
        with pytest.raises(gw.ArgumentError, match="give device="):
            use()


@pytest.mark.needs("shader-f64")
def test_default_datatypes(device, monkeypatch):
    for made, expected in (
        (gw.zeros(2, device=device), np.zeros(2)),
        (gw.full(2, 1.5, device=device), np.full(2, 1.5)),
        (gw.full(2, 7, device=device), np.full(2, 7)),
        (gw.full(2, True, device=device), np.full(2, True)),
        (gw.full(2, 1 + 2j, device=device), np.full(2, np.complex64(1 + 2j))),
        (gw.full(2, np.complex64(3j), device=device), np.full(2, np.complex64(3j))),
        (gw.full(2, np.float16(2), device=device), np.full(2, np.float16(2))),
        (gw.arange(3, device=device), np.arange(3)),
        (gw.arange(3.0, device=device), np.arange(3.0)),
        (gw.empty(2, device=device).fill(0), np.zeros(2)),
    ):
        _same(made, expected)
    monkeypatch.setattr(gw.runtime.context.context_of(device), "has_float64", False)
    assert gw.zeros(2, device=device).dtype == gw.arange(2.5, device=device).dtype == np.float32
    assert gw.full(2, 1.5, device=device).dtype == np.float32
    assert gw.full(2, np.float64(1.5), device=device).dtype == np.float64
    _same(gw.arange(0, 1, 0.1, "f64", device), np.arange(0, 1, 0.1))


def test_arange_of_64_bits(device):
    for bounds in ((2**33, 2**40, 2**31 + 1), (2**62, -(2**62), -(2**53) - 12345), (-(2**63), 2**63 - 1, 2**55 + 1)):
        _same(gw.arange(*bounds, device=device), np.arange(*bounds))
    _same(gw.arange(2**63, 2**64 - 1, 2**57 + 3, "u64", device), np.arange(2**63, 2**64 - 1, 2**57 + 3, np.uint64))


def test_arange_refuses_what_numpy_refuses(device):
    with pytest.raises(gw.ArgumentError, match="step must not be 0"):
        gw.arange(0, 3, 0, device=device)
    for bounds in ((np.nan,), (0, np.inf), ("3",), (None,)):
        with pytest.raises((gw.ArgumentError, gw.DatatypeError), match=r"finite|not a number"):
            gw.arange(*bounds, device=device)
    for bounds in ((2**32, 2**32 + 5), (0, 2**35, 2**33), (0, -5, -1)):
        with pytest.raises(gw.DatatypeError, match="does not hold"):
            gw.arange(*bounds, dtype="u32", device=device)


# ---- gathers


def test_every_index_of_a_datatype_reads_within_bounds(device):
    """An index on the GPU is never checked on the host, so every value has to have a meaning."""
    name = "i64"
    info = np.iinfo(_dtype(name))
    numbers = {0, 1, 9, 10, 11, info.max, info.max - 1, info.min, info.max // 2, info.max // 3, 100, -1, -9, -10, -11}
    indices = np.array(sorted(n for n in numbers if info.min <= n <= info.max), _dtype(name))
    # In a longer array, and none of them 0: what lies behind the last one must not be taken for the first.
    x, on_gpu = gw.asarray(np.arange(5, 25, dtype=np.uint32), device)[:10], gw.asarray(indices, device)
    wrapped = [5 + int(index) % 10 for index in indices]
    assert gw.take(x, on_gpu).tolist() == x[on_gpu].tolist() == wrapped
    assert gw.take(x, on_gpu, mode="clip").tolist() == [5 + min(max(int(index), 0), 9) for index in indices]
    with pytest.raises(gw.ArgumentError, match="out of bounds for a dimension of length 10"):
        gw.take(x, on_gpu, mode="raise")


def test_items_are_chosen_by_an_argsort(device):
    x = gw.asarray(np.random.default_rng(1).permutation(1000).astype(np.float32), device)
    _same(x[gw.argsort(x)], np.arange(1000, dtype=np.float32))
    m = x.reshape(100, 10)
    _same(m[[3, -1, 3]], m.to_numpy()[[3, -1, 3]])
    _same(m[np.array([[1], [2]])], m.to_numpy()[[[1], [2]]])
    _same(x[[]], np.empty(0, np.float32))


def test_indices_that_choose_nothing_are_refused(device):
    x = gw.asarray(np.arange(6, dtype=np.float32), device)
    for use, error, message in (
        (lambda: x[[6]], gw.ArgumentError, "index 6 is out of bounds for a dimension of length 6"),
        (lambda: x[[-7]], gw.ArgumentError, "index -7"),
        (lambda: x[[0.5]], gw.DatatypeError, "float64, but must be integers"),
        (lambda: x[np.zeros(5, bool)], gw.BoundsError, r"the mask has shape \(5,\), but the Array \(6,\)"),
        (lambda: x[:0][gw.asarray(np.zeros(1, np.int32), device)], gw.BoundsError, "length 0"),
        (lambda: gw.take(x, [0], axis=1), gw.AxisError, "axis=1"),
        (lambda: gw.take(x, [0], mode="nearest"), gw.ArgumentError, "mode='nearest'"),
        (lambda: gw.take(x, [0], axis=(0,)), gw.DatatypeError, "must be one integer"),
        (lambda: gw.take(x, [0], axis=0.5), gw.DatatypeError, "must be one integer"),
    ):
        with pytest.raises(error, match=message):
            use()
    assert x[:0][gw.empty(0, "i32", device)].size == 0


@pytest.mark.parametrize(
    ("call", "n"), [(lambda x, out: gw.take(x, [0, 1], out=out), 2), (lambda x, out: gw.add(x, x[:1], out=out), 6)]
)
def test_a_wrong_out_is_refused_before_anything_is_submitted(device, monkeypatch, call, n):
    x = gw.asarray(np.arange(6, dtype=np.float32), device)
    host, long, whole = x.to_numpy(), gw.empty(n + 1, "f32", device), gw.empty(n, "c64", device)
    submitted = []
    monkeypatch.setattr(device.queue, "submit", submitted.append, raising=False)
    for items, out, error in (
        (x, long, gw.LengthError),
        (x, whole, gw.DatatypeError),
        (x, np.zeros(n, np.float32), gw.ArgumentError),
        (host, long, gw.ArgumentError),
        (host, np.zeros(n + 1, np.float32), gw.LengthError),
        (host, np.zeros(n, "M8[s]"), gw.DatatypeError),
    ):
        with pytest.raises(error, match="out "):
            call(items, out)
    assert not submitted


# ---- broadcasting


def test_a_number_is_added_in_the_datatype_of_the_array(device):
    items, number = _random("u8", 501), 3
    expected = items + number
    x = gw.asarray(items, device)
    for found in (gw.add(x, number), gw.add(number, x), gw.add(x, np.array(number, items.dtype))):
        _same(found, expected)
    _same(gw.add(x[1:], number), expected[1:])
    assert np.array_equal(gw.add(items, number, device=device), expected)
    part = x[3:400]
    assert gw.add(part, number, out=part) is part
    _same(x, np.concatenate([items[:3], expected[3:400], items[400:]]))


def test_shapes_that_do_not_broadcast_are_refused(device):
    x = gw.asarray(np.zeros((2, 3), np.float32), device)
    for other in (np.zeros(2, np.float32), np.zeros((3, 2), np.float32), np.zeros((2, 1, 2), np.float32)):
        with pytest.raises(gw.LengthError, match=r"could not be broadcast together with shapes \(2, 3\) \("):
            gw.add(x, other)
        with pytest.raises(gw.LengthError, match="could not be broadcast"):
            gw.add(x.to_numpy(), other, device=device)
    for out in (gw.empty(6, "f32", device), gw.empty((2, 3), "i32", device)):
        with pytest.raises((gw.LengthError, gw.DatatypeError), match="out "):
            gw.add(x, 1, out=out)
    with pytest.raises(gw.OverlapError):
        gw.add(x.ravel()[1:4], 1, out=x.ravel()[2:5])


def test_a_sum_of_float64_needs_a_device_that_computes_it(device):
    bare = device_with(device)
    x = gw.asarray(np.ones(3), bare)
    for call in (lambda: gw.add(x, 1), lambda: gw.add(x, x[:1]), lambda: gw.add(np.ones(3), 1, device=bare)):
        with pytest.raises(gw.DatatypeError, match=r"shader-f64.*astype\(np.float32\)"):
            call()


# ---- copies between devices, batches, limits


def test_arrays_are_copied_from_one_device_to_another(device, fresh_device):
    items = np.arange(21, dtype=np.uint8).reshape(3, 7)
    x = gw.asarray(items, device)
    y = gw.asarray(x[1:], device=fresh_device)
    assert y.device is fresh_device
    _same(y, items[1:])
    z = gw.zeros((3, 7), "u8", fresh_device)
    _same(z[:2].copy_from(x[1:]), items[1:])
    with pytest.raises(gw.DatatypeError, match="shape must be the same"):
        z.copy_from(x[1:])


def test_copies_and_fills_wait_for_their_turn_in_a_batch(device):
    x = gw.asarray(np.arange(1000, dtype=np.float32), device)
    gw.zeros(1000, "f32", device)
    with gw.batch(device):
        before = x.copy()
        x.fill(2)
        after = gw.add(x, 1)
    _same(before, np.arange(1000, dtype=np.float32))
    _same(after, np.full(1000, 3, np.float32))


def test_more_than_a_grid_and_a_binding_hold(device):
    """Of items that share words."""
    caps, name = gw.capabilities(device), "u8"
    few = {"max-compute-workgroups-per-dimension": 7, "max-storage-buffer-binding-size": 32_768}
    caps = replace(caps, limits={**caps.limits, **few})
    n = 40_001
    items = np.random.default_rng(5).integers(0, 200, n).astype(_dtype(name))
    x = gw.asarray(items, device)
    _same(Convert(device, name, "u16", capabilities=caps).execute(input=x).output, items.astype(np.uint16))
    out = gw.empty(n, name, device)
    Fill(device, name, capabilities=caps).execute(output=out, value=(65, 0))
    _same(out, np.full(n, np.array([65, 0, 0, 0], np.uint8).view(_dtype(name))[0]))
    order = np.random.default_rng(6).permutation(n).astype(np.uint32)
    gather = Take(device, name, "u32", outer=1, length=n, count=n, inner=1, clip=False, capabilities=caps)
    _same(gather.execute(input=x, indices=gw.asarray(order, device)).output, items[order])


@pytest.mark.parametrize("name", ["u8", "u16", "u32", "u64"])
def test_items_of_large_tables_are_taken_part_by_part(device, name):
    """Also where several bindings reach the table, and the last part and the last tile are not whole."""
    caps, rng, dtype = (
        replace(gw.capabilities(device), adapter_type="DiscreteGPU"),
        np.random.default_rng(6),
        _dtype(name),
    )
    narrow = replace(caps, limits={**caps.limits, "max-storage-buffer-binding-size": 8192})
    x = rng.integers(0, 200, 3001).astype(dtype)
    for length, count, limits in ((3000, 4099, caps), (1, 1500, caps), (100, 1024, caps), (3000, 2055, narrow)):
        items = gw.asarray(x, device)[1 : 1 + length]
        places = rng.integers(-2 * length, 2 * length, count).astype(np.int32)
        for indices, clip in ((places, False), (np.sort(places), True)):
            take = TakeInParts(
                device, name, "i32", outer=1, length=length, count=count, inner=1, clip=clip, capabilities=limits
            )
            run = take.execute(input=items, indices=gw.asarray(indices, device))
            assert any("run_tile" in shader.text for shader in run.plan.shaders.values())
            _same(run.output, x[1 : 1 + length].take(indices, mode="clip" if clip else "wrap"))


def test_a_table_is_taken_part_by_part_where_that_is_faster():
    """For many indices into more memory than a discrete GPU finds the pages of at once."""
    usual = {"outer": 1, "length": 1 << 22, "count": 1 << 26, "inner": 1, "capabilities": FULL}
    others = [{"capabilities": caps} for caps in (CPU, replace(FULL, adapter_type="IntegratedGPU"))]
    others += [{"length": 1 << 21}, {"length": 1 << 26}, {"count": 1 << 19}, {"inner": 2}]
    for changed in ({}, *others):
        take = Take(None, "u32", "u32", clip=True, **{**usual, **changed})
        lengths = {"input": take.length * take.inner, "indices": take.count, "output": take.count * take.inner}
        (shader,) = take.plan(gw.Layout.separate(**lengths)).shaders.values()
        assert ("run_tile" in shader.text) == (not changed), changed


@pytest.mark.parametrize("dtype", ["<u4", ">i8", "f4", "bool", "u1"])
def test_many_items_on_the_host(dtype, monkeypatch):
    """By blocks and threads, of which the last ones have fewer items."""
    monkeypatch.setattr(host_items, "_LEAST_BYTES", 0)
    monkeypatch.setattr(host_items, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(host_items, "copying_threads", lambda: 3)
    rng = np.random.default_rng(7)
    for n in (1, 8, 9, 500):
        items = rng.integers(0, 200, n).astype(dtype)
        for x in (items, items[::-3], np.stack([items, items])):
            assert extremes(x) == (x.min(), x.max())
            for other in (np.int64, np.uint16, np.float32, x.dtype):
                found, want = cast_items(x, other), x.astype(other)
                assert found.dtype == want.dtype
                np.testing.assert_array_equal(found, want)
    items = np.ones(500, np.float32)
    items[400] = np.nan
    assert np.isnan(extremes(items)).all()


@pytest.mark.slow
def test_past_65535_workgroups(device):
    n = 65_535 * 4096 + 4099
    x = gw.full(n, 7, "u8", device)
    y = gw.add(x[1:], 1)
    for array, value in ((x, 7), (y, 8), (y.astype("i8"), 8)):
        found = array.to_numpy()
        assert found.min() == found.max() == value
        del found
