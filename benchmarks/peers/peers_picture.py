"""Draw a file of compare_peer.py: GB/s over items, all sides, calls back to back.

Usage: python benchmarks/peers/peers_picture.py benchmarks/results/h200/peers.json [-o FILE]

Without -o it writes peers.png beside peers.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from gridwise_py.bench.report.picture import below, beside, check_picture, still, titled, write_picture
from gridwise_py.bench.report.vega import COLOURS, SHAPES, Datasets, Spec, load_altair, n_axis, quantity
from gridwise_py.display.quantities import format_count

SIDES = {"gridwise_py": "gridwise_py", "cub": "CUB", "torch": "PyTorch", "cupy": "CuPy"}
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
# Pixels: of a row of charts without the labels at their axes, and of the height of one.
WIDTH, HEIGHT = 810, 220


def rows_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each side of each right result of the first datatype, where that side was measured."""
    results = document["results"]
    return [
        {
            "primitive": result["primitive"],
            "side": words,
            "at": result["n"],
            "n": format_count(result["n"]),
            "rate": result["moved_bytes"] / result["sides"][side]["back_to_back"],
        }
        for result in results
        if result["correct"] and result.get("datatype") == results[0]["datatype"]
        for side, words in SIDES.items()
        if result["sides"].get(side, {}).get("back_to_back")
    ]


def chart(rows: Sequence[Mapping[str, Any]], sides: Sequence[str], most: float) -> Spec:
    """Return the chart of one primitive; `most` is the highest rate of all, so that charts have one scale."""
    alt, datasets = load_altair(), Datasets()
    known = list(SIDES.values())
    places = [known.index(side) for side in sides]

    def scale(values: Sequence[Any]) -> Any:
        return alt.Scale(domain=list(sides), range=[values[place] for place in places])

    x, y = n_axis(sorted({row["at"] for row in rows})), quantity(alt.Y, "rate", "GB/s", [most], log=False)
    base = alt.Chart(datasets.data(rows)).encode(x=x, y=y)
    colour = alt.Color("side:N", title=None, scale=scale(COLOURS))
    line = base.mark_line(strokeWidth=2).encode(
        color=colour, strokeDash=alt.StrokeDash("side:N", title=None, scale=scale(DASHES))
    )
    points = base.mark_point(size=60, filled=True, opacity=1).encode(
        color=colour, shape=alt.Shape("side:N", title=None, scale=scale(SHAPES))
    )
    return datasets.spec(alt.layer(line, points), height=HEIGHT)


def picture(document: Mapping[str, Any]) -> Spec:
    """Return the specification of the picture."""
    rows = rows_of(document)
    if not rows:
        raise click.UsageError("no right result with a time, so there is nothing to draw")
    sides = [words for words in SIDES.values() if any(row["side"] == words for row in rows)]
    most = max(row["rate"] for row in rows)
    names = list(dict.fromkeys(row["primitive"] for row in rows))
    columns = 2 if len(names) in (2, 4) else 3
    charts = [
        titled(still(chart([row for row in rows if row["primitive"] == name], sides, most), WIDTH // columns), [name])
        for name in names
    ]
    lines = [beside(charts[i : i + columns], shared=True) for i in range(0, len(charts), columns)]
    # One legend, as all charts have the same sides.
    lines = [line if i == len(lines) - 1 else without_legend(line) for i, line in enumerate(lines)]
    device, context = document["device"], document["context"]
    title = (
        f"{device['adapter']} ({device['driver']}), {document['results'][0]['datatype']}, calls back to back, medians; "
        f"gridwise_py {context['versions']['gridwise_py']}, {context['time'][:10]}"
    )
    # A symbol's edge would be dashed as its line is.
    legend = {"columns": len(SIDES), "symbolSize": 120, "symbolStrokeWidth": 0}
    return titled(below(lines), [title]) | {"config": {"legend": legend}}


def without_legend(spec: Any) -> Any:
    """Return a chart whose colours, dashes and shapes are explained by another one's legend."""
    if isinstance(spec, list):
        return [without_legend(one) for one in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        key: {**value, "legend": None} if key in ("color", "strokeDash", "shape") and "field" in value
        else value if key == "data" else without_legend(value)
        for key, value in spec.items()
    }  # fmt: skip


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help=".png, .svg or .pdf.")
def main(file: Path, out: Path | None) -> None:
    """Draw FILE, which compare_peer.py wrote with --json."""
    out = out or file.with_suffix(".png")
    check_picture(out)
    write_picture(picture(json.loads(file.read_text(encoding="utf-8"))), out)
    click.echo(f"wrote {out}")


if __name__ == "__main__":
    main()
