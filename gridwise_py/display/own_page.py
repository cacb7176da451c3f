"""Pages that work offline: scripts inside the page, and a policy that allows only these, by their hashes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markupsafe import Markup


class Inline(NamedTuple):
    """The text of a script or a style sheet, and its hash as a policy names it."""

    text: Markup
    digest: str


def inline_text(text: str) -> Inline:
    """Return a script or a style sheet to put into an element of a page."""
    from markupsafe import Markup

    # With newlines as a browser reads them, and without a text that ends the element.
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return Inline(Markup(text), f"'sha256-{digest}'")


def content_policy(scripts: Sequence[Inline], *, images: str, styles: Sequence[Inline] = ()) -> str:
    """Return a content security policy under which a page makes no requests.

    Parameters
    ----------
    scripts : sequence of Inline
        The only scripts that run.
    images : str
        Where images may come from, such as ``"data:"``.
    styles : sequence of Inline
        The only style sheets; without any, all styles inside the page.
    """
    allowed = " ".join(style.digest for style in styles) or "'unsafe-inline'"
    return (
        f"default-src 'none'; script-src {' '.join(script.digest for script in scripts)}; style-src {allowed}; "
        f"img-src {images}; base-uri 'none'; form-action 'none'"
    )
