"""Arrays: uploads, views, readback, and the refusal of hidden copies."""

import copy
import math
import pickle

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers import inside

DTYPES = [np.uint32, np.int32, np.float32]
USAGE = wgpu.BufferUsage


def _random(n, dtype, seed=1):
    return np.random.default_rng(seed).integers(0, 2**32, n, dtype=np.uint32).view(dtype)


def _same_bits(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))


def test_what_to_numpy_gave_is_the_callers(device):
    data = _random(1000, np.uint32)
    x = gw.asarray(data, device)
    first = x.to_numpy()
    second = x.to_numpy()
    assert first.flags.owndata
    assert first.flags.writeable
    assert not np.shares_memory(first, second)
    first[:] = 0
    _same_bits(second, data)
    data_now = data.copy()
    data[:] = 7  # the upload was a copy, too
    _same_bits(x.to_numpy(), data_now)


def test_what_is_no_number_gets_no_remedy_that_would_spoil_it(device):
    for items in (np.array(["a", "b"]), np.array(["2024-01-01"], "M8[D]"), np.array([b"x"])):
        with pytest.raises(gw.DatatypeError, match=r"u32.*i32.*f32") as caught:
            gw.asarray(items, device)
        kept = "give x.astype(np.int64), or x[~"  # of dates
        assert "x.astype(" not in str(caught.value).replace(kept, "")


def test_a_mask_is_never_lost(device):
    data = np.ma.array([1, 2, 3], mask=[False, True, False], dtype=np.uint32)
    x = gw.empty(3, "u32", device)
    for use in (
        lambda: gw.asarray(data, device),
        lambda: gw.asarray(data, device, dtype="u32"),
        lambda: gw.ChunkedArray.from_numpy(data, device=device),
        lambda: x.copy_from(data),
        lambda: gw.ChunkedArray([x]).copy_from(data),
        lambda: gw.sum(data, device=device),
        lambda: gw.sort(data, device=device),
        lambda: gw.add(data, data, device=device),
    ):
        with pytest.raises(gw.DatatypeError, match=r"masked items.*x\.filled\(0\), or x\.compressed\(\)"):
            use()
    np.testing.assert_array_equal(gw.asarray(data.compressed(), device).to_numpy(), [1, 3])
    np.testing.assert_array_equal(gw.asarray(np.ma.array([1, 2], dtype=np.uint32), device).to_numpy(), [1, 2])


@pytest.mark.parametrize(
    ("dtype", "remedy"),
    [
        (np.longdouble, r"astype.*u32.*i32.*f32"),
        (complex, r"astype\(np\.complex64\)"),
        ("M8[s]", "supported are u32.*c64"),
    ],
)
def test_an_unsupported_dtype_is_refused_with_a_remedy(device, dtype, remedy):
    with pytest.raises(gw.DatatypeError, match=remedy):
        gw.asarray(np.zeros(3, dtype=dtype), device)


def test_a_numpy_array_is_never_converted(device):
    with pytest.raises(gw.DatatypeError, match=r"int32.*u32.*astype\(numpy\.uint32\)"):
        gw.asarray(np.zeros(3, dtype=np.int32), device, dtype="u32")
    gw.asarray(np.zeros(3, dtype=np.int32), device, dtype="i32")


def test_a_tensor_of_another_library_is_never_converted(device):
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.zeros(3)

    with pytest.raises(
        gw.DatatypeError, match=r"float64, but dtype=f32.*numpy\.asarray\(data\)\.astype\(numpy\.float32\)"
    ):
        gw.asarray(Tensor(), device, dtype="f32")


@pytest.mark.parametrize(
    ("data", "dtype", "message"),
    [
        ([1.5, 2, 3], "u32", r"it has 1\.5, and it is not an integer; round first, numpy\.rint.*uint32"),
        ([1, 2, 2.25], "i64", r"2\.25.*numpy\.int64"),
        ([1.0, -1.0], "u32", "cannot be held as u32"),
        ([2.0**32], "u32", "cannot be held as u32"),
        ([1e300], "i64", "cannot be held as i64"),
        ([float("nan")], "i32", "cannot be held as i32"),
        ([2**70], "u64", "cannot be held as u64"),
        ([1e39], "f32", "beyond the largest number"),
        ([70_000.0], "f16", "beyond the largest number"),
        ([1e39 + 1j], "complex64", "beyond the largest number"),
        ([1e39], "complex64", "beyond the largest number"),
        (["7"], "u32", "'7' is str, no number"),
        ([None], "f32", "None is NoneType, no number"),
        ([1, None], "f32", "None is NoneType, no number"),
        ([1j], "f32", "cannot be held as f32"),
        ([[1], [1, 2]], "u32", "cannot be held as u32"),
    ],
)
def test_a_number_that_the_datatype_cannot_hold(device, data, dtype, message):
    with pytest.raises(gw.DatatypeError, match=message):
        gw.asarray(data, device, dtype=dtype)


def test_numbers_that_a_datatype_holds(device):
    for data, dtype in (
        ([1.0, 2.0], "u32"), ([-3.0], "i32"), ([2**64 - 1, 0], "u64"), ([True, False], "u32"), ([0.1, 3], "f32"),
        ([math.inf, -math.inf, math.nan], "f16"), ([2**24 + 1], "f32"), ([], "i32"), ((1, 2), "f64"),
        ([0.1, 3], "complex64"), ([0.1 + 0.2j, 1, math.inf], "complex64"),
    ):  # fmt: skip
        x = gw.asarray(data, device, dtype=dtype)
        np.testing.assert_array_equal(x.to_numpy(), np.array(data, dtype=x.dtype))


def test_a_list_has_the_dtype_of_numpy_or_the_one_asked_for(device):
    for data in ([1, 2, 3], range(3), 5, [True]):
        np.testing.assert_array_equal(gw.asarray(data, device).to_numpy(), np.asarray(data))
        assert gw.asarray(data, device).dtype == np.asarray(data).dtype
    x = gw.asarray([1, 2, 3], device, dtype="f32")
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x.to_numpy(), [1, 2, 3])
    np.testing.assert_array_equal(gw.asarray(range(4), device, dtype=np.int32).to_numpy(), range(4))


def test_an_array_is_returned_as_it_is(device):
    x = gw.asarray(np.zeros(3, dtype=np.uint32), device)
    assert gw.asarray(x) is x
    assert gw.asarray(x, device, dtype="u32") is x
    with pytest.raises(gw.DatatypeError, match="astype"):
        gw.asarray(x, dtype="f32")


def test_a_raw_buffer_is_viewed(device):
    data = _random(64, np.float32)
    buffer = device.create_buffer_with_data(data=data, usage=USAGE.STORAGE | USAGE.COPY_SRC)
    with pytest.raises(gw.DatatypeError, match="dtype="):
        gw.asarray(buffer)
    x = gw.asarray(buffer, dtype="f32")
    assert x.buffer is buffer
    assert x.device is device
    _same_bits(x.to_numpy(), data)
    part = gw.Array(buffer, "u32", 10, 5)
    _same_bits(part.to_numpy(), data.view(np.uint32)[5:15])
    with pytest.raises(gw.ArgumentError, match="64 items"):
        gw.Array(buffer, "u32", 60, 5)
    with pytest.raises(gw.ArgumentError, match="64 items"):
        gw.Array(buffer, "u32", None, 65)
    with pytest.raises(gw.ArgumentError, match="offset must be an integer of at least 0, not -1"):
        gw.Array(buffer, "u32", 1, -1)
    with pytest.raises(gw.DatatypeError, match="GPUBuffer"):
        gw.Array(data, "u32")


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64])
def test_numpys_integers_do_not_wrap(device, kind):
    """An offset in bytes, or the end of a view, is beyond the range of the type that the caller had."""
    data = np.arange(1000, dtype=np.uint32)
    x = gw.asarray(data, device)
    view = gw.Array(x.buffer, "u32", kind(100), kind(120))
    assert (type(view.size), type(view.offset)) == (int, int)
    np.testing.assert_array_equal(view.to_numpy(), data[120:220])
    view[kind(2) : kind(4)].copy_from(np.array([7, 7], dtype=np.uint32))
    data[122:124] = 7
    np.testing.assert_array_equal(x.to_numpy(), data)
    np.testing.assert_array_equal(
        gw.cumsum(view, dtype=np.uint32).to_numpy(), np.cumsum(data[120:220], dtype=np.uint32)
    )
    chunks = gw.ChunkedArray.empty(kind(120), "u32", device, chunk_items=kind(100))
    assert [chunk.size for chunk in chunks.chunks] == [100, 20]
    assert view.item(kind(2)) == 7
    with pytest.raises(gw.ArgumentError, match="items 65000 to 65600 do not lie in a buffer of 1024 items"):
        gw.Array(x.buffer, "u32", np.uint16(600), np.uint16(65_000))


@pytest.mark.parametrize("value", [2.0, np.float32(2), "2", True, None])
def test_what_is_no_integer_is_no_place(device, value):
    x = gw.empty(10, "u32", device)
    with pytest.raises(gw.ArgumentError, match="offset must be an integer of at least 0"):
        gw.Array(x.buffer, "u32", 2, value)
    if value is not None:  # the rest of the buffer
        with pytest.raises(gw.ArgumentError, match="length must be an integer of at least 0"):
            gw.Array(x.buffer, "u32", value)
    if not isinstance(value, bool) and value is not None:  # as numpy: True is 1
        with pytest.raises(gw.DatatypeError, match="cannot be sliced by"):
            x[value:5]
    with pytest.raises(gw.ArgumentError, match="n must be an integer of at least 0"):
        gw.ChunkedArray.empty(value, "u32", device)


def test_copy_from(device):
    x = gw.empty(8, "u32", device).copy_from(np.arange(8, dtype=np.uint32))
    x[2:5].copy_from(np.array([9, 9, 9], dtype=np.uint32)[::-1])
    np.testing.assert_array_equal(x.to_numpy(), [0, 1, 9, 9, 9, 5, 6, 7])
    assert x[:0].copy_from(np.zeros(0, dtype=np.uint32)).size == 0
    for wrong in (np.zeros(8, np.int32), np.zeros(7, np.uint32), np.zeros((2, 4), np.uint32), 5):
        with pytest.raises(gw.ArgumentError, match="uint32 and shape"):
            x.copy_from(wrong)
    np.testing.assert_array_equal(x.to_numpy(), [0, 1, 9, 9, 9, 5, 6, 7])


def test_copy_from_an_array_stays_on_the_gpu(device, monkeypatch):
    data = np.arange(100, dtype=np.float32)
    x, y = gw.asarray(data, device), gw.asarray(np.zeros(100, np.float32), device)
    with monkeypatch.context() as patch:
        inside.refuse_downloads(patch)
        assert y.copy_from(x) is y
        y[50:60].copy_from(x[:10])
        y[:0].copy_from(x[:0])
    data[50:60] = data[:10]
    np.testing.assert_array_equal(y.to_numpy(), data)


def test_an_array_that_cannot_be_copied_as_it_is_names_what_can(device):
    x = gw.empty(8, "u32", device)
    for use, error, message in (
        (lambda: x.copy_from(gw.empty(7, "u32", device)), gw.DatatypeError, "datatype and shape must be the same"),
        (lambda: x.copy_from(gw.empty(8, "f32", device)), gw.DatatypeError, "datatype and shape must be the same"),
        (lambda: x[:3].copy_from(x[2:5]), gw.OverlapError, "overlaps"),
        (lambda: x.copy_from(gw.ChunkedArray([x])), gw.DatatypeError, r"Copy\(x\.device, 'u32'\)"),
        (lambda: gw.ChunkedArray([x]).copy_from(x), gw.DatatypeError, r"Copy\(x\.device, 'u32'\)"),
    ):
        with pytest.raises(error, match=message):
            use()
    gone = gw.empty(8, "u32", device)
    gone.destroy()
    for use in (lambda: x.copy_from(gone), lambda: gone.copy_from(x)):
        with pytest.raises(gw.BufferUsageError, match="destroyed"):
            use()


@pytest.mark.parametrize("datatype", ["u32", "f64", "f16"])
def test_one_item(device, datatype):
    dtype = gw.empty(1, datatype, device).dtype
    data = np.arange(7).astype(dtype)
    x = gw.asarray(data, device)
    for i in (0, 3, -1, -7):
        assert x.item(i) == data.item(i)
        assert type(x.item(i)) is type(data.item(i))
    assert x[-1:].item() == data.item(-1)
    assert gw.ChunkedArray([x[:2], x[2:]]).item(3) == data.item(3)
    assert x.tolist() == data.tolist()
    assert x[:0].tolist() == []


def test_an_item_that_is_not_there(device):
    x = gw.asarray(np.arange(5, dtype=np.uint32), device)
    for array in (x, x[:0], gw.ChunkedArray([x])):
        with pytest.raises(gw.ArgumentError, match=r"say which: item\(0\) is the first"):
            array.item()
    for index in (5, -6, 1.0, "0"):
        with pytest.raises(gw.ArgumentError, match="index"):
            x.item(index)
    with pytest.raises(gw.ArgumentError, match="index 0 is not in"):
        x[:0].item(0)


def test_a_refused_conversion_names_the_cheapest_way(device):
    x = gw.asarray(np.arange(5, dtype=np.uint32), device)
    for use, message in (
        (lambda: float(x[:1]), r"call \.item\(\)$"),
        (lambda: int(gw.sum(x)), r"call \.item\(\)$"),
        (lambda: float(x), r"it has 5 items: call \.item\(0\) for the first, or \.to_numpy\(\)"),
        (lambda: float(x[-1]), r"call \.item\(\)$"),
        (lambda: gw.ChunkedArray([x])[-1], r"array\.item\(-1\).*array\[-1:\] is a view"),
        (lambda: gw.ChunkedArray([x])[np.int64(3)], r"array\.item\(3\).*array\[3:4\] is a view"),
        (lambda: np.from_dlpack(x), r"no DLPack.*torch\.from_numpy\(x\.to_numpy\(\)\)"),
        (lambda: x.__dlpack__(stream=None), r"no DLPack"),
    ):
        with pytest.raises(gw.ImplicitConversionError, match=message):
            use()


def test_an_array_is_not_pickled_or_deep_copied(device):
    x = gw.asarray(np.arange(5, dtype=np.uint32), device)
    for array in (x, gw.ChunkedArray([x])):
        for use in (copy.deepcopy, pickle.dumps, lambda a: copy.deepcopy({"a": [a]})):
            with pytest.raises(
                gw.ImplicitConversionError, match=r"neither pickled nor deep-copied.*x\.to_numpy\(\).*[cC]opy\("
            ):
                use(array)
    again = copy.copy(x)  # a view, as a slice is
    x[:1].copy_from(np.array([9], dtype=np.uint32))
    assert again is not x
    assert again.tolist() == copy.copy(gw.ChunkedArray([x])).tolist() == [9, 1, 2, 3, 4]


def test_what_belongs_to_a_device_is_not_pickled_or_deep_copied(device):
    x = gw.asarray(np.arange(5, dtype=np.uint32), device)
    scan = gw.Scan(device, "u32")
    with gw.capture(device) as sequence:
        scan.execute(input=x)
    for value, remedy in (
        (scan, "construct another one"),
        (gw.ArgSort(device, "u32"), "construct another one"),
        (gw.Map(device, gw.u32("x") + 1), "construct another one"),
        (scan.bind(input=x), r"primitive\.bind"),
        (gw.Event(device, enable_timing=False), "elapsed_time"),
        (sequence, r"gw\.capture\(\)"),
        (scan.execute(input=x), r"to_numpy\(\)"),
        (gw.pinned_empty(4, "u32", "up", device), r"gw\.pinned_empty\(\)"),
    ):
        for use in (copy.deepcopy, pickle.dumps, lambda each: copy.deepcopy([each])):
            with pytest.raises(gw.DatatypeError, match=f"neither pickled nor deep-copied; .*{remedy}"):
                use(value)
        assert type(copy.copy(value)) is type(value)
    run = copy.copy(copy.copy(scan).execute(input=x))
    assert run.output.tolist() == [0, 1, 3, 6, 10]


def test_implicit_conversion_is_refused_with_the_remedy(device):
    x = gw.asarray(np.arange(3, dtype=np.uint32), device)
    for convert in (
        np.asarray, np.array, np.sum, np.sin, list, tuple, iter, float, int, complex, bool, math.sqrt,
        lambda x: np.asarray(x, dtype=np.float32), lambda x: np.concatenate([x, x]), lambda x: np.add(x, 1),
        lambda x: np.zeros(3, np.uint32) + x, lambda x: 3 in x,
    ):  # fmt: skip
        with pytest.raises(gw.ImplicitConversionError, match="to_numpy"):
            convert(x)


def test_a_destroyed_array_is_refused(device):
    x = gw.asarray(np.arange(5, dtype=np.uint32), device)
    view = x[1:3]
    x.destroy()
    x.destroy()  # twice does no harm
    for use in (x.to_numpy, view.to_numpy, lambda: x.copy_from(np.zeros(5, dtype=np.uint32))):
        with pytest.raises(gw.BufferUsageError, match=r"destroyed.*make a new Array"):
            use()


def test_a_mapped_buffer_is_refused(device):
    buffer = device.create_buffer(size=64, usage=USAGE.COPY_SRC | USAGE.COPY_DST, mapped_at_creation=True)
    x = gw.asarray(buffer, dtype="u32")
    for use in (x.to_numpy, lambda: x.copy_from(np.zeros(16, dtype=np.uint32))):
        with pytest.raises(gw.BufferUsageError, match=r"mapped.*unmap\(\)"):
            use()
    buffer.unmap()
    assert x.to_numpy().size == 16


def test_a_missing_usage_is_named(device):
    x = gw.asarray(device.create_buffer(size=64, usage=USAGE.STORAGE), dtype="u32")
    with pytest.raises(gw.BufferUsageError, match=r"COPY_SRC.*usage=wgpu\.BufferUsage\.COPY_SRC"):
        x.to_numpy()
    with pytest.raises(gw.BufferUsageError, match="COPY_DST"):
        x.copy_from(np.zeros(16, dtype=np.uint32))


def test_repr_says_what_is_where_and_reads_nothing(device, monkeypatch):
    inside.refuse_downloads(monkeypatch)
    where = device.adapter.info["device"]
    x = gw.asarray(np.arange(5, dtype=np.float32), device)
    assert repr(x) == f"Array(f32, 5 items, on {where})"
    assert repr(x[2:]) == f"Array(f32, 3 items, offset=2, on {where})"
    assert repr(x[:1]) == f"Array(f32, 1 item, on {where})"
    weights = gw.empty(4, "u32", device, label="weights")
    assert repr(weights) == f"Array(u32, 4 items, label='weights', on {where})"
    weights.destroy()
    assert repr(weights) == f"Array(u32, 4 items, label='weights', on {where}, destroyed)"
