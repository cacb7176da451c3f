"""Checks arguments that are integers, or one of a few words."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from ..errors import ArgumentError, DatatypeError

#: The largest number that a kernel gets as a parameter: u32's.
MOST_U32 = 2**32 - 1

_Word = TypeVar("_Word")


def integer(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return an argument as an int: any integer type will do, numpy's as well.

    Every number that a kernel gets as a parameter comes through here, with `MOST_U32` or less as its bound.

    Parameters
    ----------
    name : str
        What messages call it.
    value : int or numpy integer
    least, most : int, optional
        Smallest and largest value.

    Raises
    ------
    DatatypeError
        If it is no integer: a bool is none, and neither is 2.0.
    ArgumentError
        If it is too small or too large.
    """
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is not None and (least is None or number >= least) and (most is None or number <= most):
        return number
    bounds = {"at least": least, "at most": most}
    bounded = " and ".join(f"{word} {bound}" for word, bound in bounds.items() if bound is not None)
    wanted = f"{name} must be an integer{f' of {bounded}' if bounded else ''}, not {value!r}"
    raise (DatatypeError if number is None else ArgumentError)(wanted)


def one_of(name: str, value: _Word, known: Iterable[str]) -> _Word:
    """Return an argument that must be one of a few words.

    Raises
    ------
    ArgumentError
        If it is none of them; a DatatypeError if it is no word at all.
    """
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        error = ArgumentError if isinstance(value, str) else DatatypeError
        raise error(f"{name}={value!r:.60} is unknown; known are {', '.join(words)}")
    return value
