"""Array: a typed view of a GPU buffer."""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import prod
from types import EllipsisType
from typing import Any, NoReturn, TypeAlias, cast, overload

import numpy as np
import wgpu

from ..backend.device_errors import device_errors
from ..backend.device_state import check_queue_use
from ..backend.queues import destroyed_flag, device_of, submit
from ..backend.waits import in_thread
from ..call_errors import explained
from ..errors import (
    ArgumentError,
    BoundsError,
    BufferUsageError,
    DatatypeError,
    ImplicitConversionError,
    LengthError,
    LimitError,
)
from ..namespace import with_answers
from ..types.datatype import (
    COMPLEX,
    ITEM_DATATYPES,
    STORAGE_DATATYPES,
    Datatype,
    ItemDatatypeLike,
    Struct,
    as_datatype,
    in_own_order,
    numpy_text,
)
from ..types.expression import Expression, Operators, gather, stored, stored_field
from ..types.expression_functions import StructExpression
from ..types.options import integer
from ..types.shapes import indexed, whole_index
from .context import DeviceContext, check_device, context_of
from .device import default_device
from .host_items import float64_holds, integers_and_nulls
from .memory import BlockSize, Lease
from .observer import step
from .pinned import DIRECTIONS, Direction, PinnedArray
from .transfers import RING_BYTES, as_bytes

#: From this size on a kernel copies between Arrays of a GPU.
_BY_KERNEL_BYTES = 1 << 20


def count_items(n: int) -> str:
    """Return ``"1 item"`` or ``"5 items"``."""
    return f"{n} item{'' if n == 1 else 's'}"


def checked_shape(shape: Any, name: str = "shape") -> tuple[int, ...]:
    """Return a shape, given as in numpy as a length or a sequence of lengths, as a tuple of Python ints.

    Raises
    ------
    ArgumentError
        If a length is no integer, or negative.
    """
    if isinstance(shape, (tuple, list)):
        return tuple([integer(f"{name}: each length", length, 0) for length in cast(Sequence[Any], shape)])
    return (integer(name, shape, 0),)


class _Operations(dict[str, Callable[..., "Array"]]):
    """By name; all come when the first one is asked for."""

    def __missing__(self, name: str) -> Callable[..., Array]:
        importlib.import_module("..functions.array_methods", __package__)
        return dict(self)[name]


#: What methods of `Array` call that need kernels: primitives, which are above this package, put it here.
OPERATIONS: dict[str, Callable[..., Array]] = _Operations()


@with_answers
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
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """The numpy dtype of the items."""

    @abstractmethod
    def __getitem__(self, key: slice) -> Any:
        """Return a view of a range of items."""

    @abstractmethod
    def ravel(self) -> Any:
        """Return a view of all items in one dimension."""

    @abstractmethod
    def to_numpy(self, out: np.ndarray | None = None) -> np.ndarray:
        """Copy the items from the GPU."""

    def item(self, *index: int) -> int | float | bool:
        """Copy one item from the GPU, as a Python number.

        Parameters
        ----------
        *index : int
            One for each dimension, or one alone that counts all items; from the end if negative.

        Raises
        ------
        BoundsError
            If there is no such item.
        ArgumentError
            If `index` is missing for several items.
        """
        if getattr(self, "count", None) is not None:
            raise ArgumentError(
                f"item(): only the GPU knows how many items {self!r} has; array.trim().item(…) reads it first"
            )
        if not index:
            if self.size != 1:
                raise ArgumentError(
                    f"item() without an index is for an array of 1 item, but {self!r} has {self.size}; say which: "
                    f"item(0) is the first, item(-1) the last; tolist() and to_numpy() copy all"
                )
            index = (0,)
        lengths = self.shape if len(index) == len(self.shape) else (self.size,)
        if len(index) != len(lengths):
            raise ArgumentError(
                f"item() takes one index, or one for each dimension, but got {len(index)} for shape {self.shape}"
            )
        first = 0
        for number, length in zip(index, lengths, strict=True):
            place = integer("index", number)
            if not -length <= place < length:
                raise BoundsError(f"index {place} is not in {self!r}, which has {count_items(length)}")
            first = first * length + place % length
        return self.ravel()[first : first + 1].to_numpy().item()

    def tolist(self) -> Any:
        """Copy the items from the GPU into nested lists of Python numbers."""
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

    @abstractmethod
    def __copy__(self) -> Any:
        """Return another view of the same items."""

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        copy = "call x.copy()" if isinstance(self, Array) else "run gridwise_py.Copy(x.device, x.datatype)"
        raise ImplicitConversionError(
            f"{self._name()} lies on the GPU and is neither pickled nor deep-copied. To send it, pickle x.to_numpy() "
            f"and upload that with gridwise_py.asarray; for a copy on the GPU, {copy}"
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
        self._refuse_number("a bool")

    def __float__(self) -> NoReturn:
        self._refuse_number("a float")

    def __int__(self) -> NoReturn:
        self._refuse_number("an int")


def only_index(key: Any) -> Any:
    """Return the index that is alone in a tuple, which numpy takes as the index itself; else what is given."""
    if not isinstance(key, tuple):
        return key
    indices = cast(tuple[Any, ...], key)
    return indices[0] if len(indices) == 1 else indices


def slice_bounds(key: Any, length: int, kind: str) -> tuple[int, int]:
    """Return first item and length of a slice, or of a tuple of one; raise for what is none, or has another step."""
    key = only_index(key)
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
    check_numpy_out(out, array.shape, array.dtype, repr(array))


def check_numpy_out(
    out: Any, shape: tuple[int, ...], dtype: np.dtype, what: str, call: str = "", *, strided: bool = False
) -> None:
    """Raise unless `out` is a numpy array for items of a shape and a dtype; `what` names these in messages.

    With `strided` its items may lie in any order and with gaps, and their bytes too.

    Raises
    ------
    ArgumentError
        Also DatatypeError and LengthError. The message says what to give.
    """
    sizes = str(shape[0]) if len(shape) == 1 else str(shape)
    make, call = f"give np.empty({sizes}, np.{numpy_text(dtype)})", call and f"{call}: "
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise ArgumentError(f"{call}out must be a numpy array without a mask, not {type(out).__name__}; {make}")
    if (out.dtype.newbyteorder("=") if strided else out.dtype) != dtype.newbyteorder("="):
        raise DatatypeError(f"{call}out is of {out.dtype.str}, but {what} of {dtype.str}; {make}")
    if out.shape != shape and (shape or out.size != 1):
        slice_it = ", or a slice" if len(shape) == 1 else ""
        raise LengthError(f"{call}out has shape {out.shape}, but {what} has shape {shape}; {make}{slice_it}")
    if not strided and not out.flags.c_contiguous:
        raise ArgumentError(f"{call}out has strides {out.strides}, but must be contiguous; {make}, and copy from there")
    if not out.flags.writeable:
        raise ArgumentError(f"{call}out is read-only; {make}, or set out.flags.writeable")


_Index: TypeAlias = "slice | int | EllipsisType | Array | np.ndarray | list[int] | list[bool] | None"


class Array(Operators, OnGpu):
    """A typed view of a GPU buffer, of any dimensions.

    Items lie in C order, without gaps. What numpy's indices choose is a view of the same buffer where it has no gaps
    (``x[2:5]``, ``x[2]``, ``x[:, None]``), else a copy (``x[:, 0]``, ``x[::2]``, ``x[indices]``, ``x[mask]``).

    Parameters
    ----------
    buffer : wgpu.GPUBuffer
        With the usage ``STORAGE`` for kernels, ``COPY_SRC`` for `to_numpy`.
    dtype : Datatype, str or numpy dtype
    length : int, optional
        By default all items to the end of the buffer.
    offset : int, default 0
    device : wgpu.GPUDevice, optional

    Raises
    ------
    ArgumentError
        If the items do not lie in the buffer.
    DatatypeError
        If there is no such datatype, or `buffer` is none.
    BufferUsageError
        If the buffer was made on another device, or, later, lacks a usage that a call needs.
    ImplicitConversionError
        Later, if numpy or Python would copy the items without being told: use `to_numpy` or `item`.

    Attributes
    ----------
    lease : Lease
        What keeps the memory from being reused; for the library's own use.
    place : tuple
        Identity key of the items: number of the buffer, offset, length, datatype, the key of the count, shape. Equal
        for Arrays that show the same items in the same way; for the library's own use.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.arange(6, dtype=np.uint32))
    >>> x.shape, x.dtype
    ((6,), dtype('uint32'))
    >>> x[2:5].to_numpy()
    array([2, 3, 4], dtype=uint32)
    >>> gw.sum(x.reshape(2, 3)[1]).item()
    12
    >>> gw.asarray(2 * x + 1).to_numpy()  # of the expression 2 * x + 1
    array([ 1,  3,  5,  7,  9, 11], dtype=uint32)
    >>> gw.Array(x.buffer, "u32", length=2, offset=4).to_numpy()
    array([4, 5], dtype=uint32)
    """

    __slots__ = ("__weakref__", "_count", "_datatype", "_device", "_length", "_offset", "_shape", "lease", "place")

    lease: Lease
    place: tuple[Any, ...]
    _count: Array | None
    _datatype: Datatype
    _device: wgpu.GPUDevice
    _length: int
    _offset: int
    #: None for one dimension, which has all items: most Arrays are such, and calls make many.
    _shape: tuple[int, ...] | None

    @explained()
    def __init__(
        self,
        buffer: wgpu.GPUBuffer,
        dtype: Datatype | str | Any,
        length: int | None = None,
        offset: int = 0,
        *,
        device: wgpu.GPUDevice | None = None,
    ):
        if not isinstance(buffer, wgpu.GPUBuffer):
            raise DatatypeError(f"buffer must be a wgpu.GPUBuffer, not {type(buffer).__name__}")
        self._count = self._shape = None
        self._datatype = as_datatype(dtype, ITEM_DATATYPES)
        capacity = buffer.size // self._datatype.itemsize_bytes
        # Python's ints: sums of numpy's would wrap.
        offset = integer("offset", offset, 0)
        length = max(0, capacity - offset) if length is None else integer("length", length, 0)
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
        # From here on the buffer takes note of its end.
        self.lease = Lease(buffer, destroyed_flag(buffer), buffer.label)
        self.place = (self.lease.number, offset, length, self._datatype.key, None, None)

    @classmethod
    def on(
        cls,
        lease: Lease,
        datatype: Datatype,
        length: int,
        device: wgpu.GPUDevice,
        offset: int = 0,
        count: Array | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> Array:
        """Return an Array on memory that has room for it, without any check; for the library's own use.

        `shape` is for other shapes than ``(length,)``.
        """
        array = object.__new__(cls)
        array.lease, array._datatype, array._device = lease, datatype, device
        array._length, array._offset, array._count, array._shape = length, offset, count, shape
        array.place = lease.number, offset, length, datatype.key, None if count is None else count.place, shape
        return array

    @property
    def buffer(self) -> wgpu.GPUBuffer:
        """The buffer of the items, and maybe of more.

        Its memory is then not reused for other Arrays.
        """
        return self.lease.hand_out()

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
        """"""
        return self._offset

    @property
    def offset_bytes(self) -> int:
        """"""
        return self._offset * self._datatype.itemsize_bytes

    @property
    def size(self) -> int:
        """"""
        return self._length

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        shape = self._shape
        return (self._length,) if shape is None else shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return 1 if self._shape is None else len(self._shape)

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

        With a count, `size`, `shape` and `nbytes` are the capacity, and ``len(array)`` raises
        (docs/concepts/counts.md).
        """
        return self._count

    def counted_by(self, count: Array) -> Array:
        """Return a view with a count: the one item of `count` is the number of valid items.

        It is read when a call runs; above `size` it stands for all items.
        """
        if count.size != 1 or count.datatype.name != "u32":
            raise ArgumentError(f"a count must be an Array of one u32, not {count!r}")
        return Array.on(self.lease, self._datatype, self._length, self._device, self._offset, count)

    def trim(self) -> Array:
        """Return a view of the valid items; reads the count, and so waits."""
        if self._count is None:
            return self
        items = min(self._count.item(), self._length)
        return Array.on(self.lease, self._datatype, int(items), self._device, self._offset)

    def reshape(self, *shape: int | Sequence[int]) -> Array:
        """Return a view of another shape.

        Parameters
        ----------
        *shape : int, or one sequence of int
            One of them may be -1: what the others leave.

        Raises
        ------
        LengthError
            If the shape has another number of items.
        """
        self._check_uncounted()
        wanted: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        lengths = [integer("reshape(): each length", length, -1) for length in wanted]
        if lengths.count(-1) > 1:
            raise ArgumentError(f"reshape(): only one length may be -1, but the shape is {tuple(lengths)}")
        if -1 in lengths:
            others = -prod(lengths)
            if others and self._length % others == 0:
                lengths[lengths.index(-1)] = self._length // others
        if -1 in lengths or prod(lengths) != self._length:
            raise LengthError(
                f"{self!r} cannot be reshaped to {tuple(lengths)}: it has {count_items(self._length)}, shape "
                f"{self.shape}; give lengths whose product is {self._length}, or slice it first"
            )
        return self.viewed_as(tuple(lengths))

    def as_expression(self) -> Expression:
        """Return the expression that is this Array."""
        return stored(self)

    def ravel(self) -> Array:
        """Return a view of one dimension."""
        return self if self._shape is None else self.viewed_as((self._length,))

    def viewed_as(self, shape: tuple[int, ...]) -> Array:
        """Return a view with another shape of as many items, without any check; for the library's own use."""
        kept = None if len(shape) == 1 else shape
        return Array.on(self.lease, self._datatype, self._length, self._device, self._offset, None, kept)

    def view(self, dtype: ItemDatatypeLike) -> Array:
        """Return a view of the same bytes as items of another datatype.

        Parameters
        ----------
        dtype : Datatype, str or numpy dtype
            The last dimension changes with the size of the items.

        Raises
        ------
        LengthError
            If the last dimension has a part of an item, or the first item begins within one.
        """
        self._check_uncounted()
        wanted = as_datatype(dtype, ITEM_DATATYPES)
        item_bytes, wanted_bytes = self._datatype.itemsize_bytes, wanted.itemsize_bytes
        if item_bytes == wanted_bytes:
            return Array.on(self.lease, wanted, self._length, self._device, self._offset, None, self._shape)
        shape = self.shape
        row_bytes = (shape[-1] if shape else 1) * item_bytes
        if not shape or row_bytes % wanted_bytes or self.offset_bytes % wanted_bytes:
            raise LengthError(
                f"{self!r} cannot be viewed as {wanted}: "
                + (
                    f"its last dimension has {row_bytes} bytes and it begins at byte {self.offset_bytes} of its "
                    f"buffer, which must be multiples of {wanted_bytes}; slice it, or copy() it first"
                    if shape
                    else "an Array of shape () has items of one size; give array.reshape(1).view(…)"
                )
            )
        viewed = (*shape[:-1], row_bytes // wanted_bytes)
        length, offset = self.nbytes // wanted_bytes, self.offset_bytes // wanted_bytes
        return Array.on(self.lease, wanted, length, self._device, offset, None, None if len(viewed) == 1 else viewed)

    def copy(self) -> Array:
        """Return a copy, without waiting."""
        self._check_uncounted()
        return OPERATIONS["copy"](self)

    def astype(self, dtype: ItemDatatypeLike, *, copy: bool = True) -> Array:
        """Return the items as another datatype, without waiting.

        As in numpy; floats that are too large for an integer wrap, and infinities and NaN become 0.

        Parameters
        ----------
        dtype : Datatype, str or numpy dtype
            Any; float64 needs no feature.
        copy : bool, default True
            Also if the items are of this datatype.
        """
        self._check_uncounted()
        wanted = as_datatype(dtype, ITEM_DATATYPES)
        return self if wanted == self._datatype and not copy else OPERATIONS["convert"](self, wanted)

    def fill(self, value: float) -> Array:
        """Set all items to a number, without waiting; return the array.

        Parameters
        ----------
        value : int, float or bool

        Raises
        ------
        DatatypeError
            If it is not.
        """
        self._check_uncounted()
        return OPERATIONS["fill"](self, value)

    def __matmul__(self, other: Any) -> Array:
        return importlib.import_module("..functions.arithmetic", __package__).matmul(self, other)

    def __copy__(self) -> Array:
        return Array.on(self.lease, self._datatype, self._length, self._device, self._offset, self._count, self._shape)

    def __len__(self) -> int:
        if self._count is not None:  # a ratio by the capacity would be wrong in silence
            raise ImplicitConversionError(
                f"only the GPU knows how many items {self!r} has: array.count is that number, an Array of one u32; "
                f"len(array.trim()) reads it, which waits; array.size is what there is room for"
            )
        if self._shape is None:
            return self._length
        if not self._shape:
            raise TypeError("len() of an Array of shape (), which is one item; its size is 1")
        return self._shape[0]

    def _check_uncounted(self) -> None:
        if self._count is not None:
            raise ArgumentError(f"only the GPU knows how many items {self!r} has; slice array.trim(), which reads it")

    def _first_counted(self, key: Any) -> Array:
        """Return a view of the first items: those that count are counted by the same Array."""
        if not isinstance(key, slice) or key.start not in (None, 0) or key.step not in (None, 1):
            raise ArgumentError(
                f"only the GPU knows how many items {self!r} has, so its views are of the first ones, array[:k]; for "
                f"others slice array.trim(), which reads the count"
            )
        most = self._length if key.stop is None else integer("the end of a slice of a counted Array", key.stop, 0)
        length = min(most, self._length)
        return Array.on(self.lease, self._datatype, length, self._device, self._offset, self._count)

    @overload
    def __getitem__(self, key: _Index | tuple[_Index, ...]) -> Array: ...
    @overload
    def __getitem__(self, key: str) -> Expression: ...
    @overload
    def __getitem__(self, key: Expression) -> Any: ...  # an Array of a mask
    def __getitem__(self, key: Any) -> Any:
        if type(key) is tuple:
            key = only_index(cast(tuple[Any, ...], key))
        if type(key) is str and isinstance(self._datatype, Struct):
            self._check_uncounted()
            return stored_field((self if self.shape else self.ravel()).view("u32"), self._datatype.fields, key)
        if self._count is not None:
            return self._first_counted(key)
        if type(key) is Expression and key.type != "bool":
            return gather(self, key)
        shape = self._shape
        if type(key) is slice and key.step is None and shape != ():  # slices and rows are many
            start, length = slice_bounds(key, self._length if shape is None else shape[0], "an Array")
            if shape is None:
                return Array.on(self.lease, self._datatype, length, self._device, self._offset + start)
            return self._rows(start, length, (length, *shape[1:]))
        if type(key) is int and shape and -shape[0] <= key < shape[0]:
            return self._rows(key % shape[0], 1, shape[1:])
        return self._indexed(cast(tuple[Any, ...], key) if isinstance(key, tuple) else (key,))

    def _rows(self, first: int, count: int, viewed: tuple[int, ...]) -> Array:
        """Return a view of rows along the first dimension, of several, in a shape."""
        items = prod(cast(tuple[int, ...], self._shape)[1:])
        offset = self._offset + first * items
        return Array.on(self.lease, self._datatype, count * items, self._device, offset, None, kept_shape(viewed))

    def _indexed(self, keys: tuple[Any, ...]) -> Array:
        if any(
            isinstance(key, (Array, list, Expression)) or (isinstance(key, np.ndarray) and key.ndim) for key in keys
        ):
            return OPERATIONS["index"](self, keys)
        if len(keys) == 1 and isinstance(keys[0], (bool, np.bool_)):
            return self[None] if keys[0] else self[None][:0]
        part = indexed(whole_index([self._basic(key) for key in keys], self.shape), self.shape)
        if not part.is_contiguous:
            return OPERATIONS["strided"](self, part)
        offset = self._offset + part.start
        return Array.on(
            self.lease, self._datatype, prod(part.shape), self._device, offset, None, kept_shape(part.shape)
        )

    def _basic(self, key: Any) -> Any:
        """Return a key as an int, a slice, None or an ellipsis."""
        if isinstance(key, slice):
            try:
                key.indices(0)
            except (TypeError, ValueError) as error:
                kind = DatatypeError if isinstance(error, TypeError) else ArgumentError
                raise kind(f"an Array cannot be sliced by {key!r}: {error}") from error
            return key
        if key is None or key is ...:
            return key
        if not hasattr(key, "__index__") or isinstance(key, (bool, np.bool_)):
            raise BoundsError(
                f"an Array cannot be indexed by {key!r:.60}: indices are integers, slices, None, ..., and one array of "
                f"integers or bools; for anything else copy the items first, array.to_numpy()[…]"
            )
        return operator.index(key)

    def __setitem__(self, _key: Any, _value: Any) -> NoReturn:
        raise DatatypeError(
            "items of an Array are not assigned: array[2:5].copy_from(items) copies an array into a slice, "
            "array[2:5].fill(value) sets its items to a number, and gw.put(array, indices, values) writes at indices"
        )

    @overload
    def to_numpy(self, out: np.ndarray | None = None) -> np.ndarray: ...
    @overload
    def to_numpy(self, out: PinnedArray) -> PinnedArray: ...
    def to_numpy(self, out: np.ndarray | PinnedArray | None = None) -> Any:
        """Copy the items from the GPU; waits for all work.

        Parameters
        ----------
        out : numpy.ndarray or PinnedArray, optional
            Where to put them: C-contiguous, of the shape and dtype. With a `PinnedArray` the call does not wait:
            ``out.mapped()`` does.

        Returns
        -------
        numpy.ndarray or PinnedArray

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
            if isinstance(out, PinnedArray):
                return self._to_pinned(out)
            check_out(out, self)
        check_usable(self, "COPY_SRC", "to_numpy()")
        if self._count is not None:
            return self.trim().to_numpy()
        is_fresh = out is None
        if out is None:
            out = np.empty(self.shape, dtype=self.dtype)
        if self._length:
            flat = out if self._shape is None else out.reshape(-1)  # a view: `out` is contiguous
            context_of(self._device).read_buffer(self.lease.buffer, self.offset_bytes, flat, is_fresh=is_fresh)
        return out

    def _to_pinned(self, out: PinnedArray) -> PinnedArray:
        self._check_pinned("to_numpy()", out)
        if self.offset_bytes % 4:
            raise ArgumentError(
                f"to_numpy(): {self!r} begins within a word of 4 bytes, and the GPU copies whole words into pinned "
                f"memory; give a numpy array as out"
            )
        check_usable(self, "COPY_SRC", "to_numpy()")
        out.download(self.lease.buffer, self.offset_bytes)
        return out

    def _check_pinned(self, call: str, pinned: PinnedArray) -> None:
        if pinned.datatype != self._datatype or pinned.size != self._length:
            raise DatatypeError(f"{call}: {pinned!r} and {self!r} must have the same datatype and size")
        if pinned.device is not self._device:
            raise BufferUsageError(f"{call}: {pinned!r} was made for another device; give device= to pinned_empty()")

    def _is_whole_words(self) -> bool:
        """Whether the items are whole words of 4 bytes, as which buffers are copied."""
        return self.offset_bytes % 4 == 0 and self.nbytes % 4 == 0

    def _words(self) -> tuple[np.ndarray, int]:
        """Return the bytes of all words that the items touch, and where the items begin in them."""
        first = self.offset_bytes // 4 * 4
        words = np.empty(-(-(self.offset_bytes + self.nbytes - first) // 4) * 4, dtype=np.uint8)
        context_of(self._device).read_buffer(self.lease.buffer, first, words)
        return words, self.offset_bytes - first

    async def to_numpy_async(self, out: np.ndarray | None = None) -> np.ndarray:
        """As `to_numpy`, without blocking the event loop."""
        return await in_thread(functools.partial(self.to_numpy, out))

    def copy_from(self, data: np.ndarray | Array | PinnedArray) -> Array:
        """Copy data into this view; return it.

        Parameters
        ----------
        data : numpy.ndarray, Array or PinnedArray
            Of the shape and dtype of the Array. An Array of another device is copied through the host, which waits.
        """
        if isinstance(data, PinnedArray):
            return self._copy_pinned(data)
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
            self._upload(data if data.ndim == 1 else data.reshape(-1))
        return self

    def _copy_pinned(self, data: PinnedArray) -> Array:
        self._check_pinned("copy_from()", data)
        if not self._is_whole_words():
            raise ArgumentError(
                f"copy_from(): {self!r} shares a word of 4 bytes with other items, and the GPU copies whole words from "
                f"pinned memory; give a numpy array"
            )
        check_usable(self, "COPY_DST", "copy_from()")
        data.upload(self.lease.buffer, self.offset_bytes)
        return self

    def _upload(self, items: np.ndarray) -> None:
        """Copy a numpy array of the same length and datatype, in any byte order, into this view."""
        context = context_of(self._device)
        if self._is_whole_words():
            context.write_buffer(self.lease.buffer, self.offset_bytes, items)
        elif self.nbytes < RING_BYTES:
            words, lead = self._words()
            words[lead : lead + self.nbytes] = as_bytes(items)
            context.write_buffer(self.lease.buffer, self.offset_bytes - lead, words)
        else:  # of 1 or 2 bytes: only the first and the last word are shared with items that stay
            per_word = 4 // self._datatype.itemsize_bytes
            lead, stop = -self._offset % per_word, self._length - (self._offset + self._length) % per_word
            for first, last in ((0, lead), (lead, stop), (stop, self._length)):
                if first < last:
                    place = self._offset + first
                    part = Array.on(self.lease, self._datatype, last - first, self._device, place)
                    part._upload(items[first:last])

    def _copy_on_gpu(self, source: OnGpu) -> Array:
        if not isinstance(source, Array):
            raise DatatypeError(
                f"copy_from() takes a numpy array or an Array, not {source!r}; "
                f"gridwise_py.Copy(x.device, '{self._datatype.name}').execute(input=x, output=y) copies chunks"
            )
        if source.datatype != self._datatype or source.shape != self.shape:
            raise DatatypeError(f"cannot copy {source!r} into {self!r}: datatype and shape must be the same")
        source._check_uncounted()
        check_usable(source, "COPY_SRC", "copy_from()")
        check_usable(self, "COPY_DST", "copy_from()")
        if source.device is not self._device:
            return self.copy_from(source.to_numpy())
        is_copied = self._is_whole_words() and source._is_whole_words()  # as WebGPU copies between two buffers
        if not is_copied or source.lease.buffer is self.lease.buffer or self._is_copied_by_kernel(source):
            return OPERATIONS["convert"](source, self._datatype, self)
        if self._length:
            with device_errors("copy_from()", self._device):
                encoder = self._device.create_command_encoder(label="gridwise copy")
                with step(context_of(self._device).observer, "copy_from", encoder, 2 * self.nbytes):
                    encoder.copy_buffer_to_buffer(
                        source.lease.buffer, source.offset_bytes, self.lease.buffer, self.offset_bytes, self.nbytes
                    )
                submit(self._device, [encoder.finish()], "copy_from()")
        return self

    def _is_copied_by_kernel(self, source: Array) -> bool:
        """Whether a kernel copies sooner than the driver, as on NVIDIA's GPUs (benchmarks/wide_arithmetic.py)."""
        usage = source.lease.buffer.usage & self.lease.buffer.usage
        is_gpu = self._device.adapter.info["adapter_type"] != "CPU"
        return is_gpu and self.nbytes >= _BY_KERNEL_BYTES and bool(usage & wgpu.BufferUsage.STORAGE)

    def destroy(self) -> None:
        """Free the memory now, for all views of it."""
        self.lease.buffer.destroy()

    def __repr__(self) -> str:
        view = f", offset={self._offset}" if self._offset else ""
        label = f", label={self.lease.label!r}" if self.lease.label else ""
        end = ", destroyed" if self.lease.destroyed[0] else ""
        where = self._device.adapter.info["device"]
        most = "at most " if self._count is not None else ""
        many = f"{most}{count_items(self._length)}" if self._shape is None else f"shape {self._shape}"
        return f"Array({self._datatype.name}, {many}{view}{label}, on {where}{end})"


def check_usable(array: Array, usage: str | None, call: str) -> None:
    """Raise BufferUsageError where a call cannot use an array: its buffer is destroyed or mapped, or lacks a usage."""
    buffer = array.lease.buffer
    if array.lease.destroyed[0]:
        raise BufferUsageError(f"{call}: the buffer of {array!r} was destroyed; make a new Array")
    if buffer.map_state != "unmapped":
        raise BufferUsageError(f"{call}: the buffer of {array!r} is mapped; call buffer.unmap() first")
    if usage is not None and not buffer.usage & getattr(wgpu.BufferUsage, usage):
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
            f"work on parts of at most {limit // 16 * 16 // datatype.itemsize_bytes} items"
        )
    return size_bytes


def new_array(
    context: DeviceContext,
    n: int,
    datatype: Datatype,
    name: str = "",
    *,
    label: str = "",
    size: BlockSize | None = None,
    shape: tuple[int, ...] | None = None,
) -> Array:
    """Return an Array with any contents.

    Parameters
    ----------
    context : DeviceContext
    n : int
    datatype : Datatype
    name : str, default ""
        What its ``repr`` calls it.
    label : str, default ""
        The label of the buffer, for debuggers; memory with a label of its own is not reused.
    size : BlockSize, optional
        Of an earlier Array with as many bytes.
    shape : tuple of int, optional
        For other shapes than ``(n,)``.
    """
    device, observer = context.device, context.observer
    if size is None or observer is not None:
        size_bytes = _checked_size(device, n, datatype)
        size = context.memory.size_for(size_bytes)
        if observer is not None:
            observer.allocated(size_bytes)
    lease = None if label else size.reuse(name)
    if lease is None:
        size_bytes = _checked_size(device, n, datatype)
        with _making(n, datatype, size_bytes, device):
            lease = context.memory.make(size_bytes, name, buffer_label=label)
    return Array.on(lease, datatype, n, device, 0, None, shape)


def _making(
    n: int, datatype: Datatype, size_bytes: int, device: wgpu.GPUDevice
) -> contextlib.AbstractContextManager[None]:
    return device_errors(f"an Array of {n} items of {datatype.name} ({size_bytes} bytes)", device)


@explained()
def empty(
    shape: int | Sequence[int],
    dtype: ItemDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
    *,
    label: str = "",
) -> Array:
    """Return an Array with unspecified contents.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : Datatype, str or numpy dtype, optional
        By default float64 where the device computes with it, else float32.
    device : wgpu.GPUDevice, optional
        By default `default_device()`.
    label : str, optional
        For debuggers. Memory with a label does not come from the cache.

    Raises
    ------
    ArgumentError
        If `shape` is none.
    LimitError
        If the Array is larger than the device's largest buffer.
    """
    if isinstance(dtype, wgpu.GPUDevice):
        raise ArgumentError("dtype is a device; give device= by its name")
    lengths = checked_shape(shape)
    device = device if device is not None else default_device()
    context = context_of(device)
    found = default_float(context) if dtype is None else as_datatype(dtype, ITEM_DATATYPES)
    return new_array(context, prod(lengths), found, label=label, shape=kept_shape(lengths))


def kept_shape(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return a shape as `Array.on` takes it: None for one dimension."""
    return None if len(shape) == 1 else shape


def default_float(context: DeviceContext) -> Datatype:
    """Return the datatype of floats that nobody chose: float64 where the device computes with it, else float32."""
    return STORAGE_DATATYPES["f64" if context.has_float64 else "f32"]


@explained()
def pinned_empty(
    n: int, dtype: ItemDatatypeLike, direction: Direction, device: wgpu.GPUDevice | None = None
) -> PinnedArray:
    """Return memory of the host that the GPU reads or writes by itself, at the speed of the bus.

    Parameters
    ----------
    n : int
    dtype : Datatype, str or numpy dtype
    direction : {"up", "down"}
        To upload from, or to download into.
    device : wgpu.GPUDevice, optional
        By default `default_device()`.

    Returns
    -------
    PinnedArray
        With unspecified contents.

    Raises
    ------
    ArgumentError
        If `n` is not a length, or `direction` is unknown.
    LimitError
        If it is larger than the device's largest buffer.
    """
    n = integer("n", n, 0)
    datatype = as_datatype(dtype, ITEM_DATATYPES)
    if direction not in DIRECTIONS:
        raise ArgumentError(
            f"direction={direction!r} is unknown; 'up' is for memory to upload from, 'down' to download into"
        )
    device = device if device is not None else default_device()
    return PinnedArray(device, datatype, n, _checked_size(device, n, datatype), direction)


def empty_like(
    x: Array | np.ndarray,
    dtype: ItemDatatypeLike | None = None,
    device: wgpu.GPUDevice | None = None,
    *,
    shape: int | Sequence[int] | None = None,
) -> Array:
    """Return an uninitialised Array of the shape and datatype of another array.

    Parameters
    ----------
    x : Array or numpy.ndarray
    dtype : Datatype, str or numpy dtype, optional
        By default that of `x`.
    device : wgpu.GPUDevice, optional
        By default that of an Array, else `default_device()`.
    shape : int or sequence of int, optional
        By default that of `x`.
    """
    if isinstance(x, Array):
        found, lengths, device = x.datatype, x.shape, device if device is not None else x.device
    else:
        items = host_array(x)
        found, lengths = datatype_of(items) if dtype is None else None, items.shape
    return empty(lengths if shape is None else shape, found if dtype is None else dtype, device)


def refuse_masked(data: Any) -> None:
    """Raise DatatypeError for an array with masked items, whose mask would be lost."""
    # A process without numpy.ma has no masked items; to ask it imports it, which takes 10 to 25 ms.
    if "numpy.ma" in sys.modules and np.ma.is_masked(getattr(data, "array", data)):  # a Series of pandas has an array
        is_numpy = isinstance(data, np.ma.MaskedArray)
        others = "x.filled(0)" if is_numpy else "x.astype('float64')"
        shorter = "x.compressed()" if is_numpy else "x.dropna()"
        raise DatatypeError(
            f"data has masked items, and an Array has no mask; give {others}, or {shorter} of fewer items"
        )


def host_array(data: Any) -> np.ndarray:
    """Return what numpy makes of data on the host.

    Raises
    ------
    ArgumentError
        Where numpy makes no array of it, as of lists of several lengths; a DatatypeError where a mask would be lost.
    """
    refuse_masked(data)
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        return np.from_dlpack(data)
    try:
        items = np.asarray(data)
    except ValueError as error:
        raise ArgumentError(f"numpy makes no array of {data!r:.60}: {error}") from error
    nullable = integers_and_nulls(data) if items.dtype.kind == "f" and items is not data else None
    if nullable is not None and not float64_holds(nullable[0]):
        raise DatatypeError(
            "data has nulls, of which numpy makes float64, and integers beyond 2**53, which that rounds; fill the "
            "nulls, data.fill_null(0)"
        )
    return items


def is_python(data: Any) -> bool:
    """Whether data are Python's numbers, of whose floats numpy makes float64, though nobody asked for 64 bits."""
    return isinstance(data, (bool, int, float, complex, list, tuple, range)) and not isinstance(data, np.generic)


def without_complex128(data: Any, items: np.ndarray) -> np.ndarray:
    """Return Python's complex numbers in complex64: no GPU language has complex128."""
    if items.dtype == np.complex128 and is_python(data):
        return _from_numbers(data, COMPLEX)
    return items


def datatype_of(items: np.ndarray) -> Datatype:
    """Return the datatype of a numpy array that is to be uploaded.

    Raises
    ------
    DatatypeError
        If an Array cannot hold it; the message says how to convert it, where that makes sense.
    """
    dtype = in_own_order(items.dtype)  # bytes are brought into this machine's order on the way
    return as_datatype(dtype, ITEM_DATATYPES)


def _from_numbers(data: Any, wanted: Datatype) -> np.ndarray:
    """Return a sequence of Python numbers as a numpy array; raise DatatypeError for what the datatype cannot hold."""
    try:
        found = np.array(data, dtype=wanted.dtype if wanted.dtype.names else None)
        with np.errstate(over="ignore"):
            items = np.array(data, dtype=wanted.dtype)
        if wanted.dtype.names:
            return items
    except (OverflowError, TypeError, ValueError) as error:
        raise DatatypeError(f"data cannot be held as {wanted}: {error}") from error
    strange: list[Any]
    if found.dtype.kind == "O":  # integers of more than 64 bits, perhaps
        strange = [x for x in found.ravel() if not isinstance(x, (int, np.integer))]
    else:
        kinds = "biufc" if wanted.dtype.kind == "c" else "biuf"
        strange = [] if found.dtype.kind in kinds else found.ravel()[:1].tolist()
    if strange:
        raise DatatypeError(
            f"data cannot be held as {wanted}: {strange[0]!r} is {type(strange[0]).__name__}, no number"
        )
    if found.dtype.kind in "fc":
        if wanted.dtype.kind in "fc":
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
    data: Any,
    device: wgpu.GPUDevice | ItemDatatypeLike | None = None,
    *,
    dtype: ItemDatatypeLike | None = None,
    label: str = "",
    size: int | None = None,
) -> Array:
    """Return an Array with the items of `data`.

    Parameters
    ----------
    data : array_like, Array, PinnedArray, wgpu.GPUBuffer or Expression
        Numpy arrays, what has ``__array__`` or DLPack on the CPU, numbers and sequences are uploaded. An Array is
        returned unchanged, or copied to another device. Of a buffer the result is a view. An expression is computed by
        one kernel.
    device : wgpu.GPUDevice, optional
        By default `default_device()`. A dtype will do here, as in numpy.
    dtype : optional
        Arrays are not converted: a different dtype is an error. Python floats may be rounded to it.
    size : int, optional
        Of an expression without a leaf.

    Raises
    ------
    DatatypeError
        If the datatype of the items is not supported, `dtype` cannot represent them, or they are masked.
    ArgumentError
        If `data` is memory of another device.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))  # uploads
    >>> x.shape, x[1].to_numpy()
    ((2, 3), array([3., 4., 5.], dtype=float32))
    """
    device, dtype = _device_or_dtype(device, dtype)
    if isinstance(data, Expression):
        return OPERATIONS["evaluate"](data, device, dtype, None if size is None else integer("size", size, 0))
    if isinstance(data, StructExpression):
        raise DatatypeError(
            f"asarray() stores one expression, but this is a struct of {', '.join(data.fields)}; store its fields one "
            f"by one, or give it to gw.Reduce or gw.Scan"
        )
    wanted = None if dtype is None else as_datatype(dtype, ITEM_DATATYPES)
    if isinstance(data, (wgpu.GPUBuffer, Array, PinnedArray)):
        return _as_stored(data, device, wanted, label)
    refuse_masked(data)
    items, datatype = _as_items(data, device, wanted)
    return _upload(items, datatype, device if device is not None else default_device(), label)


def _device_or_dtype(device: Any, dtype: Any) -> tuple[wgpu.GPUDevice | None, Any]:
    """Tell a device from a dtype in its place; raise ArgumentError for anything else."""
    if device is None or isinstance(device, wgpu.GPUDevice):
        return device, dtype
    try:
        found = None if dtype is not None else as_datatype(device, ITEM_DATATYPES)
    except DatatypeError:
        found = None
    if found is None:
        check_device(device)  # raises
    return None, found


def _as_stored(
    data: wgpu.GPUBuffer | Array | PinnedArray, device: wgpu.GPUDevice | None, wanted: Datatype | None, label: str
) -> Array:
    """Return memory that a GPU can use already as an Array, of this datatype and on this device, where given."""
    if isinstance(data, wgpu.GPUBuffer):
        if wanted is None:
            raise DatatypeError("a GPUBuffer does not know its datatype; give dtype=, for example dtype='u32'")
        return Array(data, wanted, device=device)
    is_array = isinstance(data, Array)
    if wanted is not None and wanted != data.datatype:
        remedy = f"convert it with x.astype('{wanted.name}')" if is_array else f"fill one of {wanted}"
        raise DatatypeError(f"{data!r} is not of {wanted}; {remedy}")
    is_elsewhere = device is not None and data.device is not device
    if is_array:
        return asarray(data.to_numpy(), device, label=label) if is_elsewhere else data
    if is_elsewhere:
        raise BufferUsageError(f"{data!r} was made for another device; give device= to pinned_empty()")
    made = new_array(context_of(data.device), data.size, data.datatype, label=label)
    data.upload(made.lease.buffer, 0)
    return made


def _as_items(data: Any, device: wgpu.GPUDevice | None, wanted: Datatype | None) -> tuple[np.ndarray, Datatype]:
    """Return the items of arrays, sequences and numbers of the host, and their datatype."""
    if wanted is not None and not hasattr(data, "__array__"):
        return _from_numbers(data, wanted), wanted
    items = host_array(data)
    if wanted is None and is_python(data):
        items = without_complex128(data, items)
        datatype = datatype_of(items)
        if datatype.name == "f64" and not context_of(device or default_device()).has_float64:
            datatype = STORAGE_DATATYPES["f32"]
            items = _from_numbers(data, datatype)
        return items, datatype
    datatype = datatype_of(items)
    if wanted is not None and wanted != datatype:
        raise DatatypeError(
            f"data is of {items.dtype}, but dtype={wanted} was asked for; convert it first: "
            f"{'data' if isinstance(data, np.ndarray) else 'numpy.asarray(data)'}.astype(numpy.{wanted.numpy_name})"
        )
    return items, datatype


def _upload(items: np.ndarray, datatype: Datatype, device: wgpu.GPUDevice, label: str) -> Array:
    """Return a new Array with these items."""
    shape = kept_shape(items.shape)
    if shape is not None:
        items = items.reshape(-1)  # copied where it has gaps, or another order
    context = context_of(device)
    check_queue_use(device, "asarray()")
    array = _written_at_creation(context, items, datatype, label, shape)
    if array is None:
        array = new_array(context, items.size, datatype, label=label, shape=shape)
        _write_whole_words(context, array.lease.buffer, items)
    return array


def _write_whole_words(context: DeviceContext, buffer: wgpu.GPUBuffer, items: np.ndarray) -> None:
    """Copy items into a new buffer, whose last word they may not fill."""
    # Only the last items are copied, not all of a large array.
    rest = items.size % max(1, 4 // items.itemsize)
    whole = items.size - rest
    if whole:
        context.write_buffer(buffer, 0, items[:whole])
    if rest:
        word = np.zeros(4 // items.itemsize, dtype=items.dtype)
        word[:rest] = items[whole:]
        context.write_buffer(buffer, whole * items.itemsize, word)


def _written_at_creation(
    context: DeviceContext, items: np.ndarray, datatype: Datatype, label: str, shape: tuple[int, ...] | None
) -> Array | None:
    """Return a new Array of few items in fresh memory; None where a free block or a large transfer is faster."""
    device = context.device
    size_bytes = _checked_size(device, items.size, datatype)
    memory = context.memory
    has_free = not label and not context.recorders and memory.has_free(size_bytes)  # writing there ends a batch
    if items.nbytes >= RING_BYTES or context.observer is not None or has_free:
        return None
    # Written into the buffer's own memory, or wgpu's stand-in for it, which costs the fewest calls.
    with _making(items.size, datatype, size_bytes, device):
        lease = memory.make(size_bytes, buffer_label=label, mapped=True)
        if items.size:
            lease.buffer.write_mapped(as_bytes(items))
        lease.buffer.unmap()
    return Array.on(lease, datatype, items.size, device, 0, None, shape)
