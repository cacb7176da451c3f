"""The tables and pictures of comparisons with peers, made from the files in benchmarks/results/.

Each table says on what it was measured, with which versions, and when. Of a case that several files have, the newest
one counts. A cell has one figure; where the peer is faster, the ratio is bold.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridwise_py.display.quantities import format_count

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


@dataclass(frozen=True)
class Comparison:
    """One case on one GPU: our time and a peer's, in nanoseconds per call; on what, with what and when."""

    subject: str
    case: str
    n: int
    peer: str
    version: str
    how: str
    ours_ns: float
    theirs_ns: float
    source: str
    day: str
    own: str
    engine: str
    gpu: str
    driver: str

    @property
    def ratio(self) -> float:
        """How many times as fast this library is."""
        return self.theirs_ns / self.ours_ns

    @property
    def machine(self) -> str:
        """Short name of the GPU."""
        found = re.search(r"\b(H100|H200)\b", self.gpu)
        return found[1] if found else self.gpu


#: What rows are about, by their group; others are of streams.
SUBJECTS = {
    "arrays": "Adds, reductions, scans and sorts",
    "sorts": "Adds, reductions, scans and sorts",
    "adversarial": "Uneven data",
    "axis": "Along an axis",
    "axis scans": "Along an axis",
    "search": "Search, merge and the k best",
    "top k": "Search, merge and the k best",
    "find": "First items, both ends, medians and ranges",
    "both ends": "First items, both ends, medians and ranges",
    "nth": "First items, both ends, medians and ranges",
    "ranges": "First items, both ends, medians and ranges",
    "reductions": "Reductions to structs",
    "gather": "Gathers",
    "take": "Gathers",
}
STREAM = "Selections, runs, keys and segments"
#: The subject of the first page; the page of all cases has the others.
FIRST = "Adds, reductions, scans and sorts"
PEERS = {"cub": "CUB", "torch": "PyTorch", "cupy": "CuPy"}
WAYS = {"single": "single", "back_to_back": "back to back"}
NAMES = {
    "vector_add": "vector add",
    "scan": "scan, inclusive",
    "scan_exclusive": "scan, exclusive",
    "sort_pairs": "sort pairs",
}
#: Files of comparisons; others of these folders hold further runs of the same.
FILES = ("*_peer.json", "peers_of_older_programs.json", "cub_list.json")


def _version(document: Mapping[str, Any], peer: str, sides: Sequence[Mapping[str, Any]]) -> str:
    if peer != "cub":
        return document["peers"][peer].partition("+")[0]
    parts = (part for side in sides for part in (side, *side.get("program", ())))
    number = next((part["cub_version"] for part in parts if "cub_version" in part), 0)
    return f"{number // 100_000}.{number // 100 % 1000}.{number % 100}" if number else ""


def _name(case: str, datatype: str | None) -> str:
    """A case with its datatype; most are of u32, which is not said."""
    words = [NAMES.get(word, word) for word in case.split(", ") if word not in ("u32", datatype)]
    return ", ".join([*words, *([datatype] if datatype not in (None, "u32") else [])])


def _read(path: Path) -> Iterator[Comparison]:
    """Comparisons of a file of benchmarks/peers: the first side is ours; of a peer's algorithms the fastest counts."""
    document = json.loads(path.read_text(encoding="utf-8"))
    yield from (Comparison(**row) for row in document.get("comparisons", ()))
    rows = document.get("results", ())
    if not (rows and isinstance(rows, list) and {"correct", "group", "sides"} <= rows[0].keys()):
        return
    device, context = document["device"], document["context"]
    for row, (peer, words), (figure, how) in itertools.product(rows, PEERS.items(), WAYS.items()):
        ours, *others = row["sides"]
        sides = [row["sides"][name] for name in others if name.partition(" ")[0] == peer]
        theirs = [side[figure] for side in sides if side.get(figure)]
        if not (row["correct"] and row.get("distribution", "uniform") == "uniform" and theirs):
            continue
        if row["group"] == "nth" and peer == "torch" and len(sides) < 2:
            continue  # kthvalue alone, in one workgroup: PyTorch's sort is far faster
        if row["sides"][ours].get(figure):
            yield Comparison(
                subject=SUBJECTS.get(row["group"], STREAM),
                case=_name(row["case"], row.get("datatype")),
                n=row["n"],
                peer=words,
                version=_version(document, peer, sides),
                how=how,
                ours_ns=row["sides"][ours][figure],
                theirs_ns=min(theirs),
                source=f"{path.parent.name}/{path.name}",
                day=context["time"][:10],
                own=context["versions"]["gridwise_py"],
                engine=context["versions"]["wgpu"],
                gpu=device["adapter"],
                driver=device["driver"],
            )


def comparisons() -> list[Comparison]:
    """Every comparison of all files; of those with the same case, the newest."""
    newest: dict[tuple[Any, ...], Comparison] = {}
    for path in sorted(itertools.chain.from_iterable(RESULTS.glob(f"*/{pattern}") for pattern in FILES)):
        for found in _read(path):
            key = (found.gpu, found.subject, found.case, found.n, found.how, found.peer)
            if key not in newest or (newest[key].day, newest[key].version) <= (found.day, found.version):
                newest[key] = found
    return list(newest.values())


# ---- Markdown


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:#.3g}"


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def measured(rows: Sequence[Comparison]) -> str:
    """The line that says on what, with what and when the rows of a table were measured."""
    said = []
    for gpu in sorted({row.machine for row in rows}):
        some = [row for row in rows if row.machine == gpu]
        drivers, engines, own = (sorted({getattr(row, what) for row in some}) for what in ("driver", "engine", "own"))
        peers = sorted({f"{row.peer} {row.version or '(version not stored)'}" for row in some})
        files = [f"[{day}](../../benchmarks/results/{name})" for name, day in sorted({(r.source, r.day) for r in some})]
        said.append(
            f"{gpu}: driver {', '.join(drivers)}, Vulkan, wgpu-py {', '.join(engines)}, gridwise_py {', '.join(own)}; "
            f"{', '.join(peers)}; {', '.join(files)}."
        )
    return " ".join(said)


def table(rows: Sequence[Comparison]) -> list[str]:
    """The lines of a table: a row for each case and peer, and for each GPU our time, theirs, and the ratio."""
    gpus = sorted({row.machine for row in rows})
    divisor, unit = (1e6, "ms") if min(row.ours_ns for row in rows) >= 1e6 else (1e3, "µs")
    several = len({row.peer for row in rows}) > 1
    peer = "peer" if several else rows[0].peer
    heads = ["case", *(head for gpu in gpus for head in (f"{gpu}, {unit}", f"{peer}, {unit}", "times as fast"))]
    lines = [_row(heads), _row(["---", *["---:"] * (len(heads) - 1)])]
    found = {(row.case, row.peer, row.machine): row for row in rows}
    for case, name in sorted({(row.case, row.peer) for row in rows}):
        cells = [f"{case}; {name}" if several else case]
        for row in (found.get((case, name, gpu)) for gpu in gpus):
            cells += _cells(row, divisor) if row else ["–"] * 3
        lines.append(_row(cells))
    return lines


def _cells(row: Comparison, divisor: float) -> list[str]:
    ratio = f"**{row.ratio:.2f}**" if row.ratio < 0.995 else f"{row.ratio:.2f}"
    return [_number(row.ours_ns / divisor), _number(row.theirs_ns / divisor), ratio]


#: Of the first subject: lengths and ways that have a table. Of long calls both ways agree, short ones are a matter of
#: launches. Other subjects have single calls; `losses` has what is slower in any way.
TABLES = {("2^28", "single"), ("2^24", "single"), ("2^24", "back to back"), ("2^20", "back to back")}


def tables(rows: Sequence[Comparison], level: str) -> list[str]:
    """The tables of a subject, one for each number of items and way of calling, and on what all were measured."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for row in rows:
        # Arrays of rows and columns have about as many items.
        items = format_count(row.n) if row.n & (row.n - 1) == 0 else f"about 2^{round(math.log2(row.n))}"
        if (items, row.how) in TABLES if row.subject == FIRST else row.how == "single" and row.n > 1 << 22:
            groups.setdefault((items, row.how), []).append(row)
    lines = []
    for items, how in sorted(groups, key=lambda key: (-max(row.n for row in groups[key]), key[1] != "single")):
        lines += [f"{level} {items} items, {how}", "", *table(groups[items, how]), ""]
    return [*lines, measured([row for some in groups.values() for row in some]), ""]


def losses(rows: Sequence[Comparison]) -> list[str]:
    """A table of what a peer does faster by 5 % or more, with the worst data, length and way of each."""
    worst: dict[tuple[str, str, bool], Comparison] = {}
    for row in sorted(rows, key=lambda row: -row.ratio):
        if row.ratio < 0.95:
            worst[row.machine, re.split(", | of ", row.case)[0], row.n >= 1 << 24] = row
    heads = ["GPU", "case", "items", "call", "peer", "ours, µs", "peer, µs", "times as fast"]
    lines = [_row(heads), _row([*["---"] * 5, *["---:"] * 3])]
    for row in sorted(worst.values(), key=lambda row: (row.machine, -row.n, row.ratio)):
        lines.append(
            _row([row.machine, row.case, format_count(row.n), row.how.replace(" ", "-"), row.peer, *_cells(row, 1e3)])
        )
    return [*lines, "", measured(list(worst.values())), ""]


def page(rows: Sequence[Comparison], pictures: Mapping[str, str]) -> str:
    """The page of all cases. `pictures` has the file name of each subject's picture, without ``-light.svg``."""
    lines = [
        "# Case by case",
        "",
        "Made by the build from the files that the dates link. Above 1 gridwise_py is faster; **bold**: the peer is.",
        "[How it was measured](index.md#how-it-was-measured).",
        "",
    ]
    for subject in dict.fromkeys(row.subject for row in rows if row.subject != FIRST):
        lines += [f"## {subject}", ""]
        if subject in pictures:
            words, name = f"{subject}: times as fast as the peer", f"../assets/made/{pictures[subject]}"
            lines += [f"![{words}]({name}-{mode}.svg){{.only-{mode}}}" for mode in INK]
            lines += [""]
        lines += tables([row for row in rows if row.subject == subject], "###")
    return "\n".join(lines)


# ---- pictures

INK = {"light": "#3b3f46", "dark": "#ced6dd"}
COLOURS = {"light": ["#0b62a4", "#b3470f"], "dark": ["#6cb6ff", "#ffa657"]}


def picture(rows: Sequence[Comparison], mode: str) -> str:
    """An SVG: a point for each case and GPU at how many times as fast we are, on a logarithmic axis."""
    import altair
    import vl_convert

    alt: Any = altair
    # Single calls; of each case the largest n: arrays of all shapes are about as large.
    single = sorted((row for row in rows if row.how == "single"), key=lambda row: row.n)
    shown = list({(row.case, row.machine): row for row in single}.values())
    gpus = sorted({row.machine for row in shown})
    about = re.sub(r"\[([\d-]+)\]\([^)]*\)", r"\1", measured(shown))
    scale = alt.Scale(type="log", nice=False, padding=12)
    axis = alt.Axis(values=[0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000], format="~g")
    order = list(dict.fromkeys(row.case for row in sorted(shown, key=lambda row: -row.ratio)))
    points = (
        alt.Chart(alt.Data(values=[{"case": row.case, "ratio": row.ratio, "GPU": row.machine} for row in shown]))
        .mark_point(size=80, filled=True, opacity=1)
        .encode(
            x=alt.X("ratio:Q", scale=scale, title="times as fast as the peer", axis=axis),
            y=alt.Y("case:N", sort=order, title=None, axis=alt.Axis(labelLimit=320)),
            color=alt.Color("GPU:N", title=None, scale=alt.Scale(domain=gpus, range=COLOURS[mode][: len(gpus)])),
            shape=alt.Shape("GPU:N", title=None, scale=alt.Scale(domain=gpus, range=["circle", "diamond"])),
        )
    )
    ink = INK[mode]
    even = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(color=ink, strokeDash=[4, 3]).encode(x="one:Q")
    title = alt.Title("single calls, largest n", subtitle=re.split(r"(?<=\.) (?=H\d)", about), anchor="start")
    chart = (
        alt.layer(even, points)
        .properties(width=460, height={"step": 22}, background="transparent", title=title)
        .configure(font="sans-serif")
        .configure_title(color=ink, subtitleColor=ink, fontSize=12, subtitleFontSize=10)
        .configure_axis(labelColor=ink, titleColor=ink, gridColor=ink, gridOpacity=0.18, domainColor=ink, tickColor=ink)
        .configure_legend(labelColor=ink, titleColor=ink, orient="top")
        .configure_view(stroke=None)
    )
    return vl_convert.vegalite_to_svg(chart.to_dict())


def made() -> dict[str, str]:
    """The text of each file, by its path in docs/: tables, and two pictures for each subject with enough cases."""
    rows = comparisons()
    files = {
        "benchmarks/made/first.md": "\n".join(tables([row for row in rows if row.subject == FIRST], "###")),
        "benchmarks/made/losses.md": "\n".join(losses(rows)),
    }
    pictures = {}
    for subject in dict.fromkeys(row.subject for row in rows if row.subject != FIRST):
        some = [row for row in rows if row.subject == subject]
        if len({row.case for row in some}) >= 4:
            pictures[subject] = "peers-" + re.sub(r"\W", "-", subject.lower())
            files |= {f"assets/made/{pictures[subject]}-{mode}.svg": picture(some, mode) for mode in INK}
    return {**files, "benchmarks/against-peers.md": page(rows, pictures)}
