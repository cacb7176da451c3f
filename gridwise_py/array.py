"""Array: a typed view of a GPU buffer."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import wgpu

from ._wgpu_native import destroyed_flag, device_of, is_destroyed
from .context import context_of
from .datatype import DATATYPES, STORAGE_DATATYPES, Datatype, KeyDatatypeLike, as_datatype
from .device import default_device
from .errors import ArgumentError, BufferUsageError, DatatypeError, ImplicitConversionError, LimitError
from .process import in_thread
from .trouble import device_errors

__all__ = ["Array", "asarray", "empty", "empty_like"]

_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


class OnGpu:
    """What items on the GPU refuse: conversions that would copy them unseen."""

    __slots__ = ()

    def _refuse(self, what: str) -> NoReturn:
        raise ImplicitConversionError(
            f"{'an' if type(self) is Array else 'a'} {type(self).__name__} lies on the GPU and is not converted to "
            f"{what} implicitly, since a hidden copy would spoil timings; call .to_numpy()"
        )

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._refuse("a numpy array")

    def __array_ufunc__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._refuse("a numpy array")

    def __contains__(self, _item: object) -> NoReturn:
        self._refuse("a container")

    def __iter__(self) -> NoReturn:
        self._refuse("an iterator")

    def __bool__(self) -> NoReturn:
        self._refuse("a bool")

    def __float__(self) -> NoReturn:
        self._refuse("a float")

    def __int__(self) -> NoReturn:
        self._refuse("an int")


def slice_bounds(key: Any, length: int, kind: str) -> tuple[int, int]:
    """Return first item and length of a slice; raise for what is none, or has another step."""
    if not isinstance(key, slice):
        raise ImplicitConversionError(
            f"an item of {kind} is not read implicitly (index {key!r}): use array.to_numpy()[{key!r}], or a "
            f"slice, which is a view"
        )
    start, stop, step = key.indices(length)
    if step != 1:
        raise ArgumentError(f"slices of {kind} have step 1, not {step}; copy with to_numpy()[::{step}]")
    return start, max(0, stop - start)


class Array(OnGpu):
    """A one-dimensional, typed view of a GPU buffer.

    Make one with `asarray`, `empty` or `empty_like`, or from a buffer of your own. Slices are views: they share the
    buffer, and may start at any item.

    Parameters
    ----------
    buffer : wgpu.GPUBuffer
        Needs the usage STORAGE for kernels, COPY_SRC for `to_numpy`.
    datatype : Datatype, str or numpy dtype
    length : int, optional
        Items; by default as many as the buffer holds from `offset` on.
    offset : int, default 0
        First item.
    device : wgpu.GPUDevice, optional
        The buffer's device, by default as wgpu tells it.
    """

    __slots__ = ("__weakref__", "_buffer", "_datatype", "_device", "_length", "_offset")

    def __init__(
        self,
        buffer: wgpu.GPUBuffer,
        datatype: Datatype | str | Any,
        length: int | None = None,
        offset: int = 0,
        *,
        device: wgpu.GPUDevice | None = None,
    ):
        if not isinstance(buffer, wgpu.GPUBuffer):
            raise DatatypeError(f"buffer must be a wgpu.GPUBuffer, not {type(buffer).__name__}")
        self._buffer = buffer
        self._datatype = as_datatype(datatype, STORAGE_DATATYPES)
        capacity = buffer.size // self._datatype.itemsize_bytes
        if length is None:
            length = capacity - offset
        if offset < 0 or length < 0 or offset + length > capacity:
            raise ArgumentError(
                f"items {offset} to {offset + length} do not lie in a buffer of {capacity} items ({buffer.size} bytes)"
            )
        self._offset = offset
        self._length = length
        owner = device_of(buffer)
        if owner is not None and device is not None and owner is not device:
            raise BufferUsageError(
                f"the buffer was made on another device (device {owner.uid} on {owner.adapter.info['device']}) than "
                f"device= (device {device.uid} on {device.adapter.info['device']}); copy it through numpy"
            )
        owner = owner if owner is not None else device
        if owner is None:
            raise ArgumentError("the buffer does not tell its device; give device=")
        self._device = owner
        destroyed_flag(buffer)  # from here on the buffer takes note of its end

    @property
    def buffer(self) -> wgpu.GPUBuffer:
        """The buffer that holds the items."""
        return self._buffer

    @property
    def datatype(self) -> Datatype:
        """The datatype of the items."""
        return self._datatype

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype of the items."""
        return self._datatype.dtype

    @property
    def offset(self) -> int:
        """First item in the buffer."""
        return self._offset

    @property
    def offset_bytes(self) -> int:
        """First byte in the buffer."""
        return self._offset * self._datatype.itemsize_bytes

    @property
    def size(self) -> int:
        """Number of items."""
        return self._length

    @property
    def shape(self) -> tuple[int]:
        """``(size,)``."""
        return (self._length,)

    @property
    def ndim(self) -> int:
        """The number of dimensions: 1."""
        return 1

    @property
    def nbytes(self) -> int:
        """Bytes of the items."""
        return self._length * self._datatype.itemsize_bytes

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device of the buffer."""
        return self._device

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, key: slice) -> Array:
        start, length = slice_bounds(key, self._length, "an Array")
        return Array(self._buffer, self._datatype, length, self._offset + start, device=self._device)

    def to_numpy(self) -> np.ndarray:
        """Copy the items from the GPU; waits for the work that was submitted before.

        Returns
        -------
        numpy.ndarray
            Shape (size,), dtype of the Array.

        Raises
        ------
        BufferUsageError
            If the buffer is destroyed or mapped, or lacks COPY_SRC.
        """
        self._check_usable("COPY_SRC", "to_numpy()")
        if not self._length:
            return np.empty(0, dtype=self.dtype)
        if self._is_whole_words():
            out = np.empty(self._length, dtype=self.dtype)
            context_of(self._device).read_buffer(self._buffer, self.offset_bytes, out)
            return out
        words, lead = self._words()
        return words[lead : lead + self.nbytes].view(self.dtype).copy()

    def _is_whole_words(self) -> bool:
        """Whether the items are whole words of 4 bytes, as which buffers are copied."""
        return self.offset_bytes % 4 == 0 and self.nbytes % 4 == 0

    def _words(self) -> tuple[np.ndarray, int]:
        """Return the bytes of all words that the items touch, and where the items begin in them."""
        first = self.offset_bytes // 4 * 4
        words = np.empty(-(-(self.offset_bytes + self.nbytes - first) // 4) * 4, dtype=np.uint8)
        context_of(self._device).read_buffer(self._buffer, first, words)
        return words, self.offset_bytes - first

    async def to_numpy_async(self) -> np.ndarray:
        """As `to_numpy`, without blocking the event loop."""
        return await in_thread(self.to_numpy)

    def copy_from(self, data: np.ndarray) -> Array:
        """Upload `data` into this view and return the view.

        Parameters
        ----------
        data : numpy.ndarray
            Shape (size,), dtype of the Array. A view of f16 that shares a word of 4 bytes with other items is read
            first, which waits for the GPU.
        """
        data = np.asarray(data)
        if data.dtype != self.dtype or data.shape != self.shape:
            raise DatatypeError(
                f"cannot copy a numpy array of {data.dtype} and shape {data.shape} into an Array of {self.dtype} and "
                f"shape {self.shape}; convert with astype, or slice"
            )
        self._check_usable("COPY_DST", "copy_from()")
        if self._length:
            words, first = np.ascontiguousarray(data).view(np.uint8), self.offset_bytes
            if not self._is_whole_words():
                self._check_usable("COPY_SRC", "copy_from()")
                found, lead = self._words()
                found[lead : lead + self.nbytes] = words
                words, first = found, first - lead
            profiler = context_of(self._device).profiler
            with device_errors("copy_from()"):
                if profiler is not None:
                    profiler._upload(self._buffer, first, words)
                else:
                    self._device.queue.write_buffer(self._buffer, first, words)
        return self

    def destroy(self) -> None:
        """Free the buffer's memory now; every view of it becomes unusable."""
        self._buffer.destroy()

    def _check_usable(self, usage: str, call: str) -> None:
        if is_destroyed(self._buffer):
            raise BufferUsageError(f"{call}: the buffer of {self!r} was destroyed; make a new Array")
        if self._buffer.map_state != "unmapped":
            raise BufferUsageError(f"{call}: the buffer of {self!r} is mapped; call buffer.unmap() first")
        if not self._buffer.usage & getattr(wgpu.BufferUsage, usage):
            raise BufferUsageError(
                f"{call}: the buffer of {self!r} lacks the usage {usage}; create it with "
                f"usage=wgpu.BufferUsage.{usage} | …"
            )

    def __repr__(self) -> str:
        view = f", offset={self._offset}" if self._offset else ""
        return f"Array({self._datatype.name}, {self._length} items{view})"


def _checked_size(device: wgpu.GPUDevice, n: int, datatype: Datatype) -> int:
    # A multiple of 16, so that every length can be bound as vec4.
    size_bytes = max(16, -(-n * datatype.itemsize_bytes // 16) * 16)
    limit = device.limits["max-buffer-size"]
    if size_bytes > limit:
        raise LimitError(
            f"{n} items of {datatype.name} need {size_bytes} bytes, but the device's max-buffer-size is {limit} bytes; "
            f"use several buffers, as gw.ChunkedArray does"
        )
    return size_bytes


def _make_buffer(
    device: wgpu.GPUDevice, n: int, datatype: Datatype, label: str, *, mapped: bool = False
) -> wgpu.GPUBuffer:
    profiler = context_of(device).profiler
    size_bytes = _checked_size(device, n, datatype)
    with device_errors(f"an Array of {n} items of {datatype.name} ({size_bytes} bytes)"):
        buffer = device.create_buffer(
            label=label or "gridwise array", size=size_bytes, usage=_USAGE, mapped_at_creation=mapped
        )
    destroyed_flag(buffer, fresh=True)
    if profiler is not None:
        profiler._allocated(size_bytes)
    return buffer


def empty(
    n: int,
    datatype: KeyDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
    *,
    dtype: KeyDatatypeLike | None = None,
    label: str = "",
) -> Array:
    """Return an Array of `n` items with unspecified contents.

    Parameters
    ----------
    n : int
    datatype : Datatype, str or numpy dtype, default "u32"
    device : wgpu.GPUDevice, optional
        By default `default_device()`.
    dtype : optional
        Another name of `datatype`, as numpy has it.
    label : str, optional
        Of the buffer, for debuggers.

    Raises
    ------
    ArgumentError
        If `n` is no length, or both names of the datatype are given.
    LimitError
        If it is larger than the device's largest buffer.
    """
    if datatype is not None and dtype is not None:
        raise ArgumentError(f"dtype={dtype!r} and datatype={datatype!r} are two names of one thing; give one of them")
    asked = datatype if dtype is None else dtype
    datatype = as_datatype("u32" if asked is None else asked, STORAGE_DATATYPES)
    if isinstance(n, (tuple, list)):
        raise ArgumentError(f"an Array has one dimension, the shape asked for is {n!r}; give its length, an integer")
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise ArgumentError(f"n must be an integer of at least 0, not {n!r}")
    device = device if device is not None else default_device()
    buffer = _make_buffer(device, int(n), datatype, label)
    return Array(buffer, datatype, int(n), device=device)


def empty_like(array: Array | np.ndarray, device: wgpu.GPUDevice | None = None) -> Array:
    """Return an uninitialised Array of the length and datatype of `array`, on its device."""
    if isinstance(array, Array):
        return empty(array.size, array.datatype, device or array.device)
    return empty(np.asarray(array).size, np.asarray(array).dtype, device)


def asarray(
    data: Any, device: wgpu.GPUDevice | None = None, *, dtype: KeyDatatypeLike | None = None, label: str = ""
) -> Array:
    """Return an Array with the items of `data`.

    Parameters
    ----------
    data : numpy.ndarray, Array, wgpu.GPUBuffer, or sequence
        A numpy array or sequence is uploaded; an Array is returned as it is; a GPUBuffer is viewed, and needs
        `dtype`. A sequence of Python numbers needs `dtype`, too, since numpy would take 64 bits.
    device : wgpu.GPUDevice, optional
        By default `default_device()`.
    dtype : optional
        Datatype, its name, or a numpy dtype. Numpy arrays are not converted: a dtype that differs is an error.

    Raises
    ------
    DatatypeError
        If the items are of no supported datatype.
    ArgumentError
        If `data` has more than one dimension, or lies on another device.
    """
    wanted = None if dtype is None else as_datatype(dtype, STORAGE_DATATYPES)
    if isinstance(data, wgpu.GPUBuffer):
        if wanted is None:
            raise DatatypeError("a GPUBuffer does not know its datatype; give dtype=, for example dtype='u32'")
        return Array(data, wanted, device=device)
    if isinstance(data, Array):
        if device is not None and data.device is not device:
            raise BufferUsageError(
                f"{data!r} lies on another device; copy it through numpy: gw.asarray(x.to_numpy(), device)"
            )
        if wanted is not None and wanted != data.datatype:
            raise DatatypeError(f"{data!r} is not of {wanted}; convert with to_numpy().astype(…)")
        return data
    if isinstance(data, np.ndarray):
        items = data
        datatype = as_datatype(items.dtype, STORAGE_DATATYPES)
        if wanted is not None and wanted != datatype:
            raise DatatypeError(
                f"data is of {items.dtype}, but dtype={wanted} was asked for; convert it first: "
                f"data.astype(numpy.{wanted.numpy_name})"
            )
    elif wanted is not None:
        datatype = wanted
        try:
            items = np.array(data, dtype=wanted.dtype)
        except (OverflowError, TypeError, ValueError) as error:
            raise DatatypeError(f"data cannot be held as {wanted}: {error}") from error
    else:
        items = np.asarray(data)
        # The 64 bits of Python's numbers are nobody's choice.
        datatype = as_datatype(items.dtype, DATATYPES, convert="gw.asarray(x, dtype=np.{})")
    if items.ndim != 1:
        raise ArgumentError(
            f"an Array has one dimension, the data has shape {items.shape}; use data.ravel(), or data.reshape(-1)"
        )
    device = device if device is not None else default_device()
    profiler = context_of(device).profiler
    buffer = _make_buffer(device, items.size, datatype, label, mapped=profiler is None)
    words = np.ascontiguousarray(items).view(np.uint8)
    if profiler is None:
        if items.size:
            buffer.write_mapped(words)
        buffer.unmap()
    elif items.size:
        profiler._upload(buffer, 0, words)
    return Array(buffer, datatype, items.size, device=device)
