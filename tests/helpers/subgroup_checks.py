"""Primitives against numpy at edge sizes, for one size of subgroups; as a program, for that of this process's lavapipe.

lavapipe's subgroups are as wide as the vectors that it compiles for, which it reads from the environment at its start.

    PYTHONPATH=tests python -m helpers.subgroup_checks LANES [full]

expects native subgroups of that many lanes, and prints what it found as JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import gridwise_py as gw
from helpers.float_sums import TILE, compensated_scan_twin, compensated_twin, reduce_twin, scan_twin
from helpers.strategies import (
    DATATYPES,
    KINDS,
    OPERATORS,
    STRATEGIES,
    assert_same,
    assert_sums_within_bound,
    edge_sizes,
    every,
    exact_items,
    make_primitive,
    operator,
    reduce_reference,
    scan_reference,
    strategy_options,
)

FORMS = ("reduce", *STRATEGIES)
FACTORS = {"op": OPERATORS, "datatype": DATATYPES, "form": FORMS, "kind": KINDS}
#: Each form, with an operator whose order shows.
QUICK = [
    {"op": "affine", "datatype": "u32", "form": "reduce", "kind": "inclusive"},
    {"op": "affine", "datatype": "i32", "form": "reduce_then_scan", "kind": "exclusive"},
    {"op": "affine", "datatype": "u32", "form": "lookback-u32x2", "kind": "inclusive"},
]
SIZES = {128: 4, 256: 8, 512: 16}


def check(device, subgroups, op, datatype, form, kind, *, workgroup_size, vecs=1, blocks=64):
    """Compare a primitive with numpy at edge sizes."""
    options = {"subgroups": subgroups, "workgroup_size": workgroup_size, "vecs": vecs}
    binop = operator(op, datatype)
    if form == "reduce":
        primitive, want = make_primitive(gw.Reduce, device, datatype, binop, **options), reduce_reference
    else:
        primitive = make_primitive(gw.Scan, device, datatype, binop, kind, **strategy_options(form), **options)

        def want(op, x):
            return scan_reference(op, x, kind)

    for n in edge_sizes(4 * workgroup_size * vecs, primitive.mode.size, blocks):
        x = exact_items(op, datatype, n)
        if n or primitive.op.empty or form != "reduce":
            got = primitive.execute(input=gw.asarray(x, device), trials=2).output.to_numpy()
            assert_same(got, want(op, x), f"{op} {datatype} {form} {kind} {options} n={n}")


def _check_float_sums(device, workgroup_size):
    x = np.random.default_rng(5).random(20_001, dtype=np.float32) - np.float32(0.5)
    array, options = gw.asarray(x, device), {"subgroups": "native", "workgroup_size": workgroup_size, "vecs": 1}
    assert_sums_within_bound(
        make_primitive(gw.Reduce, device, "f32", **options).execute(input=array).output.to_numpy(), x
    )
    for strategy in ("reduce_then_scan", "lookback"):
        scan = make_primitive(gw.Scan, device, "f32", strategy=strategy, **options)
        assert_sums_within_bound(scan.execute(input=array).output.to_numpy(), x, "inclusive")


def _check_reproducible_sums(device):
    """Compare deterministic and compensated sums with their twins in numpy, which know nothing of subgroups."""
    rng = np.random.default_rng(6)
    for n in (300, 5 * TILE + 3, 70 * TILE + 1):
        x = (rng.standard_normal(n) * np.exp2(rng.integers(-12, 13, n))).astype(np.float32)
        array = gw.asarray(x, device)
        got = gw.Reduce(device, "f32", deterministic=True).execute(input=array).output.to_numpy()
        assert_same(got, reduce_twin(x), f"deterministic sum n={n}")
        got = gw.Reduce(device, "f32", compensated=True).execute(input=array).output.to_numpy()
        assert_same(got, compensated_twin(x), f"compensated sum n={n}")
        for kind in KINDS:
            got = gw.Scan(device, "f32", gw.Add, kind, deterministic=True).execute(input=array).output.to_numpy()
            assert_same(got, scan_twin(x, kind), f"deterministic {kind} scan n={n}")
            got = gw.Scan(device, "f32", gw.Add, kind, compensated=True).execute(input=array).output.to_numpy()
            assert_same(got, compensated_scan_twin(x, kind), f"compensated {kind} scan n={n}")


def check_sort(device, subgroups, n, **options):
    """Compare sorts of keys and of pairs with numpy, in passes and in one workgroup."""
    rng = np.random.default_rng(n)
    keys = rng.integers(0, 1 << 20, n, dtype=np.uint32) * np.uint32(1000)
    order = np.argsort(keys, kind="stable")
    for strategy in ("onesweep", "reduce_then_scan"):
        made = {"strategy": strategy, "subgroups": subgroups, "workgroup_size": 256, "items": 2, **options}
        got = make_primitive(gw.Sort, device, "u32", **made).execute(input=gw.asarray(keys, device)).output.to_numpy()
        assert_same(got, keys[order], f"sort {made} n={n}")
        got = make_primitive(gw.ArgSort, device, "f32", **made).execute(
            input=gw.asarray(keys.astype(np.float32), device)
        )
        expected = np.argsort(keys.astype(np.float32), kind="stable").astype(np.uint32)
        assert_same(got.output.to_numpy(), expected, f"argsort {made} n={n}")


def _main(expected: int, full: bool) -> None:
    """Check everything with native subgroups of a size; print the number of cases."""
    device = gw.request_device(adapter="llvmpipe")
    found = gw.capabilities(device).subgroup_size
    assert found == expected, f"subgroups have {found} lanes here, not {expected}"
    cases = every(FACTORS) if full else QUICK
    # Several subgroups in a workgroup, and rows that a subgroup does one after another.
    shapes = [(16, 1), (64, 1), (32, 3)] if full else [(64, 3)]
    for workgroup_size, vecs in shapes:
        for case in cases:
            check(device, "native", **case, workgroup_size=workgroup_size, vecs=vecs)
    if full:
        _check_float_sums(device, 64)
        _check_reproducible_sums(device)
    for n in (1, 300, 512, 513, 3000, 100_000) if full else (3000,):
        check_sort(device, "native", n, parts=1)
    print(json.dumps({"subgroup_size": found, "cases": len(cases) * len(shapes)}))


if __name__ == "__main__":
    _main(int(sys.argv[1]), "full" in sys.argv[2:])
