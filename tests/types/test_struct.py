"""Structs as datatypes: what they are made from, what they equal, and what is refused."""

import copy
import pickle

import numpy as np
import pytest

import gridwise_py as gw

ValueIndex = gw.Struct("ValueIndex", value="f32", index="u32")


def test_a_struct_lies_in_memory_as_numpys_dtype():
    assert ValueIndex.dtype == np.dtype([("value", "<f4"), ("index", "<u4")])
    assert ValueIndex.itemsize_bytes == 8
    assert ValueIndex.words((1.5, 7)) == (0x3FC00000, 7)
    for fields in (1, 2, 3, 4):
        struct = gw.Struct("X", **dict.fromkeys("abcd"[:fields], np.int32))
        assert struct.itemsize_bytes == 4 * fields
        assert struct.words((-1,) * fields) == (0xFFFFFFFF,) * fields


def test_structs_are_equal_by_their_fields():
    same = gw.Struct("Other", value=np.float32, index=np.dtype("u4"))
    assert same == ValueIndex
    assert hash(same) == hash(ValueIndex)
    for other in ({"index": "u32", "value": "f32"}, {"value": "f32", "place": "u32"}, {"value": "f32", "index": "i32"}):
        assert gw.Struct("ValueIndex", **other) != ValueIndex
        assert gw.Struct("ValueIndex", **other).key != ValueIndex.key
    assert gw.DATATYPES["u32"] != gw.Struct("u32", value="u32")
    assert pickle.loads(pickle.dumps(ValueIndex)) == ValueIndex
    assert copy.deepcopy(ValueIndex) == ValueIndex


def test_a_numpy_dtype_is_its_struct(device):
    assert gw.empty(1, ValueIndex.dtype, device).datatype == ValueIndex
    assert gw.empty(1, ValueIndex, device).datatype is ValueIndex
    assert gw.Struct.from_dtype([("value", "f4"), ("index", "u4")], "Pair").name == "Pair"
    of_complex = gw.empty(1, "c64", device).datatype
    for complex64 in ("complex64", np.complex64, np.dtype("c8"), of_complex):
        assert gw.empty(1, complex64, device).datatype is of_complex
    with pytest.raises(gw.DatatypeError, match="has no fields"):
        gw.Struct.from_dtype("f4")


def test_arrays_are_made_from_columns():
    items = ValueIndex.array(index=range(3), value=1)
    assert items.tolist() == [(1.0, 0), (1.0, 1), (1.0, 2)]
    assert items.dtype == ValueIndex.dtype
    assert ValueIndex.array(value=1, index=2).shape == ()
    with pytest.raises(gw.ArgumentError, match=r"unknown field 'place': ValueIndex has value, index"):
        ValueIndex.array(value=1, index=2, place=3)
    with pytest.raises(gw.ArgumentError, match=r"lacks the field 'index'"):
        ValueIndex.array(value=1)


def test_arrays_on_the_gpu_hold_structs(device):
    items = ValueIndex.array(value=np.arange(10), index=np.arange(10)[::-1])
    x = gw.asarray(items, device)
    assert (x.datatype, x.dtype, x.nbytes) == (ValueIndex, ValueIndex.dtype, 80)
    assert x.to_numpy().tolist() == items.tolist()
    assert x[3:5].tolist() == items[3:5].tolist()
    assert x.item(2) == (2.0, 7)
    assert gw.asarray([(1, 2), (3, 4)], device, dtype=ValueIndex).tolist() == [(1.0, 2), (3.0, 4)]
    assert gw.asarray(items[::2], device).tolist() == items[::2].tolist()
    with pytest.raises(gw.DatatypeError, match="cannot be held"):
        gw.asarray([(1, 2), (3,)], device, dtype=ValueIndex)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": "u64"}, r"field 'x' of Struct 'S' is of uint64, 8 bytes.*x_low='u32' and x_high='u32'"),
        ({"x": "i64"}, r"x='i32' if all values fit"),
        ({"x": "f64"}, r"x='f32', which rounds"),
        ({"x": "u16"}, r"2 bytes.*x='u32', which loses nothing"),
        ({"x": "f16"}, r"2 bytes.*x='f32', which loses nothing"),
        ({"x": "bool"}, r"x='u32'"),
        ({"x": "c64"}, r"complex64, 8 bytes.*each number of it a field"),
        ({"x": "word"}, r"'word', which is no datatype; a field is of u32, i32 or f32"),
        ({"x": ValueIndex}, r"itself a struct.*fields one by one"),
        ({"x": ("f4", (2, 2))}, r"array of shape \(2, 2\).*x0, x1"),
        (dict.fromkeys("abcde", "u32"), r"5 fields \(a, b, c, d, e\).*at most 4; split it"),
        ({}, r"no fields"),
        ({"type": "u32"}, r"WGSL reserves; rename it"),
        ({"größe": "u32"}, r"no name in WGSL"),
        ({"__x": "u32"}, r"no name in WGSL"),
    ],
)
def test_what_is_no_struct_is_refused_with_the_remedy(fields, message):
    with pytest.raises(gw.DatatypeError, match=message):
        gw.Struct("S", **fields)
    with pytest.raises(gw.ArgumentError, match="name of a Struct is a str"):
        gw.Struct(5, x="u32")


@pytest.mark.parametrize(
    "dtype",
    [
        {"names": ["a", "b"], "formats": ["f4", "u4"], "offsets": [0, 8]},
        {"names": ["a", "b"], "formats": ["f4", "u4"], "offsets": [4, 0]},
        {"names": ["a"], "formats": ["f4"], "itemsize": 8},
    ],
    ids=["a gap", "another order", "room at the end"],
)
def test_fields_with_gaps_are_refused_and_can_be_packed(device, dtype):
    with pytest.raises(gw.DatatypeError, match="repack_fields"):
        gw.empty(1, np.dtype(dtype), device)


def test_another_byte_order_is_for_data_only(device):
    swapped = ValueIndex.dtype.newbyteorder()
    with pytest.raises(gw.DatatypeError, match="byte order"):
        gw.empty(1, swapped, device)
    items = ValueIndex.array(value=[1, 2], index=3)
    assert gw.asarray(items.astype(swapped), device).tolist() == items.tolist()


def test_structs_are_for_arrays_reductions_and_scans_only():
    for made, message in ((gw.Sort, "has two fields of u32"), (gw.VectorAdd, r"x\['value'\]")):
        with pytest.raises(gw.DatatypeError, match=message):
            made(None, ValueIndex, capabilities=gw.Capabilities())
        with pytest.raises(gw.DatatypeError):
            made(None, "complex64", capabilities=gw.Capabilities())


@pytest.mark.parametrize("datatype", [ValueIndex, gw.Struct("Three", a="i32", b="f32", c="u32"), np.complex64], ids=str)
def test_items_of_several_numbers_are_copied_filled_and_gathered(device, datatype):
    dtype = gw.empty(1, datatype, device).dtype
    # All bits: NaN with a payload, and numbers that a GPU would flush to 0.
    words = np.random.default_rng(1).integers(0, 2**32, 24 * dtype.itemsize // 4, dtype=np.uint32)
    items = words.view(dtype)
    x = gw.asarray(items, device)
    assert x.copy().to_numpy().tobytes() == items.tobytes()
    assert x[3:8].copy().to_numpy().tobytes() == items[3:8].tobytes()
    assert x.astype(datatype).to_numpy().tobytes() == items.tobytes()
    assert x[[5, -1, 5]].to_numpy().tobytes() == items[[5, -1, 5]].tobytes()
    rows = x.reshape(4, 6)[np.array([2, 0])].to_numpy()
    assert rows.shape == (2, 6)
    assert rows.tobytes() == items.reshape(4, 6)[[2, 0]].tobytes()
    grid, wanted = items.reshape(2, 3, 4), np.array([2, -3, 1])
    out = gw.empty((2, 3, 4), datatype, device)
    for taken in (
        gw.take(gw.asarray(grid, device), wanted, 1).to_numpy(),
        gw.take(gw.asarray(grid, device), gw.asarray(wanted, device), 1, out=out).to_numpy(),
        gw.take(grid, wanted, 1, device=device),
    ):
        assert taken.tobytes() == grid[:, wanted].tobytes()
    value = tuple(range(1, 1 + len(dtype.names))) if dtype.names else 1 + 2j
    x[2:5].fill(value)
    filled = items.copy()
    filled[2:5] = value
    assert x.to_numpy().tobytes() == filled.tobytes()
    assert (
        gw.full((2, 3), value, datatype, device).to_numpy().tobytes()
        == np.full((2, 3), np.array(value, dtype)).tobytes()
    )
    assert gw.full_like(x, value).to_numpy().tobytes() == np.full(24, np.array(value, dtype)).tobytes()
    with pytest.raises(gw.DatatypeError, match="does not hold 'x'"):
        x.fill("x")
    with pytest.raises(gw.DatatypeError, match=r"convert them in numpy: gw\.asarray"):
        x.astype(np.float32)
    with pytest.raises(gw.DatatypeError, match=r"convert them in numpy: gw\.asarray"):
        gw.empty(3, "f32", device).astype(datatype)
