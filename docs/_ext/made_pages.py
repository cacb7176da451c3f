"""What the build makes before Sphinx reads its pages, from sources in the repository. None of it is committed.

| file | from |
| --- | --- |
| reference/python/*.rst | the docstrings of the public names (scripts/make_api_reference.py) |
| reference/command-line.md | the options of the command `gridwise`, as click has them |
| contribute/contributing.md, changelog.md, security.md | the pages in the folder above docs/ |
| benchmarks/against-peers.md, benchmarks/made/ | the results files (benchmark_pages.py) |
| concepts/made/ | the results files of `gridwise timers` |
| assets/made/ | pictures: the import graph (import_graph.py), the results (benchmark_pages.py) |
"""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path
from typing import Any

import benchmark_pages
import click
import import_graph
import make_api_reference
from sphinx.application import Sphinx

from gridwise_py.bench.report.timers import timers_markdown
from gridwise_py.cli import main as command

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Pages in the folder above docs/, by where the site has them.
ABOVE = {
    "CONTRIBUTING.md": "contribute/contributing.md",
    "CHANGELOG.md": "contribute/changelog.md",
    "SECURITY.md": "contribute/security.md",
}


def relocated(text: str, to: str) -> str:
    """Return a page of the folder above docs/ with the links that it needs at `to` in docs/."""

    def link(found: re.Match[str]) -> str:
        path, sharp, anchor = found[2].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return found[0]
        target = DOCS / ABOVE[path] if path in ABOVE else ROOT / path
        return f"{found[1]}{os.path.relpath(target, (DOCS / to).parent)}{sharp}{anchor})"

    return re.sub(r"(\]\()([^)\s]+)\)", link, text)


def command_line() -> str:
    """Return the page of the command: each subcommand with its help and its options."""
    lines = [
        "# Command line",
        "",
        "`pip install '.[bench]'` installs the command `gridwise`; `python -m gridwise_py` is the same. This page is",
        "made from its `--help`. [Exit codes](environment.md#exit-codes).",
        "",
    ]
    context = click.Context(command, info_name="gridwise", max_content_width=100)
    for name in command.list_commands(context):
        part = command.get_command(context, name)
        assert part is not None, name
        inside = click.Context(part, info_name=name, parent=context, max_content_width=100)
        usage = " ".join([inside.command_path, *part.collect_usage_pieces(inside)])
        lines += [f"## gridwise {name}", "", "```text", usage, "```", "", *_paragraphs(part.help or ""), ""]
        for option in part.params:
            record = option.get_help_record(inside)
            if record:
                lines += [f"`{record[0]}`", f": {_escaped(record[1]) or '–'}", ""]
    return "\n".join(lines)


def _paragraphs(text: str) -> list[str]:
    """Return click's help as Markdown; what it sets apart with \\b stays as it is."""
    lines = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        body = paragraph.removeprefix("\b\n")
        lines += ["```text", body, "```", ""] if body != paragraph else [_escaped(body), ""]
    return lines


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_<>\[\]`|])", r"\\\1", " ".join(text.split()))


def _write(files: dict[Path, str]) -> None:
    """Write the files that changed: Sphinx reads again what is newer than its last build."""
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def make(_app: Sphinx) -> None:
    """Make everything."""
    make_api_reference.write(DOCS / "reference" / "python")
    files = {DOCS / to: relocated((ROOT / name).read_text(encoding="utf-8"), to) for name, to in ABOVE.items()}
    files[DOCS / "reference" / "command-line.md"] = command_line()
    files |= benchmark_pages.write(DOCS / "benchmarks", DOCS / "assets" / "made")
    for machine in ("h200", "lavapipe"):
        figures = json.loads((ROOT / "benchmarks" / "results" / machine / "timers.json").read_text(encoding="utf-8"))
        files[DOCS / "concepts" / "made" / f"timers-{machine}.md"] = timers_markdown(figures)
    files |= import_graph.write(DOCS / "assets" / "made")
    _write(files)


def escape_bars(_app: Sphinx, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Escape the bars of |x|, which reStructuredText would take for a substitution."""
    for i, line in enumerate(lines):
        if "|" in line and not line.lstrip().startswith((">>>", "...", "|", "+-")):
            parts = re.split(r"(``.*?``)", line)
            lines[i] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)


def signature(
    _app: Sphinx, what: str, _name: str, thing: Any, _options: Any, _given: str | None, _returned: str | None
) -> tuple[str, None] | None:
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
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True}
