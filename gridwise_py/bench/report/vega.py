"""Parts of charts, made with Altair: colours, axes, scales, marks.

Labels are data, never part of an expression, of markup or of a field's name. The page (page/report.js) and the picture
(picture.py) set their own colours, fonts and sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, cast

from ...display.quantities import format_count
from ...errors import ArgumentError

if TYPE_CHECKING:
    import altair

#: An axis of numbers.
Channel = TypeVar("Channel", "altair.X", "altair.Y")

Spec: TypeAlias = dict[str, Any]

# Okabe and Ito: told apart also by the colour-blind, and, in this order, mostly by lightness in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
# Colours of kernels: no colour of a case is among them. They are visible on white and on black.
KERNEL_COLOURS = ("#7b8794", "#a87b4f", "#7d9460", "#9a86b8", "#b0a14e", "#6fa3a8")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
GREY = "#7f7f7f"
#: The text for all files or modes in a select of the page; no file can have this name.
ALL = "/"
#: Axis labels for seconds.
SECONDS = (
    "datum.value == 0 ? '0 s' : datum.value < 0.9995e-6 ? format(datum.value * 1e9, '~r') + ' ns' : "
    "datum.value < 0.9995e-3 ? format(datum.value * 1e6, '~r') + ' µs' : "
    "datum.value < 0.9995 ? format(datum.value * 1e3, '~r') + ' ms' : format(datum.value, '~r') + ' s'"
)

_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
_FILLED = (1.0, 0.0, 0.45, 0.2)
_HEIGHT = 280
# An interval may reach this much beyond the medians; a longer one is cut, so that it does not compress the rest.
_ROOM = 1.2


def load_altair():  # a module as a type has no name: it is inferred
    """Return altair.

    Raises
    ------
    ArgumentError
        If it, or vl-convert, which brings Vega, is not installed.
    """
    try:
        import altair

        import_module("vl_convert")  # needed for the bundle, and better missed now
    except ImportError as error:
        raise ArgumentError(
            "reports and pictures need altair and vl-convert-python, of the extra 'bench': "
            "pip install 'gridwise-py[bench]'"
        ) from error
    return altair


@lru_cache(maxsize=1)
def javascript() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script, which sets ``window.vegaEmbed``."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vegalite_version())
    # Top-level names of the bundle stay local.
    return f"(() => {{\n{bundle}\n}})();"


def vegalite_version() -> str:
    """Return the version of Vega-Lite that Altair writes for."""
    return ".".join(load_altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2])


class Datasets:
    """The rows of a chart, kept out of Altair, which would copy and check them many times."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Mapping[str, Any]]] = {}

    def data(self, rows: Sequence[Mapping[str, Any]]) -> altair.NamedData:
        """Return rows as Altair takes them."""
        name = f"rows{len(self._rows)}"
        self._rows[name] = list(rows)
        return load_altair().NamedData(name)

    def spec(self, chart: altair.LayerChart | altair.FacetChart, height: int = _HEIGHT) -> Spec:
        """Return the specification of a chart, with its rows, as wide as its container."""
        # The tests check the specifications against the schema; checking each again would take seconds.
        made = chart.properties(width="container", height=height).to_dict(validate=False)
        # Altair's own look; the page has its.
        made.pop("config", None)
        return {**made, "datasets": self._rows}


def chosen(*names: str) -> tuple[list[altair.Parameter], str]:
    """Return the parameters that the page's selects set, and their filter."""
    shown = [load_altair().param(name=f"shown_{name}", value=ALL) for name in names]
    return shown, " && ".join(f"(shown_{name} == '{ALL}' || datum.{name} == shown_{name})" for name in names)


def tips(**titles: str) -> list[altair.Tooltip]:
    """Return the tooltip: titles by field."""
    return [load_altair().Tooltip(f"{field}:N", title=title) for field, title in titles.items()]


def again(channel: Channel, field: str) -> Channel:
    """Return a channel with another field at the same scale, axis and title."""
    given = cast(Mapping[str, Any], channel)  # what it was made with; Altair's type of it has holes
    return type(channel)(f"{field}:Q", scale=given["scale"], axis=given["axis"], title=given["title"])


def ends_of(channel: altair.X | altair.Y) -> tuple[float, float]:
    """Return the ends of the scale of a channel."""
    bottom, top = cast(Mapping[str, Any], channel)["scale"]["domain"]
    return bottom, top


def n_axis(ns: Sequence[int]) -> altair.X:
    """Return the axis of n, in ascending order, logarithmic to base 2."""
    alt = load_altair()
    powers = [n for n in ns if n & (n - 1) == 0] or list(ns)
    # Only integers and what is made of them are in this expression.
    labels = ", ".join(f"'{n}': '{format_count(n)}'" for n in powers)
    return alt.X(
        "at:Q",
        title="n, items",
        scale=alt.Scale(type="log", base=2, nice=False, domain=[ns[0] / 1.5, ns[-1] * 1.5]),
        axis=alt.Axis(values=powers, labelExpr=f"{{{labels}}}[datum.value]", labelOverlap="greedy", grid=False),
    )


class _AxisOptions(TypedDict, total=False):
    labelOverlap: Literal["greedy"]
    labelExpr: str


def quantity(
    channel: type[Channel],
    field: str,
    title: str,
    values: Sequence[float],
    *,
    labels: str | None = None,
    log: bool | None = None,
) -> Channel:
    """Return a channel whose scale begins at zero, or is logarithmic where the values are far apart.

    Parameters
    ----------
    channel : class
        ``alt.X`` or ``alt.Y``.
    field, title : str
    values : sequence of float
        All values that must be visible; ends of intervals need not be, see `fitted`.
    labels : str, optional
        Expression for the labels.
    log : bool, optional
        Overrules the values.
    """
    alt = load_altair()
    known = [value for value in values if value > 0]
    axis = _AxisOptions(labelOverlap="greedy")
    if labels is not None:
        axis["labelExpr"] = labels
    if known and (log or (log is None and max(known) > 10 * min(known))):
        ends = [min(known) / _ROOM, max(known) * _ROOM]
        scale = alt.Scale(type="log", nice=False, domain=ends)
        title = f"{title}, log scale"
        return channel(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(values=_decades(*ends), **axis))
    scale = alt.Scale(nice=False, domain=[0, _ROOM * max(known, default=1.0)])
    return channel(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6, **axis))


def fitted(
    rows: Sequence[Mapping[str, Any]], value: altair.X | altair.Y, span: tuple[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows with intervals cut at the ends of a channel's scale, and a row for each end that was cut.

    Parameters
    ----------
    rows : sequence of mapping
    value : channel
        Of `quantity`.
    span : tuple of str
        The fields of an interval's ends. Fields of these names with ``_drawn`` are added to the rows that have them.

    Returns
    -------
    rows, cut : list of dict
        Those of `cut` have ``cut_at`` (where the scale ends) and ``beyond`` (``"above"`` or ``"below"``).
    """
    bottom, top = ends_of(value)
    shown: list[dict[str, Any]] = []
    cut: list[dict[str, Any]] = []
    for row in rows:
        if any(field not in row for field in span):
            shown.append(dict(row))
            continue
        ends = {f"{field}_drawn": min(max(row[field], bottom), top) for field in span}
        shown.append({**row, **ends})
        low, high = (row[field] for field in span)
        cut += [{**row, "cut_at": at, "beyond": beyond}
                for at, beyond, runs_out in ((bottom, "below", low < bottom), (top, "above", high > top))
                if runs_out]  # fmt: skip
    return shown, cut


def arrows(
    datasets: Datasets, cut: Sequence[Mapping[str, Any]], shapes: tuple[str, str], *, y_offset: float = 0.0,
    **channels: Any,
) -> list[altair.Chart]:  # fmt: skip
    """Return layers of arrows where intervals run out of the picture.

    Parameters
    ----------
    datasets : Datasets
    cut : sequence of mapping
        Of `fitted`.
    shapes : tuple of str
        Of the arrows below and above.
    y_offset : float
        Pixels by which they are moved down.
    **channels
        ``x``, ``y``, ``color``, and ``tooltip``, which has the whole interval.
    """
    layers: list[altair.Chart] = []
    for beyond, shape in zip(("below", "above"), shapes, strict=True):
        rows = [row for row in cut if row["beyond"] == beyond]
        if rows:
            chart = load_altair().Chart(datasets.data(rows))
            arrow = chart.mark_point(shape=shape, size=90, filled=True, opacity=1, yOffset=y_offset)
            layers.append(arrow.encode(**channels))
    return layers


def _decades(low: float, high: float) -> list[float]:
    """Return some ticks of a logarithmic axis: Vega's own are too many, or too few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{step}e{power}") for power in powers for step in steps if low <= step * 10.0**power <= high]
        if len(ticks) <= 7:
            return ticks
    return ticks[:: math.ceil(len(ticks) / 7)]


def dashes_of(files: Sequence[str]) -> altair.StrokeDash:
    """Return the channel of dashes by file, with a legend where there are several."""
    alt, named = load_altair(), list(dict.fromkeys(files))
    scale = alt.Scale(domain=named, range=[_DASHES[i % len(_DASHES)] for i in range(len(named))])
    legend = alt.Legend(title="file", symbolType="stroke") if len(named) > 1 else None
    return alt.StrokeDash("file:N", scale=scale, legend=legend)


def _shape(i: int) -> str:
    # After eight cases the colours repeat, with other shapes.
    return SHAPES[(i + i // len(SHAPES)) % len(SHAPES)]


def marks(
    datasets: Datasets,
    rows: Sequence[Mapping[str, Any]],
    x: altair.X,
    y: altair.Y,
    tooltip: Sequence[altair.Tooltip],
    *,
    cases: Sequence[str],
    span: tuple[str, str] | None = None,
    joined: bool = True,
) -> list[altair.Chart]:
    """Return layers: lines, intervals, points. Colour and shape are the case, dashes and filling are the file.

    Parameters
    ----------
    datasets : Datasets
        Takes the rows.
    rows : sequence of mapping
        With ``case`` and ``file``, and ``items`` where they are joined.
    x, y : channels
    tooltip : list
    cases : sequence of str
        All cases with colours, so that a case has the same colour in every chart.
    span : tuple of str, optional
        The fields of an interval's ends; rows that lack them have no interval.
    joined : bool
        Whether lines join the points of a case and file.
    """
    alt = load_altair()
    files = list(dict.fromkeys(row["file"] for row in rows))
    present = {row["case"] for row in rows}
    # A click in the legend leaves one case.
    pick = alt.selection_point(name="pick", fields=["case"], bind="legend")
    domain = alt.Scale(domain=list(cases))
    legend = alt.Legend(values=[case for case in cases if case in present])
    shapes = alt.Scale(domain=list(cases), range=[_shape(i) for i in range(len(cases))])
    filled = alt.Scale(domain=files, range=[_FILLED[i % len(_FILLED)] for i in range(len(files))])
    cut: Sequence[Mapping[str, Any]] = ()
    if span is not None:
        rows, cut = fitted(rows, y, span)
    base = alt.Chart(datasets.data(rows)).encode(x=x, opacity=alt.condition(pick, alt.value(1.0), alt.value(0.1)))
    colour = alt.Color("case:N", scale=domain, title="case", legend=legend)
    layers: list[altair.Chart] = []
    if joined:
        layers.append(
            base.mark_line(strokeWidth=1.8).encode(
                y=y,
                color=colour,
                strokeDash=dashes_of(files),
                order=alt.Order("items:Q"),
                detail=[alt.Detail("case:N"), alt.Detail("file:N")],
            )
        )
    if span is not None:
        layers.append(
            base.transform_filter(f"isValid(datum.{span[0]}_drawn)")
            .mark_rule(strokeWidth=2)
            .encode(y=again(y, f"{span[0]}_drawn"), y2=alt.Y2(f"{span[1]}_drawn:Q"), color=colour)
        )
        layers += arrows(datasets, cut, ("triangle-down", "triangle-up"), x=x, y=again(y, "cut_at"), color=colour,
                         tooltip=tooltip)  # fmt: skip
    points = base.mark_point(size=55, strokeWidth=1.8).encode(
        y=y,
        color=colour,
        # Its legend is merged with that of the colour; removing it would remove both.
        fill=alt.Fill("case:N", scale=domain, title="case", legend=legend),
        shape=alt.Shape("case:N", scale=shapes, title="case", legend=legend),
        fillOpacity=alt.FillOpacity("file:O", scale=filled, legend=None),
        tooltip=tooltip,
    )
    return [*layers, points.add_params(pick)]
