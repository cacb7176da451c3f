"""What the rule of `gridwise fleet` finds, and whom it accuses falsely, on invented fleets.

The table is in docs/contribute/statistics.md.

    python benchmarks/fleet_rule.py [--fleets 200] [--json OUT]

Each fleet has 24 cases, a third bound by memory, a third by mode latency. Devices differ by a normal factor, and so do
the cases of a device (0.4 %). One device is sick. Beside our rule stands one that accuses whoever is 5 % slower in the
mean of a case's devices, in any case.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from gridwise_py.fleet.judge import judge  # noqa: E402
from gridwise_py.fleet.model import Fleet, Verdict  # noqa: E402
from helpers.fleets import fleet  # noqa: E402

ROWS: tuple[tuple[int, float, str | None, float], ...] = (
    (8, 0.005, "memory", 0.05), (64, 0.005, "all", 0.04), (64, 0.005, "host", 0.15), (64, 0.005, None, 0.0),
    (64, 0.03, "all", 0.10), (64, 0.03, "all", 0.20),
)  # fmt: skip


def by_five_percent(found: Fleet) -> list[bool]:
    """Return whether each device is 5 % slower than the mean of some case, in the order of their ids."""
    members = sorted(found.members, key=lambda member: member.id)
    times = np.array([[each.rounds_ns[0] for each in member.measured] for member in members])
    return [bool(slow) for slow in (times > 1.05 * times.mean(axis=0)).any(axis=1)]


def row(devices: int, spread: float, sick: str | None, share: float, fleets: int) -> dict[str, Any]:
    """Return how often each rule finds the sick device, and how often it accuses a healthy one."""
    hits, false = np.zeros(2), np.zeros(2)
    for seed in range(fleets):
        made = fleet(devices, seed, device_std=spread, sick={0: (sick, share)})
        judged = judge(made)
        verdicts = [
            [member.verdict is Verdict.SLOW for member in judged.members],
            by_five_percent(made),
        ]
        place = [member.id for member in judged.members].index("node0-gpu0")
        for rule, accused in enumerate(verdicts):
            hits[rule] += accused[place]
            false[rule] += sum(accused) - accused[place]
    healthy = fleets * (devices - 1)
    return {
        "devices": devices, "spread": spread, "sick": sick, "share": share, "fleets": fleets,
        "found": hits[0] / fleets, "falsely": false[0] / healthy,
        "found_by_5_percent": hits[1] / fleets, "falsely_by_5_percent": false[1] / healthy,
    }  # fmt: skip


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [row(*given, options.fleets) for given in ROWS]
    for each in rows:
        print(
            f"{each['devices']:3} devices ±{100 * each['spread']:.1f} %, {each['sick'] or 'nobody'} "
            f"+{100 * each['share']:.0f} %: ours {100 * each['found']:.0f} % / {100 * each['falsely']:.2f} %, 5 % rule "
            f"{100 * each['found_by_5_percent']:.0f} % / {100 * each['falsely_by_5_percent']:.2f} %"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
