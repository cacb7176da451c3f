"""What README.md says of machines and versions: the table "tested on", made from results files, and two lines.

Usage: python scripts/make_first_screen.py

Writes them into README.md, between their marks. The start page of the site is made from README.md
(docs/_ext/repository_pages.py), with the files as they are at that build.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import gridwise_py as gw

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
#: The file of the picture (benchmarks/peers/first_picture.py).
PICTURE = RESULTS / "h200" / "first.json"

#: Results of tests, by the beginning of the file's name; all other files are of benchmarks.
TESTS = {"suite": "suite", "random_plans": "random plans", "soak": "soak"}
#: What WebGPU promises and has a row until it was tested, and what in the adapter or system of a run shows that it was.
PROMISED = {
    ("AMD and Intel GPUs", "Vulkan"): r"\b(AMD|Radeon|Intel)\b",
    ("macOS", "Metal"): r"\b(Darwin|Mac\w*)\b",
    ("Windows", "Direct3D 12, Vulkan"): r"\b(Windows|Win32)\b",
}


@dataclass(frozen=True)
class Run:
    """What ran on one machine: the content of one file."""

    adapter: str
    driver: str
    engine: str
    system: str
    day: str
    kind: str
    words: str


def _kind(path: Path) -> str:
    return next((words for name, words in TESTS.items() if path.name.startswith(name)), "benchmarks")


def _engine(versions: Mapping[str, str]) -> tuple[str, bool]:
    """Return the engine by its package, and whether it is Dawn."""
    dawn = versions.get("dawn")
    return (f"Dawn by wgpudawn {dawn.split()[0]}", True) if dawn else (f"wgpu-py {versions['wgpu']}", False)


def _short(driver: str) -> str:
    """Return the version in Dawn's words of a driver: 'NVIDIA: 580.159.04 580.159.4.0'."""
    return driver.split(": ")[-1].split()[0]


def runs(folder: Path = RESULTS) -> Iterator[Run]:
    """Give what each file with a machine and a day says."""
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            continue
        kind, device = _kind(path), document.get("device")
        if kind == "suite":
            engine, is_dawn = _engine(document["versions"])
            counts = {"passed": 0, "failed": 0, "skipped": 0} | document["outcomes"]
            words = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
            words += "".join(f", without {folder}" for folder in document.get("left_out", ()))
            for name in dict.fromkeys(document["adapters"]):
                adapter, backend, driver = name.rsplit(", ", 2)
                system = document["host"]["system"]
                driver = _short(driver) if is_dawn else driver
                yield Run(adapter, driver, f"{engine}, {backend}", system, document["time"][:10], kind, words)
        elif document.get("schema") and "bundle_sha256" in document:
            page = gw.read_results(path)
            about, context = page.device, page.context
            system = context.host.system
            yield Run(about.adapter, about.driver, about.backend, system, context.time[:10], kind, "")
        elif isinstance(device, dict) and "adapter" in device and "versions" in document.get("context", {}):
            context = document["context"]
            engine, is_dawn = _engine(context["versions"])
            driver = _short(device["driver"]) if is_dawn else device["driver"]
            about = (device["adapter"], driver, f"{engine}, {device['backend']}", context["host"]["system"])
            yield Run(*about, context["time"][:10], kind, "")


def _days(days: list[str]) -> str:
    return " to ".join(dict.fromkeys((min(days), max(days)))) if days else "–"


def _tests(some: list[Run]) -> str:
    """Return the newest run of each kind of tests."""
    cells = []
    for kind in TESTS.values():
        found = [run for run in some if run.kind == kind]
        if found:
            newest = max(found, key=lambda run: run.day)
            cells.append(f"{kind}: {newest.words + ', ' if newest.words else ''}{newest.day}")
    return "; ".join(cells) or "–"


def machine_table(folder: Path = RESULTS) -> list[str]:
    """Return the lines of the table: machines by what ran on them, and what was promised and never tried."""
    machines: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs(folder):
        machines.setdefault((run.adapter, run.driver, run.engine), []).append(run)
    # First those with a suite, then by the last day.
    order = sorted(machines.items(), key=lambda one: max(run.day for run in one[1]), reverse=True)
    order.sort(key=lambda one: all(run.kind != "suite" for run in one[1]))
    lines = ["| adapter | driver | engine | tests | benchmarks |", "| --- | --- | --- | --- | --- |"]
    for about, some in order:
        benchmarks = _days([run.day for run in some if run.kind == "benchmarks"])
        lines.append(f"| {' | '.join([*about, _tests(some), benchmarks])} |")
    seen = " ".join(f"{run.adapter} {run.system}" for some in machines.values() for run in some)
    lines += [
        f"| {name} |  | {engine} | untested | untested |"
        for (name, engine), pattern in PROMISED.items()
        if not re.search(pattern, seen, re.IGNORECASE)
    ]
    return lines


def versions(document: Mapping[str, Any]) -> str:
    """Return what a file of benchmarks/peers/ was measured on and with."""
    device, own = document["device"], document["context"]["versions"]

    def first(peer: str, key: str) -> Any:
        return next((r["sides"][peer][key] for r in document["results"] if key in r["sides"].get(peer, {})), None)

    words = [f"{device['adapter']} (driver {device['driver']}, {device['backend']})", f"wgpu-py {own['wgpu']}"]
    words.append(f"gridwise_py {own['gridwise_py']}")
    cub, torch = first("cub", "cub_version"), first("torch", "version")
    if cub is not None:
        words.append(f"CUB {cub // 100_000}.{cub // 100 % 1000}.{cub % 100}")
    if torch is not None:
        words.append(f"PyTorch {torch.partition('+')[0]}")
    return ", ".join(words)


def caption(document: Mapping[str, Any]) -> list[str]:
    """Return the line under the picture: its machine, versions and day."""
    day = date.fromisoformat(document["context"]["time"][:10])
    return [f"{versions(document)}; {day.day} {day:%B %Y}."]


def version() -> list[str]:
    """Return the line of version, licence and repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]
    return [
        f"Version {gw.__version__} ([changes](CHANGELOG.md)), licence [{project['license']}](LICENSE), repository "
        f"[{repository.removeprefix('https://')}]({repository})."
    ]


def filled(readme: str) -> str:
    """Return the page with what is made, between its marks."""
    made = {
        "version": version(),
        "caption": caption(json.loads(PICTURE.read_text(encoding="utf-8"))),
        "tested on": machine_table(),
    }
    for name, lines in made.items():
        parts = re.split(rf"(<!-- made: {name} -->\n).*?(?=<!-- end -->)", readme, flags=re.DOTALL)
        if len(parts) != 3:
            raise ValueError(f"the page must have <!-- made: {name} --> and <!-- end --> once")
        readme = "".join([*parts[:2], *(f"{line}\n" for line in lines), parts[2]])
    return readme


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
