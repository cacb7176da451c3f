"""TopK, top_k and partition against numpy's stable order."""

import dataclasses
import itertools

import numpy as np
import pytest

import gridwise_py as gw
from helpers.cases import FULL
from helpers.sorting import keys_of, order_of
from helpers.strategies import make_primitive, quick_first

DATATYPES = tuple(gw.TopK.datatypes)
#: A tile of 256 items, which is then the largest group.
TILE = {"workgroup_size": 64, "vecs": 1}


class FewCodes(gw.TopK):
    """One workgroup chooses among so few codes that small arrays have delegates, and delegates of these."""

    _select_items = _select_last_items = 1100


def floats(n, seed=0):
    """Numbers that are often equal, both zeros, both infinities, and NaNs of both signs."""
    rng = np.random.default_rng([seed, n])
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0], dtype=np.float32)
    return np.where(rng.random(n) < 0.5, rng.choice(special, n), rng.standard_normal(n)).astype(np.float32)


def expected(x, k, mode="largest", sorted=True):
    order = order_of(x, mode == "largest")[:k]
    return np.sort(order) if not sorted else order


def check(primitive, x, note="", **arrays):
    given = arrays or {"input": gw.asarray(x, primitive.device)}
    run = primitive.execute(**given, trials=3)
    values, indices = run.outputs["values"].to_numpy(), run.outputs["indices"].to_numpy()
    order = expected(x, primitive.k, primitive.mode, primitive.sorted)
    np.testing.assert_array_equal(indices, order, err_msg=str(note))
    assert values.tobytes() == x[order].tobytes(), note  # −0 stays −0
    return run.plan


def names(plan):
    return [kernel.label for kernel in plan.kernels]


def levels(primitive, count):
    """The kernels with so many levels of delegates, for a small k: on GPUs choices share dispatches with other work."""
    if not primitive.capabilities.is_cpu:
        return ["delegates_0", *["groups and delegates"] * (count - 1), "select"]
    return [*(name for level in range(count) for name in (f"delegates_{level}", "groups")), "select"]


@pytest.mark.parametrize(
    ("datatype", "k", "mode"), quick_first([("i64", 17, "largest")], [(d, 2, "smallest") for d in DATATYPES])
)
def test_equals_numpy(device, datatype, k, mode):
    x = keys_of(datatype, 40_001)
    primitive = FewCodes(device, datatype, k, mode=mode)
    assert names(check(primitive, x)) == levels(primitive, 1)
    check(primitive, x[:61])


@pytest.mark.parametrize("mode", quick_first(["smallest"], ["largest"]))
def test_numbers_before_nan_and_equal_zeros_in_order(device, mode):
    for n in (61, 700, 5000, 40_000):
        plan = check(FewCodes(device, "f32", 20, mode=mode), floats(n), n)
    assert names(plan) == levels(FewCodes(device, "f32", 20), 1)
    only_nan = np.array([np.nan, 1, -np.nan, np.nan] * 5 + [np.nan], dtype=np.float32)
    run = FewCodes(device, "f32", 20, mode=mode).execute(input=gw.asarray(only_nan, device))
    assert run.outputs["indices"].to_numpy().tolist() == [*range(1, 21, 4), *sorted({*range(20)} - {*range(1, 21, 4)})]


def test_edge_sizes(device):
    for n in (1, 2, 31, 32, 33, 255, 257, 1023, 1024, 1025, 1099, 1100, 1101, 2049, 8191, 8193):
        x = keys_of("u32", n)
        for k in {0, 1, 2, 17, n - 1, n} & set(range(min(n, 1024) + 1)):
            check(FewCodes(device, "u32", k), x, (n, k))


def _periodic(n):
    """Small numbers where the places agree modulo 256: the parts of a row differ as much as they can."""
    return np.where(np.arange(n) % 256 == 7, np.arange(n), 1 << 30).astype(np.uint32)


DISTRIBUTIONS = {
    "uniform": lambda n: np.random.default_rng(3).integers(0, 1 << 32, n, dtype=np.uint32),
    "ascending": lambda n: np.arange(n, dtype=np.uint32),
    "descending": lambda n: np.arange(n, dtype=np.uint32)[::-1].copy(),
    "all equal": lambda n: np.full(n, 7, dtype=np.uint32),
    "all the last code": lambda n: np.full(n, 0xFFFFFFFF, dtype=np.uint32),
    "two numbers": lambda n: np.random.default_rng(4).integers(0, 2, n, dtype=np.uint32),
    "one other": lambda n: (np.arange(n) == n - 1).astype(np.uint32),
    "periodic": _periodic,
}


@pytest.mark.parametrize("mode", quick_first(["largest"], ["smallest"]))
def test_any_distribution_over_two_levels_of_delegates(device, mode):
    primitive = make_primitive(FewCodes, device, "u32", 9, mode=mode, **TILE)
    for name, make in DISTRIBUTIONS.items():
        assert names(check(primitive, make(170_003), name)) == levels(primitive, 2)


@pytest.mark.parametrize(("datatype", "k", "mode"), quick_first([("u64", 100, "smallest")], [("u32", 1000, "largest")]))
def test_one_workgroup_chooses_exactly_where_the_codes_do_not_fit(device, datatype, k, mode):
    """Up to a bound there are more codes than there is room for; or k is too large for a bound."""
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    primitive = gw.TopK(device, datatype, k, mode=mode)
    for name, make in DISTRIBUTIONS.items():
        x = make(9000).astype(dtype)
        if datatype == "u64":
            x = x << dtype.type(29) | x & dtype.type(3)  # both words matter
        check(primitive, x, name)


def as_gpu(device):
    """Capabilities with which kernels are as on GPUs, also on a CPU adapter."""
    return dataclasses.replace(gw.capabilities(device), adapter_type="DiscreteGPU")


class SomeCodes(gw.TopK):
    """So many codes that invocations hold several, and do not store all of them."""

    _select_items = _select_last_items = 4000


class MoreItems(SomeCodes):
    """And more items of the chosen groups."""

    _select_last_items = 8000


@pytest.mark.needs("workgroups of 1024")
@pytest.mark.parametrize(
    ("datatype", "mode"), quick_first([("u32", "largest")], [("f32", "smallest"), ("u64", "largest")])
)
def test_many_workgroups_make_the_first_choice(device, datatype, mode):
    """As on GPUs: each chooses groups, and finds delegates of smaller groups of these."""
    n, k, dtype = 500_003, 100, gw.STORAGE_DATATYPES[datatype].dtype
    primitive = make_primitive(SomeCodes, device, datatype, k, mode=mode, capabilities=as_gpu(device), **TILE)
    few = () if datatype == "u32" else ("descending", "two numbers")
    for name, make in DISTRIBUTIONS.items():
        if name in (few or DISTRIBUTIONS):
            plan = check(primitive, make(n).astype(dtype), name)
            assert names(plan) == ["delegates_0", "groups and delegates", "select"]
    assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")
    # Smaller groups, where one workgroup then can look through the chosen ones.
    direct = make_primitive(MoreItems, device, datatype, k, mode=mode, capabilities=as_gpu(device), **TILE)
    assert names(check(direct, DISTRIBUTIONS["descending"](n).astype(dtype), "directly")) == ["delegates_0", "select"]
    x = floats(n) if datatype == "f32" else keys_of(datatype, n)
    for size in (n, 20_000, 3000):  # also one level, and none
        check(primitive, x[:size], size)
    items = gw.asarray(x, device)
    for count in (0, k - 1, 5000, n):
        run = primitive.execute(input=items, n=gw.asarray(np.uint32([count]), device), trials=2)
        order, indices = expected(x[:count], k, mode), run.outputs["indices"].to_numpy()
        np.testing.assert_array_equal(indices[: order.size], order, err_msg=str(count))
        assert (indices[order.size :] == 0xFFFFFFFF).all(), count


@pytest.mark.needs("workgroups of 1024")
def test_more_than_a_kernel_has_invocations_for(device):
    """As on devices with large workgroups; of 8 bytes with half as many invocations, which only the slow test runs."""
    primitives = [gw.TopK(device, datatype, 100, capabilities=as_gpu(device)) for datatype in ("u32", "f64")]
    for primitive, lanes in zip(primitives, (1024, 512), strict=True):
        plan = primitive.plan(gw.Layout.separate({"input": 4 * 1024 // lanes}, input=20_000, values=100, indices=100))
        assert any(f"const WORKGROUP_SIZE: u32 = {lanes}u;" in shader.text for shader in plan.shaders.values())
    for x in (keys_of("u32", 20_000), np.zeros(20_000, np.uint32)):
        check(primitives[0], x)


def test_rows(device):
    for sorted in (True, False):
        for rows, length, k in ((7, 100, 3), (1, 50, 50), (3, 1300, 1024), (20, 1200, 5)):
            x = keys_of("u32", rows * length)
            run = FewCodes(device, "u32", k, row_length=length, sorted=sorted).execute(input=gw.asarray(x, device))
            order = np.stack([expected(row, k, sorted=sorted) for row in x.reshape(rows, length)])
            np.testing.assert_array_equal(run.outputs["indices"].to_numpy().reshape(rows, k), order)
            values = np.take_along_axis(x.reshape(rows, length), order, axis=1)
            np.testing.assert_array_equal(run.outputs["values"].to_numpy().reshape(rows, k), values)


def test_few_long_rows_get_many_workgroups_each(device):
    x = keys_of("u32", 3 * 5001)
    primitive = FewCodes(device, "u32", 11, row_length=5001)
    run = primitive.execute(input=gw.asarray(x, device))
    assert names(run.plan) == levels(primitive, 1) * 3
    for row, found in zip(x.reshape(3, -1), run.outputs["indices"].to_numpy().reshape(3, -1), strict=True):
        np.testing.assert_array_equal(found, expected(row, 11))


def test_an_expression_is_not_stored(device):
    a, b = floats(6000, 1), floats(6000, 2)
    with np.errstate(invalid="ignore"):
        product = a * b
    on_gpu = {"x": gw.asarray(a, device), "y": gw.asarray(b, device)}
    run = FewCodes(device, gw.f32("x") * gw.f32("y"), 13).execute(**on_gpu)
    np.testing.assert_array_equal(run.outputs["indices"].to_numpy(), expected(product, 13))


@pytest.mark.parametrize("strategy", ["delegates", "sorted delegates"])
def test_only_the_gpu_knows_how_many_items_count(device, monkeypatch, strategy):
    n, k = 6000, 13
    if strategy == "sorted delegates":  # which is for a k that is larger than this
        monkeypatch.setattr(gw.primitives.top_k, "_SELECT_ROOM", k - 1)
    x = keys_of("u32", n) % 50
    x[0] = 49  # the first groups have smaller ones that do not count
    primitive, items = FewCodes(device, "u32", k, mode="smallest"), gw.asarray(x, device)
    for count in (n, 0, 1, k - 1, k, n // 3, n + 5, 33):
        run = primitive.execute(input=items, n=gw.asarray(np.array([count], dtype=np.uint32), device), trials=2)
        assert run.plan.parameters["strategy"] == strategy
        order = expected(x[:count], k, "smallest")
        values, indices = run.outputs["values"].to_numpy(), run.outputs["indices"].to_numpy()
        np.testing.assert_array_equal(indices[: order.size], order, err_msg=str(count))
        np.testing.assert_array_equal(values[: order.size], x[order], err_msg=str(count))
        assert (indices[order.size :] == 0xFFFFFFFF).all(), count
        assert (values[order.size :] == 0).all(), count


def test_fewer_items_than_k_where_the_whole_input_is_sorted(device):
    """Places behind the counted ones do not come to the front when the first k are put in order."""
    x = np.sort(keys_of("u32", 3000))[::-1].copy()
    primitive = gw.TopK(device, "u32", 1500, mode="smallest", sorted=False)
    for count in (178, 1, 0, 1500, 2000):
        counted = gw.asarray(np.array([count], dtype=np.uint32), device)
        run = primitive.execute(input=gw.asarray(x, device), n=counted, trials=2)
        order = expected(x[:count], 1500, "smallest", sorted=False)
        indices = run.outputs["indices"].to_numpy()
        np.testing.assert_array_equal(indices[: order.size], order, err_msg=str(count))
        assert (indices[order.size :] == 0xFFFFFFFF).all(), count


def test_items_that_the_gpu_counted(device):
    x = keys_of("u32", 600) % 50
    items = gw.asarray(x, device)
    found = gw.top_k(gw.compress(items > 30, items), 5, mode="smallest")
    np.testing.assert_array_equal(found.values.to_numpy(), np.sort(x[x > 30])[:5])


@pytest.mark.parametrize("datatype", quick_first(["u32"], ["f64"]))
def test_larger_than_a_binding(device, datatype):
    """In windows for the delegates, and in segments for what is read of them."""
    caps = gw.capabilities(device)
    limits = {**caps.limits, "max-storage-buffer-binding-size": 65_536}
    primitive = make_primitive(
        FewCodes, device, datatype, 15, capabilities=dataclasses.replace(caps, limits=limits), **TILE
    )
    plan = check(primitive, keys_of(datatype, 40_003))
    assert sum(name.startswith("delegates_0 (window") for name in names(plan)) == {"u32": 3, "f64": 6}[datatype]


def test_the_input_is_read_once_and_little_else():
    n = 1 << 28
    for k, levels in ((1, 1), (100, 2), (128, 2), (1024, 3)):
        plan = gw.TopK.plan_for(capabilities=FULL, k=k, lengths={"input": n, "values": k, "indices": k})
        # For small k many workgroups make the first choice of groups, and one kernel chooses groups and their items.
        steps = [name for i in range(levels) for name in (f"delegates_{i}", "groups")]
        if k <= 128:
            steps = ["delegates_0", *["groups and delegates"] * (levels - 1)]
        assert names(plan) == [*steps, "select"]
        scratch = sum(spec.size_bytes for spec in plan.buffers if spec.role == "scratch")
        assert scratch < plan.work.read_bytes / 1000
        assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")


def test_the_algorithm_by_k():
    n = 1 << 24
    for k, strategy in ((1024, "delegates"), (1025, "sorted delegates"), (n // 300, "sorted delegates"), (n, "sort")):
        plan = gw.TopK.plan_for(capabilities=FULL, k=k, lengths={"input": n, "values": k, "indices": k})
        assert plan.parameters["strategy"] == strategy


@pytest.mark.slow
@pytest.mark.parametrize("sorted", [True, False])
@pytest.mark.parametrize(
    ("datatype", "n", "k", "strategy"),
    [
        ("u32", 140_003, 1025, "sorted delegates"), ("f32", 140_003, 1100, "sorted delegates"),
        ("i64", 140_003, 1100, "sorted delegates"), ("u8", 140_003, 1100, "sorted delegates"),
        ("u32", 20_001, 1025, "sort"), ("f16", 20_001, 20_001, "sort"), ("f64", 20_001, 9000, "sort"),
    ],
)  # fmt: skip
def test_large_k(device, datatype, n, k, strategy, sorted):
    x = keys_of(datatype, n)
    for mode in ("largest", "smallest"):
        primitive = gw.TopK(device, datatype, k, mode=mode, sorted=sorted)
        assert check(primitive, x).parameters["strategy"] == strategy
    if not sorted:
        return
    for count in (0, 7, k, n // 2, n):
        run = primitive.execute(input=gw.asarray(x, device), n=gw.asarray(np.array([count], dtype=np.uint32), device))
        order = expected(x[:count], k, "smallest")
        indices = run.outputs["indices"].to_numpy()
        np.testing.assert_array_equal(indices[: order.size], order, err_msg=str(count))
        assert (indices[order.size :] == 0xFFFFFFFF).all(), count


# ---- one-shot functions


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: gw.TopK(x.device, "u32", 9).execute(input=x), gw.LengthError, "k=9, but input has 8 items"),
        (lambda x: gw.TopK(x.device, "u32", -1), gw.ArgumentError, "k"),
        (lambda x: gw.TopK(x.device, "u32", 2, mode="max"), gw.ArgumentError, "known are largest, smallest"),
        (lambda x: gw.TopK(x.device, "u32", 5, row_length=4), gw.LengthError, "a row has 4 items"),
        (lambda x: gw.TopK(x.device, "u32", 2, row_length=3).execute(input=x), gw.LengthError, "rows of 3"),
        (lambda x: gw.TopK(x.device, k=2, row_length=4).execute(input=x, n=x[3:4]), gw.ArgumentError, "row_length"),
        (lambda x: gw.TopK(x.device, tuning=gw.ElementwiseTuning(vecs=12)), gw.ArgumentError, "vecs=12"),
        (lambda x: gw.TopK(x.device, "c64", 2), gw.DatatypeError, "c64"),
        (lambda x: gw.top_k(x, 9), gw.LengthError, "k=9, but x has 8 items"),
        (lambda x: gw.top_k(x.reshape(2, 4), 5), gw.LengthError, "4 items a row"),
        (lambda x: gw.top_k(x.reshape(2, 4), 2, axis=2), gw.AxisError, "axis=2"),
        (lambda x: gw.top_k(x, 2**32), gw.ArgumentError, "at most 4294967295"),
        (lambda x: gw.top_k(x, 2, largest=False), gw.ArgumentError, "mode='smallest'"),
        (lambda x: gw.top_k(x, 1.5), gw.ArgumentError, "k"),
        (lambda x: gw.partition(x, 8), gw.BoundsError, "n = 8"),
        (lambda x: gw.argpartition(x, [0, -9]), gw.BoundsError, "n = 8"),
        (lambda x: gw.partition(x.reshape(2, 4), 4), gw.BoundsError, "n = 4"),
    ],
)  # fmt: skip
def test_wrong_arguments(device, call, error, words):
    x = gw.asarray(np.arange(8, dtype=np.uint32), device)
    with pytest.raises(error, match=words):
        call(x)


# ---- segments


def lengths_of_segments(n, seed=0):
    """Offsets of segments around what a workgroup and its memory hold, empty ones, and items in no segment."""
    lengths = [0, 1, 2, 16, 17, 255, 256, 257, 0, 1023, 1024, 1025, 0, 0, 3000, 5, 7001]
    offsets = 3 + np.cumsum([0, *np.random.default_rng(seed).permutation(lengths)])
    assert offsets[-1] < n
    return offsets.astype(np.uint32)


def check_segments(primitive, x, offsets, n=None):
    """Views at odd offsets, and nothing is written outside."""
    device, k = primitive.device, primitive.k
    arrays = {
        "input": gw.asarray(np.concatenate([x[:3], x]), device)[3:],
        "offsets": gw.asarray(np.append(np.uint32(9), offsets), device)[1:],
    }
    size = (offsets.size - 1) * k
    rooms = {name: gw.full(size + 10, 1, dtype, device) for name, dtype in (("values", x.dtype), ("indices", "u32"))}
    if n is not None:
        arrays["n"] = gw.asarray(np.uint32([n]), device)
    primitive.execute(**arrays, **{name: room[5 : 5 + size] for name, room in rooms.items()}, trials=3)
    for room in rooms.values():
        host = room.to_numpy()
        assert (np.concatenate([host[:5], host[5 + size :]]) == 1).all()
    values, indices = (rooms[name].to_numpy()[5 : 5 + size].reshape(-1, k) for name in ("values", "indices"))
    end = x.size if n is None else n
    for s in range(offsets.size - 1):
        items = x[min(offsets[s], end) : min(offsets[s + 1], end)]
        order = expected(items, k, primitive.mode, primitive.sorted)
        note = (s, items.size)
        assert indices[s, : order.size].tolist() == order.tolist(), note
        assert values[s, : order.size].tobytes() == items[order].tobytes(), note
        assert (indices[s, order.size :] == 0xFFFFFFFF).all(), note
        assert not values[s, order.size :].any(), note


@pytest.mark.parametrize("datatype", quick_first(["f32"], DATATYPES))
def test_of_each_segment(device, datatype):
    x = keys_of(datatype, 14_000) if datatype != "f32" else floats(14_000)
    offsets = lengths_of_segments(x.size)
    for k, options in ((20, {"mode": "smallest"}), (600, {"mode": "smallest"}), (1024, {"sorted": False})):
        check_segments(gw.SegmentedTopK(device, datatype, k, **options), x, offsets)


def test_of_segments_whose_codes_do_not_fit(device):
    """All equal, and so that the last code is that of what fills up."""
    for make in (DISTRIBUTIONS["all the last code"], DISTRIBUTIONS["two numbers"]):
        x = make(14_000)
        for k in (100, 700):
            check_segments(gw.SegmentedTopK(device, "u32", k), x, lengths_of_segments(x.size))


def ragged(n):
    """Segments and how many items of each: none, one, all, more than it has, with room for its slots and without."""
    offsets = lengths_of_segments(n)
    ks = np.resize(np.uint32([3, 0, 1000, 2, 7, 600, 1024, 300, 100, 5000]), offsets.size - 1)
    ks[np.diff(offsets.astype(np.int64)).argmax()] = 5000
    return offsets, ks


@pytest.mark.parametrize("datatype", quick_first(["f32"], DATATYPES))
def test_another_k_for_each_segment(device, datatype):
    x = keys_of(datatype, 14_000) if datatype != "f32" else floats(14_000)
    offsets, ks = ragged(x.size)
    given = {"input": gw.asarray(x, device), "offsets": gw.asarray(offsets, device), "ks": gw.asarray(ks, device)}
    for options in ({"mode": "smallest"}, {"sorted": False}):
        for n in (x.size, 5_000):
            ends = np.minimum(offsets, n)
            parts = [x[begin:end] for begin, end in itertools.pairwise(ends)]
            mode, is_sorted = options.get("mode", "largest"), options.get("sorted", True)
            most = np.minimum(ks, 1024)
            orders = [expected(part, k, mode, is_sorted) for part, k in zip(parts, most, strict=True)]
            total = sum(order.size for order in orders)
            for room in (total + 9, total // 2):
                primitive = gw.SegmentedTopK(device, datatype, None, size=room, **options)
                whole = gw.asarray(np.ones(room + total, x.dtype), device)
                run = primitive.execute(**given, values=whole[:room], n=n, trials=2)
                assert (whole.to_numpy()[room:] == 1).all(), "what does not fit is not written"
                found = {name: array.to_numpy() for name, array in run.outputs.items()}
                assert found["starts"].tolist() == np.cumsum([0, *map(len, orders)]).tolist()
                assert found["indices"][:total].tolist() == np.concatenate(orders)[:room].tolist()
                wanted = np.concatenate([part[order] for part, order in zip(parts, orders, strict=True)])
                assert found["values"][:total].tobytes() == wanted[:room].tobytes()
                assert (found["values"][total:] == 1).all(), "what lies behind stays"


def test_a_k_for_each_segment_as_a_function(device):
    x, offsets = keys_of("i16", 500), [0, 7, 7, 300]
    wanted = [expected(x[:7], 9), expected(x[7:300], 4)]
    rows = np.uint32([9, 5, 4])
    on_gpu = {"x": gw.asarray(x, device), "offsets": gw.asarray(np.uint32(offsets), device)}
    for found in (
        gw.segmented_top_k(x, offsets, rows, device=device),
        gw.segmented_top_k(**on_gpu, k=[9, 5, 4]),
        gw.segmented_top_k(**on_gpu, k=gw.asarray(rows, device), size=400),
        gw.segmented_top_k(x, offsets, gw.asarray(rows, device), size=400),
    ):
        assert found.offsets.tolist() == [0, 7, 7, 11]
        assert found.indices.tolist() == np.concatenate(wanted).tolist()
        assert found.values.tolist() == [*x[:7][wanted[0]], *x[7:300][wanted[1]]]
    assert gw.segmented_top_k(x, [0], [], device=device).offsets.tolist() == [0]
    for k, size, error, words in (
        ([1, 2], None, gw.LengthError, "2 items, but there are 3 segments"),
        ([1, 1025, 0], None, gw.LimitError, "from 0 to 1025"),
        ([1, -1, 0], None, gw.LimitError, "from -1 to 1"),
        ([0.5, 1, 1], None, gw.DatatypeError, "integers"),
        (gw.asarray(rows, device), None, gw.ArgumentError, "needs size="),
        (3, 9, gw.ArgumentError, "leave it out"),
    ):
        with pytest.raises(error, match=words):
            gw.segmented_top_k(x, offsets, k, size=size, device=device)
    with pytest.raises(gw.ArgumentError, match="k=None"):
        gw.SegmentedTopK(device, "u32", None)


def test_counted_items_of_segments(device):
    x = keys_of("u32", 14_000)
    primitive = gw.SegmentedTopK(device, "u32", 9)
    for n in (14_000, 6_000, 1, 0):
        check_segments(primitive, x, lengths_of_segments(x.size), n)


def test_offsets_out_of_range_read_nothing_outside(device):
    """They count as the end of the items; where they fall, the segment is empty."""
    whole = gw.asarray(np.arange(1, 301, dtype=np.uint32), device)
    offsets = gw.asarray(np.uint32([40, 90, 60, 1000, 0xFFFFFFFF, 10]), device)
    run = gw.SegmentedTopK(device, "u32", 2).execute(input=whole[:100], offsets=offsets)
    assert run.outputs["values"].tolist() == [90, 89, 0, 0, 100, 99, 0, 0, 0, 0]
    none = 0xFFFFFFFF
    assert run.outputs["indices"].tolist() == [49, 48, none, none, 39, 38, none, none, none, none]
    with pytest.raises(gw.ArgumentError, match="offsets are from 0 to 101, but there are 100 items"):
        gw.segmented_top_k(np.arange(100), [0, 101], 2)


def test_segments_as_a_function(device):
    x, offsets = keys_of("i16", 500), [0, 7, 7, 300]
    found = gw.segmented_top_k(x, offsets, 9, mode="smallest")
    assert (found.values.shape, found.values.dtype, found.indices.dtype) == ((3, 9), np.int16, np.intp)
    assert found.indices[0].tolist() == [*expected(x[:7], 9, "smallest"), -1, -1]
    assert found.indices[1].tolist() == [-1] * 9
    assert (x[7:300][found.indices[2]] == found.values[2]).all()
    on_gpu = gw.segmented_top_k(-gw.asarray(x.astype(np.int32), device), gw.asarray(np.uint32(offsets), device), 3)
    assert (on_gpu.indices.shape, on_gpu.indices.dtype) == ((3, 3), np.uint32)
    assert on_gpu.values.to_numpy()[2].tolist() == np.sort(-x[7:300].astype(int))[::-1][:3].tolist()
    assert gw.segmented_top_k(x, [0], 3).values.shape == (0, 3)
    nothing = gw.asarray(np.zeros(0, np.int32), device)
    for empty in (np.zeros(0, np.int16), nothing, -nothing):
        values, indices = gw.segmented_top_k(empty, [0, 0, 0], 9, mode="smallest")
        assert not np.asarray(values.tolist()).any()
        assert {number % 2**32 for row in indices.tolist() for number in row} == {0xFFFFFFFF}
    items, offsets_of_nothing = on_gpu.values.ravel(), gw.zeros(3, "u32", device)
    run = gw.SegmentedTopK(device, "i32", 3).execute(input=items, offsets=offsets_of_nothing, n=0)
    assert run.outputs["indices"].tolist() == [0xFFFFFFFF] * 6
    assert gw.segmented_top_k(x, offsets, 0).indices.shape == (3, 0)
    with pytest.raises(gw.LimitError, match="k=1025, but one workgroup chooses at most 1024"):
        gw.segmented_top_k(x, offsets, 1025)
