"""NthElement, nth_element, and quantiles by selection, against numpy's sort."""

import dataclasses

import numpy as np
import pytest

import gridwise_py as gw
from helpers.sorting import keys_of
from helpers.strategies import make_primitive, quick_first

TILE = 256
SMALL = {"workgroup_size": 64, "vecs": 1, "max_blocks": 8}
DATATYPES = tuple(gw.NthElement.datatypes)


def expected(x, places):
    """numpy's, with +0 for both zeros."""
    found = np.sort(x)[places]
    return np.where(found == 0, x.dtype.type(0), found)


def check(primitive, x, places, **more):
    given = {"input": gw.asarray(x, primitive.device), "places": gw.asarray(np.uint32(places), primitive.device)}
    run = primitive.execute(**given, trials=3, **more)
    got, wanted = run.output.to_numpy(), expected(x, places)
    np.testing.assert_array_equal(got, wanted, err_msg=f"n={x.size}, places {places}")
    if x.dtype.kind == "f":
        assert not np.signbit(got[got == 0]).any()
    return run


def distributions(dtype, n):
    """Few different items, one item, NaN, infinities and both zeros; what differs in the lowest bits alone."""
    rng = np.random.default_rng(n)
    yield "random", keys_of(dtype, n)
    yield "equal", np.full(n, 1, gw.STORAGE_DATATYPES[dtype].dtype)
    yield "two", rng.integers(0, 2, n).astype(gw.STORAGE_DATATYPES[dtype].dtype)
    if dtype[0] == "f":
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1], gw.STORAGE_DATATYPES[dtype].dtype)
        yield "special", rng.choice(special, n)
    if dtype in ("u32", "u64"):
        yield "close", (7 + rng.integers(0, 200, n)).astype(gw.STORAGE_DATATYPES[dtype].dtype)


@pytest.mark.parametrize("datatype", quick_first(["f32", "i64", "f16", "bool"], DATATYPES))
def test_one_place_and_several(device, datatype):
    one, some = (make_primitive(gw.NthElement, device, datatype, count=count, **SMALL) for count in (1, 16))
    rng = np.random.default_rng(0)
    for n in (1, 2, TILE - 1, TILE, TILE + 1, 9 * TILE + 5, 50_001):
        for _, x in distributions(datatype, n):
            check(one, x, [n // 2])
            check(some, x, np.sort(rng.integers(0, n, 16)) if n % 2 else rng.integers(0, n, 16))
            check(some, x, [0] * 8 + [n - 1] * 8)


def test_places_behind_the_end_and_no_items(device):
    nth = gw.NthElement(device, "f32", 2)
    given = {"places": gw.asarray(np.uint32([1, 99]), device)}
    for x, wanted in ((np.float32([3, np.nan, 1]), [3, np.nan]), (np.float32([]), [0, 0])):
        for count in (None, 3):  # None of the items, or all that there are, count
            items = gw.asarray(np.concatenate([x, np.float32([9, 9, 9, 9])]), device)[: x.size + (count or 0)]
            more = {} if count is None else {"n": gw.full(1, x.size, "u32", device)}
            found = nth.execute(input=items, **given, **more).output.to_numpy()
            np.testing.assert_array_equal(found, wanted)


def test_candidates_are_stored_or_not(device):
    """A third of the items have the first digit, or more than that; the steps after it read either."""
    nth = make_primitive(gw.NthElement, device, "u32", count=2, **SMALL)
    n = 30_000
    low = np.random.default_rng(1).integers(0, 1 << 21, n, dtype=np.uint32)
    for share in (n // 3 - 1, n // 3, n // 3 + 1, n):
        x = low.copy()
        x[share:] |= np.uint32(1 << 31)
        np.random.default_rng(2).shuffle(x)
        check(nth, x, [0, share // 2])


def test_counts_that_are_not_seen_are_counted_again(device):
    """The last workgroup to finish trusts no counts but those of all items."""
    nth = make_primitive(gw.NthElement, device, "u32", count=1, **SMALL)
    x = keys_of("u32", 20_000)
    given = {"input": gw.asarray(x, device), "places": gw.asarray(np.uint32([777]), device)}
    bound = nth.bind(**given)
    assert bound.execute().output.to_numpy() == np.sort(x)[777]
    counts = next(buffer for name, buffer in bound.bound_plan.own_buffers.items() if name == "counts")
    words = gw.Array(counts, "u32")
    words[16:].copy_from(words[16:].to_numpy() + np.arange(words.size - 16, dtype=np.uint32))
    for _ in range(2):
        assert bound.execute().output.to_numpy() == np.sort(x)[777]


def test_views_chunks_segments_and_expressions(device):
    x = np.random.default_rng(3).normal(0, 1, 40_000).astype(np.float32)
    array = gw.asarray(x, device)
    wanted = np.sort(x[3:])[[5, 20_000]]
    assert gw.nth_element(array[3:], [5, 20_000]).to_numpy().tolist() == wanted.tolist()
    chunks = gw.ChunkedArray([array[3:1000], array[1000:]])
    np.testing.assert_array_equal(gw.nth_element(chunks, [5, 20_000]).to_numpy(), wanted)
    np.testing.assert_array_equal(gw.nth_element(array[3:] * 2, [5, -1]).to_numpy(), np.sort(x[3:] * 2)[[5, -1]])
    own = gw.capabilities(device)
    narrow = {"max-storage-buffer-binding-size": 1 << 16, "min-storage-buffer-offset-alignment": 256}
    capabilities = dataclasses.replace(own, limits={**own.limits, **narrow})
    check(make_primitive(gw.NthElement, device, "f32", count=1, capabilities=capabilities, **SMALL), x, [20_000])


def test_the_function(device):
    x = np.random.default_rng(4).integers(-1000, 1000, (60, 50))
    flat = np.sort(x, axis=None)
    for places in (0, -1, [7], [[0, 7], [-1, 7]], np.arange(40) * 3, []):
        wanted = flat[np.asarray(places, np.intp)]
        for given in (x, gw.asarray(x, device)):
            found = gw.nth_element(given, places, device=device)
            found = found.to_numpy() if isinstance(found, gw.Array) else found
            np.testing.assert_array_equal(found, wanted)
            assert (found.dtype, np.shape(found)) == (x.dtype, wanted.shape)
    for places in (3000, -3001, [0, 3000]):
        with pytest.raises(gw.BoundsError, match="n = 3000"):
            gw.nth_element(x, places, device=device)
    with pytest.raises(gw.DatatypeError, match="integer"):
        gw.nth_element(x, 0.5, device=device)
    counted = gw.asarray(np.int32([5, 9, 1, 0]), device).counted_by(gw.full(1, 3, "u32", device))
    assert gw.nth_element(counted, 0).item() == 1
    with pytest.raises(gw.BoundsError, match="from 0"):
        gw.nth_element(counted, -1)


@pytest.mark.parametrize("dtype", quick_first([np.float32], [np.int64, np.uint8]))
def test_quantiles_of_many_items_are_numpys(device, dtype):
    """By selection where few are asked, by a sort where these are many; NaN is found in either."""
    x = np.random.default_rng(5).normal(0, 40, 20_001).astype(dtype)
    for n in (20_000, 20_001):
        items = x[:n]
        assert gw.median(items, device=device) == np.median(items)
        for method in ("linear", "lower", "higher", "nearest", "midpoint"):
            for q in ([0.37], [0, 0.25, 0.5, 1], np.linspace(0, 1, 60)):
                found = gw.quantile(items, q, method=method, device=device)
                np.testing.assert_array_equal(found, np.quantile(items, q, method=method))
    if dtype == np.float32:
        on_gpu = gw.asarray(x, device)
        np.testing.assert_allclose(gw.percentile(on_gpu, [5, 50]).to_numpy(), np.percentile(x, [5, 50]), rtol=1e-6)
        x[77] = np.nan
        assert np.isnan(gw.median(x, device=device))
        assert np.isnan(gw.median(gw.asarray(x, device)).item())
        np.testing.assert_array_equal(gw.nanpercentile(x, [5, 50], device=device), np.nanpercentile(x, [5, 50]))
