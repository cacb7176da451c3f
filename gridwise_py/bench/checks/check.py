"""Whether a result is right, against numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import Primitive
from ...internals import Oracle, wrong_items

#: By default, of an item: a hundred roundings. A hundredth of it of the largest item: sums of either sign cancel.
_RTOL: Mapping[np.dtype[Any], float] = {np.dtype("f2"): 1e-2, np.dtype("f4"): 1e-5, np.dtype("f8"): 1e-12}
_RTOL_COMPLEX = 1e-5


@dataclass(frozen=True)
class Mismatch:
    """The first wrong item of a result.

    A function that is given as ``check=`` returns one, or None where all is right.

    Attributes
    ----------
    index : int
        In the flat output.
    got, expected : number
    wrong_items : int
        How many are wrong.
    argument : str
        The output, of several.
    """

    index: int
    got: complex | float | int
    expected: complex | float | int
    wrong_items: int
    argument: str = ""

    def __str__(self) -> str:
        where = f"{self.argument}: " if self.argument else ""
        what = f"item {self.index} is {self.got!r}, expected {self.expected!r}"
        return f"{where}{what} ({self.wrong_items:,} wrong items)"


def mismatch(
    primitive: Primitive, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
) -> Mismatch | None:
    """Compare outputs with the primitive's numpy reference; return the first mismatch, or None.

    Parameters
    ----------
    primitive : Primitive
        With a method ``reference``, which returns an array, or one for each output in order.
    inputs, outputs : mapping from str to numpy.ndarray
        Its inputs and outputs by name; with ``n``, only so many items count.
    """
    oracle = Oracle.of(primitive)
    inputs = oracle.that_count(inputs)
    return differences(primitive, inputs, outputs, oracle.expected(inputs))


def differences(
    primitive: Primitive,
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    wanted: Sequence[np.ndarray],
) -> Mismatch | None:
    """As `mismatch`, with the expected outputs given."""
    for place, ((name, got), right) in enumerate(zip(outputs.items(), wanted, strict=True)):
        found = _first_difference(primitive, inputs, got, right, place)
        if found is not None:
            return replace(found, argument=name) if len(wanted) > 1 else found
    return None


def _first_difference(
    primitive: Primitive, inputs: Mapping[str, np.ndarray], output: np.ndarray, expected: np.ndarray, place: int
) -> Mismatch | None:
    if output.shape != expected.shape:
        return Mismatch(0, output.size, expected.size, abs(output.size - expected.size))
    return _first(wrong_items(primitive, inputs, output, expected, place), output, expected)


def _first(wrong: np.ndarray, output: np.ndarray, expected: np.ndarray, argument: str = "") -> Mismatch | None:
    where = np.flatnonzero(wrong)
    if not where.size:
        return None
    i = int(where[0])
    return Mismatch(i, output.reshape(-1)[i].item(), expected.reshape(-1)[i].item(), int(where.size), argument)


def difference(
    output: np.ndarray, expected: np.ndarray, rtol: float | None = None, atol: float | None = None, argument: str = ""
) -> Mismatch | None:
    """Compare an output with what a user says is right; return the first mismatch, or None.

    Parameters
    ----------
    output, expected : numpy.ndarray
        Of one shape.
    rtol, atol : float, optional
        A float may differ by ``atol + rtol * abs(expected)``. By default `rtol` is 1e-5 (f16: 1e-2, f64: 1e-12), and
        `atol` a hundredth of that of the largest item; if one is given, the other is 0. Other items must be equal.
    argument : str
        The name of the output, for the mismatch.
    """

    def differs(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return _beyond(x, y, rtol, atol) if x.dtype.kind in "fc" else x != y

    names = output.dtype.names
    if names is None:
        return _first(differs(output, expected), output, expected, argument)
    fields = expected.astype(output.dtype)
    return _first(np.any([differs(output[name], fields[name]) for name in names], axis=0), output, expected, argument)


def tolerances(
    expected: np.ndarray, rtol: float | None, atol: float | None, dtype: np.dtype[Any] | None = None
) -> tuple[float, float]:
    """Return `rtol` and `atol` of `difference` as they are in force; `dtype` is that of the output, if it differs."""
    if rtol is not None or atol is not None:
        return rtol or 0.0, atol or 0.0
    size = np.abs(expected)
    relative = _RTOL.get(expected.dtype if dtype is None else dtype, _RTOL_COMPLEX)
    return relative, relative / 100 * float(size[np.isfinite(size)].max(initial=0.0))


def _beyond(output: np.ndarray, expected: np.ndarray, rtol: float | None, atol: float | None) -> np.ndarray:
    """Return which floats differ by more than is allowed."""
    wide = np.complex128 if output.dtype.kind == "c" else np.float64
    x, y = output.astype(wide), expected.astype(wide)
    relative, absolute = tolerances(y, rtol, atol, output.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(x - y) <= absolute + relative * np.abs(y)
    # What is near an infinity is none of the finite numbers.
    return ~((near & np.isfinite(y)) | (x == y) | (np.isnan(x) & np.isnan(y)))
