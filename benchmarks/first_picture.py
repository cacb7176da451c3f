"""Draw the first picture of the README and the site: tables grouped, sorted and joined beside pandas and polars.

Usage: python benchmarks/first_picture.py [FILE] [-o docs/assets/first]

FILE is one of when_a_gpu_pays.py, by default benchmarks/results/h200/when_a_gpu_pays.json; its rows of 10^8 are drawn.
Writes first-light.svg and first-dark.svg. Each operation has its own scale, from 0; × is how many times as fast as the
faster peer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from when_a_gpu_pays import HOST, RESIDENT, best_peer

from gridwise_py.bench.report.picture import below, still, titled, write_picture
from gridwise_py.bench.report.vega import Datasets, Spec, load_altair
from gridwise_py.display.quantities import format_time

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "benchmarks" / "results" / "h200" / "when_a_gpu_pays.json"
SIDES = {"pandas": "pandas", "polars": "polars", HOST: "from numpy", RESIDENT: "on the GPU"}
# Pixels. A README is read on phones, too: at 400 pixels the letters must still be some 10 high.
WIDTH, LABELS, BAR, ROW = 560, 92, 18, 24
CHART = WIDTH - LABELS - 24
LETTERS, SMALL = 15, 13
# Of the longest bar; the rest is for the figures behind it.
ROOM = 1.35


@dataclass(frozen=True)
class Theme:
    """Colours of the page that the picture is on, and of the bars."""

    page: str
    ink: str
    soft: str
    mine: str
    theirs: str


# Okabe and Ito's blue, and grey.
THEMES = {
    "light": Theme("#ffffff", "#1b1f24", "#57606a", "#0072b2", "#8c959f"),
    "dark": Theme("#0d1117", "#e6edf3", "#9da7b3", "#56b4e9", "#7d8590"),
}


def chart(row: Mapping[str, Any], theme: Theme) -> Spec:
    """Return the bars of one operation."""
    alt, datasets = load_altair(), Datasets()
    best = best_peer(row)
    times = {name: ns for name in SIDES if (ns := row["sides"].get(name)) is not None}
    parts = [
        {
            "side": SIDES[name], "ns": ns, "kind": "mine" if name in (HOST, RESIDENT) else "theirs",
            "text": format_time(ns) + (f", {best[1] / ns:.3g} ×" if best and name in (HOST, RESIDENT) else ""),
        }
        for name, ns in times.items()
    ]  # fmt: skip
    axis = alt.Axis(title=None, domain=False, ticks=False, labelFontSize=LETTERS, labelColor=theme.ink, labelPadding=8,
                    minExtent=LABELS, maxExtent=LABELS)  # fmt: skip
    x = alt.X("ns:Q", axis=None, scale=alt.Scale(domain=[0, ROOM * max(times.values())], nice=False))
    y = alt.Y("side:N", sort=[SIDES[name] for name in times], axis=axis)
    colours = alt.Scale(domain=["mine", "theirs"], range=[theme.mine, theme.theirs])
    base = alt.Chart(datasets.data(parts)).encode(x=x, y=y)
    bar = base.mark_bar(height=BAR).encode(color=alt.Color("kind:N", scale=colours, legend=None))
    text = base.mark_text(align="left", dx=7, fontSize=LETTERS, color=theme.ink).encode(text="text:N")
    title = {"text": [row["operation"]], "anchor": "start", "frame": "group", "fontSize": LETTERS,
             "fontWeight": "bold", "color": theme.ink, "offset": 4}  # fmt: skip
    return {**still(datasets.spec(alt.layer(bar, text)), CHART, ROW * len(parts)), "title": title}


def picture(rows: Sequence[Mapping[str, Any]], adapter: str, theme: Theme) -> Spec:
    """Return the specification of the picture: the operations in the order of the file."""
    lines = [f"Tables of {rows[0]['n']:,} rows, int64 keys and float64 values", f"{adapter} and its host"]
    notes = ["Shorter is better. ×: how many times as fast as the faster peer.", "From numpy: with both copies."]
    made = titled(below([chart(row, theme) for row in rows]), lines, width=WIDTH, size=LETTERS + 1)
    heading = {"text": lines, "fontSize": LETTERS + 1, "color": theme.ink, "subtitle": notes,
               "subtitleFontSize": SMALL, "subtitleColor": theme.soft, "subtitlePadding": 6, "lineHeight": 21,
               "subtitleLineHeight": 18, "offset": 14, "anchor": "start", "frame": "bounds"}  # fmt: skip
    return {**made, "spacing": 16, "title": heading, "config": {"background": theme.page}}


@click.command()
@click.argument("file", default=SOURCE, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rows", default=10**8, show_default=True, help="The rows of the tables that are drawn.")
@click.option("-o", "--out", type=click.Path(path_type=Path), default=ROOT / "docs" / "assets" / "first",
              help="What the two names begin with.  [default: docs/assets/first]")  # fmt: skip
def main(file: Path, rows: int, out: Path) -> None:
    """Draw FILE."""
    document = json.loads(file.read_text(encoding="utf-8"))
    found = [row for row in document["results"] if row["n"] == rows]
    if not found or any(row["wrong"] for row in found):
        raise click.UsageError(
            f"{file.name} has no right tables of {rows:,} rows; run when_a_gpu_pays.py --rows {rows}"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    for name, theme in THEMES.items():
        path = out.with_name(f"{out.name}-{name}.svg")
        write_picture(picture(found, document["device"]["adapter"], theme), path)
        click.echo(f"wrote {path}")


if __name__ == "__main__":
    main()
