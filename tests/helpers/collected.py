"""What a file from somebody's machine must be to be kept in benchmarks/results: a browser's, or a card's."""

from __future__ import annotations

import re
from pathlib import Path

from gridwise_py.bench.results.reader import read_results
from gridwise_py.errors import BadResultsFile

MOST_BYTES = 1_000_000
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*-\d{4}-\d{2}-\d{2}\.json")
#: Addresses, and folders of a user.
_PRIVATE = re.compile(r"[\w.+-]+@[\w-]+\.\w+|/(?:home|Users)/|[A-Z]:\\\\+Users|https?://")


def problems(path: Path, suite: str = "browser") -> list[str]:
    """Return what is wrong about a file of a suite, "browser" or "card", for its sender to mend."""
    found: list[str] = []
    if not _NAME.fullmatch(path.name):
        found.append(f"it is called {path.name}; take a name such as apple-m4-2026-01-31.json")
    if path.stat().st_size > MOST_BYTES:
        found.append(f"it has {path.stat().st_size:,} bytes; save that of the suite {suite!r}: {MOST_BYTES:,}")
        return found
    try:
        document = read_results(path)
    except BadResultsFile as error:
        return [*found, str(error)]
    if suite == "browser" and document.context.browser is None:
        found.append("it is not the file that a page saves, but a results file; add the page's own file")
    if document.context.suite != suite:
        found.append(f"it is of the suite {document.context.suite!r}, not of {suite!r}, so that it cannot be compared")
    if not document.complete:
        found.append("the run was stopped; let it finish")
    if document.device.is_cpu:
        found.append(
            "the adapter is software on the CPU; choose the GPU: in the settings of the browser, or by --adapter"
        )
    if not document.device.tick_period_ns:
        found.append("there are no timestamps: figures would be of the CPU's clock")
    wrong = [result for result in document.results if result.is_wrong]
    found += [f"{result.name_with_n} is wrong: {result.mismatch}; open an issue with the file" for result in wrong[:3]]
    if not any(result.time_ns for result in document.results):
        found.append("no case was measured")
    private = _PRIVATE.search(path.read_text(encoding="utf-8"))
    if private:
        found.append(f"it contains {private[0]!r}, which may be private")
    return found
