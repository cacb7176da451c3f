"""One-shot functions take what numpy makes by default, of any dtype, and give numpy's values in numpy's dtypes."""

from __future__ import annotations

import array
import importlib
import importlib.util
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.runtime.context import context_of
from helpers.strategies import quick_first

pytestmark = pytest.mark.needs("float64")

INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
REDUCTIONS = ("sum", "prod", "min", "max")
SCANS = ("cumsum", "cumprod")
#: Tiles of the shapes that few items take on a CPU adapter have at most so many items.
TILE = 4096


def _items(dtype, n, seed=0, *, op="sum"):
    """Integers of the whole range; floats whose sums and products are exact in any order."""
    rng, dtype = np.random.default_rng([n, seed]), np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(n) < 0.7
    if dtype.kind == "f":
        return rng.choice(np.array([1, -1] if "prod" in op else [0, 1, -1], dtype), n)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)


def _same(got, want):
    """Same values in the same dtype; of numpy's scalars, too."""
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def _check(device, name, x, **more):
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, **more)
    _same(getattr(gw, name)(x, device=device, **more), want)


#: Each dtype with a function, and each function with a dtype.
PAIRS = tuple(zip((*INTEGERS, *FLOATS), itertools.cycle((*REDUCTIONS, *SCANS))))
EVERY = tuple(itertools.product((*INTEGERS, *FLOATS), (*REDUCTIONS, *SCANS)))


@pytest.mark.parametrize("pairs", [PAIRS, pytest.param(EVERY, marks=pytest.mark.slow)], ids=["few", "all"])
def test_every_dtype_gives_numpys_values_in_numpys_dtype(device, pairs):
    for dtype, name in pairs:
        for n in (0, 1, 3, TILE - 1, TILE, TILE + 1):
            if n or name not in ("min", "max"):
                _check(device, name, _items(dtype, n, op=name))
        with pytest.raises(ValueError, match="0 items"):  # numpy raises a ValueError, too
            gw.min(_items(dtype, 0), device=device)


def test_extremes(device):
    for dtype, name in (("int8", "sum"), ("uint64", "prod"), ("uint64", "max")):
        for value in (np.iinfo(dtype).min, np.iinfo(dtype).max):
            _check(device, name, np.full(TILE + 3, value, dtype))


def test_add_takes_dtypes_of_every_size(device):
    """Views at any offset are in test_every_primitive.py."""
    for dtype in ("bool", "int8", "uint16", "int64", *FLOATS):
        for n in (0, 1, 5, 4097):
            x, y = _items(dtype, n), _items(dtype, n, 1)
            _same(gw.add(x, y, device=device), x + y)
        if np.dtype(dtype).kind == "f":
            special = np.array([0.1, np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny, -0.0], dtype)
            with np.errstate(all="ignore"):
                _same(gw.add(special, special[::-1], device=device), special + special[::-1])


@pytest.mark.parametrize(
    ("first", "second"),
    quick_first([("uint32", "int32"), ("bool", "float16")], [("uint8", "int8"), ("int64", "float32")]),
)
def test_add_promotes_as_numpy_does(device, first, second):
    x, y = _items(first, 77), _items(second, 77, 1)
    for n in (77, 0):
        _same(gw.add(x[:n], y[:n], device=device), x[:n] + y[:n])
        _same(gw.add(gw.asarray(x[:n], device), y[:n]).to_numpy(), x[:n] + y[:n])
    _same(gw.add([1, 2], [0.5, 1.5], device=device), np.array([1.5, 3.5]))


# ---- dtype=


@pytest.mark.parametrize(("items", "dtype"), quick_first([("int16", "uint8")], [("float64", "int64")]))
def test_a_dtype_is_what_items_become_before_they_are_combined(device, items, dtype):
    x = _items(items, TILE + 5)
    if np.dtype(dtype).kind == "f":
        x = (x % x.dtype.type(3)).astype(items)  # small: their sums are exact
    _check(device, "sum", x, dtype=dtype)
    _check(device, "cumsum", x, dtype=dtype)
    with np.errstate(all="ignore"):
        converted = x.astype(dtype)
    _same(gw.reduce(x, gw.Max, dtype=dtype, device=device), np.maximum.reduce(converted))
    on_gpu = gw.asarray(x, device)
    _same(gw.sum(on_gpu, dtype=dtype).to_numpy()[()], converted.sum(dtype=dtype))


def test_words_for_a_dtype(device):
    x = np.arange(5, dtype=np.uint8)
    for word in (int, "i64", "int64", np.int64, np.dtype("int64"), gw.STORAGE_DATATYPES["i64"]):
        assert gw.sum(x, dtype=word, device=device).dtype == np.int64
    with pytest.raises(gw.DatatypeError, match="complex"):
        gw.sum(x, dtype=complex, device=device)


def test_without_a_dtype_that_of_out_counts_as_in_numpy(device):
    x = np.arange(200, dtype=np.uint8)
    for dtype in (np.uint8, np.float32):
        out, total = np.zeros(200, dtype), np.zeros((), dtype)
        assert gw.cumsum(x, out=out, device=device) is out
        np.testing.assert_array_equal(out, np.cumsum(x, dtype=dtype))
        gw.sum(x, out=total, device=device)
        assert total == x.sum(dtype=dtype)
    assert gw.sum(x, dtype=np.uint8, out=np.zeros((), np.int64), device=device) == x.sum(dtype=np.uint8)


def test_other_functions_keep_the_dtype(device):
    x = np.full(300, 200, np.uint8)
    _same(gw.reduce(x, device=device), x.sum(dtype=np.uint8))
    _same(gw.scan(x, device=device), np.cumsum(x, dtype=np.uint8))
    _same(gw.reduce(x > 0, device=device), np.True_)


# ---- what numpy makes an array of


NO_ARRAYS = (
    [1, 2, 3], (True, False, True), range(7), 5, 2.5, True, [0.5, 1.5], [2**40, 1], [], np.float32(3), np.int8(-3),
    array.array("h", [1, -2]), memoryview(b"abc"), [np.uint8(200), np.uint8(100)], np.uint64(2**63),
)  # fmt: skip


def test_what_is_no_array(device):
    for values in NO_ARRAYS:
        _check(device, "sum", values)
    for name, values in (("prod", [1, 2, 3]), ("cumsum", 2.5), ("max", (True, False, True)), ("cumsum", [])):
        _check(device, name, values)
    with pytest.raises(gw.EmptyReductionError):
        gw.max([], device=device)


class OnlyDLPack:
    def __init__(self, items):
        self._items = items

    def __dlpack__(self, **options):
        return self._items.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._items.__dlpack_device__()


class OnlyArray:
    def __init__(self, items):
        self._items = items

    def __array__(self, dtype=None, copy=None):
        return self._items


@pytest.mark.parametrize("kind", [OnlyDLPack, OnlyArray])
def test_tensors_of_other_libraries(device, kind):
    for dtype in ("int16", "float64"):
        x = _items(dtype, 33)
        _same(gw.sum(kind(x), device=device), x.sum())
        np.testing.assert_array_equal(gw.asarray(kind(x), device).to_numpy(), x)


if importlib.util.find_spec("torch"):  # which tests do without

    def test_tensors_of_torch(device):
        import torch

        for dtype in (torch.uint8, torch.int64, torch.float16, torch.float32, torch.bool):
            x = torch.tensor([1, 0, 1, 1]).to(dtype)
            _same(gw.sum(x, device=device), x.numpy().sum())


def test_python_floats_are_single_where_the_device_has_no_doubles(device, monkeypatch):
    monkeypatch.setattr(context_of(device), "has_float64", False)
    _same(gw.sum([0.5, 2.0], device=device), np.float32(2.5))
    _same(gw.cumsum([0.5, 2.0], device=device), np.array([0.5, 2.5], np.float32))
    keys, sums = gw.reduce_by_key([0.1, 0.1], [0.5, 2.0], device=device)
    _same(sums, np.array([2.5], np.float32))
    moved = np.array([0.1])  # what is not computed with stays as it is
    for found in (keys, gw.repeat([0.1], 1, device=device), gw.segmented_sort([0.1], [0, 1], device=device)):
        _same(found, moved)
    assert gw.asarray([0.5], device).dtype == np.float32
    assert gw.asarray(np.array([0.5]), device).dtype == np.float64
    assert gw.asarray([5], device).dtype == np.int64
    with pytest.raises(gw.DatatypeError, match="1e\\+300"):
        gw.asarray([1e300], device)


def test_doubles_are_refused_with_the_remedy_where_the_device_has_none(device):
    without = gw.Capabilities()
    for make in (
        lambda: gw.Reduce(None, "f64", capabilities=without),
        lambda: gw.Scan(None, "f64", capabilities=without),
        lambda: gw.VectorAdd(None, "f64", capabilities=without),
    ):
        with pytest.raises(gw.DatatypeError, match=r"shader-f64.*x\.astype\(np\.float32\)"):
            make()


def test_arrays_of_lists_and_numbers(device):
    for values in ([1, 2], [0.5], 7, [True, False], [[1, 2], [3, 4]]):
        x = gw.asarray(values, device)
        _same(x.to_numpy(), np.asarray(values))
    with pytest.raises(gw.DatatypeError, match="text is no number"):
        gw.asarray(["a"], device)


# ---- streams and windows


@pytest.mark.parametrize(("items", "result"), quick_first([("uint8", "uint64")], [("float16", "float16")]))
def test_streams_of_any_dtype(device, items, result):
    chunks = [_items(items, n, seed) for seed, n in enumerate((5, 0, 1, 1001, 7, 4099))]
    x = np.concatenate(chunks)
    for kind in ("inclusive", "exclusive"):
        scan = gw.Scan(device, items, gw.Add, kind, result_dtype=result)
        parts = list(gw.stream(scan, chunks))
        assert [part.size for part in parts] == [chunk.size for chunk in chunks]
        _same(np.concatenate(parts), scan.reference(x))
    reduce = gw.Reduce(device, items, gw.Max, result_dtype=result)
    _same(gw.stream(reduce, chunks), reduce.reference(x)[0])
    assert gw.stream(gw.Reduce(device, items, result_dtype=result), []).dtype == result


def test_more_chunks_than_partial_results(device, monkeypatch):
    monkeypatch.setattr(importlib.import_module("gridwise_py.streaming"), "_PARTIALS", 3)
    chunks = [np.full(9, 200, np.uint8)] * 8
    assert gw.stream(gw.Reduce(device, "u8", result_dtype="u64"), chunks) == 200 * 72
    assert gw.stream(gw.Reduce(device, "u8"), chunks) == 200 * 72 % 256


def test_streams_of_sums_of_small_items(device):
    chunks = [(_items("uint8", n), _items("uint8", n, 1)) for n in (3, 0, 1, 1001)]
    for got, (a, b) in zip(gw.stream(gw.VectorAdd(device, "u8"), chunks), chunks, strict=True):
        _same(got, a + b)


def _small_windows(patch):
    streaming = importlib.import_module("gridwise_py.streaming")
    for name in ("_WINDOW_BYTES", "_LEAST_WINDOW_BYTES", "_WINDOWED_BYTES"):
        patch.setattr(streaming, name, 1 << 12)


def _any_array(draw):
    """An array of any dtype, byte order, stride and length."""
    dtype = np.dtype(draw(st.sampled_from((*INTEGERS, *FLOATS))))
    n, step = draw(st.integers(0, 9000)), draw(st.sampled_from([1, 1, 2, -1, -3]))
    x = _items(dtype, max(1, n * abs(step)), draw(st.integers(0, 99)), op="prod")[::step][:n]
    if draw(st.booleans()) and dtype.itemsize > 1:
        x = x.astype(dtype.newbyteorder(">"))
    x.flags.writeable = draw(st.booleans())
    return x


def _every_function(device, data):
    x = _any_array(data.draw)
    native = x.astype(x.dtype.newbyteorder("="))
    name = data.draw(st.sampled_from(["sum", "prod", "min", "max", "cumsum", "cumprod", "add", "scan", "reduce"]))
    given = gw.asarray(x, device) if data.draw(st.booleans()) else x
    got = {
        "add": lambda: gw.add(given, x[::-1] if given is x else gw.asarray(x[::-1], device), device=device),
        "scan": lambda: gw.scan(given, gw.Max, "inclusive", device=device),
        "reduce": lambda: gw.reduce(given, device=device),
    }.get(name, lambda: getattr(gw, name)(given, device=device))
    if not x.size and name in ("min", "max"):
        with pytest.raises(gw.EmptyReductionError):
            got()
        return
    with np.errstate(all="ignore"):
        want = {
            "add": lambda: native + native[::-1],
            "scan": lambda: np.maximum.accumulate(native),
            "reduce": lambda: native.sum(dtype=native.dtype),
        }.get(name, lambda: getattr(np, name)(native))()
    found = got()
    if isinstance(found, gw.Array):
        found = found.to_numpy()
        found = found[()] if found.ndim == 0 else found
    _same(found, want)


@settings(max_examples=12)
@given(data=st.data())
def test_any_array_through_any_function(device, data):
    with pytest.MonkeyPatch.context() as patch:
        _small_windows(patch)
        _every_function(device, data)


@pytest.mark.slow
@settings(max_examples=1500)
@given(data=st.data())
def test_many_arrays_through_any_function(device, data):
    with pytest.MonkeyPatch.context() as patch:
        _small_windows(patch)
        _every_function(device, data)
