"""Arrays: uploads, views, readback, and the refusal of hidden copies."""

import asyncio
import math
import operator

import numpy as np
import pytest
import wgpu
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gridwise_py as gw

DTYPES = [np.uint32, np.int32, np.float32]
USAGE = wgpu.BufferUsage


def _random(n, dtype, seed=1):
    return np.random.default_rng(seed).integers(0, 2**32, n, dtype=np.uint32).view(dtype)


def _same_bits(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 63, 64, 65, 4097, 100_003])
def test_round_trip(device, dtype, n):
    data = _random(n, dtype)
    x = gw.asarray(data, device)
    assert (len(x), x.size, x.shape, x.ndim, x.nbytes) == (n, n, (n,), 1, 4 * n)
    assert x.dtype == dtype
    assert x.device is device
    assert x.buffer.size % 16 == 0
    _same_bits(x.to_numpy(), data)


def test_to_numpy_gives_what_read_buffer_gives(device):
    x = gw.asarray(_random(70_001, np.uint32), device)
    raw = np.frombuffer(device.queue.read_buffer(x.buffer, 0, x.nbytes), dtype=np.uint32)
    _same_bits(x.to_numpy(), raw)
    view = x[13:69_999]
    raw = np.frombuffer(device.queue.read_buffer(x.buffer, view.offset_bytes, view.nbytes), dtype=np.uint32)
    _same_bits(view.to_numpy(), raw)


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
    _same_bits(x.to_numpy(), data)


def test_readback_beyond_the_staging_buffer(device):
    """More than 32 MiB comes in parts; the view begins and ends at no round place."""
    n = (66 << 20) // 4 + 3
    data = np.arange(n, dtype=np.uint32)
    x = gw.asarray(data, device)
    try:
        _same_bits(x[5 : n - 1].to_numpy(), data[5 : n - 1])
        exactly = (32 << 20) // 4
        _same_bits(x[:exactly].to_numpy(), data[:exactly])
        _same_bits(x[1 : exactly + 2].to_numpy(), data[1 : exactly + 2])
        _same_bits(x[:7].to_numpy(), data[:7])
    finally:
        x.destroy()


def test_data_of_any_memory_layout(device):
    data = _random(3000, np.float32)
    for variant in (data[::-1], data[::3], data[1:].astype(">f4").astype("<f4"), np.asfortranarray(data)):
        _same_bits(gw.asarray(variant, device).to_numpy(), np.ascontiguousarray(variant))
    read_only = data.copy()
    read_only.flags.writeable = False
    _same_bits(gw.asarray(read_only, device).to_numpy(), data)


def test_other_byte_order_is_refused_or_right(device):
    data = np.arange(5, dtype=">u4")
    try:
        x = gw.asarray(data, device)
    except gw.DatatypeError:
        return
    np.testing.assert_array_equal(x.to_numpy(), np.arange(5))


def test_the_upload_is_a_copy(device):
    data = np.arange(10, dtype=np.uint32)
    x = gw.asarray(data, device)
    data[:] = 7
    np.testing.assert_array_equal(x.to_numpy(), np.arange(10))


@pytest.mark.parametrize("dtype", [np.longdouble, np.uint8, np.int16, np.bool_])
def test_an_unsupported_dtype_is_refused_with_a_remedy(device, dtype):
    with pytest.raises(gw.DatatypeError, match=r"u32.*i32.*f32.*astype"):
        gw.asarray(np.zeros(3, dtype=dtype), device)


def test_a_numpy_array_is_never_converted(device):
    with pytest.raises(gw.DatatypeError, match=r"int32.*u32.*astype\(numpy\.uint32\)"):
        gw.asarray(np.zeros(3, dtype=np.int32), device, dtype="u32")
    gw.asarray(np.zeros(3, dtype=np.int32), device, dtype="i32")


def test_a_list_needs_a_dtype(device):
    with pytest.raises(gw.DatatypeError):
        gw.asarray([1, 2, 3], device)
    x = gw.asarray([1, 2, 3], device, dtype="f32")
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x.to_numpy(), [1, 2, 3])
    np.testing.assert_array_equal(gw.asarray(range(4), device, dtype=np.int32).to_numpy(), range(4))
    with pytest.raises(gw.DatatypeError, match="u32"):
        gw.asarray([-1], device, dtype="u32")
    with pytest.raises(gw.DatatypeError, match="u32"):
        gw.asarray(["x"], device, dtype="u32")


@pytest.mark.parametrize("shape", [(), (2, 3), (1, 1)])
def test_one_dimension(device, shape):
    with pytest.raises(gw.ArgumentError, match=r"one dimension.*ravel"):
        gw.asarray(np.zeros(shape, dtype=np.uint32), device)


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
        gw.Array(buffer, "u32", 1, -1)
    with pytest.raises(gw.DatatypeError, match="GPUBuffer"):
        gw.Array(data, "u32")


def test_empty_and_empty_like(device):
    for n in (0, 1, 17, np.int64(5)):
        x = gw.empty(n, "i32", device)
        assert (x.size, x.dtype, x.to_numpy().shape) == (n, np.int32, (n,))
    like = gw.empty_like(x)
    assert (like.size, like.datatype, like.device) == (x.size, x.datatype, device)
    assert like.buffer is not x.buffer
    from_numpy = gw.empty_like(np.zeros(9, dtype=np.float32), device)
    assert (from_numpy.size, from_numpy.dtype) == (9, np.float32)
    assert gw.empty_like(x[1:3]).size == 2


@pytest.mark.parametrize("n", [-1, 1.0, "5", None, True])
def test_a_length_that_is_none(device, n):
    with pytest.raises(gw.ArgumentError, match="integer of at least 0"):
        gw.empty(n, "u32", device)


def test_more_than_the_largest_buffer_is_an_error_with_the_limit(device):
    limit = device.limits["max-buffer-size"]
    with pytest.raises(gw.LimitError, match=f"max-buffer-size is {limit}"):
        gw.empty(limit // 4 + 4, "u32", device)


def test_slices_are_views(device):
    data = np.arange(100, dtype=np.uint32)
    x = gw.asarray(data, device)
    view = x[10:20]
    assert view.buffer is x.buffer
    assert (view.offset, view.offset_bytes, view.size) == (10, 40, 10)
    assert view[3:][2:4].offset == 15
    view.copy_from(np.zeros(10, dtype=np.uint32))
    data[10:20] = 0
    np.testing.assert_array_equal(x.to_numpy(), data)
    with pytest.raises(gw.ArgumentError, match="step 1"):
        x[::2]


_bounds = st.none() | st.integers(-150, 150)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_bounds, _bounds, _bounds, _bounds)
def test_slices_are_those_of_numpy(device, a, b, c, d):
    data = np.arange(100, dtype=np.uint32)
    x = device.__dict__.setdefault("_array_of_test", gw.asarray(data, device))
    np.testing.assert_array_equal(x[a:b][c:d].to_numpy(), data[a:b][c:d])


def test_copy_from(device):
    x = gw.empty(8, "u32", device).copy_from(np.arange(8, dtype=np.uint32))
    x[2:5].copy_from(np.array([9, 9, 9], dtype=np.uint32)[::-1])
    np.testing.assert_array_equal(x.to_numpy(), [0, 1, 9, 9, 9, 5, 6, 7])
    assert x[:0].copy_from(np.zeros(0, dtype=np.uint32)).size == 0
    for wrong in (np.zeros(8, np.int32), np.zeros(7, np.uint32), np.zeros((2, 4), np.uint32), 5):
        with pytest.raises(gw.ArgumentError, match="uint32 and shape"):
            x.copy_from(wrong)
    np.testing.assert_array_equal(x.to_numpy(), [0, 1, 9, 9, 9, 5, 6, 7])


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        np.array,
        lambda x: np.asarray(x, dtype=np.float32),
        lambda x: np.concatenate([x, x]),
        np.sum,
        np.sin,
        lambda x: np.add(x, 1),
        lambda x: np.zeros(3, np.uint32) + x,
        list,
        tuple,
        iter,
        lambda x: 3 in x,
        float,
        int,
        complex,
        bool,
        math.sqrt,
        lambda x: x[3],
        lambda x: x[-1],
        lambda x: x[[0, 1]],
        lambda x: x[np.array([True, False, True])],
        lambda x: x[None],
    ],
    ids=[
        "asarray", "array", "asarray dtype", "concatenate", "sum", "sin", "add", "operator", "list", "tuple", "iter",
        "in", "float", "int", "complex", "bool", "sqrt", "item", "last item", "indices", "mask", "newaxis",
    ],
)  # fmt: skip
def test_implicit_conversion_is_refused_with_the_remedy(device, convert):
    x = gw.asarray(np.arange(3, dtype=np.uint32), device)
    with pytest.raises(gw.ImplicitConversionError, match="to_numpy"):
        convert(x)


def test_an_array_is_no_index(device):
    with pytest.raises(TypeError):
        operator.index(gw.empty(1, "u32", device))


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


def test_to_numpy_async(device):
    data = _random(1000, np.uint32)
    x = gw.asarray(data, device)

    async def several():
        return await asyncio.gather(*(x[i:].to_numpy_async() for i in range(8)))

    for i, result in enumerate(asyncio.run(several())):
        _same_bits(result, data[i:])


def test_repr_is_short(device):
    x = gw.asarray(np.arange(5, dtype=np.float32), device)
    assert repr(x) == "Array(f32, 5 items)"
    assert repr(x[2:]) == "Array(f32, 3 items, offset=2)"


def test_the_buffers_memory_goes_with_the_last_view(device):
    import gc
    import weakref

    x = gw.asarray(np.arange(5, dtype=np.uint32), device)
    view, buffer = x[2:], weakref.ref(x.buffer)
    del x
    gc.collect()
    assert buffer() is not None
    np.testing.assert_array_equal(view.to_numpy(), [2, 3, 4])
    del view
    gc.collect()
    assert buffer() is None
