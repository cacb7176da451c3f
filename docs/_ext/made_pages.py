"""What the build makes before Sphinx reads its pages, from sources in the repository. None of it is committed.

| file | from |
| --- | --- |
| reference/command-line.md | the options of the command `gridwise` |
| reference/made/ | names of numpy and pandas that are missing (gridwise_py/namespace.py) |
| contribute/contributing.md, changelog.md, security.md | pages in the folder above docs/ |
| start/made/ | README.md's beginning; results files: tested cards, and from how many rows a GPU pays |
| benchmarks/against-peers.md, benchmarks/made/ | the results files (benchmark_pages.py) |
| contribute/made/ | the results files of `gridwise reproduce`, and benchmarks/gates.py |
| _static/made-keywords.js | the comments `keywords` of pages, for the search (questions.js) |
| assets/made/ | pictures: the import graph (import_graph.py), the results (benchmark_pages.py) |

Sphinx's autosummary makes the pages of public names (reference.py).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import benchmark_pages
import click
import gates
import import_graph
import make_first_screen
import reference
import when_a_gpu_pays

import gridwise_py as gw
from gridwise_py.cli import main as command
from gridwise_py.display.quantities import format_count

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results" / "h200"
#: Pages in the folder above docs/, by where the site has them.
ABOVE = {
    "CONTRIBUTING.md": "contribute/contributing.md",
    "CHANGELOG.md": "contribute/changelog.md",
    "SECURITY.md": "contribute/security.md",
}


def relocated(text: str, to: str) -> str:
    """A page of the folder above docs/ with the links that it needs at `to` in docs/."""

    def link(found: re.Match[str]) -> str:
        path, sharp, anchor = found[2].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return found[0]
        target = DOCS / ABOVE[path] if path in ABOVE else ROOT / path
        return f"{found[1]}{os.path.relpath(target, (DOCS / to).parent)}{sharp}{anchor})"

    return re.sub(r"(\]\()([^)\s]+)\)", link, text)


def first_screen(readme: str) -> str:
    """What README.md begins with, as the start page of the site includes it: a picture for each mode."""
    text = readme.partition("<!-- first screen -->")[2].partition("<!-- end of first screen -->")[0]
    picture = r'<picture>.*?<img alt="(.*?)" src="(.*?)-light\.svg">.*?</picture>'
    both = r"![\1](\2-light.svg){.only-light}\n![\1](\2-dark.svg){.only-dark}"
    return relocated(re.sub(picture, both, text, flags=re.DOTALL), "index.md")


def command_line() -> str:
    """The page of the command: each subcommand with what its ``--help`` prints."""
    lines = [
        "# Command line",
        "",
        "`pip install '.[bench]'` installs the command `gridwise`; `python -m gridwise_py` is the same. This page is",
        "what `gridwise COMMAND --help` prints. [Exit codes](environment.md#exit-codes).",
        "",
    ]
    # click keeps the first help option that it makes for a command, so this context has the names of the command's own.
    context = click.Context(command, info_name="gridwise", **command.context_settings)
    for name in command.list_commands(context):
        inside = click.Context(command.commands[name], info_name=name, parent=context, terminal_width=100)
        text = inside.command.get_help(inside).removeprefix("Usage: ")
        lines += [f"## gridwise {name}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def keywords() -> str:
    """What users type and a page does not say, by page: its comment ``<!-- keywords: … -->``."""
    found = {}
    for page in sorted(DOCS.rglob("*.md")):
        if words := re.search(r"^<!-- keywords: ([^>]*) -->$", page.read_text(encoding="utf-8"), re.MULTILINE):
            found[page.relative_to(DOCS).with_suffix("").as_posix()] = " ".join(words[1].split())
    return f"const KEYWORDS = {json.dumps(found, indent=1)};\n"


def claims(document: dict[str, Any]) -> str:
    """A table of the outcomes, with the device and the day above it."""
    device, rows = document["device"], document["experiments"]
    about = f"{device['adapter']} ({device['backend']}, {device['driver']}), {document['context']['time'][:10]}:"
    lines = [f"| `{each['name']}` | {each['verdict']} | {each['reason']} |" for each in rows]
    return "\n".join([about, "", "| experiment | verdict | measured |", "| --- | --- | --- |", *lines, ""])


def rows_that_pay(path: Path) -> list[str]:
    """A table of a file of benchmarks/when_a_gpu_pays.py: from how many rows each operation is faster."""
    if not path.exists():
        return ["Not measured yet: `python benchmarks/when_a_gpu_pays.py --json FILE` measures it on your machine.", ""]
    document = json.loads(path.read_text(encoding="utf-8"))
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in document["results"]:
        if row["datatype"] == "f64":  # what frames hold; the file has float32, too
            groups.setdefault(row["operation"], []).append(row)
    sides = (when_a_gpu_pays.HOST, when_a_gpu_pays.RESIDENT)
    heads = ["operation", "numpy in, numpy out", "on the GPU", "at 2^26 or 10^8", "on the GPU", "beside"]
    lines = [f"| {' | '.join(heads)} |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for name, rows in groups.items():
        last = max(rows, key=lambda row: row["n"])
        peer, peer_ns = when_a_gpu_pays.best_peer(last) or ("", 0.0)
        least = [when_a_gpu_pays.pays_from(rows, side) for side in sides]
        ratios = [peer_ns / ns if (ns := last["sides"][side]) else None for side in sides]
        times = ["–" if ratio is None else f"{ratio:,.{max(0, 3 - len(str(int(ratio))))}f}×" for ratio in ratios]
        counts = ["–" if n is None else format_count(n) for n in least]
        lines.append(f"| {name} | {' | '.join([*counts, *times])} | {peer} |")
    return [*lines, "", *make_first_screen.caption(document), ""]


def made() -> dict[str, str]:
    """The text of each file, by its path in docs/."""
    results = {
        name: json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))
        for name in ("h100/claims.json", "gates_audit.json")
    }
    readme = make_first_screen.filled((ROOT / "README.md").read_text(encoding="utf-8"))
    return {
        **{to: relocated((ROOT / name).read_text(encoding="utf-8"), to) for name, to in ABOVE.items()},
        **benchmark_pages.made(),
        **import_graph.made(),
        "start/made/first-screen.md": first_screen(readme),
        "start/made/tested-on.md": "\n".join([*make_first_screen.machine_table(), ""]),
        "start/made/when-a-gpu-pays.md": "\n".join(rows_that_pay(RESULTS / "when_a_gpu_pays.json")),
        "reference/command-line.md": command_line(),
        "reference/made/numpy-missing.txt": reference.missing_names(),
        "contribute/made/claims-h100.md": claims(results["h100/claims.json"]),
        "contribute/made/gates.md": gates.summary(results["gates_audit.json"]),
        "_static/made-keywords.js": keywords(),
    }


def write() -> None:
    """Write the files that changed, which Sphinx then reads again, and remove pages of names that are gone."""
    for name, text in made().items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for page in (DOCS / "reference" / "python").glob("*/*.rst"):
        if not hasattr(gw, page.stem.removesuffix("-class")):
            page.unlink()
