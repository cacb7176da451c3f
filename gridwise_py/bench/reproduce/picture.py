"""A picture of what experiments measured: the readings of each, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..report.picture import below, beside, still, titled
from ..report.vega import COLOURS, GREY, SECONDS, Datasets, Spec, load_altair, quantity
from .model import NS, Verdict

_COLUMNS, _WIDTH, _ROW = 2, 300, 24
_HUES = {Verdict.HOLDS: COLOURS[2], Verdict.DOES_NOT: COLOURS[1], Verdict.CANNOT: GREY}


def _chart(each: Mapping[str, Any]) -> Spec:
    alt, datasets = load_altair(), Datasets()
    unit = next(iter(each["measured"].values()))["unit"]
    factor = 1e-9 if unit == NS else 1.0  # labels of times are made from seconds
    rows = [
        {"reading": name, **{end: factor * found[end] for end in ("median", "low", "high")}}
        for name, found in each["measured"].items()
        if found["median"] is not None
    ]
    values = [row[end] for row in rows for end in ("low", "median", "high")]
    in_time = unit == NS
    # The clock of a page reads 0: a logarithmic scale would leave it out.
    log = None if min(values) > 0 else False
    x = quantity(alt.X, "median", "" if in_time else unit, values, labels=SECONDS if in_time else None, log=log)
    base = alt.Chart(datasets.data(rows)).encode(
        y=alt.Y(
            "reading:N", title=None, sort=[row["reading"] for row in rows], axis=alt.Axis(labelLimit=170, minExtent=150)
        )
    )
    colour = _HUES[Verdict(each["verdict"])]
    line = base.mark_rule(color=colour, strokeWidth=2, clip=True).encode(x=alt.X("low:Q"), x2="high:Q")
    point = base.mark_point(color=colour, filled=True, size=60, opacity=1).encode(x=x)
    return datasets.spec(alt.layer(line, point), height=_ROW * len(rows) + 10)


def claims_picture(document: Mapping[str, Any]) -> Spec:
    """Return the specification of the picture; experiments without readings are left out."""
    charts = [
        titled(still(_chart(each), _WIDTH), [f"{each['name']}: {each['verdict']}"], each["claim"], width=470)
        for each in document["experiments"]
        if any(found["median"] is not None for found in each["measured"].values())
    ]
    device, context = document["device"], document["context"]
    version, day = context["versions"]["gridwise_py"], context["time"][:10]
    title = f"{device['adapter']} ({device['driver']}); gridwise_py {version}, {day}"
    rows = [beside(charts[i : i + _COLUMNS]) for i in range(0, len(charts), _COLUMNS)]
    return titled(below(rows), [title], "Medians, with their 95 % intervals.")
