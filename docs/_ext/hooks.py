"""What Sphinx calls while it builds the site: for the pages that are made, for docstrings, and for links."""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import made_pages
import reference
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.autosummary import Autosummary
from sphinx.transforms import SphinxTransform


class Overview(Autosummary):
    """A table of names with their first sentences, up to the details."""

    def get_items(self, names: list[str]) -> list[tuple[str, str | None, str, str]]:
        """Shorten the sentences; those that would be the same keep more."""

        def cut(text: str, marks: str) -> str:
            short = re.match(rf"(?:``.*?``|`.*?`|[^{marks}]|,(?! \w+ \w))*", text)[0]  # type: ignore[index]
            return short if short == text else f"{short}."

        items = super().get_items(names)
        counts = Counter(cut(text, ":;,") for *_, text, _ in items)
        texts = [short if counts[short := cut(text, ":;,")] == 1 else cut(text, ":;") for *_, text, _ in items]
        return [(name, sig, text, full) for (name, sig, _, full), text in zip(items, texts, strict=True)]


class RepositoryLinks(SphinxTransform):
    """Links of pages to what lies outside of docs/, where a site has no such file.

    MyST copies a linked file into the site, which is right for results (JSON, pictures) and examples. Of a link to a
    folder the text stays. A link to CONTRIBUTING.md leads to its page in the site.
    """

    default_priority = 5

    def apply(self, **_: Any) -> None:
        """Replace links to folders and to pages outside of docs/."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        pages = {**made_pages.ABOVE, "README.md": "index.md"}
        kinds = {
            addnodes.pending_xref: "reftarget",
            addnodes.download_reference: "reftarget",
            nodes.reference: "refuri",
        }
        for kind, attribute in kinds.items():
            for node in list(self.document.findall(kind)):
                path = node.get(attribute, "").partition("#")[0]
                if not path or "://" in path:
                    continue
                found = Path(os.path.normpath(folder / path))
                name = found.with_suffix(".md").name
                if found.parent == made_pages.ROOT and name in pages:
                    node["reftarget"] = pages[name].removesuffix(".md")
                elif found.is_dir():
                    node.replace_self(nodes.inline("", "", *node.children))


def write_pages(_app: Sphinx) -> None:
    """Write what is made."""
    made_pages.write()


def shorten_docstring(_app: Sphinx, _what: str, name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Replace a docstring by what its page says."""
    lines[:] = reference.page_text(name, "\n".join(lines)).split("\n")


def class_signature(
    _app: Sphinx, what: str, _name: str, thing: Any, _options: Any, _given: str | None, _returned: str | None
) -> tuple[str, str | None] | None:
    """What a class takes, without types: Sphinx would show the metaclass's ``*args``."""
    try:
        found = inspect.signature(thing) if what == "class" else None
    except ValueError:
        found = None
    if found is None:
        return None
    parameters = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    text = str(found.replace(parameters=parameters, return_annotation=found.empty))
    text = re.sub(r"BinOp\('(\w+)'\)", lambda name: name[1].capitalize(), text)
    return text.replace("<factory>", "..."), None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect."""
    app.setup_extension("sphinx.ext.autosummary")
    app.add_directive("autosummary", Overview, override=True)
    app.add_transform(RepositoryLinks)
    app.connect("builder-inited", write_pages, priority=100)  # before autosummary looks for its tables
    app.connect("autodoc-process-docstring", shorten_docstring)
    app.connect("autodoc-process-signature", class_signature)
    return {"parallel_read_safe": True}
