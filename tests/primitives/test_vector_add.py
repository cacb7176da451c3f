"""VectorAdd against numpy: what the configurations of test_every_primitive.py do not reach."""

import dataclasses

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import assert_same, exact_items, make_primitive

SMALL = {"workgroup_size": 64, "vecs": 1}


def _run(add, device, a, b, **options):
    return add.execute(a=gw.asarray(a, device), b=gw.asarray(b, device), **options).output.to_numpy()


@pytest.mark.parametrize("windows", [1, 3])
def test_regions_that_take_turns(device, monkeypatch, windows):
    """As with arrays of gigabytes: every block is done, and once, also where the regions do not go into them.

    The grid has up to three dimensions, and more workgroups than blocks.
    """
    monkeypatch.setattr(gw.VectorAdd, "_pages_known_bytes", 0)
    tile = 4 * 16 * 3
    for blocks in (1, 3, 4, 5, 7, 8, 41):
        n = windows * blocks * tile - 5
        few = {"max-storage-buffer-binding-size": 4 * blocks * tile + 512, "max-compute-workgroups-per-dimension": 4}
        capabilities = dataclasses.replace(gw.capabilities(device), limits=gw.capabilities(device).limits | few)
        tuning = gw.ElementwiseTuning(workgroup_size=16, vecs=3)
        add = gw.VectorAdd(device, "u32", tuning=tuning, capabilities=capabilities)
        a, b = (exact_items("add", "u32", n, seed) for seed in (1, 2))
        x = gw.asarray(a, device)
        run = add.execute(a=x, b=gw.asarray(b, device))
        assert (run.plan.parameters["windows"], run.plan.parameters["regions"]) == (windows, 4)
        assert_same(run.output.to_numpy(), a + b)
        add.execute(a=x, b=gw.asarray(b, device), output=x)
        assert_same(x.to_numpy(), a + b)


def test_regions_only_where_pages_are_looked_up_anew():
    limits = {"max-storage-buffer-binding-size": 2**31 - 4, "max-compute-workgroups-per-dimension": 65535,
              "min-storage-buffer-offset-alignment": 16, "max-compute-invocations-per-workgroup": 1024}  # fmt: skip
    capabilities = gw.Capabilities(limits=limits)

    def regions(make, n, same=False):
        names = [argument.name for argument in make.arguments]
        layout = gw.Layout.separate(**dict.fromkeys(names, n))
        if same:
            layout = gw.Layout({name: layout[names[0]] for name in names})
        return make(None, "u32", capabilities=capabilities).plan(layout).parameters["regions"]

    third = (15 << 29) // 12
    assert [regions(gw.VectorAdd, n) for n in (0, 1000, third, third + 1, 1 << 30)] == [1, 1, 1, 4, 4]
    assert [regions(gw.VectorAdd, n, same=True) for n in (third + 1, 1 << 30)] == [1, 1], "in place"
    assert [regions(gw.Copy, n) for n in (third + 1, 1 << 30)] == [1, 4]


def test_special_items(device):
    """On the way of one item and on that of four."""
    largest = np.iinfo(np.int32).max
    for datatype, a, b in (
        ("f32", [np.nan, np.inf, np.inf, -np.inf, 3.4e38, -0.0, -0.0], [1, 1, -np.inf, -3.4e38, 3.4e38, -0.0, 0.0]),
        ("i32", [largest, -largest - 1, largest, -largest - 1], [1, -1, largest, -largest - 1]),
    ):
        add, dtype = make_primitive(gw.VectorAdd, device, datatype, **SMALL), gw.DATATYPES[datatype].dtype
        for x, y in zip(np.array(a, dtype), np.array(b, dtype), strict=True):
            for n in (1, 64):
                with np.errstate(all="ignore"):
                    assert_same(_run(add, device, np.full(n, x), np.full(n, y)), np.full(n, x) + np.full(n, y))


def test_lengths_that_differ_are_refused_with_both(device):
    a, b = gw.empty(4, "u32", device), gw.empty(5, "u32", device)
    with pytest.raises(gw.LengthError, match="a has 4 items, b has 5 items"):
        gw.VectorAdd(device).execute(a=a, b=b)
