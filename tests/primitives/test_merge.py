"""Merge and MergeSort against numpy's stable sorts; merge() and sort(less=)."""

import dataclasses
import itertools

import numpy as np
import pytest

import gridwise_py as gw
from helpers.cases import FULL
from helpers.levels import level_on
from helpers.sorting import DATATYPES, keys_of, order_of
from helpers.strategies import make_primitive, quick_first

#: A tile of 16 × 3 = 48 keys, so that few keys are many tiles.
SMALL = {"workgroup_size": 16, "vecs": 1}
#: Around tiles of SMALL, and of the shape for CPUs (64 × 15; of 8-byte keys 64 × 7).
LENGTHS = [
    (0, 0), (0, 1), (1, 0), (1, 1), (47, 1), (48, 1), (448, 0), (447, 2), (960, 0), (959, 1), (3, 958), (2000, 70),
]  # fmt: skip


class Staged(gw.Merge):
    """Merges all keys in workgroup memory, as where there are no subgroups."""

    _in_registers = False


Place = gw.Struct("Place", x="f32", n="i32", id="u32")


def less_of_places(a, b):
    """By n, and of equal n by x."""
    return (a.n < b.n) | ((a.n == b.n) & (a.x < b.x))


def runs_of(datatype, n, m, descending=False):
    """Return two sorted arrays with keys in common, and NaN and both zeros among floats."""
    keys = keys_of(datatype, n + m)
    if keys.dtype.kind == "f":
        special = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf], dtype=keys.dtype)
        chosen = np.random.default_rng(n).random(n + m) < 0.2
        keys[chosen] = np.resize(special, int(chosen.sum()))
    return [half[order_of(half, descending)] for half in (keys[:n], keys[n:])]


def same_bits(got, wanted):
    """Whether all items are the same, −0 and the bits of NaN included."""
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


def merged(a, b, descending=False):
    """Return the keys in order, and where they were in both arrays, one behind the other."""
    keys = np.concatenate([a, b])
    order = order_of(keys, descending)
    return keys[order], order.astype(np.uint32)


@pytest.mark.parametrize(
    ("datatype", "value", "descending"), quick_first(
        [("f32", "f64", True)],
        itertools.product(DATATYPES, [None, "u32"], [False, True]),
    ),
)  # fmt: skip
def test_keys_and_values_of_two_arrays(device, datatype, value, descending):
    merge = gw.Merge(device, datatype, value, descending=descending)
    for n, m in LENGTHS:
        a, b = runs_of(datatype, n, m, descending)
        keys, order = merged(a, b, descending)
        arrays = {"a": a, "b": b}
        if value is not None:
            values = np.arange(n + m).astype(merge.value_datatype.dtype)
            arrays |= {"a_values": values[:n], "b_values": values[n:]}
        run = merge.execute(**{name: gw.asarray(items, device) for name, items in arrays.items()}, trials=3)
        same_bits(run.outputs["output"].to_numpy(), keys)
        if value is not None:
            np.testing.assert_array_equal(run.outputs["output_values"].to_numpy(), order)


#: Chunks of one, two and three to a tile; of 64 × 8 several subgroups share a tile.
NETWORK_SHAPES = [
    {"workgroup_size": 32, "vecs": 1},
    {"workgroup_size": 64, "vecs": 8},
    {"workgroup_size": 32, "vecs": 3},
]


@pytest.mark.parametrize(
    ("datatype", "shape", "descending"), quick_first(
        [("u32", 1, False), ("i16", 2, True)],
        itertools.product(["u32", "i32", "u8", "i16"], range(3), [False, True]),
    ),
)  # fmt: skip
def test_keys_are_merged_in_registers(device, require, datatype, shape, descending):
    require("subgroup")
    merge = make_primitive(gw.Merge, device, datatype, descending=descending, **NETWORK_SHAPES[shape])
    rng = np.random.default_rng(4)
    few = 5 if datatype == "u32" else 120
    for n, m in [*LENGTHS, (3000, 2900), (9, 4000)]:
        a, b = runs_of(datatype, n, m, descending)
        same = [half[:: -1 if descending else 1] for half in (np.sort(rng.integers(0, few, k)) for k in (n, m))]
        for x, y in ((a, b), [half.astype(a.dtype) for half in same]):
            run = merge.execute(a=gw.asarray(x, device), b=gw.asarray(y, device), trials=2)
            same_bits(run.output.to_numpy(), merged(x, y, descending)[0])
    assert "subgroupShuffleXor" in run.plan.shaders[run.plan.kernels[1].shader].text


@pytest.mark.parametrize("is_staged", [True, False], ids=["staged", "in registers"])
def test_paths_that_a_guess_does_not_find(device, require, is_staged):
    """All of one array before the other, equal keys only, long runs of each in turn."""
    if not is_staged:
        require("subgroup")
    merge = make_primitive(
        Staged if is_staged else gw.Merge, device, "u32", **(SMALL if is_staged else NETWORK_SHAPES[1])
    )
    rising = np.arange(9000, dtype=np.uint32)
    for a, b in (
        (rising, rising + 9000), (rising + 9000, rising), (rising * 0, rising * 0), (rising, rising[:1]),
        (rising[:1] + 8999, rising), (rising // 1000 * 2, rising // 1000 * 2 + 1), (rising, rising * 1000),
        (rising | np.uint32(0xFFFFF000), np.full(70, 2**32 - 1, np.uint32)),
    ):  # fmt: skip
        x, y = np.sort(a), np.sort(b)
        got = merge.execute(a=gw.asarray(x, device), b=gw.asarray(y, device)).output.to_numpy()
        np.testing.assert_array_equal(got, np.sort(np.concatenate([x, y])))


def test_unsorted_keys_in_registers_reach_nothing_outside(device, require):
    require("subgroup")
    merge = make_primitive(gw.Merge, device, "u32", **NETWORK_SHAPES[1])
    rng = np.random.default_rng(6)
    output = gw.full(9000, 7, "u32", device)
    arrays = [gw.asarray(rng.integers(0, 2**32, n, dtype=np.uint32), device) for n in (5000, 3900)]
    merge.execute(a=arrays[0], b=arrays[1], output=output[40:8940])
    around = output.to_numpy()
    assert (around[:40] == 7).all()
    assert (around[8940:] == 7).all()


@pytest.mark.parametrize("value", ["u32", None], ids=["pairs", "keys in registers"])
def test_counts_on_the_gpu(device, require, value):
    """Of none, a part, all, and more than there is room for; the same plan for all."""
    if value is None:
        require("subgroup")
    merge = make_primitive(gw.Merge, device, "u32", value, counted=True, **(SMALL if value else NETWORK_SHAPES[1]))
    a, b = runs_of("u32", 400, 600)
    counts = {name: gw.zeros(1, "u32", device) for name in ("a_count", "b_count")}
    arrays = {"a": gw.asarray(a, device), "b": gw.asarray(b, device)}
    if value is not None:
        arrays |= {"a_values": gw.arange(400, dtype="u32", device=device)}
        arrays |= {"b_values": gw.arange(1000, 1600, dtype="u32", device=device)}
    for n, m in ((400, 600), (0, 0), (1, 0), (0, 600), (48, 48), (64, 64), (200, 7), (9999, 2**32 - 1), (3, 5)):
        counts["a_count"].fill(n)
        counts["b_count"].fill(m)
        run = merge.execute(**arrays, **counts, trials=2)
        x, y = a[:n], b[:m]
        keys, order = merged(x, y)
        assert run.output.count.item() == keys.size
        np.testing.assert_array_equal(run.output.to_numpy(), keys)
        if value is not None:
            origins = np.concatenate([np.arange(x.size), 1000 + np.arange(y.size)])
            np.testing.assert_array_equal(run.outputs["output_values"].to_numpy(), origins[order])


def test_counted_arrays_bring_their_counts(device):
    x, y = (gw.asarray(np.arange(n, dtype=np.uint32), device) for n in (900, 50))
    some = gw.compress(x % 3 == 0, x)
    got = gw.merge(some, y)
    assert got.count is not None
    np.testing.assert_array_equal(got.to_numpy(), np.sort(np.concatenate([np.arange(0, 900, 3), np.arange(50)])))
    both = gw.merge(y, some, values=(y, y[:1].broadcast_to(900) if hasattr(y, "broadcast_to") else x))
    order = np.argsort(np.concatenate([np.arange(50), np.arange(0, 900, 3)]), kind="stable")
    np.testing.assert_array_equal(both.values.to_numpy(), np.concatenate([np.arange(50), np.arange(300)])[order])
    counted = gw.Merge(device, "u32", counted=True)
    with pytest.raises(gw.ArgumentError, match="b_count"):
        counted.execute(a=some, b=y)
    with pytest.raises(gw.ArgumentError, match="carries another count"):
        counted.execute(a=some, b=y, a_count=gw.zeros(1, "u32", device), b_count=gw.zeros(1, "u32", device))
    with pytest.raises(gw.ArgumentError, match=r"a\.trim\(\)"):
        gw.Merge(device, "u32").execute(a=some, b=y)


@pytest.mark.parametrize("datatype", quick_first(["f32"], DATATYPES))
def test_merge_sort(device, datatype):
    sort, pairs = gw.MergeSort(device, datatype), make_primitive(gw.MergeSort, device, datatype, "u64", **SMALL)
    for n in (0, 1, 2, 15, 16, 47, 48, 49, 447, 449, 960, 961, 2500):
        keys = keys_of(datatype, n)
        order = order_of(keys)
        on_gpu = gw.asarray(keys, device)
        same_bits(sort.execute(input=on_gpu, trials=2).output.to_numpy(), keys[order])
        values = np.arange(n, dtype=np.uint64) << np.uint64(30)
        run = pairs.execute(input=on_gpu, values=gw.asarray(values, device))
        same_bits(run.output.to_numpy(), keys[order])
        np.testing.assert_array_equal(run.outputs["output_values"].to_numpy(), values[order])


def places(n, seed=0):
    """Return structs with few distinct keys, numbered."""
    rng = np.random.default_rng([seed, n])
    return Place.array(x=rng.integers(0, 5, n).astype(np.float32), n=rng.integers(-3, 3, n), id=np.arange(n))


def test_structs_by_a_function(device):
    sort = make_primitive(gw.MergeSort, device, Place, "u32", less=less_of_places, **SMALL)
    merge = make_primitive(gw.Merge, device, Place, less=less_of_places, **SMALL)
    for n in (1, 13, 200, 15_000):
        x, y = places(n), places(n // 2, 1)
        order = np.lexsort((x["x"], x["n"]))
        run = sort.execute(input=gw.asarray(x, device), values=gw.arange(n, dtype="u32", device=device))
        np.testing.assert_array_equal(run.output.to_numpy(), x[order])
        np.testing.assert_array_equal(run.outputs["output_values"].to_numpy(), order)
        a, b = x[order], y[np.lexsort((y["x"], y["n"]))]
        both = np.concatenate([a, b])
        got = merge.execute(a=gw.asarray(a, device), b=gw.asarray(b, device)).output.to_numpy()
        np.testing.assert_array_equal(got, both[np.lexsort((both["x"], both["n"]))])


def test_an_order_with_wgsl_of_the_callers(device):
    tens = gw.function("fn tens(x: u32) -> u32 { return x / 10u; }", numpy=lambda x: x // np.uint32(10))
    sort = make_primitive(gw.MergeSort, device, "u32", less=lambda a, b: tens(b) < tens(a), **SMALL)
    keys = np.random.default_rng(3).integers(0, 100, 3000).astype(np.uint32)
    run = sort.execute(input=gw.asarray(keys, device))
    np.testing.assert_array_equal(run.output.to_numpy(), keys[np.argsort(-(keys // 10).astype(int), kind="stable")])
    assert level_on(device, "bounds") in run.plan.shader_checks
    np.testing.assert_array_equal(sort.reference(input=keys), run.output.to_numpy())


def test_inputs_that_are_not_sorted_stay_in_range(device):
    merge = make_primitive(gw.Merge, device, "u32", "u32", **SMALL)
    a, b, x, y = (gw.asarray(keys_of("u32", 2000, seed), device) for seed in range(4))
    output, values = (gw.full(4040, 5, "u32", device) for _ in range(2))
    merge.execute(a=a, b=b, a_values=x, b_values=y, output=output[20:4020], output_values=values[20:4020])
    for array in (output, values):
        assert (array.to_numpy()[[*range(20), *range(4020, 4040)]] == 5).all()
    assert np.isin(output[20:4020].to_numpy(), np.concatenate([a.to_numpy(), b.to_numpy()])).all()


def _no_order(a, b):
    """A hash of both, as a faulty function may be."""
    return ((a * 2654435761) ^ (b * 40503)) % 7 < 3


@pytest.mark.parametrize(("datatype", "less"), quick_first([("u32", _no_order)], [("f32", lambda a, b: a < b)]))
def test_each_item_comes_once_whatever_the_order_says(device, datatype, less):
    sort = make_primitive(gw.MergeSort, device, datatype, "u32", less=less, **SMALL)
    merge = make_primitive(gw.Merge, device, datatype, "u32", less=less, **SMALL)
    for n, m in ((30_000, 20_000), (0, 700), (700, 1), (95, 4000)):  # the first are tiles of 17 workgroups of searches
        keys = np.random.default_rng(n).integers(0, 2**20, n + m).astype(sort.datatype.dtype)
        if datatype == "f32":
            keys[::10] = np.nan
        places = np.arange(n + m, dtype=np.uint32)
        on_gpu, values = gw.asarray(keys, device), gw.asarray(places, device)
        output, kept = gw.full(n + m + 40, 5, datatype, device), gw.full(n + m + 40, 5, "u32", device)
        inside = slice(20, n + m + 20)
        for primitive, arrays in (
            (sort, {"input": on_gpu, "values": values}),
            (merge, {"a": on_gpu[:n], "b": on_gpu[n:], "a_values": values[:n], "b_values": values[n:]}),
        ):
            primitive.execute(**arrays, output=output[inside], output_values=kept[inside])
            found = kept.to_numpy()[inside]
            np.testing.assert_array_equal(np.sort(found), places)
            same_bits(output.to_numpy()[inside], keys[found])
            for array in (output, kept):
                assert (array.to_numpy()[[*range(20), *range(-20, 0)]] == 5).all()


def test_expressions_are_sorted_without_being_stored(device):
    x = np.random.default_rng(5).integers(0, 50, 3000).astype(np.float32)
    items = gw.struct(key=gw.f32("x") * 2, at=gw.index)
    sort = make_primitive(gw.MergeSort, device, items, less=lambda a, b: b.key < a.key, **SMALL)
    run = sort.execute(x=gw.asarray(x, device))
    np.testing.assert_array_equal(run.output.to_numpy()["at"], np.argsort(-x, kind="stable"))
    np.testing.assert_array_equal(run.output.to_numpy(), sort.reference(x=x))


def test_functions_on_the_host_and_on_the_gpu(device):
    a, b = runs_of("i32", 40, 30)
    keys, order = merged(a, b)
    values = np.arange(70, dtype=np.float32)
    found = gw.merge(a, gw.asarray(b, device), values=(values[:40], values[40:]))
    assert isinstance(found.keys, gw.Array)
    np.testing.assert_array_equal(found.keys.to_numpy(), keys)
    np.testing.assert_array_equal(found.values.to_numpy(), values[order])
    x = places(500)
    by_x = x[np.argsort(-x["x"], kind="stable")]
    np.testing.assert_array_equal(gw.sort(x, less=lambda p, q: q.x < p.x, device=device), by_x)
    out = np.empty_like(x)
    assert gw.sort(x, less=lambda p, q: q.x < p.x, out=out, device=device) is out
    np.testing.assert_array_equal(out, by_x)
    halves = [half[np.argsort(half["n"], kind="stable")] for half in (x[:200], x[200:])]
    got = gw.merge(*halves, less=lambda p, q: p.n < q.n, device=device)
    both = np.concatenate(halves)
    np.testing.assert_array_equal(got, both[np.argsort(both["n"], kind="stable")])


def _one(device, dtype="u32"):
    return gw.zeros(3, dtype, device)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda d: gw.sort(_one(d), less=lambda a, b: a + b), gw.DatatypeError, "gives u32, but must say"),
        (lambda d: gw.sort(_one(d), less=lambda a, b: a < gw.index), gw.ArgumentError, "sees the two items"),
        (lambda d: gw.sort(_one(d, "u64"), less=lambda a, b: a < b), gw.DatatypeError, "not of u64"),
        (lambda d: gw.MergeSort(d, less="<"), gw.ArgumentError, "less='<' must be a function.*lambda a, b: a < b"),
        (lambda d: gw.merge(_one(d), _one(d), less=[1]), gw.ArgumentError, "must be a function that says"),
        (lambda d: gw.MergeSort(d, less=lambda a: a), gw.ArgumentError, "a function of two items, .*too many"),
        (lambda d: gw.MergeSort(d, Place), gw.DatatypeError, r"less=lambda a, b: a\.x < b\.x"),
        (lambda d: gw.MergeSort(d, less=lambda a, b: a < b, descending=True), gw.ArgumentError, "exchange a and b"),
        (lambda d: gw.merge(_one(d), _one(d, "i32")), gw.DatatypeError, r"b is of i32 \(numpy int32\), but a of u32"),
        (lambda d: gw.merge(_one(d), _one(d) + 1), gw.ArgumentError, r"gw\.asarray\(b\)"),
        (lambda d: gw.merge(_one(d), _one(d), values=_one(d)), gw.ArgumentError, "tuple"),
        (lambda d: gw.merge(_one(d), _one(d), values=(_one(d), _one(d)[:2])), gw.LengthError, "b_values has 2"),
        (lambda d: gw.merge(_one(d).reshape(3, 1), _one(d)), gw.ArgumentError, r"shape \(3, 1\)"),
        (lambda d: gw.Merge(d).execute(a=_one(d), b=_one(d), output=_one(d)), gw.LengthError, "6"),
        (lambda d: gw.Merge(d, tuning=gw.ScanTuning()), gw.ArgumentError, "ElementwiseTuning"),
    ],
)
def test_what_does_not_fit_is_refused(device, call, error, message):
    with pytest.raises(error, match=message):
        call(device)


def test_more_keys_than_32_bits_count_are_refused():
    lengths = {"a": 1 << 31, "b": 1 << 31, "output": 1 << 32}
    with pytest.raises(gw.LimitError, match="at most 4294901760"):
        gw.Merge.plan_for(capabilities=FULL, lengths=lengths)
    with pytest.raises(gw.LimitError, match="at most"):
        gw.MergeSort.plan_for(capabilities=FULL, lengths={"input": 1 << 32, "output": 1 << 32})


def test_workgroup_memory_bounds_the_items_of_an_invocation():
    bare = dataclasses.replace(FULL, limits={**FULL.limits, "max-compute-workgroup-storage-size": 16_384})
    lengths = {"a": 1 << 23, "b": 1 << 23, "output": 1 << 24}
    for dtype, items in (("f32", 15), ("f64", 7)):
        shape = gw.ElementwiseTuning(workgroup_size=256, vecs=4)
        plan = gw.Merge.plan_for(capabilities=bare, lengths=lengths, dtype=dtype, tuning=shape)
        assert plan.parameters["items"] == items
        assert plan.kernels[1].workgroups[0] == -(-(1 << 24) // (256 * items))
    tuning = gw.ElementwiseTuning(workgroup_size=1024, vecs=4)
    large = dataclasses.replace(bare, limits={**bare.limits, "max-compute-invocations-per-workgroup": 1024,
                                              "max-compute-workgroup-size-x": 1024})  # fmt: skip
    plan = gw.Merge.plan_for(capabilities=large, lengths=lengths, dtype="f32", tuning=tuning)
    assert plan.parameters["items"] == 3
    with pytest.raises(gw.ArgumentError, match="use a smaller workgroup_size"):
        gw.MergeSort.plan_for(
            capabilities=large, lengths={"input": 9, "output": 9}, dtype=Place, less=less_of_places, tuning=tuning
        )
