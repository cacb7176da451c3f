"""The rules of shapes: which ones arrays may have beside each other, and how one of them is repeated in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from ..errors import LengthError


def check_one_shape(what: str, shapes: Mapping[str, tuple[int, ...]], *, broadcasts: bool = False) -> None:
    """Raise LengthError, with what to write instead, where arrays have different shapes.

    Parameters
    ----------
    what : str
        For the message.
    shapes : mapping from str to tuple of int
        By the names of the arrays.
    broadcasts : bool
        Whether numpy broadcasts them.
    """
    if len(set(shapes.values())) < 2:
        return
    (first, shape), *others = shapes.items()
    name, other = next(each for each in others if each[1] != shape)
    try:
        wide = np.broadcast_shapes(shape, other) if broadcasts else None
    except ValueError:
        wide = None
    if wide is not None:
        narrow = " and ".join(each for each, own in ((first, shape), (name, other)) if own != wide)
        remedy = f"beside leaves that are arguments nothing is broadcast: of {narrow} give gw.asarray(np.broadcast_to(x.to_numpy(), {wide}))"
    elif prod(other) == prod(shape):
        remedy = f"give {name}.reshape({first}.shape)"
    else:
        remedy = "slice them to one length"
    raise LengthError(f"{what}: {name} has shape {other}, but {first} has {shape}; {remedy}")


def broadcast_shape(what: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of the result of arrays, by numpy's rule.

    Raises
    ------
    LengthError
        If a dimension has two lengths, none of which is 1.
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for place, length in enumerate(shape, rank - len(shape)):
            if result[place] == 1:
                result[place] = length
            elif length not in (1, result[place]):
                raise LengthError(
                    f"{what}: operands could not be broadcast together with shapes {' '.join(map(str, shapes))}: from "
                    f"the last dimension on, lengths must be equal, or one of them 1; slice or reshape one of them"
                )
    return tuple(result)


def merged(result: tuple[int, ...], *shapes: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    """Return the length and the strides of each dimension, after neighbours that are reached as one were merged.

    Strides count items of C-contiguous arrays of these shapes; they are 0 along what is repeated.
    """
    dimensions: list[tuple[int, tuple[int, ...]]] = []
    for length, *own in zip(result, *(_strides(shape, len(result)) for shape in shapes), strict=True):
        strides = tuple(own)
        if length == 1:
            continue
        if dimensions and all(outer == length * inner for outer, inner in zip(dimensions[-1][1], strides, strict=True)):
            dimensions[-1] = (dimensions[-1][0] * length, strides)
        else:
            dimensions.append((length, strides))
    return dimensions


def _strides(shape: tuple[int, ...], rank: int) -> list[int]:
    padded = (1,) * (rank - len(shape)) + shape
    return [0 if length == 1 else prod(padded[d + 1 :]) for d, length in enumerate(padded)]
