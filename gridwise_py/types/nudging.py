"""Expressions evaluated in numpy with one rounding that is off, for error bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .evaluation import value_of
from .operations import OPERATIONS
from .program import Flat, Step

#: Of steps of floats that may differ from numpy's: by how many units in the last place. A GPU makes one operation of a
#: product and a sum; quotients and roots are about as WGSL has them; of functions it allows more than GPUs make of it.
_ULPS = {
    **dict.fromkeys(("+", "-", "*"), 2), **dict.fromkeys(("/", "sqrt"), 4),
    **dict.fromkeys(("exp", "log", "sin", "cos", "tanh", "function"), 32),
}  # fmt: skip
#: Those whose arguments are not off: a rounding of these is one of the result.
_ROUNDED = ("+", "-", "*", "/", "sqrt")
#: Those with an absolute error, as of a result of 1.
_BOUNDED = ("sin", "cos", "tanh")


def inexact_places(flat: Flat) -> list[tuple[int, int]]:
    """Return the steps that may differ from numpy's, and which of their arguments is off; -1 for the result.

    A single addition or multiplication is exact.
    """
    found: list[tuple[int, int]] = []
    for k, step in enumerate(flat.program.steps):
        if step.type in ("f32", "f64") and step.kind in _ULPS:
            found += [(k, place) for place in range(-1, 0 if step.kind in _ROUNDED else len(step.args))]
    return found if len(found) > 1 or any(flat.program.steps[k].kind not in ("+", "-", "*") for k, _ in found) else []


class Nudging:
    """Evaluates expressions as `value_of`, but for one of all their inexact places.

    Parameters
    ----------
    place : int
        Its number, through all expressions in the order of their evaluation.
    sign : int
        1 where it is too large, -1 where it is too small.
    """

    def __init__(self, place: int, sign: int):
        self._left, self._sign = place, sign

    @property
    def is_done(self) -> bool:
        """Whether there was such a place."""
        return self._left < 0

    def __call__(self, flat: Flat, arrays: Mapping[str, Any], size: int | None = None) -> np.ndarray:
        places = inexact_places(flat)
        if 0 <= self._left < len(places):
            k, argument = places[self._left]
            steps = list(flat.program.steps)
            own = _Nudged(steps[k], argument, self._sign * _ULPS[steps[k].kind])
            steps[k] = replace(steps[k], kind="function", value=own)
            flat = replace(flat, program=replace(flat.program, steps=tuple(steps)))
        self._left -= len(places)
        return value_of(flat, arrays, size)


class _Nudged(NamedTuple):
    """What takes the place of a step's function."""

    step: Step
    argument: int
    ulps: int

    def twin(self, *args: Any) -> Any:
        """Return its value in numpy."""
        kind, given = self.step.kind, list(args)
        if self.argument >= 0:
            given[self.argument] = self._off(given[self.argument], 0)
        found = self.step.value.twin(*given) if kind == "function" else OPERATIONS[kind].numpy(*given)
        return self._off(found, kind in _BOUNDED) if self.argument < 0 else found

    def _off(self, items: Any, least: float) -> Any:
        dtype = np.asarray(items).dtype
        if dtype.kind != "f":
            return items
        step = dtype.type(self.ulps * np.finfo(dtype).eps)
        return items + step * np.maximum(np.abs(items), dtype.type(least))
