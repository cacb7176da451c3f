"""Array: a typed view of a GPU buffer."""

from __future__ import annotations

import functools
import operator
import sys
from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np
import wgpu

from ..backend.device_errors import device_errors
from ..backend.fork_guard import in_thread
from ..backend.wgpu_native import destroyed_flag, device_of, is_destroyed, submit
from ..errors import (
    ArgumentError,
    BufferUsageError,
    DatatypeError,
    ImplicitConversionError,
    LengthError,
    LimitError,
)
from ..types.datatype import STORAGE_DATATYPES, Datatype, KeyDatatypeLike, as_datatype
from .context import context_of
from .device import default_device
from .observer import step
from .transfers import RING_BYTES, as_bytes

__all__ = ["Array", "asarray", "empty", "empty_like"]

_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


_LABEL = "gridwise array"  # of a buffer that its maker gave none


def checked_count(value: Any, name: str, least: int = 0) -> int:
    """Return an integer of Python or numpy as a Python int, which does not overflow.

    Raises
    ------
    ArgumentError
        If it is something else, a float or a bool for example, or below `least`.
    """
    try:
        count = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = None
    if count is None or count < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}, not {value!r}")
    return count


def count_items(n: int) -> str:
    """Return ``"1 item"`` or ``"5 items"``."""
    return f"{n} item{'' if n == 1 else 's'}"


class OnGpu(ABC):
    """Base of all arrays on the GPU: items are copied to the host only by explicit calls."""

    __slots__ = ()

    @property
    @abstractmethod
    def device(self) -> wgpu.GPUDevice:
        """The device that it is on."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of items."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """The numpy dtype of the items."""

    @abstractmethod
    def __getitem__(self, key: slice) -> Any:
        """Return a view of a range of items."""

    @abstractmethod
    def to_numpy(self, out: np.ndarray | None = None) -> np.ndarray:
        """Copy the items from the GPU."""

    def item(self, index: int | None = None) -> int | float:
        """Copy one item from the GPU, as a Python number; waits for all submitted work.

        Parameters
        ----------
        index : int, optional
            A negative index counts from the end. Optional if there is only one item.

        Raises
        ------
        ArgumentError
            If there is no such item, or `index` is missing for several items.
        """
        if index is None:
            if self.size != 1:
                raise ArgumentError(
                    f"item() without an index is for an array of 1 item, but {self!r} has {self.size}; say which: "
                    f"item(0) is the first, item(-1) the last; tolist() and to_numpy() copy all"
                )
            index = 0
        place = checked_count(index, "index", -self.size)
        if place >= self.size:
            raise ArgumentError(f"index {place} is not in {self!r}, which has {count_items(self.size)}")
        place %= self.size
        return self[place : place + 1].to_numpy().item()

    def tolist(self) -> list[int] | list[float]:
        """Copy the items from the GPU into a list of Python numbers."""
        return self.to_numpy().tolist()

    def _name(self) -> str:
        return f"{'an' if type(self) is Array else 'a'} {type(self).__name__}"

    def _refuse(self, what: str, remedy: str = "call .to_numpy()") -> NoReturn:
        raise ImplicitConversionError(
            f"{self._name()} is on the GPU and is not converted to {what} implicitly, because a hidden copy "
            f"would distort timings; {remedy}"
        )

    def _refuse_number(self, what: str) -> NoReturn:
        if self.size == 1:
            self._refuse(what, "call .item()")
        self._refuse(what, f"it has {self.size} items: call .item(0) for the first, or .to_numpy() for all")

    def __dlpack__(self, **_kwargs: Any) -> NoReturn:
        self._refuse(
            "another library's tensor", "wgpu has no DLPack: copy through the host, torch.from_numpy(x.to_numpy())"
        )

    def __dlpack_device__(self) -> NoReturn:
        self.__dlpack__()

    def __copy__(self) -> Any:
        return self[:]

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        raise ImplicitConversionError(
            f"{self._name()} lies on the GPU and is neither pickled nor deep-copied. To send it, pickle x.to_numpy() "
            f"and upload that with gridwise_py.asarray; for a copy on the GPU, run "
            f"gridwise_py.Copy(x.device, x.datatype).execute(input=x).output"
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
        self._refuse_number("a float")

    def __int__(self) -> NoReturn:
        self._refuse_number("an int")


def slice_bounds(key: Any, length: int, kind: str) -> tuple[int, int]:
    """Return first item and length of a slice; raise for what is none, or has another step."""
    if not isinstance(key, slice):
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            raise ImplicitConversionError(
                f"an item of {kind} is not read implicitly: array.item({key}) copies it from the GPU, "
                f"array[{key}:{'' if key == -1 else key + 1}] is a view of it, and array.to_numpy() copies all"
            )
        raise ImplicitConversionError(
            f"{kind} cannot be indexed by {key!r}: slices with step 1 are views; for anything else copy the items "
            f"first, array.to_numpy()[…]"
        )
    try:
        start, stop, step = key.indices(length)
    except TypeError as error:
        raise DatatypeError(f"{kind} cannot be sliced by {key!r}: {error}") from error
    if step != 1:
        raise ArgumentError(f"slices of {kind} have step 1, not {step}; copy with to_numpy()[::{step}]")
    return start, max(0, stop - start)


def check_out(out: Any, array: OnGpu) -> None:
    """Raise unless a numpy array can take all items of an array on the GPU.

    Raises
    ------
    ArgumentError
        Also DatatypeError and LengthError. The message says what to give.
    """
    make = f"give np.empty({array.size}, np.{array.dtype.name})"
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise ArgumentError(f"out must be a numpy array without a mask, not {type(out).__name__}; {make}")
    if out.dtype != array.dtype:
        raise DatatypeError(f"out is of {out.dtype.str}, but {array!r} of {array.dtype.str}; {make}")
    if out.shape != (array.size,):
        raise LengthError(f"out has shape {out.shape}, but {array!r} has shape {(array.size,)}; {make}, or a slice")
    if not out.flags.c_contiguous:
        raise ArgumentError(f"out has strides {out.strides}, but must be contiguous; {make}, and copy from there")
    if not out.flags.writeable:
        raise ArgumentError(f"out is read-only; {make}, or set out.flags.writeable")


class Array(OnGpu):
    """A one-dimensional, typed view of a GPU buffer.

    Create one with `asarray`, `empty` or `empty_like`, or from your own buffer. Slices are views: they share the
    buffer, and may start at any item.

    Parameters
    ----------
    buffer : wgpu.GPUBuffer
        Needs the usage STORAGE for kernels, COPY_SRC for `to_numpy`.
    datatype : Datatype, str or numpy dtype
    length : int, optional
        Number of items; by default, all from `offset` to the end of the buffer.
    offset : int, default 0
        First item.
    device : wgpu.GPUDevice, optional
        The buffer's device; by default as reported by wgpu.
    """

    __slots__ = ("__weakref__", "_buffer", "_count", "_datatype", "_device", "_length", "_offset")

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
        self._count: Array | None = None
        self._datatype = as_datatype(datatype, STORAGE_DATATYPES)
        capacity = buffer.size // self._datatype.itemsize_bytes
        # Python's ints: sums of numpy's would wrap.
        offset = checked_count(offset, "offset")
        length = max(0, capacity - offset) if length is None else checked_count(length, "length")
        if offset + length > capacity:
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
            raise ArgumentError("the device of the buffer is unknown; give device=")
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

    @property
    def count(self) -> Array | None:
        """The number of valid items, as an Array of one u32, if only the GPU knows it; else None.

        With a count, `size` is the capacity, and `to_numpy` and `trim` return the valid items only.
        """
        return self._count

    def counted_by(self, count: Array) -> Array:
        """Return a view of the same items with a count: the one item of `count` is the number of valid ones."""
        if count.size != 1 or count.datatype.name != "u32":
            raise ArgumentError(f"a count must be an Array of one u32, not {count!r}")
        view = Array(self._buffer, self._datatype, self._length, self._offset, device=self._device)
        view._count = count
        return view

    def trim(self) -> Array:
        """Return a view of the valid items; reads the count (4 bytes), and so waits for the GPU.

        Without a count, return the array itself.
        """
        if self._count is None:
            return self
        items = min(self._count.item(), self._length)
        return Array(self._buffer, self._datatype, int(items), self._offset, device=self._device)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, key: slice) -> Array:
        if self._count is not None:
            raise ArgumentError(f"only the GPU knows how many items {self!r} has; slice array.trim(), which reads it")
        start, length = slice_bounds(key, self._length, "an Array")
        return Array(self._buffer, self._datatype, length, self._offset + start, device=self._device)

    def to_numpy(self, out: np.ndarray | None = None) -> np.ndarray:
        """Copy the items from the GPU; waits for all submitted work.

        Parameters
        ----------
        out : numpy.ndarray, optional
            Where to put them: C-contiguous and writeable, with the shape and dtype of the Array. Memory that was used
            before is faster than fresh memory, whose pages the system has to find first.

        Returns
        -------
        numpy.ndarray
            `out`, or a new array: shape (size,), dtype of the Array; with a count, only the valid items.

        Raises
        ------
        ArgumentError
            If `out` does not fit, or only the GPU knows how many items there are.
        BufferUsageError
            If the buffer is destroyed or mapped, or lacks COPY_SRC.
        """
        if out is not None:
            if self._count is not None:
                raise ArgumentError(
                    f"only the GPU knows how many items {self!r} has, so out= may be too long; call array.trim() "
                    f"first, which reads the count"
                )
            check_out(out, self)
        check_usable(self, "COPY_SRC", "to_numpy()")
        if self._count is not None:
            return self.trim().to_numpy()
        if out is None:
            out = np.empty(self._length, dtype=self.dtype)
        if self._length:
            context_of(self._device).read_buffer(self._buffer, self.offset_bytes, out)
        return out

    def _is_whole_words(self) -> bool:
        """Whether the items are whole words of 4 bytes, as which buffers are copied."""
        return self.offset_bytes % 4 == 0 and self.nbytes % 4 == 0

    def _words(self) -> tuple[np.ndarray, int]:
        """Return the bytes of all words that the items touch, and where the items begin in them."""
        first = self.offset_bytes // 4 * 4
        words = np.empty(-(-(self.offset_bytes + self.nbytes - first) // 4) * 4, dtype=np.uint8)
        context_of(self._device).read_buffer(self._buffer, first, words)
        return words, self.offset_bytes - first

    async def to_numpy_async(self, out: np.ndarray | None = None) -> np.ndarray:
        """As `to_numpy`, without blocking the event loop."""
        return await in_thread(functools.partial(self.to_numpy, out))

    def copy_from(self, data: np.ndarray | Array) -> Array:
        """Copy `data` into this view and return the view.

        Parameters
        ----------
        data : numpy.ndarray or Array
            Shape (size,), dtype of the Array. A numpy array of any strides and byte order is uploaded, and may change
            afterwards; a view of f16 that shares a word of 4 bytes with other items is read first, which waits for the
            GPU. An Array must be on the same device, in another buffer, and is copied on the GPU, without waiting.
        """
        if isinstance(data, OnGpu):
            return self._copy_on_gpu(data)
        data = host_array(data)
        if data.dtype.newbyteorder("=") != self.dtype or data.shape != self.shape:
            raise DatatypeError(
                f"cannot copy a numpy array of {data.dtype} and shape {data.shape} into an Array of {self.dtype} and "
                f"shape {self.shape}; convert with astype, or slice"
            )
        check_usable(self, "COPY_DST", "copy_from()")
        if self._length:
            if not self._is_whole_words():
                check_usable(self, "COPY_SRC", "copy_from()")
            self._upload(data)
        return self

    def _upload(self, items: np.ndarray) -> None:
        """Copy a numpy array of the same length and datatype, in any byte order, into this view."""
        context = context_of(self._device)
        if self._is_whole_words():
            context.write_buffer(self._buffer, self.offset_bytes, items)
        elif self.nbytes < RING_BYTES:
            words, lead = self._words()
            words[lead : lead + self.nbytes] = as_bytes(items)
            context.write_buffer(self._buffer, self.offset_bytes - lead, words)
        else:  # of f16: only the first and the last word are shared with items that stay
            lead, stop = self._offset % 2, self._length - (self._offset + self._length) % 2
            for first, last in ((0, lead), (lead, stop), (stop, self._length)):
                if first < last:
                    place = self._offset + first
                    part = Array(self._buffer, self._datatype, last - first, place, device=self._device)
                    part._upload(items[first:last])

    def _copy_on_gpu(self, source: OnGpu) -> Array:
        remedy = f"gridwise_py.Copy(x.device, '{self._datatype.name}').execute(input=x, output=y) copies any view"
        if not isinstance(source, Array):
            raise DatatypeError(f"copy_from() takes a numpy array or an Array, not {source!r}; {remedy}")
        if source.datatype != self._datatype or source.size != self._length:
            raise DatatypeError(f"cannot copy {source!r} into {self!r}: datatype and size must be the same")
        if source.device is not self._device:
            raise BufferUsageError(
                f"cannot copy {source!r} into {self!r}, which lies on another device; copy through the host: "
                f"y.copy_from(x.to_numpy())"
            )
        if source.buffer is self._buffer:
            raise BufferUsageError(f"copy_from() cannot copy within one buffer, which WebGPU does not allow; {remedy}")
        if not (self._is_whole_words() and source._is_whole_words()):
            raise ArgumentError(f"copy_from() copies whole words of 4 bytes from Array to Array; {remedy}")
        check_usable(source, "COPY_SRC", "copy_from()")
        check_usable(self, "COPY_DST", "copy_from()")
        if self._length:
            with device_errors("copy_from()", self._device):
                encoder = self._device.create_command_encoder(label="gridwise copy")
                with step(context_of(self._device).observer, "copy_from", encoder, 2 * self.nbytes):
                    encoder.copy_buffer_to_buffer(
                        source.buffer, source.offset_bytes, self._buffer, self.offset_bytes, self.nbytes
                    )
                submit(self._device, [encoder.finish()], "copy_from()")
        return self

    def destroy(self) -> None:
        """Free the buffer's memory now; every view of it becomes unusable."""
        self._buffer.destroy()

    def __repr__(self) -> str:
        view = f", offset={self._offset}" if self._offset else ""
        label = f", label={self._buffer.label!r}" if self._buffer.label not in ("", _LABEL) else ""
        end = ", destroyed" if is_destroyed(self._buffer) else ""
        where = self._device.adapter.info["device"]
        most = "at most " if self._count is not None else ""
        return f"Array({self._datatype.name}, {most}{count_items(self._length)}{view}{label}, on {where}{end})"


def check_usable(array: Array, usage: str, call: str) -> None:
    """Raise BufferUsageError where a call cannot use an array: its buffer is destroyed or mapped, or lacks a usage."""
    buffer = array.buffer
    if is_destroyed(buffer):
        raise BufferUsageError(f"{call}: the buffer of {array!r} was destroyed; make a new Array")
    if buffer.map_state != "unmapped":
        raise BufferUsageError(f"{call}: the buffer of {array!r} is mapped; call buffer.unmap() first")
    if not buffer.usage & getattr(wgpu.BufferUsage, usage):
        raise BufferUsageError(
            f"{call}: the buffer of {array!r} lacks the usage {usage}; create it with "
            f"usage=wgpu.BufferUsage.{usage} | …"
        )


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
    observer = context_of(device).observer
    size_bytes = _checked_size(device, n, datatype)
    with device_errors(f"an Array of {n} items of {datatype.name} ({size_bytes} bytes)", device):
        buffer = device.create_buffer(label=label or _LABEL, size=size_bytes, usage=_USAGE, mapped_at_creation=mapped)
    destroyed_flag(buffer, fresh=True)
    if observer is not None:
        observer.allocated(size_bytes)
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
        numpy's name for `datatype`.
    label : str, optional
        The buffer's label, for debuggers.

    Raises
    ------
    ArgumentError
        If `n` is not a length, or both `datatype` and `dtype` are given.
    LimitError
        If the Array is larger than the device's largest buffer.
    """
    if datatype is not None and dtype is not None:
        raise ArgumentError(f"dtype={dtype!r} and datatype={datatype!r} are the same option; give only one of them")
    asked = datatype if dtype is None else dtype
    datatype = as_datatype("u32" if asked is None else asked, STORAGE_DATATYPES)
    if isinstance(n, (tuple, list)):
        raise ArgumentError(f"an Array has one dimension, not the shape {n!r}; give its length, an integer")
    n = checked_count(n, "n")
    device = device if device is not None else default_device()
    buffer = _make_buffer(device, n, datatype, label)
    return Array(buffer, datatype, n, device=device)


def empty_like(array: Array | np.ndarray, device: wgpu.GPUDevice | None = None) -> Array:
    """Return an uninitialised Array of the length and datatype of `array`, on its device."""
    if isinstance(array, Array):
        return empty(array.size, array.datatype, device or array.device)
    items = host_array(array)
    return empty(items.size, datatype_of(items), device)


def refuse_masked(data: Any) -> None:
    """Raise DatatypeError for an array with masked items, whose mask would be lost."""
    # A process without numpy.ma has no masked items; to ask it imports it, which takes 10 to 25 ms.
    if "numpy.ma" in sys.modules and np.ma.is_masked(data):
        raise DatatypeError(
            "data has masked items, and an Array has no mask; give data.filled(value) or data.compressed()"
        )


def host_array(data: Any) -> np.ndarray:
    """Return what numpy makes of data on the host; raise DatatypeError where a mask would be lost."""
    refuse_masked(data)
    return np.asarray(data)


def datatype_of(items: np.ndarray) -> Datatype:
    """Return the datatype of a numpy array that is to be uploaded.

    Raises
    ------
    DatatypeError
        If an Array cannot hold it; the message says how to convert it, where that makes sense.
    """
    dtype = items.dtype.newbyteorder("=")  # bytes are brought into this machine's order on the way
    if dtype.kind in "biufO":
        return as_datatype(dtype, STORAGE_DATATYPES)
    parts = "; take x.real and x.imag, as two arrays" if dtype.kind == "c" else ""
    raise DatatypeError(f"data is of {dtype}, but an Array holds real numbers: {', '.join(STORAGE_DATATYPES)}{parts}")


def _from_numbers(data: Any, wanted: Datatype) -> np.ndarray:
    """Return a sequence of Python numbers as a numpy array; raise DatatypeError for what the datatype cannot hold."""
    try:
        found = np.array(data)
        with np.errstate(over="ignore"):
            items = np.array(data, dtype=wanted.dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise DatatypeError(f"data cannot be held as {wanted}: {error}") from error
    strange: list[Any]
    if found.dtype.kind == "O":  # integers of more than 64 bits, perhaps
        strange = [x for x in found.ravel() if not isinstance(x, (int, np.integer))]
    else:
        strange = [] if found.dtype.kind in "biuf" else found.ravel()[:1].tolist()
    if strange:
        raise DatatypeError(
            f"data cannot be held as {wanted}: {strange[0]!r} is {type(strange[0]).__name__}, no number"
        )
    if found.dtype.kind == "f":
        if wanted.dtype.kind == "f":
            lost = np.isfinite(found) & ~np.isfinite(items)
            remedy = "it is beyond the largest number; take a datatype with a larger range"
        else:
            lost = items.astype(np.float64) != found
            remedy = (
                f"it is not an integer; round first, numpy.rint(data).astype(numpy.{wanted.numpy_name}), or take f32"
            )
        if lost.any():
            raise DatatypeError(f"data cannot be held as {wanted}: it has {found[lost][0]}, and {remedy}")
    return items


def asarray(
    data: Any, device: wgpu.GPUDevice | None = None, *, dtype: KeyDatatypeLike | None = None, label: str = ""
) -> Array:
    """Return an Array with the items of `data`.

    Parameters
    ----------
    data : numpy.ndarray, Array, wgpu.GPUBuffer, or sequence
        A numpy array, or anything with ``__array__`` (a tensor on the CPU, a pandas Series), is uploaded, whatever its
        strides and byte order. So is a sequence of Python numbers, with `dtype`, because numpy would choose 64 bits.
        An Array is returned unchanged. For a GPUBuffer, with `dtype`, the result is a view.
    device : wgpu.GPUDevice, optional
        By default `default_device()`.
    dtype : optional
        Datatype, its name, or a numpy dtype. numpy arrays are not converted: a different dtype is an error. Python
        numbers may be rounded to a float datatype, but not to an integer one.

    Raises
    ------
    DatatypeError
        If the datatype of the items is not supported, `dtype` cannot represent them, or they are masked.
    ArgumentError
        If `data` has more than one dimension, or is on another device.
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
    refuse_masked(data)
    if hasattr(data, "__array__"):
        items = np.asarray(data)
        datatype = datatype_of(items)
        if wanted is not None and wanted != datatype:
            raise DatatypeError(
                f"data is of {items.dtype}, but dtype={wanted} was asked for; convert it first: "
                f"{'data' if isinstance(data, np.ndarray) else 'numpy.asarray(data)'}.astype(numpy.{wanted.numpy_name})"
            )
    elif wanted is not None:
        items, datatype = _from_numbers(data, wanted), wanted
    else:
        raise DatatypeError(
            f"data is a {type(data).__name__}, which has no datatype, and numpy would choose one of 64 bits, which few "
            f"primitives take; give dtype=, for example gridwise_py.asarray([1, 2, 3], dtype='u32')"
        )
    if items.ndim != 1:
        remedy = "use data.ravel(), or data.reshape(-1)" if items.ndim else "give a list of one number, [data]"
        raise ArgumentError(f"an Array has one dimension, the data has shape {items.shape}; {remedy}")
    device = device if device is not None else default_device()
    context = context_of(device)
    # A small one is written into the buffer's own memory, or wgpu's stand-in for it, which costs the fewest calls.
    mapped = items.nbytes < RING_BYTES and context.observer is None
    buffer = _make_buffer(device, items.size, datatype, label, mapped=mapped)
    if mapped:
        with device_errors(f"uploading {items.nbytes} bytes", device):
            if items.size:
                buffer.write_mapped(as_bytes(items))
            buffer.unmap()
    elif items.size:
        whole_words = items if items.nbytes % 4 == 0 else np.append(items, items.dtype.type(0))
        context.write_buffer(buffer, 0, whole_words)
    return Array(buffer, datatype, items.size, device=device)
