"""Make docs/assets/fleet.png: the report of 64 simulated devices of which 3 are sick. Needs Chromium and the extra bench.

    .venv/bin/python scripts/make_fleet_pictures.py [--keep FOLDER]

The members are made from one file of measurements, with noise, and are called simulated. One device runs at a lower
clock, one is slow in what moves memory, one gives a wrong result.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests")]

from fleet_scale import scaled, template  # noqa: E402

from helpers.chromium import browser, find_chromium  # noqa: E402

SICK = {"node3-gpu5": "clock", "node6-gpu1": "memory", "node2-gpu7": "wrong"}
DRAWN = "document.readyState == 'complete' && document.documentElement.dataset.drawn == 'yes'"
WIDTH, HEIGHT, MAP_HEIGHT = 1280, 780, 1120


def make_report(folder: Path) -> Path:
    """Write the members, judge them, and return the report."""
    dice = random.Random(7)
    document = template(21, 12)
    document["device"] |= {"adapter": "Simulated GPU", "driver": "simulated"}
    document["context"] |= {"suite": "quick"}
    names = [f"node{host}-gpu{gpu}" for host in range(8) for gpu in range(8)]
    for name in names:
        made = scaled(document, SICK.get(name), dice)
        (folder / f"{name}.json").write_text(json.dumps(made), encoding="utf-8")
    gridwise = [sys.executable, "-m", "gridwise_py"]
    fleet, page = folder / "today.fleet.json", folder / "today.html"
    files = [str(folder / f"{name}.json") for name in names]
    done = subprocess.run([*gridwise, "fleet", *files, "--json", str(fleet)], text=True, capture_output=True, cwd=ROOT)
    print(done.stdout, done.stderr)
    assert done.returncode == 4, "a wrong result decides the exit code"
    subprocess.run([*gridwise, "report", str(fleet), "-o", str(page)], check=True, cwd=ROOT)
    return page


def main() -> None:
    """Make the report and its picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="Write members and report into this folder, too.")
    options = parser.parse_args()
    path = find_chromium()
    if path is None:
        sys.exit("no chromium on PATH")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        page = make_report(folder)
        with browser(path) as new:
            opened = new()
            opened.look(width=WIDTH, height=HEIGHT)
            opened.open(page, DRAWN)
            print("complaints of the page:", opened.complaints)
            opened.evaluate("document.querySelector('#fleet').scrollIntoView()")
            opened.picture(ROOT / "docs/assets/fleet.png")
            opened.look(width=WIDTH, height=MAP_HEIGHT)
            opened.evaluate("document.querySelector('[data-chart=fleet-0-map-0]').closest('figure').scrollIntoView()")
            opened.picture(ROOT / "docs/assets/fleet-map.png")


if __name__ == "__main__":
    main()
