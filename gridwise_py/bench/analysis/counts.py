"""Counts of what cases ask of a GPU, as a file, and a gate on them: it needs no clock, so its threshold is 0."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from ...errors import BadResultsFile

SCHEMA = "gridwise.counts"
#: By case and by what was counted; of several classes of devices by class and case.
Counts: TypeAlias = Mapping[str, Mapping[str, int | None]]


def counts_document(counts: Counts) -> dict[str, Any]:
    """Return counts as the data of a file."""
    return {"schema": SCHEMA, "schema_version": 1, "cases": counts}


def counts_of(content: bytes, name: str) -> Counts:
    """Return the counts of a file.

    Raises
    ------
    BadResultsFile
        If it holds none.
    """
    try:
        document: Any = json.loads(content)
        cases: Any = document["cases"] if document["schema"] == SCHEMA else None
        return {str(case): {str(key): value for key, value in one.items()} for case, one in cases.items()}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BadResultsFile(f"{name} has no counts; write it with gridwise counts FILE.py --json {name}") from error


def count_changes(old: Counts, new: Counts) -> Iterator[tuple[bool, str]]:
    """Yield each count that changed, and whether a gate must stop it: it is more, or nobody knows it any more."""
    for case, before in old.items():
        if case not in new:
            yield True, f"{case}: only in OLD"
            continue
        for name, then in before.items():
            now = new[case].get(name)
            if then != now:
                yield then is not None and (now is None or now > then), f"{case}: {name}: {then} → {now}"
    yield from ((False, f"{case}: only in NEW") for case in new if case not in old)
