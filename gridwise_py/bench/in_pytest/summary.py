"""The lines under a run of pytest: what was measured, on which adapter, and what a comparison could not decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...display.quantities import format_time
from ..results.model import Results
from ..results.rounds import pooled
from .session import Files, Kept

__all__ = ["summary_lines"]


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
    lines = [(one.name, _time(document), one) for one, document in zip(kept, documents, strict=True)]
    widths = [max((len(line[column]) for line in lines), default=0) for column in (0, 1)]
    for name, time, one in lines:
        said = f"not in {files.compare.name}" if one.new and files.compare is not None else one.said
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


def _time(document: Results) -> str:
    """Return the time of a benchmark with its uncertainty, and of which clock it is."""
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
    reasons: dict[str, list[str]] = {}
    for one in kept:
        if one.unsettled:
            reasons.setdefault(one.unsettled, []).append(one.name)
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
