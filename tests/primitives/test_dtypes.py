"""One-shot functions take what numpy makes by default, of any dtype, and give numpy's values in numpy's dtypes."""

from __future__ import annotations

import array
import importlib
import importlib.util

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside
from helpers.strategies import quick_first

pytestmark = pytest.mark.needs("float64")


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


def test_words_for_a_dtype(device):
    x = np.arange(5, dtype=np.uint8)
    for word in (int, "i64", "int64", np.int64, np.dtype("int64"), gw.STORAGE_DATATYPES["i64"]):
        assert gw.sum(x, dtype=word, device=device).dtype == np.int64
    with pytest.raises(gw.DatatypeError, match="complex"):
        gw.sum(x, dtype=complex, device=device)


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
    inside.take_doubles(monkeypatch, device)
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


def test_streams_of_sums_of_small_items(device):
    chunks = [(_items("uint8", n), _items("uint8", n, 1)) for n in (3, 0, 1, 1001)]
    for got, (a, b) in zip(gw.stream(gw.VectorAdd(device, "u8"), chunks), chunks, strict=True):
        _same(got, a + b)
