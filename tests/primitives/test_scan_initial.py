"""Scans that start from a value: every strategy, from the host, on the GPU, windows, streams, one-shot calls."""

import dataclasses
import re

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import SMALL, assert_same, exact_items, make_primitive, operator, plan_from, quick_first

TILE = 256
EDGES = (0, 1, 2, TILE - 1, TILE, TILE + 1, 20 * TILE + 3)
HOW = ("reduce_then_scan", "lookback-u32x2", "lookback-u64")


def _scan(device, datatype="u32", op="add", kind="inclusive", how="reduce_then_scan", **options):
    strategy, _, state = how.partition("-")
    chosen = {"strategy": strategy, **({"state": state} if state else {}), **options}
    return make_primitive(gw.Scan, device, datatype, op, kind, initial=True, **{**SMALL, **chosen})


def _reference(op, x, first, kind):
    """Item by item, from the value."""
    running, found = first, []
    for item in x:
        found.append(running)
        with np.errstate(over="ignore"):
            running = op(np.array([running], x.dtype), np.array([item], x.dtype))[0]
    return np.array(found if kind == "exclusive" else [*found[1:], running][: x.size], x.dtype)


def _first(datatype, value=3):
    return np.array([value], dtype=gw.STORAGE_DATATYPES[datatype].dtype)


def _run(scan, device, x, first, **more):
    return scan.execute(input=gw.asarray(x, device), initial=gw.asarray(first, device), **more).output.to_numpy()


@pytest.mark.parametrize(
    ("datatype", "op", "how", "kind"),
    quick_first(
        [("u32", "affine", "lookback-u32x2", "exclusive"), ("u8", "add", "reduce_then_scan", "exclusive")],
        [("f32", "min", "lookback-u64", "inclusive"), ("i64", "max", "lookback-u32x2", "inclusive")],
    ),
)  # fmt: skip
def test_is_what_one_item_more_in_front_gives(device, require, datatype, op, how, kind):
    require(*(["shader-int64", "shader-int64-atomic-all-ops"] if how.endswith("u64") else []))
    chosen = operator(op, datatype) if datatype in gw.DATATYPES else gw.BinOp.find(op)
    scan = _scan(device, datatype, chosen, kind, how)
    rng = np.random.default_rng(7)
    for n in EDGES:
        x = (
            exact_items(op, datatype, n)
            if datatype in gw.DATATYPES
            else rng.integers(0, 99, n).astype(scan.datatype.dtype)
        )
        first = _first(datatype, 5)
        assert_same(_run(scan, device, x, first), _reference(chosen.numpy, x, first[0], kind), f"n={n}")
        assert_same(scan.reference(x, first), _reference(chosen.numpy, x, first[0], kind), f"n={n}, the reference")


def test_nan_and_zeros_go_first(device):
    x = np.array([2, -0.0, 0.0, 1], np.float32)
    scan = _scan(device, "f32", "min")
    for first in (np.nan, -0.0, np.inf, -np.inf):
        got = _run(scan, device, x, _first("f32", first))
        want = np.minimum.accumulate(np.concatenate([_first("f32", first), x]))[1:]
        np.testing.assert_array_equal(got, want)
    assert np.signbit(_run(scan, device, np.zeros(3, np.float32), _first("f32", -0.0))).all()


def test_a_value_from_anywhere_in_a_buffer_which_may_be_the_inputs(device):
    x = np.arange(1, 300, dtype=np.uint32)
    whole = gw.asarray(x, device)
    for at in (0, 1, 5, 298):
        got = _scan(device, how=HOW[1]).execute(input=whole[3:290], initial=whole[at : at + 1]).output.to_numpy()
        assert_same(got, (x[at] + np.cumsum(x[3:290])).astype(np.uint32), f"{at}")


def test_the_bits_of_a_fixed_order_do_not_depend_on_where_the_value_lies(device):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(20_000) * np.exp2(rng.integers(-9, 9, 20_000))).astype(np.float32)
    for options, kind in (({"deterministic": True}, "exclusive"), ({"compensated": True}, "inclusive")):
        scan = gw.Scan(device, "f32", "add", kind, initial=True, **options)
        first = np.array([1e5], np.float32)
        padded = gw.asarray(np.concatenate([np.zeros(9, np.float32), first]), device)
        one = _run(scan, device, x, first)
        again = scan.execute(input=gw.asarray(x, device), initial=padded[9:]).output.to_numpy()
        assert one.tobytes() == again.tobytes()
        exact = np.cumsum(np.concatenate([first, x]).astype(np.float64))
        exact = exact[1:] if kind == "inclusive" else exact[:-1]
        compensated = 2.0**-23 * np.abs(exact)
        tolerance = compensated if "compensated" in options else 2.0**-24 * 90 * np.cumsum(np.abs(x)) + 1
        assert (np.abs(one - exact) <= tolerance).all()


def test_in_place_and_of_as_many_items_as_the_gpu_counts(device):
    x = np.arange(1000, dtype=np.uint32)
    array = gw.asarray(x, device)
    scan = make_primitive(gw.Scan, device, "u32", "add", "exclusive", initial=True, **SMALL)
    scan.execute(input=array, initial=gw.asarray(_first("u32", 9), device), output=array)
    assert_same(array.to_numpy(), (9 + np.cumsum(x) - x).astype(np.uint32))
    scans = [_scan(device, how=how) for how in HOW[:2]]
    for scan in (*scans, gw.Scan(device, "f32", initial=True, compensated=True)):
        items = x.astype(scan.datatype.dtype)
        for n in (0, 1, 600, 1000):
            got = _run(scan, device, items, items[9:10], n=n)
            np.testing.assert_array_equal(got, (9 + np.cumsum(items))[:n])


def test_a_stalled_tile_finds_the_value(device):
    scan = _scan(device, how="lookback-u32x2", stall_every=1)
    x = np.arange(10 * TILE, dtype=np.uint32)
    assert_same(_run(scan, device, x, _first("u32", 77)), (77 + np.cumsum(x)).astype(np.uint32))


@pytest.mark.parametrize("how", HOW[:2])
def test_in_windows_only_the_first_starts_from_it(device, how):
    found = gw.capabilities(device)
    limits = {"max-storage-buffer-binding-size": 4 * 4 * TILE + 272, "min-storage-buffer-offset-alignment": 256}
    scan = _scan(device, how=how, capabilities=dataclasses.replace(found, limits={**found.limits, **limits}))
    x = np.arange(11 * TILE + 5, dtype=np.uint32)
    run = scan.execute(input=gw.asarray(x, device), initial=gw.asarray(_first("u32", 50), device))
    assert run.plan.parameters["windows"] > 1
    assert_same(run.output.to_numpy(), (50 + np.cumsum(x)).astype(np.uint32))


def test_items_of_structs_and_expressions(device):
    place = gw.Struct("Place", x="f32", at="u32")
    x = np.zeros(700, place.dtype)
    x["x"], x["at"] = np.random.default_rng(5).random(700), np.arange(700)
    first = np.array([(0.9, 9999)], place.dtype)
    got = _run(_scan(device, place, gw.ArgMax), device, x, first)
    assert_same(got["x"], np.maximum.accumulate(np.concatenate([first["x"], x["x"]]))[1:])
    assert got["at"][0] == 9999
    scan = make_primitive(gw.Scan, device, gw.f32("y") * 2 + 1, "add", initial=True, **SMALL)
    y = np.arange(300, dtype=np.float32)
    result = scan.execute(y=gw.asarray(y, device), initial=gw.asarray(_first("f32", 4), device)).output.to_numpy()
    assert_same(result, 4 + np.cumsum(2 * y + 1))


def test_one_shot_from_the_host_and_on_the_gpu(device):
    x = np.arange(1, 900, dtype=np.int32)
    first = gw.asarray(np.array([-4], np.int32), device)
    want = (np.cumsum(x) - 4).astype(np.int32)
    for given in (-4, np.int32(-4), np.array(-4), np.array([-4]), first):
        assert_same(gw.scan(x, initial=given, device=device), want)
        assert_same(gw.scan(gw.asarray(x, device), initial=given).to_numpy(), want)
    assert_same(gw.scan(gw.asarray(x, device) + 1, "max", initial=30).to_numpy(), np.maximum(30, x + 1))
    assert_same(
        gw.scan(x, kind="exclusive", initial=7, dtype=np.int64, device=device), 7 + np.cumsum(x, dtype=np.int64) - x
    )
    out = np.empty_like(x)
    assert gw.scan(x, initial=-4, out=out, device=device) is out
    assert_same(out, want)
    assert gw.scan(x[:0], initial=3, device=device).size == 0
    bools = np.array([False, True, False])
    assert gw.scan(bools, "max", initial=True, device=device).tolist() == [True, True, True]


def test_large_arrays_and_streams(device):
    x = np.random.default_rng(2).integers(0, 1000, 1_100_000).astype(np.uint32)
    for kind in ("inclusive", "exclusive"):
        want = (8 + np.cumsum(x, dtype=np.uint32) - (x if kind == "exclusive" else 0)).astype(np.uint32)
        assert_same(gw.scan(x, kind=kind, initial=8, device=device), want)
        scan = gw.Scan(device, "u32", kind=kind, initial=True)
        for first in (np.array([8], np.uint32), gw.asarray(np.array([8], np.uint32), device)):
            chunks = [x[:5], x[5:5], x[5:3000]]
            assert_same(np.concatenate(list(gw.stream(scan, chunks, initial=first))), want[:3000])


def test_what_does_not_fit_is_refused_with_the_remedy(device):
    x = gw.asarray(np.arange(4, dtype=np.uint32), device)
    with pytest.raises(gw.ArgumentError, match=re.escape("gw.scan(x, initial=value)")):
        gw.Scan(device, initial=3)
    with pytest.raises(gw.ArgumentError, match="needs initial="):
        gw.Scan(device, initial=True).execute(input=x)
    with pytest.raises(gw.ArgumentError, match="no argument 'initial'"):
        gw.Scan(device).execute(input=x, initial=x[:1])
    with pytest.raises(gw.LengthError, match="initial has 2 items"):
        gw.Scan(device, initial=True).execute(input=x, initial=x[:2])
    with pytest.raises(gw.OverlapError):
        gw.Scan(device, initial=True).execute(input=x[1:2], initial=x[:1], output=x[:1])
    with pytest.raises(gw.DatatypeError, match=re.escape("initial.astype('u32')")):
        gw.scan(x, initial=gw.asarray(np.array([1.5], np.float32), device))
    with pytest.raises(gw.LengthError, match="takes 1"):
        gw.scan(x, initial=x)
    with pytest.raises(gw.LengthError, match="one value"):
        gw.scan(x, initial=np.arange(2))
    with pytest.raises(gw.DatatypeError, match="not from 0 to"):
        gw.scan(x, initial=-1)
    with pytest.raises(gw.ArgumentError, match=re.escape("gw.scan has it")):
        gw.cumsum(x, initial=1)
    with pytest.raises(gw.ArgumentError, match="give the stream initial="):
        gw.stream(gw.Scan(device, initial=True), [])
    with pytest.raises(gw.ArgumentError, match="initial=True"):
        gw.stream(gw.Scan(device), [], initial=np.array([1], np.uint32))
    with pytest.raises(gw.ArgumentError, match="stream of a Scan"):
        gw.stream(gw.Reduce(device), [], initial=np.array([1], np.uint32))


def test_without_a_value_plans_have_no_trace_of_it():
    capabilities = gw.Capabilities()
    for options in ({"strategy": "lookback"}, {"strategy": "reduce_then_scan"}, {"dtype": "f32", "compensated": True}):
        lengths = {"input": 100_000, "output": 100_000}
        plain = plan_from(gw.Scan, capabilities=capabilities, lengths=lengths, **options)
        more = plan_from(gw.Scan, capabilities=capabilities, lengths=lengths | {"initial": 1}, initial=True, **options)
        assert len(more.kernels) == len(plain.kernels) + 1
        assert not any("initial" in kernel.label for kernel in plain.kernels)
        assert not any("has_initial" in shader.text for shader in more.shaders.values())
        assert more.work.write_bytes == plain.work.write_bytes
