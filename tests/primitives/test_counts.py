"""Only so many items count: ``execute(n=)`` with an int or an Array on the GPU, and Arrays that carry a count."""

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.runtime.context import DeviceContext
from helpers import inside
from helpers.strategies import assert_same, make_primitive, quick_first

TILE = 4 * 64  # of the shapes below
SHAPE = {"workgroup_size": 64, "vecs": 1}
FEW_BLOCKS = {**SHAPE, "max_blocks": 6}
CAPACITY = 40 * TILE + 5
COUNTS = [CAPACITY, 0, 1, TILE - 1, TILE, TILE + 1, 7 * TILE, 13 * TILE + 3, CAPACITY - 1, CAPACITY + 1, 2**32 - 1]


def number(value, device):
    return gw.asarray(np.array([value], dtype=np.uint32), device)


def keys(n=CAPACITY, seed=0):
    return np.random.default_rng(seed).integers(0, 1 << 32, n, dtype=np.uint32)


def floats(n=CAPACITY, seed=0):
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


# ---- every primitive that takes a count, against its reference for the items that count


CASES = {
    "copy": (gw.Copy, {}),
    "reduce": (gw.Reduce, FEW_BLOCKS),
    "xor": (gw.Reduce, {"op": gw.Xor, **FEW_BLOCKS}),  # sums of integers publish nothing
    "scan": (gw.Scan, {"strategy": "lookback", **SHAPE}),
    "sort": (gw.Sort, {"strategy": "onesweep", "items": 2, "parts": 2}),
    "argsort": (gw.ArgSort, {"items": 2, "parts": 2}),
}


def inputs_of(primitive, n, device):
    arrays = {}
    for seed, name in enumerate(primitive.signature.inputs):
        datatype = primitive.signature.datatype(name)
        items = keys(n, seed) if datatype.itemsize_bytes > 2 else keys(n, seed) % 100
        arrays[name] = (floats(n, seed) if datatype.name == "f32" else items).astype(datatype.dtype)
    return arrays, {name: gw.asarray(items, device) for name, items in arrays.items()}


def check_call(primitive, items, arrays, n, run):
    want = primitive.reference(**{name: each[: min(n, each.size)] for name, each in items.items()})
    for name, each in zip(primitive.signature.outputs, want if isinstance(want, tuple) else (want,), strict=True):
        assert_same(run.outputs[name].to_numpy(), np.asarray(each, run.outputs[name].dtype), f"{name}, n={n}")


def test_any_count_of_any_room(device):
    """test_every_primitive.py has all primitives; here are blocks and tiles that no item is left for."""
    for name in ("reduce", "xor", "scan"):
        cls, options = CASES[name]
        primitive = make_primitive(cls, device, **options)
        for capacity in (CAPACITY, 0, 1, 5, TILE, TILE + 1):
            items, arrays = inputs_of(primitive, capacity, device)
            n = number(0, device)
            for count in COUNTS if capacity == CAPACITY else (capacity, 0, 3):
                n.copy_from(np.array([count], dtype=np.uint32))
                run = primitive.execute(**arrays, n=n)
                check_call(primitive, items, arrays, count, run)
                assert all(output.count is n for output in run.outputs.values()) or cls is gw.Reduce


@pytest.mark.parametrize("name", ["copy", "reduce", "argsort"])
def test_as_many_items_count_as_the_host_says(device, name):
    cls, options = CASES[name]
    primitive = make_primitive(cls, device, **options)
    items, arrays = inputs_of(primitive, 1000, device)
    for count in (1000, 0, 1, 999, 5000, np.uint8(7)):
        run = primitive.execute(**arrays, n=count)
        check_call(primitive, items, arrays, int(count), run)
        assert all(output.count is None for output in run.outputs.values())


def test_items_behind_the_count_stay_where_they_are_sorted_in_place(device):
    x, n = gw.asarray(keys(), device), number(999, device)
    make_primitive(gw.Sort, device, overwrite_input=True, items=2, parts=2).execute(input=x, n=n)
    np.testing.assert_array_equal(x.to_numpy(), np.concatenate([np.sort(keys()[:999]), keys()[999:]]))


# ---- floats: the same bits as an array of that length


@pytest.mark.parametrize(
    ("cls", "options"),
    quick_first([(gw.Reduce, {"deterministic": True}), (gw.Scan, {"compensated": True})],
                [(gw.Reduce, {"compensated": True})]),
)  # fmt: skip
def test_a_fixed_order_is_that_of_the_items_that_count(device, cls, options):
    """With 4,096 items a tile and 528 blocks, fewer items may make more blocks, of fewer tiles."""
    primitive = cls(device, "f32", **options)
    capacity = 530 * 4096
    x = floats(capacity)
    x[:3] = -0.0
    array = gw.asarray(x, device)
    for count in (capacity, 527 * 4096 + 5, 3 * 4096 + 1, 4096, 77, 3, 1, 0):
        got = primitive.execute(input=array, n=number(count, device)).output.to_numpy()
        want = primitive.execute(input=array[:count]).output.to_numpy()
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32), err_msg=f"{count} items")


def test_no_items_give_the_identity(device):
    for op, datatype in (("add", "f32"), ("multiply", "i32"), ("min", "f32"), ("max", "i32")):
        primitive = gw.Reduce(device, datatype, op)
        array = gw.asarray(np.ones(5000, gw.DATATYPES[datatype].dtype), device)
        got = primitive.execute(input=array, n=number(0, device)).output.to_numpy()
        np.testing.assert_array_equal(got, [primitive.op.identity_for(primitive.datatype)])
        if op in ("add", "multiply"):
            want = primitive.execute(input=array[:0]).output.to_numpy()
            np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


# ---- the epoch: tiles without items publish, too


@pytest.fixture
def spoilt(monkeypatch):
    """Return a function that changes the texts that are composed from now on."""

    def spoil(*changes):
        def change(name, text):
            for old, new in changes if "params.tiles" in text else ():
                text = text.replace(old, new)
            return text

        inside.change_texts(monkeypatch, change)

    yield spoil
    inside.forget_texts()


# Later tiles first: each looks back before the earlier ones have published.
BACKWARDS = ("fn state_enter(workgroup: u32) -> u32 { return workgroup; }",
             "fn state_enter(workgroup: u32) -> u32 { return params.tiles - 1u - workgroup; }")  # fmt: skip
CHAINED = {
    "scan": (gw.Scan, {"strategy": "lookback", "spin_limit": 2, "tickets": False, "epoch_bits": 1, **SHAPE}),
    "sort": (gw.Sort, {"strategy": "onesweep", "spin_limit": 2, "tickets": False, "items": 2, "parts": 2}),
}
POSTS = {
    "scan": "      state_publish(tile, TOTAL, identity());\n",
    "sort": "      digit_publish(tile, lane, COUNT, 0u);\n",
}


def wrong_calls(primitive, device):
    """Alternate between few and many items, with other items in each call; return how many calls were wrong."""
    wrong, x, n = 0, gw.empty(CAPACITY, "u32", device), gw.empty(1, "u32", device)
    for call, count in enumerate((CAPACITY, 300, CAPACITY, 0, CAPACITY, 300, 700, CAPACITY)):
        items = keys(seed=call)
        x.copy_from(items)
        n.copy_from(np.array([count], dtype=np.uint32))
        got = primitive.execute(input=x, n=n).output.to_numpy()
        wrong += not np.array_equal(got, primitive.reference(input=items[:count]))
    return wrong


@pytest.mark.parametrize("name", quick_first(["scan"], CHAINED))
def test_counts_that_alternate_with_one_bit_of_epoch(device, spoilt, name):
    cls, options = CHAINED[name]
    spoilt(BACKWARDS)
    assert wrong_calls(make_primitive(cls, device, **options), device) == 0


@pytest.mark.needs("lavapipe")  # it runs workgroups in order
@pytest.mark.parametrize("name", CHAINED)
def test_silent_tiles_without_items_would_be_seen(device, spoilt, name):
    """What the test above guards against: words that are two dispatches old pass for new ones."""
    cls, options = CHAINED[name]
    primitive = make_primitive(cls, device, **options)
    layout = gw.Layout.separate(input=CAPACITY, n=1, output=CAPACITY)
    assert any(POSTS[name] in shader.text for shader in primitive.plan(layout).shaders.values())
    spoilt(BACKWARDS, (POSTS[name], ""))
    assert wrong_calls(make_primitive(cls, device, **options), device) > 0


@pytest.mark.parametrize(("name", "stall_every"), [("scan", 3), ("xor", 1), ("sort", 3)])
def test_counts_that_alternate_with_stalls(device, name, stall_every):
    cls, options = CASES[name]
    if name != "sort":
        options = {**options, "epoch_bits": 1}
    primitive = make_primitive(cls, device, stall_every=stall_every, spin_limit=2, **options)
    assert wrong_calls(primitive, device) == 0
    items, arrays = inputs_of(primitive, CAPACITY, device)
    for count in (CAPACITY, 3 * TILE, CAPACITY, 1, 5 * TILE, 0):
        check_call(primitive, items, arrays, count, primitive.execute(**arrays, n=number(count, device), trials=3))


# ---- Arrays that carry their count


@pytest.fixture
def counted(device):
    """1,000 items, of which 321 count."""
    return gw.asarray(keys(1000), device).counted_by(number(321, device))


def test_a_counted_array_brings_its_count_along(device, counted):
    x = keys(1000)[:321]
    assert gw.Reduce(device).execute(input=counted).output.item() == x.sum(dtype=np.uint32)
    run = gw.Sort(device).execute(input=counted)
    assert run.output.count is counted.count
    assert run.output.size == 1000
    np.testing.assert_array_equal(run.output.to_numpy(), np.sort(x))
    again = gw.Scan(device).execute(input=run.output, n=counted.count)
    np.testing.assert_array_equal(again.output.to_numpy(), np.cumsum(np.sort(x), dtype=np.uint32))
    both = gw.VectorAdd(device).execute(a=counted, b=gw.asarray(keys(1000, 1), device))
    np.testing.assert_array_equal(both.output.to_numpy(), x + keys(1000, 1)[:321])


def test_one_shot_functions_take_counted_arrays(device, counted):
    x = keys(1000)[:321]
    assert gw.sum(counted).item() == x.sum()
    assert gw.max(counted).item() == x.max()
    np.testing.assert_array_equal(gw.cumsum(counted).to_numpy(), np.cumsum(x))
    np.testing.assert_array_equal(gw.sort(counted).to_numpy(), np.sort(x))
    np.testing.assert_array_equal(gw.argsort(counted).to_numpy(), np.argsort(x, kind="stable"))
    sorted_keys, order = gw.sort_pairs(counted, gw.asarray(np.arange(1000, dtype=np.uint32), device))
    np.testing.assert_array_equal(sorted_keys.to_numpy(), np.sort(x))
    np.testing.assert_array_equal(order.to_numpy(), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(gw.add(counted, counted).to_numpy(), x + x)
    out = gw.empty(1000, "u32", device)
    result = gw.sort(counted, out=out)
    assert result.count is counted.count
    assert result.lease is out.lease
    np.testing.assert_array_equal(result.to_numpy(), np.sort(x))


@pytest.mark.parametrize("dtype", ["u32", "i32"])
@pytest.mark.parametrize("mode", [None, "wrap", "clip", "raise"])
def test_so_many_indices_take_so_many_items(device, dtype, mode):
    values = np.arange(1, 11, dtype=np.float32)
    x, last = gw.asarray(values, device), -1 if dtype == "i32" else 2**32 - 1
    low = [-1, -10, -11, -25, -(2**31)] if dtype == "i32" else []
    for wanted in ([0, 3, 9], [], [12, 25, 3, 2**31 - 1, last, *low]):
        chosen = np.array(wanted, np.int64)
        room = gw.asarray(np.append(chosen, [7, 7]).astype(gw.DATATYPES[dtype].dtype), device)
        indices = room.counted_by(number(chosen.size, device))
        if mode == "raise" and chosen.size > 3:
            with pytest.raises(gw.BoundsError):
                gw.take(x, indices, mode=mode)
            continue
        found = gw.take(x, indices, mode=mode)
        assert mode == "raise" or found.count is indices.count
        assert_same(found.to_numpy(), np.take(values, chosen, mode=mode if mode == "clip" else "wrap"))
        assert mode is not None or gw.sum(x[indices]).item() == found.to_numpy().sum()
    rows = gw.asarray(values.reshape(5, 2), device)
    for refused in (lambda: gw.take(rows, indices, 0), lambda: gw.take(x.astype("f16"), indices)):
        with pytest.raises(gw.ArgumentError, match=r"indices\.trim\(\)"):
            refused()


def test_the_first_items_of_a_counted_array(device, counted):
    for k in (0, 5, 321, 400, 2000):
        first = counted[:k]
        assert first.count is counted.count
        np.testing.assert_array_equal(first.to_numpy(), keys(1000)[: min(k, 321)])
        assert gw.Reduce(device).execute(input=first).output.item() == keys(1000)[: min(k, 321)].sum(dtype=np.uint32)
    for wrong in (slice(1, None), slice(None, -1), slice(None, None, 2), 3, slice(-5, None), [1, 2]):
        with pytest.raises(gw.ArgumentError):
            counted[wrong]


def test_calls_are_told_apart_by_their_counts(device):
    """The same items with another count, or without one, are another call."""
    scan, x = gw.Scan(device), gw.asarray(np.ones(500, dtype=np.uint32), device)
    out, five, six = gw.empty(500, "u32", device), number(5, device), number(6, device)
    for _ in range(2):
        for array, size in ((x.counted_by(five), 5), (x.counted_by(six), 6), (x, 500), (x.counted_by(five), 5)):
            assert scan.execute(input=array, output=out).output.to_numpy().size == size
            assert scan.execute(input=array).output.to_numpy().size == size
    assert scan.execute(input=x, n=five).output.to_numpy().size == 5
    assert scan.execute().output.to_numpy().size == 5, "a repetition is the same call"
    assert scan.execute(output=out).output.to_numpy().size == 5
    assert scan.execute(input=x).output.to_numpy().size == 500, "a count is about the inputs of its call"
    assert scan.execute(input=x, output=out).output.count is None
    assert scan.execute(input=x, n=None).output.count is None


def test_counts_that_do_not_fit_are_refused(device, counted):
    x, five = gw.asarray(keys(1000), device), number(5, device)
    scan, add = gw.Scan(device), gw.VectorAdd(device)
    before = scan.execute(input=x)
    wrong = [
        (lambda: scan.execute(input=counted, n=five), "another count"),
        (lambda: scan.execute(input=counted, n=5), r"input\[:5\]"),
        (lambda: add.execute(a=counted, b=x.counted_by(five)), "different counts"),
        (lambda: scan.execute(input=x, n=-1), "at least 0"),
        (lambda: scan.execute(input=x, n=2.0), "at least 0"),
        (lambda: scan.execute(input=x, n=True), "at least 0"),
        (lambda: scan.execute(n=five), "input= with it"),
        (lambda: scan.execute(input=x, n=x), "takes 1"),
        (lambda: scan.execute(input=x, n=gw.asarray(np.ones(1, np.float32), device)), "u32"),
        (lambda: gw.Copy(device).execute(input=x.reshape(10, 100), n=five), "ravel"),
        (lambda: gw.Copy(device).execute(input=x.reshape(10, 100), n=5), "ravel"),
        (lambda: gw.Copy(device).execute(input=gw.ChunkedArray([x, x]), n=five), "ChunkedArray"),
        (lambda: gw.MatMul(device, m=10, n=10, k=100).execute(a=counted, b=x), r"a\.trim\(\)"),
        (lambda: gw.take(counted, [1, 2]), r"trim\(\)"),
        (lambda: gw.sum(counted.reshape(10, 100)), r"trim\(\)"),
    ]
    for call, message in wrong:
        with pytest.raises(gw.ArgumentError, match=message):
            call()
    np.testing.assert_array_equal(scan.execute().output.to_numpy(), before.output.to_numpy(), "the last call stays")


def test_a_count_is_refused_where_the_room_needs_several_bindings(device):
    narrow = gw.Capabilities(limits={"max-storage-buffer-binding-size": 40_000})
    layout = gw.Layout.separate(input=CAPACITY, n=1, output=CAPACITY)
    for cls, options in ((gw.Scan, {"strategy": "lookback"}), (gw.Scan, {"strategy": "reduce_then_scan"})):
        with pytest.raises(gw.LimitError, match=r"trim\(\)"):
            cls(None, capabilities=narrow, **options).plan(layout)
    with pytest.raises(gw.LimitError, match=r"trim\(\)"):
        gw.Reduce(None, capabilities=narrow).plan(gw.Layout.separate(input=CAPACITY, n=1, output=1))


# ---- nothing is read


def test_a_chain_reads_nothing_back(device, monkeypatch):
    """A capture raises where anything is read, uploaded or waited for; and a replay finds the new counts."""
    reads, read_buffer = [], DeviceContext.read_buffer

    def noting(*args, **kwargs):
        reads.append(args)
        return read_buffer(*args, **kwargs)

    monkeypatch.setattr(DeviceContext, "read_buffer", noting)
    x, counts = gw.asarray(keys(), device), gw.asarray(np.array([5000, 6000], dtype=np.uint32), device)
    least, copy = gw.Reduce(device, "u32", "min"), gw.Copy(device)
    with gw.capture(device) as sequence:
        n = least.execute(input=counts).output  # computed by the call before
        ordered = gw.sort(copy.execute(input=x, n=n).output)
        total = gw.sum(gw.cumsum(ordered))
    for size in (5000, 0, 900, CAPACITY):
        counts.copy_from(np.array([size, CAPACITY], dtype=np.uint32))
        sequence.execute()
        assert ordered.count is n
        assert reads == []
        assert total.item() == np.cumsum(np.sort(keys()[:size])).sum()
        assert len(reads) == 1, "a read is seen"
        reads.clear()


# ---- times


def test_the_work_of_a_plan_is_that_of_the_room(device):
    scan = gw.Scan(None, capabilities=gw.Capabilities())
    plan = scan.plan(gw.Layout.separate(input=1000, n=1, output=1000))
    assert (plan.work.items, plan.work.read_bytes, plan.work.write_bytes, plan.work.flops) == (1000, 4000, 4000, 999)
    true = plan.work.with_counts({"n": 10})
    assert true == gw.Work(10, 40, 40, 9)
    assert plan.work.with_counts({"n": 5000}).moved_bytes == plan.work.moved_bytes
    assert plan.work.with_counts({}) == plan.work
    assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")
    pairs = gw.SortPairs.plan_for(
        capabilities=gw.Capabilities(),
        lengths={"keys": 100, "values": 100, "n": 1, "output_keys": 100, "output_values": 100},
    )
    assert pairs.work.with_counts({"n": 3}).moved_bytes == 3 * 16


@pytest.mark.parametrize("how", ["now", "batch", "encoder", "bound"])
def test_a_timed_call_tells_the_bytes_of_the_items_that_counted(device, require, how):
    require("timestamp-query")
    x, n, scan = gw.asarray(keys(1000), device), number(10, device), gw.Scan(device)
    if how == "batch":
        with gw.batch(device):
            run = scan.execute(input=x, n=n, enable_gpu_timing=True)
    elif how == "encoder":
        encoder = device.create_command_encoder()
        run = scan.execute(input=x, n=n, enable_gpu_timing=True, encoder=encoder)
        device.queue.submit([encoder.finish()])
    elif how == "bound":
        run = scan.bind(input=x, n=n).execute(enable_cpu_timing=True)
    else:
        run = scan.execute(input=x, n=n, enable_gpu_timing=True, enable_cpu_timing=True)
    n.copy_from(np.array([999], dtype=np.uint32))  # of the next call
    result = run.get_timing_result()
    assert result.work == gw.Work(10, 40, 40, 9)
    assert result.labels == ("scan",), "the copy of the count is no kernel"


def test_a_measurement_is_of_the_items_that_counted(device):
    protocol = gw.SamplingProtocol(min_samples=3, timeout_s=0.1, warmup_s=0.0, max_warmup_s=0.01, check_unit=False)
    counted = gw.asarray(keys(1000), device).counted_by(number(321, device))
    measured = gw.measure(gw.Copy(device), input=counted, protocol=protocol)
    assert measured.work == {"items": 321, "read_bytes": 4 * 321, "write_bytes": 4 * 321, "flops": 0}
    assert measured.correct


_X = np.arange(10_000, dtype=np.uint32)
#: Streams, their inputs, and the bytes that are read and written: the counts are 4 or 8 of them.
STREAM_BYTES = {
    "select": (gw.Select, {}, {"input": _X, "flags": _X % 10 == 0}, 50_000, 4_004),
    "select nothing": (gw.Select, {}, {"input": _X, "flags": _X < 0}, 50_000, 4),
    "select into a small room": (gw.Select, {"size": 7}, {"input": _X, "flags": _X % 10 == 0}, 50_000, 32),
    "count alone": (gw.Select, {"size": 0}, {"input": _X, "flags": _X % 10 == 0}, 50_000, 4),
    "select of structs": (gw.Select, {"dtype": "c64"}, {"input": _X + 0j, "flags": _X < 100}, 90_000, 804),
    "partition": (gw.Partition, {}, {"input": _X, "flags": _X % 10 == 0}, 50_000, 40_008),
    "partition into small rooms": (gw.Partition, {"size": 9}, {"input": _X, "flags": _X < 5}, 50_000, 80),
    "unique": (gw.Unique, {}, {"keys": _X // 10}, 40_000, 4_004),
    "unique, with the values that are kept": (
        gw.Unique, {"value_dtype": "u64"}, {"keys": _X // 10, "values": _X.astype(np.uint64)}, 48_000, 12_004,
    ),
    "run_length": (gw.RunLength, {}, {"keys": _X // 10}, 40_000, 12_004),
    "starts of runs": (gw.RunLength, {"outputs": ("starts",)}, {"keys": _X // 10}, 40_000, 4_004),
}  # fmt: skip


_RARE = ("select of structs", "unique, with the values that are kept", "starts of runs")


@pytest.mark.parametrize("name", quick_first([name for name in STREAM_BYTES if name not in _RARE], _RARE))
def test_a_timed_stream_tells_the_bytes_of_what_it_wrote(device, name):
    made, options, inputs, read_bytes, write_bytes = STREAM_BYTES[name]
    arrays = {key: gw.asarray(items.astype(np.complex64) if items.dtype.kind == "c" else items, device)
              for key, items in inputs.items()}  # fmt: skip
    primitive = made(device, **options)
    run = primitive.execute(**arrays, enable_cpu_timing=True)
    assert run.get_timing_result().work == gw.Work(10_000, read_bytes, write_bytes)
    assert run.plan.work.with_counts({"count": 1 << 31}).moved_bytes == run.plan.work.moved_bytes, "no more than fits"
    assert gw.Plan.from_json(run.plan.to_json()) == run.plan.with_checks("all")
    if len(arrays) == 1 and not options:  # of 100 of the items; a run of 10 gives one
        run = primitive.execute(**arrays, n=100, enable_cpu_timing=True)
        found = run.get_timing_result().work
        assert (found.items, found.read_bytes) == (100, 400)
        assert found.write_bytes == 4 + (write_bytes - 4) // 100


def test_no_count_is_read_unless_it_is_asked_for(device, monkeypatch):
    x = gw.asarray(_X, device)
    select = gw.Select(device, gw.u32("x"), where=gw.u32("x") < 10)
    run = select.execute(x=x, enable_cpu_timing=True)
    reads, real = [], gw.Array.to_numpy
    monkeypatch.setattr(gw.Array, "to_numpy", lambda self: reads.append(self) or real(self))
    for _ in range(2):
        select.execute(x=x)
        run = select.execute(x=x, enable_cpu_timing=True)
    assert reads == []
    assert run.get_timing_result().work.write_bytes == 44
    assert len(reads) == 1, "a read is seen"


# ---- expressions of counted Arrays


def test_expressions_of_counted_arrays_are_counted(device):
    x, y = floats(1000), floats(1000, 1)
    n = number(321, device)
    counted, other = gw.asarray(x, device).counted_by(n), gw.asarray(y, device)
    stored = gw.asarray(counted + other)
    assert stored.count is n
    np.testing.assert_array_equal(stored.to_numpy(), (x + y)[:321])
    largest = gw.Reduce(device, gw.f32("a") - gw.f32("b"), "max").execute(a=counted, b=other).output
    assert largest.item() == (x - y)[:321].max()
    with pytest.raises(gw.ArgumentError, match="different counts"):
        gw.asarray(counted + other.counted_by(number(5, device)))
    with pytest.raises(gw.ArgumentError, match="different counts"):  # of the same items
        gw.asarray(counted + counted.counted_by(number(5, device)))
    with pytest.raises(gw.ArgumentError, match="'n'"):
        gw.Map(device, gw.f32("n") + 1.0)


def test_expressions_end_with_the_items_that_count(device):
    """What is read beside an item: the next one, from behind, and anywhere."""
    x, n = floats(1000), number(321, device)
    array = gw.asarray(x, device)
    counted, y = array.counted_by(n), x[:321]
    np.testing.assert_array_equal(gw.asarray(gw.flip(counted)).to_numpy(), y[::-1])
    np.testing.assert_array_equal(gw.asarray(gw.next(counted)).to_numpy(), np.append(y[1:], y[-1]))
    places = gw.asarray(np.arange(999, -1, -1, dtype=np.uint32), device).counted_by(n)
    gathered = gw.Map(device, gw.f32("a")[gw.u32("i")])
    np.testing.assert_array_equal(gathered.execute(a=array, i=places).output.to_numpy(), x[::-1][:321])
    np.testing.assert_array_equal(gathered.execute(a=array, i=places.trim(), n=5).output.to_numpy(), x[::-1][:5])
    with pytest.raises(gw.ArgumentError, match=r"a\.trim\(\)"):
        gathered.execute(a=counted, i=places)
    points = gw.f32("p", components=3)
    summed = gw.Map(device, points.x + points.z)
    for count in (7, number(7, device)):
        got = summed.execute(p=array[:999], n=count).output.to_numpy()
        np.testing.assert_array_equal(got, x[:21:3] + x[2:21:3])
