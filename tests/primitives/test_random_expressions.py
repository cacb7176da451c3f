"""Random expressions on the GPU against their values in numpy, which must be the same bits.

Leaves are small integers, so that no operation rounds, and a compiler may contract products and sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.types.expression import as_node, operation

LEAVES = {
    "f32": [gw.f32("x"), gw.f32("y"), gw.leaf("half", "f16"), gw.f32("p", components=2).y],
    "u32": [gw.u32("k"), gw.leaf("byte", "u8"), gw.index],
    "i32": [gw.i32("d"), gw.leaf("short", "i16")],
    "bool": [gw.leaf("mask", "bool")],
}
TABLE = gw.f32("table")


def _numbers(kind: str) -> st.SearchStrategy[Any]:
    if kind == "bool":
        return st.booleans().map(as_node)
    low = 0 if kind == "u32" else -2
    make = {"f32": np.float32, "u32": np.uint32, "i32": np.int32}[kind]
    return st.integers(low, 2).map(lambda value: as_node(make(value)))


@st.composite
def expressions(draw: Any, kind: str, depth: int) -> Any:
    """Draw an expression of a type."""
    if depth == 0:
        return draw(st.one_of(st.sampled_from(LEAVES[kind]), _numbers(kind)))

    def sub(other: str = kind) -> Any:
        return draw(expressions(other, depth - 1))

    common = ["where", "previous", "next", "flip", "gather"]
    own = {
        "f32": ["+", "-", "*", "minimum", "maximum", "floor", "abs", "negative", "sign", "cast i32", "table"],
        "u32": ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "not", "popcount", "cast bool", "cast i32"],
        "i32": ["+", "-", "*", "//", "%", "&", "^", ">>", "minimum", "abs", "negative", "not", "cast u32"],
        "bool": ["&", "|", "^", "not", "compare f32", "compare u32", "compare i32"],
    }[kind]
    what = draw(st.sampled_from(own + common))
    if what == "where":
        return gw.where(sub("bool"), sub(), sub())
    if what in ("previous", "next", "flip"):
        return getattr(gw, what)(sub())
    if what == "gather":
        ends = gw.where(gw.leaf("mask", "bool"), sub(), sub())  # a leaf, since gw.index alone has no end
        return ends[sub(draw(st.sampled_from(["u32", "i32"])))]
    if what == "table":
        return TABLE[sub("u32")]
    if what.startswith("cast"):
        return getattr(gw, kind)(sub(what[5:]))
    if what.startswith("compare"):
        symbol = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
        other = what[8:]
        return operation(symbol, sub(other), sub(other))
    if what in ("<<", ">>"):
        amount = sub("u32")
        return sub() << amount if what == "<<" else sub() >> amount
    if what in ("floor", "abs", "negative", "sign", "not", "popcount"):
        return operation(what, sub())
    return operation(what, sub(), sub())


def _given(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    small = rng.integers(-2, 3, (8, n))
    return {
        "x": small[0].astype(np.float32), "y": small[1].astype(np.float32), "half": small[2].astype(np.float16),
        "p": rng.integers(-2, 3, 2 * n).astype(np.float32), "k": rng.integers(0, 1 << 32, n, dtype=np.uint32),
        "byte": rng.integers(0, 256, n).astype(np.uint8), "d": rng.integers(-9, 9, n).astype(np.int32),
        "short": rng.integers(-(1 << 15), 1 << 15, n).astype(np.int16), "mask": small[3] > 0,
        "table": rng.integers(-2, 3, 7).astype(np.float32),
    }  # fmt: skip


def _check(device: Any, data: st.DataObject, depth: int) -> None:
    kind = data.draw(st.sampled_from(list(LEAVES)))
    # With a leaf that says how many items there are.
    made = data.draw(expressions(kind, depth))
    made = gw.where(gw.leaf("mask", "bool"), made, made)
    n = data.draw(st.sampled_from([1, 3, 64, 1_029]))
    store = gw.Map(device, made)
    given = {name: items for name, items in _given(n, depth).items() if name in store.signature.inputs}
    found = store.execute(**{name: gw.asarray(items, device) for name, items in given.items()}).output.to_numpy()
    wanted = made.numpy(**given)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


# Each one compiles a kernel: `make peers` tries thousands, and this shows that nothing is broken at large.
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_expressions(device, data):
    _check(device, data, 3)


@pytest.mark.slow
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), depth=st.integers(1, 4))
def test_many_random_expressions(device, data, depth):
    _check(device, data, depth)
