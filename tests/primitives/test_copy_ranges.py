"""CopyRanges and copy_ranges against slices of numpy."""

import dataclasses

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import make_primitive, quick_first

#: Ranges of no item, of one, around a tile of 64 · 8 items, and of most of all.
LENGTHS = np.uint32([0, 1, 511, 512, 513, 0, 0, 7_000, 3, 1, 1, 1, 2_048, 0])


def ranges(n, lengths=LENGTHS, seed=0):
    """From anywhere, to places in another order, with gaps between them."""
    begins = np.random.default_rng(seed).integers(0, n - lengths.max(), lengths.size).astype(np.uint32)
    order = np.random.default_rng(seed + 1).permutation(lengths.size)
    places = np.zeros(lengths.size, np.uint32)
    places[order] = np.cumsum(lengths[order] + 3) - lengths[order]
    return begins, places, lengths


def copied(source, destination, begins, places, lengths):
    found = destination.copy()
    for begin, place, length in zip(begins, places, lengths, strict=True):
        found[place : place + length] = source[begin : begin + length]
    return found


def items(dtype, n, seed=2):
    bits = np.random.default_rng(seed).integers(0, 256, n * np.dtype(dtype).itemsize, dtype=np.uint8)
    return (bits % 2).astype(bool)[:n] if dtype == np.bool_ else bits.view(dtype)


@pytest.mark.parametrize("datatype", quick_first(["u32", "u8", "f64"], gw.CopyRanges.datatypes))
def test_ranges_of_any_length_between_views(device, datatype):
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    copy = make_primitive(gw.CopyRanges, device, datatype, workgroup_size=64)
    x, y = items(dtype, 9_000), items(dtype, 13_000, seed=3)
    for lengths in (LENGTHS, LENGTHS[:1], LENGTHS[7:8], np.full(1_500, 5, np.uint32), LENGTHS[:0]):
        begins, places, _ = ranges(8_990, lengths) if lengths.size else (lengths,) * 3
        source, target = gw.asarray(x, device), gw.asarray(y, device)
        given = {"source_offsets": begins, "destination_offsets": places, "lengths": lengths}
        given = {name: gw.asarray(each, device) for name, each in given.items()}
        copy.execute(source=source[3:8_993], output=target[5:12_990], **given, trials=2)
        wanted = y.copy()
        wanted[5:12_990] = copied(x[3:8_993], y[5:12_990], begins, places, lengths)
        assert target.to_numpy().tobytes() == wanted.tobytes()


def test_several_buffers_and_several_bindings(device):
    x, y = items(np.uint32, 9_000), items(np.uint32, 13_000, seed=3)
    begins, places, lengths = ranges(x.size)
    wanted = copied(x, y, begins, places, lengths)
    source, target = (
        gw.ChunkedArray([gw.asarray(part, device) for part in np.split(each, [1_000, 6_000])]) for each in (x, y)
    )
    gw.copy_ranges(source, target, begins, places, lengths)
    np.testing.assert_array_equal(target.to_numpy(), wanted)
    own = gw.capabilities(device)
    narrow = {"max-storage-buffer-binding-size": 1 << 14, "min-storage-buffer-offset-alignment": 256}
    capabilities = dataclasses.replace(own, limits={**own.limits, **narrow})
    copy = make_primitive(gw.CopyRanges, device, "u32", workgroup_size=64, capabilities=capabilities)
    output = gw.asarray(y, device)
    given = {"source_offsets": begins, "destination_offsets": places, "lengths": lengths, "source": x}
    copy.execute(output=output, **{name: gw.asarray(each, device) for name, each in given.items()})
    np.testing.assert_array_equal(output.to_numpy(), wanted)


def test_what_is_out_of_range_is_left_out(device):
    """On the GPU, where nobody knows it; also sums of more than 32 bits, and places that overlap."""
    whole, room = gw.asarray(np.arange(1, 301, dtype=np.uint32), device), gw.zeros(300, "u32", device)
    begins, places, lengths = (
        gw.asarray(np.uint32(each), device)
        for each in ([90, 0xFFFFFFFF, 5, 0, 1000], [0, 20, 0xFFFFFFFE, 95, 30], [20, 3, 4, 9, 2])
    )
    gw.copy_ranges(whole[:100], room[100:200], begins, places, lengths)
    wanted = np.zeros(300, np.uint32)
    wanted[100:110], wanted[195:200] = np.arange(91, 101), np.arange(1, 6)
    np.testing.assert_array_equal(room.to_numpy(), wanted)
    twice = gw.asarray(np.uint32([7, 7]), device)
    gw.copy_ranges(whole, room, gw.asarray(np.uint32([10, 50]), device), twice, twice)
    assert set((room.to_numpy()[7:14] - np.arange(7)).tolist()) <= {11, 51}


@pytest.mark.parametrize("dtype", quick_first([np.float32, np.complex64], [np.int64, np.float16]))
def test_the_function(device, dtype):
    x, y = items(dtype, 8_000).reshape(80, 100), items(dtype, 13_000, seed=3)
    begins, places, lengths = ranges(x.size)
    wanted = copied(x.ravel(), y, begins, places, lengths)
    on_gpu = [gw.asarray(each, device) for each in (begins, places, lengths)]
    host = y.copy()
    assert gw.copy_ranges(x, host, begins.astype(np.int16), places.tolist(), lengths, device=device) is None
    assert host.tobytes() == wanted.tobytes()
    for given in (on_gpu, [begins, on_gpu[1], lengths]):
        target = gw.asarray(y, device)
        gw.copy_ranges(gw.asarray(x, device), target, *given)
        assert target.to_numpy().tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("begins", "places", "lengths", "error", "words"),
    [
        ([0, 95], [0, 20], [5, 6], gw.BoundsError, "range 1 is items 95 to 100 of source, which has 100"),
        ([0], [198], [3], gw.BoundsError, "of destination, which has 200"),
        ([-1], [0], [1], gw.BoundsError, "at least 0"),
        ([0, 0, 9], [10, 50, 12], [3, 2, 1], gw.OverlapError, "ranges 0 and 2 overlap"),
        ([0, 1], [0], [1, 1], gw.LengthError, "2 ranges"),
        ([0.5], [0], [1], gw.DatatypeError, "integers"),
        ([0, 0], [0, 0], [2**31, 2**31], gw.ArgumentError, "fewer than 2"),
    ],
)
def test_refused_before_anything_is_copied(device, begins, places, lengths, error, words):
    x, y = gw.asarray(np.ones(100, np.float32), device), gw.zeros(200, "f32", device)
    with pytest.raises(error, match=words):
        gw.copy_ranges(x, y, begins, places, lengths)
    assert not y.to_numpy().any()


def test_other_arrays_are_refused(device):
    x, host = gw.asarray(np.ones(100, np.float32), device), np.zeros(50, np.float32)
    for source, destination, error, words in (
        (x, gw.zeros(100, "u32", device), gw.DatatypeError, "f32"),
        (x, [0] * 100, gw.DatatypeError, "in place"),
        (x, x[10:60], gw.OverlapError, "overlap"),
        (host, host[10:], gw.OverlapError, "share memory"),
    ):
        with pytest.raises(error, match=words):
            gw.copy_ranges(source, destination, [0], [0], [3], device=device)
    gw.copy_ranges(x[:50], x[50:], [0], [0], [3])  # views of one buffer that share nothing
