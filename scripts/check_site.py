"""Check the built site: links, offline, public names, search. `make docs` runs it.

    python scripts/check_site.py build/site

- Every link and picture of every page leads to a file of the site, and to an anchor that is there.
- No page loads anything from elsewhere.
- Users have at most 39,500 words to read, in pages of at most 1,800, of these 17,000 in pages made from docstrings; the
  whole site has at most 54,000.
- The reference has the public names and the commands, no more and no fewer.
- Each question of a newcomer (tests/project/newcomers_questions.json), given to the search, has its page among the
  first three hits. Pages for contributors are found only if asked for. This opens the site from the disk in Chromium;
  without Chromium the output says that it was not.

It prints what is wrong, and exits with 1 if anything is.
"""

from __future__ import annotations

import functools
import html
import json
import os
import re
import sys
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path

import gridwise_py as gw
from gridwise_py.cli import main as main_command

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = ROOT / "tests" / "project" / "newcomers_questions.json"

#: Pages in the folder for contributors that the search shows everybody, as questions.js does.
FOR_EVERYBODY = {"contribute/changelog", "contribute/security"}
#: The most words. A word has a letter or a digit. Counted is what the article of a page shows, tables included; not
#: blocks of code, signatures, pictures, and what a notebook printed.
USERS, REFERENCE, PAGE, SITE = 39_800, 17_000, 1_800, 54_200
#: What is not counted.
NO_WORDS = "pre, svg, script, style, .sig, .cell_output, .headerlink"
LOADING = r'<(?:img|script|iframe|source|object|link)\b(?![^>]*canonical)[^>]*?\s(?:src|data|href)="([^"]+)"'


class Page:
    """What a page links, loads, and can be linked at, and how many words its article has."""

    def __init__(self, text: str):
        from bs4 import BeautifulSoup

        # Only the article is parsed: most of a page is its navigation.
        outline = re.sub(r"<(script|style|svg)\b([^>]*)>.*?</\1>", r"<\1\2>", text, flags=re.DOTALL)
        self.links = [html.unescape(each) for each in re.findall(r'<a\b[^>]*?\shref="([^"]*)"', outline)]
        self.loads = [html.unescape(each) for each in re.findall(LOADING, outline)]
        self.anchors = {html.unescape(each) for each in re.findall(r'<[^>]*?\s(?:id|name)="([^"]+)"', outline)}
        article = BeautifulSoup(text[text.find("<article") : text.rfind("</article>")], "html.parser")
        for part in article.select(NO_WORDS):
            part.decompose()
        words = " ".join(article.stripped_strings).split()
        self.words = sum(any(letter.isalnum() for letter in word) for word in words)


@functools.cache
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


def too_many_words(found: Mapping[str, int]) -> Iterator[str]:
    """Say which pages are too long, and whether all together are; `found` has the words of each page by its name."""
    users = {name: words for name, words in found.items() if not name.startswith("contribute/")}
    for name, words in users.items():
        if words > PAGE:
            yield f"{name} has {words:,} words, more than {PAGE:,}"
    made = sum(words for name, words in users.items() if name.startswith("reference/python/"))
    limits = (
        ("users", sum(users.values()), USERS),
        ("docstrings", made, REFERENCE),
        ("the site", sum(found.values()), SITE),
    )
    for who, words, most in limits:
        print(f"check_site: {words:,} words for {who}, at most {most:,}", file=sys.stderr)
        if words > most:
            yield f"{words:,} words for {who}, more than {most:,}"


def disagreements(site: Path) -> Iterator[str]:
    """Say which public names and commands the reference lacks, and which it has alone."""
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    names = {name for role, found in inventory.items() if role.startswith("py:") for name in found}
    told = {name.removeprefix("gridwise_py.") for name in names if re.fullmatch(r"gridwise_py\.\w+", name)}
    page = Page((site / "reference" / "command-line.html").read_text(encoding="utf-8"))
    commands = {found[1] for anchor in page.anchors if (found := re.fullmatch(r"gridwise-([\w-]+)", anchor))}
    for kind, here, there in (("name", set(gw.__all__), told), ("command", {*main_command.commands}, commands)):
        yield from (f"the reference lacks the {kind} {name}" for name in sorted(here - there))
        yield from (f"the reference has the {kind} {name}, which does not exist" for name in sorted(there - here))


def answers(site: Path) -> Iterator[tuple[str, str | None, list[str]]]:
    """Type each question into the search of the site; give it, the page that it wants, and all hits.

    A question of a contributor is asked twice: first as users do, wanting no page, then with the box ticked.
    """
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
            for ticked in (False, True) if wanted.startswith("contribute/") else (False,):
                page.evaluate(
                    f"document.querySelector('#contribute').checked = {json.dumps(ticked)}, "
                    "document.querySelector('#search-results').replaceChildren(), "
                    f"Search.performSearch({json.dumps(question)}), null"
                )
                page.wait(found)
                hits = [link.partition("#")[0].partition("?")[0] for link in page.evaluate(links)]
                asked = ticked or not wanted.startswith("contribute/")
                yield question, wanted if asked else None, [hit.removesuffix(".html") for hit in hits]
        elsewhere = [url for url in page.requests if not url.startswith(("file:", "data:"))]
        if elsewhere:
            raise SystemExit(f"the search asks {elsewhere}: it must work offline")


def main() -> int:
    """Check everything."""
    site = Path(sys.argv[1])
    words = {path.relative_to(site).as_posix(): page.words for path, page in pages(site).items()}
    del words["genindex.html"]  # a list of names
    wrong = [*broken_links(site), *too_many_words(words), *disagreements(site)]
    for question, wanted, hits in answers(site):
        if wanted is None:
            unasked = [hit for hit in hits if hit.startswith("contribute/") and hit not in FOR_EVERYBODY]
            wrong += [f"users who ask {question!r} are shown {hit}" for hit in unasked]
        elif wanted not in hits[:3]:
            wrong.append(f"the first hits for {question!r} are {', '.join(hits[:3]) or 'none'}, not {wanted}")
    print("\n".join(wrong) or f"check_site: {len(pages(site))} pages are right", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
