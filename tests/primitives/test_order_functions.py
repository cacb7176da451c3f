"""Other orders of items: transposes, flips, rolls, scatters and sorts by several keys, against numpy."""

import itertools

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import quick_first

pytestmark = pytest.mark.thin(1)

DATATYPES = tuple(gw.STORAGE_DATATYPES)
SENTINEL = 0x5A


def _items(dtype, n, seed=0):
    bits = np.random.default_rng(seed).integers(0, 2 if dtype == np.bool_ else 256, n * np.dtype(dtype).itemsize)
    return bits.astype(np.uint8).view(dtype)


# ---- transpose

MATRICES = [
    (1, 1), (1, 7), (7, 1), (3, 1000), (1000, 3), (4, 130), (130, 4), (16, 68), (17, 17), (31, 33), (32, 32), (33, 31),
    (64, 64), (65, 63), (36, 101), (101, 36), (128, 20), (95, 97),
]  # fmt: skip


@pytest.mark.parametrize("datatype", quick_first(["u32", "u8"], DATATYPES))
@pytest.mark.parametrize("shift", [0, 1, 4])
def test_transpose_of_every_form(device, datatype, shift):
    """Around tiles and quads, of views anywhere; nothing is written outside."""
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    for (rows, columns), batch in itertools.product(MATRICES, (1, 3)):
        n = rows * columns * batch
        x = _items(dtype, n, rows)
        source, target = (
            gw.asarray(
                np.pad(items.view(np.uint8), shift * dtype.itemsize, constant_values=SENTINEL).view(dtype), device
            )
            for items in (x, np.zeros_like(x))
        )
        transpose = gw.Transpose(device, datatype, rows=rows, columns=columns, batch=batch)
        transpose.execute(input=source[shift : shift + n], output=target[shift : shift + n], trials=3)
        got = target.to_numpy().view(np.uint8)
        wanted = np.ascontiguousarray(x.reshape(batch, rows, columns).swapaxes(1, 2)).ravel().view(np.uint8)
        margin = shift * dtype.itemsize
        assert got[margin : margin + wanted.size].tobytes() == wanted.tobytes(), (rows, columns, batch)
        assert (got[:margin] == SENTINEL).all()
        assert (got[margin + wanted.size :] == SENTINEL).all()


@pytest.mark.parametrize(("workgroup_size", "vecs"), quick_first([(64, 4)], [(64, 8), (128, 2), (128, 4), (256, 1)]))
def test_transpose_in_other_shapes(device, workgroup_size, vecs):
    tuning = gw.ElementwiseTuning(workgroup_size=workgroup_size, vecs=vecs)
    for (rows, columns), datatype in itertools.product(((70, 100), (101, 67), (67, 102)), ("u32", "f64")):
        x = _items(gw.STORAGE_DATATYPES[datatype].dtype, rows * columns)
        transpose = gw.Transpose(device, datatype, rows=rows, columns=columns, tuning=tuning)
        got = transpose.execute(input=gw.asarray(x, device)).output.to_numpy()
        assert got.tobytes() == np.ascontiguousarray(x.reshape(rows, columns).T).tobytes()


@pytest.mark.parametrize("columns", [1024, 1025, 2 * 1024 + 31, 3000])
def test_transpose_in_several_bands(device, columns):
    """A band has 32 tiles of 32 columns; the last one may have fewer."""
    x = np.arange(2 * 70 * columns, dtype=np.uint32).reshape(2, 70, columns)
    transpose = gw.Transpose(device, "u32", rows=70, columns=columns, batch=2)
    got = transpose.execute(input=gw.asarray(x.reshape(-1), device)).output.to_numpy()
    np.testing.assert_array_equal(got.reshape(2, columns, 70), x.transpose(0, 2, 1))


@pytest.mark.parametrize(
    ("tuning", "message"),
    [
        ({"workgroup_size": 32}, "64, 128 or 256 invocations"),
        ({"workgroup_size": 64, "vecs": 3}, "a multiple of 1024"),
        ({"workgroup_size": 256, "vecs": 4}, "16896 bytes of workgroup memory"),
    ],
)
def test_transpose_in_a_shape_that_does_not_fit(tuning, message):
    with pytest.raises(gw.ArgumentError, match=message):
        gw.Transpose(None, rows=9, columns=9, capabilities=gw.Capabilities(), tuning=gw.ElementwiseTuning(**tuning))


def test_transpose_of_more_than_a_binding(device):
    # 3 bindings of each array: a device has 8 at least.
    limits = {**gw.capabilities(device).limits, "max-storage-buffer-binding-size": 100_000}
    narrow = gw.Capabilities(**{**gw.capabilities(device).__dict__, "limits": limits})
    for rows, columns in ((200, 300), (201, 299), (5, 12_000)):
        x = _items(np.uint32, rows * columns)
        transpose = gw.Transpose(device, "u32", rows=rows, columns=columns, capabilities=narrow)
        got = transpose.execute(input=gw.asarray(x, device)).output.to_numpy()
        np.testing.assert_array_equal(got.reshape(columns, rows), x.reshape(rows, columns).T)


def test_transpose_with_negative_axes_and_wrong_ones(device):
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    np.testing.assert_array_equal(gw.transpose(x, (-1, 0, 1), device=device), x.transpose(2, 0, 1))
    for axes, message in (((0, 1), "each of the 3"), ((0, 1, 1), "each of the 3"), ((0, 1, 3), "out of bounds")):
        with pytest.raises(gw.ArgumentError, match=message):
            gw.transpose(x, axes, device=device)
    triple = gw.Struct("Triple", a="f32", b="f32", c="u32").array(a=np.zeros(4), b=np.ones(4), c=np.arange(4))
    with pytest.raises(gw.DatatypeError, match="have 12 bytes"):
        gw.transpose(gw.asarray(triple, device).reshape(2, 2))


# ---- flip and roll


def test_results_without_dimensions_are_of_numpys_kind(device):
    for x in (np.array(5, np.int32), np.float32(3)):
        for found, expected in (
            (gw.flip(x, device=device), np.flip(x)),
            (gw.roll(x, 1, device=device), np.roll(x, 1)),
            (gw.transpose(x, device=device), np.transpose(x)),
        ):
            assert type(found) is type(expected)  # a scalar, or an array of shape ()
            assert found.dtype == expected.dtype
            assert found == expected


def test_flip_and_roll_of_views(device):
    whole = np.arange(1000, dtype=np.uint16)
    view = gw.asarray(whole, device)[3:998]
    np.testing.assert_array_equal(gw.roll(view, 7).to_numpy(), np.roll(whole[3:998], 7))
    np.testing.assert_array_equal(gw.flip(view, 0).to_numpy(), whole[3:998][::-1])


def test_a_flip_is_an_expression_where_it_can_be(device):
    x = gw.asarray(np.arange(10, dtype=np.float32), device)
    assert isinstance(gw.flip(x), gw.Expression)
    assert isinstance(gw.flip(x, axis=0), gw.Array)
    for dtype in (np.int64, np.float64, np.complex64):  # which no expression reads
        items = np.arange(5).astype(dtype)
        np.testing.assert_array_equal(gw.flip(gw.asarray(items, device)).to_numpy(), items[::-1])
    assert float(gw.sum(gw.flip(x) * x).to_numpy()) == sum(k * (9 - k) for k in range(10))


def test_wrong_axes_and_shifts(device):
    x = np.zeros((2, 3), np.float32)
    for call in (
        lambda: gw.flip(x, 2, device=device), lambda: gw.flip(x, (0, -2), device=device),
        lambda: gw.roll(x, 1, 2, device=device), lambda: gw.transpose(x, (0, 2), device=device),
        lambda: gw.lexsort(x[None], 2, device=device),
    ):  # fmt: skip
        with pytest.raises(gw.AxisError, match=r"gw\.\w+\(\): axis="):
            call()
    for wrong in (1.0, "a", {0}):
        with pytest.raises(gw.DatatypeError, match=r"gw\.flip\(\): axis must be"):
            gw.flip(x, wrong, device=device)
    with pytest.raises(gw.ArgumentError, match="2 shifts for 3 axes"):
        gw.roll(x, (1, 2), (0, 1, 0), device=device)
    for wrong in (1.5, (1.5,), "a", [[1]]):
        with pytest.raises(gw.DatatypeError, match=r"gw\.roll\(\): shift must be an integer"):
            gw.roll(x, wrong, device=device)
    for shift in (np.array(2), np.array([1, 4]), True):
        np.testing.assert_array_equal(gw.roll(np.arange(5), shift, device=device), np.roll(np.arange(5), shift))


# ---- scatter and put


@pytest.mark.parametrize("index", quick_first(["u32", "i64"], ["i32", "u64", "i16", "u8"]))
@pytest.mark.parametrize("datatype", quick_first(["u32", "f64", "u8"], [d for d in DATATYPES]))
@pytest.mark.parametrize("n", [0, 1, 5, 100])
def test_scatter(device, datatype, index, n):
    """Indices from both ends, and out of range on both sides: those write nothing, inside or outside."""
    dtype, kind = gw.STORAGE_DATATYPES[datatype].dtype, gw.STORAGE_DATATYPES[index].dtype
    rng, length = np.random.default_rng(n), 60
    limits = np.iinfo(kind)
    wanted = [0, length - 1, length, -1, -length, -length - 1, limits.min, limits.max, 2**32, 2**32 + 3, -(2**32)]
    possible = [k for k in [*rng.permutation(length)[:30].tolist(), *wanted] if limits.min <= k <= limits.max]
    # One for each place.
    places = {k % length if -length <= k < length else k: k for k in possible}
    indices = rng.permutation(np.array(list(places.values()), dtype=kind))[:n]
    items = _items(dtype, indices.size, 3)
    around = _items(dtype, length + 2 * 77, 4)
    whole = gw.asarray(around, device)
    scatter = gw.Scatter(device, datatype, index)
    for _ in range(2):
        scatter.execute(
            items=gw.asarray(items, device), indices=gw.asarray(indices, device), output=whole[77 : 77 + length],
            trials=3,
        )  # fmt: skip
    expected = around.copy()
    for place, item in zip(indices.tolist(), items, strict=True):
        if -length <= place < length:
            expected[77 : 77 + length][place] = item
    assert whole.to_numpy().tobytes() == expected.tobytes()
    reference = scatter.reference(items, indices, around[77 : 77 + length])
    assert reference.tobytes() == expected[77 : 77 + length].tobytes()


def test_scatter_of_many(device):
    n = 100_003
    indices = np.random.default_rng(5).permutation(n).astype(np.uint32)
    items, output = np.arange(n, dtype=np.uint32), gw.zeros(n, "u32", device)
    gw.Scatter(device).execute(items=gw.asarray(items, device), indices=gw.asarray(indices, device), output=output)
    np.testing.assert_array_equal(output.to_numpy()[indices], items)


@pytest.mark.parametrize("datatype", ["u32", "u8", "i16"])
def test_of_equal_indices_one_item_stays(device, datatype):
    """Not the bits of two: of those with one bit each, several would show."""
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    bits = np.left_shift(1, np.arange(3000) % (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype)
    places = gw.asarray(np.arange(3000, dtype=np.uint32) % 3 + 2, device)
    output = gw.zeros(7, datatype, device)
    gw.Scatter(device, datatype).execute(items=gw.asarray(bits, device), indices=places, output=output)
    found = output.to_numpy()
    assert found[[0, 1, 5, 6]].tolist() == [0] * 4
    assert all(item in bits[k::3] for k, item in enumerate(found[2:5])), found


def test_scatter_of_as_many_as_the_gpu_says(device):
    scatter, items = gw.Scatter(device), gw.asarray(np.arange(1, 5_001, dtype=np.uint32), device)
    indices = gw.asarray(np.arange(5_000, dtype=np.uint32), device)
    for count in (0, 1, 2_049, 5_000, 9_999):
        output = gw.zeros(5_000, "u32", device)
        scatter.execute(items=items, indices=indices, output=output, n=gw.asarray(np.array([count], np.uint32), device))
        np.testing.assert_array_equal(output.to_numpy(), np.where(np.arange(5_000) < count, np.arange(1, 5_001), 0))


def test_scatter_of_an_expression_and_in_windows(device):
    limits = {**gw.capabilities(device).limits, "max-storage-buffer-binding-size": 32_768}
    narrow = gw.Capabilities(**{**gw.capabilities(device).__dict__, "limits": limits})
    x, indices = np.arange(12_000, dtype=np.uint32), np.random.default_rng(6).permutation(12_000).astype(np.uint32)
    for capabilities in (None, narrow):
        scatter = gw.Scatter(device, gw.u32("x") * 3 if capabilities is None else "u32", capabilities=capabilities)
        output = gw.zeros(12_000, "u32", device)
        names = {"x" if capabilities is None else "items": gw.asarray(x, device)}
        scatter.execute(**names, indices=gw.asarray(indices, device), output=output)
        np.testing.assert_array_equal(output.to_numpy()[indices], x * (3 if capabilities is None else 1))


def test_scatter_needs_its_output(device):
    x = gw.asarray(np.arange(3, dtype=np.uint32), device)
    with pytest.raises(gw.ArgumentError, match="output"):
        gw.Scatter(device).execute(items=x, indices=x)
    with pytest.raises(gw.OverlapError):
        gw.Scatter(device).execute(items=x, indices=gw.zeros(3, "u32", device), output=x)


def test_put(device):
    x = np.zeros((2, 5), np.int16)
    gw.put(x, [1, -1, 3], [4, 5, 6], device=device)
    assert x.tolist() == [[0, 4, 0, 6, 0], [0, 0, 0, 0, 5]]
    on_gpu = gw.asarray(x, device)
    gw.put(on_gpu, gw.asarray(np.array([0, 2, 99, -11, -3], np.int32), device), 7)
    assert on_gpu.to_numpy().tolist() == [[7, 4, 7, 6, 0], [0, 0, 7, 0, 5]]
    gw.put(on_gpu, np.array([0, 10]), gw.asarray(np.array([1, 2], np.int16), device), mode="drop")
    assert on_gpu.to_numpy()[0, 0] == 1
    gw.put(on_gpu, [], [])
    pairs = np.zeros(4, np.complex64)
    gw.put(pairs, [2], [3 + 4j], device=device)
    assert pairs.tolist() == [0, 0, 3 + 4j, 0]


def test_what_put_refuses(device):
    x = gw.zeros(5, "u32", device)
    out = gw.asarray(np.array([1, 5], np.uint32), device)
    for indices, values, mode, error, message in (
        ([1, 5], 1, None, gw.BoundsError, "index 5 is out of bounds for a dimension of length 5"),
        ([-6], 1, None, gw.BoundsError, "index -6 is out of bounds"),
        (out, 1, "raise", gw.BoundsError, "index 5 is out of bounds"),
        ([1.5], 1, None, gw.DatatypeError, "indices is of float64, but must be integers; give np"),
        (gw.zeros(1, "f32", device), 1, None, gw.DatatypeError, "must be integers"),
        ([1], -1, None, gw.DatatypeError, "u32, which does not hold -1"),
        ([1, 2], [1, 2**32], None, gw.DatatypeError, "u32, which does not hold 4294967296"),
        ([1], ["7"], None, gw.DatatypeError, "values: numpy makes <U1 of this list"),
        ([1], 1, "clamp", gw.ArgumentError, "known are raise, wrap, clip, drop"),
    ):
        with pytest.raises(error, match=message):
            gw.put(x, indices, values, mode=mode)
    assert not x.to_numpy().any(), "nothing was written"
    with pytest.raises(gw.BoundsError, match="no items"):
        gw.put(np.zeros(0), [0], 1, device=device)
    with pytest.raises(gw.DatatypeError, match="written in place"):
        gw.put([1, 2], [0], 1, device=device)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(gw.ArgumentError, match="read-only"):
        gw.put(frozen, [0], 1, device=device)


# ---- lexsort


def test_what_lexsort_refuses(device):
    for keys, error, message in (
        ([], gw.DatatypeError, "at least one key"),
        (3, gw.DatatypeError, "at least one key"),
        ([np.zeros(3), np.zeros(4)], gw.LengthError, r"key 1 has shape \(4,\)"),
        ([np.zeros(3, np.complex64)], gw.DatatypeError, "complex64"),
    ):
        with pytest.raises(error, match=message):
            gw.lexsort(keys, device=device)
