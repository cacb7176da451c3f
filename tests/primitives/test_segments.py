"""Scans and reductions by key and by offsets: every form of them against plain loops."""

import dataclasses
import itertools

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside
from helpers.strategies import AFFINE, MODES, assert_same, mode_for, quick_first, shape_options

# Small tiles, and texts that compile soon.
TUNING = gw.ScanTuning(workgroup_size=64, vecs=1, max_blocks=8)
REPEATS = gw.ElementwiseTuning(workgroup_size=64, vecs=2)
STRATEGIES = ("reduce_then_scan", "lookback-u64", "lookback-u32x2")
#: The three dispatches are quickly tested at edge sizes, in every mode.
BOTH = quick_first(["lookback"], ["reduce_then_scan"])
RUNS = ("each", "pairs", "eights", "thousands", "one", "random")
SEGMENTS = ("each", "eights", "thousands", "one", "none", "empties", "all empty", "inner")


# ---- what is expected, by plain loops ----


def _prefixes(op, items):
    """The inclusive scan of one segment of integers."""
    return np.array(list(itertools.accumulate(items.tolist(), op.numpy)), dtype=items.dtype)


def _bounds(keys):
    same = keys[1:] == keys[:-1]
    return np.concatenate([[0], np.flatnonzero(~same) + 1, [keys.size]]) if keys.size else np.zeros(1, int)


def _sums_before(items):
    """The sum of all items before each place; sums modulo 2³² are differences of these."""
    return np.concatenate([np.zeros(1, items.dtype), np.cumsum(items, dtype=items.dtype)])


def _scanned(op, items, bounds, kind="inclusive"):
    if op is gw.Add:
        before, index = _sums_before(items), np.arange(items.size)
        # Of the last segment that begins at or before an item; items before the first one are in none.
        begins = np.asarray(bounds)[np.maximum(np.searchsorted(bounds, index, side="right") - 1, 0)]
        return before[index + (kind == "inclusive")] - before[begins]
    result = items.copy()
    for begin, end in itertools.pairwise(bounds):
        if end > begin:
            part = _prefixes(op, items[begin:end])
            result[begin:end] = part if kind == "inclusive" else [op.identity, *part[:-1]]
    return result


def _reduced(op, items, bounds):
    bounds = np.asarray(bounds).astype(int)
    if op is gw.Add:
        before = _sums_before(items)
        return before[bounds[1:]] - before[bounds[:-1]]
    pairs = itertools.pairwise(bounds)
    found = [_prefixes(op, items[begin:end])[-1] if end > begin else op.identity for begin, end in pairs]
    return np.array(found, dtype=items.dtype)


# ---- inputs ----


def _keys(n, runs, rng):
    index = np.arange(n, dtype=np.uint32)
    length = {"each": 1, "pairs": 2, "eights": 8, "thousands": 1000, "one": n + 1}.get(runs)
    if length is None:
        return rng.integers(0, 2, n).astype(np.uint32)
    return index // length % 3


def _offsets(n, kind, rng):
    if kind == "none":
        return np.zeros(1, np.uint32)
    if kind == "all empty":
        return np.zeros(700, np.uint32)
    if kind in ("empties", "inner"):
        some = np.sort(rng.integers(0, n + 1, n + 3 if kind == "empties" else n // 5 + 2))
        return np.concatenate([[0], some, [n]] if kind == "empties" else [some]).astype(np.uint32)
    length = {"each": 1, "eights": 8, "sixties": 61, "thousands": 1000, "one": n + 1}[kind]
    return np.concatenate([np.arange(0, n, length), [n]]).astype(np.uint32)


def _tuning(device, mode, state=None, **more):
    options = {**shape_options(device, "small", mode), **more}
    return gw.ScanTuning(subgroups=mode_for(device, mode, options["workgroup_size"]), state=state, **options)


def _tile(tuning):
    return 4 * tuning.workgroup_size * (tuning.vecs or 1)


def _strategy(name):
    strategy, _, state = name.partition("-")
    return strategy, state or None


@pytest.fixture
def needs(require):
    """Skip where the device cannot do a subgroup mode or a form of the state."""

    def check(mode, strategy):
        require(*(["subgroup"] if mode == "native" else []))
        require(*(["shader-int64", "shader-int64-atomic-all-ops"] if "u64" in strategy else []))

    return check


def _run(primitive, device, **arrays):
    run = primitive.execute(**{name: gw.asarray(items, device) for name, items in arrays.items()})
    return {name: output.to_numpy() for name, output in run.outputs.items()}


def _check_by_key(device, reduce, scan, keys, items, note, kind="inclusive"):
    bounds = _bounds(keys)
    got = _run(reduce, device, keys=keys, items=items)
    assert_same(got["output_keys"], keys[bounds[:-1]], note)
    assert_same(got["output_values"], _reduced(reduce.op, items, bounds), note)
    assert got["count"].tolist() == [bounds.size - 1], note
    assert_same(_run(scan, device, keys=keys, items=items)["output"], _scanned(scan.op, items, bounds, kind), note)


def _check_by_offsets(device, reduce, scan, offsets, items, note, kind="inclusive"):
    got = _run(reduce, device, items=items, offsets=offsets)["output"]
    assert_same(got, _reduced(reduce.op, items, offsets), note)
    inside = slice(offsets[0], offsets[-1])  # nothing is said of the rest
    got = _run(scan, device, items=items, offsets=offsets)["output"]
    assert_same(got[inside], _scanned(scan.op, items, offsets, kind)[inside], note)


# ---- every form, at the edges of tiles ----

FORMS = [
    (mode, strategy, stalls) for mode in MODES for strategy in STRATEGIES for stalls in (0, 3)
    if not (stalls and strategy == "reduce_then_scan")
]  # fmt: skip


def _classes(strategy, stalls, *classes):
    return [inside.faulty(cls, stall_every=stalls) if stalls else cls for cls in classes]


@pytest.mark.parametrize(
    ("mode", "strategy", "stalls", "op"),
    quick_first(
        [("native", "lookback-u64", 0, AFFINE), ("none", "lookback-u32x2", 3, gw.Add)],
        [(*form, op) for form in FORMS for op in (gw.Add, AFFINE)],
    ),
)
def test_by_key_at_edge_sizes(device, needs, mode, strategy, stalls, op):
    needs(mode, strategy)
    rng = np.random.default_rng(1)
    name, state = _strategy(strategy)
    tuning = _tuning(device, mode, state, vecs=3 if mode == "native" else 2)
    reduce_class, scan_class = _classes(strategy, stalls, gw.ReduceByKey, gw.ScanByKey)
    kind = "exclusive" if mode == "none" else "inclusive"
    reduce = reduce_class(device, "u32", "u32", op, strategy=name, tuning=tuning)
    scan = scan_class(device, "u32", "u32", op, kind, strategy=name, tuning=tuning)
    tile = _tile(tuning)
    for n, runs in [*itertools.product((tile - 1, tile + 1, 9 * tile), RUNS), (0, "one"), (1, "one"), (tile, "one")]:
        items = rng.integers(0, 2**32, n).astype(np.uint32)
        _check_by_key(device, reduce, scan, _keys(n, runs, rng), items, f"n={n}, {runs}", kind)


@pytest.mark.parametrize(
    ("mode", "strategy", "stalls", "op"),
    quick_first(
        [("native", "reduce_then_scan", 0, AFFINE), ("emulated", "lookback-u32x2", 3, AFFINE)],
        [(*form, op) for form in FORMS for op in (gw.Add, AFFINE)],
    ),
)
def test_by_offsets_at_edge_sizes(device, needs, mode, strategy, stalls, op):
    needs(mode, strategy)
    rng = np.random.default_rng(2)
    name, state = _strategy(strategy)
    tuning = _tuning(device, mode, state, vecs=1 if mode == "native" else 3)
    reduce_class, scan_class = _classes(strategy, stalls, gw.SegmentedReduce, gw.SegmentedScan)
    kind = "exclusive" if mode == "none" else "inclusive"
    reduce = reduce_class(device, "u32", op, strategy=name, tuning=tuning)
    scan = scan_class(device, "u32", op, kind, strategy=name, tuning=tuning)
    tile = _tile(tuning)
    for n, segments in [
        *itertools.product((tile - 1, tile + 1, 9 * tile), SEGMENTS),
        (0, "all empty"),
        (1, "one"),
        (tile, "one"),
    ]:
        items = rng.integers(0, 2**32, n).astype(np.uint32)
        _check_by_offsets(device, reduce, scan, _offsets(n, segments, rng), items, f"n={n}, {segments}", kind)


@pytest.mark.needs("workgroups of 512")
def test_results_at_ends_go_through_workgroup_memory_in_parts(device):
    rng = np.random.default_rng(4)
    tuning = gw.ScanTuning(workgroup_size=512, vecs=2)  # 16 KiB a tile
    reduce = gw.SegmentedReduce(device, "u32", tuning=tuning)
    items = rng.integers(0, 2**32, 9000).astype(np.uint32)
    for segments in SEGMENTS:
        offsets = _offsets(items.size, segments, rng)
        assert_same(_run(reduce, device, items=items, offsets=offsets)["output"], _reduced(gw.Add, items, offsets))
    by_key = gw.ReduceByKey(device, strategy="lookback", tuning=tuning)
    for share in (1, 0.95, 0.4, np.arange(items.size) // 3000 % 2):  # as many runs as items in a tile, and fewer
        keys = np.cumsum(rng.random(items.size) < share).astype(np.uint32)
        got, bounds = _run(by_key, device, keys=keys, items=items), _bounds(keys)
        assert_same(got["output_keys"], keys[bounds[:-1]])
        assert_same(got["output_values"], _reduced(gw.Add, items, bounds))


@pytest.mark.parametrize("op", quick_first([AFFINE], [gw.Add]))
def test_short_segments_and_segments_of_whole_tiles(device, op):
    """An invocation takes whole segments where many end in a tile, with longer ones and tails among them.

    A tile within a segment looks for no ends: not those at its own end, nor those behind the items.
    """
    rng = np.random.default_rng(13)
    tuning = gw.ScanTuning(workgroup_size=64, vecs=1, max_blocks=3)
    tile, chosen = _tile(tuning), []
    for lengths in [(1,), (0, 1, 2), (3, 7), (1, 31, 32, 33), (0, 1, 1, 1, 1, 2, 100, 400)]:
        chosen.append(rng.choice(lengths, 24 * tile // max(1, int(np.mean(lengths)))))
    chosen.append(
        np.diff(tile * np.int64([0, 2, 2, 5, 6, 6, 9, 9, 14, 24]) + np.int64([0, 0, 0, 0, 0, 1, -1, 0, 0, 0]))
    )
    reduce = gw.SegmentedReduce(device, "u32", op, tuning=tuning)
    for first, lengths in zip((5, 5, 5, 5, 5, 0), chosen, strict=True):
        offsets = (first + np.append(0, np.cumsum(lengths))).astype(np.uint32)
        items = rng.integers(0, 2**32, int(offsets[-1]) + 2 * first).astype(np.uint32)
        assert_same(_run(reduce, device, items=items, offsets=offsets)["output"], _reduced(op, items, offsets))
        arrays = {"items": gw.asarray(items, device), "offsets": gw.asarray(offsets, device)}
        for n in (items.size - 1, 20 * tile + 3, 14 * tile, 9 * tile - 1, 5 * tile + 1, 2):
            want = _reduced(op, items[:n], np.minimum(offsets, n))
            assert_same(reduce.execute(**arrays, n=n).output.to_numpy(), want, f"n={n}")


@pytest.mark.parametrize(
    ("op", "blocks", "mode"), quick_first(
        [(AFFINE, 1500, "native")], itertools.product([gw.Add, AFFINE], [3, 90], ["native", "none", "emulated"])
    ),
)  # fmt: skip
def test_totals_of_blocks_as_on_a_gpu(device, needs, mode, op, blocks):
    """A GPU scans the totals of all blocks in one round if it can: other invocations than those of the shape."""
    needs(mode, "reduce_then_scan")
    rng = np.random.default_rng(9)
    capabilities = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    tuning = dataclasses.replace(_tuning(device, mode, None, vecs=1), max_blocks=blocks)
    tiles = blocks + 50 if blocks > 3 else 20
    n = tiles * _tile(tuning) - 5
    # In two windows, reductions have a kernel for the totals, too.
    limits = {**capabilities.limits, "max-storage-buffer-binding-size": 3 * n // 256 * 256}
    options = {"strategy": "reduce_then_scan", "tuning": tuning}
    scan = gw.SegmentedScan(device, "u32", op, capabilities=capabilities, **options)
    reduce = gw.SegmentedReduce(
        device, "u32", op, capabilities=dataclasses.replace(capabilities, limits=limits), **options
    )
    items = rng.integers(0, 2**32, n).astype(np.uint32)
    for segments in ("one", "eights", "empties"):
        _check_by_offsets(device, reduce, scan, _offsets(n, segments, rng), items, segments)
    layout = gw.Layout.separate(items=n, offsets=100, output=99)
    plan = reduce.plan(layout)
    *sizes, last = [kernel.constants["WORKGROUP_SIZE"] for kernel in plan.kernels]
    most = capabilities.limits["max-compute-invocations-per-workgroup"]
    assert sizes == 2 * [tuning.workgroup_size]
    assert last == max(sizes[0], min(1 << (plan.parameters["blocks"] - 1).bit_length(), most))


def _uneven(n, tile, rng):
    """Offsets of segments that a team, or a workgroup, just does, and of some with most items, the longest first."""
    falling = np.sort(np.minimum(rng.pareto(0.6, 60) * 9, n // 4).astype(int))[::-1]
    around = [31, 32, 33, tile - 1, tile, tile + 1, *[0] * 200]
    return np.minimum(np.cumsum([0, *around, *falling]), n).astype(np.uint32)


@pytest.mark.parametrize(
    ("op", "blocks", "mode"), quick_first(
        [(gw.Add, 70, "native"), (AFFINE, 3, "emulated")],
        itertools.product([gw.Add, AFFINE], [3, 70], ["native", "none", "emulated"]),
    ),
)  # fmt: skip
def test_segments_by_teams(device, needs, mode, op, blocks):
    """Long for a team, or for a workgroup: in pieces, some of which the last one may not see; with one bit of epoch."""
    needs(mode, "lookback")
    capabilities = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    rng = np.random.default_rng(14)
    tuning = dataclasses.replace(_tuning(device, mode, None, vecs=1), max_blocks=blocks, spin_limit=4)
    for stall_every in (0, 1, 3):
        reduce = inside.faulty(gw.SegmentedReduce, stall_every=stall_every, epoch_bits=1)(
            device, "u32", op, tuning=tuning, capabilities=capabilities
        )
        for n in (17, 9 * _tile(tuning) + 3):
            items = rng.integers(0, 2**32, n).astype(np.uint32)
            for segments in ("one", "sixties", "eights", "empties", "uneven", "one"):
                # Items before the first segment, and behind the last one.
                kept = n - 14
                offsets = _uneven(kept, _tile(tuning), rng) if segments == "uneven" else _offsets(kept, segments, rng)
                offsets += 5
                context = f"{segments}, every {stall_every}. stalls, n={n}"
                run = reduce.execute(items=gw.asarray(items, device), offsets=gw.asarray(offsets, device))
                assert [kernel.label for kernel in run.plan.kernels] == ["reduce"]
                assert_same(run.output.to_numpy(), _reduced(op, items, offsets), context)
                arrays = {"items": gw.asarray(items, device), "offsets": gw.asarray(offsets, device)}
                for count in (n // 2, min(n, 7)):
                    want = _reduced(op, items[:count], np.minimum(offsets, count))
                    assert_same(reduce.execute(**arrays, n=count).output.to_numpy(), want, f"{context}, counted")


def _plan_of_lengths(reduce, n, average):
    return reduce.plan(gw.Layout.separate(items=n, offsets=n // average + 1, output=n // average))


@pytest.mark.parametrize("tuning", [None, gw.ScanTuning(workgroup_size=64, vecs=2, max_blocks=8)], ids=["table", "own"])
def test_the_average_length_and_the_number_of_items_choose_the_kernels(device, tuning):
    """All others are made in the background, so that another length compiles nothing."""
    capabilities = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU", tuning=None)
    reduce = gw.SegmentedReduce(None, "u32", tuning=tuning, capabilities=capabilities)
    known, forms = [], set()
    for n in (1 << 20, 1 << 24):
        for average in (1, 8, 16, 1000):
            plan = _plan_of_lengths(reduce, n, average)
            assert len(plan.kernels) == (1 if n == 1 << 20 or average == 1000 else 2)
            forms.add((plan.parameters["workgroup_size"], plan.parameters["vecs"], plan.kernels[0].shader))
            known.append({kernel.shader for kernel in (*plan.kernels, *plan.siblings)})
    assert len(forms) == (3 if tuning else 5)
    assert all(texts == known[0] for texts in known)


def test_segments_have_blocks_and_a_second_kernel_where_bindings_are_few(device):
    """The offsets of many segments need several bindings."""
    measured = gw.capabilities(device)
    limits = {"max-storage-buffer-binding-size": 4096, "max-storage-buffers-per-shader-stage": 8}
    capabilities = dataclasses.replace(measured, adapter_type="DiscreteGPU", limits={**measured.limits, **limits})
    reduce = gw.SegmentedReduce(device, tuning=TUNING, capabilities=capabilities)
    rng = np.random.default_rng(15)
    for segments, labels in ((300, ["reduce"]), (3000, ["reduce", "complete"])):
        offsets = np.sort(rng.integers(0, 901, segments + 1)).astype(np.uint32)
        run = reduce.execute(items=gw.asarray(np.ones(900, np.uint32), device), offsets=gw.asarray(offsets, device))
        assert [kernel.label for kernel in run.plan.kernels] == labels
        assert_same(run.output.to_numpy(), np.diff(offsets))


# ---- datatypes ----


@pytest.mark.parametrize(
    ("key", "datatype", "op", "strategy"), quick_first(
        [("f64", "i64", gw.Add, "lookback")],
        itertools.product(["i32", "f32", "i64"], ["i32", "u64"], [gw.Add, gw.Min], ["lookback", "reduce_then_scan"]),
    ),
)  # fmt: skip
def test_datatypes_of_keys_and_items(device, key, datatype, op, strategy):
    rng = np.random.default_rng(5)
    n = 3000
    items = rng.integers(-9, 9, n).astype(gw.STORAGE_DATATYPES[datatype].dtype)  # sums that are exact
    keys = (rng.integers(0, 2, n) - 1).astype(gw.STORAGE_DATATYPES[key].dtype)
    if keys.itemsize == 8 and key != "f64":
        keys <<= 33  # the halves differ one by one
    bounds = _bounds(keys)
    reduce = gw.ReduceByKey(device, key, datatype, op, strategy=strategy, tuning=TUNING)
    got = _run(reduce, device, keys=keys, items=items)
    assert_same(got["output_keys"], keys[bounds[:-1]])
    assert_same(got["output_values"], op.numpy.reduceat(items, bounds[:-1], dtype=items.dtype))


def test_keys_that_are_floats(device):
    """−0 equals +0, and a NaN equals one of the same bits."""
    keys = np.array([0.0, -0.0, 0.0, np.nan, np.nan, 1, -0.0, -0.0], np.float32)
    items = np.arange(8, dtype=np.uint32)
    for datatype in (np.float32, np.float64):
        got = _run(
            gw.ReduceByKey(device, datatype, "u32", tuning=TUNING), device, keys=keys.astype(datatype), items=items
        )
        np.testing.assert_array_equal(got["output_keys"], [0, np.nan, 1, 0])
        np.testing.assert_array_equal(got["output_values"], [3, 7, 5, 13])


def test_items_that_are_several_numbers(device):
    pair = gw.Struct("pair", low="f32", high="f32")
    span = gw.BinOp(
        "span", identity=(np.inf, -np.inf),
        numpy=lambda a, b: pair.array(low=np.minimum(a["low"], b["low"]), high=np.maximum(a["high"], b["high"])),
        wgsl="fn combine(a: T, b: T) -> T { return T(min(a.low, b.low), max(a.high, b.high)); }",
    )  # fmt: skip
    x = np.random.default_rng(6).random(5000, dtype=np.float32)
    keys = np.arange(x.size, dtype=np.uint32) // 7
    items = pair.array(low=x, high=x)
    got = _run(gw.ReduceByKey(device, "u32", pair, span, tuning=TUNING), device, keys=keys, items=items)[
        "output_values"
    ]
    starts = np.arange(0, x.size, 7)
    np.testing.assert_array_equal(got["low"], np.minimum.reduceat(x, starts))
    np.testing.assert_array_equal(got["high"], np.maximum.reduceat(x, starts))


@pytest.mark.parametrize("strategy", BOTH)
def test_floats_keep_to_their_segment(device, strategy):
    """NaN and infinities of one segment reach no other one; minima of nothing are the identity."""
    x = np.ones(4000, np.float32)
    x[1003], x[2000], x[2001] = np.nan, np.inf, -np.inf
    offsets = np.array([0, 0, 1000, 1500, 2500, 4000, 4000], np.uint32)
    reduce = gw.SegmentedReduce(device, "f32", gw.Add, strategy=strategy, tuning=TUNING)
    np.testing.assert_array_equal(
        _run(reduce, device, items=x, offsets=offsets)["output"], [0, 1000, np.nan, np.nan, 1500, 0]
    )
    least = gw.SegmentedReduce(device, "f32", gw.Min, strategy=strategy, tuning=TUNING)
    np.testing.assert_array_equal(
        _run(least, device, items=x, offsets=offsets)["output"], [np.inf, 1, np.nan, -np.inf, 1, np.inf]
    )
    zeros = {"items": np.array([0.0, -0.0, -0.0, 0.0], np.float32), "offsets": np.array([0, 2, 4], np.uint32)}
    assert np.signbit(_run(least, device, **zeros)["output"]).tolist() == [True, True]


def test_deterministic_sums_have_the_same_bits_everywhere(device):
    rng = np.random.default_rng(7)
    n = 60_000
    x = rng.random(n, dtype=np.float32) - np.float32(0.5)
    keys = np.sort(rng.integers(0, 40, n)).astype(np.uint32)
    starts = _bounds(keys)[:-1]
    small = _with_bindings(device, 100_000)
    one = gw.ReduceByKey(device, "u32", "f32", deterministic=True)
    want = _run(one, device, keys=keys, items=x)["output_values"]
    sums = np.add.reduceat(x.astype(np.float64), starts)
    np.testing.assert_allclose(want, sums, rtol=0, atol=1e-3)
    again = gw.ReduceByKey(device, "u32", "f32", deterministic=True, capabilities=small)
    assert_same(_run(again, device, keys=keys, items=x)["output_values"], want)
    with pytest.raises(gw.ArgumentError, match="leave out one"):
        gw.ReduceByKey(device, "u32", "f32", deterministic=True, strategy="lookback")


# ---- windows, views, repetition, counts ----


def _with_bindings(device, limit):
    measured = gw.capabilities(device)
    return dataclasses.replace(measured, limits={**measured.limits, "max-storage-buffer-binding-size": limit})


@pytest.mark.parametrize(("strategy", "op"), quick_first([("lookback", gw.Add)], [("reduce_then_scan", AFFINE)]))
def test_runs_and_segments_go_on_in_the_next_windows(device, strategy, op):
    rng = np.random.default_rng(8)
    n = 7_000
    options = {"strategy": strategy, "tuning": TUNING, "capabilities": _with_bindings(device, 8_000)}
    items = rng.integers(0, 2**32, n).astype(np.uint32)
    by_key = [cls(device, "u32", "u32", op, **options) for cls in (gw.ReduceByKey, gw.ScanByKey)]
    by_offsets = [cls(device, "u32", op, **options) for cls in (gw.SegmentedReduce, gw.SegmentedScan)]
    for runs in ("eights", "one"):
        _check_by_key(device, *by_key, _keys(n, runs, rng), items, runs)
        _check_by_offsets(device, *by_offsets, _offsets(n, runs, rng), items, runs)
    layout = gw.Layout.separate(keys=n, items=n, output=n)
    assert by_key[1].plan(layout).parameters["windows"] > 3


CLASSES = (gw.ReduceByKey, gw.ScanByKey, gw.SegmentedReduce, gw.SegmentedScan)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("strategy", BOTH)
def test_counts_on_the_gpu_that_alternate(device, cls, strategy):
    """With one bit of epoch, words that an idle tile left out would pass for those of the dispatch before the last."""
    n = 6000
    by_key = cls in CLASSES[:2]
    # Without tickets lavapipe starts in the middle of the grid, whose tiles then poll words that nobody wrote yet.
    tuning = dataclasses.replace(TUNING, tickets=False)
    made = inside.faulty(cls, epoch_bits=1) if strategy == "lookback" else cls
    primitive = made(device, strategy=strategy, tuning=tuning)
    items, count = gw.empty(n, "u32", device), gw.asarray(np.zeros(1, np.uint32), device)
    other = gw.empty(n if by_key else 63, "u32", device)
    arrays = {"keys" if by_key else "offsets": other, "items": items, "n": count}
    index = np.arange(n, dtype=np.uint32)
    # Other items and other segments each time, which begin in few tiles: a word of an earlier call is a wrong one.
    for call, counts in enumerate((n, 300, n, 300, 0, n, 0, 1, 2 * n, 255, n, 257, n)):
        x, keys = index * np.uint32(call + 1), (index + np.uint32(37 * call)) // 601
        offsets = np.append(np.arange(62, dtype=np.uint32) * 97 + 3 * call, n).astype(np.uint32)
        offsets[0] = 0
        items.copy_from(x)
        other.copy_from(keys if by_key else offsets)
        count.copy_from(np.array([counts], np.uint32))
        m = min(counts, n)
        found = primitive.execute(**arrays).outputs
        got = {name: output.to_numpy() for name, output in found.items()}
        bounds = _bounds(keys[:m]) if by_key else np.minimum(offsets, m)
        if cls in (gw.ReduceByKey, gw.SegmentedReduce):
            values = got["output_values" if by_key else "output"]
            assert_same(values, _reduced(gw.Add, x[:m], bounds), f"n={counts}")
        else:
            assert_same(got["output"], _scanned(gw.Add, x[:m], bounds), f"n={counts}")


def test_a_number_of_items_cuts_the_items_but_not_the_offsets(device):
    x, offsets = np.ones(100, np.uint32), np.array([0, 10, 30, 100], np.uint32)
    reduce = gw.SegmentedReduce(device, tuning=TUNING)
    run = reduce.execute(items=gw.asarray(x, device), offsets=gw.asarray(offsets, device), n=20)
    assert run.output.to_numpy().tolist() == [10, 10, 0]
    with pytest.raises(gw.ArgumentError, match="takes no n="):
        gw.SegmentedReduce(device, length=10).execute(items=gw.asarray(x, device), n=20)


def test_room_for_fewer_runs(device):
    keys = gw.asarray(np.repeat(np.arange(1000, dtype=np.uint32), 3), device)
    run = gw.ReduceByKey(device, size=10, tuning=TUNING).execute(keys=keys, items=keys)
    assert run.outputs["count"].item() == 1000, "what did not fit is counted, too"
    assert run.outputs["output_keys"].to_numpy().tolist() == list(range(10))
    assert run.outputs["output_values"].to_numpy().tolist() == [3 * k for k in range(10)]


# ---- segments of one length, expressions ----


def test_segments_of_one_length(device):
    for length in (1, 3, 1000):
        x = np.random.default_rng(12).integers(0, 2**32, 6000).astype(np.uint32)[: 6000 // length * length]
        reduce = gw.SegmentedReduce(device, length=length, tuning=TUNING)
        assert_same(_run(reduce, device, items=x)["output"], x.reshape(-1, length).sum(axis=1, dtype=np.uint32))
        if length > 1:
            with pytest.raises(gw.LengthError, match="whole number of segments"):
                _run(reduce, device, items=x[:-1])


def test_keys_and_items_that_are_not_stored(device):
    """In windows, too."""
    rng = np.random.default_rng(13)
    k, x = np.arange(8_000, dtype=np.uint32), rng.integers(0, 99, 8_000).astype(np.uint32)
    options = {"tuning": TUNING, "capabilities": _with_bindings(device, 8_000)}
    reduce = gw.ReduceByKey(device, gw.u32("k") >> 3, gw.u32("a") * gw.u32("b") + 1, **options)
    run = reduce.execute(k=gw.asarray(k, device), a=gw.asarray(x, device), b=gw.asarray(x, device))
    want = np.add.reduceat(x * x + np.uint32(1), np.arange(0, k.size, 8), dtype=np.uint32)
    assert_same(run.outputs["output_values"].to_numpy(), want)
    assert_same(run.outputs["output_keys"].to_numpy(), np.arange(1000, dtype=np.uint32))
    assert_same(reduce.reference(k=k, a=x, b=x)[1], want)
    keys, items = gw.asarray(k, device), gw.asarray(x, device)
    scan = gw.ScanByKey(device, keys >> 3, items * 2, **options)
    assert_same(scan.execute().output.to_numpy(), (x * 2).reshape(-1, 8).cumsum(axis=1, dtype=np.uint32).ravel())
    with pytest.raises(gw.LengthError, match="every key needs one item"):
        gw.ReduceByKey(device, gw.u32("k"), gw.u32("a")).execute(k=keys, a=items[:5])


# ---- repeat ----


def test_repeat_by_counts(device):
    """By small ones, none, ones, few long ones, few short ones."""
    rng = np.random.default_rng(14)
    for m in (1, 2, 900):
        for counts in (
            rng.integers(0, 5, m), np.zeros(m), np.ones(m), np.where(rng.random(m) < 0.01, 3000, 0),
            np.where(rng.random(m) < 0.02, 9, 0),
        ):  # fmt: skip
            counts = counts.astype(np.uint32)
            total = int(counts.sum())
            for dtype, size in ((np.uint32, total), (np.float64, total // 2), (np.float64, total + 900)):
                values, size = rng.integers(0, 999, m).astype(dtype), max(size, 1)
                primitive = gw.Repeat(device, dtype, size=size, tuning=REPEATS)
                got = _run(primitive, device, values=values, counts=counts)
                assert_same(got["output"], np.repeat(values, counts)[:size], f"m={m}")
                assert got["count"].tolist() == [total]
            ids = gw.Repeat(device, None, size=max(total, 1), by="offsets", tuning=REPEATS)
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
            assert_same(_run(ids, device, offsets=offsets)["output"], np.repeat(np.arange(m, dtype=np.uint32), counts))


def test_repeat_takes_the_count_of_its_values(device):
    """Run lengths, decoded again, without a number that the host reads."""
    x = np.repeat(np.arange(500, dtype=np.uint32) % 7, np.arange(500) % 5)
    keys = gw.asarray(x, device)
    ones = gw.asarray(np.ones(x.size, np.uint32), device)
    runs = gw.ReduceByKey(device, tuning=TUNING).execute(keys=keys, items=ones).outputs
    repeat = gw.Repeat(device, size=2000, tuning=REPEATS)
    again = repeat.execute(values=runs["output_keys"], counts=runs["output_values"])
    assert_same(again.output.to_numpy(), x)


# ---- one-shot functions ----


@pytest.mark.parametrize("dtype", quick_first(["i1"], ["?", "u1", "u2", "i2", "f2"]))
def test_small_items(device, dtype):
    """Kernels read those of Arrays as they are; numpy's keys and repeated items come back in their own dtype."""
    rng = np.random.default_rng(16)
    keys = np.repeat(rng.integers(0, 2, 300), rng.integers(1, 9, 300)).astype(dtype)
    x = rng.integers(0, 50, keys.size).astype(dtype)
    wide = {"u": np.uint32, "b": np.uint32, "i": np.int32, "f": np.float32}[x.dtype.kind]
    starts = np.append(0, np.flatnonzero(keys[1:] != keys[:-1]) + 1)
    bounds = np.append(starts, keys.size)
    # At odd offsets, as views.
    on_gpu = [gw.asarray(np.append(np.ones(3, dtype), each), device)[3:] for each in (keys, x)]
    sums = np.add.reduceat(x.astype(wide), starts, dtype=wide)
    found = gw.reduce_by_key(*on_gpu)
    assert_same(found.keys.to_numpy(), keys[starts].astype(wide))
    assert_same(found.values.to_numpy(), sums)
    assert_same(gw.segmented_reduce(on_gpu[1], bounds).to_numpy(), sums)
    assert_same(gw.repeat(x, 3, device=device), np.repeat(x, 3))
    assert_same(gw.repeat(on_gpu[1], 3).to_numpy(), np.repeat(x, 3))
    with pytest.raises(gw.DatatypeError, match=r"give x\.astype"):
        gw.repeat(on_gpu[1], gw.ones(on_gpu[1].size, "u32", device), size=9)
    with pytest.raises(gw.LengthError, match="lengths differ: keys has"):
        gw.reduce_by_key(on_gpu[0], on_gpu[1][1:])


def test_a_counted_array_is_repeated_as_far_as_it_counts(device):
    items = gw.asarray(np.uint32([5, 6, 7, 8]), device).counted_by(gw.full(1, 2, "u32", device))
    twice = gw.repeat(items, 2)
    assert twice.count is not None
    assert twice.to_numpy().tolist() == [5, 5, 6, 6]


# ---- what is refused ----


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gw.segmented_reduce(np.ones(5, np.int32), [0, 3, 2, 5]), "must not fall"),
        (lambda: gw.segmented_reduce(np.ones(5, np.int32), [0, 9]), "there are 5 items"),
        (lambda: gw.segmented_reduce(np.ones(5, np.int32), [-1, 5]), "from -1"),
        (lambda: gw.segmented_reduce(np.ones(5, np.int32), [0.0, 5.0]), "must be integers; give np"),
        (lambda: gw.segmented_reduce(np.ones(5, np.int32), []), "offsets has no items"),
        (lambda: gw.segmented_reduce(np.ones(5, np.int32), length=2**32 + 5), "at most 4294967295"),
        (lambda: gw.segment_ids(gw.asarray(np.uint32([0, 3])), size=2**32 + 3), "at most 4294967295"),
        (lambda: gw.ReduceByKey(None, size=2**32 + 1, capabilities=gw.Capabilities()), "at most 4294967295"),
        (lambda: gw.Repeat(None, size=2**32 + 1, capabilities=gw.Capabilities()), "at most 4294967295"),
        (lambda: gw.Select(None, size=2**32, capabilities=gw.Capabilities()), "at most 4294967295"),
        (lambda: gw.Transpose(None, rows=2**32, columns=1, capabilities=gw.Capabilities()), "at most 4294967295"),
        (lambda: gw.TopK(None, row_length=2**32 + 1, capabilities=gw.Capabilities()), "at most 4294967295"),
        (lambda: gw.MatMul(None, m=1, n=2**32, k=1, capabilities=gw.Capabilities()), "at most 4294967295"),
        (lambda: gw.Histogram(None, bins=2**31, capabilities=gw.Capabilities()), "fewer than 2"),
        (lambda: gw.segmented_reduce(np.ones(5, np.int32)), "either offsets or length="),
        (lambda: gw.segmented_reduce(np.ones(5, np.int32), length=2), "whole number"),
        (lambda: gw.reduce_by_key([1, 2], np.ones(5, np.int32)), "lengths differ"),
        (lambda: gw.reduce_by_key(np.ones((2, 2), int), np.ones((2, 2), int)), "along one dimension"),
        (lambda: gw.repeat([1, 2], [1, -1]), "at least 0"),
        (lambda: gw.repeat([1, 2], np.array([2**64 - 1, 3], np.uint64)), r"fewer than 2\^32"),
        (lambda: gw.repeat([1, 2], [2**32 - 1, 2]), r"make 4294967297 items"),
        (lambda: gw.repeat([1, 2], [1.0, 2.0]), "repeats is of float64, but must be integers; give np"),
        (lambda: gw.repeat([1, 2, 3], [1, 2]), "x has 3 items, repeats has 2"),
        (lambda: gw.repeat([[1, 2]], 1, 2), "axis=2 is out of bounds"),
        (lambda: gw.repeat(gw.asarray(np.ones(2, np.uint32)), gw.asarray(np.ones(2, np.uint32))), "needs size="),
        (lambda: gw.segment_ids([3, 5]), "must begin with 0"),
        (lambda: gw.SegmentedReduce(None, "u8", capabilities=gw.Capabilities()), "4 bytes or more"),
        (lambda: gw.ReduceByKey(None, "u8", capabilities=gw.Capabilities()), "u8"),
        (lambda: gw.ReduceByKey(None, size=0, capabilities=gw.Capabilities()), "size"),
        (lambda: gw.ScanByKey(None, kind="both", capabilities=gw.Capabilities()), "inclusive, exclusive"),
        (lambda: gw.ScanByKey(None, strategy="fast", capabilities=gw.Capabilities()), "known are auto"),
        (lambda: gw.Repeat(None, size=5, by="runs", capabilities=gw.Capabilities()), "counts, offsets"),
    ],
)
@pytest.mark.gpu
def test_bad_input_is_refused_with_a_remedy(call, said):
    with pytest.raises(gw.ArgumentError, match=said):
        call()


def test_offsets_that_fall_reach_nothing_outside(device):
    """Kernels run without a compiler's checks, so they have their own."""
    rng = np.random.default_rng(16)
    items = gw.asarray(np.ones(3000, np.uint32), device)
    offsets = rng.integers(0, 2**32, 500).astype(np.uint32)
    room = gw.full(600, 7, "u32", device)
    gw.SegmentedReduce(device, tuning=TUNING).execute(
        items=items, offsets=gw.asarray(offsets, device), output=room[50:549]
    )
    got = room.to_numpy()
    assert set(got[:50]) | set(got[549:]) == {7}
    scanned = gw.SegmentedScan(device, tuning=TUNING).execute(items=items, offsets=gw.asarray(offsets, device)).output
    assert scanned.to_numpy().max() <= 3000


@pytest.mark.parametrize("by", ["offsets", "counts"])
def test_a_repeat_by_wild_numbers_reaches_nothing_outside(device, by):
    """Offsets that fall; counts whose sum wraps."""
    rng = np.random.default_rng(17)
    wild = rng.integers(0, 2**32, 501 if by == "offsets" else 500).astype(np.uint32)
    values = gw.asarray(np.r_[np.full(50, 9), np.arange(1000, 1500), np.full(50, 9)].astype(np.uint32), device)
    room = gw.full(3000, 7, "u32", device)
    repeat = gw.Repeat(device, "u32", size=2900, by=by, tuning=REPEATS)
    run = repeat.execute(values=values[50:550], output=room[50:2950], **{by: gw.asarray(wild, device)})
    got = room.to_numpy()
    assert set(got[:50]) | set(got[2950:]) == {7}
    assert set(got[50:2950]) <= {7, *range(1000, 1500)}
    assert run.output.to_numpy().size <= 2900
