"""Checks arguments that are integers, or one of a few words."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

from ..errors import ArgumentError

__all__ = ["integer", "one_of"]

_Word = TypeVar("_Word")


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


def one_of(name: str, value: _Word, known: Iterable[str]) -> _Word:
    """Return an argument that must be one of a few words.

    Raises
    ------
    ArgumentError
        If it is none of them.
    """
    words = tuple(known)
    if value not in words:
        raise ArgumentError(f"{name}={value!r} is unknown; known are {', '.join(words)}")
    return value
