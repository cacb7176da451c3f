"""The order of a sequence's steps: what waits for what, and how often."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from gridwise_py.runtime.encoding_order import StepUse, barriers, in_levels, marked, reaches


def _conflict(one, other):
    return bool(one.writes & (other.reads | other.writes) or one.reads & other.writes)


def use(reads=(), writes=(), **kind):
    return StepUse(frozenset(reads) - frozenset(writes), frozenset(writes), **kind)


_buffers = st.frozensets(st.integers(0, 7), max_size=3)
_uses = st.lists(st.builds(use, _buffers, _buffers, is_transfer=st.booleans()), max_size=12)


@given(_uses, st.data())
def test_what_conflicts_keeps_its_order(uses, data):
    alone = data.draw(st.lists(st.booleans(), min_size=len(uses), max_size=len(uses)))
    order = [i for i in in_levels(uses, alone) if i is not None]
    assert sorted(order) == list(range(len(uses)))
    place = {i: order.index(i) for i in order}
    for i, k in itertools.combinations(range(len(uses)), 2):
        if alone[i] or alone[k] or _conflict(uses[i], uses[k]):
            assert place[i] < place[k]


@given(_uses)
def test_what_a_use_reaches_is_the_transitive_closure(uses):
    wanted = []
    for i, one in enumerate(uses):
        wanted.append({k for k in range(i) if _conflict(uses[k], one)})
        wanted[-1] |= {far for k in wanted[-1] for far in wanted[k]}
    assert [{k for k in range(len(uses)) if bits >> k & 1} for bits in reaches(uses)] == wanted


def test_barriers_are_those_of_wgpus_rules():
    read, write = use({1}, {2}), use({3}, {1})
    assert barriers([read, use({1}, {4})], [0, 1]) == 0  # both read
    assert barriers([read, write], [0, 1]) == 1  # written after it was read
    assert barriers([write, read, use({1}, {5})], [0, 1, 2]) == 1  # read once more
    assert barriers([write, write], [0, 1]) == 1
    # What a pass uses first has one barrier before the pass.
    both = [use((), {1}), use((), {2}), use({1}, {3}), use({2}, {4})]
    assert [barriers(both, order) for order in ([0, 1, 2, 3], [0, 1, None, 2, 3])] == [2, 1]
    # A fill ends the pass, and waits by itself.
    fill = use((), {1}, is_transfer=True)
    assert barriers([read, fill, read], [0, 1, 2]) == 2


def test_nothing_passes_what_is_alone():
    uses = [use((), {1}), use((), {2}), use((), {3})]
    assert in_levels(uses, [False, True, False]) == [0, 1, 2]
    assert reaches([marked(one, alone=i == 1) for i, one in enumerate(uses)]) == [0b0, 0b1, 0b11]
