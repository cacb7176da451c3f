"""Warnings at the caller's line, however deep in the library they arise."""

from __future__ import annotations

import inspect
import os
import warnings
from functools import cache

from . import settings
from .call_errors import nearest
from .errors import GridwiseWarning

#: Where the caller is not: in this package, and in what calls a context manager that is a generator.
_INSIDE = {__name__.partition(".")[0], "contextlib"}


def warn(message: str) -> None:
    """Give a GridwiseWarning at the first line up the stack that is not this library's."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, GridwiseWarning, stacklevel=level)


@cache
def _warn_once(message: str) -> None:
    warn(message)


def warn_of_variables() -> None:
    """Warn of environment variables that have no effect, each once per process."""
    known = [name.removeprefix(settings.PREFIX) for name in settings.VARIABLES]
    for name in settings.unknown_variables():
        if question := nearest(name.upper().removeprefix(settings.PREFIX), known):
            _warn_once(f"the environment variable {name} has no effect{question}")
    folder = settings.cache_dir()
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        problem = "" if os.access(folder, os.W_OK) or any(folder.iterdir()) else "it cannot be written"
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        _warn_once(f"GRIDWISE_CACHE_DIR={folder}: {problem}, so each process tests and compiles again; name another")
