"""Each example runs as it stands, in a process of its own, and prints what it promises."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

TIME = r"\d[\d.]* (ns|µs|ms|s)"
ADDS = rf"TimingResult\(per trial of 1: vector_add {TIME}; GPU span {TIME}, CPU wall not measured\)"
SCANS = rf"TimingResult\(per trial of \d+: .*scan.* {TIME}; GPU span {TIME}, CPU wall {TIME}\)"

#: Regular expressions that lines must match, in this order.
LINES = {
    "time_a_scan.py": [SCANS, r"PerTrial\(gpu_total_time_ns=\[.*\], .*\)", r"\[ *1 +2 +3 \.\.\. .* 1000000\]"],
    "own_kernel.py": [
        rf"TimingResult\(per trial of 10: square {TIME}; GPU span {TIME}, CPU wall {TIME}\)",
        r"\[ 0\.  1\.  4\.  9\. 16\.\]",
    ],
    "two_on_one_encoder.py": [
        "no times yet: the encoder is not submitted",
        rf"TimingResult\(per trial of 1: reduce.*; GPU span {TIME}, CPU wall not measured\)",
        r"  reduce.*: [\d.]+ µs on the GPU",
        ADDS,
        r"  vector_add: [\d.]+ µs on the GPU",
        r"mean of a \+ b: 999\.342",
    ],
    "notebook_async.py": [SCANS, "last item: 1000000", "the event loop went on meanwhile: True"],
    "own_operator.py": ["xor: (0x[0-9a-f]{8}), numpy: \\1", "affine scan equals numpy: True"],
    "shared_with_pygfx.py": [
        rf"TimingResult\(per trial of 1: .*scan.* {TIME}; GPU span {TIME}, CPU wall not measured\)",
        "drawn columns: 320 of 320",
    ],
}


def test_all_examples_are_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(LINES)


@pytest.mark.parametrize("name", LINES)
def test_it_runs(device, name):
    if "pygfx" in name and importlib.util.find_spec("pygfx") is None:
        pytest.skip("pygfx is not installed")
    run = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", EXAMPLES / name],
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    printed = iter(run.stdout.splitlines())
    for line in LINES[name]:
        assert any(re.fullmatch(line, got) for got in printed), f"no line {line!r} in:\n{run.stdout}"


@pytest.mark.parametrize("name", LINES)
def test_it_is_short(name):
    limit = {"time_a_scan.py": 15, "own_kernel.py": 25}.get(name, 59)
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= limit
