"""Hatch's hook for the metadata: README.md with addresses in place of relative links.

PyPI shows the README without the files around it. A link to docs/start/index.md becomes one to that file in the
repository, at the tag of the version that is built; a picture becomes its raw file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A link or picture of Markdown, or an attribute of HTML; the text before the target, and the target.
_TARGET = re.compile(
    r"""(?P<before>\]\(|\b(?:href|src|srcset)=")"""
    r"""(?![a-z][a-z0-9+.-]*:|//|\#)(?P<target>[^\s)"]+)"""
)
_PICTURES = (".svg", ".png", ".jpg", ".gif")


def absolute(readme: str, repository: str, revision: str) -> str:
    """Return the text with addresses in place of relative links.

    Parameters
    ----------
    readme : str
        Markdown. Fenced blocks of code keep their text.
    repository : str
        Address of a repository on GitHub.
    revision : str
        Branch or tag that the addresses name.
    """

    def address(match: re.Match[str]) -> str:
        target = match["target"].removeprefix("./")
        kind = "raw" if target.partition("#")[0].endswith(_PICTURES) else "blob"
        return f"{match['before']}{repository}/{kind}/{revision}/{target}"

    parts = re.split(r"(^```.*?^```$)", readme, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _TARGET.sub(address, part) for part in parts)


class ReadmeHook(MetadataHookInterface):
    """Sets ``project.readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata of the project."""
        version = metadata["version"]
        # A version between releases has no tag.
        revision = "main" if "dev" in version else f"v{version}"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata["urls"]["Repository"]
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, repository, revision)}
