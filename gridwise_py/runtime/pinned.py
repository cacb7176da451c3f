"""Memory that the GPU copies from or to without the CPU: a staging buffer that a caller fills or reads in place.

WebGPU lets the GPU use a buffer only while the CPU does not have it mapped. So the memory is lent to the CPU for the
time of a block, and to the GPU outside it.

wgpu frees the memory of mapped buffers when their device is destroyed, and when the driver loses it; whoever touches
the memory afterwards ends the process. Hence a block, not a numpy array that lives as long as it likes:

- `destroy` of the device leaves wgpu's device, and so the memory, as it is while arrays on it are alive
  (`DeviceEnd.keep_for`). For this library the device has ended.
- An array that outlives its block keeps the buffer and the device. Its content is then undefined.
- When a driver loses a device, wgpu itself frees its buffers, in whichever of its calls notices first. An array must
  not be touched after a DeviceLostError.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Generator
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
import wgpu

from ..backend.device_errors import check_not_lost, device_errors
from ..backend.device_state import state_of
from ..backend.queues import map_buffer, memory_of_mapped, submit
from ..errors import ArgumentError, ImplicitConversionError
from ..types.datatype import Datatype
from .context import context_of
from .observer import step
from .one_device import OfOneDevice

Direction: TypeAlias = Literal["up", "down"]
DIRECTIONS: tuple[Direction, ...] = ("up", "down")

_USAGES = {
    "up": wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC,
    "down": wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST,
}


class _Memory:
    """What numpy arrays on mapped memory keep alive: the buffer, and with it the device."""

    def __init__(self, buffer: wgpu.GPUBuffer, mapped: np.ndarray):
        self._buffer = buffer
        self.__array_interface__: dict[str, Any] = mapped.__array_interface__


class _Block:
    """A block of `mapped`. It lives as long as the frame of the call, so that an interrupt ends it anywhere."""

    __slots__ = ("__weakref__",)


class PinnedArray(OfOneDevice):
    """Items in memory of the host that the GPU reads or writes by itself; made by `pinned_empty`.

    ``array.copy_from(pinned)`` and ``gw.asarray(pinned)`` upload from it, ``array.to_numpy(out=pinned)`` downloads into
    it, without waiting.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> up = gw.pinned_empty(4, "u32", "up")
    >>> with up.mapped() as items:
    ...     items[:] = [3, 1, 2, 4]
    >>> x = gw.sort(gw.asarray(up))
    >>> down = gw.pinned_empty(4, "u32", "down")
    >>> with x.to_numpy(out=down).mapped() as items:
    ...     print(items.tolist())
    [1, 2, 3, 4]
    """

    _instead = "send a copy of what its mapped() gives, and make another one with gw.pinned_empty()"

    def __init__(self, device: wgpu.GPUDevice, datatype: Datatype, n: int, size_bytes: int, direction: Direction):
        self._device, self._datatype, self._length = device, datatype, n
        self._direction: Direction = direction
        self._size_bytes = size_bytes
        self._lock = threading.RLock()
        self._block: weakref.ref[_Block] | None = None
        # The buffer while the GPU may use it: taken out by `mapped`, and put back by a block that ended as it should.
        # A buffer that an interrupt leaves mapped, or on its way to be, is never used again.
        self._buffer: wgpu.GPUBuffer | None = self._make_buffer()
        self._has_items = False

    def _make_buffer(self) -> wgpu.GPUBuffer:
        with device_errors(f"pinned memory of {self._size_bytes} bytes", self._device):
            return self._device.create_buffer(
                label="gridwise pinned", size=self._size_bytes, usage=_USAGES[self._direction]
            )

    @property
    def device(self) -> wgpu.GPUDevice:
        """"""
        return self._device

    @property
    def direction(self) -> Direction:
        """Whether it goes up to the GPU, or takes what comes down."""
        return self._direction

    @property
    def datatype(self) -> Datatype:
        """The datatype of the items."""
        return self._datatype

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype of the items."""
        return self._datatype.dtype

    @property
    def size(self) -> int:
        """Number of items."""
        return self._length

    @property
    def shape(self) -> tuple[int]:
        """``(size,)``."""
        return (self._length,)

    @property
    def nbytes(self) -> int:
        """Bytes of the items."""
        return self._length * self._datatype.itemsize_bytes

    def __len__(self) -> int:
        return self._length

    @contextlib.contextmanager
    def mapped(self) -> Generator[np.ndarray]:
        """Give the items to the CPU, for the time of the block.

        Waits for the GPU's copies. For ``"up"`` the array is for writing, in order; for ``"down"`` it is read-only.

        Uploads from it are for after the block. The array and its views are for the block only: after a
        `DeviceLostError`, or in a fork, the process ends where they are touched.

        Yields
        ------
        numpy.ndarray
            Shape (size,).

        Raises
        ------
        ArgumentError
            If it is mapped already, or nothing was downloaded into it.
        DeviceLostError
            If the device was destroyed or lost.
        """
        with self._lock:
            if self._is_mapped():
                raise ArgumentError(f"{self!r} is mapped already; leave the block of the other mapped() first")
            if self._direction == "down" and not self._has_items:
                raise ArgumentError(f"{self!r} holds no items yet; fill it with array.to_numpy(out=…)")
            block = _Block()
            self._block = weakref.ref(block)
            buffer, self._buffer = self._buffer, None
        end = state_of(self._device).end
        try:
            check_not_lost(self._device, "mapped()")
            buffer = self._make_buffer() if buffer is None else buffer
            map_buffer(self._device, buffer, "WRITE" if self._direction == "up" else "READ")
            items, is_memory = self._items_of(buffer)
            try:
                yield items
            finally:
                with end.lock:
                    if not end.reached:
                        if not is_memory and items.size:
                            buffer.write_mapped(items, 0)
                        buffer.unmap()
                        self._buffer, self._has_items = buffer, True
        finally:
            self._block = None

    def _is_mapped(self) -> bool:
        return self._block is not None and self._block() is not None

    def _items_of(self, buffer: wgpu.GPUBuffer) -> tuple[np.ndarray, bool]:
        """Return the items of a mapped buffer, and whether they are its memory."""
        end = state_of(self._device).end
        with end.lock:
            check_not_lost(self._device, "mapped()")
            if self._direction == "down":
                mapped = np.frombuffer(buffer.read_mapped(copy=False), dtype=np.uint8)
            else:
                mapped = memory_of_mapped(buffer, buffer.size)
                if mapped is None:  # this wgpu-py gives no memory for writing, but copies into it
                    return np.zeros(buffer.size, np.uint8)[: self.nbytes].view(self.dtype), False
            memory = _Memory(buffer, mapped)
            end.keep_for(memory)
        return np.asarray(memory)[: self.nbytes].view(self.dtype), True

    def upload(self, target: wgpu.GPUBuffer, offset_bytes: int) -> None:
        """Submit a copy of the items, in whole words of 4 bytes, into a buffer."""
        if self._direction != "up":
            self._refuse_direction("up")
        with self._lock:
            check_not_lost(self._device, "uploading pinned memory")
            source = self._usable("upload from it after the block")
            if not self._has_items or source is None:
                raise ArgumentError(f"{self!r} holds no items yet; fill it within `with pinned.mapped() as items`")
            self._submit_copy("copy to GPU", source, 0, target, offset_bytes)

    def download(self, source: wgpu.GPUBuffer, offset_bytes: int) -> None:
        """Submit a copy from a buffer, in whole words of 4 bytes, into this memory."""
        if self._direction != "down":
            self._refuse_direction("down")
        with self._lock:
            check_not_lost(self._device, "downloading into pinned memory")
            target = self._usable("download into it after the block")
            if target is None:
                target = self._buffer = self._make_buffer()
            self._submit_copy("copy to host", source, offset_bytes, target, 0)
            self._has_items = True

    def _usable(self, remedy: str) -> wgpu.GPUBuffer | None:
        """Return the buffer, or None if there is none any more; raise if the CPU has it."""
        if self._is_mapped():
            raise ArgumentError(f"{self!r} is mapped; {remedy} of mapped()")
        return self._buffer

    def _refuse_direction(self, wanted: Direction) -> NoReturn:
        raise ArgumentError(
            f"{self!r} goes {self._direction}; make another one with "
            f"gw.pinned_empty({self._length}, '{self._datatype.name}', '{wanted}')"
        )

    def _submit_copy(
        self, what: str, source: wgpu.GPUBuffer, first: int, target: wgpu.GPUBuffer, target_first: int
    ) -> None:
        size_bytes = -(-self.nbytes // 4) * 4
        if not size_bytes:
            return
        with device_errors(f"copying {self!r}", self._device):
            encoder = self._device.create_command_encoder(label="gridwise pinned")
            with step(context_of(self._device).observer, what, encoder, self.nbytes):
                encoder.copy_buffer_to_buffer(source, first, target, target_first, size_bytes)
            submit(self._device, [encoder.finish()], "copy of pinned memory", is_transfer=True)

    def destroy(self) -> None:
        """Free the memory, once nothing uses it."""
        with self._lock:
            self._usable("destroy it after the block")
            self._buffer, self._has_items = None, False

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise ImplicitConversionError(
            f"{self!r} is a numpy array only for the time of a block: `with pinned.mapped() as items`; to compute with "
            f"its items on the GPU, upload them with gw.asarray(pinned)"
        )

    def __repr__(self) -> str:
        return f"PinnedArray({self._datatype.name}, {self._length} items, {self._direction})"
