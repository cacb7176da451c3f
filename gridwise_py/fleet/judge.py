"""Judges the devices of a fleet: each against the others of its group, or against a baseline. Pure, of numbers only.

The time of a device's case is the median of its rounds' medians. What is judged is the logarithm of its ratio to the
median of the group. A case is slow if this is past the gate and past 3.5 times the scale, in which the spread of the
group and the device's own interval count, and at least 0.2 %. A device is slow with three slow cases, or with one past
10 %. Median and MAD stand firm while fewer than half of the devices are sick (P. Rousseeuw, C. Croux, "Alternatives to
the Median Absolute Deviation", 1993; 3.5 is the limit of B. Iglewicz, D. Hoaglin, "How to Detect and Handle Outliers",
1993).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .model import Fleet, Group, GroupCase, Member, Status, Verdict

#: With fewer devices of a group, one that differs may as well be the only healthy one.
LEAST_PEERS = 5

_LIMIT = 3.5
_LEAST_SPREAD = 0.002
_LEAST_CASES = 3
_FAR = 0.10
#: A case moves memory mostly if its rate is at least this share of the highest of its device.
_MEMORY_SHARE = 0.5
#: Slower by the canary's ratio, give or take this share of it and this much: then the clock explains it.
_CLOCK_SHARE, _CLOCK_SLACK = 0.35, 0.01
#: Cases are spared by a cause if they are slower by less than this share of what the others are.
_SPARED = 0.35
#: How often a normal variable is past the limit.
_CHANCE = 0.5 * math.erfc(_LIMIT / math.sqrt(2))

Table: TypeAlias = NDArray[np.float64]
#: Digests of what was asked of a GPU; empty where nobody knows.
Codes: TypeAlias = NDArray[np.str_]


@dataclass(frozen=True)
class _Norm:
    """What a case takes on healthy devices: the logarithm of the time, its standard deviation, and the code."""

    log: Table
    spread: Table
    codes: Codes


def judge(fleet: Fleet, *, gate: float = 0.03, baseline: Fleet | None = None) -> Fleet:
    """Return a fleet with verdicts and groups, whatever it had before.

    Parameters
    ----------
    fleet : Fleet
    gate : float
        Slower by less than this share is no accusation.
    baseline : Fleet, optional
        A judged fleet: groups that it has are judged against its medians.
    """
    members = sorted(fleet.members, key=lambda member: member.id)
    of_group: dict[str, list[int]] = defaultdict(list)
    for number, member in enumerate(members):
        if member.group is not None:
            of_group[member.group].append(number)
    known = {} if baseline is None else {group.group: group for group in baseline.groups}
    judged = list(map(_clear, members))
    groups: list[Group] = []
    for name, numbers in sorted(of_group.items()):
        group, found = _judge_group(fleet, [members[n] for n in numbers], gate, known.get(name))
        groups.append(replace(group, group=name))
        for number, member in zip(numbers, found, strict=True):
            judged[number] = member
    rounds = max((len(each.rounds_ns) for member in members for each in member.measured), default=1)
    return replace(
        fleet, gate=gate, members=tuple(judged), groups=tuple(groups), rounds=max(rounds, 1),
        complete=all(member.status is Status.COMPLETE for member in judged),
    )  # fmt: skip


def _clear(member: Member) -> Member:
    wrong = sum(each.wrong for each in member.measured)
    return replace(
        member, verdict=Verdict.WRONG if wrong else None, ratio=None, low=None, high=None, cases=0, cases_slow=0,
        cases_wrong=wrong, because=(),
    )  # fmt: skip


# ---- a group


def _judge_group(
    fleet: Fleet, members: Sequence[Member], gate: float, known: Group | None
) -> tuple[Group, list[Member]]:
    # A wrong result may be fast, or slow, for no reason of time.
    right = [[each for each in member.measured if each.rounds_ns and not each.wrong] for member in members]
    places = sorted({each.case for cases in right for each in cases})
    column = {case: place for place, case in enumerate(places)}
    shape = len(members), len(places)
    logs, halves, ranges = np.full(shape, np.nan), np.zeros(shape), np.full(shape, np.nan)
    codes: Codes = np.full(shape, "", dtype="U16")
    for row, cases in enumerate(right):
        for each in cases:
            rounds = np.log(np.array(each.rounds_ns))
            at = row, column[each.case]
            logs[at], halves[at], codes[at] = float(np.median(rounds)), each.half or 0.0, each.code or ""
            ranges[at] = float(np.ptp(rounds)) if rounds.size > 1 else np.nan
    counts = np.sum(~np.isnan(logs), axis=0)
    own = _norm(logs, codes)
    norm, usable = _of_baseline(fleet, places, own, known) if known is not None else (own, counts >= LEAST_PEERS)
    scale = np.sqrt(np.maximum(norm.spread, _LEAST_SPREAD) ** 2 + (halves / 1.96) ** 2)
    ratios = np.where(usable, logs - norm.log, np.nan)
    slow = (ratios > math.log1p(gate)) & (ratios > _LIMIT * scale)
    fast = (-ratios > math.log1p(gate)) & (-ratios > _LIMIT * scale)
    moved = _unsteady_cases(ranges, gate)
    alike = np.where((codes == "") | (norm.codes == ""), np.nan, codes == norm.codes)
    canary = _canary(members, known)
    kinds = _kinds(fleet, places, norm.log)
    judged = [
        _judge_member(member, row, kinds, canary, fleet, places)
        for member, row in zip(members, map(_Row, ratios, scale, slow, fast, moved, alike), strict=True)
    ]
    first = members[0]
    group = Group(
        group="", adapter=first.adapter or "", adapter_type=first.adapter_type or "", backend=first.backend or "",
        driver=first.driver or "", gridwise_py=first.gridwise_py or "", count=len(members),
        has_baseline=known is not None, expected_false=float(_CHANCE * np.sum(~np.isnan(ratios))),
        canary_ns=_median([member.canary_ns for member in members]),
        cases=tuple(_group_case(fleet, case, logs[:, place], own, place) for case, place in column.items()),
    )  # fmt: skip
    return group, _explain_by_neighbours(judged, gate)


def _norm(logs: Table, codes: Codes) -> _Norm:
    """Return medians and spreads of the devices' times, and the most common code, of each case."""
    median = np.median(logs, axis=0) if not np.isnan(logs).any() else np.nanmedian(logs, axis=0)
    columns: list[list[str]] = codes.T.tolist()
    common = [[*Counter(filter(None, one)).most_common(1), ("", 0)][0][0] for one in columns]
    return _Norm(median, 1.4826 * np.nanmedian(np.abs(logs - median), axis=0), np.array(common, dtype="U16"))


def _of_baseline(fleet: Fleet, places: Sequence[int], own: _Norm, known: Group) -> tuple[_Norm, NDArray[np.bool_]]:
    """Return what a baseline says of the cases, and of which it says something."""
    cases = {(case.case, case.form): case for case in known.cases}
    log, spread, usable = own.log.copy(), own.spread.copy(), np.zeros(len(places), dtype=bool)
    codes = np.full_like(own.codes, "")
    for place, case in enumerate(places):
        norm = cases.get((fleet.cases[case].name, fleet.cases[case].form))
        if norm is not None:
            log[place], spread[place], usable[place] = math.log(norm.median_ns), norm.mad, True
            codes[place] = norm.code or ""
    return _Norm(log, spread, codes), usable


def _group_case(fleet: Fleet, case: int, logs: Table, norm: _Norm, place: int) -> GroupCase:
    ratios = np.exp(logs[~np.isnan(logs)] - norm.log[place])
    low, high = (1.0, 1.0) if not ratios.size else np.percentile(ratios, [1, 99])
    return GroupCase(
        case=fleet.cases[case].name, form=fleet.cases[case].form, count=int(ratios.size),
        median_ns=float(np.exp(norm.log[place])), mad=float(norm.spread[place]), low=float(low), high=float(high),
        code=str(norm.codes[place]) or None,
    )  # fmt: skip


def _unsteady_cases(ranges: Table, gate: float) -> Table:
    """Return by how much the rounds of a case differ, as logarithms, where that is more than on the peers; else NaN."""
    enough = np.sum(~np.isnan(ranges), axis=0) >= LEAST_PEERS
    if not enough.any():
        return np.full(ranges.shape, np.nan)
    found = np.where(enough, ranges, np.nan)
    usual = np.full(ranges.shape[1], np.nan)
    spread = usual.copy()
    usual[enough] = np.nanmedian(found[:, enough], axis=0)
    spread[enough] = 1.4826 * np.nanmedian(np.abs(found[:, enough] - usual[enough]), axis=0)
    past = (found > math.log1p(gate)) & (found - usual > _LIMIT * np.maximum(spread, _LEAST_SPREAD))
    return np.where(past, found, np.nan)


# ---- a device


@dataclass(frozen=True)
class _Row:
    """The cases of a device: logarithms of ratios, their scales, which are slow, fast and unsteady.

    `alike` is 1 for the same code as the peers', 0 for another one, NaN where nobody knows.
    """

    ratios: Table
    scale: Table
    slow: NDArray[np.bool_]
    fast: NDArray[np.bool_]
    moved: Table
    alike: Table


def _judge_member(
    member: Member,
    row: _Row,
    kinds: Sequence[str],
    canary: Mapping[str, float],
    fleet: Fleet,
    places: Sequence[int],
) -> Member:
    known = ~np.isnan(row.ratios)
    slow = _is_accused(row.ratios, row.slow)
    wrong = sum(each.wrong for each in member.measured)
    if wrong:
        verdict = Verdict.WRONG
    elif not any(each.rounds_ns for each in member.measured):
        verdict = None
    elif slow:
        verdict = Verdict.SLOW
    elif _is_accused(row.moved, ~np.isnan(row.moved)):
        verdict = Verdict.UNSTEADY
    elif not known.any():
        verdict = Verdict.ALONE
    else:
        verdict = Verdict.FAST if _is_accused(-row.ratios, row.fast) else Verdict.PEERS
    counted = row.slow if slow else row.fast if verdict is Verdict.FAST else known
    ratio, low, high = _mean_ratio(row.ratios[counted], row.scale[counted])
    because: list[str] = []
    if verdict is Verdict.SLOW:
        because = _explain(member, row, kinds, canary.get(member.id), math.log(ratio or 1.0))
        if same := int(np.nansum(row.alike[row.slow])):
            because.append(f"the machine differs: same code in {same} of {row.slow.sum()} slow cases")
    elif verdict is Verdict.UNSTEADY:
        worst = int(np.nanargmax(row.moved))
        case = fleet.cases[places[worst]].name
        because = ["unknown", f"rounds differ by {100 * math.expm1(float(row.moved[worst])):.0f} % in {case}"]
    return replace(
        member, verdict=verdict, ratio=ratio, low=low, high=high, cases=int(known.sum()),
        cases_slow=int(row.slow.sum()), cases_wrong=wrong, because=tuple(because),
    )  # fmt: skip


def _is_accused(values: Table, flags: NDArray[np.bool_]) -> bool:
    """Whether a device is accused for its cases: for three, or for one that is far off."""
    return int(flags.sum()) >= _LEAST_CASES or bool((values[flags] > math.log1p(_FAR)).any())


def _mean_ratio(ratios: Table, scale: Table) -> tuple[float | None, float | None, float | None]:
    """Return the geometric mean of ratios with its 95 % interval: over the cases, and not below what each can tell."""
    if not ratios.size:
        return None, None, None
    mean = float(ratios.mean())
    spread = float(ratios.std(ddof=1)) if ratios.size > 1 else 0.0
    reach = 1.96 * max(spread, float(np.median(scale))) / math.sqrt(ratios.size)
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)


# ---- causes


def _canary(members: Sequence[Member], known: Group | None) -> dict[str, float]:
    """Return by how much the canary of each device is slower than on its peers, as a logarithm."""
    usual = known.canary_ns if known is not None else None
    if usual is None and sum(member.canary_ns is not None for member in members) >= LEAST_PEERS:
        usual = _median([member.canary_ns for member in members])
    if usual is None:
        return {}
    return {member.id: math.log(member.canary_ns / usual) for member in members if member.canary_ns}


def _median(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return float(np.median(found)) if found else None


def _kinds(fleet: Fleet, places: Sequence[int], logs: Table) -> list[str]:
    """Return what bounds each case: its caller in mode latency, the memory if it is among the fastest, or else."""
    cases = [fleet.cases[place] for place in places]
    rates = [
        0.0 if case.moved_bytes is None or case.mode == "latency" or np.isnan(log) else case.moved_bytes / math.exp(log)
        for case, log in zip(cases, logs.tolist(), strict=True)
    ]
    most = max(rates, default=0.0)
    return [
        "host" if case.mode == "latency" else "memory" if most and rate >= _MEMORY_SHARE * most else "other"
        for case, rate in zip(cases, rates, strict=True)
    ]


def _explain(member: Member, row: _Row, kinds: Sequence[str], canary: float | None, slow: float) -> list[str]:
    """Return what the measurements say about why a device is slow."""
    if (row.alike[row.slow] == 0).all():
        return ["code", "asked other things of the GPU than its peers"]
    if canary is not None and canary > 0 and abs(canary - slow) <= max(_CLOCK_SHARE * slow, _CLOCK_SLACK):
        return ["clock", f"canary {math.exp(canary):.2f} times", *member.throttle_reasons]
    of_slow = {kind for kind, is_slow in zip(kinds, row.slow, strict=True) if is_slow}
    for cause, what in (("memory", "only what moves memory is slow"), ("host", "only mode latency is slow")):
        rest = [
            ratio for kind, ratio in zip(kinds, row.ratios.tolist(), strict=True)
            if kind not in (cause, "host") and not math.isnan(ratio)
        ]  # fmt: skip
        # There are others, and they are spared: not slow by a part of it that is below the limit.
        if of_slow == {cause} and rest and float(np.median(rest)) < _SPARED * slow:
            return [cause, what]
    return ["unknown"]


def _explain_by_neighbours(members: Sequence[Member], gate: float) -> list[Member]:
    """Replace the cause of devices that are slow only while others of their host are at work."""
    found: list[Member] = []
    for member in members:
        both = [each for each in member.measured if each.alone_ns and each.rounds_ns]
        if member.verdict is Verdict.SLOW and both:
            together = [math.log(float(np.median(each.rounds_ns)) / (each.alone_ns or 1.0)) for each in both]
            share = float(np.median(together))
            if share > math.log1p(gate) and share >= 0.5 * math.log(member.ratio or 1.0):
                text = f"{math.exp(share):.2f} times its time alone"
                member = replace(member, because=("shared", text))
        found.append(member)
    return found
