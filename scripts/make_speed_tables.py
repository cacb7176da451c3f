"""Write the README's tables of speed against peers from benchmarks/results/h200/peers.json.

Usage: python scripts/make_speed_tables.py [--check]

What stands between the two marks in README.md is replaced. With --check nothing is written, and the exit code is 1
where README.md and the file do not agree; a test asks the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
SOURCE = ROOT / "benchmarks" / "results" / "h200" / "peers.json"
BEGIN = "<!-- speed: made by scripts/make_speed_tables.py -->\n"
END = "<!-- end of speed -->\n"

# Single calls where they are long enough that the launch, which lies between CUDA's events, hardly counts.
SINGLE_FROM = 1 << 26
NAMES = {
    "vector_add": "vector add",
    "reduce": "reduce add",
    "scan": "scan add, inclusive",
    "scan_exclusive": "scan add, exclusive",
}
PEERS = {"cub": "CUB", "torch": "PyTorch"}

Row = Mapping[str, Any]


def _power(n: int) -> str:
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else f"{n:,}"


def _ratios(row: Row | None, figure: str) -> str:
    """Return theirs over ours for each peer: above 1 this library is faster."""
    if row is None:
        return "–"
    mine = row["sides"]["gridwise_py"][figure]
    if not row["correct"] or mine is None:
        return "wrong" if not row["correct"] else "–"
    theirs = [row["sides"].get(peer, {}).get(figure) for peer in PEERS]
    return ", ".join("–" if t is None else f"{t / mine:.2f}" for t in theirs)


def _columns(counts: Sequence[int]) -> list[tuple[int, str, str]]:
    columns = []
    for n in sorted(counts, reverse=True):
        if n >= SINGLE_FROM:
            columns.append((n, "single", f"{_power(n)}, single"))
        if n == max(counts) or n < SINGLE_FROM:
            columns.append((n, "back_to_back", f"{_power(n)}, back to back"))
    return columns


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


def _versions(document: Row) -> str:
    device, versions = document["device"], document["context"]["versions"]

    def first(peer: str, key: str) -> Any:
        return next((r["sides"][peer][key] for r in document["results"] if key in r["sides"].get(peer, {})), None)

    words = [f"{device['adapter']} (driver {device['driver']}, {device['backend']})", f"wgpu-py {versions['wgpu']}"]
    words.append(f"gridwise_py {versions['gridwise_py']}")
    cub = first("cub", "cub_version")
    if cub is not None:
        words.append(f"CUB {cub // 100_000}.{cub // 100 % 1000}.{cub % 100}")
    torch = first("torch", "version")
    if torch is not None:
        words.append(f"PyTorch {torch.partition('+')[0]}")
    return ", ".join(words)


def tables(document: Row) -> str:
    """Return what stands between the marks."""
    rows = document["results"]
    columns = _columns({row["n"] for row in rows})
    found = {(row["primitive"], row["datatype"], row["n"]): row for row in rows}
    lines = [f"{_versions(document)}; {document['context']['time'][:10]}.", ""]
    body = []
    for name, words in NAMES.items():
        for datatype in dict.fromkeys(row["datatype"] for row in rows if row["primitive"] == name):
            cells = [_ratios(found.get((name, datatype, n)), figure) for n, figure, _ in columns]
            body.append([f"{words}, {datatype}", *cells])
    lines += _table([f"time of {', '.join(PEERS.values())} over ours", *(title for *_, title in columns)], body)
    forms = document.get("forms", [])
    if forms:
        counts = sorted({form["n"] for form in forms}, reverse=True)
        by_name: dict[str, dict[int, Row]] = {}
        for form in forms:
            by_name.setdefault(form["name"], {})[form["n"]] = form
        lines += ["", "Other forms of scan against the inclusive add of u32, back to back, by our own time:", ""]
        body = [[name, *(_share(per_n.get(n)) for n in counts)] for name, per_n in by_name.items()]
        lines += _table(["time over that of u32 add", *(_power(n) for n in counts)], body)
    return "\n".join(["", *lines, "", ""])


def _share(form: Row | None) -> str:
    if form is None:
        return "–"
    return f"{form['ratio']:.2f}" if form["correct"] else "wrong"


def updated(readme: str, document: Row) -> str:
    """Return the README with the tables of a results file."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{README.name} lacks the marks {BEGIN.strip()!r} and {END.strip()!r}")
    return head + BEGIN + tables(document) + END + tail


def main() -> None:
    """Write, or check."""
    document = json.loads(SOURCE.read_text(encoding="utf-8"))
    before = README.read_text(encoding="utf-8")
    after = updated(before, document)
    if "--check" in sys.argv[1:]:
        if before != after:
            sys.exit(f"{README.name} and {SOURCE.relative_to(ROOT)} do not agree: run python {Path(__file__).name}")
        return
    README.write_text(after, encoding="utf-8")
    print(f"wrote {README.name}")


if __name__ == "__main__":
    main()
