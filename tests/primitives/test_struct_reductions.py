"""Reductions to structs: the least and greatest with their index, moments, bits, first and last, field by field."""

from __future__ import annotations

import copy
import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside
from helpers.strategies import quick_first

SMALL = {"workgroup_size": 32, "vecs": 2}  # tiles of 256 items
TILE = 256
SIZES = (1, 2, 5, TILE - 1, TILE, TILE + 1, 3 * TILE + 7, 100_003)
ARG = {"argmax": (gw.ArgMax, np.argmax), "argmin": (gw.ArgMin, np.argmin)}
MASK = 2**32 - 1


def _number(result):
    """Return the one item of a result."""
    return np.asarray(result.to_numpy() if isinstance(result, gw.Array) else result)[()]


def _arg_reduction(device, kind, name, **options):
    leaf = getattr(gw, kind)("x")
    op, _ = ARG[name]
    tuning = gw.ReduceTuning(**{**SMALL, "subgroups": "none", **options.pop("tuning", {})})
    return gw.Reduce(device, gw.struct(value=leaf, index=gw.index), op, tuning=tuning, **options)


def _items(kind, n, seed=0):
    """Return items with many ties; of floats also NaN (from 300 items on), infinities and zeros of both signs."""
    rng = np.random.default_rng([n, seed])
    if kind != "f32":
        items = rng.integers(0, 2**32, n, dtype=np.uint32)
        return (
            np.where(rng.random(n) < 0.5, items | 0xFFFFFF0F, items & 0x800000F0).astype(np.uint32).view(kind_of(kind))
        )
    items = rng.choice(np.float32([-2, -0.0, 0.0, 2, 1e-30, np.inf, -np.inf]), n)
    if n >= 300:
        items[rng.integers(200, n, 2)] = np.nan
    return items


def kind_of(kind):
    """Return the numpy dtype of a datatype."""
    return gw.DATATYPES[kind].dtype


# ---- the least and greatest


@pytest.mark.parametrize(
    ("name", "kind"),
    quick_first(
        [("argmin", "i32"), ("argmax", "f32")],
        itertools.product(ARG, ["u32", "i32", "f32"]),
    ),
)
def test_the_first_of_equals_at_every_length(device, kind, name):
    reduction = _arg_reduction(device, kind, name)
    for n in SIZES:
        items = _items(kind, n)
        found = reduction.execute(x=gw.asarray(items, device), trials=2).output.to_numpy()
        place = ARG[name][1](items)
        assert found["index"].tolist() == [place], n
        assert found["value"].view(np.uint32) == items[place : place + 1].view(np.uint32), n


@pytest.mark.parametrize("subgroups", quick_first(["native"], [f"emulated-{lanes}" for lanes in (4, 8, 16, 32)]))
def test_every_form_of_subgroups(device, require, subgroups):
    if subgroups == "native":
        require("subgroup")
    items = _items("f32", 5 * TILE + 3)
    tuning = {"workgroup_size": 64, "vecs": 1, "subgroups": subgroups}
    found = _arg_reduction(device, "f32", "argmin", tuning=tuning).execute(x=gw.asarray(items, device))
    assert found.output.to_numpy()["index"][0] == np.argmin(items)
    items = np.nan_to_num(items, posinf=3, neginf=-3)
    moments = _moments(device, tuning=gw.ReduceTuning(**tuning)).execute(x=gw.asarray(items, device)).output.to_numpy()
    np.testing.assert_allclose(moments["m2"][0] / items.size, items.astype(np.float64).var(), rtol=1e-6)


def test_items_that_are_the_identity_have_an_index(device):
    """The least item there is wins over the identity, with which tiles end."""
    for name, kind, value in (
        ("argmax", "u32", 0), ("argmax", "u32", 2**32 - 1), ("argmin", "i32", 2**31 - 1),
        ("argmax", "f32", -np.inf), ("argmin", "f32", np.inf),
    ):  # fmt: skip
        reduction = _arg_reduction(device, kind, name)
        for n in (1, TILE + 3):
            found = reduction.execute(x=gw.full(n, value, kind, device)).output.to_numpy()
            assert found.tolist() == [(value, 0)]


def test_every_nan_wins_and_zeros_are_equal(device):
    nans = np.uint32([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF]).view(np.float32)
    for name in ARG:
        reduction = _arg_reduction(device, "f32", name)
        for nan in nans:
            items = np.float32([1, -np.inf, np.inf, 0, 0, 2])
            items[3] = nan
            items[4] = nans[0]
            assert reduction.execute(x=gw.asarray(items, device)).output.to_numpy()["index"][0] == 3
        for zeros in ([0.0, -0.0], [-0.0, 0.0]):
            items = np.float32(zeros * 3)
            assert reduction.execute(x=gw.asarray(items, device)).output.to_numpy()["index"][0] == 0


def test_indices_that_do_not_ascend(device):
    """Of stored structs, and of computed indices, the smallest index wins, wherever it is."""
    struct = gw.Struct("Place", value="i32", index="u32", payload="f32")
    rng = np.random.default_rng(3)
    n = 3 * TILE + 5
    items = struct.array(value=rng.integers(0, 3, n), index=rng.permutation(n), payload=rng.random(n))
    best = items[items["value"] == 2]
    wanted = best[np.argmin(best["index"])]
    tuning = gw.ReduceTuning(**SMALL, subgroups="none")
    stored = gw.Reduce(device, struct, gw.ArgMax, tuning=tuning)
    assert stored.execute(input=gw.asarray(items, device)).output.to_numpy()[0] == wanted
    assert stored.reference(input=items)[0] == wanted
    x = gw.i32("x")
    last = gw.Reduce(device, gw.struct(value=x, index=np.uint32(MASK) - gw.index), gw.ArgMax, tuning=tuning)
    found = last.execute(x=gw.asarray(items["value"].copy(), device)).output.to_numpy()
    assert MASK - found["index"][0] == np.flatnonzero(items["value"] == 2)[-1]


def _narrow(device):
    capabilities = gw.capabilities(device)
    return replace(capabilities, limits={**capabilities.limits, "max-storage-buffer-binding-size": 33_024})


def test_windows_count_indices_from_the_beginning(device):
    n = 20_001
    items = np.zeros(n, np.float32)
    reduction = _arg_reduction(device, "f32", "argmax", capabilities=_narrow(device))
    for place in (0, 8_250, 8_256, 19_999):
        items[:] = 0
        items[place:] = 7  # ties in every window behind
        run = reduction.execute(x=gw.asarray(items, device))
        assert run.plan.parameters["windows"] > 2
        assert run.output.to_numpy()["index"][0] == place


def test_views_at_odd_offsets(device):
    items = _items("f32", 700)
    finite = np.nan_to_num(items, posinf=3, neginf=-3)
    for offset in (1, 2, 3):
        assert _number(gw.argmax(gw.asarray(items, device)[offset:])) == np.argmax(items[offset:])
        found = _number(gw.var(gw.asarray(finite, device)[offset:]))
        np.testing.assert_allclose(found, finite[offset:].var(), rtol=1e-5)


def test_one_read_of_four_bytes_an_item(device):
    for made in (_arg_reduction(device, "f32", "argmax"), _moments(device)):
        plan = made.execute(x=gw.zeros(1000, "f32", device)).plan
        assert plan.work.read_bytes == 4000
        assert len([step for step in plan.steps if type(step).__name__ == "Dispatch"]) <= 1
        assert gw.Plan.from_json(plan.to_json()) == plan.with_checks("all")


# ---- moments


def _moments(device, *, output=None, **options):
    options = {"tuning": gw.ReduceTuning(**SMALL, subgroups="none"), **options}
    item = gw.struct(count=gw.u32(1), mean=gw.f32("x"), m2=gw.f32(0))
    return gw.Reduce(device, item, gw.Moments, output=output, **options)


def test_moments_at_every_length(device):
    reduction = _moments(device)
    rng = np.random.default_rng(5)
    for n in SIZES:
        items = rng.normal(1000, 1, n).astype(np.float32)
        found = reduction.execute(x=gw.asarray(items, device)).output.to_numpy()[0]
        exact = items.astype(np.float64)
        assert found["count"] == n
        assert abs(found["mean"] - exact.mean()) <= 1e-6 * exact.mean()
        assert abs(found["m2"] - exact.var() * n) <= 1e-5 * exact.var() * n + 1e-4 * n * (n == 1)


def test_moments_are_as_exact_as_numpys(device):
    """Far from 0, where a difference of two sums of squares has no digit left."""
    items = np.random.default_rng(6).normal(1e4, 0.5, 60_001).astype(np.float32)
    exact = items.astype(np.float64)
    for found, numpys, wanted in (
        (gw.mean(items, device=device), items.mean(), exact.mean()),
        (gw.var(items, device=device), items.var(), exact.var()),
    ):
        assert abs(found - wanted) <= max(2 * abs(numpys - wanted), 3 * np.finfo(np.float32).eps * wanted)


def test_moments_of_moments(device):
    """Items that are moments already, some of them of no item at all."""
    struct = gw.Struct("Moments", count="u32", mean="f32", m2="f32")
    rng = np.random.default_rng(7)
    sizes = [0, *rng.integers(0, 9, 2 * TILE + 5)]
    parts = [rng.normal(3, 2, size).astype(np.float32) for size in sizes]
    with np.errstate(all="ignore"):
        items = struct.array(
            count=[part.size for part in parts],
            mean=[part.mean() if part.size else 1e30 for part in parts],  # the mean of nothing is any number
            m2=[part.var() * part.size if part.size else 0 for part in parts],
        )
    tuning = gw.ReduceTuning(**SMALL, subgroups="none")
    found = gw.Reduce(device, struct, gw.Moments, tuning=tuning).execute(input=gw.asarray(items, device))
    found = found.output.to_numpy()[0]
    everything = np.concatenate(parts).astype(np.float64)
    assert found["count"] == everything.size
    np.testing.assert_allclose(found["mean"], everything.mean(), rtol=1e-5)
    np.testing.assert_allclose(found["m2"], everything.var() * everything.size, rtol=1e-5)


def test_large_items_beside_the_end(device):
    """The square of a distance to what is behind the last item is infinite."""
    for n in (3, TILE + 1):
        items = np.full(n, 1e20, np.float32)
        assert _number(gw.var(gw.asarray(items, device))) == 0
        np.testing.assert_allclose(_number(gw.mean(gw.asarray(items, device))), 1e20, rtol=1e-6)


def test_a_deterministic_variance_has_the_same_bits_in_every_shape(device):
    items = np.random.default_rng(8).normal(0, 1, 30_011).astype(np.float32)
    array = gw.asarray(items, device)
    words = {
        np.float32(_number(made)).tobytes()
        for made in (
            gw.var(array, deterministic=True),
            gw.var(array, deterministic=True),
            _moments(device, tuning=None, deterministic=True, output=gw.result.m2 / gw.f32(gw.result.count))
            .execute(x=array)
            .output.reshape(()),
        )
    }
    assert len(words) == 1
    plan = _moments(device, tuning=None, deterministic=True).execute(x=array).plan
    assert plan.parameters["subgroups"] == "none"
    assert plan.parameters["shape"] == "fixed"
    # Products are rounded by themselves.
    assert [shader for shader in plan.shaders.values() if "return seal(x)" not in shader.text] == []
    np.testing.assert_allclose(np.frombuffer(words.pop(), np.float32)[0], items.astype(np.float64).var(), rtol=1e-6)


# ---- other operators


@pytest.mark.parametrize("dtype", quick_first(["u64"], ["bool", "u32", "i32", "u8", "i8", "u16", "i16", "i64"]))
def test_bits(device, dtype):
    numpy_type = gw.STORAGE_DATATYPES[dtype].dtype
    rng = np.random.default_rng(9)
    n = 2 * TILE + 9
    words = rng.integers(0, 256, n * numpy_type.itemsize, dtype=np.uint8)
    items = rng.random(n) < 0.9 if dtype == "bool" else words.view(numpy_type)
    items[: n // 2] |= numpy_type.type(1)
    for op, ufunc in ((gw.And, np.bitwise_and), (gw.Or, np.bitwise_or), (gw.Xor, np.bitwise_xor)):
        reduction = gw.Reduce(device, dtype, op, tuning=gw.ReduceTuning(workgroup_size=64, vecs=1))
        for part in (items, items[: n // 2], items[:1], items[:0]):
            found = reduction.execute(input=gw.asarray(part, device)).output.to_numpy()
            assert found[0] == ufunc.reduce(part), (op, part.size)
            assert found.dtype == numpy_type


@pytest.mark.parametrize("op", [gw.And, gw.Or, gw.Xor])
def test_bits_of_floats_are_refused(op):
    with pytest.raises(gw.DatatypeError, match="bits of integers and bools"):
        gw.Reduce(None, "f32", op, capabilities=gw.Capabilities())


def test_the_first_and_the_last(device):
    rng = np.random.default_rng(10)
    x = gw.f32("x")
    for op, at in ((gw.First, 0), (gw.Last, -1)):
        reduction = gw.Reduce(
            device, gw.struct(is_item=gw.u32(x > 0.9), index=gw.index, value=x), op,
            tuning=gw.ReduceTuning(**SMALL, subgroups="none"),
        )  # fmt: skip
        for n in (1, 40, 3 * TILE + 1):
            items = rng.random(n).astype(np.float32)
            found = reduction.execute(x=gw.asarray(items, device)).output.to_numpy()[0]
            places = np.flatnonzero(items > np.float32(0.9))
            if places.size:
                assert (found["is_item"], found["index"], found["value"]) == (1, places[at], items[places[at]])
            else:
                assert found["is_item"] == 0


@pytest.mark.parametrize(
    ("op", "ufunc"),
    quick_first([("add", np.add), ("min", np.minimum)], [("multiply", np.multiply), ("max", np.maximum)]),
)
def test_field_by_field(device, op, ufunc):
    struct = gw.Struct("Fields", a="u32", b="i32", c="f32", d="f32")
    rng = np.random.default_rng(11)
    n = TILE + 9
    items = struct.array(a=rng.integers(0, 2**32, n), b=rng.integers(-9, 9, n), c=rng.integers(1, 3, n), d=1)
    if op in ("min", "max"):
        items["d"][70] = np.nan
    else:
        items["c"][9:] = 1
    reduction = gw.Reduce(device, struct, op, tuning=gw.ReduceTuning(**SMALL, subgroups="none"))
    found = reduction.execute(input=gw.asarray(items, device)).output.to_numpy()[0]
    for field in items.dtype.names:
        wanted = ufunc.reduce(items[field], dtype=items[field].dtype)
        np.testing.assert_array_equal(found[field], wanted, err_msg=field)
    if op == "add":
        prefixes = gw.scan(gw.asarray(items, device)).to_numpy()
        for field in "ab":
            np.testing.assert_array_equal(prefixes[field], np.cumsum(items[field], dtype=items[field].dtype))


def test_an_operator_says_what_it_combines():
    bare = gw.Capabilities()
    for op in (gw.ArgMax, gw.Moments, gw.MinMax, gw.First):
        with pytest.raises(gw.DatatypeError, match=rf"'{op.name}' combines structs such as gw\.struct"):
            gw.Reduce(None, "f32", op, capabilities=bare)
        with pytest.raises(gw.DatatypeError, match="combines structs such as"):
            gw.Reduce(None, gw.Struct("Wrong", a="f32", b="f32", c="f32"), op, capabilities=bare)


def test_copies_of_operators_are_these():
    fields = gw.Reduce(None, gw.Struct("Pair", a="u32", b="f32"), "min", capabilities=gw.Capabilities()).op
    for op in (gw.And, gw.Or, gw.Xor, gw.ArgMin, gw.ArgMax, gw.MinMax, gw.Moments, gw.First, gw.Last, fields):
        assert pickle.loads(pickle.dumps(op)) is op
        assert copy.deepcopy(op) is op


# ---- functions


def _arg_min_max(x):
    return x.argmin(), x.argmax(), x.ravel()[x.argmin()], x.ravel()[x.argmax()]


@pytest.mark.parametrize("dtype", quick_first([np.float32], [np.int32, np.float16, np.uint8]))
def test_both_ends_with_their_indices_at_every_length(device, dtype):
    """Ties across tiles and blocks, NaN at any place, and counted items: each side goes its own way."""
    rng = np.random.default_rng(21)
    for n in (1, 5, 4095, 4097, 70_001):
        items = rng.integers(0, 50, n).astype(dtype)
        if n > 9999:  # on lavapipe an invocation has both, and the largest last
            items[0], items[2048::5000] = 0, 60
        if np.dtype(dtype).kind == "f":
            items[rng.random(n) < 0.1] *= dtype(-0.0)
            with_nan = items.copy()
            with_nan[n // 2 :] = np.nan
        for each in [items, with_nan] if np.dtype(dtype).kind == "f" else [items]:
            x = gw.asarray(each, device)
            for given_items in (each, x):
                found = [_number(one) for one in gw.argminmax(given_items, device=device)]
                np.testing.assert_array_equal(found, _arg_min_max(each))
            counted = gw.argminmax(x.counted_by(gw.full(1, n // 2 + 1, "u32", device)))
            half = each[: n // 2 + 1]
            assert [_number(one) for one in counted[:2]] == [half.argmin(), half.argmax()]
    assert found[2].dtype == found[3].dtype


def test_results_of_an_array_stay_on_the_gpu(device, monkeypatch):
    items = np.random.default_rng(13).normal(3, 2, 1001).astype(np.float32)
    x = gw.asarray(items, device)
    with monkeypatch.context() as patch:
        patch.setattr(gw.Array, "to_numpy", lambda *_: pytest.fail("something is read back"))
        z = gw.asarray((x - gw.mean(x)) / gw.std(x))
        found = [gw.argmax(x), gw.any(x > 5), gw.find(x > 5), gw.count_nonzero(x > 5), *gw.minmax(x)]
    np.testing.assert_allclose(z.to_numpy(), (items - items.mean()) / items.std(), atol=1e-5)
    assert [one.shape for one in found] == [()] * 6
    assert [one.dtype.name for one in found] == ["uint32", "bool", "uint32", "uint32", "float32", "float32"]
    assert found[2].to_numpy() == np.flatnonzero(items > 5)[0]
    assert _number(gw.argmax(abs(x - 3.0))) == np.argmax(abs(items - np.float32(3)))


def test_any_array_of_one_item_takes_a_truth_of_all(device):
    x = gw.asarray(np.int32([[1, 2], [3, 0]]), device)
    for function, wanted in ((gw.all, False), (gw.any, True)):
        for shape in ((), (1,), (1, 1)):
            for options in ({}, {"keepdims": True}, {"axis": (0, 1)}, {"axis": (0, 1), "keepdims": True}):
                out = gw.asarray(np.full(shape, not wanted), device)
                assert function(x, out=out, **options) is out
                assert out.item() == wanted


def test_counted_arrays(device):
    items = np.random.default_rng(14).normal(0, 1, 3000).astype(np.float32)
    x = gw.asarray(items, device)
    for least in (0.5, 9.0):
        chosen, kept = gw.compress(x > least, x), items[items > least]
        assert chosen.count is not None
        assert _number(gw.count_nonzero(chosen)) == kept.size
        assert _number(gw.any(chosen)) == kept.any()
        with np.errstate(all="ignore"):
            wanted = [kept.mean() if kept.size else np.nan, kept.var() if kept.size else np.nan]
        np.testing.assert_allclose([_number(gw.mean(chosen)), _number(gw.var(chosen))], wanted, rtol=1e-5)
    for function in (gw.mean, gw.var, gw.any):  # the one axis is all items, of which some count
        along, whole = function(chosen := gw.compress(x > 0.5, x), axis=0), function(chosen)
        assert along.shape == ()
        np.testing.assert_array_equal(_number(along), _number(whole), err_msg=function.__name__)
        assert function(chosen, axis=-1, keepdims=True).shape == (1,)
    wide = gw.asarray(np.int64([0, 5, 0, 7, 9]), device).counted_by(gw.full(1, 4, "u32", device))
    assert _number(gw.count_nonzero(wide)) == 2
    assert _moments(device).execute(x=gw.compress(x > 9.0, x)).output.to_numpy().tolist() == [(0, 0, 0)]
    assert _number(gw.argmin(gw.compress(x > 0.5, x))) == np.argmin(items[items > 0.5])


def test_nothing(device):
    for given_items in (np.empty(0, np.float32), gw.empty(0, "f32", device)):
        for function in (gw.argmax, gw.argmin, gw.argminmax, gw.minmax):
            with pytest.raises(gw.EmptyReductionError, match="0 items"):
                function(given_items)
        assert not _number(gw.any(given_items))
        assert _number(gw.all(given_items))
        assert _number(gw.find(given_items)) == 0
        for function in (gw.mean, gw.var):
            assert np.isnan(_number(function(given_items)))


def test_nan_and_infinity_propagate(device):
    for items in ([1, np.nan, 2], [np.nan], [np.inf, 1, 2], [np.inf, np.inf], [1, -np.inf], [np.inf, -np.inf]):
        items = np.float32([*items, *[3] * 300])
        with np.errstate(all="ignore"):
            wanted = items.mean(), items.var(), items.std()
        found = [_number(function(items, device=device)) for function in (gw.mean, gw.var, gw.std)]
        np.testing.assert_array_equal(found, wanted)
    for rows in (
        [[np.nan], [np.inf], [2]],
        [[1, np.inf], [-np.inf, np.inf], [2, 4]],
    ):  # of one item nothing is combined
        with np.errstate(all="ignore"):
            wanted = np.var(np.float32(rows), axis=1)
        np.testing.assert_array_equal(gw.var(np.float32(rows), axis=1, device=device), wanted)


def test_floats_that_are_not_zero_by_their_bits(device):
    smallest = np.uint32([1]).view(np.float32)[0]  # devices may flush it to 0
    for value, expected in ((-0.0, False), (0.0, False), (np.nan, True), (smallest, True), (-smallest, True)):
        items = gw.asarray(np.full(3, value, np.float32), device)
        assert _number(gw.any(items)) == _number(gw.all(items)) == expected
        assert _number(gw.count_nonzero(items)) == 3 * expected
        assert _number(gw.find(items)) == (0 if expected else 3)
        groups = gw.group_by(items, some=(items, "any"), every=(items, "all"))
        assert groups.some.tolist() == groups.every.tolist() == [expected]


def test_fewer_items_than_the_correction(device):
    with np.errstate(all="ignore"):
        assert np.isnan(gw.var(np.float32([2]), correction=1, device=device))
        assert gw.var(np.float32([2, 4]), correction=5, device=device) == np.inf


@pytest.mark.parametrize("on_gpu", quick_first([True], [False]))
def test_axes(device, on_gpu):
    items = np.random.default_rng(15).integers(-1, 2, (3, 5, 4)).astype(np.float32)
    items[0, 0] = 0
    given_items = gw.asarray(items, device) if on_gpu else items
    for axis, keepdims in ((0, False), (-1, True), ((0, 1), False)):
        for ours, numpys in ((gw.all, np.all), (gw.count_nonzero, np.count_nonzero)):
            found = _number(ours(given_items, axis=axis, keepdims=keepdims))
            np.testing.assert_array_equal(found, numpys(items, axis=axis, keepdims=keepdims))
        found = _number(gw.mean(given_items, axis=axis, keepdims=keepdims))
        np.testing.assert_allclose(found, items.mean(axis=axis, keepdims=keepdims), rtol=1e-6, atol=1e-7)
    for ours, numpys in ((gw.argmax, np.argmax), (gw.any, np.any)):
        found = _number(ours(given_items, keepdims=True))
        assert found.shape == (1, 1, 1)
        np.testing.assert_allclose(found, numpys(items, keepdims=True), rtol=1e-6)


def test_an_axis_of_no_items(device):
    nothing = np.zeros((3, 0, 4), np.float32)
    with pytest.raises(gw.EmptyReductionError, match="argmax over 0 items"):
        gw.argmax(nothing, axis=1, device=device)
    assert gw.argmax(nothing, axis=0, device=device).shape == (0, 4)
    with np.errstate(all="ignore"):
        spread = gw.var(nothing, axis=1, device=device)
        assert spread.shape == (3, 4)
        assert np.isnan(spread).all()
        few = gw.std(np.float32([[2, 4]]), axis=0, correction=1, device=device)
        assert np.isnan(few).all(), "fewer items than the correction"


def test_an_axis_needs_no_new_kernel_for_another_shape(device):
    """What follows the reduction takes the sizes as parameters."""
    gw.argmax(gw.zeros((64, 300), "i32", device), axis=1)
    compiled = inside.compiled(device)
    gw.argmax(gw.zeros((60, 310), "i32", device), axis=1)
    assert inside.compiled(device) == compiled


def test_what_is_refused(device):
    x = gw.asarray(np.float32([1, 2]), device)
    for function in (gw.any, gw.mean, gw.argmax, gw.var):
        with pytest.raises(gw.ArgumentError, match="only an array has axes"):
            function(x + 1, axis=0)
    with pytest.raises(gw.ArgumentError, match="one number; give one of them"):
        gw.var(x, correction=1, ddof=1)
    with pytest.raises(gw.ArgumentError, match="must be a number"):
        gw.std(x, correction="1")
    with pytest.raises(gw.DatatypeError, match=r"gw\.argmax\(\): x: datatype 'complex64'"):
        gw.argmax(np.complex64([1, 2]), device=device)
    with pytest.raises(gw.ArgumentError, match="give its chunks one by one"):
        gw.argmax(gw.ChunkedArray([x, x]))
    with pytest.raises(gw.ArgumentError, match="axis=1 is out of bounds for an array of 1 dim"):
        gw.argmin(x, axis=1)
    with pytest.raises(gw.ArgumentError, match="not neighbours"):
        gw.std(gw.zeros((2, 3, 4), "f32", device), axis=(0, 2))
    with pytest.raises(gw.ArgumentError, match="no Arrays"):
        gw.any(gw.f32("x") > 0)
