"""Pages in the folder above docs/ that are pages of the site, too, with the links that they need there.

The start page begins as README.md does, with figures of the results files as they are now.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import make_first_screen

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


def first_screen(readme: str) -> str:
    """Return what README.md begins with, as the start page of the site includes it: a picture for each mode."""
    text = readme.partition("<!-- first screen -->")[2].partition("<!-- end of first screen -->")[0]

    def picture(found: re.Match[str]) -> str:
        words, light = found[1], found[2]
        pictures = {"light": light, "dark": light.replace("-light", "-dark")}
        return "\n".join(f"![{words}]({path}){{.only-{mode}}}" for mode, path in pictures.items())

    text = re.sub(r'<picture>.*?<img alt="(.*?)" src="(.*?)">.*?</picture>', picture, text, flags=re.DOTALL)
    return relocated(text, "index.md")


def write() -> dict[Path, str]:
    """Return the pages to write."""
    pages = {DOCS / to: relocated((ROOT / name).read_text(encoding="utf-8"), to) for name, to in ABOVE.items()}
    readme = make_first_screen.filled((ROOT / "README.md").read_text(encoding="utf-8"))
    return pages | {DOCS / "start" / "made" / "first-screen.md": first_screen(readme)}
