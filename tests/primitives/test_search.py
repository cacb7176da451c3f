"""Search, searchsorted and digitize against numpy."""

import dataclasses
import itertools

import numpy as np
import pytest

import gridwise_py as gw
from helpers.cases import FULL
from helpers.strategies import make_primitive, quick_first

SIDES = ("left", "right")


def numbers(datatype, n, seed):
    """Few distinct numbers and the extreme ones; of floats NaN, both infinities and both zeros, too."""
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    rng = np.random.default_rng([seed, n])
    lowest, highest = (-700, 700) if dtype.kind != "u" else (0, 1400)
    found = rng.integers(lowest, highest, n).astype(dtype)
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    special = [limits.min, limits.max, 0]
    if dtype.kind == "f":
        negative_nan = -np.array(np.nan, dtype=dtype)
        special += [np.nan, negative_nan, np.inf, -np.inf, -0.0, limits.smallest_subnormal]
    chosen = rng.random(n) < 0.2
    found[chosen] = rng.choice(np.array(special, dtype=dtype), int(chosen.sum()))
    if dtype.itemsize == 8 and dtype.kind != "f":
        found[::3] ^= rng.integers(0, 3, found[::3].size).astype(dtype) << dtype.type(33)  # only the high words differ
    return found


@pytest.mark.parametrize(
    ("datatype", "side"),
    quick_first(
        [("u32", "left"), ("f32", "right"), ("u64", "left")],
        itertools.product(gw.Search.datatypes, SIDES),
    ),
)
def test_equals_numpy(device, datatype, side):
    """Around the sizes of the table (1,024 keys of 8 bytes, 2,048 of others), and with spans of many keys."""
    search = gw.Search(device, datatype, side=side)
    for length in (0, 1, 2, 3, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 100_003):
        keys = np.sort(numbers(datatype, length, 1))
        queries = numbers(datatype, 1029, 2)
        for part in (queries, queries[:1], queries[:0], keys[-1500:]):
            run = search.execute(sorted=gw.asarray(keys, device), queries=gw.asarray(part, device))
            assert run.output.datatype.name == "u32"
            np.testing.assert_array_equal(run.output.to_numpy(), np.searchsorted(keys, part, side), f"{length}")


@pytest.mark.parametrize(("datatype", "side"), quick_first([("f32", "right")], [("u32", "left")]))
def test_many_queries_read_samples_of_the_keys(device, datatype, side):
    search, queries = gw.Search(device, datatype, side=side), numbers(datatype, 20_000, 2)
    for length in (8195, 8196, 32_783, 32_784, 140_003):
        keys = np.sort(numbers(datatype, length, 1))
        near = np.concatenate([queries, keys[:700], keys[-700:]])
        # Behind a view's end lie keys that would come before every query.
        around = gw.asarray(np.concatenate([keys[:3], keys, np.repeat(keys[:1], 9)]), device)
        for place, view in {"aligned": gw.asarray(keys, device), "unaligned": around[3 : 3 + length]}.items():
            run = search.execute(sorted=view, queries=gw.asarray(near, device), trials=2)
            assert run.plan.parameters["levels"] == (length >= 8196) + (length >= 32_784) + (length >= 131_136), length
            np.testing.assert_array_equal(run.output.to_numpy(), np.searchsorted(keys, near, side), f"{length} {place}")


def test_each_of_many_keys_is_found_among_samples(device):
    for length in (32_784, 32_785, 32_786, 32_787, 140_003):
        keys = 7 + 3 * np.arange(length, dtype=np.uint32)
        search = gw.Search(device, "u32", queries=gw.index)
        found = search.execute(sorted=gw.asarray(keys, device), output=gw.empty(3 * length + 20, "u32", device))
        assert found.plan.parameters["levels"] >= 2
        np.testing.assert_array_equal(found.output.to_numpy(), np.searchsorted(keys, np.arange(3 * length + 20)))


@pytest.mark.parametrize("side", SIDES)
def test_keys_that_are_all_equal(device, side):
    for length in (1, 2048, 2049, 70_001):
        keys = np.full(length, 7, dtype=np.uint32)
        got = gw.searchsorted(keys, np.arange(6, 9, dtype=np.uint32), side=side, device=device)
        assert got.tolist() == [0, 0 if side == "left" else length, length]


@pytest.mark.parametrize(("datatype", "side"), quick_first([("i32", "right")], [("f64", "left")]))
def test_keys_in_any_order_with_the_indices_that_sort_them(device, datatype, side):
    for length in (1, 3000):
        keys, queries = numbers(datatype, length, 1), numbers(datatype, 500, 2)
        order = np.argsort(keys, kind="stable")
        got = gw.searchsorted(keys, queries, side=side, sorter=order, device=device)
        np.testing.assert_array_equal(got, np.searchsorted(keys, queries, side, order))
        assert got.dtype == np.intp
        on_gpu = gw.asarray(keys, device)
        got = gw.searchsorted(on_gpu, queries, side=side, sorter=gw.asarray(order.astype(np.uint32), device))
        np.testing.assert_array_equal(got.to_numpy(), np.searchsorted(keys, queries, side, order))


def test_indices_out_of_range_stay_within_the_keys(device):
    """A GPU cannot raise; it must not read what lies behind the keys either."""
    whole = gw.asarray(np.array([9, 5, 5, 5, 5, 9, 9, 9], dtype=np.uint32), device)
    sorter = gw.asarray(np.array([0, 1, 2, 6], dtype=np.uint32), device)
    assert gw.searchsorted(whole[1:5], np.uint32([5]), side="right", sorter=sorter).to_numpy().tolist() == [4]


@pytest.mark.parametrize("datatype", quick_first(["f32", "u64"], ["f64", "i32", "f16"]))
def test_bins_may_descend_wherever_they_are(device, datatype):
    queries = numbers(datatype, 20_000, 2)
    for length in (0, 1, 2, 3, 1025, 140_003):
        edges = np.sort(numbers(datatype, length, 1))
        for bins in (edges, edges[::-1], np.full_like(edges, 7), edges[-2:][::-1]):
            for right in (False, True):
                wanted = np.digitize(queries, bins, right)
                got = gw.digitize(gw.asarray(queries, device), gw.asarray(bins.copy(), device), right)
                np.testing.assert_array_equal(got.to_numpy(), wanted, f"{length} {right}")
                np.testing.assert_array_equal(gw.digitize(queries[:9], bins, right, device=device), wanted[:9])


@pytest.mark.parametrize("right", [False, True])
def test_digitize_of_what_has_no_one_place(device, right):
    """NaN among NaN, chunks, expressions, and integers of 8 bytes with and without a sign."""
    x, nans = np.float32([-1, np.nan, 3, 5]), np.full(3, np.nan, np.float32)
    for bins in (nans, nans[:1], np.float32([np.nan, 3, 1]), np.float32([1, 3, np.nan])):
        got = gw.digitize(gw.asarray(x, device), gw.asarray(bins, device), right)
        assert got.to_numpy().tolist() == np.digitize(x, bins, right).tolist()
    down, chunks = np.float32([3, 3, 1]), gw.ChunkedArray([gw.asarray(x[2:], device)])
    assert gw.digitize(chunks, down, right).to_numpy().tolist() == np.digitize(x[2:], down, right).tolist()
    doubled = gw.digitize(gw.asarray(x[2:], device) * 2, gw.asarray(down, device), right)
    assert doubled.to_numpy().tolist() == np.digitize(x[2:] * 2, down, right).tolist()
    for signed, unsigned in ([-1, 0, 5], [0, 5, 2**63 + 1]), ([0, 2**62 + 1], [2**62, 2**64 - 1]):
        for x, bins in (np.int64(signed), np.uint64(unsigned)), (np.uint64(unsigned), np.int64(signed)):
            up = [sum(b < each or (b == each and not right) for b in bins.tolist()) for each in x.tolist()]
            down = [sum(b > each or (b == each and right) for b in bins.tolist()) for each in x.tolist()]
            assert gw.digitize(x, bins, right, device=device).tolist() == up
            assert gw.digitize(x, bins[::-1], right, device=device).tolist() == down


@pytest.mark.parametrize(
    ("keys", "queries"),
    [
        (np.array([1, 5, 9], dtype=np.int16), np.array([-1, 5, 300], dtype=np.int32)),
        (np.array([1, 5, 9], dtype=np.uint8), 5),
        (np.array([0.5, 1.5], dtype=np.float32), [0.5, 2.0]),
        (np.array([0.5, 1.5]), np.array([1], dtype=np.int64)),
        (np.array([False, True]), np.array([True])),
        (np.array([2**63, 2**64 - 1], dtype=np.uint64), np.array([[0, 2**63]], dtype=np.uint64)),
        (np.array([1, 2], dtype=">u4"), np.array([2, 3], dtype=np.uint32)),
        ([], [1.0]),
        ([1, 2], []),
    ],
)
def test_one_shot_promotes_as_numpy(device, keys, queries):
    got, wanted = gw.searchsorted(keys, queries, device=device), np.searchsorted(keys, queries)
    np.testing.assert_array_equal(got, wanted)
    assert type(got) is type(wanted)
    assert np.asarray(got).dtype == np.intp
    assert np.shape(got) == np.shape(wanted)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: gw.searchsorted(x, x, side="middle"), gw.ArgumentError, "side='middle' is unknown; known are left"),
        (lambda x: gw.searchsorted(x.reshape((2, 2)), x), gw.ArgumentError, r"x1 has shape \(2, 2\).*one dimension"),
        (lambda x: gw.searchsorted(x, x, sorter=[0, 1, 2]), gw.LengthError, "sorter has shape .* x1 has 4 items"),
        (lambda x: gw.searchsorted(x, x, sorter=[0, 1, 2, 4]), gw.BoundsError, "out of range for 4 items"),
        (lambda x: gw.searchsorted(x, x, sorter=[0, -1, 2, 3]), gw.ArgumentError, "out of range for 4 items"),
        (lambda x: gw.searchsorted(x, x, sorter=[0.0, 1, 2, 3]), gw.DatatypeError, "must be integers"),
        (lambda x: gw.searchsorted(x, np.zeros(2, np.complex64)), gw.DatatypeError, r"x2.*x\.real"),
        (lambda x: gw.searchsorted(x, ["a"]), gw.DatatypeError, "x2"),
        (lambda x: gw.searchsorted(gw.ChunkedArray([x]), [0.5]), gw.DatatypeError, "x1 is a ChunkedArray of u32"),
        (lambda x: gw.digitize(x, [1, 3, 2]), gw.ArgumentError, "ascend or descend"),
        (lambda x: gw.digitize(x, [3, np.nan, 1]), gw.ArgumentError, "NaN last or first"),
        (lambda x: gw.digitize(x, [[1]]), gw.ArgumentError, r"bins has shape \(1, 1\)"),
        (lambda x: gw.digitize([-1], gw.asarray(np.uint64([2, 1]))), gw.DatatypeError, r"give bins\.to_numpy\(\)"),
        (lambda x: gw.Search(x.device, "u8"), gw.DatatypeError, "u8"),
        (lambda x: gw.Search(x.device).execute(sorted=x, queries=x, sorter=x), gw.ArgumentError, "sorter"),
        (lambda x: gw.Search(x.device, sorter=True).execute(sorted=x, queries=x), gw.ArgumentError, "sorter"),
    ],
)
def test_bad_input_is_refused(device, call, error, message):
    with pytest.raises(error, match=message):
        call(gw.asarray(np.arange(4, dtype=np.uint32), device))


@pytest.mark.parametrize(("datatype", "most"), [("f16", 2048), ("u32", 2048), ("u64", 1024)])
def test_the_table_fits_into_workgroup_memory_and_is_at_least_half_full(datatype, most):
    for length in (most - 1, most, most + 1, 2 * most - 1, 2 * most, 2 * most + 1, 10_000, (1 << 24) - 1, 1 << 24):
        lengths = {"sorted": length, "queries": 1, "output": 1}
        plan = gw.Search.plan_for(capabilities=FULL, dtype=datatype, lengths=lengths)
        assert most // 2 <= plan.parameters["table_keys"] <= most
        assert f"table: array<Key, {most}>" in next(iter(plan.shaders.values())).text


def test_more_keys_than_positions_have_bits_for():
    lengths = {"sorted": 1 << 31, "queries": 1, "output": 1}
    with pytest.raises(gw.LimitError, match="takes at most 2147483647"):
        gw.Search.plan_for(capabilities=FULL, lengths=lengths)


def test_queries_that_are_not_stored(device):
    keys, x = np.sort(numbers("i32", 5003, 1)), numbers("i32", 3000, 2) % 1000
    on_gpu = gw.asarray(keys, device), gw.asarray(x, device)
    search = gw.Search(device, "i32", side="right", queries=gw.i32("x") * 2 - 5)
    found = search.execute(sorted=on_gpu[0], x=on_gpu[1][3:2999]).output
    np.testing.assert_array_equal(found.to_numpy(), np.searchsorted(keys, x[3:2999] * 2 - 5, "right"))
    np.testing.assert_array_equal(search.reference(sorted=keys, x=x), np.searchsorted(keys, x * 2 - 5, "right"))


def test_counted_queries_give_the_rows_of_a_sparse_matrix(device):
    """Where the row pointer is a search of 0, 1, 2, … in the sorted rows."""
    search = gw.Search(device, "u32", queries=gw.index)
    for rows in (1, 1000, 5001):
        entries = np.sort(np.random.default_rng(rows).integers(0, rows, 3000).astype(np.uint32))
        pointer = search.execute(sorted=gw.asarray(entries, device), output=gw.empty(rows + 1, "u32", device)).output
        np.testing.assert_array_equal(pointer.to_numpy(), np.searchsorted(entries, np.arange(rows + 1)))
        np.testing.assert_array_equal(np.diff(pointer.to_numpy()), np.bincount(entries, minlength=rows))


def test_one_shot_of_expressions(device):
    keys, x = np.sort(numbers("f32", 5003, 1)), numbers("f32", 3000, 2)
    x[np.abs(x) < 2e-38] = 0  # a device may take subnormal numbers as 0
    on_gpu, order = gw.asarray(x, device), np.argsort(x, kind="stable")
    for side in SIDES:
        with np.errstate(invalid="ignore", over="ignore"):
            wanted = np.searchsorted(keys, x * np.float32(2), side)
        np.testing.assert_array_equal(gw.searchsorted(keys, on_gpu * 2, side=side).to_numpy(), wanted)
        found = gw.searchsorted(on_gpu, abs(on_gpu), side=side, sorter=order)
        np.testing.assert_array_equal(found.to_numpy(), np.searchsorted(x, abs(x), side, order))
    rows = gw.asarray(np.array([1, 1, 4], dtype=np.uint32), device)
    assert gw.searchsorted(rows, gw.index, size=7).to_numpy().tolist() == [0, 0, 2, 2, 2, 3, 3]
    assert gw.searchsorted(rows[:0], gw.index, size=3).to_numpy().tolist() == [0, 0, 0]


def test_counted_queries_go_on_in_the_next_window(device):
    caps = gw.capabilities(device)
    limits = {**caps.limits, "max-storage-buffer-binding-size": 16_384}
    search = make_primitive(
        gw.Search, device, "u32", queries=gw.index * 2 + 1, workgroup_size=64, vecs=1,
        capabilities=dataclasses.replace(caps, limits=limits),
    )  # fmt: skip
    keys = np.sort(np.random.default_rng(0).integers(0, 20_000, 12_000).astype(np.uint32))
    run = search.execute(sorted=gw.asarray(keys, device), output=gw.empty(10_001, "u32", device))
    assert (run.plan.parameters["windows"], run.plan.parameters["levels"]) == (3, 1)
    np.testing.assert_array_equal(run.output.to_numpy(), np.searchsorted(keys, np.arange(1, 20_003, 2)))


def test_queries_of_another_datatype_are_refused(device):
    x = gw.empty(3, "u32", device)
    with pytest.raises(gw.DatatypeError, match="x1 is of u32, but x2 of f32"):
        gw.searchsorted(x, gw.f32(x))
    with pytest.raises(gw.ArgumentError, match="no leaf of x2 says how many items it has; give size="):
        gw.searchsorted(x, gw.index)
    with pytest.raises(gw.ArgumentError, match="leave out size="):
        gw.searchsorted(x, x + 1, size=3)
    with pytest.raises(gw.ArgumentError, match="x2 says how many items it has; leave it out"):
        gw.searchsorted(x, x, size=3)
    with pytest.raises(gw.ArgumentError, match=r"store it with gw\.asarray\(x1\)"):
        gw.searchsorted(x + 1, x)
    with pytest.raises(gw.ArgumentError, match="k, which are no Arrays"):
        gw.searchsorted(x, gw.u32("k"))
    with pytest.raises(gw.DatatypeError, match=r"queries are of f32, but the keys of u32; cast .* gw\.u32"):
        gw.Search(device, "u32", queries=gw.f32("x"))
    with pytest.raises(gw.ArgumentError, match="output"):
        gw.Search(device, "u32", queries=gw.index).execute(sorted=gw.empty(3, "u32", device))
