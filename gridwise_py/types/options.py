"""Checks arguments that are integers."""

from __future__ import annotations

import operator
from typing import Any

from ..errors import ArgumentError

__all__ = ["integer"]


def integer(name: str, value: Any, least: int | None = None) -> int:
    """Return an argument as an int: any integer type will do, numpy's as well.

    Parameters
    ----------
    name : str
        What messages call it.
    value : int or numpy integer
    least : int, optional
        Smallest value.

    Raises
    ------
    ArgumentError
        If it is no integer (a bool is none, and neither is 2.0), or too small.
    """
    at_least = "" if least is None else f" of at least {least}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        raise ArgumentError(f"{name} must be an integer{at_least}, not {value!r}")
    return number
