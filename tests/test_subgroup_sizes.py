"""The kernels at every subgroup size: 4, 8 and 16 on lavapipe, in processes of their own; others emulated.

lavapipe's subgroups are as wide as the vectors that it compiles for, which it reads from the environment at its start.
Run as a program, this file is that process: it is given the size to expect and prints what it found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _float_sums import TILE, compensated_scan_twin, compensated_twin, reduce_twin, scan_twin
from strategies import (
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
    pairwise,
    reduce_reference,
    scan_reference,
    strategy_options,
)

import gridwise_py as gw

FORMS = ("reduce", *STRATEGIES)
FACTORS = {"op": OPERATORS, "datatype": DATATYPES, "form": FORMS, "kind": KINDS}
# Where a tile's number comes from has nothing to do with subgroups.
NORMAL = pairwise(FACTORS | {"form": FORMS[:-1]})
SIZES = {128: 4, 256: 8, 512: 16}


def _check(device, subgroups, op, datatype, form, kind, *, workgroup_size, vecs=1, blocks=64):
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


def _check_sort(device, subgroups, n, **options):
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
    cases = every(FACTORS) if full else NORMAL
    shapes = [(16, 1), (64, 1), (32, 3)] if full else [(16, 1)]
    for workgroup_size, vecs in shapes:
        for case in cases:
            _check(device, "native", **case, workgroup_size=workgroup_size, vecs=vecs)
    if not full:  # also with many subgroups in a workgroup, and rows that a subgroup does one after another
        for form in FORMS:
            _check(device, "native", "affine", "u32", form, "inclusive", workgroup_size=64, vecs=3)
    _check_float_sums(device, 64)
    _check_reproducible_sums(device)
    for n in (300, 3000) if not full else (1, 300, 512, 513, 3000, 100_000):
        _check_sort(device, "native", n, parts=1)
    print(json.dumps({"subgroup_size": found, "cases": len(cases) * len(shapes)}))


def _run_at(width: int, *arguments: str, expected: int | None = None) -> dict[str, int]:
    if not any("llvmpipe" in adapter.name for adapter in gw.list_adapters()):
        pytest.skip("no lavapipe (Debian's mesa-vulkan-drivers), whose subgroup size can be chosen")
    environment = {
        **os.environ,
        "LP_NATIVE_VECTOR_WIDTH": str(width),
        # What is compiled for one width must not be found by another.
        "MESA_SHADER_CACHE_DISABLE": "true",
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), str(expected or SIZES[width]), *arguments],
        env=environment, capture_output=True, text=True, timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("width", SIZES, ids=lambda width: f"{SIZES[width]} lanes")
def test_native_subgroups_of_lavapipe(width):
    assert _run_at(width) == {"subgroup_size": SIZES[width], "cases": len(NORMAL)}


@pytest.mark.slow
@pytest.mark.parametrize("width", SIZES, ids=lambda width: f"{SIZES[width]} lanes")
def test_native_subgroups_of_lavapipe_in_full(width):
    assert _run_at(width, "full")["cases"] == 3 * len(every(FACTORS))


def test_a_size_other_than_the_expected_one_is_noticed():
    with pytest.raises(AssertionError, match="subgroups have 4 lanes here, not 8"):
        _run_at(128, expected=8)


@pytest.fixture(params=FORMS)
def form(request, require):
    """Reduce, or a strategy of scan that the device can do."""
    if "u64" in request.param:
        require("shader-int64", "shader-int64-atomic-all-ops")
    return request.param


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize(("op", "datatype", "kind"), [("affine", "u32", "inclusive"), ("min", "f32", "exclusive")])
def test_emulated_subgroups_of_64_and_128(device, form, op, datatype, kind, size):
    _check(device, f"emulated-{size}", op, datatype, form, kind, workgroup_size=128, blocks=9)


@pytest.mark.parametrize("size", [2, 4, 16, 32])
def test_emulated_subgroups_of_other_sizes(device, form, size):
    _check(device, f"emulated-{size}", "affine", "i32", form, "exclusive", workgroup_size=32, blocks=5)


@pytest.mark.parametrize("size", [4, 16, 32, 64, 128])
def test_sorts_with_emulated_subgroups(device, size):
    _check_sort(device, f"emulated-{size}", 3000, parts=2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("datatype", DATATYPES)
def test_emulated_subgroups_in_full(device, form, op, datatype, kind, size):
    if form != "reduce" or kind == "inclusive":
        _check(device, f"emulated-{size}", op, datatype, form, kind, workgroup_size=128, vecs=2, blocks=5)


if __name__ == "__main__":
    _main(int(sys.argv[1]), "full" in sys.argv[2:])
