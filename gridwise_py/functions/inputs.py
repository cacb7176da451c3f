"""Arguments in the one datatype that numpy promotes them to, and exact sums of integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import wgpu

from ..errors import DatatypeError
from ..primitives.array_methods import value_words
from ..primitives.one_shot import (
    argument_array,
    argument_datatype,
    device_of,
    is_weak,
    without_doubles,
)
from ..runtime.array import default_float
from ..runtime.chunked_array import ChunkedArray, Items
from ..runtime.context import context_of
from ..types.datatype import ITEM_DATATYPES, STORAGE_DATATYPES, Datatype, as_datatype

__all__ = ["Promoted", "in_datatype", "of_sums", "sums_may_wrap", "two_words", "weak_items"]

_LOW_WORD = 0xFFFFFFFF


def weak_items(call: str, name: str, value: Any, datatype: Datatype) -> np.ndarray:
    """Return an array of Python's numbers, in the datatype of other items; floats keep theirs beside integers.

    Raises
    ------
    DatatypeError
        If one is an integer that the datatype does not hold.
    """
    items = argument_array(call, name, value)
    argument_datatype(call, name, value, items.dtype, ITEM_DATATYPES)
    if not items.size:
        return items.astype(datatype.dtype)  # of no numbers numpy makes floats
    if items.dtype.kind == "f" and datatype.dtype.kind in "iu":
        whole = np.array(value, dtype=object)
        if all(isinstance(each, int) for each in whole.flat):  # of which numpy makes floats where int64 ends
            for end in (whole.min(), whole.max()):
                value_words(int(end), datatype, f"{call}: {name}")
            return whole.astype(datatype.dtype)
    if items.dtype.kind in "iu" and datatype.dtype.kind in "iu":
        for end in (items.min(), items.max()):
            value_words(int(end), datatype, f"{call}: {name}")
    takes = datatype.dtype.kind == "f" or (items.dtype.kind in "biu" and datatype.dtype.kind in "iu")
    with np.errstate(all="ignore"):
        return items.astype(datatype.dtype) if takes else items


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


class Promoted:
    """Arguments in the one datatype that numpy promotes them to; Python's numbers are weak, as in NumPy 2.

    Parameters
    ----------
    call : str
        For messages.
    given : mapping from str to object
        Arrays of any kind and numbers, by the names of arguments.
    device : wgpu.GPUDevice or None
        The caller's.
    known : mapping from str to Datatype
        What the items may be.
    has_doubles : bool, default False
        Whether the kernel takes float64 on any device: where it only compares. Otherwise Python's floats are float32
        where the device does not compute with float64.

    Raises
    ------
    DatatypeError
        If items are of no known datatype, or the promoted one is none.
    BufferUsageError
        If Arrays lie on several devices.
    """

    def __init__(
        self,
        call: str,
        given: Mapping[str, Any],
        device: wgpu.GPUDevice | None,
        known: Mapping[str, Datatype] = STORAGE_DATATYPES,
        *,
        has_doubles: bool = False,
    ):
        self._call = call
        #: Python's numbers, by the names of arguments.
        self.numbers: dict[str, Any] = {name: value for name, value in given.items() if is_weak(value)}
        #: The other arguments, as they are on the GPU or as numpy makes arrays of them; not converted yet.
        self.arrays: dict[str, Any] = {
            name: value if isinstance(value, Items) else argument_array(call, name, value)
            for name, value in given.items()
            if name not in self.numbers
        }
        #: Whether an argument is on the GPU, so that results stay there.
        self.on_gpu: bool = any(isinstance(items, Items) for items in self.arrays.values())
        for name, items in self.arrays.items():
            argument_datatype(call, name, given[name], items.dtype, known)
        self.device: wgpu.GPUDevice = device_of(*given.values(), device=device)
        self._double: np.dtype[Any] = np.dtype(np.float64)
        if not has_doubles:
            self._double = default_float(context_of(self.device)).dtype
            for name, items in self.arrays.items():
                self.arrays[name] = without_doubles(given[name], items, self.device)
        #: Of the arrays and the numbers together.
        self.datatype: Datatype = as_datatype(self._promoted(), known)

    def _promoted(self) -> np.dtype[Any]:
        dtypes = [items.dtype.newbyteorder("=") for items in self.arrays.values()]
        found = np.result_type(*dtypes) if dtypes else np.dtype(np.bool_)
        for value in self.numbers.values():
            kind = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"
            if "biufc".index(found.kind) < "biufc".index(kind):
                found = self._double if kind == "f" else np.dtype(np.int64)
        return found

    def datatype_of(self, name: str) -> Datatype:
        """Return the datatype that an argument has now; of a number the promoted one."""
        items = self.arrays.get(name)
        return self.datatype if items is None else as_datatype(items.dtype.newbyteorder("="), ITEM_DATATYPES)

    def number(self, name: str, datatype: Datatype | None = None) -> np.ndarray:
        """Return a number in the promoted datatype, or another; raise DatatypeError where that does not hold it."""
        wanted = self.datatype if datatype is None else datatype
        value_words(self.numbers[name], wanted, self._call)
        with np.errstate(all="ignore"):
            return np.array(self.numbers[name], dtype=wanted.dtype)

    def converted(self, name: str, datatype: Datatype | None = None) -> Any:
        """Return an argument in the promoted datatype, or in another."""
        if name in self.numbers:
            return self.number(name, datatype)
        return in_datatype(self._call, name, self.arrays[name], self.datatype if datatype is None else datatype)


def in_datatype(call: str, name: str, items: Any, datatype: Datatype) -> Any:
    """Return the items of an argument in a datatype, converted where they are; chunks cannot be."""
    if items.dtype.newbyteorder("=") == datatype.dtype:
        return items
    if isinstance(items, ChunkedArray):
        raise DatatypeError(
            f"{call}: {name} is a ChunkedArray of {items.datatype}, but is read as {datatype}; convert its chunks, or "
            f"the other argument"
        )
    return items.astype(datatype.dtype)
