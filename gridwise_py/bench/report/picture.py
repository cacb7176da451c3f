"""Charts as pictures: PNG, SVG and PDF of Vega-Lite specifications, by vl-convert, without a browser or a network."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from ...display.terminal import clean
from ...errors import ArgumentError
from ...storage.files import write_whole
from .vega import COLOURS, Spec, load_altair, vegalite_version

SUFFIXES = (".png", ".svg", ".pdf")
#: Approximate width of a whole picture in pixels: a page or a slide shows it without scaling.
WIDTH = 1000
# Pixels of a PNG per pixel of the chart.
_PNG_SCALE = 2
_INK, _SOFT, _LINE = "#1b1f24", "#57606a", "#d5dae0"
# Width of most letters as a share of the font size, so that lines end before the edge.
_LETTER_WIDTH = 0.55
_TITLE_SIZE, _TEXT_SIZE = 13, 11
_LABELS = {
    "labelColor": _INK,
    "titleColor": _SOFT,
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
}
_CONFIG: dict[str, Any] = {
    "background": "white",
    "font": "sans-serif",
    "aria": False,  # a description of each mark would be most of an SVG
    "padding": 12,
    "view": {"stroke": None},
    "axis": {**_LABELS, "gridColor": _LINE, "domainColor": _SOFT, "tickColor": _SOFT, "labelLimit": 420,
             "titlePadding": 8, "labelSeparation": 8},
    "legend": {**_LABELS, "orient": "bottom", "direction": "vertical", "columns": 2, "labelLimit": 420,
               "symbolStrokeWidth": 2},
    "range": {"category": list(COLOURS)},
    "text": {"color": _INK, "fontSize": 12},
    "tick": {"color": _INK},
    # At the left edge of the drawing areas, which are aligned.
    "title": {"anchor": "start", "frame": "group", "color": _INK, "fontSize": _TITLE_SIZE, "subtitleColor": _SOFT,
              "subtitleFontSize": _TEXT_SIZE, "subtitlePadding": 4, "offset": 10},
}  # fmt: skip
# Each chart has its own colours: kernels in one, cases in another.
_SCALES = ("color", "fill", "shape", "strokeDash", "fillOpacity", "opacity")


def check_picture(out: Path) -> None:
    """Check early that a picture of that name can be made.

    Raises
    ------
    ArgumentError
        If the suffix is none of `SUFFIXES`, or Altair or vl-convert is not installed.
    """
    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        page = "; `gridwise report FILE -o PAGE.html` makes a page of results" if suffix in (".html", ".htm") else ""
        raise ArgumentError(f"{clean(out.name)}: a picture ends in {', '.join(SUFFIXES)}{page}")
    load_altair()


def still(spec: Spec, width: int, height: int | None = None) -> Spec:
    """Return a chart without interactive parts: parameters, conditions on them, and tooltips.

    The rows are moved to where they are used, so that charts can be combined.

    Parameters
    ----------
    spec : dict
        From a chart function, with its ``datasets``.
    width, height : int
        Of the drawing area, in pixels; by default the height of the chart.
    """
    datasets = spec.get("datasets", {})

    def fixed(part: Any) -> Any:
        if isinstance(part, list):
            return [fixed(one) for one in cast(list[Any], part)]
        return fixed_object(cast(Spec, part)) if isinstance(part, dict) else part

    def fixed_object(part: Spec) -> Spec:
        if "param" in part.get("condition", ()):
            # The state without a selection.
            return {"value": part["condition"]["value"]}
        made: Spec = {}
        for key, value in part.items():
            if key == "data":
                made[key] = {"values": datasets[value["name"]]} if "name" in value else value
            elif key == "transform":
                made[key] = [one for one in value if "shown_" not in str(one.get("filter", ""))]
            elif key not in ("params", "tooltip", "datasets", "$schema"):
                made[key] = fixed(value)
        return made

    return {**fixed_object(spec), "width": width} | ({} if height is None else {"height": height})


def beside(charts: Sequence[Spec], *, shared: bool = False) -> Spec:
    """Return charts side by side; with `shared` they have one legend."""
    return _joined("hconcat", charts, shared)


def below(charts: Sequence[Spec]) -> Spec:
    """Return charts below each other, each with its own legend."""
    return _joined("vconcat", charts, False)


def _joined(how: str, charts: Sequence[Spec], shared: bool) -> Spec:
    scales = {channel: "shared" if shared else "independent" for channel in _SCALES}
    return {how: list(charts), "spacing": 30, "resolve": {"scale": scales}}


def titled(spec: Spec, lines: Iterable[str], text: str = "", *, width: int = WIDTH, size: int = _TITLE_SIZE) -> Spec:
    """Return a chart with lines above it, and a smaller text below these; both wrapped at `width`."""
    heading = [part for line in lines for part in _wrapped(line, width, size)]
    return {**spec, "title": {"text": heading, "subtitle": _wrapped(text, width, _TEXT_SIZE), "fontSize": size}}


def _wrapped(text: str, width: int, size: int) -> list[str]:
    return textwrap.wrap(clean(text), max(20, int(width / (_LETTER_WIDTH * size))), subsequent_indent="  ")


class _Options(TypedDict):
    """What vl-convert is told of every picture."""

    vl_version: str
    config: dict[str, Any]
    allowed_base_urls: list[str]


def write_picture(spec: Mapping[str, Any], out: Path) -> None:
    """Write a picture completely or not at all; the same chart makes the same PNG or SVG.

    Raises
    ------
    ArgumentError
        As `check_picture` does.
    OSError
        If it cannot be written.
    """
    check_picture(out)
    import vl_convert

    # Labels are never loaded as addresses.
    given: _Options = {"vl_version": vegalite_version(), "config": _CONFIG, "allowed_base_urls": []}
    suffix = out.suffix.lower()
    if suffix == ".png":
        content = vl_convert.vegalite_to_png(dict(spec), scale=_PNG_SCALE, **given)
    elif suffix == ".pdf":
        content = vl_convert.vegalite_to_pdf(dict(spec), **given)
    else:
        content = vl_convert.vegalite_to_svg(dict(spec), **given).encode("utf-8")
    write_whole(out, content)
