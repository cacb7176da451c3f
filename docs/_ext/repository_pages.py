"""Pages in the folder above docs/ that are pages of the site, too, with the links that they need there."""

from __future__ import annotations

import os
import re
from pathlib import Path

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


def write() -> dict[Path, str]:
    """Return the pages to write."""
    return {DOCS / to: relocated((ROOT / name).read_text(encoding="utf-8"), to) for name, to in ABOVE.items()}
