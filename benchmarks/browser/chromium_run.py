"""Runs a page of `gridwise browser` in headless Chromium, on its software adapter, and saves its file.

Usage: PYTHONPATH=tests python benchmarks/browser/chromium_run.py OUT.json [PRIMITIVE]...

Needs `chromium` on PATH. SwiftShader runs on the CPU: the figures show how a page's file is read and compared, and say
nothing about any GPU.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from gridwise_py.bench.sweep.axes import collect_axes
from gridwise_py.bench.sweep.suite import BENCH_PROTOCOL, DEFAULT_AXES, Sweep
from gridwise_py.browser.bundle import bundle_of
from helpers.chromium import browser, find_chromium
from helpers.measuring_page import visit
from helpers.tint import WEBGPU_FLAGS

AXES = {"n": "2^16,2^20", "datatype": "u32", "mode": "batch"}
PROTOCOL = replace(
    BENCH_PROTOCOL, samples=60, timeout_s=1.0, warmup_s=0.3, max_warmup_s=0.3, block_trials=20, batch_trials=None
)
TIMEOUT_S = 400.0


def main() -> None:
    """Run the page, save its file, print its rows."""
    out, *primitives = sys.argv[1:]
    chromium = find_chromium()
    if chromium is None:
        sys.exit("there is no chromium on PATH")
    sweep = Sweep(tuple(primitives or ("vector_add", "reduce", "scan")), collect_axes((), AXES, DEFAULT_AXES))
    bundle = bundle_of((sweep,), PROTOCOL, suite="browser")
    with browser(chromium, *WEBGPU_FLAGS, timeout_s=TIMEOUT_S) as new_page, tempfile.TemporaryDirectory() as folder:
        found = visit(new_page, Path(folder), bundle)
        found.save(Path(out))
        print(found.status, *(" ".join(row) for row in found.rows()), sep="\n")


if __name__ == "__main__":
    main()
