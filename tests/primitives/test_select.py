"""Select, Partition, Unique and RunLength: shares, ways to outputs, stalls, windows, counts, chunks, expressions."""

import dataclasses
import itertools

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside
from helpers.strategies import make_primitive, quick_first

# Tiles of 256 items, so that few items are many tiles.
SMALL = {"workgroup_size": 64, "vecs": 1}
TUNING = gw.StreamTuning(**SMALL)
TILE = 256
STRATEGIES = ("lookback", "reduce_then_scan")
#: Each with the options of its constructor. Kernels read items of 1, 2, 4 and 8 bytes in four ways, and flags, too.
KINDS = {
    "select": (gw.Select, {"dtype": "i16"}),
    "select 8 bytes": (gw.Select, {"dtype": "u64", "flag_dtype": "i32"}),
    "partition": (gw.Partition, {"flag_dtype": "u16"}),
    "partition in 3": (gw.Partition, {"parts": 3, "dtype": "f32"}),
    "unique": (gw.Unique, {"dtype": "f32"}),
    "unique by key": (gw.Unique, {"dtype": "i32", "value_dtype": "f64"}),
    "runs": (gw.RunLength, {}),
    "runs 8 bytes": (gw.RunLength, {"dtype": "f64", "equal_nan": False}),
}
#: How items get to the outputs.
FORMS = {
    "default": {},
    "held, tile": {"stage": 512, "items": "held", "order": "tile"},
    "late, tile": {"stage": 512, "items": "late", "order": "tile"},
    "held, subgroup": {"stage": 512, "items": "held", "order": "subgroup"},
    "late, subgroup": {"stage": 512, "items": "late", "order": "subgroup"},
    "held": {"stage": 0, "items": "held"},
    "late": {"stage": 0, "items": "late"},
}
SHARES = (0.0, 0.01, 0.5, 1.0, "alternating")


def _marks(rng, n, share):
    return np.arange(n) % 2 == 0 if share == "alternating" else rng.random(n) < share


def _inputs(primitive, n, share, seed=0):
    """Return random inputs of which a share is marked; keys in runs with that share of heads."""
    rng = np.random.default_rng([n, seed])
    found = {}
    for name in primitive.signature.inputs:
        dtype = primitive.signature.datatype(name).dtype
        if "flags" in name:
            found[name] = (_marks(rng, n, share) * rng.integers(1, 2 if dtype.kind == "b" else 100, n)).astype(dtype)
        elif name == "keys":
            numbers = np.cumsum(_marks(rng, n, share))
            keys = (numbers % 7).astype(dtype)
            if dtype.kind == "f":
                keys[numbers % 7 == 3] = np.nan
                keys[(numbers % 7 == 0) & (rng.random(n) < 0.5)] = -0.0
            found[name] = keys
        else:
            found[name] = rng.integers(0, 1 << 20, n).astype(dtype)
    return found


def _check(primitive, inputs, note="", **options):
    arrays = {name: gw.asarray(items, primitive.device) for name, items in inputs.items()}
    run = primitive.execute(**arrays, **options)
    got = {name: array.to_numpy() for name, array in run.outputs.items()}
    found = inside.mismatch(primitive, inputs, got)
    assert found is None, f"{note} {found}"
    return run


def _make(device, kind, **options):
    cls, own = KINDS[kind]
    if options.pop("gpu", False):
        options["capabilities"] = dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    return make_primitive(cls, device, **{**SMALL, **own, **options})


# ---- what is selected


@pytest.mark.parametrize(
    ("kind", "form", "strategy"),
    quick_first(
        [
            *zip([kind for kind in KINDS if kind != "partition"], FORMS, ["lookback"] * len(FORMS), strict=True),
            ("partition in 3", "default", "reduce_then_scan"), ("unique by key", "default", "lookback"),
        ],
        itertools.product(KINDS, FORMS, STRATEGIES),
    ),
)  # fmt: skip
def test_every_share_at_every_size(device, kind, form, strategy):
    primitive = _make(device, kind, strategy=strategy, **FORMS[form])
    for n in (0, 1, 3, TILE - 1, TILE, TILE + 1, 5 * TILE + 7):
        for share in SHARES:
            _check(primitive, _inputs(primitive, n, share), f"{n} items, share {share}")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        # A subgroup has two rows in a round, and three in a tile: rounds go on where the last one ended.
        ("runs", {"subgroups": "emulated-8", "stage": 512, "order": "subgroup"}),
        pytest.param(
            "partition in 3", {"subgroups": "emulated-8", "stage": 512, "order": "subgroup"}, marks=pytest.mark.slow
        ),
        ("unique by key", {"workgroup_size": 16, "vecs": 9, "subgroups": False}),
        # On GPUs tiles of many heads are ordered by subgroups, those of few by the workgroup.
        ("unique by key", {"stage": 512, "gpu": True}),
        ("unique", {"stage": 512, "gpu": True}),
        ("unique", {"dtype": "u8", "stage": 512, "gpu": True}),
        ("runs", {"outputs": ("values", "lengths"), "stage": 512, "gpu": True}),
        ("runs 8 bytes", {"outputs": ("values", "lengths"), "stage": 512, "gpu": True}),
        ("runs", {"subgroups": "emulated-4", "stage": 512, "gpu": True}),
    ],
)
def test_rows_and_subgroups_of_other_numbers(device, kind, options):
    primitive = _make(device, kind, **{"vecs": 3, "stage": 1024, **options})
    for share in (0.05, 0.5, 1.0):
        _check(primitive, _inputs(primitive, 128 * 3 * 4 * 2 + 605, share), f"share {share}")


def test_structs_are_copied_whole(device):
    pair = gw.Struct("Pair", value="f32", index="u32", other="i32")
    items = pair.array(value=np.arange(700, dtype=np.float32), index=np.arange(700), other=-np.arange(700))
    flags = np.random.default_rng(2).random(700) < 0.3
    select = gw.Select(device, pair, tuning=TUNING)
    run = select.execute(input=gw.asarray(items, device), flags=gw.asarray(flags, device))
    assert (run.output.to_numpy() == items[flags]).all()


def test_zeros_are_equal_and_nan_as_asked(device):
    keys = np.array([0.0, -0.0, np.nan, -np.nan, 1.0, np.nan, 2.0, 2.0], dtype=np.float32)
    array = gw.asarray(keys, device)
    for equal_nan, runs in ((True, 5), (False, 6)):
        unique = gw.Unique(device, "f32", equal_nan=equal_nan, tuning=TUNING)
        assert unique.execute(keys=array).output.to_numpy().size == runs


# ---- how it goes


@pytest.mark.needs("14 storage buffers")
@pytest.mark.parametrize(
    ("kind", "strategy"), quick_first([("unique by key", "lookback")], [("runs", "reduce_then_scan")])
)
def test_runs_go_on_in_the_next_window(device, kind, strategy):
    """Inputs beyond a binding, with runs across the edges; the outputs get several bindings."""
    found = gw.capabilities(device)
    narrow = {"max-storage-buffer-binding-size": 6000, "min-storage-buffer-offset-alignment": 256}
    capabilities = dataclasses.replace(found, limits={**found.limits, **narrow})
    primitive = _make(device, kind, strategy=strategy, capabilities=capabilities)
    for share in (0.001, 0.5):
        run = _check(primitive, _inputs(primitive, 4000, share), f"share {share}")
        assert run.plan.parameters["windows"] > 2


# Later tiles first: each looks back before the earlier ones have published.
_FORWARDS = "fn state_enter(workgroup: u32) -> u32 { return workgroup; }"
_BACKWARDS = (_FORWARDS, "fn state_enter(workgroup: u32) -> u32 { return params.tiles - 1u - workgroup; }")
_IDLE_PUBLISHES = ("      state_publish(tile, TOTAL, identity());\n", "")


@pytest.fixture
def spoilt(monkeypatch):
    """Return a function that changes the texts that are composed from now on."""

    def spoil(*changes):
        def change(name, text):
            for old, new in changes if name == "stream_lookback.wgsl" else ():
                assert old in text
                text = text.replace(old, new)
            return text

        inside.change_texts(monkeypatch, change)

    yield spoil
    inside.forget_texts()


def _wrong_calls(primitive, n=9 * TILE + 3):
    """Alternate between few and many items that count, with other items in each call; return how many were wrong."""
    inputs, device, wrong = _inputs(primitive, n, 0.5), primitive.device, 0
    arrays = {name: gw.asarray(items, device) for name, items in inputs.items()}
    count = gw.empty(1, "u32", device)
    for m in (n, 300, n, 0, n, 300, n + 50, 300, 1, n):
        for name, items in _inputs(primitive, n, 0.3 if m == 300 else 0.6, m).items():
            inputs[name] = items
            arrays[name].copy_from(items)
        count.copy_from(np.array([m], dtype=np.uint32))
        run = primitive.execute(**arrays, n=count)
        part = {name: items[:m] for name, items in inputs.items()}
        wrong += (
            inside.mismatch(primitive, part, {name: array.to_numpy() for name, array in run.outputs.items()})
            is not None
        )
    return wrong


@pytest.mark.parametrize(
    ("kind", "strategy"),
    quick_first([("partition", "lookback"), ("runs", "lookback")], [("unique by key", "reduce_then_scan")]),
)
def test_counts_on_the_gpu_that_alternate(device, spoilt, kind, strategy):
    """Of one primitive, whose state has one bit of epoch: a tile without items has to publish, too."""
    spoilt(_BACKWARDS)
    assert _wrong_calls(_make(device, kind, strategy=strategy, tickets=False, spin_limit=2)) == 0


@pytest.mark.needs("a CPU adapter")  # a GPU runs its workgroups in any order, so a fault need not show
def test_silent_tiles_without_items_would_be_seen(device, spoilt):
    """What the test above guards against: words that are two dispatches old pass for new ones."""
    spoilt(_BACKWARDS, _IDLE_PUBLISHES)
    assert _wrong_calls(_make(device, "runs", strategy="lookback", tickets=False, spin_limit=2)) > 0


@pytest.mark.parametrize(
    ("kind", "more"),
    quick_first([("runs", {}), ("unique", {"vecs": 3, "stage": 256, "gpu": True})], [("partition in 3", {})]),
)
def test_what_does_not_fit_is_counted_and_nothing_is_written_behind_the_room(device, kind, more):
    for size in (0, 1, 100):
        primitive = _make(device, kind, strategy="lookback", size=size, **more)
        inputs, outputs = _inputs(primitive, 1500, 0.5), {}
        for name in primitive.signature.outputs[:-1]:
            whole = np.full(size + 8, 99, primitive.signature.datatype(name).dtype)
            outputs[name] = gw.asarray(whole, device)
        views = {name: array[4 : 4 + size] for name, array in outputs.items()}
        run = _check(primitive, inputs, f"room for {size}", **views)
        for name, array in outputs.items():
            margins = np.delete(array.to_numpy(), np.s_[4 : 4 + size])
            np.testing.assert_array_equal(margins, 99, err_msg=f"{name}, room for {size}")
        every = _make(device, kind).reference(**inputs)[-1]
        np.testing.assert_array_equal(list(run.outputs.values())[-1].to_numpy(), every)


# ---- expressions


def test_predicates_and_items_are_expressions(device):
    x = np.random.default_rng(5).integers(0, 1000, 3001).astype(np.uint32)
    u = gw.u32("x")
    for primitive in (
        gw.Select(device, u * 2 + gw.index, where=u > 500, tuning=TUNING),
        gw.Partition(device, u, where=[u > 700, u < 300], tuning=TUNING),
        gw.RunLength(device, gw.where(u > 900, u, 0), tuning=TUNING),
    ):
        _check(primitive, {"x": x})
    array = gw.asarray(x, device)
    run = gw.Select(device, array, where=array != gw.previous(array), tuning=TUNING).execute()
    np.testing.assert_array_equal(run.output.to_numpy(), x[np.append(False, x[1:] != x[:-1])])
    leaf = gw.Select(device, "u32", where=gw.u32("input") > gw.scalar("least", "u32"), tuning=TUNING)
    assert leaf.signature.inputs == ("input",)
    for least in (250, 700):  # a scalar is given to execute
        np.testing.assert_array_equal(leaf.execute(input=array, least=least).output.to_numpy(), x[x > least])


def test_each_field_of_a_struct_is_an_output(device):
    x = np.random.default_rng(6).random(2001).astype(np.float32)
    a = gw.f32("a")
    primitive = gw.Select(device, gw.struct(depth=a, id=gw.index), where=a < 0.25, tuning=TUNING)
    run = _check(primitive, {"a": x})
    np.testing.assert_array_equal(run.outputs["depth"].to_numpy(), x[x < 0.25])
    np.testing.assert_array_equal(run.outputs["id"].to_numpy(), np.flatnonzero(x < 0.25))
    with pytest.raises(gw.ArgumentError, match="a struct of p, q"):
        gw.Partition(device, gw.struct(p=a, q=gw.index), where=a < 0.25)


# ---- chunks


def _in_chunks(items, rng, device):
    """Return items in two chunks of random lengths, the second of which begins anywhere in its buffer."""
    chunks = []
    for before, part in zip((0, 3), np.split(items, rng.integers(0, items.size + 1, 1)), strict=True):
        room = np.concatenate([np.ones(before, items.dtype), part, np.ones(3, items.dtype)])
        chunks.append(gw.asarray(room, device)[before : before + part.size])
    return gw.ChunkedArray(chunks)


@pytest.mark.parametrize("kind", quick_first(["unique by key"], KINDS))
def test_inputs_in_chunks_are_one_array(device, kind):
    """Cut anywhere, and each input elsewhere; runs go on over the cuts."""
    primitive = _make(device, kind, strategy="lookback")
    rng = np.random.default_rng(1)
    for n, share in ((0, 0.5), (3000, 0.01), (3001, 0.5)):
        inputs = _inputs(primitive, n, share)
        chunked = {name: _in_chunks(items, rng, device) for name, items in inputs.items()}
        outputs = primitive.execute(**chunked).outputs
        assert inside.mismatch(primitive, inputs, {name: array.to_numpy() for name, array in outputs.items()}) is None
        if n == 3000:
            cut = {name: items[:1234] for name, items in inputs.items()}
            outputs = primitive.execute(**chunked, n=1234).outputs
            assert inside.mismatch(primitive, cut, {name: array.to_numpy() for name, array in outputs.items()}) is None


def test_chunks_of_which_only_the_gpu_knows_how_many_items_count_are_refused(device):
    x = gw.ChunkedArray([gw.asarray(np.ones(9, dtype=np.uint32), device)])
    with pytest.raises(gw.ArgumentError, match="is a ChunkedArray, and n= on the GPU is for Arrays"):
        gw.Unique(device).execute(keys=x, n=gw.asarray(np.array([3], dtype=np.uint32), device))


def test_functions_take_chunks(device):
    x = np.random.default_rng(2).integers(0, 4, 5000).astype(np.uint32)
    rng = np.random.default_rng(3)
    chunks, flags = _in_chunks(x, rng, device), _in_chunks(x == 2, rng, device)
    np.testing.assert_array_equal(gw.compress(flags, chunks).to_numpy(), x[x == 2])
    runs = gw.run_length_encode(chunks)
    np.testing.assert_array_equal(np.repeat(runs.values.to_numpy(), runs.lengths.to_numpy()), x)
    assert runs.values.count.item() == 1 + np.count_nonzero(x[1:] != x[:-1])


@pytest.mark.parametrize(
    "call",
    [
        lambda chunks: gw.Select(chunks.device, gw.u32("x"), where=gw.u32("x") > 3).execute(x=chunks),
        lambda chunks: gw.Select(chunks.device, "c64").execute(input=chunks, flags=chunks),
        lambda chunks: gw.ReduceByKey(chunks.device).execute(keys=chunks, items=chunks),
        lambda chunks: gw.SegmentedScan(chunks.device).execute(items=chunks, offsets=chunks),
        lambda chunks: gw.Repeat(chunks.device, size=9).execute(values=chunks, counts=chunks),
        gw.unique_values, gw.argmax, gw.segment_ids,
        lambda chunks: gw.scan_by_key(chunks, chunks),
        lambda chunks: gw.segmented_reduce(chunks, np.array([0, 9], dtype=np.uint32)),
        lambda chunks: gw.repeat(chunks, 2),
        lambda chunks: gw.stream(gw.Select(chunks.device), chunks),
    ],
)  # fmt: skip
def test_other_chunks_are_refused_before_anything_is_submitted(device, monkeypatch, call):
    chunks = gw.ChunkedArray([gw.asarray(np.zeros(9, dtype=np.uint32), device)])
    submitted = []
    monkeypatch.setattr(type(device.queue), "submit", lambda *a: submitted.append(a))
    with pytest.raises(
        gw.GridwiseError, match=r"one Array|chunks one by one|to_numpy\(\)|cannot be streamed|is of u32"
    ):
        call(chunks)
    assert submitted == []


# ---- what is refused


def test_wrong_arguments_are_refused(device):
    x = gw.asarray(np.arange(10, dtype=np.uint32), device)
    flags = gw.asarray(np.ones(9, dtype=bool), device)
    with pytest.raises(gw.LengthError, match="every item needs one flag"):
        gw.Select(device).execute(input=x, flags=flags)
    with pytest.raises(gw.OverlapError):
        gw.Select(device).execute(input=x[:9], flags=flags, output=x[:9])
    with pytest.raises(gw.ArgumentError, match="size"):
        gw.Select(device, size=-1)
    with pytest.raises(gw.ArgumentError, match="4 parts"):
        gw.Partition(device, parts=4)
    with pytest.raises(gw.ArgumentError, match="outputs="):
        gw.RunLength(device, outputs=("length",))
    with pytest.raises(gw.ArgumentError, match="how many items"):
        gw.Select(device, gw.index, where=gw.index > 3)
    with pytest.raises(gw.ArgumentError, match="as an output"):
        gw.Partition(device, gw.u32("rest"), where=gw.u32("rest") > 3)
    with pytest.raises(gw.ArgumentError, match="in one place"):
        gw.Select(device, gw.u32("x"), where=gw.f32("x") > 3)


def test_a_device_with_unsafe_look_back_takes_three_dispatches(device):
    verdict = gw.LookbackVerdict(coherent=False, progress=False, needs_tickets=False, recovers=False)
    capabilities = dataclasses.replace(gw.capabilities(device), lookback=verdict)
    primitive = gw.Select(None, capabilities=capabilities)
    lengths = {"input": 3000, "flags": 3000, "output": 3000, "count": 1}
    assert len(primitive.plan(gw.Layout.separate(**lengths)).kernels) == 3
