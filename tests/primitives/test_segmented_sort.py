"""Sorts of segments: every length, datatype and mode against numpy's stable sort of each segment."""

import itertools

import numpy as np
import pytest

import gridwise_py as gw
from helpers.sorting import keys_of, order_of
from helpers.strategies import quick_first

#: Tiles of 1,024, windows of 300: segments of more than 725 are long.
SMALL = {"workgroup_size": 256, "items": 4, "window": 300}
TILE, MOST = 1024, 725
OFFSETS = ("each", "eights", "around", "long", "one", "none", "empties", "all empty", "inner", "mixed", "overhang")


def _offsets(kind, n, rng):
    """Offsets of n items: in order, within n."""
    if kind == "none":
        return np.zeros(1, np.uint32)
    if kind == "all empty":
        return np.full(40, n // 2, np.uint32)
    if kind == "inner":
        return np.sort(rng.integers(0, n + 1, n // 50 + 2)).astype(np.uint32)
    if kind == "empties":  # more than a workgroup looks at one by one
        some = np.concatenate([np.zeros(3000, int), rng.integers(0, n + 1, 20), np.full(3000, n)])
        return np.sort(some).astype(np.uint32)
    lengths = {
        "each": [1], "eights": [8], "around": [MOST - 1, MOST, MOST + 1, 0, TILE - 1, TILE, TILE + 1, 1],
        "long": [5000], "one": [n + 1], "mixed": [3, 2000, 0, 1, 700, 800, 31, 33],
        "overhang": [299, 300, MOST],  # the windows in which these begin have more than a tile
    }[kind]  # fmt: skip
    bounds = np.cumsum(
        [0, *itertools.islice(itertools.cycle(lengths), n // max(lengths) * len(lengths) + len(lengths))]
    )
    return np.append(bounds[bounds < n], n).astype(np.uint32)


def _order(keys, offsets, descending=False):
    """The stable order of each segment, one by one."""
    order = np.arange(keys.size)
    for begin, end in itertools.pairwise(offsets.tolist()):
        order[begin:end] = begin + order_of(keys[begin:end], descending)
    return order


def _check(sort, device, keys, offsets, values=None, *, given=True, **options):
    """Compare the bits of all items that are in a segment."""
    arrays = {"keys": keys, **({"offsets": offsets} if given else {}), **({} if values is None else {"values": values})}
    run = sort.execute(**{name: gw.asarray(items, device) for name, items in arrays.items()}, **options)
    order, inside = _order(keys, offsets, sort.descending), slice(offsets[0], offsets[-1])
    assert run.outputs["output_keys"].to_numpy()[inside].tobytes() == keys[order][inside].tobytes()
    if values is not None:
        assert run.outputs["output_values"].to_numpy()[inside].tobytes() == values[order][inside].tobytes()
    return run


@pytest.fixture
def sort(device):
    return gw.SegmentedSort(device, "u32", tuning=gw.SegmentedSortTuning(**SMALL))


@pytest.mark.parametrize("n", [0, 1, 2, 299, 300, 301, 1023, 1025, 20_011])
def test_offsets_of_every_kind(device, sort, n):
    rng = np.random.default_rng(n)
    keys = keys_of("u32", n)
    for kind in OFFSETS:
        _check(sort, device, keys, _offsets(kind, n, rng), trials=3)


@pytest.mark.parametrize("n", [0, 1, 5, TILE - 1, TILE, TILE + 1, 10_007])
def test_segments_of_one_length(device, n):
    keys = keys_of("u32", n)
    for length in (1, 2, 33, 256, TILE, TILE + 1, 3 * TILE + 1, max(n, 1)):
        sort = gw.SegmentedSort(device, "u32", length=length, tuning=gw.SegmentedSortTuning(**SMALL))
        offsets = np.append(np.arange(0, n, length), n)
        _check(sort, device, keys, offsets, given=False, trials=3)


@pytest.mark.parametrize(
    ("datatype", "value"),
    quick_first([("f64", "u32")], list(itertools.product(gw.SegmentedSort.datatypes, (None, "u32", "f64")))),
)
def test_datatypes(device, datatype, value):
    """NaN last, and zeros of both signs in the order in which they come."""
    descending = len(datatype) % 2 == 0
    sort = gw.SegmentedSort(
        device, datatype, value, descending=descending, tuning=gw.SegmentedSortTuning(**SMALL)
    )  # fmt: skip
    keys, rng = keys_of(datatype, 4_001), np.random.default_rng(5)
    if keys.dtype.kind == "f":
        keys[rng.random(keys.size) < 0.1] = np.nan
        keys[rng.random(keys.size) < 0.1] = 0.0
        keys[rng.random(keys.size) < 0.1] = -0.0
    values = None if value is None else np.arange(keys.size).astype(gw.STORAGE_DATATYPES[value].dtype)
    _check(sort, device, keys, _offsets("mixed", keys.size, rng), values)


def test_the_librarys_own_shape(device):
    sort, rng = gw.SegmentedSort(device, "u32"), np.random.default_rng(7)
    keys = keys_of("u32", 60_000)
    for kind in ("eights", "mixed", "long", "empties"):
        _check(sort, device, keys, _offsets(kind, keys.size, rng))


def test_workgroups_that_take_several_tiles_of_long_segments(device, monkeypatch):
    monkeypatch.setattr(gw.SegmentedSort, "_long_workgroups", 3)
    sort = gw.SegmentedSort(device, "u32", tuning=gw.SegmentedSortTuning(**SMALL))
    keys, rng = keys_of("u32", 20_011), np.random.default_rng(9)
    for kind in ("long", "mixed", "eights", "one"):
        _check(sort, device, keys, _offsets(kind, keys.size, rng), trials=2)


def _labels(run):
    return [kernel.label for kernel in run.plan.kernels]


def test_a_promise_that_no_segment_is_long_leaves_out_the_kernels_for_long_ones(device):
    made = {"tuning": gw.SegmentedSortTuning(**SMALL)}
    most = gw.SegmentedSort(device, "u32", **made).most
    keys, rng = keys_of("u32", 20_011), np.random.default_rng(10)
    lengths = rng.integers(0, most, 1_000, endpoint=True)
    lengths[5] = most
    offsets = np.minimum(np.cumsum(lengths), keys.size).astype(np.uint32)
    for longest in (most, most - 1 + (lengths.max() == most)):
        sort = gw.SegmentedSort(device, "u32", longest=int(longest), **made)
        run = _check(sort, device, keys, offsets, trials=2)
        assert _labels(run) == ["windows", "sort short segments"]
    longer = gw.SegmentedSort(device, "u32", longest=most + 1, **made)
    for kind in ("around", "long", "one"):
        run = _check(longer, device, keys, _offsets(kind, keys.size, rng))
        assert "list long tiles" in _labels(run)


def test_a_segment_longer_than_promised_spoils_no_other(device):
    made = {"tuning": gw.SegmentedSortTuning(**SMALL)}
    sort = gw.SegmentedSort(device, "u32", longest=10, **made)
    n = 3 * sort.most
    keys, rng = keys_of("u32", n), np.random.default_rng(11)
    before = np.sort(rng.integers(0, sort.most, 50))
    offsets = np.concatenate([[0], before, [sort.most, 2 * sort.most + 5], [n - 3, n]]).astype(np.uint32)
    guarded = gw.asarray(np.full(n + 256, 7, np.uint32), device)
    sort.execute(keys=gw.asarray(keys, device), offsets=gw.asarray(offsets, device), output_keys=guarded[128 : n + 128])
    got = guarded.to_numpy()
    assert np.all(got[:128] == 7)
    assert np.all(got[n + 128 :] == 7)
    right = keys[_order(keys, offsets, False)]
    for begin, end in itertools.pairwise(offsets.tolist()):
        if end - begin <= sort.most:
            assert np.array_equal(got[128 + begin : 128 + end], right[begin:end])


def test_a_promise_about_segments_of_one_length_is_refused(device):
    with pytest.raises(gw.ArgumentError, match=r"longest=5 .* length=4"):
        gw.SegmentedSort(device, longest=5, length=4)
    with pytest.raises(gw.ArgumentError, match="longest"):
        gw.SegmentedSort(device, longest=0)


def test_offsets_in_numpy_say_how_long_segments_are(device):
    keys = keys_of("u32", 20_000)
    most = gw.SegmentedSort(device, "u32").most
    for offsets, are_long in (
        (np.arange(0, 20_001, most // 2), False), ([0, most, 2 * most, 2 * most], False),
        ([0, most, 2 * most + 1], True), ([20_000], False),
    ):  # fmt: skip
        with gw.profile(device) as profile:
            got = gw.segmented_sort(keys, offsets, device=device)
        offsets = np.asarray(offsets)
        inside = slice(offsets[0], offsets[-1])
        assert np.array_equal(got[inside], keys[_order(keys, offsets, False)][inside])
        assert ("list long tiles" in str(profile.key_averages().table())) == are_long


def test_segments_with_the_same_keys_and_with_digits_that_agree(device, sort):
    for keys in (np.full(5_000, 7, np.uint32), np.full(5_000, 2**32 - 1, np.uint32), np.arange(5_000, dtype=np.uint32)):
        _check(sort, device, keys, _offsets("mixed", keys.size, np.random.default_rng(8)))


def test_counts_on_the_gpu(device, sort):
    """Segments end where the items that count do; counts alternate between calls."""
    keys = keys_of("u32", 9_000)
    for kind, count in itertools.product(("eights", "mixed", "long"), (9_000, 0, 3_333, 1, 20_000, 725, 8_999)):
        offsets = _offsets(kind, keys.size, np.random.default_rng(9))
        n = gw.asarray(np.array([count], dtype=np.uint32), device)
        output = gw.asarray(np.full(keys.size, 5, np.uint32), device)
        sort.execute(
            keys=gw.asarray(keys, device), offsets=gw.asarray(offsets, device), output_keys=output, n=n, trials=2
        )  # fmt: skip
        within = min(count, keys.size)
        wanted = np.full(keys.size, 5, np.uint32)
        wanted[:within] = keys[_order(keys, np.minimum(offsets, within))][:within]
        np.testing.assert_array_equal(output.to_numpy(), wanted)


def test_fewer_items_than_windows(device):
    """The tables have an entry for each window, whatever the count of items is."""
    tuning = gw.SegmentedSortTuning(**{**SMALL, "window": 1})
    keys, offsets = keys_of("u32", 5_000), np.array([0, 100, 1_400, 5_000], np.uint32)
    n = gw.asarray(np.array([1_500], np.uint32), device)
    got = gw.SegmentedSort(device, tuning=tuning).execute(
        keys=gw.asarray(keys, device), offsets=gw.asarray(offsets, device), n=n
    )  # fmt: skip
    np.testing.assert_array_equal(got.output.to_numpy(), keys[_order(keys, np.minimum(offsets, 1_500))][:1_500])


def _falling(seed, n):
    """Offsets that fall or are too large; of seeds 381 and 2578 more tiles of long segments than there is room for."""
    rng = np.random.default_rng(seed)
    if seed < 3:
        return rng.integers(0, [n, 2 * n, 2**32][seed], 500, dtype=np.uint32)
    count = int(rng.integers(8, 64))
    offsets = np.sort(rng.integers(0, n, count))
    offsets[rng.random(count) < rng.random()] = n
    return offsets.astype(np.uint32)


@pytest.mark.parametrize("seed", [0, 1, 2, 381, 2578])
def test_offsets_that_fall_or_are_too_large_write_nothing_outside(device, sort, seed):
    """Results are undefined then, but no index is out of range: these modules have no checks."""
    n, margin = 5_000, 200_000
    whole = gw.asarray(np.full(n + 2 * margin, 77, np.uint32), device)
    keys = gw.asarray(keys_of("u32", n), device)
    offsets = gw.asarray(_falling(seed, n), device)
    sort.execute(keys=keys, offsets=offsets, output_keys=whole[margin : margin + n])
    around = whole.to_numpy()
    assert (around[:margin] == 77).all()
    assert (around[-margin:] == 77).all()
    _check(sort, device, keys_of("u32", n), _offsets("mixed", n, np.random.default_rng(seed)))


@pytest.mark.slow
def test_more_empty_segments_than_a_loop_has_iterations(device, sort):
    """lavapipe ends loops of an invocation after 65,535 iterations, and 256 of them share the segments of a window."""
    keys = keys_of("u32", 900)
    offsets = np.concatenate([[0], np.full(256 * 65_600, 100), [300, 600, 900]]).astype(np.uint32)
    run = sort.execute(keys=gw.asarray(keys, device), offsets=gw.asarray(offsets, device))
    np.testing.assert_array_equal(run.output.to_numpy(), keys[_order(keys, np.unique(offsets))])


def test_expressions(device):
    sort = gw.SegmentedSort(device, -gw.f32("x"), longest=MOST, tuning=gw.SegmentedSortTuning(**SMALL))
    items = np.random.default_rng(11).normal(size=5_000).astype(np.float32)
    offsets = _offsets("eights", items.size, np.random.default_rng(12))
    got = sort.execute(x=gw.asarray(items, device), offsets=gw.asarray(offsets, device)).output.to_numpy()
    np.testing.assert_array_equal(got, (-items)[_order(-items, offsets)])


@pytest.mark.slow  # compiles a sort
def test_one_segment_of_an_expression_and_values(device):
    whole = gw.SegmentedSort(device, -gw.f32("x"), "u32", length=5_000)
    items, places = np.random.default_rng(11).normal(size=5_000).astype(np.float32), np.arange(5_000, dtype=np.uint32)
    run = whole.execute(x=gw.asarray(items, device), values=gw.asarray(places, device))
    np.testing.assert_array_equal(run.outputs["output_values"].to_numpy(), np.argsort(-items, kind="stable"))


# ---- plans


def _plan(n, segments=None, **options):
    lengths = {"keys": n, "output_keys": n} | ({} if segments is None else {"offsets": segments + 1})
    limits = {"max-compute-workgroup-storage-size": 49_152, "max-compute-invocations-per-workgroup": 1024,
              "max-compute-workgroup-size-x": 1024}  # fmt: skip
    capabilities = gw.Capabilities(features=frozenset({"subgroup"}), subgroup_size=32, limits=limits)
    return gw.SegmentedSort.plan_for(capabilities=capabilities, lengths=lengths, **options)


def test_short_segments_take_one_dispatch():
    assert [k.label for k in _plan(1 << 24, length=256).kernels] == ["sort short segments"]
    few = _plan(4_000, 90)
    assert [k.label for k in few.kernels] == ["windows", "sort short segments"], "no segment can be a long one"
    assert not any(spec.name.startswith(("temporary", "tile")) for spec in few.buffers)
    assert _plan(1 << 24, 1 << 12).parameters["most"] >= 1 << 12


def test_one_segment_is_a_sort_of_all():
    whole = _plan(1 << 20, length=1 << 20)
    plain = gw.Sort.plan_for(capabilities=gw.Capabilities(), lengths={"input": 1 << 20, "output": 1 << 20})
    assert whole.primitive == "segmented_sort"
    assert {kernel.label for kernel in plain.kernels} & {kernel.label for kernel in whole.kernels}


def test_the_last_pass_writes_the_output():
    for datatype, passes in (("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8)):
        plan = _plan(1 << 16, 9, dtype=datatype)
        moves = [kernel for kernel in plan.kernels if kernel.label.startswith("pass ")]
        assert len(moves) == passes
        written = {binding.buffer for binding in moves[-1].bindings if binding.access == "read_write"}
        assert written == {"output_keys"}


@pytest.mark.parametrize(
    ("tuning", "message"),
    [
        ({"workgroup_size": 2048}, "workgroup_size=2048 must be a multiple of 128"),
        ({"items": 900}, "items=900 per invocation, but workgroups of"),
        ({"workgroup_size": 256, "items": 2, "window": 513}, "window=513 items, but a tile has 512"),
    ],
)
def test_shapes_over_the_limits(tuning, message):
    with pytest.raises(gw.ArgumentError, match=message):
        gw.SegmentedSort(None, capabilities=gw.Capabilities(), tuning=gw.SegmentedSortTuning(**tuning))


def test_wrong_arguments(device, sort):
    keys = gw.asarray(keys_of("u32", 10), device)
    with pytest.raises(gw.LengthError, match=r"offsets has no items.*np\.zeros\(1"):
        sort.execute(keys=keys, offsets=gw.empty(0, "u32", device))
    with pytest.raises(gw.ArgumentError, match="offsets"):
        sort.execute(keys=keys)
    with pytest.raises(gw.ArgumentError, match="length must be an integer of at least 1, not 0"):
        gw.SegmentedSort(device, length=0)
    with pytest.raises(gw.LimitError, match="1073741824 keys"):
        _plan(1 << 30, 4)


# ---- functions


def test_functions(device):
    x = np.array([3, 1, 2, 9, 7], np.int8)
    assert gw.segmented_sort(x, [0, 3, 3, 5], device=device).tolist() == [1, 2, 3, 7, 9]
    assert gw.segmented_sort(x, length=2, descending=True, device=device).tolist() == [3, 1, 9, 2, 7]
    for length in (5, 2**32 - 1, 2**32 + 4, 2**40):  # of all items
        assert gw.segmented_sort(x, length=length, device=device).tolist() == [1, 2, 3, 7, 9]
    keys, values = gw.segmented_sort_pairs(x, np.arange(5), length=3, device=device)
    assert (keys.dtype, keys.tolist(), values.tolist()) == (np.int8, [1, 2, 3, 7, 9], [1, 2, 0, 4, 3])
    on_gpu = gw.segmented_sort(-gw.asarray(x.astype(np.float32), device), length=5)
    assert isinstance(on_gpu, gw.Array)
    assert on_gpu.to_numpy().tolist() == [-9, -7, -3, -2, -1]
    with pytest.raises(gw.ArgumentError, match="either offsets or length="):
        gw.segmented_sort(x, device=device)
    with pytest.raises(gw.ArgumentError, match=r"offsets\[2\]=1 is below offsets\[1\]=3"):
        gw.segmented_sort(x, [0, 3, 1], device=device)
    with pytest.raises(gw.LengthError, match="lengths differ"):
        gw.segmented_sort_pairs(x, np.arange(4), length=3, device=device)
