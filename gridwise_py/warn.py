"""Warnings at the caller's line, however deep in the library they arise."""

from __future__ import annotations

import inspect
import warnings

from .errors import GridwiseWarning

#: Where the caller is not: in this package, and in what calls a context manager that is a generator.
_INSIDE = {__name__.partition(".")[0], "contextlib"}


def warn(message: str) -> None:
    """Give a GridwiseWarning at the first line up the stack that is not this library's."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, GridwiseWarning, stacklevel=level)
