"""Arrays that are put together, against numpy; more shapes and datatypes are drawn in test_every_function.py."""

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.errors import ArgumentError, AxisError, BufferUsageError, DatatypeError, LengthError

DTYPES = ("?", "i1", "u2", "f2", "u4", "f4", "i8", "f8", "c8")


def _items(dtype, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def _assert_same(got, want, on_gpu=True):
    assert isinstance(got, gw.Array) == on_gpu
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_array_equal(got.to_numpy() if on_gpu else got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        (((3,), (0,), (5,), (1,)), 0),
        (((2, 3), (2, 1), (2, 4)), 1),
        (((5, 3, 2), (5, 1, 2), (5, 0, 2)), -2),
        (((1, 3), (1, 2)), 1),
        (((2, 3), (1, 3)), -2),
        (((2, 3), (4,), ()), None),
        (((0, 3), (0, 2)), 1),
        (((7, 1),), 1),
    ],
)
def test_concatenate_along_an_axis(device, dtype, shapes, axis):
    arrays = [_items(dtype, shape, k) for k, shape in enumerate(shapes)]
    want = np.concatenate(arrays, axis)
    _assert_same(gw.concatenate([gw.asarray(each, device) for each in arrays], axis), want)
    _assert_same(gw.concatenate([*arrays[:-1], gw.asarray(arrays[-1], device)], axis=axis), want)
    _assert_same(gw.concatenate(arrays, axis), want, on_gpu=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_stack_and_tile(device, dtype):
    for shape in ((), (1,), (3,), (2, 3), (2, 0), (2, 3, 4)):
        arrays = [_items(dtype, shape, k) for k in range(3)]
        given = [arrays[0], *(gw.asarray(each, device) for each in arrays[1:])]
        for axis in range(-len(shape) - 1, len(shape) + 1):
            _assert_same(gw.stack(given, axis), np.stack(arrays, axis))
            _assert_same(gw.stack(given[1:2], axis), np.stack(arrays[1:2], axis))
            _assert_same(gw.stack(arrays, axis), np.stack(arrays, axis), on_gpu=False)
        for reps in (0, 1, 2, (), (2,), (2, 1), [1, 3], (2, 3, 2), (3, 1, 1, 2), np.array([2, 2])):
            _assert_same(gw.tile(given[1], reps), np.tile(arrays[1], reps))
            _assert_same(gw.tile(arrays[1], reps), np.tile(arrays[1], reps), on_gpu=False)


@pytest.mark.parametrize(
    ("first", "second"),
    [("i4", "f4"), ("u8", "i8"), ("u1", "i1"), ("?", "f2"), ("f8", "i4"), ("c8", "f4"), (">i4", "i8")],
)
def test_datatypes_are_promoted(device, first, second):
    a, b = _items(first, 5), _items(second, 4, 1)
    want = np.concatenate([a, b])
    if want.dtype.kind != "c":
        _assert_same(gw.concatenate([gw.asarray(a, device), gw.asarray(b, device)]), want)
    _assert_same(gw.concatenate([gw.asarray(a, device), b]), want)
    _assert_same(gw.concatenate([a, b]), want, on_gpu=False)


def test_what_else_is_put_together(device):
    host = np.arange(4, dtype=np.float32)
    x = gw.asarray(host, device)
    _assert_same(gw.concatenate([x, [1, 2.5]]), np.concatenate([host, [1, 2.5]]))
    _assert_same(gw.stack([gw.max(x), 7, x[2]]), np.stack([host.max(), 7, host[2]]))
    _assert_same(gw.concatenate((2 * x, x)), np.concatenate((2 * host, host)))
    _assert_same(gw.concatenate(x.reshape(2, 2)), host)
    _assert_same(gw.stack(x.reshape(2, 2), 1), host.reshape(2, 2).T)
    assert gw.tile(x, 1).buffer is not x.buffer
    _assert_same(gw.tile(x > 1, 2), np.tile(host > 1, 2))
    _assert_same(gw.concatenate([x[1:], x[:3]]), np.concatenate([host[1:], host[:3]]))
    _assert_same(gw.concatenate([x, x], dtype=np.int16, casting="unsafe"), np.tile(host, 2).astype(np.int16))
    items = np.zeros(3, gw.Struct("pair", a="f32", b="u32").dtype)
    items["a"], items["b"] = [1, 2, 3], 7
    y = gw.asarray(items, device)
    _assert_same(gw.concatenate([y.reshape(3, 1), y.reshape(3, 1)], 1), np.stack([items, items], 1))
    _assert_same(gw.tile(y, 2), np.tile(items, 2))


def test_out_takes_the_result(device):
    host = _items("f4", (2, 3))
    x, out = gw.asarray(host, device), gw.empty((4, 3), "f64", device)
    assert gw.concatenate([x, host], out=out) is out
    np.testing.assert_array_equal(out.to_numpy(), np.concatenate([host, host]))
    on_host = np.empty((2, 2, 3), np.float64)
    assert gw.stack([host, host], out=on_host) is on_host
    np.testing.assert_array_equal(on_host, np.stack([host, host]))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda x: gw.concatenate([]), ArgumentError, "give a list"),
        (lambda x: gw.stack([]), ArgumentError, "give a list"),
        (lambda x: gw.concatenate(3), ArgumentError, "give a list"),
        (lambda x: gw.concatenate([x[0], x[1]]), AxisError, "give axis=None"),
        (lambda x: gw.concatenate([x, x.reshape(2, 2)]), ArgumentError, r"same number of dimensions"),
        (
            lambda x: gw.concatenate([x.reshape(2, 2), np.zeros((3, 1))], 1),
            ArgumentError,
            "index 0 has size 2 and .* size 3; convert",
        ),
        (lambda x: gw.stack([x, x[:2]]), LengthError, r"arrays\[1\] has shape \(2,\)"),
        (lambda x: gw.concatenate([x], 1), AxisError, "axis=1"),
        (lambda x: gw.stack([x], 2), AxisError, "axis=2"),
        (lambda x: gw.stack([x], None), DatatypeError, "one integer"),
        (
            lambda x: gw.concatenate([x, np.array(["2020"], "M8[D]")]),
            DatatypeError,
            "Float32DType.*DateTime64DType'>; convert",
        ),
        (lambda x: gw.concatenate([x, ["a"]]), DatatypeError, "text is no number"),
        (lambda x: gw.concatenate([x], dtype="i32"), DatatypeError, "rule 'same_kind'; convert some"),
        (lambda x: gw.concatenate([x], casting="maybe"), ArgumentError, "same_kind"),
        (lambda x: gw.concatenate([gw.unique(x), x]), ArgumentError, "trim"),
        (lambda x: gw.tile(gw.ChunkedArray([x]), 2), ArgumentError, "one Array"),
        (lambda x: gw.concatenate([x], out=np.zeros(4)), ArgumentError, "stays on the GPU"),
        (lambda x: gw.tile(x, -1), ArgumentError, "at least 0"),
        (lambda x: gw.tile(x, (2, 1.5)), DatatypeError, "an integer"),
    ],
)
def test_wrong_calls_say_what_to_do(device, call, error, says):
    with pytest.raises(error, match=says):
        call(gw.asarray(np.arange(4, dtype=np.float32), device))


def test_arrays_of_two_devices_are_refused(device, fresh_device):
    with pytest.raises(BufferUsageError, match="different devices"):
        gw.stack([gw.zeros(2, "u32", device), gw.zeros(2, "u32", fresh_device)])
