"""Check the built site: links, offline, public names, search. `make docs` runs it.

    python scripts/check_site.py build/site

- Every link and picture of every page leads to a file of the site, and to an anchor that is there.
- No page loads anything from elsewhere.
- The wheel's public names and commands are those that the reference has, no more and no fewer.
- Each question of a newcomer (tests/project/newcomers_questions.json), given to the search, has its page among the
  first three hits. This opens the site from the disk in Chromium; without Chromium the output says that it was not.

It prints what is wrong, and exits with 1 if anything is.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import wheel_names

from gridwise_py.cli import main as main_command

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = ROOT / "tests" / "project" / "newcomers_questions.json"


class Page(HTMLParser):
    """What a page links, loads, and can be linked at."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note the attributes that point or name."""
        found = {name: value for name, value in attributes if value is not None}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in ("img", "script", "iframe", "source", "object") and ("src" in found or "data" in found):
            self.loads.append(found.get("src") or found["data"])
        if tag == "link" and "href" in found and found.get("rel") not in ("canonical",):
            self.loads.append(found["href"])


def pages(site: Path) -> dict[Path, Page]:
    """Return every page of the site."""
    paths = (path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts)
    return {path: Page(path.read_text(encoding="utf-8")) for path in paths}


def broken_links(site: Path) -> Iterator[str]:
    """Say which links and pictures lead nowhere, and what comes from elsewhere."""
    found = pages(site)
    for path, page in found.items():
        name = path.relative_to(site)
        for target in page.loads:
            if re.match(r"(https?:)?//", target):
                yield f"{name} loads {target}: the site must work offline"
        for target in {*page.links, *page.loads}:
            if re.match(r"[a-z]+:|//", target):
                continue
            to, _, anchor = urllib.parse.unquote(target).partition("#")
            to = to.partition("?")[0]
            there = Path(os.path.normpath(path.parent / to)) if to else path
            if not there.exists():
                yield f"{name} links {target}, which is not there"
            elif anchor and there in found and anchor not in found[there].anchors:
                yield f"{name} links {target}, but {there.relative_to(site)} has no such anchor"


def wheel_with_names() -> set[str]:
    """Build the wheel, and return its public names."""
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True)
        (built,) = Path(folder).glob("*.whl")
        return wheel_names.names_of_wheel(built)


def disagreements(site: Path) -> Iterator[str]:
    """Say which public names and commands the reference and the wheel do not share."""
    yield from wheel_names.differences(wheel_with_names(), wheel_names.documented_names(site / "objects.inv"))
    page = Page((site / "reference" / "command-line.html").read_text(encoding="utf-8"))
    told = {found[1] for anchor in page.anchors if (found := re.fullmatch(r"gridwise-([\w-]+)", anchor))}
    for name in sorted({*main_command.commands} ^ told):
        yield f"the command {name} and the page of the command line do not agree"


def first_hits(site: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Type each question into the search of the site; give it, the page it wants, and the first three hits."""
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.chromium import browser, find_chromium

    chromium = find_chromium()
    if chromium is None:
        print("check_site: NO CHROMIUM HERE: THE SEARCH WAS NOT TRIED.", file=sys.stderr)
        return
    links = "[...document.querySelectorAll('#search-results ul.search li a')].map((link) => link.getAttribute('href'))"
    # The line that says how many pages were found comes last.
    found = "/found|did not/.test(document.querySelector('#search-results .search-summary')?.textContent ?? '')"
    with browser(chromium) as new_page:
        page = new_page()
        page.call("Page.navigate", url=f"{(site / 'search.html').resolve().as_uri()}?q=scan")
        page.wait(found)
        for question, wanted in json.loads(QUESTIONS.read_text(encoding="utf-8")):
            page.evaluate(
                "document.querySelector('#search-results').replaceChildren(), "
                f"Search.performSearch({json.dumps(question)}), null"
            )
            page.wait(found)
            hits = [link.partition("#")[0].partition("?")[0] for link in page.evaluate(links)]
            yield question, wanted, [hit.removesuffix(".html") for hit in hits][:3]
        elsewhere = [url for url in page.requests if not url.startswith(("file:", "data:"))]
        if elsewhere:
            raise SystemExit(f"the search asks {elsewhere}: it must work offline")


def main() -> int:
    """Check everything."""
    site = Path(sys.argv[1])
    wrong = [*broken_links(site), *disagreements(site)]
    for question, wanted, hits in first_hits(site):
        if wanted not in hits:
            wrong.append(f"the first hits for {question!r} are {', '.join(hits) or 'none'}, not {wanted}")
    print("\n".join(wrong) or f"check_site: {len(pages(site))} pages are right", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
