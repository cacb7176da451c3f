"""Calls that found a fault once, as text: generators change, these stay. They are replayed first."""

from __future__ import annotations

from typing import NamedTuple


class Stored(NamedTuple):
    """A call, and what it found."""

    fault: str
    call: str


STORED: tuple[Stored, ...] = ()
