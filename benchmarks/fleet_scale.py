"""How long `gridwise fleet` takes for many devices: invented members, all written as files first.

    python benchmarks/fleet_scale.py [--members 1000] [--cases 18] [--samples 20] [--json OUT]

Three of the members are sick: one at a lower clock, one slow in what moves memory, one wrong. The command has to name
them and nobody else. It runs as a process of its own.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "benchmarks/results/h200/bench.json"
SICK = {"clock": 1.08, "memory": 1.12, "wrong": 1.0}


def template(cases: int, samples: int) -> dict[str, Any]:
    """Return a results document with some of the cases and samples of a real one."""
    document: dict[str, Any] = json.loads(TEMPLATE.read_text(encoding="utf-8"))
    document["results"] = document["results"][:cases]
    for result in document["results"]:
        result["samples"] = result["samples"][:samples]
        for series in (*result["kernels"], *result["whole"]["series"].values()):
            series["samples_ns"] = series["samples_ns"][:samples]
    return document


def scaled(document: dict[str, Any], sick: str | None, dice: random.Random) -> dict[str, Any]:
    """Return the document of another device: half a percent apart from it, with half a percent of noise per case."""
    made = copy.deepcopy(document)
    device = dice.gauss(0, 0.004)
    for result in made["results"]:
        moves_memory = result["n"] >= 1 << 26
        factor = math.exp(device + dice.gauss(0, 0.003))
        if sick == "clock" or (sick == "memory" and moves_memory):
            factor *= SICK[sick]
        for series in (*result["kernels"], *result["whole"]["series"].values()):
            summary = series.get("summary") or {}
            summary |= {name: value * factor for name, value in summary.items() if name.endswith("_ns")}
        for times in (*result["kernels"], result["whole"]):
            times |= {
                name: value * factor
                for name, value in times.items()
                if name.endswith("_ns") and isinstance(value, float)
            }
        # The canary follows the clock, and nothing else.
        clock = SICK["clock"] if sick == "clock" else 1.0
        result["canary_ns"] = [21_000.0 * clock * math.exp(dice.gauss(0, 0.002)) for _ in range(4)]
        if sick == "clock":
            observed = {"sm_clock_mhz": 1830, "max_sm_clock_mhz": 1980, "throttle_reasons": ["sw_thermal_slowdown"]}
            result["observations"] = {"blocks": [{"before": observed, "after": observed}]}
    if sick == "wrong":
        made["results"][0] |= {"correct": False, "mismatch": "item 7"}
    return made


def main() -> None:
    """Write the members, run the command twice, and check what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=18)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    dice = random.Random(1)
    document = template(options.cases, options.samples)
    with tempfile.TemporaryDirectory() as folder:
        sick = dict(zip(("node5-gpu1", "node9-gpu0", "node2-gpu3"), SICK, strict=True))
        names = [f"node{k // 8}-gpu{k % 8}" for k in range(options.members)]
        total = 0
        for name in names:
            path = Path(folder, f"{name}.json")
            path.write_text(json.dumps(scaled(document, sick.get(name), dice)), encoding="utf-8")
            total += path.stat().st_size
        fleet = Path(folder, "all.fleet.json")
        paths = [str(Path(folder, f"{name}.json")) for name in names]
        begin_s = time.perf_counter()
        command = [sys.executable, "-m", "gridwise_py", "fleet", *paths, "--json", str(fleet)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        wall_s = round(time.perf_counter() - begin_s, 2)
        members = json.loads(fleet.read_text(encoding="utf-8"))["members"]
        named = {member["id"]: member["verdict"] for member in members if member["verdict"] != "as peers"}
        expected = {"node5-gpu1": "slow", "node9-gpu0": "slow", "node2-gpu3": "wrong"}
        report = {
            "members": options.members, "cases": options.cases, "cpus": os.cpu_count(), "files_bytes": total,
            "wall_s": wall_s, "named": named,
            "as_expected": named == expected and done.returncode == 4,
        }  # fmt: skip
        text = json.dumps(report, indent=1)
        print(text)
        print(done.stdout, done.stderr)
        if options.json is not None:
            options.json.write_text(text + "\n", encoding="utf-8")
        sys.exit(not report["as_expected"])


if __name__ == "__main__":
    main()
