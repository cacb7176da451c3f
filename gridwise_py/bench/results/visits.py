"""Several visits to a page as one results document: each visit is a process, as browsers start one for their GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import ArgumentError
from .model import Results
from .precision import levels_of

__all__ = ["visits_together"]

#: What a visit costs besides its cases: opening the page, and its calibration.
_VISIT_S = 10.0


def visits_together(documents: Sequence[Results], names: Sequence[str]) -> Results:
    """Return one document with the results of all visits, which count as processes.

    Parameters
    ----------
    documents : sequence of Results
        Of files that pages saved.
    names : sequence of str
        Of the files, for messages.

    Raises
    ------
    ArgumentError
        If a document is not of a page, is of another device, browser or page than the first, or is the first again.
    """
    first = documents[0]
    if len(documents) == 1:
        return first
    for document, name in zip(documents, names, strict=True):
        if document.context.browser is None:
            raise ArgumentError(
                f"{name} is not the file of a page; gridwise bench measures in several processes itself"
            )
        for what, mine, other in zip(_SAME, _identity(first), _identity(document), strict=True):
            if mine != other:
                raise ArgumentError(
                    f"{names[0]} and {name} are not visits to one page on one device: {what} is {mine} and {other}"
                )
    times = [document.context.time for document in documents]
    if len(set(times)) < len(times):
        raise ArgumentError(f"of {', '.join(names)}, two are the same visit: they began at the same time")
    results = tuple(
        replace(result, process=process) for process, document in enumerate(documents) for result in document.results
    )
    return replace(
        first,
        complete=all(document.complete for document in documents),
        planned=sum(document.planned or 0 for document in documents),
        levels=levels_of(results, _VISIT_S),
        results=results,
    )


_SAME = ("the adapter", "the backend", "the driver", "the class of devices", "the page")


def _identity(document: Results) -> tuple[object, ...]:
    device, context = document.device, document.context
    page = context.unknown.get("bundle_sha256")
    return device.adapter, device.backend, device.driver, device.unknown.get("class"), page
