"""Map a buffer that the GPU computes on, where CPU and GPU share memory, with the C functions below wgpu-py's wrappers.

wgpu-py's own mapping wakes a thread for each call, which takes 70 µs; these functions take 5 µs. wgpu-py does not see
such a mapping: the buffer's `map_state` stays as it was. wgpu-native ends the process when a mapped buffer is
submitted, destroyed or mapped again, so whoever maps one keeps others from that (`DeviceEnd.mapped`).

If wgpu-py is organised differently, `mappable` returns False, and nothing here is used.
"""

# The handles that wgpu-py keeps private are what this file is for.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import operator
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, compress, repeat, takewhile
from typing import Any, Literal, cast

import numpy as np
import wgpu

from .device_errors import check_not_lost
from .device_state import state_of
from .internals import made_of_internals
from .pages import advise_pages
from .timeout import timed_out, timeout_s
from .waits import LOOK_AGAIN_S, new_note, storing
from .wgpu_native import native_functions

#: What a device needs so that a buffer can be mapped and bound.
FEATURE = "mappable-primary-buffers"
#: The usage that such a buffer needs.
MAP_USAGE = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.MAP_WRITE
#: Where a mapped range may begin.
MAP_ALIGNMENT_BYTES = 8

_SHARED_MEMORY = ("CPU", "IntegratedGPU")
_MAPPED = 1  # WGPUMapAsyncStatus_Success; others are larger, and a note is 0 before wgpu has called back
_PAUSE_S = 0.0002
_LARGE_BYTES = 4 << 20
_DOING = "mapping a buffer"
_MADV_HUGEPAGE = 14  # Linux 2.6.38

Mode = Literal["READ", "WRITE"]
# Those that wgpu may still call back about.
_requested: set[Mapping] = set()


class _Native:
    """The C functions, and what turns their errors into exceptions."""

    def __init__(self) -> None:
        from wgpu.backends.wgpu_native import ffi, lib

        functions = native_functions()
        if functions is None:
            raise AttributeError("native_functions")
        self.null, self.new, self.buffer, self.closure = ffi.NULL, ffi.new, ffi.buffer, ffi.callback
        self.errors = functions.errors
        self.map_async, self.unmap = lib.wgpuBufferMapAsync, lib.wgpuBufferUnmap
        self.mapped_range = lib.wgpuBufferGetMappedRange
        self.poll, self.submit = lib.wgpuDevicePoll, lib.wgpuQueueSubmit
        self.modes = {"READ": lib.WGPUMapMode_Read, "WRITE": lib.WGPUMapMode_Write}
        self.callback_mode = lib.WGPUCallbackMode_AllowProcessEvents
        if lib.WGPUMapAsyncStatus_Success != _MAPPED:
            raise AttributeError("WGPUMapAsyncStatus_Success")


@functools.lru_cache(maxsize=1)
def _native() -> _Native | None:
    return made_of_internals(_Native)


def shares_memory(adapter: wgpu.GPUAdapter) -> bool:
    """Whether the memory of an adapter is the CPU's. On any other, what the CPU can reach is slow for kernels."""
    return adapter.info["adapter_type"] in _SHARED_MEMORY


def mappable(device: wgpu.GPUDevice) -> bool:
    """Whether buffers of a device can be mapped and bound, in memory that its CPU and its GPU share."""
    has_it = FEATURE in device.features and shares_memory(device.adapter)
    return has_it and state_of(device).engine.HAS_MAPPED_MEMORY and _native() is not None


def flush(device: wgpu.GPUDevice) -> None:
    """Have the GPU do what the queue was given to write into buffers: wgpu holds it back until a submission.

    Mapping does not wait for what is held back, and would come before it.
    """
    native = _native()
    assert native is not None, "mappable() tells"
    native.submit(device.queue._internal, 0, native.null)


def staging_mapping(
    device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, mode: Mode, begin_bytes: int, size_bytes: int
) -> Mapping | None:
    """Return what maps a buffer that only the CPU and copies use; None where wgpu-py has to do so by itself."""
    if not state_of(device).engine.HAS_MAPPED_MEMORY or _native() is None:
        return None
    if buffer.map_state != "unmapped" or not hasattr(buffer, "_mapped_status"):
        return None
    return Mapping(device, buffer, mode, begin_bytes, size_bytes)


def take_large_pages(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer) -> None:
    """Have the system give a new, large buffer large pages, as numpy does for its arrays.

    For an adapter that is the CPU: its memory is the process's own. Otherwise the first use of 256 MiB spends 0.2 s on
    page faults. Where the system has no large pages, nothing changes.
    """
    if buffer.size < _LARGE_BYTES or device.adapter.info["adapter_type"] != "CPU":
        return
    mapping = Mapping(device, buffer, "WRITE", 0, MAP_ALIGNMENT_BYTES)
    begin = mapping.map().__array_interface__["data"][0]
    advise_pages(begin, buffer.size, _MADV_HUGEPAGE)
    mapping.unmap()


class Mapping:
    """A range of a buffer that is to be mapped once.

    Parameters
    ----------
    device : wgpu.GPUDevice
    buffer : wgpu.GPUBuffer
        With the usage `MAP_USAGE`.
    mode : {"READ", "WRITE"}
    begin_bytes : int
        A multiple of `MAP_ALIGNMENT_BYTES`.
    size_bytes : int
        A multiple of 4.
    """

    def __init__(
        self,
        device: wgpu.GPUDevice,
        buffer: wgpu.GPUBuffer,
        mode: Mode,
        begin_bytes: int,
        size_bytes: int,
    ):
        native = _native()
        assert native is not None, "mappable() tells"
        self._native, self._device, self._buffer = native, device, buffer
        self._begin_bytes, self._size_bytes, self._reads = begin_bytes, size_bytes, mode == "READ"
        # What wgpu calls when the buffer is mapped, in whichever thread polls the device.
        self._note = new_note()
        closure = native.closure("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", storing(self._note))
        self._callback = native.new("WGPUBufferMapCallbackInfo *", {"mode": native.callback_mode, "callback": closure})
        self._closure = closure
        handle, ask_for = buffer._internal, native.modes[mode]
        self._begin = functools.partial(native.map_async, handle, ask_for, begin_bytes, size_bytes, self._callback[0])
        self._poll = functools.partial(native.poll, device._internal, False, native.null)
        self._end = functools.partial(native.unmap, handle)
        self._status: Callable[[], int] = functools.partial(operator.getitem, self._note, 0)

    def map(self, is_wanted: Callable[[], bool] = lambda: True) -> np.ndarray:
        """Map it, after the work submitted before; return its memory, which is there until `unmap`.

        For a thread that no interrupt reaches. Nobody submits meanwhile. `is_wanted` is asked while it waits.

        Raises
        ------
        DeviceTimeoutError
            If a timeout is set for the device and passes first, or it is not wanted any more.
        wgpu.GPUError
            If wgpu refuses.
        """
        self._request(lambda: self._wait(is_wanted))
        return np.frombuffer(next(self._memory()), dtype=np.uint8)

    def map_for_wgpu(self, wait: Callable[[Callable[[], object]], object]) -> None:
        """Map it so that wgpu-py knows, and its methods give the memory and unmap it.

        Without wgpu-py's own thread for that, which takes 70 µs to wake, and whose lock an interrupt may leave held.

        Parameters
        ----------
        wait : callable
            Takes a function, and returns when what that returns is true, or nothing more is under way. After an
            exception of it the buffer is not mapped, and wgpu-py does not let it be used again.
        """

        def wait_for_all() -> None:
            wait(self._status)
            self._wait(self._lives)  # another thread's poll is about to call

        buffer = cast(Any, self._buffer)
        buffer._map_state = "pending"
        self._request(wait_for_all)
        check_not_lost(self._device, _DOING)  # wgpu calls back with success for a device that was destroyed
        flag = self._native.modes["READ" if self._reads else "WRITE"]  # as those of WebGPU
        buffer._mapped_status = self._begin_bytes, self._begin_bytes + self._size_bytes, flag
        buffer._mapped_memoryviews = []
        buffer._map_state = "mapped"

    def _request(self, wait: Callable[[], object]) -> None:
        """Ask for the mapping and wait for it; after any exception the buffer is not mapped."""
        _requested.add(self)  # what wgpu is to call must live until it is called
        with self._native.errors():
            try:
                self._begin()
                wait()
            except BaseException:
                self._end()  # wgpu takes the request back
                raise
            finally:
                self._forget()
        if self._status() != _MAPPED:
            raise self._refusal()

    def _wait(self, is_wanted: Callable[[], bool]) -> None:
        limit_s = timeout_s(self._device)
        end = None if limit_s is None else time.monotonic() + limit_s
        while not self._status():
            self._poll()  # mostly nobody else has submitted anything
            if self._status():
                return
            if not is_wanted() or (end is not None and time.monotonic() > end):
                raise timed_out(self._device, limit_s or 0.0)
            time.sleep(_PAUSE_S)

    def _lives(self) -> bool:
        check_not_lost(self._device, _DOING)
        return True

    def _forget(self) -> None:
        if self._status():
            _requested.discard(self)

    def _refusal(self) -> Exception:
        check_not_lost(self._device, _DOING)
        return wgpu.GPUError(f"a buffer of {self._buffer.size} bytes was not mapped (status {self._status()})")

    def unmap(self) -> None:
        """Give the range back to the GPU."""
        with self._native.errors():
            self._end()

    def copy(self, lead_bytes: int, items: np.ndarray) -> bool:
        """Map it, copy between its memory and items, and unmap it: all, or nothing, wherever an interrupt arrives.

        Python looks for signals between its own instructions; here C code makes all calls. So nothing else is done
        meanwhile, by a handler of signals either. The caller holds the lock of submissions, and the queue is idle.

        Parameters
        ----------
        lead_bytes : int
            Where the items begin in the range.
        items : numpy.ndarray
            One dimension; with the mode ``"READ"`` contiguous.

        Returns
        -------
        bool
            False if the buffer was not mapped in `LOOK_AGAIN_S`, as somebody may have submitted more. Try again.
        """
        dtype = items.dtype.newbyteorder("=")
        as_items = functools.partial(np.frombuffer, dtype=dtype, count=items.size, offset=lead_bytes)
        put: Callable[..., object] = operator.setitem
        call: Callable[..., object] = operator.call
        mapped: Iterator[Any] = map(as_items, self._memory())
        host: Iterator[Any] = iter((items,))
        targets, sources = (host, mapped) if self._reads else (mapped, host)
        copied, ended = deque[Any](), deque[Any]()
        steps = chain(
            map(call, (self._begin,)),
            self._waiting(),
            map(copied.append, map(put, targets, (...,), sources)),
            map(ended.append, map(call, self._when((_MAPPED + 1).__gt__, self._end))),
        )
        _requested.add(self)
        with self._native.errors():
            try:
                deque(steps, maxlen=0)
            except BaseException:
                if not ended:
                    self._end()
                raise
            finally:
                self._forget()
        if not copied and not ended:
            raise self._refusal()
        return bool(copied)

    def _when(self, accepts: Callable[[int], bool], value: Any) -> Iterator[Any]:
        """Return an iterator that gives a value if what wgpu has called back with by then is accepted."""
        return compress((value,), map(accepts, map(operator.call, (self._status,))))

    def _memory(self) -> Iterator[Any]:
        """Return an iterator that gives the memory, if it is mapped by then."""
        native, handles = self._native, self._when(_MAPPED.__eq__, self._buffer._internal)
        pointers = map(native.mapped_range, handles, (self._begin_bytes,), (self._size_bytes,))
        return map(native.buffer, pointers, (self._size_bytes,))

    def _waiting(self) -> Iterator[Any]:
        """Return an iterator that polls the device until wgpu has called back, for a bounded time."""
        is_early = (time.monotonic() + LOOK_AGAIN_S).__gt__
        unnoted = takewhile(operator.not_, map(operator.call, repeat(self._status)))
        early = takewhile(is_early, map(operator.call, repeat(time.monotonic)))
        return zip(unnoted, early, map(operator.call, repeat(self._poll)), strict=False)
