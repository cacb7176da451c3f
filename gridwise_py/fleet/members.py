"""Members of a fleet: what is taken from a results document, and fleets put together."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ..bench.analysis.compare import asked_of
from ..bench.cases.mode import Mode
from ..bench.results.model import CaseKey, Result, Results
from ..bench.results.rounds import by_case
from ..display.terminal import clean
from .model import Fleet, FleetCase, Measured, Member, Status

_CaseKey: TypeAlias = tuple[str, str, str, int | None]

_MOST_LETTERS = 200
_DEVICE = re.compile(r"[-._]gpu[-._]?\w+$", re.IGNORECASE)
#: What a driver says of a GPU that waits for work, or that was told to: no fault of it.
_NO_FAULTS = ("gpu_idle", "applications_clocks_setting")


def host_of(name: str) -> str:
    """Return the host of a device by the name of its file: ``node7-gpu3`` is of ``node7``, ``node7`` of itself."""
    return _DEVICE.sub("", name) or name


def failed_member(identifier: str, host: str, error: str) -> Member:
    """Return a member of which nothing was measured."""
    return Member(id=identifier, host=host, status=Status.FAILED, error=_shorten(error))


def fleet_of(
    results: Results, *, identifier: str, host: str, file: str | None = None, sha256: str | None = None,
    attempts: int = 1, wall_s: float | None = None, alone: Results | None = None,
) -> Fleet:  # fmt: skip
    """Return a fleet of one device.

    Parameters
    ----------
    results : Results
        What it measured.
    identifier, host : str
    file, sha256 : str, optional
        Of the results.
    attempts, wall_s
    alone : Results, optional
        What it measured while no other device of its host was at work.
    """
    visits = by_case(results.results)
    alone_ns = {} if alone is None else {key: _medians(of_case) for key, of_case in by_case(alone.results).items()}
    cases: list[FleetCase] = []
    measured: list[Measured] = []
    for key, of_case in visits.items():
        cases.append(_case(key, of_case))
        measured.append(_measure(len(measured), of_case, alone_ns.get(key, ()), _code(results, of_case)))
    device, versions = results.device, results.context.versions
    names = {
        "adapter": clean(device.adapter), "adapter_type": clean(device.adapter_type), "backend": clean(device.backend),
        "driver": clean(device.driver), "gridwise_py": clean(versions.get("gridwise_py") or ""),
    }  # fmt: skip
    canary = [time for result in results.results for time in result.canary_ns if time > 0]
    timed = any(each.rounds_ns for each in measured)
    status = Status.FAILED if not timed else Status.COMPLETE if results.complete else Status.INCOMPLETE
    errors = [each.error for each in measured if each.error is not None]
    member = replace(Member(
        id=clean(identifier), host=clean(host), group=_sha(names), status=status, attempts=attempts,
        error=errors[0] if errors and not timed else None if timed else "no case was measured",
        file=file, sha256=sha256, wall_s=wall_s, canary_ns=float(np.median(canary)) if canary else None,
        throttle_reasons=_throttle_reasons(results.results), measured=tuple(measured),
    ), **names)  # fmt: skip
    suite = results.context.suite
    suite = None if suite is None else clean(suite)
    return Fleet(suite=suite, planned=(member.id,), cases=tuple(cases), members=(member,))


def merge(fleets: Iterable[Fleet]) -> Fleet:
    """Return one fleet with the members of all, whatever their order; what was judged is judged again afterwards.

    A member that is there twice, by its file, counts once. Of two devices with one id, the second gets a number.
    Devices that were planned, and of which there is nothing, are incomplete members.
    """
    parts = list(fleets)
    # In an order that does not depend on that of the parts.
    order = sorted({_key(case) for part in parts for case in part.cases}, key=lambda key: (*key[:3], key[3] or 0))
    places = {key: place for place, key in enumerate(order)}
    members: list[Member] = []
    for part in parts:
        place_of = [places[_key(case)] for case in part.cases]
        is_in_place = place_of == list(range(len(place_of)))
        members += part.members if is_in_place else [_place(member, place_of) for member in part.members]
    cases = [FleetCase(name=name, mode=mode, form=form, moved_bytes=count) for name, mode, form, count in order]
    named = _name_apart(members)
    planned = sorted({identifier for part in parts for identifier in part.planned} | {member.id for member in named})
    there = {member.id for member in named}
    named += [
        Member(id=identifier, host=host_of(identifier), status=Status.INCOMPLETE, attempts=0, error="was not measured")
        for identifier in planned
        if identifier not in there
    ]
    suites, runs = ({getattr(part, name) for part in parts} for name in ("suite", "run"))
    return Fleet(
        run=runs.pop() if len(runs) == 1 else None, suite=suites.pop() if len(suites) == 1 else None,
        planned=tuple(planned), cases=tuple(cases), members=tuple(sorted(named, key=lambda member: member.id)),
    )  # fmt: skip


def _name_apart(members: Sequence[Member]) -> list[Member]:
    """Return members without those that are there twice, with ids that differ."""
    found: list[Member] = []
    taken: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for member in sorted(members, key=lambda member: (member.id, member.sha256 or "", member.error or "")):
        if member.sha256 is not None and (member.id, member.sha256) in seen:
            continue
        seen.add((member.id, member.sha256 or ""))
        identifier, number = member.id, 1
        while identifier in taken:
            number += 1
            identifier = f"{member.id} ({number})"
        taken.add(identifier)
        found.append(replace(member, id=identifier))
    return found


def _key(case: FleetCase) -> _CaseKey:
    return case.name, case.mode, case.form, case.moved_bytes


def _place(member: Member, places: Sequence[int]) -> Member:
    moved = sorted((replace(each, case=places[each.case]) for each in member.measured), key=lambda each: each.case)
    return replace(member, measured=tuple(moved))


# ---- from a results document


def _case(key: CaseKey, visits: Sequence[Result]) -> FleetCase:
    first = next((result for result in visits if result.error is None), visits[0])
    parameters = {
        name: value for name, value in (first.parameters or {}).items()
        if name != "shape" and isinstance(value, (str, int, float, bool))
    }  # fmt: skip
    form = _sha([list(first.shaders_sha256), parameters, *({first.shader_checks} - {None, "none"})])
    return FleetCase(name=clean(first.name_with_n), mode=key.mode.value, form=form, moved_bytes=first.moved_bytes)


def _code(results: Results, visits: Sequence[Result]) -> str | None:
    """Return a digest of what all visits asked of the GPU, which `compare` knows the same code by; None if unknown."""
    asked = [asked_of(results, result) for result in visits if result.error is None]
    return _sha(asked[0]) if asked and None not in asked and all(one == asked[0] for one in asked) else None


def _measure(place: int, visits: Sequence[Result], alone_ns: Sequence[float], code: str | None) -> Measured:
    errors = [result.error for result in visits if result.error is not None]
    widths = [half for result in visits if (half := _half(result)) is not None]
    return Measured(
        case=place, rounds_ns=tuple(_medians(visits)), half=float(np.median(widths)) if widths else None,
        wrong=any(result.is_wrong for result in visits), error=_shorten(errors[0]) if errors else None,
        alone_ns=float(np.median(alone_ns)) if alone_ns else None, code=code,
    )  # fmt: skip


def _medians(visits: Sequence[Result]) -> list[float]:
    """Return the median time of each visit: of what the call costs its caller in mode latency, else on the GPU."""
    found = [
        result.whole.cpu_wall_ns if result.mode is Mode.LATENCY else result.time_ns
        for result in visits
        if result.error is None
    ]
    return [time for time in found if time is not None and time > 0]


def _half(result: Result) -> float | None:
    series = result.cpu_wall if result.mode is Mode.LATENCY else result.gpu_span or result.cpu_wall
    summary = None if series is None else series.summary
    if summary is None or summary.interval_ns is None or summary.median_ns <= 0:
        return None
    low, high = summary.interval_ns
    return (high - low) / 2 / summary.median_ns


def _throttle_reasons(results: Sequence[Result]) -> tuple[str, ...]:
    seen = {
        clean(reason)
        for result in results
        for block in result.observations.blocks or ()
        if block.after is not None
        for reason in block.after.throttle_reasons or ()
    }
    return tuple(sorted(seen - set(_NO_FAULTS)))[:8]


def _shorten(text: str) -> str:
    words = clean(" ".join(text.split()))
    return words if len(words) <= _MOST_LETTERS else f"{words[: _MOST_LETTERS - 1]}…"


def _sha(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
