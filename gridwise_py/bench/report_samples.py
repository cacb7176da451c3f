"""Samples of a report: thinned, so that a page stays small however many were taken."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..display.quantities import format_count
from ..display.terminal import clean
from . import documents as doc
from .lines import timed_text
from .names import entry_name

__all__ = ["samples_by_case", "thinned"]

# Of all cases and files together; and of one, at most and at least.
_TOTAL = 60_000
_MOST = 1_000
_LEAST = 60


def thinned(values: Sequence[float], most: int) -> list[int]:
    """Return which of the values to draw: of each of `most` / 2 stretches the least and the largest.

    What lies far off is thus always drawn; the first and the last value are, too.
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


def samples_by_case(
    sources: Sequence[Any], documents: Sequence[Mapping[str, Any]], left_out: list[str]
) -> list[dict[str, Any]]:
    """Return for each case its samples in every file, in the order in which they were taken.

    Parameters
    ----------
    sources : sequence of Source
    documents : sequence of mapping
        What is in them, pooled: medians of all rounds.
    left_out : list of str
        Takes what was left out.

    Returns
    -------
    list of dict
        ``name``, and ``series``: of each file ``file``, ``of`` (which time), ``median_ns``, ``median`` (as text),
        ``count``, ``at`` and ``ns`` (the samples that are drawn), ``rounds`` (where a further visit begins),
        ``canary_ns``.
    """
    found: dict[doc.Key, dict[str, list[Mapping[str, Any]]]] = {}
    for source in sources:
        # Rounds of a case in the order of time, cases in the order asked for.
        for entry in sorted(source.document["results"], key=lambda entry: (entry["position"], entry.get("round", 0))):
            if doc.error(entry) is None and doc.timed_summary(entry) is not None:
                found.setdefault(doc.case_key(entry), {}).setdefault(source.name, []).append(entry)
    number = sum(len(files) for files in found.values())
    most = max(_LEAST, min(_MOST, _TOTAL // max(number, 1)))
    medians = {
        (source.name, doc.case_key(entry)): timed_text(document, entry)
        for source, document in zip(sources, documents, strict=True)
        for entry in document["results"]
    }
    cases, drawn, taken = [], 0, 0
    for key, files in found.items():
        series = [{**_series(name, entries, most), "median": medians[name, key]} for name, entries in files.items()]
        drawn += sum(len(one["ns"]) for one in series)
        taken += sum(one["count"] for one in series)
        first = next(iter(files.values()))[0]
        cases.append({"name": clean(f"{entry_name(first)} n={format_count(first['n'])}"), "series": series})
    if drawn < taken:
        left_out.append(
            f"{taken - drawn:,} of {taken:,} samples in the picture of drift: of each stretch the least and the "
            f"largest are drawn, at most {most:,} a case. Medians and intervals are of all."
        )
    return cases


def _series(name: str, entries: Sequence[Mapping[str, Any]], most: int) -> dict[str, Any]:
    of = "GPU span" if any(doc.whole_samples_ns(entry, "gpu_span") for entry in entries) else "CPU wall"
    visits = [doc.whole_samples_ns(entry, "gpu_span" if of == "GPU span" else "cpu_wall") for entry in entries]
    values = [value for visit in visits for value in visit]
    kept = thinned(values, most)
    begins = np.cumsum([0, *(len(visit) for visit in visits)])[1:-1]
    canaries = [time for entry in entries for time in doc.canary_ns(entry)]
    return {
        "file": name,
        "of": of,
        "median_ns": float(np.median(values)) if values else None,
        "count": len(values),
        "at": kept,
        # Six digits: a picture needs no more, and the rest would be most of the page.
        "ns": [float(f"{values[i]:.6g}") for i in kept],
        "rounds": [int(begin) for begin in begins],
        "canary_ns": [float(f"{canaries[i]:.6g}") for i in thinned(canaries, 200)],
    }
