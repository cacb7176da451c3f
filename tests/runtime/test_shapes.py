"""Shapes of Arrays: views, uploads and downloads, and what primitives make of them."""

import copy
import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices

import gridwise_py as gw

SHAPES = [(), (0,), (1,), (7,), (2, 3), (1, 1), (0, 3), (3, 0, 2), (2, 3, 5), (1, 2, 1, 3, 1)]


def _items(shape, dtype=np.uint32):
    return np.arange(7, 7 + int(np.prod(shape))).astype(dtype).reshape(shape)


def _same(array, expected):
    assert (array.shape, array.ndim, array.size, array.nbytes) == (
        expected.shape, expected.ndim, expected.size, expected.nbytes,
    )  # fmt: skip
    found = array.to_numpy()
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)


def test_a_round_trip_keeps_the_shape(device):
    for shape, dtype in itertools.product(SHAPES, (np.uint32, np.float16, np.uint8)):
        data = _items(shape, dtype)
        x = gw.asarray(data, device)
        _same(x, data)
        assert x.tolist() == data.tolist()
        out = np.zeros_like(data)
        assert x.to_numpy(out) is out
        np.testing.assert_array_equal(out, data)
        if shape:
            assert len(x) == len(data)
        for like in (gw.empty_like(x), gw.empty_like(data, device=device), gw.empty(shape, dtype, device)):
            assert (like.shape, like.dtype) == (data.shape, data.dtype)
            _same(like.copy_from(data), data)
            if data.nbytes % 4 == 0:
                _same(gw.empty_like(x).copy_from(like), data)


def test_items_of_any_strides_are_uploaded_in_c_order(device):
    data = _items((6, 8))
    for view in (data.T, data[::2, 1::3], data[::-1], np.asfortranarray(data), data.astype(">u4"), data[:, :0]):
        _same(gw.asarray(view, device), np.ascontiguousarray(view).astype(np.uint32))
        _same(gw.empty(view.shape, np.uint32, device).copy_from(view), view.astype(np.uint32))
    _same(gw.asarray([[1, 2], [3, 4]], device, dtype="i32"), np.array([[1, 2], [3, 4]], np.int32))


def test_to_numpy_checks_the_shape_of_out(device):
    x = gw.asarray(_items((2, 3)), device)
    for out in (np.empty(6, np.uint32), np.empty((3, 2), np.uint32), np.empty((2, 3, 1), np.uint32)):
        with pytest.raises(gw.LengthError, match=r"has shape \(2, 3\); give np.empty\(\(2, 3\), np.uint32\)"):
            x.to_numpy(out)
    with pytest.raises(gw.ArgumentError, match="strides"):
        x.to_numpy(np.empty((3, 2), np.uint32).T)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_indexed_arrays_are_those_of_numpy(device, data):
    """By integers, slices with steps, new dimensions and an ellipsis; a part without gaps is a view."""
    shape = tuple(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3), label="shape"))
    expected = _items(shape, np.uint8)
    x = whole = gw.asarray(expected, device)
    for _ in range(data.draw(st.integers(1, 3), label="steps")):
        if data.draw(st.booleans(), label="is reshaped") and 0 not in expected.shape:
            lengths = [*expected.shape[::-1], 1]
            lengths[data.draw(st.integers(0, len(lengths) - 1))] = -1
            x, expected = x.reshape(lengths), expected.reshape(lengths)
        key = data.draw(basic_indices(expected.shape, allow_newaxis=True), label="key")
        chosen = np.asarray(expected[key])
        before, x, expected = x, x[key], np.array(chosen, order="C")
        assert (x.lease is before.lease) == chosen.flags.c_contiguous
    assert x.ravel().shape == expected.ravel().shape
    _same(x, expected)
    _same(whole, _items(shape, np.uint8))


@pytest.mark.parametrize("datatype", ["f2", "f8", "c8", [("a", "f4"), ("b", "u4")]])
def test_parts_of_items_of_any_size(device, datatype):
    items = np.arange(3 * 5 * 4).astype("u1").reshape(3, 5, 4)
    items = items.astype(datatype) if isinstance(datatype, str) else items.view("u1").astype(datatype)
    x = gw.asarray(items, device)
    for key in (np.s_[::-2, :, 1], np.s_[:, 1:4], np.s_[..., None, ::3]):
        _same(x[key], items[key])


def test_masks_and_index_arrays_choose_as_in_numpy(device):
    items = _items((3, 4), np.float32)
    x, mask = gw.asarray(items, device), items % 3 == 1
    for key in (
        mask, mask[:, 1], [True, False, True], True, False, np.array(2), [2, 0], np.s_[:, [3, 3, -1]], np.s_[[2, 0], 1],
        np.s_[1, [3, 0]], np.s_[:, None, [[1], [2]]], np.s_[[[0], [1]], ..., ::2], [],
    ):  # fmt: skip
        _same(x[key], items[key])
    for key in (gw.asarray(mask, device), x % 3 == 1):
        found = x[key]
        assert found.count is not None, "the GPU has counted it"
        _same(found.trim(), items[mask])
    _same(x.ravel()[x.ravel() > 5].trim(), items[items > 5])
    for key, error, message in (
        (gw.asarray(mask[:, 0], device), gw.ArgumentError, r"gw\.flatnonzero\(condition\)\.trim\(\)"),
        (np.s_[[0], [1]], gw.ArgumentError, r"one index array.*x\.ravel\(\)\[i \* x\.shape\[1\] \+ j\]"),
        (np.s_[mask[:, 0], 0], gw.ArgumentError, r"a mask is alone.*gw\.flatnonzero\(mask\)"),
        (mask[:2], IndexError, r"mask has shape \(2, 4\), but the Array \(3, 4\)"),
    ):
        with pytest.raises(error, match=message):
            x[key]
    with pytest.raises(gw.ArgumentError, match="index step by step"):
        x[None][0, :, [1]]


def test_views_share_the_buffer(device):
    x = gw.empty((4, 5), "u32", device)
    x.copy_from(np.zeros((4, 5), np.uint32))
    x[1].copy_from(np.arange(5, dtype=np.uint32))
    x[2:].reshape(-1)[1:3].copy_from(np.array([8, 9], np.uint32))
    expected = np.zeros((4, 5), np.uint32)
    expected[1] = range(5)
    expected[2, 1:3] = 8, 9
    _same(x, expected)
    _same(copy.copy(x), expected)
    assert copy.copy(x).buffer is x.buffer


def test_an_item_is_that_of_numpy(device):
    for index in ((), (0,), (1, 2), (-1,), (5,), (-1, -3), (np.int64(1), 0)):
        data = _items((2, 3))[:1, :1] if index == () else _items((2, 3))
        assert gw.asarray(data, device).item(*index) == data.item(*index)


def test_an_item_that_is_not_there_is_refused(device):
    x = gw.asarray(_items((2, 3)), device)
    for index, message in (((6,), "index 6"), ((-7,), "x -7"), ((0, 3), "3 items"), ((0, 0, 0), r"got 3 .*\(2, 3\)")):
        with pytest.raises(gw.ArgumentError, match=message):
            x.item(*index)


def test_a_tuple_of_one_is_that_one(device):
    """Code that makes indices for arrays of any number of dimensions gives tuples."""
    for shape in ((5,), (5, 3)):
        items = _items(shape)
        x = gw.asarray(items, device)
        for key in (slice(1, 3), slice(None, -1), [2, 0], np.array([4]), *([3] if len(shape) > 1 else [])):
            np.testing.assert_array_equal(x[(key,)].to_numpy(), items[(key,)])
    np.testing.assert_array_equal(gw.ChunkedArray([x.ravel()])[(slice(1, 3),)].to_numpy(), items.ravel()[1:3])
    counted = x.ravel().counted_by(gw.asarray(np.array([2], np.uint32), device))
    np.testing.assert_array_equal(counted[(slice(9),)].to_numpy(), items.ravel()[:2])


def test_what_is_no_index_is_refused_with_what_is(device):
    x = gw.asarray(_items((2, 3, 4)), device)
    for key, error in (
        (1.0, IndexError), ("x", IndexError), ((0, True), IndexError), (2, IndexError), ((0, -4), IndexError),
        ((0, 0, 0, 0), IndexError), ((..., 0, ...), IndexError), (slice("a"), TypeError), (np.s_[0, ::0], ValueError),
    ):  # fmt: skip
        with pytest.raises(error) as raised:
            x[key]
        assert isinstance(raised.value, gw.ArgumentError)
    for key in (0, slice(2), slice(None), [1, 2]):
        with pytest.raises(TypeError, match=r"copy_from\(items\).*fill\(value\).*gw\.put\("):
            x[key] = 1
    with pytest.raises(gw.ArgumentError, match="not assigned"):
        x[:1] += 1
    one = gw.asarray(np.float32(3), device)
    with pytest.raises(gw.BoundsError, match="has 0 dimensions"):
        one[0]
    with pytest.raises(TypeError, match=r"shape \(\)"):
        len(one)
    assert one.item() == 3
    assert one.reshape(1)[0:1].item() == 3
    with pytest.raises(gw.ImplicitConversionError, match=r"call \.item\(\)"):
        float(one)


def test_a_shape_of_another_size_is_refused(device):
    x = gw.asarray(_items((2, 3)), device)
    for shape in ((4,), (2, 2), (-1, 4), (0, -1), (), (2, 3, 0)):
        with pytest.raises(gw.LengthError, match=r"6 items, shape \(2, 3\)"):
            x.reshape(shape)
    for shape in ((-1, -1), (-2, 3), (2.0, 3), ("6",)):
        with pytest.raises(gw.ArgumentError):
            x.reshape(*shape)
    for shape in (-1, (2, -1), (3.0,), "3", None, (True, 2)):
        with pytest.raises(gw.ArgumentError, match="integer of at least 0"):
            gw.empty(shape, device=device)


def test_a_counted_array_has_one_dimension(device):
    count = gw.asarray(np.array([2], np.uint32), device)
    x = gw.asarray(_items((6,)), device).counted_by(count)
    with pytest.raises(gw.ArgumentError, match=r"trim\(\)"):
        x.reshape(2, 3)
    assert x.trim().reshape(2, 1).shape == (2, 1)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 4), (2, 1, 3)])
def test_primitives_that_work_item_by_item_keep_the_shape(device, shape):
    data = _items(shape, np.int32)
    x = gw.asarray(data, device)
    calls = {
        gw.Copy(device, "i32"): ({"input": x}, data),
        gw.Map(device, "i32", "negate"): ({"input": x}, -data),
        gw.VectorAdd(device, "i32"): ({"a": x, "b": x}, data + data),
    }
    for primitive, (arrays, expected) in calls.items():
        for _ in range(3):  # checked, and known afterwards
            _same(primitive.execute(**arrays).output, expected)
        # As many items in another shape are another call.
        flat = {name: array.ravel() for name, array in arrays.items()}
        _same(primitive.execute(**flat).output, expected.ravel())
        _same(primitive.execute(**arrays).output, expected)
        out = gw.empty(shape, "i32", device)
        assert primitive.execute(**arrays, output=out).output is out
        _same(out, expected)


def test_shapes_that_differ_are_refused(device):
    a, b = gw.empty((2, 3), "u32", device), gw.empty((3, 2), "u32", device)
    add = gw.VectorAdd(device, "u32")
    with pytest.raises(gw.LengthError, match=r"b has shape \(3, 2\), but a has \(2, 3\); give b.reshape\(a.shape\)"):
        add.execute(a=a, b=b)
    for out in (b, gw.empty(6, "u32", device), gw.empty(7, "u32", device), gw.empty((3, 3), "u32", device)):
        with pytest.raises(gw.LengthError, match="output has shape"):
            add.execute(a=a, b=a, output=out)
    with pytest.raises(gw.LengthError, match="output has shape"):
        add.execute(a=a.ravel(), b=a.ravel(), output=b)
    with pytest.raises(gw.ArgumentError, match=r"a ChunkedArray has one dimension; give chunk.ravel\(\)"):
        gw.ChunkedArray([a])


@pytest.mark.parametrize("primitive", [gw.Scan, gw.Sort, gw.ArgSort])
def test_primitives_along_one_dimension_refuse_others(device, primitive):
    made = primitive(device, "u32")
    for shape in ((2, 3), (6, 1), ()):
        x = gw.empty(shape, "u32", device)
        with pytest.raises(gw.ArgumentError, match=r"works along one dimension; .*input\.ravel\(\)"):
            made.execute(input=x)
        with pytest.raises(gw.ArgumentError, match=r"works along one dimension; .*output\.ravel\(\)"):
            made.execute(input=x.ravel(), output=gw.empty(shape, "u32", device))


def test_primitives_that_flatten(device):
    for shape in ((), (7,), (2, 3), (2, 3, 4)):
        x = gw.asarray(_items(shape, np.float32), device)
        for out in (gw.empty((), "f32", device), gw.empty(1, "f32", device)):
            assert gw.max(x, out=out) is out
            assert out.item() == x.to_numpy().max()
        assert gw.Reduce(device, "f32").execute(input=x).output.shape == (1,)
        if shape != (7,):
            with pytest.raises(gw.LengthError, match="out has shape"):
                gw.cumsum(x, out=gw.empty(shape, "f32", device))


def test_a_kernel_of_ones_own_takes_any_shape(device):
    wgsl = """
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
      if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] + 1u; }
    }
    """
    kernel = gw.Kernel(device, wgsl, {"x": "read", "y": "read_write"}, workgroups=1)
    data = _items((2, 3))
    out = gw.empty((2, 3), "u32", device)
    kernel.execute(x=gw.asarray(data, device), y=out)
    _same(out, data + 1)


# ---- other datatypes


@pytest.mark.parametrize(
    ("shape", "datatype", "other"),
    [((6,), "u32", "u64"), ((3,), "u64", "u32"), ((2, 4), "u32", "u64"), ((2, 3), "f64", "u8"), ((5,), "f32", "i32"),
     ((2, 8), "u8", "f64"), ((4,), "u16", "f32"), ((0,), "u32", "u64"), ((3, 2), "f32", "c64")],
)  # fmt: skip
def test_a_view_as_another_datatype_is_numpys(device, shape, datatype, other):
    items = np.random.default_rng(0).integers(0, 256, (*shape, gw.STORAGE_DATATYPES[datatype].itemsize_bytes))
    items = items.astype(np.uint8).view(gw.STORAGE_DATATYPES[datatype].dtype)[..., 0]
    dtype = np.dtype(np.complex64) if other == "c64" else gw.STORAGE_DATATYPES[other].dtype
    array = gw.asarray(items, device)
    got, wanted = array.view(other), items.view(dtype)
    assert got.buffer is array.buffer
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    assert got.to_numpy().tobytes() == items.tobytes()
    again = got.view(datatype)
    assert (again.shape, again.to_numpy().tobytes()) == (items.shape, items.tobytes())


def test_a_view_of_a_view_begins_where_it_does(device):
    words = np.arange(20, dtype=np.uint32)
    part = gw.asarray(words, device)[2:12]
    np.testing.assert_array_equal(part.view(np.uint64)[1:].to_numpy(), words[4:12].view(np.uint64))
    np.testing.assert_array_equal(gw.sort(part.view("u64")).to_numpy(), np.sort(words[2:12].view(np.uint64)))


def test_a_view_with_parts_of_items_is_refused(device):
    words = gw.asarray(np.arange(20, dtype=np.uint32), device)
    with pytest.raises(gw.LengthError, match=r"has 12 bytes and it begins at byte 0 .* multiples of 8"):
        words[:3].view("u64")
    with pytest.raises(gw.LengthError, match="begins at byte 4 "):
        words[1:5].view("u64")
    with pytest.raises(gw.LengthError, match=r"reshape\(1\)"):
        gw.sum(words, dtype=np.uint32).view("u8")
    count = gw.asarray(np.array([3], dtype=np.uint32), device)
    with pytest.raises(gw.ArgumentError, match="trim"):
        words.counted_by(count).view("u64")
