"""gw.stream: chunks of any sizes give what one call on all of them gives, and the host works while the GPU does."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from helpers import inside
from helpers.strategies import AFFINE
from helpers.traces import load

stream_module = importlib.import_module("gridwise_py.streaming")
RNG = np.random.default_rng(8)

LENGTHS = (5, 0, 1, 20_003, 7, 50_001, 3)


def _chunks(lengths=LENGTHS, dtype=np.uint32):
    if np.dtype(dtype).kind == "f":
        return [RNG.integers(-50, 50, n).astype(dtype) for n in lengths]
    # With bit 16: the product of the affine maps' odd factors does not become 0.
    return [RNG.integers(0, 1 << 32, n, dtype=np.uint32) | np.uint32(1 << 16) for n in lengths]


@pytest.mark.parametrize("overlap", [True, False])
def test_reduce(device, overlap):
    chunks = _chunks()
    for op in (gw.Min, AFFINE):
        reduce = gw.Reduce(device, "u32", op)
        result = gw.stream(reduce, iter(chunks), overlap=overlap)
        assert result == reduce.reference(np.concatenate(chunks))[0]
        assert result.dtype == np.uint32


@pytest.mark.parametrize("strategy", ["lookback", "reduce_then_scan"])
def test_scan(device, strategy):
    chunks = _chunks()
    for kind, overlap in (
        (("inclusive", True), ("exclusive", False)) if strategy == "lookback" else (("exclusive", True),)
    ):
        scan = gw.Scan(device, "u32", AFFINE, kind, strategy=strategy)
        parts = list(gw.stream(scan, chunks, overlap=overlap))
        assert [part.size for part in parts] == list(LENGTHS)
        np.testing.assert_array_equal(np.concatenate(parts), scan.reference(np.concatenate(chunks)))


def test_vector_add_and_copy(device):
    a, b = _chunks(dtype=np.float32), _chunks(dtype=np.float32)
    add = gw.VectorAdd(device, "f32")
    for chunks in (zip(a, b, strict=True), [{"b": y, "a": x} for x, y in zip(a, b, strict=True)]):
        parts = list(gw.stream(add, chunks))
        np.testing.assert_array_equal(np.concatenate(parts), np.concatenate(a) + np.concatenate(b))
    np.testing.assert_array_equal(np.concatenate(list(gw.stream(gw.Copy(device, "f32"), a))), np.concatenate(a))


@given(lengths=st.lists(st.integers(0, 2000), max_size=8), kind=st.sampled_from(["inclusive", "exclusive"]))
def test_any_lengths(device, lengths, kind):
    chunks = _chunks(lengths)
    scan = gw.Scan(device, "u32", gw.Add, kind)
    parts = list(gw.stream(scan, chunks))
    whole = np.concatenate([*chunks, np.empty(0, dtype=np.uint32)])
    np.testing.assert_array_equal(np.concatenate([*parts, np.empty(0, dtype=np.uint32)]), scan.reference(whole))
    assert gw.stream(gw.Reduce(device), chunks) == whole.sum(dtype=np.uint32)


def test_more_chunks_than_partial_results(device, monkeypatch):
    monkeypatch.setattr(stream_module, "_PARTIALS", 3)
    chunks = _chunks([10] * 20)
    reduce = gw.Reduce(device, "u32", AFFINE)
    assert gw.stream(reduce, chunks) == reduce.reference(np.concatenate(chunks))[0]


def test_nothing_at_all(device):
    assert gw.stream(gw.Reduce(device), []) == 0
    assert list(gw.stream(gw.Scan(device), [])) == []
    with pytest.raises(gw.EmptyReductionError):
        gw.stream(gw.Reduce(device, "f32", gw.Min), [np.empty(0, dtype=np.float32)])


def test_minus_zero_and_nan(device):
    chunks = [np.array([-0.0, -0.0], np.float32), np.array([-0.0], np.float32), np.array([np.nan, 1], np.float32)]
    for op in (gw.Add, gw.Min):
        scan = gw.Scan(device, "f32", op)
        ours = np.concatenate(list(gw.stream(scan, chunks)))
        whole = scan.execute(input=gw.asarray(np.concatenate(chunks), device)).output.to_numpy()
        np.testing.assert_array_equal(ours, whole)
        np.testing.assert_array_equal(np.signbit(ours[:2]), np.signbit(whole[:2]))
        assert np.isnan(gw.stream(gw.Reduce(device, "f32", op), chunks))


# ---- what does not fit


def test_a_chunk_that_does_not_fit(device):
    good = np.ones(10, dtype=np.uint32)
    for bad, error, message in (
        (good.astype(np.float32), gw.DatatypeError, "float32 of shape"),
        (good.reshape(2, 5), gw.DatatypeError, r"shape \(2, 5\)"),
        (gw.asarray(good, device), gw.DatatypeError, "is Array"),
        (None, gw.DatatypeError, "is NoneType"),
        (np.ma.array(good, mask=good == 1), gw.DatatypeError, "no mask"),
        ((good, good), gw.ArgumentError, "2 arrays, but Scan takes 1"),
        ({"x": good}, gw.ArgumentError, r"\['x'\], but Scan takes \['input'\]"),
    ):
        results = gw.stream(gw.Scan(device), [good, bad])
        with pytest.raises(error, match=message):
            list(results)
    with pytest.raises(gw.LengthError, match="a 10, b 9"):
        list(gw.stream(gw.VectorAdd(device), [(good, good[1:])]))
    text = (
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n"
        "@compute @workgroup_size(1) fn main() { x[0] = 1u; }"
    )
    kernel = gw.Kernel(device, text, {"x": "read_write"}, 1)
    with pytest.raises(gw.ArgumentError, match=r"these can: .*Reduce"):
        gw.stream(kernel, [good])


@pytest.mark.parametrize(
    ("kind", "overlap"), [("a chunk that does not fit", True), ("None", False), ("an error of the source", True)]
)
def test_results_before_an_error_are_handed_out(device, overlap, kind):
    def source():
        for i in range(3):
            yield np.full(10, i, dtype=np.uint32)
        if kind == "an error of the source":
            raise OSError("the disk")
        yield None if kind == "None" else np.ones(10, dtype=np.float32)
        yield np.ones(10, dtype=np.uint32)

    got = []
    results = gw.stream(gw.Copy(device), source(), overlap=overlap)
    with pytest.raises(OSError if kind == "an error of the source" else gw.DatatypeError):
        got.extend(results)
    np.testing.assert_array_equal(got, np.repeat(np.arange(3, dtype=np.uint32), 10).reshape(3, 10))


def test_a_chunk_that_is_too_large(device, monkeypatch):
    monkeypatch.setattr(stream_module, "empty", lambda *a: (_ for _ in ()).throw(gw.LimitError("max-buffer-size")))
    with pytest.raises(gw.LimitError):
        list(gw.stream(gw.Copy(device), [np.ones(10, dtype=np.uint32)]))


def test_the_primitive_stays_as_it_was(device):
    x = gw.asarray(np.ones(7, dtype=np.uint32), device)
    output = gw.empty_like(x)
    scan, reduce = gw.Scan(device), gw.Reduce(device)
    scan.execute(input=x, output=output)
    reduce.execute(input=x)
    results = gw.stream(scan, iter(_chunks([5, 4, 3])))
    next(results)
    assert scan.execute().output is output  # in the middle of the stream
    assert gw.stream(reduce, [np.array([1, 2, 3], dtype=np.uint32)]) == 6
    assert sum(part.size for part in results) == 7
    assert scan.execute().output is output
    assert reduce.execute().output.item() == 7
    np.testing.assert_array_equal(output.to_numpy(), np.arange(1, 8))


def test_results_that_are_not_read_to_the_end(renewed_device):
    """The arrays of the stream go, and the next one is right."""
    scan, chunks = gw.Scan(renewed_device), _chunks()
    list(gw.stream(scan, chunks))  # what the primitive keeps of its calls
    in_use = gw.memory_stats(renewed_device).in_use_bytes
    results = gw.stream(scan, iter(chunks))
    np.testing.assert_array_equal(next(results), np.cumsum(chunks[0], dtype=np.uint32))
    assert gw.memory_stats(renewed_device).in_use_bytes > in_use
    results.close()
    assert gw.memory_stats(renewed_device).in_use_bytes == in_use
    np.testing.assert_array_equal(np.concatenate(list(gw.stream(scan, chunks))), scan.reference(np.concatenate(chunks)))


def test_an_error_that_is_kept_keeps_no_arrays_of_its_stream(renewed_device):
    """Its traceback keeps what the stream knew."""
    copy, chunks = gw.Copy(renewed_device), [np.ones(1000, np.uint32)]
    list(gw.stream(copy, chunks))
    in_use = gw.memory_stats(renewed_device).in_use_bytes
    for overlap in (True, False):
        with pytest.raises(gw.DatatypeError) as kept:
            list(gw.stream(copy, [*chunks, None], overlap=overlap))
        assert kept.traceback
        assert gw.memory_stats(renewed_device).in_use_bytes == in_use


def test_a_reduction_of_an_error_ends_with_it(device):
    def source():
        yield np.ones(10, dtype=np.uint32)
        raise ZeroDivisionError

    for chunks, error in ((source(), ZeroDivisionError), ([None], gw.DatatypeError), ([np.ones(4)], gw.DatatypeError)):
        with pytest.raises(error):
            gw.stream(gw.Reduce(device), chunks)
    assert gw.stream(gw.Reduce(device), [np.ones(3, dtype=np.uint32)]) == 3


# ---- while the GPU works


def test_memory_of_results_is_used_again_when_nobody_has_them(device, monkeypatch):
    monkeypatch.setattr(stream_module, "_WINDOWED_BYTES", 64)
    copy, chunks = gw.Copy(device, "u32"), [RNG.integers(0, 99, 1000, dtype=np.uint32) for _ in range(12)]
    kept = [result[900:] for result in gw.stream(copy, chunks)]  # views keep their results
    for found, chunk in zip(kept, chunks, strict=True):
        np.testing.assert_array_equal(found, chunk[900:])
    del kept, found
    places = {result.__array_interface__["data"][0] for result in gw.stream(copy, chunks)}
    assert len(places) <= 4


@pytest.mark.parametrize("overlap", [True, False])
def test_the_order_of_work(device, monkeypatch, overlap):
    """With overlap the next chunk is taken and copied between a submission and the wait for it."""
    log = []
    submit = device.queue.submit
    wait = stream_module.wait_idle
    monkeypatch.setattr(device.queue, "submit", lambda c: (log.append("submit"), submit(c))[1], raising=False)
    monkeypatch.setattr(stream_module, "wait_idle", lambda d: (log.append("wait"), wait(d))[1])

    def source():
        for i in range(3):
            log.append(f"take {i}")
            yield np.full(1000, i, dtype=np.uint32)

    for i, part in enumerate(gw.stream(gw.Copy(device), source(), overlap=overlap)):
        log.append(f"got {i}")
        assert (part == i).all()
    if overlap:
        expected = ["take 0", "submit", "take 1", "wait", "submit", "got 0", "take 2", "wait", "submit", "got 1"]
        assert log == [*expected, "wait", "got 2"]
    else:
        expected = [[f"take {i}", "submit", "wait", f"got {i}"] for i in range(3)]
        assert log == [word for words in expected for word in words]


def test_the_trace_shows_it(device, require, tmp_path):
    require("timestamp-query", "timestamp-query-inside-encoders")
    chunks = _chunks([200_000] * 4)
    with gw.profile(device) as prof:
        gw.stream(gw.Reduce(device), chunks)
    prof.export_chrome_trace(tmp_path / "t.json")
    _, lanes = load(tmp_path / "t.json")
    host = [e["name"] for e in lanes["host"]]
    assert host.count("copy to staging") == 4
    assert host.count("wait") >= 4
    # Between a submission and its wait, the next chunk is copied.
    order = [name for name in host if name in ("copy to staging", "submit", "wait")]
    assert order[:7] == ["copy to staging", "submit", "copy to staging", "wait", "submit", "copy to staging", "wait"]
    (queue,) = (found for name, found in lanes.items() if name.startswith("GPU queue"))
    assert [e["name"] for e in queue].count("copy to GPU") == 4
    assert not inside.is_observed(device)
