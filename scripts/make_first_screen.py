"""What README.md says of machines and versions, and the table of tested cards, made from results files.

Usage: python scripts/make_first_screen.py

Writes README's lines between their marks. The start page of the site is made from README.md (docs/_ext/made_pages.py),
and the page of tested cards has the table, with the files as they are at that build.
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
#: Of the picture (benchmarks/first_picture.py), and what README's kernels printed (benchmarks/readme_output.py). Until
#: they are there, README keeps what it has.
PICTURE, OUTPUT = (RESULTS / "h200" / name for name in ("when_a_gpu_pays.json", "readme.json"))

#: Results of tests, by the beginning of the file's name; all other files are of benchmarks.
TESTS = {"suite": "suite", "random_plans": "random plans", "soak": "soak"}
#: Of `gridwise bench --suite card`.
CARD = "card"
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
            if context.get("suite") == CARD:
                cases = gw.read_results(path).results
                right = sum(case.correct is True for case in cases)
                yield _run(context, device, CARD, f"{right} of {len(cases)} cases right")


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
    newest = {run.kind: run for run in sorted(some, key=lambda run: run.day)}
    found = [newest[kind] for kind in (*TESTS.values(), CARD) if kind in newest]
    return "; ".join(f"{run.kind}: {', '.join(filter(None, (run.words, run.day)))}" for run in found) or "–"


def machines(folder: Path = RESULTS) -> dict[tuple[str, ...], list[Run]]:
    """Runs by adapter, driver and engine: first those with a suite, then by the last day."""
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in runs(folder):
        found.setdefault((run.adapter, run.driver, run.engine), []).append(run)
    order = sorted(found.items(), key=lambda one: max(run.day for run in one[1]), reverse=True)
    return dict(sorted(order, key=lambda one: all(run.kind != "suite" for run in one[1])))


def untested(found: Mapping[tuple[str, ...], list[Run]]) -> dict[tuple[str, str], str]:
    """What was promised and has no run."""
    seen = " ".join(f"{run.adapter} {run.system}" for some in found.values() for run in some)
    return {about: each for about, each in PROMISED.items() if not re.search(each, seen, re.IGNORECASE)}


def machine_table(folder: Path = RESULTS) -> list[str]:
    """The lines of the table: machines by what ran on them, and what was promised and never tried."""
    found = machines(folder)
    lines = ["| adapter | driver | engine | tests | benchmarks |", "| --- | --- | --- | --- | --- |"]
    for about, some in found.items():
        days = sorted(run.day for run in some if run.kind == "benchmarks")
        benchmarks = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "–"
        lines.append(f"| {' | '.join([*about, _tests(some), benchmarks])} |")
    return lines + [f"| {name} |  | {engine} | untested | untested |" for name, engine in untested(found)]


def readme_line(folder: Path = RESULTS) -> list[str]:
    """The line that README has in place of the table."""
    found = machines(folder)
    tested = {run.adapter for some in found.values() for run in some if run.kind in ("suite", CARD)}
    # Short names: what stands behind the model is the memory's size and kind, or the compiler.
    names = sorted({re.split(r" \d+GB| \(", name)[0] for name in tested})
    missing = ", ".join(name for name, _ in untested(found))
    missing = f" Untested: {missing}." if missing else ""
    return [f"Tested on {', '.join(names)}.{missing} [What ran where](docs/start/tested-on.md)."]


def caption(document: Mapping[str, Any]) -> list[str]:
    """The line under the picture: its machine, versions and day."""
    device, own, peers = document["device"], document["context"]["versions"], document["peers"]
    words = [f"{device['adapter']} (driver {device['driver']}, {device['backend']})", document["cpu"]]
    words[1] += f" ({document['context']['host']['cpu_count']} cores)"
    words += [f"wgpu-py {own['wgpu']}", f"gridwise_py {own['gridwise_py']}"]
    words += [f"{name} {version}" for name, version in peers.items() if version]
    return [f"{', '.join(words)}; {_day(document)}."]


def _day(document: Mapping[str, Any]) -> str:
    day = date.fromisoformat(document["context"]["time"][:10])
    return f"{day.day} {day:%B %Y}"


def version() -> list[str]:
    """The line of version and licence."""
    licence = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license"]
    return [f"Version {gw.__version__} ([changes](CHANGELOG.md)), licence [{licence}](LICENSE)."]


def output(document: Mapping[str, Any]) -> list[str]:
    """What README's kernels printed, and where."""
    device = document["device"]
    about = f"On {device['adapter']} ({device['driver']}, {_day(document)}):"
    return [about, "```text", *document["printed"].splitlines(), "```"]


def filled(readme: str) -> str:
    """The page with what is made, between its marks."""
    made = {"tested on": [*readme_line(), *version()]}
    for name, path, lines in (("caption", PICTURE, caption), ("output", OUTPUT, output)):
        if path.exists():
            made[name] = lines(json.loads(path.read_text(encoding="utf-8")))
    for name, lines in made.items():
        parts = re.split(rf"(<!-- made: {name} -->\n).*?(?=<!-- end -->)", readme, flags=re.DOTALL)
        if len(parts) != 3:
            raise ValueError(f"the page must have <!-- made: {name} --> and <!-- end --> once")
        readme = "".join([*parts[:2], *(f"{line}\n" for line in lines), parts[2]])
    return readme


def cited(citation: str) -> str:
    """CITATION.cff with the version, and the day that CHANGELOG.md has for it, if it has one."""
    number = gw.__version__.partition(".dev")[0]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = re.sub(r"^version: .*", f"version: {number}", citation, flags=re.MULTILINE)
    day = re.search(rf"^## \[{re.escape(number)}\] - (\S+)", changes, re.MULTILINE)
    return re.sub(r"(?<=^date-released: ).*", f'"{day[1]}"', citation, flags=re.MULTILINE) if day else citation


if __name__ == "__main__":
    for path, made in ((README, filled), (ROOT / "CITATION.cff", cited)):
        path.write_text(made(path.read_text(encoding="utf-8")), encoding="utf-8")
