"""One-shot functions on large numpy arrays go window by window; `out=` takes the result. All against numpy."""

import importlib
import threading

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside
from helpers.strategies import AFFINE

streaming = importlib.import_module("gridwise_py.streaming")

WINDOW = 1 << 12  # items
WINDOWED = 3 * WINDOW  # from here on
EDGES = [0, 1, WINDOWED - 1, WINDOWED, 4 * WINDOW - 1, 4 * WINDOW, 4 * WINDOW + 1, 9 * WINDOW + 5]


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(streaming, "_WINDOW_BYTES", 4 * WINDOW)
    monkeypatch.setattr(streaming, "_LEAST_WINDOW_BYTES", 4 * WINDOW)
    monkeypatch.setattr(streaming, "_WINDOWED_BYTES", 4 * WINDOWED)


@pytest.fixture
def windows(monkeypatch):
    """The arrays that went window by window."""
    seen = []
    run = streaming.in_windows
    functions = importlib.import_module("gridwise_py.functions.reductions")
    monkeypatch.setattr(functions, "in_windows", lambda *args, **more: (seen.append(args[1]), run(*args, **more))[1])
    return seen


def _items(n, dtype=np.uint32, seed=0):
    rng = np.random.default_rng([n, seed])
    if np.dtype(dtype).kind == "f":
        return rng.integers(-50, 50, n).astype(dtype)
    return rng.integers(0, 1 << 32, n, dtype=np.uint32).view(dtype) | np.array(1 << 16, dtype)


def test_lengths_around_windows(device, windows):
    for n in EDGES:
        x, y = _items(n), _items(n, seed=1)
        windows.clear()
        np.testing.assert_array_equal(gw.cumsum(x, device=device, dtype=np.uint32), np.cumsum(x, dtype=np.uint32))
        assert gw.sum(x, device=device, dtype=np.uint32) == x.sum(dtype=np.uint32)
        assert len(windows) == (2 if n >= WINDOWED else 0)
        np.testing.assert_array_equal(gw.add(x, y, device=device), x + y)
        exclusive = gw.scan(x, gw.Add, "exclusive", device=device)
        np.testing.assert_array_equal(exclusive, np.cumsum(np.r_[np.uint32(0), x], dtype=np.uint32)[:n])


def test_the_order_of_items_is_kept(device, windows):
    kind = "exclusive"
    x = _items(5 * WINDOW + 3)
    scan = gw.Scan(device, "u32", AFFINE, kind)
    np.testing.assert_array_equal(gw.scan(x, AFFINE, kind, device=device), scan.reference(x))
    assert gw.reduce(x, AFFINE, device=device) == gw.Reduce(device, "u32", AFFINE).reference(x)[0]
    assert len(windows) == 2


def test_minus_zero_and_nan_in_windows(device, windows):
    """No identity joins the items of the first window: it would turn a maximum of −0 into −inf, or into +0."""
    x = np.full(4 * WINDOW + 1, -0.0, np.float32)
    for found in (gw.max(x, device=device), gw.min(x, device=device), *gw.scan(x, gw.Max, device=device)[[0, -1]]):
        assert found == 0
        assert np.signbit(found)
    x[3 * WINDOW] = np.nan
    assert np.isnan(gw.max(x, device=device))
    np.testing.assert_array_equal(np.isnan(gw.cumsum(x, device=device)), np.arange(x.size) >= 3 * WINDOW)
    assert len(windows) == 5


@pytest.mark.parametrize("option", ["deterministic", pytest.param("compensated", marks=pytest.mark.slow)])
def test_a_fixed_order_is_that_of_one_call(device, windows, option):
    """In windows the order of additions would be another one."""
    x = np.random.default_rng(3).standard_normal(5 * WINDOW).astype(np.float32)
    one = gw.asarray(x, device)
    got = gw.sum(x, device=device, **{option: True})
    assert got.tobytes() == gw.sum(one, **{option: True}).to_numpy().tobytes()
    assert windows == []
    gw.sum(x, device=device)
    gw.sum(x.astype(np.uint32), deterministic=True, device=device)  # which nothing rounds
    assert len(windows) == 2


def _layouts(n):
    data = _items(2 * n)
    read_only = data[:n].copy()
    read_only.flags.writeable = False
    return {
        "strided": data[::2],
        "reversed": data[:n][::-1],
        "repeated": np.broadcast_to(data[:1], (n,)),
        "read-only": read_only,
        "odd address": np.frombuffer(b"?" + data[:n].tobytes(), np.uint8)[1:].view(np.uint32),
        "swapped": data[:n].astype(">u4"),
        "swapped, reversed, strided": data.astype(">u4")[::-2],
    }


def test_any_layout_and_byte_order(device):
    n = 5 * WINDOW + 1
    for x in _layouts(n).values():
        native, before = np.ascontiguousarray(x).astype(np.uint32), x.tobytes()
        np.testing.assert_array_equal(gw.cumsum(x, device=device, dtype=np.uint32), np.cumsum(native, dtype=np.uint32))
        assert gw.sum(x, device=device, dtype=np.uint32) == native.sum(dtype=np.uint32)
        np.testing.assert_array_equal(gw.add(x, x[::-1], device=device), native + native[::-1])
        assert x.tobytes() == before
    swapped = _layouts(n)["swapped, reversed, strided"]
    np.testing.assert_array_equal(gw.sort(swapped, device=device), np.sort(swapped))
    order = np.argsort(swapped, kind="stable")
    np.testing.assert_array_equal(gw.argsort(swapped, device=device), order)
    for got, want in zip(gw.sort_pairs(swapped, swapped, device=device), (swapped, swapped), strict=True):
        assert got.dtype == np.uint32
        np.testing.assert_array_equal(got, want[order])
    parts = [swapped[: n // 2], swapped[n // 2 :]]
    got = np.concatenate(list(gw.stream(gw.Scan(device), parts)))
    np.testing.assert_array_equal(got, np.cumsum(swapped, dtype=np.uint32))


# ---- out=


@pytest.mark.parametrize("n", [0, 5, 5 * WINDOW + 1])
def test_out_in_numpy(device, n):
    x, y = _items(n), _items(n, seed=1)
    order = np.argsort(x, kind="stable")
    calls = {
        "add": (lambda out: gw.add(x, y, out=out, device=device), x + y),
        "cumsum": (lambda out: gw.cumsum(x, out=out, device=device), np.cumsum(x, dtype=np.uint32)),
        "scan": (lambda out: gw.scan(x, gw.Max, out=out, device=device), np.maximum.accumulate(x)),
        "sort": (lambda out: gw.sort(x, out=out, device=device), np.sort(x)),
        "argsort": (lambda out: gw.argsort(x, out=out, device=device), order),
        "sum": (lambda out: gw.sum(x, out=out, device=device), x.sum(dtype=np.uint32)),
    }
    if n:
        calls["max"] = (lambda out: gw.max(x, out=out, device=device), x.max())
    for name, (call, want) in calls.items():
        out = np.full_like(want, 77) if np.ndim(want) else np.array(77, want.dtype)
        assert call(out) is out, name
        np.testing.assert_array_equal(out, want, name)
    keys, values = np.empty_like(x), np.empty_like(y)
    got = gw.sort_pairs(x, y, out=(keys, values), device=device)
    assert got[0] is keys
    assert got[1] is values
    np.testing.assert_array_equal(keys, x[order])
    np.testing.assert_array_equal(values, y[order])


def test_out_of_matmul(device):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)
    for left, right in ((a, b), (a[0], b), (a, b[:, 0]), (a[0], b[:, 0])):
        want = left @ right
        out = np.zeros(want.shape, np.float32)
        assert gw.matmul(left, right, out=out, device=device) is out
        np.testing.assert_array_equal(out, want)
    x, y = gw.asarray(a.ravel(), device), gw.asarray(b.ravel(), device)
    z = gw.empty(8, "f32", device)
    assert gw.matmul(x, y, m=2, out=z) is z
    np.testing.assert_array_equal(z.to_numpy(), (a @ b).ravel())


@pytest.mark.parametrize("n", [50, 6 * WINDOW + 7])
def test_out_may_be_an_input_or_lie_across_it(device, n):
    """Windows that are written must not be windows that are read later."""
    x, y = _items(n + 9), _items(n + 9, seed=1)
    for place in (slice(0, n), slice(9, n + 9), slice(3, n + 3)):
        for take in (slice(0, n), slice(9, n + 9), slice(3, n + 3), slice(n - 1, None, -1)):
            memory = x.copy()
            want = np.cumsum(memory[take], dtype=np.uint32)
            gw.cumsum(memory[take], out=memory[place], device=device)
            np.testing.assert_array_equal(memory[place], want)
            memory, other = x.copy(), y[:n].copy()
            want = memory[take] + other
            gw.add(other, memory[take], out=memory[place], device=device)
            np.testing.assert_array_equal(memory[place], want)
    memory = x.copy()
    assert gw.sort(memory, out=memory, device=device) is memory
    np.testing.assert_array_equal(memory, np.sort(x))
    memory = x.copy()
    gw.sum(memory, out=memory[4:5].reshape(()), device=device)
    assert memory[4] == x.sum(dtype=np.uint32)


U, F = np.uint32, np.float32
WRONG = {
    "list": (lambda x: gw.cumsum(x, out=[0] * 9), gw.ArgumentError, r"gw.cumsum\(\): out must be a numpy array"),
    "dtype": (lambda x: gw.sort(x, out=np.zeros(9, F)), gw.DatatypeError, "out is of <f4, but the result of <u4"),
    "short": (lambda x: gw.sort(x, out=np.zeros(8, U)), gw.LengthError, r"give np.empty\(9, np.uint32\)"),
    "read-only": (lambda x: gw.add(x, x, out=np.broadcast_to(U(0), 9)), gw.ArgumentError, "contiguous|read-only"),
    "no scalar": (lambda x: gw.sum(x, out=np.zeros(2, U)), gw.LengthError, r"give np.empty\(\(\), np.uint32\)"),
    "indices": (lambda x: gw.argsort(x, out=np.zeros(9, U)), gw.DatatypeError, "np.int64"),
    "one of two": (lambda x: gw.sort_pairs(x, x, out=np.zeros(9, U)), gw.ArgumentError, "a tuple of 2 arrays"),
    "the same": (lambda x: gw.sort_pairs(x, x, out=(x, x)), gw.OverlapError, "share memory"),
    "lengths": (lambda x: gw.add(x, x[1:]), gw.LengthError, r"shapes \(9,\) \(8,\)"),
    "pairs": (lambda x: gw.sort_pairs(x, x[1:]), gw.LengthError, "lengths differ"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused_before_anything_is_made(device, name, monkeypatch):
    call, error, message = WRONG[name]
    x = _items(9)
    gw.sort(x, device=device)
    monkeypatch.setattr(gw.runtime.device, "_default", [device])
    monkeypatch.setattr(type(device), "create_buffer", None)
    monkeypatch.setattr(type(device.queue), "write_buffer", None)
    before = x.copy()
    with pytest.raises(error, match=message):
        call(x)
    np.testing.assert_array_equal(x, before)


def test_an_out_on_the_gpu_that_does_not_fit(device, fresh_device, monkeypatch):
    x = gw.asarray(_items(9), device)
    elsewhere, short, flags = gw.empty(9, "u32", fresh_device), gw.empty(8, "u32", device), gw.empty(9, "bool", device)
    monkeypatch.setattr(type(device), "create_buffer", None)
    for out, error, message in (
        (np.zeros(9, np.uint32), gw.ArgumentError, r"give gw.empty\(9, 'u32', device\)"),
        (elsewhere, gw.BufferUsageError, "another device"),
        (short, gw.LengthError, "out has 8 items"),
        (flags, gw.DatatypeError, "out is of bool"),
    ):
        with pytest.raises(error, match=message):
            gw.sort(x, out=out)
        with pytest.raises(error, match=message):
            gw.add(x, _items(9), out=out)


# ---- memory, threads, and the end of a device


def test_staging_memory_is_kept_from_call_to_call(fresh_device):
    made = []
    create = fresh_device.create_buffer
    fresh_device.create_buffer = lambda **options: (made.append(options.get("label")), create(**options))[1]
    x = _items(6 * WINDOW)
    for _ in range(4):
        np.testing.assert_array_equal(gw.cumsum(x, device=fresh_device, dtype=np.uint32), np.cumsum(x, dtype=np.uint32))
    assert made.count("gridwise stream up") == made.count("gridwise stream down") == 2
    for _ in range(2):
        assert gw.sum(x, device=fresh_device, dtype=np.uint32) == x.sum(dtype=np.uint32)
    assert made.count("gridwise stream up") == 2
    large = streaming._WINDOW_BYTES
    assert list(gw.stream(gw.Copy(fresh_device), [np.zeros(large, np.uint8).view(np.uint32)] * 5))[4].size == large // 4
    kept = inside.kept_stagings(fresh_device)
    assert sum(staging.nbytes for staging in kept) <= 6 * large


def test_an_error_in_the_middle_leaves_nothing_that_is_mapped(device, monkeypatch):
    x, calls = _items(8 * WINDOW), []
    copyto = np.copyto

    def fail(*args, **kwargs):
        calls.append(1)
        if len(calls) == 5:
            raise MemoryError("of a test")
        copyto(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", fail)
        with pytest.raises(MemoryError, match="of a test"):
            gw.cumsum(x, device=device)
    np.testing.assert_array_equal(gw.cumsum(x, device=device, dtype=np.uint32), np.cumsum(x, dtype=np.uint32))


def test_threads(device):
    wrong = []

    def work(seed):
        for turn in range(3):
            x = _items(6 * WINDOW + seed, seed=turn)
            good = np.array_equal(gw.cumsum(x, device=device, dtype=np.uint32), np.cumsum(x, dtype=np.uint32))
            if not good or gw.sum(x, device=device, dtype=np.uint32) != x.sum(dtype=np.uint32):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


def test_a_device_destroyed_between_windows(fresh_device, monkeypatch, wgpu_errors):
    x, calls = _items(8 * WINDOW), []
    submit = streaming._submit
    gw.cumsum(x, device=fresh_device)

    def destroy_first(job, staging):
        calls.append(1)
        if len(calls) == 4:
            fresh_device.destroy()
        submit(job, staging)

    monkeypatch.setattr(streaming, "_submit", destroy_first)
    with pytest.raises(gw.DeviceLostError):
        gw.cumsum(x, device=fresh_device)
    with pytest.raises(gw.DeviceLostError):  # with staging memory of the calls before
        gw.cumsum(x, device=fresh_device)
    wgpu_errors.clear()
