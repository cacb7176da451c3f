"""Exact splitters and cuts, against numpy's stable sort of the whole; no cluster, no GPU."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as from_numpy

from helpers import needs

with needs.modules("distributed") as pytestmark:
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


def _check(chunks, descending, least=64, most=1 << 16):
    """Cut sorted chunks before every part, and sort what lies between the cuts, with numpy in place of a GPU."""
    whole, sizes = np.concatenate(chunks), [chunk.size for chunk in chunks]
    runs, begin = [], 0
    for chunk in chunks:
        order = _order(chunk, descending)
        runs.append((chunk[order], begin + order))
        begin += chunk.size
    with mock.patch.multiple(splitters, MOST_SAMPLED=most, _LEAST_OF_A_CHUNK=least):
        state = splitters.search(sizes, range(len(chunks) + 1))
        count = splitters.rounds(len(chunks), begin)
        for _ in range(count):
            taken = [splitters.sampled(keys, state, i, descending=descending) for i, (keys, _) in enumerate(runs)]
            assert max(map(len, taken)) <= (len(chunks) + 1) * (max(most, least * len(chunks)) + 1)
            state = splitters.narrowed(state, taken)
    table = splitters.cuts(state)
    order, bits = _order(whole, descending), f"u{whole.itemsize}"
    for i, (first, last) in enumerate(zip(table.T, table.T[1:], strict=False)):
        between = [(keys[a:b], places[a:b]) for (keys, places), a, b in zip(runs, first, last, strict=True)]
        keys, places = (np.concatenate(column) for column in zip(*between, strict=True))
        wanted = order[sum(sizes[:i]) :][: sizes[i]]
        own = _order(keys, descending)
        np.testing.assert_array_equal(places[own], wanted)
        np.testing.assert_array_equal(keys[own].view(bits), whole[wanted].view(bits))
    return count


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


@pytest.mark.parametrize(("least", "most", "rounds"), [(8, 8, 3), (8, 64, 3), (64, 512, 1)])
def test_few_keys_a_round_take_more_rounds_and_give_the_same_cuts(least, most, rounds):
    for keys in (np.random.default_rng(3).integers(0, 50, 400, dtype=np.int32) - 25, np.zeros(400, np.int32)):
        assert _check(np.split(keys, [100, 101, 101, 350]), False, least, most) == rounds
        assert _check(np.split(np.sort(keys), [100, 101, 101, 350]), True, least, most) == rounds


def test_two_rounds_cut_a_gibibyte_and_six_what_no_host_holds():
    cases = ((4, 1 << 28), (64, 1 << 34), (2560, 1 << 38))
    assert [splitters.rounds(chunks, items) for chunks, items in cases] == [2, 4, 6]
