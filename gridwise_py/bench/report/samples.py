"""Samples of a report, thinned to keep the page small."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ...display.terminal import clean
from ..analysis.lines import timed_text
from ..results.model import CaseKey, Result, Results

# Limits for all cases and files together; and for one, maximum and minimum.
_TOTAL = 60_000
_MOST = 1_000
_LEAST = 60


def thin(values: Sequence[float], most: int) -> list[int]:
    """Return which values to draw: the smallest and the largest of each of `most` / 2 sections.

    So outliers are always drawn, and so are the first and the last value.
    """
    count = len(values)
    if count <= most:
        return list(range(count))
    x = np.asarray(values, dtype=np.float64)
    edges = np.linspace(0, count, max(most // 2 - 1, 1) + 1).astype(int)
    kept = {0, count - 1}
    for begin, end in itertools.pairwise(edges.tolist()):
        kept |= {begin + int(np.argmin(x[begin:end])), begin + int(np.argmax(x[begin:end]))}
    return sorted(kept)


class NamedDocument(Protocol):
    """A results document with a name that no other has."""

    @property
    def name(self) -> str: ...
    @property
    def document(self) -> Results: ...


def samples_by_case(
    sources: Sequence[NamedDocument], documents: Sequence[Results], left_out: list[str]
) -> list[dict[str, Any]]:
    """Return for each case its samples in all files, in the order in which they were taken.

    Parameters
    ----------
    sources : sequence of NamedDocument
    documents : sequence of Results
        What is in them, pooled: medians of all rounds.
    left_out : list of str
        Takes what was left out.

    Returns
    -------
    list of dict
        ``name``, and ``series``: of each file ``file``, ``of`` (which time), ``time_ns``, ``time`` (as text),
        ``count``, ``at`` and ``ns`` (the samples that are drawn), ``rounds`` (where a further visit begins),
        ``canary_ns``.
    """
    found: dict[CaseKey, dict[str, list[Result]]] = {}
    for source in sources:
        # Rounds of a case in the order of time, cases in the order asked for.
        for result in source.document.in_order():
            if result.error is None and result.timed is not None:
                found.setdefault(result.key, {}).setdefault(source.name, []).append(result)
    number = sum(len(files) for files in found.values())
    most = max(_LEAST, min(_MOST, _TOTAL // max(number, 1)))
    times = {
        (source.name, result.key): {
            "time": timed_text(document, result), "time_ns": None if result.timed is None else result.timed.time_ns,
        }
        for source, document in zip(sources, documents, strict=True)
        for result in document.results
    }  # fmt: skip
    cases: list[dict[str, Any]] = []
    drawn = taken = 0
    for key, files in found.items():
        series: list[dict[str, Any]] = [
            {**_series(name, rounds, most), **times[name, key]} for name, rounds in files.items()
        ]
        drawn += sum(len(one["ns"]) for one in series)
        taken += sum(one["count"] for one in series)
        cases.append({"name": clean(next(iter(files.values()))[0].name_with_n), "series": series})
    if drawn < taken:
        left_out.append(
            f"{taken - drawn:,} of {taken:,} samples in the picture of drift: of each stretch the least and the "
            f"largest are drawn, at most {most:,} a case. Medians and intervals are of all."
        )
    return cases


def _series(name: str, rounds: Sequence[Result], most: int) -> dict[str, Any]:
    of = "GPU span" if any(result.positive_ns("gpu_span") for result in rounds) else "CPU wall"
    visits = [result.positive_ns("gpu_span" if of == "GPU span" else "cpu_wall") for result in rounds]
    values = [value for visit in visits for value in visit]
    kept = thin(values, most)
    begins = np.cumsum([0, *(len(visit) for visit in visits)])[1:-1]
    canaries = [time for result in rounds for time in result.settled_canary_ns]
    return {
        "file": name,
        "of": of,
        "count": len(values),
        "at": kept,
        # Six digits are enough for a picture; more would make up most of the page.
        "ns": [float(f"{values[i]:.6g}") for i in kept],
        "rounds": [int(begin) for begin in begins],
        "canary_ns": [float(f"{canaries[i]:.6g}") for i in thin(canaries, 200)],
    }
