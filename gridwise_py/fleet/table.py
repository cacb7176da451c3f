"""A fleet as text: its groups, the devices that a report names, and what the figures cannot say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..display.quantities import format_count, format_number
from ..display.table import Cell, Table, table_of, text_width
from ..display.terminal import clean
from .judge import LEAST_PEERS
from .model import Fleet, Group, Member, Status, Verdict

_MOST_LINES = 40
_WIDEST = {"device": 44, "because": 60}


def fleet_counts(fleet: Fleet) -> str:
    """Return in one line how many devices there are, and of what kind."""
    verdicts = Counter(member.verdict for member in fleet.members)
    statuses = Counter(member.status for member in fleet.members)
    parts = [_plural(len(fleet.members), "device"), _plural(len(fleet.groups), "group")]
    parts += [f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]]
    parts += [
        f"{statuses[status]} {status.value}" for status in Status if status is not Status.COMPLETE and statuses[status]
    ]
    return " · ".join(parts)


def group_text(group: Group) -> str:
    """Return in one line what a group is, and how far its devices lie apart."""
    spread = sorted(case.mad for case in group.cases if case.count > 1)
    apart = f", spread of the median case ±{format_number(100 * spread[len(spread) // 2])} %" if spread else ""
    against = ", against the baseline" if group.has_baseline else ""
    names = ", ".join(clean(text) for text in (group.adapter, group.backend, group.driver) if text)
    version = f", gridwise_py {clean(group.gridwise_py)}" if group.gridwise_py else ""
    return f"{names}{version}: {_plural(group.count, 'device')}, {_plural(len(group.cases), 'case')}{apart}{against}"


def what_happened(member: Member) -> str:
    """Return the verdict of a member, or how its run ended."""
    ended = "" if member.status is Status.COMPLETE else member.status.value
    if member.verdict is None or member.verdict in (Verdict.PEERS, Verdict.ALONE):
        return ended or (member.verdict.value if member.verdict else "–")
    return ", ".join(
        filter(None, (member.verdict.value.upper() if member.cases_wrong else member.verdict.value, ended))
    )


def accused_table(members: Iterable[Member]) -> Table:
    """Return the table of devices that a report names."""
    rows: list[tuple[Cell, ...]] = []
    for member in members:
        reasons = [*member.because]
        if member.cases_wrong:
            reasons.insert(0, _plural(member.cases_wrong, "wrong result", "wrong results"))
        if member.attempts > 1:
            reasons.append(f"{member.attempts} attempts")
        if member.error:
            reasons.append(member.error)
        elif member.errors:
            reasons.append(_plural(member.errors, "case failed", "cases failed"))
        interval = "–" if member.low is None or member.high is None else f"{member.low:.3f} to {member.high:.3f}"
        rows.append(
            (
                Cell(clean(member.id)),
                Cell(what_happened(member), kind="verdict slower"),
                Cell("–" if member.ratio is None else f"{member.ratio:.3f}", member.ratio),
                Cell(interval),
                Cell(f"{member.cases_slow} of {member.cases}" if member.cases else "–", float(member.cases_slow)),
                Cell(clean(", ".join(reasons)), kind="prose"),
            )
        )
    return table_of("", ("device", "verdict", "ratio", "95 %", "slow cases", "because"), rows, texts=(0, 1, 5))


def fleet_remarks(fleet: Fleet) -> list[str]:
    """Return what a reader must know before anybody is accused."""
    found: list[str] = []
    judged = sum(member.cases for member in fleet.members)
    expected = sum(group.expected_false for group in fleet.groups)
    if judged:
        found.append(
            f"In {judged:,} comparisons of a device's case, chance alone puts {format_number(expected)} beyond the "
            f"limit. A device is slow with three such cases, or with one past 10 %; differences below "
            f"{100 * fleet.gate:g} % count for none."
        )
    small = [group for group in fleet.groups if group.count < LEAST_PEERS and not group.has_baseline]
    if small:
        found.append(
            f"{_plural(sum(group.count for group in small), 'device')} in groups of fewer than {LEAST_PEERS}: nobody "
            f"can be accused there without --baseline."
        )
    if fleet.groups and fleet.rounds < 2:
        found.append(
            "One visit to each case: a device that is slow at times, for minutes or hours, may have been missed; "
            "measure with --rounds 3."
        )
    timed = {(each.case, each.code) for one in fleet.members for each in one.measured if each.rounds_ns}
    if unknown := len({case for case, code in timed if code is None}):
        found.append(
            f"{_plural(unknown, 'case')} judged by time alone: files do not tell all that they asked of the GPU."
        )
    if several := sum(count > 1 for count in Counter(case.name for case in fleet.cases).values()):
        found.append(
            f"{_plural(several, 'case')} with kernels of several texts or shapes: these are not compared with each "
            f"other."
        )
    return found


def fleet_lines(fleet: Fleet, width: int = 120) -> list[str]:
    """Return a fleet as lines of text."""
    lines = [fleet_counts(fleet), *(group_text(group) for group in fleet.groups)]
    accused = fleet.outliers
    if accused:
        lines += ["", *_lines_of(accused_table(accused[:_MOST_LINES]), width)]
        if len(accused) > _MOST_LINES:
            lines.append(f"and {format_count(len(accused) - _MOST_LINES)} more, which --json and the report name")
    else:
        lines += ["", "No device stands out."]
    return [*lines, "", *fleet_remarks(fleet)]


def _lines_of(table: Table, width: int) -> list[str]:
    widths = {
        column.heading: max(map(text_width, (column.heading, *(row.cells[k].text for row in table.rows))))
        for k, column in enumerate(table.columns)
    }
    for heading, most in _WIDEST.items():
        widths[heading] = min(widths[heading], most)
    rest = width - sum(widths.values()) - 2 * (len(widths) - 1)
    widths["because"] = max(24, widths["because"] + min(rest, 0))
    return table.lines(widths)


def _plural(count: int, one: str, several: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"
