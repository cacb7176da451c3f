"""Exact splitters and cuts, against numpy's stable sort of the whole; no cluster, no GPU."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as from_numpy

pytest.importorskip("distributed")

from gridwise_py.dask import splitters

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?"]
#: What floats have that numbers do not: both zeros, infinities, and NaN of either sign and of several patterns.
SPECIAL = {
    "f2": np.array([0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0xFFFF], "u2").view("f2"),
    "f4": np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF], "u4").view(
        "f4"
    ),
    "f8": (np.array([0, 0x8000, 0x7FF0, 0xFFF0, 0x7FF8, 0xFFF8, 0x7FFF, 0xFFFF], "u8") << np.uint64(48)).view("f8"),
}


def _order(keys, descending):
    """The stable order of keys: NaN last, in both directions."""
    if not descending:
        return np.argsort(keys, kind="stable")
    if keys.dtype.kind == "f":
        ranks = np.where(np.isnan(keys), 0, np.searchsorted(np.unique(keys[~np.isnan(keys)]), keys) + 1)
    else:
        ranks = np.searchsorted(np.unique(keys), keys)
    return np.argsort(-ranks, kind="stable")


def _parts(chunks, descending, digit=None):
    """The parts that pieces of sorted chunks make, as the graph of a sort does it, with numpy in place of a GPU."""
    runs, begin = [], 0
    for chunk in chunks:
        order = _order(chunk, descending)
        runs.append((chunk[order], begin + order))
        begin += chunk.size
    state = splitters.search([chunk.size for chunk in chunks], descending=descending)
    bits = chunks[0].dtype.itemsize * 8
    steps = splitters.rounds(chunks[0].dtype, len(chunks)) if digit is None else [digit] * (bits // digit)
    assert sum(steps) == bits
    for step in steps:
        counts = [splitters.counted(run, state, digit=step) for run in runs]
        assert all((np.diff(count, axis=1) >= 0).all() for count in counts), "counts of candidates never fall"
        state = splitters.narrowed(state, [splitters.totalled(counts)], digit=step)
    table = splitters.cuts([splitters.edges(run, state) for run in runs], state)
    for part in range(len(chunks)):
        pieces = [splitters.piece(run, table, i, part) for i, run in enumerate(runs)]
        keys, places = (np.concatenate(column) for column in zip(*pieces, strict=True))
        order = _order(keys, descending)
        yield keys[order], places[order]


def _check(chunks, descending, digit=None):
    whole = np.concatenate(chunks)
    order = _order(whole, descending)
    found = list(_parts(chunks, descending, digit))
    assert [keys.size for keys, _ in found] == [chunk.size for chunk in chunks]
    np.testing.assert_array_equal(np.concatenate([places for _, places in found]), order)
    bits = f"u{whole.itemsize}"
    np.testing.assert_array_equal(np.concatenate([keys for keys, _ in found]).view(bits), whole[order].view(bits))


@st.composite
def _chunks(draw, dtype):
    """Some chunks, empty ones and ones of a single item among them, of few or many different keys."""
    dtype = np.dtype(dtype)
    items = from_numpy.from_dtype(dtype)
    if dtype.str[1:] in SPECIAL:
        items = st.sampled_from(list(SPECIAL[dtype.str[1:]])) | items
    if draw(st.booleans()):
        items = st.sampled_from(draw(st.lists(items, min_size=1, max_size=3)))
    sizes = draw(st.lists(st.integers(0, 40) | st.sampled_from([0, 1]), min_size=1, max_size=6))
    return [np.array(draw(st.lists(items, min_size=size, max_size=size)), dtype) for size in sizes]


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_parts_are_those_of_a_stable_sort_and_as_long_as_the_chunks(dtype, data):
    _check(data.draw(_chunks(dtype)), data.draw(st.booleans()))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", sorted(SPECIAL))
def test_splitters_that_fall_among_special_values(dtype, descending):
    """Patterns of NaN with a sign lie below −inf in the order of bits; numpy has all NaN last."""
    rng = np.random.default_rng(7)
    for first in range(8):
        special = np.roll(SPECIAL[dtype], first)
        whole = rng.permutation(np.concatenate([np.repeat(special, 5), rng.standard_normal(10).astype(dtype)]))
        _check(np.split(whole, [1, 1, 17, 30, 49]), descending)
        for value in special:
            _check([np.full(3, value, dtype), np.full(0, value, dtype), np.full(5, value, dtype)], descending)


@pytest.mark.parametrize("digit", [1, 2, 4, 8])
def test_the_width_of_a_digit_does_not_change_the_parts(digit):
    keys = np.random.default_rng(3).integers(0, 50, 400, dtype=np.int32) - 25
    _check(np.split(keys, [100, 101, 101, 350]), False, digit)


def test_a_digit_is_narrower_where_there_are_more_parts():
    assert [splitters.digit_bits(parts) for parts in (1, 2, 257, 513, 514, 1025, 2048)] == [8, 8, 8, 8, 7, 7, 6]
    for parts in (2, 300, 1000, 2048):
        assert (parts - 1) << splitters.digit_bits(parts) <= 1 << 17
        for dtype in ("u1", "f4", "i8"):
            assert sum(splitters.rounds(np.dtype(dtype), parts)) == np.dtype(dtype).itemsize * 8


def test_a_piece_is_a_copy():
    keys = np.arange(10, dtype=np.uint32)
    (piece,) = splitters.piece((keys,), np.array([[4]]), 0, 1)
    np.testing.assert_array_equal(piece, keys[4:])
    assert piece.base is None
