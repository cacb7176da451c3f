"""The lines under a run of pytest: what was measured, on which adapter, and what a comparison could not decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...display.quantities import format_time
from ..results.model import Results
from ..results.rounds import pooled
from .session import Files, Kept


def summary_lines(kept: Sequence[Kept], files: Files, *, has_workers: bool, verbose: bool) -> Iterator[str]:
    """Yield the lines.

    Parameters
    ----------
    kept : sequence of Kept
        Of all processes.
    files : Files
    has_workers : bool
        Whether pytest-xdist ran the tests.
    verbose : bool
        Whether warnings are shown, or only counted.
    """
    documents = [one.document for one in kept]
    yield from _adapters(documents)
    if has_workers:
        count = len({result.process for document in documents for result in document.results})
        yield (
            f"pytest-xdist: {count} worker{'s' if count != 1 else ''} measured, one at a time (a file lock); other "
            f"tests ran beside them, so measure without -n for times to decide by"
        )
    by_name: dict[str, list[Kept]] = {}
    for one in kept:
        by_name.setdefault(one.name, []).append(one)
    lines = [(name, _time(of_name), _said(of_name, files)) for name, of_name in by_name.items()]
    widths = [max((len(line[column]) for line in lines), default=0) for column in (0, 1)]
    for name, time, said in lines:
        yield f"{name:{widths[0]}}  {time:{widths[1]}}  {said}".rstrip()
    yield from _unsettled(kept, files)
    yield from _warnings(kept, documents, verbose)


def _adapters(documents: Sequence[Results]) -> Iterator[str]:
    for device in {document.device.title: document.device for document in documents}.values():
        yield f"adapter: {device.title}, {device.backend}, {device.driver}"
        if device.is_cpu:
            yield "    It is a CPU: these times say nothing about a GPU."
        if device.tick_period_ns is None:
            yield "    It has no timestamps: all times are CPU walls."


def _said(of_name: Sequence[Kept], files: Files) -> str:
    """Return what a comparison said of a benchmark, which several workers may have run."""
    if files.compare is None:
        return ""
    if any(one.new for one in of_name):
        return f"not in {files.compare.name}"
    if len(of_name) == 1:
        return of_name[0].said
    kinds = list(dict.fromkeys(one.said.partition(":")[0] for one in of_name if one.said))
    return f"{' or '.join(kinds)} in each of {len(of_name)} processes; gridwise compare judges them together"


def _time(of_name: Sequence[Kept]) -> str:
    """Return the time of a benchmark with its uncertainty, and of which clock it is."""
    document = of_name[0].document
    document = replace(document, results=tuple(result for one in of_name for result in one.document.results))
    found = pooled(document).results[0]
    if found.timed is None:
        return "no time" if found.correct else "wrong"
    if not found.is_timed_by_gpu:
        return f"{found.timed.text()} CPU wall"
    wall = found.whole.cpu_wall_ns
    beside = "" if wall is None else f", {format_time(wall)} CPU wall"
    return f"{found.timed.text(document.tick_step_ns(found))} GPU{beside}"


def _unsettled(kept: Sequence[Kept], files: Files) -> Iterator[str]:
    """Say what the comparison could not decide, each reason once."""
    reasons: dict[str, dict[str, None]] = {}
    for one in kept:
        if one.unsettled:
            reasons.setdefault(one.unsettled, {})[one.name] = None
    for reason, names in reasons.items():
        against = "" if files.compare is None else f" against {files.compare.name}"
        yield f"{len(names)} ambiguous{against}: {reason}: {', '.join(names)}"


def _warnings(kept: Sequence[Kept], documents: Sequence[Results], verbose: bool) -> Iterator[str]:
    found = [
        (one.name, list(dict.fromkeys(text for result in document.results for text in result.warnings)))
        for one, document in zip(kept, documents, strict=True)
    ]
    doubtful = [(name, warnings) for name, warnings in found if warnings]
    if doubtful and not verbose:
        yield f"{len(doubtful)} with warnings about their times; -v shows them"
    for name, warnings in doubtful if verbose else ():
        for warning in warnings:
            yield f"warning: {name}: {warning}"
