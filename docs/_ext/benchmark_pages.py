"""The page of comparisons with peers: tables and pictures, made from the files in benchmarks/results/.

Each row names the time of its measurement. A case that several files have is taken from the newest.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridwise_py.display.quantities import format_count, format_time

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Comparison:
    """One case on one GPU: our time and a peer's, in nanoseconds per call."""

    subject: str
    case: str
    n: int
    peer: str
    ours_ns: float
    theirs_ns: float
    how: str
    gpu: str
    day: str
    source: str

    @property
    def ratio(self) -> float:
        """How many times as fast this library is."""
        return self.theirs_ns / self.ours_ns


#: What rows of benchmarks/peers/harness.py are about, by their group; others are of streams.
SUBJECTS = {
    "axis": "Along an axis",
    "axis scans": "Along an axis",
    "search": "Search",
    "top k": "Top k",
    "reductions": "Reductions to structs",
    "gather": "Gathers",
}
PEERS = {"cub": "CUB", "torch": "PyTorch", "cupy": "CuPy"}
#: Files of before 26 November 2026, and which of their rows stand where a later file replaced the others.
STREAMS = {
    "stream_peer.json": None,
    "stream_peer_before.json": None,
    "stream_peer_more.json": None,
    "stream_peer_again.json": None,
    "stream_peer_argmax.json": {"argmax"},
}
WAYS = {"single": "single", "back_to_back": "back to back"}


def _version(document: Mapping[str, Any], peer: str) -> str:
    version = document.get("peers", {}).get(peer) or document.get("peer", {}).get("version", "")
    return version.partition("+")[0]


def _rows(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of benchmarks/peers/harness.py: the first side is ours; of a peer's algorithms the fastest counts."""
    for row in document["results"]:
        ours, *others = row["sides"]
        if not row["correct"]:
            continue
        for (peer, words), (figure, how) in itertools.product(PEERS.items(), WAYS.items()):
            times = [row["sides"][name].get(figure) for name in others if name.partition(" ")[0] == peer]
            theirs = [time_ns for time_ns in times if time_ns]
            if theirs and row["sides"][ours].get(figure):
                yield {
                    "subject": SUBJECTS.get(row["group"], "Selections, runs, keys and segments"),
                    "case": ", ".join(filter(None, (row["case"], row.get("datatype")))),
                    "n": row["n"],
                    "peer": f"{words} {_version(document, peer)}".strip(),
                    "ours_ns": row["sides"][ours][figure],
                    "theirs_ns": min(theirs),
                    "how": how,
                }


def _streams(path: Path, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kept = STREAMS[path.name]
    for row in document["results"]:
        ours, theirs = row["sides"].get("gridwise_py", {}), row["sides"].get("cub", {})
        if not row["equal"] or (kept is not None and row["case"] not in kept):
            continue
        for figure, how in WAYS.items():
            if ours.get(figure) and theirs.get(figure):
                yield {
                    "subject": "Selections, runs, keys and segments",
                    "case": f"{row['case']}, {row['datatype']}",
                    "n": row["n"],
                    "peer": "CUB",
                    "ours_ns": ours[figure],
                    "theirs_ns": theirs[figure],
                    "how": how,
                }


def _pairs(path: Path, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of one side each, which belong together by what they measured."""
    subject, name, ours, theirs, peer = PAIRS[path.name]
    cases: dict[tuple[str, int], dict[str, float]] = {}
    for row in document["results"]:
        if row["right"] is not False:  # None: a peer whose result was not looked at
            n = row.get("n") or math.prod(row["shape"])
            cases.setdefault((name(row), n), {})[row["side"]] = row["time_ns"]
    version = _version(document, "torch")
    for (case, n), sides in cases.items():
        if ours in sides and theirs in sides:
            yield {
                "subject": subject,
                "case": case,
                "n": n,
                "peer": f"{peer} {version}".strip(),
                "ours_ns": sides[ours],
                "theirs_ns": sides[theirs],
                "how": "single",
            }


#: File: its subject, the name of a row's case, the names of both sides in the file, and the peer's.
PAIRS = {
    "axis_peer.json": (
        "Along an axis",
        lambda row: f"sum of {' × '.join(f'{length:,}' for length in row['shape'])}, axis {row['axis']}",
        "gridwise",
        "torch",
        "PyTorch",
    ),
    "search_peer.json": ("Search", lambda row: f"{row['queries']} queries", "gridwise", "torch", "PyTorch"),
    "top_k_peer.json": (
        "Top k",
        lambda row: f"the {row['k']} largest, {row['items']} items",
        "gridwise",
        "torch",
        "PyTorch",
    ),
    "merge_peer.json": ("Merge", lambda row: "two sorted halves", "library", "CUB", "CUB"),
}


def _segmented_sorts(_: Path, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in document["results"]:
        peers = [side for name, side in row["sides"].items() if name.startswith("cub")]
        if not row["right"] or not peers:
            continue
        for figure, how in WAYS.items():
            times = [side[f"{figure}_ns"] for side in peers]
            for form in ("offsets", "length"):
                yield {
                    "subject": "Sorts of segments",
                    "case": f"{row['case']} keys, by {form}",
                    "n": row["n"],
                    "peer": "CUB",
                    "ours_ns": row["sides"][form][f"{figure}_ns"],
                    "theirs_ns": min(times),
                    "how": how,
                }


def comparisons() -> list[Comparison]:
    """Return every comparison of all files; of those with the same case, the newest."""
    readers = dict.fromkeys(STREAMS, _streams) | dict.fromkeys(PAIRS, _pairs)
    readers["segmented_sort_peer.json"] = _segmented_sorts
    newest: dict[tuple[Any, ...], Comparison] = {}
    for path in sorted(RESULTS.glob("*/*_peer*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        of_harness = "protocol" in document and path.name.startswith(
            ("stream_peer", "array_peer", "segmented_sort_peer")
        )
        if not of_harness and path.name not in readers:
            continue
        device, time = document["device"], document["context"]["time"]
        about = {"gpu": device["adapter"], "day": time, "source": f"{path.parent.name}/{path.name}"}
        for row in _rows(document) if of_harness else readers[path.name](path, document):
            found = Comparison(**row, **about)
            key = (found.gpu, found.subject, found.case, found.n, found.how, found.peer.split()[0])
            if key not in newest or newest[key].day < found.day:
                newest[key] = found
    return list(newest.values())


# ---- Markdown


def table(rows: Sequence[Comparison]) -> list[str]:
    """Return the lines of one subject's table, largest n first."""
    lines = [
        "| case | items | ours | theirs | times as fast | how | peer | measured |",
        "| --- | --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for row in sorted(rows, key=lambda row: (-row.n, row.how != "single", row.case)):
        link = f"[{row.day[:10]}](../../benchmarks/results/{row.source})"
        cells = [row.case, format_count(row.n), format_time(row.ours_ns), format_time(row.theirs_ns)]
        lines.append("| " + " | ".join([*cells, f"{row.ratio:.2f}", row.how, row.peer, link]) + " |")
    return lines


def page(rows: Sequence[Comparison], pictures: Mapping[str, str]) -> str:
    """Return the page. `pictures` has the file name of each subject's picture, without ``-light.svg``."""
    lines = [
        "# Case by case",
        "",
        "Made by the build from the files that the last column links. Above 1, gridwise_py is faster. Our results",
        "were right in every row. **Single**: one call at a time, by GPU timestamps and CUDA events.",
        "**Back to back**: calls of one submission, against a CUDA graph.",
        "[The method](index.md#against-cub-pytorch-and-cupy).",
        "",
    ]
    for gpu in dict.fromkeys(row.gpu for row in rows):
        for subject in dict.fromkeys(row.subject for row in rows if row.gpu == gpu):
            some = [row for row in rows if (row.gpu, row.subject) == (gpu, subject)]
            lines += [f"## {subject}, {gpu}", ""]
            if subject in pictures:
                words, name = f"{subject}: times as fast as the peer", f"../assets/made/{pictures[subject]}"
                lines += [f"![{words}]({name}-{mode}.svg){{.only-{mode}}}" for mode in INK]
                lines += [""]
            lines += [*table(some), ""]
    return "\n".join(lines)


# ---- pictures

INK = {"light": "#3b3f46", "dark": "#ced6dd"}
COLOURS = {"light": ("#0b62a4", "#b3470f"), "dark": ("#6cb6ff", "#ffa657")}


def picture(rows: Sequence[Comparison], mode: str) -> str:
    """Return an SVG: a point per case at how many times as fast we are, on a logarithmic axis."""
    import altair
    import vl_convert

    alt: Any = altair
    # Of each case the largest n; arrays of all shapes are about as large.
    largest = {case: max(row.n for row in rows if row.case == case) for case in {row.case for row in rows}}
    shown = [row for row in rows if row.n == largest[row.case]]
    ink = INK[mode]
    hows = list(dict.fromkeys(row.how for row in shown))
    data = [{"case": row.case, "ratio": row.ratio, "how": row.how} for row in shown]
    order = [row.case for row in sorted(shown, key=lambda row: -row.ratio)]
    values = alt.Data(values=data)
    x = alt.X(
        "ratio:Q",
        scale=alt.Scale(type="log", nice=False, padding=12),
        title="times as fast as the peer",
        axis=alt.Axis(values=[0.25, 0.5, 1, 2, 5, 10, 20, 50], format="~g"),
    )
    y = alt.Y("case:N", sort=list(dict.fromkeys(order)), title=None, axis=alt.Axis(labelLimit=320))
    many = len(hows)
    colour = alt.Color(
        "how:N",
        title=None,
        scale=alt.Scale(domain=hows, range=list(COLOURS[mode][:many])),
        legend=alt.Legend(orient="top"),
    )
    shape = alt.Shape("how:N", title=None, scale=alt.Scale(domain=hows, range=["circle", "diamond"][:many]))
    points = alt.Chart(values).mark_point(size=80, filled=True, opacity=1).encode(x=x, y=y, color=colour, shape=shape)
    even = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(color=ink, strokeDash=[4, 3]).encode(x="one:Q")
    chart = (
        alt.layer(even, points)
        .properties(width=460, height={"step": 22}, background="transparent")
        .configure(font="sans-serif")
        .configure_axis(labelColor=ink, titleColor=ink, gridColor=ink, gridOpacity=0.18, domainColor=ink, tickColor=ink)
        .configure_legend(labelColor=ink, titleColor=ink)
        .configure_view(stroke=None)
    )
    return vl_convert.vegalite_to_svg(chart.to_dict())


def write(pages: Path, assets: Path) -> dict[Path, str]:
    """Return the files to write: the page, and two pictures for each subject that has enough cases."""
    import make_speed_tables

    rows = comparisons()
    made: dict[Path, str] = {pages / "made" / "speed.md": make_speed_tables.page(make_speed_tables.documents())}
    pictures = {}
    for subject in dict.fromkeys(row.subject for row in rows):
        some = [row for row in rows if row.subject == subject]
        if len({row.case for row in some}) >= 4:
            pictures[subject] = "peers-" + "".join(c if c.isalnum() else "-" for c in subject.lower())
            for mode in INK:
                made[assets / f"{pictures[subject]}-{mode}.svg"] = picture(some, mode)
    made[pages / "against-peers.md"] = page(rows, pictures)
    return made
