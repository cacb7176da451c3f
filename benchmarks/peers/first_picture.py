"""Draw the first picture of the README and the site: kernels and whole calls against CUB and PyTorch.

Usage: python benchmarks/peers/first_picture.py [FILE]... [-o docs/assets/first]

FILE is one or more files of cases.py. Without any it takes first.json, peers.json and sort.json of
benchmarks/results/h200, as far as they are there.
All bars of a primitive are from one run: the newest one that has right results of the most sides. The picture says of
how many runs it is. It writes first-light.svg and first-dark.svg.

The full colour of a bar is the time per call back to back, without launches. The dim end is what a single call takes
beyond that. Our kernels are parts of our bar, in the proportions of the timestamps of a single call; a file without
times of kernels (made before November 23, 2026) gives one part.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from harness import AxisList

from gridwise_py.bench.report.picture import below, still, titled, write_picture
from gridwise_py.bench.report.vega import Datasets, Spec, load_altair
from gridwise_py.display.quantities import format_count, format_time

ROOT = Path(__file__).resolve().parents[2]
SOURCES = tuple(ROOT / "benchmarks" / "results" / "h200" / name for name in ("first.json", "peers.json", "sort.json"))
SIDES = {"gridwise_py": "gridwise_py", "cub": "CUB", "torch": "PyTorch"}
NAMES = {
    "copy": "copy", "vector_add": "vector add", "reduce": "reduce (sum)", "scan": "scan (running sum)",
    "scan_exclusive": "scan, exclusive", "sort": "sort", "sort_pairs": "sort of pairs",
}  # fmt: skip
# Pixels. A README is read on phones, too: at 400 pixels the letters must still be some 10 high.
WIDTH, LABELS, BAR, ROW = 560, 92, 20, 27
CHART = WIDTH - LABELS - 24
LETTERS, SMALL = 15, 13
# Of the longest bar; the rest is for the figures behind it.
ROOM = 1.5


@dataclass(frozen=True)
class Theme:
    """Colours of the page that the picture is on, and of the bars."""

    page: str
    ink: str
    soft: str
    mine: tuple[str, str]
    mine_more: str
    theirs: str
    theirs_more: str


# Okabe and Ito's blue, and greys; kernels take turns in two blues, so that they can be told apart in print.
THEMES = {
    "light": Theme("#ffffff", "#1b1f24", "#57606a", ("#0072b2", "#3b9bd4"), "#a9d3ec", "#8c959f", "#d0d7de"),
    "dark": Theme("#0d1117", "#e6edf3", "#9da7b3", ("#56b4e9", "#2f86bd"), "#1f4a68", "#7d8590", "#3d444d"),
}


def chosen(documents: Sequence[Mapping[str, Any]], primitive: str, n: int, datatype: str) -> tuple[Any, Any] | None:
    """Return document and result of a primitive: the newest with the most sides, all of one run."""
    found = [
        (len(_sides(result)), document["context"]["time"], i, document, result)
        for i, document in enumerate(documents)
        for result in document["results"]
        if (result.get("primitive"), result["n"], result.get("datatype")) == (primitive, n, datatype)
        and result.get("distribution", "uniform") == "uniform"
        and result["correct"]
        and "gridwise_py" in _sides(result)
    ]
    if not found:
        return None
    *_, document, result = max(found, key=lambda one: one[:3])
    return document, result


def _sides(result: Mapping[str, Any]) -> list[str]:
    """Return the sides that were measured and are right."""
    sides = result["sides"]
    return [
        side
        for side in SIDES
        if sides.get(side, {}).get("back_to_back") and sides[side].get("correct", True) is not False
    ]


def bars(result: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the parts of the bars of a primitive, and the figures behind them. Times are in nanoseconds."""
    parts: list[dict[str, Any]] = []
    figures: list[dict[str, Any]] = []
    mine_ns = result["sides"]["gridwise_py"]["back_to_back"]
    for side in _sides(result):
        given = result["sides"][side]
        whole_ns = given["back_to_back"]
        kernels = _kernels(given) or [{"label": "", "ns": 1.0}]
        shares = [kernel["ns"] / sum(kernel["ns"] for kernel in kernels) for kernel in kernels]
        ends = [whole_ns * share for share in itertools.accumulate(shares)]
        for i, (kernel, begin, end) in enumerate(zip(kernels, [0.0, *ends], ends, strict=False)):
            kind = f"mine{i % 2}" if side == "gridwise_py" else "theirs"
            parts.append({"side": SIDES[side], "kind": kind, "from": begin, "to": end, "kernel": kernel["label"]})
        single_ns = given.get("single")
        if single_ns is not None and single_ns > whole_ns:
            kind = "mine more" if side == "gridwise_py" else "theirs more"
            parts.append({"side": SIDES[side], "kind": kind, "from": whole_ns, "to": single_ns, "kernel": ""})
        ratio = "" if side == "gridwise_py" else f"{whole_ns / mine_ns:.2f} ×"
        figures.append(
            {"side": SIDES[side], "at": max(whole_ns, single_ns or 0.0), "text": format_time(whole_ns), "ratio": ratio}
        )
    return parts, figures


def _kernels(side: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the kernels of a call, or none unless all of them were timed."""
    kernels = side.get("kernels", [])
    return kernels if all(kernel["ns"] is not None for kernel in kernels) else []


def kernel_line(kernels: Sequence[Mapping[str, Any]]) -> str:
    """Return what a single call consists of: ``"histogram 262 µs + 4 × pass 1.40 ms"``; "" if that is not known."""
    groups: list[tuple[str, list[float]]] = []
    for kernel in kernels:
        name = re.sub(r"\s*\d+$", "", kernel["label"])
        if groups and groups[-1][0] == name and name != kernel["label"]:
            groups[-1][1].append(kernel["ns"])
        else:
            groups.append((name, [kernel["ns"]]))
    if len(kernels) < 2:
        return "one kernel" if kernels else ""
    return " + ".join(
        f"{name} {format_time(times[0])}" if len(times) == 1
        else f"{len(times)} × {name} {format_time(sum(times) / len(times))}"
        for name, times in groups
    )  # fmt: skip


def chart(result: Mapping[str, Any], theme: Theme) -> Spec:
    """Return the bars of one primitive."""
    alt, datasets = load_altair(), Datasets()
    parts, figures = bars(result)
    sides = [SIDES[side] for side in _sides(result)]
    most = max(figure["at"] for figure in figures)
    x = alt.X("from:Q", axis=None, scale=alt.Scale(domain=[0, ROOM * most], nice=False))
    axis = alt.Axis(title=None, domain=False, ticks=False, labelFontSize=LETTERS, labelColor=theme.ink, labelPadding=8,
                    minExtent=LABELS, maxExtent=LABELS)  # fmt: skip
    y = alt.Y("side:N", sort=sides, axis=axis)
    colours = {"mine0": theme.mine[0], "mine1": theme.mine[1], "mine more": theme.mine_more,
               "theirs": theme.theirs, "theirs more": theme.theirs_more}  # fmt: skip
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    bar = (
        alt.Chart(datasets.data(parts))
        .mark_bar(height=BAR, stroke=theme.page, strokeWidth=0.75)
        .encode(x=x, x2="to:Q", y=y, color=alt.Color("kind:N", scale=scale, legend=None))
    )
    behind = alt.Chart(datasets.data(figures))
    text = behind.mark_text(align="left", dx=7, fontSize=LETTERS, color=theme.ink)
    ratio = behind.mark_text(align="right", fontSize=LETTERS, color=theme.ink)
    layers = [
        bar,
        text.encode(x="at:Q", y=y, text="text:N"),
        ratio.encode(x=alt.value(CHART), y=y, text="ratio:N"),
    ]
    made = still(datasets.spec(alt.layer(*layers)), CHART, ROW * len(sides))
    line = kernel_line(_kernels(result["sides"]["gridwise_py"]))
    title = {"text": [NAMES.get(result["primitive"], result["primitive"])], "anchor": "start", "frame": "group",
             "fontSize": LETTERS, "fontWeight": "bold", "color": theme.ink, "offset": 4}  # fmt: skip
    if line:
        title |= {"subtitle": [f"one call: {line}" if "+" in line else line], "subtitleFontSize": SMALL,
                  "subtitleColor": theme.soft, "subtitlePadding": 2}  # fmt: skip
    return {**made, "title": title}


def picture(
    documents: Sequence[Mapping[str, Any]], primitives: Sequence[str], n: int, datatype: str, theme: Theme
) -> Spec:
    """Return the specification of the picture.

    Raises
    ------
    click.UsageError
        If a primitive is in no file, or the files are of different GPUs.
    """
    found = {name: chosen(documents, name, n, datatype) for name in primitives}
    missing = [name for name, one in found.items() if one is None]
    if missing:
        raise click.UsageError(f"no right result of {', '.join(missing)} at {format_count(n)}, {datatype}")
    used = list({document["context"]["time"]: document for document, _ in found.values()}.values())
    devices = {(document["device"]["adapter"], document["device"]["driver"]) for document in used}
    if len(devices) > 1:
        raise click.UsageError(f"these files are of different GPUs or drivers: {sorted(devices)}")
    charts = [chart(result, theme) for _, result in found.values()]
    ((adapter, driver),) = devices
    title = f"Time of a call with {format_count(n)} items of {datatype}, {adapter}"
    notes = [
        "Shorter is better. ×: time of the peer over that of gridwise_py.",
        "Full colour: per call, back to back. Dim end: what a single call adds.",
        _source(used, [result for _, result in found.values()], driver),
    ]
    made = titled(below(charts), [title], width=WIDTH, size=LETTERS + 1)
    heading = {"text": made["title"]["text"], "fontSize": LETTERS + 1, "color": theme.ink, "subtitle": notes,
               "subtitleFontSize": SMALL, "subtitleColor": theme.soft, "subtitlePadding": 6, "lineHeight": 21,
               "subtitleLineHeight": 18, "offset": 14, "anchor": "start", "frame": "bounds"}  # fmt: skip
    return {**made, "spacing": 16, "title": heading, "config": {"background": theme.page}}


def _source(documents: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]], driver: str) -> str:
    """Return versions and dates; more than one run is said."""
    days = sorted({document["context"]["time"][:10] for document in documents})
    words = [f"driver {driver}"]
    cub = next((side["cub_version"] for one in results if "cub_version" in (side := one["sides"].get("cub", {}))), None)
    if cub is not None:
        words.append(f"CUB {cub // 100_000}.{cub // 100 % 1000}.{cub % 100}")
    torch = next((side["version"] for one in results if "version" in (side := one["sides"].get("torch", {}))), None)
    if torch is not None:
        words.append(f"PyTorch {torch.partition('+')[0]}")
    runs = "" if len(documents) == 1 else f", {len(documents)} runs"
    return f"{', '.join(words)}; {' and '.join(days)}{runs}"


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--n", "counts", type=AxisList("n"), default="2^28", show_default=True, help="Items.")
@click.option("--datatype", default="u32", show_default=True)
@click.option("--primitives", default="reduce,scan,sort", show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path), default=ROOT / "docs" / "assets" / "first",
              help="What the two names begin with.  [default: docs/assets/first]")  # fmt: skip
def main(files: tuple[Path, ...], counts: list[int], datatype: str, primitives: str, out: Path) -> None:
    """Draw FILES, which cases.py wrote with --json."""
    (n,) = counts
    paths = files or [path for path in SOURCES if path.exists()]
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    out.parent.mkdir(parents=True, exist_ok=True)
    for name, theme in THEMES.items():
        spec = picture(documents, primitives.split(","), n, datatype, theme)
        path = out.with_name(f"{out.name}-{name}.svg")
        write_picture(spec, path)
        click.echo(f"wrote {path}")


if __name__ == "__main__":
    main()
