"""Make the pictures of pages in docs/assets: `gridwise browser`, a report, a fleet. Needs Chromium and the extra bench.

    .venv/bin/python scripts/make_pictures.py [browser|report|fleet] [--keep FOLDER]

The page for browsers runs on SwiftShader, in a minute. The report is of a run on an H200. The fleet is 64 devices made
from one file of measurements, with noise, and called simulated: one runs at a lower clock, one is slow in what moves
memory, one gives a wrong result.
"""

from __future__ import annotations

import argparse
import base64
import json
import lzma
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests")]

from fleet_scale import scaled, template  # noqa: E402 - the paths come first

from gridwise_py import __version__  # noqa: E402
from helpers.chromium import Page, browser, find_chromium  # noqa: E402
from helpers.measuring_page import DONE, READY  # noqa: E402
from helpers.tint import WEBGPU_FLAGS  # noqa: E402

ASSETS = ROOT / "docs/assets"
RUN = ROOT / "benchmarks/results/h200/instrument/run3.json.xz"
SICK = {"node3-gpu5": "clock", "node6-gpu1": "memory", "node2-gpu7": "wrong"}
DRAWN = "document.readyState == 'complete' && document.documentElement.dataset.drawn == 'yes'"
FULL, WIDE, PHONE = 1120, 718, 390  # pixels; wide and phone side by side, with gap and borders, are as wide as full


def gridwise(*arguments: object, code: int = 0) -> None:
    """Run a command of gridwise, which has to end with a code."""
    done = subprocess.run([sys.executable, "-m", "gridwise_py", *map(str, arguments)], cwd=ROOT)
    assert done.returncode == code, f"exit code {done.returncode}, not {code}"


def shot(page: Page, first: str, last: str) -> bytes:
    """Take a picture of the page from the top of one element to the bottom of another, as wide as the window."""
    top, bottom, width = page.evaluate(
        "document.activeElement.blur(),"  # a ring is for keyboards
        f"[document.querySelector({json.dumps(first)}).getBoundingClientRect().top + scrollY - 6,"
        f" document.querySelector({json.dumps(last)}).getBoundingClientRect().bottom + scrollY + 14, innerWidth]"
    )
    clip = {"x": 0, "y": max(0, top), "width": width, "height": bottom - max(0, top), "scale": 1}
    answer = page.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    return base64.b64decode(answer["data"])


def save(new_page: Callable[[], Page], name: str, *rows: list[bytes]) -> None:
    """Write a picture: rows of shots, each with a border."""
    html = (
        "<!doctype html><style>body { margin: 0 } p { display: flex; gap: 10px; align-items: start; margin: 0 0 10px }"
        "p:last-child { margin: 0 } img { border: 1px solid #8888; border-radius: 6px }</style>"
    )
    for row in rows:
        html += "<p>" + "".join(f'<img src="data:image/png;base64,{base64.b64encode(data).decode()}">' for data in row)
    page = new_page()
    page.look(width=FULL + 2)
    page.evaluate(f"document.write({json.dumps(html)})")
    page.evaluate("Promise.all([...document.images].map((image) => image.decode())).then(() => true)")
    path = ASSETS / f"{name}.png"
    path.write_bytes(shot(page, "body", "p:last-child"))
    page.close()
    print(path.relative_to(ROOT), f"{path.stat().st_size / 1000:.0f} kB")


def dark(page: Page, width: int, first: str, last: str) -> bytes:
    """Take a picture of the page for browsers in dark colours, once its charts are drawn anew."""
    page.look(width=width, dark=True)
    page.wait("view.drawnWidth === Math.floor(document.getElementById('results').clientWidth)")
    return shot(page, first, last)


def browser_pictures(new_page: Callable[[], Page], folder: Path) -> None:
    """Make browser.png, of a run and its end, and browser-dark.png, of the figures."""
    path = folder / "page.html"
    cases = ["vector_add", "reduce", "scan", "sort", "select"]
    gridwise("browser", *cases, "-a", "n=2^12,2^14,2^16", "-a", "datatype=u32", "-o", path)
    page = new_page()
    page.look(width=WIDE)
    page.open(path, READY)
    page.evaluate("document.getElementById('start').click()")
    page.wait("view.rows.length > 9")
    running = shot(page, "main", "#table")
    page.wait(DONE)
    page.look(width=PHONE)
    save(new_page, "browser", [running, shot(page, "main", "#device")])
    save(new_page, "browser-dark", [
        dark(page, WIDE, "#speed-figure", "#share"),
        dark(page, PHONE, "#table tbody tr:nth-child(14)", "#speed-figure"),
    ])  # fmt: skip
    print("complaints of the page:", page.complaints)


def opened(new_page: Callable[[], Page], path: Path, width: int, *, dark: bool = False) -> Page:
    """Open a report."""
    page = new_page()
    page.look(width=width, dark=dark)
    page.open(path, DRAWN)
    print("complaints of the page:", page.complaints)
    return page


def report_picture(new_page: Callable[[], Page], folder: Path) -> None:
    """Make report.png: the summary, a chart, and on a phone a table of which some rows are chosen."""
    run, path = folder / "run3.json", folder / "run3.html"
    run.write_bytes(lzma.decompress(RUN.read_bytes()))
    gridwise("report", run, "-o", path)
    summary = shot(opened(new_page, path, FULL), "header", "#warnings")
    chart = shot(opened(new_page, path, WIDE, dark=True), "#primitive-2", "#primitive-2 + .charts figure")
    page = opened(new_page, path, PHONE)
    page.evaluate(
        "(() => { const field = document.querySelector('#results [data-filter]'); field.value = 'scan';"
        " field.dispatchEvent(new Event('input')); })()"
    )
    save(new_page, "report", [summary], [chart, shot(page, "#results .filter", "#results .table")])


def fleet_pictures(new_page: Callable[[], Page], folder: Path) -> None:
    """Make fleet.png, of the verdicts, and fleet-map.png, of devices and cases."""
    dice = random.Random(7)
    document = template(21, 12)
    document["device"] |= {"adapter": "Simulated GPU", "driver": "simulated"}
    document["context"]["suite"] = "quick"
    document["context"]["versions"]["gridwise_py"] = __version__
    files = [folder / f"node{host}-gpu{gpu}.json" for host in range(8) for gpu in range(8)]
    for file in files:
        file.write_text(json.dumps(scaled(document, SICK.get(file.stem), dice)), encoding="utf-8")
    fleet, path = folder / "today.fleet.json", folder / "today.html"
    gridwise("fleet", *files, "--json", fleet, code=4)  # a wrong result decides the exit code
    gridwise("report", fleet, "-o", path)
    page = opened(new_page, path, FULL)
    save(new_page, "fleet", [shot(page, "header", "#fleet ul")])
    save(new_page, "fleet-map", [shot(page, "#fleet ul + h3", "#fleet .charts + details")])


def main() -> None:
    """Make them."""
    makers = {"browser": browser_pictures, "report": report_picture, "fleet": fleet_pictures}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=[*makers, "all"], default="all")
    parser.add_argument("--keep", type=Path, help="Write the pages and what they are made of into this folder.")
    options = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        sys.exit("no chromium on PATH")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with browser(chromium, *WEBGPU_FLAGS, "--hide-scrollbars", timeout_s=300.0) as new_page:
            for name, make in makers.items():
                if options.name in (name, "all"):
                    make(new_page, folder)


if __name__ == "__main__":
    main()
