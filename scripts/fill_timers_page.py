"""Put the figures of `gridwise timers` into docs/concepts/why-cpu-timers-lie.md.

    python scripts/fill_timers_page.py

Each block between ``<!-- timers: MACHINE -->`` and ``<!-- end -->`` is replaced by the table of
benchmarks/results/MACHINE/timers.json, where that file is. A test fails where the page is not what this makes.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from gridwise_py.bench.report.timers import timers_markdown

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "concepts" / "why-cpu-timers-lie.md"
BLOCK = re.compile(r"(<!-- timers: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """Return the page with every block for which there are figures."""

    def fill(block: re.Match[str]) -> str:
        begin, machine, old, end = block.groups()
        figures = ROOT / "benchmarks" / "results" / machine / "timers.json"
        if not figures.exists():
            return begin + old + end
        return begin + timers_markdown(json.loads(figures.read_text(encoding="utf-8"))) + end

    return BLOCK.sub(fill, text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"filled {PAGE.name}", file=sys.stderr)
