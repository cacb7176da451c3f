"""The kernels at every subgroup size: 4, 8 and 16 on lavapipe, in processes of their own; others emulated.

lavapipe's subgroups are as wide as the vectors that it compiles for, which it reads from the environment at its start.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from helpers.paths import with_helpers
from helpers.strategies import (
    DATATYPES,
    KINDS,
    OPERATORS,
    every,
)
from helpers.subgroup_checks import FACTORS, FORMS, QUICK, SIZES, check, check_sort

pytestmark = [pytest.mark.gpu, pytest.mark.thin(1)]


def _run_at(width: int, *arguments: str, expected: int | None = None) -> dict[str, int]:
    environment = {
        **with_helpers(),
        "LP_NATIVE_VECTOR_WIDTH": str(width),
        # What is compiled for one width must not be found by another.
        "MESA_SHADER_CACHE_DISABLE": "true",
    }
    done = subprocess.run(
        [sys.executable, "-m", "helpers.subgroup_checks", str(expected or SIZES[width]), *arguments],
        env=environment, capture_output=True, text=True, timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# The one that differs from this machine's own, which all other tests have; the widest is slow.
@pytest.mark.needs("lavapipe")
@pytest.mark.parametrize(
    "width",
    [pytest.param(width, marks=() if SIZES[width] == 4 else pytest.mark.slow) for width in SIZES],
    ids=lambda width: f"{SIZES[width]} lanes",
)
def test_native_subgroups_of_lavapipe(width):
    assert _run_at(width) == {"subgroup_size": SIZES[width], "cases": len(QUICK)}


@pytest.mark.slow
@pytest.mark.needs("lavapipe")
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
    check(device, f"emulated-{size}", op, datatype, form, kind, workgroup_size=128, blocks=9)


@pytest.mark.parametrize("size", [2, 4, 16, 32])
def test_emulated_subgroups_of_other_sizes(device, form, size):
    check(device, f"emulated-{size}", "affine", "i32", form, "exclusive", workgroup_size=32, blocks=5)


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 16, 32, 64, 128])
def test_sorts_with_emulated_subgroups(device, size):
    check_sort(device, f"emulated-{size}", 3000, parts=2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("datatype", DATATYPES)
def test_emulated_subgroups_in_full(device, form, op, datatype, kind, size):
    if form != "reduce" or kind == "inclusive":
        check(device, f"emulated-{size}", op, datatype, form, kind, workgroup_size=128, vecs=2, blocks=5)
