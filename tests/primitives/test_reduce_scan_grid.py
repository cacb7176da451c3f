"""Scan and reduce with default options, from 4 to 3 Mi items: the cases of Gridwise's own regression tests."""

import numpy as np
import pytest

import gridwise_py as gw
from helpers.strategies import DATATYPES, assert_same, exact_items, operator, reduce_reference, scan_reference

pytestmark = pytest.mark.thin(1)

M = 1 << 20
MATRIX = [
    *((form, d, "add", 256) for form in ("exclusive", "inclusive", "reduce") for d in DATATYPES),
    ("exclusive", "i32", "min", 256),
    ("exclusive", "i32", "max", 256),
    ("exclusive", "i32", "multiply", 16),
    ("inclusive", "u32", "min", 256),
    ("inclusive", "u32", "max", 256),
    ("reduce", "i32", "min", 256),
    ("reduce", "i32", "max", 256),
    ("exclusive", "i32", "add", 4),
    ("exclusive", "i32", "add", 65_536),
    ("reduce", "u32", "add", 65_536),
    *((form, d, "add", M) for form in ("exclusive", "reduce") for d in DATATYPES),
    *(("inclusive", d, "add", 3 * M) for d in DATATYPES),
    ("exclusive", "i32", "min", 2 * M),
    ("exclusive", "i32", "max", 2 * M),
    ("reduce", "u32", "min", 3 * M),
    ("reduce", "u32", "max", 3 * M),
]


def test_the_matrix_is_whole():
    assert len(set(MATRIX)) == 32, "54 in the original, 22 of which sort"


@pytest.mark.parametrize("strategy", ["reduce_then_scan", "lookback"])
@pytest.mark.parametrize(("form", "datatype", "op", "n"), [case for case in MATRIX if case[0] != "reduce"])
def test_scan(device, form, datatype, op, n, strategy):
    x = _items(datatype, op, n)
    scan = gw.Scan(device, datatype, operator(op, datatype), form, strategy=strategy)
    assert_same(scan.execute(input=gw.asarray(x, device)).output.to_numpy(), scan_reference(op, x, form))


@pytest.mark.parametrize(("datatype", "op", "n"), [case[1:] for case in MATRIX if case[0] == "reduce"])
def test_reduce(device, datatype, op, n):
    x = _items(datatype, op, n)
    reduce = gw.Reduce(device, datatype, operator(op, datatype))
    assert_same(reduce.execute(input=gw.asarray(x, device)).output.to_numpy(), reduce_reference(op, x))


def _items(datatype, op, n):
    """Seeded items; small whole floats, whose sums are exact."""
    if datatype == "f32":
        return np.random.default_rng(n).integers(-5, 6, n).astype(np.float32)
    return exact_items(op, datatype, n)
