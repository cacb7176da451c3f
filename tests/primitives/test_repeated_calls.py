"""Calls of functions that resemble earlier ones: the same results and errors, without the questions; nothing stays."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.functions import arguments
from gridwise_py.functions.repeated_calls import one_shot
from gridwise_py.runtime.context import context_of

N = 300
RNG = np.random.default_rng(11)


def _items(dtype, shape=(N,)):
    dtype = np.dtype(dtype)
    items = RNG.integers(0, 100, shape)
    return items > 50 if dtype.kind == "b" else items.astype(dtype)


def _unique(x):
    return gw.unique(x).trim()


#: A function of Arrays, its twin in numpy, and what makes its inputs.
CALLS = {
    "reduce": (gw.reduce, lambda x: x.sum(dtype=x.dtype), [("u4",)]),
    "reduce by name": (lambda x: gw.reduce(x, "max"), np.max, [("i4",)]),
    "sum": (gw.sum, np.sum, [("u4", (3, 100))]),
    "sum of bools": (gw.sum, np.sum, [("?",)]),
    "sum along": (lambda x: gw.sum(x, axis=1, keepdims=True), lambda x: x.sum(1, keepdims=True), [("i4", (6, 50))]),
    "mean": (gw.mean, np.mean, [("f4",)]),
    "max": (gw.max, np.max, [("f4",)]),
    "argmax": (gw.argmax, np.argmax, [("f4",)]),
    "cumsum": (gw.cumsum, np.cumsum, [("f4",)]),
    "scan": (lambda x: gw.scan(x, gw.Max, "inclusive"), np.maximum.accumulate, [("u4",)]),
    "sort": (gw.sort, np.sort, [("u4",)]),
    "sort rows": (gw.sort, np.sort, [("i4", (4, 75))]),
    "argsort": (gw.argsort, lambda x: np.argsort(x, kind="stable"), [("f4",)]),
    "unique": (_unique, np.unique, [("u4",)]),
    "top_k": (lambda x: gw.top_k(x, 5).values, lambda x: np.sort(x)[::-1][:5], [("u4",)]),
    "compress": (lambda c, x: gw.compress(c, x).trim(), np.compress, [("?",), ("u4",)]),
    "add": (gw.add, np.add, [("u4",), ("u4",)]),
    "add mixed": (gw.add, np.add, [("i2",), ("f4",)]),
    "take": (lambda x, at: gw.take(x, at, 0), lambda x, at: np.take(x, at, 0), [("f4", (100, 3)), ("u4", (7,))]),
    "matmul": (gw.matmul, np.matmul, [("f4", (8, 16)), ("f4", (16, 4))]),
    "histogram": (lambda x: gw.histogram(x, 7, (0, 90))[0], lambda x: np.histogram(x, 7, (0, 90))[0], [("f4",)]),
    "bincount": (lambda x: gw.bincount(x, length=100), lambda x: np.bincount(x, minlength=100), [("u4",)]),
}  # fmt: skip


def _numpy(result):
    return result.to_numpy() if isinstance(result, gw.Array) else result


@pytest.fixture
def unasked(monkeypatch):
    """Return what lets each function that asks about its arguments fail from then on."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("a repeated call asked about its arguments again")

    return lambda: monkeypatch.setattr(arguments.Call, "__init__", refuse)


@pytest.fixture
def calls(device):
    """What is known of calls on the device; nothing at first."""
    known = context_of(device).recipes
    known.clear()
    return known


@pytest.mark.parametrize("name", CALLS)
def test_a_repeated_call_gives_what_numpy_gives_and_asks_nothing(device, calls, unasked, name):
    function, reference, kinds = CALLS[name]

    def check():
        inputs = [_items(*kind) for kind in kinds]
        found = _numpy(function(*(gw.asarray(each, device) for each in inputs)))
        wanted = np.asarray(reference(*inputs))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-5)

    check()
    check()  # of some functions, the first call on a device does more
    assert calls
    unasked()
    check()


@pytest.mark.parametrize(
    ("most", "call"),
    [
        (24, lambda x, _: gw.sum(x)), (24, lambda x, _: gw.cumsum(x)), (24, lambda x, _: gw.add(x, 1)),
        (30, lambda x, made: gw.asarray(made)), (30, lambda x, made: gw.sum(made)),
    ],
    ids=["sum", "cumsum", "add", "asarray", "sum of an expression"],
)  # fmt: skip
def test_a_repeated_call_is_few_calls_of_python(device, calls, most, call):
    x = gw.asarray(_items("u4"), device)
    made, names = x * 3 + 1, []
    for _ in range(4):
        result = call(x, made)
    gw.synchronize(device)

    def note(frame, event, _):
        if event == "call":
            names.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        result = call(x, made)
    finally:
        sys.setprofile(None)
    assert len(names) <= most + 4, names  # also the call itself, and what ends the profile
    assert isinstance(result, gw.Array)


def test_what_differs_in_more_than_arrays_is_another_call(device, calls):
    x, y = _items("i4"), _items("i4")
    on_gpu, other = gw.asarray(x, device), gw.asarray(y, device)
    table = on_gpu.reshape(15, 20)
    for _ in range(2):
        assert gw.sum(on_gpu).item() == x.sum()
        assert gw.sum(on_gpu[:100]).item() == x[:100].sum()
        assert gw.sum(on_gpu, dtype=np.float32).dtype == np.float32
        assert gw.sum(on_gpu, dtype="i32").dtype == np.int32
        assert gw.sum(on_gpu, keepdims=True).shape == (1,)
        assert gw.sum(on_gpu, keepdims=False).shape == ()
        for axis in (0, 1, (0, 1), -1):
            np.testing.assert_array_equal(gw.sum(table, axis).to_numpy(), x.reshape(15, 20).sum(axis))
        assert gw.sum(table, axis=0, keepdims=True).shape == (1, 20)
        assert gw.sum(table, axis=0, deterministic=True).shape == (20,)
        for k in (1, 4):
            np.testing.assert_array_equal(gw.top_k(on_gpu, k).values.to_numpy(), np.sort(x)[::-1][:k])
        np.testing.assert_array_equal(gw.sort(on_gpu, descending=True).to_numpy(), np.sort(x)[::-1])
        np.testing.assert_array_equal(gw.sort(on_gpu).to_numpy(), np.sort(x))
        # The same Array twice is told from two.
        np.testing.assert_array_equal(gw.add(on_gpu, on_gpu).to_numpy(), x + x)
        np.testing.assert_array_equal(gw.add(on_gpu, other).to_numpy(), x + y)
        np.testing.assert_array_equal(gw.add(other, on_gpu, out=None).to_numpy(), x + y)


def test_expressions_are_told_by_what_they_compute(device, calls, unasked):
    x, y = _items("f4"), _items("f4") + 1
    a, b = gw.asarray(x, device), gw.asarray(y, device)
    cases = {
        "two": (lambda a, b: a - b, lambda x, y: x - y),
        "turned": (lambda a, b: b - a, lambda x, y: y - x),
        "product": (lambda a, b: a * b, lambda x, y: x * y),
        "two and a number": (lambda a, b: a - b * 2, lambda x, y: x - y * 2),
        "one, twice": (lambda a, b: a - a * 2, lambda x, y: x - x * 2),
        "another number": (lambda a, b: a - a * 3, lambda x, y: x - x * 3),
        "-0": (lambda a, b: a * -0.0, lambda x, y: x * np.float32(-0.0)),
        "0": (lambda a, b: a * 0.0, lambda x, y: x * np.float32(0)),
        "shared": (lambda a, b: (lambda s: s * s)(a + b), lambda x, y: (x + y) * (x + y)),
        "a part": (lambda a, b: a[:100] * b[:100], lambda x, y: x[:100] * y[:100]),
        "an item": (lambda a, b: a * b[3:4], lambda x, y: x * y[3]),
    }

    def check(x, y):
        a, b = gw.asarray(x, device), gw.asarray(y, device)
        for name, (expression, twin) in cases.items():
            stored = gw.asarray(expression(a, b)).to_numpy()
            np.testing.assert_array_equal(stored, twin(x, y), name)
            np.testing.assert_array_equal(np.signbit(stored), np.signbit(twin(x, y)), name)
            assert gw.max(expression(a, b)).item() == twin(x, y).max(), name

    for _ in range(2):
        check(x, y)
    assert len(calls) >= 2 * len(cases) - 2  # the first two are one, on Arrays in another order
    unasked()
    check(y, x)
    with pytest.raises(AssertionError, match="asked"):
        gw.sum(a * b * 7)


def test_an_expression_of_two_devices_is_refused_each_time(device, calls, fresh_device):
    x, elsewhere = gw.asarray(_items("f4"), device), gw.asarray(_items("f4"), fresh_device)
    other = gw.asarray(_items("f4"), device)
    first = _message(lambda: gw.sum(x * elsewhere))
    for _ in range(3):
        gw.sum(x * other)
    assert _message(lambda: gw.sum(x * elsewhere)) == first


def test_what_a_caller_gets_of_the_host_is_its_own(device, calls):
    x = gw.asarray(_items("f4"), device)
    for _ in range(3):
        edges = gw.histogram(x, 3, (0.0, 3.0))[1]
        np.testing.assert_array_equal(edges, [0, 1, 2, 3])
        edges[:] = 7


def test_what_was_read_is_read_again(device, calls):
    x, good = gw.asarray(_items("u4"), device), np.array([0, N - 1], np.uint32)
    places = gw.asarray(good, device)
    for _ in range(3):
        gw.take(x, places, mode="raise")
    places.copy_from(good + 1)
    with pytest.raises(gw.BoundsError, match=f"index {N}"):
        gw.take(x, places, mode="raise")


def test_counted_results_carry_their_own_counts(device, calls):
    x, wanted = gw.asarray(np.arange(N, dtype=np.uint32), device), (10, 200, 30)
    found = [gw.compress(x < limit, x) for limit in wanted]
    flags = [gw.asarray(np.arange(N) < limit, device) for limit in wanted]
    found += [gw.compress(each, x) for each in flags]
    assert [each.trim().size for each in found] == [*wanted, *wanted]
    assert [gw.sum(each).item() for each in found] == [sum(range(limit)) for limit in (*wanted, *wanted)]


def test_an_out_is_written(device, calls):
    x, out = _items("u4"), gw.empty(N, "u32", device)
    for shift in range(3):
        assert gw.sort(gw.asarray(x + shift, device), out=out) is out
        np.testing.assert_array_equal(out.to_numpy(), np.sort(x + shift))
    assert not calls


def _message(call):
    with pytest.raises(gw.GridwiseError) as caught:
        call()
    return type(caught.value), str(caught.value)


def test_errors_are_those_of_a_first_call(device, calls, fresh_device):
    x, elsewhere = gw.asarray(_items("u4"), device), gw.asarray(_items("u4"), fresh_device)
    gone = gw.asarray(_items("u4"), device)
    gone.buffer.destroy()
    wrong = [
        lambda: gw.sum(gone), lambda: gw.sort(gone), lambda: gw.add(gone, x), lambda: gw.add(x, gone),
        lambda: gw.add(x, elsewhere), lambda: gw.add(x, x[1:]), lambda: gw.top_k(x, N + 1), lambda: gw.sum(x, axis=2),
        lambda: gw.sum(x, keepdims=[1]), lambda: gw.sum(x, axes=1), lambda: gw.sort(x, kind="bubble"),
    ]  # fmt: skip
    first = [_message(call) for call in wrong]
    y = gw.asarray(_items("u4"), device)
    for _ in range(2):
        gw.sum(x), gw.sort(x), gw.add(x, y), gw.add(x, x[:]), gw.top_k(x, 3)
        gw.sum(x, axis=0), gw.sum(x, keepdims=True)
    assert len(calls) >= 5
    assert [_message(call) for call in wrong] == first
    assert gw.sum(x).item() == gw.sum(y + (x - y)).item(), "an error leaves what is known"


def test_it_runs_where_its_arrays_are(device, fresh_device):
    for each in (device, fresh_device, device, fresh_device):
        x = _items("u4")
        found = gw.reduce(gw.asarray(x, each))
        assert found.device is each
        assert found.item() == x.sum()


@pytest.mark.needs("timestamp-query")
def test_batches_captures_and_profiles_see_the_same(device, calls):
    items = _items("u4")
    x = gw.asarray(items, device)

    def profiled():
        with gw.profile(device) as profile:
            found = gw.sum(x), gw.sort(x)
        assert found[0].item() == items.sum()
        return {
            (row.name, row.kind, row.calls) for row in profile.key_averages() if row.kind in ("primitive", "kernel")
        }

    first = profiled()
    assert {"Reduce", "Sort"} <= {name for name, *_ in first}
    assert not calls, "a profiled call is not watched"
    gw.sum(x), gw.sort(x)
    assert len(calls) == 2
    assert profiled() == first
    with gw.batch(device):
        total, ordered = gw.sum(x), gw.sort(x)
    assert total.item() == items.sum()
    with gw.capture(device) as sequence:
        total, ordered = gw.sum(x), gw.sort(x)
    for _ in range(2):
        items = _items("u4")
        x.copy_from(items)
        sequence.execute()
        assert total.item() == items.sum()
        np.testing.assert_array_equal(ordered.to_numpy(), np.sort(items))


def test_threads_repeat_calls(device, calls):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            x = rng.integers(0, 1000, N, dtype=np.uint32)
            on_gpu = gw.asarray(x, device)
            if gw.sum(on_gpu).item() != x.sum() or (gw.sort(on_gpu).to_numpy() != np.sort(x)).any():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_functions_of_functions_are_seen_as_a_whole(device, calls):
    asked = []

    @one_shot()
    def added_up(x):
        asked.append(x.size)
        ordered = gw.sort(x)
        return gw.add(ordered, gw.scan(ordered))

    for _ in range(4):
        x = np.sort(_items("u4"))
        found = added_up(gw.asarray(x[::-1].copy(), device))
        np.testing.assert_array_equal(found.to_numpy(), x + np.cumsum(x, dtype=np.uint32))
    assert len(asked) <= 2


def test_a_function_that_looks_at_its_result_is_asked_each_time(device, calls):
    @one_shot()
    def checked(x):
        ordered = gw.sort(x)
        assert ordered[:1].item() > 0
        return ordered

    for _ in range(3):
        checked(gw.asarray(np.arange(1, 9, dtype=np.uint32), device))
    with pytest.raises(AssertionError):
        checked(gw.asarray(np.arange(8, dtype=np.uint32), device))


def test_nothing_is_kept_alive(device, calls):
    x = gw.asarray(_items("u4"), device)
    for _ in range(3):
        results = [gw.sum(x), gw.sort(x), gw.unique(x), gw.mean(gw.asarray(_items("f4"), device))]
    assert calls
    gone = [weakref.ref(each) for each in (x, *results)]
    in_use = gw.memory_stats(device).in_use_bytes
    del x, results
    assert [each() for each in gone] == [None] * len(gone)
    assert gw.memory_stats(device).in_use_bytes < in_use


def test_known_calls_go_with_their_primitives_and_are_bounded(device, calls):
    x = gw.asarray(np.arange(600, dtype=np.uint32), device)
    for n in range(300):
        assert gw.reduce(x[:n]).item() == n * (n - 1) // 2
    assert len(calls) <= 256
    kept = [weakref.ref(each) for each in context_of(device).known(("one-shot functions", gw.Reduce)).values()]
    context_of(device).forget(("one-shot functions", gw.Reduce))
    gc.collect()
    assert [each() for each in kept] == [None] * len(kept)
    assert gw.reduce(x[:299]).item() == 299 * 298 // 2
