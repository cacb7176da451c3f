"""Expressions of numbers of 8 bytes: by WGSL's own types, and integers as pairs of words where a device has none."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from helpers.bare import device_with
from helpers.random_pairs import ONE, TWO, edges, run

N = 300


@pytest.fixture(scope="module")
def narrow(device):
    """A device without integers of 64 bits, and without float64."""
    return device_with(device, label="pairs of words")


def _device(request, words):
    return request.getfixturevalue("narrow" if words else "device")


def _bits(value):
    return gw.u64(value) if value.type == "bool" else gw.bitcast("u64", value)


def _by_one_kernel(operations, items, device):
    """Return the results of operations on the same items, one after the other, each as its numpy dtype says."""
    arrays = [gw.asarray(np.tile(each, len(operations)), device) for each in items]
    values = [operation(*arrays) for operation in operations]
    chosen = _bits(values[-1])
    for number, value in reversed(list(enumerate(values[:-1], 1))):
        chosen = gw.where(gw.index < number * N, _bits(value), chosen)
    parts = gw.asarray(chosen).to_numpy().reshape(len(operations), N)
    dtypes = {"u64": np.uint64, "i64": np.int64, "f64": np.float64}
    return [
        part != 0 if value.type == "bool" else part.view(dtypes[value.type])
        for part, value in zip(parts, values, strict=True)
    ]


@pytest.mark.parametrize(
    ("dtype", "words"), [("int64", False), ("uint64", False), ("float64", False), ("int64", True), ("uint64", True)]
)
def test_every_operation_is_numpys(request, dtype, words):
    if dtype == "float64":
        request.applymarker(pytest.mark.needs("shader-f64"))
    device, rng = _device(request, words), np.random.default_rng(7)
    first, second = edges(dtype, rng, N), edges(dtype, rng, N)
    is_float, amounts = dtype == "float64", rng.integers(0, 70, N).astype(dtype)
    named = {
        symbol: function for symbol, function in TWO.items()
        if not (is_float and symbol in ("&", "|", "^", "<<", ">>", "**")) and symbol not in ("minimum", "maximum")
        and not (words and symbol == "/")
    }  # fmt: skip
    twins = [*named.values(), np.minimum, np.maximum]
    functions = [*named.values(), gw.minimum, gw.maximum]
    with np.errstate(all="ignore"):
        second = np.where(rng.integers(0, 2, N) == 0, amounts, second)
        exponents = amounts if "**" in named else second
        for found, twin in zip(_by_one_kernel(functions, (first, second), device), twins, strict=True):
            if twin is operator.pow:
                continue
            np.testing.assert_array_equal(found, twin(first, second), err_msg=str(twin))
        if "**" in named:
            found = gw.asarray(gw.asarray(first, device) ** gw.asarray(exponents, device)).to_numpy()
            np.testing.assert_array_equal(found, first**exponents)
        single = {name: each for name, each in ONE.items()
                  if not (is_float and name == "~") and not (words and name in ("sqrt", "rint"))}  # fmt: skip
        own = [each if name in ("negative", "~", "abs") else getattr(gw, name) for name, each in single.items()]
        for found, (name, twin) in zip(_by_one_kernel(own, (first,), device), single.items(), strict=True):
            np.testing.assert_array_equal(found, twin(first), err_msg=name)


@pytest.mark.parametrize("words", [False, True])
def test_calls_by_chance(request, words):
    assert run(_device(request, words), 240, 3, words=words) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [False, True])
def test_many_calls_by_chance(request, words):
    assert run(_device(request, words), 5_000, 4, words=words) == []


@pytest.mark.parametrize("words", [False, True])
def test_bits_that_are_set_are_counted(request, words):
    device, items = _device(request, words), edges("uint64", np.random.default_rng(8), 300)
    wanted = [bin(item).count("1") for item in items.tolist()]
    for found in (gw.popcount(items, device=device), gw.asarray(gw.popcount(gw.asarray(items, device))).to_numpy()):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(gw.popcount(gw.u64("x")).numpy(x=items), wanted)


def test_floats_become_f32_without_float64(narrow):
    items = edges("float64", np.random.default_rng(2), 4_000)
    near = np.float64(np.finfo(np.float32).tiny) * np.linspace(-2, 2, 999)
    halves = np.nextafter(np.float32(1) + np.arange(500, dtype=np.float32) / 2**20, 2).astype(np.float64) + 2.0**-24
    items = np.concatenate([items, near, halves, near * 2.0**-22, [3.4028235677973366e38, 3.4028235677973362e38]])
    ties = (np.arange(50) + 0.5) * 2.0**-149  # between denormals
    items = np.concatenate([items, ties, np.nextafter(ties, 0), np.nextafter(ties, 1)])
    with np.errstate(all="ignore"):
        wanted = items.astype(np.float32)
    found = gw.asarray(gw.f32(gw.asarray(items, narrow))).to_numpy()
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_what_needs_float64_is_refused_without(narrow):
    x = gw.asarray(np.array([0.5, np.nan, np.inf]), narrow)
    k = gw.asarray(np.array([3, -4, 5]), narrow)
    for compute in (lambda: gw.asarray(x + 1), lambda: gw.asarray(k / 2), lambda: gw.sum(gw.f64(k)), lambda: x > 0.5):
        with pytest.raises(gw.DatatypeError, match=r"'shader-f64'.*x\.astype\(np\.float32\)"):
            gw.asarray(compute())
    # What only looks at bits, or moves items, is done.
    np.testing.assert_array_equal(gw.asarray(gw.isnan(x)).to_numpy(), [False, True, False])
    np.testing.assert_array_equal(gw.asarray(gw.where(k > 0, gw.flip(x), x)).to_numpy(), [np.inf, np.nan, 0.5])
    np.testing.assert_array_equal(gw.asarray(gw.nan_to_num(x, 2.0, 3.0)).to_numpy(), [0.5, 2, 3])


@pytest.mark.parametrize(("n", "words"), [(0, False), (1, True), (4_097, False), (4_097, True)])
def test_expressions_are_read_where_arrays_are(request, n, words):
    device, rng = _device(request, words), np.random.default_rng(n)
    a, b = rng.integers(-(2**62), 2**62, (2, n)), rng.integers(-9, 9, n).astype(np.int8)
    x, y, small = gw.asarray(a[0], device), gw.asarray(a[1], device), gw.asarray(b, device)
    made, wanted = x * 3 - y + small, a[0] * 3 - a[1] + b
    np.testing.assert_array_equal(gw.asarray(made).to_numpy(), wanted)
    assert gw.sum(made).item() == wanted.sum()
    np.testing.assert_array_equal(gw.cumsum(made).to_numpy(), np.cumsum(wanted))
    np.testing.assert_array_equal(gw.sort(made).to_numpy(), np.sort(wanted))
    np.testing.assert_array_equal(gw.compress(made > 0, made).trim().to_numpy(), wanted[wanted > 0])
    np.testing.assert_array_equal(
        gw.asarray(made - gw.previous(x)).to_numpy(), wanted - np.append(a[0][:1], a[0][:-1])[:n]
    )
    np.testing.assert_array_equal(gw.asarray(gw.flip(made) + x[1:].size).to_numpy(), wanted[::-1] + max(n - 1, 0))
    if n:
        assert gw.max(made).item() == wanted.max()
        assert int(gw.argmin(made).item()) == wanted.argmin()
        np.testing.assert_array_equal(gw.asarray(made[x % n]).to_numpy(), wanted[a[0] % n])
        found = gw.group_by(small, total=(made, "sum"))
        keys = np.unique(b)
        np.testing.assert_array_equal(found.keys.to_numpy()[: keys.size], keys)
        np.testing.assert_array_equal(found.total.to_numpy()[: keys.size], [wanted[b == k].sum() for k in keys])
        assert gw.sum(x, where=small > 0).item() == a[0][b > 0].sum()
        np.testing.assert_allclose(gw.std(x % 1_000).item(), (a[0] % 1_000).std(), rtol=1e-5)


@pytest.mark.needs("shader-f64")
def test_floats_are_read_where_arrays_are(device):
    rng = np.random.default_rng(1)
    items, places = rng.standard_normal(4_097), rng.integers(0, 10, 4_097)
    x, k = gw.asarray(items, device), gw.asarray(places, device)
    made, wanted = x * 2 + k, items * 2 + places
    np.testing.assert_allclose(gw.sum(made * x).item(), (wanted * items).sum(), rtol=1e-12)
    np.testing.assert_allclose(gw.cumsum(made).to_numpy(), np.cumsum(wanted), rtol=1e-11)
    np.testing.assert_array_equal(gw.sort(made).to_numpy(), np.sort(wanted))
    np.testing.assert_array_equal(gw.histogram(made, 8, range=(-4, 14))[0].to_numpy(),
                                  np.histogram(wanted, 8, range=(-4, 14))[0])  # fmt: skip
    sums = gw.reduce_by_index(gw.u32(k), made, length=10).to_numpy()
    np.testing.assert_allclose(sums, np.bincount(places, wanted, 10), rtol=1e-12)
    halved = gw.Reduce(device, "f64", output=gw.result / 2).execute(input=x).output.item()
    np.testing.assert_allclose(halved, items.sum() / 2, rtol=1e-11)
    whole = gw.Scan(device, "f64", output=gw.i64(gw.result * 8)).execute(input=x).output.to_numpy()
    np.testing.assert_allclose(whole, np.trunc(np.cumsum(items) * 8), atol=1)
    np.testing.assert_array_equal(gw.find_if(x, lambda x: x > 1.5).item(), np.argmax(items > 1.5))
    np.testing.assert_allclose(gw.mean(made).item(), wanted.mean(), rtol=1e-12)
    np.testing.assert_allclose(gw.std(made).item(), wanted.std(), rtol=1e-12)
    np.testing.assert_allclose(gw.average(made, weights=k).item(), np.average(wanted, weights=places), rtol=1e-12)
    pair = gw.f64("p", components=2)
    np.testing.assert_array_equal(
        gw.Map(device, pair.x * pair.y).execute(p=x[:4_096]).output.to_numpy(), items[:4_096:2] * items[1:4_096:2]
    )


@pytest.mark.needs("shader-f64")
def test_arrays_of_numpy_keep_their_bytes(device):
    items = np.array([[2.5, -1.0], [np.nan, 1e300]])
    whole = np.array([-(2**63), 7, 2**53 + 1])
    for name in ("sqrt", "floor", "ceil", "trunc", "rint", "sign", "abs", "isnan", "isfinite", "isinf", "nan_to_num"):
        with np.errstate(all="ignore"):
            for given in (items, whole):
                found, wanted = getattr(gw, name)(given, device=device), getattr(np, name)(given)
                assert found.dtype == wanted.dtype, name
                np.testing.assert_array_equal(found, wanted, err_msg=name)


@pytest.mark.needs("shader-f64")
def test_roots_are_within_two_ulps(device):
    rng = np.random.default_rng(5)
    items = rng.integers(0, 0x7FF0 << 48, 20_000, dtype=np.uint64).view(np.float64)
    found = gw.asarray(gw.sqrt(gw.asarray(items, device))).to_numpy().view(np.int64)
    assert np.abs(found - np.sqrt(items).view(np.int64)).max() <= 2


@pytest.mark.parametrize("words", [False, True])
def test_numbers_of_8_bytes_are_given_with_the_arrays(request, words):
    device, items = _device(request, words), np.array([1, -2, 2**40])
    first, second, third = gw.scalar("first", "i64"), gw.scalar("second", "u32"), gw.scalar("third", "u64")
    made = gw.i64("x") * first + second + gw.i64(third)
    given = {"x": items, "first": 2**33 + 1, "second": 7, "third": 2**63 + 5}
    wanted = items * given["first"] + 7 + np.uint64(given["third"]).astype(np.int64)
    np.testing.assert_array_equal(made.numpy(**given), wanted)
    found = gw.Map(device, made).execute(**given | {"x": gw.asarray(items, device)}).output
    np.testing.assert_array_equal(found.to_numpy(), wanted)
    with pytest.raises(gw.DatatypeError, match="i64 does not hold"):
        gw.Map(device, made).execute(**given | {"x": gw.asarray(items, device), "first": 2**63})


@pytest.mark.parametrize("words", [False, True])
def test_memory_lies_anywhere(request, words):
    device, items = _device(request, words), np.arange(5_000) * 2**33 + 7
    small = items.astype(np.uint8)
    x, y = gw.i64("x"), gw.leaf("y", "u8")
    made, wanted = x * x - y, items * items - small
    whole, tail = gw.asarray(items, device), gw.asarray(np.append(np.zeros(3, np.uint8), small), device)[3:]
    limits = gw.capabilities(device).limits | {"max-storage-buffer-binding-size": 8_192 + 256}
    windows = gw.Map(device, made, capabilities=replace(gw.capabilities(device), limits=limits))
    run = windows.execute(x=whole, y=tail)
    assert run.plan.parameters["windows"] > 1
    np.testing.assert_array_equal(run.output.to_numpy(), wanted)
    chunks = gw.ChunkedArray([gw.asarray(part, device) for part in (items[:2_000], items[2_000:])])
    assert gw.Reduce(device, made).execute(x=chunks, y=tail).output.item() == wanted.sum()
    np.testing.assert_array_equal(gw.asarray(whole[1:] ^ tail[1:]).to_numpy(), items[1:] ^ small[1:])
    with gw.batch(device):
        centred = gw.asarray(whole - gw.max(whole))
    np.testing.assert_array_equal(centred.to_numpy(), items - items.max())
    gw.Map(device, x * 2).execute(x=whole, output=whole)
    np.testing.assert_array_equal(whole.to_numpy(), items * 2)


@pytest.mark.needs("shader-f64")
def test_bools_and_numbers_that_a_type_does_not_hold_are_divided(device):
    for items in (np.array([3, -4]), np.array([3, 2**63], np.uint64)):
        x = gw.asarray(items, device)
        for number in (True, np.True_, -1):
            np.testing.assert_array_equal(gw.asarray(number / x).to_numpy(), number / items)
            np.testing.assert_array_equal(gw.asarray(x / number).to_numpy(), items / number)
