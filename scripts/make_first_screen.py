"""What README.md says of machines and versions: the table "tested on", made from results files, and two lines.

Usage: python scripts/make_first_screen.py

Writes them into README.md, between their marks. The start page of the site is made from README.md
(docs/_ext/made_pages.py), with the files as they are at that build.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

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


class Run(NamedTuple):
    """What ran on one machine: the content of one file."""

    adapter: str
    driver: str
    engine: str
    system: str
    day: str
    kind: str
    words: str = ""


def runs(folder: Path = RESULTS) -> Iterator[Run]:
    """Yield what each file with a machine and a day says."""
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            continue
        kind = next((words for name, words in TESTS.items() if path.name.startswith(name)), "benchmarks")
        context, device = document.get("context", {}), document.get("device")
        if kind == "suite":
            counts = {"passed": 0, "failed": 0, "skipped": 0} | document["outcomes"]
            words = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
            words += "".join(f", without {folder}" for folder in document.get("left_out", ()))
            for name in dict.fromkeys(document["adapters"]):
                adapter, backend, driver = name.rsplit(", ", 2)
                machine = {"adapter": adapter, "backend": backend, "driver": driver}
                yield _run(document, machine, kind, words)
        elif document.get("schema") and "bundle_sha256" in document:
            page = gw.read_results(path)
            about, system = page.device, page.context.host.system
            yield Run(about.adapter, about.driver, about.backend, system, page.context.time[:10], kind)
        elif isinstance(device, dict) and "adapter" in device and "versions" in context:
            yield _run(context, device, kind)


def _run(context: Mapping[str, Any], device: Mapping[str, str], kind: str, words: str = "") -> Run:
    versions, driver = context["versions"], device["driver"]
    engine = f"wgpu-py {versions['wgpu']}"
    if dawn := versions.get("dawn"):
        engine = f"Dawn by wgpudawn {dawn.split()[0]}"
        driver = driver.split(": ")[-1].split()[0]  # of 'NVIDIA: 580.159.04 580.159.4.0'
    engine = f"{engine}, {device['backend']}"
    return Run(device["adapter"], driver, engine, context["host"]["system"], context["time"][:10], kind, words)


def _tests(some: list[Run]) -> str:
    """The newest run of each kind of tests."""
    newest = {run.kind: run for run in sorted(some, key=lambda run: run.day) if run.kind in TESTS.values()}
    found = [newest[kind] for kind in TESTS.values() if kind in newest]
    return "; ".join(f"{run.kind}: {', '.join(filter(None, (run.words, run.day)))}" for run in found) or "–"


def machine_table(folder: Path = RESULTS) -> list[str]:
    """The lines of the table: machines by what ran on them, and what was promised and never tried."""
    machines: dict[tuple[str, ...], list[Run]] = {}
    for run in runs(folder):
        machines.setdefault((run.adapter, run.driver, run.engine), []).append(run)
    # First those with a suite, then by the last day.
    order = sorted(machines.items(), key=lambda one: max(run.day for run in one[1]), reverse=True)
    order.sort(key=lambda one: all(run.kind != "suite" for run in one[1]))
    lines = ["| adapter | driver | engine | tests | benchmarks |", "| --- | --- | --- | --- | --- |"]
    for about, some in order:
        days = sorted(run.day for run in some if run.kind == "benchmarks")
        benchmarks = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "–"
        lines.append(f"| {' | '.join([*about, _tests(some), benchmarks])} |")
    seen = " ".join(f"{run.adapter} {run.system}" for some in machines.values() for run in some)
    untested = (about for about, pattern in PROMISED.items() if not re.search(pattern, seen, re.IGNORECASE))
    return lines + [f"| {name} |  | {engine} | untested | untested |" for name, engine in untested]


def caption(document: Mapping[str, Any]) -> list[str]:
    """The line under the picture, of a file of benchmarks/peers: its machine, versions and day."""
    device, own = document["device"], document["context"]["versions"]
    day = date.fromisoformat(document["context"]["time"][:10])
    peers = {name: side for row in document["results"] for name, side in row["sides"].items() if len(side) > 1}
    words = [f"{device['adapter']} (driver {device['driver']}, {device['backend']})", f"wgpu-py {own['wgpu']}"]
    words.append(f"gridwise_py {own['gridwise_py']}")
    if cub := peers.get("cub", {}).get("cub_version"):
        words.append(f"CUB {cub // 100_000}.{cub // 100 % 1000}.{cub % 100}")
    if torch := peers.get("torch", {}).get("version"):
        words.append(f"PyTorch {torch.partition('+')[0]}")
    return [f"{', '.join(words)}; {day.day} {day:%B %Y}."]


def version() -> list[str]:
    """The line of version, licence and repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]
    return [
        f"Version {gw.__version__} ([changes](CHANGELOG.md)), licence [{project['license']}](LICENSE), repository "
        f"[{repository.removeprefix('https://')}]({repository})."
    ]


def filled(readme: str) -> str:
    """The page with what is made, between its marks."""
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
