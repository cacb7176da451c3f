"""Sort, SortPairs and ArgSort against numpy's stable sort, bit for bit."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.primitives import sort
from gridwise_py.primitives.engines import radix_sort
from gridwise_py.tuning.model import code_counts
from helpers.sorting import DATATYPES, KINDS, keys_of, order_of
from helpers.strategies import make_primitive, mode_for, pairwise, plan_from, quick_first

STRATEGIES = ("onesweep", "reduce_then_scan")
FACTORS = {
    "kind": tuple(KINDS),
    "datatype": DATATYPES,
    "strategy": STRATEGIES,
    "mode": ("native", "none", "emulated"),
    "descending": (False, True),
    "parts": (1, 2),
}
#: Each kind, strategy, mode, direction and number of parts, and keys of each size.
QUICK = [
    dict(zip(FACTORS, case, strict=True))
    for case in (
        ("keys", "u32", "onesweep", "none", False, 1),
        ("pairs of 8", "f16", "onesweep", "native", False, 2),
    )
]
SMALL = {"workgroup_size": 256, "items": 2}
TILE = 512


def same_bits(result, expected):
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(
        result.view(f"u{result.dtype.itemsize}"), expected.view(f"u{expected.dtype.itemsize}")
    )


def make(device, kind="keys", datatype="u32", mode="none", **options):
    cls, values = KINDS[kind]
    arguments = (datatype,) if values is None else (datatype, values)
    options = {**SMALL, "parts": 1, "subgroups": mode_for(device, mode, 256), **options}
    return make_primitive(cls, device, *arguments, **options)


def check(device, primitive, keys, seed=1, **call):
    """Sort `keys`, and compare everything that comes out."""
    order = order_of(keys, primitive.descending)
    x = gw.asarray(keys, device)
    if isinstance(primitive, gw.SortPairs):
        values = keys_of(primitive.value_datatype.name, keys.size, seed)
        run = primitive.execute(keys=x, values=gw.asarray(values, device), **call)
        same_bits(run.outputs["output_keys"].to_numpy(), keys[order])
        same_bits(run.outputs["output_values"].to_numpy(), values[order])
    else:
        run = primitive.execute(input=x, **call)
        expected = order.astype(np.uint32) if isinstance(primitive, gw.ArgSort) else keys[order]
        same_bits(run.output.to_numpy(), expected)
    same_bits(x.to_numpy(), keys)  # the input stays as it was
    return run


def floats_with_specials(keys):
    """Replace most keys by the least and other NaNs of both signs, infinities, zeros of both signs, and the largest."""
    dtype = keys.dtype
    bits = np.array([np.finfo(dtype).max, np.inf, np.inf, np.nan, np.nan, 0, 1, 1], dtype).view(f"u{dtype.itemsize}")
    bits[2] += 1  # a NaN by its last bit
    bits[4] |= bits[0]  # all bits but the sign
    bits[7] = 1  # subnormal
    bits = np.concatenate([bits, bits | bits.dtype.type(1 << (8 * dtype.itemsize - 1))])
    rng = np.random.default_rng(5)
    return np.where(rng.random(keys.size) < 0.9, rng.choice(bits, keys.size).view(dtype), keys)


@pytest.mark.parametrize("case", quick_first(QUICK, pairwise(FACTORS)), ids=lambda c: "-".join(map(str, c.values())))
def test_is_numpys_stable_sort_at_edge_sizes(device, require, case):
    if case["mode"] == "native":
        require("subgroup")
    primitive = make(device, **case)
    for n in (0, 1, 2, 31, 33, 257, TILE - 1, TILE, TILE + 1, 2 * TILE + 5, 7 * TILE):
        keys = keys_of(case["datatype"], n)
        check(device, primitive, keys, trials=3 if n == TILE + 1 else 1)
        if keys.dtype.kind == "f" and n in (TILE - 1, 7 * TILE):
            special = floats_with_specials(keys)
            check(device, primitive, special)
            check(device, primitive, np.abs(special[~np.isnan(special)]))  # and without such keys


@pytest.mark.parametrize(
    ("datatype", "descending"),
    quick_first([("i8", True), ("bool", False), ("i16", True)], [("u8", False), ("u16", False), ("i16", False)]),
)
def test_small_keys_are_written_by_their_counts(device, monkeypatch, datatype, descending):
    """What lies beside a view stays: it ends within a row of 16 bytes, within a word, and where a row ends."""
    monkeypatch.setattr(sort, "code_counts", lambda device: code_counts(device)._replace(least=1000))
    gpu = replace(gw.capabilities(device), adapter_type="DiscreteGPU")
    options = {"descending": descending, "capabilities": gpu}
    primitive = make(device, "keys", datatype, **options)
    digits = {"strategy": "onesweep", "descending": descending}
    places = [make(device, "keys", datatype, **each, overwrite_input=True) for each in (options, digits)]
    n = 40 * TILE + 64  # so many that a workgroup counts whole chunks, and several write
    every = keys_of(datatype, n)
    few = np.where(np.arange(n) % 37 > 3, every[0], every)  # rows of one key, and of several
    parts = ((0, n), (1, n - 3), (4, n - 8), (16, n - 15), (0, TILE + 1), (0, 2 * TILE - 1), (0, TILE * 16 + 1))
    for keys, (begin, end) in itertools.product((every, few), parts):
        part = keys[begin:end]
        check(device, primitive, part, trials=2)
        counts = end - begin > (1000 if every.itemsize == 2 else TILE)
        for place, expected in zip(places, ("counting" if counts else "onesweep", "onesweep"), strict=True):
            x = gw.asarray(keys, device)
            run = place.execute(input=x[begin:end])
            assert run.plan.parameters["strategy"] == expected
            same_bits(x.to_numpy(), np.concatenate([keys[:begin], part[order_of(part, descending)], keys[end:]]))
    counted = make(device, "keys", datatype, **options)
    for count in (n - 75, 0, 3):
        output = gw.asarray(every, device)
        counted.execute(input=gw.asarray(few, device), output=output, n=gw.asarray(np.uint32([count]), device))
        part = few[:count]
        same_bits(output.to_numpy(), np.concatenate([part[order_of(part, descending)], every[count:]]))


@pytest.mark.slow
def test_more_equal_keys_of_16_bits_than_a_counter_counts(device, monkeypatch):
    few = code_counts(gw.capabilities(device))._replace(least=1000, workgroups=4)
    for module in (sort, radix_sort):
        monkeypatch.setattr(module, "code_counts", lambda device: few)
    primitive = make(device, "keys", "u16", capabilities=replace(gw.capabilities(device), adapter_type="DiscreteGPU"))
    keys = keys_of("u16", 300_000)
    # Of a round of 49,152 keys 20,000 are one, and all of the next rounds.
    late = np.where(np.arange(keys.size) < 29_152, keys % 5, 77).astype(keys.dtype)
    for each in (np.full_like(keys, 77), np.where(keys % 5 > 0, keys[0], keys), np.sort(keys), late):
        assert check(device, primitive, each, trials=2).plan.parameters["strategy"] == "counting"


def test_blocks_of_several_tiles_and_more_blocks_than_invocations(device):
    """A CPU adapter has at most 64 blocks, and a GPU 1,056, of which 256 invocations make offsets in several turns."""
    for adapter, tiles, blocks in (
        ("CPU", 64, 64), ("CPU", 65, 33), ("CPU", 150, 50), ("DiscreteGPU", 300, 300), ("DiscreteGPU", 1057, 529),
    ):  # fmt: skip
        caps = replace(gw.capabilities(device), adapter_type=adapter)
        primitive = make(device, strategy="reduce_then_scan", capabilities=caps)
        run = check(device, primitive, keys_of("u32", tiles * TILE - 9))
        assert (run.plan.parameters["tiles"], run.plan.parameters["blocks"]) == (tiles, blocks)


@pytest.mark.parametrize(
    ("kind", "datatype", "strategy", "descending"),
    # An odd number of passes, too, behind which the keys lie elsewhere.
    [
        ("keys", "u32", "reduce_then_scan", False),
        ("pairs of 8", "u8", "onesweep", True),
    ],
)
def test_in_place_and_digits_in_which_all_keys_agree(device, kind, datatype, strategy, descending):
    """Such digits move nothing. Small keys share a word with their neighbours, which several workgroups write."""
    options = {"strategy": strategy, "descending": descending}
    primitive = make(device, kind, datatype, overwrite_input=True, **options)
    apart = make(device, **options) if datatype == "u32" else None
    for n in (3, 5 * TILE + 9):
        for mask in (0xFFFFFFFF, 0xFFFF00FF, 0x00FF00FF, 0x0000FF00, 0xFF000000, 0):
            kept, held = (np.uint32([word]).view(keys_of(datatype, 1).dtype)[0] for word in (mask, 0x12345678 & ~mask))
            keys = (keys_of(datatype, n) & kept) | held
            if apart is not None:
                check(device, apart, keys)
            x, order = gw.asarray(keys, device), order_of(keys, descending)
            values = keys_of("f64", n, 5)
            named = {"input": x} if kind == "keys" else {"keys": x, "values": gw.asarray(values, device)}
            outputs = primitive.execute(**named).outputs
            assert list(outputs.values()) == list(named.values())
            same_bits(x.to_numpy(), keys[order])
            if kind != "keys":
                same_bits(named["values"].to_numpy(), values[order])
    with pytest.raises(gw.ArgumentError, match="sorts in place; leave out output"):
        primitive.execute(**named, **{next(iter(outputs)): gw.empty_like(x)})
    with pytest.raises(gw.OverlapError, match="trials=2 repeats the work"):
        primitive.execute(**named, trials=2)


def test_in_place_needs_less_memory():
    caps = gw.Capabilities()
    lengths = {"input": 1 << 20, "output": 1 << 20}
    apart = gw.Sort.plan_for(capabilities=caps, lengths=lengths)
    place = gw.Operand(1 << 20, "io", size_bytes=4 << 20)
    together = gw.Sort.plan_for(
        capabilities=caps, lengths=gw.Layout({"input": place, "output": place}), overwrite_input=True
    )
    total = [sum(spec.size_bytes for spec in plan.buffers) for plan in (apart, together)]
    assert total[0] - total[1] == 4 << 20


@pytest.mark.parametrize(
    ("datatype", "descending", "ranges"),
    [
        ("u32", False, [(0, 8), (5, 30), (24, 32), (7, 7)]),
        ("i64", True, [(28, 41), (40, 64)]),
        pytest.param("f16", False, [(0, 8), (3, 12), (9, 9)], marks=pytest.mark.slow),
    ],
)
def test_bit_ranges(device, datatype, descending, ranges):
    options = {"strategy": "onesweep", "descending": descending}
    for (begin, end), n in itertools.product(ranges, (300, 3 * TILE + 3)):
        primitive = make(device, datatype=datatype, begin_bit=begin, end_bit=end, **options)
        keys = keys_of(datatype, n)
        if datatype == "f16":
            keys = np.abs(keys[~np.isnan(keys)])
        # The code of an integer with a sign, and of a float that is not negative, is its bits with the other sign.
        unsigned = keys.view(f"u{keys.itemsize}")
        codes = unsigned ^ unsigned.dtype.type(0 if datatype[0] == "u" else 1 << 8 * keys.itemsize - 1)
        part = ((codes >> unsigned.dtype.type(begin)) & unsigned.dtype.type((1 << (end - begin)) - 1)).astype(np.int64)
        result = primitive.execute(input=gw.asarray(keys, device)).output.to_numpy()
        same_bits(result, keys[np.argsort(-part if descending else part, kind="stable")])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_distributions(device, strategy):
    """By one primitive, one after the other: nothing is left of the data before."""
    primitive, n = make(device, strategy=strategy), 6 * TILE + 1
    rng = np.random.default_rng(7)
    for trials, keys in enumerate((
        np.sort(keys_of("u32", n)), np.sort(keys_of("u32", n))[::-1].copy(), np.full(n, 0xDEADBEEF, np.uint32),
        rng.integers(0, 3, n, dtype=np.uint32), rng.zipf(1.3, n).clip(max=2**32 - 1).astype(np.uint32),
        np.full(n, 0xFFFFFFFF, np.uint32), keys_of("u32", n),
    )):  # fmt: skip
        check(device, primitive, keys, trials=1 + trials % 3)


# ---- forward progress, epochs, repetition ----


def test_a_histogram_that_waits_in_vain_counts_all(device, require):
    """Loops within the loop that waits must stay below lavapipe's limit, or nothing is counted."""
    require("subgroup")
    primitive = make(device, strategy="reduce_then_scan", mode="native", items=1, stall_every=3)
    check(device, primitive, keys_of("u32", 16_130))


@pytest.mark.slow
def test_what_a_stalled_tile_posted_in_an_earlier_pass_is_not_taken_for_this_one(device):
    primitive = make(device, strategy="onesweep", items=1, stall_every=3, spin_limit=8)
    for seed in range(2):
        check(device, primitive, keys_of("u32", 65_534, seed))


def test_no_text_for_turns_where_subgroups_have_32_lanes_or_more(device, require):
    """What no adapter here can run is at least compiled, of one kind."""
    require("subgroup")
    own, lengths = gw.capabilities(device), dict.fromkeys(("keys", "values", "output_keys", "output_values"), 3 * TILE)
    for strategy in STRATEGIES:
        for least, has_turns in ((4, True), (32, False)):
            caps = replace(own, subgroup_min_size=least, subgroup_size=max(own.subgroup_size, least))
            plan = make(None, "pairs", strategy=strategy, mode="native", capabilities=caps).plan(
                gw.Layout.separate(**lengths)
            )
            texts = [plan.shaders[k.shader].text for k in plan.kernels if k.label.startswith("pass")]
            assert texts
            assert {("fn rank_in_turn" in text, "rank_steps" in text) for text in texts} == {(has_turns, has_turns)}
    keys, values = (gw.asarray(keys_of(datatype, 3 * TILE), device) for datatype in ("u32", "i32"))
    make(device, "pairs", strategy="onesweep", mode="native", capabilities=caps).bind(keys=keys, values=values)


def test_with_and_without_tickets(device):
    for tickets in (False, True):
        check(device, make(device, strategy="onesweep", tickets=tickets), keys_of("u32", 150 * TILE + 77))


def test_more_workgroups_than_a_dimension_holds(device):
    caps = gw.capabilities(device)
    tiny = replace(caps, limits={**caps.limits, "max-compute-workgroups-per-dimension": 7})
    for strategy in STRATEGIES:
        # 256 bins have a workgroup each, so 7 per dimension take three.
        check(device, make(device, strategy=strategy, capabilities=tiny), keys_of("u32", 200 * TILE + 1))


# ---- where arguments lie ----


@pytest.mark.needs("subgroup")
@pytest.mark.parametrize("n", [99, 2 * TILE + 3])
def test_items_of_several_sizes_in_one_buffer(device, n):
    """Each argument has an extent of its own; offsets count items of the argument's size, overlap is one of bytes."""
    words = keys_of("u32", 8 * n + 8)
    buffer = gw.asarray(words, device)
    names = {"keys": "f16", "values": "f64", "output_keys": "f16", "output_values": "f64"}
    views, places = {}, {}
    for i, (name, datatype) in enumerate(names.items()):
        size = gw.STORAGE_DATATYPES[datatype].itemsize_bytes
        first = i * (2 * n + 2) * 4 // size + (size == 2)  # halves of a word, too
        views[name] = gw.Array(buffer.buffer, datatype, n, first)
        places[name] = slice(first * size, (first + n) * size)
    before = words.view(np.uint8)
    taken = {name: before[place].view(views[name].dtype) for name, place in places.items()}
    primitive = make(device, "pairs of 8", "f16", "native", strategy="onesweep")
    primitive.execute(**views)
    order = order_of(taken["keys"])
    expected = before.copy()
    expected[places["output_keys"]] = taken["keys"][order].view(np.uint8)
    expected[places["output_values"]] = taken["values"][order].view(np.uint8)
    np.testing.assert_array_equal(buffer.to_numpy().view(np.uint8), expected)
    views["output_values"] = gw.Array(buffer.buffer, "f64", n, 0)
    with pytest.raises(gw.OverlapError, match=rf"output_values .* overlaps keys \(items 1 to {n + 1} of 2 bytes"):
        primitive.execute(**views)


# ---- plans ----


def test_labels_a_person_understands():
    caps = gw.Capabilities()
    lengths = {"input": 1 << 20, "output": 1 << 20}

    def labels(**options):
        return [k.label for k in plan_from(gw.Sort, capabilities=caps, lengths=lengths, **options).kernels]

    assert labels() == ["histogram", "pass 0", "pass 1", "pass 2", "pass 3"]
    assert labels(strategy="reduce_then_scan", end_bit=8) == ["histogram", "count 0", "offsets 0", "pass 0"]
    assert [k.label for k in gw.Sort.plan_for(capabilities=caps, lengths={"input": 9, "output": 9}).kernels] == ["sort"]


def test_few_keys_have_tiles_of_their_own():
    caps = gw.Capabilities(
        limits={"max-compute-workgroup-storage-size": 48 << 10, "max-compute-invocations-per-workgroup": 1024,
                "max-compute-workgroup-size-x": 1024, "max-storage-buffer-binding-size": 2**31 - 4},
        features=frozenset({"subgroup"}), subgroup_size=32,
    )  # fmt: skip

    def plan(n, **options):
        return plan_from(gw.Sort, capabilities=caps, lengths={"input": n, "output": n}, **options)

    least, one, few, many = (plan(n).parameters for n in (4096, 4097, 10241, (1 << 20) + 1))
    assert (least["strategy"], least["items_per_invocation"]) == ("one workgroup", 8)
    assert (one["strategy"], one["items_per_invocation"]) == ("one workgroup", 20)
    assert plan(10240).parameters == one
    assert (few["strategy"], few["items_per_invocation"], few["tiles"]) == ("onesweep", 8, 3)
    assert (many["items_per_invocation"], many["tiles"]) == (20, 103)
    assert one["shape"] == few["shape"] == many["shape"] == "default"
    assert plan(10241, items=15).parameters["items_per_invocation"] == 15, "in parts that go into it"
    wished = plan(10241, items=6, parts=1)
    assert (wished.parameters["shape"], wished.parameters["items_per_invocation"]) == ("argument", 6)
    assert len(wished.siblings) < len(plan(10241).siblings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "items", "parts"),
    # Texts of many items and parts take up to 20 seconds to compile.
    quick_first(
        [("keys", 8, 1), ("pairs of 8", 4, 1)],
        [("keys", 20, 2), ("pairs", 8, 1), ("pairs", 18, 2), ("pairs of 8", 12, 3)],
    ),
)
def test_the_shapes_of_gpus(device, require, kind, items, parts):
    require("subgroup", "workgroups of 512")
    primitive = make(device, kind, mode="native", workgroup_size=512, items=items, parts=parts)
    tile = 512 * items
    for n in (tile, tile + 1, 3 * tile + 77):
        check(device, primitive, keys_of("u32", n))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["native", "none"])
def test_a_number_of_rows_that_is_no_power_of_two(device, require, mode):
    """What a device with workgroups of 512 and 16 KiB of their memory gets."""
    if mode == "native":
        require("subgroup")
    check(device, make(device, "pairs", mode=mode, workgroup_size=384, parts=2), keys_of("u32", 12_345))


@pytest.mark.parametrize("storage_bytes", [32 << 10, 48 << 10])
def test_temporary_memory(storage_bytes):
    caps = gw.Capabilities(
        limits={"max-compute-workgroup-storage-size": storage_bytes, "max-compute-invocations-per-workgroup": 512,
                "max-compute-workgroup-size-x": 512, "max-storage-buffer-binding-size": 2**31 - 4},
        features=frozenset({"subgroup"}), subgroup_size=32,
    )  # fmt: skip
    for n in (1 << 20, 1 << 26):
        keys = gw.Sort.plan_for(capabilities=caps, lengths={"input": n, "output": n})
        assert keys.scratch_bytes <= 4 * n * 1.08
        names = ("keys", "values", "output_keys", "output_values")
        pairs = gw.SortPairs.plan_for(capabilities=caps, lengths=dict.fromkeys(names, n))
        assert pairs.scratch_bytes <= 8 * n * 1.04


def test_work_is_each_item_read_once_and_written_once():
    lengths = dict.fromkeys(("keys", "values", "output_keys", "output_values"), 1000)
    plan = gw.SortPairs.plan_for(capabilities=gw.Capabilities(), lengths=lengths, dtype="u64", value_dtype="f32")
    assert (plan.work.items, plan.work.read_bytes, plan.work.write_bytes) == (1000, 12_000, 12_000)
    plan = gw.ArgSort.plan_for(capabilities=gw.Capabilities(), lengths={"input": 10, "output": 10}, dtype="f64")
    assert (plan.work.read_bytes, plan.work.write_bytes) == (80, 40)


def test_a_kernel_binds_no_more_buffers_than_every_device_allows():
    lengths = dict.fromkeys(("keys", "values", "output_keys", "output_values"), 100_000)
    for strategy in STRATEGIES:
        plan = gw.SortPairs.plan_for(capabilities=gw.Capabilities(), lengths=lengths, strategy=strategy)
        assert max(sum(b.access != "uniform" for b in k.bindings) for k in plan.kernels) <= 8


# ---- errors ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "c64"}, "datatype 'c64' is not supported here; supported are u32"),
        ({"begin_bit": 3, "end_bit": 33}, "bits 3 to 33 do not lie in a key of u32"),
        ({"begin_bit": 9, "end_bit": 8}, "0 <= begin_bit <= end_bit <= 32"),
        ({"strategy": "merge"}, "known are onesweep, reduce_then_scan"),
        ({"workgroup_size": 100}, "multiple of 128, and at least 256"),
        ({"items": 1000}, "max-compute-workgroup-storage-size"),
        ({"items": 3, "parts": 2}, "multiple of parts=2"),
        ({"spin_limit": 0}, "spin_limit must be an integer of at least 1, not 0"),
    ],
)
def test_a_configuration_that_cannot_be(options, message):
    with pytest.raises(gw.ArgumentError, match=message):
        make_primitive(gw.Sort, None, capabilities=gw.Capabilities(), **options)


def test_values_of_other_sizes_and_lengths_are_refused(device):
    with pytest.raises(gw.DatatypeError, match="'int8' is not supported here"):
        gw.SortPairs(device, "u32", np.int8)
    keys, values = gw.empty(10, "u32", device), gw.empty(9, "u32", device)
    with pytest.raises(gw.LengthError, match="keys has 10 items, values has 9 items"):
        gw.SortPairs(device).execute(keys=keys, values=values)
    with pytest.raises(gw.OverlapError):
        gw.Sort(device).execute(input=keys, output=keys)
    with pytest.raises(gw.ArgumentError, match=r"ArgSort has no argument 'overwrite_input'.*indices.*leave it out"):
        gw.ArgSort(device, overwrite_input=True)


def test_too_many_keys_for_the_state():
    caps = gw.Capabilities(limits={"max-storage-buffer-binding-size": 2**33})
    with pytest.raises(gw.LimitError, match="at most 1073741823"):
        gw.Sort.plan_for(capabilities=caps, lengths={"input": 1 << 30, "output": 1 << 30})


# ---- one-shot functions, keys of two words ----


def test_a_struct_of_two_words_is_a_key(device):
    """The first field decides first; bits above those given do not count."""
    key = gw.struct(a=gw.u32("a") | 1 << 31, b=gw.u32("b"))
    tuning = gw.SortTuning(**SMALL, parts=1, subgroups=False)
    sort = gw.SortPairs(device, key, "u32", end_bit=36, strategy="onesweep", tuning=tuning)
    for n in (1, 400, 9001):
        rng = np.random.default_rng(n)
        a, b = rng.integers(0, 9, n).astype(np.uint32), rng.integers(0, 1 << 32, n, dtype=np.uint32)
        given = {"a": a, "b": b, "values": np.arange(n, dtype=np.uint32)}
        run = sort.execute(**{name: gw.asarray(x, device) for name, x in given.items()})
        order = np.lexsort((b, a))
        keys = (a.astype(np.uint64) | np.uint64(1 << 31)) << np.uint64(32) | b
        expected = [keys[order].tolist(), order.tolist()]
        assert [run.outputs[name].to_numpy().tolist() for name in ("output_keys", "output_values")] == expected
        assert [each.tolist() for each in sort.reference(**given)] == expected


def test_a_struct_of_floats_is_no_key(device):
    with pytest.raises(gw.DatatypeError, match=r"two fields of u32.*bitcast"):
        gw.Sort(device, gw.struct(a=gw.u32("a"), b=gw.f32("b")))
