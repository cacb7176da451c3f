"""The kernels at every subgroup size: 4, 8 and 16 on lavapipe, in processes of their own; others emulated.

lavapipe's subgroups are as wide as the vectors that it compiles for, which it reads from the environment at its start.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from helpers.paths import with_helpers
from helpers.strategies import DATATYPES, KINDS, OPERATORS, every, quick_first
from helpers.subgroup_checks import FACTORS, FORMS, QUICK, SIZES, check, check_sort

pytestmark = pytest.mark.gpu


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
@pytest.mark.slow  # `make test` runs on SwiftShader, too, whose subgroups have 4 lanes
@pytest.mark.needs("lavapipe")
@pytest.mark.parametrize("width", SIZES, ids=lambda width: f"{SIZES[width]} lanes")
def test_native_subgroups_of_lavapipe(width):
    assert _run_at(width) == {"subgroup_size": SIZES[width], "cases": len(QUICK)}


@pytest.mark.slow
@pytest.mark.needs("lavapipe")
@pytest.mark.parametrize("width", SIZES, ids=lambda width: f"{SIZES[width]} lanes")
def test_native_subgroups_of_lavapipe_in_full(width):
    assert _run_at(width, "full")["cases"] == 3 * len(every(FACTORS))
    with pytest.raises(AssertionError, match=f"subgroups have {SIZES[width]} lanes here, not 99"):
        _run_at(width, expected=99)


@pytest.mark.parametrize(
    ("size", "form"),
    quick_first(
        [(2, "reduce"), (32, "reduce"), (128, "lookback-u32x2")], [(4, "lookback-u32x2"), (64, "reduce_then_scan")]
    ),
)
def test_emulated_subgroups(device, size, form):
    check(device, f"emulated-{size}", "affine", "u32", form, "exclusive", workgroup_size=128, blocks=9)


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 16, 32, 64, 128])
def test_sorts_with_emulated_subgroups(device, size):
    check_sort(device, f"emulated-{size}", 3000, parts=2)


@pytest.mark.slow
@pytest.mark.needs("shader-int64", "shader-int64-atomic-all-ops")
@pytest.mark.parametrize("size", [2, 4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("datatype", DATATYPES)
@pytest.mark.parametrize("form", FORMS)
def test_emulated_subgroups_in_full(device, form, op, datatype, kind, size):
    if form != "reduce" or kind == "inclusive":
        check(device, f"emulated-{size}", op, datatype, form, kind, workgroup_size=128, vecs=2, blocks=5)
