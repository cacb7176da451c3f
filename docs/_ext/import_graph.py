"""The import graph of the package, drawn from its sources: a row for each layer, an arrow for each pair that imports.

Layers come from import-linter's contract in pyproject.toml, imports from grimp, which reads nested ones and those under
TYPE_CHECKING, too. So the picture shows the rule and what is there, and an arrow that points up would be a fault.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
#: The theme's colours, so that one drawing, inside the page, fits both modes.
INK, ACCENT, FILL = "var(--pst-color-text-base)", "var(--pst-color-primary)", "var(--pst-color-surface)"
WIDTH, ROW, BOX_HEIGHT, MARGIN, GAP = 860, 74, 34, 12, 28
#: Where the box of a row with one package lies, from the middle, in turns: arrows over several rows pass beside it.
SHIFTS = (-60, 210, -260, 80, 300, -150)


def layers(container: str) -> list[list[str]]:
    """The packages of each layer, from the top, as the contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract.get("containers") == [container]:
            return [[name for name in re.split(r"[\s:|]+", layer) if name] for layer in contract["layers"]]
    raise KeyError(container)


def imports(container: str) -> Counter[tuple[str, str]]:
    """How many imports each pair of packages below `container` has."""
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


def _places(rows: list[list[str]]) -> dict[str, tuple[float, float, float]]:
    """Left edge, top and width of the box of each package."""
    places = {}
    for i, row in enumerate(rows):
        widths = [max(74, 9 * len(name) + 22) for name in row]
        shift = SHIFTS[i % len(SHIFTS)] if len(row) == 1 else 0
        x = (WIDTH - sum(widths) - GAP * (len(row) - 1)) / 2 + shift
        for name, width in zip(row, widths, strict=True):
            places[name] = (x, MARGIN + i * ROW, width)
            x += width + GAP
    return places


def drawing(container: str) -> str:
    """The graph of the packages in `container` as SVG."""
    rows, counts = layers(container), imports(container)
    places, most = _places(rows), max(counts.values())
    height = MARGIN * 2 + (len(rows) - 1) * ROW + BOX_HEIGHT
    lines = [
        f'<svg class="imports" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="15" role="img">',
        f"<title>Imports between the packages of {container}</title>",
    ]
    for (importer, imported), count in sorted(counts.items(), key=lambda item: item[1]):
        if importer in places and imported in places:
            (ax, ay, aw), (bx, by, bw) = places[importer], places[imported]
            x1, y1, x2, y2 = ax + aw / 2, ay + BOX_HEIGHT, bx + bw / 2, by
            middle = (y1 + y2) / 2
            path = f"M{x1:.0f} {y1:.0f} C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"
            style = f'fill="none" stroke="{ACCENT}" stroke-width="{0.8 + 3 * (count / most) ** 0.5:.1f}"'
            title = f"{importer} imports {imported}: {count} imports of modules"
            lines.append(f'<path class="import" d="{path}" {style}><title>{title}</title></path>')
    for name, (x, y, width) in places.items():
        at = f'x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX_HEIGHT}"'
        middle = f'x="{x + width / 2:.0f}" y="{y + BOX_HEIGHT / 2 + 5:.0f}"'
        lines.append(f'<rect {at} rx="6" fill="{FILL}" stroke="{INK}"/>')
        lines.append(f'<text {middle} text-anchor="middle" fill="{INK}">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])


def made() -> dict[str, str]:
    """The drawings, of the package and of its largest part, by their paths in docs/."""
    return {
        "assets/made/imports.svg": drawing("gridwise_py"),
        "assets/made/imports-bench.svg": drawing("gridwise_py.bench"),
    }
