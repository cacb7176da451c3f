"""Take pictures of the built site in Chromium: five pages, wide and on a phone, light and dark.

    python scripts/take_site_pictures.py build/site FOLDER

Look at them after a change of the theme. docs/assets/site/ has those that the page about the site shows; --gallery
renews these.
"""

from __future__ import annotations

import argparse
import base64
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from helpers.chromium import Page, browser, find_chromium  # noqa: E402 - the path comes first

PAGES = {
    "index": "index.html",
    "timing": "concepts/timing.html",
    "primitives": "reference/python/primitives.html",
    "against-peers": "benchmarks/against-peers.html",
    "house": "contribute/architecture.html",
}
SIZES = {"wide": (1280, 860), "phone": (390, 800)}
GALLERY = (
    "index-wide-light",
    "house-wide-dark",
    "against-peers-wide-light",
    "primitives-wide-dark",
    "index-phone-light",
    "timing-phone-dark",
)


def picture(page: Page, path: Path, width: int, height: int, scale: float) -> None:
    """Take a picture of what is in the window, as large as `scale` says."""
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
    data = page.call("Page.captureScreenshot", format="png", clip=clip)["data"]
    path.write_bytes(base64.b64decode(data))


def main() -> int:
    """Take them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gallery", action="store_true", help="only those of the gallery")
    options = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("no Chromium on PATH")
    options.folder.mkdir(parents=True, exist_ok=True)
    with browser(chromium) as new_page:
        for name, path in PAGES.items():
            for size, (width, height) in SIZES.items():
                for mode in ("light", "dark"):
                    label = f"{name}-{size}-{mode}"
                    if options.gallery and label not in GALLERY:
                        continue
                    page = new_page()
                    page.look(width=width, height=height, dark=mode == "dark")
                    page.open(options.site / path, "document.readyState == 'complete'")
                    time.sleep(0.6)  # the theme fades its buttons in
                    picture(page, options.folder / f"{label}.png", width, height, 0.6 if options.gallery else 1)
                    widest = page.evaluate("document.documentElement.scrollWidth")
                    if widest > width:
                        print(f"{label}: {widest} pixels wide", file=sys.stderr)
                    for complaint in page.complaints:
                        print(f"{label}: {complaint}", file=sys.stderr)
                    page.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
