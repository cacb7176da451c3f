"""The caching allocator: who gets which memory, what is kept for how long, and what happens when there is none."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest
import wgpu
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.backend.mapped_memory import MAP_USAGE
from gridwise_py.runtime import executor, memory
from gridwise_py.runtime.memory import block_bytes
from helpers import inside
from helpers.inside import block
from helpers.paths import ROOT

U = wgpu.BufferUsage
N = 1000
X = np.arange(N, dtype=np.uint32)


def blocks(device, count, n=N):
    """What `count` live Arrays get."""
    arrays = [gw.empty(n, "u32", device) for _ in range(count)]
    return {block(array) for array in arrays}


# ---- sizes


@given(st.integers(1, 1 << 34))
def test_a_block_has_room_and_wastes_little(size_bytes):
    found = block_bytes(size_bytes)
    assert found >= size_bytes
    assert found % 64 == 0
    assert found - size_bytes < max(64, min(size_bytes / 4, 32 << 20))
    assert block_bytes(found) == found
    assert block_bytes(size_bytes + 1) >= found


def test_few_sizes_serve_all_lengths():
    assert len({block_bytes(n) for n in range(1, 1 << 16)}) < 40


def test_a_block_is_no_larger_than_a_buffer_may_be(fresh_device, monkeypatch):
    limits = {**fresh_device.limits, "max-buffer-size": 1000}
    monkeypatch.setattr(type(fresh_device), "limits", limits)
    assert gw.empty(248, "u32", fresh_device).lease.buffer.size == 992
    with pytest.raises(gw.LimitError, match="max-buffer-size"):
        gw.empty(256, "u32", fresh_device)


# ---- who gets which memory


@pytest.mark.parametrize("first_to_go", [0, 1])
def test_memory_comes_back_when_an_array_goes_what_was_made_first_first(renewed_device, first_to_go):
    arrays = [gw.asarray(X, renewed_device) for _ in range(2)]
    was = [block(array) for array in arrays]
    del arrays[first_to_go]
    arrays.clear()
    c, d = gw.empty(N, "u32", renewed_device), gw.empty(N + 3, "f32", renewed_device)
    assert [block(c), block(d)] == was
    assert blocks(renewed_device, 1).isdisjoint(was)


def _run(array):
    primitive = gw.Copy(array.device)
    run = primitive.execute(input=gw.asarray(X, array.device), output=array)
    primitive.release()
    return run


def _primitive(array):
    primitive = gw.Copy(array.device)
    primitive.execute(input=array)
    return primitive


def _counted(array):
    return array.counted_by(gw.asarray(np.ones(1, np.uint32), array.device))


HOLDERS = (
    lambda array: array[3:5], _counted, lambda array: _counted(array).trim(), _run, _primitive,
    lambda array: gw.ChunkedArray([array])[2:9], lambda array: gw.Copy(array.device).bind(input=array),
)  # fmt: skip


def test_memory_stays_with_everything_that_shows_it(renewed_device):
    arrays = [gw.asarray(X, renewed_device) for _ in HOLDERS]
    was = [block(array) for array in arrays]
    held = [holder(array) for holder, array in zip(HOLDERS, arrays, strict=True)]
    del arrays
    gc.collect()
    assert blocks(renewed_device, 40).isdisjoint(was)
    del held
    gc.collect()
    assert blocks(renewed_device, 40).issuperset(was)


def test_what_others_may_hold_is_not_reused(renewed_device):
    """The buffer that a caller took, one that is destroyed, one of the caller's own, and one with a label."""
    raw = renewed_device.create_buffer(size=4096, usage=U.STORAGE | U.COPY_SRC | U.COPY_DST)
    own = gw.Array(raw, "u32")
    taken, destroyed = gw.asarray(X, renewed_device), gw.asarray(X, renewed_device)
    labelled = gw.empty(N, "u32", renewed_device, label="mine")
    was = {block(array) for array in (own, taken, destroyed, labelled)}
    assert labelled.buffer.label == "mine"
    buffer, view = taken.buffer, taken[1:]
    assert taken.buffer is buffer
    destroyed.destroy()
    del own, taken, destroyed, labelled, view
    gc.collect()
    assert was.isdisjoint(blocks(renewed_device, 20))
    assert gw.memory_stats(renewed_device).in_use_bytes == 4096, "the caller still has the buffer that it took"
    np.testing.assert_array_equal(gw.asarray(buffer, dtype="u32").to_numpy()[:N], X)
    del buffer
    assert gw.memory_stats(renewed_device).in_use_bytes == 0


@pytest.mark.needs("timestamp-query")  # of the profile
def test_the_library_itself_takes_no_buffer_for_good(renewed_device):
    """Each use in a call, a transfer or a stream leaves the memory to the allocator."""
    scan, add = gw.Scan(renewed_device, strategy="reduce_then_scan"), gw.VectorAdd(renewed_device)
    x, y = gw.asarray(X, renewed_device), gw.asarray(X, renewed_device)
    was = {block(x), block(y)}
    add.execute(a=x, b=y)
    y.copy_from(x).to_numpy()
    gw.cumsum(x)
    x[1:].copy_from(X[1:])
    with gw.profile(renewed_device):
        scan.execute(input=x, output=y)
    encoder = renewed_device.create_command_encoder()
    scan.record(encoder, input=x, output=y)
    renewed_device.queue.submit([encoder.finish()])
    list(gw.stream(scan, [X, X]))
    repr(x)
    allocations = gw.memory_stats(renewed_device).allocations
    list(gw.stream(scan, [X, X]))
    assert gw.memory_stats(renewed_device).allocations == allocations
    del x, y
    for primitive in (scan, add):
        primitive.release()
    assert was <= blocks(renewed_device, 40)


def test_garbage_in_a_cycle_brings_usable_memory_back(renewed_device):
    """The collector finalizes a cycle in any order, and a buffer that it finalized would end the process."""
    for _ in range(2):
        cycles = []
        for _ in range(10):
            array = gw.asarray(X, renewed_device)
            cycle = [array, array.lease]
            cycle.append(cycle)
            cycles.append(cycle)
        del array, cycle, cycles
        gc.collect()
        arrays = [gw.asarray(X + i, renewed_device) for i in range(10)]
        for i, array in enumerate(arrays):
            np.testing.assert_array_equal(
                gw.cumsum(array, dtype=np.uint32).to_numpy(), np.cumsum(X + i, dtype=np.uint32)
            )
    assert gw.memory_stats(renewed_device).reuses >= 20


# ---- the order of the queue


def test_an_array_that_goes_while_the_gpu_uses_it_keeps_its_content(device):
    """Its memory is filled with other items at once, but the queue keeps the order."""
    big = np.random.default_rng(0).integers(0, 1 << 32, 200_000, dtype=np.uint32)
    scan = gw.Scan(device)
    sums = np.cumsum(big, dtype=np.uint32)
    for way in ("asarray", "copy_from", "execute"):
        results, copy = [], gw.Copy(device)
        other = gw.asarray(big[::-1], device)
        for _ in range(5):
            results.append(scan.bind(input=gw.asarray(big, device)).execute().output)
            if way == "asarray":
                gw.asarray(big[::-1], device)
            elif way == "copy_from":
                gw.empty(big.size, "u32", device).copy_from(big[::-1])
            else:
                copy.bind(input=other).execute()
        for result in results:
            np.testing.assert_array_equal(result.to_numpy(), sums)


@pytest.mark.parametrize("finished", [False, True])
def test_recorded_commands_keep_their_memory_until_they_are_submitted(renewed_device, finished):
    """Inputs, outputs and temporary memory, although the caller dropped all of them, and the executor its plans."""
    scan = gw.Scan(renewed_device, strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=64, vecs=1))
    encoder = renewed_device.create_command_encoder()
    bound = scan.bind(input=gw.asarray(X, renewed_device))
    kept = {block(array) for array in bound.arrays.values()} | {lease.buffer.uid for lease in bound.bound_plan.leases}
    assert len(kept) > 3
    target = gw.empty(N, "u32", renewed_device)
    output = bound.record(encoder)["output"]
    gw.Copy(renewed_device).bind(input=output, output=target).record(encoder)
    scan.release()
    del bound, output
    commands = encoder.finish() if finished else None
    if finished:
        del encoder
    inside.forget_plans(renewed_device)
    gc.collect()
    sizes = (1, 4, 16, 64, N)
    fill = [gw.asarray(np.full(n, 7, np.uint32), renewed_device) for n in sizes for _ in range(20)]
    assert kept.isdisjoint({block(array) for array in fill})
    renewed_device.queue.submit([commands if finished else encoder.finish()])
    np.testing.assert_array_equal(target.to_numpy(), np.cumsum(X, dtype=np.uint32))
    # Later work comes after them in the queue, though the commands live on.
    more = [gw.empty(n, "u32", renewed_device) for n in sizes for _ in range(20)]
    assert kept & {block(array) for array in more}


def test_recorded_commands_that_are_dropped_give_their_memory_back(renewed_device):
    copy = gw.Copy(renewed_device)
    encoder = renewed_device.create_command_encoder()
    output = copy.record(encoder, input=gw.asarray(X, renewed_device))["output"]
    was = block(output)
    copy.release()
    del output
    assert was not in blocks(renewed_device, 5)
    commands = encoder.finish()
    del encoder
    assert was not in blocks(renewed_device, 5)
    del commands
    gc.collect()
    assert was in blocks(renewed_device, 5)


# ---- bounds


def test_small_blocks_are_bounded_by_size(renewed_device):
    arrays = [gw.empty(1, "u32", renewed_device) for _ in range(400)]
    del arrays
    stats = gw.memory_stats(renewed_device)
    assert (stats.in_use_blocks, stats.cached_blocks) == (0, 256)
    arrays = [gw.empty(50_000, "u32", renewed_device) for _ in range(40)]
    del arrays
    assert gw.memory_stats(renewed_device).cached_bytes <= (4 << 20) + 256 * 64


def test_no_more_is_kept_than_is_in_use_or_a_gib(renewed_device, monkeypatch):
    monkeypatch.setattr(memory, "_FREE_BYTES", 4 << 20)
    large = [gw.empty(1 << 18, "u32", renewed_device) for _ in range(10)]  # a MiB each
    del large[5:]
    assert gw.memory_stats(renewed_device).cached_bytes == 5 << 20, "as much as is in use"
    del large
    stats = gw.memory_stats(renewed_device)
    assert (stats.in_use_bytes, stats.cached_bytes, stats.peak_bytes) == (0, 4 << 20, 10 << 20)
    # What was needed last stays.
    array = gw.empty(3 << 18, "u32", renewed_device)
    del array
    stats = gw.memory_stats(renewed_device)
    assert stats.cached_bytes == 4 << 20
    assert block(gw.empty(3 << 18, "u32", renewed_device))
    assert gw.memory_stats(renewed_device).allocations == stats.allocations


class TestMemoryOfLoops:
    """A loop that needs more than is kept makes its memory twice, and not each time."""

    @pytest.fixture
    def clock(self, monkeypatch):
        monkeypatch.setattr(memory, "_FREE_BYTES", 4 << 20)
        now_s = [100.0]
        monkeypatch.setattr(memory, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
        return now_s

    @staticmethod
    def _made(device, blocks=10):
        """Return how many blocks had to be made for so many of a MiB, which go again."""
        before = gw.memory_stats(device).allocations
        held = [gw.empty(1 << 18, "u32", device) for _ in range(blocks)]
        made = gw.memory_stats(device).allocations - before
        del held
        return made

    def test_what_is_made_again_is_kept(self, renewed_device, clock):
        made = []
        for _ in range(20):  # more than a period in all
            made.append(self._made(renewed_device))
            clock[0] += 1
        assert made == [10, 6, *[0] * 18]
        assert gw.memory_stats(renewed_device).cached_bytes == 10 << 20

    def test_what_is_made_again_much_later_is_not(self, renewed_device, clock):
        made = []
        for _ in range(4):
            made.append(self._made(renewed_device))
            clock[0] += 11
        assert made == [10, 6, 6, 6]
        assert gw.memory_stats(renewed_device).cached_bytes == 4 << 20

    def test_what_nobody_needs_any_more_goes(self, renewed_device, clock):
        for _ in range(3):
            self._made(renewed_device)
        for _ in range(30):
            clock[0] += 1
            assert not self._made(renewed_device, 6)
        assert gw.memory_stats(renewed_device).cached_bytes == 6 << 20, "as much as the smaller loop takes"
        for _ in range(30):
            clock[0] += 1
            self._made(renewed_device, 1)
        assert gw.memory_stats(renewed_device).cached_bytes == 4 << 20


def test_what_memory_stats_counts(renewed_device):
    assert gw.memory_stats(renewed_device) == gw.MemoryStats(0, 0, 0, 0, 0, 0, 0, 0)
    x = gw.asarray(X, renewed_device)
    y = gw.empty(1, "u32", renewed_device)
    assert gw.memory_stats(renewed_device) == gw.MemoryStats(4096 + 64, 2, 0, 0, 4096 + 64, 2, 0, 0)
    del y
    view = x[3:]
    del x
    assert gw.memory_stats(renewed_device) == gw.MemoryStats(4096, 1, 64, 1, 4096 + 64, 2, 0, 0)
    view.destroy()
    assert gw.memory_stats(renewed_device) == gw.MemoryStats(0, 0, 64, 1, 4096 + 64, 2, 0, 0)
    one = gw.empty(3, "u32", renewed_device)
    assert gw.memory_stats(renewed_device) == gw.MemoryStats(64, 1, 0, 0, 4096 + 64, 2, 1, 0)
    del one
    assert gw.empty_cache(renewed_device) == 64
    assert gw.memory_stats(renewed_device) == gw.MemoryStats(0, 0, 0, 0, 4096 + 64, 2, 1, 1)
    assert gw.empty_cache(renewed_device) == 0
    gw.empty(3, "u32", renewed_device)
    assert gw.memory_stats(renewed_device) == gw.MemoryStats(0, 0, 64, 1, 4096 + 64, 3, 1, 2)


def test_temporary_memory_is_counted_and_comes_back(renewed_device):
    scan = gw.Scan(renewed_device, strategy="reduce_then_scan")
    x = gw.asarray(np.ones(300_000, np.uint32), renewed_device)
    y = gw.empty_like(x)
    before = gw.memory_stats(renewed_device).in_use_bytes
    bound = scan.bind(input=x, output=y)
    scratch_bytes = sum(lease.buffer.size for lease in bound.bound_plan.leases)
    assert scratch_bytes > 0
    assert gw.memory_stats(renewed_device).in_use_bytes == before + scratch_bytes
    scan.release()
    del bound
    inside.forget_plans(renewed_device)
    gc.collect()
    stats = gw.memory_stats(renewed_device)
    assert (stats.in_use_bytes, stats.cached_bytes) == (before, scratch_bytes)


@pytest.mark.parametrize("strategy", ["lookback", "reduce_then_scan"])
def test_plans_on_memory_with_old_contents_compute_the_same(renewed_device, monkeypatch, strategy):
    rng = np.random.default_rng(1)
    for n in (70_001, 30_001):
        inside.fill_memory(monkeypatch, renewed_device, 4, 64, N, n, 2 * n)
        x = rng.integers(0, 1 << 32, n, dtype=np.uint32)
        found = gw.Scan(renewed_device, strategy=strategy).execute(input=gw.asarray(x, renewed_device)).output
        np.testing.assert_array_equal(found.to_numpy(), np.cumsum(x, dtype=np.uint32))


# ---- a device that is short of memory


@pytest.fixture
def short(renewed_device, monkeypatch):
    """Return a function that lets the memory be full while `is_full()`; it returns how often memory was refused."""

    def make(is_full):
        create, refused = renewed_device.create_buffer, []

        def create_buffer(**options):
            if options["usage"] & ~MAP_USAGE == memory.ARRAY_USAGE and is_full():
                refused.append(1)
                raise wgpu.GPUOutOfMemoryError("Not enough memory left.")
            return create(**options)

        monkeypatch.setattr(renewed_device, "create_buffer", create_buffer, raising=False)
        return refused

    return make


def test_a_device_short_of_memory_empties_the_cache_and_goes_on(renewed_device, short):
    x = gw.asarray(X, renewed_device)
    kept = [gw.empty(n, "u32", renewed_device) for n in (1, 100, 100_000)]
    del kept
    refused = short(lambda: gw.memory_stats(renewed_device).cached_bytes > 0)
    y = gw.asarray(X[:17], renewed_device)
    assert len(refused) == 1
    assert gw.memory_stats(renewed_device).emptied == 1
    np.testing.assert_array_equal(y.to_numpy(), X[:17])
    np.testing.assert_array_equal(x.to_numpy(), X)


def test_plans_go_where_the_cache_was_not_enough(renewed_device, short):
    scan, x = gw.Scan(renewed_device), gw.asarray(X, renewed_device)
    scan.execute(input=x)
    assert inside.counts(renewed_device)["plans"] == 1
    refused = short(lambda: inside.counts(renewed_device)["plans"] > 0)
    y = gw.empty(17, "u32", renewed_device)
    assert len(refused) == 2
    assert inside.counts(renewed_device)["plans"] == 0
    np.testing.assert_array_equal(scan.execute().output.to_numpy(), np.cumsum(X, dtype=np.uint32))
    assert y.size == 17


def test_a_device_that_stays_short_says_what_to_do_and_keeps_what_it_has(renewed_device, short):
    scan, x = gw.Scan(renewed_device), gw.asarray(X, renewed_device)
    wanted = np.cumsum(X, dtype=np.uint32)
    first = scan.execute(input=x).output
    full = True
    refused = short(lambda: full)
    for call in (
        lambda: gw.empty(17, "u32", renewed_device),
        lambda: gw.asarray(X[:17], renewed_device),
        lambda: scan.execute(input=x),
        lambda: gw.Scan(renewed_device, strategy="reduce_then_scan").execute(input=x, output=first),
    ):
        refused.clear()
        with pytest.raises(gw.DeviceMemoryError, match="drop Arrays"):
            call()
        assert len(refused) >= 3
    np.testing.assert_array_equal(first.to_numpy(), wanted)
    full = False
    np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), wanted)


# ---- threads, ends


def test_a_destroyed_device_keeps_nothing(fresh_device):
    x, y = gw.asarray(X, fresh_device), gw.asarray(X, fresh_device)
    del x
    fresh_device.destroy()
    stats = gw.memory_stats(fresh_device)
    assert (stats.in_use_bytes, stats.in_use_blocks, stats.cached_bytes, stats.cached_blocks) == (0, 0, 0, 0)
    assert stats.allocations == 2
    assert gw.empty_cache(fresh_device) == 0
    del y
    with pytest.raises(gw.DeviceLostError):
        gw.empty(N, "u32", fresh_device)
    assert gw.empty_cache(fresh_device) == 0


# ---- calls that make their outputs


@pytest.mark.parametrize(("kept", "inputs"), [(0, 1), (1, 9), (5, 1), (5, 9)])
def test_a_call_that_makes_its_output_makes_and_binds_nothing_new(renewed_device, monkeypatch, kept, inputs):
    """Whether the caller keeps no output, the last, or some; and with several inputs by turns."""
    scan = gw.Scan(renewed_device)
    arrays = [gw.asarray(X + i, renewed_device) for i in range(inputs)]
    outputs = []

    def calls():
        for i in range(20 * inputs):
            outputs.append((scan.execute(input=arrays[i % inputs]).output, i % inputs))
            del outputs[: max(0, len(outputs) - kept)]

    calls()
    made = inside.note_calls(
        monkeypatch, renewed_device,
        "create_buffer", "create_buffer_with_data", "create_bind_group", "create_compute_pipeline",
    )  # fmt: skip
    calls()
    assert made == []
    for output, i in outputs:
        np.testing.assert_array_equal(output.to_numpy(), np.cumsum(X + i, dtype=np.uint32))
    made.clear()
    gw.empty(1 << 16, "u32", renewed_device)
    assert made == ["create_buffer"], "the watch works"


def test_a_repeated_call_looks_at_its_arguments_all_the_same(renewed_device):
    scan = gw.Scan(renewed_device)
    x, sums = gw.asarray(X, renewed_device), np.cumsum(X, dtype=np.uint32)
    for _ in range(2):
        scan.execute(input=x)
    # Not the call before: only the first item counts.
    counted = scan.execute(input=x.counted_by(gw.asarray(np.ones(1, np.uint32), renewed_device))).output
    np.testing.assert_array_equal(counted.to_numpy(), sums[:1])
    scan.execute(input=x)
    with pytest.raises(gw.DatatypeError, match="numpy array"):
        scan.execute(input=x, output=np.empty(N, np.uint32))
    with pytest.raises(gw.ArgumentError, match="trials"):
        scan.execute(input=x, trials=0)
    with pytest.raises(gw.DatatypeError):
        scan.execute(input=gw.Array(x.buffer, "f32"))
    y = gw.asarray(X, renewed_device)
    for _ in range(5):  # on each of the blocks that take turns
        scan.execute(input=y)
    y.destroy()
    with pytest.raises(gw.BufferUsageError, match="destroyed"):
        scan.execute(input=y)
    np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), sums)


def test_what_is_left_out_is_that_of_the_last_call(renewed_device):
    """An output that was given stays; None asks for a new one."""
    scan, x = gw.Scan(renewed_device), gw.asarray(X, renewed_device)
    made = [scan.execute(input=x).output for _ in range(3)]
    assert len({id(array.lease) for array in made}) == 3
    y = gw.empty(N, "u32", renewed_device)
    assert scan.execute(input=x, output=y).output is y
    assert scan.execute(input=x).output is y
    assert scan.execute().output is y
    new = scan.execute(input=x, output=None).output
    assert new is not y
    assert scan.execute().output is new
    assert scan.execute(input=x).output is not new
    pairs = gw.SortPairs(renewed_device)
    keys = gw.asarray(X[::-1], renewed_device)
    for _ in range(3):
        run = pairs.execute(keys=keys, values=x, output_keys=None, output_values=y)
        arrays = pairs.bind(keys=keys, values=x, output_keys=None, output_values=y).arrays
        assert list(arrays) == ["keys", "values", "output_keys", "output_values"]
        assert run.outputs["output_values"] is y
        np.testing.assert_array_equal(run.outputs["output_keys"].to_numpy(), X)
        np.testing.assert_array_equal(y.to_numpy(), X[::-1])


def test_a_known_call_counts_as_a_use_of_its_plan_and_its_binding(renewed_device, monkeypatch):
    """What is in use stays, while others are dropped."""
    monkeypatch.setattr(executor, "_MAX_BINDINGS", 4)
    monkeypatch.setattr(executor, "_MAX_PLANS", 3)
    scan, x = gw.Scan(renewed_device), gw.asarray(X, renewed_device)
    y = gw.empty(N, "u32", renewed_device)
    kept = scan.bind(input=x, output=y).bound_plan
    others = [gw.empty(N, "u32", renewed_device) for _ in range(12)]
    for i in range(8):
        gw.Scan(renewed_device).execute(input=x[: N - 1 - i])
        assert scan.bind(input=x, output=y).bound_plan is kept
    for other in others:
        scan.execute(input=x, output=other)
        assert scan.bind(input=x, output=y).bound_plan is kept
    assert inside.counts(renewed_device)["plans"] <= 3


def test_in_place_is_known_of_a_repeated_call(renewed_device):
    sort = gw.Sort(renewed_device, overwrite_input=True)
    for i in range(3):
        x = gw.asarray(np.roll(X, i)[::-1], renewed_device)
        run = sort.execute(input=x)
        assert run.output is x
        with pytest.raises(gw.OverlapError, match="trials"):
            sort.execute(input=x, trials=2)
        np.testing.assert_array_equal(x.to_numpy(), X)


# ---- soak


@pytest.mark.parametrize("calls", [300, pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_two_live_arrays_share_memory(renewed_device, monkeypatch, calls):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import memory_soak

    levels = memory_soak.Soak(renewed_device, 1).run(calls)
    assert max(levels[5:]) <= 2 * max(levels[:5])
