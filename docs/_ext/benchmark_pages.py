"""The tables and pictures of the benchmarks, made from the files in benchmarks/results/.

Each table says on what it was measured, with which versions, and when. Of a case that several files have, the newest
one counts. A cell has one figure; where the peer is faster, the ratio is bold.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridwise_py.display.quantities import format_count, format_time

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Machine:
    """What a file was measured on and with, and when."""

    gpu: str
    driver: str
    backend: str
    versions: Mapping[str, str]
    day: str
    source: str

    @property
    def name(self) -> str:
        """The short name of the GPU."""
        found = re.search(r"\b(H100|H200)\b", self.gpu)
        return found[1] if found else self.gpu


@dataclass(frozen=True)
class Comparison:
    """One case on one GPU: our time and a peer's, in nanoseconds per call."""

    subject: str
    case: str
    n: int
    peer: str
    version: str
    ours_ns: float
    theirs_ns: float
    how: str
    machine: Machine

    @property
    def ratio(self) -> float:
        """How many times as fast this library is."""
        return self.theirs_ns / self.ours_ns


#: What rows of benchmarks/peers/harness.py are about, by their group; others are of streams.
SUBJECTS = {
    "arrays": "Adds, reductions, scans and sorts",
    "sorts": "Adds, reductions, scans and sorts",
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
}
STREAM = "Selections, runs, keys and segments"
#: The page that a subject is on: the first one, or that of all cases.
FIRST = "Adds, reductions, scans and sorts"
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
NAMES = {
    "vector_add": "vector add",
    "scan": "scan, inclusive",
    "scan_exclusive": "scan, exclusive",
    "sort_pairs": "sort pairs",
}


def _cub(number: int | None) -> str:
    return f"{number // 100_000}.{number // 100 % 1000}.{number % 100}" if number else ""


def _version(document: Mapping[str, Any], peer: str, sides: Iterable[Mapping[str, Any]] = ()) -> str:
    found = document.get("peers", {}).get(peer) or document.get("peer", {}).get("version", "")
    for side in sides:
        found = found or (_cub(_within(side, "cub_version")) if peer == "cub" else side.get("version", ""))
    return str(found).partition("+")[0]


def _within(value: Any, key: str) -> Any:
    """Return the first value of a key in nested data; older files have a peer's version among its results."""
    if isinstance(value, list):
        return next(filter(None, (_within(part, key) for part in value)), None)
    if not isinstance(value, dict):
        return None
    return value.get(key) or next(filter(None, (_within(part, key) for part in value.values())), None)


def _rows(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of benchmarks/peers/harness.py: the first side is ours; of a peer's algorithms the fastest counts."""
    for row in document["results"]:
        ours, *others = row["sides"]
        if not row["correct"] or row.get("distribution", "uniform") != "uniform":
            continue
        known = "group" in row or "primitive" not in row
        case = row["case"] if known else row["primitive"]
        for (peer, words), (figure, how) in itertools.product(PEERS.items(), WAYS.items()):
            sides = [row["sides"][name] for name in others if name.partition(" ")[0] == peer]
            theirs = [side[figure] for side in sides if side.get(figure)]
            if row.get("group") == "nth" and peer == "torch" and len(sides) < 2:
                continue  # kthvalue alone, in one workgroup: PyTorch's sort is far faster
            if theirs and row["sides"][ours].get(figure):
                yield {
                    "subject": SUBJECTS.get(row.get("group"), STREAM) if known else FIRST,
                    "case": _named(case, row.get("datatype")),
                    "n": row["n"],
                    "peer": words,
                    "version": _version(document, peer, sides),
                    "ours_ns": row["sides"][ours][figure],
                    "theirs_ns": min(theirs),
                    "how": how,
                }


def _named(case: str, datatype: str | None) -> str:
    """Return a case with its datatype; most are of u32, which is not said."""
    words = [NAMES.get(word, word) for word in case.split(", ") if word not in ("u32", datatype)]
    return ", ".join([*words, *([datatype] if datatype not in (None, "u32") else [])])


def _streams(path: Path, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kept = STREAMS[path.name]
    for row in document["results"]:
        ours, theirs = row["sides"].get("gridwise_py", {}), row["sides"].get("cub", {})
        if not row["equal"] or (kept is not None and row["case"] not in kept):
            continue
        for figure, how in WAYS.items():
            if ours.get(figure) and theirs.get(figure):
                yield {
                    "subject": STREAM,
                    "case": _named(row["case"], row["datatype"]),
                    "n": row["n"],
                    "peer": "CUB",
                    "version": _version(document, "cub", [theirs]),
                    "ours_ns": ours[figure],
                    "theirs_ns": theirs[figure],
                    "how": how,
                }


def _pairs(path: Path, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of one side each, which belong together by what they measured."""
    subject, name, ours, theirs, peer = PAIRS[path.name]
    cases: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = {}
    for row in document["results"]:
        if row["right"] is not False:  # None: a peer whose result was not looked at
            n = row.get("n") or math.prod(row["shape"])
            cases.setdefault((name(row), n), {})[row["side"]] = row
    for (case, n), sides in cases.items():
        if ours in sides and theirs in sides:
            yield {
                "subject": subject,
                "case": case,
                "n": n,
                "peer": peer,
                "version": _version(document, "torch" if peer == "PyTorch" else "cub", [sides[theirs]]),
                "ours_ns": sides[ours]["time_ns"],
                "theirs_ns": sides[theirs]["time_ns"],
                "how": "single",
            }


def _shape(row: Mapping[str, Any]) -> str:
    return f"sum of {' × '.join(f'{length:,}' for length in row['shape'])}, axis {row['axis']}"


#: File: its subject, the name of a row's case, the names of both sides in the file, and the peer's.
PAIRS = {
    "axis_peer.json": ("Along an axis", _shape, "gridwise", "torch", "PyTorch"),
    "search_peer.json": (
        SUBJECTS["search"],
        lambda row: f"search, {row['queries']} queries",
        "gridwise",
        "torch",
        "PyTorch",
    ),
    "top_k_peer.json": (
        SUBJECTS["top k"],
        lambda row: f"the {row['k']} largest, {row['items']}",
        "gridwise",
        "torch",
        "PyTorch",
    ),
    "merge_peer.json": (SUBJECTS["search"], lambda row: "merge of two halves", "library", "CUB", "CUB"),
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
                    "version": _version(document, "cub", peers),
                    "ours_ns": row["sides"][form][f"{figure}_ns"],
                    "theirs_ns": min(times),
                    "how": how,
                }


def _read(path: Path) -> Iterator[tuple[Machine, dict[str, Any]]]:
    """Yield the comparisons of a file, if it has some."""
    document = json.loads(path.read_text(encoding="utf-8"))
    readers: dict[str, Any] = dict.fromkeys(STREAMS, _streams) | dict.fromkeys(PAIRS, _pairs)
    readers["segmented_sort_peer.json"] = _segmented_sorts
    results = document.get("results")
    of_harness = isinstance(results, list) and results and "correct" in results[0] and "sides" in results[0]
    if not of_harness and path.name not in readers:
        return
    device, context = document["device"], document["context"]
    versions = context.get("versions", {})
    machine = Machine(
        device["adapter"], device.get("driver", ""), device.get("backend", ""), versions, context["time"],
        f"{path.parent.name}/{path.name}",
    )  # fmt: skip
    for row in _rows(document) if of_harness else readers[path.name](path, document):
        yield machine, row


#: Files of comparisons; others of these folders hold further runs of the same.
FILES = ("*_peer*.json", "peers.json", "sort.json", "cub_list.json")


def comparisons() -> list[Comparison]:
    """Return every comparison of all files; of those with the same case, the newest."""
    newest: dict[tuple[Any, ...], Comparison] = {}
    for path in sorted(itertools.chain.from_iterable(RESULTS.glob(f"*/{pattern}") for pattern in FILES)):
        for machine, row in _read(path):
            found = Comparison(**row, machine=machine)
            key = (machine.gpu, found.subject, found.case, found.n, found.how, found.peer)
            age = (machine.day[:10], found.version, machine.day)
            if key not in newest or (newest[key].machine.day[:10], newest[key].version, newest[key].machine.day) < age:
                newest[key] = found
    return list(newest.values())


# ---- Markdown


def _unit(rows: Sequence[Comparison]) -> tuple[float, str]:
    """Return what divides nanoseconds, and its name: of short calls µs, of long ones ms."""
    return (1e6, "ms") if min(row.ours_ns for row in rows) >= 1e6 else (1e3, "µs")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:#.3g}"


def measured(rows: Iterable[Comparison]) -> str:
    """Return the line that says on what, with what and when the rows of a table were measured."""
    said = []
    every = list(rows)
    for gpu in sorted({row.machine.name for row in every}):
        of_gpu = [row for row in every if row.machine.name == gpu]
        machines = {row.machine.source: row.machine for row in of_gpu}
        drivers = sorted({machine.driver for machine in machines.values()})
        peers = sorted({f"{row.peer} {row.version or '(version not stored)'}" for row in of_gpu})
        files = [
            f"[{machine.day[:10]}](../../benchmarks/results/{source})" for source, machine in sorted(machines.items())
        ]
        own = sorted({machine.versions.get("gridwise_py", "") for machine in machines.values()})
        engine = sorted({machine.versions.get("wgpu", "") for machine in machines.values()})
        said.append(
            f"{gpu}: driver {', '.join(drivers)}, Vulkan, wgpu-py {', '.join(engine)}, gridwise_py {', '.join(own)}; "
            f"{', '.join(peers)}; {', '.join(files)}."
        )
    return " ".join(said)


def table(rows: Sequence[Comparison]) -> list[str]:
    """Return the lines of a table: a row for each case and peer, and for each GPU our time, theirs, and the ratio."""
    gpus = sorted({row.machine.name for row in rows})
    divisor, unit = _unit(rows)
    several = len({row.peer for row in rows}) > 1
    (peer, *_) = [row.peer for row in rows]
    heads = [
        head for gpu in gpus for head in (f"{gpu}, {unit}", f"{'peer' if several else peer}, {unit}", "times as fast")
    ]
    lines = [f"| case | {' | '.join(heads)} |", f"| --- | {' | '.join(['---:'] * len(heads))} |"]
    found = {(row.case, row.peer, row.machine.name): row for row in rows}
    for case, name in dict.fromkeys((row.case, row.peer) for row in sorted(rows, key=lambda row: (row.case, row.peer))):
        cells = [f"{case}; {name}" if several else case]
        for gpu in gpus:
            row = found.get((case, name, gpu))
            if row is None:
                cells += ["–", "–", "–"]
                continue
            ratio = f"{row.ratio:.2f}"
            cells += [_number(row.ours_ns / divisor), _number(row.theirs_ns / divisor)]
            cells += [f"**{ratio}**" if row.ratio < 0.995 else ratio]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


#: Of the first subject: lengths and ways that have a table. Of long calls both ways agree, short ones are a matter of
#: launches. Other subjects have single calls; `losses` has what is slower in any way.
TABLES = {("2^28", "single"), ("2^24", "single"), ("2^24", "back to back"), ("2^20", "back to back")}


def tables(rows: Sequence[Comparison], level: str) -> list[str]:
    """Return the tables of a subject: one for each number of items, and way of calling."""
    lines = []
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for row in rows:
        power = row.n & (row.n - 1) == 0
        # Arrays of rows and columns have about as many items.
        items = format_count(row.n) if power else f"about 2^{round(math.log2(row.n))}"
        if (items, row.how) in TABLES if row.subject == FIRST else row.how == "single" and row.n > 1 << 22:
            groups.setdefault((items, row.how), []).append(row)
    for items, how in sorted(groups, key=lambda key: (-max(row.n for row in groups[key]), key[1] != "single")):
        some = groups[items, how]
        lines += [f"{level} {items} items, {how}", "", *table(some), "", measured(some), ""]
    return lines


def losses(rows: Sequence[Comparison]) -> list[str]:
    """Return a table of the cases in which a peer is faster by 5 % or more, with the worst length and way of each."""
    worst: dict[tuple[str, str, bool], Comparison] = {}
    for row in rows:
        if row.ratio < 0.95:
            key = (row.machine.name, row.case, row.n >= 1 << 24)
            if key not in worst or row.ratio < worst[key].ratio:
                worst[key] = row
    lines = [
        "| GPU | case | items | call | ours, µs | peer, µs | peer | times as fast |",
        "| --- | --- | --- | --- | ---: | ---: | --- | ---: |",
    ]
    for row in sorted(worst.values(), key=lambda row: (row.machine.name, -row.n, row.ratio)):
        cells = [
            row.machine.name, row.case, format_count(row.n), row.how, _number(row.ours_ns / 1e3),
            _number(row.theirs_ns / 1e3), row.peer, f"**{row.ratio:.2f}**",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", measured(worst.values()), ""]


def page(rows: Sequence[Comparison], pictures: Mapping[str, str]) -> str:
    """Return the page of all cases. `pictures` has the file name of each subject's picture, without ``-light.svg``."""
    lines = [
        "# Case by case",
        "",
        "Made by the build from the files that the dates link. Above 1 gridwise_py is faster; **bold**: the peer is.",
        "[How it was measured](index.md#how-it-was-measured).",
        "",
    ]
    for subject in dict.fromkeys(row.subject for row in rows if row.subject != FIRST):
        some = [row for row in rows if row.subject == subject]
        lines += [f"## {subject}", ""]
        if subject in pictures:
            words, name = f"{subject}: times as fast as the peer", f"../assets/made/{pictures[subject]}"
            lines += [f"![{words}]({name}-{mode}.svg){{.only-{mode}}}" for mode in INK]
            lines += [""]
        lines += tables(some, "###")
    return "\n".join(lines)


# ---- other figures


def _load(name: str) -> Any:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def _ratio(values: Iterable[float]) -> str:
    low, high = min(found := list(values)), max(found)
    return f"{low:.2f} to {high:.2f}" if f"{low:.2f}" != f"{high:.2f}" else f"{low:.2f}"


def others() -> list[str]:
    """Return a table of figures that are no comparison with a peer's kernel."""
    rows: list[tuple[str, str, str, str]] = []

    def add(what: str, result: str, name: str) -> None:
        document = _load(name)
        context, device = document.get("context", document), document.get("device") or {}
        gpu = name.partition("/")[0].upper()
        driver = f", driver {device['driver']}" if device.get("driver") else ""
        versions = f"gridwise_py {context['versions']['gridwise_py']}, wgpu-py {context['versions']['wgpu']}"
        rows.append(
            (what, result, f"{gpu}{driver}, {versions}", f"[{context['time'][:10]}](../../benchmarks/results/{name})")
        )

    for name in ("h100/host_overhead_1.json", "h200/host_overhead.json"):
        calls = [row for row in _load(name)["results"] if not row["with_wait"]]
        took = statistics.median(row["execute_ns"] for row in calls)
        by_hand = [row["execute_ns"] / row["by_hand_ns"] for row in calls]
        add(
            "`execute()` of a bound primitive, over wgpu-py calls by hand",
            f"{format_time(took)}, {_ratio(by_hand)} ×",
            name,
        )
    name = "h100/import_cost.json"
    add("`import gridwise_py` after numpy and wgpu", format_time(_load(name)["added_s"] * 1e9), name)
    for name in ("h200/windows.json", "h200/windows_sort.json"):
        found = _load(name)["results"]
        costs = [row["cost_percent"] for row in found if row["cost_percent"] is not None]
        kernels = ", ".join(dict.fromkeys(row["kernel"] for row in found if "x + x" not in row["kernel"])).replace(
            "_", " "
        )
        add(
            f"more time for an item of arrays larger than a binding: {kernels}",
            f"{min(costs):.1f} to {max(costs):.1f} %",
            name,
        )
    name = "h200/matmul_shapes.json"
    document = _load(name)
    best = min(row["time_ns"] for row in document["results"] if row["correct"])
    rate = 2 * document["n"] ** 3 / best / statistics.mean(document["fma_gflops"])
    add(
        f"f32 matrices of {document['n']} × {document['n']}",
        f"{format_time(best)}, {100 * rate:.1f} % of the multiply-adds measured",
        name,
    )
    name = "h200/host_path.json"
    for row in _load(name)["results"]:
        if row["part"] == "transfers" and row["way"] in ("up: copy_from", "down: to_numpy(out=)"):
            add(f"1 GiB {row['way'].replace(': ', ', `')}`", f"{row['gbytes_per_s']:.1f} GB/s", name)
    lines = ["| what | result | on and with | when |", "| --- | --- | --- | --- |"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


# ---- pictures

INK = {"light": "#3b3f46", "dark": "#ced6dd"}
COLOURS = {"light": ("#0b62a4", "#b3470f"), "dark": ("#6cb6ff", "#ffa657")}


def picture(rows: Sequence[Comparison], mode: str) -> str:
    """Return an SVG: a point for each case and GPU at how many times as fast we are, on a logarithmic axis."""
    import altair
    import vl_convert

    alt: Any = altair
    # Single calls; of each case the largest n: arrays of all shapes are about as large.
    single = [row for row in rows if row.how == "single"]
    largest: dict[tuple[str, str], Comparison] = {}
    for row in single:
        key = (row.case, row.machine.name)
        if key not in largest or largest[key].n < row.n:
            largest[key] = row
    shown = list(largest.values())
    ink = INK[mode]
    gpus = sorted({row.machine.name for row in shown})
    data = [{"case": row.case, "ratio": row.ratio, "GPU": row.machine.name} for row in shown]
    order = list(dict.fromkeys(row.case for row in sorted(shown, key=lambda row: -row.ratio)))
    x = alt.X(
        "ratio:Q",
        scale=alt.Scale(type="log", nice=False, padding=12),
        title="times as fast as the peer",
        axis=alt.Axis(values=[0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000], format="~g"),
    )
    y = alt.Y("case:N", sort=order, title=None, axis=alt.Axis(labelLimit=320))
    colour = alt.Color(
        "GPU:N",
        title=None,
        scale=alt.Scale(domain=gpus, range=list(COLOURS[mode][: len(gpus)])),
        legend=alt.Legend(orient="top"),
    )
    shape = alt.Shape("GPU:N", title=None, scale=alt.Scale(domain=gpus, range=["circle", "diamond"][: len(gpus)]))
    values = alt.Data(values=data)
    points = alt.Chart(values).mark_point(size=80, filled=True, opacity=1).encode(x=x, y=y, color=colour, shape=shape)
    even = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(color=ink, strokeDash=[4, 3]).encode(x="one:Q")
    about = re.sub(r"\[([\d-]+)\]\([^)]*\)", r"\1", measured(shown))
    chart = (
        alt.layer(even, points)
        .properties(
            width=460,
            height={"step": 22},
            background="transparent",
            title=alt.Title("single calls, largest n", subtitle=re.split(r"(?<=\.) (?=H\d)", about), anchor="start"),
        )
        .configure(font="sans-serif")
        .configure_title(color=ink, subtitleColor=ink, fontSize=12, subtitleFontSize=10)
        .configure_axis(labelColor=ink, titleColor=ink, gridColor=ink, gridOpacity=0.18, domainColor=ink, tickColor=ink)
        .configure_legend(labelColor=ink, titleColor=ink)
        .configure_view(stroke=None)
    )
    return vl_convert.vegalite_to_svg(chart.to_dict())


def write(pages: Path, assets: Path) -> dict[Path, str]:
    """Return the files to write: the tables, and two pictures for each subject that has enough cases."""
    rows = comparisons()
    first = [row for row in rows if row.subject == FIRST]
    made: dict[Path, str] = {
        pages / "made" / "first.md": "\n".join(tables(first, "###")),
        pages / "made" / "losses.md": "\n".join(losses(rows)),
        pages / "made" / "others.md": "\n".join(others()),
    }
    pictures = {}
    for subject in dict.fromkeys(row.subject for row in rows if row.subject != FIRST):
        some = [row for row in rows if row.subject == subject]
        if len({row.case for row in some}) >= 4:
            pictures[subject] = "peers-" + "".join(c if c.isalnum() else "-" for c in subject.lower())
            for mode in INK:
                made[assets / f"{pictures[subject]}-{mode}.svg"] = picture(some, mode)
    made[pages / "against-peers.md"] = page(rows, pictures)
    return made
