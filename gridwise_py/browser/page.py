"""The page that measures a browser's GPU: one HTML file, which works from any host and from a disk.

Its policy allows only its own scripts and style sheet, by their hashes, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import __version__
from ..display.own_page import content_policy, inline_text

PAGE_FOLDER = Path(__file__).resolve().parent / "page"
#: In the order in which they run.
_SCRIPTS = (
    "data.js", "gpu.js", "calibrate.js", "format.js", "sample.js", "runner.js", "chart.js", "share.js", "page.js",
)  # fmt: skip


def page_html(bundle: Mapping[str, Any]) -> str:
    """Return the page that runs a bundle.

    Parameters
    ----------
    bundle : mapping
        As `bundle_of` returns it.

    Returns
    -------
    str
        HTML; identical for identical bundles. The element ``bundle`` has the bundle as JSON, compressed (zlib) and in
        base64, and its sha256 in ``data-sha256``.
    """
    import jinja2

    content = json.dumps(bundle, separators=(",", ":"), allow_nan=False).encode()
    scripts = [inline_text(_asset(name)) for name in _SCRIPTS]
    style = inline_text(_asset("bench.css"))
    policy = content_policy(scripts, images="data:", styles=[style])
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(_asset("bench.html")).render(
        version=__version__,
        policy=policy,
        style=style.text,
        scripts=[script.text for script in scripts],
        bundle=base64.b64encode(zlib.compress(content, 9)).decode("ascii"),
        bundle_sha256=hashlib.sha256(content).hexdigest(),
    )


def _asset(name: str) -> str:
    return (PAGE_FOLDER / name).read_text(encoding="utf-8")
