"""Whether a result is right, against numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..primitive import Primitive

__all__ = ["Mismatch", "differences", "float_error_bound", "mismatch"]

# A result's error may be this many times eps times the sum of the magnitudes that went into it.
ERROR_FACTOR = 32


@dataclass(frozen=True)
class Mismatch:
    """The first wrong item."""

    index: int
    got: float | int
    expected: float | int
    wrong_items: int
    argument: str = ""  # of a primitive with several outputs

    def __str__(self) -> str:
        where = f"{self.argument}: " if self.argument else ""
        what = f"item {self.index} is {self.got!r}, expected {self.expected!r}"
        return f"{where}{what} ({self.wrong_items:,} wrong items)"


def float_error_bound(primitive: Primitive, inputs: Mapping[str, np.ndarray]) -> np.ndarray | float:
    """Return the largest error allowed for each item of a float sum: 32·eps·Σ|x| over what went into it.

    0 for everything that is exact: integers, minimum and maximum, copies, and one rounded addition. A primitive with a
    method ``error_bound``, which takes what ``reference`` takes, says its own.
    """
    if hasattr(primitive, "error_bound"):
        return primitive.error_bound(**inputs)
    x = inputs.get("input")
    op = getattr(primitive, "op", None)
    if x is None or x.dtype.kind != "f" or op is None or op.numpy is not np.add:
        return 0.0
    eps = ERROR_FACTOR * float(np.finfo(x.dtype).eps)
    magnitudes = np.abs(x.astype(np.float64))
    kind = getattr(primitive, "kind", None)
    if kind is None:
        return eps * magnitudes.sum()
    bound = eps * np.cumsum(magnitudes)
    return bound if kind == "inclusive" else np.concatenate([[0.0], bound[:-1]])


def mismatch(
    primitive: Primitive, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
) -> Mismatch | None:
    """Compare outputs with the primitive's numpy reference; return what is wrong, or None.

    Parameters
    ----------
    primitive : Primitive
        With a method ``reference``, which returns an array, or one for each output in order.
    inputs, outputs : mapping from str to numpy.ndarray
        What it was given and what it returned.
    """
    expected = primitive.reference(**inputs)
    return differences(primitive, inputs, outputs, expected if isinstance(expected, tuple) else (expected,))


def differences(
    primitive: Primitive,
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    wanted: Sequence[np.ndarray],
) -> Mismatch | None:
    """As `mismatch`, where it is known what must come out."""
    for (name, got), right in zip(outputs.items(), wanted, strict=True):
        found = _first_difference(primitive, inputs, got, right)
        if found is not None:
            return replace(found, argument=name) if len(wanted) > 1 else found
    return None


def _first_difference(
    primitive: Primitive, inputs: Mapping[str, np.ndarray], output: np.ndarray, expected: np.ndarray
) -> Mismatch | None:
    if output.shape != expected.shape:
        return Mismatch(0, output.size, expected.size, abs(output.size - expected.size))
    with np.errstate(invalid="ignore"):
        if output.dtype.kind == "f":
            error = np.abs(output.astype(np.float64) - expected.astype(np.float64))
            # Infinities and NaNs are right where they are the same; anything else must be within the bound.
            same = (output == expected) | (np.isnan(output) & np.isnan(expected))
            wrong = ~(same | (error <= float_error_bound(primitive, inputs)))
        else:
            wrong = output != expected
    where = np.flatnonzero(wrong)
    if not where.size:
        return None
    i = int(where[0])
    return Mismatch(i, output[i].item(), expected[i].item(), int(where.size))
