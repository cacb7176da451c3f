"""The tables of speed against peers, from each GPU's peers.json and sort.json, as Markdown.

Usage: python scripts/make_speed_tables.py

Prints them. The site has them on its page of benchmarks, where its build puts them (docs/_ext/benchmark_pages.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridwise_py.display.quantities import format_time

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SOURCES = tuple(RESULTS / gpu / name for gpu in ("h200", "h100") for name in ("peers.json", "sort.json"))

# Single calls where they are long enough that the launch, which lies between CUDA's events, hardly counts.
SINGLE_FROM = 1 << 26
NAMES = {
    "vector_add": "vector add",
    "reduce": "reduce add",
    "scan": "scan add, inclusive",
    "scan_exclusive": "scan add, exclusive",
    "sort": "sort keys",
    "sort_pairs": "sort pairs (values of 4 bytes)",
}
# What the table of other forms is headed by, by primitive.
FORMS = {"scan": "the inclusive add of u32", "sort": "uniform u32 keys, ascending"}
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


def versions(document: Row) -> str:
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


def tables(document: Row) -> list[str]:
    """Return the lines of a results file."""
    # What the keys look like is told by the forms.
    every = document["results"]
    rows = [
        row
        for row in every
        if row.get("distribution", "uniform") == "uniform" and row.get("group", "sorts") in ("arrays", "sorts")
    ]
    columns = _columns({row["n"] for row in rows})
    found = {(row["primitive"], row["datatype"], row["n"]): row for row in rows}
    lines = [f"{versions(document)}; {document['context']['time'][:10]}.", ""]
    body = []
    for name, words in NAMES.items():
        for datatype in dict.fromkeys(row["datatype"] for row in rows if row["primitive"] == name):
            cells = [_ratios(found.get((name, datatype, n)), figure) for n, figure, _ in columns]
            body.append([f"{words}, {datatype}", *cells])
    lines += _table([f"time of {', '.join(PEERS.values())} over ours", *(title for *_, title in columns)], body)
    lines += _end_to_end(every)
    every = document.get("forms") or list(_forms(every))
    for primitive in dict.fromkeys(form.get("primitive", "scan") for form in every):
        forms = [form for form in every if form.get("primitive", "scan") == primitive]
        counts = sorted({form["n"] for form in forms}, reverse=True)
        by_name: dict[str, dict[int, Row]] = {}
        for form in forms:
            by_name.setdefault(form["name"], {})[form["n"]] = form
        lines += ["", f"Other forms of {primitive} against {FORMS[primitive]}, back to back, by our own time:", ""]
        body = [[name, *(_share(per_n.get(n)) for n in counts)] for name, per_n in by_name.items()]
        lines += _table([f"time over that of {next(iter(by_name))}", *(_power(n) for n in counts)], body)
    return lines


def _forms(rows: Sequence[Row]) -> Iterator[Row]:
    """Return our own scans and sorts of other kinds, as files of before 26 November 2026 have them."""
    for row in rows:
        if row.get("group") == "forms":
            for name, side in row["sides"].items():
                ratio = side.get("ratio", {}).get("back_to_back")
                known = {"correct": ratio is not None and side["correct"] is not False, "ratio": ratio}
                yield {"primitive": row["of"], "n": row["n"], "name": name, **known}


def _end_to_end(rows: Sequence[Row]) -> list[str]:
    """Return what sorts cost a caller who has numpy arrays."""
    lines = []
    for row in rows:
        if row.get("group") == "host":
            times = {f"{name}_ns": side["wall"] for name, side in row["sides"].items()}
            row = {**row, "primitive": row["of"], "end_to_end": times}
        if "end_to_end" in row:
            ours, theirs = (format_time(row["end_to_end"][f"{side}_ns"]) for side in ("gridwise_py", "numpy"))
            lines.append(
                f"- {NAMES[row['primitive']]}, {row['datatype']}, {_power(row['n'])}, upload and download included: "
                f'{ours}; `numpy.sort(kind="stable")` on the CPU: {theirs}.'
            )
    return ["", *lines] if lines else []


def _share(form: Row | None) -> str:
    if form is None:
        return "–"
    return f"{form['ratio']:.2f}" if form["correct"] else "wrong"


def page(documents: Sequence[Row]) -> str:
    """Return the tables of results files, one after another."""
    return "\n".join(line for document in documents for line in (*tables(document), ""))


def documents() -> list[Row]:
    """Return the files that there are."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in SOURCES if path.exists()]


if __name__ == "__main__":
    print(page(documents()))
