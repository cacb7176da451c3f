"""The rules of shapes: which ones arrays may have beside each other, and how one of them is repeated in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..errors import BoundsError, LengthError


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
        remedy = f"named leaves are not broadcast: of {narrow} give gw.asarray(np.broadcast_to(x.to_numpy(), {wide}))"
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


class Part(NamedTuple):
    """A part of a C-contiguous array: its first item, and lengths and strides, in items, of its dimensions."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_contiguous(self) -> bool:
        """Whether its items lie one after another."""
        step = 1
        for length, stride in zip(self.shape[::-1], self.strides[::-1], strict=True):
            if length != 1 and stride != step:
                return 0 in self.shape
            step *= length
        return True


def whole_index(keys: Sequence[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return an index with a key for each dimension, besides its new ones; an ellipsis stands for the whole ones.

    Raises
    ------
    BoundsError
        If there are too many.
    """
    missing = len(shape) - sum(key is not None and key is not ... for key in keys)
    ellipses = [place for place, key in enumerate(keys) if key is ...]
    if missing < 0 or len(ellipses) > 1:
        raise BoundsError(f"an Array of shape {shape} has {len(shape)} dimensions, fewer than the index {tuple(keys)}")
    place = ellipses[0] if ellipses else len(keys)
    return (*keys[:place], *[slice(None)] * missing, *keys[place + 1 :])


def indexed(keys: Sequence[Any], shape: tuple[int, ...]) -> Part:
    """Return the part that integers, slices and new dimensions (None) choose, as numpy's basic indexing.

    Raises
    ------
    BoundsError
        If there is no such item.
    """
    start, dimensions, axis = 0, list[tuple[int, int]](), 0
    for key in keys:
        if key is None:
            dimensions.append((1, 0))
            continue
        length, stride = shape[axis], prod(shape[axis + 1 :])
        if isinstance(key, slice):
            chosen = range(*key.indices(length))
            dimensions.append((len(chosen), chosen.step * stride))
            first = chosen.start if chosen else 0
        elif -length <= key < length:
            first = key % length
        else:
            raise BoundsError(f"index {key} is out of bounds for dimension {axis}, of length {length}")
        start, axis = start + first * stride, axis + 1
    return Part(start, tuple(length for length, _ in dimensions), tuple(stride for _, stride in dimensions))
