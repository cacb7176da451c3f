"""Private names of wgpu-py, which another version or backend may lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

MadeT = TypeVar("MadeT")


def made_of_internals(make: Callable[[], MadeT]) -> MadeT | None:
    """Return what `make` returns; None where wgpu-py is organised differently than it expects."""
    try:
        return make()
    except (ImportError, AttributeError):
        return None
