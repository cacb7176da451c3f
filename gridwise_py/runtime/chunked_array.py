"""ChunkedArray: several Arrays that act as one, for more items than a buffer holds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import wgpu

from ..backend.waits import in_thread
from ..call_errors import explained
from ..errors import ArgumentError, BufferUsageError, DatatypeError
from ..types.datatype import ITEM_DATATYPES, Datatype, as_datatype
from ..types.options import integer
from .array import (
    Array,
    OnGpu,
    asarray,
    check_out,
    count_items,
    datatype_of,
    empty,
    host_array,
    slice_bounds,
)
from .array import check_usable as check_array_usable
from .device import default_device

_WHOLE_ITEMS = 1 << 14  # default chunks are multiples of this: whole tiles of every kernel


class ChunkedArray(OnGpu):
    """Arrays of one datatype and device that act as one long array.

    Larger than any buffer, if need be. What takes an `Array` takes it, except a `Kernel`, and the output of a `Reduce`.
    Sorts and matrix products are faster with few chunks.

    Parameters
    ----------
    chunks : sequence of Array
        At least one, of any lengths. They are not copied.

    Raises
    ------
    ArgumentError
        If there is no chunk.
    DatatypeError
        If a chunk is not an Array, or has another datatype.
    BufferUsageError
        If the chunks are on different devices.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.ChunkedArray.from_numpy(np.arange(10, dtype=np.uint32), chunk_items=4, device=device)
    >>> x
    ChunkedArray(u32, 10 items in 3 chunks, on ...)
    >>> gw.cumsum(x).to_numpy()
    array([ 0,  1,  3,  6, 10, 15, 21, 28, 36, 45], dtype=uint64)
    """

    __slots__ = ("__weakref__", "_chunks")

    def __init__(self, chunks: Sequence[Array]):
        found: tuple[Any, ...] = tuple(chunks) if isinstance(chunks, (list, tuple)) else (chunks,)
        if not found:
            raise ArgumentError("a ChunkedArray needs at least one Array, which may be empty")
        for number, chunk in enumerate(found):
            if not isinstance(chunk, Array):
                raise DatatypeError(
                    f"chunk {number} is {type(chunk).__name__}, but must be an Array; upload it with gw.asarray, or "
                    f"use ChunkedArray.from_numpy"
                )
            if chunk.datatype != found[0].datatype:
                raise DatatypeError(
                    f"chunk {number} is of {chunk.datatype}, but chunk 0 of {found[0].datatype}; convert with astype"
                )
            if chunk.ndim != 1:
                raise ArgumentError(
                    f"chunk {number} has shape {chunk.shape}, but a ChunkedArray has one dimension; give chunk.ravel()"
                )
            if chunk.device is not found[0].device:
                raise BufferUsageError(
                    f"chunk {number} lies on another device than chunk 0; copy it with gw.asarray(chunk, device=…)"
                )
        self._chunks: tuple[Array, ...] = found

    @classmethod
    def from_numpy(
        cls, data: np.ndarray, *, chunk_items: int | None = None, device: wgpu.GPUDevice | None = None
    ) -> ChunkedArray:
        """Upload a numpy array.

        Parameters
        ----------
        data : numpy.ndarray
            Shape (n,).
        chunk_items : int, optional
            Items per chunk; by default what one dispatch reaches.
        device : wgpu.GPUDevice, optional
        """
        items = host_array(data)
        if items.ndim != 1:
            raise ArgumentError(f"a ChunkedArray has one dimension, the data has shape {items.shape}; use data.ravel()")
        datatype = datatype_of(items)
        device = device if device is not None else default_device()
        step = _chunk_items(chunk_items, datatype, device)
        return cls([asarray(items[first : first + step], device) for first in range(0, max(items.size, 1), step)])

    @classmethod
    @explained()
    def empty(
        cls,
        n: int,
        dtype: Datatype | str | Any = "u32",
        device: wgpu.GPUDevice | None = None,
        *,
        chunk_items: int | None = None,
    ) -> ChunkedArray:
        """Return unspecified items, in chunks like those of `from_numpy`."""
        n = integer("n", n, 0)
        datatype = as_datatype(dtype, ITEM_DATATYPES)
        device = device if device is not None else default_device()
        step = _chunk_items(chunk_items, datatype, device)
        return cls([empty(min(step, n - first), datatype, device) for first in range(0, max(n, 1), step)])

    @classmethod
    def empty_like(cls, other: ChunkedArray) -> ChunkedArray:
        """Return such chunks of the same lengths."""
        return cls([empty(chunk.size, chunk.datatype, chunk.device) for chunk in other.chunks])

    @property
    def chunks(self) -> tuple[Array, ...]:
        """The arrays, in order."""
        return self._chunks

    @property
    def datatype(self) -> Datatype:
        """The datatype of the items."""
        return self._chunks[0].datatype

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype of the items."""
        return self.datatype.dtype

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device of the buffers."""
        return self._chunks[0].device

    @property
    def size(self) -> int:
        """"""
        return sum(chunk.size for chunk in self._chunks)

    @property
    def shape(self) -> tuple[int]:
        """``(size,)``."""
        return (self.size,)

    @property
    def ndim(self) -> int:
        """The number of dimensions: 1."""
        return 1

    @property
    def nbytes(self) -> int:
        """Bytes of the items."""
        return sum(chunk.nbytes for chunk in self._chunks)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: slice | tuple[slice]) -> ChunkedArray:
        first, length = slice_bounds(key, self.size, "a ChunkedArray")
        found: list[Array] = []
        for chunk in self._chunks:
            if length > 0 and first < chunk.size:
                found.append(chunk[first : first + length])
                length -= found[-1].size
            first = max(0, first - chunk.size)
        return ChunkedArray(found or [self._chunks[0][:0]])

    def ravel(self) -> ChunkedArray:
        """Return the array itself: it has one dimension."""
        return self

    def __copy__(self) -> ChunkedArray:
        return ChunkedArray(self._chunks)

    def to_numpy(self, out: np.ndarray | None = None) -> np.ndarray:
        """Copy the items from the GPU into one numpy array."""
        if out is not None:
            check_out(out, self)
        check_usable(self, "COPY_SRC", "to_numpy()")
        if out is None:
            out = np.empty(self.size, dtype=self.dtype)
        first = 0
        for chunk in self._chunks:
            chunk.to_numpy(out[first : first + chunk.size])
            first += chunk.size
        return out

    async def to_numpy_async(self, out: np.ndarray | None = None) -> np.ndarray:
        """Like `to_numpy`, without blocking the event loop."""
        return await in_thread(functools.partial(self.to_numpy, out))

    def copy_from(self, data: np.ndarray) -> ChunkedArray:
        """Upload a numpy array of the same shape and dtype."""
        if isinstance(data, OnGpu):
            raise DatatypeError(
                f"copy_from() of a ChunkedArray takes a numpy array, not {data!r}; on the GPU, "
                f"gridwise_py.Copy(x.device, '{self.datatype.name}').execute(input=x, output=y) copies"
            )
        data = host_array(data)
        if data.dtype.newbyteorder("=") != self.dtype or data.shape != self.shape:
            raise DatatypeError(
                f"cannot copy a numpy array of {data.dtype} and shape {data.shape} into a ChunkedArray of {self.dtype} "
                f"and shape {self.shape}; convert with astype, or slice"
            )
        check_usable(self, "COPY_DST", "copy_from()")
        first = 0
        for chunk in self._chunks:
            chunk.copy_from(data[first : first + chunk.size])
            first += chunk.size
        return self

    def destroy(self) -> None:
        """Free the memory of all chunks now."""
        for chunk in self._chunks:
            chunk.destroy()

    def __repr__(self) -> str:
        count, where = len(self._chunks), self.device.adapter.info["device"]
        chunks = f"{count} chunk{'' if count == 1 else 's'}"
        return f"ChunkedArray({self.datatype.name}, {count_items(self.size)} in {chunks}, on {where})"


def _chunk_items(wanted: int | None, datatype: Datatype, device: wgpu.GPUDevice) -> int:
    if wanted is None:
        largest = min(device.limits["max-storage-buffer-binding-size"], device.limits["max-buffer-size"])
        return max(_WHOLE_ITEMS, largest // datatype.itemsize_bytes // _WHOLE_ITEMS * _WHOLE_ITEMS)
    return integer("chunk_items", wanted, 1)


Items: TypeAlias = Array | ChunkedArray
#: What goes in, and so what comes out.
ItemsT = TypeVar("ItemsT", bound=Items)


def check_usable(items: Items, usage: str | None, call: str) -> None:
    """Raise BufferUsageError where a call cannot use an array, or one of the chunks."""
    for array in parts(items):
        check_array_usable(array, usage, call)


def parts(value: Any) -> tuple[Array, ...]:
    """Return the arrays of an argument: its chunks, or itself."""
    if type(value) is Array:  # asked first: isinstance() takes long for an abstract class
        return (value,)
    return value.chunks if isinstance(value, ChunkedArray) else (value,)
