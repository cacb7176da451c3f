"""Sort, SortPairs and ArgSort against numpy's stable sort, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.primitives import REGISTRY
from helpers.sorting import DATATYPES, KINDS, keys_of, order_of
from helpers.strategies import covering, make_primitive, mode_for, pairwise, plan_from, quick_first

pytestmark = pytest.mark.thin(1)

FACTORS = {
    "datatype": DATATYPES,
    "kind": tuple(KINDS),
    "strategy": ("onesweep", "reduce_then_scan"),
    "mode": ("native", "none", "emulated"),
    "descending": (False, True),
    "parts": (1, 2),
}
CASES = pairwise(FACTORS)
QUICK = covering(CASES, ("kind", "strategy"), ("strategy", "mode"), ("strategy", "parts"))
SMALL = {"workgroup_size": 256, "items": 2}
TILE = 512
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0, 1e-42, -1e-42, 3e38, -3e38]


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


@pytest.mark.parametrize("case", quick_first(QUICK, CASES), ids=lambda c: "-".join(map(str, c.values())))
def test_is_numpys_stable_sort_at_edge_sizes(device, require, case):
    if case["mode"] == "native":
        require("subgroup")
    primitive = make(device, **case)
    for n in (0, 1, 2, 31, 33, 257, TILE - 1, TILE, TILE + 1, 2 * TILE + 5, 7 * TILE):
        check(device, primitive, keys_of(case["datatype"], n), trials=3 if n == TILE + 1 else 1)


@pytest.mark.parametrize(
    ("datatype", "kind", "strategy", "descending", "in_place"),
    [
        ("bool", "argsort", "onesweep", True, False),
        ("u8", "keys", "onesweep", False, True),
        ("i8", "pairs", "reduce_then_scan", True, False),
        ("u16", "keys", "reduce_then_scan", True, False),
        ("i16", "pairs", "onesweep", False, True),
    ],
)
def test_small_keys(device, datatype, kind, strategy, descending, in_place):
    """Neighbours share a word, which several workgroups write; extremes are among random bytes."""
    options = {"overwrite_input": True} if in_place else {}
    primitive = make(device, kind, datatype, strategy=strategy, descending=descending, **options)
    for n in (3, TILE + 1, 5 * TILE + 3):
        keys = keys_of(datatype, n)
        if in_place:
            x, order = gw.asarray(keys, device), order_of(keys, descending)
            values = {"values": gw.asarray(np.arange(n, dtype=np.int32), device)} if kind == "pairs" else {}
            primitive.execute(**{"keys" if values else "input": x}, **values)
            same_bits(x.to_numpy(), keys[order])
            for array in values.values():
                same_bits(array.to_numpy(), order.astype(np.int32))
        else:
            check(device, primitive, keys)


@pytest.mark.parametrize(("datatype", "begin", "end"), [("u16", 3, 12), ("i8", 4, 8), ("u8", 2, 2)])
@pytest.mark.parametrize("descending", [False, True])
def test_bit_ranges_of_small_keys(device, datatype, begin, end, descending):
    primitive = make(device, datatype=datatype, begin_bit=begin, end_bit=end, descending=descending)
    keys = keys_of(datatype, 3 * TILE + 3)
    codes = keys.astype(np.int64) + (128 if datatype == "i8" else 0)
    part = (codes >> begin) & ((1 << (end - begin)) - 1)
    result = primitive.execute(input=gw.asarray(keys, device)).output.to_numpy()
    same_bits(result, keys[np.argsort(-part if descending else part, kind="stable")])


# The rows of Gridwise's own regression matrix: kind, datatypes, directions and n.
GRIDWISE = [
    ("keys", ("u32",), (False,), 32),
    ("keys", ("u32",), (False,), 4096),
    ("keys", ("u32",), (False,), 1 << 20),
]
GRIDWISE_SLOW = [
    ("keys", ("u32", "i32", "f32"), (False, True), 256),
    ("pairs", ("u32", "i32"), (False, True), 256),
    ("keys", ("u32",), (True,), 3 << 20),
    ("pairs", ("u32",), (False,), 2 << 20),
]


@pytest.mark.parametrize(
    ("kind", "datatypes", "directions", "n"),
    [*GRIDWISE, *(pytest.param(*row, marks=pytest.mark.slow) for row in GRIDWISE_SLOW)],
)
def test_the_cases_of_gridwise(device, kind, datatypes, directions, n):
    for datatype in datatypes:
        for descending in directions:
            cls, values = KINDS[kind]
            chosen = (datatype,) if values is None else (datatype, values)
            check(device, cls(device, *chosen, descending=descending), keys_of(datatype, n))


@pytest.mark.parametrize("mode", FACTORS["mode"])
@pytest.mark.parametrize("strategy", FACTORS["strategy"])
def test_many_tiles_and_blocks(device, require, strategy, mode):
    if mode == "native":
        require("subgroup")
    primitive = make(device, strategy=strategy, mode=mode)
    run = check(device, primitive, keys_of("u32", 150 * TILE + 77))
    assert run.plan.parameters["tiles"] == 151
    if strategy == "reduce_then_scan":
        # A GPU has a place for each of so few tiles.
        assert 1 < run.plan.parameters["blocks"] < (151 if primitive.capabilities.is_cpu else 152)


@pytest.mark.parametrize("kind", ["keys", "argsort"])
@pytest.mark.parametrize(
    ("adapter", "tiles", "blocks"),
    [("CPU", 64, 64), ("CPU", 65, 33), ("CPU", 150, 50), ("DiscreteGPU", 300, 300), ("DiscreteGPU", 1057, 529)],
)
def test_blocks_of_several_tiles_and_more_blocks_than_invocations(device, adapter, tiles, blocks, kind):
    """A CPU adapter has at most 64 blocks, and a GPU 1,056, of which 256 invocations make offsets in several turns."""
    caps = replace(gw.capabilities(device), adapter_type=adapter)
    primitive = make(device, kind, strategy="reduce_then_scan", capabilities=caps)
    run = check(device, primitive, keys_of("u32", tiles * TILE - 9))
    assert (run.plan.parameters["tiles"], run.plan.parameters["blocks"]) == (tiles, blocks)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", FACTORS["strategy"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("datatype", ["f16", "f32", "f64"])
def test_a_nan_by_its_last_bit_is_one_and_infinity_is_none(device, datatype, strategy, descending):
    """The smallest NaN, of either sign, is as large as any other, and keeps its place among them."""
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    bits = np.array([np.finfo(dtype).max, np.inf, np.inf, np.nan, np.nan], dtype).view(f"u{dtype.itemsize}")
    bits[2] += 1
    bits[4] |= bits[0]  # all bits but the sign
    bits = np.concatenate([bits, bits | bits.dtype.type(1 << (8 * dtype.itemsize - 1))])
    keys = np.random.default_rng(5).choice(bits, 3 * TILE + 5).view(dtype)
    assert 0.5 < np.isnan(keys).mean() < 0.7
    assert 0.1 < np.isinf(keys).mean() < 0.3
    check(device, make(device, datatype=datatype, strategy=strategy, descending=descending), keys)


@pytest.mark.parametrize("datatype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("strategy", FACTORS["strategy"])
@pytest.mark.parametrize("descending", [False, True])
def test_floats_with_nan_infinities_and_zeros(device, datatype, strategy, descending):
    primitive = make(device, datatype=datatype, strategy=strategy, descending=descending, parts=2)
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    for n in (500, 5 * TILE + 3):
        with np.errstate(over="ignore"):  # 3e38 is an infinity in halves
            keys = np.random.default_rng(n).choice(np.array(SPECIAL, dtype=dtype), n)
        # Payloads of their own, so that the order of NaNs is seen.
        bits = keys.view(f"u{dtype.itemsize}")
        bits[np.isnan(keys)] ^= np.arange(np.isnan(keys).sum(), dtype=bits.dtype) & bits.dtype.type(255)
        check(device, primitive, keys)
        check(device, primitive, np.abs(keys[~np.isnan(keys)]))  # and without such keys


def test_descending_integers_keep_equal_keys_in_order(device):
    keys = np.random.default_rng(3).integers(-3, 3, 3000).astype(np.int32)
    run = check(device, make(device, "pairs", "i32", descending=True), keys)
    assert run.outputs["output_keys"].to_numpy()[0] == 2


@pytest.mark.parametrize("strategy", FACTORS["strategy"])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0xFFFF00FF, 0x00FF00FF, 0x0000FF00, 0xFF000000, 0])
def test_digits_in_which_all_keys_agree_move_nothing(device, strategy, in_place, mask):
    keys = (keys_of("u32", 5 * TILE + 9) & np.uint32(mask)) | np.uint32(0x12345678 & ~mask)
    primitive = make(device, strategy=strategy, overwrite_input=in_place)
    x = gw.asarray(keys, device)
    run = primitive.execute(input=x)
    assert (run.output is x) == in_place
    same_bits(run.output.to_numpy(), np.sort(keys))


def test_in_place_takes_no_output_and_repeats_nothing(device):
    primitive = make(device, overwrite_input=True)
    x = gw.asarray(keys_of("u32", 3 * TILE), device)
    with pytest.raises(gw.ArgumentError, match="sorts in place; leave out output="):
        primitive.execute(input=x, output=gw.empty_like(x))
    with pytest.raises(gw.OverlapError, match="trials=2 repeats the work"):
        primitive.execute(input=x, trials=2)
    same_bits(primitive.execute(input=x).output.to_numpy(), np.sort(keys_of("u32", 3 * TILE)))


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


@pytest.mark.parametrize("kind", ["pairs", "pairs of 8"])
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0xFF, 0])
def test_pairs_in_place(device, kind, mask):
    primitive = make(device, kind, "u32", overwrite_input=True)
    keys = keys_of("u32", 4 * TILE + 1) & np.uint32(mask)
    values = keys_of(primitive.value_datatype.name, keys.size, 5)
    x, y = gw.asarray(keys, device), gw.asarray(values, device)
    run = primitive.execute(keys=x, values=y)
    assert run.outputs["output_keys"] is x
    assert run.outputs["output_values"] is y
    order = order_of(keys)
    same_bits(x.to_numpy(), keys[order])
    same_bits(y.to_numpy(), values[order])


@pytest.mark.parametrize(
    ("datatype", "begin", "end"),
    [("u32", 0, 8), ("u32", 5, 30), ("u32", 24, 32), ("i32", 16, 32), ("u32", 7, 7), ("u64", 28, 41), ("u64", 40, 64)],
)
@pytest.mark.parametrize("in_place", [False, True])
def test_bit_ranges(device, datatype, begin, end, in_place):
    primitive = make(device, datatype=datatype, begin_bit=begin, end_bit=end, overwrite_input=in_place)
    for n in (300, 3 * TILE + 3):
        keys = keys_of(datatype, n)
        unsigned = keys.view(f"u{keys.dtype.itemsize}")
        codes = unsigned ^ (unsigned.dtype.type(1 << 31) if datatype == "i32" else unsigned.dtype.type(0))
        part = (codes >> unsigned.dtype.type(begin)) & unsigned.dtype.type((1 << (end - begin)) - 1)
        result = primitive.execute(input=gw.asarray(keys, device)).output.to_numpy()
        same_bits(result, keys[np.argsort(part, kind="stable")])


DISTRIBUTIONS = {
    "sorted": lambda rng, n: np.sort(rng.integers(0, 1 << 32, n, dtype=np.uint32)),
    "reversed": lambda rng, n: np.sort(rng.integers(0, 1 << 32, n, dtype=np.uint32))[::-1].copy(),
    "equal": lambda rng, n: np.full(n, 0xDEADBEEF, np.uint32),
    "few": lambda rng, n: rng.integers(0, 3, n, dtype=np.uint32),
    "zipf": lambda rng, n: rng.zipf(1.3, n).clip(max=2**32 - 1).astype(np.uint32),
    "all ones": lambda rng, n: np.full(n, 0xFFFFFFFF, np.uint32),
}


def test_bit_ranges_of_halves(device):
    """The code of a float that is not negative is its bits, with the sign set."""
    bits = np.random.default_rng(4).integers(0, 0x7C00, 5 * TILE + 1, dtype=np.uint16)
    for begin, end in ((0, 8), (3, 12), (8, 16), (9, 9)):
        primitive = make(device, datatype="f16", begin_bit=begin, end_bit=end)
        result = primitive.execute(input=gw.asarray(bits.view(np.float16), device)).output.to_numpy()
        part = (bits >> np.uint16(begin)) & np.uint16((1 << (end - begin)) - 1)
        same_bits(result.view(np.uint16), bits[np.argsort(part, kind="stable")])


@pytest.mark.parametrize("strategy", FACTORS["strategy"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(device, name, strategy):
    keys = DISTRIBUTIONS[name](np.random.default_rng(7), 6 * TILE + 1)
    check(device, make(device, "pairs", strategy=strategy, parts=2), keys)


# ---- forward progress, epochs, repetition ----


@pytest.mark.thin(1)
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(("stall_every", "parts"), [(1, 2), (2, 1), (7, 2)])
def test_a_tile_that_never_posts_is_counted_again(device, kind, stall_every, parts):
    primitive = make(device, kind, "f32", strategy="onesweep", stall_every=stall_every, spin_limit=3, parts=parts)
    for seed in range(2):
        check(device, primitive, keys_of("f32", 20 * TILE + 5, seed), trials=3)


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


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("strategy", FACTORS["strategy"])
def test_no_text_for_turns_where_subgroups_have_32_lanes_or_more(device, require, kind, strategy):
    """What no adapter here can run is at least compiled."""
    require("subgroup")
    own = gw.capabilities(device)
    keys = keys_of("u32", 3 * TILE)
    for least, has_turns in ((4, True), (32, False)):
        primitive = make(
            device, kind, strategy=strategy, mode="native",
            capabilities=replace(own, subgroup_min_size=least, subgroup_size=max(own.subgroup_size, least)),
        )  # fmt: skip
        names = {"input": keys}
        if isinstance(primitive, gw.SortPairs):
            names = {"keys": keys, "values": keys_of(primitive.value_datatype.name, keys.size)}
        plan = primitive.bind(**{name: gw.asarray(items, device) for name, items in names.items()}).plan
        texts = [plan.shaders[k.shader].text for k in plan.kernels if k.label.startswith("pass")]
        assert texts
        assert {("fn rank_in_turn" in text, "rank_steps" in text) for text in texts} == {(has_turns, has_turns)}


@pytest.mark.parametrize("tickets", [False, True])
def test_with_and_without_tickets(device, tickets):
    check(device, make(device, strategy="onesweep", tickets=tickets), keys_of("u32", 12 * TILE + 1))


@pytest.mark.parametrize("strategy", FACTORS["strategy"])
def test_a_plan_is_right_again_and_again_on_other_data(device, strategy):
    primitive = make(device, strategy=strategy)
    for seed in range(5):
        check(device, primitive, keys_of("u32", 9 * TILE, seed), trials=1 + seed % 3)


def test_trials_repeat_the_same_work(device):
    primitive = make(device, "pairs", strategy="onesweep")
    for trials in (1, 7):
        check(device, primitive, keys_of("u32", 9 * TILE + 3), trials=trials)


def test_more_workgroups_than_a_dimension_holds(device):
    caps = gw.capabilities(device)
    tiny = replace(caps, limits={**caps.limits, "max-compute-workgroups-per-dimension": 7})
    for strategy in FACTORS["strategy"]:
        # 256 bins have a workgroup each, so 7 per dimension take three.
        check(device, make(device, strategy=strategy, capabilities=tiny), keys_of("u32", 200 * TILE + 1))


# ---- where arguments lie ----


@pytest.mark.parametrize("datatype", ["u32", "u64", "i8"])
@pytest.mark.parametrize("offset", [1, 3, 4])
def test_views_that_start_anywhere(device, datatype, offset):
    keys = keys_of(datatype, 4 * TILE + 20)
    x, out = gw.asarray(keys, device), gw.asarray(keys, device)
    n = 3 * TILE + 1
    make(device, datatype=datatype).execute(input=x[offset : offset + n], output=out[2 : 2 + n])
    expected = keys.copy()
    expected[2 : 2 + n] = np.sort(keys[offset : offset + n])
    same_bits(out.to_numpy(), expected)


@pytest.mark.parametrize("n", [100, 3 * TILE + 1])
def test_everything_in_one_buffer(device, n):
    buffer = gw.asarray(keys_of("u32", 5 * n), device)
    before = buffer.to_numpy()
    parts = [buffer[i * n : (i + 1) * n] for i in range(4)]
    primitive = make_primitive(gw.SortPairs, device, "u32", "u32", **SMALL)
    primitive.execute(keys=parts[0], values=parts[1], output_keys=parts[2], output_values=parts[3])
    after, order = buffer.to_numpy(), order_of(before[:n])
    same_bits(after[2 * n : 3 * n], before[:n][order])
    same_bits(after[3 * n : 4 * n], before[n : 2 * n][order])
    same_bits(after[4 * n :], before[4 * n :])
    same_bits(after[: 2 * n], before[: 2 * n])


@pytest.mark.parametrize(
    ("keys", "values"), [("f16", "u32"), ("f16", "f64"), ("u64", "f32"), ("f32", "i64"), ("f16", "f32")]
)
@pytest.mark.parametrize("n", [99, 2 * TILE + 3])
def test_items_of_several_sizes_in_one_buffer(device, keys, values, n):
    """Each argument has an extent of its own; offsets count items of the argument's size."""
    extent = 8 * n + 8
    words = keys_of("u32", extent)
    buffer = gw.asarray(words, device)
    names = {"keys": keys, "values": values, "output_keys": keys, "output_values": values}
    views, places = {}, {}
    for i, (name, datatype) in enumerate(names.items()):
        size = gw.STORAGE_DATATYPES[datatype].itemsize_bytes
        first = i * (2 * n + 2) * 4 // size + (size == 2)  # halves of a word, too
        views[name] = gw.Array(buffer.buffer, datatype, n, first)
        places[name] = slice(first * size, (first + n) * size)
    before = words.view(np.uint8)
    taken = {name: before[place].view(views[name].dtype) for name, place in places.items()}
    make_primitive(gw.SortPairs, device, keys, values, **SMALL).execute(**views)
    order = order_of(taken["keys"])
    expected = before.copy()
    expected[places["output_keys"]] = taken["keys"][order].view(np.uint8)
    expected[places["output_values"]] = taken["values"][order].view(np.uint8)
    np.testing.assert_array_equal(buffer.to_numpy().view(np.uint8), expected)


def test_overlap_is_a_matter_of_bytes(device):
    buffer = gw.empty(64, "u32", device).buffer
    primitive = make_primitive(gw.SortPairs, device, "u64", "u32", **SMALL)
    keys, output_keys = gw.Array(buffer, "u64", 4, 0), gw.Array(buffer, "u64", 4, 4)
    values, output_values = gw.Array(buffer, "u32", 4, 16), gw.Array(buffer, "u32", 4, 20)
    primitive.execute(keys=keys, values=values, output_keys=output_keys, output_values=output_values)
    with pytest.raises(
        gw.OverlapError, match=r"output_values \(items 4 to 8 of its buffer\) overlaps keys \(items 0 to 4 of 8"
    ):
        primitive.execute(
            keys=keys, values=values, output_keys=output_keys, output_values=gw.Array(buffer, "u32", 4, 4)
        )


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

    one, few, many = (plan(n).parameters for n in (10240, 10241, (1 << 20) + 1))
    assert (one["strategy"], one["items_per_invocation"]) == ("one workgroup", 20)
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
    for strategy in FACTORS["strategy"]:
        plan = gw.SortPairs.plan_for(capabilities=gw.Capabilities(), lengths=lengths, strategy=strategy)
        assert max(sum(b.access != "uniform" for b in k.bindings) for k in plan.kernels) <= 8


def test_plans_survive_json():
    plan = gw.Sort.plan_for(capabilities=gw.Capabilities(), lengths={"input": 10_000, "output": 10_000}, dtype="f64")
    assert gw.Plan.from_json(plan.to_json()) == plan


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


# ---- one-shot functions ----


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("datatype", DATATYPES)
def test_functions_take_numpy_and_give_numpy(device, datatype, descending):
    keys = keys_of(datatype, 700)
    order, options = order_of(keys, descending), {"descending": descending, "device": device}
    same_bits(gw.sort(keys, **options), keys[order])
    result = gw.argsort(keys, **options)
    assert result.dtype == np.intp
    np.testing.assert_array_equal(result, order)
    found, values = gw.sort_pairs(keys, np.arange(700.0), **options)
    same_bits(found, keys[order])
    np.testing.assert_array_equal(values, order)


def test_functions_take_arrays_and_give_arrays(device):
    x = gw.asarray(keys_of("u32", 100), device)
    assert isinstance(gw.sort(x), gw.Array)
    assert gw.argsort(x).datatype.name == "u32"
    keys, values = gw.sort_pairs(x, x)
    same_bits(keys.to_numpy(), values.to_numpy())


# ---- anything ----


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_keys(device, data):
    kind = data.draw(st.sampled_from(list(KINDS)))
    datatype = data.draw(st.sampled_from(["u32", "f32", "i64"]))
    strategy = data.draw(st.sampled_from(FACTORS["strategy"]))
    options = {"strategy": strategy, "descending": data.draw(st.booleans())}
    key = (id(device), kind, datatype, *options.values())
    if key not in _MADE:
        _MADE[key] = make(device, kind, datatype, **options)
    n = data.draw(st.integers(0, 4 * TILE))
    keys = keys_of(datatype, n, data.draw(st.integers(0, 1 << 16)))
    bits = keys.view(f"u{keys.dtype.itemsize}")
    bits &= bits.dtype.type(data.draw(st.integers(0, (1 << 8 * bits.dtype.itemsize) - 1)))
    check(device, _MADE[key], keys)


_MADE: dict[tuple, gw.Primitive] = {}


def test_the_registry_has_all_three():
    assert [REGISTRY[name] for name in ("sort", "sort_pairs", "argsort")] == [gw.Sort, gw.SortPairs, gw.ArgSort]


@pytest.mark.parametrize("n", [1, 700, pytest.param(9001, marks=pytest.mark.slow)])
def test_a_struct_of_two_words_is_a_key(device, n):
    """The first field decides first; bits above those given do not count."""
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 9, n).astype(np.uint32), rng.integers(0, 1 << 32, n, dtype=np.uint32)
    key = gw.struct(a=gw.u32("a") | 1 << 31, b=gw.u32("b"))
    sort = gw.SortPairs(device, key, "u32", end_bit=36)
    arrays = {
        name: gw.asarray(x, device) for name, x in {"a": a, "b": b, "values": np.arange(n, dtype=np.uint32)}.items()
    }
    run = sort.execute(**arrays)
    order = np.lexsort((b, a))
    assert run.outputs["output_values"].to_numpy().tolist() == order.tolist()
    keys = (a.astype(np.uint64) | np.uint64(1 << 31)) << np.uint64(32) | b
    assert run.outputs["output_keys"].to_numpy().tolist() == keys[order].tolist()
    expected = sort.reference(a=a, b=b, values=np.arange(n, dtype=np.uint32))
    assert [each.tolist() for each in expected] == [keys[order].tolist(), order.tolist()]


def test_a_struct_of_floats_is_no_key(device):
    with pytest.raises(gw.DatatypeError, match=r"two fields of u32.*bitcast"):
        gw.Sort(device, gw.struct(a=gw.u32("a"), b=gw.f32("b")))
