"""The import graph of the package, drawn from its sources: a row for each layer, an arrow for each pair that imports.

Layers come from import-linter's contract in pyproject.toml, imports from grimp, which reads nested ones and those under
TYPE_CHECKING, too. So the picture shows the rule and what is there, and an arrow that points up would be a fault.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

ROOT = Path(__file__).resolve().parents[2]
#: The theme's colours, so that one drawing, inside the page, fits both modes.
INK, ACCENT, FILL = "var(--pst-color-text-base)", "var(--pst-color-primary)", "var(--pst-color-surface)"
WIDTH, ROW, BOX_HEIGHT, MARGIN = 860, 74, 34, 12
#: Where the box of a row with one package lies, from the middle, in turns: arrows over several rows pass beside it.
SHIFTS = (-60, 210, -260, 80, 300, -150)


def layers(container: str) -> list[list[str]]:
    """Return the packages of each layer, from the top, as the contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract.get("containers") == [container]:
            return [[name for name in re.split(r"[\s:|]+", layer) if name] for layer in contract["layers"]]
    raise KeyError(container)


def imports(container: str) -> Counter[tuple[str, str]]:
    """Return how many imports each pair of packages below `container` has."""
    graph = grimp.build_graph(container.partition(".")[0])
    depth = container.count(".") + 1
    found: Counter[tuple[str, str]] = Counter()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            if importer.startswith(container + ".") and imported.startswith(container + "."):
                a, b = importer.split(".")[depth], imported.split(".")[depth]
                if a != b:
                    found[a, b] += 1
    return found


def drawing(container: str) -> str:
    """Return the graph of the packages in `container` as SVG."""
    rows, counts = layers(container), imports(container)
    place: dict[str, tuple[float, float, float]] = {}
    for i, row in enumerate(rows):
        widths = [max(74, 9 * len(name) + 22) for name in row]
        gap = 28
        shift = SHIFTS[i % len(SHIFTS)] if len(row) == 1 else 0
        x = (WIDTH - sum(widths) - gap * (len(row) - 1)) / 2 + shift
        for name, width in zip(row, widths, strict=True):
            place[name] = (x, MARGIN + i * ROW, width)
            x += width + gap
    height = MARGIN * 2 + (len(rows) - 1) * ROW + BOX_HEIGHT
    most = max(counts.values())
    lines, boxes = [], []
    for (importer, imported), count in sorted(counts.items(), key=lambda item: item[1]):
        if importer not in place or imported not in place:
            continue
        (ax, ay, aw), (bx, by, bw) = place[importer], place[imported]
        x1, y1, x2, y2 = ax + aw / 2, ay + BOX_HEIGHT, bx + bw / 2, by
        bend = (y2 - y1) / 2
        path = f"M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
        style = f'fill="none" stroke="{ACCENT}" stroke-width="{0.8 + 3 * (count / most) ** 0.5:.1f}"'
        title = f"{importer} imports {imported}: {count} imports of modules"
        lines.append(f'<path class="import" d="{path}" {style}><title>{escape(title)}</title></path>')
    for name, (x, y, width) in place.items():
        at = f'x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX_HEIGHT}"'
        middle = f'x="{x + width / 2:.0f}" y="{y + BOX_HEIGHT / 2 + 5:.0f}"'
        boxes.append(f'<rect {at} rx="6" fill="{FILL}" stroke="{INK}"/>')
        boxes.append(f'<text {middle} text-anchor="middle" fill="{INK}">{name}</text>')
    head = f'<svg class="imports" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="15" role="img">'
    title = f"<title>Imports between the packages of {container}</title>"
    return "\n".join([head, title, *lines, *boxes, "</svg>", ""])


def made() -> dict[str, str]:
    """The drawings, of the package and of its largest part, by their paths in docs/."""
    return {
        "assets/made/imports.svg": drawing("gridwise_py"),
        "assets/made/imports-bench.svg": drawing("gridwise_py.bench"),
    }
