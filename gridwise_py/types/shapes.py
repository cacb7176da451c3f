"""The one rule of shapes: arrays that are read item by item have one shape, as nothing is broadcast."""

from __future__ import annotations

from collections.abc import Mapping
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
        remedy = f"here nothing is broadcast: of {narrow} give gw.asarray(np.broadcast_to(x.to_numpy(), {wide}))"
    elif prod(other) == prod(shape):
        remedy = f"give {name}.reshape({first}.shape)"
    else:
        remedy = "slice them to one length"
    raise LengthError(f"{what}: {name} has shape {other}, but {first} has {shape}; {remedy}")
