"""What the page of `gridwise browser` costs its own thread: how soon it is ready, and its time per timed pass.

``python benchmarks/browser/page_cost.py PAGE.html`` opens it in Chromium on SwiftShader, and prints JSON: milliseconds
until Start can be pressed (of some visits), and µs of the page's thread to record a pass with timestamps, with one
dispatch and with many. The time that the GPU's process takes is not in it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from helpers.chromium import browser, find_chromium
from helpers.tint import WEBGPU_FLAGS

READY = "document.documentElement?.dataset.ready == 'yes'"
NOTE_WHEN_READY = """
new MutationObserver(() => {
  if (document.documentElement?.dataset.ready) window.ready_ms ??= performance.now();
}).observe(document, {subtree: true, childList: true, attributes: true});
"""
# As a block of samples records them: 1,000 passes in one encoder.
RECORD = """
(async () => {
  const gpu = await Gpu.open(view.bundle, navigator.gpu);
  const bound = await gpu.bind(gpu.plan(view.bundle.own.nothing));
  const us = {};
  for (const trials of [1, 101]) {
    const found = [];
    for (let i = 0; i < 30; ++i) {
      gpu.spans = 0;
      const begin = performance.now();
      gpu.commands((encoder) => { for (let k = 0; k < 1000; ++k) gpu.encode(encoder, bound, trials, true); });
      found.push(performance.now() - begin);
      await gpu.idle();
    }
    us[trials] = found.sort((a, b) => a - b)[found.length >> 1];
  }
  gpu.device.destroy();
  return us;
})()
"""


def main() -> int:
    """Print the costs of a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--visits", type=int, default=5)
    options = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("there is no Chromium on PATH")
    ready_ms = []
    with browser(chromium, *WEBGPU_FLAGS, timeout_s=120.0) as new_page:
        for _ in range(options.visits):
            page = new_page()
            page.run_first(NOTE_WHEN_READY)
            page.open(options.page, READY)
            ready_ms.append(page.evaluate("ready_ms"))
            if len(ready_ms) < options.visits:
                page.close()
        us = page.evaluate(RECORD)
    one, many = us["1"], us["101"]
    print(json.dumps({
        "page_bytes": options.page.stat().st_size,
        "ready_ms": {"median": statistics.median(ready_ms), "all": ready_ms},
        "us_per_timed_pass": one,
        "us_per_further_dispatch": round((many - one) / 100, 3),
    }, indent=1))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
