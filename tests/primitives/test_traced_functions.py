"""Functions that a caller gives as an order or an operator: what they read may change, and nothing keeps them."""

import gc
import weakref

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside

HIGHEST = 7


def capped(a, b):
    return gw.minimum(gw.maximum(a, b), HIGHEST)


def _closure(limits):
    return lambda a, b: gw.minimum(gw.maximum(a, b), limits[0])


def _operator(function):
    return gw.BinOp.of("capped", function, identity=0, check=[0, 1])


@pytest.fixture
def items(device):
    return gw.asarray(np.array([0, 5, 9], np.int32), device)


# Every function that combines items, with the result for a highest value of its own in the last place.
CALLS = {
    "reduce": lambda x, op: gw.reduce(x, op).reshape(1),
    "reduce along an axis": lambda x, op: gw.reduce(x.reshape(1, 3), op, axis=1),
    "scan": gw.scan,
    "reduce_by_key": lambda x, op: gw.reduce_by_key(gw.asarray(np.zeros(3, np.uint32), x.device), x, op).values,
    "scan_by_key": lambda x, op: gw.scan_by_key(gw.asarray(np.zeros(3, np.uint32), x.device), x, op),
    "segmented_reduce": lambda x, op: gw.segmented_reduce(x, [0, 3], op),
    "segmented_scan": lambda x, op: gw.segmented_scan(x, [0, 3], op),
    "reduce_by_index": lambda x, op: gw.reduce_by_index(gw.asarray(np.zeros(3, np.uint32), x.device), x, op, length=1),
    "group_by": lambda x, op: gw.group_by(x * 0, largest=(x, op))["largest"],
}


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in CALLS.items()])
def test_one_operator_reads_what_changed(items, call):
    limits = [1]
    op = _operator(_closure(limits))
    found = []
    for limits[0] in (1, 7, 1):
        found.append(call(items, op).to_numpy()[-1])
    assert found == [1, 7, 1]


def test_globals_closures_default_arguments_and_objects_are_read_again(items, monkeypatch):
    limit, limits = 1, [1]

    def closed(a, b):
        return gw.minimum(gw.maximum(a, b), limit)

    def by_default(a, b, highest=limits):
        return gw.minimum(gw.maximum(a, b), highest[0])

    for limit in (1, 3, 4):
        limits[0] = limit
        monkeypatch.setitem(globals(), "HIGHEST", limit)
        for function in (capped, closed, by_default, _closure(limits)):
            assert gw.reduce(items, _operator(function)).item() == limit, function


def test_orders_are_read_again(device):
    down = False

    def before(a, b):
        return a > b if down else a < b

    x, a, b = (gw.asarray(np.array(v, np.int32), device) for v in ([3, 1, 2], [1, 5], [2, 3]))
    assert gw.sort(x, less=before).to_numpy().tolist() == [1, 2, 3]
    assert gw.merge(a, b, less=before).to_numpy().tolist() == [1, 2, 3, 5]
    down = True
    assert gw.sort(x, less=before).to_numpy().tolist() == [3, 2, 1]
    a, b = (gw.asarray(x.to_numpy()[::-1].copy(), device) for x in (a, b))
    assert gw.merge(a, b, less=before).to_numpy().tolist() == [5, 3, 2, 1]


def test_a_primitive_keeps_the_operator_that_it_was_made_with(items):
    limits = [2]
    op = _operator(_closure(limits))
    reduction, sums = gw.Reduce(items.device, "i32", op), gw.Scan(items.device, "i32", op)
    limits[0] = 9
    for primitive in (reduction, sums):
        expected = primitive.reference(items.to_numpy())
        assert expected[-1] == 2
        np.testing.assert_array_equal(primitive.execute(input=items).output.to_numpy(), expected)


def test_functions_that_do_the_same_share_a_kernel(items):
    known = [inside.kept(items.device, kind) for kind in (gw.MergeSort, gw.Reduce)]
    for kept in known:
        kept.clear()
    for _ in range(3):
        gw.sort(items, less=lambda a, b: b < a)
        gw.reduce(items, _operator(lambda a, b: gw.maximum(a, b)))
    assert [len(kept) for kept in known] == [1, 1]


def test_what_a_function_captured_goes(items):
    class Limits(list):
        pass

    limits = Limits([3])
    gone = weakref.ref(limits)
    function = _closure(limits)
    for call in CALLS.values():
        call(items, _operator(function))
    gw.sort(items, less=lambda a, b, keep=limits: b < a)
    gw.Reduce(items.device, "i32", _operator(function)).execute(input=items)
    del limits, function
    gc.collect()
    assert gone() is None
