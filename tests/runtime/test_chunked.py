"""ChunkedArray: what it holds, and what primitives make of it, against numpy."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from helpers.strategies import (
    SHAPES,
    assert_same,
    exact_items,
    make_primitive,
    operator,
    reduce_reference,
    scan_reference,
)

SMALL = {**SHAPES["middle"], "subgroups": "none"}
LENGTHS = [300, 0, 1, 777, 256]
N = sum(LENGTHS)


def _chunked(device, x, lengths):
    """The items in chunks, each a view that begins somewhere in a buffer of its own."""
    assert sum(lengths) == x.size
    chunks, first = [], 0
    for number, n in enumerate(lengths):
        padded = np.concatenate([np.full(number, 9, x.dtype), x[first : first + n]])
        chunks.append(gw.asarray(padded, device)[number:])
        first += n
    return gw.ChunkedArray(chunks)


# ---- the array ----


def test_it_acts_as_one_array(device):
    x = np.arange(N, dtype=np.int32)
    data = _chunked(device, x, LENGTHS)
    assert (data.size, len(data), data.shape, data.ndim, data.nbytes) == (N, N, (N,), 1, 4 * N)
    assert (data.dtype, data.datatype.name, data.device) == (np.int32, "i32", device)
    assert [chunk.size for chunk in data.chunks] == LENGTHS
    assert repr(data) == f"ChunkedArray(i32, {N} items in 5 chunks, on {device.adapter.info['device']})"
    assert (data.item(-1), data[3:4].item(), data.item(LENGTHS[0])) == (N - 1, 3, LENGTHS[0])
    assert data[5:8].tolist() == [5, 6, 7]
    assert_same(data.to_numpy(), x)
    assert_same(asyncio.run(data.to_numpy_async()), x)
    assert data.copy_from(x[::-1]) is data
    assert_same(data.to_numpy(), x[::-1])
    assert [chunk.size for chunk in gw.ChunkedArray.empty_like(data).chunks] == LENGTHS


@given(bounds=st.tuples(st.integers(-N - 3, N + 3) | st.none(), st.integers(-N - 3, N + 3) | st.none()))
def test_a_slice_is_a_view(device, bounds):
    x = np.arange(N, dtype=np.uint32)
    data = _chunked(device, x, LENGTHS)
    view = data[bounds[0] : bounds[1]]
    assert_same(view.to_numpy(), x[bounds[0] : bounds[1]])
    assert all(any(chunk.buffer is whole.buffer for whole in data.chunks) for chunk in view.chunks)


def test_from_numpy_and_empty_by_chunk_items(device):
    x = np.arange(10, dtype=np.float16)
    data = gw.ChunkedArray.from_numpy(x, chunk_items=4, device=device)
    assert [chunk.size for chunk in data.chunks] == [4, 4, 2]
    assert_same(data.to_numpy(), x)
    assert [chunk.size for chunk in gw.ChunkedArray.empty(9, "u64", device, chunk_items=3).chunks] == [3, 3, 3]
    assert [chunk.size for chunk in gw.ChunkedArray.empty(0, "u32", device).chunks] == [0]
    assert gw.ChunkedArray.from_numpy(x[:0], device=device).to_numpy().shape == (0,)


def test_a_default_chunk_is_reached_by_one_binding(device):
    limit = device.limits["max-storage-buffer-binding-size"]
    data = gw.ChunkedArray.empty(limit // 2 + 1, "f16", device)
    assert len(data.chunks) == 2
    assert limit - (1 << 16) < data.chunks[0].nbytes <= limit
    data.destroy()
    with pytest.raises(gw.BufferUsageError, match="destroyed"):
        data.to_numpy()


def test_wrong_ones_are_refused(device, fresh_device):
    x = gw.empty(4, "u32", device)
    with pytest.raises(gw.ArgumentError, match="at least one Array"):
        gw.ChunkedArray([])
    with pytest.raises(gw.DatatypeError, match=r"chunk 1 is ndarray.*gw.asarray"):
        gw.ChunkedArray([x, np.zeros(3)])
    with pytest.raises(gw.DatatypeError, match="chunk 1 is of f32, but chunk 0 of u32"):
        gw.ChunkedArray([x, gw.empty(4, "f32", device)])
    with pytest.raises(gw.BufferUsageError, match="chunk 1 lies on another device"):
        gw.ChunkedArray([x, gw.empty(4, "u32", fresh_device)])
    with pytest.raises(gw.ArgumentError, match="one dimension"):
        gw.ChunkedArray.from_numpy(np.zeros((2, 2), np.uint32), device=device)
    for wrong in (0, 1.5, True):
        with pytest.raises(gw.ArgumentError, match="chunk_items must be"):
            gw.ChunkedArray.empty(4, "u32", device, chunk_items=wrong)
    with pytest.raises(gw.ArgumentError, match="n must be"):
        gw.ChunkedArray.empty(-1, "u32", device)
    data = gw.ChunkedArray([x])
    with pytest.raises(gw.DatatypeError, match="ChunkedArray of uint32"):
        data.copy_from(np.zeros(3, np.uint32))
    for implicit in (np.asarray, float, bool, list, lambda a: np.add(a, 1), lambda a: a[0]):
        with pytest.raises(gw.ImplicitConversionError):
            implicit(data)


# ---- what primitives make of it ----


def test_vector_add_of_chunks_that_differ(device):
    """Each argument in chunks of its own, or in one array; the output is in those of the first input."""
    a, b = exact_items("add", "u32", N, 1), exact_items("add", "u32", N, 2)
    add = make_primitive(gw.VectorAdd, device, "u32", **SHAPES["middle"])
    left = _even(device, a, LENGTHS)
    run = add.execute(a=left, b=gw.asarray(b, device))
    assert [chunk.size for chunk in run.output.chunks] == LENGTHS
    assert_same(run.output.to_numpy(), a + b)
    output = _chunked(device, np.zeros_like(a), [N - 500, 500])
    add.execute(a=left, b=_chunked(device, b, [1, N - 1]), output=output, trials=2)
    assert_same(output.to_numpy(), a + b)
    add.execute(a=left, b=left, output=left)
    assert_same(left.to_numpy(), a + a)


@pytest.mark.parametrize(("strategy", "kind"), [("lookback", "exclusive"), ("reduce_then_scan", "inclusive")])
def test_scan_of_chunks(device, strategy, kind):
    op = "affine"
    x = exact_items(op, "u32", N, 1)
    scan = make_primitive(gw.Scan, device, "u32", operator(op, "u32"), kind, strategy=strategy, state="u32x2", **SMALL)
    data = _chunked(device, x, LENGTHS)
    want = scan_reference(op, x, kind)
    run = scan.execute(input=data, trials=2)
    assert [chunk.size for chunk in run.output.chunks] == LENGTHS
    assert_same(run.output.to_numpy(), want)
    if strategy == "reduce_then_scan":
        output = _chunked(device, np.zeros_like(x), [500, N - 500])
        scan.execute(input=data, output=output)
        assert_same(output.to_numpy(), want)
        scan.execute(input=data, output=data)
        assert_same(data.to_numpy(), want)


def test_chunks_larger_than_a_binding(device):
    caps = gw.capabilities(device)
    caps = replace(caps, limits={**caps.limits, "max-storage-buffer-binding-size": 4096})
    x = exact_items("affine", "u32", 6000)
    data = _chunked(device, x, [3000, 10, 2990])
    affine = operator("affine", "u32")
    run = make_primitive(gw.Scan, device, "u32", affine, capabilities=caps, **SMALL).execute(input=data)
    assert run.plan.parameters["windows"] == 9
    assert_same(run.output.to_numpy(), scan_reference("affine", x))
    total = make_primitive(gw.Reduce, device, "u32", affine, capabilities=caps, **SMALL).execute(input=data).output
    assert_same(total.to_numpy(), reduce_reference("affine", x))


def test_no_items(device):
    nothing = _chunked(device, np.zeros(0, np.uint32), [0, 0])
    assert gw.Scan(device, "u32").execute(input=nothing).output.size == 0
    assert gw.add(nothing, nothing).size == 0
    assert_same(gw.sum(nothing).to_numpy(), np.zeros((), np.uint64))
    with pytest.raises(gw.EmptyReductionError):
        gw.min(nothing)


def test_what_needs_one_array_refuses_chunks(device):
    data = _chunked(device, exact_items("add", "u32", N, 1), LENGTHS)
    own = gw.Kernel(
        device,
        """
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn main() { x[0] = 1u; }""",
        {"x": "read_write"},
        1,
    )
    for call in (
        lambda: gw.Reduce(device, "u32").execute(input=data, output=data),
        lambda: own.execute(x=data),
    ):
        with pytest.raises(gw.ArgumentError, match=r"must be one Array.*max-buffer-size \d+ bytes.*one by one"):
            call()


# ---- what reaches any place of them ----

SORTED = [2500, 0, 3, 3509]
FEW = {"workgroup_size": 256, "items": 2, "parts": 2}


def _keys(datatype, n, seed=0):
    bits = np.random.default_rng([n, seed]).integers(0, 1 << 16, n, dtype=np.uint32) * np.uint32(0x10003)
    return bits.astype(gw.STORAGE_DATATYPES[datatype].dtype)


@pytest.mark.parametrize(
    ("datatype", "strategy"),
    [("f32", "reduce_then_scan"), pytest.param("i64", "onesweep", marks=pytest.mark.slow)],
)
def test_positions_of_sorted_chunks(device, datatype, strategy):
    x = _keys(datatype, sum(SORTED))
    order = np.argsort(x, kind="stable")
    positions = make_primitive(gw.ArgSort, device, datatype, strategy=strategy, **FEW)
    output = gw.empty(x.size, "u32", device)
    positions.execute(input=_chunked(device, x, SORTED), output=output)
    assert_same(output.to_numpy(), order.astype(np.uint32))


def test_sorts_of_pairs_in_chunks_that_differ(device):
    """Each argument in chunks of its own, or in views of one buffer, with something else between them."""
    n = sum(SORTED)
    keys, values = _keys("u32", n), np.arange(n, dtype=np.uint64) << np.uint64(20)
    order = np.argsort(keys, kind="stable")
    shared = gw.asarray(np.full(n + 1000, 7, np.uint32), device)
    output_keys = gw.ChunkedArray([shared[3:1003], shared[1500 : n + 500]])
    output_values = _chunked(device, np.zeros(n, np.uint64), [n - 700, 700])
    make_primitive(gw.SortPairs, device, "u32", "u64", **FEW).execute(
        keys=_chunked(device, keys, SORTED), values=_chunked(device, values, [700, n - 700]),
        output_keys=output_keys, output_values=output_values,
    )  # fmt: skip
    assert_same(output_keys.to_numpy(), keys[order])
    assert_same(output_values.to_numpy(), values[order])
    beside = np.delete(shared.to_numpy(), np.r_[3:1003, 1500 : n + 500])
    assert_same(beside, np.full(beside.size, 7, np.uint32))


def test_few_keys_in_chunks_and_keys_of_16_bits(device):
    x = _keys("u32", 300)
    assert_same(gw.sort(_chunked(device, x, [100, 1, 199])).to_numpy(), np.sort(x))
    f = (_keys("u32", 3000) % 60_000).astype(np.float16)
    even = gw.ChunkedArray([gw.asarray(f[:1000], device), gw.asarray(f, device)[1000:]])
    assert_same(make_primitive(gw.Sort, device, "f16", **FEW).execute(input=even).output.to_numpy(), np.sort(f))
    odd = gw.ChunkedArray([gw.asarray(f[:999], device), gw.asarray(f[999:], device)])
    with pytest.raises(gw.ArgumentError, match=r"begins at item 999, .* both must be multiples of 2; use chunks"):
        gw.sort(odd)


def test_more_chunks_than_bindings(device):
    caps = gw.capabilities(device)
    caps = replace(caps, limits={**caps.limits, "max-storage-buffers-per-shader-stage": 12})
    data = _chunked(device, _keys("u32", 6000), [1000] * 6)
    with pytest.raises(gw.LimitError, match=r"arguments of 6 chunks.*per-shader-stage is 12; use fewer chunks"):
        make_primitive(gw.Sort, device, "u32", capabilities=caps, **FEW).execute(input=data)


@pytest.mark.parametrize("fits", [True, False])
def test_chunks_that_are_reached_anywhere_have_fewer_than_2_to_the_32_items(device, fits):
    caps = gw.capabilities(device)
    caps = replace(caps, limits={**caps.limits, "max-storage-buffer-binding-size": 1 << 34}, adapter_type="Other")
    rows, half = (1 << 16) - fits, 1 << 31
    parts = [gw.Operand(n, f"a_{i}", size_bytes=4 * n) for i, n in enumerate((half, rows * 65536 - half))]
    layout = gw.Layout(
        {**gw.Layout.separate(b=65536, output=rows), "a": gw.Operand(rows * 65536, "", chunks=tuple(parts))}
    )
    matmul = gw.MatMul(None, "f32", m=rows, n=1, k=65536, capabilities=caps)
    if fits:
        assert len(matmul.plan(layout).kernels[0].bindings) == 5
    else:
        with pytest.raises(gw.LimitError, match=r"chunks of a have 4294967296 items, .* count in 32 bits"):
            matmul.plan(layout)


def _even(device, x, lengths):
    """Chunks that begin at even items of their buffers."""
    bounds = np.cumsum([0, *lengths])
    return gw.ChunkedArray([gw.asarray(x[a:b], device) for a, b in itertools.pairwise(bounds)])


def test_overlaps_of_chunks_are_refused(device):
    x = gw.empty(100, "u32", device)
    a, b = gw.empty(60, "u32", device), gw.empty(60, "u32", device)
    add = gw.VectorAdd(device, "u32")
    with pytest.raises(gw.OverlapError, match="chunks of output overlap each other"):
        add.execute(a=a, b=b, output=gw.ChunkedArray([x[:40], x[30:50]]))
    with pytest.raises(gw.OverlapError, match=r"output .*overlaps a"):
        add.execute(a=gw.ChunkedArray([x[:30], x[40:70]]), b=b, output=gw.ChunkedArray([x[10:40], x[70:]]))
    # The same chunk twice is fine where it is only read.
    twice = gw.ChunkedArray([x[:30], x[:30]])
    x.copy_from(np.arange(100, dtype=np.uint32))
    first = np.tile(np.arange(30, dtype=np.uint32), 2)
    assert_same(add.execute(a=twice, b=twice).output.to_numpy(), 2 * first)


def test_a_destroyed_chunk_is_noticed(device):
    data = _even(device, exact_items("add", "u32", N, 1), LENGTHS)
    copy = gw.Copy(device, "u32")
    copy.execute(input=data)
    data.chunks[3].destroy()
    with pytest.raises(gw.BufferUsageError, match="destroyed"):
        copy.execute()


def test_lengths_and_datatypes_are_checked(device):
    data = _chunked(device, exact_items("add", "u32", N, 1), LENGTHS)
    with pytest.raises(gw.LengthError, match=f"output has room for {N - 1} items"):
        gw.Scan(device, "u32").execute(input=data, output=gw.ChunkedArray.empty_like(data)[1:])
    with pytest.raises(gw.DatatypeError, match="input is of u32"):
        gw.Scan(device, "f32").execute(input=data)
    # A larger output is cut to size.
    roomy = gw.ChunkedArray.empty(N + 50, "u32", device, chunk_items=200)
    assert gw.Copy(device, "u32").execute(input=data, output=roomy).output.size == N


def test_chunks_that_share_a_buffer_with_an_output(device):
    """Of keys of 16 bits some are then reached by atomics, the others not; items of two sizes cannot share one."""
    f = (_keys("u32", 3000) % 60_000).astype(np.float16)
    shared = gw.asarray(np.concatenate([f[:1000], np.zeros(3000, np.float16)]), device)
    keys = gw.ChunkedArray([shared[:1000], gw.asarray(f[1000:], device)])
    make_primitive(gw.Sort, device, "f16", **FEW).execute(input=keys, output=shared[1000:])
    assert_same(shared.to_numpy(), np.concatenate([f[:1000], np.sort(f)]))
    wide = gw.asarray(_keys("u64", 600), device)
    positions = gw.Array(wide.buffer, "u32", 600, offset=600)
    with pytest.raises(gw.LimitError, match=r"some chunks of keys_input share a buffer.* buffers of their own"):
        make_primitive(gw.ArgSort, device, "u64", **FEW).execute(
            input=gw.ChunkedArray([wide[:300], gw.asarray(_keys("u64", 300), device)]), output=positions
        )


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0, 1])
def test_chunks_of_which_one_shares_a_buffer_with_halves_of_words_that_are_written(device, shared):
    """That one is written by atomics, the other is not, whichever comes first."""
    keys = (_keys("u32", 3000) % 60_000).astype(np.float16)
    values = np.arange(3000, dtype=np.uint32)
    both = gw.empty(8000, "u32", device)
    lengths = (1000, 2000)
    chunks = [gw.empty(n, "u32", device) for n in lengths]
    chunks[shared] = both[5000 : 5000 + lengths[shared]]
    output_keys, output_values = gw.Array(both.buffer, "f16", 3000), gw.ChunkedArray(chunks)
    make_primitive(gw.SortPairs, device, "f16", "u32", **FEW).execute(
        keys=gw.asarray(keys, device), values=gw.asarray(values, device),
        output_keys=output_keys, output_values=output_values,
    )  # fmt: skip
    order = np.argsort(keys, kind="stable")
    assert_same(output_keys.to_numpy(), keys[order])
    assert_same(output_values.to_numpy(), values[order])
