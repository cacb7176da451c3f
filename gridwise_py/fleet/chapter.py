"""The chapter of a report about a fleet: who is accused and why, all devices case by case, the spread of each group."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..bench.report.chapter import AddChart, Chapter
from ..bench.report.page_tables import shown_table
from ..bench.report.vega import COLOURS, GREY, SHAPES, Datasets, Spec, load_altair, tips
from ..bench.results.reader import content_of
from ..display.quantities import format_time
from ..display.table import Cell, table_of
from ..display.terminal import clean
from ..errors import BadResultsFile
from .files import is_fleet, member_path, parse_fleet
from .model import Fleet, Group, Member
from .table import accused_table, fleet_counts, fleet_remarks, group_text, what_happened

#: Devices whose files become part of the report.
_MOST_FILES = 6
#: A larger group is shown by the range of its devices, not by a mark for each.
_MOST_STRIPS = 200
_MOST_ROWS = 200
_MOST_GROUPS = 4
_MOST_COLOURS = len(COLOURS)
#: Ratios of a heat map beyond these have its strongest colours.
_STRONGEST = 0.10
_STRIP, _CELL = 22, 12
_COOL_TO_WARM = (COLOURS[0], "#c9ced4", COLOURS[1])


@dataclass(frozen=True)
class FleetChapter(Chapter):
    """A fleet document in a report.

    Attributes
    ----------
    fleet : Fleet
    """

    KIND, TITLE = "fleet", "Fleet"
    TEMPLATE = Path(__file__).resolve().with_name("chapter.html")

    fleet: Fleet

    def files(self, left_out: list[str]) -> list[tuple[str, Path, bytes]]:
        """Return id, path and content of the files of accused members: what a report shows of single devices.

        A file that is not there, or not the one that was judged, is named in `left_out`.
        """
        found: list[tuple[str, Path, bytes]] = []
        wanted = [member for member in self.fleet.outliers if member.file is not None and member.measured]
        for member in wanted[:_MOST_FILES]:
            try:
                path = member_path(self.path, member.file or "")
                content = content_of(path)
            except BadResultsFile as error:
                left_out.append(f"The file of {clean(member.id)}: {clean(str(error))}.")
                continue
            if hashlib.sha256(content).hexdigest() != member.sha256:
                left_out.append(f"The file of {clean(member.id)}: it is not the one that the fleet was judged by.")
                continue
            found.append((member.id, path, content))
        more = len(wanted) - _MOST_FILES
        if more > 0:
            left_out.append(f"The files of {more:,} more accused devices of {self.name}; give them to gridwise report.")
        return found

    def section(self, number: int, chart: AddChart, left_out: list[str]) -> dict[str, Any]:
        """Return what the template shows of a fleet."""
        fleet, name = self.fleet, self.name
        groups = sorted(fleet.groups, key=lambda group: (-group.count, group.group))
        if len(groups) > _MOST_GROUPS:
            left_out.append(f"The charts of {len(groups) - _MOST_GROUPS} of {len(groups)} groups of {name}.")
        return {
            "name": name,
            "counts": fleet_counts(fleet),
            "bad": len(fleet.outliers),
            "remarks": fleet_remarks(fleet),
            "accused": shown_table(accused_table(fleet.outliers), f"The accused devices of {name}", left_out),
            "groups": [
                {
                    "title": group_text(group),
                    "strips": chart(f"fleet-{number}-strips-{k}", _strips(fleet, group)) if k < _MOST_GROUPS else None,
                    "map": chart(f"fleet-{number}-map-{k}", _heat_map(fleet, group, name, left_out))
                    if k < _MOST_GROUPS
                    else None,
                    "spread": _spread_table(group, f"The spread of a group of {name}", left_out),
                }
                for k, group in enumerate(groups)
            ],
            "stragglers": _stragglers_table(fleet, f"The stragglers of {name}", left_out),
            "troubles": _troubles_table(fleet, f"Retries and errors of {name}", left_out),
        }


def fleet_chapter(name: str, path: Path, content: bytes, data: Any) -> FleetChapter | None:
    """Return the chapter of a fleet document; None if `data`, its JSON, is none."""
    return FleetChapter(name, path, content, parse_fleet(data, path.name)) if is_fleet(data) else None


# ---- tables


def _spread_table(group: Group, label: str, left_out: list[str]) -> dict[str, Any]:
    rows = [
        [
            Cell(case.case), Cell(f"{case.count:,}", case.count),
            Cell(format_time(case.median_ns), case.median_ns), Cell(f"±{100 * case.mad:.2f} %", case.mad),
            Cell(f"{case.low:.3f}", case.low), Cell(f"{case.high:.3f}", case.high),
        ]
        for case in group.cases
    ]  # fmt: skip
    headings = ("case", "devices", "median", "spread", "1 %", "99 %")
    return shown_table(table_of("", headings, rows), label, left_out)


def _stragglers_table(fleet: Fleet, label: str, left_out: list[str]) -> dict[str, Any] | None:
    """Return the devices that took longest; None where no times are known."""
    timed = sorted(((member.wall_s, member) for member in fleet.members if member.wall_s), key=lambda one: -one[0])
    if len(timed) < 2:
        return None
    usual = float(np.median([wall_s for wall_s, _ in timed]))
    rows = [
        [
            Cell(member.id), Cell(f"{wall_s:.0f} s", wall_s),
            Cell(f"{wall_s / usual:.2f}", wall_s / usual),
            Cell(what_happened(member)), Cell(f"{member.attempts}", member.attempts),
        ]
        for wall_s, member in timed[:8]
    ]  # fmt: skip
    headings = ("device", "wall time", "of the median", "verdict", "attempts")
    return shown_table(table_of("", headings, rows, texts=(0, 3)), label, left_out)


def _troubles_table(fleet: Fleet, label: str, left_out: list[str]) -> dict[str, Any] | None:
    """Return retries and errors, each device on its own; None without any."""
    rows: list[list[Cell]] = []
    for member in fleet.members:
        texts = [member.error] if member.error else []
        texts += [f"{fleet.cases[each.case].name}: {each.error}" for each in member.measured if each.error]
        if texts or member.attempts > 1:
            rows.append(
                [
                    Cell(member.id), Cell(member.status.value),
                    Cell(f"{member.attempts}", member.attempts), Cell(f"{member.errors}", member.errors),
                    Cell("; ".join(texts[:3]) or "–", kind="prose"),
                ]
            )  # fmt: skip
    if not rows:
        return None
    headings = ("device", "status", "attempts", "failed cases", "what it said")
    return shown_table(table_of("", headings, rows, texts=(0, 1, 4)), label, left_out)


# ---- charts


def _ratios(fleet: Fleet, group: Group) -> list[tuple[Member, str, float, bool]]:
    """Return for each device and case of a group the ratio to the median, and whether the result was wrong."""
    medians = {(case.case, case.form): case.median_ns for case in group.cases}
    several = len({case.case for case in group.cases}) < len(group.cases)
    found: list[tuple[Member, str, float, bool]] = []
    for member in fleet.members:
        if member.group != group.group:
            continue
        for each in member.measured:
            case = fleet.cases[each.case]
            usual = medians.get((case.name, case.form))
            if each.rounds_ns and usual:
                name = f"{case.name} ({case.form[:4]})" if several else case.name
                found.append((member, clean(name), float(np.median(each.rounds_ns)) / usual, each.wrong))
    return found


def _percent(ratio: float) -> str:
    return f"{'+' if ratio >= 1 else '−'}{abs(100 * (ratio - 1)):.1f} %"


def _row_of(member: Member, case: str, ratio: float, wrong: bool, places: Mapping[str, int]) -> dict[str, Any]:
    return {
        "place": places[case],
        "device": clean(member.id), "case": case, "ratio": ratio, "text": _percent(ratio),
        "verdict": what_happened(member), "wrong": "a result was wrong" if wrong else "",
    }  # fmt: skip


def _places(ratios: Sequence[tuple[Member, str, float, bool]]) -> dict[str, int]:
    """Return the places of the cases. Charts sort by them: a list of names would be part of an expression."""
    return {case: place for place, case in enumerate(dict.fromkeys(case for _, case, _, _ in ratios))}


def _strips(fleet: Fleet, group: Group) -> Spec:
    """Return a row for each case with a mark for each device, the accused ones in colours of their own."""
    alt, datasets = load_altair(), Datasets()
    ratios = _ratios(fleet, group)
    accused = [clean(member.id) for member in fleet.outliers if member.group == group.group][:_MOST_COLOURS]
    places = _places(ratios)
    rows = [_row_of(*one, places) for one in ratios]
    others = [row for row in rows if row["device"] not in accused]
    named = [row for row in rows if row["device"] in accused]
    values = [row["ratio"] for row in rows] or [1.0]
    low, high = max(min(values), 0.5) / 1.01, min(max(values), 4.0) * 1.01
    x = alt.X(
        "ratio:Q", title="time over the median of the group",
        scale=alt.Scale(type="log", domain=[low, high], clamp=True), axis=alt.Axis(format="~g", labelOverlap="greedy"),
    )  # fmt: skip
    y = alt.Y(
        "case:N", sort=alt.EncodingSortField("place", op="min"), title=None,
        axis=alt.Axis(labelLimit=230, ticks=False, domain=False, grid=True),
    )  # fmt: skip
    layers = [alt.Chart(datasets.data([{"ratio": 1.0}])).mark_rule(color=GREY, strokeDash=[6, 3]).encode(x=x)]
    tooltip = tips(device="device", case="case", text="against the median", verdict="verdict", wrong="")
    if group.count > _MOST_STRIPS:
        spans = [
            {"case": case, "place": place, "ratio": low_ratio, "high": high_ratio}
            for case, place in places.items()
            for low_ratio, high_ratio in [_range([row["ratio"] for row in others if row["case"] == case])]
        ]
        bar = alt.Chart(datasets.data(spans)).mark_bar(color=GREY, opacity=0.45, height=8)
        layers.append(bar.encode(x=x, x2="high:Q", y=y))
    else:
        tick = alt.Chart(datasets.data(others)).mark_tick(color=GREY, thickness=1.5, size=12, opacity=0.55)
        layers.append(tick.encode(x=x, y=y, tooltip=tooltip))
    if named:
        colour = alt.Color(
            "device:N", scale=alt.Scale(domain=accused, range=list(COLOURS[: len(accused)])), title="accused"
        )
        shape = alt.Shape(
            "device:N", scale=alt.Scale(domain=accused, range=list(SHAPES[: len(accused)])), title="accused"
        )
        points = alt.Chart(datasets.data(named)).mark_point(size=55, filled=True, opacity=0.95)
        layers.append(points.encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip))
    return datasets.spec(alt.layer(*layers), height=_STRIP * max(len(places), 2))


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.percentile(values, [1, 99]) if values else (1.0, 1.0)
    return float(low), float(high)


def _heat_map(fleet: Fleet, group: Group, name: str, left_out: list[str]) -> Spec:
    """Return a row for each device, hosts together, and a column for each case: a bad host is a stripe."""
    alt, datasets = load_altair(), Datasets()
    ratios = _ratios(fleet, group)
    order = _shown(fleet, group)
    if len(order) < group.count:
        left_out.append(f"{group.count - len(order):,} of {group.count:,} devices in a heat map of {name}.")
    places = _places(ratios)
    # Accused devices are marked in front of their row.
    labels = {
        identifier: f"{'● ' if member.is_accused else ''}{clean(identifier)}"
        for member in fleet.members
        if (identifier := member.id) in order
    }
    rows = {identifier: place for place, identifier in enumerate(order)}
    named = [
        _row_of(member, case, ratio, wrong, places)
        | {
            "row": labels[member.id],
            "row_place": rows[member.id],
            "slower": max(-_STRONGEST, min(_STRONGEST, math.log(ratio))),
        }
        for member, case, ratio, wrong in ratios
        if member.id in labels
    ]
    x = alt.X(
        "case:N", sort=alt.EncodingSortField("place", op="min"), title=None,
        axis=alt.Axis(labelAngle=-60, labelLimit=200, ticks=False, domain=False),
    )  # fmt: skip
    y = alt.Y(
        "row:N", sort=alt.EncodingSortField("row_place", op="min"), title=None,
        axis=alt.Axis(labelLimit=230, ticks=False, domain=False, labelFontSize=9, labelOverlap=False),
    )  # fmt: skip
    colour = alt.Color(
        "slower:Q", title="slower than the median",
        scale=alt.Scale(domain=[-_STRONGEST, 0, _STRONGEST], range=list(_COOL_TO_WARM), interpolate="rgb"),
        legend=alt.Legend(format="+.0%", gradientLength=180, direction="horizontal"),
    )  # fmt: skip
    tooltip = tips(device="device", case="case", text="against the median", verdict="verdict", wrong="")
    cells = alt.Chart(datasets.data(named)).mark_rect().encode(x=x, y=y, color=colour, tooltip=tooltip)
    wrong = [row for row in named if row["wrong"]]
    layers = [cells]
    if wrong:
        cross = alt.Chart(datasets.data(wrong)).mark_point(
            shape="cross", size=70, angle=45, color="#000000", filled=True
        )
        layers.append(cross.encode(x=x, y=y, tooltip=tooltip))
    return datasets.spec(alt.layer(*layers), height=_CELL * max(len(order), 2))


def _shown(fleet: Fleet, group: Group) -> list[str]:
    """Return the ids of the devices in a heat map, hosts together: those of hosts with an accused device first, if all
    are too many.
    """
    members = [member for member in fleet.members if member.group == group.group]
    bad = {member.host for member in members if member.is_accused}
    chosen = sorted(members, key=lambda member: (member.host not in bad, member.host, member.id))[:_MOST_ROWS]
    return [member.id for member in sorted(chosen, key=lambda member: (_by_number(member.host), _by_number(member.id)))]


def _by_number(text: str) -> list[tuple[str, int]]:
    """Return a key by which node2 comes before node10."""
    return [(word, int(digits[:18] or -1)) for word, digits in re.findall("([^0-9]*)([0-9]*)", text)]
