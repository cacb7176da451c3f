"""FindIf, find and find_if against numpy."""

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import make_primitive

TILE = 256
SMALL = {"workgroup_size": 64, "vecs": 1}


def first(marks):
    return int(marks.argmax()) if marks.any() else marks.size


@pytest.mark.parametrize("datatype", ["u8", "f32", "i64"])
def test_the_first_of_many(device, datatype):
    """At both ends of tiles; what lies behind changes nothing; −0 is 0 and NaN is not."""
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    find = make_primitive(gw.FindIf, device, datatype, **SMALL)
    for n in (1, TILE - 1, TILE, TILE + 1, 20 * TILE + 3):
        for at in {0, 1, TILE - 1, TILE, n // 2, n - 1, n} & set(range(n + 1)):
            x = np.zeros(n, dtype)
            if dtype.kind == "f":
                x[:at] = -0.0
            x[at : at + 1] = np.nan if dtype.kind == "f" else 1
            x[at + 1 :: 3] = 1
            found = find.execute(input=gw.asarray(x, device), trials=2).output.to_numpy()
            assert found == [first(x != 0)], (n, at)


def test_functions(device):
    x = np.random.default_rng(1).normal(0, 1, (50, 101)).astype(np.float32)
    on_gpu = gw.asarray(x, device)
    for least in (0.0, 2.5, 9.0):
        wanted = first(x.ravel() > least)
        by_leaf = gw.f32("y") > least
        for predicate in (lambda y, least=least: y > least, by_leaf):
            assert gw.find_if(x, predicate, device=device) == wanted
            found = gw.find_if(on_gpu, predicate)
            assert (found.shape, found.dtype, found.item()) == ((), np.uint32, wanted)
        flat = on_gpu.ravel()
        chunks = gw.ChunkedArray([flat[:1200], flat[1200:]])
        for given in (gw.find(on_gpu > least), gw.find_if(flat * 2, lambda y, least=least: y > 2 * least)):
            assert given.item() == wanted
        assert gw.find_if(chunks, by_leaf).item() == wanted
    other = gw.asarray(np.arange(x.size, dtype=np.float32), device)
    assert gw.find_if(x, lambda y: other > 7.0 + 0.0 * y, device=device).item() == 8
    assert gw.find_if([3, 1, 4], lambda y: y > 3, device=device) == 2
    assert gw.find_if(2**40 * np.arange(3), lambda y: y > 2**40, device=device) == 2
    counted = gw.asarray(np.float32([0, 0, 0, 5]), device).counted_by(gw.full(1, 3, "u32", device))
    assert gw.find(counted).item() == gw.find_if(counted, lambda y: y > 1).item() == 3
    assert gw.find(np.zeros(0, bool), device=device) == gw.find_if([], lambda y: y > 1, device=device) == 0


@pytest.mark.parametrize(
    ("x", "predicate", "error", "words"),
    [
        (np.complex64([3]), lambda x: x > 1, gw.DatatypeError, "x.real"),
        (np.float32([1]), gw.u32("y") > 1, gw.DatatypeError, "gw.f32"),
        (np.float32([1]), 3, gw.ArgumentError, "must be a function"),
        (np.float32([1]), lambda x: True, gw.ArgumentError, "depend"),
        (np.float32([1]), gw.f32("a") > gw.f32("b"), gw.ArgumentError, "a, b"),
    ],
)
def test_refused(device, x, predicate, error, words):
    with pytest.raises(error, match=words):
        gw.find_if(x, predicate, device=device)
