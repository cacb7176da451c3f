"""What functions of several inputs share: the arrays of a call by the names of arguments, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import wgpu

from ..primitives.array_methods import value_words
from ..primitives.fusion import flat_of
from ..primitives.one_shot import (
    argument_array,
    argument_datatype,
    check_one_length,
    device_of,
    stored_leaves,
    without_doubles,
)
from ..runtime.array import Array, asarray
from ..types.datatype import ITEM_DATATYPES, Datatype
from ..types.program import Flat

__all__ = ["Inputs", "of_sums", "sums_may_wrap", "two_words", "weak_items"]

_LOW_WORD = 0xFFFFFFFF


def weak_items(call: str, name: str, value: Any, datatype: Datatype) -> np.ndarray:
    """Return an array of Python's numbers, which take the datatype of other items.

    Raises
    ------
    DatatypeError
        If one is an integer that the datatype does not hold.
    """
    items = argument_array(call, name, value)
    argument_datatype(call, name, value, items.dtype, ITEM_DATATYPES)
    if items.size and items.dtype.kind in "iu" and datatype.dtype.kind in "iu":
        for end in (items.min(), items.max()):
            value_words(int(end), datatype, f"{call}: {name}")
    return items


def sums_may_wrap(items: np.ndarray) -> bool:
    """Whether sums of integers of 8 bytes may leave their range."""
    if items.dtype.kind not in "iu" or not items.size:
        return False
    return max(-int(items.min()), int(items.max())) * items.size > np.iinfo(items.dtype).max


def two_words(items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the high and the low words of integers of 8 bytes, of their dtype: sums of fewer than 2^31 do not wrap."""
    return items >> 32, items & _LOW_WORD


def of_sums(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Return the sums of integers, in float64, from those of their high and of their low words."""
    return (high + (low >> 32)) * 2.0**32 + (low & _LOW_WORD)


class Inputs:
    """The inputs of a call: of each a datatype or a program, and the arrays by the names of arguments.

    Parameters
    ----------
    call : str
        For messages.
    device : wgpu.GPUDevice or None
        The caller's.
    """

    def __init__(self, call: str, device: wgpu.GPUDevice | None):
        self._call = call
        self._device = device
        self._sizes: dict[str, int] = {}
        #: By the names of arguments; those of an expression by its argument's name and their own.
        self.arrays: dict[str, Any] = {}
        #: Whether an input is on the GPU, so that results stay there.
        self.on_gpu: bool = False

    def take_expression(self, name: str, value: Any) -> Flat:
        """Take an argument that is an expression of Arrays; return its program.

        Raises
        ------
        ArgumentError
            If a leaf is no Array.
        """
        flat = flat_of(value)
        stored = stored_leaves(self._call, flat)
        names = {leaf: f"{name}_{leaf}" for leaf in stored}
        self.arrays |= {names[leaf]: array for leaf, array in stored.items()}
        self.on_gpu = True
        return flat.renamed(names).without_arrays()

    def take_items(self, name: str, value: Any, items: Any, known: Mapping[str, Datatype]) -> Datatype:
        """Take the items that were made of an argument; return their datatype, which is one of the known ones."""
        if isinstance(items, Array):
            self.on_gpu = True
        else:
            items = without_doubles(value, items, self.device)
        datatype = argument_datatype(self._call, name, value, items.dtype, known)
        self.arrays[name] = items
        self._sizes[name] = items.size
        return datatype

    def size_of(self, name: str) -> int | None:
        """Return the number of items of an argument; None for an expression, which has as many as its Arrays."""
        return self._sizes.get(name)

    def check_lengths(self, *names: str) -> None:
        """Raise LengthError where arrays have different lengths: those of some arguments, or all."""
        check_one_length(self._call, {name: self._sizes[name] for name in names or self._sizes if name in self._sizes})

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device of the call."""
        return device_of(*self.arrays.values(), device=self._device)

    def outputs(self, primitive: Any, **more: Array) -> dict[str, Array]:
        """Return the outputs of a primitive; what is not on the GPU is uploaded."""
        arrays = {name: asarray(items, primitive.device) for name, items in self.arrays.items()}
        return primitive.bind(**arrays, **more).execute().outputs
