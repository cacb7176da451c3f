"""Links of pages to what lies outside of docs/: files become downloads, folders plain text.

Pages are also read in the repository, where ``[scan.wgsl](../../shaders/scan.wgsl)`` leads to a file. A site has no
such file. MyST copies a linked file into the site, which is right for results (JSON, pictures) and examples. A link to
a folder has nothing to lead to in a site: its text stays. A link to CONTRIBUTING.md leads to its page in the site.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
#: Pages of the repository that are also pages of the site.
PAGES = {
    "CONTRIBUTING": "contribute/contributing",
    "CHANGELOG": "contribute/changelog",
    "SECURITY": "contribute/security",
    "README": "index",
}


class RepositoryLinks(SphinxTransform):
    """Replace links to folders and to pages outside of docs/."""

    default_priority = 5

    def apply(self, **_: Any) -> None:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for node in list(self.document.findall(addnodes.pending_xref)):
            self._look(node, folder, node.get("reftarget", ""))
        for node in list(self.document.findall(addnodes.download_reference)):
            self._look(node, folder, node.get("reftarget", ""))
        for node in list(self.document.findall(nodes.reference)):
            self._look(node, folder, node.get("refuri", ""))

    def _look(self, node: nodes.Element, folder: Path, target: str) -> None:
        path, _, _anchor = target.partition("#")
        if not path or "://" in path:
            return
        found = Path(os.path.normpath(folder / path))
        if found.parent == ROOT and found.stem in PAGES:
            node["reftarget"] = PAGES[found.stem]
        elif found.is_dir():
            node.replace_self(nodes.inline("", "", *node.children))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(RepositoryLinks)
    return {"parallel_read_safe": True}
