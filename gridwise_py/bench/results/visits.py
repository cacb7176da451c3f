"""Several runs as one results document: each is a process.

They are visits to a page, as browsers start a process for their GPU, or files of another benchmark tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import ArgumentError
from .model import Result, Results, differences
from .precision import levels_of

#: What a visit costs besides its cases: opening the page, and its calibration.
_VISIT_S = 10.0


def visits_together(documents: Sequence[Results], names: Sequence[str]) -> Results:
    """Return one document with the results of all runs, which count as processes.

    Parameters
    ----------
    documents : sequence of Results
        Of files that pages or other tools saved.
    names : sequence of str
        Of the files, for messages.

    Raises
    ------
    ArgumentError
        If a document is of `gridwise bench`, is of another device, tool, browser or page than the first, or is one of
        the others again.
    """
    first = documents[0]
    if len(documents) == 1:
        return first
    for document, name in zip(documents, names, strict=True):
        if document.context.browser is None and document.context.tool is None:
            raise ArgumentError(f"{name} is of gridwise bench, which measures in several processes itself")
        if found := differences(_identity(first), _identity(document)):
            told = ", ".join(f"{what} is {mine} and {other}" for what, mine, other in found)
            raise ArgumentError(f"{names[0]} and {name} are not runs of one program on one machine: {told}")
    runs = [_run_of(document) for document in documents]
    if any(run in runs[:i] for i, run in enumerate(runs)):
        raise ArgumentError(f"of {', '.join(names)}, two are the same run")
    results: list[Result] = []
    for document in documents:
        # Only a file of hyperfine has several processes.
        taken = 1 + max((result.process for result in results), default=-1)
        results += [replace(result, process=taken + result.process) for result in document.results]
    # A file of a page says how many results it was to have.
    planned = [document.planned for document in documents if document.planned is not None]
    return replace(
        first,
        complete=all(document.complete for document in documents),
        planned=sum(planned) if planned else None,
        levels=levels_of(results, _VISIT_S),
        results=tuple(results),
    )


def _run_of(document: Results) -> object:
    """Return what no other run has; not every tool notes when it ran, or to less than a second."""
    return document.context.time, None if document.context.tool is None else document.results


def _identity(document: Results) -> dict[str, str]:
    """Return what runs of one program on one machine have in common."""
    unknown = {**document.device.unknown, **document.context.unknown}
    facts = {"tool": document.context.tool, "class of devices": unknown.get("class")}
    facts |= {"page": unknown.get("bundle_sha256")}
    return {**document.machine, **{name: str(fact) for name, fact in facts.items()}}
