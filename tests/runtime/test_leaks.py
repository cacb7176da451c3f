"""Whatever is made and dropped goes: resident memory, live wgpu objects and the executor's counts level off."""

import importlib.util

import numpy as np
import pytest

from helpers import inside
from helpers.paths import ROOT
from helpers.running import python

SCRIPT = ROOT / "benchmarks" / "leaks.py"
X = np.arange(1000, dtype=np.uint32)
MOST = {"plans": 4, "bindings": 8, "pipelines": 8}

pytestmark = [pytest.mark.needs("the repository"), pytest.mark.slow]
linux = pytest.mark.needs("linux")


@pytest.fixture(scope="module")
def leaks():
    """The script that makes the full figures."""
    spec = importlib.util.spec_from_file_location("leaks", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _check(leaks, device, name, total):
    call, full = leaks.kinds(device)[name]
    assert total < full
    counted = leaks.repeat(call, total)
    assert [c["calls"] for c in counted] == [total // leaks.ROUNDS * i for i in range(leaks.ROUNDS + 1)]
    # A leak of one small object per call is over 50 bytes; memory is given in pages and arenas.
    assert leaks.bytes_per_call(counted) < leaks.MAY_STAY_BYTES.get(name, 32) or (
        counted[-1]["resident_bytes"] - counted[1]["resident_bytes"] < 512 << 10
    ), counted
    assert counted[-1]["live_objects"] <= counted[1]["live_objects"], counted
    kept = inside.counts(device)
    most = {"plans": 256, "bindings": 256, "pipelines": 256, "modules": 256} if name == "kernel" else MOST
    assert all(kept[key] <= most[key] for key in most), kept
    assert inside.pairs_in_use(device) == 0


@linux
@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("execute", 10_000),
        ("primitive", 1_000),
        ("kernel", 1_500),
        ("profile", 200),
        ("timing", 1_000),
        ("upload", 1_000),
    ],
)
def test_memory_levels_off(fresh_device, leaks, name, total):
    _check(leaks, fresh_device, name, total)


@linux
def test_a_leak_would_be_seen():
    """In a process of its own: in this one the allocator has memory left over from other tests."""
    code = f"""
import sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import leaks
kept = []
print(leaks.bytes_per_call(leaks.repeat(lambda i: kept.append(bytes([i % 255 + 1]) * 10_000), 5000)))
"""
    assert float(python(code).stdout) > 9_000


def test_growth_of_a_gpus_memory_is_told(leaks):
    """As a discrete GPU's driver counts it; where nobody counts, nothing is said of it."""
    level = [{"calls": 100 * i, "resident_bytes": 5 << 20, "live_objects": 9, "gpu_bytes": 1 << 30} for i in range(6)]
    assert leaks.leaks_in("execute", level) == []
    grows = [{**count, "gpu_bytes": (1 << 30) + i * (3 << 20)} for i, count in enumerate(level)]
    assert (leaks.later_growth(grows, "gpu_bytes"), leaks.later_growth(grows, "calls")) == (6 << 20, 200)
    assert leaks.leaks_in("execute", grows) == []
    grows[-1]["gpu_bytes"] += 3 << 20
    assert leaks.leaks_in("execute", grows) == ["memory of the GPU"]
    unknown = [{**count, "gpu_bytes": None} for count in level]
    assert leaks.later_growth(unknown, "gpu_bytes") is None
    assert leaks.leaks_in("execute", unknown) == []
    assert leaks.leaks_in("execute", [*level[:-1], {**level[-1], "live_objects": 10}]) == ["live objects"]
