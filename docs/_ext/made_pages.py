"""What the build makes before Sphinx reads its pages, from sources in the repository. None of it is committed.

| file | from |
| --- | --- |
| reference/python/*.rst | the docstrings of the public names (scripts/make_api_reference.py) |
| reference/command-line.md | the options of the command `gridwise` (command_page.py) |
| reference/made/ | names of numpy and pandas that are missing (gridwise_py/namespace.py) |
| contribute/contributing.md, changelog.md, security.md | pages in the folder above docs/ (repository_pages.py) |
| start/made/ | the beginning of README.md (repository_pages.py) |
| benchmarks/against-peers.md, benchmarks/made/ | the results files (benchmark_pages.py) |
| contribute/made/ | the results files of `gridwise reproduce`, and benchmarks/gates.py |
| _static/made-keywords.js | the comments `keywords` of pages, for the search (questions.js) |
| assets/made/ | pictures: the import graph (import_graph.py), the results (benchmark_pages.py) |
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import benchmark_pages
import command_page
import gates
import import_graph
import make_api_reference
import repository_pages
import short_docstrings
from sphinx.application import Sphinx

import gridwise_py as gw

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def _write(files: dict[Path, str]) -> None:
    """Write the files that changed: Sphinx reads again what is newer than its last build."""
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def keywords() -> str:
    """Return what users type and a page does not say, by page: its comment ``<!-- keywords: … -->``."""
    found = {}
    for page in sorted(DOCS.rglob("*.md")):
        if words := re.search(r"^<!-- keywords: ([^>]*) -->$", page.read_text(encoding="utf-8"), re.MULTILINE):
            found[page.relative_to(DOCS).with_suffix("").as_posix()] = " ".join(words[1].split())
    return f"const KEYWORDS = {json.dumps(found, indent=1)};\n"


def claims(document: dict[str, Any]) -> str:
    """Return a table of the outcomes, with the device and the day above it."""
    device, context = document["device"], document["context"]
    lines = [
        f"{device['adapter']} ({device['backend']}, {device['driver']}), {context['time'][:10]}:",
        "",
        "| experiment | verdict | measured |",
        "| --- | --- | --- |",
        *(f"| `{each['name']}` | {each['verdict']} | {each['reason']} |" for each in document["experiments"]),
        "",
    ]
    return "\n".join(lines)


def make(_app: Sphinx) -> None:
    """Make everything."""
    make_api_reference.write(DOCS / "reference" / "python")
    files = repository_pages.write()
    files[DOCS / "reference" / "command-line.md"] = command_page.command_line()
    files[DOCS / "reference" / "made" / "numpy-missing.txt"] = make_api_reference.missing_names()
    files |= benchmark_pages.write(DOCS / "benchmarks", DOCS / "assets" / "made")
    tables = {
        "claims-h100": (claims, "h100/claims.json"),
        "gates": (gates.summary, "gates_audit.json"),
    }
    for name, (table, path) in tables.items():
        figures = json.loads((ROOT / "benchmarks" / "results" / path).read_text(encoding="utf-8"))
        files[DOCS / "contribute" / "made" / f"{name}.md"] = table(figures)
    files[DOCS / "_static" / "made-keywords.js"] = keywords()
    files |= import_graph.write(DOCS / "assets" / "made")
    _write(files)


def shorten(_app: Sphinx, what: str, name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    """Leave out of a docstring what other pages say; see short_docstrings.py."""
    text = "\n".join(lines)
    owner = getattr(gw, name.split(".")[1], None)
    of_primitive = inspect.isclass(owner) and issubclass(owner, gw.Primitive)
    if of_primitive and owner is not gw.Primitive and name.endswith(".execute"):
        lines[:] = [short_docstrings.call(inspect.getdoc(owner) or "")]
    elif what != "exception":
        linked = name.split(".")[1] not in make_api_reference.LINKED_ONCE
        internal = make_api_reference.INTERNAL.get(name.split(".")[1], "").split()
        found = short_docstrings.shortened(text, of_primitive=of_primitive, linked=linked, internal=internal)
        # The comment: napoleon takes what is before a colon of the first line for the type of a property.
        lines[:] = [*(["..", ""] if what in ("property", "attribute") else []), *found.split("\n")]


def escape_bars(_app: Sphinx, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Escape the bars of |x|, which reStructuredText would take for a substitution."""
    for i, line in enumerate(lines):
        if "|" in line and not line.lstrip().startswith((">>>", "...", "|", "+-")):
            parts = re.split(r"(``.*?``)", line)
            lines[i] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)


def signature(
    _app: Sphinx, what: str, _name: str, thing: Any, _options: Any, _given: str | None, _returned: str | None
) -> tuple[str, str | None] | None:
    """Return what a class takes: Sphinx would show the metaclass's ``*args``. The docstrings have the types."""
    if what != "class":
        return None
    try:
        found = inspect.signature(thing)
    except ValueError:
        return None
    parameters = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=parameters, return_annotation=found.empty))
    text = re.sub(r"BinOp\('(\w+)'\)", lambda name: name[1].capitalize(), text)
    return text.replace("<factory>", "..."), None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", make)
    app.connect("autodoc-process-docstring", shorten, priority=100)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True}
