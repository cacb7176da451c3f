"""Expressions without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

import gridwise_py as gw
from gridwise_py.types.expression import Operators, stored
from gridwise_py.types.program import flatten as flatten


class FakeArray(Operators):
    """An array on no GPU."""

    def __init__(self, items: Any):
        self.items = np.asarray(items)

    datatype = property(lambda self: next(d for d in gw.STORAGE_DATATYPES.values() if d.dtype == self.items.dtype))
    size = property(lambda self: self.items.size)
    shape = property(lambda self: self.items.shape)
    count = None

    @property
    def place(self) -> tuple[int]:
        return (id(self),)

    def viewed_as(self, shape: tuple[int, ...]) -> FakeArray:
        return FakeArray(self.items.reshape(shape))

    def to_numpy(self) -> np.ndarray:
        return self.items

    def as_expression(self) -> gw.Expression:
        return stored(self)
